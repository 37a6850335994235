// Owns: reading new books from a JSON array, the body of one request, while it arrives. Books are parsed one by one, so
// that other requests get their turns.
// Does not: store part of an array: one element that is not a book refuses all of it (rule B2).

import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { type BookChanges, readBookChanges } from '../books/book.ts';
import { groupText } from '../books/catalogue.ts';
import { type BodyRoom, BodyTooLarge, bodyPieces } from '../http/body.ts';
import { parseJsonText } from '../json/object.ts';
import { ArraySplitter, type JsonRecord, type SplitText } from '../json/splitter.ts';
import { OperatorError } from '../operator-error.ts';

/** Most books of one request. */
export const MOST_BOOKS = 10_000;

/** The body is not a JSON array of books. */
export class InvalidBooks extends Error {
  /** Of the first element that is not a book, from 1; undefined if the body is not an array. */
  readonly position: number | undefined;

  constructor(position: number | undefined) {
    super();
    this.position = position;
  }
}

/** Bytes that a book takes beside its text until all are stored. An array may have a book for each three bytes. */
const BOOK_BYTES = 48;

/** Characters that are parsed before other work gets its turn: about a millisecond. */
const TURN = 64 * 1024;

/**
 * @param room for the body.
 * @param longest bytes of one element.
 * @returns JSON text of an array, as a store takes a group of books.
 * @throws InvalidBooks; BodyTooLarge also if there are too many books, or one is too long; NoRoomForBody, BodyIncomplete
 */
export async function readBookArray(
  request: IncomingMessage,
  room: BodyRoom,
  longest: number,
): Promise<string> {
  const text = new BodyText();
  const splitter = new ArraySplitter(false);
  const books: string[] = [];
  let parsed = 0; // characters since the last turn of the event loop
  const take = async () => {
    for (let element = text.next(splitter); element !== undefined; element = text.next(splitter)) {
      if (books.length === MOST_BOOKS || Buffer.byteLength(element.text) > longest) throw new BodyTooLarge();
      const book = bookIn(element);
      if (book === undefined) throw new InvalidBooks(books.length + 1);
      const kept = groupText(book);
      room.take(Math.max(0, kept.length + BOOK_BYTES - element.text.length)); // which is taken
      books.push(kept);
      parsed += element.text.length;
      if (parsed > TURN) {
        parsed = 0;
        await setImmediate();
      }
    }
    if (text.begunLength > longest) throw new BodyTooLarge();
  };
  for await (const piece of bodyPieces(request, room)) if (text.add(piece)) await take();
  text.end();
  await take();
  return `[${books.join()}]`;
}

function bookIn({ text }: JsonRecord): BookChanges | undefined {
  const object = parseJsonText(text);
  return object && readBookChanges(object);
}

/** The text of a body of which a part has been read. */
class BodyText implements SplitText {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #waiting: string[] = [];
  #waitingLength = 0;
  text = '';
  at = 0;
  readonly line = 1;
  ended = false;

  /** Characters of an element that is not complete yet, without what may stand before it. */
  get begunLength(): number {
    const [before = ''] = /[ \t\r\n]*\[?[ \t\r\n,]*/y.exec(this.text.slice(this.at)) ?? [];
    return this.text.length - this.at - before.length;
  }

  /**
   * Adds a piece.
   * @returns whether it is time to look for elements: an element of many pieces is then looked through only a few times.
   * @throws InvalidBooks if it is not UTF-8.
   */
  add(piece: Buffer): boolean {
    const text = this.#decode(piece);
    this.#waiting.push(text);
    this.#waitingLength += text.length;
    if (this.#waitingLength < this.text.length - this.at) return false;
    this.#join();
    return true;
  }

  end(): void {
    this.#waiting.push(this.#decode());
    this.#join();
    this.ended = true;
  }

  /** @throws InvalidBooks if the text cannot be the beginning of an array. */
  next(splitter: ArraySplitter): JsonRecord | undefined {
    try {
      return splitter.next(this);
    } catch (error) {
      throw error instanceof OperatorError ? new InvalidBooks(undefined) : error;
    }
  }

  advance(to: number): void {
    this.at = to;
  }

  #join(): void {
    this.text = this.text.slice(this.at) + this.#waiting.join('');
    this.at = 0;
    this.#waiting = [];
    this.#waitingLength = 0;
  }

  #decode(piece?: Buffer): string {
    try {
      return this.#decoder.decode(piece, { stream: piece !== undefined });
    } catch {
      throw new InvalidBooks(undefined);
    }
  }
}
