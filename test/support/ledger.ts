// Owns: writers that change the same books while the service, or its store, may fail at any moment; and the check that all
// answers, and the stored books, are linearizable.

import assert from 'node:assert/strict';
import type { Answer } from '../../conformance/answers.ts';
import type { Book, RequestOptions } from '../../conformance/service.ts';
import type { Requester } from './client.ts';
import { History } from './history.ts';
import { random, randomSequence } from './random.ts';

/** How a write ended: acknowledged, answered with 503 so that its outcome is unknown, or with a broken connection. */
export type Outcome = 'acknowledged' | 'unavailable' | 'gone';

/** The approximate number of books: above it, more are removed than created. */
const SHELF = 100;

/** Shares of the writes; the others are changes. */
const CREATIONS = { few: 0.4, many: 0.2 };
const REMOVALS = { few: 0.2, many: 0.4 };

/** The share of the changes that are of one field, and of the changes and removals that are made on a condition. */
const ONE_FIELD = 0.3;
const CONDITIONAL = 0.2;

export class Ledger {
  readonly #history = new History();
  /** Books that may be there, with the latest tag that was seen of each. */
  readonly #books = new Map<number, string | undefined>();
  #lastNumber = 0;
  #writers = 0;
  /** Writes that were acknowledged, and those whose outcome is unknown. */
  acknowledged = 0;
  unanswered = 0;

  /** A client whose answers must agree with those of the writers. */
  of(client: Requester): Requester {
    return this.#history.of(client);
  }

  writer(client: Requester): Writer {
    this.#writers += 1;
    return new Writer(this.of(client), this, randomSequence(this.#writers));
  }

  writers(client: Requester, count: number): Writer[] {
    return Array.from({ length: count }, () => this.writer(client));
  }

  /** Compares all answers with the stored books. No write may be in progress, in the store neither. */
  reconcile(listed: readonly Book[]): void {
    this.#history.settle(listed);
    this.#books.clear();
    for (const { id } of listed) this.#books.set(id, undefined);
  }

  /** A number that no book has had. */
  nextNumber(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  get shelf(): 'few' | 'many' {
    return this.#books.size < SHELF ? 'few' : 'many';
  }

  /** A book that may be there. @param choice in [0, 1); of low numbers come few books, so that writers meet. */
  book(choice: number): { readonly id: number; readonly tag: string | undefined } | undefined {
    const [id, tag] = [...this.#books][Math.floor(choice ** 2 * this.#books.size)] ?? [];
    return id === undefined ? undefined : { id, tag };
  }

  /** Reads a book, or what is at the path. @returns `acknowledged` if it is answered. */
  async read(client: Requester, path = `/book/${this.book(random())?.id ?? 1}`): Promise<Outcome> {
    const answer = await answerTo(this.of(client).request('GET', path));
    if (typeof answer === 'string') return answer;
    assert.ok([200, 404].includes(answer.status), `GET ${path}: ${answer.message}`);
    return 'acknowledged';
  }

  /** Notes what an answer says of a book: its tag, or that it is not there. */
  see(id: number, tag: string | null): void {
    if (tag === null) this.#books.delete(id);
    else this.#books.set(id, tag);
  }
}

/** Creates, updates and removes books, one after the other, that other writers also change. */
export class Writer {
  readonly #client: Requester;
  readonly #ledger: Ledger;
  /** Its own sequence, so that its choices do not depend on how often the other writers have drawn. */
  readonly #random: () => number;
  /** The path of the book that it wrote last. */
  latest = '/book/1';

  constructor(client: Requester, ledger: Ledger, random: () => number) {
    this.#client = client;
    this.#ledger = ledger;
    this.#random = random;
  }

  /** @param around called just before each request and just after its answer. */
  async write(around: () => unknown = () => {}): Promise<Outcome> {
    const ledger = this.#ledger;
    let outcome: Outcome | undefined;
    while (outcome === undefined) {
      const kind = this.#random();
      const book = ledger.book(this.#random());
      const isOneField = this.#random() < ONE_FIELD;
      const isConditional = this.#random() < CONDITIONAL;
      const body = bookOf(ledger.nextNumber());
      const creations = CREATIONS[ledger.shelf];
      if (book === undefined || kind < creations) {
        outcome = await this.#send('POST', '/book', { body }, around);
        continue;
      }
      const path = `/book/${book.id}`;
      const headers: Record<string, string> =
        isConditional && book.tag !== undefined ? { 'if-match': book.tag } : {};
      const changes = isOneField ? { year: body.year } : body;
      outcome =
        kind < creations + REMOVALS[ledger.shelf]
          ? await this.#send('DELETE', path, { headers }, around)
          : await this.#send('PUT', path, { body: changes, headers }, around);
    }
    return outcome;
  }

  /** @returns undefined if another writer has changed or removed the book. */
  async #send(
    method: string,
    path: string,
    options: RequestOptions,
    around: () => unknown,
  ): Promise<Outcome | undefined> {
    const ledger = this.#ledger;
    void around();
    const answer = await answerTo(this.#client.request(method, path, options));
    void around();
    if (typeof answer === 'string') {
      ledger.unanswered += 1;
      // No more writes without an answer come to this book: the states that are possible multiply with each.
      if (method !== 'POST') ledger.see(Number(path.split('/').at(-1)), null);
      return answer;
    }
    const { status, headers, data, message } = answer;
    if (method !== 'POST' && status === 412) return undefined;
    const id = data?.id ?? Number(path.split('/').at(-1));
    ledger.see(id, headers.get('etag'));
    if (method !== 'POST' && status === 404) return undefined;
    assert.equal(status, method === 'POST' ? 201 : 200, `${method} ${path}: ${message}`);
    this.latest = `/book/${id}`;
    ledger.acknowledged += 1;
    return 'acknowledged';
  }
}

/** Waits for an answer, unless the connection breaks, or its status is 503. */
async function answerTo(request: Promise<Answer>): Promise<Answer | 'unavailable' | 'gone'> {
  try {
    const answer = await request;
    if (answer.status !== 503) return answer;
    assert.ok(Number(answer.headers.get('retry-after')) > 0);
    return 'unavailable';
  } catch (error) {
    if (error instanceof TypeError) return 'gone'; // the connection broke
    throw error;
  }
}

/** A book that shows which write it is of. Every third one takes many pages of a file. */
function bookOf(number: number): Omit<Book, 'id'> {
  const repeats = number % 3 === 0 ? 4000 : 1;
  return { title: `title ${number} `.repeat(repeats), author: `author ${number}`, year: number };
}
