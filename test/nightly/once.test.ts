// Keys age by the clock, whichever process uses them. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds of a step in the age of keys, and as many steps as tell one process from two. */
const STEP = 300;
const STEPS = 5;

for (const store of STORES) {
  test(`I4: keys that two processes use age by a step in the time of a step, on ${store.name}`, async () => {
    const dbUrl = await store.freshUrl();
    const times = timesWith({ keys: { step: STEP } });
    const services = [
      await startTestService(dbUrl, {}, undefined, times),
      await startTestService(dbUrl, {}, undefined, times),
    ] as const;
    try {
      const began = performance.now();
      let sent = 0;
      const time = async () => {
        sent += 1;
        const headers = { 'idempotency-key': `age-${sent}` };
        const { client } = services[sent % 2 === 0 ? 0 : 1];
        assert.equal((await client.request('POST', '/book', { body: {}, headers })).status, 201);
        const rows = await executeOn(dbUrl, "select made_at from book_requests where key = 'the time'");
        return Number(rows[0]?.made_at);
      };
      const first = await time();
      await waitUntil(async () => {
        const aged = (await time()) - first;
        const passed = performance.now() - began;
        assert.ok(aged <= passed, `${aged} ms in ${passed} ms`);
        return aged > 0 && passed > STEPS * STEP;
      });
    } finally {
      for (const service of services) await service.stop();
    }
  });
}
