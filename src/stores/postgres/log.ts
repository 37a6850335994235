// Owns: reading the log of changes in PostgreSQL. It has a row for each change and removal, with the book as it was before, and one for
// each run of new ids. A reader asks for the rows that its previous snapshot did not see. So it misses no long transaction, and waits
// for none. Twin of `sqlite/log.ts`.

import type { EventKey, Selection } from '../../books/change-log.ts';
import type { Query } from '../query.ts';
import { changeOf, IS_SINGLE, isWithin } from '../states.ts';
import type { Shards } from './shards.ts';
import type { Statements } from './statements.ts';

/**
 * A number that grows with each row of the log. The statement locks the sequence, so it reads no table: a program that drops the
 * sequence locks the log after it.
 */
export const WRITTEN = "select coalesce(pg_sequence_last_value('book_log_number'), 0) as written";

/** The shards of the log, each with the present snapshot of its server. */
export const LOG_SHARDS =
  'select place as shard, pg_current_snapshot()::text as now from book_log_state order by place';
export interface LogShard {
  readonly shard: number;
  readonly now: string;
}

/** The shards of the log: one, or on Citus several. The first one keeps the name and the work of each event. */
export interface LogShards {
  readonly all: readonly number[];
  readonly first: number;
  /** @returns the shard with the rows about a book. */
  of(id: number): number;
  /** Those for the books of one shard. */
  readonly statements: Statements;
}

export async function readLogShards(query: Query, shards: Shards): Promise<LogShards> {
  const all = (await query<LogShard>(LOG_SHARDS)).map(({ shard }) => shard);
  const [first = 0] = all;
  const of = (id: number) => {
    const books = shards.shardOf(id);
    return all.find((shard) => shards.shardOf(shard) === books) ?? first;
  };
  return { all, first, of, statements: shards.statements };
}

/**
 * SQL after `from` for the rows of a shard about a book.
 * @param end the order and the limit, which a planner does not apply to the two statements by itself.
 */
export const about = (shard: string, id: string, end = '') => `(
    (select * from book_log where place = ${shard} and book = ${id} ${end})
    union all (select * from book_log where place = ${shard} and ${isWithin(id)} ${end})
  ) as about`;

/** SQL for a time of so many milliseconds since 1970. */
export const timeOf = (milliseconds: number | string) => `to_timestamp(${milliseconds}::float8 / 1000)`;

/** SQL for the condition that a row is about a change of an event. */
export const isInEvent = (event: EventKey) =>
  typeof event === 'number'
    ? `part_of = ${event}`
    : `${IS_SINGLE} and at >= ${timeOf(event.from)} and at < ${timeOf(event.until + 1)}`;

/** A condition for the selected rows of a shard. */
export function conditionOf(selection: Selection, shard: number, id = 'book'): string {
  if ('event' in selection) return isInEvent(selection.event);
  if ('from' in selection) return isInEvent(selection);
  if ('change' in selection) return `${changeOf(id)} = ${selection.change}`;
  const { since, before } = selection;
  return `
    at >= ${timeOf(since)}${before === undefined ? '' : ` and at < to_timestamp(${before} / 1000000.0)`} and (
      part_of is null or part_of not in (select number from book_events where place = ${shard} and kind = 'undo')
    )`;
}

/** SQL after `from` for all rows about a wanted book. With a condition, a planner may read rows of all books by their time. */
export const rowsAbout = (shard: number) =>
  `(select * from ${about(`${shard}`, 'wanted.id')} offset 0) as about`;

/** The rows with the numbers $2 in the shard $3, which are about the books $1. */
export const BEFORE = `
  unnest($1::bigint[], $2::bigint[]) as wanted (id, number)
  join book_log as log on log.place = $3 and log.book = wanted.id and log.number = wanted.number`;
/** @returns the items of each shard. Two undos lock the shards in one order. */
export function byShard<Item>(
  shards: LogShards,
  items: readonly Item[],
  idOf: (item: Item) => number,
): [shard: number, items: Item[]][] {
  const all = [...Map.groupBy(items, (item) => shards.of(idOf(item)))];
  return all.sort(([one], [other]) => one - other);
}

