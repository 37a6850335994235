// Owns: pages of changes, and the states of a book, from the log in a SQLite file (rules H1, H2 and H4). Twin of
// `postgres/history.ts`.

import type { DatabaseSync } from 'node:sqlite';
import { HEAVY, type PageOfChanges, type States } from '../../books/store.ts';
import { FIELDS } from '../columns.ts';
import { asBook, BookStates, changeOf, type Fields, hasChange, type RowOfBook } from '../states.ts';
import { about, BEGINNING, type LogPosition, LogReader, newestOf } from './log.ts';
import { HAS_NEW, LogGuard } from './log-tables.ts';
import { FIND } from './writes.ts';

/** Of all books. */
const RANGE = { next: 1, last: Number.MAX_SAFE_INTEGER };

/** When the log begins, or what is kept of it. */
const BEGAN = 'select at from book_log order by number limit 1';

/** When the latest change of a book was noted. */
const LATEST = `coalesce(${newestOf('id')}, (${BEGAN})) as at`;

const NEWEST = 'select number, at from book_log order by number desc limit 1';

/**
 * Whether the log has all that follows a position. The row that was the newest when its page was read is still there unless the
 * file was restored.
 */
const IS_KNOWN = `
  select 1 from book_log
  where number = $newest and at = $at and $number >= ${BEGINNING}
    and $newest >= (select began from book_log_state)`;

const ROW = `select ${FIELDS} from ${about('$id')} where ${hasChange('$before')} and ${changeOf('$id')} = $before`;
const OLDER_ROWS = `
  select number, ${changeOf('$id')} as change, at, ${FIELDS} from ${about('$id')} where number < $before order by number desc`;

export class History {
  readonly #reader;
  readonly #guard;
  readonly #hasNew;
  readonly #newest;
  readonly #isKnown;
  readonly #find;
  readonly #row;
  readonly #olderRows;
  readonly #began;

  /** @param db which reads what is durable. Each method is called in a transaction. */
  constructor(db: DatabaseSync) {
    this.#reader = new LogReader(db, `${FIELDS}, ${LATEST}`);
    this.#guard = new LogGuard(db);
    this.#hasNew = db.prepare(`select ${HAS_NEW} as hasNew`);
    this.#newest = db.prepare(NEWEST);
    this.#isKnown = db.prepare(IS_KNOWN);
    this.#find = db.prepare(FIND);
    this.#row = db.prepare(ROW);
    this.#olderRows = db.prepare(OLDER_ROWS);
    this.#began = db.prepare(BEGAN);
  }

  /** Whether a write is to complete the log first: there are new books that are not noted yet, or it is in doubt. */
  get isIncomplete(): boolean {
    return this.#guard.isInDoubt || this.#hasNew.get()?.hasNew === 1;
  }

  /** The log is complete now. */
  trust(): void {
    this.#guard.trust();
  }

  /**
   * @param cursor undefined to begin with all books.
   * @param time milliseconds after which the page ends, if it has a book.
   */
  changes(cursor: unknown, most: number, time: number): PageOfChanges | 'gone' {
    const end = performance.now() + time;
    const { number: newest, at } = this.#newest.get() as { number: number; at: number };
    let position = cursor === undefined ? { number: newest, ...RANGE } : this.#positionAt(cursor);
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

  /** @returns undefined unless the log has all that follows. */
  #positionAt(cursor: unknown): LogPosition | undefined {
    if (!Array.isArray(cursor) || cursor.length !== 5 || !cursor.every(Number.isSafeInteger))
      return undefined;
    const [number, next, last, newest, at] = cursor as [number, number, number, number, number];
    return this.#isKnown.get({ number, newest, at }) && { number, next, last };
  }

  /** @param before the number of a change; undefined to begin with the present state. */
  states(id: number, before: number | undefined, most: number): States {
    const latest = before === undefined ? this.#find.get(id) : this.#row.get({ id, before });
    if (before !== undefined && latest === undefined) return { states: [], next: undefined }; // it is no longer kept
    const states = new BookStates(id, latest as Fields | undefined, most);
    for (const row of this.#olderRows.iterate({ id, before: before ?? Number.MAX_SAFE_INTEGER }))
      if (states.add(row as unknown as RowOfBook)) return states.full;
    return states.whole(Number(this.#began.get()?.at));
  }
}
