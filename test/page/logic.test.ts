// The logic of the page, in Node.js: how it reads what a person writes into a field, shows what is stored, what it
// asks the service for, in which order it takes back changes, and after which errors it tries again.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CatalogueError } from '../../client/src/errors.ts';
import { provideDocument } from '../orders/document.ts';
import { pathTo } from '../support/repository.ts';
import { settled } from '../support/virtual-time.ts';

provideDocument();
// By their paths, and so without their types, which need those of a browser.
const load = (path: string) => import(pathTo(`page/${path}`));
const { readFields } = await load('changes/book-fields.ts');
const { fieldText } = await load('elements/text.ts');
const { searchesOf, viewOf } = await load('list/view.ts');
const { Shelf } = await load('list/shelf.ts');
const { isRefusal } = await load('catalogue/refusal.ts');

test('a field is read without the blanks around it, or refused with the reason', () => {
  assert.deepEqual(readFields({ title: ' Emma\u00a0', author: '\t', year: '750 BC' }), {
    fields: { title: 'Emma', author: '', year: -750 },
  });
  for (const [texts, field, reason] of [
    [{ title: '' }, 'title', /needs a title/],
    [{ title: ' \t\u00a0' }, 'title', /needs a title/],
    [{ title: '\u200b' }, 'title', /needs a title/],
    [{ author: 'a\0b' }, 'author', /cannot be stored/],
    [{ author: '\ud800' }, 'author', /cannot be stored/],
    [{ year: 'MCM' }, 'year', /“MCM” cannot be read as a year/],
  ] as const) {
    const read = readFields(texts);
    assert.equal(read.field, field, JSON.stringify(texts));
    assert.match(read.reason, reason);
  }
});

test('a value is shown in one line, and a year as people write it', () => {
  const book = { id: 1, title: 'Two\r\nlines', author: '', year: -750 };
  assert.equal(fieldText(book, 'title'), 'Two lines');
  for (const [year, text] of [
    [-750, '750 BC'],
    [0, ''],
    [1815, '1815'],
  ] as const) {
    assert.equal(fieldText({ ...book, year }, 'year'), text);
  }
});

test('rule F3: of more than 16 different words, the first 16 are searched for', () => {
  const words = Array.from({ length: 18 }, (_, at) => `word${at}`);
  const [search] = searchesOf({ words: words.join(' '), order: 'title' });
  assert.deepEqual(search.q.replace('*', '').split(' '), words.slice(0, 16));
});

test('the last word may be incomplete; a year among the words is one if no text has it, a range always', () => {
  for (const [words, searches] of [
    ['jane aus', [{ q: 'jane aus*' }]],
    ['jane au', [{ q: 'jane au' }, { q: 'jane' }]],
    ['em', [{ title_starts_with: 'em' }, { q: 'em' }]],
    ['austen ', [{ q: 'austen' }]],
    ['emma 1815', [{ q: 'emma 1815*' }, { q: 'emma*', year: 1815 }]],
    ['emma 1810-1820 ', [{ q: 'emma*', year_gte: 1810, year_lte: 1820 }, { q: 'emma 1810-1820' }]],
    ['1810–20', [{ q: '', year_gte: 1810, year_lte: 1820 }, { q: '1810–20' }]],
    ['before 1900', [{ q: '', year_lte: 1899 }, { q: 'before 1900*' }]],
    ['dickens until 1850', [{ q: 'dickens*', year_lte: 1850 }, { q: 'dickens until 1850*' }]],
    ['after ١٩٠٠', [{ q: '', year_gte: 1901 }, { q: 'after ١٩٠٠*' }]],
    ['1950-1940 ', [{ q: '1950-1940' }]],
    ['1840-', [{ q: '', year_gte: 1840 }, { q: '1840-' }]],
    ['“1840-1850”, emma ', [{ q: '“ ”, emma*', year_gte: 1840, year_lte: 1850 }, { q: '“1840-1850”, emma' }]],
    ['before 750 BC ', [{ q: '', year_lte: -751 }, { q: 'before 750 BC' }]],
    ['until 0 BC ', [{ q: 'until 0 BC' }]],
    ['after 1 bc ', [{ q: '', year_gte: 1 }, { q: 'after 1 bc' }]],
    ['iliad 750 BCE ', [{ q: 'iliad 750 BCE' }, { q: 'iliad*', year: -750 }]],
    ['0000-0000 ', [{ q: '0000-0000' }]],
    ['11838 1838 ', [{ q: '11838 1838' }, { q: '11838*', year: 1838 }]],
  ] as const) {
    const found = searchesOf({ words, order: 'title' });
    const expected = searches.map((search) => ({ ...search, sort: 'title' }));
    assert.deepEqual(JSON.parse(JSON.stringify(found)), expected, words); // without what is undefined
  }
});

test('whatever is invalid in an address is as if it were missing', () => {
  const all = { words: '', order: 'best' };
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

test('others have deleted books: the list ends where those of the service end, whichever page answers last', async () => {
  for (const order of [
    [100, 200],
    [200, 100],
  ]) {
    const all = Array.from({ length: 250 }, (_, at) => ({ id: at + 1, title: 'book', author: '', year: 0 }));
    const answers = new Map<number, () => void>();
    const page = ({ offset = 0 }) =>
      new Promise((resolve) => {
        const books = all.slice(offset, offset + 100);
        const next = offset + 100 < all.length ? { offset: offset + 100 } : undefined;
        answers.set(offset, () => resolve({ books, total: all.length, unindexed: 0, next }));
      });
    const shelf = new Shelf({ call: (work: (catalogue: object) => unknown) => work({ page }) });
    const found = shelf.find({}, 0, new AbortController().signal);
    answers.get(0)?.();
    shelf.show(await found);
    all.length = 150;
    shelf.want(100, 249);
    for (const offset of order) {
      answers.get(offset)?.();
      await settled();
    }
    assert.deepEqual([shelf.total, shelf.at(149)?.id], [150, 150], String(order));
  }
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

test('only what the catalogue itself refuses is given up, not what a proxy answers in its place', () => {
  for (const status of [400, 403, 404, 413]) {
    assert.equal(isRefusal(new CatalogueError('no', { status })), true, String(status));
    assert.equal(isRefusal(new CatalogueError('no', { status, isForeign: true })), false, String(status));
  }
  for (const status of [undefined, 401, 412, 429, 500, 503])
    assert.equal(isRefusal(new CatalogueError('later', { status })), false, String(status));
  assert.equal(isRefusal(new TypeError('fetch failed')), false);
});
