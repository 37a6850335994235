// The client, against the real service: on both stores, through fronts that lose answers, with tokens that expire, and
// installed as a package. Its view of the service is compared with the description of the API.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { BookCatalogue, CatalogueError, WrongCredentials } from '../../client/src/book-catalogue.ts';
import { readList } from '../../client/src/book-list.ts';
import { Deadline } from '../../client/src/deadline.ts';
import { Connection } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { answer, passOn, startFront } from '../support/front.ts';
import { operationsOf } from '../support/operations.ts';
import { unusedPort } from '../support/ports.ts';
import { TcpProxy } from '../support/proxy.ts';
import { pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  POSTGRES,
  type RunningService,
  SECRET,
  SQLITE,
  STORES,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const PAIR = { username: 'librarian', password: 'correct horse' };

/** With more time than any machine needs, for calls that must not run out of it. */
const PATIENT = { ...PAIR, timeout: 600_000 };

const BOOK = { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 };

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
      assert.deepEqual(await failure(catalogue.update(1, { year: 1 }), CatalogueError), {
        message: 'Book not found',
        status: 404,
        mayBeDone: false,
      });
      const { message } = await failure(catalogue.create({ title: '\0' }), CatalogueError);
      assert.equal(message, 'Invalid input');
    });
  }

  test('refuses a wrong URL, timeout or request id before anything is sent', async () => {
    const make = (url: string, options: object = {}) => new BookCatalogue(url, { ...PATIENT, ...options });
    assert.throws(() => make('127.0.0.1:8080'), TypeError);
    assert.throws(() => make('ftp://127.0.0.1'), TypeError);
    assert.throws(() => make('http://a:b@127.0.0.1'), TypeError);
    for (const timeout of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.throws(() => make('http://127.0.0.1', { timeout }), RangeError);
    }
    await assert.rejects(make(service.url).find(1, { requestId: 'a\nb' }), TypeError);
  });

  test('distinguishes a wrong URL from a missing book', async (context) => {
    const wrong = await failure(new BookCatalogue(`${service.url}/books`, PATIENT).find(1), CatalogueError);
    assert.deepEqual(wrong, { message: 'Not found', status: 404, mayBeDone: false });
    const front = await startFront(context, (incoming, outgoing) => {
      if (incoming.url === '/library/token' || incoming.url === '/library/book/7') {
        incoming.url = incoming.url.replace('/library', '');
        passOn(service, incoming, outgoing);
      } else outgoing.end('<html>');
    });
    const catalogue = new BookCatalogue(`${front.url}/library`, PATIENT);
    assert.equal(await catalogue.find(7), undefined);
    const page = await failure(catalogue.find(8), CatalogueError);
    assert.deepEqual(page, {
      message: '200 OK: not the answer of a book catalogue',
      status: 200,
      mayBeDone: false,
    });
    const list = await failure(allOf(catalogue), CatalogueError);
    assert.equal(list.message, 'list truncated after 0 books');
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
        SECRET_TOKEN: 'another secret that is long enough, too',
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

    test('again before the token expires, however wrong the clock of this machine is', async (context) => {
      for (const [hours, seconds] of [
        [-24, 900],
        [+24, 3],
      ] as const) {
        const start = Math.ceil(Date.now() / 1000 + hours * 3600) * 1000;
        const began = performance.now();
        const now = () => start + performance.now() - began; // milliseconds, of a machine with another clock
        let late = 0;
        const front = await startFront(context, (incoming, outgoing) => {
          outgoing.setHeader('date', new Date(now()).toUTCString());
          if (incoming.url === '/token')
            return answer(outgoing, 200, { token: tokenUntil(now() + seconds * 1000) });
          const [, payload = ''] = incoming.headers.authorization?.split('.') ?? [];
          const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString());
          if (Number(incoming.headers['x-request-id']) >= exp * 1000) late += 1;
          return answer(outgoing, 404, null, 'Book not found');
        });
        const catalogue = new BookCatalogue(front.url, PATIENT);
        // A call chooses its token when it begins, however long the request then takes.
        const find = () => catalogue.find(1, { requestId: String(Math.floor(now())) });
        const logins = () => front.seen.filter((line) => line === 'POST /token').length;
        for (let count = 0; count < 10; count += 1) await find();
        if (hours < 0) assert.equal(logins(), 1);
        else await waitUntil(async () => (await find()) === undefined && logins() > 1);
        assert.equal(late, 0);
      }
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

    test('rule 29: later, if others have failed too often', async (context) => {
      const own = await startTestService(await SQLITE.freshUrl());
      const guesses: Connection[] = [];
      context.after(() => {
        for (const { socket } of guesses) socket.destroy(); // some of them still wait
        return own.stop();
      });
      const body = '{"username":"x","password":"y"}';
      const guess = `POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      const front = await startFront(context, async (...exchange) => {
        if (front.seen.length === 1) {
          await waitUntil(async () => {
            const more = Array.from({ length: 6 }, () => new Connection(own));
            guesses.push(...more);
            for (const connection of more) await connection.send(guess);
            return guesses.some(({ received }) => received.startsWith('HTTP/1.1 429 '));
          });
        }
        passOn(own, ...exchange);
      });
      assert.equal(await new BookCatalogue(front.url, PATIENT).find(1), undefined);
      assert.deepEqual(front.seen.slice(0, 2), ['POST /token', 'POST /token']);
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
      test('rule 23: while the store is unavailable, but never a creation', async (context) => {
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
          catalogue.remove(2),
        ];
        assert.deepEqual(await failure(catalogue.create(BOOK), CatalogueError), {
          message: 'Service unavailable',
          status: 503,
          mayBeDone: true,
        });
        const asked = () => front.seen.slice(from);
        await waitUntil(() => asked().filter((line) => line === 'PUT /book/1').length === 2);
        proxy.target = database;
        const [found, changed, list, removed] = await Promise.all(calls);
        assert.equal((found as typeof BOOK).title, 'Don Quijote');
        assert.deepEqual(changed, { id: 1, ...BOOK, year: 1615 });
        assert.equal((list as unknown[]).length, 1);
        assert.equal(removed, undefined); // 503, then 404: the outcome is unknown
        assert.equal(asked().filter((line) => line === 'POST /book').length, 1);
      });
    }

    test('when an answer is lost, but never a creation', async (context) => {
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

      const title = 'once';
      const { message, ...rest } = await failure(
        losing(1, () => catalogue.create({ title })),
        CatalogueError,
      );
      assert.match(message, /^no answer from http:\/\/127\.0\.0\.1:\d+: other side closed$/);
      assert.deepEqual(rest, { status: undefined, mayBeDone: true });
      assert.equal((await allOf(catalogue)).filter((book) => book.title === title).length, 1);
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

    test('no longer than its timeout, and then reports why there was no answer', async () => {
      const url = `http://127.0.0.1:${await unusedPort()}`;
      const catalogue = new BookCatalogue(url, { ...PAIR, timeout: 2000 });
      const { message, ...rest } = await failure(catalogue.create(BOOK), CatalogueError);
      // The second one if not a single attempt ended in that time.
      assert.match(message, /ECONNREFUSED|^no answer within 2000 ms$/);
      assert.deepEqual(rest, { status: undefined, mayBeDone: false }); // it has not even logged in
    });
  });

  describe('gives up', { concurrency: 2 }, () => {
    /** A front that answers only logins and requests for book 99; `gone` resolves when another one is aborted. */
    async function startSilent(context: TestContext) {
      const gone = Promise.withResolvers<void>();
      const front = await startFront(context, (incoming, outgoing) => {
        if (incoming.url === '/token' || incoming.url === '/book/99')
          return passOn(service, incoming, outgoing);
        outgoing.once('close', gone.resolve);
      });
      return { front, gone: gone.promise };
    }

    test('after its timeout', async (context) => {
      const { front, gone } = await startSilent(context);
      const catalogue = new BookCatalogue(front.url, HASTY);
      await logIn(catalogue);
      const calls = [catalogue.update(1, {}), allOf(catalogue)];
      const [change, list] = await Promise.all(calls.map((call) => failure(call, CatalogueError)));
      const message = TOO_SLOW;
      assert.deepEqual(change, { message, status: undefined, mayBeDone: true });
      assert.deepEqual(list, { message, status: undefined, mayBeDone: false });
      await gone;
    });

    test('when its caller aborts: before it begins, while it waits, and between two attempts', async (context) => {
      const { front, gone } = await startSilent(context);
      const catalogue = new BookCatalogue(front.url, PATIENT);
      const signal = AbortSignal.abort(new Error('never'));
      await assert.rejects(catalogue.create(BOOK, { signal }), /^Error: never$/);
      await assert.rejects(allOf(catalogue, { signal }), /^Error: never$/);
      assert.deepEqual(front.seen, []);

      const waiting = new AbortController();
      const call = catalogue.create(BOOK, { signal: waiting.signal });
      await waitUntil(() => front.seen.includes('POST /book'));
      waiting.abort(new Error('enough'));
      await assert.rejects(call, /^Error: enough$/);
      await gone;

      const away = await startFront(context, (_incoming, outgoing) => {
        outgoing.setHeader('retry-after', 5);
        answer(outgoing, 503, null, 'Service unavailable');
        outgoing.once('close', () => setImmediate(() => pausing.abort(new Error('enough'))));
      });
      const pausing = new AbortController();
      const paused = new BookCatalogue(away.url, PATIENT).find(1, { signal: pausing.signal });
      await assert.rejects(paused, /^Error: enough$/);

      const loginEnded = Promise.withResolvers<void>();
      const silent = await startFront(context, (incoming) => {
        incoming.socket.once('close', () => loginEnded.resolve());
      });
      const leaving = new AbortController();
      const left = new BookCatalogue(silent.url, PATIENT).find(1, { signal: leaving.signal });
      await waitUntil(() => silent.seen.includes('POST /token'));
      leaving.abort(new Error('enough'));
      await assert.rejects(left, /^Error: enough$/);
      await loginEnded.promise; // a login that no call waits for ends as well

      const { signal: lasting } = new AbortController();
      await new BookCatalogue(service.url, PATIENT).find(1, { signal: lasting });
      await allOf(new BookCatalogue(service.url, PATIENT), { signal: lasting });
      assert.deepEqual(getEventListeners(lasting, 'abort'), []);
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
      const { message, ...rest } = await failure(read(), CatalogueError);
      assert.equal(message, 'list truncated after 2 books');
      assert.equal(count, 2);
      assert.deepEqual(rest, { status: undefined, mayBeDone: false });
    });

    test('is read as fast as it is used, and no longer', async (context) => {
      let sent = 0;
      const gone = Promise.withResolvers<void>();
      const book = `{"id":1,"title":"${'x'.repeat(1000)}","author":"","year":0},`;
      const front = await startFront(context, (incoming, outgoing) => {
        if (incoming.url === '/token') return passOn(service, incoming, outgoing);
        outgoing.once('close', gone.resolve);
        outgoing.write('{"status":200,"message":"","data":[');
        const more = () => {
          while (outgoing.write(book)) sent += 1;
        };
        outgoing.on('drain', more); // endless
        more();
      });
      let used = 0;
      for await (const { id } of new BookCatalogue(front.url, PATIENT).list()) {
        used += id;
        if (used === 1) {
          // Until all buffers are full and nothing more is sent.
          for (let before = -1; sent !== before; ) {
            before = sent;
            await new Promise((resolve) => setTimeout(resolve, 200));
          }
          context.diagnostic(`${sent} KB were sent ahead of one book`);
          assert.ok(sent < 20_000);
        }
        if (used === 20_000) break;
      }
      await gone.promise;
      assert.ok(sent < 20_000 + 20_000);
    });

    test('has no timeout while its caller is busy with a part of it', async () => {
      const deadline = new Watched(600_000);
      const books = (id: number) => Buffer.from(`${id > 1 ? ',' : ''}{"id":${id}}`);
      const pieces = [
        Buffer.from('{"status":200,"message":"","data":['),
        books(1),
        books(2),
        Buffer.from(']}'),
      ];
      const common = { status: 200, message: '', data: null, requestId: undefined, mayBeDone: false };
      let count = 0;
      for await (const part of readList({ ...common, stream: ReadableStream.from(pieces) }, deadline)) {
        count += part.length;
        assert.equal(deadline.runs, false);
      }
      assert.equal(count, 2);
      assert.ok(deadline.starts > 1, 'the next part does not have all of the time again');
      deadline.close();
    });

    test('that falls silent throws, and so does one that its caller aborts', async (context) => {
      const front = await startFront(context, (incoming, outgoing) => {
        if (incoming.url === '/token' || incoming.url === '/book/99')
          return passOn(service, incoming, outgoing);
        outgoing.write('{"status":200,"message":"","data":[{"id":1},{');
      });
      const silent = new BookCatalogue(front.url, HASTY);
      await logIn(silent);
      const { message } = await unlessTooSlow(() => failure(allOf(silent), CatalogueError));
      assert.equal(message, 'list truncated after 1 books');

      const giveUp = new AbortController();
      const read = async () => {
        for await (const _ of new BookCatalogue(front.url, PATIENT).list({ signal: giveUp.signal })) {
          setImmediate(() => giveUp.abort(new Error('enough')));
        }
      };
      await assert.rejects(read(), /^Error: enough$/);
    });
  });

  describe('as described and installed', { concurrency: 1 }, () => {
    let command: CommandHere;
    // biome-ignore lint/suspicious/noExplicitAny: the description, which the test takes to pieces
    let api: any;

    before(async () => {
      const { AUTH_USERNAME: _, AUTH_PASSWORD: __, ...env } = ENVIRONMENT; // with the built-in password
      command = await startHere({ ...env, LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl() });
      const description = await (await fetch(`${operationsOf(command).url}/openapi.json`)).json();
      api = resolved(description, description);
    });
    after(() => command?.stop());

    /** Each operation as the client calls it, and its result for `Book not found`, if that is not an error. */
    const CALLS: Record<string, { call(catalogue: BookCatalogue): Promise<unknown>; absent?: unknown }> = {
      createToken: { call: (catalogue) => catalogue.find(1) },
      createBook: { call: (catalogue) => catalogue.create(BOOK, { requestId: 'mine:42' }) },
      listBooks: { call: (catalogue) => allOf(catalogue, { requestId: 'mine:42' }) },
      getBook: { call: (catalogue) => catalogue.find(1, { requestId: 'mine:42' }), absent: undefined },
      updateBook: { call: (catalogue) => catalogue.update(1, BOOK, { requestId: 'mine:42' }) },
      deleteBook: { call: (catalogue) => catalogue.remove(1, { requestId: 'mine:42' }), absent: false },
    };
    const NOT_OFFERED = ['checkBooks', 'checkBook']; // `find` and `list` return as much
    const METHODS = ['create', 'find', 'list', 'remove', 'update'];

    test('has a counterpart for every operation and answer of the description, and no other', async (context) => {
      const operations = Object.entries<typeof api>(api.paths).flatMap(([path, methods]) =>
        Object.entries<typeof api>(methods)
          .filter(([method]) => method !== 'parameters')
          .map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
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
        const { call, ...absence } = CALLS[operationId] ?? {};
        if (call === undefined) continue;
        for (const [code, { content }] of Object.entries<typeof api>(responses)) {
          for (const { value: envelope } of Object.values<typeof api>(content['application/json'].examples)) {
            const { status, message, data } = envelope;
            assert.equal(String(status), code);
            said.add(message);
            const front = await startPlayed(context, operations, operation, envelope);
            const catalogue = new BookCatalogue(front.url, PATIENT); // its timeout is shorter than Retry-After
            const outcome: unknown = await call(catalogue).catch((error) => error);
            const name = `${operationId} ${status} ${message}`;
            if (status < 300) {
              const expected =
                operationId === 'deleteBook' ? true : operationId === 'createToken' ? front.book : data;
              assert.deepEqual(outcome, expected, name);
            } else if (message === 'Book not found' && 'absent' in absence) {
              assert.deepEqual(outcome, absence.absent, name);
            } else {
              assert.ok(outcome instanceof CatalogueError, name);
              const { requestId } = outcome;
              assert.deepEqual(
                { message: outcome.message, status: outcome.status, requestId },
                { message, status, requestId: 'played' },
              );
              assert.equal(outcome instanceof WrongCredentials, message === 'Invalid credentials', name);
              const isChange = ['createBook', 'updateBook', 'deleteBook'].includes(operationId);
              assert.equal(outcome.mayBeDone, isChange && status >= 500, name);
            }
            const times = message === 'Invalid token' ? 2 : 1;
            // After a 421, fetch itself retries the request.
            if (status !== 421) assert.equal(front.asked, times, name);
          }
        }
      }
      // The messages by which the client decides.
      for (const message of ['Invalid credentials', 'Invalid token', 'Book not found'])
        assert.ok(said.has(message));
    });

    test('installs, runs as JavaScript, and has the types of the description; its examples work', async () => {
      const folder = temporaryFolder();
      const run = async (file: string, args: string[], cwd = folder) =>
        (await promisify(execFile)(file, args, { cwd })).stdout;
      const repository = pathTo('');
      writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
      const options = ['--silent', '--no-audit', '--no-fund', '--offline'];
      await run('npm', ['pack', join(repository, 'client'), '--silent', '--pack-destination', folder]);
      const { version } = JSON.parse(readFileSync(join(repository, 'client/package.json'), 'utf8'));
      await run('npm', ['install', ...options, join(folder, `book-catalogue-client-${version}.tgz`)]);

      mkdirSync(join(folder, 'node_modules/@types'));
      for (const name of ['@types/node', 'undici-types']) {
        symlinkSync(join(repository, 'node_modules', name), join(folder, 'node_modules', name));
      }
      const readme = readFileSync(join(repository, 'client/README.md'), 'utf8');
      const examples = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code);
      assert.equal(examples.length, 3);
      const code = examples.join('').replace('http://127.0.0.1:8080', command.url);
      assert.ok(code.includes(command.url));
      writeFileSync(join(folder, 'examples.ts'), code);
      writeFileSync(join(folder, 'types.ts'), typesOf(api.components.schemas));
      const compilerOptions = {
        ...{ strict: true, exactOptionalPropertyTypes: true, noEmit: true },
        ...{ target: 'es2022', module: 'nodenext', lib: ['es2022'], types: ['node'] },
      };
      const files = ['examples.ts', 'types.ts'];
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
      const plain = `import { BookCatalogue } from 'book-catalogue-client';
        const pair = { username: 'admin', password: 'password' };
        const catalogue = new BookCatalogue('${command.url}', { ...pair, timeout: 600_000 }); // exits even so
        console.log(JSON.stringify(await catalogue.update(1, { title: 'changed' })));`;
      writeFileSync(join(folder, 'plain.js'), plain);
      const [said] = await Promise.all([
        run(process.execPath, ['examples.ts']),
        run(process.execPath, [join(repository, 'node_modules/typescript/bin/tsc')]),
      ]);
      assert.match(said, /^\{\n {2}id: 1,\n {2}title: 'Don Quijote',.* year: 1604\n\}\n$/s);
      const [line, end] = readFileSync(join(folder, 'books.jsonl'), 'utf8').split('\n');
      assert.deepEqual(JSON.parse(line as string), { id: 1, ...BOOK });
      assert.equal(end, '');
      assert.deepEqual(JSON.parse(await run(process.execPath, ['plain.js'])), {
        id: 1,
        ...BOOK,
        title: 'changed',
      });
    });
  });
});

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

