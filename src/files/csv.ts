// Owns: reading books from delimited text (RFC 4180, also with semicolons, tabs or bars).
// Does not: end at a malformed record: it rejects malformed records, those that lack a field that is needed, and those
// with text in more fields than the header has.
//
// The tokenizer is our own. csv-parse takes 2.7 s for a million books, several times as long as everything here. Papa
// Parse reports no line numbers, leaves a CR in the last field if line ends are mixed, and reads an unfinished record
// again with every piece of the file.

import {
  type Columns,
  findColumns,
  firstYear,
  isOtherThing,
  keepsIds,
  NO_BOOK,
  withoutReasons,
} from './columns.ts';
import { type Header, readHeader } from './csv-header.ts';
import { type Fault, Tokenizer, WITHOUT_QUOTING } from './csv-tokenizer.ts';
import type { OpenBatch, ReadBook, Reading, ReadingOptions } from './rows.ts';
import { NOT_AN_ID, readBatches, readFileId, shorten, textOf } from './rows.ts';
import { TextInput } from './text-input.ts';
import { isNewYear, readYear } from './years.ts';

/** The index of a column that does not exist. */
const NOWHERE = -1;

/** The field of a fault in the whole record. */
const WHOLE = -1;

/** A text that a spreadsheet leaves as it is, between tabs, as in our file for Excel: `="007"`. */
const TEXT_OF_SPREADSHEET = /^="([^"]*(?:""[^"]*)*)"$/;

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
    return readBatches(from, (batch) => records.readInto(batch));
  };
  return {
    format: 'csv',
    keepsIds: keepIds,
    names: header.names,
    columns,
    header,
    batches: recordsOf(input, header.names),
    again: (records) => recordsOf(TextInput.of(records, input.isDamaged), withoutReasons(header.names)),
  };
}

/** How a record is split into the columns of a file. */
export function tokenizerOf(names: readonly string[], delimiter: string): Tokenizer {
  return new Tokenizer(delimiter, names.length, [withoutReasons(names).length, names.length]);
}

class CsvRecords {
  readonly #input: TextInput;
  readonly #tokenizer: Tokenizer;
  readonly #names: readonly string[];
  readonly #columns: Columns;
  /** Number of fields of a record by the header, without the reason of an earlier import. */
  readonly #own: number;
  /** The indexes of the fields in a record. */
  readonly #id: number;
  readonly #title: number;
  readonly #author: number;
  readonly #years: readonly number[];
  readonly #kinds: readonly number[];
  /** The last of them. */
  readonly #lastUsed: number;

  constructor(input: TextInput, { names, delimiter }: Header, columns: Columns, keepIds: boolean) {
    const indexOf = (name: string | undefined) => (name === undefined ? NOWHERE : names.indexOf(name));
    this.#input = input;
    this.#tokenizer = tokenizerOf(names, delimiter);
    this.#names = names;
    this.#columns = columns;
    this.#own = withoutReasons(names).length;
    this.#id = keepIds ? indexOf('id') : NOWHERE;
    this.#title = indexOf(columns.title);
    this.#author = indexOf(columns.author);
    this.#years = [indexOf(columns.year), ...columns.otherYears.map(indexOf)];
    this.#kinds = columns.kinds.map(indexOf);
    this.#lastUsed = Math.max(this.#id, this.#title, this.#author, indexOf(columns.year));
  }

  /** @returns false when it needs more text, or there is no more. */
  readInto(batch: OpenBatch): boolean {
    const input = this.#input;
    const tokenizer = this.#tokenizer;
    const { text, at, ended } = input;
    if (at === text.length || !tokenizer.read(text, at, ended)) return false;
    this.#add(batch);
    batch.size += tokenizer.next - at;
    input.line += tokenizer.lines;
    input.at = tokenizer.next;
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
    const kind = this.#kinds.find((field) => isOtherThing(this.#field(field)));
    if (kind !== undefined) return { field: kind, reason: NO_BOOK };
    const title = textOf('title', this.#field(this.#title), this.#columns);
    const author = textOf('author', this.#field(this.#author), this.#columns);
    const [year, yearField] = firstYear(this.#years, (field) => readYear(this.#field(field)));
    const isSuspect = this.#input.holdsNul || this.#input.isDamaged; // rule 4
    const wrong = isSuspect ? (this.#wrongText(this.#title) ?? this.#wrongText(this.#author)) : undefined;
    if (wrong !== undefined) return wrong;
    if (typeof year === 'string') return this.#damaged(yearField) ?? { field: yearField, reason: year };
    const id = this.#id === NOWHERE ? undefined : readFileId(this.#field(this.#id));
    if (id === undefined && this.#id !== NOWHERE)
      return this.#damaged(this.#id) ?? { field: this.#id, reason: NOT_AN_ID };
    const original = id === undefined ? undefined : this.#ownText;
    const fields = { title, author, year, isNewYear: isNewYear(this.#field(yearField)) };
    return { ...fields, id, line: this.#input.line, original };
  }

  /** Whether all fields are empty, or blanks: spreadsheets leave such rows behind. */
  get #isBlank(): boolean {
    const { fault, hasMore, fields } = this.#tokenizer;
    return fault === undefined && !hasMore && !fields.some((field) => /[^ \t\r\n]/.test(field));
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
    if (count >= this.#own) return true;
    if (this.#joinsFields) return false;
    const mayBeCut = WITHOUT_QUOTING.includes(delimiter) || end === this.#input.text.length;
    return lines === 1 && count > (mayBeCut ? this.#lastUsed : this.#title);
  }

  /** Whether a short record has an empty field at its end, so that it lacks none there: a quoted field holds others. */
  get #joinsFields(): boolean {
    const { delimiter, fields } = this.#tokenizer;
    return fields.at(-1) === '' && fields.some((field) => field.includes(delimiter));
  }

  /**
   * Whether a quote that begins a text, and one that ends another, rows later, join these rows to one record. Its first and
   * its last line then are whole rows by themselves. Between tabs or bars, where no line end is expected, a part is enough.
   */
  get #isOfRows(): boolean {
    const tokenizer = this.#tokenizer;
    const { delimiter, count } = tokenizer;
    if (tokenizer.lines === 1) return false;
    const isJoined = (field: string) => field.includes(delimiter) && /[\r\n]/.test(field);
    if (WITHOUT_QUOTING.includes(delimiter) && tokenizer.fields.some(isJoined)) return true;
    // The reason of an earlier import may have delimiters.
    const lines = tokenizer.beginning(count === this.#names.length ? this.#own : count).split(/[\r\n]/);
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
      // After an open quote, the reason would be read as part of the field, and after fewer fields as another one. In a
      // malformed record, an earlier reason cannot be distinguished from the other fields.
      takesReason: isWhole || !(tokenizer.isOpen || hadReason || tokenizer.count < this.#own),
    });
  }
}
