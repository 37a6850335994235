// Owns: reading books from JSON, an array or one object per line. It converts only years and ids that are strings, and
// the authors and dates that other programs write as lists and objects.
// Does not: end at an invalid record: it rejects records that are not objects or have an invalid field (rules 2 to 4).
// But an array that is not JSON is refused as a whole.

import { isJsonObject, type JsonObject, parseJson } from '../json/parse.ts';
import { OperatorError } from '../operator-error.ts';
import { type Columns, findColumns, keepsIds, namesOf, REFUSED } from './columns.ts';
import { FIRST_RECORDS, type Format, type Reading, type ReadingOptions } from './format.ts';
import { because } from './reasons.ts';
import { readBatches, rowOf, shorten } from './rows.ts';
import type { TextInput } from './text-input.ts';

/** Characters of an array, at most: it is read as a whole. */
const LONGEST_ARRAY = 16 * 1024 * 1024;

/**
 * Characters of lines whose objects determine the columns: about 8,000 books. Programs leave out keys that have no value,
 * and books without a year or an author may come first.
 */
const BEGINNING = 1024 * 1024;

/** No book is nested more deeply, and no array of books has more values. JSON.parse takes a hundred bytes for each. */
const DEEPEST = 1000;
const MOST_VALUES = 1_000_000;

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

/** The key that was added to an object when it was rejected before. */
const EARLIER_REASON = new RegExp(`,?(?<!\\s)\\s*"${REFUSED}"\\s*:\\s*"(?:[^"\\\\]|\\\\.)*"\\s*\\}$`);

interface JsonRecord {
  readonly line: number;
  readonly value: unknown;
  /** Of a line; that of an element is written again. */
  readonly text?: string;
}

