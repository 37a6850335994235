// How the service starts and ends: restarts, sudden deaths, signals, and two starts at once. The real command in separate
// processes. Ends that wait for clients are in test/nightly.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Connection, type Target } from '../support/client.ts';
import { Ledger } from '../support/ledger.ts';
import { execute } from '../support/postgres.ts';
import { scaled } from '../support/scale.ts';
import {
  ENVIRONMENT,
  type ServiceProcess,
  STORES,
  startServiceProcess,
  startTestService,
} from '../support/service.ts';
import { dieYoung, examine, liveAndDie } from '../support/sudden-death.ts';
import { waitUntil } from '../support/wait.ts';

type Store = (typeof STORES)[number];

describe('lifecycle', { concurrency: 3 }, () => {
  for (const store of STORES) {
    // The number of processes and the store both matter to signals and connections, but not to each other.
    const workers = store.name === 'SQLite' ? '1' : '2';
    describe(`on ${store.name}, WORKERS=${workers}`, { concurrency: 3 }, () => testEnds(store, workers));
    describe(`on ${store.name}`, { concurrency: 3 }, () => testStarts(store));
  }
});

function testEnds(store: Store, workers: string): void {
  const start = async (context: TestContext, dbUrl?: string, env: Record<string, string> = {}) => {
    return await startProcess(context, dbUrl ?? (await store.freshUrl()), { WORKERS: workers, ...env });
  };

  test('rule 27: a second signal ends the service at once', async (context) => {
    let ended: ServiceProcess;
    do {
      const service = await start(context);
      const halfHead = await dial(context, service);
      await halfHead.send('GET /books HTTP/1.1\r\n');
      service.process.kill('SIGINT');
      await waitUntil(() => isStopping(service));
      await waitUntil(() => {
        service.process.kill('SIGINT'); // one that follows too soon counts as the first one
        return hasEnded(service);
      });
      ended = service;
      // If this process stalls for so long that the service has closed the connection, the second signal comes too late.
    } while (ended.process.exitCode === 0);
    assert.equal(ended.process.signalCode, 'SIGINT');
  });

  test('rule 27: two signals at the same moment, as from one Ctrl-C, are a graceful shutdown', async (context) => {
    const service = await start(context);
    service.process.kill('SIGSTOP'); // so that both are pending when it continues
    service.process.kill('SIGINT');
    service.process.kill('SIGTERM');
    service.process.kill('SIGCONT');
    await endedWell(service);
  });
}

function testStarts(store: Store): void {
  test('rule 12: a restart keeps every book and gives out no id again, not even the newest', async () => {
    const first = await startTestService(await store.freshUrl());
    const books = await Promise.all(
      Array.from({ length: 20 }, (_, year) => first.client.create({ title: `book ${year}`, year })),
    );
    const newest = books.toSorted((one, other) => other.id - one.id).slice(0, 5);
    for (const { id } of newest) await first.client.request('DELETE', `/book/${id}`);
    const [oldest] = await first.client.list();
    await first.client.request('PUT', `/book/${oldest?.id}`, { body: { author: 'known by now' } });
    const kept = await first.client.list();
    assert.equal(kept.length, 15);
    await first.stop();

    const second = await startTestService(first.dbUrl);
    assert.deepEqual(await second.client.list(), kept);
    const { id } = await second.client.create({});
    await second.stop();
    assert.ok(id > Number(newest[0]?.id), `${id} after ${newest[0]?.id}`);
  });

  // One process and several on a file, whose writers they share; on PostgreSQL, what dies with them is the same for both.
  for (const workers of store.name === 'SQLite' ? ['1', '2'] : ['2']) {
    const lives = scaled(4);
    test(`rules 9, 12 and 23: WORKERS=${workers}, ${2 * lives} sudden deaths, during starts and under 8 writers, lose nothing`, async (context) => {
      const dbUrl = await store.freshUrl();
      const ledger = new Ledger();
      const start = () => startProcess(context, dbUrl, { WORKERS: workers });
      for (let life = 0; life < lives; life += 1) {
        const ready = await liveAndDie(start, ledger);
        await dieYoung({ ...ENVIRONMENT, DB_URL: dbUrl, WORKERS: workers }, ready);
        // On PostgreSQL its last statements may still be in progress.
        if (store.name === 'PostgreSQL') await waitUntil(async () => (await othersOn(dbUrl)) === 0);
      }
      await examine(await start(), ledger);
      assert.ok(ledger.acknowledged > 0);
    });
  }

  test('rule 27: two services that start at once on an empty store share it', async (context) => {
    for (let round = 0; round < 2; round += 1) {
      const dbUrl = await store.freshUrl();
      const starts = await Promise.allSettled([1, 2].map(() => startProcess(context, dbUrl)));
      const services = starts.map((outcome) => {
        if (outcome.status === 'rejected') throw outcome.reason;
        return outcome.value;
      });
      const created = await Promise.all(
        Array.from({ length: 20 }, (_, year) => services[year % 2]?.client.create({ year })),
      );
      const ids = new Set(created.map((book) => book?.id));
      assert.equal(ids.size, 20);
      for (const { client } of services) {
        const listed = await client.list();
        assert.deepEqual(
          listed,
          created.toSorted((one, other) => Number(one?.id) - Number(other?.id)),
        );
      }
      for (const { process } of services) process.kill('SIGKILL');
    }
  });
}

/** Starts the real command, and kills it at the end of the test if it still runs. */
async function startProcess(
  context: TestContext,
  dbUrl: string,
  env: Record<string, string> = {},
): Promise<ServiceProcess> {
  const service = await startServiceProcess(dbUrl, env);
  context.after(() => service.process.kill('SIGKILL'));
  return service;
}

function hasEnded({ process }: ServiceProcess): boolean {
  return process.exitCode !== null || process.signalCode !== null;
}

/** Waits until it exits, which must be with code 0. */
async function endedWell(service: ServiceProcess): Promise<void> {
  await waitUntil(() => hasEnded(service));
  assert.equal(service.process.exitCode, 0);
}

function isStopping({ log }: ServiceProcess): boolean {
  return log.some((line) => JSON.parse(line).msg === 'stopping');
}

/**
 * A connection that the service has accepted, which an answer shows: a service that stops drops connections that are
 * not accepted yet.
 */
async function dial(context: TestContext, target: Target): Promise<Connection> {
  const connection = new Connection(target);
  context.after(() => connection.socket.destroy());
  await connection.send(head('GET', '/nowhere', ''));
  await connection.answers(1);
  return connection;
}

function head(method: string, path: string, token: string, length?: number): string {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: x', `Authorization: ${token}`];
  if (length !== undefined) lines.push(`Content-Length: ${length}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** How many other connections to a database there are. */
async function othersOn(dbUrl: string): Promise<number> {
  const [row] = await execute<{ count: number }>(
    dbUrl,
    `select count(*)::int from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
  );
  return Number(row?.count);
}
