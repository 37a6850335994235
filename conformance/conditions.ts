// Owns: rules E1 to E3: the tag of a book, and requests that take effect only if the book is as their sender has
// read it.

import type { Answer } from './answers.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import { type Services, theOnly, together } from './racing.ts';
import { full, type Rule } from './rule.ts';
import type { Book, RequestOptions, Service } from './service.ts';
import { BOOK_NOT_FOUND, DELETED, INVALID, retrieved, TOKEN_REQUIRED, UNMET, updated } from './words.ts';

/** A tag that no book has. */
const OTHER = '"AAAAAAAAAAAAAAAAAAAAAA"';

/** What proxies add to the tag of an answer that they compress. */
const ENDS = ['-gzip', '-br', '-zstd', '-deflate', '-df', '--gzip', ';br'];

/** Header values that are no list of tags. */
const UNREADABLE = ['', 'x', '"', '"x', 'w/"x"', '"x" "y"', '"x",y', `"x"${', '.repeat(3000)}y`];

/** Rounds and requests of the race for one tag. */
const ROUNDS = 20;
const RACERS = 32;

/** Changes that each client counts. */
const STEPS = 20;

type Headers = Readonly<Record<string, string>>;

const read = (service: Service, id: number, headers: Headers = {}) =>
  service.request('GET', `/book/${id}`, { headers });
const change = (service: Service, id: number, body: unknown, headers: Headers = {}) =>
  service.request('PUT', `/book/${id}`, { body, headers });
const remove = (service: Service, id: number, headers: Headers = {}) =>
  service.request('DELETE', `/book/${id}`, { headers });

