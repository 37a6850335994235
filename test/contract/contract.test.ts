// The contract, over a socket, with the same suite on every store: a few typical cases of each rule, so that this file
// can be read as the specification. parsing.test.ts has all other cases. Messages and numbers are spelled out here
// again, never taken from the code. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Client, type RequestOptions, request, requestAll, requestBytes } from '../support/client.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';

const NOT_FOUND = { status: 404, message: 'Book not found', data: null };
const INVALID = { status: 400, message: 'Invalid input', data: null };

for (const store of STORES) {
  describe(`contract on ${store.name}`, () => {
    let service: RunningService;
    let client: Client;

    before(async () => {
      service = await startTestService(await store.freshUrl());
      client = service.client;
    });
    after(() => service.stop());

    /** Status, message and data of one answer. */
    async function ask(method: string, path: string, options?: RequestOptions) {
      const { status, message, data } = await client.request(method, path, options);
      return { status, message, data };
    }

    const logIn = async (body: unknown) => {
      const { status, message, data } = await request(service, 'POST', '/token', { body });
      return { status, message, data };
    };

    describe('POST /token', () => {
      test('T3, T4: the right password gets a token whose only claim is exp, 15 minutes ahead', async () => {
        const earliest = Math.floor(Date.now() / 1000) + 900;
        const { status, message, data } = await logIn({ username: 'librarian', password: 'correct horse' });
        const latest = Math.floor(Date.now() / 1000) + 900;
        assert.equal(status, 200);
        assert.equal(message, 'Token generated successfully');
        assert.deepEqual(Object.keys(data), ['token']);
        const [header, payload] = data.token.split('.');
        assert.equal(JSON.parse(Buffer.from(header, 'base64url').toString()).alg, 'HS256');
        const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
        assert.deepEqual(Object.keys(claims), ['exp']);
        assert.ok(claims.exp >= earliest && claims.exp <= latest, `exp ${claims.exp}`);
      });

      test('T1, rule 15: a body that is not a login request is 400', async () => {
        const unreadable = [
          undefined,
          '[]',
          '{"username":"librarian","password":"correct horse"} x',
          '{"username":"librarian","password":null}',
          '{"username":1,"password":"correct horse"}',
        ];
        for (const body of unreadable) {
          assert.deepEqual(
            await logIn(body),
            { status: 400, message: 'Invalid request payload', data: null },
            String(body),
          );
        }
      });

      test('T2, rule 15: any other username or password is 401, and so is a missing field', async () => {
        const others = [
          {},
          { username: 'librarian' },
          { password: 'correct horse' },
          { username: 'librarian', password: '' },
          { username: 'librarian', password: 'correct horse ' },
          { username: 'Librarian', password: 'correct horse' },
          { username: 'correct horse', password: 'librarian' },
          { username: 'admin', password: 'password' },
          '{"username":"librarian\\ud800","password":"correct horse"}',
        ];
        for (const body of others) {
          assert.deepEqual(
            await logIn(body),
            { status: 401, message: 'Invalid credentials', data: null },
            JSON.stringify(body),
          );
        }
      });

      test('T3, rule 5: unknown fields are ignored and the last duplicate wins', async () => {
        const body = '{"password":"x","username":"librarian","password":"correct horse","__proto__":1}';
        assert.equal((await logIn(body)).status, 200);
      });
    });

    describe('POST /book', () => {
      test('C2: stores a book and returns it with its id and its Location', async () => {
        const body = { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 };
        const answer = await client.request('POST', '/book', { body });
        const { id } = answer.data;
        assert.equal(answer.status, 201);
        assert.equal(answer.message, 'Book created successfully');
        assert.deepEqual(answer.data, { id, ...body });
        assert.deepEqual(Object.keys(answer.data), ['id', 'title', 'author', 'year']);
        assert.ok(Number.isSafeInteger(id) && id > 0);
        assert.equal(answer.headers.get('location'), `/book/${id}`);
        assert.deepEqual((await ask('GET', `/book/${id}`)).data, { id, ...body });
      });

      test('rule 1: absent fields are empty', async () => {
        const { id, ...fields } = await client.create({});
        assert.deepEqual(fields, { title: '', author: '', year: 0 });
        assert.deepEqual((await ask('GET', `/book/${id}`)).data, { id, title: '', author: '', year: 0 });
      });

      test('C1, rules 2, 3, 4 and 6: a body that cannot be read as book fields is 400, and nothing is stored', async () => {
        const stored = (await client.list()).length;
        for (const body of UNREADABLE_BOOKS) {
          assert.deepEqual(await ask('POST', '/book', { body }), INVALID, String(body).slice(0, 80));
        }
        assert.equal((await client.list()).length, stored);
      });

      test('rule 3: every mathematical integer within 2^53-1 is kept exactly', async () => {
        const years: [string, number][] = [
          ['2020.0', 2020],
          ['1e3', 1000],
          ['-720', -720],
          ['9007199254740991', 9007199254740991],
          ['-9007199254740991', -9007199254740991],
        ];
        for (const [text, year] of years) {
          const { id } = await client.create(`{"year":${text}}`);
          assert.equal((await ask('GET', `/book/${id}`)).data.year, year, text);
        }
      });

      test('rule 3: -0 is 0', async () => {
        const { id, year } = await client.create('{"year":-0}');
        assert.ok(Object.is(year, 0));
        assert.ok(Object.is((await ask('GET', `/book/${id}`)).data.year, 0));
      });

      test('rule 4: text comes back code point for code point', async () => {
        for (const text of TEXTS) {
          const book = await client.create({ title: text, author: text });
          assert.equal(book.title, text);
          const read = (await ask('GET', `/book/${book.id}`)).data;
          assert.deepEqual(read, { id: book.id, title: text, author: text, year: 0 });
        }
        const listed = await client.list();
        const last = listed.slice(-TEXTS.length).map(({ title }) => title);
        assert.deepEqual(last, TEXTS);
      });

      test('rule 5: id, unknown keys and __proto__ are ignored, keys are case-sensitive, the last duplicate counts', async () => {
        const body = `{"id":"x","ID":7,"Title":"no","title":1,"title":"yes","__proto__":{"author":"no"},
          "constructor":{"prototype":{"polluted":true}},"year":7,"extra":[{}]}`;
        const { id, ...fields } = await client.create(body);
        assert.deepEqual(fields, { title: 'yes', author: '', year: 7 });
        assert.equal(({} as { polluted?: boolean }).polluted, undefined);
        const other = await client.create({ id });
        assert.notEqual(other.id, id);
      });

      test('rule 7: Content-Type is ignored', async () => {
        for (const type of ['application/json', 'text/plain', 'nonsense', ';']) {
          const headers = { 'content-type': type };
          const answer = await ask('POST', '/book', { body: '{"title":"typed"}', headers });
          assert.equal(answer.status, 201, type);
        }
        const bytes = await ask('POST', '/book', { body: Buffer.from('{"title":"untyped"}') });
        assert.equal(bytes.data.title, 'untyped');
      });
    });

    describe('GET /book/<id>', () => {
      test('G1: returns the book', async () => {
        const book = await client.create({ title: 'Ἰλιάς', author: 'Ὅμηρος', year: -750 });
        assert.deepEqual(await ask('GET', `/book/${book.id}`), {
          status: 200,
          message: 'Book retrieved successfully',
          data: book,
        });
        assert.equal((await ask('GET', `/book/${book.id}?year=1#x`)).status, 200);
      });

      test('rule 7: a body and its type are ignored when books are read', async () => {
        const book = await client.create({ title: 'read with a body' });
        const sent = { headers: { 'content-type': 'application/json' }, body: '{' };
        for (const path of [`/book/${book.id}`, '/books']) {
          for (const method of ['GET', 'HEAD']) {
            assert.equal((await ask(method, path, sent)).status, 200, `${method} ${path}`);
          }
        }
        assert.deepEqual((await ask('GET', `/book/${book.id}`, sent)).data, book);
        assert.deepEqual(await ask('GET', '/book/9007199254740991', sent), NOT_FOUND);
      });

      test('rules 7 and 22: an ignored body is not read as a request, and may have any size', async () => {
        const { id } = await client.create({});
        const removal = requestBytes('DELETE', `/book/${id}`, { token: client.token }).toString();
        const large = ' '.repeat(2 * 1024 * 1024);
        const answers = await requestAll(service, [
          ['GET', `/book/${id}`, { token: client.token, body: removal }],
          ['GET', `/book/${id}`, { token: client.token, body: large }],
          ['GET', `/book/${id}`, { token: client.token }],
        ]);
        assert.deepEqual(
          answers.map(({ status }) => status),
          [200, 200, 200],
        );
      });

      test('G2: a book that does not exist is 404', async () => {
        assert.deepEqual(await ask('GET', '/book/9007199254740991'), NOT_FOUND);
      });

      test('rule 10: an id that is not canonical decimal names no book, for every method', async () => {
        const { id } = await client.create({ title: 'untouched' });
        const ids = [...ODD_IDS, `0${id}`, `+${id}`, `${id}.0`, `%3${String(id)[0]}${String(id).slice(1)}`];
        for (const odd of ids) {
          for (const method of ['GET', 'PUT', 'DELETE']) {
            const body = method === 'PUT' ? { body: { title: 'touched' } } : {};
            assert.deepEqual(await ask(method, `/book/${odd}`, body), NOT_FOUND, `${method} ${odd}`);
          }
        }
        assert.equal((await ask('GET', `/book/${id}`)).data.title, 'untouched');
      });
    });

    describe('PUT /book/<id>', () => {
      test('U3: fields that are present are applied, absent ones keep their values', async () => {
        const { id } = await client.create({ title: 'a', author: 'b', year: 1 });
        const steps: [object, object][] = [
          [{ title: 'A' }, { title: 'A', author: 'b', year: 1 }],
          [{ author: '' }, { title: 'A', author: '', year: 1 }],
          [{ year: 0 }, { title: 'A', author: '', year: 0 }],
          [
            { year: -5, author: 'B', title: '' },
            { title: '', author: 'B', year: -5 },
          ],
        ];
        for (const [body, fields] of steps) {
          const expected = { status: 200, message: 'Book updated successfully', data: { id, ...fields } };
          assert.deepEqual(await ask('PUT', `/book/${id}`, { body }), expected);
          assert.deepEqual((await ask('GET', `/book/${id}`)).data, { id, ...fields });
        }
      });

      test('rules 5 and 8: {}, unknown keys and id change nothing', async () => {
        const book = await client.create({ title: 'same', author: 'same', year: 3 });
        for (const body of ['{}', '{"id":1,"Title":"x","__proto__":{"title":"x"}}', '{"id":null}']) {
          const answer = await ask('PUT', `/book/${book.id}`, { body });
          assert.deepEqual(answer, { status: 200, message: 'Book updated successfully', data: book });
        }
      });

      test('U1, rule 9: a missing book is 404, whatever the body', async () => {
        for (const body of ['{"title":"x"}', '{', '', '{"year":"1999"}', undefined]) {
          assert.deepEqual(await ask('PUT', '/book/9007199254740991', { body }), NOT_FOUND);
        }
      });

      test('U2, rules 2, 3, 4 and 6: a body that cannot be read as book fields is 400, and the book is unchanged', async () => {
        const book = await client.create({ title: 'kept', author: 'kept', year: 4 });
        for (const body of UNREADABLE_BOOKS) {
          assert.deepEqual(
            await ask('PUT', `/book/${book.id}`, { body }),
            INVALID,
            String(body).slice(0, 80),
          );
        }
        assert.deepEqual((await ask('GET', `/book/${book.id}`)).data, book);
      });

      test('rules 3 and 4: numbers and text are kept exactly', async () => {
        const { id } = await client.create({});
        const body = '{"title":"e\\u0301 \\ud83d\\udcda","year":-9.007199254740991e15}';
        const { data } = await ask('PUT', `/book/${id}`, { body });
        assert.deepEqual(data, { id, title: 'e\u0301 📚', author: '', year: -9007199254740991 });
      });
    });

    describe('DELETE /book/<id>', () => {
      test('D1: removes the book, and a later GET is 404', async () => {
        const { id } = await client.create({ title: 'gone' });
        const deleted = { status: 200, message: 'Book deleted successfully', data: null };
        assert.deepEqual(await ask('DELETE', `/book/${id}`), deleted);
        assert.deepEqual(await ask('GET', `/book/${id}`), NOT_FOUND);
        assert.deepEqual(await ask('PUT', `/book/${id}`, { body: '{}' }), NOT_FOUND);
      });

      test('D2, rule 11: a book that never existed or no longer exists is 404', async () => {
        const { id } = await client.create({});
        await ask('DELETE', `/book/${id}`);
        assert.deepEqual(await ask('DELETE', `/book/${id}`), NOT_FOUND);
        assert.deepEqual(await ask('DELETE', '/book/9007199254740991'), NOT_FOUND);
      });

      test('rule 7: a body and its type are ignored when a book is removed', async () => {
        const headers = { 'content-type': 'application/json' };
        for (const body of [undefined, '', '{']) {
          const { id } = await client.create({});
          assert.equal((await ask('DELETE', `/book/${id}`, { headers, body })).status, 200);
        }
      });

      test('rule 12: the id of a removed book is not used again', async () => {
        const { id } = await client.create({});
        await ask('DELETE', `/book/${id}`);
        assert.ok((await client.create({})).id > id);
      });
    });

    describe('GET /books', () => {
      test('L1, rule 13: [] without books, then every book, ascending by id', async () => {
        const empty = await startTestService(await store.freshUrl());
        try {
          const answer = await empty.client.request('GET', '/books');
          assert.equal(answer.status, 200);
          assert.equal(answer.message, 'Books retrieved successfully');
          assert.deepEqual(answer.data, []);

          const books = [];
          for (let year = 0; year < 30; year += 1) books.push(await empty.client.create({ year }));
          const [removed] = books.splice(11, 1);
          await empty.client.request('DELETE', `/book/${removed?.id}`);
          await empty.client.request('PUT', `/book/${books[3]?.id}`, { body: { title: 'moved?' } });
          books[3] = { ...(books[3] as (typeof books)[number]), title: 'moved?' };
          assert.deepEqual(await empty.client.list(), books);
        } finally {
          await empty.stop();
        }
      });
    });

    describe('the gate', () => {
      const protectedEndpoints: [string, string][] = [
        ['POST', '/book'],
        ['POST', '/books'],
        ['GET', '/books'],
        ['GET', '/book/1'],
        ['PUT', '/book/1'],
        ['DELETE', '/book/1'],
        ['HEAD', '/books'],
        ['HEAD', '/book/1'],
      ];

      test('A1, A3: without a token every protected endpoint is 401', async () => {
        for (const [method, path] of protectedEndpoints) {
          for (const token of [null, '']) {
            const answer = await client.request(method, path, { token });
            assert.equal(answer.status, 401, `${method} ${path}`);
            if (method !== 'HEAD') assert.equal(answer.message, 'Authorization token required');
            assert.ok(answer.headers.get('www-authenticate'));
          }
        }
      });

      test('A2, A4, rules 9 and 18: a token after a scheme is 401 before book and body are checked', async () => {
        const { id } = await client.create({ title: 'guarded' });
        const methods: [path: string, methods: string[]][] = [
          ['/book', ['POST']],
          ['/books', ['GET', 'HEAD', 'POST']],
          [`/book/${id}`, ['GET', 'HEAD', 'PUT', 'DELETE']],
          ['/book/abc', ['GET', 'HEAD', 'PUT', 'DELETE']],
        ];
        for (const [path, ofPath] of methods) {
          for (const method of ofPath) {
            const body = method === 'PUT' || method === 'POST' ? { body: '{' } : {};
            const answer = await client.request(method, path, { token: `Bearer ${client.token}`, ...body });
            assert.equal(answer.status, 401, `${method} ${path}`);
            if (method !== 'HEAD') assert.equal(answer.message, 'Invalid token');
            assert.ok(answer.headers.get('www-authenticate'));
          }
        }
        assert.equal((await ask('GET', `/book/${id}`)).data.title, 'guarded');
      });

      test('A5: a valid token lets every request through', async () => {
        const { id } = await client.create({});
        assert.equal((await ask('GET', '/books')).status, 200);
        assert.equal((await ask('GET', `/book/${id}`)).status, 200);
        assert.equal((await ask('PUT', `/book/${id}`, { body: '{}' })).status, 200);
        assert.equal((await ask('DELETE', `/book/${id}`)).status, 200);
      });
    });

    describe('the wire', () => {
      test('rule 20: unknown paths are 404, other methods 405 with Allow, and neither needs a token', async () => {
        const noToken = { token: null };
        for (const path of [
          '/',
          '/Book',
          '/books/',
          '/book/',
          '/book/1/',
          '//books',
          '/book//1',
          '/token/x',
        ]) {
          for (const method of ['GET', 'POST', 'DELETE']) {
            assert.deepEqual(
              await ask(method, path, noToken),
              { status: 404, message: 'Not found', data: null },
              `${method} ${path}`,
            );
          }
        }
        const routes: [string, string, string[]][] = [
          ['/token', 'POST', ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND']],
          ['/book', 'POST', ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'QUERY']],
          ['/books', 'GET, HEAD, POST', ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'LOCK']],
          ['/book/1', 'GET, HEAD, PUT, DELETE', ['POST', 'PATCH', 'OPTIONS', 'SEARCH']],
        ];
        for (const [path, allow, methods] of routes) {
          for (const method of methods) {
            const answer = await client.request(method, path, noToken);
            assert.equal(answer.status, 405, `${method} ${path}`);
            assert.equal(answer.message, 'Method not allowed');
            assert.equal(answer.data, null);
            assert.equal(answer.headers.get('allow'), allow);
          }
        }
      });

      test('rule 21: HEAD is answered like GET, without a body', async () => {
        const { id } = await client.create({ title: 'headed' });
        const get = await client.request('GET', `/book/${id}`);
        const head = await client.request('HEAD', `/book/${id}`);
        assert.equal(head.status, 200);
        assert.equal(head.headers.get('content-length'), get.headers.get('content-length'));
        assert.equal((await client.request('HEAD', '/book/9007199254740991')).status, 404);
        const list = await client.request('HEAD', '/books');
        assert.equal(list.status, 200);
        assert.equal(list.headers.get('content-type'), 'application/json; charset=utf-8');
        assert.equal((await client.request('HEAD', '/token')).status, 405);
        assert.equal((await client.request('HEAD', '/nowhere')).status, 404);
      });

      test('rule 24: headers of every answer', async () => {
        const ids = new Set();
        for (const [method, path] of [
          ['GET', '/books'],
          ['GET', '/book/x'],
          ['GET', '/nowhere'],
          ['PATCH', '/books'],
          ['GET', '/%zz'],
        ] as const) {
          const { headers } = await client.request(method, path);
          assert.equal(headers.get('x-content-type-options'), 'nosniff');
          assert.equal(headers.get('cache-control'), 'no-store');
          assert.match(headers.get('x-request-id') ?? '', /^[\w-]+$/);
          ids.add(headers.get('x-request-id'));
        }
        assert.equal(ids.size, 5);
      });

      test('rule 24: a client may set the id of its request', async () => {
        const named = await client.request('GET', '/books', { headers: { 'x-request-id': 'mine:42' } });
        assert.equal(named.headers.get('x-request-id'), 'mine:42');
        const odd = await client.request('GET', '/books', { headers: { 'x-request-id': 'a b"c' } });
        assert.notEqual(odd.headers.get('x-request-id'), 'a b"c');
      });
    });
  });
}

