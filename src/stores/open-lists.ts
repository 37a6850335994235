// Owns: how many lists are open at once, and the end of those that cost others too much (rule 22). Each holds a snapshot and a
// connection for as long as it is read: a few stalled readers must not block the lists of all others, nor slow ones fill the disk.

import { type BookList, StoreUnavailable } from '../books/store.ts';
import type { Times } from '../times.ts';

export class OpenLists {
  readonly #most: number;
  readonly #times: Times['lists'];
  #count = 0;
  /** Let those in that wait for room, in the order in which they came. */
  readonly #waiting = new Set<() => void>();
  /** How to close the open lists, and since when they are open. */
  readonly #open = new Map<() => void, number>();
  /** The lists that wait for their readers, the longest wait first: how to close each, and since when it waits. */
  readonly #handed = new Map<() => void, number>();

  /** @param most lists open at once. */
  constructor(most: number, times: Times['lists']) {
    this.#most = most;
    this.#times = times;
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Opens a list once there is room for it. Without room, the list breaks off whose reader has stalled for longest.
   * @throws StoreUnavailable when there is no room in time; any error of `open`.
   */
  async open(open: () => Promise<BookList>): Promise<BookList> {
    if (this.#count === this.#most) this.#breakOffStalled();
    if (this.#count < this.#most) this.#count += 1;
    else await this.#waitForRoom();
    let list: BookList;
    try {
      list = await open();
    } catch (error) {
      this.#giveRoom();
      throw error;
    }
    const close = () => {
      if (!this.#open.delete(close)) return;
      this.#handed.delete(close);
      list.close();
      this.#giveRoom();
    };
    this.#open.set(close, performance.now());
    return { chunks: this.#follow(list.chunks, close), close };
  }

  /** Breaks off all lists that are being read once one has been open for long: each holds what the others hold. */
  breakOffLong(): void {
    const [oldest = Number.POSITIVE_INFINITY] = this.#open.values();
    if (oldest <= performance.now() - this.#times.long) for (const close of this.#handed.keys()) close();
  }

  #breakOffStalled(): void {
    const [longest] = this.#handed;
    if (longest === undefined) return;
    const [close, since] = longest;
    if (performance.now() - since >= this.#times.stall) close();
  }

  #waitForRoom(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const take = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      this.#waiting.delete(take);
      reject(new StoreUnavailable(`${this.#most} lists are open already`, 'overload'));
    }, this.#times.wait);
    this.#waiting.add(take);
    return promise;
  }

  /** The one that has waited longest is next. */
  #giveRoom(): void {
    const [first] = this.#waiting;
    if (first === undefined) this.#count -= 1;
    else if (this.#waiting.delete(first)) first();
  }

  /** Passes the chunks on, and notes since when its reader has each. */
  async *#follow(
    chunks: BookList['chunks'],
    close: () => void,
  ): AsyncGenerator<string | Uint8Array, void, void> {
    for await (const chunk of chunks) {
      this.#handed.set(close, performance.now());
      try {
        yield chunk;
      } finally {
        this.#handed.delete(close);
      }
      if (!this.#open.has(close)) throw new StoreUnavailable('its reader was too slow', 'overload');
    }
    close();
  }
}
