// Owns: what the page shows: the words, the filter and the order; as a search, and as the page's address.

import type { Search } from '../../client/src/search.ts';
import type { BookFields } from '../../src/books/book.ts';
import { fold } from '../../src/books/folding.ts';
import { indexText, termsOf } from '../../src/books/words.ts';

export const ORDERS = ['title', '-title', 'author', '-author', 'year', '-year', '-id', 'id'] as const;
export type Order = (typeof ORDERS)[number];

export interface View {
  /** As a person has typed them. */
  readonly words: string;
  readonly order: Order;
  /** Only books of this year; 0 is those without one. */
  readonly year?: number | undefined;
  /** Only books without an author. */
  readonly isAuthorless?: true | undefined;
  /** Only books that an event of the log has changed, by its name. */
  readonly event?: string | undefined;
}

export const ALL: View = { words: '', order: 'author' };

/** The books of an author are in the order of their titles, as in the index. */
const BY_AUTHOR: Partial<Record<Order, string>> = { author: 'author,title', '-author': '-author,-title' };

/** Letters before the `*` of a word (rule F3). */
const SHORTEST_PREFIX = 3;

/** Different words of a search (rule F3). */
const MOST_WORDS = 16;

/** Characters of the words, as in the search field: the service refuses more than 1,000 (rule F3). */
const LONGEST = 500;

/** Whether only some books are shown. */
export function isFiltered({ words, year, isAuthorless, event }: View): boolean {
  return words.trim() !== '' || year !== undefined || isAuthorless === true || event !== undefined;
}

/**
 * The searches for what is shown: the first that finds books counts. The last word may not be complete yet, so it also
 * finds words that begin with it. If no text has a year that is among the words, the books of that year are found.
 */
export function searchesOf({ words, order, year, isAuthorless, event }: View): readonly Search[] {
  const sort = BY_AUTHOR[order] ?? order;
  const found = year === undefined ? yearIn(words) : undefined;
  const ofYear = found === undefined ? [] : wordsWanted(found.others);
  return [
    ...wordsWanted(words).map((wanted) => ({ ...wanted, year })),
    ...ofYear.map((wanted) => ({ ...wanted, year: found?.year })),
  ].map((search) => ({ ...search, sort, event, ...(isAuthorless && { author: '' }) }));
}

/** Whether one of these searches finds a book as it is now, if no event is asked for. */
export function isFound(
  book: BookFields,
  { q = '', year, author, title_starts_with: start }: Search,
): boolean {
  const [title, writer] = [indexText(book.title), indexText(book.author)];
  const words = `${title.words} ${writer.words}`.split(' ');
  return (
    (year === undefined || book.year === year) &&
    (author === undefined || writer.key === indexText(author).key) &&
    (start === undefined || title.key.startsWith(indexText(start).key)) &&
    termsOf(q).every(({ word, isPrefix }) =>
      isPrefix ? words.some((one) => one.startsWith(word)) : words.includes(word),
    )
  );
}

function wordsWanted(words: string): readonly Search[] {
  const pieces = words.replaceAll('*', ' ').trim().split(/\s+/);
  // The last word may be searched for twice: as itself, which came before, and as the beginning of words.
  while (termsOf(`${pieces.join(' ')}*`).length > MOST_WORDS) pieces.pop();
  const text = pieces.join(' ');
  const terms = termsOf(`${text}*`);
  const last = terms.find(({ isPrefix }) => isPrefix);
  if (last === undefined || /\s$/.test(words)) return [{ q: text }];
  if ([...last.word].length >= SHORTEST_PREFIX) return [{ q: `${text}*` }];
  // Too short to search for as the beginning of any word.
  if (terms.length === 1) return [{ title_starts_with: text }, { q: text }];
  return pieces.length === 1 ? [{ q: text }] : [{ q: text }, { q: pieces.slice(0, -1).join(' ') }];
}

/** A year among the words, in the digits of any script, and the words without it. */
export function yearIn(words: string): { readonly year: number; readonly others: string } | undefined {
  for (const [written] of words.matchAll(/(?<!\S)\p{Nd}{4}(?!\S)/gu)) {
    const year = Number(fold(written));
    if (year >= 1000 && year < 3000) return { year, others: words.replace(written, '').trim() };
  }
  return undefined;
}

/** @param query of the page's address. Whatever is invalid in it counts as missing. */
export function viewOf(query: URLSearchParams): View {
  const order = ORDERS.find((known) => known === query.get('sort')) ?? ALL.order;
  const year = query.get('year') ?? '';
  const event = query.get('event') ?? '';
  return {
    words: (query.get('q') ?? '').slice(0, LONGEST),
    order,
    ...(/^-?\d{1,15}$/.test(year) && { year: Number(year) }),
    ...(query.get('author') === '' && { isAuthorless: true }),
    ...(/^\d{1,15}(?:-\d{1,15})?$/.test(event) && { event }),
  };
}

/** The query of the page's address. */
export function queryOf({ words, order, year, isAuthorless, event }: View): URLSearchParams {
  const query = new URLSearchParams();
  if (words !== '') query.set('q', words);
  if (year !== undefined) query.set('year', String(year));
  if (isAuthorless) query.set('author', '');
  if (event !== undefined) query.set('event', event);
  if (order !== ALL.order) query.set('sort', order);
  return query;
}
