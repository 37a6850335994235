// Owns: a book as text, in CSV (RFC 4180) and in JSON, and the books in a stream of such texts. Both stores build the same bytes.

import { type Book, type BookFields, valuesOf } from './book.ts';

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

/**
 * The books of a store, in batches.
 * @param chunks JSON texts of books, their ids first. They may end anywhere.
 * @param separator between two of the texts.
 */
export async function* parseBooks(
  chunks: AsyncIterable<string | Uint8Array>,
  separator: ',' | '\n',
): AsyncGenerator<readonly Book[], void, void> {
  const border = `}${separator}{"id":`; // within a text, a quotation mark has a backslash before it, or ends the text
  const parse = (texts: string): Book[] => JSON.parse(`[${texts.replaceAll(border, '},{"id":')}]`);
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const end = rest.lastIndexOf(border) + 1;
    if (end > 0) yield parse(rest.slice(0, end));
    rest = end > 0 ? rest.slice(end + 1) : rest;
  }
  if (rest !== '') yield parse(rest);
}

/** A text as a field of CSV. */
export function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
