// Many clients change one catalogue, lose answers, and repeat their requests, while the service is killed and its store
// fails. `npm run torture -- --operations` does the same for longer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryThroughFaults, startFailingPostgres } from '../support/retrying.ts';
import { STORES, startServiceProcess } from '../support/service.ts';

/** These lead to several kills, and to several faults of the store where it can fail by itself. */
const [WRITES, LIFE] = [600, 80];

for (const store of STORES) {
  test(`rules E3, I2, I3 and 23 on ${store.name}: requests that are repeated until they are answered are carried out once`, async (context) => {
    const servers = store.name === 'PostgreSQL' ? await startFailingPostgres() : undefined;
    const dbUrl = servers?.dbUrl ?? (await store.freshUrl());
    const start = () => startServiceProcess(dbUrl, { WORKERS: '2' });
    const faulty = { url: () => dbUrl, ...servers, start };
    const figures = await retryThroughFaults(context, faulty, WRITES, LIFE);
    const { 'faults of the store': storeFaults, ...others } = figures;
    assert.equal(storeFaults > 0, servers !== undefined);
    for (const [name, count] of Object.entries(others)) assert.ok(count > 0, name);
  });
}
