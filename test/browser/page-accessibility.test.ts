// The librarians' page for everybody: axe in each of its states, what screen readers get, where the focus goes, narrow
// windows, large text, forced colours, less motion.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { violations } from '../support/accessibility.ts';
import {
  BOOKS,
  type Catalogue,
  cell,
  choose,
  describePage,
  focused,
  grid,
  listed,
  row,
  said,
  searchField,
  shown,
  startAgain,
  WAYS,
} from '../support/page.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard } = WAYS;

const BY_AUTHOR = BOOKS.map(({ title }) => title);

/** Brings the page from the state before to the next one. */
type Step = (catalogue: Catalogue) => Promise<unknown>;

const leave = (page: Page) => page.keyboard.press('Escape');

const SHARED: Readonly<Record<string, Step>> = {
  list: ({ page }) => shown(page, BY_AUTHOR),
  menu: ({ page }) => page.getByRole('button', { name: 'More' }).click(),
  keys: ({ page }) => page.getByRole('button', { name: 'Keys' }).click(),
  figures: async ({ page }) => {
    await leave(page);
    await choose(page, 'Catalogue status');
    await page.getByRole('dialog').getByRole('button', { name: 'It, Stephen King, 1986' }).waitFor();
  },
  'nothing found': async ({ page }) => {
    await leave(page);
    await searchField(page).fill('zzz');
    await page.getByRole('heading', { name: 'Nothing matches “zzz”' }).waitFor();
  },
  search: async ({ page }) => {
    await searchField(page).fill('austen');
    await shown(page, ['Emma', 'Pride and Prejudice']);
  },
  add: async ({ page }) => {
    await page.getByRole('button', { name: 'Add a book' }).click();
    await page.keyboard.type('Emma');
    await page.getByRole('status').filter({ hasText: 'Already here' }).waitFor();
    await page.getByRole('dialog').getByLabel('Year').fill('x');
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'not an unambiguous year' }).waitFor();
  },
  added: async ({ page }) => {
    await page.getByRole('dialog').getByLabel('Year').fill('');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Messages' }).getByRole('button', { name: 'Show' }).waitFor();
  },
};

const DESK: Readonly<Record<string, Step>> = {
  ...SHARED,
  import: async ({ page }) => {
    await page.getByRole('button', { name: 'Import' }).click();
    await page.getByRole('dialog', { name: 'Import books' }).waitFor();
  },
  export: async ({ page }) => {
    await leave(page);
    await page.getByRole('button', { name: 'Export' }).click();
    await page.getByRole('dialog', { name: 'Save 2 books found' }).waitFor();
  },
  'edit with a complaint': async ({ page }) => {
    await leave(page);
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.getByRole('rowheader', { name: 'Pride and Prejudice' }).click();
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('F2');
    await page.keyboard.type('soon');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: '“soon” is not' }).waitFor();
  },
  deleted: async ({ page }) => {
    await leave(page);
    await page.keyboard.press('Delete');
    await row(page, 'Pride and Prejudice').getByRole('button', { name: 'Undo' }).waitFor();
  },
  conflict: async ({ page, client }) => {
    await searchField(page).fill('hobbit');
    await shown(page, ['The Hobbit']);
    await client.request('PUT', '/book/6', { body: { year: 1 } });
    await keyboard.edit(page, 'The Hobbit', 'year', '2');
    await page.getByRole('dialog', { name: 'Somebody else has changed this book' }).waitFor();
  },
  'changed by somebody else': async ({ page }) => {
    await leave(page);
    await row(page, 'The Hobbit').getByRole('button', { name: 'Compare' }).waitFor();
  },
};

const PHONE: Readonly<Record<string, Step>> = {
  ...SHARED,
  sheet: async ({ page }) => {
    await page.getByRole('rowheader', { name: 'Pride and Prejudice' }).click();
    await page.getByRole('dialog', { name: 'Change the book' }).waitFor();
  },
  deleted: async ({ page }) => {
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await row(page, 'Pride and Prejudice').getByRole('button', { name: 'Undo' }).waitFor();
  },
};

/** When the service has ended. */
const AWAY: Readonly<Record<string, Step>> = {
  away: async ({ page, service }) => {
    await service.stop();
    await searchField(page).fill('it');
    await page.getByRole('alert').filter({ hasText: 'Your changes are kept' }).waitFor();
  },
};

