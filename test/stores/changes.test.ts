// What programs read of the log of changes, beside what the kit checks: on every store. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { COORDINATOR } from '../support/citus.ts';
import { type Client, nextOf } from '../support/client.ts';
import { connectTo } from '../support/postgres.ts';
import { compose, statusesOf } from '../support/raw-requests.ts';
import { fileOf, POSTGRES, SQLITE, STORES, startTestService } from '../support/service.ts';
import { executeOn, logPruned } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

interface Change {
  readonly id: number;
  readonly at: string;
  readonly book: Book | null;
}

interface State {
  readonly change: number | null;
  readonly at: string;
  readonly book: Book | null;
}

/** A slow machine does not end a page of changes. */
const UNHURRIED = timesWith({ sqlite: { page: 60 * 60 * 1000 } });

/** A copy of a catalogue that is kept by following its changes. */
class Copy {
  readonly #client: Client;
  readonly books = new Map<number, Book>();
  path: string;

  constructor(client: Client, path = '/changes') {
    this.#client = client;
    this.path = path;
  }

  /** @returns the ids of the next page. */
  async readPage(headers: Record<string, string> = {}): Promise<number[]> {
    const answer = await this.#client.request('GET', this.path, { headers });
    assert.equal(answer.status, 200, answer.message);
    const changes = answer.data as Change[];
    for (const { id, book } of changes) {
      if (book === null) this.books.delete(id);
      else this.books.set(id, book);
    }
    this.path = nextOf(answer);
    return changes.map(({ id }) => id);
  }

  /** @returns the ids of the pages up to one without any. */
  async readAll(): Promise<number[]> {
    const ids: number[] = [];
    for (let page = await this.readPage(); page.length > 0; page = await this.readPage()) ids.push(...page);
    return ids;
  }

  async assertEqual(): Promise<void> {
    assert.deepEqual(
      [...this.books.values()].toSorted((one, other) => one.id - other.id),
      await this.#client.list(),
    );
  }
}

async function statesOf(client: Client, id: number): Promise<State[]> {
  const { status, data } = await client.request('GET', `/book/${id}/history`);
  assert.equal(status, 200);
  return data as State[];
}

/** Of the log, while no service runs. Citus lets nobody drop a trigger. */
const DAMAGE = {
  SQLite: 'drop trigger book_log_on_update',
  PostgreSQL:
    process.env[COORDINATOR] === undefined
      ? 'drop trigger book_log_on_update on books'
      : 'drop table book_log',
};

const SERIES = {
  SQLite: (books: number) =>
    `insert into books (title) with recursive n (n) as (values (1) union all select n + 1 from n where n < ${books}) select 'Series ' || n from n`,
  PostgreSQL: (books: number) =>
    `insert into books (title) select 'Series ' || n from generate_series(1, ${books}) as n`,
};

