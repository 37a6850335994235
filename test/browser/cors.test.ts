// Pages of other origins in a real browser: what CORS_ORIGINS allows, and that other pages may do nothing.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { openPage, startBrowser } from '../support/browser.ts';
import { ENVIRONMENT, type RunningService, SQLITE, startTestService } from '../support/service.ts';

describe('pages of other origins in a browser', () => {
  let browser: Browser;
  let site: Server;
  let port: number;
  let service: RunningService;

  before(async () => {
    browser = await startBrowser();
    site = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html').end('<!doctype html><link rel="icon" href="data:,">');
    });
    site.listen(0, '127.0.0.1');
    await once(site, 'listening');
    port = (site.address() as AddressInfo).port;
    service = await startTestService(await SQLITE.freshUrl(), {
      CORS_ORIGINS: `http://localhost:${port}`,
    });
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    site?.close();
  });

  /** Makes a page log in, store a book once, change it on a condition, and find it; returns what it saw. */
  async function visit(url: string): Promise<unknown> {
    const { page } = await openPage(browser, url);
    try {
      return await page.evaluate(`(async () => {
        const ask = async (method, path, body, authorization, more) => {
          const own = { authorization, 'x-request-id': 'page-1', prefer: 'count=exact', ...more };
          const headers = authorization ? own : {};
          const answer = await fetch('${service.url}' + path, { method, body, headers });
          const read = (name) => answer.headers.get(name);
          return { status: answer.status, location: read('location'), id: read('x-request-id'), link: read('link'),
            etag: read('etag'), replayed: read('idempotent-replayed'), total: read('x-total-count'), applied: read('preference-applied'), ...(await answer.json()) };
        };
        try {
          const login = JSON.stringify(${JSON.stringify({
            username: ENVIRONMENT.AUTH_USERNAME,
            password: ENVIRONMENT.AUTH_PASSWORD,
          })});
          const { token } = (await ask('POST', '/token', login)).data;
          const once = { 'idempotency-key': 'from-a-page' };
          const created = await ask('POST', '/book', '{"title":"From a page"}', token, once);
          const { replayed } = await ask('POST', '/book', '{"title":"From a page"}', token, once);
          const known = { 'if-match': created.etag };
          const changed = await ask('PUT', created.location, '{"year":2026}', token, known);
          const unmet = await ask('PUT', created.location, '{"year":1}', token, known);
          const { data, link, total, applied } = await ask('GET', '/books?title=from+a+page', undefined, token);
          const { status } = await ask('GET', '/shelf', undefined, token);
          return { status: created.status, id: created.id, book: changed.data, elsewhere: status, replayed,
            unmet: unmet.status,
            found: { data, link, total, applied } };
        } catch (error) {
          return String(error);
        }
      })()`);
    } finally {
      await page.context().close();
    }
  }

  test('rule 32: an allowed page can do everything that other clients can', async () => {
    const seen = await visit(`http://localhost:${port}/`);
    const [book] = await service.client.list();
    assert.deepEqual(book, { id: book?.id, title: 'From a page', author: '', year: 2026 });
    const link = '</books?title=from+a+page&limit=100>; rel="first"';
    const found = { data: [book], link, total: '1', applied: 'count=exact' };
    const answers = { status: 201, id: 'page-1', elsewhere: 404, replayed: 'true', unmet: 412 };
    assert.deepEqual(seen, { ...answers, book, found });
  });

  test('rule 32: the same page under another name cannot', async () => {
    const before = await service.client.list();
    assert.equal(await visit(`http://127.0.0.1:${port}/`), 'TypeError: Failed to fetch');
    assert.deepEqual(await service.client.list(), before);
  });
});
