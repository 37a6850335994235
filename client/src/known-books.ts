// Owns: changes of a book that take effect only if it still is as the caller expects it, by the tags of the service's answers.

import { type Book, isSameBook } from './book.ts';
import type { CallOptions, Connection } from './connection.ts';
import { BookChanged, CatalogueError } from './errors.ts';
import { isNoBook } from './pages.ts';
import { type Answer, dataOf, type Request } from './request.ts';

export interface ChangeOptions extends CallOptions {
  /** The book as the program last read it. The call takes effect only if the stored book still equals it. */
  readonly expected?: Book;
}

/** Of an answer without a tag, or with one that the service refuses although the book is as it was. */
const ALTERED = 'a proxy changes the header ETag, which makes a change safe';

export class KnownBooks {
  readonly #connection: Connection;
  /** Books as the service has answered them, with their tags: a change of one of them need not read it first. */
  readonly #tagged = new WeakMap<Book, { readonly tag: string; readonly answered: Book }>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Sends a change, or finds that the book is not the expected one, and has the answer that says the outcome. */
  async change(request: Request, options: ChangeOptions = {}): Promise<Answer> {
    const { expected, ...others } = options;
    if (expected === undefined) {
      // The caller asks for a protection that the book would not have.
      if ('expected' in options) throw new TypeError('expected is undefined: leave it out, or pass a book');
      return this.#connection.call(request, others);
    }
    return this.#connection.within(others, async (send) => {
      const read = { method: 'GET', url: request.url } as const;
      let tag = this.#tagOf(expected);
      if (tag === undefined) {
        const before = await send(read);
        if (before.status !== 200) return before;
        const stored = this.bookOf(before, 200);
        if (!isSameBook(stored, expected)) throw new BookChanged('Precondition failed', stored, before);
        tag = this.#tagOf(stored);
        if (tag === undefined) throw new CatalogueError(ALTERED, before);
      }
      const answer = await send({ ...request, headers: { 'if-match': tag } });
      if (answer.status !== 412) return answer;
      const after = await send(read);
      if (isNoBook(after)) return { ...after, mayBeDone: answer.mayBeDone };
      const current = after.status === 200 && after.data !== undefined ? this.bookOf(after, 200) : undefined;
      const changes = typeof request.body === 'string' ? JSON.parse(request.body) : {};
      const wanted = { ...expected, ...changes, id: expected.id };
      const isAsWanted = current !== undefined && request.body !== undefined && isSameBook(current, wanted);
      if (isAsWanted && answer.mayBeDone) return after;
      // Some runtimes repeat a request by themselves: its first attempt may have made the book so.
      const mayBeDone = answer.mayBeDone || isAsWanted;
      if (current !== undefined && isSameBook(current, expected))
        throw new CatalogueError(ALTERED, { ...after, mayBeDone });
      throw new BookChanged(answer.message, current, { ...answer, mayBeDone });
    });
  }

  /**
   * If-Match takes only strong tags. A proxy that compresses an answer makes its tag a weak one, although the service
   * gives each content its own tag. The service ignores all else that such proxies add.
   */
  bookOf(answer: Answer, status: number): Book {
    const book = dataOf(answer, status) as Book;
    const tag = answer.headers?.get('etag')?.replace(/^W\//, '');
    if (tag !== undefined) this.#tagged.set(book, { tag, answered: { ...book } });
    return book;
  }

  /** @returns undefined for a book that is not known from an answer, or that the caller has changed since. */
  #tagOf(book: Book): string | undefined {
    const { tag, answered } = this.#tagged.get(book) ?? {};
    return answered !== undefined && isSameBook(book, answered) ? tag : undefined;
  }
}
