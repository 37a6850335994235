// The bulk interface of the stores: the same promises and the same bytes from both.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type BulkStore, booksOf } from '../../src/stores/bulk.ts';
import { readDbUrl } from '../../src/stores/open.ts';
import { TIMES } from '../../src/times.ts';
import { STORES, startTestService } from '../support/service.ts';

const CONTROLS = String.fromCharCode(...Array.from({ length: 31 }, (_, index) => index + 1));
const BOOKS = [
  { id: 3, title: 'Emma', author: 'Jane Austen', year: 1815 },
  { id: 7, title: 'a "quote", a comma;\r\na line\n', author: '', year: -750 },
  { id: 8, title: `${CONTROLS}\u007f\u0080\u2028\u2029/\\`, author: '\\.', year: 9007199254740991 },
  { id: 900, title: '数学 🙂 é', author: '\ufeffBOM', year: -9007199254740991 },
];

for (const { name, freshUrl } of STORES) {
  describe(`the bulk interface on ${name}`, { concurrency: 2 }, () => {
    test('a store that was never written to does not exist, and reading does not create it', async () => {
      const at = await readDbUrl(await freshUrl());
      assert.equal(await at.openBulk('read', TIMES), undefined);
      assert.equal(await at.openBulk('read', TIMES), undefined);
    });

    test('books come back as they were stored, ascending by id, as values and as the same text', async () => {
      await using store = await open(await freshUrl());
      await store.insertWithIds(BOOKS.toReversed());
      await store.inSnapshot(async () => {
        assert.equal(await store.count(), 4);
        assert.deepEqual(await flat(booksOf(store)), BOOKS);
        const csv = [
          '3,"Emma","Jane Austen",1815\n',
          '7,"a ""quote"", a comma;\r\na line\n","",-750\n',
          `8,"${CONTROLS.replace('"', '""')}\u007f\u0080\u2028\u2029/\\","\\.",9007199254740991\n`,
          '900,"数学 🙂 é","\ufeffBOM",-9007199254740991\n',
        ];
        assert.equal(await textOf(store, 'csv'), csv.join(''));
        const jsonl = await textOf(store, 'jsonl');
        assert.equal(jsonl, BOOKS.map((book) => `${JSON.stringify(book)}\n`).join(''));
      });
      assert.deepEqual(
        new Set((await store.find([7, 3, 4])).map((book) => ({ ...book }))),
        new Set(BOOKS.slice(0, 2)),
      );
    });

    test('rule 12: new ids follow the highest one ever given, in the service as well', async (context) => {
      const url = await freshUrl();
      const service = await startTestService(url);
      context.after(() => service.stop());
      await using store = await open(url);
      await store.insertWithIds(BOOKS);
      await store.reserveIdsThrough(1000);
      await store.reserveIdsThrough(5); // never set back
      assert.equal(await store.lastId(), 1000);
      await store.insert([{ title: 'next', author: '', year: 0 }]);
      assert.equal((await service.client.create({ title: 'after' })).id, 1002);
      await store.removeAll();
      assert.equal(await store.count(), 0);
      assert.equal(await store.lastId(), 1002);
    });

    test('nothing of a batch with an existing id is stored', async () => {
      await using store = await open(await freshUrl());
      await store.insertWithIds(BOOKS.slice(0, 1));
      await assert.rejects(store.insertWithIds(BOOKS.toReversed()));
      await store.inSnapshot(async () => assert.deepEqual(await flat(booksOf(store)), BOOKS.slice(0, 1)));
    });

    test('a transaction happens as a whole or not at all', async () => {
      const url = await freshUrl();
      await using store = await open(url);
      await using other = await open(url);
      const failure = new Error('of the work');
      const work = store.inTransaction(async () => {
        await store.insertWithIds(BOOKS);
        assert.equal(await store.count(), 4);
        assert.equal(await other.count(), 0);
        throw failure;
      });
      await assert.rejects(work, failure);
      assert.equal(await store.count(), 0);
      await store.inTransaction(() => store.insertWithIds(BOOKS));
      assert.equal(await other.count(), 4);
    });

    test('a snapshot does not change while others write, across batches and chunks', async () => {
      const url = await freshUrl();
      await using store = await open(url);
      await using other = await open(url);
      const many = Array.from({ length: 12_345 }, (_, index) => ({
        title: `t${index}`,
        author: 'a',
        year: index,
      }));
      await store.insert(many);
      await store.inSnapshot(async () => {
        assert.equal(await store.count(), 12_345);
        await other.removeAll();
        const books = await flat(booksOf(store));
        assert.deepEqual(
          books.map(({ title }) => title),
          many.map(({ title }) => title),
        );
        const lines = (await textOf(store, 'csv')).split('\n');
        assert.deepEqual(
          [lines.length, lines[0], lines[12_344]],
          [12_346, '1,"t0","a",0', '12345,"t12344","a",12344'],
        );
      });
      assert.equal(await store.count(), 0);
    });

    test('a store whose text was read half way can be closed', async () => {
      await using store = await open(await freshUrl());
      await store.insert(
        Array.from({ length: 5000 }, () => ({ title: 'x'.repeat(500), author: '', year: 0 })),
      );
      const stop = new Error('enough');
      const reading = store.inSnapshot(async () => {
        for await (const _ of store.text('jsonl')) throw stop;
      });
      await assert.rejects(reading, stop);
    });
  });
}

async function open(url: string): Promise<BulkStore & AsyncDisposable> {
  const store = await (await readDbUrl(url)).openBulk('write', TIMES);
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

async function flat<Item>(batches: AsyncIterable<readonly Item[]>): Promise<Item[]> {
  return (await Array.fromAsync(batches)).flat();
}

async function textOf(store: BulkStore, format: 'csv' | 'jsonl'): Promise<string> {
  const chunks = await Array.fromAsync(store.text(format), (chunk) => Buffer.from(chunk));
  return Buffer.concat(chunks).toString();
}
