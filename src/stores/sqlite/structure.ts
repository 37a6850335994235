// Owns: opening the SQLite file of a catalogue, creating its structure or completing an older one; waiting for other processes that
// have the file locked; transactions and prepared statements.

import { createReadStream, createWriteStream, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { companionsOf, sizeOf, sync } from '../../disk.ts';
import type { Times } from '../../times.ts';
import { withTypes } from '../columns.ts';
import { createImports } from '../imports.ts';
import type { Query } from '../query.ts';
import { isOfKind, SQLITE_BUSY, SQLITE_FULL } from './faults.ts';
import { OpenFile } from './file.ts';
import { prepareLog } from './log-tables.ts';
import { chunksOf, IN_FILE, IS_BOOK } from './text.ts';
import { WAL_SIZE } from './wal.ts';

/** KiB of memory for pages while indexing and searching. */
const INDEXING_CACHE = 16 * 1024;

const COLUMNS = withTypes('integer');

// autoincrement: the id of a removed book is never given out again (rule 12).
const BOOKS = `
  create table if not exists books (
    id integer primary key autoincrement, ${COLUMNS.map(({ definition }) => definition)}, check (${IS_BOOK})
  ) strict`;

/** The keys of requests that store their books once (rules I1 to I4). The ids are JSON, the time is in milliseconds. */
const REQUESTS = `
  create table if not exists book_requests (
    key text primary key, fingerprint text not null, ids text not null, made_at integer not null
  ) strict;
  create index if not exists book_requests_made_at on book_requests (made_at)`;

/**
 * The version of the structure, in the `user_version` of the file. Files of 1.0 have 0, those of builds before 1.1 have 0 or 1. A service
 * refuses the files of a later version, so a change that older services may ignore needs no new version.
 */
const VERSION = 2;

/** Milliseconds on a monotonic clock, the same for all threads of the process. */
export const now = () => performance.timeOrigin + performance.now();

/** Creates the folder of a file, level by level: Node's own recursion never ends if that is impossible, as in /proc. */
export function makeFolderOf(file: string): void {
  const folder = dirname(file);
  if (existsSync(folder)) return;
  makeFolderOf(folder);
  try {
    mkdirSync(folder);
  } catch (error) {
    if (!existsSync(folder)) throw error; // else another process was faster
  }
}

/**
 * Lets SQLite sort large results beside the store, unless SQLITE_TMPDIR or TMPDIR names a folder: a container may have no other
 * folder that can be written. It has an effect only before this process opens its first file.
 */
export function sortBeside(file: string): void {
  if (!process.env.TMPDIR) process.env.SQLITE_TMPDIR ||= dirname(file);
}

/** @returns the WAL or the journal that a missing file has left behind, unless it is empty. */
function orphanOf(file: string): string | undefined {
  const orphan = companionsOf(file).find((path) => !path.endsWith('-shm') && sizeOf(path) > 0);
  return orphan === undefined || existsSync(file) ? undefined : orphan; // in this order: another process may make both now
}

/**
 * Opens the file, or creates it and its folder if missing, and creates or completes its structure. Everything that can be
 * read in it is durable then, also commits of a process that died before their sync.
 * @throws Error with the reason. A WAL without its file is one: SQLite would delete it.
 */
export async function openForWriting(path: string, times: Times['sqlite']): Promise<DatabaseSync> {
  const orphan = orphanOf(path);
  if (orphan !== undefined) {
    throw new Error(
      `it is missing, but ${orphan} exists and may hold books: put the file back, or move its log away`,
    );
  }
  makeFolderOf(path);
  const deadline = now() + times.busy;
  const { db, file } = await untilFree(() => openNow(path), deadline, times);
  try {
    emptyWal(db);
    file.assertInPlace();
    await sync(`${path}-wal`); // else the disk may still have its content of before, which is older than the file now
    await sync(dirname(path)); // a new file and a new WAL have their names there
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Each attempt opens the path again: while a process waits for a file, another one may take its path. */
async function openNow(path: string): Promise<{ db: DatabaseSync; file: OpenFile }> {
  const db = new DatabaseSync(path, { timeout: 0 }); // see untilFree
  try {
    const file = new OpenFile(path);
    assertKnown(db);
    const mode = db.prepare('pragma journal_mode = wal').get()?.journal_mode;
    if (mode !== 'wal') throw new Error('write-ahead logging does not work there');
    db.exec(`pragma synchronous = full; pragma journal_size_limit = ${WAL_SIZE}`);
    await writeWalAgain(db, `${path}-wal`);
    createStructure(db);
    return { db, file };
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Writes the WAL once more, and syncs it. A process that died may have left pages in it that the disk had failed to write. They can
 * be read, but no sync would write them. At a power failure, everything after them in the WAL would be lost, and so would pages that
 * are being moved into the file.
 */
async function writeWalAgain(db: DatabaseSync, wal: string): Promise<void> {
  db.exec('begin immediate'); // no other process writes to the WAL until the rollback
  await pipeline(createReadStream(wal), createWriteStream(wal, { flags: 'r+', flush: true }));
  db.exec('rollback');
}

/** Moves the WAL into the file. It stays if others read from it or write to it, or if the disk is full. */
function emptyWal(db: DatabaseSync): void {
  try {
    db.exec('pragma wal_checkpoint(truncate)');
  } catch (error) {
    if (!isOfKind(error, SQLITE_FULL)) throw error;
  }
}

/**
 * Opens a catalogue's file to search it and to keep its index up to date. Its commits are not synced: the next sync of the
 * WAL includes them, and moving it is left to `checkpoints.ts`.
 */
export function openForIndexing(path: string): DatabaseSync {
  const db = openExisting(path);
  db.exec(
    `pragma synchronous = normal; pragma wal_autocheckpoint = 0; pragma cache_size = ${-INDEXING_CACHE}; pragma journal_size_limit = ${WAL_SIZE}`,
  );
  return db;
}

/** Opens a file for writing, which must exist. It does not wait for other processes. */
export function openExisting(file: string): DatabaseSync {
  return new DatabaseSync(new URL(`${pathToFileURL(file)}?mode=rw`), { timeout: 0 });
}

/** @returns the catalogue in a file, opened to be read; undefined without one. */
export function openCatalogue(path: string, times: Times['sqlite']): DatabaseSync | undefined {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined; // it throws if this user may not look
  const readOnly = !existsSync(`${path}-journal`); // else SQLite undoes the half write of a process that died
  const db = new DatabaseSync(path, { readOnly, timeout: times.busyInBulk });
  assertKnown(db);
  if (hasBooks(db)) return db;
  db.close();
  return undefined;
}

export function hasBooks(db: DatabaseSync): boolean {
  return (
    db.prepare("select 1 from sqlite_schema where type = 'table' and name = 'books'").get() !== undefined
  );
}

/** Runs work in a transaction that writes. */
export function inTransaction<Result>(db: DatabaseSync, work: () => Result): Result {
  db.exec('begin immediate');
  try {
    const result = work();
    db.exec('commit');
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec('rollback'); // SQLite ends it itself after some errors
    throw error;
  }
}

/** Prepares each statement once: the garbage collector does not count a statement's memory, which would pile up. */
export function preparing(db: DatabaseSync): (sql: string) => StatementSync {
  const prepared = new Map<string, StatementSync>();
  return (sql) => {
    const statement = prepared.get(sql) ?? db.prepare(sql);
    prepared.set(sql, statement);
    return statement;
  };
}

/** Asks a file by the SQL of both stores. */
export function queryBy(prepare: (sql: string) => StatementSync): Query {
  return async <Row extends object>(text: string, values: unknown[] = []) => {
    const numbered = values.map((value, at) => [at + 1, value as SQLInputValue] as const);
    return prepare(text).all(Object.fromEntries(numbered)) as Row[];
  };
}

/** Repeats an attempt while other processes have the file locked. Signals are handled meanwhile. */
export async function untilFree<Result>(
  attempt: () => Result | Promise<Result>,
  deadline: number,
  { busyPause }: Times['sqlite'],
): Promise<Result> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isOfKind(error, SQLITE_BUSY)) throw error;
      await pause(busyPause);
      if (now() > deadline) throw error; // no work begins after it
    }
  }
}

/** A value that never changes, so a thread that waits for its change pauses. */
export const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/** Does the same as `untilFree` in a thread that may be blocked. */
export function retryWhileBusy<Result>(
  attempt: () => Result,
  deadline: number,
  { busyPause }: Times['sqlite'],
): Result {
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isOfKind(error, SQLITE_BUSY)) throw error;
      Atomics.wait(PAUSE, 0, 0, busyPause);
      if (now() > deadline) throw error;
    }
  }
}

