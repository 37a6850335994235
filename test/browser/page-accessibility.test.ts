// The librarians' page for everybody: axe in each of its states, what screen readers get, where the focus goes, narrow
// windows, large text, forced colours, less motion.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { COLOURS, violations } from '../support/accessibility.ts';
import {
  BOOKS,
  type Catalogue,
  cell,
  choose,
  describePage,
  focused,
  grid,
  listed,
  logIn,
  row,
  said,
  searchField,
  shown,
  WAYS,
} from '../support/page.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard } = WAYS;

const BY_AUTHOR = BOOKS.map(({ title }) => title);
const PHONE_WINDOW = { viewport: { width: 390, height: 700 }, isMobile: true, hasTouch: true };

/** Brings the page from the state before to the next one. */
type Step = (catalogue: Catalogue) => Promise<unknown>;

const press = (page: Page, name: string) => page.getByRole('button', { name }).click();
const dialog = (page: Page, name?: string) =>
  page.getByRole('dialog', { ...(name !== undefined && { name }) });
const alert = (page: Page, text: string) => page.getByRole('alert').filter({ hasText: text });
const inRow = (page: Page, title: string, name: string) => row(page, title).getByRole('button', { name });

/** Of a page that is not logged in. */
const SHARED: Readonly<Record<string, Step>> = {
  login: ({ page }) => dialog(page, 'Book catalogue').waitFor(),
  'empty shelf': async ({ page }) => {
    await logIn(page);
    await page.getByRole('heading', { name: 'No books yet' }).waitFor();
  },
  list: async ({ page, client }) => {
    await client.request('POST', '/books', { body: BOOKS });
    await searchField(page).fill(' ');
    await shown(page, BY_AUTHOR);
  },
  menu: ({ page }) => press(page, 'More'),
  keys: async ({ page }) => {
    for (const key of ['Escape', 'F1']) await page.keyboard.press(key);
    await dialog(page, 'Keys').waitFor();
  },
  'nothing found': async ({ page }) => {
    await page.keyboard.press('Escape');
    await press(page, 'Newest first');
    await shown(page, BY_AUTHOR.toReversed()); // the newest first, from now on
    await searchField(page).fill('zzz');
    await page.getByRole('heading', { name: 'Nothing matches “zzz”' }).waitFor();
  },
  search: async ({ page }) => {
    await searchField(page).fill('austen');
    await shown(page, ['Pride and Prejudice', 'Emma']);
  },
  add: async ({ page }) => {
    await press(page, 'Add a book');
    await page.keyboard.type('Emma');
    await page.getByRole('status').filter({ hasText: 'Already here' }).waitFor();
    await dialog(page).getByLabel('Year').fill('x');
    await page.keyboard.press('Enter');
    await alert(page, 'cannot be read as a year').waitFor();
  },
  added: async ({ page }) => {
    await dialog(page).getByLabel('Year').fill('');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Messages' }).getByText('was added').waitFor();
  },
  'what changed, with a question': async ({ page }) => {
    await page.keyboard.press('Alt+w');
    await dialog(page)
      .getByRole('button', { name: /^Undo: / })
      .click();
    await dialog(page).getByRole('button', { name: 'Cancel' }).waitFor();
    await press(page, 'Go back to a time …');
  },
  'history of a book': async ({ page }) => {
    await dialog(page).getByRole('button', { name: 'Beowulf' }).click();
    await dialog(page, 'History of “Beowulf”').getByRole('listitem').waitFor();
  },
};

