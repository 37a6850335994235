// Export, and copy from one store to another: in every format, from and to every store; no book is altered. Commands that are
// interrupted are in running.test.ts, killed ones in test/release/power.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';

import promises from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Book } from '../../conformance/service.ts';
import { booksOf, countOf, exportOf, fill, tagOf } from '../support/books.ts';
import { refusedWith, runCommand } from '../support/command.ts';
import { holdHalfWay } from '../support/half-way.ts';
import { command, folderWith, storeWith } from '../support/importing.ts';
import { execute } from '../support/postgres.ts';
import { seed } from '../support/random.ts';
import {
  fileOf,
  POSTGRES,
  SQLITE,
  STORES,
  startTestService,
  temporaryFolder,
  testOnPostgres,
} from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

const BOOKS: readonly Book[] = [
  { id: 2, title: 'Emma', author: 'Jane Austen', year: 1815 },
  { id: 5, title: 'a "quote",\nand a line', author: '', year: -750 },
];
const CSV = exportOf(BOOKS);
const withTag = (book: Book) => `${JSON.stringify({ ...book, etag: `"${tagOf(book)}"` })}\n`;
const JSONL = BOOKS.map(withTag).join('');
const FILES = { 'a.csv': CSV, 'a.json': `[\n${JSONL.trimEnd().replace('\n', ',\n')}\n]\n`, 'a.JSONL': JSONL };

/** Any character but NUL; surrogates are none. */
const CHARACTER = fc
  .integer({ min: 1, max: 0x10_f7ff })
  .map((code) => String.fromCodePoint(code < 0xd800 ? code : code + 0x800));

/** Texts and numbers that no format may change. */
const TEXTS = [
  ...' "\',;\t\r\n\\\ufeff\uffffé📚',
  ...'|""|\r\n|\\n|\\.|\\N|null|NULL|=1+1|[]|{}'.split('|'),
  ...'\u0001\u0002\u001f|\u2028\u2029|e\u0301|吾輩|</script>'.split('|'),
  ...fc.sample(fc.string({ unit: CHARACTER, maxLength: 40 }), { numRuns: 100, seed }),
];
const YEARS = [0, -1, 1, -9_007_199_254_740_991, 9_007_199_254_740_991];
const ODD_BOOKS: readonly Book[] = [
  ...TEXTS.map((title, index) => {
    return { id: 1 + index * 3, title, author: TEXTS.at(-1 - index) ?? '', year: YEARS[index % 5] ?? 0 };
  }),
  { id: 2 ** 52, title: 'the last one', author: '', year: 2000 },
];

for (const { name, freshUrl } of STORES) {
  describe(`export from ${name}`, () => {
    test('has the same bytes in every format; without books it is empty, without a store an error', async () => {
      const [url, folder] = [await freshUrl(), temporaryFolder()];
      const missing = await command('export', url);
      assert.deepEqual([missing.code, missing.stdout], [1, '']);
      assert.match(missing.stderr, /^DB_URL: there is no catalogue at [^\n]+\.\n$/);
      assert.deepEqual(await command('export', url), missing); // it has created none
      await fill(url, []);
      const none = { code: 0, stderr: '0 books exported.\n' };
      assert.deepEqual(await command('export', url), { ...none, stdout: 'id,title,author,year,etag\n' });
      assert.deepEqual(await command('export --format json', url), { ...none, stdout: '[\n]\n' });
      await fill(url, BOOKS);
      const piped = { code: 0, stdout: CSV, stderr: '2 books exported.\n' };
      assert.deepEqual(await command('export', url), piped);
      for (const [file, content] of Object.entries(FILES)) {
        const stderr = `2 books exported to ${file}.\n`;
        assert.deepEqual(await command(`export ${file}`, url, folder), { code: 0, stdout: '', stderr });
        assert.equal(fs.readFileSync(join(folder, file), 'utf8'), content);
      }
      assert.deepEqual(fs.readdirSync(folder).toSorted(), ['a.JSONL', 'a.csv', 'a.json']);
    });

    test('is byte for byte the same after an import', async () => {
      const url = await storeWith(ODD_BOOKS, freshUrl);
      for (const format of ['csv', 'jsonl']) {
        const all = await command(`export --format ${format}`, url);
        const [target, folder] = [await freshUrl(), folderWith({ [`books.${format}`]: all.stdout })];
        assert.equal((await command(`import books.${format}`, target, folder)).code, 0);
        assert.deepEqual(await booksOf(target), ODD_BOOKS);
        assert.deepEqual(await command(`export --format ${format}`, target), all);
      }
    });

    test('of a table of an older version is the same before its first start, and as a copy', async () => {
      const [url, target] = [await freshUrl(), await SQLITE.freshUrl()];
      const [id, year] = name === 'SQLite' ? ['integer', 'integer'] : ['bigserial', 'bigint'];
      const key = `${id} primary key ${name === 'SQLite' ? 'autoincrement' : ''}`;
      const columns = `id ${key}, title text, author text, year ${year}`;
      await executeOn(url, `create table books (${columns})`);
      await executeOn(url, "insert into books values (1, 'Emma', null, 1815), (2, null, 'Somebody', null)");
      const books = [
        { id: 1, title: 'Emma', author: '', year: 1815 },
        { id: 2, title: '', author: 'Somebody', year: 0 },
      ];
      for (const from of [url, target]) {
        if (from === target) assert.equal((await command(`copy ${url} ${target}`)).code, 0);
        const exported = await command('export --format jsonl', from);
        assert.equal(exported.stdout, books.map(withTag).join(''));
      }
    });
  });
}

