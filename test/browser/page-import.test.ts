// The librarians' page in a real browser: files of books are imported, and books are saved as files. How a file is
// understood is in test/transfer, and what becomes of an import in test/stores.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { COLOURS, violations } from '../support/accessibility.ts';
import { booksOf, countOf } from '../support/books.ts';
import type { Client } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { answer } from '../support/front.ts';
import { manyRows } from '../support/importing.ts';
import { asksToStay, counted, describePage, focused, logIn, searchField } from '../support/page.ts';
import { SQLITE, startServiceProcess, temporaryFolder } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';
import { archiveOf, partsOf, rowOf, sheetOf } from '../support/workbook.ts';

/** Of an export of Goodreads, with its own columns and ways of writing. */
const GOODREADS = `Book Id,Title,Author,Author l-f,ISBN,My Rating,Publisher,Year Published,Original Publication Year,Date Read,Bookshelves,My Review
5907,The Hobbit,J.R.R. Tolkien,"Tolkien, J.R.R.","=""0618260307""",5,Houghton Mifflin,2002,1937,2019/05/01,"fantasy, favorites","Twice, ""precious""."
1371,The Iliad,Homer,"Homer, ","=""""",4,,1998,-750,,,
29044,The Secret History,Donna Tartt,"Tartt, Donna","=""""",0,,2004,in the nineties,,to-read,
30165203,American Gods,Neil Gaiman,"Gaiman, Neil","=""""",0,,2011,1997-1998,,,
1,<img src=x onerror=alert(1)>,שלום <b>עולם</b> 😀,x,"=""""",0,,,,,,
2,One more, without quotes,Nobody,x,"=""""",0,,2000,,,,x
5908,The Hobbit,J.R.R. Tolkien,"Tolkien, J.R.R.","=""""",0,,2012,1937,,,
`;
const YEAR = 'Original Publication Year';

const HOBBIT = { title: 'The Hobbit', author: 'J.R.R. Tolkien', year: 1937 };
const ILIAD = { title: 'The Iliad', author: 'Homer', year: -750 };
const HISTORY = { title: 'The Secret History', author: 'Donna Tartt', year: 1992 };
const GODS = { title: 'American Gods', author: 'Neil Gaiman', year: 2001 };
const HOSTILE = { title: '<img src=x onerror=alert(1)>', author: 'שלום <b>עולם</b> 😀', year: 0 };

