// Owns: books in large numbers in and out of a SQLite file, beside a service or without one. Twin of
// `postgres/bulk.ts`. One connection, on the calling thread.

import { resolve } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import type { Book, BookFields } from '../../books/book.ts';
import { BATCH_BOOKS, BATCH_CHARACTERS, type BulkMode, type BulkStore, type RecordFormat } from '../bulk.ts';
import {
  MOVING_TIMEOUT,
  makeFolderOf,
  now,
  openCatalogue,
  openForWriting,
  retryWhileBusy,
} from './structure.ts';
import { AS_CSV, AS_JSON, BookText, MOVED_BOOKS } from './text.ts';

/** Books stored by one statement: most of what a statement costs is calling it. */
const STATEMENT_BOOKS = 50;

type Row = [id: number, title: string, author: string, year: number];

/**
 * Opens the file, when it is for writing made with its folder if missing.
 * @returns undefined when it is to be read and there is none.
 * @throws Error with the reason when that cannot be done.
 */
export async function openSqliteBulk(path: string, mode: BulkMode): Promise<BulkStore | undefined> {
  const file = resolve(path);
  if (mode === 'write') {
    makeFolderOf(file);
    return new SqliteBulk(openForWriting(file));
  }
  const db = openCatalogue(file);
  return db && new SqliteBulk(db);
}

class SqliteBulk implements BulkStore {
  readonly #db: DatabaseSync;
  /** By their SQL. Prepared once: what a statement holds is not counted by the garbage collector, and piles up. */
  readonly #statements = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  inSnapshot<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#inTransaction('begin', work);
  }

  inTransaction<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#inTransaction('begin immediate', work);
  }

  async count(): Promise<number> {
    return this.#number('select count(*) from books');
  }

  async lastId(): Promise<number> {
    return this.#number("select max(seq) from sqlite_sequence where name = 'books'");
  }

  async find(ids: readonly number[]): Promise<readonly Book[]> {
    const find = this.#prepare('select id, title, author, year from books where id = ?');
    return ids.flatMap((id) => {
      const row = find.get(id) as Row | undefined;
      return row === undefined ? [] : [bookOf(row)];
    });
  }

  async *books(): AsyncGenerator<readonly Book[], void, void> {
    const all = this.#prepare('select id, title, author, year from books order by id');
    let batch: Book[] = [];
    let characters = 0;
    for (const row of all.iterate() as Iterable<unknown>) {
      const book = bookOf(row as Row);
      batch.push(book);
      characters += book.title.length + book.author.length;
      if (batch.length < BATCH_BOOKS && characters < BATCH_CHARACTERS) continue;
      yield batch;
      await setImmediate(); // a signal has its turn
      batch = [];
      characters = 0;
    }
    if (batch.length > 0) yield batch;
  }

  async *text(format: RecordFormat): AsyncGenerator<string, void, void> {
    const text = new BookText(this.#db, format === 'csv' ? AS_CSV : AS_JSON, '\n', MOVED_BOOKS);
    while (!text.isComplete) {
      const lines = text.read();
      if (lines !== '') yield `${lines}\n`;
      await setImmediate(); // a signal has its turn
    }
  }

  insert(books: readonly BookFields[]): Promise<void> {
    return this.#insert('(title, author, year)', books, ({ title, author, year }) => [title, author, year]);
  }

  insertWithIds(books: readonly Book[]): Promise<void> {
    return this.#insert('(id, title, author, year)', books, ({ id, title, author, year }) => {
      return [id, title, author, year];
    });
  }

  async removeAll(): Promise<void> {
    await this.#joined(async () => this.#db.exec('delete from books'));
  }

  async retireIds(lastId: number): Promise<number> {
    return this.#joined(async () => {
      const given = await this.lastId();
      // SQLite gives out ids behind the highest one that it has ever noted or seen.
      const note = this.#prepare("update sqlite_sequence set seq = max(seq, ?) where name = 'books'");
      if (note.run(lastId).changes === 0) {
        this.#prepare("insert into sqlite_sequence (name, seq) values ('books', ?)").run(lastId);
      }
      return given;
    });
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  async #inTransaction<Result>(begin: string, work: () => Promise<Result>): Promise<Result> {
    retryWhileBusy(() => this.#db.exec(begin), now() + MOVING_TIMEOUT);
    try {
      const result = await work();
      this.#db.exec('commit');
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('rollback'); // a full disk has rolled back already
      throw error;
    }
  }

  /** Within the transaction that is open, or in one of its own. */
  #joined<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#db.isTransaction ? work() : this.inTransaction(work);
  }

  #insert<Item>(
    columns: string,
    books: readonly Item[],
    valuesOf: (book: Item) => (string | number)[],
  ): Promise<void> {
    return this.#joined(async () => {
      const one = this.#prepare(insertion(columns, 1));
      const many = this.#prepare(insertion(columns, STATEMENT_BOOKS));
      const whole = books.length - (books.length % STATEMENT_BOOKS);
      for (let start = 0; start < whole; start += STATEMENT_BOOKS) {
        many.run(...books.slice(start, start + STATEMENT_BOOKS).flatMap(valuesOf));
      }
      for (const book of books.slice(whole)) one.run(...valuesOf(book));
    });
  }

  #number(sql: string): number {
    const [value] = this.#prepare(sql).get() as unknown as [number | null];
    return value ?? 0;
  }

  #prepare(sql: string): StatementSync {
    const prepared = this.#statements.get(sql);
    if (prepared !== undefined) return prepared;
    const statement = this.#db.prepare(sql);
    statement.setReturnArrays(true);
    this.#statements.set(sql, statement);
    return statement;
  }
}

/** SQL that stores so many books. */
function insertion(columns: string, books: number): string {
  const row = `(${columns.split(',').map(() => '?')})`;
  return `insert into books ${columns} values ${Array(books).fill(row)}`;
}

function bookOf([id, title, author, year]: Row): Book {
  return { id, title, author, year };
}