testOnPostgres('a row that is no book, since somebody has dropped a constraint, is named', async () => {
  const url = await storeWith(BOOKS, POSTGRES.freshUrl);
  const target = await SQLITE.freshUrl();
  await execute(
    url,
    'alter table books drop constraint books_year_check; update books set year = 9007199254740993 where id = 5',
  );
  for (const line of ['export', 'export --format jsonl', `copy ${url} ${target}`]) {
    const { code, stderr } = await command(line, url);
    assert.equal(code, 1);
    assert.match(stderr, /: its book 5 has an invalid id, text or number: correct it\.\n$/);
  }
});

testOnPostgres('texts of a database without an encoding are not taken for UTF-8', async (context) => {
  const url = `${await POSTGRES.freshUrl()}_ascii`;
  const name = new URL(url).pathname.slice(1);
  const server = url.replace(/_ascii$/, '');
  await execute(server, `create database ${name} encoding 'SQL_ASCII' locale 'C' template template0`);
  context.after(() => execute(server, `drop database ${name} with (force)`));
  await execute(url, 'create table books (id bigint primary key, title text, author text, year bigint)');
  const { code, stderr } = await command('export', url);
  assert.deepEqual(
    [code, /: its encoding is SQL_ASCII, so its texts may be in any\.\n$/.test(stderr)],
    [1, true],
    stderr,
  );
});

