// The metrics of what is late, lost, refused, replaced or hangs.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Client, Connection, request } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { listen } from '../support/ports.ts';
import { execute } from '../support/postgres.ts';
import { type Family, scrape, sumOf } from '../support/prometheus.ts';
import { TcpProxy } from '../support/proxy.ts';
import {
  ENVIRONMENT,
  POSTGRES,
  preloaded,
  type ServiceProcess,
  SQLITE,
  STORES,
  startCommand,
} from '../support/service.ts';
import { executeOn, holdBooks } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

const REQUESTS = 'book_catalogue_http_requests_total';
const ERRORS = 'book_catalogue_store_errors_total';

describe('metrics', { concurrency: 4 }, () => {
  test('rule 31: with WORKERS=2 each process has its own metrics; one that hangs or has ended is left out', async (context) => {
    const { service, operations } = await startProcess(context, await SQLITE.freshUrl(), { WORKERS: '2' });
    let warned = '';
    service.process.stderr?.on('data', (text) => {
      warned += text;
    });
    /** The start time of each process, once exactly these have metrics. */
    const started = async (...workers: string[]) => {
      let times = new Map<string | undefined, number>();
      await waitUntil(async () => {
        const samples = (await scrape(operations)).get('process_start_time_seconds')?.samples ?? [];
        times = new Map(samples.map(({ labels, value }) => [labels.worker, value]));
        return [...times.keys()].sort().join() === workers.join();
      });
      return times;
    };
    const before = await started('0', '1', '2');
    for (const [, { samples }] of await scrape(operations)) {
      for (const { labels } of samples) assert.match(labels.worker ?? '', /^[012]$/);
    }
    const [worker = 0] = service.log
      .map((line) => JSON.parse(line))
      .flatMap(({ msg, pid }) => {
        return msg === 'a worker is serving' ? [pid as number] : [];
      });
    process.kill(worker, 'SIGSTOP');
    context.after(() => {
      try {
        process.kill(worker, 'SIGKILL');
      } catch {} // it has ended already, as it should
    });
    await started('0', '2');
    const scrapes = await Promise.all(Array.from({ length: 15 }, () => scrape(operations)));
    for (const families of scrapes) {
      assert.equal(sumOf(families, 'process_start_time_seconds', { worker: '1' }), 0);
    }
    await waitUntil(async () => (await fetch(`${operations}/readyz`)).status === 200);
    process.kill(worker, 'SIGKILL');
    const after = await started('0', '1', '2');
    assert.ok(Number(after.get('1')) > Number(before.get('1'))); // another process, with the same number
    assert.equal(after.get('2'), before.get('2'));
    assert.equal(warned, '');
  });

  test('rules 23 and 31: requests that fail on a SQLite file', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const { client, operations } = await start(context, dbUrl);
    await client.create({ title: 'here' });
    const { samples } = (await scrape(operations)).get('book_catalogue_sqlite_file_bytes') as Family;
    for (const { labels, value } of samples) assert.ok(value > 0, labels.file ?? '');
    await executeOn(dbUrl, 'drop table books');
    const statuses = await Promise.all([attempt(client, 'GET', '/book/1'), attempt(client, 'POST', '/book')]);
    assert.deepEqual(statuses, [503, 503]);
    const families = await scrape(operations);
    assert.equal(sumOf(families, ERRORS, { reason: 'failure' }), 2);
    assert.equal(sumOf(families, 'book_catalogue_sqlite_thread_restarts_total'), 0);
  });

  test('rules 29 and 31: logins that are delayed, and those that are refused', async (context) => {
    const { service, operations } = await startProcess(context, await SQLITE.freshUrl());
    const logIn = () =>
      request(service, 'POST', '/token', { body: { username: 'librarian', password: 'x' } });
    const logins: Promise<unknown>[] = Array.from({ length: 16 }, logIn);
    let outcomes: Record<string, number> = {};
    await waitUntil(async () => {
      const families = await scrape(operations);
      const { samples } = families.get('book_catalogue_logins_total') as Family;
      outcomes = Object.fromEntries(samples.map(({ labels, value }) => [labels.outcome, value]));
      logins.push(logIn()); // delayed answers go out all the time, which makes room for others
      return Number(outcomes.refused) > 0;
    });
    void Promise.allSettled(logins); // the last ones wait for seconds
    assert.deepEqual([outcomes.succeeded, outcomes.failed], [1, 10]);
    assert.ok(Number(outcomes.delayed) >= 5);
  });

  if (STORES.includes(POSTGRES)) testPostgres();
});

