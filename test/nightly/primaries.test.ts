// A standby (DB_READ_URL) whose primary changes, is one of several, or waits for another standby: nobody sees the past by it.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { Answer } from '../../conformance/answers.ts';
import type { Book } from '../../conformance/service.ts';
import { listen } from '../support/ports.ts';
import { execute, PostgresServer, startPair } from '../support/postgres.ts';
import { waitUntil } from '../support/wait.ts';
import { FILLED, fill, OPERATIONS, Service, set, UNINDEXED, urlOf } from './standby.ts';

/** In the protocol: no TLS; logged in, and ready; the end of a transaction. */
const NO_TLS = 'N';
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
const DONE = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

const TLS_REQUEST = 80_877_103;

describe('a standby and its primaries', { concurrency: 2 }, () => {
  test('rules 13 and 23: what a primary does not show yet, since another standby has not got it, is not shown', async (context) => {
    const { primary, standby } = await startPair(context);
    const service = await serve(context, primary.url(), standby.url());
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
    const { primary, standby } = await startPair(context, ['synchronous_standby_names=*']);
    const services = await Promise.all([1, 2].map(() => serve(context, primary.url(), standby.url())));
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
    const { primary, standby } = await startPair(context);
    const service = await serve(context, primary.url(), standby.url());
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
    const { primary: old, standby: promoted } = await startPair(context);
    const standby = await promoted.startStandby();
    context.after(() => standby.remove());
    const service = await serve(context, old.url(), standby.url());
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
    const { primary, standby: late } = await startPair(context);
    const standby = await primary.startStandby();
    context.after(() => standby.remove());
    const service = await serve(context, primary.url(), urlOf(await startPooler(context, [standby, late])));
    await service.client.create({ title: 'on all' });
    await service.untilUsable();
    await execute(late.url(), 'select pg_wal_replay_pause()');
    for (let count = 2; (await service.reads('list', 'failed')) < 3; count += 1) {
      await service.client.create({ title: 'on the primary and one standby' });
      assert.equal((await service.client.list()).length, count);
    }
  });

  test('one that follows a copy of the primary is not read', async (context) => {
    const { primary: copy, standby } = await startPair(context);
    const primary = await PostgresServer.start();
    context.after(() => primary.remove());
    await (await Service.start(copy.url(), copy.url())).stop(); // creates the tables
    await fill(copy);
    const service = await serve(context, primary.url(), standby.url());
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

/** Starts a service that stops at the end of the test. */
async function serve(context: TestContext, dbUrl: string, readUrl: string): Promise<Service> {
  const service = await Service.start(dbUrl, readUrl);
  context.after(() => service.stop());
  return service;
}

/**
 * Starts a pooler in front of several servers, in transaction mode: each transaction of a connection reaches the next server.
 * @returns its port.
 */
async function startPooler(context: TestContext, servers: readonly PostgresServer[]): Promise<number> {
  const { port } = await listen(context, (client) => {
    forward(client, servers).catch(() => client.destroy()); // the client has gone
  });
  return port;
}

async function forward(client: Socket, servers: readonly PostgresServer[]): Promise<void> {
  client.setNoDelay();
  const [first] = (await once(client, 'data')) as [Buffer];
  if (first.readInt32BE(4) === TLS_REQUEST) {
    client.write(NO_TLS);
    await once(client, 'data');
  }
  const hosts = await Promise.all(servers.map(loggedIn));
  let turn = 0;
  for (const host of hosts) {
    host.on('error', () => {});
    client.on('close', () => host.destroy());
    let end = Buffer.alloc(0);
    host.on('data', (bytes: Buffer) => {
      client.write(bytes);
      end = Buffer.concat([end, bytes]).subarray(-DONE.length);
      if (end.equals(DONE)) turn += 1;
    });
  }
  client.on('data', (bytes: Buffer) => hosts[turn % hosts.length]?.write(bytes));
  client.write(WELCOME);
}

/** The socket of a connection that is logged in; the driver has nothing to do with it any more. */
async function loggedIn(server: PostgresServer): Promise<Socket> {
  const client = new pg.Client({ connectionString: server.url() });
  client.on('error', () => {});
  await client.connect();
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  stream.removeAllListeners('data');
  return stream;
}
