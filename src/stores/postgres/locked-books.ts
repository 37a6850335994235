// Owns: calls for books that other transactions have locked, and for large ones: each book waits by itself, and delays no other.

import { setImmediate } from 'node:timers/promises';
import { HEAVY } from '../../books/store.ts';
import { OVERDUE } from './connections.ts';

/** A call for a book that is locked by others. */
interface HeldCall<Item, Answer> extends PromiseWithResolvers<Answer> {
  readonly item: Item;
  readonly deadline: number;
}

/**
 * Calls for books that are locked by others. Each book waits by itself. Calls that arrive while its statement waits for
 * the lock form the next statement.
 */
export class LockedBooks<Item, Answer> {
  readonly #carry: (id: number, items: readonly Item[], deadline: number) => Promise<readonly Answer[]>;
  readonly #weighAnswer: (answer: Answer) => number;
  /** By the id of each book in question: the calls that wait for their statement. */
  readonly #books = new Map<number, HeldCall<Item, Answer>[]>();

  /** @param weighAnswer an answer's weight, in the unit of HEAVY. */
  constructor(
    carry: (id: number, items: readonly Item[], deadline: number) => Promise<readonly Answer[]>,
    weighAnswer: (answer: Answer) => number = () => 0,
  ) {
    this.#carry = carry;
    this.#weighAnswer = weighAnswer;
  }

  call(id: number, item: Item, deadline: number): Promise<Answer> {
    const call = { item, deadline, ...Promise.withResolvers<Answer>() };
    const waiting = this.#books.get(id);
    if (waiting === undefined) {
      this.#books.set(id, [call]);
      void this.#carryAll(id);
    } else {
      waiting.push(call);
    }
    return call.promise;
  }

  async #carryAll(id: number): Promise<void> {
    await setImmediate(); // to gather the calls of this turn of the event loop
    for (
      let calls = this.#books.get(id);
      calls !== undefined && calls.length > 0;
      calls = this.#books.get(id)
    ) {
      this.#books.set(id, []);
      const { inTime = [], overdue = [] } = Object.groupBy(calls, ({ deadline }) =>
        performance.now() < deadline ? 'inTime' : 'overdue',
      );
      for (const call of overdue) call.reject(OVERDUE);
      await this.#carryTogether(id, inTime);
    }
    this.#books.delete(id);
  }

  async #carryTogether(id: number, calls: readonly HeldCall<Item, Answer>[]): Promise<void> {
    if (calls.length === 0) return;
    try {
      const items = calls.map(({ item }) => item);
      const answers = await this.#carry(id, items, Math.min(...calls.map(({ deadline }) => deadline)));
      let weight = 0;
      for (const [position, call] of calls.entries()) {
        const answer = answers[position] as Answer;
        call.resolve(answer);
        weight += this.#weighAnswer(answer);
        if (weight < HEAVY) continue;
        weight = 0;
        await setImmediate(); // the callers make texts of the books
      }
    } catch (error) {
      for (const call of calls) call.reject(error);
    }
  }
}
