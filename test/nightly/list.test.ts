// Lists whose readers are slow or leave, lists that break off, more of them than can be open, and their log of writes, on every store.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { statSync, truncateSync } from 'node:fs';
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Book } from '../../conformance/service.ts';
import { Connection, readEnvelope } from '../support/client.ts';
import { inTime } from '../support/in-time.ts';
import { openLists, residentMemory } from '../support/operations.ts';
import { execute } from '../support/postgres.ts';
import { compose } from '../support/raw-requests.ts';
import {
  fileOf,
  POSTGRES,
  type RunningService,
  type ServiceProcess,
  SQLITE,
  STORES,
  startServiceProcess,
  startTestService,
} from '../support/service.ts';
import { executeOn, holdWrites } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds after which a list with a stalled reader is closed for a waiting list (rule 22). */
const GIVES_WAY = 5000;

/** Milliseconds that a search waits for those that read from a long log of writes. */
const LOG_WAIT = 1000;

/** Milliseconds from one look at the log of writes, while lists are open, to the end of lists that keep it too long. */
const LOOK_TIME = 2000;

/** Milliseconds in which a service that is not busy answers a search. */
const REST = 100;

/** Lists of 20 MB in books of 1 MB each, more than systems buffer for a stalled reader. */
const LARGE = { count: 20, length: 1_000_000 };

/** Lists of 60 MB and of 25 MB. Eight of them are more than a service should take memory for. */
const HUGE = { count: 60, length: 1_000_000 };
const MANY = { count: 50_000, length: 500 };

