// What only a SQLite file can do to the service: be locked by another process, hold another structure,
// run out of ids. The contract itself is tested in contract.test.ts.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, linkSync, renameSync, statSync, truncateSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Ledger } from '../support/ledger.ts';
import {
  fileOf,
  SQLITE,
  startServiceProcess,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

test('rule 23: while another process writes, reads go on and writes are 503 within 5 s', async () => {
  const service = await startTestService(await SQLITE.freshUrl());
  const { client } = service;
  const other = new DatabaseSync(pathOf(service.dbUrl));
  try {
    const book = await client.create({ title: 'here' });
    other.exec('begin immediate');
    const began = performance.now();
    let ended = false;
    const writes = Promise.all([
      client.request('POST', '/book', { body: {} }),
      // A moment later, so that it waits behind the first one: it must not be carried out after its 503.
      setTimeout(100).then(() => client.request('PUT', `/book/${book.id}`, { body: { title: 'x' } })),
      client.request('DELETE', `/book/${book.id}`),
    ]).finally(() => {
      ended = true;
    });
    while (!ended) {
      assert.deepEqual((await client.request('GET', `/book/${book.id}`)).data, book);
      assert.deepEqual(await client.list(), [book]);
    }
    for (const { status, message, data, headers } of await writes) {
      assert.deepEqual([status, message, data], [503, 'Service unavailable', null]);
      assert.ok(Number(headers.get('retry-after')) > 0);
    }
    assert.ok(performance.now() - began < 5000 + 500); // 500 for a slow machine
    other.exec('rollback');
    assert.equal((await client.create({})).title, ''); // behind whatever was still waiting
    assert.deepEqual((await client.list())[0], book);
  } finally {
    other.close();
    await service.stop();
  }
});

test('rule 23: writes that wait for another process go through once it is done', async () => {
  const service = await startTestService(await SQLITE.freshUrl());
  const other = new DatabaseSync(pathOf(service.dbUrl));
  try {
    other.exec('begin immediate');
    const creates = Promise.all([1, 2, 3].map((year) => service.client.create({ year })));
    other.exec("insert into books (title) values ('theirs')");
    other.exec('commit');
    await creates;
    const years = (await service.client.list()).map(({ year }) => year);
    assert.deepEqual(years.toSorted(), [0, 1, 2, 3]);
  } finally {
    other.close();
    await service.stop();
  }
});

describe('a file that is taken away under the service', () => {
  /** What is done to the file at the path; the function that is returned puts it back, if that can be. */
  const faults: Record<string, (path: string) => (() => void) | undefined> = {
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
    'robbed of its write-ahead log': (path) => {
      renameSync(`${path}-wal`, `${path}.away`);
      return () => renameSync(`${path}.away`, `${path}-wal`);
    },
    'robbed of the index of its log': (path) => {
      renameSync(`${path}-shm`, `${path}.away`);
      return () => renameSync(`${path}.away`, `${path}-shm`);
    },
    emptied: (path) => {
      truncateSync(path);
      return undefined;
    },
  };
  for (const [name, inflict] of Object.entries(faults)) {
    test(`rule 23: ${name}: nothing is acknowledged until it is back`, async (context) => {
      const service = await startTestService(`sqlite:${join(temporaryFolder(), 'catalogue', 'books.db')}`);
      context.after(() => service.stop());
      const { client } = service;
      const book = await client.create({ title: 'here' });
      const putBack = inflict(pathOf(service.dbUrl));
      for (const [method, path] of [
        ['POST', '/book'],
        ['PUT', `/book/${book.id}`],
        ['DELETE', `/book/${book.id}`],
      ] as const) {
        const { status, headers } = await client.request(method, path, { body: { title: 'lost' } });
        assert.equal(status, 503, method);
        assert.ok(Number(headers.get('retry-after')) > 0);
      }
      if (putBack === undefined) return;
      putBack();
      const other = await client.create({ title: 'stored' });
      assert.deepEqual(await client.list(), [book, other]);
    });
  }

  test('rule 13: a list is never that of another file', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(() => service.stop());
    await service.client.create({ title: 'ours' });
    const path = pathOf(service.dbUrl);
    const other = await startTestService(await SQLITE.freshUrl());
    await other.client.create({ title: 'theirs' });
    await other.stop();
    renameSync(pathOf(other.dbUrl), path);
    assert.equal((await service.client.request('GET', '/books')).status, 503);
  });
});

