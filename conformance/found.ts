// Owns: storing books that a search finds alone, and what is expected of the pages that find them.

import { randomBytes } from 'node:crypto';
import { type Answer, linksOf } from './answers.ts';
import type { Fields } from './cases.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import type { Book, Service } from './service.ts';

export const markOf = () => `zz${randomBytes(6).toString('hex')}`;

/** Stores books; the word that is added to each author is in no other book. */
export async function store(
  service: Service,
  books: readonly Fields[],
): Promise<{ mark: string; ids: number[] }> {
  const mark = markOf();
  const ids: number[] = [];
  for (const book of books) {
    ids.push((await service.create({ ...book, author: `${book.author ?? ''} ${mark}`.trim() })).id);
  }
  return { mark, ids };
}

export function page(
  service: Service,
  query: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return service.search(`/books?${query}`, headers);
}

/** Percent-escapes what no library would send as it is. */
export function encoded(query: string): string {
  return query.replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent);
}

/**
 * The ids of the books of all pages, in their order. A service that does not know pages, or never ends them, breaks the rule.
 * @param begin has a limit.
 * @param between is called before each page but the first.
 */
export async function walk(
  service: Service,
  begin: string,
  between: (met: readonly number[]) => Promise<void> = async () => {},
): Promise<number[]> {
  const met: number[] = [];
  const limit = Number(new URL(begin, service.url).searchParams.get('limit'));
  for (let path: string | undefined = begin; path !== undefined; ) {
    const answer: Answer = await service.search(path);
    expectAnswer(answer, { status: 200 });
    const ids = (answer.data as Book[]).map(({ id }) => id);
    expect(ids.length > 0, 'A page that a link leads to has books.', answer);
    expect(ids.length <= limit, `A page has ${limit} books at most.`, answer);
    expect(new Set([...met, ...ids]).size === met.length + ids.length, 'No book is on two pages.', answer);
    met.push(...ids);
    path = linksOf(answer).next;
    await between(met);
  }
  return met;
}

/** Fails unless a query finds these books, in this order. */
export async function expectToFind(
  service: Service,
  query: string,
  ids: readonly (number | undefined)[],
): Promise<void> {
  expectFound(await page(service, query), ids);
}

/** Fails unless these books are found, in this order. */
export function expectFound(answer: Answer, ids: readonly (number | undefined)[]): void {
  expectAnswer(answer, { status: 200, message: 'Books retrieved successfully' });
  const found = (answer.data as Book[]).map(({ id }) => id);
  expectEqual(found, ids, 'The ids that are found', answer);
}
