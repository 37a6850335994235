// Owns: correcting rejected records: in a file of them, or one by one.

import type { Format, ReadBook, Reading, RefusedRecord } from './format.ts';
import { because, sentenceOf } from './reasons.ts';

/**
 * The name of the file: `books.rejects.csv` for `books.csv` or for itself.
 * @param name without folders; undefined if it is not a file.
 */
export function refusedName(name: string | undefined, format: Format): string {
  const own = `rejects.${format.rejectsEnding}`;
  const withoutEnding = name?.replace(/(?<=.)\.[^.]*$/, '').replace(/\.rejects(?:-\d+)?$/, '');
  return withoutEnding === undefined ? own : `${withoutEnding}.${own}`;
}

export function asRefused(record: RefusedRecord, { rejects }: Reading): string {
  const { column, reason } = record;
  return rejects.record(
    record,
    column === undefined ? sentenceOf(reason) : `${column}: ${sentenceOf(reason)}`,
  );
}

/** What a person can change of a record: the value of its column; or all of it, and then `column` is undefined. */
export function correctable(
  { column, original }: RefusedRecord,
  reading: Reading,
): { readonly column: string | undefined; readonly text: string } {
  const text = column === undefined ? undefined : reading.valueIn(original, column);
  return text === undefined ? { column: undefined, text: original } : { column, text };
}

/**
 * Reads a record again.
 * @param text instead of that of `correctable`.
 * @returns the book, or what is still wrong with the record as it is now.
 */
export async function correct(
  record: RefusedRecord,
  text: string,
  reading: Reading,
): Promise<ReadBook | RefusedRecord> {
  const { column } = correctable(record, reading);
  const original = column === undefined ? text : reading.replaceIn(record.original, column, text);
  const { line } = record;
  const found: (ReadBook | RefusedRecord)[] = [];
  for await (const { books, refused } of reading.again(original)) found.push(...books, ...refused);
  const [first] = found;
  if (first !== undefined && found.length === 1) return { ...first, line };
  const reason = first === undefined ? because('empty') : because('several-records', found.length);
  return { line, column: undefined, value: '', reason, original, takesReason: false };
}
