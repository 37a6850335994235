// Owns: noticing rows that are probably books that are there already: to the eye, all their texts are the same.
// Does not: notice every one in a catalogue or a file of a million books. Its memory is bounded.

import type { BookFields } from '../books/book.ts';
import { digestOf, toTheEye } from '../files/alike.ts';
import { type BulkStore, booksOf } from '../stores/bulk.ts';

/** 2^20 books are remembered, with 8 bytes each. Of two with one place, the later one is. */
const PLACE_BITS = 20;

/** Larger catalogues are not compared: reading them would take longer than most imports. */
const MOST_STORED = 100_000;

export class AlikeBooks {
  readonly #toTheEye = new Int32Array(2 ** PLACE_BITS);
  readonly #exact = new Int32Array(2 ** PLACE_BITS);

  /** Remembers the books of a store. */
  async remember(store: BulkStore): Promise<void> {
    if ((await store.count()) > MOST_STORED) return;
    for await (const books of booksOf(store)) for (const book of books) this.add(book);
  }

  /** @returns whether a different book that is the same to the eye was remembered before. */
  add({ title, author, year }: BookFields): boolean {
    const digits = String(year);
    const seen = [toTheEye(title), toTheEye(author), digits];
    const digest = digestOfAll(seen, 0x01000193);
    const isPlain = seen[0] === title && seen[1] === author;
    const exact = isPlain ? digest : digestOfAll([title, author, digits], 0x01000193);
    const place = digestOfAll(seen, 0x5bd1e995) >>> (32 - PLACE_BITS);
    const isThere = this.#toTheEye[place] === digest;
    const isAlike = isThere && this.#exact[place] !== exact;
    if (!isThere) {
      this.#toTheEye[place] = digest;
      this.#exact[place] = exact;
    }
    return isAlike;
  }
}

/** The texts are not joined: that would take longer than the rest. */
function digestOfAll(texts: readonly string[], prime: number): number {
  let digest: number | undefined;
  for (const text of texts) digest = Math.imul(digestOf(text, digest, prime), prime); // the end of the text
  return digest as number;
}
