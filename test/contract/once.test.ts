// Rules B1 to B3 and I1 to I4, over a socket, with the same suite on every store: many books in one request, and requests
// that are carried out once, however often they are sent.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import {
  type Answer,
  type Client,
  Connection,
  type RawAnswer,
  request,
  requestBytes,
} from '../support/client.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

const INVALID = { status: 400, message: 'Invalid input', data: null };
const INVALID_KEY = { status: 400, message: 'Invalid idempotency key', data: null };
const USED = { status: 422, message: 'Idempotency key already used', data: null };
const TOO_LARGE = { status: 413, message: 'Payload too large', data: null };
const invalidAt = (position: number) => ({
  status: 400,
  message: `Invalid input: book ${position}`,
  data: null,
});

const BOOKS = [
  { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 },
  {},
  { title: '\u{1f4d6} "\\\n', author: 'e\u0301', year: -720, id: 7, other: [1, { a: ']' }] },
];
const STORED = [
  { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 },
  { title: '', author: '', year: 0 },
  { title: '\u{1f4d6} "\\\n', author: 'e\u0301', year: -720 },
];

/** Seconds. */
const DAY = 24 * 3600;

for (const store of STORES) {
  describe(`many at once, and once on ${store.name}`, () => {
    let service: RunningService;
    let client: Client;
    let keys = 0;

    before(async () => {
      service = await startTestService(await store.freshUrl(), { BODY_LIMIT: '4096' });
      client = service.client;
    });
    after(() => service.stop());

    const newKey = () => {
      keys += 1;
      return `key-${keys}`;
    };
    const post = (path: string, body: unknown, key?: string) => {
      return client.request('POST', path, {
        body,
        headers: key === undefined ? {} : { 'idempotency-key': key },
      });
    };
    const countBooks = async () => (await client.list()).length;

    test('B1: stores all books of an array, and returns their ids in its order', async () => {
      const answer = await post('/books', BOOKS);
      assert.equal(answer.status, 201);
      assert.equal(answer.message, 'Books created successfully');
      const ids: number[] = answer.data;
      assert.equal(ids.length, 3);
      assert.equal(answer.headers.get('location'), null);
      assert.equal(answer.headers.get('etag'), null);
      for (const [position, id] of ids.entries()) {
        assert.deepEqual((await client.request('GET', `/book/${id}`)).data, { id, ...STORED[position] });
      }
      assert.deepEqual(
        ids,
        ids.toSorted((one, other) => one - other),
      );
      assert.deepEqual(bare(await post('/books', ' \n[ ] ')), {
        status: 201,
        message: 'Books created successfully',
        data: [],
      });
    });

    test('B1: 10,000 books at most, with BULK_LIMIT bytes; the limit of other bodies does not count', async () => {
      const before = await countBooks();
      const books = Array.from({ length: 10_000 }, (_, year) => ({ title: `book ${year}`, year }));
      const { status, data: ids } = await post('/books', books);
      assert.equal(status, 201);
      assert.equal(new Set(ids).size, 10_000);
      for (const position of [0, 1, 4999, 9999]) {
        const { data } = await client.request('GET', `/book/${ids[position]}`);
        assert.equal(data.year, position);
      }
      assert.deepEqual(bare(await post('/books', [...books, {}])), TOO_LARGE);
      assert.equal(await countBooks(), before + 10_000);

      const longest = { title: 'x'.repeat(4096 - '{"title":""}'.length) };
      assert.equal((await post('/book', longest)).status, 201);
      assert.equal((await post('/books', [{}, longest])).status, 201);
      const longer = { title: `${longest.title}x` };
      assert.deepEqual(bare(await post('/books', [{}, longer])), TOO_LARGE);
      assert.deepEqual(bare(await post('/books', `[{},{"title":"${'x'.repeat(100_000)}`)), TOO_LARGE);
      assert.equal((await post('/books', `[{},${' '.repeat(100_000)}{}]`)).status, 201);

      const small = await startTestService(service.dbUrl, { BULK_LIMIT: '1000' });
      try {
        const title = 'x'.repeat(1000 - '[{"title":""}]'.length);
        assert.equal((await small.client.request('POST', '/books', { body: [{ title }] })).status, 201);
        const larger = { body: [{ title: `${title}x` }] };
        assert.deepEqual(bare(await small.client.request('POST', '/books', larger)), TOO_LARGE);
        const chunked = new Connection(small);
        const headers = { 'transfer-encoding': 'chunked' };
        await chunked.send(requestBytes('POST', '/books', { token: client.token, headers }));
        const piece = 'x'.repeat(600);
        await chunked.send(`258\r\n${piece}\r\n258\r\n${piece}\r\n0\r\n\r\n`);
        const [answer] = await chunked.answers(1);
        assert.ok([400, 413].includes(answer?.status ?? 0));
        chunked.socket.destroy();
      } finally {
        await small.stop();
      }
    });

    test('B2: one element that is not a book: 400 names its position, and nothing is stored', async () => {
      const before = await countBooks();
      const elements = [
        ...['null', '1', '"x"', '[]', '[{}]', '{"title":null}', '{"year":1999.5}', '{"year":"1"}'],
        ...['{"title":"\\ud800"}', '{"author":"\\u0000"}', '{"year":1e400}', '{"year":9007199254740993}'],
        ...['{title:1}', '{"title":"x"', "{'title':1}", '{"a":}', `${'['.repeat(1500)}${']'.repeat(1500)}`],
      ];
      for (const element of elements) {
        const name = element.slice(0, 40);
        assert.deepEqual(bare(await post('/books', `[{},{},${element},{}]`)), invalidAt(3), name);
      }
      const deep = `{"x":${'['.repeat(1500)}${']'.repeat(1500)}}`; // as in a request for one book
      for (const [path, body] of [
        ['/book', deep],
        ['/books', `[${deep}]`],
      ] as const)
        assert.equal((await post(path, body)).status, 201);
      const stored = await countBooks();
      assert.equal(stored, before + 2);
      assert.deepEqual(bare(await post('/books', '[null]')), invalidAt(1));
      assert.deepEqual(bare(await post('/books', '[{"year":null},null]')), invalidAt(1));
      const many = `[${'{},'.repeat(9999)}{"year":null}]`;
      assert.deepEqual(bare(await post('/books', many)), invalidAt(10_000));
      assert.equal(await countBooks(), stored);
    });

    test('B2: a body that is not an array of JSON in UTF-8 is 400, and nothing is stored', async () => {
      const before = await countBooks();
      const bodies = [
        ...[
          '',
          ' ',
          '{}',
          '{"a":{}}',
          '1',
          'null',
          '"[]"',
          'x',
          '[',
          ']',
          '[{}',
          '[{},',
          '[{},]',
          '[,{}]',
          '[{} {}]',
        ],
        ...['[{}]x', '[{}][]', '\ufeff[{}]', '[{}];', '[{},,{}]', '{"0":{}}'],
      ];
      for (const body of bodies) assert.deepEqual(bare(await post('/books', body)), INVALID, body);
      const notUtf8 = [Buffer.from([0x5b, 0xff, 0x5d]), Buffer.from('[{"title":"\u00e9"}]', 'latin1')];
      for (const body of notUtf8) assert.deepEqual(bare(await post('/books', body)), INVALID);
      assert.deepEqual(bare(await client.request('POST', '/books')), INVALID);
      assert.equal(await countBooks(), before);
      assert.equal((await post('/books', [{}])).status, 201);
    });

    test('B1 and B2: however the body is cut into pieces, it is read as a whole', async () => {
      const body = Buffer.from(` [ ${BOOKS.map((book) => JSON.stringify(book)).join(' ,\n')} ] `);
      for (const size of [1, 2, 3, 7, 50]) {
        const connection = new Connection(service);
        const headers = { 'transfer-encoding': 'chunked' };
        await connection.send(requestBytes('POST', '/books', { token: client.token, headers }));
        for (let at = 0; at < body.length; at += size) {
          const piece = body.subarray(at, at + size);
          await connection.send(
            Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
          );
        }
        await connection.send('0\r\n\r\n');
        const [answer] = await connection.answers(1);
        const [id] = JSON.parse(answer?.body ?? '').data;
        const last = (await client.request('GET', `/book/${id + 2}`)).data;
        assert.deepEqual(last, { id: id + 2, ...STORED[2] });
        connection.socket.destroy();
      }
    });

    test('B3: a request whose client leaves stores nothing, and the connection of a refused one goes on', async () => {
      const before = await countBooks();
      const leaving = new Connection(service);
      const body = '[{},{},{}]';
      const headers = { 'content-length': String(body.length) };
      await leaving.send(requestBytes('POST', '/books', { token: client.token, headers }));
      await leaving.send(body.slice(0, -1));
      leaving.socket.destroy();

      const staying = new Connection(service);
      const long = `[null,${'{},'.repeat(50_000)}{}]`;
      await staying.send(requestBytes('POST', '/books', { token: client.token, body: long }));
      await staying.send(requestBytes('GET', '/book/1', { token: client.token }));
      const answers = await staying.answers(2);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [400, 200],
      );
      staying.socket.destroy();
      assert.equal(await countBooks(), before);
    });

    test('rule 22: bodies with many books share 32 MiB; one that finds no room is 503', async () => {
      const mebibyte = 1024 * 1024;
      const crowded = await startTestService(await store.freshUrl(), { BULK_LIMIT: String(32 * mebibyte) });
      const { token } = crowded.client;
      const book = `{"title":"${'x'.repeat(mebibyte - 100)}"}`;
      // Not recorded: a slow machine takes hundreds of them.
      const probe = async (body: string) => {
        const connection = new Connection(crowded);
        await connection.send(requestBytes('POST', '/books', { token, body }));
        const [answer] = await connection.answers(1);
        connection.socket.destroy();
        return answer;
      };
      try {
        let refused: RawAnswer | undefined;
        while (refused === undefined) {
          const slow = new Connection(crowded);
          let isCut = false;
          const closed = slow.closed.then(() => {
            isCut = true;
          });
          const headers = { 'content-length': String(32 * mebibyte) };
          await slow.send(requestBytes('POST', '/books', { token, headers }));
          await slow.send('[');
          for (let sent = 0; sent < 31; sent += 1) await slow.send(`${book},`);
          // If the other one was faster, this one is refused, and the next attempt may succeed.
          while (refused === undefined && !isCut && slow.received === '') {
            const answer = await probe(`[${book},${book}]`);
            if (answer?.status === 503) refused = answer;
          }
          if (refused !== undefined) {
            assert.equal((await probe('[{}]'))?.status, 201);
            assert.equal((await crowded.client.request('POST', '/book', { body: {} })).status, 201);
          }
          slow.socket.destroy();
          await closed;
        }
        assert.equal(refused.body, '{"status":503,"message":"Service unavailable","data":null}');
        assert.equal(refused.headers['retry-after'], '1');
        await waitUntil(async () => (await probe(`[${book},${book}]`))?.status === 201);
      } finally {
        await crowded.stop();
      }
    });

    test('B3: it needs a token, and the path has three methods', async () => {
      const { status, message } = await request(service, 'POST', '/books', { body: [{}] });
      assert.deepEqual([status, message], [401, 'Authorization token required']);
      for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const answer = await client.request(method, '/books');
        assert.equal(answer.status, 405);
        assert.equal(answer.headers.get('allow'), 'GET, HEAD, POST');
      }
    });

    test('I1: a key is visible ASCII, with or without quotation marks', async () => {
      const valid = [
        'x',
        '!~',
        'x'.repeat(255),
        `"${'x'.repeat(255)}"`,
        '8e03978e-40d5-43dd-bc93-6894a57f9324',
        '"',
      ];
      for (const key of valid) assert.equal((await post('/book', {}, key)).status, 201, key);
      const invalid = [
        '',
        '""',
        'x'.repeat(256),
        `"${'x'.repeat(256)}"`,
        'a b',
        '"a b"',
        'caf\u00e9',
        'a, b',
        'a\tb',
      ];
      for (const key of invalid) {
        assert.deepEqual(bare(await post('/book', '{', key)), INVALID_KEY, key);
        assert.deepEqual(bare(await post('/books', '[', key)), INVALID_KEY, key);
      }
      const { status, data } = await client.request('GET', '/books', { headers: { 'idempotency-key': '' } });
      assert.equal(status, 200);
      const path = `/book/${data[0].id}`;
      const headers = { 'idempotency-key': 'a b' };
      assert.equal((await client.request('PUT', path, { body: {}, headers })).status, 200);
    });

    test('I2: the same request again gets the first answer, and stores nothing', async () => {
      const key = newKey();
      const first = await post('/book', BOOKS[0], key);
      assert.equal(first.status, 201);
      assert.equal(first.headers.get('idempotent-replayed'), null);
      await client.request('PUT', `/book/${first.data.id}`, { body: { year: 1 } });
      await client.request('DELETE', `/book/${first.data.id}`);
      const before = await countBooks();
      const equal = '{"id":9, "year":1605.0, "author":"Miguel de Cervantes", "title":"Don Quijote"}';
      for (const [body, sent] of [
        [BOOKS[0], key],
        [BOOKS[0], `"${key}"`],
        [equal, key],
      ] as const) {
        const again = await post('/book', body, sent);
        assert.deepEqual(bare(again), bare(first));
        assert.equal(again.headers.get('idempotent-replayed'), 'true');
        for (const name of ['location', 'etag'])
          assert.equal(again.headers.get(name), first.headers.get(name));
      }
      for (const other of [{}, { ...BOOKS[0], year: 1606 }, { ...BOOKS[0], title: 'don quijote' }]) {
        assert.deepEqual(bare(await post('/book', other, key)), USED);
      }
      assert.deepEqual(bare(await post('/books', [BOOKS[0]], key)), USED);
      assert.equal(await countBooks(), before);
      assert.notEqual((await post('/book', BOOKS[0], newKey())).data.id, first.data.id);
    });

    test('I2: a key counts for a whole array', async () => {
      const key = newKey();
      const first = await post('/books', BOOKS, key);
      const before = await countBooks();
      const again = await post('/books', JSON.stringify(STORED, null, 2), key);
      assert.deepEqual(bare(again), bare(first));
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      for (const other of [[], BOOKS.slice(1), BOOKS.toReversed(), [BOOKS]]) {
        const { status } = await post('/books', other, key);
        assert.equal(status, Array.isArray(other[0]) ? 400 : 422);
      }
      assert.deepEqual(bare(await post('/book', {}, key)), USED);
      const empty = newKey();
      for (let time = 0; time < 2; time += 1) assert.deepEqual((await post('/books', [], empty)).data, []);
      assert.equal(await countBooks(), before);
    });

    test('I3: of many requests with one key at the same moment, in two processes, one is carried out', async () => {
      const other = await startTestService(service.dbUrl);
      try {
        for (let round = 0; round < 10; round += 1) {
          const before = await countBooks();
          const headers = { 'idempotency-key': newKey() };
          const isArray = round % 3 === 2;
          const answers = await Promise.all(
            Array.from({ length: 16 }, (_, position) => {
              const sender = position % 2 === 0 ? client : other.client;
              const body = { title: `round ${round}`, year: position % 4 === 3 ? 1 : 0 };
              return sender.request('POST', isArray ? '/books' : '/book', {
                body: isArray ? [body, body] : body,
                headers,
              });
            }),
          );
          const made = answers.filter(({ status }) => status === 201);
          const [first, ...more] = made.filter(({ headers }) => headers.get('idempotent-replayed') === null);
          assert.ok(first !== undefined && more.length === 0, `round ${round}`);
          for (const answer of made) assert.deepEqual(bare(answer), bare(first));
          const others = answers.filter((answer) => !made.includes(answer));
          for (const answer of others) assert.deepEqual(bare(answer), USED);
          assert.ok(made.length === 4 || made.length === 12, `${made.length}`);
          assert.equal(await countBooks(), before + (isArray ? 2 : 1));
        }
      } finally {
        await other.stop();
      }
    });

    test('I3: a request that failed leaves no key', async () => {
      const key = newKey();
      assert.deepEqual(bare(await post('/book', { year: null }, key)), INVALID);
      assert.deepEqual(bare(await post('/books', [{}, null], key)), invalidAt(2));
      const headers = { 'idempotency-key': key };
      assert.equal((await request(service, 'POST', '/book', { body: {}, headers })).status, 401);
      assert.equal((await post('/book', { title: 'x'.repeat(5000) }, key)).status, 413);
      const { status, headers: sent } = await post('/book', { title: 'now' }, key);
      assert.equal(status, 201);
      assert.equal(sent.get('idempotent-replayed'), null);
    });

    test('I4: a key is known for 24 hours, also after a restart; then it is new, and removed in passing', async (context) => {
      const dbUrl = await store.freshUrl();
      let current: RunningService | undefined;
      const restart = async () => {
        await current?.stop();
        current = undefined;
        current = await startTestService(dbUrl);
      };
      context.after(() => current?.stop());
      const post = async (title: string, key: string) => {
        const answer = await current?.client.request('POST', '/book', {
          body: { title },
          headers: { 'idempotency-key': key },
        });
        const isReplay = answer?.headers.get('idempotent-replayed') === 'true';
        return { status: answer?.status, id: answer?.data?.id, isReplay };
      };
      await restart();
      const { id } = await post('a', 'known');
      await post('a', 'old');
      await age(dbUrl, 'known', DAY - 60);
      await age(dbUrl, 'old', DAY + 60);

      await restart();
      const renewed = await post('b', 'old'); // the first request with a key also removes old ones
      assert.deepEqual([renewed.status, renewed.isReplay], [201, false]);
      assert.deepEqual(await post('b', 'old'), { ...renewed, isReplay: true });
      assert.deepEqual(await post('a', 'known'), { status: 201, id, isReplay: true });
      assert.equal((await post('b', 'known')).status, 422);

      await age(dbUrl, 'known', DAY + 60);
      await restart();
      await post('', 'new');
      await untilKeys(dbUrl, ['new', 'old']);
    });
  });
}

/** Makes a key as old as that, in seconds. */
async function age(dbUrl: string, key: string, seconds: number): Promise<void> {
  const isSqlite = dbUrl.startsWith('sqlite:');
  const time = isSqlite ? `made_at - ${seconds * 1000}` : `made_at - interval '${seconds} seconds'`;
  await executeOn(dbUrl, `update book_requests set made_at = ${time} where key = '${key}'`);
}

async function untilKeys(dbUrl: string, keys: string[]): Promise<void> {
  await waitUntil(async () => {
    const rows = await executeOn(dbUrl, 'select key from book_requests order by key');
    return isDeepStrictEqual(
      rows.map(({ key }) => key),
      keys,
    );
  });
}

function bare({ status, message, data }: Answer): Omit<Answer, 'headers'> {
  return { status, message, data };
}
