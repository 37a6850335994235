// Many clients change one catalogue, lose answers, and repeat their requests, while the service is killed and its store
// fails. `npm run torture -- --operations` does the same for longer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryThroughFaults, startFailingPostgres } from '../support/retrying.ts';
import { STORES, startServiceProcess } from '../support/service.ts';

/** As many faults follow from it that each kind occurs. */
const PLAN = { operations: 600, life: 80 };

for (const store of STORES) {
  test(`rules E3, I2, I3 and 23 on ${store.name}: requests that are repeated until they are answered are carried out once`, async (context) => {
    const servers = store.name === 'PostgreSQL' ? await startFailingPostgres() : undefined;
    context.after(() => servers?.remove());
    const dbUrl = servers?.dbUrl ?? (await store.freshUrl());
    const start = () => startServiceProcess(dbUrl, { WORKERS: '2' });
    const figures = await retryThroughFaults(context, { ...servers, start }, PLAN);
    context.diagnostic(JSON.stringify(figures));
    for (const [name, count] of Object.entries(figures)) {
      if (name !== 'answers with 503') assert.ok(count > 0, name);
    }
  });
}
