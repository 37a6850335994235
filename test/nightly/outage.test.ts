// PostgreSQL becomes unavailable in different ways and comes back, while clients write all the time. How long an answer
// may take is tested in test/release/answers.test.ts.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Load } from '../support/load.ts';
import { execute, freshDatabase, PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { startTestService } from '../support/service.ts';
import { holdIndex } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

const RESTARTS = 3;

/** The most connections of one process, and how many are terminated. */
const CONNECTIONS = 18;
const TERMINATED = 20;

describe('outages', { concurrency: true }, () => {
  test('rule 23: the server is stopped under load and comes back, then crashes three times', async (context) => {
    const server = await PostgresServer.start();
    context.after(() => server.remove());
    const load = await startUnderLoad(context, server.url());
    await server.stop();
    await load.allRefused();
    await server.startAgain();
    context.diagnostic(`first success ${await load.moreWrites(1)} ms after the return`);
    for (let restart = 1; restart <= RESTARTS; restart += 1) {
      await load.moreWrites(20);
      await server.kill('SIGQUIT');
      await server.startAgain();
      context.diagnostic(`first success ${await load.moreWrites(1)} ms after restart ${restart}`);
    }
    await endWell(context, load, server.url());
  });

  test('rule 23: connections are terminated one by one under load', async (context) => {
    const dbUrl = await freshDatabase();
    const load = await startUnderLoad(context, dbUrl);
    for (let terminated = 0; terminated < TERMINATED; ) {
      const rows = await execute<{ done: boolean }>(
        dbUrl,
        `select pg_terminate_backend(pid) as done from pg_stat_activity
         where application_name = 'book-catalogue' and datname = current_database() order by random() limit 1`,
      );
      terminated += rows.length;
      await load.moreWrites(1);
    }
    await endWell(context, load, dbUrl);
  });

  test('rule 23: the network to the server is cut silently and restored', async (context) => {
    const dbUrl = await freshDatabase();
    const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
    context.after(() => proxy.stop());
    const service = await startTestService(proxiedUrl);
    context.after(() => service.stop());
    const load = await Load.start(context, service.client);
    proxy.cut();
    await load.allRefused(); // every statement that was in progress has been given up
    proxy.restore();
    await load.moreWrites(1);
    const answers: [method: string, path: string, status: number][] = [
      ['GET', '/books', 200],
      ['GET', '/book/999999', 404],
      ['PUT', '/book/999999', 404],
      ['DELETE', '/book/999999', 404],
    ];
    for (const [method, path, expected] of answers) {
      await waitUntil(async () => (await service.client.request(method, path)).status === expected);
    }
    await endWell(context, load, dbUrl);
  });

  test('rule F11: the first index continues after its server was silent in the midst of it', async (context) => {
    const dbUrl = await freshDatabase();
    const before = await startTestService(dbUrl);
    await before.stop();
    await execute(
      dbUrl,
      `insert into books (title) values ('Here'); update book_index_state set is_complete = false`,
    );
    const letGo = await holdIndex(dbUrl);
    const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
    context.after(() => proxy.stop());
    const service = await startTestService(proxiedUrl);
    context.after(() => service.stop());
    await waitUntil(async () => {
      const waiting = await execute(
        dbUrl,
        `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      );
      return waiting.length > 0;
    });
    proxy.cut();
    await letGo();
    proxy.restore(); // the connection of the index stays cut
    await waitUntil(async () => {
      const { status, data } = await service.client.request('GET', '/books?q=here');
      return status === 200 && (data as readonly unknown[]).length === 1;
    });
  });

  test('rule 23: a write whose answer is lost gets 503 and has happened once; no other request fails', async (context) => {
    const dbUrl = await freshDatabase();
    const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
    context.after(() => proxy.stop());
    const service = await startTestService(proxiedUrl);
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

    // Opens as many connections as the writes need, and one for a list, before answers are lost.
    await Promise.all([
      waitUntil(async () => (await client.request('GET', '/books')).status === 200), // on a busy machine not the first time
      client.request('GET', '/book/99'),
      client.request('PUT', '/book/99', { body: {} }),
      client.request('DELETE', '/book/99'),
    ]);
    proxy.swallowAnswers();
    const answers = await Promise.all([
      client.request('POST', '/book', { body: { year: 3 } }),
      client.request('PUT', `/book/${changed.id}`, { body: { title: 'changed' } }),
      client.request('DELETE', `/book/${removed.id}`),
    ]);
    for (const { status, headers } of answers) {
      assert.equal(status, 503);
      assert.ok(Number(headers.get('retry-after')) > 0);
    }
    assert.ok(proxy.resets >= 3); // no statement that is still under way arrives after newer changes; others look for books to index
    const books = await client.list(); // on a new connection: after a lost one, all are replaced
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

async function startUnderLoad(context: TestContext, dbUrl: string): Promise<Load> {
  const service = await startTestService(dbUrl);
  context.after(() => service.stop());
  return await Load.start(context, service.client);
}

/** Fails if an acknowledged write is lost or stored twice; waits until the connections are idle and not too many. */
async function endWell(context: TestContext, load: Load, dbUrl: string): Promise<void> {
  await load.moreWrites(50);
  await load.stop();
  context.diagnostic(
    `${load.acknowledged} writes acknowledged, ${load.unavailable} refused, slowest answer ${load.slowest} ms`,
  );
  await waitUntil(async () => {
    const connections = await execute<{ state: string }>(
      dbUrl,
      `select state from pg_stat_activity
       where application_name = 'book-catalogue' and datname = current_database()`,
    );
    return connections.length <= CONNECTIONS && connections.every(({ state }) => state === 'idle');
  });
}
