// Owns: the protocol for a snapshot of a standby that no client can tell from the primary. Both of these hold for it.
// 1. It has everything that the primary showed when the request came: the standby had replayed the primary's log up to
//    there before the snapshot was taken. Positions of two timelines are not compared.
// 2. It has nothing that the primary does not show yet: the primary is asked again after the snapshot was taken. A standby
//    may show a change earlier than the primary, for example while that one waits for another standby. If clients saw
//    it, the next read of the book would go back in time.

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import type { Times } from '../../times.ts';
import { withTimeout } from './limits.ts';

/** Begins the transaction of a snapshot, which takes it with its first statement. */
const BEGIN = 'begin isolation level repeatable read read only';

// What a transaction that commits asynchronously has written is shown before it is in the log on disk, and a standby gets
// only what is there. So, if anything is missing there, an empty message is written, whose commit waits for the disk (and
// for nothing else). The position is that of all that is shown, since what commits writes its log first.
export const FENCE = `
  select ('x' || left(pg_walfile_name(written), 8))::bit(32)::int as timeline, pg_current_snapshot()::text as snapshot,
    case when $1 and flushed < written then pg_logical_emit_message(true, 'book-catalogue', '') else written end as position,
    set_config('synchronous_commit', 'local', true)
  from (select pg_current_wal_flush_lsn() as flushed, pg_current_wal_insert_lsn() as written offset 0) as log`;

// The timeline of the stream is that of what is replayed, or a newer one. Without a stream there is no row.
const FOLLOWS = `pg_is_in_recovery() and status = 'streaming' and received_tli = $1`;

const STATE = `
  select ${FOLLOWS} as follows, pg_last_wal_replay_lsn() >= $2::pg_lsn as "hasReplayed",
    pg_postmaster_start_time()::text as server
  from pg_stat_wal_receiver`;

// It is asked within the snapshot, so its answer is about a later moment than that of the snapshot. A pooler may have sent
// the question before to another server, which is noticed by the time of its start. A standby does not say which
// transactions were in progress in a snapshot, only which are: of those that the primary does not show yet, none may
// have been committed here.
const COMPARISON = `
  select ${FOLLOWS} and pg_postmaster_start_time()::text = $2 as follows,
    pg_snapshot_xmax(seen) <= pg_snapshot_xmax(shown) and not exists (
      select from pg_snapshot_xip(shown) as id
      where case when id < pg_snapshot_xmax(seen) then pg_xact_status(id) = 'committed' end
    ) as "isShown"
  from pg_stat_wal_receiver, pg_current_snapshot() as seen, cast($3 as pg_snapshot) as shown`;

// A standby of a copy of the primary has the same identity and timeline, but not what has just been written to the primary.
// No request has this key, since it has a space. (What is left of it when this process dies is removed as a key
// is: it is as new as the newest of them.)
const WRITE_MARK = `
  insert into book_requests (key, fingerprint, ids, made_at)
  select 'standby ' || $1, '', '{}', coalesce(max(made_at), now()) from book_requests`;
const HAS_MARK = `select exists (select from book_requests where key = 'standby ' || $1) as "isThere"`;
const REMOVE_MARK = `delete from book_requests where key = 'standby ' || $1`;

/** What the primary shows at a moment. */
export interface Fence extends pg.QueryResultRow {
  readonly timeline: number;
  /** In its log; what is shown was written before. */
  readonly position: string;
  /** Which of its transactions have ended. */
  readonly snapshot: string;
}

interface State extends pg.QueryResultRow {
  readonly follows: boolean;
  readonly hasReplayed: boolean;
  readonly server: string;
}

/** Statements on the primary. */
export interface Primary {
  /** Runs a statement. */
  run(text: string, values: unknown[]): Promise<unknown>;
  /**
   * Asks what it shows.
   * @param isFlushed whether all of that has to be on its way to the standbys.
   */
  fence(isFlushed: boolean): Promise<Fence>;
}

const LATE = new Error('the standby is late');

/**
 * Opens a transaction with a snapshot that has what the primary showed at the fence, and nothing that it does not show.
 * @throws Error when that is impossible, or not done in time.
 */
export async function openSnapshot(
  client: pg.ClientBase,
  fence: Fence,
  primary: Primary,
  settings: string,
  end: number,
  times: Times['standby'],
): Promise<void> {
  const server = await replayed(client, fence, end, times);
  await client.query(withTimeout(`${BEGIN}; ${settings}`, [], left(end)));
  for (let shown = fence; ; shown = await before(end, primary.fence(false))) {
    const values = [shown.timeline, server, shown.snapshot];
    const state = await ask<{ follows: boolean; isShown: boolean }>(client, COMPARISON, values, left(end));
    if (!state?.follows) throw new Error('it does not follow the primary any more');
    if (state.isShown) return;
    if (shown !== fence) await pause(times.lookPause);
  }
}

/**
 * Waits until a standby has replayed the log up to the fence. Until then it holds no snapshot, which might hinder it.
 * @returns which server it is.
 */
export async function replayed(
  client: pg.ClientBase,
  { timeline, position }: Fence,
  end: number,
  { lookPause }: Times['standby'],
): Promise<string> {
  for (;;) {
    const state = await ask<State>(client, STATE, [timeline, position], left(end));
    if (!state?.follows) throw new Error('it does not follow the primary');
    if (state.hasReplayed) return state.server;
    await pause(lookPause);
  }
}

/** @throws Error when the standby does not show what is written to the primary now. */
export async function assertMarked(
  client: pg.ClientBase,
  primary: Primary,
  { snapshot, lookPause }: Times['standby'],
): Promise<void> {
  const mark = randomUUID();
  await primary.run(WRITE_MARK, [mark]);
  const end = performance.now() + snapshot;
  try {
    const look = () => ask<{ isThere: boolean }>(client, HAS_MARK, [mark], left(end));
    while ((await look())?.isThere !== true) await pause(lookPause);
  } finally {
    await primary.run(REMOVE_MARK, [mark]);
  }
}

export async function before<Result>(end: number, work: Promise<Result>): Promise<Result> {
  const done = new AbortController();
  const time = Math.max(0, end - performance.now());
  const late = pause(time, undefined, { signal: done.signal }).then(() => Promise.reject(LATE));
  try {
    return await Promise.race([work, late]);
  } finally {
    done.abort();
  }
}

/** Milliseconds until then. @throws Error when none are left. */
export function left(end: number): number {
  const milliseconds = end - performance.now();
  if (milliseconds <= 0) throw LATE;
  return milliseconds;
}

/**
 * @param timeout milliseconds; the connection cannot be used any more after a longer time.
 * @returns the first row.
 */
export async function ask<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  text: string,
  values: unknown[],
  timeout: number,
): Promise<Row | undefined> {
  return (await client.query<Row>(withTimeout(text, values, timeout))).rows[0];
}
