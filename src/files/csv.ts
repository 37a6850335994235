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
import type { OpenBatch, ReadBook, Reading, ReadingOptions, RefusedRecord } from './rows.ts';
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
  const recordsOf = (from: TextInput, names: readonly string[]) =>
    readBatches(from, recordsIn(from, { ...header, names }, columns, keepIds));
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

/** @returns what reads a record into a batch; false when it needs more text, or there is no more. */
function recordsIn(
  input: TextInput,
  { names, delimiter }: Header,
  columns: Columns,
  keepIds: boolean,
): (batch: OpenBatch) => boolean {
  const indexOf = (name: string | undefined) => (name === undefined ? NOWHERE : names.indexOf(name));
  const tokenizer = tokenizerOf(names, delimiter);
  /** Number of fields of a record by the header, without the reason of an earlier import. */
  const own = withoutReasons(names).length;
  // The indexes of the fields in a record.
  const idField = keepIds ? indexOf('id') : NOWHERE;
  const [titleField, authorField] = [indexOf(columns.title), indexOf(columns.author)];
  const yearFields = [columns.year, ...columns.otherYears].map(indexOf);
  const kindFields = columns.kinds.map(indexOf);
  const lastUsed = Math.max(idField, titleField, authorField, indexOf(columns.year));

  return (batch) => {
    const { text, at, ended } = input;
    if (at === text.length || !tokenizer.read(text, at, ended)) return false;
    add(batch);
    batch.size += tokenizer.next - at;
    input.line += tokenizer.lines;
    input.at = tokenizer.next;
    return true;
  };

  function add(batch: OpenBatch): void {
    const book = readBook();
    const hasTitle = 'title' in book && book.title.trim() !== '';
    if (!hasTitle && isBlank()) return;
    if ('reason' in book) batch.refused.push(refusalOf(book));
    else {
      batch.books.push(book);
      if (tokenizer.count <= lastUsed) batch.short += 1;
    }
  }

  function readBook(): ReadBook | Fault {
    const { fault, count, lines } = tokenizer;
    if (fault !== undefined) return fault;
    if (isOfRows()) {
      const reason = `has ${lines} lines that look like separate rows: remove the quote that joins them, or the line ends`;
      return { field: WHOLE, reason };
    }
    if (!hasAllFields()) {
      const fields = count === 1 ? '1 field' : `${count} fields`;
      return { field: WHOLE, reason: `has ${fields}, the header has ${names.length}` };
    }
    const kind = kindFields.find((field) => isOtherThing(textIn(field)));
    if (kind !== undefined) return { field: kind, reason: NO_BOOK };
    const title = textOf('title', textIn(titleField), columns);
    const author = textOf('author', textIn(authorField), columns);
    const [year, yearField] = firstYear(yearFields, (field) => readYear(textIn(field)));
    const wrong = wrongText(titleField, title) ?? wrongText(authorField, author);
    if (wrong !== undefined) return wrong;
    if (typeof year === 'string') return damaged(yearField) ?? { field: yearField, reason: year };
    const id = idField === NOWHERE ? undefined : readFileId(textIn(idField));
    if (id === undefined && idField !== NOWHERE)
      return damaged(idField) ?? { field: idField, reason: NOT_AN_ID };
    const original = id === undefined ? undefined : ownText();
    const fields = { title, author, year, isNewYear: isNewYear(textIn(yearField)) };
    return { ...fields, id, line: input.line, original };
  }

  /** Whether all fields are empty, or blanks: spreadsheets leave such rows behind. */
  function isBlank(): boolean {
    const { fault, hasMore, fields } = tokenizer;
    return fault === undefined && !hasMore && !fields.some((field) => /[^ \t\r\n]/.test(field));
  }

  /** The content of a column; '' if there is no such column, or the record ends before it. */
  function textIn(index: number): string {
    const field = index === NOWHERE || index >= tokenizer.count ? '' : tokenizer.field(index);
    if (delimiter !== '\t' || !field.startsWith('="')) return field;
    const [, text] = TEXT_OF_SPREADSHEET.exec(field) ?? [];
    return text === undefined ? field : text.replaceAll('""', '"');
  }

  /** Rule 4. */
  function wrongText(field: number, text: string): Fault | undefined {
    return text.includes('\0') ? { field, reason: 'has a NUL character' } : damaged(field);
  }

  function damaged(field: number): Fault | undefined {
    const reason = input.isDamaged ? input.damageIn(textIn(field), input.line) : undefined;
    return reason === undefined ? undefined : { field, reason };
  }

  /**
   * Whether a record has as many fields as the header, perhaps without the reason of an earlier import. Spreadsheets
   * leave out empty fields at the end of a line. But if there are several lines, or if the end of the file or a line end
   * in text without quoting may have cut off a field that is used, the record is not whole.
   */
  function hasAllFields(): boolean {
    const { count, hasMore, lines, end } = tokenizer;
    if (count >= names.length) return !hasMore;
    if (count >= own) return true;
    if (joinsFields()) return false;
    const mayBeCut = WITHOUT_QUOTING.includes(delimiter) || end === input.text.length;
    return lines === 1 && count > (mayBeCut ? lastUsed : titleField);
  }

  /** Whether a short record has an empty field at its end, so that it lacks none there: a quoted field holds others. */
  function joinsFields(): boolean {
    const { fields } = tokenizer;
    return fields.at(-1) === '' && fields.some((field) => field.includes(delimiter));
  }

  /**
   * Whether a quote that begins a text, and one that ends another, rows later, join these rows to one record. Its first and
   * its last line then are whole rows by themselves. Between tabs or bars, where no line end is expected, a part is enough.
   */
  function isOfRows(): boolean {
    const { count, lines } = tokenizer;
    if (lines === 1) return false;
    const isJoined = (field: string) => field.includes(delimiter) && /[\r\n]/.test(field);
    if (WITHOUT_QUOTING.includes(delimiter) && tokenizer.fields.some(isJoined)) return true;
    // The reason of an earlier import may have delimiters.
    const parts = tokenizer.beginning(count === names.length ? own : count).split(/[\r\n]/);
    return [parts[0], parts.at(-1)].every((line = '') => {
      const there = line.split(delimiter).length;
      return there >= own && there <= names.length;
    });
  }

  /** The record without the reason of an earlier import, and with the fields that it lacks at its end. */
  function ownText(): string {
    const lacking = Math.max(0, own - tokenizer.count);
    return tokenizer.beginning(own - lacking) + delimiter.repeat(lacking);
  }

  function refusalOf({ field, reason }: Fault): RefusedRecord {
    const { fault, isOpen, count } = tokenizer;
    const isWhole = fault === undefined && hasAllFields();
    const hadReason = own < names.length;
    return {
      line: input.line,
      column: names[field],
      value: field === WHOLE || field >= names.length ? '' : shorten(tokenizer.field(field)),
      reason,
      original: isWhole ? ownText() : tokenizer.beginning(count),
      // After an open quote, the reason would be read as part of the field, and after fewer fields as another one. In a
      // malformed record, an earlier reason cannot be distinguished from the other fields.
      takesReason: isWhole || !(isOpen || hadReason || count < own),
    };
  }
}
