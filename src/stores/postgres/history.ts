// Owns: reading pages of changes and the states of a book from the log in PostgreSQL (rules H1 to H4), and looking for later
// changes. Twin of `sqlite/history.ts`.

import { setTimeout as pause } from 'node:timers/promises';
import type { QueryResultRow } from 'pg';
import type { Book } from '../../books/book.ts';
import { HEAVY, type NotAnswered, type PageOfChanges, type States } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { FIELDS, TEXT_BYTES } from '../columns.ts';
import { BookStates, changeOf, type Fields, hasChange, type RowOfBook } from '../states.ts';
import type { Connections } from './connections.ts';
import { about, behind, type LogPosition, type LogShard, NO_RANGE, readLog } from './log.ts';
import { codeOf, type Query } from './query.ts';

/** Milliseconds, and microseconds, since 1970. */
export const milliseconds = (at: string) => `floor(extract(epoch from ${at}) * 1000)::float8`;
const microseconds = (at: string) =>
  `case when isfinite(${at}) then (extract(epoch from ${at}) * 1000000)::bigint::text else ${at}::text end`;

/** Identifies the server, its timeline and its log. A promotion, or the restore of a backup, begins another timeline. */
const SERVER = `
  (pg_control_system()).system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    || '/' || 'book_log'::regclass::oid`;

/** The server and the newest row of the shard $1. The row is still there later, unless the server was restored. */
const shardWith = (more: string) => `
  select ${SERVER} as server, newest.xid || '/' || newest.number || '/' || ${microseconds('newest.at')} as newest, ${more}
  from book_log_state as state cross join lateral (
    select xid, number, at from book_log where place = $1 order by xid desc, number desc limit 1
  ) as newest
  where state.place = $1`;
const SHARD_NOW = shardWith('state.place as shard, pg_current_snapshot()::text as now');

/**
 * Also whether the shard has all changes after a page that saw the snapshot $2 when the newest row was $3. It lacks some if a row was
 * removed of a transaction that was in progress then.
 */
const SHARD_SINCE = shardWith(`
  pruned < pg_snapshot_xmin($2::pg_snapshot)
    and exists (
      select from book_log where place = $1 and xid = split_part($3, '/', 1)::xid8
        and number = split_part($3, '/', 2)::bigint and ${microseconds('at')} = split_part($3, '/', 3)
    ) and pg_visible_in_snapshot(began, $2::pg_snapshot) as "isKnown"`);

/** Whether the shard $1 has rows that the snapshot $2 does not see. */
const HAS_MORE = `
  select pg_current_snapshot()::text as now, exists (select from ${behind(1)}) as "hasMore"
  from (select $1::bigint as place, $2::pg_snapshot as seen, '0'::xid8 as xid, 0::bigint as number) as state`;

/** When the kept part of the log begins. */
const BEGAN = '(select at from book_log where place = $1 order by xid, number limit 1)';

/** When the latest change of each book was noted. */
const LATEST = `
  select id, ${milliseconds(`coalesce(
    (select at from ${about('$1', 'id', 'order by number desc limit 1')} order by number desc limit 1), ${BEGAN}
  )`)} as at
  from unnest($2::bigint[]) as wanted (id)`;

const ID = '$2::bigint';
const AT = `${milliseconds('at')} as at`;
const ROW = `select ${FIELDS} from ${about('$1', ID)} where ${hasChange('$3::bigint')} and ${changeOf(ID)} = $3`;

/** The most rows about a book that are read together. */
const ROWS = 100;
const NEWEST = `order by number desc limit ${ROWS}`;
/** Rows about the book $2 before the number $3, the newest first, and none after heavy ones. */
const OLDER_ROWS = `
  select change, ${AT}, ${FIELDS} from (
    select *, sum(bytes) over (order by change desc) - bytes as before from (
      select ${changeOf(ID)} as change, at, ${FIELDS}, ${TEXT_BYTES} as bytes
      from ${about('$1', ID, `and number < $3 ${NEWEST}`)} ${NEWEST}
    ) as rows
  ) as rows where before < ${HEAVY} order by change desc`;
/** The present state before such rows, all from one snapshot. */
const ALL_ROWS = `
  select null::bigint as change, null::float8 as at, ${FIELDS} from books where id = $2
  union all (${OLDER_ROWS}) order by change desc nulls first`;

