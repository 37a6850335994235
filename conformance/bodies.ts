// Owns: the rules about bodies, byte by byte: every form of JSON, and text that only looks like it. An accepted body comes
// back exactly as it was meant, a refused one stores nothing, and no body causes an internal error.

import { gzipSync } from 'node:zlib';
import type { Answer } from './answers.ts';
import {
  type Body,
  EMPTY,
  type Fields,
  KEYS,
  LOGIN_LIMIT,
  NAUGHTY,
  NO_TEXTS,
  NO_YEARS,
  READABLE,
  UNREADABLE,
  YEARS,
} from './cases.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import { core, full, type Rule } from './rule.ts';
import type { Book, Service } from './service.ts';
import { BOOK_NOT_FOUND, COMPRESSED, created, INVALID, INVALID_LOGIN, retrieved, updated } from './words.ts';

/** Bodies that no implementation takes. */
const WRONG_TYPES = [
  ...['', '{', '{"title":"kept"', '{"title":"kept","author":0}', '{"title":7,"author":"kept"}'],
  ...['{"title":true,"author":"kept"}', '{"title":["kept"]}', '{"title":"kept","year":"1999"}'],
  ...['{"title":"kept","year":true}', '{"title":"kept","year":{}}', '{"title":"kept","year":1999.5}'],
];

/** Requests at a time. */
const TOGETHER = 16;

export const BODIES: readonly Rule[] = [
  full.writing('C2, U3, rules 1 and 6', 'every form of a JSON object is read', (service) =>
    expectAccepted(service, READABLE),
  ),
  core.writing(
    'C1, U2, rules 2 to 4 and 6',
    'a body that is not a JSON object in UTF-8, or has a field of a wrong type or value, gets 400 and stores nothing',
    async (service, isFull) => {
      const wrong = Object.entries(EMPTY).flatMap(([key, empty]) => {
        return (empty === '' ? NO_TEXTS : NO_YEARS).map((value) => `{"${key}":${value}}`);
      });
      // The last of two equal keys counts (rule 5).
      const twice = ['{"title":"ok","title":5}', '{"year":1,"\\u0079ear":1.00000000000000000001}'];
      const more = [...UNREADABLE, undefined, ...wrong, ...twice];
      await expectRefused(service, [...WRONG_TYPES, ...(isFull ? more : [])]);
    },
  ),
  core('T1, rule 15', 'a login that is no JSON object of two texts gets 400', async (service, isFull) => {
    const username = JSON.stringify(service.account.username);
    const password = JSON.stringify(service.account.password);
    const values = ['null', 'true', '0', '1', '1.5', '[]', `[${username}]`, '{}'];
    const more = [
      ...UNREADABLE.filter((body) => Buffer.byteLength(body) <= LOGIN_LIMIT),
      `{"username":${username},"password":${password}} x`,
      ...values.map((value) => `{"username":${value},"password":${password}}`),
      ...values.map((value) => `{"username":${username},"password":${value}}`),
    ];
    const bodies = [undefined, '', '{', '[]', '{"username":1,"password":"x"}', ...(isFull ? more : [])];
    for (const answer of await askAll(service, bodies, (body) => ['POST', '/token', body]))
      expectAnswer(answer, INVALID_LOGIN);
  }),
  full.writing('rule 3', 'a year is exactly the number in the text', async (service) => {
    await expectAccepted(
      service,
      YEARS.map(([text, year]) => [`{"year":${text}}`, { year }]),
    );
  }),
  full.writing('rule 4', 'text that breaks other programs comes back unchanged', async (service) => {
    const books = await expectAccepted(
      service,
      NAUGHTY.map((text) => [JSON.stringify({ title: text, author: text }), { title: text, author: text }]),
    );
    const listed = new Map((await service.list()).map((book) => [book.id, book]));
    for (const book of books) expectEqual(listed.get(book.id), book, 'The book in the list');
  }),
  full.writing('rules 4 and 22', 'a title that fills a whole body comes back unchanged', async (service) => {
    const room = 1024 * 1024 - '{"title":""}'.length;
    for (const unit of ['x', 'é', '漢', '📚']) {
      const title = unit.repeat(Math.floor(room / Buffer.byteLength(unit)));
      await expectAccepted(service, [[`{"title":"${title}"}`, { title }]]);
    }
  }),
  full.writing('rule 7', 'a compressed body gets 415 and stores nothing', async (service) => {
    const { id } = await service.create({ title: 'kept' });
    const before = await service.list();
    const body = gzipSync('{"title":"compressed"}');
    for (const coding of ['gzip', 'X-GZIP', 'deflate', 'br', 'zstd', 'identity, gzip']) {
      const options = { body, headers: { 'content-encoding': coding } };
      for (const path of ['/token', '/book', '/books']) {
        const answer = await service.request('POST', path, options);
        expectAnswer(answer, COMPRESSED);
        expectEqual(answer.headers.get('accept-encoding'), 'identity', 'accept-encoding', answer);
      }
      expectAnswer(await service.request('PUT', `/book/${id}`, options), COMPRESSED);
      expectAnswer(await service.request('PUT', service.noBook, options), BOOK_NOT_FOUND);
    }
    expectEqual(await service.list(), before, 'The list');
    for (const coding of ['gzip', 'identity', 'UTF-8']) {
      const options = { body: '{}', headers: { 'content-encoding': coding } };
      expectAnswer(await service.request('PUT', `/book/${id}`, options), { status: 200 });
    }
  }),
  full.writing('rule 5', 'keys are compared after unescaping, and no key is special', async (service) => {
    await expectAccepted(service, KEYS);
  }),
  full.writing(
    'rule 6',
    'a deep body is read or gets 400, and the service keeps running',
    async (service) => {
      for (const inner of ['0', '0.5']) {
        for (const depth of [100, 10_000, 100_000]) {
          for (const [opening, closing] of [
            ['[', ']'],
            ['{"a":', '}'],
          ] as const) {
            const body = `{"title":"deep","x":${opening.repeat(depth)}${inner}${closing.repeat(depth)}}`;
            const answer = await service.request('POST', '/book', { body });
            const isRight = answer.status === 201 || (answer.status === 400 && depth > 100);
            expect(isRight, `201${depth > 100 ? ' or 400' : ''} at a depth of ${depth}.`, answer);
          }
        }
      }
      await service.create('{}');
    },
  ),
];

