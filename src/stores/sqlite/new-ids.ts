// Owns: the ids of new books in a SQLite file: those that SQLite gives, after the highest of all books, unless books of
// files are beyond the sequence (rule 12). Each method is called in a transaction that writes.

import type { DatabaseSync } from 'node:sqlite';
import { BOOK_ID, LAST_SEQUENTIAL_ID } from '../../books/book.ts';

/** The highest id in the sequence that a book has. */
const HIGHEST = `(select coalesce(max(id), 0) from books where id <= ${LAST_SEQUENTIAL_ID})`;

/** The highest id in the sequence that the log knows. */
const LAST_NOTED = `select last from book_log where book <= ${LAST_SEQUENTIAL_ID} order by book desc limit 1`;

/** SQL for the id of a new book. */
export type NewId = 'null' | 'new_id()';

export class NewIds {
  readonly #db: DatabaseSync;
  readonly #findBeyond;
  readonly #readLast;
  readonly #putBack;
  readonly #find;
  #last = 0;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#findBeyond = db.prepare(`select 1 from books where id > ${LAST_SEQUENTIAL_ID} limit 1`);
    // Another program may have set an id by an update, which does not raise the sequence; or have raised it too far by an insert.
    this.#readLast = db.prepare(`
      select max(coalesce(max(iif(seq <= ${LAST_SEQUENTIAL_ID}, seq, 0)), 0), ${HIGHEST}) as id,
        max(seq) > ${LAST_SEQUENTIAL_ID} as isTooFar
      from sqlite_sequence where name = 'books'`);
    this.#putBack = db.prepare(`update sqlite_sequence set seq = max(?, ${HIGHEST}) where name = 'books'`);
    this.#find = db.prepare('select 1 from books where id = ?');
    db.function('new_id', () => {
      do this.#last += 1;
      while (this.#isTaken());
      return this.#last;
    });
  }

  /** @returns how the next statements insert new books, until another one inserts books with ids. */
  begin(): NewId {
    const last = this.#lastInSequence();
    if (this.#findBeyond.get() === undefined) return 'null';
    this.#last = last;
    return 'new_id()';
  }

  /** The id after which the next new book gets its own. */
  last(): number {
    return Number(this.#readLast.get()?.id);
  }

  /** Lets books be inserted with their ids. Those beyond the sequence do not raise it. */
  keep(ids: readonly number[], insert: () => void): void {
    const last = ids.some((id) => id > LAST_SEQUENTIAL_ID) ? this.#lastInSequence() : undefined;
    insert();
    if (last !== undefined) this.#putBack.run(last);
  }

  /** As `last`; a sequence that was raised too far is put back to the last id that is known. */
  #lastInSequence(): number {
    const { id, isTooFar } = this.#readLast.get() as { id: number; isTooFar: 0 | 1 | null };
    if (isTooFar !== 1) return id;
    const last = Math.max(id, Number(this.#db.prepare(LAST_NOTED).get()?.last ?? 0));
    this.#putBack.run(last);
    return last;
  }

  #isTaken(): boolean {
    const mayBe = this.#last > LAST_SEQUENTIAL_ID && this.#last < BOOK_ID.maximum;
    return mayBe && this.#find.get(this.#last) !== undefined;
  }
}
