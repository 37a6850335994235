// The librarians' page in a real browser: files of books are imported, and books are saved as files. How a file is
// understood, and what becomes of its books when answers are lost, is in test/page.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { COLOURS, violations } from '../support/accessibility.ts';
import { booksOf, countOf } from '../support/books.ts';
import { runCommand } from '../support/command.ts';
import { answer } from '../support/front.ts';
import { asksToStay, counted, describePage, focused, said, searchField, WAYS } from '../support/page.ts';
import { temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

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

/** So long that a request has one of them. */
const LONG_BOOKS = `title\n${['a', 'b', 'c', 'd'].map((title) => `${title}${'x'.repeat(150_000)}\n`).join('')}`;

describePage('import and export on the page', ({ openCatalogue }) => {
  test('a person imports an export of Goodreads, and corrects a row of it', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [] });
    const author = page.getByRole('combobox', { name: 'Author' });
    const refused = page.getByRole('region', { name: 'Rows that are refused' });
    await openImport(page);
    await choose(page, 'goodreads.csv', GOODREADS);
    await reads(page, '7 rows, separated by commas, UTF-8');
    await reads(page, '1937 · 750 BC · in the nineties');
    assert.equal(await chosen(page, 'Year'), YEAR);
    await figures(page, '3 can be imported; 3 refused; 1 here already; 1 without a year');
    assert.equal(await countOf(service.dbUrl), 0, 'nothing is stored before the check was seen');
    assert.deepEqual(await rowsOf(refused), [
      ['4', YEAR, '', 'is not an unambiguous year'],
      ['5', YEAR, '', 'is not an unambiguous year'],
      ['7', 'the whole row', '', 'has 13 fields, the header has 12'],
    ]);
    const [, iliad] = await rowsOf(page.getByRole('region', { name: 'How the first rows will look' }));
    assert.deepEqual(iliad, [ILIAD.title, ILIAD.author, '750 BC']);
    await page.getByRole('textbox', { name: `${YEAR}, line 5` }).fill('2001?!');
    await page.getByRole('textbox', { name: `${YEAR}, line 4` }).fill('1992');
    await author.focus();
    await author.selectOption('not in the file');
    await refused.getByText('will be The Secret History, 1992').waitFor(); // it is not lost
    await asksToStay(page);
    await author.selectOption('Author');
    await refused.getByText('will be The Secret History, Donna Tartt, 1992').waitFor();
    await alerted(page, 'is not an unambiguous year');
    await page.getByRole('button', { name: 'Import 4 books' }).click();
    await page.getByRole('heading', { name: '4 books were added.' }).waitFor();
    assert.deepEqual(await storedIn(service.dbUrl), [HOBBIT, ILIAD, HOSTILE, HISTORY]);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save the refused rows' }).click();
    assert.equal((await download).suggestedFilename(), 'goodreads.rejects.csv');
    await page.getByRole('button', { name: 'Done' }).click();
    await counted(page, '4 books');
  });

  test('a person imports by keyboard alone, and undoes it', async (context) => {
    const { service, page, complaints } = await openCatalogue(context, { books: [] });
    const chooser = page.waitForEvent('filechooser'); // so early, since the browser must learn of it
    await tabTo(page, page.getByRole('button', { name: 'Import', exact: true }));
    await page.keyboard.press('Enter');
    await focused(page.getByLabel('Choose a file'));
    await page.keyboard.press('Enter');
    await (await chooser).setFiles(fileOf('my books.csv', GOODREADS));
    await focused(page.getByRole('heading', { name: 'my books.csv' }));
    assert.equal(await page.locator('[aria-current="step"]').innerText(), 'Check');
    await tabTo(page, page.getByRole('textbox', { name: `${YEAR}, line 4` }));
    await page.keyboard.press('Control+A');
    await page.keyboard.type('1992');
    await page.keyboard.press('Enter');
    const next = page.getByRole('textbox', { name: `${YEAR}, line 5` });
    await focused(next);
    await page.keyboard.type('x');
    await page.keyboard.press('Escape'); // the value is as it was, and the dialog stays
    assert.equal(await next.inputValue(), '1997-1998');
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
    assert.deepEqual(complaints(), []);
  });

  test('a person says what the first row is, and which column is the title', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [] });
    const column = (field: string) => page.getByRole('combobox', { name: field, exact: true });
    await openImport(page);
    await choose(page, 'a.csv', 'Emma;Jane Austen\nPersuasion;Jane Austen\n');
    await alerted(page, 'Is the first row a book');
    await alerted(page, 'Which column is the title? The file has: Emma, Jane');
    assert.equal(await chosen(page, 'First row'), 'choose');
    await column('Title').selectOption('Emma');
    await figures(page, '1 can be imported; 0 refused; 0 here already; 1 without a year');
    assert.ok(await page.getByRole('button', { name: 'Import', exact: true }).last().isDisabled());
    await column('First row').selectOption('the names of the columns');
    await page.getByRole('button', { name: 'Import 1 book' }).waitFor();
    await column('First row').selectOption('a book');
    await column('Title').selectOption('column 1: Emma');
    await column('Author').selectOption('column 2: Jane Austen');
    await importAll(page, 2);
    const books = ['Emma', 'Persuasion'].map((title) => ({ title, author: 'Jane Austen', year: 0 }));
    assert.deepEqual(await storedIn(service.dbUrl), books);
  });

  test('a person leaves out what stands above the header, and says what separates the columns', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [] });
    const choice = (name: string) => page.getByRole('combobox', { name, exact: true });
    await openImport(page);
    await choose(page, 'a.csv', 'Table 1\nBook;a,b,c;Writer\nEmma;x,y;Jane Austen\nIt;;\n');
    await alerted(page, 'Is the first row a book');
    await choice('First row').selectOption('neither: leave it out');
    await alerted(page, 'The file has: Book;a, b, c;Writer');
    await choice('Separated by').selectOption('semicolons');
    await alerted(page, 'The file has: Book, a,b,c, Writer');
    await atOnce(page, { 'First row': 'the names of the columns', Title: 'Book' });
    await choice('Author').selectOption('Writer');
    await importAll(page, 2);
    const books = [
      { title: 'Emma', author: 'Jane Austen', year: 0 },
      { title: 'It', author: '', year: 0 },
    ];
    assert.deepEqual(await storedIn(service.dbUrl), books);

    await openImport(page);
    await choose(page, 'a.csv', 'Note,x\nTitle,Shelf\nUbik,A1\n');
    await choice('First row').selectOption('neither: leave it out');
    await focused(page.getByRole('heading', { name: 'a.csv' }));
    await page.getByRole('button', { name: 'Import 1 book' }).waitFor();
  });

  test('books that are here, twice in the file, or doubtful are left out, unless a person wants them', async (context) => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { service, page } = await openCatalogue(context, {
      books: [HOBBIT, GODS],
      front: ({ method, url }, _, forward) => {
        if (`${method} ${url}` === 'GET /books')
          void released.then(() => forward()); // all of them, to compare
        else forward();
      },
    });
    const rows = [HOBBIT, ILIAD, ILIAD, GODS].map((book) => Object.values(book).join());
    const csv = ['title,author,year', ...rows, ' ,Nobody,1900'].join('\n');
    await openImport(page);
    await choose(page, 'a.csv', csv.replace('2001', 'x'));
    await figures(page, '… can be imported; 1 refused; … here already; … without a year');
    release();
    await figures(page, '1 can be imported; 1 refused; 2 here already; 0 without a year');
    const doubtful = page.getByRole('region', { name: 'Books that are doubtful' });
    assert.deepEqual(await rowsOf(doubtful), [['', 'Nobody', '1900', 'has no title']]);
    await page.getByRole('textbox', { name: 'year, line 5' }).fill('2001'); // it is here as well
    await page.getByRole('button', { name: /^Import \d books?$/ }).click();
    await page.getByRole('heading', { name: '1 book was added.' }).waitFor();
    const left = '2 were here already. 1 row was in the file more than once. 1 doubtful book was left out.';
    await reads(page, left);
    await openImport(page);
    await choose(page, 'a.csv', csv);
    await reads(page, 'There is nothing to import but doubtful books.');
    const too = page.getByRole('checkbox', { name: 'Also import 1 doubtful book' });
    await too.focus();
    await page.keyboard.press('Space');
    await focused(too);
    await figures(page, '1 can be imported; 0 refused; 4 here already; 0 without a year');
    await page.getByRole('checkbox', { name: /^Leave out books that are here already/ }).uncheck();
    await importAll(page, 5);
    const others = [HOBBIT, ILIAD, ILIAD, GODS, { title: '', author: 'Nobody', year: 1900 }];
    assert.deepEqual(await storedIn(service.dbUrl), [HOBBIT, GODS, ILIAD, ...others]);
  });

  test('the page says how it understands a file, or why it cannot', async (context) => {
    const { page } = await openCatalogue(context, { books: [] });
    const refused = Array.from({ length: 5000 }, (_, index) => `Book ${index},year ${index}\n`).join('');
    await openImport(page);
    for (const [name, content, ...texts] of [
      ['empty.csv', '', /The file is empty/],
      ['header.csv', 'title,author\n', /The file has no rows/],
      ['cut.json', '[{"title":"a"},{"title', /The array is malformed/],
      [
        'cut.csv',
        `title\na\n"${'b'.repeat(17 * 1024 * 1024)}`,
        /more than 16 MiB.* Only the rows before that can be/,
      ],
      ['books.jsonl', '{"title":"Emma"}\n', '1 row, JSON, one book a line, UTF-8'],
      [
        'latin.csv',
        Buffer.from('id;title;author;year\n7;é;;1815\n', 'latin1'),
        /semicolons, Windows-1252/,
        /letters such as é/,
        /has ids\. They/,
      ],
      ['many.csv', `title,year\n${refused}`, 'These are the first 100 of 5,000.', /every row is refused/],
    ] as const) {
      await choose(page, name, content);
      for (const text of texts) await page.getByRole('dialog').getByText(text).waitFor();
      const another = page.getByRole('button', { name: 'Another file' });
      if (await another.isVisible()) await another.click();
    }
  });

  test('an answer is lost, a proxy refuses a book, one is too long: each of the others is stored once', async (context) => {
    let requests = 0;
    const { service, page } = await openCatalogue(context, {
      books: [],
      front: ({ method, url }, outgoing, forward) => {
        if (method !== 'POST' || url !== '/books') return forward();
        requests += 1;
        if (requests === 1) forward(() => outgoing.destroy());
        else if (requests === 3) answer(outgoing, 403, null, 'Forbidden');
        else if (requests === 5) answer(outgoing, 413, null, 'Payload too large');
        else forward();
      },
    });
    await openImport(page);
    await choose(page, 'a.csv', LONG_BOOKS);
    await page.getByRole('button', { name: 'Import 4 books' }).click();
    await alerted(page, 'The catalogue refuses this: ');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: '3 books were added.' }).waitFor();
    await reads(page, /^1 book is too long for the catalogue: cxxx/);
    assert.equal((await storedIn(service.dbUrl)).map(({ title }) => title[0]).join(), 'a,b,d');
  });

  test('a person stops an import while no answer comes: what may be stored is named, and removed with the rest', async (context) => {
    let isHeld = true;
    let requests = 0;
    const { service, page, complaints } = await openCatalogue(context, {
      books: [],
      front: ({ method, url }, _, forward) => {
        if (method !== 'POST' || url !== '/books') return forward();
        requests += 1;
        if (requests === 1 || !isHeld) forward();
      },
    });
    await openImport(page);
    await choose(page, 'a.csv', LONG_BOOKS);
    await page.getByRole('button', { name: 'Import 4 books' }).click();
    await reads(page, /^1 of 4 books added/); // and it stays so
    await asksToStay(page);
    await page.keyboard.press('Escape'); // does not close the dialog
    await page.getByRole('button', { name: 'Stop here' }).click();
    await page.getByRole('heading', { name: '1 book was added.' }).waitFor();
    isHeld = false;
    await reads(
      page,
      '2 books were not added, since the import was stopped. Of 1 book it is not known whether',
    );
    await page.getByRole('button', { name: 'Done' }).click();
    await openImport(page);
    await reads(page, 'The latest import: 2 books of a.csv.');
    await page.getByRole('button', { name: 'Undo this import' }).click();
    await page.getByRole('heading', { name: '2 books were removed.' }).waitFor();
    assert.equal(await countOf(service.dbUrl), 0);
    assert.deepEqual(complaints(), []);
  });

  test('to undo an import removes its books, but for those that somebody has changed', async (context) => {
    const { service, client, page } = await openCatalogue(context, { books: [HOBBIT] });
    await openImport(page);
    await choose(page, 'a.csv', 'title\nEmma\nPersuasion\nVillette\n');
    await importAll(page, 3);
    assert.equal((await client.request('PUT', '/book/3', { body: { year: 1817 } })).status, 200);
    await WAYS.keyboard.delete(page, 'Emma');
    await openImport(page); // which carries the deletion out
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.keyboard.press('Control+z');
    await said(page, '“Emma” is back, as a new entry.');
    await openImport(page);
    await page.getByRole('button', { name: 'Undo this import' }).click();
    await page.getByRole('heading', { name: '2 books were removed.' }).waitFor();
    await reads(page, '1 book stays: changed since the import.');
    assert.deepEqual(await storedIn(service.dbUrl), [
      HOBBIT,
      { title: 'Persuasion', author: '', year: 1817 },
    ]);
  });

  test('a file is dropped on the page, and on the dialog, which is closed and opened again at once', async (context) => {
    const { page } = await openCatalogue(context, { books: [] });
    const button = await page.getByRole('button', { name: 'Import', exact: true }).elementHandle();
    await drop(page.getByRole('main'), 'dropped.csv', 'title\nEmma\n');
    await page.getByRole('button', { name: 'Import 1 book' }).waitFor();
    await page.getByRole('dialog').evaluate((dialog, opener) => {
      dialog.close();
      opener.click();
      return new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
    }, button);
    await drop(page.getByRole('dialog'), 'another.csv', 'title\nEmma\nPersuasion\n');
    await page.getByRole('heading', { name: 'another.csv' }).waitFor();
    await page.getByRole('button', { name: 'Import 2 books' }).waitFor();
  });

  test('a file that was saved again or deleted after it was chosen is to be chosen again', async (context) => {
    const { page } = await openCatalogue(context, { books: [] });
    const path = join(temporaryFolder(), 'books.csv');
    for (const [change, complaint] of [
      [
        () => writeFileSync(path, 'name,title\nEmma,x\nIt,y\n'),
        'The file was saved again after it was chosen',
      ],
      [() => rmSync(path), 'The file was moved, renamed or deleted after it was chosen. Choose it again.'],
    ] as const) {
      writeFileSync(path, 'name,title\nEmma,x\n');
      await openImport(page);
      await page.getByLabel('Choose a file').setInputFiles(path);
      await page.getByRole('button', { name: 'Import 1 book' }).waitFor();
      change();
      await page.getByRole('combobox', { name: 'Title' }).selectOption('name');
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
      }
    };
    await openImport(page);
    await choose(page, 'empty.csv', '');
    await alerted(page, 'is empty');
    await check('File, with a complaint');
    await choose(page, 'doubtful.csv', 'Emma,Jane Austen\n ,Jane Austen\n');
    await page.getByRole('combobox', { name: 'Title' }).selectOption('Emma');
    await page.getByRole('checkbox', { name: 'Also import 1 doubtful book' }).waitFor();
    await check('Check, with a question and doubts');
    await page.getByRole('button', { name: 'Another file' }).click();
    await choose(page, 'goodreads.csv', GOODREADS);
    await page.getByRole('textbox', { name: `${YEAR}, line 4` }).fill('1992');
    await page.getByRole('textbox', { name: `${YEAR}, line 5` }).fill('later');
    await page.getByRole('textbox', { name: 'Row, line 7' }).focus();
    await alerted(page, 'is not an unambiguous year');
    await check('Check, with corrections');
    await page.getByRole('button', { name: 'Import 4 books' }).click();
    await page.getByRole('heading', { name: '4 books were added.' }).waitFor();
    await check('the end');
  });

  test('a person saves the books found, in the order that is shown, by keyboard alone; or stops saving', async (context) => {
    let isHeld = true;
    const { service, page } = await openCatalogue(context, {
      books: [HOBBIT, HISTORY, { ...HOBBIT, title: 'The Hobbit, annotated', year: 2002 }, ILIAD],
      query: '?q=hobbit&sort=-year',
      front: ({ url = '' }, _, forward) => {
        if (!isHeld || !url.includes('limit=1000')) forward();
      },
    });
    await searchField(page).focus();
    const save = async () => {
      await tabTo(page, page.getByRole('button', { name: 'Export' }));
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Save 2 books found' }).waitFor();
      await focused(page.getByRole('button', { name: 'Save as CSV' }));
      await page.keyboard.press('Enter');
    };
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000); // no call lasts too long
    await save();
    await page.getByRole('progressbar', { name: 'Collecting the books' }).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Stop here' }));
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.clock.resume();
    isHeld = false;
    const download = page.waitForEvent('download');
    await save();
    const text = readFileSync(await (await download).path(), 'utf8');
    const [head, hobbit, , annotated] = (
      await runCommand(['export'], { DB_URL: service.dbUrl })
    ).stdout.split('\n');
    assert.equal(text, `${[head, annotated, hobbit].join('\n')}\n`);
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    const forExcel = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export' }).click();
    await page.getByRole('button', { name: 'Save for Excel' }).click();
    assert.match((await forExcel).suggestedFilename(), /^books-found-[\d-]+-excel\.csv$/);
    const mark = readFileSync(await (await forExcel).path()).subarray(0, 2);
    assert.deepEqual([...mark], [0xff, 0xfe]);
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

/** Chooses texts by the labels of their boxes, so fast that the file has not been read again in between. */
async function atOnce(page: Page, choices: Record<string, string>) {
  await page.evaluate(
    `for (const [label, text] of Object.entries(${JSON.stringify(choices)})) {
      const select = [...document.querySelectorAll('dialog[open] label')].find((one) => one.textContent === label).control;
      select.value = [...select.options].find((option) => option.text === text).value;
      select.dispatchEvent(new Event('change'));
    }`,
  );
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

/** The choice that is made of a column, or of what the first row is. */
async function chosen(page: Page, field: string): Promise<string> {
  return page.getByRole('combobox', { name: field }).locator('option:checked').innerText();
}

/** Waits until the four figures are these. */
async function figures(page: Page, expected: string): Promise<void> {
  const items = page.getByRole('dialog').getByRole('listitem');
  const seen = async () => (await items.allInnerTexts()).slice(3).join('; ').replaceAll(/\s+/g, ' ');
  await waitUntil(async () => (await seen()) === expected, undefined, seen);
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
