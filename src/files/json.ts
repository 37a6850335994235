// Owns: reading books from JSON, an array or one object per line. It converts only years and ids that are strings, and
// the authors and dates that other programs write as lists and objects.
// Does not: end at an invalid record: it rejects records that are not objects or have an invalid field (rules 2 to 4).
// But an array that is not JSON, or a file whose first records all have their books elsewhere, is refused as a whole.

import { isJsonObject, type JsonObject, parseJson } from '../json/parse.ts';
import { OperatorError } from '../operator-error.ts';
import {
  type Columns,
  findColumns,
  isTitle,
  keepsIds,
  NoTitleColumn,
  namesOf,
  REFUSED,
  type WantedColumns,
  withFirst,
} from './columns.ts';
import {
  FIRST_RECORDS,
  type Format,
  type ReadBook,
  type Reading,
  type ReadingOptions,
  type RefusedRecord,
} from './format.ts';
import { because, type Reason } from './reasons.ts';
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

/** Python writes them for a number that is missing. */
const NOT_A_NUMBER = /"\s*:\s*-?(?:NaN|Infinity)\s*[,}]/;

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
  title: 'a JSON array',
  type: 'application/json',
  unit: 'element',
  isTable: false,
  recognise: (beginning, name) =>
    /^(?:\[|\{\s*"\d+"\s*:\s*\{)/.test(beginning) || (/\.json$/i.test(name) && !beginning.startsWith('{')),

  async read(input, options) {
    const array = await readArray(input, options.name);
    const keys = Array.isArray(array) ? undefined : Object.keys(array);
    const elements = Object.values(array);
    const size = input.position;
    let read = 0;
    const next = () => {
      input.position = Math.ceil((size * read) / elements.length); // of a whole file, it would be the end
      const line = Number.parseInt(keys?.[read] ?? '', 10) || read + 1;
      read += 1;
      return read > elements.length ? undefined : { line, value: elements[read - 1] };
    };
    const reading = readingOf(jsonArray, input, options, elements, JSON.stringify(elements[0]), next);
    [input.text, input.at] = ['', 0]; // for the garbage collector
    return reading;
  },
};

export const jsonLines: Format = {
  name: 'jsonl',
  title: 'JSON Lines',
  type: 'application/json',
  unit: 'line',
  isTable: false,
  recognise: (beginning, name) => beginning.startsWith('{') || /\.(?:jsonl|ndjson)$/i.test(name),

  async read(input, options) {
    await input.begin(BEGINNING);
    while (!input.ended && !/[\r\n]/.test(input.text.trimStart())) await input.more();
    const lines = input.text.split(/[\r\n]+/);
    if (!input.ended) lines.pop();
    const first = lines.filter((line) => /[^ \t]/.test(line));
    return readingOf(jsonLines, input, options, first.map(parseLine), first[0], () => nextLine(input));
  },
};

/**
 * An array, or an object with the same as values: LibraryThing's export is an object whose keys are ids.
 * @throws OperatorError
 */
async function readArray(input: TextInput, name: string): Promise<object> {
  await input.begin(LONGEST_ARRAY + 1);
  const { text } = input;
  const [first] = /\S/.exec(text) ?? [];
  if (first === undefined) throw new OperatorError('The file is empty: it has no array.');
  if (first !== '[' && first !== '{')
    throw new OperatorError(`${name} is not JSON: it begins with neither [ nor {.`);
  const { depth, values } = shapeOf(text);
  if (depth > DEEPEST) throw new OperatorError(`The array is nested more than ${DEEPEST} deep.`);
  if (text.length > LONGEST_ARRAY || values > MOST_VALUES)
    throw new OperatorError(
      'The array has more than 16 MiB or a million values: save it as JSON Lines, one object a line, such as with jq -c ".[]".',
    );
  const array = parseJson(text);
  if (array === undefined) throw new OperatorError(`The array is malformed: ${faultIn(text)}.`);
  input.advance(text.length);
  input.decoder.unit = 'Element';
  return array as object;
}

/** Why a text is not JSON. */
function faultIn(text: string): string {
  if (NOT_A_NUMBER.test(text)) return 'it has NaN or Infinity, where JSON has null';
  try {
    JSON.parse(text);
  } catch (error) {
    return (error as Error).message.replaceAll(/\s+/g, ' ').replace(/ is not valid JSON$/, '');
  }
  return 'it is no list';
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
  const record = found[0].trimEnd();
  return { line, text: record, value: parseLine(record) };
}

function parseLine(line: string): unknown {
  return isDeep(line) ? undefined : parseJson(line);
}

function isDeep(text: string): boolean {
  return text.length > 2 * DEEPEST && shapeOf(text).depth > DEEPEST; // a shorter text has fewer brackets
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
 * @param first the values at the beginning; none if the file has none.
 * @param beginning the text of the first one.
 * @param next takes the next record from the input.
 * @throws OperatorError if none of the keys is a name of the title.
 */
function readingOf(
  format: Format,
  input: TextInput,
  options: ReadingOptions,
  first: readonly unknown[],
  beginning: string | undefined,
  next: () => JsonRecord | undefined,
): Omit<Reading, 'encoding'> {
  const objects = first.filter(isJsonObject);
  const found = new Set<string>();
  for (const object of objects) for (const name of Object.keys(object)) found.add(name);
  const names = [...found];
  if (first.length > 0 && names.length === 0)
    throw new OperatorError(
      `None of the first records is a JSON object that has a key; the first one is ${shorten(beginning)}. Put each book on one line, or all between [ and ] with commas.`,
    );
  const cells = objects
    .slice(0, FIRST_RECORDS)
    .map((object) => names.map((name) => shorten(ownValue(object, name))));
  const columns = withFirst(cells, () => columnsOf(objects, names, options.columns, format));
  const keepIds = names.length > 0 && keepsIds(names, options.ids);
  const toRow = (from: TextInput, record: JsonRecord | undefined): ReadBook | RefusedRecord | undefined => {
    if (record === undefined) return undefined;
    const { line, value } = record;
    const original = () => textOf(record);
    if (isJsonObject(value) && namesOf(columns).some((name) => Object.hasOwn(value, name))) {
      const get = (column: string | undefined) => ownValue(value, column);
      return rowOf({ line, get, original }, from, columns, keepIds);
    }
    const whole = { line, column: undefined, value: shorten(original()), original: original() };
    return { ...whole, reason: faultOf(record), takesReason: isJsonObject(value) };
  };
  const isLines = format === jsonLines;
  return {
    format,
    keepsIds: keepIds,
    names,
    first: cells,
    columns,
    batches: readBatches(input, () => toRow(input, next())),
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
    again(original) {
      const corrected = input.with(original);
      return readBatches(corrected, () => toRow(corrected, nextLine(corrected)));
    },
  };
}

/** The text of an object with one value more. */
function withValue(object: string, key: string, value: string): string {
  const fields = object.trimEnd().slice(0, -1);
  const comma = /^\{\s*$/.test(fields) ? '' : ',';
  return `${fields}${comma}${JSON.stringify(key)}:${JSON.stringify(value)}}`;
}

/** Why a record is no book. */
function faultOf({ value, text = '' }: JsonRecord): Reason {
  if (isJsonObject(value)) return because('no-fields');
  if (isDeep(text)) return because('too-deep');
  return because(NOT_A_NUMBER.test(text) ? 'not-a-number' : 'not-an-object');
}

function textOf({ text, value }: JsonRecord): string {
  return text ?? JSON.stringify(value);
}

/** An object's own value; null counts as none. */
function ownValue(object: JsonObject, name: string | undefined): unknown {
  return name !== undefined && Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

/** @throws OperatorError if the objects are no books. */
function columnsOf(
  objects: readonly JsonObject[],
  names: readonly string[],
  wanted: WantedColumns,
  format: Format,
): Columns {
  if (objects.length === 0) return { otherYears: [], kinds: [], isExport: false };
  try {
    const columns = findColumns(names, wanted);
    // As a text, it is Project Gutenberg's own date; as an object of CSL, the date of publication.
    const isDate = wanted.year === undefined && objects.some(({ issued }) => isJsonObject(issued));
    return isDate ? { ...columns, year: columns.year ?? 'issued' } : columns;
  } catch (error) {
    if (!(error instanceof NoTitleColumn)) throw error;
    throw elsewhere(objects, format) ?? error;
  }
}

/** Why no record has a title, if it is elsewhere. */
function elsewhere(
  [first = {}, ...others]: readonly JsonObject[],
  format: Format,
): OperatorError | undefined {
  const members = Object.entries(first);
  const [list] = members.find(([, value]) => Array.isArray(value) && value.some(isJsonObject)) ?? [];
  if (list !== undefined && others.length === 0 && format === jsonLines)
    return new OperatorError(
      `The records are in the list "${list}" within the file: make a file of that list, from its [ to its ].`,
    );
  const titled = members.filter(([, value]) => isJsonObject(value) && Object.keys(value).some(isTitle));
  const [[member] = []] = titled;
  if (member === undefined || titled.length > 1) return undefined;
  return new OperatorError(`The title is within "${member}" of each record: make that object the record.`);
}
