// The contract, over a socket, on every target of targets.ts: the rules of the conformance kit (conformance), which can be
// read as the specification. The other files of this folder have what takes a store, several processes or random cases.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { perform } from '../../conformance/checking.ts';
import { titleOf } from '../../conformance/rule.ts';
import type { Service } from '../../conformance/service.ts';
import { SQLITE, startTestService } from '../support/service.ts';
import { verifiedAt } from '../support/verified.ts';
import { CHOSEN } from './targets.ts';

/** Targets that are checked at a time: some rules only wait. */
const AT_ONCE = 4;

describe('the contract', { concurrency: AT_ONCE }, () => {
  for (const { name, start, rules } of CHOSEN) {
    describe(`contract on ${name}`, { concurrency: 1 }, () => {
      let stop: () => Promise<void>;
      let verified: Service;

      before(async () => {
        const started = await start();
        ({ stop } = started);
        verified = verifiedAt(started);
      });
      after(async () => {
        verified?.close();
        await stop?.();
      });

      test('L1, rule 13: [] without books', async () => {
        await verified.logIn();
        const { status, message, data } = await verified.request('GET', '/books');
        assert.deepEqual([status, message, data], [200, 'Books retrieved successfully', []]);
      });

      for (const rule of rules) test(titleOf(rule), () => perform(rule, verified));
    });
  }
});

test('rule 5: no body has changed the prototype of objects in the process of the service', () => {
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

// On the port of the page it is the page.
test('rule 20: the path / gets 404', async (context) => {
  const { client, stop } = await startTestService(await SQLITE.freshUrl());
  context.after(stop);
  for (const method of ['GET', 'POST', 'DELETE']) {
    const { status, message } = await client.request(method, '/', { token: null });
    assert.deepEqual([status, message], [404, 'Not found'], method);
  }
});
