// Owns: `backup`. A verified copy of the embedded store in one file, beside a service or without one.

import { statSync } from 'node:fs';
import { readStoreUrl } from '../config.ts';
import { OperatorError } from '../operator-error.ts';
import { readSecretFile } from '../secret-file.ts';
import { readDbUrl } from '../stores/open.ts';
import { copyCatalogue, isPartOf } from '../stores/sqlite/backup.ts';
import { openCatalogue } from '../stores/sqlite/structure.ts';
import { StepProgress } from '../terminal/steps.ts';
import { assertFree, makeWholeFile } from '../terminal/whole-file.ts';
import type { Arguments, CommandContext } from './command.ts';

export const HELP = `Usage: book-catalogue backup FILE [--overwrite]

Writes all of the SQLite store that DB_URL names, as it is at one moment, to FILE, compares the two, and puts it on
the disk. The service may go on meanwhile. FILE is there whole or not at all; it needs no other file beside it, and
can be kept where nothing can be written. The SHA-256 that is printed is that of \`book-catalogue export\`.
PostgreSQL has tools of its own: pg_dump, pg_basebackup.

  --overwrite  FILE may be there already
`;

export const OPTIONS = { overwrite: { type: 'boolean' } } as const;
export const OPERANDS = ['FILE'] as const;

export async function run(
  { env, stdout, stderr, stop }: CommandContext,
  { operands: [file = ''], options }: Arguments,
): Promise<number> {
  const url = readStoreUrl(env, readSecretFile);
  const { file: store } = await readDbUrl(url);
  if (store === undefined) {
    throw new OperatorError(
      'DB_URL: backup is for SQLite; PostgreSQL is backed up by pg_dump or pg_basebackup.',
    );
  }
  const steps = new StepProgress({ stderr, env }, stop);
  try {
    if (isPartOf(store, file)) throw new OperatorError(`${file} is of the store itself: name another file.`);
    assertFree(file, options.overwrite === true);
    const source = openCatalogue(store);
    if (source === undefined) throw new OperatorError(`DB_URL: there are no books at ${url}.`);
    try {
      const { books, checksum } = await makeWholeFile(file, statSync(store), (unfinished) =>
        copyCatalogue(source, unfinished, (unit, done, total) => steps.at(unit, done, total)),
      );
      steps.end();
      stdout.write(`${books} books are in ${file}, verified (sha256 ${checksum}).\n`);
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
