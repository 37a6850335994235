// The room for bodies and for answers that nobody reads, and the turns of pipelined requests, on requests and sockets that the
// test stands in for: sockets hold bytes by themselves. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BodyTooLarge, NoRoomForBody, readBody } from '../../src/http/body.ts';
import { Connection } from '../../src/http/connection.ts';
import { TIMES } from '../../src/times.ts';
import { settled, VirtualTime } from '../support/virtual-time.ts';

const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * 1024;

describe('the room for bodies', () => {
  /** Begins to read a body that arrives in two pieces, of which the first takes all its room. */
  function begin(length: number) {
    const request = new EventEmitter() as IncomingMessage;
    request.headers = { 'content-length': String(length) };
    const body = readBody(request, MEBIBYTE);
    request.emit('data', Buffer.alloc(length / 2 + 1));
    return {
      body,
      end() {
        request.emit('data', Buffer.alloc(length / 2 - 1));
        request.complete = true;
        request.emit('end');
        request.emit('close');
      },
    };
  }

  for (const [count, length, name] of [
    [128, MEBIBYTE, '128 bodies of 1 MiB'],
    [2048, 64 * KIBIBYTE, '2,048 bodies of 64 KiB'],
  ] as const) {
    test(`rule 22: there is room for ${name}, others find none until it is released, and bodies of the other size have their own`, async () => {
      const begun = Array.from({ length: count }, () => begin(length));
      await assert.rejects(Promise.race([begin(length).body, settled()]), NoRoomForBody);
      const other = begin(length === MEBIBYTE ? 64 * KIBIBYTE : MEBIBYTE);
      other.end();
      await other.body;
      begun.pop()?.end();
      begun.push(begin(length));
      for (const { end } of begun) end();
      for (const { body } of begun) assert.equal((await body).length, length);
    });
  }

  test('rule 22: the pieces of a body are not kept', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const { request, body } = beginChunked();
    const pieces = Array.from({ length: 100 }, () => {
      const piece = Buffer.from(' ');
      request.emit('data', piece);
      return new WeakRef(piece);
    });
    await settled(); // until then, each piece that was made is kept
    collect();
    assert.ok(pieces.every((piece) => piece.deref() === undefined));
    request.emit('end');
    assert.equal((await body).toString(), ' '.repeat(100));
  });

  test('rule 22: what arrives after the limit is dropped', async () => {
    const { request, body } = beginChunked();
    request.emit('data', Buffer.alloc(MEBIBYTE + 1));
    await assert.rejects(Promise.race([body, settled()]), BodyTooLarge);
    assert.equal(request.listenerCount('data'), 0);
  });
});

function beginChunked() {
  const request = new EventEmitter() as IncomingMessage;
  request.headers = { 'transfer-encoding': 'chunked' };
  return { request, body: readBody(request, MEBIBYTE) };
}

/** A client whose answers the test gives. */
class Client {
  readonly begun: { readonly method: string; answer(): void }[] = [];
  readonly calls: string[] = [];
  readonly socket = Object.assign(new EventEmitter(), {
    destroyed: false,
    ...{ writableLength: 0, bytesWritten: 0, bytesRead: 0 },
    pause: () => this.calls.push('pause'),
    resume: () => this.calls.push('resume'),
    destroy: () => {
      this.socket.destroyed = true;
      this.socket.emit('close');
    },
  });
  readonly connection = new Connection(
    this.socket as unknown as Socket,
    (request, response) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const answer = () => {
        Object.assign(response, { writableFinished: true });
        response.emit('close');
        resolve();
      };
      this.begun.push({ method: request.method ?? '', answer });
      return promise;
    },
    { ...TIMES.http, reader: 60_000, readerWithoutRoom: 5000 },
  );

  send(method: string, count = 1, complete = true): void {
    for (let sent = 0; sent < count; sent += 1) {
      const request = { method, complete } as IncomingMessage;
      this.connection.take(request, responseTo(request));
    }
  }

  /** Of the requests that are being handled. */
  get methods(): string {
    return this.begun.map(({ method }) => method).join(' ');
  }
}

function responseTo(request: object): ServerResponse {
  return Object.assign(new EventEmitter(), { req: request, writableFinished: false }) as ServerResponse;
}

