// Owns: the tables of the log of changes in PostgreSQL: whether the log is whole, and how it begins. Twin of
// `sqlite/log-tables.ts`.

import { FIELD_NAMES } from '../../books/book.ts';
import { withTypes } from '../columns.ts';
import type { Query } from '../query.ts';
import { IS_SINGLE } from '../states.ts';
import {
  closeIn,
  closeOnWorkers,
  FUNCTION,
  functionIn,
  isOpenOnWorkers,
  othersWho,
  TRIGGERS,
  WRITE,
} from './log-triggers.ts';

// A row is about one book, and has its fields before the change. Or it is about new books, from `book` to `last`, and its fields are
// null. A row about book 0 is the beginning, or was emptied by pruning.
// On Citus, each shard of books has a shard of the log and of the events beside it, and `place` is a number that hashes into both.
// Elsewhere, the log has one shard, and `place` is 0.

/** Builds before the release would begin the log again. A constraint of this name refuses their rows. */
const REFUSAL = 'made by a later build of the service: start that one';

/** An event is open during its transaction only, so each transaction sees only its own event as open. */
const EVENTS = [
  `create table if not exists book_events (
    place bigint not null default 0, number bigint not null, at timestamptz not null default clock_timestamp(),
    kind text not null, name text, books bigint not null default 0, work json, is_open boolean not null default true,
    primary key (place, number)
  )`,
  'create index if not exists book_events_open on book_events (place) where is_open',
  'create index if not exists book_events_times on book_events (place, at, number)',
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
  // A row for each shard: the last transaction of which rows have been removed for their age (`pruned`), the server of these
  // transactions (`system`), when old rows were last looked for, the transaction of the beginning, and whether there were no books then.
  `create table if not exists book_log_state (
    place bigint primary key default 0, pruned xid8 not null, system bigint not null, looked timestamptz, began xid8,
    has_all boolean not null default false, constraint "${REFUSAL}" check (began is not null)
  )`,
  ...EVENTS,
  'create index if not exists book_log_books on book_log (place, book, number)',
  'create index if not exists book_log_numbers on book_log using brin (number, at)',
  'create index if not exists book_log_new_books on book_log (place, book) where last > book',
];
/** They find events and their books. A log of a build before the release gets them when its owner starts the service. */
const INDEXES = [
  'create index if not exists book_log_events on book_log (place, part_of, book, last) where part_of is not null',
  `create index if not exists book_log_singles on book_log (place, at, book, last) where ${IS_SINGLE}`,
];

/** The columns of `book_log` and `book_log_state`. */
const COLUMNS = [
  ...'place xid number at book last part_of pruned system looked began'.split(' '),
  ...FIELD_NAMES,
];
/** Whether the two tables have these columns, which cannot be added. Both have a `place`. */
const HAS_COLUMNS = `(
    select count(*) = ${COLUMNS.length + 1} from pg_attribute
    where attrelid = any(array[to_regclass('book_log'), to_regclass('book_log_state')]) and not attisdropped
      and attname in (${COLUMNS.map((name) => `'${name}'`)})
  )`;

const distributed = (name: string) =>
  `select create_distributed_table('${name}', 'place', colocate_with := 'books')`;
/** Builds before the release would drop the log. The reference refuses that. */
const DISTRIBUTE_EVENTS = [
  distributed('book_events'),
  'alter table book_events add foreign key (place) references book_log_state',
];
/** On Citus, the triggers of a shard of books write to the shard of the log beside it. Citus allows such triggers on request. */
const DISTRIBUTE = [
  'set local citus.enable_unsafe_triggers = on',
  ...['book_log', 'book_log_state'].map(distributed),
  ...DISTRIBUTE_EVENTS,
];
const EACH_SHARD = `
  do $$ declare shard bigint; number bigint; has_none boolean = not exists (select 1 from books); begin
    for shard in select shardid from pg_dist_shard where logicalrelid = 'book_log_state'::regclass loop
      number := 1;
      while get_shard_id_for_distribution_column('book_log_state', number) <> shard loop number := number + 1; end loop;
      insert into book_log_state (place, pruned, system, began, has_all) values (number, '3', 0, '3', has_none);
      insert into book_log (place, xid, book, last) values (number, '3', 0, 0);
    end loop;
    -- A query is evaluated by the server of the shard, and what an update sets by the coordinator.
    for shard, number in select place, (pg_control_system()).system_identifier from book_log_state loop
      update book_log_state set system = number where place = shard;
    end loop;
  end $$`;
const ONE_SHARD = [
  `insert into book_log_state (pruned, system, began, has_all)
    select '3', system_identifier, pg_current_xact_id(), not exists (select from books) from pg_control_system()`,
  'insert into book_log (book, last) values (0, 0)',
];

/** Builds before the release kept events in the log, as rows about book 0 with the name as the title. On Citus they had none. */
const MOVE_EVENTS = `
  insert into book_events (number, at, kind, name, books, is_open)
    select number, at, event, title, (
      select coalesce(sum(last - book + 1), 0) from book_log where part_of = events.number and book > 0
    ), false
    from book_log as events where place = 0 and book = 0 and event in ('import', 'undo') and part_of is null`;
