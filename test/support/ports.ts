// Owns: ports for programs that must be told theirs. Where a program can say which port the system gave it, tests
// start it on port 0 instead.

import { once } from 'node:events';
import { createServer } from 'node:net';

// Below 32,768, where systems begin to hand ports out by themselves. Each test process has a block of its own, so
// that two of them do not take the same port between the look and the use.
const FIRST = 20_000;
const BLOCK = 40;
const BLOCKS = 300;
const begin = FIRST + (process.pid % BLOCKS) * BLOCK;

let taken = 0;

/** A port on which nobody listens, and which nobody else is given. */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = begin + (taken % BLOCK);
    taken += 1;
    const server = createServer();
    try {
      await once(server.listen(port, '127.0.0.1'), 'listening');
    } catch {
      continue; // somebody listens there
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
