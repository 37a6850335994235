// Owns: rules B1, B2 and I1 to I3: many books in one request, and requests that are carried out once, however often they
// are sent.

import { randomUUID } from 'node:crypto';
import { EMPTY } from './cases.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import { type Services, theOnly, together } from './racing.ts';
import { full, type Rule } from './rule.ts';
import type { Service } from './service.ts';
import {
  createdAll,
  INVALID,
  INVALID_KEY,
  invalidAt,
  KEY_USED,
  retrieved,
  TOKEN_REQUIRED,
  TOO_LARGE,
} from './words.ts';

const MEBIBYTE = 1024 * 1024;

/** Books in one request, at most. */
const MOST_BOOKS = 10_000;

const BOOKS = [
  { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 },
  {},
  { title: '\u{1f4d6} "\\\n', author: 'e\u0301', year: -720, id: 7, other: [1, { a: ']' }] },
];
const STORED = [
  { ...EMPTY, title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 },
  EMPTY,
  { ...EMPTY, title: '\u{1f4d6} "\\\n', author: 'e\u0301', year: -720 },
];

const post = (service: Service, path: string, body: unknown, key?: string) =>
  service.request('POST', path, { body, headers: key === undefined ? {} : { 'idempotency-key': key } });
const countBooks = async (service: Service) => (await service.list()).length;

export const MANY: readonly Rule[] = [
  full.writing('B1', 'stores all books of an array, and returns their ids in its order', async (service) => {
    const answer = await post(service, '/books', BOOKS);
    expectAnswer(answer, { status: 201, message: 'Books created successfully' });
    const ids: number[] = answer.data;
    expectEqual(ids.length, BOOKS.length, 'The number of ids', answer);
    expectEqual(answer.headers.get('location'), null, 'location', answer);
    expectEqual(answer.headers.get('etag'), null, 'etag', answer);
    for (const [position, id] of ids.entries()) {
      expectAnswer(await service.request('GET', `/book/${id}`), retrieved({ id, ...STORED[position] }));
    }
    const ascending = ids.toSorted((one, other) => one - other);
    expectEqual(ids, ascending, 'The ids', answer);
    expectAnswer(await post(service, '/books', ' \n[ ] '), createdAll([]));
  }),
  full.writing('B1', '10,000 books at most, with 16 MiB, each as long as a body may be', async (service) => {
    const before = await countBooks(service);
    const books = Array.from({ length: MOST_BOOKS }, (_, year) => ({ title: `book ${year}`, year }));
    const stored = await post(service, '/books', books);
    expectAnswer(stored, { status: 201 });
    const ids: number[] = stored.data;
    expectEqual(new Set(ids).size, MOST_BOOKS, 'The number of different ids', stored);
    for (const position of [0, 1, 4999, 9999]) {
      const answer = await service.request('GET', `/book/${ids[position]}`);
      expectEqual(answer.data?.year, position, 'The year', answer);
    }
    expectAnswer(await post(service, '/books', [...books, {}]), TOO_LARGE);
    expectEqual(await countBooks(service), before + MOST_BOOKS, 'The number of books');
    await expectLongest(service, MEBIBYTE);
    const largest = `[{}${' '.repeat(16 * MEBIBYTE - 4)}]`;
    expectEqual(largest.length, 16 * MEBIBYTE, 'The length of the largest body');
    expectAnswer(await post(service, '/books', largest), { status: 201 });
    expectAnswer(await post(service, '/books', ` ${largest}`), TOO_LARGE);
  }),
  full.writing(
    'B2',
    'one element that is no book: 400 with its position, nothing is stored',
    async (service) => {
      const before = await countBooks(service);
      const elements = [
        ...['null', '1', '"x"', '[]', '[{}]', '{"title":null}', '{"year":1999.5}', '{"year":"1"}'],
        ...['{"title":"\\ud800"}', '{"author":"\\u0000"}', '{"year":1e400}', '{"year":9007199254740993}'],
        `${'['.repeat(1500)}${']'.repeat(1500)}`,
      ];
      for (const element of elements) {
        expectAnswer(await post(service, '/books', `[{},{},${element},{}]`), invalidAt(3));
      }
      const deep = `{"x":${'['.repeat(1500)}${']'.repeat(1500)}}`; // as in a request for one book
      expectAnswer(await post(service, '/book', deep), { status: 201 });
      expectAnswer(await post(service, '/books', `[${deep}]`), { status: 201 });
      expectEqual(await countBooks(service), before + 2, 'The number of books');
      expectAnswer(await post(service, '/books', '[null]'), invalidAt(1));
      expectAnswer(await post(service, '/books', '[{"year":null},null]'), invalidAt(1));
      expectAnswer(
        await post(service, '/books', `[${'{},'.repeat(9999)}{"year":null}]`),
        invalidAt(MOST_BOOKS),
      );
      expectEqual(await countBooks(service), before + 2, 'The number of books');
    },
  ),
  full.writing(
    'B2',
    'a body that is no array of JSON in UTF-8 gets 400 and stores nothing',
    async (service) => {
      const before = await countBooks(service);
      const bodies = [
        ...['', ' ', '{}', '{"a":{}}', '1', 'null', '"[]"', 'x', '[', ']', '[{}', '[{},', '[{},]', '[,{}]'],
        ...['[{} {}]', '[{}]x', '[{}][]', '\ufeff[{}]', '[{}];', '[{},,{}]', '{"0":{}}', '[null,{title:1}]'],
        ...['[{"title":"x"]', "[{'title':1}]", '[{"a":}]', '[null', '1e-400', '-9007199254740992.1'],
      ];
      for (const body of bodies) expectAnswer(await post(service, '/books', body), INVALID);
      const notUtf8 = [Buffer.from([0x5b, 0xff, 0x5d]), Buffer.from('[{"title":"\u00e9"}]', 'latin1')];
      for (const body of [...notUtf8, undefined]) expectAnswer(await post(service, '/books', body), INVALID);
      expectEqual(await countBooks(service), before, 'The number of books');
      expectAnswer(await post(service, '/books', [{}]), { status: 201 });
    },
  ),
  full.writing('B1 and B2', 'however the body is cut into pieces, it is read as a whole', async (service) => {
    const body = Buffer.from(` [ ${BOOKS.map((book) => JSON.stringify(book)).join(' ,\n')} ] `);
    for (const size of [1, 2, 3, 7, 50]) {
      const connection = service.connect();
      const headers = { 'transfer-encoding': 'chunked' };
      await connection.send(service.bytes('POST', '/books', { headers }));
      for (let at = 0; at < body.length; at += size) {
        const piece = body.subarray(at, at + size);
        const length = Buffer.from(`${piece.length.toString(16)}\r\n`);
        await connection.send(Buffer.concat([length, piece, Buffer.from('\r\n')]));
      }
      await connection.send('0\r\n\r\n');
      const [answer] = await connection.answers(1);
      expectAnswer(answer, { status: 201 });
      const id = answer?.data[2];
      expectAnswer(await service.request('GET', `/book/${id}`), retrieved({ id, ...STORED[2] }));
      connection.close();
    }
  }),
  full.writing('B2', 'a client that leaves stores nothing; one that is refused goes on', async (service) => {
    const { id } = await service.create({});
    const before = await countBooks(service);
    const leaving = service.connect();
    const body = '[{},{},{}]';
    const headers = { 'content-length': String(body.length) };
    await leaving.send(service.bytes('POST', '/books', { headers }));
    await leaving.send(body.slice(0, -1));
    leaving.close();

    const staying = service.connect();
    const long = `[${'{},'.repeat(50_000)}null]`;
    await staying.send(service.bytes('POST', '/books', { body: long }));
    await staying.send(service.bytes('GET', `/book/${id}`));
    const [refused, next] = await staying.answers(2);
    expectAnswer(refused, TOO_LARGE);
    expectAnswer(next, { status: 200 });
    staying.close();
    expectEqual(await countBooks(service), before, 'The number of books');
  }),
];

