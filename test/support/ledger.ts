// Owns: writers that change the same books while the service, or its store, may fail at any moment, and repeat creations without
// an answer with their key; and the check that all answers, and the stored books, are linearizable.

import assert from 'node:assert/strict';
import type { Answer } from '../../conformance/answers.ts';
import type { Book, RequestOptions } from '../../conformance/service.ts';
import { bare, type Requester } from './client.ts';
import { History } from './history.ts';
import { random, randomSequence } from './random.ts';

/** How a write ended: acknowledged, answered with 503 so that its outcome is unknown, or with a broken connection. */
type Outcome = 'acknowledged' | 'unavailable' | 'gone';

/** The approximate number of books: above it, more are removed than created. */
const SHELF = 100;

/** Shares of the writes; the others are changes. */
const CREATIONS = { few: 0.4, many: 0.2 };
const REMOVALS = { few: 0.2, many: 0.4 };

/** Shares of the creations: of arrays, of those that are sent twice at the same moment, and of repetitions while some have no answer. */
const ARRAYS = 0.2;
const TWICE = 0.2;
const AGAIN = 0.5;

/** The most books of an array. */
const MOST_BOOKS = 4;

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

type Creation = readonly ['POST', path: string, options: RequestOptions];

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
  /** Creations that were answered by their key, and conditions that were not met. */
  replays = 0;
  unmet = 0;
  /** Creations without an answer. */
  readonly #lost: Creation[] = [];

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

  /** Repeats what has no answer, and compares all answers with the stored books. No write may be in progress, in the store neither. */
  async reconcile(client: Requester): Promise<void> {
    const observed = this.of(client);
    for (const creation of this.#lost.splice(0))
      assert.equal((await observed.request(...creation)).status, 201, 'a creation is not carried out');
    const listed = await client.list();
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
    if (isNew) return await this.#create(writer, client, draw, around);
    const isRemoved = kind < CREATIONS[shelf] + REMOVALS[shelf];
    const [method, options]: [string, RequestOptions] = isRemoved
      ? ['DELETE', { headers }]
      : ['PUT', { body: isOneField ? { year: body.year } : body, headers }];
    const path = `/book/${id}`;
    this.#inProgress = [...this.#inProgress, id];
    void around();
    const answer = await answerTo(client.request(method, path, options));
    void around();
    this.#inProgress = this.#inProgress.toSpliced(this.#inProgress.indexOf(id), 1);
    if (typeof answer === 'string') {
      this.unanswered += 1;
      // No more writes without an answer come to this book: the states that are possible multiply with each.
      this.#books.delete(id);
      return answer;
    }
    const { status, message } = answer;
    if (status === 412) this.unmet += 1;
    if (status === 412) return undefined;
    const seen = answer.headers.get('etag');
    if (seen === null) this.#books.delete(id);
    else this.#books.set(id, seen);
    if (status === 404) return undefined;
    assert.equal(status, 200, `${method} ${path}: ${message}`);
    writer.latest = path;
    this.acknowledged += 1;
    return 'acknowledged';
  }

  /** Stores new books, or some whose creation has had no answer. */
  async #create(
    writer: Writer,
    client: Requester,
    draw: () => number,
    around: () => unknown,
  ): Promise<Outcome> {
    const creation = (draw() < AGAIN ? this.#lost.shift() : undefined) ?? this.#creation(draw);
    const times = draw() < TWICE ? 2 : 1;
    void around();
    const sent = Array.from({ length: times }, () => answerTo(client.request(...creation)));
    const outcomes = await Promise.all(sent);
    void around();
    const answers = outcomes.filter((outcome) => typeof outcome === 'object');
    const [answer, other = answer] = answers;
    if (answer === undefined) {
      this.unanswered += 1;
      this.#lost.push(creation);
      return outcomes.includes('gone') ? 'gone' : 'unavailable';
    }
    assert.equal(answer.status, 201, `${creation[1]}: ${answer.message}`);
    assert.deepEqual(bare(other as Answer), bare(answer));
    const replays = answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length;
    assert.ok(replays >= answers.length - 1, 'a key was carried out twice');
    this.replays += replays;
    for (const id of [answer.data].flat().map((one) => one.id ?? one)) {
      // A replay has the tag of the book as it was.
      this.#books.set(id, replays === 0 ? answer.headers.get('etag') : null);
      writer.latest = `/book/${id}`;
    }
    this.acknowledged += 1;
    return 'acknowledged';
  }

  /** A new one, with a key. */
  #creation(draw: () => number): Creation {
    const books = Array.from({ length: 1 + Math.floor(draw() * MOST_BOOKS) }, () => {
      this.#lastNumber += 1;
      return bookOf(this.#lastNumber);
    });
    const headers = { 'idempotency-key': `key-${this.#lastNumber}` };
    return draw() < ARRAYS
      ? ['POST', '/books', { body: books, headers }]
      : ['POST', '/book', { body: books[0], headers }];
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
