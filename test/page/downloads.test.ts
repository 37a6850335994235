// Files of books on the page's port: their bytes, their order, whom they are for, and their end if the store fails. Titles name the
// rules of docs/contract.md.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import type { Times } from '../../src/times.ts';
import { countFound, holdBehind } from '../support/book-index.ts';
import { booksOf, exportOf, fill, manyBooks } from '../support/books.ts';
import { bare, Connection, readEnvelope, request } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { compose } from '../support/raw-requests.ts';
import {
  pageOf,
  type RunningService,
  SQLITE,
  STORES,
  startServiceProcess,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

const TYPES = {
  csv: 'text/csv; charset=utf-8',
  json: 'application/json; charset=utf-8',
  jsonl: 'application/jsonl; charset=utf-8',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
};
const FORMATS = Object.keys(TYPES) as (keyof typeof TYPES)[];

const ODD = { title: 'a "},{"id":1,"quoted"},{', author: '=1+1\r\n\u0001\u2028', year: -1 };
/** Of a service that does not wait long for its index. */
const SOON_BEHIND = timesWith({ sqlite: { catchUp: 50 }, postgres: { catchUp: 50 } });
/** More than a page of a search, or a part of a list, has. */
const BOOKS: readonly Book[] = [
  { id: 7, ...ODD },
  ...manyBooks(2100).map((book) => ({ ...book, id: book.id + 10 })),
];

for (const { name, freshUrl } of STORES) {
  describe(`downloads, on ${name}`, { concurrency: 2 }, () => {
    test('X1: a file has the bytes of the command export, and its head says so to HEAD too', async (context) => {
      for (const books of [[], BOOKS]) {
        const service = await start(context, await freshUrl(), books);
        for (const format of FORMATS) {
          const file = join(temporaryFolder(), `books.${format}`);
          assert.equal((await runCommand(['export', file], { DB_URL: service.dbUrl })).code, 0);
          const answer = await get(service, `/books.${format}`);
          assert.equal(answer.status, 200);
          assert.ok(Buffer.from(await answer.arrayBuffer()).equals(readFileSync(file)), format);
          for (const { headers } of [answer, await get(service, `/books.${format}`, undefined, 'HEAD')]) {
            const {
              date,
              connection,
              'keep-alive': _,
              'transfer-encoding': __,
              ...others
            } = Object.fromEntries(headers);
            assert.ok(date && connection);
            assert.deepEqual(others, {
              'content-type': TYPES[format],
              'content-disposition': 'attachment',
              'x-content-type-options': 'nosniff',
              'cache-control': 'no-store',
              'x-request-id': others['x-request-id'],
            });
          }
        }
        assertSame(await (await get(service, '/books.csv?sort=id')).text(), exportOf(books));
      }
    });

    test('X2: a search has every book that it finds, in its order, or the name of what no file has', async (context) => {
      const service = await start(context, await freshUrl(), BOOKS);
      const some = BOOKS.slice(1);
      await countFound(service.client, 'q=somebody');
      for (const [query, books] of [
        ['author=somebody&sort=-year', some.toReversed()],
        ['q=somebody', some.toSorted((a, b) => a.id - b.id)],
        ['q=nowhere', []],
      ] as const)
        assertSame(await (await get(service, `/books.csv?${query}`)).text(), exportOf(books));
      for (const parameter of ['limit', 'cursor', 'offset', 'Author']) {
        const answer = await get(service, `/books.csv?q=x&${parameter}=1&nothing=1`);
        assert.deepEqual(readEnvelope(await answer.text(), answer.status), {
          status: 400,
          message: `Invalid query parameter: ${parameter}`,
          data: null,
        });
      }
    });

    test('X2: without all books in its index a search has no file', async (context) => {
      const service = await start(context, await freshUrl(), BOOKS.slice(0, 3), SOON_BEHIND);
      const release = await holdBehind(service);
      const answer = await get(service, '/books.csv?q=waiting');
      assert.deepEqual(readEnvelope(await answer.text(), answer.status), {
        status: 503,
        message: 'Service unavailable',
        data: null,
      });
      assert.equal(await (await get(service, '/books.csv')).text(), exportOf(await booksOf(service.dbUrl)));
      await release();
    });

    test('X1: if the store fails, the connection breaks, so that nobody takes a part for the whole', async (context) => {
      const long = manyBooks(20, 1_000_000); // more than systems buffer for a stalled reader
      const service = await start(context, await freshUrl(), long);
      await countFound(service.client, 'q=somebody');
      const reader = new Connection(pageOf(service));
      reader.socket.once('data', () => reader.socket.pause());
      await reader.send(compose('GET', '/books.csv?q=somebody', { token: service.client.token }));
      await waitUntil(() => reader.socket.isPaused());
      await executeOn(service.dbUrl, 'alter table books rename to others');
      reader.socket.resume();
      assert.equal(((await reader.closed) as NodeJS.ErrnoException | undefined)?.code, 'ECONNRESET');
      await executeOn(service.dbUrl, 'alter table others rename to books');
    });
  });
}

test('X1: the connection breaks where a workbook cannot hold a book, and the log says why', async (context) => {
  const dbUrl = await SQLITE.freshUrl();
  await fill(dbUrl, [{ id: 7, title: 'x'.repeat(32_768), author: '', year: 0 }]);
  const service = await startServiceProcess(dbUrl);
  context.after(() => service.stop());
  const { body } = await get(service, '/books.xlsx');
  await assert.rejects(Array.fromAsync(body ?? []), { message: 'terminated' });
  const broken = () => service.log.find((line) => line.includes('a download broke off'));
  await waitUntil(() => broken() !== undefined);
  assert.match(
    `${broken()}`,
    /the title of book 7 is longer than 32767 characters, the most that a cell holds/,
  );
});

test('X3: the key of a link opens downloads with its cookie, and nothing else', async (context) => {
  const service = await start(context, await SQLITE.freshUrl(), BOOKS.slice(0, 2));
  const page = pageOf(service);
  const [session, other] = [await logIn(service), await logIn(service)];
  const { cookie, key, linkKey } = session;
  const expected = exportOf(BOOKS.slice(0, 2));
  const link = `/books.csv?link-key=${linkKey}`;
  for (const [path, headers] of [
    [link, { cookie }],
    [link, { cookie, authorization: 'Basic eDp5' }],
    [link, { cookie, 'sec-fetch-site': 'same-origin' }],
    ['/books.csv', { cookie, 'session-key': key }],
    ['/books.csv?link-key=', { authorization: service.client.token }],
  ] as const)
    assert.equal(await (await get(service, path, headers)).text(), expected, path);
  const sorted = await get(service, `/books.csv?sort=id&link-key=${linkKey}&`, { cookie });
  assert.equal(await sorted.text(), expected);
  for (const [path, headers, status, message] of [
    [link, {}, 401, 'Session expired'],
    [link, { authorization: service.client.token }, 401, 'Session expired'],
    [link, { cookie: other.cookie }, 401, 'Session expired'],
    [link, { cookie, host: 'evil.test' }, 401, 'Session expired'],
    [link, { cookie, 'session-key': linkKey }, 401, 'Session expired'],
    [link, { cookie, origin: 'http://evil.test' }, 403, 'Origin not allowed'],
    [`/books.csv?link-key=${key}`, { cookie }, 401, 'Session expired'],
    [`${link}&link-key=${linkKey}`, { cookie }, 400, 'Invalid query parameter: link-key'],
    ['/books.csv', { cookie }, 401, 'Authorization token required'],
    [`/books?limit=1&link-key=${linkKey}`, { cookie }, 401, 'Authorization token required'],
    ['/books.txt', { authorization: service.client.token }, 404, 'Not found'],
  ] as const) {
    const answer = await request(page, 'GET', path, { headers });
    assert.deepEqual(bare(answer), { status, message, data: null }, path);
  }
  const post = await request(page, 'POST', link, { headers: { cookie } });
  assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD']);
  const there = await request(service, 'GET', '/books.csv', { token: service.client.token });
  assert.deepEqual(bare(there), { status: 404, message: 'Not found', data: null });
});

async function start(
  context: TestContext,
  dbUrl: string,
  books: readonly Book[],
  times?: Times,
): Promise<RunningService> {
  await fill(dbUrl, books);
  const service = await startTestService(dbUrl, {}, undefined, times);
  context.after(() => service.stop());
  return service;
}

/** Without the texts in its message, which are long. */
function assertSame(text: string, expected: string): void {
  assert.ok(text === expected, `${text.length} characters: ${text.slice(0, 200)}`);
}

/** @param headers with the session or the token; without them, the token of the service's client. */
function get(
  service: RunningService,
  path: string,
  headers: Record<string, string> = { authorization: service.client.token },
  method = 'GET',
): Promise<Response> {
  return fetch(new URL(path, service.pageUrl), { method, headers });
}

async function logIn(service: RunningService) {
  const page = pageOf(service);
  const body = { username: 'librarian', password: 'correct horse' };
  const { data, headers } = await request(page, 'POST', '/session', { body });
  const cookie = /^[^;]+/.exec(headers.get('set-cookie') ?? '')?.[0] ?? '';
  const renewed = await request(page, 'PUT', '/session', { headers: { cookie, 'session-key': data.key } });
  return { cookie, key: data.key as string, linkKey: renewed.data.linkKey as string };
}
