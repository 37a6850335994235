// Owns: large sets of ids: a million of them take 2 MB if they follow each other, and 40 MB if they do not.

/** Ids from the first to the last one. */
export interface IdRange {
  readonly first: number;
  readonly last: number;
}

/** Ids that share one entry, as the bits of its number. */
const GROUP = 32;

/** Has each id once, and goes through them in their order. */
export class Ids {
  readonly #groups = new Map<number, number>();
  /** The keys of the groups, ascending; undefined after an addition. */
  #order: Float64Array | undefined;
  /** The groups before this position have no id after `#after`. */
  #position = 0;
  #after = 0;
  #count = 0;
  /** How many ids the caller asks for together. */
  together = Number.POSITIVE_INFINITY;

  constructor(ranges: Iterable<IdRange> = []) {
    for (const range of ranges) this.add(range);
  }

  get count(): number {
    return this.#count;
  }

  add({ first, last }: IdRange): void {
    for (let id = first; id <= last; id += 1) {
      const key = Math.floor(id / GROUP);
      const before = this.#groups.get(key) ?? 0;
      const after = before | (1 << (id % GROUP));
      if (after === before) continue;
      this.#groups.set(key, after);
      this.#count += 1;
    }
    this.#order = undefined;
  }

  /** @returns the next ids after this one; none at the end. */
  next(after: number, most: number): number[] {
    this.#order ??= Float64Array.from(this.#groups.keys()).sort();
    if (after < this.#after) this.#position = 0; // a transaction is carried out again
    this.#after = after;
    const ids: number[] = [];
    for (let at = this.#position; at < this.#order.length && ids.length < most; at += 1) {
      const key = this.#order[at] as number;
      const bits = this.#groups.get(key) as number;
      if ((key + 1) * GROUP <= after) this.#position = at + 1;
      for (let id = Math.max(key * GROUP, after + 1); id < (key + 1) * GROUP && ids.length < most; id += 1)
        if ((bits & (1 << (id % GROUP))) !== 0) ids.push(id);
    }
    return ids;
  }
}
