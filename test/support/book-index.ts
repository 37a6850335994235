// Owns: whether an index is that of its books: it is compared with one that is made again. Nobody may write meanwhile.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { runCommand } from './command.ts';
import { execute } from './postgres.ts';
import { fileOf } from './service.ts';

/** Milliseconds to wait for a service that indexes. */
const BUSY_TIMEOUT = 60_000;

/** Leaves the new index behind. */
export async function assertIndexCorrect(dbUrl: string): Promise<void> {
  const before = await contentOf(dbUrl, []);
  const rebuilt = await contentOf(dbUrl, ['--rebuild']);
  const differing = before.find((row, position) => row !== rebuilt[position]) ?? rebuilt[before.length];
  assert.equal(differing, undefined, 'it differs from the rebuilt index');
}

/** The rows of the index after the command. */
async function contentOf(dbUrl: string, args: readonly string[]): Promise<readonly string[]> {
  const { code, stderr } = await runCommand(['index', ...args], { DB_URL: dbUrl });
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  if (!dbUrl.startsWith('sqlite:')) {
    return (await execute(dbUrl, 'select * from book_index order by id')).map((row) => JSON.stringify(row));
  }
  const db = new DatabaseSync(fileOf(dbUrl), { timeout: BUSY_TIMEOUT });
  db.exec("create virtual table temp.words using fts5vocab(main, 'book_index_words', 'instance')");
  const rows = ['book_index order by id', 'temp.words order by term, doc, col'].flatMap((from) =>
    db.prepare(`select * from ${from}`).all(),
  );
  db.close();
  return rows.map((row) => JSON.stringify(row));
}
