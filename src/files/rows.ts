// Owns: what is read, and how: the interpretation of a file, and its books and rejected records, in batches.

import { type BookFields, LAST_SEQUENTIAL_ID, readBookId } from '../books/book.ts';
import type { Columns, WantedColumns } from './columns.ts';
import type { TextInput } from './text-input.ts';

export type Format = 'csv' | 'json' | 'jsonl';

export interface ReadingOptions {
  /** The file's name, or `-`. */
  readonly name: string;
  /** If undefined, the name and the beginning of the file determine it. */
  readonly format?: Format | undefined;
  /**
   * A label of the WHATWG Encoding Standard, of UTF-8, UTF-16 or single bytes; if undefined, that of the byte order
   * mark, else UTF-8.
   */
  readonly encoding?: string | undefined;
  /** One character of one UTF-16 unit; if undefined, the header determines it. */
  readonly delimiter?: string | undefined;
  readonly columns: WantedColumns;
  /** Of CSV: false if the first row is also a record. The columns are then called `column 1` and so on. */
  readonly hasHeader?: boolean | undefined;
  /** Of CSV: the first line that is not left out. */
  readonly fromLine?: number | undefined;
  /** Whether the books keep the file's ids; undefined means yes if its columns are those of an export. */
  readonly ids?: 'keep' | 'new' | undefined;
}

/** How a file is interpreted, and its content. */
export interface Reading {
  readonly format: Format;
  readonly keepsIds: boolean;
  /** Of all columns, in the order of the file; of JSON, of the objects at the beginning. */
  readonly names: readonly string[];
  /** All are undefined for a file without records. */
  readonly columns: Columns;
  /**
   * For CSV: the header as it stands, with a line before it that names the delimiter, without the column of reasons of
   * an earlier import; and the text above it, which was left out.
   */
  readonly header: { readonly text: string; readonly delimiter: string; readonly above: string } | undefined;
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

/** A book that may be stored (rules 1 to 4). A text or a year that the record lacks is '' or 0. */
export interface ReadBook extends BookFields {
  /** Whether its year began at a time that the file has in UTC, as 31 December. */
  readonly isNewYear: boolean;
  /** Its own id, where ids are kept (rule 10). */
  readonly id: number | undefined;
  /** The line where its record begins; the file's first line is 1. */
  readonly line: number;
  /** Its record, as in `RefusedRecord`, where ids are kept: the id may turn out to be taken. */
  readonly original: string | undefined;
}

export interface RefusedRecord {
  readonly line: number;
  /** The name of the column that is wrong; undefined when the whole record is. */
  readonly column: string | undefined;
  /** The value in that column; its beginning if it is long. */
  readonly value: string;
  /** What is wrong with the value or the record, such as `is not a whole number`. */
  readonly reason: string;
  /** The record as it stands in the file, without its line end and without the reason of an earlier import. */
  readonly original: string;
  /** Whether the reason can be added to the original and still be distinguished from the rest. */
  readonly takesReason: boolean;
}

export interface ReadBatch {
  readonly books: readonly ReadBook[];
  readonly refused: readonly RefusedRecord[];
  /** How many of the books are from records that end before a column that is used. */
  readonly short: number;
  /** Bytes of the input read so far. */
  readonly position: number;
}

/** A batch that is being read. */
export interface OpenBatch {
  readonly books: ReadBook[];
  readonly refused: RefusedRecord[];
  short: number;
  /** Characters of its records. */
  size: number;
}

const BATCH_RECORDS = 120;
const BATCH_TEXT = 64 * 1024; // characters

/**
 * What databases and programs write for nothing: of authors, only texts that are no name (some people are `Null` and `Nan`);
 * of titles, only texts that are no word.
 */
const NOTHING = {
  author: /^\s*(?:NULL|null|[Nn]one|nan|NaN|N\/A|n\/a|undefined|[<(](?:NULL|null)[>)]|\\N|#N\/A|<NA>)\s*$/,
  title: /^\s*(?:\\N|#N\/A|<NA>)\s*$/,
};

/** Characters of a value that a message shows. */
const SHOWN = 80;

export function textOf(field: 'title' | 'author', text: string, { isExport }: Columns): string {
  return !isExport && NOTHING[field].test(text) ? '' : text;
}

/** @returns undefined if the text is not an id that a file may have. */
export function readFileId(text: string): number | undefined {
  const id = readBookId(text);
  return id !== undefined && id <= LAST_SEQUENTIAL_ID ? id : undefined;
}
export const NOT_AN_ID = 'is not an id from 1 to 2^52';

/** The beginning of a value. */
export function shorten(value: string): string {
  return value.length > SHOWN ? `${value.slice(0, SHOWN).replace(/[\ud800-\udbff]$/, '')}…` : value;
}

/**
 * Reads all records. If the file cannot be read to its end, everything before the fault is yielded first.
 * @param readInto reads a record from the available text; false when it needs more text, or there is no more.
 */
export async function* readBatches(
  input: TextInput,
  readInto: (batch: OpenBatch) => boolean,
): AsyncGenerator<ReadBatch, void, undefined> {
  let going = true;
  let fault: unknown;
  try {
    while (going) {
      const batch: OpenBatch = { books: [], refused: [], short: 0, size: 0 };
      const { books, refused } = batch;
      const isFull = () => books.length + refused.length >= BATCH_RECORDS || batch.size >= BATCH_TEXT;
      try {
        while (going && !isFull()) {
          if (readInto(batch)) continue;
          going = !input.ended;
          if (going) await input.more();
          else input.assertUtf8();
        }
      } catch (error) {
        going = false;
        fault = error;
      }
      if (books.length + refused.length > 0) yield { ...batch, position: input.position };
    }
    if (fault !== undefined) throw fault;
  } finally {
    await input.close();
  }
}
