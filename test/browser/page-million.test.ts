// The librarians' page with more books than an element of a browser can be high: scrolling, jumping, the focus, and whether
// the rows are those of the service.

import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { Book } from '../../conformance/service.ts';
import { fill } from '../support/books.ts';
import { runCommand } from '../support/command.ts';
import {
  counted,
  type Desk,
  describePage,
  editor,
  focused,
  grid,
  listed,
  logIn,
  row,
  searchField,
  WAYS,
} from '../support/page.ts';
import { type RunningService, SQLITE, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

/** More rows than are 8 million pixels high (long-scroll.ts). With a million, the index alone would take most of the time. */
const MANY = 200_000;

/** So that all books are counted. */
const EXACTLY = { headers: { prefer: 'count=exact' } };

/** Pixels. */
const ROW = 46;

/** Distinct titles, whose order is not that of the ids. */
const FILLING = `with recursive n(i) as (select 0 union all select i + 1 from n where i < ${MANY - 1})
  insert into books (title, author, year)
  select printf('Title %06d of many', (i * 7919) % ${MANY}), printf('Author %04d', i % 5000), 1500 + i % 500 from n`;

/** The rows in sight, from above. */
interface Sight {
  readonly rows: readonly { readonly index: number; readonly texts: readonly string[]; readonly y: number }[];
  /** Pixels. */
  readonly height: number;
}

describePage('the librarians’ page with many books', ({ openDesk }) => {
  let service: RunningService;
  let dbUrl: string;
  before(async () => {
    dbUrl = await SQLITE.freshUrl();
    await fill(dbUrl, []);
    await executeOn(dbUrl, FILLING);
    assert.equal((await runCommand(['index'], { DB_URL: dbUrl })).code, 0);
    service = await startTestService(dbUrl);
  });
  after(() => service?.stop());

  async function open(context: TestContext): Promise<Desk> {
    const desk = await openDesk(context, `${service.pageUrl}/?sort=title`);
    await logIn(desk.page);
    await listed(desk.page);
    return desk;
  }

  /** The part of the list that scrolls. */
  const body = (page: Page): Locator => grid(page).getByRole('rowgroup').nth(1);

  async function sight(page: Page): Promise<Sight> {
    return await body(page).evaluate((element) => {
      const { top, height } = element.getBoundingClientRect();
      const rows = [...element.querySelectorAll('[role=row]')].map((one) => ({
        index: Number(one.getAttribute('aria-rowindex')) - 2,
        texts: [...one.children].slice(0, 3).map((cell) => cell.textContent ?? ''),
        y: one.getBoundingClientRect().top - top,
      }));
      return { rows: rows.filter(({ y }) => y > -46 && y < height), height };
    });
  }

  /** Waits until all rows in sight have books, and checks that they are those of the service, one below the other. */
  async function assertRight(page: Page): Promise<Sight> {
    let seen: Sight = { rows: [], height: 0 };
    await waitUntil(async () => {
      seen = await sight(page);
      return seen.rows.length > 0 && seen.rows.every(({ texts }) => texts[0] !== '');
    });
    const [first] = seen.rows;
    assert.ok(first !== undefined && first.y <= 0);
    for (const [place, { index, y }] of seen.rows.entries()) {
      assert.equal(index, first.index + place);
      assert.ok(Math.abs(y - first.y - place * ROW) < 1, `row ${index} stands at ${y}`);
    }
    const query = `sort=title&offset=${first.index}&limit=${seen.rows.length}`;
    const { data } = await service.client.request('GET', `/books?${query}`);
    const expected = data.map(({ title, author, year }: Book) => [title, author, String(year)]);
    assert.deepEqual(
      seen.rows.map(({ texts }) => texts),
      expected,
    );
    return seen;
  }

  /** Scrolls as by dragging the bar. */
  async function drag(page: Page, share: number): Promise<void> {
    await body(page).evaluate((element, part) => {
      element.scrollTop = part * (element.scrollHeight - element.clientHeight);
    }, share);
  }

  /** Pixels of the whole list above the window. */
  async function topOf(page: Page): Promise<number> {
    const [first] = (await sight(page)).rows;
    return first === undefined ? Number.NaN : first.index * ROW - first.y;
  }

  test('any place can be jumped to, and its rows are those of the service', async (context) => {
    const { page, complaints } = await open(context);
    assert.equal(await grid(page).getAttribute('aria-rowcount'), String(MANY + 1));
    for (const share of [0.5, 0.25, 1, 0.75, 0, 0.999]) {
      await drag(page, share);
      const place = Math.round(share * (MANY - 13));
      await waitUntil(async () => Math.abs((await topOf(page)) / ROW - place) < 10);
      await page.getByText(/^\d{1,3}(,\d{3})*( · .*)?$/).waitFor(); // where one is
      await assertRight(page);
    }
    await drag(page, 1);
    await waitUntil(async () => (await sight(page)).rows.at(-1)?.index === MANY - 1);
    const { rows, height } = await assertRight(page);
    assert.ok(Math.abs((rows.at(-1)?.y ?? 0) + ROW - height) < 1, 'the last row stands at the lower edge');
    assert.equal(rows.at(-1)?.texts[0], 'Title 199999 of many');
    assert.deepEqual(complaints(), []);
  });

  test('in the middle, the wheel moves the rows by its pixels, and nothing jumps when it has stopped', async (context) => {
    const { page } = await open(context);
    await drag(page, 0.5);
    await assertRight(page);
    await body(page).hover();
    for (const step of [300, -300]) {
      const before = await topOf(page);
      for (let turn = 1; turn <= 10; turn += 1) {
        await page.mouse.wheel(0, step);
        await waitUntil(async () => Math.abs((await topOf(page)) - before - turn * step) < 1);
      }
      await assertRight(page);
      // The bar is corrected once nothing scrolls any more; the rows stay.
      const scrolled = () => body(page).evaluate((element) => element.scrollTop);
      const due = ((await topOf(page)) / (MANY * ROW)) * 8_000_000;
      await waitUntil(async () => Math.abs((await scrolled()) - due) < 100);
      assert.ok(Math.abs((await topOf(page)) - before - 10 * step) < 1);
    }
  });

  test('by keys: to the last book, to the first one, a hundred down, a screen', async (context) => {
    const { page } = await open(context);
    const active = async () => (await page.locator(':focus').getAttribute('aria-colindex')) ?? '';
    const index = async () =>
      Number(await page.locator('[role=row]:focus-within').getAttribute('aria-rowindex')) - 2;
    await page.keyboard.press('ArrowDown');
    await waitUntil(async () => (await index()) === 0);
    await page.keyboard.press('Control+End');
    await waitUntil(async () => (await index()) === MANY - 1);
    const { rows, height } = await assertRight(page);
    assert.ok(Math.abs((rows.at(-1)?.y ?? 0) + ROW - height) < 1);
    await page.keyboard.press('PageUp');
    await page.keyboard.press('ArrowRight');
    await waitUntil(async () => (await index()) < MANY - 10);
    assert.equal(await active(), '2');
    await assertRight(page);
    await page.keyboard.press('Control+Home');
    await waitUntil(async () => (await index()) === 0);
    await assertRight(page);
    for (let time = 0; time < 100; time += 1) await page.keyboard.press('ArrowDown');
    await waitUntil(async () => (await index()) === 100);
    await assertRight(page);
    await focused(row(page, 'Title 000100 of many').getByRole('gridcell').first());
    for (let time = 0; time < 101; time += 1) await page.keyboard.press('ArrowUp');
    await waitUntil(async () => (await index()) === 0);
    await assertRight(page);
  });

  test('the row with the focus, or a field, stays however far one scrolls', async (context) => {
    const { page } = await open(context);
    const title = row(page, 'Title 000005 of many').getByRole('rowheader');
    await title.click();
    await drag(page, 0.6);
    await assertRight(page);
    await focused(title);
    await page.keyboard.press('ArrowDown');
    await focused(row(page, 'Title 000006 of many').getByRole('rowheader'));
    await assertRight(page);

    await page.keyboard.press('F2');
    await page.keyboard.press('End');
    await page.keyboard.type('!');
    await drag(page, 0.3);
    await assertRight(page);
    const field = editor(page, 'Title 000006 of many', 'title');
    await focused(field);
    assert.equal(await field.inputValue(), 'Title 000006 of many!');
    await page.keyboard.press('Enter');
    await focused(row(page, 'Title 000006 of many!').getByRole('rowheader'));
    await waitUntil(async () => {
      const { data } = await service.client.request('GET', '/books?title=title+000006+of+many');
      return data[0].title === 'Title 000006 of many!';
    });
    await assertRight(page);
  });

  test('a search far down begins at its first book, and all books then begin at theirs', async (context) => {
    const { page } = await open(context);
    await drag(page, 0.75);
    await assertRight(page);
    await WAYS.keyboard.search(page, 'author 0042 many');
    await counted(page, '40 books found');
    assert.equal((await sight(page)).rows[0]?.index, 0);
    assert.equal((await sight(page)).rows[0]?.texts[1], 'Author 0042');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+End');
    await waitUntil(async () => (await sight(page)).rows.at(-1)?.index === 39);
    await searchField(page).fill('');
    await counted(page, '200,000 books');
    await assertRight(page);
    assert.equal(await topOf(page), 0);
  });

  test('rows below a book that was deleted are still the right ones', async (context) => {
    const { page } = await open(context);
    await page.clock.install();
    await WAYS.keyboard.delete(page, 'Title 000003 of many');
    await page.clock.fastForward(10_001);
    await row(page, 'Title 000003 of many').getByRole('button', { name: 'Put back' }).waitFor();
    await drag(page, 0.4);
    await waitUntil(async () => (await topOf(page)) > 1_000_000);
    await page.clock.fastForward(1000);
    await assertRight(page);
  });

  test('the list ends where the books of the service end, although others have deleted some', async (context) => {
    const { page } = await open(context);
    const { data } = await service.client.request('GET', '/books?sort=-title&limit=150');
    for (const { id } of data) await service.client.request('DELETE', `/book/${id}`);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+End');
    await assertEnd(page);
    assert.notEqual(await page.evaluate('document.activeElement.tagName'), 'BODY');
  });

  test('the list ends there also if the page after its last one answers last', async (context) => {
    const { page } = await open(context);
    const rows = Number(await grid(page).getAttribute('aria-rowcount')) - 1;
    await leave(199_505);
    const late = Promise.withResolvers<void>();
    await page.route(/offset=199600/, async (route) => {
      await late.promise;
      await route.continue();
    });
    const answer = page.waitForResponse(/offset=199600/);
    await drag(page, 199_595 / (rows - 13));
    await assertEnd(page);
    late.resolve();
    await (await answer).finished();
    await page.evaluate('new Promise(requestAnimationFrame)');
    await assertEnd(page);
  });

  test('however many books others have deleted at the end, a few requests find it', async (context) => {
    const { page } = await open(context);
    await drag(page, 1);
    await assertEnd(page);
    await leave(189_505);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await drag(page, 0.99);
    await assertEnd(page);
    assert.ok(asked.length <= 8, asked.join('\n'));
  });

  async function total(): Promise<number> {
    const { headers } = await service.client.request('GET', '/books?sort=title&limit=1', EXACTLY);
    return Number(headers.get('x-total-count'));
  }

  /** Deletes all books but the first ones, as others do. */
  async function leave(books: number): Promise<void> {
    const last = `select id from books order by title limit -1 offset ${books}`;
    await executeOn(dbUrl, `delete from books where id in (${last})`);
    await waitUntil(async () => (await total()) === books);
  }

  /** Waits until the list ends with the last book of the service. */
  async function assertEnd(page: Page): Promise<void> {
    const books = await total();
    await waitUntil(async () => (await sight(page)).rows.at(-1)?.index === books - 1);
    await assertRight(page);
    await counted(page, `${books.toLocaleString('en-GB')} books`);
  }
});
