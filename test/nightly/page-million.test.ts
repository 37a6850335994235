// The librarians' page in Chromium with more books than an element of a browser can be high: scrolling, jumping, the focus,
// and whether the rows are those of the service.

import assert from 'node:assert/strict';
import { before, type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Book } from '../../conformance/service.ts';
import { indexAll } from '../support/book-index.ts';
import { fill } from '../support/books.ts';
import { counted, describePage, editor, focused, grid, listed, logIn, row, WAYS } from '../support/page.ts';
import { type RunningService, SQLITE, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

/** More rows than are 8 million pixels high (long-scroll.ts). With a million, the index alone would take most of the time. */
const MANY = 200_000;

/** Pixels. */
const ROW = 46;

/** Distinct titles, whose order is not that of the ids. */
const FILLING = `with recursive n(i) as (select 0 union all select i + 1 from n where i < ${MANY - 1})
  insert into books (title, author, year)
  select printf('Title %06d of many', (i * 7919) % ${MANY}), printf('Author %04d', i % 5000), 1500 + i % 500 from n`;

describePage('the librarians’ page with many books', ({ openDesk }) => {
  let service: RunningService;
  let dbUrl: string;
  before(async () => {
    dbUrl = await SQLITE.freshUrl();
    await fill(dbUrl, []);
    await executeOn(dbUrl, FILLING);
    await indexAll(dbUrl);
    service = await startTestService(dbUrl);
  });

  async function open(context: TestContext): Promise<Page> {
    const { page } = await openDesk(context, `${service.pageUrl}/?sort=title`);
    await logIn(page);
    await listed(page);
    return page;
  }

  /** The part of the list that scrolls. */
  const body = (page: Page) => grid(page).getByRole('rowgroup').nth(1);

  /** The rows in sight, from above, each with its pixels below the upper edge and above the lower one. */
  const sight = (page: Page) =>
    body(page).evaluate((element) => {
      const { top, height } = element.getBoundingClientRect();
      const rows = [...element.querySelectorAll('[role=row]')].map((one) => ({
        index: Number(one.getAttribute('aria-rowindex')) - 2,
        texts: [...one.children].slice(0, 3).map((cell) => cell.textContent),
        y: one.getBoundingClientRect().top - top,
        below: top + height - one.getBoundingClientRect().bottom,
      }));
      return rows.filter(({ y }) => y > -46 && y < height);
    });

  /** Waits until all rows in sight have books, and checks that they are those of the service, one below the other. */
  async function assertRight(page: Page): Promise<void> {
    let rows: Awaited<ReturnType<typeof sight>> = [];
    await waitUntil(async () => {
      rows = await sight(page);
      return rows.length > 0 && rows.every(({ texts }) => texts[0] !== '');
    });
    const { index: first = 0, y: top = 1 } = rows[0] ?? {};
    assert.ok(top <= 0);
    for (const [place, { index, y }] of rows.entries())
      assert.ok(
        index === first + place && Math.abs(y - top - place * ROW) < 1,
        `row ${index} stands at ${y}`,
      );
    const query = `sort=title&offset=${first}&limit=${rows.length}`;
    const { data } = await service.client.request('GET', `/books?${query}`);
    const expected = data.map(({ title, author, year }: Book) => [title, author, String(year)]);
    const shown = rows.map(({ texts }) => texts);
    assert.deepEqual(shown, expected);
  }

  /** Scrolls as by dragging the bar. */
  async function drag(page: Page, share: number): Promise<void> {
    await body(page).evaluate((element, part) => {
      element.scrollTop = part * (element.scrollHeight - element.clientHeight);
    }, share);
  }

  /** Pixels of the whole list above the window. */
  async function topOf(page: Page): Promise<number> {
    const { index = Number.NaN, y = 0 } = (await sight(page))[0] ?? {};
    return index * ROW - y;
  }

  /** Waits until a row, counted from 0, has the focus. */
  async function reached(page: Page, index: number): Promise<void> {
    await focused(page.locator(`[aria-rowindex="${index + 2}"]`).locator(':focus'));
    await assertRight(page);
  }

  /** Waits until the list ends, at the lower edge, with the last book of the service. */
  async function assertEnd(page: Page): Promise<void> {
    const books = await total();
    await waitUntil(async () => (await sight(page)).at(-1)?.index === books - 1);
    await assertRight(page);
    await waitUntil(async () => Math.abs((await sight(page)).at(-1)?.below ?? 9) < 1);
    await counted(page, `${books.toLocaleString('en-GB')} books`);
  }

  async function total(): Promise<number> {
    const options = { headers: { prefer: 'count=exact' } };
    const { headers } = await service.client.request('GET', '/books?sort=title&limit=1', options);
    return Number(headers.get('x-total-count'));
  }

  test('any place can be jumped to, and its rows are those of the service', async (context) => {
    const page = await open(context);
    const books = await total();
    assert.equal(await grid(page).getAttribute('aria-rowcount'), String(books + 1));
    for (const share of [0.5, 0.25, 1, 0.75, 0, 0.999]) {
      await drag(page, share);
      await waitUntil(async () => Math.abs((await topOf(page)) / ROW - share * (books - 13)) < 10);
      await page.getByText(/^\d{1,3}(,\d{3})*( · .*)?$/).waitFor(); // where one is
      await assertRight(page);
    }
    await drag(page, 1);
    await assertEnd(page);
    for (const [words, count] of [
      ['author 0042 many', '40 books found'],
      ['', `${books.toLocaleString('en-GB')} books`],
    ] as const) {
      await WAYS.keyboard.search(page, words);
      await counted(page, count);
      assert.equal(await topOf(page), 0, 'another list begins at its first book');
    }
    await assertRight(page);
  });

  test('in the middle, the wheel moves the rows by its pixels, and nothing jumps when it has stopped', async (context) => {
    const page = await open(context);
    await drag(page, 0.5);
    await assertRight(page);
    await body(page).hover();
    const before = await topOf(page);
    for (let turn = 1; turn <= 10; turn += 1) {
      await page.mouse.wheel(0, -300);
      await waitUntil(async () => Math.abs((await topOf(page)) - before + turn * 300) < 1);
    }
    // The bar is corrected once nothing scrolls any more; the rows stay.
    const due = ((await topOf(page)) / ((await total()) * ROW)) * 8_000_000;
    const scrolled = () => body(page).evaluate((element) => element.scrollTop);
    await waitUntil(async () => Math.abs((await scrolled()) - due) < 100);
    assert.ok(Math.abs((await topOf(page)) - before + 3000) < 1);
    await assertRight(page);
  });

  test('by keys: to the last book, a screen up, to the first one, a hundred down', async (context) => {
    const page = await open(context);
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    await press('ArrowDown', 'Control+End');
    await reached(page, (await total()) - 1);
    await assertEnd(page);
    await press('PageUp', 'ArrowRight', 'Control+Home');
    await reached(page, 0);
    await press(...Array.from({ length: 100 }, () => 'ArrowDown'));
    await reached(page, 100);
    assert.equal(await page.locator(':focus').getAttribute('aria-colindex'), '2');
  });

  test('the row with the focus, or a field, stays however far one scrolls', async (context) => {
    const page = await open(context);
    const title = (text: string) => row(page, text).getByRole('rowheader');
    await title('Title 000005 of many').click();
    await drag(page, 0.6);
    await assertRight(page);
    await focused(title('Title 000005 of many'));
    await page.keyboard.press('ArrowDown');
    await reached(page, 6);
    for (const key of ['F2', 'End', '!']) await page.keyboard.press(key);
    await drag(page, 0.3);
    await assertRight(page);
    const field = editor(page, 'Title 000006 of many', 'title');
    await focused(field);
    assert.equal(await field.inputValue(), 'Title 000006 of many!');
    await page.keyboard.press('Enter');
    await focused(title('Title 000006 of many!'));
    await assertRight(page);
  });

  test('others delete the last ten thousand: a few requests find the end of the list', async (context) => {
    const page = await open(context);
    await drag(page, 1);
    await assertEnd(page);
    const books = (await total()) - 10_095;
    const last = `select id from books order by title limit -1 offset ${books}`;
    await executeOn(dbUrl, `delete from books where id in (${last})`);
    await waitUntil(async () => (await total()) === books);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await drag(page, 0.99);
    await assertEnd(page);
    assert.ok(asked.length <= 8, asked.join('\n'));
  });
});
