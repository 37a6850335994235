// What an export or a copy has for others that write meanwhile, and an import into SQLite leaves them. What a store gives to an
// export and takes from a copy is tested in test/transfer.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { booksOf } from '../../src/stores/bulk.ts';
import { readDbUrl } from '../../src/stores/open.ts';
import { TIMES } from '../../src/times.ts';
import { fileOf, SQLITE, STORES } from '../support/service.ts';
import { timesWith } from '../support/times.ts';

for (const { name, freshUrl } of STORES)
  test(`a snapshot on ${name} does not change while others write, across batches and chunks`, async () => {
    const at = await readDbUrl(await freshUrl());
    const [store, other] = [await at.openBulk('write', TIMES), await at.openBulk('write', TIMES)];
    const titles = Array.from({ length: 1100 }, (_, index) => `t${index}`);
    const books = titles.map((title) => ({ title, author: '', year: 0 }));
    await store.inTransaction(() => store.insert([books]));
    await store.inSnapshot(async () => {
      assert.equal(await store.count(), 1100);
      await other.inTransaction(() => other.removeAll());
      const kept = (await Array.fromAsync(booksOf(store))).flat().map(({ title }) => title);
      assert.deepEqual(kept, titles);
    });
    assert.equal(await store.count(), 0);
    for (const one of [store, other]) await one.close();
  });

test('an import into SQLite stores as many rows at once as time allows, and then other programs write', async () => {
  assert.deepEqual([TIMES.sqlite.bulkTransaction, TIMES.sqlite.bulkPause], [50, 5]);
  const url = await SQLITE.freshUrl();
  const times = timesWith({ sqlite: { bulkTransaction: 0 } });
  const store = await (await readDbUrl(url)).openBulk('write', times);
  const other = new DatabaseSync(fileOf(url), { timeout: 0 });
  let [written, isOver] = [0, false];
  const write = async () => {
    const insert = other.prepare("insert into books (title) values ('other')");
    for (; !isOver; await setImmediate()) written += Number(insert.run().changes);
  };
  const rows = Array.from({ length: 2500 }, (_, index) => ({ title: `t${index}`, author: '', year: 0 }));
  const steps: number[] = [];
  let before = 0;
  const writing = write();
  try {
    for await (const { count } of store.insertNew([rows], false)) {
      assert.ok(written > before, `after ${steps.length} transactions`);
      before = written;
      steps.push(count);
    }
  } finally {
    isOver = true;
    await writing;
    other.close();
    await store.close();
  }
  assert.deepEqual(steps, [500, 500, 500, 500, 500]);
});
