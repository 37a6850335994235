// Owns: `restore`: replaces the SQLite store with a backup. At every moment the store is the old one or the new one,
// complete.

import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { readSetting } from '../config.ts';
import { reasonOf } from '../error-words.ts';
import { finalPath } from '../final-path.ts';
import { OperatorError } from '../operator-error.ts';
import { readDbUrl } from '../stores/open.ts';
import { copyBackup, lockExclusively } from '../stores/sqlite/backup.ts';
import { isOfKind, SQLITE_BUSY } from '../stores/sqlite/faults.ts';
import { makeFolderOf } from '../stores/sqlite/structure.ts';
import { counted } from '../terminal/counted.ts';
import { writeLine } from '../terminal/printable.ts';
import { Progress } from '../terminal/progress.ts';
import { makeWholeFile } from '../terminal/whole-file.ts';
import type { Arguments, CommandContext } from './command.ts';

export const HELP = `Usage: book-catalogue restore FILE [--overwrite]

Replaces the SQLite store that DB_URL names with the books of FILE, a backup made by \`book-catalogue backup\`. The
service must be stopped. FILE is verified first and not changed. If the command is killed at any moment, the old store
or the new one is in place.

  --overwrite  replaces a store that exists; its books are lost
`;

export const OPTIONS = { overwrite: { type: 'boolean' } } as const;
export const OPERANDS = ['FILE'] as const;

export async function run(
  { env, stdout, stderr, signal, times }: CommandContext,
  { operands: [file = ''], options }: Arguments,
): Promise<number> {
  const url = readSetting('dbUrl', env);
  const { file: store } = await readDbUrl(url);
  if (store === undefined) {
    throw new OperatorError('DB_URL names a PostgreSQL store: restore it with pg_restore or psql.');
  }
  if (finalPath(file) === store) throw new OperatorError(`${file} is the store: choose a backup.`);
  const overwrite = options.overwrite === true;
  const progress = new Progress({ stderr, env });
  try {
    makeFolderOf(store);
    // Until the new one is in place, no service begins on the old one.
    using _old = overwrite && existsSync(store) ? lock(store, url) : undefined;
    const { books, checksum } = await makeWholeFile(store, overwrite, (unfinished) =>
      copyBackup(file, unfinished, times.sqlite, signal, (unit, done, total) => {
        signal.throwIfAborted();
        progress.at(unit, done, total);
      }),
    ).finally(() => progress.end());
    writeLine(stdout, `${counted(books, 'book')} restored to ${url} (sha256 ${checksum}).`);
    return 0;
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`${url} was not restored: ${reasonOf(error)}.`);
  }
}

function lock(store: string, url: string): DatabaseSync {
  try {
    return lockExclusively(store);
  } catch (error) {
    if (isOfKind(error, SQLITE_BUSY)) {
      throw new OperatorError(`DB_URL: ${url} is in use: stop the service first.`);
    }
    throw new OperatorError(
      `DB_URL: ${url} cannot be replaced: ${(error as Error).message}. If it is damaged, stop the service, move it away, and restore again.`,
    );
  }
}
