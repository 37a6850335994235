// Owns: the texts of the dialog for saving books as a file.

import { counted, numberText } from './english.ts';

export const EXPORT = {
  /** @param count undefined if it is not known. */
  saveAll: (count: number | undefined) =>
    count === undefined ? 'Save all books' : `Save all ${numberText(count)} books`,
  saveFound: (count: number | undefined) =>
    `Save ${count === undefined ? 'the books' : counted(count, 'book')} found`,
  explanation:
    'The file for Excel opens by a double click; in it, no title becomes a formula, a number or a date. CSV is for other spreadsheets, JSON for other programs. Correct books in the file and import it: the page asks whether they are the same books, and changes them.',
  excel: 'Save for Excel',
  json: 'Save as JSON',
  csv: 'Save as CSV',
  collecting: 'Collecting the books',
  soFar: (books: number) => `${counted(books, 'book')} so far.`,
  failed: (reason: string) => `Nothing was saved: ${reason}. Try again.`,
  indexing: (books: number) => `the catalogue is still indexing about ${counted(books, 'book')}`,
};
