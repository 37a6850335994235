// Owns: the table of books in PostgreSQL: made when missing, brought up to date when older.
// A structure that is as it should be is only looked at, so a role without the right to create can serve,
// and no lock is taken on a table in use.

import { setTimeout } from 'node:timers/promises';
import pg from 'pg';

interface Column {
  readonly name: string;
  readonly type: string;
  /** SQL for the value of a book whose row has none. */
  readonly absent: string;
}

const COLUMNS: readonly Column[] = [
  { name: 'title', type: 'text', absent: "''" },
  { name: 'author', type: 'text', absent: "''" },
  { name: 'year', type: 'bigint', absent: '0' },
];

// Ids come from a sequence and stay within what every JSON reader holds exactly (rule 12).
const CREATE_SEQUENCE = `create sequence if not exists books_id_seq maxvalue ${Number.MAX_SAFE_INTEGER}`;
const CREATE_TABLE = `
  create table if not exists books (
    id bigint primary key default nextval('books_id_seq')
      check (id between 1 and ${Number.MAX_SAFE_INTEGER}),
    title text not null default '',
    author text not null default '',
    year bigint not null default 0
      check (year between -${Number.MAX_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER})
  )`;

const DESCRIBE = `
  select attname as name, format_type(atttypid, atttypmod) as type, attnotnull as filled
  from pg_attribute
  where attrelid = to_regclass('books') and attnum > 0 and not attisdropped`;

// Two processes may create the same structure at the same moment (rule 27); the one that comes second
// finds it there when it looks again.
const RACE_LOST = new Set(['23505', '42P07', '42710', '42701', '40001', '40P01', 'XX000']);
const ATTEMPTS = 10;

/**
 * Creates or updates the structure.
 * @throws the driver's error when the database cannot be reached or refuses.
 */
export async function createStructure(connection: pg.ClientConfig): Promise<void> {
  const client = new pg.Client({ ...connection, statement_timeout: 5000, lock_timeout: 5000 });
  client.on('error', () => {}); // the statement under way, if any, reports it
  try {
    await client.connect();
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await update(client);
      } catch (error) {
        const lost = RACE_LOST.has((error as { code?: string }).code ?? '');
        if (!lost || attempt === ATTEMPTS) throw error;
        await setTimeout(Math.random() * 20 * attempt); // milliseconds, with full jitter
      }
    }
  } finally {
    await client.end();
  }
}

async function update(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string; type: string; filled: boolean }>(DESCRIBE);
  if (rows.length === 0) {
    await client.query(CREATE_SEQUENCE);
    await client.query(CREATE_TABLE);
    return;
  }
  const found = new Map(rows.map((column) => [column.name, column]));
  if (found.get('id')?.type !== 'bigint') {
    throw new Error('its table "books" has no 64-bit id, so it is not one of this service');
  }
  for (const { name, type, absent } of COLUMNS) {
    const column = found.get(name);
    if (column === undefined) {
      await client.query(
        `alter table books add column if not exists ${name} ${type} not null default ${absent}`,
      );
      continue;
    }
    if (column.type !== type) await client.query(`alter table books alter column ${name} type ${type}`);
    if (!column.filled) {
      await client.query(`update books set ${name} = ${absent} where ${name} is null`);
      await client.query(`alter table books alter column ${name} set not null`);
    }
  }
}
