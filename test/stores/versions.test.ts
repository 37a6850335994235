// SQLite files that another version of the service has made, or another program: they open with all their books, or they are
// refused in one sentence and stay as they were.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { readDbUrl } from '../../src/stores/open.ts';
import { openForWriting } from '../../src/stores/sqlite/structure.ts';
import { TIMES } from '../../src/times.ts';
import { runCommand } from '../support/command.ts';
import { fileOf, SQLITE, startTestService, temporaryFolder } from '../support/service.ts';
import { timesWith } from '../support/times.ts';

/** Of a service that stops at once. */
const AT_ONCE = timesWith({ service: { lastRequest: 0 } });

/** The structure that this version makes. */
const VERSION = 2;

const OF_1_0 = `
  create table books (
    id integer primary key autoincrement check (id between 1 and 9007199254740991),
    title text not null default '', author text not null default '', year integer not null default 0
  ) strict;`;

const KEYS = `
  create table book_requests (
    key text primary key, fingerprint text not null, ids text not null, made_at integer not null
  ) strict;
  create index book_requests_made_at on book_requests (made_at);`;

/** With these, builds before version 1.1 checked a table of 1.0. */
const TRIGGERS = ['insert', 'update']
  .map(
    (event) => `
      create trigger books_on_${event} before ${event} on books
        when new.title is null or new.author is null
          or coalesce(not new.year between -9007199254740991 and 9007199254740991, true)
      begin select raise(abort, 'a book needs a title, an author, and a year within 9007199254740991'); end;`,
  )
  .join('');

/** SQL that makes each. Their books are 1 and 3; book 5 has been removed. */
const OLDER = {
  'version 1.0': OF_1_0,
  'a build before version 1.1': `
    create table books (
      id integer primary key autoincrement check (id between 1 and 9007199254740991),
      title text not null default '',author text not null default '',year integer not null default 0 check (year between -9007199254740991 and 9007199254740991)
    ) strict; ${KEYS}`,
  'version 1.0, then a build before version 1.1': `${OF_1_0} ${KEYS} ${TRIGGERS}`,
  'another program':
    'create table `books` (`id` integer PRIMARY KEY AUTOINCREMENT,`title` text,`author` text,`year` integer);',
  'another program, with other columns': `
    create table books (
      year INTEGER, isbn text, id integer not null primary key autoincrement, title text not null default '', place text not null default 'here'
    );
    create index books_by_isbn on books (isbn);
    pragma user_version = 1;`,
};

for (const [origin, sql] of Object.entries(OLDER)) {
  test(`rule 27: a file of ${origin} opens with its books, gives no id again, and accepts only books`, async (context) => {
    const { dbUrl, db } = await fileWith(context, sql);
    db.exec(`
      insert into books (id, title, year) values (1, 'Emma', 1815), (3, '', -750), (5, 'removed', 0);
      update books set year = 0 where id = 5; delete from books where id = 5`);
    const books = [
      { id: 1, title: 'Emma', author: '', year: 1815 },
      { id: 3, title: '', author: '', year: -750 },
    ];
    for (const id of [6, 7]) {
      const { client, stop } = await startTestService(dbUrl, {}, undefined, AT_ONCE);
      try {
        assert.deepEqual(await client.list(), books);
        const body = { title: `start ${id}`, author: 'somebody', year: -9007199254740991 };
        books.push(await client.create(body));
        assert.deepEqual(books.at(-1), { id, ...body });
        const [first] = books;
        assert.ok(first);
        first.author = `author ${id}`;
        const { data } = await client.request('PUT', '/book/1', { body: { author: first.author } });
        assert.deepEqual(data, first);
        assert.deepEqual(await client.list(), books);
        assertOnlyBooks(db);
      } finally {
        await stop();
      }
      assert.equal(versionOf(db), VERSION);
    }
    const triggers = "select name from sqlite_schema where type = 'trigger' and name like 'books%'";
    assert.deepEqual(db.prepare(triggers).all(), []);
  });
}