describe('export', () => {
  const refusals = (store: string) => `
1 a.csv → a.csv already exists: --overwrite replaces it.
1 b.csv --overwrite → b.csv exists and is not a file.
1 none/c.csv → There is no folder none.
1 ${store} --format csv --overwrite → ${store} is the store: choose another file.
2 books.txt → The format must be csv, json, jsonl or xlsx: set --format, or the extension of FILE.
2 --format xml → The format must be csv, json, jsonl or xlsx: set --format, or the extension of FILE.`;
  test('into a file is refused in one sentence where it would replace something, or is called wrongly', async () => {
    const [url, folder] = [await storeWith(BOOKS), folderWith({ 'a.csv': 'mine' })];
    fs.mkdirSync(join(folder, 'b.csv'));
    for (const line of refusals(fileOf(url)).trim().split('\n')) {
      const [, code, words, sentence = ''] = /^(.) (.+) → (.+)$/.exec(line) ?? [];
      assert.deepEqual(await command(`export ${words}`, url, folder), refusedWith(sentence, Number(code)));
    }
    assert.equal(fs.readFileSync(join(folder, 'a.csv'), 'utf8'), 'mine');
    assert.deepEqual(fs.readdirSync(folder).toSorted(), ['a.csv', 'b.csv']);
    assert.equal((await command('export', url)).stdout, CSV);
  });

  test('a file that is replaced keeps its permissions, and its content until the new one is complete', async () => {
    const [url, folder] = [await storeWith(BOOKS), folderWith({ 'a.csv': 'mine' })];
    const [file, args] = [join(folder, 'a.csv'), ['export', 'a.csv', '--overwrite']];
    const stopped = await runCommand(args, { DB_URL: url }, { folder, stop: Promise.resolve() });
    assert.deepEqual(stopped, refusedWith('Nothing was exported: stopped.'));
    assert.equal(fs.readFileSync(file, 'utf8'), 'mine');
    assert.deepEqual(fs.readdirSync(folder), ['a.csv']);
    for (const before of [0o600, 0o660, 0o604, 0o400]) {
      fs.chmodSync(file, before);
      assert.equal((await command(args.join(' '), url, folder)).code, 0);
      assert.equal(fs.readFileSync(file, 'utf8'), CSV);
      assert.equal(fs.statSync(file).mode & 0o777, before | 0o600); // it must be writable, at least for its owner
    }
  });

  test('a file that appears meanwhile is replaced only with --overwrite', async (context) => {
    const [url, folder] = [await storeWith(BOOKS), temporaryFolder()];
    for (const [words, code, content] of [
      ['export a.csv', 1, 'theirs'],
      ['export a.csv --overwrite', 0, CSV],
    ] as const) {
      const held = holdHalfWay(context);
      const ended = command(words, url, folder);
      await held.until(ended);
      fs.writeFileSync(join(folder, 'a.csv'), 'theirs');
      held.release();
      assert.equal((await ended).code, code);
      assert.equal(fs.readFileSync(join(folder, 'a.csv'), 'utf8'), content);
      assert.deepEqual(fs.readdirSync(folder), ['a.csv']);
      fs.rmSync(join(folder, 'a.csv'));
    }
  });

  test('a file is in place if its name cannot be synced', async (context) => {
    const [url, folder] = [await storeWith(BOOKS), temporaryFolder()];
    await using handle = await promises.open(folder);
    const files = Object.getPrototypeOf(handle) as typeof handle;
    const { sync } = files;
    context.mock.method(files, 'sync', async function (this: typeof handle) {
      if ((await this.stat()).ino === fs.statSync(folder).ino) throw new Error('input/output error');
      await sync.call(this);
    });
    const sentence = 'b.csv is complete, but may be lost if the power fails: input/output error.';
    assert.deepEqual(await command('export b.csv', url, folder), refusedWith(sentence));
    assert.equal(fs.readFileSync(join(folder, 'b.csv'), 'utf8'), CSV);
    assert.deepEqual(fs.readdirSync(folder), ['b.csv']);
    context.mock.restoreAll();
  });
});

