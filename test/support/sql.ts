// Owns: SQL on a store, as another program would run it.

import { DatabaseSync } from 'node:sqlite';
import { execute } from './postgres.ts';
import { fileOf } from './service.ts';

/** Milliseconds to wait for a service that writes. */
const BUSY_TIMEOUT = 60_000;

/** Runs one statement on a connection of its own, and returns its rows. */
export async function executeOn(dbUrl: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  if (!dbUrl.startsWith('sqlite:')) return execute(dbUrl, sql);
  const db = new DatabaseSync(fileOf(dbUrl), { timeout: BUSY_TIMEOUT });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}
