// The contract, over a socket, on both stores: the rules of the conformance kit. test/nightly/contract.test.ts has the rules
// that take seconds, variants.test.ts beside it the variants of the service. The other files of this folder have what takes a
// store, several processes or random cases.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAST, SHELF } from '../support/scale.ts';
import { SQLITE, startTestService } from '../support/service.ts';
import { takesSeconds, testTargets } from './keeping.ts';
import { STORES_ALONE } from './targets.ts';

/** After each change, the core of the rules. */
const isFast = process.env[SHELF] === FAST;

testTargets(STORES_ALONE, (rule) => (isFast ? rule.level === 'core' : !takesSeconds(rule)));

test('rule 5: no body has changed the prototype of objects in the process of the service', () => {
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

// On the port of the page it is the page.
test('rule 20: the path / gets 404', async () => {
  const { client } = await startTestService(await SQLITE.freshUrl());
  for (const method of ['GET', 'POST', 'DELETE']) {
    const { status, message } = await client.request(method, '/', { token: null });
    assert.deepEqual([status, message], [404, 'Not found'], method);
  }
});
