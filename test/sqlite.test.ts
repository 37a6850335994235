// What only a SQLite file can do to the service: be locked by another process, hold another structure,
// run out of ids. The contract itself is tested in contract.test.ts.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { STORES, startTestService, temporaryFolder } from './support/service.ts';

const [sqlite] = STORES;

test('rule 23: while another process writes, reads go on and writes are 503 within 5 s', async () => {
  const service = await startTestService(await sqlite.freshUrl());
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
  const service = await startTestService(await sqlite.freshUrl());
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

test('rule 12: no id beyond 2^53-1 is ever given out', async () => {
  const service = await startTestService(await sqlite.freshUrl());
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
  return dbUrl.slice('sqlite:'.length);
}
