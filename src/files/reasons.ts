// Owns: why a record is not read as a book, or should be looked at: codes with values, and the sentence that people read. A command, the
// page and rejected rows use the same sentences.

import type { BookFields } from '../books/book.ts';

const plural = (count: number | string, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`;

/** The end of a sentence about a value, or about the whole record. */
const SENTENCES = {
  'not-a-book': () => 'is not a book: leave it empty if the row is one',
  'title-type': () => 'is not a string',
  'author-type': () => 'is neither a string nor a list of names',
  'year-type': () => 'is neither a whole number within ±(2^53−1) nor a string',
  'year-unclear': () => 'cannot be read as a year',
  'year-range': () => 'is beyond ±(2^53−1)',
  'id-range': () => 'is not an id from 1 to 2^52',
  'id-missing': () => 'is missing, but the row has an etag',
  'id-taken': (...both) => `belongs to a book with other values: ${listed(both)}`,
  'id-twice': (...both) => `belongs to an earlier row with other values: ${listed(both, 'there', 'here')}`,
  'etag-unknown': (id, tag, ...both) =>
    `is unknown, and book ${id} has other values: ${listed(both)}. Its tag is now ${tag}`,
  'changed-since': (id, tag, ...both) =>
    `is from before a change of book ${id}: ${listed(both)}. Its tag is now ${tag}`,
  'removed-since': (id) => `is from before book ${id} was removed`,
  'changed-meanwhile': () => 'belongs to a book that was changed or removed during the import',
  'value-missing': (id) => `lacks a value that book ${id} would lose`,
  nul: () => 'has a NUL character',
  surrogate: () => 'has a lone surrogate',
  damaged: (encoding) => `has a damaged character: \ufffd is not ${encoding}`,
  'quote-open': (lines) =>
    `has an unclosed quote: it extends to the end of the file, ${plural(lines, 'line')}`,
  'quote-text': () => 'has text after its closing quote',
  'rows-joined': (lines) =>
    `has ${lines} lines that look like separate rows: remove the quote that joins them, or the line ends`,
  'field-count': (found, expected) => `has ${plural(found, 'field')}, the header has ${expected}`,
  'field-many': (count) => `has ${count} fields`,
  'no-fields': () => 'has neither a title nor an author nor a year',
  'not-an-object': () => 'is not a JSON object',
  empty: () => 'is empty',
  'several-records': (count) =>
    `is ${count} records instead of one: save the refused rows and import that file`,
  'no-title': () => 'has no title',
  'year-unlikely': () => 'has an unlikely year',
} satisfies Record<string, (...values: (string | number)[]) => string>;

export type ReasonCode = keyof typeof SENTENCES;

/** What is said of rows that were read, but for something: of one, of several, and the rest of the sentence. */
export const REMARKS = [
  ['short', 'row ends', 'rows end', 'before the last column in use: what is missing was read as empty.'],
  [
    'newYears',
    'date in UTC, on 31 December, is',
    'dates in UTC, on 31 December, are',
    'midnight in another time zone: read as the new year.',
  ],
] as const;

export interface Reason {
  readonly code: ReasonCode;
  /** Of the sentence. */
  readonly values: readonly (string | number)[];
}

export function because(code: ReasonCode, ...values: readonly (string | number)[]): Reason {
  return { code, values };
}

/** Such as `is not a JSON object`. */
export function sentenceOf({ code, values }: Reason): string {
  const sentence: (...values: readonly (string | number)[]) => string = SENTENCES[code];
  return sentence(...values);
}

/** @param both the name of each field that differs, its value here, and that of the file. */
function listed(both: readonly (string | number)[], here = 'here', own = 'in the file'): string {
  const shown = (value: string | number | undefined) => (typeof value === 'string' ? `"${value}"` : value);
  const fields = both.flatMap((name, at) =>
    at % 3 === 0 ? [`${name} ${shown(both[at + 1])} ${here}, ${shown(both[at + 2])} ${own}`] : [],
  );
  return fields.join('; ');
}

/** @returns why a person should look at a book before it is stored: a mistake is more likely than such a title or year. */
export function doubtOf({ title, year }: Pick<BookFields, 'title' | 'year'>): ReasonCode | undefined {
  if (title.trim() === '') return 'no-title';
  const isShort = year > 0 && year < 100;
  // Books are announced for the next five years. The first comparison saves making a date.
  const isFuture = year > 2031 && year > new Date().getFullYear() + 5;
  return year < -3000 || isShort || isFuture ? 'year-unlikely' : undefined;
}
