// Ends that wait for clients and for the store, and a start that waits for others. The real command in separate processes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { accepted, type Connection } from '../support/client.ts';
import { connectTo, execute, waitingIn } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import {
  ENVIRONMENT,
  endOf,
  POSTGRES,
  pageOf,
  type ServiceProcess,
  SQLITE,
  STORES,
  spawnService,
  startServiceProcess,
  startTestService,
  testOnPostgres,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

describe('rule 27: SIGTERM', { concurrency: 4 }, () => {
  for (const [store, WORKERS] of [
    [SQLITE, '1'],
    [POSTGRES, '1'],
    [POSTGRES, '2'],
  ] as const) {
    const isServer = store === POSTGRES;
    const skip = !STORES.includes(store) && 'this run tests the other store';
    test(`ends the service with exit code 0 within 10 s, whatever its clients do${isServer ? ', if its database has fallen silent' : ''}; on ${store.name}, WORKERS=${WORKERS}`, {
      skip,
    }, async (context) => {
      const url = await store.freshUrl();
      const { proxy, proxiedUrl } = isServer ? await TcpProxy.to(url) : { proxy: undefined, proxiedUrl: url };
      const service = await startServiceProcess(proxiedUrl, { WORKERS, BODY_LIMIT: '20000000' });
      const halves = await occupy(context, service);
      proxy?.swallowAnswers();
      const complete = () =>
        halves
          .pop()
          ?.send('}')
          .catch(() => {});
      // One by one, so that a statement is in progress when their time is over.
      const asking = setInterval(complete, 100);
      context.after(() => clearInterval(asking));
      await service.stop();
      assert.equal(service.process.exitCode, 0); // a process that needs 9.5 s kills itself, and has none
    });
  }

  for (const WORKERS of ['1', '2']) {
    testOnPostgres(
      `ends a start on PostgreSQL that waits for others, with exit code 0; WORKERS=${WORKERS}`,
      async (context) => {
        const dbUrl = await POSTGRES.freshUrl();
        await (await startTestService(dbUrl)).stop();
        await execute(dbUrl, 'alter table books alter column author type varchar(40)'); // as in an older version
        const reader = await connectTo(context, dbUrl);
        await reader.query('begin; select from books');
        const service = spawnService({ ...ENVIRONMENT, DB_URL: dbUrl, WORKERS, LOG_LEVEL: 'warn' });
        const ended = endOf(service);
        await waitUntil(async () => (await waitingIn(dbUrl)).length > 0, ended);
        service.kill('SIGTERM');
        const { code, stderr } = await ended;
        assert.deepEqual([code, stderr], [0, '']);
        await reader.query('commit');
        const others =
          'select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()';
        await waitUntil(async () => (await reader.query(others)).rowCount === 0); // no worker is left
      },
    );
  }
});

/** Connects clients of every bad kind. @returns those whose requests lack the last byte. */
async function occupy(context: TestContext, service: ServiceProcess): Promise<Connection[]> {
  const head = (method: string, path: string, length = 0) =>
    `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${service.client.token}\r\nContent-Length: ${length}\r\n\r\n`;
  const dial = async (text = '', target: { readonly port: number } = service) => {
    const connection = await accepted(context, target);
    await connection.send(text);
    return connection;
  };
  /** One whose answers are not read. */
  const unread = (text: string) => {
    const socket = connect(service.port, '127.0.0.1').on('error', () => {});
    context.after(() => socket.destroy());
    socket.write(text);
    return socket;
  };
  // No buffers between the service and its client can hold it.
  const { id } = await service.client.create({ title: 'x'.repeat(16_000_000) });
  await Promise.all([dial(), dial('', pageOf(service)), dial('GET /books HTTP/1.1\r\nHost: x\r\n')]);
  await dial(`${head('POST', '/book', 1000)}{"title":`);
  unread('');
  await once(unread(head('GET', `/book/${id}`)), 'readable'); // the answer has started
  return Promise.all(Array.from({ length: 100 }, () => dial(`${head('POST', '/book', 2)}{`)));
}
