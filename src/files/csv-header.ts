// Owns: finding the header of delimited text: what stands above it, and the delimiter that it shows.

import { InvalidOption, OperatorError } from '../operator-error.ts';
import { type Columns, findColumns, type WantedColumns, withoutReasons } from './columns.ts';
import { Tokenizer } from './csv-tokenizer.ts';
import type { ReadingOptions } from './rows.ts';
import { BINARY, NotText, type TextInput } from './text-input.ts';

/** Tried in this order; among those that find a title, the one that splits the header into the most columns is it. */
const DELIMITERS = [',', ';', '\t', '|'];

/** Rows among which the header is looked for: other programs write names, dates and addresses above it. */
const SEARCHED_ROWS = 50;

/** A text in other quotation marks than those of CSV. */
const OTHER_QUOTES = /^\s*['‘’‚“”„«»`].*['‘’“”«»`´]\s*$/s;

/** No real table is wider. */
const MAX_COLUMNS = 10_000;

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
  const { delimiter: wanted, hasHeader, fromLine = 1 } = options;
  if (wanted !== undefined && !/^[^"\r\n]$/.test(wanted)) {
    throw new InvalidOption(
      'The delimiter must be one character up to U+FFFF other than a quote or a line end, or \\t for a tab.',
    );
  }
  const named = await skipToHeader(input, fromLine);
  const given = wanted ?? named;
  const delimiters = given === undefined ? DELIMITERS : [given];
  // Not indexes: `input.more()` moves the text.
  let above = 0;
  const first = await readRow(input, above, delimiters, options.columns.title);
  let row = first;
  // A first row with a title alone may be a title of the table.
  const isFound = () => (first.isHeader ? row.hasMore : row.isHeader);
  for (let rows = 1; hasHeader !== false && !isFound() && rows < SEARCHED_ROWS; rows += 1) {
    above += row.length;
    if (input.at + above === input.text.length && input.ended) break;
    row = await readRow(input, above, delimiters, options.columns.title);
  }
  if (!isFound()) {
    if (!first.isHeader)
      input.damageIn(input.text.slice(input.at, input.at + above + row.length), input.line);
    [row, above] = [first, 0];
  }
  const { names, tokenizer, length } = row;
  const leftOut = input.text.slice(input.at, input.at + above);
  input.advance(input.at + above);
  const { line } = input;
  if (tokenizer === undefined)
    throw new OperatorError(`Line ${line}, the header, has a misplaced or unclosed quote.`);
  const { count, delimiter } = tokenizer;
  if (count > MAX_COLUMNS) throw new OperatorError(`The header has more than ${MAX_COLUMNS} columns.`);
  if (names.some((name) => name.includes('\0'))) {
    const encoding = names[0]?.startsWith('\0') ? 'utf-16be' : 'utf-16le';
    const isBinary = tokenizer.beginning(count).includes('\ufffd');
    throw new NotText(
      isBinary
        ? BINARY
        : `The file is not text: its header has NUL characters. For UTF-16, set --encoding ${encoding}.`,
    );
  }
  const before = named === undefined ? '' : `sep=${named}\n`;
  if (hasHeader === false) {
    const numbered = names.map((_, index) => `column ${index + 1}`);
    return { names: numbered, delimiter, line, text: before + numbered.join(delimiter), above: leftOut };
  }
  if (names.every((name) => OTHER_QUOTES.test(name)))
    throw new OperatorError(
      `Line ${line}, the header, has other quotation marks than ": write those in the file.`,
    );
  const text = before + tokenizer.beginning(withoutReasons(names).length);
  input.advance(input.at + length);
  return { names, delimiter, line, text, above: leftOut };
}

/** A row as it is if it is the header. */
interface Row {
  /** Undefined if its quotes are malformed, whatever the delimiter. */
  readonly tokenizer: Tokenizer | undefined;
  readonly names: readonly string[];
  readonly isHeader: boolean;
  /** Whether it also has a column for the author or the year, or the caller names the title. */
  readonly hasMore: boolean;
  /** Characters, with its line end. */
  readonly length: number;
}

/** @param offset of the row, after `input.at`; rows other than the first need a second sign that they are the header. */
async function readRow(
  input: TextInput,
  offset: number,
  delimiters: readonly string[],
  title: WantedColumns['title'],
): Promise<Row> {
  let best: Row | undefined;
  for (const delimiter of delimiters) {
    const tokenizer = new Tokenizer(delimiter, MAX_COLUMNS);
    while (!tokenizer.read(input.text, input.at + offset, input.ended)) await input.more();
    if (tokenizer.fault !== undefined) continue;
    const { count, next } = tokenizer;
    const names = tokenizer.fields;
    const found = columnsOf(names, title);
    const hasMore = typeof title === 'string' || (found?.author ?? found?.year) !== undefined;
    const isAlone = names.filter((name) => name.trim() !== '').length === 1;
    const isHeader = found !== undefined && (offset === 0 || isAlone || hasMore);
    const isWider = best === undefined || count > (best.tokenizer?.count ?? 0);
    if (best === undefined || (isHeader === best.isHeader ? isWider : isHeader))
      best = { tokenizer, names, isHeader, hasMore: isHeader && hasMore, length: next - input.at - offset };
  }
  const [line = ''] = /^[^\r\n]*(?:\r\n?|\n)?/.exec(input.text.slice(input.at + offset)) ?? [];
  return best ?? { tokenizer: undefined, names: [], isHeader: false, hasMore: false, length: line.length };
}

/** @returns undefined if none is the title. */
function columnsOf(names: readonly string[], title: WantedColumns['title']): Columns | undefined {
  try {
    return findColumns(names, { title });
  } catch (error) {
    if (error instanceof OperatorError) return undefined;
    throw error;
  }
}

/**
 * Skips what spreadsheets leave before the header: blank lines, lines of only delimiters, and Excel's `sep=;`.
 * @param fromLine all lines before it are skipped as well.
 * @returns the delimiter of the latter.
 */
async function skipToHeader(input: TextInput, fromLine: number): Promise<string | undefined> {
  let delimiter: string | undefined;
  for (;;) {
    const rest = input.text.slice(input.at);
    const above = input.line < fromLine ? /^[^\r\n]*(?:\r\n?|\n)/.exec(rest) : null;
    const blank = /^(?:[ \t,;|]*(?:\r\n?|\n))+/.exec(rest);
    const separator = /^sep=([^"\r\n])(?:\r\n?|\n)/i.exec(rest);
    if (above === null && separator !== null) delimiter = separator[1];
    const found = above ?? blank ?? separator;
    if (found !== null) {
      input.advance(input.at + found[0].length);
    } else if (input.ended || /[\r\n]/.test(rest)) {
      if (!/[^ \t,;|]/.test(rest)) throw new OperatorError('The file is empty: it has no header.');
      return delimiter;
    } else {
      await input.more();
    }
  }
}
