// The metrics of the operations listener: in the format of Prometheus, exact to the last request, and without any
// text of a client. Each metric is made to change by what it measures.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { faultAnswers } from '../../src/api/faults.ts';
import { RequestCounts } from '../../src/api/request-counts.ts';
import { StoreUnavailable } from '../../src/books/store.ts';
import { createLog } from '../../src/log/log.ts';
import type { Connections } from '../../src/stores/postgres/connections.ts';
import { pruneLog } from '../../src/stores/postgres/log-pruning.ts';
import { queryOn } from '../../src/stores/postgres/query.ts';
import { TIMES } from '../../src/times.ts';
import { Client, exchange } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { listen } from '../support/ports.ts';
import { connectTo, execute } from '../support/postgres.ts';
import { type Family, scrape, sumOf } from '../support/prometheus.ts';
import { TcpProxy } from '../support/proxy.ts';
import { compose } from '../support/raw-requests.ts';
import { pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  POSTGRES,
  SQLITE,
  STORES,
  startTestService,
  testOnPostgres,
} from '../support/service.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

const REQUESTS = 'book_catalogue_http_requests_total';
const DURATIONS = 'book_catalogue_http_request_duration_seconds';
const ERRORS = 'book_catalogue_store_errors_total';
const MARK = 'never-show-this';
const MANIFEST = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));

test('rules 13, 23 and 31: requests that the store fails count by the reason, and a list that breaks off is a failure', () => {
  const requests = new RequestCounts();
  const faults = faultAnswers(createLog('silent', process.stderr, TIMES.log), requests, TIMES.api);
  const all = { failure: 1, late: 2, overload: 3, indexing: 4, refused: 5 };
  for (const [kind, count] of Object.entries(all)) {
    for (let time = 0; time < count; time += 1) {
      const { status } = faults.answer(new StoreUnavailable('x', kind as keyof typeof all), 'id');
      assert.equal(status, 503);
    }
  }
  faults.listBroke(new Error('x'), 'id');
  assert.deepEqual(requests.storeFaults, { ...all, failure: 2 });
});

describe('a session', () => {
  let session: Started;
  let dbUrl: string;
  let families: Map<string, Family>;
  const expected = new Map([['/token POST 200', 1]]); // to log in

  before(async () => {
    dbUrl = await SQLITE.freshUrl();
    session = await start(dbUrl);
    const { service, client, operations } = session;
    const { token } = client;
    for (const [series, times, bytes] of [
      ['/book POST 201', 10, compose('POST', '/book', { token, body: `{"title":"${MARK} #"}` })],
      ['/book POST 400', 2, compose('POST', '/book', { token, body: `{"title":#}` })],
      ['/book/:id GET 200', 30, compose('GET', `/book/1?${MARK}=#`, { token })],
      ['/book/:id GET 404', 7, compose('GET', '/book/999#', { token })],
      ['/book/:id GET 401', 5, compose('GET', `/book/${MARK}`, { token: MARK })],
      ['/book/:id PUT 200', 4, compose('PUT', '/book/1', { token, body: '{"year":#}' })],
      ['/book/:id DELETE 200', 1, compose('DELETE', '/book/2', { token })],
      ['/books GET 200', 3, compose('GET', '/books', { token })],
      ['/book PATCH 405', 2, compose('PATCH', '/book', { token })],
      ['/book other 405', 2, compose('PROPFIND', '/book', { token })],
      ['/token POST 401', 4, compose('POST', '/token', { body: `{"username":"${MARK}","password":"#"}` })],
      ['unknown GET 404', 9, compose('GET', `/${MARK}/#`, { token })],
      ['unknown other 404', 2, compose('MKCOL', `/${MARK}#`, { token })],
      ['unreadable unknown 400', 3, `${MARK} # \r\n\r\n`],
      ['unreadable unknown 431', 1, compose('GET', `/${'x'.repeat(20_000)}`)],
    ] as const) {
      for (let time = 0; time < times; time += 1)
        await exchange(service, bytes.replaceAll('#', String(time)));
      expected.set(series, times);
    }
    for (const [method, url, series] of [
      ['HEAD', `${service.url}/book/1`, '/book/:id HEAD 200'],
      ['HEAD', `${service.url}/books`, '/books HEAD 200'],
      ['GET', `${service.pageUrl}/`, 'page GET 200'],
      ['HEAD', `${service.pageUrl}/`, 'page HEAD 200'],
      ['GET', `${service.pageUrl}/v/${MARK}`, 'page GET 404'],
    ] as const) {
      await fetch(url, { method, headers: { authorization: token } });
      expected.set(series, 1);
    }
    families = await scrape(operations);
  });
  after(() => session?.service.stop());

  test('rule 31: every request counts once, by route, method and status', () => {
    const counted = families.get(REQUESTS)?.samples.map(({ labels, value }) => {
      return [`${labels.route} ${labels.method} ${labels.status}`, value];
    });
    assert.deepEqual(counted?.sort(), [...expected].sort());
    for (const [route = '', method = ''] of [...expected.keys()].map((series) => series.split(' '))) {
      if (route === 'unreadable') continue; // its beginning is unknown
      const durations = sumOf(families, `${DURATIONS}_count`, { route, method });
      assert.equal(durations, sumOf(families, REQUESTS, { route, method }));
    }
  });

  for (const [name, label, values] of [
    ['batch_size_sum', 'operation', { find: 39, insert: 10, update: 4, remove: 1 }],
    ['waiting_calls', 'operation', { find: 0, insert: 0, update: 0, remove: 0 }],
    ['batches_in_flight', 'operation', { find: 0, insert: 0, update: 0, remove: 0 }],
    ['logins_total', 'outcome', { succeeded: 1, failed: 4, delayed: 0, refused: 0 }],
    ['store_errors_total', 'reason', { failure: 0, late: 0, overload: 0 }],
    ['build_info', 'version', { [MANIFEST.version]: 1 }],
  ] as const) {
    test(`rule 31: ${name} is exact`, () => {
      for (const [value, count] of Object.entries(values))
        assert.equal(sumOf(families, `book_catalogue_${name}`, { [label]: value }), count, value);
    });
  }

  test('rule 31: every batch has a duration, and the process is measured', () => {
    const batches = sumOf(families, 'book_catalogue_batch_size_count');
    assert.equal(sumOf(families, 'book_catalogue_batch_duration_seconds_count'), batches);
    for (const name of ['cpu_seconds_total', 'resident_memory_bytes'])
      assert.ok(sumOf(families, `process_${name}`) > 0, name);
    assert.ok(sumOf(families, 'nodejs_event_loop_delay_seconds_count') > 0);
  });

  test('rule 31: counters only grow, and no text of a client is shown', async () => {
    const { service, client, operations } = session;
    const again = await scrape(operations);
    for (const [name, { type, samples }] of families) {
      assert.equal(again.get(name)?.samples.length, samples.length, name);
      if (type !== 'counter') continue;
      for (const { labels, value } of samples) assert.ok(sumOf(again, name, { ...labels }) >= value, name);
    }
    const text = await (await fetch(`${operations}/metrics`)).text();
    for (const secret of [MARK, client.token, 'correct horse', 'librarian', new URL(dbUrl).pathname])
      assert.ok(!text.includes(secret), `${secret} is shown`);
    assert.equal((await fetch(`${service.url}/metrics`)).status, 404);
  });
});

