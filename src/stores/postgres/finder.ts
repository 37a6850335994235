// Owns: searching PostgreSQL, and keeping the index up to date: in the background, and before a search. Twin of
// `sqlite/finder.ts`.

import { setTimeout as pause } from 'node:timers/promises';
import { isOfAllById, type Misspelt, type Page, type Search, type Suggestions } from '../../books/search.ts';
import { type BookSearch, type LongSearch, type SearchIndex, StoreUnavailable } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { INDEX_VERSION, MOST_AT_ONCE, Pace } from '../book-index.ts';
import type { Query } from '../query.ts';
import { findPage, type SearchableIndex } from '../search-pages.ts';
import type { Statement } from '../search-sql.ts';
import { findSuggestions } from '../suggestions.ts';
import { type IndexState, indexSome, MADE_AT, STATE, STEP, sortIndex, WHOLE_STATE } from './book-index.ts';
import type { Connections } from './connections.ts';
import { POSTGRES_DIALECT } from './dialect.ts';
import { connectToWritable, type Hosts } from './hosts.ts';
import { beginWithin } from './limits.ts';
import { WRITTEN } from './log.ts';
import type { LogKeeper } from './log-keeper.ts';
import { CANCELED, codeOf, queryOn } from './query.ts';
import type { Standby } from './standby.ts';

/** The part of a search's time that a standby has; then the primary is asked. */
const STANDBY_SHARE = 2 / 3;

// Moves the newest words into the index proper, where they are found faster. It needs the rights of the owner;
// without them, the server does it by itself, later.
const TIDY = "select gin_clean_pending_list('book_index_words')";

const NOTHING: Suggestions = { suggestions: [], unindexed: 0 };

const LONG = new StoreUnavailable('the search takes long', 'late');

/** Finds in the index what a search wants. */
type Find<Found> = (index: SearchableIndex) => Promise<Found>;

/** Its callers have one search at a time, and beside it one of the long searches that these return. */
export class PostgresFinder implements BookSearch {
  readonly #hosts: Hosts;
  readonly #connections: Connections;
  readonly #standby: Standby | undefined;
  readonly #keeper: LogKeeper | undefined;
  /** Whether the index was compared with the books. */
  #isCompared = false;
  readonly #times: Times['postgres'];
  readonly #closing = new AbortController();
  #indexing: Promise<number> | undefined;
  /** When the step in progress began. */
  #indexingSince = 0;
  readonly #pace = new Pace();
  /** About how many books are not indexed. */
  unindexed = 0;

  /**
   * @param standby undefined if everything is read from the primary.
   * @param keeper undefined on Citus.
   */
  constructor(
    hosts: Hosts,
    connections: Connections,
    standby: Standby | undefined,
    keeper: LogKeeper | undefined,
    times: Times['postgres'],
  ) {
    this.#hosts = hosts;
    this.#connections = connections;
    this.#standby = standby;
    this.#keeper = keeper;
    this.#times = times;
    void this.#follow();
  }

  readonly page: SearchIndex<Search, Page> = (search, ...times) =>
    this.#search((index) => findPage(search, index), !isOfAllById(search), ...times);

  /** Never any on Citus: the statement that looks up words was not tried there. */
  readonly suggestions: SearchIndex<Misspelt, Suggestions> = (search, deadline, most) => {
    const find = async (index: SearchableIndex) => {
      if (this.#keeper === undefined) return NOTHING;
      // Each word that is looked up would be compared with all newest words.
      await this.#connections.query('searches', TIDY, [], deadline).catch(() => {});
      return findSuggestions(search, index);
    };
    return this.#search(find, true, deadline, most);
  };

  /**
   * @param needsIndex whether it needs a complete index.
   * @param most milliseconds for its statements; a longer search is given up.
   * @throws StoreUnavailable
   */
  async #search<Found extends object>(
    find: Find<Found>,
    needsIndex: boolean,
    deadline: number,
    most: number,
  ): Promise<Found | LongSearch<Found>> {
    try {
      return await this.#find(find, needsIndex, deadline, most);
    } catch (error) {
      if (isLate(error)) return () => this.#find(find, needsIndex, deadline, Number.POSITIVE_INFINITY);
      throw error;
    }
  }

