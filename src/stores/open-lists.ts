// Owns: how many lists are open at once, and which of them is closed for a waiting one (rule 22). Each holds a snapshot and a
// connection for as long as it is read; a few stalled readers must not block the lists of all others.

import { type BookList, StoreUnavailable } from '../books/store.ts';
import type { Times } from '../times.ts';

class OpenList {
  /** When the reader was given the chunk that it is still taking; undefined while the store is at work. */
  handedAt: number | undefined;
  /** Why it was closed before its end. */
  closedFor: string | undefined;
  /** Undefined until it is open. */
  list: BookList | undefined;
}

export class OpenLists {
  readonly #most: number;
  readonly #times: Times['lists'];
  readonly #open = new Set<OpenList>();
  readonly #waiting = new Set<() => void>();

  /** @param most lists open at once. */
  constructor(most: number, times: Times['lists']) {
    this.#most = most;
    this.#times = times;
  }

  get count(): number {
    return this.#open.size;
  }

  /**
   * Opens a list once there is room for it.
   * @throws StoreUnavailable when there is no room in time; any error of `open`.
   */
  async open(open: () => Promise<BookList>): Promise<BookList> {
    const deadline = performance.now() + this.#times.wait;
    while (this.#open.size >= this.#most && !this.#makeRoom()) await this.#roomOr(deadline);
    const entry = new OpenList();
    this.#open.add(entry);
    try {
      entry.list = await open();
    } catch (error) {
      this.#close(entry);
      throw error;
    }
    return { chunks: this.#follow(entry, entry.list), close: () => this.#close(entry) };
  }

  /** Breaks off all of them. */
  breakOff(reason: string): void {
    for (const entry of [...this.#open]) this.#breakOff(entry, reason);
  }

  /** Passes the chunks on, and records since when the reader has had the latest. */
  async *#follow(entry: OpenList, { chunks }: BookList): AsyncGenerator<string | Uint8Array, void, void> {
    try {
      for await (const chunk of chunks) {
        entry.handedAt = performance.now();
        yield chunk;
        entry.handedAt = undefined;
        if (entry.closedFor !== undefined) break;
      }
    } catch (error) {
      if (entry.closedFor === undefined) throw error; // else the store was at work when it was closed
    }
    if (entry.closedFor !== undefined) throw new StoreUnavailable(entry.closedFor, 'overload');
    this.#close(entry);
  }

  /** Closes the list whose reader has stalled the longest, if that is long enough. */
  #makeRoom(): boolean {
    const before = performance.now() - this.#times.stall;
    const stalled = [...this.#open]
      .filter(({ handedAt = Number.POSITIVE_INFINITY }) => handedAt < before)
      .sort((one, other) => (one.handedAt as number) - (other.handedAt as number));
    const [first] = stalled;
    if (first === undefined) return false;
    this.#breakOff(first, 'a list whose reader stalled was closed for another one');
    return true;
  }

  #breakOff(entry: OpenList, reason: string): void {
    entry.closedFor = reason;
    this.#close(entry);
  }

  /** Waits until a list is closed, or may have stalled. */
  async #roomOr(deadline: number): Promise<void> {
    const remaining = deadline - performance.now();
    if (remaining <= 0) throw new StoreUnavailable(`${this.#most} lists are open already`, 'overload');
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.min(remaining, this.#times.stall / 10)); // a list may have stalled by then
    this.#waiting.add(resolve);
    await promise;
    this.#waiting.delete(resolve);
    clearTimeout(timer);
  }

  #close(entry: OpenList): void {
    entry.list?.close();
    if (!this.#open.delete(entry)) return;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next); // so that the next list to end wakes another waiter
    next();
  }
}
