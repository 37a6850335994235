// Hostile clients, many at once: they send more than there is room for, leave half way, or take every descriptor there
// is. Honest requests go on meanwhile, memory stays bounded, and nothing is left behind. What waits for a time limit is
// in timeouts.test.ts. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { Client, Connection, exchange, parseAnswers, readEnvelope } from '../support/client.ts';
import { beHonest } from '../support/honest.ts';
import { inTime } from '../support/in-time.ts';
import { holdWrites } from '../support/locks.ts';
import { residentMemory } from '../support/memory.ts';
import { operationsOf } from '../support/operations.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { CHUNKED, compose } from '../support/raw-requests.ts';
import {
  ENVIRONMENT,
  type ServiceProcess,
  SQLITE,
  startCommand,
  startServiceProcess,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const MEBIBYTE = 1024 * 1024;

/** Connections that the honest clients of this file may open meanwhile, and keep. */
const HONEST_CONNECTIONS = 8;

/** Milliseconds after which a call that waits for the store is answered with 503. */
const DEADLINE = 4500;

describe('hostile clients', () => {
  let service: ServiceProcess;
  /** Of a large book. */
  let large: number;

  before(async () => {
    service = await startServiceProcess(await SQLITE.freshUrl());
    ({ id: large } = await service.client.create({ title: 'x'.repeat(1_000_000) }));
  });
  after(() => service.stop());

  /** Memory is measured from its call on: the returned function fails when it grew by more than so many MiB. */
  async function watchMemory(context: TestContext): Promise<(most: number) => Promise<void>> {
    const first = await residentMemory(service);
    return async (most) => {
      const growth = Math.round((await residentMemory(service)) - first);
      context.diagnostic(`${growth} MiB more, ${most} at most`);
      assert.ok(growth <= most, `${growth} MiB more`);
    };
  }

  async function figure(name: string, labels: Record<string, string> = {}): Promise<number> {
    return sumOf(await scrape(operationsOf(service).url), name, labels);
  }

  const openConnections = () => figure('book_catalogue_http_connections');

  /**
   * Resolves once the service has read what was sent before, unless so many of the connections are answered: a loop
   * of the service reads from every connection, and carries out no more than one of these requests.
   */
  async function untilRead(connections: readonly Connection[], answered: number): Promise<void> {
    for (let turn = 0; turn < 100; turn += 1) {
      if (connections.filter(({ received }) => received !== '').length >= answered) return;
      await service.client.request('GET', '/book/abc');
    }
  }

  /** Completes bodies of which many found no room. Returns how many did find room. */
  async function complete(connections: readonly Connection[], lastPiece: string): Promise<number> {
    let found = 0;
    for (const connection of connections) {
      await connection.send(lastPiece);
      const [answer] = await connection.answers(1);
      const { message } = readEnvelope(answer?.body ?? '', answer?.status ?? 0);
      if (answer?.status === 503) {
        assert.equal(message, 'Service unavailable');
        assert.ok(Number(answer.headers['retry-after']) > 0);
      } else {
        // No login can be read from it, so that it does not count as a failed one.
        assert.deepEqual([answer?.status, message], [400, 'Invalid request payload']);
        found += 1;
      }
    }
    return found;
  }

  /** Announces a body on each connection and sends all of it but its last byte. */
  async function beginBodies(count: number, length: number): Promise<Connection[]> {
    const connections = Array.from({ length: count }, () => new Connection(service));
    const head = compose('POST', '/token', { headers: `Content-Length: ${length}\r\n` });
    for (const connection of connections) await connection.send(`${head}[`);
    for (const connection of connections) await connection.send(' '.repeat(length - 2));
    return connections;
  }

  test('rule 22: 128 bodies of 1 MiB find room at a time, more are 503; small ones are read even so', async (context) => {
    const assertGrowth = await watchMemory(context);
    const begun = await beginBodies(160, MEBIBYTE);
    await untilRead(begun, 32);
    await beHonest(service);
    const small = await beginBodies(40, 60_000);
    assert.equal(await complete(small, ']'), 40);
    for (const { socket } of small) socket.destroy();
    assert.equal(await complete(begun, ']'), 128);
    // What they had is given back, on a connection that was refused, too.
    const refused = begun.find(({ received }) => received.includes('"status":503')) as Connection;
    await refused.send(compose('POST', '/token', { body: `[${' '.repeat(MEBIBYTE - 2)}]` }));
    assert.equal((await refused.answers(2))[1]?.status, 400);
    await assertGrowth(400);
    for (const { socket } of begun) socket.destroy();
  });

  test('rule 22: small bodies in pieces share 128 MiB, 64 KiB each', async (context) => {
    const assertGrowth = await watchMemory(context);
    const begun = await beginBodies(2100, 64 * 1024);
    await untilRead(begun, 52);
    await beHonest(service);
    await assertGrowth(400);
    assert.equal(await complete(begun, ']'), 2048);
    for (const { socket } of begun) socket.destroy();
  });

  test('rule 22: a body in chunks of a byte takes no more memory than its bytes', async (context) => {
    const assertGrowth = await watchMemory(context);
    const connections = Array.from({ length: 5 }, () => new Connection(service));
    for (const connection of connections) {
      await connection.send(compose('POST', '/token', { headers: CHUNKED }) + '1\r\n \r\n'.repeat(100_000));
    }
    await untilRead(connections, 1);
    await assertGrowth(100);
    for (const connection of connections) {
      await connection.send('2\r\n[]\r\n0\r\n\r\n');
      assert.equal((await connection.answers(1))[0]?.status, 400);
      connection.socket.destroy();
    }
  });

  test('rule 22: chunks without end are 413, dropped as they come, and can be brought to an end', async (context) => {
    const assertGrowth = await watchMemory(context);
    const chunk = Buffer.from(`${MEBIBYTE.toString(16)}\r\n${'x'.repeat(MEBIBYTE)}\r\n`);
    const { token } = service.client;
    const connection = new Connection(service);
    connection.socket.pause(); // it sends all of them before it reads anything
    await connection.send(compose('POST', '/book', { token, headers: CHUNKED }));
    for (let sent = 0; sent < 300; sent += 1) await connection.send(chunk);
    await assertGrowth(200);
    connection.socket.resume();
    assert.equal((await connection.answers(1))[0]?.status, 413);
    await connection.send(`0\r\n\r\n${compose('GET', '/book/abc', { token })}`);
    assert.equal((await connection.answers(2))[1]?.status, 404);
    connection.socket.destroy();
  });

  test('rules 9 and 22: a client that asks for far more than it reads takes bounded memory', async (context) => {
    const assertGrowth = await watchMemory(context);
    const connections = Array.from({ length: 5 }, () => new Connection(service));
    for (const { socket } of connections) {
      socket.pause();
      socket.write(compose('GET', `/book/${large}`, service.client).repeat(400));
    }
    const asking = new Connection(service);
    asking.socket.pause();
    asking.socket.write(compose('GET', '/book/abc', service.client).repeat(100_000));
    for (let time = 0; time < 10; time += 1) await beHonest(service);
    assert.ok(asking.socket.writableLength > 0, 'all of it was taken');
    await assertGrowth(800);
    for (const { socket } of [asking, ...connections]) socket.destroy();
  });

  test('rule 9: up to 32 requests of one connection are carried out side by side', async () => {
    const inFlight = (operation: string) => figure('book_catalogue_batches_in_flight', { operation });
    const { token } = service.client;
    const nowhere = '/book/9007199254740991';
    const requests = [
      compose('POST', '/book', { token, body: '{}' }).repeat(31),
      compose('DELETE', nowhere, { token }), // the 32nd
      compose('PUT', nowhere, { token, body: '{}' }).repeat(68), // those that must wait
    ];
    await inTime(DEADLINE, async (startClock) => {
      const release = await holdWrites(service.dbUrl);
      const connection = new Connection(service);
      const isAnswered = () => connection.received !== '';
      try {
        startClock();
        await connection.send(requests.join(''));
        await waitUntil(async () => isAnswered() || (await inFlight('insert')) > 0);
        assert.deepEqual([await inFlight('remove'), await inFlight('update')], [1, 0]);
        assert.ok(!isAnswered());
      } finally {
        await release();
        await connection.answers(100);
        connection.socket.destroy();
      }
    });
  });

  test('rules 9 and 20: of any number of requests on one connection each is answered, in turn', async () => {
    const { id } = await service.client.create({});
    const head = `Host: books.test\r\nAuthorization: ${service.client.token}\r\n`;
    const count = 3000;
    const requests = Array.from({ length: count }, (_, number) => {
      const named = `${head}X-Request-Id: ${number}\r\n`;
      if (number % 3 === 0) return `GET /book/${id} HTTP/1.1\r\n${named}\r\n`;
      const body = `{"year":${number}${' '.repeat(number % 100 === 1 ? 100_000 : 0)}}`;
      return `PUT /book/${id} HTTP/1.1\r\n${named}Content-Length: ${body.length}\r\n\r\n${body}`;
    });
    const connection = new Connection(service);
    connection.socket.end(requests.join(''));
    assert.equal(await connection.closed, undefined);
    const answers = parseAnswers(connection.received);
    assert.equal(answers.length, count);
    answers.forEach(({ status, headers, body }, number) => {
      assert.equal(headers['x-request-id'], String(number));
      const { data } = readEnvelope(body, 200);
      assert.equal(status, 200);
      if (number % 3 !== 0) assert.equal(data.year, number);
    });
    assert.equal((await service.client.request('DELETE', `/book/${id}`)).status, 200);
  });

  test('rule 23: clients that leave in the middle of a request leave nothing behind', async () => {
    const before = await openConnections();
    const { token } = service.client;
    const beginnings = [
      'GET /bo',
      compose('GET', '/books', { token }),
      compose('GET', `/book/${large}`, { token }).repeat(5),
      `${compose('POST', '/book', { token, headers: 'Content-Length: 100000\r\n' })}{"title":"left"}`,
      `${compose('POST', '/book', { token, headers: CHUNKED })}10\r\n{"title":"left"}\r\n`,
    ];
    for (let left = 0; left < 500; left += 50) {
      await Promise.all(
        Array.from({ length: 50 }, async (_, number) => {
          const connection = new Connection(service);
          connection.socket.pause();
          await connection.send(beginnings[number % beginnings.length] as string);
          if (number % 2 === 0) connection.socket.resetAndDestroy();
          else connection.socket.destroy();
          await connection.closed;
        }),
      );
    }
    await waitUntil(async () => (await openConnections()) < before + HONEST_CONNECTIONS);
    await beHonest(service);
    const books = await service.client.list();
    assert.ok(books.every(({ title }) => title !== 'left'));
  });

  test('rule 20: without a descriptor left the service stays up, and answers once there are some', async () => {
    const environment = { ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
    const limited = await startCommand(environment, undefined, '-n 64');
    const greedy: Socket[] = [];
    try {
      const client = await Client.logIn(limited);
      const list = compose('GET', '/books', client);
      const lister = new Connection(limited);
      await lister.send(list);
      await lister.answers(1);
      let refused = 0;
      for (let made = 0; made < 200; made += 1) {
        const socket = connect(limited.port, '127.0.0.1');
        socket.on('error', () => {});
        socket.once('close', () => {
          refused += 1;
        });
        greedy.push(socket);
      }
      await waitUntil(() => refused >= 10);
      // A list opens a file of its own.
      await lister.send(list);
      const answer = (await lister.answers(2))[1];
      assert.equal(readEnvelope(answer?.body ?? '', 503).message, 'Service unavailable');
      assert.equal(answer?.headers['retry-after'], '1');

      for (const socket of greedy) socket.destroy();
      await waitUntil(async () => {
        return (await client.request('GET', '/books').catch(() => undefined))?.status === 200;
      });
      await lister.send(list);
      assert.equal((await lister.answers(3))[2]?.status, 200);
      lister.socket.destroy();
      assert.equal(limited.process.exitCode, null);
    } finally {
      for (const socket of greedy) socket.destroy();
      await limited.stop();
    }
  });

  test('rule 20: requests that no route sees are in the log, with the ids of their answers', async () => {
    for (const [bytes, status] of [
      ['garbage\r\n\r\n', 400],
      [compose('GET', '/', { headers: `X: ${'x'.repeat(20_000)}\r\n` }), 431],
      [compose('CONNECT', 'elsewhere.test:443'), 400],
      ['DESCRIBE / RTSP/1.0\r\nHost: books.test\r\n\r\n', 400],
    ] as const) {
      const [answer] = await exchange(service, bytes);
      assert.equal(answer?.status, status);
      const reqId = answer?.headers['x-request-id'];
      const lines = () => service.log.filter((line) => line.includes(`"reqId":"${reqId}"`));
      await waitUntil(() => lines().length > 0);
      const entry = JSON.parse(lines()[0] ?? '');
      assert.deepEqual([entry.level, entry.msg, entry.status], ['info', 'request', status]);
    }
  });
});
