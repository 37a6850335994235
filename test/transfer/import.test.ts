// `import`, which stores the books of a file: what it prints, what is stored, what is rejected and can be imported again.
// Imports that are interrupted are in running.test.ts, killed ones in test/release/power.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { booksOf, countOf, fill } from '../support/books.ts';
import { HERE_ONLY, refusedWith, runCommand } from '../support/command.ts';
import { folderWith, importing, manyRows, startImport } from '../support/importing.ts';
import { SQLITE, STORES, startTestService, temporaryFolder } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

const SAMPLE = `title,authors,original_publication_year
The Odyssey,Homer,-720.0
"Emma","Jane Austen",1815
Emma,Jane Austen,1815
Beowulf,,1000
"A ""quoted"", title",Somebody,
`;

for (const { name, freshUrl } of STORES) {
  describe(`import into ${name}`, () => {
    test('new rows are stored, in the order of the file, and once', async () => {
      const url = await freshUrl();
      const folder = folderWith({ 'books.csv': SAMPLE });
      const first = await importing(url, folder, 'books.csv');
      assert.deepEqual(first, {
        code: 0,
        stdout:
          '5 rows read: 4 imported, 1 already there, 0 refused.\n1 without an author: stored as "".\n1 without a year: stored as 0.\n',
        stderr:
          'books.csv: CSV, title from "title", author from "authors", year from "original_publication_year"\n',
      });
      const second = await importing(url, folder, 'books.csv');
      assert.equal(second.code, 0);
      assert.equal(second.stdout, '5 rows read: 0 imported, 5 already there, 0 refused.\n');
      assert.deepEqual(await booksOf(url), [
        { id: 1, title: 'The Odyssey', author: 'Homer', year: -720 },
        { id: 2, title: 'Emma', author: 'Jane Austen', year: 1815 },
        { id: 3, title: 'Beowulf', author: '', year: 1000 },
        { id: 4, title: 'A "quoted", title', author: 'Somebody', year: 0 },
      ]);
    });

    test('a dry run prints the same, and stores nothing', async () => {
      const url = await freshUrl();
      const folder = folderWith({ 'books.csv': `${SAMPLE}A,B,MCMXC\n` });
      for (const [before, imported] of [
        ['', 4], // there is no store
        ['title,author,year\nEmma,Jane Austen,1815\n', 3],
      ] as const) {
        writeFileSync(join(folder, 'before.csv'), before);
        if (before !== '') await importing(url, folder, 'before.csv');
        const { code, stdout } = await importing(url, folder, 'books.csv', '--dry-run');
        const summary = `6 rows read: ${imported} imported, ${5 - imported} already there, 1 refused.\n`;
        assert.equal(code, 1);
        assert.ok(stdout.startsWith(`Dry run: nothing was stored. Without --dry-run:\n${summary}`), stdout);
      }
      assert.equal(await countOf(url), 1);
      assert.deepEqual(readdirSync(folder).sort(), ['before.csv', 'books.csv']);
    });

    test('ids are kept if the file is an export; an id that belongs to another book is rejected', async () => {
      const url = await freshUrl();
      const folder = folderWith({
        'first.csv': 'id,title,author,year\n7,"Emma","Jane Austen",1815\n900,"Beowulf","",1000\n',
        'second.csv':
          'id,title,author,year\n7,"Emma","Jane Austen",1815\n900,"Grendel","",1971\n8,"a","",0\n8,"b","",0\n',
      });
      const dry = await importing(url, folder, 'second.csv', '--dry-run');
      assert.match(dry.stdout, /^4 rows read: 3 imported, 0 already there, 1 refused\.$/m);
      const first = await importing(url, folder, 'first.csv');
      assert.equal(
        first.stderr,
        'first.csv: CSV, ids kept, title from "title", author from "author", year from "year"\n',
      );
      assert.equal(first.code, 0);
      const second = await importing(url, folder, 'second.csv');
      assert.equal(second.code, 1);
      assert.deepEqual(second.stderr.split('\n').slice(1, 3), [
        'second.csv:3: id "900" belongs to another book: "Beowulf"',
        'second.csv:5: id "8" belongs to another book: "a"',
      ]);
      assert.match(second.stdout, /^4 rows read: 1 imported, 1 already there, 2 refused\.$/m);
      assert.match(
        second.stdout,
        /^2 rows have ids that belong to other books: --ids new gives them new ones\.$/m,
      );
      assert.equal(
        readFileSync(join(folder, 'second.rejects.csv'), 'utf8'),
        'id,title,author,year,refused\n900,"Grendel","",1971,"id: belongs to another book: ""Beowulf"""\n8,"b","",0,"id: belongs to another book: ""a"""\n',
      );
      const again = await importing(url, folder, 'second.rejects.csv', '--ids', 'new');
      assert.equal(again.code, 0);
      assert.deepEqual(await booksOf(url), [
        { id: 7, title: 'Emma', author: 'Jane Austen', year: 1815 },
        { id: 8, title: 'a', author: '', year: 0 },
        { id: 900, title: 'Beowulf', author: '', year: 1000 },
        { id: 901, title: 'Grendel', author: '', year: 1971 },
        { id: 902, title: 'b', author: '', year: 0 },
      ]);
    });

    test("rows that an operator's trigger skips are not counted: nothing is stored with them", async () => {
      const url = await freshUrl();
      await fill(url, []);
      if (name === 'SQLite') {
        const skip = 'before insert on books when new.year = 0 begin select raise(ignore); end';
        await executeOn(url, `create trigger skip ${skip}`);
      } else {
        await executeOn(
          url,
          `create function skip() returns trigger language plpgsql as $$ begin return null; end $$;
           create trigger skip before insert on books for each row when (new.year = 0) execute function skip()`,
        );
      }
      const folder = folderWith({
        'new.csv': 'title,author,year\nEmma,Jane Austen,1815\nBeowulf,,0\n',
        'kept.csv': 'id,title,author,year\n7,Emma,Jane Austen,1815\n8,Beowulf,,0\n',
        'many.csv': `title\n${'Beowulf\n'.repeat(100)}`,
      });
      for (const args of [
        ['new.csv'],
        ['new.csv', '--on-duplicate', 'add'],
        ['kept.csv'],
        ...(name === 'SQLite' ? [['many.csv', '--on-duplicate', 'add']] : []), // whose statements store many
      ]) {
        const { code, stdout, stderr } = await importing(url, folder, ...args);
        assert.equal(code, 1);
        assert.match(stdout, /^\d+ rows? read: 0 imported, 0 refused\.\n/);
        assert.match(stderr, /: a trigger has skipped (1 of 2|100 of 100) books\. [^\n]+\n$/);
      }
      assert.equal(await countOf(url), 0);
      const source = await SQLITE.freshUrl();
      await fill(source, [{ id: 1, title: 'Beowulf', author: '', year: 0 }]);
      const copied = await runCommand(['copy', source, url], {});
      assert.deepEqual(copied, refusedWith('Nothing was copied: a trigger has skipped 1 of 1 books.'));
    });

    test('beside a running service, both complete their work; rule 12: it then gives ids after those that were kept', async (context) => {
      const url = await freshUrl();
      const service = await startTestService(url);
      context.after(() => service.stop());
      const { stdin, ended } = startImport(url, '--on-duplicate', 'add');
      const rows = manyRows(2000);
      stdin.write(rows.slice(0, rows.length / 2));
      await waitUntil(async () => (await service.client.list()).length > 0, ended);
      const { id } = await service.client.create({ title: 'between two rows' });
      stdin.end(rows.slice(rows.length / 2));
      const { code, stdout } = await ended;
      assert.deepEqual([code, stdout], [0, '2000 rows read: 2000 imported, 0 already there, 0 refused.\n']);
      const books = await service.client.list();
      assert.equal(books.length, 2001);
      assert.ok((books.at(-1)?.id as number) > id);
      const folder = folderWith({ 'export.csv': 'id,title,author,year\n7000,"a","",0\n9000,"b","",0\n' });
      assert.equal((await importing(url, folder, 'export.csv')).code, 0);
      assert.equal((await service.client.create({})).id, 9001);
    });
  });
}

