// Owns: reading books from JSON, an array or one object per line. It converts only years and ids that are strings, and
// the authors and dates that other programs write as lists and objects.
// Does not: end at an invalid record: it rejects records that are not objects or have an invalid field (rules 2 to 4).
// But a file whose first records all have their books elsewhere is refused as a whole.

import { type BookFields, readBookChanges } from '../books/book.ts';
import { isJsonObject, type JsonObject, parseJsonObject } from '../json/parse.ts';
import { OperatorError } from '../operator-error.ts';
import {
  type Columns,
  findColumns,
  firstYear,
  isOtherThing,
  isTitle,
  keepsIds,
  NO_BOOK,
  NoTitleColumn,
  namesOf,
  type WantedColumns,
} from './columns.ts';
import { ArraySplitter, type JsonRecord, LineSplitter } from './json-splitter.ts';
import { readAuthors, readYearIn } from './json-values.ts';
import type { OpenBatch, ReadBook, Reading, ReadingOptions } from './rows.ts';
import { NOT_AN_ID, readBatches, readFileId, shorten, textOf } from './rows.ts';
import { TextInput } from './text-input.ts';
import { isNewYear } from './years.ts';

/**
 * Characters of the file whose objects determine the columns: about 8,000 books. Programs leave out keys that have no value,
 * and books without a year or an author may come first.
 */
const BEGINNING = 1024 * 1024;

/** Python writes them for a number that is missing. */
const NOT_A_NUMBER = /"\s*:\s*-?(?:NaN|Infinity)\s*[,}]/;

/** What is wrong with a record, and in which column. */
class FieldError {
  readonly column: string | undefined;
  readonly reason: string;

  constructor(column: string | undefined, reason: string) {
    this.column = column;
    this.reason = reason;
  }
}

/** @throws OperatorError when none of its keys is a name of the title. */
export async function readJson(
  input: TextInput,
  format: 'json' | 'jsonl',
  options: ReadingOptions,
): Promise<Reading> {
  const makeSplitter = () => (format === 'json' ? new ArraySplitter() : new LineSplitter());
  const first = await readFirst(input, makeSplitter());
  const names = [...new Set(first.flatMap(Object.keys))];
  const columns = columnsOf(first, names, options.columns, format);
  const keepIds = first.length > 0 && keepsIds(names, options.ids);
  const recordsOf = (from: TextInput, splitter: ArraySplitter | LineSplitter) => {
    return readBatches(from, (batch) => {
      const record = splitter.next(from);
      if (record === undefined) return false;
      batch.size += record.text.length;
      add(batch, record, { input: from, columns, keepIds });
      return true;
    });
  };
  return {
    format,
    keepsIds: keepIds,
    names,
    columns,
    header: undefined,
    batches: recordsOf(input, makeSplitter()),
    again: (records) => recordsOf(TextInput.of(records, input.isDamaged), new LineSplitter()),
  };
}

/**
 * @param first the objects at the beginning; none if the file has no records.
 * @throws OperatorError if they are no books.
 */
function columnsOf(
  first: readonly JsonObject[],
  names: readonly string[],
  wanted: WantedColumns,
  format: 'json' | 'jsonl',
): Columns {
  if (first.length === 0) return { otherYears: [], kinds: [], isExport: false };
  try {
    const columns = findColumns(names, wanted);
    // As a text, it is Project Gutenberg's own date; as an object of CSL, the date of publication.
    const isDate = wanted.year === undefined && first.some(({ issued }) => isJsonObject(issued));
    return isDate ? { ...columns, year: columns.year ?? 'issued' } : columns;
  } catch (error) {
    if (!(error instanceof NoTitleColumn)) throw error;
    throw elsewhere(first, format === 'json') ?? error;
  }
}

/** Why no record has a title, if it is elsewhere. @param isArray whether the records are in one. */
function elsewhere(
  [first = {}, ...others]: readonly JsonObject[],
  isArray: boolean,
): OperatorError | undefined {
  const members = Object.entries(first);
  const [list] = members.find(([, value]) => Array.isArray(value) && value.some(isJsonObject)) ?? [];
  if (list !== undefined && others.length === 0 && !isArray)
    return new OperatorError(
      `The records are in the list "${list}" within the file: make a file of that list, from its [ to its ].`,
    );
  const titled = members.filter(([, value]) => isJsonObject(value) && Object.keys(value).some(isTitle));
  const [[member] = []] = titled;
  if (member === undefined || titled.length > 1) return undefined;
  return new OperatorError(`The title is within "${member}" of each record: make that object the record.`);
}

/**
 * The objects at the beginning, which are read again later.
 * @returns none when the file has no records.
 */
