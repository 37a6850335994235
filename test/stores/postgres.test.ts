// Situations that only PostgreSQL can cause: an aborted transaction, an older structure, a role without rights. The contract
// itself is tested in test/contract; locked books, TLS and servers that fail are in test/nightly.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { IndexFollower } from '../../src/stores/postgres/finding/book-index.ts';
import { runCommand } from '../support/command.ts';
import { connectTo, execute, freshDatabase } from '../support/postgres.ts';
import { type RunningService, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

describe('PostgreSQL', { concurrency: true }, () => {
  describe('a transaction that the server aborts', { concurrency: 2 }, () => {
    for (const code of ['40001', '40P01']) {
      test(`rule 9: with ${code}, is retried, and its book is stored once`, async (context) => {
        const { client, dbUrl } = await start(context);
        const { id } = await client.create({ year: 1 });
        await giveUp(dbUrl, code, 4);
        const { id: added } = await client.create({ title: 'added' });
        await giveUp(dbUrl, code, 4);
        const { status, data } = await client.request('PUT', `/book/${id}`, { body: { year: 2 } });
        assert.deepEqual([status, data], [200, { id, title: '', author: '', year: 2 }]);
        await giveUp(dbUrl, code, 4);
        assert.equal((await client.request('DELETE', `/book/${id}`)).status, 200);
        assert.deepEqual(await client.list(), [{ id: added, title: 'added', author: '', year: 0 }]);
      });
    }

    const ends: [title: string, code: string, attempts: number][] = [
      ['with a serialization failure, is sent five times', '40001', 5],
      ['with a deadlock, is sent five times', '40P01', 5],
      ['for any other reason, is sent once', 'P0001', 1],
    ];
    for (const [title, code, attempts] of ends) {
      test(`rule 23: every time, ${title}; then it gets 503, and nothing is stored`, async (context) => {
        const { client, dbUrl } = await start(context);
        const book = await client.create({ year: 1 });
        const changes: [string, string, object?][] = [
          ['POST', '/book', { body: {} }],
          ['PUT', `/book/${book.id}`, { body: { year: 2 } }],
          ['DELETE', `/book/${book.id}`],
        ];
        for (const change of changes) {
          await giveUp(dbUrl, code, 1_000_000);
          assert.equal((await client.request(...change)).status, 503);
          const [sent] = await execute<{ attempts: number }>(
            dbUrl,
            'select last_value::int as attempts from attempts',
          );
          assert.deepEqual([change[0], sent?.attempts], [change[0], attempts]);
        }
        assert.deepEqual(await client.list(), [book]);
      });
    }
  });

  test('rule F11: a search in whose midst the index is made again is carried out again', async (context) => {
    const dbUrl = await freshDatabase();
    const service = await startTestService(dbUrl);
    context.after(() => service.stop());
    const { id } = await service.client.create({ title: 'Here' });
    const search = () => service.client.request('GET', '/books?q=here');
    await waitUntil(async () => (await search()).data.length === 1);
    const maker = await connectTo(context, dbUrl);
    await maker.query('begin; lock table book_index');
    const answer = search();
    await waitUntil(async () => {
      const waiting = `select from pg_locks where not granted and relation = 'book_index'::regclass`;
      return (await execute(dbUrl, waiting)).length > 0;
    });
    await maker.query(
      `truncate book_index; update book_index_state set is_complete = false;
       insert into book_index_queue values (1, ${Number.MAX_SAFE_INTEGER}); commit`,
    );
    const { status, data } = await answer;
    if (status === 200)
      assert.deepEqual(
        data.map((book: { id: number }) => book.id),
        [id],
      );
    else assert.equal(status, 503);
    await waitUntil(async () => (await search()).status === 200);
  });

  test('rule F11: no note of a change is lost if the notes are rewritten while they are carried out', async (context) => {
    const dbUrl = await freshDatabase();
    const service = await startTestService(dbUrl);
    await service.stop();
    const client = await connectTo(context, dbUrl);
    const follower = new IndexFollower(async (text, values) => (await client.query(text, values)).rows);
    await execute(
      dbUrl,
      'insert into book_index_queue values (1, 1), (2, 2); delete from book_index_queue where first = 1',
    );
    const state = await follower.state();
    await execute(dbUrl, 'insert into book_index_queue values (3, 3)');
    await execute(dbUrl, 'vacuum full book_index_queue'); // the note of 3 is now where that of 2 was
    assert.equal(await follower.index(state), 0);
    assert.equal((await execute(dbUrl, 'select from book_index_queue')).length, 2);
    assert.equal(await follower.index(await follower.state()), 2);
  });

  describe('the structure', { concurrency: 2 }, () => {
    test('rule 27: a start does not read all books', async () => {
      const dbUrl = await freshDatabase();
      await (await startTestService(dbUrl)).stop();
      // Of fewer books, the server would rather read all than some by their ids.
      await execute(
        dbUrl,
        "insert into books (title) select 'x' from generate_series(1, 100000); analyze books",
      );
      // The scans of a connection are counted once it has ended.
      const countScans = async () => {
        const others =
          'select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()';
        await waitUntil(async () => (await execute(dbUrl, others)).length === 0);
        const sql = "select seq_tup_read, idx_scan from pg_stat_user_tables where relname = 'books'";
        const [row] = await execute<{ seq_tup_read: string; idx_scan: string }>(dbUrl, sql);
        return { read: Number(row?.seq_tup_read), indexed: Number(row?.idx_scan) };
      };
      const before = await countScans();
      await (await startTestService(dbUrl)).stop();
      const after = await countScans();
      assert.ok(after.indexed > before.indexed);
      assert.ok(after.read - before.read <= 10_001); // which it counts, to say how many there are
    });

    test('rule 27: an older table is brought up to date and its books are kept', async (context) => {
      const dbUrl = await freshDatabase();
      await execute(
        dbUrl,
        `create table books (id bigserial primary key, title text, author varchar(40), year integer, extra text);
       insert into books (title, author, year, extra) values ('Emma', 'Jane Austen', 1815, 'x'), (null, null, null, 'y')`,
      );
      const service = await start(context, dbUrl);
      assert.deepEqual(await service.client.list(), [
        { id: 1, title: 'Emma', author: 'Jane Austen', year: 1815 },
        { id: 2, title: '', author: '', year: 0 },
      ]);
      const body = { title: 't', author: 'a'.repeat(100), year: 9007199254740991 };
      assert.deepEqual(await service.client.create(body), { id: 3, ...body });
    });

    test('rule 27: missing columns are added', async (context) => {
      const dbUrl = await freshDatabase();
      await execute(dbUrl, 'create table books (id bigserial primary key); insert into books default values');
      const service = await start(context, dbUrl);
      assert.deepEqual(await service.client.list(), [{ id: 1, title: '', author: '', year: 0 }]);
    });

    test('rules 12 and 27: a role that may use the tables and the sequence is enough, even if the sequence is behind', async (context) => {
      const dbUrl = await freshDatabase();
      await (await startTestService(dbUrl)).stop();
      const tables = 'books, book_requests, book_index, book_index_queue, book_index_state';
      const url = await asUserOf(context, dbUrl, tables);
      await execute(dbUrl, 'insert into books (id) select generate_series(1, 10)');
      const { client } = await start(context, url);
      const { id } = await client.create({ title: 'x' });
      assert.equal(id, 11);
      await execute(dbUrl, 'insert into books (id) select generate_series(12, 20)');
      assert.equal((await client.create({})).id, 21);
      assert.equal((await client.request('PUT', `/book/${id}`, { body: {} })).status, 200);
      assert.equal((await client.request('DELETE', `/book/${id}`)).status, 200);
      assert.equal((await client.list()).length, 20);
      assert.equal((await client.request('GET', '/books?year=0&limit=1000')).data.length, 20);
      assert.equal((await runCommand(['index', '--rebuild'], { DB_URL: dbUrl })).code, 0);
      assert.equal((await client.request('GET', '/books?year=0&limit=1000')).data.length, 20);
    });

    test('a role that may only write books gets no other right by the triggers, also where they are older', async (context) => {
      const dbUrl = await freshDatabase();
      await (await startTestService(dbUrl)).stop();
      await execute(dbUrl, 'alter function book_index_note() set search_path from current');
      const { client } = await start(context, dbUrl);
      const clerk = await connectTo(context, await asUserOf(context, dbUrl, 'books'));
      await clerk.query('create temporary table book_index_queue (first bigint, last bigint)');
      await clerk.query("insert into books (title) values ('by the clerk')");
      assert.deepEqual((await clerk.query('select from pg_temp.book_index_queue')).rows, []);
      assert.equal((await client.request('GET', '/books?q=clerk')).data.length, 1);
    });

    test('rule 27: a role that may not create the index is refused, and serves without it', async (context) => {
      const dbUrl = await freshDatabase();
      await (await startTestService(dbUrl, { FIND: 'off' })).stop();
      const url = await asUserOf(context, dbUrl, 'books, book_requests');
      await assert.rejects(startTestService(url), /run `book-catalogue index` as the owner/);
      const { client, stop } = await startTestService(url, { FIND: 'off' });
      context.after(stop);
      await client.create({});
      assert.equal((await client.list()).length, 1);
    });

    test('rule 12: after books that were inserted with ids, every process gives the next free id', async (context) => {
      const dbUrl = await freshDatabase();
      await (await startTestService(dbUrl)).stop();
      await execute(dbUrl, 'insert into books (id) select generate_series(1, 1000)');
      const services = await Promise.all([start(context, dbUrl), start(context, dbUrl)]);
      const created = await Promise.all(services.map(({ client }) => client.create({})));
      assert.deepEqual(
        created.map(({ id }) => id).toSorted((a, b) => a - b),
        [1001, 1002],
      );
    });

    test('rule 12: books that are inserted with ids while the service runs make no creation fail', async (context) => {
      const dbUrl = await freshDatabase();
      const services = await Promise.all([start(context, dbUrl), start(context, dbUrl)]);
      for (let round = 1; round <= 2; round += 1) {
        await execute(
          dbUrl,
          'insert into books (id) select generate_series(max(id) + 1, max(id) + 700) from books',
        );
        await Promise.all(
          services.flatMap(({ client }) => Array.from({ length: 30 }, () => client.create({ year: round }))),
        );
      }
      const [{ count } = {}] = await execute(dbUrl, 'select count(*)::int from books where year > 0');
      assert.equal(count, 120);
    });

    test('rule 12: an id drawn while another process starts is not given out again', async (context) => {
      const { dbUrl, locker } = await startWithLocker(context);
      await execute(dbUrl, 'insert into books (id) values (3)');
      await locker.query(
        "begin; insert into books select nextval('books_id_seq') from generate_series(1, 2)",
      );
      const second = start(context, dbUrl);
      await waitUntil(async () => (await waitingStatements(dbUrl)).length > 0);
      await locker.query("select nextval('books_id_seq') from generate_series(3, 5); commit");
      assert.equal((await (await second).client.create({})).id, 6);
    });

    test('rule 27: a table whose ids come from another sequence is refused', async () => {
      const dbUrl = await freshDatabase();
      await execute(
        dbUrl,
        "create sequence s; create table books (id bigint default nextval('s') primary key)",
      );
      await assert.rejects(startTestService(dbUrl), /^Error: DB_URL: .* "books_id_seq" does not\.$/);
    });

    test('rule 27: ids that are always generated are refused', async (context) => {
      const dbUrl = await freshDatabase();
      await execute(dbUrl, 'create table books (id bigint generated always as identity primary key)');
      await assert.rejects(
        startTestService(dbUrl),
        /^Error: DB_URL: .* change them to "generated by default"\.$/,
      );
      await execute(dbUrl, 'alter table books alter id set generated by default');
      const service = await start(context, dbUrl);
      assert.equal((await service.client.create({})).id, 1);
    });

    test('rules 4 and 27: a database whose encoding cannot hold every text is refused', async () => {
      const url = new URL(await freshDatabase());
      const name = `${url.pathname.slice(1)}_latin`;
      await execute(url.href, `create database ${name} encoding 'LATIN1' locale 'C' template template0`);
      try {
        const latin = new URL(`/${name}`, url);
        await assert.rejects(startTestService(latin.href), /^Error: DB_URL: .* its encoding is LATIN1, /);
      } finally {
        await execute(url.href, `drop database ${name} with (force)`);
      }
    });

    test('rule 27: a read-only server is refused', async () => {
      const url = await freshDatabase();
      await execute(
        url,
        `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`,
      );
      await assert.rejects(startTestService(url), /^Error: DB_URL: .* cannot be opened: it is read-only\.$/);
    });

    test('rule 12: no id beyond 2^53-1 is ever given out', async (context) => {
      const service = await start(context);
      await execute(service.dbUrl, "select setval('books_id_seq', 9007199254740990)");
      const last = await service.client.create({ title: 'last' });
      assert.equal(last.id, 9007199254740991);
      assert.equal((await service.client.request('POST', '/book', { body: {} })).status, 503);
      assert.deepEqual(await service.client.list(), [last]);
    });
  });
});

/** The database as a new role sees it, which may use these tables and the sequence, and no more. */
async function asUserOf(context: TestContext, dbUrl: string, tables: string): Promise<string> {
  const url = new URL(dbUrl);
  url.username = `user_of_${url.pathname.slice(1)}`;
  url.password = 'only use';
  await execute(
    dbUrl,
    `create role ${url.username} login password 'only use';
     grant select, insert, update, delete on ${tables} to ${url.username};
     grant usage, select, update on sequence books_id_seq to ${url.username}`,
  );
  context.after(() => execute(dbUrl, `drop owned by ${url.username}; drop role ${url.username}`));
  return url.href;
}

/** Starts a service that stops at the end of the test, on a new database unless one is given. */
async function start(context: TestContext, dbUrl?: string): Promise<RunningService> {
  const service = await startTestService(dbUrl ?? (await freshDatabase()));
  context.after(() => service.stop());
  return service;
}

/**
 * Starts a service, and connects another program that may lock its books; both end with the test.
 * @param isolation level of the transactions of both.
 */
async function startWithLocker(context: TestContext, isolation = 'read committed') {
  const dbUrl = await freshDatabase();
  const name = new URL(dbUrl).pathname.slice(1);
  await execute(dbUrl, `alter database ${name} set default_transaction_isolation = '${isolation}'`);
  const { client } = await start(context, dbUrl);
  const locker = await connectTo(context, dbUrl);
  return { client, dbUrl, locker };
}

/** Makes the server abort the next `times` transactions that write. */
async function giveUp(dbUrl: string, code: string, times: number): Promise<void> {
  await execute(
    dbUrl,
    `create sequence if not exists attempts;
     select setval('attempts', 1, false);
     create or replace function give_up() returns trigger language plpgsql as $$
       begin
         if nextval('attempts') <= ${times} then raise exception 'given up' using errcode = '${code}'; end if;
         return null;
       end $$;
     create or replace trigger give_up before insert or update or delete on books execute function give_up()`,
  );
}

/** Statements that wait for a lock. */
function waitingStatements(dbUrl: string): Promise<{ readonly pid: number }[]> {
  return execute(
    dbUrl,
    "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
  );
}
