// Owns: the log of changes in a SQLite file. Triggers write a row for each change and removal, with the book as it was before,
// whichever program it is. New books above a mark are noted together by those who write or read the log. Numbers are in the
// order of the commits. A reader gets the books of the rows after its position. Twin of `postgres/log.ts`.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { FIELD_NAMES, LAST_SEQUENTIAL_ID } from '../../books/book.ts';
import { HEAVY, weightOf } from '../../books/store.ts';
import { FIELDS } from '../columns.ts';
import { type Fields, isWithin, type LogEvent, RUN } from '../states.ts';

/** Milliseconds since 1970, for programs with any version of SQLite. */
const NOW = "cast(round((julianday('now') - 2440587.5) * 86400000) as integer)";

// A row is about the books from `book` to `last`, and has the fields of the one book before its change; they are null where there
// was none: the books are new. A row about book 0 is an event: an import or an undo, which other rows are a part of, or a
// beginning: changes before it are missing, unless its year is 0: there were no books. The title of an import is its name.
const TABLES = [
  `create table book_log (
    number integer primary key, at integer not null, book integer not null, last integer not null,
    title text, author text, year integer, event text, part_of integer
  ) strict`,
  // With the event that the writes of a transaction are a part of, and the number of the row of the latest book that was replaced.
  'create table book_log_state (noted_to integer not null, event text, part_of integer, replaced integer) strict',
  'create index book_log_books on book_log (book)',
  'create index book_log_new_books on book_log (book) where last > book',
  'create index book_log_parts on book_log (part_of) where part_of is not null',
];

/** The mark. */
export const NOTED_TO = '(select noted_to from book_log_state)';
/** Of the ids that new books follow. */
export const HIGHEST = `(select coalesce(max(id), 0) from books where id <= ${LAST_SEQUENTIAL_ID})`;
const isNew = (id: string) => `${id} > ${NOTED_TO} and ${id} <= ${LAST_SEQUENTIAL_ID}`;

/**
 * The id after which new books get theirs: the highest one ever given (rule 12). Another program may have set one by an update, which
 * does not raise the sequence of SQLite; or have inserted one above those that new books follow.
 */
const lastIdWith = (mark: string) => `select max(
    coalesce((select max(seq) from sqlite_sequence where name = 'books' and seq <= ${LAST_SEQUENTIAL_ID}), 0), ${mark}, ${HIGHEST}
  ) as value`;
export const LAST_ID = lastIdWith(NOTED_TO);
export const LAST_ID_WITHOUT_LOG = lastIdWith('0');

/** Whether new books are to be noted. */
export const HAS_NEW = `${HIGHEST} > ${NOTED_TO}`;

const IS_DENSE = `(select count(*) from books where ${isNew('id')}) = ${HIGHEST} - ${NOTED_TO}`;
/** Of new ids without gaps, which takes a quarter of the time. */
const DENSE_RUNS = `
  with recursive run (book, last) as (
    select ${NOTED_TO} + 1, ${NOTED_TO} where ${HAS_NEW} and ${IS_DENSE}
    union all select last + 1, min(last + ${RUN} - (last + 1) % ${RUN}, ${HIGHEST}) from run where last < ${HIGHEST}
  )
  select last - ${NOTED_TO} as place, book, last from run where last >= book`;
const OTHER_RUNS = `
  select max(place) as place, min(id) as book, max(id) as last
  from (select id, row_number() over (order by id) as place from books where ${isNew('id')} and not ${IS_DENSE})
  group by id - place, id / ${RUN}`;
const NOTE_NEW = `
  insert into book_log (number, at, book, last, event, part_of)
  select newest + place, ${NOW}, book, last, event, part_of
  from book_log_state cross join (select coalesce(max(number), 0) as newest from book_log)
    cross join (select * from (${DENSE_RUNS}) union all ${OTHER_RUNS}) order by place`;
const MOVE_MARK = `update book_log_state set noted_to = ${HIGHEST} where ${HAS_NEW}`;

const CREATED = `
  insert into book_log (at, book, last, event, part_of)
  select ${NOW}, new.id, new.id, event, part_of from book_log_state where not exists (
    select 1 from book_log where number = replaced and book = new.id and number = (select max(number) from book_log)
  )`;
const BEFORE = `
  insert into book_log (at, book, last, ${FIELDS}, event, part_of)
  select ${NOW}, old.id, old.id, ${FIELD_NAMES.map((name) => `old.${name}`)}, event, part_of from book_log_state`;
/** SQLite calls no trigger for a book that `insert or replace` removes. If none is removed in the end, the row alters nothing. */
const IS_THERE = 'new.id > 0 and exists (select 1 from books where id = new.id)';
const REPLACED = `
  insert into book_log (at, book, last, ${FIELDS}, event, part_of)
  select ${NOW}, id, id, ${FIELDS}, event, part_of from book_log_state cross join books where id = new.id;
  update book_log_state set replaced = (select max(number) from book_log)`;