/** A deadline that shows whether its timer runs. */
class Watched extends Deadline {
  runs = false;
  starts = 0;

  override start(): void {
    super.start();
    this.runs = true;
    this.starts += 1;
  }

  override stop(): void {
    super.stop();
    this.runs = false;
  }
}

/** A front that gives one described answer to one operation; the other operations succeed. */
async function startPlayed(
  context: TestContext,
  // biome-ignore lint/suspicious/noExplicitAny: parts of the description
  operations: any[],
  // biome-ignore lint/suspicious/noExplicitAny: parts of the description
  played: any,
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
    const path = incoming.url?.replace(/^\/book\/1$/, '/book/{id}');
    const operation = operations.find((candidate) => candidate.path === path && candidate.method === method);
    assertRequested(operation, headers, (await incoming.toArray()).join(''), token);
    outgoing.setHeader('x-request-id', 'played');
    const isPlayed = operation === played;
    if (isPlayed) state.asked += 1;
    const { responses, operationId } = operation;
    const { status, ...body } = isPlayed ? envelope : { status: 200, ...exampleOf(operationId) };
    if ('Retry-After' in responses[status].headers) outgoing.setHeader('retry-after', 6000);
    outgoing.writeHead(status).end(JSON.stringify({ status, ...body }));
  });
  return Object.assign(state, { url: front.url });
}