for (const store of STORES) {
  describe(`slow readers on ${store.name}`, () => {
    let service: ServiceProcess;

    before(async () => {
      // Without an index, which would have to follow hundreds of megabytes and has no part in lists.
      service = await startServiceProcess(await store.freshUrl(), { FIND: 'off' });
    });
    after(() => service.stop());

    for (const [size, books] of [
      ['of large books', HUGE],
      ['of many books', MANY],
    ] as const) {
      test(`rule 13: lists ${size} with stalled readers take little memory and delay no request`, async (context) => {
        await fill(service.dbUrl, books);
        await readOpenLists(service, context, (8 * books.count * books.length) / 1024 ** 2);
      });
    }

    test('rule 13: a list shows the moment at which it began, however slowly it is read', async () => {
      const { client, dbUrl } = service;
      const { count, length } = LARGE;
      await fill(dbUrl, LARGE);
      const { list } = await openList(service);
      await client.request('DELETE', `/book/${count}`);
      await client.request('PUT', `/book/${count - 1}`, { body: { title: 'too late' } });
      await client.create({ title: 'too late' });
      await executeOn(dbUrl, `update books set year = 0, author = 'too late' where id % 10 = 0`);

      const { text, complete } = await readToTheEnd(list);
      assert.ok(complete);
      assertBooks(readEnvelope(text, 200).data, plainBooks(count, length));
    });

    if (store === POSTGRES) {
      test('rule 13: when a list breaks off, its reader sees a broken connection, never a list that looks complete', async () => {
        const { dbUrl } = service;
        await fill(dbUrl, LARGE);
        for (const end of ['pg_terminate_backend', 'pg_cancel_backend']) {
          await waitUntil(async () => (await listStatements(dbUrl)).length === 0);
          const { list } = await openList(service);
          await waitUntil(async () => (await listStatements(dbUrl)).length === 1);
          const [statement] = await listStatements(dbUrl);
          await execute(dbUrl, `select ${end}(${statement?.pid})`);
          // A cancelled statement ends once it has sent its current row, a terminated one at once.
          if (end === 'pg_terminate_backend') {
            await waitUntil(async () => (await listStatements(dbUrl)).length === 0);
          }
          await assertBroken(list);
        }
        const { list } = await openList(service);
        assert.ok((await readToTheEnd(list)).complete);
      });
    }

    if (store === SQLITE) {
      test('lists that overlap all the time do not make the log of writes grow without end', async () => {
        const { client, dbUrl } = service;
        await fill(dbUrl, LARGE);
        let { list } = await openList(service);
        for (let round = 0; round < 20; round += 1) {
          for (let count = 0; count < 10; count += 1) {
            const body = { title: String(count).repeat(1_000_000) };
            assert.equal((await client.request('PUT', '/book/1', { body })).status, 200);
          }
          const next = openList(service); // before the other one ends
          assert.ok((await readToTheEnd(list)).complete);
          ({ list } = await next);
        }
        assert.ok((await readToTheEnd(list)).complete);
        const { size } = statSync(`${fileOf(dbUrl)}-wal`);
        assert.ok(size < 150 * 1024 ** 2, `${size} bytes`);
      });

      test('rule 22: lists break off once the log of writes has more than 1 GiB, which is then emptied', async () => {
        const { client, dbUrl } = service;
        await fill(dbUrl, LARGE);
        const { list } = await openList(service);
        await client.create({ title: 'in the log' });
        const log = `${fileOf(dbUrl)}-wal`;
        const endWrite = await holdWrites(dbUrl);
        truncateSync(log, 1024 ** 3 + 1); // as if one transaction wrote so much
        await pause(2 * LOOK_TIME);
        assert.equal(await openLists(service), 1);
        await endWrite();
        lengthenLog(dbUrl, 1024 ** 3);
        await waitUntil(async () => (await openLists(service)) === 0);
        await assertBroken(list);
        await waitUntil(() => statSync(log).size === 0);
        assert.equal((await client.list()).length, LARGE.count + 1);
      });

      test('rule 22: a search waits up to a second for others that keep the log of writes from being emptied', async () => {
        await inTime(LOG_WAIT, async (startClock) => {
          const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
          const log = `${fileOf(dbUrl)}-wal`;
          const other = openReader(dbUrl);
          const write = async (digit: number) => {
            const body = { title: String(digit).repeat(1_000_000) };
            assert.equal((await client.request('PUT', '/book/1', { body })).status, 200);
          };
          try {
            await client.create({});
            for (let count = 0; count < 110; count += 1) await write(count % 10);
            startClock();
            const size = client.request('GET', '/books?q=5').then(() => statSync(log).size);
            await pause(REST); // without the wait, the search has been answered by now
            other.close();
            await write(5);
            await write(6); // begins the log again
            assert.ok((await size) < 100 * 1024 ** 2);
          } finally {
            await stop();
          }
        });
      });

      test('rule 22: a search waits for nobody if nothing reads from a long log of writes', async () => {
        for (let attempt = 1; ; attempt += 1) {
          const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
          try {
            await client.create({});
            lengthenLog(dbUrl, 100 * 1024 ** 2);
            const began = performance.now();
            assert.equal((await client.request('GET', '/books?q=5')).status, 200);
            const took = performance.now() - began;
            assert.ok(statSync(`${fileOf(dbUrl)}-wal`).size < 1024 ** 2);
            if (took < LOG_WAIT) break;
            assert.ok(attempt < 5, `${took} ms`); // a disk may be busy
          } finally {
            await stop();
          }
        }
      });

      test('rule 22: searches get 503 while the log of writes has more than 1 GiB and others read from it', async (context) => {
        const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
        context.after(stop);
        await client.create({ title: 'in the log' });
        const other = openReader(dbUrl);
        const log = `${fileOf(dbUrl)}-wal`;
        lengthenLog(dbUrl, 1024 ** 3);
        const search = () => client.request('GET', '/books?q=log');
        assert.deepEqual([(await search()).status, (await search()).status], [503, 503]);
        other.close();
        assert.equal((await search()).data.length, 1);
        assert.ok(statSync(log).size < 1024 ** 2);
      });

      test('rule 13: when a list breaks off, its reader sees a broken connection, never a list that looks complete', async (context) => {
        const damaged = await startTestService(await store.freshUrl());
        context.after(() => damaged.stop());
        await fill(damaged.dbUrl, LARGE);
        await executeOn(damaged.dbUrl, 'pragma wal_checkpoint(truncate)'); // all books are in the file itself
        const { list } = await openList(damaged);
        const old = new Connection(damaged); // without chunks, the end of the connection would end the list
        old.socket.once('data', () => old.socket.pause());
        await old.send(`GET /books HTTP/1.0\r\nAuthorization: ${damaged.client.token}\r\n\r\n`);
        await waitUntil(() => old.socket.isPaused());
        // The disk loses the second half of the file: the list has started and cannot be read to its end.
        const file = fileOf(damaged.dbUrl);
        truncateSync(file, statSync(file).size / 2);
        await assertBroken(list);
        old.socket.resume();
        assert.equal(((await old.closed) as NodeJS.ErrnoException | undefined)?.code, 'ECONNRESET');
      });
    }

    test('rules 9 and 13: a stalled reader of many pipelined lists does not block lists on other connections', async () => {
      await fill(service.dbUrl, LARGE);
      const reader = new Connection(service);
      reader.socket.once('data', () => reader.socket.pause());
      const ask = service.client.bytes('GET', '/books');
      await reader.send(Buffer.concat(Array.from({ length: 40 }, () => ask)));
      await waitUntil(() => reader.socket.isPaused());
      for (let count = 0; count < 2; count += 1) {
        assert.equal((await service.client.list()).length, LARGE.count);
      }
      // Each list is sent once the reader takes it.
      reader.socket.resume();
      for (const { status } of await reader.answers(2)) assert.equal(status, 200);
      reader.socket.destroy();
    });

    const limit = store === SQLITE ? 32 : 8;
    test(`rules 13, 22 and 23: at most ${limit} lists are open; one more gets 503, and single books are still read and written`, async () => {
      const { client, dbUrl } = service;
      await fill(dbUrl, LARGE);
      await inTime(GIVES_WAY, async (startClock) => {
        await waitUntil(async () => (await openLists(service)) === 0);
        startClock();
        const held = await Promise.all(Array.from({ length: limit }, () => openList(service)));
        try {
          for (const { list } of held) assert.equal(list.statusCode, 200);
          assert.equal(await openLists(service), limit);
          const { status, message, data, headers } = await client.request('GET', '/books');
          assert.deepEqual([status, message, data], [503, 'Service unavailable', null]);
          assert.ok(Number(headers.get('retry-after')) > 0);
          const { id } = await client.create({ title: 'meanwhile' });
          await readSingly(service, id);
          assert.equal((await client.request('PUT', `/book/${id}`, { body: { year: 1 } })).status, 200);
          assert.equal((await client.request('DELETE', `/book/${id}`)).status, 200);

          // A list that ends makes room for another.
          held.shift()?.request.destroy();
          await waitUntil(async () => (await openLists(service)) === limit - 1);
          held.push(await openList(service));
          assert.equal(held.at(-1)?.list.statusCode, 200);
          assert.equal(await openLists(service), limit);
        } finally {
          for (const { request } of held) request.destroy();
        }
      });
      await waitUntil(async () => (await openLists(service)) === 0);
    });

    test('rule 23: of several lists with stalled readers, one is closed for a waiting list, and never looks complete', async () => {
      const { client, dbUrl } = service;
      await fill(dbUrl, LARGE);
      await waitUntil(async () => (await openLists(service)) === 0);
      const held = await Promise.all(Array.from({ length: limit }, () => openList(service)));
      for (const { list } of held) assert.equal(list.statusCode, 200);
      await waitUntil(async () => (await client.request('GET', '/books')).status === 200);
      // Only one is closed, long before all of them are cut.
      await waitUntil(async () => (await openLists(service)) === limit - 1);
      const whole = await Promise.all(held.map(async ({ list }) => (await readToTheEnd(list)).complete));
      assert.ok(whole.includes(false));
    });

    test('rules 13 and 23: readers that disconnect half way, more than lists can be open, leave nothing behind', async () => {
      const { client, dbUrl } = service;
      await fill(dbUrl, LARGE);
      for (let round = 0; round < 5; round += 1) {
        const lists = await Promise.all(Array.from({ length: 8 }, () => openList(service)));
        for (const { request, list } of lists) {
          assert.equal(list.statusCode, 200);
          request.destroy();
        }
        const pipelined = new Connection(service);
        pipelined.socket.pause();
        const wanted = compose('GET', '/books', { token: client.token });
        pipelined.socket.write(`${wanted}${wanted}${compose('CONNECT', 'elsewhere.test:443')}`);
        await waitUntil(async () => (await openLists(service)) > 0);
        pipelined.socket.resetAndDestroy();
        const tooEarly = requestList(service); // disconnects before its answer begins
        await once(tooEarly, 'finish');
        tooEarly.destroy();
        await waitUntil(async () => (await openLists(service)) === 0);
      }
      const books = plainBooks(3000);
      await replaceBooks(dbUrl, books);
      const lists = await Promise.all(Array.from({ length: 16 }, () => client.list()));
      for (const list of lists) assertBooks(list, books);

      if (store !== POSTGRES) return;
      await waitUntil(async () => (await listStatements(dbUrl)).length === 0);
      const sessions = await execute(
        dbUrl,
        "select from pg_stat_activity where datname = current_database() and application_name = 'book-catalogue'",
      );
      assert.ok(sessions.length > 0 && sessions.length <= 18, `${sessions.length} connections`);
    });
  });
}

