// Owns: how books are written into files, CSV or JSON, and rejected records into a file that can be corrected and
// imported. Twin of `reading.ts`.

import { type Book, valuesOf } from '../books/book.ts';
import { CSV_HEADER, quoted } from '../books/line.ts';
import { REFUSED } from './columns.ts';
import type { Format, Reading, RefusedRecord } from './rows.ts';

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

/**
 * The name of the file of a file's rejected records: `books.rejects.csv` for `books.csv` or for itself.
 * @param name without folders; undefined if it is not a file.
 */
export function refusedName(name: string | undefined, format: Format): string {
  const own = `rejects.${format}`;
  const withoutEnding = name?.replace(/(?<=.)\.[^.]*$/, '').replace(/\.rejects(?:-\d+)?$/, '');
  return withoutEnding === undefined ? own : `${withoutEnding}.${own}`;
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

type Written = Pick<Reading, 'format' | 'header'>;

/**
 * What stands in a file of rejected records before the first one, between two, and after the last one. The file has the
 * format of the one that was read, so that it can be imported with the same options.
 */
export function refusedFrame({ format, header }: Written): {
  before: string;
  between: string;
  after: string;
} {
  if (format === 'json') return { before: '[\n', between: ',\n', after: '\n]\n' };
  const before = header === undefined ? '' : `${header.text}${header.delimiter}${REFUSED}\n`;
  return { before, between: '\n', after: '\n' };
}

/** A rejected record with its reason, in the format of the file that was read; in JSON on one line. */
export function asRefused(record: RefusedRecord, { header }: Written): string {
  return header === undefined ? refusedJson(record) : refusedCsv(record, header.delimiter);
}

/** The key that was added to an object when it was rejected before. */
const EARLIER_REASON = new RegExp(`,?(?<!\\s)\\s*"${REFUSED}"\\s*:\\s*"(?:[^"\\\\]|\\\\.)*"\\s*\\}$`);

function refusedCsv(record: RefusedRecord, delimiter: string): string {
  const { original, takesReason } = record;
  return takesReason ? `${original}${delimiter}${quoted(explain(record))}` : original;
}

/**
 * A record of JSON on one line: line ends between values are equivalent to spaces. A search that began within a run of
 * spaces would take time with the square of its length.
 */
export function onOneLine(json: string): string {
  return json.replaceAll(/(?<!\s)\s*[\r\n]\s*/g, ' ');
}

function refusedJson(record: RefusedRecord): string {
  const line = onOneLine(record.original);
  if (!record.takesReason) return line;
  const fields = line.replace(EARLIER_REASON, '}').slice(0, -1);
  const comma = /^\{\s*$/.test(fields) ? '' : ',';
  return `${fields}${comma}${JSON.stringify(REFUSED)}:${JSON.stringify(explain(record))}}`;
}

function explain({ column, reason }: RefusedRecord): string {
  return column === undefined ? reason : `${column}: ${reason}`;
}
