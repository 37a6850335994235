// Owns: the texts of the list: its counts, its chips, and what stands in its place.

import { counted, numberText, yearText } from './english.ts';
import { sentence } from './sentence.ts';

export const LIST = {
  // How many books there are
  books: (count: number, { isAtLeast, isFound }: { isAtLeast: boolean; isFound: boolean }) =>
    `${isAtLeast ? 'More than ' : ''}${counted(count, 'book')}${isFound ? ' found' : ''}`,
  deleted: (count: number) => `${numberText(count)} deleted`,
  changed: (count: number) => `${numberText(count)} changed`,
  stillShown: (words: string) => (words === '' ? 'Still showing other books' : `Still showing “${words}”`),
  indexing: 'Searches and orders have to wait: the catalogue is still indexing its books.',
  unindexed: (count: number) =>
    `${count === 1 ? 'Some books' : `About ${counted(count, 'book')}`} cannot be found yet: the catalogue is still indexing them.`,

  // The chips
  withoutYear: (count: number) => `${numberText(count)} without a year`,
  withoutAuthor: (count: number) => `${numberText(count)} without an author`,
  oneChange: 'One change',
  inYear: (year: number) => `Published in ${yearText(year)}`,
  until: (year: number) => `Until ${yearText(year)}`,
  since: (year: number) => `Since ${yearText(year)}`,
  fromTo: (from: number, to: number) => `${from} to ${to}`,

  // No books
  empty: {
    title: 'No books yet',
    advice: 'Add the first book, or import a file. Import can also undo the examples.',
  },
  notFound: { title: 'No such books', advice: 'Try fewer letters, or another spelling.' },
  notInPart: {
    title: 'No such books',
    advice: 'Press the chosen button above the list again to search all books.',
  },
  goneEvent: {
    title: 'No books of this change are here',
    advice: 'They were removed since, or the log of changes no longer has it.',
  },
  nothingMatches: (words: string) => sentence`Nothing matches “${words}”`,
  add: 'Add a book',
  addNamed: (title: string) => sentence`Add “${title}”`,
  /** @param offers buttons, each with the number of books it finds; null if that is more than 1,000. */
  didYouMean: (offers: readonly (readonly [offer: Node, books: number | null])[]) => [
    'Did you mean ',
    ...offers.flatMap(([offer, books], at) => [
      at === 0 ? '' : at === offers.length - 1 ? ' or ' : ', ',
      offer,
      ` (${books === null ? 'more than 1,000 books' : counted(books, 'book')})`,
    ]),
    '?',
  ],

  // Cells
  fieldOf: (field: string, title: string) => `${field} of ${title || 'this book'}`,
};
