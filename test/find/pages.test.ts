// The pages of `GET /books` that depend on all books, on the form of a cursor, or on long texts. The other cases are in
// conformance/finding.ts. find/oracle.test.ts tests which books are found, find/words.test.ts which words a text has.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { pageHeaders, readQuery } from '../../src/api/query.ts';
import { type RunningService, SQLITE, STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

const HUGE = 9007199254740991;

/** Queries with cursors that no page has given. */
const INVALID: readonly (readonly [query: string, named: string])[] = [
  [`cursor=${cursor(['title,id', 'emma'])}&sort=title`, 'cursor'],
  [`cursor=${cursor(['title,id', 1, 1])}&sort=title`, 'cursor'],
  [`cursor=${cursor(['title,id', '\ud800', 1])}&sort=title`, 'cursor'],
  [`cursor=${cursor(['title,id', '\0', 1])}&sort=title`, 'cursor'],
  [`cursor=${cursor(['title,id', 'emma', 1.5])}&sort=title`, 'cursor'],
  [`cursor=${cursor(['title,id', 'emma', 1, 1])}&sort=title`, 'cursor'],
  [`cursor=${cursor(['title,id', 'emma', 1])}&sort=-title`, 'cursor'],
  [`cursor=${cursor(['relevance', 0, '', 1])}&q=a&sort=id`, 'cursor'],
  [`cursor=${cursor(['relevance', 3, '', 1])}&q=a`, 'cursor'],
  [`cursor=${cursor(['relevance', HUGE, '', 1])}&q=a`, 'cursor'],
  [`cursor=${cursor({ length: 2 })}`, 'cursor'],
  [`cursor=${cursor(['id', 4])}=`, 'cursor'],
  [`cursor=${cursor(['id', 4])}.x`, 'cursor'],
  [`cursor=${cursor(['id', 1])}&offset=1`, 'offset'],
  [`offset=1&cursor=${cursor(['id', 1])}`, 'cursor'],
];

/** Queries that find books of the whole catalogue, or have a cursor, and the ids of the books that they find. */
const VALID: readonly (readonly [query: string, ids: readonly number[]])[] = [
  ['&', [1, 2, 3]],
  ['q=', [1, 2, 3]],
  ['title_contains=&author_contains=&title_starts_with=', [1, 2, 3]],
  ['author=&title=', [3]],
  ['year=01815', [1]],
  ['sort=author,-title', [3, 2, 1]],
  [`cursor=${cursor(['id', 2])}`, [3]],
  [`cursor=${cursor(['id', HUGE])}`, []],
  [`cursor=${cursor(['title,id', 'emma', 1])}&sort=title`, [2]],
];

const BOOKS: readonly Omit<Book, 'id'>[] = [
  { title: 'Emma', author: 'Jane Austen', year: 1815 },
  { title: 'Emma Brown', author: 'A. A. Milne', year: 2003 },
  { title: '', author: '', year: 0 },
];

function cursor(content: unknown): string {
  return Buffer.from(JSON.stringify(content)).toString('base64url');
}

/** The links of a page of one book. */
function linksOf(query: string, isLast = true): string {
  const read = readQuery(query, true, undefined);
  assert.ok(!('invalid' in read), query);
  const next = isLast ? undefined : [1];
  const [, links] = pageHeaders(read, { books: [], passed: 1, next, total: undefined, unindexed: 0 });
  return links as string;
}

test('rule F3: a cursor that no page has given is invalid', () => {
  for (const [query, invalid] of INVALID) {
    assert.deepEqual(readQuery(query, true, undefined), { invalid }, query);
  }
});

test('rules F1 and F4: no link leads from a page to the list', () => {
  const first = '</books?limit=100>; rel="first"';
  assert.equal(linksOf('&'), first);
  assert.equal(linksOf('offset=1'), `${first}, </books?limit=100&offset=0>; rel="prev"`);
  assert.equal(linksOf(`limit=100&cursor=${cursor(['id', 100])}`), first);
});

test('rule F4: links are left out that would make the headers too large', () => {
  for (const author of ['独'.repeat(900), "!'()~*".repeat(160)]) {
    const links = linksOf(`title=&author_starts_with=${encodeURIComponent(author)}&offset=1`, false);
    assert.ok(links.startsWith('</books?title=&author_starts_with='));
    assert.ok(links.length < 8400, `${links.length}`);
  }
});

test('rule F4: a link has the parameters as they were sent, but nothing that ends it', () => {
  const next = '</books?q=%3Cemma%3E%22&limit=1&sort=id&cursor=';
  assert.ok(linksOf('q=<emma>"&limit=1&&sort=id', false).startsWith(next));
});

for (const store of STORES) {
  describe(`the pages of a search on ${store.name}`, () => {
    let service: RunningService;

    before(async () => {
      service = await startTestService(await store.freshUrl());
      for (const book of BOOKS) await service.client.create(book);
    });
    afterEach(() => executeOn(service.dbUrl, `delete from books where id > ${BOOKS.length}`));
    after(() => service.stop());

    async function find(query: string, headers: Record<string, string> = {}) {
      const answer = await service.client.request('GET', `/books?${query}`, { headers });
      assert.equal(answer.status, 200, query);
      return { ...answer, ids: (answer.data as Book[]).map(({ id }) => id) };
    }

    test('rules F2, F3 and F8 to F10: a search finds books of the whole catalogue, or after a place', async () => {
      for (const [query, ids] of VALID) assert.deepEqual((await find(query)).ids, ids, query);
    });

    test('rule F4: a page ends before 1 MiB of texts, also with an offset', async () => {
      const title = 'long '.repeat(60_000); // 300,000 bytes
      const ids: number[] = [];
      for (let count = 0; count < 4; count += 1) ids.push((await service.client.create({ title })).id);
      const { ids: found, headers } = await find('q=long&offset=0');
      assert.deepEqual(found, ids.slice(0, 3));
      assert.match(headers.get('link') ?? '', /^<\/books\?q=long&limit=100&offset=3>; rel="next", /);
      assert.deepEqual((await find('q=long&offset=3')).ids, ids.slice(3));
    });

    test('rule F6: a total of more than 1,000 is shown on demand only', async () => {
      const rows = Array(1001).fill("('short')");
      await executeOn(service.dbUrl, `insert into books (title) values ${rows}`);
      assert.equal((await find('q=short')).headers.get('x-total-count'), null);
      const { headers } = await find('q=short', { prefer: 'count=exact' });
      assert.equal(headers.get('x-total-count'), '1001');
      assert.equal(headers.get('preference-applied'), 'count=exact');
    });
  });
}

test('rule F3: FIND=off: every query that is not empty gets 400, and the list is served', async (context) => {
  const { client, stop } = await startTestService(await SQLITE.freshUrl(), { FIND: 'off' });
  context.after(stop);
  for (const [query, name] of [
    ['q=x', 'q'],
    ['&sort=title', 'sort'],
    ['&', ''],
  ]) {
    const { status, message } = await client.request('GET', `/books?${query}`);
    assert.deepEqual({ status, message }, { status: 400, message: `Invalid query parameter: ${name}` });
  }
  assert.deepEqual(await client.list(), []);
  assert.equal((await client.request('GET', '/books?')).status, 200);
});
