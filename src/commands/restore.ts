// Owns: `restore`: replaces the SQLite store with a backup. At every moment the store is the old one or the new one,
// complete.

import { closeSync, existsSync, openSync, rmSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { readSetting } from '../config.ts';
import { reasonOf } from '../error-words.ts';
import { OperatorError } from '../operator-error.ts';
import { readDbUrl } from '../stores/open.ts';
import {
  copyBackup,
  isPartOf,
  type LockedFile,
  lockExclusively,
  type OnProgress,
  removeCompanions,
} from '../stores/sqlite/backup.ts';
import { makeFolderOf, orphanedLog } from '../stores/sqlite/structure.ts';
import { counted } from '../terminal/counted.ts';
import { Progress } from '../terminal/progress.ts';
import { makeWholeFile } from '../terminal/whole-file.ts';
import { TIMES } from '../times.ts';
import type { Arguments, CommandContext } from './command.ts';

export const HELP = `Usage: book-catalogue restore FILE [--overwrite]

Replaces the SQLite store that DB_URL names with the books of FILE, a backup made by \`book-catalogue backup\`. The
service must be stopped. FILE is verified first and not changed. If the command is killed at any moment, the old store
or the new one is in place.

  --overwrite  replaces a store that has books, which are lost
`;

export const OPTIONS = { overwrite: { type: 'boolean' } } as const;
export const OPERANDS = ['FILE'] as const;

export async function run(
  { env, stdout, stderr, signal }: CommandContext,
  { operands: [file = ''], options }: Arguments,
): Promise<number> {
  const url = readSetting('dbUrl', env);
  const { file: path } = await readDbUrl(url);
  if (path === undefined) {
    throw new OperatorError('DB_URL names a PostgreSQL store: restore it with pg_restore or psql.');
  }
  const progress = new Progress({ stderr, env });
  const onProgress: OnProgress = (unit, done, total) => {
    signal.throwIfAborted();
    progress.at(unit, done, total);
  };
  try {
    const backup = statSync(file, { throwIfNoEntry: false });
    if (backup === undefined) throw new OperatorError(`${file} does not exist.`);
    if (!backup.isFile()) throw new OperatorError(`${file} is not a file.`);
    const old = statSync(path, { throwIfNoEntry: false });
    if (old?.isFile() === false) {
      throw new OperatorError(`DB_URL: ${url} is not a file.`);
    }
    if (isPartOf(path, file)) throw new OperatorError(`${file} is part of the store: choose a backup.`);
    const store = claim(path, url, options.overwrite === true);
    const claimed = statSync(path);
    try {
      const model = old ?? modelOf(path);
      const { books, checksum } = await makeWholeFile(path, true, model, async (unfinished) => {
        if (old !== undefined && statSync(unfinished).uid !== old.uid) {
          throw new OperatorError(`DB_URL: ${url} belongs to another user: run restore as that user.`);
        }
        const content = await copyBackup(file, unfinished, TIMES.sqlite, onProgress);
        removeCompanions(path);
        return content;
      });
      progress.end();
      stdout.write(`${counted(books, 'book')} restored to ${url} (sha256 ${checksum}).\n`);
      return 0;
    } catch (error) {
      if (old === undefined && statSync(path, { throwIfNoEntry: false })?.ino === claimed.ino) rmSync(path);
      throw error;
    } finally {
      store.close(); // after the new one is in place: no process begins on the old one
    }
  } catch (error) {
    progress.end();
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`${url} was not restored: ${reasonOf(error)}.`);
  }
}

/**
 * Locks the store: an empty file if there is none, so that no service can begin one that would then be replaced.
 * @throws OperatorError when it must not be replaced. A log without its file is one reason: no lock keeps a service from
 * beginning a store in the moment after the log has been removed.
 */
function claim(path: string, url: string, overwrite: boolean): LockedFile {
  if (!existsSync(path)) {
    makeFolderOf(path);
    const log = orphanedLog(path);
    if (log !== undefined) {
      throw new OperatorError(
        `DB_URL: ${url} is missing, but ${log} exists and may hold books: move it away.`,
      );
    }
    closeSync(openSync(path, 'wx'));
  }
  const store = lockOrRefuse(path, url);
  if (store.isEmpty || overwrite) return store;
  store.close();
  throw new OperatorError(`DB_URL: ${url} has books already: --overwrite replaces it.`);
}

function lockOrRefuse(path: string, url: string): LockedFile {
  let store: LockedFile | undefined;
  try {
    store = lockExclusively(path);
  } catch (error) {
    throw new OperatorError(
      `DB_URL: ${url} cannot be replaced: ${(error as Error).message}. If it is damaged, stop the service, move it away, and restore again.`,
    );
  }
  if (store === undefined) throw new OperatorError(`DB_URL: ${url} is in use: stop the service first.`);
  return store;
}

/** Owner and permissions of a file where there was none. Its folder's owner runs the service. */
function modelOf(path: string): Pick<Stats, 'uid' | 'gid' | 'mode'> {
  const { uid, gid } = statSync(dirname(path));
  return { uid, gid, mode: 0o600 };
}
