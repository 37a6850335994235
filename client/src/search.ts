// Owns: a search, its query, and its pages. The service's contract says which search finds which book (rules F2 to F11).

import type { Book } from './book.ts';
import type { EventName } from './changes.ts';
import { CatalogueError } from './errors.ts';
import { type Answer, dataOf, nextOf } from './request.ts';

/** Which books are searched for: those that meet all conditions. Case, accents and punctuation do not count. */
export interface Search {
  /** Words, each in the title or the author. `harr*` is every word that begins with these letters. */
  readonly q?: string | undefined;
  /** The whole title. */
  readonly title?: string | undefined;
  /** The whole author. */
  readonly author?: string | undefined;
  /** Words, each in the title; with `*` as in `q`. */
  readonly title_contains?: string | undefined;
  /** Words, each in the author; with `*` as in `q`. */
  readonly author_contains?: string | undefined;
  /** The beginning of the title. */
  readonly title_starts_with?: string | undefined;
  /** The beginning of the author. */
  readonly author_starts_with?: string | undefined;
  readonly year?: number | undefined;
  /** The first year. */
  readonly year_gte?: number | undefined;
  /** The last year. */
  readonly year_lte?: number | undefined;
  /** The books of an event that are still there. */
  readonly event?: EventName | undefined;
  /**
   * `title`, `author`, `year`, `id`, `title_without_article`, `author_last_word`, `year_unknown_last`, separated by commas; each with
   * `-` for descending.
   */
  readonly sort?: string | undefined;
  /** The most books in all, 1 or more; if undefined, all that are found. */
  readonly limit?: number | undefined;
}

/** A search, and which of its pages: the first one, unless `offset` or `cursor` says otherwise. */
export interface PageSearch extends Search {
  /** The most books of the page, 1 to 1000; 100 by default. */
  readonly limit?: number | undefined;
  /** How many of the books found come before the page. */
  readonly offset?: number | undefined;
  /** Of the `next` of another page with the same `sort`. Not together with `offset`. */
  readonly cursor?: string | undefined;
}

/** Some of the books that a search finds. */
export interface Page {
  readonly books: readonly Book[];
  /** The number of all books found; undefined if they are many and the service has not counted them. */
  readonly total: number | undefined;
  /** The search of the next page; undefined if this page is the last one. */
  readonly next: PageSearch | undefined;
  /** About how many books are not searched yet, because the service still indexes them; usually 0. */
  readonly unindexed: number;
}

/** Another value of a parameter, with which a search finds books that finds none so far. */
export interface Suggestion {
  readonly parameter: Exclude<keyof Search, `year${string}` | 'event' | 'sort' | 'limit'>;
  /** As books spell it. */
  readonly value: string;
  /** How many books the search then finds; `null` above 1,000. */
  readonly books: number | null;
}

/** The most books that the service puts into one page. */
export const LARGEST_PAGE = 1000;

/** Sent even though it is the service's default: without any parameter, the answer is the list. */
const PAGE = 100;

/** The query of a page, without `?`. */
export function queryOf({ limit = PAGE, ...search }: PageSearch): string {
  return queryFrom({ ...search, limit });
}

/** The query of its filters alone. */
export function filtersOf({ sort: _, limit: __, ...filters }: Search): string {
  return queryFrom(filters);
}

/** @param parameters by their names; those that are undefined are left out. */
export function queryFrom(parameters: object): string {
  const sent = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return new URLSearchParams(sent.map(([name, value]) => [name, String(value)])).toString();
}

/**
 * @param search that the answer is for.
 * @throws CatalogueError when the answer is not a page.
 */
export function pageOf(answer: Answer, search: PageSearch): Page {
  const books = dataOf(answer, 200) as readonly Book[];
  const read = (name: string) => answer.headers?.get(name) ?? undefined;
  if (read('link') === undefined) {
    // Without it, there may be more books, and the service may not have searched at all.
    throw new CatalogueError('the answer has no link: it is not a page of books', answer);
  }
  const total = read('x-total-count');
  return {
    books,
    total: total === undefined ? undefined : Number(total),
    next: placeOf(answer, search),
    unindexed: Number(read('x-unindexed-books') ?? 0),
  };
}

function placeOf(answer: Answer, search: PageSearch): PageSearch | undefined {
  const place = nextOf(answer);
  if (place === undefined) return undefined;
  const cursor = place.get('cursor');
  return cursor === null ? { ...search, offset: Number(place.get('offset')) } : { ...search, cursor };
}
