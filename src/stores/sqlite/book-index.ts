// Owns: the search index in a SQLite file: its tables, and how it follows the log of changes. The first index is made from a range
// with all books. Twin of `postgres/book-index.ts`.
// Does not: index within the transactions that write books, which would make them 26 times as expensive.

import type { DatabaseSync } from 'node:sqlite';
import { INDEXED_UNITS } from '../../books/words.ts';
import type { Times } from '../../times.ts';
import { AUTHOR_FILED, entryOf, INDEX_VERSION } from '../book-index.ts';
import { asBook } from '../states.ts';
import { ARTICLES } from './dialect.ts';
import { SQLITE_BUSY } from './faults.ts';
import { BEGINNING, BookLog, type LogPosition, LogReader, type Noted } from './log.ts';
import { HAS_NEW, HIGHEST, LogGuard, NOTED_TO } from './log-tables.ts';
import { inTransaction, now, preparing, retryWhileBusy } from './structure.ts';

/** The most books that are indexed between two looks at the clock. */
const STEP = 32;
/** The most characters that are indexed between two looks, without those of the last book. */
const STEP_WEIGHT = INDEXED_UNITS;

// The definitions are compared with the schema, which keeps them as they are written, in lower case. So with any change, also
// of a blank, services make the index again when they start.
// FTS5 gets words with spaces in between, and cuts at the spaces only. It keeps no text, which `book_index` and `books`
// have already.
const TABLES = [
  `create table book_index (
    id integer primary key, title_key text not null, author_key text not null, year integer not null,
    author_filed text
  ) strict`,
  `create virtual table book_index_words using fts5(
    title, author, content='', contentless_delete=1, detail=column, tokenize="ascii tokenchars '#'"
  )`,
  // The index has the changes of the log up to a position, without the books of a range.
  `create table book_index_state (
    version integer not null, position integer not null, next integer not null, last integer not null,
    is_complete integer not null
  ) strict`,
];

/** Larger leaf pages than the default of FTS5 take less time to write. */
const LARGE_PAGES = "insert into book_index_words (book_index_words, rank) values ('pgsz', 4050)";

/** The sorted part. */
const INDEXES = [
  'create index book_index_titles on book_index (title_key)',
  'create index book_index_authors on book_index (author_key, title_key)',
  'create index book_index_years on book_index (year)',
  `create index book_index_filed on book_index (${AUTHOR_FILED})`,
  `create index book_index_bare on book_index (${ARTICLES.bareTitle}) where ${ARTICLES.hasArticle}`,
];

const REMOVE = `
  drop table if exists book_index_state;
  drop table if exists book_index_words;
  drop table if exists book_index`;

const DEFINITIONS = "select lower(sql) as definition from sqlite_schema where name glob 'book_index*'";

/** Whether the log has all rows after the position. */
const FOLLOWS = `position between ${BEGINNING} and (select max(number) from book_log)`;

const STATE = `
  select coalesce(version, 0) = ${INDEX_VERSION} as isOurs, ${FOLLOWS} as follows, is_complete as isComplete, position as number, next, last,
    (select max(number) from book_log) || ' ' || ${HIGHEST} as written,
    next <= last or position < (select max(number) from book_log) or ${HAS_NEW} as isBehind
  from (select 1) left join book_index_state`;

/** The number of the last row that the index has. */
export const INDEXED_TO = '(select position from book_index_state)';

/** Whether another version has made the index. This version does not change such an index while it runs. */
const IS_OTHERS = `select 1 from book_index_state where version not in (0, ${INDEX_VERSION})`;

/** Whether the index has as many books as there are, and the same highest id. */
const IS_WHOLE = `
  select (select count(*) from books) = (select count(*) from book_index)
    and (select max(id) from books) is (select max(id) from book_index) as isWhole`;

/** About how many books are not indexed. Ids that were never given are also counted, since counting the books would read all of them. */
export const UNINDEXED = `
  select coalesce((select sum(last - book + 1) from book_log where number > position and book > 0), 0)
    + max(0, ${HIGHEST} - ${NOTED_TO})
    + max(0, min(last, (select coalesce(max(id), 0) from books)) - next + 1) as count
  from book_index_state`;

/** Texts are cut to what is indexed: no fewer characters than UTF-16 units. */
const COLUMNS = `substr(title, 1, ${INDEXED_UNITS}) as title, substr(author, 1, ${INDEXED_UNITS}) as author, year`;
const MOVE = 'update book_index_state set position = ?, next = ?, last = ?';

/** The state of the index, with its position in the log. */
export interface IndexState extends LogPosition {
  /** Whether this version has made the index. An index of another version is neither read nor changed. */
  readonly isOurs: 0 | 1;
  /** Whether the first index is complete. */
  readonly isComplete: 0 | 1;
  /** Whether there are books to index. */
  readonly isBehind: 0 | 1;
  /** Whether the log has all changes that the index lacks; null without an index. */
  readonly follows: 0 | 1 | null;
  /** A text that differs after every write of a book. */
  readonly written: string;
}

export class SqliteIndex {
  readonly #db: DatabaseSync;
  readonly #mustWait: () => boolean;
  readonly #prepare;
  readonly #guard;
  readonly #log;
  readonly #reader;

