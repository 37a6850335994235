// Owns: what reading gives, books and refused records, a batch at a time.

import { type BookFields, readBookId } from '../books/book.ts';
import type { TextInput } from './decoding.ts';

/** A book that may be stored (rules 1 to 4). A text or a year that the record does not tell is '' or 0. */
export interface ReadBook extends BookFields {
  /** Its own id, where ids are kept (rule 10). */
  readonly id: number | undefined;
  /** The line where its record begins; the file's first line is 1. */
  readonly line: number;
  /** Its record as a refused one has it, where ids are kept: the id may turn out to be taken. */
  readonly original: string | undefined;
}

export interface RefusedRecord {
  readonly line: number;
  /** The name of the column that is wrong; undefined when the whole record is. */
  readonly column: string | undefined;
  /** What is in that column, its beginning if it is long. */
  readonly value: string;
  /** Says of the value, or of the record, what is wrong: `is not a whole number`. */
  readonly reason: string;
  /** The record as it stands in the file, without its line end and without the reason of an earlier refusal. */
  readonly original: string;
  /** Whether the reason can be added to the original so that it can be told from the rest. */
  readonly takesReason: boolean;
}

export interface ReadBatch {
  readonly books: readonly ReadBook[];
  readonly refused: readonly RefusedRecord[];
  /** Bytes of the input read so far. */
  readonly position: number;
}

/** A batch that is being read. */
export interface OpenBatch {
  readonly books: ReadBook[];
  readonly refused: RefusedRecord[];
  /** Characters of its records. */
  size: number;
}

const BATCH_RECORDS = 120;
const BATCH_TEXT = 64 * 1024; // characters

/** Characters of a value that a sentence shows. */
const SHOWN = 80;

/** The highest id that a file may bring: new books get the ids after it, and as many are left for them (rule 12). */
const HIGHEST_ID = 2 ** 52;

/** @returns the id that a file has for a book; undefined when it is none, or leaves no room for others. */
export function readFileId(text: string): number | undefined {
  const id = readBookId(text);
  return id !== undefined && id <= HIGHEST_ID ? id : undefined;
}

export function isFull(batch: OpenBatch): boolean {
  return batch.books.length + batch.refused.length >= BATCH_RECORDS || batch.size >= BATCH_TEXT;
}

/** The beginning of a value. */
export function shorten(value: string): string {
  return value.length > SHOWN ? `${value.slice(0, SHOWN).toWellFormed()}…` : value;
}

/**
 * Reads to the end. When it cannot be read to its end, what comes before the fault is read all the same.
 * @param fill reads records from the text at hand; false when it needs more text, or there is no more.
 */
export async function* readBatches(
  input: TextInput,
  fill: (batch: OpenBatch) => boolean,
): AsyncGenerator<ReadBatch, void, undefined> {
  let going = true;
  let fault: unknown;
  try {
    while (going) {
      const batch: OpenBatch = { books: [], refused: [], size: 0 };
      try {
        while (going && !fill(batch)) {
          if (input.ended) going = false;
          else await input.more();
        }
      } catch (error) {
        going = false;
        fault = error;
      }
      const { books, refused } = batch;
      if (books.length + refused.length > 0) yield { books, refused, position: input.position };
    }
    if (fault !== undefined) throw fault;
  } finally {
    await input.close();
  }
}
