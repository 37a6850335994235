// The page /docs in a real browser: a person logs in and calls the service; what the library that draws it keeps of axe's
// rules.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Locator, Page } from 'playwright-core';
import { violations } from '../support/accessibility.ts';
import { openPage, startBrowser } from '../support/browser.ts';
import { Client } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { SQLITE } from '../support/service.ts';

let browser: Browser;
let service: CommandHere;
before(async () => {
  browser = await startBrowser();
  const dbUrl = await SQLITE.freshUrl();
  service = await startHere({ PORT: '0', ADMIN_PORT: '0', DB_URL: dbUrl, LOG_LEVEL: 'info' });
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

/** The rules of axe that Swagger UI itself breaks. */
const BROKEN_BY_LIBRARY = [
  'color-contrast',
  'heading-order',
  'label',
  'landmark-unique',
  'region',
  'select-name',
];

/** Opens a call, once its references are resolved, and sends it as it is prefilled. */
async function call(page: Page, method: string, path: string): Promise<Locator> {
  const spelled = path.replace(/[{}]/g, '\\$&').replaceAll('/', '\\u200b?/\\u200b?');
  const summary = page.getByRole('button', { name: new RegExp(`^${method} ${spelled} `) });
  const operation = page.locator('.opblock').filter({ has: summary });
  const execute = operation.getByRole('button', { name: 'Execute' });
  if (!(await execute.isVisible())) await summary.press('Enter');
  await operation.getByPlaceholder('X-Request-Id').waitFor();
  await execute.press('Enter');
  await operation.locator('.live-responses-table').waitFor();
  return operation;
}

test('rule 31: by keyboard alone, a person gets a token as the page suggests, and stores a book with it', async (context) => {
  const { page, asked, complaints } = await openPage(browser, `${operationsOf(service).url}/docs`);
  context.after(() => page.context().close());
  await call(page, 'POST', '/token');
  const client = await Client.logIn(service, { username: 'admin', password: 'password' });
  const count = (await client.list()).length;
  const answer = await call(page, 'POST', '/book');
  await answer.getByRole('cell', { name: '201' }).first().waitFor();
  assert.equal((await client.list()).length, count + 1);
  const hosts = [service.url, operationsOf(service).url].map((url) => new URL(url).host);
  assert.deepEqual([...asked].toSorted(), hosts.toSorted());
  assert.deepEqual(complaints, []);
  assert.deepEqual(await page.context().storageState(), { cookies: [], origins: [] });

  const forLibrarians = page.waitForEvent('popup');
  await page.getByRole('link', { name: 'The page for librarians' }).press('Enter');
  await (await forLibrarians).getByRole('heading', { name: 'Book catalogue', level: 1 }).waitFor();
});

test('a token can be written into the box of the library instead, and it is dark where the system is', async (context) => {
  const { page } = await openPage(browser, `${operationsOf(service).url}/docs`, { colorScheme: 'dark' });
  context.after(() => page.context().close());
  const { token } = await Client.logIn(service, { username: 'admin', password: 'password' });
  await page.getByRole('button', { name: 'Authorize', exact: true }).press('Enter');
  await page.getByRole('textbox', { name: 'Value:' }).fill(token);
  await page.getByRole('button', { name: 'Apply credentials' }).press('Enter');
  await page.getByRole('button', { name: 'Close', exact: true }).press('Enter');
  const answer = await call(page, 'GET', '/books');
  await answer.getByRole('cell', { name: '200' }).first().waitFor();
  assert.match(String(await page.locator('html').getAttribute('class')), /dark-mode/);
});

test('axe finds no more than the faults of the library', async (context) => {
  const { page } = await openPage(browser, `${operationsOf(service).url}/docs`);
  context.after(() => page.context().close());
  await call(page, 'POST', '/token');
  await call(page, 'GET', '/books');
  await page.getByRole('button', { name: 'Schemas' }).click();
  const found = await violations(page);
  const isNew = (line: string) => !BROKEN_BY_LIBRARY.some((rule) => line.startsWith(`${rule}:`));
  assert.deepEqual(found.filter(isNew), []);
});
