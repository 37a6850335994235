// Export, and copy from one store to another: every pair of stores, signals half way, and that no book is altered.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Book } from '../../conformance/service.ts';
import { booksOf, countOf, fill, manyBooks } from '../support/books.ts';
import { Client } from '../support/client.ts';
import { HERE_ONLY, refusedWith, runCommand } from '../support/command.ts';
import { fewFilters, found, knownAs, newBook, parametersOf } from '../support/finding.ts';
import { execute } from '../support/postgres.ts';
import { seed } from '../support/random.ts';
import { COMMAND } from '../support/repository.ts';
import {
  ENVIRONMENT,
  endOf,
  fileOf,
  POSTGRES,
  SQLITE,
  STORES,
  spawnService,
  startCommand,
  startTestService,
  stoppingHalfWay,
  temporaryFolder,
  untilStopped,
} from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

const BOOKS: readonly Book[] = [
  { id: 2, title: 'Emma', author: 'Jane Austen', year: 1815 },
  { id: 5, title: 'a "quote",\nand a line', author: '', year: -750 },
];
const CSV = 'id,title,author,year\n2,"Emma","Jane Austen",1815\n5,"a ""quote"",\nand a line","",-750\n';
const JSONL =
  '{"id":2,"title":"Emma","author":"Jane Austen","year":1815}\n' +
  '{"id":5,"title":"a \\"quote\\",\\nand a line","author":"","year":-750}\n';
const JSON_ARRAY = `[\n${JSONL.trimEnd().replace('\n', ',\n')}\n]\n`;

/** Made before the tests run: fast-check takes seconds for its first text of all characters. */
const ODD_BOOKS = oddBooks();

