// Texts on the librarians' page, in Chromium: long ones are read without editing, those of other scripts stand on their side,
// nothing of the catalogue is translated, and texts can be dragged into fields.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { cell, describePage, editor, focused, row, said, searchField, sent, WAYS } from '../support/page.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard, mouse } = WAYS;

/** Longer than its cell on a narrow page and shorter on a wide one, whatever fonts the machine has. */
const LONG = `The ${'very '.repeat(14)}long title`;
const HEBREW = { title: 'שלום!', author: 'ש"י עגנון', year: 1930 };

/** Every text on the page that a translator must leave alone, of those that hold a word. */
const TRANSLATED = `(word) => [...document.querySelectorAll('body *')]
  .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.includes(word)))
  .filter((one) => one.translate && one.checkVisibility() && one.id !== 'announcement')
  .map((one) => one.outerHTML)`;

describePage('texts on the librarians’ page', ({ openCatalogue }) => {
  test('a refused row with two faults names the second one once the first is corrected', async (context) => {
    const { page } = await openCatalogue(context, { books: [] });
    const buffer = Buffer.from('title,author,x\n\xff,\xff,\xc3\xa9\n', 'latin1');
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByLabel('Choose a file').setInputFiles({ name: 'a.csv', mimeType: 'text/csv', buffer });
    await page.getByRole('button', { name: '1 refused' }).click();
    await page.getByRole('textbox', { name: 'title, line 2' }).fill('Emma');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'author has a damaged character' }).waitFor();
  });

  test('a title that is cut has a tooltip, and is shown in full while its cell has the focus; a short one is not', async (context) => {
    const books = [LONG, 'Short', ...Array.from({ length: 30 }, (_, at) => `Z ${at} ${LONG}`)];
    const { page, complaints } = await openCatalogue(context, {
      books: books.map((title) => ({ title, author: 'A', year: 0 })),
      query: '?sort=id',
    });
    await page.setViewportSize({ width: 1000, height: 700 });
    const tooltip = (title: string) => cell(page, title, 'title').getByTitle(title, { exact: true });
    await tooltip(LONG).waitFor();
    assert.equal(await tooltip('Short').count(), 0);
    await searchField(page).press('ArrowDown');
    await focused(cell(page, LONG, 'title'));
    const isInSight = async () => (await page.evaluate(inSight)) === true;
    assert.equal(await isInSight(), true, 'below its row');
    const low = `Z 8 ${LONG}`;
    for (let step = 0; step < 10; step += 1) await page.keyboard.press('ArrowDown');
    await focused(cell(page, low, 'title'));
    await waitUntil(isInSight);
    await page.setViewportSize({ width: 1800, height: 700 });
    await tooltip(LONG).waitFor({ state: 'detached' });
    assert.deepEqual(complaints(), []);
  });

  test('a text from right to left begins on the right wherever it is written or shown', async (context) => {
    const { page } = await openCatalogue(context, { books: [HEBREW] });
    const isFromRight = (place: Locator) =>
      place.evaluate((one) => one.ownerDocument.defaultView.getComputedStyle(one).direction === 'rtl');
    assert.ok(await isFromRight(cell(page, HEBREW.title, 'title').getByText(HEBREW.title)));
    await cell(page, HEBREW.title, 'title').dblclick();
    assert.ok(await isFromRight(editor(page, HEBREW.title, 'title')));
    await searchField(page).fill(HEBREW.title);
    assert.ok(await isFromRight(searchField(page)));
    await page.keyboard.press('Insert');
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    for (const label of ['Title', 'Author']) {
      await dialog.getByLabel(label).fill(HEBREW.title);
      assert.ok(await isFromRight(dialog.getByLabel(label)), label);
    }
    for (const field of await page.locator('input:not([type]), input[type=text], textarea').all())
      assert.equal(await field.getAttribute('dir'), 'auto', await field.evaluate((one) => one.outerHTML));
  });

  test('nothing of the catalogue or of a file is translated: cells, messages, duplicates, rows of files', async (context) => {
    const word = 'Schmetterling';
    const book = { title: word, author: `${word}s`, year: 1901 };
    const { page } = await openCatalogue(context, { books: [book] });
    const check = async (where: string) => {
      await page.getByText(word).filter({ visible: true }).first().waitFor();
      assert.deepEqual(await page.evaluate(`(${TRANSLATED})('${word}')`), [], where);
    };
    await check('the list');
    await keyboard.edit(page, word, 'year', '1902');
    await said(page, 'Saved');
    await page.keyboard.press('Control+z');
    await page.getByRole('region', { name: 'Messages' }).getByText(word).waitFor();
    await check('a message');
    await mouse.search(page, `${word}x`);
    await check('nothing found');
    await page.keyboard.press('Insert');
    await page.getByRole('dialog').getByLabel('Title').fill(word);
    await page.getByText('Already here').waitFor();
    await check('what is here already');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    const csv = `${word},year\n${word},1901\n${word},x\n`;
    const file = { name: `${word}.csv`, mimeType: 'text/csv', buffer: Buffer.from(csv) };
    await page.getByLabel('Choose a file').setInputFiles(file);
    await page.getByRole('combobox', { name: `Column ${word}` }).selectOption('Title');
    await page.getByRole('button', { name: '1 refused' }).click();
    await check('an import');
  });

  test('a text is dropped into a field of the list, of the search and of a dialog, and nowhere else', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page } = catalogue;
    await cell(page, 'Emma', 'author').dblclick();
    assert.equal(await dropText(editor(page, 'Emma', 'author')), 'taken');
    assert.equal(await dropText(searchField(page)), 'taken');
    assert.equal(await dropText(row(page, 'It')), 'refused');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Insert');
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    for (const label of ['Title', 'Author', 'Year'])
      assert.equal(await dropText(dialog.getByLabel(label)), 'taken', label);
    await sent(catalogue, []);
  });
});

/** Whether all of the text that belongs to the cell with the focus is inside of the list. */
const inSight = `(() => {
  const cell = document.activeElement;
  const { content, height, insetBlockStart } = getComputedStyle(cell.querySelector('.text'), '::after');
  if (!content.includes('long title')) return false;
  const top = cell.getBoundingClientRect().top + parseFloat(insetBlockStart);
  const list = document.querySelector('#grid .body').getBoundingClientRect();
  return top >= list.top && top + parseFloat(height) <= list.bottom;
})()`;

/** @returns whether the browser itself puts a text that is dropped there into the field. */
async function dropText(place: Locator): Promise<string> {
  const page: Page = place.page();
  const dataTransfer = await page.evaluateHandle(
    `(() => { const one = new DataTransfer(); one.setData('text/plain', 'dropped'); return one; })()`,
  );
  await page.evaluate(
    `globalThis.drops = []; addEventListener('drop', (event) => drops.push(event.defaultPrevented), { once: true })`,
  );
  await place.dispatchEvent('dragover', { dataTransfer });
  await place.dispatchEvent('drop', { dataTransfer });
  return (await page.evaluate('drops.pop()')) ? 'refused' : 'taken';
}
