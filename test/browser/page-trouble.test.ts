// The librarians' page in a real browser while the service stops, hangs, returns, or no longer accepts the token or the
// password: nothing that somebody has typed is lost, and nothing is stored twice.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { answer } from '../support/front.ts';
import {
  asksToStay,
  BOOKS,
  cell,
  describePage,
  editor,
  focused,
  listed,
  logIn,
  row,
  said,
  searchField,
  sent,
  shown,
  startAgain,
  WAYS,
} from '../support/page.ts';
import { type ServiceProcess, startCommand } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const BY_AUTHOR = BOOKS.map(({ title }) => title);
const { keyboard, mouse } = WAYS;

describePage('the librarians’ page in trouble', ({ openCatalogue, openProcess }) => {
  const login = (page: Page) => page.getByRole('dialog', { name: 'Book catalogue' });
  const away = (page: Page) => page.getByRole('alert').filter({ hasText: 'Your changes are kept' });

  async function kill({ process }: ServiceProcess): Promise<void> {
    process.kill('SIGKILL');
    await once(process, 'exit');
  }

  /** Answers of the service to the page, by method and status. */
  function answersTo(page: Page): string[] {
    const answers: string[] = [];
    page.on('response', (response) => answers.push(`${response.request().method()} ${response.status()}`));
    return answers;
  }

  test('a token that ends while somebody types is renewed, and nobody notices', async (context) => {
    const { page, service, complaints } = await openProcess(context);
    await cell(page, 'Emma', 'title').click();
    await page.keyboard.press('F2');
    await page.keyboard.type('Emma, a nov');
    await service.stop();
    const again = await startAgain(service, { SECRET_TOKEN: 'another secret for tests, long enough' });
    context.after(() => again.stop());
    const answers = answersTo(page);
    await page.keyboard.type('el');
    await page.keyboard.press('Enter');
    await said(page, 'Saved');
    await focused(cell(page, 'Emma, a novel', 'title'));
    assert.equal((await again.client.list())[6]?.title, 'Emma, a novel');
    assert.equal(answers.filter((one) => one === 'POST 200').length, 1, 'one login');
    assert.equal(await login(page).isVisible(), false);
    assert.deepEqual(complaints(), []);
  });

  test('another password: a login over the page, the text is stored after it, the focus returns', async (context) => {
    const { page, service, complaints } = await openProcess(context);
    await cell(page, 'Emma', 'author').click();
    await page.keyboard.press('F2');
    await page.keyboard.type('Miss Austen');
    await service.stop();
    // The client of tests cannot log in to it.
    const env = {
      PORT: String(service.port),
      PAGE_PORT: new URL(service.pageUrl).port,
      DB_URL: service.dbUrl,
    };
    const pair = { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: 'another password' };
    const again = await startCommand({ HOST: '127.0.0.1', LOG_LEVEL: 'info', ...env, ...pair });
    context.after(() => again.stop());
    await page.keyboard.press('Tab');
    await login(page).getByText('The password has changed. Log in again: nothing is lost.').waitFor();
    await focused(login(page).getByLabel('Password'));
    await cell(page, 'Emma', 'author').getByText('Miss Austen').waitFor(); // under the login
    await logIn(page, 'another password');
    await said(page, 'Saved');
    await focused(editor(page, 'Emma', 'year')); // where Tab had led
    await page.keyboard.type('1816');
    await page.keyboard.press('Enter');
    await waitUntil(async () => (await cell(page, 'Emma', 'year').textContent()) === '1816');
    await page.reload();
    await logIn(page, 'another password');
    await row(page, 'Emma').getByRole('gridcell', { name: 'Miss Austen' }).waitFor();
    await row(page, 'Emma').getByRole('gridcell', { name: '1816' }).waitFor();
    assert.deepEqual(complaints(), []);
  });

  test('after thirty minutes without a touch the password is forgotten, but not the typed text', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page, client } = catalogue;
    await page.clock.install();
    await cell(page, 'Emma', 'title').click();
    await page.keyboard.press('F2');
    await page.keyboard.type('Half of a ti');
    await page.clock.fastForward('29:59');
    assert.equal(await login(page).isVisible(), false);
    await page.clock.fastForward('00:02');
    await login(page).getByText('You were logged out after 30 minutes without activity.').waitFor();
    await page.clock.fastForward('10:00');
    await logIn(page);
    await focused(editor(page, 'Emma', 'title'));
    await page.keyboard.type('tle');
    await page.keyboard.press('Enter');
    await waitUntil(async () => (await client.list())[6]?.title === 'Half of a title');
    await sent(catalogue, ['PUT /book/7 {"title":"Half of a title"}']);
  });

  test('a service that is killed and returns: the list stays, and the edit is stored once', async (context) => {
    const { page, service, complaints } = await openProcess(context);
    await page.clock.install();
    await kill(service);
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await away(page).filter({ hasText: 'The catalogue does not answer.' }).waitFor();
    await page.clock.fastForward(20_000); // longer than a call may take
    await row(page, 'Emma').getByRole('button', { name: 'Try again' }).waitFor();
    assert.equal(await cell(page, 'Emma', 'year').textContent(), '1816');
    await shown(page, BY_AUTHOR);
    await keyboard.press(page, 'Emma', 'Try again');
    await page.clock.fastForward(20_000);
    await row(page, 'Emma').getByRole('button', { name: 'Try again' }).waitFor();
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);

    const answers = answersTo(page);
    const again = await startAgain(service);
    context.after(() => again.stop());
    await waitUntil(async () => {
      await page.clock.fastForward(1000);
      return !(await away(page).isVisible());
    });
    await said(page, 'Saved');
    assert.equal((await again.client.list())[6]?.year, 1816);
    assert.deepEqual(
      answers.filter((one) => one.startsWith('PUT')),
      ['PUT 200'],
    );
    await row(page, 'Emma').getByRole('button', { name: 'Try again' }).waitFor({ state: 'detached' });
    assert.deepEqual(complaints(), []);
  });

  test('a search while the service is away shows its books when it is back', async (context) => {
    const { page, service } = await openProcess(context);
    await kill(service);
    await searchField(page).pressSequentially('hobb');
    await away(page).waitFor();
    await shown(page, BY_AUTHOR);
    await cell(page, 'Emma', 'title').click(); // meanwhile, somebody types in the list that is there
    await page.keyboard.press('F2');
    await page.keyboard.type('Emma, a n');
    const again = await startAgain(service);
    context.after(() => again.stop());
    await away(page).waitFor({ state: 'hidden' });
    await page.keyboard.type('ovel');
    assert.equal(await editor(page, 'Emma', 'title').inputValue(), 'Emma, a novel');
    await page.keyboard.press('Enter');
    await shown(page, ['The Hobbit']);
    await waitUntil(async () => (await again.client.list())[6]?.title === 'Emma, a novel');
    assert.equal(await searchField(page).inputValue(), 'hobb');
  });

  test('typing continues while a search is tried again: no letter is lost', async (context) => {
    const { page, service } = await openProcess(context);
    await page.clock.install();
    await kill(service);
    await searchField(page).fill('x');
    await away(page).waitFor();
    await page.clock.fastForward(12_000); // the search fails, and is tried again two seconds later
    await page.clock.pauseAt(Date.now() + 60_000);
    const text = 'a long text, typed in a hurry '.repeat(5);
    for (const letter of text) {
      await page.keyboard.press(letter);
      await page.clock.runFor(90); // 13 seconds in all, and faster than the page asks
    }
    assert.equal(await searchField(page).inputValue(), `x${text}`);
  });

  test('without a network the line is there at once, and goes when the network is back', async (context) => {
    const { page, client } = await openCatalogue(context);
    await page.context().setOffline(true);
    await away(page).waitFor();
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await page.context().setOffline(false);
    await away(page).waitFor({ state: 'hidden' });
    await waitUntil(async () => (await client.list())[6]?.year === 1816);
    await said(page, 'Saved');
  });

  test('an answer that was under way when the network went does not hide that it is gone', async (context) => {
    let release: (() => void) | undefined;
    const { page } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (incoming.url?.includes('q=hobbit')) release ??= forward;
        else forward();
      },
    });
    await shown(page, BY_AUTHOR);
    await searchField(page).fill('hobbit');
    await waitUntil(() => release !== undefined);
    await page.context().setOffline(true);
    await away(page).waitFor();
    release?.();
    await shown(page, ['The Hobbit']);
    assert.equal(await away(page).isVisible(), true);
  });

  test('a service that is busy says so, and is asked again', async (context) => {
    let isBusy = false;
    const { page, client } = await openCatalogue(context, {
      front: (_, outgoing, forward) => {
        if (isBusy) {
          outgoing.setHeader('retry-after', '1');
          answer(outgoing, 503, null, 'Service unavailable');
        } else forward();
      },
    });
    await shown(page, BY_AUTHOR);
    isBusy = true;
    await mouse.edit(page, 'Emma', 'year', '1816');
    await away(page).filter({ hasText: 'The catalogue is busy or not ready yet.' }).waitFor();
    await mouse.delete(page, 'It');
    isBusy = false;
    await away(page).waitFor({ state: 'hidden' });
    await waitUntil(async () => (await client.list())[6]?.year === 1816);
    await keyboard.search(page, 'emma');
    await shown(page, ['Emma']);
    await waitUntil(async () => (await client.list()).length === BOOKS.length - 1);
  });

  test('a service that is busy and away by turns is asked no more often than one that is away', async (context) => {
    let isIll = false;
    let calls = 0;
    const { page } = await openCatalogue(context, {
      front: ({ url }, outgoing, forward) => {
        if (!isIll || url === '/v/none') return forward();
        calls += 1;
        answer(outgoing, calls % 2 === 0 ? 502 : 503, null, 'Service unavailable');
      },
    });
    await shown(page, BY_AUTHOR);
    await page.clock.install();
    isIll = true;
    await searchField(page).fill('hobbit');
    for (let second = 0; second < 60; second += 1) {
      await page.clock.runFor(1000);
      await page.evaluate("fetch('v/none')"); // until the answers before it are there
    }
    context.diagnostic(`${calls} calls in a minute`);
    assert.ok(calls > 20 && calls < 1000, `${calls} calls`);
  });

  test('a service that hangs: the page says so, keeps the list, and continues when it answers', async (context) => {
    const { page, service } = await openProcess(context);
    await page.clock.install();
    service.process.kill('SIGSTOP');
    context.after(() => service.process.kill('SIGCONT'));
    await searchField(page).pressSequentially('hobbit');
    await page.clock.runFor(200);
    await waitUntil(async () => (await page.getByRole('grid').getAttribute('aria-busy')) === 'true');
    await page.clock.fastForward(11_000);
    await away(page).waitFor();
    await shown(page, BY_AUTHOR);
    service.process.kill('SIGCONT');
    await waitUntil(async () => {
      await page.clock.fastForward(1000);
      return !(await away(page).isVisible());
    });
    await shown(page, ['The Hobbit']);
  });

  test('a book that was added while the service hung is not stored twice', async (context) => {
    const { page, service, client } = await openProcess(context);
    await page.clock.install();
    await page.keyboard.press('Insert');
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    await dialog.getByLabel('Title').fill('Persuasion');
    service.process.kill('SIGSTOP');
    context.after(() => service.process.kill('SIGCONT'));
    const sent = page.waitForRequest((request) => request.method() === 'POST');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await sent;
    await page.clock.fastForward(20_000);
    await dialog.getByRole('alert').filter({ hasText: 'Your book is still here' }).waitFor();
    service.process.kill('SIGCONT');
    await waitUntil(async () => (await client.list()).length === BOOKS.length + 1); // it was stored nevertheless
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
    assert.equal((await client.list()).length, BOOKS.length + 1);
  });

  test('a new book that the service refuses: the dialog says why, and keeps the text', async (context) => {
    const { page, client } = await openCatalogue(context, { env: { BODY_LIMIT: '100' } });
    await page.keyboard.press('Insert');
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    await dialog.getByLabel('Title').fill('x'.repeat(100));
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog
      .getByRole('alert')
      .filter({ hasText: 'The book was not added: Payload too large.' })
      .waitFor();
    await dialog.getByLabel('Title').fill('Persuasion');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
    assert.equal((await client.list()).at(-1)?.title, 'Persuasion');
  });

  test('an answer that is lost: the change, the new book and the deletion are carried out once', async (context) => {
    const lost = new Set<string>();
    const { page, client, complaints } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        const { method = '', url = '' } = incoming;
        const isLost = method !== 'GET' && url !== '/token' && !lost.has(method);
        lost.add(method);
        forward(isLost ? () => incoming.socket.destroy() : undefined);
      },
    });
    await shown(page, BY_AUTHOR);
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await said(page, 'Saved');
    await keyboard.add(page, { title: 'Persuasion' });
    await row(page, 'Persuasion').waitFor();
    await keyboard.delete(page, 'It');
    await keyboard.search(page, 'emma');
    await shown(page, ['Emma']);
    const books = await client.list();
    assert.equal(books.filter(({ title }) => title === 'Persuasion').length, 1);
    assert.equal(books.length, BOOKS.length);
    assert.equal(books[6]?.year, 1816);
    assert.equal(await page.getByRole('dialog').count(), 0);
    assert.deepEqual(complaints(), []);
  });

  test('a proxy that answers in place of the catalogue has neither stored nor deleted anything', async (context) => {
    let status: number | undefined;
    const { page, client } = await openCatalogue(context, {
      front: (incoming, outgoing, forward) => {
        if (incoming.method !== 'PUT' || status === undefined) forward();
        else outgoing.writeHead(status, { 'content-type': 'text/html' }).end('<p>Log in again');
      },
    });
    await shown(page, BY_AUTHOR);
    for (const [year, answer] of Object.entries({ 1816: 404, 1817: 403, 1818: 200 })) {
      status = answer;
      await keyboard.edit(page, 'Emma', 'year', year);
      await row(page, 'Emma').getByRole('button', { name: 'Try again' }).waitFor();
      assert.equal(await cell(page, 'Emma', 'year').textContent(), year);
      status = undefined; // the page tries again by itself
      await waitUntil(async () => (await client.list())[6]?.year === Number(year));
      await row(page, 'Emma').getByRole('button', { name: 'Try again' }).waitFor({ state: 'detached' });
    }
    assert.equal((await client.list()).length, BOOKS.length);
  });

  test('a login while the service is away says so, and works when it is back', async (context) => {
    const { page, service } = await openProcess(context);
    await page.reload();
    await kill(service);
    await page.clock.install();
    await login(page).getByLabel('Name').fill('librarian');
    await login(page).getByLabel('Password').fill('correct horse');
    await page.keyboard.press('Enter');
    await waitUntil(async () => {
      await page.clock.fastForward(2000);
      return await login(page)
        .getByRole('alert')
        .filter({ hasText: 'The catalogue does not answer.' })
        .isVisible();
    });
    const again = await startAgain(service);
    context.after(() => again.stop());
    await logIn(page);
    await listed(page);
    await shown(page, BY_AUTHOR);
  });

  test('a person who leaves with unsaved changes is asked to stay', async (context) => {
    const { page, service } = await openProcess(context);
    await kill(service);
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await away(page).waitFor();
    await asksToStay(page);
    assert.equal(await cell(page, 'Emma', 'year').textContent(), '1816');
  });
});
