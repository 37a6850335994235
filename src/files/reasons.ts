// Owns: why a record is not read as a book, or should be looked at: codes with values, and the sentence that people read. A command, the
// page and rejected rows use the same sentences.

const plural = (count: number | string, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`;

/** The end of a sentence about a value, or about the whole record. */
const SENTENCES = {
  'not-a-book': () => 'is not a book: leave it empty if the row is one',
  'title-type': () => 'is not a string',
  'author-type': () => 'is neither a string nor a list of names',
  'year-type': () => 'is neither a whole number within ±(2^53−1) nor a string',
  'year-unclear': () => 'is not an unambiguous year',
  'year-fraction': () => 'is not a whole number',
  'year-range': () => 'is beyond ±(2^53−1)',
  'year-long': () => 'is too long for a year',
  'year-calendar': () => 'is of another calendar: write the year of the Gregorian one',
  'year-perhaps-calendar': () =>
    'is perhaps of another calendar: write the year of the Gregorian one in digits from 0 to 9',
  'id-range': () => 'is not an id from 1 to 2^52',
  'id-taken': (title: string | number) => `belongs to another book: "${title}"`,
  nul: () => 'has a NUL character',
  surrogate: () => 'has a lone surrogate',
  damaged: (encoding: string | number) => `has a damaged character: \ufffd is not ${encoding}`,
  'quote-open': (lines: string | number) =>
    `has an unclosed quote: it extends to the end of the file, ${plural(lines, 'line')}`,
  'quote-text': () => 'has text after its closing quote',
  'rows-joined': (lines: string | number) =>
    `has ${lines} lines that look like separate rows: remove the quote that joins them, or the line ends`,
  'field-count': (found: string | number, expected: string | number) =>
    `has ${plural(found, 'field')}, the header has ${expected}`,
  'field-many': (count: string | number) => `has ${count} fields`,
  'no-fields': () => 'has neither a title nor an author nor a year',
  'too-deep': () => 'is nested too deeply',
  'not-a-number': () => 'has NaN or Infinity: write null',
  'not-an-object': () => 'is not a JSON object',
  empty: () => 'is empty',
  'several-records': (count: string | number) =>
    `is ${count} records instead of one: save the refused rows and import that file`,
  'no-title': () => 'has no title',
  'year-future': () => 'this year is yet to come',
  'year-early': () => 'in this year, there were no books',
  'year-short': () => 'the year may be short for another one',
} satisfies Record<string, (one: string | number, other: string | number) => string>;

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

/** Such as `is not a whole number`. */
export function sentenceOf({ code, values: [one = '', other = ''] }: Reason): string {
  return SENTENCES[code](one, other);
}

/** An earlier year, or a year AD of one or two digits, is more often a mistake than a year. */
const EARLIEST = -3000;
const SHORTEST = 100;

/** Years from now for which a book may be announced; and a year that was near when this was written. */
const ANNOUNCED = 5;
const NEAR = 2031;

/** @returns why a person should look at a book before it is stored: a mistake is more likely. */
export function doubtOf({
  title,
  year,
}: {
  readonly title: string;
  readonly year: number;
}): ReasonCode | undefined {
  if (title.trim() === '') return 'no-title';
  if (year > NEAR && year > new Date().getFullYear() + ANNOUNCED) return 'year-future';
  if (year < EARLIEST) return 'year-early';
  return year > 0 && year < SHORTEST ? 'year-short' : undefined;
}
