// Owns: `demo`: well-known books in a temporary store, served until the process is told to end, then removed.
// Does not: use any variable but the ports, TMPDIR and LOG_LEVEL. So it opens no store of the operator, and serves this
// machine only.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type Config, readConfig } from '../config.ts';
import type { Environment } from '../environment.ts';
import { readBooks } from '../files/reading.ts';
import { Import } from '../import/importing.ts';
import { AddAll } from '../import/modes.ts';
import { PortRefused } from '../listen.ts';
import { OperatorError } from '../operator-error.ts';
import { readProjectFile } from '../project.ts';
import { readDbUrl, type StoreAt } from '../stores/open.ts';
import { TIMES } from '../times.ts';
import type { CommandContext } from './command.ts';
import { serve } from './serve.ts';

/** demo/README.md names their sources and licence. */
const BOOKS = 'src/demo/books.csv';

/** The usual ports. They are set here, and not left to their defaults, so that the start fails if one is in use. */
const USUAL_PORTS = { PORT: '8080', ADMIN_PORT: '8081', PAGE_PORT: '8082' };

/** Ports that the system chooses. */
const FREE_PORTS = { PORT: '0' };

export const HELP = `Usage: book-catalogue demo

Serves a catalogue of well-known books on this machine, with the page for librarians and /docs, until Ctrl-C. The store
is a temporary one: changes are lost at the end, and no other store is touched. Log in as admin with the password
"password".

PORT, ADMIN_PORT and PAGE_PORT set the ports. If none of them is set, and a usual port is in use, free ports are
chosen. TMPDIR is the folder for the store. Of all other variables, only LOG_LEVEL counts.
`;

export async function run({ env, stdout, stop }: CommandContext): Promise<number> {
  const { promise: hangup, resolve } = Promise.withResolvers();
  process.once('SIGHUP', resolve); // the terminal was closed
  const output = { stdout, stop: Promise.race([stop, hangup]) };
  const folder = makeFolder();
  try {
    const dbUrl = `sqlite:${join(folder, 'books.db')}`;
    const count = await makeStore(dbUrl);
    const store = `a demo with ${count} books: nothing is kept`;
    const serveOn = (ports: Environment) =>
      serve(demoConfig({ ...ports, LOG_LEVEL: env.LOG_LEVEL, DB_URL: dbUrl }), output, store);
    const { PORT, ADMIN_PORT, PAGE_PORT } = env;
    if (PORT === undefined && ADMIN_PORT === undefined && PAGE_PORT === undefined) {
      await serveOn(USUAL_PORTS).catch((error) => {
        if (error instanceof PortRefused) return serveOn(FREE_PORTS);
        throw error;
      });
    } else {
      await serveOn({ PORT, ADMIN_PORT, PAGE_PORT });
    }
    return 0;
  } finally {
    process.off('SIGHUP', resolve);
    // Again if the store is being opened at that moment.
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** @throws OperatorError */
function makeFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'book-catalogue-demo-'));
  } catch (error) {
    throw cannotMake(error);
  }
}

function cannotMake(error: unknown): OperatorError {
  const reason = (error as Error).message.replace(/\.$/, '');
  return new OperatorError(
    `No temporary store can be made: ${reason}. Set TMPDIR to a folder that can be written, with room for 10 MB.`,
  );
}

/**
 * Makes the store, with its books and their index.
 * @returns how many books it has.
 * @throws OperatorError
 */
async function makeStore(dbUrl: string): Promise<number> {
  try {
    const at = await readDbUrl(dbUrl);
    const count = await fill(at);
    await makeIndex(at);
    return count;
  } catch (error) {
    throw cannotMake(error);
  }
}

/** @returns how many books were stored. */
async function fill(at: StoreAt): Promise<number> {
  const store = await at.openBulk('write', TIMES);
  try {
    const file = Readable.from([await readProjectFile(BOOKS)]);
    const reading = await readBooks(file, { name: BOOKS, columns: {} });
    const mode = new AddAll({ store, scratch: undefined });
    const report = { note: async () => {}, ready: async () => {} };
    const importing = new Import(reading, mode, store, report, new AbortController().signal, () =>
      store.assertNewest(),
    );
    const { tally, inputError, failure } = await importing.run();
    const error = inputError ?? failure;
    if (error !== undefined) throw error;
    return tally.books;
  } finally {
    await store.close();
  }
}

/** The service would also do it, but return 503 for searches until it is done. */
async function makeIndex(at: StoreAt): Promise<void> {
  const index = await at.openIndex(TIMES);
  try {
    await index?.create();
    while (await index?.advance());
  } finally {
    await index?.close();
  }
}

/** Without warnings: a demo has the built-in pair and a random secret on purpose. */
function demoConfig(env: Environment): Config {
  return { ...readConfig(env), warnings: [] };
}
