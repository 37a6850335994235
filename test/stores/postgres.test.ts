// Situations that only PostgreSQL can cause: an aborted transaction, a lost answer, a locked table, an older structure, a role
// without rights, other settings. The contract itself is tested in test/contract.

import assert from 'node:assert/strict';
import { before, describe, type TestContext, test } from 'node:test';
import { beginWithin } from '../../src/stores/postgres/limits.ts';
import type { Times } from '../../src/times.ts';
import { countFound, indexAll, MAKE_AGAIN } from '../support/book-index.ts';
import { exportOf } from '../support/books.ts';
import { exchange } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { settle } from '../support/elsewhere.ts';
import { connectTo, execute, freshDatabase, sessionsOf, waitingIn } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { compose } from '../support/raw-requests.ts';
import { type RunningService, startTestService } from '../support/service.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** Of a service whose index has no part in a test. */
const WITHOUT_INDEX = { FIND: 'off' };

/** Of a start that waits for as long as a test takes. */
const PATIENT = { postgres: { structureWait: 60_000 } };

describe('PostgreSQL', { concurrency: true }, () => {
  describe('a transaction that the server aborts', { concurrency: 1 }, () => {
    let service: RunningService;
    before(async () => {
      service = await startTestService(await freshDatabase(), WITHOUT_INDEX);
      await service.client.create({}); // opens a connection
    });

    /** A creation, a change and a removal; the server aborts each so often. @returns also the years of the books left. */
    async function abort(code: string, times: number) {
      const { client, dbUrl } = service;
      await execute(dbUrl, 'delete from books');
      const { id } = await client.create({ year: 1 });
      const statuses: number[] = [];
      const attempts: number[] = [];
      for (const [method, path, body] of [
        ['POST', '/book', { year: 2 }],
        ['PUT', `/book/${id}`, { year: 3 }],
        ['DELETE', `/book/${id}`],
      ] as const) {
        await giveUp(dbUrl, code, times);
        statuses.push((await client.request(method, path, { body })).status);
        const [row] = await execute<{ sent: number }>(dbUrl, 'select last_value::int as sent from attempts');
        attempts.push(row?.sent ?? 0);
      }
      await execute(dbUrl, 'drop trigger give_up on books');
      return { statuses, attempts, years: (await client.list()).map(({ year }) => year) };
    }

    for (const code of ['40001', '40P01']) {
      test(`rule 9: with ${code}, is retried, and its book is stored once`, async () => {
        const { statuses, years } = await abort(code, 4);
        assert.deepEqual([statuses, years], [[201, 200, 200], [2]]);
      });
    }

    for (const [title, code, sent] of [
      ['with a serialization failure, is sent five times', '40001', 5],
      ['with a deadlock, is sent five times', '40P01', 5],
      ['for any other reason, is sent once', 'P0001', 1],
    ] as const) {
      test(`rule 23: every time, ${title}; then it gets 503, and costs no connection`, async () => {
        const connections = async () => new Set((await sessionsOf(service.dbUrl)).map(({ pid }) => pid));
        const before = await connections();
        const { statuses, attempts, years } = await abort(code, 1_000_000);
        assert.deepEqual([statuses, attempts, years], [[503, 503, 503], Array(3).fill(sent), [1]]);
        assert.deepEqual(before.difference(await connections()), new Set());
      });
    }
  });

  test('rule 23: the server waits a second for the next statement of a transaction, if less time is left for each', async (context) => {
    const client = await connectTo(context, await freshDatabase());
    for (const [limit, gap] of [
      [900, '1s'],
      [4000, '4s'],
    ] as const) {
      await client.query(beginWithin(limit));
      const { rows } = await client.query('show idle_in_transaction_session_timeout');
      assert.deepEqual(Object.values(rows[0]), [gap]);
      await client.query('rollback');
    }
  });

  test('rule 23: a write whose answer is lost gets 503 and has happened once, and nothing more of it arrives', async (context) => {
    const { client: other, dbUrl } = await start();
    const [changed, removed] = [await other.create({ year: 1 }), await other.create({ year: 2 })];
    const holder = await connectTo(context, dbUrl);
    await holder.query(
      `select pg_advisory_lock(1);
       create table written (what text);
       create function halt() returns trigger language plpgsql as $$ begin
         perform pg_advisory_xact_lock_shared(1); insert into written values (tg_op); return null;
       end $$;
       create trigger halt after insert or update or delete on books for each row execute function halt()`,
    );
    const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
    const { client } = await start(proxiedUrl, { postgres: { query: 3000 } });
    const answers = Promise.all([
      client.request('POST', '/book', { body: { year: 3 } }),
      client.request('PUT', `/book/${changed.id}`, { body: { title: 'changed' } }),
      client.request('DELETE', `/book/${removed.id}`),
    ]);
    await waitUntil(async () => (await waitingIn(dbUrl)).length === 3, answers);
    proxy.swallowAnswers();
    await holder.query('select pg_advisory_unlock(1)');
    for (const { status, headers } of await answers) {
      assert.equal(status, 503);
      assert.ok(Number(headers.get('retry-after')) > 0);
    }
    const books = await client.list(); // on a new connection: after a lost one, all are replaced
    const found = books.map(({ title, year }) => [title, year]);
    assert.deepEqual(found, [
      ['changed', 1],
      ['', 3],
    ]);
    assert.ok(proxy.resets >= 3); // what those connections have not delivered yet never arrives
    const written = await execute(dbUrl, 'select what from written order by what');
    assert.deepEqual(written, [{ what: 'DELETE' }, { what: 'INSERT' }, { what: 'UPDATE' }]);
  });

  test('rule 23: while the table is locked, requests get 503 and change nothing; once it is free, no request is refused', async (context) => {
    const times = { books: { deadline: 3000, queue: 2000 }, postgres: { listLock: 1000 } };
    const service = await start(undefined, times);
    const { client, dbUrl } = service;
    const book = await client.create({ title: 'here' });
    const path = `/book/${book.id}`;
    const locker = await connectTo(context, dbUrl);
    await locker.query('begin; lock table books in access exclusive mode');
    const answers = await Promise.all([
      client.request('POST', '/book', { body: {} }),
      client.request('GET', '/books'),
      client.request('GET', path),
      client.request('PUT', path, { body: { title: 'x' } }),
      client.request('DELETE', path),
    ]);
    for (const { status, message } of answers) {
      assert.deepEqual([status, message], [503, 'Service unavailable']);
    }
    await waitUntil(async () => (await waitingIn(dbUrl)).length === 0); // the server ends them
    await locker.query('commit');
    const reads = await exchange(service, compose('GET', path, client).repeat(32), 32); // all of them at once
    assert.deepEqual(new Set(reads.map(({ status }) => status)), new Set([200]));
    assert.deepEqual(await client.list(), [book]);
  });

  test('rule 13: a list and an export are complete where the settings of a database suit other programs', async (context) => {
    const dbUrl = await freshDatabase();
    await (await startTestService(dbUrl, WITHOUT_INDEX)).stop();
    const locker = await connectTo(context, dbUrl);
    await settle(dbUrl);
    const { client } = await start(dbUrl);
    const { id } = await client.create({ title: 'Emma' });
    await client.request('PUT', `/book/${id}`, { body: { year: 1815 } }); // where the text NULL may be no null
    await locker.query('begin; lock table books in access exclusive mode');
    const [listed, exported] = [client.list(), runCommand(['export'], { DB_URL: dbUrl })];
    const isLong = `wait_event_type = 'Lock' and clock_timestamp() - query_start > '2.5 s'`; // settle has 2 s
    const count = async () => (await sessionsOf(dbUrl, isLong)).length;
    await waitUntil(async () => (await count()) === 2, Promise.race([listed, exported]));
    await locker.query('commit');
    assert.equal((await listed).length, 1);
    assert.equal((await exported).stdout, exportOf([{ id: 1, title: 'Emma', author: '', year: 1815 }]));
  });

  test('rule 23: an acknowledged write is on disk even if the database has synchronous_commit off', async () => {
    const { client, dbUrl } = await start();
    await execute(
      dbUrl,
      `alter database ${new URL(dbUrl).pathname.slice(1)} set synchronous_commit = off;
       create table commits (how text);
       create function note() returns trigger language plpgsql as
         $$ begin insert into commits values (current_setting('synchronous_commit')); return null; end $$;
       create trigger note after insert or update or delete on books for each row execute function note()`,
    );
    const later = await start(dbUrl);
    const { id } = await later.client.create({});
    await later.client.request('PUT', `/book/${id}`, { body: { year: 1 } });
    await later.client.request('DELETE', `/book/${id}`);
    await client.create({}); // which began before
    assert.deepEqual(await execute(dbUrl, 'select how from commits'), Array(4).fill({ how: 'on' }));
    await execute(
      dbUrl,
      `drop trigger note on books; truncate commits; insert into books (year) select n from generate_series(1, 10001) as n;
       create trigger note after insert or update on book_events for each row execute function note()`,
    );
    const undo = await later.client.request('POST', '/undo', { body: { since: '2020-01-01T00:00:00Z' } });
    assert.equal(undo.status, 202);
    await waitUntil(async () => (await later.client.list()).length === 0);
    assert.deepEqual(await execute(dbUrl, 'select distinct how from commits'), [{ how: 'on' }]);
  });

  describe('the structure', { concurrency: 2 }, () => {
    test('rule 27: a start does not read all books', async () => {
      const dbUrl = await freshDatabase();
      await (await startTestService(dbUrl)).stop();
      // Of fewer books, the server would rather read all than some by their ids.
      const books = "insert into books (title) select 'x' from generate_series(1, 100000)";
      await execute(dbUrl, `${books}; analyze books`);
      // The scans of a connection are counted once it has ended.
      const countScans = async () => {
        await waitUntil(async () => (await sessionsOf(dbUrl)).length === 0);
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

    for (const [title, sql, first] of [
      [
        'an older table is brought up to date and its books are kept',
        `create table books (id bigserial primary key, title text, author varchar(40), year integer, extra text);
         insert into books (title, author, year, extra) values ('Emma', null, 1815, 'x')`,
        { id: 1, title: 'Emma', author: '', year: 1815 },
      ],
      [
        'missing columns are added',
        'create table books (id bigserial primary key); insert into books default values',
        { id: 1, title: '', author: '', year: 0 },
      ],
    ] as const) {
      test(`rule 27: ${title}`, async () => {
        const dbUrl = await freshDatabase();
        await execute(dbUrl, sql);
        const { client } = await start(dbUrl);
        assert.deepEqual(await client.list(), [first]);
        const body = { title: 't', author: 'a'.repeat(100), year: 9007199254740991 };
        assert.deepEqual(await client.create(body), { id: 2, ...body });
      });
    }

    test('rule 27: a start that must change the table waits for those who read it, but not for ever; others go on', async (context) => {
      const { client, dbUrl } = await start();
      await execute(dbUrl, 'alter table books alter column author type varchar(40)'); // as older versions did
      const book = await client.create({ title: 'Emma' });
      const dump = await connectTo(context, dbUrl);
      await dump.query('begin; lock table books in access share mode');
      const impatient = start(dbUrl, { postgres: { structureWait: 100 } });
      await assert.rejects(
        impatient,
        /^Error: DB_URL: .* other programs use a table that must be changed: .*\.$/,
      );
      const starting = start(dbUrl, PATIENT);
      await waitUntil(async () => (await waitingIn(dbUrl)).length > 0, starting);
      assert.deepEqual((await client.request('GET', `/book/${book.id}`)).data, book);
      assert.equal((await client.request('PUT', `/book/${book.id}`, { body: {} })).status, 200);
      await dump.query('commit');
      const author = 'a'.repeat(100);
      assert.equal((await (await starting).client.create({ author })).author, author);
    });

    test('rules 12 and 27: a role that may use the tables and the sequence is enough, even if the sequence is behind', async (context) => {
      const dbUrl = await freshDatabase();
      await (await startTestService(dbUrl)).stop();
      const tables =
        'books, book_requests, book_log, book_log_state, book_events, book_index, book_index_state';
      const url = await asUserOf(context, dbUrl, tables);
      await execute(dbUrl, 'insert into books (id) select generate_series(1, 10)');
      const { client } = await start(url, undefined, {});
      const { id } = await client.create({ title: 'x' });
      assert.equal(id, 11);
      await execute(dbUrl, 'insert into books (id) select generate_series(12, 20)');
      assert.equal((await client.create({})).id, 21);
      assert.equal((await client.request('PUT', `/book/${id}`, { body: {} })).status, 200);
      assert.equal((await client.request('DELETE', `/book/${id}`)).status, 200);
      assert.equal((await client.list()).length, 20);
      assert.equal((await client.request('GET', '/books?year=0&limit=1000')).data.length, 20);
      await execute(dbUrl, MAKE_AGAIN);
      await indexAll(dbUrl); // the role keeps its rights
      assert.equal((await client.request('GET', '/books?year=0&limit=1000')).data.length, 20);
    });

    test('a role that may only write books gets no other right by the triggers, also where they are older', async (context) => {
      const dbUrl = await freshDatabase();
      await (await startTestService(dbUrl)).stop();
      await execute(dbUrl, 'alter function book_log_write() set search_path from current');
      const { client } = await start(dbUrl, undefined, {});
      const clerk = await connectTo(context, await asUserOf(context, dbUrl, 'books'));
      await clerk.query('create temporary table book_log (book bigint, last bigint)');
      await clerk.query("insert into books (title) values ('by the clerk')");
      assert.deepEqual((await clerk.query('select from pg_temp.book_log')).rows, []);
      assert.equal(await countFound(client, 'q=clerk'), 1);
    });

    test('rule 27: a role that may not create the index is refused, and serves without it', async (context) => {
      const dbUrl = await freshDatabase();
      await (await startTestService(dbUrl, WITHOUT_INDEX)).stop();
      const url = await asUserOf(
        context,
        dbUrl,
        'books, book_requests, book_log, book_log_state, book_events',
      );
      await assert.rejects(startTestService(url), /start the service once as the owner/);
      const { client } = await start(url);
      await client.create({});
      assert.equal((await client.list()).length, 1);
    });

    test('rule 12: after books that were inserted with ids, every process gives the next free id, also while it runs', async () => {
      const dbUrl = await freshDatabase();
      await (await startTestService(dbUrl, WITHOUT_INDEX)).stop();
      const insert = `insert into books (id)
        select generate_series(last + 1, last + 700) from (select coalesce(max(id), 0) as last from books) as books`;
      await execute(dbUrl, insert);
      const services = await Promise.all([start(dbUrl), start(dbUrl)]);
      for (let year = 1; year <= 2; year += 1) {
        const create = ({ client }: RunningService) =>
          Array.from({ length: 30 }, () => client.create({ year }));
        await Promise.all(services.flatMap(create));
        const [row] = await execute(dbUrl, 'select max(id)::int as id, count(*)::int as books from books');
        assert.deepEqual(row, { id: 760 * year, books: 760 * year });
        await execute(dbUrl, insert);
      }
    });

    test('rule 12: an id drawn while another process starts is not given out again', async (context) => {
      const { dbUrl } = await start();
      const locker = await connectTo(context, dbUrl);
      await execute(dbUrl, 'insert into books (id) values (3)');
      const draw = "select nextval('books_id_seq') from generate_series";
      await locker.query(`begin; insert into books ${draw}(1, 2)`);
      const second = start(dbUrl, PATIENT);
      await waitUntil(async () => (await waitingIn(dbUrl)).length > 0, second);
      await locker.query(`${draw}(3, 5); commit`);
      assert.equal((await (await second).client.create({})).id, 6);
    });

    for (const [title, sql, reason] of [
      [
        'a table whose ids come from another sequence',
        "create sequence s; create table books (id bigint default nextval('s') primary key)",
        'relation "books_id_seq" does not exist',
      ],
      [
        'ids that are always generated',
        'create table books (id bigint generated always as identity primary key)',
        'change them to "generated by default"',
      ],
      ['a read-only server', 'alter database NAME set default_transaction_read_only = on', 'it is read-only'],
    ] as const) {
      test(`rule 27: ${title}: the start is refused`, async () => {
        const url = await freshDatabase();
        await execute(url, sql.replace('NAME', new URL(url).pathname.slice(1)));
        await assert.rejects(startTestService(url), new RegExp(`^Error: DB_URL: .* ${reason}\\.$`));
      });
    }

    test('rule 27: a table in partitions is refused with the statements that make it whole, and keeps books and ids', async () => {
      const url = await freshDatabase();
      await execute(
        url,
        `create sequence books_id_seq maxvalue 9007199254740991;
         create table books (
           id bigint primary key default nextval('books_id_seq') check (id between 1 and 9007199254740991),
           title text not null default '', author text not null default '', year bigint not null default 0
         ) partition by hash (id);
         create table books_0 partition of books for values with (modulus 2, remainder 0);
         create table books_1 partition of books for values with (modulus 2, remainder 1);
         insert into books (title) values ('A'), ('B')`,
      );
      const message = await startTestService(url).then(String, (error: Error) => error.message);
      const sentence =
        /^DB_URL: .* cannot be opened: its table "books" is in partitions, which are no longer served: .* run "([^"]+)" as its owner, and grant its rights again\.$/;
      assert.match(message, sentence);
      await execute(url, sentence.exec(message)?.[1] ?? '');
      const { client } = await start(url);
      const found = (await client.list()).map(({ id, title }) => [id, title]);
      assert.deepEqual(found, [
        [1, 'A'],
        [2, 'B'],
      ]);
      assert.equal((await client.create({})).id, 3);
    });

    test('rules 4 and 27: a database whose encoding cannot hold every text is refused', async (context) => {
      const url = await freshDatabase();
      const latin = `${url}_latin`;
      const name = new URL(latin).pathname.slice(1);
      await execute(url, `create database ${name} encoding 'LATIN1' locale 'C' template template0`);
      context.after(() => execute(url, `drop database ${name} with (force)`));
      await assert.rejects(startTestService(latin), /^Error: DB_URL: .* its encoding is LATIN1, /);
    });

    test('rule 12: no id beyond 2^53-1 is ever given out', async () => {
      const { client, dbUrl } = await start();
      await execute(dbUrl, "select setval('books_id_seq', 9007199254740990)");
      const last = await client.create({ title: 'last' });
      assert.equal(last.id, 9007199254740991);
      assert.equal((await client.request('POST', '/book', { body: {} })).status, 503);
      assert.deepEqual(await client.list(), [last]);
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
     grant usage, select, update on sequence books_id_seq, book_log_number to ${url.username}`,
  );
  context.after(() => execute(dbUrl, `drop owned by ${url.username}; drop role ${url.username}`));
  return url.href;
}

/** Starts a service that stops at the end of the test, on a new database unless one is given. */
async function start(
  dbUrl?: string,
  times?: { readonly [Area in keyof Times]?: Partial<Times[Area]> },
  env: Record<string, string> = WITHOUT_INDEX,
): Promise<RunningService> {
  const url = dbUrl ?? (await freshDatabase());
  return startTestService(url, env, undefined, times && timesWith(times));
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
