// Owns: measuring a timeout of the contract on a machine that may stall: a virtual machine that is paused for a while,
// or a process that gets no processor time.

/** Milliseconds between two ticks, and by which a tick must be late to count as a stall. */
const INTERVAL = 20;
const STANDSTILL = 250;

/** Measures time without the stalls of this process, during which others could probably not run either. */
export class Stopwatch {
  readonly #began = performance.now();
  readonly #timer: NodeJS.Timeout;
  #last = this.#began;
  #stoodStill = 0;

  constructor() {
    this.#timer = setInterval(() => this.#look(), INTERVAL).unref();
  }

  /** Milliseconds since it was created, without stalls. */
  read(): number {
    this.#look();
    return this.#last - this.#began - this.#stoodStill;
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