const UNREADABLE_BOOKS = [
  // rule 6: not a JSON object
  undefined,
  'null',
  '[{"title":"x"}]',
  '{"title":"x"',
  '{"title":"x"} trailing',
  '['.repeat(100_000),
  // rule 2: null; C1: a wrong type
  '{"title":null}',
  '{"year":null}',
  '{"author":0}',
  '{"year":"1999"}',
  // rule 3: not an integer, or one that would be altered
  '{"year":1999.5}',
  '{"year":9007199254740991.2}',
  '{"year":9007199254740993}',
  '{"year":1e400}',
  // rule 4: NUL, a lone surrogate, bytes that are not UTF-8
  '{"title":"a\\u0000b"}',
  '{"author":"x\\uDFFF"}',
  Buffer.from('{"title":"\xff"}', 'latin1'),
  // rule 5: the last of two equal keys counts
  '{"title":"ok","title":5}',
];

const TEXTS = [
  ' leading and trailing \t\r\n',
  "'; drop table books; --",
  '\u0001 é and e\u0301, \u202eright to left\u202c, \uffff',
  '👩‍👩‍👧‍👦 📚 العربية 中文',
];

const ODD_IDS = ['0', '-1', '1.5', 'abc', '%20', '9007199254740992', '18446744073709551616'];