  /** @param most infinite for a long search. */
  async #find<Found extends object>(
    find: Find<Found>,
    needsIndex: boolean,
    deadline: number,
    most: number,
  ): Promise<Found> {
    for (;;) {
      await this.#keeper?.keep(deadline);
      const { madeAt, unindexed } = await this.#catchUp(deadline, needsIndex);
      const found =
        (await this.#findOnStandby(find, deadline, most)) ??
        (await this.#findOnPrimary(find, deadline, most));
      // An index that is made again is empty at once, even while a search reads it.
      const { madeAt: again } = await this.#ask<Pick<IndexState, 'madeAt'>>(MADE_AT, deadline);
      if (again === madeAt) return { ...found, unindexed };
    }
  }

  #findOnPrimary<Found>(find: Find<Found>, deadline: number, most: number): Promise<Found> {
    const end = this.#endOf(deadline, most);
    const select: Select = (kind, text, values) => this.#connections.query(kind, text, values, end);
    return find(indexBy(select, most));
  }

  /** The latest end of statements that a search begins now. */
  #endOf(deadline: number, most: number): number {
    return Math.min(deadline, performance.now() + most + this.#times.notice);
  }

  /** It has all books that were indexed before, since the standby is read at a later moment. */
  async #findOnStandby<Found>(find: Find<Found>, deadline: number, most: number): Promise<Found | undefined> {
    const { statement, notice } = this.#times;
    const share = performance.now() + (deadline - performance.now()) * STANDBY_SHARE;
    const found = await this.#standby?.read(async (client, release) => {
      const end = this.#endOf(share, most);
      let before = '';
      // One transaction each: a count may fail alone.
      const select: Select = async (kind, text, values) => {
        const limit = Math.min(statement[kind], end - notice - performance.now());
        if (limit <= 0) throw LONG;
        client.query(before + beginWithin(limit)).catch(() => {}); // if it fails, so does the next statement
        before = 'commit; ';
        return queryOn(client, limit + notice)(text, values).catch((error) => {
          throw codeOf(error) === CANCELED ? LONG : error;
        });
      };
      const found = await find(indexBy(select, most)).catch((error: unknown) => {
        if (most < Number.POSITIVE_INFINITY && isLate(error)) return LONG; // the standby stays
        throw error;
      });
      client.query('commit').catch(() => {});
      release(false);
      return found;
    });
    if (found instanceof StoreUnavailable) throw found;
    return found;
  }

  close(): void {
    this.#closing.abort();
  }

  /**
   * Indexes the writes before this call, in bounded time.
   * @param deadline of the search: no other one waits longer for it.
   * @param needsIndex whether the search needs a complete one.
   */
  async #catchUp(deadline: number, needsIndex: boolean): Promise<IndexState> {
    const { catchUp } = this.#times;
    const end = performance.now() + catchUp;
    for (let isTimeOver = false; ; ) {
      const state = await this.#state(deadline);
      if (!state.isComplete || state.version !== INDEX_VERSION) {
        if (!needsIndex) return { ...state, unindexed: Math.max(1, state.unindexed) };
        throw new StoreUnavailable('the index of all books is not complete yet', 'indexing');
      }
      if (state.unindexed === 0 || state.unindexed > MOST_AT_ONCE || isTimeOver) return state;
      // The step may wait for a lock of others, or fail, as on a full disk. Indexed books are found nevertheless. Searches that
      // come one after the other wait for the same step no longer than one of them would.
      const step = this.#index(state.behind).catch(() => 'failed');
      const stepEnd = Math.min(end, this.#indexingSince + catchUp);
      const late = pause(Math.max(0, stepEnd - performance.now()), 'late', { ref: false });
      isTimeOver = typeof (await Promise.race([step, late])) === 'string' || performance.now() >= end;
    }
  }

  /** If many books are not indexed, the background has the better count. */
  async #state(deadline?: number): Promise<IndexState> {
    const state = await this.#ask<IndexState>(STATE, deadline, 'book_index_state');
    return state.unindexed <= STEP
      ? state
      : { ...state, unindexed: Math.max(state.unindexed, this.unindexed) };
  }

  /** @returns the one row of a statement. */
  async #ask<Row extends object>(
    text: string,
    deadline = Number.POSITIVE_INFINITY,
    name?: string,
  ): Promise<Row> {
    const end = Math.min(performance.now() + this.#times.indexStatement, deadline);
    return (await this.#connections.query<Row>('searches', text, [], end, name))[0] as Row;
  }

  /** Indexes some books of each of these shards, or waits for the end of a step that is in progress. */
  #index(shards: readonly string[]): Promise<number> {
    if (this.#indexing !== undefined) return this.#indexing;
    this.#indexingSince = performance.now();
    const end = this.#indexingSince + this.#times.indexStep;
    const index = async () => {
      let indexed = 0;
      for (const shard of shards)
        indexed += await this.#connections.transaction('searches', end, (query) =>
          indexSome(query, shard, this.#times.turn),
        );
      return indexed;
    };
    this.#indexing = index().finally(() => {
      this.#indexing = undefined;
    });
    return this.#indexing;
  }

  /** Indexes in the background, for as long as the store is open. */
  async #follow(): Promise<void> {
    const { signal } = this.#closing;
    for (let rest = 0; ; ) {
      await pause(rest, undefined, { ref: false, signal }).catch(() => {});
      if (signal.aborted) return;
      rest = this.#times.idlePause * (0.5 + Math.random());
      try {
        if (await this.#indexMore(signal)) rest = 0;
      } catch {
        // The store is away, or the disk is full. Searches report it.
      }
    }
  }

  /** Indexes for about a second, after which it is time to count again. @returns whether books remain. */
  async #indexMore(signal: AbortSignal): Promise<boolean> {
    const { idlePause, indexStatement } = this.#times;
    const deadline = performance.now() + indexStatement;
    await this.#keeper?.keep(deadline);
    let state = await this.#ask<IndexState>(WHOLE_STATE);
    if (state.version !== INDEX_VERSION) return false;
    this.unindexed = state.unindexed;
    if (state.unindexed === 0) {
      if (!state.isComplete) await this.#sort();
      else this.#isCompared ||= (await this.#keeper?.compare(deadline).catch(() => true)) ?? true; // counting may take too long
      return false;
    }
    const end = performance.now() + idlePause;
    while (state.unindexed > 0) {
      const step = performance.now();
      const indexed = await this.#index(state.behind);
      if (indexed === 0) return false; // another process has done it
      this.unindexed -= indexed;
      state = await this.#state();
      this.unindexed = state.unindexed;
      const { written } = await this.#ask<{ written: number }>(WRITTEN);
      const rest = state.isComplete ? this.#pace.pauseAfter(performance.now() - step, written) : 0;
      await pause(Math.min(idlePause, rest), undefined, { ref: false, signal }); // a step may have waited for a lock
      if (state.unindexed > 0 && performance.now() > end) return true;
    }
    if (!state.isComplete) return true; // the sorted part remains
    await this.#connections.query('searches', TIDY, [], performance.now() + indexStatement);
    return false;
  }

  /** Ends the first index, on a connection whose statements may take long. */
  async #sort(): Promise<void> {
    const { client } = await connectToWritable(this.#hosts, this.#times);
    try {
      await sortIndex(client, this.#times);
    } finally {
      await client.end();
    }
  }
}

function isLate(error: unknown): boolean {
  return error instanceof StoreUnavailable && error.kind === 'late';
}

/** Sends a statement that reads. */
type Select = (kind: 'searches' | 'counts', ...statement: Required<Parameters<Query>>) => Promise<object[]>;

/** The index as one search sees it; `most` is infinite for a long one. */
function indexBy(select: Select, most: number): SearchableIndex {
  const isShort = most < Number.POSITIVE_INFINITY;
  const rows = async (kind: 'searches' | 'counts', { sql, values }: Statement): Promise<unknown[][]> =>
    (await select(kind, sql, [...values])).map(Object.values);
  return {
    dialect: POSTGRES_DIALECT,
    select: (statement) => rows('searches', statement),
    count: async (statement) => {
      try {
        return Number((await rows(isShort ? 'searches' : 'counts', statement))[0]?.[0]);
      } catch (error) {
        if (isShort || !(error instanceof StoreUnavailable)) throw error;
        return undefined;
      }
    },
  };
}
