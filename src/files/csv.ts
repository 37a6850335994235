// Owns: reading books from delimited text (RFC 4180, also with semicolons, tabs or bars).
// Does not: end at a malformed record: it rejects malformed records, those that lack a field that is needed, and those
// with text in more fields than the header has.
//
// The splitting is our own. csv-parse takes 2.7 s for a million books, several times as long as everything here. Papa
// Parse reports no line numbers, leaves a CR in the last field if line ends are mixed, and reads an unfinished record
// again with every piece of the file.

import { quoted } from '../books/line.ts';
import { findColumns, keepsIds, REFUSED, withoutReasons } from './columns.ts';
import { readHeader } from './csv-header.ts';
import { type CsvRecord, hasQuoting, isOpen, readRecord, recordsIn } from './csv-record.ts';
import { FIRST_RECORDS, type Format, type Reading } from './format.ts';
import { because } from './reasons.ts';
import { readBatches, rowOf, shorten } from './rows.ts';
import type { TextInput } from './text-input.ts';

/** Spreadsheets leave rows of such fields behind. */
const isBlank = (field: string) => /^[ \t\r\n]*$/.test(field);

export const csv: Format = {
  name: 'csv',
  title: 'CSV',
  rejectsEnding: 'csv',
  unit: 'line',
  isTable: true,
  // No header begins as an object does.
  recognise: (beginning, name) =>
    /\.(?:csv|tsv|tab|txt)$/i.test(name) && !/^(?:\[\s*)?\{\s*"/.test(beginning),

  async read(input, options) {
    const { names, delimiter, line, text, above } = await readHeader(input, options);
    const first = recordsIn(input, delimiter)
      .filter(({ fields }) => !fields.every(isBlank))
      .take(FIRST_RECORDS)
      .map(({ fields }) => fields.map(shorten))
      .toArray();
    const columns = findColumns(
      names,
      options.columns,
      first,
      options.hasHeader === false ? undefined : line,
    );
    const table = { names, delimiter, columns, keepsIds: keepsIds(names, options.ids) };
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
        const record = split(original);
        return isOpen(record) ? undefined : record.fields[names.indexOf(column)];
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
  const { names, delimiter, columns, keepsIds } = table;
  const indexes = new Map<string | undefined, number>();
  for (const [index, name] of [...names.entries()].reverse()) indexes.set(name, index); // the first one counts
  const indexOf = (column: string | undefined) => indexes.get(column) ?? -1;
  const used = [columns.title, columns.author, columns.year, keepsIds ? columns.id : undefined];
  const lastUsed = Math.max(...used.map(indexOf));
  /** Fields of a record by the header, without the reason of an earlier import. */
  const own = withoutReasons(names).length;

  /**
   * Whether a record has as many fields as the header, perhaps without the reason of an earlier import. Spreadsheets
   * leave out empty fields at the end of a line. But if there are several lines, or if the end of the file or a line end
   * in text without quoting may have cut off a field that is used, the record is not whole. Nor is one with an empty field
   * at its end, which lacks none there, but has two in one pair of quotes.
   */
  const hasAllFields = (fields: readonly string[], lines: number, isLast: boolean) => {
    if (fields.length > names.length) return fields.slice(names.length).every((field) => field === '');
    if (fields.length >= own) return true;
    if (fields.at(-1) === '' && fields.some((field) => field.includes(delimiter))) return false;
    const mayBeCut = isLast || !hasQuoting(delimiter);
    return lines === 1 && fields.length > (mayBeCut ? lastUsed : indexOf(columns.title));
  };

  /**
   * Whether a quote that begins a text, and one that ends another, rows later, join these rows to one record. Its first and
   * its last line then are whole rows by themselves.
   */
  const areRows = (record: string, most: number) => {
    const lines = record.split(/[\r\n]/);
    return [lines[0], lines.at(-1)].every((line = '') => {
      const count = line.split(delimiter).length;
      return count >= own && count <= most;
    });
  };

  return readBatches(input, () => {
    const { text, at, line, ended } = input;
    const record = at === text.length ? undefined : readRecord(text, at, delimiter, ended);
    if (record === undefined) return undefined;
    const { fields, end, next, fault } = record;
    input.advance(next);
    if (fault === undefined && fields.every(isBlank)) return null;
    const lines = input.line - line + (end === text.length ? 1 : 0);
    // A row that lacks a field would empty it in the book with its id.
    const isShort = fields.length <= lastUsed;
    const changesBook = keepsIds && !isBlank(fields[indexOf(columns.id)] ?? '');
    const isWhole =
      fault === undefined && hasAllFields(fields, lines, end === text.length) && !(isShort && changesBook);
    /** A whole record has no reason of an earlier import, and the fields that it lacks at its end. */
    const original = () => {
      if (!isWhole) return text.slice(at, end);
      const last = (readRecord(text, at, delimiter, true, own) as CsvRecord).end;
      return text.slice(at, last) + delimiter.repeat(Math.max(0, own - fields.length));
    };
    // The reason of an earlier import may have delimiters.
    const isLong = fields.length > names.length;
    const isJoined =
      isWhole &&
      lines > 1 &&
      (isLong ? areRows(text.slice(at, end), names.length) : areRows(original(), own));
    if (isWhole && !isJoined) {
      const get = (column: string | undefined) => fields[indexes.get(column) ?? -1];
      return rowOf({ line, isShort, get, original }, input, columns, keepsIds);
    }
    // After an open quote, the reason would be read as part of the field, and after fewer fields as another one. In a
    // malformed record, an earlier reason cannot be distinguished from the other fields.
    const hasRoom = !isOpen(record) && own === names.length && fields.length >= own;
    return {
      line,
      column: fault && names[fault.field],
      value: shorten(fault && fields[fault.field]),
      reason:
        fault?.reason ??
        (isJoined ? because('rows-joined', lines) : because('field-count', fields.length, names.length)),
      original: original(),
      takesReason: isWhole || hasRoom,
    };
  });
}
