// Owns: the books and the refused rows of one file, in a separate worker, so that a large file never holds up the
// page. It reads files with the same code as the command `import`.
// Does not: read files that hold no books: it reports why, in a sentence for people.

import { toTheEye } from '../../src/files/alike.ts';
import { keepsIds, NoTitleColumn } from '../../src/files/columns.ts';
import { asRefused, correct, correctable, refusedName } from '../../src/files/correcting.ts';
import { NotText } from '../../src/files/csv-header.ts';
import { NotUtf8 } from '../../src/files/decoding.ts';
import type { ReadBook, Reading, RefusedRecord } from '../../src/files/format.ts';
import { readBooks } from '../../src/files/reading.ts';
import { because, doubtOf, sentenceOf } from '../../src/files/reasons.ts';
import { shorten } from '../../src/files/rows.ts';
import { readYear } from '../../src/files/years.ts';
import { OperatorError } from '../../src/operator-error.ts';
import { byField, type Field } from '../elements/text.ts';
import {
  bookOf,
  type Calls,
  type Choices,
  type Corrected,
  type Figures,
  type FileBook,
  isYearless,
  keyOf,
  type Message,
  type Most,
  type RefusedRow,
  type Understood,
  type Wanted,
} from './calls.ts';

/** Refused rows that a page shows: thousands would hold it up. */
const SHOWN_REFUSED = 100;
const SHOWN_DOUBTFUL = 100;
const SHOWN_BOOKS = 20;
const SAMPLES = 3;

/** UTF-16 code units. A longer text is not to be corrected in a table. */
const LONGEST_CORRECTABLE = 2000;

/** Milliseconds between two reports of progress. */
const REPORT_EVERY = 100;

const ALIKE = 'is like another row, but for blanks or how letters are composed';
const ALIKE_HERE = 'is like a book here, but for blanks or how letters are composed';

// What a row is. A refused row that has been corrected, and then is wrong again, leaves an empty one behind.
const FRESH = 0;
const HERE = 1;
const TWICE = 2;
const EMPTY = 3;

/** A refused row, and its place among the books once it has been corrected. */
interface Refused {
  record: RefusedRecord;
  row: number | undefined;
}

class BooksOfFile implements Calls {
  /** Of the file. */
  #name = '';
  #reading: Reading | undefined;
  /** The key of each book, and what it is. A key is shorter in memory than a book, and keeps no part of the file. */
  #keys: string[] = [];
  #states: number[] = [];
  /** The first row of each key. */
  #firstRows = new Map<string, number>();
  #refused: Refused[] = [];
  /** The rows of the doubtful books, with the doubts. */
  #doubts = new Map<number, string>();
  /** The first row of those that are the same to the eye. */
  #firstAlike = new Map<string, number>();
  #short = 0;
  #newYears = 0;
  #next = 0;
  #firstRow: readonly string[] | undefined;
  #firstLine: number | undefined;
  /** How the rows were found. */
  #layout = '';

  async read(file: File, choices: Choices): Promise<Understood> {
    const [one, two] = new Uint8Array(await asChosen(file.slice(0, 2).arrayBuffer()));
    if (one === 0xff && two === 0xfe) return this.#readAs(file, choices, 'UTF-16');
    if (one === 0xfe && two === 0xff) return this.#readAs(file, choices, 'UTF-16');
    try {
      return await this.#readAs(file, choices, 'UTF-8');
    } catch (error) {
      if (!(error instanceof NotUtf8)) throw error;
      return this.#readAs(file, choices, 'Windows-1252');
    }
  }

