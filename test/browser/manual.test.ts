// The manual in a real browser, with the site that `npm run build:site` has made of this clone's documents.

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { PAGES } from '../../site/pages.ts';
import { violations } from '../support/accessibility.ts';
import { openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { operationsOf } from '../support/operations.ts';
import { type CommandProcess, SQLITE, startCommand } from '../support/service.ts';

/** Tables of the documents may have a column without a name; VitePress's button shows its key beside its name. */
const UNCHECKED = ['th:empty', '.DocSearch-Button'];

describe('/manual in a browser', () => {
  let browser: Browser;
  let service: CommandProcess;
  let operations: string;
  before(async () => {
    browser = await startBrowser();
    const own = { PORT: '0', ADMIN_PORT: '0', PAGE_PORT: 'off', LOG_LEVEL: 'info' };
    service = await startCommand({ ...own, DB_URL: await SQLITE.freshUrl() });
    operations = operationsOf(service).url;
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  async function open(
    context: TestContext,
    path: string,
    options: BrowserContextOptions = {},
  ): Promise<WatchedPage> {
    const watched = await openPage(browser, `${operations}${path}`, options);
    context.after(() => watched.page.context().close());
    return watched;
  }

  for (const [scheme, other] of [
    ['light', 'dark'],
    ['dark', 'light'],
  ] as const) {
    test(`${scheme}: a reader searches for a word, follows the first page that is found, and chooses ${other}`, async (context) => {
      const { page, asked, complaints } = await open(context, '/manual/', { colorScheme: scheme });
      const shown = () => page.evaluate('getComputedStyle(document.documentElement).colorScheme');
      await page.getByRole('heading', { name: 'Book Catalogue', level: 1 }).waitFor();
      assert.equal(await shown(), scheme);
      assert.deepEqual(await violations(page, UNCHECKED), []);

      await page.getByRole('button', { name: 'Search' }).click();
      await page.getByRole('searchbox').fill('Patroni');
      await page
        .getByRole('option', { name: /^PostgreSQL/ })
        .first()
        .click();
      await page.getByRole('heading', { name: 'PostgreSQL', level: 1 }).waitFor();
      assert.equal(new URL(page.url()).pathname, '/manual/docs/postgresql.html');
      assert.deepEqual(await violations(page, UNCHECKED), []);

      await page.getByRole('switch').first().click();
      assert.equal(await shown(), other);
      await page.reload();
      assert.equal(await shown(), other);
      await page.waitForLoadState('networkidle');
      assert.deepEqual(complaints, []);
      assert.deepEqual([...asked], [new URL(operations).host]);
    });
  }

  test('the manual and /docs lead to each other', async (context) => {
    const { page, complaints } = await open(context, '/docs');
    await page.getByRole('link', { name: 'Manual' }).click();
    await page.getByRole('heading', { name: 'Book Catalogue', level: 1 }).waitFor();
    await page.getByRole('link', { name: 'API', exact: true }).click();
    await page.waitForURL(`${operations}/docs`);
    await page.getByRole('link', { name: 'Manual' }).waitFor();
    assert.deepEqual(complaints, []);
  });

  test('on a phone nothing is wider than the screen', async (context) => {
    const viewport = { width: 360, height: 640 };
    const { page } = await open(context, '/manual/docs/configuration.html', { viewport, isMobile: true });
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  });

  test('every link leads to a page or a file that is served, and to an anchor of it', async () => {
    const texts = new Map<string, string>();
    const paths = new Set(['/manual/']);
    const links: { from: string; to: URL }[] = [];
    for (const path of paths) {
      const answer = await fetch(`${operations}${path}`);
      assert.equal(answer.status, 200, path);
      const text = await answer.text();
      texts.set(path, text);
      if (!path.startsWith('/manual/') || !answer.headers.get('content-type')?.startsWith('text/html'))
        continue;
      for (const [, address = ''] of text.matchAll(/ (?:href|src)="([^"]*)"/g)) {
        const to = new URL(address.replaceAll('&amp;', '&'), `${operations}${path}`);
        if (to.origin !== operations) continue;
        links.push({ from: path, to });
        paths.add(to.pathname); // also visited
      }
    }
    for (const { from, to } of links) {
      const anchor = decodeURIComponent(to.hash.slice(1));
      if (anchor === '') continue;
      assert.ok(
        texts.get(to.pathname)?.includes(` id="${anchor}"`),
        `${from} links to ${to.pathname}#${anchor}`,
      );
    }
    const pages = [...texts.keys()].filter((path) => /^\/manual\/(.*\/|.*\.html)?$/.test(path));
    assert.equal(pages.length, PAGES.length);
  });
});
