// Owns: the texts of the log of changes: events, the history of a book, undo, and the changes of others.

import { counted, momentText, numberText } from './english.ts';
import { type Sentence, sentence } from './sentence.ts';

export const LOG = {
  whatChanged: 'What changed',
  everything: 'Everything that was changed, by anybody. An undo can be undone as well.',
  older: 'Older',
  more: 'More',
  all: (books: number | null) => (books === null ? 'All of them' : `All ${counted(books, 'book')}`),
  show: 'Show',
  undo: 'Undo',
  buttonOf: (label: string, event: string) => `${label}: ${event}`,
  begins: (moment: string | undefined) =>
    `The log of changes begins on ${moment === undefined ? 'a later day' : momentText(moment)}.`,
  fromUntil: (from: string, until: string) => (from === until ? until : `${from} – ${until}`),
  noneIsHere: 'None of these books is here now.',
  notHere: (gone: number, books: number) =>
    `${numberText(gone)} of these ${counted(books, 'book')} are not here now: “What changed” lists them.`,
  othersChanged: (books: number | undefined) =>
    `${books === undefined ? 'Many books were' : counted(books, 'book was', 'books were')} changed by others`,

  // Events and changes
  manyChanges: 'More than 1,000 changes',
  imported: (file: string | null, books: number): Sentence => [
    ...sentence`Imported ${file ?? 'a file'}`,
    `, ${counted(books, 'book')}`,
  ],
  undone: (books: number) => `Undo of ${counted(books, 'book')}`,
  verbs: {
    added: 'added',
    changed: 'changed',
    deleted: 'deleted',
    gone: 'added and deleted',
  },
  done: (books: number, verb: string) => `${counted(books, 'book')} ${verb}`,
  numbered: (id: number) => `Book number ${id}`,
  changedBack: 'changed, and changed back',
  values: (isFirst: boolean, field: string, from: string, to: string): Sentence => [
    `${isFirst ? '' : '; '}${field} `,
    ...sentence`${from} → ${to}`,
  ],

  // The history of a book
  history: 'History',
  historyOf: (title: string): Sentence => sentence`History of “${title}”`,
  allBooks: 'What changed in all books',
  looking: 'Looking …',
  asItWas: 'as it was before',
  dayAndTime: (day: string, time: string) => `${day}, ${time}`,
  bringBack: 'Bring back',

  // Going back to a time
  goBack: 'Go back to a time …',
  goBackTo: 'Go back to this time',
  check: 'Check',
  inFuture: 'This time is in the future.',
  allSince: (moment: string, ago: string) => `All changes since ${moment} (${ago})`,

  // Undo
  checking: 'Checking …',
  cancel: 'Cancel',
  of: (changes: string, question: string) => `${changes}: ${question}`,
  progress: (done: number, total: number) =>
    `${numberText(done)} of ${counted(total, 'book')}. You may close this page.`,
  nothingToUndo: 'There is nothing to undo.',
  undoneBooks: (undone: number) => `${counted(undone, 'book is', 'books are')} as before.`,
  stay: (left: number) =>
    `${counted(left, 'book stays as it is: it was', 'books stay as they are: they were')} changed later.`,
  /** The first books do not show how many of the others an undo changes. */
  willBe: (books: number, isSeveral: boolean) =>
    `${counted(books, 'book')} will be as before${isSeveral ? '; those that were added will be removed' : ', or removed if it was added'}.`,
  upTo: (will: string) => `Up to ${will}`,
  ofTheFirst: (checked: number, will: string) => `Of the first ${numberText(checked)} books, ${will}`,
  notChecked: (books: number) => `${counted(books, 'book was', 'books were')} not checked.`,
  question: 'Undo?',

  // Requests
  notInLog: 'This change is no longer in the log.',
  nothingUndone: ' Nothing was undone.',
};
