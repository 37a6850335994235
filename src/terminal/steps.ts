// Owns: the progress of work that is done in steps, and stopping it between two of them.

import { Progress, type Screen } from './progress.ts';

export class StepProgress {
  readonly #screen: Screen;
  readonly #signal: AbortSignal;
  #unit = '';
  #progress: Progress | undefined;

  /** @param signal aborts when the work must stop. */
  constructor(screen: Screen, signal: AbortSignal) {
    this.#screen = screen;
    this.#signal = signal;
  }

  /**
   * Call it between two steps. The count starts again with each new unit.
   * @throws Error when the work must stop.
   */
  at(unit: string, done: number, total: number): void {
    if (this.#signal.aborted) throw new Error('stopped');
    if (unit !== this.#unit) {
      this.end();
      this.#unit = unit;
      this.#progress = new Progress(this.#screen, unit, total);
    }
    this.#progress?.at(done);
  }

  /** Call it before anything else is printed. */
  end(): void {
    this.#progress?.end();
  }
}
