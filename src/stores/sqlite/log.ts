// Owns: the log of changes in a SQLite file. Triggers write a row for each change and removal, with the book as it was before,
// whichever program it is. New books above a mark are noted together by those who write or read the log. Numbers are in the
// order of the commits. Twin of `postgres/log.ts`.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { FIELD_NAMES, LAST_SEQUENTIAL_ID } from '../../books/book.ts';
import { FIELDS } from '../columns.ts';

/** Milliseconds since 1970, for programs with any version of SQLite. */
const NOW = "cast(round((julianday('now') - 2440587.5) * 86400000) as integer)";

// A row is about the books from `book` to `last`, and has the fields of the one book before its change; they are null where there
// was none: the books are new. A row about book 0 is a beginning: changes before it may be missing.
const TABLES = [
  `create table book_log (
    number integer primary key, at integer not null, book integer not null, last integer not null,
    title text, author text, year integer
  ) strict`,
  'create table book_log_state (noted_to integer not null) strict',
];

/** The mark. */
export const NOTED_TO = '(select noted_to from book_log_state)';
/** Of the ids that new books follow. */
export const HIGHEST = `(select coalesce(max(id), 0) from books where id <= ${LAST_SEQUENTIAL_ID})`;
const isNew = (id: string) => `${id} > ${NOTED_TO} and ${id} <= ${LAST_SEQUENTIAL_ID}`;

/** Whether new books are to be noted. */
export const HAS_NEW = `${HIGHEST} > ${NOTED_TO}`;

const NOTE_EACH = `insert into book_log (at, book, last) select ${NOW}, id, id from books where ${isNew('id')}`;
const NOTE_ALL = `insert into book_log (at, book, last) select ${NOW}, ${NOTED_TO} + 1, ${HIGHEST} where ${HAS_NEW}`;
const MOVE_MARK = `update book_log_state set noted_to = ${HIGHEST} where ${HAS_NEW}`;

const CREATED = `insert into book_log (at, book, last) values (${NOW}, new.id, new.id)`;
const BEFORE = `insert into book_log (at, book, last, ${FIELDS})
    values (${NOW}, old.id, old.id, ${FIELD_NAMES.map((name) => `old.${name}`)})`;
const DIFFERS = ['id', ...FIELD_NAMES].map((name) => `old.${name} <> new.${name}`).join(' or ');

/** By what they are called for: when they act, and how. A book is noted as new before it changes. */
const TRIGGERS = Object.entries({
  first_update: `before update on books when ${isNew('old.id')} begin ${NOTE_ALL}; ${MOVE_MARK}; end`,
  first_delete: `before delete on books when ${isNew('old.id')} begin ${NOTE_ALL}; ${MOVE_MARK}; end`,
  insert: `after insert on books when not (${isNew('new.id')}) begin ${CREATED}; end`,
  update: `after update on books when ${DIFFERS} begin ${BEFORE}; end`,
  new_id: `after update of id on books when old.id <> new.id and not (${isNew('new.id')}) begin ${CREATED}; end`,
  delete: `after delete on books begin ${BEFORE}; end`,
}).map(([name, action]) => `create trigger book_log_on_${name} ${action}`);

/** With the triggers and the queue of builds before version 1.1, which noted changes for the index only. */
const DEFINITIONS = `
  select type, name, lower(sql) as definition from sqlite_schema
  where name glob 'book_log*' or name in ('book_index_queue', 'book_index_on_insert', 'book_index_on_update', 'book_index_on_delete')`;

/** Within a transaction, begins the log, unless it is there with all that writes it. */
export function prepareLog(db: DatabaseSync): void {
  const found = db.prepare(DEFINITIONS).all();
  const areThere = (definitions: readonly string[]) =>
    definitions.every((definition) => found.some((one) => one.definition === definition.toLowerCase()));
  const hasTables = areThere(TABLES);
  const isOld = found.some(({ name }) => String(name).startsWith('book_index'));
  if (hasTables && areThere(TRIGGERS) && !isOld) return;
  for (const { type, name } of found) if (type === 'trigger') db.exec(`drop trigger ${name}`);
  if (!hasTables)
    db.exec(['drop table if exists book_log; drop table if exists book_log_state', ...TABLES].join(';'));
  // An index that has followed before would not know what it lacks.
  db.exec('drop table if exists book_index_queue; drop table if exists book_index_state');
  db.exec(TRIGGERS.join(';'));
  db.exec(`
    insert into book_log (at, book, last) values (${NOW}, 0, 0);
    delete from book_log_state;
    insert into book_log_state values (${HIGHEST})`);
}

/** Rows that are removed together: a millisecond of work. The newest one stays, or numbers would be given again. */
const PRUNED = 500;
const IS_OLD = 'at < ? and number < (select max(number) from book_log)';
const PRUNE = `
  delete from book_log where number in (select number from book_log order by number limit ${PRUNED}) and ${IS_OLD}`;

/**
 * Whether the oldest row is to be removed.
 * @param kept milliseconds.
 */
export function isOlderThan(db: DatabaseSync, kept: number): boolean {
  const oldest = `select 1 from book_log where number = (select min(number) from book_log) and ${IS_OLD}`;
  return db.prepare(oldest).get(Date.now() - kept) !== undefined;
}

/** Each method is called in a transaction that writes. Those that note use `get`: see `SqliteIndex`. */
export class BookLog {
  readonly #each: StatementSync;
  readonly #all: StatementSync;
  readonly #moveMark: StatementSync;
  readonly #prune: StatementSync;

  constructor(db: DatabaseSync) {
    this.#each = db.prepare(NOTE_EACH);
    this.#all = db.prepare(`${NOTE_ALL} returning 1`);
    this.#moveMark = db.prepare(MOVE_MARK);
    this.#prune = db.prepare(PRUNE);
  }

  /** Notes new books as one change each. */
  noteEach(): void {
    this.#each.get();
    this.#moveMark.get();
  }

  /** Notes new books as one change. Before own books are stored, it notes those of other programs. */
  noteAll(): void {
    if (this.#all.get() !== undefined) this.#moveMark.get();
  }

  /**
   * Removes some of the oldest rows, if they are older than they are kept.
   * @param kept milliseconds.
   * @returns whether there may be more.
   */
  prune(kept: number): boolean {
    return Number(this.#prune.run(Date.now() - kept).changes) === PRUNED;
  }
}
