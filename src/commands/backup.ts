// Owns: `backup`: a verified copy of the SQLite store in one file, with or without a running service.

import { readSetting } from '../config.ts';
import { reasonOf } from '../error-words.ts';
import { finalPath } from '../final-path.ts';
import { OperatorError } from '../operator-error.ts';
import { readDbUrl } from '../stores/open.ts';
import { copyCatalogue } from '../stores/sqlite/backup.ts';
import { openCatalogue } from '../stores/sqlite/structure.ts';
import { counted } from '../terminal/counted.ts';
import { writeLine } from '../terminal/printable.ts';
import { Progress } from '../terminal/progress.ts';
import { makeWholeFile } from '../terminal/whole-file.ts';
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
  { env, stdout, stderr, signal, times }: CommandContext,
  { operands: [file = ''], options }: Arguments,
): Promise<number> {
  if (file === '-') throw new UsageError('FILE is not -: a backup is a file, so give it a name.');
  const url = readSetting('dbUrl', env);
  const { file: store } = await readDbUrl(url);
  if (store === undefined) {
    throw new OperatorError('DB_URL names a PostgreSQL store: back it up with pg_dump or pg_basebackup.');
  }
  if (finalPath(file) === store) throw new OperatorError(`${file} is the store: choose another file.`);
  const progress = new Progress({ stderr, env });
  try {
    const { books, checksum } = await makeWholeFile(file, options.overwrite === true, async (unfinished) => {
      using source = openCatalogue(store, times.sqlite);
      if (source === undefined) throw new OperatorError(`DB_URL: there is no catalogue at ${url}.`);
      return await copyCatalogue(source, unfinished, (unit, done, total) => {
        signal.throwIfAborted();
        progress.at(unit, done, total);
      });
    }).finally(() => progress.end());
    writeLine(stdout, `${counted(books, 'book')} backed up to ${file}, verified (sha256 ${checksum}).`);
    return 0;
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`No backup was made of ${url}: ${reasonOf(error)}.`);
  }
}
