// How the page stores the books of a file and removes them again, in Node.js: each is stored once, whatever happens to the
// answers.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Book, NewBook } from '../../client/src/book.ts';
import { BookChanged, CatalogueError } from '../../client/src/errors.ts';
import { pathTo } from '../support/repository.ts';
import { settled } from '../support/virtual-time.ts';

// By its path, and so without its types, which need those of a browser.
const { compare, Storing } = await import(pathTo('page/import/storing.ts'));

/** What becomes of a request; a function does something else while it is under way. */
type Fate = 'answered' | 'answer is lost' | 'not sent' | 'refused' | 'no answer' | (() => Fate);

const DAY = 24 * 60 * 60 * 1000;

class Catalogue {
  readonly books: Book[] = [];
  readonly #keys = new Map<string, Book[]>();
  readonly #fates: Fate[];

  /** @param fates of its requests that store books, in their order; then all are answered. */
  constructor(...fates: Fate[]) {
    this.#fates = fates;
  }

  async createAll(
    books: readonly NewBook[],
    { idempotencyKey, signal }: { readonly idempotencyKey: string; readonly signal: AbortSignal },
  ): Promise<Book[]> {
    const next = this.#fates.shift() ?? 'answered';
    const fate = typeof next === 'function' ? next() : next;
    if (fate === 'not sent') throw new CatalogueError('fetch failed');
    if (fate === 'refused') throw new CatalogueError('Forbidden', { status: 403 });
    if (books.some(({ title }) => title === 'long'))
      throw new CatalogueError('Payload too large', { status: 413 });
    const stored = this.#keys.get(idempotencyKey) ?? books.map((book) => this.#store(book));
    this.#keys.set(idempotencyKey, stored);
    if (fate === 'answer is lost') throw new CatalogueError('fetch failed', { mayBeDone: true });
    if (fate === 'answered') return stored;
    return await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  }

  #store(book: NewBook): Book {
    const stored = { id: (this.books.at(-1)?.id ?? 0) + 1, title: '', author: '', year: 0, ...book };
    this.books.push(stored);
    return stored;
  }

  async find(id: number): Promise<Book | undefined> {
    return this.books.find((book) => book.id === id);
  }

  async remove(id: number, { expected }: { readonly expected: Book }): Promise<void> {
    if ((await this.find(id)) !== expected) throw new BookChanged('Precondition failed', undefined, {});
    this.books.splice(this.books.indexOf(expected), 1);
  }

  get titles(): string {
    return this.books.map(({ title }) => title).join(' ');
  }
}

/** Lets time pass until work has ended. */
async function ended(context: TestContext, work: Promise<unknown>): Promise<void> {
  let isOver = false;
  const end = work.finally(() => {
    isOver = true;
  });
  end.catch(() => {}); // it is awaited later
  for (; !isOver; context.mock.timers.tick(500)) await settled();
  await end;
}

/** Books with these titles, `size` in each request; `work` is what stores them. */
function begin(
  context: TestContext,
  catalogue: Catalogue,
  titles: string,
  size: number,
  idOf = (id: number) => id,
) {
  context.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const left = titles.split(' ').map((title) => ({ title, author: '', year: 0 }));
  const session = { reach: 'here', call: (work: (one: Catalogue) => unknown) => work(catalogue) };
  const work = new Storing(session, { ask: async () => left.splice(0, size) }, {}, idOf);
  return {
    work,
    store: () => ended(context, work.store()),
    takeOut: () => ended(context, work.takeOut()),
    counts: () => [work.added.length, work.unknown, work.changed],
  };
}

test('a request without an answer is repeated as it was, and each book is stored once', async (context) => {
  const catalogue = new Catalogue(
    'answer is lost',
    'answer is lost',
    'answered',
    'not sent',
    'answer is lost',
  );
  const { store, counts } = begin(context, catalogue, 'a b c d e f g', 3);
  await store();
  assert.equal(catalogue.titles, 'a b c d e f g');
  assert.deepEqual(counts(), [7, 0, 0]);
});

test('after a day, books that may be stored are not stored again', async (context) => {
  const catalogue = new Catalogue('answer is lost', () => {
    context.mock.timers.tick(DAY);
    return 'not sent';
  });
  const { store, counts } = begin(context, catalogue, 'a', 1);
  await assert.rejects(store(), { message: /^The catalogue was away for a day\. Import the file again/ });
  assert.equal(catalogue.titles, 'a');
  assert.deepEqual(counts(), [0, 1, 0]);
});

test('a person stops while no answer comes: the books that may be stored are counted, and removed with the others', async (context) => {
  const stop = () => {
    work.stop();
    return 'no answer' as const;
  };
  const catalogue = new Catalogue('answered', stop);
  const { work, store, takeOut, counts } = begin(context, catalogue, 'a b c d e f', 2);
  await store();
  assert.equal(catalogue.titles, 'a b c d');
  assert.deepEqual(counts(), [2, 2, 0]);
  await takeOut();
  assert.equal(catalogue.titles, '');
  assert.deepEqual(counts(), [0, 0, 0]);
});

test('a person stops while an answer is on its way: it is waited for', async (context) => {
  const catalogue = new Catalogue(() => {
    work.stop();
    return 'answered';
  });
  const { work, store, counts } = begin(context, catalogue, 'a b c', 2);
  await store();
  assert.deepEqual(counts(), [2, 0, 0]);
});

test('books that are refused are not stored: the work ends, and continues there if it is repeated', async (context) => {
  const catalogue = new Catalogue('answered', 'refused');
  const { store, counts } = begin(context, catalogue, 'a b c', 1);
  await assert.rejects(store(), { message: 'Forbidden' });
  assert.deepEqual(counts(), [1, 0, 0]);
  await store();
  assert.equal(catalogue.titles, 'a b c');
});

test('books that are too long are left out, and all others are stored, in the order of the file', async (context) => {
  const catalogue = new Catalogue();
  const { work, store, counts } = begin(context, catalogue, 'a b long c d e long', 4);
  await store();
  assert.equal(catalogue.titles, 'a b c d e');
  assert.deepEqual(counts(), [5, 0, 0]);
  assert.equal(work.tooLong.length, 2);
});

test('books are removed unless somebody has changed them, also under the id with which they were put back', async (context) => {
  const catalogue = new Catalogue();
  const idOf = (id: number) => (id === 2 ? 9 : id);
  const { store, takeOut, counts } = begin(context, catalogue, 'a b c d', 4, idOf);
  await store();
  const [a, b] = catalogue.books as [Book, Book];
  catalogue.books.splice(0, 3, { ...a, year: 1 }, { ...b, id: 9 }); // and c was deleted
  await takeOut();
  assert.equal(catalogue.titles, 'a');
  assert.deepEqual(counts(), [0, 0, 1]);
});

test('a comparison with the catalogue begins again after a list that breaks off', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const asked: unknown[][] = [];
  async function* list() {
    yield { title: ' Emma', author: 'Jane Austen', year: 1815 };
    if (asked.length < 2) throw new CatalogueError('the list is incomplete');
  }
  const file = { ask: async (...question: unknown[]) => asked.push(question) };
  const session = { call: (work: (one: object) => unknown) => work({ list }) };
  await ended(
    context,
    compare(session, file, () => {}, new AbortController().signal),
  );
  const begun = ['beginComparison'];
  assert.deepEqual(asked, [begun, begun, ['compare', ['Emma\0Jane Austen\x001815']]]);
});