describe('the turns of pipelined requests', () => {
  const clients: Client[] = [];
  const connect = () => {
    const client = new Client();
    clients.push(client);
    return client;
  };
  const leave = async () => {
    for (const { socket, begun } of clients) {
      socket.destroy();
      for (const { answer } of begun) answer();
    }
    while (clients.pop()) await settled(); // each has a last turn
  };

  test('rule 9: up to 32 safe requests of one connection are handled concurrently, and 64 requests of all before earlier ones have their answers', async () => {
    const client = connect();
    client.send('GET', 40);
    assert.equal(client.begun.length, 32);
    for (let count = 0; count < 3; count += 1) connect().send('GET', 32);
    assert.equal(clients.flatMap(({ begun }) => begun).length, 4 + 64);
    await leave();
  });

  test('rule 9: a request that changes something is handled alone on its connection', async () => {
    const client = connect();
    for (const method of ['POST', 'DELETE', 'GET', 'HEAD', 'POST']) client.send(method);
    const seen: string[] = [];
    for (const answers of [1, 1, 2, 1]) {
      seen.push(client.methods);
      for (const { answer } of client.begun.splice(0, answers)) answer();
      await settled();
    }
    assert.deepEqual(seen, ['POST', 'DELETE', 'GET HEAD', 'POST']);
    await leave();
  });

  test('rules 9 and 22: bodies of requests that wait for an earlier one are not read', async () => {
    const client = connect();
    client.send('POST', 2);
    await settled();
    client.socket.resume(); // as Node does after each request and each piece of a body
    assert.deepEqual(client.calls, ['pause']);
    client.begun[0]?.answer();
    await settled();
    assert.deepEqual(client.calls, ['pause', 'resume']);
    await leave();
  });

  test('rules 9 and 22: of many clients with many short requests, one begins in a turn of the event loop', async () => {
    const time = new VirtualTime();
    await time.during(async () => {
      const [one, other] = [connect(), connect()];
      for (const client of [one, other]) client.send('POST', 2);
      for (const client of [one, other]) client.begun.pop()?.answer();
      assert.equal(one.methods + other.methods, '');
      time.pass();
      assert.deepEqual([one.methods, other.methods], ['POST', '']);
      time.pass();
      assert.deepEqual([one.methods, other.methods], ['POST', 'POST']);
    });
    await leave();
  });

  for (const part of ['headers arrive', 'body arrives'] as const) {
    test(`rule 22: the time of a request, whose ${part} late, does not count while earlier ones are answered`, async () => {
      const time = new VirtualTime();
      await time.during(async () => {
        const client = connect();
        client.send('POST');
        if (part === 'body arrives') client.send('POST', 1, false);
        client.connection.noteSlow();
        const seen = [100_000, 0, 29_999, 1].map((milliseconds, position) => {
          if (position === 1) client.begun[0]?.answer();
          time.now += milliseconds;
          return client.connection.isTooSlow(30_000);
        });
        assert.deepEqual(seen, [false, false, false, true]);
        client.send('GET');
        assert.equal(client.connection.isTooSlow(30_000), false, 'it has arrived');
        time.pass();
      });
      await leave();
    });
  }

  test('rules 9 and 22: beyond 16,384 waiting requests, a client with many short requests waiting is disconnected', async () => {
    const [greedy, modest] = [connect(), connect()];
    modest.send('POST', 33);
    greedy.send('POST', 1 + 16_384 - 32);
    assert.equal(greedy.socket.destroyed, false);
    greedy.send('POST');
    assert.deepEqual([greedy.socket.destroyed, modest.socket.destroyed], [true, false]);
    await leave();
  });
});

test('rule 22: who reads none of 128 MiB of answers is disconnected after 5 s if others find no room, else after a minute', async () => {
  const time = new VirtualTime();
  await time.during(async () => {
    const client = new Client();
    const { socket, connection } = client;
    const responses = Array.from({ length: 128 }, () => responseTo({}));
    for (const response of responses) assert.ok(connection.takeRoom(response, MEBIBYTE));
    socket.writableLength = 1;
    const isCutAfter = (milliseconds: number) => {
      time.now += milliseconds;
      Connection.cutStalled([connection], { ...TIMES.http, reader: 60_000, readerWithoutRoom: 5000 });
      return socket.destroyed;
    };
    assert.equal(isCutAfter(0), false);
    assert.equal(isCutAfter(59_999), false);
    assert.equal(connection.takeRoom(responseTo({}), MEBIBYTE), false);
    assert.ok(connection.takeRoom(responseTo({}), 4096), 'an answer that needs no room');
    socket.bytesWritten += 1; // it has read something
    assert.equal(isCutAfter(0), false);
    assert.equal(isCutAfter(4999), false);
    assert.equal(isCutAfter(1), true);
    assert.ok(new Client().connection.takeRoom(responseTo({}), 128 * MEBIBYTE), 'its room is free again');
  });
});
