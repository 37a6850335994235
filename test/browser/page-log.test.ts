// The librarians' page and the log of changes: what changed, and its undo; the history of a book; what others change meanwhile.
// What the log has, and what an undo does to books, is in test/stores.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Client } from '../support/client.ts';
import { answer } from '../support/front.ts';
import { BOOKS, cell, describePage, editor, focused, row, said, sent, shown, WAYS } from '../support/page.ts';
import { executeOn, makeEarlier } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard, mouse } = WAYS;

const HOUR = 3_600_000;
const ALL = BOOKS.map(({ title }) => title);

const dialog = (page: Page) => page.getByRole('dialog');
const press = (page: Page, name: string) => dialog(page).getByRole('button', { name, exact: true }).click();
const messages = (page: Page) => page.getByRole('region', { name: 'Messages' });
const chip = (page: Page, name: string) => page.getByRole('button', { name, pressed: true });

/** Adds a book for each title, by a file. @returns the number of the import. */
async function importBooks(client: Client, name: string, ...titles: readonly string[]): Promise<number> {
  const body = Buffer.from(['title', ...titles, ''].join('\n'));
  const { status, data } = await client.request('POST', `/import?name=${name}`, { body });
  assert.equal(status, 200);
  return (data as { import: number }).import;
}

/** Waits until the outcome of an undo is shown, with the focus. */
const noted = (page: Page, text: string) => focused(dialog(page).getByText(text, { exact: true }));

/** Opens what changed, and waits for a line of it. */
async function openLog(page: Page, line: string): Promise<void> {
  await page.getByRole('button', { name: 'What changed' }).click();
  await dialog(page)
    .getByRole('button', { name: `Undo: ${line}` })
    .first()
    .waitFor();
}

