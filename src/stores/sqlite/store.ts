// Owns: the store of books in a SQLite file, in this process. Twin of `postgres/store.ts`. Reads run here, on the
// calling thread: a batch costs microseconds and never waits for a sync. Writes go to a thread of their own
// (`writer.ts`). Each list has its own connection, since other reads would otherwise see its old snapshot.

import { existsSync, statSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Book, BookFields } from '../../books/book.ts';
import { type BookList, type BookStore, type BookUpdate, StoreUnavailable } from '../../books/store.ts';
import { counter, gauge, type Metric } from '../../metrics/prometheus.ts';
import { OpenLists } from '../open-lists.ts';
import { OpenFile } from './file.ts';
import { makeFolderOf } from './structure.ts';
import { AS_JSON, BookExporter } from './text.ts';
import type { WriteAnswers, WriteRequest, WriterMessage } from './writer.ts';

// A batch of reads has all that arrived in one turn of the event loop. Writes are sent in small batches, so that the
// thread writes one while the next is read from the network; it commits waiting batches together. Of sizes from 8 to
// 512, 32 was the best for 64 clients: 1.24 times as many creations as with 512.
const WEIGHT = 1024 * 1024;
const READS = { size: 512, weight: WEIGHT, inFlight: 1 };
const WRITES = { size: 32, weight: WEIGHT, inFlight: 32 };

/** Milliseconds that a read may wait for a file that is locked as a whole; the wait delays every request. */
const READ_TIMEOUT = 250;

/** Milliseconds after which a write is no longer begun, so that it ends before its callers give up (rule 23). */
const WRITE_TIMEOUT = 3000;

/** Books of one chunk of the list: about a millisecond of work before the event loop gets a turn. */
const CHUNK_BOOKS = 1000;

/** Lists open at once: each holds a connection and keeps the write-ahead log from being emptied. */
const OPEN_LISTS = 32;

type Row = [id: number, title: string, author: string, year: number];

/**
 * Opens the store, and creates the file, its folder and its structure if they are missing.
 * @param mustExist whether other processes already have the file open: a missing one is then not created.
 * @throws Error with the reason when that is impossible.
 */
export async function openSqlite(path: string, mustExist: boolean): Promise<BookStore> {
  const file = resolve(path);
  if (mustExist && !existsSync(file)) throw new Error('it has been moved or deleted: put it back');
  makeFolderOf(file);
  const writer = new WriterThread(file);
  await writer.start();
  return new SqliteStore(file, writer);
}

class SqliteStore implements BookStore {
  readonly limits = { find: READS, insert: WRITES, update: WRITES, remove: WRITES };
  readonly #path: string;
  readonly #file: OpenFile;
  readonly #writer: WriterThread;
  readonly #db: DatabaseSync;
  readonly #begin;
  readonly #find;
  readonly #commit;
  readonly #lists = new OpenLists(OPEN_LISTS);

  constructor(path: string, writer: WriterThread) {
    this.#path = path;
    this.#writer = writer;
    this.#db = openForReading(path);
    this.#file = new OpenFile(path);
    this.#begin = this.#db.prepare('begin');
    this.#find = this.#db.prepare('select id, title, author, year from books where id = ?');
    this.#find.setReturnArrays(true);
    this.#commit = this.#db.prepare('commit');
  }

  async find(ids: readonly number[]): Promise<readonly (Book | undefined)[]> {
    try {
      this.#begin.run();
      try {
        return ids.map((id) => {
          const row = this.#find.get(id) as Row | undefined;
          return row && { id: row[0], title: row[1], author: row[2], year: row[3] };
        });
      } finally {
        this.#commit.run();
      }
    } catch (error) {
      throw new StoreUnavailable(error);
    }
  }

