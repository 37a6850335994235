// Owns: measuring a limit of the contract on a machine that may stand still: a virtual machine that is not run for a
// while, or a process that gets no processor.

/** Milliseconds between two looks, and how late a look must be to count as a standstill. */
const INTERVAL = 20;
const STANDSTILL = 250;

/** Measures time without the moments at which this process could not run, nor probably any other. */
export class Stopwatch {
  readonly #began = performance.now();
  readonly #timer: NodeJS.Timeout;
  #last = this.#began;
  #stoodStill = 0;

  constructor() {
    this.#timer = setInterval(() => this.#look(), INTERVAL).unref();
  }

  /** Milliseconds since it was made. */
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
