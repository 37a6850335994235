// Owns: the triggers that write the log of changes in PostgreSQL, whichever program changes books, and who may execute their function.

import pg from 'pg';
import { FIELDS, withTypes } from '../columns.ts';
import { RUN } from '../states.ts';

const NOTHING = withTypes('bigint').map(({ type }) => `null::${type}`);
const NUMBER = "nextval('book_log_number') as number";
/** A row for each run of new ids and numbers. There may be gaps in both: other transactions draw some at the same time. */
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

/** An open event of another transaction is seen only if another program has left it open. */
const IS_OWN_EVENT = 'is_open and xmin = pg_current_xact_id()::xid';
/** Only a row of `book_events` makes changes a part of an event. A role that may write books, but not that table, can start no event. */
const write = (rows: string) => `
  insert into book_log (number, book, last, ${FIELDS}, part_of)
  select rows.*, (select number from book_events where place = 0 and ${IS_OWN_EVENT}) from (${rows}) as rows;`;

/**
 * The program of the function. It writes to the log for the table of books, or on a server of Citus to the shard of the log beside a
 * shard of books. For any other table it does nothing: its columns may have types whose casts are functions of another role. If this
 * text changes, a start begins the log again.
 */
export const WRITE = `
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
          select (select place from %I), rows.*, (select number from %I where ${IS_OWN_EVENT}) from (%s) as rows', log, state, event, part);
    end loop;
    return null;
  end `;

export const FUNCTION = 'book_log_write()';

/**
 * A role that may write books needs no right on the log, since the function has those of its owner. So nobody else may execute it,
 * and its search path has no schema that others may write to before those of the catalogue. A plan that a connection made while the
 * log was small must not read all of it later.
 */
export const functionIn = ({ schema, path }: { readonly schema: string; readonly path: string }) => `
  create or replace function ${schema}.${FUNCTION} returns trigger
  language plpgsql security definer set search_path = ${path} set enable_seqscan = off as $$${WRITE}$$`;

/** The roles that may execute a function beside its owner: by default all of them. */
export const othersWho = (may: string) => `
  from pg_proc cross join aclexplode(coalesce(proacl, acldefault('f', proowner))) as granted
  where pg_proc.oid = ${may} and grantee <> proowner`;
const open = (schema: string) => othersWho(`to_regprocedure(${pg.escapeLiteral(`${schema}.${FUNCTION}`)})`);

/** @param settings of Citus, for a worker, which has a separate copy of the function. */
export const closeIn = (schema: string, settings = '') => `
  do $$ declare other text; begin ${settings}
    for other in select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end ${open(schema)}
    loop execute ${pg.escapeLiteral(`revoke all on function ${schema}.${FUNCTION} from `)} || other || ' cascade'; end loop;
  end $$`;
const onWorkers = (statement: string) => `run_command_on_workers($workers$${statement}$workers$)`;
export const closeOnWorkers = (schema: string) =>
  `select ${onWorkers(closeIn(schema, "perform set_config('citus.enable_ddl_propagation', 'off', true);"))}`;
export const isOpenOnWorkers = (schema: string) =>
  `select from ${onWorkers(`select exists (select ${open(schema)})`)} where result = 't'`;

/** The triggers by their names: when each one calls the function. */
export const TRIGGERS: Readonly<Record<string, string>> = {
  book_log_on_insert: 'after insert on books referencing new table as after',
  book_log_on_update: 'after update on books referencing old table as before new table as after',
  book_log_on_delete: 'after delete on books referencing old table as before',
  book_log_on_truncate: 'before truncate on books',
};
