// Nothing that was acknowledged is lost when the power fails, at whatever moment, and nothing is half done. strace records what
// the real service and commands write; states that the disk may then have are opened. `npm run orders` tries many more.

import { test } from 'node:test';
import fc from 'fast-check';
import { random } from '../support/random.ts';
import { PowerCuts } from './power/power-cuts.ts';
import { WORKS } from './power/works.ts';

/** States of each recording. */
const STATES = { numRuns: 500 };

/** Ways in which work is recorded. */
const VARIANTS = 6;

for (const work of Object.keys(WORKS)) {
  test(`rule 23: the power fails during ${work}`, async () => {
    const cuts = await PowerCuts.during(work, Math.floor(random() * VARIANTS));
    await fc.assert(cuts.property, STATES);
    cuts.end(); // after a failure it stays, to be looked into
  });
}
