// Owns: which book a record is, whatever its format, or why it is no book; and reading records in batches.

import { FIELD_NAMES, LAST_SEQUENTIAL_ID, readBookId } from '../books/book.ts';
import { type Columns, type Field, isOtherThing } from './columns.ts';
import type { ReadBatch, ReadBook, RefusedRecord } from './format.ts';
import { readAuthors, readYearIn } from './json-values.ts';
import { because, doubtOf, type Reason, type ReasonCode } from './reasons.ts';
import type { TextInput } from './text-input.ts';
import { isNewYear } from './years.ts';

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

/** A record of a file. */
export interface FileRecord {
  readonly line: number;
  readonly isShort?: boolean | undefined;
  /** The value of a column; undefined if the record has none, or there is no such column. */
  get(column: string | undefined): unknown;
  /** As it stands in the file. */
  original(): string;
}

/** The book of a record, or what is wrong with it. */
export function rowOf(
  record: FileRecord,
  input: TextInput,
  columns: Columns,
  keepsIds: boolean,
): ReadBook | RefusedRecord {
  const { line, isShort } = record;
  for (const kind of columns.kinds)
    if (isOtherThing(`${record.get(kind) ?? ''}`)) return refused(record, input, kind, 'not-a-book');
  const title = record.get(columns.title) ?? '';
  const author = readAuthors(record.get(columns.author) ?? '');
  const wrongTitle = faultOf(title, 'title-type') ?? damageIn(title, line, input);
  if (wrongTitle !== undefined) return refused(record, input, columns.title, wrongTitle);
  const wrongAuthor = faultOf(author, 'author-type') ?? damageIn(author, line, input);
  if (wrongAuthor !== undefined) return refused(record, input, columns.author, wrongAuthor);
  let [yearColumn, year] = [columns.year, readYearIn(record.get(columns.year))];
  for (const other of columns.otherYears) {
    if (year !== 0) break;
    [yearColumn, year] = [other, readYearIn(record.get(other))];
  }
  if (!Number.isSafeInteger(year)) {
    return refused(record, input, yearColumn, typeof year === 'string' ? year : 'year-type');
  }
  const idText = keepsIds ? record.get(columns.id) : undefined;
  const hasId = !/^\s*$/.test(`${idText ?? ''}`);
  const id = hasId ? readFileId(idText) : undefined;
  if (hasId && id === undefined) return refused(record, input, columns.id, 'id-range');
  const tag = keepsIds ? tagIn(record, columns, hasId) : '';
  if (!hasId && tag !== '') return refused(record, input, columns.id, 'id-missing');
  const fields = {
    title: textOf('title', title as string, columns),
    author: textOf('author', author as string, columns),
    year: year as number,
  };
  return {
    ...fields,
    doubt: doubtOf(fields),
    isNewYear: isNewYear(`${record.get(yearColumn) ?? ''}`), // also of an array with one
    id,
    tag,
    line,
    isShort,
    original: hasId ? record.original() : undefined,
  };
}

/** @param fault unless the value is damaged. */
function refused(
  record: FileRecord,
  input: TextInput,
  column: string | undefined,
  fault: ReasonCode | Reason,
): RefusedRecord {
  const { line } = record;
  const value = record.get(column);
  const reason = damageIn(value, line, input) ?? (typeof fault === 'string' ? because(fault) : fault);
  return { line, column, value: shorten(value), reason, original: record.original(), takesReason: true };
}

/** Why a value holds damaged bytes, if it is a text that is needed. */
function damageIn(value: unknown, line: number, input: TextInput): Reason | undefined {
  const text = input.decoder.isDamaged ? readAuthors(value) : undefined;
  return text === undefined ? undefined : input.decoder.damageIn(text, line);
}

/** Rule 4. @param otherwise the reason if it is no text. */
function faultOf(text: unknown, otherwise: ReasonCode): ReasonCode | undefined {
  if (typeof text !== 'string') return otherwise;
  if (text.includes('\0')) return 'nul';
  return text.isWellFormed() ? undefined : 'surrogate';
}

function textOf(field: 'title' | 'author', text: string, { isExport }: Columns): string {
  return !isExport && NOTHING[field].test(text) ? '' : text;
}

/** @returns undefined if the value is not an id that a file may have. */
function readFileId(value: unknown): number | undefined {
  const id = typeof value === 'string' || typeof value === 'number' ? readBookId(`${value}`) : undefined;
  return id !== undefined && id <= LAST_SEQUENTIAL_ID ? id : undefined;
}

/** @returns '' without a tag, which may have its quotation marks; undefined if a value is missing in a column that is used. */
function tagIn(record: FileRecord, columns: Columns, hasId: boolean): string | undefined {
  const isMissing = (name: Field) => columns[name] !== undefined && record.get(columns[name]) === undefined;
  if (hasId && FIELD_NAMES.some(isMissing)) return undefined;
  return shorten(`${record.get(columns.etag) ?? ''}`.trim().replace(/^"(.*)"$/, '$1'));
}

/** The beginning of a value. */
export function shorten(value: unknown): string {
  const text = typeof value === 'object' && value !== null ? JSON.stringify(value) : `${value ?? ''}`;
  return text.length > SHOWN ? `${text.slice(0, SHOWN).replace(/[\ud800-\udbff]$/, '')}…` : text;
}

/**
 * Reads all records. If the file cannot be read to its end, everything before the fault is yielded first.
 * @param next the next record of the available text, null if it is blank; undefined when it needs more text, or there is
 *   no more.
 */
export async function* readBatches(
  input: TextInput,
  next: () => ReadBook | RefusedRecord | null | undefined,
): AsyncGenerator<ReadBatch, void, undefined> {
  let books: ReadBook[] = [];
  let refused: RefusedRecord[] = [];
  let size = 0;
  let fault: unknown;
  try {
    try {
      for (;;) {
        const { at } = input;
        const row = next();
        if (row === undefined && input.ended) break;
        if (row === undefined) await input.more();
        else size += input.at - at;
        if (row && 'reason' in row) refused.push(row);
        else if (row) books.push(row);
        if (books.length + refused.length < BATCH_RECORDS && size < BATCH_TEXT) continue;
        yield { books, refused, position: input.position };
        [books, refused, size] = [[], [], 0];
      }
      input.decoder.assertUtf8();
    } catch (error) {
      fault = error;
    }
    if (books.length + refused.length > 0) yield { books, refused, position: input.position };
    if (fault !== undefined) throw fault;
  } finally {
    await input.close();
  }
}