if (STORES.includes(POSTGRES)) testPostgres();

function testPostgres(): void {
  test('rule 31: names and labels of both stores are those of the documentation', async () => {
    const given: [name: string, label: string][] = [];
    for (const store of [SQLITE, POSTGRES]) {
      const url = await store.freshUrl();
      const env: Record<string, string> = store === POSTGRES ? { DB_READ_URL: url } : {};
      const { operations, service } = await start(url, env);
      await fetch(`${service.url}/books`);
      for (const [name, { samples }] of await scrape(operations)) {
        if (/^(process|nodejs)_/.test(name)) continue;
        const labels = samples.flatMap(({ labels }) => Object.keys(labels)).filter((label) => label !== 'le');
        for (const label of ['', ...labels]) given.push([name.replace(/^book_catalogue_/, ''), label]);
      }
    }
    const guide = readFileSync(pathTo('docs/monitoring.md'), 'utf8');
    const [, table = ''] = /^\| Metric \|.*\n\| --- .*\n((?:\|.*\n)+)/m.exec(guide) ?? [];
    const quoted = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    const documented = [...table.matchAll(/^\| ([^|]*) \| ([^|]*)\|/gm)].flatMap(
      ([, names = '', text = '']) => {
        // `label`: `value`, `value`; `label`: `value` or only `label`, `label`
        const labels = text.includes(':')
          ? text.split(';').flatMap((part) => quoted(part).slice(0, 1))
          : quoted(text);
        return quoted(names).flatMap((name) => ['', ...labels].map((label) => [name, label]));
      },
    );
    assert.deepEqual(new Set(given.map(String).sort()), new Set(documented.map(String).sort()));
  });

  test('rules 31 and H3: requests that wait for the same page are counted, and read it together', async () => {
    const { client, operations } = await start(await SQLITE.freshUrl());
    const first = await client.request('GET', '/changes');
    const path = /<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
    const waiting = Array.from({ length: 40 }, () =>
      client.request('GET', path, { headers: { prefer: 'wait=60' } }),
    );
    const isWaiting = async () => sumOf(await scrape(operations), 'book_catalogue_waiting_followers') === 40;
    await waitUntil(isWaiting);
    const reads = async () =>
      sumOf(await scrape(operations), 'book_catalogue_batch_size_sum', { operation: 'history' });
    const before = await reads();
    await client.create({});
    for (const { data } of await Promise.all(waiting)) assert.equal((data as unknown[]).length, 1);
    assert.ok((await reads()) - before < 10);
  });

  test('rules 9 and 31: statements that are retried', async () => {
    const dbUrl = await POSTGRES.freshUrl();
    const { client, operations } = await start(dbUrl);
    await execute(
      dbUrl,
      `create sequence attempts;
       create function give_up() returns trigger language plpgsql as $$
         begin
           if nextval('attempts') <= 3 then raise exception 'given up' using errcode = '40001'; end if;
           return null;
         end $$;
       create trigger give_up before insert on books execute function give_up()`,
    );
    await client.create({});
    assert.equal(sumOf(await scrape(operations), 'book_catalogue_postgres_retries_total'), 3);
  });

  test('rules 23 and 31: hosts of PostgreSQL that are lost, requests that fail, and hosts that take over', async (context) => {
    const database = new URL(await POSTGRES.freshUrl());
    const hosts = [await TcpProxy.to(database.href), await TcpProxy.to(database.href)];
    const names = hosts.map(({ proxy }) => `127.0.0.1:${proxy.port}`).join();
    const dbUrl = database.href.replace(database.host, names);
    const { client, operations } = await start(dbUrl, { FIND: 'off', HISTORY: 'off' });
    const read = async () => (await client.request('GET', '/book/1')).status;
    assert.equal(await read(), 404);
    const healthy = await scrape(operations);
    for (const [name, value] of [
      ['connections', 1],
      ['idle_connections', 1],
      ['waiting_statements', 0],
      ['connections_lost_total', 0],
      ['host_changes_total', 0],
    ] as const) {
      assert.equal(sumOf(healthy, `book_catalogue_postgres_${name}`), value, name);
    }
    let failed = 0;
    for (const { proxy } of hosts) {
      const { target } = proxy;
      proxy.target = await listen(context, (socket) => socket.destroy());
      proxy.reset();
      await waitUntil(async () => {
        const status = await read();
        if (status === 503) failed += 1;
        return status === 404;
      });
      proxy.target = target;
    }
    const families = await scrape(operations);
    assert.ok(sumOf(families, 'book_catalogue_postgres_connections_lost_total') > 0);
    assert.ok(sumOf(families, 'book_catalogue_postgres_host_changes_total') > 0);
    assert.equal(sumOf(families, REQUESTS, { status: '503' }), failed);
    assert.equal(sumOf(families, ERRORS, { reason: 'failure' }), failed);
  });
}

