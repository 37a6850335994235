// Owns: searching a SQLite file, in separate threads: a search may take seconds, and reads on the main thread must not wait for
// it. One thread indexes the changes of the log, in the background and before a search, and gives up searches that take long. The
// other one carries these out.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import {
  type Filters,
  isOfAllById,
  type Misspelt,
  type Page,
  readFilters,
  type Search,
  type Suggestions,
  type WantedWord,
} from '../../books/search.ts';
import { type StoreFault, StoreUnavailable } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { MOST_AT_ONCE, Pace } from '../book-index.ts';
import { findPage, type SearchableIndex } from '../search-pages.ts';
import type { Statement } from '../search-sql.ts';
import { findSuggestions } from '../suggestions.ts';
import { SqliteIndex } from './book-index.ts';
import { SQLITE_DIALECT } from './dialect.ts';
import { now, openForIndexing, PAUSE, retryWhileBusy } from './structure.ts';
import type { ThreadData } from './thread.ts';

export interface SearchRequest {
  readonly search: Search | Misspelt;
  /** When its caller gives up: milliseconds of `now()`. */
  readonly deadline: number;
  /** For a short search, the milliseconds after which it is given up; for a long one, the answer of the short one. */
  readonly mode: { readonly most: number } | GivenUp;
}

/** The answer of a search that takes long: about how many books were not indexed when it began. */
export interface GivenUp extends Pick<Page, 'unindexed'> {
  readonly isGivenUp: true;
}

export type Found = Page | Suggestions;

/** The outcome of a search. */
export type Outcome =
  | { readonly answer: Found | GivenUp }
  | { readonly reason: string; readonly fault?: StoreFault };

function serve(port: MessagePort, data: ThreadData): void {
  const finder = new SqliteFinder(data);
  if (!data.isLong) finder.keepIndex();
  const say = (outcome: Outcome) => port.postMessage(outcome);
  port.on('message', async (message: SearchRequest | 'close') => {
    if (message === 'close') {
      finder.close();
      port.close();
      return;
    }
    try {
      say({ answer: await finder.search(message) });
    } catch (error) {
      const { message: reason, kind: fault } = error as StoreUnavailable;
      say({ reason, fault });
    }
  });
  port.postMessage('ready');
}

function late(): StoreUnavailable {
  return new StoreUnavailable('the search took too long', 'late');
}

/** Carries out one search at a time. Nothing interrupts a search, since no statement waits. */
class SqliteFinder implements SearchableIndex {
  readonly dialect = SQLITE_DIALECT;
  readonly #times: Times['sqlite'];
  readonly #syncing: Int32Array;
  readonly #db: DatabaseSync;
  readonly #index: SqliteIndex;
  /** When the search in progress has to end. */
  #end = 0;
  /** How many milliseconds a statement with the words of the search runs before SQLite first calls `in_time`. */
  #uninterrupted = 0;
  /** Whether a search has waited for the index without success. The next ones wait less, until the index has everything. */
  #isLate = false;
  /** Whether the index was compared with the books. */
  #isCompared = false;
  readonly #pace = new Pace();
  #timer: NodeJS.Timeout | undefined;

