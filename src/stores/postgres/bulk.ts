// Owns: import, export and copy of books in PostgreSQL, with or without a running service. Twin of `sqlite/bulk.ts`.
// It uses one connection, and COPY for batches.

import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { type Book, LAST_SEQUENTIAL_ID } from '../../books/book.ts';
import type { ChangeLog } from '../../books/change-log.ts';
import { asCsv } from '../../books/line.ts';
import type { Times } from '../../times.ts';
import {
  assertAllTaken,
  type BulkMode,
  type BulkStore,
  type InBatches,
  noBook,
  UnknownOutcome,
} from '../bulk.ts';
import { COLUMNS, ID_AND_FIELDS, inRange } from '../columns.ts';
import type { Load, LoadRules } from '../load.ts';
import type { Query } from '../query.ts';
import { assertNewest, connectToReadable, connectToWritable, type Hosts } from './hosts.ts';
import { begin, refusePartial } from './limits.ts';
import { PostgresLoad } from './load.ts';
import { type LogShards, readLogShards } from './log.ts';
import { queryOn } from './query.ts';
import { Shards } from './shards.ts';
import { type Barrier, beginSnapshot, textParts } from './snapshot.ts';
import { Standby, type Standbys } from './standby.ts';
import { DURABLY, STATEMENTS } from './statements.ts';
import { createStructure } from './structure.ts';
import { jsonOf } from './text.ts';
import { PostgresLogReader, PostgresLogWriter } from './undo.ts';

const BOOKS_IN =
  "select current_setting('server_encoding') as encoding where to_regclass('books') is not null";

/** Constraints that somebody has dropped would refuse it. */
const NO_BOOK = `
  select id::text from books where not (id > 0 and ${['id', ...COLUMNS.filter(({ isText }) => !isText).map(({ name }) => name)].map(inRange).join(' and ')})
  order by books.id limit 1`;

const LAST_ID = `
  select greatest(
    case when has_sequence_privilege(to_regclass('books_id_seq'), 'usage, select')
      then pg_sequence_last_value(to_regclass('books_id_seq')) end, 0, (select max(id) from books where id <= ${LAST_SEQUENTIAL_ID})
  ) as value`;

/**
 * Connects; in mode `write`, creates or updates the structure.
 * @param standbys in mode `read`, one of them is read if possible, and the primary otherwise.
 * @returns undefined when there is no table of books, in mode `read`.
 * @throws Error with the reason when that is impossible.
 */
export async function openPostgresBulk(
  hosts: Hosts,
  standbys: Standbys | undefined,
  mode: BulkMode,
  times: Times,
): Promise<BulkStore | undefined> {
  const { postgres } = times;
  const open = mode === 'write' ? connectToWritable : connectToReadable;
  const { address, client } = await open(hosts, postgres);
  const connect = async () => {
    const { client: other } = await connectToWritable(hosts, postgres);
    return { client: other, release: () => void other.end() };
  };
  const store = new PostgresBulk(client, postgres, mode, connect, () =>
    assertNewest(hosts, address, postgres),
  );
  try {
    if (mode === 'write') {
      await createStructure(client, postgres);
      return store;
    }
    await refusePartial(queryOn(client, postgres.describe));
    const [found] = await queryOn(client)<{ encoding: string }>(BOOKS_IN);
    if (found?.encoding === 'SQL_ASCII')
      throw new Error('its encoding is SQL_ASCII, so its texts may be in any');
    if (found === undefined) {
      await store.close();
      return undefined;
    }
    const standby = standbys && new Standby(standbys, (text) => queryOn(client)(text), times);
    const onStandby = await standby?.connect();
    if (onStandby === undefined) return store;
    await store.close();
    return new PostgresBulk(onStandby, postgres, mode, connect, async () => {});
  } catch (error) {
    await store.close();
    throw error;
  }
}

class PostgresBulk implements BulkStore {
  readonly #client: pg.Client;
  readonly #query: Query;
  readonly #times: Times['postgres'];
  readonly #connect: Barrier['connect'];
  readonly #mode: BulkMode;
  readonly assertNewest: () => Promise<void>;
  readonly #shards = new Shards();