interface Started {
  readonly service: CommandHere;
  readonly client: Client;
  /** The URL of its operations listener. */
  readonly operations: string;
}

async function start(dbUrl: string, env: Record<string, string> = {}): Promise<Started> {
  const own = { DB_URL: dbUrl, ADMIN_PORT: '0', LOG_LEVEL: 'info' };
  const service = await startHere({ ...ENVIRONMENT, ...own, ...env });
  return { service, client: await Client.logIn(service), operations: operationsOf(service).url };
}

if (STORES.includes(SQLITE))
  test('rule H6: a metric says how many changes the log has', async () => {
    const DB_URL = await SQLITE.freshUrl();
    const service = await startHere({ ...ENVIRONMENT, DB_URL, ADMIN_PORT: '0', LOG_LEVEL: 'info' });
    const client = await Client.logIn(service);
    for (const title of ['A', 'B']) await client.create({ title });
    await client.request('PUT', '/book/1', { body: { year: 1 } });
    const changes = sumOf(await scrape(operationsOf(service).url), 'book_catalogue_kept_changes');
    assert.equal(changes, 3);
  });

testOnPostgres(
  'rule H6: rows that are too heavy to be removed together are removed in smaller parts',
  async (context) => {
    const { client, dbUrl } = await startTestService(await POSTGRES.freshUrl());
    for (let year = 1; year <= 9; year += 1) await client.create({ year });
    const server = await connectTo(context, dbUrl);
    const query = async (_pool: string, text: string, values: unknown[]) => {
      if (text.includes('delete from book_log') && Number(values[4]) > 3)
        throw new Error('it takes too long');
      return queryOn(server)(text, values);
    };
    const often = timesWith({ history: { prune: 5 } });
    const pruning = pruneLog({ query } as unknown as Connections, [0], 0, false, often);
    await waitUntil(() => pruning.changes === 1); // the newest one
    pruning.end();
  },
);

testOnPostgres('rule H6: the changes in the log are counted from time to time', async (context) => {
  const { client, dbUrl } = await startTestService(await POSTGRES.freshUrl());
  for (const title of ['A', 'B']) await client.create({ title });
  const server = await connectTo(context, dbUrl);
  const query = (_pool: string, text: string, values: unknown[]) => queryOn(server)(text, values);
  const often = timesWith({ history: { prune: 5 } });
  const connections = { query } as unknown as Connections;
  const pruning = pruneLog(connections, [0], Number.POSITIVE_INFINITY, false, often);
  await waitUntil(() => pruning.changes === 3); // with the beginning
  pruning.end();
});
