// The librarians' page in a real browser: files of books are imported, and books are saved as files.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { violations } from '../support/accessibility.ts';
import { booksOf, countOf, manyBooks } from '../support/books.ts';
import { runCommand } from '../support/command.ts';
import { answer } from '../support/front.ts';
import { asksToStay, counted, describePage, focused, logIn, said, WAYS } from '../support/page.ts';
import { unusedPort } from '../support/ports.ts';
import {
  ENVIRONMENT,
  SQLITE,
  startCommand,
  startServiceProcess,
  temporaryFolder,
} from '../support/service.ts';
import { holdIndex } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard } = WAYS;

/** Of an export of Goodreads, with its own columns and ways of writing. */
const GOODREADS = `Book Id,Title,Author,Author l-f,Additional Authors,ISBN,ISBN13,My Rating,Average Rating,Publisher,Binding,Number of Pages,Year Published,Original Publication Year,Date Read,Date Added,Bookshelves,Bookshelves with positions,Exclusive Shelf,My Review,Spoiler,Private Notes,Read Count,Owned Copies
5907,The Hobbit,J.R.R. Tolkien,"Tolkien, J.R.R.",,"=""0618260307""","=""9780618260300""",5,4.29,Houghton Mifflin,Hardcover,366,2002,1937,2019/05/01,2019/04/02,"fantasy, favorites","fantasy (#1), favorites (#2)",read,"Read it aloud.<br/>Twice, ""precious"".",,,2,0
320,Cien años de soledad,Gabriel García Márquez,"García Márquez, Gabriel",,"=""""","=""""",0,4.11,,Paperback,417,2003,1967,,2020/10/25,to-read,to-read (#3),to-read,,,,0,0
1371,The Iliad,Homer,"Homer, ",Robert Fagles,"=""""","=""""",4,3.91,,Paperback,683,1998,-750,,2021/01/01,,,read,,,,1,0
29044,The Secret History,Donna Tartt,"Tartt, Donna",,"=""""","=""""",0,4.17,,Paperback,559,2004,in the nineties,,2021/02/03,,,to-read,,,,0,0
30165203,American Gods,Neil Gaiman,"Gaiman, Neil",,"=""""","=""""",0,4.11,,Hardcover,635,2011,1997-1998,,2021/02/04,,,to-read,,,,0,0
1,<img src=x onerror=alert(1)>,שלום <b>עולם</b> 😀,x,,"=""""","=""""",0,0,,Paperback,1,,,,2021/02/05,,,to-read,,,,0,0
2,One more, without quotes,Nobody,x,,"=""""","=""""",0,0,,Paperback,1,2000,,,2021/02/06,,,to-read,,,,0,0
5908,The Hobbit,J.R.R. Tolkien,"Tolkien, J.R.R.",,"=""""","=""""",0,4.29,,Paperback,366,2012,1937,,2021/02/07,,,to-read,,,,0,0
`;

const HOBBIT = { title: 'The Hobbit', author: 'J.R.R. Tolkien', year: 1937 };
const SOLEDAD = { title: 'Cien años de soledad', author: 'Gabriel García Márquez', year: 1967 };
const ILIAD = { title: 'The Iliad', author: 'Homer', year: -750 };
const HISTORY = { title: 'The Secret History', author: 'Donna Tartt', year: 1992 };
const GODS = { title: 'American Gods', author: 'Neil Gaiman', year: 2001 };
const HOSTILE = { title: '<img src=x onerror=alert(1)>', author: 'שלום <b>עולם</b> 😀', year: 0 };

type Content = string | Buffer;

