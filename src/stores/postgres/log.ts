// Owns: the log of changes in PostgreSQL. Triggers write a row for each change and removal, with the book as it was before, and one
// for each run of new ids, whichever program it is. A reader takes the rows that its snapshot of before did not see, so it misses
// none of a transaction that takes long, and waits for none. Twin of `sqlite/log.ts`.

import pg from 'pg';
import { FIELD_NAMES } from '../../books/book.ts';
import { FIELDS, withTypes } from '../columns.ts';
import { isWithin, RUN } from '../states.ts';
import type { Query } from './query.ts';
import type { Shards } from './shards.ts';

// A row is about the books from `book` to `last`, and has the fields of the one book before its change; they are null where there
// was none: the books are new. A row about book 0 is the beginning, or what pruning has left. The place of a row is 0, or on Citus a
// number that names its shard: there, each shard of books has its log and its events, and each server its transactions.

/** Builds before the release would begin the log again: this refuses their rows. */
const REFUSAL = 'made by a later build of the service: start that one';

/** The event that a transaction writes is open until its end, so each transaction sees its own one only. */
const EVENTS = [
  `create table if not exists book_events (
    place bigint not null default 0, number bigint not null, at timestamptz not null default clock_timestamp(),
    kind text not null, name text, books bigint not null default 0, work json, is_open boolean not null default true,
    primary key (place, number)
  )`,
  'create index if not exists book_events_open on book_events (place) where is_open',
];
const TABLES = [
  'create sequence if not exists book_log_number',
  `create table if not exists book_log (
    place bigint not null default 0, xid xid8 not null default pg_current_xact_id(),
    number bigint not null default nextval('book_log_number'), at timestamptz not null default clock_timestamp(),
    book bigint not null, last bigint not null, ${withTypes('bigint').map(({ name, type }) => `${name} ${type}`)}, part_of bigint,
    primary key (place, xid, number)
  )`,
  "alter table book_log alter column number set default nextval('book_log_number')", // in case the sequence was made again
  // For each place, the transaction up to which rows have been removed for their age, the server whose transactions they are, when
  // old rows were last looked for, the transaction of the beginning, and whether there were no books then.
  `create table if not exists book_log_state (
    place bigint primary key default 0, pruned xid8 not null, system bigint not null, looked timestamptz, began xid8,
    has_all boolean not null default false, constraint "${REFUSAL}" check (began is not null)
  )`,
  ...EVENTS,
  'create index if not exists book_log_books on book_log (place, book, number)',
  'create index if not exists book_log_parts on book_log (part_of) where part_of is not null',
  'create index if not exists book_log_numbers on book_log using brin (number, at)',
  'create index if not exists book_log_new_books on book_log (place, book) where last > book',
];

/** Of the log and its state. */
const COLUMNS = [
  'place',
  'xid',
  'number',
  'at',
  'book',
  'last',
  'part_of',
  'pruned',
  'system',
  'looked',
  'began',
  ...FIELD_NAMES,
];
/** Whether both tables have the columns that cannot be added. Both have a place. */
const HAS_COLUMNS = `(
    select count(*) = ${COLUMNS.length + 1} from pg_attribute
    where attrelid = any(array[to_regclass('book_log'), to_regclass('book_log_state')]) and not attisdropped
      and attname in (${COLUMNS.map((name) => `'${name}'`)})
  )`;

const distributed = (name: string) =>
  `select create_distributed_table('${name}', 'place', colocate_with := 'books')`;
/** Builds before the release would drop the log: the reference refuses it. */
const DISTRIBUTE_EVENTS = [
  distributed('book_events'),
  'alter table book_events add foreign key (place) references book_log_state',
];
/** On the workers of Citus, the log of a book is beside it. So its triggers may write it there, which Citus allows on request. */
const DISTRIBUTE = [
  'set local citus.enable_unsafe_triggers = on',
  ...['book_log', 'book_log_state'].map(distributed),
  ...DISTRIBUTE_EVENTS,
];
const EACH_PLACE = `
  do $$ declare shard bigint; number bigint; has_none boolean = not exists (select 1 from books); begin
    for shard in select shardid from pg_dist_shard where logicalrelid = 'book_log_state'::regclass loop
      number := 1;
      while get_shard_id_for_distribution_column('book_log_state', number) <> shard loop number := number + 1; end loop;
      insert into book_log_state (place, pruned, system, began, has_all) values (number, '3', 0, '3', has_none);
      insert into book_log (place, xid, book, last) values (number, '3', 0, 0);
    end loop;
    -- A query is evaluated by the server of the place, and what an update sets by the coordinator.
    for shard, number in select place, (pg_control_system()).system_identifier from book_log_state loop
      update book_log_state set system = number where place = shard;
    end loop;
  end $$`;
