// `import`, which stores the books of a file: what it prints, what is stored, and that nothing is lost or stored twice,
// whatever interrupts it.

import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { booksOf, countOf, fill } from '../support/books.ts';
import { HERE_ONLY, refusedWith, runCommand } from '../support/command.ts';
import {
  endOf,
  fileOf,
  OPEN_FILES_HIDDEN,
  SQLITE,
  STORES,
  spawnService,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
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
  describe(`import into ${name}`, { concurrency: 4 }, () => {
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

    test('each row is compared with all books and with all rows before it, however many there are', async () => {
      const url = await freshUrl();
      const book = (number: number) => ({
        title: `t${number % 200}`,
        author: `a${Math.floor(number / 200)}`,
        year: number % 50,
      });
      // More books than one step of the comparison on SQLite has; some rows equal books of the first step, some later ones.
      const before = Array.from({ length: 24_000 }, (_, index) => book(48_000 - index * 2));
      await fill(
        url,
        before.map((fields, index) => ({ id: 3 * index + 1, ...fields })),
      );
      const rows = Array.from({ length: 20_000 }, (_, index) => book(6000 + ((index * 7) % 16_000)));
      const file = rows.map(({ title, author, year }) => `${title},${author},${year}\n`).join('');
      const folder = folderWith({ 'books.csv': `title,author,year\n${file}` });
      const known = new Set(before.map((row) => JSON.stringify(row)));
      const expected = rows.filter((row) => {
        const text = JSON.stringify(row);
        return !known.has(text) && known.add(text);
      });
      const summary = `20000 rows read: ${expected.length} imported, ${20_000 - expected.length} already there, 0 refused.`;
      for (const args of [['--dry-run'], []]) {
        const { code, stdout } = await importing(url, folder, 'books.csv', ...args);
        assert.equal(code, 0);
        assert.ok(stdout.split('\n').includes(summary), stdout);
      }
      const stored = (await booksOf(url)).slice(before.length);
      assert.deepEqual(
        stored.map(({ title, author, year }) => ({ title, author, year })),
        expected,
      );
    });

    test('a dry run prints the same, and stores nothing', async () => {
      const url = await freshUrl();
      const folder = folderWith({ 'books.csv': `${SAMPLE}A,B,MCMXC\n` });
      for (const [before, summary] of [
        ['', '6 rows read: 4 imported, 1 already there, 1 refused.\n'],
        ['title\nBeowulf\n', '6 rows read: 4 imported, 1 already there, 1 refused.\n'],
        [
          'title,author,year\nEmma,Jane Austen,1815\n',
          '6 rows read: 3 imported, 2 already there, 1 refused.\n',
        ],
      ] as const) {
        writeFileSync(join(folder, 'before.csv'), before);
        if (before !== '') await importing(url, folder, 'before.csv');
        const books = before === '' ? [] : await booksOf(url);
        const { code, stdout } = await importing(url, folder, 'books.csv', '--dry-run');
        assert.equal(code, 1);
        assert.ok(stdout.startsWith(`Dry run: nothing was stored. Without --dry-run:\n${summary}`), stdout);
        assert.deepEqual(before === '' ? [] : await booksOf(url), books);
      }
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
        ['many.csv', '--on-duplicate', 'add'],
      ]) {
        const { code, stdout, stderr } = await importing(url, folder, ...args);
        assert.equal(code, 1);
        assert.match(stdout, /^\d+ rows? read: 0 imported, 0 refused\.\n/);
        assert.match(stderr, /: a trigger has skipped (1 of 2|100 of 100) books\. [^\n]+\n$/);
        assert.equal(await countOf(url), 0, args.join(' '));
      }
      const source = await SQLITE.freshUrl();
      await fill(source, [{ id: 1, title: 'Beowulf', author: '', year: 0 }]);
      const copied = await runCommand(['copy', source, url], {});
      assert.deepEqual(copied, refusedWith('Nothing was copied: a trigger has skipped 1 of 1 books.'));
    });

    test('rule 12: a running service then gives ids after those that were kept', async (context) => {
      const url = await freshUrl();
      const service = await startTestService(url);
      context.after(() => service.stop());
      const folder = folderWith({ 'export.csv': 'id,title,author,year\n7,"a","",0\n900,"b","",0\n' });
      assert.equal((await importing(url, folder, 'export.csv')).code, 0);
      assert.equal((await service.client.create({})).id, 901);
    });
  });
}

