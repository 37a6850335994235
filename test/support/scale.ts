// Owns: how much a run checks: more each night than before a push.

/** The environment variable that names the shelf of tests that runs; none before a push. */
export const SHELF = 'TEST_SHELF';

/** Its value each night, and the folder of its tests. */
export const NIGHTLY = 'nightly';

/**
 * How often a loop of random or killing rounds goes round.
 * @param rounds each night; before a push a quarter of them, rounded up.
 */
export function scaled(rounds: number): number {
  return process.env[SHELF] === NIGHTLY ? rounds : Math.ceil(rounds / 4);
}
