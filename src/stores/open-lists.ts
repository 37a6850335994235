// Owns: how many lists are open at once, and the end of one whose reader stalls (rule 22). Each holds a snapshot and a
// connection for as long as it is read: a few stalled readers must not block the lists of all others.

import { type BookList, StoreUnavailable } from '../books/store.ts';
import type { Times } from '../times.ts';

export class OpenLists {
  readonly #most: number;
  readonly #times: Times['lists'];
  #count = 0;
  /** Give room to those that wait for it, in the order in which they came. */
  readonly #waiting = new Set<() => void>();
  /** How to close the lists whose readers have a chunk, and since when they have it, the longest time first. */
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
    let isOpen = true;
    const close = () => {
      if (!isOpen) return;
      isOpen = false;
      list.close();
      this.#giveRoom();
    };
    return { chunks: this.#follow(list.chunks, close), close };
  }

  #breakOffStalled(): void {
    const [longest] = this.#handed;
    if (longest === undefined) return;
    const [close, since] = longest;
    if (performance.now() - since < this.#times.stall) return;
    this.#handed.delete(close);
    close();
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

  /** The place of a list goes to the one that has waited longest. */
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
      let isOpen = false;
      try {
        yield chunk;
      } finally {
        isOpen = this.#handed.delete(close);
      }
      if (!isOpen) throw new StoreUnavailable('a list was closed whose reader had stalled', 'overload');
    }
    close();
  }
}
