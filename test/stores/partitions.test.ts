// PostgreSQL with the table of books in partitions, as deploy/partition-books.sql makes it: what differs from a single table.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { createTogether, raceDeletes, updateInPairs } from '../../conformance/racing.ts';
import type { Book } from '../../conformance/service.ts';
import { partitioned } from '../contract/targets.ts';
import { assertIndexCorrect } from '../support/book-index.ts';
import { booksOf, manyBooks } from '../support/books.ts';
import type { Client } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { execute, freshDatabase } from '../support/postgres.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import { verifiedAt } from '../support/verified.ts';

describe('PostgreSQL with the books in partitions', { concurrency: true }, () => {
  test('rule 13: a list is ascending by id, and its books are in all partitions', async (context) => {
    const { client, dbUrl } = await start(context, await partitioned());
    const body = Array.from({ length: 1000 }, (_, year) => ({ title: `Book ${year}`, year }));
    assert.equal((await client.request('POST', '/books', { body })).status, 201);
    const ids = (await client.list()).map(({ id }) => id);
    assert.deepEqual(
      ids,
      ids.toSorted((one, other) => one - other),
    );
    assert.equal(ids.length, 1000);
    const sizes = await execute<{ books: string }>(
      dbUrl,
      'select count(*) as books from books group by tableoid',
    );
    assert.equal(sizes.length, 16);
  });

  test('rule 12: books that another program inserted with their ids keep them, and new ones get others', async (context) => {
    const { client, dbUrl } = await start(context, await partitioned());
    await execute(dbUrl, "insert into books (id, title) select n, 'theirs' from generate_series(1, 20) as n");
    assert.equal((await client.create({ title: 'ours' })).id, 21);
    const { data } = await client.request('POST', '/books', { body: [{}, {}] });
    assert.deepEqual(data, [22, 23]);
  });

  test('rules F6 and F11: a book is found by its new id after another program has changed it', async (context) => {
    const { client, dbUrl } = await start(context, await partitioned());
    const { id } = await client.create({ title: 'wanderer' });
    for (const next of [id + 1000, id + 2000, id + 3000]) {
      await execute(dbUrl, `update books set id = ${next}`);
      const { data, headers } = await client.request('GET', '/books?title=wanderer');
      assert.deepEqual([data[0]?.id, data.length, headers.get('x-total-count')], [next, 1, '1']);
    }
    await assertIndexCorrect(dbUrl);
  });

  test('rules 9, 11 and 12: two services lose nothing, and do nothing twice', async (context) => {
    const dbUrl = await partitioned();
    const [one, other] = [await start(context, dbUrl), await start(context, dbUrl)];
    const both = [verifiedAt(one), verifiedAt(other)] as const;
    context.after(() => both.map((verified) => verified.close()));
    await Promise.all(both.map((verified) => verified.logIn()));
    await createTogether(both, 8);
    await updateInPairs(both, 10, 3);
    await raceDeletes(both);
  });

  test('a table to which somebody has added something is refused by its name, and stays as it was', async (context) => {
    const { client, dbUrl } = await start(context, await freshDatabase());
    await client.create({ title: 'Emma' });
    const additions = [
      ['alter table books add column shelf text', 'alter table books drop column shelf', 'column shelf'],
      ['create index titles on books (title)', 'drop index titles', 'index titles'],
      [
        "alter table books add constraint named check (title <> '')",
        'alter table books drop constraint named',
        'constraint named',
      ],
      ['create policy mine on books', 'drop policy mine on books', 'policy mine'],
      ['grant select, insert on books to public', 'revoke all on books from public', 'rights of other roles'],
      ['create publication mine for table books', 'drop publication mine', 'publication mine'],
    ] as const;
    for (const [add, drop, name] of additions) {
      await execute(dbUrl, add);
      await assert.rejects(partitioned(dbUrl), { message: new RegExp(`would be lost: ${name}\\.$`) });
      await execute(dbUrl, drop);
    }
    await partitioned(dbUrl);
    assert.equal((await client.list()).length, 1);
  });

  describe('a catalogue that has books', { concurrency: 1 }, () => {
    const books = manyBooks(2000);
    let dbUrl: string;
    let folder: string;

    before(async () => {
      folder = temporaryFolder();
      writeFileSync(join(folder, 'books.jsonl'), books.map((book) => `${JSON.stringify(book)}\n`).join(''));
      dbUrl = await freshDatabase();
      const service = await startTestService(dbUrl); // makes the index as well
      await service.stop();
      const { code } = await runCommand(['import', join(folder, 'books.jsonl'), '--ids', 'keep'], {
        DB_URL: dbUrl,
      });
      assert.equal(code, 0);
      await partitioned(dbUrl);
    });
    after(async () => {
      const [table] = await execute<{ relkind: string }>(
        dbUrl,
        "select relkind from pg_class where relname = 'books'",
      );
      assert.equal(table?.relkind, 'p');
    });

    test('rules 12, 13 and F11: keeps its books and ids, and finds them', async (context) => {
      assert.deepEqual(await booksOf(dbUrl), books);
      const indexed = await runCommand(['index'], { DB_URL: dbUrl });
      assert.equal(indexed.code, 0, indexed.stderr);
      const { client } = await start(context, dbUrl);
      assert.deepEqual(await client.list(), books);
      assert.deepEqual(await found(client, 'year=700'), [701]);
      assert.equal((await client.create({ title: 'next' })).id, 2001);
      assert.equal((await client.request('DELETE', '/book/2001')).status, 200);
    });

    test('import skips what is there, export and copy have every book', async () => {
      const again = await runCommand(['import', join(folder, 'books.jsonl'), '--ids', 'new'], {
        DB_URL: dbUrl,
      });
      assert.equal(again.code, 0, again.stderr);
      const exported = join(folder, 'again.jsonl');
      assert.equal((await runCommand(['export', exported], { DB_URL: dbUrl })).code, 0);
      assert.equal(readFileSync(exported, 'utf8'), readFileSync(join(folder, 'books.jsonl'), 'utf8'));
      const copy = await partitioned();
      const copied = await runCommand(['copy', dbUrl, copy], {});
      assert.equal(copied.code, 0, copied.stderr);
      assert.deepEqual(await booksOf(copy), books);
    });

    test('rule 27: a column that a later version adds reaches every partition', async (context) => {
      const older = await partitioned();
      await execute(older, 'alter table books drop column year');
      const { client } = await start(context, older);
      assert.equal((await client.create({ title: 'Emma', year: 1815 })).year, 1815);
      assert.deepEqual((await client.list())[0], { id: 1, title: 'Emma', author: '', year: 1815 });
    });
  });
});

async function start(context: TestContext, dbUrl: string) {
  const service = await startTestService(dbUrl);
  context.after(() => service.stop());
  return service;
}

async function found(client: Client, query: string): Promise<number[]> {
  const { status, data } = await client.request('GET', `/books?${query}`);
  assert.equal(status, 200, query);
  return (data as Book[]).map(({ id }) => id);
}
