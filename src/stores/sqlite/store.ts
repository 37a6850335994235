// Owns: the store of books in a SQLite file, in this process. Twin of `postgres/store.ts`. Reads run here, on the
// calling thread: a batch costs microseconds and never waits for a sync. Writes go to a thread of their own
// (`writer.ts`), searches to another one (`finder.ts`). Each list has its own connection, since other reads would
// otherwise see its old snapshot.

import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause, setImmediate } from 'node:timers/promises';
import type { Book, BookFields } from '../../books/book.ts';
import type { Page, Search } from '../../books/search.ts';
import {
  type BookGroup,
  type BookList,
  type BookStore,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type GroupOutcome,
  StoreUnavailable,
} from '../../books/store.ts';
import { counter, gauge, type Metric, type Sample } from '../../metrics/prometheus.ts';
import { OpenLists } from '../open-lists.ts';
import type { OpenOptions } from '../options.ts';
import { countPending } from './book-index.ts';
import { OpenFile } from './file.ts';
import type { SearchRequest } from './finder.ts';
import { LOG_SIZE, makeFolderOf, now, sizeOf, sortBeside } from './structure.ts';
import { AS_JSON, BookExporter } from './text.ts';
import { StoreThread } from './thread.ts';
import type { EmptyLog, WriteAnswers, WriteCall, WriteRequest } from './writer.ts';

// A batch of reads has all that arrived in one turn of the event loop. Writes are sent in small batches, so that the
// thread writes one while the next is read from the network; it commits waiting batches together. Of sizes from 8 to
// 512, 32 was the best for 64 clients: 1.24 times as many creations as with 512.
const WEIGHT = 1024 * 1024;
const READS = { size: 512, weight: WEIGHT, inFlight: 1 };
const WRITES = { size: 32, weight: WEIGHT, inFlight: 32 };
/** Searches and requests with many books, one after the other: each may take long. */
const SINGLY = { size: 1, weight: WEIGHT, inFlight: 1 };

/** Milliseconds that a read may wait for a file that is locked as a whole; the wait delays every request. */
const READ_TIMEOUT = 250;

/** Milliseconds after which a write is no longer begun, so that it ends before its callers give up (rule 23). */
const WRITE_TIMEOUT = 3000;

/** Books of one chunk of the list: about a millisecond of work before the event loop gets a turn. */
const CHUNK_BOOKS = 1000;

/**
 * Bytes of the write-ahead log beyond which new lists wait for those that are open to end: lists that overlap would keep
 * it from being emptied, and it would grow. Milliseconds that they wait, between two looks, and until the next such wait.
 */
const LONG_LOG = 1.5 * LOG_SIZE;
const LOG_WAIT = 1000;
const LOG_STEP = 10;
const LOG_PAUSE = 10_000;

/** Lists open at once: each holds a connection and keeps the write-ahead log from being emptied. */
const OPEN_LISTS = 32;

type WriterThread = StoreThread<WriteRequest | EmptyLog, WriteAnswers>;
type FinderThread = StoreThread<SearchRequest, Page>;

type Row = [id: number, title: string, author: string, year: number];

/**
 * Opens the store, and creates the file, its folder and its structure if they are missing.
 * @throws Error with the reason when that is impossible.
 */
export async function openSqlite(file: string, { mustExist, find }: OpenOptions): Promise<BookStore> {
  const isNew = !existsSync(file);
  if (mustExist && isNew) throw new Error('it has been moved or deleted: put it back');
  makeFolderOf(file);
  sortBeside(file);
  const writer: WriterThread = new StoreThread('src/stores/sqlite/writer.ts', file);
  await writer.start();
  const finder: FinderThread = new StoreThread('src/stores/sqlite/finder.ts', file);
  try {
    if (find) await finder.start();
  } catch (error) {
    await writer.close();
    throw error;
  }
  return new SqliteStore(file, isNew, writer, finder);
}

class SqliteStore implements BookStore {
  readonly limits = {
    find: READS,
    insert: WRITES,
    keyed: WRITES,
    bulk: SINGLY,
    update: WRITES,
    remove: WRITES,
    conditional: WRITES,
    search: SINGLY,
  };
  readonly holdsProcess = true;
  readonly isNew: boolean;
  readonly #path: string;
  readonly #file: OpenFile;
  readonly #writer: WriterThread;
  readonly #finder: FinderThread;
  readonly #db: DatabaseSync;
  readonly #begin;
  readonly #find;
  readonly #commit;
  readonly #lists = new OpenLists(OPEN_LISTS);
  /** Settles when the log has been emptied, or could not be. */
  #emptying: Promise<void> | undefined;
  /** No list waits for it again before this moment. */
  #emptiedAt = 0;

