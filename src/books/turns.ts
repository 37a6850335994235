// Owns: jobs that take turns: some at the same time, the others after them, in their order. A job whose turn does not come in
// time is refused.
// Does not: depend on what a job is about.

import { Histogram } from '../counts.ts';
import type { Times } from '../times.ts';
import { DURATIONS, OVERLOADED } from './batches.ts';
import { StoreUnavailable } from './store.ts';

/** @param deadline when no caller waits any more, on the clock of `performance.now()`: no work may begin later. */
export type Job<Result> = (deadline: number) => Promise<Result>;

export class Turns {
  readonly #most: number;
  readonly #times: Times['books'];
  readonly #late: StoreUnavailable;
  readonly #waiting: PromiseWithResolvers<void>[] = [];
  /** Jobs in progress. */
  inFlight = 0;
  /** Seconds of each job that has ended. */
  readonly durations = new Histogram(DURATIONS);

  /** @param most jobs at the same time. */
  constructor(most: number, times: Times['books']) {
    this.#most = most;
    this.#times = times;
    this.#late = new StoreUnavailable(`no answer within ${times.deadline} ms`, 'late');
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** @throws StoreUnavailable if its turn does not come in time, and then never will; or after the deadline. */
  async take<Result>(job: Job<Result>, deadline = performance.now() + this.#times.deadline): Promise<Result> {
    if (this.inFlight < this.#most) this.inFlight += 1;
    else await this.#turn(deadline);
    const late = Promise.withResolvers<never>();
    let timer: NodeJS.Timeout | undefined;
    const expire = () => {
      const left = deadline - performance.now();
      if (left <= 0) late.reject(this.#late);
      else timer = setTimeout(expire, left); // timers may run 2 ms early, when work may still begin
    };
    expire();
    try {
      return await Promise.race([this.#carryOut(job, deadline), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #turn(deadline: number): Promise<void> {
    const turn = Promise.withResolvers<void>();
    this.#waiting.push(turn);
    const timer = setTimeout(
      () => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1);
        turn.reject(OVERLOADED);
      },
      Math.min(this.#times.queue, deadline - performance.now()),
    );
    await turn.promise;
    clearTimeout(timer);
  }

  async #carryOut<Result>(job: Job<Result>, deadline: number): Promise<Result> {
    const began = performance.now();
    try {
      return await job(deadline);
    } finally {
      this.durations.observe((performance.now() - began) / 1000);
      const next = this.#waiting.shift();
      if (next === undefined) this.inFlight -= 1;
      else next.resolve();
    }
  }
}
