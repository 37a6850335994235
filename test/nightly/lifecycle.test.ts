// Ends that wait for clients, and starts that wait for others. The real command in separate processes. How long a shutdown
// may take is tested in start-and-end.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { RawAnswer } from '../../conformance/answers.ts';
import { accepts, Connection, parseAnswers, type Target } from '../support/client.ts';
import { inTime } from '../support/in-time.ts';
import { connectTo, execute } from '../support/postgres.ts';
import {
  ENVIRONMENT,
  endOf,
  pageOf,
  type ServiceProcess,
  STORES,
  spawnService,
  startServiceProcess,
  startTestService,
} from '../support/service.ts';
import { holdWrites } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

type Store = (typeof STORES)[number];

/** Milliseconds that requests in progress at a signal have; then they are cut off. */
const GRACE = 6000;

/** Milliseconds within which a connection may send its last request (rule 27). */
const LAST_REQUEST = 500;

/** Milliseconds that the service waits for its store at least, for a lock or a connection; then it may answer 503. */
const STORE_TIMEOUT = 1500;

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

  if (store.name === 'PostgreSQL') {
    test('rule 27: SIGTERM ends the service with exit code 0, whatever its clients do', async (context) => {
      const service = await start(context);
      await execute(
        service.dbUrl,
        "insert into books (title) select repeat('x', 2000) from generate_series(1, 10000)",
      );
      const { token } = service.client;
      await dial(context, service); // idle
      await dial(context, pageOf(service));
      const mute = connect(service.port, '127.0.0.1'); // never sends anything
      mute.on('error', () => {});
      context.after(() => mute.destroy());
      const halfHead = await dial(context, service);
      await halfHead.send('GET /books HTTP/1.1\r\nHost: x\r\n');
      const halfBody = await dial(context, service);
      await halfBody.send(`${head('POST', '/book', token, 1000)}{"title":`);
      const stalled = connect(service.port, '127.0.0.1');
      stalled.on('error', () => {});
      context.after(() => stalled.destroy());
      stalled.write(head('GET', '/books', token));
      await once(stalled, 'readable'); // the list has started, and is not read
      service.process.kill('SIGTERM');
      await endedWell(service);
    });
  }

  test('rule 27: requests in progress at SIGTERM are stored and answered, pipelined ones included; no new connection is accepted', async (context) => {
    await inTime(STORE_TIMEOUT, async (startClock) => {
      const service = await start(context);
      const { token } = service.client;
      const clients = await Promise.all(
        Array.from({ length: 20 }, (_, position) => dial(context, portOf(service, position))),
      );
      const titles = clients.map((_, position) => [1, 2, 3].map((count) => `${position}/${count}`));
      const letWritesGo = await holdWrites(service.dbUrl);
      startClock();
      await Promise.all(
        clients.map((client, position) => {
          const bodies = titles[position]?.map((title) => JSON.stringify({ title })) ?? [];
          return client.send(bodies.map((body) => head('POST', '/book', token, body.length) + body).join(''));
        }),
      );
      await service.client.request('GET', '/book/1'); // by now all of them have arrived
      service.process.kill('SIGTERM');
      await waitUntil(() => isStopping(service));
      await waitUntil(() => acceptsNothing(service));
      await letWritesGo();
      await endedWell(service);

      await Promise.all(clients.map(({ closed }) => closed));
      clients.forEach((client, position) => {
        const answers = answersOf(client);
        assert.deepEqual(
          answers.map(({ status, body }) => [status, JSON.parse(body).data?.title]),
          titles[position]?.map((title) => [201, title]),
        );
        assert.equal(answers.at(-1)?.headers.connection, 'close');
      });
      const again = await startTestService(service.dbUrl);
      const stored = (await again.client.list()).map(({ title }) => title);
      await again.stop();
      assert.deepEqual(stored.sort(), titles.flat().sort());
    });
  });

  test('rule 27: at SIGINT under load, every stored book is acknowledged and every acknowledged book is stored', async (context) => {
    await inTime(GRACE, async (startClock) => {
      const service = await start(context);
      const answered: string[] = [];
      const unknown = new Set<string>(); // answered with 503, on a machine that is too slow for all writes
      await Promise.all(
        Array.from({ length: 32 }, async (_, writer) => {
          for (let count = 0; ; count += 1) {
            const title = `${writer}/${count}`;
            const outcome = await service.client
              .request('POST', '/book', { body: { title } })
              .catch((error: unknown) => {
                if (error instanceof TypeError) return undefined; // the connection broke
                throw error;
              });
            if (outcome === undefined) return;
            if (outcome.status === 503) {
              unknown.add(title);
              continue;
            }
            assert.equal(outcome.status, 201);
            answered.push(title);
            if (answered.length !== 150) continue;
            startClock();
            service.process.kill('SIGINT');
          }
        }),
      );
      await endedWell(service);

      const again = await startTestService(service.dbUrl);
      const stored = (await again.client.list()).map(({ title }) => title);
      await again.stop();
      assert.deepEqual(stored.filter((title) => !unknown.has(title)).sort(), answered.sort());
    });
  });

  test('rule 27: requests completed after SIGTERM are answered, and the answers say that the connection closes', async (context) => {
    await inTime(STORE_TIMEOUT, async (startClock) => {
      const service = await start(context);
      const { token } = service.client;
      const { id } = await service.client.create({ title: 'before' });
      const login = '{"username":"librarian","password":"correct horse"}';
      const asked: [text: string, status: number][] = [
        [head('GET', `/book/${id}`, token), 200],
        [head('GET', '/books', token), 200],
        [head('HEAD', '/books', token), 200],
        [head('POST', '/token', '', login.length) + login, 200],
        [`${head('POST', '/book', token, 2)}{}`, 201],
        [`${head('PUT', `/book/${id}`, token, 2)}{}`, 200],
        [`${head('PUT', `/book/${id}`, token, 2)}[]`, 400],
        [head('DELETE', `/book/${id + 1000}`, token), 404],
        [head('GET', '/books', 'no token'), 401],
        [head('GET', '/nowhere', token), 404],
        [head('PATCH', '/books', token), 405],
        [head('GET', '/book/%zz', token), 400],
      ];
      const clients = await Promise.all(asked.map((_, position) => dial(context, portOf(service, position))));
      asked.push([head('GET', '/', ''), 200]); // the page, which nobody has opened before
      clients.push(await dial(context, pageOf(service)));
      await Promise.all(
        clients.map((client, position) => client.send(asked[position]?.[0].slice(0, -1) ?? '')),
      );
      await service.client.request('GET', '/nowhere'); // by now all of them have arrived
      startClock();
      service.process.kill('SIGTERM');
      await waitUntil(() => acceptsNothing(service)); // every worker has stopped listening
      await Promise.all(clients.map((client, position) => client.send(asked[position]?.[0].slice(-1) ?? '')));
      await endedWell(service);
      await Promise.all(clients.map(({ closed }) => closed));
      asked.forEach(([text, status], position) => {
        const [answer] = answersOf(clients[position] as Connection);
        assert.equal(answer?.status, status, text);
        assert.equal(answer?.headers.connection, 'close', text);
      });
    });
  });

  test('rule 27: a connection that is idle at SIGTERM may still send a last request', async (context) => {
    await inTime(LAST_REQUEST, async (startClock) => {
      const service = await start(context);
      const clients = await Promise.all(
        Array.from({ length: 4 }, (_, position) => dial(context, portOf(service, position))),
      );
      startClock();
      service.process.kill('SIGTERM');
      await waitUntil(() => acceptsNothing(service)); // every worker has stopped listening
      await pause(LAST_REQUEST / 4);
      await Promise.all(clients.map((client) => client.send(head('GET', '/books', service.client.token))));
      for (const client of clients) {
        const [, answer] = await client.answers(2);
        assert.deepEqual([answer?.status, answer?.headers.connection], [200, 'close']);
      }
      await endedWell(service);
    });
  });

  if (store.name === 'SQLite') {
    test('rule 27: a long answer is not cut off by SIGTERM while its reader is slow', async (context) => {
      await inTime(GRACE, async (startClock) => {
        const service = await start(context, undefined, { BODY_LIMIT: String(20_000_000) });
        const title = 'x'.repeat(16_000_000);
        const book = await service.client.create({ title });
        const socket = connect(service.port, '127.0.0.1');
        context.after(() => socket.destroy());
        socket.write(head('GET', `/book/${book.id}`, service.client.token));
        await once(socket, 'readable'); // the answer has started, and is not read yet
        startClock();
        service.process.kill('SIGTERM');
        await waitUntil(async () => !(await accepts('127.0.0.1', service.port)));
        const chunks: Buffer[] = [];
        for await (const chunk of socket) chunks.push(chunk);
        const [answer] = parseAnswers(Buffer.concat(chunks).toString('latin1'));
        assert.equal(answer?.status, 200);
        assert.equal(JSON.parse(answer.body).data.title.length, title.length);
        await endedWell(service);
      });
    });
  }
}

