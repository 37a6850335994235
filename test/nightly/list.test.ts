// Lists whose readers are slow or leave, lists that break off, more of them than can be open, and their log of writes, on every store.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { statSync, truncateSync } from 'node:fs';
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { before, beforeEach, describe, test } from 'node:test';
import { fill, manyBooks } from '../support/books.ts';
import { Connection, readEnvelope } from '../support/client.ts';
import { operationsOf } from '../support/operations.ts';
import { execute, sessionsOf } from '../support/postgres.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { TcpProxy } from '../support/proxy.ts';
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
import { executeOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** More bytes than systems buffer for a stalled reader. */
const LARGE = manyBooks(20, 1_000_000);

/** Bytes of the log of writes beyond which lists and searches wait for each other. */
const LONG = 100 * 1024 ** 2;

/** Of a service that waits for as long as a test takes. */
const MINUTE = 60_000;
const PATIENT = timesWith({
  books: { deadline: MINUTE },
  lists: { wait: MINUTE, stall: MINUTE },
  sqlite: { search: MINUTE, walWait: MINUTE },
});

for (const store of STORES) {
  describe(`slow readers on ${store.name}`, () => {
    let service: ServiceProcess;
    before(async () => {
      // Without an index, which would have to follow hundreds of megabytes and has no part in lists.
      service = await startServiceProcess(await store.freshUrl(), { FIND: 'off' });
    });
    beforeEach(async () => {
      await waitUntil(async () => (await openLists(service)) === 0);
      await fill(service.dbUrl, LARGE);
    });

    test('rule 13: a list shows the moment at which it began, however slowly it is read', async () => {
      const { client, dbUrl } = service;
      const { list } = await openList(service);
      await client.request('DELETE', '/book/20');
      await client.request('PUT', '/book/19', { body: { title: 'too late' } });
      await client.create({ title: 'too late' });
      await executeOn(dbUrl, `update books set year = 0, author = 'too late' where id % 10 = 0`);
      const { text, complete } = await readToTheEnd(list);
      assert.ok(complete);
      const { data } = readEnvelope(text, 200) as { data: unknown };
      assert.ok(JSON.stringify(data) === JSON.stringify(LARGE)); // too long to be printed
    });

    const limit = store === SQLITE ? 32 : 8;
    test(`rules 13, 22 and 23: at most ${limit} lists are open; one more gets 503, and single books are still read and written`, async () => {
      const patient = await start(service.dbUrl, timesWith({ lists: { stall: MINUTE } }), {
        FIND: 'off',
      });
      const held = await Promise.all(Array.from({ length: limit }, () => openList(patient)));
      for (const { list } of held) assert.equal(list.statusCode, 200);
      const { status, message, data, headers } = await patient.client.request('GET', '/books');
      assert.deepEqual([status, message, data], [503, 'Service unavailable', null]);
      assert.ok(Number(headers.get('retry-after')) > 0);
      const { id } = await patient.client.create({ title: 'meanwhile' });
      assert.equal((await patient.client.request('DELETE', `/book/${id}`)).status, 200);
      held.shift()?.request.destroy(); // makes room for another
      held.push(await openList(patient));
      assert.equal(held.at(-1)?.list.statusCode, 200);
      for (const { request } of held) request.destroy();
    });

    test('rules 13 and 22: a list whose reader reads nothing breaks off for another one', async () => {
      const times = timesWith({ lists: { stall: 1, wait: 1 } });
      const impatient = await start(service.dbUrl, times, { FIND: 'off' });
      const held = await Promise.all(Array.from({ length: limit }, () => openList(impatient)));
      await waitUntil(async () => {
        const another = await openList(impatient);
        const isOpen = another.list.statusCode === 200; // otherwise no reader has stalled yet
        if (isOpen) held.push(another);
        return isOpen;
      });
      const ends = await Promise.all(held.map(({ list }) => readToTheEnd(list)));
      assert.equal(ends.filter(({ complete }) => !complete).length, 1);
      assert.equal(ends.at(-1)?.complete, true);
    });

    test('rules 13 and 23: readers that disconnect before their list begins or half way leave nothing behind', async () => {
      const wanted = compose('GET', '/books', { token: service.client.token });
      for (let round = 0; round < 2; round += 1) {
        const lists = await Promise.all(Array.from({ length: 5 }, () => openList(service)));
        const pipelined = new Connection(service);
        pipelined.socket.once('data', () => pipelined.socket.pause());
        pipelined.socket.write(wanted.repeat(40)); // each list is sent once the reader takes it
        await waitUntil(() => pipelined.socket.isPaused());
        const tooEarly = requestList(service); // disconnects before its answer begins
        await once(tooEarly, 'finish');
        for (const request of [tooEarly, ...lists.map(({ request }) => request)]) request.destroy();
        assert.equal((await service.client.list()).length, LARGE.length); // beside the pipelined ones
        pipelined.socket.resetAndDestroy();
        await waitUntil(async () => (await openLists(service)) === 0);
      }
    });

    if (store === POSTGRES) {
      for (const end of ['pg_terminate_backend', 'pg_cancel_backend']) {
        test(`rule 13: when a list breaks off by ${end}, its reader sees a broken connection, never a list that looks complete`, async () => {
          const { dbUrl } = service;
          const copying = () => sessionsOf(dbUrl, "state = 'active' and query like '%copy%'");
          await waitUntil(async () => (await copying()).length === 0);
          const { list } = await openList(service);
          const [statement] = await copying();
          await execute(dbUrl, `select ${end}(${statement?.pid})`);
          // A cancelled statement ends once it has sent its current row, a terminated one at once.
          if (end === 'pg_terminate_backend') await waitUntil(async () => (await copying()).length === 0);
          await assertBroken(list);
          assert.equal((await service.client.list()).length, LARGE.length);
        });
      }

      test('rules 13 and 23: readers that disconnect from lists of a silent server leave nothing behind', async () => {
        const { proxy, proxiedUrl } = await TcpProxy.to(service.dbUrl);
        const behind = await start(proxiedUrl);
        const lists = await Promise.all(Array.from({ length: 8 }, () => openList(behind)));
        proxy.cut();
        for (const { request } of lists) request.destroy();
        proxy.restore();
        await waitUntil(async () => (await behind.client.request('GET', '/books')).status === 200);
      });
    }
  });
}

if (STORES.includes(SQLITE)) {
  describe('the log of writes on SQLite', () => {
    test('rule 13: when a list breaks off, its reader sees a broken connection, never a list that looks complete', async () => {
      const service = await startFilled();
      const file = fileOf(service.dbUrl);
      await executeOn(service.dbUrl, 'pragma wal_checkpoint(truncate)'); // all books are in the file itself
      const { list } = await openList(service);
      const old = new Connection(service); // without chunks, the end of the connection would end the list
      old.socket.once('data', () => old.socket.pause());
      await old.send(`GET /books HTTP/1.0\r\nAuthorization: ${service.client.token}\r\n\r\n`);
      await waitUntil(() => old.socket.isPaused());
      truncateSync(file, statSync(file).size / 2); // as if the disk lost the second half
      await assertBroken(list);
      old.socket.resume();
      assert.equal(((await old.closed) as NodeJS.ErrnoException | undefined)?.code, 'ECONNRESET');
    });

    /** What keeps a long log of writes from being emptied. */
    const keepers: Readonly<Record<string, (service: RunningService) => Promise<() => unknown>>> = {
      '?q=nobody': async ({ client, dbUrl }) => {
        const other = openReader(dbUrl);
        return async () => {
          other.close();
          for (const title of ['one', 'another']) await client.create({ title }); // the next write begins the log again
        };
      },
      '': async (service) => {
        const { request } = await openList(service);
        return () => request.destroy();
      },
    };
    for (const [query, keep] of Object.entries(keepers)) {
      test(`rule 22: GET /books${query} waits for those that keep a long log of writes from being emptied, and for nobody else`, async () => {
        for (const isKept of [true, false]) {
          const service = await startFilled(PATIENT);
          const { client, dbUrl } = service;
          const letGo = isKept ? await keep(service) : () => {};
          lengthenLog(dbUrl, LONG);
          let isAnswered = false;
          const answer = client.request('GET', `/books${query}`).finally(() => {
            isAnswered = true;
          });
          if (isKept) {
            for (let read = 0; read < 50; read += 1) await client.request('GET', '/book/1000'); // longer than an answer takes
            assert.equal(isAnswered, false);
          }
          await letGo();
          assert.equal((await answer).status, 200);
          assert.ok(statSync(`${fileOf(dbUrl)}-wal`).size < LONG);
        }
      });
    }
  });
}

async function start(
  dbUrl: string,
  times?: typeof PATIENT,
  env: Record<string, string> = {},
): Promise<RunningService> {
  return startTestService(dbUrl, env, undefined, times);
}

/** Starts a service on SQLite whose books are large, and indexed. */
async function startFilled(times?: typeof PATIENT): Promise<RunningService> {
  const dbUrl = await SQLITE.freshUrl();
  await fill(dbUrl, LARGE);
  const service = await start(dbUrl, times);
  await waitUntil(async () => (await service.client.request('GET', '/books?limit=1')).status === 200);
  return service;
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
  list.on('error', () => {}); // a broken connection
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

/** Writes so many bytes to the log of writes, as another process would, and nothing into the file. */
function lengthenLog(dbUrl: string, bytes: number): void {
  using db = new DatabaseSync(fileOf(dbUrl), { timeout: MINUTE });
  db.exec(
    'pragma wal_autocheckpoint = 0; pragma synchronous = off; create table if not exists other (zeros)',
  );
  const piece = 16 * 1024 ** 2;
  for (let written = 0; written < bytes; written += piece) {
    db.exec(`delete from other; insert into other values (zeroblob(${piece}))`);
  }
}

/** Another process that reads from the log of writes until its connection is closed. */
function openReader(dbUrl: string): DatabaseSync {
  const db = new DatabaseSync(fileOf(dbUrl), { readOnly: true });
  db.exec('begin; select * from books limit 1');
  return db;
}

/** How many lists the service has open, according to its metrics. */
async function openLists(service: ServiceProcess): Promise<number> {
  const metrics = await scrape(operationsOf(service).url);
  if (service.dbUrl.startsWith('sqlite:')) return sumOf(metrics, 'book_catalogue_sqlite_open_lists');
  return (
    sumOf(metrics, 'book_catalogue_postgres_connections', { pool: 'lists' }) -
    sumOf(metrics, 'book_catalogue_postgres_idle_connections', { pool: 'lists' })
  );
}
