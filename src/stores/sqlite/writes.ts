// Owns: the statements that change books in a SQLite file. Each method is called within a transaction.
// Does not: begin or commit one; `group-commit.ts` does.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Book, type BookFields, bookWith, FIELD_NAMES } from '../../books/book.ts';
import { meets } from '../../books/condition.ts';
import { KEPT_KEYS, type Once } from '../../books/once.ts';
import {
  type BookGroup,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type GroupOutcome,
  type NotAnswered,
  untilHeavy,
} from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { ID_AND_FIELDS } from '../columns.ts';
import { Turn } from '../turn.ts';
import { Skipped } from './faults.ts';
import { BookLog } from './log.ts';
import { LAST_ID } from './log-tables.ts';

// Values are written out: loops over the fields would take 3 % of a new book or an update.

/** How many new books one statement stores. Statements for single books would take twice as long. */
const ROWS = [32, 8, 1];
const ROW = `(?, ${FIELD_NAMES.map(() => '?')})`;

export const FIND = `select ${ID_AND_FIELDS} from books where id = ?`;

export const FIND_KEY = 'select fingerprint, ids from book_requests where key = ?';
export const KEEP_KEY =
  'insert into book_requests (key, fingerprint, ids, made_at) values (?, ?, ?, unixepoch() * 1000)';

export class Writes {
  /** Milliseconds of work before other work runs. */
  readonly #turn: number;
  readonly log;
  readonly #lastId;
  readonly #inserts: readonly StatementSync[];
  readonly #update;
  readonly #remove;
  readonly #find;
  readonly #findKey;
  readonly #keepKey;
  readonly #dropKeys;

  constructor(db: DatabaseSync, times: Times) {
    this.#turn = times.sqlite.turn;
    this.log = new BookLog(db);
    this.#lastId = db.prepare(LAST_ID);
    this.#inserts = ROWS.map((rows) =>
      db.prepare(`insert into books (${ID_AND_FIELDS}) values ${Array(rows).fill(ROW)}`),
    );
    this.#update = db.prepare(`
      update books set ${FIELD_NAMES.map((name) => `${name} = coalesce(?, ${name})`)}
      where id = ?
      returning ${ID_AND_FIELDS}`);
    this.#update.setReturnArrays(true);
    this.#remove = db.prepare('delete from books where id = ?');
    this.#find = db.prepare(FIND);
    this.#find.setReturnArrays(true);
    this.#findKey = db.prepare(FIND_KEY);
    this.#keepKey = db.prepare(KEEP_KEY);
    // Removes up to two keys for each new one. The row ids of the newest keys have no gaps.
    this.#dropKeys = db.prepare(`
      delete from book_requests where rowid in (
        select rowid from (select rowid, made_at from book_requests order by made_at limit 2)
        where made_at < unixepoch() * 1000 - ${times.keys.lifetime}
          and rowid <= (select max(rowid) from book_requests) - ${KEPT_KEYS})`);
  }

  /** Lets other work run if it takes long. @returns the ids, in the order of the books. */
  async insert(books: readonly BookFields[]): Promise<number[]> {
    this.log.noteNew();
    const first = this.#last + 1;
    const turn = new Turn(this.#turn);
    for (let done = 0; done < books.length; ) {
      done += this.#insertSome(first + done, books, done);
      if (turn.isOver) await turn.next();
    }
    this.log.noteStored(first, first + books.length - 1);
    return books.map((_, position) => first + position);
  }

  /** Lets other work run if it takes long. */
  async insertGroups(groups: readonly BookGroup[]): Promise<GroupOutcome[]> {
    const outcomes: GroupOutcome[] = [];
    for (const group of groups) outcomes.push(await this.#insertGroup(group));
    return outcomes;
  }

  update(updates: readonly BookUpdate[]): (Book | undefined | NotAnswered)[] {
    return this.#answerForATurn(updates, (update) => this.#change(update));
  }

  remove(ids: readonly number[]): (boolean | NotAnswered)[] {
    return this.#answerForATurn(ids, (id) => this.#removeOne(id));
  }

  changeIf(changes: readonly ConditionalChange[]): (ConditionalOutcome | NotAnswered)[] {
    return this.#answerForATurn(changes, (change) => this.#changeIf(change));
  }

  /** Answers calls for the time of a turn: SQLite reads each page of a large text to free it. */
  #answerForATurn<Item, Answer extends ConditionalOutcome | boolean>(
    items: readonly Item[],
    answer: (item: Item) => Answer,
  ): (Answer | NotAnswered)[] {
    const turn = new Turn(this.#turn);
    return untilHeavy(items, answer, () => turn.isOver);
  }

  /** The highest id ever given. */
  get #last(): number {
    return Number(this.#lastId.get()?.value);
  }

  /** Stores the first books from the index `from` on, the first one with this id. @returns how many it has stored. */
  #insertSome(id: number, books: readonly BookFields[], from: number): number {
    const index = ROWS.findIndex((rows) => from + rows <= books.length);
    const rows = ROWS[index] as number;
    const values: (string | number)[] = [];
    for (let row = 0; row < rows; row += 1) {
      const { title, author, year } = books[from + row] as BookFields;
      values.push(id + row, title, author, year);
    }
    if (this.#inserts[index]?.run(...values).changes !== rows) throw new Skipped();
    return rows;
  }

  async #insertGroup({ books, once }: BookGroup): Promise<GroupOutcome> {
    if (once !== undefined) {
      const known = this.#findKey.get(once.key);
      if (known !== undefined) {
        if (known.fingerprint !== once.fingerprint) return 'conflict';
        return { ids: JSON.parse(String(known.ids)), isReplay: true };
      }
    }
    const ids = await this.insert(books);
    if (once !== undefined) this.#keep(once, ids);
    return { ids, isReplay: false };
  }

  #keep({ key, fingerprint }: Once, ids: readonly number[]): void {
    this.#keepKey.run(key, fingerprint, JSON.stringify(ids));
    this.dropOldKeys();
  }

  /** Called for each new key, also for that of an undo. */
  dropOldKeys(): void {
    this.#dropKeys.run();
  }

  #change({ id, changes: { title, author, year } }: BookUpdate): Book | undefined {
    const changed = this.#update.get(title ?? null, author ?? null, year ?? null, id);
    if (changed === undefined && this.#find.get(id) !== undefined) throw new Skipped();
    return bookOf(changed);
  }

  #removeOne(id: number): boolean {
    const isRemoved = this.#remove.run(id).changes === 1;
    if (!isRemoved && this.#find.get(id) !== undefined) throw new Skipped();
    return isRemoved;
  }

  #changeIf({ id, condition, changes }: ConditionalChange): ConditionalOutcome {
    const book = bookOf(this.#find.get(id));
    if (book === undefined) return undefined;
    if (!meets(book, condition)) return 'unmet';
    if (changes !== undefined) return this.#change({ id, changes });
    this.#removeOne(id);
    return book;
  }
}

/** @param row an array, from `FIND`. */
export const bookOf = (row: unknown) => (row === undefined ? undefined : bookWith(row as unknown[]));
