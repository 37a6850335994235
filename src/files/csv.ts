// Owns: reading books from delimited text (RFC 4180, also with semicolons or tabs).
// Does not: end at a malformed record: it rejects malformed records, records with fewer fields than the header, and
// those with text in more fields.
//
// The tokenizer is our own. csv-parse takes 2.7 s for a million books, several times as long as everything here. Papa
// Parse reports no line numbers, leaves a CR in the last field if line ends are mixed, and reads an unfinished record
// again with every piece of the file.

import { InvalidOption, OperatorError } from '../operator-error.ts';
import { type Columns, findColumns, keepsIds, withoutReasons } from './columns.ts';
import { type Fault, Tokenizer } from './csv-tokenizer.ts';
import { NotText, TextInput } from './decoding.ts';
import type { OpenBatch, ReadBook, Reading, ReadingOptions } from './rows.ts';
import { isFull, readBatches, readFileId, shorten } from './rows.ts';
import { readYear } from './years.ts';

/** Tried in this order; the one that splits the header into the most columns is the delimiter. */
const DELIMITERS = [',', ';', '\t'];

/** The index of a column that does not exist. */
const NOWHERE = -1;

/** The field of a fault in the whole record. */
const WHOLE = -1;

/** How the reason of a rejected record begins, after the name of the column if it is about one. */
const REASON = /^(?:has|is|belongs) /;
const REASON_OF_RECORD =
  /^has (?:\d+ fields?, the header has|\d+ lines that look like|text after its closing quote)/;

/** No real table is wider. */
const MAX_COLUMNS = 10_000;

/** @throws OperatorError when there is no header, or no columns can be found in it. */
export async function readCsv(input: TextInput, options: ReadingOptions): Promise<Reading> {
  const header = await readHeader(input, options);
  const columns = findColumns(header.names, options.columns, options.hasHeader !== false);
  const keepIds = keepsIds(header.names, options.ids);
  const recordsOf = (from: TextInput, names: readonly string[]) => {
    const records = new CsvRecords(from, { ...header, names }, columns, keepIds);
    return readBatches(from, (batch) => records.fill(batch));
  };
  return {
    format: 'csv',
    keepsIds: keepIds,
    names: header.names,
    columns,
    header: { text: header.text, delimiter: header.delimiter },
    batches: recordsOf(input, header.names),
    again: (records) => recordsOf(TextInput.of(records), withoutReasons(header.names)),
  };
}

interface Header {
  readonly names: readonly string[];
  readonly delimiter: string;
  /** As it stands in the file, with the line that names the delimiter, without the column of reasons. */
  readonly text: string;
}

