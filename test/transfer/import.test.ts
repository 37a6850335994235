// `import`, which stores the books of a file: what it prints, what is stored, what is rejected and can be imported again.
// Imports that are interrupted are in running.test.ts, killed ones in test/release/power.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { countFound } from '../support/book-index.ts';
import { booksOf, countOf, fill } from '../support/books.ts';
import { refusedWith, runCommand } from '../support/command.ts';
import { command, folderWith, importing, manyRows, startImport, storeWith } from '../support/importing.ts';
import { execute } from '../support/postgres.ts';
import {
  POSTGRES,
  SQLITE,
  STORES,
  startTestService,
  temporaryFolder,
  testOnPostgres,
} from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

const SAMPLE = `title,authors,original_publication_year
The Odyssey,Homer,-720.0
"Emma","Jane Austen",1815
Emma,Jane Austen,1815
Beowulf,,1000
"A ""quoted"", title",Somebody,
`;
const HEADER = 'id,title,author,year\n';

/** The books of a store, as rows of an export. */
const rowsOf = async (url: string) =>
  (await booksOf(url)).map(({ id, title, author, year }) => `${id} ${title}/${author}/${year}`);

for (const { name, freshUrl } of STORES) {
  describe(`import into ${name}`, () => {
    test('new rows are stored, in the order of the file, and once; or all, if they are to be added', async () => {
      const [url, folder] = [await freshUrl(), folderWith({ 'books.csv': SAMPLE })];
      assert.deepEqual(await importing(url, folder, 'books.csv'), {
        code: 0,
        stdout:
          '5 rows read: 4 imported, 1 already there, 0 refused.\n1 without an author: stored as "".\n1 without a year: stored as 0.\n',
        stderr:
          'books.csv: CSV, title from "title", author from "authors", year from "original_publication_year"\n',
      });
      const second = await importing(url, folder, 'books.csv');
      assert.equal(second.code, 0);
      assert.equal(second.stdout, '5 rows read: 0 imported, 5 already there, 0 refused.\n');
      const quoted = '4 A "quoted", title/Somebody/0';
      const books = ['1 The Odyssey/Homer/-720', '2 Emma/Jane Austen/1815', '3 Beowulf//1000', quoted];
      assert.deepEqual(await rowsOf(url), books);
      const { stdout } = await importing(url, folder, 'books.csv --on-duplicate add');
      assert.match(stdout, /^5 rows read: 5 imported, 0 already there, 0 refused\.\n/);
      assert.equal(await countOf(url), 9);
    });

    test('a dry run prints the same, and stores nothing', async () => {
      const [url, folder] = [await freshUrl(), folderWith({ 'books.csv': `${SAMPLE}A,B,MCMXC\n` })];
      for (const imported of [4, 3]) {
        if (imported === 3) await fill(url, [{ id: 1, title: 'Emma', author: 'Jane Austen', year: 1815 }]);
        const { code, stdout } = await importing(url, folder, 'books.csv --dry-run');
        const summary = `6 rows read: ${imported} imported, ${5 - imported} already there, 1 refused.\n`;
        assert.equal(code, 1);
        assert.ok(stdout.startsWith(`Dry run: nothing was stored. Without --dry-run:\n${summary}`), stdout);
        assert.deepEqual(readdirSync(folder), ['books.csv']);
      }
      assert.equal(await countOf(url), 1);
      const named = await importing(url, folder, 'books.csv --dry-run --rejects wrong.csv');
      assert.match(named.stdout, /\n1 rejected row written to wrong\.csv\.\n$/);
      const reason = 'original_publication_year: cannot be read as a year';
      const rejected = `title,authors,original_publication_year,refused\nA,B,MCMXC,"${reason}"\n`;
      assert.equal(readFileSync(join(folder, 'wrong.csv'), 'utf8'), rejected);
    });

    test('ids are kept if the file is an export; an id that belongs to another book is rejected', async () => {
      const [url, rows] = [await freshUrl(), '900,"Grendel","",1971\n8,"a","",0\n8,"b","",0\n'];
      const folder = folderWith({
        'first.csv': `${HEADER}7,"Emma","Jane Austen",1815\n900,"Beowulf","",1000\n`,
        'second.csv': `${HEADER}7,"Emma","Jane Austen",1815\n${rows}`,
      });
      const dry = await importing(url, folder, 'second.csv --dry-run');
      assert.match(dry.stdout, /^4 rows read: 3 imported, 0 already there, 1 refused\.$/m);
      const first = await importing(url, folder, 'first.csv');
      const how = 'CSV, ids kept, title from "title", author from "author", year from "year"';
      assert.deepEqual([first.code, first.stderr], [0, `first.csv: ${how}\n`]);
      const second = await importing(url, folder, 'second.csv');
      assert.equal(second.code, 1);
      assert.deepEqual(second.stderr.split('\n').slice(1, 3), [
        'second.csv:3: id "900" belongs to a book with other values: title "Beowulf" here, "Grendel" in the file; year 1000 here, 1971 in the file',
        'second.csv:5: id "8" belongs to an earlier row with other values: title "a" there, "b" here',
      ]);
      assert.match(second.stdout, /^4 rows read: 1 imported, 1 already there, 2 refused\.$/m);
      const advice =
        '1 row has the id of a book with other values: --on-conflict change changes these books, --on-conflict add gives the rows new ids.\n';
      assert.ok(second.stdout.includes(advice), second.stdout);
      const [, grendel, b] = readFileSync(join(folder, 'second.rejects.csv'), 'utf8').split('\n');
      assert.match(
        grendel ?? '',
        /^900,"Grendel","",1971,"id: belongs to a book with other values: title ""Beowulf"" here, /,
      );
      assert.match(b ?? '', /^8,"b","",0,"id: belongs to an earlier row /);
      assert.equal((await importing(url, folder, 'second.rejects.csv --ids new')).code, 0);
      const others = ['8 a//0', '900 Beowulf//1000', '901 Grendel//1971', '902 b//0'];
      assert.deepEqual(await rowsOf(url), ['7 Emma/Jane Austen/1815', ...others]);
    });

    test("rows that an operator's trigger skips are not counted: nothing is stored with them", async () => {
      const url = await storeWith([], freshUrl);
      const skip = 'create trigger skip before insert on books';
      if (name === 'SQLite')
        await executeOn(url, `${skip} when new.year = 0 begin select raise(ignore); end`);
      else
        await execute(
          url,
          `create function skip() returns trigger language plpgsql as $$ begin return null; end $$;
           ${skip} for each row when (new.year = 0) execute function skip()`,
        );
      const folder = folderWith({
        'new.csv': 'title,author,year\nEmma,Jane Austen,1815\nBeowulf,,0\n',
        'kept.csv': `${HEADER}7,Emma,Jane Austen,1815\n8,Beowulf,,0\n`,
        'many.csv': `title\n${'Beowulf\n'.repeat(100)}`, // statements on SQLite store many
      });
      const runs = ['new.csv', 'new.csv --on-duplicate add', 'kept.csv', 'many.csv --on-duplicate add'];
      for (const words of runs.slice(0, name === 'SQLite' ? 4 : 3)) {
        const { code, stdout, stderr } = await importing(url, folder, words);
        assert.equal(code, 1);
        assert.match(stdout, /^\d+ rows? read: 0 imported, 0 refused\.\n/);
        assert.match(stderr, /: a trigger has skipped (1 of 2|100 of 100) books\. [^\n]+\n$/);
      }
      assert.equal(await countOf(url), 0);
      const source = await storeWith([{ id: 1, title: 'Beowulf', author: '', year: 0 }]);
      const copied = await command(`copy ${source} ${url}`);
      assert.deepEqual(copied, refusedWith('Nothing was copied: a trigger has skipped 1 of 1 books.'));
    });

    test('beside a running service, both complete their work; rule 12: it then gives ids after those that were kept', async () => {
      const url = await freshUrl();
      const service = await startTestService(url);
      const { stdin, ended } = startImport(url);
      stdin.end(manyRows(80_000));
      let created = 0;
      let isOver = false;
      const creating = (async () => {
        for (; !isOver; created += 1) await service.client.create({ title: 'between two rows' });
      })();
      const { code, stdout } = await ended;
      isOver = true;
      await creating;
      assert.deepEqual([code, stdout], [0, '80000 rows read: 80000 imported, 0 already there, 0 refused.\n']);
      const books = await service.client.list();
      assert.equal(books.length, 80_000 + created);
      const folder = folderWith({ 'export.csv': `${HEADER}700000,"a","",0\n900000,"b","",0\n` });
      assert.equal((await importing(url, folder, 'export.csv')).code, 0);
      assert.equal((await service.client.create({})).id, 900_001);
    });

    test('rule 12: in a store that has the highest possible id, new books get ids below, also in its copies', async () => {
      const [url, target] = [await freshUrl(), await freshUrl()];
      const folder = folderWith({
        'far.csv': `${HEADER}9007199254740991,"","",0\n7,"","",0\n`,
        'near.csv': `${HEADER}20,"","",0\n`,
        'new.csv': 'title\nnew\n',
      });
      const imports = async (words: string, store = url) => {
        const { code, stdout } = await importing(store, folder, words);
        assert.equal(code, words === 'far.csv' ? 1 : 0);
        return stdout.split('\n')[0];
      };
      assert.equal(await imports('far.csv'), '2 rows read: 1 imported, 0 already there, 1 refused.');
      await executeOn(url, 'insert into books (id) values (9007199254740991)');
      const { client } = await startTestService(url);
      const created: number[] = [];
      const create = async () => created.push((await client.create({ title: 'created' })).id);
      await create();
      await imports('near.csv');
      await create();
      await client.request('DELETE', '/book/21');
      await imports('new.csv');
      await imports('new.csv --on-duplicate add');
      created.push(...(await client.request('POST', '/books', { body: [{}, {}] })).data);
      assert.deepEqual(created, [8, 21, 24, 25]);
      assert.equal(await countFound(client, 'q=created'), 1);
      await executeOn(url, 'insert into books (id) values (9007199254740990)');
      await client.request('DELETE', '/book/25');
      assert.equal((await command(`copy ${url} ${target}`)).code, 0);
      await imports('new.csv --on-duplicate add', target);
      const ids = (await booksOf(target)).map(({ id }) => id);
      assert.deepEqual(ids, [7, 8, 20, 22, 23, 24, 26, 9007199254740990, 9007199254740991]);
    });
  });
}

describe('import', () => {
  test('each row is compared with all books and with all rows before it, however many there are', async () => {
    const url = await storeWith([]);
    // More books, and more new rows, than one step of the comparison has.
    await executeOn(
      url,
      `with recursive number (value) as (select 1 union all select value + 1 from number where value < 24000)
       insert into books (title) select 't' || value from number`,
    );
    const rows = Array.from({ length: 22_000 }, (_, index) => `t${((index * 7) % 22_000) + 12_001}\n`);
    const folder = folderWith({ 'books.csv': `title\n${rows.join('')}t1\nt24000\nt40000\n` });
    const { stdout } = await importing(url, folder, 'books.csv');
    assert.match(stdout, /^22003 rows read: 10001 imported, 12002 already there, 0 refused\.$/m);
    const titles = (await booksOf(url)).map(({ title }) => `${title}\n`);
    assert.equal(new Set(titles).size, 34_001);
    const stored = [...rows.filter((row) => Number(row.slice(1)) > 24_000), 't40000\n'];
    assert.deepEqual(titles.slice(24_000), stored);
  });

  test('each rejected row is reported with line, column, value and reason, and can be corrected', async () => {
    const url = await SQLITE.freshUrl();
    const content = 'name;writer;when\nA;B;MCMXC\n"two\nlines";B;1990\nA;B;;x\nC;\u001b[31mD;1\u202e9x\n';
    const folder = folderWith({ 'books.csv': content });
    const columns = '--author writer --year when';
    const { code, stdout, stderr } = await importing(url, folder, `books.csv ${columns}`);
    assert.equal(code, 1);
    assert.deepEqual(stderr.trimEnd().split('\n'), [
      'books.csv: CSV, title from "name", author from "writer", year from "when"',
      'books.csv:2: when "MCMXC" cannot be read as a year',
      'books.csv:5: has 4 fields, the header has 3',
      'books.csv:6: when "1\\u202e9x" cannot be read as a year',
    ]);
    const counts = '4 rows read: 1 imported, 0 already there, 3 refused.\n';
    const advice = '3 rejected rows written to books.rejects.csv: fix them there and import that file.\n';
    assert.equal(stdout, counts + advice);
    const rejects = join(folder, 'books.rejects.csv');
    const corrected = readFileSync(rejects, 'utf8').replace('MCMXC', '1990').replace('A;B;;x', 'A;B;1991');
    writeFileSync(rejects, corrected.replace('1\u202e9x', '1999'));
    const again = await importing(url, folder, `books.rejects.csv ${columns} --rejects rest.csv`);
    const all = '3 rows read: 3 imported, 0 already there, 0 refused.\n';
    assert.deepEqual([again.code, again.stdout], [0, all]);
    assert.equal(existsSync(join(folder, 'rest.csv')), false);
    const books = ['1 two\nlines/B/1990', '2 A/B/1990', '3 A/B/1991', '4 C/\u001b[31mD/1999'];
    assert.deepEqual(await rowsOf(url), books);
  });

  const DUNE = '{"year":"MCM","title":"Dune","id":20}';
  const ISBN = '{"title":"Emma","isbn":"978"}\n';
  const WITH_ISBN = 'id,title,author,year,isbn\n20,Dune,,MCM,978';
  const AGAIN: readonly (readonly [content: string, rejects: string, options: string, advice: string])[] = [
    ['sep=|\ntitle|year\nDune|MCM\n', 'csv', '', ''],
    ['title|year\nDune|MCM\n', 'csv', ' --delimiter |', ''],
    ['[{"title":"Dune","year":"MCM"}]', 'json', ' --format json', ''],
    ['{"title":"Dune","year":"MCM"}\n', 'jsonl', ' --format jsonl', ''],
    [WITH_ISBN, 'csv', ' --ids keep', ' --ids keep'],
    [`${HEADER}20,Dune,,MCM`, 'csv', ' --ids keep', ''],
    [`${HEADER}20,Dune,,MCM`, 'csv', ' --ids new', ' --ids new'],
    [WITH_ISBN, 'csv', ' --ids new', ''],
    // Without the others, a row of JSON may be one of an export.
    [`{"id":30,"title":"Emma","author":"x","year":1965}\n${DUNE}\n`, 'jsonl', '', ' --ids keep'],
    [`${ISBN.replace('}', ',"id":7}')}${DUNE}\n`, 'jsonl', '', ' --ids new'],
    [`${ISBN.repeat(5000)}${DUNE}\n`, 'jsonl', '', ' --ids new'],
    [`${ISBN}{"title":"Dune","year":"MCM"}\n`, 'jsonl', '', ''],
  ];
  test('rejected rows can be imported again with the same options, or those that the report names', async () => {
    for (const [content, ending, options, advice] of AGAIN) {
      const [url, folder] = [await SQLITE.freshUrl(), folderWith({ books: content })];
      const first = await importing(url, folder, `books${options}`);
      const named = `books.rejects.${ending}: fix it there and import that file${advice && ` with${advice}`}.\n`;
      assert.ok(first.stdout.includes(`1 rejected row written to ${named}`), first.stdout);
      const path = join(folder, `books.rejects.${ending}`);
      writeFileSync(path, readFileSync(path, 'utf8').replace('MCM', '1965'));
      const { code, stdout } = await importing(url, folder, `books.rejects.${ending}${advice || options}`);
      assert.deepEqual([code, /^1 row read: 1 imported, /.test(stdout)], [0, true], stdout);
      const dune = (await booksOf(url)).find(({ title }) => title === 'Dune');
      assert.deepEqual([dune?.year, dune?.id === 20], [1965, /keep/.test(`${advice}${options}`)], content);
    }
  });

  test('the report counts years that are probably dates, and these may be left out', async () => {
    const folder = folderWith({
      'books.jsonl': '{"title":"a"}\n{"title":"Emma","author":"a","year":18151223}\n',
    });
    assert.deepEqual(await importing(await SQLITE.freshUrl(), folder, 'books.jsonl'), {
      code: 0,
      stdout:
        '2 rows read: 2 imported, 0 already there, 0 refused.\n' +
        '1 without an author: stored as "".\n1 without a year: stored as 0.\n' +
        '1 new book without a title or with an unlikely year: look at them, or leave them out with --doubtful skip.\n',
      stderr: 'books.jsonl: JSON Lines, title from "title", author from "author", year from "year"\n',
    });
    const url = await SQLITE.freshUrl();
    const { code, stdout } = await importing(url, folder, 'books.jsonl --doubtful skip');
    assert.deepEqual(
      [code, stdout.split('\n')[0]],
      [0, '2 rows read: 1 imported, 0 already there, 0 refused.'],
    );
  });

  test('midnight of New Year elsewhere, which the file has in UTC as 31 December, is of the new year, and counted', async () => {
    const folder = folderWith({
      'calibre.csv':
        'authors,title,pubdate\nA,Berlin,1999-12-31T23:00:00+00:00\nB,Delhi,1999-12-31T18:30:00+00:00\n' +
        'C,New York,2000-01-01T05:00:00+00:00\nD,An evening,1999-12-31T23:15:42+00:00\nE,None,0100-12-31T23:00:00Z\n',
      'calibre.json':
        '[{"title":"Tokyo","pubdate":"1999-12-31T15:00:00+00:00"},{"title":"F","publish_date":["1999-12-31 12:00:00Z"]}]',
    });
    const url = await SQLITE.freshUrl();
    const said = '2 dates in UTC, on 31 December, are midnight in another time zone: read as the new year.';
    for (const name of ['calibre.csv', 'calibre.json'])
      assert.ok((await importing(url, folder, name)).stdout.endsWith(`\n${said}\n`), name);
    const years = (await booksOf(url)).map(({ title, year }) => `${title} ${year}`);
    const expected = 'Berlin 2000, Delhi 2000, New York 2000, An evening 1999, None 0, Tokyo 2000, F 2000';
    assert.equal(years.join(', '), expected);
  });

  test('the report names the other columns where none has the usual name of the author or of the year', async () => {
    const folder = folderWith({ 'a.csv': 'id,Title,First Name,Last Name,refused\n1,Emma,Jane,Austen,\n' });
    const { stderr } = await importing(await SQLITE.freshUrl(), folder, 'a.csv');
    const advice = 'set --author and --year, if books have it: the columns are First Name, Last Name.';
    assert.equal(stderr, `a.csv: CSV, title from "Title", no author, no year\na.csv: ${advice}\n`);
  });

  test('the report names what was read otherwise than it stands', async () => {
    const folder = folderWith({ 'books.csv': 'My books,,\n\ntitle,author,year\nEmma,J\nEmma \nIt,K,1986\n' });
    const { code, stdout, stderr } = await importing(await SQLITE.freshUrl(), folder, 'books.csv');
    assert.equal(code, 0);
    assert.match(stderr, /^books\.csv: left out above the header: My books,,$/m);
    assert.match(stdout, /^3 rows read: 3 imported, 0 already there, 0 refused\.$/m);
    assert.match(stdout, /^2 rows end before the last column in use: what is missing was read as empty\.$/m);
  });

  test('rejected rows go to the standard output, but to no device or pipe; damaged bytes are shown', async () => {
    const row = 'title,year,refused\nCafé,x,"year: cannot be read as a year"\n';
    const folder = folderWith({
      'books.csv': 'title,year\nCafé,x\n',
      'books.json': '[{"title":"Café","year":"x"}]',
      'damaged.csv': Buffer.from('title,x\n\xe9,\xc3\xa9\n', 'latin1'),
    });
    const run = (words: string) => importing('sqlite:books.db', folder, words);
    const out = await run('books.csv --rejects -');
    assert.deepEqual([out.code, out.stdout], [1, row]);
    assert.match(out.stderr, /^1 row read: (?:.|\n)*^1 rejected row written to the standard output\.$/m);
    const array = '[\n{"title":"Café","year":"x","refused":"year: cannot be read as a year"}\n]\n';
    const ofArray = await run('books.json --rejects -');
    assert.equal(ofArray.stdout, array);
    assert.match(ofArray.stderr, /^books\.json, element 1: year "x" cannot be read as a year$/m);
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    for (const path of ['pipe', '/dev/full', '/dev/null']) {
      const { code, stderr } = await run(`books.csv --rejects ${path}`);
      assert.equal(code, 1);
      assert.ok(
        stderr.endsWith(`${path} exists and is not a file: choose another file for rejected rows.\n`),
      );
    }
    const damaged = await run('damaged.csv --rejects -');
    assert.match(damaged.stderr, /^damaged\.csv:2: title "�" has a damaged character: � is not UTF-8$/m);
  });

  test('a pipe is read like a file; at a terminal, it says how to end the input', async () => {
    const url = await SQLITE.freshUrl();
    const rows = '{"title":"Emma","author":["Jane Austen","Another"],"year":1815}\n{"title":7}\n';
    for (const [isTTY, said] of [
      [false, /^stdin: JSON Lines, title from "title", [^\n]+\nstdin:2: title "7" is not a string\n$/],
      [true, /^Reading from the terminal: end with Ctrl-D on an empty line\.\nstdin: JSON Lines, /],
    ] as const) {
      const stdin = Object.assign(Readable.from([Buffer.from(rows)]), { isTTY });
      const env = { DB_URL: url };
      const ended = await runCommand(['import', '-'], env, { folder: temporaryFolder(), stdin });
      assert.equal(ended.code, 1);
      const advice = /^1 rejected row written to rejects\.jsonl: fix it there and import that file\.$/m;
      assert.match(ended.stdout, advice);
      assert.match(ended.stderr, said);
    }
    assert.equal((await booksOf(url))[0]?.author, 'Jane Austen, Another');
  });

  const FILES = {
    'empty.csv': '',
    'header.csv': 'title,author\n',
    'refused.csv': 'title,year\na,b\nc,d\n',
    'latin.csv': Buffer.from('title\nCaf\xe9\n', 'latin1'),
    'wrong.csv': 'subject,price\na,1\n',
    'export.csv': `${HEADER}1,"a","",0\n`,
  };
  /** The exit code, the arguments, and the last line: all that is printed, unless that is how a file is interpreted, and its rows. */
  const REFUSALS = `
1 missing.csv → missing.csv cannot be read: no such file or directory.
1 . → . cannot be read: it is a folder.
1 empty.csv → empty.csv: The file is empty…
1 wrong.csv → wrong.csv: There is no column for the title; … subject, price.
1 export.csv --year no → export.csv: There is no column "no" for the year: …
2 export.csv --on-duplicate no → --on-duplicate must be one of skip, add, not "no".
2 export.csv --format xml → --format must be one of csv, json, jsonl, xlsx, not "xml".
2 export.csv --encoding klingon → The encoding "klingon" is not supported: …
2 export.csv --delimiter ab → The delimiter must be one character …
2 --dry-run → book-catalogue import takes FILE, but got none. …
1 header.csv → …Nothing was imported: header.csv has no rows.
1 refused.csv → …Nothing was imported: every row was rejected.
1 latin.csv → …latin.csv: Line 2 is not UTF-8 text: … --encoding windows-1252 … with iconv.
1 refused.csv --rejects none/a.csv → …There is no folder none for rejected rows.
1 refused.csv --rejects export.csv/a → …Rejected rows cannot be written to … another file.`;
  test('an impossible import is refused in one sentence, and stores nothing', async () => {
    const folder = folderWith(FILES);
    for (const line of REFUSALS.trim().split('\n')) {
      const url = await SQLITE.freshUrl();
      const [, expected, words = '', sentence = ''] = /^(.) (.+) → (.+)$/.exec(line) ?? [];
      const { code, stderr } = await importing(url, folder, words);
      const parts = sentence.split('…').map((part) => part.replaceAll(/\W/g, '\\$&'));
      if (parts[0] === '') parts.splice(0, 2, `.+\n${parts[1]}`); // after how the file is interpreted
      assert.match(stderr, new RegExp(`^${parts.join('.*')}\n$`, parts[0]?.startsWith('.+') ? 's' : ''));
      assert.deepEqual([code, await countOf(url)], [Number(expected), 0], line);
    }
    const latin = await importing(await SQLITE.freshUrl(), folder, 'latin.csv --encoding windows-1252');
    assert.equal(latin.code, 0);
  });

  test('if a file breaks off, the rows before that are imported', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({ 'books.csv': `title\na\nb\n"${'c'.repeat(17 * 1024 * 1024)}` });
    const { code, stdout, stderr } = await importing(url, folder, 'books.csv');
    assert.equal(code, 1);
    assert.match(stdout, /^2 rows read: 2 imported, /);
    const rest =
      /\nbooks\.csv: The record that begins in line 4 has [^\n]+ Everything before that is imported\.\n$/;
    assert.match(stderr, rest);
    assert.equal(await countOf(url), 2);
  });

  testOnPostgres(
    'imported and forgotten books are so on disk even if the server has synchronous_commit off',
    async () => {
      const url = await storeWith([], POSTGRES.freshUrl);
      await execute(
        url,
        `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off; create table said (how text);
       create function say() returns trigger language plpgsql as
         $$ begin insert into said values (current_setting('synchronous_commit')); return null; end $$;
       create constraint trigger say after insert or delete on books deferrable initially deferred
         for each row execute function say()`, // which is at the commit
      );
      const folder = folderWith({
        'new.csv': 'title\nEmma\n',
        'kept.csv': `${HEADER}900,"Grendel","",1971\n`,
      });
      for (const file of ['new.csv', 'kept.csv']) assert.equal((await importing(url, folder, file)).code, 0);
      assert.equal((await runCommand(['forget', '900', '--yes'], { DB_URL: url })).code, 0);
      assert.deepEqual(await execute(url, 'select how from said'), Array(3).fill({ how: 'on' }));
    },
  );
});