test('rule I2: a key of a build before version 1.1 is known', async (context) => {
  const { dbUrl, db } = await fileWith(context, OLDER['version 1.0, then a build before version 1.1']);
  const headers = { 'idempotency-key': 'before 1.1' };
  const call = () =>
    startTestService(dbUrl, {}, undefined, AT_ONCE).then(async ({ client, stop }) => {
      const answer = await client.request('POST', '/book', { body: { title: 'once' }, headers });
      await stop();
      return answer;
    });
  const { data } = await call();
  db.exec('pragma user_version = 0');
  assert.deepEqual((await call()).data, data);
});

const FOREIGN = 'its table "books" does not belong to this service';
const faulty = (id: number) => `its book ${id} has an invalid id, text or number: correct it`;
const NEWER = `${OLDER['a build before version 1.1']} pragma user_version = ${VERSION + 1}`;
const IS_NEWER =
  'its structure (version 3) is unknown to this version of the service: start a newer one, or restore a backup from before the upgrade';

/** A table of books with ids, and other columns. */
const withIds = (columns: string) => `create table books (id integer primary key autoincrement, ${columns});`;

/** The reason of each refusal, and SQL that makes the file. */
const REFUSED: readonly (readonly [fault: string, reason: string, sql: string])[] = [
  [
    'ids can be given again',
    FOREIGN,
    'create table books (id integer primary key, title text, author text, year integer)',
  ],
  [
    'the ids have another name',
    FOREIGN,
    'create table books (nr integer primary key autoincrement, id integer, title text)',
  ],
  [
    'the ids are texts',
    FOREIGN,
    'create table books (id text primary key, title text, author text, year integer)',
  ],
  ['there is no id', FOREIGN, 'create table books (isbn integer primary key autoincrement, title text)'],
  ['years are texts', FOREIGN, withIds('title text, author text, year text')],
  [
    'years are texts that are numbers',
    FOREIGN,
    `${withIds('year text')} insert into books (year) values ('1815')`,
  ],
  ['each book needs an ISBN', FOREIGN, withIds('title text, isbn text not null')],
  [
    'it is a view',
    FOREIGN,
    'create table papers (id integer primary key autoincrement); create view books as select * from papers',
  ],
  ...['1764000000000000000', '-9007199254740992', "'MVIII'", '1999.5', "x'00'"].map((year) => {
    const sql = `${withIds('title text, year integer')} insert into books (year) values (null), (${year})`;
    return [`a book has the year ${year}`, faulty(2), sql] as const;
  }),
  [
    'a year of version 1.0 is too large',
    faulty(1),
    `${OF_1_0} insert into books (year) values (1764000000000000000)`,
  ],
  [
    'a text of version 1.0 has a NUL',
    faulty(2),
    `${OF_1_0} insert into books (title) values (''), ('nul' || char(0) || 'x')`,
  ],
  [
    'a text of another program is not UTF-8',
    faulty(3),
    `${OLDER['another program']} insert into books (title) values ('é'), (null), (cast(x'436166e9' as text))`,
  ],
  [
    'a text of a build before version 1.1 has half a character of UTF-16',
    faulty(1),
    `${OLDER['a build before version 1.1']} insert into books (author) values (cast(x'eda080' as text))`,
  ],
  ['the id of a book is negative', faulty(-1), `${withIds('title text')} insert into books (id) values (-1)`],
  ['it is of a newer version', IS_NEWER, NEWER],
];

for (const [fault, reason, sql] of REFUSED) {
  test(`rule 27: a file is refused in one sentence, and has the same content afterwards: ${fault}`, async (context) => {
    const { dbUrl, db } = await fileWith(context, sql);
    const before = contentOf(db);
    const message = `DB_URL: ${dbUrl} cannot be opened: ${reason}.`;
    await assert.rejects(startTestService(dbUrl), { message });
    await assert.rejects((await readDbUrl(dbUrl)).openBulk('write', TIMES), { message });
    assert.deepEqual(contentOf(db), before);
  });
}

test('rule 27: no command reads or changes a file of a newer version', async (context) => {
  const { dbUrl, db } = await fileWith(context, NEWER);
  db.close();
  const [file, folder] = [fileOf(dbUrl), temporaryFolder()];
  const bytes = readFileSync(file);
  for (const [line, DB_URL = dbUrl] of [
    ['serve'],
    [`import ${join(import.meta.dirname, '../../src/demo/books.csv')}`],
    [`export ${folder}/export.csv`],
    [`backup ${folder}/backup.db`],
    [`restore ${file}`, `sqlite:${folder}/restored.db`],
  ] as const) {
    const { code, stdout, stderr } = await runCommand(line.split(' '), { DB_URL, PORT: '0' });
    assert.deepEqual([code, stdout, stderr.endsWith(`${IS_NEWER}.\n`)], [1, '', true], stderr);
  }
  assert.deepEqual(readdirSync(folder), []);
  assert.deepEqual(readFileSync(file), bytes);
});

