// Owns: the history of what clients ask about books and are answered, and the check that it is linearizable: that all
// answers are as if each request had taken effect at one moment between its begin and its end.
// - Each book by itself: creations, reads, changes and removals, with and without a condition. One without an answer, or
//   answered with 503, may have taken effect at any moment since its begin, or never. A list reads every book.
// - Each list as one cut: at one moment between its begin and its end, all books may have been as it shows them. For each
//   book, these moments are found by putting a read without duration there; one must be common to all books.
// Every correct service keeps both, so there is no false alarm. Objects that are linearizable are so together (Herlihy and
// Wing, 1990), so nothing escapes that is about one book, or about one list. Two lists are not compared with one another.
// Does not: cover requests about these books that it does not see, or requests about ids that no client was given.

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { Answer } from '../../conformance/answers.ts';
import type { Book, RequestOptions } from '../../conformance/service.ts';
import type { Requester } from './client.ts';
import { impossible, Linearization, type Operation } from './linearizable.ts';

/** No id is given out again after a removal. */
type State = Book | 'not created' | 'removed';

type Fields = Omit<Book, 'id'>;

/** A request that has ended. */
interface Noted {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly headers: RequestOptions['headers'];
  readonly isMet: (book: Book) => boolean;
  readonly begin: number;
  readonly end: number;
  /** Undefined if it may have taken effect or not. */
  readonly answer: Answer | undefined;
}

/** A list of all books. */
interface List {
  readonly begin: number;
  readonly end: number;
  readonly books: ReadonlyMap<number, Book>;
}

/** Requests between two checks. */
const PART = 64;

/** Characters of a request and an answer that a fault shows. */
const SHOWN = 60;

export class History {
  #moment = 0;
  #requests = 0;
  /** The begins of requests in progress. */
  readonly #inProgress = new Set<number>();
  readonly #books = new Map<number, Linearization<State>>();
  readonly #removed = new Set<number>();
  /** Lists that have ended, and are not checked yet. */
  #lists: readonly List[] = [];
  /** Creations without an answer, by their fields: when the first one began, how many books may come of them, and the latest one. */
  readonly #unanswered = new Map<string, { begin: number; left: number; id?: number }>();
  /** By key, when the first creation with it began, and the books that came of it. */
  readonly #keyed = new Map<string, { begin: number; ids: number[] }>();
  #fault: unknown;
  /** By id and tag, the books that were seen. */
  readonly #seen = new Map<number, Map<string, Book>>();

  /** @param books that are there already. */
  constructor(books: readonly Book[] = []) {
    for (const book of books) this.#books.set(book.id, new Linearization<State>(book));
  }