  /**
   * @param db a separate connection. After a deletion from a virtual table without content, `lastInsertRowid` is no
   * safe integer, and every `run` on the connection throws after it has done its work; so statements here use `get`.
   * @param mustWait whether no transaction may commit now.
   */
  constructor(db: DatabaseSync, mustWait: () => boolean) {
    this.#db = db;
    this.#mustWait = mustWait;
    this.#prepare = preparing(db);
    this.#guard = new LogGuard(db);
    this.#log = new BookLog(db);
    this.#reader = new LogReader(db, COLUMNS);
  }

  /**
   * Begins the index, unless it is there, of this version, and follows the log. Without books, it is complete at once.
   */
  prepare(times: Times['sqlite']): void {
    const prepare = () =>
      this.#inTransaction(() => {
        if (!this.#isSound()) this.#begin();
      });
    retryWhileBusy(prepare, now() + times.busy, times); // rule 27
  }

  /** Begins the log and the index again if another program has emptied them, or taken a part of them away. */
  keep(times: Times['sqlite']): void {
    if (this.#isFollowing()) return;
    const keep = () =>
      this.#inTransaction(() => {
        this.#log.keep();
        if (!this.#isOthers() && !this.#isSound()) this.#begin();
        this.#guard.trust();
      });
    retryWhileBusy(keep, now() + times.step, times);
  }

  /**
   * Begins the log and the index again if the index has other books than there are, since no trigger has noted some changes.
   * @returns whether the index had all rows, so that the books could be compared.
   */
  compare(): boolean {
    const { isOurs, isComplete, isBehind } = this.state;
    if (!isOurs || !isComplete || isBehind) return false;
    if (this.#prepare(IS_WHOLE).get()?.isWhole === 1) return true;
    this.#inTransaction(() => {
      if (this.state.isBehind || this.#prepare(IS_WHOLE).get()?.isWhole === 1) return;
      this.#log.keep(true);
      this.#begin();
    });
    return true;
  }

  get state(): IndexState {
    return this.#prepare(STATE).get() as unknown as IndexState;
  }

  /** About how many books are not indexed. */
  get unindexed(): number {
    return Number(this.#prepare(UNINDEXED).get()?.count);
  }

  /**
   * Indexes books in one transaction, for about `time` milliseconds. At the end of the first index, each index of the sorted part
   * takes as long as it needs.
   * @returns whether the index has all earlier writes, or is of another version.
   * @throws the error of SQLite; a busy file is one. Nothing has been indexed then.
   */
  step(time: number): boolean {
    const end = now() + time;
    return this.#inTransaction(() => {
      const { isOurs, isComplete } = this.state;
      if (!isOurs) return true;
      this.#log.noteNew();
      while (this.#indexSome()) if (now() >= end) return false;
      if (isComplete) return true;
      for (const next of [...this.#missing(INDEXES), 'update book_index_state set is_complete = 1']) {
        this.#db.exec(next);
        if (now() >= end) return false;
      }
      return true;
    });
  }

  #isFollowing(): boolean {
    try {
      return !this.#guard.isInDoubt && (this.state.follows === 1 || this.#isOthers());
    } catch {
      return false; // its table is missing
    }
  }

  #isOthers(): boolean {
    try {
      return this.#db.prepare(IS_OTHERS).get() !== undefined;
    } catch {
      return false; // its table is missing
    }
  }

  /** Whether the tables and indexes are there as they are defined, and the index follows the log. */
  #isSound(): boolean {
    if (this.#missing(TABLES).length > 0) return false;
    const { isOurs, isComplete, follows } = this.state;
    return isOurs === 1 && follows === 1 && (isComplete === 0 || this.#missing(INDEXES).length === 0);
  }

  #missing(definitions: readonly string[]): string[] {
    const rows = this.#db.prepare(DEFINITIONS).all();
    const found = new Set(rows.map(({ definition }) => definition));
    return definitions.filter((definition) => !found.has(definition));
  }

  #begin(): void {
    const isEmpty = this.#db.prepare('select 1 from books limit 1').get() === undefined;
    this.#db.exec([REMOVE, ...TABLES, LARGE_PAGES, ...(isEmpty ? INDEXES : [])].join(';'));
    this.#db.exec(`
      insert into book_index_state
      select ${INDEX_VERSION}, max(number), 1, (select coalesce(max(id), 0) from books), ${isEmpty} from book_log`);
  }

  #inTransaction<Result>(work: () => Result): Result {
    return inTransaction(this.#db, () => {
      if (this.#mustWait())
        throw Object.assign(new Error('the log is being synced'), { errcode: SQLITE_BUSY });
      return work();
    });
  }

  /** @returns whether there was anything to index. */
  #indexSome(): boolean {
    const before = this.state;
    const { books, position } = this.#reader.next(before, STEP, STEP_WEIGHT);
    if (position.number === before.number && before.next > before.last) return false;
    for (const book of books) this.#replace(book);
    this.#prepare(MOVE).get(position.number, position.next, position.last);
    return true;
  }

  #replace({ id, ...fields }: Noted): void {
    const isThere = this.#prepare('delete from book_index where id = ? returning id').get(id) !== undefined;
    if (isThere) this.#prepare('delete from book_index_words where rowid = ?').get(id);
    const book = asBook(id, fields);
    if (book === undefined) return;
    const { titleKey, authorKey, year, authorFiled, titleWords, authorWords } = entryOf(book);
    const entry = [id, titleKey, authorKey, year, authorFiled];
    this.#prepare('insert into book_index values (?, ?, ?, ?, ?)').get(...entry);
    this.#prepare('insert into book_index_words (rowid, title, author) values (?, ?, ?)').get(
      id,
      titleWords,
      authorWords,
    );
  }
}
