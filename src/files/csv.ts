// Owns: reading books from delimited text (RFC 4180, also with semicolons, tabs or bars), and finding its header.
// Does not: end at a malformed record: it rejects malformed records, those that lack a field that is needed, and those
// with text in more fields than the header has.
//
// The tokenizer is our own. csv-parse takes 2.7 s for a million books, several times as long as everything here. Papa
// Parse reports no line numbers, leaves a CR in the last field if line ends are mixed, and reads an unfinished record
// again with every piece of the file.

import { readBookId } from '../books/book.ts';
import { InvalidOption, OperatorError } from '../operator-error.ts';
import { type Columns, findColumns, keepsIds, type WantedColumns, withoutReasons } from './columns.ts';
import { type Fault, Tokenizer, WITHOUT_QUOTING } from './csv-tokenizer.ts';
import { BINARY, NotText, TextInput } from './decoding.ts';
import type { OpenBatch, ReadBook, Reading, ReadingOptions } from './rows.ts';
import { isFull, readBatches, shorten } from './rows.ts';
import { readYear } from './years.ts';

/** Tried in this order; among those that find a title, the one that splits the header into the most columns is it. */
const DELIMITERS = [',', ';', '\t', '|'];

/** Rows among which the header is looked for: other programs write names, dates and addresses above it. */
const SEARCHED_ROWS = 50;

/** The index of a column that does not exist. */
const NOWHERE = -1;

/** The field of a fault in the whole record. */
const WHOLE = -1;

/** How the reason of a rejected record begins, after the name of the column if it is about one. */
const REASON = /^(?:has|is|belongs) /;
const REASON_OF_RECORD =
  /^has (?:\d+ fields?, the header has|\d+ lines that look like|text after its closing quote)/;

