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
    const text = `${title}\0${author}\0${year}`;
    const seen = `${toTheEye(title)}\0${toTheEye(author)}\0${year}`;
    const [place, digest] = digestsOf(seen);
    const [, exact] = seen === text ? [0, digest] : digestsOf(text);
    const isThere = this.#toTheEye[place % PLACES] === digest;
    const isAlike = isThere && this.#exact[place % PLACES] !== exact;
    if (!isThere) {
      this.#toTheEye[place % PLACES] = digest;
      this.#exact[place % PLACES] = exact;
    }
    return isAlike;
  }
}

/** Twice 32 bits of a text (FNV-1a, of UTF-16 code units). */
function digestsOf(text: string): readonly [number, number] {
  let one = 0x811c9dc5;
  let other = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    one = Math.imul(one ^ code, 0x01000193);
    other = Math.imul(other ^ code, 0x5bd1e995);
  }
  return [(one ^ (one >>> 15)) >>> 0, (other ^ (other >>> 15)) >>> 0];
}