export const CONDITIONS: readonly Rule[] = [
  full.writing('E1', 'every answer with one book has its tag, and no other has one', async (service) => {
    const { id, tag } = await create(service);
    for (const method of ['GET', 'HEAD']) {
      const answer = await service.request(method, `/book/${id}`);
      expectEqual(answer.headers.get('etag'), tag, 'etag', answer);
    }
    const changed = await change(service, id, { year: 1815 });
    const now = await read(service, id);
    expectEqual(tagIn(now), tagIn(changed), 'etag', now);
    for (const answer of [
      await service.request('GET', '/books'),
      await service.request('GET', '/books?limit=1'),
      await change(service, id, { year: null }),
      await remove(service, id),
      await read(service, id),
    ]) {
      expectEqual(answer.headers.get('etag'), null, 'etag', answer);
    }
  }),
  full.writing('E1', 'every state of a book has its own tag, always the same', async (service) => {
    const { id, tag } = await create(service, { title: 'ab', author: 'c', year: 1 });
    const tags = new Set([tag]);
    const bodies = [
      { title: 'a', author: 'bc' },
      { title: 'abc', author: '' },
      { title: '', author: 'abc' },
      { title: '"', author: '\\' },
      { title: '\u00e9', author: '\u{1f4d6}' },
      { title: 'e\u0301' },
      { author: '' },
      { year: 0 },
      { year: -1 },
      { year: 9007199254740991 },
    ];
    for (const body of bodies) {
      const answer = await change(service, id, body);
      expect(!tags.has(tagIn(answer)), 'Another state has another tag.', answer);
      tags.add(tagIn(answer));
    }
    const twin = await create(service, { title: 'ab', author: 'c', year: 1 });
    expect(twin.tag !== tag, 'Another book has another tag.');
    for (const body of [{ title: 'ab', author: 'c', year: 1 }, {}]) {
      const answer = await change(service, id, body);
      expectEqual(tagIn(answer), tag, 'The tag of the same state', answer);
    }
  }),
  full.writing('E2', 'a client that has the book gets 304 without a body', async (service) => {
    const { book, id, tag } = await create(service);
    for (const known of [tag, `W/${tag}`, '*', `${OTHER}, ${tag}`, `${OTHER} ,,\t W/${tag} ,`]) {
      for (const method of ['GET', 'HEAD']) {
        const headers = { 'if-none-match': known };
        const answer = await service.request(method, `/book/${id}`, { headers });
        expectAnswer(answer, { status: 304 });
        expectEqual(answer.headers.get('etag'), tag, 'etag', answer);
        expectEqual(answer.headers.get('cache-control'), 'no-store', 'cache-control', answer);
        expect(answer.headers.has('x-request-id'), '304 has x-request-id.', answer);
        expectEqual(answer.headers.get('content-type'), null, 'content-type', answer);
      }
    }
    const unreadable = [...UNREADABLE, `${tag} x`, `${tag},x`];
    for (const known of [OTHER, tag.toLowerCase(), tag.slice(1, -1), ...unreadable]) {
      expectAnswer(await read(service, id, { 'if-none-match': known }), retrieved(book));
    }
    await change(service, id, { year: 1 });
    expectAnswer(await read(service, id, { 'if-none-match': tag }), { status: 200 });
    await remove(service, id);
    expectAnswer(await read(service, id, { 'if-none-match': '*' }), BOOK_NOT_FOUND);
    const list = await service.request('GET', '/books', { headers: { 'if-none-match': '*' } });
    expectAnswer(list, { status: 200 });
  }),
  full.writing('E3', 'a book is changed in the state that was read, and in no other', async (service) => {
    const { book, id, tag } = await create(service);
    const unreadable = [...UNREADABLE, `${tag} x`, `${tag},x`];
    for (const known of [OTHER, `W/${tag}`, tag.slice(1, -1), `${OTHER}, W/${tag}`, ...unreadable]) {
      expectAnswer(await change(service, id, { year: 1 }, { 'if-match': known }), UNMET);
      expectAnswer(await remove(service, id, { 'if-match': known }), UNMET);
      expectAnswer(await read(service, id, { 'if-match': known }), UNMET);
    }
    const unmet = await service.request('HEAD', `/book/${id}`, { headers: { 'if-match': OTHER } });
    expectAnswer(unmet, { status: 412 });
    expectAnswer(await read(service, id, { 'if-match': tag }), retrieved(book));
    const answer = await change(service, id, { year: 1815 }, { 'if-match': `${OTHER}, ${tag}` });
    expectAnswer(answer, updated({ ...book, year: 1815 }));
    const now = tagIn(answer);
    expectAnswer(await change(service, id, { year: 1 }, { 'if-match': tag }), UNMET);
    expectAnswer(await read(service, id), retrieved({ ...book, year: 1815 }));
    expectAnswer(await change(service, id, {}, { 'if-match': now }), { status: 200 });
    expectAnswer(await change(service, id, { author: 'Jane Austen' }, { 'if-match': '*' }), {
      status: 200,
    });
    expectAnswer(await remove(service, id, { 'if-match': now }), UNMET);
    expectAnswer(await remove(service, id, { 'if-match': tagIn(await read(service, id)) }), DELETED);
    expectAnswer(await read(service, id), BOOK_NOT_FOUND);
  }),
  full.writing('E3', 'If-None-Match is the opposite, and both may be there', async (service) => {
    const { id, tag } = await create(service);
    for (const known of [tag, `W/${tag}`, '*']) {
      expectAnswer(await change(service, id, { year: 1 }, { 'if-none-match': known }), UNMET);
      expectAnswer(await remove(service, id, { 'if-none-match': known }), UNMET);
    }
    const both = (match: string, none: string) => ({ 'if-match': match, 'if-none-match': none });
    expectAnswer(await change(service, id, { year: 1 }, both(tag, tag)), UNMET);
    expectAnswer(await change(service, id, { year: 1 }, both(OTHER, OTHER)), UNMET);
    expectAnswer(await read(service, id, both(OTHER, tag)), UNMET);
    expectAnswer(await read(service, id, both(tag, tag)), { status: 304 });
    expectAnswer(await change(service, id, { year: 1 }, both(tag, OTHER)), { status: 200 });
    expectAnswer(await remove(service, id, { 'if-none-match': tag }), DELETED);
  }),
  full.writing('E3', 'a tag counts without what a proxy that compresses has added to it', async (service) => {
    const { id, tag } = await create(service);
    const ending = (end: string) => tag.replace(/"$/, `${end}"`);
    for (const known of ENDS.map(ending)) {
      expectAnswer(await change(service, id, {}, { 'if-match': `${OTHER}, ${known}` }), { status: 200 });
      expectAnswer(await change(service, id, {}, { 'if-match': `W/${known}` }), UNMET);
      for (const same of [known, `W/${known}`]) {
        expectAnswer(await read(service, id, { 'if-none-match': same }), { status: 304 });
        expectAnswer(await change(service, id, {}, { 'if-none-match': same }), UNMET);
      }
    }
    for (const known of ['x', '-xyz', '-GZIP', 'gzip', '-gzip-gzip'].map(ending)) {
      expectAnswer(await change(service, id, {}, { 'if-match': known }), UNMET);
      expectAnswer(await read(service, id, { 'if-none-match': known }), { status: 200 });
    }
    expectAnswer(await remove(service, id, { 'if-match': ending('-gzip') }), DELETED);
  }),
  full.writing('E3', 'a request that fails without a condition fails the same with one', async (service) => {
    const { id } = await create(service);
    const headers = { 'if-match': OTHER };
    for (const method of ['PUT', 'DELETE']) {
      expectAnswer(await service.request(method, `/book/${id}`, { headers, token: null }), TOKEN_REQUIRED);
    }
    expectAnswer(await change(service, id, { year: null }, headers), INVALID);
    expectAnswer(await service.request('POST', '/book', { body: {}, headers }), { status: 201 });
    await remove(service, id);
    for (const known of [OTHER, '*', '']) {
      expectAnswer(await change(service, id, { year: null }, { 'if-match': known }), BOOK_NOT_FOUND);
      expectAnswer(await remove(service, id, { 'if-match': known }), BOOK_NOT_FOUND);
    }
    expectAnswer(await service.request('DELETE', '/book/0', { headers }), BOOK_NOT_FOUND);
  }),
  full.writing('E3', 'of 32 changes and removals with one tag one takes place', async (service) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { book, id, tag } = await create(service);
      const headers = { 'if-match': tag };
      const answers = await together(RACERS, (year) => {
        return year % 4 === 3
          ? remove(service, id, headers)
          : change(service, id, { year: year + 1 }, headers);
      });
      const succeeded = answers.filter(({ status }) => status === 200);
      const done = theOnly(succeeded, 'the requests with one tag gets 200', answers);
      for (const answer of answers) {
        if (answer !== done) expectAnswer(answer, done.data === null ? BOOK_NOT_FOUND : UNMET);
      }
      const final = await read(service, id);
      expectAnswer(final, done.data === null ? BOOK_NOT_FOUND : retrieved(done.data));
      if (done.data !== null)
        expectEqual({ ...final.data, year: 0 }, { ...book, year: 0 }, 'The book', final);
    }
  }),
  full.writing('E3', 'clients that count in one book lose no step', (service) => countTogether([service])),
];

/**
 * Has six clients count in one book, each step on the condition that the book is as it was read, while others change
 * another field of it.
 */
export async function countTogether(services: Services): Promise<void> {
  const { id } = await create(services[0], { year: 0 });
  const path = `/book/${id}`;
  const clients = Array.from({ length: 6 }, (_, position) => services[position % services.length] as Service);
  await Promise.all(
    clients.map(async (client) => {
      for (let steps = 0; steps < STEPS; ) {
        const answer = await client.request('GET', path);
        const options: RequestOptions = {
          body: { year: answer.data.year + 1 },
          headers: { 'if-match': tagIn(answer) },
        };
        const stepped = await client.request('PUT', path, options);
        if (stepped.status === 200) steps += 1;
        else expectAnswer(stepped, UNMET);
        // Others, without a condition, change another field.
        if (steps % 5 === 0) await client.request('PUT', path, { body: { title: `${Math.random()}` } });
      }
    }),
  );
  const final = await read(services[0], id);
  expectEqual(final.data?.year, clients.length * STEPS, 'The steps that were counted', final);
}

/** A new book with its tag. */
async function create(
  service: Service,
  body: object = { title: 'Emma' },
): Promise<{ book: Book; id: number; tag: string }> {
  const answer = await service.request('POST', '/book', { body });
  expectAnswer(answer, { status: 201 });
  return { book: answer.data, id: answer.data.id, tag: tagIn(answer) };
}

/** The tag in the headers of an answer, which must be a strong one. */
export function tagIn(answer: Answer): string {
  const tag = answer.headers.get('etag') ?? '';
  expect(/^"[\x21\x23-\x7e]+"$/.test(tag), 'An answer with one book has a strong etag.', answer);
  return tag;
}
