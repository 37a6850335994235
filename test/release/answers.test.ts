// The time limits that rule 23 sets for answers, each measured once, by the client's clock: every answer arrives within
// 5 s whatever the store does, and requests succeed within 2 s of the store's return, or within 5 s of the promotion of
// another host. The content of the answers is tested in test/stores.

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Answer } from '../../conformance/answers.ts';
import type { Client } from '../support/client.ts';
import { Stopwatch } from '../support/in-time.ts';
import { connectTo, execute, freshDatabase, PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import { POSTGRES, type RunningService, SQLITE, STORES, startTestService } from '../support/service.ts';
import { holdBooks } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds. */
const ANSWER = 5000;
const AFTER_RETURN = 2000;
const AFTER_PROMOTION = 5000;
const UNNOTICED = 1000;

/** The standby must have a write before it is acknowledged. */
const SYNCHRONOUS = ['synchronous_standby_names=*'];

/** A request of every kind. */
const CALLS: readonly ((client: Client) => Promise<Answer>)[] = [
  (client) => client.request('POST', '/book', { body: {} }),
  (client) => client.request('PUT', '/book/1', { body: { year: 1 } }),
  (client) => client.request('DELETE', '/book/2'),
  (client) => client.request('GET', '/book/1'),
  (client) => client.request('GET', '/books'),
];

if (STORES.includes(SQLITE)) {
  describe('rule 23: on SQLite', () => {
    test('answers arrive within 5 s while the file is locked', async (context) => {
      const service = await prepare(await SQLITE.freshUrl());
      context.after(() => service.stop());
      const release = await holdBooks(service.dbUrl);
      context.after(release);
      await assertInTime(context, service);
    });
  });
}

if (STORES.includes(POSTGRES)) {
  // All services are started before anything is measured; the tests then wait at the same time.
  describe('rule 23: on PostgreSQL', { concurrency: true }, () => {
    let dbUrl: string;
    let locked: RunningService;
    let cut: RunningService;
    let unanswered: RunningService;
    let stopped: RunningService;
    let failing: RunningService;
    let cutProxy: TcpProxy;
    let unansweredProxy: TcpProxy;
    let server: PostgresServer;
    let primary: PostgresServer;
    let standby: PostgresServer;
    let doubled: RunningService;
    let pair: { primary: PostgresServer; standby: PostgresServer };
    let read: { primary: PostgresServer; standby: PostgresServer };
    let readProxy: TcpProxy;
    let reading: RunningService;

    before(async () => {
      dbUrl = await freshDatabase();
      locked = await prepare(dbUrl);
      [cutProxy, cut] = await prepareBehindProxy();
      [unansweredProxy, unanswered] = await prepareBehindProxy();
      server = await PostgresServer.start();
      stopped = await prepare(server.url());
      ({ primary, standby } = await PostgresServer.startPair(SYNCHRONOUS));
      failing = await prepare(urlOf(primary, standby));
      pair = await PostgresServer.startPair(SYNCHRONOUS);
      doubled = await prepare(urlOf(pair.primary, pair.standby));
      read = await PostgresServer.startPair();
      readProxy = await TcpProxy.start(read.standby);
      reading = await startTestService(read.primary.url(), { DB_READ_URL: urlOf(readProxy) });
    });
    after(async () => {
      await Promise.all(
        [locked, cut, unanswered, stopped, failing, doubled, reading].map((service) => service.stop()),
      );
      await Promise.all([cutProxy.stop(), unansweredProxy.stop(), readProxy.stop()]);
      const servers = [server, primary, standby, pair.primary, pair.standby, read.primary, read.standby];
      await Promise.all(servers.map((each) => each.remove()));
    });

    test('answers arrive within 5 s while the table is locked', async (context) => {
      context.after(await holdBooks(dbUrl));
      // Lists that took all the room a while ago: the next one waits for room first, and then for the table.
      let answers = 0;
      const lists = Array.from({ length: 8 }, async () => {
        await locked.client.request('GET', '/books');
        answers += 1;
      });
      const waiting = `select from pg_stat_activity where datname = current_database() and query like '%copy%'
        and wait_event_type = 'Lock' and clock_timestamp() - query_start > '1500 ms'`;
      await waitUntil(async () => answers > 0 || (await execute(dbUrl, waiting)).length === 8);
      await assertInTime(context, locked);
      await Promise.all(lists);
    });

    test('an answer arrives within 5 s if its batch is slow, its book is locked, and then the network is cut', async (context) => {
      const dbUrl = await freshDatabase();
      const { proxy, proxiedUrl } = await TcpProxy.to(dbUrl);
      context.after(() => proxy.stop());
      const service = await startTestService(proxiedUrl);
      context.after(() => service.stop());
      const { client } = service;
      for (const title of ['first', 'slow', 'locked']) await client.create({ title });
      await execute(
        dbUrl,
        `create function slow() returns trigger language plpgsql as
           $$ begin perform pg_sleep(case old.title when 'first' then 0.5 when 'slow' then 2.5 else 0 end); return new; end $$;
         create trigger slow before update on books for each row execute function slow()`,
      );
      const locker = await connectTo(context, dbUrl);
      await locker.query('begin; update books set year = 1 where id = 3');
      let answers = 0;
      const change = async (id: number) => {
        const { status } = await client.request('PUT', `/book/${id}`, { body: { year: 2 } });
        answers += 1;
        return status;
      };
      const first = change(1);
      // The other calls now gather behind it, unless the machine was too slow to observe that.
      await waitUntil(async () => answers === 1 || isWaited(dbUrl, 'PgSleep'));
      const slow = change(2);
      const stopwatch = new Stopwatch();
      const locked = change(3);
      assert.deepEqual(await Promise.all([first, slow]), [200, 200]);
      await waitUntil(async () => answers === 3 || isWaited(dbUrl, 'transactionid'));
      proxy.cut();
      const status = await locked;
      const milliseconds = Math.round(stopwatch.read());
      stopwatch.stop();
      context.diagnostic(`${status} after ${milliseconds} ms`);
      assert.equal(status, 503);
      assert.ok(milliseconds < ANSWER, `${milliseconds} ms`);
    });

    test('answers arrive within 5 s while the network is cut, and requests succeed within 2 s of its return', async (context) => {
      cutProxy.cut();
      await assertInTime(context, cut);
      cutProxy.restore();
      await assertSuccess(context, cut, AFTER_RETURN);
    });

    test('answers arrive within 5 s if the answer of the server is lost', async (context) => {
      await waitUntil(async () => {
        unansweredProxy.swallowAnswers(); // on the connections that are open: a call may open another one
        return (await answersInTime(context, unanswered)).includes(503);
      });
    });

    test('requests succeed within 2 s of the return of a server that was stopped', async (context) => {
      await server.stop();
      await assertInTime(context, stopped);
      await server.startAgain();
      await assertSuccess(context, stopped, AFTER_RETURN);
    });

    test('writes are answered within 5 s without a synchronous standby, and succeed within 5 s of its promotion', async (context) => {
      await standby.kill('SIGQUIT');
      await assertInTime(context, failing);
      await standby.startAgain();
      await primary.kill('SIGKILL');
      await assertInTime(context, failing);
      await execute(standby.url(), 'select pg_promote()');
      await assertSuccess(context, failing, AFTER_PROMOTION);
    });

    test('no read waits for a second while a start waits to change the table', async (context) => {
      const dbUrl = await freshDatabase();
      const { client, stop } = await prepare(dbUrl);
      context.after(stop);
      await execute(dbUrl, 'alter table books alter column author type varchar(40)'); // as in an older version
      const reader = await connectTo(context, dbUrl);
      await reader.query('begin; select from books');
      let isOver = false;
      const over = () => {
        isOver = true;
      };
      const starting = startTestService(dbUrl, { LOG_LEVEL: 'warn' }, { write: over }); // the log says that it waits
      starting.then(({ stop }) => context.after(stop), over);
      let slowest = 0;
      while (!isOver) {
        const stopwatch = new Stopwatch();
        assert.equal((await client.request('GET', '/book/1')).status, 200);
        slowest = Math.max(slowest, stopwatch.read());
        stopwatch.stop();
      }
      await reader.query('commit');
      await starting;
      context.diagnostic(`slowest read ${Math.round(slowest)} ms`);
      assert.ok(slowest < UNNOTICED, `${slowest} ms`);
    });

    test('a list is answered within 5 s, by the primary, if its standby falls silent', async (context) => {
      const scans = "select seq_scan + idx_scan as scans from pg_stat_user_tables where relname = 'books'";
      await waitUntil(async () => {
        await reading.client.list();
        return Number((await execute<{ scans: string }>(read.standby.url(), scans))[0]?.scans) > 0;
      });
      const waiting = "select from pg_locks where not granted and relation = 'books'::regclass";
      let isAnswered = true;
      let list = reading.client.request('GET', '/books');
      let release = async () => {};
      while (isAnswered) {
        await Promise.all([list, release()]); // on a machine that is too slow, a list is given up before it is seen to wait
        release = await holdBooks(read.primary.url());
        isAnswered = false;
        list = reading.client.request('GET', '/books').finally(() => {
          isAnswered = true;
        });
        const isWaiting = async () => (await execute(read.standby.url(), waiting)).length === 1;
        await waitUntil(async () => isAnswered || isWaiting());
      }
      const stopwatch = new Stopwatch();
      readProxy.cut();
      await release();
      const { status } = await list;
      const milliseconds = Math.round(stopwatch.read());
      stopwatch.stop();
      context.diagnostic(`${status} after ${milliseconds} ms`);
      assert.equal(status, 200);
      assert.ok(milliseconds < ANSWER);
    });

    test('requests succeed within 5 s of the promotion of a standby whose primary lives on', async (context) => {
      await execute(pair.standby.url(), 'select pg_promote()');
      await assertSuccess(context, doubled, AFTER_PROMOTION);
    });
  });
}

/** A service with two books, and with open connections for requests of every kind. */
async function prepare(url: string): Promise<RunningService> {
  const service = await startTestService(url);
  const { client } = service;
  assert.equal((await client.create({})).id, 1);
  assert.equal((await client.create({})).id, 2);
  await Promise.all(
    ['GET', 'PUT', 'DELETE'].map((method) => client.request(method, '/book/999', { body: {} })),
  );
  assert.equal((await client.list()).length, 2);
  return service;
}

function urlOf(...servers: readonly { readonly port: number }[]): string {
  return `postgres://postgres:password@${servers.map(({ port }) => `127.0.0.1:${port}`)}/postgres`;
}

/** Whether a statement in this database waits for this. */
async function isWaited(dbUrl: string, event: 'PgSleep' | 'transactionid'): Promise<boolean> {
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event = '${event}'`;
  return (await execute(dbUrl, waiting)).length > 0;
}

async function prepareBehindProxy(): Promise<[TcpProxy, RunningService]> {
  const { proxy, proxiedUrl } = await TcpProxy.to(await freshDatabase());
  return [proxy, await prepare(proxiedUrl)];
}

/** Sends a request of every kind at once. All must be answered in time, at least one of them with 503. */
async function assertInTime(context: TestContext, service: RunningService): Promise<void> {
  assert.ok((await answersInTime(context, service)).includes(503));
}

/** Sends a request of every kind at once, which must be answered in time. @returns their statuses. */
async function answersInTime(context: TestContext, { client }: RunningService): Promise<number[]> {
  const stopwatch = new Stopwatch();
  const answers = await Promise.all(
    CALLS.map(async (call) => {
      const { status } = await call(client);
      return { status, milliseconds: Math.round(stopwatch.read()) };
    }),
  );
  stopwatch.stop();
  context.diagnostic(
    answers.map(({ status, milliseconds }) => `${status} after ${milliseconds} ms`).join(', '),
  );
  for (const { milliseconds } of answers) assert.ok(milliseconds < ANSWER, `${milliseconds} ms`);
  return answers.map(({ status }) => status);
}

/** Repeats a request of each kind until it succeeds. */
async function assertSuccess(context: TestContext, { client }: RunningService, limit: number): Promise<void> {
  const stopwatch = new Stopwatch();
  await Promise.all(CALLS.map((call) => waitUntil(async () => (await call(client)).status !== 503)));
  const milliseconds = Math.round(stopwatch.read());
  stopwatch.stop();
  context.diagnostic(`every kind succeeded within ${milliseconds} ms`);
  assert.ok(milliseconds < limit, `${milliseconds} ms`);
}
