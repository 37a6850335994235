// Owns: locks on a store, as another program would hold them.

import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { fileOf } from './service.ts';

/** Blocks writes to the store until the returned function is called; books can be read. */
export function holdWrites(dbUrl: string): Promise<() => Promise<void>> {
  return hold(dbUrl, 'exclusive');
}

/** The same; on PostgreSQL, books cannot be read either. */
export function holdBooks(dbUrl: string): Promise<() => Promise<void>> {
  return hold(dbUrl, 'access exclusive');
}

/** Blocks the index of books; on SQLite, all writes. */
export async function holdIndex(dbUrl: string): Promise<() => Promise<void>> {
  if (dbUrl.startsWith('sqlite:')) return holdWrites(dbUrl);
  const client = new pg.Client({ connectionString: dbUrl });
  await client.connect();
  await client.query('begin; select from book_index_state for update');
  return () => client.end();
}

async function hold(dbUrl: string, mode: string): Promise<() => Promise<void>> {
  if (dbUrl.startsWith('sqlite:')) {
    const db = new DatabaseSync(fileOf(dbUrl));
    db.exec('begin immediate');
    return async () => db.close();
  }
  const client = new pg.Client({ connectionString: dbUrl });
  await client.connect();
  await client.query(`begin; lock table books in ${mode} mode`);
  return () => client.end();
}
