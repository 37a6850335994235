// Owns: `backup`: a verified copy of the SQLite store in one file, with or without a running service.

import { existsSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { readSetting } from '../config.ts';
import { finalPath } from '../final-path.ts';
import { OperatorError } from '../operator-error.ts';
import { readSecretFile } from '../secret-file.ts';
import { readDbUrl } from '../stores/open.ts';
import {
  copyCatalogue,
  isDatabase,
  isPartOf,
  type LockedFile,
  lockExclusively,
  removeCompanions,
} from '../stores/sqlite/backup.ts';
import { companionsOf, openCatalogue, orphanedLog } from '../stores/sqlite/structure.ts';
import { counted } from '../terminal/counted.ts';
import { StepProgress } from '../terminal/steps.ts';
import { assertFree, makeWholeFile } from '../terminal/whole-file.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue backup FILE [--overwrite]

Writes the whole SQLite store that DB_URL names, as of one moment, to FILE, compares the two, and syncs FILE to disk.
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
  const url = readSetting('dbUrl', env, readSecretFile);
  const { file: store } = await readDbUrl(url);
  if (store === undefined) {
    throw new OperatorError('DB_URL names a PostgreSQL store: back it up with pg_dump or pg_basebackup.');
  }
  const steps = new StepProgress({ stderr, env }, signal);
  try {
    if (isPartOf(store, file)) throw new OperatorError(`${file} is part of the store: choose another file.`);
    assertFree(file, options.overwrite === true);
    const source = openCatalogue(store);
    if (source === undefined) throw new OperatorError(`DB_URL: there is no catalogue at ${url}.`);
    let replaced: LockedFile | undefined;
    try {
      replaced = claim(file, options.overwrite === true);
      const { books, checksum } = await makeWholeFile(file, modelOf(store, file), async (unfinished) => {
        const content = await copyCatalogue(source, unfinished, (unit, done, total) =>
          steps.at(unit, done, total),
        );
        removeCompanions(finalPath(file));
        return content;
      });
      steps.end();
      stdout.write(`${counted(books, 'book')} backed up to ${file}, verified (sha256 ${checksum}).\n`);
      return 0;
    } finally {
      source.close();
      replaced?.close();
    }
  } catch (error) {
    steps.end();
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`No backup was made of ${url}: ${(error as Error).message}.`);
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

/**
 * Makes sure that no log of another catalogue is applied to the new file.
 * @returns the existing file, locked; undefined if there is none, or no catalogue in it.
 * @throws OperatorError when other programs have it open, or when a log without its file may hold books.
 */
function claim(file: string, overwrite: boolean): LockedFile | undefined {
  const path = finalPath(file);
  const log = orphanedLog(path);
  if (log !== undefined && !overwrite) {
    throw new OperatorError(`${log} exists and may hold books: --overwrite removes it.`);
  }
  if (!existsSync(path)) return undefined;
  if (!isDatabase(path)) {
    const other = companionsOf(path).find((companion) => existsSync(companion));
    if (other === undefined) return undefined;
    throw new OperatorError(
      `${file} is no database, but ${other} is there: move them away, or choose another file.`,
    );
  }
  let locked: LockedFile | undefined;
  try {
    locked = lockExclusively(path);
  } catch {
    return undefined; // it is damaged, so no program has it open
  }
  if (locked === undefined) {
    throw new OperatorError(`${file} is in use: stop the program that has it open, or choose another file.`);
  }
  return locked;
}
