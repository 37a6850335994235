// The librarians' page in a real browser while the service is away, busy or silent, or no longer accepts the token or the
// password: nothing that somebody has typed is lost, and nothing is stored twice.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Book } from '../../conformance/service.ts';
import { startHere } from '../support/command.ts';
import { answer } from '../support/front.ts';
import {
  asksToStay,
  BOOKS,
  cell,
  counted,
  describePage,
  editor,
  focused,
  logIn,
  row,
  said,
  searchField,
  shown,
  WAYS,
} from '../support/page.ts';
import { ENVIRONMENT } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard } = WAYS;

describePage('the librarians’ page in trouble', ({ openCatalogue }) => {
  const login = (page: Page) => page.getByRole('dialog', { name: 'Book catalogue' });
  const away = (page: Page) => page.getByRole('alert').filter({ hasText: 'Your changes are kept' });

  /** Opens a field, and types into it. */
  async function type(page: Page, field: 'title' | 'author', text: string): Promise<void> {
    await cell(page, 'Emma', field).click();
    await page.keyboard.press('F2');
    await page.keyboard.type(text);
  }

  /** Lets time pass on the page until something holds. */
  async function later(page: Page, holds: () => Promise<boolean>): Promise<void> {
    await waitUntil(async () => {
      await page.clock.fastForward(1000);
      return await holds();
    });
  }

  test('while the service makes its index, the books are listed and can be edited, and a search is carried out as soon as it can be', async (context) => {
    const books = BOOKS.toReversed();
    const { page, client, service } = await openCatalogue(context, { books });
    const version = (one: string) =>
      executeOn(service.dbUrl, `update book_index_state set version = ${one} where version > 1`);
    const [{ version: present } = {}] = await executeOn(
      service.dbUrl,
      'select version from book_index_state',
    );
    await version('1000');
    await page.reload();
    await shown(
      page,
      books.map(({ title }) => title),
    );
    await counted(page, '10 books');
    await page.getByText('Searches and orders have to wait').waitFor();
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await waitUntil(async () => (await client.list()).some(({ year }) => year === 1816));
    await searchField(page).fill('jane');
    await counted(page, 'Still showing other books');
    assert.equal(await page.getByRole('alert').isVisible(), false);
    await version(String(present));
    await shown(page, ['Pride and Prejudice', 'Emma']);
    await page.getByText('have to wait').waitFor({ state: 'hidden' });
  });

  test('another password: a login over the page, the text is stored after it, the focus returns', async (context) => {
    const { page, service, complaints } = await openCatalogue(context);
    await type(page, 'author', 'Miss Austen');
    await service.stop();
    const ports = { PORT: String(service.port), PAGE_PORT: new URL(service.pageUrl).port };
    const pair = { AUTH_PASSWORD: 'another password', SECRET_TOKEN: 'another secret for tests, long enough' };
    const own = { DB_URL: service.dbUrl, LOG_LEVEL: 'info' };
    const again = await startHere({ ...ENVIRONMENT, ...own, ...ports, ...pair });
    context.after(() => again.stop());
    await page.keyboard.press('Tab');
    await login(page).getByText('Your login has ended. Log in again: nothing is lost.').waitFor();
    await focused(login(page).getByRole('textbox', { name: 'Name' }));
    await cell(page, 'Emma', 'author').getByText('Miss Austen').waitFor(); // under the login
    await logIn(page, 'another password');
    await said(page, 'Saved');
    await focused(editor(page, 'Emma', 'year')); // where Tab had led
    await page.keyboard.type('1816');
    await page.keyboard.press('Enter');
    await said(page, 'Saved');
    await page.reload();
    await row(page, 'Emma').filter({ hasText: 'Miss Austen' }).filter({ hasText: '1816' }).waitFor();
    assert.deepEqual(complaints(), []);
  });

  test('a service that does not answer: an edit, a search and a field that is open wait until it does', async (context) => {
    let isAway = false;
    const { page, client, books, complaints } = await openCatalogue(context, {
      front: (incoming, _, forward) => (isAway ? void incoming.socket.destroy() : forward()),
    });
    await page.clock.install();
    isAway = true;
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await away(page).filter({ hasText: 'The catalogue does not answer.' }).waitFor();
    await later(page, () => row(page, 'Emma').getByRole('button', { name: 'Try again' }).isVisible());
    assert.equal(await cell(page, 'Emma', 'year').textContent(), '1816');
    await asksToStay(page);

    await page.clock.pauseAt(Date.now() + 10 * 60_000);
    await searchField(page).fill('hobb'); // the page searches after a pause in the typing, or when the field is left
    await type(page, 'title', 'Emma, a n');
    await page.clock.runFor(15_000); // the search fails, and is tried again two seconds later
    await page.clock.resume();
    isAway = false;
    await later(page, () => away(page).isHidden());
    await page.keyboard.type('ovel');
    await page.keyboard.press('Enter');
    await shown(page, ['The Hobbit']);
    assert.equal(await searchField(page).inputValue(), 'hobb');
    const emma = { id: 7, title: 'Emma, a novel', author: 'Jane Austen', year: 1816 };
    await waitUntil(async () => (await client.list())[6]?.title === emma.title);
    assert.deepEqual(await client.list(), books.with(6, emma));
    assert.deepEqual(complaints(), []);
  });

  test('a dialog that cannot be loaded: the page says why; one that comes late opens over no other work', async (context) => {
    let fate = 'lost';
    let release = () => {};
    const { page } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        const { url = '' } = incoming;
        if (fate === 'old') incoming.url = url.replace(/^\/v\/\w+\/import/, '/v/0/import');
        if (fate === 'lost' && url.includes('/import.js')) incoming.socket.destroy();
        else if (fate === 'late' && url.includes('/import.js')) release = forward;
        else forward();
      },
    });
    const open = page.getByRole('button', { name: 'Import', exact: true });
    await open.click();
    await said(page, 'The catalogue does not answer. Try again in a moment.');
    await away(page).waitFor({ state: 'hidden' }); // its next probe was answered
    fate = 'old';
    await open.click();
    await said(page, 'This page is older than the catalogue. Reload it.');
    fate = 'late';
    await open.click();
    const loading = page.getByRole('region', { name: 'Messages' }).getByText('Loading …');
    await loading.waitFor();
    await page.keyboard.press('Insert');
    const adding = page.getByRole('dialog', { name: 'Add a book' });
    await adding.waitFor();
    release();
    await loading.waitFor({ state: 'hidden' });
    await page.keyboard.type('Emma');
    assert.equal(await adding.getByLabel('Title').inputValue(), 'Emma');
    assert.equal(await page.getByRole('dialog', { name: 'Import books' }).isVisible(), false);
    await adding.getByLabel('Title').fill('');
    await page.keyboard.press('Escape');
    await open.click();
    await page.getByRole('dialog', { name: 'Import books' }).waitFor();
  });

  test('an answer that was under way when the network went does not hide that it is gone', async (context) => {
    let release: (() => void) | undefined;
    const { page } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (incoming.url?.includes('q=hobbit')) release ??= forward;
        else forward();
      },
    });
    await searchField(page).fill('hobbit');
    await waitUntil(() => release !== undefined);
    await page.context().setOffline(true);
    await away(page).waitFor();
    release?.();
    await shown(page, ['The Hobbit']);
    assert.equal(await away(page).isVisible(), true);
    await page.context().setOffline(false);
    await away(page).waitFor({ state: 'hidden' });
  });

  test('a service that is busy says so; one that is busy and away by turns is asked no more often', async (context) => {
    let statuses: number[] = [];
    let calls = 0;
    const { page } = await openCatalogue(context, {
      front: ({ url }, outgoing, forward) => {
        if (statuses.length === 0 || url === '/v/none') return forward();
        calls += 1;
        answer(outgoing, statuses[calls % statuses.length] as number, null, 'Service unavailable');
      },
    });
    await page.clock.install();
    statuses = [503];
    await searchField(page).fill('hobbit');
    await away(page).filter({ hasText: 'The catalogue is busy or not ready yet.' }).waitFor();
    statuses = [502, 503];
    for (let second = 0; second < 30; second += 1) {
      await page.clock.runFor(1000);
      await page.evaluate("fetch('v/none')"); // until the answers before it are there
    }
    assert.ok(calls > 10 && calls < 500, `${calls} calls`);
    statuses = [];
    await later(page, () => away(page).isHidden());
    await shown(page, ['The Hobbit']);
  });

  test('answers that are lost: a change, a deletion and a new book are carried out once', async (context) => {
    const lost = new Set<string>();
    let isSilent = false;
    const keys = new Set<unknown>();
    const { page, client, books } = await openCatalogue(context, {
      env: { BODY_LIMIT: '100' },
      front: (incoming, _, forward) => {
        const { method = '' } = incoming;
        const isLost = ['PUT', 'DELETE'].includes(method) && !lost.has(method);
        lost.add(method);
        if (isSilent && incoming.url === '/book') keys.add(incoming.headers['idempotency-key']);
        forward(isLost || isSilent ? () => incoming.socket.destroy() : undefined);
      },
    });
    await page.clock.install();
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await later(page, async () => (await cell(page, 'Emma', 'year').textContent()) === '1816');
    await keyboard.delete(page, 'It');
    await keyboard.search(page, 'emma');
    await shown(page, ['Emma']);

    await page.keyboard.press('Insert');
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    const add = dialog.getByRole('button', { name: 'Add', exact: true });
    const complaint = (text: string) => dialog.getByRole('alert').filter({ hasText: text });
    await dialog.getByLabel('Title').fill('x'.repeat(100));
    await add.click();
    await complaint('was not added. The catalogue refuses this: Payload too large.').waitFor();
    await dialog.getByLabel('Title').fill('Persuasion');
    isSilent = true;
    await add.click();
    await dialog.waitFor({ state: 'hidden' });
    await page.locator('#away').waitFor();
    await asksToStay(page);
    for (let second = 0; second < 15; second += 1) await page.clock.runFor(1000); // more than one call takes
    isSilent = false;
    const messages = page.getByRole('region', { name: 'Messages' });
    await later(page, () => messages.getByText('“Persuasion” was added.').isVisible());
    assert.equal(keys.size, 1);
    const persuasion = { id: 11, title: 'Persuasion', author: '', year: 0 };
    const expected = [...books.with(6, { ...(books[6] as Book), year: 1816 }).slice(0, -1), persuasion];
    assert.deepEqual(await client.list(), expected);
  });
});
