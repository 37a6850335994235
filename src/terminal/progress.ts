// Owns: the progress of long work on stderr: one redrawn line on a terminal, a plain line now and then in a pipe.
// Does not: print anything for short work.

import { TIMES } from '../times.ts';

/** Characters of the bar. */
const BAR_WIDTH = 24;

/** Characters in a line of a terminal that does not report its width. */
const USUAL_WIDTH = 80;

/** ANSI: goes to the beginning of the line and clears it. */
const CLEAR = '\r\u001b[K';

/** Where progress is shown. */
export interface Screen {
  readonly stderr: Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'write'>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export class Progress {
  readonly #stderr: Screen['stderr'];
  readonly #unit: string;
  readonly #total: number | undefined;
  readonly #isDrawn: boolean;
  readonly #characters: readonly [done: string, open: string];
  readonly #begin = performance.now();
  /** When progress was last printed. */
  #said = this.#begin;
  /** Whether the bar is on the terminal now. */
  #isStanding = false;

  /**
   * @param unit what is counted, such as `books`.
   * @param total the amount of work, in the measure of `done` in `at`; undefined if unknown.
   */
  constructor({ stderr, env }: Screen, unit: string, total?: number) {
    this.#stderr = stderr;
    this.#unit = unit;
    this.#total = total;
    this.#isDrawn = stderr.isTTY === true && env.TERM !== 'dumb';
    // The first of these variables that is set names the locale, and with it what the terminal can show.
    const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || '';
    this.#characters = /utf-?8/i.test(locale) ? ['█', '░'] : ['#', '.'];
  }

  /**
   * Prints the progress; costs next to nothing when it is too early to print again.
   * @param done how much of the total, such as bytes.
   * @param count how many units.
   */
  at(done: number, count = done): void {
    const now = performance.now();
    if (now - this.#said < (this.#isDrawn ? TIMES.terminal.draw : TIMES.terminal.line)) return;
    this.#said = now;
    const parts = this.#parts(done, count, (now - this.#begin) / 1000);
    if (!this.#isDrawn) {
      this.#stderr.write(`${parts.join('  ')}\n`);
      return;
    }
    // The last column stays free: some terminals begin a new line after it.
    this.#stderr.write(`${CLEAR}${this.#fit(done, parts, (this.#stderr.columns || USUAL_WIDTH) - 1)}`);
    this.#isStanding = true;
  }

  /** Prints a line; the next `at` draws the bar below it. */
  line(text: string): void {
    this.#clear();
    this.#stderr.write(`${text}\n`);
  }

  /** Removes the bar. Call it before anything else is printed. */
  end(): void {
    this.#clear();
  }

  /** @returns the parts of the line, the most important first. */
  #parts(done: number, count: number, seconds: number): string[] {
    const counted = `${count.toLocaleString('en-US')} ${this.#unit}`;
    const rate = `${Math.round(count / seconds).toLocaleString('en-US')}/s`;
    if (!this.#total) return [counted, rate];
    const part = Math.min(1, done / this.#total);
    const left = part > 0 ? [`${duration((seconds / part) * (1 - part))} left`] : [];
    return [`${Math.floor(part * 100)} %`, counted, rate, ...left];
  }

  /** Leaves out what does not fit: first the bar, then parts from the end. */
  #fit(done: number, parts: readonly string[], width: number): string {
    const whole = parts.join('  ');
    if (this.#total && BAR_WIDTH + 1 + whole.length <= width) {
      const filled = Math.round(Math.min(1, done / this.#total) * BAR_WIDTH);
      const [full, open] = this.#characters;
      return `${full.repeat(filled)}${open.repeat(BAR_WIDTH - filled)} ${whole}`;
    }
    return whole.length <= width || parts.length === 1
      ? whole.slice(0, Math.max(0, width))
      : this.#fit(done, parts.slice(0, -1), width);
  }

  #clear(): void {
    if (this.#isStanding) this.#stderr.write(CLEAR);
    this.#isStanding = false;
  }
}

/** Such as `2 s`, `3 min` or `1 h 5 min`. */
function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
