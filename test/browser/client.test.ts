// The client in a real browser, on a page without TLS and of another host than this machine: browsers keep several of
// their functions from such pages.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { openPage, startBrowser } from '../support/browser.ts';
import { passOn, startFront } from '../support/front.ts';
import { pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  type RunningService,
  SQLITE,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';

const HOST = 'books.test';
const PAGE = '<!doctype html><title>The client</title><link rel="icon" href="data:,">';
const BOOK = { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 };

/** Runs in the page: `client` is the package, and `options` has the username and the password. */
const SCRIPT = `async ({ url, options, BOOK }) => {
  const client = await import(url + '/client/book-catalogue.js');
  const catalogue = new client.BookCatalogue(url, options);
  const outcome = {};
  const { id } = await catalogue.create(BOOK);
  const stored = await catalogue.createAll([{ title: 'Emma' }, {}]);
  outcome.stored = [id, ...stored.map((book) => book.id)];
  const expected = await catalogue.find(id);
  outcome.changed = await catalogue.update(id, { year: 1615 }, { expected });
  const error = await catalogue.update(id, { year: 1616 }, { expected }).catch((reason) => reason);
  outcome.refused = [error instanceof client.BookChanged, error.message];
  outcome.removed = [await catalogue.remove(3), await catalogue.remove(3)];
  outcome.found = await Array.fromAsync(catalogue.find({ q: 'cervantes' }));
  const { next, ...page } = await catalogue.page({ sort: 'title', limit: 1 }, { count: true });
  outcome.pages = [page, await catalogue.page(next)];
  outcome.list = await Array.fromAsync(catalogue.list());
  const wrong = new client.BookCatalogue(url, { ...options, password: 'wrong' });
  outcome.wrong = await wrong.find(1).catch((reason) => reason instanceof client.WrongCredentials);
  const own = { window: fetch, keepalive: (url, init) => fetch(url, { ...init, keepalive: true }) };
  for (const [name, fetch] of Object.entries(own)) {
    outcome[name] = await new client.BookCatalogue(url, { ...options, fetch }).count({});
  }
  const signal = AbortSignal.abort(new Error('enough'));
  outcome.aborted = await catalogue.find(id, { signal }).catch((reason) => reason.message);
  return { isSecureContext, ...outcome };
}`;

let browser: Browser;
let service: RunningService;

before(async () => {
  browser = await startBrowser([`--host-resolver-rules=MAP ${HOST} 127.0.0.1`]);
  service = await startTestService(await SQLITE.freshUrl());
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

test('the client works on a page without TLS', async (context) => {
  const folder = temporaryFolder();
  const tsc = pathTo('node_modules/typescript/bin/tsc');
  await promisify(execFile)(process.execPath, [tsc, '-p', pathTo('client'), '--outDir', folder]);
  const front = await startFront(context, (incoming, outgoing) => {
    const [, file] = /^\/client\/([\w-]+\.js)$/.exec(incoming.url ?? '') ?? [];
    if (incoming.url === '/') outgoing.setHeader('content-type', 'text/html').end(PAGE);
    else if (file === undefined) passOn(service, incoming, outgoing);
    else outgoing.setHeader('content-type', 'text/javascript').end(readFileSync(join(folder, file)));
  });
  const url = `http://${HOST}:${front.port}`;
  const { page, complaints } = await openPage(browser, `${url}/`);
  context.after(() => page.context().close());
  const options = {
    username: ENVIRONMENT.AUTH_USERNAME,
    password: ENVIRONMENT.AUTH_PASSWORD,
    timeout: 600_000,
  };
  const outcome = await page.evaluate(`(${SCRIPT})(${JSON.stringify({ url, options, BOOK })})`);
  const changed = { id: 1, ...BOOK, year: 1615 };
  const emma = { id: 2, title: 'Emma', author: '', year: 0 };
  assert.deepEqual(outcome, {
    isSecureContext: false,
    stored: [1, 2, 3],
    changed,
    refused: [true, 'Precondition failed'],
    removed: [true, false],
    found: [changed],
    pages: [
      { books: [changed], total: 2, unindexed: 0 },
      { books: [emma], total: 2, next: undefined, unindexed: 0 },
    ],
    list: [changed, emma],
    wrong: true,
    ...{ window: 2, keepalive: 2 },
    aborted: 'enough',
  });
  // The browser reports answers that are refusals.
  for (const line of complaints) assert.match(line, /status of (401|404|412) /);
});