export const KEYS_OF_REQUESTS: readonly Rule[] = [
  full.writing('I1', 'a key is visible ASCII, with or without quotation marks', async (service) => {
    const unique = randomUUID();
    const valid = [
      '"',
      `!~${unique}`,
      unique.padEnd(255, 'x'),
      `"${unique.padEnd(255, 'y')}"`,
      unique,
      `"${unique}`,
    ];
    for (const key of valid) {
      const answer = await post(service, '/book', {}, key);
      // A single character may be in use already.
      if (key.length > 1 || answer.status !== 422) expectAnswer(answer, { status: 201 });
    }
    const invalid = [
      ...['', '""', 'x'.repeat(256), `"${'x'.repeat(256)}"`, 'a b', '"a b"', 'caf\u00e9', 'a, b', 'a\tb'],
    ];
    for (const key of invalid) {
      expectAnswer(await post(service, '/book', '{', key), INVALID_KEY);
      expectAnswer(await post(service, '/books', '[', key), INVALID_KEY);
    }
    const list = await service.request('GET', '/books', { headers: { 'idempotency-key': '' } });
    expectAnswer(list, { status: 200 });
    const { id } = await service.create({});
    const headers = { 'idempotency-key': 'a b' };
    expectAnswer(await service.request('PUT', `/book/${id}`, { body: {}, headers }), { status: 200 });
  }),
  full.writing('I2', 'the same request again gets the first answer, and stores nothing', async (service) => {
    const key = randomUUID();
    const first = await post(service, '/book', BOOKS[0], key);
    expectAnswer(first, { status: 201 });
    expectEqual(first.headers.get('idempotent-replayed'), null, 'idempotent-replayed', first);
    await service.request('PUT', `/book/${first.data.id}`, { body: { year: 1 } });
    await service.request('DELETE', `/book/${first.data.id}`);
    const before = await countBooks(service);
    const equal = '{"id":9, "year":1605.0, "author":"Miguel de Cervantes", "title":"Don Quijote"}';
    for (const [body, sent] of [
      [BOOKS[0], key],
      [BOOKS[0], `"${key}"`],
      [equal, key],
    ] as const) {
      const again = await post(service, '/book', body, sent);
      expectAnswer(again, first);
      expectEqual(again.headers.get('idempotent-replayed'), 'true', 'idempotent-replayed', again);
      for (const name of ['location', 'etag']) {
        expectEqual(again.headers.get(name), first.headers.get(name), name, again);
      }
    }
    for (const other of [{}, { ...BOOKS[0], year: 1606 }, { ...BOOKS[0], title: 'don quijote' }]) {
      expectAnswer(await post(service, '/book', other, key), KEY_USED);
    }
    expectAnswer(await post(service, '/books', [BOOKS[0]], key), KEY_USED);
    expectEqual(await countBooks(service), before, 'The number of books');
    const another = await post(service, '/book', BOOKS[0], randomUUID());
    expect(another.data.id !== first.data.id, 'Another key stores another book.', another);
  }),
  full.writing('I2', 'a key counts for a whole array', async (service) => {
    const key = randomUUID();
    const first = await post(service, '/books', BOOKS, key);
    expectAnswer(first, { status: 201 });
    const before = await countBooks(service);
    const again = await post(service, '/books', JSON.stringify(STORED, null, 2), key);
    expectAnswer(again, first);
    expectEqual(again.headers.get('idempotent-replayed'), 'true', 'idempotent-replayed', again);
    for (const other of [[], BOOKS.slice(1), BOOKS.toReversed(), [BOOKS]]) {
      const expected = Array.isArray(other[0]) ? invalidAt(1) : KEY_USED;
      expectAnswer(await post(service, '/books', other, key), expected);
    }
    expectAnswer(await post(service, '/book', {}, key), KEY_USED);
    const empty = randomUUID();
    for (let time = 0; time < 2; time += 1) {
      expectAnswer(await post(service, '/books', [], empty), createdAll([]));
    }
    expectEqual(await countBooks(service), before, 'The number of books');
  }),
  full.writing('I3', 'of many requests with one key at the same moment, one is carried out', (service) =>
    raceWithOneKey([service]),
  ),
  full.writing('I3', 'a request that failed leaves no key', async (service) => {
    const key = randomUUID();
    expectAnswer(await post(service, '/book', { year: null }, key), INVALID);
    expectAnswer(await post(service, '/books', [{}, null], key), invalidAt(2));
    const headers = { 'idempotency-key': key };
    expectAnswer(await service.request('POST', '/book', { body: {}, headers, token: null }), TOKEN_REQUIRED);
    expectAnswer(await post(service, '/book', { title: 'x'.repeat(MEBIBYTE) }, key), TOO_LARGE);
    const answer = await post(service, '/book', { title: 'now' }, key);
    expectAnswer(answer, { status: 201 });
    expectEqual(answer.headers.get('idempotent-replayed'), null, 'idempotent-replayed', answer);
  }),
];

