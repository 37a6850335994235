// Whether the index follows the books, whichever program writes them, and is made again if it cannot, on every store. Processes
// that are killed, and first indexes, are in test/nightly.

import assert from 'node:assert/strict';
import { before, beforeEach, describe, test } from 'node:test';
import { indexSome } from '../../src/stores/postgres/book-index.ts';
import { queryOn } from '../../src/stores/postgres/query.ts';
import type { Query } from '../../src/stores/query.ts';
import { assertIndexCorrect, countFound, found, holdBehind, indexAll } from '../support/book-index.ts';
import type { Client } from '../support/client.ts';
import { blockOf } from '../support/documents.ts';
import { connectTo } from '../support/postgres.ts';
import { scaled } from '../support/scale.ts';
import { POSTGRES, type RunningService, SQLITE, STORES, startTestService } from '../support/service.ts';
import { executeOn, logPruned, runOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** How often a book is written by one service and found by another. */
const TIMES = scaled(200);

/** Milliseconds that a search waits for the index, of a service whose index is held. */
const CATCH_UP = 200;

/** Statements after which no index follows the books, or none of this version. */
const DAMAGES = {
  SQLite: [
    'drop trigger book_log_on_update',
    'drop table book_index',
    'drop index book_index_years',
    'delete from book_index_state',
    'update book_index_state set version = 1000',
  ],
  PostgreSQL: [
    'drop trigger book_log_on_update on books',
    'alter table books disable trigger book_log_on_update',
    'drop table book_index',
    'drop index book_index_years',
    'alter table book_index drop column author_filed', // as in builds before 1.1
    'delete from book_index_state',
    'update book_index_state set version = 1000',
  ],
};

/** Notes for the index, as builds before version 1.1 made them. */
const OLDER = {
  SQLite: `
    drop trigger book_log_on_update;
    create table book_index_queue (id integer primary key) strict;
    create trigger book_index_on_update after update on books
      begin insert or ignore into book_index_queue select old.id where old.id <= (select indexed_to from book_index_state); end;
    drop table book_index_state;
    create table book_index_state (version integer not null, indexed_to integer not null, is_complete integer not null) strict;
    insert into book_index_state values (3, 100, 1)`,
  PostgreSQL: `
    create table book_index_queue (first bigint not null, last bigint not null);
    create function book_index_note() returns trigger language plpgsql
      as $$ begin insert into book_index_queue select id, id from changed; return null; end $$;
    create trigger book_index_on_update after update on books referencing new table as changed
      for each statement execute function book_index_note();
    drop table book_index_state;
    create table book_index_state (version integer not null, round bigint not null default 0, is_complete boolean not null);
    insert into book_index_state (version, is_complete) values (3, true)`,
};

/** What belongs to an index. */
const OBJECTS = {
  SQLite: "select name from sqlite_schema where name like 'book!_index%' escape '!'",
  PostgreSQL: `select relname from pg_class where relname like 'book\\_index%'
    union all select tgname from pg_trigger where tgname like 'book\\_index%'
    union all select proname from pg_proc where proname like 'book\\_index%'`,
};

const REMOVE = {
  SQLite: blockOf('docs/maintenance.md', 'book_index_words'),
  PostgreSQL: blockOf('docs/maintenance.md', '-- PostgreSQL\ndrop'),
};

for (const store of STORES) {
  describe(`the index on ${store.name}`, () => {
    let service: RunningService;
    let client: Client;
    before(async () => {
      service = await startTestService(await store.freshUrl());
      client = service.client;
    });
    beforeEach(async () => void (await sql('delete from books')));

    const sql = (statement: string) => executeOn(service.dbUrl, statement);

    test('rule F11: books that other programs write are found at once', async () => {
      await sql("insert into books (title, author, year) values ('Foreign one', 'x', 1)");
      const [one] = await found(client, 'q=foreign');
      assert.equal(typeof one, 'number');
      await sql(`update books set title = 'Changed' where id = ${one}`);
      assert.deepEqual(await found(client, 'q=foreign'), []);
      assert.deepEqual(await found(client, 'q=changed'), [one]);
      await sql(`update books set id = 5000 where id = ${one}`);
      assert.deepEqual(await found(client, 'q=changed'), [5000]);
      await sql("insert into books (id, title) values (4000, 'Between')"); // below the highest id
      assert.deepEqual(await found(client, 'title=between'), [4000]);
      await sql('update books set id = 3000 where id = 4000'); // below it as well
      assert.deepEqual(await found(client, 'title=between'), [3000]);
      await sql('delete from books where id = 5000');
      assert.deepEqual(await found(client, 'sort=year'), [3000]);
      await sql('delete from books');
      assert.deepEqual(await found(client, 'sort=year'), []);
      await sql("insert into books (id, title) values (5000, 'Again')");
      assert.deepEqual(await found(client, 'q=again'), [5000]);
      await assertIndexCorrect(service.dbUrl);
    });

    test('rules F11 and 28: a search sees every write that another service has answered', async () => {
      const { client: writer } = await startTestService(service.dbUrl);
      for (let number = 0; number < TIMES; number += 1) {
        const { id } = await writer.create({ title: `Number ${number} once`, year: number });
        assert.deepEqual(await found(client, `title_contains=${number}+once`), [id]);
        await writer.request('PUT', `/book/${id}`, { body: { title: `Number ${number} twice` } });
        assert.deepEqual(await found(client, `title_contains=${number}+once`), []);
        assert.deepEqual(await found(client, `title=number+${number}+twice`), [id]);
        if (number % 2 === 0) {
          await writer.request('DELETE', `/book/${id}`);
          assert.deepEqual(await found(client, `year=${number}`), []);
        }
      }
      await assertIndexCorrect(service.dbUrl);
    });

    for (const [kind, shortSearch] of [
      ['short', 60_000],
      ['long', -1000],
    ] as const) {
      test(`rule F11: while the index cannot follow, a ${kind} search answers from what is indexed, and says so`, async () => {
        const catchUp = CATCH_UP;
        const times = timesWith({ books: { shortSearch }, sqlite: { catchUp }, postgres: { catchUp } });
        const hasty = await startTestService(service.dbUrl, {}, undefined, times);
        await client.create({ title: 'Indexed' });
        const release = await holdBehind(hasty);
        const books = await client.list();
        const { status, data, headers } = await hasty.client.request('GET', '/books?sort=year');
        await release();
        assert.deepEqual([status, data, headers.get('x-unindexed-books')], [200, books.slice(0, -1), '1']);
        assert.equal(await countFound(client, 'sort=year'), books.length);
      });
    }

    test('rule F11: a transaction that is rolled back leaves nothing to find', async () => {
      await assert.rejects(
        sql(
          store === SQLITE
            ? "insert into books (id, title) values (6000, 'Never'), (6000, 'Never')"
            : "with one as (insert into books (title) values ('Never') returning id) select 1 / (id - id) from one",
        ),
      );
      assert.deepEqual(await found(client, 'q=never'), []);
    });

    test('rule F11: a start makes the index again if a part of it is missing, or another version has made it', async () => {
      const dbUrl = await store.freshUrl();
      await indexAll(dbUrl);
      await executeOn(dbUrl, "insert into books (title) values ('Before')");
      const objects = async () => (await executeOn(dbUrl, OBJECTS[store.name])).length;
      const all = await objects();
      for (const [number, damage] of DAMAGES[store.name].entries()) {
        await indexAll(dbUrl);
        await executeOn(dbUrl, damage);
        await executeOn(dbUrl, `update books set title = 'Number ${number}'`);
        const started = await startTestService(dbUrl);
        const version = await executeOn(dbUrl, 'select version from book_index_state where version < 1000');
        assert.equal(version.length, 1, damage);
        const books = await countFound(started.client, `title=number+${number}`).finally(started.stop);
        assert.deepEqual([books, await objects()], [1, all], damage);
      }
      await indexAll(dbUrl);
      await runOn(dbUrl, OLDER[store.name]);
      await executeOn(dbUrl, "update books set title = 'Older'");
      const newer = await startTestService(dbUrl);
      await newer.client.request('PUT', '/book/1', { body: { title: 'Newer' } });
      const found = await countFound(newer.client, 'title=newer').finally(newer.stop);
      assert.deepEqual([found, await objects()], [1, all]);
      for (const table of ['book_log', 'book_log_state']) {
        await executeOn(dbUrl, `drop table ${table}`); // until a start, nobody can write
        const started = await startTestService(dbUrl);
        await started.client.create({ title: table });
        assert.equal(await countFound(started.client, `title=${table}`).finally(started.stop), 1, table);
      }
      await assertIndexCorrect(dbUrl);
    });

    test('rule F11: an index is made again if the log lacks what has changed since', async () => {
      const dbUrl = await store.freshUrl();
      await indexAll(dbUrl);
      const brief = timesWith({ history: { day: 0, prune: 20 } });
      const without = await startTestService(dbUrl, { FIND: 'off' }, undefined, brief);
      for (let year = 1; year <= 3; year += 1) await without.client.create({ year });
      await logPruned(dbUrl);
      await indexAll(dbUrl);
      await without.client.create({ year: 4 }); // its row has the next number
      const { client: finder, stop } = await startTestService(dbUrl);
      await waitUntil(async () => (await countFound(finder, 'sort=year')) === 4);
      await stop();
      await assertIndexCorrect(dbUrl);
    });

    test('rule F11: once another version has made the index, which is left alone, a search gets 503, unless it is for all books by id', async () => {
      const running = await startTestService(await store.freshUrl());
      await executeOn(running.dbUrl, 'update book_index_state set version = 1000');
      await running.client.create({ title: 'Written' });
      const { status, message, headers } = await running.client.request('GET', '/books?q=written');
      assert.deepEqual([status, message, headers.get('retry-after')], [503, 'Service unavailable', '1']);
      for (const title of ['second', 'third']) await running.client.create({ title });
      const page = await running.client.request('GET', '/books?sort=-id&limit=2', {
        headers: { prefer: 'count=exact' },
      });
      assert.deepEqual(
        (page.data as { title: string }[]).map(({ title }) => title),
        ['third', 'second'],
      );
      assert.equal(page.headers.get('x-total-count'), '3');
      assert.ok(Number(page.headers.get('x-unindexed-books')) > 0);
      const next = /<([^>]+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
      const { data } = await running.client.request('GET', next);
      assert.deepEqual(
        (data as { title: string }[]).map(({ title }) => title),
        ['Written'],
      );
      assert.deepEqual(await executeOn(running.dbUrl, 'select id from book_index'), []);
    });

    test('the documents remove an index beside a service without it, and the next start makes it', async () => {
      const dbUrl = await store.freshUrl();
      const without = await startTestService(dbUrl, { FIND: 'off' });
      const objects = () => executeOn(dbUrl, OBJECTS[store.name]);
      await indexAll(dbUrl);
      assert.ok((await objects()).length > 5);
      await without.client.create({ title: 'x' });
      await runOn(dbUrl, REMOVE[store.name]);
      assert.deepEqual(await objects(), []);
      await without.client.create({ title: 'y' });
      const { client: finder, stop } = await startTestService(dbUrl);
      assert.equal(await countFound(finder, 'year=0').finally(stop), 2);
    });

    if (store === POSTGRES) {
      test('rule F11: no search waits for a transaction that another program leaves open, and what it has written is found at its end', async (context) => {
        const program = await connectTo(context, service.dbUrl);
        for (let number = 1; number <= 3; number += 1) {
          await client.create({ title: `Before ${number}` });
          await program.query("begin; insert into books (title) values ('Late')");
          await client.create({ title: `Meanwhile ${number}` });
          assert.equal((await found(client, 'q=meanwhile')).length, number);
          await client.create({ title: 'More' });
          assert.equal((await found(client, 'q=more')).length, number);
          await program.query('commit');
          assert.equal((await found(client, 'q=late')).length, number);
        }
        await assertIndexCorrect(service.dbUrl);
      });

      test('rule F11: an index is not made again for rows that are gone, though a transaction was open when it read them', async (context) => {
        const dbUrl = await store.freshUrl();
        const madeAt = () => executeOn(dbUrl, 'select made_at from book_index_state');
        const program = await connectTo(context, dbUrl);
        const open = await startTestService(dbUrl);
        await program.query("begin; insert into books (title) values ('Never')");
        await open.client.create({ title: 'Before' });
        const before = await madeAt();
        await open.client.create({ title: 'Meanwhile' });
        assert.equal(await countFound(open.client, 'year=0').finally(open.stop), 2);
        await program.query('rollback');
        const brief = timesWith({ history: { day: 0, prune: 20 } });
        const pruning = await startTestService(dbUrl, {}, undefined, brief);
        await logPruned(dbUrl).finally(pruning.stop);
        await indexAll(dbUrl);
        assert.deepEqual(await madeAt(), before);
      });

      test('rule F11: books that one statement writes are found, and none that truncate has removed', async () => {
        await sql("insert into books (title) select 'Series ' || n from generate_series(1, 4000) as n");
        assert.equal(await countFound(client, 'q=series'), 4000);
        await sql("update books set title = 'Odd' where id % 2 = 1 and title like 'Series %'");
        assert.equal(await countFound(client, 'title=odd'), 2000); // two full steps of the index
        await sql('truncate books');
        assert.equal(await countFound(client, 'sort=year'), 0);
        await sql("insert into books (title) values ('After')");
        assert.equal(await countFound(client, 'q=after'), 1);
        await assertIndexCorrect(service.dbUrl);
      });

      test('rule 22: other requests run while the words of many books are made', async (context) => {
        const dbUrl = await store.freshUrl();
        await (await startTestService(dbUrl)).stop();
        await executeOn(dbUrl, "insert into books (title) select 'Many' from generate_series(1, 100)");
        const server = await connectTo(context, dbUrl);
        let passed = 0;
        let atLast = 0;
        const query: Query = async (text, values) => {
          if (text.includes('insert into book_index')) assert.ok(passed - atLast >= 100);
          const result = await queryOn(server)(text, values);
          atLast = passed;
          return result as never[];
        };
        let isDone = false;
        const pass = () => {
          passed += 1;
          if (!isDone) setImmediate(pass);
        };
        pass();
        await query('begin');
        assert.equal(await indexSome(query, 0, 0), 100);
        isDone = true;
      });
    }
  });
}
