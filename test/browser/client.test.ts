// The client in a real browser, on a page without TLS and of another host than this machine: browsers keep several of
// their functions from such pages.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { openPage, startBrowser } from '../support/browser.ts';
import { pathTo } from '../support/repository.ts';
import { startScenario } from '../support/runtimes.ts';
import { temporaryFolder } from '../support/service.ts';

const HOST = 'books.test';
const PAGE = `<!doctype html><title>The client</title><link rel="icon" href="data:,">
  <script type="importmap">{"imports":{"book-catalogue-client":"/book-catalogue.js"}}</script>`;

test('the client works on a page without TLS', async (context) => {
  const folder = temporaryFolder();
  const tsc = pathTo('node_modules/typescript/bin/tsc');
  await promisify(execFile)(process.execPath, [tsc, '-p', pathTo('client'), '--outDir', folder]);
  const { port } = await startScenario(context, ({ url = '' }, outgoing) => {
    if (url === '/') return void outgoing.setHeader('content-type', 'text/html').end(PAGE);
    const file = url === '/scenario.js' ? pathTo('test/fixtures/client-scenario.js') : join(folder, url);
    outgoing.setHeader('content-type', 'text/javascript').end(readFileSync(file));
  });
  const browser = await startBrowser([`--host-resolver-rules=MAP ${HOST} 127.0.0.1`]);
  context.after(() => browser.close());
  const url = `http://${HOST}:${port}`;
  const { page } = await openPage(browser, `${url}/`);
  const check = `import('/scenario.js').then(({ check }) => check('${url}', true))`;
  assert.deepEqual(await page.evaluate(`Promise.all([isSecureContext, ${check}])`), [false, 'passed']);
});
