// More calls than a store can answer in time (rule 23), in virtual time: a call is sent in time, and answered, or refused.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Batches } from '../../src/books/batches.ts';
import { Catalogue } from '../../src/books/catalogue.ts';
import type { Search } from '../../src/books/search.ts';
import { type Store, StoreUnavailable } from '../../src/books/store.ts';
import { TIMES } from '../../src/times.ts';
import { settled, VirtualTime } from '../support/virtual-time.ts';

/** Calls that one batch may have; one batch is in progress at a time. */
const SIZE = 8;

/** Milliseconds between two calls, and of the whole flood. */
const BETWEEN = 10;
const FLOOD = 30_000;

/** Milliseconds that a call waits until its batch is sent. */
const QUEUE_TIME = 2000;

interface Outcome {
  readonly after: number;
  readonly result: 'answered' | StoreUnavailable['kind'];
}

describe('rule 23: calls beyond what can be done in time are refused after 2 s', () => {
  test('where each item takes 50 ms: all others are answered', async () => {
    const outcomes = await flood(async (items) => {
      await pause(50 * items.length);
      return items;
    });
    const results = Map.groupBy(outcomes, ({ result }) => result);
    assert.deepEqual([...results.keys()].toSorted(), ['answered', 'overload']);
    const joining = BETWEEN * SIZE; // a call may join a batch that waits already
    for (const { after } of results.get('overload') ?? [])
      assert.ok(after > QUEUE_TIME - joining && after <= QUEUE_TIME, `${after} ms`);
    const answered = results.get('answered') ?? [];
    assert.ok(answered.length >= FLOOD / 50, `${answered.length} were answered`);
    for (const { after } of answered) assert.ok(after <= QUEUE_TIME + 50 * SIZE, `${after} ms`);
  });

  test('where nothing can be stored: few calls wait for that', async () => {
    const outcomes = await flood(async () => {
      await pause(3000);
      throw new StoreUnavailable('it is locked');
    });
    const others = outcomes.filter(({ result }) => result !== 'overload');
    assert.ok(others.length > 0 && others.length <= SIZE * (FLOOD / 3000 + 1), `${others.length} waited`);
  });
});

test('rule 23: no write gets 503 while the store may still begin it', async () => {
  const time = new VirtualTime();
  time.early = 1.9;
  const deadlines: number[] = [];
  const write = (_: unknown, deadline: number) => {
    deadlines.push(deadline);
    return new Promise(() => {}); // it waits for another process
  };
  const writes = ['insert', 'insertGroups', 'update', 'remove', 'changeIf'];
  const books = Object.fromEntries(writes.map((name) => [name, write]));
  const store = { inFlight: 1, books, log: { read: write, write } };
  const refused: number[] = [];
  await time.during(async () => {
    const catalogue = new Catalogue(store as unknown as Store, TIMES.books);
    const calls = [
      catalogue.create({}, undefined),
      catalogue.create({}, 'key'),
      catalogue.createAll([{}], undefined),
      catalogue.createAll([{}], 'key'), // it waits for the other one until it is refused, and is never sent
      catalogue.update(1, {}),
      catalogue.update(1, {}, { noneMatch: '*' }),
      catalogue.remove(1),
      catalogue.undo({ change: 1 }, undefined),
    ];
    for (const call of calls) call.catch(({ kind }) => kind === 'late' && refused.push(time.now));
    for (await settled(); time.pending > 0; await settled()) time.pass();
  });
  assert.deepEqual([deadlines.length, refused.length], [7, 7]);
  assert.ok(Math.min(...refused) >= Math.max(...deadlines), `${refused} of ${deadlines}`);
});

test('rule 22: of searches that wait together, each may be short for its share of half a second, and for 0.1 s at most', async () => {
  const most: number[] = [];
  const store = {
    inFlight: 1,
    search: {
      page: async (_: unknown, __: unknown, milliseconds: number) => {
        most.push(milliseconds);
        return { books: [] };
      },
    },
  };
  const catalogue = new Catalogue(store as unknown as Store, TIMES.books);
  await Promise.all(Array.from({ length: 26 }, () => catalogue.search({} as Search)));
  // The first one is sent at once; then 25 wait, and one less each time.
  const shares = Array.from({ length: 25 }, (_, sent) => Math.min(100, 500 / (24 - sent)));
  assert.deepEqual(most, [100, ...shares]);
});

/** Makes calls all the time. @returns what became of them. */
async function flood(carry: (items: readonly number[]) => Promise<readonly number[]>): Promise<Outcome[]> {
  const time = new VirtualTime();
  const outcomes: Outcome[] = [];
  await time.during(async () => {
    const limits = { size: SIZE, weight: Number.POSITIVE_INFINITY, inFlight: 1 };
    const batches = new Batches(carry, limits, TIMES.books);
    const began = time.now;
    const call = () => {
      const madeAt = time.now;
      const note = (result: Outcome['result']) => outcomes.push({ after: time.now - madeAt, result });
      batches.call(madeAt).then(
        () => note('answered'),
        (error: StoreUnavailable) => note(error.kind),
      );
      if (madeAt + BETWEEN < began + FLOOD) setTimeout(call, BETWEEN);
    };
    call();
    for (await settled(); time.pending > 0; await settled()) time.pass();
  });
  assert.equal(outcomes.length, FLOOD / BETWEEN);
  return outcomes;
}