const ajv = new Ajv2020({ formats: { 'well-formed-text': true } });

/** Fails unless the request of the client is as described. A failure shows as an answer that never arrives. */
function assertRequested(
  // biome-ignore lint/suspicious/noExplicitAny: a part of the description
  operation: any,
  headers: IncomingMessage['headers'],
  body: string,
  token: string,
): void {
  const isOpen = operation.security?.length === 0;
  assert.equal(headers.authorization, isOpen ? undefined : token);
  if (!isOpen) assert.equal(headers['x-request-id'] ?? 'mine:42', 'mine:42');
  const schema = operation.requestBody?.content['application/json'].schema;
  if (schema === undefined) {
    assert.equal(body, '');
    return;
  }
  assert.ok(ajv.validate(schema, JSON.parse(body)));
  assert.deepEqual(Object.keys(JSON.parse(body)).toSorted(), Object.keys(schema.properties).toSorted());
}

/** TypeScript that compiles if the client's types are those of the description. */
function typesOf(
  schemas: Record<string, { required?: string[]; properties: Record<string, { type: string }> }>,
): string {
  const names = ['Book', 'NewBook', 'BookChanges'];
  const types = names.map((name) => {
    const { required = [], properties } = schemas[name] as NonNullable<(typeof schemas)[string]>;
    const fields = Object.entries(properties).map(
      ([field, { type }]) =>
        `readonly ${field}${required.includes(field) ? '' : '?'}: ${type === 'integer' ? 'number' : type}`,
    );
    return `{ ${fields.join('; ')} }`;
  });
  return `import { BookCatalogue, type ${names.join(', type ')} } from 'book-catalogue-client';
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    export const same: [${names.map((name, at) => `Same<${name}, ${types[at]}>`)}] = [true, true, true];
    export async function use(catalogue: BookCatalogue, book: Book): Promise<void> {
      await catalogue.create(book);
      const changed: Book = await catalogue.update(book.id, { year: 1 });
      // @ts-expect-error: there may be none
      const found: Book = await catalogue.find(changed.id);
      // @ts-expect-error: no such field
      await catalogue.create({ titel: '' });
      // @ts-expect-error: of another type
      await catalogue.update(found.id, { year: '1605' });
      // @ts-expect-error: no such option
      await catalogue.remove(1, { timeout: 1 });
    }`;
}

/** Replaces every reference by its target. */
// biome-ignore lint/suspicious/noExplicitAny: the description
function resolved(value: any, document: any): any {
  if (Array.isArray(value)) return value.map((item) => resolved(item, document));
  if (typeof value !== 'object' || value === null) return value;
  if ('$ref' in value) {
    const keys = String(value.$ref).split('/').slice(1);
    return resolved(
      keys.reduce((node, key) => node[key], document),
      document,
    );
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item, document)]));
}

function tokenUntil(time: number): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ exp: Math.floor(time / 1000) })}`;
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`;
}

function allOf(catalogue: BookCatalogue, options?: Parameters<BookCatalogue['list']>[0]) {
  return Array.fromAsync(catalogue.list(options));
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
async function failure(call: Promise<unknown>, kind: typeof CatalogueError) {
  const error = await caught(call);
  assert.ok(error instanceof kind, String(error));
  assert.equal(error.name, kind.name);
  const { message, status, mayBeDone } = error;
  return { message, status, mayBeDone };
}
