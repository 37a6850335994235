// Owns: runs of the service that end with SIGKILL at a random moment, and the check after each: every acknowledged
// write is stored as a whole, nothing else is, and the file is intact. The lifecycle tests use it for a few deaths,
// endurance/torture.ts for a thousand.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import type { Ledger } from './ledger.ts';
import { execute } from './postgres.ts';
import { random } from './random.ts';
import { endOf, fileOf, type RunningService, type ServiceProcess, spawnService } from './service.ts';
import { waitUntil } from './wait.ts';

const WRITERS = 8;

/** The fewest requests and answers of a run under writers, so that some are acknowledged, and the most. */
const SHORTEST_LIFE = 50;
const LONGEST_LIFE = 450;

/** Milliseconds: of rest between two reads; after the last request at most, so that death also comes between two of them. */
const REST = 50;
const AFTERMATH = 5;

/**
 * Starts the service on what the previous run left, compares, and kills it while writers write.
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
    once(service.process, 'close'), // all of its processes have closed their output
    ...ledger.writers(service.client, WRITERS).map(async (writer) => {
      while ((await writer.write(count)) !== 'gone');
    }),
    ...['/books', undefined].map(async (path) => {
      while ((await ledger.read(service.client, path)) !== 'gone') await pause(REST);
    }),
  ]);
  await Promise.race([lived, ended]);
  await Promise.race([pause(random() * AFTERMATH), ended]);
  killAll(service);
  await ended;
  return ready;
}

/** Kills the service and its workers. */
export function killAll(service: ServiceProcess): void {
  for (const line of service.log) {
    const { msg, pid } = JSON.parse(line);
    if (msg === 'a worker is serving') process.kill(pid, 'SIGKILL');
  }
  service.process.kill('SIGKILL');
}

/** Kills them, and resolves when all of them have ended. */
export async function killed(service: ServiceProcess): Promise<void> {
  if (service.process.exitCode !== null || service.process.signalCode !== null) return;
  const closed = once(service.process, 'close');
  killAll(service);
  await closed;
}

/** Starts the service and kills it at a random moment of its start. */
export async function dieYoung(env: Record<string, string>, longestLife: number): Promise<void> {
  const child = spawnService(env);
  const ended = endOf(child);
  await Promise.race([pause(random() * longestLife), ended]);
  child.kill('SIGKILL');
  const { code, stderr } = await ended;
  assert.equal(code, null, `it exited by itself while it started: ${stderr}`);
}

/** Compares the stored books with the ledger, and checks the file. */
export async function examine({ client, dbUrl }: RunningService, ledger: Ledger): Promise<void> {
  await ledger.reconcile(client);
  if (!dbUrl.startsWith('sqlite:')) return;
  using db = new DatabaseSync(fileOf(dbUrl), { readOnly: true });
  assert.deepEqual({ ...db.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' });
}

/** Waits for the end of the transactions in progress on PostgreSQL: the server may carry on with those of a service that was killed. */
export async function untilQuiet(dbUrl: string): Promise<void> {
  if (dbUrl.startsWith('sqlite:')) return;
  const [now] = await execute<{ now: string }>(dbUrl, 'select clock_timestamp()::text as now');
  const older = `select from pg_stat_activity where datname = current_database() and xact_start < '${now?.now}'`;
  await waitUntil(async () => (await execute(dbUrl, older)).length === 0);
}
