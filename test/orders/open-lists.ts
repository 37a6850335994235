// Owns: every order in which lists are opened, read, left and closed, with a store that opens them late or not, and readers
// that stall (rules 13, 22 and 23).

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { type BookList, StoreUnavailable } from '../../src/books/store.ts';
import { OpenLists } from '../../src/stores/open-lists.ts';
import { TIMES } from '../../src/times.ts';
import { Observed, Order } from './order.ts';

/** Milliseconds: that a list waits for room at most, and after which the reader of another one has stalled. */
const WAIT_TIMEOUT = 3000;
const STALLED = 10_000;
/** And after which a list ends all others, if what they hold is too much. */
const LONG = 60_000;

const reader = fc.record({
  /** Milliseconds: while others are slow, or at once. */
  arrivesAfter: fc.constantFrom(0, 4000, 12_000),
  opens: fc.constantFrom('opens', 'opens', 'opens', 'fails'),
  /** The milliseconds that the store and the reader need for each of its chunks. */
  chunks: fc.array(
    fc.record({
      made: fc.constantFrom(0, 0, 0, 12_000),
      taken: fc.constantFrom(1, 3000, 9000, 15_000, 61_000),
    }),
    { maxLength: 4, size: 'max' },
  ),
  /** The chunk after which it leaves. */
  leavesAt: fc.option(fc.nat({ max: 2 }), { freq: 1 }),
});

type Reader = typeof reader extends fc.Arbitrary<infer Value> ? Value : never;

export const openLists = fc.asyncProperty(
  fc.scheduler(),
  fc.constantFrom(1, 2, 2, 3),
  fc.array(reader, { minLength: 4, maxLength: 8, size: 'max' }),
  fc.array(fc.constantFrom(20_000, 59_000, 62_000, 70_000), { maxLength: 2 }),
  (scheduler, most, readers, tooMuchAfter) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const lists = new OpenLists(most, TIMES.lists);
      const open = new Set<string>();
      /** Those that are not open yet, as they came, and since when. */
      const waiting = new Map<string, number>();
      /** The lists whose readers have a chunk, and since when, the longest time first. */
      const handed = new Map<string, number>();
      const brokenOff = new Set<string>();
      const openSince = new Map<string, number>();
      let isTooMuch = false;
      order.onTime = () => {
        if (waiting.size > 0) order.expect(open.size === most, 'a list waits although there is room for it');
      };

      const openOne = async ({ opens, chunks }: Reader, name: string): Promise<BookList> => {
        for (const [other, began] of waiting) {
          if (other === name) break;
          const isRefused = time.now - began >= WAIT_TIMEOUT; // at this moment
          order.expect(isRefused, 'a list begins before one that has waited longer');
        }
        waiting.delete(name);
        open.add(name);
        order.expect(open.size <= most, 'too many lists are open');
        return await order.later(`${name} ${opens}`, () => {
          if (opens === 'fails') open.delete(name);
          if (opens === 'fails') throw new StoreUnavailable('it fails');
          const read = async function* () {
            for (const [place, { made }] of chunks.entries()) {
              await order.later(`${name} is sent ${place}`, () => pause(made));
              order.expect(open.has(name), 'a list is closed while the store is at work');
              handed.set(name, time.now);
              try {
                yield `${place}`;
              } finally {
                handed.delete(name);
              }
            }
          };
          const close = () => {
            open.delete(name);
            openSince.delete(name);
            const since = handed.get(name);
            if (since === undefined) return; // it has ended, or its reader has left
            if (isTooMuch) {
              handed.delete(name);
              brokenOff.add(name);
              return;
            }
            order.expect(
              [...handed.keys()][0] === name,
              'a list breaks off, and one that has stalled for longer does not',
            );
            order.expect(time.now - since >= STALLED, 'a list breaks off whose reader has not stalled');
            handed.delete(name);
            brokenOff.add(name);
          };
          openSince.set(name, time.now);
          return { chunks: read(), close };
        });
      };

      const read = async (reader: Reader, name: string) => {
        const began = time.now;
        waiting.set(name, began);
        const [longest = began] = handed.values();
        let list: BookList;
        try {
          const opening = lists.open(() => {
            assert.ok(time.now - began <= WAIT_TIMEOUT, 'it waits too long for room');
            return openOne(reader, name);
          });
          if (waiting.size === 1 && began - longest >= STALLED)
            order.expect(open.has(name), 'a list waits for one whose reader has stalled');
          list = await opening;
        } catch (error) {
          if (waiting.delete(name)) assert.equal(time.now - began, WAIT_TIMEOUT);
          assert.ok(error instanceof StoreUnavailable, `${error}`);
          return;
        }
        let seen = 0;
        try {
          for await (const chunk of list.chunks) {
            assert.equal(chunk, `${seen}`);
            if (reader.leavesAt === seen) return;
            await pause(reader.chunks[seen]?.taken);
            seen += 1;
          }
          assert.ok(!brokenOff.has(name), 'a list continues whose snapshot was given up');
          assert.equal(seen, reader.chunks.length, 'a list looks complete, and is not');
        } catch (error) {
          assert.ok(error instanceof StoreUnavailable && error.kind === 'overload', `${error}`);
          assert.ok(brokenOff.has(name), 'a list ends early');
        } finally {
          list.close();
        }
      };

      const made: Observed<void>[] = [];
      for (const [number, reader] of readers.entries())
        void order.later(`list ${number}`, async () => {
          await pause(reader.arrivesAfter);
          made.push(new Observed(order, 'a list', read(reader, `list ${number}`)));
        });
      for (const after of tooMuchAfter)
        void order.later('they hold too much', async () => {
          await pause(after);
          const isLong = [...openSince.values()].some((since) => time.now - since >= LONG);
          const before = handed.size;
          isTooMuch = true;
          lists.breakOffLong();
          isTooMuch = false;
          order.expect(
            handed.size === (isLong ? 0 : before),
            'all lists break off once one is open for long',
          );
        });
      await order.untilQuiet();
      for (const { settled } of made) {
        assert.ok(settled, 'a list waits for ever');
        if (settled.error !== undefined) throw settled.error;
      }
      assert.deepEqual([lists.count, open.size, waiting.size, time.pending], [0, 0, 0, 0]);
    }),
);