const ONE_PLACE = [
  `insert into book_log_state (pruned, system, began, has_all)
    select '3', system_identifier, pg_current_xact_id(), not exists (select from books) from pg_control_system()`,
  'insert into book_log (book, last) values (0, 0)',
];

/** Builds before the release had events in the log: as rows about book 0, with the name as the title. On Citus they had none. */
const MOVE_EVENTS = [
  `insert into book_events (number, at, kind, name, books, is_open)
    select number, at, event, title, (
      select coalesce(sum(last - book + 1), 0) from book_log where part_of = events.number and book > 0
    ), false
    from book_log as events where place = 0 and book = 0 and event in ('import', 'undo') and part_of is null`,
];
const moveEvents = (isDistributed: boolean) => [
  ...EVENTS,
  ...(isDistributed ? DISTRIBUTE_EVENTS : MOVE_EVENTS),
  'alter table book_log_state add column began xid8, add column has_all boolean not null default false',
  isDistributed
    ? "update book_log_state set began = '3'"
    : `update book_log_state set (began, has_all) = (
        select coalesce(max(xid), '3'), coalesce((array_agg(year order by xid desc))[1] = 0, false)
        from book_log where place = 0 and book = 0 and event = 'beginning'
      )`,
  `alter table book_log_state add constraint "${REFUSAL}" check (began is not null)`,
  `update book_log set ${FIELD_NAMES.map((name) => `${name} = null`)} where book = 0 and (title is not null or year is not null)`,
  'alter table book_log drop column event',
];

const NOTHING = withTypes('bigint').map(({ type }) => `null::${type}`);
const NUMBER = "nextval('book_log_number') as number";
/** The rows of new ids, by runs of ids and numbers: others may draw some of both at the same time. */
const runsOf = (ids: string) => `
  select max(number), min(id), max(id), ${NOTHING}
  from (select id, ${NUMBER}, row_number() over (order by id) as place from (${ids} order by id) as new) as numbered
  group by id - number, id - place, id / ${RUN} order by min(id)`;
const NEW = runsOf('select id from after');
const NEW_IDS = runsOf('select id from after except select id from before');
const BEFORE = `select ${NUMBER}, id, id, ${FIELDS} from before`;
/** An update that alters nothing of a book is no change. */
const CHANGED = `
  select ${NUMBER}, id, id, ${FIELDS} from (
    select id, ${FIELDS} from before except all select id, ${FIELDS} from after
  ) as changed`;
const ALL = `select ${NUMBER}, id, id, ${FIELDS} from books`;

/** Only a row of `book_events` makes others a part of an event: a role that may write books, but not that, can make none. */
const write = (rows: string) => `
  insert into book_log (number, book, last, ${FIELDS}, part_of)
  select rows.*, (select number from book_events where place = 0 and is_open) from (${rows}) as rows;`;

/**
 * It belongs to the table of books, or on a server of Citus to a shard of it, and writes to the shard of the log that is beside it.
 * For any other table it does nothing: its columns may have types whose casts are functions of another role.
 */
const WRITE = `
  declare log text; state text; event text; part text;
  begin
    if tg_table_schema <> current_schema() then return null; end if;
    if tg_table_name = 'books' then
      if tg_op = 'INSERT' then ${write(NEW)}
      elsif tg_op = 'UPDATE' then ${write(CHANGED)} ${write(NEW_IDS)}
      elsif tg_op = 'DELETE' then ${write(BEFORE)}
      elsif exists (select 1 from book_log_state where place = 0) then ${write(ALL)}
      else delete from books; -- Citus calls it for no shard
      end if;
      return null;
    end if;
    if to_regclass('pg_catalog.pg_dist_shard') is null then return null; end if;
    select 'book_log_' || logs.shardid, 'book_log_state_' || states.shardid, 'book_events_' || events.shardid into log, state, event
      from pg_dist_shard as own join pg_dist_shard as logs using (shardminvalue) join pg_dist_shard as states using (shardminvalue)
        join pg_dist_shard as events using (shardminvalue)
      where own.logicalrelid = 'books'::regclass and 'books_' || own.shardid = tg_table_name
        and logs.logicalrelid = 'book_log'::regclass and states.logicalrelid = 'book_log_state'::regclass
        and events.logicalrelid = 'book_events'::regclass;
    if log is null then return null; end if;
    foreach part in array case tg_op
      when 'INSERT' then array[$q$${NEW}$q$]
      when 'UPDATE' then array[$q$${CHANGED}$q$, $q$${NEW_IDS}$q$]
      else array[$q$${BEFORE}$q$] end
    loop
      execute format(
        'insert into %I (place, number, book, last, ${FIELDS}, part_of)
          select (select place from %I), rows.*, (select number from %I where is_open) from (%s) as rows', log, state, event, part);
    end loop;
    return null;
  end `;

