// Undos of more books than fit into one step: on every store. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import type { Client } from '../support/client.ts';
import { command } from '../support/importing.ts';
import { STORES, spawnService, startServiceProcess, startTestService } from '../support/service.ts';
import { executeOn, makeEarlier, runOn } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

/** One more than fit into one step. */
const BOOKS = 10_001;

/** By another program. */
const STORE_BOOKS = {
  SQLite: `insert into books (year) with recursive n (n) as (values (1) union all select n + 1 from n where n < ${BOOKS}) select n from n`,
  PostgreSQL: `insert into books (year) select n from generate_series(1, ${BOOKS}) as n`,
};

/** Changes book 2 by more changes than are read together, as another program. */
const CHANGE_OFTEN = {
  SQLite: `
    create table numbers (n integer primary key);
    insert into numbers with recursive n (n) as (values (1) union all select n + 1 from n where n < ${BOOKS}) select n from n;
    create trigger change after delete on numbers begin update books set year = year + 1 where id = 2; end;
    delete from numbers; drop table numbers`,
  PostgreSQL: `do $$ begin for n in 1..${BOOKS} loop update books set year = year + 1 where id = 2; end loop; end $$`,
};

interface Event {
  readonly event: number;
  readonly kind: string;
  readonly name: string | null;
  readonly books: number;
  readonly undo: { books: number; checked: number; changedLater: number; left: object[] } | null;
}

async function eventOf(client: Client, number: number): Promise<Event> {
  const { status, message, data } = await client.request('GET', `/event/${number}`);
  assert.deepEqual([status, message], [200, 'Event retrieved successfully']);
  return data as Event;
}

/** Without the difference: to find that of so many books takes gigabytes. */
function assertSame(books: readonly Book[], others: readonly Book[]): void {
  const differs = books.find((book, at) => JSON.stringify(book) !== JSON.stringify(others[at]));
  assert.deepEqual([differs, books.length], [undefined, others.length]);
}

const untilDone = (client: Client, number: number) =>
  waitUntil(
    async () => (await eventOf(client, number)).undo?.checked === BOOKS,
    undefined,
    () => eventOf(client, number),
  );

