// Owns: noticing rows that are probably books that are there already: to the eye, all their texts are the same.
// Does not: notice every one in a catalogue or a file of a million books. Its memory is bounded.

import type { BookFields } from '../books/book.ts';
import { toTheEye } from '../files/alike.ts';
import { type BulkStore, booksOf } from '../stores/bulk.ts';

/** Books that are remembered, 8 bytes each. Of two with one place, the later one is. */
const PLACES = 2 ** 20;

/** Larger catalogues are not compared: reading them would take longer than most imports. */
const MOST_STORED = 100_000;

export class AlikeBooks {
  readonly #toTheEye = new Uint32Array(PLACES);
  readonly #exact = new Uint32Array(PLACES);

  /** Remembers the books of a store. */
  async remember(store: BulkStore): Promise<void> {
    if ((await store.count()) > MOST_STORED) return;
    for await (const books of booksOf(store)) for (const book of books) this.add(book);
  }

  /** @returns whether a different book that is the same to the eye was remembered before. */
  add({ title, author, year }: BookFields): boolean {
    const seen = `${toTheEye(title)}\0${toTheEye(author)}\0${year}`;
    const place = digestOf(seen, 0x01000193) % PLACES;
    const digest = digestOf(seen, 0x5bd1e995);
    const exact = digestOf(`${title}\0${author}`, 0x01000193);
    const isThere = this.#toTheEye[place] === digest;
    const isAlike = isThere && this.#exact[place] !== exact;
    if (!isThere) {
      this.#toTheEye[place] = digest;
      this.#exact[place] = exact;
    }
    return isAlike;
  }
}

/** 32 bits of a text (FNV-1a, of UTF-16 code units). */
function digestOf(text: string, factor: number): number {
  let digest = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) digest = Math.imul(digest ^ text.charCodeAt(at), factor);
  return (digest ^ (digest >>> 15)) >>> 0;
}
