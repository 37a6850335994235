// Owns: reading a file (CSV, a JSON array or JSON Lines) into books that may be stored (rules 1 to 5) and rejected
// records. It is independent of the stores.
// Does not: read a file that cannot be interpreted as a whole, or has another format; other faults reject records one by
// one.

import { FIELD_NAMES } from '../books/book.ts';
import { InvalidOption, OperatorError } from '../operator-error.ts';
import { type Field, NoTitleColumn, REFUSED } from './columns.ts';
import { readCsv } from './csv.ts';
import { assertNotForeign, BEGINNING as FOREIGN_BEGINNING } from './foreign.ts';
import { readJson } from './json.ts';
import type { Format, Reading, ReadingOptions } from './rows.ts';
import { TextInput } from './text-input.ts';

/** Characters of a file that determine its format. */
const BEGINNING = 100;

/**
 * Reads as much of a file as is needed to determine its format and columns.
 * @throws OperatorError when they cannot be determined.
 */
export async function readBooks(bytes: AsyncIterable<Uint8Array>, options: ReadingOptions): Promise<Reading> {
  const input = new TextInput(bytes, options.encoding);
  const beginning = await input.peek(FOREIGN_BEGINNING);
  try {
    if (options.format === undefined) assertNotForeign(beginning);
    const format = options.format ?? (await tellFormat(options.name, input));
    const reading = format === 'csv' ? await readCsv(input, options) : await readJson(input, format, options);
    const { columns, names } = reading;
    if (names.includes(REFUSED)) input.takeForRejects();
    const isMissing = (field: Field) => columns[field] === undefined && options.columns[field] === undefined;
    if (FIELD_NAMES.some(isMissing)) assertNamesUtf8(names, input);
    return reading;
  } catch (error) {
    await input.close();
    if (error instanceof OperatorError && !(error instanceof InvalidOption)) assertNotForeign(beginning);
    if (error instanceof NoTitleColumn) assertNamesUtf8(error.names, input);
    throw error;
  }
}

/** A damaged name may be that of a column that is missing. */
function assertNamesUtf8(names: readonly string[], input: TextInput): void {
  input.damageIn(names.join(), 1);
}

async function tellFormat(name: string, input: TextInput): Promise<Format> {
  await input.begin(BEGINNING);
  // No header begins as an object does.
  if (/\.(?:csv|tsv|tab|txt)$/i.test(name) && !/^\s*(?:\[\s*)?\{\s*"/.test(input.text)) return 'csv';
  const [first] = /\S/.exec(input.text) ?? [];
  if (first === '[') return 'json';
  if (first === '{') return /^\s*\{\s*"\d+"\s*:\s*\{/.test(input.text) ? 'json' : 'jsonl';
  if (/\.(?:jsonl|ndjson)$/i.test(name)) return 'jsonl';
  if (!/\.json$/i.test(name)) return 'csv';
  if (first !== undefined) throw new OperatorError(`${name} is not JSON: it begins with neither [ nor {.`);
  return 'json';
}
