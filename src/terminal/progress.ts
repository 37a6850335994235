// Owns: the progress of long work: one line on a terminal, drawn again and again.
// Does not: print anything for short work, or into a pipe.

import { TIMES } from '../times.ts';
import { writeLine } from './printable.ts';

/** Characters in a line of a terminal that does not report its width. */
const USUAL_WIDTH = 80;

/** ANSI: goes to the beginning of the line and clears it. */
const CLEAR = '\r\u001b[K';

export interface Screen {
  readonly stderr: Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'write'>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export class Progress {
  readonly #stderr: Screen['stderr'];
  readonly #isShown: boolean;
  #drawnAt = performance.now();
  #isStanding = false;

  constructor({ stderr, env }: Screen) {
    this.#stderr = stderr;
    this.#isShown = stderr.isTTY === true && env.TERM !== 'dumb'; // which cannot clear a line
  }

  /**
   * Draws the line; costs next to nothing when it is too early to draw it again.
   * @param total the amount of work, in the measure of `done`; undefined if unknown.
   * @param count how many units are done.
   */
  at(unit: string, done: number, total: number | undefined, count = done): void {
    if (!this.#isShown || performance.now() - this.#drawnAt < TIMES.terminal.draw) return;
    this.#drawnAt = performance.now();
    const part = total ? `${Math.min(100, Math.floor((100 * done) / total))} %  ` : '';
    const line = `${part}${count.toLocaleString('en-US')} ${unit}`;
    // The last column stays free: some terminals begin a new line after it.
    this.#stderr.write(CLEAR + line.slice(0, (this.#stderr.columns || USUAL_WIDTH) - 1));
    this.#isStanding = true;
  }

  /** Prints a line; the next `at` draws below it. */
  line(text: string): void {
    this.end();
    writeLine(this.#stderr, text);
  }

  /** Clears the line. Call it before anything else is printed. */
  end(): void {
    if (this.#isStanding) this.#stderr.write(CLEAR);
    this.#isStanding = false;
  }
}
