// Several people on one book, on the librarians' page; and books whose texts are hostile. What follows in which order of
// their changes is in test/orders.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { BOOKS, cell, describePage, focused, row, said, searchField, shown, WAYS } from '../support/page.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard } = WAYS;

describePage('several people on the librarians’ page', ({ openCatalogue }) => {
  const conflict = (page: Page) => page.getByRole('dialog', { name: 'Somebody else has changed this book' });
  const message = (page: Page, text: string) =>
    page.getByRole('region', { name: 'Messages' }).getByText(text);

  test('two people change different fields of a book: both changes are kept', async (context) => {
    const { page, client } = await openCatalogue(context);
    await client.request('PUT', '/book/7', { body: { year: 1816 } });
    await keyboard.edit(page, 'Emma', 'title', 'Emma, a novel');
    await said(page, 'Saved');
    const both = { id: 7, title: 'Emma, a novel', author: 'Jane Austen', year: 1816 };
    assert.deepEqual((await client.list())[6], both);
    assert.equal(await cell(page, 'Emma, a novel', 'year').textContent(), '1816');
    assert.equal(await conflict(page).isVisible(), false);
  });

  test('two people change the same field: one is asked, now or later, and the text in the next field is kept', async (context) => {
    const held: (() => void)[] = [];
    let isAsked = false;
    const { page, client, complaints } = await openCatalogue(context, {
      front: ({ url }, _, forward) => {
        if (url === '/book/7' && !isAsked) held.push(forward);
        else forward();
      },
    });
    const stored = async () => (await client.list())[6];
    const theirs = (body: object) => client.request('PUT', '/book/7', { body });
    await theirs({ title: 'Emma (theirs)', year: 1817 });
    await cell(page, 'Emma', 'title').dblclick();
    await page.keyboard.type('Emma (mine)');
    await page.keyboard.press('Tab');
    await page.keyboard.type('Aust');
    await waitUntil(() => held.length === 1); // the answer comes after the letters
    isAsked = true;
    held[0]?.();
    await conflict(page).getByRole('row', { name: 'Title Emma Emma (theirs) Emma (mine)' }).waitFor();
    assert.equal(
      await conflict(page).getByRole('row').count(),
      2,
      'the header, and the one field in question',
    );
    assert.equal((await stored())?.title, 'Emma (theirs)');
    await conflict(page).getByRole('button', { name: 'Keep theirs' }).click();
    const author = page.getByRole('textbox', { name: /^Author of / });
    await focused(author);
    assert.equal(await author.inputValue(), 'Aust');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+z');
    await said(page, 'There is nothing to undo');
    await theirs({ year: 1820 });
    await keyboard.edit(page, 'Emma (theirs)', 'year', '1818');
    await conflict(page).getByRole('row', { name: 'Year 1817 1820 1818' }).waitFor();
    await page.keyboard.press('Escape'); // later
    await keyboard.press(page, 'Emma (theirs)', 'Compare');
    await conflict(page).getByRole('button', { name: 'Keep yours' }).click();
    await waitUntil(async () => (await stored())?.year === 1818);
    await row(page, 'Emma (theirs)').getByRole('button', { name: 'Compare' }).waitFor({ state: 'detached' });
    await page.keyboard.press('Control+z');
    await waitUntil(async () => (await stored())?.year === 1820);
    assert.deepEqual(complaints(), []);
  });

  test('a book that somebody else has deleted: the typed text is shown, and stored once the book is back', async (context) => {
    const { page, client } = await openCatalogue(context);
    await client.request('DELETE', '/book/7');
    await keyboard.edit(page, 'Emma', 'title', 'Emma, a novel');
    await message(page, 'Somebody else has deleted “Emma”').waitFor();
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);
    await keyboard.press(page, 'Emma, a novel', 'Undo');
    await said(page, 'Saved');
    const again = { id: 7, title: 'Emma, a novel', author: 'Jane Austen', year: 1815 };
    assert.deepEqual((await client.list())[6], again);
  });

  test('a book that somebody else has changed before is not deleted', async (context) => {
    const { page, client } = await openCatalogue(context);
    await client.request('PUT', '/book/7', { body: { title: 'Emma (theirs)' } });
    await keyboard.delete(page, 'Emma');
    await message(page, '“Emma” was not deleted: somebody else has changed it.').waitFor();
    await cell(page, 'Emma (theirs)', 'title').waitFor();
    await row(page, 'Emma (theirs)').getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
    assert.equal((await client.list()).length, BOOKS.length);
  });

  test('hostile texts are shown as text, found, edited and deleted like any other', async (context) => {
    const hostile = '<img src=x onerror="document.title=1">';
    const books = [
      { title: hostile, author: '<script>document.title=2</script>', year: 1 },
      { title: 'ספר בעברית (1984) abc', author: '\u202eright to left', year: 2 },
      { title: 'x'.repeat(10_000), author: 'y'.repeat(10_000), year: 4 },
      { title: 'two\nlines\tand a tab', author: "{{7*7}} %s &amp;'; drop table books; --", year: 5 },
      { title: '', author: '', year: 0 },
    ];
    const { page, client, changes, complaints } = await openCatalogue(context, { books, query: '?sort=-id' });
    const shownAs = ({ title }: { title: string }) => title.replace('\n', ' ') || 'no title';
    await shown(page, books.map(shownAs).toReversed());
    for (const book of books) {
      const place = page
        .getByRole('row')
        .filter({ has: page.getByRole('rowheader', { name: shownAs(book).slice(0, 9) }) });
      assert.equal(await place.getByRole('gridcell').first().textContent(), book.author || 'no author');
      assert.ok(((await place.boundingBox())?.width ?? 9999) <= 1280);
    }
    await searchField(page).fill('<b>nothing</b>');
    await page.getByRole('heading', { name: 'Nothing matches “<b>nothing</b>”' }).waitFor();
    await searchField(page).fill(hostile);
    await shown(page, [hostile]);
    await keyboard.delete(page, hostile);
    await said(page, `Deleted ${hostile}.`);
    await searchField(page).fill('lines');
    await shown(page, ['two lines\tand a tab']);
    await page.getByRole('rowheader', { name: 'two lines' }).dblclick();
    await page.keyboard.press('Enter'); // a field has no line breaks: nothing was changed
    await page.keyboard.press('F2');
    await page.getByRole('textbox', { name: /^Title of two/ }).fill(hostile);
    await page.keyboard.press('Enter');
    await waitUntil(async () => (await client.list())[2]?.title === hostile);
    assert.equal(changes.filter((change) => change.startsWith('PUT')).length, 1);
    await keyboard.add(page, { title: hostile, author: '<b>bold</b>', year: '5' });
    await message(page, `“${hostile}” was added.`).waitFor();
    assert.equal(await page.getByRole('img').count(), 0);
    assert.equal(await page.title(), 'lines – Book catalogue');
    assert.deepEqual(complaints(), []);
  });
});