function versionOf(db: DatabaseSync): number {
  return Number(db.prepare('pragma user_version').get()?.user_version);
}

function assertKnown(db: DatabaseSync): void {
  const version = versionOf(db);
  if (version > VERSION)
    throw new Error(
      `its structure (version ${version}) is unknown to this version of the service: start a newer one, or restore a backup from before the upgrade`,
    );
}

/** Creates the structure, or brings it up to date. */
export function createStructure(db: DatabaseSync): void {
  inTransaction(db, () => {
    db.exec([BOOKS, REQUESTS, `${createImports('integer')} strict`].join(';'));
    if (versionOf(db) < VERSION) db.exec(`pragma user_version = ${VERSION}`);
    completeBooks(db);
    prepareLog(db);
    db.exec('delete from books where false'); // fails here, not at the first write, if the file is read-only
  });
}

/**
 * Completes a table, so that each of its rows is a book. The table of an older version does not check all that a book is; that of
 * another program may lack columns or values.
 */
function completeBooks(db: DatabaseSync): void {
  const sql = String(db.prepare("select sql from sqlite_schema where name = 'books'").get()?.sql);
  if (sql.includes(IS_BOOK)) return; // it is complete
  const found = db.prepare('pragma table_info(books)').all();
  const isOurs = found.every(({ name, type, pk, notnull, dflt_value }) => {
    const column = COLUMNS.find((one) => one.name === name);
    if (column !== undefined) return String(type).toLowerCase() === column.type;
    return name === 'id' ? pk === 1 : pk === 0 && (notnull === 0 || dflt_value !== null);
  });
  if (!isOurs || !/\bautoincrement\b/i.test(sql)) {
    throw new Error('its table "books" does not belong to this service');
  }
  for (const { name, absent, definition } of COLUMNS) {
    const isThere = found.some((column) => column.name === name);
    if (isThere) db.exec(`update books set ${name} = ${absent} where ${name} is null`);
    else db.exec(`alter table books add column ${definition}`);
  }
  for (const _ of chunksOf(db, IN_FILE)); // names a row that is no book
  // Builds before 1.1 checked such tables with triggers.
  db.exec(`
    drop trigger if exists books_on_insert;
    drop trigger if exists books_on_update;
    alter table books add check (${IS_BOOK})`);
}
