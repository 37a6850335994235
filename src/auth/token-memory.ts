// Owns: what is known of tokens seen before, in bounded memory. What was not asked for in a long while is
// forgotten. Knows nothing of what makes a token valid.

/** Tokens remembered at most. */
const CAPACITY = 10_000;

/** Characters of a token that is remembered; those that are issued here have about 110. */
const LONGEST = 512;

/**
 * Remembers in two generations: when the young one has grown to half the capacity it becomes the old one,
 * and what was old is forgotten at once. To forget the oldest token one by one took 10 µs of each request
 * in a flood of new ones, since a Map steps over its holes to find it.
 */
export class TokenMemory<Knowledge> {
  #young = new Map<string, Knowledge>();
  #old = new Map<string, Knowledge>();

  /** @returns undefined for a token that is not remembered. */
  get(token: string): Knowledge | undefined {
    const known = this.#young.get(token);
    if (known !== undefined) return known;
    const faded = this.#old.get(token);
    if (faded !== undefined) this.set(token, faded);
    return faded;
  }

  set(token: string, knowledge: Knowledge): void {
    if (token.length > LONGEST) return;
    if (this.#young.size === CAPACITY / 2) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(token, knowledge);
  }
}
