// What a search that finds nothing is offered instead (rule F13), on every store. The rules of the kit have the endpoint's
// answers; find/misspellings.test.ts has the texts one edit away.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { POSTGRES_DIALECT } from '../../src/stores/postgres/dialect.ts';
import { beginWithin, limitConnection } from '../../src/stores/postgres/limits.ts';
import { SearchStatement } from '../../src/stores/search-sql.ts';
import { holdBehind, indexAll } from '../support/book-index.ts';
import type { Client } from '../support/client.ts';
import { connectTo, execute } from '../support/postgres.ts';
import '../support/random.ts';
import { scaled } from '../support/scale.ts';
import { POSTGRES, type RunningService, SQLITE, STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

const NUMBERS =
  'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen';

const BOOKS = [
  { title: 'The Hobbit', author: 'J.R.R. Tolkien', year: 1937 },
  { title: 'The Silmarillion', author: 'J. R. R. Tolkien', year: 1977 },
  { title: 'The Lord of the Rings', author: 'J. R. R. TOLKIEN', year: 1954 },
  { title: 'For Whom the Bell Tolls', author: 'Ernest Hemingway', year: 1940 },
  { title: 'Belle de jour', author: 'Joseph Kessel', year: 1928 },
  { title: 'Cien años de soledad', author: 'Gabriel García Márquez', year: 1967 },
  { title: 'War and Peace', author: 'Leo Tolstoy', year: 1869 },
  { title: 'Война и мир', author: 'Лев Толстой', year: 1869 },
  { title: "L'Étranger", author: 'Albert Camus', year: 1942 },
  { title: '百年の孤独', author: '', year: 1972 },
  { title: NUMBERS },
  { title: "Obrien, or O'Brien, not O'Brian, O'Brien" },
  ...'card card card cart cart carp cars caro'.split(' ').map((title) => ({ title })),
];

/** Queries with their suggestions, each as `parameter=value: books`. */
const SUGGESTED: readonly (readonly [query: string, ...suggestions: string[]])[] = [
  ['q=tolkein', 'q=Tolkien: 3'],
  ['q=TOLKEIN!+(hobit)', 'q=Tolkien! (Hobbit): 1'],
  ['q=lord+“tolkein”', 'q=lord “TOLKIEN”: 1'],
  ['q=silmarilion+jrr', 'q=Silmarillion jrr: 1'],
  ['q=tolkein&year_gte=1950', 'q=Tolkien: 2'],
  ['q=tolkein&year=1900'],
  ['q=tolkien'],
  ['q='],
  ['q=hem+ingway', 'q=Hemingway: 1'],
  ['q=ernest+hem+ingway', 'q=ernest Hemingway: 1'],
  ['q=hem+bell*+ingway'],
  ['q=warandpeace', 'q=War and Peace: 1'],
  ['q=leo+warpeace', 'q=leo War Peace: 1'],
  ['q=marqez', 'q=Márquez: 1'],
  ['q=letrangr', "q=L'Étranger: 1"],
  ['q=толстый', 'q=Толстой: 1'],
  ['q=bell*+hemingwya', 'q=bell* Hemingway: 1'],
  ['q=belle+tolls', 'q=Bell tolls: 1'], // both are words, which no book has together
  ['q=lord+camus'],
  ['title_contains=hobit&author_contains=tolkien', 'title_contains=Hobbit: 1'],
  ['title_contains=tolkein'], // no title has it
  ['title=the+hobbitt', 'title=the Hobbit: 1'],
  ['author=leo+tolstoi&year=1869', 'author=leo Tolstoy: 1'],
  ['title_starts_with=war+annd', 'title_starts_with=war and: 1'],
  ['title_starts_with=obrienn', 'title_starts_with=obrien: 1'], // the title of `O'Brien` begins in another way
  ['q=tolkein&title_contains=hobit'],
  ['q=hobit+xyzzy'],
  ['q=hobit+tolkein+silmarilion'],
  ['q=tol'],
  ['q=carx', 'q=card: 3', 'q=cart: 2', 'q=caro: 1'],
  ['q=百年の狐独'],
  [
    `title_starts_with=${NUMBERS.replace('sixteen seventeen', 'sixten')}`,
    `title_starts_with=${NUMBERS.replace(' seventeen', '')}: 1`,
  ],
  [`title=${NUMBERS.replace('seventeen', 'sevnteen')}`],
];

/** Starts a service that looks for suggestions as long as it takes. */
function start(
  dbUrl: string,
  { books, ...others }: Parameters<typeof timesWith>[0] = {},
): Promise<RunningService> {
  const times = timesWith({ books: { suggestions: 60_000, shortSearch: 60_000, ...books }, ...others });
  return startTestService(dbUrl, {}, undefined, times);
}

for (const store of STORES) {
  describe(`suggestions on ${store.name}`, () => {
    let service: RunningService;
    let client: Client;
    /** As searches of 0.1 s, and as long ones. */
    let clients: readonly Client[];

    before(async () => {
      service = await start(await store.freshUrl());
      client = service.client;
      clients = [client, (await start(service.dbUrl, { books: { shortSearch: -1000 } })).client];
      for (const book of BOOKS) await client.create(book);
    });

    async function suggested(query: string, asked = client): Promise<string[]> {
      const { status, message, data, headers } = await asked.request('GET', `/suggestions?${query}`);
      assert.deepEqual([status, message], [200, 'Suggestions retrieved successfully'], query);
      assert.equal(headers.get('x-unindexed-books'), null);
      return data.map((one: Record<string, unknown>) => `${one.parameter}=${one.value}: ${one.books}`);
    }

    test('rule F13: a search that finds nothing gets values that find books, spelled as books have them', async () => {
      for (const client of clients)
        for (const [query, ...suggestions] of SUGGESTED)
          assert.deepEqual(await suggested(encodeURI(query), client), suggestions, query);
    });

    test('rule F13: each suggestion of a random search finds as many books as it says', async () => {
      const word = fc.string({ unit: fc.constantFrom(...'abc'), minLength: 2, maxLength: 6, size: 'max' });
      const words = fc.array(word, { minLength: 1, maxLength: 3, size: 'max' }).map((some) => some.join(' '));
      const books = fc.array(fc.record({ title: words, author: words }), {
        minLength: 1,
        maxLength: 20,
        size: 'max',
      });
      const names = ['q', 'title', 'author', 'title_contains', 'author_contains', 'title_starts_with'];
      const search = fc.uniqueArray(fc.tuple(fc.constantFrom(...names), words), {
        minLength: 1,
        maxLength: 2,
        selector: ([name]) => name,
      });
      const searches = fc.array(search, { minLength: 8, maxLength: 8 });
      const countOf = async (search: string[][]) => {
        const { headers } = await client.request('GET', `/books?${new URLSearchParams(search)}&limit=1`);
        return Number(headers.get('x-total-count'));
      };
      let suggestions = 0;
      const property = fc.asyncProperty(books, searches, async (books, searches) => {
        await client.request('POST', '/books', { body: books });
        for (const [at, search] of searches.entries()) {
          const path = `/suggestions?${new URLSearchParams(search)}`;
          const { data } = await (clients[at % 2] as Client).request('GET', path);
          assert.ok(data.length <= 3);
          if (data.length > 0) assert.equal(await countOf(search), 0, path);
          let last = Number.POSITIVE_INFINITY;
          for (const { parameter, value, books } of data) {
            const better = search.map(([name, sent]) => [name, name === parameter ? value : sent]);
            assert.equal(await countOf(better), books, `${path}: ${value}`);
            assert.ok(books > 0 && books <= last, path);
            last = books;
            suggestions += 1;
          }
        }
      });
      await fc.assert(property, { numRuns: scaled(256) });
      assert.ok(suggestions > 0);
    });

    test('rule F13: books are counted up to 1,000', async () => {
      const books = Array.from({ length: 1001 }, (_, at) => ({
        title: at < 1000 ? 'Thousand' : 'Last',
        author: 'Thousands',
      }));
      await client.request('POST', '/books', { body: books });
      assert.deepEqual(await suggested('author=thousadns'), ['author=Thousands: null']);
      assert.deepEqual(await suggested('title=thousadn'), ['title=Thousand: 1000']);
    });

    test('rule F13: once its time is over, no further ones are looked for', async () => {
      const hasty = await start(service.dbUrl, { books: { suggestions: 0 } });
      assert.deepEqual(await suggested('q=tolkein', hasty.client), []);
    });

    test('rules F11 and F13: a suggestion sees every write, and says how many it does not', async () => {
      const hasty = await start(service.dbUrl, { sqlite: { catchUp: 200 }, postgres: { catchUp: 200 } });
      const { id } = await hasty.client.create({ title: 'Ephemeral' });
      assert.deepEqual(await suggested('q=ephemral'), ['q=Ephemeral: 1']);
      await hasty.client.request('DELETE', `/book/${id}`);
      assert.deepEqual(await suggested('q=ephemral'), []);
      const release = await holdBehind(hasty);
      const { status, headers } = await hasty.client.request('GET', '/suggestions?q=tolkein');
      await release();
      assert.deepEqual([status, headers.get('x-unindexed-books')], [200, '1']);
    });

    test('rules F11 and F13: 503 while there is no index, and suggestions again once it is made', async () => {
      const dbUrl = await store.freshUrl();
      await indexAll(dbUrl);
      const running = await start(dbUrl);
      await running.client.create({ title: 'Emma' });
      assert.deepEqual(await suggested('q=emna', running.client), ['q=Emma: 1']);
      await executeOn(dbUrl, 'update book_index_state set version = 1000');
      const { status, message } = await running.client.request('GET', '/suggestions?q=emna');
      assert.deepEqual([status, message], [503, 'Service unavailable']);
      await executeOn(dbUrl, 'drop table book_index_state');
      if (store === SQLITE) await executeOn(dbUrl, 'drop table book_index_words');
      await indexAll(dbUrl); // as another process does
      await waitUntil(
        async () => (await running.client.request('GET', '/suggestions?q=emna')).status === 200,
      );
      assert.deepEqual(await suggested('q=emna', running.client), ['q=Emma: 1']);
    });

    test('rule F13: with FIND=off every parameter is invalid, and nothing is there to correct', async () => {
      const { client } = await startTestService(service.dbUrl, { FIND: 'off' });
      assert.deepEqual(await suggested('', client), []);
      const { status, message } = await client.request('GET', '/suggestions?q=x');
      assert.deepEqual([status, message], [400, 'Invalid query parameter: q']);
    });

    if (store === POSTGRES)
      test('words are looked up in the index one by one, whatever the planner expects, and nothing is compiled', async (context) => {
        const dbUrl = await store.freshUrl();
        await indexAll(dbUrl);
        await execute(
          dbUrl,
          `insert into book_index select n, '', '', 0, to_tsvector('simple', 'many few' || n) from generate_series(1, 30000) as n`,
        );
        const { sql, values } = new SearchStatement(POSTGRES_DIALECT).existing(['many', 'few', 'none']);
        for (const setup of ['select gin_clean_pending_list($$book_index_words$$)', 'analyze book_index']) {
          await execute(dbUrl, setup);
          const [plan] = await execute(dbUrl, `explain (format json) ${sql.replace('$1', `'${values[0]}'`)}`);
          assert.match(JSON.stringify(plan), /Bitmap Index Scan.*book_index_words/);
          assert.doesNotMatch(JSON.stringify(plan), /Seq Scan/);
        }
        await client.create({ title: 'New' });
        await suggested('q=xyzzy'); // and first moves the newest words there
        const moved = await execute(
          service.dbUrl,
          "select gin_clean_pending_list('book_index_words')::int as pages",
        );
        assert.deepEqual(moved, [{ pages: 0 }]);
        const connection = await connectTo(context, dbUrl);
        for (const [limit, end] of [
          [() => limitConnection(connection, 4000, 4000), 'reset all'],
          [() => connection.query(beginWithin(4000)), 'rollback'],
        ] as const) {
          await limit();
          assert.deepEqual((await connection.query('show jit')).rows, [{ jit: 'off' }]);
          await connection.query(end);
        }
      });
  });
}
