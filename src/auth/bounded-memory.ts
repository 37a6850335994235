// Owns: a cache of bounded size, for tokens and addresses seen before. Keys that have not been used for a long time are
// dropped. Independent of the values.

/** Longest key that is kept, in characters; a token that is issued here has about 110. */
const LONGEST_KEY = 512;

/**
 * Keeps two generations: when the young one has grown to half the capacity, it becomes the old one, and the previous
 * old one is dropped at once. Dropping the oldest keys one by one took 10 µs of each request in a flood of new ones,
 * because a Map steps over its deleted entries to find the oldest.
 */
export class BoundedMemory<Knowledge> {
  readonly #capacity: number;
  #young = new Map<string, Knowledge>();
  #old = new Map<string, Knowledge>();

  /** @param capacity largest number of keys. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** @returns undefined for a key that is not there. */
  get(key: string): Knowledge | undefined {
    const known = this.#young.get(key);
    if (known !== undefined) return known;
    const faded = this.#old.get(key);
    if (faded !== undefined) this.set(key, faded);
    return faded;
  }

  set(key: string, knowledge: Knowledge): void {
    if (key.length > LONGEST_KEY) return;
    if (this.#young.size >= this.#capacity / 2) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, knowledge);
  }
}
