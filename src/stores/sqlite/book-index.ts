// Owns: the search index in a SQLite file: its tables, and how it follows the books. Books above a mark
// are new; triggers note which of the others are new or change, whichever program it is. Twin of
// `postgres/finding/book-index.ts`.
// Does not: index within the transactions that write books, which would make them 26 times as expensive.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Book } from '../../books/book.ts';
import { INDEXED_UNITS } from '../../books/words.ts';
import type { Times } from '../../times.ts';
import { entryOf, INDEX_VERSION, MOST_AT_ONCE } from '../book-index.ts';
import { now, retryWhileBusy } from './structure.ts';

/** Books that are indexed between two looks at the clock. */
const STEP = 32;

// The definitions are compared with the schema, which keeps them as they are written, in lower case. So with any change, also
// of a blank, services make the index again when they start.
// FTS5 gets words with spaces in between, and cuts at the spaces only. It keeps no text, which `book_index` and `books`
// have already.
const TABLES = [
  `create table book_index (
    id integer primary key, title_key text not null, author_key text not null, year integer not null
  ) strict`,
  `create virtual table book_index_words using fts5(
    title, author, content='', contentless_delete=1, detail=column, tokenize="ascii tokenchars '#'"
  )`,
  'create table book_index_queue (id integer primary key) strict',
  `create table book_index_state (
    version integer not null, indexed_to integer not null, is_complete integer not null
  ) strict`,
];

/** Larger leaf pages than the default of FTS5 take less time to write. */
const LARGE_PAGES = "insert into book_index_words (book_index_words, rank) values ('pgsz', 4050)";

/** The sorted part. */
const INDEXES = [
  'create index book_index_titles on book_index (title_key)',
  'create index book_index_authors on book_index (author_key, title_key)',
  'create index book_index_years on book_index (year)',
];

// None of them names the virtual table, so programs whose SQLite has no FTS5 can write books.
const TRIGGERS = [
  `create trigger book_index_on_insert after insert on books
    when new.id <= (select indexed_to from book_index_state)
    begin insert or ignore into book_index_queue values (new.id); end`,
  `create trigger book_index_on_update after update on books
    begin
      insert or ignore into book_index_queue
        select old.id where old.id <= (select indexed_to from book_index_state);
      insert or ignore into book_index_queue
        select new.id where new.id <= (select indexed_to from book_index_state);
    end`,
  `create trigger book_index_on_delete after delete on books
    when old.id <= (select indexed_to from book_index_state)
    begin insert or ignore into book_index_queue values (old.id); end`,
];

const REMOVE = `
  drop trigger if exists book_index_on_insert;
  drop trigger if exists book_index_on_update;
  drop trigger if exists book_index_on_delete;
  drop table if exists book_index_state;
  drop table if exists book_index_queue;
  drop table if exists book_index_words;
  drop table if exists book_index`;

/** The beginning of a text that is indexed: no fewer characters than UTF-16 units. */
const BEGINNINGS = `substr(title, 1, ${INDEXED_UNITS}) as title, substr(author, 1, ${INDEXED_UNITS}) as author`;

const NEW_BOOKS = 'id > (select indexed_to from book_index_state)';

const STATE = 'select version, indexed_to, is_complete from book_index_state';
const DEFINITIONS = "select lower(sql) from sqlite_schema where name glob 'book_index*'";
const IS_PENDING = `
  select version = ${INDEX_VERSION} and (
    not is_complete or exists (select 1 from book_index_queue) or exists (select 1 from books where ${NEW_BOOKS})
  ) from book_index_state`;
const ARE_MANY_PENDING = `
  select (select count(*) from (select 1 from book_index_queue limit ${MOST_AT_ONCE} + 1))
    + (select count(*) from (select 1 from books where ${NEW_BOOKS} limit ${MOST_AT_ONCE} + 1)) > ${MOST_AT_ONCE}`;

// Ids that were never given are also counted, since counting the books would read all of them.
const COUNT_PENDING = `
  select (select count(*) from book_index_queue) + max(0,
    (select coalesce(max(id), 0) from books) - (select indexed_to from book_index_state))`;

/** The names of everything that belongs to the index, as a pattern of `glob`. */
export const INDEX_NAMES = 'book_index*';

type StateRow = [version: number, indexedTo: number, isComplete: 0 | 1];

/** About how many books are not indexed; undefined if there is no index. */
export function countPending(db: DatabaseSync): number | undefined {
  try {
    return Number(Object.values(db.prepare(COUNT_PENDING).get() ?? {})[0]);
  } catch {
    return undefined;
  }
}

