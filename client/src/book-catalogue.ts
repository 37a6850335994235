// Owns: the API that programs call: the operations on books, by the names that are usual in programs.

import { type Book, type BookChanges, isSameBook, type NewBook, storedBook } from './book.ts';
import { readList } from './book-list.ts';
import {
  type BookState,
  type CatalogueEvent,
  type ChangedBook,
  type Changes,
  changesOf,
  type EventName,
  type ListedEvent,
  type UndoCheck,
  type Undone,
  type UndoRequest,
} from './changes.ts';
import { Deadline } from './deadline.ts';
import { BookChanged, CatalogueError } from './errors.ts';
import {
  type ContinueOptions,
  endOf,
  fileRequest,
  type ImportedFile,
  type ImportFileOptions,
  type ImportInShort,
  type ImportReport,
  reportOf,
} from './imports.ts';
import { type Answer, dataOf, failureOf, isStream, nextOf, type Request, send } from './request.ts';
import { LARGEST_PAGE, type Page, type PageSearch, pageOf, queryOf, type Search } from './search.ts';
import { Session } from './session.ts';

export type { Book, BookChanges, NewBook } from './book.ts';
export type {
  BookState,
  CatalogueEvent,
  Change,
  ChangedBook,
  Changes,
  EventName,
  LeftBook,
  ListedEvent,
  UndoCheck,
  Undone,
  UndoRequest,
} from './changes.ts';
export { BookChanged, CatalogueError, CursorExpired, WrongCredentials } from './errors.ts';
export type {
  ContinueOptions,
  ImportedFile,
  ImportedRow,
  ImportFileOptions,
  ImportInShort,
  ImportOptions,
  ImportReport,
  RefusedRow,
} from './imports.ts';
export { InvalidFile } from './imports.ts';
export type { Page, PageSearch, Search } from './search.ts';

export interface Options {
  readonly username: string;
  readonly password: string;
  /**
   * Milliseconds that a call may take, including its login, all its attempts and the waits between them. For a list,
   * the limit is for its beginning, and then for each of its pieces; for a search, changes, a history and events, for
   * each of their pages. 10,000 by default.
   */
  readonly timeout?: number;
  /**
   * Sends each request, instead of the global `fetch`: through a proxy, with `keepalive`, or to measure it. It is
   * called with a URL, and with a method, headers, body and signal; it rejects if there is no answer.
   */
  readonly fetch?: typeof fetch;
}

/** The options of every call. */
export interface CallOptions {
  /** Aborts the call: it rejects with the signal's reason. A change may be carried out nevertheless. */
  readonly signal?: AbortSignal | undefined;
  /** The request's id in the service's log: up to 128 letters, digits, `_`, `.`, `:` and `-`. */
  readonly requestId?: string | undefined;
}

export interface PageOptions extends CallOptions {
  /**
   * Whether all books found are counted. Up to 1,000 are counted even without it. The service gives up after two
   * seconds: then there is no total.
   */
  readonly count?: boolean | undefined;
}

export interface ChangesOptions extends CallOptions {
  /** Whether the loop continues when there are no more changes, and waits for the next ones, until it is left. */
  readonly follow?: boolean | undefined;
}

export interface EventsOptions extends CallOptions {
  /** The most events of a request, 1 to 100, or books of one, 1 to 1000; 20 and 100 by default. */
  readonly limit?: number | undefined;
}

export interface CreateOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters. Calls with one key and equal books store them once, within 24 hours: a program
   * that is started again repeats its call. By default, each call has its own random key.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface UndoOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters. Equal calls with one key take changes back once, within 24 hours. By default, each
   * call has its own random key.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface ChangeOptions extends CallOptions {
  /** The book as the program last read it. The call takes effect only if the stored book still equals it. */
  readonly expected?: Book;
}

/** Seconds that the service may wait for a change: fewer than most proxies wait for an answer. */
const WAIT = 25;

/** Of a request: what is shown of many books costs the service more. */
const EVENTS = 20;

