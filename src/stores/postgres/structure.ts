// Owns: the tables of books and of keys in PostgreSQL: each is created if missing, and updated if older. A structure that is up to
// date is only read, so a role without the right to create can serve, and no lock is taken on a table in use.
// Does not: hold up programs that use a table. Reads queue behind a lock that is waited for, so each wait is short,
// and they are repeated.

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { LAST_SEQUENTIAL_ID } from '../../books/book.ts';
import type { Times } from '../../times.ts';
import { withTypes } from '../columns.ts';
import { begin, withTimeout } from './limits.ts';

const COLUMNS = withTypes('bigint');

const inRange = (name: string) =>
  `${name} between -${Number.MAX_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER}`;

// Ids come from a sequence and stay within the integers that every JSON reader represents exactly (rule 12).
const CREATE_SEQUENCE = `create sequence if not exists books_id_seq maxvalue ${Number.MAX_SAFE_INTEGER}`;
const CREATE_TABLE = `
  create table if not exists books (
    id bigint primary key default nextval('books_id_seq')
      check (id between 1 and ${Number.MAX_SAFE_INTEGER}),
    ${COLUMNS.map(({ name, isText, definition }) => (isText ? definition : `${definition} check (${inRange(name)})`))}
  )`;

/** The keys of requests that store their books once (rules I1 to I4). */
const CREATE_REQUESTS = [
  `create table if not exists book_requests (
    key text collate "C" primary key, fingerprint text not null, ids bigint[] not null,
    made_at timestamptz not null default now()
  )`,
  'create index if not exists book_requests_made_at on book_requests (made_at)',
];
const HAS_REQUESTS = "select to_regclass('book_requests') is not null as there";

const DESCRIBE = `
  select attname as name, format_type(atttypid, atttypmod) as type, attnotnull as filled,
    attnotnull and not atthasdef and attidentity = '' as required, attidentity = 'a' as imposed
  from pg_attribute
  where attrelid = to_regclass('books') and attnum > 0 and not attisdropped`;

// If books were inserted with their ids, such as from a dump, the sequence may be behind them: every new book would be
// refused. While the table is locked, no other process draws an id, so the sequence is never set back (rule 12).
const DESCRIBE_SEQUENCE = `
  select to_regclass('books_id_seq') is null as missing,
    coalesce(
      (select max(id) from books where id <= ${LAST_SEQUENTIAL_ID})
        > coalesce(pg_sequence_last_value(to_regclass('books_id_seq')), 0), false
    ) as behind`;
export const CATCH_UP = `
  do $$ begin
    lock table books in share row exclusive mode;
    perform setval('books_id_seq', max(id)) from books where id <= ${LAST_SEQUENTIAL_ID}
    having max(id) > coalesce(pg_sequence_last_value('books_id_seq'), 0);
  end $$`;

// Two processes may create the same structure at the same moment (rule 27); the second one finds it when it looks
// again.
const RACE_LOST = new Set(['23505', '42P07', '42710', '42701', '40001', '40P01', 'XX000']);
const MAX_ATTEMPTS = 10;

/** The lock could not be had in time. */
const LOCKED = '55P03';
const IN_USE = 'other programs use a table that must be changed: end them, or start again later';

const IS_PARTITIONED = "select from pg_class where oid = to_regclass('books') and relkind = 'p'";

interface Found {
  readonly name: string;
  readonly type: string;
  readonly filled: boolean;
  /** Not null and without a default: every new row must have a value. */
  readonly required: boolean;
  /** The server generates every value and accepts no other. */
  readonly imposed: boolean;
}

interface FoundSequence {
  readonly missing: boolean;
  /** It would give out ids that books already have. */
  readonly behind: boolean;
}

/**
 * Creates or updates the structure.
 * @param client connected; rewriting a table has no time limit.
 * @returns whether there was none.
 * @throws the driver's error when the server refuses, or stops answering.
 */
