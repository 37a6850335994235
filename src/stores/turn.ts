// Owns: when long work on the main thread lets other work run.

import { setImmediate as nextTurn } from 'node:timers/promises';

export class Turn {
  readonly #time: number;
  #end: number;

  /** @param time milliseconds of work before other work runs. */
  constructor(time: number) {
    this.#time = time;
    this.#end = performance.now() + time;
  }

  get isOver(): boolean {
    return performance.now() >= this.#end;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.#end = performance.now() + this.#time;
  }
}
