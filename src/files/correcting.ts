// Owns: correcting a rejected record: which text of it a person can change, and reading it again with that text.

import { quoted } from '../books/line.ts';
import { parseJsonObject } from '../json/parse.ts';
import { tokenizerOf } from './csv.ts';
import type { Tokenizer } from './csv-tokenizer.ts';
import type { ReadBook, Reading, RefusedRecord } from './rows.ts';
import { onOneLine } from './writing.ts';

/** What a person can change of a record: the value of its column, or all of it. */
export interface Correctable {
  /** The column whose value `text` is; undefined if `text` is the whole record. */
  readonly column: string | undefined;
  readonly text: string;
}

type HowRead = Pick<Reading, 'header' | 'names' | 'again'>;

export function correctable(record: RefusedRecord, reading: HowRead): Correctable {
  const { column, original } = record;
  const value = column === undefined ? undefined : valueIn(original, column, reading);
  return value === undefined ? { column: undefined, text: original } : { column, text: value };
}

/**
 * Reads a record again.
 * @param text instead of that of `correctable`.
 * @returns the book, or what is still wrong with the record as it is now.
 */
export async function correct(
  record: RefusedRecord,
  text: string,
  reading: HowRead,
): Promise<ReadBook | RefusedRecord> {
  const { column } = correctable(record, reading);
  const original = column === undefined ? text : replaceIn(record.original, column, text, reading);
  const { line } = record;
  const found: (ReadBook | RefusedRecord)[] = [];
  const oneLine = reading.header === undefined ? onOneLine(original) : original;
  for await (const { books, refused } of reading.again(oneLine)) found.push(...books, ...refused);
  const [first] = found;
  if (first !== undefined && found.length === 1) return { ...first, line };
  const reason =
    first === undefined
      ? 'is empty'
      : `is ${found.length} records instead of one: save the refused rows and import that file`;
  return { line, column: undefined, value: '', reason, original, takesReason: false };
}

/** @returns undefined if the record has no such value, or none that can be told apart from the others. */
export function valueIn(original: string, column: string, reading: HowRead): string | undefined {
  const { header, names } = reading;
  if (header === undefined) {
    const value = parseJsonObject(original)?.[column];
    return typeof value === 'string' ? value : JSON.stringify(value);
  }
  const tokenizer = tokenized(original, header.delimiter, reading);
  const field = names.indexOf(column);
  return tokenizer.isOpen || field >= tokenizer.count ? undefined : tokenizer.field(field);
}

function replaceIn(original: string, column: string, value: string, reading: HowRead): string {
  const { header, names } = reading;
  if (header === undefined) {
    // Of two values with one key, the last one counts.
    return `${original.trimEnd().slice(0, -1)},${JSON.stringify(column)}:${JSON.stringify(value)}}`;
  }
  const tokenizer = tokenized(original, header.delimiter, reading);
  const field = names.indexOf(column);
  const before = field === 0 ? '' : tokenizer.beginning(field) + header.delimiter;
  const after = original.slice(tokenizer.beginning(field + 1).length);
  return before + quoted(value) + after;
}

function tokenized(original: string, delimiter: string, { names }: HowRead): Tokenizer {
  const tokenizer = tokenizerOf(names, delimiter);
  tokenizer.read(original, 0, true);
  return tokenizer;
}
