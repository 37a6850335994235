// Owns: which books stand where in the order that is shown: pages of it, requested when they come into sight, and
// forgotten when there are too many.

import type { Book } from '../../client/src/book.ts';
import type { Page, PageSearch, Search } from '../../client/src/search.ts';
import type { Session } from '../catalogue/session.ts';
import { FIELDS } from '../elements/text.ts';
import { isFound } from './view.ts';

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

/** Where a page begins. Only one without an offset gives the cursor of the next. */
type Place = Pick<PageSearch, 'offset' | 'cursor'>;

export class Shelf {
  /** Books that are found; a lower bound while the service cannot count them in time. */
  total = 0;
  isCounted = true;
  /** The search whose books stand here. */
  shown: Search = {};
  /** About how many books cannot be found yet. */
  unindexed = 0;
  /**
   * Called when books that were changed here may have moved others, so that only a search shows which ones stand where the
   * reader has gone.
   */
  onMoved: () => void = () => {};
  /** Called when books have arrived: those from one place up to before another. */
  onBooks: (from: number, to: number) => void = () => {};
  /** Books whose rows stay although they were deleted, or are not found any more as they are now. */
  readonly #left = new Map<number, 'deleted' | 'changed'>();
  readonly #session: Session;
  readonly #pages = new Map<number, Book[]>();
  readonly #requests = new Map<number, AbortController>();
  /** Where pages begin that were requested one after the other, whatever has changed before them: by their index. */
  readonly #cursors = new Map<number, string>();
  /** Books that were changed here may stand elsewhere in the service, or not be found any more. */
  #hasMoved = false;
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
    let index = Math.floor(place / PAGE);
    let page = await this.#read(search, at(index * PAGE), signal);
    // The search finds fewer books than before, and others may delete some meanwhile.
    while (page.books.length === 0 && index > 0) {
      index = Math.max(0, Math.min(index - 1, Math.floor(((page.total ?? 0) - 1) / PAGE)));
      page = await this.#read(search, at(index * PAGE), signal);
    }
    return { search, index, page };
  }

  /** How many books are found now, without the rows that stay for others; and how many those are. */
  get count(): { readonly found: number; readonly deleted: number; readonly changed: number } {
    const deleted = this.#left
      .values()
      .filter((why) => why === 'deleted')
      .toArray().length;
    return { found: this.total - this.#left.size, deleted, changed: this.#left.size - deleted };
  }

  /** Puts what was found in the place of the books that stand here. */
  show({ search, index, page }: Found): void {
    for (const request of this.#requests.values()) request.abort();
    this.#requests.clear();
    this.#pages.clear();
    this.#cursors.clear();
    this.#hasMoved = false;
    this.#left.clear();
    this.shown = search;
    this.#keep(index, page);
    this.isCounted = page.total !== undefined;
    this.total = page.total ?? 0;
    this.#extend(index, page);
    this.unindexed = page.unindexed;
  }

  /** A page of the service has fewer books if they are long (rule F4): the others are then requested separately. */
  #read(
    search: Search,
    from: Place,
    signal: AbortSignal,
    count = true,
    isWanted: (book: Book) => boolean = () => true,
  ) {
    return this.#session.call(async (catalogue) => {
      const began = performance.now();
      const first = await catalogue.page({ ...search, ...from, limit: PAGE }, { signal, count });
      const books = first.books.filter(isWanted);
      let { next } = first;
      while (next !== undefined && books.length < PAGE) {
        const more = await catalogue.page({ ...next, limit: PAGE - books.length }, { signal });
        books.push(...more.books.filter(isWanted));
        next = more.next;
      }
      return { ...first, books: books.map((book) => this.#newerThan(began, book)), next };
    });
  }

  #keep(index: number, { books, next }: Found['page']): void {
    this.#pages.set(index, books);
    if (next?.cursor !== undefined) this.#cursors.set(index + 1, next.cursor);
  }

  /** Without a count, the list ends a page after the last known book, as long as others follow. */
  #extend(index: number, { books, next }: Pick<Page, 'books' | 'next'>): void {
    const end = index * PAGE + books.length;
    if (next !== undefined) this.total = Math.max(this.total, this.isCounted ? end + 1 : end + PAGE);
    else this.total = books.length === 0 ? Math.min(this.total, end) : end; // an empty page may be far behind the end
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
    for (const books of this.#pages.values()) {
      const at = books.findIndex((one) => one.id === id);
      if (at < 0) continue;
      this.#hasMoved ||= mayMove(this.shown, books[at] as Book, book);
      books[at] = book;
      if (isFound(book, this.shown)) this.#left.delete(id);
      else this.#left.set(id, 'changed');
    }
  }

  /** @returns the book as it was changed while an answer with it was on its way. */
  #newerThan(began: number, book: Book): Book {
    const changed = this.#changed.get(book.id);
    return changed !== undefined && changed.at >= began ? changed.book : book;
  }

  /** The service no longer has the book; its row stays in its place. */
  remove(id: number): void {
    if (this.placeOf(id) === undefined) return;
    this.#hasMoved = true;
    this.#left.set(id, 'deleted');
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
    const cursor = this.#cursors.get(index);
    if (cursor === undefined && index > 0 && this.#hasMoved) {
      this.onMoved();
      return;
    }
    const request = new AbortController();
    this.#requests.set(index, request);
    const start = index * PAGE;
    try {
      const from = cursor === undefined ? at(start) : { cursor };
      const isNew = ({ id }: Book) => !this.#changed.has(id) || !this.#standsBefore(index, id);
      const page = await this.#read(this.shown, from, request.signal, false, isNew);
      if (request.signal.aborted) return;
      this.#requests.delete(index);
      this.#extend(index, page);
      if (page.books.length > 0) this.#keep(index, page);
      else if (!this.#pages.has(index - 1) && !this.#requests.has(index - 1)) {
        this.onMoved(); // the pages before may be empty as well: a search counts the books
        return;
      }
      if (this.#pages.size > KEPT) this.#forgetOne();
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

  /** Whether a book is shown in an earlier page, where it stood before it was changed. */
  #standsBefore(index: number, id: number): boolean {
    const place = this.placeOf(id);
    return place !== undefined && place < index * PAGE;
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

/** Whether a change may move a book in a search, or into or out of it. */
function mayMove({ sort = 'id', q = '', ...conditions }: Search, before: Book, after: Book): boolean {
  const isFiltered = q !== '' || Object.values(conditions).some((value) => value !== undefined);
  return FIELDS.some((field) => before[field] !== after[field] && (isFiltered || sort.includes(field)));
}

function at(offset: number): Place {
  return offset === 0 ? {} : { offset };
}
