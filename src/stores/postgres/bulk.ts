// Owns: import, export and copy of books in PostgreSQL, with or without a running service. Twin of `sqlite/bulk.ts`.
// It uses one connection, and COPY for batches.

import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type pg from 'pg';
import { type CopyStreamQuery, from as copyFrom } from 'pg-copy-streams';
import { type Book, type BookFields, LAST_SEQUENTIAL_ID } from '../../books/book.ts';
import { asCsv, asCsvFields } from '../../books/line.ts';
import type { Times } from '../../times.ts';
import {
  assertAllTaken,
  type BulkMode,
  type BulkStore,
  type Counts,
  type RecordFormat,
  type StoredBooks,
  storedBooks,
  UnknownOutcome,
} from '../bulk.ts';
import { COUNTS, FIELDS, ID_AND_FIELDS } from '../columns.ts';
import { assertNewest, connectToWritable, type Hosts } from './hosts.ts';
import { begin } from './limits.ts';
import { Shards } from './shards.ts';
import { beginSnapshot, textParts } from './snapshot.ts';
import { Standby, type Standbys } from './standby.ts';
import { STATEMENTS_IN_PARTITIONS } from './statements.ts';
import { createStructure } from './structure.ts';
import { csvOf, jsonOf } from './text.ts';

const LAST_ID = `
  select greatest(
    coalesce(pg_sequence_last_value(to_regclass('books_id_seq')), 0), (select max(id) from books where id <= ${LAST_SEQUENTIAL_ID})
  ) as value`;

