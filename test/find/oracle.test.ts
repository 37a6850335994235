// Random catalogues and random searches on every store, compared with a brute-force reading of rules F2 to F10. Some books
// are written past the service, by SQL. TEST_CATALOGUES is the number of catalogues.

import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { Book } from '../../conformance/service.ts';
import { fill } from '../support/books.ts';
import type { Client } from '../support/client.ts';
import {
  afterThe,
  assertFound,
  bodyOf,
  COMMON_SEARCHES,
  fewFilters,
  knownAs,
  newBook,
} from '../support/finding.ts';
import { waitUntil } from '../support/wait.ts';
import '../support/random.ts';
import { scaled } from '../support/scale.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

const RUNS = { numRuns: Number(process.env.TEST_CATALOGUES ?? scaled(10)) };

// More books than a store collects before it reads them in the order of the page: 50,000 and 5000. So many of them come
// before those of a year that no other has: farther than a store walks, which is 20,000.
const MANY = { SQLite: { books: 60_000, early: 22_000 }, PostgreSQL: { books: 28_000, early: 22_000 } };
const SEARCHES_OF_MANY = scaled(20);

const LATE_YEAR = 3000;

const changes = fc.array(
  fc.record({
    book: fc.nat(),
    how: fc.constantFrom('put', 'delete', 'sql update', 'sql delete'),
    to: newBook,
  }),
  { maxLength: 12 },
);

const searches = fc.array(fc.tuple(fewFilters, fc.integer({ min: 1, max: 7 })), {
  minLength: 12,
  maxLength: 12,
});

for (const store of STORES) {
  describe(`searches on ${store.name}`, () => {
    let service: RunningService;
    let client: Client;

    before(async () => {
      service = await startTestService(await store.freshUrl());
      client = service.client;
    });
    after(() => service.stop());

    async function change(id: number, how: string, body: Omit<Book, 'id'>): Promise<void> {
      const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
      const fields = `title = ${quoted(body.title)}, author = ${quoted(body.author)}, year = ${body.year}`;
      if (how === 'put') await client.request('PUT', `/book/${id}`, { body });
      else if (how === 'delete') await client.request('DELETE', `/book/${id}`);
      else if (how === 'sql delete') await executeOn(service.dbUrl, `delete from books where id = ${id}`);
      else await executeOn(service.dbUrl, `update books set ${fields} where id = ${id}`);
    }

    test('rules F2 to F11: pages of random searches agree with the definition', async () => {
      const books = fc.array(newBook, { minLength: 1, maxLength: 40, size: 'max' });
      const property = fc.asyncProperty(books, changes, searches, async (books, changes, searches) => {
        const stored = await Promise.all(books.map((book) => client.create(bodyOf(book))));
        const known = new Map(
          books.map((book, position) => {
            const { id } = stored[position] as Book;
            return [id, knownAs(id, book)];
          }),
        );
        for (const { book, how, to } of changes) {
          const id = [...known.keys()][book % Math.max(1, known.size)];
          if (id === undefined) continue;
          await change(id, how, bodyOf(to));
          if (how.endsWith('delete')) known.delete(id);
          else known.set(id, knownAs(id, to));
        }
        for (const [search, limit] of searches) await assertFound(client, [...known.values()], search, limit);
      });
      const removeAll = async () => void (await executeOn(service.dbUrl, 'delete from books'));
      await fc.assert(property.beforeEach(removeAll), RUNS);
    });

    test('rules F2 to F11: so do pages of searches that find many books', async (context) => {
      const many = MANY[store.name];
      const known = fc.sample(newBook, many.books).map((book, position) => {
        const year = position < many.early ? book.year : LATE_YEAR;
        return knownAs(position + 1, { ...book, title: afterThe(book.title), year });
      });
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, known);
      const { client, stop } = await startTestService(dbUrl);
      context.after(stop);
      const isIndexed = async () => {
        const { status, headers } = await client.request('GET', '/books?limit=1');
        return status === 200 && headers.get('x-unindexed-books') === null;
      };
      await waitUntil(isIndexed);
      const limit = fc.constantFrom(1, 20, 1000);
      for (const [search, books] of fc.sample(fc.tuple(fewFilters, limit), SEARCHES_OF_MANY)) {
        await assertFound(client, known, search, books, 2);
      }
      for (const search of [...COMMON_SEARCHES, { year: LATE_YEAR }])
        await assertFound(client, known, search, 20, 2);
    });
  });
}
