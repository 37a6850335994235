// Owns: the operations of the API on one book, on those that are searched for, and on all books.
// Each kind of call has its own batches; a store never gets a single call.

import { hash } from 'node:crypto';
import type { Times } from '../times.ts';
import { Batches, type BatchFigures } from './batches.ts';
import { type Book, type BookChanges, type BookFields, completeFields } from './book.ts';
import type { Condition } from './condition.ts';
import type { Page, Search } from './search.ts';
import {
  type BookGroup,
  type BookList,
  type BookStore,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type GroupOutcome,
  type LongSearch,
  weightOf,
  weightOfAnswer,
} from './store.ts';

export class Catalogue {
  readonly #store: BookStore;
  readonly #finds: Batches<number, Book | undefined>;
  readonly #inserts: Batches<BookFields, number>;
  readonly #keyed: Batches<BookGroup, GroupOutcome>;
  readonly #bulk: Batches<BookGroup, GroupOutcome>;
  readonly #updates: Batches<BookUpdate, Book | undefined>;
  readonly #removals: Batches<number, boolean>;
  /** Apart, so that changes without a condition take no longer. */
  readonly #conditionals: Batches<ConditionalChange, ConditionalOutcome>;
  readonly #searches: Batches<Search, Page>;
  /** Apart, so that no short search waits for a long one. */
  readonly #longSearches: Batches<LongSearch, Page>;

  constructor(store: BookStore, times: Times['books']) {
    this.#store = store;
    const { limits } = store;
    const placeOf = (id: number) => store.placeOf?.(id);
    this.#finds = new Batches(
      (ids: readonly number[], deadline) => store.find(ids, deadline),
      limits.find,
      times,
      undefined,
      weightOfAnswer,
      placeOf,
    );
    this.#inserts = new Batches(
      (books: readonly BookFields[], deadline) => store.insert(books, deadline),
      limits.insert,
      times,
      weightOf,
    );
    const insertGroups = (groups: readonly BookGroup[], deadline: number) => {
      return store.insertGroups(groups, deadline);
    };
    this.#keyed = new Batches(insertGroups, limits.keyed, times, weightOfGroup);
    this.#bulk = new Batches(insertGroups, limits.bulk, times);
    this.#updates = new Batches(
      (updates, deadline) => store.update(updates, deadline),
      limits.update,
      times,
      ({ changes }) => weightOf(changes),
      weightOfAnswer,
      ({ id }) => placeOf(id),
    );
    this.#removals = new Batches(
      (ids: readonly number[], deadline) => store.remove(ids, deadline),
      limits.remove,
      times,
      undefined,
      undefined,
      placeOf,
    );
    this.#conditionals = new Batches(
      (changes, deadline) => store.changeIf(changes, deadline),
      limits.conditional,
      times,
      ({ changes }) => weightOf(changes ?? {}),
      weightOfAnswer,
      ({ id }) => placeOf(id),
    );
    this.#longSearches = new Batches(
      (searches) => Promise.all(searches.map((search) => search())),
      limits.search,
      times,
    );
    this.#searches = new Batches(
      async (searches, deadline) => {
        // Many that turn out to be long get less each, so that a short one among them does not wait for long.
        const most = Math.min(times.shortSearch, times.shortSearches / this.#searches.waiting);
        const found = await store.search(searches, deadline, most);
        return found.map((one) => (typeof one === 'function' ? this.#longSearches.call(one) : one));
      },
      limits.search,
      times,
    );
  }

  /** @returns undefined if no book has the id. */
  find(id: number): Promise<Book | undefined> {
    return this.#finds.call(id);
  }

  /** Stores a new book; a field that `sent` leaves out is empty (rule 1). */
  async create(sent: BookChanges): Promise<Book> {
    const fields = completeFields(sent);
    const id = await this.#inserts.call(fields);
    return { id, ...fields };
  }

  /**
   * Stores a new book, unless an earlier call with this key has stored it.
   * @returns the book and whether an earlier call has stored it; `conflict` if the key was used for something else.
   */
  async createOnce(
    sent: BookChanges,
    key: string,
  ): Promise<{ readonly book: Book; readonly isReplay: boolean } | 'conflict'> {
    const fields = completeFields(sent);
    const books = [fields];
    const outcome = await this.#keyed.call({
      books,
      once: { key, fingerprint: fingerprintOf('book', books) },
    });
    if (outcome === 'conflict') return outcome;
    return { book: { id: outcome.ids[0] as number, ...fields }, isReplay: outcome.isReplay };
  }

  /**
   * Stores new books, all or none of them.
   * @param key as in `createOnce`, if there is one.
   */
  createAll(sent: readonly BookChanges[], key: string | undefined): Promise<GroupOutcome> {
    const books = sent.map(completeFields);
    const once = key === undefined ? undefined : { key, fingerprint: fingerprintOf('books', books) };
    return this.#bulk.call({ books, once });
  }

  /** @returns the book as this change left it, undefined if no book has the id. */
  update(id: number, changes: BookChanges): Promise<Book | undefined> {
    return this.#updates.call({ id, changes });
  }

  /** @returns whether this call removed the book. */
  remove(id: number): Promise<boolean> {
    return this.#removals.call(id);
  }

  /** Changes a book if it meets a condition. */
  updateIf(id: number, changes: BookChanges, condition: Condition): Promise<ConditionalOutcome> {
    return this.#conditionals.call({ id, condition, changes });
  }

  /** Removes a book if it meets a condition. */
  removeIf(id: number, condition: Condition): Promise<ConditionalOutcome> {
    return this.#conditionals.call({ id, condition, changes: undefined });
  }

  /** The figures of its batches, by the name of the operation. */
  get batches(): Readonly<Record<string, BatchFigures>> {
    return {
      find: this.#finds,
      insert: this.#inserts,
      keyed: this.#keyed,
      bulk: this.#bulk,
      update: this.#updates,
      remove: this.#removals,
      conditional: this.#conditionals,
      search: this.#searches,
      longSearch: this.#longSearches,
    };
  }

  search(search: Search): Promise<Page> {
    return this.#searches.call(search);
  }

  /** Opens the list of all books; the caller closes it. */
  list(): Promise<BookList> {
    return this.#store.list();
  }
}

function weightOfGroup({ books }: BookGroup): number {
  return books.reduce((weight, book) => weight + weightOf(book), 0);
}

/**
 * It is kept with the key, so other versions of the service must make the same one.
 * @param kind of the request: the same book sent alone and sent in a list are two different requests.
 */
function fingerprintOf(kind: 'book' | 'books', books: readonly BookFields[]): string {
  const rows = books.map(({ title, author, year }) => [title, author, year]);
  return hash('sha256', `${kind} ${JSON.stringify(rows)}`, 'base64url');
}
