// What the log of changes has, whichever program writes, and who follows it: on every store. changes.test.ts has the other rules of
// followers; test/nightly/followers.test.ts has many of them at once, through deaths.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { linksOf } from '../../conformance/answers.ts';
import type { Client } from '../support/client.ts';
import { listen } from '../support/ports.ts';
import { PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { POSTGRES, SQLITE, STORES, startTestService } from '../support/service.ts';
import { executeOn, logPruned, runOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';

const ROWS = {
  SQLite: 'select book, last, title, author, year from book_log where book > 0 order by number',
  PostgreSQL: `select book::integer, last::integer, title, author, year::integer from book_log where book > 0 order by xid, number`,
};

for (const store of STORES) {
  describe(`the log of changes on ${store.name}`, () => {
    test('it has each change with the book as it was before, and new books as they were stored together', async () => {
      const { client, dbUrl } = await startTestService(await store.freshUrl());
      const sql = (statement: string) => executeOn(dbUrl, statement);
      await client.create({ title: 'A' });
      await client.request('POST', '/books', { body: [{ title: 'B' }, { title: 'C' }] });
      await sql("insert into books (title) values ('D')");
      await sql("update books set title = 'D, changed' where title = 'D'"); // noted as new before
      await sql("insert into books (title, author) values ('E', 'x')");
      await sql("delete from books where title = 'E'");
      await client.request('PUT', '/book/1', { body: { year: 5 } });
      await client.request('PUT', '/book/1', { body: { year: 5 } }); // alters nothing
      await sql('update books set title = title');
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

    test('rules H4 and 9: it has each change of a book that is changed at the same time by many', async () => {
      const { client } = await startTestService(await store.freshUrl());
      await client.create({});
      const years = Array.from({ length: 64 }, (_, index) => index + 1);
      const answers = years.map((year) =>
        client.request('PUT', '/book/1', { body: { year }, headers: year % 2 ? {} : { 'if-match': '*' } }),
      );
      for (const [index, { status, data }] of (await Promise.all(answers)).entries())
        assert.deepEqual([status, data.year], [200, index + 1]);
      const { data } = await client.request('GET', '/book/1/history?limit=100');
      const states = (data as { book: { year: number } }[]).map(({ book }) => book.year);
      assert.deepEqual(
        states.toSorted((one, other) => one - other),
        [0, ...years],
      );
    });

    if (store === SQLITE)
      test('it has the books that another program replaces', async () => {
        const { client, dbUrl } = await startTestService(await store.freshUrl());
        for (const title of ['A', 'B', 'C']) await client.create({ title });
        const sql = (statement: string) => executeOn(dbUrl, statement);
        await sql("insert or replace into books (id, title) values (1, 'A, replaced')");
        await sql("insert or ignore into books (id, title) values (2, 'ignored')");
        await sql("insert into books (id) values (2) on conflict do update set title = 'B, changed'");
        await sql('update or replace books set id = 1 where id = 3');
        const titles = async (id: number) =>
          (await client.request('GET', `/book/${id}/history`)).data.map(
            ({ book }: { book: { title: string } | null }) => book?.title ?? null,
          );
        assert.deepEqual(await titles(1), ['C', 'A, replaced', 'A']);
        assert.deepEqual(await titles(2), ['B, changed', 'B']);
        assert.deepEqual(await titles(3), [null, 'C']);
        const [, { change }] = (await client.request('GET', '/book/1/history')).data;
        await sql('delete from books where id = 1');
        await client.request('POST', '/undo', { body: { change } });
        await sql("insert into books (id, title) values (1, 'again')");
        assert.deepEqual(await titles(1), ['again', null, 'C', 'A, replaced', 'A']);
      });

    if (store === SQLITE)
      test('it has new books once if triggers of others change them or store more', async () => {
        const { client, dbUrl } = await startTestService(await store.freshUrl());
        await runOn(
          dbUrl,
          `create trigger change before insert on books when new.title = 'third' begin
             update books set year = 7 where title = 'first'; end;
           create trigger follow after insert on books when new.title = 'fourth' begin insert into books (title) values ('fifth'); end`,
        );
        await client.request('POST', '/books', { body: [{ title: 'first' }, {}, { title: 'third' }] });
        await client.create({ title: 'fourth' });
        const rows = await executeOn(dbUrl, ROWS.SQLite);
        assert.deepEqual(rows.map(Object.values), [
          [1, 2, null, null, null],
          [1, 1, 'first', '', 0],
          [3, 3, null, null, null],
          [4, 4, null, null, null],
          [5, 5, null, null, null],
        ]);
      });

    test('rule H2: the cursor of a follower that has read all changes is valid after their removal', async () => {
      // With a separate server: while a transaction of another test is in progress, a page of changes is valid for less long.
      const url = store === POSTGRES ? (await PostgresServer.start()).url() : await store.freshUrl();
      const { client, dbUrl, stop } = await startTestService(url, { FIND: 'off' });
      let path = '/changes';
      const read = async (from: Client) => {
        const answer = await from.request('GET', path);
        path = linksOf(answer).next ?? '';
        return [answer.status, answer.data?.length];
      };
      for (const title of ['A', 'B']) {
        await client.create({ title });
        assert.deepEqual(await read(client), [200, 1]);
      }
      await stop();
      const brief = timesWith({ history: { day: 0, prune: 20 } });
      const pruning = await startTestService(dbUrl, { FIND: 'off' }, undefined, brief);
      await logPruned(dbUrl);
      assert.deepEqual(await read(pruning.client), [200, 0]);
    });

    if (store === POSTGRES)
      test('rules H3 and 23: those who wait for a change get it, at most after a 503, although the server was away meanwhile', async (context) => {
        const dbUrl = await store.freshUrl();
        const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
        const times = timesWith({ postgres: { changesPause: 1 } });
        const { client } = await startTestService(proxiedUrl, {}, undefined, times);
        const { next = '' } = linksOf(await client.request('GET', '/changes'));
        const wait = () => client.request('GET', next, { headers: { prefer: 'wait=60' } });
        const waiting = wait();
        await client.list(); // the other request has arrived
        const { target } = proxy;
        proxy.target = await listen(context, (socket) => socket.destroy());
        proxy.reset();
        for (let failures = 0; failures < 5; )
          if ((await client.request('GET', '/book/1')).status === 503) failures += 1;
        proxy.target = target;
        await executeOn(dbUrl, "insert into books (title) values ('of a program')");
        const answer = await waiting;
        const { data } = answer.status === 503 ? await wait() : answer; // it may have been read again meanwhile
        assert.equal(data.length, 1);
      });

    test('each change has a number, while several programs store books together', async () => {
      const dbUrl = await store.freshUrl();
      const services = [await startTestService(dbUrl), await startTestService(dbUrl)];
      const body = Array.from({ length: 1500 }, (_, year) => ({ year }));
      const storeAll = async ({ client }: (typeof services)[number]) => {
        for (let time = 0; time < 4; time += 1) {
          assert.equal((await client.request('POST', '/books', { body })).status, 201);
          await client.create({});
        }
      };
      await Promise.all(services.map(storeAll));
      const rows = await executeOn(dbUrl, 'select book, last, number from book_log order by number');
      let newest = 0;
      let books = 0;
      for (const row of rows) {
        const [book, last, number] = Object.values(row).map(Number) as [number, number, number];
        assert.ok(number - (last - book) > newest, `${number} of ${book} to ${last}`);
        newest = number;
        if (book > 0) books += last - book + 1;
      }
      assert.equal(books, 2 * 4 * 1501);
    });
  });
}
