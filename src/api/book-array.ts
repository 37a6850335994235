// Owns: reading new books from a JSON array, the body of one request.
// Does not: accept part of an array: one element that is not a book refuses all of it (rule B2).

import { type BookChanges, readBookChanges } from '../books/book.ts';
import { BodyTooLarge, parseBody } from '../http/body.ts';
import { asJsonObject } from '../json/parse.ts';

/** Most books of one request. */
export const MOST_BOOKS = 10_000;

/**
 * Most values in a body, nested ones included. JSON.parse takes up to 100 bytes and up to a microsecond for each, so a body of
 * nothing else could take gigabytes and hold up all other requests.
 */
const MOST_VALUES = 250_000;

/**
 * @param longest bytes of the texts of one book.
 * @returns the books, or the position of the first element that is not one, from 1; 0 if the body is no array.
 * @throws BodyTooLarge if there are too many books or values, or a book is too long.
 */
export function readBookArray(body: Buffer, longest: number): BookChanges[] | number {
  if (hasTooManyValues(body)) throw new BodyTooLarge();
  const array = parseBody(body);
  if (!Array.isArray(array)) return 0;
  if (array.length > MOST_BOOKS) throw new BodyTooLarge();
  const books: BookChanges[] = [];
  for (const element of array) {
    const object = asJsonObject(element);
    const book = object && readBookChanges(object);
    if (book === undefined) return books.length + 1;
    if (lengthOf(book) > longest) throw new BodyTooLarge();
    books.push(book);
  }
  return books;
}

/** Bytes of its texts. */
function lengthOf({ title = '', author = '' }: BookChanges): number {
  return Buffer.byteLength(title) + Buffer.byteLength(author);
}

/** Each value but the first one of all follows a comma or an opening bracket that is not part of a text. */
function hasTooManyValues(body: Buffer): boolean {
  if (body.length <= MOST_VALUES) return false;
  let values = 0;
  let isInText = false;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === 0x22) isInText = !isInText;
    else if (byte === 0x5c)
      at += 1; // it escapes the next one
    else if (!isInText && (byte === 0x2c || byte === 0x5b || byte === 0x7b)) values += 1;
  }
  return values > MOST_VALUES;
}
