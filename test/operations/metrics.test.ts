// The metrics of the operations listener: in the format of Prometheus, exact to the last request, and without any
// text of a client. Each metric is made to change by what it measures. The command runs in this process unless a test
// needs a separate one.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { Client, Connection, exchange, request } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { execute } from '../support/postgres.ts';
import { type Family, scrape, scrapeAll, sumOf } from '../support/prometheus.ts';
import { pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  POSTGRES,
  pageOf,
  type ServiceProcess,
  SQLITE,
  STORES,
  startCommand,
} from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

const REQUESTS = 'book_catalogue_http_requests_total';
const DURATIONS = 'book_catalogue_http_request_duration_seconds';
const ERRORS = 'book_catalogue_store_errors_total';
const MARK = 'never-show-this';
const MANIFEST = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));

describe('metrics', { concurrency: 4 }, () => {
  for (const store of STORES) {
    const WORKERS = store.name === 'SQLite' ? '1' : '2';
    test(`rule 31: on ${store.name}, WORKERS=${WORKERS}, every request counts once, by route, method and status`, async (context) => {
      const dbUrl = await store.freshUrl();
      const { service, client, operations } =
        WORKERS === '1' ? await start(context, dbUrl) : await startProcess(context, dbUrl, { WORKERS });
      const processes = WORKERS === '1' ? 1 : 3;
      const expected = new Map<string, number>([['/token POST 200', 1]]); // to log in
      const expect = (series: string) => expected.set(series, (expected.get(series) ?? 0) + 1);
      let unavailable = 0;
      /** Sends each request on a separate connection, so that the workers share them. */
      const ask = async (series: string, text: string, times = 1) => {
        for (let time = 0; time < times; ) {
          const [answer] = await exchange(service, text.replaceAll('#', String(time)));
          if (answer?.status === 503) {
            unavailable += 1; // on a machine that stalls
            expect(series.replace(/\d+$/, '503'));
            continue;
          }
          assert.equal(String(answer?.status), series.split(' ')[2]);
          expect(series);
          time += 1;
        }
      };
      const { token } = client;
      await ask('/book POST 201', http('POST', '/book', token, `{"title":"${MARK} #"}`), 10);
      await ask('/book POST 400', http('POST', '/book', token, `{"title":#}`), 2);
      await ask('/book/:id GET 200', http('GET', `/book/1?${MARK}=#`, token), 30);
      await ask('/book/:id GET 404', http('GET', '/book/999#', token), 7);
      await ask('/book/:id GET 401', http('GET', `/book/${MARK}`, MARK), 5);
      for (const [path, route] of Object.entries({ '/book/1': '/book/:id', '/books': '/books' })) {
        assert.equal((await client.request('HEAD', path)).status, 200);
        expected.set(`${route} HEAD 200`, 1);
      }
      await ask('/book/:id PUT 200', http('PUT', '/book/1', token, '{"year":#}'), 4);
      await ask('/book/:id DELETE 200', http('DELETE', '/book/2', token));
      await ask('/books GET 200', http('GET', '/books', token), 3);
      await ask('/book PATCH 405', http('PATCH', '/book', token), 2);
      await ask('/book other 405', http('PROPFIND', '/book', token));
      await ask('/book other 405', http('LOCK', '/book', token));
      await ask('/token POST 401', http('POST', '/token', '', `{"username":"${MARK}","password":"#"}`), 4);
      await ask('unknown GET 404', http('GET', `/${MARK}/#`, token), 9);
      for (const [method, path, status] of [
        ['GET', '/', 200],
        ['HEAD', '/', 200],
        ['GET', `/v/${MARK}`, 404],
      ] as const) {
        assert.equal((await fetch(`${service.pageUrl}${path}`, { method })).status, status);
        expected.set(`page ${method} ${status}`, 1);
      }
      await ask('unreadable unknown 400', 'GET /nowhere HTTP/1.1\r\n\r\n');
      await ask('unknown other 404', http('MKCOL', `/${MARK}#`, token), 2);
      await ask('unreadable unknown 400', http('GET', `/book/${MARK}%zz`, token), 2);
      await ask('unreadable unknown 400', `${MARK} # \r\n\r\n`, 3);
      await ask('unreadable unknown 431', http('GET', `/${'x'.repeat(20_000)}`, token));

      const families = await scrapeAll(operations, processes);
      assert.deepEqual(sorted(requestsOf(families)), sorted(expected));
      for (const series of new Set([...expected.keys()].map((key) => key.replace(/ \d+$/, '')))) {
        const [route = '', method = ''] = series.split(' ');
        if (route === 'unreadable') continue; // its beginning is unknown
        const answered = sumOf(families, REQUESTS, { route, method });
        assert.equal(sumOf(families, `${DURATIONS}_count`, { route, method }), answered, series);
      }
      const calls = { find: 39, insert: 10, update: 4, remove: 1 };
      for (const [operation, count] of Object.entries(calls)) {
        const calls = sumOf(families, 'book_catalogue_batch_size_sum', { operation });
        if (unavailable === 0) assert.equal(calls, count);
        assert.equal(sumOf(families, 'book_catalogue_waiting_calls', { operation }), 0);
        assert.equal(
          sumOf(families, 'book_catalogue_batch_duration_seconds_count', { operation }),
          sumOf(families, 'book_catalogue_batch_size_count', { operation }),
        );
      }
      const outcomes = { succeeded: 1, failed: 4, delayed: 0, refused: 0 };
      for (const [outcome, count] of Object.entries(outcomes)) {
        assert.equal(sumOf(families, 'book_catalogue_logins_total', { outcome }), count);
      }
      assert.equal(sumOf(families, ERRORS) > 0, unavailable > 0);
      assert.equal(sumOf(families, 'book_catalogue_build_info', { version: MANIFEST.version }), processes);
      assert.ok(sumOf(families, 'process_cpu_seconds_total') > 0);
      assert.ok(sumOf(families, 'process_resident_memory_bytes') > 10_000_000);
      assert.ok(sumOf(families, 'nodejs_event_loop_delay_seconds_count') > 0);

      const again = await scrapeAll(operations, processes);
      for (const [name, { type, samples }] of families) {
        assert.equal(again.get(name)?.samples.length, samples.length, name);
        if (type !== 'counter') continue;
        for (const { labels, value } of samples) assert.ok(sumOf(again, name, { ...labels }) >= value, name);
      }
      const text = await (await fetch(`${operations}/metrics`)).text();
      for (const secret of [MARK, token, 'correct horse', 'librarian', new URL(dbUrl).pathname]) {
        assert.ok(!text.includes(secret), `${secret} is shown`);
      }
      assert.equal((await request(service, 'GET', '/metrics')).status, 404);
    });
  }

  test('rule 31: names and labels are those of the documentation', async (context) => {
    const guide = readFileSync(pathTo('docs/monitoring.md'), 'utf8');
    const [, table = ''] = /^\| Metric \|.*\n\| --- .*\n((?:\|.*\n)+)/m.exec(guide) ?? [];
    const quoted = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    const labelsOf = new Map<string, string[]>();
    for (const store of STORES) {
      const url = await store.freshUrl();
      const { operations, service } = await start(
        context,
        url,
        store === POSTGRES ? { DB_READ_URL: url } : {},
      );
      await request(service, 'GET', '/books');
      for (const [name, { samples }] of await scrape(operations)) {
        if (/^(process|nodejs)_/.test(name)) continue;
        const labels = samples.flatMap(({ labels }) => Object.keys(labels)).filter((label) => label !== 'le');
        labelsOf.set(name.replace(/^book_catalogue_/, ''), labels);
      }
    }
    const documented: string[] = [];
    for (const [, names = '', labels = ''] of table.matchAll(/^\| ([^|]*) \| ([^|]*)\|/gm)) {
      const present = quoted(names).filter(
        (name) => STORES.includes(POSTGRES) || !name.startsWith('postgres_'),
      );
      documented.push(...present);
      if (present.length === 0) continue;
      // `label`: `value`, `value`; `label`: `value` or only `label`, `label`
      const own = labels.includes(':')
        ? labels.split(';').flatMap((part) => quoted(part).slice(0, 1))
        : quoted(labels);
      const given = new Set(present.flatMap((name) => labelsOf.get(name) ?? []));
      assert.deepEqual([...given].sort(), own.sort(), names);
    }
    assert.deepEqual([...labelsOf.keys()].sort(), documented.sort());
  });

  test('rule 31: connections of clients', async (context) => {
    const { service, operations } = await start(context, await SQLITE.freshUrl());
    const connections = async () => sumOf(await scrape(operations), 'book_catalogue_http_connections');
    const before = await connections();
    const targets = Array.from({ length: 20 }, (_, position) =>
      position % 2 === 0 ? service : pageOf(service),
    );
    const clients = targets.map((target) => new Connection(target));
    for (const client of clients) {
      await client.send(http('GET', '/nowhere', ''));
      await client.answers(1);
    }
    assert.ok((await connections()) >= 20);
    for (const { socket } of clients) socket.destroy();
    await waitUntil(async () => (await connections()) <= before);
  });

  test('rule 31: lists of a SQLite file that are being read', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const { service, client, operations } = await start(context, dbUrl);
    await executeOn(
      dbUrl,
      `with recursive number (n) as (select 1 union all select n + 1 from number where n < 10000)
       insert into books (title) select printf('%.2000c', 'x') from number`,
    );
    const open = async () => sumOf(await scrape(operations), 'book_catalogue_sqlite_open_lists');
    assert.equal(await open(), 0);
    const stalled = new Connection(service);
    stalled.socket.pause();
    await stalled.send(http('GET', '/books', client.token));
    await waitUntil(async () => (await open()) === 1);
    stalled.socket.destroy();
    await waitUntil(async () => (await open()) === 0);
  });

  if (STORES.includes(POSTGRES)) testPostgres();
});