  readonly log: ChangeLog = {
    read: async (read) => {
      const log = new PostgresLogReader(this.#query, await this.#logShards());
      await beginSnapshot(this.#client, this.#times.bulkLock, this.#times); // of several servers, each has its own one
      const result = await read(log);
      await this.#rollBack();
      return result;
    },
    write: async (write) => {
      const log = new PostgresLogWriter(this.#query, await this.#logShards());
      return this.inTransaction(() => write(log));
    },
  };

  /**
   * @param mode in which it was opened.
   * @param connect connects to the host that takes writes.
   * @param assertNewest throws when another server takes the writes by now.
   */
  constructor(
    client: pg.Client,
    times: Times['postgres'],
    mode: BulkMode,
    connect: Barrier['connect'],
    assertNewest: () => Promise<void>,
  ) {
    this.#client = client;
    this.#query = queryOn(client);
    this.#times = times;
    this.#mode = mode;
    this.#connect = connect;
    this.assertNewest = assertNewest;
  }

  async inSnapshot<Result>(work: () => Promise<Result>): Promise<Result> {
    const { bulkLock } = this.#times;
    await this.#shards.read(this.#query);
    const barrier = this.#shards.areSeveral
      ? { connect: this.#connect, signal: AbortSignal.timeout(bulkLock) }
      : undefined;
    await beginSnapshot(this.#client, bulkLock, this.#times, barrier);
    const result = await work();
    await this.#rollBack(); // it has only read
    return result;
  }

  async inTransaction<Result>(work: () => Promise<Result>): Promise<Result> {
    let result: Result;
    try {
      await this.#begin();
      result = await work();
    } catch (error) {
      await this.#rollBack();
      throw error;
    }
    await this.#commit();
    return result;
  }

  count(): Promise<number> {
    return this.#number('select count(*) as value from books');
  }

  lastId(): Promise<number> {
    return this.#number(LAST_ID);
  }

  async find(id: number): Promise<Book | undefined> {
    return (await this.#query<Book>(STATEMENTS.findInFull, [[id]]))[0];
  }

  async *text(): AsyncGenerator<Buffer, void, void> {
    const [found] = await this.#query<{ id: string }>(NO_BOOK);
    if (found !== undefined) throw noBook(found.id);
    for await (const part of textParts(this.#client, this.#shards.areSeveral, (range) => jsonOf('', range)))
      yield* part;
  }

  /** Sends books by one COPY, each as a line. */
  async insertWithIds(books: InBatches<Book>): Promise<void> {
    let sent = 0;
    async function* lines() {
      for await (const batch of books) {
        sent += batch.length;
        yield batch.map(asCsv).join('');
      }
    }
    const copy = this.#client.query(
      copyFrom(`copy books (${ID_AND_FIELDS}) from stdin with (format csv, encoding 'UTF8')`),
    );
    copy.on('error', () => {}); // there may be more than one
    await pipeline(lines, copy);
    assertAllTaken(copy.rowCount, sent);
  }

  load(rules: LoadRules): Promise<Load> {
    const target = {
      client: this.#client,
      query: this.#query,
      begin: () => this.#begin(),
      commit: () => this.#commit(),
      rollBack: () => this.#rollBack(),
      logWriter: async () => new PostgresLogWriter(this.#query, await this.#logShards()),
      reserveIdsThrough: async (lastId: number) => {
        const { client, release } = await this.#connect();
        try {
          const query = queryOn(client);
          await query(begin(this.#times.bulkLock));
          await reserveIdsThrough(query, lastId);
          await query('commit');
        } finally {
          release(false);
        }
      },
    };
    return PostgresLoad.begin(target, rules, this.#mode === 'read');
  }

  async #logShards(): Promise<LogShards> {
    await this.#shards.read(this.#query);
    return readLogShards(this.#query, this.#shards);
  }

  async removeAll(): Promise<void> {
    for (const table of ['book_requests', 'book_imports']) await this.#query(`delete from ${table}`);
    await this.#query('delete from books');
  }

  reserveIdsThrough(lastId: number): Promise<void> {
    return reserveIdsThrough(this.#query, lastId);
  }

  close(): Promise<void> {
    return this.#client.end();
  }

  /** @returns whether the server has answered; if not, it rolls back when the connection ends. */
  #rollBack(): Promise<boolean> {
    return this.#query('rollback').then(
      () => true,
      () => false,
    );
  }

  #begin(): Promise<unknown> {
    return this.#query(`${begin(this.#times.bulkLock)}; select ${DURABLY}`);
  }

  /** @throws UnknownOutcome */
  async #commit(): Promise<void> {
    try {
      await this.#query('commit');
    } catch (error) {
      // If the connection still works, the error was the server's answer to the commit, not the loss of that answer.
      throw (await this.#rollBack()) ? error : new UnknownOutcome((error as Error).message);
    }
  }

  async #number(text: string): Promise<number> {
    const [row] = await this.#query<{ value: number }>(text);
    return Number(row?.value);
  }
}

/** As `BulkStore.reserveIdsThrough`. */
async function reserveIdsThrough(query: Query, lastId: number): Promise<void> {
  // While the table is locked, no other process draws an id, so the sequence is never set back.
  await query('lock table books in share row exclusive mode');
  const [{ value: given } = { value: 0 }] = await query<{ value: number }>(LAST_ID);
  const last = Math.max(lastId, given); // books may have been inserted with ids beyond the sequence
  if (last > 0) await query("select setval('books_id_seq', $1::bigint)", [last]);
}
