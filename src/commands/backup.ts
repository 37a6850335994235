// Owns: `backup`: a verified copy of the SQLite store in one file, with or without a running service.

import { existsSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { readSetting } from '../config.ts';
import { reasonOf } from '../error-words.ts';
import { finalPath } from '../final-path.ts';
import { OperatorError } from '../operator-error.ts';
import { readDbUrl } from '../stores/open.ts';
import {
  copyCatalogue,
  isDatabase,
  isPartOf,
  type LockedFile,
  lockExclusively,
  type OnProgress,
  removeCompanions,
} from '../stores/sqlite/backup.ts';
import { companionsOf, openCatalogue, orphanedLog, sizeOf } from '../stores/sqlite/structure.ts';
import { counted } from '../terminal/counted.ts';
import { Progress } from '../terminal/progress.ts';
import { assertFree, makeWholeFile } from '../terminal/whole-file.ts';
import { TIMES } from '../times.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue backup FILE [--overwrite]

Writes a consistent snapshot of the SQLite store that DB_URL names to FILE, compares the two, and syncs FILE to disk.
The service may keep running. FILE appears complete or not at all. It needs no other file beside it, and can be read
on read-only storage. The printed SHA-256 is that of \`book-catalogue export\`.
For PostgreSQL, use pg_dump or pg_basebackup.

  --overwrite  replaces FILE if it exists
`;

export const OPTIONS = { overwrite: { type: 'boolean' } } as const;
export const OPERANDS = ['FILE'] as const;

export async function run(
  { env, stdout, stderr, signal }: CommandContext,
  { operands: [file = ''], options }: Arguments,
): Promise<number> {
  if (file === '-') throw new UsageError('FILE is not -: a backup is a file, so give it a name.');
  const url = readSetting('dbUrl', env);
  const { file: store } = await readDbUrl(url);
  if (store === undefined) {
    throw new OperatorError('DB_URL names a PostgreSQL store: back it up with pg_dump or pg_basebackup.');
  }
  const progress = new Progress({ stderr, env });
  const onProgress: OnProgress = (unit, done, total) => {
    signal.throwIfAborted();
    progress.at(unit, done, total);
  };
  try {
    if (isPartOf(store, file)) throw new OperatorError(`${file} is part of the store: choose another file.`);
    assertFree(file, options.overwrite === true);
    const source = openCatalogue(store, TIMES.sqlite);
    if (source === undefined) throw new OperatorError(`DB_URL: there is no catalogue at ${url}.`);
    let old: Old | undefined;
    try {
      old = claim(file, options.overwrite === true);
      const [overwrite, like] = [old?.isFile === true, modelOf(store, file)];
      const { books, checksum } = await makeWholeFile(file, overwrite, like, async (unfinished) => {
        const content = await copyCatalogue(source, unfinished, onProgress);
        if (old !== undefined) removeCompanions(finalPath(file)); // else they are those of a store that was started there
        return content;
      });
      progress.end();
      stdout.write(`${counted(books, 'book')} backed up to ${file}, verified (sha256 ${checksum}).\n`);
      return 0;
    } finally {
      source.close();
      old?.close();
    }
  } catch (error) {
    progress.end();
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`No backup was made of ${url}: ${reasonOf(error)}.`);
  }
}

/**
 * Owner and permissions of the backup: those of the store. In a folder of somebody else, the backup belongs to the user
 * who makes it: a user that systemd has made for the service may be another service's later.
 */
function modelOf(store: string, file: string): Pick<Stats, 'uid' | 'gid' | 'mode'> {
  const { uid, gid, mode } = statSync(store);
  const isOwnFolder = statSync(dirname(finalPath(file))).uid === uid;
  return isOwnFolder ? { uid, gid, mode } : { uid: -1, gid: -1, mode }; // -1: as it is
}

/** SQLite's errors for a file that is no sound database. The low byte of an error's code is its kind. */
const DAMAGED = [11, 26];

/** What a backup replaces. */
interface Old {
  /** Whether it is a file, and not only the log of one. */
  readonly isFile: boolean;
  close(): void;
}

/**
 * Makes sure that no log of another catalogue is applied to the new file.
 * @returns what is there, locked if it is a catalogue, or may become one; undefined if there is nothing.
 * @throws OperatorError when other programs have it open, or when a log without its file may hold books.
 */
function claim(file: string, overwrite: boolean): Old | undefined {
  const path = finalPath(file);
  const log = orphanedLog(path);
  if (log !== undefined && !overwrite) {
    throw new OperatorError(`${log} exists and may hold books: --overwrite removes it.`);
  }
  if (!existsSync(path)) return log === undefined ? undefined : { isFile: false, close() {} };
  const unlocked = { isFile: true, close() {} };
  if (!isDatabase(path)) {
    const other = companionsOf(path).find((companion) => existsSync(companion));
    if (other !== undefined) {
      throw new OperatorError(
        `${file} is no database, but ${other} is there: move them away, or choose another file.`,
      );
    }
    if (sizeOf(path) > 0) return unlocked;
  }
  let locked: LockedFile | undefined;
  try {
    locked = lockExclusively(path);
  } catch (error) {
    const { errcode = 0, message } = error as Error & { errcode?: number };
    if (DAMAGED.includes(errcode % 256)) return unlocked; // no program has it open
    throw new OperatorError(`${file} cannot be locked: ${message}: choose another file.`);
  }
  if (locked === undefined) {
    throw new OperatorError(`${file} is in use: stop the program that has it open, or choose another file.`);
  }
  return { isFile: true, close: () => locked.close() };
}
