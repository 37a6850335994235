// Rules B, E and I where they need a variable, two processes, a restart or a store that is read, on every store. The other cases
// are in conformance/once.ts and conditions.ts.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { countTogether } from '../../conformance/conditions.ts';
import { expectLongest, raceWithOneKey } from '../../conformance/once.ts';
import type { Service } from '../../conformance/service.ts';
import { BOOK_NOT_FOUND, DELETED, INVALID, retrieved, TOO_LARGE, updated } from '../../conformance/words.ts';
import { bare, Connection } from '../support/client.ts';
import { type RunningService, SQLITE, STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { verifiedAt } from '../support/verified.ts';
import { waitUntil } from '../support/wait.ts';

const REQUIRED = { status: 428, message: 'Precondition required', data: null };
const MEBIBYTE = 1024 * 1024;

/** Seconds. */
const DAY = 24 * 3600;

for (const store of STORES) {
  describe(`many at once, once, and on conditions on ${store.name}`, () => {
    let services: readonly RunningService[] = [];
    let both: readonly [Service, Service];

    before(async () => {
      const service = await startTestService(await store.freshUrl(), { BODY_LIMIT: '4096' });
      const other = await startTestService(service.dbUrl, { BULK_LIMIT: '1000' });
      services = [service, other];
      both = [verifiedAt(service), verifiedAt(other)];
      await Promise.all(both.map((verified) => verified.logIn()));
    });
    after(() => {
      for (const verified of both ?? []) verified.close();
    });

    test('B1: BODY_LIMIT counts for each element, BULK_LIMIT for the array', async (context) => {
      await expectLongest(both[0], 4096);
      const [, other] = services as [RunningService, RunningService];
      const title = 'x'.repeat(1000 - '[{"title":""}]'.length);
      assert.equal((await other.client.request('POST', '/books', { body: [{ title }] })).status, 201);
      const larger = { body: [{ title: `${title}x` }] };
      assert.deepEqual(bare(await other.client.request('POST', '/books', larger)), TOO_LARGE);
      const chunked = new Connection(other);
      context.after(() => chunked.close());
      const head = other.client.bytes('POST', '/books', { headers: { 'transfer-encoding': 'chunked' } });
      const chunk = `258\r\n${' '.repeat(600)}\r\n`;
      await chunked.send(`${head}${chunk}${chunk}0\r\n\r\n`);
      assert.equal((await chunked.answers(1))[0]?.status, 413);
    });

    test('B1: white space counts for no book, wherever it is', async () => {
      const space = ' '.repeat(3 * MEBIBYTE);
      for (const body of [`[${space}{"title":"a"}]`, `${space}[{"title":"a"}${space},{}]`])
        assert.equal((await both[0].request('POST', '/books', { body })).status, 201);
    });

    test('I3: of many requests with one key at the same moment, in two processes, one is carried out', () =>
      raceWithOneKey(both));

    test('E3: clients of two processes that count in one book lose no step', () => countTogether(both));

    test('E1: a book has the same tag in every process', async () => {
      const { data, headers } = await both[0].request('POST', '/book', { body: { title: 'ab', year: 1 } });
      const elsewhere = await both[1].request('GET', `/book/${data.id}`);
      assert.match(headers.get('etag') ?? '', /^"[\w-]{22}"$/);
      assert.equal(elsewhere.headers.get('etag'), headers.get('etag'));
    });

    test('E3: a tag may itself end like what a proxy adds', async () => {
      const { client } = await startTestService(await store.freshUrl());
      const { data, headers } = await client.request('POST', '/book', { body: { title: 'Book 109645' } });
      const tag = headers.get('etag') ?? '';
      assert.match(tag, /^"[\w-]{19}-br"$/);
      for (const known of [tag, tag.replace(/"$/, '-br"')]) {
        const options = { body: {}, headers: { 'if-match': known } };
        assert.equal((await client.request('PUT', `/book/${data.id}`, options)).status, 200);
      }
    });

    test('E4: with REQUIRE_IF_MATCH=on, a change or removal without If-Match gets 428', async () => {
      const REQUIRE_IF_MATCH = store === SQLITE ? 'on' : 'true'; // YAML files turn `on` into `true`
      const { client } = await startTestService(await store.freshUrl(), { REQUIRE_IF_MATCH });
      const { data: book, headers } = await client.request('POST', '/book', { body: {} });
      const path = `/book/${book.id}`;
      const none = '/book/9007199254740991';
      const [other, right] = [
        { 'if-none-match': '"AAAAAAAAAAAAAAAAAAAAAA"' },
        { 'if-match': headers.get('etag') ?? '' },
      ];
      for (const [method, at, body, headers, expected] of [
        ['PUT', path, { year: 1 }, {}, REQUIRED],
        ['PUT', path, { year: 1 }, other, REQUIRED],
        ['DELETE', path, undefined, {}, REQUIRED],
        ['DELETE', path, undefined, other, REQUIRED],
        ['PUT', path, { year: '1' }, {}, INVALID],
        ['PUT', '/book/0', {}, {}, BOOK_NOT_FOUND],
        ['PUT', none, {}, {}, BOOK_NOT_FOUND],
        ['DELETE', none, {}, {}, BOOK_NOT_FOUND],
        ['GET', path, undefined, {}, retrieved(book)],
        ['PUT', path, {}, right, updated(book)],
        ['DELETE', path, undefined, right, DELETED],
      ] as const) {
        const answer = await client.request(method, at, { body, headers });
        assert.deepEqual(bare(answer), expected, `${method} ${at}`);
      }
    });

    test('I2: the keys that an earlier version has stored are known', async () => {
      const [{ client, dbUrl }] = services as [RunningService];
      const book = { title: 'Emma', author: 'A "é"', year: 1815 };
      for (const [path, body, fingerprint, ids, expected] of [
        ['/book', book, 'xvvbVz1-lLjHXo2aeGC7AZ3DnnDLYg_Co21IHD1SM_4', [7], { id: 7, ...book }],
        [
          '/books',
          [{ title: 'Emma' }, { year: -720 }],
          'Moezl0n_YLhsMHG8RSsp05tjEIgPDj6hK7RQnY6Tsfw',
          [7, 9],
          [7, 9],
        ],
      ] as const) {
        const list = store === SQLITE ? `[${ids}]` : `{${ids}}`;
        await executeOn(
          dbUrl,
          `insert into book_requests (key, fingerprint, ids, made_at)
          values ('${path}', '${fingerprint}', '${list}', ${nowOn(dbUrl)})`,
        );
        const options = { body, headers: { 'idempotency-key': path } };
        const { status, data, headers } = await client.request('POST', path, options);
        assert.deepEqual([status, data], [201, expected]);
        assert.equal(headers.get('idempotent-replayed'), 'true');
      }
    });

    test('I4: a key is known for 24 hours and until 10,000 newer ones exist; then it is removed in passing', async () => {
      const dbUrl = await store.freshUrl();
      let current: RunningService | undefined;
      const restart = async () => {
        await current?.stop();
        current = await startTestService(dbUrl);
      };
      const post = async (title: string, key: string) => {
        const options = { body: { title }, headers: { 'idempotency-key': key } };
        const { status, data, headers } = await (current as RunningService).client.request(
          'POST',
          '/book',
          options,
        );
        return [status, data?.id, headers.get('idempotent-replayed')];
      };
      await restart();
      const [, older] = await post('a', 'older');
      const [, old] = await post('a', 'old');
      const [, known] = await post('a', 'known');
      await age(dbUrl, 'older', DAY + 120);
      await age(dbUrl, 'old', DAY + 60);
      await age(dbUrl, 'known', DAY - 60);
      await addKeys(dbUrl, 'first', 9997);

      await restart();
      await post('', 'new'); // the first request with a key removes old ones
      await waitUntil(async () => !(await keysIn(dbUrl)).includes('older'));
      assert.deepEqual(await keysIn(dbUrl), ['known', 'new', 'old']); // 9,999 are newer than `old`
      assert.deepEqual(await post('a', 'old'), [201, old, 'true']);
      const [status, renewed, isReplay] = await post('b', 'older');
      assert.deepEqual([status, isReplay], [201, null]);
      assert.notEqual(renewed, older);
      assert.deepEqual(await post('b', 'older'), [201, renewed, 'true']);

      await addKeys(dbUrl, 'second', 10);
      // A process removes keys again after a thousand requests at most.
      for (let round = 0; round < 10; round += 1)
        await Promise.all(Array.from({ length: 100 }, () => post('', 'newer')));
      await waitUntil(async () => !(await keysIn(dbUrl)).includes('old'));
      assert.deepEqual(await post('a', 'known'), [201, known, 'true']);
      assert.equal((await post('b', 'known'))[0], 422);
    });

    if (store === SQLITE)
      test('I4: keys of undos are removed as well, where only undos have keys', async () => {
        const { client, dbUrl } = await startTestService(await store.freshUrl());
        const undo = async (key: string) => {
          const { id } = await client.create({});
          const { data } = await client.request('GET', `/book/${id}/history`);
          const options = { body: { change: data[0].change }, headers: { 'idempotency-key': key } };
          assert.equal((await client.request('POST', '/undo', options)).status, 200);
        };
        await undo('old');
        await undo('known');
        await age(dbUrl, 'old', DAY + 60);
        await age(dbUrl, 'known', DAY - 60);
        await addKeys(dbUrl, 'newer', 10_000);
        await undo('new');
        assert.deepEqual(await keysIn(dbUrl), ['known', 'new']);
      });
  });
}

/** Makes a key as old as that, in seconds. */
async function age(dbUrl: string, key: string, seconds: number): Promise<void> {
  const isSqlite = dbUrl.startsWith('sqlite:');
  const time = isSqlite ? `made_at - ${seconds * 1000}` : `made_at - interval '${seconds} seconds'`;
  await executeOn(dbUrl, `update book_requests set made_at = ${time} where key = '${key}'`);
}

/** The time of the store's clock, as its tables have it. */
const nowOn = (dbUrl: string) => (dbUrl.startsWith('sqlite:') ? 'unixepoch() * 1000' : 'now()');

/** Adds so many keys of other requests now. */
async function addKeys(dbUrl: string, name: string, count: number): Promise<void> {
  const none = dbUrl.startsWith('sqlite:') ? '[]' : '{}';
  await executeOn(
    dbUrl,
    `with recursive added as (select 1 as place union all select place + 1 from added where place < ${count})
    insert into book_requests (key, fingerprint, ids, made_at)
    select 'added ${name} ' || place, '', '${none}', ${nowOn(dbUrl)} from added`,
  );
}

async function keysIn(dbUrl: string): Promise<unknown[]> {
  const rows = await executeOn(
    dbUrl,
    "select key from book_requests where key not like 'added %' order by key",
  );
  return rows.map(({ key }) => key);
}
