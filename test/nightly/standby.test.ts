// Lists, searches and exports that are read from a standby (DB_READ_URL): it is used, and nobody sees the past by it,
// whatever the standby does. How long a request waits for it is tested in test/orders and test/release/answers.test.ts; that it may
// be silent, go away, come back and be promoted at any moment, in test/orders.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { afterEach, before, describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { tagOf } from '../support/books.ts';
import { Client, Connection } from '../support/client.ts';
import { runCommand, startHere } from '../support/command.ts';
import { assertOnlyRead } from '../support/only-read.ts';
import { operationsOf } from '../support/operations.ts';
import { unusedPort } from '../support/ports.ts';
import { connectTo, execute, makeTemplate, PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { ENVIRONMENT } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

type Operation = 'list' | 'search';

const OPERATIONS: readonly Operation[] = ['list', 'search'];

/** Books that `fill` writes. */
const FILLED = 5000;

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
    service = await start(primary.url(), urlOf(proxy.port));
    client = service.client;
  });
  afterEach(() => execute(primary.url(), 'delete from books'));

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

  /** Reads after writes, until the standby has answered each kind of reading. */
  async function readAfterWrites(
    write = async () => await client.create({ title: 'written before' }),
  ): Promise<void> {
    for (const operation of OPERATIONS) {
      const before = await service.reads();
      while ((await service.reads()) < before + 3) await assertNew(operation, await write());
    }
  }

  test('rules 13 and F11: answers lists and searches with all that was written before, although it replays late', async () => {
    await set(standby, "recovery_min_apply_delay = '100ms'");
    try {
      await readAfterWrites();
    } finally {
      await set(standby, 'recovery_min_apply_delay = 0');
    }
  });

  test('rule F11: is read with what another program has committed asynchronously', async (context) => {
    const writer = await connectTo(context, primary.url());
    await writer.query('set synchronous_commit = off');
    await readAfterWrites(async () => {
      const { rows } = await writer.query<Book>(
        "insert into books (title, author, year) values ('written by another', '', 0) returning *",
      );
      const [book] = rows.map((row) => ({ ...row, id: Number(row.id), year: Number(row.year) }));
      return book as Book;
    });
  });

  test('rules 13 and F11: nothing old is read while it replays nothing; it is used again later', async () => {
    await service.untilReads('list');
    await execute(standby.url(), 'select pg_wal_replay_pause()');
    const before = await service.reads();
    try {
      for (let round = 0; round < 3; round += 1) {
        for (const operation of OPERATIONS)
          await assertNew(operation, await client.create({ title: 'written' }));
      }
      assert.equal(await service.reads(), before);
    } finally {
      await execute(standby.url(), 'select pg_wal_replay_resume()');
    }
    await readAfterWrites();
  });

  test('rule 23: what it cancels or breaks off before the answer begins is read from the primary', async (context) => {
    const book = await client.create({ title: 'written once' });
    const enemy = await connectTo(context, standby.url());
    let isOver = false;
    let hits = 0;
    const attack = async () => {
      for (let attacks = 0; !isOver; attacks += 1) {
        const weapon = attacks % 50 === 0 ? 'pg_terminate_backend' : 'pg_cancel_backend';
        const { rowCount } = await enemy.query(
          `select ${weapon}(pid) from pg_stat_activity where application_name = 'book-catalogue' and state <> 'idle'`,
        );
        hits += rowCount ?? 0;
      }
    };
    const attacked = attack();
    try {
      while (hits < 5) {
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
      await service.untilReads('search');
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
    const book = { id, title: 'exported', author: '', year: 0 };
    const line = `${JSON.stringify({ ...book, etag: `"${tagOf(book)}"` })}\n`;
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

  test('rule 23: a search is answered by the primary if its connection to the standby falls silent', async () => {
    const book = await client.create({ title: 'sought' });
    await service.untilReads('search');
    proxy.cutAt('sought');
    const { status, data } = await service.find('/books?q=sought');
    assert.deepEqual([status, data], [200, [book]]);
  });

  test('of several hosts, the one that is a standby is read', async () => {
    const dead = await unusedPort();
    const several = await start(primary.url(), urlOf(dead, primary.port, standby.port));
    await several.untilReads('list');
  });

  test('rule 25: one that cannot be read before somebody changes something is refused in one sentence', async () => {
    await execute(primary.url(), "create role reader login password 'secret, never shown'");
    await execute(
      primary.url(),
      `create role clerk login password 'secret, never shown'; alter table books enable row level security;
       grant select on books, book_index to clerk; grant pg_read_all_stats to clerk`,
    );
    await execute(primary.url(), 'create database another');
    const url = (name: string, password: string, database = 'postgres') => {
      return `postgres://${name}:${password}@127.0.0.1:${standby.port}/${database}`;
    };
    const foreign = await PostgresServer.start([], {}, await makeTemplate());
    const other = /it is no standby of the database of DB_URL, or its role lacks pg_read_all_stats/;
    const refusals: [url: string, reason: RegExp][] = [
      [url('postgres', 'secret'), /password authentication failed for user "postgres"/],
      [url('postgres', 'password', 'nothing'), /database "nothing" does not exist/],
      [url('postgres', 'password', 'another'), other],
      [foreign.url(), other],
      [url('reader', 'secret, never shown'), other],
      [url('clerk', 'secret, never shown'), /row level security hides books from its role/],
    ];
    const assertRefused = async (readUrl: string, reason: RegExp) => {
      let refusal: string | undefined;
      // Again: if the machine stalls for so long that the server does not answer in time, that is no reason to refuse.
      for (let attempt = 1; refusal === undefined && attempt <= 5; attempt += 1) {
        refusal = await start(primary.url(), readUrl).then(
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
  });
});

test('export, copy FROM and undo without --yes read one that DB_URL names', async () => {
  const { primary, standby } = await PostgresServer.startPair();
  const service = await start(primary.url(), standby.url());
  const since = new Date(Date.now() - 1000).toISOString();
  for (const title of ['A', 'B']) await service.client.create({ title });
  await service.stop();
  const arrived = async () => (await execute(standby.url(), 'select from books')).length === 2;
  await waitUntil(() => arrived().catch(() => false));
  await assertOnlyRead(standby.url(), since);
  await primary.stop();
  const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`;
  const several = standby.url('postgres', 'target_session_attrs=any').replace(/127[^/]*/, hosts);
  assert.match((await runCommand(['export'], { DB_URL: several })).stderr, /^2 books exported/);
});

test('rules 13 and 23: one that follows another primary from now on is not read, although it is further in its log', async () => {
  const { primary: old, standby: promoted } = await PostgresServer.startPair();
  const standby = await promoted.startStandby();
  const service = await start(old.url(), standby.url());
  const { client } = service;
  const books = [await client.create({ title: 'on all' })];
  for (const operation of OPERATIONS) await service.untilReads(operation);
  await execute(promoted.url(), 'select pg_promote()');
  await fill(promoted);
  await waitUntil(async () => (await execute(standby.url(), 'select from books')).length === FILLED + 1);
  const before = await service.reads();
  for (let round = 0; round < 5; round += 1) {
    books.push(await client.create({ title: 'on the old one' }));
    const list = await client.list();
    assert.equal(list.length, books.length); // the difference of long lists takes a minute
    assert.deepEqual(list, books);
    assert.deepEqual((await service.find('/books?sort=id')).data, books);
  }
  assert.equal(await service.reads(), before);
});

type Service = Awaited<ReturnType<typeof start>>;

/** Starts a service with a standby, in this process. */
async function start(DB_URL: string, DB_READ_URL: string) {
  const env = { ...ENVIRONMENT, LOG_LEVEL: 'info', ADMIN_PORT: '0', DB_URL, DB_READ_URL };
  const target = await startHere(env);
  const client = await Client.logIn(target);
  /** How many lists and searches it was read for. (To read all metrics strictly would be most of the work here.) */
  const reads = async () => {
    const sample = 'book_catalogue_postgres_standby_reads_total{outcome="standby"} ';
    const text = await (await fetch(`${operationsOf(target).url}/metrics`)).text();
    const line = text.split('\n').find((line) => line.startsWith(sample));
    assert.ok(line !== undefined, sample);
    return Number(line.slice(sample.length));
  };
  /** The answer to a search, or to a list, once all books are in the index: a search waits a second for it (rule F11). */
  const find = async (path: string) => {
    for (;;) {
      const answer = await client.request('GET', path);
      if (answer.headers.get('x-unindexed-books') === null) return answer;
    }
  };
  /** Reads until the standby has answered once more. */
  const untilReads = async (operation: Operation) => {
    const before = await reads();
    await waitUntil(async () => {
      const { status } = await client.request('GET', operation === 'list' ? '/books' : '/books?q=a');
      assert.equal(status, 200);
      return (await reads()) > before;
    });
  };
  return { target, client, reads, find, untilReads, stop: target.stop };
}

function urlOf(...ports: readonly number[]): string {
  return `postgres://postgres:password@${ports.map((port) => `127.0.0.1:${port}`)}/postgres`;
}

async function set(server: PostgresServer, setting: string): Promise<void> {
  await execute(server.url(), `alter system set ${setting}`);
  await execute(server.url(), 'select pg_reload_conf()');
}

/** Writes so much that the log is far ahead of that of other servers. */
async function fill(server: PostgresServer): Promise<void> {
  await execute(
    server.url(),
    `insert into books (title, author, year) select repeat('foreign ', 100), '', n from generate_series(1, ${FILLED}) n`,
  );
}
