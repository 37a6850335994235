// The page /docs in a real browser: what it adds to the library that draws it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Locator, Page } from 'playwright-core';
import { COLOURS, violations } from '../support/accessibility.ts';
import { openPage, startBrowser } from '../support/browser.ts';
import { Client } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { SQLITE } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

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

const noticed = (page: Page, text: string) => page.getByRole('status').filter({ hasText: text }).waitFor();
const logIn = (page: Page) => page.getByRole('button', { name: 'Log in', exact: true }).press('Enter');

/** Opens a call, once its references are resolved, and sends it as it is prefilled. */
async function call(page: Page, method: string, path: string): Promise<Locator> {
  const spelled = path.replace(/[{}]/g, '\\$&').replaceAll('/', '\\u200b?/\\u200b?');
  const summary = page.getByRole('button', { name: new RegExp(`^${method} ${spelled} `) });
  const operation = page.locator('.opblock').filter({ has: summary });
  const execute = operation.getByRole('button', { name: 'Execute' });
  if (!(await execute.isVisible())) await summary.press('Enter');
  await operation.getByPlaceholder('X-Request-Id').waitFor();
  await execute.press('Enter');
  return operation;
}

test('rule 31: by keyboard alone, a person is told what is missing, logs in, and stores a book', async (context) => {
  const { page, asked } = await openPage(browser, `${operationsOf(service).url}/docs`);
  context.after(() => page.context().close());
  await call(page, 'GET', '/books');
  await noticed(page, 'This call needs a token: log in first.');
  await page.getByLabel('Password').fill('passwort');
  await logIn(page);
  await noticed(page, 'The username or the password is wrong.');
  await page.getByLabel('Password').fill('password');
  await logIn(page);
  await noticed(page, 'Logged in until ');
  const client = await Client.logIn(service, { username: 'admin', password: 'password' });
  const count = (await client.list()).length;
  await call(page, 'POST', '/book');
  await waitUntil(async () => (await client.list()).length === count + 1);
  const hosts = [service.url, operationsOf(service).url].map((url) => new URL(url).host);
  assert.deepEqual([...asked].toSorted(), hosts.toSorted());
  assert.deepEqual(await page.context().storageState(), { cookies: [], origins: [] });

  const refused = { status: 401, headers: { 'access-control-allow-origin': '*' }, body: '{}' };
  await page.route(`${service.url}/books`, (route) => route.fulfill(refused));
  await call(page, 'GET', '/books');
  await noticed(page, 'The token is no longer valid');
  await page.route(`${service.url}/token`, (route) => route.abort());
  await logIn(page);
  await noticed(page, `The service does not answer at ${service.url}.`);
  await page.getByRole('link', { name: 'For librarians' }).click();
  await page.getByRole('heading', { name: 'Book catalogue', level: 1 }).waitFor();
});

test('axe finds nothing, light or dark, and nothing is wider than a desk or a phone', async (context) => {
  const { page, complaints } = await openPage(browser, `${operationsOf(service).url}/docs`);
  context.after(() => page.context().close());
  await call(page, 'POST', '/token');
  await noticed(page, 'Logged in until ');
  for (const [method, path] of [
    ['POST', '/book'],
    ['GET', '/books'],
  ] as const) {
    const operation = await call(page, method, path);
    await operation.locator('.live-responses-table').waitFor();
  }
  await (await call(page, 'PUT', '/book/{id}')).getByRole('tab', { name: 'Schema' }).first().click(); // without the id
  await page.getByRole('button', { name: 'Schemas' }).click();
  const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
  const light = await background();
  assert.deepEqual(complaints, []);
  for (const width of [320, 360, 1280]) {
    await page.setViewportSize({ width, height: 720 });
    const own = () => page.evaluate('document.documentElement.scrollWidth');
    await waitUntil(async () => Number(await own()) <= width, undefined, own);
  }
  assert.deepEqual(await violations(page, [], [...COLOURS, 'scrollable-region-focusable']), []);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize({ width: 360, height: 720 });
  assert.deepEqual(await violations(page), []);
  assert.notEqual(await background(), light);
});
