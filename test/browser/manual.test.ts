// The manual in a real browser, with the site that `npm run build:site` has made of this clone's documents.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PAGES } from '../../site/pages.ts';
import { COLOURS, violations } from '../support/accessibility.ts';
import { openPage, startBrowser } from '../support/browser.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { SQLITE } from '../support/service.ts';

/** Tables of the documents may have a column without a name; VitePress's button shows its key beside its name. */
const UNCHECKED = ['th:empty', '.DocSearch-Button'];

let service: CommandHere;
let operations: string;
before(async () => {
  const own = { PORT: '0', ADMIN_PORT: '0', PAGE_PORT: 'off', LOG_LEVEL: 'info' };
  service = await startHere({ ...own, DB_URL: await SQLITE.freshUrl() });
  operations = operationsOf(service).url;
});
after(() => service?.stop());

test('a reader comes from /docs, searches for a word, follows the first page that is found, and chooses dark', async (context) => {
  const browser = await startBrowser();
  context.after(() => browser.close());
  const { page, asked, complaints } = await openPage(browser, `${operations}/docs`, { colorScheme: 'light' });
  const scheme = () => page.evaluate('getComputedStyle(document.documentElement).colorScheme');
  const link = page.getByRole('link', { name: 'Manual' }); // which would open another tab
  await page.goto(String(await link.getAttribute('href')));
  await page.getByRole('heading', { name: 'Book Catalogue', level: 1 }).waitFor();
  assert.deepEqual(await violations(page, UNCHECKED), []);

  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('searchbox').fill('Patroni');
  const found = page.getByRole('option', { name: /^PostgreSQL/ });
  await found.first().click();
  await page.getByRole('heading', { name: 'PostgreSQL', level: 1 }).waitFor();
  assert.equal(new URL(page.url()).pathname, '/manual/docs/postgresql.html');
  assert.equal(await scheme(), 'light');
  assert.deepEqual(await violations(page, UNCHECKED), []);

  await page.getByRole('switch').first().click();
  assert.equal(await scheme(), 'dark');
  await page.reload();
  assert.equal(await scheme(), 'dark');
  assert.deepEqual(await violations(page, UNCHECKED, COLOURS), []);
  await page.setViewportSize({ width: 360, height: 640 });
  await page.goto(`${operations}/manual/docs/configuration.html`);
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  assert.deepEqual(complaints, []);
  assert.deepEqual([...asked], [new URL(operations).host]);
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
    const isHtml = answer.headers.get('content-type')?.startsWith('text/html');
    if (!isHtml || !path.startsWith('/manual/')) continue;
    for (const [, address = ''] of text.matchAll(/ (?:href|src)="([^"]*)"/g)) {
      const to = new URL(address.replaceAll('&amp;', '&'), `${operations}${path}`);
      if (to.origin !== operations) continue;
      links.push({ from: path, to });
      paths.add(to.pathname); // also visited
    }
  }
  const lost = links.filter(({ to: { pathname, hash } }) => {
    return hash !== '' && !texts.get(pathname)?.includes(` id="${decodeURIComponent(hash.slice(1))}"`);
  });
  assert.deepEqual(
    lost.map(({ from, to }) => `${from} links to ${to.pathname}${to.hash}`),
    [],
  );
  const pages = [...texts.keys()].filter((path) => /^\/manual\/(.*\/|.*\.html)?$/.test(path));
  assert.ok(paths.has('/docs'), 'the manual leads back to /docs');
  assert.equal(pages.length, PAGES.length);
});
