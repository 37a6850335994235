// Owns: the operations of the API on one book, on those that are searched for, and on all books.
// Each kind of call has its own batches; a store never gets a single call.

import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Times } from '../times.ts';
import { Batches, type BatchFigures, type BatchLimits, type Carry, type Traits } from './batches.ts';
import { type Book, type BookChanges, type BookFields, completeFields, valuesOf } from './book.ts';
import type {
  CatalogueEvent,
  EventKey,
  LogReader,
  NotUndone,
  PageOfChanges,
  Run,
  States,
  UndoRequest,
} from './change-log.ts';
import type { Condition } from './condition.ts';
import {
  booksOf,
  type EventsPlace,
  findRun,
  type ListedEvent,
  listEvents,
  type PageOfEvents,
} from './events.ts';
import { Followers } from './followers.ts';
import type { Page, Search, SentFilter, Suggestions } from './search.ts';
import {
  type BookGroup,
  type BookList,
  type BookSearch,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type GroupOutcome,
  HEAVY,
  type LongSearch,
  type Store,
  StoreUnavailable,
  weightOf,
  weightOfAnswer,
} from './store.ts';
import { Turns } from './turns.ts';
import { isDone, progressOf, Undo, type UndoOutcome, type UndoProgress } from './undo.ts';

/**
 * Large enough that the cost of a round trip is negligible, small enough that a batch takes milliseconds, even with the longest
 * texts. Changes come one batch at a time, so that two of one process never wait for each other's books.
 */
const GATHERED = { size: 512, weight: HEAVY, inFlight: 1 };

/** The most books that are looked at before an undo. */
const LOOKED_AT = 10_000;

/** Undos that are looked at when the service starts. */
const NEWEST_UNDOS = 100;

export class Catalogue {
  readonly #store: Store;
  readonly #batches: ReturnType<typeof batchesOf>;
  /** Of those who wait for changes, one at a time: nothing is refused since others wait. */
  readonly #followed: Turns;
  readonly #times: Times['books'];
  /** The numbers of undos that this process continues. */
  readonly #continued = new Set<number>();
  #isClosing = false;
  /** Requests that wait for a change. */
  readonly followers: Followers<PageOfChanges | 'gone'>;

  /** @param room resolves once there is room for a page of changes that a request has waited for. */
  constructor(store: Store, times: Times['books'], room = async () => {}) {
    this.#store = store;
    this.#times = times;
    this.#batches = batchesOf(store, times);
    this.#followed = new Turns(1, times);
    this.followers = new Followers(
      (onChange) => store.log.watch(onChange),
      (page) => page === 'gone' || page.changes.length > 0,
      room,
    );
  }

  /** @returns undefined if no book has the id. */
  find(id: number): Promise<Book | undefined> {
    return this.#batches.find.call(id);
  }

  /**
   * Stores a new book; a field that `sent` leaves out is empty (rule 1).
   * @param key of a call that stores it once, however often it is made.
   * @returns the book and whether an earlier call has stored it; `conflict` if the key was used for something else.
   */
  async create(
    sent: BookChanges,
    key: string | undefined,
  ): Promise<{ readonly book: Book; readonly isReplay: boolean } | 'conflict'> {
    const fields = completeFields(sent);
    if (key === undefined) {
      const id = await this.#batches.insert.call(fields);
      return { book: { id, ...fields }, isReplay: false };
    }
    const books = [fields];
    const once = { key, fingerprint: fingerprintOf('book', books) };
    const outcome = await this.#batches.keyed.call({ books, once });
    if (outcome === 'conflict') return outcome;
    return { book: { id: outcome.ids[0] as number, ...fields }, isReplay: outcome.isReplay };
  }