function testPostgres(): void {
  test('rules 23 and 31: lost connections to PostgreSQL, and requests that fail on it', async (context) => {
    const { proxy, proxiedUrl } = await TcpProxy.to(await POSTGRES.freshUrl());
    context.after(() => proxy.stop());
    const { client, operations } = await start(context, proxiedUrl, { FIND: 'off' });
    assert.equal((await client.request('GET', '/book/1')).status, 404);
    const healthy = await scrape(operations);
    assert.equal(sumOf(healthy, 'book_catalogue_postgres_connections', { pool: 'batches' }), 1);
    assert.equal(sumOf(healthy, 'book_catalogue_postgres_idle_connections', { pool: 'batches' }), 1);
    assert.equal(sumOf(healthy, 'book_catalogue_postgres_connections'), 1);
    assert.equal(sumOf(healthy, 'book_catalogue_postgres_waiting_statements'), 0);
    assert.equal(sumOf(healthy, 'book_catalogue_postgres_connections_lost_total'), 0);

    proxy.target = await listen(context, (socket) => socket.destroy());
    proxy.reset();
    const lost = async () =>
      sumOf(await scrape(operations), 'book_catalogue_postgres_connections_lost_total');
    await waitUntil(async () => (await lost()) === 1);
    const failed = 2;
    for (const path of ['/book/1', '/books', '/book/x']) await client.request('GET', path);
    const away = await scrape(operations);
    assert.equal(sumOf(away, ERRORS), failed);
    assert.equal(sumOf(away, ERRORS, { reason: 'failure' }), failed);
    assert.equal(sumOf(away, REQUESTS, { status: '503' }), failed);
  });

  test('rules 23 and 31: hosts of PostgreSQL that take over', async (context) => {
    const database = new URL(await POSTGRES.freshUrl());
    const [one, two] = await Promise.all([TcpProxy.to(database.href), TcpProxy.to(database.href)]);
    for (const { proxy } of [one, two]) context.after(() => proxy.stop());
    const hosts = `127.0.0.1:${one.proxy.port},127.0.0.1:${two.proxy.port}`;
    const { client, operations } = await start(context, database.href.replace(database.host, hosts));
    const changes = async () => sumOf(await scrape(operations), 'book_catalogue_postgres_host_changes_total');
    assert.equal(await changes(), 0);
    const { target } = one.proxy;
    // The service begins with the first host, unless that was slow to answer.
    for (const { proxy } of [one, two]) {
      proxy.target = await listen(context, (socket) => socket.destroy());
      proxy.reset();
      await waitUntil(async () => (await attempt(client, 'GET', '/book/1')) === 404);
      proxy.target = target;
    }
    assert.ok((await changes()) > 0);
  });

  test('rules 23 and 31: waiting calls and batches in flight; requests that are late, and those beyond the limit', async (context) => {
    const dbUrl = await POSTGRES.freshUrl();
    const { client, operations } = await start(context, dbUrl);
    const { id } = await client.create({});
    const letGo = await holdBooks(dbUrl);
    context.after(letGo);
    // The first one fails after 4 s. The others wait for it and are late. Then a call that would wait is refused.
    const calls: Promise<number>[] = [];
    const errors = (families: Map<string, Family>, reason: string) => sumOf(families, ERRORS, { reason });
    let inFlight = 0;
    let waiting = 0;
    await waitUntil(async () => {
      calls.push(attempt(client, 'PUT', `/book/${id}`));
      const families = await scrape(operations);
      const operation = 'update';
      inFlight = Math.max(inFlight, sumOf(families, 'book_catalogue_batches_in_flight', { operation }));
      waiting = Math.max(waiting, sumOf(families, 'book_catalogue_waiting_calls', { operation }));
      return inFlight > 0 && waiting > 0 && errors(families, 'overload') > 0;
    });
    assert.equal(inFlight, 1); // batches of updates run one after the other
    assert.deepEqual(new Set(await Promise.all(calls)), new Set([503]));
    const families = await scrape(operations);
    for (const reason of ['failure', 'late']) assert.ok(errors(families, reason) > 0, reason);
    assert.equal(sumOf(families, ERRORS), calls.length);
  });

  test('rules 13 and 31: a list that PostgreSQL breaks off is an error, one whose reader disconnects is not', async (context) => {
    const dbUrl = await POSTGRES.freshUrl();
    const { service, client, operations, log } = await start(context, dbUrl);
    await execute(dbUrl, "insert into books (title) select repeat('x', 4000) from generate_series(1, 12500)");
    const lists = async (more = '') => {
      const sql = `select pid from pg_stat_activity
        where query ilike '%copy (%' and datname = current_database() and pid <> pg_backend_pid()`;
      return await execute<{ pid: number }>(dbUrl, `${sql} ${more}`);
    };
    const readNothing = async () => {
      const connection = new Connection(service);
      connection.socket.pause();
      await connection.send(http('GET', '/books', client.token));
      // All buffers are full, so its answer has started.
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
    await waitUntil(() => log().filter((line) => line.includes('the store is unavailable')).length === 1);
  });
}

test('rules 23 and 31: the threads that write to a SQLite file and search it are replaced when they have died', async (context) => {
  const end = `
    const threads = [];
    process.on('worker', (thread) => threads.push(thread));
    process.on('SIGUSR2', () => threads.shift().terminate().then(() => process.stderr.write('ended\\n')));`;
  const env = { NODE_OPTIONS: preloaded(end) };
  const { service, client, operations } = await startProcess(context, await SQLITE.freshUrl(), env);
  let said = '';
  service.process.stderr?.on('data', (text) => {
    said += text;
  });
  const endThread = async (expected: string) => {
    service.process.kill('SIGUSR2');
    await waitUntil(() => said === expected);
  };
  const restarts = async () => {
    const families = await scrape(operations);
    return ['writer', 'finder'].map((thread) =>
      sumOf(families, 'book_catalogue_sqlite_thread_restarts_total', { thread }),
    );
  };
  await endThread('ended\n');
  await client.create({ title: 'by another thread' });
  assert.deepEqual(await restarts(), [1, 0]);
  await endThread('ended\nended\n');
  assert.equal((await client.request('GET', '/books?q=thread')).data.length, 1);
  assert.deepEqual(await restarts(), [1, 1]);
});

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
  const command = await startCommand({ ...ENVIRONMENT, LOG_LEVEL: 'info', DB_URL: dbUrl, ...env });
  context.after(() => command.process.kill('SIGKILL'));
  const service = { ...command, dbUrl, client: await Client.logIn(command) };
  return { service, client: service.client, operations: operationsOf(service).url, log: () => service.log };
}

function http(method: string, path: string, token: string, body = ''): string {
  const length = Buffer.byteLength(body);
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nContent-Length: ${length}\r\n\r\n${body}`;
}

async function attempt(client: Client, method: string, path: string): Promise<number> {
  return (await client.request(method, path, method === 'GET' ? {} : { body: {} })).status;
}
