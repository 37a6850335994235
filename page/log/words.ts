// Owns: events of the log, their books and times, in words.

import type { ChangedBook, ListedEvent } from '../../client/src/book-catalogue.ts';
import { AS_IT_IS, make, sentence } from '../elements/dom.ts';
import { bookText, counted, FIELD_NAMES, FIELDS, fieldText, NO_VALUE } from '../elements/text.ts';

const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const AGO = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
/** In the language of the page. */
const DAY = new Intl.DateTimeFormat('en-GB', {
  ...{ weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' },
});

/** Seconds. */
const UNITS = { day: 86_400, hour: 3600, minute: 60, second: 1 } as const;

export function dayText(at: string): string {
  const yesterday = new Date();
  yesterday.setDate(yesterday.getDate() - 1);
  const day = new Date(at).toDateString();
  if (day === new Date().toDateString()) return 'Today';
  return day === yesterday.toDateString() ? 'Yesterday' : DAY.format(new Date(at));
}

export function timeText(at: string): string {
  return TIME.format(new Date(at));
}

/** `Monday 23 November 2026, 14:30`. */
export function momentText(at: Date | string): string {
  return `${DAY.format(new Date(at))}, ${TIME.format(new Date(at))}`;
}

/** `2 hours ago`. */
export function agoText(at: Date): string {
  const seconds = (Date.now() - at.getTime()) / 1000;
  const [unit, length] =
    Object.entries(UNITS).find(([, length]) => seconds >= length) ?? (['second', 1] as const);
  return AGO.format(-Math.floor(seconds / length), unit as keyof typeof UNITS);
}

type Described = Pick<ListedEvent, 'kind' | 'name' | 'books'> & Partial<Pick<ListedEvent, 'first'>>;

/** What an event was, and of how many books: `14 books changed one by one`. */
export function eventText({ kind, name, books, first = [] }: Described): (string | Node)[] {
  const count = books === null ? 'more than 10,000 books' : counted(books, 'book');
  if (kind === 'import')
    return [...(name === null ? ['Imported a file'] : sentence`Imported ${name}`), `, ${count}`];
  if (kind === 'undo') return [`Undo of ${count}`];
  const [verb = 'changed', ...others] = new Set(first.map(verbOf));
  const isSame = others.length === 0 && first.length === books;
  return [
    `${books === null ? 'More than 10,000 changes' : `${count} ${isSame ? verb : 'changed'}`}${books === 1 ? '' : ' one by one'}`,
  ];
}

export function verbOf({ before, book }: ChangedBook): string {
  if (before === null) return book === null ? 'added and deleted' : 'added';
  return book === null ? 'deleted' : 'changed';
}

/** What a book is called in the line of its change. */
export function nameOf({ id, before, book }: ChangedBook): string {
  const known = before === null || book === null ? (before ?? book) : undefined;
  return known ? bookText(known) : (before?.title ?? '') || `Book number ${id}`;
}

/** What has happened to a book: `added`, `year 1815 → 1816`. */
export function changeText(changed: ChangedBook): (string | Node)[] {
  const { before, book } = changed;
  if (before === null || book === null) return [verbOf(changed)];
  const fields = FIELDS.filter((field) => before[field] !== book[field]);
  if (fields.length === 0) return ['changed, and changed back'];
  return fields.flatMap((field, at) => {
    const values = [before, book].map((one) =>
      make('bdi', AS_IT_IS, fieldText(one, field) || NO_VALUE[field]),
    );
    return [
      at === 0 ? '' : '; ',
      `${FIELD_NAMES[field].toLowerCase()} `,
      values[0] ?? '',
      ' → ',
      values[1] ?? '',
    ];
  });
}