describePage('import and export on the page', ({ openCatalogue, openDesk }) => {
  test('a person imports an export of Goodreads, and corrects rows of it', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [] });
    const refused = page.getByRole('region', { name: 'Rows that are refused' });
    await openImport(page);
    await choose(page, 'goodreads.csv', GOODREADS);
    await reads(page, '7 rows, separated by commas, UTF-8');
    await figures(page, '7 in the file; 3 new; 1 twice in the file; 0 doubtful; 3 refused');
    assert.equal(await useOf(page, YEAR), 'Year');
    assert.equal(await useOf(page, 'ISBN'), '–');
    const [, iliad] = await rowsOf(page.getByRole('region', { name: 'The first rows of the file' }));
    assert.deepEqual(iliad?.slice(0, 3), ['1371', ILIAD.title, ILIAD.author]);
    assert.equal(await countOf(service.dbUrl), 0, 'nothing is stored before the check was seen');
    await filter(page, 'new');
    const [, second] = await rowsOf(page.getByRole('region', { name: 'Books that are new' }));
    assert.deepEqual(second, ['3', ILIAD.title, ILIAD.author, '750 BC', '']);
    await filter(page, 'refused');
    assert.deepEqual(await rowsOf(refused), [
      ['4', HISTORY.title, YEAR, '', 'cannot be read as a year'],
      ['5', GODS.title, YEAR, '1997?', 'cannot be read as a year'],
      ['7', '', 'the whole row', '', 'has 13 fields, the header has 12'],
    ]);
    await page.getByRole('textbox', { name: `${YEAR}, line 4` }).fill('1992');
    await page.getByRole('textbox', { name: `${YEAR}, line 5` }).fill('2001?!');
    await page.keyboard.press('Tab');
    await alerted(page, 'cannot be read as a year');
    await figures(page, '7 in the file; 4 new; 1 twice in the file; 0 doubtful; 2 refused');
    await filter(page, 'in the file');
    await page.getByRole('combobox', { name: 'Column Author', exact: true }).selectOption('–'); // the correction is not lost
    await figures(page, '7 in the file; 4 new; 1 twice in the file; 0 doubtful; 2 refused');
    await asksToStay(page);
    await page.getByRole('combobox', { name: 'Column Author', exact: true }).selectOption('Author');
    await filter(page, 'refused');
    await page.getByRole('button', { name: '1997?' }).click();
    assert.equal(await page.getByRole('textbox', { name: `${YEAR}, line 5` }).inputValue(), '1997');
    await figures(page, '7 in the file; 5 new; 1 twice in the file; 0 doubtful; 1 refused');
    await page.getByRole('button', { name: 'Import 5 books' }).click();
    await page.getByRole('heading', { name: '5 books were added.' }).waitFor();
    await reads(page, '1 row was in the file more than once.');
    const gods = { ...GODS, year: 1997 };
    assert.deepEqual(await storedIn(service.dbUrl), [HOBBIT, ILIAD, HISTORY, gods, HOSTILE]);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save the refused rows' }).click();
    assert.equal((await download).suggestedFilename(), 'goodreads.rejects.csv');
    assert.match(
      readFileSync(await (await download).path(), 'utf8'),
      /^Book Id,Title,.*,refused\n2,One more, without quotes,.*13 fields.*\n$/,
    );
    await page.getByRole('button', { name: 'Done' }).click();
    await counted(page, '5 books');
  });

  test('a person imports by keyboard alone, and undoes it', async (context) => {
    const { service, page, complaints } = await openCatalogue(context, { books: [] });
    const chooser = page.waitForEvent('filechooser'); // so early, since the browser must learn of it
    await tabTo(page, page.getByRole('button', { name: 'Import', exact: true }));
    await page.keyboard.press('Enter');
    await focused(page.getByLabel('Choose a file'));
    await page.keyboard.press('Enter');
    await (await chooser).setFiles(fileOf('my books.csv', GOODREADS));
    await focused(page.getByRole('heading', { name: 'my books.csv', exact: true }));
    assert.equal(await page.locator('[aria-current="step"]').innerText(), 'Check');
    await tabTo(page, page.getByRole('button', { name: 'refused', exact: false }));
    await page.keyboard.press('Space');
    await tabTo(page, page.getByRole('textbox', { name: `${YEAR}, line 4` }));
    await page.keyboard.press('Control+A');
    await page.keyboard.type('1992');
    await page.keyboard.press('Enter');
    const next = page.getByRole('textbox', { name: `${YEAR}, line 5` });
    await focused(next);
    await page.keyboard.type('x');
    await page.keyboard.press('Escape'); // the value is as it was, and the dialog stays
    assert.equal(await next.inputValue(), '1997-1998');
    await page.getByText('can be read now').waitFor();
    await page.keyboard.press('Escape');
    await alerted(page, 'Your corrections would be lost');
    await tabTo(page, page.getByRole('button', { name: 'Import 4 books' }));
    await page.keyboard.press('Enter');
    await focused(page.getByRole('heading', { name: '4 books were added.' }));
    await tabTo(page, page.getByRole('button', { name: 'Undo this import' }));
    await page.keyboard.press('Space');
    await focused(page.getByRole('heading', { name: '4 books were removed.' }));
    assert.equal(await countOf(service.dbUrl), 0);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await tabTo(page, page.getByRole('button', { name: 'Import', exact: true }));
    await page.keyboard.press('Enter'); // it begins from the beginning
    await focused(page.getByLabel('Choose a file'));
    await reads(page, 'my books.csv: 4 books, undone');
    assert.deepEqual(complaints(), []);
  });

  test('a person says what the first row is, and which column is the title; a year among books says it', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [] });
    const choice = (name: string) => page.getByRole('combobox', { name, exact: true });
    await openImport(page);
    await choose(page, 'a.csv', 'Emma;Jane Austen\nPersuasion;Jane Austen\n');
    await alerted(page, 'Is the first row a book');
    await alerted(page, 'Which column is the title?');
    await choice('Column Emma').focus();
    await choice('Column Emma').selectOption('Title');
    await figures(page, '1 in the file; 1 new; 0 here already; 0 doubtful; 0 refused');
    await focused(choice('Column Emma'));
    assert.ok(await page.getByRole('button', { name: 'Import', exact: true }).last().isDisabled());
    await choice('First row').selectOption('a book');
    await choice('Column column 1').selectOption('Title');
    await choice('Column column 2').selectOption('Author');
    await importAll(page, 2);
    await openImport(page);
    await choose(page, 'b.csv', 'Ivanhoe,Walter Scott,1819\nKim,Rudyard Kipling,1901\n');
    await importAll(page, 2);
    const austen = ['Emma', 'Persuasion'].map((title) => ({ title, author: 'Jane Austen', year: 0 }));
    const others = [
      { title: 'Ivanhoe', author: 'Walter Scott', year: 1819 },
      { title: 'Kim', author: 'Rudyard Kipling', year: 1901 },
    ];
    assert.deepEqual(await storedIn(service.dbUrl), [...austen, ...others]);
  });

  test('a person leaves out what stands above the header, and says what separates the columns', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [] });
    const choice = (name: string) => page.getByRole('combobox', { name, exact: true });
    await openImport(page);
    await choose(page, 'a.csv', 'Table 1\nBook;a,b,c;Writer\nEmma;x,y;Jane Austen\nIt;;\n');
    await alerted(page, 'Is the first row a book');
    await choice('First row').selectOption('neither: leave it out');
    await choice('Separated by').selectOption('semicolons');
    await choice('First row').selectOption('the names of the columns');
    await choice('Column Book').selectOption('Title');
    await choice('Column Writer').selectOption('Author');
    await importAll(page, 2);
    const books = [
      { title: 'Emma', author: 'Jane Austen', year: 0 },
      { title: 'It', author: '', year: 0 },
    ];
    assert.deepEqual(await storedIn(service.dbUrl), books);

    await openImport(page);
    await choose(page, 'a.csv', 'Note,x\nTitle,Shelf\nUbik,A1\n');
    await choice('First row').selectOption('neither: leave it out');
    await page.getByRole('button', { name: 'Import 1 book' }).waitFor();
  });

  test('books that are here, twice in the file, or doubtful are left out, unless a person wants them', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [HOBBIT, GODS] });
    const rows = [HOBBIT, ILIAD, ILIAD, GODS].map((book) => Object.values(book).join());
    const csv = ['title,author,year', ...rows, ' ,Nobody,1900'].join('\n');
    await openImport(page);
    await choose(page, 'a.csv', csv.replace('2001', 'x'));
    await figures(page, '5 in the file; 1 new; 2 here already, or twice in the file; 1 doubtful; 1 refused');
    await filter(page, 'doubtful');
    const doubtful = page.getByRole('region', { name: 'Books that are doubtful' });
    assert.deepEqual(await rowsOf(doubtful), [['6', '', 'Nobody', '1900', 'has no title']]);
    await filter(page, 'refused');
    await page.getByRole('textbox', { name: 'year, line 5' }).fill('2001'); // it is here as well
    await page.getByRole('button', { name: 'Import 1 book' }).click();
    await page.getByRole('heading', { name: '1 book was added.' }).waitFor();
    await reads(page, '2 were here already.');
    await reads(page, '1 row was in the file more than once.');
    await reads(page, '1 doubtful book was left out.');
    await openImport(page);
    await choose(page, 'a.csv', csv);
    await reads(page, 'There is nothing to import but doubtful books.');
    const too = page.getByRole('checkbox', { name: 'Also import 1 doubtful book' });
    await too.focus();
    await page.keyboard.press('Space');
    await focused(too);
    await page.getByRole('button', { name: 'Import 1 book' }).waitFor();
    await page.getByRole('checkbox', { name: /^Leave out books that are here already/ }).uncheck();
    await importAll(page, 5);
    const others = [HOBBIT, ILIAD, ILIAD, GODS, { title: ' ', author: 'Nobody', year: 1900 }];
    assert.deepEqual(await storedIn(service.dbUrl), [HOBBIT, GODS, ILIAD, ...others]);
  });

  test('an empty catalogue offers examples, which are imported and removed like any file', async (context) => {
    const { page, client } = await openCatalogue(context, { books: [] });
    await page.getByRole('button', { name: 'Try 20 example books' }).click();
    await page.getByRole('button', { name: 'Import 20 books' }).click();
    await page.getByRole('heading', { name: '20 books were added.' }).waitFor();
    assert.equal((await client.list()).length, 20);
    await page.getByRole('button', { name: 'Undo this import' }).click();
    await page.getByRole('heading', { name: '20 books were removed.' }).waitFor();
    assert.deepEqual(await client.list(), []);
  });

  test('the page says how it understands a file, or why it cannot', async (context) => {
    const { page } = await openCatalogue(context, { books: [] });
    const refused = Array.from({ length: 5000 }, (_, index) => `Book ${index},year ${index}\n`).join('');
    await openImport(page);
    for (const [name, content, ...texts] of [
      ['empty.csv', '', /The file is empty/],
      ['noise.csv', Buffer.from([0xff, 0xd7, 0xff, 0, 0, 1, 2, 3]), /^This file is not text/],
      ['header.csv', 'title,author\n', /The file has no rows/],
      ['cut.csv', `title\na\n"${'b'.repeat(17 * 1024 * 1024)}`, /Only the rows before that can be/],
      ['books.jsonl', '{"title":"Emma"}\n', '1 row, JSON, one book a line, UTF-8'],
      [
        'latin.csv',
        Buffer.from('id;title;author;year\n7;é;;1815\n', 'latin1'),
        /semicolons, Windows-1252/,
        /letters such as é/,
      ],
      ['many.csv', `title,year\n${refused}`, /every row is refused/],
    ] as const) {
      await choose(page, name, content);
      for (const text of texts) await page.getByRole('dialog').getByText(text).first().waitFor();
      const another = page.getByRole('button', { name: 'Another file' });
      if ((await another.isVisible()) && name !== 'many.csv') await another.click();
    }
    await filter(page, 'refused');
    await reads(page, 'These are the first 100 of 5,000. The file of refused rows has 1,000 of them.');
  });

  test('an export that was corrected changes its books, but for what somebody has changed since', async (context) => {
    const books = [{ ...HOBBIT, year: 1927 }, ILIAD, HISTORY, GODS];
    const { service, client, page } = await openCatalogue(context, { books });
    const { stdout: file } = await runCommand(['export'], { DB_URL: service.dbUrl });
    const corrected = file.replace('1927', '1937').replace(',1992,', ',1993,').replace(',2001,', ',2000,');
    const { status } = await client.request('PUT', '/book/3', { body: { author: 'D. Tartt' } });
    assert.equal(status, 200);
    await openImport(page);
    await choose(page, 'books.csv', corrected);
    await figures(page, '4 in the file; 0 new; 2 changed; 1 here already; 0 doubtful; 1 refused');
    await filter(page, 'changed');
    assert.deepEqual(await rowsOf(page.getByRole('region', { name: 'Books that change' })), [
      ['2', HOBBIT.title, HOBBIT.author, '1927 → 1937', ''],
      ['5', GODS.title, GODS.author, '2001 → 2000', ''],
    ]);
    await filter(page, 'refused');
    const both = 'author "D. Tartt" here, "Donna Tartt" in the file; year 1992 here, 1993 in the file';
    await reads(page, `is from before a change of book 3: ${both}`);
    await page.getByRole('button', { name: 'Change 2 books' }).click();
    await page.getByRole('heading', { name: '2 books were changed.' }).waitFor();
    const stored = [HOBBIT, ILIAD, { ...HISTORY, author: 'D. Tartt' }, { ...GODS, year: 2000 }];
    assert.deepEqual(await storedIn(service.dbUrl), stored);

    await page.getByRole('button', { name: 'Undo this import' }).click();
    await page.getByRole('heading', { name: '2 books are as before.' }).waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
    await openImport(page);
    await choose(page, 'books.csv', corrected);
    await filter(page, 'refused');
    await page.getByRole('button', { name: 'Change it anyway' }).click();
    await page.getByRole('button', { name: 'Change 3 books' }).click();
    await page.getByRole('heading', { name: '3 books were changed.' }).waitFor();
    assert.deepEqual((await storedIn(service.dbUrl))[2], { ...HISTORY, year: 1993 });
  });

  test('a person says which books the rows with ids of others are', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [HOBBIT, ILIAD] });
    await openImport(page);
    await choose(
      page,
      'other.csv',
      'id,title,author,year\n1,Emma,Jane Austen,1815\n2,The Iliad,Homer,-762\n',
    );
    await figures(page, '2 in the file; 0 new; 0 changed; 0 here already; 0 doubtful; 2 refused');
    const answer = page.getByLabel('2 rows have the ids of books with other values');
    await answer.selectOption('they are the same books: change these');
    await figures(page, '2 in the file; 0 new; 2 changed; 0 here already; 0 doubtful; 0 refused');
    await answer.selectOption('they are other books: add them');
    await figures(page, '2 in the file; 2 new; 0 changed; 0 here already; 0 doubtful; 0 refused');
    await page.getByRole('button', { name: 'Import 2 books' }).click();
    await page.getByRole('heading', { name: '2 books were added.' }).waitFor();
    const others = [
      { title: 'Emma', author: 'Jane Austen', year: 1815 },
      { ...ILIAD, year: -762 },
    ];
    assert.deepEqual(await storedIn(service.dbUrl), [HOBBIT, ILIAD, ...others]);
  });

  test('a tab is closed while 50,000 books are stored: they are found again, and undone, but for what somebody has changed', async (context) => {
    const { service, client, page } = await openCatalogue(context, { books: [HOBBIT] });
    await openImport(page);
    await choose(page, 'old list.csv', manyRows(50_000));
    await page.getByRole('button', { name: 'Import 50,000 books' }).click();
    await page.getByRole('heading', { name: 'Importing old list.csv' }).waitFor();
    await page.close();
    const { page: other } = await openDesk(context, service.pageUrl);
    await logIn(other);
    await other.getByRole('button', { name: 'Import', exact: true }).click();
    await reads(other, 'old list.csv: 50,000 books');
    const undo = other.getByRole('button', { name: 'Undo the import of old list.csv' });
    await undo.waitFor();
    const [, book] = await booksOf(service.dbUrl); // the index may not have it yet
    assert.ok(book);
    assert.equal((await client.request('PUT', `/book/${book.id}`, { body: { year: 1817 } })).status, 200);
    await undo.click();
    await other.getByRole('heading', { name: '49,999 books were removed.' }).waitFor();
    await reads(other, '1 book stays: changed since the import.');
    const kept = { title: book.title, author: book.author, year: 1817 };
    assert.deepEqual(await storedIn(service.dbUrl), [HOBBIT, kept]);
  });

  test('the service is killed while it stores: the page sends the file again, which is completed under its number', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const first = await startServiceProcess(dbUrl);
    const { page, complaints } = await openDesk(context, first.pageUrl);
    await logIn(page);
    await openImport(page);
    await choose(page, 'a.csv', manyRows(50_000));
    await page.getByRole('button', { name: 'Import 50,000 books' }).click();
    await page.getByRole('heading', { name: 'Importing a.csv' }).waitFor();
    await waitUntil(async () => (await newest(first.client)).dryRun === false);
    const { import: number } = await newest(first.client);
    first.process.kill('SIGKILL');
    await once(first.process, 'exit');
    await reads(page, 'The page continues as soon as it can.');
    assert.ok(!(await page.getByText('The import continues if you close this').isVisible()));
    const ports = { PORT: String(first.port), PAGE_PORT: new URL(first.pageUrl).port };
    const again = await startServiceProcess(dbUrl, ports);
    await page.getByRole('heading', { name: '50,000 books were added.' }).waitFor();
    assert.ok(!(await page.getByText('here already').isVisible()), 'its own books are not called others');
    assert.equal(await countOf(dbUrl), 50_000);
    const { import: last, state, books } = await newest(again.client);
    assert.deepEqual([last, state, books], [number, 'stored', 50_000]);
    assert.deepEqual(complaints(), []);
  });

  test('an import that is not complete is in the list, and the same file completes it, also before it is known to be stopped', async (context) => {
    const { service, client, page } = await openCatalogue(context, { books: [] });
    const file = 'title\nEmma\nIt\n';
    await client.request('POST', '/import?name=a.csv', { body: Buffer.from(file) });
    for (const [state, text] of [
      ['stopped', 'a.csv: 2 books. It is not complete: choose the file again.'],
      ['open', 'a.csv: 2 books so far'],
    ] as const) {
      await executeOn(service.dbUrl, `update book_imports set state = '${state}'`);
      await openImport(page);
      await reads(page, text);
      await choose(page, 'a.csv', file);
      await page.getByRole('heading', { name: '2 books were added.' }).waitFor();
    }
    const { data } = await client.request('GET', '/import');
    assert.equal(data.length, 1);
    assert.equal(await countOf(service.dbUrl), 2);
  });

  test('answers are lost, and the file is gone from the service: it is sent again, checked as before, and stored once', async (context) => {
    let gone: string | undefined;
    const lost = new Set<string>();
    const { service, page } = await openCatalogue(context, {
      books: [],
      front: ({ method, url = '' }, outgoing, forward) => {
        const kind = `${method} ${url.replace(/\?.*|\d+/g, '')}`;
        const path = url.replace(/\?.*/, '');
        if (kind === 'POST /import/' && !url.includes('dry-run')) gone ??= path;
        if (method === 'POST' && path === gone) answer(outgoing, 410, null, 'File no longer here');
        else if (url.includes('/import') && !lost.has(kind)) {
          lost.add(kind);
          forward(() => outgoing.destroy());
        } else forward();
      },
    });
    await openImport(page);
    await choose(page, 'a.csv', 'name,book\nx,Emma\ny,It\n');
    await page.getByRole('combobox', { name: 'Column book' }).selectOption('Title');
    await importAll(page, 2);
    assert.deepEqual(
      (await storedIn(service.dbUrl)).map(({ title }) => title),
      ['Emma', 'It'],
    );
  });

  test('a file that is too large, or that a proxy refuses, is not sent for ever', async (context) => {
    const { page } = await openCatalogue(context, { books: [], env: { IMPORT_LIMIT: '1000000' } });
    await openImport(page);
    await choose(page, 'a.csv', `title\n${'x'.repeat(1_000_000)}`);
    await alerted(page, 'The file is too large for the catalogue');
  });

  test('a file is dropped on the page, and on the dialog, which is closed and opened again at once', async (context) => {
    const { page } = await openCatalogue(context, { books: [] });
    const button = await page.getByRole('button', { name: 'Import', exact: true }).elementHandle();
    await drop(page.getByRole('main'), 'dropped.csv', 'title\nEmma\n');
    await page.getByRole('button', { name: 'Import 1 book' }).waitFor();
    await page.getByRole('dialog').evaluate((dialog, opener) => {
      dialog.close();
      opener.click();
      const window = dialog.ownerDocument.defaultView;
      return new Promise((resolve) =>
        window.addEventListener('close', resolve, { once: true, capture: true }),
      );
    }, button);
    assert.equal(await page.getByLabel('Choose a file').isVisible(), true);
    await drop(page.getByRole('dialog'), 'another.csv', 'title\nEmma\nPersuasion\n');
    await page.getByRole('heading', { name: 'another.csv' }).waitFor();
    await page.getByRole('button', { name: 'Import 2 books' }).waitFor();
  });

  test('a file that was saved again or deleted after it was chosen is to be chosen again', async (context) => {
    const { page } = await openCatalogue(context, {
      books: [],
      front: ({ method, url = '' }, outgoing, forward) => {
        if (method === 'POST' && url.startsWith('/import/'))
          answer(outgoing, 410, null, 'File no longer here');
        else forward();
      },
    });
    const path = join(temporaryFolder(), 'books.csv');
    for (const [change, complaint] of [
      [
        () => {
          writeFileSync(path, 'name,title\nEmma,x\nIt,y\n');
          utimesSync(path, 0, 0); // a browser looks at whole seconds
        },
        'The file was saved again after it was chosen',
      ],
      [() => rmSync(path), 'The file was moved, renamed or deleted after it was chosen. Choose it again.'],
    ] as const) {
      writeFileSync(path, 'name,title\nEmma,x\n');
      await openImport(page);
      await page.getByLabel('Choose a file').setInputFiles(path);
      await page.getByRole('button', { name: 'Import 1 book' }).waitFor();
      change();
      await page.getByRole('combobox', { name: 'Column name' }).selectOption('Title');
      await alerted(page, complaint);
    }
  });

  test('axe finds nothing in any step, light or dark, and nothing is wider than the window', async (context) => {
    const { page } = await openCatalogue(context, { books: [], options: { reducedMotion: 'reduce' } });
    const check = async (step: string) => {
      assert.deepEqual(await violations(page), [], step);
      await page.emulateMedia({ colorScheme: 'dark' });
      assert.deepEqual(await violations(page, [], COLOURS), [], `${step}, dark`);
      await page.emulateMedia({ colorScheme: 'light' });
      for (const [width, size] of [
        [320, '200%'],
        [1280, '100%'],
      ] as const) {
        await page.setViewportSize({ width, height: 700 });
        await page.evaluate(`document.documentElement.style.fontSize = '${size}'`);
        const wide = await page.evaluate(
          `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('#import'))`,
        );
        assert.equal(wide, 0, `${step}, ${width} pixels, text of ${size}`);
        const unseen = await page.evaluate(
          `[...document.querySelectorAll('#import .value')].filter((one) => one.getBoundingClientRect().right > innerWidth).length`,
        );
        assert.equal(unseen, 0, `${step}, ${width} pixels: a value to correct is out of sight`);
      }
    };
    await openImport(page);
    await choose(page, 'empty.csv', '');
    await alerted(page, 'is empty');
    await check('File, with a complaint');
    await choose(page, 'doubtful.csv', 'Emma,Jane Austen\n ,Jane Austen\n');
    await page.getByRole('combobox', { name: 'Column Emma' }).selectOption('Title');
    await page.getByRole('combobox', { name: 'Column Jane Austen' }).selectOption('Author');
    await page.getByRole('checkbox', { name: 'Also import 1 doubtful book' }).waitFor();
    await check('Check, with a question and doubts');
    await filter(page, 'doubtful');
    await check('Check, of doubtful books');
    await page.getByRole('button', { name: 'Another file' }).click();
    await choose(page, 'goodreads.csv', GOODREADS);
    await filter(page, 'refused');
    await page.getByRole('textbox', { name: `${YEAR}, line 4` }).fill('1992');
    await page.getByRole('textbox', { name: `${YEAR}, line 5` }).fill('later');
    await page.getByRole('textbox', { name: 'Row, line 7' }).focus();
    await alerted(page, 'cannot be read as a year');
    await check('Check, with corrections');
    await page.getByRole('button', { name: 'Import 4 books' }).click();
    await page.getByRole('heading', { name: '4 books were added.' }).waitFor();
    await check('the end');
    await openImport(page);
    await page.getByRole('button', { name: /^Undo the import of/ }).waitFor();
    await check('File, with an import before');
  });

  test('a person chooses the sheet of a workbook', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [] });
    const sheet = (title: string) => sheetOf(rowOf('Title', 'Year') + rowOf(title, '1901'));
    const file = await archiveOf(
      partsOf({ Notes: sheetOf(rowOf('Mine')), A: sheet('Emma'), B: sheet('Kim') }),
    );
    await openImport(page);
    await page.getByLabel('Choose a file').setInputFiles(fileOf('two.xlsx', file));
    await reads(page, '1 row, sheet “A”; title from “Title”, no author, year from “Year”');
    await reads(
      page,
      'Several sheets of the workbook have books. These are from “A”; another sheet can be chosen below.',
    );
    await page.getByLabel('Sheet').selectOption('B');
    await reads(page, '1 row, sheet “B”');
    await page.getByRole('button', { name: 'Import 1 book' }).click();
    await reads(page, '1 book was added.');
    assert.deepEqual(
      (await booksOf(service.dbUrl)).map(({ title }) => title),
      ['Kim'],
    );
  });

  test('a person saves the books found, in the order that is shown, by keyboard alone, and all of them by a link that is a link', async (context) => {
    let isDown = false;
    const { service, page } = await openCatalogue(context, {
      books: [HOBBIT, HISTORY, { ...HOBBIT, title: 'The Hobbit, annotated', year: 2002 }, ILIAD],
      query: '?q=hobbit&sort=-year',
      front: ({ url = '', method }, response, forward) => {
        if (isDown && method === 'PUT' && url.startsWith('/session')) response.destroy();
        else forward();
      },
    });
    const { stdout } = await runCommand(['export'], { DB_URL: service.dbUrl });
    const [head, hobbit, , annotated] = stdout.split('\n');
    await searchField(page).focus();
    await tabTo(page, page.getByRole('button', { name: 'Export' }));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Save 2 books found' }).waitFor();
    await focused(page.getByRole('link', { name: 'Excel workbook' }));
    await tabTo(page, page.getByRole('link', { name: 'CSV' }));
    const [found] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
    assert.match(found.suggestedFilename(), /^books-found-\d{4}-\d\d-\d\d\.csv$/);
    assert.equal(readFileSync(await found.path(), 'utf8'), `${[head, annotated, hobbit].join('\n')}\n`);
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await searchField(page).fill('');
    await reads(page, 'The Iliad');
    await page.getByRole('button', { name: 'Export' }).click();
    await page.getByRole('heading', { name: 'Save all 4 books' }).waitFor();
    const [all] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'CSV' }).click(),
    ]);
    assert.match(all.suggestedFilename(), /^books-\d{4}-\d\d-\d\d\.csv$/);
    assert.equal(readFileSync(await all.path(), 'utf8'), stdout);
    isDown = true;
    await page.getByRole('button', { name: 'Export' }).click();
    await alerted(page, 'There are no links');
  });
});

