// The log of changes of a service whose clock was wrong for a while. What it leaves is written into the log: times of rows, and the
// time of the latest look for old ones.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { POSTGRES, STORES, startTestService } from '../support/service.ts';
import { executeOn, runOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

const MINUTE = 60 * 1000;
const DAY = 24 * 60 * MINUTE;

for (const store of STORES) {
  /** The time of the store, and so many milliseconds. */
  const now = (more: number) =>
    store === POSTGRES
      ? `now() + ${more} * interval '1 millisecond'`
      : `cast(unixepoch('subsec') * 1000 as integer) + ${more}`;

  describe(`clocks on ${store.name}`, () => {
    test('rule H6: a clock that is wrong for a while removes nothing that is not old', async () => {
      const dbUrl = await store.freshUrl();
      const often = timesWith({ history: { prune: 20 } });
      /**
       * Starts a service.
       * @param looked age in days of the latest look for old rows, then those of the rows, and of the oldest or the newest one.
       * @returns how many states of the book are known after the look.
       */
      const look = async (
        looked: number,
        rows: number,
        [one, age]: ['min' | 'max', number],
        isLooked: () => Promise<boolean>,
      ) => {
        await runOn(
          dbUrl,
          `update book_log_state set looked = ${now(-looked * DAY)};
          update book_log set at = ${now(-rows * DAY)};
          update book_log set at = ${now(-age * DAY)} where number = (select ${one}(number) from book_log)`,
        );
        const { client, stop } = await startTestService(dbUrl, {}, undefined, often);
        await waitUntil(isLooked);
        const { data } = await client.request('GET', '/book/1/history');
        await stop();
        return data.length;
      };
      const isNoted = async () => {
        const isNow = `looked between ${now(-DAY / 2)} and ${now(DAY / 2)}`;
        return (await executeOn(dbUrl, `select 1 from book_log_state where ${isNow}`)).length > 0;
      };
      const begun = await startTestService(dbUrl);
      await begun.client.create({ title: 'Kept' });
      for (const year of [1, 2]) await begun.client.request('PUT', '/book/1', { body: { year } });
      await begun.stop();

      assert.equal(await look(2, 1, ['max', 200], isNoted), 3, 'the clock was behind for one change');
      assert.equal(await look(100, 100, ['max', 100], isNoted), 3, 'the clock is ahead');
      assert.equal(await look(-100, 100, ['max', 100], isNoted), 3, 'and is right again');
      const isRemoved = async () => {
        const kept = await executeOn(dbUrl, 'select 1 from book_log where book > 0');
        // A look removes nothing as long as the index, or a transaction of another test, may need the rows.
        await runOn(dbUrl, `update book_log_state set looked = ${now(-2 * DAY)}`);
        return kept.length < 2;
      };
      const states = await look(2, 100, ['min', -100], isRemoved);
      assert.ok(states < 3, 'old rows are removed, although the clock was ahead for one change');
    });

    test('rule H5: the changes since a time are those with such a time, in whatever order they stand', async () => {
      const { client, dbUrl } = await startTestService(await store.freshUrl());
      for (const title of ['A', 'B', 'C']) await client.create({ title });
      await runOn(dbUrl, `update book_log set at = ${now(-DAY)}`);
      for (const [id, minutes] of [
        [1, -18],
        [2, -21],
        [3, -19],
      ] as const) {
        await client.request('PUT', `/book/${id}`, { body: { year: 1 } });
        const newest = 'number = (select max(number) from book_log)';
        await runOn(dbUrl, `update book_log set at = ${now(minutes * MINUTE)} where ${newest}`);
      }
      const { data } = await client.request('GET', '/book/3/history');
      const undone = await client.request('POST', '/undo', { body: { since: data[0].at } });
      assert.equal(undone.data.undone, 2);
      const years = [1, 2, 3].map(async (id) => (await client.request('GET', `/book/${id}`)).data.year);
      assert.deepEqual(await Promise.all(years), [0, 1, 0]);
    });
  });
}