const DESK: Readonly<Record<string, Step>> = {
  ...SHARED,
  import: async ({ page }) => {
    await page.keyboard.press('Escape');
    await press(page, 'Import');
    await dialog(page, 'Import books').waitFor();
  },
  export: async ({ page }) => {
    await page.keyboard.press('Escape');
    await press(page, 'Export');
    await dialog(page, 'Save 2 books found').waitFor();
  },
  'edit with a complaint': async ({ page }) => {
    await page.keyboard.press('Escape');
    await cell(page, 'Pride and Prejudice', 'year').dblclick();
    await page.keyboard.type('soon');
    await page.keyboard.press('Enter');
    await alert(page, '“soon” cannot be read').waitFor();
  },
  'refused text in its row': async ({ page }) => {
    await searchField(page).click();
    await inRow(page, 'Pride and Prejudice', 'Correct').waitFor();
  },
  deleted: async ({ page }) => {
    await cell(page, 'Pride and Prejudice', 'title').click();
    await page.keyboard.press('Delete');
    await inRow(page, 'Pride and Prejudice', 'Undo').waitFor();
  },
  conflict: async ({ page, client }) => {
    await searchField(page).fill('hobbit');
    await shown(page, ['The Hobbit']);
    await cell(page, 'The Hobbit', 'year').dblclick();
    await client.request('PUT', '/book/6', { body: { year: 1 } }); // a cell that is being edited stays
    for (const key of ['Control+a', '2', 'Enter']) await page.keyboard.press(key);
    await dialog(page, 'Somebody else has changed this book').waitFor();
  },
  'changed by somebody else': async ({ page }) => {
    await page.keyboard.press('Escape');
    await inRow(page, 'The Hobbit', 'Compare').waitFor();
  },
  'away, with an edit that is not stored': async ({ page, service }) => {
    await searchField(page).fill('quijote');
    await shown(page, ['Don Quijote']);
    await page.clock.install();
    await service.stop();
    await keyboard.edit(page, 'Don Quijote', 'year', '1615');
    await page.keyboard.press('End'); // to the pencil, which another button replaces
    const again = inRow(page, 'Don Quijote', 'Try again');
    await waitUntil(async () => {
      await page.clock.fastForward(1000);
      return await again.isVisible();
    });
    await focused(again);
    await alert(page, 'Your changes are kept').waitFor();
  },
};

const PHONE: Readonly<Record<string, Step>> = {
  ...SHARED,
  sheet: async ({ page }) => {
    await page.keyboard.press('Escape');
    await page.getByRole('rowheader', { name: 'Pride and Prejudice' }).click();
    await dialog(page, 'Change the book').waitFor();
  },
  deleted: async ({ page }) => {
    await dialog(page).getByRole('button', { name: 'Delete' }).click();
    await inRow(page, 'Pride and Prejudice', 'Undo').waitFor();
  },
  away: async ({ page, service }) => {
    await service.stop();
    await searchField(page).fill('it');
    await alert(page, 'Your changes are kept').waitFor();
  },
};

/** An appearance: options of the browser, Chromium's size of text in pixels, and the widths of its window, the first one last. */
const APPEARANCES: Readonly<
  Record<string, [BrowserContextOptions, number, readonly number[], Readonly<Record<string, Step>>]>
> = {
  'on a desk': [{}, 16, [1280], DESK],
  'on a phone': [PHONE_WINDOW, 16, [320, 390], PHONE],
  'with text of 200 %': [{ viewport: { width: 640, height: 800 } }, 32, [1280, 320, 640], PHONE],
};

/** What is wider than the window or its own dialog, and each control that is too small to be hit. */
const MISFITS = `[
  ...[document.documentElement, ...document.querySelectorAll('dialog[open]')]
    .filter((element) => element.scrollWidth > element.clientWidth)
    .map((element) => element.id + ' ' + element.scrollWidth + ' > ' + element.clientWidth),
  ...[...document.querySelectorAll('button, select, input:not([type=checkbox], [type=radio], [type=file])')]
    .map((element) => [element, element.getBoundingClientRect()])
    .filter(([, { width, height }]) => width > 0 && (width < 24 || height < 24))
    .map(([element, { width, height }]) => element.outerHTML + ' ' + width + ' × ' + height)]`;

