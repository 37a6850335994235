// A database of several hosts: one accepts writes, its standby follows by PostgreSQL's replication, and any of them may
// die, take over, or stop accepting writes. How long that may take is tested in test/release/answers.test.ts.

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { linksOf } from '../../conformance/answers.ts';
import { fill, manyBooks } from '../support/books.ts';
import { type Outcome, runCommand } from '../support/command.ts';
import { Load } from '../support/load.ts';
import { execute, PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { SQLITE, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** The standby must have a write before it is acknowledged. Without this, the primary continues without it. */
const SYNCHRONOUS = ['synchronous_standby_names=*'];

/** An insertion of books waits until the table `go` has a row. */
const WAIT_IN_INSERT = `
  create table go ();
  create function wait() returns trigger language plpgsql as $$
    begin
      while not exists (select from go) loop perform pg_sleep(0.02); end loop;
      return null;
    end $$;
  create trigger wait before insert on books for each statement execute function wait();`;

describe('failover', { concurrency: 2 }, () => {
  test('rules 26 and 27: the host that accepts writes is found after a standby and one that is silent; a standby alone is refused', async () => {
    const { primary, standby } = await PostgresServer.startPair(SYNCHRONOUS);
    const silent = await TcpProxy.start(primary);
    silent.cut();
    for (const search of ['', 'target_session_attrs=read-write', 'target_session_attrs=primary']) {
      const { client } = await startTestService(urlOf([silent, standby, primary], search));
      assert.equal((await client.create({ title: search })).title, search);
    }
    for (const hosts of [[standby], [standby, standby]]) {
      const refusal = /^Error: DB_URL: .* cannot be opened: (.*: )?it is read-only\.$/;
      await assert.rejects(startTestService(urlOf(hosts)), refusal);
    }
  });

  test('rule 23: a write that the synchronous standby does not have gets 503, never acknowledged', async () => {
    const { primary, standby } = await PostgresServer.startPair(SYNCHRONOUS);
    const { client } = await startTestService(urlOf([primary, standby]));
    const book = await client.create({ title: 'on both' });
    const path = `/book/${book.id}`;
    await standby.kill('SIGQUIT');
    const writes = await Promise.all([
      client.request('POST', '/book', { body: { title: 'on one' } }),
      client.request('PUT', path, { body: { title: 'on one' } }),
    ]);
    for (const { status, headers } of writes) {
      assert.equal(status, 503);
      assert.ok(Number(headers.get('retry-after')) > 0);
    }
    assert.deepEqual((await client.request('GET', path)).data, book); // not visible yet
    await standby.startAgain();
    await waitUntil(async () => (await client.request('POST', '/book', { body: {} })).status === 201);
    await waitUntil(async () => (await client.request('DELETE', path)).status === 200);
  });

  test('rule 23: another host gets the writes when one stops accepting them, though no connection breaks', async () => {
    const [first, second] = [await PostgresServer.start(), await PostgresServer.start()];
    await (await startTestService(second.url())).stop(); // creates the table
    await setReadOnly(second, 'on');
    const url = urlOf([first, second], 'target_session_attrs=any'); // not checked on connections
    const { client } = await startTestService(url);
    const { id } = await client.create({ title: 'on the first' });
    await setReadOnly(second, 'off');
    await setReadOnly(first, 'on');
    const create = () => client.request('POST', '/book', { body: { title: 'on the second' } });
    await waitUntil(async () => {
      await create();
      return (await execute(second.url(), 'select from books')).length > 0;
    });
    await waitUntil(async () => (await client.request('GET', `/book/${id}`)).data?.title !== 'on the first');
    assert.equal((await create()).status, 201);
  });

  test('rule 23: nothing stale is read when a host has become a standby under the same name', async () => {
    const { primary, standby } = await PostgresServer.startPair(SYNCHRONOUS);
    const proxy = await TcpProxy.start(primary);
    const { client } = await startTestService(urlOf([proxy], 'target_session_attrs=read-write'));
    const { id } = await client.create({});
    const statusOf = async (path: string) => (await client.request('GET', path)).status;
    proxy.target = standby;
    proxy.reset();
    await waitUntil(async () => {
      return (await statusOf(`/book/${id}`)) === 503 || assert.fail('the standby was read'); // it has the book by now
    });
    assert.equal(await statusOf('/books'), 503);
    proxy.target = primary;
    assert.equal(await statusOf(`/book/${id}`), 200);
  });

  for (const end of ['is killed', 'lives on']) {
    test(`rules 23 and H2: a standby is promoted while its primary ${end}: writes resume there, no acknowledged one is lost, a start finds it, and followers begin again`, async (context) => {
      const { primary, standby } = await PostgresServer.startPair(SYNCHRONOUS);
      const url = urlOf([primary, standby]);
      const { client } = await startTestService(url);
      const load = await Load.start(context, client);
      const { next = '' } = linksOf(await client.request('GET', '/changes'));
      if (end === 'is killed') await primary.kill('SIGKILL');
      await execute(standby.url(), 'select pg_promote()');
      await load.moreWrites(50);
      await load.stop(); // compares the books with the answers
      assert.equal((await client.request('GET', next)).status, 410);
      const { id } = await (await startTestService(url)).client.create({ title: end });
      assert.equal((await execute(standby.url(), `select from books where id = ${id}`)).length, 1);
    });
  }

  test('rule 23: with two primaries, each process leaves the old one by itself, and does not come back when the new one fails', async () => {
    const { primary, standby } = await PostgresServer.startPair();
    const { client } = await startTestService(urlOf([primary, standby]));
    await client.create({ title: 'on both' });
    await waitUntil(async () => (await execute(standby.url(), 'select from books')).length === 1);
    await execute(standby.url(), 'select pg_promote()');
    await execute(standby.url(), "insert into books (title) values ('on the new one')");
    await waitUntil(async () => (await client.list()).length === 2);
    await standby.kill('SIGKILL');
    await waitUntil(async () => (await client.request('GET', '/books')).status === 503);
    for (let round = 0; round < 20; round += 1) {
      assert.equal((await client.request('POST', '/book', { body: {} })).status, 503);
      await pause(100);
    }
    await standby.startAgain();
    await waitUntil(async () => (await client.request('POST', '/book', { body: {} })).status === 201);
    assert.equal((await execute(primary.url(), 'select from books')).length, 1);
  });

  const transfers: Readonly<Record<string, (to: string, from: string) => Promise<Outcome>>> = {
    import: (DB_URL) => {
      const rows = Readable.from([Buffer.from('title\nafter\n')]);
      return runCommand(['import', '-', '--on-duplicate', 'add'], { DB_URL }, { stdin: rows });
    },
    copy: (to, from) => runCommand(['copy', from, to], {}),
  };
  for (const [name, transfer] of Object.entries(transfers)) {
    test(`rule 23: nothing counts as stored on the old one of two primaries: ${name}`, async () => {
      const { primary, standby } = await PostgresServer.startPair();
      const [to, from] = [urlOf([primary, standby]), await SQLITE.freshUrl()];
      await fill(from, manyBooks(1));
      await fill(to, []);
      await execute(primary.url(), WAIT_IN_INSERT);
      const ended = transfer(to, from);
      const waiting = "select from pg_stat_activity where wait_event = 'PgSleep'";
      await waitUntil(async () => (await execute(primary.url(), waiting)).length === 1, ended);
      await execute(standby.url(), 'select pg_promote()');
      for (const server of [primary, standby]) await execute(server.url(), 'insert into go default values');
      const { code, stdout, stderr } = await ended;
      assert.equal(code, 1);
      const reason = `127.0.0.1:${standby.port} has been promoted meanwhile: the next run uses it.`;
      assert.ok(stderr.includes(reason), stderr);
      assert.equal(stdout, name === 'copy' ? '' : '1 row read: 0 imported, 0 refused.\n');
      assert.equal((await transfer(to, from)).code, 0);
      assert.equal((await execute(standby.url(), 'select from books')).length, 1);
    });
  }
});

/** For new connections; those that exist follow a little later. */
async function setReadOnly(server: PostgresServer, value: 'on' | 'off'): Promise<void> {
  const settle = server.url('postgres', 'options=-c%20default_transaction_read_only%3Doff');
  await execute(settle, `alter system set default_transaction_read_only = ${value}`);
  await execute(settle, 'select pg_reload_conf()');
  const shown = "select from pg_settings where name = 'default_transaction_read_only' and setting = ";
  await waitUntil(async () => (await execute(server.url(), `${shown}'${value}'`)).length > 0);
}

function urlOf(hosts: readonly { readonly port: number }[], search = ''): string {
  const list = hosts.map(({ port }) => `127.0.0.1:${port}`).join(',');
  return `postgres://postgres:password@${list}/postgres${search && `?${search}`}`;
}