describe('export and copy', { concurrency: 4 }, () => {
  for (const { name, freshUrl } of STORES) {
    test(`export: the same bytes in every format, from ${name}`, async () => {
      const url = await freshUrl();
      await fill(url, BOOKS);
      const folder = temporaryFolder();
      const export_ = (...args: string[]) => command(['export', ...args], url, folder);
      assert.deepEqual(await export_(), { code: 0, stdout: CSV, stderr: '2 books exported.\n' });
      assert.equal((await export_('-', '--format', 'json')).stdout, JSON_ARRAY);
      for (const [file, content] of [
        ['a.csv', CSV],
        ['a.json', JSON_ARRAY],
        ['a.JSONL', JSONL],
      ] as const) {
        const said = { code: 0, stdout: '', stderr: `2 books exported to ${file}.\n` };
        assert.deepEqual(await export_(file), said);
        assert.equal(readFileSync(join(folder, file), 'utf8'), content);
      }
      assert.deepEqual(readdirSync(folder).toSorted(), ['a.JSONL', 'a.csv', 'a.json']);
    });

    test(`export: with filters, the books that a search would find, from ${name}`, async () => {
      const url = await freshUrl();
      const known = fc.sample(newBook, 300).map((book, position) => knownAs(position + 1, book));
      await fill(url, known);
      const searches = fc.sample(fewFilters, 30).filter((search) => search.sort === undefined);
      for (const search of [...searches, { year_lte: -1 }]) {
        const options = Object.entries(parametersOf(search)).map(
          ([name, value]) => `--${name.replaceAll('_', '-')}=${value}`,
        );
        const { code, stdout, stderr } = await command(['export', '--format', 'jsonl', ...options], url);
        assert.equal(code, 0, stderr);
        const expected = found(known, search).toSorted((one, other) => one.id - other.id);
        const lines = expected.map(({ id, title, author, year }) =>
          JSON.stringify({ id, title, author, year }),
        );
        assert.deepEqual(stdout.split('\n').slice(0, -1), lines, options.join(' '));
        assert.match(stderr, new RegExp(`^${lines.length} books? exported\\.\\n$`));
      }
      const wrong = await command(['export', '--year', 'x'], url);
      assert.deepEqual(
        wrong,
        refusedWith('--year cannot be "x": docs/search.md says what a filter may be.', 2),
      );
    });

    test(`export: a filter that all books match changes no byte, from ${name}`, async () => {
      const url = await freshUrl();
      await fill(url, ODD_BOOKS);
      for (const format of ['csv', 'json', 'jsonl']) {
        const all = await command(['export', '--format', format], url);
        assert.equal(all.code, 0);
        assert.deepEqual(await command(['export', '--format', format, '--title-starts-with', ''], url), all);
      }
    });

    test(`export: a table of an older version gives the same before its first start, from ${name}`, async () => {
      const [url, target] = [await freshUrl(), await SQLITE.freshUrl()];
      const columns =
        name === 'SQLite'
          ? 'id integer primary key autoincrement, title text, author text, year integer'
          : 'id bigserial primary key, title text, author text, year bigint';
      await executeOn(url, `create table books (${columns})`);
      await executeOn(url, "insert into books values (1, 'Emma', null, 1815), (2, null, 'Somebody', null)");
      const export_ = async (from: string) => {
        const formats = ['csv', 'json', 'jsonl'].map((format) => ['--format', format]);
        const all = [...formats, ['--author', ''], ['--year', '0']];
        return await Promise.all(all.map((args) => command(['export', ...args], from)));
      };
      const exported = await export_(url);
      assert.deepEqual(
        exported.map(({ stdout }) => stdout),
        [
          'id,title,author,year\n1,"Emma","",1815\n2,"","Somebody",0\n',
          '[\n{"id":1,"title":"Emma","author":"","year":1815},\n{"id":2,"title":"","author":"Somebody","year":0}\n]\n',
          '{"id":1,"title":"Emma","author":"","year":1815}\n{"id":2,"title":"","author":"Somebody","year":0}\n',
          'id,title,author,year\n1,"Emma","",1815\n',
          'id,title,author,year\n2,"","Somebody",0\n',
        ],
      );
      assert.equal((await command(['copy', url, target])).code, 0);
      await (await startTestService(url)).stop();
      assert.deepEqual(await export_(url), exported);
      assert.deepEqual(await export_(target), exported);
    });

    test(`export: a store without books gives an empty file, a missing store an error, on ${name}`, async () => {
      const url = await freshUrl();
      for (let times = 0; times < 2; times += 1) {
        const missing = await command(['export'], url); // which does not create it
        assert.deepEqual({ ...missing, stderr: '' }, { code: 1, stdout: '', stderr: '' });
        assert.match(missing.stderr, /^DB_URL: there is no catalogue at [^\n]+\.\n$/);
      }
      await fill(url, []);
      const texts = { csv: 'id,title,author,year\n', json: '[]\n', jsonl: '' };
      for (const [format, stdout] of Object.entries(texts)) {
        const exported = await command(['export', '--format', format], url);
        assert.deepEqual(exported, { code: 0, stdout, stderr: '0 books exported.\n' });
      }
    });

    test(`export: imported and exported again, it is byte for byte the same, on ${name}`, async () => {
      const [source, target, folder] = [await freshUrl(), await freshUrl(), temporaryFolder()];
      await fill(source, ODD_BOOKS);
      for (const format of ['csv', 'json', 'jsonl']) {
        await fill(target, []);
        assert.equal((await command(['export', `first.${format}`], source, folder)).code, 0);
        assert.equal((await command(['import', `first.${format}`], target, folder)).code, 0);
        assert.equal((await command(['export', `second.${format}`], target, folder)).code, 0);
        const [first, second] = ['first', 'second'].map((file) =>
          readFileSync(join(folder, `${file}.${format}`)),
        );
        assert.ok((first as Buffer).length > 10_000);
        assert.ok(second?.equals(first as Buffer), format);
        assert.deepEqual(await booksOf(target), ODD_BOOKS);
      }
    });
  }

  test('export: an existing file is replaced only with --overwrite, and only by a complete one', async () => {
    const [url, folder] = [await SQLITE.freshUrl(), temporaryFolder()];
    await fill(url, BOOKS);
    writeFileSync(join(folder, 'a.csv'), 'mine');
    mkdirSync(join(folder, 'b.csv'));
    const refused = await command(['export', 'a.csv'], url, folder);
    assert.deepEqual(refused, refusedWith('a.csv already exists: --overwrite replaces it.'));
    assert.equal(readFileSync(join(folder, 'a.csv'), 'utf8'), 'mine');
    assert.equal((await command(['export', 'b.csv', '--overwrite'], url, folder)).code, 1);
    assert.equal((await command(['export', 'none/c.csv'], url, folder)).code, 1);
    assert.equal((await command(['export', 'a.csv', '--overwrite'], url, folder)).code, 0);
    assert.equal(readFileSync(join(folder, 'a.csv'), 'utf8'), CSV);
    assert.deepEqual(readdirSync(folder).toSorted(), ['a.csv', 'b.csv']);
  });

  test('export: a signal ends it with one sentence, and the file is as it was', {
    skip: HERE_ONLY,
  }, async () => {
    const [url, folder] = [await SQLITE.freshUrl(), temporaryFolder()];
    await fill(url, BOOKS);
    writeFileSync(join(folder, 'a.csv'), 'mine');
    const args = ['export', 'a.csv', '--overwrite'];
    const { code, stderr } = await runCommand(args, { DB_URL: url }, folder, Promise.resolve());
    assert.deepEqual([code, stderr], [1, 'Nothing was exported: stopped.\n']);
    assert.equal(readFileSync(join(folder, 'a.csv'), 'utf8'), 'mine');
    assert.deepEqual(readdirSync(folder), ['a.csv']);
  });

  test('export: a file that appears meanwhile is replaced only with --overwrite', async () => {
    const [url, folder] = [await SQLITE.freshUrl(), temporaryFolder()];
    await fill(url, manyBooks(500, 20_000));
    for (const [args, code, said] of [
      [[], 1, 'a.csv already exists: --overwrite replaces it.\n'],
      [['--overwrite'], 0, '500 books exported to a.csv.\n'],
    ] as const) {
      const env = { DB_URL: url, NODE_OPTIONS: stoppingHalfWay() };
      const child = spawnService(env, ['export', 'a.csv', ...args], folder);
      const ended = endOf(child);
      await untilStopped(child);
      writeFileSync(join(folder, 'a.csv'), 'theirs');
      child.kill('SIGCONT');
      assert.deepEqual(await ended, { code, stdout: '', stderr: said });
      assert.equal(readFileSync(join(folder, 'a.csv'), 'utf8') === 'theirs', code === 1);
      assert.deepEqual(readdirSync(folder), ['a.csv']);
      rmSync(join(folder, 'a.csv'));
    }
  });

  test('export: where there are no hard links, a file is exported all the same', {
    skip: HERE_ONLY,
  }, async (context) => {
    const [url, folder] = [await SQLITE.freshUrl(), temporaryFolder()];
    await fill(url, BOOKS);
    const { link } = promises;
    promises.link = async (from, to) => {
      if (String(to) === join(folder, 'a.csv')) throw new Error('operation not permitted');
      await link(from, to);
    };
    syncBuiltinESMExports();
    context.after(() => {
      promises.link = link;
      syncBuiltinESMExports();
    });
    assert.equal((await command(['export', 'a.csv'], url, folder)).code, 0);
    assert.equal(readFileSync(join(folder, 'a.csv'), 'utf8'), CSV);
    assert.deepEqual(readdirSync(folder), ['a.csv']);
  });

  test('export: of a file whose name cannot be synced, it says that it is in place', {
    skip: HERE_ONLY,
  }, async (context) => {
    const [url, folder] = [await SQLITE.freshUrl(), temporaryFolder()];
    await fill(url, BOOKS);
    await using handle = await promises.open(folder);
    const files = Object.getPrototypeOf(handle) as typeof handle;
    const { sync } = files;
    context.mock.method(files, 'sync', async function (this: typeof handle) {
      if ((await this.stat()).ino === statSync(folder).ino) throw new Error('input/output error');
      await sync.call(this);
    });
    assert.deepEqual(
      await command(['export', 'a.csv'], url, folder),
      refusedWith('a.csv is complete, but may be lost if the power fails: input/output error.'),
    );
    assert.equal(readFileSync(join(folder, 'a.csv'), 'utf8'), CSV);
    assert.deepEqual(readdirSync(folder), ['a.csv']);
  });

  test('export: a file that is replaced keeps its permissions', async () => {
    const [url, folder] = [await SQLITE.freshUrl(), temporaryFolder()];
    await fill(url, BOOKS);
    const file = join(folder, 'a.csv');
    for (const mode of [0o600, 0o660, 0o604]) {
      writeFileSync(file, 'mine');
      chmodSync(file, mode);
      assert.equal((await command(['export', 'a.csv', '--overwrite'], url, folder)).code, 0);
      assert.equal(readFileSync(file, 'utf8'), CSV);
      assert.equal((statSync(file).mode & 0o777).toString(8), mode.toString(8));
    }
    chmodSync(file, 0o400); // the new one must be writable, at least for its owner
    assert.equal((await command(['export', 'a.csv', '--overwrite'], url, folder)).code, 0);
    assert.equal((statSync(file).mode & 0o777).toString(8), '600');
  });

  test('export: wrong arguments end it with exit code 2 and one sentence', async () => {
    for (const args of [['books.txt'], ['--format', 'xml'], ['a.csv', 'b.csv'], ['--formt', 'csv']]) {
      const { code, stdout, stderr } = await command(['export', ...args], await SQLITE.freshUrl());
      assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
      assert.match(stderr, /^[^\n]+\.\n$/);
    }
  });

  test('export: a reader that closes the pipe, and a full disk, end it without a stack trace', async () => {
    const url = await SQLITE.freshUrl();
    await fill(url, manyBooks(5000, 2000)); // 10 MB: more than any system keeps for a reader
    const reader = start(['export'], url);
    await once(reader.stdout as NodeJS.ReadableStream, 'data');
    reader.stdout?.destroy();
    assert.deepEqual(await endOf(reader), { code: 1, stdout: '', stderr: '' });

    // A limit on the size of files simulates a full disk.
    const args = ['-c', 'ulimit -f 100; exec "$@"', 'sh', ...COMMAND, 'export'];
    const full = openSync(join(temporaryFolder(), 'full.csv'), 'w');
    const child = spawn('sh', args, { env: { DB_URL: url }, stdio: ['ignore', full, 'pipe'] });
    const { code, stderr } = await endOf(child);
    assert.equal(code, 1);
    assert.match(stderr, /^Nothing was exported: EFBIG[^\n]+\n$/);
  });

  test('export: the store itself is never overwritten', async () => {
    const url = await SQLITE.freshUrl();
    await fill(url, BOOKS);
    const file = fileOf(url);
    for (const path of [file, `${file}-wal`]) {
      const { code, stderr } = await command(['export', path, '--format', 'csv', '--overwrite'], url);
      assert.deepEqual([code, stderr], [1, `${path} is part of the store: choose another file.\n`]);
    }
    assert.equal((await command(['export'], url)).stdout, CSV);
  });

  for (const { name, freshUrl } of STORES) {
    test(`export: a signal ends it while it waits for its reader, from ${name}`, async () => {
      const url = await freshUrl();
      await fill(url, manyBooks(5000, 2000)); // 10 MB: more than any system keeps for a reader
      const child = start(['export', '-'], url);
      let stderr = '';
      child.stderr?.on('data', (text) => {
        stderr += text;
      });
      await once(child.stdout as NodeJS.ReadableStream, 'readable'); // and is not read further
      child.kill('SIGTERM');
      const [code] = await once(child, 'close');
      assert.deepEqual([code, stderr], [1, 'Nothing was exported: stopped.\n']);
    });
  }

  test('copy: a signal ends it, and nothing was copied', async () => {
    const [source, target] = [await SQLITE.freshUrl(), await SQLITE.freshUrl()];
    await fill(source, manyBooks(5000));
    await fill(target, []);
    // Each book takes a while, so that the signal comes long before the last one.
    await executeOn(target, slowDown('after insert on books', 3000));
    const child = start(['copy', source, target]);
    const ended = endOf(child);
    await waitUntil(() => isLocked(fileOf(target)));
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    assert.equal(code, 1);
    assert.match(stderr, /^Nothing was copied: stopped\.\n$/m); // after lines of its progress, on a slow machine
    assert.equal(await countOf(target), 0);
  });

  for (const from of STORES) {
    for (const to of STORES) {
      test(`copy: from ${from.name} to ${to.name}, ids included, and new ids follow the old ones`, async (context) => {
        const [source, target] = [await from.freshUrl(), await to.freshUrl()];
        await fill(source, BOOKS);
        const original = await startTestService(source);
        context.after(() => original.stop());
        const last = await original.client.create({ title: 'of the moment' });
        await original.client.request('DELETE', `/book/${last.id}`);

        const { code, stdout, stderr } = await command(['copy', source, target]); // while it serves
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
        const sha256 = createHash('sha256').update(CSV).digest('hex');
        assert.match(
          stdout,
          new RegExp(`^2 books copied to [^\\n]+, verified \\(sha256 ${sha256}\\)\\.\\n$`),
        );
        assert.doesNotMatch(stdout, /password/);
        assert.equal((await command(['export'], target)).stdout, CSV);

        const service = await startTestService(target);
        context.after(() => service.stop());
        const keyed = { body: { title: 'new' }, headers: { 'idempotency-key': '"key"' } };
        const create = async () => (await service.client.request('POST', '/book', keyed)).data.id;
        assert.equal(await create(), last.id + 1);

        const again = await command(['copy', source, target]);
        assert.deepEqual(
          [again.code, again.stderr],
          [1, 'TO has 3 books already: --overwrite removes them.\n'],
        );
        assert.equal((await command(['copy', source, target, '--overwrite'])).code, 0);
        assert.equal((await command(['export'], target)).stdout, CSV);
        assert.equal(await create(), last.id + 2); // rule 12; and the key of a book that is gone is not known
        for (const { id } of await service.client.list())
          await service.client.request('DELETE', `/book/${id}`);
        assert.equal((await command(['copy', source, target])).code, 0);
        assert.equal(await create(), last.id + 3); // a store without books may have keys
      });
    }
  }

  for (const { name, freshUrl } of STORES) {
    test(`copy: a target that alters or drops a book is detected, and nothing was copied to ${name}`, async () => {
      const [source, target] = [await SQLITE.freshUrl(), await freshUrl()];
      await fill(source, BOOKS);
      await fill(target, []);
      for (const change of [
        "update books set title = 'Emmy' where id = 2",
        'delete from books where id = 2',
      ]) {
        if (target.startsWith('sqlite:')) {
          const db = new DatabaseSync(fileOf(target));
          db.exec(`drop trigger if exists meddle;
            create trigger meddle after insert on books when new.id = 5 begin ${change}; end`);
          db.close();
        } else {
          await execute(
            target,
            `create or replace function meddle() returns trigger language plpgsql as $$ begin ${change}; return null; end $$;
             create or replace trigger meddle after insert on books for each statement execute function meddle()`,
          );
        }
        const { code, stdout, stderr } = await command(['copy', source, target]);
        assert.deepEqual([code, stdout], [1, '']);
        assert.equal(stderr, 'Nothing was copied: TO differs from the books that were read.\n');
        assert.equal(await countOf(target), 0);
      }
    });
  }

  if (STORES.includes(POSTGRES)) {
    test('copy: the password comes from PGPASSWORD or ~/.pgpass, also for the service', async (context) => {
      const [source, target] = [await SQLITE.freshUrl(), await POSTGRES.freshUrl()];
      await fill(source, BOOKS);
      const url = new URL(target);
      const role = `mover${url.pathname.slice(1)}`;
      await execute(
        target,
        `create role ${role} login password 'only there'; grant create on schema public to ${role}`,
      );
      url.username = role;
      url.password = '';
      const home = temporaryFolder();
      const line = `${url.hostname}:${url.port}:*:${role}:only there\n`;
      writeFileSync(join(home, '.pgpass'), line);
      chmodSync(join(home, '.pgpass'), 0o600);

      const outcomes: [env: Record<string, string>, code: number][] = [
        [{}, 1],
        [{ PGPASSWORD: 'another' }, 1],
        [{ PGPASSWORD: 'only there' }, 0],
        [{ HOME: home }, 0],
      ];
      for (const [env, code] of outcomes) {
        const ended = await endOf(spawnService(env, ['copy', source, url.href, '--overwrite']));
        assert.equal(ended.code, code, ended.stderr);
        assert.doesNotMatch(ended.stdout + ended.stderr, /only there/);
      }
      const service = await startCommand({
        ...ENVIRONMENT,
        LOG_LEVEL: 'info',
        DB_URL: url.href,
        PGPASSWORD: 'only there',
      });
      context.after(() => service.stop());
      assert.deepEqual(await (await Client.logIn(service)).list(), BOOKS);
    });
  }

  test('copy: a wrong operand is refused by name, and no secret is shown', async () => {
    const url = await SQLITE.freshUrl();
    await fill(url, BOOKS);
    symlinkSync(fileOf(url), `${fileOf(url)}.link`);
    linkSync(fileOf(url), `${fileOf(url)}.other`);
    for (const [from, to, code, sentence] of [
      [url, url, 2, /^FROM and TO are the same store\.\n$/],
      [url, `sqlite://${fileOf(url)}`, 2, /^FROM and TO are the same store\.\n$/],
      [`${url}.link`, url, 2, /^FROM and TO are the same store\.\n$/],
      [url, `${url}.other`, 2, /^FROM and TO are the same store\.\n$/],
      [url, 'books.db', 2, /^TO must begin with sqlite: or postgres:[^\n]+\n$/],
      ['mysql://u:hidden@h/d', url, 2, /^FROM must begin with[^\n]+\n$/],
      ['sqlite:nowhere.db', 'sqlite:elsewhere.db', 1, /^FROM: there is no catalogue at sqlite:[^\n]+\n$/],
      [
        'postgres://u:hidden@127.0.0.1:1/d',
        url,
        1,
        /^FROM: postgres:\/\/127\.0\.0\.1:1\/d cannot be opened:[^\n]+\n$/,
      ],
    ] as const) {
      const ended = await command(['copy', from, to], undefined, temporaryFolder());
      assert.deepEqual([ended.code, ended.stdout], [code, '']);
      assert.match(ended.stderr, sentence);
      assert.doesNotMatch(ended.stderr, /hidden/);
    }
  });
});

