// Owns: the store of books in PostgreSQL. Twin of `sqlite/store.ts`.
// A batch is one statement, or two if its changes have conditions: few round trips, one commit. Every statement is
// independent, so it works through a pooler in transaction mode.
// What its statements need, and which relatives of PostgreSQL have it: docs/engines.md. With Citus: `citus.ts`.

import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { Book, BookChanges, BookFields } from '../../books/book.ts';
import type { Page, Search } from '../../books/search.ts';
import {
  type BookGroup,
  type BookList,
  type BookStore,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type Eventual,
  type GroupOutcome,
  StoreUnavailable,
} from '../../books/store.ts';
import { gauge, type Metric } from '../../metrics/prometheus.ts';
import type { OpenOptions } from '../open.ts';
import { OpenLists } from '../open-lists.ts';
import { PostgresIndex } from './book-index.ts';
import { ConditionalChanges } from './conditional-changes.ts';
import { Connections, LIST_CONNECTIONS, LIST_LOCK_TIMEOUT, QUERY_TIMEOUT } from './connections.ts';
import { PostgresFinder } from './finder.ts';
import { HeldBooks } from './held-books.ts';
import { connectToWritable, type Hosts } from './hosts.ts';
import { begin, isLimited } from './limits.ts';
import { NewBooks } from './new-books.ts';
import { Standby, type Standbys } from './standby.ts';
import { DURABLY, find, WITH_IDS, WITH_IDS_IN_PARTITIONS, type WithIds } from './statements.ts';
import { createStructure, divisionOf } from './structure.ts';
import { asJson } from './text.ts';

/** Milliseconds until the first chunk of a list (rule 23). */
const FIRST_CHUNK_TIMEOUT = 4500;

// Large enough that the cost of a round trip is negligible, small enough that a batch takes milliseconds, even with
// the longest texts. Two in flight keep the server busy while the answers of the first one are sent. Updates and
// removals go one by one, so that two batches of one process never wait for each other's books.
const OVERLAPPING = { size: 512, weight: 1024 * 1024, inFlight: 2 };
const ONE_AT_A_TIME = { ...OVERLAPPING, inFlight: 1 };
/** Searches and requests with many books: each may keep a core of the server busy, and two would slow down others. */
const SINGLY = { ...ONE_AT_A_TIME, size: 1 };

// Books that are locked by others are skipped, and marked as `held` to distinguish them from missing ones. The other
// books are returned as they were; the changes applied to them are known.
const update = (withIds: WithIds) => `
  with change as (
    select * from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) as change (id, title, author, year)
  ), before as materialized (
    select id, title, author, year from ${withIds} and ${DURABLY} for update of books skip locked
  ), stored as (
    update books set
      title = coalesce(change.title, before.title),
      author = coalesce(change.author, before.author),
      year = coalesce(change.year, before.year)
    from before join change using (id) where books.id = before.id
  )
  select id, before.id is null as held, before.title, before.author, before.year
  from (select id from ${withIds}) as books left join before using (id)`;

const UPDATE_HELD = `
  with before as materialized (select id, title, author, year from books where id = $1 and ${DURABLY} for update), stored as (
    update books set
      title = coalesce($2, before.title), author = coalesce($3, before.author), year = coalesce($4, before.year)
    from before where books.id = before.id
  )
  select id, title, author, year from before`;

const remove = (withIds: WithIds) => `
  with free as materialized (
    select id from ${withIds} and ${DURABLY} for update of books skip locked
  ), removed as (
    delete from books using free where books.id = free.id
  )
  select id, free.id is null as held from (select id from ${withIds}) as books left join free using (id)`;

const REMOVE_HELD = `delete from books where id = $1 and ${DURABLY}`;

// Each book is followed by a line end, which is white space in JSON.
const LIST = asJson(',');

/**
 * Opens the store, creating or updating its structure.
 * @throws Error with the reason when that is impossible.
 */
