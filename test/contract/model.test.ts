// Random sequences of operations against a model in memory, on every store: by one client, by several at once, so
// that their calls meet in batches, and by several on the same book. fast-check prints the smallest sequence that
// fails, with the seed that repeats it.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { Client, RequestOptions } from '../support/client.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';
import '../support/random.ts';

const NOT_FOUND = { status: 404, message: 'Book not found', data: null };
const INVALID = { status: 400, message: 'Invalid input', data: null };

// A failing case is run again in ever smaller forms; a minute of that is enough.
const RUNS = { numRuns: 10, interruptAfterTimeLimit: 60_000 };

interface Book {
  id: number;
  title: string;
  author: string;
  year: number;
}

/** Fields of a book, or text that cannot be read as such. */
type Body = Partial<Omit<Book, 'id'>> | string;

/** The number of a book is mapped to one of the ids that a client was given. */
type Operation =
  | { readonly kind: 'create'; readonly body: Body }
  | { readonly kind: 'read' | 'remove'; readonly book: number }
  | { readonly kind: 'update'; readonly book: number; readonly body: Body }
  | { readonly kind: 'list' };

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
const body: fc.Arbitrary<Body> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ title: text, author: text, year }, { requiredKeys: [] }) },
  { weight: 1, arbitrary: fc.constantFrom('', '{', '[]', '{"title":null}', '{"author":"ok","year":"1"}') },
);
const book = fc.nat();
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('create'), body }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('update'), book, body }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('read'), book }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove'), book }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('list') }) },
);

/** One client's own books as they must be, compared with those of the service. */
class Shelf {
  readonly books = new Map<number, Book>();
  /** Every id that this client was given, and one that no client was given. */
  readonly #ids = [9007199254740991];
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  async perform(operation: Operation): Promise<void> {
    switch (operation.kind) {
      case 'create':
        return await this.#create(operation.body);
      case 'read': {
        const id = this.#idOf(operation.book);
        const data = this.books.get(id);
        const expected = data ? { status: 200, message: 'Book retrieved successfully', data } : NOT_FOUND;
        return assert.deepEqual(await this.#ask('GET', `/book/${id}`), expected);
      }
      case 'update':
        return await this.#update(this.#idOf(operation.book), operation.body);
      case 'remove': {
        const id = this.#idOf(operation.book);
        const deleted = { status: 200, message: 'Book deleted successfully', data: null };
        const expected = this.books.delete(id) ? deleted : NOT_FOUND;
        return assert.deepEqual(await this.#ask('DELETE', `/book/${id}`), expected);
      }
      case 'list': {
        const listed = await this.#client.list();
        const own = listed.filter(({ id }) => this.#ids.includes(id));
        assert.deepEqual(own, [...this.books.values()]);
        assertAscending(listed);
      }
    }
  }

  async #create(body: Body): Promise<void> {
    const answer = await this.#ask('POST', '/book', { body });
    if (typeof body === 'string') return assert.deepEqual(answer, INVALID);
    const book = { id: answer.data?.id, title: '', author: '', year: 0, ...body };
    assert.deepEqual(answer, { status: 201, message: 'Book created successfully', data: book });
    assert.ok(!this.#ids.includes(book.id), `id ${book.id} was given twice`);
    this.#ids.push(book.id);
    this.books.set(book.id, book);
  }

  async #update(id: number, body: Body): Promise<void> {
    const answer = await this.#ask('PUT', `/book/${id}`, { body });
    const stored = this.books.get(id);
    if (stored === undefined) return assert.deepEqual(answer, NOT_FOUND);
    if (typeof body === 'string') return assert.deepEqual(answer, INVALID);
    const data = { ...stored, ...body };
    assert.deepEqual(answer, { status: 200, message: 'Book updated successfully', data });
    this.books.set(id, data);
  }

  async #ask(method: string, path: string, options?: RequestOptions) {
    const { status, message, data } = await this.#client.request(method, path, options);
    return { status, message, data };
  }

  #idOf(book: number): number {
    return this.#ids[book % this.#ids.length] as number;
  }
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
    after(() => service.stop());

