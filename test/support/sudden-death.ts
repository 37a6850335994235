// Owns: lives of the service that end with SIGKILL at a random moment, and what must be found after each:
// every acknowledged write, whole, nothing else, in a file that is sound. The lifecycle tests use it for a
// few deaths, the torture for a thousand.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import type { Ledger } from './ledger.ts';
import { random } from './random.ts';
import { fileOf, type ServiceProcess, spawnService } from './service.ts';

const WRITERS = 8;

/** Requests and answers that a life under writers sees at least, so that some are acknowledged, and at most. */
const SHORTEST_LIFE = 50;
const LONGEST_LIFE = 450;

/** Milliseconds that it lasts longer at most, so that death comes between two of them, too. */
const AFTERMATH = 5;

/**
 * Starts the service on what its predecessor left, compares, and kills it while writers write.
 * @returns milliseconds from its start to its first answer.
 */
export async function liveAndDie(start: () => Promise<ServiceProcess>, ledger: Ledger): Promise<number> {
  const began = performance.now();
  const service = await start();
  const ready = performance.now() - began;
  await examine(service, ledger);
  let left = SHORTEST_LIFE + Math.floor(random() * (LONGEST_LIFE - SHORTEST_LIFE));
  const { promise: lived, resolve } = Promise.withResolvers<void>();
  const count = () => {
    left -= 1;
    if (left === 0) resolve();
  };
  const ended = Promise.all([
    once(service.process, 'close'), // the last of its processes has let go of their output
    ...ledger.writers(service.client, WRITERS).map(async (writer) => {
      while ((await writer.write(count)) !== 'gone');
    }),
  ]);
  await Promise.race([lived, ended]);
  await Promise.race([pause(random() * AFTERMATH), ended]);
  for (const line of service.log) {
    const { msg, pid } = JSON.parse(line);
    if (msg === 'a worker serves') process.kill(pid, 'SIGKILL');
  }
  service.process.kill('SIGKILL');
  await ended;
  return ready;
}

/** Starts the service and kills it at a moment of its start. */
export async function dieYoung(env: Record<string, string>, longestLife: number): Promise<void> {
  const child = spawnService(env);
  child.stdout?.resume();
  child.stderr?.resume();
  const ended = once(child, 'close');
  await Promise.race([pause(random() * longestLife), ended]);
  assert.equal(child.exitCode, null, 'it ended by itself while it started');
  child.kill('SIGKILL');
  await ended;
}

/** Compares what is stored with what is known of it. */
export async function examine({ client, dbUrl }: ServiceProcess, ledger: Ledger): Promise<void> {
  ledger.reconcile(await client.list());
  if (!dbUrl.startsWith('sqlite:')) return;
  const db = new DatabaseSync(fileOf(dbUrl), { readOnly: true });
  try {
    assert.deepEqual({ ...db.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' });
  } finally {
    db.close();
  }
}
