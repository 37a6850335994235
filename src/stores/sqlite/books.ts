// Owns: the books of a served SQLite file, and the statements that change them. Twin of `postgres/books.ts`. Reads and writes run on
// the calling thread. Each list has its own connection, since other reads would otherwise see its old snapshot.
// Does not: begin or commit a write; `group-commit.ts` does.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Book, type BookFields, bookWith, FIELD_NAMES } from '../../books/book.ts';
import { meets } from '../../books/condition.ts';
import { KEPT_KEYS } from '../../books/once.ts';
import {
  type BookGroup,
  type BookList,
  type Books,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type GroupOutcome,
  type NotAnswered,
  untilHeavy,
} from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { ID_AND_FIELDS } from '../columns.ts';
import type { OpenLists } from '../open-lists.ts';
import { Turn } from '../turn.ts';
import type { DurableReads } from './durable-reads.ts';
import { Skipped } from './faults.ts';
import type { GroupCommit } from './group-commit.ts';
import { listOf } from './lists.ts';
import type { BookLog } from './log.ts';
import { LAST_ID } from './log-tables.ts';
import type { Wal } from './wal.ts';

// Values are written out: loops over the fields would take 3 % of a new book or an update.

/** How many new books one statement stores. Statements for single books would take twice as long. */
const ROWS = [32, 8, 1];
const ROW = `(?, ${FIELD_NAMES.map(() => '?')})`;

export const FIND = `select ${ID_AND_FIELDS} from books where id = ?`;
export const REMOVE = 'delete from books where id = ?';

export const FIND_KEY = 'select fingerprint, ids from book_requests where key = ?';
export const KEEP_KEY =
  'insert into book_requests (key, fingerprint, ids, made_at) values (?, ?, ?, unixepoch() * 1000)';

export class SqliteBooks implements Books {
  readonly #reads: DurableReads;
  readonly #commits: GroupCommit;
  readonly #log: BookLog;
  readonly #lists: OpenLists;
  readonly #wal: Wal;
  readonly #times: Times;
  /** Reads what is durable; the others are statements of a transaction that writes. */
  readonly #findDurable;
  readonly #lastId;
  readonly #inserts: readonly StatementSync[];
  readonly #update;
  readonly #remove;
  readonly #find;
  readonly #findKey;
  readonly #keepKey;
  readonly #dropKeys;

  /** @param db of the writes. */
  constructor(
    db: DatabaseSync,
    log: BookLog,
    reads: DurableReads,
    commits: GroupCommit,
    lists: OpenLists,
    wal: Wal,
    times: Times,
  ) {
    this.#reads = reads;
    this.#commits = commits;
    this.#log = log;
    this.#lists = lists;
    this.#wal = wal;
    this.#times = times;
    this.#findDurable = reads.read((durable) => durable.prepare(FIND));
    this.#findDurable.setReturnArrays(true);
    this.#lastId = db.prepare(LAST_ID);
    this.#inserts = ROWS.map((rows) =>
      db.prepare(`insert into books (${ID_AND_FIELDS}) values ${Array(rows).fill(ROW)}`),
    );
    this.#update = db.prepare(`
      update books set ${FIELD_NAMES.map((name) => `${name} = coalesce(?, ${name})`)}
      where id = ?
      returning ${ID_AND_FIELDS}`);
    this.#update.setReturnArrays(true);
    this.#remove = db.prepare(REMOVE);
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

  async countUpTo(most: number): Promise<number> {
    const text = 'select count(*) as books from (select 1 from books limit ?)';
    return this.#reads.read((db) => Number(db.prepare(text).get(most)?.books));
  }

  async find(ids: readonly number[]): Promise<readonly (Book | undefined | NotAnswered)[]> {
    return this.#reads.read(() => untilHeavy(ids, (id) => bookOf(this.#findDurable.get(id))));
  }

  insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]> {
    return this.#commits.write(() => this.#insert(books), deadline);
  }

  insertGroups(groups: readonly BookGroup[], deadline: number): Promise<readonly GroupOutcome[]> {
    const insertAll = async () => {
      const outcomes: GroupOutcome[] = [];
      for (const group of groups) outcomes.push(await this.#insertGroup(group));
      return outcomes;
    };
    return this.#commits.write(insertAll, deadline, true);
  }

  update(
    updates: readonly BookUpdate[],
    deadline: number,
  ): Promise<readonly (Book | undefined | NotAnswered)[]> {
    return this.#changeForATurn(updates, (update) => this.#change(update), deadline);
  }

  remove(ids: readonly number[], deadline: number): Promise<readonly (boolean | NotAnswered)[]> {
    return this.#changeForATurn(ids, (id) => this.#removeOne(id), deadline);
  }

  changeIf(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly (ConditionalOutcome | NotAnswered)[]> {
    return this.#changeForATurn(changes, (change) => this.#changeIf(change), deadline);
  }

  async list(): Promise<BookList> {
    const deadline = performance.now() + this.#times.lists.firstChunk;
    await this.#wal.shorter();
    return this.#lists.open(async () => {
      await this.#commits.durable(deadline); // until this function returns, nothing is committed
      return listOf(this.#reads.snapshot());
    });
  }

  /** Called within a transaction for each new key, also for that of an undo. */
  dropOldKeys(): void {
    this.#dropKeys.run();
  }

  /** Carries out changes in one transaction, for the time of a turn: SQLite reads each page of a large text to free it. */
  #changeForATurn<Item, Answer extends ConditionalOutcome | boolean>(
    items: readonly Item[],
    carryOut: (item: Item) => Answer,
    deadline: number,
  ): Promise<(Answer | NotAnswered)[]> {
    return this.#commits.write(() => {
      const turn = new Turn(this.#times.sqlite.turn);
      return untilHeavy(items, carryOut, () => turn.isOver);
    }, deadline);
  }

  /** Lets other work run if it takes long. @returns the ids, in the order of the books. */
  async #insert(books: readonly BookFields[]): Promise<number[]> {
    this.#log.noteNew();
    const first = Number(this.#lastId.get()?.value) + 1;
    const turn = new Turn(this.#times.sqlite.turn);
    for (let done = 0; done < books.length; ) {
      done += this.#insertSome(first + done, books, done);
      if (turn.isOver) await turn.next();
    }
    this.#log.noteStored(first, first + books.length - 1);
    return books.map((_, position) => first + position);
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
    if (once === undefined) return { ids: await this.#insert(books), isReplay: false };
    const { key, fingerprint } = once;
    const known = this.#findKey.get(key);
    if (known !== undefined) {
      if (known.fingerprint !== fingerprint) return 'conflict';
      return { ids: JSON.parse(String(known.ids)), isReplay: true };
    }
    const ids = await this.#insert(books);
    this.#keepKey.run(key, fingerprint, JSON.stringify(ids));
    this.dropOldKeys();
    return { ids, isReplay: false };
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
const bookOf = (row: unknown) => (row === undefined ? undefined : bookWith(row as unknown[]));
