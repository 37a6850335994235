// Correcting books by a file: an export, corrected and imported again, on every store.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { readDbUrl } from '../../src/stores/open.ts';
import { TIMES } from '../../src/times.ts';
import { booksOf, manyBooks } from '../support/books.ts';
import { runCommand } from '../support/command.ts';
import { blockOf } from '../support/documents.ts';
import { command, folderWith, importing, RULES, storeWith } from '../support/importing.ts';
import { STORES, startTestService, temporaryFolder } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';

const BOOKS: readonly Book[] = [
  { id: 1, title: 'Emma', author: 'Jane Austen', year: 1801 },
  { id: 2, title: 'Persuasion', author: 'Jane Austen', year: 1871 },
  { id: 3, title: 'Dune', author: 'Frank Herbert', year: 1956 },
  { id: 4, title: 'Kim', author: 'Rudyard Kipling', year: 1900 },
];
const [EMMA, PERSUASION, DUNE, KIM] = BOOKS as [Book, Book, Book, Book];

for (const { name, freshUrl } of STORES) {
  /** An export of these books, and the lines of its rows. */
  async function exported(format = 'csv', books = BOOKS) {
    const [url, folder] = [await storeWith(books, freshUrl), temporaryFolder()];
    assert.equal((await command(`export books.${format}`, url, folder)).code, 0);
    const path = join(folder, `books.${format}`);
    const edit = (change: (text: string) => string) =>
      writeFileSync(path, change(readFileSync(path, 'utf8')));
    const run = (options = '') => importing(url, folder, `books.${format}${options}`);
    return { url, folder, edit, run };
  }

  describe(`correcting by a file on ${name}`, () => {
    test('three years are corrected, and a change of somebody else in between is kept', async () => {
      const { url, folder, edit, run } = await exported();
      edit(
        (text) =>
          `${text.replace('1801', '1815').replace('1871', '1817').replace('1956', '1965')},New,Somebody,2000,\n`,
      );
      await executeOn(url, "update books set title = 'Dune!' where id = 3");
      await executeOn(url, "insert into books (id, title, author, year) values (9, 'Another', '', 2001)");
      const shown = `books.csv: CSV, ids kept, title from "title", author from "author", year from "year"
books.csv:4: etag "TAG" is from before a change of book 3: title "Dune!" here, "Dune" in the file; year 1956 here, 1965 in the file. Its tag is now TAG
2 books change:
books.csv:2: "Emma": year 1801 → 1815
books.csv:3: "Persuasion": year 1871 → 1817
`;
      const result = '5 rows read: 1 imported, 2 changed, 1 already there, 1 refused.\n';
      const remarks =
        '1 row is from before a change or a removal, which stays.\n1 book stays: no row that was read has the id.\n';
      const withoutTags = (text: string) =>
        text.replaceAll(/"?[\w-]{22}"?$/gm, 'TAG').replaceAll(/"[\w-]{22}"/g, '"TAG"');
      const dry = await run(' --dry-run');
      assert.equal(withoutTags(dry.stderr), shown);
      assert.equal(dry.stdout, `Dry run: nothing was stored. Without --dry-run:\n${result}${remarks}`);
      assert.deepEqual((await booksOf(url))[0], EMMA);
      const { code, stdout, stderr } = await run();
      assert.equal(withoutTags(stderr), shown);
      assert.ok(stdout.startsWith(result) && stdout.endsWith(remarks), stdout);
      assert.equal(code, 1);
      assert.deepEqual(await booksOf(url), [
        { ...EMMA, year: 1815 },
        { ...PERSUASION, year: 1817 },
        { ...DUNE, title: 'Dune!' },
        KIM,
        { id: 9, title: 'Another', author: '', year: 2001 },
        { id: 10, title: 'New', author: 'Somebody', year: 2000 },
      ]);

      assert.match((await run()).stdout, /^5 rows read: 0 imported, 4 already there, 1 refused\.\n/);
      // With the tag that its reason names, the row changes the book.
      const [, , header, row = ''] =
        /^((.+)\n)(.+)\n$/.exec(readFileSync(join(folder, 'books.rejects.csv'), 'utf8')) ?? [];
      assert.equal(header, 'id,title,author,year,etag,refused');
      const tag = /now ([\w-]{22})"$/.exec(row)?.[1];
      writeFileSync(join(folder, 'dune.csv'), `${header}\n${row.replace(/"""[\w-]{22}"""/, `${tag}`)}\n`);
      const dune = await importing(url, folder, 'dune.csv');
      assert.match(dune.stdout, /^1 row read: 0 imported, 1 changed, 0 already there, 0 refused\.\n/);
      assert.deepEqual((await booksOf(url))[2], { ...DUNE, year: 1965 });

      const list = (await command('undo --list', url)).stdout;
      const number = /^(\d+) .* 3 books {2}books\.csv$/m.exec(list)?.[1];
      assert.match((await command(`undo --event ${number} --yes`, url)).stdout, /^3 books taken back\.\n/);
      const left = (await booksOf(url)).slice(0, 2);
      assert.deepEqual(left, [EMMA, PERSUASION]);
    });

    test('the tags of all texts and years are known, in every format', async () => {
      const texts = [
        'a "b"\\\t\n\r\b\f',
        '\u0001\u001f\u007f\u0080\u2028\u2029',
        '</é😀>',
        '\ufeff',
        "'=1+1",
        '',
      ];
      const books = texts.map((title, at) => ({
        id: at + 1,
        title,
        author: texts.at(-at) ?? '',
        year: 10 ** at * (at - 2),
      }));
      for (const format of ['csv', 'json', 'jsonl']) {
        const { url, edit, run } = await exported(format, books);
        edit((text) =>
          text.replaceAll(/"author":"/g, '"author":"!').replaceAll(/^(\d,(?:"(?:[^"]|"")*"),")/gm, '$1!'),
        );
        assert.match((await run(' --dry-run')).stdout, /\n6 rows read: 0 imported, 6 changed, /, format);
        await executeOn(url, "update books set author = author || '?'");
        const { stdout } = await run();
        assert.match(stdout, /^6 rows read: 0 imported, 0 already there, 6 refused\.\n/);
        assert.match(stdout, /^6 rows are from before a change/m, format);
        assert.deepEqual(
          await booksOf(url),
          books.map((book) => ({ ...book, author: `${book.author}?` })),
        );
      }
    });

    test('a file of another catalogue has the same ids: its rows are refused, unless somebody says which books they are', async () => {
      const other =
        'id,title,author,year\n1,Ulysses,James Joyce,1922\n2,Persuasion,Jane Austen,1817\n1,Emma,,0\n7,Free,,1\n';
      const folder = folderWith({ 'other.csv': other });
      const refused = await storeWith(BOOKS, freshUrl);
      const first = await importing(refused, folder, 'other.csv');
      const both =
        'title "Emma" here, "Ulysses" in the file; author "Jane Austen" here, "James Joyce" in the file; year 1801 here, 1922 in the file';
      assert.deepEqual(
        first.stderr.split('\n').slice(1, 4),
        [
          'other.csv:4: id "1" belongs to an earlier row with other values: title "Ulysses" there, "Emma" here; author "James Joyce" there, "" here; year 1922 there, 0 here',
          `other.csv:2: id "1" belongs to a book with other values: ${both}`,
          'other.csv:3: id "2" belongs to a book with other values: year 1871 here, 1817 in the file',
        ].toSorted((one, two) => one.localeCompare(two)),
      );
      assert.match(first.stdout, /^4 rows read: 1 imported, 0 already there, 3 refused\.\n/);
      assert.match(
        first.stdout,
        /^2 rows have the ids of books with other values: --on-conflict change changes /m,
      );
      assert.deepEqual(
        (await booksOf(refused)).map(({ id }) => id),
        [1, 2, 3, 4, 7],
      );

      const changed = await storeWith(BOOKS, freshUrl);
      const change = await importing(changed, folder, 'other.csv --on-conflict change');
      assert.match(change.stdout, /^4 rows read: 1 imported, 2 changed, 0 already there, 1 refused\.\n/);
      assert.deepEqual((await booksOf(changed)).slice(0, 3), [
        { id: 1, title: 'Ulysses', author: 'James Joyce', year: 1922 },
        { ...PERSUASION, year: 1817 },
        DUNE,
      ]);

      const added = await storeWith(BOOKS, freshUrl);
      for (const expected of ['4 imported, 0 already there', '0 imported, 4 already there']) {
        const add = await importing(added, folder, 'other.csv --on-conflict add');
        assert.ok(add.stdout.startsWith(`4 rows read: ${expected}, 0 refused.\n`), add.stdout);
      }
      const all = await booksOf(added);
      assert.deepEqual(all.slice(0, 4), BOOKS);
      assert.deepEqual(
        all
          .slice(4)
          .map(({ id, title }) => `${id} ${title}`)
          .toSorted(),
        ['10 Emma', '7 Free', '8 Ulysses', '9 Persuasion'].toSorted(),
      );
    });

    test('an unknown tag changes nothing; one without its quotation marks is one; REQUIRE_IF_MATCH demands it', async () => {
      const { url, folder, edit, run } = await exported();
      edit((text) =>
        text
          .replace('1801', '1815')
          .replace('1871', '1817')
          .replaceAll('"""', '')
          .replace(/1817,./, '1817,~'),
      );
      const { code, stderr } = await run();
      assert.equal(code, 1);
      assert.match(
        stderr,
        /\nbooks\.csv:3: etag "~[^"]+" is unknown, and book 2 has other values: year 1871 here, 1817 in the file\. /,
      );
      assert.deepEqual(
        (await booksOf(url)).map(({ year }) => year),
        [1815, 1871, 1956, 1900],
      );
      edit((text) => text.replace('~', 'x'));
      assert.match(
        (await run()).stderr,
        /\nbooks\.csv:3: etag "x[^"]+" is unknown, and book 2 has other values: year 1871 here, /,
      );
      const strict = { DB_URL: url, REQUIRE_IF_MATCH: 'on' };
      const args = ['import', 'books.csv', '--on-conflict', 'change'];
      const needed = await runCommand(args, strict, { folder });
      assert.deepEqual(
        [needed.code, needed.stderr],
        [2, 'With REQUIRE_IF_MATCH=on, only rows with their present tags change books.\n'],
      );
      assert.equal((await booksOf(url))[1]?.year, 1871);
      assert.equal((await runCommand(args, { DB_URL: url }, { folder })).code, 0);
      assert.equal((await booksOf(url))[1]?.year, 1817);
    });

    test('a book that was removed since stays so, unless the rest is to be added; without a history, it comes back', async () => {
      const { url, folder, edit, run } = await exported();
      edit((text) => text.replace('1801', '1815').replace('1871', '1817'));
      await executeOn(url, 'delete from books where id = 1');
      await executeOn(url, "update books set author = 'A.' where id = 2");
      const kept = await run();
      assert.match(kept.stderr, /\nbooks\.csv:2: etag "[\w-]{22}" is from before book 1 was removed\n/);
      assert.match(kept.stdout, /^4 rows read: 0 imported, 2 already there, 2 refused\.\n/);
      const unknown = await runCommand(
        ['import', 'books.csv', '--dry-run'],
        { DB_URL: url, HISTORY: 'off' },
        { folder },
      );
      assert.match(unknown.stdout, /^4 rows read: 1 imported, 2 already there, 1 refused\.$/m);
      assert.match(
        unknown.stderr,
        /\nbooks\.csv:3: etag "[\w-]{22}" is unknown, and book 2 has other values: /,
      );
      assert.match(
        unknown.stdout,
        /\nHISTORY is off: books that were changed since the export are unknown, and those that were removed since are imported again\.\n$/,
      );
      assert.match(
        (await run(' --on-conflict add')).stdout,
        /^4 rows read: 1 imported, 2 already there, 1 refused\.$/m,
      );
      assert.deepEqual((await booksOf(url))[0], { ...EMMA, year: 1815 });
    });

    test('a header may be in another case; a row with a tag needs its id, and all fields', async () => {
      const { url, folder, edit, run } = await exported();
      edit((text) => {
        const [, emma = '', persuasion = '', dune = ''] = text.split('\n');
        const rows = [
          emma.replace('1801', '18'),
          persuasion.replace('2,', ','),
          dune.replace(/,1956,.*/, ''),
        ];
        return `ID,Title,Author,Year,ETag\n${rows.join('\n')}\n`;
      });
      const { stdout, stderr } = await run();
      assert.match(stdout, /^3 rows read: 0 imported, 1 changed, 0 already there, 2 refused\.\n/);
      assert.match(stderr, /\nbooks\.csv:2: "Emma": year 1801 → 18 \(has an unlikely year\)\n/);
      assert.match(stderr, /\nbooks\.csv:3: ID "" is missing, but the row has an etag\n/);
      assert.match(stderr, /\nbooks\.csv:4: has 3 fields, the header has 5\n/);
      assert.match(
        (await importing(url, folder, 'books.rejects.csv')).stdout,
        /^2 rows read: 0 imported, .* 2 refused\.\n/,
      );
      assert.deepEqual(await booksOf(url), [{ ...EMMA, year: 18 }, PERSUASION, DUNE, KIM]);
    });

    test('a row without an id is new if its book is changed by another row of the file', async () => {
      const { url, edit, run } = await exported();
      edit((text) => `${text.replace('1801', '1815')},Emma,Jane Austen,1801,\n`);
      assert.match(
        (await run()).stdout,
        /^5 rows read: 1 imported, 1 changed, 3 already there, 0 refused\.\n/,
      );
      assert.match((await run()).stdout, /^5 rows read: 0 imported, 5 already there, 0 refused\.\n/);
      assert.deepEqual((await booksOf(url)).at(-1), { ...EMMA, id: 5 });
    });

    test('a file without a column leaves that field; a record that lacks a value changes nothing', async () => {
      const { url, folder } = await exported();
      const [tags] = [
        (await command('export --format jsonl', url)).stdout
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line)),
      ];
      const tag = (id: number) => JSON.stringify(tags[id - 1].etag);
      const lines = [
        `{"id":1,"etag":${tag(1)},"title":"Emma","year":1815}`,
        `{"id":2,"etag":${tag(2)},"title":"Persuasion"}`,
        `{"id":3,"etag":${tag(3)},"title":"Dune","year":null}`,
      ];
      writeFileSync(join(folder, 'some.jsonl'), `${lines.join('\n')}\n`);
      for (const options of ['', ' --on-conflict change']) {
        const { stdout, stderr } = await importing(url, folder, `some.jsonl${options}`);
        assert.match(
          stdout,
          options === ''
            ? / 1 changed, 0 already there, 2 refused/
            : / 0 imported, 1 already there, 2 refused/,
        );
        assert.match(stderr, /\nsome\.jsonl:3: lacks a value that book 3 would lose\n/);
      }
      assert.deepEqual((await booksOf(url)).slice(0, 3), [{ ...EMMA, year: 1815 }, PERSUASION, DUNE]);
    });

    test('a book that changes between the comparison and its turn stays', async () => {
      const url = await storeWith(BOOKS, freshUrl);
      const store = await (await readDbUrl(url)).openBulk('write', TIMES);
      try {
        const load = await store.load({ ...RULES, onConflict: 'change' });
        await load.add(
          BOOKS.map((book, at) => ({
            ...book,
            year: 2000,
            line: at + 2,
            tag: '',
            original: `${book.id}`,
            doubt: undefined,
          })),
        );
        const { signal } = new AbortController();
        assert.equal((await load.compare(signal)).changed, 4);
        await executeOn(url, "update books set title = 'x' where id = 2");
        await executeOn(url, 'delete from books where id = 3');
        let [left, books] = [[] as number[], 0];
        const report = async (isDone: boolean) => {
          const rows = isDone ? (await Array.fromAsync(load.left(['changedMeanwhile']))).flat() : [];
          left = rows.map(({ id }) => id);
        };
        await load.store(
          { name: 'a', fingerprint: 'a', owner: 'a', number: undefined, report },
          signal,
          (_, stored) => {
            books = stored;
          },
        );
        await load.close();
        assert.deepEqual([left, books], [[2, 3], 2]);
      } finally {
        await store.close();
      }
      assert.deepEqual(
        (await booksOf(url)).map(({ title, year }) => `${title} ${year}`),
        ['Emma 2000', 'x 1871', 'Kim 2000'],
      );
    });

    test('rules E4, M3 and M9: a request does the same, and REQUIRE_IF_MATCH demands tags', async () => {
      const { url, edit, folder, run } = await exported();
      edit((text) => text.replace('1801', '1815').replace(/1871,.*/, '1817,'));
      const { stderr } = await run(' --dry-run');
      assert.ok(stderr.endsWith(blockOf('docs/data.md', '1 book changes:')), stderr);
      const { client, stop } = await startTestService(url, { REQUIRE_IF_MATCH: 'on' });
      const body = readFileSync(join(folder, 'books.csv'));
      const send = (query: string) => client.request('POST', `/import?name=books.csv${query}`, { body });
      const unseen = await send('&on-conflict=change');
      assert.deepEqual([unseen.status, unseen.message], [428, 'Precondition required']);
      const check = (await send('&dry-run')).data;
      const { rows, changed, here, refused, changedSince, conflicts, absent } = check.figures;
      assert.deepEqual(
        [rows, changed, here, refused, changedSince, conflicts, absent],
        [4, 1, 2, 1, 0, 1, 0],
      );
      const row = { line: 2, title: 'Emma', author: 'Jane Austen', year: 1815, doubt: null };
      assert.deepEqual(check.rows.changed, [{ ...row, id: 1, before: { year: 1801 } }]);
      assert.deepEqual(check.refused[0].reason, { code: 'id-taken', values: ['year', 1871, 1817] });
      const again = await client.request('POST', `/import/${check.import}?on-conflict=change`);
      assert.equal(again.status, 428);
      assert.equal(
        (await client.request('PUT', '/book/1', { headers: { 'if-match': '*' }, body: '{"author":"A."}' }))
          .status,
        200,
      );
      const late = (await client.request('POST', `/import/${check.import}?dry-run`)).data;
      assert.deepEqual([late.figures.changed, late.figures.changedSince], [0, 1]);
      const [{ column, text, proposal, reason }] = late.refused;
      const tag = (await client.request('GET', '/book/1')).headers.get('etag')?.slice(1, -1);
      assert.deepEqual([column, text.length, proposal], ['etag', 24, tag]);
      const both = ['author', 'A.', 'Jane Austen', 'year', 1801, 1815];
      assert.deepEqual(reason, { code: 'changed-since', values: [1, tag, ...both] });
      const corrections = encodeURIComponent(JSON.stringify({ 2: proposal }));
      const stored = (await client.request('POST', `/import/${check.import}?corrections=${corrections}`))
        .data;
      assert.deepEqual([stored.state, stored.books, stored.figures.changed], ['stored', 1, 1]);
      assert.deepEqual((await booksOf(url)).slice(0, 2), [{ ...EMMA, year: 1815 }, PERSUASION]);
      await stop();
    });
  });
}