for (const store of STORES) {
  describe(`followers on ${store.name}`, () => {
    test('rule H1: a follower gets all books, then the changes of any program, and ends with the books of the list', async () => {
      const { client, dbUrl } = await startTestService(await store.freshUrl(), {}, undefined, UNHURRIED);
      const sql = (statement: string) => executeOn(dbUrl, statement);
      const empty = new Copy(client);
      await sql(SERIES[store.name](1500));
      const copy = new Copy(client, '/changes?limit=1000');
      assert.equal((await copy.readPage()).length, 1000);
      await sql("update books set title = 'Changed' where id in (5, 1400)"); // one was read, one was not
      await sql('delete from books where id in (6, 1401)');
      await client.create({ title: 'New' });
      assert.deepEqual((await copy.readAll()).slice(0, 2), [1001, 1002]);
      await copy.assertEqual();
      await client.request('PUT', '/book/7', { body: { year: 1 } });
      await client.request('PUT', '/book/8', { body: { year: 1 } });
      await client.request('PUT', '/book/7', { body: { year: 2 } });
      await client.request('DELETE', '/book/9');
      await sql('delete from books where id = 10');
      await sql("insert into books (id, title) values (100000, 'Moved')");
      assert.deepEqual(
        (await copy.readAll()).toSorted((one, other) => one - other),
        [7, 8, 9, 10, 100000],
      );
      await sql(SERIES[store.name](1300));
      assert.equal((await copy.readAll()).length, 1300);
      await copy.assertEqual();
      await empty.readAll();
      await empty.assertEqual();
      assert.deepEqual(await copy.readAll(), []);
    });

    test('rules H1 and H4: heavy books and heavy states end a page, and none is left out', async () => {
      const { client } = await startTestService(await store.freshUrl());
      const copy = new Copy(client);
      assert.deepEqual(await copy.readAll(), []);
      for (let book = 1; book <= 7; book += 1) await client.create({ title: `${book}`.repeat(400_000) });
      for (const follower of [copy, new Copy(client)]) {
        const first = await follower.readPage();
        assert.ok(first.length < 7);
        assert.deepEqual([...first, ...(await follower.readAll())].toSorted(), [1, 2, 3, 4, 5, 6, 7]);
        await follower.assertEqual();
      }
      for (let year = 1; year <= 4; year += 1) await client.request('PUT', '/book/7', { body: { year } });
      const years: unknown[] = [];
      let pages = 0;
      for (let path = '/book/7/history'; path !== ''; pages += 1) {
        const answer = await client.request('GET', path);
        years.push(...(answer.data as State[]).map(({ book }) => book?.year));
        path = nextOf(answer);
      }
      assert.deepEqual([years, pages > 1], [[4, 3, 2, 1, 0], true]);
    });

    test('rule H1: a change is dated when it is noted, and an older book when the log begins', async () => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      await client.create({ title: 'Older' });
      await stop();
      for (const table of ['book_log', 'book_events', 'book_log_state'])
        await executeOn(dbUrl, `drop table ${table}`);
      const before = new Date().toISOString();
      const again = await startTestService(dbUrl, {}, undefined, UNHURRIED);
      await executeOn(dbUrl, SERIES[store.name](600));
      await new Copy(again.client).readPage(); // it notes them
      const began = new Date().toISOString();
      await again.client.request('PUT', '/book/300', { body: { year: 1 } });
      const { data } = await again.client.request('GET', '/changes?limit=1000');
      const dates = (data as Change[]).map(({ at }) => at);
      const isWithin = (at: string | undefined, from: string, to: string) =>
        String(at) >= from && String(at) <= to;
      assert.equal(dates.length, 601);
      assert.ok(dates.every((at, index) => index === 299 || isWithin(at, before, began)));
      assert.ok(isWithin(dates[299], began, new Date().toISOString()));
      const [newest, created, ...others] = await statesOf(again.client, 300);
      assert.deepEqual([newest?.at, others], [dates[299], []]);
      assert.ok(isWithin(created?.at, before, began));
      const [older, ...none] = await statesOf(again.client, 1);
      assert.deepEqual([older?.change, older?.at, none], [null, dates[0], []]);
    });

    test('rule H2: a cursor is no longer valid in another store, in a log that was made again, or beyond what is kept', async () => {
      const brief = timesWith({ history: { day: 0, prune: 20 } });
      const service = await startTestService(await store.freshUrl());
      const { client } = service;
      const copy = new Copy(client);
      await client.create({ title: 'A' });
      await copy.readAll();
      const { path } = copy;
      const assertGone = async (other: Client, from = path) => {
        const { status, message, data } = await other.request('GET', from);
        assert.deepEqual([status, message, data], [410, 'Cursor no longer valid', null]);
      };
      const other = await startTestService(await store.freshUrl());
      await other.client.create({ title: 'A' });
      await assertGone(other.client);
      for (const content of [
        [],
        [1],
        [[]],
        [1, 2, 3, 4, 5],
        [['x', 1]],
        [[0, '', '', '', '', '', 0, 1, 0]],
      ]) {
        const cursor = Buffer.from(JSON.stringify(content)).toString('base64url');
        await assertGone(client, `/changes?cursor=${cursor}`);
      }
      assert.equal(
        (await client.request('GET', '/changes?cursor=e30')).message,
        'Invalid query parameter: cursor',
      );
      for (const title of ['B', 'C', 'D']) await client.create({ title });
      const midway = new Copy(client, path.replace('limit=100', 'limit=1'));
      await midway.readPage();
      await service.stop();
      const pruning = await startTestService(service.dbUrl, {}, undefined, brief);
      for (const behind of [midway.path, path]) {
        await waitUntil(async () => (await pruning.client.request('GET', behind)).status === 410);
        await pruning.client.create({}); // D was the newest change
      }
      await assertGone(pruning.client);
      await pruning.stop();
      const damaged = await startTestService(service.dbUrl);
      const last = new Copy(damaged.client);
      await last.readAll();
      await damaged.stop();
      await executeOn(service.dbUrl, DAMAGE[store.name]);
      const repaired = await startTestService(service.dbUrl);
      await assertGone(repaired.client, last.path);
    });

    test('rule H3: a request waits for a change of this process, of another one or of a program, and for the end of the service', async () => {
      const dbUrl = await store.freshUrl();
      const service = await startTestService(dbUrl);
      const other = await startTestService(dbUrl);
      const copy = new Copy(service.client);
      await copy.readAll();
      const makers = [
        () => service.client.create({ title: 'own' }),
        () => other.client.create({ title: 'of another process' }),
        () => executeOn(dbUrl, "insert into books (title) values ('of a program')"),
        () => executeOn(dbUrl, 'delete from books where id = 1'),
      ];
      for (const [index, change] of makers.entries()) {
        let isAnswered = false;
        const page = copy.readPage({ prefer: 'wait=60' }).finally(() => (isAnswered = true));
        await service.client.list(); // the other request has arrived
        assert.equal(isAnswered, false);
        await change();
        assert.deepEqual(await page, [[1], [2], [3], [1]][index]);
        await copy.readAll();
      }
      await copy.assertEqual();
      const leaving = connect(service.port, '127.0.0.1');
      leaving.end(
        `GET ${copy.path} HTTP/1.1\r\nhost: x\r\nauthorization: ${service.client.token}\r\nprefer: wait=60\r\n\r\n`,
      );
      assert.match((await leaving.toArray()).join(''), /"data":\[\]}$/); // a client that closes its side may have left
      const waiting = service.client.request('GET', copy.path, { headers: { prefer: 'wait=60' } });
      await service.client.list();
      await service.stop();
      const { status, data, headers } = await waiting;
      assert.deepEqual([status, data, headers.get('preference-applied')], [200, [], 'wait=60']);
    });

    test('rules H3 and 22: all who wait get a large page, though their answers together have no room', async (context) => {
      const { client, port } = await startTestService(await store.freshUrl());
      const copy = new Copy(client);
      await copy.readAll();
      const statuses = statusesOf(
        150,
        context,
        port,
        compose('GET', copy.path, { token: client.token, headers: 'Prefer: wait=60\r\n' }),
      );
      await client.list(); // most of the others have arrived
      await client.create({ title: '\u0001'.repeat(170_000) });
      assert.deepEqual([...new Set(await statuses)], ['HTTP/1.1 200']);
    });

    test('rule H4: the history of a book has its states, of a removed one too', async () => {
      const { client, dbUrl } = await startTestService(await store.freshUrl());
      const sql = (statement: string) => executeOn(dbUrl, statement);
      await sql(SERIES[store.name](700));
      await sql("update books set title = 'B', year = 1 where id = 350");
      await sql("update books set title = 'B' where id = 350"); // as it was
      await sql('delete from books where id = 350');
      await sql("insert into books (id, title, author, year) values (350, 'C', '', 0)");
      await client.request('PUT', '/book/350', { body: { title: 'D' } });
      const titles = (states: State[]) => states.map(({ book }) => book && `${book.title} ${book.year}`);
      const all = await statesOf(client, 350);
      assert.deepEqual(titles(all), ['D 0', 'C 0', null, 'B 1', 'Series 350 0']);
      const numbers = all.map(({ change }) => Number(change));
      assert.ok(numbers.every((number, index) => number > (numbers[index + 1] ?? 0)));
      const pages: State[] = [];
      for (let path = '/book/350/history?limit=2'; path !== ''; ) {
        const answer = await client.request('GET', path);
        pages.push(...(answer.data as State[]));
        const ofNone = await client.request('GET', path.replace('350', '701'));
        assert.equal(ofNone.message, 'Book not found');
        assert.equal((await client.request('GET', path.replace('350', '2'))).status, 200);
        path = nextOf(answer);
      }
      assert.deepEqual(pages, all);
      assert.deepEqual(titles(await statesOf(client, 1)), ['Series 1 0']);
      await client.request('DELETE', '/book/1');
      assert.deepEqual(titles(await statesOf(client, 1)), [null, 'Series 1 0']);
    });

    test('rule H6: without a log of changes there are no changes and histories, and searches find all books', async () => {
      const brief = timesWith({ history: { prune: 20 } });
      const { client, dbUrl } = await startTestService(
        await store.freshUrl(),
        { HISTORY: 'off' },
        undefined,
        brief,
      );
      for (let year = 1; year <= 5; year += 1) await client.create({ title: 'Kept', year });
      for (const path of ['/changes', '/book/1/history', '/book/x/history'])
        assert.deepEqual((await client.request('GET', path, { token: null })).message, 'Not found');
      await client.request('DELETE', '/book/1');
      await logPruned(dbUrl);
      const kept = () => executeOn(dbUrl, 'select 1 from book_log where book > 0');
      await waitUntil(async () => (await kept()).length === 0);
      const { data } = await client.request('GET', '/books?q=kept');
      assert.equal((data as Book[]).length, 4);
    });

    if (store === SQLITE) {
      test('rule H1: a page ends when it is late, with the books that it has, and none is left out', async () => {
        const late = timesWith({ sqlite: { page: 0 } });
        const service = await startTestService(await store.freshUrl(), {}, undefined, late);
        const { client, dbUrl } = service;
        await executeOn(dbUrl, SERIES.SQLite(5));
        const copy = new Copy(client);
        assert.deepEqual(await copy.readPage(), [1]);
        await executeOn(dbUrl, 'update books set year = 1 where id > 3');
        assert.deepEqual(await copy.readPage(), [2]);
        await copy.readAll();
        await copy.assertEqual();
      });

      test('rule H2: a cursor is no longer valid in a file that was restored', async () => {
        const before = await startTestService(await store.freshUrl());
        await before.client.create({ title: 'A' });
        await before.stop();
        const file = fileOf(before.dbUrl);
        copyFileSync(file, `${file}.kept`);
        const lost = await startTestService(before.dbUrl);
        const copy = new Copy(lost.client);
        await lost.client.create({ title: 'Lost' });
        await copy.readAll();
        await lost.stop();
        copyFileSync(`${file}.kept`, file);
        const restored = await startTestService(before.dbUrl);
        for (const _ of [1, 2, 3]) {
          assert.equal((await restored.client.request('GET', copy.path)).status, 410);
          await restored.client.create({ title: 'Later' });
        }
      });
    }

    // The copy of a table would be none of Citus.
    if (store === POSTGRES && process.env[COORDINATOR] === undefined) {
      test('rule H2: a cursor is no longer valid in a database whose dump was restored', async () => {
        const { client, dbUrl } = await startTestService(await store.freshUrl());
        const copy = new Copy(client);
        await client.create({ title: 'A' });
        await copy.readAll();
        await executeOn(
          dbUrl,
          `create table dumped (like book_log including all); insert into dumped select * from book_log;
          drop table book_log; alter table dumped rename to book_log`,
        );
        assert.equal((await client.request('GET', copy.path)).status, 410);
      });
    }

    if (store === POSTGRES) {
      test('rules H1 and H2: no follower waits for a transaction that another program leaves open, and what it has written comes at its end', async (context) => {
        const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
        const copy = new Copy(client, '/changes?limit=2');
        const program = await connectTo(context, dbUrl);
        for (let round = 1; round <= 3; round += 1) {
          await program.query("begin; insert into books (title) values ('Late')");
          for (let book = 1; book <= 3; book += 1) await client.create({ title: `Meanwhile ${book}` });
          assert.equal((await copy.readAll()).length, 3);
          await program.query('commit');
          await client.create({ title: 'More' });
          assert.equal((await copy.readAll()).length, 2);
          await copy.assertEqual();
        }
        await program.query("begin; insert into books (title) values ('Late')");
        for (const title of ['A', 'B']) await client.create({ title });
        await copy.readAll();
        await program.query('commit');
        await stop();
        const brief = timesWith({ history: { day: 0, prune: 20 } });
        const pruning = await startTestService(dbUrl, {}, undefined, brief);
        await logPruned(dbUrl);
        assert.equal((await pruning.client.request('GET', copy.path)).status, 410); // it lacks a row that is gone
      });
    }
  });
}
