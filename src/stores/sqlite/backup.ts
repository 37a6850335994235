// Owns: copying a consistent snapshot of a catalogue's file, with or without a service that writes to it; and locking the
// file, so that another one can replace it.
// Does not: accept damaged files, or files that are not a catalogue.

import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  openSync,
  readSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { finalPath } from '../../final-path.ts';
import type { Times } from '../../times.ts';
import { Checksum } from '../checksum.ts';
import { INDEX_NAMES } from './book-index.ts';
import { companionsOf, hasBooks, openExisting, openForWriting, SQLITE_BUSY, sizeOf } from './structure.ts';
import { AS_CSV, BookExporter, BULK_CHUNK_BOOKS } from './text.ts';

/** Pages copied between two checks for a stop: about a millisecond of work. */
const STEP_PAGES = 256;

/** The content of a file: the number of books, and the SHA-256 of their export as CSV. */
export interface Content {
  readonly books: number;
  readonly checksum: string;
}

/** Called with the progress of the work; an error that it throws ends the work. */
export type OnProgress = (unit: 'pages copied' | 'pages verified', done: number, total: number) => void;

/**
 * Copies a catalogue into an empty file.
 * @returns the content of both.
 * @throws Error with the reason, also when the copy differs.
 */
export async function copyCatalogue(
  source: DatabaseSync,
  to: string,
  onProgress: OnProgress,
): Promise<Content> {
  // A backup starts again whenever another process has written between two steps. Within a transaction that reads, it
  // sees no changes: it ends however busy the service is, and is a consistent snapshot.
  source.exec('begin');
  try {
    hasBooks(source); // the first read determines the moment
    await copyPages(source, to, onProgress);
    const copy = openExisting(to);
    try {
      assertSound(copy);
      return await readThrough(copy, onProgress, source);
    } finally {
      copy.close();
    }
  } finally {
    if (source.isTransaction) source.exec('rollback'); // SQLite ends it itself after some errors
  }
}

/** Without its owner and permissions, which `copyFile` of Node.js copies as well. */
async function copyContent(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), createWriteStream(to, { mode: 0o600 }));
}

/**
 * Copies the content of a backup into an empty file, and brings its structure up to date. The copy is in WAL mode, without
 * a log: for a start to change the mode, nobody may read. The backup is not changed, and may be on read-only storage.
 * @returns the content of the file.
 * @throws Error with the reason.
 */
export async function copyBackup(
  path: string,
  to: string,
  times: Times['sqlite'],
  onProgress: OnProgress,
): Promise<Content> {
  const backupFile = finalPath(path); // SQLite keeps a log beside the file, not beside a link to it
  // SQLite creates a log and an index for a file in WAL mode, even to read it. Without an index, no process has it
  // open.
  if (isInWalMode(backupFile) && !existsSync(`${backupFile}-shm`)) {
    await copyContent(backupFile, to);
    if (existsSync(`${backupFile}-wal`)) await copyContent(`${backupFile}-wal`, `${to}-wal`);
  } else {
    assertWithoutLog(backupFile);
    const source = new DatabaseSync(backupFile, { readOnly: true, timeout: times.busyInBulk });
    try {
      source.exec('begin');
      hasBooks(source); // else `backup` would retry for ever on a locked file
      await copyPages(source, to, onProgress);
    } finally {
      source.close();
    }
  }
  const found = openExisting(to);
  try {
    assertSound(found);
  } finally {
    found.close();
  }
  const copy = openForWriting(to, times);
  try {
    return await readThrough(copy, onProgress);
  } finally {
    copy.close();
  }
}

/** SQLite applies a log to any file that it lies beside, also to one that has never had a log. */
function assertWithoutLog(backupFile: string): void {
  const log = `${backupFile}-wal`;
  if (isInWalMode(backupFile) || sizeOf(log) === 0) return;
  throw new Error(`${log} is not its log, and would change it: move one of the two away`);
}

/** A catalogue's file that no other process has open, or can open until it is closed. */
export interface LockedFile {
  /** Whether nothing would be lost with it. */
  readonly isEmpty: boolean;
  close(): void;
}

/**
 * Locks a file for this process alone, with the content of its log moved into it.
 * @returns undefined when other processes have it open.
 * @throws Error with the reason when that is impossible.
 */
