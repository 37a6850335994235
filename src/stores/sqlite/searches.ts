// Owns: the threads that search a served SQLite file: one for short searches, one for long ones.

import type { Worker } from 'node:worker_threads';
import type { Misspelt, Page, Search, Suggestions } from '../../books/search.ts';
import { type BookSearch, type LongSearch, type SearchIndex, StoreUnavailable } from '../../books/store.ts';
import { startThread } from '../../thread.ts';
import type { DurableReads } from './durable-reads.ts';
import type { Found, GivenUp, Outcome, SearchRequest } from './finder.ts';
import type { GroupCommit } from './group-commit.ts';
import { endThread, type ThreadData } from './thread.ts';
import type { Wal } from './wal.ts';

/** A thread that searches. It carries out one search after the other, and answers in the same order. */
export class FinderThread {
  readonly #thread: Worker;
  readonly #waiting: PromiseWithResolvers<Found | GivenUp>[] = [];

  static async start(data: ThreadData): Promise<FinderThread> {
    return new FinderThread(await startThread('src/stores/sqlite/finder.ts', data));
  }

  constructor(thread: Worker) {
    this.#thread = thread;
    thread.on('message', (outcome: Outcome) => {
      const first = this.#waiting.shift();
      if ('answer' in outcome) first?.resolve(outcome.answer);
      else first?.reject(new StoreUnavailable(outcome.reason, outcome.fault));
    });
  }

  /** @throws StoreUnavailable */
  search(request: SearchRequest): Promise<Found | GivenUp> {
    const outcome = Promise.withResolvers<Found | GivenUp>();
    this.#waiting.push(outcome);
    this.#thread.postMessage(request);
    return outcome.promise;
  }

  /** Lets the searches in progress end, then ends the thread. */
  close(): Promise<void> {
    return endThread(this.#thread);
  }
}

export class Searches implements BookSearch {
  readonly #reads: DurableReads;
  readonly #commits: GroupCommit;
  readonly #wal: Wal;
  readonly #threads: ThreadData;
  readonly #finder: FinderThread;
  /** Starts with the first long search, since it takes memory. */
  #longFinder: Promise<FinderThread> | undefined;

  constructor(
    reads: DurableReads,
    commits: GroupCommit,
    wal: Wal,
    threads: ThreadData,
    finder: FinderThread,
  ) {
    this.#reads = reads;
    this.#commits = commits;
    this.#wal = wal;
    this.#threads = threads;
    this.#finder = finder;
  }

  readonly page: SearchIndex<Search, Page> = (...asked) => this.#search(...asked);
  readonly suggestions: SearchIndex<Misspelt, Suggestions> = (...asked) => this.#search(...asked);

  async #search<Wanted extends Found>(
    search: Search | Misspelt,
    until: number,
    most: number,
  ): Promise<Wanted | LongSearch<Wanted>> {
    const deadline = performance.timeOrigin + until;
    const found = await this.#find(this.#finder, { search, deadline, mode: { most } });
    if (!('isGivenUp' in found)) return found as Wanted;
    return async () =>
      (await this.#find(await this.#startLongFinder(), { search, deadline, mode: found })) as Wanted;
  }

  async close(): Promise<void> {
    const longFinder = await this.#longFinder?.catch(() => undefined);
    await Promise.all([this.#finder.close(), longFinder?.close()]);
  }

  async #find(finder: FinderThread, request: SearchRequest): Promise<Found | GivenUp> {
    await this.#wal.shorter();
    const found = await finder.search(request);
    await this.#commits.durable(request.deadline - performance.timeOrigin); // it may have seen a write whose sync was in progress
    return found;
  }

  async #startLongFinder(): Promise<FinderThread> {
    try {
      if (this.#longFinder === undefined) this.#reads.file.assertInPlace(); // it opens the path again
      this.#longFinder ??= FinderThread.start({ ...this.#threads, isLong: true });
      return await this.#longFinder;
    } catch (error) {
      this.#longFinder = undefined; // it has not started
      throw new StoreUnavailable(error);
    }
  }
}
