// Owns: what is promised of files of books: delimited text, JSON, their encodings, years, and rejected records.

import { readBookChanges } from '../../src/books/book.ts';
import { asCsvFields, asJson } from '../../src/books/line.ts';
import { asRefused, correct, correctable } from '../../src/files/correcting.ts';
import { readRecord } from '../../src/files/csv-record.ts';
import type { ReadBook, RefusedRecord } from '../../src/files/format.ts';
import { because, sentenceOf } from '../../src/files/reasons.ts';
import { readYear } from '../../src/files/years.ts';
import { type Options, type Outcome, read as readAll } from '../support/files.ts';
import { assertSame, type Input, messageFor, type Reader } from './reader.ts';

type Found = Omit<Outcome, 'reading' | 'batches'> & { readonly reading: Outcome['reading'] | undefined };

/** Without a `reading` if the file is refused as a whole. */
function read(bytes: Buffer, options: Options, size = 65_536): Promise<Found> {
  return readAll(bytes, options, [size]).catch((error) => {
    return { reading: undefined, books: [], refused: [], fault: messageFor(error) };
  });
}

/** How the file is interpreted. */
function interpreted({ reading }: Found): unknown {
  return (
    reading && [reading.format.name, reading.keepsIds, reading.names, reading.columns, reading.rejects.before]
  );
}

/** @throws unless both readings had one outcome. How far a damaged file is read depends on the pieces. */
function assertSameOutcome(one: Found, other: Found, what: string): void {
  const isDamaged = one.fault !== undefined && other.fault !== undefined;
  if (!isDamaged) assertSame([one.fault, interpreted(one)], [other.fault, interpreted(other)], what);
  else if (JSON.stringify(interpreted(one)) !== JSON.stringify(interpreted(other))) return;
  for (const kind of ['books', 'refused'] as const) {
    const common = isDamaged ? Math.min(one[kind].length, other[kind].length) : Number.POSITIVE_INFINITY;
    assertSame(one[kind].slice(0, common), other[kind].slice(0, common), what);
  }
}

const fieldsOf = ({ title, author, year }: ReadBook) => ({ title, author, year });

/** What every file is promised, and one more promise that the input chooses. */
async function checkFile(input: Input, formats: readonly (string | undefined)[]): Promise<void> {
  const format = formats[input.choice(formats.length)];
  const size = 1 + input.choice(9);
  const ids = ([undefined, 'new', 'keep'] as const)[input.choice(3)];
  const hasHeader = input.choice(4) > 0;
  const promise = PROMISES[input.choice(PROMISES.length)];
  const { content } = input;
  const options = { format, ids, hasHeader };
  const found = await read(content, options);
  assertSameOutcome(await read(content, options, size), found, `the file in pieces of ${size}`);
  const lines = content.toString('latin1').match(/\r\n?|\n/g)?.length ?? 0;
  for (const { title, author, year, line } of found.books) {
    if (readBookChanges({ title, author, year }) === undefined) throw new Error('no book may be so');
    if (line < 1 || (found.reading?.format.unit === 'line' && line > lines + 1))
      throw new Error(`there is no line ${line}`);
  }
  await promise?.(content, found, options);
}

type Promised = (content: Buffer, found: Found, options: Options) => void | Promise<void>;
const PROMISES: readonly Promised[] = [
  inUtf16,
  inWindows1252,
  writtenAgain,
  refusedAgain,
  corrected,
  elements,
];

/** UTF-16 is read like UTF-8, of which only the sizes and what is invalid differ. */
async function inUtf16(content: Buffer, found: Found, options: Options): Promise<void> {
  const text = content.toString();
  if (!Buffer.from(text).equals(content) || /^\ufeff?\0/.test(text)) return; // with NUL behind it, the mark is that of UTF-32
  const marked = Buffer.from(text.startsWith('\uFEFF') ? text : `\uFEFF${text}`, 'utf16le');
  assertSameOutcome(await read(marked, options, 3), found, 'the file in UTF-16LE');
  assertSameOutcome(await read(Buffer.from(marked).swap16(), options, 5), found, 'in UTF-16BE');
}

async function inWindows1252(content: Buffer, _: Found, options: Options): Promise<void> {
  const text = new TextDecoder('windows-1252').decode(content).replace(/^ï»¿/, '');
  const encoded = await read(content, { ...options, encoding: 'windows-1252' }, 2);
  const inUtf8 = await read(Buffer.from(`\uFEFF${text}`), { ...options, encoding: 'utf-8' });
  assertSameOutcome(encoded, inUtf8, 'the file in windows-1252');
}

/** Books that are written into a file and read again are the same, and so is the file. */
async function writtenAgain(_: Buffer, { books }: Found): Promise<void> {
  if (books.length === 0) return;
  const csv = `title,author,year\n${books.map((book) => `${asCsvFields(book)}\n`).join('')}`;
  const jsonl = books.map((book) => asJson({ id: 1, ...fieldsOf(book) })).join('');
  for (const [format, text] of Object.entries({ csv, jsonl })) {
    const again = await read(Buffer.from(text), { format });
    assertSame(again.books.map(fieldsOf), books.map(fieldsOf), `the books, read from ${format}`);
    assertSame([again.refused, again.fault], [[], undefined], `the rest of ${format}`);
  }
}

