// The librarians' page in a real browser: logging in, finding books, and what the page says and keeps.

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { answer, passOn, startFront } from '../support/front.ts';
import {
  BOOKS,
  cell,
  choose,
  counted,
  describePage,
  focused,
  grid,
  listed,
  logIn,
  said,
  searchField,
  sent,
  shown,
  titles,
  WAYS,
} from '../support/page.ts';
import { pageOf, SQLITE, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const BY_AUTHOR = BOOKS.map(({ title }) => title);
const { keyboard, mouse } = WAYS;

describePage('the librarians’ page', ({ openCatalogue, openDesk }) => {
  for (const [name, way] of Object.entries(WAYS)) {
    test(`by ${name} alone: find, edit, add, delete, undo`, async (context) => {
      const catalogue = await openCatalogue(context);
      const { page, client, books, complaints } = catalogue;
      await shown(page, BY_AUTHOR);
      await way.search(page, 'garcia');
      await shown(page, ['Cien años de soledad']);
      await way.search(page, 'austen');
      await shown(page, ['Emma', 'Pride and Prejudice']);

      await way.edit(page, 'Emma', 'year', '1816');
      await sent(catalogue, ['PUT /book/7 {"year":1816}']);
      await way.edit(page, 'Emma', 'author', 'J. Austen');
      await sent(catalogue, ['PUT /book/7 {"year":1816}', 'PUT /book/7 {"author":"J. Austen"}']);
      await way.add(page, { title: 'Persuasion', author: 'Jane Austen', year: '1817' });
      await shown(page, ['Emma', 'Pride and Prejudice', 'Persuasion']);
      const persuasion = { id: 11, title: 'Persuasion', author: 'Jane Austen', year: 1817 };
      assert.deepEqual((await client.list()).at(-1), persuasion);

      await way.delete(page, 'Pride and Prejudice');
      await way.press(page, 'Pride and Prejudice', 'Undo');
      await way.delete(page, 'Persuasion');
      await way.search(page, 'emma'); // another search
      await shown(page, ['Emma']);
      await waitUntil(async () => (await client.list()).length === BOOKS.length);
      const emma = { id: 7, title: 'Emma', author: 'J. Austen', year: 1816 };
      assert.deepEqual(await client.list(), books.with(6, emma));
      assert.deepEqual(complaints(), []);
    });
  }

  test('a login that is refused says why: a wrong pair, too many wrong passwords, a proxy, no answer', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(service.stop);
    let trouble: 'none' | 'too many' | 'another host' | 'no answer' = 'none';
    const front = await startFront(context, (incoming, outgoing) => {
      const { url } = incoming;
      if (url === '/login.json') outgoing.end('{"username":"librarian","password":"password"}');
      else if (url !== '/session' || trouble === 'none') passOn(pageOf(service), incoming, outgoing);
      else if (trouble === 'no answer') incoming.socket.destroy();
      else if (trouble === 'another host') answer(outgoing, 403, null, 'Origin not allowed');
      else answer(outgoing.setHeader('retry-after', '42'), 429, null);
    });
    const { page, asked, complaints } = await openDesk(context, front.url);
    await page.clock.install();
    const login = page.getByRole('dialog', { name: 'Book catalogue' });
    const complaint = (text: string) => login.getByRole('alert').filter({ hasText: text });
    await login.getByText('This is still the built-in password').waitFor();
    await focused(login.getByRole('button', { name: 'Log in' }));
    for (const key of ['Escape', 'Escape', 'Escape', 'Enter']) await page.keyboard.press(key);
    await complaint('The name or the password is wrong.').waitFor();
    await focused(login.getByLabel('Password'));
    await page.keyboard.type('correct horse');
    trouble = 'too many';
    await page.keyboard.press('Enter');
    await complaint('There were too many wrong passwords. Try again in 42 seconds.').waitFor();
    trouble = 'another host';
    await page.keyboard.press('Enter');
    await complaint('The proxy in front of the catalogue changes the header Host').waitFor();
    trouble = 'no answer';
    await page.keyboard.press('Enter');
    await waitUntil(async () => {
      await page.clock.fastForward(2000);
      return await complaint('The catalogue does not answer. Try again in a moment.').isVisible();
    });
    trouble = 'none';
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'No books yet' }).waitFor();
    await focused(searchField(page));
    assert.equal(await page.getByLabel('Password').inputValue(), '', 'the password is not left in the page');
    assert.deepEqual([...asked], [new URL(front.url).host]);
    assert.deepEqual(complaints(), []);
  });

  test('a search marks what it has found; a year among the words is one unless a text has it, and may become a filter', async (context) => {
    const of1937 = { title: 'Out of Africa', author: 'Karen Blixen', year: 1937 };
    const named = { title: 'Spain 1605', author: 'Nobody', year: 2005 };
    const romanised = { title: 'Obʺem', author: '', year: 0 };
    const { page } = await openCatalogue(context, { books: [...BOOKS, of1937, named, romanised] });
    for (const [words, found, marked] of [
      ['anos', ['Cien años de soledad'], ['años']],
      ['jane pre', ['Pride and Prejudice'], ['Pre', 'Jane']],
      ['it', ['It'], []],
      ['obem', ['Obʺem'], ['Obʺem']],
      ['1605', ['Spain 1605'], ['1605']],
      ['tolkien 1938', [], []],
      ['1937', ['The Hobbit', 'Out of Africa'], []],
      ['١٩٣٧', ['The Hobbit', 'Out of Africa'], []],
      ['tolkien 1937', ['The Hobbit'], ['Tolkien']],
    ]) {
      await mouse.search(page, words as string);
      await shown(page, found as string[]);
      const marks = async () => JSON.stringify(await grid(page).locator('mark').allTextContents());
      await waitUntil(async () => (await marks()) === JSON.stringify(marked), undefined, marks);
    }
    const chip = page.getByRole('button', { name: 'Published in 1937' });
    await chip.click();
    await chip.and(page.getByRole('button', { pressed: true })).waitFor();
    assert.equal(await searchField(page).inputValue(), 'tolkien');
    await chip.click();
    await chip.waitFor({ state: 'hidden' });
    await focused(searchField(page));
  });

  test('nothing found: all books again, or the words become a new book', async (context) => {
    const { page, client } = await openCatalogue(context);
    const nothing = page.getByRole('heading', { name: 'Nothing matches “Silmarillion”' });
    await keyboard.search(page, 'Silmarillion');
    await nothing.waitFor();
    await page.getByRole('button', { name: 'Show all books' }).click();
    await shown(page, BY_AUTHOR);
    await focused(searchField(page));
    await keyboard.search(page, 'Silmarillion');
    await page.getByRole('button', { name: 'Add “Silmarillion”' }).click();
    const title = page.getByRole('dialog', { name: 'Add a book' }).getByLabel('Title');
    assert.equal(await title.inputValue(), 'Silmarillion');
    await page.keyboard.press('Enter');
    await shown(page, ['Silmarillion']);
    assert.equal((await client.list()).at(-1)?.title, 'Silmarillion');
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);
  });

  test('the last words win, although their answer is the first to arrive', async (context) => {
    const held: { readonly outgoing: ServerResponse; readonly forward: () => void }[] = [];
    const { page } = await openCatalogue(context, {
      front: (incoming, outgoing, forward) => {
        if (incoming.url?.includes('q=emm') === true) held.push({ outgoing, forward });
        else forward();
      },
    });
    await searchField(page).fill('emm');
    await waitUntil(() => held.length > 0);
    await searchField(page).fill('hobbit');
    await shown(page, ['The Hobbit']);
    for (const { forward } of held) forward();
    await waitUntil(() => held.every(({ outgoing }) => outgoing.closed));
    await page.evaluate("fetch('v/none').then(() => new Promise(requestAnimationFrame))"); // until what came before is shown
    await shown(page, ['The Hobbit']);
    assert.equal(await searchField(page).inputValue(), 'hobbit');
  });

  test('letters typed in the list are searched for, and Enter goes to the books that were found last', async (context) => {
    const { page } = await openCatalogue(context);
    await cell(page, 'Don Quijote', 'title').click();
    await page.keyboard.type('pride and prejudice');
    await page.keyboard.press('Enter');
    await shown(page, ['Pride and Prejudice']);
    assert.equal(await searchField(page).inputValue(), 'pride and prejudice');
    await focused(cell(page, 'Pride and Prejudice', 'title'));
  });

  test('a press on a column sorts by it, the search stays, and the address says what is shown', async (context) => {
    const { page } = await openCatalogue(context, { query: '?q=the&sort=-year&year=MCM' });
    const header = (name: string) => page.getByRole('columnheader', { name });
    await shown(page, ['The Hobbit', 'The Odyssey']);
    for (const [name, direction, expected] of [
      ['Title', 'ascending', ['The Hobbit', 'The Odyssey']],
      ['Title', 'descending', ['The Odyssey', 'The Hobbit']],
      ['Year', 'ascending', ['The Odyssey', 'The Hobbit']],
      ['Author', 'ascending', ['The Odyssey', 'The Hobbit']],
      ['Author', 'descending', ['The Hobbit', 'The Odyssey']],
    ] as const) {
      await header(name).getByRole('button').press('Enter');
      await listed(page); // the rows may be the same before
      await shown(page, expected);
      await focused(header(name).getByRole('button'));
      for (const other of ['Title', 'Author', 'Year'])
        assert.equal(await header(other).getAttribute('aria-sort'), other === name ? direction : 'none');
    }
    assert.equal(new URL(page.url()).search, '?q=the&sort=-author');
    await page.reload();
    await shown(page, ['The Hobbit', 'The Odyssey']);
    assert.equal(await searchField(page).inputValue(), 'the');
  });

  test('Back undoes typing, a chip and an order, one at a time, and leads back to the place in the list; Forward does them again', async (context) => {
    const many = Array.from({ length: 300 }, (_, at) => ({ title: `Z ${at}`, author: `Z ${at}`, year: 1 }));
    const { page } = await openCatalogue(context, { books: [...BOOKS, ...many] });
    const first = () => page.getByRole('row').nth(1).textContent();
    await searchField(page).press('ArrowDown');
    await page.keyboard.press('Control+End');
    await listed(page);
    await page.locator(':focus').filter({ hasText: 'Z 99' }).waitFor();
    await searchField(page).focus();
    await searchField(page).pressSequentially('jane');
    await shown(page, ['Emma', 'Pride and Prejudice']);
    await page.getByRole('columnheader', { name: 'Title' }).getByRole('button').click();
    await waitUntil(() => new URL(page.url()).search === '?q=jane&sort=title');
    await page.getByRole('button', { name: 'Newest first' }).click();
    await shown(page, ['Pride and Prejudice', 'Emma']);
    await page.goBack();
    await shown(page, ['Emma', 'Pride and Prejudice']);
    assert.equal(new URL(page.url()).search, '?q=jane&sort=title');
    await page.goBack();
    await waitUntil(() => new URL(page.url()).search === '?q=jane');
    await page.goBack();
    await counted(page, '310 books');
    assert.equal(await searchField(page).inputValue(), '');
    await page.getByText('Z 99', { exact: true }).first().waitFor(); // at the end, as before
    assert.notEqual(await first(), '');
    await page.goForward();
    await shown(page, ['Emma', 'Pride and Prejudice']);
    assert.equal(await searchField(page).inputValue(), 'jane');
  });

  test('a key that strays from the list into the search: Escape leads back to the place', async (context) => {
    const { page } = await openCatalogue(context);
    await searchField(page).fill('jane');
    await shown(page, ['Emma', 'Pride and Prejudice']);
    await cell(page, 'Pride and Prejudice', 'year').click();
    await page.keyboard.press('7');
    await page.getByRole('heading', { name: 'Nothing matches “jane7”' }).waitFor();
    await page.keyboard.press('Escape');
    await shown(page, ['Emma', 'Pride and Prejudice']);
    await focused(cell(page, 'Pride and Prejudice', 'year'));
    assert.equal(await searchField(page).inputValue(), 'jane');
    await searchField(page).press('Escape');
    await shown(page, BY_AUTHOR);
  });

  test('a slip that finds nothing: the page asks which words were meant, and searches for them', async (context) => {
    const { page } = await openCatalogue(context);
    await searchField(page).fill('tolkein 1937');
    await page.getByRole('heading', { name: 'Nothing matches “tolkein 1937”' }).waitFor();
    await said(page, 'Did you mean Tolkien (1 book)?');
    await page.getByRole('button', { name: 'Tolkien', exact: true }).click();
    await shown(page, ['The Hobbit']);
    assert.equal(await searchField(page).inputValue(), 'Tolkien 1937');
    await searchField(page).fill('zzzzzzz');
    await page.getByRole('heading', { name: 'Nothing matches “zzzzzzz”' }).waitFor();
    assert.equal(await page.getByRole('main').getByText('Did you mean').isVisible(), false);
    await page.getByRole('button', { name: 'Show all books' }).click();
    await shown(page, BY_AUTHOR);
  });

  test('years among the words are a chip that can be taken off', async (context) => {
    const { page } = await openCatalogue(context);
    for (const [words, books, chip, others] of [
      ['jane 1814-1820', ['Emma'], '1814 to 1820', 'jane'],
      ['before 1700', ['Don Quijote', 'The Odyssey'], 'Until 1699', ''], // a book without a year is not from before
      ['since 1967', ['Cien años de soledad', 'It', 'Norwegian Wood'], 'Since 1967', ''],
    ] as const) {
      await searchField(page).fill(words);
      await waitUntil(async () => (await titles(page)).toSorted().join() === books.join());
      await page.getByRole('button', { name: chip, pressed: true }).click();
      await waitUntil(async () => (await searchField(page).inputValue()) === others);
      await page.getByRole('button', { name: chip }).waitFor({ state: 'hidden' });
    }
  });

  test('the orders of a library: last names, titles without their article, unknown years last', async (context) => {
    const { page } = await openCatalogue(context);
    const order = page.getByRole('combobox', { name: 'Order' });
    for (const [label, first, last] of [
      ['Author’s last name', 'Emma', 'Beowulf'],
      ['Title without its article', 'Beowulf', 'Pride and Prejudice'],
      ['Oldest first', 'The Odyssey', 'Beowulf'],
      ['Latest year first', 'Norwegian Wood', 'Beowulf'],
    ] as const) {
      await order.selectOption(label);
      await waitUntil(async () => {
        const all = await titles(page);
        return all[0] === first && all.at(-1) === last;
      });
    }
  });

  test('chips: the newest first, and the books that lack a year or an author', async (context) => {
    const { page, client } = await openCatalogue(context);
    const chip = (name: string) => page.getByRole('button', { name });
    await chip('Newest first').click();
    await shown(page, BY_AUTHOR.toReversed());
    await chip('1 without a year').click();
    await shown(page, ['Beowulf']);
    await counted(page, '1 book found');
    await keyboard.edit(page, 'Beowulf', 'year', '1000');
    await waitUntil(async () => (await client.list())[0]?.year === 1000);
    await counted(page, '0 books found, 1 changed'); // the row stays
    await page.getByRole('button', { name: /^0 without a year/, pressed: true }).click(); // the way back
    await shown(page, BY_AUTHOR.toReversed());
    await chip('without a year').waitFor({ state: 'hidden' });
    await chip('1 without an author').click();
    await shown(page, ['Beowulf']);
    await searchField(page).fill('jane');
    await shown(page, []);
    await chip('0 without an author').click();
    await counted(page, '2 books found');
    await chip('without an author').waitFor({ state: 'hidden' }); // none of the books found
    await keyboard.delete(page, 'Emma');
    await counted(page, '1 book found, 1 deleted');
    await page.keyboard.press('Control+z');
    await counted(page, '2 books found');
  });

  test('the keys are listed; after a log-out, only a chosen theme is stored', async (context) => {
    const { page, service } = await openCatalogue(context, { options: { colorScheme: 'light' } });
    const stored = () => page.context().storageState();
    const login = page.getByRole('dialog', { name: 'Book catalogue' });
    const logOut = async () => {
      await page.keyboard.press('Escape'); // the menu may be open
      await choose(page, 'Log out');
      await login.waitFor();
    };
    const scheme = () => page.evaluate('getComputedStyle(document.documentElement).colorScheme');
    await page.keyboard.press('F1');
    const keys = page.getByRole('dialog', { name: 'Keys' });
    await keys.getByText('undo the last change, and redo it').waitFor();
    await keys.getByRole('button', { name: 'Close' }).click();
    await focused(searchField(page));
    await logOut();
    await waitUntil(async () => (await stored()).cookies.length === 0);
    assert.deepEqual(await stored(), { cookies: [], origins: [] });

    await logIn(page);
    await choose(page, 'Dark');
    await waitUntil(async () => (await scheme()) === 'dark');
    await logOut();
    await waitUntil(async () => (await stored()).cookies.length === 0);
    const localStorage = [{ name: 'theme /', value: 'dark' }];
    const { origin } = new URL(service.pageUrl);
    assert.deepEqual(await stored(), { cookies: [], origins: [{ origin, localStorage }] });
    assert.equal(await scheme(), 'dark');
    await logIn(page);
    await choose(page, 'Follow the computer');
    assert.equal(await scheme(), 'light dark');
    await page.reload();
    assert.equal(await scheme(), 'light dark');
  });

  test('who logs out leaves nothing behind', async (context) => {
    const { page } = await openCatalogue(context);
    await mouse.delete(page, 'Emma');
    await choose(page, 'Log out');
    await focused(page.getByRole('dialog', { name: 'Book catalogue' }).getByLabel('Name'));
    assert.equal(await page.getByRole('row').filter({ hasText: 'Emma' }).count(), 0);
    await logIn(page);
    const others = BY_AUTHOR.filter((title) => title !== 'Emma');
    await shown(page, others); // the deletion was sent on leaving
  });
});
