// Owns: every order of calls in batches, with a store whose answers come in any order, late, or not before the calls are
// given up, and that refuses some of them (rule 23).

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Batches } from '../../src/books/batches.ts';
import { StoreUnavailable } from '../../src/books/store.ts';
import { TIMES } from '../../src/times.ts';
import { Observed, Order } from './order.ts';

/** Milliseconds in which no caller waits any more. */
const LATE = 5000;

const limits = fc.record({
  size: fc.constantFrom(1, 2, 3, 8),
  weight: fc.constantFrom(1, 4, 1000),
  inFlight: fc.constantFrom(1, 2),
});

/** Two servers, of which one has two shards. */
const SHARDS = [{ server: 1 }, { server: 1 }, { server: 2 }];

const call = fc.record({
  weight: fc.integer({ min: 0, max: 4 }),
  isRefused: fc.boolean(),
  shard: fc.constantFrom(undefined, ...SHARDS),
});

const calls = fc.array(call, {
  minLength: 1,
  maxLength: 16,
});

/** What a store does with a batch. */
const BEHAVIOURS = ['answers', 'answers some later', 'leaves some out', 'fails', 'is late'];
const behaviours = fc.array(fc.constantFrom(...BEHAVIOURS), { minLength: 1, maxLength: 8 });

interface Item {
  readonly number: number;
  readonly weight: number;
  readonly isRefused: boolean;
  readonly shard: { readonly server: number } | undefined;
}

export const batches = fc.asyncProperty(
  fc.scheduler(),
  limits,
  calls,
  behaviours,
  (scheduler, limits, calls, behaviours) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      let batch = 0;
      const inFlight = new Map<number, number>();
      let isQuiet = false;
      const sent: number[] = [];
      const late = () => new Promise((resolve) => setTimeout(resolve, LATE));
      const answerTo = ({ number }: Item) => `the answer to ${number}`;

      const carry = async (items: readonly Item[], deadline: number) => {
        order.expect(time.now <= deadline, 'work begins after its deadline');
        order.expect(items.length <= limits.size, 'a batch is too large');
        const { shard } = items[0] as Item;
        order.expect(
          items.every((item) => item.shard === shard),
          'a batch has items of two shards',
        );
        const server = shard?.server ?? 0;
        const ofServer = (inFlight.get(server) ?? 0) + 1;
        inFlight.set(server, ofServer);
        order.expect(ofServer <= limits.inFlight, 'too many batches are in progress');
        for (const { number } of items) sent.push(number);
        const behaviour = behaviours[batch % behaviours.length];
        batch += 1;
        try {
          if (isQuiet) return items.map(answerTo);
          return await order.later(`batch ${batch} ${behaviour}`, async () => {
            if (items.some(({ isRefused }) => isRefused)) throw new StoreUnavailable('it refuses', 'refused');
            if (behaviour === 'fails') throw new StoreUnavailable('it fails');
            if (behaviour === 'is late') await late();
            return items.map((item, position) => {
              if (behaviour === 'leaves some out' && position % 3 > 0) return null;
              if (behaviour !== 'answers some later' || position % 2 === 0) return answerTo(item);
              if (item.number % 3 === 0) return Promise.reject(new StoreUnavailable('it fails at once'));
              return order.later(`${item.number} later`, async () => {
                if (position % 4 === 1) await late();
                if (item.number % 3 === 1) throw new StoreUnavailable('it fails later');
                return answerTo(item);
              });
            });
          });
        } finally {
          inFlight.set(server, (inFlight.get(server) as number) - 1);
        }
      };

      const batches = new Batches<Item, string>(carry, limits, TIMES.books, {
        weigh: ({ weight }) => weight,
        weighAnswer: (answer) => Number(answer.at(-1)) % 3,
        shardOf: ({ shard }) => shard,
      });
      const isFull = ({ shard }: Item) => inFlight.get(shard?.server ?? 0) === limits.inFlight;
      order.onTime = () => {
        const carried = [...inFlight.values()].reduce((sum, batches) => sum + batches, 0);
        if (batches.inFlight > carried) return; // answers are given
        const waiting = made.filter(({ item, observed }) => {
          return !sent.includes(item.number) && observed.settled === undefined;
        });
        order.expect(
          waiting.every(({ item }) => isFull(item)),
          'a call waits although there is room',
        );
        order.expect(
          batches.waiting === 0 || carried >= limits.inFlight,
          'a call waits again although there is room',
        );
      };
      const made: { readonly item: Item; readonly observed: Observed<string> }[] = [];
      const make = (item: Item) =>
        made.push({ item, observed: new Observed(order, `call ${item.number}`, batches.call(item)) });
      for (const [number, call] of calls.entries())
        void order.later(`call ${number}`, () => make({ number, ...call }));
      await order.untilQuiet();

      for (const { item, observed } of made) {
        const { answer, error } = observed.outcome;
        if (error === undefined) assert.equal(answer, answerTo(item));
        else assert.ok(error instanceof StoreUnavailable, `${error}`);
        if (item.isRefused) assert.notEqual(error, undefined, 'what is refused was answered');
        else assert.notEqual((error as StoreUnavailable | undefined)?.kind, 'refused', 'too much is refused');
      }
      const firsts = [...new Set(sent)];
      for (const shard of [undefined, ...SHARDS]) {
        const called = made.filter(({ item }) => item.shard === shard).map(({ item }) => item.number);
        const sentHere = firsts.filter((number) => called.includes(number));
        assert.deepEqual(
          sentHere,
          called.filter((number) => sentHere.includes(number)),
          'not in the order of the calls',
        );
      }
      assert.deepEqual([batches.waiting, batches.inFlight], [0, 0]);
      assert.equal(time.pending, 0, 'a timer is left');

      isQuiet = true;
      made.length = 0;
      for (let number = 0; number < 20; number += 1)
        make({ number, weight: 1, isRefused: false, shard: undefined });
      await order.untilQuiet();
      for (const { item, observed } of made) assert.equal(observed.settled?.answer, answerTo(item));
    }),
);
