// Owns: how much a run checks: more each night than before a push, less after each change.

/** The environment variable that names the shelf of tests that runs; it is not set before a push. */
export const SHELF = 'TEST_SHELF';

/** Its value each night, and the folder of its tests. */
export const NIGHTLY = 'nightly';

/** Its value after each change. */
export const FAST = 'fast';

/**
 * How often a loop of random or killing rounds goes round.
 * @param rounds each night; before a push a sixteenth of them, after each change a quarter of that, rounded up.
 */
export function scaled(rounds: number): number {
  const shelf = process.env[SHELF];
  return Math.ceil(rounds / (shelf === NIGHTLY ? 1 : shelf === FAST ? 64 : 16));
}
