// Owns: the tables of the log of changes in a SQLite file, and the triggers that write it, whichever program changes books: whether
// the log is whole, and how it begins. New books have ids above a mark: the service notes them together, and then moves the mark.
// Twin of `postgres/log-tables.ts`.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { FIELD_NAMES, LAST_SEQUENTIAL_ID } from '../../books/book.ts';
import { FIELDS, withTypes } from '../columns.ts';
import { IS_SINGLE, RUN } from '../states.ts';

/** Milliseconds since 1970, for programs with any version of SQLite. */
export const NOW = "cast(round((julianday('now') - 2440587.5) * 86400000) as integer)";

const COLUMNS = withTypes('integer').map(({ name, type }) => `${name} ${type}`);
/** The events. Rows of the log are a part of the event with the number `part_of`. The work is JSON. */
const EVENTS = `create table book_events (
    number integer primary key, at integer not null, kind text not null, name text, books integer not null default 0, work text
  ) strict`;
/**
 * One row: `noted_to` is the mark; `part_of` the event of the transaction in progress; `replaced` the number of the row about the book
 * that was last replaced; `looked` the time at which old rows were last looked for; `began` the number of the beginning, and `has_all`
 * whether there were no books then.
 */
const STATE = `create table book_log_state (
    noted_to integer not null, part_of integer, replaced integer, looked integer, began integer not null, has_all integer not null
  ) strict`;
const TABLES = [
  // A row is about one book, and has its fields before the change. Or it is about new books, from `book` to `last`, and its fields are
  // null. A row about book 0 has only the number of an event or of the beginning, or was emptied by pruning.
  `create table book_log (
    number integer primary key autoincrement, at integer not null, book integer not null, last integer not null,
    ${COLUMNS.join(', ')}, part_of integer
  ) strict`,
  EVENTS,
  STATE,
  'create index book_log_times on book_log (at)',
  'create index book_log_books on book_log (book)',
  'create index book_log_new_books on book_log (book) where last > book',
];
/** They find events and their books. A log of a build before the release gets them when it is opened. */
const INDEXES = [
  'create index if not exists book_log_events on book_log (part_of, book, last) where part_of is not null',
  `create index if not exists book_log_singles on book_log (at, book, last) where ${IS_SINGLE}`,
  'create index if not exists book_events_times on book_events (at)',
  'drop index if exists book_log_parts',
];

/** Builds before the release kept events in the log, as rows about book 0 with the name as the title. */
const IS_OLDER = `
  select 1 from pragma_table_info('book_log') as log cross join pragma_table_info('book_log_state') as state
  where log.name = 'event' and state.name = 'looked'`;
const MOVE_EVENTS = `
  ${EVENTS};
  insert into book_events (number, at, kind, name, books)
    select number, at, event, title, (select coalesce(sum(last - book + 1), 0) from book_log where part_of = events.number and book > 0)
    from book_log as events where book = 0 and event in ('import', 'undo');
  alter table book_log_state rename to book_log_state_before;
  ${STATE};
  insert into book_log_state (noted_to, looked, began, has_all)
    select noted_to, looked, coalesce(beginning.number, 0), coalesce(beginning.year = 0, 0)
    from book_log_state_before left join (
      select max(number) as number, year from book_log where book = 0 and event = 'beginning'
    ) as beginning;
  drop table book_log_state_before;
  update book_log set ${FIELD_NAMES.map((name) => `${name} = null`)} where book = 0;
  alter table book_log drop column event`;

/** SQL for the mark. */
export const NOTED_TO = '(select noted_to from book_log_state)';
/** SQL for the highest id in the sequence of new books. */
export const HIGHEST = `(select coalesce(max(id), 0) from books where id <= ${LAST_SEQUENTIAL_ID})`;
const isNew = (id: string) => `${id} > ${NOTED_TO} and ${id} <= ${LAST_SEQUENTIAL_ID}`;

/**
 * The highest id ever given in the sequence of new books (rule 12). The sequence of SQLite does not have an id that another program
 * has set by an update; and it may be beyond ours, after that program has inserted a very large id.
 */
const lastIdWith = (mark: string) => `select max(
    coalesce((select max(seq) from sqlite_sequence where name = 'books' and seq <= ${LAST_SEQUENTIAL_ID}), 0), ${mark}, ${HIGHEST}
  ) as value`;
export const LAST_ID = lastIdWith(NOTED_TO);
export const LAST_ID_WITHOUT_LOG = lastIdWith('0');

/** Whether new books are to be noted. */
export const HAS_NEW = `${HIGHEST} > ${NOTED_TO}`;

const IS_DENSE = `(select count(*) from books where ${isNew('id')}) = ${HIGHEST} - ${NOTED_TO}`;
/** The runs of new ids if these have no gaps. It takes a quarter of the time of the other runs. */
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
/** The number before that of the next row. */
const NEWEST = `
  select max(coalesce(max(number), 0), coalesce((select seq from sqlite_sequence where name = 'book_log'), 0)) as newest from book_log`;
export const noteRuns = (runs: string) => `
  insert into book_log (number, at, book, last, part_of)
  select newest + place, ${NOW}, book, last, part_of
  from book_log_state cross join (${NEWEST}) cross join (${runs}) order by place`;
