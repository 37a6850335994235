// What the log of changes has, whichever program writes: on every store.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

const ROWS = {
  SQLite: 'select book, last, title, author, year from book_log where book > 0 order by number',
  PostgreSQL: `select book::integer, last::integer, title, author, year::integer from book_log where book > 0 order by xid, number`,
};

for (const store of STORES) {
  describe(`the log of changes on ${store.name}`, () => {
    test('it has each change with the book as it was before, and new books as they were stored together', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const sql = (statement: string) => executeOn(dbUrl, statement);
      await client.create({ title: 'A' });
      await client.request('POST', '/books', { body: [{ title: 'B' }, { title: 'C' }] });
      await sql("insert into books (title) values ('D')");
      await sql("update books set title = 'D, changed' where title = 'D'"); // noted as new before
      await sql("insert into books (title, author) values ('E', 'x')");
      await sql("delete from books where title = 'E'");
      await client.request('PUT', '/book/1', { body: { year: 5 } });
      await client.request('DELETE', '/book/2');
      await sql('update books set id = 6 where id = 3');
      await sql('delete from books where id = 6');
      const rows = await sql(ROWS[store.name]);
      assert.deepEqual(rows.map(Object.values), [
        [1, 1, null, null, null],
        [2, 3, null, null, null],
        [4, 4, null, null, null],
        [4, 4, 'D', '', 0],
        [5, 5, null, null, null],
        [5, 5, 'E', 'x', 0],
        [1, 1, 'A', '', 0],
        [2, 2, 'B', '', 0],
        [3, 3, 'C', '', 0],
        [6, 6, null, null, null],
        [6, 6, 'C', '', 0],
      ]);
    });
  });
}
