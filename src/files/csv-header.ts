// Owns: finding the header of delimited text: what stands above it, and the delimiter that it shows.

import { FIELD_NAMES } from '../books/book.ts';
import { OperatorError } from '../operator-error.ts';
import { findColumns, type WantedColumns, withoutReasons } from './columns.ts';
import { MOST_FIELDS, readRecord, recordsIn } from './csv-record.ts';
import type { ReadingOptions } from './format.ts';
import type { TextInput } from './text-input.ts';

/** The header is the row with most known columns; of equal ones, the first, with the delimiter that makes most columns. */
const DELIMITERS = [',', ';', '\t', '|'];

/** Rows among which the header is looked for: other programs write names, dates and addresses above it. */
const SEARCHED_ROWS = 10;

/** Characters in which these rows are, unless the first one is longer. */
const BEGINNING = 64 * 1024;

/** A text in other quotation marks than those of CSV. */
const OTHER_QUOTES = /^\s*['‘’‚“”„«»`].*['‘’“”«»`´]\s*$/s;

/** The file is not text in any encoding. */
export class NotText extends OperatorError {}

export interface Header {
  readonly names: readonly string[];
  readonly delimiter: string;
  readonly line: number;
  /** As it stands in the file, with the line that names the delimiter, without the column of reasons. */
  readonly text: string;
  /** The rows that were left out before it. */
  readonly above: string;
}

/** @throws OperatorError if the file has no header, or is not text. */
export async function readHeader(input: TextInput, options: ReadingOptions): Promise<Header> {
  const { delimiter: wanted, hasHeader, fromLine = 1, columns } = options;
  await input.begin(BEGINNING);
  let named = skipToHeader(input, fromLine);
  while (!input.ended && !/[\r\n]/.test(input.text.slice(input.at))) {
    await input.more();
    named = skipToHeader(input, fromLine) ?? named;
  }
  if (!/[^ \t,;|]/.test(input.text.slice(input.at)))
    throw new OperatorError('The file is empty: it has no header.');
  const given = wanted ?? named;
  const delimiters = given === undefined ? DELIMITERS : [given];
  const searched = hasHeader === false ? 1 : SEARCHED_ROWS;
  const rows = delimiters.flatMap((delimiter) => rowsOf(input, delimiter, searched, columns.title));
  const [row] = rows.sort(
    (one, other) =>
      other.known - one.known || one.start - other.start || other.fields.length - one.fields.length,
  );
  if (row === undefined || row.fault !== undefined)
    throw new OperatorError(
      `Line ${input.line}, the header, has a misplaced or unclosed quote, or more than ${MOST_FIELDS} columns.`,
    );
  const above = input.text.slice(input.at, row.start);
  input.advance(row.start);
  const { line } = input;
  const { fields: names, delimiter } = row;
  assertNames(names, line);
  const before = named === undefined ? '' : `sep=${named}\n`;
  if (hasHeader === false) {
    const numbered = names.map((_, index) => `column ${index + 1}`);
    return { names: numbered, delimiter, line, text: before + numbered.join(delimiter), above };
  }
  const own = readRecord(input.text, row.start, delimiter, true, withoutReasons(names).length);
  const text = before + input.text.slice(row.start, own?.end);
  input.advance(row.next);
  return { names, delimiter, line, text, above };
}

/** The first rows. `known` is how many columns of each are known to be those of books; 0 if it is not the header. */
function rowsOf(input: TextInput, delimiter: string, most: number, title: WantedColumns['title']) {
  return Array.from(recordsIn(input, delimiter).take(most), (row) => {
    const known = row.fault?.reason.code.startsWith('quote') ? 0 : knownIn(row.fields, title);
    // A row other than the first needs a second sign: another column, no other field, or a title that the caller names.
    const isAlone = row.fields.filter((name) => name.trim() !== '').length === 1;
    const isHeader = row.start === input.at || known > 1 || isAlone || typeof title === 'string';
    return { ...row, delimiter, known: isHeader ? known : 0 };
  });
}

function knownIn(names: readonly string[], title: WantedColumns['title']): number {
  try {
    const columns = findColumns(names, { title });
    return FIELD_NAMES.filter((field) => columns[field] !== undefined).length;
  } catch (error) {
    if (error instanceof OperatorError) return 0; // without a title
    throw error;
  }
}

/** @throws OperatorError if they are no names of columns. */
function assertNames(names: readonly string[], line: number): void {
  if (names.some((name) => name.includes('\0')))
    throw new NotText(
      'The file is not text: save a spreadsheet as a workbook (.xlsx); of UTF-16, set --encoding utf-16le or utf-16be.',
    );
  if (names.every((name) => OTHER_QUOTES.test(name)))
    throw new OperatorError(
      `Line ${line}, the header, has other quotation marks than ": write those in the file.`,
    );
}

/**
 * Skips what spreadsheets leave before the header: blank lines, lines of only delimiters, and Excel's `sep=;`.
 * @param fromLine all lines before it are skipped as well.
 * @returns the delimiter of the latter.
 */
function skipToHeader(input: TextInput, fromLine: number): string | undefined {
  let delimiter: string | undefined;
  const line = input.isTable ? /^(?:"[^"]*"|[^"\n])*\n/ : /^[^\r\n]*(?:\r\n?|\n)/;
  for (;;) {
    const rest = input.text.slice(input.at);
    const above = input.line < fromLine ? line.exec(rest) : null;
    const blank = /^(?:[ \t,;|]*(?:\r\n?|\n))+/.exec(rest);
    const separator = /^sep=([^"\r\n])(?:\r\n?|\n)/i.exec(rest);
    if (above === null && separator !== null) delimiter = separator[1];
    const found = above ?? blank ?? separator;
    if (found === null) return delimiter;
    input.advance(input.at + found[0].length);
  }
}
