// Owns: the log of changes in PostgreSQL. Triggers write a row for each change and removal, with the book as it was before, and one
// for each run of new ids, whichever program it is. A reader takes the rows that its snapshot of before did not see, so it misses
// none of a transaction that takes long, and waits for none. Twin of `sqlite/log.ts`.

import type { QueryResultRow } from 'pg';
import type { Times } from '../../times.ts';
import { FIELDS, withTypes } from '../columns.ts';
import type { Connections } from './connections.ts';

// A row is about the books from `book` to `last`, and has the fields of the one book before its change; they are null where there
// was none: the books are new. Its place is 0, or on Citus a number that names its shard: there, each shard of books has its log,
// and each server its transactions.
const TABLES = [
  'create sequence if not exists book_log_number',
  `create table if not exists book_log (
    place bigint not null default 0, xid xid8 not null default pg_current_xact_id(),
    number bigint not null default nextval('book_log_number'), at timestamptz not null default clock_timestamp(),
    book bigint not null, last bigint not null, ${withTypes('bigint').map(({ name, type }) => `${name} ${type}`)},
    primary key (place, xid, number)
  )`,
  // For each place, the transaction up to which rows have been removed for their age, and the server whose transactions they are.
  `create table if not exists book_log_state (
    place bigint primary key default 0, pruned xid8 not null default pg_current_xact_id(), system bigint not null
  )`,
];

/** On the workers of Citus, the log of a book is beside it. So its triggers may write it there, which Citus allows on request. */
const DISTRIBUTE = [
  'set local citus.enable_unsafe_triggers = on',
  ...['book_log', 'book_log_state'].map(
    (name) => `select create_distributed_table('${name}', 'place', colocate_with := 'books')`,
  ),
];
const EACH_PLACE = `
  do $$ declare shard bigint; number bigint; begin
    for shard in select shardid from pg_dist_shard where logicalrelid = 'book_log_state'::regclass loop
      number := 1;
      while get_shard_id_for_distribution_column('book_log_state', number) <> shard loop number := number + 1; end loop;
      insert into book_log_state (place, pruned, system) select number, '3', system_identifier from pg_control_system();
    end loop;
  end $$`;
const ONE_PLACE = 'insert into book_log_state (system) select system_identifier from pg_control_system()';

const NOTHING = withTypes('bigint').map(({ type }) => `null::${type}`);
/** The rows of new ids, by their runs. */
const RUNS = `select min(id), max(id), ${NOTHING} from (select id, id - row_number() over (order by id) as run from after) as new group by run`;
const BEFORE = `select id, id, ${FIELDS} from before`;
const NEW_IDS = `select id, id, ${NOTHING} from (select id from after except select id from before) as new`;
const ALL = `select id, id, ${FIELDS} from books`;

const write = (rows: string) => `insert into book_log (book, last, ${FIELDS}) ${rows};`;

/**
 * It belongs to the table of books, or on a server of Citus to a shard of it, and writes to the shard of the log that is beside it.
 */
const WRITE = `
  declare log text; state text; part text;
  begin
    if tg_table_name = 'books' then
      if tg_op = 'INSERT' then ${write(RUNS)}
      elsif tg_op = 'UPDATE' then ${write(BEFORE)} ${write(NEW_IDS)}
      elsif tg_op = 'DELETE' then ${write(BEFORE)}
      elsif exists (select 1 from book_log_state where place = 0) then ${write(ALL)}
      else delete from books; -- Citus calls it for no shard
      end if;
      return null;
    end if;
    select 'book_log_' || logs.shardid, 'book_log_state_' || states.shardid into strict log, state
      from pg_dist_shard as own join pg_dist_shard as logs using (shardminvalue) join pg_dist_shard as states using (shardminvalue)
      where 'books_' || own.shardid = tg_table_name
        and logs.logicalrelid = 'book_log'::regclass and states.logicalrelid = 'book_log_state'::regclass;
    foreach part in array case tg_op
      when 'INSERT' then array['${RUNS}']
      when 'UPDATE' then array['${BEFORE}', '${NEW_IDS}']
      else array['${BEFORE}'] end
    loop
      execute format(
        'insert into %I (number, place, book, last, ${FIELDS})
          select nextval(''book_log_number''), (select place from %I), rows.* from (%s) as rows', log, state, part);
    end loop;
    return null;
  end `;

/**
 * It has the rights of its owner, so a role that may write books needs none on the log; and a search path without temporary tables
 * before the log, so such a role gets no other right by it.
 * @param schema of the log, quoted.
 */
const functionIn = (schema: string) => `
  create or replace function book_log_write() returns trigger
  language plpgsql security definer set search_path = ${schema}, pg_temp as $$${WRITE}$$`;

