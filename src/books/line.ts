// Owns: a book as a line of text, in CSV (RFC 4180) and in JSON Lines. Both stores build the same bytes.

import { type Book, type BookFields, FIELD_NAMES, valuesOf } from './book.ts';

/** The line before the first book in a file of CSV. */
export const CSV_HEADER = `${['id', ...FIELD_NAMES].join()}\n`;

/** A book's line in a file of CSV: `7,"Emma",…,1815`. Texts are always quoted, quotes in them doubled. */
export function asCsv(book: Book): string {
  return `${book.id},${asCsvFields(book)}\n`;
}

/** The same without the id and the line end. */
export function asCsvFields(book: BookFields): string {
  const values = valuesOf(book).map((value) => (typeof value === 'string' ? quoted(value) : value));
  return values.join();
}

/** A book's line in JSON Lines. */
export function asJson(book: Book): string {
  return `${JSON.stringify(book)}\n`;
}

/** A text as a field of CSV. */
export function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
