// Owns: sending single calls to a store in batches. Calls that arrive while a batch is in progress form the next one:
// no timer and no added wait. Without load, a call is sent at the end of its turn of the event loop; a full batch is
// sent at once. A call that is not sent in time is refused. A call that the store has not answered, since the answers before
// it are large, is sent again, after the calls that wait. Calls for different shards are in different batches.
// Does not: depend on what a call is about.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { Histogram } from '../counts.ts';
import type { Times } from '../times.ts';
import { type Answers, type NotAnswered, type Shard, StoreUnavailable } from './store.ts';

export interface BatchLimits {
  /** Items in one batch. */
  readonly size: number;
  /** Total weight of the items in one batch, without the last one. */
  readonly weight: number;
  /** Batches in progress at the same time, for each server of the store. */
  readonly inFlight: number;
}

interface Call<Item, Answer> extends Omit<PromiseWithResolvers<Answer>, 'promise'> {
  readonly item: Item;
}

interface Batch<Item, Answer> {
  readonly shard: Shard;
  readonly calls: Call<Item, Answer>[];
  /** When its calls are given up, on the clock of `performance.now()`. */
  readonly deadline: number;
  timer: NodeJS.Timeout;
  weight: number;
  readonly notAnswered: Call<Item, Answer>[];
  /** Calls that the store answers after the others. */
  readonly late: Promise<void>[];
}

/** The shard of all items of a store that has only one. */
const ONLY_SHARD: Shard = { server: 0 };

export const OVERLOADED = new StoreUnavailable(
  'more calls wait than the store can answer in time',
  'overload',
);

const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Seconds. */
export const DURATIONS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];

/** The figures of batches at any moment. */
export interface BatchFigures extends Pick<Batches<never, unknown>, 'waiting' | 'inFlight' | 'durations'> {
  /** Undefined for `Turns`. */
  readonly sizes?: Histogram;
}

/**
 * Sends a batch.
 * @param deadline when no caller waits any more, on the clock of `performance.now()`: no work may begin later.
 */
export type Carry<Item, Answer> = (items: readonly Item[], deadline: number) => Answers<Answer>;

/** The properties of items and answers on which batches depend. Weights are in the unit of the limits. */
export interface Traits<Item, Answer> {
  readonly weigh?: (item: Item) => number;
  readonly weighAnswer?: (answer: Answer) => number;
  /** @returns the same object for items that may be in one batch. */
  readonly shardOf?: (item: Item) => Shard | undefined;
}

export class Batches<Item, Answer> {
  readonly #carry: Carry<Item, Answer>;
  readonly #limits: BatchLimits;
  readonly #times: Times['books'];
  readonly #late: StoreUnavailable;
  readonly #traits: Traits<Item, Answer>;
  readonly #waiting: Batch<Item, Answer>[] = [];
  /** Batches in progress, by the server of their shard. */
  readonly #inFlight = new Map<number, number>();
  /** Items of each batch that has ended, failed ones included. */
  readonly sizes = new Histogram(SIZES);
  /** Seconds of each batch that has ended, failed ones included. */
  readonly durations = new Histogram(DURATIONS);

  /** @param carry answers a batch, in its order; if it rejects, so does every call of the batch. */
  constructor(
    carry: Carry<Item, Answer>,
    limits: BatchLimits,
    times: Times['books'],
    traits: Traits<Item, Answer> = {},
  ) {
    this.#carry = carry;
    this.#limits = limits;
    this.#times = times;
    this.#late = new StoreUnavailable(`no answer within ${times.deadline} ms`, 'late');
    this.#traits = traits;
  }

  /** Calls whose batch has not been sent. */
  get waiting(): number {
    return this.#waiting.reduce((all, { calls }) => all + calls.length, 0);
  }