  constructor({ path, times: { sqlite: times }, syncing }: ThreadData) {
    const db = openForIndexing(path);
    this.#times = times;
    this.#syncing = syncing;
    this.#db = db;
    this.#index = new SqliteIndex(db, () => Atomics.load(syncing, 0) === 1);
    db.exec("create virtual table temp.book_words using fts5vocab(main, book_index_words, 'instance')");
    db.function('in_time', () => {
      if (now() > this.#end) throw late();
      return 1;
    });
  }

  /** Makes the index if it is missing, and brings it up to date in the background from now on. */
  keepIndex(): void {
    this.#index.prepare(this.#times);
    this.#timer = setTimeout(() => this.#follow(), 0);
  }

  async search({ search, deadline, mode }: SearchRequest): Promise<Found | GivenUp> {
    const isShort = 'most' in mode;
    const unindexed = isShort ? this.#catchUp() : mode.unindexed;
    this.#end = Math.min(now() + (isShort ? mode.most : this.#times.search), deadline);
    try {
      this.#db.exec('begin');
      const { isOurs, isComplete } = this.#index.state;
      if ((!isOurs || !isComplete) && !('words' in search && isOfAllById(search))) {
        throw new StoreUnavailable('the index of all books is not complete yet', 'indexing');
      }
      this.#measure('words' in search ? search.words : (readFilters(search.filters) as Filters).words);
      const found = 'words' in search ? findPage(search, this) : findSuggestions(search, this);
      return { ...(await found), unindexed };
    } catch (error) {
      if (isShort && error instanceof StoreUnavailable && error.kind === 'late')
        return { unindexed, isGivenUp: true };
      throw error;
    } finally {
      if (this.#db.isTransaction) this.#db.exec('rollback'); // SQLite ends it itself after some errors
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#db.close();
  }

  async select({ sql, values }: Statement): Promise<unknown[][]> {
    if (now() + this.#uninterrupted > this.#end) throw late();
    const statement = this.#db.prepare(sql) as StatementSync & Disposable;
    try {
      statement.setReturnArrays(true);
      return statement.all(...values) as unknown as unknown[][];
    } finally {
      statement[Symbol.dispose](); // there are too many different ones to keep
    }
  }

  async count(statement: Statement): Promise<number | undefined> {
    const end = this.#end;
    this.#end = Math.min(end, now() + this.#times.count);
    try {
      const [[count] = []] = await this.select(statement);
      return Number(count);
    } catch (error) {
      if (error instanceof StoreUnavailable) return undefined;
      throw error;
    } finally {
      this.#end = end; // the search continues without the number, or a short one whose time is over begins again
    }
  }

  /**
   * FTS5 collects all books of each beginning of a word before it returns the first one, and nothing can stop it. So the
   * beginnings are looked up one at a time first, and no statement is started that would not end in time.
   */
  #measure(words: readonly WantedWord[]): void {
    const began = now();
    this.#uninterrupted = 0;
    const beginnings = words.filter(({ isPrefix }) => isPrefix);
    if (beginnings.length < 2) return;
    const statement = this.#db.prepare(
      'select 1 from book_index_words where book_index_words match ? limit 1',
    );
    for (const word of beginnings) {
      statement.get(this.dialect.wordsValue([word]));
      this.#uninterrupted = now() - began;
      if (now() + this.#uninterrupted > this.#end) throw late();
    }
  }

  /**
   * Indexes the writes before this call, in bounded time (rule F11).
   * @returns about how many books are not indexed.
   */
  #catchUp(): number {
    const { catchUp, indexLock, busyPause } = this.#times;
    this.#keep();
    const { isOurs, isComplete, isBehind } = this.#index.state;
    if (!isBehind) this.#isLate = false; // another process may have indexed
    if (!isOurs || !isComplete) return Math.max(1, this.#index.unindexed);
    if (!isBehind) return 0;
    const unindexed = this.#index.unindexed;
    if (unindexed > MOST_AT_ONCE) return unindexed;
    const end = now() + (this.#isLate ? indexLock : catchUp);
    try {
      while (now() < end) {
        if (this.#step(end)) return 0;
        Atomics.wait(PAUSE, 0, 0, 2 * busyPause); // waiting writers try again meanwhile
      }
    } catch {} // others write, or the disk is full: indexed books are found
    this.#isLate = true;
    return this.#index.unindexed;
  }

  /** Indexes in the background, step by step. */
  #follow(): void {
    const { idlePause, indexLock, step } = this.#times;
    let rest = idlePause;
    try {
      this.#keep();
      const { isComplete, isBehind, written } = this.#index.state;
      if (isBehind || !isComplete) {
        if (this.#step(now() + indexLock)) this.#db.exec('pragma shrink_memory');
        else rest = this.#pace.pauseAfter(step, written);
      }
      this.#isCompared ||= this.#index.compare();
    } catch {} // others write, or the disk is full
    this.#timer = setTimeout(() => this.#follow(), rest);
  }

  /** Begins the log and the index again if other programs have damaged them. */
  #keep(): void {
    try {
      this.#index.keep(this.#times);
    } catch {} // others write, or the disk is full
  }

  /**
   * Indexes books in one transaction.
   * @param latest the end of its wait for others that write.
   * @returns whether the index has all that was written before.
   */
  #step(latest: number): boolean {
    if (now() < latest) Atomics.wait(this.#syncing, 0, 1, latest - now());
    const isDone = retryWhileBusy(() => this.#index.step(this.#times.step), latest, this.#times);
    if (isDone) this.#isLate = false;
    return isDone;
  }
}

if (parentPort !== null) serve(parentPort, workerData as ThreadData);
