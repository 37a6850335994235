// Owns: clients that mean harm, each of one kind, many at once: for tests, and for measuring honest requests
// beside them. They run until they are stopped, on 127.0.0.1 only.
// Refuses to judge: what became of a connection is told, what should have become of it is the caller's.

import { connect, type Socket } from 'node:net';
import type { Target } from './client.ts';

/** What became of one connection. */
export interface Cut {
  /** Since it was made. */
  readonly milliseconds: number;
  /** Everything that was read from it, byte for byte. */
  readonly received: string;
}

export interface Attack {
  /** Resolves once every connection is open. */
  readonly begun: Promise<void>;
  /** Connections that the service has closed so far. */
  readonly cuts: readonly Cut[];
  stop(): void;
}

/** Connects and never says anything. */
export function silent(target: Target, count: number): Attack {
  return start(target, count, () => {});
}

/** Begins a request, then sends a header a second. */
export function slowHeaders(target: Target, count: number): Attack {
  return start(target, count, (socket) => {
    socket.write('GET /books HTTP/1.1\r\n');
    drip(socket, 'X: y\r\n');
  });
}

/** Announces a body, for which no token is needed, then sends a byte of it a second. */
export function slowBodies(target: Target, count: number): Attack {
  return start(target, count, (socket) => {
    socket.write('POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: 1000\r\n\r\n');
    drip(socket, ' ');
  });
}

/** Sends all of a large body but its last byte, and then nothing. */
export function almostWholeBodies(target: Target, count: number, length = 1024 * 1024): Attack {
  const body = ' '.repeat(length - 1);
  return start(target, count, (socket) => {
    socket.write(`POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: ${length}\r\n\r\n${body}`);
  });
}

/** Asks for something long, such as the list, and reads none of the answer. */
export function stalledReaders(target: Target, count: number, token: string, path = '/books'): Attack {
  return start(target, count, (socket) => {
    socket.pause();
    socket.write(`GET ${path} HTTP/1.1\r\nHost: books.test\r\nAuthorization: ${token}\r\n\r\n`);
    // Who does not read does not hear of the end either, until there is something to write.
    drip(socket, '\r\n');
  });
}

/** Asks for the list and reads it, a few bytes a second. */
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
      if (!stopped) cuts.push({ milliseconds: performance.now() - beginning, received });
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