/** Creates a book from each body and updates another one with it: both must then have exactly these fields. */
async function expectAccepted(
  service: Service,
  cases: readonly (readonly [Body, Fields])[],
): Promise<Book[]> {
  const other = { ...EMPTY, title: 'another', author: 'another', year: 4 };
  const made = await askAll(service, cases, ([body]) => ['POST', '/book', body]);
  const before = await askAll(service, cases, () => ['POST', '/book', JSON.stringify(other)]);
  for (const [position, [, fields]] of cases.entries()) {
    const answer = made[position];
    expectAnswer(answer, created({ id: answer?.data?.id, ...EMPTY, ...fields }));
    expectAnswer(before[position], { status: 201 });
  }
  const changed = await askAll(service, cases, ([body], position) => {
    return ['PUT', `/book/${before[position]?.data.id}`, body];
  });
  const [read, readAgain] = await Promise.all(
    [made, before].map((answers) => askAll(service, answers, ({ data }) => ['GET', `/book/${data.id}`])),
  );
  for (const [position, [, fields]] of cases.entries()) {
    const expected = { id: before[position]?.data.id, ...other, ...fields };
    expectAnswer(changed[position], updated(expected));
    expectAnswer(read?.[position], retrieved(made[position]?.data));
    expectAnswer(readAgain?.[position], retrieved(expected));
  }
  return made.map(({ data }) => data);
}

async function expectRefused(service: Service, bodies: readonly (Body | undefined)[]): Promise<void> {
  const kept = await service.create({ title: 'kept', author: 'kept', year: 4 });
  const before = await service.list();
  for (const [method, path] of [
    ['POST', '/book'],
    ['PUT', `/book/${kept.id}`],
  ] as const) {
    const answers = await askAll(service, bodies, (body) => [method, path, body]);
    for (const answer of answers) expectAnswer(answer, INVALID);
  }
  expectEqual(await service.list(), before, 'The list after refused bodies');
}

/** Sends a request for each item, several at a time. @returns the answers, in the order of the items. */
async function askAll<Item>(
  service: Service,
  items: readonly Item[],
  requestOf: (
    item: Item,
    position: number,
  ) => readonly [method: string, path: string, body?: Body | undefined],
): Promise<Answer[]> {
  const requests = items.map(requestOf);
  const answers: Answer[] = [];
  for (let start = 0; start < requests.length; start += TOGETHER) {
    const part = requests.slice(start, start + TOGETHER);
    const asked = part.map(([method, path, body]) => service.request(method, path, { body }));
    answers.push(...(await Promise.all(asked)));
  }
  return answers;
}
