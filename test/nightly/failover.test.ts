// A database of several hosts: one accepts writes, its standby follows by PostgreSQL's replication, and any of them may
// die, take over, or stop accepting writes. How long that may take is tested in test/release/answers.test.ts.

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { readDbUrl } from '../../src/stores/open.ts';
import { TIMES } from '../../src/times.ts';
import { type Outcome, runCommand } from '../support/command.ts';
import { Load } from '../support/load.ts';
import { unusedPort } from '../support/ports.ts';
import { execute, PostgresServer } from '../support/postgres.ts';
import { BlackHole, TcpProxy } from '../support/proxy.ts';
import { SQLITE, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** The standby must have a write before it is acknowledged. */
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

describe('failover', { concurrency: true }, () => {
  // One at a time: they share both servers, and each leaves them as it found them.
  describe('several hosts', { concurrency: 1 }, () => {
    let primary: PostgresServer;
    let standby: PostgresServer;
    let deadPort: number;
    let silent: BlackHole;

    before(async () => {
      ({ primary, standby } = await PostgresServer.startPair(SYNCHRONOUS));
      deadPort = await unusedPort();
      silent = await BlackHole.open();
    });
    after(async () => {
      silent.close();
      await Promise.all([primary.remove(), standby.remove()]);
    });

    describe('the host that accepts writes', { concurrency: true }, () => {
      const lists: [where: string, ports: () => number[], search: string][] = [
        ['as the first', () => [primary.port, standby.port], ''],
        ['after one that is down', () => [deadPort, primary.port, standby.port], ''],
        ['after one that is silent', () => [silent.port, standby.port, primary.port], ''],
        ...['', 'target_session_attrs=read-write', 'target_session_attrs=primary'].map(
          (search): [string, () => number[], string] => [
            'after a standby',
            () => [standby.port, primary.port],
            search,
          ],
        ),
      ];
      for (const [where, ports, search] of lists) {
        test(`rule 26: is found ${where}; ${search || 'without a parameter'}`, async (context) => {
          const service = await startTestService(urlOf(ports(), search));
          context.after(() => service.stop());
          const { id } = await service.client.create({ title: where });
          assert.equal((await service.client.request('DELETE', `/book/${id}`)).status, 200);
        });
      }
    });

    test('rule 27: if no host accepts writes, one sentence has the reason of each', async () => {
      await assert.rejects(startTestService(urlOf([deadPort, standby.port])), ({ message }: Error) => {
        assert.match(
          message,
          new RegExp(
            `^DB_URL: postgres://127\\.0\\.0\\.1:${deadPort},127\\.0\\.0\\.1:${standby.port}/postgres cannot be opened: ` +
              `127\\.0\\.0\\.1:${deadPort}: connection refused; 127\\.0\\.0\\.1:${standby.port}: it is read-only\\.$`,
          ),
        );
        return true;
      });
    });

    for (const wanted of ['read-only', 'standby', 'prefer-standby', 'READ-WRITE', '']) {
      test(`rule 26: target_session_attrs=${wanted} is refused by name`, async () => {
        const url = urlOf([primary.port], `target_session_attrs=${wanted}`);
        await assert.rejects(
          startTestService(url),
          /^Error: DB_URL: .*target_session_attrs must be one of any,/,
        );
      });
    }

    test('rule 26: hosts are shown as configured, without username and password; the default port is 5432', async () => {
      const url = `postgres://me:s%40cret,x@[::1]:${deadPort},localhost:${deadPort},standby.invalid/books`;
      await assert.rejects(startTestService(url), ({ message }: Error) => {
        const shown = `DB_URL: postgres://[::1]:${deadPort},localhost:${deadPort},standby.invalid/books cannot be opened: `;
        assert.ok(message.startsWith(shown), message);
        for (const host of [`[::1]:${deadPort}: `, `localhost:${deadPort}: `, 'standby.invalid:5432: ']) {
          assert.ok(message.includes(host), message);
        }
        assert.doesNotMatch(message, /cret|me:/);
        return true;
      });
    });

    test('rule 27: a single standby is refused', async () => {
      await assert.rejects(
        startTestService(urlOf([standby.port])),
        /^Error: DB_URL: .* cannot be opened: it is read-only\.$/,
      );
    });

    test('rule 26: an invalid list of hosts is refused', async () => {
      for (const hosts of ['a:1,b:port', 'a b,c', '[::1,b', 'a,@b:1:2']) {
        await assert.rejects(
          startTestService(`postgres://me:password@${hosts}/books`),
          /^Error: DB_URL is not a valid URL/,
        );
      }
    });

    test('rule 23: a write that the synchronous standby does not have gets 503, never acknowledged', async (context) => {
      const service = await startTestService(urlOf([primary.port, standby.port]));
      context.after(() => service.stop());
      const { client } = service;
      const book = await client.create({ title: 'on both' });
      await standby.kill('SIGQUIT');
      try {
        const writes = await Promise.all([
          client.request('POST', '/book', { body: { title: 'on one' } }),
          client.request('PUT', `/book/${book.id}`, { body: { title: 'on one' } }),
        ]);
        for (const { status, headers } of writes) {
          assert.equal(status, 503);
          assert.ok(Number(headers.get('retry-after')) > 0);
        }
        assert.deepEqual((await client.request('GET', `/book/${book.id}`)).data, book); // not visible yet
      } finally {
        await standby.startAgain();
      }
      await waitUntil(async () => (await client.request('POST', '/book', { body: {} })).status === 201);
      await waitUntil(async () => (await client.request('DELETE', `/book/${book.id}`)).status === 200);
    });

    for (const hosts of ['one', 'several']) {
      test(`rule 23: writes to a host that stops accepting them get 503, never 500; hosts in DB_URL: ${hosts}`, async (context) => {
        const ports = hosts === 'one' ? [primary.port] : [standby.port, primary.port];
        const service = await startTestService(urlOf(ports));
        context.after(() => service.stop());
        const { client } = service;
        const book = await client.create({ title: 'here' });
        const changes: [string, string, object?][] = [
          ['POST', '/book', { body: {} }],
          ['PUT', `/book/${book.id}`, { body: { year: 1 } }],
          ['DELETE', `/book/${book.id}`],
        ];
        await setReadOnly(primary, 'on');
        try {
          await waitUntil(
            async () => (await client.request(...(changes[0] as [string, string]))).status === 503,
          );
          const read = await client.request('GET', `/book/${book.id}`);
          if (hosts === 'one') assert.deepEqual(read.data, book);
          else assert.ok(read.status === 200 || read.status === 503); // the service may be looking for another host
          for (const change of changes) assert.equal((await client.request(...change)).status, 503);
        } finally {
          await setReadOnly(primary, 'off');
        }
        await waitUntil(async () => (await client.request('POST', '/book', { body: {} })).status === 201);
        for (const change of changes.slice(1)) assert.equal((await client.request(...change)).status, 200);
      });
    }

    test('rule 23: nothing stale is read when a host has become a standby under the same name', async (context) => {
      const proxy = await TcpProxy.start(primary);
      context.after(() => proxy.stop());
      const service = await startTestService(urlOf([proxy.port], 'target_session_attrs=read-write'));
      context.after(() => service.stop());
      const { id } = await service.client.create({});
      proxy.target = standby;
      proxy.reset();
      await waitUntil(async () => {
        const { status } = await service.client.request('GET', `/book/${id}`);
        return status === 503 || assert.fail('the standby was read'); // it has the book by now
      });
      assert.equal((await service.client.request('GET', '/books')).status, 503);
      proxy.target = primary;
      assert.equal((await service.client.request('GET', `/book/${id}`)).status, 200);
    });

    test('rule 23: another host gets the writes when one stops accepting them, though no connection breaks', async (context) => {
      const second = await PostgresServer.start();
      context.after(() => second.remove());
      await (await startTestService(second.url())).stop(); // creates the table
      await setReadOnly(second, 'on');
      const url = urlOf([primary.port, second.port], 'target_session_attrs=any'); // not checked on connections
      const service = await startTestService(url, { FIND: 'off' }); // the index would write, and get the first refusal
      context.after(() => service.stop());
      await service.client.create({ title: 'on the first' });
      await setReadOnly(second, 'off');
      await setReadOnly(primary, 'on');
      try {
        const create = async () => (await service.client.request('POST', '/book', { body: {} })).status;
        // The first one accepts writes until each of its processes has reloaded its settings. After a refusal, the hosts
        // are asked before anything else is sent, unless they take more than 1.5 s to answer.
        await waitUntil(async () => (await create()) === 503);
        const began = performance.now();
        let status = await create();
        assert.ok(status === 201 || performance.now() - began > 1000, `${status} at once`);
        while (status !== 201) status = await create();
        assert.equal((await execute(second.url(), 'select from books')).length, 1);
      } finally {
        await setReadOnly(primary, 'off');
      }
    });
  });

  for (const end of ['is killed', 'falls silent']) {
    test(`rule 23: the primary ${end}, its standby is promoted: writes resume, and no acknowledged write is lost`, async (context) => {
      const { primary, standby } = await PostgresServer.startPair(SYNCHRONOUS);
      context.after(() => Promise.all([primary.remove(), standby.remove()]));
      const proxy = await TcpProxy.start(primary);
      context.after(() => proxy.stop());
      const first = end === 'is killed' ? primary : proxy;
      const service = await startTestService(urlOf([first.port, standby.port]));
      context.after(() => service.stop());
      const load = await Load.start(context, service.client);
      if (end === 'is killed') await primary.kill('SIGKILL');
      else proxy.cut();
      await load.allRefused();
      await execute(standby.url(), 'select pg_promote()');
      context.diagnostic(`writes resumed ${await load.moreWrites(1)} ms after the promotion`);
      await load.moreWrites(50);
      await load.stop();
    });
  }

  test('rule 23: a standby is promoted while its primary lives on: writes resume there, and starts follow in any order of the hosts', async (context) => {
    const { primary, standby } = await PostgresServer.startPair(SYNCHRONOUS);
    context.after(() => Promise.all([primary.remove(), standby.remove()]));
    const service = await startTestService(urlOf([primary.port, standby.port]));
    context.after(() => service.stop());
    const load = await Load.start(context, service.client);
    await execute(standby.url(), 'select pg_promote()');
    context.diagnostic(`writes resumed ${await load.moreWrites(1)} ms after the promotion`);
    await load.moreWrites(50);
    await load.stop();
    for (const ports of [
      [primary.port, standby.port],
      [standby.port, primary.port],
    ]) {
      const { client, stop } = await startTestService(urlOf(ports));
      context.after(stop);
      const { id } = await client.create({ title: 'after the promotion' });
      const stored = await execute(standby.url(), `select from books where id = ${id}`);
      assert.equal(stored.length, 1);
    }
  });

  for (const speed of ['answers', 'answers late']) {
    test(`rule 23: once one process uses the new one of two primaries, no other one stays on the old one, which ${speed}`, async (context) => {
      const { primary, standby } = await PostgresServer.startPair(); // the primary continues without its standby
      context.after(() => Promise.all([primary.remove(), standby.remove()]));
      const url = urlOf([primary.port, standby.port]);
      const before = await startTestService(url);
      context.after(() => before.stop());
      const sessions = await openSessions(primary.url(), 40); // of several more processes
      await execute(standby.url(), 'select pg_promote()');
      if (speed === 'answers late') process.kill(primary.pid, 'SIGSTOP'); // it takes no new connections
      const after = await startTestService(url);
      context.after(() => after.stop());
      process.kill(primary.pid, 'SIGCONT');
      await waitUntil(async () => (await countSessions(primary.url(), sessions)) === 0);
      const book = await after.client.create({ title: 'on the new one' });
      await waitUntil(async () => {
        const { status, data } = await before.client.request('GET', `/book/${book.id}`);
        if (status !== 503) assert.deepEqual(data, book);
        return status === 200;
      });
    });
  }

  const transfers: Readonly<Record<string, (to: string, from: string) => Promise<Outcome>>> = {
    import: (DB_URL) => {
      const rows = Readable.from([Buffer.from('title\nafter\n')]);
      return runCommand(['import', '-', '--on-duplicate', 'add'], { DB_URL }, undefined, undefined, rows);
    },
    copy: (to, from) => runCommand(['copy', from, to], {}),
  };
  for (const [name, transfer] of Object.entries(transfers)) {
    test(`rule 23: nothing counts as stored on the old one of two primaries: ${name}`, async (context) => {
      const { primary, standby } = await PostgresServer.startPair(); // the primary continues without its standby
      context.after(() => Promise.all([primary.remove(), standby.remove()]));
      const to = urlOf([primary.port, standby.port]);
      const from = await SQLITE.freshUrl();
      const source = await (await readDbUrl(from)).openBulk('write', TIMES);
      await source.insert([{ title: 'after', author: '', year: 0 }]);
      await source.close();
      await (await (await readDbUrl(to)).openBulk('write', TIMES)).close();
      await execute(primary.url(), WAIT_IN_INSERT);
      const ended = transfer(to, from);
      const waiting = "select from pg_stat_activity where wait_event = 'PgSleep'";
      await waitUntil(async () => (await execute(primary.url(), waiting)).length === 1);
      await execute(standby.url(), 'select pg_promote()');
      for (const server of [primary, standby]) await execute(server.url(), 'insert into go default values');
      const { code, stdout, stderr } = await ended;
      assert.equal(code, 1);
      assert.ok(
        stderr.includes(`127.0.0.1:${standby.port} has been promoted meanwhile: the next run uses it.`),
        stderr,
      );
      assert.match(stdout, name === 'copy' ? /^$/ : /^0 rows read: 0 imported, 0 refused\.\n$/);
      assert.equal((await transfer(to, from)).code, 0);
      assert.equal((await execute(standby.url(), 'select from books')).length, 1);
    });
  }

  test('rule 23: a process for which nothing fails also leaves the old one of two primaries', async (context) => {
    const { primary, standby } = await PostgresServer.startPair(); // the primary continues without its standby
    context.after(() => Promise.all([primary.remove(), standby.remove()]));
    const service = await startTestService(urlOf([primary.port, standby.port]));
    context.after(() => service.stop());
    await execute(standby.url(), 'select pg_promote()');
    await execute(standby.url(), "insert into books (id, title) values (1, 'on the new one')");
    await waitUntil(async () => {
      const { status, data } = await service.client.request('GET', '/book/1');
      if (status === 200) assert.equal(data.title, 'on the new one');
      return status === 200;
    });
  });
});

/** For new connections; those that exist follow a little later. */
async function setReadOnly(server: PostgresServer, value: 'on' | 'off'): Promise<void> {
  const settle = server.url('postgres', 'options=-c%20default_transaction_read_only%3Doff');
  await execute(settle, `alter system set default_transaction_read_only = ${value}`);
  await execute(settle, 'select pg_reload_conf()');
  const shown = "select from pg_settings where name = 'default_transaction_read_only' and setting = ";
  await waitUntil(async () => (await execute(server.url(), `${shown}'${value}'`)).length > 0);
}

function urlOf(ports: readonly number[], search = ''): string {
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',');
  return `postgres://postgres:password@${hosts}/postgres${search && `?${search}`}`;
}

/** Opens sessions as the service does. @returns their process ids. */
async function openSessions(url: string, count: number): Promise<number[]> {
  const opened = Array.from({ length: count }, async () => {
    const client = new pg.Client({ connectionString: url, application_name: 'book-catalogue' });
    client.on('error', () => {}); // it is ended
    await client.connect();
    const { rows } = await client.query('select pg_backend_pid() as pid');
    return Number(rows[0].pid);
  });
  return await Promise.all(opened);
}

/** How many of these sessions the server still has. */
async function countSessions(url: string, pids: readonly number[]): Promise<number> {
  return (await execute(url, `select from pg_stat_activity where pid in (${pids})`)).length;
}