const FUNCTION = 'book_log_write()';

/**
 * A role that may write books needs no right on the log, since the function has those of its owner. So nobody else may execute it,
 * and its search path has no schema that others may write to before those of the catalogue. A plan that a connection made while the
 * log was small must not read all of it later.
 */
const functionIn = ({ schema, path }: LogTables) => `
  create or replace function ${schema}.${FUNCTION} returns trigger
  language plpgsql security definer set search_path = ${path} set enable_seqscan = off as $$${WRITE}$$`;

/** The roles that may execute the function $1 beside its owner: by default all of them. */
const othersWho = (may: string) => `
  from pg_proc cross join aclexplode(coalesce(proacl, acldefault('f', proowner))) as granted
  where pg_proc.oid = ${may} and grantee <> proowner`;
const open = (schema: string) => othersWho(`to_regprocedure(${pg.escapeLiteral(`${schema}.${FUNCTION}`)})`);

/** @param settings of Citus, for a worker: there, the statement is about its own copy of the function. */
const closeIn = (schema: string, settings = '') => `
  do $$ declare other text; begin ${settings}
    for other in select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end ${open(schema)}
    loop execute ${pg.escapeLiteral(`revoke all on function ${schema}.${FUNCTION} from `)} || other || ' cascade'; end loop;
  end $$`;
const onWorkers = (statement: string) => `run_command_on_workers($workers$${statement}$workers$)`;
const closeOnWorkers = (schema: string) =>
  `select ${onWorkers(closeIn(schema, "perform set_config('citus.enable_ddl_propagation', 'off', true);"))}`;
const isOpenOnWorkers = (schema: string) =>
  `select from ${onWorkers(`select exists (select ${open(schema)})`)} where result = 't'`;

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
  readonly hasColumns: boolean;
  /** Whether it is that of a build before the release, with events in it. */
  readonly isOlder: boolean;
  /** Whether a build before version 1.1 has noted changes: for the index only, or several of new books under one number. */
  readonly isOld: boolean;
  readonly hasIndex: boolean;
  /** Whether this role may write events; null if there is no table of them. */
  readonly mayWrite: boolean | null;
  /** Whether other roles than the owner may execute what writes it. */
  readonly isOpen: boolean;
  /** Whether this role has the rights of that owner. */
  readonly isOwner: boolean;
  /** Of the log, quoted. */
  readonly schema: string;
  /** The schemas of the books and of the log, quoted, and last the one of temporary tables. */
  readonly path: string;
}

const DESCRIBE = `
  with place as (
    select schema, case schema when books then '' else books || ', ' end || schema || ', pg_temp' as path from (
      select coalesce(
        (select relnamespace::regnamespace::text from pg_class where oid = to_regclass('book_log')), quote_ident(current_schema())
      ) as schema, coalesce(
        (select relnamespace::regnamespace::text from pg_class where oid = to_regclass('books')), quote_ident(current_schema())
      ) as books
    ) as schemas
  ), found as (
    select pg_proc.oid, proowner, tgenabled in ('O', 'A') as is_enabled, tgenabled in ('O', 'A') and prosrc = $2
      and proconfig = array['search_path=' || path, 'enable_seqscan=off'] as "isSound"
    from place cross join pg_trigger join pg_proc on pg_proc.oid = tgfoid
    where tgrelid = to_regclass('books') and tgname = any($1::text[])
  )
  select schema, path,
    to_regclass('book_log_new_books') is not null and to_regclass('book_log_number') is not null
      and to_regclass('book_events') is not null
      and (select count(*) = ${Object.keys(TRIGGERS).length} from found where "isSound") as "isThere",
    ${HAS_COLUMNS} as "hasColumns",
    (select count(*) = 2 from pg_attribute where not attisdropped
      and (attrelid, attname) in ((to_regclass('book_log'), 'event'), (to_regclass('book_log_state'), 'looked')))
      and (select count(*) = ${Object.keys(TRIGGERS).length} from found where is_enabled) as "isOlder",
    coalesce(to_regclass('book_index_queue'), to_regclass('book_log_runs')) is not null as "isOld",
    to_regclass('book_index_state') is not null as "hasIndex",
    has_table_privilege(to_regclass('book_events'), 'insert') as "mayWrite",
    exists (select ${othersWho('any(array(select oid from found))')}) as "isOpen",
    (select bool_and(pg_has_role(proowner, 'usage')) from found) as "isOwner"
  from place`;

