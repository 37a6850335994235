// How each store reads a page in an order of rule F9: from its place on, in the order of an index. Otherwise it would read and sort all
// books, which takes seconds for a million. The oracle tests what it finds.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { type Place, readSort, type SortBy } from '../../src/books/search.ts';
import { POSTGRES_DIALECT } from '../../src/stores/postgres/dialect.ts';
import { SearchStatement, type Statement } from '../../src/stores/search-sql.ts';
import { SQLITE_DIALECT } from '../../src/stores/sqlite/dialect.ts';
import { indexAll } from '../support/book-index.ts';
import { connectTo } from '../support/postgres.ts';
import { fileOf, POSTGRES, SQLITE, testOnPostgres } from '../support/service.ts';

/** Orders, and a place in each. */
const PLACES: readonly (readonly [sort: string, place: Place])[] = [
  ['title_without_article', ['moon', 7]],
  ['-title_without_article', ['moon', 7]],
  ['author_last_word', ['austen jane', 7]],
  ['-author_last_word', ['austen jane', 7]],
  ['author_last_word', ['', 7]],
  ['year_unknown_last', [-5, 7]],
  ['year_unknown_last', [1815, 7]],
  ['-year_unknown_last', [-5, 7]],
  ['year_unknown_last', [0, 7]],
];

function readsOf(
  dialect: typeof SQLITE_DIALECT,
): (readonly [name: string, statement: Statement, after: Place])[] {
  return PLACES.map(([sort, after]) => {
    const order = readSort(sort) as [SortBy];
    const part = { order, after, offset: 0, most: 20 };
    const read = new SearchStatement(dialect).readInOrder(
      order[0].field,
      { words: [], conditions: [] },
      part,
    );
    return [`${sort} after ${after[0]}`, read, after];
  });
}

test('rule F9: SQLite reads each order from its place on', async () => {
  const dbUrl = await SQLITE.freshUrl();
  await indexAll(dbUrl);
  using db = new DatabaseSync(fileOf(dbUrl));
  db.function('in_time', () => 1);
  for (const [name, { sql, values }, after] of readsOf(SQLITE_DIALECT)) {
    const plan = db.prepare(`explain query plan ${sql}`).all(...values);
    const steps = plan.map(({ detail }) => String(detail));
    const sorts = steps.filter((step) => step.startsWith('USE TEMP B-TREE'));
    assert.equal(sorts.length, 1, `${name}: only the books of the page are sorted\n${steps.join('\n')}`);
    for (const step of steps) assert.doesNotMatch(step, /^SCAN .*book_index_/, name);
    // It would begin there, and pass over the years before the place.
    if (after[0] === 1815) assert.doesNotMatch(sql, /i\.year > 0/, name);
  }
});

testOnPostgres('rule F9: PostgreSQL reads each order from its place on', async (context) => {
  const dbUrl = await POSTGRES.freshUrl();
  await indexAll(dbUrl);
  const client = await connectTo(context, dbUrl);
  // Left alone, it sorts what is small.
  await client.query('set enable_sort = off; set enable_seqscan = off; set enable_bitmapscan = off');
  for (const [name, { sql, values }] of readsOf(POSTGRES_DIALECT)) {
    const { rows } = await client.query(`explain (costs off) ${sql}`, [...values]);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    assert.equal(
      plan.match(/\bSort$/gm)?.length,
      1,
      `${name}: only the books of the page are sorted\n${plan}`,
    );
    assert.doesNotMatch(plan, /using book_index_(?!pkey).*\n(?!\s*Index Cond)/, name);
  }
});
