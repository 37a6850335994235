// Owns: files as a disk has them: their sizes, syncing one, and the names of those that SQLite keeps beside one.

import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';

/** The endings of a log of writes, of its index, and of the journal of other modes. */
const COMPANIONS = ['-wal', '-shm', '-journal'];

/** The files that SQLite keeps beside a file. */
export function companionsOf(file: string): string[] {
  return COMPANIONS.map((suffix) => `${file}${suffix}`);
}

/** Syncs the content of a file, or the names of the files in a folder, to disk. */
export async function sync(path: string): Promise<void> {
  await using file = await open(path);
  await file.sync();
}

/** In bytes; 0 if the file is missing. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
