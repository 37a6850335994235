// How the page reads what a person writes into a field, shows what is stored, and doubts it, in Node.js.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathTo } from '../support/repository.ts';

// By their paths, and so without their types, which need those of a browser.
const [{ readFields }, { fieldText }, { keyOf }, { doubtOf }] = await Promise.all(
  ['changes/book-fields.ts', 'elements/text.ts', 'import/calls.ts', 'import/doubts.ts'].map(
    (file) => import(pathTo(`page/${file}`)),
  ),
);

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
    [{ year: 'MCM' }, 'year', /“MCM” is not an unambiguous year/],
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

test('blanks around a text make no other book; nothing else is equal', () => {
  const emma = { title: 'Emma', author: 'Jane Austen', year: 1815 };
  assert.equal(keyOf({ ...emma, title: ' Emma\u00a0', author: 'Jane Austen\n' }), keyOf(emma));
  const others = [
    { title: 'emma' },
    { author: 'Jane  Austen' },
    { year: 0 },
    { title: 'EmmaJane', author: '' },
  ];
  for (const other of others) assert.notEqual(keyOf({ ...emma, ...other }), keyOf(emma));
});

test('a book of a file is doubtful without a title, or in a year that is more often a mistake', () => {
  const next = new Date().getFullYear() + 1;
  const isDoubtful = (year: number, title = 'Emma') => doubtOf({ title, author: '', year }) !== undefined;
  for (const year of [0, -3000, 100, 1815, next]) assert.equal(isDoubtful(year), false, String(year));
  for (const year of [-3001, 1, 99, next + 10, 9780141439587]) assert.ok(isDoubtful(year), String(year));
  assert.ok(isDoubtful(1815, ''));
});
