// Owns: how books are written into files, CSV or JSON.

import { type Book, FIELD_NAMES } from '../books/book.ts';
import { tagOf } from '../books/condition.ts';
import { asCsvFields, quoted } from '../books/line.ts';
import { ETAG } from './columns.ts';

/** What stands before the first book of a file, between two, and after the last one; and how a book is written. */
export interface FileWriter {
  readonly before: string;
  readonly between: string;
  readonly after: string;
  /** @param etag of the book (rule E1). It has its quotation marks, so that a spreadsheet takes it for a text. */
  book(book: Book, etag: string): string;
}

const asJson = (book: Book, etag: string) => JSON.stringify({ ...book, [ETAG]: etag });

/** By the names of the formats. */
export const WRITERS: ReadonlyMap<unknown, FileWriter> = new Map([
  [
    'csv',
    {
      ...{ before: `${['id', ...FIELD_NAMES, ETAG]}\n`, between: '', after: '' },
      book: (book: Book, etag: string) => `${book.id},${asCsvFields(book)},${quoted(etag)}\n`,
    },
  ],
  [
    'json',
    {
      ...{ before: '[', between: ',', after: '\n]\n' },
      book: (book: Book, etag: string) => `\n${asJson(book, etag)}`,
    },
  ],
  [
    'jsonl',
    {
      ...{ before: '', between: '', after: '' },
      book: (book: Book, etag: string) => `${asJson(book, etag)}\n`,
    },
  ],
]);

/** The chunks of a file. */
export async function* asFile(
  { before, between, after, book }: FileWriter,
  batches: AsyncIterable<readonly Book[]>,
): AsyncGenerator<string, void, void> {
  yield before;
  let start = '';
  for await (const books of batches) {
    yield start + books.map((one) => book(one, `"${tagOf(one)}"`)).join(between);
    start = between;
  }
  yield after;
}