async function readFirst(
  input: TextInput,
  splitter: ArraySplitter | LineSplitter,
): Promise<readonly JsonObject[]> {
  await input.begin(BEGINNING);
  let record = splitter.next(input);
  while (record === undefined && !splitter.ended && !input.ended) {
    await input.more();
    record = splitter.next(input);
  }
  if (record === undefined) {
    input.rewind();
    return [];
  }
  const beginning = shorten(record.text);
  const objects: JsonObject[] = [];
  try {
    for (; record !== undefined; record = splitter.next(input)) {
      const object = parse(record);
      if (object !== undefined) objects.push(object);
    }
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error; // it is reported when reading reaches it
  }
  if (objects.every((object) => Object.keys(object).length === 0))
    throw new OperatorError(
      `None of the first records is a JSON object that has a key; the first one is ${beginning}. Put each book on one line, or all between [ and ] with commas.`,
    );
  input.rewind();
  return objects;
}

function parse(record: JsonRecord): JsonObject | undefined {
  return record.isDeep ? undefined : parseJsonObject(record.text);
}

/** How the records of a file become books. */
interface HowRead {
  readonly input: TextInput;
  readonly columns: Columns;
  readonly keepIds: boolean;
}

function add(batch: OpenBatch, record: JsonRecord, { input, columns, keepIds }: HowRead): void {
  const object = parse(record);
  const refuse = (column: string | undefined, value: unknown, reason: string) => {
    const { line, text: original } = record;
    const shown = shorten(typeof value === 'object' ? JSON.stringify(value) : `${value ?? ''}`);
    batch.refused.push({ line, column, value: shown, reason, original, takesReason: object !== undefined });
  };
  if (object === undefined) {
    const isOfPython = NOT_A_NUMBER.test(record.text);
    const other = isOfPython ? 'has NaN or Infinity: write null' : 'is not a JSON object';
    refuse(undefined, record.text, record.isDeep ? 'is nested too deeply' : other);
    return;
  }
  const damageIn = (column: string | undefined) => {
    if (!input.isDamaged || !record.text.includes('\ufffd')) return undefined; // it is escaped, if at all
    const text = readAuthors(ownValue(object, column));
    return text === undefined ? undefined : input.damageIn(text, record.line);
  };
  try {
    if (!namesOf(columns).some((name) => Object.hasOwn(object, name)))
      throw new FieldError(undefined, 'has neither a title nor an author nor a year');
    const fields = readFields(object, columns);
    for (const column of [columns.title, columns.author]) {
      const damage = damageIn(column);
      if (damage !== undefined) throw new FieldError(column, damage);
    }
    const id = keepIds ? readId(object) : undefined;
    const original = id === undefined ? undefined : record.text;
    batch.books.push({ ...fields, id, line: record.line, original });
  } catch (error) {
    if (!(error instanceof FieldError)) throw error;
    const { column, reason } = error;
    refuse(column, ownValue(object, column), damageIn(column) ?? reason);
  }
}

/** @throws FieldError */
function readFields(object: JsonObject, columns: Columns): BookFields & Pick<ReadBook, 'isNewYear'> {
  const kind = columns.kinds.find((name) => isOtherThing(`${ownValue(object, name) ?? ''}`));
  if (kind !== undefined) throw new FieldError(kind, NO_BOOK);
  const title = ownValue(object, columns.title) ?? '';
  const author = readAuthors(ownValue(object, columns.author) ?? '');
  if (author === undefined) throw new FieldError(columns.author, 'is neither a string nor a list of names');
  const [year, yearColumn] = firstYear([columns.year, ...columns.otherYears], (name) => yearIn(object, name));
  const fields = readBookChanges({ title, author, year });
  if (fields !== undefined) {
    const { title = '', author = '', year = 0 } = fields;
    const texts = { title: textOf('title', title, columns), author: textOf('author', author, columns) };
    const date = `${ownValue(object, yearColumn)}`; // also of an array with one
    return { ...texts, year, isNewYear: isNewYear(date) };
  }
  if (readBookChanges({ title }) === undefined) throw new FieldError(columns.title, explainText(title));
  if (readBookChanges({ author }) === undefined) throw new FieldError(columns.author, explainText(author));
  throw new FieldError(yearColumn, 'is neither a whole number within ±(2^53−1) nor a string');
}

/**
 * @returns 0 without a year; null, which no book has, for a value of another kind.
 * @throws FieldError
 */
function yearIn(object: JsonObject, column: string | undefined): unknown {
  const year = readYearIn(ownValue(object, column));
  if (typeof year === 'string') throw new FieldError(column, year);
  return year ?? null;
}

/** @throws FieldError */
function readId(object: JsonObject): number {
  const value = ownValue(object, 'id');
  const id = typeof value === 'string' || typeof value === 'number' ? readFileId(`${value}`) : undefined;
  if (id === undefined) throw new FieldError('id', NOT_AN_ID);
  return id;
}

/** An object's own value; null counts as none. */
function ownValue(object: JsonObject, name: string | undefined): unknown {
  return name !== undefined && Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

function explainText(value: unknown): string {
  return typeof value === 'string' ? 'has a NUL character or a lone surrogate' : 'is not a string';
}