if (STORES.includes(POSTGRES)) {
  test('rules 13 and 23: readers that disconnect from lists of a silent server leave nothing behind, on PostgreSQL', async () => {
    const dbUrl = await POSTGRES.freshUrl();
    const { hostname, port } = new URL(dbUrl);
    const sockets: Socket[] = [];
    let fallingSilent = true;
    // A proxy that forwards only the beginning of a list.
    const between = createServer((near) => {
      const far = connect(Number(port), hostname);
      let passed = 0;
      near.pipe(far);
      far.on('data', (bytes) => {
        passed += bytes.length;
        if (fallingSilent && passed > 3_000_000) far.pause();
        else near.write(bytes);
      });
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        socket.on('error', () => {}).on('close', () => other.destroy());
        sockets.push(socket);
      }
    });
    await once(between.listen(0, '127.0.0.1'), 'listening');
    const { port: portBetween } = between.address() as AddressInfo;
    const service = await startTestService(dbUrl.replace(`:${port}/`, `:${portBetween}/`));
    try {
      await fill(dbUrl, { count: 20_000, length: 200 });
      const lists = await Promise.all(Array.from({ length: 8 }, () => openList(service)));
      let received = 0;
      for (const { list } of lists) {
        list.on('error', () => {});
        list.on('data', (bytes) => {
          received += bytes.length;
        });
      }
      for (let before = -1; before < received; ) {
        before = received;
        await readSingly(service, 1);
      }
      for (const { request } of lists) request.destroy();
      fallingSilent = false;
      await waitUntil(async () => (await service.client.request('GET', '/books')).status === 200);
      assert.equal((await service.client.list()).length, 20_000);
    } finally {
      for (const socket of sockets) socket.destroy();
      between.close();
      await service.stop();
    }
  });
}

