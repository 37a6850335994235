// Owns: opening a SQLite file for serving, and the parts of that store. Twin of `postgres/store.ts`. Reads and writes of single
// books run on the calling thread; syncs, checkpoints and searches in others.

import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { Worker } from 'node:worker_threads';
import type { Store } from '../../books/store.ts';
import { startThread } from '../../thread.ts';
import { OpenLists } from '../open-lists.ts';
import type { OpenOptions } from '../options.ts';
import { INDEXED_TO, UNINDEXED } from './book-index.ts';
import { SqliteBooks } from './books.ts';
import { DurableReads } from './durable-reads.ts';
import { GroupCommit } from './group-commit.ts';
import { BookLog, CHANGES } from './log.ts';
import { FinderThread, Searches } from './searches.ts';
import { SqliteLog } from './served-log.ts';
import { openForWriting, sortBeside } from './structure.ts';
import { endThread, type ThreadData } from './thread.ts';
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
    const finder = find ? await FinderThread.start(threads) : undefined;
    return storeOf(isNew, db, threads, checkpoints, finder, options);
  } catch (error) {
    if (checkpoints !== undefined) await endThread(checkpoints);
    db.close();
    throw error;
  }
}

/** @param db of the writes. */
function storeOf(
  isNew: boolean,
  db: DatabaseSync,
  threads: ThreadData,
  checkpoints: Worker,
  finder: FinderThread | undefined,
  { history, onSyncFailed }: OpenOptions,
): Store {
  const { path, times, syncing } = threads;
  const reads = new DurableReads(path, db, syncing, times.sqlite);
  const bookLog = new BookLog(db);
  const commits = new GroupCommit(db, path, reads, bookLog, times.sqlite, onSyncFailed);
  const lists = new OpenLists(OPEN_LISTS, times.lists);
  const wal = new Wal(path, times.sqlite);
  checkpoints.on('message', () => {
    if (wal.size > HUGE_WAL) lists.breakOffLong();
  });
  const books = new SqliteBooks(db, bookLog, reads, commits, lists, wal, times);
  const log = new SqliteLog(db, bookLog, reads, commits, books, times.sqlite);
  const searches = finder && new Searches(reads, commits, wal, threads, finder);
  const kept = history * times.history.day;
  const readTo = finder === undefined ? 'number' : INDEXED_TO;
  const pruning = { kept, confirmed: Math.min(kept, times.history.day), readTo };
  let isClosing = false;
  const prune = () => log.prune(pruning, () => isClosing).catch(() => {}); // requests report it
  const isPruned = kept < Number.POSITIVE_INFINITY;
  const timer = isPruned ? setInterval(prune, times.history.prune).unref() : undefined;
  const count = (sql: string) => {
    try {
      return Number(reads.db.prepare(sql).get()?.count);
    } catch {
      return {}; // a table is missing
    }
  };
  return {
    books,
    search: searches,
    log,
    inFlight: 1, // it has all that has arrived: of reads, in one turn of the event loop; of writes, during a sync
    isNew,
    holdsProcess: true,
    counts: () => ({
      sqlite_open_lists: lists.count,
      unindexed_books: count(UNINDEXED),
      kept_changes: count(CHANGES),
      sqlite_file_bytes: { ...sizeAt('books', path), ...sizeAt('log', walOf(path)) },
    }),
    close: async () => {
      clearInterval(timer);
      isClosing = true;
      await commits.close();
      reads.db.close();
      await searches?.close();
      await endThread(checkpoints); // it has emptied the WAL, so that the last connection has nothing to sync
      db.close();
    },
  };
}