describePage('import and export on the page', ({ openCatalogue, openProcess }) => {
  test('a person imports an export of Goodreads, and corrects rows of it', async (context) => {
    const { service, page, complaints } = await openCatalogue(context, { books: [] });
    await openImport(page);
    await choose(page, 'goodreads_library_export.csv', GOODREADS);
    await page.getByText('8 rows, separated by commas, UTF-8').waitFor();
    for (const [field, column] of [
      ['Title', 'Title'],
      ['Author', 'Author'],
      ['Year', 'Original Publication Year'],
    ] as const) {
      assert.equal(await chosen(page, field), column);
    }
    await figures(page, ['4 can be imported', '3 refused', '1 here already', '1 without a year']);
    assert.equal(await countOf(service.dbUrl), 0, 'nothing is stored before the check was seen');

    const refused = page.getByRole('region', { name: 'Rows that are refused' });
    assert.deepEqual(await rowsOf(refused), [
      ['5', 'Original Publication Year', '', 'is not an unambiguous year'],
      ['6', 'Original Publication Year', '', 'is not an unambiguous year'],
      ['8', 'the whole row', '', 'has 25 fields, the header has 24'],
    ]);
    const firstRows = page.getByRole('region', { name: 'How the first rows will look' });
    assert.deepEqual(await rowsOf(firstRows), [
      [HOBBIT.title, HOBBIT.author, '1937'],
      [SOLEDAD.title, SOLEDAD.author, '1967'],
      [ILIAD.title, ILIAD.author, '750 BC'],
      [HOSTILE.title, HOSTILE.author, ''],
      [HOBBIT.title, HOBBIT.author, '1937'],
    ]);

    const history = page.getByRole('textbox', { name: 'Original Publication Year, line 5' });
    assert.equal(await history.inputValue(), 'in the nineties');
    await history.fill('1992?!');
    await page.getByRole('combobox', { name: 'Author' }).focus();
    await page.getByRole('alert').filter({ hasText: 'is not an unambiguous year' }).waitFor();
    await history.fill('1992');
    await page.getByRole('combobox', { name: 'Author' }).focus();
    await page.getByRole('combobox', { name: 'Author' }).selectOption('not in the file');
    await refused.getByText('will be The Secret History, 1992').waitFor(); // it is not lost
    await asksToStay(page);
    await page.getByRole('combobox', { name: 'Author' }).selectOption('Author');
    await refused.getByText('will be The Secret History, Donna Tartt, 1992').waitFor();
    await figures(page, ['5 can be imported', '2 refused', '1 here already', '1 without a year']);

    await page.getByRole('button', { name: 'Import 5 books' }).click();
    await page.getByRole('heading', { name: '5 books were added.' }).waitFor();
    await page.getByText('2 rows were refused.').first().waitFor();
    assert.deepEqual(await storedIn(service.dbUrl), [HOBBIT, SOLEDAD, ILIAD, HOSTILE, HISTORY]);

    const file = await saved(page, page.getByRole('button', { name: 'Save the refused rows' }));
    assert.equal(file.name, 'goodreads_library_export.rejects.csv');
    const lines = GOODREADS.split('\n');
    assert.equal(
      file.text,
      `${lines[0]},refused\n${lines[5]},"Original Publication Year: is not an unambiguous year"\n${lines[7]},"has 25 fields, the header has 24"\n`,
    );
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('rowheader', { name: HOSTILE.title }).waitFor();

    // The saved rows can be corrected and imported.
    await openImport(page);
    await choose(page, file.name, file.text);
    await page.getByRole('textbox', { name: 'Original Publication Year, line 2' }).fill('2001');
    await page.getByRole('textbox', { name: 'Row, line 3' }).focus();
    await page.getByRole('button', { name: 'Import 1 book' }).click();
    await page.getByRole('heading', { name: '1 book was added.' }).waitFor();
    assert.deepEqual((await storedIn(service.dbUrl)).at(-1), GODS);
    assert.deepEqual(complaints(), []);
  });

  test('a person imports by keyboard alone', async (context) => {
    const { service, page, complaints } = await openCatalogue(context, { books: [] });
    const chooser = page.waitForEvent('filechooser'); // so early, since the browser must learn of it
    await tabTo(page, page.getByRole('button', { name: 'Import', exact: true }));
    await page.keyboard.press('Enter');
    const input = page.getByLabel('Choose a file');
    await focused(input);
    await page.keyboard.press('Enter');
    await (await chooser).setFiles({
      name: 'my books.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from(GOODREADS),
    });

    await focused(page.getByRole('heading', { name: 'my books.csv' }));
    assert.equal(await page.locator('[aria-current="step"]').innerText(), 'Check');
    await tabTo(page, page.getByRole('textbox', { name: 'Original Publication Year, line 5' }));
    await page.keyboard.press('Control+A');
    await page.keyboard.type('1992');
    await page.keyboard.press('Enter');
    await focused(page.getByRole('textbox', { name: 'Original Publication Year, line 6' }));
    await page.keyboard.type('x');
    await page.keyboard.press('Escape'); // the value is as it was, and the dialog stays
    assert.equal(
      await page.getByRole('textbox', { name: 'Original Publication Year, line 6' }).inputValue(),
      '1997-1998',
    );
    await page.keyboard.press('Escape');
    await page.getByRole('alert').filter({ hasText: 'Your corrections would be lost' }).waitFor();

    await tabTo(page, page.getByRole('button', { name: 'Import 5 books' }));
    await page.keyboard.press('Enter');
    await focused(page.getByRole('heading', { name: '5 books were added.' }));
    await tabTo(page, page.getByRole('button', { name: 'Undo this import' }));
    await page.keyboard.press('Space');
    await focused(page.getByRole('heading', { name: '5 books were removed.' }));
    assert.equal(await countOf(service.dbUrl), 0);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });

    await tabTo(page, page.getByRole('button', { name: 'Import', exact: true }));
    await page.keyboard.press('Enter'); // it begins from the beginning
    await focused(page.getByLabel('Choose a file'));
    assert.deepEqual(complaints(), []);
  });

  test('the dialog closes, and is opened again before the browser has said so', async (context) => {
    const { page, complaints } = await openCatalogue(context, { books: [] });
    const button = await page.getByRole('button', { name: 'Import', exact: true }).elementHandle();
    await openImport(page);
    await page.getByRole('dialog', { name: 'Import books' }).evaluate((dialog, opener) => {
      dialog.close();
      opener.click();
      return new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
    }, button);
    await choose(page, 'goodreads.csv', GOODREADS);
    await page.getByRole('heading', { name: 'goodreads.csv' }).waitFor();
    await page.getByRole('textbox', { name: 'Original Publication Year, line 6' }).press('Enter'); // corrects nothing
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Import books' }).waitFor({ state: 'hidden' });
    assert.deepEqual(complaints(), []);
  });

  test('the books of the latest import can be removed, but for those that somebody has changed', async (context) => {
    const env = { REQUIRE_IF_MATCH: 'on' };
    const { service, client, page, complaints } = await openCatalogue(context, { books: [HOBBIT], env });
    const out = page.getByRole('button', { name: 'Undo this import' });
    await openImport(page);
    assert.equal(await out.count(), 0);
    await choose(page, 'a.csv', 'title\nEmma\nPersuasion\nVillette\n');
    await importAll(page, 3);
    const [, , persuasion] = await client.list();
    const change = { headers: { 'if-match': '*' }, body: { year: 1817 } };
    assert.equal((await client.request('PUT', `/book/${persuasion?.id}`, change)).status, 200);
    await keyboard.delete(page, 'Emma');
    await openImport(page); // which carries the deletion out
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.keyboard.press('Control+z');
    await said(page, '“Emma” is back, as a new entry.');
    await openImport(page);
    await page.getByText('The latest import: 3 books of a.csv.').waitFor();
    await out.click();
    await page.getByRole('heading', { name: '2 books were removed.' }).waitFor();
    await page
      .getByRole('paragraph')
      .filter({ hasText: '1 book stays: changed since the import.' })
      .waitFor();
    assert.deepEqual(await storedIn(service.dbUrl), [
      HOBBIT,
      { title: 'Persuasion', author: '', year: 1817 },
    ]);
    await page.getByRole('button', { name: 'Done' }).click();
    await counted(page, '2 books');
    await openImport(page);
    assert.equal(await out.count(), 0);
    assert.deepEqual(complaints(), []);
  });

  test('columns are chosen by hand', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [] });
    await openImport(page);
    const csv = 'a;Werk;Verfasser;Jahr\n1;Emma;Jane Austen;1815\n2;Persuasion;Jane Austen;vor 1818\n';
    await choose(page, 'a.csv', csv);
    await page.getByRole('alert').filter({ hasText: 'Which column is the title?' }).waitFor();
    assert.ok(await page.getByRole('button', { name: 'Import', exact: true }).last().isDisabled());
    await page.getByRole('combobox', { name: 'First row' }).selectOption('the names of the columns');
    await page.getByRole('combobox', { name: 'Title' }).selectOption('Werk');
    await page.getByText('2 rows, separated by semicolons, UTF-8').waitFor();
    await page.getByRole('combobox', { name: 'Author' }).selectOption('Verfasser');
    await page.getByText('Jane Austen', { exact: true }).first().waitFor();
    await page.getByRole('combobox', { name: 'Year' }).selectOption('Jahr');
    await page.getByText('1815 · vor 1818').waitFor();
    await figures(page, ['1 can be imported', '1 refused', '0 here already', '0 without a year']);
    await page.getByRole('combobox', { name: 'Year' }).selectOption('not in the file');
    await figures(page, ['2 can be imported', '0 refused', '0 here already', '2 without a year']);
    await importAll(page, 2);
    assert.deepEqual(await storedIn(service.dbUrl), [
      { title: 'Emma', author: 'Jane Austen', year: 0 },
      { title: 'Persuasion', author: 'Jane Austen', year: 0 },
    ]);
  });

  test('a file without names of columns: its first row is a book, and is imported', async (context) => {
    const { service, page, complaints } = await openCatalogue(context, { books: [] });
    const column = (field: string) => page.getByRole('combobox', { name: field, exact: true });
    await openImport(page);
    await choose(page, 'a.csv', 'Emma,Jane Austen,1815\nPersuasion,Jane Austen,later\n');
    await page.getByRole('alert').filter({ hasText: 'Which column is the title?' }).waitFor();
    assert.equal(await chosen(page, 'First row'), 'a book'); // no column is called 1815
    await column('Title').selectOption('column 1: Emma');
    await column('Author').selectOption('column 2: Jane Austen');
    await column('Year').selectOption('column 3: 1815');
    await page.getByText('2 rows, separated by commas, UTF-8').waitFor();
    await page.getByRole('textbox', { name: 'column 3, line 2' }).fill('1817');
    await page.getByRole('textbox', { name: 'column 3, line 2' }).press('Enter');
    await figures(page, ['2 can be imported', '0 refused', '0 here already', '0 without a year']);
    await importAll(page, 2);
    const emma = { title: 'Emma', author: 'Jane Austen', year: 1815 };
    const persuasion = { title: 'Persuasion', author: 'Jane Austen', year: 1817 };
    assert.deepEqual(await storedIn(service.dbUrl), [emma, persuasion]);

    // Without a year, only a person can tell.
    await openImport(page);
    await choose(page, 'b.csv', 'Emma;Jane Austen\nPersuasion;Jane Austen\n');
    await page.getByRole('alert').filter({ hasText: 'Is the first row a book' }).waitFor();
    assert.equal(await chosen(page, 'First row'), 'choose');
    await column('Title').selectOption('Emma');
    await figures(page, ['1 can be imported', '0 refused', '0 here already', '1 without a year']);
    assert.ok(await page.getByRole('button', { name: 'Import', exact: true }).last().isDisabled());
    await column('First row').selectOption('a book');
    await column('Title').selectOption('column 1: Emma');
    await figures(page, ['2 can be imported', '0 refused', '0 here already', '2 without a year']);
    await column('First row').selectOption('the names of the columns');
    await column('Title').selectOption('Emma');
    await column('Author').selectOption('Jane Austen');
    await figures(page, ['1 can be imported', '0 refused', '0 here already', '1 without a year']);
    await importAll(page, 1);
    assert.deepEqual((await storedIn(service.dbUrl)).at(-1), { ...persuasion, year: 0 });

    await openImport(page);
    await choose(page, 'c.json', '[{"1815":"Emma"}]');
    await page.getByRole('alert').filter({ hasText: 'Which column is the title?' }).waitFor();
    assert.equal(await column('First row').isVisible(), false); // keys are no book
    assert.deepEqual(complaints(), []);
  });

  test('doubtful books are shown, and left out unless a person wants them', async (context) => {
    const { service, page, complaints } = await openCatalogue(context, { books: [HOBBIT] });
    const next = new Date().getFullYear() + 1;
    const csv = `title,author,year
 ,Nobody,1900
"\u00a0",,
Short,A,84
Late,B,3024
Number,C,9780141439587
Early,D,-4000
Announced,E,${next}
  Trimmed ,\tF ,100
 The Hobbit ,J.R.R. Tolkien ,1937
`;
    await openImport(page);
    await choose(page, 'a.csv', csv);
    await figures(page, ['2 can be imported', '0 refused', '1 here already', '1 without a year']);
    const doubtful = page.getByRole('region', { name: 'Books that are doubtful' });
    assert.deepEqual(await rowsOf(doubtful), [
      ['', 'Nobody', '1900', 'has no title'],
      ['', '', '', 'has no title'],
      ['Short', 'A', '84', 'the year may be short for another one'],
      ['Late', 'B', '3024', 'this year is yet to come'],
      ['Number', 'C', '9780141439587', 'this year is yet to come'],
      ['Early', 'D', '4000 BC', 'in this year, there were no books'],
    ]);
    await page.getByRole('button', { name: 'Import 2 books' }).click();
    await page.getByRole('heading', { name: '2 books were added.' }).waitFor();
    await page.getByText('6 doubtful books were left out.').first().waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
    const added = [
      { title: 'Announced', author: 'E', year: next },
      { title: 'Trimmed', author: 'F', year: 100 },
    ];
    assert.deepEqual(await storedIn(service.dbUrl), [HOBBIT, ...added]);

    await openImport(page);
    await choose(page, 'a.csv', csv);
    await figures(page, ['0 can be imported', '0 refused', '3 here already', '1 without a year']);
    await page
      .getByText('There is nothing to import but doubtful books. Is each column the right one?')
      .waitFor();
    const too = page.getByRole('checkbox', { name: 'Also import 6 doubtful books' });
    await too.focus();
    await page.keyboard.press('Space');
    await focused(too);
    await figures(page, ['6 can be imported', '0 refused', '3 here already', '1 without a year']);
    await page.getByRole('combobox', { name: 'Year' }).selectOption('not in the file');
    await page.getByRole('checkbox', { name: 'Also import 2 doubtful books', checked: false }).waitFor();
    await page.getByRole('combobox', { name: 'Year' }).selectOption('year');
    await too.check();
    await importAll(page, 6);
    const stored = (await storedIn(service.dbUrl)).slice(3);
    assert.deepEqual(
      stored.map(({ title, year }) => [title, year]),
      [
        ['', 1900],
        ['', 0],
        ['Short', 84],
        ['Late', 3024],
        ['Number', 9780141439587],
        ['Early', -4000],
      ],
    );
    assert.deepEqual(complaints(), []);
  });

  const FILES: readonly (readonly [name: string, content: Content, understood: string, notice?: RegExp])[] = [
    [
      'semicolons.csv',
      `title;author;year\n"${SOLEDAD.title}";${SOLEDAD.author};1967\n`,
      '1 row, separated by semicolons, UTF-8',
    ],
    [
      'windows.csv',
      Buffer.from(`title;author;year\n${SOLEDAD.title};${SOLEDAD.author};1967\n`, 'latin1'),
      '1 row, separated by semicolons, Windows-1252',
      /Look whether letters such as é are right/,
    ],
    [
      'excel.txt',
      Buffer.from(`\ufefftitle\tauthor\tyear\r\n${SOLEDAD.title}\t${SOLEDAD.author}\t1967\r\n`, 'utf16le'),
      '1 row, separated by tabs, UTF-16',
    ],
    ['books.json', JSON.stringify([SOLEDAD]), '1 row, JSON, UTF-8'],
    ['books.jsonl', `${JSON.stringify(SOLEDAD)}\n`, '1 row, JSON, one book a line, UTF-8'],
    [
      'export.csv',
      `id,title,author,year\n77,"${SOLEDAD.title}","${SOLEDAD.author}",1967\n`,
      '1 row, separated by commas, UTF-8',
      /The file has ids. They are not kept/,
    ],
  ];
  test('files of other forms are understood, and the page says how', async (context) => {
    const { service, page, complaints } = await openCatalogue(context, { books: [] });
    let count = 0;
    for (const [name, content, understood, notice] of FILES) {
      await openImport(page);
      await choose(page, name, content);
      await page.getByText(understood, { exact: true }).waitFor();
      if (notice !== undefined) await page.getByText(notice).waitFor();
      await page.getByRole('checkbox', { name: /^Leave out books that are here already/ }).uncheck();
      await importAll(page, 1);
      count += 1;
    }
    const stored = await booksOf(service.dbUrl);
    assert.deepEqual(
      stored,
      stored.map((_, index) => ({ id: index + 1, ...SOLEDAD })),
    );
    assert.equal(stored.length, count);
    assert.deepEqual(complaints(), []);
  });

  test('a file that cannot be imported is refused in words', async (context) => {
    const { page } = await openCatalogue(context, { books: [] });
    await openImport(page);
    for (const [name, content, complaint] of [
      ['photo.csv', Buffer.from([0xff, 0xd8, 0xff, 0, 0, 1, 2, 3]), /This file is not text/],
      ['books.csv', Buffer.from('title\n', 'utf16le'), /This file is not text/],
      ['empty.csv', '', /The file is empty/],
      ['books.json', 'title\n', /books.json is not JSON/],
      [
        'damaged.csv',
        Buffer.concat([Buffer.from('\ufefftitle\na\n'), Buffer.from([0xe9, 10])]),
        /Line 3 is damaged/,
      ],
      ['header.csv', 'title,author\n', /The file has no rows/],
      [
        'cut.json',
        '[{"title":"a"},{"title',
        /The array is incomplete.* Only the rows before that can be imported/,
      ],
    ] as const) {
      await choose(page, name, content);
      await page.getByRole('alert').filter({ hasText: complaint }).waitFor();
      const another = page.getByRole('button', { name: 'Another file' });
      if (await another.isVisible()) await another.click();
    }
  });

  test('books that are here already, or twice in the file, are left out, unless a person wants them', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [HOBBIT, { ...GODS, year: 0 }] });
    const csv = `title,author,year\n${[HOBBIT, GODS, GODS, { ...GODS, year: '' }, ILIAD].map((book) => Object.values(book).join()).join('\n')}\n`;
    await openImport(page);
    await choose(page, 'a.csv', csv);
    await figures(page, ['2 can be imported', '0 refused', '3 here already', '0 without a year']);
    await page.getByText('1 row is in this file more than once.').waitFor();
    await importAll(page, 2);
    assert.deepEqual((await storedIn(service.dbUrl)).slice(2), [GODS, ILIAD]);

    await openImport(page);
    await choose(page, 'a.csv', csv);
    await figures(page, ['0 can be imported', '0 refused', '5 here already', '0 without a year']);
    await page.getByText('There is nothing to import: every book is here already.').waitFor();
    assert.ok(await page.getByRole('button', { name: 'Import 0 books' }).isDisabled());
    await page.getByRole('checkbox', { name: /^Leave out/ }).uncheck();
    await figures(page, ['5 can be imported', '0 refused', '5 here already', '1 without a year']);
    await importAll(page, 5);
    assert.equal(await countOf(service.dbUrl), 9);
  });

  test('a corrected row is also compared with the catalogue', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [HOBBIT] });
    await openImport(page);
    await choose(
      page,
      'a.csv',
      'title,author,year\nThe Hobbit,J.R.R. Tolkien,thirties\nThe Iliad,Homer,-750\n',
    );
    await figures(page, ['1 can be imported', '1 refused', '0 here already', '0 without a year']);
    await page.getByRole('textbox', { name: 'year, line 2' }).fill('1937');
    await page.getByRole('button', { name: /^Import \d books?$/ }).click();
    await page.getByRole('heading', { name: '1 book was added.' }).waitFor();
    await page.getByText('1 was here already.').first().waitFor();
    assert.deepEqual(await storedIn(service.dbUrl), [HOBBIT, ILIAD]);
  });

  test('a large file is read and stored while the page answers: a person stops it, and takes the books out', async (context) => {
    const { service, page, complaints } = await openCatalogue(context, { books: [] });
    await openImport(page);
    const rows = Array.from(
      { length: 100_000 },
      (_, index) => `Book ${index},Author ${index % 100},${1000 + (index % 1000)}`,
    );
    await choose(page, 'large.csv', `title,author,year\n${rows.join('\n')}\nwrong,,x\n`);
    await page.getByRole('button', { name: 'Import 100,000 books' }).click();
    await page.getByText(/^[1-9][\d,]* of 100,000 books added/).waitFor();
    let warned = false;
    page.once('dialog', (question) => {
      warned = question.type() === 'beforeunload';
      void question.dismiss();
    });
    await page.close({ runBeforeUnload: true }); // a person closes the tab, and changes their mind
    await waitUntil(() => warned);
    await page.keyboard.press('Escape'); // does not close the dialog
    await page.getByRole('button', { name: 'Stop here' }).click();
    const heading = page.getByRole('heading', { name: /books were added\.$/ });
    await heading.waitFor();
    const added = numberIn(await heading.innerText());
    assert.ok(added > 0 && added < 100_000, `${added} books`);
    await page
      .getByText(`${(100_000 - added).toLocaleString('en')} books were not added`)
      .first()
      .waitFor();
    const stored = await storedIn(service.dbUrl);
    assert.deepEqual(
      stored.map(({ title }) => title),
      rows.slice(0, added).map((row) => row.split(',')[0]),
    );

    await page.getByRole('button', { name: 'Undo this import' }).click();
    await page
      .getByText(new RegExp(`^[1-9][\\d,]* of ${added.toLocaleString('en')} books removed`))
      .waitFor();
    await page.getByRole('button', { name: 'Stop here' }).click();
    const out = page.getByRole('heading', { name: /removed\.$/ });
    await out.waitFor();
    assert.equal(await countOf(service.dbUrl), added - numberIn(await out.innerText()));
    assert.deepEqual(complaints(), []);
  });

  test('the service is killed while it stores, and comes back with another password: each book is stored once', async (context) => {
    const ports = {
      PORT: String(await unusedPort()),
      PAGE_PORT: String(await unusedPort()),
      ADMIN_PORT: '0',
    };
    const { service, page } = await openProcess(context, { books: [], env: ports });
    await openImport(page);
    const rows = Array.from({ length: 60_000 }, (_, index) => `Book ${index},,${1000 + (index % 1000)}`);
    await choose(page, 'large.csv', `title,author,year\n${rows.join('\n')}\n`);
    await page.getByRole('button', { name: 'Import 60,000 books' }).click();
    await page.getByText(/^[1-9][\d,]* of 60,000 books added/).waitFor();
    service.process.kill('SIGKILL');
    await once(service.process, 'exit');
    await page
      .getByText('The catalogue does not answer. The page continues as soon as it does.')
      .first()
      .waitFor();

    // Its tokens are not valid any more, either.
    const changes = { AUTH_PASSWORD: 'another password', SECRET_TOKEN: 'another secret that is long enough' };
    const next = await startCommand({
      ...ENVIRONMENT,
      DB_URL: service.dbUrl,
      LOG_LEVEL: 'info',
      ...ports,
      ...changes,
    });
    context.after(() => next.stop());
    await page.getByRole('dialog', { name: 'Book catalogue' }).waitFor();
    await logIn(page, changes.AUTH_PASSWORD);
    await page.getByRole('heading', { name: '60,000 books were added.' }).waitFor();
    const titles = (await storedIn(service.dbUrl)).map(({ title }) => title);
    assert.deepEqual(
      titles,
      rows.map((row) => row.split(',')[0]),
    );
  });

  test('a person stops while the service is silent: the page names the books that may be stored, and removes them', async (context) => {
    const { service, page } = await openProcess(context, { books: [] });
    await openImport(page);
    const rows = Array.from({ length: 300 }, (_, index) => `Book ${index}`);
    await choose(page, 'a.csv', `title\n${rows.join('\n')}\n`);
    const start = page.getByRole('button', { name: 'Import 300 books' });
    await start.waitFor();
    service.process.kill('SIGSTOP');
    context.after(() => service.process.kill('SIGCONT'));
    await start.click();
    await page.getByRole('button', { name: 'Stop here' }).click();
    await page.getByRole('heading', { name: '0 books were added.' }).waitFor();
    await page
      .getByText('Of 300 books it is not known whether they were added: the catalogue did not answer.')
      .first()
      .waitFor();
    service.process.kill('SIGCONT');
    await page.getByRole('button', { name: 'Undo this import' }).click();
    await page.getByRole('heading', { name: '300 books were removed.' }).waitFor();
    assert.equal(await countOf(service.dbUrl), 0);
  });

  test('books that a proxy refuses are not added, and the others can be removed', async (context) => {
    let chunks = 0;
    const { service, page } = await openCatalogue(context, {
      books: [],
      front: ({ method, url }, outgoing, forward) => {
        if (method === 'POST' && url === '/books') chunks += 1;
        if (chunks === 3 && method === 'POST') answer(outgoing, 403, null, 'Forbidden');
        else forward();
      },
    });
    await openImport(page);
    const rows = Array.from({ length: 3 }, (_, index) => `${'x'.repeat(150_000)} ${index}`);
    await choose(page, 'a.csv', `title\n${rows.join('\n')}\n`);
    await page.getByRole('button', { name: 'Import 3 books' }).click();
    await page.getByText('The catalogue refuses this: ').first().waitFor();
    await page.getByRole('button', { name: 'Stop here' }).click();
    await page.getByRole('heading', { name: '2 books were added.' }).waitFor();
    await page.getByRole('button', { name: 'Undo this import' }).click();
    await page.getByRole('heading', { name: '2 books were removed.' }).waitFor();
    assert.equal(await countOf(service.dbUrl), 0);
  });

  test('the service is away while a file is checked: the page says so, and goes on', async (context) => {
    const ports = {
      PORT: String(await unusedPort()),
      PAGE_PORT: String(await unusedPort()),
      ADMIN_PORT: '0',
    };
    const { service, page } = await openProcess(context, { books: [HOBBIT], env: ports });
    await openImport(page);
    await choose(page, 'empty.csv', ''); // the program that reads files is loaded
    await page.getByRole('alert').filter({ hasText: 'is empty' }).waitFor();
    await service.stop();
    await choose(page, 'goodreads.csv', GOODREADS);
    await page.getByText('The catalogue does not answer. The page continues as soon as it does.').waitFor();
    await figures(page, ['… can be imported', '3 refused', '… here already', '… without a year']);
    const next = await startServiceProcess(service.dbUrl, ports);
    context.after(() => next.stop());
    await figures(page, ['3 can be imported', '3 refused', '2 here already', '1 without a year']);
  });

  test('after a day without the service, the page does not repeat books that may be stored', async (context) => {
    const { service, page } = await openProcess(context, { books: [] });
    await openImport(page);
    await choose(page, 'a.csv', 'title\nEmma\n');
    const start = page.getByRole('button', { name: 'Import 1 book' });
    await start.waitFor();
    await service.stop();
    await start.click();
    await page
      .getByText('The catalogue does not answer. The page continues as soon as it does.')
      .first()
      .waitFor();
    await page.evaluate(`{ const { now } = Date; Date.now = () => now() + ${24 * 60 * 60 * 1000}; }`);
    await page
      .getByRole('alert')
      .filter({ hasText: 'The catalogue was away for a day. Import the file again' })
      .waitFor();
    await page.getByRole('button', { name: 'Stop here' }).click();
    await page.getByText('Of 1 book it is not known').first().waitFor();
  });

  test('books that are too long for the catalogue are named, and the others are stored', async (context) => {
    const { service, page } = await openCatalogue(context, {
      books: [],
      env: { BODY_LIMIT: '2000', BULK_LIMIT: '20000' },
    });
    await openImport(page);
    const rows = Array.from(
      { length: 1000 },
      (_, index) => `Book ${index}${index === 500 ? 'x'.repeat(3000) : ''}`,
    );
    await choose(page, 'a.csv', `title\n${rows.join('\n')}\n`);
    await page.getByRole('button', { name: 'Import 1,000 books' }).click();
    await page.getByRole('heading', { name: '999 books were added.' }).waitFor();
    await page
      .getByText(/^1 book is too long for the catalogue: Book 500xxx/)
      .first()
      .waitFor();
    const titles = (await storedIn(service.dbUrl)).map(({ title }) => title);
    assert.deepEqual(
      titles,
      rows.filter((_, index) => index !== 500),
    );
  });

  test('a file has the same result on the page and with the command', async (context) => {
    const { service, page } = await openCatalogue(context, { books: [] });
    const folder = temporaryFolder();
    const file = join(folder, 'tricky.csv');
    writeFileSync(file, TRICKY);
    const other = await SQLITE.freshUrl();
    await runCommand(['import', file, '--rejects', join(folder, 'rejects.csv')], { DB_URL: other });
    const expected = (await storedIn(other)).map(({ title, author, year }) => {
      return { title: title.trim(), author: author.trim(), year }; // an operator's file may have blanks, a person's means none
    });

    await openImport(page);
    await choose(page, 'tricky.csv', TRICKY);
    await page.getByRole('checkbox', { name: /^Also import .* doubtful books$/ }).check();
    await importAll(page, expected.length);
    assert.deepEqual(await storedIn(service.dbUrl), expected);
    await openImport(page);
    await choose(page, 'tricky.csv', TRICKY);
    await page.getByText('There is nothing to import').waitFor();
    const refused = await saved(page, page.getByRole('button', { name: 'Save the refused rows' }));
    assert.equal(refused.text, readFileSync(join(folder, 'rejects.csv'), 'utf8'));
  });

  test('a file is dropped: on the page, and on the dialog', async (context) => {
    const { page } = await openCatalogue(context, { books: [] });
    await drop(page, page.getByRole('main'), 'dropped.csv', 'title\nEmma\n');
    await page.getByRole('heading', { name: 'dropped.csv' }).waitFor();
    await page.getByRole('button', { name: 'Import 1 book' }).waitFor();
    await drop(page, page.getByRole('dialog'), 'another.csv', 'title\nEmma\nPersuasion\n');
    await page.getByRole('heading', { name: 'another.csv' }).waitFor();
    await page.getByRole('button', { name: 'Import 2 books' }).waitFor();
  });

  test('thousands of refused rows are counted, and the first hundred shown', async (context) => {
    const { page } = await openCatalogue(context, { books: [] });
    await openImport(page);
    const rows = Array.from({ length: 5000 }, (_, index) => `Book ${index},year ${index}`);
    await choose(page, 'a.csv', `title,year\n${rows.join('\n')}\n`);
    await figures(page, ['0 can be imported', '5,000 refused', '0 here already', '0 without a year']);
    await page.getByText('These are the first 100 of 5,000.').waitFor();
    assert.equal(
      await page.getByRole('region', { name: 'Rows that are refused' }).getByRole('textbox').count(),
      100,
    );
    const { text } = await saved(page, page.getByRole('button', { name: 'Save the refused rows' }));
    assert.equal(text.split('\n').length, 5002);
  });

  for (const [name, options] of [
    ['on a desk', {}],
    ['in the dark', { colorScheme: 'dark' }],
    ['on a phone', { viewport: { width: 320, height: 640 } }],
  ] as const) {
    test(`${name}, each step is accessible, and nothing is wider than the window`, async (context) => {
      const { page } = await openCatalogue(context, {
        books: [],
        options: { reducedMotion: 'reduce', ...options },
      });
      const check = async (step: string) => {
        assert.deepEqual(await violations(page), [], step);
        for (const size of ['100%', '200%']) {
          await page.evaluate(`document.documentElement.style.fontSize = '${size}'`);
          const tooWide = await page.evaluate(
            `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('dialog[open]'))`,
          );
          assert.equal(tooWide, 0, `${step}, text of ${size}`);
        }
        await page.evaluate(`document.documentElement.style.fontSize = ''`);
      };
      await openImport(page);
      await check('File');
      await choose(page, 'empty.csv', '');
      await page.getByRole('alert').filter({ hasText: 'is empty' }).waitFor();
      await check('File, with a complaint');
      await choose(page, 'doubtful.csv', 'Emma,Jane Austen\nShort,Jane Austen\n ,Jane Austen\n');
      await page.getByRole('alert').filter({ hasText: 'Is the first row a book' }).waitFor();
      await check('Check, with a question');
      await page.getByRole('combobox', { name: 'First row' }).selectOption('a book');
      await page.getByRole('combobox', { name: 'Title' }).selectOption('column 1: Emma');
      await page.getByRole('checkbox', { name: 'Also import 1 doubtful book' }).waitFor();
      await check('Check, with doubts');
      await page.getByRole('button', { name: 'Another file' }).click();
      await choose(page, 'goodreads.csv', GOODREADS);
      await page.getByRole('button', { name: 'Import 4 books' }).waitFor();
      await check('Check');
      await page.getByRole('textbox', { name: 'Original Publication Year, line 5' }).fill('1992');
      await page.getByRole('textbox', { name: 'Original Publication Year, line 6' }).fill('later');
      await page.getByRole('textbox', { name: 'Row, line 8' }).focus();
      await page.getByRole('alert').filter({ hasText: 'is not an unambiguous year' }).waitFor();
      await check('Check, with corrections');
      await page.getByRole('button', { name: 'Import 5 books' }).click();
      await page.getByRole('heading', { name: '5 books were added.' }).waitFor();
      await check('the end');
      await page.getByRole('button', { name: 'Done' }).click();
      await counted(page, '5 books');
      await openMenu(page, 'Export');
      await page.getByRole('heading', { name: 'Save all 5 books' }).waitFor();
      await check('Export');
    });
  }

  test('a person saves every book, as the command export does, and imports them elsewhere', async (context) => {
    const books = [
      ...[HOBBIT, SOLEDAD, ILIAD, HOSTILE],
      {
        title: 'a "quoted", title;\r\n\twith control characters \u0001\u007f\u2028',
        author: '=1+1',
        year: -1,
      },
      ...manyBooks(2001),
    ];
    const { service, client, page, complaints } = await openCatalogue(context, { books });
    await client.request('DELETE', '/book/6'); // ids and places differ
    await page.reload();
    await logIn(page);
    await counted(page, '2,005 books');
    for (const format of ['csv', 'json']) {
      await openMenu(page, 'Export');
      await page.getByRole('heading', { name: 'Save all 2,005 books' }).waitFor();
      const file = await saved(page, page.getByRole('button', { name: `Save as ${format.toUpperCase()}` }));
      assert.match(file.name, new RegExp(`^books-\\d{4}-\\d\\d-\\d\\d\\.${format}$`));
      const { stdout } = await runCommand(['export', '--format', format], { DB_URL: service.dbUrl });
      assert.equal(file.text, stdout);
      const other = await SQLITE.freshUrl();
      assert.equal((await runCommand(['import', file.path], { DB_URL: other })).code, 0);
      assert.deepEqual(await booksOf(other), await booksOf(service.dbUrl));
    }
    assert.deepEqual(complaints(), []);
  });

  test('a person saves the books found, in the order that is shown, by keyboard alone', async (context) => {
    const books = [HOBBIT, SOLEDAD, { ...HOBBIT, title: 'The Hobbit, annotated', year: 2002 }, ILIAD];
    const { service, page } = await openCatalogue(context, { books });
    await tabTo(page, page.getByRole('textbox', { name: 'Search titles and authors' }));
    await page.keyboard.type('hobbit');
    await page.getByText('2 books found').first().waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Year' }));
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    await page
      .getByRole('columnheader', { name: 'Year' })
      .and(page.locator('[aria-sort="descending"]'))
      .waitFor();
    await counted(page, '2 books found');
    await tabTo(page, page.getByRole('button', { name: 'Export' }));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Save 2 books found' }).waitFor();
    await focused(page.getByRole('button', { name: 'Save as CSV' }));
    const download = page.waitForEvent('download');
    await page.keyboard.press('Enter');
    const text = readFileSync(await (await download).path(), 'utf8');
    const lines = (await runCommand(['export'], { DB_URL: service.dbUrl })).stdout.split('\n');
    assert.equal(text, `${[lines[0], lines[3], lines[1]].join('\n')}\n`);
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
  });

  test('the books found are saved once the search finds all of them', async (context) => {
    const { service, client, page } = await openCatalogue(context, { books: [HOBBIT] });
    await page.getByRole('textbox', { name: 'Search titles and authors' }).fill('hobbit');
    await counted(page, '1 book found');
    let release = async () => {};
    await waitUntil(async () => {
      await release();
      await client.create(HOBBIT);
      release = await holdIndex(service.dbUrl);
      return (await client.request('GET', '/books?q=hobbit')).headers.get('x-unindexed-books') !== null;
    });
    await openMenu(page, 'Export');
    const save = page.getByRole('button', { name: 'Save as CSV' });
    await save.click();
    await page
      .getByText('Nothing was saved: the catalogue is still indexing about 1 book. Try again.')
      .waitFor();
    await release();
    const { text } = await saved(page, save);
    assert.equal(text.split('\n').length - 2, (await client.list()).length);
  });

  test('a person stops saving', async (context) => {
    const { service, page } = await openProcess(context, { books: manyBooks(1000) });
    await counted(page, '1,000 books');
    await openMenu(page, 'Export');
    await page.getByRole('heading', { name: 'Save all 1,000 books' }).waitFor();
    service.process.kill('SIGSTOP'); // so that it does not end before
    context.after(() => service.process.kill('SIGCONT'));
    await page.getByRole('button', { name: 'Save as JSON' }).click();
    await page.getByRole('progressbar', { name: 'Collecting the books' }).waitFor();
    await page.getByRole('button', { name: 'Stop here' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    service.process.kill('SIGCONT');
    await openMenu(page, 'Export');
    await page.getByRole('button', { name: 'Save as JSON' }).waitFor();
  });
});

