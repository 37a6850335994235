// Owns: the store of books in a SQLite file, in this process. Twin of `postgres/store.ts`. Reads run here, on the
// calling thread: a batch costs microseconds and never waits for a sync. Writes go to a separate thread
// (`writer.ts`), searches to two others (`finder.ts`). Each list has its own connection, since other reads would
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
  HEAVY,
  type Left,
  type LongSearch,
  StoreUnavailable,
  untilHeavy,
} from '../../books/store.ts';
import { metric } from '../../metrics/descriptions.ts';
import type { Metric } from '../../metrics/prometheus.ts';
import type { Times } from '../../times.ts';
import { OpenLists } from '../open-lists.ts';
import type { OpenOptions } from '../options.ts';
import { countPending } from './book-index.ts';
import { OpenFile } from './file.ts';
import type { GivenUp, SearchRequest } from './finder.ts';
import { LONG_LOG, logSizeOf } from './long-log.ts';
import { makeFolderOf, now, sizeOf, sortBeside } from './structure.ts';
import { AS_JSON, BookExporter } from './text.ts';
import { StoreThread } from './thread.ts';
import type { EmptyLog, WriteAnswers, WriteCall, WriteRequest } from './writer.ts';

// A batch of reads has all that arrived in one turn of the event loop. Writes are sent in small batches, so that the
// thread writes one while the next is read from the network; it commits waiting batches together. Of sizes from 8 to
// 512, 32 was the best for 64 clients: 1.24 times as many creations as with 512.
const READS = { size: 512, weight: HEAVY, inFlight: 1 };
const WRITES = { size: 32, weight: HEAVY, inFlight: 32 };
/** Searches and requests with many books, one after the other: each may take long. */
const SINGLY = { size: 1, weight: HEAVY, inFlight: 1 };

/** Books of one chunk of the list: about a millisecond of work before the event loop gets a turn. */
const CHUNK_BOOKS = 1000;

/** Lists open at once: each holds a connection and keeps the write-ahead log from being emptied. */
const OPEN_LISTS = 32;

const FINDER = 'src/stores/sqlite/finder.ts';

type WriterThread = StoreThread<WriteRequest | EmptyLog, WriteAnswers>;
type FinderThread = StoreThread<SearchRequest, Page | GivenUp>;

type Row = [id: number, title: string, author: string, year: number];

/**
 * Opens the store, and creates the file, its folder and its structure if they are missing.
 * @throws Error with the reason when that is impossible.
 */