interface ShardNow {
  readonly server: string;
  readonly newest: string;
}

/** A shard in a cursor. */
interface ShardInCursor extends LogPosition, ShardNow {
  readonly shard: number;
}

/** The values of a shard in a cursor. */
const NAMES = ['shard', 'server', 'newest', 'seen', 'target', 'xid', 'number', 'next', 'last'] as const;
const NUMBERS: ReadonlySet<string> = new Set(['shard', 'number', 'next', 'last']);

/** The class of codes for values that do not fit their type. */
const INVALID_VALUE = '22';

type Find = (
  ids: readonly number[],
  deadline: number,
) => Promise<readonly (Book | undefined | NotAnswered)[]>;

export class History {
  readonly #connections: Connections;
  readonly #times: Times['postgres'];
  readonly #shards: readonly LogShard[];
  readonly #shardOf: (id: number) => number;
  readonly #find: Find;
  readonly #watches = new Set<() => void>();

  /**
   * @param shardOf finds the shard of the log that has a book.
   * @param find of the store.
   */
  constructor(
    connections: Connections,
    times: Times['postgres'],
    shards: readonly LogShard[],
    shardOf: (id: number) => number,
    find: Find,
  ) {
    this.#connections = connections;
    this.#times = times;
    this.#shards = shards;
    this.#shardOf = shardOf;
    this.#find = find;
  }

  /** @param cursor undefined to begin with all books. */
  async changes(cursor: unknown, most: number, deadline: number): Promise<PageOfChanges | 'gone'> {
    const shards = cursor === undefined ? await this.#begin(this.#queryBy(deadline)) : readCursor(cursor);
    if (shards === undefined) return 'gone';
    try {
      for (let unread = shards.length; unread > 0; unread -= 1) {
        const [first, ...others] = shards as [ShardInCursor, ...ShardInCursor[]];
        const read = await this.#read(first, most, deadline);
        if (read === 'gone') return 'gone';
        const { changes, after } = read;
        // A shard with changes comes again after the others. All books come first.
        const isInRange = after.next <= after.last;
        shards.splice(0, shards.length, ...(isInRange ? [after, ...others] : [...others, after]));
        if (changes.length > 0 || unread === 1) return { changes, cursor: cursorOf(shards) };
      }
    } catch (error) {
      if (codeOf(error)?.startsWith(INVALID_VALUE)) return 'gone'; // the cursor has texts that are no snapshots
      throw error;
    }
    return 'gone'; // it has no shards
  }

