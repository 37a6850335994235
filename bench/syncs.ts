// Owns: measuring what a creation costs on disks whose syncs take longer: the store is in memory, and strace delays each sync of
// the service. It stops no other call.

import { execFileSync, spawnSync } from 'node:child_process';
import { COMMAND } from '../test/support/repository.ts';
import { STORES_FOLDER } from '../test/support/stores-folder.ts';
import { applyLoad, CONNECTIONS } from './load.ts';
import { requestsOf } from './operations.ts';
import { type Command, type Measured, settle, startService } from './processes.ts';
import { medians, progress } from './report.ts';
import type { SyncRow } from './results.ts';
import { type BenchStore, openSqliteBench } from './stores.ts';

/** Milliseconds that are added to each sync; for 0, strace does not run. */
const DELAYS = [0, 0.05, 1, 5, 20];

/** Prints the median of the milliseconds that a sync takes in the same way as those of the service. */
const TIME_SYNCS = `
  const { fdatasync, openSync, writeSync } = require('node:fs');
  const file = openSync('${STORES_FOLDER}/book-catalogue-bench-sync', 'w');
  require('node:fs').unlinkSync('${STORES_FOLDER}/book-catalogue-bench-sync');
  const times = [];
  const next = () => {
    writeSync(file, 'x');
    const began = performance.now();
    fdatasync(file, () => {
      times.push(performance.now() - began);
      if (times.length < 101) next();
      else console.log(times.sort((one, other) => one - other)[50]);
    });
  };
  next();`;

export async function measureSyncs({
  rounds,
  seconds,
}: {
  readonly rounds: number;
  readonly seconds: number;
}): Promise<SyncRow[]> {
  if (spawnSync('strace', ['--version']).error !== undefined) return [];
  const stores: BenchStore[] = [];
  const services: { readonly sync: number; readonly service: Measured }[] = [];
  for (const delay of DELAYS) {
    const store = await openSqliteBench(STORES_FOLDER);
    stores.push(store);
    const [program, ...args] = delayed([process.execPath, '-e', TIME_SYNCS], delay);
    const sync = Number(execFileSync(program, args, { encoding: 'utf8' }));
    services.push({ sync, service: await startService(store.dbUrl, {}, false, delayed(COMMAND, delay)) });
  }
  const rows = [];
  for (const clients of [1, CONNECTIONS]) {
    const load = { requests: requestsOf('create', []), seconds, connections: clients };
    const samples = services.map(() => [] as { p50: number; p99: number }[]);
    for (let round = 0; round <= rounds; round += 1) {
      for (const [position, { service }] of services.entries()) {
        progress(`SQLite: creations by ${clients} over syncs of ${DELAYS[position]} ms, round ${round}`);
        const { p50, p99 } = await applyLoad({ port: service.port, ...load });
        await settle(service);
        if (round > 0) samples[position]?.push({ p50, p99 }); // the first one warms up
      }
    }
    const measured = services.map(({ sync }, position) => ({ sync, ...medians(samples[position] ?? []) }));
    const syncs = slope(measured.map(({ sync, p50 }) => [sync, p50]));
    rows.push(...measured.map((row) => ({ clients, ...row, syncs, rest: row.p50 - syncs * row.sync })));
  }
  for (const { service } of services) await service.stop();
  for (const store of stores) await store.remove();
  return rows;
}

/** A command whose syncs take this much longer, in milliseconds. */
function delayed(command: Command, delay: number): Command {
  if (delay === 0) return command;
  const traced = ['-e', 'signal=none', '-e', 'trace=fsync,fdatasync'];
  const injected = ['-e', `inject=fsync,fdatasync:delay_exit=${delay * 1000}`];
  return [
    'strace',
    '-D',
    '-f',
    '--seccomp-bpf',
    '-qq',
    '-o',
    '/dev/null',
    ...traced,
    ...injected,
    ...command,
  ];
}

/** Of the line through points with the least squares. */
function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const x = mean(([one]) => one);
  const y = mean(([, one]) => one);
  return mean(([one, other]) => (one - x) * (other - y)) / mean(([one]) => (one - x) ** 2);
}
