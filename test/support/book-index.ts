// Owns: what searches find, an index that is kept behind, and whether an index is that of its books: it is compared with one
// that is made again. Nobody may write meanwhile.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import type { Book } from '../../conformance/service.ts';
import type { Client } from './client.ts';
import { blockOf } from './documents.ts';
import { execute } from './postgres.ts';
import { fileOf, type RunningService, startTestService } from './service.ts';
import { executeOn, holdIndex } from './sql.ts';
import { timesWith } from './times.ts';
import { waitUntil } from './wait.ts';

/** Milliseconds to wait for a service that indexes. */
const BUSY_TIMEOUT = 60_000;

/** After it, the next start makes the index again. */
export const MAKE_AGAIN = blockOf('docs/maintenance.md', 'version = 0');

/** Of a service that stops at once. */
const AT_ONCE = timesWith({ service: { lastRequest: 0 } });

/** Indexes all books, as a service does that is started and then stopped. */
export async function indexAll(dbUrl: string): Promise<void> {
  const { client, stop } = await startTestService(dbUrl, {}, undefined, AT_ONCE);
  await countFound(client, 'sort=year').finally(stop);
}

/** Leaves the new index behind. */
export async function assertIndexCorrect(dbUrl: string): Promise<void> {
  const before = await contentOf(dbUrl);
  await executeOn(dbUrl, MAKE_AGAIN);
  const again = await contentOf(dbUrl);
  const differing = before.find((row, position) => row !== again[position]) ?? again[before.length];
  assert.equal(differing, undefined, 'it differs from the index that is made again');
}

/** The rows of the index once it has all books. */
async function contentOf(dbUrl: string): Promise<readonly string[]> {
  await indexAll(dbUrl);
  if (!dbUrl.startsWith('sqlite:')) {
    return (await execute(dbUrl, 'select * from book_index order by id')).map((row) => JSON.stringify(row));
  }
  using db = new DatabaseSync(fileOf(dbUrl), { timeout: BUSY_TIMEOUT });
  db.exec("create virtual table temp.words using fts5vocab(main, 'book_index_words', 'instance')");
  const rows = ['book_index order by id', 'temp.words order by term, doc, col'].flatMap((from) =>
    db.prepare(`select * from ${from}`).all(),
  );
  return rows.map((row) => JSON.stringify(row));
}

/** The ids of the books that a search finds, of which the index lacks none. */
export async function found(client: Client, query: string): Promise<number[]> {
  const { status, data, headers } = await client.request('GET', `/books?${query}`);
  assert.deepEqual([status, headers.get('x-unindexed-books')], [200, null], query);
  return (data as Book[]).map(({ id }) => id);
}

/** How many books a search finds once the index has all. */
export async function countFound(client: Client, query: string): Promise<number> {
  let count = 0;
  await waitUntil(async () => {
    const options = { headers: { prefer: 'count=exact' } };
    const { status, headers } = await client.request('GET', `/books?${query}&limit=1`, options);
    count = Number(headers.get('x-total-count'));
    return status === 200 && headers.get('x-unindexed-books') === null;
  });
  return count;
}

/** Keeps the newest book out of the index until the returned function is called. */
export async function holdBehind({ client, dbUrl }: RunningService): Promise<() => Promise<void>> {
  for (;;) {
    await countFound(client, 'sort=year'); // all others are in it
    await executeOn(dbUrl, "insert into books (title) values ('Waiting')");
    const release = await holdIndex(dbUrl);
    const { headers } = await client.request('GET', '/books?limit=1');
    if (headers.get('x-unindexed-books') !== null) return release;
    await release(); // the service was faster
  }
}
