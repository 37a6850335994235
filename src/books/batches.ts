// Owns: sending single calls to a store in batches. Calls that arrive while a batch is in progress form the next one:
// no timer and no added wait. Without load, a call is sent at the end of its turn of the event loop; a full batch is
// sent at once. A call that is not sent in time is refused. Calls that the store leaves out of a batch, since the answers
// before them are large, go behind those that wait. Calls for different places are sent apart. Independent of books.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { Histogram } from '../metrics/prometheus.ts';
import type { Times } from '../times.ts';
import { type Left, type Place, StoreUnavailable } from './store.ts';

export interface BatchLimits {
  /** Items in one batch. */
  readonly size: number;
  /** Total weight of the items in one batch, without the last one. */
  readonly weight: number;
  /** Batches in progress at the same time, for each server of the store. */
  readonly inFlight: number;
}

interface Batch<Item, Answer> {
  readonly place: Place;
  readonly items: Item[];
  readonly calls: PromiseWithResolvers<Answer>[];
  /** When its calls are given up, on the clock of `performance.now()`. */
  readonly deadline: number;
  timer: NodeJS.Timeout;
  weight: number;
}

/** Of a store that does not say where an item is. */
const HERE: Place = { server: 0 };

const OVERLOADED = new StoreUnavailable('more calls wait than the store can answer in time', 'overload');

const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Seconds. */
const DURATIONS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];

/** The figures of batches at any moment. */
export type BatchFigures = Pick<Batches<never, unknown>, 'waiting' | 'inFlight' | 'sizes' | 'durations'>;

/**
 * Sends a batch and returns its answers in its order. The answer to an item that must wait longer may be a promise. At least
 * one item is not left out.
 * @param deadline when no caller waits any more, on the clock of `performance.now()`: no work may begin later.
 */
export type Carry<Item, Answer> = (
  items: readonly Item[],
  deadline: number,
) => Promise<readonly (Answer | Promise<Answer> | Left)[]>;

/** What counts of the items and answers of a batch, if it does. */
export interface Traits<Item, Answer> {
  /** Weights in the unit of the limits. */
  readonly weigh?: (item: Item) => number;
  readonly weighAnswer?: (answer: Answer) => number;
  /** Where an item is: the same object for items that may be in one batch. */
  readonly placeOf?: (item: Item) => Place | undefined;
}

export class Batches<Item, Answer> {
  readonly #carry: Carry<Item, Answer>;
  readonly #limits: BatchLimits;
  readonly #times: Times['books'];
  readonly #late: StoreUnavailable;
  readonly #traits: Traits<Item, Answer>;
  readonly #waiting: Batch<Item, Answer>[] = [];
  /** Batches in progress, by the server of their place. */
  readonly #inFlight = new Map<number, number>();
  /** Of all batches that have ended, failed ones included: their items, and their duration in seconds. */
  readonly sizes = new Histogram(SIZES);
  readonly durations = new Histogram(DURATIONS);