describePage('the log of changes on the page', ({ openCatalogue }) => {
  test('a person shows what an import has added, takes it back, and takes that back', async (context) => {
    const catalogue = await openCatalogue(context);
    const { page, client, service, complaints } = catalogue;
    await makeEarlier(service.dbUrl, 24);
    const number = await importBooks(client, 'two.csv', 'A', 'B');
    const imported = 'Imported two.csv, 2 books';
    await openLog(page, imported);
    const days = () => dialog(page).getByRole('heading', { level: 3 }).allTextContents();
    assert.deepEqual(await days(), ['Today', 'Yesterday']);
    await dialog(page)
      .getByRole('listitem')
      .filter({ hasText: /^A added$/ })
      .waitFor();
    await dialog(page)
      .getByText(/^The log of changes begins on .+\.$/)
      .waitFor();
    await press(page, `Show: ${imported}`);
    await shown(page, ['A', 'B']);
    assert.match(page.url(), new RegExp(`\\?event=${number}$`));
    await page.reload();
    await shown(page, ['A', 'B']);
    await chip(page, imported).click();
    await shown(page, ['A', 'B', ...ALL]);
    await openLog(page, imported);
    await press(page, `Undo: ${imported}`);
    await said(page, '2 books will be as before; those that were added will be removed. Undo?');
    await press(page, 'Undo');
    await noted(page, '2 books are as before.');
    await shown(page, ALL);
    const undone = 'Undo of 2 books';
    await press(page, `Show: ${undone}`);
    await said(page, 'None of these books is here now.');
    await press(page, `Undo: ${undone}`);
    await press(page, 'Cancel');
    await focused(dialog(page).getByRole('button', { name: `Undo: ${undone}` }));
    await press(page, `Undo: ${undone}`);
    await press(page, 'Undo');
    await shown(page, ['A', 'B', ...ALL]);
    const { data } = await client.request('GET', '/events');
    const requests = [number, (data as { event: number }[])[1]?.event].map((event) =>
      JSON.stringify({ event }),
    );
    const [one, other] = requests.map((body) => `POST /undo ${body}`) as [string, string];
    await sent(catalogue, [one, one, other, other, other]); // each is checked first
    assert.deepEqual(complaints(), []);
  });

  test('by keyboard: one book goes back at once; of several, a question says which stay as they are', async (context) => {
    const { page, client } = await openCatalogue(context, { books: [] });
    await importBooks(client, 'one.csv', 'A');
    await importBooks(client, 'two.csv', 'B', 'C');
    await client.request('PUT', '/book/3', { body: { year: 1 } });
    await page.keyboard.press('Alt+w');
    const goTo = async (name: string) => {
      const goal = dialog(page).getByRole('button', { name, exact: true });
      await goal.waitFor();
      await waitUntil(async () => {
        await page.keyboard.press('Tab');
        return (await goal.and(page.locator(':focus')).count()) === 1;
      });
      await page.keyboard.press('Enter');
    };
    await goTo('Undo: Imported one.csv, 1 book');
    await noted(page, '1 book is as before.');
    await goTo('Undo: Imported two.csv, 2 books');
    await said(
      page,
      '1 book will be as before, or removed if it was added. 1 book stays as it is: it was changed later. Undo?',
    );
    await focused(dialog(page).getByRole('button', { name: 'Undo', exact: true }));
    await page.keyboard.press('Enter');
    await noted(page, '1 book is as before. 1 book stays as it is: it was changed later.');
    await goTo('Undo: Imported two.csv, 2 books');
    await said(page, '1 book stays as it is: it was changed later.');
    await page.keyboard.press('Escape');
    await shown(page, ['C']);
  });

  test('of a large import, the question says what is checked, and does not guess the rest', async (context) => {
    const { page, client, service } = await openCatalogue(context, { books: [] });
    await importBooks(client, 'large.csv', ...Array.from({ length: 10_002 }, (_, at) => `Book ${at}`));
    const imported = 'Imported large.csv, 10,002 books';
    await openLog(page, imported);
    await press(page, `Undo: ${imported}`);
    await said(page, 'Up to 10,002 books will be as before; those that were added will be removed. Undo?');
    await press(page, 'Cancel');
    await executeOn(service.dbUrl, 'delete from books where id <= 10000');
    await press(page, `Undo: ${imported}`);
    await said(
      page,
      'Of the first 10,000 books, 0 books will be as before; those that were added will be removed. 2 books were not checked. Undo?',
    );
    await press(page, 'Undo');
    await noted(page, '2 books are as before.');
    assert.deepEqual(await client.list(), []);
  });

  test('older events and more books come when a person asks for them', async (context) => {
    const { page, client } = await openCatalogue(context, { books: [] });
    const titles = Array.from({ length: 120 }, (_, at) => `Book ${at}`);
    let event = await importBooks(client, 'many.csv', ...titles);
    for (let time = 0; time < 20; time += 1) {
      const { data } = await client.request('POST', '/undo', { body: { event } });
      event = (data as { change: number }).change;
    }
    await openLog(page, 'Undo of 120 books');
    const lines = dialog(page).getByRole('button', { name: /^Undo: / });
    assert.equal(await lines.count(), 20);
    await press(page, 'Older');
    await dialog(page).getByRole('button', { name: 'Undo: Imported many.csv, 120 books' }).waitFor();
    assert.equal(await lines.count(), 21);
    await dialog(page).getByRole('button', { name: 'Older' }).waitFor({ state: 'hidden' });
    const books = dialog(page)
      .getByRole('listitem')
      .filter({ hasText: /^Book \d+ added$/ });
    const before = await books.count();
    await dialog(page).getByRole('button', { name: 'All 120 books' }).last().click();
    await waitUntil(async () => (await books.count()) === before + 97);
    await press(page, 'More');
    await waitUntil(async () => (await books.count()) === before + 117);
    await focused(dialog(page).getByRole('button', { name: 'Book 100' }).last());
  });

  test('if older events or more books cannot be read, a person tries again, and the list continues there', async (context) => {
    let fails = false;
    const { page, client } = await openCatalogue(context, {
      books: [],
      front: ({ url = '' }, outgoing, forward) => {
        if (fails && /^\/events?[/?]/.test(url)) answer(outgoing, 500, null, 'Internal server error');
        else forward();
      },
    });
    let event = await importBooks(
      client,
      'many.csv',
      ...Array.from({ length: 120 }, (_, at) => `Book ${at}`),
    );
    for (let time = 0; time < 20; time += 1) {
      const { data } = await client.request('POST', '/undo', { body: { event } });
      event = (data as { change: number }).change;
    }
    await openLog(page, 'Undo of 120 books');
    const trouble = dialog(page).getByRole('alert').getByText('The catalogue does not answer.');
    const tryAgain = async (name: string) => {
      await dialog(page).getByRole('button', { name, exact: true }).waitFor(); // the part before is read
      fails = true;
      await press(page, name);
      await trouble.waitFor();
      fails = false;
      await press(page, 'Try again');
      await trouble.waitFor({ state: 'detached' });
    };
    await tryAgain('Older');
    assert.equal(
      await dialog(page)
        .getByRole('button', { name: /^Undo: / })
        .count(),
      21,
    );
    await dialog(page).getByRole('button', { name: 'Undo: Imported many.csv, 120 books' }).waitFor();
    await dialog(page).getByRole('button', { name: 'All 120 books' }).last().click();
    await tryAgain('More');
    await focused(dialog(page).getByRole('button', { name: 'Book 100' }).last());
    const line = dialog(page).getByRole('listitem').filter({ hasText: 'Imported many.csv' });
    assert.equal(await line.getByRole('listitem').count(), 120);
  });

  test('a person goes back to a time, and is told when the log begins', async (context) => {
    const { page, client, service } = await openCatalogue(context);
    await makeEarlier(service.dbUrl, 2);
    await executeOn(service.dbUrl, 'update book_log_state set has_all = 0'); // as if there had been books before
    await client.request('PUT', '/book/7', { body: { year: 1816 } });
    await client.request('DELETE', '/book/8');
    await openLog(page, '2 books changed');
    await press(page, 'Go back to a time …');
    const goTo = async (hours: number) => {
      const time = new Date(Date.now() - hours * HOUR - new Date().getTimezoneOffset() * 60_000);
      await dialog(page).getByLabel('Go back to this time').fill(time.toISOString().slice(0, 16));
      await page.keyboard.press('Enter');
    };
    await goTo(-1);
    await said(page, 'This time is in the future.');
    await goTo(3);
    await page
      .getByRole('alert')
      .getByText(/^The log of changes begins on .+ \d{4}, \d\d:\d\d\.$/)
      .waitFor();
    await goTo(1);
    await said(page, '(1 hour ago): 2 books will be as before; those that were added will be removed. Undo?');
    await press(page, 'Undo');
    await noted(page, '2 books are as before.');
    await page.keyboard.press('Escape');
    assert.deepEqual(
      (await client.list()).map(({ title, year }) => [title, year]),
      BOOKS.map(({ title, year }) => [title, year]),
    );
  });

  test('an older state of a book is brought back, also of one that is deleted, and that is undone', async (context) => {
    const { page, client, service } = await openCatalogue(context);
    const emma = async () => (await client.list()).find(({ id }) => id === 7);
    await makeEarlier(service.dbUrl, 24);
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await said(page, 'Saved');
    await page.keyboard.press('Alt+h');
    await dialog(page).getByRole('heading', { name: 'History of “Emma”' }).waitFor();
    await dialog(page).getByRole('listitem').filter({ hasText: 'year 1815 → 1816' }).waitFor();
    await press(page, 'Bring back: Emma, Jane Austen, 1815');
    await waitUntil(async () => (await emma())?.year === 1815);
    await said(page, 'Saved');
    await page.keyboard.press('Control+z');
    await waitUntil(async () => (await emma())?.year === 1816);
    await mouse.delete(page, 'Emma');
    await said(page, 'Deleted Emma.');
    await openLog(page, '1 book deleted');
    await dialog(page).getByRole('button', { name: 'Emma, Jane Austen, 1815' }).click();
    await dialog(page).getByRole('button', { name: 'Bring back: Emma, Jane Austen, 1815' }).first().click();
    await waitUntil(async () => (await emma())?.year === 1815);
    await waitUntil(async () => (await cell(page, 'Emma', 'year').textContent()) === '1815');
  });

  test('changes by others are shown at once, but for the row that is being edited, and counted without the person’s own changes', async (context) => {
    const followed = Promise.withResolvers<void>();
    const { page, client, complaints } = await openCatalogue(context, {
      follows: true,
      front: ({ url }, _, forward) => {
        if (/^\/changes\?.*cursor=(?!now)/.test(url ?? '')) followed.resolve();
        forward();
      },
    });
    await followed.promise;
    await keyboard.edit(page, 'It', 'year', '1985');
    await keyboard.add(page, { title: 'Persuasion' });
    await shown(page, ['Beowulf', 'Persuasion', ...ALL.slice(1)]);
    await client.request('PUT', '/book/7', { body: { year: 1816 } });
    await client.request('DELETE', '/book/8');
    await waitUntil(async () => (await cell(page, 'Emma', 'year').textContent()) === '1816');
    await row(page, 'Pride and Prejudice').getByRole('button', { name: 'Undo' }).waitFor();
    await messages(page).getByText('2 books were changed by others').waitFor();
    await cell(page, 'Emma', 'title').dblclick();
    await page.keyboard.type('Emma, a novel');
    await client.request('PUT', '/book/7', { body: { year: 1817 } });
    await client.request('PUT', '/book/6', { body: { year: 1938 } });
    await waitUntil(async () => (await cell(page, 'The Hobbit', 'year').textContent()) === '1938');
    assert.equal(await editor(page, 'Emma', 'title').inputValue(), 'Emma, a novel');
    assert.equal(
      await page.getByRole('row').filter({ hasText: 'Emma' }).filter({ hasText: '1816' }).count(),
      1,
    );
    await page.keyboard.press('Escape');
    await waitUntil(async () => (await cell(page, 'Emma', 'year').textContent()) === '1817');
    await messages(page).getByText('3 books were changed by others').waitFor();
    await messages(page).getByRole('button', { name: 'Show' }).last().click();
    await dialog(page).getByRole('heading', { name: 'What changed' }).waitFor();
    assert.deepEqual(complaints(), []);
  });

  test('an undo that the service continues in parts is not counted as a change by others', async (context) => {
    const followed = Promise.withResolvers<void>();
    const undo = { books: 2, checked: 1, changedLater: 0, left: [] };
    let isUndone = false;
    let event = 0;
    let hasCome = false;
    let looks = 0;
    const { page, client } = await openCatalogue(context, {
      follows: true,
      front: ({ method, url = '' }, outgoing, forward) => {
        const name = `${method} ${url}`;
        if (/^GET \/changes\?.*cursor=(?!now)/.test(name)) {
          followed.resolve();
          outgoing.once('finish', () => {
            hasCome ||= isUndone;
          });
        }
        isUndone ||= name === 'POST /undo';
        if (name === 'POST /undo')
          return forward(async (answered) => {
            event = JSON.parse(await text(answered)).data.change;
            answer(outgoing, 202, { event, books: 1, undo });
          });
        if (name !== `POST /event/${event}`) return forward();
        if (hasCome) looks += 1;
        if (looks > 2) forward();
        else answer(outgoing, 202, { event, books: 1, undo }); // before the next look, the page sends nothing else
      },
    });
    await followed.promise;
    await importBooks(client, 'two.csv', 'A', 'B');
    await messages(page).getByText('2 books were changed by others').waitFor();
    await messages(page).getByRole('button', { name: 'Dismiss' }).click();
    await openLog(page, 'Imported two.csv, 2 books');
    await press(page, 'Undo: Imported two.csv, 2 books');
    await press(page, 'Undo');
    await page.keyboard.press('Escape');
    await messages(page).getByText('2 books are as before.').waitFor();
    assert.equal(await messages(page).getByText('changed by others').count(), 0);
  });

  test('out of sight, the page asks nothing; in sight again, it shows what others have changed', async (context) => {
    const requests = { begun: 0, ended: 0 };
    const { page, client } = await openCatalogue(context, {
      follows: true,
      front: ({ url }, outgoing, forward) => {
        if (/^\/changes\?.*cursor=(?!now)/.test(url ?? '')) {
          requests.begun += 1;
          outgoing.once('close', () => {
            requests.ended += 1;
          });
        }
        forward();
      },
    });
    const setHidden = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);
    await waitUntil(() => requests.begun === 1);
    await setHidden(true);
    await waitUntil(() => requests.ended === 1);
    await client.request('PUT', '/book/7', { body: { year: 1816 } });
    await setHidden(false);
    await waitUntil(async () => (await cell(page, 'Emma', 'year').textContent()) === '1816');
    assert.equal(requests.begun - requests.ended, 1);
  });

  test('with HISTORY=off, nothing of the log is offered', async (context) => {
    const { page } = await openCatalogue(context, { env: { HISTORY: 'off' } });
    await page.getByRole('button', { name: 'What changed' }).waitFor({ state: 'hidden' });
    await row(page, 'Emma').hover();
    await row(page, 'Emma').getByRole('button', { name: 'Delete' }).waitFor();
    assert.equal(await row(page, 'Emma').getByRole('button', { name: 'History' }).count(), 0);
    await page.keyboard.press('Alt+w');
    await page.keyboard.press('F1');
    await dialog(page).getByRole('heading', { name: 'Keys' }).waitFor();
    assert.equal(await dialog(page).getByText('what changed').isVisible(), false);
  });
});
