// The order in which the page takes back changes and deletions, in Node.js.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { provideDocument } from '../orders/document.ts';
import { pathTo } from '../support/repository.ts';

provideDocument();
// By its path, and so without its types, which need those of a browser.
const { Undo } = await import(pathTo('page/changes/undo.ts'));

test('the latest change is taken back first, and each once', async () => {
  const undo = new Undo();
  const done: string[] = [];
  const entries = ['first', 'second', 'third'].map((name) => () => void done.push(name));
  for (const entry of entries) undo.push(entry);
  undo.runThis(entries[1]);
  for (let time = 0; time < 3; time += 1) await undo.run();
  assert.deepEqual(done, ['second', 'third', 'first']);
});

test('a change waits for the one that is being taken back', async () => {
  const undo = new Undo();
  const { promise, resolve } = Promise.withResolvers<void>();
  let isEarlierDone = false;
  undo.push(() => {
    isEarlierDone = true;
  });
  undo.push(() => promise);
  const latest = undo.run();
  await undo.run();
  assert.equal(isEarlierDone, false);
  resolve();
  await latest;
  await undo.run();
  assert.equal(isEarlierDone, true);
});
