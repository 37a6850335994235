// Owns: reading pages of changes and the states of a book from the log in a SQLite file (rules H1, H2 and H4). Twin of
// `postgres/history.ts`.

import type { DatabaseSync } from 'node:sqlite';
import type { PageOfChanges, States } from '../../books/change-log.ts';
import { HEAVY } from '../../books/store.ts';
import { FIELDS } from '../columns.ts';
import { asBook, BookStates, changeOf, type Fields, hasChange, type RowOfBook } from '../states.ts';
import { FIND } from './books.ts';
import { about, BEGINNING, IS_ANY_NEW, type LogPosition, LogReader, NO_RANGE, newestOf } from './log.ts';
import { LogGuard } from './log-tables.ts';
import { preparing } from './structure.ts';

/** The range of all books. */
const ALL_BOOKS = { next: 1, last: Number.MAX_SAFE_INTEGER };

/** When the kept part of the log begins. */
const BEGAN = 'select at from book_log order by number limit 1';

/** When the latest change of a book was noted. */
const LATEST = `coalesce(${newestOf('id')}, (${BEGAN})) as at`;

const NEWEST = 'select number, at from book_log order by number desc limit 1';

/**
 * Whether the log has all changes after a position. The row that was the newest when the page of the position was read is still there,
 * unless the file was restored.
 */
const IS_KNOWN = `
  select 1 from book_log
  where number = $newest and at = $at and $number >= ${BEGINNING}
    and $newest >= (select began from book_log_state)`;

const ROW = `select ${FIELDS} from ${about('$id')} where ${hasChange('$before')} and ${changeOf('$id')} = $before`;
const OLDER_ROWS = `
  select number, ${changeOf('$id')} as change, at, ${FIELDS} from ${about('$id')} where number < $before order by number desc`;

export class History {
  readonly #prepare;
  readonly #reader;
  readonly guard: LogGuard;

  /** @param db a connection that sees only durable commits. Each method is called in a transaction. */
  constructor(db: DatabaseSync) {
    this.#prepare = preparing(db);
    this.#reader = new LogReader(db, `${FIELDS}, ${LATEST}`);
    this.guard = new LogGuard(db);
  }

  /** Whether a write has to complete the log first: new books are not noted yet, or the log is in doubt. */
  get isIncomplete(): boolean {
    return this.guard.isInDoubt || this.#prepare(IS_ANY_NEW).get() !== undefined;
  }

  /**
   * @param cursor undefined to begin with all books, `now` with later changes.
   * @param time milliseconds after which the page ends, if it has a book.
   */
  changes(cursor: unknown, most: number, time: number): PageOfChanges | 'gone' {
    const end = performance.now() + time;
    const { number: newest, at } = this.#prepare(NEWEST).get() as { number: number; at: number };
    const range = cursor === undefined ? ALL_BOOKS : cursor === 'now' ? NO_RANGE : undefined;
    let position = range === undefined ? this.#positionAt(cursor) : { number: newest, ...range };
    if (position === undefined) return 'gone';
    for (;;) {
      const { books, position: after } = this.#reader.next(
        position,
        most,
        HEAVY,
        () => performance.now() >= end,
      );
      const isEnd = after.number === position.number && position.next > position.last;
      position = after;
      if (books.length === 0 && !isEnd) continue;
      const changes = books.map(({ id, at, ...fields }) => ({
        id,
        at: Number(at),
        book: asBook(id, fields),
      }));
      return { changes, cursor: [position.number, position.next, position.last, newest, at] };
    }
  }

  /** @returns undefined unless the log has all changes after the cursor. */
  #positionAt(cursor: unknown): LogPosition | undefined {
    if (!Array.isArray(cursor) || cursor.length !== 5 || !cursor.every(Number.isSafeInteger))
      return undefined;
    const [number, next, last, newest, at] = cursor as [number, number, number, number, number];
    return this.#prepare(IS_KNOWN).get({ number, newest, at }) && { number, next, last };
  }

  /** @param before the number of a change; undefined to begin with the present state. */
  states(id: number, before: number | undefined, most: number): States {
    const latest =
      before === undefined ? this.#prepare(FIND).get(id) : this.#prepare(ROW).get({ id, before });
    if (before !== undefined && latest === undefined) return { states: [], next: undefined }; // it is no longer kept
    const states = new BookStates(id, latest as Fields | undefined, most);
    const rows = this.#prepare(OLDER_ROWS).iterate({ id, before: before ?? Number.MAX_SAFE_INTEGER });
    for (const row of rows) if (states.add(row as unknown as RowOfBook)) return states.full;
    return states.whole(Number(this.#prepare(BEGAN).get()?.at));
  }
}
