// The pages of `GET /books` that depend on all books, on the form of a cursor, or on many books, on every store. The other
// cases are in conformance/finding.ts. find/oracle.test.ts tests which books are found, find/words.test.ts which words a text has.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Answer } from '../../conformance/answers.ts';
import type { Book } from '../../conformance/service.ts';
import { fill } from '../support/books.ts';
import { exchange } from '../support/client.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

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
  ['&', [1, 2, 3, 4, 5, 6]],
  ['q=', [1, 2, 3, 4, 5, 6]],
  ['q=+', [1, 2, 3, 4, 5, 6]],
  ['title_contains=&author_contains=', [1, 2, 3, 4, 5, 6]],
  ['title_starts_with=', [1, 2, 3, 4, 5, 6]],
  ['author=&title=', [6]],
  ['year=007', []],
  ['sort=author,-title', [6, 4, 5, 3, 1, 2]],
  ['limit=1000', [1, 2, 3, 4, 5, 6]],
  [`cursor=${cursor(['id', 4])}`, [5, 6]],
  [`cursor=${cursor(['id', HUGE])}`, []],
  [`cursor=${cursor(['title,id', 'emma', 2])}&sort=title`, [5, 3, 1, 4]],
];

const BOOKS: readonly Omit<Book, 'id'>[] = [
  { title: 'Pride and Prejudice', author: 'Jane Austen', year: 1813 },
  { title: 'Emma', author: 'Jane Austen', year: 1815 },
  { title: 'Ilias', author: 'Homer', year: -720 },
  { title: 'Winnie-the-Pooh', author: 'A. A. Milne', year: 1926 },
  { title: 'Emma Brown', author: 'A. A. Milne', year: 2003 },
  { title: '', author: '', year: 0 },
];

function cursor(content: unknown): string {
  return Buffer.from(JSON.stringify(content)).toString('base64url');
}

function idsOf({ data }: Answer): number[] {
  return (data as Book[]).map(({ id }) => id);
}

/** The links of an answer, by their relation. */
function linksOf({ headers }: Answer): Record<string, string> {
  const links = (headers.get('link') ?? '').matchAll(/<([^>]*)>; rel="([^"]*)"/g);
  return Object.fromEntries([...links].map(([, url, relation]) => [relation, url]));
}

