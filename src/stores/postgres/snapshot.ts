// Owns: a snapshot of all books, whichever servers keep them, and their text in the order of their ids.
// Does not: hold writers up for longer than the snapshots of all servers take.

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { type CopyToStreamQuery, to as copyTo } from 'pg-copy-streams';
import type { Times } from '../../times.ts';
import { begin, beginWithin } from './limits.ts';
import { codeOf, LOCKED, queryOn } from './query.ts';
import type { Release } from './standby.ts';

// Citus has no snapshot over several servers. While `books` is locked at the coordinator, no transaction that came through it and
// writes is in progress on any of them. The lock asks no other server: if one is silent, it ends nevertheless.
const lockWithin = (milliseconds: number, longest: number) => `
  ${beginWithin(longest)}; set local lock_timeout = ${milliseconds};
  set local citus.enable_ddl_propagation = off; lock table books in share mode`;
const openWithin = (milliseconds: number) => `
  set local statement_timeout = ${milliseconds}; select count(*) from books where id < 0; set local statement_timeout = 0`;

/** The most books that the coordinator of Citus gathers before the first of them leaves it. */
const PIECE = 20_000;

/** The last id of a piece. If a quarter of the next ids are books, they are a piece. Otherwise each shard sends the ids of a whole piece. */
const LAST_NEAR = `
  select max(id) as id from books where id > $1 and id <= $1::bigint + ${PIECE} having count(*) >= ${PIECE / 4}`;
const LAST_OF_PIECE = `select id from books where id > $1 order by id offset ${PIECE - 1} limit 1`;

export interface Connection {
  readonly client: pg.ClientBase;
  readonly release: Release;
}

/** The lock with which several servers get one snapshot. */
export interface Barrier {
  /** Opens another connection, for the lock that holds up all writers. */
  connect(): Promise<Connection>;
  /** Ends the attempts to lock. */
  readonly signal: AbortSignal;
}

/**
 * Begins a transaction that reads.
 * @param lock milliseconds for each wait for a lock.
 * @param barrier if several servers keep the books.
 * @throws the driver's error.
 */
export async function beginSnapshot(
  client: pg.ClientBase,
  lock: number,
  times: Times['postgres'],
  barrier?: Barrier,
): Promise<void> {
  const { snapshots, notice, query } = times;
  const beginning = begin(lock, 'isolation level repeatable read read only');
  if (barrier === undefined) {
    await queryOn(client, query)(beginning);
    return;
  }
  const open = queryOn(client, snapshots + notice);
  const { client: locker, release } = await barrier.connect();
  try {
    await lockBooks(locker, barrier.signal, times);
    await open(`${beginning}; ${openWithin(snapshots)}`).finally(() => queryOn(locker, query)('rollback'));
    release(false);
  } catch (error) {
    release(true);
    throw error;
  }
}

async function lockBooks(
  locker: pg.ClientBase,
  signal: AbortSignal,
  { barrier, barrierPause, query: timeout }: Times['postgres'],
): Promise<void> {
  const query = queryOn(locker, timeout);
  for (;;) {
    try {
      await query(lockWithin(barrier, timeout));
      return;
    } catch (error) {
      if (codeOf(error) !== LOCKED || signal.aborted) throw error;
      await query('rollback');
      await pause(barrierPause * (0.5 + Math.random())); // with jitter
    }
  }
}

/**
 * The text of all books: one part, or parts that follow one another.
 * @param textOf the statement that sends the books of a range, which is a condition or empty.
 */
export async function* textParts(
  client: pg.ClientBase,
  isDistributed: boolean,
  textOf: (range: string) => string,
): AsyncGenerator<CopyToStreamQuery, void, void> {
  for (let after = 0; ; ) {
    const last = isDistributed ? await lastAfter(client, after) : undefined;
    const range = last === undefined ? '' : ` and id <= ${last}`;
    yield client.query(copyTo(textOf(isDistributed ? `where id > ${after}${range}` : '')));
    if (last === undefined) return;
    after = last;
  }
}

/** @returns undefined if fewer books than a piece follow. */
async function lastAfter(client: pg.ClientBase, after: number): Promise<number | undefined> {
  const ask = async (text: string) => (await queryOn(client)<{ id: number }>(text, [after]))[0]?.id;
  return (await ask(LAST_NEAR)) ?? (await ask(LAST_OF_PIECE));
}
