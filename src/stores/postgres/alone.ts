// Owns: calls for books that are carried out alone, since others have locked them or they are large: each book waits by itself.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ConditionalChange, type ConditionalOutcome, HEAVY, weightOfAnswer } from '../../books/store.ts';
import { OVERDUE } from './connections.ts';

/** A change or a removal of a book, with a condition or without. */
export type Change = Pick<ConditionalChange, 'id' | 'changes'> & Partial<ConditionalChange>;

interface Call extends PromiseWithResolvers<ConditionalOutcome> {
  readonly change: Change;
  readonly deadline: number;
}

/** Carries out changes of one book in their order. */
type Carry = (changes: readonly Change[], deadline: number) => Promise<readonly ConditionalOutcome[]>;

/** Calls that arrive while their book waits are carried out together after it. */
export class Alone {
  readonly #carry: Carry;
  /** By the id of each book in question: the calls that come next. */
  readonly #next = new Map<number, Call[]>();

  constructor(carry: Carry) {
    this.#carry = carry;
  }

  call(change: Change, deadline: number): Promise<ConditionalOutcome> {
    const call = { change, deadline, ...Promise.withResolvers<ConditionalOutcome>() };
    const waiting = this.#next.get(change.id);
    waiting?.push(call);
    if (waiting === undefined) {
      this.#next.set(change.id, [call]);
      void this.#carryAll(change.id);
    }
    return call.promise;
  }

  async #carryAll(id: number): Promise<void> {
    await nextTurn(); // to gather the calls of this turn of the event loop
    for (let calls = this.#next.get(id); calls?.length; calls = this.#next.get(id)) {
      this.#next.set(id, []);
      const now = performance.now();
      await this.#carryTogether(calls.filter(({ deadline }) => deadline > now));
      for (const { reject } of calls) reject(OVERDUE); // those that are not settled
    }
    this.#next.delete(id);
  }

  async #carryTogether(calls: readonly Call[]): Promise<void> {
    if (calls.length === 0) return;
    try {
      const changes = calls.map(({ change }) => change);
      const outcomes = await this.#carry(changes, Math.min(...calls.map(({ deadline }) => deadline)));
      let weight = 0;
      for (const [position, { resolve }] of calls.entries()) {
        const outcome = outcomes[position];
        resolve(outcome);
        weight += weightOfAnswer(outcome);
        if (weight < HEAVY) continue;
        weight = 0;
        await nextTurn(); // the callers make texts of the books
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }
}
