// Clients that mean harm, many at once: who stalls, drips, says nothing, leaves half way, takes every
// descriptor there is. Each is cut off within its limit, honest requests go on meanwhile, memory stays
// bounded, and nothing is left behind. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import {
  type Attack,
  almostWholeBodies,
  drippingReaders,
  silent,
  slowBodies,
  slowHeaders,
  stalledReaders,
} from '../support/attackers.ts';
import { Client, Connection, exchange, parseAnswers, readEnvelope } from '../support/client.ts';
import { COMMAND } from '../support/repository.ts';
import { ENVIRONMENT, type ServiceProcess, SQLITE, STORES, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const MEBIBYTE = 1024 * 1024;
/** More of them than the buffers of two sockets hold. */
const LARGE_BOOKS = 40;
/** Connections that the honest clients of this file may open meanwhile, and keep. */
const HONEST_CONNECTIONS = 8;

describe('hostile clients', { timeout: 240_000 }, () => {
  const services: ServiceProcess[] = [];
  const attacks: Attack[] = [];
  let service: ServiceProcess;

  before(async () => {
    for (const store of STORES) {
      const started = await startServiceProcess(await store.freshUrl());
      services.push(started);
      const body = JSON.stringify({ title: 'x'.repeat(1_000_000) });
      for (let made = 0; made < LARGE_BOOKS; made += 1) await started.client.create(body);
    }
    service = services[0] as ServiceProcess;
  });
  after(async () => {
    for (const attack of attacks) attack.stop();
    for (const started of services) await started.stop();
  });

  // The slowest come first and are awaited last: everything between proves that they hold up nobody.
  const stalled: Attack[] = [];
  let stalledSince = 0;

  test('rule 22: readers that stall keep nobody waiting', async () => {
    for (const target of services) {
      const { token } = target.client;
      stalled.push(stalledReaders(target, 4, token), drippingReaders(target, 4, token));
    }
    // Answers of a known length, one behind the other.
    const connection = new Connection(service);
    connection.socket.pause();
    stalled.push(heldOpen(connection));
    const read = `GET /book/1 HTTP/1.1\r\nHost: books.test\r\nAuthorization: ${service.client.token}\r\n\r\n`;
    await connection.send(read.repeat(LARGE_BOOKS));
    attacks.push(...stalled);
    stalledSince = performance.now();
    await Promise.all(stalled.map(({ begun }) => begun));
    for (const target of services) await beHonest(target);
    // On PostgreSQL there is room for eight lists, and all of it is taken.
    const [, postgres] = services as [ServiceProcess, ServiceProcess];
    await waitUntil(async () => (await postgres.client.request('HEAD', '/books')).status === 503);
  });

  test('rules 20 and 22: a thousand connections that say nothing are cut after 15 s with 408', async () => {
    const before = connectionsOf(service);
    const started = performance.now();
    const attack = silent(service, 1000);
    const slow = [slowHeaders(service, 50), slowBodies(service, 50)];
    attacks.push(attack, ...slow);
    await attack.begun;
    let honest = 0;
    while (performance.now() - started < 14_000) {
      await beHonest(service);
      honest += 1;
      await setTimeout(50);
    }
    assert.ok(honest > 10);
    assert.equal(attack.cuts.length, 0);
    await waitUntil(() => attack.cuts.length === 1000);
    for (const { milliseconds, received } of attack.cuts) {
      const [answer] = parseAnswers(received);
      assert.deepEqual([answer?.status, parseAnswers(received).length], [408, 1]);
      assert.equal(readEnvelope(answer?.body ?? '', 408).message, 'Request timeout');
      assert.ok(milliseconds > 14_900 && milliseconds < 27_000, `cut after ${milliseconds} ms`);
    }
    await waitUntil(() => slow[0]?.cuts.length === 50);
    slow[1]?.stop();
    await waitUntil(() => connectionsOf(service) < before + HONEST_CONNECTIONS);
  });

  test('rules 20 and 23: bodies being read take bounded memory; beyond it 503, and small ones go on', async () => {
    const before = memoryOf(service);
    const attack = almostWholeBodies(service, 500);
    attacks.push(attack);
    const refused = new Connection(service);
    await attack.begun;
    // Those that found no room are told so at once; the others say nothing, and are not told anything.
    // No login could be read from any of them, so that none counts as a guess.
    const whole = '["'.padEnd(MEBIBYTE - 2, 'x').concat('"]');
    let answer = await post(refused, whole, 1);
    for (let tries = 2; answer.status !== 503; tries += 1) {
      assert.ok(tries < 500, 'there is always room');
      answer = await post(refused, whole, tries);
    }
    assert.equal(readEnvelope(answer.body, 503).message, 'Service unavailable');
    assert.ok(Number(answer.headers['retry-after']) > 0);
    // Small bodies are read even so, and even when they come in pieces.
    const small = '["'.padEnd(60_000, 'x').concat('"]');
    const pieces = Array.from({ length: 40 }, () => new Connection(service));
    for (const connection of pieces) {
      const head = `POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: ${small.length}\r\n\r\n`;
      await connection.send(head + small.slice(0, 10));
    }
    await beHonest(service);
    for (const connection of pieces) await connection.send(small.slice(10, -1));
    await beHonest(service);
    for (const connection of pieces) {
      await connection.send(small.slice(-1));
      assert.equal((await connection.answers(1))[0]?.status, 400);
      connection.socket.destroy();
    }
    let most = 0;
    for (let time = 0; time < 20; time += 1) {
      await beHonest(service);
      most = Math.max(most, memoryOf(service));
    }
    assert.ok(most - before < 300, `${Math.round(most - before)} MiB more`);
    attack.stop();
    // What they had is given back: there is room again, on the connection that was refused, too.
    let tries = parseAnswers(refused.received).length;
    await waitUntil(async () => {
      tries += 1;
      return (await post(refused, whole, tries)).status === 400;
    });
    refused.socket.destroy();
  });

  test('rules 22 and 23: small bodies that are never completed take bounded memory', async () => {
    const before = memoryOf(service);
    const head = 'POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: 65000\r\n\r\n{';
    const connections = Array.from({ length: 2400 }, () => new Connection(service));
    let most = 0;
    for (const piece of [head, ' ', ' '.repeat(40_000)]) {
      for (const connection of connections) await connection.send(piece);
      await beHonest(service);
      most = Math.max(most, memoryOf(service));
    }
    const refused = () => connections.filter(({ received }) => received !== '');
    await waitUntil(() => refused().length > 0); // 2,048 of them have all the room there is
    for (const { received } of refused()) readEnvelope(parseAnswers(received)[0]?.body ?? '', 503);
    assert.ok(refused().length < 1000, `${refused().length} found no room`);
    assert.ok(most - before < 250, `${Math.round(most - before)} MiB more`);
    await beHonest(service);
    for (const { socket } of connections) socket.destroy();
  });

  test('rule 22: a body in chunks of a byte takes no more memory than its bytes', async () => {
    const before = memoryOf(service);
    const length = 100_000;
    const head = 'POST /token HTTP/1.1\r\nHost: books.test\r\nTransfer-Encoding: chunked\r\n\r\n';
    const connections = Array.from({ length: 10 }, () => new Connection(service));
    for (const { socket } of connections) socket.write(head + '1\r\n \r\n'.repeat(length));
    const sent = () => connections.every(({ socket }) => socket.writableLength === 0);
    await waitUntil(sent);
    await beHonest(service);
    const more = memoryOf(service) - before;
    for (const connection of connections) connection.socket.write('2\r\n[]\r\n0\r\n\r\n');
    for (const connection of connections) {
      const [answer] = await connection.answers(1);
      assert.equal(answer?.status, 400);
      connection.socket.destroy();
    }
    assert.ok(more < 250, `${Math.round(more)} MiB more`);
  });

  test('rules 9 and 22: who asks for far more than it reads takes bounded memory', async () => {
    const before = memoryOf(service);
    const head = `Host: books.test\r\nAuthorization: ${service.client.token}\r\n\r\n`;
    const connections = Array.from({ length: 5 }, () => new Connection(service));
    let most = 0;
    for (const { socket } of connections) {
      socket.pause();
      socket.write(`GET /book/1 HTTP/1.1\r\n${head}`.repeat(3000));
    }
    const asking = new Connection(service);
    asking.socket.pause();
    asking.socket.write(`GET /book/abc HTTP/1.1\r\n${head}`.repeat(100_000));
    for (let time = 0; time < 40; time += 1) {
      await beHonest(service);
      most = Math.max(most, memoryOf(service));
    }
    assert.ok(asking.socket.writableLength > 0, 'all of it was taken');
    for (const { socket } of [asking, ...connections]) socket.destroy();
    assert.ok(most - before < 400, `${Math.round(most - before)} MiB more`);
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

  test('rule 23: a thousand clients that leave in the middle of a request leave nothing behind', async () => {
    const before = connectionsOf(service);
    const { token } = service.client;
    const head = `Host: books.test\r\nAuthorization: ${token}\r\n`;
    const beginnings = [
      'GET /bo',
      `GET /books HTTP/1.1\r\n${head}\r\n`,
      `GET /book/1 HTTP/1.1\r\n${head}\r\n`.repeat(5),
      `POST /book HTTP/1.1\r\n${head}Content-Length: 100000\r\n\r\n{"title":"left"}`,
      `POST /book HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n10\r\n{"title":"left"}\r\n`,
    ];
    for (let left = 0; left < 1000; left += 50) {
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
    await waitUntil(() => connectionsOf(service) < before + HONEST_CONNECTIONS);
    await beHonest(service);
    assert.equal((await service.client.request('GET', `/book/${LARGE_BOOKS + 1}`)).status, 404);
  });

  test('rule 20: without a descriptor left the service stays up, and answers once there are some', async () => {
    const limited = await startLimited(await SQLITE.freshUrl(), 64);
    try {
      const client = await Client.logIn(limited);
      const list = `GET /books HTTP/1.1\r\nHost: books.test\r\nAuthorization: ${client.token}\r\n\r\n`;
      const lister = new Connection(limited);
      await lister.send(list);
      await lister.answers(1);
      const greedy: Socket[] = [];
      let refused = 0;
      while (refused < 10) {
        assert.ok(greedy.length < 300, 'the limit does not hold');
        const socket = connect(limited.port, '127.0.0.1');
        socket.once('error', () => {});
        socket.once('close', () => {
          refused += 1;
        });
        greedy.push(socket);
        await once(socket, 'connect');
        await setTimeout(5);
      }
      // A list opens a file of its own.
      await lister.send(list);
      const answer = (await lister.answers(2))[1];
      assert.equal(readEnvelope(answer?.body ?? '', 503).message, 'Service unavailable');
      assert.equal(answer?.headers['retry-after'], '1');

      for (const socket of greedy) socket.destroy();
      const freed = performance.now();
      await waitUntil(async () => {
        return (await client.request('GET', '/books').catch(() => undefined))?.status === 200;
      });
      assert.ok(performance.now() - freed < 3000, 'it answers again within a second');
      await lister.send(list);
      assert.equal((await lister.answers(3))[2]?.status, 200);
      lister.socket.destroy();
      assert.equal(limited.process.exitCode, null);
    } finally {
      limited.process.kill('SIGKILL');
    }
  });

  test('rule 20: what no route sees is in the log, with the id of its answer', async () => {
    for (const [bytes, status] of [
      ['garbage\r\n\r\n', 400],
      [`GET / HTTP/1.1\r\nHost: books.test\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
      ['CONNECT elsewhere.test:443 HTTP/1.1\r\nHost: books.test\r\n\r\n', 400],
      ['DESCRIBE / RTSP/1.0\r\nHost: books.test\r\n\r\n', 400],
    ] as const) {
      const [answer] = await exchange(service, bytes);
      assert.equal(answer?.status, status);
      const reqId = answer?.headers['x-request-id'];
      await waitUntil(() => service.log.some((line) => line.includes(`"reqId":"${reqId}"`)));
      const entry = JSON.parse(service.log.find((line) => line.includes(`"reqId":"${reqId}"`)) ?? '');
      assert.deepEqual([entry.level, entry.msg, entry.status], ['info', 'request', status]);
    }
    assert.ok(service.log.some((line) => line.includes('"status":408')));
  });

  test('rule 22: readers that stall, or take a few bytes a second, are cut after 60 s', async () => {
    const counts = [4, 4, 4, 4, 1];
    while (performance.now() - stalledSince < 80_000) {
      if (stalled.every(({ cuts }, position) => cuts.length === counts[position])) break;
      await setTimeout(100);
    }
    for (const [position, { cuts }] of stalled.entries()) {
      assert.equal(cuts.length, counts[position], `attack ${position}`);
      for (const { milliseconds } of cuts) {
        assert.ok(milliseconds > 59_000, `cut after ${milliseconds} ms`);
      }
    }
    for (const { client } of services) {
      await waitUntil(async () => (await client.request('HEAD', '/books')).status === 200);
    }
  });
});

/** A connection made elsewhere, watched as an attack is. */
function heldOpen(connection: Connection): Attack {
  const beginning = performance.now();
  const cuts: { milliseconds: number; received: string }[] = [];
  const next = setInterval(() => connection.socket.writable && connection.socket.write('\r\n'), 1000);
  void connection.closed.then(() => {
    clearInterval(next);
    cuts.push({ milliseconds: performance.now() - beginning, received: connection.received });
  });
  return { begun: Promise.resolve(), cuts, stop: () => connection.socket.destroy() };
}

/** What an honest client does: each step must be answered as if nobody else was there. */
async function beHonest({ client }: ServiceProcess): Promise<void> {
  const { id } = await client.create({ title: 'honest' });
  assert.equal((await client.request('GET', `/book/${id}`)).data.title, 'honest');
  assert.equal((await client.request('DELETE', `/book/${id}`)).status, 200);
}

/** Sends a login's body and reads the answer, one of so many on this connection. */
async function post(connection: Connection, body: string, count: number) {
  await connection.send(
    `POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const answers = await connection.answers(count);
  return answers[count - 1] as (typeof answers)[number];
}

/** Connections that a process has open, counted by their descriptors. */
function connectionsOf({ process }: ServiceProcess): number {
  const folder = `/proc/${process.pid}/fd`;
  return readdirSync(folder).filter((name) => {
    try {
      return readlinkSync(`${folder}/${name}`).startsWith('socket:');
    } catch {
      return false; // closed meanwhile
    }
  }).length;
}

/** Memory of a service's process, in MiB. */
function memoryOf({ process }: ServiceProcess): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', `${process.pid}`], { encoding: 'utf8' })) / 1024;
}

/** Starts the real command with so many descriptors. */
async function startLimited(dbUrl: string, limit: number) {
  const main = COMMAND;
  const child = spawn('sh', ['-c', `ulimit -n ${limit}; exec "$@"`, 'sh', process.execPath, main], {
    env: { ...ENVIRONMENT, DB_URL: dbUrl, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = await once(lines, 'line');
  const { url } = JSON.parse(line) as { url: string };
  return { url, port: Number(new URL(url).port), process: child };
}
