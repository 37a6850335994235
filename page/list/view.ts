// Owns: what the page shows: the words, the filter and the order; as a search, and as the page's address.

import type { Search } from '../../client/src/search.ts';
import type { BookFields } from '../../src/books/book.ts';
import { fold } from '../../src/books/folding.ts';
import { indexText, termsOf } from '../../src/books/words.ts';

/** What a person may choose. `best`: by author, but what fits the words best comes first (rule F10). */
export const ORDERS = [
  ...['best', 'title', '-title', 'title_without_article', 'author', '-author', 'author_last_word'],
  ...['year', '-year', '-id', 'id'],
] as const;
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

export const ALL: View = { words: '', order: 'best' };

/** As the service names them, where that is not the same (rule F9). The books of an author are in the order of their titles. */
const SORTS: Partial<Record<Order, string>> = {
  best: 'author,title',
  author: 'author,title',
  '-author': '-author,-title',
  author_last_word: 'author_last_word,title_without_article',
  year: 'year_unknown_last',
  '-year': '-year_unknown_last',
};

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
 * finds words that begin with it. Years among the words are those of books; a single one only if no text has it.
 */
export function searchesOf({ words, order, year, isAuthorless, event }: View): readonly Search[] {
  const years = year === undefined ? yearsIn(words) : undefined;
  const asText = wordsWanted(words).map((wanted) => ({ ...wanted, year }));
  const asYears =
    years === undefined ? [] : wordsWanted(years.others).map((wanted) => ({ ...wanted, ...filterOf(years) }));
  const searches = years !== undefined && isRange(years) ? [...asYears, ...asText] : [...asText, ...asYears];
  return searches.map((search) => {
    const sort = order === 'best' && search.q ? undefined : (SORTS[order] ?? order);
    return { ...search, sort, event, ...(isAuthorless && { author: '' }) };
  });
}

/** The order that is shown: without words, nothing fits better than others. */
export function shownOrder({ words, order }: View): Order {
  return order === 'best' && words.trim() === '' ? 'author' : order;
}

/** The search whose words may be misspelt, and the words that search for a correction of them; undefined without such words. */
export function correctionOf({
  words,
  year,
  isAuthorless,
  event,
}: View): { readonly search: Search; readonly wordsWith: (value: string) => string } | undefined {
  const years = year === undefined ? yearsIn(words) : undefined;
  const q = (years?.others ?? words).replaceAll('*', ' ').trim();
  if (q === '' || isAuthorless) return undefined;
  const search = { q, year, event, ...(years && filterOf(years)) };
  return { search, wordsWith: (value) => `${value} ${years?.written ?? ''}`.trim() };
}

/** Whether one of these searches finds a book as it is now, if no event is asked for. */
export function isFound(
  book: BookFields,
  { q = '', year, year_gte: from, year_lte: to, author, title_starts_with: start }: Search,
): boolean {
  const [title, writer] = [indexText(book.title), indexText(book.author)];
  const words = `${title.words} ${writer.words}`.split(' ');
  const hasYears = from !== undefined || to !== undefined;
  return (
    (year === undefined || book.year === year) &&
    (!hasYears || (book.year !== 0 && book.year >= (from ?? book.year) && book.year <= (to ?? book.year))) &&
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

/** Years among words. */
export interface Years {
  readonly from?: number;
  readonly to?: number;
  readonly written: string;
  /** The words without them. */
  readonly others: string;
}

// A year may be in quotation marks or brackets, or followed by a sign.
const [BEGIN, END] = ['(?<![^\\s("“])', '(?![^\\s,.;:)"”])'];
const FROM_TO = new RegExp(String.raw`${BEGIN}(\p{Nd}{3,4})\s?[-–—](?:\s?(\p{Nd}{1,4}))?${END}`, 'u');
const BC = String.raw`\p{Nd}{1,4}\s?BCE?`;
const BEFORE_OR_SINCE = new RegExp(
  String.raw`${BEGIN}(before|until|since|after)\s+(${BC}|\p{Nd}{3,4})${END}`,
  'iu',
);
const YEAR = new RegExp(String.raw`${BEGIN}(?:${BC}|\p{Nd}{4})${END}`, 'giu');

/** `1605`, `750 BC`, `1950-1960`, `1950-60`, `1950-`, `before 1900`, in the digits of any script. */
export function yearsIn(words: string): Years | undefined {
  const years = (
    { 0: written, index }: RegExpExecArray,
    from: number | undefined,
    to: number | undefined,
  ) => {
    const rest = `${words.slice(0, index)} ${words.slice(index + written.length)}`
      .replace(/\s+/g, ' ')
      .trim();
    const others = /[\p{L}\p{N}]/u.test(rest) ? rest : '';
    return { ...(from !== undefined && { from }), ...(to !== undefined && { to }), written, others };
  };
  const range = FROM_TO.exec(words);
  if (range !== null) {
    const [, first = '', last = ''] = range;
    const from = Number(fold(first));
    const to = Number(last.length === 2 ? `${fold(first).slice(0, -2)}${fold(last)}` : fold(last));
    if (from > 0 && to >= from) return years(range, from, to);
    if (from > 0 && last.length < 4) return years(range, from, undefined); // its end is still being typed
  }
  const bound = BEFORE_OR_SINCE.exec(words);
  const [, side = '', written = ''] = bound ?? [];
  const year = yearOf(written);
  if (bound !== null && year !== 0) {
    switch (side.toLowerCase()) {
      case 'before':
        return years(bound, undefined, year - 1);
      case 'until':
        return years(bound, undefined, year);
      case 'since':
        return years(bound, year, undefined);
      case 'after':
        return years(bound, year + 1 || 1, undefined);
    }
  }
  for (const one of words.matchAll(YEAR)) {
    const single = yearOf(one[0]);
    if (single < 3000 && (single >= 1000 || single < 0)) return years(one, single, single);
  }
  return undefined;
}

function yearOf(written: string): number {
  const [number = ''] = fold(written).match(/^\d+/) ?? [];
  return /bce?$/i.test(written) ? -number : Number(number);
}

/** Whether these are not a single year. */
export function isRange({ from, to }: Years): boolean {
  return from !== to;
}

function filterOf({ from, to }: Years): Search {
  if (from === to) return { year: from };
  return { ...(from !== undefined && { year_gte: from }), ...(to !== undefined && { year_lte: to }) };
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
