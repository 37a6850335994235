// Random searches that find many books, on every store, compared with a brute-force reading of rules F2 to F10.

import { describe, test } from 'node:test';
import fc from 'fast-check';
import { fill } from '../support/books.ts';
import {
  assertFound,
  fewFilters,
  knownAs,
  newBook,
  type Part,
  read,
  type Search,
} from '../support/finding.ts';
import { waitUntil } from '../support/wait.ts';
import '../support/random.ts';
import { STORES, startTestService } from '../support/service.ts';

// More books than a store collects before it reads them in the order of the page: 50,000 and 5000. So many of them come
// before those of a year that no other has: farther than a store walks, which is 20,000.
const MANY = { SQLite: { books: 60_000, early: 22_000 }, PostgreSQL: { books: 28_000, early: 22_000 } };
const SEARCHES_OF_MANY = 20;

const LATE_YEAR = 3000;

/** Searches that find many books, in every order. */
const COMMON_SEARCHES: readonly Search[] = [
  {},
  ...['title', '-title', 'author,title', '-year,title', '-id'].map((sort) => ({ sort })),
  ...['-title_without_article', 'author_last_word,title_without_article', '-year_unknown_last'].map(
    (sort) => ({ sort }),
  ),
].flatMap((order) => {
  const filters: readonly Search[] = [
    {},
    { q: [...read('the=the')] },
    { q: [...read('Harr*=harr=harr*')] },
    { q: [...read('the=the fine=fine')] },
    { title_contains: [...read('the=the')], year_gte: 0 },
    { year_gte: -1, year_lte: 2024 },
    { title_starts_with: { text: 'the', key: 'the', words: [] } },
  ];
  return filters.map((filters) => ({ ...filters, ...order }));
});

for (const store of STORES) {
  describe(`searches on ${store.name}`, () => {
    test('rules F2 to F11: so do pages of searches that find many books', async () => {
      const many = MANY[store.name];
      const known = fc.sample(newBook, many.books).map((book, position) => {
        const year = position < many.early ? book.year : LATE_YEAR;
        return knownAs(position + 1, { ...book, title: afterThe(book.title), year });
      });
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, known);
      const { client } = await startTestService(dbUrl);
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

/** The text with `The` before it, unless it has only signs. */
function afterThe(part: Part): Part {
  const { text, key, words } = part;
  if (key === '' || key.startsWith('#')) return part;
  return { text: `The ${text}`, key: `the ${key}`, words: ['the', ...words] };
}
