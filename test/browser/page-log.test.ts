// The librarians' page and the log of changes: what changed, and its undo; the history of a book; what others change meanwhile.
// What the log has, and what an undo does to books, is in test/stores.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  cell,
  choose,
  counted,
  describePage,
  focused,
  grid,
  logIn,
  row,
  said,
  searchField,
  sent,
  shown,
  WAYS,
} from '../support/page.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard, mouse } = WAYS;

const DAY = 86_400_000;

const dialog = (page: Page) => page.getByRole('dialog');
const line = (page: Page, text: string) =>
  dialog(page).getByRole('listitem').filter({ has: page.getByRole('button', { name: `Undo: ${text}`, exact: true }) });
const message = (page: Page, text: string) => page.getByRole('region', { name: 'Messages' }).getByText(text);

async function openLog(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'What changed' }).click();
  await dialog(page).getByRole('heading', { name: 'What changed' }).waitFor();
}

describePage('the log of changes on the page', ({ openCatalogue, openDesk }) => {
  test('a person sees what an import has done, shows its books, takes it back, and takes that back', async (context) => {
    const { page, client, complaints } = await openCatalogue(context);
    const file = 'title,author,year\nPersuasion,Jane Austen,1817\nSanditon,Jane Austen,\n';
    await client.request('POST', '/import?name=austen.csv', { raw: file });
    await openLog(page);
  });
});
