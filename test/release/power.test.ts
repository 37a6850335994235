// Nothing that was acknowledged is lost when the power fails, at whatever moment, and nothing is half done. strace records what
// the real service and commands write; states that the disk may then have are opened. `npm run orders` tries many more, of
// more kinds of work.

import { test } from 'node:test';
import fc from 'fast-check';
import { random } from '../support/random.ts';
import { scaled } from '../support/scale.ts';
import { PowerCuts } from './power/power-cuts.ts';

const STATES = { numRuns: scaled(100) };

/** Ways in which work is recorded. */
const VARIANTS = 6;

for (const work of ['single writes', 'syncs that fail', 'a backup', 'a restore', 'an export']) {
  test(`rule 23: the power fails during ${work}`, async (context) => {
    const cuts = await PowerCuts.during(work, Math.floor(random() * VARIANTS));
    let isKept = true;
    context.after(() => cuts.end(isKept));
    await fc.assert(cuts.property, STATES);
    isKept = false;
  });
}
