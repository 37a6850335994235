// Owns: the patience of services and commands under test before a push: their limits of time are so long that no machine exceeds
// them by being slow. The runner loads this into each test process, and spawnService into each service and command.
// Does not: change the times of other shelves, of virtual time, or of the documents; or pauses and intervals.
// It is JavaScript, as src/main.js is: a process that had to compile it would take twice as long to start.

import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

/** By how much a slow machine may exceed what the product allows. */
const FACTOR = 20;

/** What may take longer on a slow machine, and would then fail. */
const LIMITS = {
  http: 'headers wholeRequest reader readerWithoutRoom linger',
  books: 'deadline queue',
  lists: 'firstChunk wait stall',
  sqlite: 'busy busyInBulk write search catchUp count walWait',
  postgres: `connectAtStart connect listLock query count catchUp statement
    indexStatement indexLock indexStep describe bulkLock`,
  standby: 'snapshot connect firstChunk',
  service: 'grace answer',
  imports: 'answer',
  workers: 'lastResort answer',
  admin: 'ready request',
  commands: 'ready lastResort',
};

/** Whether this process has patience. */
export const IS_PATIENT =
  !/\/(?:endurance\/orders\.ts$|test\/(?:citus|nightly|orders|project|release)\/)/.test(
    process.argv[1] ?? '',
  );

/** The option of Node.js that gives it to a process. */
export const PATIENCE = `--import=${import.meta.url}`;

/**
 * Lengthens the limits of one area, or of one limit that has several parts.
 * @param {Record<string, unknown>} times
 * @param {readonly string[]} names
 */
function lengthen(times, names) {
  for (const name of names) {
    const limit = times[name];
    if (typeof limit === 'number') times[name] = limit * FACTOR;
    else {
      const parts = /** @type {Record<string, unknown>} */ (limit);
      lengthen(parts, Object.keys(parts));
    }
  }
}

if (IS_PATIENT) {
  enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache', import.meta.url)));
  /** @type {{ TIMES: object }} */
  const { TIMES } = await import('../../src/times.ts');
  const areas = /** @type {Record<string, Record<string, unknown>>} */ (TIMES);
  for (const [area, names] of Object.entries(LIMITS)) lengthen(areas[area] ?? {}, names.split(/\s+/));
}
