// Owns: import, export and copy of books in a SQLite file, with or without a running service. Twin of
// `postgres/bulk.ts`. It uses one connection, on the calling thread.

import { DatabaseSync } from 'node:sqlite';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { type Book, FIELD_NAMES } from '../../books/book.ts';
import type { ChangeLog } from '../../books/change-log.ts';
import type { Times } from '../../times.ts';
import { assertAllTaken, type BulkMode, type BulkStore, type InBatches, UnknownOutcome } from '../bulk.ts';
import type { Load, LoadRules } from '../load.ts';
import { FIND } from './books.ts';
import { isOfKind, SQLITE_IOERR } from './faults.ts';
import { OpenStore } from './file.ts';
import { insertRows, SqliteLoad } from './load.ts';
import { BookLog } from './log.ts';
import { LAST_ID, LAST_ID_WITHOUT_LOG } from './log-tables.ts';
import {
  createStructure,
  now,
  openCatalogue,
  openForWriting,
  preparing,
  sortBeside,
  untilFree,
} from './structure.ts';
import { chunksOf, IN_FILE } from './text.ts';
import { SqliteLogWriter } from './undo.ts';

const COLUMNS = ['id', ...FIELD_NAMES].map(
  (name) => [name, (book: Book) => book[name as keyof Book]] as const,
);

/**
 * Opens the file; in mode `write`, creates it and its folder if missing.
 * @returns undefined when there is no catalogue, in mode `read`.
 * @throws Error with the reason when that is impossible.
 */
export async function openSqliteBulk(
  file: string,
  mode: BulkMode,
  times: Times['sqlite'],
): Promise<BulkStore | undefined> {
  sortBeside(file);
  if (mode === 'write') {
    return new SqliteBulk(await openForWriting(file, times), times, new OpenStore(file));
  }
  const db = openCatalogue(file, times);
  return db && new SqliteBulk(db, times);
}

/** An empty store in a temporary file, which SQLite removes when it is closed or the process dies. */
export function openTemporaryBulk(times: Times['sqlite']): BulkStore {
  const db = new DatabaseSync('');
  createStructure(db);
  return new SqliteBulk(db, times);
}

class SqliteBulk implements BulkStore {
  readonly #db: DatabaseSync;
  readonly #times: Times['sqlite'];
  /** Undefined if nothing is written there, or nothing that must last. */
  readonly #store: OpenStore | undefined;
  readonly #bookLog: BookLog;
  readonly #logWriter: SqliteLogWriter;
  readonly #prepare;

  readonly log: ChangeLog = {
    read: async (read) => {
      if (this.#store !== undefined) await this.inTransaction(async () => {}); // notes the new books of other programs
      return this.inSnapshot(() => read(this.#logWriter));
    },
    write: (write) => this.inTransaction(() => write(this.#logWriter)),
  };

  constructor(db: DatabaseSync, times: Times['sqlite'], store?: OpenStore) {
    this.#db = db;
    this.#bookLog = new BookLog(db);
    this.#logWriter = new SqliteLogWriter(db, Number.POSITIVE_INFINITY);
    this.#prepare = preparing(db);
    this.#times = times;
    this.#store = store;
  }

  inSnapshot<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#inTransaction('begin', work);
  }

  async inTransaction<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = await this.#inTransaction('begin immediate', async () => {
      this.#bookLog.noteNew();
      const result = await work();
      this.#bookLog.noteNew();
      return result;
    });
    await setTimeout(this.#times.bulkPause); // other processes write, and signals are handled
    return result;
  }

  async assertNewest(): Promise<void> {} // a file has no other host

  async count(): Promise<number> {
    return this.#number('select count(*) as value from books');
  }

  async lastId(): Promise<number> {
    const hasLog =
      this.#number("select count(*) as value from sqlite_schema where name = 'book_log_state'") > 0;
    return this.#number(hasLog ? LAST_ID : LAST_ID_WITHOUT_LOG);
  }

  async find(id: number): Promise<Book | undefined> {
    return this.#prepare(FIND).get(id) as Book | undefined;
  }

  async *text(): AsyncGenerator<string, void, void> {
    for (const { text } of chunksOf(this.#db, IN_FILE)) {
      yield `${text}\n`;
      await setImmediate(); // signals are handled here
    }
  }

  async insertWithIds(batches: InBatches<Book>): Promise<void> {
    for await (const books of batches)
      assertAllTaken(insertRows(this.#prepare, 'books', COLUMNS, books), books.length);
  }

  async load(rules: LoadRules): Promise<Load> {
    const target = {
      db: this.#db,
      bookLog: this.#bookLog,
      logWriter: this.#logWriter,
      times: this.#times,
      inTransaction: this.inTransaction.bind(this),
      reserveIdsThrough: this.reserveIdsThrough.bind(this),
    };
    return new SqliteLoad(target, rules, this.#store === undefined);
  }

  async removeAll(): Promise<void> {
    this.#db.exec('delete from books; delete from book_requests; delete from book_imports');
  }

  async reserveIdsThrough(lastId: number): Promise<void> {
    const last = Math.max(await this.lastId(), lastId);
    const note = this.#prepare("update sqlite_sequence set seq = ? where name = 'books'");
    if (note.run(last).changes === 0) {
      this.#prepare("insert into sqlite_sequence (name, seq) values ('books', ?)").run(last);
    }
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  async #inTransaction<Result>(begin: string, work: () => Promise<Result>): Promise<Result> {
    await untilFree(() => this.#db.exec(begin), now() + this.#times.busyInBulk, this.#times);
    try {
      const result = await work();
      this.#commit();
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('rollback'); // SQLite has already rolled back if the disk is full
      throw error;
    }
  }

  #commit(): void {
    this.#store?.assertInPlace();
    try {
      this.#db.exec('commit');
    } catch (error) {
      // If its sync has failed, the transaction is in the log. The next process that opens the store may find it there.
      throw isOfKind(error, SQLITE_IOERR) ? new UnknownOutcome((error as Error).message) : error;
    }
  }

  #number(sql: string, ...values: number[]): number {
    const row = this.#prepare(sql).get(...values) as { value: number | null };
    return row.value ?? 0;
  }
}
