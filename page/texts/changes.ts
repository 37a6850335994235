// Owns: the texts of adding, changing and deleting books, and of undo.

import { counted, numberText } from './english.ts';
import { type Sentence, sentence } from './sentence.ts';

export const CHANGES = {
  // The dialog of a book
  addHeading: 'Add a book',
  changeHeading: 'Change the book',
  add: 'Add',
  save: 'Save',
  added: (title: string): Sentence => sentence`“${title}” was added.`,
  notAdded: (book: string, reason: string): Sentence => [...sentence`“${book}” `, `was not added. ${reason}`],
  alreadyHere: (books: readonly string[], isMore: boolean): Sentence => [
    'Already here: ',
    ...books.flatMap((book) => sentence` · ${book}`).slice(1),
    isMore ? ' …' : '',
  ],

  // Values that cannot be stored
  noTitle: 'A book needs a title.',
  unstorable: 'This text has a character that cannot be stored.',
  noYear: (text: string, reason: string) =>
    `“${text}” ${reason}. Write it as 1605 or 750 BC, or leave it empty.`,
  fieldNotChanged: (field: string, title: string, reason: string): Sentence => [
    field,
    ...sentence` of “${title}” was not changed: `,
    reason,
  ],

  // A change and its row
  changed: (title: string): Sentence => sentence`“${title}” was changed.`,
  saved: 'Saved',
  show: 'Show',
  undo: 'Undo',
  compare: 'Compare',
  correct: 'Correct',
  isFinal: (title: string): Sentence => sentence`This is final. Delete “${title}”?`,
  deleted: (title: string, hasLog: boolean) =>
    `Deleted ${title}. ${hasLog ? 'Control Z brings it back.' : ''}`,
  deletedByOthers: (title: string, hasLog: boolean): Sentence => [
    ...sentence`Somebody else has deleted “${title}”. `,
    hasLog ? 'Undo in its row brings it back, with your change.' : '',
  ],
  altered: (title: string, isDeletion: boolean, reason: string): Sentence => [
    ...sentence`“${title}” `,
    `is not ${isDeletion ? 'deleted' : 'stored'}. ${reason}`,
  ],
  refused: (title: string, isDeletion: boolean, reason: string): Sentence => [
    ...sentence`“${title}” `,
    `was not ${isDeletion ? 'deleted' : 'stored'}: ${reason}.`,
  ],
  notDeleted: (title: string): Sentence =>
    sentence`“${title}” was not deleted: somebody else has changed it.`,
  theirsKept: 'Theirs was kept',

  // Undo and redo
  away: (trouble: string) => `${trouble} Nothing was undone.`,
  noLog: 'This catalogue keeps no history: nothing can be undone.',
  notStored: (title: string): Sentence => sentence`“${title}” has a change that is not stored yet.`,
  nothingLeft: { done: 'There is nothing to undo', undone: 'There is nothing to redo' },
  progress: (done: number, total: number) => `${numberText(done)} of ${counted(total, 'book')} …`,
  forgotten: 'The log does not have this change any more.',
  changedSince: (name: string): Sentence =>
    sentence`“${name}” stays as it is: somebody else has changed it since.`,
  asBefore: (name: string): Sentence => sentence`“${name}” is as it was already.`,
  stays: (name: string, reason: string): Sentence => [...sentence`“${name}” stays as it is. `, reason],
  takenBack: {
    done: (name: string): Sentence => sentence`Undone: ${name}`,
    undone: (name: string): Sentence => sentence`Redone: ${name}`,
  },
  takenBackTogether: {
    done: (count: number) => `${numberText(count)} changes undone`,
    undone: (count: number) => `${numberText(count)} changes redone`,
  },
};