export const jsonArray: Format = {
  name: 'json',
  rejectsEnding: 'json',
  title: 'a JSON array',
  unit: 'element',
  isTable: false,
  recognise: (beginning, name) =>
    /^(?:\[|\{\s*"\d+"\s*:\s*\{)/.test(beginning) || (/\.json$/i.test(name) && !beginning.startsWith('{')),

  async read(input, options) {
    const records = recordsOf(await readArray(input));
    let read = 0;
    const reading = readingOf(jsonArray, input, options, records, () => records[read++]);
    input.text = ''; // for the garbage collector
    return reading;
  },
};

export const jsonLines: Format = {
  name: 'jsonl',
  rejectsEnding: 'jsonl',
  title: 'JSON Lines',
  unit: 'line',
  isTable: false,
  recognise: (beginning, name) => beginning.startsWith('{') || /\.(?:jsonl|ndjson)$/i.test(name),

  async read(input, options) {
    await input.begin(BEGINNING);
    while (!input.ended && !/[\r\n]/.test(input.text.trimStart())) await input.more();
    const lines = input.text.split(/[\r\n]+/);
    if (!input.ended) lines.pop();
    const first = lines.filter((line) => /[^ \t]/.test(line)).map((line, at) => lineOf(line, at + 1));
    return readingOf(jsonLines, input, options, first, nextLine);
  },
};

/**
 * An array, or an object with the same as values: LibraryThing's export is an object whose keys are ids.
 * @throws OperatorError
 */
async function readArray(input: TextInput): Promise<object> {
  await input.begin(LONGEST_ARRAY + 1);
  const { text } = input;
  if (!/^\s*[[{]/.test(text))
    throw new OperatorError('The file has no JSON array: it begins with neither [ nor {.');
  const { depth, values } = shapeOf(text);
  if (text.length > LONGEST_ARRAY || values > MOST_VALUES || depth > DEEPEST)
    throw new OperatorError(
      `The array has more than 16 MiB, a million values or ${DEEPEST} levels: save it as JSON Lines, one object a line, such as with jq -c ".[]".`,
    );
  input.decoder.unit = 'Element';
  try {
    return parseJson(text) ?? JSON.parse(text); // the latter throws, and says why
  } catch (error) {
    throw new OperatorError(`The array is malformed: ${(error as Error).message.replaceAll(/\s+/g, ' ')}.`);
  }
}

function recordsOf(array: object): readonly JsonRecord[] {
  return Object.entries(array).map(([key, value], at) => {
    return { line: (Array.isArray(array) ? 0 : Number.parseInt(key, 10)) || at + 1, value };
  });
}

/** Takes the next line that is not blank from the input; undefined when it needs more text, or there is no more. */
function nextLine(input: TextInput): JsonRecord | undefined {
  const { text, at, ended } = input;
  const found = /[^ \t\r\n][^\r\n]*/.exec(text.slice(at));
  if (found === null) return undefined;
  const start = at + found.index;
  const end = start + found[0].length;
  if (end === text.length && !ended) return undefined;
  input.advance(start);
  const { line } = input;
  input.advance(end);
  return lineOf(found[0].trimEnd(), line);
}

function lineOf(text: string, line: number): JsonRecord {
  const isDeep = text.length > 2 * DEEPEST && shapeOf(text).depth > DEEPEST; // a shorter text has fewer brackets
  return { line, text, value: isDeep ? undefined : parseJson(text) };
}

/** How deeply a text is nested, and about how many values it has. */
function shapeOf(text: string): { depth: number; values: number } {
  let [depth, deepest, values] = [0, 0, 0];
  let isInText = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) isInText = !isInText;
    else if (code === BACKSLASH)
      at += 1; // it escapes the next one
    else if (isInText) continue;
    else if (code === COMMA) values += 1;
    else if (code === LIST || code === OBJECT) {
      values += 1;
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (code === LIST_END || code === OBJECT_END) depth -= 1;
  }
  return { depth: deepest, values };
}

/**
 * @param first the records at the beginning; none if the file has none.
 * @param next takes the next record from an input.
 * @throws OperatorError if none of the keys is a name of the title.
 */
function readingOf(
  format: Format,
  input: TextInput,
  options: ReadingOptions,
  first: readonly JsonRecord[],
  next: (input: TextInput) => JsonRecord | undefined,
): Omit<Reading, 'encoding'> {
  const objects = first.map(({ value }) => value).filter(isJsonObject);
  const names = [...new Set(objects.flatMap((object) => Object.keys(object)))];
  const [one] = first;
  if (one !== undefined && names.length === 0)
    throw new OperatorError(
      `None of the first records is a JSON object that has a key; the first one is ${shorten(textOf(one))}. Put each book on one line, or all between [ and ] with commas.`,
    );
  const cells = objects
    .slice(0, FIRST_RECORDS)
    .map((object) => names.map((name) => shorten(ownValue(object, name))));
  // As a text, it is Project Gutenberg's own date; as an object of CSL, the date of publication.
  const isDate = options.columns.year === undefined && objects.some(({ issued }) => isJsonObject(issued));
  const known =
    one === undefined
      ? { otherYears: [], kinds: [], isExport: false }
      : findColumns(names, options.columns, cells);
  const columns: Columns = isDate ? { ...known, year: known.year ?? 'issued' } : known;
  const keepIds = one !== undefined && keepsIds(names, options.ids);
  const rowsOf = (from: TextInput, take: typeof next) =>
    readBatches(from, () => {
      const record = take(from);
      if (record === undefined) return undefined;
      const { line, value } = record;
      const original = () => textOf(record);
      const takesReason = isJsonObject(value);
      if (takesReason && namesOf(columns).some((name) => Object.hasOwn(value, name))) {
        const get = (column: string | undefined) => ownValue(value, column);
        return rowOf({ line, get, original }, from, columns, keepIds);
      }
      const text = original();
      const reason = because(takesReason ? 'no-fields' : 'not-an-object');
      return { line, column: undefined, value: shorten(text), original: text, reason, takesReason };
    });
  const isLines = format === jsonLines;
  return {
    format,
    keepsIds: keepIds,
    names,
    first: cells,
    columns,
    batches: rowsOf(input, next),
    rejects: {
      before: isLines ? '' : '[\n',
      between: isLines ? '\n' : ',\n',
      after: isLines ? '\n' : '\n]\n',
      record({ original, takesReason }, reason) {
        return takesReason ? withValue(original.replace(EARLIER_REASON, '}'), REFUSED, reason) : original;
      },
    },
    valueIn(original, column) {
      const object = parseJson(original);
      const value = isJsonObject(object) ? object[column] : undefined;
      return typeof value === 'string' ? value : JSON.stringify(value);
    },
    replaceIn: withValue, // of two values with one key, the last one counts
    again: (original) => rowsOf(input.with(original), nextLine),
  };
}

/** The text of an object with one value more. */
function withValue(object: string, key: string, value: string): string {
  const fields = object.trimEnd().slice(0, -1);
  const comma = /^\{\s*$/.test(fields) ? '' : ',';
  return `${fields}${comma}${JSON.stringify(key)}:${JSON.stringify(value)}}`;
}

function textOf({ text, value }: JsonRecord): string {
  return text ?? JSON.stringify(value);
}

/** An object's own value; null counts as none. */
function ownValue(object: JsonObject, name: string | undefined): unknown {
  return name !== undefined && Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}
