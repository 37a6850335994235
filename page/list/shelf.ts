// Owns: which books stand where in the order that is shown: pages of it, requested when they come into sight, and
// forgotten when there are too many.

import type { Book } from '../../client/src/book.ts';
import type { Page, Search } from '../../client/src/search.ts';
import type { Session } from '../catalogue/session.ts';

/** Books of a page. */
const PAGE = 100;

/** Pages that are kept: a book takes some 300 bytes. */
const KEPT = 60;

/** Requests at a time: a browser has six connections to a host, and saving must not wait for reading. */
const AT_ONCE = 3;

/** Milliseconds before a page that failed is requested again. */
const RETRY_PAUSE = 2000;

/** What a search has found. */
export interface Found {
  readonly search: Search;
  /** Of the page that was asked for, or of the last one. */
  readonly index: number;
  readonly page: Omit<Page, 'books'> & { readonly books: Book[] };
}

export class Shelf {
  /** Books that are found; a lower bound while the service cannot count them in time. */
  total = 0;
  isCounted = true;
  /** The search whose books stand here. */
  shown: Search = {};
  /** About how many books cannot be found yet. */
  unindexed = 0;
  /** Called when books have arrived: those from one place up to before another. */
  onBooks: (from: number, to: number) => void = () => {};
  readonly #session: Session;
  readonly #pages = new Map<number, Book[]>();
  readonly #requests = new Map<number, AbortController>();
  /** Places of books that have been removed since the search began: later ones have moved up in the service. */
  readonly #removed: number[] = [];
  /** Books that have changed, and when: an answer may be older. */
  readonly #changed = new Map<number, { readonly book: Book; readonly at: number }>();
  #wanted: readonly [from: number, to: number] = [0, 0];

  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * Reads what another search finds. The books that stand here stay.
   * @param place that is in sight.
   * @throws CatalogueError; the signal's reason
   */
  async find(search: Search, place: number, signal: AbortSignal): Promise<Found> {
    const index = Math.floor(place / PAGE);
    const page = await this.#read(search, index * PAGE, signal);
    if (page.books.length > 0 || index === 0) return { search, index, page };
    const last = Math.max(0, Math.floor(((page.total ?? 0) - 1) / PAGE)); // the search finds fewer books than before
    return { search, index: last, page: await this.#read(search, last * PAGE, signal) };
  }

  /** Puts what was found in the place of the books that stand here. */
  show({ search, index, page }: Found): void {
    for (const request of this.#requests.values()) request.abort();
    this.#requests.clear();
    this.#pages.clear();
    this.#removed.length = 0;
    this.shown = search;
    this.#pages.set(index, page.books);
    this.isCounted = page.total !== undefined;
    this.total = page.total ?? 0;
    if (!this.isCounted) this.#extend(index, page);
    this.unindexed = page.unindexed;
  }

  /** A page of the service has fewer books if they are long (rule F4): the others are then requested, too. */
  #read(search: Search, offset: number, signal: AbortSignal, count = true) {
    return this.#session.call(async (catalogue) => {
      const began = performance.now();
      const first = await catalogue.page({ ...search, offset, limit: PAGE }, { signal, count });
      const books = [...first.books];
      let { next } = first;
      while (next !== undefined && books.length < PAGE) {
        const rest = { ...search, offset: offset + books.length, limit: PAGE - books.length };
        const more = await catalogue.page(rest, { signal });
        books.push(...more.books);
        next = more.next;
      }
      return { ...first, books: books.map((book) => this.#newerThan(began, book)), next };
    });
  }

  /** Without a count, the list ends a page after the last known book, as long as others follow. */
  #extend(index: number, { books, next }: Pick<Page, 'books' | 'next'>): void {
    const end = index * PAGE + books.length;
    this.total = Math.max(this.total, next === undefined ? end : end + PAGE);
    if (next === undefined) this.isCounted = true;
  }

  /** @returns undefined if it is not known yet. */
  at(place: number): Book | undefined {
    return this.#pages.get(Math.floor(place / PAGE))?.[place % PAGE];
  }

  placeOf(id: number): number | undefined {
    for (const [index, books] of this.#pages) {
      const at = books.findIndex((book) => book.id === id);
      if (at >= 0) return index * PAGE + at;
    }
    return undefined;
  }

  /** The book has changed; it keeps its place, so that nothing moves under the reader. */
  replace(id: number, book: Book): void {
    this.#changed.set(id, { book, at: performance.now() });
    const place = this.placeOf(id);
    const books = place === undefined ? undefined : this.#pages.get(Math.floor(place / PAGE));
    if (place !== undefined && books !== undefined) books[place % PAGE] = book;
  }

  /** @returns the book as it was changed while an answer with it was on its way. */
  #newerThan(began: number, book: Book): Book {
    const changed = this.#changed.get(book.id);
    return changed !== undefined && changed.at >= began ? changed.book : book;
  }

  /** The service no longer has the book; its row stays in its place. */
  remove(id: number): void {
    const place = this.placeOf(id);
    if (place !== undefined) this.#removed.push(place);
  }

  /** A book that was removed is stored again, with another id. It is shown in its old place. */
  putBack(id: number, book: Book): void {
    const at = this.#removed.indexOf(this.placeOf(id) ?? -1);
    if (at >= 0) this.#removed.splice(at, 1);
    this.replace(id, book);
  }

  /** Requests the books of these places that are not known. Requests for places far away are given up. */
  want(from: number, to: number): void {
    this.#wanted = [from, to];
    const first = Math.max(0, Math.floor(from / PAGE));
    const last = Math.min(Math.floor((this.total - 1) / PAGE), Math.floor(to / PAGE));
    for (const [index, request] of this.#requests) {
      if (index >= first - 1 && index <= last + 1) continue;
      request.abort();
      this.#requests.delete(index);
    }
    for (let index = first; index <= last; index += 1) {
      const isKnown = this.#pages.has(index) || this.#requests.has(index);
      if (!isKnown && this.#requests.size < AT_ONCE) void this.#request(index);
    }
  }

  async #request(index: number): Promise<void> {
    const request = new AbortController();
    this.#requests.set(index, request);
    const start = index * PAGE;
    const moved = this.#removed.filter((place) => place < start).length;
    try {
      const page = await this.#read(this.shown, start - moved, request.signal, false);
      if (request.signal.aborted) return;
      this.#pages.set(index, page.books);
      if (this.#pages.size > KEPT) this.#forgetOne();
      if (!this.isCounted) this.#extend(index, page);
      else if (page.next === undefined && start + page.books.length < this.total) {
        const { signal } = request; // somebody else has deleted books
        const count = await this.#session.call((catalogue) => catalogue.count(this.shown, { signal }));
        if (signal.aborted) return;
        this.total = count + this.#removed.length;
      }
      this.#requests.delete(index);
      this.onBooks(start, start + PAGE);
    } catch {
      if (request.signal.aborted) return;
      setTimeout(() => {
        if (request.signal.aborted) return; // another one may have taken its place
        this.#requests.delete(index);
        this.want(...this.#wanted);
      }, RETRY_PAUSE);
    }
  }

  /** The page that was requested first, of those out of sight. */
  #forgetOne(): void {
    const [from, to] = this.#wanted.map((place) => Math.floor(place / PAGE)) as [number, number];
    for (const index of this.#pages.keys()) {
      if (index >= from && index <= to) continue;
      this.#pages.delete(index);
      return;
    }
  }
}