async function reads(page: Page, text: string | RegExp): Promise<void> {
  await page.getByText(text).first().waitFor();
}

async function alerted(page: Page, hasText: string): Promise<void> {
  await page.getByRole('alert').filter({ hasText }).waitFor();
}

/** Closes an import before. */
async function openImport(page: Page): Promise<void> {
  const close = page.getByRole('button', { name: 'Close' });
  if (await close.isVisible()) await close.click();
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByLabel('Choose a file').waitFor();
}

function fileOf(name: string, content: string | Buffer) {
  return { name, mimeType: 'text/csv', buffer: Buffer.from(content as string) };
}

async function choose(page: Page, name: string, content: string | Buffer): Promise<void> {
  await page.getByLabel('Choose a file').setInputFiles(fileOf(name, content));
}

async function drop(place: Locator, name: string, content: string): Promise<void> {
  const dataTransfer = await place.page().evaluateHandle(
    `(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([${JSON.stringify(content)}], ${JSON.stringify(name)}));
      return transfer;
    })()`,
  );
  await place.dispatchEvent('drop', { dataTransfer });
}

/** What the page takes a column for. */
async function useOf(page: Page, column: string): Promise<string> {
  const choice = page.getByRole('combobox', { name: `Column ${column}`, exact: true });
  return choice.locator('option:checked').innerText();
}

