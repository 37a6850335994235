// Owns: the texts of the dialog for saving books as a file.

import { counted, numberText } from './english.ts';

export const EXPORT = {
  /** @param count undefined if it is not known. */
  saveAll: (count: number | undefined) =>
    count === undefined ? 'Save all books' : `Save all ${numberText(count)} books`,
  saveFound: (count: number | undefined) =>
    `Save ${count === undefined ? 'the books' : counted(count, 'book')} found`,
  explanation:
    'Excel and LibreOffice open the workbook; in it, no title becomes a formula, a number or a date. JSON is for other programs. Correct books in a file and import it: its rows change them, unless somebody else has changed them since.',
  tooMany:
    'An Excel workbook holds 1,048,575 books at most. CSV is for spreadsheets, JSON for other programs.',
  xlsx: 'Excel workbook',
  csv: 'CSV',
  jsonl: 'JSON Lines',
  failed: (reason: string) => `There are no links: ${reason}. Try again.`,
};
