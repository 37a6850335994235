// Owns: the random choices of the tests. All of them follow from one seed, which the runner prints, so that a run
// that found a fault can be repeated: `npm test -- --seed NUMBER`.

import fc from 'fast-check';

/** The environment variable with the seed of this run. */
export const SEED = 'TEST_SEED';

/** A whole number from 0 to 2^32−1; a random one if the run was not given any. */
export const seed = Number(process.env[SEED] ?? Math.floor(Math.random() * 2 ** 32)) >>> 0;

// A property that fails prints its own seed, which is derived from this one.
fc.configureGlobal({ seed });

/**
 * The next number in [0, 1). The sequence is that of this process: tests of one file that run side by side share it.
 */
export const random = randomSequence(0);

/**
 * A separate sequence for each of several users that draw in no determined order.
 * @param number an integer; different numbers give different sequences.
 */
export function randomSequence(number: number): () => number {
  return sequenceOf(seed ^ Math.imul(number, 0x9e3779b1));
}

/**
 * The sequence of any seed.
 * @returns draws the next number, in [0, 1). Algorithm: Mulberry32, by Tommy Ettinger, in the public domain.
 */
export function sequenceOf(anySeed: number): () => number {
  let state = anySeed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
