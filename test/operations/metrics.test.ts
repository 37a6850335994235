// What the operations listener tells Prometheus: in its format, to the last request, and nothing that a client made up.
// The real command in processes of its own.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { type Client, Connection, exchange, request } from '../support/client.ts';
import { execute, freshDatabase, PostgresServer } from '../support/postgres.ts';
import { type Family, scrape, sumOf } from '../support/prometheus.ts';
import { fileOf, type ServiceProcess, SQLITE, STORES, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const REQUESTS = 'book_catalogue_http_requests_total';
const DURATIONS = 'book_catalogue_http_request_duration_seconds';
const ERRORS = 'book_catalogue_store_errors_total';
const MARK = 'never-show-this';

describe('metrics', { concurrency: 2, timeout: 120_000 }, () => {
  for (const store of STORES) {
    for (const WORKERS of ['1', '2']) {
      test(`rule 31: on ${store.name}, WORKERS=${WORKERS}, every request counts once, by route, method and status`, async (context) => {
        const [service, operations] = await start(context, await store.freshUrl(), { WORKERS });
        const expected = new Map<string, number>([['/token POST 200', 1]]); // to log in
        /** On a connection of its own, so that the workers share them. */
        const ask = async (series: string, text: string, times = 1) => {
          for (let time = 0; time < times; time += 1) {
            const [answer] = await exchange(service, text.replaceAll('#', String(time)));
            assert.equal(String(answer?.status), series.split(' ')[2]);
          }
          expected.set(series, (expected.get(series) ?? 0) + times);
        };
        const { token } = service.client;
        await ask('/book POST 201', http('POST', '/book', token, `{"title":"${MARK} #"}`), 10);
        await ask('/book POST 400', http('POST', '/book', token, `{"title":#}`), 2);
        await ask('/book/:id GET 200', http('GET', `/book/1?${MARK}=#`, token), 30);
        await ask('/book/:id GET 404', http('GET', '/book/999#', token), 7);
        await ask('/book/:id GET 401', http('GET', `/book/${MARK}`, MARK), 5);
        for (const [path, route] of Object.entries({ '/book/1': '/book/:id', '/books': '/books' })) {
          assert.equal((await service.client.request('HEAD', path)).status, 200);
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
        await ask('unreadable unknown 400', 'GET /nowhere HTTP/1.1\r\n\r\n');
        await ask('unknown other 404', http('MKCOL', `/${MARK}#`, token), 2);
        await ask('unreadable unknown 400', http('GET', `/book/${MARK}%zz`, token), 2);
        await ask('unreadable unknown 400', `${MARK} # \r\n\r\n`, 3);
        await ask('unreadable unknown 431', http('GET', `/${'x'.repeat(20_000)}`, token));

        const families = await scrape(operations);
        assert.deepEqual(sorted(requestsOf(families)), sorted(expected));
        for (const series of new Set([...expected.keys()].map((key) => key.replace(/ \d+$/, '')))) {
          const [route = '', method = ''] = series.split(' ');
          if (route === 'unreadable') continue; // nobody knows when it began
          const answered = sumOf(families, REQUESTS, { route, method });
          assert.equal(sumOf(families, `${DURATIONS}_count`, { route, method }), answered, series);
        }
        const calls = { find: 38, insert: 10, update: 4, remove: 1 };
        for (const [operation, count] of Object.entries(calls)) {
          assert.equal(sumOf(families, 'book_catalogue_batch_size_sum', { operation }), count);
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
        assert.equal(sumOf(families, ERRORS), 0);
        assert.equal(
          sumOf(families, 'book_catalogue_build_info', { version: '1.0.0' }),
          WORKERS === '1' ? 1 : 3,
        );
        assert.ok(sumOf(families, 'process_cpu_seconds_total') > 0);
        assert.ok(sumOf(families, 'process_resident_memory_bytes') > 10_000_000);
        assert.ok(sumOf(families, 'nodejs_event_loop_delay_seconds_count') > 0);

        const again = await scrape(operations);
        for (const [name, { type, samples }] of families) {
          assert.equal(again.get(name)?.samples.length, samples.length, name);
          if (type !== 'counter') continue;
          for (const { labels, value } of samples)
            assert.ok(sumOf(again, name, { ...labels }) >= value, name);
        }
        const text = await (await fetch(`${operations}/metrics`)).text();
        for (const secret of [MARK, token, 'correct horse', 'librarian', new URL(service.dbUrl).pathname]) {
          assert.ok(!text.includes(secret), `${secret} is shown`);
        }
        assert.equal((await request(service, 'GET', '/metrics')).status, 404);
      });
    }
  }

  test('rule 31: with WORKERS=2 each tells of itself; whoever is held up or has gone is left out', async (context) => {
    const [service, operations] = await start(context, await SQLITE.freshUrl(), { WORKERS: '2' });
    const started = async () => {
      const samples = (await scrape(operations)).get('process_start_time_seconds')?.samples ?? [];
      return new Map(samples.map(({ labels, value }) => [labels.worker, value]));
    };
    const before = await started();
    assert.deepEqual([...before.keys()].sort(), ['0', '1', '2']);
    for (const [, { samples }] of await scrape(operations)) {
      for (const { labels } of samples) assert.match(labels.worker ?? '', /^[012]$/);
    }
    const [worker = 0] = service.log
      .map((line) => JSON.parse(line))
      .flatMap(({ msg, pid }) => {
        return msg === 'a worker serves' ? [pid as number] : [];
      });
    process.kill(worker, 'SIGSTOP');
    const during = await started();
    assert.deepEqual([...during.keys()].sort(), ['0', '2']);
    process.kill(worker, 'SIGKILL');
    await waitUntil(async () => (await started()).size === 3);
    const after = await started();
    assert.deepEqual([...after.keys()].sort(), ['0', '1', '2']);
    assert.ok((after.get('1') as number) > (before.get('1') as number)); // another process, by the same number
    assert.equal(after.get('2'), before.get('2'));
  });

  test('rules 23 and 31: connections that PostgreSQL loses, and requests that it fails', async (context) => {
    const server = await PostgresServer.start();
    context.after(() => server.remove());
    const [{ client }, operations] = await start(context, server.url());
    assert.equal((await client.request('GET', '/book/1')).status, 404);
    const healthy = await scrape(operations);
    assert.equal(sumOf(healthy, 'book_catalogue_postgres_connections', { pool: 'batches' }), 1);
    assert.equal(sumOf(healthy, 'book_catalogue_postgres_idle_connections', { pool: 'batches' }), 1);
    assert.equal(sumOf(healthy, 'book_catalogue_postgres_connections'), 1);
    assert.equal(sumOf(healthy, 'book_catalogue_postgres_waiting_statements'), 0);
    assert.equal(sumOf(healthy, 'book_catalogue_postgres_connections_lost_total'), 0);

    await server.stop();
    const failed = 2;
    for (const path of ['/book/1', '/books', '/book/x']) await client.request('GET', path);
    const away = await scrape(operations);
    assert.equal(sumOf(away, 'book_catalogue_postgres_connections_lost_total'), 1);
    assert.equal(sumOf(away, ERRORS), failed);
    assert.equal(sumOf(away, ERRORS, { reason: 'failure' }), failed);
    assert.equal(sumOf(away, REQUESTS, { status: '503' }), failed);
  });

  test('rules 13 and 31: a list that PostgreSQL breaks off is an error, one whose reader leaves is none', async (context) => {
    const [service, operations] = await start(context, await freshDatabase());
    const { dbUrl, log } = service;
    await execute(dbUrl, "insert into books (title) select repeat('x', 1000) from generate_series(1, 50000)");
    const lists = async (more = '') => {
      const sql = "select pid from pg_stat_activity where query ilike '%copy (%' and pid <> pg_backend_pid()";
      return await execute<{ pid: number }>(dbUrl, `${sql} ${more}`);
    };
    const readNothing = async () => {
      const connection = new Connection(service);
      connection.socket.pause();
      await connection.send(http('GET', '/books', service.client.token));
      // All between is full, so its answer has begun.
      await waitUntil(async () => (await lists("and wait_event = 'ClientWrite'")).length === 1);
      return connection;
    };
    const leaver = await readNothing();
    leaver.socket.destroy();
    await waitUntil(async () => (await lists()).length === 0);
    assert.equal(sumOf(await scrape(operations), ERRORS), 0);
    const patient = await readNothing();
    for (const { pid } of await lists()) await execute(dbUrl, `select pg_terminate_backend(${pid})`);
    patient.socket.resume();
    await patient.closed;
    await waitUntil(async () => sumOf(await scrape(operations), ERRORS, { reason: 'failure' }) === 1);
    assert.equal(sumOf(await scrape(operations), REQUESTS, { route: '/books', status: '200' }), 2);
    await waitUntil(() => log.filter((line) => line.includes('the store is unavailable')).length === 1);
  });

  test('rules 23 and 31: a SQLite file that fails, and the thread that writes to it', async (context) => {
    const [{ client, dbUrl }, operations] = await start(context, await SQLITE.freshUrl());
    await client.create({ title: 'here' });
    const { samples } = (await scrape(operations)).get('book_catalogue_sqlite_file_bytes') as Family;
    for (const { labels, value } of samples) assert.ok(value > 0, labels.file ?? '');
    const db = new DatabaseSync(fileOf(dbUrl));
    db.exec('drop table books');
    db.close();
    const statuses = await Promise.all([attempt(client, 'GET', '/book/1'), attempt(client, 'POST', '/book')]);
    assert.deepEqual(statuses, [503, 503]);
    const families = await scrape(operations);
    assert.equal(sumOf(families, ERRORS, { reason: 'failure' }), 2);
    assert.equal(sumOf(families, 'book_catalogue_sqlite_writer_restarts_total'), 0);
  });

  test('rules 29 and 31: guesses that are answered late, and those that are refused', async (context) => {
    const [service, operations] = await start(context, await SQLITE.freshUrl());
    const guess = () =>
      request(service, 'POST', '/token', { body: { username: 'librarian', password: 'x' } });
    void Promise.allSettled(Array.from({ length: 17 }, guess)); // the last ones wait for seconds
    const outcomes = async () => {
      const families = await scrape(operations);
      const { samples } = families.get('book_catalogue_logins_total') as Family;
      return Object.fromEntries(samples.map(({ labels, value }) => [labels.outcome, value]));
    };
    await waitUntil(async () => (await outcomes()).refused === 2);
    assert.deepEqual(await outcomes(), { succeeded: 1, failed: 10, delayed: 5, refused: 2 });
  });
});

async function start(
  context: TestContext,
  dbUrl: string,
  env: Record<string, string> = {},
): Promise<[service: ServiceProcess, operations: string]> {
  const service = await startServiceProcess(dbUrl, env);
  context.after(() => service.process.kill('SIGKILL'));
  const listening = service.log.find((line) => line.includes('"msg":"listening"')) ?? '{}';
  return [service, JSON.parse(listening).operations];
}

function http(method: string, path: string, token: string, body = ''): string {
  const length = Buffer.byteLength(body);
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nContent-Length: ${length}\r\n\r\n${body}`;
}

async function attempt(client: Client, method: string, path: string): Promise<number> {
  return (await client.request(method, path, method === 'POST' ? { body: {} } : {})).status;
}

/** How many requests were counted of each `route method status`. */
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