  /** Stores new books, all or none of them. @param key as in `create`. */
  async createAll(sent: readonly BookChanges[], key: string | undefined): Promise<GroupOutcome> {
    const books = sent.map(completeFields);
    const once = key === undefined ? undefined : { key, fingerprint: fingerprintOf('books', books) };
    const store = (deadline: number) => this.#store.books.insertGroups([{ books, once }], deadline);
    return (await this.#batches.bulk.take(store))[0] as GroupOutcome;
  }

  /** @returns the book as this change left it, undefined if no book has the id. */
  update(id: number, changes: BookChanges, condition?: Condition): Promise<ConditionalOutcome> {
    if (condition === undefined) return this.#batches.update.call({ id, changes });
    return this.#batches.conditional.call({ id, condition, changes });
  }

  /** @returns whether this call removed the book; with a condition, the book that it removed. */
  remove(id: number, condition?: Condition): Promise<ConditionalOutcome | boolean> {
    if (condition === undefined) return this.#batches.remove.call(id);
    return this.#batches.conditional.call({ id, condition, changes: undefined });
  }

  /** The figures of its batches, by the name of the operation. */
  get batches(): Readonly<Record<string, BatchFigures>> {
    return this.#batches;
  }

  search(search: Search): Promise<Page> {
    return this.#search((index, ...times) => index.page(search, ...times));
  }

  /** Other values of filters that find books, if all of them together find none (rule F13). */
  suggest(filters: readonly SentFilter[]): Promise<Suggestions> {
    const misspelt = { filters, time: this.#times.suggestions };
    return this.#search((index, ...times) => index.suggestions(misspelt, ...times));
  }

  async #search<Found extends object>(
    find: (index: BookSearch, deadline: number, most: number) => Promise<Found | LongSearch<Found>>,
  ): Promise<Found> {
    const index = this.#store.search;
    if (index === undefined) throw new StoreUnavailable('FIND is off');
    const { shortSearch, shortSearches, deadline: wait } = this.#times;
    const { search: short, longSearch } = this.#batches;
    const deadline = performance.now() + wait;
    // Many that turn out to be long get less each, so that a short one among them does not wait for long.
    const begin = () => find(index, deadline, Math.min(shortSearch, shortSearches / short.waiting));
    const found = await short.take(begin, deadline);
    return typeof found === 'function' ? longSearch.take(found, deadline) : found;
  }

  /**
   * The changes after a page (rules H1 to H3).
   * @param cursor of that page; undefined to begin with all books.
   * @param wait milliseconds for which it waits for a change if there is none.
   * @param signal ends the wait.
   * @returns them, or `gone` if the cursor is no longer valid: the same object for those who get the same page. And how long it
   *   has waited, undefined if too many others wait.
   */
  async changes(
    cursor: unknown,
    most: number,
    wait: number,
    signal: AbortSignal,
  ): Promise<{ readonly page: PageOfChanges | 'gone'; readonly waited: number | undefined }> {
    const read = (deadline: number) => this.#store.log.changes(cursor, most, deadline);
    if (wait === 0 || !this.followers.hasRoom) {
      const page = await this.#batches.history.take(read);
      return { page, waited: undefined };
    }
    const what = JSON.stringify([cursor, most]);
    const follow = () => this.#followed.take(read);
    const { answer, waited } = await this.followers.read(what, follow, wait, signal);
    return { page: answer, waited };
  }

  /**
   * Takes changes back, unless an earlier call with this key has done it (rule H5). More than fit into one step are taken back in
   * parts, after this has resolved.
   */
  async undo(request: UndoRequest, key: string | undefined): Promise<UndoOutcome> {
    const once = key === undefined ? undefined : { key, fingerprint: fingerprint('undo', request) };
    const begin = (deadline: number) => Undo.begin(this.#store.log, request, once, deadline);
    const outcome = await this.#batches.undo.take(begin);
    if (typeof outcome === 'object' && outcome.rest !== undefined) void this.#continue(outcome.rest);
    return outcome;
  }

  /** Finds out the result of an undo, without it: for the first 10,000 books, or fewer if that takes long. */
  checkUndo(request: UndoRequest): Promise<UndoProgress | NotUndone> {
    return this.#batches.history.take((deadline) => {
      const end = (performance.now() + deadline) / 2;
      const isEnough = ({ checked }: UndoProgress) => checked >= LOOKED_AT || performance.now() >= end;
      return Undo.look(this.#store.log, request, isEnough, deadline);
    });
  }

  /** The newest events before a place, the newest first (rule H8). */
  events(place: EventsPlace, most: number): Promise<PageOfEvents> {
    return this.#read((log) => listEvents(log, place, most));
  }

  /** @returns undefined if the log has no such import or undo. */
  event(number: number): Promise<CatalogueEvent | undefined> {
    return this.#read((log) => log.event(number));
  }

  /** @returns undefined if the log has no such run. */
  run(run: Run): Promise<ListedEvent | undefined> {
    return this.#read((log) => findRun(log, run));
  }

  /** The books of an event after an id (rule H9). */
  booksOfEvent(key: EventKey, after: number, most: number): ReturnType<typeof booksOf> {
    return this.#read((log) => booksOf(log, key, after, most));
  }

  #read<Result>(read: (log: LogReader) => Promise<Result>): Promise<Result> {
    return this.#batches.history.take((deadline) => this.#store.log.read(read, deadline));
  }

