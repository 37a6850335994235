// Owns: time that passes only when a test says so: for the timers, the immediates and the monotonic clock of the code under
// test, whose jitter is the same each time. Everything else that this process does keeps the real ones.

import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';

interface Timer {
  readonly dueAt: number;
  readonly run: () => void;
}

/** Resolves once everything that can run without time or answers has run. */
const realSetImmediate = setImmediate;
export const settled = () => new Promise<void>((resolve) => realSetImmediate(resolve));

/** Its multiples are spread evenly in [0, 1). */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

export class VirtualTime {
  /** Milliseconds. It does not begin at 0, which code may take for "never". */
  now = 1_000_000;
  /** Milliseconds that timers run early: less than 2 in Node.js, which rounds their beginnings and durations. */
  early = 0;
  /** How often immediates have run. */
  turns = 0;
  readonly #timers = new Set<Timer>();
  readonly #immediates = new Set<() => void>();

  /** Timers and immediates that have not run. */
  get pending(): number {
    return this.#timers.size + this.#immediates.size;
  }

  /** Whether immediates wait, before which no time passes. */
  get isBusy(): boolean {
    return this.#immediates.size > 0;
  }

  /** Runs the immediates that wait, if any; else time passes until the next timer runs, or for less than that. */
  pass(milliseconds = Number.POSITIVE_INFINITY): void {
    if (this.isBusy) {
      const due = [...this.#immediates];
      this.#immediates.clear();
      this.turns += 1;
      for (const run of due) run();
      return;
    }
    if (this.#timers.size === 0) return;
    const dueAt = Math.min(...[...this.#timers].map((timer) => timer.dueAt));
    this.now = Math.min(dueAt, this.now + milliseconds);
    for (const timer of [...this.#timers].filter((one) => one.dueAt <= this.now)) {
      if (this.#timers.delete(timer)) timer.run();
    }
  }

  /** Carries out work by this time, with which it must end. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate } = globalThis;
    const { random } = Math;
    const promises = { ...timersPromises };
    Object.assign(globalThis, {
      setTimeout: (run: (...values: unknown[]) => void, milliseconds = 0, ...values: unknown[]) =>
        this.#after(milliseconds, () => run(...values)),
      clearTimeout: (timer: Timer) => this.#timers.delete(timer),
      setInterval: (run: () => void, milliseconds: number) => this.#every(milliseconds, run),
      clearInterval: (interval: { timer: Timer }) => this.#timers.delete(interval.timer),
      setImmediate: (run: () => void) => this.#immediates.add(run),
    });
    Object.defineProperty(performance, 'now', { configurable: true, value: () => this.now });
    Object.assign(timersPromises, {
      setTimeout: (milliseconds: number, value: unknown, { signal }: { signal?: AbortSignal } = {}) =>
        new Promise((resolve, reject) => {
          const timer = this.#after(milliseconds, () => resolve(value));
          signal?.addEventListener('abort', () => {
            this.#timers.delete(timer);
            reject(signal.reason);
          });
        }),
      setImmediate: (value: unknown) => new Promise((resolve) => this.#immediates.add(() => resolve(value))),
    });
    let jitter = 0;
    Math.random = () => {
      jitter = (jitter + GOLDEN) % 1;
      return jitter;
    };
    syncBuiltinESMExports();
    try {
      return await work();
    } finally {
      Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate });
      Math.random = random;
      Reflect.deleteProperty(performance, 'now');
      Object.assign(timersPromises, promises);
      syncBuiltinESMExports();
    }
  }

  #after(milliseconds: number, run: () => void): Timer {
    const timer = {
      dueAt: this.now + Math.max(1, milliseconds - this.early),
      run,
      unref: () => timer,
      ref: () => timer,
    };
    this.#timers.add(timer);
    return timer;
  }

  #every(milliseconds: number, run: () => void): { timer: Timer; unref(): unknown } {
    const again = () => {
      interval.timer = this.#after(milliseconds, again);
      run();
    };
    const interval = { timer: this.#after(milliseconds, again), unref: () => interval };
    return interval;
  }
}