  /** A client whose requests become part of this history. */
  of(client: Requester): Requester {
    const request = async (method: string, path: string, options: RequestOptions = {}) => {
      this.#moment += 1;
      const begin = this.#moment;
      this.#inProgress.add(begin);
      const key = options.headers?.['idempotency-key'];
      if (key !== undefined && !this.#keyed.has(key)) this.#keyed.set(key, { begin, ids: [] });
      const isMet = this.#conditionOf(path, options);
      let answer: Answer | undefined;
      try {
        answer = await client.request(method, path, options);
        return answer;
      } finally {
        this.#inProgress.delete(begin);
        this.#moment += 1;
        const { body, headers } = options;
        const known = answer?.status === 503 ? undefined : answer;
        this.#note({ method, path, body, headers, isMet, begin, end: this.#moment, answer: known });
        this.#requests += 1;
        if (this.#requests % PART === 0) this.check();
      }
    };
    const list = async () => (await request('GET', '/books')).data;
    return { request, list };
  }

  /**
   * Checks all that answers to come cannot change.
   * @throws AssertionError if the history is not linearizable, and then each time.
   */
  check(): void {
    try {
      if (this.#fault === undefined) this.#follow();
    } catch (error) {
      this.#fault = error;
    }
    if (this.#fault !== undefined) throw this.#fault;
  }

  #follow(): void {
    const until = Math.min(this.#moment + 1, ...this.#inProgress);
    const ready = this.#lists.filter(({ end }) => end < until);
    this.#lists = this.#lists.filter(({ end }) => end >= until);
    const reads = ready.map((list) => [list, this.#addReadsOf(list)] as const);
    for (const [list, ofBooks] of reads) assertOneCut(list, ofBooks, until);
    const checked = Math.min(until, ...this.#lists.map(({ begin }) => begin));
    for (const [id, book] of this.#books) {
      if (book.isQuiet) continue;
      const fault = book.follow(checked);
      assert.equal(fault, undefined, `book ${id} cannot have been so: ${fault?.join('; ')}`);
      if (!book.isCertainly('removed')) continue;
      this.#books.delete(id);
      this.#seen.delete(id);
      this.#removed.add(id);
    }
  }

  /**
   * Checks everything, the list of all books included, which was had while no other request was in progress. What has no
   * answer by then takes no effect any more.
   */
  settle(listed: readonly Book[]): void {
    assert.equal(this.#inProgress.size, 0);
    this.#moment += 1;
    this.#addList(listed, this.#moment);
    this.check();
    for (const book of this.#books.values()) book.forget();
    this.#unanswered.clear();
  }

  #addList(listed: readonly Book[], begin: number): void {
    const books = new Map(listed.map((book) => [book.id, book]));
    assert.equal(books.size, listed.length, 'a list has a book twice');
    this.#lists = [...this.#lists, { begin, end: this.#moment, books }];
  }

  #note(noted: Noted): void {
    const { method, path, body, begin, answer } = noted;
    const id = Number(/^\/book\/(\d+)$/.exec(path)?.[1]);
    if (method === 'GET' && path === '/books') {
      if (answer?.status === 200) this.#addList(answer.data, begin);
    } else if (method === 'POST') {
      for (const [position, sent] of ([body].flat() as Partial<Fields>[]).entries())
        this.#noteCreation(noted, sent, position);
    } else if (id > 0 && (answer === undefined ? method !== 'GET' : KNOWN.has(answer.status))) {
      this.#add(id, noted, (before) => applied(noted, before));
      this.#see(answer);
    }
  }

  /** Of the creations with one key, which have the same fields as no other, one takes effect. */
  #noteCreation(noted: Noted, sent: Partial<Fields>, position: number): void {
    const { answer, headers } = noted;
    const fields: Fields = { title: '', author: '', year: 0, ...sent };
    const text = JSON.stringify(fields);
    const keyed = this.#keyed.get(headers?.['idempotency-key'] ?? '');
    const begin = keyed?.begin ?? noted.begin;
    const before = keyed && this.#unanswered.get(text);
    if (answer?.status === 201) {
      const id: number = answer.data.id ?? answer.data[position];
      const known = keyed?.ids[position] ?? before?.id;
      assert.equal(known ?? id, id, `a key has stored the books ${known} and ${id}`);
      if (keyed !== undefined) keyed.ids[position] = id;
      if (before !== undefined) before.left = 0;
      if (known === undefined) this.#add(id, { ...noted, begin }, creationOf({ id, ...fields }));
      if (known === undefined) this.#see(answer);
    } else if (answer === undefined && before === undefined && keyed?.ids[position] === undefined) {
      const unanswered = this.#unanswered.get(text) ?? { begin, left: 0 };
      this.#unanswered.set(text, unanswered);
      unanswered.left += 1;
    }
  }

  #add(id: number, noted: Noted, apply: Operation<State>['apply']): void {
    const { method, body, headers, begin, end, answer } = noted;
    const isOptional = answer === undefined;
    this.#bookOf(id).add({
      ...{ begin, end: isOptional ? Number.POSITIVE_INFINITY : end, isOptional, apply },
      ...(isOptional && { twins: JSON.stringify([method, body, headers]) }),
      get name() {
        const answered = isOptional ? 'without an answer' : `answered ${answer.status} ${shown(answer.data)}`;
        return `${method} ${shown(body)} ${answered}`;
      },
    });
  }

  #bookOf(id: number): Linearization<State> {
    const known = this.#books.get(id);
    if (known !== undefined) return known;
    const book = new Linearization<State>(this.#removed.delete(id) ? 'removed' : 'not created');
    this.#books.set(id, book);
    return book;
  }

  /** Notes the tag of a book in an answer. */
  #see(answer: Answer | undefined): void {
    const tag = answer?.headers.get('etag');
    const book: Book | undefined = answer?.data;
    if (tag === undefined || tag === null || typeof book?.id !== 'number') return;
    const tags = this.#seen.get(book.id) ?? new Map<string, Book>();
    this.#seen.set(book.id, tags.set(tag, book));
  }

  #conditionOf(path: string, { headers = {} }: RequestOptions): Noted['isMet'] {
    const tag = headers['if-match'] ?? headers['if-none-match'];
    if (tag === undefined) return () => true;
    const seen = this.#seen.get(Number(path.split('/').at(-1)))?.get(tag);
    // The year tells most books apart, and there may be thousands of these requests without an answer.
    const isListed = (book: Book) =>
      tag === '*' || (book.year === seen?.year && isDeepStrictEqual(book, seen));
    return (book) => isListed(book) === (headers['if-match'] !== undefined);
  }

  /** Lets each book be read by a list. @returns the reads that other requests overlap. */
  #addReadsOf({ begin, end, books }: List): readonly ReadOfList[] {
    for (const book of books.values()) this.#assertCreated(book);
    return [...this.#books].flatMap(([id, book]) => {
      const state = books.get(id);
      if (book.isCertainly(state ?? 'removed')) return [];
      const isSo = (one: State) =>
        state === undefined ? typeof one === 'string' : isDeepStrictEqual(one, state);
      const read = {
        ...{ begin, end, apply: (before: State) => (isSo(before) ? before : impossible) },
        get name() {
          return `listed as ${shown(state ?? 'absent')}`;
        },
      };
      book.add(read);
      return book.moments(begin, end).length > 0 ? [{ id, book, read }] : [];
    });
  }

  /** A book that no answer named may have been created without an answer. */
  #assertCreated(listed: Book): void {
    const { id, ...fields } = listed;
    if (this.#books.has(id) || this.#removed.has(id)) return void this.#bookOf(id);
    const { title, author, year } = fields;
    const creation = this.#unanswered.get(JSON.stringify({ title, author, year }));
    assert.ok(
      creation && creation.left > 0,
      `book ${id} exists, though no client created it: ${shown(fields)}`,
    );
    creation.left -= 1;
    creation.id = id;
    const name = 'POST unanswered';
    const end = Number.POSITIVE_INFINITY;
    this.#bookOf(id).add({ name, begin: creation.begin, end, isOptional: true, apply: creationOf(listed) });
  }
}

