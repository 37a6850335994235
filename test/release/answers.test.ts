// The time limits that rule 23 sets for answers, measured by the client's clock: every answer arrives within 5 s whatever the
// store does, and requests succeed within 2 s of the store's return, or within 5 s of the promotion of another host. The content
// of the answers is tested in test/stores.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../conformance/answers.ts';
import type { Times } from '../../src/times.ts';
import type { Client } from '../support/client.ts';
import { connectTo, execute, freshDatabase, PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { POSTGRES, type RunningService, SQLITE, STORES, startTestService } from '../support/service.ts';
import { holdBooks } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds. */
const ANSWER = 5000;
const AFTER_RETURN = 2000;
const AFTER_PROMOTION = 5000;
const UNNOTICED = 1000;
const START = 10_000;

/** A request of every kind. */
const CALLS: readonly ((client: Client) => Promise<Answer>)[] = [
  (client) => client.request('POST', '/book', { body: {} }),
  (client) => client.request('PUT', '/book/1', { body: { year: 1 } }),
  (client) => client.request('DELETE', '/book/2'),
  (client) => client.request('GET', '/book/1'),
  (client) => client.request('GET', '/books'),
];

/** What keeps a store from answering, until it is ended. */
interface Trouble {
  readonly dbUrl: string;
  begin(): unknown;
  end(): unknown;
}

async function lockOf(dbUrl: string): Promise<Trouble> {
  let release = async () => {};
  const begin = async () => {
    release = await holdBooks(dbUrl);
  };
  return { dbUrl, begin, end: () => release() };
}

async function cutOf(dbUrl: string): Promise<Trouble> {
  const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
  return { dbUrl: proxiedUrl, begin: () => proxy.cut(), end: () => proxy.restore() };
}

async function lonelyPrimary(): Promise<Trouble> {
  const { primary, standby } = await PostgresServer.startPair(['synchronous_standby_names=*']);
  return {
    dbUrl: urlOf(primary, standby),
    begin: () => standby.kill('SIGQUIT'),
    async end() {
      await standby.startAgain();
      await execute(standby.url(), 'select pg_promote()');
    },
  };
}

for (const [store, what, prepare, limit] of [
  [SQLITE, 'the file is locked', lockOf, AFTER_RETURN],
  [POSTGRES, 'the table is locked', lockOf, AFTER_RETURN],
  [POSTGRES, 'the network is cut', cutOf, AFTER_RETURN],
  [
    POSTGRES,
    'no synchronous standby is there, which is then promoted while its primary lives on',
    lonelyPrimary,
    AFTER_PROMOTION,
  ],
] as const) {
  test(`rule 23: on ${store.name}, answers arrive within 5 s while ${what}; afterwards requests succeed in time`, {
    skip: !STORES.includes(store) && 'this run tests the other store',
  }, async () => {
    const { dbUrl, begin, end } = await prepare(await store.freshUrl());
    const { client } = await start(dbUrl);
    await begin();
    const statuses = CALLS.map(async (call) => (await within(ANSWER, call(client))).status);
    assert.ok((await Promise.all(statuses)).includes(503));
    await end();
    const succeed = CALLS.map((call) => waitUntil(async () => (await call(client)).status !== 503));
    await within(limit, Promise.all(succeed));
  });
}

if (STORES.includes(POSTGRES)) {
  test('rule 23: an answer arrives within 5 s if its batch is slow, its book is locked, and then the network is cut', async (context) => {
    const dbUrl = await freshDatabase();
    const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
    const { client } = await start(proxiedUrl);
    await client.create({ title: 'slow' });
    const sleep = 'perform pg_sleep(case old.id when 1 then 0.5 when 3 then 2.5 else 0 end)';
    await execute(
      dbUrl,
      `create function slow() returns trigger language plpgsql as $$ begin ${sleep}; return new; end $$;
       create trigger slow before update on books for each row execute function slow()`,
    );
    const locker = await connectTo(context, dbUrl);
    await locker.query('begin; update books set year = 1 where id = 2');
    const change = async (id: number) =>
      (await client.request('PUT', `/book/${id}`, { body: { year: 2 } })).status;
    const isWaited = async (event: 'PgSleep' | 'transactionid') => {
      const waiting = `select from pg_stat_activity where datname = current_database() and wait_event = '${event}'`;
      return (await execute(dbUrl, waiting)).length > 0;
    };
    const first = change(1);
    await waitUntil(() => isWaited('PgSleep'), first); // the other calls now gather behind it
    const slow = change(3);
    const locked = within(ANSWER, change(2));
    assert.deepEqual(await Promise.all([first, slow]), [200, 200]);
    await waitUntil(() => isWaited('transactionid'), locked);
    proxy.cut();
    assert.equal(await locked, 503);
  });

  test('rules 23 and 27: no read waits for a second while a start waits to change the table, which it gives up within 10 s', async (context) => {
    const dbUrl = await freshDatabase();
    const { client } = await start(dbUrl);
    await execute(dbUrl, 'alter table books alter column author type varchar(40)'); // as in an older version
    const reader = await connectTo(context, dbUrl);
    await reader.query('begin; select from books');
    let isOver = false;
    const refused = within(
      START,
      assert.rejects(startTestService(dbUrl), /other programs use a table/),
    ).finally(() => {
      isOver = true;
    });
    while (!isOver) assert.equal((await within(UNNOTICED, client.request('GET', '/book/1'))).status, 200);
    await refused;
  });

  test('rule 23: a list is answered within 5 s, by the primary, if its standby falls silent', async () => {
    const { primary, standby } = await PostgresServer.startPair();
    const proxy = await TcpProxy.start(standby);
    const readUrl = { DB_READ_URL: urlOf(proxy) };
    const brief = timesWith({ lists: { firstChunk: 3500 }, standby: { firstChunk: 500 } });
    const { client } = await start(primary.url(), readUrl, brief);
    const scans = "select seq_scan + idx_scan as scans from pg_stat_user_tables where relname = 'books'";
    await waitUntil(async () => {
      await client.list();
      return Number((await execute<{ scans: string }>(standby.url(), scans))[0]?.scans) > 0;
    });
    const waiting = "select from pg_locks where not granted and relation = 'books'::regclass";
    const isWaiting = async () => (await execute(standby.url(), waiting)).length === 1;
    let list = client.request('GET', '/books');
    let release = async () => {};
    await waitUntil(async () => {
      await Promise.all([list, release()]); // a list may be given up before it is seen to wait
      release = await holdBooks(primary.url());
      list = client.request('GET', '/books');
      return waitUntil(isWaiting, list).then(
        () => true,
        () => false,
      );
    });
    proxy.cut();
    const [{ status }] = await within(ANSWER, Promise.all([list, release()]));
    assert.equal(status, 200);
  });
}

/** A service with two books, and with open connections for requests of every kind. */
async function start(url: string, env?: Record<string, string>, times?: Times): Promise<RunningService> {
  const service = await startTestService(url, env, undefined, times);
  const { client } = service;
  for (const id of [1, 2]) assert.equal((await client.create({})).id, id);
  for (const method of ['GET', 'PUT', 'DELETE']) await client.request(method, '/book/999', { body: {} });
  assert.equal((await client.list()).length, 2);
  return service;
}

function urlOf(...servers: readonly { readonly port: number }[]): string {
  return `postgres://postgres:password@${servers.map(({ port }) => `127.0.0.1:${port}`)}/postgres`;
}

/** Fails unless something has happened within so many milliseconds from now. */
async function within<Value>(limit: number, happening: Promise<Value>): Promise<Value> {
  const began = performance.now();
  const value = await happening;
  const milliseconds = Math.round(performance.now() - began);
  assert.ok(milliseconds < limit, `after ${milliseconds} ms`);
  return value;
}
