// Events of the log: on every store. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import type { Client } from '../support/client.ts';
import { STORES, startTestService } from '../support/service.ts';
import { executeOn, makeEarlier } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

interface ChangedBook {
  readonly id: number;
  readonly before: Book | null;
  readonly book: Book | null;
}

interface Event {
  readonly event: number | string | null;
  readonly kind: string;
  readonly at: string;
  readonly until: string;
  readonly name: string | null;
  readonly books: number | null;
  readonly first: readonly ChangedBook[];
}

const BOOKS = 'Books retrieved successfully';

/** Reads pages until the last one. */
async function pagesOf<Element>(client: Client, path: string, message: string): Promise<Element[][]> {
  const pages: Element[][] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const answer = await client.request('GET', next);
    assert.deepEqual([answer.status, answer.message], [200, message]);
    pages.push(answer.data as Element[]);
    next = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
  }
  return pages;
}

async function eventsOf(client: Client, query = ''): Promise<Event[]> {
  return (await pagesOf<Event>(client, `/events${query}`, 'Events retrieved successfully')).flat();
}

async function booksOf(client: Client, event: unknown, query = ''): Promise<ChangedBook[]> {
  const path = `/event/${event}/books${query}`;
  return (await pagesOf<ChangedBook>(client, path, 'Books of the event retrieved successfully')).flat();
}

async function found(client: Client, query: string): Promise<number[]> {
  const answer = await client.request('GET', `/books?${query}`);
  assert.equal(answer.status, 200);
  return (answer.data as Book[]).map(({ id }) => id);
}

async function undo(client: Client, body: object, path = '/undo') {
  const { status, message, data } = await client.request('POST', path, { body });
  return [status, message, data] as const;
}

/** Five new books, then an import of two, changes of three books a little later, and the undo of the import. */
async function makeEvents(client: Client, dbUrl: string) {
  for (const title of ['A', 'B', 'C', 'D', 'E']) await client.create({ title });
  await makeEarlier(dbUrl, 48, 'book > 0');
  const file = Buffer.from('title\nF\nG\n');
  const imported = await client.request('POST', '/import?name=two.csv', { body: file });
  const { import: number } = imported.data as { import: number };
  await makeEarlier(dbUrl, 47, 'part_of is not null');
  await executeOn(
    dbUrl,
    'update book_events set at = (select min(at) from book_log where part_of is not null)',
  );
  await client.request('PUT', '/book/2', { body: { year: 7 } });
  await client.request('DELETE', '/book/3');
  await client.request('PUT', '/book/2', { body: { year: 8 } });
  await client.create({ title: 'H' });
  const undone = await undo(client, { event: number });
  return { imported: number, undone: (undone[2] as { change: number }).change };
}

function cursorOf(id: number): string {
  return Buffer.from(`${id}`).toString('base64url');
}

/** SQL for a time: milliseconds since 1970. */
function at(dbUrl: string, time: number): string {
  return dbUrl.startsWith('sqlite:') ? `${time}` : `to_timestamp(${time} / 1000.0)`;
}

const book = (id: number, title: string, year = 0) => ({ id, title, author: '', year });

