// Owns: opening the SQLite file of a catalogue, with its table created if missing and updated if older; and waiting for
// other processes that write to it.

import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Times } from '../../times.ts';
import { withTypes } from '../columns.ts';
import { OpenFile } from './file.ts';
import { LOG_SIZE } from './log-size.ts';

/** Bytes of the log that are read and written at a time. */
const LOG_PIECE = 1024 * 1024;

/** KiB of memory for the pages that indexing and searching need. */
const INDEXING_CACHE = 16 * 1024;

export const SQLITE_BUSY = 5;

/** It never changes, so waiting for a change is a pause. */
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

const COLUMNS = withTypes('integer');

/** Integers that are exact for every reader of JSON. SQLite itself has larger ones, which this process cannot read. */
const inRange = (name: string) =>
  `${name} between -${Number.MAX_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER}`;

const DEFINITIONS = COLUMNS.map(({ name, isText, definition }) =>
  isText ? definition : `${definition} check (${inRange(name)})`,
);

/** What makes a row something else than a book. */
const fault = (row: string) =>
  COLUMNS.map(({ name, isText }) =>
    isText ? `${row}${name} is null` : `coalesce(not ${inRange(row + name)}, true)`,
  ).join(' or ');

/** For a table without these checks: they apply to all programs, like those of a table that this service makes. */
const GUARDS = ['insert', 'update']
  .map(
    (event) => `
      create trigger if not exists books_on_${event} before ${event} on books when ${fault('new.')}
      begin select raise(abort, 'a book needs a title, an author, and a year within 9007199254740991'); end;`,
  )
  .join('');

/** The keys of requests that store their books once (rules I1 to I4). The ids are JSON, the time is in milliseconds. */
const REQUESTS = `
  create table if not exists book_requests (
    key text primary key, fingerprint text not null, ids text not null, made_at integer not null
  ) strict;
  create index if not exists book_requests_made_at on book_requests (made_at)`;

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
 * Lets SQLite sort beside the store what is too much for memory, unless SQLITE_TMPDIR or TMPDIR names a folder: a
 * container may have no other one that can be written. It has an effect before this process opens its first file.
 */
export function sortBeside(file: string): void {
  if (!process.env.TMPDIR) process.env.SQLITE_TMPDIR ||= dirname(file);
}

/** In bytes; 0 if the file is missing. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** The files that SQLite keeps beside a file: its log, the log's index, the journal of other modes. */
export function companionsOf(file: string): string[] {
  return ['-wal', '-shm', '-journal'].map((suffix) => `${file}${suffix}`);
}

/** @returns the log or the journal that a missing file has left behind, unless it is empty. */
export function orphanedLog(file: string): string | undefined {
  const log = companionsOf(file).find((path) => !path.endsWith('-shm') && sizeOf(path) > 0);
  return log === undefined || existsSync(file) ? undefined : log; // in this order: another process may make both now
}

/**
 * Opens the file, or creates it if missing, and creates or updates its structure.
 * @throws Error with the reason. A log without its file is one: SQLite would delete it.
 */
