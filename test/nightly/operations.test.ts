// The operations listener while a service starts, ends, is overloaded or has lost its database, and with slow clients.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { accepts, Client, Connection } from '../support/client.ts';
import { type CommandHere, runCommand, startHere } from '../support/command.ts';
import { inTime } from '../support/in-time.ts';
import { operationsOf } from '../support/operations.ts';
import { listen, unusedPort } from '../support/ports.ts';
import { execute } from '../support/postgres.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { TcpProxy } from '../support/proxy.ts';
import { compose } from '../support/raw-requests.ts';
import { ENVIRONMENT, POSTGRES, SQLITE, STORES, startCommand } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds that requests in progress at SIGTERM have. */
const GRACE = 6000;

/** Milliseconds that the store has to answer. */
const READY_TIMEOUT = 2000;

/** Milliseconds within which a database must accept a connection. */
const CONNECT_TIMEOUT = 3000;

describe('the operations listener', { concurrency: 4 }, () => {
  for (const store of STORES) {
    const WORKERS = store.name === 'SQLite' ? '1' : '2';
    test(`rule 31: on ${store.name}, WORKERS=${WORKERS}, says that the service is alive, ready and then draining`, async (context) => {
      await inTime(GRACE, async (startClock) => {
        const service = await startCommand({
          ...ENVIRONMENT,
          LOG_LEVEL: 'info',
          DB_URL: await store.freshUrl(),
          WORKERS,
        });
        context.after(() => service.process.kill('SIGKILL'));
        const operations = operationsOf(service).url;
        assert.deepEqual(await ask(operations, '/livez'), [200, 'alive\n']);
        assert.deepEqual(await ask(operations, '/readyz'), [200, 'ready\n']);
        assert.equal((await ask(operations, '/book/1'))[0], 404);
        assert.equal((await ask(service.url, '/livez'))[0], 404);
        assert.equal((await ask(service.url, '/readyz'))[0], 404);

        // An incomplete request delays the end of the service for as long as it may.
        const half = new Connection(service);
        context.after(() => half.socket.destroy());
        await half.send('GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n');
        await half.answers(1);
        await half.send('POST /token HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{');
        startClock();
        service.process.kill('SIGTERM');
        await waitUntil(async () => (await ask(operations, '/readyz'))[1] !== 'ready\n');
        assert.deepEqual(await ask(operations, '/readyz'), [503, 'draining\n']);
        assert.deepEqual(await ask(operations, '/livez'), [200, 'alive\n']);
        half.socket.destroy();
        await waitUntil(() => service.process.exitCode !== null);
        assert.equal(service.process.exitCode, 0);
      });
    });
  }

  if (STORES.includes(POSTGRES)) {
    test('rules 23 and 31: is alive but not ready while the database is unavailable, with WORKERS=1 and WORKERS=2', async (context) => {
      const { proxy, proxiedUrl } = await TcpProxy.to(await POSTGRES.freshUrl());
      context.after(() => proxy.stop());
      const alone = await start(context, { DB_URL: proxiedUrl });
      const two = await startCommand({ ...ENVIRONMENT, LOG_LEVEL: 'info', DB_URL: proxiedUrl, WORKERS: '2' });
      context.after(() => two.process.kill('SIGKILL'));
      const listeners = [operationsOf(alone).url, operationsOf(two).url];
      const { target } = proxy;
      proxy.target = await listen(context, (socket) => socket.destroy());
      proxy.reset();
      for (const operations of listeners) {
        await waitUntil(async () => (await ask(operations, '/readyz'))[0] === 503);
        assert.deepEqual(await ask(operations, '/readyz'), [503, 'the store does not answer\n']);
        assert.deepEqual(await ask(operations, '/livez'), [200, 'alive\n']);
      }
      proxy.target = target;
      for (const operations of listeners) {
        await waitUntil(async () => (await ask(operations, '/readyz'))[0] === 200);
      }
    });
  }

  if (STORES.includes(POSTGRES)) {
    test('rule 31: is ready while the store has more to do than it can in time', async (context) => {
      const DB_URL = await POSTGRES.freshUrl();
      const service = await start(context, { DB_URL });
      const { token } = await Client.logIn(service);
      await execute(
        DB_URL,
        `insert into books (id) values (1);
         alter table books rename to stored;
         create view books as select stored.* from stored cross join lateral (select pg_sleep(0.7) offset 0) as slow`,
      );
      const operations = operationsOf(service).url;
      const read = compose('GET', '/book/1', { token });
      const connections = Array.from({ length: 300 }, () => new Connection(service));
      context.after(() => {
        for (const { socket } of connections) socket.destroy();
      });
      const refused = async () =>
        sumOf(await scrape(operations), 'book_catalogue_store_errors_total', { reason: 'overload' });
      await inTime(READY_TIMEOUT, async (startClock) => {
        const before = await refused();
        await waitUntil(async () => {
          for (const { socket } of connections) socket.write(read.repeat(8));
          return (await refused()) > before;
        });
        startClock();
        assert.deepEqual(await ask(operations, '/readyz'), [200, 'ready\n']);
      });
    });
  }

  test('rule 31: slow clients of its port delay neither the service nor operators', async (context) => {
    const service = await start(context);
    const operations = operationsOf(service);
    const slow = Array.from({ length: 200 }, () => new Connection(operations));
    for (const { socket } of slow) socket.write('GET /livez HTTP/1.1\r\nX: ');
    assert.equal((await ask(service.url, '/books'))[0], 401);
    await Promise.all(slow.map(({ closed }) => closed));
    assert.deepEqual(await ask(operations.url, '/livez'), [200, 'alive\n']);
  });

  test('rule 31: says starting until the store is open', async (context) => {
    await inTime(CONNECT_TIMEOUT, async (startClock) => {
      const silent = await listen(context);
      const port = await unusedPort();
      startClock();
      const outcome = runCommand([], {
        ...ENVIRONMENT,
        ADMIN_PORT: String(port),
        DB_URL: `postgres://user:password@127.0.0.1:${silent.port}/library`,
      });
      await waitUntil(() => accepts('127.0.0.1', port));
      assert.deepEqual(await ask(`http://127.0.0.1:${port}`, '/readyz'), [503, 'starting\n']);
      assert.deepEqual(await ask(`http://127.0.0.1:${port}`, '/livez'), [200, 'alive\n']);
      assert.equal((await outcome).code, 1);
    });
  });
});

/** Starts the command in this process, on SQLite unless `env` says otherwise. */
async function start(context: TestContext, env: Record<string, string> = {}): Promise<CommandHere> {
  const DB_URL = await SQLITE.freshUrl();
  const service = await startHere({ ...ENVIRONMENT, DB_URL, LOG_LEVEL: 'info', ...env });
  context.after(() => service.stop());
  return service;
}

async function ask(url: string, path: string): Promise<[status: number, text: string]> {
  const response = await fetch(`${url}${path}`);
  return [response.status, await response.text()];
}
