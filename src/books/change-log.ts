// Owns: the interface of the log of changes: what is read from it, and what an undo writes.

import type { Book } from './book.ts';
import type { IdRange, Ids } from './ids.ts';
import type { KeptImports, KeptImportsReader } from './kept-imports.ts';
import type { KnownRequest, Once } from './once.ts';

/** A book that has changed. */
export interface Change {
  readonly id: number;
  /** When its latest change was noted: milliseconds since 1970. */
  readonly at: number;
  /** As it is now; undefined if it is gone. */
  readonly book: Book | undefined;
}

/** Each book once. Without any, nothing has changed so far. */
export interface PageOfChanges {
  readonly changes: readonly Change[];
  /** Where the next ones begin: values that JSON has, which mean something to the store only. */
  readonly cursor: readonly unknown[];
}

/** A state of a book. */
export interface State {
  /**
   * The number of the change that led to it; null if that was before the log, or what is kept of it, or if many books were stored
   * together.
   */
  readonly change: number | null;
  /** When that change was noted, or the log begins: milliseconds since 1970. */
  readonly at: number;
  /** Undefined if the book was gone then. */
  readonly book: Book | undefined;
}

/** States of a book. The log knows of none if there never was such a book. */
export interface States {
  readonly states: readonly State[];
  /** The number after whose state older ones follow; undefined if none do. */
  readonly next: number | undefined;
}

/** Single changes of one book each that follow each other: when the first and the last one were noted, in milliseconds since 1970. */
export interface Run {
  readonly from: number;
  readonly until: number;
}

/** Names an event (rules H7 to H9): an import or an undo by its number. */
export type EventKey = number | Run;

/**
 * Which changes are taken back: that of a number, which may be an import or an undo as a whole; those of an event; all since a
 * time, in milliseconds since 1970, without those that an undo has made.
 */
export type UndoRequest =
  | { readonly change: number }
  | { readonly event: EventKey }
  | { readonly since: number };

/** Why nothing was taken back: the log has no such change; or it begins later. */
export type NotUndone = 'unknown' | 'beyond';

/**
 * Changes that are taken back: the parts of an import or an undo; a run; the change of one book; or all between a time, in
 * milliseconds since 1970, and a position of the store, without those of undos.
 */
export type Selection =
  | { readonly event: number }
  | Run
  | { readonly change: number; readonly book: number }
  | { readonly since: number; readonly before?: number };

/** Something that changes many books at once. */
export interface CatalogueEvent {
  /** Numbered like a change. */
  readonly number: number;
  readonly kind: 'import' | 'undo';
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Of an import, its file. */
  readonly name: string | null;
  /** How many books it has changed so far. */
  readonly books: number;
  /** What it is to do and how far it is: values that JSON has. */
  readonly work: unknown;
}

