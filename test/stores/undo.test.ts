// Taking changes back: on every store. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { COORDINATOR } from '../support/citus.ts';
import { bare, type Client } from '../support/client.ts';
import { STORES, startTestService } from '../support/service.ts';
import { executeOn, makeEarlier, runOn } from '../support/sql.ts';

interface State {
  readonly change: number;
  readonly at: string;
  readonly book: Book | null;
}

async function statesOf(client: Client, id: number): Promise<State[]> {
  return (await client.request('GET', `/book/${id}/history`)).data as State[];
}

/** The number of the newest change of a book. */
async function newestOf(client: Client, id: number): Promise<number> {
  return (await statesOf(client, id))[0]?.change as number;
}

interface Undone {
  readonly change: number | null;
  readonly undone: number;
  readonly left: readonly { readonly id: number; readonly reason: string }[];
}

async function undo(client: Client, body: object): Promise<Undone> {
  const { status, message, data } = await client.request('POST', '/undo', { body });
  assert.deepEqual([status, message], [200, 'Changes undone successfully']);
  return data as Undone;
}

/** By another program. */
const ALTERS_NOTHING = {
  SQLite: "insert or ignore into books (id, title) values (1, 'x')",
  PostgreSQL: 'update books set title = title',
};

/** A trigger with which an operator skips what some writes do; and how it ends. */
const SKIPPING = {
  SQLite: (event: string) =>
    `create trigger skipping before ${event} on books begin select raise(ignore); end`,
  PostgreSQL: (event: string) => `
    create function skip() returns trigger language plpgsql as 'begin return null; end';
    create trigger skipping before ${event} on books for each row execute function skip()`,
};
const DROP = { SQLite: 'drop trigger skipping', PostgreSQL: 'drop function skip cascade' };

/** Citus has none on tables that it distributes. */
const HAS_TRIGGERS = process.env[COORDINATOR] === undefined;

const DROP_TRIGGER = {
  SQLite: 'drop trigger book_log_on_update',
  PostgreSQL: 'drop trigger book_log_on_update on books',
};

