// After which errors the page gives up what somebody wanted to store, and after which it tries again, in Node.js.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CatalogueError } from '../../client/src/errors.ts';
import { pathTo } from '../support/repository.ts';

// By its path, and so without its types, which need those of a browser.
const { isRefusal } = await import(pathTo('page/catalogue/refusal.ts'));

test('only what the catalogue itself refuses is given up, not what a proxy answers in its place', () => {
  for (const status of [400, 403, 404, 413]) {
    assert.equal(isRefusal(new CatalogueError('no', { status })), true, String(status));
    assert.equal(isRefusal(new CatalogueError('no', { status, isForeign: true })), false, String(status));
  }
  for (const status of [undefined, 412, 429, 500, 503])
    assert.equal(isRefusal(new CatalogueError('later', { status })), false, String(status));
  assert.equal(isRefusal(new TypeError('fetch failed')), false);
});
