// Owns: opening a SQLite file for serving, and the parts of that store. Twin of `postgres/store.ts`. Reads and writes of single
// books run on the calling thread; syncs, checkpoints and searches in others.

import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { Worker } from 'node:worker_threads';
import type { SearchBooks, Store } from '../../books/store.ts';
import { OpenLists } from '../open-lists.ts';
import type { OpenOptions } from '../options.ts';
import { countUnindexed, INDEXED_TO } from './book-index.ts';
import { SqliteBooks } from './books.ts';
import { DurableReads } from './durable-reads.ts';
import { GroupCommit } from './group-commit.ts';
import { BookLog, countChanges } from './log.ts';
import { type FinderThread, Searches, startFinder } from './searches.ts';
import { SqliteLog } from './served-log.ts';
import { openForWriting, sortBeside } from './structure.ts';
import { endThread, startThread, type ThreadData } from './thread.ts';
import { Transactions } from './transactions.ts';
import { HUGE_WAL, sizeAt, Wal, walOf } from './wal.ts';

/** Lists open at once: each holds a connection and keeps the WAL from being emptied. */
const OPEN_LISTS = 32;

/**
 * Opens the store, and creates the file, its folder and its structure if they are missing.
 * @throws Error with the reason when that is impossible.
 */
export async function openSqlite(path: string, options: OpenOptions): Promise<Store> {
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

class SqliteStore implements Store {
  readonly inFlight = 1; // it has all that has arrived: of reads, in one turn of the event loop; of writes, during a sync
  readonly holdsProcess = true;
  readonly isNew: boolean;
  readonly books: SqliteBooks;
  readonly search: SearchBooks | undefined;
  readonly log: SqliteLog;
  readonly #path: string;
  readonly #db: DatabaseSync;
  readonly #reads: DurableReads;
  readonly #commits: GroupCommit;
  readonly #checkpoints: Worker;
  readonly #searches: Searches | undefined;
  readonly #lists: OpenLists;
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
    this.isNew = isNew;
    this.#path = path;
    this.#db = db;
    this.#reads = new DurableReads(path, db, syncing, times.sqlite);
    this.#commits = new GroupCommit(db, path, this.#reads, times.sqlite, onSyncFailed);
    this.#checkpoints = checkpoints;
    this.#lists = new OpenLists(OPEN_LISTS, times.lists);
    const wal = new Wal(path, times.sqlite);
    checkpoints.on('message', () => {
      if (wal.size > HUGE_WAL) this.#lists.breakOffLong();
    });
    const log = new BookLog(db);
    const transactions = new Transactions(path, this.#reads, this.#commits, log, times.sqlite);
    this.books = new SqliteBooks(db, log, transactions, this.#lists, wal, times);
    this.log = new SqliteLog(db, log, transactions, this.books, times.sqlite);
    const searches = finder && new Searches(transactions, wal, threads, finder);
    this.#searches = searches;
    this.search = searches && ((...search) => searches.find(...search));
    const kept = history * times.history.day;
    const readTo = finder === undefined ? 'number' : INDEXED_TO;
    const pruning = { kept, confirmed: Math.min(kept, times.history.day), readTo };
    const prune = () => this.log.prune(pruning, () => this.#isClosing).catch(() => {}); // requests report it
    if (kept < Number.POSITIVE_INFINITY) this.#pruning = setInterval(prune, times.history.prune).unref();
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
    await this.#searches?.close();
    await endThread(this.#checkpoints); // it has emptied the WAL, so that the last connection has nothing to sync
    this.#db.close();
  }
}