/** Milliseconds between two requests for changes if the service answers at once that there are none. */
const POLL = 2000;

/** Milliseconds between two requests for the report of an import: doubled each time, up to a longest. */
const FIRST_LOOK = 250;
const LONGEST_LOOK = 2000;

/** Of an answer without a tag, or with one that the service refuses although the book is as it was. */
const ALTERED = 'a proxy changes the header ETag, which makes a change safe';

/** A book catalogue service. It logs in when needed. */
export class BookCatalogue {
  readonly #url: URL;
  readonly #timeout: number;
  readonly #fetch: typeof fetch;
  readonly #session: Session;
  /** Books as the service has answered them, with their tags: a change of one of them need not read it first. */
  readonly #tagged = new WeakMap<Book, { readonly tag: string; readonly answered: Book }>();

  /**
   * @param url of the service, such as `http://127.0.0.1:8080`; with a path if a proxy serves it under one.
   * @throws TypeError or RangeError when an argument is invalid.
   */
  constructor(url: string | URL, options: Options) {
    const { username, password, timeout = 10_000, fetch = (...sent) => globalThis.fetch(...sent) } = options;
    this.#url = new URL(url);
    if (!/^https?:$/.test(this.#url.protocol)) throw new TypeError(`${url} is not an http or https URL`);
    if (this.#url.username || this.#url.password) {
      throw new TypeError('the URL has a username or password: pass them as options');
    }
    if (!(timeout > 0 && timeout < 2 ** 31))
      throw new RangeError('timeout must be 1 to 2147483647 milliseconds');
    if (typeof fetch !== 'function') throw new TypeError('fetch is not a function');
    this.#timeout = timeout;
    this.#fetch = fetch;
    const body = JSON.stringify({ username, password });
    this.#session = new Session({ method: 'POST', url: this.#at('token'), body }, { timeout, fetch });
  }

  /**
   * Logs in now, unless a login is valid. Every other call does so by itself, when it needs to.
   * @throws WrongCredentials
   */
  async logIn({ signal }: CallOptions = {}): Promise<void> {
    const deadline = new Deadline(this.#timeout, signal);
    try {
      const { token, answer } = await this.#session.login(deadline);
      if (token === undefined) throw failureOf(answer);
    } finally {
      deadline.close();
    }
  }

  /** Stores a new book. It is stored once, however often the request is retried. */
  async create(book: NewBook, options?: CreateOptions): Promise<Book> {
    return this.#bookOf(await this.#post('book', JSON.stringify(book), options), 201);
  }

  /**
   * Stores up to 10,000 new books in one step: all of them, or none if the call fails.
   * @returns the books with their ids, in the same order.
   */
  async createAll(books: readonly NewBook[], options?: CreateOptions): Promise<Book[]> {
    const body = JSON.stringify(books);
    const ids = dataOf(await this.#post('books', body, options), 201) as readonly number[];
    const sent: NewBook[] = JSON.parse(body); // the caller may have changed its own meanwhile
    return sent.map((book, index) => storedBook(ids[index] as number, book));
  }

  /** @returns undefined when no book has the id. */
  find(id: number, options?: CallOptions): Promise<Book | undefined>;
  /**
   * The books that a search finds, in its order. They are requested in pages, the next one when the loop needs it, and
   * each page is retried if needed. Together, the pages are not a snapshot: a book that changes meanwhile may be
   * missing or come twice.
   */
  find(search: Search, options?: CallOptions): AsyncGenerator<Book, void, undefined>;
  find(wanted: number | Search, options?: CallOptions) {
    return typeof wanted === 'object' ? this.#search(wanted, options) : this.#find(wanted, options);
  }

  async #find(id: number, options?: CallOptions): Promise<Book | undefined> {
    const answer = await this.#call({ method: 'GET', url: this.#bookAt(id) }, options);
    return isNoBook(answer) ? undefined : this.#bookOf(answer, 200);
  }

  async *#search(search: Search, options?: CallOptions): AsyncGenerator<Book, void, undefined> {
    let left = search.limit ?? Number.POSITIVE_INFINITY;
    let place: PageSearch | undefined = { ...search, limit: Math.min(left, LARGEST_PAGE) };
    while (place !== undefined) {
      const { books, next }: Page = await this.page(place, options);
      for (const book of books.slice(0, left)) {
        options?.signal?.throwIfAborted();
        yield book;
      }
      left -= books.length;
      place = left > 0 ? next : undefined;
    }
  }

  /** One page of a search. Its `next` is the search of the page after it. */
  async page(search: PageSearch, options?: PageOptions): Promise<Page> {
    const asked = { ...search }; // the caller may change its own meanwhile
    return pageOf(await this.#page(asked, options), asked);
  }

  /**
   * How many books a search finds, whatever its `limit`.
   * @throws CatalogueError when the service cannot count them in time: they are many.
   */
  async count(search: Search, options?: CallOptions): Promise<number> {
    const asked = { ...search, sort: 'id', limit: 1 }; // in the order that costs the least
    const answer = await this.#page(asked, { ...options, count: true });
    const { total } = pageOf(answer, asked);
    if (total === undefined) throw new CatalogueError('counting takes the service too long', answer);
    return total;
  }

  #page(search: PageSearch, { count = false, ...options }: PageOptions = {}): Promise<Answer> {
    const url = this.#at('books', queryOf(search));
    return this.#call({ method: 'GET', url, headers: count ? { prefer: 'count=exact' } : {} }, options);
  }

  /**
   * Changes the given fields, all at once. The request is retried if needed. Without an expected book, this may undo a
   * change of the same fields that another client makes in between.
   * @returns the book as it is now.
   * @throws CatalogueError with status 404 when no book has the id; BookChanged when it is not the expected one.
   */
  async update(id: number, changes: BookChanges, options?: ChangeOptions): Promise<Book> {
    const request = {
      method: 'PUT',
      url: this.#bookAt(id),
      isChange: true,
      body: JSON.stringify(changes),
    } as const;
    return this.#bookOf(await this.#change(request, options), 200);
  }

  /**
   * Removes a book. Once it resolves, no book has the id any more.
   * @returns true if this call has removed it, false if there was none; undefined if that is unknown: one attempt got
   * no answer, and the next one found no book.
   * @throws BookChanged when the book is not the expected one.
   */
  async remove(id: number, options?: ChangeOptions): Promise<boolean | undefined> {
    const request = { method: 'DELETE', url: this.#bookAt(id), isChange: true } as const;
    const answer = await this.#change(request, options);
    if (isNoBook(answer)) return answer.mayBeDone ? undefined : false;
    dataOf(answer, 200);
    return true;
  }

  /**
   * Every book, ascending by id, in one consistent snapshot. Books are yielded as they arrive. Leaving the loop ends the
   * request. A truncated list throws. The service cuts off a client that reads nothing of it for a minute.
   */
  async *list({ signal, requestId }: CallOptions = {}): AsyncGenerator<Book, void, undefined> {
    const deadline = new Deadline(this.#timeout, signal);
    try {
      const request = { method: 'GET', url: this.#at('books'), isStreamed: true } as const;
      const answer = await this.#send(request, deadline, requestId);
      dataOf(answer, 200);
      for await (const books of readList(answer, deadline)) yield* books;
    } finally {
      deadline.close();
    }
  }

  /**
   * All books, ascending by id, and then those that change, in pages. With the cursor of a page, also one of an earlier
   * run: those that have changed since; with `now`, those that change from now on. A book may come again although it has not changed. The loop ends after a page
   * without changes, unless it follows; then such a page comes about every 25 seconds.
   * @throws CursorExpired when the service can no longer continue from the cursor. Begin again without one, and remove
   * the books that do not come from the copy.
   */
  async *changes(
    cursor?: string,
    { follow = false, ...options }: ChangesOptions = {},
  ): AsyncGenerator<Changes, void, undefined> {
    let page: Changes | undefined;
    do {
      page = await this.#changes(page?.cursor ?? cursor, follow ? WAIT : 0, options);
      options.signal?.throwIfAborted();
      yield page;
    } while (follow || page.changes.length > 0);
  }

  #changes(cursor: string | undefined, wait: number, options: CallOptions): Promise<Changes> {
    const url = this.#at('changes', queryOf({ limit: LARGEST_PAGE, cursor }));
    const work: Work<Changes> = async (send, deadline) => {
      const page = changesOf(await send({ method: 'GET', url, wait }));
      const early = POLL - deadline.spent;
      // The service stops, has too many that wait, or is behind a proxy that removes the header.
      if (wait > 0 && page.changes.length === 0 && early > 0) await deadline.pause(early);
      return page;
    };
    return this.#within(options, work, wait);
  }

  /** The states of a book, the newest first, as far back as the log has them. None if the log has no such book. */
  history(id: number, options?: CallOptions): AsyncGenerator<BookState, void, undefined> {
    return this.#elements(`book/${encodeURIComponent(id)}/history`, undefined, options);
  }

  /** The events that have changed books, the newest first; the last one is the beginning of the log. */
  events({ limit = EVENTS, ...options }: EventsOptions = {}): AsyncGenerator<ListedEvent, void, undefined> {
    return this.#elements('events', limit, options);
  }

  /**
   * The books of an event, ascending by id.
   * @throws CatalogueError with status 404 when the log has no such event.
   */
  booksOfEvent(
    event: EventName,
    { limit, ...options }: EventsOptions = {},
  ): AsyncGenerator<ChangedBook, void, undefined> {
    return this.#elements(`event/${encodeURIComponent(event)}/books`, limit, options);
  }

  /** The elements of all pages, which are requested when the loop needs them. There are none of a book that never was. */
  async *#elements<Element>(
    path: string,
    limit: number | undefined,
    options?: CallOptions,
  ): AsyncGenerator<Element, void, undefined> {
    let cursor: string | undefined;
    do {
      const url = this.#at(path, queryOf({ limit, cursor }));
      const answer = await this.#call({ method: 'GET', url }, options);
      if (isNoBook(answer)) return;
      for (const element of dataOf(answer, 200) as readonly Element[]) {
        options?.signal?.throwIfAborted();
        yield element;
      }
      cursor = nextOf(answer)?.get('cursor') ?? undefined;
    } while (cursor !== undefined);
  }

  /**
   * Takes changes back once, however often the request is retried: up to 10,000 books in one step. Removed books return
   * under their ids. Books that others have changed since stay as they are.
   * @returns what was taken back; of more books, the undo as an event: the service continues it in parts.
   * @throws CatalogueError with status 404 when the log has no such change; 422 when it begins later.
   */
  async undo(changes: UndoRequest, options?: UndoOptions): Promise<Undone | CatalogueEvent> {
    const answer = await this.#post('undo', JSON.stringify(changes), options);
    return dataOf(answer, answer.status === 202 ? 202 : 200) as Undone | CatalogueEvent;
  }

  /**
   * What `undo` would do now.
   * @throws as `undo`.
   */
  async checkUndo(changes: UndoRequest, options?: CallOptions): Promise<UndoCheck> {
    const request = {
      method: 'POST',
      url: this.#at('undo', 'dry-run'),
      body: JSON.stringify(changes),
    } as const;
    return dataOf(await this.#call(request, options), 200) as UndoCheck;
  }

  /**
   * An event; of an undo, how far it is.
   * @throws CatalogueError with status 404 when the log has no such event.
   */
  async event(event: EventName, options?: CallOptions): Promise<CatalogueEvent> {
    const request = { method: 'GET', url: this.#at(`event/${encodeURIComponent(event)}`) } as const;
    return dataOf(await this.#call(request, options), 200) as CatalogueEvent;
  }

  /** Continues an undo whose process in the service has ended. @returns and throws as `event`. */
  async continueUndo(event: EventName, options?: CallOptions): Promise<CatalogueEvent> {
    const url = this.#at(`event/${encodeURIComponent(event)}`);
    const request = { method: 'POST', url, isChange: true } as const;
    const answer = await this.#call(request, options);
    return dataOf(answer, answer.status === 202 ? 202 : 200) as CatalogueEvent;
  }

  /**
   * Stores the books of a file once, however often the request is retried; with `dryRun`, checks it.
   * @returns the report of what becomes of its rows. Its `state` is `open` if the import continues.
   * @throws InvalidFile when no books can be found in it.
   */
  async importFile(file: ImportedFile, options: ImportFileOptions & CallOptions = {}): Promise<ImportReport> {
    const request = fileRequest(this.#at('import'), options, file, randomKey);
    return this.#ended(await this.#call(request, options), options);
  }

  /**
   * Reads the file of a check again, to store it, or to check it with other options. Those that are left out stay.
   * @returns and throws as `importFile`; CatalogueError with status 410 when the file is no longer there.
   */
  async continueImport(number: number, options: ContinueOptions & CallOptions = {}): Promise<ImportReport> {
    const request = fileRequest(this.#at(`import/${number}`), options);
    return this.#ended(await this.#call(request, options), options);
  }

  /**
   * The report of an import, and how far it is.
   * @throws CatalogueError with status 404 when the service has no such import.
   */
  async import(number: number, options?: CallOptions): Promise<ImportReport> {
    return reportOf(await this.#call({ method: 'GET', url: this.#at(`import/${number}`) }, options));
  }

  /** The newest imports, the newest first, without their rows. */
  async imports(options?: CallOptions): Promise<readonly ImportInShort[]> {
    const answer = await this.#call({ method: 'GET', url: this.#at('import') }, options);
    return dataOf(answer, 200) as readonly ImportInShort[];
  }

  /** The report in an answer, or at the end of the import if the caller waits for it. */
  async #ended(answer: Answer, { wait, ...options }: ContinueOptions & CallOptions): Promise<ImportReport> {
    let report = reportOf(answer);
    for (let pause = FIRST_LOOK; wait && report.state === 'open'; pause = Math.min(2 * pause, LONGEST_LOOK)) {
      const request = { method: 'GET', url: this.#at(`import/${report.import}`) } as const;
      const look: Work<Answer> = async (send, deadline) => {
        await deadline.pause(pause);
        return send(request);
      };
      report = endOf(await this.#within({ ...options, timeout: undefined }, look, pause / 1000));
    }
    return report;
  }

  /** Sends what is carried out once: all attempts have one key. */
  #post(
    path: string,
    body: string,
    { idempotencyKey, ...options }: CreateOptions | UndoOptions = {},
  ): Promise<Answer> {
    const headers = { 'idempotency-key': idempotencyKey ?? randomKey() };
    return this.#call({ method: 'POST', url: this.#at(path), isChange: true, body, headers }, options);
  }

  /** Sends a change, or finds that the book is not the expected one, and has the answer that says the outcome. */
  async #change(request: Request, options: ChangeOptions = {}): Promise<Answer> {
    const { expected, ...others } = options;
    if (expected === undefined) {
      // Nothing would protect the book, against what the caller asks for.
      if ('expected' in options) throw new TypeError('expected is undefined: leave it out, or pass a book');
      return this.#call(request, others);
    }
    return this.#within(others, async (send) => {
      const read = { method: 'GET', url: request.url } as const;
      let tag = this.#tagOf(expected);
      if (tag === undefined) {
        const before = await send(read);
        if (before.status !== 200) return before;
        const stored = this.#bookOf(before, 200);
        if (!isSameBook(stored, expected)) throw new BookChanged('Precondition failed', stored, before);
        tag = this.#tagOf(stored);
        if (tag === undefined) throw new CatalogueError(ALTERED, before);
      }
      const answer = await send({ ...request, headers: { 'if-match': tag } });
      if (answer.status !== 412) return answer;
      const after = await send(read);
      if (isNoBook(after)) return { ...after, mayBeDone: answer.mayBeDone };
      const current = after.status === 200 && after.data !== undefined ? this.#bookOf(after, 200) : undefined;
      const changes = typeof request.body === 'string' ? JSON.parse(request.body) : {};
      const wanted = { ...expected, ...changes, id: expected.id };
      const isAsWanted = current !== undefined && request.body !== undefined && isSameBook(current, wanted);
      if (isAsWanted && answer.mayBeDone) return after;
      // Some runtimes repeat a request by themselves: its first attempt may have made the book so.
      const mayBeDone = answer.mayBeDone || isAsWanted;
      if (current !== undefined && isSameBook(current, expected))
        throw new CatalogueError(ALTERED, { ...after, mayBeDone });
      throw new BookChanged(answer.message, current, { ...answer, mayBeDone });
    });
  }

  /**
   * If-Match takes only strong tags. A proxy that compresses an answer makes its tag a weak one, although the service
   * gives each content its own tag. What else such proxies add, the service ignores.
   */
  #bookOf(answer: Answer, status: number): Book {
    const book = dataOf(answer, status) as Book;
    const tag = answer.headers?.get('etag')?.replace(/^W\//, '');
    if (tag !== undefined) this.#tagged.set(book, { tag, answered: { ...book } });
    return book;
  }

  /** @returns undefined for a book that is not known from an answer, or that the caller has changed since. */
  #tagOf(book: Book): string | undefined {
    const { tag, answered } = this.#tagged.get(book) ?? {};
    return answered !== undefined && isSameBook(book, answered) ? tag : undefined;
  }

  /** A call that ends with its answer. */
  #call(request: Request, options?: CallOptions & Pick<ContinueOptions, 'timeout'>): Promise<Answer> {
    return this.#within(options, (send) => send(request));
  }

  /**
   * A call of several requests, with one timeout for all of them.
   * @param wait seconds that the service may wait within the call.
   */
  async #within<Result>(
    { signal, requestId, timeout = this.#timeout }: CallOptions & Pick<ContinueOptions, 'timeout'> = {},
    work: Work<Result>,
    wait = 0,
  ): Promise<Result> {
    const deadline = new Deadline(timeout + wait * 1000, signal);
    try {
      return await work((request) => this.#send(request, deadline, requestId), deadline);
    } finally {
      deadline.close();
    }
  }

  /** A token that is refused, such as one from before the service was restarted, is replaced once. */
  async #send(request: Request, deadline: Deadline, requestId: string | undefined): Promise<Answer> {
    let mayBeDone = false;
    for (let isSecond = false; ; isSecond = true) {
      const { token, answer: refused } = await this.#session.login(deadline);
      const answer =
        token === undefined
          ? refused
          : await send(request, { deadline, fetch: this.#fetch, token, requestId });
      mayBeDone ||= answer.mayBeDone;
      const isLast = isSecond || isStream(request.body);
      if (token === undefined || answer.message !== 'Invalid token' || isLast)
        return { ...answer, mayBeDone };
      this.#session.discard(token);
    }
  }

  #at(path: string, query?: string): URL {
    const url = new URL(this.#url);
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${path}`;
    if (query !== undefined) url.search = query;
    return url;
  }

  #bookAt(id: number): URL {
    return this.#at(`book/${encodeURIComponent(id)}`);
  }
}

/** What a call does with its requests. */
type Work<Result> = (send: (request: Request) => Promise<Answer>, deadline: Deadline) => Promise<Result>;

/** Distinguishes a missing book from the 404 of an unknown path, which means that the URL is wrong. */
function isNoBook({ status, message }: Answer): boolean {
  return status === 404 && message === 'Book not found';
}

/** 128 bits. `crypto.randomUUID` is missing on pages without TLS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
