// Situations that only a SQLite file can cause: it is taken away, cannot grow, has another structure, or runs out of ids. The
// contract itself is tested in test/contract.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import type { Answer } from '../../conformance/answers.ts';
import type { Book } from '../../conformance/service.ts';
import { readDbUrl } from '../../src/stores/open.ts';
import { openForIndexing } from '../../src/stores/sqlite/structure.ts';
import { TIMES } from '../../src/times.ts';
import { countOf } from '../support/books.ts';
import { Client } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { Ledger } from '../support/ledger.ts';
import { COMMAND } from '../support/repository.ts';
import {
  ENVIRONMENT,
  fileOf,
  type RunningService,
  SQLITE,
  startServiceProcess,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Bytes that a file may have where its size is limited; the write-ahead log reaches them first. */
const FILE_LIMIT = 512 * 1024;

/** Bytes of the log of writes, beyond which a search tries to empty it. */
const LONG_LOG = 96 * 1024 * 1024;

/** Bytes in one unit of `ulimit -f`. */
const BLOCK = 512;

/** Milliseconds that another program waits for a service that writes or indexes. */
const BUSY_TIMEOUT = 60_000;

describe('a SQLite file', { concurrency: true }, () => {
  test('rule 23: writes that wait for another process succeed once it is done', async (context) => {
    const { client, dbUrl } = await start(context);
    const other = open(context, dbUrl);
    other.exec('begin immediate');
    const creates = Promise.all([1, 2, 3].map((year) => client.create({ year })));
    other.exec("insert into books (title) values ('theirs')");
    other.exec('commit');
    await creates;
    const years = (await client.list()).map(({ year }) => year);
    assert.deepEqual(years.toSorted(), [0, 1, 2, 3]);
  });

  describe('that is taken away while it is in use', { concurrency: 2 }, () => {
    /** Each does something to the file at the path; the function that it returns undoes it. */
    const faults: Record<string, (path: string) => () => void> = {
      moved: (path) => {
        renameSync(path, `${path}.away`);
        return () => renameSync(`${path}.away`, path);
      },
      deleted: (path) => {
        linkSync(path, `${path}.kept`);
        unlinkSync(path);
        return () => renameSync(`${path}.kept`, path);
      },
      'replaced by a copy of itself': (path) => {
        copyFileSync(path, `${path}.copy`);
        renameSync(path, `${path}.away`);
        renameSync(`${path}.copy`, path);
        return () => renameSync(`${path}.away`, path);
      },
      'moved with its folder': (path) => {
        renameSync(dirname(path), `${dirname(path)}.away`);
        return () => renameSync(`${dirname(path)}.away`, dirname(path));
      },
      'without its write-ahead log': (path) => {
        renameSync(`${path}-wal`, `${path}.away`);
        return () => renameSync(`${path}.away`, `${path}-wal`);
      },
      'without the index of its log': (path) => {
        renameSync(`${path}-shm`, `${path}.away`);
        return () => renameSync(`${path}.away`, `${path}-shm`);
      },
    };
    for (const [name, inflict] of Object.entries(faults)) {
      test(`rule 23: ${name}: nothing is imported or copied to it until it is back`, async () => {
        const dbUrl = `sqlite:${join(temporaryFolder(), 'catalogue', 'books.db')}`;
        const store = await (await readDbUrl(dbUrl)).openBulk('write', TIMES);
        const insert = () => store.insert([{ title: 'a', author: '', year: 0 }]);
        await insert();
        const putBack = inflict(fileOf(dbUrl));
        await assert.rejects(insert, /has been (moved or deleted|replaced): put it back/);
        assert.equal(await store.count(), 1);
        putBack();
        await insert();
        await store.close();
        assert.equal(await countOf(dbUrl), 2);
      });

      test(`rule 23: ${name}: no write is acknowledged until it is back, single reads succeed`, async (context) => {
        const { client, dbUrl } = await start(
          context,
          `sqlite:${join(temporaryFolder(), 'catalogue', 'books.db')}`,
        );
        const book = await client.create({ title: 'here' });
        const files = ['', '-wal', '-shm'].map((suffix) => `${fileOf(dbUrl)}${suffix}`);
        const putBack = inflict(fileOf(dbUrl));
        const left = files.filter((file) => existsSync(file));
        for (const write of writesOf(client, book)) {
          const { status, headers } = await write();
          assert.equal(status, 503);
          assert.ok(Number(headers.get('retry-after')) > 0);
          const read = await client.request('GET', `/book/${book.id}`);
          assert.deepEqual([read.status, read.data], [200, book]);
          assert.equal((await client.request('GET', '/book/999')).status, 404);
        }
        const found = files.filter((file) => existsSync(file));
        assert.deepEqual(found, left, 'a file was created in its place');
        putBack();
        const other = await client.create({ title: 'stored' });
        assert.deepEqual(await client.list(), [book, other]);
      });
    }

    test('rule 23: emptied: no write is acknowledged, and a read is right or 503', async (context) => {
      const { client, dbUrl } = await start(context);
      const book = await client.create({ title: 'here' });
      truncateSync(fileOf(dbUrl));
      for (const write of writesOf(client, book)) {
        assert.equal((await write()).status, 503);
        const { status, data } = await client.request('GET', `/book/${book.id}`);
        if (status !== 503) assert.deepEqual([status, data], [200, book]);
      }
    });

    test('rule 13: a list never comes from another file', async (context) => {
      const { client, dbUrl } = await start(context);
      await client.create({ title: 'ours' });
      const other = await startTestService(await SQLITE.freshUrl());
      await other.client.create({ title: 'theirs' });
      await other.stop();
      renameSync(fileOf(other.dbUrl), fileOf(dbUrl));
      assert.equal((await client.request('GET', '/books')).status, 503);
    });
  });

  test('rule 23: if a file cannot grow, writes get 503, reads succeed, and no acknowledged write is lost', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const limited = await startLimited(context, dbUrl);
    const ledger = new Ledger();
    const writers = ledger.writers(limited.client, 8);
    await waitUntil(async () => {
      const outcomes = await Promise.all(writers.map((writer) => writer.write()));
      return outcomes.every((outcome) => outcome === 'unavailable');
    });
    assert.ok(ledger.acknowledged > 0);
    const books = await limited.client.list();
    assert.deepEqual((await limited.client.request('GET', `/book/${books[0]?.id}`)).data, books[0]);
    ledger.reconcile(books);
    await limited.stop();
    const { client } = await start(context, dbUrl);
    ledger.reconcile(await client.list());
    await client.create({});
    const db = new DatabaseSync(fileOf(dbUrl), { readOnly: true });
    context.after(() => db.close());
    assert.deepEqual({ ...db.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' });
  });

  test('rule 12: no id beyond 2^53-1 is ever given out', async (context) => {
    const { client, dbUrl } = await start(context);
    const other = open(context, dbUrl);
    await client.create({ title: 'first' });
    other.exec('update sqlite_sequence set seq = 9007199254740990');
    const last = await client.create({ title: 'last' });
    assert.equal(last.id, 9007199254740991);
    assert.deepEqual((await client.request('GET', '/book/9007199254740991')).data, last);
    assert.equal((await client.request('POST', '/book', { body: {} })).status, 503);
    assert.equal((await client.list()).length, 2);
  });

  test('rule 27: a log without its file is neither deleted nor used: the start is refused until one of the two is moved', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const file = fileOf(dbUrl);
    const first = await startServiceProcess(dbUrl);
    context.after(() => first.stop());
    const book = await first.client.create({ title: 'acknowledged' });
    first.process.kill('SIGKILL');
    await once(first.process, 'exit');
    renameSync(file, `${file}.away`);
    const refusal = new RegExp(`it is missing, but ${file}-wal exists and may hold books: `);
    await assert.rejects(startTestService(dbUrl), refusal);
    const books = join(dirname(file), 'books.csv');
    writeFileSync(books, 'title\nEmma\n');
    const { code, stderr } = await runCommand(['import', books], { DB_URL: dbUrl });
    assert.equal(code, 1);
    assert.match(stderr, refusal);
    renameSync(`${file}.away`, file);
    assert.deepEqual(await (await start(context, dbUrl)).client.list(), [book]);
  });

  test('a file that is gone is not made again by what indexes it', () => {
    const path = join(temporaryFolder(), 'books.db');
    assert.throws(() => openForIndexing(path), { message: 'unable to open database file' });
    assert.equal(existsSync(path), false);
  });

  test('rule 26: a file is reached through a symbolic link, also before it is there', async (context) => {
    const folder = temporaryFolder();
    symlinkSync('books.db', join(folder, 'link.db'));
    const dbUrl = `sqlite:${join(folder, 'link.db')}`;
    const first = await startTestService(dbUrl);
    const book = await first.client.create({ title: 'behind a link' });
    await first.stop();
    assert.deepEqual(readdirSync(folder).toSorted(), ['books.db', 'link.db']);
    assert.deepEqual(await (await start(context, dbUrl)).client.list(), [book]);
  });

  test('rule 27: columns that an older file lacks are added and its books are kept', async (context) => {
    const path = join(temporaryFolder(), 'old.db');
    const old = new DatabaseSync(path);
    old.exec(`create table books (id integer primary key autoincrement, title text not null default '');
      insert into books (title) values ('Emma')`);
    old.close();
    const { client } = await start(context, `sqlite:${path}`);
    assert.deepEqual(await client.list(), [{ id: 1, title: 'Emma', author: '', year: 0 }]);
    const body = { title: 'x', author: 'y', year: -9007199254740991 };
    assert.deepEqual(await client.create(body), { id: 2, ...body });
  });

  test('rule 23: a list gets 503 while the log cannot be looked at', async (context) => {
    const { client, dbUrl } = await start(context);
    await client.create({});
    const log = `${fileOf(dbUrl)}-wal`;
    renameSync(log, `${log}.moved`);
    symlinkSync(log, log);
    assert.equal((await client.request('GET', '/books')).status, 503);
    renameSync(`${log}.moved`, log);
    await waitUntil(async () => (await client.request('GET', '/books')).status === 200);
  });

  test('rule 23: a search succeeds while the log of writes cannot be emptied', async (context) => {
    const { client, dbUrl } = await start(context);
    await client.create({ title: 'found' });
    await waitUntil(async () => (await client.request('GET', '/books?q=found')).data.length === 1);
    const other = open(context, dbUrl);
    other.exec('pragma wal_autocheckpoint = 0; pragma synchronous = off');
    other.exec(`create table other as select zeroblob(${LONG_LOG}) as zeros`);
    other.exec('insert into other values (zeroblob(100000))'); // the last pages of the log have nothing else
    const log = `${fileOf(dbUrl)}-wal`;
    truncateSync(log, statSync(log).size - 4096);
    assert.throws(() => other.exec('pragma wal_checkpoint(passive)'), /disk I\/O error/);
    const { status, data } = await client.request('GET', '/books?q=found');
    assert.deepEqual([status, data.length], [200, 1]);
  });

  test('rule 22: a search succeeds while a transaction of another program makes the log of writes long', async (context) => {
    const { client, dbUrl } = await start(context);
    await client.create({ title: 'found' });
    await waitUntil(async () => (await client.request('GET', '/books?q=found')).data.length === 1);
    const other = open(context, dbUrl);
    const log = `${fileOf(dbUrl)}-wal`;
    const before = statSync(log).size;
    other.exec('begin; create table other as select zeroblob(10000000) as zeros');
    assert.ok(statSync(log).size > before);
    truncateSync(log, 1024 ** 3 + 1); // as if so much had been written
    assert.equal((await client.request('GET', '/books?q=found')).status, 200);
  });

  test('a row that is no book is refused to other programs, and at the start if it is older', async (context) => {
    const old = join(temporaryFolder(), 'old.db');
    const wrong = 'insert into books (id, title, author, year) values (7, ?, ?, ?)';
    const ROWS = [
      ['', '', 1764000000000000000n],
      ['', '', -9007199254740992n],
    ] as const;
    const NULLS = [
      [null, '', 0],
      ['', null, 0],
      ['', '', null],
    ] as const;
    for (const row of ROWS) {
      const db = new DatabaseSync(old, { timeout: BUSY_TIMEOUT });
      db.exec(`create table if not exists books (
        id integer primary key autoincrement, title text, author text, year integer)`);
      db.prepare(wrong).run(...row);
      await assert.rejects(
        startTestService(`sqlite:${old}`),
        /: the year of its book 7 is too large: correct it\.$/,
      );
      db.exec('delete from books');
      db.close();
    }
    for (const dbUrl of [`sqlite:${old}`, await SQLITE.freshUrl()]) {
      const { client } = await start(context, dbUrl);
      const other = open(context, dbUrl);
      for (const row of [...ROWS, ...NULLS]) {
        assert.throws(() => other.prepare(wrong).run(...row), { code: 'ERR_SQLITE_ERROR' });
        assert.throws(() => other.prepare(`${wrong} on conflict do nothing`).run(...row));
      }
      const book = await client.create({ title: 'a', year: -9007199254740991 });
      for (const [column, value] of [
        ['year', 9007199254740992n],
        ['title', null],
      ] as const) {
        assert.throws(() => other.prepare(`update books set ${column} = ?`).run(value));
      }
      assert.deepEqual(await client.list(), [book]);
    }
  });

  for (const name of ['a/b/c/books.db', 'with space?mode=memory#x.db', 'Bücher %20.db', ':memory:']) {
    test(`rule 26: a path is used as it is spelled, and its folders are created: ${name}`, async (context) => {
      const path = join(temporaryFolder(), name);
      const { client } = await start(context, `sqlite:${path}`);
      await client.create({ title: name });
      const file = new DatabaseSync(path, { readOnly: true });
      context.after(() => file.close());
      assert.equal(file.prepare('select title from books').get()?.title, name);
    });
  }
});

/** Starts a service that stops at the end of the test, on a new file unless one is given. */
async function start(context: TestContext, dbUrl?: string): Promise<RunningService> {
  const service = await startTestService(dbUrl ?? (await SQLITE.freshUrl()));
  context.after(() => service.stop());
  return service;
}

/** The file of a store as another program has it open, until the end of a test. */
function open(context: TestContext, dbUrl: string): DatabaseSync {
  const db = new DatabaseSync(fileOf(dbUrl), { timeout: BUSY_TIMEOUT });
  context.after(() => db.close());
  return db;
}

/** A creation, a change and a removal. */
function writesOf(client: Client, { id }: Book): (() => Promise<Answer>)[] {
  const body = { title: 'lost' };
  return [
    () => client.request('POST', '/book', { body }),
    () => client.request('PUT', `/book/${id}`, { body }),
    () => client.request('DELETE', `/book/${id}`),
  ];
}

/** Starts the real command so that no file can grow beyond FILE_LIMIT: as on a full disk, a write beyond it fails. */
async function startLimited(
  context: TestContext,
  dbUrl: string,
): Promise<{ client: Client; stop(): Promise<void> }> {
  const script = `ulimit -f ${FILE_LIMIT / BLOCK} && exec "$@"`;
  const child = spawn('sh', ['-c', script, 'sh', ...COMMAND], {
    env: { ...ENVIRONMENT, DB_URL: dbUrl, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  context.after(stop);
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const entry = JSON.parse(line) as { msg: string; url: string };
      if (entry.msg === 'listening') resolve(entry.url);
    });
    child.once('exit', (code, signal) => reject(new Error(`the service exited with ${code ?? signal}`)));
  });
  return { client: await Client.logIn({ url, port: Number(new URL(url).port) }), stop };
}
