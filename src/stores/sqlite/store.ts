// Owns: the store of books in a SQLite file, in this process. Twin of `postgres/store.ts`. Reads and writes of single books
// run here, on the calling thread; syncs, checkpoints and searches in others. Each list has its own connection, since other
// reads would otherwise see its old snapshot.

import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
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
  type LogReader,
  type LogWriter,
  type LongSearch,
  type NotAnswered,
  type PageOfChanges,
  type States,
  StoreUnavailable,
  untilHeavy,
} from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { OpenLists } from '../open-lists.ts';
import type { OpenOptions } from '../options.ts';
import { Turn } from '../turn.ts';
import { countUnindexed, INDEXED_TO } from './book-index.ts';
import { DurableReads } from './durable-reads.ts';
import { OpenFile } from './file.ts';
import type { GivenUp, SearchRequest } from './finder.ts';
import { GroupCommit } from './group-commit.ts';
import { History } from './history.ts';
import { listOf } from './lists.ts';
import { countChanges } from './log.ts';
import { mustPrune, type Pruning, prune } from './log-pruning.ts';
import { openForWriting, sortBeside } from './structure.ts';
import { Calls, endThread, startThread, type ThreadData } from './thread.ts';
import { SqliteLogReader, SqliteLogWriter } from './undo.ts';
import { HUGE_WAL, sizeAt, Wal, walOf } from './wal.ts';
import { bookOf, FIND, Writes } from './writes.ts';

/** Lists open at once: each holds a connection and keeps the WAL from being emptied. */
const OPEN_LISTS = 32;

type FinderThread = Calls<SearchRequest, Page | GivenUp>;

/**
 * Opens the store, and creates the file, its folder and its structure if they are missing.
 * @throws Error with the reason when that is impossible.
 */
export async function openSqlite(path: string, options: OpenOptions): Promise<BookStore> {
  const { mustExist, find, times, onSyncFailed } = options;
  const isNew = !existsSync(path);
  if (mustExist && isNew) throw new Error('it has been moved or deleted: put it back');
  sortBeside(path);
  const db = await openForWriting(path, times.sqlite);
  let checkpoints: Worker | undefined;
  try {
    db.exec('pragma synchronous = normal; pragma wal_autocheckpoint = 0'); // `GroupCommit` syncs; `Checkpoints` moves the WAL
    const threads = { path, times, syncing: new Int32Array(new SharedArrayBuffer(4)) };
    checkpoints = await startThread('src/stores/sqlite/checkpoints.ts', threads);
    checkpoints.once('error', ({ message }: Error) => onSyncFailed(message)); // it has no other fault
    const finder = find ? await startFinder(threads) : undefined;
    return new SqliteStore(isNew, db, threads, checkpoints, finder, options);
  } catch (error) {
    if (checkpoints !== undefined) await endThread(checkpoints);
    db.close();
    throw error;
  }
}

async function startFinder(data: ThreadData): Promise<FinderThread> {
  return new Calls(await startThread('src/stores/sqlite/finder.ts', data));
}

