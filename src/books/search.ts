// Owns: what a search is, and which input may become one: its filters, its order, its page (rules F2 to F10).
// Independent of HTTP and of stores.

import { type Book, TEXT_NAMES } from './book.ts';
import type { EventKey } from './change-log.ts';
import { readEventKey } from './event-key.ts';
import { indexText, type Term, termsOf } from './words.ts';

/** A page has at most this many books. */
export const LARGEST_PAGE = 1000;

/** Up to here, the number of all books found is known without being asked for (rule F6). */
export const COUNTED = 1000;

/** Suggestions in an answer. */
export const MOST_SUGGESTIONS = 3;

/** Characters, as code points, of a text that is searched for. */
export const LONGEST_TEXT = 1000;

/** Words of one text that is searched for. */
export const MOST_WORDS = 16;

/** Letters before the `*` of a word: fewer would search for a large part of all words. */
const SHORTEST_PREFIX = 3;

/** Sorts before every sign that a key may have after a space. */
const SPACE = ' ';

export type TextField = 'title' | 'author';

/** What books are sorted by (rule F9), each with the field of a book that has such values. */
export const SORT_FIELDS = {
  title: 'title',
  author: 'author',
  year: 'year',
  id: 'id',
  title_without_article: 'title',
  author_last_word: 'author',
  year_unknown_last: 'year',
} as const;
export type SortField = keyof typeof SORT_FIELDS;

export interface SortBy {
  readonly field: SortField;
  readonly isDescending: boolean;
}

/** A word that a book must have: in this field; if undefined, in its title or its author. */
export interface WantedWord extends Term {
  readonly field: TextField | undefined;
}

/** A comparison of a book with a value: of the key of a title or author, or of the year. */
export interface Comparison {
  readonly field: TextField | 'year';
  readonly operator: '=' | '>=' | '<=' | '<' | '<>';
  readonly value: string | number;
}

/** A comparison; or that the log has the book in an event. */
export type Condition = Comparison | { readonly event: EventKey };

/** Which books are searched for: those that have all words and meet all conditions. */
export interface Filters {
  readonly words: readonly WantedWord[];
  readonly conditions: readonly Condition[];
}

/**
 * The order without `sort` (rule F10): first the titles that are the query or begin with it, by title, then the others, by id. A
 * title that is the query sorts before all that begin with it.
 */
export interface Relevance {
  /** The key of the query, the first of the keys that begin with it. */
  readonly key: string;
  /** Above all of them. */
  readonly before: string;
}

/** A book's place in an order: its values in it, its id last. With relevance: group, key within group 0, id. */
export type Place = readonly (string | number)[];

export interface Search extends Filters {
  /** Fields end with the id, so that no two books have the same place. */
  readonly order: Relevance | readonly SortBy[];
  readonly limit: number;
  /** The page begins after this place, and after as many further books. */
  readonly after: Place | undefined;
  readonly offset: number;
  /** Whether all books found are counted, however many they are. */
  readonly isCounted: boolean;
}

/** Some of the books found, in order. */
export interface Page {
  readonly books: readonly Book[];
  /** The place after which the next page begins; undefined if there is none. */
  readonly next: Place | undefined;
  /** By how much the offset of the next page is larger. */
  readonly passed: number;
  /** The number of all books found; undefined if it is not known. */
  readonly total: number | undefined;
  /** About how many books are not searched yet; 0 if all of them are. */
  readonly unindexed: number;
}

/** A filter as it was sent: its name and its value. */
export type SentFilter = readonly [name: string, value: string];

/** A search that may have misspelt words. */
export interface Misspelt {
  readonly filters: readonly SentFilter[];
  /** Milliseconds for which better spellings are looked for. */
  readonly time: number;
}

/** Another value of a filter, with which the search finds books. */
export interface Suggestion {
  readonly parameter: string;
  readonly value: string;
  /** How many; null above COUNTED. */
  readonly books: number | null;
}

/** The best suggestions, and about how many books are not searched yet. */
export interface Suggestions extends Pick<Page, 'unindexed'> {
  readonly suggestions: readonly Suggestion[];
}

export function isRelevance(order: Search['order']): order is Relevance {
  return 'key' in order;
}

/** Whether a search is one for all books in the order of their ids, which needs no index (rule F11). */
export function isOfAllById({ words, conditions, order }: Search): boolean {
  return (
    words.length === 0 &&
    conditions.length === 0 &&
    !isRelevance(order) &&
    order.length === 1 &&
    order[0]?.field === 'id'
  );
}

interface Filter {
  /** Reads a value; undefined if it cannot be read. */
  readonly read: (text: string) => Filters | undefined;
  /** For all documents and help texts, in Markdown. */
  readonly help: string;
  readonly example: string | number;
}

