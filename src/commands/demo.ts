// Owns: `demo`: well-known books in a temporary store, served until the process is told to end, then removed.
// Does not: use any variable but the ports, TMPDIR and LOG_LEVEL. So it opens no store of the operator, and serves this
// machine only.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { readConfig } from '../config.ts';
import { readBooks } from '../files/reading.ts';
import { OperatorError } from '../operator-error.ts';
import { readProjectFile } from '../project.ts';
import { readDbUrl } from '../stores/open.ts';
import type { Times } from '../times.ts';
import type { CommandContext } from './command.ts';
import { serve } from './serve.ts';

/** demo/README.md names their sources and licence. */
const BOOKS = 'src/demo/books.csv';

export const HELP = `Usage: book-catalogue demo

Serves a catalogue of well-known books on this machine, with the page for librarians and /docs, until Ctrl-C. The store
is a temporary one: changes are lost at the end, and no other store is touched. Log in as admin with the password
"password".

PORT, ADMIN_PORT and PAGE_PORT set the ports, and TMPDIR the folder for the store. Of all other variables, only
LOG_LEVEL counts.
`;

export async function run({ env, stdout, stop, times }: CommandContext): Promise<number> {
  const { PORT, ADMIN_PORT, PAGE_PORT, LOG_LEVEL } = env;
  const hangup = once(process, 'SIGHUP').then(() => 'SIGHUP'); // the terminal was closed
  const folder = await inTmpdir(() => mkdtempSync(join(tmpdir(), 'book-catalogue-demo-')));
  try {
    const DB_URL = `sqlite:${join(folder, 'books.db')}`;
    await inTmpdir(() => makeStore(DB_URL, times));
    const config = readConfig({ PORT, ADMIN_PORT, PAGE_PORT, LOG_LEVEL, DB_URL });
    // A demo has the built-in pair and a random secret on purpose.
    const quiet = { ...config, warnings: [] };
    await serve(quiet, { stdout, stop: Promise.race([stop, hangup]), times }, 'a demo: nothing is kept');
    return 0;
  } finally {
    // Again if the store is being opened at that moment.
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function makeStore(dbUrl: string, times: Times): Promise<void> {
  const store = await (await readDbUrl(dbUrl)).openBulk('write', times);
  try {
    const file = Readable.from([await readProjectFile(BOOKS)]);
    const { batches } = await readBooks(file, { name: BOOKS, columns: {} });
    const books = (await Array.fromAsync(batches)).flatMap((batch) => batch.books);
    await store.inTransaction(() =>
      store.insertWithIds([books.map((book, at) => ({ ...book, id: at + 1 }))]),
    );
  } finally {
    await store.close();
  }
}

/** @throws OperatorError that names TMPDIR if the work fails. */
async function inTmpdir<Result>(work: () => Result): Promise<Awaited<Result>> {
  try {
    return await work();
  } catch (error) {
    const reason = (error as Error).message.replace(/\.$/, '');
    throw new OperatorError(
      `No temporary store can be made: ${reason}. Set TMPDIR to a folder that can be written, with room for 10 MB.`,
    );
  }
}
