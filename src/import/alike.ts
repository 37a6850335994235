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
    const seenTitle = toTheEye(title);
    const seenAuthor = toTheEye(author);
    const seen = new Digests(seenTitle, seenAuthor, digits);
    const isPlain = seenTitle === title && seenAuthor === author;
    const exact = isPlain ? seen.one : new Digests(title, author, digits).one;
    const place = seen.other >>> (32 - PLACE_BITS);
    const isThere = this.#toTheEye[place] === seen.one;
    const isAlike = isThere && this.#exact[place] !== exact;
    if (!isThere) {
      this.#toTheEye[place] = seen.one;
      this.#exact[place] = exact;
    }
    return isAlike;
  }
}

/** Twice 32 bits of texts (FNV-1a, of UTF-16 code units). The texts are not joined: that would take longer than the rest. */
class Digests {
  one = 0x811c9dc5 | 0;
  other = 0x811c9dc5 | 0;

  constructor(title: string, author: string, year: string) {
    this.#add(title);
    this.#add(author);
    this.#add(year);
  }

  #add(text: string): void {
    let { one, other } = this;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      one = Math.imul(one ^ code, 0x01000193);
      other = Math.imul(other ^ code, 0x5bd1e995);
    }
    this.one = Math.imul(one, 0x01000193); // the end of the text
    this.other = Math.imul(other, 0x5bd1e995);
  }
}
