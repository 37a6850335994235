// Stores of builds before version 1.1, whose log had its events in itself: a start moves them, and such a build refuses the store
// from then on. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { command, folderWith } from '../support/importing.ts';
import { STORES, startTestService } from '../support/service.ts';
import { executeOn, runOn } from '../support/sql.ts';

const BEGINNING = "event = 'beginning', year = (select 1 - cast(has_all as integer) from book_log_state)";

/** Makes a log older: as such a build had it. */
const MAKE_OLDER = {
  SQLite: `
    ${['first_update', 'first_delete', 'replace', 'replace_by_id', 'insert', 'update', 'new_id', 'delete']
      .map((name) => `drop trigger book_log_on_${name};`)
      .join('')}
    alter table book_log add column event text;
    update book_log set (at, event, title) = (select at, kind, name from book_events where number = book_log.number)
      where number in (select number from book_events);
    update book_log set ${BEGINNING} where number = (select began from book_log_state);
    drop table book_events;
    create table before as select noted_to from book_log_state;
    drop table book_log_state;
    create table book_log_state (
      noted_to integer not null, event text, part_of integer, replaced integer, looked integer
    ) strict;
    insert into book_log_state (noted_to) select noted_to from before;
    drop table before;
    pragma user_version = 1`,
  PostgreSQL: `
    alter table book_log add column event text;
    insert into book_log (xid, number, at, book, last, event, title) select '4', number, at, 0, 0, kind, name from book_events;
    update book_log set ${BEGINNING} where xid = (select began from book_log_state) and book = 0;
    alter table book_log_state drop column began, drop column has_all;
    drop table book_events`,
};

for (const store of STORES) {
  describe(`a log of a build before version 1.1 on ${store.name}`, () => {
    test('rules 27, H1, H4 and H5: a start keeps its changes, events and cursors', async () => {
      const url = await store.freshUrl();
      const before = await startTestService(url);
      const since = new Date(0).toISOString();
      await before.client.create({ title: 'A' });
      await before.client.request('PUT', '/book/1', { body: { year: 1 } });
      const first = await before.client.request('GET', '/changes');
      const next = /<(.*)>/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
      await before.stop();
      await command('import more.csv', url, folderWith({ 'more.csv': 'title,year\nB,2\nC,3\n' }));
      await command('undo --book 1 --yes', url);
      const read = () => command('undo --list', url);
      const events = await read();
      assert.match(events.stdout, /undo +1 book\n.*import +2 books {2}more\.csv\n$/);
      await runOn(url, MAKE_OLDER[store.name]);
      assert.deepEqual(await read(), events);
      const { client } = await startTestService(url);
      assert.deepEqual(await read(), events);
      const ids = async (path: string) => {
        const { status, data } = await client.request('GET', path);
        return [status, ...(data as { id: number }[]).map(({ id }) => id)];
      };
      assert.deepEqual((await ids(next)).toSorted(), [1, 2, 200, 3]);
      const states = (await client.request('GET', '/book/1/history')).data as { book: { year: number } }[];
      assert.deepEqual(
        states.map(({ book }) => book.year),
        [0, 1, 0],
      );
      const [undo, imported] = await executeOn(url, 'select number from book_events order by number desc');
      const event = await client.request('GET', `/event/${undo?.number}`);
      assert.deepEqual([event.status, event.data.books, event.data.undo], [200, 1, null]);
      const undone = await client.request('POST', '/undo', { body: { event: Number(imported?.number) } });
      assert.equal(undone.data.undone, 2);
      const all = await client.request('POST', '/undo', { body: { since } });
      assert.deepEqual([all.status, all.data.undone, await client.list()], [200, 1, []]);
    });

    test('rule 27: from then on, such a build refuses the store', async () => {
      const url = await store.freshUrl();
      await startTestService(url);
      if (store.name === 'SQLite')
        return assert.deepEqual({ ...(await executeOn(url, 'pragma user_version'))[0] }, { user_version: 2 });
      const begin = "insert into book_log_state (place, pruned, system) values (1, '3', 0)"; // as it begins the log again
      await assert.rejects(
        executeOn(url, begin),
        /^error: new row for relation "book_log_state" violates check constraint "made by a later build of the service: start that one"$/,
      );
    });
  });
}
