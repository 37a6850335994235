// Owns: the rules of the endpoints after the login, in the order of docs/contract.md: a few typical cases of each. bodies.ts has every
// form of a body, wire.ts everything below HTTP.

import { randomUUID } from 'node:crypto';
import { EMPTY, IDS } from './cases.ts';
import { type Expected, expect, expectAnswer, expectEqual } from './complaint.ts';
import { expectHead } from './pages.ts';
import { core, full, type Rule } from './rule.ts';
import type { Book, RequestOptions, Service } from './service.ts';
import {
  BAD_REQUEST,
  BOOK_NOT_FOUND,
  created,
  DELETED,
  INVALID_TOKEN,
  METHOD_NOT_ALLOWED,
  NOT_FOUND,
  retrieved,
  TOKEN_REQUIRED,
  updated,
} from './words.ts';

/** Books of the rule about the list. */
const LISTED = 30;

const readBack = async (service: Service, book: { readonly id: number }) => {
  expectAnswer(await service.request('GET', `/book/${book.id}`), retrieved(book));
};

export const GATE: readonly Rule[] = [
  core('A1, A3, rule 24', 'without a token, every endpoint but the login returns 401', (service, isFull) =>
    refuseEverywhere(service, isFull, [null, ''], TOKEN_REQUIRED),
  ),
  core(
    'A2, A4, rules 9, 18 and 24',
    'a token that is malformed, or comes after a scheme, gets 401 before book and body are checked',
    async (service, isFull) => {
      const tokens = ['x', 'a.b.c', `Bearer ${service.token}`, service.token.slice(0, -5)];
      await refuseEverywhere(service, isFull, tokens, INVALID_TOKEN);
    },
  ),
  core('A5', 'a valid token lets a reader through', async (service) => {
    expectAnswer(await service.request('GET', '/books'), { status: 200 });
    expectAnswer(await service.request('GET', service.noBook), BOOK_NOT_FOUND);
  }),
];

export const CREATE: readonly Rule[] = [
  core.writing(
    'C2, G1, rules 5 and 24',
    'stores a book, and returns it with an id',
    async (service, isFull) => {
      for (const body of [
        { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 },
        { title: 'Ἰλιάς', author: 'Ὅμηρος', year: -750 },
      ]) {
        const answer = await service.request('POST', '/book', { body });
        const id = answer.data?.id;
        expectAnswer(answer, created({ id, ...EMPTY, ...body }));
        expect(Number.isInteger(id) && id >= 0, 'The id is an unsigned integer.', answer);
        await readBack(service, answer.data);
        if (!isFull) continue;
        expect(Number.isSafeInteger(id) && id > 0, 'The id is an integer from 1 to 2^53−1.', answer);
        expectEqual(answer.headers.get('location'), `/book/${id}`, 'location', answer);
        const other = await service.create({ id });
        expect(other.id !== id, 'A new book has another id than the one in its body.', service.latest);
      }
    },
  ),
];

export const READ: readonly Rule[] = [
  core('G2, rule 10', 'a path names the book whose id it spells, and no other', async (service, isFull) => {
    for (const path of [service.noBook, ...(isFull ? IDS.map((id) => `/book/${id}`) : [])]) {
      expectAnswer(await service.request('GET', path), BOOK_NOT_FOUND);
    }
  }),
  full.writing('rule 7', 'Content-Type is ignored, and so is a body that is not needed', async (service) => {
    for (const [type, unneeded] of [
      ['application/json', '{'],
      ['text/plain', ''],
      ['nonsense', undefined],
      [';', '{'],
      [undefined, '{'],
    ]) {
      const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
      const made = await service.request('POST', '/book', { body: '{"title":"typed"}', headers });
      expectAnswer(made, created({ id: made.data?.id, ...EMPTY, title: 'typed' }));
      const path = `/book/${made.data.id}`;
      const send = (method: string, to: string) => service.request(method, to, { headers, body: unneeded });
      for (const method of ['GET', 'HEAD']) expectAnswer(await send(method, '/books'), { status: 200 });
      expectAnswer(await send('HEAD', path), { status: 200 });
      expectAnswer(await send('GET', path), retrieved(made.data));
      expectAnswer(await send('GET', service.noBook), BOOK_NOT_FOUND);
      expectAnswer(await send('DELETE', path), DELETED);
    }
  }),
  full.writing('rules 7 and 22', 'an ignored body of any size is not read as a request', async (service) => {
    const book = await service.create({});
    const path = `/book/${book.id}`;
    const removal = service.bytes('DELETE', path).toString();
    const large = ' '.repeat(2 * 1024 * 1024);
    const answers = await service.requestAll([
      ['GET', path, { body: removal }],
      ['GET', path, { body: large }],
      ['GET', path],
    ]);
    for (const answer of answers) expectAnswer(answer, retrieved(book));
  }),
  full.writing('rule 10', 'an id that is not canonical decimal names no book', async (service) => {
    const book = await service.create({ title: 'untouched' });
    const id = String(book.id);
    // A service that reads only the beginning, or rounds, finds this book and no other one.
    const spellings = [`0${id}`, `+${id}`, `${id}.0`, `${id}.5`, `${id}x`, `%3${id[0]}${id.slice(1)}`];
    for (const odd of [
      '0',
      `-${id}`,
      'abc',
      '%20',
      '9007199254740992',
      '18446744073709551616',
      ...spellings,
    ]) {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const body = method === 'PUT' ? { body: { title: 'touched' } } : {};
        expectAnswer(await service.request(method, `/book/${odd}`, body), BOOK_NOT_FOUND);
      }
    }
    await readBack(service, book);
  }),
];

