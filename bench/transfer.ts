// Owns: measuring the commands that process all books, each in a separate process from its start to its end: the time
// and the peak memory.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMAND } from '../test/support/repository.ts';
import { distinctBooks, writeBooksFile } from './books-file.ts';
import { type Ended, runToEnd } from './processes.ts';
import { mebibytes, medians, progress } from './report.ts';
import {
  openPostgresTransfers,
  openSqliteTransfers,
  type Transfer,
  type TransferStore,
} from './transfer-stores.ts';

export interface TransferRow {
  readonly transfer: Transfer | 'copy';
  /** For a copy, from which store to which. */
  readonly store: string;
  readonly books: number;
  readonly seconds: number;
  /** Peak memory in MiB. */
  readonly peak: number;
  /** Time relative to that of the program that comes with the store, if there is one and it is installed. */
  readonly ratioToStore?: number;
  readonly storeLimit?: string;
}

/** Names of stores: one is filled by imports, the other by copies. */
const IMPORTED = 'imported';
const COPIED = 'copied';

/** @param names of stores; with both of them, books are copied from each to the other as well. */
export async function measureTransfers(
  names: readonly TransferStore['name'][],
  rounds: number,
  books: number,
): Promise<TransferRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'book-catalogue-bench-'));
  const stores: TransferStore[] = [];
  try {
    const input = join(folder, 'books.csv');
    await writeBooksFile(input, distinctBooks(books));
    if (names.includes('SQLite')) stores.push(openSqliteTransfers(folder));
    if (names.includes('PostgreSQL')) stores.push(await openPostgresTransfers());

    const samples: TransferRow[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const urls = new Map<TransferStore, string>();
      for (const store of stores) {
        const url = await store.makeEmpty(IMPORTED);
        urls.set(store, url);
        for (const transfer of store.transfers) {
          if (transfer === 'import again' && round > 1) continue; // has nothing to be compared with, and takes long
          progress(`${store.name}: ${transfer}, ${books} books, round ${round} of ${rounds}`);
          samples.push({
            transfer,
            store: store.name,
            books,
            ...(await measure(transfer, store, url, folder, input)),
          });
        }
      }
      for (const [from, url] of urls) {
        for (const to of stores.filter((other) => other !== from)) {
          const store = `${from.name} to ${to.name}`;
          progress(`${store}: copy, ${books} books, round ${round} of ${rounds}`);
          const { seconds, peakBytes } = await runOwn(['copy', url, await to.makeEmpty(COPIED)]);
          samples.push({ transfer: 'copy', store, books, seconds, peak: mebibytes(peakBytes) });
        }
      }
    }
    const groups = Map.groupBy(samples, ({ transfer, store }) => `${transfer} ${store}`);
    return [...groups.values()].map(medians);
  } finally {
    for (const store of stores) await store.remove();
    await rm(folder, { recursive: true });
  }
}

/** Measures one of our commands, then the program that it is compared with. */
async function measure(
  transfer: Transfer,
  store: TransferStore,
  url: string,
  folder: string,
  input: string,
): Promise<Pick<TransferRow, 'seconds' | 'peak' | 'ratioToStore' | 'storeLimit'>> {
  const output = join(folder, 'output');
  const { seconds, peakBytes } = await runOwn(argsOf(transfer, input, output), url);
  await rm(output, { force: true });
  const own = { seconds, peak: mebibytes(peakBytes) };
  const program = store.program(transfer, IMPORTED, input, output);
  if (program === undefined) return own;
  const limit = await runToEnd(program.args);
  await rm(output, { force: true });
  return { ...own, ratioToStore: seconds / limit.seconds, storeLimit: program.name };
}

function argsOf(transfer: Transfer, input: string, output: string): readonly string[] {
  switch (transfer) {
    case 'import':
    case 'import again':
      return ['import', input];
    case 'export csv':
      return ['export', output, '--format', 'csv'];
    case 'export json':
      return ['export', output, '--format', 'json'];
    case 'export jsonl':
      return ['export', output, '--format', 'jsonl'];
    case 'backup':
      return ['backup', output];
  }
}

/** @param args one of our commands and its arguments. */
function runOwn(args: readonly string[], dbUrl?: string): Promise<Ended> {
  return runToEnd([...COMMAND, ...args], dbUrl === undefined ? {} : { DB_URL: dbUrl });
}
