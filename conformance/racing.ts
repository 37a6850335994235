// Owns: the rules about many requests at once: nothing is lost, nothing is done twice, and every answer belongs to its
// request.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Answer } from './answers.ts';
import { EMPTY } from './cases.ts';
import { Complaint, type Expected, expect, expectAnswer, expectEqual } from './complaint.ts';
import { full, type Rule } from './rule.ts';
import type { Book, RequestOptions, Service } from './service.ts';
import { BOOK_NOT_FOUND, created, DELETED, INVALID, INVALID_TOKEN, retrieved, updated } from './words.ts';

/** One service, or several with one catalogue. */
export type Services = readonly [Service, ...Service[]];

export const RACES: readonly Rule[] = [
  full.writing(
    'rule 9',
    'in 200 pairs of simultaneous updates of different fields, none is lost',
    (service) => updateInPairs([service], 25, 8),
  ),
  full.writing('rule 9', '64 updates of one book at once are answered as if one by one', async (service) => {
    let book = await service.create({});
    for (let round = 0; round < 5; round += 1) book = await raceUpdates([service], book, round);
  }),
  full.writing('rule 9', 'pipelined changes of one book are applied in order', async (service) => {
    let book: Book = { id: (await service.create({})).id, ...EMPTY };
    const changes = Array.from({ length: 1200 }, (_, position) => {
      return position % 2 === 0 ? { title: `${position}` } : { year: position };
    });
    const answers = await service.requestAll(changes.map((body) => ['PUT', `/book/${book.id}`, { body }]));
    for (const [position, answer] of answers.entries()) {
      book = { ...book, ...changes[position] };
      expectAnswer(answer, updated(book));
    }
  }),
  full.writing('rule 11', 'of 32 deletes racing for one book exactly one gets 200', (service) =>
    together(5, () => raceDeletes([service])),
  ),
  full.writing('rule 12', 'each of 800 creates by 16 clients gets a unique id and its own book', (service) =>
    createTogether([service], 50),
  ),
  full.writing('rules 2 to 10 and 18', 'an invalid request never fails its neighbours', async (service) => {
    const { id } = await service.create({ title: 'kept' });
    const faults: [string, string, RequestOptions, Expected][] = [
      ['POST', '/book', { body: '{"title":' }, INVALID],
      ['POST', '/book', { body: { title: null } }, INVALID],
      ['POST', '/book', { body: '{"title":"\\u0000"}' }, INVALID],
      ['POST', '/book', { body: '{"title":"\\ud800"}' }, INVALID],
      ['POST', '/book', { body: '{"year":9223372036854775808}' }, INVALID],
      ['POST', '/book', { body: { title: 'ok' }, token: 'x.y.z' }, INVALID_TOKEN],
      ['PUT', `/book/${id}`, { body: { year: '1' } }, INVALID],
      ['PUT', service.noBook, { body: { title: 'x' } }, BOOK_NOT_FOUND],
      ['PUT', service.noBook, { body: '[]' }, BOOK_NOT_FOUND],
      ['PUT', '/book/9223372036854775808', { body: {} }, BOOK_NOT_FOUND],
      ['GET', service.noBook, {}, BOOK_NOT_FOUND],
      ['GET', '/book/18446744073709551616', {}, BOOK_NOT_FOUND],
      ['DELETE', service.noBook, {}, BOOK_NOT_FOUND],
      ['DELETE', `/book/-${id}`, {}, BOOK_NOT_FOUND],
    ];
    await Promise.all([
      together(5 * faults.length, async (position) => {
        const [method, path, options, expected] = faults[position % faults.length] as (typeof faults)[number];
        expectAnswer(await service.request(method, path, options), expected);
      }),
      together(50, async (position) => {
        const body = position % 2 === 0 ? '{"title":"abandoned"}' : '{"title":"half';
        const headers = { 'content-length': '21' };
        const leaving = service.connect();
        await leaving.send(
          Buffer.concat([service.bytes('PUT', `/book/${id}`, { headers }), Buffer.from(body)]),
        );
        leaving.close();
      }),
      together(60, async (position) => {
        const fields = { ...EMPTY, title: `good ${position}`, year: position };
        const answer = await service.request('POST', '/book', { body: fields });
        const book = { id: answer.data?.id, ...fields };
        expectAnswer(answer, created(book));
        const body = { author: `author ${position}` };
        const path = `/book/${book.id}`;
        expectAnswer(await service.request('PUT', path, { body }), updated({ ...book, ...body }));
        expectAnswer(await service.request('GET', path), retrieved({ ...book, ...body }));
        expectAnswer(await service.request('DELETE', path), DELETED);
      }),
    ]);
    const final = await service.request('GET', `/book/${id}`);
    const title = final.data?.title === 'abandoned' ? 'abandoned' : 'kept';
    expectAnswer(final, retrieved({ id, ...EMPTY, title }));
  }),
];

