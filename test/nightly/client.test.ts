// The timeouts of the client, what it does when answers are late or slow, and its package, installed.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { BookCatalogue, type CallOptions, CatalogueError } from '../../client/src/book-catalogue.ts';
import { readList } from '../../client/src/book-list.ts';
import { Deadline } from '../../client/src/deadline.ts';
import { fill, manyBooks } from '../support/books.ts';
import { Connection } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { API, type Document } from '../support/description.ts';
import { blocksOf } from '../support/documents.ts';
import { answer, passOn, startFront } from '../support/front.ts';
import { unusedPort } from '../support/ports.ts';
import { pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  type RunningService,
  SECRET,
  SQLITE,
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

  describe('logs in', { concurrency: 2 }, () => {
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
  });

  describe('retries', { concurrency: 2 }, () => {
    test('no longer than its timeout, and then reports why there was no answer', async () => {
      const url = `http://127.0.0.1:${await unusedPort()}`;
      const catalogue = new BookCatalogue(url, { ...PAIR, timeout: 2000 });
      const { message, ...rest } = await failure(catalogue.create(BOOK));
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
      const [change, list] = await Promise.all(calls.map((call) => failure(call)));
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
      const { message } = await unlessTooSlow(() => failure(allOf(silent)));
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

  describe('a search', { concurrency: 2 }, () => {
    /** Years from 0 to 2499, each once. */
    const BOOKS = manyBooks(2500);
    let full: RunningService;

    before(async () => {
      const dbUrl = await SQLITE.freshUrl();
      await fill(dbUrl, BOOKS);
      full = await startTestService(dbUrl);
      await new BookCatalogue(full.url, PATIENT).count({}); // answered as soon as all books are indexed
    });
    after(() => full?.stop());

    test('has the whole timeout for each page, and none while its caller is busy', async (context) => {
      let isSilent = false;
      const front = await startFront(context, (incoming, outgoing) => {
        if (!isSilent) passOn(full, incoming, outgoing);
      });
      const catalogue = new BookCatalogue(front.url, HASTY);
      await logIn(catalogue);
      let count = 0;
      const read = async () => {
        count = 0;
        isSilent = false;
        for await (const _ of catalogue.find({})) {
          count += 1;
          if (count === 1000) await new Promise((resolve) => setTimeout(resolve, HASTY.timeout));
          if (count === 2000) isSilent = true;
        }
      };
      do assert.equal((await failure(read())).message, TOO_SLOW);
      while (count < 2000); // the machine was too slow for the first pages
      assert.equal(count, 2000);
    });
  });

  describe('as described and installed', { concurrency: 1 }, () => {
    let command: CommandHere;

    before(async () => {
      const { AUTH_USERNAME: _, AUTH_PASSWORD: __, ...env } = ENVIRONMENT; // with the built-in password
      command = await startHere({ ...env, LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl() });
    });
    after(() => command?.stop());

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
      const examples = blocksOf('client/README.md').map(({ text }) => text);
      assert.equal(examples.length, 6);
      const code = examples.join('').replace('http://127.0.0.1:8080', command.url);
      assert.ok(code.includes(command.url));
      writeFileSync(join(folder, 'examples.ts'), code);
      writeFileSync(
        join(folder, 'types.ts'),
        typesOf(
          API.components.schemas,
          searchParametersOf(API.paths['/books'].get),
          queryParametersOf(API.paths['/books'].get),
        ),
      );
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
      assert.match(
        said,
        /^\{\n {2}id: 1,\n {2}title: 'Don Quijote',.* year: 1604\n\}\n\[ 'Emma', 'Persuasion' \]\n1605: Don Quijote\n1\nBooks 1 to 1 of 1\n$/s,
      );
      const lines = readFileSync(join(folder, 'books.jsonl'), 'utf8').split('\n');
      assert.equal(lines.pop(), '');
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        [
          { id: 1, ...BOOK },
          { id: 2, title: 'Emma, a Novel', author: 'Jane Austen', year: 1815 },
          { id: 3, title: 'Persuasion', author: 'Jane Austen', year: 1817 },
        ],
      );
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

/**
 * TypeScript that compiles if the client's types are those of the description.
 * @param search parameters of a search.
 * @param page parameters of one of its pages.
 */
function typesOf(
  schemas: Record<string, { required?: string[]; properties: Record<string, { type: string }> }>,
  search: readonly Parameter[],
  page: readonly Parameter[],
): string {
  const typeOf = (type: string) => (type === 'integer' ? 'number' : type);
  const names = ['Book', 'NewBook', 'BookChanges', 'Search', 'PageSearch'];
  const types = names.slice(0, 3).map((name) => {
    const { required = [], properties } = schemas[name] as NonNullable<(typeof schemas)[string]>;
    const fields = Object.entries(properties).map(
      ([field, { type }]) => `readonly ${field}${required.includes(field) ? '' : '?'}: ${typeOf(type)}`,
    );
    return `{ ${fields.join('; ')} }`;
  });
  for (const parameters of [search, page]) {
    const fields = parameters.map(
      ({ name, schema }) => `readonly ${name}?: ${typeOf(schema.type)} | undefined`,
    );
    types.push(`{ ${fields.join('; ')} }`);
  }
  return `import { BookCatalogue, BookChanged, type ${names.join(', type ')} } from 'book-catalogue-client';
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    export const same: [${names.map((name, at) => `Same<${name}, ${types[at]}>`)}] = [${names.map(() => true)}];
    export async function use(catalogue: BookCatalogue, book: Book): Promise<void> {
      await catalogue.create(book, { idempotencyKey: 'mine-7' });
      const stored: readonly Book[] = await catalogue.createAll([book, {}], { idempotencyKey: 'mine-8' });
      const changed: Book = await catalogue.update(book.id, { year: 1 });
      // @ts-expect-error: there may be none
      const found: Book = await catalogue.find(changed.id);
      // @ts-expect-error: no such field
      await catalogue.create({ titel: '' });
      // @ts-expect-error: of another type
      await catalogue.update(found.id, { year: '1605' });
      // @ts-expect-error: no such option
      await catalogue.remove(1, { timeout: 1 });
      await catalogue.update(book.id, { year: 2 }, { expected: changed });
      await catalogue.remove(1, { expected: changed }).catch((error) => {
        const current: Book | undefined = error instanceof BookChanged ? error.current : undefined;
        return current;
      });
      // @ts-expect-error: only what stores books has a key
      await catalogue.update(1, {}, { idempotencyKey: 'mine-7' });
      for await (const { id } of catalogue.find({ year: 1605, limit: 10 })) await catalogue.remove(id);
      // @ts-expect-error: no such parameter
      catalogue.find({ yaer: 1605 });
      // @ts-expect-error: a search finds any number of books
      const one: Book | undefined = await catalogue.find({ title: book.title });
      const count: number = await catalogue.count({ author: book.author });
      const { books, next, unindexed } = await catalogue.page({ year: count, offset: 20 }, { count: true });
      const more: readonly Book[] = next ? (await catalogue.page(next)).books : books;
      // @ts-expect-error: an offset is that of a page
      catalogue.find({ offset: more.length + unindexed });
      const pair = { username: 'admin', password: 'password' };
      new BookCatalogue('http://127.0.0.1', { ...pair, fetch });
      new BookCatalogue('http://127.0.0.1', {
        ...pair,
        fetch: (url, init) => fetch(url, { ...init, keepalive: true }),
      });
    }`;
}

function tokenUntil(time: number): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ exp: Math.floor(time / 1000) })}`;
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`;
}

function allOf(catalogue: BookCatalogue, options?: CallOptions) {
  return Array.fromAsync(catalogue.list(options));
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