export function lockExclusively(file: string): LockedFile | undefined {
  const db = openExisting(file);
  try {
    // While other processes have it open, it cannot leave WAL mode. Afterwards there is no log, which must never be
    // beside a file other than its own. In this mode, a process that opens it now waits for the end of the
    // transaction.
    db.exec('pragma journal_mode = delete');
    // An empty file gets its first page: SQLite does not see that an empty one has been replaced.
    db.exec('begin exclusive; commit; begin exclusive');
    if (journalMode(db) === 'delete') return { isEmpty: isEmpty(db), close: () => db.close() };
  } catch (error) {
    const { errcode } = error as { errcode?: number };
    if (errcode === undefined || errcode % 256 !== SQLITE_BUSY) {
      db.close();
      throw error;
    }
  }
  db.close();
  return undefined;
}

/** Whether a path leads to a catalogue's file, or to one that SQLite keeps beside it. */
export function isPartOf(catalogue: string, path: string): boolean {
  return [catalogue, ...companionsOf(catalogue)].map(identityOf).includes(identityOf(path));
}

/** The same for all paths of one file, whether or not it exists. */
function identityOf(path: string): string {
  const found = statOf(path);
  if (found !== undefined) return `${found.dev}:${found.ino}`;
  const folder = statOf(dirname(path));
  return `${folder?.dev}:${folder?.ino}/${basename(path)}`;
}

/** @returns undefined where there is nothing, or nothing that this user may see. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** Removes the files beside one that is about to be replaced: SQLite would apply them to the new one. */
export function removeCompanions(file: string): void {
  for (const path of companionsOf(file)) rmSync(path, { force: true });
}

async function copyPages(source: DatabaseSync, to: string, onProgress: OnProgress): Promise<void> {
  await backup(source, to, {
    rate: STEP_PAGES,
    progress: ({ totalPages, remainingPages }) =>
      onProgress('pages copied', totalPages - remainingPages, totalPages),
  });
}

/** Makes it a single file, which can be read on read-only storage; then checks every page of it. */
function assertSound(db: DatabaseSync): void {
  db.exec('pragma journal_mode = delete');
  const found = String(db.prepare('pragma integrity_check(1)').get()?.integrity_check);
  if (found !== 'ok') throw new Error(`it is damaged (${found.replace(/^\*.*\n/, '')})`); // without a heading
  if (!hasBooks(db)) throw new Error('there is no catalogue in it');
}

/**
 * Reads all books.
 * @param original the catalogue that they are compared with, if any.
 */
async function readThrough(
  db: DatabaseSync,
  onProgress: OnProgress,
  original?: DatabaseSync,
): Promise<Content> {
  const checksum = new Checksum();
  const pages = number(db, 'pragma page_count');
  const last = number(db, 'select max(id) from books');
  const text = new BookExporter(db, AS_CSV, '\n', BULK_CHUNK_BOOKS);
  const expected = original && new BookExporter(original, AS_CSV, '\n', BULK_CHUNK_BOOKS);
  while (!text.isComplete) {
    const lines = text.read();
    if (expected !== undefined && (expected.read() !== lines || expected.isComplete !== text.isComplete)) {
      throw new Error('the copy differs from the store');
    }
    if (lines !== '') checksum.addText(`${lines}\n`);
    onProgress('pages verified', text.isComplete ? pages : Math.floor((pages * text.position) / last), pages);
    await setImmediate(); // signals are handled here
  }
  return { books: number(db, 'select count(*) from books'), checksum: checksum.digest() };
}

/** Whether its header is that of a SQLite file. */
export function isDatabase(file: string): boolean {
  return headerOf(file).toString('latin1', 0, 16) === 'SQLite format 3\0';
}

/** Whether its header is that of a file with a write-ahead log: 2 in the byte at 18. */
function isInWalMode(file: string): boolean {
  return headerOf(file)[18] === 2;
}

function headerOf(file: string): Buffer {
  const header = Buffer.alloc(19);
  const descriptor = openSync(file, 'r');
  try {
    readSync(descriptor, header);
  } finally {
    closeSync(descriptor);
  }
  return header;
}

/** Whether there are no books, and nothing of other programs. */
function isEmpty(db: DatabaseSync): boolean {
  try {
    const others = `
      select count(*) from sqlite_schema
      where tbl_name not in ('books', 'book_requests', 'sqlite_sequence') and name not glob '${INDEX_NAMES}'`;
    if (number(db, others) > 0) return false;
    return !hasBooks(db) || db.prepare('select 1 from books limit 1').get() === undefined;
  } catch {
    return false; // damaged: its content is unknown
  }
}

function journalMode(db: DatabaseSync): unknown {
  return db.prepare('pragma journal_mode').get()?.journal_mode;
}

function number(db: DatabaseSync, sql: string): number {
  return Number(Object.values(db.prepare(sql).get() ?? {})[0] ?? 0);
}