for (const store of STORES) {
  describe(`the pages of a search on ${store.name}`, () => {
    let service: RunningService;

    before(async () => {
      service = await startTestService(await store.freshUrl());
      for (const book of BOOKS) await service.client.create(book);
    });
    after(() => service.stop());

    const get = (query: string, headers: Record<string, string> = {}) =>
      service.client.request('GET', `/books?${query}`, { headers });

    test('rule F1: without a query, or with an empty one, the answer is the list, byte for byte', async () => {
      const bytesOf = async (path: string) => {
        const [answer] = await exchange(service, service.client.bytes('GET', path));
        const { date: _, 'x-request-id': __, ...headers } = answer?.headers ?? {};
        return { ...answer, headers };
      };
      const list = await bytesOf('/books');
      assert.deepEqual(await bytesOf('/books?'), list);
      assert.equal(list.headers.link, undefined);
      assert.equal(list.headers['x-total-count'], undefined);
      const { data } = await get('&');
      assert.deepEqual(data, JSON.parse(Buffer.from(list.body ?? '', 'latin1').toString()).data);
    });

    for (const [query, ids] of VALID) {
      test(`rules F2, F3 and F8 to F10: ?${query}`, async () => {
        const answer = await get(query);
        assert.equal(answer.message, 'Books retrieved successfully');
        assert.deepEqual(idsOf(answer), ids);
      });
    }

    test('rule F3: a cursor that no page has given gets 400', async () => {
      for (const [query, name] of INVALID) {
        const { status, message, data } = await get(query);
        const expected = { status: 400, message: `Invalid query parameter: ${name}`, data: null };
        assert.deepEqual({ status, message, data }, expected, query);
      }
    });

    test('rules F1 and F4: no link leads from a page to the list', async () => {
      const query = `limit=100&cursor=${cursor(['id', 100])}`;
      assert.deepEqual(linksOf(await get('&')), { first: '/books?limit=100' });
      assert.deepEqual(linksOf(await get('offset=1')), {
        first: '/books?limit=100',
        prev: '/books?limit=100&offset=0',
      });
      assert.deepEqual(linksOf(await get(query)), { first: '/books?limit=100' });
    });

    test('rule F4: links are left out that would make the headers too large', async () => {
      for (const author of ['独'.repeat(900), "!'()~*".repeat(160)]) {
        const query = `title_starts_with=&author_starts_with=${encodeURIComponent(author)}&limit=1`;
        const answer = await get(`${query}&offset=1`);
        assert.equal(answer.status, 200);
        assert.ok((answer.headers.get('link') as string).length < 8400);
      }
    });

    test('rule F4: a link has the parameters as they were sent, but nothing that ends it', async () => {
      const [answer] = await exchange(
        service,
        service.client.bytes('GET', '/books?q=<emma>"&limit=1&&sort=id'),
      );
      const next = '/books?q=%3Cemma%3E%22&limit=1&sort=id';
      assert.match(
        answer?.headers.link ?? '',
        new RegExp(`^<${next.replace('?', '\\?')}&cursor=[\\w-]+>; rel="next", <`),
      );
    });
  });

  describe(`large pages on ${store.name}`, () => {
    let service: RunningService;
    const LONG = 'long '.repeat(60_000); // 300,000 bytes
    const MANY = 2500;

    before(async () => {
      const dbUrl = await store.freshUrl();
      const books = Array.from({ length: MANY }, (_, index) => {
        const id = index + 1;
        return {
          id,
          title: id <= 12 ? `${LONG}${id}` : `Short ${id}`,
          author: `Author ${id % 3}`,
          year: id % 7,
        };
      });
      await fill(dbUrl, books);
      service = await startTestService(dbUrl);
      await waitUntil(async () => (await service.client.request('GET', '/books?limit=1')).status === 200);
    });
    after(() => service.stop());

    /** All books of a search, page by page. */
    async function walk(query: string): Promise<{ ids: number[]; pages: number }> {
      const ids: number[] = [];
      let pages = 0;
      for (let path: string | undefined = `/books?${query}`; path !== undefined; pages += 1) {
        const answer = await service.client.request('GET', path);
        assert.equal(answer.status, 200);
        assert.ok(idsOf(answer).length > 0);
        ids.push(...idsOf(answer));
        path = linksOf(answer).next;
      }
      return { ids, pages };
    }

    test('rule F4: a page ends before 1 MiB of texts, and the walk goes on', async () => {
      const { data } = await service.client.request('GET', '/books?limit=100');
      assert.deepEqual(
        (data as Book[]).map(({ id }) => id),
        [1, 2, 3],
      );
      const byId = await walk('limit=1000');
      assert.deepEqual(
        byId.ids,
        Array.from({ length: MANY }, (_, index) => index + 1),
      );
      const byOffset = await walk('limit=1000&offset=0');
      assert.deepEqual(byOffset.ids, byId.ids);
    });

    test('rule F6: a total of more than 1,000 is shown on demand only', async () => {
      const { headers } = await service.client.request('GET', '/books?q=short');
      assert.equal(headers.get('x-total-count'), null);
      const counted = await service.client.request('GET', '/books?year_gte=0', {
        headers: { prefer: 'count=exact' },
      });
      const list = await service.client.list();
      assert.equal(counted.headers.get('x-total-count'), String(list.length));
      assert.equal(counted.headers.get('preference-applied'), 'count=exact');
    });
  });

  test(`F3: FIND=off on ${store.name}: every query that is not empty gets 400, and the list is served`, async (context) => {
    const { client, stop } = await startTestService(await store.freshUrl(), { FIND: 'off' });
    context.after(stop);
    for (const [query, name] of [
      ['q=x', 'q'],
      ['limit=1', 'limit'],
      ['&sort=title', 'sort'],
      ['x', 'x'],
      ['&', ''],
    ]) {
      const { status, message } = await client.request('GET', `/books?${query}`);
      assert.deepEqual({ status, message }, { status: 400, message: `Invalid query parameter: ${name}` });
    }
    assert.deepEqual(await client.list(), []);
    assert.equal((await client.request('GET', '/books?')).status, 200);
  });
}
