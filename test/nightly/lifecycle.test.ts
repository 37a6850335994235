// Ends that wait for clients or for the store, and starts that wait for others. The real command in separate processes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { accepts, Connection, parseAnswers, type Target } from '../support/client.ts';
import { connectTo, execute } from '../support/postgres.ts';
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
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** A title that no buffers between the service and its client can hold. */
const LONG_TITLE = 'x'.repeat(16_000_000);
const ROOMY = { BODY_LIMIT: '20000000' };

const skip = !STORES.includes(POSTGRES) && 'this run tests SQLite only';

describe('rule 27: the end', { concurrency: 3 }, () => {
  // The number of processes and the store both matter to signals and connections, but not to each other.
  for (const store of STORES) {
    const WORKERS = store.name === 'SQLite' ? '1' : '2';
    const name = `on ${store.name}, WORKERS=${WORKERS}`;

    test(`${name}: SIGTERM ends the service with exit code 0 within 10 s, whatever its clients do`, async (context) => {
      const service = await start(context, await store.freshUrl(), { WORKERS, ...ROOMY });
      const { token } = service.client;
      const { id } = await service.client.create({ title: LONG_TITLE });
      await dial(context, service); // idle
      await dial(context, pageOf(service));
      unread(context, service, ''); // never sends anything
      await (await dial(context, service)).send('GET /books HTTP/1.1\r\nHost: x\r\n');
      await (await dial(context, service)).send(`${head('POST', '/book', token, 1000)}{"title":`);
      const stalled = unread(context, service, head('GET', `/book/${id}`, token));
      await once(stalled, 'readable'); // the answer has started, and is not read
      await endsWell(service);
    });
  }

  test('a second signal ends the service at once', async (context) => {
    const service = await start(context, await SQLITE.freshUrl());
    await (await dial(context, service)).send('GET /books HTTP/1.1\r\n');
    service.process.kill('SIGINT');
    await waitUntil(() => service.log.some((line) => line.includes('"msg":"stopping"')));
    await waitUntil(() => {
      service.process.kill('SIGINT'); // one that follows too soon counts as the first one
      return service.process.exitCode !== null || service.process.signalCode !== null;
    });
    assert.equal(service.process.signalCode, 'SIGINT');
  });

  test('a long answer is not cut off while its reader is slow', async (context) => {
    const service = await start(context, await SQLITE.freshUrl(), ROOMY);
    const { id } = await service.client.create({ title: LONG_TITLE });
    const socket = unread(context, service, head('GET', `/book/${id}`, service.client.token));
    await once(socket, 'readable'); // the answer has started, and is not read yet
    const ended = endsWell(service);
    await waitUntil(async () => !(await accepts('127.0.0.1', service.port)));
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    const [answer] = parseAnswers(Buffer.concat(chunks).toString('latin1'));
    assert.equal(JSON.parse(answer?.body ?? '').data.title, LONG_TITLE);
    await ended;
  });

  test('SIGTERM ends the service within 10 s if its database has fallen silent', {
    skip,
  }, async (context) => {
    const { proxy, proxiedUrl } = await TcpProxy.to(await POSTGRES.freshUrl());
    context.after(() => proxy.stop());
    const service = await start(context, proxiedUrl);
    proxy.swallowAnswers();
    // Requests that are completed one by one, so that a statement is in progress when their time is over.
    const halves = await Promise.all(Array.from({ length: 100 }, () => dial(context, service)));
    const post = head('POST', '/book', service.client.token, 2);
    for (const half of halves) await half.send(`${post}{`);
    const asking = setInterval(
      () =>
        halves
          .pop()
          ?.send('}')
          .catch(() => {}),
      100,
    );
    context.after(() => clearInterval(asking));
    await endsWell(service);
  });
});

describe('rule 27: a start on PostgreSQL that waits', { concurrency: 3, skip }, () => {
  test('while another program creates the structure then uses it', async (context) => {
    const dbUrl = await POSTGRES.freshUrl();
    const first = await connectTo(context, dbUrl);
    await first.query(`
      begin;
      create sequence books_id_seq;
      create table books (
        id bigint primary key default nextval('books_id_seq'),
        title text not null, author text not null, year bigint not null
      )`);
    const starting = startTestService(dbUrl);
    const waiting =
      'select from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))';
    await waitUntil(async () => (await first.query(waiting)).rowCount === 1, starting);
    await first.query('commit');
    const second = await starting;
    await second.client.create({});
    assert.equal((await second.client.list()).length, 1);
    await second.stop();
  });

  for (const WORKERS of ['1', '2']) {
    test(`for others ends at SIGTERM, with exit code 0; WORKERS=${WORKERS}`, async (context) => {
      const dbUrl = await POSTGRES.freshUrl();
      await (await startTestService(dbUrl)).stop();
      await execute(dbUrl, 'alter table books alter column author type varchar(40)'); // as in an older version
      const reader = await connectTo(context, dbUrl);
      await reader.query('begin; select from books');
      const service = spawnService({ ...ENVIRONMENT, DB_URL: dbUrl, WORKERS, LOG_LEVEL: 'warn' });
      const ended = endOf(service);
      await Promise.race([once(service.stdout as NodeJS.ReadableStream, 'data'), ended]); // the log says that it waits
      service.kill('SIGTERM');
      const { code, stderr } = await ended;
      assert.deepEqual([code, stderr], [0, '']);
      await reader.query('commit');
      const others =
        'select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()';
      await waitUntil(async () => (await reader.query(others)).rowCount === 0); // no worker is left
    });
  }
});

/** Starts the real command, and kills it at the end of the test if it still runs. */
async function start(
  context: TestContext,
  dbUrl: string,
  env: Record<string, string> = {},
): Promise<ServiceProcess> {
  const service = await startServiceProcess(dbUrl, env);
  context.after(() => service.process.kill('SIGKILL'));
  return service;
}

/** A process that needs 9.5 s kills itself, and has no exit code then. */
async function endsWell(service: ServiceProcess): Promise<void> {
  await service.stop();
  assert.equal(service.process.exitCode, 0);
}

/** A connection that the service has accepted, which an answer shows: others are dropped by a service that stops. */
async function dial(context: TestContext, target: Target): Promise<Connection> {
  const connection = new Connection(target);
  context.after(() => connection.socket.destroy());
  await connection.send(head('GET', '/nowhere', ''));
  await connection.answers(1);
  return connection;
}

/** A connection that sends this, and whose answers are not read. */
function unread(context: TestContext, { port }: Target, text: string): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  context.after(() => socket.destroy());
  socket.write(text);
  return socket;
}

function head(method: string, path: string, token: string, length = 0): string {
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nContent-Length: ${length}\r\n\r\n`;
}
