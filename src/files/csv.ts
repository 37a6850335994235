// Owns: reading books from delimited text (RFC 4180, also with semicolons, tabs or bars).
// Does not: end at a malformed record: it rejects malformed records, those that lack a field that is needed, and those
// with text in more fields than the header has.
//
// The splitting is our own. csv-parse takes 2.7 s for a million books, several times as long as everything here. Papa
// Parse reports no line numbers, leaves a CR in the last field if line ends are mixed, and reads an unfinished record
// again with every piece of the file.

import { quoted } from '../books/line.ts';
import { findColumns, keepsIds, REFUSED, withFirst, withoutReasons } from './columns.ts';
import { readHeader } from './csv-header.ts';
import { type CsvRecord, hasQuoting, readRecord } from './csv-record.ts';
import { FIRST_RECORDS, type Format, type ReadBook, type Reading, type RefusedRecord } from './format.ts';
import { because } from './reasons.ts';
import { type FileRecord, readBatches, rowOf, shorten } from './rows.ts';
import type { TextInput } from './text-input.ts';

/** A text that a spreadsheet leaves as it is, between tabs, as in our file for Excel: `="007"`. */
const TEXT_OF_SPREADSHEET = /^="([^"]*(?:""[^"]*)*)"$/;

/** Spreadsheets leave rows of such fields behind. */
const isBlank = (field: string) => /^[ \t\r\n]*$/.test(field);

export const csv: Format = {
  name: 'csv',
  title: 'CSV',
  type: 'text/csv',
  unit: 'line',
  isTable: true,
  // No header begins as an object does.
  recognise: (beginning, name) =>
    /\.(?:csv|tsv|tab|txt)$/i.test(name) && !/^(?:\[\s*)?\{\s*"/.test(beginning),

  async read(input, options) {
    const { names, delimiter, line, text, above } = await readHeader(input, options);
    const first = firstRows(input, delimiter);
    const columns = withFirst(first, () =>
      findColumns(names, options.columns, options.hasHeader === false ? undefined : line),
    );
    const named = names.filter((name) => name !== ''); // spreadsheets leave delimiters behind
    const table = { names, delimiter, columns, keepsIds: keepsIds(named, options.ids) };
    const split = (original: string, most?: number) =>
      readRecord(original, 0, delimiter, true, most) as CsvRecord;
    return {
      ...table,
      format: csv,
      above,
      first,
      batches: batchesOf(input, table),
      rejects: {
        before: `${text}${delimiter}${REFUSED}\n`,
        between: '\n',
        after: '\n',
        record: ({ original, takesReason }, reason) =>
          takesReason ? `${original}${delimiter}${quoted(reason)}` : original,
      },
      valueIn(original, column) {
        const { isOpen, fields } = split(original);
        return isOpen ? undefined : fields[names.indexOf(column)];
      },
      replaceIn(original, column, value) {
        const field = names.indexOf(column);
        const start = field === 0 ? 0 : split(original, field).end + 1;
        return original.slice(0, start) + quoted(value) + original.slice(split(original, field + 1).end);
      },
      again(original) {
        const corrected = input.with(original);
        return batchesOf(corrected, { ...table, names: withoutReasons(names) });
      },
    };
  },
};

type Table = Required<Pick<Reading, 'names' | 'delimiter' | 'columns' | 'keepsIds'>>;

function batchesOf(input: TextInput, table: Table): Reading['batches'] {
  const rows = new CsvRows(input, table);
  return readBatches(input, () => rows.next());
}

/** The rows of the available text that follow. */
function firstRows({ text, at, ended }: TextInput, delimiter: string): string[][] {
  const rows: string[][] = [];
  for (let start = at; rows.length < FIRST_RECORDS && start < text.length; ) {
    const row = readRecord(text, start, delimiter, ended);
    if (row === undefined) break;
    if (!row.fields.every(isBlank)) rows.push(row.fields.map(shorten));
    start = row.next;
  }
  return rows;
}

/** The records of a table, one at a time. */
class CsvRows implements FileRecord {
  readonly #input: TextInput;
  readonly #table: Table;
  readonly #indexes: ReadonlyMap<string | undefined, number>;
  /** Number of fields of a record by the header, without the reason of an earlier import. */
  readonly #own: number;
  readonly #lastUsed: number;
  #text = '';
  #start = 0;
  #record!: CsvRecord;
  #lines = 1;
  #isWhole = true;
  line = 1;
  isShort = false;

  constructor(input: TextInput, table: Table) {
    const { names, columns, keepsIds } = table;
    this.#input = input;
    this.#table = table;
    this.#indexes = new Map(names.map((name, index) => [name, index] as const).reverse()); // the first one counts
    this.#own = withoutReasons(names).length;
    const used = [columns.title, columns.author, columns.year, keepsIds ? 'id' : undefined];
    this.#lastUsed = Math.max(...used.map((name) => this.#indexOf(name)));
  }

  #indexOf(column: string | undefined): number {
    return this.#indexes.get(column) ?? -1;
  }

  get(column: string | undefined): string | undefined {
    const field = this.#record.fields[this.#indexOf(column)];
    if (this.#table.delimiter !== '\t' || !field?.startsWith('="')) return field;
    return TEXT_OF_SPREADSHEET.exec(field)?.[1]?.replaceAll('""', '"') ?? field;
  }

  /** A whole record has no reason of an earlier import, and the fields that it lacks at its end. */
  original(): string {
    const { delimiter } = this.#table;
    const { fields, end } = this.#record;
    if (!this.#isWhole) return this.#text.slice(this.#start, end);
    const own = readRecord(this.#text, this.#start, delimiter, true, this.#own);
    return this.#text.slice(this.#start, own?.end) + delimiter.repeat(Math.max(0, this.#own - fields.length));
  }

  /** As `readBatches` wants it. */
  next(): ReadBook | RefusedRecord | null | undefined {
    const { text, at, line, ended } = this.#input;
    const { names, delimiter, columns, keepsIds } = this.#table;
    const record = at === text.length ? undefined : readRecord(text, at, delimiter, ended);
    if (record === undefined) return undefined;
    const { fields, end, next, fault, isOpen } = record;
    this.#input.advance(next);
    if (fault === undefined && fields.every(isBlank)) return null;
    this.line = line;
    this.isShort = fields.length <= this.#lastUsed;
    this.#text = text;
    this.#start = at;
    this.#record = record;
    this.#lines = this.#input.line - line + (end === text.length ? 1 : 0);
    this.#isWhole = fault === undefined && this.#hasAllFields();
    const areRows = fault === undefined && this.#lines > 1 && this.#areRows();
    if (this.#isWhole && !areRows) return rowOf(this, this.#input, columns, keepsIds);
    const reason = areRows
      ? because('rows-joined', this.#lines)
      : because('field-count', fields.length, names.length);
    // After an open quote, the reason would be read as part of the field, and after fewer fields as another one. In a
    // malformed record, an earlier reason cannot be distinguished from the other fields.
    const takesReason = this.#isWhole || !(isOpen || this.#own < names.length || fields.length < this.#own);
    return {
      line,
      column: fault && names[fault.field],
      value: fault === undefined ? '' : shorten(fields[fault.field]),
      reason: fault?.reason ?? reason,
      original: this.original(),
      takesReason,
    };
  }

  /**
   * Whether a record has as many fields as the header, perhaps without the reason of an earlier import. Spreadsheets
   * leave out empty fields at the end of a line. But if there are several lines, or if the end of the file or a line end
   * in text without quoting may have cut off a field that is used, the record is not whole. Nor is one with an empty field
   * at its end, which lacks none there, but has two in one pair of quotes.
   */
  #hasAllFields(): boolean {
    const { names, delimiter, columns } = this.#table;
    const { fields, end } = this.#record;
    if (fields.length > names.length) return fields.slice(names.length).every((field) => field === '');
    if (fields.length >= this.#own) return true;
    if (fields.at(-1) === '' && fields.some((field) => field.includes(delimiter))) return false;
    const mayBeCut = end === this.#text.length || !hasQuoting(delimiter);
    const needed = mayBeCut ? this.#lastUsed : this.#indexOf(columns.title);
    return this.#lines === 1 && fields.length > needed;
  }

  /**
   * Whether a quote that begins a text, and one that ends another, rows later, join these rows to one record. Its first and
   * its last line then are whole rows by themselves.
   */
  #areRows(): boolean {
    const { names, delimiter } = this.#table;
    // The reason of an earlier import may have delimiters.
    const { fields, end } = this.#record;
    const text = fields.length > names.length ? this.#text.slice(this.#start, end) : this.original();
    const lines = text.split(/[\r\n]/);
    return [lines[0], lines.at(-1)].every((line = '') => {
      const count = line.split(delimiter).length;
      return count >= this.#own && count <= names.length;
    });
  }
}