export async function openPostgres(
  hosts: Hosts,
  standbys: Standbys | undefined,
  { find, onLongWait }: OpenOptions,
): Promise<BookStore> {
  const { address, client } = await connectToWritable(hosts);
  try {
    await createStructure(client, onLongWait);
    const division = await divisionOf(client);
    if (division === 'citus') {
      const refused = find
        ? 'no index can follow it: set FIND=off'
        : standbys && 'no standby has it: unset DB_READ_URL';
      if (refused !== undefined) throw new Error(`Citus distributes its table "books", and ${refused}`);
      const { CitusStore } = await import('./citus.ts');
      return new CitusStore(new Connections(hosts, address));
    }
    if (find) await new PostgresIndex(client).create(onLongWait);
    const connections = new Connections(hosts, address);
    try {
      const standby = standbys && (await Standby.open(standbys, client, connections));
      const finder = find ? new PostgresFinder(hosts, connections, standby) : undefined;
      const withIds = division === 'partitions' ? WITH_IDS_IN_PARTITIONS : WITH_IDS;
      return new PostgresStore(connections, withIds, finder, standby);
    } catch (error) {
      void connections.close();
      throw error;
    }
  } finally {
    void client.end();
  }
}

interface HeldRow extends Book {
  readonly held: boolean;
}