describePage('the librarians’ page for everybody', ({ openCatalogue }) => {
  for (const [name, [options, size, widths, steps]] of Object.entries(APPEARANCES)) {
    const more = size > 16 ? '' : ', axe finds nothing, light or dark, and the focus is not lost';
    test(`${name}, in every state, everything fits${more}`, async (context) => {
      const still = { reducedMotion: 'reduce', colorScheme: 'light', ...options } as const;
      const catalogue = await openCatalogue(context, { books: [], options: still });
      const { page, complaints } = catalogue;
      const session = await page.context().newCDPSession(page);
      await session.send('Page.setFontSizes', { fontSizes: { standard: size } });
      await choose(page, 'Log out');
      for (const [state, step] of Object.entries(steps)) {
        await step(catalogue);
        for (const width of widths) {
          await page.setViewportSize({ width, height: 720 });
          assert.deepEqual(await page.evaluate(MISFITS), [], `${state}, ${width} pixels wide`);
        }
        if (more === '') continue; // nothing else depends on the size of text
        assert.deepEqual(await violations(page), [], state);
        await page.emulateMedia({ colorScheme: 'dark' });
        assert.deepEqual(await violations(page, [], COLOURS), [], `${state}, dark`);
        await page.emulateMedia({ colorScheme: 'light' });
        const place = await page.evaluate('document.activeElement.tagName');
        if (steps === DESK && state !== 'menu') assert.notEqual(place, 'BODY', `the focus is lost: ${state}`);
      }
      assert.equal(await page.evaluate('getComputedStyle(document.body).fontSize'), `${size}px`);
      assert.deepEqual(complaints(), []);
    });
  }

  test('a screen reader gets a grid with its size and order, and rows without ornaments', async (context) => {
    const more = Array.from({ length: 490 }, (_, at) => ({ title: `Z ${at}`, author: 'Z', year: 1 }));
    const { page } = await openCatalogue(context, { books: [...BOOKS, ...more] });
    assert.match(
      await page.getByRole('row').first().ariaSnapshot(),
      /^- row "Title Author Year Actions":(\n {2}- columnheader "(\w+)":\n {4}- button "\2"){3}\n {2}- columnheader "Actions"$/,
    );
    const snapshot = (names: string) =>
      [
        `- row "Emma Jane Austen 1815 ${names}":`,
        ...['- rowheader "Emma"', '- gridcell "Jane Austen"', '- gridcell "1815"', `- gridcell "${names}":`],
        ...names.split(' ').map((name) => `  - button "${name}"`),
      ].join('\n  ');
    assert.equal(await row(page, 'Emma').ariaSnapshot(), snapshot('Edit Delete History'));
    await keyboard.delete(page, 'Emma');
    assert.equal(await row(page, 'Emma').ariaSnapshot(), snapshot('Undo'));
    assert.equal(await grid(page).getAttribute('aria-rowcount'), '501');
    assert.equal(await grid(page).getAttribute('aria-colcount'), '4');
    assert.equal(await row(page, 'Emma').getAttribute('aria-rowindex'), '8');
    assert.equal(await cell(page, 'Emma', 'author').getAttribute('aria-colindex'), '2');
    assert.equal(await grid(page).locator('[tabindex="0"]').count(), 1, 'one stop for Tab');

    // Whatever was scrolled, rows are read in their order.
    for (const key of ['Control+End', 'PageUp', 'PageUp', 'Control+Home', 'PageDown', 'ArrowDown']) {
      await page.keyboard.press(key);
      await listed(page);
      const rows = page.getByRole('row');
      const order = await rows.evaluateAll((all) => all.map((one) => Number(one.ariaRowIndex)));
      const sorted = order.toSorted((one, other) => one - other);
      assert.deepEqual(order, sorted, key);
      assert.equal(await page.locator(':focus').count(), 1, key);
    }
  });

  test('every change is announced, once and politely', async (context) => {
    const { page } = await openCatalogue(context);
    await keyboard.search(page, 'austen');
    await said(page, '2 books found');
    for (const [change, text] of [
      [() => keyboard.edit(page, 'Emma', 'year', '1816'), 'Saved'],
      [() => keyboard.delete(page, 'Emma'), 'Deleted Emma. Control Z brings it back.'],
      [() => page.keyboard.press('Control+z'), 'Undone: Emma'],
      [() => keyboard.search(page, 'zzz'), '0 books found'],
    ] as const) {
      await change();
      assert.deepEqual(await said(page, text), [text]);
    }
  });

  test('the complaint about the last row in sight is also in sight', async (context) => {
    const books = Array.from({ length: 300 }, (_, at) => ({ title: `Book ${at}`, author: '', year: 1 }));
    const { page } = await openCatalogue(context, { books });
    await cell(page, 'Book 0', 'title').click();
    for (const key of ['PageDown', 'ArrowUp', 'Control+End']) {
      for (const one of [key, 'End', 'ArrowLeft']) await page.keyboard.press(one);
      await page.locator(':focus').filter({ hasText: '1' }).waitFor(); // the books have arrived
      for (const one of ['F2', 'x', 'Enter']) await page.keyboard.press(one);
      const complaint = alert(page, '“x” cannot be read');
      await waitUntil(() =>
        complaint.evaluate((element) => {
          const { x, width, top, bottom } = element.getBoundingClientRect();
          const at = (y: number) => element.ownerDocument.elementFromPoint(x + width / 2, y);
          return [top + 2, bottom - 2].every((y) => element.contains(at(y)));
        }),
      );
      await page.keyboard.press('Escape');
    }
  });

  test('in forced colours, one sees where the focus is, what is pressed, and what is deleted', async (context) => {
    const { page } = await openCatalogue(context, { options: { forcedColors: 'active' } });
    const chip = page.getByRole('button', { name: 'Newest first' });
    for (const [part, change] of [
      [chip, () => chip.click().then(() => searchField(page).focus())],
      [cell(page, 'Emma', 'author'), () => cell(page, 'Emma', 'author').click()],
      [cell(page, 'Emma', 'title'), () => page.keyboard.press('Delete')],
    ] as const) {
      const before = await part.screenshot();
      await change();
      await waitUntil(async () => !(await part.screenshot()).equals(before));
    }
  });

  test('with a zoom of 400 %, the list that is scrolled has the window, until the search gets the focus', async (context) => {
    const books = Array.from({ length: 40 }, (_, at) => ({ title: `Book ${at}`, author: '', year: 1 }));
    const { page } = await openCatalogue(context, {
      books,
      options: { viewport: { width: 320, height: 200 } },
    });
    const height = async () => (await grid(page).boundingBox())?.height ?? 0;
    assert.ok((await height()) < 100);
    await cell(page, 'Book 0', 'title').hover();
    await page.mouse.wheel(0, 500);
    await waitUntil(async () => (await height()) > 190);
    await page.keyboard.press('Control+k');
    await waitUntil(async () => ((await searchField(page).boundingBox())?.width ?? 0) > 100);
    for (const key of ['ArrowDown', 'Control+End']) await page.keyboard.press(key);
    await waitUntil(async () => (await height()) > 190);
    await page.keyboard.press('Control+Home');
    await waitUntil(async () => (await height()) < 100);
  });

  test('the focus is not lost when no books are found any more, or the button that opened a dialog is gone', async (context) => {
    const { page } = await openCatalogue(context, { books: [], query: '?q=emam' });
    await page.getByRole('button', { name: 'Show all books' }).click();
    await page.getByRole('button', { name: 'Try 20 example books' }).click();
    await page.getByRole('button', { name: 'Import 20 books' }).click();
    await page.getByRole('button', { name: 'Done' }).click();
    await focused(searchField(page));
    await page.keyboard.type('emam');
    await page.getByRole('button', { name: 'Emma', exact: true }).click();
    await focused(cell(page, 'Emma', 'title'));
    await page.goBack();
    await page.getByText('Did you mean').first().waitFor();
    await focused(searchField(page));
  });

  test('the list reaches the lower edge of a screen of any size', async (context) => {
    const { page } = await openCatalogue(context);
    for (const [width, height] of [
      [1366, 768],
      [3840, 2160],
    ] as const) {
      await page.setViewportSize({ width, height });
      await waitUntil(async () => {
        const { y = 0, height: own = 0 } = (await grid(page).boundingBox()) ?? {};
        return y > 0 && y < 200 && y + own <= height && y + own >= height - 40;
      });
      assert.deepEqual(await page.evaluate(MISFITS), []);
    }
  });

  test('nothing moves for a person who wants less motion', async (context) => {
    const { page } = await openCatalogue(context);
    const started = () => page.evaluate<number>('started.splice(0).length');
    await page.evaluate(`globalThis.started = [];
      for (const name of ['animationstart', 'transitionrun']) document.addEventListener(name, () => started.push(name), true)`);
    await page.keyboard.press('Insert');
    await waitUntil(async () => (await started()) > 0); // this test could not fail otherwise
    await page.keyboard.press('Escape');
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await page.evaluate('new Promise((ended) => requestAnimationFrame(() => requestAnimationFrame(ended)))');
    await started(); // what had started before
    await page.keyboard.press('Insert');
    await page.keyboard.type('Persuasion');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Messages' }).getByRole('button', { name: 'Show' }).waitFor();
    assert.equal(await started(), 0);
  });
});
