// The session of the librarians' page in a real browser: what keeps it, what ends it, and what pages at other ports and other names can
// do with it. Titles name the rules of docs/contract.md.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Book } from '../../conformance/service.ts';
import { startPersistentBrowser } from '../support/browser.ts';
import { startFront } from '../support/front.ts';
import {
  cell,
  choose,
  describePage,
  editor,
  focused,
  listed,
  logIn,
  said,
  searchField,
  sent,
  shown,
  WAYS,
} from '../support/page.ts';
import { SQLITE, startTestService, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard } = WAYS;

const IDLE = 'You were logged out after 30 minutes without activity.';

describePage('the session of the librarians’ page', ({ openCatalogue, openDesk }) => {
  const login = (page: Page) => page.getByRole('dialog', { name: 'Book catalogue' });

  /** Another tab of the same browser. */
  async function openTab(page: Page, url: string): Promise<Page> {
    const tab = await page.context().newPage();
    await tab.goto(url);
    return tab;
  }

  test('S1: a second tab and a link from another site need no login', async (context) => {
    const { page, service } = await openCatalogue(context);
    const second = await openTab(page, `${service.pageUrl}/?q=emma`);
    await shown(second, ['Emma']);
    const site = await startFront(context, (_, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(`<a href="${service.pageUrl}/?q=hobbit">the book that I mean</a>`);
    });
    const third = await openTab(page, site.url.replace('127.0.0.1', 'localhost'));
    await third.getByRole('link').click();
    await shown(third, ['The Hobbit']);
  });

  test('S1: a browser that is started again keeps the session', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(() => service.stop());
    await service.client.create({ title: 'Emma' });
    const folder = temporaryFolder();
    context.after(() => rmSync(folder, { recursive: true, force: true }));
    for (const isFirst of [true, false]) {
      const browser = await startPersistentBrowser(folder);
      const page = await browser.newPage();
      await page.goto(service.pageUrl);
      if (isFirst) await logIn(page);
      await shown(page, ['Emma']);
      await browser.close();
    }
  });

  test('S4: a log-out reaches all tabs, also if its request is lost; a text that is not stored stays', async (context) => {
    const { page } = await openCatalogue(context, {
      front: (incoming, _, forward) =>
        incoming.method === 'DELETE' ? void incoming.socket.destroy() : forward(),
    });
    const [reading, writing] = [await openTab(page, page.url()), await openTab(page, page.url())];
    await listed(reading);
    await listed(writing);
    await writing.keyboard.press('Insert');
    await writing.keyboard.type('Persuasion');
    await choose(page, 'Log out');
    for (const tab of [page, reading]) {
      await login(tab).waitFor();
      assert.equal(await tab.getByRole('row').filter({ hasText: 'Emma' }).count(), 0);
    }
    await login(writing).getByText('You have logged out.').waitFor();
    await logIn(reading);
    await login(writing).waitFor({ state: 'hidden' }); // a login is one for all tabs
    await writing.getByRole('button', { name: 'Add', exact: true }).click();
    await writing.getByText('“Persuasion” was added.').first().waitFor();
  });

  test('S4: a renewal that is answered after a log-out starts no session again', async (context) => {
    let release: (() => void) | undefined;
    let isHeld = false;
    const { page } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (isHeld && incoming.method === 'PUT') release = forward;
        else forward();
      },
    });
    isHeld = true;
    const writing = await openTab(page, page.url());
    await listed(writing);
    await writing.keyboard.press('Insert');
    await writing.keyboard.type('Persuasion');
    await waitUntil(() => release !== undefined);
    await choose(page, 'Log out');
    await login(writing).waitFor();
    const renewed = writing.waitForResponse((answer) => answer.request().method() === 'PUT');
    release?.();
    assert.equal((await renewed).status(), 200);
    await login(await openTab(page, page.url())).waitFor();
    assert.equal(await login(page).isVisible(), true);
  });

  test('S4: the actions of a person are not those of the next, also in a tab that shows another site meanwhile', async (context) => {
    const { page, service, client, books } = await openCatalogue(context);
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await said(page, 'Saved');
    await page.goto('about:blank');
    const other = await openTab(page, service.pageUrl);
    await choose(other, 'Log out');
    await page.goto(service.pageUrl);
    await logIn(page);
    await listed(page);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+z');
    await said(page, 'There is nothing to undo');
    assert.deepEqual(await client.list(), books.with(6, { ...(books[6] as Book), year: 1816 }));
  });

  test('S2: without a touch in any tab the session ends, but a typed text stays', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page, changes } = catalogue;
    const renewals: string[] = [];
    page.on('response', (answer) => {
      if (answer.url().endsWith('/session')) renewals.push(answer.request().method());
    });
    await page.clock.install();
    await cell(page, 'Emma', 'title').click();
    await page.keyboard.press('F2');
    await page.keyboard.type('Half of a ti');
    await page.clock.runFor('01:00'); // the next renewal
    await waitUntil(() => renewals.length === 1);
    assert.deepEqual(renewals, ['PUT']);
    await page.clock.runFor('29:58');
    assert.equal(await login(page).isVisible(), false);
    await page.clock.runFor('00:03');
    await login(page).getByText(IDLE).waitFor();
    assert.equal(renewals.length, 1, 'nobody was active');
    await logIn(page);
    await focused(editor(page, 'Emma', 'title'));
    await page.keyboard.type('tle');
    await page.keyboard.press('Enter');
    await said(page, 'Saved');
    await sent(catalogue, ['PUT /book/7 {"title":"Half of a title"}']);
    assert.equal(changes.length, 1);
  });

  test('S2: a session that has ended at the service leads to a login, and nothing is lost', async (context) => {
    const { service } = await openCatalogue(context);
    const { page } = await openDesk(context, service.pageUrl);
    await logIn(page); // after its renewal: a later answer would bring the cookie back
    await page.context().clearCookies();
    // Work in the background may lead to the login first, and the search then takes no text from the keyboard.
    await searchField(page).evaluate((field) => {
      field.value = 'emma';
      field.dispatchEvent(new Event('input'));
    });
    await login(page).getByText('Your login has ended. Log in again: nothing is lost.').waitFor();
    await logIn(page);
    await shown(page, ['Emma']);
  });

  test('S3: a page at another port of the host gets the cookie, but no answer, no login and no effect', async (context) => {
    const { page, service, client, books } = await openCatalogue(context);
    const cookies: string[] = [];
    const attacker = await startFront(context, (incoming, response) => {
      cookies.push(incoming.headers.cookie ?? '');
      response.setHeader('content-type', 'text/html').end('<!doctype html>');
    });
    const other = await openTab(page, attacker.url);
    const attempts = `(async (target) => {
      const body = '{"title":"Stolen"}';
      const login = JSON.stringify({ username: 'librarian', password: 'correct horse' });
      const session = { credentials: 'include' };
      const outcomes = [];
      for (const [path, init] of [
        ['/book', { method: 'POST', body, mode: 'no-cors' }],
        ['/book', { method: 'POST', body, headers: { 'session-key': 'x' } }],
        ['/book/1', { method: 'DELETE' }],
        ['/session', { method: 'DELETE' }],
        ['/session', { method: 'PUT', headers: { 'session-key': 'x' } }],
        ['/session', { method: 'POST', body: login, mode: 'no-cors' }],
        ['/books', {}],
      ]) outcomes.push(await fetch(target + path, { ...session, ...init }).then(({ type }) => type, String));
      const form = document.createElement('form');
      Object.assign(form, { method: 'post', action: target + '/book', enctype: 'text/plain' });
      form.innerHTML = '<input name=\\'{"title":"Stolen","x":"\\' value=\\'"}\\'>';
      document.body.append(form);
      form.submit();
      return outcomes;
    })(${JSON.stringify(service.pageUrl)})`;
    const failed = 'TypeError: Failed to fetch';
    assert.deepEqual(await other.evaluate(attempts), [
      'opaque', // 401: the cookie alone
      ...[failed, failed, failed, failed],
      'opaque', // 403
      failed,
    ]);
    await other.waitForURL(`${service.pageUrl}/book`);
    assert.match(
      await other.locator('body').innerText(),
      /"status":401,"message":"Authorization token required"/,
    );
    assert.deepEqual(await client.list(), books);
    // The cookie that it was sent is worth nothing without the key, which the browser keeps from it.
    const cookie = cookies.find((text) => text.startsWith('book-catalogue-')) ?? '';
    assert.notEqual(cookie, '', 'cookies know no port');
    const stolen = await fetch(`${service.pageUrl}/books`, { headers: { cookie, 'session-key': 'x' } });
    assert.equal(stolen.status, 401);
    await page.reload();
    await listed(page);
  });

  test('S3: no script can read the cookie, and a page of another site does not even send it', async (context) => {
    const { page, service } = await openCatalogue(context);
    assert.equal(await page.evaluate('document.cookie'), '');
    const site = await startFront(context, (_, response) => {
      response.setHeader('content-type', 'text/html').end('<!doctype html>');
    });
    const other = await openTab(page, site.url.replace('127.0.0.1', 'localhost'));
    const sent = other.waitForRequest(`${service.pageUrl}/books`);
    await other.evaluate(`fetch('${service.pageUrl}/books', { mode: 'no-cors', credentials: 'include' })`);
    assert.equal((await (await sent).allHeaders()).cookie, undefined);
  });

  test('a first visit shows a login without a reason', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(() => service.stop());
    const { page } = await openDesk(context, service.pageUrl);
    await login(page).waitFor();
    assert.equal(await page.locator('#login-reason').textContent(), '');
  });
});
