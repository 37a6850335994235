// Owns: ports for programs that must be told theirs. Where a program can say which port the system gave it, tests
// start it on port 0 instead.

import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

// Below 32,768, where systems begin to hand ports out by themselves. Each test process has a block of its own, whose first
// port it listens on for as long as it lives, so that two of them do not take the same port between the look and the use.
const FIRST = 20_000;
const BLOCK = 40;
const BLOCKS = 300;

let block: Promise<number> | undefined;
let taken = 0;

/** A port on which nobody listens, and which no other test is given. */
export async function unusedPort(): Promise<number> {
  block ??= claimBlock();
  const first = await block;
  for (;;) {
    const port = first + 1 + (taken % (BLOCK - 1));
    taken += 1;
    const server = await listen(port);
    if (server === undefined) continue; // somebody listens there
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
