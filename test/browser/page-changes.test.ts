// Changing, deleting and adding books on the librarians' page, in a real browser: what is sent, what is kept, what is said,
// and where the focus goes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { answer } from '../support/front.ts';
import {
  asksToStay,
  BOOKS,
  canBeLeft,
  cell,
  describePage,
  editor,
  focused,
  grid,
  row,
  said,
  searchField,
  sent,
  shown,
  titles,
  WAYS,
} from '../support/page.ts';
import { waitUntil } from '../support/wait.ts';

const BY_AUTHOR = BOOKS.map(({ title }) => title);

const { mouse, keyboard } = WAYS;

/** What a page shows. */
interface View {
  readonly query: string;
  /** The one that has the arrow. */
  readonly column?: string;
  readonly pressed?: string;
  readonly count: string;
  /** The title of the first row; none if there are no rows. */
  readonly first?: string;
}

/** Waits until everything that says what is shown says the same. */
async function agreed(page: Page, expected: View): Promise<void> {
  const chips = page.getByRole('group', { name: 'Show only' }).getByRole('button', { pressed: true });
  const sorted = page.getByRole('columnheader').and(page.locator('[aria-sort$=ending]'));
  let seen: Required<View> | undefined;
  await waitUntil(
    async () => {
      seen = {
        query: new URL(page.url()).search,
        column: (await sorted.allInnerTexts()).join(),
        pressed: (await chips.allInnerTexts()).join(', '),
        count: (await page.getByRole('main').getByRole('status').first().textContent()) ?? '',
        first: (await titles(page))[0] ?? '',
      };
      const wanted = { column: '', pressed: '', first: '', ...expected };
      return Object.entries(seen).every(([key, value]) => value === wanted[key as keyof View]);
    },
    undefined,
    () => [expected, seen],
  );
}

/** Scrolls to a place in the list, and fails unless the book with this title stands there. */
async function standsAt(page: Page, place: number, all: number, title: string): Promise<void> {
  await grid(page)
    .getByRole('rowgroup')
    .nth(1)
    .evaluate((element, share) => {
      element.scrollTop = share * element.scrollHeight;
    }, place / all);
  const row = grid(page).locator(`[aria-rowindex="${place + 2}"]`); // the header is row 1
  await waitUntil(async () => (await row.getByRole('rowheader').textContent()) === title);
}

