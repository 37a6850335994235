// Owns: removing old rows from the log of changes in PostgreSQL (rule H6).

import { FIELD_NAMES } from '../../books/book.ts';
import type { Times } from '../../times.ts';
import { IS_INDEXED, MOVE_ON } from './book-index.ts';
import type { Connections } from './connections.ts';

/**
 * Removes at most $5 rows of the shard $1 that are older than $2 milliseconds: the oldest ones, up to the first young row. A row with a
 * time to come counts as old, since a clock was wrong. Rows have to be found old for $4 milliseconds, so a clock that is wrong for less
 * time removes nothing. The newest old row stays, without its content, because cursors point to it. Rows also stay from a transaction
 * on that is in progress in the snapshot $3: readers have not seen its rows.
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

/** Removes the events of the shard $1 that are older than $2 milliseconds and have no more rows. */
export const REMOVE_EVENTS = `
  delete from book_events where place = $1 and at < now() - $2 * interval '1 millisecond'
    and not exists (select from book_log where book_log.place = $1 and part_of = book_events.number)`;

/** Notes that old rows of the shard $1 were looked for, unless this was noted less than $2 milliseconds ago. */
export const NOTE_LOOK = `
  update book_log_state set looked = now()
  where place = $1 and (looked is null or looked > now() or looked <= now() - $2 * interval '1 millisecond')`;

/** The present snapshot of the server of the shard $1. A statement that writes would get that of the coordinator of Citus. */
const NOW = 'select pg_current_snapshot()::text as now from book_log_state where place = $1';

const numberOfThe = (order: 'asc' | 'desc') =>
  `(select number from book_log where place = $1 order by xid ${order}, number ${order} limit 1)`;
/** About how many changes the shard $1 has. */
const COUNT = `select (${numberOfThe('desc')} - ${numberOfThe('asc')} + 1)::float8 as count`;

/** The most rows that are removed together. */
const PRUNED = 1000;

/** The regular removal of old rows. */
export interface Pruning {
  /** About how many changes the log had at the latest look; undefined before the first one. */
  changes: number | undefined;
  end(): void;
}

/**
 * Removes old rows of the log from time to time.
 * @param kept milliseconds for which rows are kept.
 * @param isFound whether only rows that the index has may be removed.
 */
export function pruneLog(
  connections: Connections,
  shards: readonly number[],
  kept: number,
  isFound: boolean,
  { history, postgres }: Times,
): Pruning {
  const statement = pruneStatement(isFound ? IS_INDEXED : 'true');
  let most = PRUNED;
  const confirmed = Math.min(kept, history.day);
  const ask = async <Row extends object>(text: string, ...values: unknown[]) => {
    const end = performance.now() + postgres.indexStatement;
    return (await connections.query<Row>('searches', text, values, end))[0];
  };
  const prune = async (shard: number) => {
    const now = (await ask<{ now: string }>(NOW, shard))?.now;
    if (isFound && now !== undefined) await ask(MOVE_ON, shard, now);
    for (let isMore = now !== undefined; isMore; ) {
      try {
        const pruned = await ask<{ isMore: boolean }>(statement, shard, kept, now, confirmed, most);
        isMore = pruned?.isMore ?? false;
        most = Math.min(PRUNED, 2 * most);
      } catch (error) {
        most = Math.max(1, most >> 2); // they may be too heavy
        throw error;
      }
    }
    await ask(REMOVE_EVENTS, shard, kept);
    if (kept > 0) await ask(NOTE_LOOK, shard, confirmed);
  };
  const look = async () => {
    let sum = 0;
    for (const shard of shards) {
      if (kept < Number.POSITIVE_INFINITY) await prune(shard).catch(() => {});
      sum += (await ask<{ count: number }>(COUNT, shard))?.count ?? 0;
    }
    pruning.changes = sum;
  };
  let looking: Promise<void> | undefined;
  const lookAgain = () => {
    looking ??= look()
      .catch(() => {})
      .finally(() => (looking = undefined)); // requests report a fault
  };
  const timer = setInterval(lookAgain, history.prune).unref();
  const pruning: Pruning = { changes: undefined, end: () => clearInterval(timer) };
  return pruning;
}
