// Random orders of events, with time that passes only when the order says so. fast-check prints the shortest order that
// fails, with the seed that repeats it. `npm run orders` tries many more.

import { describe, test } from 'node:test';
import fc from 'fast-check';
import '../support/random.ts';
import { scaled } from '../support/scale.ts';
import { QUICK_SEAMS, SEAMS, SLOW_SEAMS } from './seams.ts';

/** Orders of a place, each night. */
const RUNS = 4000;
const SLOW_RUNS = 400;
const QUICK_RUNS = 16_000;

describe('in every order of events', () => {
  for (const [name, property] of Object.entries(SEAMS)) {
    const runs = SLOW_SEAMS.includes(name) ? SLOW_RUNS : QUICK_SEAMS.includes(name) ? QUICK_RUNS : RUNS;
    const numRuns = scaled(runs);
    test(name, () => fc.assert(property, { numRuns }));
  }
});
