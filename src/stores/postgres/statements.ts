// Owns: the statements for books with given ids in PostgreSQL, and SQL that several statements share.

import { StoreUnavailable } from '../../books/store.ts';
import { FIELDS, ID_AND_FIELDS, TEXT_BYTES, withTypes } from '../columns.ts';
import type { Query } from '../query.ts';

/** SQL after `from` for ids. The planner cannot count them: for a hundred it might read all books instead of looking each one up. */
export const idsIn = (parameter: string) => `unnest((select ${parameter}::bigint[]))`;

/** The most bytes of texts of a book that is read with many others: 512 such books take 32 MiB. */
const LARGEST_LIGHT = 65_536;

/** A condition that every book meets whose texts are not large. */
const IS_LIGHT = `${TEXT_BYTES} <= ${LARGEST_LIGHT}`;

/** Makes an acknowledged write durable (rule 23), whatever the server's setting; a stronger setting stays. */
export const DURABLY = `
  (select set_config('synchronous_commit', case level when 'off' then 'on' else level end, true)
   from current_setting('synchronous_commit') as level) is not null`;

export const TYPED = withTypes('bigint');

/** The arrays of the fields: parameters from the number `first` on. */
export const arraysFrom = (first: number) => TYPED.map(({ type }, at) => `$${first + at}::${type}[]`);
const CHANGES = `unnest($1::bigint[], ${arraysFrom(2)}) as change (${ID_AND_FIELDS})`;
/** Assignments to all fields. */
const set = (to: (name: string) => string) => TYPED.map(({ name }) => `${name} = ${to(name)}`);

/** The first parameter of each statement is an array of different ids. */
export type Statements = ReturnType<typeof statementsFor>;

/** The books with the ids of $1: the end of `from` and the beginning of the conditions. */
export const BOOKS = 'books where id = any($1::bigint[])';

// Without the sum, the server would compare each book with all ids.
const isOf = (rows: string) => `books.id + 0 = ${rows}.id and books.id = any($1::bigint[])`;

export const STATEMENTS = statementsFor();

/**
 * For Citus, which finds the server of a shard by the ids in each condition on `books`. It lets a shard move away from under the
 * locks of a statement that only locks, but not before the end of a transaction that may write to it.
 */
export const STATEMENTS_ON_SHARDS = statementsFor(`none as (delete from ${BOOKS} and id < 0),`);

/** @param staying a part of a `with` that keeps the books on their shards. */
function statementsFor(staying = '') {
  const light = TYPED.map(({ name }) => `case when ${IS_LIGHT} then ${name} end as ${name}`);
  const before = (strength: string) => `before as materialized (
    select ${ID_AND_FIELDS} from ${BOOKS} and ${IS_LIGHT} and ${DURABLY} for ${strength} of books skip locked
  )`;
  const states = `
    select id, before.id is null as locked, ${FIELDS}
    from (select id from ${BOOKS}) as books left join before using (id)`;
  /** Waits for the locks of others, in the order of the ids. */
  const lockAs = (columns: string) => `
    with ${staying} locked as (select id, ${columns} from ${BOOKS} and ${DURABLY} order by id for update of books)
    select * from locked`;
  return {
    /** Reads books, with the bytes of large texts instead of the texts. */
    find: `select id, ${light.join(', ')}, case when not (${IS_LIGHT}) then ${TEXT_BYTES} end as weight from ${BOOKS}`,
    findInFull: `select ${ID_AND_FIELDS} from ${BOOKS}`,
    /** Changes books, and returns them as they were. Skips books that others have locked, and large ones: all these are `locked`. */
    update: `
      with change as (select * from ${CHANGES}), ${before('no key update')}, stored as (
        update books set ${set((name) => `coalesce(change.${name}, before.${name})`)}
        from before join change using (id) where ${isOf('before')}
        returning books.id
      ) ${states} where ${allOf('before', 'stored')}`,
    /** Removes books. Skips books that others have locked: these are `locked`. */
    remove: `
      with free as materialized (
        select id from ${BOOKS} and ${DURABLY} for update of books skip locked
      ), removed as (
        delete from books using free where ${isOf('free')} returning books.id
      )
      select id, free.id is null as locked from (select id from ${BOOKS}) as books left join free using (id)
      where ${allOf('free', 'removed')}`,
    /** Locks books and returns them. It skips the same books as `update`. */
    lockFree: `with ${staying} ${before('update')} ${states}`,
    lock: lockAs(FIELDS),
    lockAs,
    /** Changes books that the transaction has locked. `delete` removes such books. */
    store: `update books set ${set((name) => `change.${name}`)} from ${CHANGES} where ${isOf('change')} returning books.id`,
    delete: `delete from books using unnest($1::bigint[]) as gone (id) where ${isOf('gone')} returning books.id`,
  };
}

/** The arrays of a statement. An element is undefined if its field does not change. */
export function columnsOf<Name extends string>(
  names: readonly Name[],
  rows: readonly Partial<Record<Name, unknown>>[],
): unknown[][] {
  return names.map((name) => rows.map((row) => row[name]));
}

/**
 * Writes books that the transaction has locked.
 * @param values of the statement, first the ids.
 * @throws StoreUnavailable if an operator's trigger has skipped some: they would be acknowledged, and were never stored.
 */
export async function writeAll(query: Query, statement: string, values: unknown[]): Promise<void> {
  const [{ length }] = values as [readonly number[]];
  if (length > 0 && (await query(statement, values)).length < length)
    throw new StoreUnavailable(`a trigger has skipped some of the writes: ${length}`, 'refused');
}

/**
 * A condition that every row meets. If an operator's trigger has skipped some of the writes, the statement fails as a whole, with an
 * error of class 22. Otherwise writes would be acknowledged that were never stored.
 * @param sent the name of the rows to be written.
 * @param stored the name of the rows that were written.
 */
export function allOf(sent: string, stored: string): string {
  return `
    (case when (select count(*) from ${stored}) < (select count(*) from ${sent})
      then ('a trigger has skipped some of the writes: ' || (select count(*) from ${sent}))::integer end) is null`;
}
