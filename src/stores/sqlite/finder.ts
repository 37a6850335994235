// Owns: searching a SQLite file, in separate threads: a search may take seconds, and reads on the main thread must not
// wait for it. One keeps the index up to date, in the background and before a search, and gives up a search that takes long.
// The other one has these.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Page, Search, WantedWord } from '../../books/search.ts';
import { StoreUnavailable } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { findPage, type SearchableIndex } from '../finding.ts';
import type { Statement } from '../search-sql.ts';
import { SqliteIndex } from './book-index.ts';
import { SQLITE_DIALECT } from './dialect.ts';
import { now, openForIndexing, retryWhileBusy } from './structure.ts';
import type { ThreadData, ThreadMessage, Ticketed } from './thread.ts';

export interface SearchRequest {
  readonly search: Search;
  /** When its caller gives up: milliseconds of `now()`. */
  readonly deadline: number;
  readonly mode:
    | {
        /** When it was called, on the same clock, and the milliseconds after which it is given up. */
        readonly since: number;
        readonly most: number;
      }
    | GivenUp;
}

/** Of a search that takes long: about how many of the books before it are not indexed. */
export type GivenUp = Pick<Page, 'unindexed'>;

function serve(port: MessagePort, { path, times, isLong }: ThreadData): void {
  const finder = new SqliteFinder(path, times.sqlite);
  if (!isLong) finder.keepIndex();
  const say = (message: ThreadMessage<Page | GivenUp>) => port.postMessage(message);
  port.on('message', async (message: Ticketed<SearchRequest> | 'close') => {
    if (message === 'close') {
      finder.close();
      port.close();
      return;
    }
    const { ticket } = message;
    try {
      say({ kind: 'done', ticket, answer: await finder.search(message) });
    } catch (error) {
      const { message: reason, kind: fault } = error as StoreUnavailable;
      say({ kind: 'failed', ticket, reason, fault });
    }
  });
  say({ kind: 'ready' });
}

function late(): StoreUnavailable {
  return new StoreUnavailable('the search took too long', 'late');
}

/** Gets one search at a time. Nothing interrupts it, since no statement waits. */
class SqliteFinder implements SearchableIndex {
  readonly dialect = SQLITE_DIALECT;
  readonly #times: Times['sqlite'];
  readonly #db: DatabaseSync;
  readonly #index: SqliteIndex;
  /** When the search in progress has to end. */
  #end = 0;
  /** Milliseconds that a statement with its words takes before `in_time` is called. */
  #uninterrupted = 0;
  /** Since when others have kept this thread from indexing; Infinity if they have not, and once all books are indexed. */
  #blockedSince = Number.POSITIVE_INFINITY;
  /** Everything that was written before this moment is indexed. */
  #freshAt = 0;
  /** The content of the file, as of the latest background work, and up to which id books were indexed by then. */
  #version = 0;
  #indexedTo = 0;
  /** When others were last seen to have written. */
  #writtenAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(path: string, times: Times['sqlite']) {
    const db = openForIndexing(path);
    this.#times = times;
    this.#db = db;
    this.#index = new SqliteIndex(db);
    db.function('in_time', () => {
      if (now() > this.#end) throw late();
      return 1;
    });
  }

  /** Makes the index if it is missing, and brings it up to date in the background from now on. */
  keepIndex(): void {
    this.#index.prepare(this.#times);
    this.#version = this.#contentVersion();
    this.#indexedTo = this.#index.indexedTo;
    this.#timer = setTimeout(() => this.#follow(), 0);
  }

  async search({ search, deadline, mode }: SearchRequest): Promise<Page | GivenUp> {
    this.#refuseUnusable();
    const isShort = 'most' in mode;
    const unindexed = isShort ? this.#catchUp(mode.since) : mode.unindexed;
    this.#end = Math.min(now() + (isShort ? mode.most : this.#times.search), deadline);
    try {
      this.#db.exec('begin');
      this.#refuseUnusable(); // another process may have started to rebuild the index
      this.#measure(search.words);
      return { ...(await findPage(search, this)), unindexed };
    } catch (error) {
      if (isShort && error instanceof StoreUnavailable && error.kind === 'late') return { unindexed };
      throw error;
    } finally {
      if (this.#db.isTransaction) this.#db.exec('rollback'); // SQLite ends it itself after some errors
    }
  }

  #refuseUnusable(): void {
    if (!this.#index.isUsable)
      throw new StoreUnavailable('the index of all books is not complete yet', 'indexing');
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
      this.#end = end; // the books are found without their number, or, if the time of a short search is over, again
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
   * Indexes what was written before a search was called, in bounded time.
   * @returns about how many books are left.
   */
  #catchUp(since: number): number {
    const { catchUp, slice } = this.#times;
    const end = now() + catchUp;
    while (since >= this.#freshAt) {
      const lookedAt = now();
      if (!this.#isBehind()) {
        this.#freshAt = lookedAt;
        break;
      }
      if (lookedAt >= end || this.#index.areManyPending) return this.#index.countPending();
      try {
        // Searches that come one after the other wait for the same lock no longer than one of them would.
        const latest = Math.min(end, this.#blockedSince + catchUp);
        retryWhileBusy(() => this.#slice(slice), latest, this.#times);
      } catch {
        return this.#index.countPending(); // others write for longer, or the disk is full: indexed books are found
      }
    }
    return 0;
  }

  #slice(time: number): void {
    this.#blockedSince = Math.min(this.#blockedSince, now());
    this.#index.slice(time);
    this.#blockedSince = Number.POSITIVE_INFINITY;
  }

  #isBehind(): boolean {
    if (this.#index.isPending) return true;
    this.#blockedSince = Number.POSITIVE_INFINITY;
    return false;
  }

  /** Indexes books in the background, one transaction at a time: those of the first index are long while nobody writes. */
  #follow(): void {
    const { idlePause, slice, firstSlice, slicePause, firstPause, quiet } = this.#times;
    let rest = idlePause;
    try {
      if (this.#isBehind() && !this.#isMadeElsewhere()) {
        const isFirst = !this.#index.isUsable;
        this.#slice(isFirst && now() > this.#writtenAt + quiet ? firstSlice : slice);
        this.#indexedTo = this.#index.indexedTo;
        const version = this.#contentVersion();
        rest = 0;
        if (version !== this.#version) {
          this.#version = version;
          this.#writtenAt = now();
          rest = isFirst ? firstPause : slicePause;
        }
        if (!this.#isBehind()) this.#db.exec('pragma shrink_memory');
      }
    } catch {
      this.#writtenAt = now(); // others write, or the disk is full
      rest = slicePause;
    }
    this.#timer = setTimeout(() => this.#follow(), rest);
  }

  /** Whether another process makes the first index: two at a time would take each other for writers, and take long. */
  #isMadeElsewhere(): boolean {
    const before = this.#indexedTo;
    this.#indexedTo = this.#index.indexedTo;
    return !this.#index.isUsable && this.#indexedTo !== before;
  }

  /** Changes with every transaction of other connections. */
  #contentVersion(): number {
    return Number(this.#db.prepare('pragma data_version').get()?.data_version);
  }
}

if (parentPort !== null) serve(parentPort, workerData as ThreadData);
