// Owns: hostile clients of several kinds, many at once, for tests and for measuring honest requests beside them, and what
// an honest client does meanwhile. The hostile ones run until they are stopped, on 127.0.0.1 only.
// Does not: judge. It reports the end of each connection; the caller decides which end is right.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import type { Client, Target } from './client.ts';

/** What became of one connection. */
export interface Cut {
  /** Since the connection was started. */
  readonly milliseconds: number;
  /** Everything that was read from it, byte for byte. */
  readonly received: string;
}

export interface Attack {
  /** Resolves once every connection is open. */
  readonly begun: Promise<void>;
  /** Connections that the service has closed so far. */
  readonly cuts: readonly Cut[];
  /** Resolves once the service has closed every connection. */
  readonly ended: Promise<void>;
  stop(): void;
}

/** Connects and sends nothing. */
export function silent(target: Target, count: number): Attack {
  return slow(target, count, '');
}

/** Begins a request, then sends one header a second. */
export function slowHeaders(target: Target, count: number): Attack {
  return slow(target, count, 'GET /books HTTP/1.1\r\n', 'X: y\r\n');
}

/** Announces a body on a path that needs no token, then sends one byte of it a second. */
export function slowBodies(target: Target, count: number): Attack {
  return slow(target, count, 'POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: 1000\r\n\r\n', ' ');
}

/** Sends a beginning, then the same few bytes each second. */
export function slow(target: Target, count: number, beginning: string, rest = ''): Attack {
  return start(target, count, (socket) => {
    socket.write(beginning);
    if (rest !== '') drip(socket, rest);
  });
}

/** Sends all but the last byte of the longest body that needs no token, and then nothing. */
export function almostWholeBodies(target: Target, count: number, length = 4096): Attack {
  const body = ' '.repeat(length - 1);
  return start(target, count, (socket) => {
    socket.write(`POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: ${length}\r\n\r\n${body}`);
  });
}

/** Requests something long, such as the list, and reads none of the answer. */
export function stalledReaders(target: Target, count: number, token: string, path = '/books'): Attack {
  return stalledReadersOf(
    target,
    count,
    `GET ${path} HTTP/1.1\r\nHost: books.test\r\nAuthorization: ${token}\r\n\r\n`,
  );
}

/** Sends requests whose answers are long, and reads nothing. */
export function stalledReadersOf(target: Target, count: number, requests: string): Attack {
  return start(target, count, (socket) => {
    socket.pause();
    socket.write(requests);
    // A client that does not read notices the end of its connection only when it writes.
    drip(socket, '\r\n');
  });
}

/** Requests the list and reads it, a few bytes a second. */
export function drippingReaders(target: Target, count: number, token: string): Attack {
  return start(target, count, (socket) => {
    socket.write(`GET /books HTTP/1.1\r\nHost: books.test\r\nAuthorization: ${token}\r\n\r\n`);
    socket.pause();
    const next = setInterval(() => socket.read(10), 1000);
    drip(socket, '\r\n');
    socket.once('close', () => clearInterval(next));
  });
}

function start({ port }: Target, count: number, attack: (socket: Socket) => void): Attack {
  const cuts: Cut[] = [];
  let stopped = false;
  const opening: Promise<void>[] = [];
  const ended = Promise.withResolvers<void>();
  const sockets = Array.from({ length: count }, () => {
    const beginning = performance.now();
    let received = '';
    const socket = connect({ port, host: '127.0.0.1' });
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      received += text;
    });
    socket.on('error', () => {}); // 'close' follows
    socket.once('close', () => {
      if (stopped) return;
      cuts.push({ milliseconds: performance.now() - beginning, received });
      if (cuts.length === count) ended.resolve();
    });
    opening.push(
      new Promise((resolve) => {
        socket.once('connect', resolve);
        socket.once('close', resolve);
      }),
    );
    socket.once('connect', () => attack(socket));
    return socket;
  });
  return {
    begun: Promise.all(opening).then(() => {}),
    cuts,
    ended: ended.promise,
    stop() {
      stopped = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Writes again each second, for as long as the connection lasts. */
function drip(socket: Socket, bytes: string): void {
  const next = setInterval(() => socket.writable && socket.write(bytes), 1000);
  socket.once('close', () => clearInterval(next));
}

/** How often a slow machine may be too busy for a request of an honest client, one time after the other. */
const BUSY = 10;

/** Creates, reads and removes a book. Each step must be answered as if there were no other clients. */
export async function beHonest({ client }: { readonly client: Client }): Promise<void> {
  const request = async (...parts: Parameters<Client['request']>) => {
    let answer = await client.request(...parts);
    for (let times = 1; answer.status === 503 && times < BUSY; times += 1) {
      answer = await client.request(...parts);
    }
    return answer;
  };
  const created = await request('POST', '/book', { body: { title: 'honest' } });
  assert.equal(created.status, 201);
  const path = `/book/${created.data.id}`;
  const read = await request('GET', path);
  assert.deepEqual([read.status, read.data?.title], [200, 'honest']);
  assert.ok([200, 404].includes((await request('DELETE', path)).status)); // 404 if it got 503 and was removed
}
