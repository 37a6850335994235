// What a browser refuses under the policies of the service: on the librarians' page, whatever a script tries there, and on
// pages of other origins.

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { startFront } from '../support/front.ts';
import { type RunningService, SQLITE, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Allowed, which shows that an attempt can succeed. */
const OWN_CALL = `fetch('login.json')`;

/** Expressions of JavaScript: texts as programs and as markup, workers, policies, other origins. */
const ATTEMPTS = [
  OWN_CALL,
  `eval('1')`,
  `new Function('1')`,
  `setTimeout('1')`,
  `document.body.innerHTML = '<b>x</b>'`,
  `document.body.insertAdjacentHTML('beforeend', '<b>x</b>')`,
  `new DOMParser().parseFromString('<b>x</b>', 'text/html')`,
  `document.createElement('script').text = '1'`,
  `import('data:text/javascript,1')`,
  `document.createElement('script').src = 'main.js'`,
  `new Worker('v/x.js', { type: 'module' })`,
  `new Worker(URL.createObjectURL(new Blob(['1'])))`,
  `navigator.serviceWorker.register('main.js')`,
  `trustedTypes.createPolicy('other', {})`,
  `trustedTypes.createPolicy('default', {})`,
  `fetch(other)`,
  `import(other + '/x.js')`,
];

/** A program that returns what is allowed. Each attempt runs in a separate task, as in a page: a debugger may do more. */
function attemptAll(other: string): string {
  const attempts = ATTEMPTS.map((attempt) => `[${JSON.stringify(attempt)}, () => ${attempt}]`);
  return `(async (other) => {
    const allowed = [];
    for (const [name, attempt] of [${attempts}]) {
      const one = (ended) => Promise.try(attempt).then(() => allowed.push(name), () => {}).then(ended);
      await new Promise((ended) => setTimeout(() => one(ended)));
    }
    return allowed;
  })(${JSON.stringify(other)})`;
}

describe('policies in a browser', () => {
  let browser: Browser;
  let service: RunningService;
  before(async () => {
    browser = await startBrowser();
    service = await startTestService(await SQLITE.freshUrl());
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  async function open(context: TestContext, url: string): Promise<WatchedPage> {
    const watched = await openPage(browser, url);
    context.after(() => watched.page.context().close());
    return watched;
  }

  test('rule 34: a script can run no text, no other file and no other worker, and call no other origin', async (context) => {
    const { page, asked, complaints } = await open(context, service.pageUrl);
    await page.getByRole('dialog', { name: 'Book catalogue' }).waitFor();
    assert.deepEqual(complaints, [], 'the page itself needs nothing that is refused');
    assert.deepEqual([...asked], [new URL(service.pageUrl).host]);
    const other = await startFront(context, (_request, response) => {
      const headers = { 'content-type': 'text/javascript', 'access-control-allow-origin': '*' };
      response.writeHead(200, headers).end('export {};');
    });
    assert.deepEqual(await page.evaluate(attemptAll(other.url)), [OWN_CALL]);
    assert.deepEqual(other.seen, []);
  });

  test('rule 34: no page of another origin may show it in a frame', async (context) => {
    const foreign = await startFront(context, (_request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(`<iframe src="${service.pageUrl}"></iframe><p>foreign</p>`);
    });
    const { page, complaints } = await open(context, foreign.url.replace('127.0.0.1', 'localhost'));
    await waitUntil(() => complaints.some((text) => text.includes('frame-ancestors')));
    assert.doesNotMatch((await page.frames()[1]?.content()) ?? 'Book catalogue', /Book catalogue/);
  });

  test('rule 32: a page of an allowed origin stores a book; the same page under another name cannot', async (context) => {
    const site = await startFront(context, (_request, response) => {
      response.setHeader('content-type', 'text/html').end('<!doctype html>');
    });
    const allowed = `http://localhost:${site.port}`;
    const { url, client, stop } = await startTestService(await SQLITE.freshUrl(), { CORS_ORIGINS: allowed });
    context.after(stop);
    const headers = { authorization: client.token, 'idempotency-key': 'from-a-page' };
    const options = JSON.stringify({ method: 'POST', headers, body: '{"title":"From a page"}' });
    const store = `fetch('${url}/book', ${options}).then(({ headers }) => headers.get('etag'), String)`;
    assert.equal(await (await open(context, site.url)).page.evaluate(store), 'TypeError: Failed to fetch');
    assert.deepEqual(await client.list(), []);
    assert.match(await (await open(context, allowed)).page.evaluate(store), /^"[\w-]+"$/);
    assert.equal((await client.list())[0]?.title, 'From a page');
  });
});