/** Replaces all books of a store by these, inserted in reverse order. */
async function replaceBooks(dbUrl: string, books: readonly Book[]): Promise<void> {
  await executeOn(dbUrl, 'delete from books');
  if (books.length === 0) return;
  const text = (value: string) => `'${value.replaceAll("'", "''")}'`;
  const rows = books.map(({ id, title, author, year }) => `(${id},${text(title)},${text(author)},${year})`);
  await executeOn(dbUrl, `insert into books (id, title, author, year) values ${rows.reverse().join(',')}`);
}

/** Replaces all books of a store by `plainBooks` with the same arguments. */
async function fill(dbUrl: string, { count, length }: typeof LARGE): Promise<void> {
  await executeOn(dbUrl, 'delete from books');
  await executeOn(
    dbUrl,
    `insert into books (id, title, author, year)
     with recursive book (number) as (select 1 union all select number + 1 from book where number < ${count})
     select number, '${'x'.repeat(length)}', 'author ' || number, number from book`,
  );
}

/** The statements that PostgreSQL is executing for the service: only lists, if there are no other requests. */
function listStatements(dbUrl: string): Promise<{ pid: number }[]> {
  return execute(
    dbUrl,
    `select pid from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and state = 'active'
       and query like '%copy%'`, // not what brings the index up to date
  );
}