const OPEN = `other roles may execute its function ${FUNCTION}, and become its owner by it: start the service once as the owner`;

/** Whether each place has rows, and is on the server that it was made for: no dump was restored, and no shard was moved. */
const IS_OWN = `
  select bool_and(
    system = (pg_control_system()).system_identifier
      and exists (select from book_log where book_log.place = book_log_state.place and (pruned > '3' or book = 0))
  ) as "isOwn" from book_log_state`;

/** Whether the documented repair asks for it: the log lacks changes. */
const LACKS_CHANGES = 'select count(*) > 0 as "lacksChanges" from book_index_state where version = 0';

/**
 * Whether the sequence, if this role may set it, is behind the log. The highest numbers are those of the newest row and, in a log that
 * has started again, of the rows before that.
 */
const IS_BEHIND = `
  select case when has_sequence_privilege('book_log_number', 'update') then greatest(
    (select number from book_log where place = 0 order by xid desc, number desc limit 1),
    (select max(number) from book_log where place = 0 and xid = '3')
  ) > coalesce(pg_sequence_last_value('book_log_number'), 0) end as "isBehind"`;
const CATCH_UP = `
  select setval('book_log_number', greatest((select max(number) from book_log), (select last_value from book_log_number)))`;

/**
 * Whether the log of one server is there, and nobody has emptied it: until rows are removed, it has its beginning. Unlike `IS_OWN`, it
 * names the one place: else the server may read the whole log for each search.
 */
export const IS_SOUND = `
  select (
    select count(*) = ${Object.keys(TRIGGERS).length} from pg_trigger
    where tgrelid = to_regclass('books') and tgname in (${Object.keys(TRIGGERS).map((name) => `'${name}'`)})
      and tgenabled in ('O', 'A')
  ) and exists (
    select from book_log_state where pruned > '3'
      or exists (select from book_log where place = 0 and book = 0)
  ) and exists (select from book_log) and to_regclass('book_log_number') is not null and to_regclass('book_events') is not null and ${HAS_COLUMNS} as "isSound"`;

/**
 * @param isDistributed whether several servers keep the books.
 * @returns the statements that begin the log, or that close it to other roles; none if it is sound, and of this server, not of one
 *   whose dump was restored here.
 * @throws Error if this role cannot close it.
 */