test('an import into SQLite that is completed makes the changes again that somebody has taken back', async () => {
  const books = manyBooks(1500);
  const url = await storeWith(books);
  const changed = books.map((book) => ({ ...book, year: 3000, tag: '', original: '', doubt: undefined }));
  const run = async (signal: AbortSignal, onStored: () => void) => {
    const store = await (await readDbUrl(url)).openBulk(
      'write',
      timesWith({ sqlite: { bulkTransaction: 0 } }),
    );
    try {
      const load = await store.load({ ...RULES, onConflict: 'change' });
      await load.add(changed.map((row, at) => ({ ...row, line: at + 2 })));
      await load.compare(signal);
      const work = { name: 'a', fingerprint: 'a', owner: `${signal.aborted}`, number: undefined };
      return await load.store({ ...work, report: async () => null }, signal, onStored);
    } finally {
      await store.close();
    }
  };
  const stop = new AbortController();
  await assert.rejects(run(stop.signal, () => stop.abort()));
  assert.equal((await booksOf(url)).filter(({ year }) => year === 3000).length, 500);
  await executeOn(url, 'update books set year = 0 where id = 1');
  assert.deepEqual(await run(new AbortController().signal, () => {}), { added: 0, changed: 1001 });
  assert.ok((await booksOf(url)).every(({ year }) => year === 3000));
});
