// Lists, searches and exports that are read from a standby (DB_READ_URL): it is used, and nobody sees the past by it,
// whatever the standby does. How long a request waits for it is tested in test/release/answers.test.ts.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from '../../conformance/answers.ts';
import type { Book } from '../../conformance/service.ts';
import { Client, Connection } from '../support/client.ts';
import { type CommandHere, runCommand, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { Pooler } from '../support/pooler.ts';
import { unusedPort } from '../support/ports.ts';
import { connectTo, execute, PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { ENVIRONMENT } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

type Operation = 'list' | 'search';

/** Tells how many books a search could not see yet. */
const UNINDEXED = 'x-unindexed-books';

/** Books that `fill` writes. */
const FILLED = 5000;

const OPERATIONS: readonly Operation[] = ['list', 'search'];

describe('a standby', { concurrency: 2 }, () => {
  // One at a time: they share both servers.
  describe('that follows', { concurrency: 1 }, () => {
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
      const foreign = await PostgresServer.startOther();
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

  test('rules 13 and 23: what a primary does not show yet, since another standby has not got it, is not shown', async (context) => {
    const { primary, standby } = await PostgresServer.startPair();
    context.after(() => Promise.all([primary.remove(), standby.remove()]));
    const service = await Service.start(primary.url(), standby.url());
    context.after(() => service.stop());
    const { client } = service;
    const create = () => client.request('POST', '/book', { body: { title: 'shown' } });
    const shown = [(await create()).data];
    await service.untilReads('list');

    await set(primary, "synchronous_standby_names = 'FIRST 2 (*)'");
    const isHeldBack =
      "select from pg_stat_activity where wait_event = 'SyncRep' and query like '%insert into books%'";
    let answer: Answer | undefined;
    const begin = () =>
      create().then((received) => {
        answer = received;
      });
    let creation = begin();
    await waitUntil(async () => {
      if (answer?.status === 201) {
        shown.push(answer.data); // the process that stored it had not read its new settings yet
        answer = undefined;
        creation = begin();
      }
      return (await execute(primary.url(), isHeldBack)).length === 1;
    });
    const there = "select from books where title = 'shown'";
    await waitUntil(async () => (await execute(standby.url(), there)).length > shown.length);
    assert.equal((await execute(primary.url(), there)).length, shown.length);
    assert.deepEqual(await client.list(), shown);
    assert.deepEqual((await service.find('/books?q=shown&sort=id')).data, shown);
    await creation;
    assert.equal(answer?.status, 503);
    await set(primary, "synchronous_standby_names = ''");
    await waitUntil(async () => (await client.list()).length === shown.length + 1);
  });

  test('rules 13 and 23: no answer is older than one before it, by two processes, with a synchronous standby', async (context) => {
    const { primary, standby } = await PostgresServer.startPair(['synchronous_standby_names=*']);
    context.after(() => Promise.all([primary.remove(), standby.remove()]));
    const services = await Promise.all([
      Service.start(primary.url(), standby.url()),
      Service.start(primary.url(), standby.url()),
    ]);
    context.after(() => Promise.all(services.map((service) => service.stop())));
    const clientAt = (turn: number) => (services[turn % 2] as Service).client;

    // The year of a book only grows, and so does the greatest one that an answer has shown.
    const years = new Map<number, number>();
    const see = ({ id, year }: Book) => years.set(id, Math.max(year, years.get(id) ?? 0));
    let isOver = false;
    const write = async (turn: number) => {
      while (!isOver) {
        const { status, data: book } = await clientAt(turn).request('POST', '/book', {
          body: { title: 'register' },
        });
        if (status === 503) continue;
        see(book);
        for (let year = 1; !isOver; year += 1) {
          const { status, data } = await clientAt(year).request('PUT', `/book/${book.id}`, {
            body: { year },
          });
          if (status === 503) break; // it may still take place, after a later one
          see(data);
        }
      }
    };
    const read = async (path: () => string) => {
      for (let turn = 0; !isOver; turn += 1) {
        const asked = path();
        const before = [...years].filter(([id]) => asked.startsWith('/books') || asked === `/book/${id}`);
        const { status, headers, data } = await clientAt(turn).request('GET', asked);
        if (status === 503 || headers.get(UNINDEXED) !== null) continue;
        const books: Book[] = [data ?? []].flat();
        const found = new Map(books.map(({ id, year }) => [id, year]));
        for (const [id, year] of before) {
          assert.ok((found.get(id) ?? -1) >= year, `${asked}: book ${id} is ${found.get(id)} after ${year}`);
        }
        books.forEach(see);
      }
    };
    const anyBook = () => `/book/${[...years.keys()].at(-1) ?? 1}`;
    const clients = [
      write(0),
      write(1),
      read(() => '/books'),
      read(() => '/books?q=register'),
      read(anyBook),
    ];
    const over = Promise.all(clients).finally(() => {
      isOver = true;
    });
    const readings = async (outcome: 'standby' | 'away') => {
      const counts = services.map((service) =>
        Promise.all(OPERATIONS.map((name) => service.reads(name, outcome))),
      );
      return (await Promise.all(counts)).flat();
    };
    const more = async (outcome: 'standby' | 'away', count: number) => {
      const before = await readings(outcome);
      const isEnough = (now: number, position: number) => now >= (before[position] as number) + count;
      await Promise.race([waitUntil(async () => isOver || (await readings(outcome)).every(isEnough)), over]);
    };
    await more('standby', 10);
    await execute(standby.url(), 'select pg_wal_replay_pause()');
    await more('away', 2);
    await execute(standby.url(), 'select pg_wal_replay_resume()');
    await more('standby', 2);
    isOver = true;
    await over;
  });

  test('rules 13 and 23: it is promoted while its primary lives on: nothing of it is read any more', async (context) => {
    const { primary, standby } = await PostgresServer.startPair();
    context.after(() => Promise.all([primary.remove(), standby.remove()]));
    const service = await Service.start(primary.url(), standby.url());
    context.after(() => service.stop());
    const { client } = service;
    const book = await client.create({ title: 'shown' });
    await service.untilReads('list');
    await execute(standby.url(), 'select pg_promote()');
    await execute(
      standby.url(),
      "insert into books (title, author, year) select 'foreign', '', n from generate_series(1, 1000) n",
    );
    for (let round = 0; round < 5; round += 1) {
      assert.deepEqual(await client.list(), [book]);
      assert.deepEqual((await service.find('/books?q=shown')).data, [book]);
    }
  });

  test('rules 13 and 23: one that follows another primary from now on is not read, although it is further in its log', async (context) => {
    const { primary: old, standby: promoted } = await PostgresServer.startPair();
    const standby = await promoted.startStandby();
    context.after(() => Promise.all([old, promoted, standby].map((server) => server.remove())));
    const service = await Service.start(old.url(), standby.url());
    context.after(() => service.stop());
    const { client } = service;
    const books = [await client.create({ title: 'on all' })];
    await service.untilReads('list');
    await service.untilReads('search');
    await execute(promoted.url(), 'select pg_promote()');
    await fill(promoted);
    await waitUntil(async () => (await execute(standby.url(), 'select from books')).length === FILLED + 1);
    for (let round = 0; round < 5; round += 1) {
      books.push(await client.create({ title: 'on the old one' }));
      const list = await client.list();
      assert.equal(list.length, books.length); // the difference of long lists takes a minute
      assert.deepEqual(list, books);
      assert.deepEqual((await service.find('/books?sort=id')).data, books);
    }
  });

  test('rules 13 and 23: behind a pooler, one of several standbys is not asked in place of another', async (context) => {
    const { primary, standby: late } = await PostgresServer.startPair();
    const standby = await primary.startStandby();
    const pooler = await Pooler.start([standby, late]);
    context.after(async () => {
      await pooler.stop();
      await Promise.all([primary, standby, late].map((server) => server.remove()));
    });
    const service = await Service.start(primary.url(), urlOf(pooler.port));
    context.after(() => service.stop());
    await service.client.create({ title: 'on all' });
    await service.untilUsable();
    await execute(late.url(), 'select pg_wal_replay_pause()');
    for (let count = 2; (await service.reads('list', 'failed')) < 3; count += 1) {
      await service.client.create({ title: 'on the primary and one standby' });
      assert.equal((await service.client.list()).length, count);
    }
  });

  test('one that follows a copy of the primary is not read', async (context) => {
    const { primary: copy, standby } = await PostgresServer.startPair();
    const primary = await PostgresServer.start();
    context.after(() => Promise.all([copy, standby, primary].map((server) => server.remove())));
    await (await Service.start(copy.url(), copy.url())).stop(); // creates the tables
    await fill(copy);
    const service = await Service.start(primary.url(), standby.url());
    context.after(() => service.stop());
    const book = await service.client.create({ title: 'here' });
    for (let round = 0; round < 20; round += 1) {
      const list = await service.client.list();
      assert.equal(list.length, 1); // the difference of long lists takes a minute
      assert.deepEqual(list, [book]);
      await pause(100);
    }
    assert.equal(await service.reads('list', 'standby'), 0);
  });
});

/** A service with a standby, in this process. */
class Service {
  readonly #service: CommandHere;
  /** The URL of its metrics. */
  readonly #metrics: string;
  readonly client: Client;

  private constructor(service: CommandHere, client: Client) {
    this.#service = service;
    this.#metrics = `${operationsOf(service).url}/metrics`;
    this.client = client;
  }

  static async start(DB_URL: string, DB_READ_URL: string): Promise<Service> {
    const service = await startHere({
      ...ENVIRONMENT,
      LOG_LEVEL: 'info',
      ADMIN_PORT: '0',
      DB_URL,
      DB_READ_URL,
    });
    return new Service(service, await Client.logIn(service));
  }

  get target(): CommandHere {
    return this.#service;
  }

  /** How many lists or searches had this outcome. */
  async reads(operation: Operation, outcome: 'standby' | 'away' | 'late' | 'failed'): Promise<number> {
    return await this.#metric(
      `book_catalogue_postgres_standby_reads_total{operation="${operation}",outcome="${outcome}"}`,
    );
  }

  /** Reads one sample: reading all of them strictly, as test/operations does, would be most of the work here. */
  async #metric(sample: string): Promise<number> {
    const text = await (await fetch(this.#metrics)).text();
    const line = text.split('\n').find((line) => line.startsWith(`${sample} `));
    assert.ok(line !== undefined, sample);
    return Number(line.slice(sample.length));
  }

  /** The answer to a search, or to a list, once all books are in the index: a search waits a second for it (rule F11). */
  async find(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    for (;;) {
      const answer = await this.client.request('GET', path, { headers });
      if (answer.headers.get(UNINDEXED) === null) return answer;
    }
  }

  async isUsable(): Promise<boolean> {
    return (await this.#metric('book_catalogue_postgres_standby_usable')) === 1;
  }

  async untilUsable(): Promise<void> {
    await waitUntil(() => this.isUsable());
  }

  /** Reads until the standby has answered once more. */
  async untilReads(operation: Operation): Promise<void> {
    const before = await this.reads(operation, 'standby');
    await waitUntil(async () => {
      const { status } = await this.client.request('GET', operation === 'list' ? '/books' : '/books?q=a');
      assert.equal(status, 200);
      return (await this.reads(operation, 'standby')) > before;
    });
  }

  async stop(): Promise<void> {
    await this.#service.stop();
  }
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
