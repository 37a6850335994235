// Random sequences of operations against a model in memory, on every store: by one client, and by several at once, so that their
// calls meet in batches. fast-check prints the smallest sequence that fails, with the seed that repeats it.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { RequestOptions } from '../../conformance/service.ts';
import {
  BOOK_NOT_FOUND,
  created,
  createdAll,
  DELETED,
  INVALID,
  invalidAt,
  KEY_USED,
  retrieved,
  UNMET,
  updated,
} from '../../conformance/words.ts';
import { bare, type Client } from '../support/client.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';
import '../support/random.ts';
import { scaled } from '../support/scale.ts';

const NOT_MODIFIED = { status: 304, message: '', data: undefined };

/** A tag that no book has. */
const NO_TAG = '"AAAAAAAAAAAAAAAAAAAAAA"';

// A failing case is run again in ever smaller forms; ten minutes of that are enough. A slow machine needs more than one without
// any, and what a run that is broken off still does would disturb the next one.
const RUNS = { numRuns: scaled(48), interruptAfterTimeLimit: 600_000 };

interface Book {
  id: number;
  title: string;
  author: string;
  year: number;
}

/** Fields of a book, or text that cannot be read as such. */
type Body = Partial<Omit<Book, 'id'>> | string;

/** A creation that was carried out with a key. */
interface KeyedRequest {
  readonly key: string;
  readonly path: '/book' | '/books';
  /** The books as they were stored, without their ids. */
  readonly content: Omit<Book, 'id'> | readonly Omit<Book, 'id'>[];
  readonly answer: unknown;
  readonly tag: string | null;
}

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }).map((any) => any.replaceAll('\0', '')),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.constantFrom('', ' ', '\\.', '\\N', ',{"id":1}', '"', '\u2028\u2029', 'x'.repeat(1000)),
);
const year = fc.oneof(
  fc.integer({ min: -3000, max: 3000 }),
  fc.maxSafeInteger(),
  fc.constantFrom(-9007199254740991, 0, 9007199254740991),
);
const fields = fc.record({ title: text, author: text, year }, { requiredKeys: [] });
const body: fc.Arbitrary<Body> = fc.oneof(
  { weight: 8, arbitrary: fields },
  { weight: 1, arbitrary: fc.constantFrom('', '{', '[]', '{"title":null}', '{"author":"ok","year":"1"}') },
);
const element: fc.Arbitrary<Body> = fc.oneof(
  { weight: 20, arbitrary: fields },
  { weight: 1, arbitrary: fc.constantFrom('null', '[]', '{"title":null}', '{"author":"ok","year":"1"}') },
);
const bodies = fc.array(element, { maxLength: 8, size: 'max' });
/** So few that a client uses each for several requests. */
const key = fc.option(fc.nat({ max: 7 }), { nil: undefined });
/** A header with the tag of the book as it is, the first tag that was seen of it, or `*`. */
const condition = fc.option(
  fc.record({
    header: fc.constantFrom('if-match', 'if-none-match'),
    tag: fc.constantFrom('current', 'first', '*'),
  }),
  { nil: undefined },
);
/** It is mapped to one of the ids that a client was given. */
const book = fc.nat();
const kind = <const Kind>(kind: Kind) => fc.constant(kind);
const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: kind('create'), path: kind('/book'), bodies: fc.tuple(body), key }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind('create'), path: kind('/books'), bodies, key }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('repeat'), request: fc.nat() }) },
  { weight: 5, arbitrary: fc.record({ kind: kind('update'), book, body, condition }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('read'), book, condition }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('remove'), book, condition }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('list') }) },
);

type Valued<Values> = Values extends fc.Arbitrary<infer Value> ? Value : never;
type Operation = Valued<typeof operation>;
type Condition = Valued<typeof condition>;

let shelves = 0;

/** One client's own books as they must be, compared with those of the service. */
class Shelf {
  readonly books = new Map<number, Book>();
  /** Every id that this client was given, and one that no client was given. */
  readonly #ids = [9007199254740991];
  /** By id, the tag of each state that was seen, in JSON. */
  readonly #tags = new Map<number, Map<string, string>>();
  readonly #keyed = new Map<string, KeyedRequest>();
  readonly #client: Client;
  readonly #name: number;

  constructor(client: Client) {
    this.#client = client;
    shelves += 1;
    this.#name = shelves;
  }