/** Books with ids from 1, and titles of `length` characters. */
function plainBooks(count: number, length = 10): Book[] {
  const title = 'x'.repeat(length);
  return Array.from({ length: count }, (_, position) => {
    const id = position + 1;
    return { id, title, author: `author ${id}`, year: id };
  });
}

/** Compares book by book: the difference between two long lists would take long to print. */
function assertBooks(actual: readonly Book[], expected: readonly Book[]): void {
  assert.equal(actual.length, expected.length);
  for (const [position, book] of expected.entries()) assert.deepEqual(actual[position], book);
}

/** Requests the list on a separate connection. */
function requestList({ port, client }: RunningService): ClientRequest {
  const headers = { authorization: client.token };
  return get({ host: '127.0.0.1', port, path: '/books', headers, agent: false }).on('error', () => {});
}

/** Requests the list and waits for its beginning; nothing more is read until the caller reads it. */
async function openList(service: RunningService): Promise<{ request: ClientRequest; list: IncomingMessage }> {
  const request = requestList(service);
  const [list] = (await once(request, 'response')) as [IncomingMessage];
  await once(list, 'readable');
  return { request, list };
}

/** Reads on until the body ends or breaks; only a body that the service ended is complete. */
async function readToTheEnd(list: IncomingMessage): Promise<{ text: string; complete: boolean }> {
  let text = '';
  list.setEncoding('utf8');
  list.on('data', (more) => {
    text += more;
  });
  list.on('error', () => {}); // a broken connection
  await new Promise((resolve) => {
    list.once('close', resolve);
  });
  return { text, complete: list.complete };
}

/** Reads a list that must break off: the text is the beginning of a list, and the connection shows it is incomplete. */
async function assertBroken(list: IncomingMessage): Promise<void> {
  const { text, complete } = await readToTheEnd(list);
  assert.equal(complete, false);
  assert.match(text, /^\{"status":200,/);
  assert.throws(() => JSON.parse(text), SyntaxError);
}

/**
 * Opens eight lists and, while their readers wait, reads one book many times.
 * @param size of the eight lists in MiB; the service must not grow by half of it.
 */
async function readOpenLists(service: ServiceProcess, context: TestContext, size: number): Promise<void> {
  const { id } = await service.client.create({ title: 'a small one' });
  await readSingly(service, id);
  const atRest = await residentMemory(service);
  const lists = await Promise.all(Array.from({ length: 8 }, () => openList(service)));
  let most = 0;
  for (let round = 0; round < 4; round += 1) {
    await readSingly(service, id);
    most = Math.max(most, await residentMemory(service));
  }
  for (const { request } of lists) request.destroy();
  const figures = [atRest, most, size].map(Math.round);
  context.diagnostic(`${figures[0]} MiB at rest, ${figures[1]} MiB with lists of ${figures[2]} MiB open`);
  assert.ok(most - atRest < size / 2, `${figures[1]} MiB, ${figures[0]} MiB before`);
}

/** Reads one book many times, one after the other, so that the service's event loop turns at least as often. */
async function readSingly({ client }: RunningService, id: number): Promise<void> {
  for (let time = 0; time < 50; time += 1) {
    assert.equal((await client.request('GET', `/book/${id}`)).status, 200);
  }
}

/** Writes so many bytes to the log of writes, as another process would, and nothing into the file. */
function lengthenLog(dbUrl: string, bytes: number): void {
  const db = new DatabaseSync(fileOf(dbUrl), { timeout: 60_000 });
  db.exec(
    'pragma wal_autocheckpoint = 0; pragma synchronous = off; create table if not exists other (zeros)',
  );
  const piece = 16 * 1024 ** 2;
  for (let written = 0; written < bytes; written += piece) {
    db.exec(`delete from other; insert into other values (zeroblob(${piece}))`);
  }
  db.close();
}

/** Another process that reads from the log of writes until its connection is closed. */
function openReader(dbUrl: string): DatabaseSync {
  const db = new DatabaseSync(fileOf(dbUrl), { readOnly: true });
  db.exec('begin; select * from books limit 1');
  return db;
}
