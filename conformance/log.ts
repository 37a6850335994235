// Owns: reading the log of changes and the history of a book, and what is expected of every page of them.

import { isDeepStrictEqual } from 'node:util';
import type { Answer } from './answers.ts';
import { EMPTY } from './cases.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import { limitOf, nextOf, TIME } from './pages.ts';
import type { Book, Service } from './service.ts';
import {
  changesRetrieved,
  DELETED,
  historyRetrieved,
  INVALID_TOKEN,
  METHOD_NOT_ALLOWED,
  TOKEN_REQUIRED,
} from './words.ts';

/** The first page, as large as it may be. */
const BEGINNING = '/changes?limit=1000';

/** Pages, or waits, after which a catalogue that others change all the time is not expected to have an empty page. */
export const PATIENCE = 20;

/** Characters that a page of large books may have: about a million. */
const MOST_CHARACTERS = 2_000_000;

export interface Change {
  readonly id: number;
  readonly at: string;
  readonly book: Book | null;
}

export interface State {
  readonly change: number | null;
  readonly at: string;
  readonly book: Book | null;
}

export type Headers = Readonly<Record<string, string>>;

export interface Page {
  readonly changes: readonly Change[];
  /** The path that the link leads to. */
  readonly next: string;
  readonly answer: Answer;
}

/** One page of changes, in its right form. */
export async function read(service: Service, path: string, headers: Headers = {}): Promise<Page> {
  const answer = await service.request('GET', path, { headers });
  expectAnswer(answer, changesRetrieved);
  const changes: readonly Change[] = elementsOf(answer, path, ['at', 'book', 'id']);
  for (const { id, book } of changes) {
    expect(Number.isSafeInteger(id) && id > 0, 'Each element has the id of a book.', answer);
    expect(book === null || book.id === id, `The book of element ${id} has its id, or is null.`, answer);
  }
  expectEqual(
    new Set(changes.map(({ id }) => id)).size,
    changes.length,
    'The number of different books',
    answer,
  );
  return { changes, next: nextOf(answer, path), answer };
}

/** The elements of a page of changes or states. */
export function elementsOf<Element extends { readonly at: string; readonly book: Book | null }>(
  answer: Answer,
  path: string,
  fields: readonly string[],
): readonly Element[] {
  const { data } = answer;
  expect(Array.isArray(data), 'The page has an array.', answer);
  expect(data.length <= limitOf(path), `The page has ${limitOf(path)} elements at most.`, answer);
  let length = 0;
  for (const element of data as Element[]) {
    expectEqual(Object.keys(element).toSorted(), fields, 'The fields of an element', answer);
    const { at, book } = element;
    expect(TIME.test(at) && !Number.isNaN(Date.parse(at)), 'Each element has a time in UTC.', answer);
    if (book === null) continue;
    expectEqual(
      Object.keys(book).toSorted(),
      Object.keys({ id: 0, ...EMPTY }).toSorted(),
      'The fields of a book',
      answer,
    );
    length += book.title.length + book.author.length;
  }
  expect(length <= MOST_CHARACTERS, `A page has about a million characters, not ${length}.`, answer);
  return data;
}

/**
 * Follows the changes until each of these books has come in its state, and reads that page to its end. Changes of different books
 * come in any order.
 * @param states null if the book is gone.
 * @returns the latest element of each book on the way, and the link of the last page.
 */
export async function follow(
  service: Service,
  begin: string,
  states: Readonly<Record<number, Book | null>>,
): Promise<{ latest: ReadonlyMap<number, Change>; next: string }> {
  const latest = new Map<number, Change>();
  const links = new Set([begin]);
  for (let path = begin; ; ) {
    const { changes, next, answer } = await read(service, path);
    for (const change of changes) latest.set(change.id, change);
    const missing = Object.entries(states).filter(
      ([id, state]) => !isDeepStrictEqual(latest.get(Number(id))?.book, state),
    );
    if (missing.length === 0) return { latest, next };
    const [[id]] = missing as [[string, unknown]];
    expect(changes.length > 0, `The change of book ${id} comes before a page without elements.`, answer);
    expect(!links.has(next), 'The link of a page with elements leads further.', answer);
    links.add(next);
    path = next;
  }
}

/** The latest link of each service, so that a large catalogue is read from its beginning once. */
const POSITIONS = new WeakMap<Service, string>();

/** A link to what happens from now on, and perhaps a little earlier. */
export async function position(service: Service): Promise<string> {
  const mark = await service.create({ title: 'a mark' });
  const { next } = await follow(service, POSITIONS.get(service) ?? BEGINNING, { [mark.id]: mark });
  POSITIONS.set(service, next);
  return next;
}

/** The link of a page without elements; undefined if other programs change the catalogue all the time. */
export async function untilQuiet(service: Service): Promise<string | undefined> {
  let path = await position(service);
  for (let pages = 0; pages < PATIENCE; pages += 1) {
    const { changes, next } = await read(service, path);
    if (changes.length === 0) return next;
    path = next;
  }
  return undefined;
}

/** All states of a book, the newest first, from as many pages as it takes. */
export async function history(service: Service, id: number, limit?: number): Promise<State[]> {
  const states: State[] = [];
  const begin = `/book/${id}/history${limit === undefined ? '' : `?limit=${limit}`}`;
  const paths = new Set<string>();
  for (let path: string | undefined = begin; path !== undefined; ) {
    paths.add(path);
    const answer: Answer = await service.request('GET', path);
    expectAnswer(answer, historyRetrieved(answer.data));
    const page = elementsOf<State>(answer, path, ['at', 'book', 'change']);
    expect(page.length > 0, 'A page of a history has states.', answer);
    states.push(...page);
    path = answer.headers.has('link') ? nextOf(answer, path) : undefined;
    expect(path === undefined || !paths.has(path), 'The link of a page leads to other states.', answer);
  }
  return states;
}

/** @returns the book after the change. */
export async function put(service: Service, id: number, body: object): Promise<Book> {
  const answer = await service.request('PUT', `/book/${id}`, { body });
  expectAnswer(answer, { status: 200 });
  return answer.data;
}

export async function remove(service: Service, id: number): Promise<void> {
  expectAnswer(await service.request('DELETE', `/book/${id}`), DELETED);
}

/** Sends a path with other methods, and without a right token. */
export async function refuseOthers(service: Service, path: string): Promise<void> {
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const answer = await service.request(method, `${path}?nope`, { token: null });
    expectAnswer(answer, METHOD_NOT_ALLOWED);
    expectEqual(answer.headers.get('allow'), 'GET, HEAD', 'allow', answer);
  }
  expectAnswer(await service.request('HEAD', path, { token: null }), { status: 401 });
  expectAnswer(await service.request('GET', `${path}?nope`, { token: null }), TOKEN_REQUIRED);
  expectAnswer(await service.request('GET', `${path}?nope`, { token: 'x' }), INVALID_TOKEN);
}