export const UPDATE: readonly Rule[] = [
  core.writing(
    'U3, rules 5 and 8',
    'applies fields that are present, and no others',
    async (service, isFull) => {
      const { id } = await service.create({ title: 'a', author: 'b', year: 1 });
      const last = { title: '', author: 'B', year: -5 };
      const steps: [unknown, object][] = [
        [{ title: 'A' }, { title: 'A', author: 'b', year: 1 }],
        [{ author: '' }, { title: 'A', author: '', year: 1 }],
        [{ year: 0 }, { title: 'A', author: '', year: 0 }],
        [last, last],
      ];
      const unknown = ['{}', '{"id":1,"Title":"x","__proto__":{"title":"x"}}', '{"id":null}'];
      for (const [body, fields] of [
        ...steps,
        ...(isFull ? unknown.map((body) => [body, last] as const) : []),
      ]) {
        const book = { id, ...EMPTY, ...fields };
        expectAnswer(await service.request('PUT', `/book/${id}`, { body }), updated(book));
        await readBack(service, book);
      }
    },
  ),
  core.writing('U1, rule 9', 'a missing book gets 404, whatever the body', async (service) => {
    for (const body of ['{"title":"x"}', '{', '', '{"year":"1999"}', undefined]) {
      expectAnswer(await service.request('PUT', service.noBook, { body }), BOOK_NOT_FOUND);
    }
  }),
];

export const REMOVE: readonly Rule[] = [
  core.writing(
    'D1, D2, rules 11 and 12',
    'removes the book, and no id is used again',
    async (service, isFull) => {
      const { id } = await service.create({ title: 'gone', author: 'gone', year: 1 });
      expectAnswer(await service.request('DELETE', `/book/${id}`), DELETED);
      expectAnswer(await service.request('GET', `/book/${id}`), BOOK_NOT_FOUND);
      expectAnswer(await service.request('PUT', `/book/${id}`, { body: { title: 'back' } }), BOOK_NOT_FOUND);
      for (const path of isFull ? [`/book/${id}`, service.noBook] : []) {
        expectAnswer(await service.request('DELETE', path), BOOK_NOT_FOUND);
      }
      if (!isFull) return;
      const next = await service.create({});
      expect(next.id > id, `The next id is above ${id}.`, service.latest);
    },
  ),
];

export const LIST: readonly Rule[] = [
  core.writing('L1, rule 13', 'the list has every book as it is now', async (service, isFull) => {
    const author = randomUUID();
    const books: Book[] = [];
    for (let year = 0; year < LISTED; year += 1)
      books.push(await service.create({ title: 'a', author, year }));
    const [removed] = books.splice(11, 1);
    expectAnswer(await service.request('DELETE', `/book/${removed?.id}`), DELETED);
    books[3] = { ...(books[3] as Book), title: 'moved?' };
    await service.request('PUT', `/book/${books[3].id}`, { body: { title: 'moved?' } });
    const answer = await service.request('GET', '/books');
    expectAnswer(answer, { status: 200, message: 'Books retrieved successfully' });
    const byId = (some: readonly Book[]) => some.toSorted((one, other) => one.id - other.id);
    const all: Book[] = answer.data;
    const own = all.filter((book) => book.author === author);
    expectEqual(byId(own), books, 'The books that were stored, in the list');
    if (!isFull) return;
    const fallen = byId(all).findIndex(({ id }, position) => id !== all[position]?.id);
    expect(fallen === -1, `The ids ascend, also at position ${fallen}.`);
  }),
  full.writing('L1, rule 13 and F6', 'the list has as many books as are counted', async (service) => {
    const counted = await service.search('/books?limit=1', { prefer: 'count=exact' });
    const total = counted.headers.get('x-total-count');
    if (total === null) return; // counting would take too long
    expectEqual(String((await service.list()).length), total, 'The number of books in the list', counted);
  }),
];

