// Owns: reading the list's envelope as it arrives, in pieces of any size, with memory for one piece and one book.

import type { Book } from './book.ts';
import type { Deadline } from './deadline.ts';
import { CatalogueError } from './errors.ts';
import type { Answer } from './request.ts';

const QUOTE = 0x22; // "
const ESCAPE = 0x5c; // \

/** Brackets and braces differ in this bit only, which is set in the two constants below. */
const BRACE_BIT = 0x20;
const OPENING = 0x7b; // [ {
const CLOSING = 0x7d; // ] }

/** The depth of nesting within the list. */
const IN_LIST = 2;

/**
 * The books of an answer's unread stream, as many at a time as arrive together. Leaving the loop ends the request.
 * @throws CatalogueError when the list is truncated, or is not a list.
 */
export async function* readList({ stream, requestId }: Answer, deadline: Deadline) {
  const reader = (stream as NonNullable<typeof stream>).getReader(); // not every browser can iterate over it
  const list = new ListReader();
  let count = 0;
  try {
    for (;;) {
      deadline.start(); // only the wait for the service counts, not the caller's work
      const { done, value } = await reader.read();
      deadline.stop();
      if (done) break;
      const books = list.read(value);
      count += books.length;
      yield books;
    }
    list.end();
  } catch (cause) {
    if (deadline.isGivenUp) throw deadline.signal.reason;
    throw new CatalogueError(`list truncated after ${count} books`, { requestId, cause });
  } finally {
    reader.cancel().catch(() => {}); // if the list is truncated, there is nothing to cancel
  }
}

/** Reads one list. Every method throws a SyntaxError or TypeError when it is not a complete envelope of books. */
class ListReader {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  /** The text not used yet: the beginning or the end of the envelope, or the beginning of a book. */
  #text = '';
  /** The envelope up to its first book; undefined until that begins. */
  #head: string | undefined;
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  #isFirst = true;

  /** The books that this piece completes; it may end anywhere, even within a character. */
  read(piece: Uint8Array): Book[] {
    const books: Book[] = [];
    let position = this.#text.length;
    const text = this.#text + this.#decoder.decode(piece, { stream: true });
    let taken = 0;
    for (; position < text.length; position += 1) {
      const code = text.charCodeAt(position);
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === ESCAPE) this.#isEscaped = true;
        else if (code === QUOTE) this.#isInText = false;
      } else if (code === QUOTE) {
        this.#isInText = true;
      } else if ((code | BRACE_BIT) === OPENING) {
        this.#depth += 1;
        if (this.#depth === IN_LIST) {
          if (this.#head !== undefined) throw new SyntaxError('There is a second list');
          this.#head = text.slice(0, position + 1);
          taken = position + 1;
        }
      } else if ((code | BRACE_BIT) === CLOSING) {
        this.#depth -= 1;
        if (this.#depth === IN_LIST) {
          books.push(this.#book(text.slice(taken, position + 1)));
          taken = position + 1;
        }
      }
    }
    this.#text = text.slice(taken);
    return books;
  }

  /** Call it after the last piece: nothing may be missing or left over. */
  end(): void {
    const { status, data } = JSON.parse(this.#head + this.#text + this.#decoder.decode());
    if (status !== 200 || !Array.isArray(data) || data.length > 0)
      throw new SyntaxError('This is not a list');
  }

  /** @param text of a book, with the comma before it unless it is the first. */
  #book(text: string): Book {
    if (this.#isFirst) {
      this.#isFirst = false;
      return JSON.parse(text);
    }
    const comma = text.indexOf(',');
    if (/[^ \t\n\r]/.test(text.slice(0, comma))) throw new SyntaxError('There is no comma between two books');
    return JSON.parse(text.slice(comma + 1));
  }
}
