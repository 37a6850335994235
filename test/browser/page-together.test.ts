// Two people on one book, on the librarians' page in two real browsers; and books whose texts are hostile.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  BOOKS,
  type Catalogue,
  cell,
  type Desk,
  describePage,
  editor,
  focused,
  logIn,
  row,
  said,
  searchField,
  shown,
  WAYS,
} from '../support/page.ts';
import { waitUntil } from '../support/wait.ts';

const BY_AUTHOR = BOOKS.map(({ title }) => title);
const { keyboard, mouse } = WAYS;

describePage('several people on the librarians’ page', ({ openCatalogue, openDesk, openProcess }) => {
  /** Two people who see the same list. */
  async function openTwo<First extends Catalogue>(
    context: TestContext,
    open: (context: TestContext) => Promise<First>,
  ): Promise<{ first: First; second: Desk }> {
    const first = await open(context);
    const second = await openDesk(context, first.service.pageUrl);
    await logIn(second.page);
    for (const { page } of [first, second]) await shown(page, BY_AUTHOR);
    return { first, second };
  }

  const conflict = (page: Page) => page.getByRole('dialog', { name: 'Somebody else has changed this book' });
  const message = (page: Page, text: string | RegExp) =>
    page.getByRole('region', { name: 'Messages' }).getByText(text);

  test('two people change different fields of a book: both changes are kept', async (context) => {
    const { first, second } = await openTwo(context, openCatalogue);
    await keyboard.edit(first.page, 'Emma', 'year', '1816');
    await waitUntil(async () => (await first.client.list())[6]?.year === 1816);
    await keyboard.edit(second.page, 'Emma', 'title', 'Emma, a novel');
    await said(second.page, 'Saved');
    assert.deepEqual((await first.client.list())[6], {
      id: 7,
      title: 'Emma, a novel',
      author: 'Jane Austen',
      year: 1816,
    });
    assert.equal(await cell(second.page, 'Emma, a novel', 'year').textContent(), '1816');
    assert.equal(await conflict(second.page).isVisible(), false);
    for (const { complaints } of [first, second]) assert.deepEqual(complaints(), []);
  });

  for (const choice of ['Keep theirs', 'Keep yours'] as const) {
    test(`two people change the same field: ${choice}`, async (context) => {
      const { first, second } = await openTwo(context, openCatalogue);
      const { page } = second;
      await keyboard.edit(first.page, 'Emma', 'title', 'Emma (theirs)');
      await keyboard.edit(first.page, 'Emma (theirs)', 'year', '1817');
      await waitUntil(async () => (await first.client.list())[6]?.year === 1817);
      await keyboard.edit(page, 'Emma', 'title', 'Emma (mine)');
      const dialog = conflict(page);
      await dialog.getByRole('row', { name: 'Title Emma Emma (theirs) Emma (mine)' }).waitFor();
      assert.equal(await dialog.getByRole('row').count(), 2, 'the header, and the one field in question');
      assert.equal((await first.client.list())[6]?.title, 'Emma (theirs)');

      await page.keyboard.press('Escape'); // later
      await row(page, 'Emma (mine)').getByRole('button', { name: 'Compare' }).waitFor();
      await keyboard.press(page, 'Emma (mine)', 'Compare');
      await dialog.getByRole('button', { name: choice }).click();
      await dialog.waitFor({ state: 'hidden' });
      const title = choice === 'Keep yours' ? 'Emma (mine)' : 'Emma (theirs)';
      await cell(page, title, 'title').waitFor();
      await row(page, title).getByRole('button', { name: 'Compare' }).waitFor({ state: 'detached' });
      const kept = { id: 7, title, author: 'Jane Austen', year: 1817 };
      await waitUntil(async () => (await first.client.list())[6]?.title === title);
      assert.deepEqual((await first.client.list())[6], kept);
      assert.equal(await cell(page, title, 'year').textContent(), '1817');
      assert.equal(await page.evaluate('document.activeElement === document.body'), false);
      await page.keyboard.press('Control+z');
      if (choice === 'Keep theirs') {
        await said(page, 'There is nothing to undo');
      } else {
        await cell(page, 'Emma (theirs)', 'title').waitFor();
        await waitUntil(async () => (await first.client.list())[6]?.title === 'Emma (theirs)');
      }
      await keyboard.edit(page, 'Emma (theirs)', 'author', 'Austen');
      await waitUntil(async () => (await first.client.list())[6]?.author === 'Austen');
      assert.deepEqual(second.complaints(), []);
    });
  }

  test('a person who continues to type is also asked, and the text in the next field is kept', async (context) => {
    const { first, second } = await openTwo(context, openProcess);
    const { page } = second;
    await keyboard.edit(first.page, 'Emma', 'title', 'Emma (theirs)');
    await waitUntil(async () => (await first.client.list())[6]?.title === 'Emma (theirs)');
    await cell(page, 'Emma', 'title').click();
    await page.keyboard.press('F2');
    await page.keyboard.type('Emma (mine)');
    first.service.process.kill('SIGSTOP'); // so that the answer comes later than the letters
    context.after(() => first.service.process.kill('SIGCONT'));
    await page.keyboard.press('Tab');
    await page.keyboard.type('Aust');
    first.service.process.kill('SIGCONT');
    await conflict(page).getByRole('button', { name: 'Keep theirs' }).click();
    await focused(page.getByRole('textbox', { name: /^Author of / }));
    await conflict(page).waitFor({ state: 'hidden' });
    await page.keyboard.type('en');
    await page.keyboard.press('Enter');
    await waitUntil(async () => (await first.client.list())[6]?.author === 'Austen');
    assert.equal((await first.client.list())[6]?.title, 'Emma (theirs)');
  });

  test('both people had the same idea: nobody is asked', async (context) => {
    const { first, second } = await openTwo(context, openCatalogue);
    await keyboard.edit(first.page, 'Emma', 'year', '1816');
    await waitUntil(async () => (await first.client.list())[6]?.year === 1816);
    await keyboard.edit(second.page, 'Emma', 'year', '1816');
    await said(second.page, 'Saved');
    assert.equal(await conflict(second.page).isVisible(), false);
  });

  test('a book that somebody else has deleted: the typed text is shown, and can be put back', async (context) => {
    const { first, second } = await openTwo(context, openCatalogue);
    const { page } = second;
    await keyboard.delete(first.page, 'Emma');
    await keyboard.search(first.page, 'hobbit');
    await waitUntil(async () => (await first.client.list()).length === BOOKS.length - 1);
    await keyboard.edit(page, 'Emma', 'title', 'Emma, a novel');
    await message(page, /^Somebody else has deleted “Emma, a novel”/).waitFor();
    await shown(
      page,
      BY_AUTHOR.map((title) => (title === 'Emma' ? 'Emma, a novel' : title)),
    );
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);
    await keyboard.press(page, 'Emma, a novel', 'Put back');
    await said(page, '“Emma, a novel” is back, as a new entry.');
    assert.deepEqual((await first.client.list()).at(-1), {
      id: 11,
      title: 'Emma, a novel',
      author: 'Jane Austen',
      year: 1815,
    });
    assert.deepEqual(second.complaints(), []);
  });

  test('two people delete one book: it is gone once, and nobody is alarmed', async (context) => {
    const { first, second } = await openTwo(context, openCatalogue);
    await keyboard.delete(first.page, 'Emma');
    await keyboard.delete(second.page, 'Emma');
    for (const { page } of [first, second]) {
      await keyboard.search(page, 'austen');
      await shown(page, ['Pride and Prejudice']);
      assert.equal(await message(page, /was not deleted/).count(), 0);
    }
    assert.equal((await first.client.list()).length, BOOKS.length - 1);
  });

  test('a book that somebody else has changed is not deleted', async (context) => {
    const { first, second } = await openTwo(context, openCatalogue);
    const { page } = second;
    await mouse.delete(page, 'Emma');
    await keyboard.edit(first.page, 'Emma', 'title', 'Emma (theirs)');
    await waitUntil(async () => (await first.client.list())[6]?.title === 'Emma (theirs)');
    await keyboard.search(page, 'austen');
    await message(page, '“Emma” was not deleted: somebody else has changed it.').waitFor();
    await shown(page, ['Emma (theirs)', 'Pride and Prejudice']);
    assert.equal((await first.client.list()).length, BOOKS.length);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+z');
    await said(page, 'There is nothing to undo');
    assert.equal((await first.client.list()).length, BOOKS.length);
  });

  test('a book that somebody else has changed before is kept at once, without the time for Undo', async (context) => {
    const { page, client } = await openCatalogue(context);
    const theirs = { body: { title: 'Emma (theirs)' } };
    assert.equal((await client.request('PUT', '/book/7', theirs)).status, 200);
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    await keyboard.delete(page, 'Emma');
    await message(page, '“Emma” was not deleted: somebody else has changed it.').waitFor();
    await cell(page, 'Emma (theirs)', 'title').waitFor();
    await row(page, 'Emma (theirs)').getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
    assert.equal((await client.list()).length, BOOKS.length);
  });

  test('Control Z does not undo what somebody else did to the same field', async (context) => {
    const { first, second } = await openTwo(context, openCatalogue);
    const { page } = second;
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await waitUntil(async () => (await first.client.list())[6]?.year === 1816);
    await keyboard.search(first.page, 'emma');
    await shown(first.page, ['Emma']);
    await keyboard.edit(first.page, 'Emma', 'year', '1820');
    await waitUntil(async () => (await first.client.list())[6]?.year === 1820);
    await page.keyboard.press('Control+z');
    await conflict(page).getByRole('row', { name: 'Year 1816 1820 1815' }).waitFor();
    assert.equal((await first.client.list())[6]?.year, 1820);
    await conflict(page).getByRole('button', { name: 'Keep theirs' }).click();
    await waitUntil(async () => (await cell(page, 'Emma', 'year').textContent()) === '1820');
    assert.equal((await first.client.list())[6]?.year, 1820);
  });

  test('hostile texts are shown as text, found, edited and deleted like any other', async (context) => {
    const books = [
      {
        title: '<img src=x onerror="document.title=1">',
        author: '<script>document.title=2</script>',
        year: 1,
      },
      { title: 'ספר בעברית (1984) abc', author: '\u202eright to left', year: 2 },
      { title: '𝕬 𐐷 👩‍👩‍👧‍👦 book', author: 'emoji', year: 3 },
      { title: 'x'.repeat(10_000), author: 'y'.repeat(10_000), year: 4 },
      { title: 'two\nlines\tand a tab', author: ' \n ', year: 5 },
      { title: '{{7*7}} %s &amp; &lt;b&gt;', author: "'; drop table books; --", year: 6 },
      { title: '', author: '', year: 0 },
    ];
    const { page, client, complaints } = await openCatalogue(context, { books });
    await page.getByRole('button', { name: 'Newest first' }).click();
    const shownAs = (title: string) => title.replace('\n', ' ') || 'no title';
    const shownTitles = books.map(({ title }) => shownAs(title)).toReversed();
    await shown(page, shownTitles);
    assert.equal(await page.getByRole('img').count(), 0);
    assert.equal(await page.title(), 'Book catalogue');
    for (const [index, { title, author }] of books.entries()) {
      const place = page.getByRole('row').nth(books.length - index);
      assert.equal(await place.getByRole('rowheader').textContent(), shownAs(title));
      if (author.trim() !== '') assert.equal(await place.getByRole('gridcell').first().textContent(), author);
      const { width } = (await place.boundingBox()) ?? { width: 0 };
      assert.ok(width > 0 && width <= 1280, String(width));
    }
    // As a search, in the title of the page, in the count, in the dialogs, in messages.
    await searchField(page).fill(books[0]?.title ?? '');
    await shown(page, [books[0]?.title ?? '']);
    await searchField(page).fill('<b>nothing</b>');
    await page.getByRole('heading', { name: 'Nothing matches “<b>nothing</b>”' }).waitFor();
    await searchField(page).fill('');
    await shown(page, shownTitles);
    const hostile = '<img src=y onerror=alert(1)>';
    await page.getByRole('rowheader', { name: 'two lines' }).click();
    await page.keyboard.press('F2');
    await page.getByRole('textbox', { name: /^Title of two/ }).fill(hostile);
    await page.keyboard.press('Enter');
    await cell(page, hostile, 'title').waitFor();
    await waitUntil(async () => (await client.list())[4]?.title === hostile);
    await keyboard.delete(page, hostile);
    await said(page, `Deleted ${hostile}.`);
    await keyboard.add(page, { title: hostile, author: '<b>bold</b>', year: '5' });
    await page.getByRole('region', { name: 'Messages' }).getByText(`“${hostile}” was added.`).waitFor();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('button', { name: 'Catalogue status' }).click();
    await page
      .getByRole('dialog')
      .getByRole('button', { name: `${hostile}, <b>bold</b>, 5` })
      .waitFor();
    assert.equal(await page.getByRole('img').count(), 0);
    assert.deepEqual(complaints(), []);
  });

  test('a text with a character that cannot be stored is refused in the cell', async (context) => {
    const { page, changes } = await openCatalogue(context);
    await cell(page, 'Emma', 'title').click();
    await page.keyboard.press('F2');
    await editor(page, 'Emma', 'title').fill('Em\u0000ma');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'a character that cannot be stored' }).waitFor();
    await focused(editor(page, 'Emma', 'title'));
    assert.deepEqual(changes, []);
  });
});
