// Owns: carrying single calls to a store in batches. What arrives while a batch is under way forms the
// next one: no timer and no added wait; alone, a call goes as soon as the event loop has heard everyone
// of its turn, and a batch that is full goes at once. Knows nothing of books.

import { type BatchLimits, StoreUnavailable } from './store.ts';

/** Milliseconds from a call to its answer, a store that hangs or not (rule 23: within 5 s). */
const DEADLINE = 4500;

interface Batch<Item, Answer> {
  readonly items: Item[];
  readonly calls: PromiseWithResolvers<Answer>[];
  readonly deadline: NodeJS.Timeout;
  weight: number;
}

export class Batches<Item, Answer> {
  readonly #carry: (items: readonly Item[]) => Promise<readonly (Answer | Promise<Answer>)[]>;
  readonly #limits: BatchLimits;
  readonly #weigh: (item: Item) => number;
  readonly #waiting: Batch<Item, Answer>[] = [];
  #inFlight = 0;

  /**
   * @param carry answers a batch, in its order; when it rejects, so does every call of the batch.
   * @param weigh an item's weight, in the unit of the limits.
   */
  constructor(
    carry: (items: readonly Item[]) => Promise<readonly (Answer | Promise<Answer>)[]>,
    limits: BatchLimits,
    weigh: (item: Item) => number = () => 0,
  ) {
    this.#carry = carry;
    this.#limits = limits;
    this.#weigh = weigh;
  }

  /** Whether no call waits and none is under way. */
  get idle(): boolean {
    return this.#inFlight === 0 && this.#waiting.length === 0;
  }

  /** @throws StoreUnavailable after the deadline; a call that had not left by then never will. */
  call(item: Item): Promise<Answer> {
    let batch = this.#waiting.at(-1);
    if (batch === undefined || this.#isFull(batch)) batch = this.#open();
    batch.weight += this.#weigh(item);
    const call = Promise.withResolvers<Answer>();
    batch.items.push(item);
    batch.calls.push(call);
    if (this.#isFull(batch)) this.#start();
    return call.promise;
  }

  #isFull({ items, weight }: Batch<Item, Answer>): boolean {
    return items.length >= this.#limits.size || weight >= this.#limits.weight;
  }

  #open(): Batch<Item, Answer> {
    const batch: Batch<Item, Answer> = {
      items: [],
      calls: [],
      deadline: setTimeout(() => this.#expire(batch), DEADLINE),
      weight: 0,
    };
    this.#waiting.push(batch);
    setImmediate(() => this.#start());
    return batch;
  }

  #start(): void {
    while (this.#inFlight < this.#limits.inFlight) {
      const batch = this.#waiting.shift();
      if (batch === undefined) return;
      void this.#run(batch);
    }
  }

  async #run(batch: Batch<Item, Answer>): Promise<void> {
    this.#inFlight += 1;
    try {
      const answers = await this.#carry(batch.items);
      batch.calls.forEach((call, position) => {
        call.resolve(answers[position] as Answer | Promise<Answer>);
      });
    } catch (error) {
      for (const call of batch.calls) call.reject(error);
    } finally {
      clearTimeout(batch.deadline);
      this.#inFlight -= 1;
      this.#start();
    }
  }

  #expire(batch: Batch<Item, Answer>): void {
    const position = this.#waiting.indexOf(batch);
    if (position !== -1) this.#waiting.splice(position, 1);
    const late = new StoreUnavailable(`no answer within ${DEADLINE} ms`);
    for (const call of batch.calls) call.reject(late);
  }
}