export class SqliteIndex {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  /**
   * @param db a separate connection. After a deletion from a virtual table without content, `lastInsertRowid` is no
   * safe integer, and every `run` on the connection throws after it has done its work; so statements here use `get`.
   */
  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /**
   * Begins the index, unless it is there, of this version and with all that notes changes of books. It is complete at once if
   * there are no books.
   */
  prepare(times: Times['sqlite']): void {
    const prepare = () =>
      this.#inTransaction(() => {
        if (!this.#isSound()) this.#begin();
      });
    retryWhileBusy(prepare, now() + times.busy, times); // rule 27
  }

  /** Whether the first index is complete, and of this version. */
  get isUsable(): boolean {
    const [version, , isComplete] = this.#state();
    return version === INDEX_VERSION && isComplete === 1;
  }

  /** Whether there are books that this version has to index, or the first index is to be completed. */
  get isPending(): boolean {
    return this.#number(IS_PENDING) === 1;
  }

  /** Whether there are more of them than a search waits for. */
  get areManyPending(): boolean {
    return this.#number(ARE_MANY_PENDING) === 1;
  }

  /** About how many books are not indexed. */
  countPending(): number {
    return this.#number(COUNT_PENDING);
  }

  /** The id up to which the books that are new were indexed. */
  get indexedTo(): number {
    return this.#state()[1];
  }

  /**
   * Indexes books in one transaction, for about as many milliseconds. At the end of the first index, each part of what is
   * sorted takes as long as it needs.
   * @throws the error of SQLite; a busy file is one. Nothing has been indexed then.
   */
  slice(time: number): void {
    const end = now() + time;
    this.#inTransaction(() => {
      const [version, , isComplete] = this.#state();
      if (version !== INDEX_VERSION) return;
      let books = this.#step();
      while (books > 0 && now() < end) books = this.#step();
      if (isComplete === 1 || books > 0) return;
      for (const next of [...this.#missing(INDEXES), 'update book_index_state set is_complete = 1']) {
        this.#db.exec(next);
        if (now() >= end) return;
      }
    });
  }

  /** Whether everything is there as it is defined. If it is not, books may have been written that are not noted. */
  #isSound(): boolean {
    if (this.#missing([...TABLES, ...TRIGGERS]).length > 0) return false;
    const [version, , isComplete] = this.#get(STATE) ?? [];
    return version === INDEX_VERSION && (isComplete === 0 || this.#missing(INDEXES).length === 0);
  }

  #missing(definitions: readonly string[]): string[] {
    const found = new Set(this.#all<[string]>(DEFINITIONS).flat());
    return definitions.filter((definition) => !found.has(definition));
  }

  #begin(): void {
    const isEmpty = this.#get('select 1 from books limit 1') === undefined;
    const parts = [...TABLES, LARGE_PAGES, ...TRIGGERS, ...(isEmpty ? INDEXES : [])];
    this.#db.exec([REMOVE, ...parts].join(';'));
    this.#get('insert into book_index_state values (?, 0, ?)', INDEX_VERSION, Number(isEmpty));
  }

  #inTransaction(work: () => void): void {
    this.#db.exec('begin immediate');
    try {
      work();
      this.#db.exec('commit');
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('rollback'); // SQLite ends it itself after some errors
      throw error;
    }
  }

  /** @returns how many books it has indexed. */
  #step(): number {
    const queued = this.#all<[number]>('select id from book_index_queue limit ?', STEP);
    for (const [id] of queued) {
      this.#get('delete from book_index_words where rowid = ?', id);
      this.#get('delete from book_index where id = ?', id);
      for (const book of this.#books('where id = ?', id)) this.#add(book);
      this.#get('delete from book_index_queue where id = ?', id);
    }
    if (queued.length > 0) return queued.length;
    const added = this.#books(`where ${NEW_BOOKS} order by id limit ?`, STEP);
    const last = added.at(-1);
    if (last === undefined) return 0;
    for (const book of added) this.#add(book);
    this.#get('update book_index_state set indexed_to = ?', last.id);
    return added.length;
  }

  #add(book: Book): void {
    const { id, titleKey, authorKey, year, titleWords, authorWords } = entryOf(book);
    this.#get('insert into book_index values (?, ?, ?, ?)', id, titleKey, authorKey, year);
    this.#get(
      'insert into book_index_words (rowid, title, author) values (?, ?, ?)',
      id,
      titleWords,
      authorWords,
    );
  }

  /** @param which SQL after the table. */
  #books(which: string, ...values: number[]): Book[] {
    const rows = this.#all<[number, string, string, number]>(
      `select id, ${BEGINNINGS}, year from books ${which}`,
      ...values,
    );
    return rows.map(([id, title, author, year]) => ({ id, title, author, year }));
  }

  #state(): StateRow {
    return this.#get(STATE) as StateRow;
  }

  #number(sql: string): number {
    const [value] = this.#get(sql) as [number];
    return value;
  }

  #get(sql: string, ...values: (string | number)[]): unknown[] | undefined {
    return this.#prepare(sql).get(...values) as unknown[] | undefined;
  }

  #all<Row>(sql: string, ...values: (string | number)[]): Row[] {
    return this.#prepare(sql).all(...values) as Row[];
  }

  /** Prepared once: the garbage collector does not count a statement's memory, which would pile up. */
  #prepare(sql: string): StatementSync {
    const prepared = this.#statements.get(sql);
    if (prepared !== undefined) return prepared;
    const statement = this.#db.prepare(sql);
    statement.setReturnArrays(true);
    this.#statements.set(sql, statement);
    return statement;
  }
}
