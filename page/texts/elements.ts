// Owns: the texts that all parts of the page share: the fields of a book, messages, and the progress of long work.

export const ELEMENTS = {
  fields: { title: 'Title', author: 'Author', year: 'Year' },
  noValues: { title: 'no title', author: 'no author', year: 'no year' },
  dismiss: 'Dismiss',
  stopHere: 'Stop here',
  stopping: 'Stopping …',
  tryAgain: 'Try again',
};
