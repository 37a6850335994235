// Random orders of events, with time that passes only when the order says so. fast-check prints the shortest order that
// fails, with the seed that repeats it. `npm run orders` tries many more.

import { describe, test } from 'node:test';
import fc from 'fast-check';
import '../support/random.ts';
import { scaled } from '../support/scale.ts';
import { SEAMS } from './seams.ts';

const RUNS = { numRuns: scaled(4000) };

describe('in every order of events', () => {
  for (const [name, property] of Object.entries(SEAMS)) test(name, () => fc.assert(property, RUNS));
});