async function readHeader(
  input: TextInput,
  { delimiter: wanted, hasHeader }: ReadingOptions,
): Promise<Header> {
  if (wanted !== undefined && !/^[^"\r\n]$/.test(wanted)) {
    throw new InvalidOption(
      'The delimiter must be one character up to U+FFFF other than a quote or a line end.',
    );
  }
  const named = await skipToHeader(input);
  const given = wanted ?? named;
  let widest: Tokenizer | undefined;
  let length = 0; // of the widest header; not an index, since `input.more()` moves the text
  for (const delimiter of given === undefined ? DELIMITERS : [given]) {
    const tokenizer = new Tokenizer(delimiter, MAX_COLUMNS);
    while (!tokenizer.read(input.text, input.at, input.ended)) await input.more();
    if (tokenizer.fault === undefined && tokenizer.count > (widest?.count ?? 0)) {
      widest = tokenizer;
      length = tokenizer.next - input.at;
    }
  }
  if (widest === undefined)
    throw new OperatorError(`Line ${input.line}, the header, has a misplaced or unclosed quote.`);
  const { count, delimiter } = widest;
  if (count > MAX_COLUMNS) throw new OperatorError(`The header has more than ${MAX_COLUMNS} columns.`);
  const names = Array.from({ length: count }, (_, index) => widest.field(index));
  if (names.some((name) => name.includes('\0'))) {
    throw new NotText(
      'The file is not text: its header has NUL characters. For UTF-16, set --encoding utf-16le.',
    );
  }
  const before = named === undefined ? '' : `sep=${named}\n`;
  if (hasHeader === false) {
    const numbered = names.map((_, index) => `column ${index + 1}`);
    return { names: numbered, delimiter, text: before + numbered.join(delimiter) };
  }
  const text = before + widest.beginning(withoutReasons(names).length);
  input.advance(input.at + length);
  return { names, delimiter, text };
}

/**
 * Skips what spreadsheets leave before the header: blank lines, lines of only delimiters, and Excel's `sep=;`.
 * @returns the delimiter of the latter.
 */
async function skipToHeader(input: TextInput): Promise<string | undefined> {
  let delimiter: string | undefined;
  for (;;) {
    const rest = input.text.slice(input.at);
    const blank = /^(?:[ \t,;]*(?:\r\n?|\n))+/.exec(rest);
    const separator = /^sep=([^"\r\n])(?:\r\n?|\n)/i.exec(rest);
    if (separator !== null) delimiter = separator[1];
    const found = blank ?? separator;
    if (found !== null) {
      input.advance(input.at + found[0].length);
    } else if (input.ended || /[\r\n]/.test(rest)) {
      if (!/[^ \t,;]/.test(rest)) throw new OperatorError('The file is empty: it has no header.');
      return delimiter;
    } else {
      await input.more();
    }
  }
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
  readonly #editionYear: number;

  constructor(input: TextInput, { names, delimiter }: Header, columns: Columns, keepIds: boolean) {
    const indexOf = (name: string | undefined) => (name === undefined ? NOWHERE : names.indexOf(name));
    this.#input = input;
    this.#tokenizer = new Tokenizer(delimiter, names.length);
    this.#names = names;
    this.#own = withoutReasons(names).length;
    this.#id = keepIds ? indexOf('id') : NOWHERE;
    this.#title = indexOf(columns.title);
    this.#author = indexOf(columns.author);
    this.#year = indexOf(columns.year);
    this.#editionYear = indexOf(columns.editionYear);
  }

  /** @returns false when it needs more text, or there is no more. */
  fill(batch: OpenBatch): boolean {
    const input = this.#input;
    const tokenizer = this.#tokenizer;
    while (!isFull(batch)) {
      const { text, at, ended } = input;
      if (at === text.length || !tokenizer.read(text, at, ended)) return false;
      // A line of only delimiters counts as blank: spreadsheets leave such lines behind.
      if (tokenizer.end - at !== tokenizer.count - 1) this.#add(batch);
      batch.size += tokenizer.next - at;
      input.line += tokenizer.lines;
      input.at = tokenizer.next;
    }
    return true;
  }

  #add(batch: OpenBatch): void {
    const book = this.#readBook();
    if ('reason' in book) this.#refuse(batch, book);
    else batch.books.push(book);
  }

  #readBook(): ReadBook | Fault {
    const tokenizer = this.#tokenizer;
    const { fault, count } = tokenizer;
    const columns = this.#names.length;
    if (fault !== undefined) return fault;
    if (!this.#hasAllFields) {
      const fields = count === 1 ? '1 field' : `${count} fields`;
      return { field: WHOLE, reason: `has ${fields}, the header has ${columns}` };
    }
    if (this.#isOfRows) {
      const reason = `has ${tokenizer.lines} lines that look like separate rows: double the quotes that belong to a text`;
      return { field: WHOLE, reason };
    }
    const title = tokenizer.field(this.#title);
    const author = this.#author === NOWHERE ? '' : tokenizer.field(this.#author);
    let yearField = this.#year;
    let year = yearField === NOWHERE ? 0 : readYear(tokenizer.field(yearField));
    if (year === 0 && this.#editionYear !== NOWHERE) {
      yearField = this.#editionYear;
      year = readYear(tokenizer.field(yearField));
    }
    if (typeof year === 'string') return { field: yearField, reason: year };
    if (this.#input.holdsNul) {
      // Rule 4 also forbids a lone surrogate, but decoded text never has one.
      if (title.includes('\0')) return { field: this.#title, reason: 'has a NUL character' };
      if (author.includes('\0')) return { field: this.#author, reason: 'has a NUL character' };
    }
    const id = this.#id === NOWHERE ? undefined : readFileId(tokenizer.field(this.#id));
    if (id === undefined && this.#id !== NOWHERE)
      return { field: this.#id, reason: 'is not an id from 1 to 2^52' };
    const original = id === undefined ? undefined : tokenizer.beginning(this.#own);
    return { id, title, author, year, line: this.#input.line, original };
  }

  /** Whether a record has as many fields as the header, perhaps without the reason of an earlier import. */
  get #hasAllFields(): boolean {
    const tokenizer = this.#tokenizer;
    const { count, hasMore } = tokenizer;
    if (count === this.#own && count < this.#names.length) return !this.#isReason(tokenizer.field(count - 1));
    return count >= this.#names.length && !hasMore;
  }

  /** In a record that lacked fields, or whose fields were joined when it was corrected, the reason is in a column of books. */
  #isReason(text: string): boolean {
    const isOf = (name: string) => text.startsWith(`${name}: `) && REASON.test(text.slice(name.length + 2));
    return REASON_OF_RECORD.test(text) || this.#names.some(isOf);
  }

  /** Programs that write tabs often write quotes as they are: then one may begin a text and another end it, rows later. */
  get #isOfRows(): boolean {
    const tokenizer = this.#tokenizer;
    if (tokenizer.delimiter !== '\t' || tokenizer.lines === 1) return false;
    for (let index = 0; index < Math.min(tokenizer.count, this.#names.length); index += 1) {
      const field = tokenizer.field(index);
      if (field.includes('\t') && /[\r\n]/.test(field)) return true;
    }
    return false;
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
      original: tokenizer.beginning(isWhole ? this.#own : tokenizer.count),
      // After an open quote, the reason would be read as part of the field. In a malformed record, an earlier reason
      // cannot be distinguished from the other fields.
      takesReason: isWhole || !(tokenizer.isOpen || hadReason),
    });
  }
}
