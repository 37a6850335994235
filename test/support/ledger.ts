// Owns: writers that change the same books while the service, or its store, may fail at any moment; and the check that all
// answers, and the stored books, are linearizable.

import assert from 'node:assert/strict';
import type { Answer } from '../../conformance/answers.ts';
import type { Book } from '../../conformance/service.ts';
import type { Requester } from './client.ts';
import { History } from './history.ts';
import { random, randomSequence } from './random.ts';

/** How a write ended: acknowledged, answered with 503 so that its outcome is unknown, or with a broken connection. */
type Outcome = 'acknowledged' | 'unavailable' | 'gone';

/** The approximate number of books: above it, more are removed than created. */
const SHELF = 100;

/** Shares of the writes; the others are changes. */
const CREATIONS = { few: 0.4, many: 0.2 };
const REMOVALS = { few: 0.2, many: 0.4 };

/** The share of the changes that are of one field, and of the changes and removals that are made on a condition. */
const ONE_FIELD = 0.3;
const CONDITIONAL = 0.2;

/** Writers that change one book at the same time: if none of them is answered, the states that are possible multiply. */
const MEETING = 6;

export interface Writer {
  /** The path of the book that it wrote last. */
  latest: string;
  /**
   * Creates, changes or removes a book that other writers also change.
   * @param around called just before each request and just after its answer.
   */
  write(around?: () => unknown): Promise<Outcome>;
}

export class Ledger {
  readonly #history = new History();
  /** Books that may be there, with the latest tag that was seen of each. */
  readonly #books = new Map<number, string | null>();
  /** The book of each change and removal in progress. */
  #inProgress: readonly number[] = [];
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
    const draw = randomSequence(this.#writers); // so that its choices do not depend on how often the others have drawn
    const observed = this.of(client);
    const writer: Writer = {
      latest: '/book/1',
      write: async (around = () => {}) =>
        (await this.#write(writer, observed, draw, around)) ?? (await writer.write(around)),
    };
    return writer;
  }

  writers(client: Requester, count: number): Writer[] {
    return Array.from({ length: count }, () => this.writer(client));
  }

  /** Compares all answers with the stored books. No write may be in progress, in the store neither. */
  reconcile(listed: readonly Book[]): void {
    this.#history.settle(listed);
    this.#books.clear();
    for (const { id } of listed) this.#books.set(id, null);
  }

  /** Reads a book, or what is at the path. @returns `acknowledged` if it is answered. */
  async read(client: Requester, path = `/book/${this.#book(random())[0] ?? 1}`): Promise<Outcome> {
    const answer = await answerTo(this.of(client).request('GET', path));
    if (typeof answer === 'string') return answer;
    assert.ok([200, 404].includes(answer.status), `GET ${path}: ${answer.message}`);
    return 'acknowledged';
  }

  /**
   * A book that may be there, and its tag.
   * @param choice in [0, 1); of low numbers come few books, so that writers meet.
   * @param writers how many may change it already.
   */
  #book(choice: number, writers = Number.POSITIVE_INFINITY): readonly [id?: number, tag?: string | null] {
    const books = [...this.#books].filter(([id]) => this.#writersOf(id) <= writers);
    return books[Math.floor(choice ** 2 * books.length)] ?? [];
  }

  #writersOf(id: number): number {
    return this.#inProgress.filter((one) => one === id).length;
  }

  /** @returns undefined if another writer has changed or removed the book. */
  async #write(
    writer: Writer,
    client: Requester,
    draw: () => number,
    around: () => unknown,
  ): Promise<Outcome | undefined> {
    const kind = draw();
    const [id, tag] = this.#book(draw(), MEETING - 1);
    const isOneField = draw() < ONE_FIELD;
    const headers: Record<string, string> = draw() < CONDITIONAL && tag ? { 'if-match': tag } : {};
    this.#lastNumber += 1;
    const body = bookOf(this.#lastNumber);
    const shelf = this.#books.size < SHELF ? 'few' : 'many';
    const isNew = id === undefined || kind < CREATIONS[shelf];
    const isRemoved = kind < CREATIONS[shelf] + REMOVALS[shelf];
    const [method, path, options]: Parameters<Requester['request']> = isNew
      ? ['POST', '/book', { body }]
      : isRemoved
        ? ['DELETE', `/book/${id}`, { headers }]
        : ['PUT', `/book/${id}`, { body: isOneField ? { year: body.year } : body, headers }];
    if (!isNew) this.#inProgress = [...this.#inProgress, id];
    void around();
    const answer = await answerTo(client.request(method, path, options));
    void around();
    if (!isNew) this.#inProgress = this.#inProgress.toSpliced(this.#inProgress.indexOf(id), 1);
    if (typeof answer === 'string') {
      this.unanswered += 1;
      // No more writes without an answer come to this book: the states that are possible multiply with each.
      if (!isNew) this.#books.delete(id);
      return answer;
    }
    const { status, data, message } = answer;
    if (!isNew && status === 412) return undefined;
    const written: number = data?.id ?? id;
    const seen = answer.headers.get('etag');
    if (seen === null) this.#books.delete(written);
    else this.#books.set(written, seen);
    if (!isNew && status === 404) return undefined;
    assert.equal(status, isNew ? 201 : 200, `${method} ${path}: ${message}`);
    writer.latest = `/book/${written}`;
    this.acknowledged += 1;
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