/** How far a reader is in a shard. */
export interface LogPosition {
  /** A snapshot: the reader has all rows that it sees. */
  readonly seen: string;
  /** A later snapshot. Midway to it, the reader also has its rows up to a transaction and a number. */
  readonly target: string;
  /** That transaction; `0` if the reader is not midway. */
  readonly xid: string;
  readonly number: number;
  /** The range of books that are still to be read. */
  readonly next: number;
  readonly last: number;
}

/** A range without ids. */
export const NO_RANGE = { next: 1, last: 0 };

/**
 * SQL for the rows that a reader lacks, in three kinds: the rest of its transaction; later transactions; transactions that were in
 * progress in the snapshot `seen`. A reader that is midway has the rows before its position already. `state`
 * is the position.
 * @param limit of each kind. It makes a planner read the rows in their order.
 */
export const behind = (limit: number | 'all', condition = 'true') => {
  const kinds = [
    'xid = state.xid and number > state.number',
    'xid > state.xid and xid >= pg_snapshot_xmax(seen)',
    'xid > state.xid and xid = any(array(select pg_snapshot_xip(seen)))',
  ].map((kind) => {
    return `(select xid, number, book, last from book_log
      where book_log.place = state.place and ${kind} and ${condition} order by xid, number limit ${limit})`;
  });
  return `lateral (${kinds.join(' union all ')}) as behind`;
};

/** Rows that are read together. */
const ROWS = 1000;

/** Midway, the reader gets only rows that the target sees: a transaction that has ended since may have a lower number. */
const NEXT_ROWS = `
  select behind.xid::text, behind.number, book, behind.last, pg_current_snapshot()::text as now
  from (
    select $1::bigint as place, $2::pg_snapshot as seen, $3::pg_snapshot as target, $4::xid8 as xid, $5::bigint as number
  ) as state cross join ${behind(ROWS, "(state.xid = '0' or pg_visible_in_snapshot(xid, target))")}
  order by behind.xid, behind.number limit ${ROWS}`;

interface Row {
  readonly xid: string;
  readonly number: number;
  readonly book: number;
  readonly last: number;
  /** The snapshot that sees the row. */
  readonly now: string;
}

/**
 * Reads the next rows of a shard, or the next books of a range. The rest of a run becomes a range.
 * @param most books.
 * @param columns of the books of a range, `id` among them.
 * @returns the id of each book once, the books if they are of a range, the position after them, and whether there are no more rows.
 */
export async function readLog<Book extends { readonly id: number }>(
  query: Query,
  shard: number | string,
  before: LogPosition,
  most: number,
  columns: string,
): Promise<{ ids: number[]; books?: Book[]; position: LogPosition; isEnd: boolean }> {
  if (before.next <= before.last) {
    const range = `select ${columns} from books where id between $1 and $2 order by id limit $3`;
    const books = await query<Book>(range, [before.next, before.last, most]);
    const ids = books.map(({ id }) => id);
    const rest = ids.length < most ? NO_RANGE : { next: Number(ids.at(-1)) + 1 };
    return { ids, books, position: { ...before, ...rest }, isEnd: false };
  }
  const { seen, target, xid, number } = before;
  const rows = await query<Row>(NEXT_ROWS, [shard, seen, target, xid, number]);
  const ids = new Set<number>();
  let reached: Row | undefined;
  let range = NO_RANGE;
  for (const row of rows) {
    reached = row;
    let next = Math.max(1, row.book);
    const last = Math.min(row.last, Number.MAX_SAFE_INTEGER); // another program may have inserted the row
    for (; next <= last && ids.size < most; next += 1) ids.add(next);
    if (next <= last) range = { next, last };
    if (ids.size >= most) break;
  }
  const towards = xid === '0' ? (reached?.now ?? target) : target;
  const isAtTarget = reached === rows.at(-1) && rows.length < ROWS;
  const position = isAtTarget
    ? {
        seen: reached === undefined && xid === '0' ? seen : towards,
        target: towards,
        xid: '0',
        number: 0,
        ...range,
      }
    : { seen, target: towards, xid: reached?.xid ?? xid, number: reached?.number ?? number, ...range };
  return { ids: [...ids], position, isEnd: rows.length === 0 && xid === '0' };
}
