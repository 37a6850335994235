// Owns: copying a consistent snapshot of a catalogue's file, with or without a service that writes to it; and locking the
// file, so that another one can replace it.
// Does not: accept damaged files, or files that are not a catalogue.

import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { backup, type DatabaseSync } from 'node:sqlite';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { companionsOf } from '../../disk.ts';
import { finalPath } from '../../final-path.ts';
import type { Times } from '../../times.ts';
import { hasBooks, openExisting, openForWriting } from './structure.ts';
import { chunksOf, IN_FILE } from './text.ts';

/** The content of a file; the checksum is the SHA-256 of the lines of its books. */
interface Content {
  readonly books: number;
  readonly checksum: string;
}

/** Called with the progress of the work; an error that it throws ends the work. */
export type OnProgress = (unit: string, done: number, total: number) => void;

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
  source.exec('begin; select 1 from books limit 1'); // the first read determines the moment
  await backup(source, to, {
    progress: ({ totalPages, remainingPages }) =>
      onProgress('pages copied', totalPages - remainingPages, totalPages),
  });
  const original = await contentOf(source, onProgress);
  source.exec('rollback'); // from here on, the WAL of the service can be emptied
  using copy = openExisting(to);
  assertSound(copy);
  const content = await contentOf(copy, onProgress);
  if (content.checksum !== original.checksum) throw new Error('the copy differs from the store');
  return content;
}

/**
 * Copies a backup into an empty file, and brings its structure up to date. The backup may be on read-only storage.
 * @returns the content of the file.
 * @throws Error with the reason. A WAL beside the backup is one: it has books that the file lacks, or is not its own.
 */
export async function copyBackup(
  path: string,
  to: string,
  times: Times['sqlite'],
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<Content> {
  const companion = companionsOf(finalPath(path)).find(existsSync);
  if (companion !== undefined)
    throw new Error(
      `${companion} exists, so ${path} may be in use or incomplete: make a backup of it, and restore that`,
    );
  await pipeline(createReadStream(path), createWriteStream(to), { signal });
  {
    using copy = openExisting(to);
    assertSound(copy);
    if (!hasBooks(copy)) throw new Error('there is no catalogue in it');
  }
  using copy = await openForWriting(to, times);
  return await contentOf(copy, onProgress);
}

/**
 * Locks a catalogue's file for this process alone, until it is closed, with the content of its WAL moved into it.
 * @throws Error when that is impossible; its `errcode` is SQLITE_BUSY when other processes have the file open.
 */
export function lockExclusively(file: string): DatabaseSync {
  const db = openExisting(file);
  try {
    // While other processes have it open, it cannot leave WAL mode. Afterwards there is no WAL, which must never be
    // beside a file other than its own. In this mode, a process that opens it now waits for the end of the
    // transaction. The first one makes a page in an empty file: SQLite does not see that an empty one has been replaced.
    db.exec('pragma journal_mode = delete; begin exclusive; commit; begin exclusive');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Makes it a single file, which can be read on read-only storage; then checks every page of it. */
function assertSound(db: DatabaseSync): void {
  db.exec('pragma journal_mode = delete');
  const found = String(db.prepare('pragma integrity_check(1)').get()?.integrity_check);
  if (found !== 'ok') throw new Error(`it is damaged (${found.replace(/^\*.*\n/, '')})`); // without a heading
}

async function contentOf(db: DatabaseSync, onProgress: OnProgress): Promise<Content> {
  const checksum = createHash('sha256');
  const counts = db.prepare('select count(*) as books, max(id) as lastId from books').get();
  for (const { text, last } of chunksOf(db, IN_FILE)) {
    checksum.update(`${text}\n`);
    onProgress('ids read', last, Number(counts?.lastId));
    await setImmediate(); // signals are handled here
  }
  return { books: Number(counts?.books), checksum: checksum.digest('hex') };
}
