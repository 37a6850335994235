// Owns: every order of calls for books that other programs have locked: one statement for each book at a time, with the
// calls in their order, and none of them later than its deadline (rule 23).

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { LockedBooks } from '../../src/stores/postgres/books/locked-books.ts';
import { Observed, Order } from './order.ts';

const calls = fc.array(fc.record({ id: fc.constantFrom(1, 2), patience: fc.constantFrom(1, 1000, 4500) }), {
  minLength: 1,
  maxLength: 12,
});

interface Item {
  readonly number: number;
  readonly id: number;
  readonly deadline: number;
}

export const lockedBooks = fc.asyncProperty(
  fc.scheduler(),
  calls,
  fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
  (scheduler, calls, failures) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const busy = new Set<number>();
      const sent: Item[] = [];
      const answerTo = ({ number }: Item) => `the answer to ${number}`;
      let statements = 0;
      const books = new LockedBooks<Item, string>(async (id, items, deadline) => {
        order.expect(items.length > 0, 'an empty statement is sent');
        order.expect(!busy.has(id), 'two statements wait for one book');
        order.expect(
          items.every((item) => item.id === id),
          'a call is for another book',
        );
        order.expect(
          items.every((item) => time.now < item.deadline),
          'a call is sent too late',
        );
        order.expect(
          items.every((item) => deadline <= item.deadline),
          'a call may be carried out too late',
        );
        busy.add(id);
        sent.push(...items);
        const fails = failures[statements % failures.length];
        statements += 1;
        return await order.later(`statement for ${id}`, () => {
          busy.delete(id);
          if (fails) throw new Error('it fails');
          return items.map(answerTo);
        });
      });
      const made: { readonly item: Item; readonly observed: Observed<string> }[] = [];
      const make = (number: number, id: number, patience: number) => {
        const item = { number, id, deadline: time.now + patience };
        made.push({ item, observed: new Observed(order, books.call(id, item, item.deadline)) });
      };
      for (const [number, { id, patience }] of calls.entries())
        void order.later(`call ${number} for ${id}`, () => make(number, id, patience));
      void order.later('time passes by itself', () => setTimeout(() => {}, 10_000));
      await order.untilQuiet();

      for (const { item, observed } of made) {
        assert.ok(observed.settled, `${item.number} waits for ever`);
        const { answer, error } = observed.settled;
        if (error === undefined) assert.equal(answer, answerTo(item));
        assert.ok(sent.includes(item) || error !== undefined);
      }
      const order1 = (id: number) => sent.filter((item) => item.id === id);
      for (const id of [1, 2]) {
        const expected = made.map(({ item }) => item).filter((item) => order1(id).includes(item));
        assert.deepEqual(order1(id), expected, 'not in the order of the calls');
      }

      const before = statements;
      make(-1, 1, 4500);
      await order.untilQuiet();
      assert.equal(statements, before + 1, 'a later call is not sent');
    }),
);
