// Owns: how fast books are indexed, measured on the latest ones.

export class Pace {
  readonly #many: number;
  /** Milliseconds; 0 if it is not known. */
  #perBook = 0;

  /** @param many of a smaller number of books, most of the time is that of the transaction. */
  constructor(many: number) {
    this.#many = many;
  }

  /** @param time in which these books were indexed: milliseconds. */
  learn(books: number, time: number): void {
    if (books >= this.#many) this.#perBook = time / books;
  }

  forget(): void {
    this.#perBook = 0;
  }

  /** How many books are indexed in so many milliseconds; Infinity if that is not known. */
  booksIn(time: number): number {
    return time <= 0 ? 0 : time / this.#perBook;
  }
}
