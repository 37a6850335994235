// Owns: the types of a book, as in the service's description.

/** A stored book. */
export interface Book {
  readonly id: number;
  readonly title: string;
  readonly author: string;
  /** A whole number within ±(2^53−1). */
  readonly year: number;
}

const EMPTY: Omit<Book, 'id'> = { title: '', author: '', year: 0 };
const FIELDS = Object.keys(EMPTY) as readonly (keyof typeof EMPTY)[];

/** The fields of a new book; those left out are empty: `''`, `''`, `0`. */
export type NewBook = Partial<Omit<Book, 'id'>>;

/** The fields that change; those left out stay. */
export type BookChanges = Partial<Omit<Book, 'id'>>;

/** A new book as it is stored: other keys are ignored. */
export function storedBook(id: number, sent: NewBook): Book {
  const fields = FIELDS.map((name) => [name, sent[name] ?? EMPTY[name]]);
  return { id, ...Object.fromEntries(fields) };
}

export function isSameBook(one: Book, other: Book): boolean {
  return one.id === other.id && FIELDS.every((name) => one[name] === other[name]);
}
