// Owns: work in steps, between which it says how far it is and looks whether it shall stop.

import { Progress, type Screen } from './progress.ts';

export class StepProgress {
  readonly #screen: Screen;
  #isStopped = false;
  #unit = '';
  #progress: Progress | undefined;

  /** @param stop resolves when the work shall stop. */
  constructor(screen: Screen, stop: Promise<unknown>) {
    this.#screen = screen;
    stop.then(() => {
      this.#isStopped = true;
    });
  }

  /**
   * Between two steps. Each unit is counted anew.
   * @throws Error when the work shall stop.
   */
  at(unit: string, done: number, total: number): void {
    if (this.#isStopped) throw new Error('stopped');
    if (unit !== this.#unit) {
      this.end();
      this.#unit = unit;
      this.#progress = new Progress(this.#screen, unit, total);
    }
    this.#progress?.at(done);
  }

  /** To be called before anything else is printed. */
  end(): void {
    this.#progress?.end();
  }
}
