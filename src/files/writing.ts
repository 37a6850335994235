// Owns: how books are written into files, CSV or JSON.

import { type Book, valuesOf } from '../books/book.ts';
import { CSV_HEADER, quoted } from '../books/line.ts';

/**
 * The chunks of a file of CSV.
 * @param lines of books, in chunks that may end anywhere.
 */
export async function* asCsvFile<Chunk>(
  lines: AsyncIterable<Chunk>,
): AsyncGenerator<Chunk | string, void, void> {
  yield CSV_HEADER;
  yield* lines;
}

/** The chunks of a JSON array with one book per line, from the same lines as JSON. */
export async function* asJsonFile(
  lines: AsyncIterable<string | Uint8Array>,
): AsyncGenerator<string, void, void> {
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

/** A book's line in a file for Excel. */
export function asExcel(book: Book): string {
  const values = valuesOf(book).map((value) => (typeof value === 'string' ? asCell(value) : value));
  return `${[book.id, ...values].join('\t')}\r\n`;
}

/**
 * The chunks of a file that Excel opens by a double click, whatever the language of the computer: UTF-16 with tabs. In UTF-8,
 * the delimiter that it expects depends on the language.
 * @param lines of `asExcel`.
 */
export async function* asExcelFile(
  lines: AsyncIterable<string>,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  yield asUtf16(`\ufeff${CSV_HEADER.replaceAll(',', '\t')}`);
  for await (const text of lines) yield asUtf16(text);
}

/**
 * A text as a field that stays one in Excel: `"Emma"`, but `"=""007"""`, a formula with nothing to calculate. Spreadsheets take for
 * a formula what begins with a sign, also a full-width one, or one behind blanks and invisible characters; for a number or a
 * date only what has a digit and at most one word.
 */
function asCell(text: string): string {
  const words = text.match(/[\p{L}--[年月日]]+/gv)?.length ?? 0;
  const isText =
    !/^[\s\p{C}\p{DI}=+\-@#＝＋－＠﹢﹣﹦﹫−]/u.test(text) &&
    !/^(?:true|false)$/i.test(text) &&
    (words > 1 || !/\p{N}/u.test(text));
  return quoted(isText ? text : `=${quoted(text)}`);
}

/** In little-endian order. */
function asUtf16(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new DataView(new ArrayBuffer(2 * text.length));
  for (let at = 0; at < text.length; at += 1) bytes.setUint16(2 * at, text.charCodeAt(at), true);
  return new Uint8Array(bytes.buffer);
}
