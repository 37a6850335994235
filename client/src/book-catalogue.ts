// Owns: the API that programs call: the operations on books, by the names that are usual in programs.

import { type Book, type BookChanges, type NewBook, storedBook } from './book.ts';
import { readList } from './book-list.ts';
import type {
  BookState,
  CatalogueEvent,
  ChangedBook,
  Changes,
  EventName,
  ListedEvent,
  UndoCheck,
  Undone,
  UndoRequest,
} from './changes.ts';
import { type CallOptions, Connection, type Options } from './connection.ts';
import { CatalogueError } from './errors.ts';
import {
  type ContinueOptions,
  endedImport,
  fileRequest,
  type ImportedFile,
  type ImportFileOptions,
  type ImportInShort,
  type ImportReport,
  reportOf,
} from './imports.ts';
import { type ChangeOptions, KnownBooks } from './known-books.ts';
import {
  booksOf,
  type ChangesOptions,
  changesAfter,
  type EventsOptions,
  elementsAt,
  isNoBook,
} from './pages.ts';
import { type Answer, dataOf, randomKey } from './request.ts';
import {
  filtersOf,
  type Page,
  type PageSearch,
  pageOf,
  queryOf,
  type Search,
  type Suggestion,
} from './search.ts';

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
export type { CallOptions, Options } from './connection.ts';
export { BookChanged, CatalogueError, CursorExpired, WrongCredentials } from './errors.ts';
export type {
  ChangedRow,
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
export type { ChangeOptions } from './known-books.ts';
export type { ChangesOptions, EventsOptions } from './pages.ts';
export type { Page, PageSearch, Search, Suggestion } from './search.ts';

export interface PageOptions extends CallOptions {
  /**
   * Whether all books found are counted. Up to 1,000 are counted even without it. The service gives up after two
   * seconds: then there is no total.
   */
  readonly count?: boolean | undefined;
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

/** Of a request: to read many books for each event costs the service more. */
const EVENTS = 20;

/** A book catalogue service. It logs in when needed. */
export class BookCatalogue {
  readonly #connection: Connection;
  readonly #known: KnownBooks;

  /**
   * @param url of the service, such as `http://127.0.0.1:8080`; with a path if a proxy serves it under one.
   * @throws TypeError or RangeError when an argument is invalid.
   */
  constructor(url: string | URL, options: Options) {
    this.#connection = new Connection(url, options);
    this.#known = new KnownBooks(this.#connection);
  }

  /**
   * Logs in now, unless a login is valid. Every other call does so by itself, when it needs to.
   * @throws WrongCredentials
   */
  logIn(options: CallOptions = {}): Promise<void> {
    return this.#connection.logIn(options);
  }

  /** Stores a new book. It is stored once, however often the request is retried. */
  async create(book: NewBook, options?: CreateOptions): Promise<Book> {
    return this.#known.bookOf(await this.#post('book', JSON.stringify(book), options), 201);
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
    if (typeof wanted !== 'object') return this.#find(wanted, options);
    return booksOf(wanted, (place) => this.page(place, options), options?.signal);
  }

  async #find(id: number, options?: CallOptions): Promise<Book | undefined> {
    const answer = await this.#connection.call({ method: 'GET', url: this.#bookAt(id) }, options);
    return isNoBook(answer) ? undefined : this.#known.bookOf(answer, 200);
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

  /** Up to three corrections of a search that finds nothing, that with the most books first; `sort` and `limit` do not count. */
  suggest(search: Search, options?: CallOptions): Promise<readonly Suggestion[]> {
    return this.#get(this.#connection.at('suggestions', filtersOf(search)), options);
  }

  #page(search: PageSearch, { count = false, ...options }: PageOptions = {}): Promise<Answer> {
    const url = this.#connection.at('books', queryOf(search));
    return this.#connection.call(
      { method: 'GET', url, headers: count ? { prefer: 'count=exact' } : {} },
      options,
    );
  }

  /**
   * Changes the given fields, all at once. The request is retried if needed. Without an expected book, this may undo a
   * change of the same fields that another client makes in between.
   * @returns the book as it is now.
   * @throws CatalogueError with status 404 when no book has the id; BookChanged when it is not the expected one.
   */
  async update(id: number, changes: BookChanges, options?: ChangeOptions): Promise<Book> {
    const body = JSON.stringify(changes);
    const request = { method: 'PUT', url: this.#bookAt(id), isChange: true, body } as const;
    return this.#known.bookOf(await this.#known.change(request, options), 200);
  }

  /**
   * Removes a book. Once it resolves, no book has the id any more.
   * @returns true if this call has removed it, false if there was none; undefined if that is unknown: one attempt got
   * no answer, and the next one found no book.
   * @throws BookChanged when the book is not the expected one.
   */
  async remove(id: number, options?: ChangeOptions): Promise<boolean | undefined> {
    const request = { method: 'DELETE', url: this.#bookAt(id), isChange: true } as const;
    const answer = await this.#known.change(request, options);
    if (isNoBook(answer)) return answer.mayBeDone ? undefined : false;
    dataOf(answer, 200);
    return true;
  }

  /**
   * Every book, ascending by id, in one consistent snapshot. Books are yielded as they arrive. Leaving the loop ends the
   * request. A truncated list throws. The service cuts off a client that reads nothing of it for a minute.
   */
  async *list(options: CallOptions = {}): AsyncGenerator<Book, void, undefined> {
    const request = { method: 'GET', url: this.#connection.at('books') } as const;
    for await (const books of this.#connection.reading(request, options, readList)) yield* books;
  }

  /**
   * All books, ascending by id, and then those that change, in pages. With the cursor of a page, also one of an earlier
   * run: those that have changed since; with `now`, those that change from now on. A book may come again although it has not changed. The loop ends after a page
   * without changes, unless it follows; then such a page comes about every 25 seconds.
   * @throws CursorExpired when the service can no longer continue from the cursor. Begin again without one, and remove
   * the books that do not come from the copy.
   */
  changes(cursor?: string, options: ChangesOptions = {}): AsyncGenerator<Changes, void, undefined> {
    return changesAfter(this.#connection, cursor, options);
  }

  /** The states of a book, the newest first, as far back as the log has them. The list is empty if the log has no such book. */
  history(id: number, options?: CallOptions): AsyncGenerator<BookState, void, undefined> {
    return elementsAt(this.#connection, `book/${encodeURIComponent(id)}/history`, options);
  }

  /** The events that have changed books, the newest first; the last one is the beginning of the log. */
  events(options?: EventsOptions): AsyncGenerator<ListedEvent, void, undefined> {
    return elementsAt(this.#connection, 'events', { limit: EVENTS, ...options });
  }

  /**
   * The books of an event, ascending by id.
   * @throws CatalogueError with status 404 when the log has no such event.
   */
  booksOfEvent(event: EventName, options?: EventsOptions): AsyncGenerator<ChangedBook, void, undefined> {
    return elementsAt(this.#connection, `event/${encodeURIComponent(event)}/books`, options);
  }

  /**
   * Takes changes back once, however often the request is retried: up to 10,000 books in one step. Removed books return
   * under their ids. Books that others have changed since stay as they are.
   * @returns the outcome; of more books, the undo as an event, which the service continues in parts.
   * @throws CatalogueError with status 404 when the log has no such change; 422 when it begins later.
   */
  async undo(changes: UndoRequest, options?: UndoOptions): Promise<Undone | CatalogueEvent> {
    const answer = await this.#post('undo', JSON.stringify(changes), options);
    return dataOf(answer, answer.status === 202 ? 202 : 200) as Undone | CatalogueEvent;
  }

  /**
   * The outcome that `undo` would have now.
   * @throws as `undo`.
   */
  async checkUndo(changes: UndoRequest, options?: CallOptions): Promise<UndoCheck> {
    const url = this.#connection.at('undo', 'dry-run');
    const request = { method: 'POST', url, body: JSON.stringify(changes) } as const;
    return dataOf(await this.#connection.call(request, options), 200) as UndoCheck;
  }

  /**
   * An event; of an undo, how far it is.
   * @throws CatalogueError with status 404 when the log has no such event.
   */
  async event(event: EventName, options?: CallOptions): Promise<CatalogueEvent> {
    return this.#get(this.#connection.at(`event/${encodeURIComponent(event)}`), options);
  }

  /** Continues an undo whose process in the service has ended. @returns and throws as `event`. */
  async continueUndo(event: EventName, options?: CallOptions): Promise<CatalogueEvent> {
    const url = this.#connection.at(`event/${encodeURIComponent(event)}`);
    const request = { method: 'POST', url, isChange: true } as const;
    const answer = await this.#connection.call(request, options);
    return dataOf(answer, answer.status === 202 ? 202 : 200) as CatalogueEvent;
  }

  /**
   * Stores the books of a file once, however often the request is retried; with `dryRun`, checks it.
   * @returns the report on its rows. Its `state` is `open` if the import continues.
   * @throws InvalidFile when no books can be found in it.
   */
  async importFile(file: ImportedFile, options: ImportFileOptions & CallOptions = {}): Promise<ImportReport> {
    const request = fileRequest(this.#connection.at('import'), options, file, randomKey);
    return endedImport(this.#connection, await this.#connection.call(request, options), options);
  }

  /**
   * Reads the file of a check again, to store it, or to check it with other options. Those that are left out stay.
   * @returns and throws as `importFile`; CatalogueError with status 410 when the file is no longer there.
   */
  async continueImport(number: number, options: ContinueOptions & CallOptions = {}): Promise<ImportReport> {
    const request = fileRequest(this.#connection.at(`import/${number}`), options);
    return endedImport(this.#connection, await this.#connection.call(request, options), options);
  }

  /**
   * The report of an import, and how far it is.
   * @throws CatalogueError with status 404 when the service has no such import.
   */
  async import(number: number, options?: CallOptions): Promise<ImportReport> {
    return reportOf(
      await this.#connection.call({ method: 'GET', url: this.#connection.at(`import/${number}`) }, options),
    );
  }

  /** The newest imports, the newest first, without their rows. */
  imports(options?: CallOptions): Promise<readonly ImportInShort[]> {
    return this.#get(this.#connection.at('import'), options);
  }

  async #get<Data>(url: URL, options?: CallOptions): Promise<Data> {
    return dataOf(await this.#connection.call({ method: 'GET', url }, options), 200) as Data;
  }

  /** Sends a request that is carried out once: all attempts have one key. */
  #post(
    path: string,
    body: string,
    { idempotencyKey, ...options }: CreateOptions | UndoOptions = {},
  ): Promise<Answer> {
    const headers = { 'idempotency-key': idempotencyKey ?? randomKey() };
    return this.#connection.call(
      { method: 'POST', url: this.#connection.at(path), isChange: true, body, headers },
      options,
    );
  }

  #bookAt(id: number): URL {
    return this.#connection.at(`book/${encodeURIComponent(id)}`);
  }
}