  constructor(path: string, isNew: boolean, writer: WriterThread, finder: FinderThread) {
    this.#path = path;
    this.isNew = isNew;
    this.#writer = writer;
    this.#finder = finder;
    this.#db = openForReading(path);
    this.#file = new OpenFile(path);
    this.#begin = this.#db.prepare('begin');
    this.#find = this.#db.prepare('select id, title, author, year from books where id = ?');
    this.#find.setReturnArrays(true);
    this.#commit = this.#db.prepare('commit');
  }

  async countUpTo(most: number): Promise<number> {
    const statement = this.#db.prepare('select count(*) as books from (select 1 from books limit ?)');
    return Number(statement.get(most)?.books);
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
        if (this.#db.isTransaction) this.#commit.run(); // SQLite ends it itself after some errors
      }
    } catch (error) {
      throw new StoreUnavailable(error);
    }
  }

  async insert(books: readonly BookFields[]): Promise<readonly number[]> {
    return (await this.#write({ kind: 'insert', items: books })) as readonly number[];
  }

  async insertGroups(groups: readonly BookGroup[]): Promise<readonly GroupOutcome[]> {
    return (await this.#write({ kind: 'insertGroups', items: groups })) as readonly GroupOutcome[];
  }

  async update(updates: readonly BookUpdate[]): Promise<readonly (Book | undefined)[]> {
    return (await this.#write({ kind: 'update', items: updates })) as readonly (Book | undefined)[];
  }

  async remove(ids: readonly number[]): Promise<readonly boolean[]> {
    return (await this.#write({ kind: 'remove', items: ids })) as readonly boolean[];
  }

  async changeIf(changes: readonly ConditionalChange[]): Promise<readonly ConditionalOutcome[]> {
    return (await this.#write({ kind: 'changeIf', items: changes })) as readonly ConditionalOutcome[];
  }

  async search(searches: readonly Search[], deadline: number): Promise<readonly Page[]> {
    return Promise.all(
      searches.map((search) => {
        return this.#finder.call({ search, since: now(), deadline: performance.timeOrigin + deadline });
      }),
    );
  }

  async list(): Promise<BookList> {
    try {
      await this.#shortenLog();
    } catch (error) {
      throw new StoreUnavailable(error);
    }
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
    const restarts =
      'Restarts of a thread after it had died: of the one that writes, and of the one that searches.';
    const unindexed = 'Books that a search may not find yet, about.';
    const sizes = 'Sizes of the file and of its write-ahead log; the same for every worker.';
    return [
      gauge('book_catalogue_sqlite_open_lists', openLists, this.#lists.count),
      counter('book_catalogue_sqlite_thread_restarts_total', restarts, [
        { labels: { thread: 'writer' }, value: this.#writer.restarts },
        { labels: { thread: 'finder' }, value: this.#finder.restarts },
      ]),
      gauge('book_catalogue_unindexed_books', unindexed, countPending(this.#db) ?? []),
      gauge('book_catalogue_sqlite_file_bytes', sizes, [
        ...sizeSample('books', this.#path),
        ...sizeSample('log', `${this.#path}-wal`),
      ]),
    ];
  }

  async close(): Promise<void> {
    this.#db.close();
    await Promise.all([this.#writer.close(), this.#finder.close()]);
  }

  async #shortenLog(): Promise<void> {
    if (sizeOf(`${this.#path}-wal`) <= LONG_LOG) return;
    if (now() > this.#emptiedAt) this.#emptying ??= this.#emptyLog();
    await this.#emptying;
  }

  async #emptyLog(): Promise<void> {
    const end = now() + LOG_WAIT;
    while (this.#lists.count > 0 && now() < end) await pause(LOG_STEP);
    try {
      if (this.#lists.count === 0) await this.#writer.call({ kind: 'emptyLog' });
    } catch {
      // the disk fails: the next write says so, and the log stays as it is
    }
    this.#emptiedAt = end + LOG_PAUSE;
    this.#emptying = undefined;
  }

  #write(request: WriteCall): Promise<WriteAnswers> {
    return this.#writer.call({ ...request, deadline: now() + WRITE_TIMEOUT });
  }
}

/** @returns nothing if the system does not say how large the file is. */
function sizeSample(file: string, path: string): Sample[] {
  try {
    return [{ labels: { file }, value: sizeOf(path) }];
  } catch {
    return [];
  }
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
    try {
      this.#db.exec('begin'); // so that all chunks are of one snapshot
      this.#text = new BookExporter(this.#db, AS_JSON, ',', CHUNK_BOOKS);
    } catch (error) {
      this.close();
      throw error;
    }
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