/** Everything that a file of CSV may have, in a few hundred rows. */
const TRICKY = [
  'Year Published,"Title",Authors,original_publication_year,Title,"empty ""name"""',
  ...['', '1999', '2008.0', 'c1997', '750 BC', '1997-1998', '[1524?]', 'June 26, 1997', 'x', '-44'].flatMap(
    (year) =>
      [
        'plain',
        '"quoted, with ""quotes"" and\nlines\r\n"',
        "L'Étranger 😀 שלום",
        ' blank ',
        '',
        '"<b>markup</b>"',
        'a"b',
      ].flatMap((title, index) => [
        `1900,${title},Somebody ${index % 2},${year},other,`,
        `,${title},,${year},other,"x"`,
        ...(index === 2 ? [',,,,,', `1900,${title},too few`, `1900,${title},a,${year},b,c,too many`] : []),
      ]),
  ),
  '"text"after,a,b,1,c,d',
  '1900,"never closed',
].join('\r\n');

/** The buttons are in the menu "More" where there is little room. */
async function openMenu(page: Page, name: 'Import' | 'Export'): Promise<void> {
  const button = page.getByRole('button', { name, exact: true });
  if (await button.isVisible()) return button.click();
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('button', { name: `${name} books` }).click();
}

/** Closes an import before. */
async function openImport(page: Page): Promise<void> {
  const close = page.getByRole('button', { name: 'Close' });
  if (await close.isVisible()) await close.click();
  await openMenu(page, 'Import');
  await page.getByLabel('Choose a file').waitFor();
}

