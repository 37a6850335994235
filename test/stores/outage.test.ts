// PostgreSQL goes away in every way there is and comes back, while clients write all the time.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Load } from '../support/load.ts';
import { execute, freshDatabase, PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

// Milliseconds. The second of each sum is for slow machines.
const FIRST_SUCCESS = 2000 + 500;
const ANSWER = 5000 + 500;

/** Milliseconds that the server is away, and the network cut: longer than a statement may take. */
const AWAY = 3000;
const CUT = 5000;

const RESTARTS = 20;

/** Connections of one process, and this many are terminated. */
const CONNECTIONS = 18;
const TERMINATED = 100;

describe('outages', { concurrency: true }, () => {
  test('rule 23: the server is stopped under load and comes back, then is restarted twenty times', async (context) => {
    const server = await PostgresServer.start();
    context.after(() => server.remove());
    const service = await startServiceProcess(server.url());
    context.after(() => service.stop());
    const load = await Load.start(context, service.client);

    await server.stop();
    await waitUntil(() => load.unavailable > 0);
    await pause(AWAY);
    await server.startAgain();
    const resumed = await load.moreWrites(1);
    context.diagnostic(`after a stop of ${AWAY} ms, first success ${resumed} ms after the return`);
    assert.ok(resumed < FIRST_SUCCESS);

    let slowest = 0;
    for (let restart = 1; restart <= RESTARTS; restart += 1) {
      await load.moreWrites(20);
      await server.kill('SIGQUIT');
      await server.startAgain();
      slowest = Math.max(slowest, await load.moreWrites(1));
    }
    context.diagnostic(`${RESTARTS} restarts, first success at most ${slowest} ms after the return`);
    assert.ok(slowest < FIRST_SUCCESS);
    await endWell(context, service, load, server.url());
  });

  test('rule 23: connections are terminated one by one under load', async (context) => {
    const dbUrl = await freshDatabase();
    const service = await startServiceProcess(dbUrl);
    context.after(() => service.stop());
    const load = await Load.start(context, service.client);
    for (let terminated = 0; terminated < TERMINATED; ) {
      const rows = await execute<{ done: boolean }>(
        dbUrl,
        `select pg_terminate_backend(pid) as done from pg_stat_activity
         where application_name = 'book-catalogue' and datname = current_database() order by random() limit 1`,
      );
      terminated += rows.length;
      await load.moreWrites(1);
    }
    await endWell(context, service, load, dbUrl);
  });

  test('rule 23: the network to the server is cut without a word and mended', async (context) => {
    const dbUrl = await freshDatabase();
    const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
    context.after(() => proxy.stop());
    const service = await startServiceProcess(proxiedUrl);
    context.after(() => service.stop());
    const load = await Load.start(context, service.client);
    proxy.cut();
    await pause(CUT);
    proxy.mend();
    const returned = performance.now();
    await Promise.all([
      load.moreWrites(1),
      ...['GET', 'PUT', 'DELETE'].map((method) => {
        const absent = () =>
          service.client.request(method, '/book/999999', { ...(method === 'PUT' && { body: '{}' }) });
        return waitUntil(async () => (await absent()).status === 404);
      }),
      waitUntil(async () => (await service.client.request('GET', '/books')).status === 200),
    ]);
    const resumed = Math.round(performance.now() - returned);
    context.diagnostic(
      `after a cut of ${CUT} ms, first success of every kind ${resumed} ms after the return`,
    );
    assert.ok(resumed < FIRST_SUCCESS);
    await endWell(context, service, load, dbUrl);
  });

  test('rule 23: a write whose answer is lost is 503 and has happened once; nobody else waits for that', async (context) => {
    const dbUrl = await freshDatabase();
    const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
    context.after(() => proxy.stop());
    const service = await startServiceProcess(proxiedUrl);
    context.after(() => service.stop());
    const { client } = service;
    await execute(
      dbUrl,
      `create table written (what text);
       create function note() returns trigger language plpgsql as $$
         begin insert into written values (tg_op); return null; end $$;
       create trigger note after insert or update or delete on books for each row execute function note()`,
    );
    const [changed, removed] = await Promise.all([client.create({ year: 1 }), client.create({ year: 2 })]);

    // Opens as many connections as the writes need, and one of a list, before answers are lost.
    await Promise.all([
      client.list(),
      client.request('GET', '/book/99'),
      client.request('PUT', '/book/99', { body: {} }),
      client.request('DELETE', '/book/99'),
    ]);
    proxy.swallowAnswers();
    const began = performance.now();
    const answers = await Promise.all([
      client.request('POST', '/book', { body: { year: 3 } }),
      client.request('PUT', `/book/${changed.id}`, { body: { title: 'changed' } }),
      client.request('DELETE', `/book/${removed.id}`),
    ]);
    assert.ok(performance.now() - began < ANSWER, `${performance.now() - began} ms`);
    for (const { status, headers } of answers) {
      assert.equal(status, 503);
      assert.ok(Number(headers.get('retry-after')) > 0);
    }
    const books = await client.list(); // on a new connection: what one lost puts all others in doubt
    assert.deepEqual(
      books.map(({ title, year }) => [title, year]),
      [
        ['changed', 1],
        ['', 3],
      ],
    );
    const written = await execute<{ what: string }>(dbUrl, 'select what from written');
    const operations = written.map(({ what }) => what).toSorted();
    assert.deepEqual(operations, ['DELETE', 'INSERT', 'INSERT', 'INSERT', 'UPDATE']);
  });
});

/** The process lives, nothing acknowledged is lost or there twice, and the connections are as they should be. */
async function endWell(
  context: TestContext,
  { process }: ServiceProcess,
  load: Load,
  dbUrl: string,
): Promise<void> {
  await load.moreWrites(100);
  await load.stop();
  context.diagnostic(
    `${load.acknowledged} writes acknowledged, ${load.unavailable} refused, slowest answer ${load.slowest} ms`,
  );
  assert.equal(process.exitCode, null);
  await waitUntil(async () => {
    const connections = await execute<{ state: string }>(
      dbUrl,
      `select state from pg_stat_activity
       where application_name = 'book-catalogue' and datname = current_database()`,
    );
    return connections.length <= CONNECTIONS && connections.every(({ state }) => state === 'idle');
  });
}
