// Owns: reading the log of changes in a SQLite file, and what the service itself writes there. The log has a row for each change and
// removal, with the book as it was before. Numbers are in the order of the commits. A reader gets the books of the rows after its
// position. Twin of `postgres/log.ts`.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { CatalogueEvent } from '../../books/change-log.ts';
import { weightOf } from '../../books/store.ts';
import { type Fields, isWithin, RUN } from '../states.ts';
import { HAS_NEW, LogGuard, MOVE_MARK, NOTE_NEW, NOW, noteRuns, prepareLog } from './log-tables.ts';

/** SQL after `from` for the rows about a book. */
export const about = (id: string) => `(
  select * from book_log where book = ${id} union all select * from book_log where ${isWithin(id)}
)`;

/** SQL for when the newest row about a book was noted: the rows before it are not read. */
export const newestOf = (id: string) => {
  const newest = (condition: string) =>
    `select * from (select number, at from book_log where ${condition} order by number desc limit 1)`;
  return `(
    select at from (${newest(`book = ${id}`)} union all ${newest(isWithin(id))}) order by number desc limit 1
  )`;
};

/** Before the oldest row, unless that is empty. */
export const BEGINNING = '(select number - last + book - (book > 0) from book_log order by number limit 1)';

/** How many changes it has; undefined if it is missing. */
export function countChanges(db: DatabaseSync): number | undefined {
  try {
    return Number(db.prepare(`select max(number) - ${BEGINNING} as changes from book_log`).get()?.changes);
  } catch {
    return undefined;
  }
}

/** How far a reader is: it has the rows up to a number, but not the books of a range. */
export interface LogPosition {
  readonly number: number;
  readonly next: number;
  readonly last: number;
}

/** A range without ids. */
const NO_RANGE = { next: 1, last: 0 };

interface LogRow extends LogPosition {
  readonly book: number;
}

/** A book of some rows. */
export type Noted = Fields & {
  readonly id: number;
  /** If it is among the columns. */
  readonly at?: number;
};

/** Rows that are read together, many of which may be about one book: about a millisecond of work. */
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
   * Reads on, until it has so many books, or they are so heavy, or it is late. The rest of a run is a range.
   * @returns each book once, and the position after them; that of before if there are no more rows.
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

/** Each method is called in a transaction that writes. Those that note use `get`: see `SqliteIndex`. */
export class BookLog {
  readonly #db: DatabaseSync;
  readonly #guard: LogGuard;
  readonly #hasNew: StatementSync;
  readonly #new: StatementSync;
  readonly #moveMark: StatementSync;
  readonly #moveMarkTo: StatementSync;
  readonly #newRun: StatementSync;
  readonly #setPart: StatementSync;
  readonly #newNumber: StatementSync;
  readonly #newEvent: StatementSync;
  readonly #noteEvent: StatementSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#guard = new LogGuard(db);
    this.#hasNew = db.prepare(`select 1 where ${HAS_NEW}`);
    this.#new = db.prepare(NOTE_NEW);
    this.#moveMark = db.prepare(MOVE_MARK);
    this.#moveMarkTo = db.prepare('update book_log_state set noted_to = ? where noted_to < ? returning 1');
    this.#newRun = db.prepare(noteRuns('select ?1 as book, ?2 as last, ?2 - ?1 + 1 as place'));
    this.#setPart = db.prepare('update book_log_state set part_of = ?');
    this.#newNumber = db.prepare(
      `insert into book_log (at, book, last) values (${NOW}, 0, 0) returning number`,
    );
    this.#newEvent = db.prepare(
      'insert into book_events (number, at, kind, name) select number, at, ?, ? from book_log where number = ?',
    );
    this.#noteEvent = db.prepare(
      'update book_events set books = books + ?, work = coalesce(?, work) where number = ?',
    );
  }

  /**
   * Begins the log again if another program has emptied it or taken a part of it away.
   * @param lacksChanges whether it does so in any case.
   */
  keep(lacksChanges = false): void {
    if (!lacksChanges && !this.#guard.isInDoubt) return;
    prepareLog(this.#db, lacksChanges);
    this.#guard.trust();
  }

  /** Notes new books. Before own books are stored, it notes those of other programs. */
  noteNew(): void {
    if (this.#hasNew.get() === undefined) return;
    this.#new.get();
    this.#moveMark.get();
  }

  /**
   * Notes new books with these ids, and any others: with the ids, it takes a quarter of the time. Books that have changed since they
   * were stored, by triggers of others, are noted already.
   */
  noteStored(first: number, last: number): void {
    if (this.#moveMarkTo.get(last, first) !== undefined) {
      for (let book = first; book <= last; book += RUN - (book % RUN))
        this.#newRun.get(book, Math.min(last, book - (book % RUN) + RUN - 1));
    }
    this.noteNew();
  }

  /** Begins an event: later writes are a part of it. @returns its number. */
  begin(kind: CatalogueEvent['kind'], name: string | null): number {
    const number = Number(this.#newNumber.get()?.number);
    this.#newEvent.run(kind, name, number);
    this.resume(number);
    return number;
  }

  /** Later writes are a part of an event. */
  resume(number: number): void {
    this.#setPart.get(number);
  }

  /** At the end of the transaction at the latest. @param books that were written since the event was started or continued. */
  end(number: number, books: number, work: unknown): void {
    this.#setPart.get(null);
    this.#noteEvent.run(books, work === undefined ? null : JSON.stringify(work), number);
  }
}