/** The read of a book by a list. */
interface ReadOfList {
  readonly id: number;
  readonly book: Linearization<State>;
  readonly read: Operation<State>;
}

/** @throws AssertionError unless at one moment of the list all books may have been as they were read. */
function assertOneCut({ begin, end }: List, reads: readonly ReadOfList[], until: number): void {
  let common = Array.from({ length: end - begin }, (_, position) => begin + position + 0.5);
  for (const { id, book, read } of reads) {
    // Between two of its moments, a read of the book sees the same.
    const isPossible = new Map<number, boolean>();
    const moments = book.moments(begin, end);
    common = common.filter((moment) => {
      const before = moments.findLast((one) => one < moment) ?? begin;
      const known = isPossible.get(before);
      if (known !== undefined) return known;
      const history = book.copy();
      history.add({ name: '', begin: moment, end: moment, apply: read.apply });
      isPossible.set(before, history.follow(until) === undefined);
      return isPossible.get(before);
    });
    assert.notEqual(
      common.length,
      0,
      `a list shows book ${id}, ${read.name}, as it was at no moment of the list at which the others were so`,
    );
  }
}

/** Answers that say something about a book. */
const KNOWN = new Set([200, 304, 404, 412]);

function creationOf(book: Book): Operation<State>['apply'] {
  return (before) => (before === 'not created' ? book : impossible);
}

/** @returns the state of a book after a request. */
function applied({ method, body, isMet, answer }: Noted, before: State): State | typeof impossible {
  const status = answer?.status ?? 200; // without an answer, nothing else matters
  const isAnswered = (data: Book) => answer === undefined || isDeepStrictEqual(data, answer.data);
  if (typeof before === 'string' || status === 404)
    return typeof before === 'string' && status === 404 ? before : impossible;
  if (!isMet(before) || status !== 200) return !isMet(before) && status !== 200 ? before : impossible;
  if (method === 'GET') return isAnswered(before) ? before : impossible;
  if (method === 'DELETE') return 'removed';
  const after = { ...before, ...(body as Partial<Fields>) };
  return isAnswered(after) ? after : impossible;
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? '').slice(0, SHOWN);
}