test('rule 23: where a file can grow no further writes are 503 and reads go on; with room they go on as well', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl());
  context.after(() => service.stop());
  const { client } = service;
  const ledger = new Ledger();
  const writers = Array.from({ length: 8 }, () => ledger.writer(client));
  const writeAll = () => Promise.all(writers.map((writer) => writer.write()));
  const known = await client.create({ title: 'title 0', author: 'author 0', year: 0 });
  await client.request('DELETE', `/book/${known.id}`);
  for (let round = 0; round < 5; round += 1) {
    await writeAll();
    const log = statSync(`${pathOf(service.dbUrl)}-wal`).size;
    limitFileSize(service.process.pid, String(log + 20_000));
    await waitUntil(async () => (await writeAll()).every((outcome) => outcome === 'unavailable'));
    const listed = await client.request('GET', '/books');
    assert.equal(listed.status, 200);
    const [first] = listed.data;
    assert.deepEqual((await client.request('GET', `/book/${first.id}`)).data, first);
    limitFileSize(service.process.pid, 'unlimited');
    assert.ok((await writeAll()).every((outcome) => outcome === 'acknowledged'));
  }
  ledger.reconcile(await client.list());
  await service.stop();
  const db = new DatabaseSync(pathOf(service.dbUrl), { readOnly: true });
  assert.deepEqual({ ...db.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' });
  db.close();
});

test('rule 12: no id beyond 2^53-1 is ever given out', async () => {
  const service = await startTestService(await SQLITE.freshUrl());
  const { client } = service;
  const other = new DatabaseSync(pathOf(service.dbUrl));
  try {
    await client.create({ title: 'first' });
    other.exec('update sqlite_sequence set seq = 9007199254740990');
    const last = await client.create({ title: 'last' });
    assert.equal(last.id, 9007199254740991);
    assert.deepEqual((await client.request('GET', '/book/9007199254740991')).data, last);
    assert.equal((await client.request('POST', '/book', { body: {} })).status, 503);
    assert.equal((await client.list()).length, 2);
  } finally {
    other.close();
    await service.stop();
  }
});

test('rule 27: columns that an older file lacks are added and its books are kept', async () => {
  const path = join(await temporaryFolder(), 'old.db');
  const old = new DatabaseSync(path);
  old.exec(`create table books (id integer primary key autoincrement, title text not null default '');
    insert into books (title) values ('Emma')`);
  old.close();
  const service = await startTestService(`sqlite:${path}`);
  try {
    assert.deepEqual(await service.client.list(), [{ id: 1, title: 'Emma', author: '', year: 0 }]);
    const body = { title: 'x', author: 'y', year: -9007199254740991 };
    assert.deepEqual(await service.client.create(body), { id: 2, ...body });
  } finally {
    await service.stop();
  }
});

test('rule 26: folders are made, and a path is taken as it is spelled', async () => {
  const folder = await temporaryFolder();
  for (const name of ['a/b/c/books.db', 'with space?mode=memory#x.db', 'Bücher %20.db', ':memory:']) {
    const service = await startTestService(`sqlite:${join(folder, name)}`);
    await service.client.create({ title: name });
    await service.stop();
    const file = new DatabaseSync(join(folder, name), { readOnly: true });
    assert.equal(file.prepare('select title from books').get()?.title, name);
    file.close();
  }
});

function pathOf(dbUrl: string): string {
  return fileOf(dbUrl);
}

/** As a full disk would, from now on and until it is lifted again; the hard limit stays. */
function limitFileSize(pid: number | undefined, bytes: string): void {
  const { status, stderr } = spawnSync('prlimit', ['--pid', `${pid}`, `--fsize=${bytes}:`]);
  assert.equal(status, 0, `prlimit, of util-linux, is needed: ${stderr}`);
}