describe('import', { concurrency: 4 }, () => {
  test('each rejected row is reported with line, column, value and reason, and can be corrected', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({
      'books.csv': 'name;writer;when\nA;B;MCMXC\n"two\nlines";B;1990\nA;B\nC;\u001b[31mD;1\u202e9x\n',
    });
    const { code, stdout, stderr } = await importing(
      url,
      folder,
      'books.csv',
      ...['--author', 'writer', '--year', 'when'],
    );
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
    const options = ['--author', 'writer', '--year', 'when', '--rejects', join(folder, 'rest.csv')];
    const again = await importing(url, folder, 'books.rejects.csv', ...options);
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

  test('if ids of the file belong to other books, the report names the way out', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({
      'books.csv': SAMPLE,
      'theirs.csv':
        'id,title,author,year\n1,Ulysses,James Joyce,1922\n2,Emma,Jane Austen,1815\n3,Dune,F,MCM\n',
    });
    await importing(url, folder, 'books.csv');
    const advice = '1 row has an id that belongs to another book: --ids new gives it a new one.\n';
    const dry = await importing(url, folder, 'theirs.csv', '--dry-run');
    assert.ok(dry.stdout.endsWith(`: 0 imported, 1 already there, 2 refused.\n${advice}`), dry.stdout);
    const kept = await importing(url, folder, 'theirs.csv');
    assert.equal(kept.code, 1);
    assert.ok(kept.stdout.endsWith(` and import that file.\n${advice}`), kept.stdout);
    const given = await importing(url, folder, 'theirs.csv', '--ids', 'new');
    assert.match(
      given.stdout,
      /^3 rows read: 1 imported, 1 already there, 1 refused\.\n1 rejected row written to [^\n]+\n$/,
    );
    assert.deepEqual((await booksOf(url)).at(-1), {
      id: 5,
      title: 'Ulysses',
      author: 'James Joyce',
      year: 1922,
    });
  });

  test('a dry run writes rejected rows to the file of --rejects, and to none without it', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({ 'books.csv': 'title,author,year\nEmma,Jane Austen,1815\nDune,,MCM\n' });
    const said =
      'Dry run: nothing was stored. Without --dry-run:\n2 rows read: 1 imported, 0 already there, 1 refused.\n';
    const plain = await importing(url, folder, 'books.csv', '--dry-run');
    assert.deepEqual([plain.code, plain.stdout], [1, said]);
    assert.deepEqual(readdirSync(folder), ['books.csv']);
    const named = await importing(url, folder, 'books.csv', '--dry-run', '--rejects', 'wrong.csv');
    assert.deepEqual([named.code, named.stdout], [1, `${said}1 rejected row written to wrong.csv.\n`]);
    assert.equal(
      readFileSync(join(folder, 'wrong.csv'), 'utf8'),
      'title,author,year,refused\nDune,,MCM,"year: is not an unambiguous year"\n',
    );
    const nowhere = await importing(url, folder, 'books.csv', '--dry-run', '--rejects', 'none/wrong.csv');
    assert.equal(nowhere.code, 1);
    assert.match(nowhere.stderr, /\nThere is no folder none for rejected rows\.\n$/);
    assert.equal(await countOf(url), 0);
  });

  test('rejected rows of JSON keep their ids once they are corrected, whatever keys they have', async () => {
    const url = await SQLITE.freshUrl();
    const rows = [
      '{"year":"MCM","title":"Emma","id":20}',
      '{"id":30,"title":"Dune","author":"x","year":1965}',
    ];
    const folder = folderWith({ 'books.jsonl': `${rows.toReversed().join('\n')}\n` });
    const first = await importing(url, folder, 'books.jsonl');
    assert.match(first.stdout, /: fix it there and import that file with --ids keep\.$/m);
    const rejects = join(folder, 'books.rejects.jsonl');
    writeFileSync(rejects, readFileSync(rejects, 'utf8').replace('MCM', '1900'));
    assert.equal((await importing(url, folder, 'books.rejects.jsonl')).code, 0);
    assert.deepEqual(
      (await booksOf(url)).map(({ id, title }) => [id, title]),
      [
        [20, 'Emma'],
        [30, 'Dune'],
      ],
    );
  });

  test('if rejected rows need --ids to be read like the others, the command says so', async () => {
    for (const [header, ids, advice] of [
      ['id,title,author,year,isbn', 'keep', ' with --ids keep'],
      ['id,title,author,year', 'keep', ''],
      ['id,title,author,year', 'new', ' with --ids new'],
      ['id,title,author,year,isbn', 'new', ''],
    ] as const) {
      const row = '20,Emma,Jane Austen,MCM,978'.split(',').slice(0, header.split(',').length).join();
      const folder = folderWith({ 'books.csv': `${header}\n${row}\n` });
      const { stdout } = await importing(await SQLITE.freshUrl(), folder, 'books.csv', '--ids', ids);
      assert.ok(stdout.includes(`: fix it there and import that file${advice}.\n`), stdout);
    }
    const dune = '{"id":20,"title":"Dune","year":"MCM"}\n'; // it could be a row of an export
    for (const [rows, advice] of [
      [`{"id":7,"title":"Emma","isbn":"978"}\n${dune}`, ' with --ids new'],
      [`${'{"title":"Emma","isbn":"978"}\n'.repeat(5000)}${dune}`, ' with --ids new'],
      [`{"title":"Emma","isbn":"978"}\n${dune.replace('"id":20,', '')}`, ''],
    ] as const) {
      const folder = folderWith({ 'books.jsonl': rows });
      const { stdout } = await importing(await SQLITE.freshUrl(), folder, 'books.jsonl');
      assert.ok(stdout.includes(`: fix it there and import that file${advice}.\n`), stdout);
    }
  });

  test('rejected rows can be imported again with the same options, whatever the format', async () => {
    const bar = 'title|author|year\nEmma|Jane Austen|1815\nDune|Frank Herbert|MCM\n';
    const array =
      '[{"title":"Emma","author":"Jane Austen","year":1815},{"title":"Dune","author":"Frank Herbert","year":"MCM"}]';
    for (const [content, rejects, ...options] of [
      [`sep=|\n${bar}`, 'books.rejects.csv'],
      [bar, 'books.rejects.csv', '--delimiter', '|'],
      [array, 'books.rejects.json', '--format', 'json'],
      [array.slice(1, -1).replace('},', '}\n'), 'books.rejects.jsonl', '--format', 'jsonl'],
    ] as const) {
      const url = await SQLITE.freshUrl();
      const folder = folderWith({ books: content });
      const first = await importing(url, folder, 'books', ...options);
      assert.ok(
        first.stdout.endsWith(`1 rejected row written to ${rejects}: fix it there and import that file.\n`),
      );
      const path = join(folder, rejects);
      writeFileSync(path, readFileSync(path, 'utf8').replace('MCM', '1965'));
      const again = await importing(url, folder, rejects, ...options);
      assert.deepEqual(
        [again.code, again.stdout],
        [0, '1 row read: 1 imported, 0 already there, 0 refused.\n'],
      );
      assert.deepEqual(
        (await booksOf(url)).map(({ title, year }) => [title, year]),
        [
          ['Emma', 1815],
          ['Dune', 1965],
        ],
      );
    }
  });

  test('columns that only later objects have are used and reported', async () => {
    const url = await SQLITE.freshUrl();
    const rows = Array.from({ length: 5000 }, (_, index) => `{"title":"undated manuscript ${index}"}\n`);
    const folder = folderWith({
      'books.jsonl': `${rows.join('')}{"title":"Emma","author":"Jane Austen","year":1815}\n`,
    });
    const { code, stdout, stderr } = await importing(url, folder, 'books.jsonl');
    assert.equal(
      stderr,
      'books.jsonl: JSON Lines, title from "title", no author, no year\n' +
        'books.jsonl: later rows have more columns: JSON Lines, title from "title", author from "author", year from "year"\n',
    );
    const lacking = '5000 without an author: stored as "".\n5000 without a year: stored as 0.\n';
    const read = '5001 rows read: 5001 imported, 0 already there, 0 refused.\n';
    assert.deepEqual([code, stdout], [0, read + lacking]);
    assert.deepEqual((await booksOf(url)).at(-1), {
      id: 5001,
      title: 'Emma',
      author: 'Jane Austen',
      year: 1815,
    });
  });

  test('the report counts years that are probably dates', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({ 'books.csv': 'title,year\nEmma,18151223\nDune,1965\n' });
    const { code, stdout } = await importing(url, folder, 'books.csv');
    assert.equal(code, 0);
    assert.match(stdout, /^1 book has a year after 2100: are these dates\? --year names another column\.$/m);
  });

  test('where rejected rows cannot be written, nothing is imported before that is said', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({ 'books.csv': 'title,year\nEmma,1815\nDune,MCM\n' });
    const { code, stderr } = await importing(url, folder, 'books.csv', '--rejects', 'books.csv/rejects.csv');
    assert.equal(code, 1);
    assert.match(
      stderr,
      /Rejected rows cannot be written to books\.csv\/rejects\.csv: [^\n]+ another file\.\n$/,
    );
    assert.equal(await countOf(url), 0);
    assert.equal((await importing(url, folder, 'books.csv', '--rejects', '-')).code, 2);
  });

  test('if the disk fills up, the rejected rows of a JSON array that it holds are still an array', async () => {
    const row = JSON.stringify({ title: 'x'.repeat(1000), year: 'MCM' });
    const folder = folderWith({ 'books.json': `[${Array(6000).fill(row).join()}]` });
    const args = ['import', 'books.json'];
    const child = spawnService({ DB_URL: await SQLITE.freshUrl() }, args, folder, 'ignore', 'ulimit -f 4000');
    const { code, stderr } = await endOf(child);
    assert.equal(code, 1);
    assert.match(stderr, /Rejected rows cannot be written to books\.rejects\.json: EFBIG[^\n]+\n$/);
    const kept = JSON.parse(readFileSync(join(folder, 'books.rejects.json'), 'utf8'));
    assert.ok(kept.length > 1000 && kept.length < 6000, `${kept.length} rows`);
  });

  test('--on-duplicate add stores existing books again, but not if ids are kept', async () => {
    const url = await SQLITE.freshUrl();
    const folder = folderWith({ 'books.csv': SAMPLE, 'export.csv': 'id,title,author,year\n1,"a","",0\n' });
    for (const count of [5, 10]) {
      const { code, stdout } = await importing(url, folder, 'books.csv', '--on-duplicate', 'add');
      assert.equal(code, 0);
      assert.match(stdout, /^5 rows read: 5 imported, 0 already there, 0 refused\.\n/);
      assert.equal(await countOf(url), count);
    }
    const kept = await importing(url, folder, 'export.csv', '--on-duplicate', 'add');
    assert.equal(kept.code, 2);
    assert.match(kept.stderr, /^The ids of the file are kept[^\n]+ needs --ids new\.\n$/);
  });

  test('a pipe is read like a file, JSON Lines like CSV', async () => {
    const url = await SQLITE.freshUrl();
    const child = spawnImport(url, temporaryFolder(), '-');
    child.stdin?.end('{"title":"Emma","author":["Jane Austen","Another"],"year":1815}\n{"title":7}\n');
    const { code, stdout, stderr } = await endOf(child);
    assert.equal(code, 1);
    assert.equal(
      stdout,
      '2 rows read: 1 imported, 0 already there, 1 refused.\n' +
        '1 rejected row written to rejects.jsonl: fix it there and import that file.\n',
    );
    assert.match(
      stderr,
      /^stdin: JSON Lines, title from "title", [^\n]+\nstdin:2: title "7" is not a string\n$/,
    );
    assert.equal((await booksOf(url))[0]?.author, 'Jane Austen, Another');
  });

  test('at a terminal, it says how to end the input', { skip: HERE_ONLY }, async () => {
    const url = await SQLITE.freshUrl();
    const typed = Object.assign(Readable.from([Buffer.from('title\nEmma\n')]), { isTTY: true });
    const { code, stderr } = await runCommand(['import', '-'], { DB_URL: url }, undefined, undefined, typed);
    assert.match(
      stderr,
      /^Reading from the terminal: end with Ctrl-D on an empty line\.\nstdin: CSV, [^\n]+\n$/,
    );
    assert.equal(code, 0);
    assert.equal(await countOf(url), 1);
  });

  test('an impossible import is refused in one sentence, and stores nothing', async () => {
    const folder = folderWith({
      'empty.csv': '',
      'header.csv': 'title,author\n',
      'refused.csv': 'title,year\na,b\nc,d\n',
      'latin.csv': Buffer.from('title\nCaf\xe9\n', 'latin1'),
      'wrong.csv': 'subject,price\na,1\n',
      'books.csv': SAMPLE,
    });
    const cases = [
      [['missing.csv'], 1, /^missing\.csv cannot be read: there is no such file\.\n$/],
      [['.'], 1, /^\. cannot be read: it is a folder\.\n$/],
      [['empty.csv'], 1, /^empty\.csv: The file is empty[^\n]+\n$/],
      [['header.csv'], 1, /\nNothing was imported: header\.csv has no rows\.\n$/],
      [['refused.csv'], 1, /\nNothing was imported: every row was rejected\.\n$/],
      [['latin.csv'], 1, /\nlatin\.csv: Line 2 is not UTF-8 text: [^\n]+--encoding windows-1252\.\n$/],
      [['wrong.csv'], 1, /^wrong\.csv: There is no column for the title; [^\n]+ subject, price\.\n$/],
      [['books.csv', '--year', 'no'], 1, /^books\.csv: There is no column "no" for the year: [^\n]+\n$/],
      [
        ['books.csv', '--on-duplicate', 'perhaps'],
        2,
        /^--on-duplicate must be one of skip, add, not "perhaps"\.\n$/,
      ],
      [['books.csv', '--format', 'xml'], 2, /^--format must be one of csv, json, jsonl, not "xml"\.\n$/],
      [['books.csv', '--encoding', 'klingon'], 2, /^There is no encoding "klingon": [^\n]+\n$/],
      [['books.csv', '--delimiter', 'ab'], 2, /^The delimiter must be one character [^\n]+\n$/],
      [[], 2, /^import needs FILE\. [^\n]+\n$/],
    ] as const;
    for (const [args, code, sentence] of cases) {
      const url = await SQLITE.freshUrl();
      const outcome = await importing(url, folder, ...args);
      assert.match(outcome.stderr, sentence);
      assert.equal(outcome.code, code, args.join(' '));
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

  test('stopped by a signal, it says how to continue', async () => {
    const url = await SQLITE.freshUrl();
    const folder = temporaryFolder();
    const child = spawnImport(url, folder, '-');
    const end = endOf(child);
    child.stdin?.on('error', () => {});
    child.stdin?.write(manyRows(8000).replace('\n', '\nEmma,Jane Austen,MCM\n')); // after the header
    await waitUntil(async () => (await countOf(url)) > 0); // and then it waits for more
    child.kill('SIGINT');
    const { code, stdout, stderr } = await end;
    assert.equal(code, 1);
    assert.match(stdout, /^1 rejected row written to rejects\.csv: fix it there and import that file\.$/m);
    assert.match(
      stderr,
      /\nStopped\. Run the same command again to continue: rows that are already stored are skipped\.\n$/,
    );
    const [, imported] = /^\d+ rows read: (\d+) imported, 1 refused\.\n/.exec(stdout) ?? [];
    assert.equal(Number(imported), await countOf(url));
  });

  test('if the store is replaced meanwhile, nothing more is imported', async () => {
    const url = await SQLITE.freshUrl();
    const folder = temporaryFolder();
    await fill(url, [{ id: 7, title: 'Emma', author: 'Jane Austen', year: 1815 }]);
    copyFileSync(fileOf(url), `${fileOf(url)}.other`);
    const child = spawnImport(url, folder, '-');
    const end = endOf(child);
    child.stdin?.write(manyRows(8000));
    await waitUntil(async () => (await countOf(url)) > 1); // and then it waits for more
    const before = (await countOf(url)) - 1;
    for (const suffix of ['-wal', '-shm']) rmSync(`${fileOf(url)}${suffix}`);
    renameSync(`${fileOf(url)}.other`, fileOf(url));
    child.stdin?.end('another,one,1\n');
    const { code, stdout, stderr } = await end;
    assert.equal(code, 1);
    assert.match(stdout, new RegExp(`^\\d+ rows read: ${before} imported, 0 refused\\.\n`));
    assert.match(
      stderr,
      /^sqlite:\S+: \S+ has been replaced: put it back, or start again with the new one\. Run the same command again to continue: [^\n]+\n$/m,
    );
    assert.equal(await countOf(url), 1);
  });

  test('a signal ends it where a named pipe is silent', async () => {
    const url = await SQLITE.freshUrl();
    const folder = temporaryFolder();
    execFileSync('mkfifo', [join(folder, 'books.csv')]);
    const child = spawnImport(url, folder, 'books.csv');
    const end = endOf(child);
    const writer = openSync(join(folder, 'books.csv'), 'w'); // waits until the import has opened it
    writeSync(writer, manyRows(8000));
    await waitUntil(async () => (await countOf(url)) > 0); // and then it waits for more
    child.kill('SIGINT');
    const { code, stderr } = await end;
    closeSync(writer);
    assert.equal(code, 1);
    assert.match(stderr, /\nStopped\. /);
  });

  test('a signal ends it although nobody reads its messages', async () => {
    for (const [wrong, isReached] of [
      [10_000, async (url: string) => (await countOf(url)) === 1], // it waits with its last messages
      [60_000, async (_: string, folder: string) => readdirSync(folder).length === 2], // or in the middle
    ] as const) {
      const url = await SQLITE.freshUrl();
      const folder = folderWith({ 'books.csv': withWrongRows(wrong) });
      const child = spawnImport(url, folder, 'books.csv');
      const exit = once(child, 'exit');
      await waitUntil(() => isReached(url, folder));
      child.kill('SIGINT');
      assert.deepEqual(await exit, [1, null]);
      for (const output of [child.stdout, child.stderr]) output?.destroy();
    }
  });

  for (const mode of ['skip', 'add']) {
    test(`a dry run has its temporary files beside the store, as an import: ${mode}`, {
      skip: OPEN_FILES_HIDDEN,
    }, async () => {
      const url = await SQLITE.freshUrl();
      await fill(url, []);
      const child = spawnImport(url, temporaryFolder(), '-', '--dry-run', '--on-duplicate', mode);
      const end = endOf(child);
      child.stdin?.on('error', () => {}); // it has ended
      child.stdin?.write(manyRows(120_000)); // more than SQLite holds in memory
      let temporary: string | undefined;
      await waitUntil(() => {
        temporary = openFiles(child).find((path) => basename(path).startsWith('etilqs_'));
        return temporary !== undefined;
      });
      child.kill('SIGTERM');
      await end;
      assert.equal(dirname(String(temporary)), dirname(fileOf(url)));
    });
  }

  test('if there is no room to compare rows, an error names the folder', async () => {
    const long = 'x'.repeat(4000);
    const rows = Array.from({ length: 2000 }, (_, index) => `${long} ${index}\n`);
    const folder = folderWith({ 'books.csv': `title\n${rows.join('')}${rows.join('')}` });
    const args = ['import', '--dry-run', 'books.csv'];
    const child = spawnService({ DB_URL: await SQLITE.freshUrl() }, args, folder, 'ignore', 'ulimit -f 100');
    const { code, stderr } = await endOf(child);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /\nThe temporary file [^\n]+ cannot be written: [^\n]+ Set SQLITE_TMPDIR to use another folder\.\n$/,
    );
  });
});

