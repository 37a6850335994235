// Owns: which blocks of the project's code have been executed, as V8 counts them. Code that was loaded before `start` is
// not counted.

import { type Profiler, Session } from 'node:inspector';
import { pathToFileURL } from 'node:url';
import { pathTo } from '../support/repository.ts';

/** How often each executed block has been executed, by the block's number. */
export type Counts = ReadonlyMap<number, number>;

type Range = Profiler.CoverageRange;

const COUNTED = ['src/', 'page/', 'client/'].map((folder) => pathToFileURL(pathTo(folder)).href);

export class Coverage {
  readonly #session = new Session();
  /** The numbers of the blocks that were ever reported, of each function by its place. */
  readonly #blocks = new Map<string, Map<string, { readonly number: number; readonly block: Range }>>();
  #number = 0;

  start(): void {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** The number of all blocks of the functions that have been executed. */
  get known(): number {
    return this.#number;
  }

  /** What has been executed since the last call. */
  take(): Counts {
    const counts = new Map<number, number>();
    this.#session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      if (error !== null) throw error;
      for (const { url, functions } of result) {
        if (!COUNTED.some((folder) => url.startsWith(folder))) continue;
        for (const { ranges } of functions) this.#count(url, ranges, counts);
      }
    });
    return counts;
  }

  /** A block that is not reported has been executed as often as the one around it: V8 leaves it out. */
  #count(url: string, ranges: readonly Range[], counts: Map<number, number>): void {
    const [whole] = ranges as [Range];
    if (whole.count === 0) return;
    const place = `${url}:${whole.startOffset}`;
    const blocks = this.#blocks.get(place) ?? new Map();
    this.#blocks.set(place, blocks);
    for (const block of ranges) {
      const key = `${block.startOffset}-${block.endOffset}`;
      if (blocks.has(key)) continue;
      this.#number += 1;
      blocks.set(key, { number: this.#number, block });
    }
    for (const { number, block } of blocks.values()) {
      let { count } = whole;
      // Outer ranges come before inner ones.
      for (const range of ranges) {
        if (range.startOffset <= block.startOffset && range.endOffset >= block.endOffset) count = range.count;
      }
      if (count > 0) counts.set(number, count);
    }
  }
}
