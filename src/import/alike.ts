// Owns: noticing rows that are probably books that are there already: to the eye, all their texts are the same.
// Does not: notice every one in a catalogue or a file of a million books. Its memory is bounded.

import type { BookFields } from '../books/book.ts';
import { toTheEye } from '../files/alike.ts';
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
    const digest = digestOf(seen, 0x01000193);
    const isPlain = seen[0] === title && seen[1] === author;
    const exact = isPlain ? digest : digestOf([title, author, digits], 0x01000193);
    const place = digestOf(seen, 0x5bd1e995) >>> (32 - PLACE_BITS);
    const isThere = this.#toTheEye[place] === digest;
    const isAlike = isThere && this.#exact[place] !== exact;
    if (!isThere) {
      this.#toTheEye[place] = digest;
      this.#exact[place] = exact;
    }
    return isAlike;
  }
}

/** 32 bits of texts (FNV-1a, of UTF-16 code units). The texts are not joined: that would take longer than the rest. */
function digestOf(texts: readonly string[], prime: number): number {
  let digest = 0x811c9dc5 | 0;
  for (const text of texts) {
    for (let at = 0; at < text.length; at += 1) digest = Math.imul(digest ^ text.charCodeAt(at), prime);
    digest = Math.imul(digest, prime); // the end of the text
  }
  return digest;
}
