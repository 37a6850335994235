// Owns: reading a file of books, CSV, a JSON array or JSON Lines, from its bytes to books that may be stored (rules 1 to
// 5) and refusals. Knows no store. Refuses as a whole a file that cannot be understood; its records one by one.

import { OperatorError } from '../operator-error.ts';
import type { Columns, Field } from './columns.ts';
import { readCsv } from './csv.ts';
import { TextInput } from './decoding.ts';
import { readJson } from './json.ts';
import type { ReadBatch } from './rows.ts';

/** Characters of a file that tell its format. */
const BEGINNING = 100;

export type Format = 'csv' | 'json' | 'jsonl';

export interface ReadingOptions {
  /** The file's name, or `-`. */
  readonly name: string;
  /** Undefined lets the name and the beginning of the file decide. */
  readonly format?: Format | undefined;
  /** A label of the WHATWG Encoding Standard; undefined lets a byte order mark decide, or is UTF-8. */
  readonly encoding?: string | undefined;
  /** One character; undefined lets the header decide. */
  readonly delimiter?: string | undefined;
  /** Names of columns; the others are found by their usual names. */
  readonly columns: Readonly<Partial<Record<Field, string | undefined>>>;
  /** Whether the books keep the file's ids; undefined: they do when its columns are those of an export. */
  readonly ids?: 'keep' | 'new' | undefined;
}

/** How a file is understood, and what is in it. */
export interface Reading {
  readonly format: Format;
  readonly keepsIds: boolean;
  /** Of a file without any record, all are undefined. */
  readonly columns: Columns;
  /** Of CSV: the header as it stands, without the column of an earlier refusal. */
  readonly header: { readonly text: string; readonly delimiter: string } | undefined;
  /**
   * To be gone through once. A text is a part of the piece of the file that it stands in and keeps that in
   * memory: what is to stay for long must be copied.
   * @throws OperatorError where it cannot be read any further, after all that comes before.
   */
  readonly batches: AsyncIterable<ReadBatch>;
}

/**
 * Reads as much of a file as tells what it is.
 * @throws OperatorError when it cannot be told.
 */
export async function readBooks(bytes: AsyncIterable<Uint8Array>, options: ReadingOptions): Promise<Reading> {
  const input = new TextInput(bytes, options.encoding);
  try {
    const format = options.format ?? (await tellFormat(options.name, input));
    return format === 'csv' ? await readCsv(input, options) : await readJson(input, format, options);
  } catch (error) {
    await input.close();
    throw error;
  }
}

async function tellFormat(name: string, input: TextInput): Promise<Format> {
  if (/\.(?:csv|tsv|tab|txt)$/i.test(name)) return 'csv';
  await input.begin(BEGINNING);
  const [first] = /\S/.exec(input.text) ?? [];
  if (first === '[') return 'json';
  if (first === '{') return /^\s*\{\s*"\d+"\s*:\s*\{/.test(input.text) ? 'json' : 'jsonl';
  if (/\.(?:jsonl|ndjson)$/i.test(name)) return 'jsonl';
  if (!/\.json$/i.test(name)) return 'csv';
  if (first !== undefined) throw new OperatorError(`${name} begins with neither [ nor {, as JSON does.`);
  return 'json';
}
