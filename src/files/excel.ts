// Owns: how books are written into a file for Excel, so that no text becomes a formula, a number or a date.

import { type Book, valuesOf } from '../books/book.ts';
import { CSV_HEADER, quoted } from '../books/line.ts';

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
