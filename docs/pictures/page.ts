// Owns: the pictures of the librarians' page in the README and in docs/page.md. It starts the service on a store with the
// books of the demo, does in a browser what a librarian does, and takes the pictures.
// `npm run screenshots` takes them again. It needs Debian's packages chromium, fonts-noto-core and fonts-noto-cjk: with
// other fonts, the pictures look different.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { openPage, startBrowser } from '../../test/support/browser.ts';
import { cell, counted, editor, listed, logIn, searchField } from '../../test/support/page.ts';
import { COMMAND } from '../../test/support/repository.ts';
import { SQLITE, startServiceProcess } from '../../test/support/service.ts';

/** Those of `book-catalogue demo`. */
const BOOKS = fileURLToPath(new URL('../../src/demo/books.csv', import.meta.url));

/** Points on the screen for each pixel of the page. */
const SCALE = 1.5;

const DESK = { viewport: { width: 1180, height: 720 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** What a reader has saved from another catalogue: two books are here already, and two rows need a correction. */
const EXPORT = `Book Id,Title,Author,ISBN13,My Rating,Year Published,Original Publication Year,Exclusive Shelf
1885,Pride and Prejudice,Jane Austen,,5,2000,1813,read
19089,Middlemarch,George Eliot,,5,2003,MDCCCLXXI,read
6969,Emma,Jane Austen,,4,2003,1815,read
17690,The Trial,Franz Kafka,,4,1998,1925,read
12857,Kokoro,Natsume Sōseki,,5,1957,1914,read
226378,A Hero of Our Time,Mikhail Lermontov,,,2001,1840,to-read
15823480,Anna Karenina,Leo Tolstoy,,5,2012,1878,read
254308,Oblomov,Ivan Goncharov,,,2005,18??,to-read
49455,The House of the Dead,Fyodor Dostoevsky,,4,2004,1862,read
27208,Eugene Onegin,Alexander Pushkin,,3,2003,1833,read
`;

/** A double, as such a file may bring one. */
const DOUBLE = { title: 'Emma', author: 'Jane Austen', year: 2003 };

/** @param name of the picture. */
async function take(
  browser: Browser,
  url: string,
  name: string,
  options: BrowserContextOptions,
  work: (page: Page) => Promise<void>,
): Promise<void> {
  const { page } = await openPage(browser, url, { deviceScaleFactor: SCALE, ...options });
  await logIn(page);
  await listed(page);
  await page.mouse.move(0, 0); // or the row under it looks different
  await work(page);
  const path = fileURLToPath(new URL(`./page-${name}.png`, import.meta.url));
  await page.screenshot({ path, animations: 'disabled' });
  await page.context().close();
}

const dbUrl = await SQLITE.freshUrl();
const [program, ...args] = COMMAND;
await promisify(execFile)(program, [...args, 'import', BOOKS], { env: { DB_URL: dbUrl } });
const service = await startServiceProcess(dbUrl);
const url = `${service.pageUrl}/`;
const browser = await startBrowser();
try {
  await take(browser, `${url}?sort=-year`, 'desk', DESK, async (page) => {
    const title = 'Orlando';
    await cell(page, title, 'year').dblclick();
    await editor(page, title, 'year').fill('19??');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: '19??' }).waitFor();
  });
  await take(browser, url, 'import', { ...DESK, colorScheme: 'dark' }, async (page) => {
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    const file = { name: 'goodreads_library_export.csv', mimeType: 'text/csv', buffer: Buffer.from(EXPORT) };
    await page.locator('input[type=file]').setInputFiles(file);
    await page.getByRole('button', { name: 'cannot be read' }).click();
  });
  await take(browser, `${url}?sort=-year`, 'phone', PHONE, async () => {});
  // The last, since leaving the page sends the deletion.
  await take(browser, url, 'deleted', DESK, async (page) => {
    await service.client.create(DOUBLE);
    await searchField(page).pressSequentially('jane');
    await counted(page, '9 books found');
    const double = page.getByRole('row').filter({ hasText: `${DOUBLE.year}` });
    await double.hover();
    await double.getByRole('button', { name: 'Delete' }).click();
    await double.getByRole('button', { name: 'Undo' }).waitFor();
  });
} finally {
  await browser.close();
  await service.stop();
}