const APPEARANCES: Readonly<Record<string, [BrowserContextOptions, Readonly<Record<string, Step>>]>> = {
  'on a desk, light': [{ colorScheme: 'light' }, { ...DESK, ...AWAY }],
  'on a desk, dark': [{ colorScheme: 'dark' }, { ...DESK, ...AWAY }],
  'on a phone, light': [
    { colorScheme: 'light', ...phone(390) },
    { ...PHONE, ...AWAY },
  ],
  'on a phone, dark': [
    { colorScheme: 'dark', ...phone(390) },
    { ...PHONE, ...AWAY },
  ],
  'in a window of 320 pixels': [phone(320), { ...PHONE, ...AWAY }],
};

function phone(width: number): BrowserContextOptions {
  return { viewport: { width, height: 700 }, isMobile: true, hasTouch: true };
}

/** Fails if the page is wider than its window, or one of its dialogs is wider than itself. */
async function assertNotWider(page: Page, state: string): Promise<void> {
  const wide = await page.evaluate(`
    [document.documentElement, ...document.querySelectorAll('dialog[open]')]
      .filter((element) => element.scrollWidth > element.clientWidth)
      .map((element) => element.id + ' ' + element.scrollWidth + ' > ' + element.clientWidth)`);
  assert.deepEqual(wide, [], state);
}

async function assertFocus(page: Page, state: string): Promise<void> {
  const name = await page.evaluate('document.activeElement.tagName');
  assert.notEqual(name, 'BODY', `the focus is lost: ${state}`);
}

