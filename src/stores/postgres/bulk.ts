// Owns: import, export and copy of books in PostgreSQL, with or without a running service. Twin of `sqlite/bulk.ts`.
// It uses one connection, and COPY for batches.

import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { type Book, type BookFields, LAST_SEQUENTIAL_ID } from '../../books/book.ts';
import type { ChangeLog } from '../../books/change-log.ts';
import { asCsv, asCsvFields } from '../../books/line.ts';
import type { Times } from '../../times.ts';
import {
  assertAllTaken,
  type BulkMode,
  type BulkStore,
  type Counts,
  type InBatches,
  noBook,
  type RecordFormat,
  type StoredBooks,
  storedBooks,
  UnknownOutcome,
} from '../bulk.ts';
import { COLUMNS, COUNTS, FIELDS, ID_AND_FIELDS, inRange } from '../columns.ts';
import { assertNewest, connectToReadable, connectToWritable, type Hosts } from './hosts.ts';
import { begin, refusePartial } from './limits.ts';
import { type LogShards, readLogShards } from './log.ts';
import { type Query, queryOn } from './query.ts';
import { Shards } from './shards.ts';
import { type Barrier, beginSnapshot, textParts } from './snapshot.ts';
import { Standby, type Standbys } from './standby.ts';
import { DURABLY, STATEMENTS } from './statements.ts';
import { createStructure } from './structure.ts';
import { csvOf, jsonOf } from './text.ts';
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

const TEXTS: Readonly<Record<RecordFormat, (range: string) => string>> = {
  csv: csvOf,
  jsonl: (range) => jsonOf('', range),
};

// Dropped with its transaction: a pooler may give each transaction another connection.
const TEMPORARY_TABLE = `
  create temporary table aside on commit drop as select ${FIELDS} from books with no data;
  alter table aside add id bigint generated always as identity`;

// Of rows that are equal, the first; none that equals a book.
const NEW_ROWS = `
  select ${FIELDS} from (select min(id) as id, ${FIELDS} from aside group by ${FIELDS}) as firsts
  left join books using (${FIELDS}) where books.id is null
  order by firsts.id`;
const COUNT_NEW = `select ${COUNTS}, count(*) as sent from (${NEW_ROWS}) as new`;
const INSERT_NEW = `
  with new as (${NEW_ROWS}),
    stored as (insert into books (${FIELDS}) select ${FIELDS} from new returning ${FIELDS})
  select ${COUNTS}, (select count(*) from new) as sent from stored`;

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
  const store = new PostgresBulk(client, postgres, connect, () => assertNewest(hosts, address, postgres));
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
    return new PostgresBulk(onStandby, postgres, connect, async () => {});
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
  readonly assertNewest: () => Promise<void>;
  readonly #shards = new Shards();
  event: number | undefined;
  /** Books that were stored in the transaction. */
  #stored = 0;

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
   * @param connect connects to the host that takes writes.
   * @param assertNewest throws when another server takes the writes by now.
   */
  constructor(
    client: pg.Client,
    times: Times['postgres'],
    connect: Barrier['connect'],
    assertNewest: () => Promise<void>,
  ) {
    this.#client = client;
    this.#query = queryOn(client);
    this.#times = times;
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
      await this.#query(`${begin(this.#times.bulkLock)}; select ${DURABLY}`);
      result = this.event === undefined ? await work() : await this.#asPartOf(this.event, work);
    } catch (error) {
      await this.#rollBack();
      throw error;
    }
    try {
      await this.#query('commit');
    } catch (error) {
      // If the connection still works, the error was the server's answer to the commit, not the loss of that answer.
      throw (await this.#rollBack()) ? error : new UnknownOutcome((error as Error).message);
    }
    return result;
  }

  count(): Promise<number> {
    return this.#number('select count(*) as value from books');
  }

  lastId(): Promise<number> {
    return this.#number(LAST_ID);
  }

  find(ids: readonly number[]): Promise<readonly Book[]> {
    return this.#query<Book>(STATEMENTS.findInFull, [ids]);
  }

  async *text(format: RecordFormat): AsyncGenerator<Buffer, void, void> {
    const [found] = await this.#query<{ id: string }>(NO_BOOK);
    if (found !== undefined) throw noBook(found.id);
    for await (const part of textParts(this.#client, this.#shards.areSeveral, TEXTS[format])) yield* part;
  }

  insert(books: InBatches<BookFields>): Promise<void> {
    return this.#copy(`books (${FIELDS})`, books, asCsvFields);
  }

  insertWithIds(books: InBatches<Book>): Promise<void> {
    return this.#copy(`books (${ID_AND_FIELDS})`, books, asCsv);
  }

  async *insertNew(rows: InBatches<BookFields>, isDryRun: boolean): AsyncGenerator<StoredBooks, void, void> {
    yield await this.inTransaction(async () => {
      await this.#query(TEMPORARY_TABLE);
      await this.#copy(`aside (${FIELDS})`, rows, asCsvFields);
      await this.#query('analyze aside');
      const { sent, ...stored } = await this.#row<Counts & { sent: number }>(
        isDryRun ? COUNT_NEW : INSERT_NEW,
      );
      assertAllTaken(stored.books, sent);
      this.#stored += sent;
      return storedBooks(stored);
    });
  }

  async #asPartOf<Result>(event: number, work: () => Promise<Result>): Promise<Result> {
    const log = new PostgresLogWriter(this.#query, await this.#logShards());
    await log.resume(event);
    for (const shard of log.shards.all) await log.join(shard);
    this.#stored = 0;
    const result = await work();
    for (const shard of log.shards.all) await log.leave(shard);
    await log.end(event, this.#stored);
    return result;
  }

  async #logShards(): Promise<LogShards> {
    await this.#shards.read(this.#query);
    return readLogShards(this.#query, this.#shards);
  }

  async removeAll(): Promise<void> {
    await this.#query('delete from book_requests');
    await this.#query('delete from books');
  }

  async reserveIdsThrough(lastId: number): Promise<number> {
    // While the table is locked, no other process draws an id, so the sequence is never set back.
    await this.#query('lock table books in share row exclusive mode');
    const given = await this.lastId();
    const last = Math.max(lastId, given); // books may have been inserted with ids beyond the sequence
    if (last > 0) await this.#query("select setval('books_id_seq', $1::bigint)", [last]);
    return given;
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

  /** Sends rows by one COPY, each as a line. */
  async #copy<Row>(into: string, batches: InBatches<Row>, lineOf: (row: Row) => string): Promise<void> {
    let sent = 0;
    async function* lines() {
      for await (const rows of batches) {
        sent += rows.length;
        yield rows.map(lineOf).join('');
      }
    }
    const copy = this.#client.query(copyFrom(`copy ${into} from stdin with (format csv, encoding 'UTF8')`));
    copy.on('error', () => {}); // there may be more than one
    await pipeline(lines, copy);
    assertAllTaken(copy.rowCount, sent);
    if (into.startsWith('books')) this.#stored += sent;
  }

  async #row<Row extends pg.QueryResultRow>(text: string): Promise<Row> {
    return (await this.#query<Row>(text))[0] as Row;
  }

  async #number(text: string): Promise<number> {
    return (await this.#row<{ value: number }>(text)).value;
  }
}
