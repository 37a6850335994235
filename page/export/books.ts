// Owns: books as a file that a browser saves, the same bytes as those of the command `export`.

import type { BookCatalogue } from '../../client/src/book-catalogue.ts';
import { LARGEST_PAGE, type Page, type PageSearch, type Search } from '../../client/src/search.ts';
import type { Book } from '../../src/books/book.ts';
import { asCsv, asJson, CSV_HEADER } from '../../src/books/line.ts';
import { asExcel, asExcelFile } from '../../src/files/excel.ts';
import type { Session } from '../catalogue/session.ts';
import { EXPORT } from '../texts/export.ts';

export type ExportFormat = 'csv' | 'excel' | 'json';

const FORMATS = {
  csv: { asLine: asCsv, asFile: asCsvFile, type: 'text/csv', ending: '.csv' },
  excel: { asLine: asExcel, asFile: asExcelFile, type: 'text/csv', ending: '-excel.csv' },
  json: { asLine: asJson, asFile: asJsonFile, type: 'application/json', ending: '.json' },
} as const;

export interface ExportOptions {
  /** Called with the number of books so far. */
  readonly onProgress?: (books: number) => void;
  readonly signal?: AbortSignal;
}

/** UTF-16 code units or bytes of a part of the file. A browser keeps parts outside of the page's memory. */
const PART = 1024 * 1024;

/** Books after which the page does other work: a few milliseconds. */
const BOOKS_AT_ONCE = 500;

/**
 * Collects books into a file, such as `books-2026-11-22.csv`.
 * @param search whose books, in its order; undefined for every book, ascending by id, in one snapshot.
 * @throws as `Session.call`; the reason of the signal; an error if the search cannot find all books yet.
 */
export function exportBooks(
  session: Session,
  search: Search | undefined,
  format: ExportFormat,
  { onProgress, signal }: ExportOptions = {},
): Promise<File> {
  return session.call(async (catalogue) => {
    const { asLine, asFile, type, ending } = FORMATS[format];
    const found = search === undefined ? catalogue.list({ signal }) : foundBy(search, catalogue, signal);
    const parts = await partsOf(asFile(linesOf(found, asLine, onProgress)));
    const today = new Date().toLocaleDateString('sv'); // Swedish dates are those of ISO 8601
    return new File(parts, `books${search === undefined ? '' : '-found'}-${today}${ending}`, { type });
  });
}

async function* linesOf(
  books: AsyncIterable<Book>,
  asLine: (book: Book) => string,
  onProgress: ExportOptions['onProgress'],
): AsyncGenerator<string, void, void> {
  let count = 0;
  let lines = '';
  for await (const book of books) {
    lines += asLine(book);
    count += 1;
    if (count % BOOKS_AT_ONCE > 0) continue;
    yield lines;
    lines = '';
    onProgress?.(count);
    await nextTask();
  }
  onProgress?.(count);
  if (lines !== '') yield lines;
}

async function* foundBy(
  search: Search,
  catalogue: BookCatalogue,
  signal: AbortSignal | undefined,
): AsyncGenerator<Book, void, void> {
  let place: PageSearch | undefined = { ...search, limit: LARGEST_PAGE };
  while (place !== undefined) {
    const { books, next, unindexed }: Page = await catalogue.page(place, { signal });
    if (unindexed > 0) throw new Error(EXPORT.indexing(unindexed));
    yield* books;
    place = next;
  }
}

async function partsOf(chunks: AsyncIterable<string | Uint8Array<ArrayBuffer>>): Promise<BlobPart[]> {
  const parts: Blob[] = [];
  let part: BlobPart[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    part.push(chunk);
    length += chunk.length;
    if (length < PART) continue;
    parts.push(new Blob(part));
    part = [];
    length = 0;
  }
  return [...parts, ...part];
}

/** Lets the browser draw and take input. A timer would make a page in the background wait for a second each time. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

/**
 * The chunks of a file of CSV.
 * @param lines of books, in chunks that may end anywhere.
 */
async function* asCsvFile<Chunk>(lines: AsyncIterable<Chunk>): AsyncGenerator<Chunk | string, void, void> {
  yield CSV_HEADER;
  yield* lines;
}

/** The chunks of a JSON array with one book per line, from the same lines as JSON. */
async function* asJsonFile(lines: AsyncIterable<string | Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let before = '[\n'; // precedes the next chunk
  for await (const chunk of lines) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const isWhole = text.endsWith('\n');
    // Within a book every line end is escaped.
    yield before + (isWhole ? text.slice(0, -1) : text).replaceAll('\n', ',\n');
    before = isWhole ? ',\n' : '';
  }
  yield before === '[\n' ? '[]\n' : '\n]\n';
}
