// Which books stand where in a long list, after some of them were changed, in Node.js.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Book } from '../../client/src/book.ts';
import type { PageSearch } from '../../client/src/search.ts';
import { pathTo } from '../support/repository.ts';
import { settled } from '../support/virtual-time.ts';

// By its path, and so without its types, which need those of a browser.
const { Shelf } = await import(pathTo('page/list/shelf.ts'));

const LONG = 350;
const titleAt = (place: number) => `Book ${String(place + 1).padStart(3, '0')}`;

/** A shelf of books without a year, or of all books by their authors. */
async function shelfOf(search: PageSearch) {
  const books: Book[] = Array.from({ length: LONG }, (_, at) => {
    return { id: at + 1, title: titleAt(at), author: 'Somebody', year: 0 };
  });
  const keyOf = ({ title, author }: Book) => (search.sort === 'author' ? `${author} ${title}` : title);
  const page = async ({ offset = 0, cursor = '', limit = 0 }: PageSearch) => {
    const found = books.filter(({ year }) => search.year === undefined || year === search.year);
    const sorted = found.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
    const left = sorted.filter((book) => keyOf(book) > cursor).slice(offset);
    const some = left.slice(0, limit);
    const next =
      left.length > limit ? { cursor: offset > 0 ? undefined : keyOf(some.at(-1) as Book) } : undefined;
    return { books: some, total: found.length, unindexed: 0, next };
  };
  const shelf = new Shelf({ call: (work: (one: object) => unknown) => work({ page }) });
  let place = 0;
  const find = async () => shelf.show(await shelf.find(search, place, new AbortController().signal));
  shelf.onMoved = find; // as the page does
  await find();
  return {
    change(id: number, changes: object) {
      books[id - 1] = { ...(books[id - 1] as Book), ...changes };
      shelf.replace(id, books[id - 1]);
    },
    async goTo(goal: number) {
      place = goal;
      shelf.want(place, place + 10);
      await settled();
      return shelf.at(place)?.title;
    },
    total: () => shelf.total,
  };
}

for (const [search, changes] of [
  [{ year: 0, sort: 'title' }, { year: 1900 }],
  [{ sort: 'author' }, { author: 'Zzz' }],
] as const) {
  test(`a reader who changes books by ${Object.keys(changes)} sees all others further down, each in its place`, async () => {
    const { change, goTo, total } = await shelfOf(search);
    for (const id of [1, 2, 3]) change(id, changes);
    for (const place of [100, 200, 349]) assert.equal(await goTo(place), titleAt(place));
    assert.equal(total(), LONG);
  });
}

test('a reader who changes books so that they are not found any more, and goes to the end, sees all others', async () => {
  const { change, goTo, total } = await shelfOf({ year: 0, sort: 'title' });
  for (const id of [1, 2, 3]) change(id, { year: 1900 });
  for (const place of [346, 297, 97, 0]) assert.equal(await goTo(place), titleAt(place + 3));
  assert.equal(total(), LONG - 3);
});