const DIFFERS = ['id', ...FIELD_NAMES].map((name) => `old.${name} <> new.${name}`).join(' or ');

/** By what they are called for: when they act, and how. A book is noted as new before it changes. */
const TRIGGERS = Object.entries({
  first_update: `before update on books when ${isNew('old.id')} begin ${NOTE_NEW}; ${MOVE_MARK}; end`,
  first_delete: `before delete on books when ${isNew('old.id')} begin ${NOTE_NEW}; ${MOVE_MARK}; end`,
  replace: `before insert on books when ${IS_THERE} begin ${NOTE_NEW}; ${MOVE_MARK}; ${REPLACED}; end`,
  replace_by_id: `before update of id on books when old.id <> new.id and ${IS_THERE} begin ${NOTE_NEW}; ${MOVE_MARK}; ${REPLACED}; end`,
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
    insert into book_log (at, book, last, event, year) values (${NOW}, 0, 0, 'beginning', ${HIGHEST});
    delete from book_log_state;
    insert into book_log_state (noted_to) values (${HIGHEST})`);
}

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
export const BEGINNING = `(
  select number - last + book - (book > 0 or event is not null) from book_log order by number limit 1
)`;

/** Rows that are removed together: a millisecond of work. */
const PRUNED = 500;

/** Of the rows that are no longer kept, the newest one: it stays, since readers who wait have read it, but without its content. */
const STAYS = `(
  select max(number) from (select number, at from book_log order by number limit ${PRUNED + 1}) where at < $end
)`;

/** Which rows are removed, and which one is emptied. @param readTo SQL for the number of the last row that may be. */
const isOld = (readTo: string) => `number <= ${readTo} and number < ${STAYS}`;
const isFull = (readTo: string) => `number <= ${readTo} and number = ${STAYS} and book > 0`;

/**
 * Whether there are rows that are to be removed.
 * @param kept milliseconds for which they are kept.
 * @param readTo SQL for the number of the last row that may be removed.
 */
export function mustPrune(db: DatabaseSync, kept: number, readTo: string): boolean {
  const statement = db.prepare(`select 1 from book_log where ${isOld(readTo)} or ${isFull(readTo)} limit 1`);
  return statement.get({ end: Date.now() - kept }) !== undefined;
}

/**
 * Removes some of the oldest rows, within a transaction.
 * @returns whether there may be more to remove.
 */
export function prune(db: DatabaseSync, kept: number, readTo: string): boolean {
  const end = Date.now() - kept;
  const empty = FIELD_NAMES.map((name) => `${name} = null`);
  const emptied = db.prepare(
    `update book_log set book = 0, last = 0, event = null, part_of = null, ${empty} where ${isFull(readTo)}`,
  );
  emptied.run({ end });
  return Number(db.prepare(`delete from book_log where ${isOld(readTo)}`).run({ end }).changes) === PRUNED;
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
   * Reads on, until it has so many books, or they are heavy, or it is late. The rest of a run is a range.
   * @returns each book once, and the position after them; that of before if there are no more rows.
   */
  next(before: LogPosition, most: number, isLate = () => false): { books: Noted[]; position: LogPosition } {
    const books = new Map<number, Noted>();
    let weight = 0;
    const add = (book: Noted) => {
      books.set(book.id, book);
      weight += weightOf({ title: book.title ?? '', author: book.author ?? '' });
      return books.size >= most || weight >= HEAVY || isLate();
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
  readonly #hasNew: StatementSync;
  readonly #new: StatementSync;
  readonly #moveMark: StatementSync;
  readonly #setPart: StatementSync;
  readonly #begin: StatementSync;
  readonly #takeBack: StatementSync;

  constructor(db: DatabaseSync) {
    this.#hasNew = db.prepare(`select 1 where ${HAS_NEW}`);
    this.#new = db.prepare(NOTE_NEW);
    this.#moveMark = db.prepare(MOVE_MARK);
    this.#takeBack = db.prepare('delete from book_log where number = ?');
    this.#setPart = db.prepare('update book_log_state set event = ?, part_of = ?');
    this.#begin = db.prepare(
      `insert into book_log (at, book, last, event, title) values (${NOW}, 0, 0, ?, ?) returning number`,
    );
  }

  /** Notes new books. Before own books are stored, it notes those of other programs. */
  noteNew(): void {
    if (this.#hasNew.get() === undefined) return;
    this.#new.get();
    this.#moveMark.get();
  }

  /** @returns the number of a new event. */
  begin(event: LogEvent, name: string | null): number {
    return Number(this.#begin.get(event, name)?.number);
  }

  /** Removes an event that has no part. */
  takeBack(event: number): void {
    this.#takeBack.get(event);
  }

  /** Later writes are a part of an event; of none, if undefined: at the end of the transaction at the latest. */
  setPart(event: LogEvent | undefined, number: number | undefined): void {
    this.#setPart.get(event ?? null, number ?? null);
  }
}
