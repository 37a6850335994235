// Owns: whether an open file is still the one at its path. A file can be moved, deleted or replaced while it is open;
// later writes would be lost with it.

import { type Stats, statSync } from 'node:fs';
import { basename } from 'node:path';

export class OpenFile {
  readonly path: string;
  readonly #opened: Stats;

  /** @param path of a file that has just been opened. */
  constructor(path: string) {
    this.path = path;
    this.#opened = statSync(path);
  }

  /**
   * Takes a few microseconds.
   * @returns the size in bytes.
   * @throws Error with what happened to the file. A file that is put back is in place again.
   */
  assertInPlace(): number {
    const found = statSync(this.path, { throwIfNoEntry: false });
    const name = basename(this.path);
    if (found === undefined) throw new Error(`${name} has been moved or deleted: put it back`);
    if (found.ino !== this.#opened.ino || found.dev !== this.#opened.dev) {
      throw new Error(`${name} has been replaced: put it back, or start again with the new one`);
    }
    return found.size;
  }
}

/** The file of a store that is open for writing, its WAL, which has the latest commits, and the index of the WAL. */
export class OpenStore {
  readonly #files: readonly OpenFile[];

  constructor(path: string) {
    this.#files = ['', '-wal', '-shm'].map((suffix) => new OpenFile(`${path}${suffix}`));
  }

  /** @throws Error with what happened to one of them: what is committed now would be lost. */
  assertInPlace(): void {
    const [size] = this.#files.map((file) => file.assertInPlace());
    if (size === 0) throw new Error('the file has been emptied: restore it and start again');
  }
}
