// The page /docs in a real browser, used as a person would use it who knows nothing but the page.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import type { Answer } from '../../conformance/answers.ts';
import { violations } from '../support/accessibility.ts';
import { openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { request } from '../support/client.ts';
import { operationsOf } from '../support/operations.ts';
import { type CommandProcess, SQLITE, startCommand } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const QUIJOTE = { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 };

describe('/docs in a browser', () => {
  let browser: Browser;
  let service: CommandProcess;
  before(async () => {
    browser = await startBrowser();
    service = await start();
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  async function start(env: Record<string, string> = {}): Promise<CommandProcess> {
    const dbUrl = await SQLITE.freshUrl();
    return await startCommand({ PORT: '0', ADMIN_PORT: '0', DB_URL: dbUrl, LOG_LEVEL: 'info', ...env });
  }

  async function open(context: TestContext, options: BrowserContextOptions = {}): Promise<WatchedPage> {
    const watched = await openPage(browser, `${operationsOf(service).url}/docs`, options);
    context.after(() => watched.page.context().close());
    await watched.page.getByRole('heading', { level: 1 }).waitFor();
    return watched;
  }

  /** Asks the service without the page. */
  async function held(method: string, path: string, body?: unknown): Promise<Answer> {
    const login = { username: 'admin', password: 'password' };
    const { data } = await request(service, 'POST', '/token', { body: login });
    return await request(service, method, path, { token: data.token, body });
  }

  test('a person logs in, stores a book, reads, lists, changes and removes it', async (context) => {
    const { page, asked, complaints } = await open(context);
    await logIn(page);

    const created = await call(page, 'POST /book', {});
    assert.equal(created.status, 201);
    const { id } = created.data;
    assert.deepEqual((await held('GET', `/book/${id}`)).data, { id, ...QUIJOTE });

    const own = await call(page, 'POST /book', { body: '{"title":"Čapek’s “R.U.R.” 🤖","year":1920}' });
    const stored = { id: own.data.id, title: 'Čapek’s “R.U.R.” 🤖', author: '', year: 1920 };
    assert.deepEqual(own.data, stored);

    assert.deepEqual((await call(page, 'GET /book/{id}', { parameters: { id: stored.id } })).data, stored);
    const list = await call(page, 'GET /books', {});
    assert.deepEqual(list.data.slice(-2), [{ id, ...QUIJOTE }, stored]);
    assert.deepEqual(list.data, (await held('GET', '/books')).data);

    const changed = await call(page, 'PUT /book/{id}', {
      parameters: { id: stored.id },
      body: '{"author":"Karel Čapek"}',
    });
    assert.deepEqual(changed.data, { ...stored, author: 'Karel Čapek' });
    assert.deepEqual((await held('GET', `/book/${stored.id}`)).data, changed.data);

    assert.equal((await call(page, 'DELETE /book/{id}', { parameters: { id: stored.id } })).status, 200);
    assert.equal((await held('GET', `/book/${stored.id}`)).status, 404);

    assert.deepEqual(complaints, []);
    assert.deepEqual([...asked].toSorted(), hosts(service).toSorted());
    assert.deepEqual(await page.context().storageState(), { cookies: [], origins: [] });
  });

  test('rules F1 and F2: a person finds books by parameters, and without any still gets the list', async (context) => {
    const { page, complaints } = await open(context);
    await logIn(page);
    for (const year of [1605, 1615]) await held('POST', '/book', { title: 'Found', year });
    const parameters = { title: 'found', year_gte: 1600, sort: '-year', limit: 2, Prefer: 'count=exact' };
    const found = await call(page, 'GET /books', { parameters });
    assert.deepEqual(found.data, (await held('GET', '/books?title=found&sort=-year')).data.slice(0, 2));
    const shown = await operation(page, 'GET /books').locator('.live-responses-table').innerText();
    for (const header of ['link: </books?', 'x-total-count: ', 'preference-applied: count=exact']) {
      assert.ok(shown.includes(header), header);
    }
    const emptied = Object.fromEntries(Object.keys(parameters).map((name) => [name, '']));
    const list = await call(page, 'GET /books', { parameters: emptied });
    assert.deepEqual(list.data, (await held('GET', '/books')).data);
    assert.deepEqual(complaints, []);
  });

  test('with the built-in username and password, one click logs in, and two more store a first book', async (context) => {
    const { page, complaints } = await open(context);
    const count = (await held('GET', '/books')).data.length;
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await noticed(page, /^Logged in until \d\d:\d\d/);
    await summary(page, 'POST /book').click();
    await shown(page, 'POST /book');
    await page.getByRole('button', { name: 'Execute' }).click();
    await waitUntil(async () => (await held('GET', '/books')).data.length === count + 1);
    assert.deepEqual(complaints, []);
  });

  test('sending POST /token as prefilled logs in', async (context) => {
    const { page, complaints } = await open(context);
    assert.equal((await call(page, 'POST /token', {})).status, 200);
    await noticed(page, /^Logged in until \d\d:\d\d/);
    assert.equal((await call(page, 'POST /book', {})).status, 201);
    assert.deepEqual(complaints, []);
  });

  test('a missing token and a wrong password are explained in plain words', async (context) => {
    const { page } = await open(context);
    assert.equal((await call(page, 'GET /books', {})).message, 'Authorization token required');
    await noticed(page, /^This call needs a token: log in first/);
    await page.getByLabel('Username').fill('admin');
    await page.getByLabel('Password').fill('passwort');
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await noticed(page, /^The username or the password is wrong/);
    assert.equal((await call(page, 'GET /books', {})).status, 401);
    await logIn(page);
    assert.equal((await call(page, 'GET /books', {})).status, 200);
  });

  test('a token that is no longer valid and a service that does not answer are reported', async (context) => {
    const first = await start();
    context.after(() => first.stop());
    const { page } = await openPage(browser, `${operationsOf(first).url}/docs`);
    context.after(() => page.context().close());
    await logIn(page);
    await first.stop();
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await noticed(page, /^The service does not answer at http:\/\/127\.0\.0\.1:\d+/);

    const ports = { PORT: String(first.port), ADMIN_PORT: String(operationsOf(first).port) };
    const again = await start(ports); // with another secret
    context.after(() => again.stop());
    assert.equal((await call(page, 'GET /books', {})).message, 'Invalid token');
    await noticed(page, /^The token is no longer valid: its 15 minutes are over/);
    await logIn(page);
    assert.equal((await call(page, 'GET /books', {})).status, 200);
  });

  test('a link leads to the page for librarians', async (context) => {
    const { page } = await open(context);
    await page.getByRole('link', { name: 'For librarians' }).click();
    await page.getByRole('heading', { name: 'Book catalogue', level: 1 }).waitFor();
    assert.notEqual(new URL(page.url()).host, new URL(operationsOf(service).url).host);
  });

  test('by keyboard alone: log in, open a call, send it', async (context) => {
    const { page } = await open(context);
    await tabTo(page, page.getByLabel('Username'), 3);
    await page.keyboard.type('admin');
    await tabTo(page, page.getByLabel('Password'), 1);
    await page.keyboard.type('password');
    await page.keyboard.press('Enter');
    await noticed(page, /^Logged in until/);
    const count = (await held('GET', '/books')).data.length;
    await tabTo(page, summary(page, 'POST /book'), 20);
    await page.keyboard.press('Enter');
    await shown(page, 'POST /book');
    await tabTo(page, operation(page, 'POST /book').getByRole('button', { name: 'Execute' }), 20);
    await page.keyboard.press('Enter');
    await waitUntil(async () => (await held('GET', '/books')).data.length === count + 1);
  });

  test('on a phone nothing is wider than a screen of 360 or of 320 pixels', async (context) => {
    const viewport = { width: 360, height: 640 };
    const { page } = await open(context, { viewport, isMobile: true, hasTouch: true });
    await logIn(page);
    for (const name of ['POST /token', 'POST /book', 'GET /books']) await call(page, name, {});
    for (const width of [360, 320]) {
      await page.setViewportSize({ width, height: 640 });
      await waitUntil(() => page.evaluate(`document.documentElement.scrollWidth === ${width}`));
    }
  });

  test('axe finds nothing, on a desk, light, and on a phone, dark', async (context) => {
    const { page } = await open(context);
    const assertClean = async (without: readonly string[] = []) => {
      for (const [colorScheme, width] of [
        ['light', 1280],
        ['dark', 360],
      ] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 720 });
        assert.deepEqual(await violations(page, without), [], colorScheme);
      }
    };
    await summary(page, 'POST /book').waitFor();
    await page.getByLabel('Password').fill('passwort');
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await noticed(page, /^The username or the password is wrong/);
    await assertClean(['.swagger-ui']);

    await logIn(page);
    for (const name of ['POST /token', 'POST /book', 'GET /books', 'GET /book/{id}']) {
      await summary(page, name).click();
      await shown(page, name);
    }
    await call(page, 'GET /books', {});
    await summary(page, 'HEAD /books').click();
    for (const place of ['DELETE /book/{id}', 'PUT /book/{id}'].map((name) => operation(page, name))) {
      await place.getByRole('button').first().click();
      await place.getByRole('button', { name: 'Execute' }).click(); // without the id
    }
    await operation(page, 'PUT /book/{id}').getByRole('tab', { name: 'Schema' }).first().click();
    await operation(page, 'GET /books').getByRole('tab', { name: 'Schema' }).first().click();
    await page.getByRole('button', { name: 'Schemas' }).click();
    await assertClean();
  });

  test('a dark colour scheme has light text on a dark background, a light one the reverse', async (context) => {
    const { page } = await open(context, { colorScheme: 'dark' });
    const brightness = async (selector: string, property: string) => {
      const colour = String(
        await page.evaluate(`getComputedStyle(document.querySelector('${selector}')).${property}`),
      );
      return (colour.match(/\d+/g) ?? []).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
    };
    for (const text of ['h1', '#notice', 'label', '.opblock-summary-description']) {
      assert.ok((await brightness(text, 'color')) > 180, text);
    }
    assert.ok((await brightness('body', 'backgroundColor')) < 60);
    await page.emulateMedia({ colorScheme: 'light' });
    await waitUntil(async () => (await brightness('body', 'backgroundColor')) > 200);
    for (const text of ['h1', '#notice', 'label', '.opblock-summary-description']) {
      assert.ok((await brightness(text, 'color')) < 100, text);
    }
  });
});

/** Logs in as the documentation says. */
async function logIn(page: Page): Promise<void> {
  await page.getByLabel('Username').fill('admin');
  await page.getByLabel('Password').fill('password');
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await noticed(page, /^Logged in until \d\d:\d\d/);
}

async function noticed(page: Page, sentence: RegExp): Promise<void> {
  await page.getByRole('status').filter({ hasText: sentence }).waitFor();
}

/** The line that opens a call. */
function summary(page: Page, name: string): Locator {
  const [method = '', path = ''] = name.split(' ');
  const spelled = path.replace(/[{}]/g, '\\$&').replaceAll('/', '\\u200b?/\\u200b?');
  return page.getByRole('button', { name: new RegExp(`^${method} ${spelled} `) });
}

function operation(page: Page, name: string): Locator {
  return page.locator('.opblock').filter({ has: summary(page, name) });
}

/** Waits until a call is fully open: its first parts are drawn again once their references are resolved. */
async function shown(page: Page, name: string): Promise<void> {
  await operation(page, name).getByPlaceholder('X-Request-Id').waitFor();
}

/** Opens a call, fills in the parameters and `body` if given, sends it, and reads the answer that the page shows. */
async function call(
  page: Page,
  name: string,
  { parameters = {}, body }: { parameters?: Record<string, unknown>; body?: string },
): Promise<Pick<Answer, 'status' | 'message' | 'data'>> {
  const place = operation(page, name);
  const execute = place.getByRole('button', { name: 'Execute' });
  if (!(await execute.isVisible())) await summary(page, name).click();
  await shown(page, name);
  for (const [parameter, value] of Object.entries(parameters)) {
    await place.getByPlaceholder(parameter, { exact: true }).fill(String(value));
  }
  if (body !== undefined) await place.getByRole('textbox', { name: 'Request body' }).fill(body);
  const clear = place.getByRole('button', { name: 'Clear' });
  if (await clear.isVisible()) await clear.click();
  await execute.click();
  const answer = place.locator('.live-responses-table .highlight-code code').first();
  return JSON.parse((await answer.textContent()) ?? '');
}

async function tabTo(page: Page, goal: Locator, most: number): Promise<void> {
  for (let count = 0; count < most; count += 1) {
    await page.keyboard.press('Tab');
    if ((await goal.and(page.locator(':focus')).count()) === 1) return;
  }
  assert.fail(`not reached within ${most} tabs`);
}

function hosts(service: CommandProcess): string[] {
  return [service.url, operationsOf(service).url].map((url) => new URL(url).host);
}
