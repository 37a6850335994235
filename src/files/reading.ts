// Owns: reading a file of any format into books that may be stored (rules 1 to 5) and rejected records. It is independent of
// the stores.
// Does not: read a file that cannot be interpreted as a whole, or has another format; other faults reject records one by
// one.

import { FIELD_NAMES } from '../books/book.ts';
import { InvalidOption } from '../operator-error.ts';
import { type Field, NoTitleColumn, REFUSED } from './columns.ts';
import { csv } from './csv.ts';
import { assertNotForeign, textOfBytes } from './foreign.ts';
import type { Format, Reading, ReadingOptions } from './format.ts';
import { jsonArray, jsonLines } from './json.ts';
import { TextInput } from './text-input.ts';
import { unpack, workbook } from './unpacking.ts';

/** The first that recognises a file reads it; otherwise, it is CSV. */
export const FORMATS: readonly Format[] = [csv, jsonArray, jsonLines, workbook];

/**
 * Reads as much of a file as is needed to determine its format and columns.
 * @throws OperatorError when they cannot be determined.
 */
export async function readBooks(bytes: AsyncIterable<Uint8Array>, options: ReadingOptions): Promise<Reading> {
  const file = await unpack(bytes, options);
  const { name, table, position } = file;
  assertFits(options, table !== undefined);
  const input = await TextInput.open(
    file.bytes,
    table ? 'utf-8' : options.encoding,
    table !== undefined,
    position,
  );
  const beginning = textOfBytes(input.beginning);
  try {
    if (options.format === undefined && !table) assertNotForeign(beginning);
    const wanted = table ? workbook.name : options.format;
    const format = FORMATS.find((one) => {
      return wanted === undefined ? one.recognise(beginning, name) : one.name === wanted;
    });
    const reading = await (format ?? csv).read(input, options);
    const { columns, names } = reading;
    if (names.includes(REFUSED)) input.decoder.takeForRejects();
    // A damaged name may be that of a column that is missing.
    const isMissing = (field: Field) => columns[field] === undefined && options.columns[field] === undefined;
    if (FIELD_NAMES.some(isMissing)) input.decoder.damageIn(names.join(), 1);
    return { ...reading, ...table, encoding: input.decoder.encoding };
  } catch (error) {
    await input.close();
    if (error instanceof NoTitleColumn) input.decoder.damageIn(input.text, 1);
    throw error;
  }
}

/** @throws InvalidOption if an option is about another kind of file. */
function assertFits({ format, sheet }: ReadingOptions, isWorkbook: boolean): void {
  if (isWorkbook && format !== undefined && format !== workbook.name)
    throw new InvalidOption(`The file is a workbook: leave out --format ${format}.`);
  if (!isWorkbook && (format === workbook.name || sheet !== undefined))
    throw new InvalidOption('The file is not a workbook: leave out --format xlsx and --sheet.');
}