async function choose(page: Page, name: string, content: Content): Promise<void> {
  const file = { name, mimeType: 'text/csv', buffer: Buffer.from(content as string) };
  await page.getByLabel('Choose a file').setInputFiles(file);
}

async function drop(page: Page, place: Locator, name: string, content: string): Promise<void> {
  const dataTransfer = await page.evaluateHandle(
    `(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([${JSON.stringify(content)}], ${JSON.stringify(name)}));
      return transfer;
    })()`,
  );
  await place.dispatchEvent('drop', { dataTransfer });
}

/** The column that is chosen for a field. */
async function chosen(page: Page, field: string): Promise<string> {
  return page.getByRole('combobox', { name: field }).locator('option:checked').innerText();
}

/** Waits until the four figures are these. */
async function figures(page: Page, expected: readonly string[]): Promise<void> {
  const items = page.getByRole('dialog').getByRole('listitem');
  await waitUntil(async () => {
    const texts = (await items.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '));
    return texts.slice(3).join('; ') === expected.join('; ');
  });
}

/** Imports, and goes back to the page. */
async function importAll(page: Page, count: number): Promise<void> {
  const books = count === 1 ? '1 book' : `${count.toLocaleString('en')} books`;
  await page.getByRole('button', { name: `Import ${books}` }).click();
  await page.getByRole('heading', { name: `${books} ${count === 1 ? 'was' : 'were'} added.` }).waitFor();
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

/** The file that a button saves. */
async function saved(page: Page, button: Locator): Promise<{ name: string; path: string; text: string }> {
  const event = page.waitForEvent('download');
  await button.click();
  const download = await event;
  const name = download.suggestedFilename();
  const path = join(temporaryFolder(), name);
  await download.saveAs(path);
  return { name, path, text: readFileSync(path, 'utf8') };
}

async function tabTo(page: Page, goal: Locator): Promise<void> {
  for (let count = 0; count < 60; count += 1) {
    if ((await goal.and(page.locator(':focus')).count()) === 1) return;
    await page.keyboard.press('Tab');
  }
  assert.fail('not reached within 60 tabs');
}

function numberIn(text: string): number {
  return Number(/[\d,]+/.exec(text)?.[0].replaceAll(',', ''));
}
