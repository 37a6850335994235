// Owns: every order in which lists are opened, read, left and closed, with a store that opens them late or not, readers
// that are slow, and a log for which lists are closed (rules 13, 22 and 23).

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { type BookList, StoreUnavailable } from '../../src/books/store.ts';
import { OpenLists } from '../../src/stores/open-lists.ts';
import { TIMES } from '../../src/times.ts';
import { Observed, Order } from './order.ts';

/**
 * Milliseconds: that a list waits for room at most, until one that waits takes the place of another and between two such
 * attempts, and the lag of that other one.
 */
const WAIT_TIMEOUT = 3000;
const LOOK_PAUSE = 1000;
const LAG = 4000;

/** Why lists are closed for the log. */
const FOR_LOG = 'the log is too long';

/** Chunks, each with the milliseconds that a reader of 1 MiB/s needs for it. */
const CHUNKS = [
  ['x', 1000 / 1024 ** 2],
  ['é'.repeat(1024 ** 2), 2000],
  [new Uint8Array(6 * 1024 ** 2), 6000],
] as const;

const reader = fc.record({
  /** Milliseconds: while others are slow, or at once. */
  arrivesAfter: fc.constantFrom(0, 4000, 6000),
  opens: fc.constantFrom('opens', 'opens', 'opens', 'fails'),
  /** Its chunks, by their places in CHUNKS, and the milliseconds that the store and the reader need for each. */
  chunks: fc.array(
    fc.record({
      chunk: fc.constantFrom(0, 0, 1, 2, 2),
      made: fc.constantFrom(0, 0, 0, 6000),
      taken: fc.constantFrom(1, 3000, 9000),
    }),
    { maxLength: 4, size: 'max' },
  ),
  /** The chunk after which it leaves. */
  leavesAt: fc.option(fc.nat({ max: 2 }), { freq: 1 }),
  endsWhenClosed: fc.boolean(),
});

type Reader = typeof reader extends fc.Arbitrary<infer Value> ? Value : never;

/** How far a reader lags, as the rule has it. */
class Lag {
  #before = 0;
  #handedAt: number | undefined;
  #needed = 0;

  /** Milliseconds. */
  at(now: number): number {
    if (this.#handedAt === undefined) return this.#before;
    return Math.max(0, this.#before + (now - this.#handedAt) - this.#needed);
  }

  hand(now: number, needed: number): void {
    this.#handedAt = now;
    this.#needed = needed;
  }

  take(now: number): void {
    this.#before = this.at(now);
    this.#handedAt = undefined;
  }
}

export const openLists = fc.asyncProperty(
  fc.scheduler(),
  fc.constantFrom(1, 2, 2, 3),
  fc.array(reader, { minLength: 4, maxLength: 8, size: 'max' }),
  fc.nat({ max: 2 }),
  (scheduler, most, readers, givenUp) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const lists = new OpenLists(most, TIMES.lists);
      /** Those that are open, and how far their readers lag. */
      const open = new Map<string, Lag>();
      /** Those that are not open yet, as they came, and when. */
      const waiting = new Map<string, number>();
      /** The lag of each list when it was closed, and the longest one of the others then. */
      const closed = new Map<string, { lag: number; longest: number }>();
      let closedAt = 0;
      const longest = () => Math.max(0, ...open.values().map((lag) => lag.at(time.now)));
      order.onTime = () => {
        if (waiting.size === 0) return;
        order.expect(open.size === most, 'a list waits although there is room for it');
        const since = Math.max(closedAt, ...waiting.values().take(1));
        const tooLong = Math.min(time.now - since, longest() - LAG);
        order.expect(tooLong <= LOOK_PAUSE, 'a list waits for one that lags');
      };

      const openOne = async ({ opens, chunks, endsWhenClosed }: Reader, name: string): Promise<BookList> => {
        order.expect([...waiting.keys()][0] === name, 'a list begins before one that has waited longer');
        waiting.delete(name);
        const lag = new Lag();
        open.set(name, lag);
        order.expect(open.size <= most, 'too many lists are open');
        const close = () => {
          if (!open.delete(name)) return;
          closedAt = time.now;
          closed.set(name, { lag: lag.at(time.now), longest: longest() });
        };
        return await order.later(`${name} ${opens}`, () => {
          if (opens === 'fails') close();
          if (opens === 'fails') throw new StoreUnavailable('it fails');
          const read = async function* () {
            for (const [place, { chunk, made }] of chunks.entries()) {
              await order.later(`${name} is sent ${place}`, () => pause(made));
              if (!open.has(name) && endsWhenClosed) return; // as if it had ended
              if (!open.has(name)) throw new StoreUnavailable('it is closed');
              const [text, needed] = CHUNKS[chunk] as (typeof CHUNKS)[number];
              lag.hand(time.now, needed);
              yield text;
              lag.take(time.now);
            }
          };
          return { chunks: read(), close };
        });
      };

      const read = async (reader: Reader, name: string) => {
        const began = time.now;
        waiting.set(name, began);
        let list: BookList;
        try {
          list = await lists.open(() => {
            assert.ok(time.now - began <= WAIT_TIMEOUT, 'it waits too long for room');
            return openOne(reader, name);
          });
        } catch (error) {
          if (waiting.delete(name)) {
            assert.equal(time.now - began, WAIT_TIMEOUT);
            assert.ok(longest() < LAG || closedAt === time.now, 'a list is refused, and one that lags stays');
          }
          assert.ok(error instanceof StoreUnavailable, `${error}`);
          return 'is refused';
        }
        let seen = 0;
        try {
          for await (const chunk of list.chunks) {
            const { taken, chunk: place } = reader.chunks[seen] ?? assert.fail('a list has a chunk too many');
            assert.ok(chunk === CHUNKS[place]?.[0]);
            if (reader.leavesAt === seen) return 'leaves';
            await order.later(`${name} takes ${seen}`, () => pause(taken));
            seen += 1;
          }
          assert.equal(seen, reader.chunks.length, 'a list looks complete, and is not');
          return 'is complete';
        } catch (error) {
          assert.ok(error instanceof StoreUnavailable && error.kind === 'overload', `${error}`);
          const { lag = 0, longest: others = 0 } = closed.get(name) ?? {};
          assert.ok(lag >= others, 'a list is closed, and one that lags more is not');
          if (error.message !== FOR_LOG) assert.ok(lag >= LAG, 'a list is closed that does not lag');
          return 'is closed';
        } finally {
          list.close();
        }
      };

      const made: Observed<string>[] = [];
      for (const [number, reader] of readers.entries())
        void order.later(`list ${number}`, async () => {
          await pause(reader.arrivesAfter);
          made.push(new Observed(order, 'a list', read(reader, `list ${number}`)));
        });
      for (let number = 0; number < givenUp; number += 1)
        void order.later('a list is closed for the log', () => lists.breakOff(FOR_LOG, 0));
      await order.untilQuiet();
      for (const { settled } of made) {
        assert.ok(settled, 'a list waits for ever');
        if (settled.error !== undefined) throw settled.error;
      }
      assert.deepEqual([lists.count, open.size, waiting.size, time.pending], [0, 0, 0, 0]);
      const again = Array.from({ length: most }, async () =>
        (await lists.open(async () => ({ chunks: (async function* () {})(), close() {} }))).close(),
      );
      await Promise.all(again);
      assert.equal(lists.count, 0);
    }),
);
