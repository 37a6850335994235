// Owns: the interface of a store for import, export and copy, which move many books instead of serving them. It has one
// caller at a time. Every failure is an Error whose message is the reason; clients never see it.

import type { Book } from '../books/book.ts';
import type { ChangeLog } from '../books/change-log.ts';
import type { Load, LoadRules } from './load.ts';

/** `read` never changes a store, which may be read-only; `write` creates or updates its structure. */
export type BulkMode = 'read' | 'write';

/** A commit has failed, and the work of its transaction may be durable nevertheless. The message is the reason. */
export class UnknownOutcome extends Error {}

/** Rows in their order. A batch is stored, or on its way, when the next one is requested. */
export type InBatches<Row> = Iterable<readonly Row[]> | AsyncIterable<readonly Row[]>;

export interface BulkStore {
  readonly log: ChangeLog;

  /**
   * Runs work that sees one state of all books, whatever other processes write meanwhile. If it fails, the store can only be
   * closed.
   */
  inSnapshot<Result>(work: () => Promise<Result>): Promise<Result>;

  /**
   * Runs work that is durable as a whole when this resolves, and otherwise did not happen.
   * @throws UnknownOutcome if it cannot be said which of the two is the case.
   */
  inTransaction<Result>(work: () => Promise<Result>): Promise<Result>;

  count(): Promise<number>;

  /**
   * The id after which new books get theirs: the highest one ever given, including to removed books; 0 if none was. It is
   * never given again (rule 12). Those beyond LAST_SEQUENTIAL_ID do not count.
   */
  lastId(): Promise<number>;

  /** @returns undefined if no book has the id. */
  find(id: number): Promise<Book | undefined>;

  /**
   * All books as text, ascending by id, one a line: `{"id":7,"title":"Emma",…,"year":1815}`. Chunks may end anywhere, every line ends
   * with a line feed.
   */
  text(): AsyncIterable<string | Uint8Array>;

  /** Within a transaction, stores books with their ids, none of which is taken. */
  insertWithIds(books: InBatches<Book>): Promise<void>;

  /** Begins to load a file. Until the load is closed, nothing else is called. In mode `read`, a load only compares. */
  load(rules: LoadRules): Promise<Load>;

  /** Within a transaction, removes all books and the keys of all requests. */
  removeAll(): Promise<void>;

  /** Within a transaction, reserves the ids up to this one: new books do not get them. */
  reserveIdsThrough(lastId: number): Promise<void>;

  /**
   * Before a commit, and after the last one: until then, what was committed may be lost.
   * @throws Error if another host of the store takes its writes by now.
   */
  assertNewest(): Promise<void>;

  close(): Promise<void>;
}

/** The reason why a row is not read as a book. */
export function noBook(id: number | string | undefined): Error {
  return new Error(`its book ${id} has an invalid id, text or number: correct it`);
}

/** @throws Error if an operator's trigger has skipped some of the books: they would be counted, and were never stored. */
export function assertAllTaken(taken: number, sent: number): void {
  if (taken < sent) throw new Error(`a trigger has skipped ${sent - taken} of ${sent} books`);
}