/** Books whose texts and numbers no format may change. */
function oddBooks(): Book[] {
  const texts = [
    ...[
      '',
      ' ',
      '"',
      '""',
      "'",
      ',',
      ';',
      '\t',
      '\r',
      '\n',
      '\r\n',
      '\\',
      '\\n',
      '\\.',
      '\\N',
      'null',
      'NULL',
    ],
    ...[
      '\u0001\u0002\u001f',
      '\u2028\u2029',
      '\ufeff',
      '\uffff',
      'é',
      'e\u0301',
      '吾輩',
      '📚',
      '</script>',
      '=1+1',
      '[]',
      '{}',
    ],
    ...fc.sample(fc.string({ unit: 'binary', maxLength: 40 }), { numRuns: 300, seed }),
  ].map((text) => text.replaceAll('\0', ''));
  const years = [0, -1, 1, -9_007_199_254_740_991, 9_007_199_254_740_991];
  const books = texts.map((title, index) => ({
    id: 1 + index * 3,
    title,
    author: texts.at(-1 - index) as string,
    year: years[index % years.length] as number,
  }));
  return [...books, { id: 2 ** 52, title: 'the last one', author: '', year: 2000 }];
}

/** SQL of a slow trigger, which takes about a millisecond for a thousand steps. */
function slowDown(event: string, steps: number): string {
  return `create trigger slow ${event} begin
    insert into books select null, '', '', 0 where (
      with recursive step (number) as (select 1 union all select number + 1 from step where number < ${steps})
      select count(*) from step
    ) < 0;
  end`;
}

/** Whether another connection writes to a SQLite file. */
function isLocked(file: string): boolean {
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    db.exec('begin immediate');
    return false;
  } catch {
    return true;
  } finally {
    db.close();
  }
}

function command(args: readonly string[], dbUrl?: string, folder?: string) {
  return runCommand(args, dbUrl === undefined ? {} : { DB_URL: dbUrl }, folder);
}

function start(args: readonly string[], dbUrl?: string): ChildProcess {
  return spawnService(dbUrl === undefined ? {} : { DB_URL: dbUrl }, args);
}
