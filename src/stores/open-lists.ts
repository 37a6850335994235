// Owns: how many lists are open at once, and which of them breaks off (rule 22). Each holds a snapshot and a connection for as
// long as it is read; a few slow readers must not block the lists of all others, nor keep a log from being emptied.

import { type BookList, StoreUnavailable } from '../books/store.ts';
import type { Times } from '../times.ts';

/** Bytes a second that a reader takes who does not lag. */
const STEADY_RATE = 1024 * 1024;

class OpenList {
  /** Why it was closed before its end. */
  closedFor: string | undefined;
  /** Undefined until it is open. */
  list: BookList | undefined;
  /** The lag when its reader asked for the latest chunk. */
  #lag = 0;
  /** When a reader without a lag would ask for the next chunk; undefined while the store is at work. */
  #dueAt: number | undefined;

  /**
   * Milliseconds for which its reader has had chunks, beyond those that a steady reader needs. The store's time does not count, nor
   * is a fast beginning credit for later: only as much as buffers hold is fast for every reader.
   */
  get lag(): number {
    return this.#dueAt === undefined ? this.#lag : Math.max(0, performance.now() - this.#dueAt);
  }

  hand(chunk: string | Uint8Array): void {
    this.#dueAt = performance.now() - this.#lag + (Buffer.byteLength(chunk) / STEADY_RATE) * 1000;
  }

  take(): void {
    this.#lag = this.lag;
    this.#dueAt = undefined;
  }
}

export class OpenLists {
  readonly #most: number;
  readonly #times: Times['lists'];
  readonly #open = new Set<OpenList>();
  /** Those that wait for room, in the order in which they came, and how to end their pauses. */
  readonly #waiting = new Map<OpenList, () => void>();

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
    const entry = new OpenList();
    if (this.#open.size < this.#most) this.#open.add(entry);
    else await this.#waitForRoom(entry);
    try {
      entry.list = await open();
    } catch (error) {
      this.#close(entry);
      throw error;
    }
    return { chunks: this.#follow(entry, entry.list), close: () => this.#close(entry) };
  }

  /**
   * Breaks off the list that lags most.
   * @param least milliseconds of its lag, or it stays.
   * @returns whether there was one.
   */
  breakOff(reason: string, least = this.#times.lag): boolean {
    const [first] = [...this.#open]
      .filter(({ list, lag }) => list !== undefined && lag >= least)
      .sort((one, other) => other.lag - one.lag);
    if (first === undefined) return false;
    first.closedFor = reason;
    this.#close(first);
    return true;
  }

  async #waitForRoom(entry: OpenList): Promise<void> {
    const { wait, look } = this.#times;
    const end = performance.now() + wait;
    while (!this.#open.has(entry)) {
      const remaining = end - performance.now();
      if (remaining <= 0) {
        this.#waiting.delete(entry);
        throw new StoreUnavailable(`${this.#most} lists are open already`, 'overload');
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.set(entry, resolve); // an entry that is there already keeps its place
      const timer = setTimeout(resolve, Math.min(remaining, look));
      await promise;
      clearTimeout(timer);
      if (!this.#open.has(entry)) this.breakOff('a list whose reader is slow was closed for another one');
    }
  }

  /** Passes the chunks on, and follows how its reader takes them. */
  async *#follow(entry: OpenList, { chunks }: BookList): AsyncGenerator<string | Uint8Array, void, void> {
    try {
      for await (const chunk of chunks) {
        entry.hand(chunk);
        yield chunk;
        entry.take();
        if (entry.closedFor !== undefined) break;
      }
    } catch (error) {
      if (entry.closedFor === undefined) throw error; // else the store was at work when it was closed
    }
    if (entry.closedFor !== undefined) throw new StoreUnavailable(entry.closedFor, 'overload');
    this.#close(entry);
  }

  /** Its place goes to the list that has waited longest. */
  #close(entry: OpenList): void {
    entry.list?.close();
    if (!this.#open.delete(entry)) return;
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [waiting, endPause] = first;
    this.#waiting.delete(waiting);
    this.#open.add(waiting);
    endPause();
  }
}