  async perform(operation: Operation): Promise<void> {
    switch (operation.kind) {
      case 'create':
        return await this.#create(operation.path, operation.bodies, this.#keyOf(operation.key));
      case 'repeat':
        return await this.#repeat(operation.request);
      case 'read':
        return await this.#read(this.#idOf(operation.book), operation.condition);
      case 'update':
        return await this.#update(this.#idOf(operation.book), operation.body, operation.condition);
      case 'remove':
        return await this.#remove(this.#idOf(operation.book), operation.condition);
      case 'list': {
        const listed = await this.#client.list();
        const own = listed.filter(({ id }) => this.#ids.includes(id));
        assert.deepEqual(own, [...this.books.values()]);
        assertAscending(listed);
      }
    }
  }

  async #create(path: KeyedRequest['path'], bodies: readonly Body[], key: string | undefined): Promise<void> {
    const isMany = path === '/books';
    const elements = bodies.map((body) => (typeof body === 'string' ? body : JSON.stringify(body)));
    const options = { body: isMany ? `[${elements}]` : `${elements}`, headers: keyHeader(key) };
    const { answer, headers } = await this.#ask('POST', path, options);
    const fields: Omit<Book, 'id'>[] = [];
    for (const body of bodies) {
      if (typeof body === 'string')
        return assert.deepEqual(answer, isMany ? invalidAt(fields.length + 1) : INVALID);
      fields.push({ title: '', author: '', year: 0, ...body });
    }
    const content = isMany ? fields : (fields[0] as Omit<Book, 'id'>);
    if (this.#isUsed(key)) return this.#assertRepeated(key, path, content, answer, headers);
    const ids: number[] = isMany ? answer.data : [answer.data?.id];
    const books = fields.map((one, position) => ({ id: ids[position] as number, ...one }));
    assert.deepEqual(answer, isMany ? createdAll(ids) : created(books[0] as Book));
    assert.equal(ids.length, books.length);
    assert.equal(headers.get('idempotent-replayed'), null);
    for (const book of books) this.#add(book);
    if (!isMany) this.#see(books[0] as Book, headers);
    if (key !== undefined) this.#keyed.set(key, { key, path, content, answer, tag: headers.get('etag') });
  }

  /** Sends a creation with its key again, spelled in another way. */
  async #repeat(request: number): Promise<void> {
    const known = [...this.#keyed.values()];
    const repeated = known[request % known.length];
    if (repeated === undefined) return;
    const { key, path, content } = repeated;
    const body = JSON.stringify(content, ['year', 'author', 'title'], 1);
    const { answer, headers } = await this.#ask('POST', path, { body, headers: keyHeader(`"${key}"`) });
    this.#assertRepeated(key, path, content, answer, headers);
  }

  /** A key that was used is for one request only: an equal one gets the first answer, any other one is refused. */
  #assertRepeated(
    key: string,
    path: KeyedRequest['path'],
    content: KeyedRequest['content'],
    answer: unknown,
    headers: Headers,
  ): void {
    const first = this.#keyed.get(key) as KeyedRequest;
    const isEqual = path === first.path && isDeepStrictEqual(content, first.content);
    assert.deepEqual(answer, isEqual ? first.answer : KEY_USED);
    assert.equal(headers.get('idempotent-replayed'), isEqual ? 'true' : null);
    assert.equal(headers.get('etag'), isEqual ? first.tag : null);
  }