/** By name (rule F2). */
export const FILTERS = {
  q: {
    read: contains(undefined),
    help: `words in the title or the author, up to ${MOST_WORDS}; \`quij*\` is every word that starts so, from three letters on`,
    example: 'cervantes quij*',
  },
  title: {
    read: is('title'),
    help: 'the whole title, ignoring case, accents and punctuation; empty: books without one',
    example: 'don quijote',
  },
  author: {
    read: is('author'),
    help: 'the whole author, in the same way; empty: books without one',
    example: 'Miguel de Cervantes',
  },
  title_contains: { read: contains('title'), help: 'words in the title, as in `q`', example: 'quijote' },
  author_contains: { read: contains('author'), help: 'words in the author, as in `q`', example: 'cervantes' },
  title_starts_with: { read: startsWith('title'), help: 'the start of the title', example: 'don qui' },
  author_starts_with: { read: startsWith('author'), help: 'the start of the author', example: 'miguel' },
  event: {
    read: (text) => {
      const event = readEventKey(text);
      return event === undefined ? undefined : { words: [], conditions: [{ event }] };
    },
    help: 'the books of an event of `GET /events` that are still there',
    example: '31',
  },
  year: { read: isYear('='), help: 'this year; 0: books without one', example: 1605 },
  year_gte: { read: isYear('>='), help: 'this year or later, never 0', example: 1600 },
  year_lte: {
    read: isYear('<='),
    help: 'this year or earlier, never 0; a negative one is before the year 0',
    example: 1699,
  },
} as const satisfies Readonly<Record<string, Filter>>;

/** @returns the texts of a book that a filter is about, if any. */
export function textsOf(filter: string): readonly TextField[] {
  return TEXT_NAMES.filter((name) => filter === 'q' || filter.startsWith(name));
}

/** @returns undefined if there is no such filter, or its value is invalid. */
export function readFilter(name: string, value: string): Filters | undefined {
  const isTooLong = value.length > LONGEST_TEXT && [...value].length > LONGEST_TEXT;
  if (isTooLong || !Object.hasOwn(FILTERS, name)) return undefined;
  return FILTERS[name as keyof typeof FILTERS].read(value);
}

/** @returns all of these filters as one; undefined if one is invalid. */
export function readFilters(sent: readonly SentFilter[]): Filters | undefined {
  const filters = sent.map(([name, value]) => readFilter(name, value));
  return filters.every((read) => read !== undefined) ? allOf(filters) : undefined;
}

export function allOf(filters: readonly Filters[]): Filters {
  return {
    words: filters.flatMap(({ words }) => words),
    conditions: filters.flatMap(({ conditions }) => conditions),
  };
}

/** @param query that is searched for. */
export function relevanceOf(query: string): Relevance {
  const { key } = indexText(query);
  return { key, before: afterAll(query.endsWith('*') ? key : `${key}${SPACE}`) };
}

/**
 * Reads `title`, `-year,title`: names of fields, those with `-` descending.
 * @returns the order, completed by the id; undefined if it is invalid.
 */
export function readSort(text: string): readonly SortBy[] | undefined {
  const order: SortBy[] = [];
  for (const part of text.split(',')) {
    const [, sign, field = ''] = /^([-+ ]?)(\w+)$/.exec(part) ?? [];
    if (!Object.hasOwn(SORT_FIELDS, field) || order.some((other) => other.field === field)) return undefined;
    order.push({ field: field as SortField, isDescending: sign === '-' });
  }
  return completed(order);
}

/** Books with equal values are sorted by id, descending only if all values are. */
export function completed(order: readonly SortBy[]): readonly SortBy[] {
  if (order.some(({ field }) => field === 'id')) return order;
  const isDescending = order.length > 0 && order.every((by) => by.isDescending);
  return [...order, { field: 'id', isDescending }];
}

function contains(field: TextField | undefined): Filter['read'] {
  return (text) => {
    const terms = termsOf(text);
    const isTooShort = ({ word, isPrefix }: Term) => isPrefix && [...word].length < SHORTEST_PREFIX;
    if (terms.length > MOST_WORDS || terms.some(isTooShort)) return undefined;
    return { words: terms.map((term) => ({ ...term, field })), conditions: [] };
  };
}

function is(field: TextField): Filter['read'] {
  return (text) => ({ words: [], conditions: [{ field, operator: '=', value: indexText(text).key }] });
}

function startsWith(field: TextField): Filter['read'] {
  return (text) => {
    const { key } = indexText(text);
    if (key === '') return { words: [], conditions: [] }; // every text begins so
    return {
      words: [],
      conditions: [
        { field, operator: '>=', value: key },
        { field, operator: '<', value: afterAll(key) },
      ],
    };
  };
}

function isYear(operator: '=' | '>=' | '<='): Filter['read'] {
  return (text) => {
    const value = Number(text);
    if (!/^-?\d{1,16}$/.test(text) || !Number.isSafeInteger(value)) return undefined;
    const compared = { field: 'year', operator, value: value === 0 ? 0 : value } as const;
    const known = { field: 'year', operator: '<>', value: 0 } as const; // an unknown year is neither earlier nor later
    return { words: [], conditions: operator === '=' ? [compared] : [compared, known] };
  };
}

/** The first text after all those that begin with this one; not empty, and without U+10FFFF, which no key has. */
function afterAll(beginning: string): string {
  const points = [...beginning];
  const last = (points.pop() as string).codePointAt(0) as number;
  const next = last + 1 === 0xd800 ? 0xe000 : last + 1; // surrogates are no characters
  return `${points.join('')}${String.fromCodePoint(next)}`;
}
