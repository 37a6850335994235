// More calls than a store can answer in time (rule 23), in virtual time: from the moment at which its pace is known, a call is
// answered in time or refused on arrival.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Batches } from '../../src/books/batches.ts';
import { Catalogue } from '../../src/books/catalogue.ts';
import type { Search } from '../../src/books/search.ts';
import { type BookStore, StoreUnavailable } from '../../src/books/store.ts';
import { TIMES } from '../../src/times.ts';
import { settled, VirtualTime } from '../support/virtual-time.ts';

/** Calls that one batch may have; one batch is in progress at a time. */
const SIZE = 8;

/** Milliseconds between two calls, of the whole flood, and until the pace of the store is known. */
const BETWEEN = 10;
const FLOOD = 30_000;
const LEARNING = 10_000;

/** Milliseconds that a call may wait until its batch is sent. */
const QUEUE_TIME = 2000;

interface Outcome {
  readonly madeAt: number;
  readonly after: number;
  readonly result: 'answered' | StoreUnavailable['kind'];
}

describe('rule 23: calls beyond what can be done in time are refused on arrival', () => {
  test('where each item takes 50 ms: all others are answered', async () => {
    const outcomes = await flood(async (items) => {
      await pause(50 * items.length);
      return items;
    });
    const results = Map.groupBy(outcomes, ({ result }) => result);
    assert.deepEqual([...results.keys()].toSorted(), ['answered', 'overload']);
    const refused = results.get('overload') ?? [];
    assert.ok(refused.every(({ after }) => after === 0));
    const longest = QUEUE_TIME + 2 * 50 * SIZE; // the batch that it joins, and the one in progress
    for (const { after } of results.get('answered') ?? []) assert.ok(after <= longest, `${after} ms`);
  });

  test('where nothing can be stored: few calls wait for that', async () => {
    const outcomes = await flood(async () => {
      await pause(3000);
      throw new StoreUnavailable('it is locked');
    });
    const others = outcomes.filter(({ result }) => result !== 'overload');
    const batches = (FLOOD - LEARNING) / 3000;
    assert.ok(others.length > 0 && others.length <= 2 * SIZE * batches, `${others.length} calls waited`);
    assert.ok(outcomes.length > 10 * others.length);
  });
});

test('rule 22: of searches that wait together, each may be short for its share of half a second, and for 0.1 s at most', async () => {
  const most: number[] = [];
  const single = { size: 1, weight: 1, inFlight: 1 };
  const kinds = ['find', 'insert', 'keyed', 'bulk', 'update', 'remove', 'conditional', 'search'];
  const store = {
    limits: Object.fromEntries(kinds.map((kind) => [kind, single])),
    search: async (_: unknown, __: unknown, milliseconds: number) => {
      most.push(milliseconds);
      return [{ books: [] }];
    },
  };
  const catalogue = new Catalogue(store as unknown as BookStore, TIMES.books);
  await Promise.all(Array.from({ length: 26 }, () => catalogue.search({} as Search)));
  // The first one is sent at once; then 25 wait, and one less each time.
  const shares = Array.from({ length: 25 }, (_, sent) => Math.min(100, 500 / (24 - sent)));
  assert.deepEqual(most, [100, ...shares]);
});

/**
 * Makes calls all the time.
 * @returns what became of those that were made once the pace was known.
 */
async function flood(carry: (items: readonly number[]) => Promise<readonly number[]>): Promise<Outcome[]> {
  const time = new VirtualTime();
  const outcomes: Outcome[] = [];
  await time.during(async () => {
    const limits = { size: SIZE, weight: Number.POSITIVE_INFINITY, inFlight: 1 };
    const batches = new Batches(carry, limits, TIMES.books);
    const began = time.now;
    const call = () => {
      const madeAt = time.now - began;
      const note = (result: Outcome['result']) =>
        outcomes.push({ madeAt, after: time.now - began - madeAt, result });
      batches.call(madeAt).then(
        () => note('answered'),
        (error: StoreUnavailable) => note(error.kind),
      );
      if (madeAt + BETWEEN < FLOOD) setTimeout(call, BETWEEN);
    };
    call();
    for (await settled(); time.pending > 0; await settled()) time.pass();
  });
  assert.equal(outcomes.length, FLOOD / BETWEEN);
  return outcomes.filter(({ madeAt }) => madeAt >= LEARNING);
}