/** The texts of a book may be as long as a body with one book, however long the array is. */
export async function expectLongest(service: Service, limit: number): Promise<void> {
  const half = limit / 2;
  const longest = { title: 'x'.repeat(half), author: '\u00e9'.repeat(half / 2) };
  expectAnswer(await post(service, '/books', [{}, longest]), { status: 201 });
  expectAnswer(await post(service, '/books', [{}, { ...longest, title: `${longest.title}x` }]), TOO_LARGE);
  expectAnswer(await post(service, '/books', `[{},{"other":"${'x'.repeat(2 * limit)}"}]`), { status: 201 });
  expectAnswer(await post(service, '/books', `[{},${' '.repeat(2 * limit)}{}]`), { status: 201 });
}

/** Sends many requests with one key at once, some of them different from the others. */
export async function raceWithOneKey(services: Services): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    const before = await countBooks(services[0]);
    const key = randomUUID();
    const isArray = round % 3 === 2;
    const answers = await together(16, (position) => {
      const sender = services[position % services.length] as Service;
      const body = { title: `round ${round}`, year: position % 4 === 3 ? 1 : 0 };
      return post(sender, isArray ? '/books' : '/book', isArray ? [body, body] : body, key);
    });
    const made = answers.filter(({ status }) => status === 201);
    const carriedOut = made.filter(({ headers }) => headers.get('idempotent-replayed') === null);
    const first = theOnly(carriedOut, 'the requests with one key is carried out', answers);
    for (const answer of answers) expectAnswer(answer, made.includes(answer) ? first : KEY_USED);
    expect(
      made.length === 4 || made.length === 12,
      `4 or 12 of the requests get 201, not ${made.length}.`,
      first,
    );
    expectEqual(await countBooks(services[0]), before + (isArray ? 2 : 1), 'The number of books');
  }
}
