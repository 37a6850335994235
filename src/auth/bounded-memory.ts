// Owns: what is known of tokens and addresses seen before, in bounded memory. What was not asked for in a
// long while is forgotten. Knows nothing of what it remembers.

/** Characters of a key that is remembered; a token that is issued here has about 110. */
const LONGEST_KEY = 512;

/**
 * Remembers in two generations: when the young one has grown to half the capacity it becomes the old one,
 * and what was old is forgotten at once. To forget the oldest key one by one took 10 µs of each request
 * in a flood of new ones, since a Map steps over its holes to find it.
 */
export class BoundedMemory<Knowledge> {
  readonly #capacity: number;
  #young = new Map<string, Knowledge>();
  #old = new Map<string, Knowledge>();

  /** @param capacity keys remembered at most. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** @returns undefined for a key that is not remembered. */
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