  async #read(id: number, condition: Condition): Promise<void> {
    const { sent, isMet } = await this.#decide(id, condition);
    const { answer, headers } = await this.#ask('GET', `/book/${id}`, { headers: sent });
    const book = this.books.get(id);
    if (book === undefined) return assert.deepEqual(answer, BOOK_NOT_FOUND);
    if (!isMet && condition?.header === 'if-match') return assert.deepEqual(answer, UNMET);
    assert.deepEqual(answer, isMet ? retrieved(book) : NOT_MODIFIED);
    this.#see(book, headers);
  }

  async #update(id: number, body: Body, condition: Condition): Promise<void> {
    const { sent, isMet } = await this.#decide(id, condition);
    const { answer, headers } = await this.#ask('PUT', `/book/${id}`, { body, headers: sent });
    const before = this.books.get(id);
    if (before === undefined) return assert.deepEqual(answer, BOOK_NOT_FOUND);
    if (typeof body === 'string') return assert.deepEqual(answer, INVALID);
    if (!isMet) return assert.deepEqual(answer, UNMET);
    const data = { ...before, ...body };
    assert.deepEqual(answer, updated(data));
    this.books.set(id, data);
    this.#see(data, headers);
  }

  async #remove(id: number, condition: Condition): Promise<void> {
    const { sent, isMet } = await this.#decide(id, condition);
    const { answer } = await this.#ask('DELETE', `/book/${id}`, { headers: sent });
    if (!this.books.has(id)) return assert.deepEqual(answer, BOOK_NOT_FOUND);
    if (!isMet) return assert.deepEqual(answer, UNMET);
    assert.deepEqual(answer, DELETED);
    this.books.delete(id);
  }

  /** The headers of a condition, and whether the book meets it if it exists. */
  async #decide(id: number, condition: Condition): Promise<{ sent: Record<string, string>; isMet: boolean }> {
    if (condition === undefined) return { sent: {}, isMet: true };
    const { header } = condition;
    const book = this.books.get(id);
    // Many books that are created at once come without their tags.
    if (book !== undefined && this.#tagOf(book) === undefined) await this.#read(id, undefined);
    const current = book && this.#tagOf(book);
    const [first = NO_TAG] = this.#tags.get(id)?.values() ?? [];
    const tag = { current: current ?? NO_TAG, first, '*': '*' }[condition.tag];
    const isListed = tag === '*' || tag === current;
    return { sent: { [header]: tag }, isMet: isListed === (header === 'if-match') };
  }

  /** Each state of a book has one tag, and no other state has it. */
  #see(book: Book, headers: Headers): void {
    const tag = headers.get('etag') as string;
    const tags = this.#tags.get(book.id) as Map<string, string>;
    const known = this.#tagOf(book);
    if (known === undefined) {
      assert.match(tag, /^"[\w-]{22}"$/);
      assert.ok(![...tags.values()].includes(tag), `two states of book ${book.id} have the tag ${tag}`);
      tags.set(JSON.stringify(book), tag);
    } else {
      assert.equal(tag, known);
    }
  }

  #tagOf(book: Book): string | undefined {
    return this.#tags.get(book.id)?.get(JSON.stringify(book));
  }

  #add(book: Book): void {
    assert.ok(!this.#ids.includes(book.id), `id ${book.id} was given twice`);
    this.#ids.push(book.id);
    this.#tags.set(book.id, new Map());
    this.books.set(book.id, book);
  }

  async #ask(method: string, path: string, options: RequestOptions) {
    const answer = await this.#client.request(method, path, options);
    return { answer: bare(answer), headers: answer.headers };
  }

  #idOf(book: number): number {
    return this.#ids[book % this.#ids.length] as number;
  }

  /** No other shelf has this key, not even one of an earlier run. */
  #keyOf(key: number | undefined): string | undefined {
    return key === undefined ? undefined : `${this.#name}/${key}`;
  }

  #isUsed(key: string | undefined): key is string {
    return key !== undefined && this.#keyed.has(key);
  }
}

function keyHeader(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { 'idempotency-key': key };
}

function assertAscending(books: readonly Book[]): void {
  for (let position = 1; position < books.length; position += 1) {
    assert.ok((books[position - 1] as Book).id < (books[position] as Book).id);
  }
}

for (const store of STORES) {
  describe(`the model on ${store.name}`, () => {
    let service: RunningService;
    let client: Client;

    before(async () => {
      service = await startTestService(await store.freshUrl());
      client = service.client;
    });

    /** Every run begins without books. */
    async function removeAll(): Promise<void> {
      const books = await client.list();
      await Promise.all(books.map(({ id }) => client.request('DELETE', `/book/${id}`)));
    }

    for (const [title, clients, maxLength] of [
      ['the answers to one client agree with the model', { minLength: 1, maxLength: 1 }, 120],
      [
        'each of several simultaneous clients is answered as if it were alone',
        { minLength: 4, maxLength: 8 },
        60,
      ],
    ] as const) {
      test(`rules 1 to 13, B, E, I: ${title}`, async () => {
        const operations = fc.array(operation, { maxLength, size: 'max' });
        const all = fc.array(operations, { ...clients, size: 'max' });
        const property = fc.asyncProperty(all, async (all) => {
          const shelves = all.map(() => new Shelf(client));
          await Promise.all(
            shelves.map(async (shelf, position) => {
              for (const operation of all[position] ?? []) await shelf.perform(operation);
            }),
          );
          const books = shelves.flatMap((shelf) => [...shelf.books.values()]);
          const inOrder = books.toSorted((one, other) => one.id - other.id);
          assert.deepEqual(await client.list(), inOrder);
        });
        await fc.assert(property.beforeEach(removeAll), RUNS);
      });
    }
  });
}