for (const store of STORES) {
  describe(`undo on ${store.name}`, () => {
    test('rule H5: a change, a removal and a creation are taken back, and so is that', async (context) => {
      const { client, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      for (const title of ['A', 'B', 'C']) await client.create({ title });
      const before = await client.list();
      await client.request('PUT', '/book/1', { body: { title: 'X', year: 5 } });
      await client.request('DELETE', '/book/2');
      const { id } = await client.create({ title: 'D' });
      const after = await client.list();
      const numbers: (number | null)[] = [];
      for (const book of [1, 2, id]) {
        const { change, ...rest } = await undo(client, { change: await newestOf(client, book) });
        assert.deepEqual(rest, { undone: 1, left: [] });
        numbers.push(change);
      }
      assert.deepEqual(await client.list(), before);
      for (const change of numbers) assert.equal((await undo(client, { change })).undone, 1);
      assert.deepEqual(await client.list(), after);
      assert.ok((await client.create({})).id > id);
    });

    test('rule H5: nothing that was changed later is overwritten, and books that are as they were are not named', async (context) => {
      const { client, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      await client.create({ title: 'A' });
      await client.request('PUT', '/book/1', { body: { title: 'B' } });
      const change = await newestOf(client, 1);
      await client.request('PUT', '/book/1', { body: { year: 7 } });
      assert.deepEqual(await undo(client, { change }), {
        change: null,
        undone: 0,
        left: [{ id: 1, reason: 'changed later' }],
      });
      await client.request('PUT', '/book/1', { body: { title: 'A', year: 0 } }); // by hand
      assert.deepEqual(await undo(client, { change }), { change: null, undone: 0, left: [] });
    });

    test('rule H5: all changes since a time are taken back, of any program, without undos and without those before', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      for (let book = 1; book <= 6; book += 1) await client.create({ title: `${book}` });
      await client.request('PUT', '/book/1', { body: { year: 1 } });
      await client.request('PUT', '/book/5', { body: { year: 1 } });
      const undoneBefore = await newestOf(client, 5);
      const before = await client.list();
      const newest = (await statesOf(client, 5))[0]?.at ?? '';
      await makeEarlier(dbUrl, 1);
      const at = new Date(Date.parse(newest) - 1_800_000).toISOString();
      await client.request('PUT', '/book/1', { body: { title: 'x' } });
      await client.request('PUT', '/book/1', { body: { title: 'y' } });
      await executeOn(dbUrl, 'delete from books where id between 2 and 4');
      await client.create({ title: 'New' });
      await undo(client, { change: undoneBefore });
      const { change, ...rest } = await undo(client, { since: at });
      assert.deepEqual(rest, { undone: 5, left: [] });
      const books = before.map((book) => (book.id === 5 ? { ...book, year: 0 } : book));
      assert.deepEqual(await client.list(), books);
      assert.deepEqual(await undo(client, { since: at }), { change: null, undone: 0, left: [] });
      assert.equal((await undo(client, { change })).undone, 5);
      assert.deepEqual(
        (await client.list()).map(({ title }) => title),
        ['y', '5', '6', 'New'],
      );
      await client.request('PUT', '/book/7', { body: { title: 'z' } });
      await client.request('PUT', '/book/1', { body: { title: 'z' } });
      await client.request('PUT', '/book/1', { body: { title: 'y' } }); // comes to nothing
      assert.equal((await undo(client, { change })).undone, 0);
      assert.equal((await undo(client, { since: at })).undone, 5);
      assert.deepEqual(await client.list(), books);
    });

    test('rule H5: undos since a time are left alone, and hinder no undo', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      await client.create({ title: 'A' });
      await client.create({ title: 'B' });
      const before = await client.list();
      const [newest] = await statesOf(client, 2);
      await makeEarlier(dbUrl, 1);
      const since = new Date(Date.parse(newest?.at ?? '') - 1_800_000).toISOString();
      const undoNewest = async (id: number) => undo(client, { change: await newestOf(client, id) });
      await client.request('DELETE', '/book/1');
      await undoNewest(1);
      await client.request('DELETE', '/book/1'); // again by mistake
      for (const year of [2, 3]) {
        await client.request('PUT', '/book/2', { body: { year } });
        if (year === 2) await undoNewest(2);
      }
      const { id } = await client.create({ title: 'C' });
      await client.request('DELETE', `/book/${id}`);
      await undoNewest(id);
      const { undone, left } = await undo(client, { since });
      assert.deepEqual([undone, left], [3, []]);
      assert.deepEqual(await client.list(), before);
      assert.deepEqual(await undo(client, { since }), { change: null, undone: 0, left: [] });
    });

    test('rule H5: what alters nothing since a time hinders no undo', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const book = await client.create({ title: 'A' });
      await client.request('PUT', '/book/1', { body: { year: 1 } });
      const [newest] = await statesOf(client, 1);
      await makeEarlier(dbUrl, 1);
      const since = new Date(Date.parse(newest?.at ?? '') - 1_800_000).toISOString();
      await client.request('PUT', '/book/1', { body: { year: 1 } });
      await executeOn(dbUrl, ALTERS_NOTHING[store.name]);
      assert.equal((await undo(client, { change: newest?.change })).undone, 1);
      await client.request('DELETE', '/book/1');
      const { undone, left } = await undo(client, { since });
      assert.deepEqual([undone, left], [1, []]);
      assert.deepEqual(await client.list(), [book]);
    });

    if (HAS_TRIGGERS) {
      test('rules 23 and H5: an undo of which a trigger skips a part happens not at all', async () => {
        const { client, dbUrl } = await startTestService(await store.freshUrl());
        for (const title of ['A', 'B', 'C']) await client.create({ title });
        const since = await makeEarlier(dbUrl, 1);
        await client.request('DELETE', '/book/1');
        await client.request('PUT', '/book/2', { body: { year: 2 } });
        const { id } = await client.create({ title: 'D' });
        const after = await client.list();
        for (const event of ['insert', 'update', 'delete'] as const) {
          await runOn(dbUrl, SKIPPING[store.name](event));
          const { status } = await client.request('POST', '/undo', { body: { since } });
          assert.equal(status, 503);
          assert.deepEqual(await client.list(), after);
          await runOn(dbUrl, DROP[store.name]);
        }
        const { data } = await client.request('POST', '/undo', { body: { since } });
        assert.deepEqual([data.undone, (await statesOf(client, id)).length], [3, 2]);
      });

      test('rule H5: since a time before the log started again, nothing is taken back', async () => {
        const { client, dbUrl } = await startTestService(await store.freshUrl());
        await client.create({ title: 'A' });
        const since = new Date().toISOString();
        await executeOn(dbUrl, DROP_TRIGGER[store.name]);
        await executeOn(dbUrl, "update books set title = 'B'"); // nothing notes it
        await client.request('PUT', '/book/1', { body: { year: 1 } });
        await client.request('GET', '/changes');
        const { status, message } = await client.request('POST', '/undo', { body: { since } });
        assert.deepEqual([status, message], [422, 'Changes no longer known']);
        const [first] = (await statesOf(client, 1)).slice(-1);
        const before = await client.request('POST', '/undo', { body: { change: first?.change ?? 2 } });
        assert.deepEqual([before.status, before.message], [404, 'Change not found']);
      });
    }

    test('rules H4, H5 and H7: events that another program has damaged or left open change nothing', async () => {
      const { client, dbUrl } = await startTestService(await store.freshUrl());
      await client.create({ title: 'A' });
      await client.request('PUT', '/book/1', { body: { year: 1 } });
      const before = await client.list();
      const isOnPostgres = store.name === 'PostgreSQL';
      const at = isOnPostgres ? "'infinity'" : '9000000000000000';
      const first = 'select min(place) as place from book_log_state';
      const [keys, shard] = isOnPostgres
        ? ['place, ', `${(await executeOn(dbUrl, first))[0]?.place}, `]
        : ['', ''];
      const selection = { event: '0 or true', change: { book: 1 }, since: null };
      for (const [number, work] of [
        [700, '{"left":5}'],
        [701, JSON.stringify({ selection, books: 1, checked: 0, through: 0, left: [], changedLater: 0 })],
        [702, '[]'],
        [703, null],
      ] as const) {
        const value = work === null ? 'null' : `'${work}'`;
        await executeOn(
          dbUrl,
          `insert into book_events (${keys}number, at, kind, work) values (${shard}${number}, ${at}, 'undo', ${value})`,
        );
        for (const method of ['GET', 'POST']) {
          const answer = await client.request(method, `/event/${number}`);
          assert.deepEqual([answer.status, answer.data?.undo], [200, null]);
        }
      }
      await executeOn(dbUrl, `update book_log set at = ${at}`);
      assert.equal((await client.request('GET', '/book/1/history')).status, 200);
      assert.equal((await client.request('GET', '/changes')).status, 200);
      const { id } = await client.create({ title: 'B' }); // the events are open in PostgreSQL
      assert.deepEqual(await undo(client, { change: 703 }), { change: null, undone: 0, left: [] });
      assert.deepEqual(await client.list(), [...before, { id, title: 'B', author: '', year: 0 }]);
    });

    test('rules 12 and H5: a book with the highest id comes back, and new ones get low ids', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const newIds: number[] = [];
      const create = async () => newIds.push((await client.create({})).id);
      await create();
      await executeOn(dbUrl, 'insert into books (id) values (9007199254740991)');
      await create();
      await client.request('DELETE', '/book/9007199254740991');
      await create();
      await undo(client, { change: await newestOf(client, 9007199254740991) });
      await create();
      await client.request('DELETE', '/book/4');
      await create();
      assert.deepEqual(newIds, [1, 2, 3, 4, 5]);
    });

    test('rule H5: a request with a key undoes nothing twice, and others are refused by name', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      await client.create({ title: 'A' });
      await client.request('DELETE', '/book/1');
      const body = { change: await newestOf(client, 1) };
      const headers = { 'idempotency-key': 'once' };
      const { client: other } = await startTestService(dbUrl);
      const answers = await Promise.all(
        [client, other, client].map((one) => one.request('POST', '/undo', { body, headers })),
      );
      assert.deepEqual(
        answers.map(bare),
        [1, 2, 3].map(() => bare(answers[0] as never)),
      );
      assert.equal(answers.filter((one) => one.headers.get('idempotent-replayed') === 'true').length, 2);
      assert.equal((await statesOf(client, 1)).length, 3);
      const refused = [
        [{ change: 1 }, headers, 422, 'Idempotency key already used'],
        [body, { 'idempotency-key': 'ü' }, 400, 'Invalid idempotency key'],
        ...[
          {},
          [],
          { change: 0 },
          { change: '1' },
          { change: 1, event: 1 },
          { event: '1' },
          { event: '2-1' },
          { import: 1 },
          { since: '2026' },
          { since: 5 },
        ].map((one) => [one, {}, 400, 'Invalid input']),
        [{ change: 9999 }, {}, 404, 'Change not found'],
        [{ event: body.change }, {}, 404, 'Change not found'],
        [{ event: '1-2' }, {}, 404, 'Change not found'],
      ] as [object, Record<string, string>, number, string][];
      for (const [sent, more, status, message] of refused) {
        const answer = await client.request('POST', '/undo', { body: sent, headers: more });
        assert.deepEqual(
          [answer.status, answer.message, answer.data],
          [status, message, null],
          JSON.stringify(sent),
        );
      }
      const many =
        store.name === 'SQLite'
          ? 'with recursive n (n) as (values (1) union all select n + 1 from n where n < 10001) select n from n'
          : 'select n from generate_series(1, 10001) as n';
      await executeOn(dbUrl, `insert into books (year) ${many}`);
      const books = await client.list();
      const removed: number[] = [];
      for (const { id } of [books[1], books[1500], books.at(-1)] as Book[]) {
        const [creation] = await statesOf(client, id);
        assert.equal((await undo(client, { change: creation?.change })).undone, 1);
        assert.deepEqual(
          (await statesOf(client, id)).map(({ book }) => book?.id ?? null),
          [null, id],
        );
        removed.push(id);
      }
      const others = books.filter(({ id }) => !removed.includes(id));
      assert.deepEqual(await client.list(), others);
      await executeOn(dbUrl, 'delete from books where id > 9000');
      assert.equal((await client.list()).length, 8998);
      await executeOn(dbUrl, 'delete from book_log where number < (select max(number) from book_log)');
      const [left] = await executeOn(dbUrl, 'select book from book_log');
      const [oldest] = await statesOf(client, Number(left?.book)); // others of its time may have been removed
      for (const since of ['1999-12-31T23:59:59Z', oldest?.at]) {
        const early = await client.request('POST', '/undo', { body: { since } });
        assert.deepEqual([early.status, early.message], [422, 'Changes no longer known']);
      }
    });
  });
}