export async function openSqlite(file: string, { mustExist, find, times }: OpenOptions): Promise<BookStore> {
  const isNew = !existsSync(file);
  if (mustExist && isNew) throw new Error('it has been moved or deleted: put it back');
  makeFolderOf(file);
  sortBeside(file);
  const writer: WriterThread = new StoreThread('src/stores/sqlite/writer.ts', { path: file, times });
  await writer.start();
  const finder: FinderThread | undefined = find ? new StoreThread(FINDER, { path: file, times }) : undefined;
  try {
    await finder?.start();
  } catch (error) {
    await writer.close();
    throw error;
  }
  return new SqliteStore(file, isNew, writer, finder, times);
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
  /** Undefined with FIND=off. */
  readonly #finder: FinderThread | undefined;
  /** Starts with the first long search, since it takes memory. */
  readonly #longFinder: FinderThread;
  readonly #db: DatabaseSync;
  readonly #begin;
  readonly #find;
  readonly #commit;
  readonly #times: Times['sqlite'];
  readonly #lists: OpenLists;
  /** Settles when the log has been emptied, or could not be. */
  #emptying: Promise<void> | undefined;
  /** No list waits for it again before this moment. */
  #emptiedAt = 0;

  constructor(
    path: string,
    isNew: boolean,
    writer: WriterThread,
    finder: FinderThread | undefined,
    times: Times,
  ) {
    this.#path = path;
    this.isNew = isNew;
    this.#writer = writer;
    this.#finder = finder;
    this.#times = times.sqlite;
    this.#lists = new OpenLists(OPEN_LISTS, times.lists);
    this.#db = openForReading(path, times.sqlite);
    this.#file = new OpenFile(path);
    this.#longFinder = new StoreThread(FINDER, { path, times, isLong: true }, this.#file);
    this.#begin = this.#db.prepare('begin');
    this.#find = this.#db.prepare('select id, title, author, year from books where id = ?');
    this.#find.setReturnArrays(true);
    this.#commit = this.#db.prepare('commit');
  }

  async countUpTo(most: number): Promise<number> {
    const statement = this.#db.prepare('select count(*) as books from (select 1 from books limit ?)');
    return Number(statement.get(most)?.books);
  }

  async find(ids: readonly number[]): Promise<readonly (Book | undefined | Left)[]> {
    try {
      this.#begin.run();
      try {
        return untilHeavy(ids, (id) => {
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

  async insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]> {
    return (await this.#write({ kind: 'insert', items: books }, deadline)) as readonly number[];
  }

  async insertGroups(groups: readonly BookGroup[], deadline: number): Promise<readonly GroupOutcome[]> {
    return (await this.#write({ kind: 'insertGroups', items: groups }, deadline)) as readonly GroupOutcome[];
  }

  async update(
    updates: readonly BookUpdate[],
    deadline: number,
  ): Promise<readonly (Book | undefined | Left)[]> {
    return (await this.#write({ kind: 'update', items: updates }, deadline)) as readonly (
      | Book
      | undefined
      | Left
    )[];
  }

  async remove(ids: readonly number[], deadline: number): Promise<readonly boolean[]> {
    return (await this.#write({ kind: 'remove', items: ids }, deadline)) as readonly boolean[];
  }

  async changeIf(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly (ConditionalOutcome | Left)[]> {
    return (await this.#write({ kind: 'changeIf', items: changes }, deadline)) as readonly (
      | ConditionalOutcome
      | Left
    )[];
  }

  async search(
    searches: readonly Search[],
    until: number,
    most: number,
  ): Promise<readonly (Page | LongSearch)[]> {
    const thread = this.#finder;
    if (thread === undefined) throw new StoreUnavailable('FIND is off');
    const deadline = performance.timeOrigin + until;
    return Promise.all(
      searches.map(async (search) => {
        const found = await thread.call({ search, deadline, mode: { since: now(), most } });
        if ('books' in found) return found;
        return async () => (await this.#longFinder.call({ search, deadline, mode: found })) as Page;
      }),
    );
  }

  async list(): Promise<BookList> {
    if (logSizeOf(this.#path) > LONG_LOG) await this.#emptyLog();
    return this.#lists.open(async () => {
      try {
        this.#file.assertInPlace(); // else its books would be those of another file
        const snapshot = new Snapshot(this.#path, this.#times);
        const first = snapshot.read();
        return { chunks: snapshot.chunks(first), close: () => snapshot.close() };
      } catch (error) {
        throw new StoreUnavailable(error);
      }
    });
  }

  metrics(): Metric[] {
    return [
      metric('sqlite_open_lists', this.#lists.count),
      metric('sqlite_thread_restarts_total', {
        writer: this.#writer.restarts,
        finder: this.#longFinder.restarts + (this.#finder?.restarts ?? 0),
      }),
      metric('unindexed_books', countPending(this.#db) ?? {}),
      metric('sqlite_file_bytes', { ...sizeAt('books', this.#path), ...sizeAt('log', `${this.#path}-wal`) }),
    ];
  }

  async close(): Promise<void> {
    this.#db.close();
    await Promise.all([this.#finder?.close(), this.#longFinder.close()]);
    await this.#writer.close(); // alone: of two that close at the same moment, neither empties the log
  }

  /**
   * Lets the open lists end first, so that the log can be emptied: while lists overlap, it would grow without end. Not again
   * for a while, since a slow reader would delay each list.
   */
  #emptyLog(): Promise<void> | undefined {
    if (now() > this.#emptiedAt) this.#emptying ??= this.#emptyLogNow();
    return this.#emptying;
  }

  async #emptyLogNow(): Promise<void> {
    const { logWait, logStep, logPause } = this.#times;
    const end = now() + logWait;
    while (this.#lists.count > 0 && now() < end) await pause(logStep);
    const emptied = this.#writer.call({ kind: 'emptyLog' }).catch(() => {}); // the disk fails: the next write says so
    await Promise.race([emptied, pause(logWait, undefined, { ref: false })]);
    this.#emptiedAt = end + logPause;
    this.#emptying = undefined;
  }

  #write(request: WriteCall, deadline: number): Promise<WriteAnswers> {
    const latest = Math.min(performance.now() + this.#times.write, deadline);
    return this.#writer.call({ ...request, deadline: performance.timeOrigin + latest });
  }
}

/** @returns nothing if the system does not say how large the file is. */
/** @returns nothing if there is no such file. */
function sizeAt(name: string, path: string): Record<string, number> {
  try {
    return { [name]: sizeOf(path) };
  } catch {
    return {};
  }
}

function openForReading(file: string, { read: timeout }: Times['sqlite']): DatabaseSync {
  return new DatabaseSync(file, { readOnly: true, timeout });
}

/** All books at one moment, read in chunks; closes itself as soon as the last chunk has been read. */
class Snapshot {
  readonly #db: DatabaseSync;
  readonly #text: BookExporter;

  constructor(file: string, times: Times['sqlite']) {
    this.#db = openForReading(file, times);
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
