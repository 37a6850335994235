// Owns: reading new books from a JSON array, the body of one request.
// Does not: accept part of an array: one element that is not a book refuses all of it (rule B2).

import { type BookChanges, readBookChanges, TEXT_NAMES } from '../books/book.ts';
import { BodyTooLarge, parseBody } from '../http/body.ts';
import { asJsonObject } from '../json/parse.ts';

/** Most books of one request. */
export const MOST_BOOKS = 10_000;

/**
 * @param longest bytes of the texts of one book.
 * @returns the books, or the position of the first element that is not one, from 1; 0 if the body is no array.
 * @throws BodyTooLarge if there are too many books or values, or a book is too long.
 */
export function readBookArray(body: Buffer, longest: number): BookChanges[] | number {
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
function lengthOf(book: BookChanges): number {
  return TEXT_NAMES.reduce((length, name) => length + Buffer.byteLength(book[name] ?? ''), 0);
}