  async #readAs(file: File, choices: Choices, encoding: Understood['encoding']): Promise<Understood> {
    const layout = `${choices.fromLine} ${choices.delimiter}`;
    if (layout !== this.#layout) [this.#firstRow, this.#firstLine] = [undefined, undefined];
    this.#layout = layout;
    this.#name = file.name;
    this.#keys = [];
    this.#states = [];
    this.#firstRows = new Map();
    this.#refused = [];
    this.#doubts = new Map();
    this.#firstAlike = new Map();
    this.#short = 0;
    this.#newYears = 0;
    this.#next = 0;
    this.#reading = undefined;
    const label = encoding === 'Windows-1252' ? encoding : undefined;
    const { hasHeader } = choices;
    const options = { ...choices, name: file.name, encoding: label, ids: 'new' } as const;
    let reading: Reading;
    try {
      reading = await readBooks(piecesOf(file), options);
    } catch (error) {
      if (!(error instanceof NoTitleColumn)) throw error;
      const { names, line } = error;
      if (line !== undefined) [this.#firstRow, this.#firstLine] = [names, line];
      // No column is called 1815: the first row is a book.
      if (line !== undefined && hasHeader === undefined && names.some(isYear))
        return this.#readAs(file, { ...choices, hasHeader: false }, encoding);
      return this.#understood({ encoding, names, hasHeader });
    }
    this.#reading = reading;
    let fault: string | undefined;
    try {
      for await (const { books, refused } of reading.batches) {
        this.#short += books.filter(({ isShort }) => isShort).length;
        this.#newYears += books.filter(({ isNewYear }) => isNewYear).length;
        for (const book of books) this.#add(book);
        for (const record of refused) this.#refused.push({ record, row: undefined });
      }
    } catch (error) {
      if (!(error instanceof OperatorError) || error instanceof NotUtf8 || error instanceof NotText)
        throw error;
      fault = error.message;
    }
    return this.#understood({ encoding, names: reading.names, hasHeader, reading, fault });
  }

  #understood({
    encoding,
    names,
    hasHeader,
    reading,
    fault,
  }: {
    readonly encoding: Understood['encoding'];
    readonly names: readonly string[];
    readonly hasHeader: boolean | undefined;
    readonly reading?: Reading;
    readonly fault?: string | undefined;
  }): Understood {
    return {
      format: reading?.format.name ?? 'csv',
      delimiter: reading?.delimiter,
      encoding,
      names,
      firstRow: this.#firstRow,
      firstLine: this.#firstLine,
      above: reading?.above?.trim() ?? '',
      short: this.#short,
      newYears: this.#newYears,
      hasHeader,
      columns: reading?.columns,
      hasIds: keepsIds(names, undefined),
      rows: this.#keys.length + this.#refused.length,
      samples: byField((field) => this.#samplesOf(field)),
      first: this.#keys.slice(0, SHOWN_BOOKS).map(bookOf),
      refused: this.#refused.slice(0, SHOWN_REFUSED).map(({ record }) => this.#shown(record)),
      figures: this.figures(),
      fault,
    };
  }

  async correct(place: number, text: string): Promise<Corrected> {
    const refused = this.#refused[place] as Refused;
    const read = await correct(refused.record, text, this.#reading as Reading);
    if (refused.row !== undefined) this.#empty(refused.row);
    refused.row = undefined;
    let book: FileBook | undefined;
    if ('reason' in read) {
      refused.record = read;
    } else {
      refused.row = this.#add(read);
      book = bookOf(this.#keys[refused.row] as string);
    }
    return { book, row: this.#shown(refused.record), figures: this.figures() };
  }

  beginComparison(): void {
    this.#states = this.#states.map((state) => (state === HERE ? FRESH : state));
    for (const [row, doubt] of this.#doubts) if (doubt === ALIKE_HERE) this.#doubts.delete(row);
  }

  compare(keys: readonly string[]): void {
    for (const key of keys) {
      const row = this.#firstRows.get(key);
      if (row !== undefined) this.#states[row] = HERE;
      const alike = this.#firstAlike.get(alikeKeyOf(key));
      if (alike === undefined || this.#keys[alike] === key || this.#doubts.has(alike)) continue;
      this.#doubts.set(alike, ALIKE_HERE);
    }
  }

  figures(): Figures {
    const counts = [0, 0, 0, 0];
    const yearless = { fresh: 0, all: 0 };
    this.#states.forEach((state, row) => {
      counts[state] = (counts[state] ?? 0) + 1;
      if (state === EMPTY || !isYearless(this.#keys[row] as string)) return;
      yearless.all += 1;
      if (state === FRESH) yearless.fresh += 1;
    });
    const doubtful = [...this.#doubts].filter(([row]) => this.#states[row] === FRESH);
    const first = doubtful.slice(0, SHOWN_DOUBTFUL).map(([row, doubt]) => {
      return { book: bookOf(this.#keys[row] as string), doubt };
    });
    const [fresh = 0, here = 0, twice = 0] = counts;
    const refused = this.#refused.filter(({ row }) => row === undefined).length;
    return {
      ...{ fresh, here, twice, refused, yearless },
      doubtful: { fresh: doubtful.length, all: this.#doubts.size, first },
    };
  }

  next({ isAll, isDoubtfulToo }: Wanted, most: Most): readonly FileBook[] {
    const books: FileBook[] = [];
    let text = 0;
    for (; this.#next < this.#keys.length && books.length < most.books; this.#next += 1) {
      const state = this.#states[this.#next];
      if (state === EMPTY || !(isAll || state === FRESH)) continue;
      if (!isDoubtfulToo && this.#doubts.has(this.#next)) continue;
      const key = this.#keys[this.#next] as string;
      text += key.length;
      if (text > most.text && books.length > 0) break;
      books.push(bookOf(key));
    }
    return books;
  }

  refusedFile(): File {
    const reading = this.#reading as Reading;
    const left = this.#refused.filter(({ row }) => row === undefined);
    const { before, between, after } = reading.rejects;
    const records = left.map(({ record }) => asRefused(record, reading)).join(between);
    return new File([before + records + after], refusedName(this.#name, reading.format), {
      type: reading.format.type,
    });
  }

  /** @returns the row of the book. */
  #add(book: ReadBook): number {
    const key = keyOf(book);
    const row = this.#keys.push(key) - 1;
    this.#states.push(this.#firstRows.has(key) ? TWICE : FRESH);
    const alikeKey = alikeKeyOf(key);
    const alike = this.#firstAlike.get(alikeKey);
    if (alike === undefined) this.#firstAlike.set(alikeKey, row);
    const isAlike = alike !== undefined && this.#keys[alike] !== key;
    const code = doubtOf(bookOf(key));
    const doubt = code ? sentenceOf(because(code)) : isAlike ? ALIKE : undefined;
    if (doubt !== undefined) this.#doubts.set(row, doubt);
    if (!this.#firstRows.has(key)) this.#firstRows.set(key, row);
    return row;
  }

  /** Removes a book; the next row that equals it replaces it. */
  #empty(row: number): void {
    const key = this.#keys[row] as string;
    const state = this.#states[row] as number;
    this.#states[row] = EMPTY;
    this.#doubts.delete(row);
    if (this.#firstAlike.get(alikeKeyOf(key)) === row) this.#firstAlike.delete(alikeKeyOf(key));
    if (this.#firstRows.get(key) !== row) return;
    const other = this.#keys.findIndex((found, at) => found === key && this.#states[at] === TWICE);
    if (other === -1) {
      this.#firstRows.delete(key);
    } else {
      this.#firstRows.set(key, other);
      this.#states[other] = state;
    }
  }

  #shown(record: RefusedRecord): RefusedRow {
    const { column, text } = correctable(record, this.#reading as Reading);
    const { line, reason } = record;
    return {
      line,
      column,
      text: text.length > LONGEST_CORRECTABLE ? undefined : text,
      reason: sentenceOf(reason),
    };
  }

  #samplesOf(field: Field): (string | number)[] {
    const values = this.#keys.slice(0, SHOWN_BOOKS).map((key) => bookOf(key)[field]);
    const column = this.#reading?.columns[field];
    if (column !== undefined) {
      for (const { record } of this.#refused.slice(0, SHOWN_BOOKS)) {
        values.push(this.#reading?.valueIn(record.original, column) ?? '');
      }
    }
    const there = new Set(values.filter((value) => value !== '' && value !== 0));
    return [...there].slice(0, SAMPLES).map((value) => (typeof value === 'string' ? shorten(value) : value));
  }
}

/** A key of the books that are the same to the eye. */
function alikeKeyOf(key: string): string {
  return key.split('\0').map(toTheEye).join('\0');
}

function isYear(text: string): boolean {
  const year = readYear(text);
  return typeof year === 'number' && year !== 0;
}

const CHANGED = 'The file was saved again after it was chosen, or it cannot be read. Choose it again.';

/** A browser reads a file only as it was when a person chose it (File API, section 4). */
class NotAsChosen extends Error {}

/** @throws NotAsChosen */
async function asChosen<Part>(reading: Promise<Part>): Promise<Part> {
  try {
    return await reading;
  } catch (error) {
    const isGone = error instanceof Error && error.name === 'NotFoundError';
    throw new NotAsChosen(
      isGone ? 'The file was moved, renamed or deleted after it was chosen. Choose it again.' : CHANGED,
    );
  }
}

/** Not every browser can iterate over a stream. */
async function* piecesOf(file: File): AsyncGenerator<Uint8Array, void, void> {
  const reader = file.stream().getReader();
  let bytes = 0;
  let reported = performance.now();
  try {
    for (;;) {
      const { done, value } = await asChosen(reader.read());
      if (done && bytes !== file.size) throw new NotAsChosen(CHANGED);
      if (done) return;
      bytes += value.length;
      if (performance.now() - reported > REPORT_EVERY) {
        reported = performance.now();
        port.postMessage({ bytes });
      }
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {}); // the file has been read, or cannot be
  }
}

/** The message for the person at the page. */
function complaintOf(error: unknown): string {
  if (error instanceof NotText) {
    return 'This file is not text. If it is a spreadsheet, save it as CSV in UTF-8, and choose that file.';
  }
  if (error instanceof OperatorError || error instanceof NotAsChosen) return error.message;
  return `The file cannot be read: ${error instanceof Error ? error.message : error}`;
}

/** The worker's own global object, which the library of the compiler does not have. */
interface Port {
  postMessage(message: Message): void;
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
}

const port = globalThis as unknown as Port;
const booksOfFile = new BooksOfFile();

/** One call after the other: a correction is in place before the books are stored. */
let last: Promise<void> = Promise.resolve();

port.addEventListener('message', ({ data: { name, args } }) => {
  last = last.then(async () => {
    try {
      const method = booksOfFile[name as keyof Calls] as (...args: readonly unknown[]) => unknown;
      port.postMessage({ result: await method.apply(booksOfFile, args) });
    } catch (error) {
      port.postMessage({ complaint: complaintOf(error) });
    }
  });
});