export async function stepsToLog(query: Query, isDistributed: boolean): Promise<string[]> {
  const [found] = await query<LogTables>(DESCRIBE, [Object.keys(TRIGGERS), WRITE]);
  const { isThere, hasColumns, isOlder, isOld, hasIndex, isOpen, isOwner, mayWrite, schema } =
    found as LogTables;
  if (mayWrite === false)
    throw new Error(
      'this role may not write its table "book_events": grant the rights of its other tables again',
    );
  const isOpenAway = isDistributed && (await query(isOpenOnWorkers(schema))).length > 0;
  if ((isOpen || isOpenAway) && !isOwner) throw new Error(OPEN);
  const writing = [
    functionIn(found as LogTables),
    closeIn(schema), // Citus does it on the workers as well
    ...Object.entries(TRIGGERS).map(([name, when]) => {
      return `create or replace trigger ${name} ${when} for each statement execute function ${schema}.${FUNCTION}`;
    }),
  ];
  const [index] = hasIndex ? await query<{ lacksChanges: boolean }>(LACKS_CHANGES) : [];
  if (!isOld && !index?.lacksChanges && (isOlder || (isThere && hasColumns))) {
    const [places] = await query<{ isOwn: boolean | null }>(IS_OWN);
    if (places?.isOwn && isOlder)
      return ['lock table books in share row exclusive mode', ...moveEvents(isDistributed), ...writing];
    const [numbers] = isDistributed ? [] : await query<{ isBehind: boolean }>(IS_BEHIND);
    if (places?.isOwn && numbers?.isBehind) return [CATCH_UP];
    if (places?.isOwn) return isOpen ? [closeIn(schema)] : isOpenAway ? [closeOnWorkers(schema)] : [];
  }
  return [
    `lock table books in ${isOld ? 'access exclusive' : 'share row exclusive'} mode`,
    ...(isOld
      ? ['drop function if exists book_index_note cascade', 'drop table if exists book_index_queue']
      : []),
    ...(isOld || !hasColumns || isDistributed
      ? ['drop table if exists book_events', 'drop table if exists book_log, book_log_state']
      : []),
    ...TABLES,
    ...(isDistributed ? DISTRIBUTE : []),
    ...writing,
    "update book_log set xid = '3' where xid > '3'", // before all transactions
    'delete from book_log_state',
    CATCH_UP,
    ...(isDistributed ? [EACH_PLACE] : ONE_PLACE),
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

/** Where the log is: the first place has what is told of an event. */
export interface LogPlaces {
  readonly all: readonly number[];
  readonly first: number;
  /** The place with the rows about a book. */
  of(id: number): number;
}

export function logPlaces(found: readonly PlaceOfLog[], shards: Shards): LogPlaces {
  const all = found.map(({ place }) => place);
  const [first = 0] = all;
  const of = (id: number) => {
    const shard = shards.placeOf(id);
    return all.find((place) => shards.placeOf(place) === shard) ?? first;
  };
  return { all, first, of: shards.areSeveral ? of : () => first };
}

/**
 * SQL after `from` for the rows of a place about a book.
 * @param end of each of two statements: a planner does not take an order or a limit into them.
 */
export const about = (place: string, id: string, end = '') => `(
    (select * from book_log where place = ${place} and book = ${id} ${end})
    union all (select * from book_log where place = ${place} and ${isWithin(id)} ${end})
  ) as about`;

/**
 * Removes the oldest rows of the place $1: those older than $2 milliseconds, up to the first one that is not. A time to come is that
 * of a clock that was wrong. Rows have to be found old for $4 milliseconds, so a clock that is wrong for less removes nothing. The
 * newest of the old ones stays, without its content: readers who wait have read it. So do those after a transaction that is in
 * progress in the snapshot $3: readers have not seen what it writes. At most $5 rows are removed.
 * @param isRead a condition for rows that may be removed.
 */
export const pruneStatement = (isRead: string) => `
  with age as (
    select case when $2::float8 = 0 then now() else looked - $2 * interval '1 millisecond' end as "end" from book_log_state
    where place = $1 and ($2 = 0 or looked <= now() - $4 * interval '1 millisecond')
  ), oldest as (
    select xid, number, at < "end" or at > now() as "isOld" from age cross join (
      select xid, number, at from book_log where place = $1 order by xid, number limit $5::integer + 1
    ) as rows
  ), young as (
    select xid, number from oldest where not "isOld" order by xid, number limit 1
  ), stays as (
    select oldest.xid, oldest.number from oldest left join young on true
    where young.xid is null or (oldest.xid, oldest.number) < (young.xid, young.number)
    order by oldest.xid desc, oldest.number desc limit 1
  ), gone as (
    delete from book_log using oldest, stays
    where book_log.place = $1 and book_log.xid = oldest.xid and book_log.number = oldest.number
      and (oldest.xid, oldest.number) < (stays.xid, stays.number)
      and oldest.xid < pg_snapshot_xmin($3::pg_snapshot) and ${isRead}
    returning book_log.xid
  ), emptied as (
    update book_log set book = 0, last = 0, part_of = null, ${FIELD_NAMES.map((name) => `${name} = null`)}
    from stays as oldest
    where book_log.place = $1 and book_log.xid = oldest.xid and book_log.number = oldest.number
      and book > 0 and oldest.xid < pg_snapshot_xmin($3::pg_snapshot) and ${isRead}
    returning book_log.xid
  ), noted as (
    update book_log_state set pruned = newest
    from (select max(xid) as newest from (select xid from gone union all select xid from emptied) as removed) as removed
    where place = $1 and newest > pruned
  )
  select count(*) = $5 as "isMore" from gone`;

/** Removes the events of the place $1 that are older than $2 milliseconds and of which no row is left. */
export const REMOVE_EVENTS = `
  delete from book_events where place = $1 and at < now() - $2 * interval '1 millisecond'
    and not exists (select from book_log where book_log.place = $1 and part_of = book_events.number)`;

/** Notes that old rows of the place $1 were looked for, unless it was less than $2 milliseconds ago. */
export const NOTE_LOOK = `
  update book_log_state set looked = now()
  where place = $1 and (looked is null or looked > now() or looked <= now() - $2 * interval '1 millisecond')`;

/**
 * How far a reader is in a place. It has the rows that the snapshot `seen` sees, and of those that `target` sees, the ones up to
 * a transaction and a number, `0` if it is not midway; but not the books of a range.
 */
export interface LogPosition {
  readonly seen: string;
  readonly target: string;
  readonly xid: string;
  readonly number: number;
  readonly next: number;
  readonly last: number;
}

/** A range without ids. */
export const NO_RANGE = { next: 1, last: 0 };

/**
 * SQL for rows of the log that a reader lacks; `state` is its position. Midway, those behind it only: the rest of a transaction, and
 * others, some of which started before the snapshot `seen`. The limit lets a planner that knows neither read them in their order.
 * @param limit of each kind.
 */
export const behind = (limit: number | 'all', condition = 'true') => {
  const kinds = [
    'xid = state.xid and number > state.number',
    'xid > state.xid and xid >= pg_snapshot_xmax(seen)',
    'xid > state.xid and xid = any(array(select pg_snapshot_xip(seen)))',
  ].map((kind) => {
    return `(select xid, number, book, last from book_log
      where book_log.place = state.place and ${kind} and ${condition} order by xid, number limit ${limit})`;
  });
  return `lateral (${kinds.join(' union all ')}) as behind`;
};

/** Rows that are read together. */
const ROWS = 1000;

/** Midway, only the rows that the target sees: a transaction that has ended since may have a lower number. */
const NEXT_ROWS = `
  select behind.xid::text, behind.number, book, behind.last, pg_current_snapshot()::text as now
  from (
    select $1::bigint as place, $2::pg_snapshot as seen, $3::pg_snapshot as target, $4::xid8 as xid, $5::bigint as number
  ) as state cross join ${behind(ROWS, "(state.xid = '0' or pg_visible_in_snapshot(xid, target))")}
  order by behind.xid, behind.number limit ${ROWS}`;

interface Row {
  readonly xid: string;
  readonly number: number;
  readonly book: number;
  readonly last: number;
  /** The snapshot that has found it. */
  readonly now: string;
}

/**
 * Reads on in a place of the log, until it has so many books. The rest of a run is a range.
 * @param columns of the books of a range, `id` among them.
 * @returns the id of each book once, and the position after them; whether there are no more rows. The books if they are those of a
 *   range.
 */
export async function readLog<Book extends { readonly id: number }>(
  query: Query,
  place: number | string,
  before: LogPosition,
  most: number,
  columns: string,
): Promise<{ ids: number[]; books?: Book[]; position: LogPosition; isEnd: boolean }> {
  if (before.next <= before.last) {
    const range = `select ${columns} from books where id between $1 and $2 order by id limit $3`;
    const books = await query<Book>(range, [before.next, before.last, most]);
    const ids = books.map(({ id }) => id);
    const rest = ids.length < most ? NO_RANGE : { next: Number(ids.at(-1)) + 1 };
    return { ids, books, position: { ...before, ...rest }, isEnd: false };
  }
  const { seen, target, xid, number } = before;
  const rows = await query<Row>(NEXT_ROWS, [place, seen, target, xid, number]);
  const ids = new Set<number>();
  let reached: Row | undefined;
  let range = NO_RANGE;
  for (const row of rows) {
    reached = row;
    let next = Math.max(1, row.book);
    for (; next <= row.last && ids.size < most; next += 1) ids.add(next);
    if (next <= row.last) range = { next, last: row.last };
    if (ids.size >= most) break;
  }
  const towards = xid === '0' ? (reached?.now ?? target) : target;
  const isThere = reached === rows.at(-1) && rows.length < ROWS;
  const position = isThere
    ? {
        seen: reached === undefined && xid === '0' ? seen : towards,
        target: towards,
        xid: '0',
        number: 0,
        ...range,
      }
    : { seen, target: towards, xid: reached?.xid ?? xid, number: reached?.number ?? number, ...range };
  return { ids: [...ids], position, isEnd: rows.length === 0 && xid === '0' };
}
