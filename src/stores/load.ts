// Owns: the interface with which a store takes the rows of a file: it puts them aside, compares them with its books, and stores those
// that are new, or change a book. A load has one caller at a time. Every failure is an Error whose message is the reason; clients never
// see it.

import type { BookFields } from '../books/book.ts';

/** Books that were stored, or in a dry run would be. */
export interface StoredBooks {
  readonly count: number;
  /** How many of them lack a field, by the name of the field. */
  readonly lacking: Readonly<Record<keyof BookFields, number>>;
}

/**
 * Which rows become books, or change one. A row with the id of a book is left out if it equals the book, and changes it if it has the
 * book's present tag. If the log has its tag from before, the book was changed since, and stays. Otherwise they are in conflict.
 */
export interface LoadRules {
  /** The fields that the file has. A row with an id has no say about the others. */
  readonly fields: readonly (keyof BookFields)[];
  /** Whether rows without an id are left out that equal a book or an earlier row in title, author and year. */
  readonly skipsEqual: boolean;
  /** Whether new rows with a doubt are left out. */
  readonly skipsDoubtful: boolean;
  /**
   * Of rows in conflict: whether they are left out, change the books with their ids, or are new under other ids. Then, those whose
   * books have been removed since are new as well.
   */
  readonly onConflict: 'refuse' | 'change' | 'add';
  /** Whether the log says which tags books had. */
  readonly hasHistory: boolean;
}

export interface LoadRow extends BookFields {
  readonly line: number;
  /** Undefined if it has none that counts. */
  readonly id: number | undefined;
  /** The tag of the book that it was exported from; '' if it has none; undefined if it lacks a value, so that it changes no book. */
  readonly tag: string | undefined;
  /** As it stands in the file; kept with an id. */
  readonly original: string | undefined;
  /** A code. */
  readonly doubt: string | undefined;
}

/** How many of the rows become books, change one, or do neither. */
export interface Comparison {
  readonly fresh: StoredBooks;
  /** New rows with a doubt: they are among `fresh`, unless they are left out. */
  readonly doubtful: number;
  /** Rows that equal a book. */
  readonly here: number;
  /** Rows that equal an earlier row. */
  readonly repeated: number;
  /** Rows that change a book. */
  readonly changed: number;
  /** Rows whose books have been changed or removed since; undefined if the log does not say. */
  readonly changedSince: number | undefined;
  /** Rows in conflict with a book. */
  readonly conflicts: number;
  /** Books whose ids no row has; undefined if no row has an id. */
  readonly absent: number | undefined;
}

export interface Sample extends BookFields {
  readonly line: number;
  readonly doubt: string | null;
}

/** Beginnings of the values that differ from those of the row. */
export type Differing = { readonly [Name in keyof BookFields]?: BookFields[Name] };

export interface ChangedSample extends Sample {
  readonly id: number;
  /** What the book has now. */
  readonly before: Differing;
}

/**
 * Rows of a file: the new ones without a doubt, those with one, those that equal a book or an earlier row, and those that change a
 * book.
 */
export interface Samples {
  readonly fresh: readonly Sample[];
  readonly doubtful: readonly Sample[];
  readonly here: readonly Sample[];
  readonly changed: readonly ChangedSample[];
}

/**
 * Why a row with an id is left: as `LoadRules` has it; it lacks a value; an earlier row has the id; or the book was changed or removed
 * during the import.
 */
export type WhyLeft = 'changedSince' | 'conflict' | 'lacking' | 'twice' | 'changedMeanwhile';

/** What an import has done, without what it had done before an interruption. */
export interface Made {
  readonly added: number;
  readonly changed: number;
}

export interface LeftRow {
  readonly line: number;
  readonly id: number;
  /** As in `LoadRow`. */
  readonly rowTag: string | null;
  readonly original: string;
  readonly why: WhyLeft;
  /** The present tag of the book with the id; null without such a book. */
  readonly tag: string | null;
  /** What that book, or the earlier row, has. */
  readonly here: Differing;
  /** What the row has in place of it. */
  readonly own: Differing;
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
  /** The report that is kept. Within the last transaction, `left` may be called. @param isDone whether all is stored. */
  report(isDone: boolean): Promise<unknown>;
}

export interface Load {
  add(rows: readonly LoadRow[]): Promise<void>;

  /** Called once, after all rows were added. */
  compare(signal: AbortSignal): Promise<Comparison>;

  /** The first rows of each kind, at most as many. */
  samples(most: number): Promise<Samples>;

  /** The rows that were left, ascending by line. @param why for these reasons. */
  left(why: readonly WhyLeft[]): AsyncIterable<readonly LeftRow[]>;

  /**
   * Stores the new rows and the changes, in the order of the rows, as one event of the log. Called once, after `compare`. If it fails,
   * the books of which it was told are durable.
   * @param onStored called each time that more books are durable: with the number of the import and how many books it has stored, also
   *   before it was interrupted.
   * @throws NoLongerOpen; UnknownOutcome if it cannot be said whether more books are stored.
   */
  store(
    work: ImportWork,
    signal: AbortSignal,
    onStored: (number: number, books: number) => void,
  ): Promise<Made>;

  /** Rows that are not stored are forgotten. */
  close(): Promise<void>;
}
