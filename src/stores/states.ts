// Owns: what the logs of both stores have in common: how rows are about books and numbers, and the states of a book from the rows
// about it (rule H4).

import { type Book, type BookFields, bookWith, FIELD_NAMES, valuesOf } from '../books/book.ts';
import type { State, States } from '../books/change-log.ts';
import { HEAVY, weightOf } from '../books/store.ts';

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

/** SQL for the condition that a row is about a change that is no part of an event. */
export const IS_SINGLE = 'part_of is null and book > 0';

/** The oldest row that a log has since its beginning. */
export interface OldestRow {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Whether it is the beginning, and whether there were no books then. */
  readonly isBeginning: boolean | 0 | 1;
  readonly hasAll: boolean | 0 | 1;
}

/** Whether the log has all changes since a time. Of other rows than a beginning, those of the same time may have been removed. */
export function reaches({ at, isBeginning, hasAll }: OldestRow, since: number): boolean {
  return at < since || Boolean(isBeginning && (at === since || hasAll));
}

/** The fields of a book, or null if there is none. */
export type Fields = BookFields | Readonly<Record<keyof BookFields, null>>;

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
export function asBook(id: number, fields: Fields): Book | undefined {
  return fields.title === null ? undefined : bookWith([id, ...valuesOf(fields)]);
}

const NEWEST = '(select max(number) from book_log where book = $1)';
/** The newest row of the book $1 stays when it is forgotten, so that followers and the index have the removal. */
export const FORGET = [
  `update book_log set ${FIELD_NAMES.map((name) => `${name} = null`)} where book = $1 and number = ${NEWEST}`,
  `delete from book_log where book = $1 and last = $1 and number < ${NEWEST}`,
];
