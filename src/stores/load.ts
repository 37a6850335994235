// Owns: the interface with which a store takes the rows of a file: it puts them aside, compares them with its books, and stores those
// that are new. A load has one caller at a time. Every failure is an Error whose message is the reason; clients never see it.

import type { BookFields } from '../books/book.ts';

/** Books that were stored, or in a dry run would be. */
export interface StoredBooks {
  readonly count: number;
  /** How many of them lack a field, by the name of the field. */
  readonly lacking: Readonly<Record<keyof BookFields, number>>;
}

/** Which rows become books. */
export interface LoadRules {
  /** Whether books get the ids of their rows. A row is left out if the book with its id, or an earlier row with it, equals it. */
  readonly keepsIds: boolean;
  /** Without ids: whether rows are left out that equal a book or an earlier row in title, author and year. */
  readonly skipsEqual: boolean;
  /** Whether rows with a doubt are left out. */
  readonly skipsDoubtful: boolean;
}

export interface LoadRow extends BookFields {
  readonly line: number;
  /** With `keepsIds`. */
  readonly id: number | undefined;
  /** As it stands in the file; kept with `keepsIds`. */
  readonly original: string | undefined;
  /** A code. */
  readonly doubt: string | undefined;
}

/** Which of the rows become books, and how many do not. */
export interface Comparison {
  readonly fresh: StoredBooks;
  /** New rows with a doubt: they are among `fresh`, unless they are left out. */
  readonly doubtful: number;
  /** Rows that equal a book. */
  readonly here: number;
  /** Rows that equal an earlier row, and no book. */
  readonly repeated: number;
  /** Rows whose ids belong to other books, or to other rows before them. */
  readonly taken: number;
}

export interface Sample extends BookFields {
  readonly line: number;
  readonly doubt: string | null;
}

/** Rows of a file: the new ones without a doubt, those with one, and those that equal a book or an earlier row. */
export interface Samples {
  readonly fresh: readonly Sample[];
  readonly doubtful: readonly Sample[];
  readonly here: readonly Sample[];
}

/** A row whose id belongs to another book. */
export interface TakenRow {
  readonly line: number;
  readonly id: number;
  /** The beginning of the other book's title. */
  readonly title: string;
  readonly original: string;
}

/** An import that stores rows. */
export interface ImportWork {
  /** Of the file, for people. */
  readonly name: string;
  readonly fingerprint: string;
  /** A name of the process that no other has. */
  readonly owner: string;
  /** Of the import, if this process has started it. Otherwise, an interrupted one with this fingerprint is completed, or a new one begins. */
  readonly number: number | undefined;
  /** The report that is kept. @param isDone whether all is stored. */
  report(isDone: boolean): unknown;
}

export interface Load {
  add(rows: readonly LoadRow[]): Promise<void>;

  /** Called once, after all rows were added. */
  compare(signal: AbortSignal): Promise<Comparison>;

  /** The first rows of each kind, at most as many. */
  samples(most: number): Promise<Samples>;

  /** The rows whose ids are taken, ascending by line. */
  taken(): AsyncIterable<readonly TakenRow[]>;

  /**
   * Stores the new rows, in their order, as one event of the log. Called once, after `compare`. If it fails, the books of which it was
   * told are durable.
   * @param onStored called each time that more books are durable: with the number of the import and how many books it has stored, also
   *   before it was interrupted.
   * @throws NoLongerOpen; UnknownOutcome if it cannot be said whether more books are stored.
   */
  store(
    work: ImportWork,
    signal: AbortSignal,
    onStored: (number: number, books: number) => void,
  ): Promise<void>;

  /** Rows that are not stored are forgotten. */
  close(): Promise<void>;
}