/** Calls `act` so many times, all at once. */
export function together<Result>(
  times: number,
  act: (position: number) => Promise<Result>,
): Promise<Result[]> {
  return Promise.all(Array.from({ length: times }, (_, position) => act(position)));
}

/** The only one of these answers. @param what must happen once, for a complaint about any of `all`. */
export function theOnly(answers: readonly Answer[], what: string, all: readonly Answer[]): Answer {
  const [only, ...more] = answers;
  if (only === undefined) throw new Complaint(`One of ${what}.`, all[0] as Answer);
  expect(more.length === 0, `Only one of ${what}.`, more[0]);
  return only;
}

/** Changes different fields of books, of each book by two requests at once, and reads each from every service. */
export async function updateInPairs(services: Services, books: number, rounds: number): Promise<void> {
  const [first] = services;
  const last = services.at(-1) as Service;
  await together(books, async () => {
    const { id } = await first.create({});
    for (let round = 1; round <= rounds; round += 1) {
      const fields = { ...EMPTY, title: `title ${round}`, author: `author ${round}`, year: round };
      const { title, author, year } = fields;
      await Promise.all([
        first.request('PUT', `/book/${id}`, { body: { title, year } }),
        last.request('PUT', `/book/${id}`, { body: { author } }),
      ]);
      for (const service of services) {
        expectAnswer(await service.request('GET', `/book/${id}`), retrieved({ id, ...fields }));
      }
    }
  });
}

/**
 * Sends 64 updates of one book at once, of its title or its author, no value twice, and checks that the answers are
 * those of updates that came one by one, in some order.
 * @returns the resulting book.
 */
export async function raceUpdates(services: Services, before: Book, round: number): Promise<Book> {
  const answers = await together(64, async (position) => {
    const field = position % 2 === 0 ? 'title' : 'author';
    const value = `${round}/${position}`;
    const service = services[(position >> 1) % services.length] as Service;
    const answer = await service.request('PUT', `/book/${before.id}`, { body: { [field]: value } });
    expectAnswer(answer, { status: 200 });
    expectEqual(answer.data[field], value, `The ${field}`, answer);
    return { field, after: answer.data as Book, answer } as const;
  });
  const { data: final } = await services[0].request('GET', `/book/${before.id}`);

  let book = before;
  const left = new Set(answers);
  while (left.size > 0) {
    const fitting = [...left].filter(({ field, after }) => {
      return isDeepStrictEqual(after, { ...book, [field]: after[field] });
    });
    // Of consecutive updates of the same field, only the value of the last one was seen by others, or is final.
    const isLast = (one: (typeof answers)[number]) =>
      isDeepStrictEqual(one.after, final) ||
      answers.some((other) => other !== one && other.after[one.field] === one.after[one.field]);
    const next = fitting.find((one) => !isLast(one)) ?? fitting[0];
    if (next === undefined) {
      const [lost] = left;
      const expected = `An update sees those before it: one of ${left.size} follows ${JSON.stringify(book)}.`;
      throw new Complaint(expected, lost?.answer as Answer);
    }
    left.delete(next);
    book = next.after;
  }
  expectEqual(final, book, 'The book after all updates');
  return final;
}

/** Sends 32 deletes of one book at once. */
export async function raceDeletes(services: Services): Promise<void> {
  const { id } = await services[0].create({});
  const path = `/book/${id}`;
  const answers = await together(32, (position) => {
    return (services[position % services.length] as Service).request('DELETE', path);
  });
  const [first, ...others] = answers.toSorted((one, other) => one.status - other.status);
  expectAnswer(first, DELETED);
  for (const other of others) expectAnswer(other, BOOK_NOT_FOUND);
  for (const service of services) expectAnswer(await service.request('GET', path), BOOK_NOT_FOUND);
}

/** Has 16 clients create books, and looks for all of them in every list. */
export async function createTogether(services: Services, each: number): Promise<void> {
  const mark = randomUUID();
  const books = await together(16, async (maker) => {
    const service = services[maker % services.length] as Service;
    const made: Book[] = [];
    for (let position = 0; position < each; position += 1) {
      const title = `title ${maker}/${position}`;
      const fields = { ...EMPTY, title, author: `${mark} ${maker}`, year: position };
      const answer = await service.request('POST', '/book', { body: fields });
      const book = { id: answer.data?.id, ...fields };
      expectAnswer(answer, created(book));
      made.push(book);
      if (position % 4 > 0) continue; // the list shows all of them
      expectAnswer(await service.request('GET', `/book/${book.id}`), retrieved(book));
    }
    return made;
  });
  const all = books.flat().sort((one, other) => one.id - other.id);
  expect(new Set(all.map(({ id }) => id)).size === all.length, 'Every book has its own id.');
  for (const service of services) expectEqual(await service.listed(mark), all, 'The books in the list');
}
