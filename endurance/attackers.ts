// Owns: hostile clients of several kinds, many at once, for measuring honest requests beside them. They run until they are
// stopped, on 127.0.0.1 only.

import { connect, type Socket } from 'node:net';

interface Target {
  readonly port: number;
}

export interface Attack {
  /** Resolves once every connection is open. */
  readonly begun: Promise<unknown>;
  stop(): void;
}

/** Connects and sends nothing. */
export function silent(target: Target, count: number): Attack {
  return start(target, count, () => {});
}

/** Begins a request, then sends one header a second. */
export function slowHeaders(target: Target, count: number): Attack {
  return start(target, count, (socket) => {
    socket.write('GET /books HTTP/1.1\r\n');
    eachSecond(socket, () => socket.write('X: y\r\n'));
  });
}

/** Announces a body on a path that needs no token, then sends one byte of it a second. */
export function slowBodies(target: Target, count: number): Attack {
  return start(target, count, (socket) => {
    socket.write('POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: 1000\r\n\r\n');
    eachSecond(socket, () => socket.write(' '));
  });
}

/** Sends all but the last byte of the longest body that needs no token, and then nothing. */
export function almostWholeBodies(target: Target, count: number): Attack {
  return start(target, count, (socket) => {
    const head = 'POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: 4096\r\n\r\n';
    socket.write(head + ' '.repeat(4095));
  });
}

/** Sends a body in chunks on a path that needs a token, without one: a few of them a second. */
export function endlessBodies(target: Target, count: number, chunks: string): Attack {
  return start(target, count, (socket) => {
    socket.write('POST /book HTTP/1.1\r\nHost: books.test\r\nTransfer-Encoding: chunked\r\n\r\n');
    eachSecond(socket, () => socket.write(chunks));
  });
}

/** Requests the list and reads none of it. */
export function stalledReaders(target: Target, count: number, token: string): Attack {
  return stalledReadersOf(target, count, listBy(token));
}

/** Sends requests whose answers are long, and reads nothing. */
export function stalledReadersOf(target: Target, count: number, requests: string): Attack {
  return start(target, count, (socket) => {
    socket.pause();
    socket.write(requests);
    // A client that does not read notices the end of its connection only when it writes.
    eachSecond(socket, () => socket.write('\r\n'));
  });
}

/** Requests the list and reads it, a few bytes a second. */
export function drippingReaders(target: Target, count: number, token: string): Attack {
  return start(target, count, (socket) => {
    socket.write(listBy(token));
    socket.pause();
    eachSecond(socket, () => {
      socket.read(10);
      socket.write('\r\n');
    });
  });
}

function listBy(token: string): string {
  return `GET /books HTTP/1.1\r\nHost: books.test\r\nAuthorization: ${token}\r\n\r\n`;
}

function start({ port }: Target, count: number, attack: (socket: Socket) => void): Attack {
  const sockets = Array.from({ length: count }, () => connect({ port, host: '127.0.0.1' }));
  const opening = sockets.map((socket) => {
    socket.on('error', () => {}); // 'close' follows
    socket.on('data', () => {});
    socket.once('connect', () => attack(socket));
    return new Promise((resolve) => {
      socket.once('connect', resolve);
      socket.once('close', resolve);
    });
  });
  return {
    begun: Promise.all(opening),
    stop() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** As long as the connection lasts. */
function eachSecond(socket: Socket, act: () => void): void {
  const next = setInterval(() => socket.writable && act(), 1000);
  socket.once('close', () => clearInterval(next));
}
