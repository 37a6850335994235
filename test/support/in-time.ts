// Owns: tests of the service's timeouts. A machine can always be too slow for what must happen before one expires; then
// the attempt proves nothing and is repeated. And it may stall: a virtual machine that is paused for a while, or a
// process that gets no processor time.

import { readFileSync } from 'node:fs';

/** Marks the earliest moment at which the service's timeout may start. */
export type StartClock = () => void;

/**
 * Repeats an attempt until it succeeds. An attempt that fails before the timeout can have expired is a failure; one
 * that fails later may have met the timeout.
 * @param limit the timeout, in milliseconds.
 * @param attempt starts the clock before it does what starts the timeout.
 */
export async function inTime(
  limit: number,
  attempt: (startClock: StartClock) => Promise<void>,
): Promise<void> {
  for (;;) {
    let began = Number.POSITIVE_INFINITY;
    try {
      return await attempt(() => {
        began = performance.now();
      });
    } catch (error) {
      const took = performance.now() - began;
      if (took < limit) throw error;
      console.error(
        `retrying, since it took ${Math.round(took)} ms and the timeout is ${limit} ms: ${error}`,
      );
    }
  }
}

/** Milliseconds between two ticks; a tick that is as late as this counts as a stall. */
const INTERVAL = 20;
const STANDSTILL = 250;

/**
 * Measures time without the stalls of this process, during which others could probably not run either. On Linux, that is all
 * time in which its main thread was ready to run and no core was free.
 */
export class Stopwatch {
  readonly #began = performance.now();
  readonly #delayedBefore = delayed();
  readonly #timer: NodeJS.Timeout;
  #last = this.#began;
  #stoodStill = 0;

  constructor() {
    this.#timer = setInterval(() => this.#look(), INTERVAL).unref();
  }

  /** Milliseconds since it was created, without stalls. */
  read(): number {
    this.#look();
    return this.#last - this.#began - Math.max(this.#stoodStill, delayed() - this.#delayedBefore);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = performance.now();
    const late = now - this.#last - INTERVAL;
    if (late > STANDSTILL) this.#stoodStill += late;
    this.#last = now;
  }
}

/** Milliseconds in all that this process's main thread has waited for a core; 0 if the system does not say. */
function delayed(): number {
  if (process.platform !== 'linux') return 0;
  const [, nanoseconds] = readFileSync('/proc/self/schedstat', 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}
