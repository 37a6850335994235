// Owns: the librarians' page in a real browser, and what a librarian does with it, by mouse or by keyboard alone. The parts
// of the page are found by role and name only.

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, describe, type TestContext } from 'node:test';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import type { Book } from '../../conformance/service.ts';
import { openPage, startBrowser } from './browser.ts';
import { type Client, request, type Target } from './client.ts';
import { passOn, startFront } from './front.ts';
import { type RunningService, SQLITE, startTestService } from './service.ts';
import { waitUntil } from './wait.ts';

export type Field = 'title' | 'author' | 'year';

/** In the order of the page: by author. */
export const BOOKS = [
  { title: 'Beowulf', author: '', year: 0 },
  { title: 'L’Étranger', author: 'Albert Camus', year: 1942 },
  { title: 'Cien años de soledad', author: 'Gabriel García Márquez', year: 1967 },
  { title: 'Norwegian Wood', author: 'Haruki Murakami', year: 1987 },
  { title: 'The Odyssey', author: 'Homer', year: -720 },
  { title: 'The Hobbit', author: 'J.R.R. Tolkien', year: 1937 },
  { title: 'Emma', author: 'Jane Austen', year: 1815 },
  { title: 'Pride and Prejudice', author: 'Jane Austen', year: 1813 },
  { title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605 },
  { title: 'It', author: 'Stephen King', year: 1986 },
];

/**
 * Tells a test what a screen reader says on a page. The next text may replace it within milliseconds, so tests
 * cannot look for it in the page.
 */
const LISTENER = `new MutationObserver((changes) => {
  const regions = changes.map(({ target }) => target.closest?.('[role=status]:not([aria-live=off]), [role=alert]'));
  for (const text of new Set(regions.map((region) => region?.textContent.trim()))) if (text) hear(text);
}).observe(document, { subtree: true, childList: true });`;

/** Timers of ten seconds or more, such as the timeout of a call, take 20 times as long, until a test installs Playwright's clock. */
const PATIENCE = `{
  const own = setTimeout;
  globalThis.setTimeout = (work, time = 0) => own(work, time < 10_000 ? time : 20 * time);
}`;

/** That of the file. */
let browser: Browser;

/** The texts said on a page that no test has waited for yet, in their order. */
const heard = new WeakMap<Page, string[]>();

interface Desk {
  readonly page: Page;
  /** Errors of the page, apart from those of the network, which Chromium reports itself. */
  complaints(): string[];
  /** Every host and port that the page has sent a request to. */
  readonly asked: ReadonlySet<string>;
  /** The changes that the page has sent: method, path and body. */
  readonly changes: string[];
}

/**
 * Opens the page as another person, who is not logged in yet.
 * @param follows whether the page sees at once what others change. Most tests are about a person who does not see it yet.
 */
async function openDesk(
  context: TestContext,
  url: string,
  options: BrowserContextOptions = {},
  follows = false,
): Promise<Desk> {
  const { page, asked, complaints } = await openPage(browser, 'about:blank', options);
  context.after(() => page.context().close());
  const changes: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    const method = request.method();
    if (method !== 'GET' && pathname !== '/session')
      changes.push(`${method} ${pathname} ${request.postData() ?? ''}`.trim());
  });
  const texts: string[] = [];
  heard.set(page, texts);
  await page.exposeFunction('hear', (text: string) => texts.push(text));
  await page.addInitScript(PATIENCE);
  await page.addInitScript(LISTENER);
  if (!follows) await page.route(/\/changes\?.*cursor=(?!now)/, () => {}); // it gets no answer
  await page.goto(url);
  const isOfNetwork = (text: string) => text.startsWith('Failed to load resource: ');
  return { page, asked, changes, complaints: () => complaints.filter((text) => !isOfNetwork(text)) };
}

/** A service with books, and a person who is logged in. */
export interface Catalogue extends Desk {
  readonly service: RunningService;
  readonly client: Client;
  /** As they were stored, with their ids. */
  readonly books: readonly Book[];
}

interface CatalogueOptions {
  readonly books?: readonly Omit<Book, 'id'>[];
  /** Of the page's address. */
  readonly query?: string;
  readonly env?: Record<string, string>;
  readonly options?: BrowserContextOptions;
  /** See `openDesk`. */
  readonly follows?: boolean;
  /** Answers each request of the page, or forwards it. */
  readonly front?: (incoming: IncomingMessage, outgoing: ServerResponse, forward: Forward) => void;
}

/** @param give see `passOn`. */
type Forward = (give?: (answered: IncomingMessage) => void) => void;

