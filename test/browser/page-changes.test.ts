// Changing, deleting and adding books on the librarians' page, in a real browser: what is sent, what is kept, what is said,
// and where the focus goes. Every order of changes, answers and undoing is in test/orders.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator } from 'playwright-core';
import {
  asksToStay,
  BOOKS,
  canBeLeft,
  cell,
  describePage,
  editor,
  focused,
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
    const complaint = page.getByRole('alert').filter({ hasText: '“before 1800” is not an unambiguous' });
    await cell(page, 'Emma', 'year').dblclick();
    await field.fill('before 1800');
    for (const key of ['Enter', 'Tab', 'Shift+Tab']) {
      await page.keyboard.press(key);
      await complaint.waitFor();
      await focused(field);
      assert.equal(await field.getAttribute('aria-invalid'), 'true');
    }
    await cell(page, 'It', 'title').click();
    await said(page, 'Year of “Emma” was not changed: “before 1800” is not an unambiguous year.');
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
    assert.equal(await cell(page, 'Emma', 'year').textContent(), '1815'); // it went with its book
    await keyboard.edit(page, 'Emma', 'year', '750 BC');
    await sent(catalogue, ['PUT /book/7 {"year":-750}']);
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
      const count = page.getByRole('main').getByRole('status').first();
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

  test('a deletion is sent after ten seconds, or with a search; until then Undo keeps the book, later it is a new one', async (context) => {
    const { page, client, complaints } = await openCatalogue(context);
    const isThere = async (id: number) => (await client.request('GET', `/book/${id}`)).status === 200;
    const again = { id: 11, title: 'Emma', author: 'Jane Austen', year: 1816 };
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await said(page, 'Saved');
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    await keyboard.delete(page, 'Emma');
    await focused(cell(page, 'Emma', 'title'));
    await page.clock.runFor(9000);
    assert.ok(await isThere(7));
    await page.clock.runFor(1001);
    await row(page, 'Emma').getByRole('button', { name: 'Put back' }).waitFor();
    assert.equal(await isThere(7), false);
    await page.clock.resume();
    await shown(page, BY_AUTHOR); // nothing moves under the reader
    await row(page, 'Emma').getByRole('button', { name: 'Put back' }).dblclick(); // is stored once
    await said(page, '“Emma” is back, as a new entry.');
    await row(page, 'Emma').getByRole('button', { name: 'Put back' }).waitFor({ state: 'detached' });
    assert.deepEqual((await client.list()).slice(9), [again]);
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);
    await keyboard.delete(page, 'Emma');
    await keyboard.search(page, 'hobbit');
    await shown(page, ['The Hobbit']);
    assert.equal(await isThere(11), false);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+z');
    await said(page, '“Emma” is back, as a new entry.');
    assert.deepEqual((await client.list()).slice(9), [{ ...again, id: 12 }]);
    await page.keyboard.press('Control+z'); // the change of the book that was stored again twice
    await waitUntil(async () => (await client.list())[9]?.year === 1815);
    await page.keyboard.press('Control+z');
    await said(page, 'There is nothing to undo');
    assert.deepEqual(complaints(), []);
  });

  test('a person who goes to another page has deleted what is struck through, and nobody else has changed', async (context) => {
    const removals: string[] = [];
    const held: (() => void)[] = [];
    const { page, client } = await openCatalogue(context, {
      front: ({ method, url }, outgoing, forward) => {
        if (method === 'DELETE') outgoing.on('finish', () => removals.push(`${url} ${outgoing.statusCode}`));
        if (method === 'GET' && url === '/book/7') held.push(forward);
        else forward();
      },
    });
    for (const title of ['Emma', 'It', 'Beowulf']) await mouse.delete(page, title);
    await waitUntil(() => held.length === 1);
    await asksToStay(page); // it is not known yet whether somebody has changed Emma
    held[0]?.();
    await canBeLeft(page);
    await page.context().setOffline(true); // nothing that is sent on leaving would arrive
    await page.locator('#away').waitFor(); // it is noticed
    await asksToStay(page);
    await page.context().setOffline(false);
    await canBeLeft(page);
    const theirs = { title: 'Beowulf (theirs)' };
    assert.equal((await client.request('PUT', '/book/1', { body: theirs })).status, 200);
    await page.goto('about:blank');
    await waitUntil(() => removals.length === 3);
    assert.deepEqual(removals.toSorted(), ['/book/1 412', '/book/10 200', '/book/7 200']);
    assert.equal((await client.list()).length, BOOKS.length - 2);
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
    await dialog.getByRole('alert').filter({ hasText: '“MCMLXXVII” is not an unambiguous year.' }).waitFor();
    await focused(year);
    await year.fill('1977');
    await another.click();
    await status('“The Silmarillion” was added.').waitFor();
    await focused(title);
    assert.equal(await author.inputValue(), '');
    await page.keyboard.type('Unfinished Tales');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
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
    await page.keyboard.press('Escape');
    await page.keyboard.press('Insert');
    await page.keyboard.type('Sanditon');
    held[0]?.();
    await dialog.getByRole('status').filter({ hasText: '“Persuasion” was added.' }).waitFor();
    assert.equal(await dialog.getByLabel('Title').inputValue(), 'Sanditon');
  });
});
