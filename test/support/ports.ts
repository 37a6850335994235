// Owns: ports for programs whose port must be chosen for them, and programs of any kind that listen. A program that can
// report the port that the system gave it is started on port 0 instead.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { TestContext } from 'node:test';

// Below 32,768, from where on systems assign ports by themselves. Each test process reserves a block by listening on
// its first port, so that two processes do not take the same port between the check and the use.
const FIRST = 20_000;
const BLOCK = 40;
const BLOCKS = 300;

let block: Promise<number> | undefined;
let taken = 0;

/** A port on which no program listens, and which no other test gets. */
export function unusedPort(): Promise<number> {
  return adjacentPorts(1);
}

/**
 * So many such ports in a row, which are taken together: tests that each wait for a port next to their last one may wait for ever.
 * @returns the first of them.
 */
export async function adjacentPorts(count: number): Promise<number> {
  block ??= claimBlock();
  const first = await block;
  for (let attempt = 0; attempt < 2 * BLOCK; attempt += 1) {
    if ((taken % BLOCK) + count >= BLOCK) taken += BLOCK - (taken % BLOCK); // the next ones are not all in the block
    const port = first + 1 + (taken % BLOCK);
    taken += count;
    const servers = await Promise.all(
      Array.from({ length: count }, (_, distance) => occupy(port + distance)),
    );
    await Promise.all(servers.map((server) => server?.close() && once(server, 'close')));
    if (!servers.includes(undefined)) return port; // else one of them is in use
  }
  throw new Error(`Of the ports ${first} to ${first + BLOCK - 1} no ${count} in a row are free.`);
}

interface Listener {
  readonly port: number;
  /** Accepts no further connections; those that are open end with the test. */
  close(): void;
}

/**
 * Listens until the end of a test, on a port that the system chooses unless one is given.
 * @param visit handles a connection; without it, nothing is ever sent.
 */
export async function listen(
  context: TestContext,
  visit: (socket: Socket) => void = () => {},
  port = 0,
  host = '127.0.0.1',
): Promise<Listener> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    visit(socket);
  });
  context.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await once(server.listen(port, host), 'listening');
  return { port: (server.address() as { port: number }).port, close: () => server.close() };
}

/** Loopback addresses of this machine other than 127.0.0.1. */
export const OTHER_ADDRESSES = networkInterfaces().lo?.some(({ family }) => family === 'IPv6')
  ? ['127.0.0.2', '::1']
  : ['127.0.0.2'];

/** The first port of a block that no other process has. */
async function claimBlock(): Promise<number> {
  for (let number = process.pid; ; number += 1) {
    const first = FIRST + (number % BLOCKS) * BLOCK;
    const guard = await occupy(first);
    if (guard === undefined) continue;
    guard.unref();
    return first;
  }
}

async function occupy(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1');
  return await once(server, 'listening').then(
    () => server,
    () => undefined,
  );
}
