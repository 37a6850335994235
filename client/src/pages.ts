// Owns: loops over lists that come in pages: the books that a search finds, changes, and other elements of the log. The next page is
// requested when the loop needs it.

import type { Book } from './book.ts';
import { type Changes, changesOf } from './changes.ts';
import type { CallOptions, Connection, Work } from './connection.ts';
import { type Answer, dataOf, nextOf } from './request.ts';
import { LARGEST_PAGE, type Page, type PageSearch, queryOf, type Search } from './search.ts';

export interface ChangesOptions extends CallOptions {
  /** Whether the loop continues when there are no more changes, and waits for the next ones, until it is left. */
  readonly follow?: boolean | undefined;
}

export interface EventsOptions extends CallOptions {
  /** The most events of a request, 1 to 100, or books of one, 1 to 1000; 20 and 100 by default. */
  readonly limit?: number | undefined;
}

/** Seconds that the service may wait for a change: fewer than most proxies wait for an answer. */
const WAIT = 25;

/** The cursor of the present moment, after which there is no change yet. */
const NOW = 'now';

/** Milliseconds between two requests for changes if the service answers at once without any. */
const POLL = 2000;

/** @param pageOf requests a page. */
export async function* booksOf(
  search: Search,
  pageOf: (search: PageSearch) => Promise<Page>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Book, void, undefined> {
  let left = search.limit ?? Number.POSITIVE_INFINITY;
  let place: PageSearch | undefined = { ...search, limit: Math.min(left, LARGEST_PAGE) };
  while (place !== undefined) {
    const { books, next }: Page = await pageOf(place);
    for (const book of books.slice(0, left)) {
      signal?.throwIfAborted();
      yield book;
    }
    left -= books.length;
    place = left > 0 ? next : undefined;
  }
}

export async function* changesAfter(
  connection: Connection,
  cursor: string | undefined,
  { follow = false, ...options }: ChangesOptions,
): AsyncGenerator<Changes, void, undefined> {
  let page: Changes | undefined;
  do {
    const after = page?.cursor ?? cursor;
    page = await changesPage(connection, after, follow && after !== NOW ? WAIT : 0, options);
    options.signal?.throwIfAborted();
    yield page;
  } while (follow || page.changes.length > 0);
}

/** @param wait seconds that the service may wait for a change. */
function changesPage(
  connection: Connection,
  cursor: string | undefined,
  wait: number,
  options: CallOptions,
): Promise<Changes> {
  const url = connection.at('changes', queryOf({ limit: LARGEST_PAGE, cursor }));
  const work: Work<Changes> = async (send, deadline) => {
    const page = changesOf(await send({ method: 'GET', url, wait }));
    const early = POLL - deadline.spent;
    // The service stops, has too many that wait, or is behind a proxy that removes the header.
    if (wait > 0 && page.changes.length === 0 && early > 0) await deadline.pause(early);
    return page;
  };
  return connection.within(options, work, wait);
}

/** A list of the log. It is empty for a book that the log does not have. */
export async function* elementsAt<Element>(
  connection: Connection,
  path: string,
  { limit, ...options }: EventsOptions = {},
): AsyncGenerator<Element, void, undefined> {
  let cursor: string | undefined;
  do {
    const url = connection.at(path, queryOf({ limit, cursor }));
    const answer = await connection.call({ method: 'GET', url }, options);
    if (isNoBook(answer)) return;
    for (const element of dataOf(answer, 200) as readonly Element[]) {
      options.signal?.throwIfAborted();
      yield element;
    }
    cursor = nextOf(answer)?.get('cursor') ?? undefined;
  } while (cursor !== undefined);
}

/** Distinguishes a missing book from the 404 of an unknown path, which means that the URL is wrong. */
export function isNoBook({ status, message }: Answer): boolean {
  return status === 404 && message === 'Book not found';
}