describePage('the librarians’ page for everybody', ({ openCatalogue, openDesk }) => {
  for (const [name, [options, steps]] of Object.entries(APPEARANCES)) {
    test(`${name}, axe finds nothing in any state, and nothing is wider than the window`, async (context) => {
      const still: BrowserContextOptions = { reducedMotion: 'reduce', ...options };
      const catalogue = await openCatalogue(context, { options: still });
      const { page } = await openDesk(context, catalogue.service.pageUrl, still);
      await page.getByRole('dialog', { name: 'Book catalogue' }).waitFor();
      assert.deepEqual(await violations(page), [], 'login');
      await assertNotWider(page, 'login');
      await page.context().close();
      for (const [state, step] of Object.entries(steps)) {
        await step(catalogue);
        assert.deepEqual(await violations(catalogue.page), [], state);
        await assertNotWider(catalogue.page, state);
        if (state !== 'list' && state !== 'menu' && !name.includes('phone') && !name.includes('320'))
          await assertFocus(catalogue.page, state);
      }
      assert.deepEqual(catalogue.complaints(), []);
    });
  }

  test('an empty shelf is also clean, light and dark', async (context) => {
    const { page } = await openCatalogue(context, { books: [] });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.getByRole('heading', { name: 'The shelf is empty' }).waitFor();
      assert.deepEqual(await violations(page), [], colorScheme);
    }
    await page.getByRole('button', { name: 'Import a file' }).click();
    await page.getByRole('dialog', { name: 'Import books' }).waitFor();
  });

  test('an edit that could not be stored is also clean', async (context) => {
    const catalogue = await openCatalogue(context, { options: { reducedMotion: 'reduce' } });
    const { page, service } = catalogue;
    await page.clock.install();
    await service.stop();
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await row(page, 'Emma').getByRole('button', { name: 'Edit' }).waitFor();
    await page.keyboard.press('End'); // to the pencil, which another button replaces
    await waitUntil(async () => {
      await page.clock.fastForward(5000);
      return await row(page, 'Emma').getByRole('button', { name: 'Try again' }).isVisible();
    });
    await focused(row(page, 'Emma').getByRole('button', { name: 'Try again' }));
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await violations(page), [], colorScheme);
    }
    const again = await startAgain(service);
    context.after(() => again.stop());
    await waitUntil(async () => {
      await page.clock.fastForward(1000);
      return !(await row(page, 'Emma').getByRole('button', { name: 'Try again' }).isVisible());
    });
    await assertFocus(page, 'stored');
  });

  test('a text that was refused is also clean in its row', async (context) => {
    const { page } = await openCatalogue(context, { options: { reducedMotion: 'reduce' } });
    await cell(page, 'Emma', 'year').dblclick();
    await page.keyboard.type('19x9');
    await searchField(page).click();
    await row(page, 'Emma').getByRole('button', { name: 'Correct' }).waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await violations(page), [], colorScheme);
    }
  });

  test('a screen reader gets a grid with its size and order, and rows without ornaments', async (context) => {
    const { page } = await openCatalogue(context, {
      books: [
        ...BOOKS,
        ...Array.from({ length: 490 }, (_, index) => ({ title: `Z ${index}`, author: 'Z', year: 1 })),
      ],
    });
    assert.equal(
      await page.getByRole('row').first().ariaSnapshot(),
      `- row "Title Author Year Actions":
  - columnheader "Title":
    - button "Title"
  - columnheader "Author":
    - button "Author"
  - columnheader "Year":
    - button "Year"
  - columnheader "Actions"`,
    );
    assert.equal(
      await row(page, 'Emma').ariaSnapshot(),
      `- row "Emma Jane Austen 1815 Edit Delete":
  - rowheader "Emma"
  - gridcell "Jane Austen"
  - gridcell "1815"
  - gridcell "Edit Delete":
    - button "Edit"
    - button "Delete"`,
    );
    await keyboard.delete(page, 'Emma');
    assert.equal(
      await row(page, 'Emma').ariaSnapshot(),
      `- row "Emma Jane Austen 1815 Undo":
  - rowheader "Emma"
  - gridcell "Jane Austen"
  - gridcell "1815"
  - gridcell "Undo":
    - button "Undo"`,
    );
    assert.equal(await grid(page).getAttribute('aria-rowcount'), '501');
    assert.equal(await grid(page).getAttribute('aria-colcount'), '4');
    assert.equal(await row(page, 'Emma').getAttribute('aria-rowindex'), '8');
    assert.equal(await cell(page, 'Emma', 'author').getAttribute('aria-colindex'), '2');
    const headers = page.getByRole('columnheader');
    const sorts = await headers.evaluateAll((all) => all.map((header) => header.getAttribute('aria-sort')));
    assert.deepEqual(sorts, ['none', 'ascending', 'none', null]);
    assert.equal(await grid(page).locator('[tabindex="0"]').count(), 1, 'one stop for Tab');

    // Whatever was scrolled, rows are read in their order.
    for (const key of ['Control+End', 'PageUp', 'PageUp', 'Control+Home', 'PageDown', 'ArrowDown']) {
      await page.keyboard.press(key);
      await listed(page);
      const indexes = await page
        .getByRole('row')
        .evaluateAll((rows) => rows.map((one) => Number(one.getAttribute('aria-rowindex'))));
      assert.deepEqual(
        indexes,
        indexes.toSorted((one, other) => one - other),
        key,
      );
      await assertFocus(page, key);
    }
  });

  test('every change is announced, once and politely', async (context) => {
    const { page } = await openCatalogue(context);
    const saidOnce = async (text: string) => assert.deepEqual(await said(page, text), [text]);
    for (let time = 0; time < 2; time += 1) await said(page, '10 books'); // the count, and once more after the login
    await keyboard.search(page, 'austen');
    await saidOnce('2 books found');
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await saidOnce('Saved');
    await keyboard.delete(page, 'Emma');
    await saidOnce('Deleted Emma. Control Z brings it back.');
    await page.keyboard.press('Control+z');
    await saidOnce('Emma was kept');
    await keyboard.search(page, 'zzz');
    await saidOnce('0 books found');
  });

  test('the complaint about the last row in sight is also in sight', async (context) => {
    const books = Array.from({ length: 300 }, (_, index) => ({
      title: `Book ${index}`,
      author: '',
      year: 1,
    }));
    const { page } = await openCatalogue(context, { books });
    await page.getByRole('rowheader', { name: 'Book 0', exact: true }).click();
    for (const key of ['PageDown', 'PageDown', 'ArrowUp', 'Control+End']) {
      await page.keyboard.press(key);
      await page.keyboard.press('End');
      await page.keyboard.press('ArrowLeft');
      await page.locator(':focus').filter({ hasText: '1' }).waitFor(); // the books have arrived
      await page.keyboard.press('F2');
      await page.keyboard.type('soon');
      await page.keyboard.press('Enter');
      const complaint = page.getByRole('alert').filter({ hasText: '“soon” is not' });
      await complaint.waitFor();
      const isInSight = `(element) => {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        return [top + 2, bottom - 2].every((y) => element.contains(document.elementFromPoint((left + right) / 2, y)));
      }`;
      await waitUntil(
        async () => await complaint.evaluate(new Function(`return ${isInSight}`)() as () => boolean),
      );
      await page.keyboard.press('Escape');
    }
  });

  test('every control is large enough to be hit', async (context) => {
    for (const options of [{}, phone(390)]) {
      const { page } = await openCatalogue(context, { options });
      await row(page, 'Emma').hover();
      await page.getByRole('button', { name: 'More' }).click();
      const controls = page.getByRole('button').or(page.getByRole('textbox')).or(page.getByRole('combobox'));
      for (const control of await controls.all()) {
        const box = await control.boundingBox();
        if (box === null) continue;
        const name = await control.ariaSnapshot();
        assert.ok(box.width >= 24 && box.height >= 24, `${name}: ${box.width} × ${box.height}`);
      }
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
      await listed(page);
      const before = await part.screenshot();
      await change();
      await listed(page);
      await waitUntil(async () => !(await part.screenshot()).equals(before));
    }
  });

  test('on a phone, the button that floats over the list can be scrolled away from its last book', async (context) => {
    const books = Array.from({ length: 40 }, (_, index) => ({ title: `Book ${index}`, author: '', year: 1 }));
    const { page } = await openCatalogue(context, { books, options: phone(390) });
    await page.getByRole('combobox', { name: 'Order' }).selectOption('Oldest entry first');
    await page.getByRole('rowheader', { name: 'Book 0' }).waitFor();
    await page.getByRole('rowheader', { name: 'Book 0' }).hover();
    await page.mouse.wheel(0, 10_000);
    const last = row(page, 'Book 39');
    const button = page.getByRole('button', { name: 'Add a book' });
    await waitUntil(async () => {
      const [one, other] = await Promise.all([last.boundingBox(), button.boundingBox()]);
      return one !== null && other !== null && one.y + one.height <= other.y;
    });
  });

  for (const [width, height] of [
    [1366, 768],
    [1920, 1080],
    [2560, 1440],
    [3840, 2160],
  ] as const) {
    test(`the list reaches the lower edge of a screen of ${width} × ${height} pixels`, async (context) => {
      const { page } = await openCatalogue(context, { options: { viewport: { width, height } } });
      const box = await grid(page).boundingBox();
      assert.ok(box !== null && box.y < 200, 'it begins below the search');
      const below = height - box.y - box.height;
      assert.ok(below >= 0 && below <= 40, `${below} pixels below the list`);
      await assertNotWider(page, 'the list');
    });
  }

  test('nothing moves for a person who wants less motion', async (context) => {
    const { page } = await openCatalogue(context);
    const moving = () => page.evaluate('document.getAnimations().length');
    // It may be over before it is seen.
    await page.evaluate(`globalThis.started = 0;
      for (const name of ['animationstart', 'transitionrun']) document.addEventListener(name, () => { started += 1; }, true)`);
    await page.keyboard.press('Insert');
    await waitUntil(async () => Number(await page.evaluate('started')) > 0); // this test could not fail otherwise
    await leave(page);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await page.keyboard.press('Insert');
    assert.equal(await moving(), 0);
    await page.keyboard.type('Persuasion');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Messages' }).getByRole('button', { name: 'Show' }).waitFor();
    assert.equal(await moving(), 0);
    await keyboard.edit(page, 'Emma', 'year', '1816');
    await waitUntil(async () => (await cell(page, 'Emma', 'year').textContent()) === '1816');
    assert.equal(await moving(), 0);
  });
});

describePage(
  'the librarians’ page with text of 200 %',
  ({ openCatalogue }) => {
    for (const width of [1280, 640, 320]) {
      test(`nothing is wider than a window of ${width} pixels`, async (context) => {
        const options = { viewport: { width, height: 800 }, reducedMotion: 'reduce' } as const;
        const catalogue = await openCatalogue(context, { options });
        assert.equal(await catalogue.page.evaluate('getComputedStyle(document.body).fontSize'), '32px');
        for (const [state, step] of Object.entries(PHONE)) {
          await step(catalogue);
          await assertNotWider(catalogue.page, state);
        }
        assert.deepEqual(await violations(catalogue.page), []);
      });
    }
  },
  ['--blink-settings=defaultFontSize=32'],
);
