// Owns: what a search is, its query, and the place of its next page. The service's contract says what finds which book
// (rules F2 to F10).

import type { Book } from './book.ts';
import { CatalogueError } from './errors.ts';
import { type Answer, dataOf } from './request.ts';

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
  /** `title`, `author`, `year`, `id`, separated by commas; each with `-` for descending. */
  readonly sort?: string | undefined;
  /** The most books in all, 1 or more; if undefined, all that are found. */
  readonly limit?: number | undefined;
}

/** The most books that the service puts into one page. */
const LARGEST_PAGE = 1000;

/** Some of the books found. */
export interface Page {
  readonly books: readonly Book[];
  /** The query of the next page; undefined if there is none. */
  readonly next: string | undefined;
}

/** The query of the first page, without `?`. */
export function queryOf({ limit = LARGEST_PAGE, ...search }: Search): string {
  const parameters = Object.entries({ ...search, limit: Math.min(limit, LARGEST_PAGE) });
  const sent = parameters.filter(([, value]) => value !== undefined);
  return new URLSearchParams(sent.map(([name, value]) => [name, String(value)])).toString();
}

/** @throws CatalogueError when the answer is not a page. */
export function pageOf(answer: Answer): Page {
  const books = dataOf(answer, 200) as readonly Book[];
  const links = answer.headers?.get('link') ?? undefined;
  if (links === undefined) {
    // Without it, nobody knows whether there are more books, or whether the service has searched at all.
    throw new CatalogueError('the answer has no link: it is not a page of books', answer);
  }
  // Only its query: the path is another one behind a proxy.
  return { books, next: /<[^>?]*\?([^>]*)>; rel="next"/.exec(links)?.[1] };
}
