// Owns: all books as they are at one moment, whichever servers keep them, and their text in the order of their ids.
// Does not: hold writers up for longer than the snapshots of all servers take.

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { type CopyToStreamQuery, to as copyTo } from 'pg-copy-streams';
import type { Times } from '../../times.ts';
import { NUMBERS } from './hosts.ts';
import { limitLocks, withTimeout } from './limits.ts';

/** The lock could not be had in time. */
const LOCKED = '55P03';

// Citus has no snapshot over several servers. While the lock is held, no transaction that writes is in progress on any of them;
// the statement after it opens the snapshot of each. They outlast the lock, which ends with the savepoint.
const barrierOf = (milliseconds: number) => `
  savepoint barrier; set local lock_timeout = ${milliseconds}; lock table books in share mode;
  select count(*) from books where id < 0; rollback to savepoint barrier;`;

/** The most books that the coordinator of Citus gathers before the first of them leaves it. */
const PIECE = 20_000;

/** The last id of a piece: of as many ids if a quarter of them are books; otherwise each shard sends as many ids as a piece has. */
const LAST_NEAR = `
  select max(id) as id from books where id > $1 and id <= $1::bigint + ${PIECE} having count(*) >= ${PIECE / 4}`;
const LAST_OF_PIECE = `select id from books where id > $1 order by id offset ${PIECE - 1} limit 1`;

/**
 * Begins a transaction that reads.
 * @param isDistributed whether several servers keep the books.
 * @param lock milliseconds for each wait for a lock.
 * @param signal ends the attempts to get the snapshots of several servers.
 * @throws the driver's error.
 */
export async function beginSnapshot(
  client: pg.ClientBase,
  isDistributed: boolean,
  lock: number,
  { barrier, barrierPause, query }: Times['postgres'],
  signal: AbortSignal,
): Promise<void> {
  const settings = limitLocks(lock);
  const text = `begin isolation level repeatable read read only; ${isDistributed ? barrierOf(barrier) : ''} ${settings}`;
  for (;;) {
    try {
      await client.query(withTimeout(text, [], query));
      return;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || error.code !== LOCKED || signal.aborted) throw error;
      await client.query(withTimeout('rollback', [], query));
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

/** @returns undefined if less than a piece is left. */
async function lastAfter(client: pg.ClientBase, after: number): Promise<number | undefined> {
  const ask = async (text: string) =>
    (await client.query<{ id: number }>({ text, values: [after], types: NUMBERS })).rows[0]?.id;
  return (await ask(LAST_NEAR)) ?? (await ask(LAST_OF_PIECE));
}