const tally = (page: Page) => page.getByRole('dialog').getByRole('listitem').getByRole('button');

/** Waits until the figures are these. */
async function figures(page: Page, expected: string): Promise<void> {
  const seen = async () => (await tally(page).allInnerTexts()).join('; ').replaceAll(/\s+/g, ' ');
  await waitUntil(async () => (await seen()) === expected, undefined, seen);
}

/** Has the table show the rows that a figure counts. */
async function filter(page: Page, hasText: string): Promise<void> {
  await tally(page).filter({ hasText }).first().click();
}

async function newest(client: Client) {
  const [first] = (await client.request('GET', '/import')).data;
  return first ?? {};
}

/** Imports, and goes back to the page. */
async function importAll(page: Page, count: number): Promise<void> {
  await page.getByRole('button', { name: `Import ${count} books` }).click();
  await page.getByRole('heading', { name: `${count} books were added.` }).waitFor();
  await page.getByRole('button', { name: 'Done' }).click();
}

/** The texts of the cells of a table, row by row, without its head. */
async function rowsOf(region: Locator): Promise<string[][]> {
  const rows = await region.getByRole('row').all();
  return Promise.all(rows.slice(1).map((row) => row.getByRole('cell').allInnerTexts()));
}

/** The books of a store without their ids, in the order in which they were stored. */
async function storedIn(dbUrl: string) {
  return (await booksOf(dbUrl)).map(({ title, author, year }) => ({ title, author, year }));
}

async function tabTo(page: Page, goal: Locator): Promise<void> {
  for (let count = 0; count < 60; count += 1) {
    if ((await goal.and(page.locator(':focus')).count()) === 1) return;
    await page.keyboard.press('Tab');
  }
  assert.fail('not reached within 60 tabs');
}