/** By name. */
const TRIGGERS: Readonly<Record<string, string>> = {
  book_log_on_insert: 'after insert on books referencing new table as after',
  book_log_on_update: 'after update on books referencing old table as before new table as after',
  book_log_on_delete: 'after delete on books referencing old table as before',
  book_log_on_truncate: 'before truncate on books',
};

interface LogTables {
  /** Whether the log is there, with all that writes it. */
  readonly isThere: boolean;
  /** Whether a build before version 1.1 has noted changes, for the index only. */
  readonly isOld: boolean;
  /** Of the log, quoted. */
  readonly schema: string;
}

const DESCRIBE = `
  select to_regclass('book_log') is not null and to_regclass('book_log_state') is not null and (
    select count(*) = ${Object.keys(TRIGGERS).length} from pg_trigger join pg_proc on pg_proc.oid = tgfoid
    where tgrelid = to_regclass('books') and tgname = any($1::text[]) and tgenabled in ('O', 'A') and prosrc = $2
      and array_to_string(proconfig, ' ') like '%, pg_temp'
  ) as "isThere", to_regclass('book_index_queue') is not null as "isOld", coalesce(
    (select relnamespace::regnamespace::text from pg_class where oid = to_regclass('book_log')), quote_ident(current_schema())
  ) as schema`;

const SYSTEM = 'select system_identifier::text as system from pg_control_system()';
const SYSTEMS = 'select distinct system::text as system from book_log_state';

/** Sends a statement that reads. */
type Read = <Row extends QueryResultRow>(text: string, values?: unknown[]) => Promise<readonly Row[]>;

/**
 * @param isDistributed whether several servers keep the books.
 * @returns the statements that begin the log; none if it is sound, and of this server, not of one whose dump was restored here.
 */
export async function stepsToLog(read: Read, isDistributed: boolean): Promise<string[]> {
  const [found] = await read<LogTables>(DESCRIBE, [Object.keys(TRIGGERS), WRITE]);
  const { isThere, isOld, schema } = found as LogTables;
  if (isThere && !isOld) {
    const [own, ...of] = [...(await read(SYSTEM)), ...(await read(SYSTEMS))].map(({ system }) => system);
    if (of.length === 1 && of[0] === own) return [];
  }
  return [
    `lock table books in ${isOld ? 'access exclusive' : 'share row exclusive'} mode`,
    ...(isOld ? ['drop function if exists book_index_note cascade', 'drop table book_index_queue'] : []),
    ...(isDistributed ? ['drop table if exists book_log, book_log_state'] : []),
    ...TABLES,
    ...(isDistributed ? DISTRIBUTE : []),
    functionIn(schema),
    ...Object.entries(TRIGGERS).map(([name, when]) => {
      return `create or replace trigger ${name} ${when} for each statement execute function ${schema}.book_log_write()`;
    }),
    "update book_log set xid = '3' where xid > '3'", // before all transactions
    'truncate book_log_state',
    isDistributed ? EACH_PLACE : ONE_PLACE,
    // An index that has followed before would not know what it lacks.
    `do $$ begin if to_regclass('book_index_state') is not null then truncate book_index_state; end if; end $$`,
  ];
}

/** Grows with each row of the log that somebody writes. */
export const WRITTEN = "select coalesce(pg_sequence_last_value('book_log_number'), 0) as written";
export interface Written {
  readonly written: number;
}

/** The places of the log, with the snapshot of each server at this moment. */
export const PLACES = 'select place, pg_current_snapshot()::text as now from book_log_state order by place';
export interface PlaceOfLog {
  readonly place: number;
  readonly now: string;
}

/** Rows that are removed together. */
const PRUNED = 1000;

/** Removes rows that are older than they are kept, from time to time. @returns a function that ends it. */
export function pruneLog(
  connections: Connections,
  places: readonly PlaceOfLog[],
  { history, postgres }: Times,
): () => void {
  const statement = `
    with oldest as (
      select place, xid, number from book_log where place = $1 order by xid, number limit ${PRUNED}
    ), gone as (
      delete from book_log using oldest
      where book_log.place = $1 and book_log.xid = oldest.xid and book_log.number = oldest.number
        and at < now() - interval '${history.kept} milliseconds'
      returning book_log.xid
    ), noted as (
      update book_log_state set pruned = newest from (select max(xid) as newest from gone) as removed
      where place = $1 and newest > pruned
    )
    select count(*) = ${PRUNED} as "isMore" from gone`;
  const prune = async (place: number) => {
    for (let isMore = true; isMore; ) {
      const end = performance.now() + postgres.indexStatement;
      const { rows } = await connections.query<{ isMore: boolean }>('searches', statement, [place], end);
      isMore = rows[0]?.isMore ?? false;
    }
  };
  const timer = setInterval(async () => {
    for (const { place } of places) await prune(place).catch(() => {}); // requests report it
  }, history.prune);
  timer.unref();
  return () => clearInterval(timer);
}
