// Owns: requests that wait for a change (rule H3). The store looks for changes while at least one waits.

import { within } from '../within.ts';

/** So many may wait: after a change all of them read at once. */
const MOST = 1000;

export class Followers {
  readonly #watch: (onChange: () => void) => () => void;
  /** What ends the wait of each until the next change. */
  readonly #waiting = new Set<{ wake: () => void }>();
  #endWatch = () => {};
  #isClosed = false;

  /** @param watch of a store. */
  constructor(watch: (onChange: () => void) => () => void) {
    this.#watch = watch;
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
   * @param wait milliseconds.
   * @param signal also ends the wait.
   * @returns what was read last, and the milliseconds that were waited.
   */
  async read<Answer>(
    read: () => Promise<Answer>,
    isSomething: (answer: Answer) => boolean,
    wait: number,
    signal: AbortSignal,
  ): Promise<{ answer: Answer; waited: number }> {
    const follower = { wake: () => {} };
    this.#add(follower);
    const end = performance.now() + wait;
    let waited = 0;
    try {
      for (;;) {
        const change = Promise.withResolvers<void>(); // also one while it reads
        follower.wake = change.resolve;
        const answer = await read();
        const began = performance.now();
        if (isSomething(answer) || began >= end || signal.aborted || this.#isClosed)
          return { answer, waited };
        signal.addEventListener('abort', follower.wake);
        await within(end - began, change.promise);
        signal.removeEventListener('abort', follower.wake);
        waited += performance.now() - began;
      }
    } finally {
      this.#remove(follower);
    }
  }

  /** Ends all waits, and lets none begin. */
  close(): void {
    this.#isClosed = true;
    this.#wakeAll();
  }

  #add(follower: { wake: () => void }): void {
    this.#waiting.add(follower);
    if (this.#waiting.size === 1) this.#endWatch = this.#watch(() => this.#wakeAll());
  }

  #remove(follower: { wake: () => void }): void {
    this.#waiting.delete(follower);
    if (this.#waiting.size === 0) this.#endWatch();
  }

  #wakeAll(): void {
    for (const { wake } of this.#waiting) wake();
  }
}
