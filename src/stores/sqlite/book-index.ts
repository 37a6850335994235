// Owns: the search index in a SQLite file: its tables, and how it follows the books. Books above a mark
// are new; triggers note which of the others are new or change, whichever program it is. Twin of
// `postgres/book-index.ts`.
// Does not: index within the transactions that write books, which would make them 26 times as expensive.

import type { DatabaseSync } from 'node:sqlite';
import type { Book } from '../../books/book.ts';
import { INDEXED_UNITS } from '../../books/words.ts';
import type { Times } from '../../times.ts';
import { entryOf, INDEX_VERSION, MOST_AT_ONCE } from '../book-index.ts';
import { SQLITE_BUSY } from './faults.ts';
import { inTransaction, now, preparing, retryWhileBusy } from './structure.ts';

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

const DEFINITIONS = "select lower(sql) as definition from sqlite_schema where name glob 'book_index*'";

const MARK = '(select indexed_to from book_index_state)';

const STATE = `
  select coalesce(version, 0) = ${INDEX_VERSION} as isOurs, is_complete as isComplete, indexed_to as indexedTo,
    exists (select 1 from book_index_queue) or exists (select 1 from books where id > indexed_to) as isBehind
  from (select 1) left join book_index_state`;

const ARE_MANY_PENDING = `
  select count(*) > ${MOST_AT_ONCE} as areMany from (
    select id from book_index_queue union all select id from books where id > ${MARK} limit ${MOST_AT_ONCE} + 1
  )`;

/** Ids that were never given are also counted, since counting the books would read all of them. */
const COUNT_PENDING = `
  select (select count(*) from book_index_queue) + max(0, (select coalesce(max(id), 0) from books) - ${MARK}) as books`;

/** Texts are cut to what is indexed: no fewer characters than UTF-16 units. Those of a removed book are null. */
const BOOK = `
  select id, substr(title, 1, ${INDEXED_UNITS}) as title, substr(author, 1, ${INDEXED_UNITS}) as author, year`;
const CHANGED = `${BOOK} from (select id from book_index_queue limit ${STEP}) left join books using (id)`;
const NEW = `${BOOK} from books where id > ${MARK} order by id limit ${STEP}`;

export interface IndexState {
  /** Whether this version has made it. Another one's is neither read nor changed. */
  readonly isOurs: 0 | 1;
  /** Whether the first index is complete. */
  readonly isComplete: 0 | 1;
  /** Whether there are books to index. */
  readonly isBehind: 0 | 1;
  /** The id up to which new books were indexed. */
  readonly indexedTo: number;
}

/** About how many books are not indexed; undefined if there is no index. */
export function countPending(db: DatabaseSync): number | undefined {
  try {
    return Number(db.prepare(COUNT_PENDING).get()?.books);
  } catch {
    return undefined;
  }
}

export class SqliteIndex {
  readonly #db: DatabaseSync;
  readonly #mustWait: () => boolean;
  readonly #prepare;

  /**
   * @param db a separate connection. After a deletion from a virtual table without content, `lastInsertRowid` is no
   * safe integer, and every `run` on the connection throws after it has done its work; so statements here use `get`.
   * @param mustWait whether no transaction may commit now.
   */
  constructor(db: DatabaseSync, mustWait: () => boolean) {
    this.#db = db;
    this.#mustWait = mustWait;
    this.#prepare = preparing(db);
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

  get state(): IndexState {
    return this.#prepare(STATE).get() as unknown as IndexState;
  }

  /** Whether there are more books to index than a search waits for. */
  get areManyPending(): boolean {
    return this.#prepare(ARE_MANY_PENDING).get()?.areMany === 1;
  }

  /**
   * Indexes books in one transaction, for about as many milliseconds. At the end of the first index, each part of what is
   * sorted takes as long as it needs.
   * @returns whether the index has all that was written before, or is another version's.
   * @throws the error of SQLite; a busy file is one. Nothing has been indexed then.
   */
  step(time: number): boolean {
    const end = now() + time;
    return this.#inTransaction(() => {
      const { isOurs, isComplete } = this.state;
      if (!isOurs) return true;
      while (this.#indexSome()) if (now() >= end) return false;
      if (isComplete) return true;
      for (const next of [...this.#missing(INDEXES), 'update book_index_state set is_complete = 1']) {
        this.#db.exec(next);
        if (now() >= end) return false;
      }
      return true;
    });
  }

  /** Whether everything is there as it is defined. If it is not, books may have been written that are not noted. */
  #isSound(): boolean {
    if (this.#missing([...TABLES, ...TRIGGERS]).length > 0) return false;
    const { isOurs, isComplete } = this.state;
    return isOurs === 1 && (isComplete === 0 || this.#missing(INDEXES).length === 0);
  }

  #missing(definitions: readonly string[]): string[] {
    const rows = this.#db.prepare(DEFINITIONS).all();
    const found = new Set(rows.map(({ definition }) => definition));
    return definitions.filter((definition) => !found.has(definition));
  }

  #begin(): void {
    const isEmpty = this.#db.prepare('select 1 from books limit 1').get() === undefined;
    const parts = [...TABLES, LARGE_PAGES, ...TRIGGERS, ...(isEmpty ? INDEXES : [])];
    this.#db.exec([REMOVE, ...parts].join(';'));
    this.#db.exec(`insert into book_index_state values (${INDEX_VERSION}, 0, ${isEmpty})`);
  }

  #inTransaction<Result>(work: () => Result): Result {
    return inTransaction(this.#db, () => {
      if (this.#mustWait())
        throw Object.assign(new Error('the log is being synced'), { errcode: SQLITE_BUSY });
      return work();
    });
  }

  /** @returns whether there were books to index. */
  #indexSome(): boolean {
    const changed = this.#prepare(CHANGED).all() as unknown as Book[];
    for (const book of changed) {
      this.#prepare('delete from book_index_words where rowid = ?').get(book.id);
      this.#prepare('delete from book_index where id = ?').get(book.id);
      if (book.title !== null) this.#add(book);
      this.#prepare('delete from book_index_queue where id = ?').get(book.id);
    }
    if (changed.length > 0) return true;
    const added = this.#prepare(NEW).all() as unknown as Book[];
    const last = added.at(-1);
    if (last === undefined) return false;
    for (const book of added) this.#add(book);
    this.#prepare('update book_index_state set indexed_to = ?').get(last.id);
    return true;
  }

  #add(book: Book): void {
    const { id, titleKey, authorKey, year, titleWords, authorWords } = entryOf(book);
    this.#prepare('insert into book_index values (?, ?, ?, ?)').get(id, titleKey, authorKey, year);
    this.#prepare('insert into book_index_words (rowid, title, author) values (?, ?, ?)').get(
      id,
      titleWords,
      authorWords,
    );
  }
}