/** A text that a spreadsheet leaves as it is, between tabs, as in our file for Excel: `="007"`. */
const TEXT_OF_SPREADSHEET = /^="([^"]*(?:""[^"]*)*)"$/;

/** A text in other quotation marks than those of CSV. */
const OTHER_QUOTES = /^\s*['‘’‚“”„«»`].*['‘’“”«»`´]\s*$/s;

/** No real table is wider. */
const MAX_COLUMNS = 10_000;

/** @throws OperatorError when there is no header, or no columns can be found in it. */
export async function readCsv(input: TextInput, options: ReadingOptions): Promise<Reading> {
  const header = await readHeader(input, options);
  const columns = findColumns(
    header.names,
    options.columns,
    options.hasHeader === false ? undefined : header.line,
  );
  const named = header.names.filter((name) => name !== ''); // spreadsheets leave delimiters behind
  const keepIds = keepsIds(named, options.ids);
  const recordsOf = (from: TextInput, names: readonly string[]) => {
    const records = new CsvRecords(from, { ...header, names }, columns, keepIds);
    return readBatches(from, (batch) => records.fill(batch));
  };
  return {
    format: 'csv',
    keepsIds: keepIds,
    names: header.names,
    columns,
    header,
    batches: recordsOf(input, header.names),
    again: (records) => recordsOf(TextInput.of(records), withoutReasons(header.names)),
  };
}

interface Header {
  readonly names: readonly string[];
  readonly delimiter: string;
  readonly line: number;
  /** As it stands in the file, with the line that names the delimiter, without the column of reasons. */
  readonly text: string;
  /** The rows that were left out before it. */
  readonly above: string;
}

async function readHeader(input: TextInput, options: ReadingOptions): Promise<Header> {
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
    const isBinary = !tokenizer.beginning(count).isWellFormed();
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
    const names = Array.from({ length: Math.min(count, MAX_COLUMNS) }, (_, index) => tokenizer.field(index));
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

/** How a record is split into the columns of a file. */
export function tokenizerOf(names: readonly string[], delimiter: string): Tokenizer {
  return new Tokenizer(delimiter, names.length, [withoutReasons(names).length, names.length]);
}

/** The records after the header. */
class CsvRecords {
  readonly #input: TextInput;
  readonly #tokenizer: Tokenizer;
  readonly #names: readonly string[];
  /** Number of fields of a record by the header, without the reason of an earlier import. */
  readonly #own: number;
  /** The indexes of the fields in a record. */
  readonly #id: number;
  readonly #title: number;
  readonly #author: number;
  readonly #year: number;
  readonly #otherYears: readonly number[];
  /** The last of them. */
  readonly #lastUsed: number;

  constructor(input: TextInput, { names, delimiter }: Header, columns: Columns, keepIds: boolean) {
    const indexOf = (name: string | undefined) => (name === undefined ? NOWHERE : names.indexOf(name));
    this.#input = input;
    this.#tokenizer = tokenizerOf(names, delimiter);
    this.#names = names;
    this.#own = withoutReasons(names).length;
    this.#id = keepIds ? indexOf('id') : NOWHERE;
    this.#title = indexOf(columns.title);
    this.#author = indexOf(columns.author);
    this.#year = indexOf(columns.year);
    this.#otherYears = columns.otherYears.map(indexOf);
    this.#lastUsed = Math.max(this.#id, this.#title, this.#author, this.#year);
  }

  /** @returns false when it needs more text, or there is no more. */
  fill(batch: OpenBatch): boolean {
    const input = this.#input;
    const tokenizer = this.#tokenizer;
    while (!isFull(batch)) {
      const { text, at, ended } = input;
      if (at === text.length || !tokenizer.read(text, at, ended)) return false;
      this.#add(batch);
      batch.size += tokenizer.next - at;
      input.line += tokenizer.lines;
      input.at = tokenizer.next;
    }
    return true;
  }

  #add(batch: OpenBatch): void {
    const book = this.#readBook();
    const hasTitle = 'title' in book && book.title.trim() !== '';
    if (!hasTitle && this.#isBlank) return;
    if ('reason' in book) {
      this.#refuse(batch, book);
    } else {
      batch.books.push(book);
      if (this.#tokenizer.count <= this.#lastUsed) batch.short += 1;
    }
  }

  #readBook(): ReadBook | Fault {
    const { fault, count, lines } = this.#tokenizer;
    const columns = this.#names.length;
    if (fault !== undefined) return fault;
    if (this.#isOfRows) {
      const reason = `has ${lines} lines that look like separate rows: remove the quote that joins them, or the line ends`;
      return { field: WHOLE, reason };
    }
    if (!this.#hasAllFields) {
      const fields = count === 1 ? '1 field' : `${count} fields`;
      return { field: WHOLE, reason: `has ${fields}, the header has ${columns}` };
    }
    const title = this.#field(this.#title);
    const author = this.#field(this.#author);
    let yearField = this.#year;
    let year = readYear(this.#field(yearField));
    for (const other of this.#otherYears) {
      if (year !== 0) break;
      yearField = other;
      year = readYear(this.#field(yearField));
    }
    const isSuspect = this.#input.holdsNul || this.#input.isDamaged; // rule 4
    const wrong = isSuspect ? (this.#wrongText(this.#title) ?? this.#wrongText(this.#author)) : undefined;
    if (wrong !== undefined) return wrong;
    if (typeof year === 'string') return this.#damaged(yearField) ?? { field: yearField, reason: year };
    const id = this.#id === NOWHERE ? undefined : readBookId(this.#field(this.#id));
    if (id === undefined && this.#id !== NOWHERE)
      return this.#damaged(this.#id) ?? { field: this.#id, reason: 'is not an id from 1 to 2^53−1' };
    const original = id === undefined ? undefined : this.#ownText;
    return { id, title, author, year, line: this.#input.line, original };
  }

  /** Whether all fields are empty, or blanks: spreadsheets leave such rows behind. */
  get #isBlank(): boolean {
    const { count, fault, hasMore } = this.#tokenizer;
    if (fault !== undefined || hasMore) return false;
    for (let index = 0; index < Math.min(count, this.#names.length); index += 1)
      if (/[^ \t\r\n]/.test(this.#tokenizer.field(index))) return false;
    return true;
  }

  /** The content of a column; '' if there is no such column, or the record ends before it. */
  #field(index: number): string {
    const field = index === NOWHERE || index >= this.#tokenizer.count ? '' : this.#tokenizer.field(index);
    if (this.#tokenizer.delimiter !== '\t' || !field.startsWith('="')) return field;
    const [, text] = TEXT_OF_SPREADSHEET.exec(field) ?? [];
    return text === undefined ? field : text.replaceAll('""', '"');
  }

  #wrongText(field: number): Fault | undefined {
    if (this.#field(field).includes('\0')) return { field, reason: 'has a NUL character' };
    return this.#damaged(field);
  }

  #damaged(field: number): Fault | undefined {
    const reason = this.#input.damageIn(this.#field(field), this.#input.line);
    return reason === undefined ? undefined : { field, reason };
  }

  /**
   * Whether a record has as many fields as the header, perhaps without the reason of an earlier import. Spreadsheets
   * leave out empty fields at the end of a line. But if there are several lines, or if the end of the file or a line end
   * in text without quoting may have cut off a field that is used, the record is not whole.
   */
  get #hasAllFields(): boolean {
    const { count, hasMore, delimiter, lines, end } = this.#tokenizer;
    if (count >= this.#names.length) return !hasMore;
    if (this.#own < this.#names.length && this.#isReason(this.#tokenizer.field(count - 1))) return false;
    if (count >= this.#own) return true;
    if (this.#joinsFields) return false;
    const mayBeCut = WITHOUT_QUOTING.includes(delimiter) || end === this.#input.text.length;
    return lines === 1 && count > (mayBeCut ? this.#lastUsed : this.#title);
  }

  /** Whether a short record has an empty field at its end, so that it lacks none there: a quoted field holds others. */
  get #joinsFields(): boolean {
    const { count, delimiter } = this.#tokenizer;
    const fields = Array.from({ length: count }, (_, index) => this.#tokenizer.field(index));
    return fields.at(-1) === '' && fields.some((field) => field.includes(delimiter));
  }

  /** In a record that lacked fields, or whose fields were joined when it was corrected, the reason is in a column of books. */
  #isReason(text: string): boolean {
    const isOf = (name: string) => text.startsWith(`${name}: `) && REASON.test(text.slice(name.length + 2));
    return REASON_OF_RECORD.test(text) || this.#names.some(isOf);
  }

  /**
   * Whether a quote that begins a text, and one that ends another, rows later, join these rows to one record. Its first and
   * its last line then are whole rows by themselves. Between tabs or bars, where no line end is expected, a part is enough.
   */
  get #isOfRows(): boolean {
    const { delimiter, count } = this.#tokenizer;
    if (this.#tokenizer.lines === 1) return false;
    if (WITHOUT_QUOTING.includes(delimiter)) {
      for (let index = 0; index < Math.min(count, this.#names.length); index += 1) {
        const field = this.#tokenizer.field(index);
        if (field.includes(delimiter) && /[\r\n]/.test(field)) return true;
      }
    }
    const lines = this.#tokenizer.beginning(count).split(/[\r\n]/);
    return [lines[0], lines.at(-1)].every((line = '') => {
      const fields = line.split(delimiter).length;
      return fields >= this.#own && fields <= this.#names.length;
    });
  }

  /** The record without the reason of an earlier import, and with the fields that it lacks at its end. */
  get #ownText(): string {
    const { count, delimiter } = this.#tokenizer;
    const lacking = Math.max(0, this.#own - count);
    return this.#tokenizer.beginning(this.#own - lacking) + delimiter.repeat(lacking);
  }

  #refuse(batch: OpenBatch, { field, reason }: Fault): void {
    const tokenizer = this.#tokenizer;
    const isWhole = tokenizer.fault === undefined && this.#hasAllFields;
    const hadReason = this.#own < this.#names.length;
    batch.refused.push({
      line: this.#input.line,
      column: this.#names[field],
      value: field === WHOLE || field >= this.#names.length ? '' : shorten(tokenizer.field(field)),
      reason,
      original: isWhole ? this.#ownText : tokenizer.beginning(tokenizer.count),
      // After an open quote, the reason would be read as part of the field. In a malformed record, an earlier reason
      // cannot be distinguished from the other fields.
      takesReason: isWhole || !(tokenizer.isOpen || hadReason),
    });
  }
}
