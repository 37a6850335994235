// What the page asks the service for, in Node.js: the searches for words, and the pages of a list.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathTo } from '../support/repository.ts';

// By their paths, and so without their types, which need those of a browser.
const [{ searchesOf, viewOf }, { Shelf }] = await Promise.all(
  ['list/view.ts', 'list/shelf.ts'].map((file) => import(pathTo(`page/${file}`))),
);

test('rule F3: of more than 16 different words, the first 16 are searched for', () => {
  const words = Array.from({ length: 18 }, (_, at) => `word${at}`);
  const [search] = searchesOf({ words: words.join(' '), order: 'title' });
  assert.deepEqual(search.q.replace('*', '').split(' '), words.slice(0, 16));
});

test('the last word may be incomplete; a year among the words is one if no text has it', () => {
  for (const [words, searches] of [
    ['jane aus', [{ q: 'jane aus*' }]],
    ['jane au', [{ q: 'jane au' }, { q: 'jane' }]],
    ['em', [{ title_starts_with: 'em' }, { q: 'em' }]],
    ['austen ', [{ q: 'austen' }]],
    ['emma 1815', [{ q: 'emma 1815*' }, { q: 'emma*', year: 1815 }]],
  ] as const) {
    const found = searchesOf({ words, order: 'title' });
    const expected = searches.map((search) => ({ year: undefined, ...search, sort: 'title' }));
    assert.deepEqual(found, expected, words);
  }
});

test('whatever is invalid in an address is as if it were missing', () => {
  const all = { words: '', order: 'author' };
  for (const [query, view] of [
    ['', all],
    [
      'q=emma&sort=-year&year=-720&author=',
      { words: 'emma', order: '-year', year: -720, isAuthorless: true },
    ],
    ['sort=up&year=MCM&author=x&other=1', all],
    ['year=1815.5', all],
    ['year=9999999999999999', all],
    [`q=${'x'.repeat(501)}`, { ...all, words: 'x'.repeat(500) }],
  ] as const) {
    assert.deepEqual(viewOf(new URLSearchParams(query)), view, query);
  }
});

/** A list in front of 250 books, of which the service answers with 30 at a time, since they are long (rule F4). */
function longShelf() {
  const all = Array.from({ length: 250 }, (_, at) => ({ id: at + 1, title: 'long', author: '', year: 0 }));
  const page = async ({ offset = 0, limit }: { offset?: number; limit: number }) => {
    const books = all.slice(offset, offset + Math.min(limit, 30));
    const end = offset + books.length;
    return { books, total: all.length, unindexed: 0, next: end < all.length ? { offset: end } : undefined };
  };
  return new Shelf({ call: (work: (catalogue: object) => unknown) => work({ page }) });
}

test('rule F4: a page that ends early, since its books are long, is continued', async () => {
  const shelf = longShelf();
  shelf.show(await shelf.find({}, 120, new AbortController().signal));
  assert.equal(shelf.total, 250);
  for (const [place, id] of [
    [99, undefined],
    [100, 101],
    [199, 200],
    [200, undefined],
  ]) {
    assert.equal(shelf.at(place)?.id, id);
  }
});

test('a place beyond the end, since others have deleted books, is one of the last page', async () => {
  const shelf = longShelf();
  shelf.show(await shelf.find({}, 1000, new AbortController().signal));
  assert.equal(shelf.at(249)?.id, 250);
});

test('an answer that was on its way when a book changed does not hide the change', async () => {
  const book = { id: 1, title: 'Emma', author: '', year: 0 };
  const answers: (() => void)[] = [];
  const page = () =>
    new Promise((resolve) => {
      answers.push(() => resolve({ books: [book], total: 1, unindexed: 0, next: undefined }));
    });
  const shelf = new Shelf({ call: (work: (catalogue: object) => unknown) => work({ page }) });
  const find = async (isChanged: boolean) => {
    const found = shelf.find({}, 0, new AbortController().signal);
    if (isChanged) shelf.replace(1, { ...book, title: 'Emma, a novel' });
    answers.pop()?.();
    shelf.show(await found);
  };
  await find(false);
  await find(true);
  assert.equal(shelf.at(0).title, 'Emma, a novel');
});