  /** Continues an undo that is not complete, unless this process does that already. */
  continue(number: number): void {
    void this.#continue(new Undo(this.#store.log, number));
  }

  /** Continues the undos whose processes have ended. If another process carries one out, their parts follow one after the other. */
  async continueAll(): Promise<void> {
    const read = (log: LogReader) => log.events.undos(NEWEST_UNDOS);
    for (const event of await this.#store.log.read(read, performance.now() + this.#times.deadline)) {
      const progress = progressOf(event);
      if (progress !== undefined && !isDone(progress)) this.continue(event.number);
    }
  }

  async #continue(undo: Undo): Promise<void> {
    if (this.#continued.has(undo.number)) return;
    this.#continued.add(undo.number);
    while (!this.#isClosing) {
      try {
        const progress = await this.#batches.undo.take((deadline) => undo.continue(deadline));
        if (progress === undefined || isDone(progress)) break;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) break;
        await pause(this.#times.undoPause, undefined, { ref: false });
      }
    }
    this.#continued.delete(undo.number);
  }

  /** Ends undos in progress after their part, and waits for changes. */
  close(): void {
    this.#isClosing = true;
    this.followers.close();
  }

  /** The states of a book, the newest first (rule H4). @param before the number of a change: those before it. */
  states(id: number, before: number | undefined, most: number): Promise<States> {
    return this.#batches.history.take((deadline) => this.#store.log.states(id, before, most, deadline));
  }

  /** Opens the list of all books; the caller closes it. */
  list(): Promise<BookList> {
    return this.#store.books.list();
  }
}

/** Those of each kind of call, by the name of the operation. */
function batchesOf({ books: stored, inFlight }: Store, times: Times['books']) {
  const batches = <Item, Answer>(
    carry: Carry<Item, Answer>,
    limits: BatchLimits,
    traits?: Traits<Item, Answer>,
  ) => new Batches(carry, limits, times, traits);
  const overlapping = { ...GATHERED, inFlight };
  const ofId = { shardOf: (id: number) => stored.shardOf?.(id), weighAnswer: weightOfAnswer };
  const ofChange = {
    weigh: ({ changes }: Pick<ConditionalChange, 'changes'>) => weightOf(changes ?? {}),
    weighAnswer: weightOfAnswer,
    shardOf: ({ id }: Pick<ConditionalChange, 'id'>) => stored.shardOf?.(id),
  };
  const insertGroups: Carry<BookGroup, GroupOutcome> = (groups, deadline) =>
    stored.insertGroups(groups, deadline);
  return {
    find: batches<number, Book | undefined>((ids, deadline) => stored.find(ids, deadline), overlapping, ofId),
    insert: batches<BookFields, number>((books, deadline) => stored.insert(books, deadline), overlapping, {
      weigh: weightOf,
    }),
    keyed: batches(insertGroups, GATHERED, {
      weigh: ({ books }) => books.reduce((weight, book) => weight + weightOf(book), 0),
    }),
    // Each of these may keep a core busy, and two would slow down others.
    bulk: new Turns(1, times),
    search: new Turns(1, times),
    longSearch: new Turns(1, times), // apart, so that no short search waits for a long one
    update: batches<BookUpdate, Book | undefined>(
      (updates, deadline) => stored.update(updates, deadline),
      GATHERED,
      ofChange,
    ),
    remove: batches<number, boolean>((ids, deadline) => stored.remove(ids, deadline), GATHERED, ofId),
    /** Apart, so that changes without a condition take no longer. */
    conditional: batches<ConditionalChange, ConditionalOutcome>(
      (changes, deadline) => stored.changeIf(changes, deadline),
      GATHERED,
      ofChange,
    ),
    /** What is read of the log. */
    history: new Turns(inFlight, times),
    undo: new Turns(1, times),
  };
}

/**
 * It is kept with the key, so other versions of the service must make the same one.
 * @param kind of the request: the same book sent alone and sent in a list are two different requests.
 */
function fingerprintOf(kind: 'book' | 'books', books: readonly BookFields[]): string {
  return fingerprint(kind, books.map(valuesOf));
}

function fingerprint(kind: string, content: unknown): string {
  return hash('sha256', `${kind} ${JSON.stringify(content)}`, 'base64url');
}
