// Lists, searches and exports that are read from a standby (DB_READ_URL): it is used, and nobody sees the past by it,
// whatever the standby does. How long a request waits for it is tested in test/release/answers.test.ts.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { type Client, Connection } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { unusedPort } from '../support/ports.ts';
import { connectTo, execute, makeTemplate, PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { ENVIRONMENT } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { OPERATIONS, type Operation, Service, set, urlOf } from './standby.ts';

// One at a time: they share both servers.
describe('a standby that follows', { concurrency: 1 }, () => {
  let primary: PostgresServer;
  let standby: PostgresServer;
  let proxy: TcpProxy;
  let service: Service;
  let client: Client;

  before(async () => {
    ({ primary, standby } = await PostgresServer.startPair());
    proxy = await TcpProxy.start(standby);
    service = await Service.start(primary.url(), urlOf(proxy.port));
    client = service.client;
  });
  afterEach(() => execute(primary.url(), 'delete from books'));
  after(async () => {
    await service.stop();
    await proxy.stop();
    await Promise.all([primary.remove(), standby.remove()]);
  });

  /** Reads that begin after a write, until this many of each kind were answered by the standby. */
  async function readAfterWrites(times: number): Promise<void> {
    const target = new Map<Operation, number>();
    for (const operation of OPERATIONS)
      target.set(operation, (await service.reads(operation, 'standby')) + times);
    for (const operation of OPERATIONS) {
      while ((await service.reads(operation, 'standby')) < (target.get(operation) as number)) {
        await assertNew(operation, await client.create({ title: 'written before' }));
      }
    }
  }

  /** Whether an answer has a book that was written before, and does not have it when it was removed. */
  async function assertNew(operation: Operation, book: Book): Promise<void> {
    const read = async () => {
      const path = operation === 'list' ? '/books' : '/books?q=written&sort=-id';
      const { status, data } = await service.find(path);
      assert.equal(status, 200);
      return data as Book[];
    };
    assert.deepEqual(
      (await read()).find(({ id }) => id === book.id),
      book,
    );
    assert.equal((await client.request('DELETE', `/book/${book.id}`)).status, 200);
    assert.ok(!(await read()).some(({ id }) => id === book.id));
  }

  test('rules 13 and F11: answers lists and searches with all that was written before', async () => {
    await readAfterWrites(3);
    const scans = "select seq_scan + idx_scan as scans from pg_stat_user_tables where relname = 'books'";
    await waitUntil(async () => {
      const [row] = await execute<{ scans: string }>(standby.url(), scans);
      return Number(row?.scans) > 0;
    });
  });

  test('rules 13 and F11: is waited for if it replays late', async () => {
    await set(standby, "recovery_min_apply_delay = '100ms'");
    try {
      await service.untilUsable();
      await readAfterWrites(2);
    } finally {
      await set(standby, 'recovery_min_apply_delay = 0');
    }
  });

  test('rule F11: is read with what another program has committed asynchronously', async (context) => {
    const writer = await connectTo(context, primary.url());
    await writer.query('set synchronous_commit = off');
    for (const operation of OPERATIONS) {
      await service.untilUsable();
      for (const before = await service.reads(operation, 'standby'); ; ) {
        const { rows } = await writer.query<Book>(
          "insert into books (title, author, year) values ('written by another', '', 0) returning *",
        );
        const [book] = rows.map((row) => ({ ...row, id: Number(row.id), year: Number(row.year) }));
        await assertNew(operation, book as Book);
        if ((await service.reads(operation, 'standby')) > before) break;
      }
    }
  });

  test('rule F6: counts what a search finds as it is on the standby', async () => {
    await execute(
      primary.url(),
      "insert into books (title, author, year) select 'counted', '', n from generate_series(1, 1500) n",
    );
    await service.untilUsable();
    const count = () => service.find('/books?q=counted&limit=2', { prefer: 'count=exact' });
    await count(); // from now on, all books are in the index
    for (
      const before = await service.reads('search', 'standby');
      (await service.reads('search', 'standby')) === before;
    ) {
      const { status, headers } = await count();
      assert.deepEqual([status, headers.get('x-total-count')], [200, '1500']);
    }
  });

  test('rules 13 and F11: nothing old is read while it replays nothing; it is used again later', async () => {
    await service.untilUsable();
    await execute(standby.url(), 'select pg_wal_replay_pause()');
    try {
      for (let round = 0; round < 3; round += 1) {
        for (const operation of OPERATIONS)
          await assertNew(operation, await client.create({ title: 'written' }));
      }
      await waitUntil(async () => !(await service.isUsable()));
      const late = (await service.reads('list', 'late')) + (await service.reads('search', 'late'));
      for (const operation of OPERATIONS)
        await assertNew(operation, await client.create({ title: 'written' }));
      // Nobody waits for it any more.
      assert.equal((await service.reads('list', 'late')) + (await service.reads('search', 'late')), late);
    } finally {
      await execute(standby.url(), 'select pg_wal_replay_resume()');
    }
    await service.untilUsable();
    await readAfterWrites(1);
  });

  test('rule 23: what it cancels or breaks off before the answer begins is read from the primary', async (context) => {
    const book = await client.create({ title: 'written once' });
    const enemy = await connectTo(context, standby.url());
    let isOver = false;
    const attack = async () => {
      for (let attacks = 0; !isOver; attacks += 1) {
        const weapon = attacks % 50 === 0 ? 'pg_terminate_backend' : 'pg_cancel_backend';
        await enemy.query(
          `select ${weapon}(pid) from pg_stat_activity where application_name = 'book-catalogue' and state <> 'idle'`,
        );
      }
    };
    const attacked = attack();
    const failed = async () =>
      (await service.reads('search', 'failed')) + (await service.reads('list', 'failed'));
    try {
      for (const before = await failed(); (await failed()) < before + 5; ) {
        const [list, search] = await Promise.all([
          client.request('GET', '/books'),
          service.find('/books?q=once'),
        ]);
        assert.deepEqual([search.status, search.data], [200, [book]]);
        assert.deepEqual([list.status, list.data], [200, [book]]);
      }
    } finally {
      isOver = true;
      await attacked;
    }
  });

  test('rule 13: a list that it breaks off, because the primary has removed old rows, is never cut short', async (context) => {
    await execute(
      primary.url(),
      "insert into books (title, author, year) select repeat('long ', 100000), '', n from generate_series(1, 60) n",
    );
    await set(standby, 'max_standby_streaming_delay = 0');
    context.after(() => set(standby, "max_standby_streaming_delay = '30s'"));
    const copies =
      "select from pg_stat_activity where state = 'active' and query like '%copy%stdout%' and pid <> pg_backend_pid()";
    const isRead = async () => (await execute(standby.url(), copies)).length === 1;
    let reader = new Connection(service.target);
    // A busy machine may read the list from the primary. Otherwise, the rest of it is still at the standby.
    await waitUntil(async () => {
      await service.untilUsable();
      reader.socket.destroy();
      reader = new Connection(service.target);
      const { socket } = reader;
      socket.once('data', () => socket.pause());
      await reader.send(client.bytes('GET', '/books'));
      await waitUntil(() => socket.isPaused());
      return isRead();
    });
    await execute(primary.url(), 'delete from books');
    await execute(primary.url(), 'vacuum books');
    await waitUntil(async () => !(await isRead()));
    reader.socket.resume();
    await reader.closed;
    assert.ok(reader.received.startsWith('HTTP/1.1 200'));
    assert.ok(!reader.received.endsWith('0\r\n\r\n'), 'the list looks complete');
    assert.deepEqual(await client.list(), []);
  });

  test('export: reads it, with all that was written before', async () => {
    const { id } = await client.create({ title: 'exported' });
    const env = { ...ENVIRONMENT, DB_URL: primary.url(), DB_READ_URL: standby.url() };
    const line = `{"id":${id},"title":"exported","author":"","year":0}\n`;
    const exportAll = () => runCommand(['export', '--format', 'jsonl'], env);
    const scans = "select seq_scan + idx_scan as scans from pg_stat_user_tables where relname = 'books'";
    const scansOf = async (server: PostgresServer) => {
      return Number((await execute<{ scans: string }>(server.url(), scans))[0]?.scans);
    };
    const before = await scansOf(standby);
    await waitUntil(async () => {
      const { code, stdout } = await exportAll();
      assert.deepEqual([code, stdout], [0, line]);
      return (await scansOf(standby)) > before;
    });
    await execute(standby.url(), 'select pg_wal_replay_pause()');
    try {
      await client.request('DELETE', `/book/${id}`);
      const { code, stdout } = await exportAll();
      assert.deepEqual([code, stdout], [0, '']);
    } finally {
      await execute(standby.url(), 'select pg_wal_replay_resume()');
    }
  });

  test('rule 23: requests succeed while it is silent, and while it is dead; it is used again later', async () => {
    const book = await client.create({ title: 'written once' });
    const assertAnswers = async () => {
      assert.deepEqual(await client.list(), [book]);
      assert.deepEqual((await service.find('/books?q=once')).data, [book]);
    };
    await service.untilUsable();
    proxy.cut();
    await waitUntil(async () => {
      await assertAnswers();
      return !(await service.isUsable());
    });
    proxy.restore();
    await service.untilUsable();

    await standby.kill('SIGKILL');
    await waitUntil(async () => {
      await assertAnswers();
      return !(await service.isUsable());
    });
    await standby.startAgain();
    await service.untilUsable();
    await readAfterWrites(1);
  });

  test('rule 23: a search is answered by the primary if its connection to the standby falls silent', async () => {
    const book = await client.create({ title: 'sought' });
    await service.untilUsable();
    await service.untilReads('search');
    proxy.swallowAnswersTo('sought');
    for (let time = 0; time < 3; time += 1) {
      const { status, data } = await service.find('/books?q=sought');
      assert.deepEqual([status, data], [200, [book]]);
    }
  });

  test('of several hosts, the first one that is a standby is read', async (context) => {
    const dead = await unusedPort();
    const several = await Service.start(primary.url(), urlOf(dead, primary.port, standby.port));
    context.after(() => several.stop());
    await several.untilReads('list');
  });

  test('rule 25: one that cannot be read before somebody changes something is refused in one sentence', async () => {
    await execute(primary.url(), "create role reader login password 'secret, never shown'");
    await execute(primary.url(), 'create database another');
    const url = (name: string, password: string, database = 'postgres') => {
      return `postgres://${name}:${password}@127.0.0.1:${standby.port}/${database}`;
    };
    const reader = url('reader', 'secret, never shown');
    const foreign = await PostgresServer.start([], {}, await makeTemplate());
    const refusals: [url: string, reason: RegExp][] = [
      [url('postgres', 'secret'), /password authentication failed for user "postgres"/],
      [url('nobody', 'secret'), /password authentication failed for user "nobody"/],
      [url('postgres', 'password', 'nothing'), /database "nothing" does not exist/],
      [url('postgres', 'password', 'another'), /its database is not that of DB_URL/],
      [foreign.url(), /it is no standby of the server of DB_URL/],
      [reader, /its role does not see the timeline: grant pg_read_all_stats to "reader"/],
    ];
    const assertRefused = async (readUrl: string, reason: RegExp) => {
      let refusal: string | undefined;
      // Again: if the machine stalls for so long that the server does not answer in time, that is no reason to refuse.
      for (let attempt = 1; refusal === undefined && attempt <= 5; attempt += 1) {
        refusal = await Service.start(primary.url(), readUrl).then(
          (started) => started.stop().then(() => undefined),
          ({ message }: Error) => message,
        );
      }
      assert.ok(refusal !== undefined, `${readUrl} was not refused`);
      const sentence =
        /^the service exited with code 1: DB_READ_URL: postgres:\/\/127[^ ]+ cannot be read: ([^\n]+)\.\n$/;
      assert.match(sentence.exec(refusal)?.[1] ?? refusal, reason);
      assert.doesNotMatch(refusal, /secret/);
    };
    await Promise.all(refusals.map(([url, reason]) => assertRefused(url, reason)));
    await foreign.remove();
    await execute(primary.url(), 'grant pg_read_all_stats to reader');
    await assertRefused(reader, /"reader" has no right to select from books/);
    await execute(primary.url(), 'grant select on books, book_index, book_requests to reader');
    const allowed = await Service.start(primary.url(), reader);
    await allowed.untilReads('list');
    await allowed.untilReads('search');
    await allowed.stop();
  });

  test('the primary itself is no standby: everything is read from it', async (context) => {
    const only = await Service.start(primary.url(), primary.url());
    context.after(() => only.stop());
    const book = await only.client.create({ title: 'here' });
    assert.deepEqual(await only.client.list(), [book]);
    assert.equal(await only.reads('list', 'away'), 1);
  });
});