/** A change of one book, or of new books that were stored together, that is no part of an import or an undo. */
export interface SingleChange extends IdRange {
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** A book before and after selected changes; undefined if there was none. */
export interface ChangedBook {
  readonly id: number;
  readonly before: Book | undefined;
  readonly book: Book | undefined;
}

/** A book with the changes of it since the first one that is taken back. */
export interface PastBook {
  readonly id: number;
  /** In their order, with the book before each: equal texts for equal states; null if there was none. */
  readonly changes: readonly {
    readonly number: number;
    readonly state: string | null;
    readonly isSelected: boolean;
  }[];
  readonly present: string | null;
  /** Bytes of the texts that were looked through. */
  readonly bytes: number;
}

/** A book that becomes what it was before a change. */
export interface Restored {
  readonly id: number;
  readonly change: number;
  /** Whether it was not there then; and whether it is not there now. */
  readonly isRemoved: boolean;
  readonly isNew: boolean;
}

/** Reads which events the log has, and their books. */
export interface EventsReader {
  /** Imports and undos that have changed books, the newest first. @param before the number of one: those before it. */
  newest(before: number | undefined, most: number): Promise<readonly CatalogueEvent[]>;
  /** The newest undos, also those that have changed no book yet. */
  undos(most: number): Promise<readonly CatalogueEvent[]>;
  /** The newest single changes before a time, the newest first. */
  singleChanges(before: number, most: number): Promise<readonly SingleChange[]>;
  /**
   * When the first of the single changes was noted that lead to one at a time, each less than `gap` milliseconds before the next one.
   * @param earliest milliseconds since 1970; earlier ones do not count.
   */
  beginningOfRun(at: number, earliest: number, gap: number): Promise<number>;
  /** The next ids after this one of books that the changes are about, ascending; at least one if there are any. */
  idsAfter(selection: Selection, after: number, most: number): Promise<readonly number[]>;
  /** What the changes did to the first of these books, which ascend: at least one, and none after heavy ones. */
  changed(selection: Selection, ids: readonly number[]): Promise<readonly ChangedBook[]>;
}

/** Reads the log of changes. */
export interface LogReader {
  readonly imports: KeptImportsReader;
  readonly events: EventsReader;
  known(key: string): Promise<KnownRequest | undefined>;
  /** Whether it has all changes since a time: milliseconds since 1970. */
  reaches(since: number): Promise<boolean>;
  /** When what it knows begins: milliseconds since 1970. */
  began(): Promise<number>;
  /** The book whose change has a number; undefined if it has no such change. */
  bookOf(change: number): Promise<number | undefined>;
  /** The books that the changes are about. */
  booksOf(selection: Selection): Promise<Ids>;
  event(number: number): Promise<CatalogueEvent | undefined>;
  /** The number of the newest change of a book; undefined if the log has none. */
  newestChange(id: number): Promise<number | undefined>;
  /** Looks through the past of the first of these books, at least one. Of a writer, nobody else changes them then. */
  past(ids: readonly number[], selection: Selection): Promise<readonly PastBook[]>;
}

/** Writes to the log and to books in one transaction. The books that it writes between the beginning and the end of an event are a part of it. */
export interface LogWriter extends LogReader {
  readonly imports: KeptImports;
  /** Waits for other requests with the key. @returns whether this one has it now. */
  claim(once: Once): Promise<boolean>;
  keep(key: string, ids: readonly number[]): Promise<void>;
  /**
   * @param number of an import that has one.
   * @returns its number, and the position of the store that all earlier changes are before.
   */
  begin(
    kind: CatalogueEvent['kind'],
    name: string | null,
    number?: number,
  ): Promise<{ readonly number: number; readonly before: number }>;
  /** Continues an event, after others who do. */
  resume(number: number): Promise<CatalogueEvent | undefined>;
  /** @param books that it has changed since it was started or continued. */
  end(number: number, books: number, work?: unknown): Promise<void>;
  restore(books: readonly Restored[]): Promise<void>;
  /** Removes a book, and from the log all that it was. */
  forget(id: number): Promise<void>;
}

/** The log of a store, however it is opened. The deadlines are on the clock of `performance.now()`; commands have none. */
export interface ChangeLog {
  /** Reads one state of the log, without holding up those who write. */
  read<Result>(read: (log: LogReader) => Promise<Result>, deadline?: number): Promise<Result>;

  /** Writes in one transaction, which happens as a whole or not at all. @param write may be called again. */
  write<Result>(write: (log: LogWriter) => Promise<Result>, deadline?: number): Promise<Result>;
}

/** The log of a store that is served. */
export interface ServedLog extends ChangeLog {
  /**
   * The changes after those of a page, of any program (rules H1 and H2): no more books than `most`, and none after heavy ones.
   * @param cursor of that page; undefined to begin with all books, `now` with later changes.
   * @returns `gone` if the log does not have all that follows, or the cursor is another store's.
   */
  changes(cursor: unknown, most: number, deadline: number): Promise<PageOfChanges | 'gone'>;

  /**
   * States of a book, the newest first (rule H4): no more than `most`, and none after heavy ones.
   * @param before the number of a change: the states before it. Undefined to begin with the present one.
   */
  states(id: number, before: number | undefined, most: number, deadline: number): Promise<States>;

  /**
   * Looks for changes of any program, until the returned function is called.
   * @param onChange called after each change, and perhaps without one.
   */
  watch(onChange: () => void): () => void;
}
