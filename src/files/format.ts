// Owns: the interface of a format of files: how a file is recognised and read, and how its rejected records are written and
// corrected.

import type { BookFields } from '../books/book.ts';
import type { Columns, WantedColumns } from './columns.ts';
import type { Reason, ReasonCode } from './reasons.ts';
import type { TextInput } from './text-input.ts';

/** A format of files. To add one, write such an object, and name it in `FORMATS` of `reading.ts`. */
export interface Format {
  /** As `--format` and the ending of a file say it. */
  readonly name: string;
  /** In a sentence. */
  readonly title: string;
  /** The ending of a file of its rejected records. */
  readonly rejectsEnding: string;
  /** What `line` counts in its records, from 1. */
  readonly unit: 'line' | 'element';
  /** Whether each record has all columns. */
  readonly isTable: boolean;
  /** @param beginning of the file: a character for each byte, without marks and blanks. */
  recognise(beginning: string, fileName: string): boolean;
  /**
   * Reads as much as is needed to find the columns.
   * @throws OperatorError when they cannot be found.
   */
  read(input: TextInput, options: ReadingOptions): Promise<Omit<Reading, 'encoding'>>;
}

export interface ReadingOptions {
  /** The file's name, or `-`. */
  readonly name: string;
  /** The name of a format; if undefined, the file's name and beginning determine it. */
  readonly format?: string | undefined;
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
  /** Of a workbook: the name of the sheet with the books; if undefined, it is the only one. */
  readonly sheet?: string | undefined;
  /** Whether the ids of the file count; undefined means yes if it is an export. */
  readonly ids?: 'keep' | 'new' | undefined;
}

/** First records that a reading has. */
export const FIRST_RECORDS = 8;

/** How a file is interpreted, and its content. */
export interface Reading {
  readonly format: Format;
  /** Its name in the Encoding Standard. */
  readonly encoding: string;
  readonly keepsIds: boolean;
  /** Of all columns, in the order of the file; of JSON Lines, of the objects at the beginning. */
  readonly names: readonly string[];
  /** All are undefined for a file without records. */
  readonly columns: Columns;
  /** Of CSV. */
  readonly delimiter?: string;
  /** Of a workbook: the sheet that is read, and all that are shown. */
  readonly sheet?: string;
  readonly sheets?: readonly string[];
  /** The text above the header of CSV, which was left out. */
  readonly above?: string;
  /** The first records, with the beginnings of the values of all columns. */
  readonly first: readonly (readonly string[])[];
  /**
   * Can be iterated over once. A string is part of a larger piece of the file and keeps that piece in memory: copy
   * strings that must stay for long.
   * @throws OperatorError where the file cannot be read further, after everything before that point.
   */
  readonly batches: AsyncIterable<ReadBatch>;
  /** How rejected records become a file that can be imported with the same options. */
  readonly rejects: RejectsFrame;
  /** The text in a column of a record; undefined if it has none, or none that can be told apart from the others. */
  valueIn(original: string, column: string): string | undefined;
  /** The record with another text there. */
  replaceIn(original: string, column: string, text: string): string;
  /** Reads a corrected record, without the reason that it was rejected for; or more of them, if the correction made more. */
  again(original: string): AsyncIterable<ReadBatch>;
}

/** What stands in a file of rejected records before the first one, between two, and after the last one; and a record. */
export interface RejectsFrame {
  readonly before: string;
  readonly between: string;
  readonly after: string;
  /** @param reason is added if the record takes it. */
  record(record: RefusedRecord, reason: string): string;
}

export interface ReadBatch {
  readonly books: readonly ReadBook[];
  readonly refused: readonly RefusedRecord[];
  /** Bytes of the input read so far. */
  readonly position: number;
}

/** Where a record is, and its text. */
interface Row {
  /** The line where its record begins, from 1; of a JSON array, the element. */
  readonly line: number;
  /** The record as it stands in the file, without its line end and without the reason of an earlier import. */
  readonly original: string | undefined;
}

/** A book that may be stored (rules 1 to 4). A text or a year that the record lacks is '' or 0. */
export interface ReadBook extends BookFields, Row {
  /** Its own id, where ids are kept (rule 10). Only then, it has an `original`: the id may turn out to be that of another book. */
  readonly id: number | undefined;
  /** The tag of the book that it was exported from; '' if it has none; undefined if it lacks a value in a column that is used. */
  readonly tag: string | undefined;
  /** Whether its year began at a time that the file has in UTC, as 31 December. */
  readonly isNewYear: boolean;
  /** Why a person should look at it before it is stored. */
  readonly doubt: ReasonCode | undefined;
  /** Whether its record ends before a column that is used. */
  readonly isShort?: boolean | undefined;
}

export interface RefusedRecord extends Row {
  /** The name of the column that is wrong; undefined when the whole record is. */
  readonly column: string | undefined;
  /** The value in that column; its beginning if it is long. */
  readonly value: string;
  /** What is wrong with the value or the record. */
  readonly reason: Reason;
  readonly original: string;
  /** Whether the reason can be added to the original and still be distinguished from the rest. */
  readonly takesReason: boolean;
  /** A text in place of the wrong one. */
  readonly proposal?: string | null;
}