test('rule 27: a start that waits for another process does not block its own process', async (context) => {
  const { dbUrl, db } = await fileWith(context, OF_1_0);
  db.exec('begin immediate');
  const opening = openForWriting(fileOf(dbUrl), { ...TIMES.sqlite, busy: 10_000 });
  await setImmediate();
  db.exec('rollback');
  (await opening).close();
});

for (const [fault, sql] of [
  ['text that is not UTF-8', "update books set title = cast(x'436166e9' as text) where id = 2"],
  [
    'text with bytes of two fields that would be a letter together',
    "update books set title = cast(x'c3' as text), author = cast(x'a9' as text) where id = 2",
  ],
  [
    'year beyond all checks',
    'pragma ignore_check_constraints = on; update books set year = 9007199254740993 where id = 2',
  ],
  [
    'NUL beyond all checks',
    'pragma ignore_check_constraints = on; update books set author = char(0) where id = 2',
  ],
] as const) {
  test(`rule 4: a row that is no book is named by export, copy and backup: ${fault}`, async (context) => {
    const { dbUrl, db } = await fileWith(context, '');
    const { client, stop } = await startTestService(dbUrl, {}, undefined, AT_ONCE);
    for (const title of ['A', 'B', 'C']) await client.create({ title });
    await stop();
    db.exec(sql);
    const folder = temporaryFolder();
    for (const line of [
      `export ${folder}/a.csv`,
      `export ${folder}/a.json`,
      `copy ${dbUrl} sqlite:${folder}/copy.db`,
      `backup ${folder}/backup.db`,
    ]) {
      const { code, stdout, stderr } = await runCommand(line.split(' '), { DB_URL: dbUrl });
      assert.deepEqual([code, stdout, stderr.endsWith(`: ${faulty(2)}.\n`)], [1, '', true], stderr);
    }
    assert.deepEqual(
      readdirSync(folder).filter((name) => !name.startsWith('copy.db')),
      [],
    );
  });
}

test('a row that is no book is refused to other programs', async (context) => {
  const { dbUrl, db } = await fileWith(context, '');
  const { client } = await startTestService(dbUrl);
  const book = await client.create({ title: 'before' });
  assertOnlyBooks(db);
  assert.deepEqual(await client.list(), [book]);
});

/** A new file as another program has it open, until the end of a test. */
async function fileWith(context: TestContext, sql: string): Promise<{ dbUrl: string; db: DatabaseSync }> {
  const dbUrl = await SQLITE.freshUrl();
  const db = new DatabaseSync(fileOf(dbUrl), { timeout: 60_000 });
  context.after(() => db.isOpen && db.close());
  db.exec(sql);
  return { dbUrl, db };
}

function versionOf(db: DatabaseSync): unknown {
  return db.prepare('pragma user_version').get()?.user_version;
}

function contentOf(db: DatabaseSync): unknown[] {
  const books = db.prepare('select * from books');
  books.setReadBigInts(true);
  return [versionOf(db), db.prepare('select * from sqlite_schema').all(), books.all()];
}

/** Inserts and changes rows that are refused. */
function assertOnlyBooks(db: DatabaseSync): void {
  const insert = 'insert into books (title, author, year) values (?, ?, ?)';
  for (const row of [
    ['', '', 1764000000000000000n],
    ['', '', -9007199254740992n],
    ['', '', 'MVIII'],
    [null, '', 0],
    ['', null, 0],
    ['nul\0', '', 0],
    ['', '\0', 0],
    ['', '', null],
  ]) {
    assert.throws(() => db.prepare(insert).run(...row), { code: 'ERR_SQLITE_ERROR' });
    assert.throws(() => db.prepare(`${insert} on conflict do nothing`).run(...row));
  }
  assert.throws(() => db.prepare('update books set year = ?').run(9007199254740992n));
  assert.throws(() => db.prepare('update books set title = ?').run(null));
}
