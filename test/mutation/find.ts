// Owns: mutants of finding books: words, parameters, pages, and the index that follows.

import type { Mutant } from './mutant.ts';

const CONTRACT = 'test/contract/contract.test.ts';
const WORDS = 'test/find/words.test.ts';
const PAGES = 'test/find/pages.test.ts';
const INDEX = 'test/find/index.test.ts';
const ORACLE = 'test/find/oracle.test.ts';

export const FIND_MUTANTS: readonly Mutant[] = [
  {
    name: 'accents count',
    file: 'src/books/words.ts',
    from: ".replace(MARKS, '')",
    to: '',
    test: { file: WORDS, name: 'rquez', store: 'SQLite' },
  },
  {
    name: 'initials stay apart',
    file: 'src/books/words.ts',
    from: 'if (isInitial && follows)',
    to: 'if (false)',
    test: { file: WORDS, name: 'J.R.R.', store: 'SQLite' },
  },
  {
    name: 'characters of Chinese are no words',
    file: 'src/books/words.ts',
    from: 'for (const word of [...run, ...pairsOf(run)]) words.add(word);',
    to: 'for (const word of pairsOf(run)) words.add(word);',
    test: { file: WORDS, name: '百年孤独', store: 'SQLite' },
  },
  {
    name: 'a parameter may be sent twice',
    file: 'src/api/query.ts',
    from: '!parameters.has(name) &&',
    to: '',
    test: { file: CONTRACT, name: 'an invalid parameter is 400', store: 'SQLite' },
  },
  {
    name: 'a search may have 17 words',
    file: 'src/books/search.ts',
    from: 'const MOST_WORDS = 16;',
    to: 'const MOST_WORDS = 17;',
    test: { file: CONTRACT, name: 'an invalid parameter is 400', store: 'SQLite' },
  },
  {
    name: 'a cursor of another order is accepted',
    file: 'src/api/query.ts',
    from: 'name === nameOf(order) &&',
    to: '',
    test: { file: CONTRACT, name: 'a cursor is valid with its own order', store: 'SQLite' },
  },
  {
    name: 'links may have any length',
    file: 'src/api/query.ts',
    from: 'const LONGEST_LINKS = 8 * 1024;',
    to: 'const LONGEST_LINKS = 8 * 1024 * 1024;',
    test: { file: PAGES, name: 'links are left out', store: 'SQLite' },
  },
  {
    name: 'a page may have any size',
    file: 'src/stores/search-sql.ts',
    from: 'const PAGE_BYTES = 1024 * 1024;',
    to: 'const PAGE_BYTES = 1024 * 1024 * 1024;',
    test: { file: PAGES, name: 'a page ends before 1 MiB', store: 'PostgreSQL' },
  },
  {
    name: 'books that are far away are not found',
    file: 'src/stores/finding.ts',
    from: 'rows.length < needed ? this.#collectAll(selection, part) :',
    to: '',
    test: { file: ORACLE, name: 'find many books', store: 'PostgreSQL' },
  },
  {
    name: 'the order by relevance begins again on each page',
    file: 'src/stores/finding.ts',
    from: 'first === 1 ? [key, id] :',
    to: '',
    test: { file: ORACLE, name: 'find many books', store: 'SQLite' },
  },
  {
    name: 'a search on SQLite does not wait for the index',
    file: 'src/stores/sqlite/finder.ts',
    from: 'while (since >= this.#freshAt)',
    to: 'while (false)',
    test: { file: INDEX, name: 'another process has answered', store: 'SQLite' },
  },
  {
    name: 'a search on PostgreSQL does not wait for the index',
    file: 'src/stores/postgres/finding/finder.ts',
    from: 'if (state.notes.length === 0) return 0;',
    to: 'return 0;',
    test: { file: INDEX, name: 'another process has answered', store: 'PostgreSQL' },
  },
  {
    name: 'on SQLite, each search waits a second for the same lock',
    file: 'src/stores/sqlite/finder.ts',
    from: 'Math.min(end, this.#blockedSince + CATCH_UP_TIME)',
    to: 'end',
    test: { file: INDEX, name: 'the searches of many clients', store: 'SQLite' },
  },
  {
    name: 'on PostgreSQL, each search waits a second for the same lock',
    file: 'src/stores/postgres/finding/finder.ts',
    from: 'Math.min(end, this.#indexingSince + CATCH_UP_TIME)',
    to: 'end',
    test: { file: INDEX, name: 'the searches of many clients', store: 'PostgreSQL' },
  },
  {
    name: 'a search never says that books are left out',
    file: 'src/api/query.ts',
    from: 'if (unindexed > 0)',
    to: 'if (false)',
    test: { file: INDEX, name: 'and says so', store: 'SQLite' },
  },
  {
    name: 'a book with a new id above all others is indexed twice',
    file: 'src/stores/sqlite/book-index.ts',
    from: 'select new.id where new.id <= (select indexed_to from book_index_state);',
    to: 'select new.id;',
    test: { file: INDEX, name: 'what other programs write', store: 'SQLite' },
  },
  {
    name: 'books that truncate has removed are found',
    file: 'src/stores/postgres/finding/book-index.ts',
    from: "book_index_on_truncate: 'after truncate on books for each statement',",
    to: '',
    test: { file: INDEX, name: 'removed by truncate', store: 'PostgreSQL' },
  },
  {
    name: 'the old ids of books are found',
    file: 'src/stores/postgres/finding/book-index.ts',
    from: "book_index_on_new_id: 'after update of id on books for each row when (old.id <> new.id)',",
    to: '',
    test: { file: INDEX, name: 'what other programs write', store: 'PostgreSQL' },
  },
];