/** Tests of the page, with one browser for all of them. */
export function describePage(title: string, tests: (doors: typeof DOORS) => void): void {
  describe(title, () => {
    before(async () => {
      browser = await startBrowser();
    });
    after(() => browser?.close());
    tests(DOORS);
  });
}

/** Opens the page in a browser that has kept a session, with a separate service. */
async function openCatalogue(
  context: TestContext,
  { books = BOOKS, query = '', env = {}, options = {}, follows = false, front }: CatalogueOptions = {},
): Promise<Catalogue> {
  const service = await startTestService(await SQLITE.freshUrl(), env);
  context.after(() => service.stop());
  const body = books.map(({ title, author, year }) => ({ title, author, year }));
  const { status } = await service.client.request('POST', '/books', { body });
  assert.equal(status, 201);
  const page = { ...service, url: service.pageUrl };
  const { url } =
    front === undefined
      ? page
      : await startFront(context, (incoming, outgoing) =>
          front(incoming, outgoing, (give) => passOn(page, incoming, outgoing, give)),
        );
  const storageState = await storageOf(page, url);
  const desk = await openDesk(context, `${url}/${query}`, { storageState, ...options }, follows);
  await listed(desk.page);
  return { ...desk, service, client: service.client, books: await service.client.list() };
}

/** What a browser stores at a login. @param origin at which the browser opens the page. */
async function storageOf(page: Target, origin: string) {
  const { host, hostname: domain } = new URL(origin);
  const body = { username: 'librarian', password: 'correct horse' };
  const { headers, data } = await request(page, 'POST', '/session', { body, headers: { host } });
  const [, name = '', value = ''] = /^(.+?)=(.+?);/.exec(headers.get('set-cookie') ?? '') ?? [];
  const flags = { expires: -1, httpOnly: true, secure: false, sameSite: 'Strict' } as const;
  return {
    cookies: [{ name, value, domain, path: '/', ...flags }],
    origins: [{ origin, localStorage: [{ name: 'session /', value: data.key }] }],
  };
}

/** What a test opens in the browser of its file. */
const DOORS = { openDesk, openCatalogue };

/** The login, as a person who knows nothing but the name and the password. */
export async function logIn(page: Page, password = 'correct horse'): Promise<void> {
  const login = page.getByRole('dialog', { name: 'Book catalogue' });
  await login.getByRole('textbox', { name: 'Name' }).fill('librarian');
  await login.getByLabel('Password').fill(password);
  await login.getByRole('button', { name: 'Log in' }).click();
  await login.waitFor({ state: 'hidden' });
}

export function grid(page: Page): Locator {
  return page.getByRole('grid', { name: 'Books' });
}

/** Waits until the browser has reported these changes, which may take longer than storing them, and no others. */
export async function sent({ changes }: Desk, expected: readonly string[]): Promise<void> {
  await waitUntil(() => changes.length >= expected.length);
  assert.deepEqual(changes, expected);
}

/** Waits until the list shows the books asked for. */
export async function listed(page: Page): Promise<void> {
  await waitUntil(async () => (await grid(page).getAttribute('aria-busy')) === 'false');
}

/** Waits until the page says how many books it shows, such as `2 books found`. */
export async function counted(page: Page, text: string): Promise<void> {
  const count = page.getByRole('main').getByRole('status').last();
  await waitUntil(async () => (await count.textContent()) === text);
}

export function searchField(page: Page): Locator {
  return page.getByRole('textbox', { name: 'Search titles and authors' });
}

/** The row of a book, by its whole title. */
export function row(page: Page, title: string): Locator {
  return page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: title, exact: true }) });
}

export function cell(page: Page, title: string, field: Field): Locator {
  const place = row(page, title);
  if (field === 'title') return place.getByRole('rowheader');
  return place.getByRole('gridcell').nth(field === 'author' ? 0 : 1);
}

/** The field that a cell is while it is edited. */
export function editor(page: Page, title: string, field: Field): Locator {
  const name = { title: 'Title', author: 'Author', year: 'Year' }[field];
  return page.getByRole('textbox', { name: `${name} of ${title}`, exact: true });
}

/** The titles of the rows in their order. */
export async function titles(page: Page): Promise<string[]> {
  return await page.getByRole('rowheader').allTextContents();
}

/** Waits until the rows have these titles. */
export async function shown(page: Page, expected: readonly string[]): Promise<void> {
  await waitUntil(async () => JSON.stringify(await titles(page)) === JSON.stringify(expected));
}

/**
 * Waits until a screen reader has said a text, or one that contains it.
 * @returns everything that was said since the last text waited for, up to this one.
 */
