// Owns: what a store promises to whoever moves books in large numbers, in, out or across, instead of serving them.
// One caller at a time. Whatever fails is an Error whose message is the reason; nothing here is for a client.

import { type Book, type BookFields, FIELD_NAMES } from '../books/book.ts';

/**
 * How a book is written, a line each, the same bytes from every store.
 * `csv`: `7,"Emma",…,1815`: texts always in quotes, quotes within doubled.
 * `jsonl`: `{"id":7,"title":"Emma",…,"year":1815}`.
 */
export type RecordFormat = 'csv' | 'jsonl';

/** Reading never changes the structure of what it reads; writing makes it, or brings it up to date. */
export type BulkMode = 'read' | 'write';

export interface BulkStore {
  /** Runs work that sees one state of all books, whatever others write meanwhile. */
  inSnapshot<Result>(work: () => Promise<Result>): Promise<Result>;

  /** Runs work that is durable as a whole when this resolves, or did not happen. */
  inTransaction<Result>(work: () => Promise<Result>): Promise<Result>;

  /** How many books there are. */
  count(): Promise<number>;

  /** The highest id ever given, to books since removed too; 0 when none was. It is never given again (rule 12). */
  lastId(): Promise<number>;

  /** The books of these ids, at most a batch, in no order. */
  find(ids: readonly number[]): Promise<readonly Book[]>;

  /** All books in batches, ascending by id. */
  books(): AsyncIterable<readonly Book[]>;

  /** All books as text, ascending by id; chunks end anywhere, each line with a line feed. */
  text(format: RecordFormat): AsyncIterable<string | Uint8Array>;

  /** Stores a batch of new books, in their order, with new ids. A transaction of its own when in none. */
  insert(books: readonly BookFields[]): Promise<void>;

  /** Stores a batch of books with their ids, none of which is taken. A transaction of its own when in none. */
  insertWithIds(books: readonly Book[]): Promise<void>;

  /** Removes every book. */
  removeAll(): Promise<void>;

  /**
   * Ids up to this one are given no more.
   * @returns the highest id given before: beyond it there is no book, and until this transaction ends there will be none.
   */
  retireIds(lastId: number): Promise<number>;

  close(): Promise<void>;
}

/** Books of one batch: many enough that calling the store vanishes in their cost, few enough for memory. */
export const BATCH_BOOKS = 250;

/** Characters of titles and authors after which a batch is full with fewer books. */
export const BATCH_CHARACTERS = 512 * 1024;

/** A book's line of the format `csv`. */
export function asCsv(book: Book): string {
  return `${book.id},${asCsvFields(book)}`;
}

/** The same line without the id. */
export function asCsvFields(book: BookFields): string {
  const values = FIELD_NAMES.map((name) => {
    const value = book[name];
    return typeof value === 'string' ? `"${value.replaceAll('"', '""')}"` : value;
  });
  return `${values.join()}\n`;
}

/** The line before the first book in a file of the format `csv`. */
export const CSV_HEADER = `${['id', ...FIELD_NAMES].join()}\n`;