describePage('changing books on the librarians’ page', ({ openCatalogue }) => {
  const alert = (page: Page, text: string | RegExp) => page.getByRole('alert').filter({ hasText: text });

  test('one click selects a cell, the next makes it a field; Enter saves, and Escape leaves', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page, client, complaints } = catalogue;
    const title = cell(page, 'Emma', 'title');
    const field = editor(page, 'Emma', 'title');
    await title.click();
    await focused(title);
    assert.equal(await field.count(), 0, 'one click must not begin an edit');
    await title.click();
    await focused(field);
    assert.equal(await field.inputValue(), 'Emma');
    await page.keyboard.type('Emma Woodhouse'); // the old text is selected
    await page.keyboard.press('Escape');
    await focused(title);
    assert.equal(await title.textContent(), 'Emma');

    await page.keyboard.press('Enter');
    await focused(field);
    await page.keyboard.press('Enter'); // unchanged: nothing to save
    await focused(title);
    await title.dblclick();
    await field.fill('Emma, a novel');
    await page.keyboard.press('Enter');
    await focused(cell(page, 'Emma, a novel', 'title'));
    await said(page, 'Saved');
    await sent(catalogue, ['PUT /book/7 {"title":"Emma, a novel"}']);
    assert.equal((await client.list())[6]?.title, 'Emma, a novel');

    await row(page, 'It').hover();
    await row(page, 'It').getByRole('button', { name: 'Edit' }).click();
    await focused(editor(page, 'It', 'title'));
    assert.deepEqual(complaints(), []);
  });

  test('Tab saves and moves on, Shift and Tab go back; the row stays where it is', async (context) => {
    const { page, client, changes } = await openCatalogue(context);
    await cell(page, 'The Hobbit', 'title').click();
    await page.keyboard.press('F2');
    await focused(editor(page, 'The Hobbit', 'title'));
    await page.keyboard.press('Tab');
    await focused(editor(page, 'The Hobbit', 'author'));
    await page.keyboard.type('Zz Tolkien');
    await page.keyboard.press('Tab');
    await focused(editor(page, 'The Hobbit', 'year'));
    await page.keyboard.type('c1938');
    await page.keyboard.press('Tab');
    await focused(row(page, 'The Hobbit').getByRole('button', { name: 'Edit' }));
    await waitUntil(async () => (await client.list())[5]?.year === 1938);
    assert.deepEqual((await client.list())[5], {
      id: 6,
      title: 'The Hobbit',
      author: 'Zz Tolkien',
      year: 1938,
    });
    for (const change of changes) assert.match(change, /^PUT \/book\/6 \{"(author|year)":[^,]*\}$/);
    await shown(page, BY_AUTHOR);

    await page.keyboard.press('Tab');
    await focused(row(page, 'The Hobbit').getByRole('button', { name: 'Delete' }));
    await cell(page, 'The Hobbit', 'year').click();
    await page.keyboard.press('F2');
    await page.keyboard.press('Shift+Tab');
    await focused(editor(page, 'The Hobbit', 'author'));
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Shift+Tab');
    await focused(cell(page, 'The Hobbit', 'title'));
  });

  test('a year is read as the importer reads it; what is no year stays in the field with the reason', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page, client } = catalogue;
    const year = async (title: string) => (await client.list()).find((book) => book.title === title)?.year;
    for (const [text, value, shows] of [
      ['750 BC', -750, '750 BC'],
      ['c1963', 1963, '1963'],
      ['[1524?]', 1524, '1524'],
      ['', 0, 'no year'],
      ['12', 12, '12'],
    ] as const) {
      await keyboard.edit(page, 'Emma', 'year', text);
      await waitUntil(async () => (await year('Emma')) === value);
      assert.equal(await cell(page, 'Emma', 'year').textContent(), shows);
    }
    const saved = [-750, 1963, 1524, 0, 12].map((value) => `PUT /book/7 {"year":${value}}`);
    await sent(catalogue, saved);
    const field = editor(page, 'Emma', 'year');
    await page.keyboard.press('F2');
    await field.fill('about 1800?');
    for (const key of ['Enter', 'Tab', 'Shift+Tab']) {
      await page.keyboard.press(key);
      await alert(page, '“about 1800?” is not an unambiguous year. Write it as 1605 or 750 BC').waitFor();
      await focused(field);
      assert.equal(await field.getAttribute('aria-invalid'), 'true');
    }
    await cell(page, 'It', 'title').click();
    await said(page, 'Year of “Emma” was not changed: “about 1800?” is not an unambiguous year.');
    assert.equal(await cell(page, 'Emma', 'year').textContent(), 'about 1800?'); // nothing typed is lost
    assert.equal(await cell(page, 'Emma', 'year').getAttribute('aria-invalid'), 'true');
    await cell(page, 'It', 'title').click();
    await focused(editor(page, 'It', 'title')); // another field does not wait for it
    await keyboard.press(page, 'Emma', 'Correct');
    await focused(field);
    assert.equal(await field.inputValue(), 'about 1800?');
    await alert(page, 'about 1800?').waitFor();
    await page.keyboard.press('End');
    await page.keyboard.type('x');
    await alert(page, 'about 1800?').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    assert.equal(await cell(page, 'Emma', 'year').textContent(), '12');
    assert.equal(await cell(page, 'Emma', 'year').getAttribute('aria-invalid'), null);
    await row(page, 'Emma').getByRole('button', { name: 'Correct' }).waitFor({ state: 'detached' });
    await sent(catalogue, saved);
  });

  test('a refused text stops nothing, and waits in its row until it is corrected or given up', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page, client, complaints } = catalogue;
    const chip = (name: string) => page.getByRole('button', { name });
    const refuse = async () => {
      await cell(page, 'Emma', 'year').dblclick();
      await editor(page, 'Emma', 'year').fill('19x9');
    };
    const changes: [change: () => Promise<unknown>, expected: View][] = [
      [
        () => mouse.search(page, 'austen'),
        { query: '?q=austen', column: 'Author', count: '2 books found', first: 'Emma' },
      ],
      [
        () => page.getByRole('columnheader', { name: 'Year' }).getByRole('button').click(),
        {
          query: '?q=austen&sort=year',
          column: 'Year',
          count: '2 books found',
          first: 'Pride and Prejudice',
        },
      ],
      [
        () => chip('Clear the search').click(),
        { query: '?sort=year', column: 'Year', count: '10 books', first: 'The Odyssey' },
      ],
      // Software for people who cannot use a mouse presses a button without moving the focus.
      [
        () => chip('Newest first').evaluate((element: { click(): void }) => element.click()),
        { query: '?sort=-id', pressed: 'Newest first', count: '10 books', first: 'It' },
      ],
      [
        () => keyboard.search(page, 'emma'),
        { query: '?q=emma&sort=-id', pressed: 'Newest first', count: '1 book found', first: 'Emma' },
      ],
      [
        () => chip('1 without a year').click(),
        {
          query: '?q=emma&year=0&sort=-id',
          pressed: 'Newest first, 1 without a year',
          count: '0 books found',
        },
      ],
      [
        () => chip('Show all books').click(),
        { query: '?sort=-id', pressed: 'Newest first', count: '10 books', first: 'It' },
      ],
    ];
    for (const [change, expected] of changes) {
      if (await cell(page, 'Emma', 'year').isVisible()) await refuse();
      await change();
      await agreed(page, expected);
    }
    assert.equal(await cell(page, 'Emma', 'year').textContent(), '19x9');
    await sent(catalogue, []);

    await asksToStay(page);
    await row(page, 'Emma').getByRole('button', { name: 'Correct' }).click();
    await editor(page, 'Emma', 'year').fill('1919');
    await page.keyboard.press('Enter');
    await waitUntil(async () => (await client.list())[6]?.year === 1919);
    assert.equal(await cell(page, 'Emma', 'year').textContent(), '1919');
    await refuse();
    await cell(page, 'It', 'title').click();
    await keyboard.delete(page, 'Emma');
    await keyboard.press(page, 'Emma', 'Undo');
    assert.equal(await cell(page, 'Emma', 'year').textContent(), '1919'); // it went with its book
    assert.deepEqual(complaints(), []);
  });

  test('another order is shown from its beginning, though a book is added before it is here', async (context) => {
    const held: (() => void)[] = [];
    const many = Array.from({ length: 300 }, (_, index) => {
      return { id: index + 1, title: `Book ${index}`, author: `${index + 100}`, year: 2000 - index };
    });
    const { page } = await openCatalogue(context, {
      books: many,
      front: (incoming, _, forward) => {
        if (incoming.url?.includes('sort=year') === true) held.push(forward);
        else forward();
      },
    });
    await cell(page, 'Book 0', 'title').click();
    await page.keyboard.press('Control+End');
    await cell(page, 'Book 299', 'title').waitFor();
    await page.getByRole('columnheader', { name: 'Year' }).getByRole('button').click();
    await waitUntil(() => held.length === 1);
    await mouse.add(page, { title: 'Last', year: '2026' });
    await waitUntil(() => held.length === 2);
    held[1]?.();
    await page
      .getByRole('columnheader', { name: 'Year' })
      .and(page.locator('[aria-sort=ascending]'))
      .waitFor();
    await waitUntil(async () => (await titles(page))[0] === 'Book 299');
  });

  for (const [query, field, text] of [
    ['?year=0&sort=title', 'year', '1900'],
    ['?sort=author', 'author', 'Zzz'],
    ['?sort=title', 'title', 'Book 150b'],
  ] as const) {
    test(`a person who changes the ${field} of books in ${query} sees all others further down`, async (context) => {
      const books = Array.from({ length: 250 }, (_, index) => {
        return { title: `Book ${String(index + 1).padStart(3, '0')}`, author: 'Somebody', year: 0 };
      });
      const { page, client } = await openCatalogue(context, { books, query });
      for (const { title } of books.slice(0, 5)) {
        await cell(page, title, field).dblclick();
        await editor(page, title, field).fill(text);
        await page.keyboard.press('Enter');
        await said(page, 'Saved');
      }
      await waitUntil(
        async () => (await client.request('GET', `/books${query}`)).data[0].title === 'Book 006',
      );
      for (const place of [100, 200, 249]) await standsAt(page, place, 250, `Book ${place + 1}`);
      assert.equal(await grid(page).getAttribute('aria-rowcount'), '251');
    });
  }

  test('a person who changes books that are then not found any more, and goes to the end, sees all others', async (context) => {
    const books = Array.from({ length: 350 }, (_, index) => {
      return { title: `Book ${String(index + 1).padStart(3, '0')}`, author: 'Common', year: 0 };
    });
    const { page } = await openCatalogue(context, { books, query: '?q=common&sort=title' });
    for (const { title } of books.slice(0, 3)) {
      await cell(page, title, 'author').dblclick();
      await editor(page, title, 'author').fill('Rare');
      await page.keyboard.press('Enter');
      await said(page, 'Saved');
    }
    await page.keyboard.press('Control+End');
    await grid(page).locator('[aria-rowindex="348"]').getByText('Book 350').waitFor();
    assert.equal(await grid(page).getAttribute('aria-rowcount'), '348');
    for (const [place, title] of [
      [297, 'Book 301'],
      [296, 'Book 300'],
      [97, 'Book 101'],
      [0, 'Book 004'],
    ] as const) {
      await standsAt(page, place, 347, title);
    }
  });

  test('a person who leaves a text that is not stored yet is asked to stay', async (context) => {
    const { page } = await openCatalogue(context);
    await cell(page, 'Emma', 'title').dblclick();
    await editor(page, 'Emma', 'title').fill('Emm');
    await asksToStay(page);
    assert.equal(await editor(page, 'Emma', 'title').inputValue(), 'Emm');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Add a book' }).click();
    const title = page.getByRole('dialog', { name: 'Add a book' }).getByLabel('Title');
    await title.fill('Persuasion');
    await asksToStay(page);
    assert.equal(await title.inputValue(), 'Persuasion');
  });

  test('address, arrow, chips, count and rows change together: when the answer is here, and no field is in use', async (context) => {
    const held: (() => void)[] = [];
    const { page, client } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (incoming.url?.includes('sort=year') === true) held.push(forward);
        else forward();
      },
    });
    const before = { query: '', column: 'Author', count: '10 books', first: 'Beowulf' } as const;
    const after = { query: '?q=the&sort=year', column: 'Year', count: '2 books found', first: 'The Odyssey' };
    await page.getByRole('columnheader', { name: 'Year' }).getByRole('button').click();
    await waitUntil(() => held.length === 1);
    await agreed(page, before);
    await searchField(page).fill('the'); // continues from what was asked for, not from what is shown
    await waitUntil(() => held.length === 2);
    await cell(page, 'Emma', 'year').dblclick();
    await editor(page, 'Emma', 'year').fill('1816');
    const answer = page.waitForResponse((response) => response.url().includes('q=the'));
    for (const send of held.splice(0)) send();
    await (await answer).finished();
    await agreed(page, before);
    await page.keyboard.press('Enter');
    await waitUntil(() => held.length === 1); // they are read again
    await waitUntil(async () => (await client.list())[6]?.year === 1816);
    for (const send of held) send();
    await agreed(page, after);
  });

  test('on a phone, only the fields that were touched are stored', async (context) => {
    const catalogue = await openCatalogue(context, {
      books: [{ title: ' Two\nlines ', author: 'Anon', year: -1_000_000 }],
      options: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
    });
    const { page, client } = catalogue;
    await cell(page, 'Two lines', 'title').tap();
    const dialog = page.getByRole('dialog', { name: 'Change the book' });
    await dialog.getByLabel('Author').fill('Anonymous');
    await dialog.getByRole('button', { name: 'Save' }).tap();
    await waitUntil(async () => (await client.list())[0]?.author === 'Anonymous');
    await sent(catalogue, ['PUT /book/1 {"author":"Anonymous"}']);
    await page.getByRole('button', { name: 'Undo' }).tap();
    await waitUntil(async () => (await client.list())[0]?.author === 'Anon');
    assert.deepEqual(await client.list(), [
      { id: 1, title: ' Two\nlines ', author: 'Anon', year: -1_000_000 },
    ]);
  });

  test('missing values are said, and filled in', async (context) => {
    const { page, client } = await openCatalogue(context, { books: [{ title: '', author: '', year: 0 }] });
    assert.equal(await cell(page, 'no title', 'author').textContent(), 'no author');
    const fill = async (field: 'title' | 'author', text: string) => {
      await cell(page, 'no title', field).dblclick();
      await page.keyboard.type(text);
      await page.keyboard.press('Enter');
    };
    await fill('author', 'A poet');
    await row(page, 'no title').getByRole('gridcell', { name: 'A poet' }).waitFor();
    await waitUntil(async () => (await client.list())[0]?.author === 'A poet');
    await fill('title', 'Beowulf');
    await waitUntil(async () => (await client.list())[0]?.title === 'Beowulf');
    assert.deepEqual(await client.list(), [{ id: 1, title: 'Beowulf', author: 'A poet', year: 0 }]);
  });

  test('a book needs a title: none is added without one, and none loses it', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page } = catalogue;
    await page.keyboard.press('Insert');
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    const title = dialog.getByLabel('Title');
    for (const text of ['', ' \t\u00a0', '\u200b']) {
      await title.fill(text);
      for (const name of ['Add', 'Add, and another']) {
        await dialog.getByRole('button', { name, exact: true }).click();
        await dialog.getByRole('alert').filter({ hasText: 'A book needs a title.' }).waitFor();
        await focused(title);
        assert.equal(await title.getAttribute('aria-invalid'), 'true');
      }
    }
    await page.keyboard.press('Escape');
    await cell(page, 'Emma', 'title').dblclick();
    await editor(page, 'Emma', 'title').fill('  ');
    await page.keyboard.press('Enter');
    await alert(page, 'A book needs a title.').waitFor();
    await page.keyboard.press('Escape');
    await cell(page, 'Emma', 'author').dblclick();
    await editor(page, 'Emma', 'author').fill('');
    await page.keyboard.press('Enter');
    await said(page, 'Saved');
    await sent(catalogue, ['PUT /book/7 {"author":""}']);
  });

  test('what an edit does not touch is not sent, whatever a field cannot show of it', async (context) => {
    const books = [
      { title: 'Two\nlines', author: ' spaces ', year: -12_345_678 },
      { title: 'Wide', author: 'B', year: 9007199254740991 },
    ];
    const catalogue = await openCatalogue(context, { books });
    const { page } = catalogue;
    await page.getByRole('rowheader', { name: 'Two' }).click();
    for (const _ of ['title', 'author', 'year']) {
      await page.keyboard.press('F2');
      await page.getByRole('textbox', { name: / of Two/ }).waitFor();
      await page.keyboard.press('Enter');
      await page.getByRole('textbox', { name: / of Two/ }).waitFor({ state: 'detached' });
      await page.keyboard.press('ArrowRight');
    }
    await keyboard.edit(page, 'Wide', 'title', 'Wider');
    await said(page, 'Saved');
    await sent(catalogue, ['PUT /book/2 {"title":"Wider"}']);
    await page.getByRole('rowheader', { name: 'Two' }).click();
    await page.keyboard.press('F2');
    await page.getByRole('textbox', { name: / of Two/ }).waitFor();
    await page.keyboard.press('End');
    await page.keyboard.type('!');
    await page.keyboard.press('Enter');
    await sent(catalogue, ['PUT /book/2 {"title":"Wider"}', 'PUT /book/1 {"title":"Two lines!"}']);
  });

  test('Control Z takes back changes and deletions, the latest first, and each once', async (context) => {
    const { page, client, books, complaints } = await openCatalogue(context);
    await keyboard.edit(page, 'Emma', 'year', '1900');
    await keyboard.edit(page, 'It', 'author', 'S. King');
    await waitUntil(async () => (await client.list())[9]?.author === 'S. King');
    await keyboard.delete(page, 'Don Quijote');
    await keyboard.press(page, 'Don Quijote', 'Undo');
    await focused(row(page, 'Don Quijote').getByRole('button', { name: 'Edit' }));
    await page.keyboard.press('Control+z'); // the deletion has been taken back already
    await waitUntil(async () => (await client.list())[9]?.author === 'Stephen King');
    await page.keyboard.press('Control+z');
    await waitUntil(async () => (await client.list())[6]?.year === 1815);
    await page.keyboard.press('Control+z');
    await said(page, 'There is nothing to undo');
    assert.deepEqual(await client.list(), books);
    assert.deepEqual(complaints(), []);
  });

  test('in a field, Control Z is the field’s own', async (context) => {
    const { page, client } = await openCatalogue(context);
    await keyboard.delete(page, 'Don Quijote');
    await searchField(page).focus();
    await page.keyboard.press('Control+z');
    await cell(page, 'Emma', 'title').click();
    await page.keyboard.press('F2');
    await page.keyboard.type('x');
    await page.keyboard.press('Control+z');
    assert.equal(await editor(page, 'Emma', 'title').inputValue(), 'Emma');
    await page.keyboard.press('Escape');
    await row(page, 'Don Quijote').getByRole('button', { name: 'Undo' }).waitFor();
    await page.keyboard.press('Control+z');
    await row(page, 'Don Quijote').getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
    assert.equal((await client.list()).length, BOOKS.length);
  });

  test('a deletion is sent after ten seconds; Put back then stores the book as a new entry', async (context) => {
    const { page, client, complaints } = await openCatalogue(context);
    await page.clock.install();
    await keyboard.delete(page, 'Emma');
    await focused(cell(page, 'Emma', 'title'));
    await page.clock.fastForward(9000);
    assert.equal((await client.request('GET', '/book/7')).status, 200);
    await page.clock.fastForward(1001);
    await row(page, 'Emma').getByRole('button', { name: 'Put back' }).waitFor();
    assert.equal((await client.request('GET', '/book/7')).status, 404);
    await shown(page, BY_AUTHOR); // nothing moves under the reader

    await row(page, 'Emma').getByRole('button', { name: 'Put back' }).dblclick(); // is stored once
    await said(page, '“Emma” is back, as a new entry.');
    await row(page, 'Emma').getByRole('button', { name: 'Put back' }).waitFor({ state: 'detached' });
    const again = (await client.list()).at(-1);
    assert.deepEqual(again, { id: 11, title: 'Emma', author: 'Jane Austen', year: 1815 });
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);
    await page.keyboard.press('Control+z');
    await said(page, 'There is nothing to undo');
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await waitUntil(async () => (await client.list()).at(-1)?.year === 1816);
    assert.deepEqual(complaints(), []);
  });

  test('Control Z brings a book back long after its deletion was sent, and its changes before', async (context) => {
    const { page, client } = await openCatalogue(context);
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await waitUntil(async () => (await client.list())[6]?.year === 1816);
    await keyboard.delete(page, 'Emma');
    await keyboard.search(page, 'hobbit');
    await shown(page, ['The Hobbit']);
    assert.equal((await client.list()).length, BOOKS.length - 1);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+z');
    await waitUntil(async () => (await client.list()).length === BOOKS.length);
    const book = { id: 11, title: 'Emma', author: 'Jane Austen', year: 1816 };
    assert.deepEqual((await client.list()).at(-1), book);
    await said(page, '“Emma” is back, as a new entry.');
    await keyboard.search(page, 'emma');
    await shown(page, ['Emma']);
    await keyboard.delete(page, 'Emma');
    await keyboard.search(page, 'hobbit');
    await shown(page, ['The Hobbit']);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+z');
    await said(page, '“Emma” is back, as a new entry.');
    await page.keyboard.press('Control+z'); // the change of the book that was stored again twice
    await waitUntil(async () => (await client.list()).at(-1)?.year === 1815);
    assert.equal((await client.list()).length, BOOKS.length);
  });

  test('Control Z while a deletion is being sent stores the book again', async (context) => {
    const held: (() => void)[] = [];
    const { page, client } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (incoming.method === 'DELETE') held.push(forward);
        else forward();
      },
    });
    await keyboard.delete(page, 'Emma');
    await searchField(page).fill('austen');
    await waitUntil(() => held.length > 0);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+z');
    for (const send of held) send();
    await said(page, '“Emma” is back, as a new entry.');
    assert.equal((await client.list()).at(-1)?.title, 'Emma');
  });

  test('a book that is put back at the second attempt is stored once, whatever is undone afterwards', async (context) => {
    let isRefused = true;
    const { page, client } = await openCatalogue(context, {
      front: (incoming, outgoing, forward) => {
        if (isRefused && incoming.method === 'POST' && incoming.url === '/book')
          answer(outgoing, 413, null, 'Payload too large');
        else forward();
      },
    });
    await page.clock.install();
    await keyboard.delete(page, 'Emma');
    await page.clock.fastForward(10_001);
    await keyboard.press(page, 'Emma', 'Put back');
    await said(page, '“Emma” was not put back');
    isRefused = false;
    await keyboard.press(page, 'Emma', 'Put back');
    await said(page, '“Emma” is back, as a new entry.');
    await page.keyboard.press('Control+z');
    await said(page, 'There is nothing to undo');
    assert.equal((await client.list()).length, BOOKS.length);
  });

  test('Control Z waits for a book that is being put back: its change is undone in the new entry', async (context) => {
    const held: (() => void)[] = [];
    const { page, client } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (incoming.method === 'POST' && incoming.url === '/book') held.push(forward);
        else forward();
      },
    });
    await client.request('DELETE', '/book/7');
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await said(page, 'Somebody else has deleted “Emma”.');
    await keyboard.press(page, 'Emma', 'Put back');
    await waitUntil(() => held.length === 1);
    await page.keyboard.press('Control+z');
    await said(page, 'The latest change is still being taken back.');
    held[0]?.();
    await said(page, '“Emma” is back, as a new entry.');
    await page.keyboard.press('Control+z');
    await said(page, 'Saved');
    const again = { id: 11, title: 'Emma', author: 'Jane Austen', year: 1815 };
    assert.deepEqual((await client.list()).slice(BOOKS.length - 1), [again]);
    await page.keyboard.press('Control+z');
    await said(page, 'There is nothing to undo');
  });

  for (const [name, leave] of Object.entries({
    'closes the page': (page: Page) => page.close({ runBeforeUnload: true }),
    'goes to another page': (page: Page) => page.goto('about:blank'),
    'reloads the page': (page: Page) => page.reload(),
  })) {
    test(`a person who ${name} has deleted what is struck through, and nobody else has changed`, async (context) => {
      const removals: string[] = [];
      const { page, client } = await openCatalogue(context, {
        env: { REQUIRE_IF_MATCH: 'on' },
        front: ({ method, url }, outgoing, forward) => {
          if (method === 'DELETE')
            outgoing.on('finish', () => removals.push(`${url} ${outgoing.statusCode}`));
          forward();
        },
      });
      for (const title of ['Emma', 'It', 'Beowulf']) await mouse.delete(page, title);
      await canBeLeft(page);
      const theirs = { body: { title: 'Beowulf (theirs)' }, headers: { 'if-match': '*' } };
      assert.equal((await client.request('PUT', '/book/1', theirs)).status, 200);
      await leave(page);
      await waitUntil(() => removals.length === 3);
      assert.deepEqual(removals.toSorted(), ['/book/1 412', '/book/10 200', '/book/7 200']);
      const others = BOOKS.slice(1).filter(({ title }) => !['Emma', 'It'].includes(title));
      const left = (await client.list()).map(({ title }) => title);
      assert.deepEqual(left, ['Beowulf (theirs)', ...others.map(({ title }) => title)]);
    });
  }

  test('a person who leaves before the page has learned whether a book changed is asked to stay', async (context) => {
    const held: (() => void)[] = [];
    const { page, client } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (incoming.method === 'GET' && incoming.url === '/book/7') held.push(forward);
        else forward();
      },
    });
    await mouse.delete(page, 'Emma');
    await waitUntil(() => held.length === 1);
    await asksToStay(page);
    held[0]?.();
    await canBeLeft(page);
    await page.context().setOffline(true); // nothing that is sent on leaving would arrive
    await asksToStay(page);
    await page.context().setOffline(false);
    await canBeLeft(page);
    await page.close({ runBeforeUnload: true });
    await waitUntil(async () => (await client.list()).length === BOOKS.length - 1);
  });

  test('a person who comes back after the token has expired deletes a book and leaves: it is deleted', async (context) => {
    let logins = 0;
    const { page, client } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (incoming.url === '/token') logins += 1;
        forward();
      },
    });
    await page.clock.install();
    await page.clock.fastForward(15 * 60 * 1000);
    logins = 0;
    await keyboard.delete(page, 'Emma');
    await canBeLeft(page);
    assert.equal(logins, 1); // not when the page is left: its answer would be lost
    await page.close({ runBeforeUnload: true });
    await waitUntil(async () => (await client.list()).length === BOOKS.length - 1);
  });

  test('an edit and a deletion right after it: the book is deleted', async (context) => {
    const held: (() => void)[] = [];
    const { page, client } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (incoming.method === 'PUT') held.push(forward);
        else forward();
      },
    });
    await shown(page, BY_AUTHOR);
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await page.keyboard.press('Delete');
    await waitUntil(() => held.length > 0);
    for (const send of held) send();
    await said(page, 'Saved');
    await keyboard.search(page, 'austen');
    await shown(page, ['Pride and Prejudice']);
    assert.equal((await client.request('GET', '/book/7')).status, 404);
  });

  test('adding: a warning if the title is there, authors as they are spelled, and another one', async (context) => {
    const { page, client, complaints } = await openCatalogue(context);
    await page.keyboard.press('Alt+n');
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    await page.keyboard.type('the HOBBIT');
    await dialog
      .getByRole('status')
      .filter({ hasText: 'Already here: The Hobbit, J.R.R. Tolkien, 1937' })
      .waitFor();
    await dialog.getByLabel('Title').fill('The Silmarillion');
    await dialog.getByRole('status').filter({ hasText: 'Already here' }).waitFor({ state: 'detached' });
    await dialog.getByLabel('Author').pressSequentially('j.r');
    const suggestions = page.getByRole('option', { includeHidden: true });
    await waitUntil(async () =>
      (await suggestions.evaluateAll((options) => options.map(({ value }) => value))).includes(
        'J.R.R. Tolkien',
      ),
    );
    await dialog.getByLabel('Author').fill('J.R.R. Tolkien');
    await dialog.getByLabel('Year').fill('MCMLXXVII');
    await dialog.getByRole('button', { name: 'Add, and another' }).click();
    await dialog.getByRole('alert').filter({ hasText: '“MCMLXXVII” is not an unambiguous year.' }).waitFor();
    await focused(dialog.getByLabel('Year'));
    await dialog.getByLabel('Year').fill('1977');
    await dialog.getByRole('button', { name: 'Add, and another' }).click();
    await dialog.getByRole('status').filter({ hasText: '“The Silmarillion” was added.' }).waitFor();
    await focused(dialog.getByLabel('Title'));
    assert.equal(await dialog.getByLabel('Author').inputValue(), '');
    await page.keyboard.type('Unfinished Tales');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    await shown(page, [
      'Beowulf',
      'Unfinished Tales',
      ...BY_AUTHOR.slice(1, 6),
      'The Silmarillion',
      ...BY_AUTHOR.slice(6),
    ]);
    assert.deepEqual((await client.list()).slice(-2), [
      { id: 11, title: 'The Silmarillion', author: 'J.R.R. Tolkien', year: 1977 },
      { id: 12, title: 'Unfinished Tales', author: '', year: 0 },
    ]);
    await page.getByRole('region', { name: 'Messages' }).getByRole('button', { name: 'Show' }).last().click();
    await shown(page, ['Unfinished Tales', 'The Silmarillion', ...BY_AUTHOR.toReversed()]);
    await focused(cell(page, 'Unfinished Tales', 'title'));
    assert.deepEqual(complaints(), []);
  });

  test('a late answer to an added book leaves alone what is typed meanwhile', async (context) => {
    const held: (() => void)[] = [];
    const { page, client } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (incoming.method === 'POST' && incoming.url === '/book') held.push(forward);
        else forward();
      },
    });
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    const add = dialog.getByRole('button', { name: 'Add', exact: true });
    await page.keyboard.press('Insert');
    await dialog.getByLabel('Title').fill('Persuasion');
    await add.click();
    await waitUntil(() => held.length === 1);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Insert');
    await dialog.getByLabel('Title').fill('Sanditon');
    held.pop()?.();
    await dialog.getByRole('status').filter({ hasText: '“Persuasion” was added.' }).waitFor();
    assert.equal(await dialog.getByLabel('Title').inputValue(), 'Sanditon');
    await add.click();
    await waitUntil(() => held.length === 1);
    held.pop()?.();
    await dialog.waitFor({ state: 'hidden' });
    const added = (await client.list()).slice(BOOKS.length).map(({ title }) => title);
    assert.deepEqual(added, ['Persuasion', 'Sanditon']);
  });

  test('the keys of the page also work inside a cell that is edited', async (context) => {
    const { page, client } = await openCatalogue(context);
    await cell(page, 'Emma', 'year').click();
    await page.keyboard.press('F2');
    await page.keyboard.type('1816');
    await page.keyboard.press('Control+k');
    await focused(searchField(page));
    await waitUntil(async () => (await client.list())[6]?.year === 1816); // leaving the field saves
    await cell(page, 'Emma', 'year').click();
    await page.keyboard.press('F2');
    await page.keyboard.press('F1');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'hidden' });
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);
  });

  test('Enter of an input method does not save', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page } = catalogue;
    await cell(page, 'Emma', 'title').click();
    await page.keyboard.press('F2');
    const field = editor(page, 'Emma', 'title');
    const session = await page.context().newCDPSession(page);
    await session.send('Input.imeSetComposition', { text: 'え', selectionStart: 1, selectionEnd: 1 });
    assert.equal(await field.inputValue(), 'え');
    for (const key of ['Enter', 'Tab', 'Escape'])
      await field.dispatchEvent('keydown', { key, isComposing: true, bubbles: true, cancelable: true });
    await focused(field);
    await session.send('Input.insertText', { text: 'エマ' });
    await page.keyboard.press('Enter');
    await focused(cell(page, 'エマ', 'title'));
    await said(page, 'Saved');
    await sent(catalogue, ['PUT /book/7 {"title":"エマ"}']);
  });
});
