// Changing, deleting and adding books on the librarians' page, in a real browser: what is sent, what is kept, what is said,
// and where the focus goes. Every order of changes, answers and undoing is in test/orders.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator } from 'playwright-core';
import {
  asksToStay,
  BOOKS,
  canBeLeft,
  cell,
  choose,
  describePage,
  editor,
  focused,
  listed,
  logIn,
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

describePage('changing books on the librarians’ page', ({ openCatalogue }) => {
  test('one click selects a cell, the next makes it a field; Enter saves, and Escape leaves', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page } = catalogue;
    const title = cell(page, 'Emma', 'title');
    const field = editor(page, 'Emma', 'title');
    await title.click();
    await focused(title);
    assert.equal(await field.count(), 0, 'one click must not begin an edit');
    await title.click();
    await focused(field);
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
    await row(page, 'It').hover();
    await row(page, 'It').getByRole('button', { name: 'Edit' }).click();
    await focused(editor(page, 'It', 'title'));
  });

  test('Tab saves and moves on, Shift and Tab go back; the row stays where it is', async (context) => {
    const { page, client, changes, complaints } = await openCatalogue(context);
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
    const changed = { id: 6, title: 'The Hobbit', author: 'Zz Tolkien', year: 1938 };
    await waitUntil(async () => (await client.list())[5]?.year === 1938);
    assert.deepEqual((await client.list())[5], changed);
    for (const change of changes) assert.match(change, /^PUT \/book\/6 \{"(author|year)":[^,]*\}$/);
    await shown(page, BY_AUTHOR);
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('F2');
    await page.keyboard.press('Shift+Tab');
    await focused(editor(page, 'The Hobbit', 'author'));
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Shift+Tab');
    await focused(cell(page, 'The Hobbit', 'title'));
    assert.deepEqual(complaints(), []);
  });

  test('a refused text stops nothing, and waits in its row until it is corrected or given up', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page, client, complaints } = catalogue;
    const field = editor(page, 'Emma', 'year');
    const complaint = page.getByRole('alert').filter({ hasText: '“before 1800” cannot be read' });
    await cell(page, 'Emma', 'year').dblclick();
    await field.fill('before 1800');
    for (const key of ['Enter', 'Tab', 'Shift+Tab']) {
      await page.keyboard.press(key);
      await complaint.waitFor();
      await focused(field);
      assert.equal(await field.getAttribute('aria-invalid'), 'true');
    }
    await cell(page, 'It', 'title').click();
    await said(page, 'Year of “Emma” was not changed: “before 1800” cannot be read as a year.');
    assert.equal(await cell(page, 'Emma', 'year').getAttribute('aria-invalid'), 'true');
    await mouse.search(page, 'austen');
    await shown(page, ['Emma', 'Pride and Prejudice']);
    assert.equal(await cell(page, 'Emma', 'year').textContent(), 'before 1800'); // nothing typed is lost
    await asksToStay(page);
    await keyboard.press(page, 'Emma', 'Correct');
    await focused(field);
    await complaint.waitFor();
    await page.keyboard.press('End');
    await page.keyboard.type('x');
    await complaint.waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    assert.equal(await cell(page, 'Emma', 'year').textContent(), '1815');
    await row(page, 'Emma').getByRole('button', { name: 'Correct' }).waitFor({ state: 'detached' });
    await cell(page, 'Emma', 'year').dblclick();
    await field.fill('19x9');
    await keyboard.search(page, 'emma');
    await shown(page, ['Emma']);
    await keyboard.delete(page, 'Emma');
    await keyboard.press(page, 'Emma', 'Undo');
    await said(page, 'Undone: Emma');
    assert.equal(await cell(page, 'Emma', 'year').textContent(), '1815'); // it went with its book
    await keyboard.edit(page, 'Emma', 'year', '750 BC');
    await sent(catalogue, ['DELETE /book/7', 'POST /undo {"change":12}', 'PUT /book/7 {"year":-750}']);
    await waitUntil(async () => (await client.list())[6]?.year === -750);
    assert.deepEqual(complaints(), []);
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

  test('address, arrow, count and rows change together: when the answer is here, and no field is in use', async (context) => {
    const held: (() => void)[] = [];
    const { page } = await openCatalogue(context, {
      front: ({ url = '' }, _, forward) => {
        if (url.includes('sort=year')) held.push(forward);
        else forward();
      },
    });
    const agree = async (...expected: string[]) => {
      const sorted = page.getByRole('columnheader').and(page.locator('[aria-sort$=ending]'));
      const count = page.getByRole('main').getByRole('status').last();
      const seen = async () => {
        const [column, text] = await Promise.all([sorted.innerText(), count.textContent()]);
        return [new URL(page.url()).search, column, text, (await titles(page))[0]];
      };
      await waitUntil(async () => `${await seen()}` === `${expected}`, undefined, seen);
    };
    await page.getByRole('columnheader', { name: 'Year' }).getByRole('button').click();
    await waitUntil(() => held.length === 1);
    await agree('', 'Author', '10 books', 'Beowulf');
    await searchField(page).fill('the'); // continues from what was asked for, not from what is shown
    await waitUntil(() => held.length === 2);
    await cell(page, 'Emma', 'year').dblclick();
    await editor(page, 'Emma', 'year').fill('1816');
    const answer = page.waitForResponse((response) => response.url().includes('q=the'));
    for (const send of held.splice(0)) send();
    await (await answer).finished();
    await agree('', 'Author', '10 books', 'Beowulf');
    await page.keyboard.press('Enter');
    await waitUntil(() => held.length === 1); // they are read again
    held[0]?.();
    await agree('?q=the&sort=year', 'Year', '2 books found', 'The Odyssey');
  });

  test('books that are changed stay in their places; further down, and in another order, all others are shown', async (context) => {
    const held: (() => void)[] = [];
    const books = Array.from({ length: 250 }, (_, index) => {
      return { title: `Book ${String(index + 1).padStart(3, '0')}`, author: 'Common', year: 2000 - index };
    });
    const { page } = await openCatalogue(context, {
      books,
      query: '?q=common&sort=title',
      front: ({ url = '' }, _, forward) => {
        if (url.includes('sort=year')) held.push(forward);
        else forward();
      },
    });
    for (const title of ['Book 001', 'Book 002']) {
      await keyboard.edit(page, title, 'author', 'Rare');
      await said(page, 'Saved');
    }
    assert.deepEqual((await titles(page)).slice(0, 3), ['Book 001', 'Book 002', 'Book 003']);
    await page.keyboard.press('Control+End');
    await page.locator('[aria-rowindex="249"]').getByText('Book 250').waitFor();
    await page.getByRole('columnheader', { name: 'Year' }).getByRole('button').click();
    await waitUntil(() => held.length === 1);
    await mouse.add(page, { title: 'Last', author: 'Common', year: '2026' });
    await waitUntil(() => held.length === 2); // it is read again, at the beginning of the other order
    held[1]?.();
    await waitUntil(async () => (await titles(page))[0] === 'Book 250');
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

  test('a book is deleted at once; until another search its row brings it back under its id, with its changes', async (context) => {
    const { page, client, complaints } = await openCatalogue(context);
    const undo = row(page, 'Emma').getByRole('button', { name: 'Undo' });
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await said(page, 'Saved');
    await keyboard.delete(page, 'Emma');
    await said(page, 'Deleted Emma.');
    assert.equal((await client.request('GET', '/book/7')).status, 404);
    await focused(cell(page, 'Emma', 'title'));
    await shown(page, BY_AUTHOR); // nothing moves under the reader
    await undo.dblclick(); // is carried out once
    await said(page, 'Undone: Emma');
    await undo.waitFor({ state: 'detached' });
    const emma = { id: 7, title: 'Emma', author: 'Jane Austen', year: 1816 };
    assert.deepEqual((await client.list())[6], emma);
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);
    await page.keyboard.press('Control+z'); // a change that is taken back already is not the latest any more
    await waitUntil(async () => (await client.list())[6]?.year === 1815);
    await keyboard.delete(page, 'Emma');
    await keyboard.search(page, 'austen');
    await shown(page, ['Pride and Prejudice']);
    assert.deepEqual(complaints(), []);
  });

  test('Control Z and Control Y go through all that a person did, also after another search and a reload', async (context) => {
    const { page, client, books } = await openCatalogue(context);
    const messages = page.getByRole('region', { name: 'Messages' });
    const stored = async (expected: unknown) =>
      waitUntil(async () => JSON.stringify(await client.list()) === JSON.stringify(expected));
    await keyboard.edit(page, 'It', 'year', '1987');
    await said(page, 'Saved');
    await keyboard.edit(page, 'It', 'year', '1986');
    await said(page, 'Saved');
    await keyboard.edit(page, 'It', 'year', '1987');
    await said(page, 'Saved');
    await mouse.add(page, { title: 'Persuasion' });
    await keyboard.delete(page, 'Emma');
    await said(page, 'Deleted Emma.');
    const end = await client.list();
    await keyboard.search(page, 'hobbit');
    await shown(page, ['The Hobbit']);
    await page.reload();
    await listed(page);
    await page.keyboard.press('ArrowDown');
    for (let press = 0; press < 5; press += 1) await page.keyboard.press('Control+z');
    await said(page, '5 changes undone');
    await messages.getByText('5 changes undone').waitFor();
    assert.equal(await messages.getByText('ndone').count(), 1, 'one message for all of them');
    await stored(books);
    await page.keyboard.press('Control+z');
    await said(page, 'There is nothing to undo');
    for (let press = 0; press < 4; press += 1) await page.keyboard.press('Control+y');
    await page.keyboard.press('Control+Shift+z');
    await said(page, '5 changes redone');
    await stored(end);
    await page.keyboard.press('Control+y');
    await said(page, 'There is nothing to redo');
    await page.keyboard.press('Control+z');
    await said(page, 'Undone: Emma');
    await keyboard.edit(page, 'The Hobbit', 'year', '1938');
    await said(page, 'Saved');
    await page.keyboard.press('Control+y'); // something else came after it
    await said(page, 'There is nothing to redo');
    await choose(page, 'Log out');
    await logIn(page);
    await listed(page);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+z'); // that was another person
    await said(page, 'There is nothing to undo');
  });

  test('an undo whose answers are lost takes effect once, and one that a reload has interrupted is continued', async (context) => {
    let isAway = true;
    const { page, client, changes } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        const isLost = isAway && incoming.url === '/undo';
        forward(isLost ? () => incoming.socket.destroy() : undefined);
      },
    });
    const undos = () => changes.filter((change) => change.startsWith('POST /undo'));
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await said(page, 'Saved');
    await keyboard.edit(page, 'Emma', 'year', '1817');
    await said(page, 'Saved');
    await page.keyboard.press('Control+z');
    await waitUntil(() => undos().length > 1);
    await asksToStay(page);
    page.on('dialog', (dialog) => void dialog.accept());
    await page.reload();
    await listed(page);
    isAway = false;
    await focused(searchField(page)); // nothing was typed there
    await page.keyboard.press('Control+z');
    await said(page, 'Undone: Emma');
    assert.equal((await client.list())[6]?.year, 1816);
    assert.equal(new Set(undos()).size, 1);
  });

  test('an undo leaves what somebody else has changed since', async (context) => {
    const { page, client } = await openCatalogue(context);
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await said(page, 'Saved');
    await keyboard.edit(page, 'It', 'year', '1987');
    await said(page, 'Saved');
    await client.request('PUT', '/book/10', { body: { title: 'It (theirs)' } });
    await page.keyboard.press('Control+z');
    await said(page, '“It” stays as it is: somebody else has changed it since.');
    await cell(page, 'It (theirs)', 'title').waitFor();
    await page.keyboard.press('Control+z');
    await waitUntil(async () => (await client.list())[6]?.year === 1815);
    assert.deepEqual((await client.list())[9], {
      id: 10,
      title: 'It (theirs)',
      author: 'Stephen King',
      year: 1987,
    });
  });

  test('without a log, a deletion is final, and the page asks before', async (context) => {
    const { page, client, complaints } = await openCatalogue(context, { env: { HISTORY: 'off' } });
    const question = page.getByRole('dialog', { name: 'This is final. Delete “Emma”?' });
    await keyboard.delete(page, 'Emma');
    await question.getByRole('button', { name: 'Keep' }).click();
    await keyboard.delete(page, 'Emma');
    await question.waitFor();
    await page.keyboard.press('Escape');
    await question.waitFor({ state: 'hidden' });
    assert.equal((await client.list()).length, BOOKS.length);
    await keyboard.delete(page, 'Emma');
    await question.getByRole('button', { name: 'Delete' }).click();
    await said(page, 'Deleted Emma.');
    assert.equal(await row(page, 'Emma').getByRole('button', { name: 'Undo' }).count(), 0);
    assert.equal((await client.list()).length, BOOKS.length - 1);
    await keyboard.edit(page, 'It', 'year', '1987');
    await said(page, 'Saved');
    await page.keyboard.press('Control+z');
    await said(page, 'This catalogue keeps no history: nothing can be undone.');
    assert.deepEqual(complaints(), []);
  });

  test('a person who leaves before a deletion is answered is asked to stay', async (context) => {
    const held: (() => void)[] = [];
    const { page } = await openCatalogue(context, {
      front: ({ method }, _, forward) => {
        if (method === 'DELETE') held.push(forward);
        else forward();
      },
    });
    await mouse.delete(page, 'Emma');
    await waitUntil(() => held.length === 1);
    await asksToStay(page);
    held[0]?.();
    await canBeLeft(page);
  });

  test('adding: a warning if the title is there, authors as they are spelled, and another one', async (context) => {
    const { page, client, complaints } = await openCatalogue(context);
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    const [title, author, year] = ['Title', 'Author', 'Year'].map((label) => dialog.getByLabel(label)) as [
      Locator,
      Locator,
      Locator,
    ];
    const status = (hasText: string) => dialog.getByRole('status').filter({ hasText });
    const another = dialog.getByRole('button', { name: 'Add, and another' });
    await page.keyboard.press('Alt+n');
    await page.keyboard.type('the HOBBIT');
    await status('Already here: The Hobbit, J.R.R. Tolkien, 1937').waitFor();
    await title.fill('The Silmarillion');
    await status('Already here').waitFor({ state: 'detached' });
    await author.pressSequentially('j.r');
    await dialog.locator('option[value="J.R.R. Tolkien"]').waitFor({ state: 'attached' });
    await author.fill('J.R.R. Tolkien');
    await year.fill('MCMLXXVII');
    await another.click();
    await dialog.getByRole('alert').filter({ hasText: '“MCMLXXVII” cannot be read as a year.' }).waitFor();
    await focused(year);
    await year.fill('1977');
    await another.click();
    await status('“The Silmarillion” was added.').waitFor();
    await focused(title);
    assert.equal(await author.inputValue(), '');
    await page.keyboard.type('Unfinished Tales');
    await page.keyboard.press('Enter');
    const messages = page.getByRole('region', { name: 'Messages' });
    await messages.getByText('“Unfinished Tales” was added.').waitFor();
    assert.equal(await dialog.isVisible(), false);
    await page.keyboard.press('Insert');
    await page.keyboard.type('Ulysses');
    const question = page.getByRole('dialog', { name: 'Discard what you have written?' });
    for (const state of ['visible', 'hidden', 'visible', 'hidden', 'visible', 'hidden'] as const) {
      await page.keyboard.press('Escape'); // Chromium lets a page refuse only the first one
      await question.waitFor({ state });
    }
    for (const [ask, answer] of [
      [() => page.keyboard.press('Escape'), 'Keep writing'],
      [() => dialog.getByRole('button', { name: 'Close' }).click(), 'Discard'],
    ] as const) {
      assert.equal(await title.inputValue(), 'Ulysses');
      await ask();
      await question.getByRole('button', { name: answer }).click();
      await question.waitFor({ state: 'hidden' });
    }
    await dialog.waitFor({ state: 'hidden' });
    assert.deepEqual((await client.list()).slice(-2), [
      { id: 11, title: 'The Silmarillion', author: 'J.R.R. Tolkien', year: 1977 },
      { id: 12, title: 'Unfinished Tales', author: '', year: 0 },
    ]);
    await messages.getByRole('button', { name: 'Show' }).click(); // that of the latest message, the only one
    await shown(page, ['Unfinished Tales', 'The Silmarillion', ...BY_AUTHOR.toReversed()]);
    await focused(cell(page, 'Unfinished Tales', 'title'));
    assert.deepEqual(complaints(), []);
  });

  test('a late answer to an added book leaves alone what is typed meanwhile', async (context) => {
    const held: (() => void)[] = [];
    const { page } = await openCatalogue(context, {
      front: ({ method, url }, _, forward) => {
        if (`${method} ${url}` === 'POST /book') held.push(forward);
        else forward();
      },
    });
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    await page.keyboard.press('Insert');
    await page.keyboard.type('Persuasion');
    await page.keyboard.press('Enter');
    await waitUntil(() => held.length === 1);
    await dialog.waitFor({ state: 'hidden' });
    await page.keyboard.press('Insert');
    await page.keyboard.type('Sanditon');
    held[0]?.();
    await dialog.getByRole('status').filter({ hasText: '“Persuasion” was added.' }).waitFor();
    assert.equal(await dialog.getByLabel('Title').inputValue(), 'Sanditon');
  });
});
