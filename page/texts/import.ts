// Owns: the texts of the import: the file, the check, the import, and its undo. Why a row cannot be read is in src/files/reasons.ts,
// since the command says the same.

import { counted, numberText } from './english.ts';
import { asItIs, type Sentence, sentence } from './sentence.ts';

export const IMPORT = {
  // The file
  choose: 'Choose a file',
  formats:
    'or drop it here: an Excel workbook, CSV, also with semicolons or tabs, JSON, or JSON Lines. Exports of Goodreads, LibraryThing, StoryGraph, Calibre, Koha and Zotero are understood as they are.',
  nothingStored: 'Nothing is stored before you have seen how the file was understood.',
  notText:
    'This file is not text. If it is a spreadsheet, save it as a workbook (.xlsx), and choose that file.',
  examples: 'Example books.csv',
  latest: 'Latest imports',
  aFile: 'a file',
  anImport: 'an import',
  undo: 'Undo',
  undoOf: (file: string) => `Undo the import of ${file}`,
  /** An import of the list, by its state. */
  state: {
    open: (books: number) => `${counted(books, 'book')} so far`,
    checked: () => '',
    stopped: (books: number) => `${counted(books, 'book')}. It is not complete: choose the file again.`,
    stored: (books: number) => counted(books, 'book'),
    undone: (books: number) => `${counted(books, 'book')}, undone`,
  },

  // How it was understood
  separators: { ',': 'commas', ';': 'semicolons', '\t': 'tabs', '|': 'vertical bars' } as Readonly<
    Record<string, string>
  >,
  separatedBy: (separator: string) => `separated by ${separator}`,
  json: 'JSON',
  jsonLines: 'JSON, one book a line',
  read: (rows: number, format: string, encoding: string) => `${counted(rows, 'row')}, ${format}, ${encoding}`,
  readSheet: (rows: number, sheet: string): Sentence => [
    `${counted(rows, 'row')}, sheet `,
    asItIs(`“${sheet}”`),
  ],
  /** Follows `read`. @param column undefined if the file has none. */
  from: (isFirst: boolean, field: string, column: string | null): Sentence => {
    const start = isFirst ? '; ' : ', ';
    if (column === null) return [`${start}no ${field}`];
    return [`${start}${field} from `, asItIs(`“${column}”`)];
  },
  absent: (books: number) =>
    `${counted(books, 'book stays', 'books stay')} as before, since no row that was read has the id.`,
  noHistory:
    'This catalogue keeps no history: books that were changed since the file was saved are unknown, and those that were removed since are added again.',
  lackYear: (books: number) => `${counted(books, 'new book has', 'new books have')} no year.`,
  twice: (rows: number) => `${counted(rows, 'row is', 'rows are')} in this file more than once.`,
  remark: (rows: number, one: string, several: string, rest: string) =>
    `${counted(rows, one, several)} ${rest}`,
  above: (lines: string) => `Left out above the names of the columns: ${lines}`,
  isFirstRowABook: 'Is the first row a book, or does it have the names of the columns?',
  whichTitle: 'Which column is the title? Choose it above the column.',
  rowsBefore: (fault: string) => `${fault} Only the rows before that can be imported.`,
  noRows: 'The file has no rows.',
  notUtf8:
    'The file is not UTF-8; it was read as Windows-1252. Look whether letters such as é are right. If not, save it as CSV in UTF-8, and choose it again.',
  severalSheets: (sheet: string) =>
    `Several sheets of the workbook have books. These are from “${sheet}”; another sheet can be chosen below.`,
  idsUnused: 'The ids of the file are not used: each new book gets another id.',
  otherYears: (year: string, others: readonly string[]) =>
    `Where “${year}” is empty, ${others.map((name) => `“${name}”`).join(' or else ')} is the year.`,

  // The layout of a table
  isWrong: 'The table is read in the wrong way',
  firstRow: 'First row',
  firstRowIs: {
    '': 'choose',
    yes: 'the names of the columns',
    no: 'a book',
    above: 'neither: leave it out',
  },
  sheet: 'Sheet',
  separator: 'Separated by',
  asFound: 'as found',

  // The check
  kinds: {
    rows: { label: 'in the file', title: 'The first rows of the file' },
    new: { label: 'new', title: 'Books that are new' },
    changed: { label: 'changed', title: 'Books that change' },
    here: { label: 'here already', title: 'Books that are here already' },
    doubtful: { label: 'doubtful', title: 'Books that are doubtful' },
    refused: { label: 'refused', title: 'Rows that are refused' },
  },
  hereOrTwice: (isHere: boolean) => (isHere ? 'here already, or twice in the file' : 'twice in the file'),
  columns: { line: 'Line', title: 'Title', column: 'Column', value: 'Value', why: 'Why' },
  column: (name: string) => `Column ${name}`,
  unnamed: 'without a name',
  firstOf: (shown: number, count: number) =>
    `These are the first ${numberText(shown)} of ${numberText(count)}.`,
  leaveOut: (fields: string) => `Leave out books that are here already (same ${fields})`,
  doubtfulToo: (books: number) => `Also import ${counted(books, 'doubtful book')}`,
  anotherFile: 'Another file',
  import: 'Import',
  change: (from: string, to: string): Sentence => sentence`${from} → ${to}`,
  importBooks: (added: number, changed: number) => {
    if (changed === 0) return `Import ${counted(added, 'book')}`;
    return `${added > 0 ? `Import ${counted(added, 'book')}, change` : 'Change'} ${counted(changed, 'book')}`;
  },
  checkingAgain: 'Checking the file again …',
  nothing: {
    refused: 'There is nothing to import: every row is refused. Is each column the right one?',
    doubtful: 'There is nothing to import but doubtful books. Is each column the right one?',
    here: 'There is nothing to import: every book is here already.',
  },

  // Rows with the ids of other books
  conflicts: (rows: number) =>
    `${counted(rows, 'row has the id of a book', 'rows have the ids of books')} with other values`,
  onConflict: {
    refuse: 'leave them out',
    change: 'they are the same books: change these',
    add: 'they are other books: add them',
  },

  // Rows that are refused
  saveRefused: 'Save the refused rows',
  correct: 'Correct a value, and its row is imported with the others.',
  savedRefused: (rows: number) => `The file of refused rows has ${numberText(rows)} of them.`,
  wouldBeLost: 'Your corrections would be lost. Repeat the action to discard them.',
  wholeRow: 'the whole row',
  tooLong: 'is too long to be corrected here',
  proposal: (text: string) => `${text}?`,
  changeAnyway: 'Change it anyway',
  fieldOf: (column: string | null, line: number) => `${column ?? 'Row'}, line ${line}`,
  canBeRead: 'can be read now',

  // The import and its undo
  checking: (file: string) => `Checking ${file}`,
  importing: (file: string) => `Importing ${file}`,
  continues: 'The import continues if you close this, or the page.',
  stored: (added: number, changed: number) => {
    const first = `${counted(added, 'book was', 'books were')} added`;
    if (changed === 0) return `${first}.`;
    const second = `${counted(changed, 'book was', 'books were')} changed.`;
    return added === 0 ? second : `${first}, ${second}`;
  },
  storedOf: (file: string, stored: string) => `${file}: ${stored}`,
  wereHere: (books: number) => `${counted(books, 'was', 'were')} here already.`,
  wereTwice: (rows: number) => `${counted(rows, 'row was', 'rows were')} in the file more than once.`,
  leftOut: (books: number) => `${counted(books, 'doubtful book was', 'doubtful books were')} left out.`,
  refused: (rows: number) => `${counted(rows, 'row was', 'rows were')} refused.`,
  undoThis: 'Undo this import',
  done: 'Done',
  takingBack: (file: string) => `Taking back ${file}`,
  removed: (books: number) => `${counted(books, 'book was', 'books were')} removed.`,
  asBefore: (books: number) => `${counted(books, 'book is', 'books are')} as before.`,
  stay: (books: number) => `${counted(books, 'book stays', 'books stay')}: changed since the import.`,
  progress: {
    sending: (percent: number) => `${percent} % of the file is sent.`,
    waiting: 'Waiting for other imports …',
    reading: (percent: number) => `${percent} % of the file is read.`,
    comparing: 'Looking for books that are here already …',
    storing: (done: number, total: number) => `${numberText(done)} of ${counted(total, 'book')} stored.`,
    undoing: (done: number, total: number) => `${numberText(done)} of ${counted(total, 'book')}.`,
  },
};
