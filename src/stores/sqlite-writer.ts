// Owns: the one connection that writes to a SQLite file, in a thread of its own, so that waiting for a
// disk never holds up a request. Everything that waited together is committed together, with one sync
// (group commit), and answered only after it.
// Refuses: reading for the service, which `sqlite.ts` does on its own connections.

import { DatabaseSync } from 'node:sqlite';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { Book, BookFields } from '../books/book.ts';
import type { BookUpdate } from '../books/store.ts';
import { OpenFile } from './sqlite-file.ts';

export type WriteRequest = {
  readonly ticket: number;
  /** Milliseconds of `performance.timeOrigin + performance.now()`, after which the request is not begun: its callers are about to give up. */
  readonly deadline: number;
} & (
  | { readonly kind: 'insert'; readonly items: readonly BookFields[] }
  | { readonly kind: 'update'; readonly items: readonly BookUpdate[] }
  | { readonly kind: 'remove'; readonly items: readonly number[] }
);

export type WriteAnswers = readonly number[] | readonly (Book | undefined)[] | readonly boolean[];

/** What the thread says: once that it is ready, then one outcome for each request. */
export type WriterMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly ticket: number; readonly answers: WriteAnswers }
  | { readonly kind: 'failed'; readonly ticket: number; readonly reason: string };

// Milliseconds to wait for another process when the file is opened, and between two attempts to write. SQLite's own
// waiting grows to 100 ms an attempt, and one of two busy processes gets hardly a turn.
const BUSY_TIMEOUT = 4000;
const BUSY_PAUSE = 0.5;

// Requests committed together at most, and the milliseconds after which no more of them is begun, so that the
// first one is not kept waiting for the last.
const GROUP_SIZE = 64;
const GROUP_TIME = 250;

/** Bytes the write-ahead log keeps on disk once a checkpoint has emptied it. */
const LOG_SIZE = 64 * 1024 * 1024;

const SQLITE_BUSY = 5;

/** Nothing ever changes it: to wait for that is to pause. */
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/** Columns beside the id, with the SQL of an absent value. */
const COLUMNS = [
  { name: 'title', type: 'text', absent: "''" },
  { name: 'author', type: 'text', absent: "''" },
  { name: 'year', type: 'integer', absent: '0' },
] as const;

/** Milliseconds on a clock that never steps, the same for all threads of the process. */
const now = () => performance.timeOrigin + performance.now();

function serve(port: MessagePort, path: string): void {
  const writer = new Writer(openForWriting(path), path);
  const say = (message: WriterMessage) => port.postMessage(message);

  port.on('message', (first: WriteRequest | 'close') => {
    let message: WriteRequest | 'close' | undefined = first;
    /** The next request whose callers still wait; what comes after it stays where it is until asked for. */
    const next = (): WriteRequest | undefined => {
      for (;;) {
        message ??= receiveMessageOnPort(port)?.message as WriteRequest | 'close' | undefined;
        if (message === undefined || message === 'close') return undefined;
        const request = message;
        message = undefined;
        if (now() < request.deadline) return request;
        say({ kind: 'failed', ticket: request.ticket, reason: 'other writes took too long' });
      }
    };
    const group: WriteRequest[] = [];
    try {
      const answers = writer.commit(next, group);
      group.forEach(({ ticket }, position) => {
        say({ kind: 'done', ticket, answers: answers[position] as WriteAnswers });
      });
    } catch (error) {
      for (const { ticket } of group) say({ kind: 'failed', ticket, reason: (error as Error).message });
    }
    if (message === 'close') {
      writer.close();
      port.close();
    }
  });
  say({ kind: 'ready' });
}

class Writer {
  readonly #db: DatabaseSync;
  readonly #file: OpenFile;
  /** The write-ahead log, which holds what was committed last, and its index. */
  readonly #companions: readonly OpenFile[];
  readonly #begin;
  readonly #insert;
  readonly #update;
  readonly #remove;
  readonly #commit;

