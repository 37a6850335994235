// Owns: what a store promises to whoever moves books in large numbers, in, out or across, instead of serving them.
// One caller at a time. Whatever fails is an Error whose message is the reason; nothing here is for a client.

import { BOOK_FIELDS, type Book, type BookFields, FIELD_NAMES } from '../books/book.ts';

/**
 * How a book is written, a line each, the same bytes from every store.
 * `csv`: `7,"Emma",…,1815`: texts always in quotes, quotes within doubled.
 * `jsonl`: `{"id":7,"title":"Emma",…,"year":1815}`.
 */
export type RecordFormat = 'csv' | 'jsonl';

/** Reading never changes the structure of what it reads; writing makes it, or brings it up to date. */
export type BulkMode = 'read' | 'write';

/** Books that were stored, or would be. */
export interface StoredBooks {
  readonly count: number;
  /** How many of them have nothing in a field, by its name. */
  readonly lacking: Readonly<Record<keyof BookFields, number>>;
}

export interface BulkStore {
  /** Runs work that sees one state of all books, whatever others write meanwhile. */
  inSnapshot<Result>(work: () => Promise<Result>): Promise<Result>;

  /** Runs work that is durable as a whole when this resolves, or did not happen. */
  inTransaction<Result>(work: () => Promise<Result>): Promise<Result>;

  /** How many books there are. */
  count(): Promise<number>;

  /** The highest id ever given, to books since removed too; 0 when none was. It is never given again (rule 12). */
  lastId(): Promise<number>;

  /** The books of these ids, in no order. */
  find(ids: readonly number[]): Promise<readonly Book[]>;

  /** All books as text, ascending by id; chunks end anywhere, each line with a line feed. */
  text(format: RecordFormat): AsyncIterable<string | Uint8Array>;

  /** Stores a batch of new books, in their order, with new ids. A transaction of its own when in none. */
  insert(books: readonly BookFields[]): Promise<void>;

  /** Stores a batch of books with their ids, none of which is taken. A transaction of its own when in none. */
  insertWithIds(books: readonly Book[]): Promise<void>;

  /**
   * Stores the rows that equal no book of the store, nor a row before them, in their order, with new ids. It takes all
   * rows, into a temporary table, before it stores the first. In transactions of its own.
   * @yields what each transaction has stored.
   */
  insertNew(rows: AsyncIterable<readonly BookFields[]>): AsyncIterable<StoredBooks>;

  /** What `insertNew` would store. */
  countNew(rows: AsyncIterable<readonly BookFields[]>): Promise<StoredBooks>;

  /** Removes every book. */
  removeAll(): Promise<void>;

  /**
   * Ids up to this one are given no more.
   * @returns the highest id given before: beyond it there is no book, and until this transaction ends there will be none.
   */
  reserveIdsThrough(lastId: number): Promise<number>;

  close(): Promise<void>;
}

/** All books of a store in batches, ascending by id. */
export async function* booksOf(store: BulkStore): AsyncGenerator<readonly Book[], void, void> {
  const decoder = new TextDecoder();
  let begun = ''; // a line that has not come whole
  for await (const chunk of store.text('jsonl')) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const lines = (begun + text).split('\n');
    begun = lines.pop() as string;
    yield lines.map((line) => JSON.parse(line) as Book);
  }
}

/** A row of what `COUNTS` selects. */
export type Counts = { readonly books: number } & StoredBooks['lacking'];

export function storedBooks({ books, ...lacking }: Counts): StoredBooks {
  return { count: books, lacking };
}

export function countBooks(books: readonly BookFields[]): StoredBooks {
  const lacking = FIELD_NAMES.map((name) => {
    return [name, books.filter((book) => book[name] === BOOK_FIELDS[name].default).length];
  });
  return { count: books.length, lacking: Object.fromEntries(lacking) };
}

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