class SqliteStore implements BookStore {
  readonly inFlight = 1; // it has all that has arrived: of reads, in one turn of the event loop; of writes, during a sync
  readonly holdsProcess = true;
  readonly isNew: boolean;
  readonly #path: string;
  readonly #threads: ThreadData;
  readonly #file: OpenFile;
  readonly #db: DatabaseSync;
  readonly #reads: DurableReads;
  readonly #find;
  readonly #commits: GroupCommit;
  readonly #writes: Writes;
  readonly #logWriter: SqliteLogWriter;
  readonly #checkpoints: Worker;
  /** Undefined with FIND=off. */
  readonly #finder: FinderThread | undefined;
  /** Starts with the first long search, since it takes memory. */
  #longFinder: Promise<FinderThread> | undefined;
  readonly #times: Times;
  readonly #lists: OpenLists;
  readonly #wal: Wal;
  readonly #history: History;
  /** What each watch calls after a write of this process. */
  readonly #watches = new Set<() => void>();
  readonly #pruning: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(
    isNew: boolean,
    db: DatabaseSync,
    threads: ThreadData,
    checkpoints: Worker,
    finder: FinderThread | undefined,
    { onSyncFailed, history }: OpenOptions,
  ) {
    const { path, times, syncing } = threads;
    this.#path = path;
    this.#threads = threads;
    this.isNew = isNew;
    this.#file = new OpenFile(path);
    this.#db = db;
    this.#reads = new DurableReads(path, db, syncing, times.sqlite);
    this.#find = this.#reads.db.prepare(FIND);
    this.#find.setReturnArrays(true);
    this.#commits = new GroupCommit(db, path, this.#reads, times.sqlite, onSyncFailed);
    this.#writes = new Writes(db, times);
    this.#logWriter = new SqliteLogWriter(db, this.#writes.log, times.sqlite.turn);
    this.#checkpoints = checkpoints;
    this.#finder = finder;
    this.#times = times;
    this.#lists = new OpenLists(OPEN_LISTS, times.lists);
    this.#wal = new Wal(path, times.sqlite);
    checkpoints.on('message', () => {
      if (this.#wal.size > HUGE_WAL) this.#lists.breakOffLong();
    });
    this.#history = new History(this.#reads.db);
    const kept = history * times.history.day;
    const readTo = finder === undefined ? 'number' : INDEXED_TO;
    const pruning = { kept, confirmed: Math.min(kept, times.history.day), readTo };
    const pruneLog = () => this.#pruneLog(pruning).catch(() => {}); // requests report it
    if (kept < Number.POSITIVE_INFINITY) this.#pruning = setInterval(pruneLog, times.history.prune).unref();
  }

  async countUpTo(most: number): Promise<number> {
    const statement = this.#reads.db.prepare('select count(*) as books from (select 1 from books limit ?)');
    return Number(this.#reads.read(() => statement.get(most))?.books);
  }

  async find(ids: readonly number[]): Promise<readonly (Book | undefined | NotAnswered)[]> {
    return this.#read(() => untilHeavy(ids, (id) => bookOf(this.#find.get(id))));
  }

  insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]> {
    return this.#write(() => this.#writes.insert(books), deadline);
  }

  insertGroups(groups: readonly BookGroup[], deadline: number): Promise<readonly GroupOutcome[]> {
    return this.#write(() => this.#writes.insertGroups(groups), deadline, true);
  }

  update(
    updates: readonly BookUpdate[],
    deadline: number,
  ): Promise<readonly (Book | undefined | NotAnswered)[]> {
    return this.#write(() => this.#writes.update(updates), deadline);
  }

  remove(ids: readonly number[], deadline: number): Promise<readonly (boolean | NotAnswered)[]> {
    return this.#write(() => this.#writes.remove(ids), deadline);
  }

  changeIf(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly (ConditionalOutcome | NotAnswered)[]> {
    return this.#write(() => this.#writes.changeIf(changes), deadline);
  }

  async search(search: Search, until: number, most: number): Promise<Page | LongSearch> {
    if (this.#finder === undefined) throw new StoreUnavailable('FIND is off');
    const deadline = performance.timeOrigin + until;
    const found = await this.#search(this.#finder, { search, deadline, mode: { most } });
    if ('books' in found) return found;
    return async () =>
      (await this.#search(await this.#startLongFinder(), { search, deadline, mode: found })) as Page;
  }

  async changes(cursor: unknown, most: number, deadline: number): Promise<PageOfChanges | 'gone'> {
    await setImmediate(); // other work first: a thousand may have waited for the same change
    await this.#completeLog(deadline);
    const { page } = this.#times.sqlite;
    const read = () => this.#read(() => this.#history.changes(cursor, most, page));
    const changes = read();
    if (changes !== 'gone') return changes;
    await this.#commits.durable(deadline); // another process may have shown a write whose sync is in progress here
    return read();
  }

  watch(onChange: () => void): () => void {
    this.#watches.add(onChange);
    let before: unknown;
    const look = () => {
      try {
        const { version } = this.#reads;
        if (version !== before) onChange();
        before = version;
      } catch {} // the file is locked: the next look finds it
    };
    const timer = setInterval(look, this.#times.sqlite.changesPause);
    return () => {
      clearInterval(timer);
      this.#watches.delete(onChange);
    };
  }

  async states(id: number, before: number | undefined, most: number, deadline: number): Promise<States> {
    await this.#completeLog(deadline);
    return this.#read(() => this.#history.states(id, before, most));
  }

  async readLog<Result>(read: (log: LogReader) => Promise<Result>, deadline: number): Promise<Result> {
    await this.#completeLog(deadline);
    const db = this.#openSnapshot();
    try {
      return await read(new SqliteLogReader(db, this.#times.sqlite.turn));
    } catch (error) {
      throw new StoreUnavailable(error);
    } finally {
      db.close();
    }
  }

  writeLog<Result>(write: (log: LogWriter) => Promise<Result>, deadline: number): Promise<Result> {
    const writeAll = () => {
      this.#writes.log.noteNew();
      this.#writes.dropOldKeys();
      return write(this.#logWriter);
    };
    return this.#write(writeAll, deadline, true);
  }

  async list(): Promise<BookList> {
    const deadline = performance.now() + this.#times.lists.firstChunk;
    await this.#wal.shorter();
    return this.#lists.open(async () => {
      await this.#commits.durable(deadline); // until this function returns, nothing is committed
      return listOf(this.#openSnapshot());
    });
  }

  counts() {
    return {
      sqlite_open_lists: this.#lists.count,
      unindexed_books: countUnindexed(this.#reads.db) ?? {},
      kept_changes: countChanges(this.#reads.db) ?? {},
      sqlite_file_bytes: { ...sizeAt('books', this.#path), ...sizeAt('log', walOf(this.#path)) },
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#pruning);
    this.#isClosing = true;
    await this.#commits.close();
    this.#reads.db.close();
    const longFinder = await this.#longFinder?.catch(() => undefined);
    await Promise.all([this.#finder?.close(), longFinder?.close()]);
    await endThread(this.#checkpoints); // it has emptied the WAL, so that the last connection has nothing to sync
    this.#db.close();
  }

  /** Removes rows of the log that the index has and that are older than they are kept. */
  async #pruneLog(pruning: Pruning): Promise<void> {
    let isMore = this.#reads.read(() => mustPrune(this.#reads.db, pruning));
    const pruneSome = () => {
      const turn = new Turn(this.#times.sqlite.turn);
      return prune(this.#db, pruning, () => turn.isOver);
    };
    while (isMore && !this.#isClosing) isMore = await this.#write(pruneSome, Number.POSITIVE_INFINITY);
  }

  /** What is committed at this moment. @throws StoreUnavailable */
  #openSnapshot(): DatabaseSync {
    try {
      this.#file.assertInPlace(); // else its books would be those of another file
      const db = new DatabaseSync(this.#path, { readOnly: true, timeout: this.#times.sqlite.read });
      db.exec('begin');
      return db;
    } catch (error) {
      throw new StoreUnavailable(error);
    }
  }

  #read<Answer>(read: () => Answer): Answer {
    try {
      return this.#reads.read(read);
    } catch (error) {
      throw new StoreUnavailable(error);
    }
  }

  async #write<Answer>(
    carryOut: () => Answer | Promise<Answer>,
    deadline: number,
    isAlone?: boolean,
  ): Promise<Answer> {
    const latest = Math.min(performance.now() + this.#times.sqlite.write, deadline);
    const write = () => {
      this.#writes.log.keep();
      return carryOut();
    };
    const answer = await this.#commits.write(write, latest, isAlone);
    for (const onChange of this.#watches) onChange();
    return answer;
  }

  /** Notes the new books of other programs, and begins the log again if they have changed it. */
  async #completeLog(deadline: number): Promise<void> {
    if (!this.#read(() => this.#history.isIncomplete)) return;
    await this.#write(() => this.#writes.log.noteNew(), deadline);
    this.#read(() => this.#history.trust());
  }

  async #search(finder: FinderThread, request: SearchRequest): Promise<Page | GivenUp> {
    await this.#wal.shorter();
    const found = await finder.call(request);
    await this.#commits.durable(request.deadline - performance.timeOrigin); // it may have seen a write whose sync was in progress
    return found;
  }

  async #startLongFinder(): Promise<FinderThread> {
    try {
      if (this.#longFinder === undefined) this.#file.assertInPlace(); // it opens the path again
      this.#longFinder ??= startFinder({ ...this.#threads, isLong: true });
      return await this.#longFinder;
    } catch (error) {
      this.#longFinder = undefined; // it has not started
      throw new StoreUnavailable(error);
    }
  }
}
