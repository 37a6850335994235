// Owns: import, export and copy of books in a SQLite file, with or without a running service. Twin of
// `postgres/bulk.ts`. It uses one connection, on the calling thread.

import { DatabaseSync } from 'node:sqlite';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { type Book, type BookFields, FIELD_NAMES } from '../../books/book.ts';
import type { ChangeLog } from '../../books/change-log.ts';
import { OperatorError } from '../../operator-error.ts';
import type { Times } from '../../times.ts';
import {
  assertAllTaken,
  type BulkMode,
  type BulkStore,
  type Counts,
  type InBatches,
  type RecordFormat,
  type StoredBooks,
  storedBooks,
  UnknownOutcome,
} from '../bulk.ts';
import { COUNTS, FIELDS, ID_AND_FIELDS } from '../columns.ts';
import { FIND } from './books.ts';
import { isOfKind, SQLITE_IOERR } from './faults.ts';
import { OpenStore } from './file.ts';
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
import { AS_CSV, AS_JSON, chunksOf, IN_FILE } from './text.ts';
import { SqliteLogWriter } from './undo.ts';

/** Books stored by one statement: most of the cost of a statement is the call. A full batch of an import has 120. */
const STATEMENT_BOOKS = 40;

/** Books of one step of a comparison: signals get a turn in between. */
const COMPARED_BOOKS = 20_000;

/** Rows that are stored between two looks at the clock. */
const STORED_ROWS = 500;

// The tables of a comparison. No journal: a statement that fails there ends the import.
const TEMPORARY_TABLES = `
  pragma temp_store = file;
  pragma temp.journal_mode = off;
  pragma temp.cache_size = -4096;
  drop table if exists temp.aside;
  drop table if exists temp.known;
  create temporary table aside (id integer primary key, ${FIELDS});
  create temporary table known (id integer primary key)`;

const DOUBLES = `
  create index temp.aside_by_fields on aside (${FIELDS});
  insert into known
    select later.id
    from (select min(id) as first, ${FIELDS} from aside group by ${FIELDS} having count(*) > 1) as several
    cross join aside as later using (${FIELDS})
    where later.id > several.first`;

