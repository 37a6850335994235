// The client's loops over the log of changes, and over the history of a book, with answers and time that the test decides.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe } from 'node:test';
import { type BookCatalogue, type Changes, CursorExpired } from '../../client/src/book-catalogue.ts';
import {
  answer,
  assertRefused,
  BOOK,
  errorOf,
  played,
  type Sent,
  SILENCE,
  timed,
} from '../support/catalogue.ts';
import { settled } from '../support/virtual-time.ts';

const AT = '2026-11-27T08:00:00.123Z';
const ENOUGH = new Error('enough');

const changed = (id: number) => ({ id, at: AT, book: { id, ...BOOK } });
const removed = (id: number) => ({ id, at: AT, book: null });
const state = (change: number | null) => ({ change, at: AT, book: { id: 1, ...BOOK } });

const linked = (data: unknown, cursor: string) =>
  answer(200, data, '', { link: `</elsewhere?limit=7&cursor=${cursor}>; rel="next"` });
const nothing = () => linked([], 'same');

/** The next pages of a loop that would not end. */
async function some(catalogue: BookCatalogue, count: number, cursor?: string): Promise<Changes[]> {
  const pages: Changes[] = [];
  for await (const page of catalogue.changes(cursor, { follow: true })) {
    pages.push(page);
    if (pages.length === count) break;
  }
  return pages;
}

describe('changes', () => {
  timed('come in pages, each from the cursor of the one before, until nothing has changed', async (time) => {
    const pages = new Map([
      ['', linked([changed(1), changed(2)], '2')],
      ['2', linked([removed(1)], 'Mw')],
      ['Mw', linked([], 'NA')],
    ]);
    const { catalogue, seen } = played(({ line, times, headers }) => {
      assert.equal(headers.get('prefer'), null);
      if (times === 1) throw new Error('lost');
      return pages.get(/cursor=(\w+)/.exec(line)?.[1] ?? '') as Response;
    });
    const read = async () => {
      const found: Changes[] = [];
      for await (const page of catalogue.changes()) {
        assert.equal(time.pending, 0); // no timeout while the program is busy
        found.push(page);
      }
      return found;
    };
    const began = time.now;
    assert.deepEqual(await time.until(read()), [
      { changes: [changed(1), changed(2)], cursor: '2' },
      { changes: [removed(1)], cursor: 'Mw' },
      { changes: [], cursor: 'NA' },
    ]);
    assert.ok(time.now - began < 1000); // nothing but the pauses before three retries
    const lines = ['', 'cursor=2&', 'cursor=Mw&'].map((place) => `GET /changes?${place}limit=1000`);
    assert.deepEqual(
      seen.slice(1),
      lines.flatMap((line) => [line, line]),
    ); // a retry has the same cursor
  });

  timed(
    'are waited for with follow, and their timeout begins when the wait could have ended',
    async (time) => {
      const { catalogue, seen } = played(async ({ line, headers }) => {
        assert.equal(headers.get('prefer'), 'wait=25');
        if (line.includes('cursor=saved')) return linked([changed(1)], '1');
        await time.after(34_000);
        return line.includes('cursor=1') ? linked([], '2') : SILENCE;
      });
      const pages = await time.until(some(catalogue, 2, 'saved'));
      assert.deepEqual(pages, [
        { changes: [changed(1)], cursor: '1' },
        { changes: [], cursor: '2' },
      ]);
      assert.equal(seen.length, 3);
      const { message, after } = await time.failureOf(some(catalogue, 1, '2'));
      assert.deepEqual([message, after], ['no answer within 35000 ms', 35_000]);
    },
  );

  timed(
    'are waited for by a retry as long as is left, also if the service has lost its tokens',
    async (time) => {
      for (const [end, second] of [
        [20_000, 'wait=5'],
        [24_900, null],
      ] as const) {
        const asked: (string | null)[] = [];
        const { catalogue } = played(
          async ({ times, headers }) => {
            asked.push(headers.get('prefer'));
            if (times === 1) {
              await time.after(end);
              throw new Error('lost');
            }
            return times === 2 ? answer(401, null, 'Invalid token') : linked([changed(1)], '1');
          },
          ({ times }) => answer(200, { token: `played ${times}` }),
        );
        await time.until(some(catalogue, 1));
        assert.deepEqual(asked, ['wait=25', second, second]);
      }
    },
  );

  timed('are asked for every two seconds if the service does not wait', async (time) => {
    for (const [wait, between] of [
      [0, 2000],
      [1500, 2000],
      [2500, 2500],
    ] as const) {
      const sentAt: number[] = [];
      const { catalogue } = played(async () => {
        sentAt.push(time.now);
        if (wait > 0) await time.after(wait);
        return nothing();
      });
      await time.until(some(catalogue, 3));
      const [first = 0, second = 0, third = 0] = sentAt;
      assert.deepEqual([second - first, third - second], [between, between]);
    }
    const { catalogue } = played(() => linked([changed(1)], '1'));
    const began = time.now;
    await some(catalogue, 100); // but at once while there are any
    assert.equal(time.now, began);
  });

  timed('end when their caller aborts: in a wait, in a pause, and between two pages', async () => {
    for (const [player, isInPage] of [
      [() => SILENCE, false],
      [nothing, false],
      [() => linked([changed(1)], '1'), true],
    ] as const) {
      const leaving = new AbortController();
      const { signal } = leaving;
      const { catalogue, seen } = played(player);
      const read = async () => {
        for await (const _ of catalogue.changes(undefined, { follow: true, signal })) {
          assert.ok(isInPage);
          leaving.abort(ENOUGH);
        }
      };
      const call = assert.rejects(read(), ENOUGH);
      await settled();
      leaving.abort(ENOUGH);
      await call;
      assert.equal(seen.length, 2);
      assert.deepEqual(getEventListeners(signal, 'abort'), []);
    }
  });

  timed('end with a separate error if the service cannot continue from the cursor', async () => {
    const { catalogue, seen } = played(({ line }) =>
      line.includes('cursor') ? answer(410, null, 'Cursor no longer valid') : linked([changed(1)], 'old'),
    );
    for (const call of [Array.fromAsync(catalogue.changes()), some(catalogue, 1, 'older')]) {
      const error = await errorOf(call);
      assert.ok(error instanceof CursorExpired);
      const { name, message, status, mayBeDone } = error;
      assert.deepEqual(
        [name, message, status, mayBeDone],
        ['CursorExpired', 'Cursor no longer valid', 410, false],
      );
    }
    assert.equal(seen.length, 4);
  });

  timed('are refused without a link to the next ones, which a proxy may have removed', async () => {
    const message = 'the answer has no link to the next changes';
    for (const link of [
      '',
      '</changes?limit=1>; rel="next"',
      '</changes?cursor=>; rel="next"',
      '</books?cursor=1>; rel="first"',
    ]) {
      const { catalogue } = played(() => answer(200, [changed(1)], '', link === '' ? {} : { link }));
      await assertRefused(Array.fromAsync(catalogue.changes()), 200, message);
    }
    const { catalogue } = played(() => answer(404, null, 'Not found')); // HISTORY=off
    await assertRefused(Array.fromAsync(catalogue.changes()), 404, 'Not found');
  });
});

