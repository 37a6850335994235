// The bulk interface of the stores: the same promises and the same bytes from both.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Book, BookFields } from '../../src/books/book.ts';
import { type BulkStore, booksOf } from '../../src/stores/bulk.ts';
import { readDbUrl } from '../../src/stores/open.ts';
import { TIMES } from '../../src/times.ts';
import { COORDINATOR } from '../support/citus.ts';
import { fileOf, SQLITE, STORES } from '../support/service.ts';
import { timesWith } from '../support/times.ts';

const CONTROLS = String.fromCharCode(...Array.from({ length: 31 }, (_, index) => index + 1));
const BOOKS = [
  { id: 3, title: 'Emma', author: 'Jane Austen', year: 1815 },
  { id: 7, title: 'a "quote", a comma;\r\na line\n', author: '', year: -750 },
  { id: 8, title: `${CONTROLS}\u007f\u0080\u2028\u2029/\\`, author: '\\.', year: 9007199254740991 },
  { id: 900, title: '数学 🙂 é', author: '\ufeffBOM', year: -9007199254740991 },
];
const CSV = [
  '3,"Emma","Jane Austen",1815\n',
  '7,"a ""quote"", a comma;\r\na line\n","",-750\n',
  `8,"${CONTROLS.replace('"', '""')}\u007f\u0080\u2028\u2029/\\","\\.",9007199254740991\n`,
  '900,"数学 🙂 é","\ufeffBOM",-9007199254740991\n',
].join('');

for (const { name, freshUrl } of STORES) {
  describe(`the bulk interface on ${name}`, () => {
    let at: Awaited<ReturnType<typeof readDbUrl>>;
    let store: BulkStore;
    let other: BulkStore;
    before(async () => {
      at = await readDbUrl(await freshUrl());
      const times = process.env[COORDINATOR] === undefined ? ['first', 'second'] : []; // Citus has its table already
      for (const time of times) // reading does not create it
        assert.equal(await at.openBulk('read', TIMES), undefined, `the ${time} time`);
      store = await at.openBulk('write', TIMES);
      other = await at.openBulk('write', TIMES);
    });
    beforeEach(() => store.inTransaction(() => store.removeAll()));
    after(async () => {
      await store.close();
      await other.close();
    });

    const insertWithIds = (books: readonly Book[]) => store.inTransaction(() => store.insertWithIds([books]));
    const insert = (books: readonly BookFields[]) => store.inTransaction(() => store.insert([books]));
    const stored = async () => (await Array.fromAsync(booksOf(store))).flat();
    const textOf = async (format: 'csv' | 'jsonl') =>
      Buffer.concat(await Array.fromAsync(store.text(format), (chunk) => Buffer.from(chunk))).toString();

    test('books come back as they were stored, ascending by id, as values and as the same text', async () => {
      await insertWithIds(BOOKS.toReversed());
      await store.inSnapshot(async () => {
        assert.deepEqual(await stored(), BOOKS);
        assert.equal(await textOf('csv'), CSV);
        assert.equal(await textOf('jsonl'), BOOKS.map((book) => `${JSON.stringify(book)}\n`).join(''));
      });
      const found = (await store.find([7, 3, 4])).map((book) => ({ ...book }));
      assert.deepEqual(new Set(found), new Set(BOOKS.slice(0, 2)));
    });

    test('rule 12: new ids follow the highest one ever given', async () => {
      const last = 1000 + (await store.lastId());
      for (const through of [last, 5]) // never set back
        await store.inTransaction(() => store.reserveIdsThrough(through));
      assert.equal(await store.lastId(), last);
      await insert([{ title: 'next', author: '', year: 0 }]);
      await store.inSnapshot(async () => assert.equal((await stored())[0]?.id, last + 1));
      await store.inTransaction(() => store.removeAll());
      assert.deepEqual([await store.count(), await store.lastId()], [0, last + 1]);
    });

    test('nothing of a batch with an existing id is stored', async () => {
      await insertWithIds(BOOKS.slice(0, 1));
      await assert.rejects(insertWithIds(BOOKS.toReversed()));
      assert.equal(await other.count(), 1);
    });

    test('a transaction happens as a whole or not at all', async () => {
      const failure = new Error('of the work');
      const work = store.inTransaction(async () => {
        await store.insertWithIds([BOOKS]);
        assert.deepEqual([await store.count(), await other.count()], [4, 0]);
        throw failure;
      });
      await assert.rejects(work, failure);
      assert.equal(await store.count(), 0);
      await insertWithIds(BOOKS);
      assert.equal(await other.count(), 4);
    });

    test('a snapshot does not change while others write, across batches and chunks', async () => {
      const titles = Array.from({ length: 1100 }, (_, index) => `t${index}`);
      await insert(titles.map((title) => ({ title, author: 'a', year: 0 })));
      await store.inSnapshot(async () => {
        assert.equal(await store.count(), 1100);
        await other.inTransaction(() => other.removeAll());
        const kept = (await stored()).map(({ title }) => title);
        assert.deepEqual(kept, titles);
        const lines = (await textOf('csv')).split('\n').map((line) => line.split(',')[1] ?? '');
        assert.deepEqual(lines, [...titles.map((title) => `"${title}"`), '']);
      });
      assert.equal(await store.count(), 0);
    });

    test('a store whose text was read half way can be closed', async () => {
      const book = { title: 'x'.repeat(100_000), author: '', year: 0 };
      await insert(Array(30).fill(book)); // more than is buffered
      const third = await at.openBulk('write', TIMES);
      const stop = new Error('enough');
      const reading = third.inSnapshot(async () => {
        for await (const _ of third.text('jsonl')) throw stop;
      });
      await assert.rejects(reading, stop);
      await third.close();
    });
  });
}

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
