// What other roles of a PostgreSQL server may do: nothing by the triggers of the log, whose function has the rights of the owner.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext } from 'node:test';
import type pg from 'pg';
import { runCommand } from '../support/command.ts';
import { assertOnlyRead } from '../support/only-read.ts';
import { connectTo, execute, freshDatabase } from '../support/postgres.ts';
import { startTestService, temporaryFolder, testOnPostgres as test } from '../support/service.ts';

/** A connection of a new role. @param rights statements that give it some; `ROLE` is its name. */
async function connectAs(context: TestContext, dbUrl: string, rights = 'select'): Promise<pg.Client> {
  return await connectTo(context, await newRole(context, dbUrl, rights));
}

/** @returns the URL with a new role. */
async function newRole(context: TestContext, dbUrl: string, rights: string): Promise<string> {
  const url = new URL(dbUrl);
  url.username = `role_of_${url.pathname.slice(1)}`;
  url.password = 'only use';
  const role = url.username;
  await execute(dbUrl, `create role ${role} login password 'only use'; ${rights.replaceAll('ROLE', role)}`);
  const drop = `begin read write; drop owned by ${role} cascade; drop role ${role}; commit`; // a database may be read-only
  context.after(() => execute(dbUrl, drop));
  return url.href;
}

/** The rights of docs/postgresql.md. */
const SERVING = `
  grant select, insert, update, delete
    on books, book_requests, book_imports, book_log, book_log_state, book_events, book_index, book_index_state to ROLE;
  grant usage, select, update on sequence books_id_seq, book_log_number to ROLE`;

/** Tables of the role. The ids of one have a cast to a number, which is a function of the role. */
const OWN_TABLES = `
  create type pg_temp.own as (value bigint);
  create function pg_temp.take(pg_temp.own) returns bigint language plpgsql as $$ begin
    execute format('grant all on all tables in schema public to %I', session_user);
    return ($1).value;
  end $$;
  create cast (pg_temp.own as bigint) with function pg_temp.take(pg_temp.own) as assignment;
  create temporary table books (id pg_temp.own, title text, author text, year bigint);
  create temporary table other (id bigint, title text, author text, year bigint)`;
const OWN_TRIGGERS = ['books', 'other'].flatMap((table) => [
  `create trigger d after delete on pg_temp.${table} referencing old table as before for each statement execute function book_log_write()`,
  `create trigger t before truncate on pg_temp.${table} execute function book_log_write()`,
]);
const OWN_WRITES = `
  insert into pg_temp.books values (row(1), 'forged', 'forged', 1); delete from pg_temp.books; truncate pg_temp.books;
  insert into pg_temp.other values (1, 'forged', 'forged', 1); delete from pg_temp.other; truncate pg_temp.other`;

const ALL_MAY_EXECUTE = `
  grant execute on function book_log_write() to public;
  grant execute on function book_log_write() to ROLE with grant option`;

const rowsOfLog = (dbUrl: string) => execute(dbUrl, 'select * from book_log order by number');

