// Owns: events of the log, their books and times, in words.

import type { CatalogueEvent, ChangedBook, ListedEvent } from '../../client/src/book-catalogue.ts';
import { sentence } from '../elements/dom.ts';
import { bookText, FIELDS, fieldText, NO_VALUE } from '../elements/text.ts';
import { counted, LANGUAGE } from '../texts/english.ts';

const TIME = new Intl.DateTimeFormat(LANGUAGE, { timeStyle: 'short' });
const DAY = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: 'full' });
const AGO = new Intl.RelativeTimeFormat(LANGUAGE);

export function dayText(at: string): string {
  const yesterday = new Date();
  yesterday.setDate(yesterday.getDate() - 1);
  const day = new Date(at).toDateString();
  if (day === new Date().toDateString()) return 'Today';
  return day === yesterday.toDateString() ? 'Yesterday' : DAY.format(new Date(at));
}

export const timeText = (at: string) => TIME.format(new Date(at));

/** `Monday 23 November 2026, 14:30`. */
export const momentText = (at: Date | string) => `${DAY.format(new Date(at))}, ${TIME.format(new Date(at))}`;

/** @param beginning of the log. */
export function sinceText(beginning: string | undefined): string {
  const since = beginning === undefined ? 'a later day' : momentText(beginning);
  return `The log of changes begins on ${since}.`;
}

/** `2 hours ago`. */
export function agoText(at: Date): string {
  const minutes = (Date.now() - at.getTime()) / 60_000;
  const [unit, length] = Object.entries({ day: 1440, hour: 60 }).find((one) => minutes >= one[1]) ?? [
    'minute',
    1,
  ];
  return AGO.format(-Math.floor(minutes / length), unit as Intl.RelativeTimeFormatUnit);
}

/** The kind of an event and its number of books: `14 books changed`. */
export function eventText({ kind, name, books, ...event }: ListedEvent | CatalogueEvent): (string | Node)[] {
  if (books === null) return ['More than 1,000 changes'];
  const count = counted(books, 'book');
  if (kind === 'import') return [...sentence`Imported ${name ?? 'a file'}`, `, ${count}`];
  if (kind === 'undo') return [`Undo of ${count}`];
  const first = 'first' in event ? event.first : [];
  const verbs = [...new Set(first.map(verbOf))];
  const verb = verbs.length === 1 && first.length === books ? verbs[0] : 'changed';
  return [`${count} ${verb}`];
}

function verbOf({ before, book }: ChangedBook): string {
  if (before === null) return book === null ? 'added and deleted' : 'added';
  return book === null ? 'deleted' : 'changed';
}

/** The name of a book in the line of its change. */
export function nameOf({ id, before, book }: ChangedBook): string {
  const known = before === null || book === null ? (before ?? book) : undefined;
  return known ? bookText(known) : (before?.title ?? '') || `Book number ${id}`;
}

/** The change of a book: `added`, `year 1815 → 1816`. */
export function changeText(changed: ChangedBook): (string | Node)[] {
  const { before, book } = changed;
  if (before === null || book === null) return [verbOf(changed)];
  const fields = FIELDS.filter((field) => before[field] !== book[field]);
  if (fields.length === 0) return ['changed, and changed back'];
  return fields.flatMap((field, at) => {
    const [from = '', to = ''] = [before, book].map((one) => fieldText(one, field) || NO_VALUE[field]);
    return [`${at === 0 ? '' : '; '}${field} `, ...sentence`${from} → ${to}`];
  });
}
