// Owns: requests that wait for a change (rule H3). The store looks for changes while at least one waits. A change wakes all of
// them, so they read in turn. Requests that read the same share one read, and get their answers one by one.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { within } from '../within.ts';
import { StoreUnavailable } from './store.ts';

/** The most that may wait: after a change, all of them read. */
const MOST = 1000;

/** One read for all requests that read the same. */
interface Reading<Answer> {
  readonly read: () => Promise<Answer>;
  readonly readers: Set<PromiseWithResolvers<Answer>>;
  readonly started: PromiseWithResolvers<true>;
}

export class Followers<Answer> {
  readonly #watch: (onChange: () => void) => () => void;
  readonly #isSomething: (answer: Answer) => boolean;
  readonly #room: () => Promise<void>;
  /** The requests that wait; each can be woken. */
  readonly #waiting = new Set<{ wake: () => void }>();
  /** Reads that have not started, in their order, by the keys of their requests. */
  readonly #readings = new Map<string, Reading<Answer>>();
  #isReading = false;
  #endWatch = () => {};
  #isClosed = false;

  /**
   * @param watch of a store.
   * @param isSomething whether an answer ends a wait.
   * @param room resolves once there is room for an answer.
   */
  constructor(
    watch: (onChange: () => void) => () => void,
    isSomething: (answer: Answer) => boolean,
    room: () => Promise<void>,
  ) {
    this.#watch = watch;
    this.#isSomething = isSomething;
    this.#room = room;
  }

  /** How many wait. */
  get count(): number {
    return this.#waiting.size;
  }

  /** Whether another one may wait. */
  get hasRoom(): boolean {
    return this.count < MOST && !this.#isClosed;
  }

  /**
   * Reads, and again after each change, until there is something, or the time is over.
   * @param key equal for requests that read the same.
   * @param wait milliseconds.
   * @param signal also ends the wait.
   * @returns the last answer, and the milliseconds that were waited.
   * @throws StoreUnavailable if its turn does not come in this time.
   */
  async read(
    key: string,
    read: () => Promise<Answer>,
    wait: number,
    signal: AbortSignal,
  ): Promise<{ answer: Answer; waited: number }> {
    const follower = { wake: () => {} };
    if (this.#waiting.size === 0) this.#endWatch = this.#watch(() => this.#wakeAll());
    this.#waiting.add(follower);
    const end = performance.now() + wait;
    let waited = 0;
    let last: Answer | undefined;
    try {
      for (;;) {
        const change = Promise.withResolvers<void>(); // also one while it reads
        follower.wake = change.resolve;
        const answer: Answer | undefined = (await this.#readInTurn(key, read, end)) ?? last;
        if (answer === undefined) throw new StoreUnavailable('more requests wait than can read', 'overload');
        const began = performance.now();
        if (this.#isSomething(answer) || began >= end || signal.aborted || this.#isClosed)
          return { answer, waited };
        last = answer;
        signal.addEventListener('abort', follower.wake);
        await within(end - began, change.promise);
        signal.removeEventListener('abort', follower.wake);
        waited += performance.now() - began;
      }
    } finally {
      this.#waiting.delete(follower);
      if (this.#waiting.size === 0) this.#endWatch();
    }
  }

  /** Ends all waits, and lets none begin. */
  close(): void {
    this.#isClosed = true;
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const { wake } of this.#waiting) wake();
  }

  /** @returns undefined if the turn does not come until this moment. */
  async #readInTurn(key: string, read: () => Promise<Answer>, end: number): Promise<Answer | undefined> {
    let reading = this.#readings.get(key);
    if (reading === undefined) {
      reading = { read, readers: new Set(), started: Promise.withResolvers() };
      this.#readings.set(key, reading);
    }
    const reader = Promise.withResolvers<Answer>();
    reading.readers.add(reader);
    if (!this.#isReading) void this.#readAll();
    if (await within(Math.max(0, end - performance.now()), reading.started.promise))
      return await reader.promise;
    reading.readers.delete(reader);
    return undefined;
  }

  async #readAll(): Promise<void> {
    this.#isReading = true;
    await Promise.resolve(); // requests that wake together share their reads
    for (const [key, reading] of this.#readings) {
      await this.#room();
      this.#readings.delete(key);
      if (reading.readers.size === 0) continue;
      reading.started.resolve(true);
      try {
        const answer = await reading.read();
        for (const { resolve } of reading.readers) {
          resolve(answer);
          await nextTurn(); // each request makes an answer, which takes room
        }
      } catch (error) {
        // The next reads would take as long to fail.
        for (const failed of [reading, ...this.#readings.values()]) {
          failed.started.resolve(true);
          for (const { promise, reject } of failed.readers) {
            promise.catch(() => {}); // it is awaited later
            reject(error);
          }
        }
        this.#readings.clear();
      }
    }
    this.#isReading = false;
  }
}
