// Programs that follow the changes of a catalogue while its services are killed, on every store.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { followThroughDeaths } from '../support/following.ts';
import { scaled } from '../support/scale.ts';
import { STORES } from '../support/service.ts';

/** How often a service is killed; TEST_KILLS overrides it. */
const KILLS = Number(process.env.TEST_KILLS ?? scaled(80));

/** Operations between two deaths, on average. */
const LIFE = 250;

for (const store of STORES) {
  test(`rules H1, H2, H3 and H5 on ${store.name}: every follower ends with the books of the list, however often services are killed and answers lost`, async (context) => {
    const figures = await followThroughDeaths(context, await store.freshUrl(), KILLS, LIFE);
    context.diagnostic(JSON.stringify(figures));
    for (const [name, count] of Object.entries(figures)) {
      const isOfOther = name === 'transactions of other programs' && store.name === 'SQLite';
      assert.ok(count > 0 || isOfOther || name === 'answers with 503', name);
    }
  });
}
