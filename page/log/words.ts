// Owns: events of the log and their books, in words.

import type { CatalogueEvent, ChangedBook, ListedEvent } from '../../client/src/book-catalogue.ts';
import { bookText, FIELDS, fieldText } from '../elements/text.ts';
import { ELEMENTS } from '../texts/elements.ts';
import { LOG } from '../texts/log.ts';
import type { Sentence } from '../texts/sentence.ts';

/** The kind of an event and its number of books: `14 books changed`. */
export function eventText({ kind, name, books, ...event }: ListedEvent | CatalogueEvent): Sentence {
  if (books === null) return [LOG.manyChanges];
  if (kind === 'import') return LOG.imported(name, books);
  if (kind === 'undo') return [LOG.undone(books)];
  const first = 'first' in event ? event.first : [];
  const verbs = [...new Set(first.map(verbOf))];
  const [verb = LOG.verbs.changed] = verbs.length === 1 && first.length === books ? verbs : [];
  return [LOG.done(books, verb)];
}

function verbOf({ before, book }: ChangedBook): string {
  if (before === null) return book === null ? LOG.verbs.gone : LOG.verbs.added;
  return book === null ? LOG.verbs.deleted : LOG.verbs.changed;
}

/** The name of a book in the line of its change. */
export function nameOf({ id, before, book }: ChangedBook): string {
  const known = before === null || book === null ? (before ?? book) : undefined;
  return known ? bookText(known) : (before?.title ?? '') || LOG.numbered(id);
}

/** The change of a book: `added`, `year 1815 → 1816`. */
export function changeText(changed: ChangedBook): Sentence {
  const { before, book } = changed;
  if (before === null || book === null) return [verbOf(changed)];
  const fields = FIELDS.filter((field) => before[field] !== book[field]);
  if (fields.length === 0) return [LOG.changedBack];
  return fields.flatMap((field, at) => {
    const [from = '', to = ''] = [before, book].map(
      (one) => fieldText(one, field) || ELEMENTS.noValues[field],
    );
    return LOG.values(at === 0, field, from, to);
  });
}
