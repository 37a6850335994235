// Owns: the messages between the page and the worker that reads a file, and which books are equal.

import { BOOK_FIELDS, type BookFields } from '../../src/books/book.ts';
import type { Columns, WantedColumns } from '../../src/files/columns.ts';
import { FIELDS, type Field, trimmed } from '../elements/text.ts';

/** A book as the file has it. */
export type FileBook = BookFields;

/** What a person has said of a file. */
export interface Choices {
  readonly columns: WantedColumns;
  /** Whether its first row has the names of the columns. */
  readonly hasHeader?: boolean | undefined;
  readonly delimiter?: string | undefined;
  /** The first line that is not left out. */
  readonly fromLine?: number | undefined;
}

/** How a file was understood. */
export interface Understood {
  /** Its name. */
  readonly format: string;
  /** Of CSV. */
  readonly delimiter: string | undefined;
  readonly encoding: 'UTF-8' | 'UTF-16' | 'Windows-1252';
  readonly names: readonly string[];
  /** The first row of a table without a column that is known to be the title: it may be a book. */
  readonly firstRow: readonly string[] | undefined;
  /** Its line. */
  readonly firstLine: number | undefined;
  /** The text above the header, which was left out. */
  readonly above: string;
  /** Rows that end before a column in use. */
  readonly short: number;
  /** Books of a year that began on 31 December in UTC, as the file has it. */
  readonly newYears: number;
  /** Whether the first row has the names of the columns; undefined if a person must say so. */
  readonly hasHeader: boolean | undefined;
  /** Undefined if no column is known to be the title: then the file was not read. */
  readonly columns: Columns | undefined;
  /** Whether the file has ids that would be kept if the command imported it. */
  readonly hasIds: boolean;
  readonly rows: number;
  /** The first values of each column, as the books will have them; those of refused rows as they stand. */
  readonly samples: Readonly<Record<Field, readonly (string | number)[]>>;
  readonly first: readonly FileBook[];
  /** The first of the refused rows. */
  readonly refused: readonly RefusedRow[];
  readonly figures: Figures;
  /** Why the rest of the file could not be read. */
  readonly fault: string | undefined;
}

/** Which rows a person wants to import, of those that are not refused. */
export interface Wanted {
  /** Including those that equal another one. */
  readonly isAll: boolean;
  readonly isDoubtfulToo: boolean;
}

/** A book that is stored only if a person has looked at it. */
export interface DoubtfulBook {
  readonly book: FileBook;
  readonly doubt: string;
}

/** Numbers of rows. The first three make up all rows that are not refused. */
export interface Figures {
  readonly fresh: number;
  /** They equal a book of the catalogue. */
  readonly here: number;
  /** They equal an earlier row. */
  readonly twice: number;
  readonly refused: number;
  /** Fresh ones, and all that are not refused, without a year. */
  readonly yearless: Readonly<Record<'fresh' | 'all', number>>;
  /** Of the fresh rows, and of all that are not refused; and the first doubtful ones of the fresh rows. */
  readonly doubtful: Readonly<Record<'fresh' | 'all', number>> & { readonly first: readonly DoubtfulBook[] };
}

/** How many of the rows are wanted. */
export function countOf({ fresh, here, twice, doubtful }: Figures, { isAll, isDoubtfulToo }: Wanted): number {
  const left = isAll ? doubtful.all : doubtful.fresh;
  return (isAll ? fresh + here + twice : fresh) - (isDoubtfulToo ? 0 : left);
}

/** A refused row as it is shown, and corrected. */
export interface RefusedRow {
  readonly line: number;
  /** Undefined if the whole row is wrong. */
  readonly column: string | undefined;
  /** What a person can change: the value of the column, or the whole row; undefined if it is too long for that. */
  readonly text: string | undefined;
  readonly reason: string;
}

/** The result of a correction: the book, or what is still wrong. */
export interface Corrected {
  readonly book: FileBook | undefined;
  readonly row: RefusedRow;
  readonly figures: Figures;
}

/** What the page asks of the worker. */
export interface Calls {
  /** Reads the file, from its beginning. */
  read(file: File, choices: Choices): Promise<Understood>;
  /** Reads a refused row again, by its place among them. */
  correct(place: number, text: string): Promise<Corrected>;
  /** Forgets which rows equal a book of the catalogue. */
  beginComparison(): void;
  /** Notes which rows equal one of these books of the catalogue. */
  compare(keys: readonly string[]): void;
  figures(): Figures;
  /** The rows of the next books to store, ending with an empty array. */
  next(wanted: Wanted, most: Most): readonly FileBook[];
  /** The file of the refused rows that are not corrected. */
  refusedFile(): File;
}

/** How much a request may have. */
export interface Most {
  readonly books: number;
  /** UTF-16 code units of their texts; one book may have more. */
  readonly text: number;
}

/** Its answers: the result of a call, its complaint for people, or how many bytes of the file it has read. */
export type Message =
  | { readonly result: unknown }
  | { readonly complaint: string }
  | { readonly bytes: number };

/** Books are equal if their keys are: no text has a NUL character (rule 4), and blanks around a text do not count. */
export function keyOf(book: FileBook): string {
  return FIELDS.map((field) => {
    const value = book[field];
    return typeof value === 'string' ? trimmed(value) : value;
  }).join('\0');
}

/** The book of a key. */
export function bookOf(key: string): FileBook {
  const values = key.split('\0');
  const fields = FIELDS.map((field, at) => {
    return [field, BOOK_FIELDS[field].type === 'string' ? values[at] : Number(values[at])];
  });
  return Object.fromEntries(fields) as FileBook;
}

const YEAR = FIELDS.indexOf('year');

/** Whether the book of a key has no year. */
export function isYearless(key: string): boolean {
  return key.split('\0')[YEAR] === '0';
}
