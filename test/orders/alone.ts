// Owns: every order of calls for books that are carried out alone: one transaction for each book at a time, with the calls
// in their order, and none of them later than its deadline (rule 23). Other work runs between large answers only.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Book } from '../../src/books/book.ts';
import { HEAVY } from '../../src/books/store.ts';
import { Alone, type Change } from '../../src/stores/postgres/alone.ts';
import { Observed, Order } from './order.ts';

const call = fc.record({
  id: fc.constantFrom(1, 2),
  patience: fc.constantFrom(1, 1000, 4500),
  weight: fc.constantFrom(1, HEAVY / 2, HEAVY),
});
const calls = fc.array(call, { minLength: 1, maxLength: 12 });

type Call = typeof call extends fc.Arbitrary<infer Value> ? Value : never;

interface Item extends Change {
  readonly number: number;
  readonly deadline: number;
  /** Of its answer. */
  readonly weight: number;
}

const TEXTS = new Map([1, HEAVY / 2, HEAVY].map((weight) => [weight, 'x'.repeat(weight)]));

const answerTo = ({ number, id, weight }: Item): Book => {
  return { id, title: TEXTS.get(weight) ?? '', author: '', year: number };
};

export const alone = fc.asyncProperty(
  fc.scheduler(),
  calls,
  fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
  (scheduler, calls, failures) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const busy = new Set<number>();
      const sent: Item[] = [];
      const answered: (readonly Item[])[] = [];
      let transactions = 0;
      const books = new Alone(async (changes, deadline) => {
        const items = changes as readonly Item[];
        const id = Number(items[0]?.id);
        order.expect(items.length > 0 && !busy.has(id), 'two transactions are for one book, or one for none');
        for (const item of items) {
          order.expect(item.id === id, 'a call is for another book');
          order.expect(time.now < item.deadline, 'a call is sent too late');
          order.expect(deadline <= item.deadline, 'a call may be carried out too late');
        }
        busy.add(id);
        sent.push(...items);
        const fails = failures[transactions % failures.length];
        transactions += 1;
        return await order.later(`transaction for ${id}`, () => {
          busy.delete(id);
          if (fails) throw new Error('it fails');
          answered.push(items);
          return items.map(answerTo);
        });
      });
      const made: { readonly item: Item; readonly observed: Observed<unknown> }[] = [];
      /** By the number of each call, the turn of the event loop in which it was settled. */
      const turns = new Map<number, number>();
      const make = (number: number, { id, patience, weight }: Call) => {
        const item = { number, id, changes: {}, deadline: time.now + patience, weight };
        const note = () => turns.set(number, time.turns);
        const call = books.call(item, item.deadline);
        made.push({ item, observed: new Observed(order, `call ${number}`, call, note) });
      };
      for (const [number, call] of calls.entries())
        void order.later(`call ${number} for ${call.id}`, () => make(number, call));
      void order.later('time passes by itself', () => setTimeout(() => {}, 10_000));
      await order.untilQuiet();

      for (const { item, observed } of made) {
        assert.ok(observed.settled, `${item.number} waits for ever`);
        const { answer, error } = observed.settled;
        if (error === undefined) assert.deepEqual(answer, answerTo(item));
        assert.ok(sent.includes(item) || error !== undefined);
      }
      for (const id of [1, 2]) {
        const sentFor = sent.filter((item) => item.id === id);
        const expected = made.map(({ item }) => item).filter((item) => sentFor.includes(item));
        assert.deepEqual(sentFor, expected, 'not in the order of the calls');
      }

      for (const items of answered) {
        let weight = 0;
        for (const [position, item] of items.slice(0, -1).entries()) {
          weight += item.weight;
          const between =
            Number(turns.get(items[position + 1]?.number ?? 0)) - Number(turns.get(item.number));
          assert.equal(between, weight >= HEAVY ? 1 : 0, 'turns of the event loop between two answers');
          if (between > 0) weight = 0;
        }
      }

      const before = transactions;
      make(-1, { id: 1, patience: 4500, weight: 1 });
      await order.untilQuiet();
      assert.equal(transactions, before + 1, 'a later call is not sent');
    }),
);
