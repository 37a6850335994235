// Owns: a record of the books that clients write while the service, or its store, may fail at any moment: which writes
// were acknowledged, which may have happened, and whether the stored books agree with that.

import assert from 'node:assert/strict';
import type { Book } from '../../conformance/service.ts';
import type { Requester } from './client.ts';
import { randomSequence } from './random.ts';

/** How a write ended: acknowledged, answered with 503 so that its outcome is unknown, or with a broken connection. */
export type Outcome = 'acknowledged' | 'unavailable' | 'gone';

/** A possible state of a book: the number in all of its fields, or undefined if it is removed. */
type State = number | undefined;

/** The approximate number of books of one writer: above it, more are removed than created. */
const SHELF = 16;

export class Ledger {
  /** By id, the states a book may be in. */
  readonly #books = new Map<number, State[]>();
  /** Books that may have been created without an answer. */
  readonly #unanswered = new Set<number>();
  readonly #usedIds = new Set<number>();
  #lastNumber = 0;
  #writers = 0;
  /** Writes that were begun, and those that were acknowledged. */
  begun = 0;
  acknowledged = 0;

  /** A writer whose books no one else changes, so that the store must agree with its answers. */
  writer(client: Requester): Writer {
    return this.#writerOf(client, []);
  }

  /** Writers that divide all books among themselves; to be called right after `reconcile`. */
  writers(client: Requester, count: number): Writer[] {
    const ids = [...this.#books.keys()];
    return Array.from({ length: count }, (_, position) => {
      const own = ids.filter((_id, index) => index % count === position);
      return this.#writerOf(client, own);
    });
  }

  #writerOf(client: Requester, own: number[]): Writer {
    this.#writers += 1;
    return new Writer(client, this, own, randomSequence(this.#writers));
  }

  /** Compares the record with the stored books, which replace it. No write may be in progress. */
  reconcile(listed: readonly Book[]): void {
    const missing = new Map(this.#books);
    this.#books.clear();
    for (const { id, ...fields } of listed) {
      const number = fields.year;
      assert.deepEqual(fields, bookOf(number), `book ${id} is not of one write`);
      const states = missing.get(id);
      if (states === undefined) {
        this.#use(id);
        assert.ok(this.#unanswered.delete(number), `book ${id} exists, though no client created it`);
      } else {
        assert.ok(states.includes(number), `book ${id} is ${number}, not one of ${states}`);
      }
      missing.delete(id);
      this.#books.set(id, [number]);
    }
    for (const [id, states] of missing) assert.ok(states.includes(undefined), `book ${id} is lost`);
    this.#unanswered.clear();
  }

  /** A number that no book has had. */
  nextNumber(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  beginCreation(number: number): void {
    this.begun += 1;
    this.#unanswered.add(number);
  }

  endCreation(number: number, id: number): void {
    this.#unanswered.delete(number);
    this.#use(id);
    this.#books.set(id, [number]);
    this.acknowledged += 1;
  }

  beginChange(id: number, state: State): void {
    this.begun += 1;
    this.#books.get(id)?.push(state);
  }

  endChange(id: number, state: State): void {
    if (state === undefined) this.#books.delete(id);
    else this.#books.set(id, [state]);
    this.acknowledged += 1;
  }

  #use(id: number): void {
    assert.ok(!this.#usedIds.has(id), `id ${id} was given out again`);
    this.#usedIds.add(id);
  }
}

/** Creates, updates and removes books of its own, one after the other. */
class Writer {
  readonly #client: Requester;
  readonly #ledger: Ledger;
  /** Books whose state is known for certain; the others are left alone, since a late write may still reach them. */
  readonly #own: number[];
  /** Its own sequence, so that its choices do not depend on the timing of the other writers. */
  readonly #random: () => number;

  constructor(client: Requester, ledger: Ledger, own: number[], random: () => number) {
    this.#client = client;
    this.#ledger = ledger;
    this.#own = own;
    this.#random = random;
  }

  /** @param around called just before the request and just after its answer. */
  async write(around: () => unknown = () => {}): Promise<Outcome> {
    const ledger = this.#ledger;
    const number = ledger.nextNumber();
    const body = bookOf(number);
    const choice = this.#random();
    const creations = this.#own.length < SHELF ? 0.4 : 0.2; // of all writes; 0.4 are changes
    if (this.#own.length === 0 || choice < creations) {
      ledger.beginCreation(number);
      const answer = await this.#send('POST', '/book', 201, body, around);
      if (typeof answer === 'string') return answer;
      assert.deepEqual(answer.data, { id: answer.data.id, ...body });
      ledger.endCreation(number, answer.data.id);
      this.#own.push(answer.data.id);
      return 'acknowledged';
    }
    const position = Math.floor(this.#random() * this.#own.length);
    const id = this.#own[position] as number;
    this.#own.splice(position, 1);
    if (choice < creations + 0.4) {
      ledger.beginChange(id, number);
      const answer = await this.#send('PUT', `/book/${id}`, 200, body, around);
      if (typeof answer === 'string') return answer;
      assert.deepEqual(answer.data, { id, ...body });
      ledger.endChange(id, number);
      this.#own.push(id);
    } else {
      ledger.beginChange(id, undefined);
      const answer = await this.#send('DELETE', `/book/${id}`, 200, undefined, around);
      if (typeof answer === 'string') return answer;
      ledger.endChange(id, undefined);
    }
    return 'acknowledged';
  }

  async #send(method: string, path: string, success: number, body: unknown, around: () => unknown) {
    try {
      void around();
      const answer = await this.#client.request(method, path, { body });
      void around();
      if (answer.status === 503) {
        assert.ok(Number(answer.headers.get('retry-after')) > 0);
        return 'unavailable';
      }
      assert.equal(answer.status, success, `${method} ${path}: ${answer.message}`);
      return answer;
    } catch (error) {
      if (error instanceof TypeError) return 'gone'; // the connection broke
      throw error;
    }
  }
}

/** A book that shows whether all of its fields are of one write. Every third one takes many pages of a file. */
function bookOf(number: number): Omit<Book, 'id'> {
  const repeats = number % 3 === 0 ? 2000 : 1;
  return { title: `title ${number} `.repeat(repeats), author: `author ${number}`, year: number };
}