  /** @returns the shards. The first one has the range of all books. */
  async #begin(query: Query): Promise<ShardInCursor[]> {
    const found = await Promise.all(
      this.#shards.map(({ shard }) => query<ShardNow & LogShard>(SHARD_NOW, [shard])),
    );
    return found.flat().map(({ shard, now, server, newest }, position) => {
      const range = position === 0 ? { next: 1, last: Number.MAX_SAFE_INTEGER } : NO_RANGE;
      return { shard, server, newest, seen: now, target: now, xid: '0', number: 0, ...range };
    });
  }

  /** Reads on in a shard, with fewer books if they are heavy. */
  async #read(
    { shard, server, newest, ...position }: ShardInCursor,
    most: number,
    deadline: number,
  ): Promise<{ changes: PageOfChanges['changes']; after: ShardInCursor } | 'gone'> {
    const query = this.#queryBy(deadline);
    for (let before: LogPosition = position, count = most; ; ) {
      const { ids, position: after, isEnd } = await readLog(query, shard, before, count, 'id');
      if (ids.length === 0 && !isEnd) {
        before = after;
        continue;
      }
      const dates = await this.#latest(query, ids); // in this order: a change in between comes again
      const books = ids.length === 0 ? [] : await this.#find(ids, deadline);
      if (books.includes(null)) {
        count = Math.max(1, count >> 1);
        continue;
      }
      // Asked last, so the log was whole when it was read, and the page is not newer than its newest row.
      const [now] = await query<ShardNow & { isKnown: boolean }>(SHARD_SINCE, [shard, position.seen, newest]);
      if (now?.server !== server || !now.isKnown) return 'gone';
      const changes = ids.map((id, index) => ({
        id,
        at: dates.get(id) ?? 0,
        book: books[index] ?? undefined,
      }));
      return { changes, after: { shard, server, newest: now.newest, ...after } };
    }
  }

  /** When the latest change of each book was noted. */
  async #latest(query: Query, ids: readonly number[]): Promise<ReadonlyMap<number, number>> {
    const all = await Promise.all(
      [...Map.groupBy(ids, this.#shardOf)].map(([shard, ids]) =>
        query<{ id: number; at: number }>(LATEST, [shard, ids]),
      ),
    );
    return new Map(all.flat().map(({ id, at }) => [id, at]));
  }

  states(id: number, before: number | undefined, most: number, deadline: number): Promise<States> {
    return statesOf(this.#queryBy(deadline), this.#shardOf(id), id, before, most);
  }

  /** Calls back after each write: of this process at once, of others somewhat later. @returns a function that ends the watch. */
  watch(onChange: () => void): () => void {
    this.#watches.add(onChange);
    const closing = new AbortController();
    void this.#lookForOthers(onChange, closing.signal);
    return () => {
      closing.abort();
      this.#watches.delete(onChange);
    };
  }

  /** A write of this process has been acknowledged. */
  noteWrite(): void {
    for (const onChange of this.#watches) onChange();
  }

  async #lookForOthers(onChange: () => void, signal: AbortSignal): Promise<void> {
    const seen = new Map<number, string>();
    while (!signal.aborted) {
      const query = this.#queryBy(performance.now() + this.#times.query);
      let hasMore = false;
      for (const { shard, now } of this.#shards) {
        const values = [shard, seen.get(shard) ?? now];
        const asked = query<{ now: string; hasMore: boolean }>(HAS_MORE, values);
        const [found] = await asked.catch(() => []); // requests report it
        if (found === undefined) continue;
        hasMore ||= found.hasMore || !seen.has(shard);
        seen.set(shard, found.now);
      }
      if (hasMore) onChange();
      await pause(this.#times.changesPause, undefined, { ref: false, signal }).catch(() => {});
    }
  }

  #queryBy(deadline: number): Query {
    return (text, values = []) => this.#connections.query('batches', text, values, deadline);
  }
}

/**
 * The states of a book.
 * @param shard of the log, with the rows about the book.
 * @param before the number of a change; undefined to begin with the present state.
 */
export async function statesOf(
  query: Query,
  shard: number,
  id: number,
  before: number | undefined,
  most: number,
): Promise<States> {
  const ask = <Row extends QueryResultRow>(text: string, more: unknown) =>
    query<Row>(text, [shard, id, more]);
  let end = before ?? Number.MAX_SAFE_INTEGER;
  let rows = await ask<RowOfBook>(before === undefined ? ALL_ROWS : OLDER_ROWS, end);
  const isPresent = rows[0]?.change === null;
  const [latest] = before === undefined ? rows.slice(0, isPresent ? 1 : 0) : await ask<Fields>(ROW, before);
  if (before !== undefined && latest === undefined) return { states: [], next: undefined }; // it is no longer kept
  if (isPresent) rows = rows.slice(1);
  const states = new BookStates(id, latest, most);
  for (; rows.length > 0; rows = await ask<RowOfBook>(OLDER_ROWS, end)) {
    for (const row of rows) if (states.add(row)) return states.full;
    end = (rows.at(-1) as RowOfBook).change;
  }
  const [began] = await query<{ at: number }>(`select ${milliseconds(BEGAN)} as at`, [shard]);
  return states.whole(began?.at ?? 0);
}

function cursorOf(shards: readonly ShardInCursor[]): unknown[] {
  return shards.map((shard) => NAMES.map((name) => shard[name]));
}

/** @returns undefined if the cursor is not one of this store. */
function readCursor(cursor: unknown): ShardInCursor[] | undefined {
  if (!Array.isArray(cursor)) return undefined;
  const shards = cursor.map((values) => {
    if (!Array.isArray(values) || values.length !== NAMES.length) return undefined;
    const isValid = NAMES.every((name, position) => {
      const value: unknown = values[position];
      return NUMBERS.has(name) ? Number.isSafeInteger(value) : typeof value === 'string';
    });
    return isValid ? Object.fromEntries(NAMES.map((name, position) => [name, values[position]])) : undefined;
  });
  return shards.includes(undefined) ? undefined : (shards as unknown as ShardInCursor[]);
}