export const NOTE_NEW = noteRuns(`select * from (${DENSE_RUNS}) union all ${OTHER_RUNS}`);
export const MOVE_MARK = `update book_log_state set noted_to = ${HIGHEST} where ${HAS_NEW}`;

const CREATED = `
  insert into book_log (at, book, last, part_of)
  select ${NOW}, new.id, new.id, part_of from book_log_state where not exists (
    select 1 from book_log where number = replaced and book = new.id and number = (select max(number) from book_log)
  )`;
const BEFORE = `
  insert into book_log (at, book, last, ${FIELDS}, part_of)
  select ${NOW}, old.id, old.id, ${FIELD_NAMES.map((name) => `old.${name}`)}, part_of from book_log_state`;
/** SQLite calls no trigger for a book that `insert or replace` removes, so it is noted before. If it stays, the row alters nothing. */
const IS_THERE = 'new.id > 0 and exists (select 1 from books where id = new.id)';
const REPLACED = `
  insert into book_log (at, book, last, ${FIELDS}, part_of)
  select ${NOW}, id, id, ${FIELDS}, part_of from book_log_state cross join books where id = new.id;
  update book_log_state set replaced = (select max(number) from book_log)`;
const DIFFERS = ['id', ...FIELD_NAMES].map((name) => `old.${name} <> new.${name}`).join(' or ');

/** The triggers by their names. A new book is noted as new before its first change. If such a text changes, a start begins the log again. */
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

/** The definitions of the log, and those of builds before version 1.1, which noted changes for the index only. */
const DEFINITIONS = `
  select type, name, lower(sql) as definition from sqlite_schema
  where name glob 'book_log*' or name in ('book_events', 'book_index_queue', 'book_index_on_insert', 'book_index_on_update', 'book_index_on_delete')`;

/** Rows that only another program can have inserted. They would end the numbers, or be about more books than there can be. */
const REMOVE_FORGED = `
  delete from book_log where number > ${LAST_SEQUENTIAL_ID};
  delete from book_log where book > ${Number.MAX_SAFE_INTEGER};
  delete from book_log where last > book and last - book >= ${RUN};
  delete from book_log_state where began > ${LAST_SEQUENTIAL_ID}`;

/** A condition: another program has inserted a row with one of the last numbers. */
const IS_AT_END = `name = 'book_log' and seq > ${LAST_SEQUENTIAL_ID}`;

/** Whether nobody has emptied the log. The version of the schema changes if somebody removes a part of the log. */
const LOOK = `
  select (select count(*) from book_log_state) = 1 and exists (select 1 from book_log)
    and not exists (select 1 from sqlite_sequence where ${IS_AT_END}) as isFilled, schema_version as version
  from pragma_schema_version`;

/** Notices whether other programs may have damaged the log. */
export class LogGuard {
  readonly #db: DatabaseSync;
  #look: StatementSync | undefined;
  #version: unknown;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Whether the log may be incomplete: it is empty, or the schema has changed since the log was last found complete. */
  get isInDoubt(): boolean {
    try {
      const { isFilled, version } = this.#state;
      return isFilled !== 1 || version !== this.#version;
    } catch {
      return true; // a table is missing
    }
  }

  /** Notes that the log is complete now. */
  trust(): void {
    this.#version = this.#state.version;
  }

  /** @throws if a table is missing. */
  get #state() {
    this.#look ??= this.#db.prepare(LOOK);
    return this.#look.get() ?? {};
  }
}

/**
 * Within a transaction, begins the log, unless it is there with all its triggers.
 * @param lacksChanges whether the log begins again in any case.
 */
export function prepareLog(db: DatabaseSync, lacksChanges = false): void {
  if (db.prepare(IS_OLDER).get() !== undefined) {
    dropTriggers(db);
    db.exec([MOVE_EVENTS, ...TRIGGERS].join(';'));
  }
  const found = db.prepare(DEFINITIONS).all();
  const areThere = (definitions: readonly string[]) =>
    definitions.every((definition) => found.some((one) => one.definition === definition.toLowerCase()));
  const hasTables = areThere(TABLES);
  if (hasTables)
    db.exec(
      `${REMOVE_FORGED}; update sqlite_sequence set seq = coalesce((select max(number) from book_log), 0) where ${IS_AT_END}`,
    );
  const isFilled = () => db.prepare(LOOK).get()?.isFilled === 1;
  if (hasTables && areThere(TRIGGERS) && isFilled() && !lacksChanges) {
    db.exec(INDEXES.join(';'));
    return;
  }
  dropTriggers(db);
  const tables = ['book_log', 'book_log_state', 'book_events'].map((name) => `drop table if exists ${name}`);
  if (!hasTables) db.exec([...tables, ...TABLES].join(';'));
  db.exec(INDEXES.join(';'));
  // An older index would miss the changes before this beginning.
  db.exec('drop table if exists book_index_queue; drop table if exists book_index_state');
  db.exec(TRIGGERS.join(';'));
  db.exec(`
    delete from book_events;
    insert into book_log (at, book, last) values (${NOW}, 0, 0);
    delete from book_log_state;
    insert into book_log_state (noted_to, began, has_all) values (${HIGHEST}, last_insert_rowid(), ${HIGHEST} = 0)`);
}

function dropTriggers(db: DatabaseSync): void {
  for (const { type, name } of db.prepare(DEFINITIONS).all())
    if (type === 'trigger') db.exec(`drop trigger ${name}`);
}
