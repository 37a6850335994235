// Owns: one order of events: the next one is chosen among all that can happen, which are the answers of the world outside and
// the passing of time. fast-check chooses, finds a shorter order if one fails, and prints it.

import assert from 'node:assert/strict';
import type { Scheduler } from 'fast-check';
import { StoreUnavailable } from '../../src/books/store.ts';
import { settled, VirtualTime } from '../support/virtual-time.ts';

/** Milliseconds from a call to its answer at most (rule 23: within 5 s): 4.5 s, and the shortest timer. */
export const DEADLINE = 4501;

/** Steps after which an order does not end any more. */
const MOST_STEPS = 10_000;

export class Order {
  readonly time = new VirtualTime();
  /** Milliseconds that pass in one step at most: long and short ones take turns. */
  strides: readonly number[] = [1, 400, 3, 2000, 50, Number.POSITIVE_INFINITY];
  /** Called whenever time is about to pass, although nothing has to be done before. */
  onTime: () => void = () => {};
  readonly #scheduler: Scheduler;
  readonly #faults: string[] = [];
  #steps = 0;
  #isTimePassing = false;

  private constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Carries out work in one order, and what follows from it, until nothing happens any more. */
  static async run(scheduler: Scheduler, work: (order: Order) => Promise<void>): Promise<void> {
    const order = new Order(scheduler);
    await order.time.during(() => work(order));
  }

  /** @returns a promise that is settled at some moment of the order, with what is done then. */
  later<Result>(name: string, act: () => Result | Promise<Result>): Promise<Result> {
    return this.#scheduler.schedule(Promise.resolve(), name).then(act);
  }

  /** Lets so many milliseconds pass. */
  pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, milliseconds));
  }

  /** Notes a fault in a place whose errors the code under test would handle: then the order fails in the end. */
  expect(holds: boolean, fault: string): void {
    if (!holds) this.#faults.push(fault);
  }

  /** Lets things happen in the order chosen until some work is done, which must not wait for ever. */
  async until<Result>(work: Promise<Result>): Promise<Result> {
    let isDone = false;
    const note = () => {
      isDone = true;
    };
    work.then(note, note);
    await this.untilQuiet(() => isDone);
    assert.ok(isDone, 'it waits for ever');
    return await work;
  }

  /** Lets all of these happen, and whatever comes before the last of them. */
  async happen(events: readonly (readonly [name: string, act: () => unknown])[]): Promise<void> {
    let left = events.length;
    for (const [name, act] of events)
      void this.later(name, () => {
        left -= 1;
        act();
      });
    await this.untilQuiet(() => left === 0);
  }

  /** Lets things happen in the order chosen for so many milliseconds at least, where timers follow one another for ever. */
  async during(milliseconds: number): Promise<void> {
    const end = this.time.now + milliseconds;
    await this.untilQuiet(() => this.time.now >= end);
  }

  /** Lets everything run that needs neither time nor an answer. */
  async atOnce(): Promise<void> {
    for (await settled(); this.time.isBusy; await settled()) this.time.pass();
  }

  /**
   * Lets everything happen that can, in the order chosen.
   * @param isEnough whether it stops, even if more would happen.
   */
  async untilQuiet(isEnough: () => boolean = () => false): Promise<void> {
    for (;;) {
      await settled();
      if (isEnough()) return;
      if (this.time.pending > 0 && !this.#isTimePassing) {
        this.#isTimePassing = true;
        void this.later('time passes', () => {
          this.#isTimePassing = false;
          if (!this.time.isBusy) this.onTime();
          this.time.pass(this.strides[this.#steps % this.strides.length]);
        });
      }
      assert.deepEqual(this.#faults, []);
      if (this.#scheduler.count() === 0) return;
      this.#steps += 1;
      assert.ok(this.#steps < MOST_STEPS, 'it never ends');
      await this.#scheduler.waitOne();
    }
  }
}

/** Milliseconds of a statement at most. */
const STATEMENT_TIMEOUT = 4000;

/** Statements that a database carries out late, or not, or without an answer: as the fates say, by turns. */
export class Statements {
  /** Whether they are answered at once. */
  isPrompt = false;
  readonly #order: Order;
  readonly #fates: readonly string[];
  #sent = 0;

  constructor(order: Order, fates: readonly string[]) {
    this.#order = order;
    this.#fates = fates;
  }

  /** @param wait what it waits for, until that time at most. */
  async send(
    name: string,
    deadline: number,
    carryOut: () => object[],
    wait: (end: number) => Promise<void> = async () => {},
  ): Promise<object[]> {
    const { time } = this.#order;
    if (time.now >= deadline) throw new StoreUnavailable('nothing is sent', 'late');
    const fate = this.isPrompt ? 'is answered' : this.#fates[this.#sent % this.#fates.length];
    this.#sent += 1;
    const end = Math.min(time.now + STATEMENT_TIMEOUT, deadline);
    const run = async () => {
      if (fate === 'takes long') await this.#order.pause(Math.min(1500, end - time.now));
      await wait(end);
      if (time.now >= end) throw new StoreUnavailable('the server has ended it', 'late');
      if (fate === 'fails') throw new StoreUnavailable('it fails');
      const rows = carryOut();
      if (fate === 'answer is lost') throw new StoreUnavailable('the connection breaks');
      return rows;
    };
    return await (this.isPrompt ? run() : this.#order.later(`${name} ${fate}`, run));
  }
}

/** What became of a call. */
interface Settled<Answer> {
  readonly answer?: Answer;
  readonly error?: unknown;
  /** Milliseconds. */
  readonly after: number;
}

/** Makes a call, and notes what becomes of it. */
export class Observed<Answer> {
  readonly #name: string;
  settled: Settled<Answer> | undefined;

  constructor({ time }: Order, name: string, call: Promise<Answer>, whenSettled: () => void = () => {}) {
    this.#name = name;
    const began = time.now;
    const note = (outcome: { answer: Answer } | { error: unknown }) => {
      this.settled = { ...outcome, after: time.now - began };
      whenSettled();
    };
    call.then(
      (answer) => note({ answer }),
      (error: unknown) => note({ error }),
    );
  }

  /** What has become of it, which was in time. */
  get outcome(): Settled<Answer> {
    assert.ok(this.settled, `${this.#name} waits for ever`);
    assert.ok(this.settled.after <= DEADLINE, `${this.#name} waited for ${this.settled.after} ms`);
    return this.settled;
  }
}