export const ANY_REQUEST: readonly Rule[] = [
  full(
    'rule 20',
    'unknown paths return 404, other methods 405, and neither needs a token',
    async (service) => {
      for (const path of ['/Book', '/books/', '/book/', '/book/1/', '//books', '/book//1', '/token/x']) {
        for (const method of ['GET', 'POST', 'DELETE']) {
          expectAnswer(await service.request(method, path, { token: null }), NOT_FOUND);
        }
      }
      const routes: [string, string, string[]][] = [
        ['/token', 'POST', ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND']],
        ['/book', 'POST', ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'QUERY']],
        ['/books', 'GET, HEAD, POST', ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'LOCK']],
        ['/suggestions', 'GET, HEAD', ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']],
        ['/book/1', 'GET, HEAD, PUT, DELETE', ['POST', 'PATCH', 'OPTIONS', 'SEARCH']],
      ];
      for (const [path, allow, methods] of routes) {
        for (const method of methods) {
          for (const token of [null, service.token]) {
            const answer = await service.request(method, path, { token });
            expectAnswer(answer, METHOD_NOT_ALLOWED);
            expectEqual(answer.headers.get('allow'), allow, 'allow', answer);
          }
        }
      }
    },
  ),
  full.writing('rule 21', 'HEAD is answered like GET, without a body', async (service) => {
    const { id } = await service.create({ title: 'headed' });
    await expectHead(service, `/book/${id}`);
    for (const [path, status] of [
      [service.noBook, 404],
      ['/books', 200],
      ['/token', 405],
      ['/nowhere', 404],
    ] as const) {
      expectAnswer(await service.request('HEAD', path), { status });
    }
  }),
  full.writing('rule 24', 'headers of every answer', async (service) => {
    const { id } = await service.create({});
    const ids = new Set<string | null>();
    const requests: [string, string, RequestOptions][] = [
      ['GET', '/books', {}],
      ['HEAD', '/books', {}],
      ['POST', '/book', { body: {} }],
      ['POST', '/book', { body: '{' }],
      ['PUT', `/book/${id}`, { body: {} }],
      ['DELETE', `/book/${id}`, {}],
      ['GET', '/book/x', {}],
      ['GET', '/books', { token: null }],
      ['GET', '/nowhere', {}],
      ['PATCH', '/books', {}],
      ['GET', '/%zz', {}],
      ['POST', '/token', { body: '[]' }],
    ];
    for (const [method, path, options] of requests) {
      const answer = await service.request(method, path, options);
      const of = (name: string) => answer.headers.get(name);
      expectEqual(of('content-type'), 'application/json; charset=utf-8', 'content-type', answer);
      expectEqual(of('x-content-type-options'), 'nosniff', 'x-content-type-options', answer);
      expectEqual(of('cache-control'), 'no-store', 'cache-control', answer);
      expect(/^[\w.:-]{1,128}$/.test(of('x-request-id') ?? ''), 'Every answer has an x-request-id.', answer);
      ids.add(of('x-request-id'));
    }
    expectEqual(ids.size, requests.length, 'The number of different x-request-ids');
  }),
  full('rule 20', 'an invalid percent-escape gets 400', async (service) => {
    for (const path of ['/%', '/%zz', '/book/%', '/book/%2', '/book/%g1', '/book/%e9', '/book/%c3%28']) {
      for (const method of ['GET', 'DELETE']) {
        for (const token of [service.token, null]) {
          expectAnswer(await service.request(method, path, { token }), BAD_REQUEST);
        }
      }
    }
  }),
];

/** Sends a request to every protected endpoint with each of these tokens. */
async function refuseEverywhere(
  service: Service,
  isFull: boolean,
  tokens: readonly (string | null)[],
  expected: Expected,
): Promise<void> {
  const requests = [
    ...[
      'POST /book',
      'GET /books',
      ...['GET', 'PUT', 'DELETE'].map((method) => `${method} ${service.noBook}`),
    ],
    ...(isFull
      ? [
          ...['POST /books', 'HEAD /books', `HEAD ${service.noBook}`, 'PUT /book/abc', 'GET /book/abc'],
          ...['GET /suggestions?x', 'HEAD /suggestions'],
        ]
      : []),
  ];
  for (const request of requests) {
    const [method = '', path = ''] = request.split(' ');
    for (const token of tokens) {
      const body = /^P/.test(method) ? '{' : undefined;
      const answer = await service.request(method, path, { token, body });
      expectAnswer(answer, expected);
      if (isFull) expect(answer.headers.has('www-authenticate'), '401 has www-authenticate.', answer);
    }
  }
}