for (const store of STORES) {
  describe(`events on ${store.name}`, () => {
    test('rules H7 and H8: runs, imports and undos are listed, the newest first, and then the beginning', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const { imported, undone } = await makeEvents(client, dbUrl);
      const events = await eventsOf(client);
      const short = events.map(({ event, kind, name, books }) => [typeof event, kind, name, books]);
      assert.deepEqual(short, [
        ['number', 'undo', null, 2],
        ['string', 'changes', null, 3],
        ['number', 'import', 'two.csv', 2],
        ['string', 'changes', null, 5],
        ['object', 'beginning', null, 0],
      ]);
      assert.deepEqual([events[0]?.event, events[2]?.event], [undone, imported]);
      const [, run, , first] = events as [Event, Event, Event, Event];
      assert.deepEqual(run.first, [
        { id: 2, before: book(2, 'B'), book: book(2, 'B', 8) },
        { id: 3, before: book(3, 'C'), book: null },
        { id: 8, before: null, book: book(8, 'H') },
      ]);
      assert.deepEqual(
        first.first.map(({ before, book }) => [before, book?.title]),
        [
          [null, 'A'],
          [null, 'B'],
          [null, 'C'],
        ],
      );
      for (const { event, at, until } of [run, first])
        assert.equal(event, `${Date.parse(at)}-${Date.parse(until)}`);
      for (const { first: _, ...event } of events.slice(0, 4)) {
        const { status, message, data } = await client.request('GET', `/event/${event.event}`);
        const { undo, ...rest } = data as { undo: object | null };
        assert.deepEqual([status, message, rest], [200, 'Event retrieved successfully', event]);
        assert.equal(undo === null, event.kind !== 'undo');
      }
      const pages = await pagesOf<Event>(client, '/events?limit=1', 'Events retrieved successfully');
      assert.deepEqual(
        pages.map(({ length }) => length),
        [1, 1, 1, 2],
      );
      assert.deepEqual(pages.flat(), events);
    });

    test('rule H8: a run ends before a pause of 5 minutes, and at midnight; of a very long one, books are not counted', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const earlier = Date.parse(await makeEarlier(dbUrl, 24, 'false'));
      const midnight = Math.floor(earlier / 86_400_000) * 86_400_000;
      const noon = midnight - 12 * 3_600_000;
      const long = dbUrl.startsWith('sqlite:')
        ? `with recursive step (value) as (select 0 union all select value + 1 from step where value < 1000)
          insert into book_log (at, book, last, title, author, year) select ${noon} + 1000 * value, value % 4 + 1, value % 4 + 1, 'x', '', 0 from step`
        : `insert into book_log (at, book, last, title, author, year)
          select to_timestamp(${noon / 1000} + value), value % 4 + 1, value % 4 + 1, 'x', '', 0 from generate_series(0, 1000) as value`;
      await executeOn(dbUrl, long);
      const times = [midnight - 1000, midnight, midnight + 299_999, midnight + 599_999];
      for (const time of times)
        await executeOn(
          dbUrl,
          `insert into book_log (at, book, last, title, author, year) values (${at(dbUrl, time)}, 7, 7, 'x', '', 0)`,
        );
      const runs = (await eventsOf(client)).filter(({ kind }) => kind === 'changes');
      assert.deepEqual(
        runs.map(({ event, books }) => [event, books]),
        [
          [`${midnight + 599_999}-${midnight + 599_999}`, 1],
          [`${midnight}-${midnight + 299_999}`, 1],
          [`${midnight - 1000}-${midnight - 1000}`, 1],
          [`${noon}-${noon + 1_000_000}`, null],
        ],
      );
      const { data } = await client.request('GET', `/event/${noon}-${noon + 1_000_000}`);
      assert.equal((data as Event).books, null);
      const all = await booksOf(client, runs[3]?.event, '?limit=1');
      assert.deepEqual(
        all.map(({ id }) => id),
        [1, 2, 3, 4],
      );
    });

    test('rules H9 and F2: the books of an event, as they were and became; those that are there are found', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const { imported } = await makeEvents(client, dbUrl);
      const [, run, , first] = await eventsOf(client);
      await client.request('PUT', '/book/8', { body: { title: 'later' } });
      assert.deepEqual(await booksOf(client, run?.event, '?limit=2'), run?.first);
      assert.deepEqual(
        (await booksOf(client, first?.event, '?limit=2')).map(({ id, before, book }) => [
          id,
          before,
          book?.year,
        ]),
        [1, 2, 3, 4, 5].map((id) => [id, null, 0]),
      );
      assert.deepEqual(await booksOf(client, imported), [
        { id: 6, before: null, book: book(6, 'F') },
        { id: 7, before: null, book: book(7, 'G') },
      ]);
      assert.deepEqual(await found(client, `event=${run?.event}`), [2, 8]);
      assert.deepEqual(await found(client, `event=${first?.event}&sort=-title&limit=3`), [5, 4, 2]);
      assert.deepEqual(await found(client, `event=${first?.event}&q=b`), [2]);
      assert.deepEqual(await found(client, `event=${imported}`), []);
      assert.deepEqual(await found(client, 'event=9999'), []);
    });

    test('rule H9: no page ends early if books were stored together and changed since', async (context) => {
      const { client, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      await client.request('POST', '/books', { body: [{}, {}, {}] });
      await client.request('PUT', '/book/3', { body: { year: 5 } });
      await client.create({});
      const [run] = await eventsOf(client);
      for (const limit of [1, 2, 3]) {
        const books = await booksOf(client, run?.event, `?limit=${limit}`);
        assert.deepEqual(
          books.map(({ id }) => id),
          [1, 2, 3, 4],
          `${limit}`,
        );
      }
    });

    test('rules H8 and H9: a page ends after heavy books, and the link leads to the others', async (context) => {
      const { client, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const events: unknown[] = [];
      for (let one = 0; one < 3; one += 1) {
        const body = [1, 2, 3].map((at) => ({ title: `${one}${at}`.repeat(300_000) }));
        const file = Buffer.from(body.map((row) => JSON.stringify(row)).join('\n'));
        const { data } = await client.request('POST', '/import?format=jsonl', { body: file });
        events.unshift((data as { import: number }).import);
      }
      const listed = await pagesOf<Event>(client, '/events', 'Events retrieved successfully');
      assert.deepEqual(
        listed.map((page) => page.map(({ event }) => event)),
        [[events[0]], [events[1]], [events[2], null]],
      );
      await undo(client, { event: events[0] });
      const books = await pagesOf<ChangedBook>(
        client,
        `/event/${events[0]}/books`,
        'Books of the event retrieved successfully',
      );
      assert.deepEqual(
        books.map((page) => page.map(({ id, book }) => [id, book?.title.length])),
        [
          [
            [7, 600_000],
            [8, 600_000],
          ],
          [[9, 600_000]],
        ],
      );
    });

    test('rule F2: the pages of a large event have all its books, in any order, whatever a planner expects', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const body = `title\n${Array.from({ length: 50_000 }, (_, at) => `Book ${50_000 - at}`).join('\n')}`;
      const { data } = await client.request('POST', '/import', { body: Buffer.from(body) });
      const stored = () => client.request('GET', `/import/${data.import}`);
      await waitUntil(async () => (await stored()).data.state === 'stored'); // it may take longer than its answer
      await executeOn(dbUrl, 'update books set year = year + 1 where id % 10 = 0');
      const event = (await eventsOf(client)).find(({ kind }) => kind === 'changes')?.event;
      await waitUntil(async () => {
        const answer = await client.request('GET', '/books?limit=1');
        return answer.status === 200 && answer.headers.get('x-unindexed-books') === null;
      });
      await executeOn(dbUrl, store.name === 'PostgreSQL' ? 'vacuum analyze' : 'analyze');
      const ids = Array.from({ length: 5000 }, (_, at) => 10 * at + 10);
      for (const sort of ['id', '-id', 'title', '-year']) {
        const pages = await pagesOf<Book>(client, `/books?event=${event}&sort=${sort}&limit=1000`, BOOKS);
        const found = pages.flat().map(({ id }) => id);
        assert.equal(found.length, 5000, sort);
        const sorted = found.toSorted((one, other) => one - other);
        assert.deepEqual(sorted, ids, sort);
      }
    });

    test('rule H5: a run is taken back as a whole, without books that were changed later; dry-run only says it', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      const { imported } = await makeEvents(client, dbUrl);
      const [, run, , first] = await eventsOf(client);
      await client.request('PUT', '/book/8', { body: { title: 'later' } });
      await makeEarlier(dbUrl, -1, `number = (select max(number) from book_log)`);
      const before = await client.list();
      const left = [{ id: 8, reason: 'changed later' }];
      const outcome = { books: 3, checked: 3, undone: 2, left };
      const asked = await undo(client, { event: run?.event }, '/undo?dry-run');
      assert.deepEqual(asked, [200, 'Undo checked', outcome]);
      assert.deepEqual(await client.list(), before);
      const [status, , data] = await undo(client, { event: run?.event });
      const { change, ...rest } = data as { change: number };
      assert.deepEqual([status, rest], [200, { undone: 2, left }]);
      const books = (await client.list()).filter(({ id }) => id <= 3);
      assert.deepEqual(books, [book(1, 'A'), book(2, 'B'), book(3, 'C')]);
      await undo(client, { event: change });
      assert.deepEqual(await client.list(), before);
      const [, , { undone }] = await undo(client, { event: first?.event });
      assert.equal(undone, 3); // 2 was changed, 3 removed
      assert.deepEqual(await undo(client, { event: imported }), [
        200,
        'Changes undone successfully',
        { change: null, undone: 0, left: [] },
      ]);
      const since = '9999-12-31T00:00:00Z';
      const none = { books: 0, checked: 0, undone: 0, left: [] };
      assert.deepEqual(await undo(client, { since }, '/undo?dry-run='), [200, 'Undo checked', none]);
    });

    test('rules H5 and H7 to H9: invalid requests are refused', async (context) => {
      const { client, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      await client.create({});
      for (const query of [
        'limit=0',
        'limit=101',
        'cursor=x',
        'cursor=WzEsMl0x',
        'since=1',
        'limit=1&limit=2',
      ]) {
        const { status, message } = await client.request('GET', `/events?${query}`);
        assert.deepEqual([status, message], [400, `Invalid query parameter: ${query.split('=')[0]}`], query);
      }
      const later = '9007199254740990-9007199254740991';
      const gone = await client.request('GET', `/event/1-2/books?cursor=${cursorOf(5)}`);
      assert.deepEqual([gone.status, gone.message], [404, 'Event not found']);
      const missing = ['1', '0', 'x', '2-1', '1-2', later, '01-2', '1-2-3', '9007199254740993', '-1'];
      for (const name of missing)
        for (const path of [`/event/${name}`, `/event/${name}/books`]) {
          const { status, message } = await client.request('GET', path);
          assert.deepEqual([status, message], [404, 'Event not found'], path);
        }
      for (const event of ['', '0', 'x', '2-1', '1-2-3', '9007199254740993'])
        assert.equal((await client.request('GET', `/books?event=${event}`)).status, 400, event);
      const [event] = await eventsOf(client);
      const body = { event: event?.event };
      for (const [path, name] of [
        ['/undo?dry-run=yes', 'dry-run'],
        ['/undo?x', 'x'],
      ] as const)
        assert.deepEqual(await undo(client, body, path), [400, `Invalid query parameter: ${name}`, null]);
      assert.deepEqual(await undo(client, { event: 999 }, '/undo?dry-run'), [404, 'Change not found', null]);
      assert.equal((await client.list()).length, 1);
    });

    test('rule H1: with cursor=now, only later changes come', async (context) => {
      const { client, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      await client.create({ title: 'A' });
      const answer = await client.request('GET', '/changes?cursor=now');
      assert.deepEqual([answer.status, answer.data], [200, []]);
      await client.create({ title: 'B' });
      const next = /<([^>]+)>/.exec(answer.headers.get('link') ?? '')?.[1] as string;
      const { data } = await client.request('GET', next, { headers: { prefer: 'wait=60' } });
      assert.deepEqual(
        (data as { id: number }[]).map(({ id }) => id),
        [2],
      );
    });

    test('rule H6: with HISTORY=off, there are no events', async (context) => {
      const { client, stop } = await startTestService(await store.freshUrl(), { HISTORY: 'off' });
      context.after(stop);
      for (const path of ['/events', '/event/1', '/event/1/books'])
        assert.deepEqual((await client.request('GET', path)).message, 'Not found');
    });
  });
}
