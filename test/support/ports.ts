// Owns: ports for programs whose port must be chosen for them. A program that can report the port that the system
// gave it is started on port 0 instead.

import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

// Below 32,768, from where on systems assign ports by themselves. Each test process reserves a block by listening on
// its first port, so that two processes do not take the same port between the check and the use.
const FIRST = 20_000;
const BLOCK = 40;
const BLOCKS = 300;

let block: Promise<number> | undefined;
let taken = 0;

/** A port on which no program listens, and which no other test gets. */
export async function unusedPort(): Promise<number> {
  block ??= claimBlock();
  const first = await block;
  for (;;) {
    const port = first + 1 + (taken % (BLOCK - 1));
    taken += 1;
    const server = await listen(port);
    if (server === undefined) continue; // in use
    server.close();
    await once(server, 'close');
    return port;
  }
}

/** The first port of a block that no other process has. */
async function claimBlock(): Promise<number> {
  for (let number = process.pid; ; number += 1) {
    const first = FIRST + (number % BLOCKS) * BLOCK;
    const guard = await listen(first);
    if (guard === undefined) continue;
    guard.unref();
    return first;
  }
}

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return server;
  } catch {
    return undefined;
  }
}