function testPostgres(): void {
  test('rules 9 and 31: statements that are retried', async (context) => {
    const dbUrl = await POSTGRES.freshUrl();
    const { client, operations } = await start(context, dbUrl);
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
}

interface Started<Service> {
  readonly service: Service;
  readonly client: Client;
  readonly operations: string;
  log(): readonly string[];
}

/** Starts the command in this process. */
async function start(
  context: TestContext,
  dbUrl: string,
  env: Record<string, string> = {},
): Promise<Started<CommandHere>> {
  const service = await startHere({ ...ENVIRONMENT, DB_URL: dbUrl, LOG_LEVEL: 'info', ...env });
  context.after(() => service.stop());
  const client = await Client.logIn(service);
  return { service, client, operations: operationsOf(service).url, log: () => service.log };
}

/** Starts the command in separate processes; its only request so far is a login. */
async function startProcess(
  context: TestContext,
  dbUrl: string,
  env: Record<string, string> = {},
): Promise<Started<ServiceProcess>> {
  const environment = { ...ENVIRONMENT, LOG_LEVEL: 'info', DB_URL: dbUrl, ...env };
  const command = await startCommand(environment);
  context.after(() => command.process.kill('SIGKILL'));
  const service = { ...command, dbUrl, client: await Client.logIn(command) };
  return { service, client: service.client, operations: operationsOf(service).url, log: () => service.log };
}

function http(method: string, path: string, token: string, body = ''): string {
  const length = Buffer.byteLength(body);
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nContent-Length: ${length}\r\n\r\n${body}`;
}

/** How many requests were counted, by `route method status`. */
function requestsOf(families: Map<string, Family>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { labels, value } of families.get(REQUESTS)?.samples ?? []) {
    const key = `${labels.route} ${labels.method} ${labels.status}`;
    counts.set(key, (counts.get(key) ?? 0) + value);
  }
  return counts;
}

function sorted(counts: Map<string, number>): [string, number][] {
  return [...counts].sort(([one], [other]) => (one < other ? -1 : 1));
}