export function openForWriting(path: string, times: Times['sqlite']): DatabaseSync {
  const log = orphanedLog(path);
  if (log !== undefined) {
    throw new Error(
      `it is missing, but ${log} exists and may hold books: put the file back, or move its log away`,
    );
  }
  const deadline = now() + times.busy;
  const { db, file } = retryWhileBusy(() => openWithLog(path), deadline, times);
  try {
    db.exec(`pragma synchronous = full; pragma journal_size_limit = ${LOG_SIZE}`);
    retryWhileBusy(() => rewriteLog(db, `${path}-wal`), deadline, times);
    retryWhileBusy(() => createStructure(db), deadline, times);
    emptyLog(db, file, deadline, times);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Opens the file in WAL mode. Each attempt opens the file that is at the path by then: one that a process waits for may be
 * replaced, and SQLite would put the log of the old one beside the new one.
 */
function openWithLog(path: string): { db: DatabaseSync; file: OpenFile } {
  const db = new DatabaseSync(path, { timeout: 0 }); // see retryWhileBusy
  try {
    const file = new OpenFile(path);
    const mode = db.prepare('pragma journal_mode = wal').get()?.journal_mode;
    if (mode !== 'wal') throw new Error('write-ahead logging does not work there');
    return { db, file };
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Writes the content of the log once more, and syncs it. A process that died may have left writes in the log whose sync
 * had failed: they can be read, but no later sync would write them to disk. If they moved into the file like that, a power
 * failure half-way would leave some of their pages in the file, and nothing in the log to complete them.
 */
function rewriteLog(db: DatabaseSync, path: string): void {
  db.exec('begin immediate'); // no other process writes to the log until the rollback
  try {
    const log = openSync(path, 'r+');
    try {
      const piece = Buffer.allocUnsafe(LOG_PIECE);
      let size = 0;
      for (let position = 0; ; position += size) {
        size = readSync(log, piece, 0, LOG_PIECE, position);
        if (size === 0) break;
        size = writeSync(log, piece, 0, size, position);
      }
      fsyncSync(log);
    } finally {
      closeSync(log);
    }
  } finally {
    db.exec('rollback');
  }
}

/**
 * Moves the content of the log into the file, so that nothing depends any more on writes whose sync had failed.
 * @param deadline after which a log that other processes keep reading stays: it was in use before, and is sound.
 * @throws Error if the file was moved or replaced while this process waited for others.
 */
function emptyLog(db: DatabaseSync, file: OpenFile, deadline: number, { busyPause }: Times['sqlite']): void {
  const checkpoint = db.prepare('pragma wal_checkpoint(truncate)');
  while (checkpoint.get()?.busy === 1 && now() < deadline) Atomics.wait(PAUSE, 0, 0, busyPause);
  file.assertInPlace();
  const log = openSync(`${file.path}-wal`, 'r+');
  try {
    fsyncSync(log); // else the disk may still have what was in it, which is older than the file now
  } finally {
    closeSync(log);
  }
}

/**
 * Opens a catalogue's file to search it and to keep its index up to date. Its transactions are synced like those that
 * write books: without, a sync of the next write that fails would cover them, no later sync would write them, and
 * everything that is acknowledged after them in the log would be lost at a power failure.
 */
export function openForIndexing(path: string): DatabaseSync {
  const db = openExisting(path);
  db.exec(
    `pragma synchronous = normal; pragma wal_autocheckpoint = 0; pragma cache_size = ${-INDEXING_CACHE}; pragma journal_size_limit = ${LOG_SIZE}`,
  );
  return db;
}

/** Opens a file for writing, which must exist. It does not wait for other processes. */
export function openExisting(file: string): DatabaseSync {
  return new DatabaseSync(new URL(`${pathToFileURL(file)}?mode=rw`), { timeout: 0 });
}

/** @returns the catalogue in a file, opened read-only; undefined without one. */
export function openCatalogue(path: string, times: Times['sqlite']): DatabaseSync | undefined {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined; // it throws if this user may not look
  undoHalfWrite(path, times);
  const db = new DatabaseSync(path, { readOnly: true, timeout: times.busyInBulk });
  if (hasBooks(db)) return db;
  db.close();
  return undefined;
}

export function hasBooks(db: DatabaseSync): boolean {
  return (
    db.prepare("select 1 from sqlite_schema where type = 'table' and name = 'books'").get() !== undefined
  );
}

/**
 * Rolls back the unfinished write of a process that died, which a read-only connection cannot do. In WAL mode there is
 * nothing to roll back; a backup is not in WAL mode.
 */
function undoHalfWrite(path: string, { busy: timeout }: Times['sqlite']): void {
  if (!existsSync(`${path}-journal`)) return;
  const db = new DatabaseSync(path, { timeout });
  try {
    db.exec('select 1 from sqlite_schema');
  } finally {
    db.close();
  }
}

/** Retries while other processes have the file locked. */
export function retryWhileBusy<Result>(
  attempt: () => Result,
  deadline: number,
  { busyPause }: Times['sqlite'],
): Result {
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      // The low byte of an error's code is its kind.
      const isBusy = ((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY;
      if (!isBusy) throw error;
      Atomics.wait(PAUSE, 0, 0, busyPause);
      if (now() > deadline) throw error; // no work begins after it
    }
  }
}

/** Those of an index that lacks a table: with them, nobody could write. A service with an index makes them again. */
const BROKEN_TRIGGERS = `
  select name from sqlite_schema
  where name in ('book_index_on_insert', 'book_index_on_update', 'book_index_on_delete') and 2 >
    (select count(*) from sqlite_schema where name in ('book_index_queue', 'book_index_state'))`;

function isGuarded(db: DatabaseSync): boolean {
  return db.prepare("select 1 from sqlite_schema where name = 'books_on_update'").get() !== undefined;
}

/** Creates or updates the table. */
export function createStructure(db: DatabaseSync): void {
  db.exec('begin immediate');
  try {
    // autoincrement: the id of a removed book is never given out again (rule 12).
    db.exec(`
      create table if not exists books (
        id integer primary key autoincrement check (id between 1 and ${Number.MAX_SAFE_INTEGER}),
        ${DEFINITIONS}
      ) strict`);
    db.exec(REQUESTS);
    for (const { name } of db.prepare(BROKEN_TRIGGERS).all()) db.exec(`drop trigger ${name}`);
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
    if (!isOurs) throw new Error('its table "books" does not belong to this service');
    for (const { name, absent, definition } of COLUMNS) {
      const column = found.get(name);
      if (column === undefined) db.exec(`alter table books add column ${definition}`);
      else if (column.notnull === 0) db.exec(`update books set ${name} = ${absent} where ${name} is null`);
    }
    if (!String(sql).includes(inRange('year')) && !isGuarded(db)) {
      const { id } = db.prepare(`select id from books where ${fault('')}`).get() ?? {};
      if (id !== undefined) throw new Error(`the year of its book ${id} is too large: correct it`);
      db.exec(GUARDS);
    }
    db.exec('delete from books where false'); // fails here, not at the first write, if the file is read-only
    db.exec('commit');
  } catch (error) {
    if (db.isTransaction) db.exec('rollback');
    throw error;
  }
}