const NEW_ROWS = 'aside where id > ? and id <= ? and id not in (select id from known)';

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
  event: number | undefined;
  /** Books that were stored in the transaction. */
  #stored = 0;
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
      this.#stored = 0;
      if (this.event !== undefined) await this.#logWriter.resume(this.event);
      const result = await work();
      this.#bookLog.noteNew();
      if (this.event !== undefined) await this.#logWriter.end(this.event, this.#stored);
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

  async find(ids: readonly number[]): Promise<readonly Book[]> {
    const find = this.#prepare(FIND);
    return ids.flatMap((id) => (find.get(id) as Book | undefined) ?? []);
  }

  async *text(format: RecordFormat): AsyncGenerator<string, void, void> {
    const record = format === 'csv' ? AS_CSV : AS_JSON;
    for (const { text } of chunksOf(this.#db, record, IN_FILE)) {
      yield `${text}\n`;
      await setImmediate(); // signals are handled here
    }
  }

  async insert(batches: InBatches<BookFields>): Promise<void> {
    for await (const books of batches) {
      const last = this.#number(LAST_ID);
      const withIds = books.map((book, position) => ({ ...book, id: last + position + 1 }));
      this.#insert('books', ['id', ...FIELD_NAMES], withIds);
    }
  }

  async insertWithIds(batches: InBatches<Book>): Promise<void> {
    for await (const books of batches) this.#insert('books', ['id', ...FIELD_NAMES], books);
  }

  async *insertNew(rows: InBatches<BookFields>, isDryRun: boolean): AsyncGenerator<StoredBooks, void, void> {
    const count = await this.#compare(rows);
    if (isDryRun) return yield this.#countNew(0, count);
    for (let last = 0; last < count; ) {
      yield await this.inTransaction(async () => {
        const end = performance.now() + this.#times.bulkTransaction;
        const insert = this.#prepare(`
          insert into books (${ID_AND_FIELDS})
          select (${LAST_ID}) + row_number() over (order by id), ${FIELDS} from ${NEW_ROWS} order by id`);
        const first = last;
        let taken = 0;
        do {
          taken += Number(insert.run(last, last + STORED_ROWS).changes);
          last += STORED_ROWS;
        } while (last < count && performance.now() < end);
        const stored = this.#countNew(first, last);
        assertAllTaken(taken, stored.count);
        this.#stored += taken;
        return stored;
      });
    }
  }

  async removeAll(): Promise<void> {
    this.#db.exec('delete from books; delete from book_requests');
  }

  async reserveIdsThrough(lastId: number): Promise<number> {
    const given = await this.lastId();
    const last = Math.max(given, lastId);
    const note = this.#prepare("update sqlite_sequence set seq = ? where name = 'books'");
    if (note.run(last).changes === 0) {
      this.#prepare("insert into sqlite_sequence (name, seq) values ('books', ?)").run(last);
    }
    return given;
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

  /**
   * Puts rows into the temporary table `aside`, numbered from 1, and into `known` the numbers of those that equal a
   * book or an earlier row.
   * @returns the number of rows.
   */
  async #compare(rows: InBatches<BookFields>): Promise<number> {
    let count = 0;
    inTemporaryFile(() => this.#db.exec(TEMPORARY_TABLES));
    for await (const batch of rows) {
      inTemporaryFile(() => this.#insert('aside', FIELD_NAMES, batch));
      count += batch.length;
    }
    inTemporaryFile(() => this.#db.exec(DOUBLES));
    const compare = this.#prepare(`
      insert or ignore into known select aside.id from books cross join aside using (${FIELDS})
      where books.id > ? and books.id <= ?`);
    const highest = this.#number('select max(id) as value from books'); // later ones are not compared
    const next = `select max(id) as value from (
      select id from books where id > ? and id <= ? order by id limit ${COMPARED_BOOKS})`;
    for (let last = 0; ; await setImmediate()) {
      const end = this.#number(next, last, highest);
      if (end === 0) break;
      compare.run(last, end);
      last = end;
    }
    return count;
  }

  /** Counts the new rows after the first of these numbers, up to the last one. */
  #countNew(first: number, last: number): StoredBooks {
    const counts = this.#prepare(`select ${COUNTS} from ${NEW_ROWS}`).get(first, last);
    return storedBooks(counts as unknown as Counts);
  }

  #insert<Name extends string>(
    table: 'books' | 'aside',
    columns: readonly Name[],
    rows: readonly Readonly<Record<Name, string | number>>[],
  ): void {
    const one = this.#prepare(insertion(table, columns, 1));
    const many = this.#prepare(insertion(table, columns, STATEMENT_BOOKS));
    let values: (string | number)[] = [];
    let taken = 0;
    for (const row of rows) {
      for (const name of columns) values.push(row[name]);
      if (values.length < STATEMENT_BOOKS * columns.length) continue;
      taken += Number(many.run(...values).changes);
      values = [];
    }
    for (let start = 0; start < values.length; start += columns.length) {
      taken += Number(one.run(...values.slice(start, start + columns.length)).changes);
    }
    assertAllTaken(taken, rows.length);
    if (table === 'books') this.#stored += taken;
  }

  #number(sql: string, ...values: number[]): number {
    const row = this.#prepare(sql).get(...values) as { value: number | null };
    return row.value ?? 0;
  }
}

/** SQL that stores this many rows. */
function insertion(table: string, columns: readonly string[], rows: number): string {
  return `insert into ${table} (${columns}) values ${Array(rows).fill(`(${columns.map(() => '?')})`)}`;
}

/** @throws OperatorError that names the temporary file, not the store, as the cause. */
function inTemporaryFile(work: () => void): void {
  try {
    work();
  } catch (error) {
    throw new OperatorError(
      `The temporary file for comparing rows cannot be written: ${(error as Error).message}. ` +
        'Set SQLITE_TMPDIR to use another folder.',
    );
  }
}