/** Rejected records that are imported without a correction are rejected again, for the same reasons. */
async function refusedAgain(_: Buffer, { reading, refused }: Found, options: Options): Promise<void> {
  if (reading === undefined || refused.length === 0 || !refused.every(({ takesReason }) => takesReason))
    return;
  const { before, between, after } = reading.rejects;
  const file = before + refused.map((record) => asRefused(record, reading)).join(between) + after;
  const { columns, format } = reading;
  const { title, author, year } = columns;
  const wanted = { title: title ?? null, author: author ?? null, year: year ?? null };
  const again = await read(Buffer.from(file), {
    format: format.name,
    columns: reading.columns.otherYears.length === 0 ? wanted : {},
    ids: options.ids ?? (reading.keepsIds ? 'keep' : 'new'),
  });
  // The number of fields differs, with that of the reason.
  const reasons = (list: readonly RefusedRecord[]) =>
    list.map(({ reason }) => (reason.code === 'field-count' ? '' : sentenceOf(reason)));
  if (again.reading === undefined) return; // without the accepted records, columns may be missing
  assertSame([reasons(again.refused), again.books, again.fault], [reasons(refused), [], undefined], file);
}

/** A record of text that is corrected to what it was is rejected again. In JSON, any value becomes a text by that. */
async function corrected(_: Buffer, { reading, refused }: Found): Promise<void> {
  if (!reading?.format.isTable) return;
  for (const record of refused) {
    if (!record.takesReason || /^quote|^rows/.test(record.reason.code)) continue; // a person may mean the quotes
    const again = await correct(record, correctable(record, reading).text, reading);
    if (!('reason' in again)) throw new Error(`${JSON.stringify(record)} becomes a book by no correction`);
  }
}

/** An array of JSON has as many records as elements, and those that are books are read as they are. */
function elements(content: Buffer, { reading, books, refused, fault }: Found): void {
  if (reading?.format.name !== 'json') return;
  let array: unknown;
  try {
    array = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(content));
  } catch {
    return;
  }
  if (!Array.isArray(array)) return;
  assertSame([fault, books.length + refused.length], [undefined, array.length], 'the records');
}

export const delimitedFile: Reader = (input) => checkFile(input, ['csv', undefined]);

export const fileOfJson: Reader = (input) => checkFile(input, ['json', 'jsonl', undefined]);

/** Where records and fields of delimited text end, by a plain reading of RFC 4180. Blanks may follow a closing quote, and precede an opening one. */
export const delimitedText: Reader = ({ text }) => {
  const records: unknown[] = [];
  for (let at = 0; at < text.length; ) {
    const record = readRecord(text, at, ',', true);
    if (record === undefined) throw new Error('the last record is incomplete');
    const { fields, fault, next } = record;
    records.push(fault === undefined ? fields : fault.field);
    // After a CR at the end of a piece, an LF may follow that belongs to it.
    const isComplete = ['\n', '\r\n'].includes(text.slice(record.end, next));
    const found = readRecord(text.slice(0, next), at, ',', false);
    assertSame(found !== undefined, isComplete, 'whether it is complete');
    at = next;
  }
  assertSame(records, recordsIn(text), 'the records');
};

/** The fields of each record; of a malformed one, the unclosed field, or else the first malformed one. */
function recordsIn(text: string): unknown[] {
  const afterBlanks = / [ \t]*"((?:[^"\r\n]|"")*)"[ \t]*(,|\r\n?|\n|$)/y;
  const field = /(?:"((?:[^"]|"")*)("?)[ \t]*([^,\r\n]*)|([^,\r\n]*))(,|\r\n?|\n|$)/y;
  const records: unknown[] = [];
  while (field.lastIndex < text.length) {
    const fields: string[] = [];
    let malformed: number | undefined;
    for (let end: string | undefined = ','; end === ','; ) {
      afterBlanks.lastIndex = field.lastIndex;
      const [whole = '', spaced, then] = afterBlanks.exec(text) ?? [];
      if (spaced !== undefined) {
        field.lastIndex += whole.length;
        fields.push(spaced.replaceAll('""', '"'));
        end = then;
        continue;
      }
      const [, quoted, close, more = '', bare = '', after] = field.exec(text) ?? [];
      if (close === '') malformed = fields.length;
      else if (more !== '') malformed ??= fields.length;
      fields.push(quoted?.replaceAll('""', '"') ?? bare);
      end = after;
    }
    records.push(malformed ?? fields);
  }
  return records;
}

const REASON = /^(cannot be read as a year|is beyond ±\(2\^53−1\))$/;
const OTHER_DIGITS = /(?![0-9])[\p{Nd}〇零○一-九]/u;

export const year: Reader = ({ content }) => {
  const text = content.toString();
  const found = readYear(text);
  if (typeof found === 'string') {
    if (!REASON.test(sentenceOf(because(found)))) throw new Error(`no reason: ${found}`);
    return;
  }
  if (!Number.isSafeInteger(found) || Object.is(found, -0)) throw new Error(`no year: ${found}`);
  assertSame(readYear(`${found}`), found, 'the year, read again');
  if (OTHER_DIGITS.test(text)) return;
  if (found !== 0 && !text.includes(`${Math.abs(found)}`)) throw new Error(`${found} is not in the text`);
};
