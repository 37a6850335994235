// Owns: reading the log of changes in a SQLite file, and noting the new books of the service in it. The log has a row for each change
// and removal, with the book as it was before. Numbers are in the order of the commits. A reader gets the books of the rows after
// its position. Twin of `postgres/log.ts`.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Selection } from '../../books/change-log.ts';
import { weightOf } from '../../books/store.ts';
import { changeOf, type Fields, IS_SINGLE, isWithin, RUN } from '../states.ts';
import { HAS_NEW, LogGuard, MOVE_MARK, NOTE_NEW, noteRuns, prepareLog } from './log-tables.ts';
import { preparing } from './structure.ts';

/** SQL after `from` for the rows about a book. */
export const about = (id: string) => `(
  select * from book_log where book = ${id} union all select * from book_log where ${isWithin(id)}
)`;

/** A condition for the selected rows, with its values. */
export function conditionOf(
  selection: Selection,
  id = 'book',
): readonly [sql: string, values: Readonly<Record<string, number>>] {
  if ('event' in selection) return ['part_of = $event', selection];
  if ('from' in selection) return [`${IS_SINGLE} and at between $from and $until`, { ...selection }];
  if ('change' in selection) return [`${changeOf(id)} = $change`, { change: selection.change }];
  const { since, before = Number.MAX_SAFE_INTEGER } = selection;
  return [
    `at >= $since and number < $before and (
      part_of is null or part_of not in (select number from book_events where kind = 'undo')
    )`,
    { since, before },
  ];
}

/** SQL for when the newest row about a book was noted. It reads no older rows. */
export const newestOf = (id: string) => {
  const newest = (condition: string) =>
    `select * from (select number, at from book_log where ${condition} order by number desc limit 1)`;
  return `(
    select at from (${newest(`book = ${id}`)} union all ${newest(isWithin(id))}) order by number desc limit 1
  )`;
};

/** SQL for the number before the oldest change that the log has. */
export const BEGINNING = '(select number - last + book - (book > 0) from book_log order by number limit 1)';

/** How many changes the log has. */
export const CHANGES = `select max(number) - ${BEGINNING} as count from book_log`;

/** How far a reader is in the log. */
export interface LogPosition {
  /** The reader has the rows up to this number. */
  readonly number: number;
  /** The range of books that are still to be read. */
  readonly next: number;
  readonly last: number;
}

/** A range without ids. */
export const NO_RANGE = { next: 1, last: 0 };

interface LogRow extends LogPosition {
  readonly book: number;
}

/** A book that rows are about. */
export type Noted = Fields & {
  readonly id: number;
  /** When the latest change was noted, if the columns have it. */
  readonly at?: number;
};

/** The most rows that are read together: about a millisecond of work, even if all are about one book. */
const ROWS = 1000;

/** Reads the log, and the books of its rows as they are now. */
export class LogReader {
  readonly #rows: StatementSync;
  readonly #range: StatementSync;
  readonly #one: StatementSync;

  /** @param columns of a book, beside its id. */
  constructor(db: DatabaseSync, columns: string) {
    this.#rows = db.prepare(
      `select number, book, last from book_log where number > ? order by number limit ${ROWS}`,
    );
    this.#range = db.prepare(`select id, ${columns} from books where id between ? and ? order by id`);
    this.#one = db.prepare(`select id, ${columns} from (select ? as id) left join books using (id)`);
  }

  /**
   * Reads the next rows, until there are `most` books, or these are as heavy as `heavy`, or it is late. The rest of a run becomes a
   * range.
   * @returns each book once, and the position after them, which is the same as before if there are no more rows.
   */
  next(
    before: LogPosition,
    most: number,
    heavy: number,
    isLate = () => false,
  ): { books: Noted[]; position: LogPosition } {
    const books = new Map<number, Noted>();
    let weight = 0;
    const add = (book: Noted) => {
      books.set(book.id, book);
      weight += weightOf(book);
      return books.size >= most || weight >= heavy || isLate();
    };
    let { number, next, last } = before;
    const rows = this.#rows.iterate(number) as Iterable<unknown> as Iterable<LogRow>;
    const isFull = () => {
      const found =
        next < last
          ? this.#range.iterate(next, last)
          : next === last && !books.has(next)
            ? [this.#one.get(next)]
            : [];
      for (const book of found as Iterable<unknown> as Iterable<Noted>) {
        next = book.id + 1;
        if (!books.has(book.id) && add(book)) return true;
      }
      next = last + 1;
      return false;
    };
    if (!isFull()) {
      for (const row of rows) {
        ({ number, last } = row);
        next = Math.max(1, row.book); // an event has no book
        if (isFull()) break;
      }
    }
    return { books: [...books.values()], position: { number, ...(next > last ? NO_RANGE : { next, last }) } };
  }
}

/** SQL for a row if new books are to be noted. */
export const IS_ANY_NEW = `select 1 where ${HAS_NEW}`;
const MOVE_MARK_TO = 'update book_log_state set noted_to = ? where noted_to < ? returning 1';
const NOTE_RUN = noteRuns('select ?1 as book, ?2 as last, ?2 - ?1 + 1 as place');

/** Each method is called in a transaction that writes. Most statements use `get`: see `SqliteIndex`. */
export class BookLog {
  readonly #db: DatabaseSync;
  readonly #prepare;
  readonly #guard: LogGuard;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#prepare = preparing(db);
    this.#guard = new LogGuard(db);
  }

  /**
   * Begins the log again if another program has emptied it or taken a part of it away.
   * @param lacksChanges whether the log begins again in any case.
   */
  keep(lacksChanges = false): void {
    if (!lacksChanges && !this.#guard.isInDoubt) return;
    prepareLog(this.#db, lacksChanges);
    this.#guard.trust();
  }

  /** Notes new books that no trigger has noted. Called before the service stores new books, it notes those of other programs. */
  noteNew(): void {
    if (this.#prepare(IS_ANY_NEW).get() === undefined) return;
    this.#prepare(NOTE_NEW).get();
    this.#prepare(MOVE_MARK).get();
  }

  /**
   * Notes new books with these ids, in a quarter of the time that `noteNew` takes, and then any others. Books that triggers of others
   * have changed since are noted already.
   */
  noteStored(first: number, last: number): void {
    if (this.#prepare(MOVE_MARK_TO).get(last, first) !== undefined) {
      for (let book = first; book <= last; book += RUN - (book % RUN))
        this.#prepare(NOTE_RUN).get(book, Math.min(last, book - (book % RUN) + RUN - 1));
    }
    this.noteNew();
  }
}
