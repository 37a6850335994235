// The client, against the real service: on both stores, through fronts that lose answers. Its view of the service is compared
// with the description of the API. Its timeouts and its package are in test/nightly.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { getEventListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { after, before, describe, type TestContext, test } from 'node:test';
import {
  type Book,
  BookCatalogue,
  BookChanged,
  type CallOptions,
  CatalogueError,
  type PageSearch,
  type Search,
  WrongCredentials,
} from '../../client/src/book-catalogue.ts';
import { readList } from '../../client/src/book-list.ts';
import { Deadline } from '../../client/src/deadline.ts';
import { fill, manyBooks } from '../support/books.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { API, checkOf, type Document } from '../support/description.ts';
import { answer, passOn, startFront } from '../support/front.ts';
import { unusedPort } from '../support/ports.ts';
import { TcpProxy } from '../support/proxy.ts';
import {
  ENVIRONMENT,
  POSTGRES,
  type RunningService,
  SECRET,
  SQLITE,
  STORES,
  startTestService,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const PAIR = { username: 'librarian', password: 'correct horse' };

/** With more time than any machine needs, for calls that must not run out of it. */
const PATIENT = { ...PAIR, timeout: 600_000 };

const BOOK = { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 };

/** A search with every parameter. */
const SEARCH: Required<Search> = {
  ...{ q: 'cervantes quij*', title: 'don quijote', author: 'Miguel de Cervantes' },
  ...{
    title_contains: 'quijote',
    author_contains: 'de',
    title_starts_with: 'don',
    author_starts_with: 'mig',
  },
  ...{ year: 1605, year_gte: 1600, year_lte: 1699, sort: '-year,title', limit: 20 },
};

/** What the played service answers to a count. */
const TOTAL = 42;

describe('the client', { concurrency: 2 }, () => {
  let service: RunningService;

  before(async () => {
    service = await startTestService(await SQLITE.freshUrl());
  });
  after(() => service.stop());

  for (const store of STORES) {
    test(`stores, finds, changes, lists and removes books on ${store.name}`, async (context) => {
      const own = await startTestService(await store.freshUrl());
      context.after(() => own.stop());
      const catalogue = new BookCatalogue(`${own.url}/`, PATIENT);
      assert.deepEqual(await allOf(catalogue), []);
      assert.deepEqual(await catalogue.create({}), { id: 1, title: '', author: '', year: 0 });
      const text = '"\\ {[]},\n\u2028 Кот 吾輩 📚';
      assert.deepEqual(await catalogue.create({ title: text, author: '}]}', year: -9007199254740991 }), {
        id: 2,
        title: text,
        author: '}]}',
        year: -9007199254740991,
      });
      assert.deepEqual(await catalogue.update(1, BOOK), { id: 1, ...BOOK });
      assert.deepEqual(await catalogue.update(1, { year: 1615 }), { id: 1, ...BOOK, year: 1615 });
      assert.deepEqual(await catalogue.find(1), { id: 1, ...BOOK, year: 1615 });
      assert.deepEqual(await allOf(catalogue), [
        { id: 1, ...BOOK, year: 1615 },
        { id: 2, title: text, author: '}]}', year: -9007199254740991 },
      ]);
      assert.equal(await catalogue.remove(1), true);
      assert.equal(await catalogue.remove(1), false);
      assert.equal(await catalogue.find(1), undefined);
      await assertRefused(catalogue.update(1, { year: 1 }), 404, 'Book not found');
      const { message } = await failure(catalogue.create({ title: '\0' }));
      assert.equal(message, 'Invalid input');
    });
  }

  test('refuses a wrong URL, timeout, fetch or request id before anything is sent', async () => {
    const make = (url: string, options: object = {}) => new BookCatalogue(url, { ...PATIENT, ...options });
    assert.throws(() => make('127.0.0.1:8080'), TypeError);
    assert.throws(() => make('ftp://127.0.0.1'), TypeError);
    assert.throws(() => make('http://a:b@127.0.0.1'), TypeError);
    for (const timeout of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.throws(() => make('http://127.0.0.1', { timeout }), RangeError);
    }
    assert.throws(() => make('http://127.0.0.1', { fetch: null }), TypeError);
    await assert.rejects(make(service.url).find(1, { requestId: 'a\nb' }), TypeError);
  });

  test('distinguishes a wrong URL from a missing book', async (context) => {
    const wrong = new BookCatalogue(`${service.url}/books`, PATIENT).find(1);
    await assertRefused(wrong, 404, 'Not found');
    const front = await startFront(context, (incoming, outgoing) => {
      if (incoming.url === '/library/token' || incoming.url === '/library/book/7') {
        incoming.url = incoming.url.replace('/library', '');
        passOn(service, incoming, outgoing);
      } else outgoing.end('<html>');
    });
    const catalogue = new BookCatalogue(`${front.url}/library`, PATIENT);
    assert.equal(await catalogue.find(7), undefined);
    await assertRefused(catalogue.find(8), 200, '200 OK: not the answer of a book catalogue');
    const list = await failure(allOf(catalogue));
    assert.equal(list.message, 'list truncated after 0 books');
  });

  test('says what answers instead of the service, even without words for the status, as in HTTP/2', async (context) => {
    const front = await startFront(context, ({ socket }) => {
      socket.end('HTTP/1.1 404 \r\ncontent-length: 6\r\n\r\n<html>');
    });
    const { message } = await failure(new BookCatalogue(front.url, PATIENT).find(1));
    assert.equal(message, '404: not the answer of a book catalogue');
  });

  test('sends every request, with its login and its retries, by the function fetch of its options', async (context) => {
    const front = await startFront(context, (...exchange) => passOn(service, ...exchange));
    const sent: string[] = [];
    let failures = 1;
    async function fetchOwn(this: unknown, ...[input, init]: Parameters<typeof fetch>): Promise<Response> {
      assert.equal(this, undefined); // with another one, the function of a browser throws
      const { method, url } = new Request(input, init);
      sent.push(`${method} ${url.replace(front.url, '')}`);
      if (method === 'PUT' && failures-- > 0) throw new Error('the tunnel is closed');
      return fetch(input, init);
    }
    const catalogue = new BookCatalogue(front.url, { ...PATIENT, fetch: fetchOwn });
    const { id } = await catalogue.create(BOOK);
    assert.equal((await catalogue.update(id, { year: 1615 })).year, 1615);
    for await (const book of catalogue.list()) if (book.id === id) break;
    const change = `PUT /book/${id}`;
    assert.deepEqual(sent, ['POST /token', 'POST /book', change, change, 'GET /books']);
    assert.deepEqual(front.seen, [...new Set(sent)]);

    const broken = async () => Promise.reject(new Error('the tunnel is closed'));
    const error = await failure(
      new BookCatalogue(front.url, { ...PAIR, timeout: 50, fetch: broken }).find(id),
      CatalogueError,
    );
    assert.deepEqual(error, {
      message: `no answer from ${front.url}: the tunnel is closed`,
      status: undefined,
      mayBeDone: false,
    });
  });

  test('looks the global fetch up with each request, so that a program may replace it at any time', async (context) => {
    const catalogue = new BookCatalogue(service.url, PATIENT);
    const { fetch } = globalThis;
    let count = 0;
    context.after(() => {
      globalThis.fetch = fetch;
    });
    globalThis.fetch = (...sent) => {
      if (new Headers(sent[1]?.headers).get('x-request-id') === 'replaced') count += 1; // not of other tests
      return fetch(...sent);
    };
    assert.equal(await catalogue.find(1_000_000, { requestId: 'replaced' }), undefined);
    assert.equal(count, 1);
  });

  test('gives its errors the id of the request, as set by the caller or its own', async () => {
    const error = await caught(
      new BookCatalogue(service.url, PATIENT).update(99, {}, { requestId: 'mine:42' }),
    );
    assert.equal((error as CatalogueError).requestId, 'mine:42');
    const own = await caught(new BookCatalogue(service.url, PATIENT).update(99, {}));
    assert.match((own as CatalogueError).requestId ?? '', /^[\w-]{8}-[a-z0-9]+$/);
  });

  describe('logs in', { concurrency: 2 }, () => {
    test('once for all calls that need it, and once more when its token is refused', async (context) => {
      const dbUrl = await SQLITE.freshUrl();
      const first = await startTestService(dbUrl);
      const second = await startTestService(dbUrl, {
        SECRET_TOKEN: 'another secret that is also long enough',
      });
      context.after(() => Promise.all([first.stop(), second.stop()]));
      let target = first;
      const front = await startFront(context, (...exchange) => passOn(target, ...exchange));
      const catalogue = new BookCatalogue(front.url, PATIENT);
      const logins = () => front.seen.filter((line) => line === 'POST /token').length;
      const fifty = () => Promise.all(Array.from({ length: 50 }, () => catalogue.create(BOOK)));
      await fifty();
      assert.equal(logins(), 1);
      target = second; // as if it had been restarted with another secret
      await fifty();
      assert.equal(logins(), 2);
      assert.equal((await second.client.list()).length, 100);
    });

    test('with a wrong password only once, and reports it to every call', async (context) => {
      const own = await startTestService(await SQLITE.freshUrl()); // it counts failed logins
      context.after(() => own.stop());
      const front = await startFront(context, (...exchange) => passOn(own, ...exchange));
      const catalogue = new BookCatalogue(front.url, { ...PATIENT, password: 'wrong' });
      const expected = { message: 'Invalid credentials', status: 401, mayBeDone: false };
      const errors = await Promise.all(
        Array.from({ length: 20 }, () => failure(catalogue.create(BOOK), WrongCredentials)),
      );
      for (const error of errors) assert.deepEqual(error, expected);
      assert.deepEqual(front.seen, ['POST /token']);
      assert.deepEqual(await failure(allOf(catalogue), WrongCredentials), expected);
      assert.deepEqual(front.seen, ['POST /token', 'POST /token']);
    });

    test('when it is told to, and once for the calls after that', async (context) => {
      const own = await startTestService(await SQLITE.freshUrl());
      context.after(() => own.stop());
      const { front, catalogue } = await startBehindFront(context, own);
      assert.equal(await catalogue.logIn(), undefined);
      await catalogue.logIn();
      assert.deepEqual(front.seen, ['POST /token']);
      await catalogue.find(1);
      assert.deepEqual(front.seen, ['POST /token', 'GET /book/1']);
      const wrong = new BookCatalogue(front.url, { ...PATIENT, password: 'wrong' });
      const expected = { message: 'Invalid credentials', status: 401, mayBeDone: false };
      assert.deepEqual(await failure(wrong.logIn(), WrongCredentials), expected);
      await assert.rejects(
        catalogue.logIn({ signal: AbortSignal.abort(new Error('enough')) }),
        /^Error: enough/,
      );
    });

    test('for the other calls, even if the call that began the login is aborted', async (context) => {
      const held = Promise.withResolvers<void>();
      const front = await startFront(context, async (...exchange) => {
        await held.promise;
        passOn(service, ...exchange);
      });
      const catalogue = new BookCatalogue(front.url, PATIENT);
      const giveUp = new AbortController();
      const first = catalogue.find(99, { signal: giveUp.signal });
      const second = catalogue.find(99);
      await waitUntil(() => front.seen.length === 1);
      giveUp.abort(new Error('enough'));
      await assert.rejects(first, /^Error: enough$/);
      held.resolve();
      assert.equal(await second, undefined);
      assert.deepEqual(front.seen, ['POST /token', 'GET /book/99']);
    });
  });

  describe('retries', { concurrency: 2 }, () => {
    if (STORES.includes(POSTGRES)) {
      test('rule 23: while the store is unavailable', async (context) => {
        const { proxy, proxiedUrl } = await TcpProxy.to(await POSTGRES.freshUrl());
        const own = await startTestService(proxiedUrl);
        const front = await startFront(context, (...exchange) => passOn(own, ...exchange));
        context.after(async () => {
          await own.stop();
          await proxy.stop();
        });
        const catalogue = new BookCatalogue(front.url, PATIENT);
        await catalogue.create(BOOK);
        const database = proxy.target;
        proxy.target = { port: await unusedPort() };
        proxy.reset();
        await waitUntil(async () => (await own.client.request('GET', '/book/1')).status === 503);

        const from = front.seen.length;
        const calls = [
          catalogue.find(1),
          catalogue.update(1, { year: 1615 }),
          allOf(catalogue),
          catalogue.remove(99),
          catalogue.create({ title: 'once' }),
        ];
        const times = (line: string) => front.seen.slice(from).filter((seen) => seen === line).length;
        const changes = ['PUT /book/1', 'DELETE /book/99', 'POST /book'];
        await waitUntil(() => changes.every((line) => times(line) >= 2));
        proxy.target = database;
        const [found, changed, list, removed, created] = await Promise.all(calls);
        assert.equal((found as typeof BOOK).title, 'Don Quijote');
        assert.deepEqual(changed, { id: 1, ...BOOK, year: 1615 });
        assert.ok((list as unknown[]).length >= 1);
        assert.equal(removed, undefined); // 503, then 404: the outcome is unknown
        const books = await allOf(catalogue);
        assert.deepEqual(
          books.filter(({ title }) => title === 'once'),
          [created],
        );
      });
    }

    test('when an answer is lost', async (context) => {
      let lost = 0;
      const front = await startFront(context, (incoming, outgoing) => {
        const isLost = incoming.url !== '/token' && lost > 0;
        if (isLost) lost -= 1;
        passOn(service, incoming, outgoing, isLost ? () => incoming.socket.destroy() : undefined);
      });
      const catalogue = new BookCatalogue(front.url, PATIENT);
      const { id } = await catalogue.create(BOOK);
      const losing = <Result>(count: number, call: () => Promise<Result>) => {
        lost = count;
        return call();
      };
      assert.equal((await losing(2, () => catalogue.find(id)))?.id, id);
      assert.equal((await losing(1, () => catalogue.update(id, { year: 1 }))).year, 1);
      assert.ok((await losing(1, () => allOf(catalogue))).some((book) => book.id === id));
      assert.equal(await losing(1, () => catalogue.remove(id)), undefined);
      assert.equal(await catalogue.remove(id), false);
    });

    test('and remembers across a new login that a removal may have been carried out', async (context) => {
      const front = await startFront(context, (incoming, outgoing) => {
        const count = front.seen.filter((line) => line.startsWith('DELETE')).length;
        if (incoming.url === '/token') answer(outgoing, 200, { token: tokenUntil(Date.now() + 900_000) });
        else if (count === 1) incoming.socket.destroy();
        else if (count === 2) answer(outgoing, 401, null, 'Invalid token');
        else answer(outgoing, 404, null, 'Book not found');
      });
      assert.equal(await new BookCatalogue(front.url, PATIENT).remove(1), undefined);
      assert.deepEqual(front.seen.length, 5);
    });

    test('through a proxy that does not reach the service', async (context) => {
      const front = await startFront(context, (incoming, outgoing) => {
        if (front.seen.length % 2 === 1) outgoing.writeHead(502).end('<html>');
        else passOn(service, incoming, outgoing);
      });
      assert.equal(await new BookCatalogue(front.url, PATIENT).find(99), undefined);
      assert.equal(front.seen.length, 4);
    });
  });

  for (const store of STORES) {
    describe(`stores once on ${store.name}`, { concurrency: 1 }, () => {
      let own: RunningService;

      before(async () => {
        own = await startTestService(await store.freshUrl());
      });
      after(() => own?.stop());

      /** How often this title is stored. */
      const timesStored = async (title: string) => {
        const books: { title: string }[] = await own.client.list();
        return books.filter((book) => book.title === title).length;
      };

      test('I2: a book, however many answers are lost, and with one key for all attempts', async (context) => {
        const unreliable = await startUnreliable(context, own);
        const catalogue = new BookCatalogue(unreliable.url, PATIENT);
        for (const faults of [
          ['lost'],
          ['lost', 'lost'],
          ['503'],
          ['503 done'],
          ['502'],
          ['lost', '503', '502', '503 done', 'refused'],
        ] as const) {
          const title = `book ${faults}`;
          const from = unreliable.keys.length;
          unreliable.next.push(...faults);
          const fields: { title: string; year?: number } = { title, year: 1605 };
          const call = catalogue.create(fields);
          fields.year = 1; // the attempts send what the call was given
          const created = await call;
          assert.deepEqual(created, { id: created.id, title, author: '', year: 1605 });
          assert.deepEqual(await catalogue.find(created.id), created);
          assert.equal(await timesStored(title), 1, title);
          const keys = unreliable.keys.slice(from);
          assert.equal(keys.length, faults.length + 1);
          assert.equal(new Set(keys).size, 1);
          assert.match(keys[0] ?? '', /^[0-9a-f]{32}$/);
        }
        assert.equal(new Set(unreliable.keys).size, 6);
      });

      test('I2: a book that is stored again with the same key, also by a program that was restarted', async () => {
        const title = 'with a key';
        const idempotencyKey = 'import-7/line-1';
        const programs = [new BookCatalogue(own.url, PATIENT), new BookCatalogue(own.url, PATIENT)] as const;
        const created = await programs[0].create({ title }, { idempotencyKey });
        assert.deepEqual(await programs[1].create({ title }, { idempotencyKey }), created);
        assert.equal(await timesStored(title), 1);
        await assertRefused(
          programs[1].create({ title, year: 1 }, { idempotencyKey }),
          422,
          'Idempotency key already used',
        );
        for (const invalid of ['', 'a key', 'x'.repeat(256)]) {
          const call = programs[0].create({ title }, { idempotencyKey: invalid });
          await assertRefused(call, 400, 'Invalid idempotency key');
        }
        assert.equal(await timesStored(title), 1);
      });

      test('B1: many books, in one step, with their ids in order', async () => {
        const catalogue = new BookCatalogue(own.url, PATIENT);
        const text = '"\\ {[]},\n\u2028 Кот 吾輩 📚';
        const fields = [BOOK, {}, { title: text, year: -0, id: 7, other: [']'] }, { author: '}]}' }];
        const created = await catalogue.createAll(fields);
        assert.deepEqual(
          created.map(({ id: _, ...rest }) => rest),
          [
            BOOK,
            { title: '', author: '', year: 0 },
            { title: text, author: '', year: 0 },
            { title: '', author: '}]}', year: 0 },
          ],
        );
        for (const book of created) assert.deepEqual(await catalogue.find(book.id), book);
        assert.deepEqual(
          created,
          created.toSorted((one, other) => one.id - other.id),
        );
        assert.deepEqual(await catalogue.createAll([]), []);
      });

      test('B2: many books, all or none', async () => {
        const catalogue = new BookCatalogue(own.url, PATIENT);
        const title = 'all or none';
        const wrong = catalogue.createAll([{ title }, { title, year: 1.5 }, { title }]);
        await assertRefused(wrong, 400, 'Invalid input: book 2');
        await assertRefused(catalogue.createAll({ title } as unknown as []), 400, 'Invalid input');
        const most = Array.from({ length: 10_000 }, () => ({ title, author: 'x'.repeat(100) }));
        await assertRefused(catalogue.createAll([...most, { title }]), 413, 'Payload too large');
        const large = most.map(() => ({ title, author: 'x'.repeat(2000) })); // 20 MB
        await assertRefused(catalogue.createAll(large), 413, 'Payload too large');
        assert.equal(await timesStored(title), 0);
        const created = await catalogue.createAll(most);
        assert.equal(new Set(created.map(({ id }) => id)).size, 10_000);
        assert.equal(await timesStored(title), 10_000);
      });

      test('I2: many books, however many answers are lost, and again with the same key', async (context) => {
        const unreliable = await startUnreliable(context, own);
        const catalogue = new BookCatalogue(unreliable.url, PATIENT);
        const title = 'many once';
        const fields = [{ title }, { title, year: 1605 }, { title }];
        unreliable.next.push('lost', '503', '503 done', '502', 'refused');
        const call = catalogue.createAll(fields);
        fields.pop();
        const created = await call;
        assert.equal(unreliable.keys.length, 6);
        assert.equal(new Set(unreliable.keys).size, 1);
        assert.deepEqual(
          created.map(({ year }) => year),
          [0, 1605, 0],
        );
        assert.equal(await timesStored(title), 3);

        const idempotencyKey = 'import-9';
        const first = await catalogue.createAll(fields, { idempotencyKey });
        const again = await new BookCatalogue(own.url, PATIENT).createAll(fields, { idempotencyKey });
        assert.deepEqual(again, first);
        assert.equal(await timesStored(title), 5);
        const { status } = await failure(catalogue.createAll([{ title }], { idempotencyKey }));
        assert.equal(status, 422);
        assert.equal(await timesStored(title), 5);
      });

      test('I2: a book whose call has failed with an unknown outcome, when it is called again with its key', async (context) => {
        let lost = 0;
        const lose = ({ socket }: IncomingMessage) => {
          lost += 1;
          socket.destroy();
        };
        const front = await startFront(context, (incoming, outgoing) => {
          const isLost = incoming.url === '/book';
          passOn(own, incoming, outgoing, isLost ? () => lose(incoming) : undefined);
        });
        const title = 'unknown outcome';
        const idempotencyKey = 'mine-8';
        const catalogue = new BookCatalogue(front.url, HASTY);
        await logIn(catalogue);
        // A machine that stalls may end a call before the service has answered.
        while (lost === 0) {
          const { message, ...rest } = await failure(catalogue.create({ title }, { idempotencyKey }));
          assert.match(message, /^no answer (from http:\/\/127\.0\.0\.1:\d+: .|within 2000 ms$)/);
          assert.deepEqual(rest, { status: undefined, mayBeDone: true });
        }
        await waitUntil(async () => (await timesStored(title)) === 1);
        const again = await new BookCatalogue(own.url, PATIENT).create({ title }, { idempotencyKey });
        assert.equal(again.title, title);
        assert.equal(await timesStored(title), 1);
      });
    });
  }

  for (const store of STORES) {
    describe(`with an expected book on ${store.name}`, { concurrency: 1 }, () => {
      let own: RunningService;

      before(async () => {
        own = await startTestService(await store.freshUrl());
      });
      after(() => own?.stop());

      /** What the service has, without the client: undefined if there is no such book. */
      const stored = async ({ id }: Book) =>
        (await own.client.request('GET', `/book/${id}`)).data ?? undefined;
      const change = (id: number, body: object) => own.client.request('PUT', `/book/${id}`, { body });
      const isChange = ({ method }: IncomingMessage) => method === 'PUT' || method === 'DELETE';

      test('E3: changes and removes it', async (context) => {
        const { front, catalogue } = await startBehindFront(context, own);
        const first = await catalogue.create(BOOK);
        const second = await catalogue.update(first.id, { year: 1615 }, { expected: first });
        assert.deepEqual(second, { ...first, year: 1615 });
        const copy = JSON.parse(JSON.stringify(second));
        assert.deepEqual(await catalogue.update(first.id, {}, { expected: copy }), second);
        assert.deepEqual(await stored(first), second);
        assert.equal(await catalogue.remove(first.id, { expected: second }), true);
        assert.equal(await stored(first), undefined);
        assert.equal(await catalogue.remove(first.id, { expected: second }), false);
        const missing = catalogue.update(first.id, { year: 1 }, { expected: second });
        await assertRefused(missing, 404, 'Book not found');
        // A book that the client has answered itself is not read first, unless the program has changed it since.
        const { id } = await catalogue.create(BOOK);
        const found = await catalogue.find(id);
        assert.ok(found !== undefined);
        front.seen.length = 0;
        Object.assign(found, { year: 1 });
        assert.deepEqual(await changed(catalogue.remove(id, { expected: found })), {
          current: { id, ...BOOK },
          mayBeDone: false,
        });
        Object.assign(found, { year: BOOK.year });
        assert.equal(await catalogue.remove(id, { expected: found }), true);
        assert.deepEqual(front.seen, [`GET /book/${id}`, `DELETE /book/${id}`]);
      });

      test('E3: refuses another book, whichever field differs, and overwrites nothing', async (context) => {
        const { front, catalogue } = await startBehindFront(context, own);
        const book = await catalogue.create(BOOK);
        for (const difference of [
          { id: book.id + 1 },
          { title: 'don quijote' },
          { author: '' },
          { year: 1604 },
        ]) {
          const expected = { ...book, ...difference };
          const update = catalogue.update(book.id, { title: 'overwritten' }, { expected });
          assert.deepEqual(await changed(update), { current: book, mayBeDone: false });
          const removal = catalogue.remove(book.id, { expected });
          assert.deepEqual(await changed(removal), { current: book, mayBeDone: false });
        }
        assert.deepEqual(await stored(book), book);
        assert.ok(!front.seen.some((line) => /^(PUT|DELETE) /.test(line)));
      });

      test('E3: refuses a book that another client changes or removes meanwhile', async (context) => {
        let meanwhile: ((incoming: IncomingMessage) => unknown) | undefined;
        const front = await startFront(context, async (incoming, outgoing) => {
          if (incoming.url !== '/token') await meanwhile?.(incoming);
          passOn(own, incoming, outgoing);
        });
        const catalogue = new BookCatalogue(front.url, PATIENT);
        const update = (expected: Book) => catalogue.update(expected.id, { title: 'mine' }, { expected });
        const remove = (expected: Book) => catalogue.remove(expected.id, { expected });
        const withMeddling = async (work: typeof meanwhile) => {
          meanwhile = undefined;
          const book = await catalogue.create(BOOK);
          meanwhile = work;
          return book;
        };
        const changesFirst = async (incoming: IncomingMessage) => {
          const id = Number(incoming.url?.slice('/book/'.length));
          if (isChange(incoming)) await change(id, { title: 'theirs' });
        };
        const removesFirst = async (incoming: IncomingMessage) => {
          if (isChange(incoming)) await own.client.request('DELETE', incoming.url as string);
        };
        for (const call of [update, remove]) {
          const book = await withMeddling(changesFirst);
          const current = { ...book, title: 'theirs' };
          assert.deepEqual(await changed(call(book)), { current, mayBeDone: false });
          assert.deepEqual(await stored(book), current);
        }
        // The same change by another client: it might be this one, if the runtime had sent it twice.
        const same = await withMeddling(changesFirst);
        const again = catalogue.update(same.id, { title: 'theirs' }, { expected: same });
        assert.deepEqual(await changed(again), { current: { ...same, title: 'theirs' }, mayBeDone: true });

        assert.equal((await failure(update(await withMeddling(removesFirst)))).status, 404);
        assert.equal(await remove(await withMeddling(removesFirst)), false);

        // Changed before the client's request, and removed before the client reads what it is now.
        const changesThenRemoves = () => {
          let isChanged = false;
          return async (incoming: IncomingMessage) => {
            if (isChanged) await own.client.request('DELETE', incoming.url as string);
            isChanged = isChange(incoming);
            await changesFirst(incoming);
          };
        };
        await assertRefused(update(await withMeddling(changesThenRemoves())), 404, 'Book not found');
        assert.equal(await remove(await withMeddling(changesThenRemoves())), false);
      });

      test('E3: knows its own change after lost answers', async (context) => {
        const unreliable = await startUnreliable(context, own);
        const catalogue = new BookCatalogue(unreliable.url, PATIENT);
        for (const faults of [['lost'], ['503 done'], ['503'], ['502', 'lost', 'refused', '503']] as const) {
          const expected = await catalogue.create(BOOK);
          unreliable.next.push(...faults);
          const changes = { id: 7, year: 1615, title: undefined } as object; // only the year counts
          const book = await catalogue.update(expected.id, changes, { expected });
          assert.deepEqual(book, { ...expected, year: 1615 });
          assert.deepEqual(await stored(book), book);
          unreliable.next.push(...faults);
          assert.equal(
            await catalogue.remove(book.id, { expected: book }),
            faults[0] === '503' ? true : undefined,
            String(faults),
          );
          assert.equal(await stored(book), undefined);
        }
      });

      test('E3: does not know, after a lost answer, whether another change came after its own', async (context) => {
        const front = await startFront(context, (incoming, outgoing) => {
          const { method, url = '', socket } = incoming;
          const isFirst = front.seen.filter((line) => line === `${method} ${url}`).length === 1;
          const loseAfterChange = async () => {
            await change(Number(url.slice('/book/'.length)), { title: 'theirs' });
            socket.destroy();
          };
          passOn(own, incoming, outgoing, method === 'PUT' && isFirst ? loseAfterChange : undefined);
        });
        const catalogue = new BookCatalogue(front.url, PATIENT);
        const book = await catalogue.create(BOOK);
        const call = catalogue.update(book.id, { year: 1615 }, { expected: book });
        const current = { ...book, title: 'theirs', year: 1615 };
        assert.deepEqual(await changed(call), { current, mayBeDone: true });
        assert.deepEqual(await stored(book), current);
      });

      test('E4: where the service demands it', async (context) => {
        const strict = await startTestService(own.dbUrl, { REQUIRE_IF_MATCH: 'on' });
        context.after(() => strict.stop());
        const catalogue = new BookCatalogue(strict.url, PATIENT);
        const book = await catalogue.create(BOOK);
        await assertRefused(catalogue.update(book.id, { year: 1 }), 428, 'Precondition required');
        await assertRefused(catalogue.remove(book.id), 428, 'Precondition required');
        const second = await catalogue.update(book.id, { year: 1 }, { expected: book });
        assert.deepEqual(second, { ...book, year: 1 });
        assert.equal(await catalogue.remove(book.id, { expected: second }), true);
      });
    });
  }

  describe('with an expected book', { concurrency: 2 }, () => {
    test('understands a tag that a proxy has weakened, and refuses to continue without one', async (context) => {
      let isTagged = true;
      const front = await startFront(context, (incoming, outgoing) => {
        passOn(service, incoming, outgoing, (answered) => {
          const { etag, ...headers } = answered.headers;
          outgoing.writeHead(answered.statusCode as number, {
            ...headers,
            ...(isTagged && etag !== undefined && { etag: `W/${etag}` }),
          });
          answered.pipe(outgoing);
        });
      });
      const catalogue = new BookCatalogue(front.url, PATIENT);
      const first = await catalogue.create(BOOK);
      const expected = await catalogue.update(first.id, { year: 1615 }, { expected: first });
      assert.equal(expected.year, 1615);
      isTagged = false;
      const copy = { ...expected }; // without the client's record of the original
      const { message } = await failure(catalogue.remove(first.id, { expected: copy }));
      assert.equal(message, 'the answer has no etag, which makes a change safe');
      assert.deepEqual(await catalogue.find(first.id), expected);
      assert.equal(await catalogue.remove(first.id, { expected }), true);
    });

    test('refuses an expected book that is undefined, before anything is sent', async (context) => {
      const { front, catalogue } = await startBehindFront(context, service);
      const nothing = { expected: undefined } as object;
      await assert.rejects(catalogue.update(1, { year: 1 }, nothing), TypeError);
      await assert.rejects(catalogue.remove(1, nothing), TypeError);
      assert.deepEqual(front.seen, []);
    });

    test('reports a change even if it cannot read the book as it is now', async (context) => {
      const book = { id: 1, ...BOOK };
      let reads = 0;
      const front = await startFront(context, (incoming, outgoing) => {
        if (incoming.url === '/token') return passOn(service, incoming, outgoing);
        if (incoming.method === 'PUT') return answer(outgoing, 412, null, 'Precondition failed');
        reads += 1;
        outgoing.setHeader('etag', '"played"');
        if (reads > 1) answer(outgoing, 500, null, 'Internal server error');
        else answer(outgoing, 200, book);
      });
      const call = new BookCatalogue(front.url, PATIENT).update(1, { year: 1 }, { expected: book });
      assert.deepEqual(await changed(call), { current: undefined, mayBeDone: false });
      assert.equal(reads, 2);
    });
  });

  describe('a list', { concurrency: 2 }, () => {
    test('is the same however it is cut into pieces, and never complete without its end', async () => {
      const books = [
        { id: 1, ...BOOK },
        { id: 2, title: '[]}" é 吾 📚 },\\', author: '\u2028\\\\', year: -1 },
        { id: 3, title: '', author: '', year: 0 },
      ];
      const bytes = Buffer.from(
        JSON.stringify({ status: 200, message: 'Books retrieved successfully', data: books }),
      );
      for (let cut = 0; cut < bytes.length; cut += 1) {
        assert.deepEqual(await listOf([bytes.subarray(0, cut), bytes.subarray(cut)]), books);
        await assert.rejects(listOf([bytes.subarray(0, cut)]), CatalogueError, `${cut} bytes`);
      }
      assert.deepEqual(await listOf([...bytes].map((byte) => Uint8Array.of(byte))), books);
      assert.deepEqual(await listOf([Buffer.from('{ "status" : 200, "message": "", "data" : [ ] }\n')]), []);

      const head = '{"status":200,"message":"","data":';
      for (const text of [
        ...['', '{', '[]', 'null', '{"status":200}', '<html>', `${head}{}}`, `${head}null}`, `${head}[1]}`],
        ...[`${head}[{},]}`, `${head}[,{}]}`, `${head}[{}{}]}`, `${head}[{}x,{}]}`, `${head}[{}]}{`],
        ...[`${head}[{"id":}]}`, `${head}[]],"x":[]}`, '{"status":503,"message":"","data":[]}'],
      ]) {
        await assert.rejects(listOf([Buffer.from(text)]), CatalogueError, text);
      }
      const notUtf8 = Buffer.from(`${head}[{"title":"\xe9"}]}`, 'latin1');
      await assert.rejects(listOf([notUtf8]), CatalogueError);
    });

    test('that breaks off half way throws', async (context) => {
      const broken = Promise.withResolvers<void>();
      const front = await startFront(context, async (incoming, outgoing) => {
        if (incoming.url === '/token') return passOn(service, incoming, outgoing);
        outgoing.write('{"status":200,"message":"","data":[{"id":1},{"id":2},{');
        await broken.promise;
        outgoing.destroy();
      });
      let count = 0;
      const read = async () => {
        for await (const { id } of new BookCatalogue(front.url, PATIENT).list()) {
          count += 1;
          assert.equal(id, count);
          broken.resolve();
        }
      };
      const { message, ...rest } = await failure(read());
      assert.equal(message, 'list truncated after 2 books');
      assert.equal(count, 2);
      assert.deepEqual(rest, { status: undefined, mayBeDone: false });
    });

    test('with a second array, whose elements are no books of it, throws', async (context) => {
      const front = await startFront(context, (incoming, outgoing) => {
        if (incoming.url === '/token') return passOn(service, incoming, outgoing);
        outgoing.end('{"status":200,"message":"","data":[],"others":[{"id":1}]}');
      });
      const { message } = await failure(allOf(new BookCatalogue(front.url, PATIENT)));
      assert.equal(message, 'list truncated after 0 books');
    });
  });

  describe('a search', { concurrency: 2 }, () => {
    /** Years from 0 to 2499, each once. */
    const BOOKS = manyBooks(2500);
    let full: RunningService;

    before(async () => {
      const dbUrl = await SQLITE.freshUrl();
      await fill(dbUrl, BOOKS);
      full = await startTestService(dbUrl);
      await untilIndexed(new BookCatalogue(full.url, PATIENT));
    });
    after(() => full?.stop());

    for (const store of STORES) {
      test(`finds and counts books on ${store.name}`, async (context) => {
        const own = await startTestService(await store.freshUrl());
        context.after(() => own.stop());
        const catalogue = new BookCatalogue(own.url, PATIENT);
        await untilIndexed(catalogue);
        assert.deepEqual(await found(catalogue, {}), []);
        assert.equal(await catalogue.count({}), 0);
        const quijote = await catalogue.create(BOOK);
        const second = await catalogue.create({ ...BOOK, title: 'Segunda parte de Don Quijote', year: 1615 });
        const letranger = await catalogue.create({ title: 'L’Étranger & C°', author: 'Camus', year: 1942 });
        const untitled = await catalogue.create({ year: -1 });
        await untilIndexed(catalogue);
        for (const [search, books] of [
          [{ q: 'cervantes quij*' }, [quijote, second]],
          [{ title: 'don quijote' }, [quijote]],
          [{ title: '' }, [untitled]],
          [{ title: "l'etranger & c" }, [letranger]],
          [{ author: 'MIGUEL DE CERVANTES', sort: '-year' }, [second, quijote]],
          [{ title_contains: 'étranger' }, [letranger]],
          [{ author_contains: 'de miguel' }, [quijote, second]],
          [{ title_starts_with: 'segunda parte' }, [second]],
          [{ author_starts_with: 'cam' }, [letranger]],
          [{ year: -1 }, [untitled]],
          [{ year_gte: 1605, year_lte: 1615, sort: '-title,id' }, [second, quijote]],
          [{ q: undefined, year: 1605, limit: undefined }, [quijote]],
          [{ q: 'nobody' }, []],
        ] as const) {
          assert.deepEqual(await found(catalogue, search), books, JSON.stringify(search));
          assert.equal(await catalogue.count(search), books.length, JSON.stringify(search));
          const page = { books, total: books.length, next: undefined, unindexed: 0 };
          assert.deepEqual(await catalogue.page(search), page, JSON.stringify(search));
        }
        assert.equal(await catalogue.count({ sort: 'title', limit: 2 }), 4);
      });
    }

    test('walks all pages, or as many as its limit needs', async (context) => {
      const { front, catalogue } = await startBehindFront(context, full);
      assert.deepEqual(await found(catalogue, {}), BOOKS);
      const [first, ...others] = front.seen.filter((line) => line.startsWith('GET '));
      assert.equal(first, 'GET /books?limit=1000');
      assert.equal(others.length, 2);
      const newest = BOOKS.toReversed();
      for (const [limit, sent, pages] of [
        [1, 1, 1],
        [1000, 1000, 1],
        [1001, 1000, 2],
        [2000, 1000, 2],
        [2500, 1000, 3],
        [1e9, 1000, 3],
      ] as const) {
        const from = front.seen.length;
        assert.deepEqual(await found(catalogue, { sort: '-year', limit }), newest.slice(0, limit));
        assert.equal(front.seen[from], `GET /books?sort=-year&limit=${sent}`);
        assert.equal(front.seen.length - from, pages);
      }
      assert.equal(await catalogue.count({}), 2500);
      assert.equal(front.seen.at(-1), 'GET /books?sort=id&limit=1');
    });

    test('gives one page: by default the first 100 books, and the next of each until the last', async (context) => {
      const { front, catalogue } = await startBehindFront(context, full);
      const { books, total, next, unindexed } = await catalogue.page({});
      assert.equal(front.seen.at(-1), 'GET /books?limit=100');
      assert.deepEqual(books, BOOKS.slice(0, 100));
      assert.deepEqual([total, unindexed], [undefined, 0]); // more than 1,000 are counted only if asked for

      for (const [search, expected] of [
        [next, BOOKS.slice(100)],
        [{ sort: '-year', limit: 1000 }, BOOKS.toReversed()],
        [{ sort: '-year', limit: 1000, offset: 0 }, BOOKS.toReversed()],
        [{ offset: 700, limit: 900 }, BOOKS.slice(700)],
        [{ offset: 2500 }, []],
        [{ offset: Number.MAX_SAFE_INTEGER, limit: 1 }, []],
      ] as const) {
        const seen: Book[] = [];
        for (let place: PageSearch | undefined = search; place !== undefined; ) {
          const page = await catalogue.page(place);
          assert.equal(page.next !== undefined, seen.push(...page.books) < expected.length);
          place = page.next;
        }
        assert.deepEqual(seen, expected, JSON.stringify(search));
      }
      const kinds = front.seen.map((line) => /cursor|offset/.exec(line)?.[0]);
      assert.equal(kinds.filter((kind) => kind === 'cursor').length, 24 + 2);
      assert.equal(kinds.filter((kind) => kind === 'offset').length, 3 + 2 + 2);
    });

    test('counts with a page, if asked for: exactly, and whatever its offset', async () => {
      const catalogue = new BookCatalogue(full.url, PATIENT);
      for (const [search, count] of [
        [{ limit: 10 }, 2500],
        [{ offset: 2490, sort: 'year' }, 2500],
        [{ year_gte: 1000, limit: 1 }, 1500],
      ] as const) {
        assert.equal((await catalogue.page(search)).total, undefined);
        assert.equal((await catalogue.page(search, { count: false })).total, undefined);
        assert.equal((await catalogue.page(search, { count: true })).total, count);
      }
      assert.equal((await catalogue.page({ year_lte: 999, limit: 1 })).total, 1000);
    });

    test('asks for the next page when it is needed, and for nothing more when its loop is left', async (context) => {
      const { front, catalogue } = await startBehindFront(context, full);
      const pages = () => front.seen.filter((line) => line.startsWith('GET ')).length;
      let count = 0;
      for await (const { id } of catalogue.find({})) {
        count += 1;
        assert.equal(id, count);
        assert.equal(pages(), Math.ceil(count / 1000));
        if (count === 1999) break;
      }
      const unused = catalogue.find({});
      await unused.return();
      assert.deepEqual(await found(catalogue, { q: 'nobody' }), []);
      assert.equal(pages(), 3); // the third one is that of the empty search
    });

    test('continues behind a proxy under a path, and after a 503 half way', async (context) => {
      let isBusy = false;
      const front = await startFront(context, (incoming, outgoing) => {
        const path = incoming.url ?? '';
        assert.ok(path.startsWith('/library/'));
        isBusy = path.includes('cursor=') && !isBusy; // every other attempt for a further page
        if (isBusy) {
          outgoing.setHeader('retry-after', 1);
          return answer(outgoing, 503, null, 'Service unavailable');
        }
        incoming.url = path.replace('/library', '');
        passOn(full, incoming, outgoing);
      });
      const catalogue = new BookCatalogue(`${front.url}/library`, PATIENT);
      assert.deepEqual(await found(catalogue, { title_contains: 'xxx*' }), BOOKS);
      const [login, first, ...others] = front.seen;
      assert.equal(login, 'POST /library/token');
      assert.equal(first, 'GET /library/books?title_contains=xxx*&limit=1000');
      assert.equal(others.length, 4);
      assert.equal(new Set(others).size, 2);
    });

    test('ends when its caller aborts: while a page is on its way, and within a page', async (context) => {
      const onItsWay = new AbortController();
      const front = await startFront(context, (incoming, outgoing) => {
        if (!incoming.url?.includes('cursor=')) return passOn(full, incoming, outgoing);
        onItsWay.abort(new Error('enough'));
      });
      const catalogue = new BookCatalogue(front.url, PATIENT);
      const read = async (signal: AbortSignal, work: (book: { id: number }) => void) => {
        for await (const book of catalogue.find({}, { signal })) work(book);
      };
      let last = 0;
      const remember = ({ id }: { id: number }) => {
        last = id;
      };
      await assert.rejects(read(onItsWay.signal, remember), /^Error: enough$/);
      assert.equal(last, 1000);
      assert.deepEqual(getEventListeners(onItsWay.signal, 'abort'), []);

      const withinPage = new AbortController();
      const stop = (book: { id: number }) => {
        remember(book);
        if (book.id === 10) withinPage.abort(new Error('enough'));
      };
      await assert.rejects(read(withinPage.signal, stop), /^Error: enough$/);
      assert.equal(last, 10);
      const before = catalogue.count({}, { signal: AbortSignal.abort(new Error('never')) });
      await assert.rejects(before, /^Error: never$/);
    });

    test('keeps to what it was asked for, even if the caller changes that meanwhile', async (context) => {
      const search: { year_gte: number; sort: string; limit: number } = {
        year_gte: 10,
        sort: 'id',
        limit: 2,
      };
      const front = await startFront(context, (incoming, outgoing) => {
        if (incoming.method === 'GET') Object.assign(search, { year_gte: 1000, sort: 'year' });
        passOn(full, incoming, outgoing);
      });
      const { next } = await new BookCatalogue(front.url, PATIENT).page(search);
      assert.deepEqual({ ...next, cursor: '' }, { year_gte: 10, sort: 'id', limit: 2, cursor: '' });
    });

    test('F11: says how many books are not indexed yet', async (context) => {
      const front = await startFront(context, (incoming, outgoing) => {
        if (incoming.method === 'GET') outgoing.setHeader('x-unindexed-books', 7);
        passOn(full, incoming, outgoing);
      });
      const { books, unindexed } = await new BookCatalogue(front.url, PATIENT).page({ year: 1605 });
      assert.deepEqual([books.length, unindexed], [1, 7]);
    });

    test('throws if it is refused, if it is not answered by a page, and if it cannot be counted', async (context) => {
      const catalogue = new BookCatalogue(full.url, PATIENT);
      for (const [search, name] of [
        [{ yaer: 1605 } as object, 'yaer'],
        [{ year: 0.5 }, 'year'],
        [{ limit: 0 }, 'limit'],
        [{ limit: Number.NaN }, 'limit'],
        [{ sort: 'price' }, 'sort'],
      ] as const) {
        await assertRefused(found(catalogue, search), 400, `Invalid query parameter: ${name}`);
        await assertRefused(catalogue.page(search), 400, `Invalid query parameter: ${name}`);
      }
      for (const [search, name] of [
        [{ limit: 1001 }, 'limit'],
        [{ offset: -1 }, 'offset'],
        [{ cursor: 'none' }, 'cursor'],
      ] as const) {
        await assertRefused(catalogue.page(search), 400, `Invalid query parameter: ${name}`);
      }
      const unable = await startTestService(await SQLITE.freshUrl(), { FIND: 'off' });
      context.after(() => unable.stop());
      const off = new BookCatalogue(unable.url, PATIENT).count({ q: 'x' });
      await assertRefused(off, 400, 'Invalid query parameter: q');

      let headers: Record<string, string> = {};
      const front = await startFront(context, (incoming, outgoing) => {
        if (incoming.url === '/token') return passOn(full, incoming, outgoing);
        for (const [name, value] of Object.entries(headers)) outgoing.setHeader(name, value);
        answer(outgoing, 200, [{ id: 1, ...BOOK }]);
      });
      const other = new BookCatalogue(front.url, PATIENT);
      for (const call of [found(other, {}), other.page({}), other.count({})]) {
        const { message } = await failure(call);
        assert.equal(message, 'the answer has no link: it is not a page of books');
      }
      headers = { link: '</books?limit=1>; rel="first"' };
      assert.deepEqual(await found(other, {}), [{ id: 1, ...BOOK }]);
      await assertRefused(other.count({}), 200, 'counting takes the service too long');
    });
  });

  describe('as described and installed', { concurrency: 1 }, () => {
    let command: CommandHere;

    before(async () => {
      const { AUTH_USERNAME: _, AUTH_PASSWORD: __, ...env } = ENVIRONMENT; // with the built-in password
      command = await startHere({ ...env, LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl() });
    });
    after(() => command?.stop());

    interface Call {
      call(catalogue: BookCatalogue): Promise<unknown>;
      /** Its result after success; that of the example if left out. */
      readonly result?: unknown;
      /** Its result for `Book not found`; an error if left out. */
      readonly absent?: unknown;
    }

    /** Each operation as the client calls it. */
    const CALLS: Record<string, readonly Call[]> = {
      createToken: [{ call: (catalogue) => catalogue.find(1) }],
      createBook: [{ call: (catalogue) => catalogue.create(BOOK, { requestId: 'mine:42' }) }],
      createBooks: [
        {
          call: (catalogue) => catalogue.createAll([BOOK, { ...BOOK, year: 1615 }], { requestId: 'mine:42' }),
          result: [
            { id: 1, ...BOOK },
            { id: 2, ...BOOK, year: 1615 },
          ],
        },
      ],
      listBooks: [
        { call: (catalogue) => allOf(catalogue, { requestId: 'mine:42' }) },
        { call: (catalogue) => found(catalogue, SEARCH, { requestId: 'mine:42' }) },
        { call: async (catalogue) => (await catalogue.page(SEARCH, { requestId: 'mine:42' })).books },
        { call: (catalogue) => catalogue.count(SEARCH, { requestId: 'mine:42' }), result: TOTAL },
      ],
      getBook: [{ call: (catalogue) => catalogue.find(1, { requestId: 'mine:42' }), absent: undefined }],
      updateBook: [{}, { expected: { id: 1, ...BOOK } }].map((options) => ({
        call: (catalogue) =>
          catalogue.update(1, { ...BOOK, year: 1615 }, { requestId: 'mine:42', ...options }),
      })),
      deleteBook: [{}, { expected: { id: 1, ...BOOK } }].map((options) => ({
        call: (catalogue) => catalogue.remove(1, { requestId: 'mine:42', ...options }),
        result: true,
        absent: false,
      })),
    };
    const NOT_OFFERED = ['checkBooks', 'checkBook']; // `find`, `list` and `count` return as much
    const METHODS = ['count', 'create', 'createAll', 'find', 'list', 'logIn', 'page', 'remove', 'update'];

    test('has a counterpart for every operation and answer of the description, and no other', async (context) => {
      const operations = Object.entries<Document>(API.paths).flatMap(([path, methods]) =>
        Object.entries<Document>(methods)
          .filter(([method]) => method !== 'parameters')
          .map(([method, operation]) => ({
            ...operation,
            path,
            method: method.toUpperCase(),
            parameters: [...(methods.parameters ?? []), ...operation.parameters],
          })),
      );
      assert.deepEqual(
        operations.map(({ operationId }) => operationId).toSorted(),
        [...Object.keys(CALLS), ...NOT_OFFERED].toSorted(),
      );
      const methods = Object.getOwnPropertyNames(BookCatalogue.prototype);
      assert.deepEqual(methods.filter((name) => name !== 'constructor').toSorted(), METHODS);

      const said = new Set<string>();
      for (const operation of operations) {
        const { operationId, responses } = operation;
        const examples = Object.entries<Document>(responses).flatMap(([code, { content }]) =>
          Object.values<Document>(content?.['application/json'].examples ?? {}).map(({ value }) => {
            assert.equal(String(value.status), code);
            return value;
          }),
        );
        for (const { call, ...results } of CALLS[operationId] ?? []) {
          for (const envelope of examples) {
            const { status, message, data } = envelope;
            said.add(message);
            const front = await startPlayed(context, operations, operation, envelope);
            const catalogue = new BookCatalogue(front.url, PATIENT); // its timeout is shorter than Retry-After
            const outcome: unknown = await call(catalogue).catch((error) => error);
            const name = `${operationId} ${status} ${message}: ${call}`;
            if (status < 300) {
              const usual = operationId === 'createToken' ? front.book : data;
              assert.deepEqual(outcome, 'result' in results ? results.result : usual, name);
            } else if (message === 'Book not found' && 'absent' in results) {
              assert.deepEqual(outcome, results.absent, name);
            } else {
              assert.ok(outcome instanceof CatalogueError, name);
              const { requestId } = outcome;
              assert.deepEqual(
                { message: outcome.message, status: outcome.status, requestId },
                { message, status, requestId: 'played' },
              );
              assert.equal(outcome instanceof WrongCredentials, message === 'Invalid credentials', name);
              const isChange = !['createToken', 'getBook', 'listBooks'].includes(operationId);
              assert.equal(outcome.mayBeDone, isChange && status >= 500, name);
            }
            const times = message === 'Invalid token' ? 2 : 1;
            // After a 421, fetch itself retries the request.
            if (status !== 421) assert.equal(front.asked, times, name);
          }
        }
      }
      // The messages that decide what the client does.
      for (const message of ['Invalid credentials', 'Invalid token', 'Book not found'])
        assert.ok(said.has(message));
    });
  });
});

/** What goes wrong with a request: before it reaches the service, or after the service has carried it out. */
type Fault = 'lost' | '502' | '503' | '503 done' | 'refused';

/** A catalogue behind a front that passes everything on. */
async function startBehindFront(context: TestContext, service: RunningService) {
  const front = await startFront(context, (...exchange) => passOn(service, ...exchange));
  return { front, catalogue: new BookCatalogue(front.url, PATIENT) };
}

/** A front with faults. */
async function startUnreliable(context: TestContext, service: RunningService) {
  /** Those of the next requests that change books; the others arrive and are answered. */
  const next: Fault[] = [];
  /** Of these requests. */
  const keys: (string | undefined)[] = [];
  const front = await startFront(context, (incoming, outgoing) => {
    const { method, url, headers, socket } = incoming;
    if (method === 'GET' || url === '/token') return passOn(service, incoming, outgoing);
    keys.push(headers['idempotency-key'] as string | undefined);
    const fault = next.shift();
    const refuse = () => answer(outgoing, 503, null, 'Service unavailable');
    if (fault === '502') return outgoing.writeHead(502).end('<html>');
    if (fault === '503') return refuse();
    if (fault === 'refused') headers.authorization = 'none';
    const give = { lost: () => socket.destroy(), '503 done': refuse };
    passOn(service, incoming, outgoing, fault === 'lost' || fault === '503 done' ? give[fault] : undefined);
  });
  return { ...front, next, keys };
}

/** With a short timeout, for calls that must exceed it. */
const HASTY = { ...PAIR, timeout: 2000 };
const TOO_SLOW = 'no answer within 2000 ms';

/** Makes a catalogue log in, with as many attempts as it takes. */
async function logIn(catalogue: BookCatalogue): Promise<void> {
  await unlessTooSlow(() => catalogue.find(99).catch((error) => error));
}

/** The outcome of a call, which is repeated if the machine was too slow for it. */
async function unlessTooSlow<Outcome>(call: () => Promise<Outcome>): Promise<Outcome> {
  for (;;) {
    const outcome = await call();
    if ((outcome as { message?: string } | undefined)?.message !== TOO_SLOW) return outcome;
  }
}

/** A front that gives one described answer to one operation; the other operations succeed. */
async function startPlayed(
  context: TestContext,
  operations: Document[],
  played: Document,
  envelope: { status: number },
) {
  const exampleOf = (operationId: string) => {
    const { responses } = operations.find((operation) => operation.operationId === operationId);
    const [example] = Object.values<{ value: { data: unknown } }>(
      responses[200].content['application/json'].examples,
    );
    return (example as { value: { data: unknown } }).value;
  };
  const { token } = exampleOf('createToken').data as { token: string };
  const state = { asked: 0, book: exampleOf('getBook').data };
  const front = await startFront(context, async (incoming, outgoing) => {
    const { method, headers } = incoming;
    const { pathname, searchParams } = new URL(`http://${headers.host}${incoming.url}`);
    const path = pathname.replace(/^\/book\/1$/, '/book/{id}');
    const operation = operations.find((candidate) => candidate.path === path && candidate.method === method);
    assertQuery(operation, searchParams);
    assertRequested(operation, headers, (await incoming.toArray()).join(''), token);
    outgoing.setHeader('x-request-id', 'played');
    outgoing.setHeader('link', '</books?>; rel="first"'); // of a page; the other calls ignore both
    outgoing.setHeader('x-total-count', TOTAL);
    outgoing.setHeader('etag', '"played"');
    const isPlayed = operation === played;
    if (isPlayed) state.asked += 1;
    const { responses, operationId } = operation;
    const { status, ...body } = isPlayed ? envelope : { status: 200, ...exampleOf(operationId) };
    if ('Retry-After' in responses[status].headers) outgoing.setHeader('retry-after', 6000);
    outgoing.writeHead(status).end(JSON.stringify({ status, ...body }));
  });
  return Object.assign(state, { url: front.url });
}

/** Fails unless the request of the client is as described. A failure shows as an answer that never arrives. */
function assertRequested(
  operation: Document,
  headers: IncomingMessage['headers'],
  body: string,
  token: string,
): void {
  const isOpen = operation.security?.length === 0;
  assert.equal(headers.authorization, isOpen ? undefined : token);
  if (!isOpen) assert.equal(headers['x-request-id'] ?? 'mine:42', 'mine:42');
  const described = (header: string) =>
    operation.parameters.find(({ name }: { name: string }) => name === header)?.schema;
  const key = described('Idempotency-Key');
  assert.equal('idempotency-key' in headers, key !== undefined);
  if (key !== undefined) assert.ok(checkOf(key)(headers['idempotency-key']));
  assert.ok(['"played"', undefined].includes(headers['if-match']));
  if ('if-match' in headers) assert.ok(described('If-Match') !== undefined);
  const schema = operation.requestBody?.content['application/json'].schema;
  if (schema === undefined) {
    assert.equal(body, '');
    return;
  }
  assert.ok(checkOf(schema)(JSON.parse(body)));
  const { properties } = schema.items ?? schema;
  for (const sent of [JSON.parse(body)].flat()) {
    assert.deepEqual(Object.keys(sent).toSorted(), Object.keys(properties).toSorted());
  }
}

/** Fails unless the query has all parameters of the description that a search may have, or none. */
function assertQuery(operation: Document, query: URLSearchParams): void {
  if (query.size === 0) return;
  const described = searchParametersOf(operation);
  for (const [name, value] of query) {
    const { schema } = described.find((parameter) => parameter.name === name) ?? assert.fail(name);
    assert.ok(checkOf(schema)(schema.type === 'integer' ? Number(value) : value), name);
  }
  assert.deepEqual([...query.keys()].toSorted(), described.map(({ name }) => name).toSorted());
}

/** A described parameter. */
interface Parameter {
  readonly name: string;
  readonly schema: { readonly type: string };
}

/** The described parameters of a search. */
function searchParametersOf(operation: Document): Parameter[] {
  return queryParametersOf(operation).filter(({ name }) => !['cursor', 'offset'].includes(name));
}

/** The described parameters of a page of a search. */
function queryParametersOf({ parameters }: Document): Parameter[] {
  return parameters.filter((parameter: { in: string }) => parameter.in === 'query');
}

function tokenUntil(time: number): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ exp: Math.floor(time / 1000) })}`;
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`;
}