  constructor(db: DatabaseSync, path: string) {
    this.#db = db;
    this.#file = new OpenFile(path);
    this.#companions = [new OpenFile(`${path}-wal`), new OpenFile(`${path}-shm`)];
    this.#begin = db.prepare('begin immediate');
    this.#insert = db.prepare('insert into books (title, author, year) values (?, ?, ?)');
    this.#update = db.prepare(`
      update books set title = coalesce(?, title), author = coalesce(?, author), year = coalesce(?, year)
      where id = ?
      returning id, title, author, year`);
    this.#remove = db.prepare('delete from books where id = ?');
    this.#commit = db.prepare('commit');
  }

  /**
   * Carries out requests in one transaction, as many as there are and as its time allows.
   * @param group gets the requests that were begun; when this throws, none of them happened.
   * @returns their answers, in their order.
   */
  commit(next: () => WriteRequest | undefined, group: WriteRequest[]): WriteAnswers[] {
    const first = next();
    if (first === undefined) return [];
    group.push(first);
    retryWhileBusy(() => this.#begin.run(), first.deadline);
    try {
      const end = now() + GROUP_TIME;
      const answers = [this.#execute(first)];
      while (group.length < GROUP_SIZE && now() < end) {
        const request = next();
        if (request === undefined) break;
        group.push(request);
        answers.push(this.#execute(request));
      }
      if (this.#file.assertInPlace() === 0)
        throw new Error('the file has been emptied: restore it and start anew');
      for (const companion of this.#companions) companion.assertInPlace();
      this.#commit.run();
      return answers;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('rollback'); // a full disk has rolled back already
      throw error;
    }
  }

  close(): void {
    this.#db.close();
  }

  #execute(request: WriteRequest): WriteAnswers {
    switch (request.kind) {
      case 'insert':
        return request.items.map(({ title, author, year }) =>
          Number(this.#insert.run(title, author, year).lastInsertRowid),
        );
      case 'update':
        return request.items.map(({ id, changes: { title, author, year } }) => {
          const row = this.#update.get(title ?? null, author ?? null, year ?? null, id);
          return row === undefined ? undefined : ({ ...row } as unknown as Book);
        });
      case 'remove':
        return request.items.map((id) => this.#remove.run(id).changes === 1);
    }
  }
}

/** Opens the file, made when missing, and creates or updates its structure. */
function openForWriting(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 0 }); // see retryWhileBusy
  try {
    const deadline = now() + BUSY_TIMEOUT;
    retryWhileBusy(() => {
      const mode = db.prepare('pragma journal_mode = wal').get()?.journal_mode;
      if (mode !== 'wal') throw new Error('write-ahead logging does not work there');
    }, deadline);
    db.exec(`pragma synchronous = full; pragma journal_size_limit = ${LOG_SIZE}`);
    retryWhileBusy(() => createStructure(db), deadline);
    // A process that died may have left writes in the log whose sync had failed: no later sync would take them to
    // the disk, and all that follows in the log hangs on them. So they go into the file now, with a sync of its own.
    db.exec('pragma wal_checkpoint(truncate)');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Waits for other processes, in turn with them. */
function retryWhileBusy(attempt: () => void, deadline: number): void {
  for (;;) {
    try {
      attempt();
      return;
    } catch (error) {
      // The low byte of an error's code is its kind.
      const isBusy = ((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY;
      if (!isBusy || now() > deadline) throw error;
      Atomics.wait(PAUSE, 0, 0, BUSY_PAUSE);
    }
  }
}

function createStructure(db: DatabaseSync): void {
  db.exec('begin immediate');
  try {
    // autoincrement: the id of a removed book never comes back (rule 12).
    db.exec(`
      create table if not exists books (
        id integer primary key autoincrement check (id between 1 and ${Number.MAX_SAFE_INTEGER}),
        title text not null default '',
        author text not null default '',
        year integer not null default 0
      ) strict`);
    const found = new Map(
      db
        .prepare('pragma table_info(books)')
        .all()
        .map((column) => [column.name, column]),
    );
    const { sql } = db.prepare("select sql from sqlite_schema where name = 'books'").get() ?? {};
    const isOurs =
      found.get('id')?.pk === 1 &&
      /\bautoincrement\b/i.test(String(sql)) &&
      COLUMNS.every(({ name, type }) => String(found.get(name)?.type ?? type).toLowerCase() === type) &&
      [...found.values()].every(({ name, pk, notnull, dflt_value }) => {
        const mustBeGiven = pk === 0 && notnull === 1 && dflt_value === null;
        return !mustBeGiven || COLUMNS.some((column) => column.name === name);
      });
    if (!isOurs) throw new Error('its table "books" is not one of this service');
    for (const { name, type, absent } of COLUMNS) {
      const column = found.get(name);
      if (column === undefined) {
        db.exec(`alter table books add column ${name} ${type} not null default ${absent}`);
      } else if (column.notnull === 0) {
        db.exec(`update books set ${name} = ${absent} where ${name} is null`);
      }
    }
    db.exec('delete from books where false'); // a file that may only be read would do until the first write
    db.exec('commit');
  } catch (error) {
    if (db.isTransaction) db.exec('rollback');
    throw error;
  }
}

if (parentPort !== null) serve(parentPort, workerData as string);