describe('copy', () => {
  for (const [from, to] of STORES.flatMap((from) => STORES.map((to) => [from, to] as const))) {
    test(`from ${from.name} to ${to.name}, ids included, and new ids follow the old ones`, async () => {
      const [source, target] = [
        await storeWith([...BOOKS, { id: 7, title: 'of the moment', author: '', year: 0 }], from.freshUrl),
        await to.freshUrl(),
      ];
      await executeOn(source, 'delete from books where id = 7');
      const { code, stdout, stderr } = await command(`copy ${source} ${target}`);
      assert.deepEqual([code, stderr], [0, '']);
      const sha256 = createHash('sha256')
        .update(BOOKS.map((book) => `${JSON.stringify(book)}\n`).join(''))
        .digest('hex');
      const verified = `^2 books copied to [^\\n]+, verified \\(sha256 ${sha256}\\)\\.\\n$`;
      assert.match(stdout, new RegExp(verified));
      assert.doesNotMatch(stdout, /password/);
      assert.equal((await command('import a.csv', target, folderWith({ 'a.csv': 'title\nnew\n' }))).code, 0);
      assert.deepEqual(await booksOf(target), [...BOOKS, { id: 8, title: 'new', author: '', year: 0 }]);
    });
  }

  for (const { name, freshUrl } of STORES) {
    test(`while a service runs, over books only with --overwrite, and without the keys of TO, which is ${name}`, async () => {
      const [source, target] = [await storeWith(BOOKS), await freshUrl()];
      const service = await startTestService(target);
      const keyed = { body: { title: 'new' }, headers: { 'idempotency-key': '"key"' } };
      const create = async () => (await service.client.request('POST', '/book', keyed)).data.id;
      assert.deepEqual([await create(), await create()], [1, 1]);
      const refused = refusedWith('TO has 1 book already: --overwrite removes them.');
      assert.deepEqual(await command(`copy ${source} ${target}`), refused);
      assert.equal((await command(`copy ${source} ${target} --overwrite`)).code, 0);
      assert.deepEqual(await service.client.list(), BOOKS);
      assert.equal(await create(), 6); // rule 12; and the key of a book that is gone is not known
      for (const id of [2, 5, 6]) await service.client.request('DELETE', `/book/${id}`);
      assert.equal((await command(`copy ${source} ${target}`)).code, 0);
      assert.equal(await create(), 7); // a store without books may have keys
    });

    test(`a target that alters or drops a book is detected, and nothing is copied to ${name}`, async () => {
      const source = await storeWith(BOOKS);
      for (const change of [
        "update books set title = 'Emmy' where id = 2",
        'delete from books where id = 2',
      ]) {
        const target = await storeWith([], freshUrl);
        const meddling = `trigger meddle after insert on books`;
        if (name === 'SQLite')
          await executeOn(target, `create ${meddling} when new.id = 5 begin ${change}; end`);
        else
          await execute(
            target,
            `create function meddle() returns trigger language plpgsql as $$ begin ${change}; return null; end $$;
             create ${meddling} for each statement execute function meddle()`,
          );
        const sentence = 'Nothing was copied: TO differs from the books that were read.';
        assert.deepEqual(await command(`copy ${source} ${target}`), refusedWith(sentence));
        assert.equal(await countOf(target), 0);
      }
    });
  }

  testOnPostgres('the password comes from PGPASSWORD or ~/.pgpass, also for the service', async (context) => {
    const [source, target] = [await storeWith(BOOKS), new URL(await POSTGRES.freshUrl())];
    const role = `mover${target.pathname.slice(1)}`;
    await execute(target.href, `create role ${role} login password 'only there'`);
    await execute(target.href, `grant create on schema public to ${role}`);
    [target.username, target.password] = [role, ''];
    const line = `${target.hostname}:${target.port}:*:${role}:only there\n`;
    const home = folderWith({ '.pgpass': line });
    fs.chmodSync(join(home, '.pgpass'), 0o600);
    const { HOME } = process.env;
    context.after(() => {
      process.env.HOME = HOME;
      delete process.env.PGPASSWORD;
    });
    for (const [folder, password, code] of [
      ['/nowhere', undefined, 1],
      ['/nowhere', 'another', 1],
      ['/nowhere', 'only there', 0],
      [home, undefined, 0],
    ] as const) {
      process.env.HOME = folder;
      if (password === undefined) delete process.env.PGPASSWORD;
      else process.env.PGPASSWORD = password;
      const ended = await command(`copy ${source} ${target.href} --overwrite`);
      assert.equal(ended.code, code, ended.stderr);
      assert.doesNotMatch(ended.stdout + ended.stderr, /only there/);
    }
    const service = await startTestService(target.href);
    assert.deepEqual(await service.client.list(), BOOKS);
  });

  const wrong = (url: string) => `
2 ${url} ${url} → FROM and TO are the same store.
2 ${url} sqlite://${fileOf(url)} → FROM and TO are the same store.
2 ${url}.link ${url} → FROM and TO are the same store.
2 ${url} books.db → TO must begin with sqlite: or postgres:
2 mysql://u:hidden@h/d ${url} → FROM must begin with sqlite: or postgres:
1 sqlite:nowhere.db sqlite:elsewhere.db → FROM: there is no catalogue at sqlite:nowhere.db.
1 postgres://u:hidden@127.0.0.1:1/d ${url} → FROM: postgres://127.0.0.1:1/d cannot be opened:`;
  test('a wrong operand is refused by name, and no secret is shown', async () => {
    const url = await storeWith(BOOKS);
    fs.symlinkSync(fileOf(url), `${fileOf(url)}.link`);
    for (const line of wrong(url).trim().split('\n')) {
      const [, code, operands, sentence = ''] = /^(.) (.+) → (.+)$/.exec(line) ?? [];
      const ended = await command(`copy ${operands}`, undefined, temporaryFolder());
      assert.deepEqual([ended.code, ended.stdout], [Number(code), '']);
      assert.ok(ended.stderr.startsWith(sentence), ended.stderr);
      assert.doesNotMatch(ended.stderr, /hidden|\n./);
    }
  });
});
