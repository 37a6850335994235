// The client against the real service, also behind a front that loses answers and lets others meddle.

import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { before, describe, type TestContext, test } from 'node:test';
import {
  type Book,
  BookCatalogue,
  type Change,
  type Changes,
  CursorExpired,
  type Page,
  type PageSearch,
  type Undone,
  type UndoRequest,
} from '../../client/src/book-catalogue.ts';
import { fill, manyBooks } from '../support/books.ts';
import { allOf, assertRefused, BOOK, changed, errorOf, found, PATIENT } from '../support/catalogue.ts';
import { answer, passOn, startFront } from '../support/front.ts';
import { type RunningService, SQLITE, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Stored before the tests, more than a page of 1,000 has. Their author has no other book. */
const BOOKS = manyBooks(1101);
const ALL = { author: 'somebody' };

const TEXT = '"\\ {[]},\n\u2028 Кот 吾輩 📚';

/** What goes wrong with a request: before it reaches the service, or after the service has carried it out. */
type Fault = 'lost' | '502' | '503' | '503 done' | 'refused';

const isChange = ({ method = '', url }: IncomingMessage) => method !== 'GET' && url !== '/token';

describe('the client', () => {
  let service: RunningService;
  let catalogue: BookCatalogue;

  before(async () => {
    const dbUrl = await SQLITE.freshUrl();
    await fill(dbUrl, BOOKS);
    service = await startTestService(dbUrl);
    catalogue = new BookCatalogue(`${service.url}/`, PATIENT);
    await waitUntil(async () => {
      const { total, unindexed } = await catalogue.page({}, { count: true });
      return total !== undefined && unindexed === 0;
    });
  });

  /** What the service has, without the client: undefined if there is no such book. */
  const stored = async ({ id }: Book) =>
    (await service.client.request('GET', `/book/${id}`)).data ?? undefined;
  const newestStateOf = async ({ id }: Book) => {
    const { value } = await catalogue.history(id).next();
    assert.ok(value !== undefined);
    return value;
  };
  const timesStored = async (title: string) =>
    (await allOf(catalogue)).filter((book) => book.title === title).length;

  /** A catalogue behind a front with faults. Before a request is passed on, another client may meddle. */
  async function startBehind(context: TestContext) {
    const behind = {
      /** Of the next requests that change books; the others arrive and are answered. */
      faults: [] as Fault[],
      /** Of the requests that change books. */
      keys: [] as unknown[],
      meddle: (_: IncomingMessage): unknown => undefined,
      /** Whether the answer to a request that reads is lost. */
      losesRead: (_: IncomingMessage) => false,
      /** Loses the first answer to each request that reads. */
      losesFirstReads: () => {
        const lines = new Set<string>();
        behind.losesRead = ({ url = '' }) => url !== '/token' && lines.size !== lines.add(url).size;
      },
    };
    const front = await startFront(context, async (incoming, outgoing) => {
      await behind.meddle(incoming);
      const lose = () => incoming.socket.destroy();
      if (!isChange(incoming)) {
        return passOn(service, incoming, outgoing, behind.losesRead(incoming) ? lose : undefined);
      }
      behind.keys.push(incoming.headers['idempotency-key']);
      const fault = behind.faults.shift();
      const refuse = () => answer(outgoing, 503, null, 'Service unavailable');
      if (fault === '502') return outgoing.writeHead(502).end('<html>');
      if (fault === '503') return refuse();
      if (fault === 'refused') incoming.headers.authorization = 'none';
      const give = fault === 'lost' ? lose : refuse;
      const isAnswerLost = fault === 'lost' || fault === '503 done';
      passOn(service, incoming, outgoing, isAnswerLost ? give : undefined);
    });
    return Object.assign(behind, { catalogue: new BookCatalogue(front.url, PATIENT), seen: front.seen });
  }

  test('stores, finds, changes, lists and removes books', async () => {
    const { id } = await catalogue.create({});
    assert.deepEqual(await catalogue.find(id), { id, title: '', author: '', year: 0 });
    const fields = { title: TEXT, author: '}]}', year: -9007199254740991 };
    const second = await catalogue.create(fields);
    assert.deepEqual(second, { id: id + 1, ...fields });
    assert.deepEqual(await catalogue.update(id, BOOK), { id, ...BOOK });
    assert.deepEqual(await catalogue.update(id, { year: 1615 }), { id, ...BOOK, year: 1615 });
    const all = await allOf(catalogue);
    assert.deepEqual(all.slice(0, BOOKS.length), BOOKS);
    assert.deepEqual(all.slice(-2), [{ id, ...BOOK, year: 1615 }, second]);
    assert.equal(await catalogue.remove(id), true);
    assert.equal(await catalogue.remove(id), false);
    assert.equal(await catalogue.find(id), undefined);
    await assertRefused(catalogue.update(id, { year: 1 }), 404, 'Book not found');
    await assertRefused(catalogue.create({ title: '\0' }), 400, 'Invalid input');
    await assertRefused(new BookCatalogue(`${service.url}/books`, PATIENT).find(1), 404, 'Not found');
  });

  test('I2: stores books once, however many answers are lost, and with one key for all attempts', async (context) => {
    const behind = await startBehind(context);
    const createOne = (book: object) => behind.catalogue.create(book);
    const createAll = async (book: object) => (await behind.catalogue.createAll([book]))[0] as Book;
    for (const [create, ...faults] of [
      [createOne, 'lost', '503 done'],
      [createOne, '502', '503'],
      [createAll, 'lost', 'refused'],
    ] as const) {
      const title = `one ${faults}`;
      const fields = { title, year: 1605 };
      behind.keys.length = 0;
      behind.faults.push(...faults);
      const call = create(fields);
      fields.year = 1; // the attempts send what the call was given
      const created = await call;
      assert.deepEqual(created, { id: created.id, title, author: '', year: 1605 });
      assert.deepEqual(await stored(created), created);
      assert.deepEqual([behind.keys.length, new Set(behind.keys).size], [3, 1]);
      assert.match(String(behind.keys[0]), /^[0-9a-f]{32}$/);
      assert.equal(await timesStored(title), 1);
    }
  });

  test('I2: stores books once with a key of the program, which may have been restarted', async () => {
    const [title, restarted] = ['with a key', new BookCatalogue(service.url, PATIENT)];
    const one = { idempotencyKey: 'import-7/line-1' };
    assert.deepEqual(await catalogue.create({ title }, one), await restarted.create({ title }, one));
    const all = { idempotencyKey: 'import-8' };
    const books = await catalogue.createAll([{ title }, { title }], all);
    assert.deepEqual(await restarted.createAll([{ title }, { title }], all), books);
    await assertRefused(restarted.create({ title, year: 1 }, one), 422, 'Idempotency key already used');
    const invalid = catalogue.create({ title }, { idempotencyKey: 'a key' });
    await assertRefused(invalid, 400, 'Invalid idempotency key');
    assert.equal(await timesStored(title), 3);
  });

  test('B1, B2: stores many books with their ids in order, all or none', async () => {
    const odd: object = { title: TEXT, year: -0, id: 7, other: [']'] };
    const created = await catalogue.createAll([BOOK, {}, odd]);
    const id = created[0]?.id ?? 0;
    const second = { id: id + 1, title: '', author: '', year: 0 };
    assert.deepEqual(created, [{ id, ...BOOK }, second, { ...second, id: id + 2, title: TEXT }]);
    for (const book of created) assert.deepEqual(await stored(book), book);
    assert.deepEqual(await catalogue.createAll([]), []);
    const title = 'all or none';
    const wrong = catalogue.createAll([{ title }, { title, year: 1.5 }, { title }]);
    await assertRefused(wrong, 400, 'Invalid input: book 2');
    assert.equal(await timesStored(title), 0);
  });

  describe('with an expected book', () => {
    const changesIt = ({ url = '' }: IncomingMessage) =>
      service.client.request('PUT', url, { body: { title: 'theirs' } });
    const removesIt = ({ url = '' }: IncomingMessage) => service.client.request('DELETE', url);

    test('E3: changes and removes it', async (context) => {
      const behind = await startBehind(context);
      const first = await behind.catalogue.create(BOOK);
      const { id } = first;
      const second = await behind.catalogue.update(id, { year: 1615 }, { expected: first });
      assert.deepEqual(second, { ...first, year: 1615 });
      const copy = { ...second };
      assert.deepEqual(await behind.catalogue.update(id, {}, { expected: copy }), second);
      assert.deepEqual(await stored(first), second);
      // A book that the client has answered itself is not read first, unless the program has changed it since.
      behind.seen.length = 0;
      Object.assign(second, { year: 1 });
      const removal = behind.catalogue.remove(id, { expected: second });
      assert.deepEqual(await changed(removal), { current: copy, mayBeDone: false });
      Object.assign(second, { year: 1615 });
      assert.equal(await behind.catalogue.remove(id, { expected: second }), true);
      assert.deepEqual(behind.seen, [`GET /book/${id}`, `DELETE /book/${id}`]);
      assert.equal(await behind.catalogue.remove(id, { expected: copy }), false);
      const missing = behind.catalogue.update(id, { year: 1 }, { expected: copy });
      await assertRefused(missing, 404, 'Book not found');
    });

    test('E3: refuses another book, whichever field differs, and overwrites nothing', async (context) => {
      const behind = await startBehind(context);
      const book = await catalogue.create(BOOK);
      for (const difference of [{ id: 1 }, { title: 'don quijote' }, { author: '' }, { year: 1604 }]) {
        const expected = { ...book, ...difference };
        const update = behind.catalogue.update(book.id, { title: 'overwritten' }, { expected });
        for (const call of [update, behind.catalogue.remove(book.id, { expected })])
          assert.deepEqual(await changed(call), { current: book, mayBeDone: false });
      }
      assert.deepEqual(await stored(book), book);
      assert.equal(behind.keys.length, 0);
    });

    test('E3: refuses a book that another client changes or removes meanwhile', async (context) => {
      const behind = await startBehind(context);
      const update = (expected: Book, title = 'mine') =>
        behind.catalogue.update(expected.id, { title }, { expected });
      const remove = (expected: Book) => behind.catalogue.remove(expected.id, { expected });
      behind.meddle = (incoming) => isChange(incoming) && changesIt(incoming);
      for (const call of [update, remove]) {
        const book = await catalogue.create(BOOK);
        const current = { ...book, title: 'theirs' };
        assert.deepEqual(await changed(call(book)), { current, mayBeDone: false });
        assert.deepEqual(await stored(book), current);
      }
      // The same change by another client: it might be this one, if the runtime had sent it twice.
      const same = await catalogue.create(BOOK);
      const current = { ...same, title: 'theirs' };
      assert.deepEqual(await changed(update(same, 'theirs')), { current, mayBeDone: true });

      const removes = (incoming: IncomingMessage) => isChange(incoming) && removesIt(incoming);
      // Changed before the client's request, and removed before the client reads what it is now.
      const both = (incoming: IncomingMessage) => (isChange(incoming) ? changesIt : removesIt)(incoming);
      for (const meddle of [removes, both]) {
        behind.meddle = () => undefined;
        const create = () => behind.catalogue.create(BOOK);
        const [one, other, third] = [await create(), await create(), await create()];
        behind.meddle = meddle;
        await assertRefused(update(one), 404, 'Book not found');
        assert.equal(await remove(other), false);
        behind.faults.push('503');
        assert.equal(await remove(third), undefined); // which may have been its first attempt
      }
    });

    test('E3: knows its own change after lost answers, unless another one came after it', async (context) => {
      const behind = await startBehind(context);
      for (const faults of [['lost'], ['503 done'], ['503'], ['lost', 'refused']] as const) {
        const expected = await catalogue.create(BOOK);
        behind.faults.push(...faults);
        const changes = { id: 7, year: 1615, title: undefined } as object; // only the year counts
        const book = await behind.catalogue.update(expected.id, changes, { expected });
        assert.deepEqual(book, { ...expected, year: 1615 });
        assert.deepEqual(await stored(book), book);
        behind.faults.push(...faults);
        const removed = await behind.catalogue.remove(book.id, faults.length === 1 ? { expected: book } : {});
        assert.equal(removed, faults[0] === '503' ? true : undefined);
        assert.equal(await stored(book), undefined);
      }
      const expected = await catalogue.create(BOOK);
      behind.faults.push('lost');
      let isSecond = false;
      behind.meddle = async (incoming) => {
        if (isSecond && isChange(incoming)) await changesIt(incoming);
        isSecond = isChange(incoming);
      };
      const call = behind.catalogue.update(expected.id, { year: 1615 }, { expected });
      const current = { ...expected, title: 'theirs', year: 1615 };
      assert.deepEqual(await changed(call), { current, mayBeDone: true });
    });
  });

  describe('with a copy of all books', () => {
    const copy = new Map<number, Book>();
    let cursor: string | undefined;

    const take = (page: Changes) => {
      for (const { id, book } of page.changes) book === null ? copy.delete(id) : copy.set(id, book);
      cursor = page.cursor;
      return page.changes.map(({ id }) => id);
    };
    const assertSame = async () => {
      assert.deepEqual(
        [...copy.values()].toSorted((one, other) => one.id - other.id),
        await allOf(catalogue),
      );
    };

    test('H1: brings it up to date, with the present state of each book that has changed', async (context) => {
      const behind = await startBehind(context);
      behind.losesFirstReads();
      behind.meddle = ({ headers }) => assert.equal(headers.prefer, undefined);
      for await (const page of behind.catalogue.changes()) take(page);
      const [, ...lines] = behind.seen;
      assert.equal(lines.length, 2 * new Set(lines).size); // a retry has the same cursor
      assert.ok(lines.length >= 6);
      await assertSame();
      const [changing, leaving] = await catalogue.createAll([BOOK, BOOK]);
      assert.ok(changing && leaving);
      await catalogue.update(changing.id, { year: 1615 });
      await catalogue.remove(leaving.id);
      const found: Change[] = [];
      for await (const page of new BookCatalogue(service.url, PATIENT).changes(cursor)) {
        found.push(...page.changes);
        take(page);
      }
      const { at, book } = found.find(({ id }) => id === changing.id) ?? {};
      assert.deepEqual(book, { ...changing, year: 1615 });
      assert.equal(at, (await newestStateOf(changing)).at);
      await assertSame();
    });

    test('H3: follows, also if answers are lost, and ends at once when it is aborted', async (context) => {
      const behind = await startBehind(context);
      const { seen } = behind;
      behind.losesFirstReads();
      const leaving = new AbortController();
      const pages = behind.catalogue.changes(cursor, { follow: true, signal: leaving.signal });
      const begin = async () => {
        const next = pages.next();
        await waitUntil(() => seen.some((line) => line.includes(`cursor=${cursor}&`)));
        return { next };
      };
      for (const year of [1615, 1616, 1617]) {
        const { next } = await begin();
        const { id } = await catalogue.create({ year });
        const { value } = await next;
        assert.ok(value !== undefined);
        assert.ok(take(value).includes(id));
      }
      await assertSame();
      const { next: last } = await begin();
      leaving.abort(new Error('enough'));
      await assert.rejects(last, { message: 'enough' });
    });

    test('H2: begins again if the cursor is of another store', async () => {
      const other = await startTestService(await SQLITE.freshUrl());
      const changes = new BookCatalogue(other.url, PATIENT).changes(cursor);
      const error = await errorOf(Array.fromAsync(changes));
      assert.ok(error instanceof CursorExpired);
      const { name, message, status, mayBeDone } = error;
      const expected = ['CursorExpired', 'Cursor no longer valid', 410, false];
      assert.deepEqual([name, message, status, mayBeDone], expected);
      await assertRefused(catalogue.changes('none').next(), 400, 'Invalid query parameter: cursor');
    });
  });

  test('H4: has the history of a book, the newest state first, from page to page', async (context) => {
    const behind = await startBehind(context);
    behind.losesFirstReads();
    const { headers } = await service.client.request('GET', '/changes?limit=1');
    const began = Date.parse(headers.get('date') ?? ''); // in whole seconds, rounded down
    const { id } = await catalogue.create(BOOK);
    const states: (Book | null)[] = [{ id, ...BOOK }];
    for (let year = 1; year <= 120; year += 1) states.unshift(await catalogue.update(id, { year }));
    await catalogue.remove(id);
    states.unshift(null);
    const found = await Array.fromAsync(behind.catalogue.history(id));
    assert.equal(behind.seen.length, 5); // a login, and each of two pages twice
    const books = found.map(({ book }) => book);
    assert.deepEqual(books, states);
    const [numbers, times] = [
      found.map(({ change }) => Number(change)),
      found.map(({ at }) => Date.parse(at)),
    ];
    for (const [newestFirst, least] of [
      [numbers, 1],
      [times, began],
    ] as const) {
      assert.deepEqual(
        newestFirst,
        newestFirst.toSorted((one, other) => other - one),
      );
      assert.ok((newestFirst.at(-1) ?? 0) >= least);
    }
    assert.equal(new Set(numbers).size, 122);
    assert.deepEqual(await Array.fromAsync(catalogue.history(2 ** 40)), []);
  });

  test('H5: takes changes back once, however many answers are lost, and what it has taken back', async (context) => {
    const behind = await startBehind(context);
    const before = await catalogue.create(BOOK);
    const after = await catalogue.update(before.id, { year: 1615 });
    let change = Number((await newestStateOf(before)).change);
    for (const [book, ...faults] of [
      [before, 'lost', '503 done'],
      [after, '502', '503'],
      [before, 'lost', 'refused'],
    ] as const) {
      behind.keys.length = 0;
      behind.faults.push(...faults);
      const { change: number, ...rest } = (await behind.catalogue.undo({ change })) as Undone;
      assert.deepEqual(rest, { undone: 1, left: [] });
      assert.deepEqual(await stored(before), book);
      assert.deepEqual([behind.keys.length, new Set(behind.keys).size], [3, 1]);
      change = Number(number);
    }
    const key = { idempotencyKey: 'undo-1' };
    const undone = await catalogue.undo({ change }, key);
    await catalogue.update(before.id, { title: 'theirs' });
    assert.deepEqual(await new BookCatalogue(service.url, PATIENT).undo({ change }, key), undone);
    await assertRefused(catalogue.undo({ change: 1 }, key), 422, 'Idempotency key already used');
    const left = { change: null, undone: 0, left: [{ id: before.id, reason: 'changed later' }] };
    assert.deepEqual(await catalogue.undo({ change }), left);
    await assertRefused(catalogue.undo({ event: 2 ** 40 }), 404, 'Change not found');
    const both = { change, since: new Date() } as object as UndoRequest;
    await assertRefused(catalogue.undo(both), 400, 'Invalid input');
    await assertRefused(catalogue.undo({ since: new Date(Number.NaN) }), 400, 'Invalid input');
  });

  test('H5: takes back all changes since a time, which may be a date or a text', async () => {
    const before = await allOf(catalogue);
    const first = await catalogue.create(BOOK);
    const { at } = await newestStateOf(first);
    await catalogue.update(BOOKS[0]?.id ?? 0, { year: 1615 });
    await catalogue.remove(BOOKS[1]?.id ?? 0);
    const after = await allOf(catalogue);
    const { change, ...rest } = (await catalogue.undo({ since: new Date(at) })) as Undone;
    assert.deepEqual(rest, { undone: 3, left: [] });
    assert.deepEqual(await allOf(catalogue), before);
    assert.equal(((await catalogue.undo({ change: Number(change) })) as Undone).undone, 3);
    assert.deepEqual(await allOf(catalogue), after);
    assert.equal(((await catalogue.undo({ since: at })) as Undone).undone, 3);
    assert.deepEqual(await allOf(catalogue), before);
  });

  test('H5 and H7 to H9: has the events, the newest first, their books from page to page, and tries an undo', async (context) => {
    const behind = await startBehind(context);
    const rows = Array.from({ length: 120 }, (_, row) => `row ${row}`);
    const file = ['title', ...rows].join('\n');
    const { import: event } = await catalogue.importFile(file, { name: 'books.csv', wait: true });
    const books = await found(catalogue, { event });
    assert.deepEqual(
      books.map(({ title }) => title),
      rows,
    );
    const checked = { books: 120, checked: 120, undone: 120, left: [] };
    assert.deepEqual(await behind.catalogue.checkUndo({ event }), checked);
    assert.deepEqual(await found(catalogue, { event }), books);
    const { change } = (await catalogue.undo({ event })) as Undone;
    assert.deepEqual(await found(catalogue, { event }), []);

    behind.losesFirstReads();
    const changed = books.map((book) => ({ id: book.id, before: null, book }));
    assert.deepEqual(await Array.fromAsync(behind.catalogue.booksOfEvent(event)), changed);
    const events = await Array.fromAsync(behind.catalogue.events({ limit: 1 }));
    const [newest, oldest] = [events[0], events.at(-1)];
    const removed = books.map((book) => ({ id: book.id, before: book, book: null }));
    const first = removed.slice(0, 3);
    assert.deepEqual(newest, { ...newest, event: change, kind: 'undo', name: null, books: 120, first });
    assert.deepEqual([oldest?.event, oldest?.kind], [null, 'beginning']);
    const ends = events.map(({ until }) => until);
    assert.deepEqual(ends, ends.toSorted().toReversed());
    for (const kind of ['import', 'undo', 'changes']) {
      const { first, ...listed } = events.find((one) => one.kind === kind) ?? assert.fail(kind);
      const { undo, ...read } = await catalogue.event(listed.event ?? assert.fail(kind));
      assert.deepEqual(read, listed);
      assert.equal(undo === null, kind !== 'undo');
    }
    await assertRefused(Array.fromAsync(catalogue.booksOfEvent('1-2')), 404, 'Event not found');
    await assertRefused(catalogue.checkUndo({ event: '1-2' }), 404, 'Change not found');
  });

  test('searches for all pages, or as many as its limit needs, when its loop needs them', async (context) => {
    const { catalogue, seen } = await startBehind(context);
    await assertRefused(found(catalogue, { yaer: 1605 } as object), 400, 'Invalid query parameter: yaer');
    for (const [limit, sent, pages] of [
      [1, 1, 1],
      [1000, 1000, 1],
      [1001, 1000, 2],
      [1e9, 1000, 2],
    ] as const) {
      seen.length = 0;
      const newest = BOOKS.toReversed().slice(0, limit);
      assert.deepEqual(await found(catalogue, { ...ALL, sort: '-year', limit }), newest);
      assert.equal(seen[0], `GET /books?author=somebody&sort=-year&limit=${sent}`);
      assert.equal(seen.length, pages);
    }
    seen.length = 0;
    await catalogue.find(ALL).return();
    for await (const { id } of catalogue.find(ALL)) {
      assert.equal(seen.length, Math.ceil(id / 1000));
      if (id === 1001) break;
    }
    assert.equal(seen.length, 2);
  });

  test('searches for one page: by default the first 100 books, and the next of each until the last', async () => {
    for (const [search, expected, pages] of [
      [ALL, BOOKS, 12],
      [{ ...ALL, sort: '-year', limit: 1000 }, BOOKS.toReversed(), 2],
      [{ ...ALL, offset: 700, limit: 300 }, BOOKS.slice(700), 2],
      [{ ...ALL, offset: 1101 }, [], 1],
    ] as const) {
      const seen: Page[] = [];
      for (let place: PageSearch | undefined = search; place !== undefined; place = seen.at(-1)?.next) {
        seen.push(await catalogue.page(place));
      }
      assert.deepEqual([seen.flatMap(({ books }) => books), seen.length], [expected, pages]);
    }
    const few = { books: BOOKS.slice(7, 8), total: 1, next: undefined, unindexed: 0 };
    assert.deepEqual(await catalogue.page({ ...ALL, title: BOOKS[7]?.title }), few);
    // More than 1,000 books are counted only if asked for.
    const search = { ...ALL, offset: 1100, limit: 10 };
    for (const [options, total] of [
      [{}, undefined],
      [{ count: false }, undefined],
      [{ count: true }, 1101],
    ] as const) {
      assert.equal((await catalogue.page(search, options)).total, total);
    }
    assert.equal(await catalogue.count(ALL), 1101);
  });

  test('returns corrections of a search, whatever its order and limit', async () => {
    const search = { ...ALL, author: 'somebdoy', year: undefined, sort: 'title', limit: 1 };
    const suggestion = { parameter: 'author', value: 'somebody', books: null };
    assert.deepEqual(await catalogue.suggest(search), [suggestion]);
    assert.deepEqual(await catalogue.suggest({ ...search, author: 'somebody' }), []);
  });
});
