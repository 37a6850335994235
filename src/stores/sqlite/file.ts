// Owns: whether a file that is open is still the one at its path. A system lets a file be moved, deleted or
// replaced while it is open; what is written from then on would be lost with it.

import { type Stats, statSync } from 'node:fs';
import { basename } from 'node:path';

export class OpenFile {
  readonly #path: string;
  readonly #opened: Stats;

  /** @param path of a file that has just been opened. */
  constructor(path: string) {
    this.#path = path;
    this.#opened = statSync(path);
  }

  /**
   * A few microseconds of work.
   * @returns the size in bytes.
   * @throws Error that says what has become of it. Put back, the file is in place again.
   */
  assertInPlace(): number {
    const found = statSync(this.#path, { throwIfNoEntry: false });
    const name = basename(this.#path);
    if (found === undefined) throw new Error(`${name} has been moved or deleted: put it back`);
    if (found.ino !== this.#opened.ino || found.dev !== this.#opened.dev) {
      throw new Error(`${name} has been replaced: put it back, or start anew with the other one`);
    }
    return found.size;
  }
}
