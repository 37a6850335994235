// Owns: the tables of books and of keys in PostgreSQL, and changing any table of the service: a missing one is created, an older one
// updated. A structure that is up to date is only read, so a role without the right to create can serve, and no lock is taken.
// Does not: hold up programs that use a table. Reads queue behind a statement that waits for a lock, so each wait is short, and is
// repeated.

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { LAST_SEQUENTIAL_ID } from '../../books/book.ts';
import type { Times } from '../../times.ts';
import { inRange, withTypes } from '../columns.ts';
import { createImports } from '../imports.ts';
import type { Query } from '../query.ts';
import { begin, refusePartial } from './limits.ts';
import { stepsToLog } from './log-tables.ts';
import { codeOf, LOCKED, queryOn } from './query.ts';
import { Shards } from './shards.ts';

const COLUMNS = withTypes('bigint');

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

const LOOK = `
  select to_regclass('books') is null as "isNew", to_regclass('book_requests') is not null as "hasRequests",
    to_regclass('book_imports') is not null as "hasImports",
    current_setting('server_encoding') as encoding,
    exists (select from pg_class where oid = to_regclass('books') and relkind = 'p') as "isPartitioned",
    to_regclass('pg_dist_local_group') is not null as "hasCitus"`;
const IS_WORKER = 'select from pg_dist_local_group where groupid <> 0';

const DESCRIBE = `
  select attname as name, format_type(atttypid, atttypmod) as type, attnotnull as filled,
    attnotnull and not atthasdef and attidentity = '' as required, attidentity = 'a' as imposed
  from pg_attribute
  where attrelid = to_regclass('books') and attnum > 0 and not attisdropped`;

// If books were inserted with their ids, such as from a dump, the sequence may be behind them: every new book would be
// refused. While the table is locked, no other process draws an id, so the sequence is never set back (rule 12).
const SEQUENCE_BEHIND = `
  from books where id <= ${LAST_SEQUENTIAL_ID} having max(id) > coalesce(pg_sequence_last_value('books_id_seq'), 0)`;
export const CATCH_UP = `
  do $$ begin
    if exists (select 1 ${SEQUENCE_BEHIND}) then
      lock table books in share row exclusive mode;
      perform setval('books_id_seq', max(id)) ${SEQUENCE_BEHIND};
    end if;
  end $$`;

const PARTITIONED =
  'its table "books" is in partitions, which are no longer served: stop all services, run "begin; create table whole (like books including all); insert into whole select * from books; drop table books; alter table whole rename to books; commit" as its owner, and grant its rights again';

const IN_USE = 'other programs use a table that must be changed: end them, or start again later';

/** Errors after which this process looks again: another one may have made the same change (rule 27). */
const AGAIN = new Set([LOCKED, '23505', '42P07', '42710', '42701', '40001', '40P01', 'XX000']);

/** A database as it was before the start. */
interface Structure {
  readonly isNew: boolean;
  readonly hasRequests: boolean;
  readonly hasImports: boolean;
  readonly encoding: string;
  readonly isPartitioned: boolean;
  readonly hasCitus: boolean;
}

interface Column {
  readonly name: string;
  readonly type: string;
  readonly filled: boolean;
  /** Whether every new row must have a value: the column is not null and has no default. */
  readonly required: boolean;
  /** Whether the server generates every value and accepts no other. */
  readonly imposed: boolean;
}

/**
 * Creates or updates the structure.
 * @param client connected; rewriting a table has no time limit.
 * @throws the driver's error when the server refuses, or stops answering; Error with the reason.
 */
export async function createStructure(
  client: pg.Client,
  times: Times['postgres'],
  mustExist = false,
): Promise<{ isNew: boolean; shards: Shards }> {
  const shards = new Shards();
  let isNew = false;
  await changeStructure(client, times, async (query) => {
    await refusePartial(query);
    const found = (await query<Structure>(LOOK))[0] as Structure;
    if (found.encoding !== 'UTF8')
      throw new Error(`its encoding is ${found.encoding}, but only UTF8 can store every text`);
    if (found.isPartitioned) throw new Error(PARTITIONED);
    if (found.hasCitus && (await query(IS_WORKER)).length > 0)
      throw new Error('it is a worker of Citus: name its coordinator');
    await shards.read(query);
    isNew = found.isNew;
    if (isNew && mustExist) throw new Error('its table "books" has been moved or deleted: put it back');
    const forBooks = isNew
      ? [CREATE_SEQUENCE, CREATE_TABLE]
      : [...stepsFrom(await query<Column>(DESCRIBE)), CATCH_UP];
    const forRequests = found.hasRequests ? [] : CREATE_REQUESTS;
    const forImports = found.hasImports ? [] : [createImports('bigint')];
    const forLog = await stepsToLog(query, shards.areSeveral);
    return [...forBooks, ...forRequests, ...forImports, ...forLog];
  });
  return { isNew, shards };
}

/**
 * Changes the structure in one transaction, unless it is up to date.
 * @param missing finds the statements for the changes.
 * @throws the driver's error when the server refuses; Error when other programs do not leave a table in time.
 */
export async function changeStructure(
  client: pg.Client,
  times: Times['postgres'],
  missing: (query: Query) => Promise<readonly string[]>,
): Promise<void> {
  const query = queryOn(client, times.describe);
  for (const end = performance.now() + times.structureWait; ; ) {
    try {
      await query(begin(times.structureLock, 'isolation level read committed'));
      for (const step of await missing(query)) await client.query(step);
      await client.query('commit');
      return;
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error; // the server may not answer any more
      await client.query('rollback');
      if (!AGAIN.has(code)) throw error;
      if (performance.now() > end) throw code === LOCKED ? new Error(IN_USE, { cause: error }) : error;
      await pause(times.structurePause * (0.5 + Math.random()));
    }
  }
}

/** The statements that change the existing structure into the required one. */
function stepsFrom(columns: readonly Column[]): string[] {
  const found = new Map(columns.map((column) => [column.name, column]));
  const isForeign = ({ name, required }: Column) =>
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
