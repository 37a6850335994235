// The client's loops over the log of changes, and over the history of a book, with answers and time that the test decides.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe } from 'node:test';
import type { BookCatalogue, Changes } from '../../client/src/book-catalogue.ts';
import { answer, assertRefused, BOOK, played, SILENCE, timed as test } from '../support/catalogue.ts';
import { settled, type VirtualTime } from '../support/virtual-time.ts';

const AT = '2026-11-27T08:00:00.123Z';
const ENOUGH = new Error('enough');

const changed = (id: number) => ({ id, at: AT, book: { id, ...BOOK } });
const state = (change: number) => ({ change, at: AT, book: { id: 1, ...BOOK } });

const linked = (data: unknown, cursor: string) =>
  answer(200, data, '', { link: `</elsewhere?limit=7&cursor=${cursor}>; rel="next"` });
const nothing = () => linked([], 'same');

/** The next pages of a loop that would not end. */
async function some(time: VirtualTime, catalogue: BookCatalogue, count: number, cursor?: string) {
  const pages: Changes[] = [];
  for await (const page of catalogue.changes(cursor, { follow: true })) {
    pages.push(page);
    assert.equal(time.pending, 0); // no timeout while the program is busy
    if (pages.length === count) break;
  }
  return pages;
}

describe('changes', () => {
  test('are waited for with follow, and their timeout begins when the wait could have ended', async (time) => {
    const { catalogue, seen } = played(async ({ line, headers }) => {
      assert.equal(headers.get('prefer'), 'wait=25');
      if (line.includes('cursor=saved')) return linked([changed(1)], '1');
      await time.after(34_000);
      return line.includes('cursor=1') ? linked([], '2') : SILENCE;
    });
    const pages = await time.until(some(time, catalogue, 2, 'saved'));
    assert.deepEqual(pages, [
      { changes: [changed(1)], cursor: '1' },
      { changes: [], cursor: '2' },
    ]);
    assert.equal(seen.length, 3);
    const { message, after } = await time.failureOf(some(time, catalogue, 1, '2'));
    assert.deepEqual([message, after], ['no answer within 35000 ms', 35_000]);
  });

  test('are followed from now on: the first page, without any, comes at once', async (time) => {
    const { catalogue } = played(({ line, headers }) => {
      assert.equal(headers.get('prefer'), line.includes('cursor=now') ? null : 'wait=25');
      return line.includes('cursor=now') ? linked([], '1') : linked([changed(1)], '2');
    });
    const began = time.now;
    const pages = await some(time, catalogue, 2, 'now');
    assert.deepEqual([pages[0]?.changes, pages[1]?.changes, time.now], [[], [changed(1)], began]);
  });

  test('are waited for by a retry as long as is left, also if the service has lost its tokens', async (time) => {
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
      await time.until(some(time, catalogue, 1));
      assert.deepEqual(asked, ['wait=25', second, second]);
    }
  });

  test('are asked for every two seconds if the service does not wait', async (time) => {
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
      await time.until(some(time, catalogue, 3));
      const [first = 0, second = 0, third = 0] = sentAt;
      assert.deepEqual([second - first, third - second], [between, between]);
    }
    const { catalogue } = played(() => linked([changed(1)], '1'));
    const began = time.now;
    await some(time, catalogue, 100); // but at once while there are any
    assert.equal(time.now, began);
  });

  test('end when their caller aborts: in a wait, in a pause, and between two pages', async () => {
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

  test('are refused without a link to the next ones, which a proxy may have removed', async () => {
    const message = 'the answer has no link to the next changes';
    for (const link of [
      ...['', '</changes?limit=1>; rel="next"', '</changes?cursor=>; rel="next"'],
      ...['</books?cursor=1>; rel="first"'],
    ]) {
      const { catalogue } = played(() => answer(200, [changed(1)], '', link === '' ? {} : { link }));
      await assertRefused(Array.fromAsync(catalogue.changes()), 200, message);
    }
    const { catalogue } = played(() => answer(404, null, 'Not found')); // HISTORY=off
    for (const pages of [catalogue.changes(), catalogue.history(1)])
      await assertRefused(pages.next(), 404, 'Not found');
  });
});

test('the history of a book is read as far as the loop goes, and ends when its caller aborts', async (time) => {
  const leaving = new AbortController();
  for (const [leave, error] of [
    [() => true, undefined],
    [() => leaving.abort(ENOUGH), ENOUGH],
  ] as const) {
    const { catalogue, seen } = played(({ times }) => {
      if (times === 1) throw new Error('lost');
      return linked([state(9), state(8)], '8');
    });
    const read: unknown[] = [];
    const loop = async () => {
      for await (const { change } of catalogue.history(1, { signal: leaving.signal })) {
        read.push(change);
        if (leave()) break;
      }
    };
    if (error === undefined) await time.until(loop());
    else await assert.rejects(time.until(loop()), error);
    assert.deepEqual([read, seen.length], [[9], 3]);
  }
});
