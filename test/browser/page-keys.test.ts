// Keys on the librarians' page, in Chromium: undo, other layouts, and input methods. Which key means what in which layout is
// in test/page/keyboard.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CDPSession, Locator } from 'playwright-core';
import {
  BOOKS,
  cell,
  describePage,
  editor,
  focused,
  logIn,
  row,
  said,
  searchField,
  sent,
  WAYS,
} from '../support/page.ts';
import { SQLITE, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard } = WAYS;

/** Codes of the devices that send no key, but text that an input method makes of them. */
const OF_INPUT_METHOD = 229;

describePage('keys on the librarians’ page', ({ openCatalogue, openDesk }) => {
  test('in a field, Control Z is the field’s own; Control K saves the field', async (context) => {
    const { page, client } = await openCatalogue(context);
    const undo = row(page, 'Don Quijote').getByRole('button', { name: 'Undo' });
    await keyboard.delete(page, 'Don Quijote');
    await cell(page, 'Emma', 'year').dblclick();
    await page.keyboard.type('x');
    await page.keyboard.press('Control+z');
    assert.equal(await editor(page, 'Emma', 'year').inputValue(), '1815');
    await editor(page, 'Emma', 'year').fill('1817');
    await page.keyboard.press('Control+k');
    await focused(searchField(page));
    await waitUntil(async () => (await client.list())[6]?.year === 1817);
    await undo.click();
    await undo.waitFor({ state: 'detached' });
    assert.equal((await client.list()).length, BOOKS.length);
  });

  test('Control Z on a Russian keyboard undoes the change of a book, and Control K goes to the search', async (context) => {
    const { page, client } = await openCatalogue(context);
    await keyboard.search(page, 'emma');
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await said(page, 'Saved');
    await focused(cell(page, 'Emma', 'year'));
    const devices = await page.context().newCDPSession(page);
    await pressWith(devices, 'я', 'KeyZ', 90, 2);
    await waitUntil(async () => (await client.list())[6]?.year === 1815);
    assert.equal(await searchField(page).inputValue(), 'emma');
    await pressWith(devices, 'л', 'KeyK', 75, 2);
    await focused(searchField(page));
  });

  test('Control Z undoes typing only in the field that has the focus, also while a dialog is open', async (context) => {
    const { page } = await openCatalogue(context);
    await page.keyboard.type('emm');
    await keyboard.edit(page, 'Emma', 'year', '1815'); // as it was
    await cell(page, 'Emma', 'year').dblclick();
    const isLeft = async (how: string) => {
      for (const key of ['Control+z', 'Control+Shift+z', 'Control+y', 'Control+z'])
        await page.keyboard.press(key);
      assert.equal(await searchField(page).inputValue(), 'emm', how);
    };
    await isLeft('in a cell in which nothing was typed');
    await focused(editor(page, 'Emma', 'year'));
    await page.keyboard.press('Escape');
    await isLeft('in the list');
    await said(page, 'There is nothing to undo');
    await page.keyboard.press('Insert');
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    await focused(dialog.getByLabel('Title'));
    await isLeft('in a field of a dialog');
    await dialog.getByRole('button', { name: 'Close' }).focus();
    await isLeft('on a button of a dialog');
    await page.keyboard.press('Escape');
    await searchField(page).focus();
    await waitUntil(async () => {
      await page.keyboard.press('Control+z'); // Chromium drops keys between the end of a dialog and its close event
      return (await searchField(page).inputValue()) === '';
    });
  });

  test('the keys that end a conversion do nothing else, in any field, in the order of Chromium and of Safari', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(() => service.stop());
    const desk = await openDesk(context, service.pageUrl);
    const { page } = desk;
    const devices = await page.context().newCDPSession(page);
    const login = page.getByRole('dialog', { name: 'Book catalogue' });
    const logins: string[] = [];
    page.on('request', (request) => void (request.method() === 'POST' && logins.push(request.url())));
    await login.getByLabel('Password').fill('x');
    await convert(devices, login.getByRole('textbox', { name: 'Name' }));
    assert.deepEqual(logins, []);
    await logIn(page);
    await page.getByText('No books yet').first().waitFor(); // nothing that follows the login moves the focus now
    await convert(devices, searchField(page));

    await page.keyboard.press('Insert');
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    for (const label of ['Author', 'Year', 'Title']) await convert(devices, dialog.getByLabel(label));
    await dialog.getByLabel('Year').fill('');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });

    await cell(page, '絵', 'title').dblclick();
    await editor(page, '絵', 'title').fill('');
    await convert(devices, editor(page, '絵', 'title'));
    await page.keyboard.type(' 2');
    await page.keyboard.press('Enter');
    await focused(cell(page, '絵 2', 'title'));
    await said(page, 'Saved');
    await sent(desk, ['POST /book {"title":"絵","author":"絵","year":0}', 'PUT /book/1 {"title":"絵 2"}']);

    await page.getByRole('button', { name: 'Import', exact: true }).click();
    const file = { name: 'a.csv', mimeType: 'text/csv', buffer: Buffer.from('title,year\nEmma,x\n') };
    await page.getByLabel('Choose a file').setInputFiles(file);
    await page.getByRole('button', { name: /^\d+ refused$/ }).click();
    const refused = page.getByRole('textbox', { name: 'year, line 2' });
    await refused.fill('');
    await convert(devices, refused);
    await page.getByRole('region', { name: 'Rows that are refused' }).waitFor();
  });

  test('a conversion that another place interrupts is stored as it stands', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page } = catalogue;
    const devices = await page.context().newCDPSession(page);
    await cell(page, 'Emma', 'title').dblclick();
    await devices.send('Input.imeSetComposition', { text: 'えま', selectionStart: 2, selectionEnd: 2 });
    await cell(page, 'It', 'title').click();
    await said(page, 'Saved');
    await sent(catalogue, ['PUT /book/7 {"title":"えま"}']);
  });
});

/** @param modifiers 2 is Control. */
async function pressWith(
  devices: CDPSession,
  key: string,
  code: string,
  windowsVirtualKeyCode: number,
  modifiers = 0,
): Promise<void> {
  for (const type of ['rawKeyDown', 'keyUp'] as const)
    await devices.send('Input.dispatchKeyEvent', { type, key, code, windowsVirtualKeyCode, modifiers });
}

/** Converts え to 絵 in a field, which keeps the focus. */
async function convert(devices: CDPSession, field: Locator): Promise<void> {
  await field.focus();
  const pressAll = async () => {
    for (const key of ['ArrowDown', 'Tab', 'Escape']) await pressWith(devices, key, key, OF_INPUT_METHOD);
    const enter = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: OF_INPUT_METHOD, text: '\r' };
    for (const type of ['keyDown', 'keyUp'] as const)
      await devices.send('Input.dispatchKeyEvent', { ...enter, type });
  };
  await field.selectText();
  await devices.send('Input.imeSetComposition', { text: 'え', selectionStart: 1, selectionEnd: 1 });
  await pressAll();
  await devices.send('Input.insertText', { text: '絵' });
  await pressAll(); // in Safari, the conversion has ended before them
  await field.page().evaluate("fetch('v/none')"); // until all that was sent before is known here
  assert.equal(await field.and(field.page().locator(':focus')).count(), 1, 'the field keeps the focus');
  assert.equal(await field.inputValue(), '絵');
}
