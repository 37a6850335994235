// Owns: the log of changes of a served PostgreSQL (rules H1 to H5): pages of changes, looking for later ones, and transactions of
// an undo. Twin of `sqlite/served-log.ts`.

import { setTimeout as pause } from 'node:timers/promises';
import type { LogReader, LogWriter, PageOfChanges, ServedLog, States } from '../../books/change-log.ts';
import type { Times } from '../../times.ts';
import type { Query } from '../query.ts';
import type { PostgresBooks } from './books.ts';
import type { Connections } from './connections.ts';
import { BEGAN, milliseconds, statesOf } from './history.ts';
import { about, behind, type LogPosition, type LogShard, type LogShards, NO_RANGE, readLog } from './log.ts';
import type { LogKeeper } from './log-keeper.ts';
import { codeOf } from './query.ts';
import { PostgresLogReader, PostgresLogWriter } from './undo.ts';

/** Microseconds since 1970. */
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

/** When the latest change of each book was noted. */
const LATEST = `
  select id, ${milliseconds(`coalesce(
    (select at from ${about('$1', 'id', 'order by number desc limit 1')} order by number desc limit 1), ${BEGAN}
  )`)} as at
  from unnest($2::bigint[]) as wanted (id)`;

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

export class PostgresLog implements ServedLog {
  readonly #connections: Connections;
  readonly #keeper: LogKeeper | undefined;
  readonly #books: PostgresBooks;
  readonly #shards: LogShards;
  readonly #times: Times['postgres'];

  /** @param keeper undefined on Citus. */
  constructor(
    connections: Connections,
    keeper: LogKeeper | undefined,
    books: PostgresBooks,
    shards: LogShards,
    times: Times['postgres'],
  ) {
    this.#connections = connections;
    this.#keeper = keeper;
    this.#books = books;
    this.#shards = shards;
    this.#times = times;
  }

  /** @param cursor undefined to begin with all books, `now` with later changes. */
  async changes(cursor: unknown, most: number, deadline: number): Promise<PageOfChanges | 'gone'> {
    await this.#keeper?.keep(deadline);
    const isBeginning = cursor === undefined || cursor === 'now';
    const shards = isBeginning ? await this.#begin(cursor, this.#queryBy(deadline)) : readCursor(cursor);
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
        if (changes.length > 0 || unread === 1)
          return { changes, cursor: shards.map((shard) => NAMES.map((name) => shard[name])) };
      }
    } catch (error) {
      if (codeOf(error)?.startsWith(INVALID_VALUE)) return 'gone'; // the cursor has texts that are no snapshots
      throw error;
    }
    return 'gone'; // it has no shards
  }

  /** @returns the shards. The first one has the range of all books, unless the cursor is `now`. */
  async #begin(cursor: 'now' | undefined, query: Query): Promise<ShardInCursor[]> {
    const found = await Promise.all(
      this.#shards.all.map((shard) => query<ShardNow & LogShard>(SHARD_NOW, [shard])),
    );
    return found.flat().map(({ shard, now, server, newest }, position) => {
      const range =
        position === 0 && cursor !== 'now' ? { next: 1, last: Number.MAX_SAFE_INTEGER } : NO_RANGE;
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
      const books = ids.length === 0 ? [] : await this.#books.find(ids, deadline);
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
      [...Map.groupBy(ids, this.#shards.of)].map(([shard, ids]) =>
        query<{ id: number; at: number }>(LATEST, [shard, ids]),
      ),
    );
    return new Map(all.flat().map(({ id, at }) => [id, at]));
  }

  async states(id: number, before: number | undefined, most: number, deadline: number): Promise<States> {
    await this.#keeper?.keep(deadline);
    return statesOf(this.#queryBy(deadline), this.#shards.of(id), id, before, most);
  }

  async read<Result>(
    read: (log: LogReader) => Promise<Result>,
    deadline = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    await this.#keeper?.keep(deadline);
    const work = (query: Query) => read(new PostgresLogReader(query, this.#shards));
    return this.#connections.transaction('batches', deadline, work);
  }

  async write<Result>(
    write: (log: LogWriter) => Promise<Result>,
    deadline = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    await this.#keeper?.keep(deadline);
    const work = (query: Query) => write(new PostgresLogWriter(query, this.#shards));
    return this.#books.written(this.#connections.transaction('batches', deadline, work));
  }

  /** Calls back after each write: of this process at once, of others somewhat later. @returns a function that ends the watch. */
  watch(onChange: () => void): () => void {
    this.#books.watches.add(onChange);
    const closing = new AbortController();
    void this.#lookForOthers(onChange, closing.signal);
    return () => {
      closing.abort();
      this.#books.watches.delete(onChange);
    };
  }

  async #lookForOthers(onChange: () => void, signal: AbortSignal): Promise<void> {
    const seen = new Map<number, string>();
    while (!signal.aborted) {
      const query = this.#queryBy(performance.now() + this.#times.query);
      let hasMore = false;
      for (const shard of this.#shards.all) {
        const asked = query<{ now: string; hasMore: boolean }>(HAS_MORE, [shard, seen.get(shard)]);
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
