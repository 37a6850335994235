// The contract, over a socket, on every store: every rule of the conformance kit (conformance), which can be read as the
// specification. The other files of this folder have what takes a store, several processes or random cases.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { perform } from '../../conformance/checking.ts';
import { FINDING } from '../../conformance/finding.ts';
import { titleOf } from '../../conformance/rule.ts';
import { RULES } from '../../conformance/rules.ts';
import type { Service } from '../../conformance/service.ts';
import {
  type RunningService,
  STORES,
  startTestService,
  TESTED_FIND,
  THROUGH_PAGE,
} from '../support/service.ts';
import { verifiedAt } from '../support/verified.ts';

/** Without an index nothing is found. */
const rules = process.env[TESTED_FIND] === 'off' ? RULES.filter((rule) => !FINDING.includes(rule)) : RULES;

for (const store of STORES) {
  describe(`contract on ${store.name}`, () => {
    let service: RunningService;
    let verified: Service;

    before(async () => {
      service = await startTestService(await store.freshUrl());
      verified = verifiedAt(service);
    });
    after(async () => {
      verified?.close();
      await service?.stop();
    });

    for (const rule of rules) test(titleOf(rule), () => perform(rule, verified));

    test('rule 5: no body has changed the prototype of objects in the process of the service', () => {
      assert.equal(({} as { polluted?: boolean }).polluted, undefined);
    });

    test('L1, rule 13: [] without books', async () => {
      const empty = await startTestService(await store.freshUrl());
      try {
        const { status, message, data } = await empty.client.request('GET', '/books');
        assert.deepEqual([status, message, data], [200, 'Books retrieved successfully', []]);
      } finally {
        await empty.stop();
      }
    });

    // On the page's port it is the page.
    if (process.env[THROUGH_PAGE] === undefined) {
      test('rule 20: the path / is 404', async () => {
        for (const method of ['GET', 'POST', 'DELETE']) {
          const { status, message } = await service.client.request(method, '/', { token: null });
          assert.deepEqual([status, message], [404, 'Not found'], method);
        }
      });
    }
  });
}