describe('the rights of other roles on PostgreSQL', () => {
  test('nobody but the owner may execute what runs as the owner: a start sees to it, and keeps the log', async (context) => {
    const dbUrl = await freshDatabase();
    const before = await startTestService(dbUrl);
    await before.client.create({ title: 'A' });
    const newcomer = await connectAs(context, dbUrl);
    await newcomer.query(OWN_TABLES);
    const refuses = async () => {
      for (const trigger of OWN_TRIGGERS)
        await assert.rejects(
          newcomer.query(trigger),
          /^error: permission denied for function book_log_write$/,
        );
    };
    await refuses();
    await before.stop();
    await execute(dbUrl, ALL_MAY_EXECUTE.replaceAll('ROLE', String(newcomer.user)));
    const rows = await rowsOfLog(dbUrl);
    const { client } = await startTestService(dbUrl);
    await refuses();
    assert.deepEqual(await rowsOfLog(dbUrl), rows);
    await client.create({ title: 'B' });
    assert.equal((await rowsOfLog(dbUrl)).length, rows.length + 1);
  });

  test('triggers that another role has made on its own tables, while it could, do nothing', async (context) => {
    const dbUrl = await freshDatabase();
    const { client } = await startTestService(dbUrl);
    await client.create({ title: 'A' });
    const newcomer = await connectAs(context, dbUrl, ALL_MAY_EXECUTE);
    await newcomer.query(OWN_TABLES);
    for (const trigger of OWN_TRIGGERS) await newcomer.query(trigger);
    const rows = await rowsOfLog(dbUrl);
    await newcomer.query(OWN_WRITES);
    assert.deepEqual(await rowsOfLog(dbUrl), rows);
    await assert.rejects(newcomer.query('select from public.books'), /permission denied for table books/);
    assert.equal((await client.list()).length, 1);
  });

  test('a role that may only write books cannot say what its writes are a part of', async (context) => {
    const dbUrl = await freshDatabase();
    const { client } = await startTestService(dbUrl);
    const since = new Date().toISOString();
    for (const title of ['A', 'B']) await client.create({ title });
    await client.request('PUT', '/book/1', { body: { year: 1 } });
    const { data } = await client.request('GET', '/book/1/history?limit=1');
    const undone = await client.request('POST', '/undo', { body: { change: data[0].change } });
    const clerk = await connectAs(
      context,
      dbUrl,
      'grant select, insert, update, delete on books to ROLE; grant usage on sequence books_id_seq to ROLE',
    );
    const part = `undo ${undone.data.change}`;
    await clerk.query(`set book_catalogue.part_of = '${part}'; set book_catalogue.event = '${part}'`);
    await clerk.query(
      "begin; delete from books where id = 2; insert into books (title) values ('C'); commit",
    );
    const parts = await execute(
      dbUrl,
      'select book::integer from book_log where part_of is not null and book > 0',
    );
    assert.deepEqual(parts, [{ book: 1 }]);
    const { message } = await client.request('POST', '/undo', { body: { change: undone.data.change } });
    assert.equal(message, 'Changes undone successfully');
    const found = (await client.list()).map(({ title, year }) => [title, year]);
    assert.deepEqual(found, [
      ['A', 1],
      ['C', 0],
    ]);
    assert.equal((await client.request('POST', '/undo', { body: { since } })).data.undone, 2);
    assert.deepEqual(await client.list(), []);
  });

  test('rule 27: a role that cannot take a right back refuses to start', async (context) => {
    const dbUrl = await freshDatabase();
    await (await startTestService(dbUrl)).stop();
    const clerk = await connectAs(context, dbUrl, 'grant all on all tables in schema public to ROLE');
    await execute(dbUrl, 'grant execute on function book_log_write() to public');
    const url = new URL(dbUrl);
    url.username = String(clerk.user);
    url.password = 'only use';
    const sentence =
      /^Error: DB_URL: .* other roles may execute its function book_log_write\(\), and become its owner by it: start the service once as the owner\.$/;
    await assert.rejects(startTestService(url.href, { FIND: 'off' }), sentence);
    await (await startTestService(dbUrl)).stop();
    await (await startTestService(url.href, { FIND: 'off' })).stop();
  });

  test('an import without the right to make temporary tables stores nothing, and says so', async (context) => {
    const dbUrl = await freshDatabase();
    const owners = await startTestService(dbUrl);
    await owners.stop();
    const roleUrl = await newRole(context, dbUrl, SERVING);
    await execute(dbUrl, `revoke temporary on database ${new URL(dbUrl).pathname.slice(1)} from public`);
    const file = join(temporaryFolder(), 'books.csv');
    writeFileSync(file, 'title\nB\n');
    const { code, stderr } = await runCommand(['import', file], { DB_URL: roleUrl });
    assert.equal(code, 1);
    assert.match(
      stderr,
      /: permission denied to create temporary tables in database ".+"\. Nothing was imported\.\n$/,
    );
    const { client } = await startTestService(roleUrl, { FIND: 'off' });
    assert.equal((await client.request('POST', '/import', { body: Buffer.from('title\nB\n') })).status, 503);
    assert.deepEqual(await client.list(), []);
  });

  test('rules 13 and 27: a start, export, import and copy refuse a table of which policies hide rows from the role, and only that', async (context) => {
    const dbUrl = await freshDatabase();
    const owners = await startTestService(dbUrl);
    await owners.client.create({ title: 'A', author: 'Emma' });
    await owners.client.request('GET', '/books?q=a'); // the index is complete
    await owners.stop();
    const roleUrl = await newRole(context, dbUrl, SERVING);
    const role = new URL(roleUrl).username;
    const file = join(temporaryFolder(), 'books.csv');
    writeFileSync(file, 'title\nB\n');
    const sentence = (table: string) =>
      `DB_URL: ${roleUrl.replace(/\/\/.*@/, '//')} cannot be opened: row level security hides rows of its table "${table}"` +
      ' from this role: give it the attribute bypassrls, or a policy that shows all.';
    const refuses = async (table: string) =>
      await assert.rejects(startTestService(roleUrl), { message: sentence(table) });
    const serves = async (url = roleUrl) => {
      const { client, stop } = await startTestService(url);
      assert.equal((await client.list()).length, 1);
      for (const path of ['/books?q=a', '/suggestions?q=emna'])
        assert.equal((await client.request('GET', path)).data.length, 1);
      for (const headers of [{}, { 'if-match': '*' }])
        assert.equal((await client.request('PUT', '/book/1', { body: { year: 1 }, headers })).status, 200);
      await stop();
      assert.match((await runCommand(['export'], { DB_URL: url })).stderr, /^1 book exported\.\n$/);
    };
    await serves();
    for (const table of [
      ...[
        'book_events',
        'book_index',
        'book_imports',
        'book_index_state',
        'book_log',
        'book_log_state',
        'book_requests',
        'books',
      ],
    ]) {
      await execute(dbUrl, `alter table ${table} enable row level security`);
      await refuses(table);
      await execute(dbUrl, `alter table ${table} disable row level security`);
    }

    await execute(dbUrl, 'alter table books enable row level security');
    for (const command of [['export'], ['import', file], ['undo', '--list'], ['forget', '1']]) {
      const { code, stdout, stderr } = await runCommand(command, { DB_URL: roleUrl });
      assert.deepEqual([code, stdout, stderr.split('\n').at(-2)], [1, '', sentence('books')]);
    }
    const copy = ['copy', roleUrl, `sqlite:${join(temporaryFolder(), 'books.db')}`];
    assert.match((await runCommand(copy, {})).stderr, /^FROM: .* hides rows of its table "books"/);
    await serves(dbUrl); // a superuser
    await execute(dbUrl, `alter role ${role} bypassrls`);
    await serves();
    await execute(dbUrl, `alter role ${role} nobypassrls; alter table books owner to ${role}`);
    await serves();
    await execute(dbUrl, 'alter table books force row level security');
    await refuses('books');
    await execute(dbUrl, `alter table books owner to postgres; grant all on books to ${role}`);
    await execute(dbUrl, `create policy whole on books to ${role} using (true)`);
    await serves();
    await execute(dbUrl, `create policy less on books as restrictive for select using (title <> 'A')`);
    await refuses('books');
    await execute(dbUrl, 'drop policy less on books; alter policy whole on books using (year < 0)');
    await refuses('books');
    await execute(dbUrl, 'drop policy whole on books; create policy whole on books for select using (true)');
    await refuses('books'); // a change would find no book
  });

  test('rule 13: a service from whose role rows are hidden while it runs shows none instead of some', async (context) => {
    const dbUrl = await freshDatabase();
    const owners = await startTestService(dbUrl);
    await owners.client.create({ title: 'A' });
    await owners.stop();
    const roleUrl = await newRole(context, dbUrl, SERVING);
    const { client } = await startTestService(roleUrl);
    const paths = ['/books', '/books?title=a', '/book/1', '/changes', '/book/1/history'];
    const statuses = async () =>
      await Promise.all(paths.map(async (path) => (await client.request('GET', path)).status));
    assert.deepEqual(await statuses(), [200, 200, 200, 200, 200]);
    await execute(dbUrl, "create policy others on books using (title <> 'A')");
    await execute(dbUrl, 'alter table books enable row level security');
    assert.deepEqual(await statuses(), [503, 503, 503, 503, 503]);
    await execute(dbUrl, 'alter table books disable row level security');
    assert.deepEqual(await statuses(), [200, 200, 200, 200, 200]);
  });

  test('export, copy FROM and undo without --yes only read: of a read-only database, and as a role that may only read', async (context) => {
    const dbUrl = await freshDatabase();
    const { client, stop } = await startTestService(dbUrl);
    for (const title of ['A', 'B']) await client.create({ title });
    const since = (await client.request('GET', '/book/1/history')).data[0].at;
    await stop();
    const readUrl = await newRole(
      context,
      dbUrl,
      'grant select on books, book_log, book_log_state, book_events to ROLE',
    );
    await assertOnlyRead(readUrl, since);
    await execute(
      dbUrl,
      `alter database ${new URL(dbUrl).pathname.slice(1)} set default_transaction_read_only = on`,
    );
    await assertOnlyRead(dbUrl, since);
    for (const command of [
      ['undo', '--since', since, '--yes'],
      ['forget', '1', '--yes'],
    ])
      assert.match(
        (await runCommand(command, { DB_URL: dbUrl })).stderr,
        / cannot be opened: it is read-only\.\n$/,
      );
    const demanding = { DB_URL: `${dbUrl}?target_session_attrs=read-write` };
    assert.match((await runCommand(['export'], demanding)).stderr, /: it is read-only\.\n$/);
  });

  test('a table of version 1.0 is exported and copied by a role that may only read it', async (context) => {
    const dbUrl = await freshDatabase();
    await execute(
      dbUrl,
      `create sequence books_id_seq;
       create table books (id bigint primary key default nextval('books_id_seq'), title text not null default '',
         author text not null default '', year bigint not null default 0);
       insert into books (title) values ('A'), ('B')`,
    );
    const readUrl = await newRole(context, dbUrl, 'grant select on books to ROLE');
    assert.match((await runCommand(['export'], { DB_URL: readUrl })).stderr, /^2 books exported/);
    const copy = await runCommand(['copy', readUrl, `sqlite:${join(temporaryFolder(), 'books.db')}`], {});
    assert.match(copy.stdout, /^2 books copied .*, verified/);
    assert.deepEqual(await execute(dbUrl, "select to_regclass('book_log') as log"), [{ log: null }]);
  });
});
