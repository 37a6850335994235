// The commands `undo` and `forget`, on every store. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { booksOf } from '../support/books.ts';
import { refusedWith } from '../support/command.ts';
import { command, folderWith, storeWith } from '../support/importing.ts';
import { STORES, startTestService } from '../support/service.ts';
import { executeOn, makeEarlier } from '../support/sql.ts';

const BOOKS: readonly Book[] = Array.from({ length: 2000 }, (_, at) => {
  return { id: at + 1, title: `Book ${at}`, author: '', year: at };
});
/** Five and a half hours before, in milliseconds. */
const EARLIER = -5.5 * 3_600_000;
const printed = (stdout: string) => ({ code: 0, stderr: '', stdout });

for (const store of STORES) {
  describe(`undo on ${store.name}`, () => {
    test('rule H5: half of a catalogue that was removed by mistake comes back by one command', async () => {
      const url = await storeWith(BOOKS, store.freshUrl);
      const before = await booksOf(url);
      await makeEarlier(url, 24);
      await executeOn(url, 'delete from books where id % 2 = 0');
      await executeOn(url, "update books set title = 'lost' where id = 1");
      const time = new Date(Date.now() + EARLIER).toISOString();
      const since = `Since ${time.slice(0, 10)} ${time.slice(11, 19)} UTC, 5 hours ago:\n`;
      const would = `${since}1001 books would be taken back. Nothing was changed: add --yes to do it.\n`;
      assert.deepEqual(await command(`undo --since ${time}`, url), printed(would));
      assert.equal((await booksOf(url)).length, 1000);
      const { stdout, ...rest } = await command(`undo --since ${time} --yes`, url);
      assert.deepEqual(rest, { code: 0, stderr: '' });
      const [, number] =
        /^1001 books taken back\.\nTo take this back: book-catalogue undo --change (\d+) --yes\n$/.exec(
          stdout.replace(since, ''),
        ) ?? [];
      assert.deepEqual(await booksOf(url), before);
      await executeOn(url, "update books set title = 'later' where id = 4");
      const again = await command(`undo --change ${number} --yes`, url);
      assert.match(again.stdout, /^1000 books taken back\.\n.*\n1 book left, changed later: 4\n$/);
      assert.equal((await booksOf(url)).length, 1001);
    });

    test('rules H5 and H8: imports and changes made together are listed, and taken back by their names', async () => {
      const url = await storeWith(BOOKS.slice(0, 3), store.freshUrl);
      await makeEarlier(url, 24);
      const folder = folderWith({ 'more.csv': `title,year\n${'a,1\n'.repeat(700)}b,2\n` });
      await command('import more.csv --on-duplicate add', url, folder);
      await executeOn(url, "update books set title = 'c' where title = 'b'");
      await executeOn(url, 'delete from books where id = 2');
      const listed = async () => {
        const { stdout } = await command('undo --list', url);
        return stdout.replaceAll(/[-0-9]{10} [:0-9]{8} UTC/g, 'TIME');
      };
      const END = /changes +3 books\nThe log begins at TIME\.\n$/;
      const [, run, number] =
        /^(\d+-\d+) {2}TIME {2}changes +2 books\n(\d+) +TIME {2}import +701 books {2}more\.csv\n\d+-\d+ {2}TIME {2}/.exec(
          (await listed()).replace(END, ''),
        ) ?? [];
      const done = await command(`undo --event ${number} --yes`, url);
      assert.match(done.stdout, /^700 books taken back\.\n.*\n1 book left, changed later: 704\n$/);
      const idsOf = async () => (await booksOf(url)).map(({ id }) => id);
      assert.deepEqual(await idsOf(), [1, 3, 704]);
      const would = '2 books would be taken back. Nothing was changed: add --yes to do it.\n';
      assert.deepEqual(await command(`undo --event ${run}`, url), printed(would));
      assert.match((await command(`undo --event ${run} --yes`, url)).stdout, /^2 books taken back\.\n/);
      assert.deepEqual(await idsOf(), [1, 2, 3, 704]);
      const all = await listed();
      assert.match(all, /^\d+ +TIME {2}undo +2 books\n\d+ +TIME {2}undo +700 books\n.* changes /);
      assert.match(all, END);
    });

    test('rule H5: to continue what is no undo changes nothing, and later changes are no part of it', async () => {
      const url = await storeWith(BOOKS.slice(0, 1), store.freshUrl);
      await command('import more.csv', url, folderWith({ 'more.csv': 'title\na\n' }));
      const [, number] = /^(\d+) /.exec((await command('undo --list', url)).stdout) ?? [];
      for (const event of [9999, number])
        assert.equal((await command(`undo --continue ${event} --yes`, url)).code, 1);
      await executeOn(url, "update books set title = 'b' where id = 1");
      assert.match((await command(`undo --event ${number} --yes`, url)).stdout, /^1 book taken back\./);
      assert.deepEqual(
        (await booksOf(url)).map(({ title }) => title),
        ['b'],
      );
    });

    test('undo takes the newest change of a book back, and that again; forget removes a book with its history', async () => {
      const url = await storeWith(BOOKS.slice(0, 3), store.freshUrl);
      const { client } = await startTestService(url);
      for (const body of [{ title: 'x' }, { title: 'y' }, { title: 'y' }])
        await client.request('PUT', '/book/2', { body });
      for (const title of ['x', 'y', 'x']) {
        assert.match((await command('undo --book 2 --yes', url)).stdout, /^1 book taken back\./);
        assert.equal((await client.request('GET', '/book/2')).data.title, title);
      }
      const would =
        'Book 2, "x", would be forgotten, with its history. Nothing was changed: add --yes to do it.\n';
      assert.deepEqual(await command('forget 2', url), printed(would));
      const done = 'Book 2, "x", is forgotten, with its history.\n';
      assert.deepEqual(await command('forget 2 --yes', url), printed(done));
      assert.equal((await client.request('GET', '/book/2/history')).message, 'Book not found');
      const texts = await executeOn(url, 'select title from book_log where book = 2');
      const titles = texts.map(({ title }) => title);
      assert.deepEqual(titles, [null]);
      assert.equal((await client.request('GET', '/books?q=x')).data.length, 0);
      await client.request('DELETE', '/book/3');
      await command('forget 3 --yes', url);
      assert.equal((await client.request('GET', '/book/3/history')).message, 'Book not found');
      const again = 'There is no book 3, and no history of one.';
      assert.deepEqual(await command('forget 3 --yes', url), refusedWith(again));
    });

    test('undo and forget refuse what is not known', async () => {
      const missing = await store.freshUrl();
      for (const words of ['undo --list', 'forget 1'])
        assert.match((await command(words, missing)).stderr, /^DB_URL: there is no catalogue at [^\n]+\.\n$/);
      const url = await storeWith(BOOKS.slice(0, 1), store.freshUrl);
      const unknown =
        'There is no such change or event, or it is no longer kept: see book-catalogue undo --list and GET /book/<id>/history.';
      for (const words of ['--change 999', '--event 999', '--event 1-2'])
        assert.deepEqual(await command(`undo ${words} --yes`, url), refusedWith(unknown));
      assert.deepEqual(await command('undo --book 9', url), refusedWith('No change of book 9 is known.'));
      assert.deepEqual(
        await command('forget 9', url),
        refusedWith('There is no book 9, and no history of one.'),
      );
      await executeOn(url, `update book_log_state set has_all = ${store.name === 'SQLite' ? 0 : false}`);
      const beyond = 'The changes since then are not all kept: name a later time.';
      assert.deepEqual(await command('undo --since 1999-12-31 --yes', url), refusedWith(beyond));
    });
  });
}
