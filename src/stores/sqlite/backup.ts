// Owns: a catalogue's file copied as it is at one moment, beside a service that writes or without one; and taken out
// of use, so that another one can take its place. Refuses what is damaged, and what is no catalogue.

import { closeSync, copyFileSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Checksum } from '../checksum.ts';
import { BULK_BUSY_TIMEOUT, hasBooks, openForWriting } from './structure.ts';
import { AS_CSV, BookExporter, BULK_CHUNK_BOOKS } from './text.ts';

/** Pages copied between two looks at whether to go on: a millisecond or so. */
const STEP_PAGES = 256;

const SQLITE_BUSY = 5;

/** What SQLite keeps beside a file: its log, the log's index, the journal of other modes. */
const SIDECARS = ['-wal', '-shm', '-journal'];

/** What a file holds: how many books, and the SHA-256 of their export as CSV. */
export interface Content {
  readonly books: number;
  readonly checksum: string;
}

/** Hears how far the work is; what it throws ends the work. */
export type OnProgress = (unit: 'pages copied' | 'pages verified', done: number, total: number) => void;

/**
 * Copies a catalogue into an empty file.
 * @returns what both of them hold.
 * @throws Error with the reason, also when the copy turns out to differ.
 */
export async function copyCatalogue(
  source: DatabaseSync,
  to: string,
  onProgress: OnProgress,
): Promise<Content> {
  // A backup begins anew whenever another process has written between two steps. Within a transaction that reads,
  // nothing it sees changes: however busy the service, it ends, and is one moment's state.
  source.exec('begin');
  try {
    hasBooks(source); // the moment is that of the first read
    await copyPages(source, to, onProgress);
    const copy = openExisting(to);
    try {
      assertSound(copy);
      return await readThrough(copy, onProgress, source);
    } finally {
      copy.close();
    }
  } finally {
    source.exec('rollback');
  }
}

/**
 * Puts the content of a backup into an empty file, brought up to date. The backup stays as it is, and may be where
 * nothing can be written.
 * @returns what the file holds.
 * @throws Error with the reason.
 */
export async function copyBackup(backupFile: string, to: string, onProgress: OnProgress): Promise<Content> {
  // Of a file in WAL mode SQLite makes a log and an index, even to read it. Where there is no index nobody has it open.
  if (isInWalMode(backupFile) && !existsSync(`${backupFile}-shm`)) {
    copyFileSync(backupFile, to);
    if (existsSync(`${backupFile}-wal`)) copyFileSync(`${backupFile}-wal`, `${to}-wal`);
  } else {
    const source = new DatabaseSync(backupFile, { readOnly: true, timeout: BULK_BUSY_TIMEOUT });
    try {
      source.exec('begin');
      hasBooks(source); // or a file that is locked would be asked for its pages for ever
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
  const copy = openForWriting(to);
  try {
    const content = await readThrough(copy, onProgress);
    copy.exec('pragma journal_mode = delete');
    return content;
  } finally {
    copy.close();
  }
}

/** A catalogue's file that nobody else has open, nor can open until it is closed. */
export interface LockedFile {
  /** Nothing would be lost with it. */
  readonly isEmpty: boolean;
  close(): void;
}

/**
 * Takes a file out of use, all of it in the one file.
 * @returns undefined when others have it open.
 * @throws Error with the reason when that cannot be done.
 */
export function lockExclusively(file: string): LockedFile | undefined {
  const db = openExisting(file);
  try {
    // While others have it open it cannot leave WAL mode; afterwards there is no log, which must never lie beside
    // another file than its own. In this mode who comes now waits for the end of the transaction.
    db.exec('pragma journal_mode = delete');
    db.exec('begin exclusive');
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
  const identities = ['', ...SIDECARS].map((suffix) => identityOf(`${catalogue}${suffix}`));
  return identities.includes(identityOf(path));
}

/** The same for all names of a file, and for all names that it could get. */
function identityOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined) return `${found.dev}:${found.ino}`;
  const folder = statSync(dirname(path), { throwIfNoEntry: false });
  return `${folder?.dev}:${folder?.ino}/${basename(path)}`;
}

/** What a file that has gone has left behind; another one in its place would be taken for its own. */
export function leftBehind(file: string): string[] {
  return SIDECARS.map((suffix) => `${file}${suffix}`).filter((path) => existsSync(path));
}

async function copyPages(source: DatabaseSync, to: string, onProgress: OnProgress): Promise<void> {
  await backup(source, to, {
    rate: STEP_PAGES,
    progress: ({ totalPages, remainingPages }) =>
      onProgress('pages copied', totalPages - remainingPages, totalPages),
  });
}

/** Opens a file for writing that must be there. */
function openExisting(file: string): DatabaseSync {
  return new DatabaseSync(new URL(`${pathToFileURL(file)}?mode=rw`));
}

/** Makes it one file by itself, which can be read where nothing can be written; then looks at every page of it. */
function assertSound(db: DatabaseSync): void {
  db.exec('pragma journal_mode = delete');
  const found = String(db.prepare('pragma integrity_check(1)').get()?.integrity_check);
  if (found !== 'ok') throw new Error(`it is damaged (${found.replace(/^\*.*\n/, '')})`); // without a heading
  if (!hasBooks(db)) throw new Error('there is no catalogue in it');
}

/**
 * Reads all books.
 * @param original what they are compared with, if anything.
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
      throw new Error('the copy is not what was read');
    }
    if (lines !== '') checksum.addText(`${lines}\n`);
    onProgress('pages verified', text.isComplete ? pages : Math.floor((pages * text.position) / last), pages);
    await setImmediate(); // signals first
  }
  return { books: number(db, 'select count(*) from books'), checksum: checksum.digest() };
}

/** Whether its header says that it has a write-ahead log: 2 in the byte at 18. */
function isInWalMode(file: string): boolean {
  const header = Buffer.alloc(19);
  const descriptor = openSync(file, 'r');
  try {
    readSync(descriptor, header);
  } finally {
    closeSync(descriptor);
  }
  return header[18] === 2;
}

/** Whether there are no books, and nothing of anybody else's. */
function isEmpty(db: DatabaseSync): boolean {
  try {
    const others = "select count(*) from sqlite_schema where name not in ('books', 'sqlite_sequence')";
    if (number(db, others) > 0) return false;
    return !hasBooks(db) || db.prepare('select 1 from books limit 1').get() === undefined;
  } catch {
    return false; // damaged: nobody can tell what is in it
  }
}

function journalMode(db: DatabaseSync): unknown {
  return db.prepare('pragma journal_mode').get()?.journal_mode;
}

function number(db: DatabaseSync, sql: string): number {
  return Number(Object.values(db.prepare(sql).get() ?? {})[0] ?? 0);
}
