// The pages of `GET /books` that depend on all books, on the form of a cursor, or on long texts. The other cases are in
// conformance/finding.ts. find/oracle.test.ts tests which books are found, find/words.test.ts which words a text has.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { pageHeaders, readQuery } from '../../src/api/query.ts';
import { type RunningService, SQLITE, STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

const HUGE = 9007199254740991;

/** Cursors that no page has given, each with the other parameters, and the parameter that a refusal names. */
const INVALID: readonly (readonly [content: unknown, others: string, named?: string])[] = [
  [['title,id', 'emma'], '&sort=title'],
  [['title,id', 1, 1], '&sort=title'],
  [['title,id', '\ud800', 1], '&sort=title'],
  [['title,id', '\0', 1], '&sort=title'],
  [['title,id', 'emma', 1.5], '&sort=title'],
  [['title,id', 'emma', 1, 1], '&sort=title'],
  [['title,id', 'emma', 1], '&sort=-title'],
  [['year_unknown_last,id', '1', 1], '&sort=year_unknown_last'],
  [['author_last_word,id', 1, 1], '&sort=author_last_word'],
  [['relevance', 0, '', 1], '&q=a&sort=id'],
  [['relevance', 2, '', 1], '&q=a'],
  [['relevance', HUGE, '', 1], '&q=a'],
  [{ length: 2 }, ''],
  [['id', 4], '='],
  [['id', 4], '.x'],
  [['id', 1], '&offset=1', 'offset'],
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
  for (const [content, others, invalid = 'cursor'] of INVALID) {
    const query = `cursor=${cursor(content)}${others}`;
    assert.deepEqual(readQuery(query, true, undefined), { invalid }, query);
  }
  const offset = readQuery(`offset=1&cursor=${cursor(['id', 1])}`, true, undefined);
  assert.deepEqual(offset, { invalid: 'cursor' });
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
    });

    async function find(query: string, headers: Record<string, string> = {}) {
      const answer = await service.client.request('GET', `/books?${query}`, { headers });
      assert.equal(answer.status, 200, query);
      return { ...answer, ids: (answer.data as Book[]).map(({ id }) => id) };
    }

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
      await executeOn(service.dbUrl, `insert into books (title) values ${Array(1001).fill("('short')")}`);
      assert.equal((await find('q=short')).headers.get('x-total-count'), null);
      const { headers } = await find('q=short', { prefer: 'count=exact' });
      assert.equal(headers.get('x-total-count'), '1001');
      assert.equal(headers.get('preference-applied'), 'count=exact');
    });
  });
}

test('rule F3: FIND=off: every query that is not empty gets 400, and the list is served', async () => {
  const { client } = await startTestService(await SQLITE.freshUrl(), { FIND: 'off' });
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
