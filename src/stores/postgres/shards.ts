// Owns: the shard in which Citus keeps a book, so that a batch has books of one shard only. The server of the shard carries such a
// statement out as any PostgreSQL does: it skips locked books, and commits in one phase.
// Does not: decide which server gets a statement. With an outdated map, Citus refuses a statement; it never changes other books.

import type { Shard } from '../../books/store.ts';
import type { Query } from '../query.ts';
import { STATEMENTS, STATEMENTS_ON_SHARDS, type Statements } from './statements.ts';

interface RangeOfHashes extends Shard {
  /** The highest hash of ids in the shard: a signed integer of 32 bits. */
  readonly last: number;
}

const IS_DISTRIBUTED = "select to_regclass('pg_dist_shard') is not null as known";
const SHARDS = `
  select shardmaxvalue::integer as last, min(groupid)::integer as server
  from pg_dist_shard join pg_dist_placement using (shardid)
  where logicalrelid = to_regclass('books') group by shardmaxvalue order by last`;

export class Shards {
  /** Ascending by their hashes; none if the table of books is not distributed. */
  #shards: readonly RangeOfHashes[] = [];
  #isRenewing = false;

  get areSeveral(): boolean {
    return this.#shards.length > 0;
  }

  /** How many servers keep the books. */
  get servers(): number {
    return this.areSeveral ? new Set(this.#shards.map(({ server }) => server)).size : 1;
  }

  /** The statements for books of one shard. */
  get statements(): Statements {
    return this.areSeveral ? STATEMENTS_ON_SHARDS : STATEMENTS;
  }

  /** @throws the driver's error. */
  async read(query: Query): Promise<void> {
    const [found] = await query<{ known: boolean }>(IS_DISTRIBUTED);
    if (found?.known) this.#shards = await query<RangeOfHashes>(SHARDS);
  }

  /** Reads the shards again after a statement has failed. If that fails, so will the next statement, and this is repeated. */
  async renew(query: Query): Promise<void> {
    if (!this.areSeveral || this.#isRenewing) return;
    this.#isRenewing = true;
    await this.read(query).catch(() => {});
    this.#isRenewing = false;
  }

  /** @returns the same object for all books of a shard; undefined if the table is not distributed. */
  shardOf(id: number): Shard | undefined {
    const hash = this.areSeveral ? hashOf(id) : 0;
    return this.#shards.find(({ last }) => hash <= last);
  }
}

/**
 * The hash of a `bigint` with which PostgreSQL and Citus divide tables, as a signed integer: its halves joined, then the final
 * mixing of Bob Jenkins' lookup3 (https://burtleburtle.net/bob/c/lookup3.c).
 * @param id from 1 to 2^53−1.
 */
export function hashOf(id: number): number {
  const start = 0x9e3779b9 + 4 + 3923095;
  let a = start + (id ^ Math.floor(id / 2 ** 32));
  let b = start;
  let c = start;
  const mixed = (value: number, by: number, bits: number) =>
    (value ^ by) - ((by << bits) | (by >>> (32 - bits)));
  c = mixed(c, b, 14);
  a = mixed(a, c, 11);
  b = mixed(b, a, 25);
  c = mixed(c, b, 16);
  a = mixed(a, c, 4);
  b = mixed(b, a, 14);
  return mixed(c, b, 24) | 0;
}
