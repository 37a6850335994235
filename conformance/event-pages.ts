// Owns: the pages of events and of their books, in their right form, and runs of changes that a rule has made.

import type { Answer } from './answers.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import { put, remove } from './log.ts';
import { limitOf, nextOf, TIME } from './pages.ts';
import type { Book, Service } from './service.ts';
import { newestStateOf } from './undo.ts';
import { booksOfEventRetrieved, createdAll, eventsRetrieved } from './words.ts';

/** Events of a page without `limit`. */
export const EVENTS = 20;

/** Attempts to make a run while others change books all the time; and pages, among whose events a new one must be. */
export const PATIENCE = 20;

interface ChangedBook {
  readonly id: number;
  readonly before: Book | null;
  readonly book: Book | null;
}

export interface ListedEvent {
  readonly event: number | string | null;
  readonly kind: string;
  readonly at: string;
  readonly until: string;
  readonly name: string | null;
  readonly books: number | null;
  readonly first: readonly ChangedBook[];
}

interface Run {
  readonly event: string;
  readonly at: string;
  readonly until: string;
  /** A changed, a removed, a new, and a brief book. */
  readonly books: readonly [ChangedBook, ChangedBook, ChangedBook, ChangedBook];
}

export const dayOf = (at: string) => at.slice(0, 10);

export const nameOf = (at: string, until: string) => `${Date.parse(at)}-${Date.parse(until)}`;

/** Changes some new books in a moment. @returns undefined if others change books all the time. */
export async function makeRun(service: Service): Promise<Run | undefined> {
  for (let attempt = 0; attempt < PATIENCE; attempt += 1) {
    const changed = await service.create({ title: 'old', year: 1800 });
    const removed = await service.create({ title: 'removed' });
    const { at: before } = await newestStateOf(service, removed.id);
    await put(service, changed.id, { title: 'between' });
    const { at } = await newestStateOf(service, changed.id);
    const after = await put(service, changed.id, { title: 'changed' });
    await remove(service, removed.id);
    const created = await service.create({ title: 'new' });
    const brief = await service.create({ title: 'brief' });
    await remove(service, brief.id);
    const { at: until } = await newestStateOf(service, brief.id);
    const event = nameOf(at, until);
    const books = [
      { id: changed.id, before: changed, book: after },
      { id: removed.id, before: removed, book: null },
      { id: created.id, before: null, book: created },
      { id: brief.id, before: null, book: null },
    ] as const;
    const isAlone = (await booksOf(service, event)).every(({ id }) => books.some((own) => own.id === id));
    if (isAlone && before < at && dayOf(at) === dayOf(until)) return { event, at, until, books };
  }
  return undefined;
}

/** Stores books at once. @returns the run of that moment. */
export async function createMany(
  service: Service,
  count: number,
): Promise<{ event: string; ids: readonly number[] }> {
  const answer = await service.request('POST', '/books', {
    body: Array(count).fill({ title: 'one of many' }),
  });
  expectAnswer(answer, createdAll(answer.data));
  const [first] = answer.data;
  const { at } = await newestStateOf(service, first);
  return { event: nameOf(at, at), ids: answer.data };
}

export interface Page {
  readonly events: readonly ListedEvent[];
  readonly next: string | undefined;
  readonly answer: Answer;
}

/** One page of events, in its right form. */
export async function readEvents(service: Service, path: string): Promise<Page> {
  const answer = await service.request('GET', path);
  expectAnswer(answer, eventsRetrieved(answer.data));
  const events: readonly ListedEvent[] = answer.data;
  const limit = limitOf(path, EVENTS);
  const count = events.filter(({ kind }) => kind !== 'beginning').length;
  expect(count <= limit, `The page has ${limit} events at most.`, answer);
  for (const one of events) {
    const { event, kind, at, until, name, books, first } = one;
    const fields = ['at', 'books', 'event', 'first', 'kind', 'name', 'until'];
    expectEqual(Object.keys(one).toSorted(), fields, 'The fields of an event', answer);
    expect(TIME.test(at) && TIME.test(until) && at <= until, 'Each event has its times in UTC.', answer);
    if (kind === 'changes') expectEqual(event, nameOf(at, until), 'The name of a run', answer);
    else expectEqual(until, at, `until of ${event}`, answer);
    expect(
      ['changes', 'import', 'undo', 'beginning'].includes(kind),
      'Each event is of one of the kinds.',
      answer,
    );
    expect(name === null || kind === 'import', 'Only an import has a name.', answer);
    expect(
      books === null ? kind === 'changes' : books >= first.length,
      'Each event has the number of its books.',
      answer,
    );
    expectBooks(first, 3, answer);
  }
  return { events, next: answer.headers.has('link') ? nextOf(answer, path, EVENTS) : undefined, answer };
}

/** The newest event of the list of which this holds. */
export async function findListed(
  service: Service,
  isIt: (event: ListedEvent) => boolean,
  what: string,
): Promise<ListedEvent> {
  let path: string | undefined = '/events?limit=100';
  for (let pages = 0; pages < PATIENCE && path !== undefined; pages += 1) {
    const { events, next }: Page = await readEvents(service, path);
    const found = events.find(isIt);
    if (found !== undefined) return found;
    path = next;
  }
  expect(false, `${what} is in the list of events.`, service.latest);
}

/** One page of the books of an event, in its right form. */
export async function readBooks(service: Service, path: string) {
  const answer = await service.request('GET', path);
  expectAnswer(answer, booksOfEventRetrieved(answer.data));
  const books: readonly ChangedBook[] = answer.data;
  expectBooks(books, limitOf(path), answer);
  return { books, next: answer.headers.has('link') ? nextOf(answer, path) : undefined };
}

/** All books of an event, from as many pages as it takes. */
export async function booksOf(
  service: Service,
  event: number | string,
  limit?: number,
): Promise<readonly ChangedBook[]> {
  const books: ChangedBook[] = [];
  const begin = `/event/${event}/books${limit === undefined ? '' : `?limit=${limit}`}`;
  for (let path: string | undefined = begin; path !== undefined; ) {
    const page = await readBooks(service, path);
    const [next] = page.books;
    const last = books.at(-1)?.id ?? 0;
    expect(
      next !== undefined && next.id > last,
      `A page of the books begins after book ${last}.`,
      service.latest,
    );
    books.push(...page.books);
    path = page.next;
  }
  return books;
}

function expectBooks(books: readonly ChangedBook[], limit: number, answer: Answer): void {
  expect(books.length <= limit, `There are ${limit} books at most.`, answer);
  let last = 0;
  for (const one of books) {
    expectEqual(Object.keys(one).toSorted(), ['before', 'book', 'id'], 'The fields of a book', answer);
    const { id, before, book } = one;
    expect(id > last, 'The books ascend by id.', answer);
    for (const state of [before, book]) expectEqual(state?.id ?? id, id, 'The id of a state', answer);
    last = id;
  }
}