const moveEvents = (isDistributed: boolean) => [
  ...EVENTS,
  ...(isDistributed ? DISTRIBUTE_EVENTS : [MOVE_EVENTS]),
  'alter table book_log_state add column began xid8, add column has_all boolean not null default false',
  isDistributed
    ? "update book_log_state set began = '3'"
    : `update book_log_state set (began, has_all) = (
        select coalesce((array_agg(xid order by xid desc))[1], '3'), coalesce((array_agg(year order by xid desc))[1] = 0, false)
        from book_log where place = 0 and book = 0 and event = 'beginning'
      )`,
  `alter table book_log_state add constraint "${REFUSAL}" check (began is not null)`,
  `update book_log set ${FIELD_NAMES.map((name) => `${name} = null`)} where book = 0 and (title is not null or year is not null)`,
  'alter table book_log drop column event',
];

interface LogTables {
  /** Whether the log is there, with its sequence, its events and its triggers. */
  readonly isThere: boolean;
  readonly hasColumns: boolean;
  /** Whether a build before the release has made the log, with events in it. */
  readonly isOlder: boolean;
  /** Whether a build before version 1.1 has made the log: it has changes for the index only, or several new books under one number. */
  readonly isOld: boolean;
  /** Whether events are found by indexes. */
  readonly isIndexed: boolean;
  readonly hasIndex: boolean;
  /** Whether this role may write events; null if there is no table of them. */
  readonly mayWrite: boolean | null;
  /** Whether other roles than the owner may execute the function of the triggers. */
  readonly isOpen: boolean;
  /** Whether this role has the rights of that owner. */
  readonly isOwner: boolean;
  /** The schema of the log, quoted. */
  readonly schema: string;
  /** The schemas of the books and of the log, quoted, and last the one of temporary tables. */
  readonly path: string;
}

const DESCRIBE = `
  with names as (
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
    from names cross join pg_trigger join pg_proc on pg_proc.oid = tgfoid
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
    to_regclass('book_log_singles') is not null as "isIndexed",
    to_regclass('book_index_state') is not null as "hasIndex",
    (select bool_and(has_table_privilege(to_regclass('book_events'), name)) from unnest(array['select', 'insert', 'update']) as name)
      as "mayWrite",
    exists (select ${othersWho('any(array(select oid from found))')}) as "isOpen",
    (select bool_and(pg_has_role(proowner, 'usage')) from found) as "isOwner"
  from names`;

const OPEN = `other roles may execute its function ${FUNCTION}, and become its owner by it: start the service once as the owner`;

/** Whether each shard has rows, and is on the server that it was made for: no dump was restored, and no shard was moved. */
const IS_OWN = `
  select bool_and(
    system = (pg_control_system()).system_identifier
      and exists (select from book_log where book_log.place = book_log_state.place and (pruned > '3' or book = 0))
  ) as "isOwn" from book_log_state`;

/** Whether the documented repair was started, since the log lacks changes. */
const LACKS_CHANGES = 'select count(*) > 0 as "lacksChanges" from book_index_state where version = 0';

/**
 * Whether the sequence is behind the log; null if this role may not set it. The newest row has the highest number; in a log that has
 * started again, a row before its beginning may have a higher one.
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
 * names the one shard: otherwise the server may read the whole log for each search.
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
 * @returns the statements that begin the log, or that close its function to other roles; none if the log is sound, and was made on
 *   this server.
 * @throws Error if this role cannot close the function.
 */
export async function stepsToLog(query: Query, isDistributed: boolean): Promise<string[]> {
  const [found] = await query<LogTables>(DESCRIBE, [Object.keys(TRIGGERS), WRITE]);
  const { isThere, hasColumns, isOlder, isOld, isIndexed, hasIndex, isOpen, isOwner, mayWrite, schema } =
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
    const [log] = await query<{ isOwn: boolean | null }>(IS_OWN);
    if (log?.isOwn && isOlder)
      return [
        'lock table books in share row exclusive mode',
        ...moveEvents(isDistributed),
        ...INDEXES,
        ...writing,
      ];
    if (log?.isOwn && !isIndexed && isOwner)
      return [...EVENTS, ...INDEXES, 'drop index if exists book_log_parts'];
    const [numbers] = isDistributed ? [] : await query<{ isBehind: boolean }>(IS_BEHIND);
    if (log?.isOwn && numbers?.isBehind) return [CATCH_UP];
    if (log?.isOwn) return isOpen ? [closeIn(schema)] : isOpenAway ? [closeOnWorkers(schema)] : [];
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
    ...INDEXES,
    ...(isDistributed ? DISTRIBUTE : []),
    ...writing,
    "update book_log set xid = '3' where xid > '3'", // before all transactions
    'delete from book_events', // nothing before the beginning can be taken back
    'delete from book_log_state',
    CATCH_UP,
    ...(isDistributed ? [EACH_SHARD] : ONE_SHARD),
    // An older index would miss the changes before this beginning.
    `do $$ begin if to_regclass('book_index_state') is not null then truncate book_index_state; end if; end $$`,
  ];
}