/** The paths of the files that a process has open, or had a moment ago. */
function openFiles({ pid }: ChildProcess): string[] {
  return readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return ''; // it is closed by now
    }
  });
}

function folderWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = temporaryFolder();
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

function manyRows(count: number): string {
  const rows = Array.from(
    { length: count },
    (_, index) => `"A book of number ${index}",Author ${index % 100},${index % 2000}\n`,
  );
  return `title,author,year\n${rows.join('')}`;
}

/** Rows of which all but the last are rejected. */
function withWrongRows(count: number): string {
  return `title,author,year\n${'Emma,Jane Austen,MM\n'.repeat(count)}The last one,,2000\n`;
}

function spawnImport(url: string, folder: string, ...args: string[]): ChildProcess {
  return spawnService({ DB_URL: url }, ['import', ...args], folder, args[0] === '-' ? 'pipe' : 'ignore');
}

/** Runs an import; checks the store that its output names, and removes it from the output. */
async function importing(url: string, folder: string, ...args: string[]) {
  const ended = await runCommand(['import', ...args], { DB_URL: url }, folder);
  const { host, pathname } = new URL(url);
  const store = url.startsWith('sqlite:') ? url : `postgres://${host}${pathname}`;
  const stderr = ended.stderr.replace(/; into (.+)$/m, (_, named: string) => {
    assert.equal(named, store);
    return '';
  });
  return { ...ended, stderr };
}
