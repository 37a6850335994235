// The files of books that the page saves, in Node.js.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { BookCatalogue } from '../../client/src/book-catalogue.ts';
import { booksOf, fill, manyBooks } from '../support/books.ts';
import { runCommand } from '../support/command.ts';
import { pathTo } from '../support/repository.ts';
import { SQLITE, startTestService, temporaryFolder } from '../support/service.ts';

// By its path, and so without its types, which need those of a browser.
const { exportBooks } = await import(pathTo('page/export/books.ts'));

const withoutTags = (text: string) =>
  text.replaceAll(/,(?:etag$|"""[\w-]{22}"""$|"etag":"\\"[\w-]{22}\\""(?=\}))/gm, '');

test('a file of all books has the bytes of the command export, without its tags; one of books found has the order of the search', async (context) => {
  const dbUrl = await SQLITE.freshUrl();
  const odd = { title: 'a "quoted", title;\r\n\twith \u0001\u007f\u2028', author: '=1+1', year: -1 };
  await fill(dbUrl, [{ id: 7, ...odd }, ...manyBooks(1200).map((book) => ({ ...book, id: book.id + 10 }))]);
  const service = await startTestService(dbUrl);
  context.after(() => service.stop());
  const catalogue = new BookCatalogue(service.url, { username: 'librarian', password: 'correct horse' });
  const session = { call: (work: (one: BookCatalogue) => unknown) => work(catalogue) };
  for (const format of ['csv', 'json']) {
    const counts: number[] = [];
    const onProgress = (count: number) => void counts.push(count);
    const file = await exportBooks(session, undefined, format, { onProgress });
    assert.match(file.name, new RegExp(`^books-\\d{4}-\\d\\d-\\d\\d\\.${format}$`));
    const { stdout } = await runCommand(['export', '--format', format], { DB_URL: dbUrl });
    assert.equal(await file.text(), withoutTags(stdout));
    assert.deepEqual(counts, [500, 1000, 1201]);
  }
  const file = await exportBooks(session, { author: 'somebody', sort: '-year' }, 'json');
  assert.match(file.name, /^books-found-/);
  assert.deepEqual(JSON.parse(await file.text()), (await booksOf(dbUrl)).slice(1).toReversed());
});

test('nothing is saved while the search does not find all books', async () => {
  const catalogue = { page: async () => ({ books: [], next: undefined, unindexed: 1 }) };
  const session = { call: (work: (one: object) => unknown) => work(catalogue) };
  await assert.rejects(exportBooks(session, { q: 'emma' }, 'csv'), {
    message: 'the catalogue is still indexing about 1 book',
  });
});

/** Blanks, controls and invisible characters, behind which a sign may begin a formula. */
const HIDING = Array.from(
  '\t\r\n \u00a0\u00ad\u061c\u115f\u180e\u2003\u200b\u200d\u202e\u2060\u3000\u3164\ufe0f\ufeff\u{e0020}\u001b',
);

test('a file for Excel is UTF-16 with tabs, its texts are no formulas, numbers or dates, and it is imported unchanged, as CSV is', async (context) => {
  const dbUrl = await SQLITE.freshUrl();
  const titles = [
    ...[
      '=HYPERLINK("http://example.org","x")',
      '+1',
      '-ism',
      '@home',
      ' =1+1',
      '="007"',
      '="a"&"b"',
      '#REF!',
      'True',
      '2000年5月',
      "'quoted'",
    ],
    ...[
      '007',
      '1984',
      '1/2',
      '3.14',
      '1e5',
      '5 May',
      'May 5, 1999',
      'C++',
      '?',
      '<b>',
      'é 雪 שלום 😀',
      'a;b,c',
    ],
    ...['a "quoted" title', 'two\r\nlines', 'a\ttab', '', '2001: A Space Odyssey'],
  ];
  // Each of two words, so that the sign alone makes the text a formula.
  const signs = [
    '＝',
    '＋',
    '－',
    '＠',
    '﹦',
    '−',
    ...['=', '+', '-', '@', '＝'].flatMap((sign) => HIDING.map((before) => before + sign)),
  ];
  const hidden = signs.map((sign) => `${sign}SUM(one two)`);
  titles.push(...hidden);
  const books = titles.map((title, at) => ({ id: at + 1, title, author: title, year: at - 3 }));
  await fill(dbUrl, books);
  const service = await startTestService(dbUrl);
  context.after(() => service.stop());
  const catalogue = new BookCatalogue(service.url, { username: 'librarian', password: 'correct horse' });
  const session = { call: (work: (one: BookCatalogue) => unknown) => work(catalogue) };
  const file = await exportBooks(session, undefined, 'excel');
  assert.match(file.name, /^books-\d{4}-\d\d-\d\d-excel\.csv$/);
  const bytes = Buffer.from(await file.arrayBuffer());
  assert.deepEqual([...bytes.subarray(0, 4)], [0xff, 0xfe, 0x69, 0]);
  const text = bytes.toString('utf16le');
  assert.ok(text.startsWith('\ufeffid\ttitle\tauthor\tyear\n1\t"=""=HYPERLINK('));
  for (const line of [
    '\t"=""007"""\t',
    '\t"=""True"""\t',
    '\t"=""2000年5月"""\t',
    '\t"=""5 May"""\t',
    '\t"2001: A Space Odyssey"\t',
    '\t"<b>"\t',
    ...hidden.map((text) => `\t"=""${text}"""\t`),
  ])
    assert.ok(text.includes(line), line);
  for (const exported of [file, await exportBooks(session, undefined, 'csv')]) {
    const path = join(temporaryFolder(), exported.name);
    writeFileSync(path, Buffer.from(await exported.arrayBuffer()));
    const again = await SQLITE.freshUrl();
    const { code, stderr } = await runCommand(['import', path], { DB_URL: again });
    assert.equal(code, 0, stderr);
    assert.deepEqual(await booksOf(again), books);
  }
});