for (const store of STORES) {
  describe(`undo in parts on ${store.name}`, () => {
    test('rules H5 and H7: more than 10,000 books are taken back in parts under one number, for every process', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const other = await startTestService(dbUrl);
      context.after(other.stop);
      await executeOn(dbUrl, STORE_BOOKS[store.name]);
      await client.request('PUT', '/book/7', { body: { title: 'in between' } });
      await executeOn(dbUrl, 'update books set year = 5 where id = 10001');
      const body = { since: '2020-01-01T00:00:00Z' };
      const headers = { 'idempotency-key': 'once' };
      const begun = await client.request('POST', '/undo', { body, headers });
      const { event: number, at, ...rest } = begun.data;
      assert.deepEqual([begun.status, begun.message], [202, 'Undo in progress']);
      assert.equal(begun.headers.get('location'), `/event/${number}`);
      assert.match(at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      assert.deepEqual([rest.kind, rest.name, rest.undo.books], ['undo', null, BOOKS]);
      await untilDone(other.client, number);
      assertSame(await client.list(), []);
      const { at: _, until, ...done } = (await other.client.request('GET', `/event/${number}`)).data;
      const undo = { books: BOOKS, checked: BOOKS, changedLater: 0, left: [] };
      assert.deepEqual([done, until], [{ event: number, kind: 'undo', name: null, books: BOOKS, undo }, at]);
      const again = await other.client.request('POST', '/undo', { body, headers });
      assert.deepEqual(
        [again.status, again.data, again.headers.get('idempotent-replayed')],
        [200, { change: number, undone: BOOKS, left: [] }, 'true'],
      );
      for (const method of ['GET', 'POST']) {
        const unknown = await client.request(method, '/event/999999');
        assert.deepEqual([unknown.status, unknown.message], [404, 'Event not found']);
      }
    });

    test('rule H5: a book with thousands of changes is taken back with those beside it', async () => {
      const { client, dbUrl } = await startTestService(await store.freshUrl());
      for (const title of ['A', 'B', 'C']) await client.create({ title });
      const before = await client.list();
      const since = await makeEarlier(dbUrl, 1);
      await client.request('PUT', '/book/1', { body: { year: 1 } });
      await runOn(dbUrl, CHANGE_OFTEN[store.name]);
      await client.request('PUT', '/book/3', { body: { year: 3 } });
      const { data } = await client.request('POST', '/undo', { body: { since } });
      assert.deepEqual([data.undone, data.left], [3, []]);
      assert.deepEqual(await client.list(), before);
      await client.request('PUT', '/book/2', { body: { year: 1 } });
      const again = await client.request('POST', '/undo', { body: { change: data.change } });
      assert.deepEqual([again.data.undone, again.data.left], [2, [{ id: 2, reason: 'changed later' }]]);
    });

    test('rule H5: of two at once, and beside changes, nothing is undone twice or lost', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const other = await startTestService(dbUrl);
      context.after(other.stop);
      await executeOn(dbUrl, STORE_BOOKS[store.name]);
      const before = await client.list();
      await executeOn(dbUrl, "update books set title = 'mistake'");
      const [newest] = (await client.request('GET', '/book/1/history')).data;
      await makeEarlier(dbUrl, 1, 'title is null');
      const since = new Date(Date.parse(newest.at) - 60_000).toISOString();
      const both = await Promise.all(
        [client, other.client].map((one) => one.request('POST', '/undo', { body: { since } })),
      );
      await client.request('PUT', '/book/10000', { body: { title: 'mistake', year: 3 } });
      const numbers = both.map(({ status, data }) => {
        assert.equal(status, 202);
        return data.event as number;
      });
      for (const number of numbers) await untilDone(client, number);
      const [one, two] = await Promise.all(numbers.map((number) => eventOf(client, number)));
      const undone = Number(one?.books) + Number(two?.books);
      const books = await client.list();
      assertSame(books.toSpliced(9999, 1), before.toSpliced(9999, 1));
      assert.deepEqual(books[9999], { ...before[9999], title: 'mistake', year: 3 });
      assert.ok(undone === BOOKS || undone === BOOKS - 1, `${undone}`); // it was changed before or after
    });

    for (const way of ['by its number', 'by its key', 'when a service starts'])
      test(`rule H5: an undo that was killed has taken back whole parts, and continues ${way}`, async () => {
        const first = await startServiceProcess(await store.freshUrl());
        const { dbUrl } = first;
        await executeOn(dbUrl, STORE_BOOKS[store.name]);
        const books = await first.client.list();
        await executeOn(dbUrl, 'delete from books');
        const [newest] = (await first.client.request('GET', '/book/1/history?limit=1')).data;
        await makeEarlier(dbUrl, 1, 'title is null');
        const body = { since: new Date(Date.parse(newest.at) - 60_000).toISOString() };
        const request = { body, headers: { 'idempotency-key': 'once' } };
        const others = way === 'when a service starts' ? undefined : await startTestService(dbUrl);
        const { event } = (await first.client.request('POST', '/undo', request)).data;
        await waitUntil(async () => (await eventOf(first.client, event)).books > 0);
        first.process.kill('SIGKILL');
        const [left] = await executeOn(
          dbUrl,
          'select (select count(*) from books) - (select books from book_events) as books',
        );
        assert.equal(Number(left?.books), 0);
        const { client } = others ?? (await startTestService(dbUrl));
        if (way === 'by its number') await client.request('POST', `/event/${event}`);
        if (way === 'by its key') await client.request('POST', '/undo', request);
        await untilDone(client, event);
        assertSame(await client.list(), books);
        assert.equal((await client.request('POST', `/event/${event}`)).status, 200);
        const again = await client.request('POST', '/undo', request);
        assert.deepEqual([again.status, again.data.undone], [200, BOOKS]);
      });

    test('rule H7: an undo that is itself taken back before it is complete ends there', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      await executeOn(dbUrl, STORE_BOOKS[store.name]);
      const books = await client.list();
      const begun = await client.request('POST', '/undo', { body: { since: '2020-01-01T00:00:00Z' } });
      const { event } = begun.data;
      await waitUntil(async () => (await eventOf(client, event)).books > 0);
      const back = await client.request('POST', '/undo', { body: { event } });
      const complete = async (number: number) => {
        const { undo } = await eventOf(client, number);
        return undo?.checked === undo?.books;
      };
      const number = back.data.event ?? back.data.change;
      await waitUntil(async () => (await complete(event)) && (await complete(number)));
      assertSame(await client.list(), books);
      const [one, two] = [await eventOf(client, event), await eventOf(client, number)];
      assert.equal(one.undo?.checked, two.books);
    });

    test('rule H5: a command that was killed is continued by its number', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      await executeOn(dbUrl, STORE_BOOKS[store.name]);
      const child = spawnService({ DB_URL: dbUrl }, ['undo', '--since', '2020-01-01 00:00 UTC', '--yes']);
      const left = async () => (await client.list()).length;
      await waitUntil(async () => (await left()) < BOOKS);
      child.kill('SIGKILL');
      const [event] = await executeOn(dbUrl, "select number from book_events where kind = 'undo'");
      const { stdout } = await command(`undo --continue ${event?.number} --yes`, dbUrl);
      assert.match(
        stdout,
        new RegExp(
          `^10001 books taken back\\.\nTo take this back: book-catalogue undo --change ${event?.number} --yes\n$`,
        ),
      );
      assert.equal(await left(), 0);
    });
  });
}
