// What is shown of a log of changes that another program has emptied, changed or passed by: it begins again, and nothing else.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Book } from '../../conformance/service.ts';
import { type Client, nextOf } from '../support/client.ts';
import { blockOf } from '../support/documents.ts';
import {
  POSTGRES,
  type RunningService,
  STORES,
  startTestService,
  testOnPostgres,
} from '../support/service.ts';
import { executeOn, logPruned, runOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

const DAMAGES = {
  SQLite: [
    'delete from book_log',
    'delete from book_log_state',
    'delete from book_log; delete from book_log_state',
    'delete from book_log where number > 1',
    'delete from book_log; update books set year = id; update books set year = id + 1; update books set year = 5',
    'delete from book_log where number = (select max(number) from book_log)',
    'drop trigger book_log_on_update',
    'drop table book_log',
    'drop table book_log; drop table book_log_state',
    'alter table book_log rename title to name',
    'alter table book_log_state rename noted_to to noted',
    `create table others (
      id integer primary key autoincrement, title text not null default '', author text not null default '',
      year integer not null default 0
    ) strict;
    insert into others select * from books; drop table books; alter table others rename to books`,
  ],
  PostgreSQL: [
    ...['truncate book_log', 'delete from book_log_state', 'truncate book_log, book_log_state'],
    ...['alter table books disable trigger book_log_on_update', 'drop trigger book_log_on_update on books'],
    ...['drop table book_log', 'drop table book_log, book_log_state'],
    ...['alter table book_log drop column title', 'alter table book_log rename book to books'],
    ...['drop function book_log_write cascade', 'delete from book_log; update books set year = year + 1'],
    ...['drop sequence book_log_number cascade'],
  ],
};

/** Columns of the log, and their values. */
const FORGED = {
  SQLite: [
    ...['4503599627370497', '9007199254740993', '9223372036854775807'].map(
      (number) => ['at, book, last, number', `0, 1, 1, ${number}`] as const,
    ),
    ...['9007199254740993, 9007199254740993', '1, 9007199254740993'].map(
      (books) => ['at, book, last', `0, ${books}`] as const,
    ),
  ],
  PostgreSQL: [
    '9007199254740993, 9007199254740993',
    '9223372036854775807, 9223372036854775807',
    '1, 9007199254740991',
  ].map((books) => ['book, last', books] as const),
};

/** Carries out a change that no trigger notes. */
async function past(dbUrl: string, change: string): Promise<void> {
  if (!dbUrl.startsWith('sqlite:')) return runOn(dbUrl, `set session_replication_role = replica; ${change}`);
  const triggers = await executeOn(
    dbUrl,
    "select name, sql from sqlite_schema where name glob 'book_log_on_*'",
  );
  const without = triggers.map(({ name }) => `drop trigger ${name}`);
  const again = triggers.map(({ sql }) => sql);
  await runOn(dbUrl, [...without, change, ...again].join(';'));
}

for (const store of STORES) {
  const often = timesWith({ sqlite: { idlePause: 20 }, postgres: { idlePause: 20 } });
  const damages = DAMAGES[store.name as keyof typeof DAMAGES];

  /** Of books 1 to 3. @returns the path of the changes after them. */
  async function begin({ client }: RunningService): Promise<string> {
    for (const title of ['First', 'Second', 'Third']) await client.create({ title });
    await client.request('PUT', '/book/2', { body: { year: 1 } });
    return nextOf(await client.request('GET', '/changes?cursor=now'));
  }

  async function assertBegunAgain(client: Client, path: string): Promise<void> {
    const answers = ['/book/1/history', path, '/changes'].map((path) => client.request('GET', path));
    const [history, changes, all] = await Promise.all(answers);
    assert.deepEqual([history?.status, changes?.status, all?.status], [200, 410, 200]);
  }

  const found = async (client: Client, query: string) =>
    ((await client.request('GET', `/books?q=${query}`)).data as { id: number }[])?.map(({ id }) => id);

  describe(`a touched log on ${store.name}`, () => {
    for (const damage of damages)
      test(`rules H1 and F11: the log begins again after ${damage.split('\n')[0]}`, async () => {
        const dbUrl = await store.freshUrl();
        const running = await startTestService(dbUrl, {}, undefined, often);
        const path = await begin(running);
        await runOn(dbUrl, damage);
        const change = () => running.client.request('PUT', '/book/1', { body: { title: 'Changed' } });
        await waitUntil(async () => (await change()).status === 200); // without a table, writes get 503 first
        await waitUntil(async () => (await running.client.request('GET', '/books?q=changed')).status === 200);
        assert.deepEqual(await found(running.client, 'changed'), [1]);
        await assertBegunAgain(running.client, path);
        const again = nextOf(await running.client.request('GET', '/changes?cursor=now'));
        await running.client.request('PUT', '/book/3', { body: { title: 'Later' } });
        const later = await running.client.request('GET', again);
        assert.deepEqual([later.status, later.data.length], [200, 1]);
        await running.stop();

        await runOn(dbUrl, damage);
        const started = await startTestService(dbUrl, {}, undefined, often);
        await assertBegunAgain(started.client, nextOf(later));
        await waitUntil(async () => (await started.client.request('GET', '/books?q=later')).status === 200);
        await started.stop();
      });

    test('rules 23, H1 and F11: rows that only another program can have inserted stop nothing, on SQLite from the next start on', async () => {
      for (const [names, values] of FORGED[store.name as keyof typeof FORGED]) {
        const dbUrl = await store.freshUrl();
        let running = await startTestService(dbUrl, {}, undefined, often);
        const path = await begin(running);
        await runOn(dbUrl, `insert into book_log (${names}) values (${values})`);
        if (store.name === 'SQLite') {
          await running.stop();
          running = await startTestService(dbUrl, {}, undefined, often);
        }
        const { client } = running;
        const { status } = await client.request('PUT', '/book/1', { body: { title: 'Changed' } });
        assert.equal(status, 200, values);
        await waitUntil(async () => (await found(client, 'changed'))?.length === 1);
        for (const from of [path, '/changes', '/book/1/history'])
          assert.ok([200, 410].includes((await client.request('GET', from)).status), `${from} ${values}`);
        await running.stop();
      }
    });

    if (store.name === 'SQLite')
      test('rule F11: a start makes an index again that is ahead of the log', async () => {
        const dbUrl = await store.freshUrl();
        const before = await startTestService(dbUrl, {}, undefined, often);
        await begin(before);
        await waitUntil(async () => (await found(before.client, 'third'))?.length === 1);
        await before.stop();
        await runOn(
          dbUrl,
          "update books set title = 'Odd' where id = 3; delete from book_log where number > 1",
        );
        const { client } = await startTestService(dbUrl, {}, undefined, often);
        await waitUntil(async () => (await client.request('GET', '/books?q=odd')).status === 200);
        assert.deepEqual(await found(client, 'odd'), [3]);
      });

    if (store.name === 'PostgreSQL')
      test('rules H1 and H6: a log that has lost rows for their age begins again once, and not at each search', async () => {
        const dbUrl = await store.freshUrl();
        const pruning = await startTestService(
          dbUrl,
          {},
          undefined,
          timesWith({ history: { day: 0, prune: 20 } }),
        );
        await begin(pruning);
        await logPruned(dbUrl).finally(pruning.stop);
        await runOn(dbUrl, 'drop trigger book_log_on_update on books');
        const { client } = await startTestService(dbUrl, {}, undefined, often);
        await client.create({ title: 'Sought' });
        await waitUntil(async () => (await found(client, 'sought'))?.length === 1);
        const name = new URL(dbUrl).pathname.slice(1);
        await executeOn(dbUrl.replace(name, 'postgres'), `alter database ${name} allow_connections false`); // which a beginning needs
        assert.deepEqual(await found(client, 'sought'), [4]);
      });

    test('rule 23: while another program has renamed the table of books, no empty one takes its place', async () => {
      const dbUrl = await store.freshUrl();
      const service = await startTestService(dbUrl, {}, undefined, often);
      await begin(service);
      await runOn(dbUrl, 'alter table books rename to hidden');
      for (const [method, path] of [
        ['GET', '/books?q=first'],
        ['POST', '/book'],
        ['GET', '/changes'],
      ] as const) {
        const body = method === 'POST' ? { title: 'Lost' } : undefined;
        assert.equal((await service.client.request(method, path, { body })).status, 503, path);
      }
      await runOn(dbUrl, 'alter table hidden rename to books');
      await waitUntil(
        async () => (await service.client.request('POST', '/book', { body: {} })).status === 201,
      );
      const ids = (await service.client.list()).map(({ id }) => id);
      assert.deepEqual(ids, [1, 2, 3, 4]);
    });

    for (const [title, change, word, ids] of [
      ['books were added', "insert into books (title) values ('Past')", 'past', [4]],
      ['books were removed', 'delete from books where id = 1', 'first', []],
      [
        'a book was replaced by another',
        "delete from books where id = 1; insert into books (id, title) values (99, 'Past')",
        'past',
        [99],
      ],
    ] as const)
      test(`rules H1 and F11: a start notices that ${title} past the triggers`, async () => {
        const dbUrl = await store.freshUrl();
        const before = await startTestService(dbUrl, {}, undefined, often);
        const path = await begin(before);
        await waitUntil(async () => (await found(before.client, 'third'))?.length === 1);
        await before.stop();
        await past(dbUrl, change);
        const { client } = await startTestService(dbUrl, {}, undefined, often);
        await waitUntil(async () => {
          const { status, data } = await client.request('GET', path);
          return status === 410 || data.length > 0; // on SQLite, new books are noted without triggers
        });
        await waitUntil(async () => isDeepStrictEqual(await found(client, word), ids));
      });
  });
}

testOnPostgres('rules H1 and F11: the documented repair shows what the triggers have missed', async () => {
  const { client, dbUrl, stop } = await startTestService(await POSTGRES.freshUrl());
  for (const title of ['First', 'Second']) await client.create({ title });
  const path = nextOf(await client.request('GET', '/changes'));
  await past(dbUrl, "update books set title = 'Renamed' where id = 1");
  await stop();
  await executeOn(dbUrl, await blockOf('docs/maintenance.md', 'update book_index_state'));
  const again = await startTestService(dbUrl);
  assert.equal((await again.client.request('GET', path)).status, 410);
  await waitUntil(async () => (await again.client.request('GET', '/books?q=renamed')).status === 200);
  await again.stop();
});

testOnPostgres(
  'rule H4: after a replication of the tables, which copies no sequence, numbers follow those of before',
  async () => {
    const { client, dbUrl, stop } = await startTestService(await POSTGRES.freshUrl());
    await client.create({ title: 'First' });
    await client.request('PUT', '/book/1', { body: { year: 1 } });
    await stop();
    await executeOn(dbUrl, "select setval('book_log_number', 1)");
    const again = await startTestService(dbUrl);
    await again.client.request('PUT', '/book/1', { body: { year: 2 } });
    const { data } = await again.client.request('GET', '/book/1/history');
    const states = (data as { change: number; book: Book }[]).map(({ change, book }) => [change, book.year]);
    const [, , [first] = []] = states;
    assert.deepEqual(
      states,
      [2, 1, 0].map((year) => [Number(first) + year, year]),
    );
    await again.stop();
  },
);
