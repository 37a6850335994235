// Owns: the interface of the index by which a store's books are found, for the command that maintains it. A service
// keeps its index up to date by itself.

/** Grows with every change of what is a word or a key (`books/words.ts`): an index of an older version is made anew. */
export const INDEX_VERSION = 1;

/** A result of `advance`: about how many books are not indexed yet. */
export type Remaining = number;

export interface BookIndex {
  /** Creates what is missing. An index of an older version is replaced: all books are then to be indexed. */
  create(): Promise<void>;

  /** @returns whether there was one. */
  remove(): Promise<boolean>;

  /** Indexes some of the books that are new or have changed; what it has indexed stays, however the process ends. */
  advance(): Promise<Remaining>;

  /**
   * Compares the index with all books, read anew, as of one moment.
   * @param onProgress called with the number of books compared so far; an error that it throws ends the work.
   * @returns the first difference, in words; undefined if there is none.
   */
  firstDifference(onProgress: (books: number) => void): Promise<string | undefined>;

  /** The number of books. */
  countBooks(): Promise<number>;

  close(): Promise<void>;
}

/** What is stored of a book in the index. */
export interface IndexRow {
  readonly id: number;
  readonly titleKey: string;
  readonly authorKey: string;
  readonly year: number;
}

/** @returns the difference between two rows of one book, in words; undefined if they are equal. */
export function differenceOf(found: IndexRow | undefined, expected: IndexRow): string | undefined {
  const { id } = expected;
  if (found === undefined) return `book ${id} is not in the index`;
  for (const name of ['titleKey', 'authorKey', 'year'] as const) {
    if (found[name] !== expected[name]) {
      return `book ${id} is indexed with ${NAMES[name]} ${JSON.stringify(found[name])} instead of ${JSON.stringify(expected[name])}`;
    }
  }
  return undefined;
}

const NAMES = { titleKey: 'the title', authorKey: 'the author', year: 'the year' };
