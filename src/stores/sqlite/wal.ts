// Owns: how long the write-ahead log (WAL) may become, and waiting while it is too long.

import { setTimeout as pause } from 'node:timers/promises';
import { sizeOf } from '../../disk.ts';
import type { Times } from '../../times.ts';

/** Bytes that it keeps on disk once it has started over. */
export const WAL_SIZE = 64 * 1024 * 1024;

/** Bytes beyond which new lists and searches wait for those in progress: half more than it keeps. */
export const LONG_WAL = 96 * 1024 * 1024;

/** Bytes beyond which all lists break off once one has been open for long. */
export const HUGE_WAL = 1024 * 1024 * 1024;

export const walOf = (path: string) => `${path}-wal`;

/** @returns the bytes of a file by a name; nothing if the system does not say. */
export function sizeAt(name: string, path: string): Record<string, number> {
  try {
    return { [name]: sizeOf(path) };
  } catch {
    return {};
  }
}

export class Wal {
  readonly #path: string;
  readonly #times: Times['sqlite'];
  /** Nothing waits before this moment. */
  #waitsAt = 0;

  /** @param path of the file of the catalogue. */
  constructor(path: string, times: Times['sqlite']) {
    this.#path = walOf(path);
    this.#times = times;
  }

  /** Bytes; 0 if the system does not say. */
  get size(): number {
    return sizeAt('wal', this.#path).wal ?? 0;
  }

  /**
   * While the WAL is too long, lets the lists and searches in progress end first: it starts over once nobody reads from it.
   * If that does not help, nothing waits again for a while.
   */
  async shorter(): Promise<void> {
    const { walWait, walStep, walWaitPause } = this.#times;
    if (performance.now() < this.#waitsAt) return;
    const end = performance.now() + walWait;
    while (this.size > LONG_WAL) {
      if (performance.now() > end) {
        this.#waitsAt = end + walWaitPause;
        return;
      }
      await pause(walStep);
    }
  }
}