  /**
   * @param carry answers a batch, in its order; if it rejects, so does every call of the batch.
   */
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
    return this.#waiting.reduce((calls, { items }) => calls + items.length, 0);
  }

  get inFlight(): number {
    return [...this.#inFlight.values()].reduce((all, batches) => all + batches, 0);
  }

  /**
   * @throws StoreUnavailable if the call is not sent in time, and then never will be; or after the deadline.
   */
  call(item: Item): Promise<Answer> {
    const place = this.#traits.placeOf?.(item) ?? HERE;
    let batch = this.#waiting.findLast((waiting) => waiting.place === place);
    if (batch === undefined || this.#isFull(batch)) batch = this.#open(place);
    batch.weight += this.#traits.weigh?.(item) ?? 0;
    const call = Promise.withResolvers<Answer>();
    batch.items.push(item);
    batch.calls.push(call);
    if (this.#isFull(batch)) this.#start();
    return call.promise;
  }

  #isFull({ items, weight }: Batch<Item, Answer>): boolean {
    return items.length >= this.#limits.size || weight >= this.#limits.weight;
  }

  #open(place: Place): Batch<Item, Answer> {
    const { deadline, queue } = this.#times;
    const batch: Batch<Item, Answer> = {
      place,
      items: [],
      calls: [],
      deadline: performance.now() + deadline,
      timer: setTimeout(() => this.#expire(batch), queue),
      weight: 0,
    };
    this.#waiting.push(batch);
    setImmediate(() => this.#start());
    return batch;
  }

  #start(): void {
    for (;;) {
      const next = this.#waiting.findIndex(({ place }) => this.#inFlightAt(place) < this.#limits.inFlight);
      const [batch] = next === -1 ? [] : this.#waiting.splice(next, 1);
      if (batch === undefined) return;
      void this.#run(batch);
    }
  }

  #inFlightAt({ server }: Place): number {
    return this.#inFlight.get(server) ?? 0;
  }

  async #run(batch: Batch<Item, Answer>): Promise<void> {
    const { place } = batch;
    this.#inFlight.set(place.server, this.#inFlightAt(place) + 1);
    const began = performance.now();
    let carried = batch.items.length;
    try {
      const late: Promise<void>[] = [];
      const left = await this.#carryOut(batch.items, batch.calls, batch.deadline, late);
      carried -= left.length;
      if (left.length > 0) this.#waitAgain(batch, left);
      if (late.length === 0) clearTimeout(batch.timer);
      else void Promise.all(late).then(() => clearTimeout(batch.timer));
    } finally {
      this.sizes.observe(carried);
      this.durations.observe((performance.now() - began) / 1000);
      this.#inFlight.set(place.server, this.#inFlightAt(place) - 1);
      this.#start();
    }
  }

  /**
   * Settles calls. If the store refuses a batch for something in it, its halves are carried out apart, and so on, until the
   * refused calls are alone.
   * @param late gets the calls that are settled later.
   * @returns the positions of the calls that were left out.
   */
  async #carryOut(
    items: readonly Item[],
    calls: readonly PromiseWithResolvers<Answer>[],
    deadline: number,
    late: Promise<void>[],
  ): Promise<readonly number[]> {
    const rejectAll = (error: unknown) => {
      for (const call of calls) call.reject(error);
      return [];
    };
    if (performance.now() >= deadline) return rejectAll(this.#late);
    try {
      return await this.#settle(calls, await this.#carry(items, deadline), late);
    } catch (error) {
      const isRefused = error instanceof StoreUnavailable && error.kind === 'refused';
      if (!isRefused || items.length === 1) return rejectAll(error);
      const half = items.length >> 1;
      const left = await this.#carryOut(items.slice(0, half), calls.slice(0, half), deadline, late);
      const more = await this.#carryOut(items.slice(half), calls.slice(half), deadline, late);
      return [...left, ...more.map((position) => half + position)];
    }
  }

  /** Lets other work run between large answers: their callers make texts of them. */
  async #settle(
    calls: readonly PromiseWithResolvers<Answer>[],
    answers: readonly (Answer | Promise<Answer> | Left)[],
    late: Promise<void>[],
  ): Promise<readonly number[]> {
    // All at once, since one may fail while other work runs. A call is not resolved with the promise itself, because the
    // deadline must still be able to reject it.
    for (const [position, { resolve, reject }] of calls.entries()) {
      const answer = answers[position];
      if (answer instanceof Promise) late.push(answer.then(resolve, reject));
    }
    const left: number[] = [];
    let weight = 0;
    for (const [position, call] of calls.entries()) {
      const answer = answers[position] as Answer | Promise<Answer> | Left;
      if (answer === null) {
        left.push(position);
      } else if (!(answer instanceof Promise)) {
        call.resolve(answer);
        weight += this.#traits.weighAnswer?.(answer) ?? 0;
        if (weight >= this.#limits.weight) {
          weight = 0;
          await nextTurn();
        }
      }
    }
    return left;
  }

  /** Puts the calls at these positions behind those that wait. No call joins them, since their deadline comes first. */
  #waitAgain({ place, items, calls, deadline }: Batch<Item, Answer>, positions: readonly number[]): void {
    const batch: Batch<Item, Answer> = {
      place,
      items: positions.map((position) => items[position] as Item),
      calls: positions.map((position) => calls[position] as PromiseWithResolvers<Answer>),
      deadline,
      timer: setTimeout(() => this.#expire(batch), Math.min(this.#times.queue, deadline - performance.now())),
      weight: Number.POSITIVE_INFINITY,
    };
    this.#waiting.push(batch);
  }

  /** Refuses the calls of a batch that still waits; of one that was sent, gives them up at its deadline. */
  #expire(batch: Batch<Item, Answer>): void {
    const rejectAll = (error: StoreUnavailable) => {
      for (const call of batch.calls) call.reject(error);
    };
    const position = this.#waiting.indexOf(batch);
    if (position === -1) {
      batch.timer = setTimeout(rejectAll, batch.deadline - performance.now(), this.#late);
    } else {
      this.#waiting.splice(position, 1);
      rejectAll(OVERLOADED);
    }
  }
}
