// PostgreSQL with the table of books in partitions, as deploy/partition-books.sql makes it: what differs from a single table. The
// whole contract is tested on it in test/nightly.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { partitioned } from '../contract/targets.ts';
import { assertIndexCorrect, indexAll } from '../support/book-index.ts';
import { booksOf, fill, manyBooks } from '../support/books.ts';
import { runCommand } from '../support/command.ts';
import { execute, freshDatabase } from '../support/postgres.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';

describe('PostgreSQL with the books in partitions', { concurrency: true }, () => {
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

  test('a table to which somebody has added something is refused by its name, and stays as it was', async (context) => {
    const { client, dbUrl } = await start(context, await freshDatabase());
    await client.create({ title: 'Emma' });
    for (const [add, drop, name] of [
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
    ] as const) {
      await execute(dbUrl, add);
      await assert.rejects(partitioned(dbUrl), { message: new RegExp(`would be lost: ${name}\\.$`) });
      await execute(dbUrl, drop);
    }
    await partitioned(dbUrl);
    assert.equal((await client.list()).length, 1);
  });

  test('rules 12, 13 and F11: a catalogue that has books keeps them and their ids, in all partitions', async (context) => {
    const books = manyBooks(2000);
    const dbUrl = await freshDatabase();
    await (await startTestService(dbUrl)).stop(); // makes the index as well
    await fill(dbUrl, books);
    await partitioned(dbUrl);
    const sizes = await execute(dbUrl, 'select count(*) as books from books group by tableoid');
    assert.equal(sizes.length, 16);
    await indexAll(dbUrl);
    const { client } = await start(context, dbUrl);
    assert.deepEqual(await client.list(), books);
    assert.equal((await client.request('GET', '/books?year=700')).data[0].id, 701);

    const exported = join(temporaryFolder(), 'books.jsonl');
    assert.equal((await runCommand(['export', exported], { DB_URL: dbUrl })).code, 0);
    assert.equal(readFileSync(exported, 'utf8'), books.map((book) => `${JSON.stringify(book)}\n`).join(''));
    const again = await runCommand(['import', exported, '--ids', 'new'], { DB_URL: dbUrl });
    assert.equal(again.code, 0, again.stderr);
    assert.equal((await client.create({ title: 'next' })).id, 2001); // all that was imported was there
    const copy = await partitioned();
    assert.equal((await runCommand(['copy', dbUrl, copy], {})).code, 0);
    assert.deepEqual((await booksOf(copy)).slice(0, -1), books);
  });

  test('rule 27: a column that a later version adds reaches every partition', async (context) => {
    const older = await partitioned();
    await execute(older, 'alter table books drop column year');
    const { client } = await start(context, older);
    const book = { id: 1, title: 'Emma', author: '', year: 1815 };
    assert.deepEqual(await client.create({ title: 'Emma', year: 1815 }), book);
    assert.deepEqual(await client.list(), [book]);
  });
});

async function start(context: TestContext, dbUrl: string) {
  const service = await startTestService(dbUrl);
  context.after(() => service.stop());
  return service;
}
