// Owns: what the logs of both stores have in common: how rows are about books and numbers, and the states of a book from the rows
// about it (rule H4).

import { type Book, FIELD_NAMES } from '../books/book.ts';
import { HEAVY, type State, type States, type Undone, type UndoRequest, weightOf } from '../books/store.ts';

// New books that are stored together have one row for each run of ids. Each of them has a number: that of the row is the last
// one's, and those of the others come before it.

/** A run ends before the next multiple of this id, so few rows may have a book or a number. */
export const RUN = 1000;

/** SQL for the number of the change of a book, in a row that is about it. */
export const changeOf = (id: string) => `number - last + ${id}`;

/** SQL for the condition that a row has a book, but not as its first one. */
export const isWithin = (id: string) =>
  `last > book and book >= ${id} - ${id} % ${RUN} and book < ${id} and last >= ${id}`;

/** SQL for the condition that a row has the change of this number. */
export const hasChange = (number: string) =>
  `number >= ${number} and number < ${number} + ${RUN} and number - last + book <= ${number}`;

/** Something that changes many books. */
export type LogEvent = 'import' | 'undo';

/** Whether a row is that of an import or undo which a request names. */
export function isEventOf(
  request: UndoRequest,
  { book, event }: { readonly book: number; readonly event: string | null },
): boolean {
  return book === 0 && (event === 'import' || (event === 'undo' && 'change' in request));
}

/** The oldest row of a log. */
export interface OldestRow {
  readonly at: number;
  readonly event: string | null;
  readonly year: number | null;
}

/** Whether the log has all changes since a time. Of other rows than a beginning, those of the same time may have been removed. */
export function reaches({ at, event, year }: OldestRow, since: number): boolean {
  return at < since || (event === 'beginning' && (at === since || year === 0));
}

/** The fields of a book, or null if there is none. */
export type Fields = Omit<Book, 'id'> | { readonly title: null; readonly author: null; readonly year: null };

/** A row about a book, which has its fields before the change. */
export type RowOfBook = Fields & {
  /** The number of the change. */
  readonly change: number;
  /** Milliseconds since 1970. */
  readonly at: number;
};

/** The states of a book, put together from rows. */
export class BookStates {
  readonly #id: number;
  readonly #most: number;
  readonly #states: State[] = [];
  /** The change that led to the last one. */
  #next: number | undefined;
  /** As it was after the next row. */
  #book: Book | undefined;
  #weight = 0;

  /**
   * @param latest the fields after the first row.
   * @param most states.
   */
  constructor(id: number, latest: Fields | undefined, most: number) {
    this.#id = id;
    this.#most = most;
    this.#book = latest && asBook(id, latest);
  }

  /** @param row an older one than those before. @returns whether there is no room for its state. */
  add(row: RowOfBook): boolean {
    const before = asBook(this.#id, row);
    if (FIELD_NAMES.every((name) => before?.[name] === this.#book?.[name])) return false; // it altered nothing
    if (this.#isFull) return true;
    this.#push(row.change, row.at);
    this.#next = row.change;
    this.#book = before;
    return false;
  }

  /** @returns the states if there are more rows. */
  get full(): States {
    return { states: this.#states, next: this.#next };
  }

  /**
   * @param began when the log begins, or what is kept of it.
   * @returns the states if there are no more rows.
   */
  whole(began: number): States {
    if (this.#book !== undefined && this.#isFull) return this.full;
    if (this.#book !== undefined) this.#push(null, began);
    return { states: this.#states, next: undefined };
  }

  get #isFull(): boolean {
    return this.#states.length >= this.#most || this.#weight >= HEAVY;
  }

  #push(change: number | null, at: number): void {
    this.#states.push({ change, at, book: this.#book });
    this.#weight += weightOf(this.#book ?? {});
  }
}

/** @returns undefined if there is none. */
export function asBook(id: number, { title, author, year }: Fields): Book | undefined {
  return title === null ? undefined : { id, title, author, year };
}

/** Ids from the first to the last one. */
export interface IdRange {
  readonly book: number;
  readonly last: number;
}

/** @param ranges ascending by their first id. @returns the same ids, each once. */
export function disjoint(ranges: readonly IdRange[]): IdRange[] {
  let end = 0;
  return ranges.flatMap(({ book, last }) => {
    const first = Math.max(book, end + 1);
    end = Math.max(end, last);
    return first > last ? [] : [{ book: first, last }];
  });
}

/** How many ids these are. */
export function countOf(ranges: readonly IdRange[]): number {
  return ranges.reduce((sum, { book, last }) => sum + last - book + 1, 0);
}

/** The ids in their order, so many at once. */
export function* batchesOf(ranges: readonly IdRange[], size: number): Generator<number[], void, void> {
  let batch: number[] = [];
  for (const { book, last } of ranges) {
    for (let id = book; id <= last; id += 1) {
      batch.push(id);
      if (batch.length < size) continue;
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}

/**
 * SQL for the newest events that have changed books, with so many as $1.
 * @param at makes it milliseconds since 1970.
 */
export const eventsWith = (at: (at: string) => string) => `
  select event.number, min(event.event) as event, ${at('min(event.at)')} as at, min(event.title) as name,
    cast(sum(part.last - part.book + 1) as float) as books
  from book_log as event join book_log as part on part.part_of = event.number
  where event.book = 0 and event.event in ('import', 'undo') and part.book > 0
  group by event.number order by event.number desc limit $1`;

/** The newest row of the book $1 stays when it is forgotten, as $2, so that followers and the index have the removal. */
export const NEWEST_ROW = 'select max(number) as number from book_log where book = $1';
export const FORGET = [
  `update book_log set ${FIELD_NAMES.map((name) => `${name} = null`)} where book = $1 and number = $2`,
  'delete from book_log where book = $1 and last = $1 and number < $2',
];

/** What is kept with the key of an undo, and back. */
export const asNumbers = ({ change, undone, left }: Undone) => [change ?? 0, undone, ...left];
export function asUndone([change = 0, undone = 0, ...left]: readonly number[]): Undone {
  return { change: change || null, undone, left };
}
