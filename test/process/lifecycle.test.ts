// How the service starts and ends: restarts, sudden deaths, signals, and two starts at once. Ends that wait for a time limit
// are in test/nightly.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import type { RawAnswer } from '../../conformance/answers.ts';
import { booksOf } from '../support/books.ts';
import { accepted, accepts, parseAnswers } from '../support/client.ts';
import { Ledger } from '../support/ledger.ts';
import { connectTo } from '../support/postgres.ts';
import { compose } from '../support/raw-requests.ts';
import { NIGHTLY, SHELF, scaled } from '../support/scale.ts';
import {
  ENVIRONMENT,
  POSTGRES,
  pageOf,
  type RunningService,
  SQLITE,
  STORES,
  startServiceProcess,
  startTestService,
  testOnPostgres,
} from '../support/service.ts';
import { holdWrites } from '../support/sql.ts';
import { dieYoung, examine, liveAndDie } from '../support/sudden-death.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** Several processes share the writers of a file; each night, it is killed with them as well. */
const WORKERS = process.env[SHELF] === NIGHTLY ? ['1', '2'] : ['1'];

describe('lifecycle', { concurrency: 3 }, () => {
  test('rule 28: no worker outlives the process that started it', async () => {
    const service = await startServiceProcess(await SQLITE.freshUrl(), { WORKERS: '2' });
    const lines = service.log.map((line) => JSON.parse(line));
    const workers: number[] = lines.filter(({ msg }) => msg === 'a worker is serving').map(({ pid }) => pid);
    assert.equal(workers.length, 2);
    service.process.kill('SIGKILL');
    await waitUntil(() => !workers.some(isAlive));
    await waitUntil(async () => !(await accepts('127.0.0.1', service.port)));
  });

  test('rule 27: two signals at the same moment, as from one Ctrl-C, are a graceful shutdown; a later one ends the service at once', async (context) => {
    const service = await startServiceProcess(await SQLITE.freshUrl());
    await (await accepted(context, service)).send('GET /books HTTP/1.1\r\n'); // a graceful shutdown waits for the rest
    const ended = once(service.process, 'close');
    service.process.kill('SIGSTOP'); // so that both are pending when it continues
    service.process.kill('SIGINT');
    service.process.kill('SIGTERM');
    service.process.kill('SIGCONT');
    await waitUntil(() => service.log.some((line) => line.includes('"msg":"stopping"')), ended);
    const isOver = () => service.process.exitCode !== null || service.process.signalCode !== null;
    await waitUntil(() => isOver() || !service.process.kill('SIGINT')); // one that follows too soon counts as the first one
    assert.deepEqual(await ended, [null, 'SIGINT']);
  });

  test('rule 27: requests completed after SIGTERM are answered, and the answers say that the connection closes', async (context) => {
    const service = await startPatient(1); // connections are looked at often
    const { token } = service.client;
    const { id } = await service.client.create({ title: 'before' });
    const login = '{"username":"librarian","password":"correct horse"}';
    const page = pageOf(service);
    const requests = [
      [service, 'GET', `/book/${id}`, token, '', 200],
      [page, 'GET', '/books', token, '', 200],
      [service, 'HEAD', '/books', token, '', 200],
      [service, 'POST', '/token', '', login, 200],
      [page, 'POST', '/book', token, '{}', 201],
      [service, 'PUT', `/book/${id}`, token, '{}', 200],
      [service, 'PUT', `/book/${id}`, token, '[]', 400],
      [service, 'DELETE', `/book/${id + 1000}`, token, '', 404],
      [service, 'GET', '/books', 'no token', '', 401],
      [page, 'PATCH', '/books', token, '', 405],
      [page, 'GET', '/', '', '', 200], // the page, which nobody has opened before
    ] as const;
    const dialled = requests.map(async ([target, method, path, token, body, status]) => {
      const connection = await accepted(context, target);
      const text = compose(method, path, { token, body });
      await connection.send(`${compose('GET', '/nowhere')}${text.slice(0, -1)}`);
      await connection.answers(2); // so the rest has arrived as well
      return { connection, rest: text.slice(-1), name: `${method} ${path} ${status}` };
    });
    const clients = await Promise.all(dialled);
    const stopped = service.stop();
    await waitUntil(() => acceptsNothing(service));
    for (const { connection, rest } of clients) await connection.send(rest);
    await stopped;
    for (const { connection, name } of clients) {
      await connection.closed;
      const { status, headers } = parseAnswers(connection.received)[2] as RawAnswer;
      assert.deepEqual([status, headers.connection], [Number(name.split(' ')[2]), 'close'], name);
    }
  });

  test('rule 27: requests in progress at SIGTERM are stored and answered, pipelined ones included', async (context) => {
    const service = await startPatient();
    const clients = await Promise.all([service, pageOf(service)].map((target) => accepted(context, target)));
    const letWritesGo = await holdWrites(service.dbUrl);
    const post = (title: string) =>
      compose('POST', '/book', { token: service.client.token, body: JSON.stringify({ title }) });
    for (const [position, client] of clients.entries()) {
      await client.send([1, 2, 3].map((count) => post(`${position}/${count}`)).join(''));
    }
    await service.client.request('GET', '/book/1'); // by now all of them have arrived
    const stopped = service.stop();
    await waitUntil(() => acceptsNothing(service));
    await letWritesGo();
    await stopped;
    const stored = await booksOf(service.dbUrl);
    for (const [position, client] of clients.entries()) {
      await client.closed;
      const [, ...answers] = parseAnswers(client.received);
      const found = answers.map(({ status, body }) => [status, JSON.parse(body).data.title]);
      assert.deepEqual(
        found,
        [1, 2, 3].map((count) => [201, `${position}/${count}`]),
      );
      assert.equal(answers.at(-1)?.headers.connection, 'close');
      for (const { body } of answers) assert.ok(stored.some(({ id }) => id === JSON.parse(body).data.id));
    }
  });

  test('rule 27: a connection that is idle at SIGTERM may still send a last request', async (context) => {
    const service = await startPatient(60_000);
    const clients = await Promise.all([service, pageOf(service)].map((target) => accepted(context, target)));
    const stopped = service.stop();
    await waitUntil(() => acceptsNothing(service));
    for (let look = 0; look < 20; look += 1) await acceptsNothing(service); // it does not close them meanwhile
    for (const client of clients) {
      await client.send(compose('GET', '/books', service.client));
      const [, answer] = await client.answers(2);
      assert.deepEqual([answer?.status, answer?.headers.connection], [200, 'close']);
    }
    await stopped;
  });

  test('rule 27: a long answer is not cut off at SIGTERM while its reader is slow', async () => {
    const service = await startPatient(500, { BODY_LIMIT: '20000000' });
    const title = 'x'.repeat(16_000_000); // no buffers between the service and its client can hold it
    const { id } = await service.client.create({ title });
    const socket = connect(service.port, '127.0.0.1');
    socket.write(compose('GET', `/book/${id}`, service.client));
    await once(socket, 'readable'); // the answer has started, and is not read yet
    const stopped = service.stop();
    await waitUntil(() => acceptsNothing(service));
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    const [answer] = parseAnswers(Buffer.concat(chunks).toString('latin1'));
    assert.equal(JSON.parse(answer?.body ?? '').data.title, title);
    await stopped;
  });

  testOnPostgres(
    'rule 27: a start on PostgreSQL waits while another program creates the structure, then uses it',
    async (context) => {
      const dbUrl = await POSTGRES.freshUrl();
      const first = await connectTo(context, dbUrl);
      await first.query(`
      begin;
      create sequence books_id_seq;
      create table books (
        id bigint primary key default nextval('books_id_seq'),
        title text not null, author text not null, year bigint not null
      )`);
      const patient = timesWith({ postgres: { structureWait: 60_000 } });
      const starting = startTestService(dbUrl, {}, undefined, patient);
      const waiting =
        'select from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))';
      await waitUntil(async () => (await first.query(waiting)).rowCount === 1, starting);
      await first.query('commit');
      const second = await starting;
      await second.client.create({});
      assert.equal((await second.client.list()).length, 1);
      await second.stop();
    },
  );

  for (const store of STORES) {
    test(`rule 12: on ${store.name}, a restart keeps every book and gives out no id again, not even the newest`, async () => {
      const first = await startTestService(await store.freshUrl());
      for (const year of [1, 2, 3]) await first.client.create({ year });
      const [oldest, , newest] = await first.client.list();
      await first.client.request('DELETE', `/book/${newest?.id}`);
      await first.client.request('PUT', `/book/${oldest?.id}`, { body: { author: 'known by now' } });
      const kept = await first.client.list();
      assert.equal(kept.length, 2);
      await first.stop();

      const second = await startTestService(first.dbUrl);
      assert.deepEqual(await second.client.list(), kept);
      const { id } = await second.client.create({});
      await second.stop();
      assert.ok(id > Number(newest?.id), `${id} after ${newest?.id}`);
    });

    for (const workers of WORKERS) {
      test(`rules 9, 12 and 23: on ${store.name}, WORKERS=${workers}, sudden deaths, during starts and under 8 writers, lose nothing`, async (context) => {
        const dbUrl = await store.freshUrl();
        const ledger = new Ledger();
        const observer = store.name === 'PostgreSQL' ? await connectTo(context, dbUrl) : undefined;
        for (let life = 0; life < scaled(4); life += 1) {
          const ready = await liveAndDie(() => startServiceProcess(dbUrl, { WORKERS: workers }), ledger);
          await dieYoung({ ...ENVIRONMENT, DB_URL: dbUrl, WORKERS: workers }, ready);
          // On PostgreSQL its last statements may still be in progress.
          if (observer !== undefined)
            await waitUntil(async () => (await observer.query(OTHERS)).rowCount === 0);
        }
        const last = await startTestService(dbUrl);
        await examine(last, ledger);
        await last.stop();
        assert.ok(ledger.acknowledged > 0);
      });
    }

    test(`rule 27: on ${store.name}, two services that start at once on an empty store share it`, async () => {
      for (let round = 0; round < scaled(16); round += 1) {
        const dbUrl = await store.freshUrl();
        const services = await Promise.all([1, 2].map(() => startTestService(dbUrl)));
        const created = await Promise.all(
          Array.from({ length: 20 }, (_, year) => services[year % 2]?.client.create({ year })),
        );
        assert.equal(new Set(created.map((book) => book?.id)).size, 20);
        const stored = created.toSorted((one, other) => Number(one?.id) - Number(other?.id));
        for (const { client } of services) assert.deepEqual(await client.list(), stored);
        await Promise.all(services.map((service) => service.stop()));
      }
    });
  }
});

/** The other connections to a database. */
const OTHERS = `select from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`;

/** Starts a service in this process that waits for requests in progress, and for the last ones, as long as a test needs. */
async function startPatient(lastRequest = 500, env: Record<string, string> = {}): Promise<RunningService> {
  const times = timesWith({ service: { lastRequest, grace: 60_000 } });
  return startTestService(await SQLITE.freshUrl(), env, undefined, times);
}

/** One that has ended counts as alive until its parent notices; on Linux, where a container may have none that does, not. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

async function acceptsNothing(service: RunningService): Promise<boolean> {
  const ports = [service.port, pageOf(service).port];
  return (await Promise.all(ports.map((port) => accepts('127.0.0.1', port)))).every((accepted) => !accepted);
}