export async function said(page: Page, text: string): Promise<string[]> {
  const texts = heard.get(page) ?? [];
  await waitUntil(
    () => texts.some((one) => one.includes(text)),
    undefined,
    () => [text, texts],
  );
  return texts.splice(0, texts.findIndex((one) => one.includes(text)) + 1);
}

/** Closes the page as a person does, who is asked whether to stay, and stays. */
export async function asksToStay(page: Page): Promise<void> {
  const [asked] = await Promise.all([page.waitForEvent('dialog'), page.close({ runBeforeUnload: true })]);
  assert.equal(asked.type(), 'beforeunload');
  await asked.dismiss();
  await page.evaluate('0'); // Chromium drops a reload that comes before the page runs again
}

/** Waits until a person who leaves the page would not be asked whether to stay. */
export async function canBeLeft(page: Page): Promise<void> {
  await waitUntil(() => page.evaluate("dispatchEvent(new Event('beforeunload', { cancelable: true }))"));
}

/** Waits until an element has the focus. */
export async function focused(goal: Locator): Promise<void> {
  const page = goal.page();
  await waitUntil(
    async () => (await goal.and(page.locator(':focus')).count()) === 1,
    undefined,
    async () => [
      `${goal}`,
      await page.locator(':focus').allTextContents(),
      await page.locator('body').ariaSnapshot(),
    ],
  );
}

/** Opens the menu, and presses one of its buttons. */
export async function choose(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('button', { name }).click();
}

const BY_MOUSE = {
  async search(page: Page, words: string) {
    await searchField(page).click();
    await searchField(page).fill('');
    await searchField(page).pressSequentially(words);
    await listed(page);
  },
  async edit(page: Page, title: string, field: Field, text: string) {
    await cell(page, title, field).click();
    await cell(page, title, field).click();
    await editor(page, title, field).fill(text);
    await page.getByRole('columnheader', { name: 'Actions' }).click();
  },
  async add(page: Page, book: Partial<Record<Field, string>>) {
    await page.getByRole('button', { name: 'Add a book' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    for (const [label, text = ''] of fieldsOf(book)) await dialog.getByLabel(label).fill(text);
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
  },
  async delete(page: Page, title: string) {
    await row(page, title).hover();
    await row(page, title).getByRole('button', { name: 'Delete' }).click();
  },
  /** Presses the button that a row has gained. */
  async press(page: Page, title: string, button: string) {
    await row(page, title).getByRole('button', { name: button }).click();
  },
};

const BY_KEYBOARD: typeof BY_MOUSE = {
  async search(page, words) {
    await page.keyboard.press('Control+k'); // selects what is there
    await focused(searchField(page));
    await (words === '' ? page.keyboard.press('Delete') : page.keyboard.type(words));
    await listed(page);
  },
  async edit(page, title, field, text) {
    await goTo(page, title, ['title', 'author', 'year'].indexOf(field));
    await page.keyboard.press('F2');
    await focused(editor(page, title, field));
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Delete');
    await page.keyboard.type(text);
    await page.keyboard.press('Enter');
  },
  async add(page, book) {
    await page.keyboard.press('Insert');
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    await focused(dialog.getByLabel('Title'));
    for (const [label, text = ''] of fieldsOf(book)) {
      await focused(dialog.getByLabel(label));
      await page.keyboard.type(text);
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
  },
  async delete(page, title) {
    await goTo(page, title, 0);
    await page.keyboard.press('Delete');
  },
  async press(page, title, button) {
    await goTo(page, title, 3);
    await focused(row(page, title).getByRole('button', { name: button }));
    await page.keyboard.press('Enter');
  },
};

/** Everything that a librarian does is possible in both ways. */
export const WAYS = { mouse: BY_MOUSE, keyboard: BY_KEYBOARD } as const;

function fieldsOf(book: Partial<Record<Field, string>>) {
  return [
    ['Title', book.title],
    ['Author', book.author],
    ['Year', book.year],
  ] as const;
}

/** Moves the focus by keys to a cell of a book that is in sight. A list that has just changed may move it elsewhere once more. */
async function goTo(page: Page, title: string, column: number): Promise<void> {
  await waitUntil(async () => {
    await page.keyboard.press('Control+k');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('Home');
    const place = (await titles(page)).indexOf(title);
    for (let step = 0; step < place; step += 1) await page.keyboard.press('ArrowDown');
    for (let step = 0; step < column; step += 1) await page.keyboard.press('ArrowRight');
    const cells = row(page, title).getByRole('rowheader').or(row(page, title).getByRole('gridcell'));
    const cell = cells.nth(column);
    return (await cell.and(page.locator(':focus')).or(cell.locator(':focus')).count()) === 1;
  });
}
