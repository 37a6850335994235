// Situations that only a SQLite file can cause: it is taken away, cannot grow, or runs out of ids. The contract
// itself is tested in test/contract.

import assert from 'node:assert/strict';
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
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import type { Answer } from '../../conformance/answers.ts';
import type { Book } from '../../conformance/service.ts';
import type { BulkStore } from '../../src/stores/bulk.ts';
import { readDbUrl } from '../../src/stores/open.ts';
import { openForIndexing } from '../../src/stores/sqlite/structure.ts';
import { TIMES, type Times } from '../../src/times.ts';
import { booksOf, fill, manyBooks } from '../support/books.ts';
import { Client, Connection } from '../support/client.ts';
import {
  ENVIRONMENT,
  fileOf,
  type RunningService,
  SQLITE,
  startCommand,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { holdWrites } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** A limit of the size of files, in units of 512 bytes; the write-ahead log reaches it first. */
const FILE_LIMIT = 'ulimit -f 1024';

/** Bytes of the log of writes, beyond which a search tries to empty it. */
const LONG_WAL = 96 * 1024 * 1024;

/** And beyond which slow lists break off. */
const HUGE_WAL = 1024 * 1024 * 1024;

/** Milliseconds that another program waits for a service that writes or indexes. */
const BUSY_TIMEOUT = 60_000;

/** @returns what moves it back. */
function move(from: string, to: string): () => void {
  renameSync(from, to);
  return () => renameSync(to, from);
}

/** Each does something to the file at the path; the function that it returns undoes it. */
const FAULTS: Readonly<Record<string, (path: string) => () => void>> = {
  moved: (path) => move(path, `${path}.away`),
  'moved with its folder': (path) => move(dirname(path), `${dirname(path)}.away`),
  'without its write-ahead log': (path) => move(`${path}-wal`, `${path}.away`),
  'without the index of its log': (path) => move(`${path}-shm`, `${path}.away`),
  deleted: (path) => {
    linkSync(path, `${path}.kept`);
    unlinkSync(path);
    return () => renameSync(`${path}.kept`, path);
  },
  'replaced by a copy of itself': (path) => {
    const putBack = move(path, `${path}.away`);
    copyFileSync(`${path}.away`, path);
    return putBack;
  },
};

describe('a SQLite file', () => {
  let service: RunningService;
  let client: Client;
  let file: string;
  let bulk: BulkStore;

  before(async () => {
    service = await startTestService(`sqlite:${join(temporaryFolder(), 'catalogue', 'books.db')}`);
    client = service.client;
    file = fileOf(service.dbUrl);
    bulk = await (await readDbUrl(service.dbUrl)).openBulk('write', TIMES);
  });
  after(() => bulk.close());

  test('rule 23: writes that wait for another process succeed once it is done', async (context) => {
    const other = open(context, service.dbUrl);
    other.exec('begin immediate');
    const creates = Promise.all([1, 2, 3].map((year) => client.create({ title: 'waiting', year })));
    other.exec("insert into books (title) values ('waiting')");
    other.exec('commit');
    await creates;
    const waiting = (await client.list()).filter(({ title }) => title === 'waiting');
    assert.deepEqual(waiting.map(({ year }) => year).toSorted(), [0, 1, 2, 3]);
  });

  for (const [name, inflict] of Object.entries(FAULTS)) {
    test(`rules 13 and 23: ${name}: no write is acknowledged until it is back, nothing is imported or copied, and no list comes from another file; single reads succeed`, async () => {
      const book = await client.create({ title: name });
      const insert = () =>
        bulk.inTransaction(() =>
          bulk.insertWithIds([[{ id: 2 * book.id + 1000, title: 'inserted', author: '', year: 0 }]]),
        );
      const before = await client.list();
      const files = ['', '-wal', '-shm'].map((suffix) => `${file}${suffix}`);
      const putBack = inflict(file);
      try {
        const left = files.filter((path) => existsSync(path));
        for (const write of writesOf(client, book)) {
          const { status, headers } = await write();
          assert.equal(status, 503);
          assert.ok(Number(headers.get('retry-after')) > 0);
          const read = await client.request('GET', `/book/${book.id}`);
          assert.deepEqual([read.status, read.data], [200, book]);
          assert.equal((await client.request('GET', '/book/9999')).status, 404);
        }
        // Without one of its logs, a list would create it.
        if (!name.startsWith('without')) assert.equal((await client.request('GET', '/books')).status, 503);
        await assert.rejects(insert, /has been (moved or deleted|replaced): put it back/);
        assert.equal(await bulk.count(), before.length);
        const found = files.filter((path) => existsSync(path));
        assert.deepEqual(found, left, 'a file was created in its place');
      } finally {
        putBack();
      }
      const other = await client.create({ title: 'stored' });
      await insert();
      assert.deepEqual((await client.list()).slice(0, -1), [...before, other]);
    });
  }

  test('rule 23: a list gets 503 while the log cannot be looked at', async () => {
    const putBack = move(`${file}-wal`, `${file}-wal.moved`);
    symlinkSync(`${file}-wal`, `${file}-wal`);
    assert.equal((await client.request('GET', '/books')).status, 503);
    putBack();
    await waitUntil(async () => (await client.request('GET', '/books')).status === 200);
  });

  test('rule 27: a log without its file is neither deleted nor used: the start is refused until one of the two is moved', async () => {
    const book = await client.create({ title: 'acknowledged' });
    const path = join(temporaryFolder(), 'other.db');
    copyFileSync(`${file}-wal`, `${path}-wal`);
    const refusal = /it is missing, but \S*other\.db-wal exists and may hold books: /;
    await assert.rejects(startTestService(`sqlite:${path}`), refusal);
    await assert.rejects((await readDbUrl(`sqlite:${path}`)).openBulk('write', TIMES), refusal);
    copyFileSync(file, path);
    assert.deepEqual((await booksOf(`sqlite:${path}`)).at(-1), book);
  });

  test('rule 23: a file that is emptied: no write is acknowledged, and a read is right or 503', async () => {
    const { client, dbUrl } = await start();
    const book = await client.create({ title: 'here' });
    truncateSync(fileOf(dbUrl));
    for (const write of writesOf(client, book)) {
      assert.equal((await write()).status, 503);
      const { status, data } = await client.request('GET', `/book/${book.id}`);
      if (status !== 503) assert.deepEqual([status, data], [200, book]);
    }
  });

  test('rule 23: while another process writes, reads succeed, writes get 503, and none is carried out later', async () => {
    const times = timesWith({ sqlite: { write: 2000 }, books: { deadline: 3000 } });
    const hasty = await startTestService(service.dbUrl, { FIND: 'off' }, undefined, times);
    const book = await client.create({ title: 'here' });
    const before = await client.list();
    const release = await holdWrites(service.dbUrl);
    const array = () => hasty.client.request('POST', '/books', { body: [{}] });
    // One array after the other: when the second one can start, its caller waits hardly any more.
    const writes = Promise.all([...writesOf(hasty.client, book).map((write) => write()), array(), array()]);
    assert.deepEqual((await client.request('GET', `/book/${book.id}`)).data, book);
    assert.deepEqual(await client.list(), before);
    for (const { status, message, data, headers } of await writes) {
      assert.deepEqual([status, message, data], [503, 'Service unavailable', null]);
      assert.ok(Number(headers.get('retry-after')) > 0);
    }
    await release();
    const next = await hasty.client.create({ title: 'next' }); // after anything that was still waiting
    assert.deepEqual(await client.list(), [...before, next]);
  });

  test('rules 9 and 23: what a trigger skips fails no write of another kind in its transaction', async (context) => {
    const { client, dbUrl } = await start();
    const book = await client.create({});
    const other = open(context, dbUrl);
    other.exec(`create trigger skip before insert on books when new.title = 'draft' begin select raise(ignore); end;
      begin immediate`);
    const answers = Promise.all([
      client.request('PUT', `/book/${book.id}`, { body: { year: 1 } }),
      client.request('POST', '/book', { body: { title: 'draft' } }),
      client.request('DELETE', '/book/1000'),
    ]);
    for (let time = 0; time < 10; time += 1) await client.request('GET', `/book/${book.id}`); // until they wait together
    other.exec('commit');
    const statuses = (await answers).map(({ status }) => status);
    assert.deepEqual(statuses, [200, 503, 404]);
  });

  test('rule 23: a search succeeds while the log of writes cannot be emptied', async (context) => {
    const { client, dbUrl } = await start(undefined, 'on', timesWith({ sqlite: { walWait: 50 } }));
    await client.create({ title: 'found' });
    await waitUntil(async () => (await client.request('GET', '/books?q=found')).data.length === 1);
    const [other, reader] = [open(context, dbUrl), open(context, dbUrl)];
    reader.exec('begin; select 1 from books'); // until then, the service moves nothing of what follows
    other.exec('pragma wal_autocheckpoint = 0; pragma synchronous = off');
    other.exec(`create table other as select zeroblob(${LONG_WAL}) as zeros`);
    other.exec('insert into other values (zeroblob(100000))'); // the last pages of the log have nothing else
    const log = `${fileOf(dbUrl)}-wal`;
    truncateSync(log, statSync(log).size - 4096);
    reader.exec('commit');
    other.exec('pragma busy_timeout = 60000'); // the service may be trying the same
    assert.throws(() => other.exec('pragma wal_checkpoint(full)'), /disk I\/O error/);
    const { status, data } = await client.request('GET', '/books?q=found');
    assert.deepEqual([status, data.length], [200, 1]);
  });

  test('rule 22: a list that is read slowly breaks off once the log of writes beside it is far too long', async (context) => {
    const service = await start(undefined, 'off', timesWith({ lists: { long: 0 } }));
    const { client, dbUrl } = service;
    const other = open(context, dbUrl);
    for (let book = 1; book <= 20; book += 1)
      other.exec("insert into books (title) values (printf('%.*c', 900000, 'x'))");
    const slow = new Connection(service); // without chunks, the end of the connection would end the list
    slow.socket.once('data', () => slow.socket.pause());
    await slow.send(`GET /books HTTP/1.0\r\nAuthorization: ${client.token}\r\n\r\n`);
    await waitUntil(() => slow.socket.isPaused());
    other.exec(`pragma wal_autocheckpoint = 0; create table other as select zeroblob(${LONG_WAL}) as zeros`);
    truncateSync(`${fileOf(dbUrl)}-wal`, HUGE_WAL + 4096); // with a hole at its end
    await waitUntil(async () => {
      await client.create({});
      return statSync(`${fileOf(dbUrl)}-wal`).size < LONG_WAL; // it has started over
    });
    slow.socket.resume();
    assert.equal(((await slow.closed) as NodeJS.ErrnoException | undefined)?.code, 'ECONNRESET');
  });

  test('rule 23: if a file cannot grow, writes get 503, reads succeed, and no acknowledged write is lost', async (context) => {
    const DB_URL = await SQLITE.freshUrl();
    const env = { ...ENVIRONMENT, LOG_LEVEL: 'info', DB_URL };
    const limited = await startCommand(env, { setting: FILE_LIMIT });
    const client = await Client.logIn(limited);
    const create = () => client.request('POST', '/book', { body: { title: 'x'.repeat(20_000) } });
    const stored: Book[] = [];
    let answer = await create();
    for (; answer.status === 201; answer = await create()) stored.push(answer.data);
    assert.equal(answer.status, 503);
    assert.ok(stored.length > 0);
    assert.deepEqual((await client.request('GET', `/book/${stored[0]?.id}`)).data, stored[0]);
    assert.deepEqual((await client.list()).slice(0, stored.length), stored);
    await limited.stop();
    assert.deepEqual((await booksOf(DB_URL)).slice(0, stored.length), stored);
    const integrity = open(context, DB_URL).prepare('pragma integrity_check').get();
    assert.deepEqual({ ...integrity }, { integrity_check: 'ok' });
  });

  test('rule 12: a sequence that another program has led to its end continues after the last new book', async (context) => {
    const { client, dbUrl } = await start();
    for (const title of ['A', 'B']) await client.create({ title });
    await client.request('DELETE', '/book/2');
    for (const id of [3, 4]) {
      open(context, dbUrl).exec('update sqlite_sequence set seq = 9007199254740991');
      assert.equal((await client.create({})).id, id);
    }
  });

  test('rule 23: a start syncs the log, then its name', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const synced: string[] = [];
    const { open } = files;
    files.open = async (path, ...rest) => {
      const file = await open(path, ...rest);
      context.mock.method(file, 'sync', async () => void synced.push(String(path)));
      return file;
    };
    syncBuiltinESMExports();
    context.after(() => {
      files.open = open;
      syncBuiltinESMExports();
    });
    await (await (await readDbUrl(dbUrl)).openBulk('write', TIMES)).close();
    assert.deepEqual(synced, [`${fileOf(dbUrl)}-wal`, dirname(fileOf(dbUrl))]);
  });

  test('a file that is gone is not made again by what indexes it', () => {
    const path = join(temporaryFolder(), 'books.db');
    assert.throws(() => openForIndexing(path), { message: 'unable to open database file' });
    assert.equal(existsSync(path), false);
  });

  test('rule 26: a file is reached through a symbolic link, unless that leads to nothing', async () => {
    const folder = temporaryFolder();
    const link = join(folder, 'link.db');
    symlinkSync('books.db', link);
    const message = `${link} is a link to a file or folder that is missing.`;
    await assert.rejects(start(`sqlite:${link}`), { message });
    writeFileSync(join(folder, 'books.db'), '');
    const { client } = await start(`sqlite:${link}`);
    const book = await client.create({ title: 'behind a link' });
    const files = ['books.db', 'books.db-shm', 'books.db-wal', 'link.db'];
    assert.deepEqual(readdirSync(folder).toSorted(), files);
    assert.deepEqual(await booksOf(`sqlite:${join(folder, 'books.db')}`), [book]);
  });

  test('rule 22: a search succeeds while a transaction of another program makes the log of writes long', async (context) => {
    const { client, dbUrl } = await start(undefined, 'on', timesWith({ sqlite: { walWait: 50 } }));
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

  for (const name of ['a/b/c/books.db', 'with space?mode=memory#x.db', 'Bücher %20.db', ':memory:']) {
    test(`rule 26: a path is used as it is spelled, and its folders are created: ${name}`, async () => {
      const path = join(temporaryFolder(), name);
      await fill(`sqlite:${path}`, manyBooks(1));
      const db = new DatabaseSync(path, { readOnly: true });
      assert.equal(db.prepare('select author from books').get()?.author, 'somebody');
      db.close();
    });
  }
});

/** Starts a service that stops at the end of the test, on a new file unless one is given. */
async function start(dbUrl?: string, FIND = 'off', times?: Times): Promise<RunningService> {
  return startTestService(dbUrl ?? (await SQLITE.freshUrl()), { FIND }, undefined, times);
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

test('rule 22: no short search waits for a long one, which has its own thread', async () => {
  const books = { ...TIMES.books, shortSearch: -1 }; // no search is short
  const times = { ...TIMES, books };
  const { client } = await startTestService(await SQLITE.freshUrl(), {}, undefined, times);
  const { id } = await client.create({ title: 'Emma' });
  const held: (() => void)[] = [];
  process.once('worker', (thread: Worker) => {
    const emit = thread.emit.bind(thread);
    thread.emit = (event: string, ...values: unknown[]) => {
      const isAnswer = event === 'message' && Object.hasOwn(Object(values[0]), 'answer');
      return isAnswer ? held.push(() => emit(event, ...values)) > 0 : emit(event, ...values);
    };
  });
  const find = () => client.request('GET', '/books?q=emma');
  const long = find();
  await waitUntil(() => held.length > 0, long);
  books.shortSearch = 60_000;
  const short = await find();
  for (const tell of held) tell();
  for (const { status, data } of [short, await long])
    assert.deepEqual([status, data.map((book: Book) => book.id)], [200, [id]]);
});
