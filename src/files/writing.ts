// Owns: the formats in which books are written into files, and the bytes of each.

import { type Book, FIELD_NAMES } from '../books/book.ts';
import { tagOf } from '../books/condition.ts';
import { asCsvFields, quoted } from '../books/line.ts';
import { ETAG } from './columns.ts';
import { WORKBOOK_TYPE, writeWorkbook } from './workbook-writer.ts';

export interface FileWriter {
  /** The media type of a file. */
  readonly type: string;
  /** The chunks of a file, which may end anywhere. */
  write(batches: AsyncIterable<readonly Book[]>): AsyncIterable<string | Uint8Array>;
}

/** How a text is put together: what stands before the first book, between two, and after the last one; and a book. */
interface Layout {
  readonly before: string;
  readonly between: string;
  readonly after: string;
  /** @param etag of the book (rule E1). It has its quotation marks, so that a spreadsheet takes it for a text. */
  book(book: Book, etag: string): string;
}

const asJson = (book: Book, etag: string) => JSON.stringify({ ...book, [ETAG]: etag });

/** By the extensions of files, which are the names of the formats. */
export const WRITERS: ReadonlyMap<unknown, FileWriter> = new Map([
  [
    'csv',
    textWriter('text/csv; charset=utf-8', {
      ...{ before: `${['id', ...FIELD_NAMES, ETAG]}\n`, between: '', after: '' },
      book: (book, etag) => `${book.id},${asCsvFields(book)},${quoted(etag)}\n`,
    }),
  ],
  [
    'json',
    textWriter('application/json; charset=utf-8', {
      ...{ before: '[', between: ',', after: '\n]\n' },
      book: (book, etag) => `\n${asJson(book, etag)}`,
    }),
  ],
  [
    'jsonl',
    textWriter('application/jsonl; charset=utf-8', {
      ...{ before: '', between: '', after: '' },
      book: (book, etag) => `${asJson(book, etag)}\n`,
    }),
  ],
  ['xlsx', { type: WORKBOOK_TYPE, write: writeWorkbook }],
]);

function textWriter(type: string, { before, between, after, book }: Layout): FileWriter {
  return {
    type,
    async *write(batches) {
      yield before;
      let start = '';
      for await (const books of batches) {
        if (books.length === 0) continue;
        yield start + books.map((one) => book(one, `"${tagOf(one)}"`)).join(between);
        start = between;
      }
      yield after;
    },
  };
}
