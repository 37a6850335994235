// Owns: SQL on a store, as another program would run it, and the locks that such a program would hold.

import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { execute } from './postgres.ts';
import { fileOf } from './service.ts';
import { waitUntil } from './wait.ts';

/** Milliseconds to wait for a service that writes. */
const BUSY_TIMEOUT = 60_000;

/** Runs one statement on a separate connection, and returns its rows. */
export async function executeOn(dbUrl: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  if (!dbUrl.startsWith('sqlite:')) return execute(dbUrl, sql);
  using db = new DatabaseSync(fileOf(dbUrl), { timeout: BUSY_TIMEOUT });
  return db.prepare(sql).all();
}

/** Runs several statements in the same way. */
export async function runOn(dbUrl: string, sql: string): Promise<void> {
  if (!dbUrl.startsWith('sqlite:')) return void (await execute(dbUrl, sql));
  using db = new DatabaseSync(fileOf(dbUrl), { timeout: BUSY_TIMEOUT });
  db.exec(sql);
}

/**
 * Lets the changes that the log has so far be of an earlier time.
 * @param hours how long ago. @param condition for their rows.
 * @returns a time between them and now.
 */
export async function makeEarlier(dbUrl: string, hours: number, condition = 'true'): Promise<string> {
  const time = Date.now() - hours * 3_600_000;
  const at = dbUrl.startsWith('sqlite:') ? time : `'${new Date(time).toISOString()}'`;
  await executeOn(dbUrl, `update book_log set at = ${at} where ${condition}`);
  return new Date(time + 1_800_000).toISOString();
}

/** Resolves once no more than the newest row of each place is left of the log. */
export async function logPruned(dbUrl: string): Promise<void> {
  const countOf = async (table: string) => (await executeOn(dbUrl, `select 1 from ${table}`)).length;
  await waitUntil(async () => (await countOf('book_log')) === (await countOf('book_log_state')));
}

/** Blocks writes to the store until the returned function is called; books can be read. */
export function holdWrites(dbUrl: string): Promise<() => Promise<void>> {
  return hold(dbUrl, 'lock table books in exclusive mode');
}

/** The same; on PostgreSQL, books cannot be read either. */
export function holdBooks(dbUrl: string): Promise<() => Promise<void>> {
  return hold(dbUrl, 'lock table books in access exclusive mode');
}

/** Blocks the index of books; on SQLite, all writes. */
export function holdIndex(dbUrl: string): Promise<() => Promise<void>> {
  return hold(dbUrl, 'select from book_index_state for update');
}

/** @param lock what blocks on PostgreSQL. */
async function hold(dbUrl: string, lock: string): Promise<() => Promise<void>> {
  if (dbUrl.startsWith('sqlite:')) {
    const db = new DatabaseSync(fileOf(dbUrl), { timeout: BUSY_TIMEOUT });
    db.exec('begin immediate');
    return async () => db.close();
  }
  const client = new pg.Client({ connectionString: dbUrl });
  await client.connect();
  await client.query(`begin; ${lock}`);
  return () => client.end();
}
