// Owns: `backup`: a verified copy of the SQLite store in one file, with or without a running service.

import { statSync } from 'node:fs';
import { readSetting } from '../config.ts';
import { OperatorError } from '../operator-error.ts';
import { readSecretFile } from '../secret-file.ts';
import { readDbUrl } from '../stores/open.ts';
import { copyCatalogue, isPartOf } from '../stores/sqlite/backup.ts';
import { openCatalogue } from '../stores/sqlite/structure.ts';
import { StepProgress } from '../terminal/steps.ts';
import { assertFree, makeWholeFile } from '../terminal/whole-file.ts';
import type { Arguments, CommandContext } from './command.ts';

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
    try {
      const { books, checksum } = await makeWholeFile(file, statSync(store), (unfinished) =>
        copyCatalogue(source, unfinished, (unit, done, total) => steps.at(unit, done, total)),
      );
      steps.end();
      stdout.write(`${books} books backed up to ${file}, verified (sha256 ${checksum}).\n`);
      return 0;
    } finally {
      source.close();
    }
  } catch (error) {
    steps.end();
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`No backup was made of ${url}: ${(error as Error).message}.`);
  }
}
