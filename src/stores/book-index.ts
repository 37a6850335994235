// Owns: what the search index of a store has of a book, its version, and how fast it follows.

import type { Book } from '../books/book.ts';
import { indexText } from '../books/words.ts';

/** Increase it with every change to the definition of a word or a key (`books/words.ts`, `books/folding.ts`): a service makes an index of another version again when it starts. */
export const INDEX_VERSION = 5;

/** If more books are to be indexed, a search does not wait for it: it takes longer than it may wait, or nearly (rule F11). */
export const MOST_AT_ONCE = 10_000;

/** While others write, indexing in the background leaves nine tenths of the time to them. */
export class Pace {
  #written: unknown;

  /**
   * @param step milliseconds that a step took.
   * @param written another value after every write of others.
   * @returns milliseconds until the next step.
   */
  pauseAfter(step: number, written: unknown): number {
    const isBesideOthers = written !== this.#written;
    this.#written = written;
    return isBesideOthers ? 9 * step : 0;
  }
}

/** What the index stores of a book. */
export interface IndexEntry {
  readonly id: number;
  readonly titleKey: string;
  readonly authorKey: string;
  readonly year: number;
  /** With one space in between; a word may occur more than once. */
  readonly titleWords: string;
  readonly authorWords: string;
}

export function entryOf({ id, title, author, year }: Book): IndexEntry {
  const [byTitle, byAuthor] = [indexText(title), indexText(author)];
  return {
    id,
    titleKey: byTitle.key,
    authorKey: byAuthor.key,
    year,
    titleWords: byTitle.words,
    authorWords: byAuthor.words,
  };
}
