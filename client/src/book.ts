// Owns: the types of a book, as in the service's description.

/** A stored book. */
export interface Book {
  readonly id: number;
  readonly title: string;
  readonly author: string;
  /** A whole number within ±(2^53−1). */
  readonly year: number;
}

/** The fields of a new book; those left out are empty: `''`, `''`, `0`. */
export type NewBook = Partial<Omit<Book, 'id'>>;

/** The fields that change; those left out stay. */
export type BookChanges = Partial<Omit<Book, 'id'>>;
