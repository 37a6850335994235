// Random catalogues and random searches on every store, compared with a brute-force reading of rules F2 to F10. Some books
// are written past the service, by SQL. TEST_CATALOGUES is the number of catalogues.

import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { Book } from '../../conformance/service.ts';
import type { Client } from '../support/client.ts';
import { assertFound, bodyOf, fewFilters, knownAs, newBook } from '../support/finding.ts';
import '../support/random.ts';
import { scaled } from '../support/scale.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';

const RUNS = { numRuns: Number(process.env.TEST_CATALOGUES ?? scaled(32)) };

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
    let services: readonly RunningService[];

    before(async () => {
      service = await startTestService(await store.freshUrl());
      const noneIsShort = timesWith({ books: { shortSearch: -1000 } });
      const other = await startTestService(service.dbUrl, {}, undefined, noneIsShort);
      services = [service, other];
      client = service.client;
    });
    after(() => Promise.all(services.map(({ stop }) => stop())));

    async function change(id: number, how: string, body: Omit<Book, 'id'>): Promise<void> {
      const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
      const fields = `title = ${quoted(body.title)}, author = ${quoted(body.author)}, year = ${body.year}`;
      if (how === 'put') await client.request('PUT', `/book/${id}`, { body });
      else if (how === 'delete') await client.request('DELETE', `/book/${id}`);
      else if (how === 'sql delete') await executeOn(service.dbUrl, `delete from books where id = ${id}`);
      else await executeOn(service.dbUrl, `update books set ${fields} where id = ${id}`);
    }

    test('rules F2 to F11: pages of random searches, short and long, agree with the definition', async () => {
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
        for (const [position, [search, limit]] of searches.entries()) {
          const { client } = services[position % 2] as RunningService;
          await assertFound(client, [...known.values()], search, limit);
        }
      });
      const removeAll = async () => void (await executeOn(service.dbUrl, 'delete from books'));
      await fc.assert(property.beforeEach(removeAll), RUNS);
    });
  });
}
