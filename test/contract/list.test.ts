// GET /books on every store: complete, in order and exact. The books are written directly to the store, which is the quickest way to
// create many. concurrency.test.ts shows that each list is a snapshot; slow readers, and lists that break off, are in test/nightly.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

for (const store of STORES) {
  describe(`lists on ${store.name}`, () => {
    let service: RunningService;

    before(async () => {
      service = await startTestService(await store.freshUrl());
    });

    test('rules 4 and 13: for every number of books the list is complete, ascending and exact', async () => {
      for (const count of [0, 1, 2, 999, 1000, 1001, 2000, 2001]) {
        const books = Array.from({ length: count }, (_, position) => ({
          id: 1 + position * 3,
          title: TEXTS[position % TEXTS.length] as string,
          author: TEXTS[(position * 7 + 3) % TEXTS.length] as string,
          year: (position - 500) * 1_000_003,
        }));
        await replaceBooks(service.dbUrl, books);
        assertBooks(await service.client.list(), books);
      }
    });
  });
}

/** Text that breaks where it is escaped, split or trimmed wrongly. */
const TEXTS = [
  '',
  ',',
  ',{"id":1}',
  ']}',
  '"',
  '\\',
  '\\"',
  '\\.',
  '\\N',
  "'",
  '\n',
  '\r\n\t\b\f',
  '\u0001\u0002\u001f\u007f\u0085',
  '\u2028\u2029\ufeff\uffff',
  'é, e\u0301, ß, Ж, א, ﷺ',
  '漢字かな한글',
  '📚👩‍👩‍👧‍👦𝕿𠜎',
  ' between spaces ',
  'x'.repeat(3000),
];

/** Replaces all books of a store by these, inserted in reverse order. */
async function replaceBooks(dbUrl: string, books: readonly Book[]): Promise<void> {
  await executeOn(dbUrl, 'delete from books');
  if (books.length === 0) return;
  const text = (value: string) => `'${value.replaceAll("'", "''")}'`;
  const rows = books.map(({ id, title, author, year }) => `(${id},${text(title)},${text(author)},${year})`);
  await executeOn(dbUrl, `insert into books (id, title, author, year) values ${rows.reverse().join(',')}`);
}

/** Compares book by book: the difference between two long lists would take long to print. */
function assertBooks(actual: readonly Book[], expected: readonly Book[]): void {
  assert.equal(actual.length, expected.length);
  for (const [position, book] of expected.entries()) assert.deepEqual(actual[position], book);
}
