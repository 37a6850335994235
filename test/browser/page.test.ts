// The librarians' page in a real browser: logging in, finding books, and what the page says and keeps.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { request } from '../support/client.ts';
import {
  BOOKS,
  cell,
  choose,
  describePage,
  editor,
  focused,
  grid,
  listed,
  logIn,
  searchField,
  sent,
  shown,
  WAYS,
} from '../support/page.ts';
import { SQLITE, startCommand, startServiceProcess, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const BY_AUTHOR = BOOKS.map(({ title }) => title);

describePage('the librarians’ page', ({ openCatalogue, openDesk }) => {
  for (const [name, way] of Object.entries(WAYS)) {
    test(`by ${name} alone: find, edit, add, delete, undo`, async (context) => {
      const catalogue = await openCatalogue(context);
      const { page, client, books, complaints } = catalogue;
      const idOf = (title: string) => books.find((book) => book.title === title)?.id ?? 0;
      const stored = async (id: number) => (await client.request('GET', `/book/${id}`)).data;
      await shown(page, BY_AUTHOR);

      await way.search(page, 'garcia');
      await shown(page, ['Cien años de soledad']);
      await way.search(page, 'austen');
      await shown(page, ['Emma', 'Pride and Prejudice']);

      const id = idOf('Emma');
      await way.edit(page, 'Emma', 'year', '1816');
      await waitUntil(async () => (await stored(id)).year === 1816);
      assert.deepEqual(await stored(id), { id, title: 'Emma', author: 'Jane Austen', year: 1816 });
      await way.edit(page, 'Emma', 'author', 'J. Austen');
      await waitUntil(async () => (await stored(id)).author === 'J. Austen');
      await sent(catalogue, [`PUT /book/${id} {"year":1816}`, `PUT /book/${id} {"author":"J. Austen"}`]);

      await way.add(page, { title: 'Persuasion', author: 'Jane Austen', year: '1817' });
      await shown(page, ['Emma', 'Persuasion', 'Pride and Prejudice']);
      const persuasion = (await client.list()).at(-1);
      assert.deepEqual(persuasion, {
        id: persuasion?.id,
        title: 'Persuasion',
        author: 'Jane Austen',
        year: 1817,
      });

      await way.delete(page, 'Pride and Prejudice');
      await way.press(page, 'Pride and Prejudice', 'Undo');
      await way.delete(page, 'Persuasion');
      await way.search(page, 'emma'); // another search sends the deletion
      await shown(page, ['Emma']);
      await waitUntil(async () => (await client.list()).length === BOOKS.length);
      assert.equal((await stored(idOf('Pride and Prejudice'))).title, 'Pride and Prejudice');
      assert.deepEqual(complaints(), []);
    });
  }

  test('a wrong name is refused, and a person corrects it', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(() => service.stop());
    const { page, asked, complaints } = await openDesk(context, service.pageUrl);
    const login = page.getByRole('dialog', { name: 'Book catalogue' });
    await focused(login.getByLabel('Name'));
    await page.keyboard.type('nobody');
    await page.keyboard.press('Tab');
    await page.keyboard.type('correct horse');
    await page.keyboard.press('Enter');
    await login.getByRole('alert').filter({ hasText: 'The name or the password is wrong.' }).waitFor();
    await login.getByLabel('Name').fill('librarian');
    await page.keyboard.press('Enter');
    await login.waitFor({ state: 'hidden' });
    await page.getByRole('heading', { name: 'The shelf is empty' }).waitFor();
    await focused(searchField(page));
    assert.equal(await page.getByLabel('Password').inputValue(), '', 'the password is not left in the page');
    assert.deepEqual([...asked], [new URL(service.pageUrl).host]);
    assert.deepEqual(complaints(), []);
  });

  test('Escape does not close the login: the page is of no use without it', async (context) => {
    const { page } = await openCatalogue(context);
    await page.reload();
    const login = page.getByRole('dialog', { name: 'Book catalogue' });
    await login.waitFor();
    for (let time = 0; time < 3; time += 1) await page.keyboard.press('Escape');
    await logIn(page);
    await shown(page, BY_AUTHOR);
  });

  test('too many wrong passwords: the login says how many seconds to wait', async (context) => {
    const service = await startServiceProcess(await SQLITE.freshUrl());
    context.after(() => service.stop());
    const { page } = await openDesk(context, service.pageUrl);
    let isOver = false;
    const wrong = { body: { username: 'librarian', password: 'wrong' } };
    const guess = async () => {
      while (!isOver) await request(service, 'POST', '/token', wrong);
    };
    const guesses = Array.from({ length: 16 }, guess);
    const login = page.getByRole('dialog', { name: 'Book catalogue' });
    const complaint = login.getByRole('alert').filter({ hasText: /Try again in \d+ seconds?\.$/ });
    for (;;) {
      await login.getByLabel('Name').fill('librarian');
      await login.getByLabel('Password').fill('correct horse');
      await login.getByRole('button', { name: 'Log in' }).click();
      await waitUntil(async () => (await complaint.isVisible()) || (await login.isHidden()));
      if (await complaint.isVisible()) break;
      await page.reload(); // now and then a guess has just been forgiven, and the right password is accepted
    }
    isOver = true;
    await Promise.all(guesses);
    await logIn(page);
  });

  test('the built-in name and password are filled in, with a warning', async (context) => {
    const service = await startCommand({ PORT: '0', DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' });
    context.after(() => service.stop());
    const { page, complaints } = await openDesk(context, service.pageUrl);
    const login = page.getByRole('dialog', { name: 'Book catalogue' });
    await login.getByText('This is still the built-in password').waitFor();
    await focused(login.getByRole('button', { name: 'Log in' }));
    await page.keyboard.press('Enter');
    await login.waitFor({ state: 'hidden' });
    await page.getByRole('heading', { name: 'The shelf is empty' }).waitFor();
    assert.deepEqual(complaints(), []);
  });

  test('a search finds words without their accents, beginnings of words, short words, and marks them', async (context) => {
    const { page } = await openCatalogue(context);
    const finds: [words: string, found: string[], marked: string[]][] = [
      ['anos', ['Cien años de soledad'], ['años']],
      ['ETRANGER', ['L’Étranger'], ['L’Étranger']],
      ['sol', ['Cien años de soledad'], ['sol']],
      ['jane pre', ['Pride and Prejudice'], ['Pre', 'Jane']],
      ['it', ['It'], []],
      ['em', ['Emma'], []],
      ['  ', BY_AUTHOR, []],
    ];
    for (const [words, found, marked] of finds) {
      await WAYS.mouse.search(page, words);
      await shown(page, found);
      assert.deepEqual(await grid(page).locator('mark').allTextContents(), marked, words);
    }
  });

  test('a year among the words finds the books of that year, unless a text has it', async (context) => {
    const of1937 = { title: 'Out of Africa', author: 'Karen Blixen', year: 1937 };
    const named = { title: 'Spain 1605', author: 'Nobody', year: 2005 };
    const { page } = await openCatalogue(context, { books: [...BOOKS, of1937, named] });
    for (const [words, found, marked] of [
      ['tolkien 1937', ['The Hobbit'], ['Tolkien']],
      ['1937', ['The Hobbit', 'Out of Africa'], []],
      ['1937 afr', ['Out of Africa'], ['Afr']],
      ['1605', ['Spain 1605'], ['1605']],
      ['tolkien 1938', [], []],
    ] as const) {
      await WAYS.mouse.search(page, words);
      await page.waitForURL(({ search }) => search === `?q=${words.replace(' ', '+')}`); // the last letter's answer
      await shown(page, found);
      assert.deepEqual(await grid(page).locator('mark').allTextContents(), marked, words);
    }
    await page.getByRole('heading', { name: 'Nothing matches “tolkien 1938”' }).waitFor();
    await WAYS.mouse.search(page, '1605');
    await page.getByRole('button', { name: 'Published in 1605' }).click();
    await shown(page, ['Don Quijote']);
  });

  test('a year among the words is offered as a filter', async (context) => {
    const { page } = await openCatalogue(context);
    await WAYS.mouse.search(page, 'tolkien 1937');
    const chip = page.getByRole('button', { name: 'Published in 1937' });
    await chip.click();
    await shown(page, ['The Hobbit']);
    assert.equal(await chip.getAttribute('aria-pressed'), 'true');
    assert.equal(await searchField(page).inputValue(), 'tolkien');
    await chip.click();
    await page.getByText('1 book found').waitFor();
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);
  });

  test('nothing found: all books again, or the words become a new book', async (context) => {
    const { page, client } = await openCatalogue(context);
    await WAYS.keyboard.search(page, 'Silmarillion');
    await page.getByRole('heading', { name: 'Nothing matches “Silmarillion”' }).waitFor();
    await page.getByRole('button', { name: 'Show all books' }).click();
    await shown(page, BY_AUTHOR);
    await focused(searchField(page));

    await WAYS.keyboard.search(page, 'Silmarillion');
    await page.getByRole('button', { name: 'Add “Silmarillion”' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add a book' });
    assert.equal(await dialog.getByLabel('Title').inputValue(), 'Silmarillion');
    await page.keyboard.press('Enter');
    await shown(page, ['Silmarillion']);
    assert.equal((await client.list()).at(-1)?.title, 'Silmarillion');
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);
  });

  test('the last words win, although their answer is the first to arrive', async (context) => {
    const held: (() => void)[] = [];
    const { page, complaints } = await openCatalogue(context, {
      front: (incoming, _, forward) => {
        if (incoming.url?.includes('q=emm') === true) held.push(forward);
        else forward();
      },
    });
    await shown(page, BY_AUTHOR);
    await searchField(page).pressSequentially('emm');
    await waitUntil(() => held.length > 0);
    await searchField(page).fill('hobbit');
    await shown(page, ['The Hobbit']);
    for (const send of held) send();
    await searchField(page).press('End');
    await page.getByText('1 book found').waitFor();
    await shown(page, ['The Hobbit']);
    assert.equal(await searchField(page).inputValue(), 'hobbit');
    assert.deepEqual(complaints(), []);
  });

  test('fast typing loses no letter, and Enter goes to the books that were found last', async (context) => {
    const { page } = await openCatalogue(context);
    await cell(page, 'Don Quijote', 'title').click();
    await page.keyboard.type('pride and prejudice'); // in the list, one just types
    await page.keyboard.press('Enter');
    await shown(page, ['Pride and Prejudice']);
    assert.equal(await searchField(page).inputValue(), 'pride and prejudice');
    await focused(cell(page, 'Pride and Prejudice', 'title'));
  });

  test('a field that is opened right after words were typed stays open', async (context) => {
    let isOpen = false;
    const { page, client } = await openCatalogue(context, {
      front: (incoming, outgoing, forward) => {
        if (incoming.url?.includes('q=hobb') !== true) forward();
        else void waitUntil(() => isOpen || outgoing.destroyed).then(() => forward());
      },
    });
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    await searchField(page).fill('hobb'); // the page searches after a pause in the typing
    await cell(page, 'Emma', 'title').click();
    await page.keyboard.press('F2');
    await page.keyboard.type('Emma, a n');
    await page.clock.runFor(1000);
    isOpen = true;
    await focused(editor(page, 'Emma', 'title'));
    await page.keyboard.type('ovel');
    await page.keyboard.press('Enter');
    await page.clock.resume();
    await shown(page, ['The Hobbit']);
    await waitUntil(async () => (await client.list())[6]?.title === 'Emma, a novel');
  });

  test('a press on a column sorts by it, and the search stays', async (context) => {
    const { page } = await openCatalogue(context);
    await WAYS.mouse.search(page, 'the');
    await shown(page, ['The Odyssey', 'The Hobbit']);
    const header = (name: string) => page.getByRole('columnheader', { name });
    const orders = [
      ['Title', 'ascending', ['The Hobbit', 'The Odyssey']],
      ['Title', 'descending', ['The Odyssey', 'The Hobbit']],
      ['Year', 'ascending', ['The Odyssey', 'The Hobbit']],
      ['Year', 'descending', ['The Hobbit', 'The Odyssey']],
      ['Author', 'ascending', ['The Odyssey', 'The Hobbit']],
    ] as const;
    for (const [name, direction, expected] of orders) {
      await header(name).getByRole('button').press('Enter');
      await listed(page); // the rows may be the same before
      await shown(page, expected);
      await focused(header(name).getByRole('button'));
      for (const other of ['Title', 'Author', 'Year'])
        assert.equal(await header(other).getAttribute('aria-sort'), other === name ? direction : 'none');
    }
    assert.equal(await searchField(page).inputValue(), 'the');
  });

  test('chips: the newest first, and the books that lack a year or an author', async (context) => {
    const { page, client } = await openCatalogue(context);
    const chip = (name: string) => page.getByRole('button', { name });
    await chip('Newest first').click();
    await shown(page, BY_AUTHOR.toReversed());
    await chip('1 without a year').click();
    await shown(page, ['Beowulf']);
    await page.getByText('1 book found').waitFor();
    await WAYS.keyboard.edit(page, 'Beowulf', 'year', '1000');
    await waitUntil(async () => (await client.list())[0]?.year === 1000);
    await page.getByRole('button', { name: /^0 without a year/, pressed: true }).click(); // the way back
    await shown(page, BY_AUTHOR.toReversed());
    await chip('without a year').waitFor({ state: 'hidden' });
    await chip('1 without an author').click();
    await shown(page, ['Beowulf']);
  });

  test('the address says what is shown, and invalid parts of it are ignored', async (context) => {
    const { page, service, complaints } = await openCatalogue(context, {
      query: '?q=austen&sort=-title',
    });
    await shown(page, ['Pride and Prejudice', 'Emma']);
    assert.equal(await searchField(page).inputValue(), 'austen');
    await WAYS.mouse.search(page, 'austen emma');
    await shown(page, ['Emma']);
    assert.equal(new URL(page.url()).search, '?q=austen+emma&sort=-title');
    await page.reload();
    await logIn(page);
    await shown(page, ['Emma']);

    for (const [query, expected] of [
      ['?q=&sort=up&year=MCM&author=x&other=%ff', BY_AUTHOR],
      [`?year=${'9'.repeat(40)}&sort=title,title`, BY_AUTHOR],
      ['?year=-720', ['The Odyssey']],
      ['?author=', ['Beowulf']],
      [`?q=${'wordless+'.repeat(200)}`, []],
      ['?q=*', BY_AUTHOR],
      ['?q=%00%ed%a0%80', []],
    ] as const) {
      await page.goto(`${service.pageUrl}/${query}`);
      await logIn(page);
      await listed(page);
      await shown(page, expected);
    }
    assert.deepEqual(complaints(), []);
  });

  test('how the catalogue is doing: each figure opens its list', async (context) => {
    const { page } = await openCatalogue(context);
    const dialog = page.getByRole('dialog', { name: 'Catalogue status' });
    await choose(page, 'Catalogue status');
    await dialog.getByRole('button', { name: '10 books' }).waitFor();
    assert.equal(await dialog.getByRole('list').nth(1).getByRole('button').count(), 5);
    await dialog.getByRole('button', { name: '1 without a year' }).click();
    await shown(page, ['Beowulf']);
    await choose(page, 'Catalogue status');
    await dialog.getByRole('button', { name: 'It, Stephen King, 1986' }).click();
    await shown(page, BY_AUTHOR.toReversed());
    await choose(page, 'Catalogue status');
    await page.keyboard.press('Escape');
    await focused(page.getByRole('button', { name: 'More' }));
  });

  test('the keys are listed; only the theme is stored, and only if one was chosen', async (context) => {
    const { page, service, complaints } = await openCatalogue(context, {
      options: { colorScheme: 'light' },
    });
    const stored = () => page.context().storageState();
    await page.keyboard.press('F1');
    const keys = page.getByRole('dialog', { name: 'Keys' });
    await keys.getByText('undo the last change or deletion').waitFor();
    await keys.getByRole('button', { name: 'Close' }).click();
    await focused(searchField(page));
    assert.deepEqual(await stored(), { cookies: [], origins: [] });

    const scheme = () => page.evaluate('getComputedStyle(document.documentElement).colorScheme');
    await choose(page, 'Dark');
    await waitUntil(async () => (await scheme()) === 'dark');
    const { origin } = new URL(service.pageUrl);
    const localStorage = [{ name: 'theme', value: 'dark' }];
    assert.deepEqual(await stored(), { cookies: [], origins: [{ origin, localStorage }] });
    await page.reload();
    assert.equal(await scheme(), 'dark');
    await logIn(page);
    await choose(page, 'As the system');
    assert.equal(await scheme(), 'light dark');
    assert.deepEqual(await stored(), { cookies: [], origins: [] });
    assert.deepEqual(complaints(), []);
  });

  test('who logs out leaves nothing behind', async (context) => {
    const { page, complaints } = await openCatalogue(context);
    await WAYS.mouse.delete(page, 'Emma');
    await choose(page, 'Log out');
    await page.getByRole('dialog', { name: 'Book catalogue' }).waitFor();
    assert.equal(await page.getByRole('row').filter({ hasText: 'Emma' }).count(), 0);
    assert.equal(await page.getByLabel('Password').inputValue(), '');
    await logIn(page);
    await shown(
      page,
      BY_AUTHOR.filter((title) => title !== 'Emma'),
    ); // the deletion was sent on leaving
    assert.deepEqual(complaints(), []);
  });
});
