// What the log of changes in a SQLite file costs other requests, in steps of SQLite's virtual machine and in turns of the event
// loop: they are the same on every machine.

import assert from 'node:assert/strict';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { test } from 'node:test';
import type { PageOfChanges } from '../../src/books/change-log.ts';
import { Pace } from '../../src/stores/book-index.ts';
import { SqliteIndex } from '../../src/stores/sqlite/book-index.ts';
import { History } from '../../src/stores/sqlite/history.ts';
import { openForIndexing } from '../../src/stores/sqlite/structure.ts';
import { TIMES } from '../../src/times.ts';
import { fileOf, SQLITE, STORES, startTestService } from '../support/service.ts';
import { runOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';

/** What the types of Node.js do not have yet. */
interface Counted extends StatementSync {
  stat(name: 'vmStep'): number;
  resetStats(): void;
}

/** A connection that counts the steps of its statements. */
class CountingConnection extends DatabaseSync {
  readonly #statements: Counted[] = [];

  override prepare(sql: string): StatementSync {
    const statement = super.prepare(sql) as Counted;
    this.#statements.push(statement);
    return statement;
  }

  /** Since the last call. */
  steps(): number {
    let steps = 0;
    for (const statement of this.#statements) {
      steps += statement.stat('vmStep');
      statement.resetStats();
    }
    return steps;
  }
}

const CHANGES = (count: number, change = 'year = year + 1') => `
  create table numbers (n integer primary key);
  with recursive n (n) as (values (1) union all select n + 1 from n where n < ${count}) insert into numbers select n from n;
  create trigger change after delete on numbers begin update books set ${change} where id = 1; end;
  delete from numbers; drop table numbers`;

if (STORES.includes(SQLITE))
  test('rule H1: a page of changes reads each of its books once, and not the past of any', async () => {
    const steps: Record<'one' | 'all', number>[] = [];
    for (const count of [100, 900]) {
      const { client, dbUrl, stop } = await startTestService(await SQLITE.freshUrl());
      await client.create({ title: 'Changed' });
      await stop();
      const db = new CountingConnection(fileOf(dbUrl));
      const history = new History(db);
      const begin = history.changes(undefined, 1000, Number.POSITIVE_INFINITY) as PageOfChanges;
      const { cursor } = history.changes(begin.cursor, 1000, Number.POSITIVE_INFINITY) as PageOfChanges;
      await runOn(dbUrl, CHANGES(count));
      db.steps();
      const all = history.changes(cursor, 1000, Number.POSITIVE_INFINITY) as PageOfChanges;
      const ofAll = db.steps();
      const found = all.changes.map(({ book }) => book?.year);
      assert.deepEqual(found, [count]);
      await runOn(dbUrl, 'update books set year = 0');
      db.steps();
      history.changes(all.cursor, 1000, Number.POSITIVE_INFINITY);
      steps.push({ all: ofAll, one: db.steps() });
      db.close();
    }
    const [few, many] = steps as [Record<'one' | 'all', number>, Record<'one' | 'all', number>];
    assert.ok(many.one < 2 * few.one, `one change: ${few.one}, then ${many.one} steps`);
    const ofEach = (many.all - few.all) / 800;
    assert.ok(ofEach < 20, `${ofEach} steps for each further change of the same book`);
  });

if (STORES.includes(SQLITE))
  test('rules 22 and H5: an undo lets reads pass while it looks through the past of a book, and one of more than 64 MiB takes several steps', async () => {
    const times = timesWith({ sqlite: { turn: 0 } }); // after each row, other work runs
    const { client, dbUrl } = await startTestService(await SQLITE.freshUrl(), {}, undefined, times);
    const { id } = await client.create({ title: 'Changed' });
    const since = (await client.request('GET', `/book/${id}/history`)).data[0].at;
    await runOn(dbUrl, 'update book_log set at = at - 1');
    let isUndone = false;
    const undo = async () => {
      const answer = await client.request('POST', '/undo', { body: { since } });
      isUndone = true;
      return answer;
    };
    await runOn(dbUrl, CHANGES(5000));
    const undone = undo();
    let reads = 0;
    for (; !isUndone; reads += 1) await client.request('GET', `/book/${id}`);
    assert.equal((await undone).data.undone, 1);
    assert.ok(reads > 10, `${reads} reads before the undo was answered`);

    await runOn(
      dbUrl,
      `insert into books (title) with recursive n (n) as (values (1) union all select n + 1 from n where n < 99)
      select printf('%.900000c', 'x') from n; update books set title = ''`,
    );
    const { status, message } = await undo();
    assert.deepEqual([status, message], [202, 'Undo in progress']);
  });

if (STORES.includes(SQLITE))
  test('rule 22: between two looks at the clock, few books are indexed, and one if it is long', async () => {
    const { client, dbUrl, stop } = await startTestService(await SQLITE.freshUrl(), { FIND: 'off' });
    for (const title of ['short', 'long'.repeat(500), 'long'.repeat(500)])
      await client.request('POST', '/books', { body: Array.from({ length: 40 }, () => ({ title })) });
    await stop();
    const db = openForIndexing(fileOf(dbUrl));
    const index = new SqliteIndex(db, () => false);
    index.prepare(TIMES.sqlite);
    const indexed = [];
    for (let step = 1; step <= 4; step += 1) {
      index.step(0);
      indexed.push(db.prepare('select count(*) as books from book_index').get()?.books);
    }
    assert.deepEqual(indexed, [32, 41, 42, 43]);
    db.close();
  });

if (STORES.includes(SQLITE))
  test('indexing leaves nine tenths of the time to those who write, and all to itself when none does', async () => {
    const { client, dbUrl, stop } = await startTestService(await SQLITE.freshUrl(), { FIND: 'off' });
    const { id } = await client.create({ title: 'First' });
    const db = openForIndexing(fileOf(dbUrl));
    const index = new SqliteIndex(db, () => false);
    index.prepare(TIMES.sqlite);
    const pace = new Pace();
    const pauses: number[] = [];
    for (const write of [
      () => client.create({ title: 'Highest' }),
      () => client.request('PUT', `/book/${id}`, { body: { title: 'Changed' } }),
      () => client.request('DELETE', `/book/${id + 1}`),
    ]) {
      index.step(0);
      pace.pauseAfter(5, index.state.written);
      await write();
      pauses.push(pace.pauseAfter(5, index.state.written), pace.pauseAfter(5, index.state.written));
    }
    assert.deepEqual(pauses, [45, 0, 45, 0, 45, 0]);
    db.close();
    await stop();
  });