  async insert(books: readonly BookFields[]): Promise<readonly number[]> {
    return (await this.#writer.write('insert', books)) as readonly number[];
  }

  async update(updates: readonly BookUpdate[]): Promise<readonly (Book | undefined)[]> {
    return (await this.#writer.write('update', updates)) as readonly (Book | undefined)[];
  }

  async remove(ids: readonly number[]): Promise<readonly boolean[]> {
    return (await this.#writer.write('remove', ids)) as readonly boolean[];
  }

  async list(): Promise<BookList> {
    return this.#lists.open(async () => {
      try {
        this.#file.assertInPlace(); // else its books would be those of another file
        const snapshot = new Snapshot(this.#path);
        const first = snapshot.read();
        return { chunks: snapshot.chunks(first), close: () => snapshot.close() };
      } catch (error) {
        throw new StoreUnavailable(error);
      }
    });
  }

  metrics(): Metric[] {
    const openLists = `Lists being read; ${OPEN_LISTS} at most.`;
    const restarts = 'Restarts of the writer thread after it had died.';
    const sizes = 'Sizes of the file and of its write-ahead log; the same for every worker.';
    return [
      gauge('book_catalogue_sqlite_open_lists', openLists, this.#lists.count),
      counter('book_catalogue_sqlite_writer_restarts_total', restarts, this.#writer.restarts),
      gauge('book_catalogue_sqlite_file_bytes', sizes, [
        { labels: { file: 'books' }, value: sizeOf(this.#path) },
        { labels: { file: 'log' }, value: sizeOf(`${this.#path}-wal`) },
      ]),
    ];
  }

  async close(): Promise<void> {
    this.#db.close();
    await this.#writer.close();
  }
}

/** In bytes; 0 if the file is missing. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function openForReading(file: string): DatabaseSync {
  return new DatabaseSync(file, { readOnly: true, timeout: READ_TIMEOUT });
}

/** All books at one moment, read in chunks; closes itself as soon as the last chunk has been read. */
class Snapshot {
  readonly #db: DatabaseSync;
  readonly #text: BookExporter;

  constructor(file: string) {
    this.#db = openForReading(file);
    this.#db.exec('begin'); // so that all chunks are of one snapshot
    this.#text = new BookExporter(this.#db, AS_JSON, ',', CHUNK_BOOKS);
  }

  /** The next books as JSON, separated by commas. */
  read(): string {
    try {
      const json = this.#text.read();
      if (this.#text.isComplete) this.close();
      return json;
    } catch (error) {
      this.close();
      throw new StoreUnavailable(error);
    }
  }

  async *chunks(first: string): AsyncGenerator<string, void, void> {
    yield first;
    while (!this.#text.isComplete) {
      await setImmediate(); // other work first
      const json = this.read();
      if (json !== '') yield `,${json}`;
    }
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }
}

/** The writer thread, as seen by the rest of the process. It is restarted when it dies, on the same file only. */
class WriterThread {
  readonly #path: string;
  /** Undefined until it has been opened. */
  #file: OpenFile | undefined;
  readonly #waiting = new Map<number, PromiseWithResolvers<WriteAnswers>>();
  #thread: Worker | undefined;
  #lastTicket = 0;
  restarts = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves once the file is open and its structure exists; rejects with the reason. */
  start(): Promise<void> {
    const ready = Promise.withResolvers<void>();
    const cache = getCompileCacheDir();
    const thread = new Worker(new URL('./writer.ts', import.meta.url), {
      workerData: this.#path,
      // Without the compile cache of this process, the thread takes 10 MiB to translate one file for itself. The
      // folder is the one that was set; in it, Node has created the cache for its version.
      env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },
    });
    let reason = 'the writer thread has ended';
    thread.on('message', (message: WriterMessage) => {
      if (message.kind === 'ready') {
        this.#file ??= new OpenFile(this.#path);
        ready.resolve();
      } else {
        this.#settle(message);
      }
    });
    thread.on('error', (error) => {
      reason = (error as Error).message;
    });
    thread.on('exit', () => {
      this.#thread = undefined;
      ready.reject(new Error(reason));
      for (const ticket of [...this.#waiting.keys()]) this.#settle({ kind: 'failed', ticket, reason });
    });
    this.#thread = thread;
    return ready.promise;
  }

  async write(kind: WriteRequest['kind'], items: WriteRequest['items']): Promise<WriteAnswers> {
    if (this.#thread === undefined) {
      try {
        this.#file?.assertInPlace(); // else an empty file would be created
      } catch (error) {
        throw new StoreUnavailable(error);
      }
      this.restarts += 1;
      this.start().catch(() => {}); // the waiting calls get the error
    }
    this.#lastTicket += 1;
    const ticket = this.#lastTicket;
    const outcome = Promise.withResolvers<WriteAnswers>();
    this.#waiting.set(ticket, outcome);
    const deadline = performance.timeOrigin + performance.now() + WRITE_TIMEOUT;
    this.#thread?.postMessage({ kind, ticket, items, deadline });
    return outcome.promise;
  }

  /** Lets the thread finish its requests, then ends it. */
  async close(): Promise<void> {
    if (this.#thread === undefined) return;
    const ended = Promise.withResolvers<void>();
    this.#thread.once('exit', () => ended.resolve());
    this.#thread.postMessage('close');
    await ended.promise;
  }

  #settle(message: Exclude<WriterMessage, { kind: 'ready' }>): void {
    const outcome = this.#waiting.get(message.ticket);
    this.#waiting.delete(message.ticket);
    if (message.kind === 'done') outcome?.resolve(message.answers);
    else outcome?.reject(new StoreUnavailable(message.reason));
  }
}
