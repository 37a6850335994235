// Owns: large sets of ids, as ranges: an import has a million of them one after the other.

/** Ids from the first to the last one. */
export interface IdRange {
  readonly first: number;
  readonly last: number;
}

/** Goes through ids in their order. */
export class Ids {
  /** Each id once, in as few ranges as possible. */
  readonly #ranges: { first: number; last: number }[] = [];
  /** The ranges before this position have no id after `#after`. */
  #position = 0;
  #after = 0;
  /** How many ids the caller asks for together. */
  together = Number.POSITIVE_INFINITY;

  /** @param ranges in any order. */
  constructor(ranges: readonly IdRange[]) {
    for (const { first, last } of ranges.toSorted((one, other) => one.first - other.first)) {
      const before = this.#ranges.at(-1);
      if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
      else this.#ranges.push({ first, last });
    }
  }

  get count(): number {
    return this.#ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  }

  /** @returns the next ids after this one; none at the end. */
  next(after: number, most: number): number[] {
    if (after < this.#after) this.#position = 0; // a transaction is carried out again
    this.#after = after;
    const ids: number[] = [];
    for (let at = this.#position; at < this.#ranges.length && ids.length < most; at += 1) {
      const { first, last } = this.#ranges[at] as IdRange;
      if (last <= after) this.#position = at + 1;
      for (let id = Math.max(first, after + 1); id <= last && ids.length < most; id += 1) ids.push(id);
    }
    return ids;
  }
}