    /** Every run begins without books. */
    async function removeAll(): Promise<void> {
      const books = await client.list();
      await Promise.all(books.map(({ id }) => client.request('DELETE', `/book/${id}`)));
    }

    test('rules 1 to 13: the answers to one client agree with the model', async () => {
      const operations = fc.array(operation, { maxLength: 120, size: 'max' });
      const property = fc.asyncProperty(operations, async (operations) => {
        const shelf = new Shelf(client);
        for (const operation of operations) await shelf.perform(operation);
        assert.deepEqual(await client.list(), [...shelf.books.values()]);
      });
      await fc.assert(property.beforeEach(removeAll), RUNS);
    });

    test('rules 1 to 13: each of several simultaneous clients is answered as if it were alone', async () => {
      const operations = fc.array(operation, { maxLength: 60, size: 'max' });
      const clients = fc.array(operations, { minLength: 4, maxLength: 8, size: 'max' });
      const property = fc.asyncProperty(clients, async (clients) => {
        const shelves = await Promise.all(
          clients.map(async (operations) => {
            const shelf = new Shelf(client);
            for (const operation of operations) await shelf.perform(operation);
            return shelf;
          }),
        );
        const books = shelves.flatMap((shelf) => [...shelf.books.values()]);
        assert.deepEqual(
          await client.list(),
          books.sort((one, other) => one.id - other.id),
        );
      });
      await fc.assert(property.beforeEach(removeAll), RUNS);
    });

    test('rule 9: simultaneous changes and reads of one book agree with some sequential order', async () => {
      // The first three clients count, one field each; the writes of the others change nothing. The states of the book
      // are therefore triples of counts that only grow, one field at a time.
      const actions = fc.array(fc.constantFrom('write', 'read'), { maxLength: 30, size: 'max' });
      const clients = fc.array(actions, { minLength: 3, maxLength: 8, size: 'max' });
      const property = fc.asyncProperty(clients, async (clients) => {
        const { id } = await client.create({ title: '0', author: '0', year: 0 });
        const sent = [0, 0, 0];
        const known = [0, 0, 0];
        const states: number[][] = [];

        const act = async (action: string, position: number): Promise<void> => {
          const count = action === 'write' && position < 3 ? ++(sent[position] as number[][number]) : 0;
          const changes = [{ title: String(count) }, { author: String(count) }, { year: count }];
          const earliest = [...known];
          const { status, data } =
            action === 'write'
              ? await client.request('PUT', `/book/${id}`, { body: changes[position] ?? {} })
              : await client.request('GET', `/book/${id}`);
          assert.equal(status, 200);
          const state = [Number(data.title), Number(data.author), data.year];
          if (count > 0)
            assert.equal(state[position], count, 'an update was answered without its own change');
          // Not older than what any client knew when the call began, not newer than what has been sent.
          assert.ok(isBefore(earliest, state), `${state} was read although ${earliest} was known`);
          assert.ok(isBefore(state, sent), `${state} was read although only ${sent} was sent`);
          for (const field of [0, 1, 2]) known[field] = Math.max(known[field] as number, state[field]);
          states.push(state);
        };
        await Promise.all(
          clients.map(async (actions, position) => {
            for (const action of actions) await act(action, position);
          }),
        );

        assert.ok(isBefore(sent, known), 'an update was lost');
        states.sort((one, other) => sum(one) - sum(other));
        for (let position = 1; position < states.length; position += 1) {
          const [one, next] = states.slice(position - 1) as [number[], number[]];
          assert.ok(isBefore(one, next), `the book cannot have been both ${one} and ${next}`);
        }
      });
      await fc.assert(property.beforeEach(removeAll), RUNS);
    });
  });
}

/** Whether no count is higher in the first state than in the second. */
function isBefore(one: readonly number[], other: readonly number[]): boolean {
  return one.every((count, field) => count <= (other[field] as number));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