// A committed transaction is durable, even where the server's setting would not wait for the disk. Stronger settings
// stay.
const DURABLY = `
  select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'`;

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
  const { address, client } = await connectToWritable(hosts, postgres);
  const store = new PostgresBulk(client, postgres, () => assertNewest(hosts, address, postgres));
  try {
    if (mode === 'write') await createStructure(client, postgres);
    else if (!(await store.exists())) {
      await store.close();
      return undefined;
    } else if (standbys !== undefined) {
      const onStandby = await new Standby(standbys, (text) => client.query(text), times).connect();
      if (onStandby !== undefined) {
        await store.close();
        return new PostgresBulk(onStandby, postgres, async () => {});
      }
    }
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

class PostgresBulk implements BulkStore {
  readonly #client: pg.Client;
  readonly #times: Times['postgres'];
  readonly assertNewest: () => Promise<void>;
  readonly #shards: Shards;
  readonly #lost = new AbortController();
  #inTransaction = false;
  /** The COPY to the server in progress; no other statement can be sent before it ends. */
  #copying:
    | { readonly into: string; readonly stream: CopyStreamQuery; readonly end: Promise<void>; sent: number }
    | undefined;
  /** Whether the server is sending books; no statement can be sent before the last one has arrived. */
  #isSending = false;

  /** @param assertNewest throws when another server takes the writes by now. */
  constructor(client: pg.Client, times: Times['postgres'], assertNewest: () => Promise<void>) {
    this.#client = client;
    this.#times = times;
    this.assertNewest = assertNewest;
    this.#shards = new Shards((text) => this.#query(text));
    client.once('error', (error) => this.#lost.abort(error));
    client.once('end', () => this.#lost.abort(new Error('the connection has ended')));
  }

  async exists(): Promise<boolean> {
    const [row] = await this.#query<{ found: boolean }>("select to_regclass('books') is not null as found");
    return row?.found === true;
  }

  async inSnapshot<Result>(work: () => Promise<Result>): Promise<Result> {
    const { bulkLock } = this.#times;
    const signal = AbortSignal.timeout(bulkLock);
    await this.#shards.read();
    await beginSnapshot(this.#client, this.#shards.areSeveral, bulkLock, this.#times, signal);
    this.#inTransaction = true;
    try {
      return await work();
    } finally {
      await this.#rollBack(); // it has only read
    }
  }

  async inTransaction<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.#query(begin(this.#times.bulkLock));
    this.#inTransaction = true;
    let result: Result;
    try {
      await this.#query(DURABLY);
      result = await work();
      await this.#endCopy(); // its errors are not those of the commit
    } catch (error) {
      await this.#rollBack();
      throw error;
    }
    await this.#commit();
    return result;
  }

  async count(): Promise<number> {
    return this.#number('select count(*) as value from books');
  }

  async lastId(): Promise<number> {
    return this.#number(LAST_ID);
  }

  find(ids: readonly number[]): Promise<readonly Book[]> {
    return this.#query<Book>(STATEMENTS_IN_PARTITIONS.findInFull, [ids]);
  }

  text(format: RecordFormat): AsyncIterable<Buffer> {
    return this.#receive(TEXTS[format]);
  }

  async insert(books: readonly BookFields[]): Promise<void> {
    await this.#copy(`books (${FIELDS})`, books.map(asCsvFields));
  }

  async insertWithIds(books: readonly Book[]): Promise<void> {
    await this.#copy(`books (${ID_AND_FIELDS})`, books.map(asCsv));
  }

  async *insertNew(rows: AsyncIterable<readonly BookFields[]>): AsyncGenerator<StoredBooks, void, void> {
    yield await this.inTransaction(async () => {
      await this.#setAside(rows);
      const { sent, ...stored } = await this.#row<Counts & { sent: number }>(`
        with new as (${NEW_ROWS}),
          stored as (insert into books (${FIELDS}) select ${FIELDS} from new returning ${FIELDS})
        select ${COUNTS}, (select count(*) from new) as sent from stored`);
      assertAllTaken(stored.books, sent);
      return storedBooks(stored);
    });
  }

  countNew(rows: AsyncIterable<readonly BookFields[]>): Promise<StoredBooks> {
    return this.inTransaction(async () => {
      await this.#setAside(rows);
      return storedBooks(await this.#row<Counts>(`select ${COUNTS} from (${NEW_ROWS}) as new`));
    });
  }

  async removeAll(): Promise<void> {
    await this.#query('delete from book_requests');
    await this.#query('delete from books');
  }

  reserveIdsThrough(lastId: number): Promise<number> {
    return this.#joined(async () => {
      // While the table is locked, no other process draws an id, so the sequence is never set back.
      await this.#query('lock table books in share row exclusive mode');
      const given = await this.lastId();
      const last = Math.max(lastId, given); // books may have been inserted with ids beyond the sequence
      if (last > 0) await this.#query("select setval('books_id_seq', $1::bigint)", [last]);
      return given;
    });
  }

  async close(): Promise<void> {
    await this.#client.end();
  }

  async #commit(): Promise<void> {
    try {
      await this.#query('commit');
      this.#inTransaction = false;
    } catch (error) {
      // If the connection still works, the error was the server's answer to the commit, not the loss of that answer.
      throw (await this.#rollBack()) ? error : new UnknownOutcome((error as Error).message);
    }
  }

  /** @returns whether the server has answered; if not, it rolls back when the connection ends. */
  async #rollBack(): Promise<boolean> {
    this.#inTransaction = false;
    if (this.#isSending) return false; // no statement can be sent
    return this.#query('rollback').then(
      () => true,
      () => false,
    );
  }

  /** Runs work within the open transaction, or in a new one. */
  #joined<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#inTransaction ? work() : this.inTransaction(work);
  }

  /** Puts rows into a temporary table of the transaction. */
  async #setAside(rows: AsyncIterable<readonly BookFields[]>): Promise<void> {
    await this.#query(TEMPORARY_TABLE);
    for await (const batch of rows) await this.#copy(`aside (${FIELDS})`, batch.map(asCsvFields));
    await this.#query('analyze aside');
  }

  async #row<Row extends pg.QueryResultRow>(text: string): Promise<Row> {
    return (await this.#query<Row>(text))[0] as Row;
  }

  /** Within a transaction, consecutive calls with the same `into` share one COPY. */
  #copy(into: string, lines: readonly string[]): Promise<void> {
    return this.#joined(async () => {
      if (this.#copying?.into !== into) {
        await this.#endCopy();
        const stream = this.#client.query(
          copyFrom(`copy ${into} from stdin with (format csv, encoding 'UTF8')`),
        );
        stream.on('error', () => {}); // there may be more than one
        const end = this.#unlessLost((signal) => finished(stream, { signal }));
        end.catch(() => {}); // it is reported when it is awaited, however much later
        this.#copying = { into, stream, end, sent: 0 };
      }
      this.#copying.sent += lines.length;
      const { stream, end } = this.#copying;
      if (!stream.write(lines.join('')) && !stream.destroyed) {
        await this.#unlessLost((signal) => once(stream, 'drain', { signal }));
      }
      if (stream.destroyed) await end; // it rejects with the reason
    });
  }

  /** Ends the wait of a COPY when its connection is lost, which the COPY itself does not notice. */
  async #unlessLost<Result>(wait: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const { signal } = this.#lost;
    try {
      return await wait(signal);
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    }
  }

  /** Ends the COPY in progress, if any; resolves when all of it has arrived. */
  async #endCopy(): Promise<void> {
    const copying = this.#copying;
    this.#copying = undefined;
    if (copying === undefined) return;
    copying.stream.end();
    await copying.end;
    assertAllTaken(copying.stream.rowCount, copying.sent);
  }

  /** Runs a statement, after the COPY in progress. */
  async #query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<readonly Row[]> {
    await this.#endCopy();
    return (await this.#client.query<Row>(text, values)).rows;
  }

  async *#receive(textOf: (range: string) => string): AsyncGenerator<Buffer, void, void> {
    await this.#endCopy();
    this.#isSending = true;
    for await (const part of textParts(this.#client, this.#shards.areSeveral, textOf)) yield* part;
    this.#isSending = false;
  }

  async #number(text: string): Promise<number> {
    const [row] = await this.#query<{ value: number | null }>(text);
    return row?.value ?? 0;
  }
}
