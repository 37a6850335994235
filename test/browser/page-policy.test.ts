// What a browser refuses under the policy of the librarians' page, whatever a script tries there. Titles name the rules of
// docs/contract.md.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { openPage, startBrowser } from '../support/browser.ts';
import { startFront } from '../support/front.ts';
import { type RunningService, SQLITE, startTestService } from '../support/service.ts';

/** Expressions of JavaScript; `other` is another origin. */
const ATTEMPTS: Readonly<Record<string, string>> = {
  'a text as a program': `eval('1')`,
  'a text as a function': `new Function('1')`,
  'a text as a timer': `setTimeout('1')`,
  'a text as markup': `document.body.innerHTML = '<b>x</b>'`,
  'a text as more markup': `document.body.insertAdjacentHTML('beforeend', '<b>x</b>')`,
  'a text as a document': `new DOMParser().parseFromString('<b>x</b>', 'text/html')`,
  'a text as a script': `document.createElement('script').text = '1'`,
  'a text as a module': `import('data:text/javascript,1')`,
  'a script of this origin': `document.createElement('script').src = 'main.ts'`,
  'a worker of this origin': `new Worker('v/x.ts', { type: 'module' })`,
  'a worker from a text': `new Worker(URL.createObjectURL(new Blob(['1'])))`,
  'a service worker': `navigator.serviceWorker.register('main.ts')`,
  'a policy of another name': `trustedTypes.createPolicy('other', {})`,
  'the default policy': `trustedTypes.createPolicy('default', {})`,
  'a call of another origin': `fetch(other)`,
  'a module of another origin': `import(other + '/x.js')`,
};

/** A program that returns what became of each attempt. Each runs in a separate task, as in a page: a debugger may do more. */
function attemptAll(other: string): string {
  const attempts = Object.entries(ATTEMPTS).map(([name, text]) => `${JSON.stringify(name)}: () => ${text}`);
  return `(async () => {
    const other = ${JSON.stringify(other)};
    const outcomes = {};
    for (const [name, attempt] of Object.entries({ ${attempts.join(',\n')} })) {
      outcomes[name] = await new Promise((resolve) => setTimeout(async () => {
        try {
          await attempt();
          resolve('allowed');
        } catch {
          resolve('refused');
        }
      }));
    }
    return outcomes;
  })()`;
}

describe('the policy of the page in a browser', () => {
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

  test('rule 34: the page starts without a complaint, and asks no other address', async (context) => {
    const { page, asked, complaints } = await openPage(browser, service.pageUrl);
    context.after(() => page.context().close());
    await page.waitForLoadState('networkidle');
    assert.deepEqual(complaints, []);
    assert.deepEqual([...asked], [new URL(service.pageUrl).host]);
  });

  test('rule 34: a script can run no text, no other file and no other worker, and call no other origin', async (context) => {
    const { page } = await openPage(browser, service.pageUrl);
    context.after(() => page.context().close());
    const other = await startFront(context, (_request, response) => {
      const headers = { 'content-type': 'text/javascript', 'access-control-allow-origin': '*' };
      response.writeHead(200, headers).end('export {};');
    });
    const outcomes: Record<string, string> = await page.evaluate(attemptAll(other.url));
    assert.deepEqual(other.seen, []);
    assert.deepEqual(outcomes, Object.fromEntries(Object.keys(ATTEMPTS).map((name) => [name, 'refused'])));
  });

  test('rule 34: no page of another origin may show it in a frame', async (context) => {
    const foreign = await startFront(context, (_request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(`<iframe src="${service.pageUrl}"></iframe><p>foreign</p>`);
    });
    const { page, complaints } = await openPage(browser, foreign.url.replace('127.0.0.1', 'localhost'));
    context.after(() => page.context().close());
    await page.waitForLoadState('networkidle');
    const frame = page.frames()[1];
    assert.ok(frame !== undefined && !(await frame.content()).includes('Book catalogue'));
    assert.ok(complaints.some((text) => text.includes('frame-ancestors')));
  });
});
