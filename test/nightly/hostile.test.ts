// Many hostile clients at once: they send more than there is room for, or use up all file descriptors. Meanwhile honest
// requests succeed, and memory stays bounded. Tests that wait for a timeout are in timeouts.test.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { CHUNKED } from '../../conformance/raw-requests.ts';
import { beHonest } from '../support/attackers.ts';
import { assertRefusal, Client, Connection, exchange, parseAnswers } from '../support/client.ts';
import { inTime } from '../support/in-time.ts';
import { operationsOf, residentMemory } from '../support/operations.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { compose } from '../support/raw-requests.ts';
import {
  ENVIRONMENT,
  type ServiceProcess,
  SQLITE,
  startCommand,
  startServiceProcess,
} from '../support/service.ts';
import { holdWrites } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

const MEBIBYTE = 1024 * 1024;

/** Connections that honest clients of this file may open meanwhile and keep open. */
const HONEST_CONNECTIONS = 8;

// Timeouts of the service, in milliseconds.
const HEADERS = 15_000;
const WHOLE_REQUEST = 30_000;
/** Of a call that waits for the store; after it, the answer is 503. */
const DEADLINE = 4500;

/** Milliseconds that a request may wait for the store; then it may be refused with 503. */
const PATIENCE = 2000;

describe('hostile clients', () => {
  let service: ServiceProcess;
  /** Id of a large book. */
  let large: number;

  before(async () => {
    service = await startServiceProcess(await SQLITE.freshUrl());
    ({ id: large } = await service.client.create({ title: 'x'.repeat(1_000_000) }));
  });
  after(() => service.stop());

  /** Measures memory from now on: the returned function fails if it has grown by more than `most` MiB. */
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

  /** The most memory that a service has had at a time, in MiB. */
  function mostMemory({ process: { pid } }: ServiceProcess): number {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024;
  }

  /** Waits for a turn of the service's event loop, in which it reads from all connections: such a request takes one. */
  async function turn(): Promise<void> {
    await service.client.request('GET', '/book/abc');
  }

  /** The connections that have an answer, once `count` of them do, or once the service has read all that was sent. */
  async function answered(connections: readonly Connection[], count: number): Promise<Connection[]> {
    const found = () => connections.filter(({ received }) => received !== '');
    // The system hands over buffered bytes within milliseconds; a thousand turns take far longer.
    for (let turns = 0; turns < 1000 && found().length < count; turns += 1) await turn();
    return found();
  }

  /** A body that stores nothing. */
  const bodyOf = (length: number) => `[${' '.repeat(length - 2)}]`;

  const headOf = (length: number) => {
    const { token } = service.client;
    return compose('POST', '/book', { token, headers: `Content-Length: ${length}\r\n` });
  };

  /** Sends bodies without their last byte, each in two pieces and on a separate connection. */
  async function beginBodies(count: number, length: number): Promise<Connection[]> {
    const head = headOf(length);
    const rest = bodyOf(length).slice(1, -1);
    const connections: Connection[] = [];
    while (connections.length < count) {
      const connection = new Connection(service);
      connections.push(connection);
      await connection.send(`${head}[`);
    }
    let sent = 0;
    for (const connection of connections) {
      await connection.send(rest);
      sent += length;
      if (sent % MEBIBYTE === 0) await turn(); // so that no more than this waits in the system's buffers
    }
    return connections;
  }

  async function assertReadToItsEnd(connection: Connection): Promise<void> {
    await connection.send(']');
    assertRefusal((await connection.answers(1))[0], 400, 'Invalid input');
  }

  function assertNoRoom({ received }: Connection): void {
    const [answer] = parseAnswers(received);
    assertRefusal(answer, 503, 'Service unavailable');
    assert.ok(Number(answer?.headers['retry-after']) > 0);
  }

  for (const [title, count, length] of [
    ['there is room for 128 bodies of 1 MiB, more get 503, and small ones are still read', 128, MEBIBYTE],
    ['there is room for 2,048 bodies of 64 KiB that arrive in pieces, and more get 503', 2048, 64 * 1024],
  ] as const) {
    test(`rule 22: ${title}`, async (context) => {
      const assertGrowth = await watchMemory(context);
      await inTime(PATIENCE, async (startClock) => {
        // Connections of earlier tests may still hold room for their bodies.
        await waitUntil(async () => (await openConnections()) <= HONEST_CONNECTIONS);
        startClock();
        const begun = await beginBodies(count + 32, length);
        try {
          const refused = await answered(begun, 32);
          assert.equal(refused.length, 32);
          for (const connection of refused) assertNoRoom(connection);
          const [first] = refused as [Connection];
          await beHonest(service);
          if (length > 64 * 1024) {
            for (const small of await beginBodies(10, 60_000)) {
              await assertReadToItsEnd(small);
              small.socket.destroy();
            }
          }
          for (const connection of begun.filter(({ received }) => received === '').slice(0, 3)) {
            await assertReadToItsEnd(connection);
          }

          // The room is released, and the connection that was refused can use it.
          for (const connection of begun) if (connection !== first) connection.socket.destroy();
          await first.send(']');
          let tries = 1;
          await waitUntil(async () => {
            tries += 1;
            await first.send(headOf(length));
            await first.send(bodyOf(length).slice(0, 1));
            await first.send(bodyOf(length).slice(1));
            return (await first.answers(tries))[tries - 1]?.status === 400;
          });
        } finally {
          for (const { socket } of begun) socket.destroy();
        }
      });
      await assertGrowth(400);
    });
  }

  test('rule 22: a body in chunks of a byte takes no more memory than its bytes', async (context) => {
    const assertGrowth = await watchMemory(context);
    await inTime(WHOLE_REQUEST, async (startClock) => {
      startClock();
      const connections = Array.from({ length: 5 }, () => new Connection(service));
      try {
        const { token } = service.client;
        const begun = compose('POST', '/book', { token, headers: CHUNKED }) + '1\r\n \r\n'.repeat(150_000);
        for (const connection of connections) await connection.send(begun);
        for (let turns = 0; turns < 100; turns += 1) await turn();
        await assertGrowth(150);
        for (const connection of connections) {
          await connection.send('2\r\n[]\r\n0\r\n\r\n');
          assertRefusal((await connection.answers(1))[0], 400, 'Invalid input');
        }
      } finally {
        for (const { socket } of connections) socket.destroy();
      }
    });
  });

  test('rule 22: nested values delay other clients no longer if the body also has a fraction', async () => {
    const values = '{},'.repeat(340_000);
    const millisecondsOf = async (last: string) => {
      const began = performance.now();
      await service.client.create(`{"x":[${values}${last}]}`);
      return performance.now() - began;
    };
    const least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY] as [number, number];
    for (let round = 0; round < 8; round += 1) {
      least[0] = Math.min(least[0], await millisecondsOf('1'));
      least[1] = Math.min(least[1], await millisecondsOf('0.5'));
    }
    assert.ok(least[1] < 3 * least[0], `${least} ms`);
  });

  test('rule 22: endless chunks get 413 and are dropped on arrival; once they end, the connection is usable', async (context) => {
    const assertGrowth = await watchMemory(context);
    const chunk = Buffer.from(`${MEBIBYTE.toString(16)}\r\n${'x'.repeat(MEBIBYTE)}\r\n`);
    const { token } = service.client;
    await inTime(WHOLE_REQUEST, async (startClock) => {
      startClock();
      const connection = new Connection(service);
      try {
        connection.socket.pause(); // sends all of them before it reads anything
        await connection.send(compose('POST', '/book', { token, headers: CHUNKED }));
        for (let sent = 0; sent < 300; sent += 1) await connection.send(chunk);
        await assertGrowth(200);
        connection.socket.resume();
        assertRefusal((await connection.answers(1))[0], 413, 'Payload too large');
        await connection.send(`0\r\n\r\n${compose('GET', '/book/abc', { token })}`);
        assertRefusal((await connection.answers(2))[1], 404, 'Book not found');
      } finally {
        connection.socket.destroy();
      }
    });
  });

  test('rules 9 and 22: a client that requests far more than it reads takes bounded memory', async (context) => {
    const assertGrowth = await watchMemory(context);
    await inTime(PATIENCE, async (startClock) => {
      startClock();
      const connections = Array.from({ length: 6 }, () => new Connection(service));
      const [asking, ...readers] = connections as [Connection, ...Connection[]];
      try {
        for (const { socket } of connections) socket.pause();
        for (const { socket } of readers) {
          socket.write(compose('GET', `/book/${large}`, service.client).repeat(400));
        }
        asking.socket.write(compose('GET', '/book/abc', service.client).repeat(100_000));
        for (let time = 0; time < 10; time += 1) await beHonest(service);
        assert.ok(asking.socket.writableLength > 0, 'all requests were read');
        await assertGrowth(800);
      } finally {
        for (const { socket } of connections) socket.destroy();
      }
    });
  });

  test('rules 9 and 22: many clients with many short requests take bounded memory, and others are answered meanwhile', async (context) => {
    const [clients, requests] = [40, 2700]; // more than one read brings
    const own = await startServiceProcess(await SQLITE.freshUrl());
    context.after(() => own.process.kill('SIGKILL'));
    const first = await residentMemory(own);
    const connections = Array.from({ length: clients }, () => new Connection(own));
    context.after(() => {
      for (const { socket } of connections) socket.destroy();
    });
    for (const { socket } of connections) socket.write('GET / HTTP/1.1\r\nHost:\r\n\r\n'.repeat(requests));
    await Promise.any(connections.map((connection) => connection.answers(1)));
    await beHonest(own);
    const metrics = await scrape(operationsOf(own).url);
    const answered = sumOf(metrics, 'book_catalogue_http_requests_total', { status: '404' });
    assert.ok(answered < (clients - 2) * requests, `${answered} were answered before the honest ones`);
    const answers = await Promise.all(
      connections.map((connection) => connection.answersUntilClosed(requests)),
    );
    assert.ok(answers.some(({ length }) => length === requests)); // others may have been disconnected
    const most = Math.round(mostMemory(own) - first);
    context.diagnostic(`${most} MiB more`);
    assert.ok(most < 350, `${most} MiB more`);
  });

  test('rules 9 and 22: bodies of requests that wait for an earlier one are not read', async (context) => {
    const own = await startServiceProcess(await SQLITE.freshUrl());
    context.after(() => own.process.kill('SIGKILL'));
    const { client } = own;
    const release = await holdWrites(own.dbUrl);
    const connection = new Connection(own);
    context.after(() => connection.socket.destroy());
    const { token } = client;
    const large = compose('POST', '/book', { token, body: `{${' '.repeat(60_000)}}` });
    connection.socket.write(compose('POST', '/book', { token, body: '{}' }) + large); // in one read
    for (let sent = 0; sent < 800; sent += 1) connection.socket.write(large); // 46 MiB
    for (let turns = 0; turns < 400; turns += 1) {
      assert.equal((await client.request('GET', '/book/abc')).status, 404);
    }
    const unread = Math.round(connection.socket.writableLength / MEBIBYTE);
    await release();
    await connection.answers(100);
    context.diagnostic(`${unread} MiB were not read`);
    assert.ok(unread > 30, `${unread} MiB`); // sockets hold some
  });

  test('rule 22: clients that read none of their answers do not use up the memory, and are disconnected', async (context) => {
    const own = await startServiceProcess(await SQLITE.freshUrl(), {
      NODE_OPTIONS: '--max-old-space-size=400',
    });
    context.after(() => own.process.kill('SIGKILL'));
    const { client } = own;
    const { id } = await client.create({ title: 'x'.repeat(1_000_000) });
    const read = compose('GET', `/book/${id}`, client);
    const first = await residentMemory(own);
    const connections: Connection[] = [];
    context.after(() => {
      for (const { socket } of connections) socket.destroy();
    });
    // A slow machine refuses reads that would wait too long, and disconnects these clients before there is no more room.
    await waitUntil(() => {
      for (let position = 0; position < 140; position += 1) {
        let connection = connections[position];
        if (connection === undefined || connection.socket.destroyed) {
          connection = connections[position] = new Connection(own);
          connection.socket.pause();
          connection.socket.write(compose('GET', '/book/abc', client)); // the first size says nothing about the others
        }
        if (connection.socket.writableLength === 0) connection.socket.write(read);
      }
      return own.log.some((line) => line.includes('"an answer was refused"'));
    });
    const slow = new Connection(own); // is disconnected after 30 s
    context.after(() => slow.socket.destroy());
    slow.socket.write('POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: 2\r\n\r\n{');
    await waitUntil(async () => {
      assert.equal((await client.request('GET', '/book/abc')).status, 404);
      return (await client.request('GET', `/book/${id}`)).status === 200;
    });
    const most = Math.round(mostMemory(own) - first);
    context.diagnostic(`${most} MiB more`);
    assert.ok(most < 600, `${most} MiB more`);
    await waitUntil(() => {
      // A client that does not read notices the end of its connection only when it writes.
      for (const { socket } of connections) if (socket.writable) socket.write('\r\n');
      return connections.some(({ socket }) => socket.destroyed);
    });
    assert.equal(slow.socket.destroyed, false, 'who does not read was disconnected after 5 s');
  });

  test('rule 9: up to 32 safe requests of one connection are handled concurrently', async (context) => {
    const own = await startServiceProcess(await SQLITE.freshUrl()); // whose batches contain no other requests
    context.after(() => own.stop());
    const read = compose('GET', '/book/9007199254740991', { token: own.client.token });
    let sizes: number[] = [];
    // Requests that are sent together arrive together, though perhaps not at the first attempt.
    await waitUntil(async () => {
      await exchange(own, read.repeat(100), 100);
      const metrics = await scrape(operationsOf(own).url);
      sizes = ['16', '32', '+Inf'].map((le) =>
        sumOf(metrics, 'book_catalogue_batch_size_bucket', { operation: 'find', le }),
      );
      const [within16 = 0, , all = 0] = sizes;
      return all > within16;
    });
    assert.equal(sizes[1], sizes[2]); // no batch of more than 32
  });

  test('rule 9: 64 requests of all connections are handled before earlier ones have their answers', async (context) => {
    const own = await startServiceProcess(await SQLITE.freshUrl());
    context.after(() => own.stop());
    const reads = compose('GET', '/book/9007199254740991', { token: own.client.token }).repeat(100);
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(Array.from({ length: 40 }, () => exchange(own, reads, 100)));
    }
    const metrics = await scrape(operationsOf(own).url);
    const [small, all] = ['128', '+Inf'].map((le) =>
      sumOf(metrics, 'book_catalogue_batch_size_bucket', { operation: 'find', le }),
    );
    assert.equal(small, all); // no batch of more than one for each connection, and 64
  });

  test('rule 9: a request that changes something is handled alone on its connection', async () => {
    const inFlight = (operation: string) => figure('book_catalogue_batches_in_flight', { operation });
    const { token } = service.client;
    await inTime(DEADLINE, async (startClock) => {
      const { id } = await service.client.create({});
      const requests = [
        compose('POST', '/book', { token, body: '{}' }),
        compose('DELETE', `/book/${id}`, { token }),
        compose('GET', `/book/${id}`, { token }),
        compose('POST', '/book', { token, body: '{}' }),
      ];
      const release = await holdWrites(service.dbUrl);
      const connection = new Connection(service);
      try {
        startClock();
        await connection.send(requests.join(''));
        await waitUntil(async () => connection.received !== '' || (await inFlight('insert')) > 0);
        await turn();
        assert.deepEqual([await inFlight('remove'), connection.received], [0, '']);
      } finally {
        await release();
        const answers = await connection.answers(4);
        connection.socket.destroy();
        assert.deepEqual(
          answers.map(({ status }) => status),
          [201, 200, 404, 201],
        );
      }
    });
  });

  test('rule 20: the service survives a lack of file descriptors, and answers once some are free', async (context) => {
    const environment = { ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
    const limited = await startCommand(environment, undefined, 'ulimit -n 64');
    context.after(() => limited.stop());
    const client = await Client.logIn(limited);
    const list = compose('GET', '/books', client);
    await inTime(HEADERS, async (startClock) => {
      const lister = new Connection(limited);
      await lister.send(list);
      await lister.answers(1);
      startClock();
      let refused = 0;
      const greedy = Array.from({ length: 200 }, () => connect(limited.port, '127.0.0.1'));
      try {
        for (const socket of greedy) {
          socket.on('error', () => {});
          socket.once('close', () => {
            refused += 1;
          });
        }
        await waitUntil(() => refused >= 10);
        // A list needs a separate file descriptor.
        await lister.send(list);
        const answer = (await lister.answers(2))[1];
        assertRefusal(answer, 503, 'Service unavailable');
        assert.equal(answer?.headers['retry-after'], '1');
      } finally {
        for (const socket of greedy) socket.destroy();
      }
      await waitUntil(async () => {
        return (await client.request('GET', '/books').catch(() => undefined))?.status === 200;
      });
      await lister.send(list);
      assert.equal((await lister.answers(3))[2]?.status, 200);
      lister.socket.destroy();
      assert.equal(limited.process.exitCode, null);
    });
  });
});