describe('import', () => {
  test('each row is compared with all books and with all rows before it, however many there are', async () => {
    const url = await SQLITE.freshUrl();
    await fill(url, []);
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
    const [found] = await executeOn(
      url,
      'select count(*) as books, count(distinct title) as titles from books',
    );
    assert.deepEqual({ ...found }, { books: 34_001, titles: 34_001 });
    const stored = (await booksOf(url)).slice(24_000).map(({ title }) => `${title}\n`);
    assert.deepEqual(stored, [...rows.filter((row) => Number(row.slice(1)) > 24_000), 't40000\n']);
  });

  test('each rejected row is reported with line, column, value and reason, and can be corrected', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({
      'books.csv': 'name;writer;when\nA;B;MCMXC\n"two\nlines";B;1990\nA;B\nC;\u001b[31mD;1\u202e9x\n',
    });
    const columns = ['--author', 'writer', '--year', 'when'];
    const { code, stdout, stderr } = await importing(url, folder, 'books.csv', ...columns);
    assert.equal(code, 1);
    const [how, ...refused] = stderr.trimEnd().split('\n');
    assert.equal(how, 'books.csv: CSV, title from "name", author from "writer", year from "when"');
    assert.deepEqual(refused, [
      'books.csv:2: when "MCMXC" is not an unambiguous year',
      'books.csv:5: has 2 fields, the header has 3',
      'books.csv:6: when "1\\u202e9x" is not an unambiguous year',
    ]);
    assert.equal(
      stdout,
      '4 rows read: 1 imported, 0 already there, 3 refused.\n' +
        '3 rejected rows written to books.rejects.csv: fix them there and import that file.\n',
    );
    const rejects = join(folder, 'books.rejects.csv');
    const corrected = readFileSync(rejects, 'utf8').replace('MCMXC', '1990').replace('A;B;"', 'A;B;1991;"');
    writeFileSync(rejects, corrected.replace('1\u202e9x', '1999'));
    const again = await importing(url, folder, 'books.rejects.csv', ...columns, '--rejects', 'rest.csv');
    assert.deepEqual(
      [again.code, again.stdout],
      [0, '3 rows read: 3 imported, 0 already there, 0 refused.\n'],
    );
    assert.equal(existsSync(join(folder, 'rest.csv')), false);
    assert.deepEqual(
      (await booksOf(url)).map(({ title, author, year }) => [title, author, year]),
      [
        ['two\nlines', 'B', 1990],
        ['A', 'B', 1990],
        ['A', 'B', 1991],
        ['C', '\u001b[31mD', 1999],
      ],
    );
  });

  test('a dry run writes rejected rows to the file of --rejects, and to none without it', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({ 'books.csv': 'title,author,year\nEmma,Jane Austen,1815\nDune,,MCM\n' });
    const said =
      'Dry run: nothing was stored. Without --dry-run:\n2 rows read: 1 imported, 0 already there, 1 refused.\n';
    assert.equal((await importing(url, folder, 'books.csv', '--dry-run')).stdout, said);
    assert.deepEqual(readdirSync(folder), ['books.csv']);
    const named = await importing(url, folder, 'books.csv', '--dry-run', '--rejects', 'wrong.csv');
    assert.deepEqual([named.code, named.stdout], [1, `${said}1 rejected row written to wrong.csv.\n`]);
    assert.equal(
      readFileSync(join(folder, 'wrong.csv'), 'utf8'),
      'title,author,year,refused\nDune,,MCM,"year: is not an unambiguous year"\n',
    );
  });

  const DUNE = '{"year":"MCM","title":"Dune","id":20}';
  const ISBN = '{"title":"Emma","isbn":"978"}\n';
  const AGAIN: readonly (readonly [content: string, rejects: string, options: string, advice: string])[] = [
    ['sep=|\ntitle|year\nDune|MCM\n', 'csv', '', ''],
    ['title|year\nDune|MCM\n', 'csv', '--delimiter |', ''],
    ['[{"title":"Dune","year":"MCM"}]', 'json', '--format json', ''],
    ['{"title":"Dune","year":"MCM"}\n', 'jsonl', '--format jsonl', ''],
    ['id,title,author,year,isbn\n20,Dune,,MCM,978', 'csv', '--ids keep', '--ids keep'],
    ['id,title,author,year\n20,Dune,,MCM', 'csv', '--ids keep', ''],
    ['id,title,author,year\n20,Dune,,MCM', 'csv', '--ids new', '--ids new'],
    ['id,title,author,year,isbn\n20,Dune,,MCM,978', 'csv', '--ids new', ''],
    // Without the others, a row of JSON may be one of an export.
    [`{"id":30,"title":"Emma","author":"x","year":1965}\n${DUNE}\n`, 'jsonl', '', '--ids keep'],
    [`${ISBN.replace('}', ',"id":7}')}${DUNE}\n`, 'jsonl', '', '--ids new'],
    [`${ISBN.repeat(5000)}${DUNE}\n`, 'jsonl', '', '--ids new'],
    [`${ISBN}{"title":"Dune","year":"MCM"}\n`, 'jsonl', '', ''],
  ];
  test('rejected rows can be imported again with the same options, or those that the report names', async () => {
    for (const [content, ending, options, advice] of AGAIN) {
      const url = await SQLITE.freshUrl();
      const folder = folderWith({ books: content });
      const first = await importing(url, folder, 'books', ...options.split(' ').filter(Boolean));
      const named = `books.rejects.${ending}: fix it there and import that file${advice && ` with ${advice}`}.\n`;
      assert.ok(first.stdout.includes(`1 rejected row written to ${named}`), first.stdout);
      const path = join(folder, `books.rejects.${ending}`);
      writeFileSync(path, readFileSync(path, 'utf8').replace('MCM', '1965'));
      const again = (advice || options).split(' ').filter(Boolean);
      const { code, stdout } = await importing(url, folder, basename(path), ...again);
      assert.deepEqual([code, /^1 row read: 1 imported, /.test(stdout)], [0, true], stdout);
      const dune = (await booksOf(url)).find(({ title }) => title === 'Dune');
      assert.deepEqual([dune?.year, dune?.id === 20], [1965, /keep/.test(`${advice}${options}`)], content);
    }
  });

  test('the report names later columns, and years that are probably dates', async () => {
    const url = await SQLITE.freshUrl();
    const early = Array.from({ length: 3000 }, (_, index) => `{"title":"undated manuscript ${index}"}\n`);
    const folder = folderWith({
      'books.jsonl': `${early.join('')}{"title":"Emma","author":"a","year":18151223}\n`,
    });
    const { code, stdout, stderr } = await importing(url, folder, 'books.jsonl');
    assert.equal(
      stderr,
      'books.jsonl: JSON Lines, title from "title", no author, no year\n' +
        'books.jsonl: later rows have more columns: JSON Lines, title from "title", author from "author", year from "year"\n',
    );
    assert.equal(code, 0);
    assert.equal(
      stdout,
      '3001 rows read: 3001 imported, 0 already there, 0 refused.\n' +
        '3000 without an author: stored as "".\n3000 without a year: stored as 0.\n' +
        '1 book has a year after 2100: are these dates? --year names another column.\n',
    );
  });

  test('--on-duplicate add stores existing books again', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({ 'books.csv': SAMPLE });
    for (const count of [5, 10]) {
      const { stdout } = await importing(url, folder, 'books.csv', '--on-duplicate', 'add');
      assert.match(stdout, /^5 rows read: 5 imported, 0 already there, 0 refused\.\n/);
      assert.equal(await countOf(url), count);
    }
  });

  test('a pipe is read like a file; at a terminal, it says how to end the input', async () => {
    const url = await SQLITE.freshUrl();
    const rows = '{"title":"Emma","author":["Jane Austen","Another"],"year":1815}\n{"title":7}\n';
    for (const [isTTY, said] of [
      [false, /^stdin: JSON Lines, title from "title", [^\n]+\nstdin:2: title "7" is not a string\n$/],
      [true, /^Reading from the terminal: end with Ctrl-D on an empty line\.\nstdin: JSON Lines, /],
    ] as const) {
      if (isTTY && HERE_ONLY) continue;
      const stdin = Object.assign(Readable.from([Buffer.from(rows)]), { isTTY });
      const [env, folder] = [{ DB_URL: url }, temporaryFolder()];
      const { code, stdout, stderr } = await runCommand(['import', '-'], env, folder, undefined, stdin);
      assert.equal(code, 1);
      assert.match(
        stdout,
        /^1 rejected row written to rejects\.jsonl: fix it there and import that file\.$/m,
      );
      assert.match(stderr, said);
    }
    assert.equal((await booksOf(url))[0]?.author, 'Jane Austen, Another');
  });

  const FILES = {
    'empty.csv': '',
    'header.csv': 'title,author\n',
    'refused.csv': 'title,year\na,b\nc,d\n',
    'latin.csv': Buffer.from('title\nCaf\xe9\n', 'latin1'),
    'wrong.csv': 'subject,price\na,1\n',
    'books.csv': SAMPLE,
    'export.csv': 'id,title,author,year\n1,"a","",0\n',
  };
  const REFUSALS: readonly (readonly [args: string[], code: number, sentence: RegExp])[] = [
    [['missing.csv'], 1, /^missing\.csv cannot be read: there is no such file\.\n$/],
    [['.'], 1, /^\. cannot be read: it is a folder\.\n$/],
    [['empty.csv'], 1, /^empty\.csv: The file is empty[^\n]+\n$/],
    [['header.csv'], 1, /\nNothing was imported: header\.csv has no rows\.\n$/],
    [['refused.csv'], 1, /\nNothing was imported: every row was rejected\.\n$/],
    [['latin.csv'], 1, /\nlatin\.csv: Line 2 is not UTF-8 text: [^\n]+--encoding windows-1252\.\n$/],
    [['wrong.csv'], 1, /^wrong\.csv: There is no column for the title; [^\n]+ subject, price\.\n$/],
    [['books.csv', '--year', 'no'], 1, /^books\.csv: There is no column "no" for the year: [^\n]+\n$/],
    [['books.csv', '--on-duplicate', 'no'], 2, /^--on-duplicate must be one of skip, add, not "no"\.\n$/],
    [['books.csv', '--format', 'xml'], 2, /^--format must be one of csv, json, jsonl, not "xml"\.\n$/],
    [['books.csv', '--encoding', 'klingon'], 2, /^There is no encoding "klingon": [^\n]+\n$/],
    [['books.csv', '--delimiter', 'ab'], 2, /^The delimiter must be one character [^\n]+\n$/],
    [[], 2, /^import needs FILE\. [^\n]+\n$/],
    [['export.csv', '--on-duplicate', 'add'], 2, /^The ids of the file are kept[^\n]+ needs --ids new\.\n$/],
    [['refused.csv', '--rejects', 'none/a.csv'], 1, /\nThere is no folder none for rejected rows\.\n$/],
    [
      ['refused.csv', '--rejects', 'books.csv/a'],
      1,
      /\nRejected rows cannot be written to .+ another file\.\n$/,
    ],
    [['refused.csv', '--rejects', '-'], 2, /^--rejects names a file, which - is not\.\n$/],
  ];
  test('an impossible import is refused in one sentence, and stores nothing', async () => {
    const folder = folderWith(FILES);
    for (const [args, code, sentence] of REFUSALS) {
      const url = await SQLITE.freshUrl();
      const outcome = await importing(url, folder, ...args);
      assert.match(outcome.stderr, sentence);
      assert.deepEqual([outcome.code, await countOf(url)], [code, 0], args.join(' '));
    }
    const latin = await importing(await SQLITE.freshUrl(), folder, 'latin.csv', '--encoding', 'windows-1252');
    assert.equal(latin.code, 0);
  });

  test('if a file breaks off, the rows before that are imported', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({ 'books.json': '[{"title":"a"},\n{"title":"b"},\n{"title":' });
    const { code, stdout, stderr } = await importing(url, folder, 'books.json');
    assert.equal(code, 1);
    assert.match(stdout, /^2 rows read: 2 imported, /);
    assert.match(
      stderr,
      /\nbooks\.json: The array is incomplete: [^\n]+ Everything before that is imported\.\n$/,
    );
    assert.equal(await countOf(url), 2);
  });
});
