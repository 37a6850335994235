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
  keepsIds,
  NO_BOOK,
  NoTitleColumn,
  namesOf,
  type WantedColumns,
} from './columns.ts';
import { elsewhere, unfinished } from './json-shape.ts';
import { ArraySplitter, type JsonRecord, LineSplitter } from './json-splitter.ts';
import { readAuthors, readYearIn } from './json-values.ts';
import type { OpenBatch, ReadBook, Reading, ReadingOptions } from './rows.ts';
import { isFull, NOT_AN_ID, readBatches, readFileId, shorten, textOf } from './rows.ts';
import { TextInput } from './text-input.ts';
import { isNewYear } from './years.ts';

/**
 * Characters of the file whose objects determine the columns: about 8,000 books. Programs leave out keys that have no value,
 * and books without a year or an author may come first.
 */
const BEGINNING = 1024 * 1024;

/** Python writes them for a number that is missing. */
const NOT_A_NUMBER = /"\s*:\s*-?(?:NaN|Infinity)\s*[,}]/;

const WITHOUT_BOOK = 'has neither a title nor an author nor a year';

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
    const records = new JsonRecords(from, splitter, columns, keepIds);
    return readBatches(from, (batch) => records.fill(batch));
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

const NO_COLUMNS: Columns = {
  title: undefined,
  author: undefined,
  year: undefined,
  otherYears: [],
  kinds: [],
  isExport: false,
};

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
  if (first.length === 0) return NO_COLUMNS;
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
  const fault = parse(record) === undefined && splitter instanceof LineSplitter;
  const reason = fault ? unfinished(record.text, record.line) : undefined;
  if (reason !== undefined) throw reason;
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
      `None of the first records is a JSON object that has a key; the first one is ${beginning}.`,
    );
  input.rewind();
  return objects;
}

function parse(record: JsonRecord): JsonObject | undefined {
  return record.isDeep ? undefined : parseJsonObject(record.text);
}

class JsonRecords {
  readonly #input: TextInput;
  readonly #splitter: ArraySplitter | LineSplitter;
  readonly #columns: Columns;
  readonly #keepIds: boolean;

  constructor(input: TextInput, splitter: ArraySplitter | LineSplitter, columns: Columns, keepIds: boolean) {
    this.#input = input;
    this.#splitter = splitter;
    this.#columns = columns;
    this.#keepIds = keepIds;
  }

  /** @returns false when it needs more text, or there is no more. */
  fill(batch: OpenBatch): boolean {
    while (!isFull(batch)) {
      const record = this.#splitter.next(this.#input);
      if (record === undefined) return false;
      batch.size += record.text.length;
      this.#add(batch, record);
    }
    return true;
  }

  #add(batch: OpenBatch, record: JsonRecord): void {
    const object = parse(record);
    if (object === undefined) {
      const other = NOT_A_NUMBER.test(record.text)
        ? 'has NaN or Infinity: write null'
        : 'is not a JSON object';
      const reason = record.isDeep ? 'is nested too deeply' : other;
      this.#refuse(batch, record, undefined, record.text, reason);
      return;
    }
    const columns = this.#columns;
    try {
      if (!namesOf(columns).some((name) => Object.hasOwn(object, name)))
        throw new FieldError(undefined, WITHOUT_BOOK);
      const fields = readFields(object, columns);
      const isDamaged = (name: string | undefined) =>
        this.#damageIn(ownValue(object, name), record) !== undefined;
      const damaged = [columns.title, columns.author].find(isDamaged);
      if (damaged !== undefined) throw new FieldError(damaged, '');
      const id = this.#keepIds ? readId(object) : undefined;
      const original = id === undefined ? undefined : record.text;
      batch.books.push({ ...fields, id, line: record.line, original });
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      const value = ownValue(object, error.column);
      this.#refuse(batch, record, error.column, value, this.#damageIn(value, record) ?? error.reason);
    }
  }

  #damageIn(value: unknown, { text, line }: JsonRecord): string | undefined {
    if (!this.#input.isDamaged || !text.includes('\ufffd')) return undefined; // it is escaped, if at all
    const joined = readAuthors(value);
    return joined === undefined ? undefined : this.#input.damageIn(joined, line);
  }

  #refuse(
    batch: OpenBatch,
    record: JsonRecord,
    column: string | undefined,
    value: unknown,
    reason: string,
  ): void {
    const { line, text: original } = record;
    const takesReason = parse(record) !== undefined;
    const shown = shorten(typeof value === 'object' ? JSON.stringify(value) : `${value ?? ''}`);
    batch.refused.push({ line, column, value: shown, reason, original, takesReason });
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