function allOf(catalogue: BookCatalogue, options?: CallOptions) {
  return Array.fromAsync(catalogue.list(options));
}

function found(catalogue: BookCatalogue, search: Search, options?: CallOptions) {
  return Array.fromAsync(catalogue.find(search, options));
}

/** Resolves once all books are indexed, and counted: a search waits for neither longer than a slow machine may need. */
async function untilIndexed(catalogue: BookCatalogue): Promise<void> {
  await waitUntil(async () => {
    const { total, unindexed } = await catalogue.page({}, { count: true });
    return total !== undefined && unindexed === 0;
  });
}

/** The books of a list that arrives in these pieces. */
async function listOf(pieces: Uint8Array[]): Promise<unknown[]> {
  const deadline = new Deadline(60_000);
  const common = { status: 200, message: '', data: null, requestId: undefined, mayBeDone: false };
  try {
    return (
      await Array.fromAsync(readList({ ...common, stream: ReadableStream.from(pieces) }, deadline))
    ).flat();
  } finally {
    deadline.close();
  }
}

async function caught(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => assert.fail('it should have failed'),
    (error) => error,
  );
}

/** The properties of the error of a call, which must fail with exactly this kind of error. */
async function failure(call: Promise<unknown>, kind = CatalogueError) {
  const error = await caught(call);
  assert.ok(error instanceof kind, String(error));
  assert.equal(error.name, kind.name);
  const { message, status, mayBeDone } = error;
  return { message, status, mayBeDone };
}

/** Fails unless the service refuses the call, with these words. */
async function assertRefused(call: Promise<unknown>, status: number, message: string): Promise<void> {
  assert.deepEqual(await failure(call), { message, status, mayBeDone: false });
}

/** What the error of a call says about the book, which must have changed. */
async function changed(call: Promise<unknown>) {
  const error = await caught(call);
  assert.ok(error instanceof BookChanged && error instanceof CatalogueError, String(error));
  const { name, message, status, mayBeDone, current } = error;
  assert.deepEqual(
    { name, message, status },
    { name: 'BookChanged', message: 'Precondition failed', status: 412 },
  );
  return { current, mayBeDone };
}
