// Owns: reading a file (CSV, a JSON array or JSON Lines) into books that may be stored (rules 1 to 5) and rejected
// records. It is independent of the stores.
// Refuses: a whole file that cannot be interpreted; otherwise, records one by one.

import { OperatorError } from '../operator-error.ts';
import type { Columns, WantedColumns } from './columns.ts';
import { readCsv } from './csv.ts';
import { TextInput } from './decoding.ts';
import { readJson } from './json.ts';
import type { ReadBatch } from './rows.ts';

/** Characters of a file that determine its format. */
const BEGINNING = 100;

export type Format = 'csv' | 'json' | 'jsonl';

export interface ReadingOptions {
  /** The file's name, or `-`. */
  readonly name: string;
  /** If undefined, the name and the beginning of the file determine it. */
  readonly format?: Format | undefined;
  /** A label of the WHATWG Encoding Standard; if undefined, that of the byte order mark, else UTF-8. */
  readonly encoding?: string | undefined;
  /** One character; if undefined, the header determines it. */
  readonly delimiter?: string | undefined;
  readonly columns: WantedColumns;
  /** Whether the books keep the file's ids; undefined means yes if its columns are those of an export. */
  readonly ids?: 'keep' | 'new' | undefined;
}

/** How a file is interpreted, and its content. */
export interface Reading {
  readonly format: Format;
  readonly keepsIds: boolean;
  /** Of all columns, in the order of the file. */
  readonly names: readonly string[];
  /** All are undefined for a file without records. */
  readonly columns: Columns;
  /** For CSV: the header as it stands, without the column of reasons of an earlier import. */
  readonly header: { readonly text: string; readonly delimiter: string } | undefined;
  /**
   * Can be iterated over once. A string is part of a larger piece of the file and keeps that piece in memory: copy
   * strings that must stay for long.
   * @throws OperatorError where the file cannot be read further, after everything before that point.
   */
  readonly batches: AsyncIterable<ReadBatch>;
  /**
   * Reads other records as those of the file: corrected ones. They are in CSV without a header, or in JSON Lines, and
   * without the column of reasons.
   */
  again(records: string): AsyncIterable<ReadBatch>;
}

/**
 * Reads as much of a file as is needed to determine its format and columns.
 * @throws OperatorError when they cannot be determined.
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
  if (first !== undefined) throw new OperatorError(`${name} is not JSON: it begins with neither [ nor {.`);
  return 'json';
}
