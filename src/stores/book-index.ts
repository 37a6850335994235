// Owns: the interface of a store's search index, for the command that maintains it. A service
// keeps its index up to date by itself.

import type { Book } from '../books/book.ts';
import { indexText } from '../books/words.ts';

/** Increase it with every change to the definition of a word or a key (`books/words.ts`, `books/folding.ts`): an index of an older version is then rebuilt. */
export const INDEX_VERSION = 3;

/** A result of `advance`: about how many books are not indexed yet. */
export type Remaining = number;

export interface BookIndex {
  /** Creates what is missing. An index of an older version is replaced: all books are then to be indexed. */
  create(): Promise<void>;

  /** Begins the first index again, whether or not there was one. */
  rebuild(): Promise<void>;

  /** @returns whether there was one. */
  remove(): Promise<boolean>;

  /**
   * Indexes some of the books that are new or have changed; the books that it has indexed stay indexed, however the process ends.
   * @throws NewerIndex
   */
  advance(): Promise<Remaining>;

  /** The number of books. */
  countBooks(): Promise<number>;

  close(): Promise<void>;
}

/** A newer version of the service, which knows other words, maintains the index. */
export class NewerIndex extends Error {
  constructor() {
    super('a newer version of the service has made it');
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