  get inFlight(): number {
    return [...this.#inFlight.values()].reduce((all, batches) => all + batches, 0);
  }

  /** @throws StoreUnavailable if the call is not sent in time, and then never will be; or after the deadline. */
  call(item: Item): Promise<Answer> {
    const shard = this.#traits.shardOf?.(item) ?? ONLY_SHARD;
    let batch = this.#waiting.findLast((waiting) => waiting.shard === shard);
    if (batch === undefined || this.#isFull(batch)) {
      batch = this.#add(shard, [], performance.now() + this.#times.deadline, 0);
      setImmediate(() => this.#start());
    }
    batch.weight += this.#traits.weigh?.(item) ?? 0;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    batch.calls.push({ item, resolve, reject });
    if (this.#isFull(batch)) this.#start();
    return promise;
  }

  #isFull({ calls, weight }: Batch<Item, Answer>): boolean {
    return calls.length >= this.#limits.size || weight >= this.#limits.weight;
  }

  #add(shard: Shard, calls: Call<Item, Answer>[], deadline: number, weight: number): Batch<Item, Answer> {
    const wait = Math.min(this.#times.queue, deadline - performance.now());
    const timer = setTimeout(() => this.#expire(batch), wait);
    const batch = { shard, calls, deadline, weight, timer, notAnswered: [], late: [] };
    this.#waiting.push(batch);
    return batch;
  }

  #start(): void {
    for (;;) {
      const next = this.#waiting.findIndex(({ shard }) => this.#inFlightOn(shard) < this.#limits.inFlight);
      const [batch] = next === -1 ? [] : this.#waiting.splice(next, 1);
      if (batch === undefined) return;
      void this.#run(batch);
    }
  }

  #inFlightOn({ server }: Shard): number {
    return this.#inFlight.get(server) ?? 0;
  }

  async #run(batch: Batch<Item, Answer>): Promise<void> {
    const { shard, calls, deadline, notAnswered, late } = batch;
    this.#inFlight.set(shard.server, this.#inFlightOn(shard) + 1);
    const began = performance.now();
    await this.#carryOut(batch, calls);
    // No call joins these, since their deadline comes first.
    if (notAnswered.length > 0) this.#add(shard, notAnswered, deadline, Number.POSITIVE_INFINITY);
    void Promise.all(late).then(() => clearTimeout(batch.timer));
    this.sizes.observe(calls.length - notAnswered.length);
    this.durations.observe((performance.now() - began) / 1000);
    this.#inFlight.set(shard.server, this.#inFlightOn(shard) - 1);
    this.#start();
  }

  /** If the store refuses some calls for something in them, their halves are carried out apart, until the refused calls are alone. */
  async #carryOut(batch: Batch<Item, Answer>, calls: readonly Call<Item, Answer>[]): Promise<void> {
    const { deadline } = batch;
    if (performance.now() >= deadline) return rejectAll(calls, this.#late);
    try {
      const items = calls.map(({ item }) => item);
      await this.#settle(batch, calls, await this.#carry(items, deadline));
    } catch (error) {
      const isRefused = error instanceof StoreUnavailable && error.kind === 'refused';
      if (!isRefused || calls.length === 1) return rejectAll(calls, error);
      const half = calls.length >> 1;
      await this.#carryOut(batch, calls.slice(0, half));
      await this.#carryOut(batch, calls.slice(half));
    }
  }

  /** Lets other work run between large answers: their callers make texts of them. */
  async #settle(
    { notAnswered, late }: Batch<Item, Answer>,
    calls: readonly Call<Item, Answer>[],
    answers: Awaited<Answers<Answer>>,
  ): Promise<void> {
    // All promises are handled at once, since one may fail while other work runs. A call is not resolved with the promise itself,
    // because the deadline must still be able to reject it.
    for (const [position, { resolve, reject }] of calls.entries()) {
      const answer = answers[position];
      if (answer instanceof Promise) late.push(answer.then(resolve, reject));
    }
    let weight = 0;
    for (const [position, call] of calls.entries()) {
      const answer = answers[position] as Answer | Promise<Answer> | NotAnswered;
      if (answer === null) {
        notAnswered.push(call);
      } else if (!(answer instanceof Promise)) {
        call.resolve(answer);
        weight += this.#traits.weighAnswer?.(answer) ?? 0;
        if (weight >= this.#limits.weight) {
          weight = 0;
          await nextTurn();
        }
      }
    }
  }

  /** Refuses the calls of a batch that still waits; of one that was sent, gives them up at its deadline. */
  #expire(batch: Batch<Item, Answer>): void {
    const { calls, deadline } = batch;
    const left = deadline - performance.now();
    const position = this.#waiting.indexOf(batch);
    if (position !== -1) {
      this.#waiting.splice(position, 1);
      rejectAll(calls, OVERLOADED);
    } else if (left > 0) {
      batch.timer = setTimeout(() => this.#expire(batch), left); // timers may run 2 ms early, when work may still begin
    } else {
      rejectAll(calls, this.#late);
    }
  }
}

function rejectAll(calls: readonly Pick<Call<unknown, unknown>, 'reject'>[], error: unknown): void {
  for (const { reject } of calls) reject(error);
}