export class PostgresStore implements BookStore {
  readonly limits = {
    find: OVERLAPPING,
    insert: OVERLAPPING,
    keyed: ONE_AT_A_TIME,
    bulk: SINGLY,
    update: ONE_AT_A_TIME,
    remove: ONE_AT_A_TIME,
    conditional: ONE_AT_A_TIME,
    search: SINGLY,
  };
  readonly #connections: Connections;
  readonly #find: string;
  readonly #update: string;
  readonly #remove: string;
  /** Undefined if books are not searched. */
  readonly #finder: PostgresFinder | undefined;
  /** Undefined if everything is read from the primary. */
  readonly #standby: Standby | undefined;
  readonly #newBooks: NewBooks;
  readonly #conditionalChanges: ConditionalChanges;
  readonly #lists = new OpenLists(LIST_CONNECTIONS);
  readonly #heldUpdates = new HeldBooks<BookChanges, Book | undefined>((id, changes, deadline) =>
    this.#updateHeld(id, changes, deadline),
  );
  readonly #heldRemovals = new HeldBooks<null, boolean>((id, calls, deadline) =>
    this.#removeHeld(id, calls.length, deadline),
  );

  /** @param withIds how its statements look for the books with given ids. */
  constructor(connections: Connections, withIds: WithIds, finder?: PostgresFinder, standby?: Standby) {
    this.#connections = connections;
    this.#find = find(withIds);
    this.#update = update(withIds);
    this.#remove = remove(withIds);
    this.#standby = standby;
    this.#newBooks = new NewBooks(connections);
    this.#conditionalChanges = new ConditionalChanges(connections, withIds);
    this.#finder = finder;
  }

  async find(ids: readonly number[], deadline: number): Promise<readonly (Book | undefined)[]> {
    const { rows } = await this.#connections.query<Book>('batches', this.#find, [ids], deadline);
    const found = new Map(rows.map((book) => [book.id, book]));
    return ids.map((id) => found.get(id));
  }

  insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]> {
    return this.#newBooks.insert(books, deadline);
  }

  insertGroups(groups: readonly BookGroup[], deadline: number): Promise<readonly GroupOutcome[]> {
    return this.#newBooks.insertGroups(groups, deadline);
  }

  async update(
    updates: readonly BookUpdate[],
    deadline: number,
  ): Promise<readonly Eventual<Book | undefined>[]> {
    const merged = new Map<number, BookChanges>();
    for (const { id, changes } of updates) merged.set(id, { ...merged.get(id), ...changes });
    const changes = [...merged.values()];
    const columns = [
      [...merged.keys()],
      changes.map(({ title }) => title),
      changes.map(({ author }) => author),
      changes.map(({ year }) => year),
    ];
    const { rows } = await this.#connections.query<HeldRow>('batches', this.#update, columns, deadline);

    const states = new Map(rows.map((row) => [row.id, row]));
    return updates.map(({ id, changes }) => {
      const row = states.get(id);
      if (row === undefined) return undefined;
      if (row.held) return this.#heldUpdates.call(id, changes, deadline);
      const state = { ...row, ...changes };
      states.set(id, state);
      return { id, title: state.title, author: state.author, year: state.year };
    });
  }

  async remove(ids: readonly number[], deadline: number): Promise<readonly Eventual<boolean>[]> {
    const { rows } = await this.#connections.query<HeldRow>(
      'batches',
      this.#remove,
      [[...new Set(ids)]],
      deadline,
    );
    const states = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => {
      const row = states.get(id);
      if (row?.held) return this.#heldRemovals.call(id, null, deadline);
      return states.delete(id); // true for the first call of each book only
    });
  }

  changeIf(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly Eventual<ConditionalOutcome>[]> {
    return this.#conditionalChanges.carryOut(changes, deadline);
  }

  async search(searches: readonly Search[], deadline: number): Promise<readonly Page[]> {
    const finder = this.#finder;
    if (finder === undefined) throw new StoreUnavailable('FIND is off');
    return Promise.all(searches.map((search) => finder.find(search, deadline)));
  }

  list(): Promise<BookList> {
    const signal = AbortSignal.timeout(FIRST_CHUNK_TIMEOUT);
    return this.#lists.open(async () => {
      const settings = `set local lock_timeout = ${LIST_LOCK_TIMEOUT}`;
      const work = (client: pg.PoolClient) => openList(client, true, signal);
      return (await this.#standby?.read('list', settings, work)) ?? (await this.#list(signal));
    });
  }

  async #list(signal: AbortSignal): Promise<BookList> {
    const client = await this.#connections.takeForList();
    const needsLimit = !isLimited(client);
    if (needsLimit) client.query(begin(LIST_LOCK_TIMEOUT)).catch(() => {}); // if it fails, so does what follows
    try {
      return await openList(client, needsLimit, signal);
    } catch (error) {
      client.release(true);
      throw this.#connections.unavailable(error);
    }
  }

  metrics(): Metric[] {
    const unindexed = 'Books that a search may not find yet, about.';
    return [
      ...this.#connections.metrics(this.#standby?.pool),
      ...(this.#standby?.metrics() ?? []),
      gauge('book_catalogue_unindexed_books', unindexed, this.#finder?.unindexed ?? []),
    ];
  }

  async close(): Promise<void> {
    this.#finder?.close();
    await Promise.all([this.#standby?.close(), this.#connections.close()]);
  }

  /** Applies changes of one book in order, after waiting for its lock. */
  async #updateHeld(
    id: number,
    calls: readonly BookChanges[],
    deadline: number,
  ): Promise<readonly (Book | undefined)[]> {
    const merged = Object.assign({}, ...calls) as BookChanges;
    const parameters = [id, merged.title, merged.author, merged.year];
    const { rows } = await this.#connections.query<Book>('held', UPDATE_HELD, parameters, deadline);
    let state = rows[0];
    return calls.map((changes) => {
      state = state && { ...state, ...changes };
      return state;
    });
  }

  /** Removes one book, after waiting for its lock; of several calls, the first one counts as the removal. */
  async #removeHeld(id: number, calls: number, deadline: number): Promise<readonly boolean[]> {
    const { rowCount } = await this.#connections.query('held', REMOVE_HELD, [id], deadline);
    return Array.from({ length: calls }, (_, position) => position === 0 && rowCount === 1);
  }
}

/**
 * Resolves once the first rows have arrived. The list then releases the connection; if this rejects, the caller has to.
 * @param isBegun whether a transaction is open, which is ended with the list.
 */
async function openList(client: pg.PoolClient, isBegun: boolean, signal: AbortSignal): Promise<BookList> {
  const rows = client.query(copyTo(LIST));
  // The reader gets an error; it may also occur when there is no reader any more.
  rows.on('error', () => {});
  const onClientError = (error: Error) => rows.destroy(error);
  client.on('error', onClientError);

  let open = true;
  const close = () => {
    if (!open) return;
    open = false;
    client.off('error', onClientError);
    if (!rows.readableEnded) return client.release(true); // rows are still arriving: only this stops them
    if (!isBegun) return client.release();
    client.query('commit').then(
      () => client.release(),
      () => client.release(true),
    );
  };
  await once(rows, 'readable', { signal });
  return { chunks: withoutLeadingComma(rows), close };
}

/**
 * The rows as they arrive, without the leading comma: in SQL every row begins with one, so that the first needs no
 * special case. If the server stops answering while more rows are wanted, the list breaks off.
 */
export async function* withoutLeadingComma(rows: Readable): AsyncGenerator<Buffer, void, void> {
  const chunks = rows[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let first = true;
  for (;;) {
    const silence = setTimeout(() => rows.destroy(new Error('the server stopped answering')), QUERY_TIMEOUT);
    const { done, value } = await chunks.next().finally(() => clearTimeout(silence));
    if (done) return;
    yield first ? value.subarray(1) : value;
    first = false;
    await setImmediate(); // other work first: a full socket is read 32 times in a row, 2 MiB
  }
}
