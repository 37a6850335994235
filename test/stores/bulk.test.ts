// What an export or a copy has for others that write meanwhile, and an import into SQLite leaves them. What a store gives to an
// export and takes from a copy is tested in test/transfer.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { parseBooks } from '../../src/books/line.ts';
import { readDbUrl } from '../../src/stores/open.ts';
import { TIMES } from '../../src/times.ts';
import { importRows } from '../support/importing.ts';
import { fileOf, SQLITE, STORES } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';

for (const { name, freshUrl } of STORES)
  test(`a snapshot on ${name} does not change while others write, across batches and chunks`, async () => {
    const at = await readDbUrl(await freshUrl());
    const [store, other] = [await at.openBulk('write', TIMES), await at.openBulk('write', TIMES)];
    const titles = Array.from({ length: 1100 }, (_, index) => `t${index}`);
    const books = titles.map((title, at) => ({ id: at + 1, title, author: '', year: 0 }));
    await store.inTransaction(() => store.insertWithIds([books]));
    await store.inSnapshot(async () => {
      assert.equal(await store.count(), 1100);
      await other.inTransaction(() => other.removeAll());
      const kept = (await Array.fromAsync(parseBooks(store.text(), '\n'))).flat().map(({ title }) => title);
      assert.deepEqual(kept, titles);
    });
    assert.equal(await store.count(), 0);
    for (const one of [store, other]) await one.close();
  });

const ROWS = Array.from({ length: 2500 }, (_, index) => ({ title: `t${index}`, author: '', year: 0 }));

test('an import into SQLite stores as many rows at once as time allows, and then other programs write', async () => {
  assert.deepEqual([TIMES.sqlite.bulkTransaction, TIMES.sqlite.bulkPause], [25, 2]);
  const url = await SQLITE.freshUrl();
  const times = timesWith({ sqlite: { bulkTransaction: 0 } });
  const store = await (await readDbUrl(url)).openBulk('write', times);
  const other = new DatabaseSync(fileOf(url), { timeout: 0 });
  let [written, isOver] = [0, false];
  const write = async () => {
    const insert = other.prepare("insert into books (title) values ('other')");
    for (; !isOver; await setImmediate()) written += Number(insert.run().changes);
  };
  const steps: number[] = [];
  let before = 0;
  const writing = write();
  const onStored = (_: number, books: number) => {
    assert.ok(written > before, `after ${steps.length} transactions`);
    before = written;
    steps.push(books);
  };
  try {
    await importRows(store, ROWS, { onStored });
  } finally {
    isOver = true;
    await writing;
    other.close();
    await store.close();
  }
  assert.deepEqual(steps, [500, 1000, 1500, 2000, 2500]);
});

for (const skipsEqual of [true, false])
  test(`an import into SQLite that is interrupted is completed under its number, if equal rows are ${skipsEqual ? 'skipped' : 'added'}`, async () => {
    const times = timesWith({ sqlite: { bulkTransaction: 0, importPause: 0 } });
    const url = await SQLITE.freshUrl();
    const store = await (await readDbUrl(url)).openBulk('write', times);
    const stop = new AbortController();
    const numbers = new Set<number>();
    const interrupted = importRows(store, ROWS, {
      skipsEqual,
      signal: stop.signal,
      onStored(number, books) {
        numbers.add(number);
        if (books === 1000) stop.abort();
      },
    });
    await assert.rejects(interrupted, { name: 'AbortError' });
    assert.equal(await store.count(), 1000);
    await executeOn(url, 'update book_imports set seen = 0'); // as if its process had died long ago
    await importRows(store, ROWS, { skipsEqual, onStored: (number) => numbers.add(number) });
    assert.deepEqual([await store.count(), numbers.size], [2500, 1]);
    await importRows(store, ROWS, { skipsEqual, onStored: (number) => numbers.add(number) });
    assert.deepEqual([await store.count(), numbers.size], skipsEqual ? [2500, 1] : [5000, 2]); // that one was complete
    await importRows(store, ROWS.slice(0, 1), { skipsEqual: false, fingerprint: 'other' });
    assert.equal(await store.count(), skipsEqual ? 2501 : 5001);
    await store.close();
  });
