// Owns: every order in which lists are opened, read, left and closed, with a store that opens them late or not, readers
// that stall, and the end of all lists at once (rules 13, 22 and 23).

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { type BookList, StoreUnavailable } from '../../src/books/store.ts';
import { OpenLists } from '../../src/stores/open-lists.ts';
import { TIMES } from '../../src/times.ts';
import { Observed, Order } from './order.ts';

/** Milliseconds: that a list waits for room at most, and without a read after which one may be closed for another. */
const WAIT_TIMEOUT = 3000;
const STALL_TIMEOUT = 5000;

/** Milliseconds until the next look for one that stalls. */
const LOOK_PAUSE = 500;

/** Why all lists are broken off. */
const BROKEN_OFF = 'the log is too long';

const reader = fc.record({
  /** Milliseconds: while others stall, or at once. */
  arrivesAfter: fc.constantFrom(0, 0, 4000),
  opens: fc.constantFrom('opens', 'opens', 'fails'),
  chunks: fc.integer({ min: 0, max: 3 }),
  /** The chunk after which it stalls, and the one after which it leaves. */
  stallsAt: fc.option(fc.integer({ min: 0, max: 2 })),
  leavesAt: fc.option(fc.integer({ min: 0, max: 2 })),
  endsWhenClosed: fc.boolean(),
});

type Reader = typeof reader extends fc.Arbitrary<infer Value> ? Value : never;

export const openLists = fc.asyncProperty(
  fc.scheduler(),
  fc.integer({ min: 1, max: 3 }),
  fc.array(reader, { minLength: 1, maxLength: 8 }),
  fc.boolean(),
  (scheduler, most, readers, breaksOff) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const lists = new OpenLists(most, TIMES.lists);
      let open = 0;
      let waiting = 0;
      let opening = 0;
      /** Since when each reader has had the chunk that it is still taking. */
      const taking = new Map<string, number>();
      order.onTime = () => {
        if (waiting === 0) return;
        order.expect(open === most, 'a list waits although there is room for it');
        const longest = time.now - Math.min(time.now, ...taking.values());
        order.expect(longest <= STALL_TIMEOUT + LOOK_PAUSE, 'a list waits for one that stalls');
      };

      const openOne = async ({ opens, chunks, endsWhenClosed }: Reader, name: string): Promise<BookList> => {
        waiting -= 1;
        open += 1;
        opening += 1;
        order.expect(open <= most, 'too many lists are open');
        let isOpen = true;
        const close = () => {
          if (isOpen) open -= 1;
          taking.delete(name);
          isOpen = false;
        };
        return await order.later(`${name} ${opens}`, () => {
          opening -= 1;
          if (opens === 'fails') close();
          if (opens === 'fails') throw new StoreUnavailable('it fails');
          const read = async function* () {
            for (let chunk = 0; chunk < chunks; chunk += 1) {
              await order.later(`${name} is sent ${chunk}`, () => {});
              if (!isOpen && endsWhenClosed) return; // as if it had ended
              if (!isOpen) throw new StoreUnavailable('it is closed');
              yield `${chunk}`;
            }
          };
          return { chunks: read(), close };
        });
      };

      const read = async (reader: Reader, name: string) => {
        const began = time.now;
        waiting += 1;
        let hasBegun = false;
        let list: BookList;
        try {
          list = await lists.open(() => {
            hasBegun = true;
            assert.ok(time.now - began <= WAIT_TIMEOUT + LOOK_PAUSE, 'it waits too long for room');
            return openOne(reader, name);
          });
        } catch (error) {
          if (!hasBegun) waiting -= 1;
          assert.ok(error instanceof StoreUnavailable, `${error}`);
          return 'is refused';
        }
        let seen = 0;
        let handedAt = time.now;
        try {
          for await (const chunk of list.chunks) {
            assert.equal(chunk, `${seen}`);
            handedAt = time.now;
            taking.set(name, handedAt);
            if (reader.leavesAt === seen) return 'leaves';
            await order.later(`${name} takes ${seen}`, () => pause(reader.stallsAt === seen ? 7000 : 1));
            taking.delete(name);
            seen += 1;
          }
          assert.equal(seen, reader.chunks, 'a list looks complete, and is not');
          return 'is complete';
        } catch (error) {
          assert.ok(error instanceof StoreUnavailable && error.kind === 'overload', `${error}`);
          if (error.message === BROKEN_OFF) return 'is broken off';
          assert.match(error.message, /stalled/);
          assert.ok(time.now - handedAt > STALL_TIMEOUT, 'a list whose reader does not stall is closed');
          return 'is closed for another';
        } finally {
          taking.delete(name);
          list.close();
        }
      };

      const made: Observed<string>[] = [];
      for (const [number, reader] of readers.entries())
        void order.later(`list ${number}`, async () => {
          await pause(reader.arrivesAfter);
          made.push(new Observed(order, 'a list', read(reader, `list ${number}`)));
        });
      if (breaksOff)
        void order.later('all lists are broken off', () => {
          if (opening === 0) lists.breakOff(BROKEN_OFF);
        });
      await order.untilQuiet();
      for (const { settled } of made) {
        assert.ok(settled, 'a list waits for ever');
        if (settled.error !== undefined) throw settled.error;
      }
      assert.deepEqual([lists.count, open, waiting, time.pending], [0, 0, 0, 0]);
      const again = Array.from({ length: most }, async () =>
        (await lists.open(async () => ({ chunks: (async function* () {})(), close() {} }))).close(),
      );
      await Promise.all(again);
      assert.equal(lists.count, 0);
    }),
);
