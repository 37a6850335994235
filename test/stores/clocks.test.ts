// The log of changes of a service whose clock was wrong for a while. What it leaves is written into the log: times of rows, and the
// time of the latest look for old ones.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { POSTGRES, STORES, startTestService } from '../support/service.ts';
import { executeOn, runOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

const DAY = 24 * 60 * 60 * 1000;

for (const store of STORES) {
  const at = (time: number) =>
    store === POSTGRES ? `to_timestamp(${time} / 1000.0)` : `${Math.round(time)}`;

  describe(`clocks on ${store.name}`, () => {
    test('rule H6: a clock that is wrong for a while removes nothing that is not old', async () => {
      const dbUrl = await store.freshUrl();
      const often = timesWith({ history: { prune: 20 } });
      const ageOf = (time: string) =>
        store === POSTGRES ? `extract(epoch from now() - ${time}) * 1000` : `${Date.now()} - ${time}`;
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
        const now = Date.now();
        await runOn(
          dbUrl,
          `update book_log_state set looked = ${at(now - looked * DAY)};
          update book_log set at = ${at(now - rows * DAY)};
          update book_log set at = ${at(now - age * DAY)} where number = (select ${one}(number) from book_log)`,
        );
        const { client, stop } = await startTestService(dbUrl, {}, undefined, often);
        await waitUntil(isLooked);
        const { data } = await client.request('GET', '/book/1/history');
        await stop();
        return data.length;
      };
      const isNoted = async () => {
        const isNow = `select 1 from book_log_state where abs(${ageOf('looked')}) < ${DAY / 2}`;
        return (await executeOn(dbUrl, isNow)).length > 0;
      };
      const begun = await startTestService(dbUrl);
      await begun.client.create({ title: 'Kept' });
      for (const year of [1, 2]) await begun.client.request('PUT', '/book/1', { body: { year } });
      await begun.stop();

      assert.equal(await look(2, 1, ['max', 200], isNoted), 3, 'the clock was behind for one change');
      assert.equal(await look(100, 100, ['max', 100], isNoted), 3, 'the clock is ahead');
      assert.equal(await look(-100, 100, ['max', 100], isNoted), 3, 'and is right again');
      const isRemoved = async () =>
        (await executeOn(dbUrl, 'select 1 from book_log where book > 0')).length < 2;
      const states = await look(2, 100, ['min', -100], isRemoved);
      assert.ok(states < 3, 'old rows are removed, although the clock was ahead for one change');
    });

    test('rule H5: the changes since a time are those with such a time, in whatever order they stand', async (context) => {
      const { client, dbUrl, stop } = await startTestService(await store.freshUrl());
      context.after(stop);
      for (const title of ['A', 'B', 'C']) await client.create({ title });
      const hour = Date.now() - 60 * 60 * 1000;
      await runOn(dbUrl, `update book_log set at = ${at(hour - DAY)}`);
      for (const [id, minute] of [
        [1, 42],
        [2, 39],
        [3, 41],
      ] as const) {
        await client.request('PUT', `/book/${id}`, { body: { year: 1 } });
        const newest = 'number = (select max(number) from book_log)';
        await runOn(dbUrl, `update book_log set at = ${at(hour + minute * 60_000)} where ${newest}`);
      }
      const since = new Date(hour + 41 * 60_000).toISOString();
      const undone = await client.request('POST', '/undo', { body: { since } });
      assert.equal(undone.data.undone, 2);
      const years = [1, 2, 3].map(async (id) => (await client.request('GET', `/book/${id}`)).data.year);
      assert.deepEqual(await Promise.all(years), [0, 1, 0]);
    });
  });
}