function testStarts(store: Store): void {
  if (store.name === 'PostgreSQL') {
    test('rule 27: a service that waits while another program creates the structure then uses it', async (context) => {
      const lockTimeout = 3000; // of a start
      await inTime(lockTimeout, async (startClock) => {
        const dbUrl = await store.freshUrl();
        const first = await connectTo(context, dbUrl);
        await first.query(`
          begin;
          create sequence books_id_seq;
          create table books (
            id bigint primary key default nextval('books_id_seq'),
            title text not null, author text not null, year bigint not null
          )`);
        startClock();
        const start = startTestService(dbUrl);
        const isWaiting = async () => {
          const { rowCount } = await first.query(
            'select from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))',
          );
          return rowCount === 1;
        };
        await Promise.race([start, waitUntil(isWaiting)]); // waits for the outcome of the first
        await first.query('commit');
        const second = await start;
        assert.deepEqual(await second.client.list(), []);
        await second.client.create({});
        await second.stop();
      });
    });

    for (const workers of ['1', '2']) {
      test(`rule 27: SIGTERM ends a start that waits for others, with exit code 0; WORKERS=${workers}`, async (context) => {
        const dbUrl = await store.freshUrl();
        await (await startTestService(dbUrl)).stop();
        await execute(dbUrl, 'alter table books alter column author type varchar(40)'); // as in an older version
        const reader = await connectTo(context, dbUrl);
        await reader.query('begin; select from books');
        const service = spawnService({ ...ENVIRONMENT, DB_URL: dbUrl, WORKERS: workers, LOG_LEVEL: 'warn' });
        context.after(() => service.kill('SIGKILL'));
        await once(service.stdout as NodeJS.ReadableStream, 'data'); // the log says that it waits
        service.kill('SIGTERM');
        const { code, stderr } = await endOf(service);
        assert.deepEqual([code, stderr], [0, '']);
        await reader.query('commit');
        await waitUntil(async () => (await othersOn(dbUrl)) === 1); // the reader: no worker is left
      });
    }
  }
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

/** The service's own port and that of the page in turn. */
function portOf(service: ServiceProcess, position: number): Target {
  return position % 2 === 0 ? service : pageOf(service);
}

async function acceptsNothing(service: ServiceProcess): Promise<boolean> {
  const ports = [service.port, pageOf(service).port];
  return (await Promise.all(ports.map((port) => accepts('127.0.0.1', port)))).every((accepted) => !accepted);
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

/** The answers on a connection after the one that showed that it was accepted. */
function answersOf({ received }: Connection): RawAnswer[] {
  return parseAnswers(received).slice(1);
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