describe('the history of a book', () => {
  const pages = ({ line, times }: Sent) => {
    if (times === 1) throw new Error('lost');
    return line.includes('cursor=8')
      ? answer(200, [state(7), state(null)])
      : linked([state(9), state(8)], '8');
  };

  timed('has all states, page after page, and each page is retried', async (time) => {
    const { catalogue, seen } = played(pages);
    const states = await time.until(Array.fromAsync(catalogue.history(1)));
    assert.deepEqual(states, [9, 8, 7, null].map(state));
    const lines = ['', 'cursor=8&'].map((place) => `GET /book/1/history?${place}limit=100`);
    assert.deepEqual(
      seen.slice(1),
      lines.flatMap((line) => [line, line]),
    );
  });

  timed('is read as far as the loop goes, and ends when its caller aborts', async (time) => {
    const leaving = new AbortController();
    for (const [leave, last, error] of [
      [() => true, 9, undefined],
      [() => leaving.abort(ENOUGH), 9, ENOUGH],
    ] as const) {
      const { catalogue, seen } = played(pages);
      let read: number | null = 0;
      const loop = async () => {
        for await (const { change } of catalogue.history(1, { signal: leaving.signal })) {
          read = change;
          if (leave()) break;
        }
      };
      if (error === undefined) await time.until(loop());
      else await assert.rejects(time.until(loop()), error);
      assert.deepEqual([read, seen.length], [last, 3]);
    }
  });

  timed('is empty if the log has no such book, and an error if the service has none', async () => {
    const { catalogue, seen } = played(() => answer(404, null, 'Book not found'));
    assert.deepEqual(await Array.fromAsync(catalogue.history(1)), []);
    assert.deepEqual(seen.slice(1), ['GET /book/1/history?limit=100']);
    const { catalogue: other } = played(() => answer(404, null, 'Not found')); // HISTORY=off
    await assertRefused(Array.fromAsync(other.history(1)), 404, 'Not found');
  });
});
