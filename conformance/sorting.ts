// Owns: the orders of rule F9 that no key has as it is. The rule stores books whose titles share a word that no other book has.

import { expectEqual } from './complaint.ts';
import { expectToFind, markOf, walk } from './found.ts';
import { full, type Rule } from './rule.ts';

const BOOKS = [
  { title: 'The Hobbit', author: 'Tolkien, J. R. R.', year: 1937 },
  { title: 'L’Étranger', author: 'Albert Camus & Stuart Gilbert', year: 1942 },
  { title: 'Die Hard', author: "Flann O'Brien", year: -5 },
  { title: 'I, Robot', author: 'Kurt Vonnegut Jr. and Others', year: 0 },
  { title: 'Az', author: '', year: 0 },
];

/** Values of `sort`, and all books in that order, from 1, by their place in BOOKS. */
const SORTED: readonly (readonly [sort: string, found: readonly number[]])[] = [
  ['title_without_article', [2, 3, 1, 4, 5]],
  ['-title_without_article', [5, 4, 1, 3, 2]],
  ['author_last_word', [2, 3, 1, 4, 5]],
  ['-author_last_word', [4, 1, 3, 2, 5]],
  ['year_unknown_last', [3, 1, 2, 4, 5]],
  ['-year_unknown_last', [2, 1, 3, 5, 4]],
  ['-year_unknown_last,author_last_word', [2, 1, 3, 4, 5]],
];

export const SORTING: readonly Rule[] = [
  full.writing('rule F9', 'articles, first names and unknown years do not count', async (service) => {
    const mark = markOf();
    const ids: number[] = [];
    for (const { title, ...book } of BOOKS)
      ids.push((await service.create({ title: `${title} ${mark}`, ...book })).id);
    for (const [sort, found] of SORTED) {
      const query = `sort=${sort}&title_contains=${mark}`;
      const books = found.map((place) => ids[place - 1] as number);
      await expectToFind(service, query, books);
      expectEqual(await walk(service, `/books?${query}&limit=2`), books, 'The books of all pages');
    }
  }),
];