export async function createStructure(client: pg.Client, times: Times['postgres']): Promise<boolean> {
  const [encoding] = await look<{ server_encoding: string }>(client, times, 'show server_encoding');
  if (encoding?.server_encoding !== 'UTF8') {
    throw new Error(`its encoding is ${encoding?.server_encoding}, but only UTF8 can store every text`);
  }
  let isNew = false;
  await changeStructure(client, times, async () => {
    const columns = await look<Found>(client, times, DESCRIBE);
    const [requests] = await look<{ there: boolean }>(client, times, HAS_REQUESTS);
    const forRequests = requests?.there ? [] : CREATE_REQUESTS;
    isNew = columns.length === 0;
    if (isNew) return [CREATE_SEQUENCE, CREATE_TABLE, ...forRequests];
    const [sequence] = await look<FoundSequence>(client, times, DESCRIBE_SEQUENCE);
    return [...stepsFrom(columns), ...catchUpFrom(sequence), ...forRequests];
  });
  return isNew;
}

/**
 * Changes the structure in one transaction, unless it is up to date.
 * @param missing the statements that are needed.
 * @throws the driver's error when the server refuses; Error when other programs do not leave a table in time.
 */
export async function changeStructure(
  client: pg.Client,
  times: Times['postgres'],
  missing: () => Promise<readonly string[]>,
): Promise<void> {
  const end = performance.now() + times.structureWait;
  for (let lost = 0; ; ) {
    try {
      await look(client, times, begin(times.structureLock, 'isolation level read committed'));
      for (const step of await missing()) await client.query(step);
      await client.query('commit');
      return;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error; // the server may not answer any more
      await client.query('rollback');
      const { code = '' } = error;
      if (code === LOCKED) {
        if (performance.now() > end) throw new Error(IN_USE, { cause: error });
        await pause(times.structurePause * (0.5 + Math.random()));
      } else {
        lost += 1;
        if (!RACE_LOST.has(code) || lost === MAX_ATTEMPTS) throw error;
        await pause(Math.random() * times.racePause * lost);
      }
    }
  }
}

/** @throws the driver's error when the server stops answering. */
export async function areBooksPartitioned(client: pg.Client, times: Times['postgres']): Promise<boolean> {
  return (await look(client, times, IS_PARTITIONED)).length > 0;
}

/** @throws the driver's error when the server refuses, or stops answering. */
export async function look<Row extends pg.QueryResultRow>(
  client: pg.Client,
  { describe }: Times['postgres'],
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return (await client.query<Row>(withTimeout(text, values, describe))).rows;
}

function catchUpFrom(sequence: FoundSequence | undefined): readonly string[] {
  if (sequence?.missing)
    throw new Error('its table "books" exists, but its sequence "books_id_seq" does not');
  return sequence?.behind ? [CATCH_UP] : [];
}

/** The statements that change the existing structure into the required one. */
function stepsFrom(columns: readonly Found[]): string[] {
  const found = new Map(columns.map((column) => [column.name, column]));
  const isForeign = ({ name, required }: Found) =>
    required && !COLUMNS.some((column) => column.name === name);
  if (found.get('id')?.type !== 'bigint' || columns.some(isForeign)) {
    throw new Error('its table "books" does not belong to this service');
  }
  if (found.get('id')?.imposed) {
    throw new Error('its table "books" has ids "generated always": change them to "generated by default"');
  }
  return COLUMNS.flatMap(({ name, type, absent, definition }) => {
    const column = found.get(name);
    if (column === undefined) return [`alter table books add column ${definition}`];
    const retype = column.type === type ? [] : [`alter table books alter column ${name} type ${type}`];
    const fill = column.filled
      ? []
      : [
          `update books set ${name} = ${absent} where ${name} is null`,
          `alter table books alter column ${name} set not null`,
        ];
    return [...retype, ...fill];
  });
}
