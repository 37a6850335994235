// Owns: the store of books in PostgreSQL. Twin of `sqlite/store.ts`.
// A batch is one statement: one round trip, one commit. Every statement is independent, so it works through a pooler in
// transaction mode.
// Refuses: features that PostgreSQL's distributed relatives lack.

import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { Book, BookChanges, BookFields } from '../../books/book.ts';
import { meets } from '../../books/condition.ts';
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
  KEY_LIFETIME,
  StoreUnavailable,
} from '../../books/store.ts';
import { gauge, type Metric } from '../../metrics/prometheus.ts';
import { ID_AND_FIELDS } from '../columns.ts';
import type { OpenOptions } from '../open.ts';
import { OpenLists } from '../open-lists.ts';
import { PostgresIndex } from './book-index.ts';
import { Connections, LIST_CONNECTIONS, OVERDUE, QUERY_TIMEOUT } from './connections.ts';
import { PostgresFinder } from './finder.ts';
import { connectToWritable, type Hosts } from './hosts.ts';
import { CATCH_UP, createStructure } from './structure.ts';
import { asJson } from './text.ts';

/** Milliseconds until the first chunk of a list (rule 23). */
const FIRST_CHUNK_TIMEOUT = 4500;

/** Milliseconds for a connection to remove expired keys. */
const STATEMENT_TIME = 1000;

// Large enough that the cost of a round trip is negligible, small enough that a batch takes milliseconds, even with
// the longest texts. Two in flight keep the server busy while the answers of the first one are sent. Updates and
// removals go one by one, so that two batches of one process never wait for each other's books.
const OVERLAPPING = { size: 512, weight: 1024 * 1024, inFlight: 2 };
const ONE_AT_A_TIME = { ...OVERLAPPING, inFlight: 1 };
/** Each is different, and may keep a core of the server busy for seconds: two would slow down those who write. */
const SEARCHES = { ...ONE_AT_A_TIME, size: 1 };

const FIND = `select ${ID_AND_FIELDS} from books where id = any($1::bigint[])`;

// An acknowledged write is durable (rule 23), even where the server's setting would acknowledge it earlier. This is
// part of the statement, as a pooler in transaction mode requires; stronger settings stay.
const DURABLY = `
  (select set_config('synchronous_commit', case level when 'off' then 'on' else level end, true)
   from current_setting('synchronous_commit') as level) is not null`;

const INSERT = `
  with book as materialized (
    select nextval('books_id_seq') as id, title, author, year, ordinal
    from unnest($1::text[], $2::text[], $3::bigint[]) with ordinality as sent (title, author, year, ordinal)
    where ${DURABLY}
  ), stored as (
    insert into books (id, title, author, year) select id, title, author, year from book
  )
  select id from book order by ordinal`;

// Groups of new books, of which each has a key that no other one here has, or none. A key that another transaction is
// storing is waited for; the keys are taken in one order, so that two batches never wait for each other. A key that
// another transaction has stored since the statement began is neither claimed nor known: then the statement is repeated.
const INSERT_GROUPS = `
  with sent as (
    select * from unnest($1::text[], $2::text[], $3::text[]) with ordinality as sent (key, fingerprint, books, ordinal)
    where ${DURABLY}
  ), known as materialized (
    select key, fingerprint, ids from book_requests
    where key = any($1::text[]) and made_at > now() - interval '${KEY_LIFETIME} milliseconds'
  ), book as materialized (
    select sent.ordinal, element.place, nextval('books_id_seq') as id, element.book
    from sent cross join json_array_elements(books::json) with ordinality as element (book, place)
    where sent.key is null or sent.key not in (select key from known)
  ), made as (
    select sent.ordinal, key, fingerprint, coalesce(array_agg(id order by place) filter (where id is not null), '{}') as ids
    from sent left join book using (ordinal)
    where sent.key is null or sent.key not in (select key from known)
    group by sent.ordinal, key, fingerprint
  ), claimed as (
    insert into book_requests (key, fingerprint, ids)
    select key, fingerprint, ids from made where key is not null order by key
    on conflict (key) do update set fingerprint = excluded.fingerprint, ids = excluded.ids, made_at = excluded.made_at
      where book_requests.made_at <= now() - interval '${KEY_LIFETIME} milliseconds'
    returning key
  ), settled as (
    select ordinal, ids from made where key is null or key in (select key from claimed)
  ), stored as (
    insert into books (id, title, author, year)
    select id, book ->> 0, book ->> 1, (book ->> 2)::bigint from book where ordinal in (select ordinal from settled)
  )
  select settled.ids as made, known.ids as known, known.fingerprint
  from sent left join settled using (ordinal) left join known using (key) order by ordinal`;

/** How often groups are sent whose keys another process is storing. */
const MOST_ROUNDS = 5;

/** Keys that have expired are removed in passing: so many at a time, and so many milliseconds apart. */
const EXPIRED_KEYS = 1000;
const EXPIRY_PAUSE = 60_000;

const EXPIRE_KEYS = `
  delete from book_requests where key in (
    select key from book_requests where made_at <= now() - interval '${KEY_LIFETIME} milliseconds'
    order by made_at limit ${EXPIRED_KEYS} for update skip locked
  )`;

// Books that are locked by others are skipped, and marked as `held` to distinguish them from missing ones. The other
// books are returned as they were; the changes applied to them are known.
const UPDATE = `
  with change as (
    select * from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) as change (id, title, author, year)
  ), before as materialized (
    select id, title, author, year from books where id = any($1::bigint[]) and ${DURABLY} for update skip locked
  ), stored as (
    update books set
      title = coalesce(change.title, before.title),
      author = coalesce(change.author, before.author),
      year = coalesce(change.year, before.year)
    from before join change using (id) where books.id = before.id
  )
  select id, before.id is null as held, before.title, before.author, before.year
  from books left join before using (id) where id = any($1::bigint[])`;

const UPDATE_HELD = `
  with before as materialized (select id, title, author, year from books where id = $1 and ${DURABLY} for update), stored as (
    update books set
      title = coalesce($2, before.title), author = coalesce($3, before.author), year = coalesce($4, before.year)
    from before where books.id = before.id
  )
  select id, title, author, year from before`;

const REMOVE = `
  with free as materialized (
    select id from books where id = any($1::bigint[]) and ${DURABLY} for update skip locked
  ), removed as (
    delete from books using free where books.id = free.id
  )
  select id, free.id is null as held from books left join free using (id) where id = any($1::bigint[])`;

const REMOVE_HELD = `delete from books where id = $1 and ${DURABLY}`;

// Compare and set: a book takes its new state only if it still is as it was when its condition was tested. A hash in SQL
// would be another one on each relative of PostgreSQL.
const changeIf = (whenLocked: 'skip locked' | '') => `
  with change as (
    select *
    from unnest(
      $1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::boolean[]
    ) as change (id, old_title, old_author, old_year, title, author, year, is_removal)
  ), free as materialized (
    select id, title, author, year from books
    where id = any($1::bigint[]) and ${DURABLY} for update ${whenLocked}
  ), same as materialized (
    select change.* from change join free using (id)
    where free.title = old_title and free.author = old_author and free.year = old_year
  ), updated as (
    update books set title = same.title, author = same.author, year = same.year
    from same where books.id = same.id and not is_removal
  ), removed as (
    delete from books using same where books.id = same.id and is_removal
  )
  select id from same`;

const CHANGE_IF = changeIf('skip locked');
const CHANGE_IF_HELD = changeIf('');

/** How often a condition is tested while others change the book in between. */
const MOST_TESTS = 5;

// Each book is followed by a line end, which is white space in JSON.
const LIST = asJson(',');

/**
 * Opens the store, creating or updating its structure.
 * @throws Error with the reason when that is impossible.
 */
export async function openPostgres(hosts: Hosts, { find }: OpenOptions): Promise<BookStore> {
  const { address, client } = await connectToWritable(hosts);
  try {
    await createStructure(client);
    if (find) await new PostgresIndex(client).create();
  } finally {
    void client.end();
  }
  const connections = new Connections(hosts, address);
  return new PostgresStore(connections, find ? new PostgresFinder(hosts, connections) : undefined);
}

interface GroupRow {
  /** The ids of books that were stored now, and of those that an earlier call with this key has stored. */
  readonly made: readonly string[] | null;
  readonly known: readonly string[] | null;
  readonly fingerprint: string;
}

interface StoredGroup {
  /** The call that stored it; undefined if it was stored before. */
  readonly by: BookGroup | undefined;
  readonly ids: readonly string[];
  readonly fingerprint: string | undefined;
}

interface HeldRow extends Book {
  readonly held: boolean;
}

class PostgresStore implements BookStore {
  readonly limits = {
    find: OVERLAPPING,
    insert: OVERLAPPING,
    keyed: ONE_AT_A_TIME,
    bulk: { ...ONE_AT_A_TIME, size: 1 },
    update: ONE_AT_A_TIME,
    remove: ONE_AT_A_TIME,
    conditional: ONE_AT_A_TIME,
    search: SEARCHES,
  };
  readonly #connections: Connections;
  /** Undefined if books are not searched. */
  readonly #finder: PostgresFinder | undefined;
  readonly #lists = new OpenLists(LIST_CONNECTIONS);
  /** When expired keys are removed again. */
  #expiryAt = 0;
  readonly #heldUpdates = new HeldBooks<BookChanges, Book | undefined>((id, changes, deadline) =>
    this.#updateHeld(id, changes, deadline),
  );
  readonly #heldRemovals = new HeldBooks<null, boolean>((id, calls, deadline) =>
    this.#removeHeld(id, calls.length, deadline),
  );

  readonly #heldConditionals = new HeldBooks<ConditionalChange, ConditionalOutcome>((_, changes, deadline) =>
    this.#changeHeldIf(changes, deadline),
  );

  constructor(connections: Connections, finder: PostgresFinder | undefined) {
    this.#connections = connections;
    this.#finder = finder;
  }

  async find(ids: readonly number[], deadline: number): Promise<readonly (Book | undefined)[]> {
    const { rows } = await this.#connections.query<Book>('batches', FIND, [ids], deadline);
    const found = new Map(rows.map((book) => [book.id, book]));
    return ids.map((id) => found.get(id));
  }

  async insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]> {
    const columns = [
      books.map(({ title }) => title),
      books.map(({ author }) => author),
      books.map(({ year }) => year),
    ];
    const rows = await this.#insert<{ id: number }>(INSERT, columns, deadline);
    return rows.map(({ id }) => id);
  }

  /** Sends a statement that stores new books. */
  async #insert<Row extends pg.QueryResultRow>(
    statement: string,
    columns: unknown[],
    deadline: number,
  ): Promise<readonly Row[]> {
    const send = async () =>
      (await this.#connections.query<Row>('batches', statement, columns, deadline)).rows;
    try {
      return await send();
    } catch (error) {
      if (!isIdTaken(error)) throw error;
      // Books were inserted with ids of their own, and the sequence is behind them. Nothing was stored.
      await this.#connections.query('batches', CATCH_UP, [], deadline);
      return await send();
    }
  }

  async insertGroups(groups: readonly BookGroup[], deadline: number): Promise<readonly GroupOutcome[]> {
    // Of groups with one key, the first is sent. The others are replays of what is stored then, or conflicts with it.
    const keyOf = (group: BookGroup) => group.once?.key ?? group;
    const open = new Map(groups.toReversed().map((group) => [keyOf(group), group]));
    const stored = new Map<string | BookGroup, StoredGroup>();
    for (let round = 1; open.size > 0; round += 1) {
      if (round > MOST_ROUNDS)
        throw new StoreUnavailable('another process is storing the same request', 'late');
      const sent = [...open.values()];
      const columns = [
        sent.map(({ once }) => once?.key),
        sent.map(({ once }) => once?.fingerprint),
        sent.map(({ books }) => books),
      ];
      const rows = await this.#insert<GroupRow>(INSERT_GROUPS, columns, deadline);
      sent.forEach((group, position) => {
        const { made, known, fingerprint } = rows[position] as GroupRow;
        if (made !== null)
          stored.set(keyOf(group), { by: group, ids: made, fingerprint: group.once?.fingerprint });
        else if (known !== null) stored.set(keyOf(group), { by: undefined, ids: known, fingerprint });
        if (stored.has(keyOf(group))) open.delete(keyOf(group));
      });
    }
    if (groups.some(({ once }) => once !== undefined)) void this.#expireKeys();
    return groups.map((group) => {
      const { by, ids, fingerprint } = stored.get(keyOf(group)) as StoredGroup;
      if (group.once?.fingerprint !== fingerprint) return 'conflict';
      return { ids: ids.map(Number), isReplay: group !== by };
    });
  }

  /** Removes keys that have expired. What it does not remove, it removes the next time. */
  async #expireKeys(): Promise<void> {
    const time = performance.now();
    if (time < this.#expiryAt) return;
    this.#expiryAt = time + EXPIRY_PAUSE;
    try {
      const { rowCount } = await this.#connections.query('batches', EXPIRE_KEYS, [], time + STATEMENT_TIME);
      if (rowCount === EXPIRED_KEYS) this.#expiryAt = 0;
    } catch {
      // Requests report that the store is unavailable.
    }
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
    const { rows } = await this.#connections.query<HeldRow>('batches', UPDATE, columns, deadline);

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
    const { rows } = await this.#connections.query<HeldRow>('batches', REMOVE, [[...new Set(ids)]], deadline);
    const states = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => {
      const row = states.get(id);
      if (row?.held) return this.#heldRemovals.call(id, null, deadline);
      return states.delete(id); // true for the first call of each book only
    });
  }

  async changeIf(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly Eventual<ConditionalOutcome>[]> {
    const { outcomes, unsettled } = await this.#compareAndSet('batches', changes, deadline);
    return changes.map((change, position) => {
      return unsettled.has(change.id)
        ? this.#heldConditionals.call(change.id, change, deadline)
        : outcomes[position];
    });
  }

  async search(searches: readonly Search[], deadline: number): Promise<readonly Page[]> {
    const finder = this.#finder;
    if (finder === undefined) throw new StoreUnavailable('FIND is off');
    return Promise.all(searches.map((search) => finder.find(search, deadline)));
  }

  list(): Promise<BookList> {
    const signal = AbortSignal.timeout(FIRST_CHUNK_TIMEOUT);
    return this.#lists.open(() => this.#list(signal));
  }

  async #list(signal: AbortSignal): Promise<BookList> {
    const client = await this.#connections.takeForList();
    const rows = client.query(copyTo(LIST));
    // The reader gets an error; it may also occur when there is no reader any more.
    rows.on('error', () => {});
    const onClientError = (error: Error) => rows.destroy(error);
    client.on('error', onClientError);

    let open = true;
    const close = () => {
      if (!open) return;
      open = false;
      client.release(!rows.readableEnded); // rows are still arriving: only ending the connection stops them
      client.off('error', onClientError);
    };
    try {
      await once(rows, 'readable', { signal });
    } catch (error) {
      close();
      throw this.#connections.unavailable(error);
    }
    return { chunks: withoutLeadingComma(rows), close };
  }

  metrics(): Metric[] {
    const unindexed = 'Books that a search may not find yet, about.';
    return [
      ...this.#connections.metrics(),
      gauge('book_catalogue_unindexed_books', unindexed, this.#finder?.unindexed ?? []),
    ];
  }

  async close(): Promise<void> {
    this.#finder?.close();
    await this.#connections.close();
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

  /** Carries out changes of one book in order, after waiting for its lock. */
  async #changeHeldIf(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly ConditionalOutcome[]> {
    for (let test = 1; test <= MOST_TESTS; test += 1) {
      const { outcomes, unsettled } = await this.#compareAndSet('held', changes, deadline);
      if (unsettled.size === 0) return outcomes;
    }
    throw new StoreUnavailable('others change the book all the time', 'late');
  }

  /**
   * Reads the books, tests the conditions in order, and stores what has changed.
   * @param pool `held` waits for locks of others.
   * @returns the outcomes, and the ids of the books that were locked or have changed meanwhile: those are not valid.
   */
  async #compareAndSet(
    pool: 'batches' | 'held',
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<{ outcomes: readonly ConditionalOutcome[]; unsettled: ReadonlySet<number> }> {
    const ids = [...new Set(changes.map(({ id }) => id))];
    const { rows } = await this.#connections.query<Book>(pool, FIND, [ids], deadline);
    const before = new Map(rows.map((book) => [book.id, book]));
    const after = new Map(before);
    const changed = new Set<number>();
    const outcomes = changes.map(({ id, condition, changes }): ConditionalOutcome => {
      const book = after.get(id);
      if (book === undefined) return undefined;
      if (!meets(book, condition)) return 'unmet';
      changed.add(id);
      if (changes === undefined) {
        after.delete(id);
        return book;
      }
      const state = { ...book, ...changes };
      after.set(id, state);
      return state;
    });
    if (changed.size === 0) return { outcomes, unsettled: changed };

    const old = [...changed].map((id) => before.get(id) as Book);
    const columns = [
      old.map(({ id }) => id),
      old.map(({ title }) => title),
      old.map(({ author }) => author),
      old.map(({ year }) => year),
      old.map(({ id }) => after.get(id)?.title),
      old.map(({ id }) => after.get(id)?.author),
      old.map(({ id }) => after.get(id)?.year),
      old.map(({ id }) => !after.has(id)),
    ];
    const statement = pool === 'held' ? CHANGE_IF_HELD : CHANGE_IF;
    const stored = await this.#connections.query<{ id: number }>(pool, statement, columns, deadline);
    for (const { id } of stored.rows) changed.delete(id);
    return { outcomes, unsettled: changed };
  }
}

/** A call for a book that is locked by others. */
interface HeldCall<Item, Answer> extends PromiseWithResolvers<Answer> {
  readonly item: Item;
  readonly deadline: number;
}

/**
 * Calls for books that are locked by others. Each book waits by itself. Calls that arrive while its statement waits for
 * the lock form the next statement.
 */
class HeldBooks<Item, Answer> {
  readonly #carry: (id: number, items: readonly Item[], deadline: number) => Promise<readonly Answer[]>;
  /** By the id of each book in question: the calls that wait for their statement. */
  readonly #books = new Map<number, HeldCall<Item, Answer>[]>();

  constructor(carry: (id: number, items: readonly Item[], deadline: number) => Promise<readonly Answer[]>) {
    this.#carry = carry;
  }

  call(id: number, item: Item, deadline: number): Promise<Answer> {
    const call = { item, deadline, ...Promise.withResolvers<Answer>() };
    const waiting = this.#books.get(id);
    if (waiting === undefined) {
      this.#books.set(id, [call]);
      void this.#carryAll(id);
    } else {
      waiting.push(call);
    }
    return call.promise;
  }

  async #carryAll(id: number): Promise<void> {
    await setImmediate(); // to gather the calls of this turn of the event loop
    for (
      let calls = this.#books.get(id);
      calls !== undefined && calls.length > 0;
      calls = this.#books.get(id)
    ) {
      this.#books.set(id, []);
      const { inTime = [], overdue = [] } = Object.groupBy(calls, ({ deadline }) =>
        performance.now() < deadline ? 'inTime' : 'overdue',
      );
      for (const call of overdue) call.reject(OVERDUE);
      await this.#carryTogether(id, inTime);
    }
    this.#books.delete(id);
  }

  async #carryTogether(id: number, calls: readonly HeldCall<Item, Answer>[]): Promise<void> {
    if (calls.length === 0) return;
    try {
      const items = calls.map(({ item }) => item);
      const answers = await this.#carry(id, items, Math.min(...calls.map(({ deadline }) => deadline)));
      for (const [position, call] of calls.entries()) call.resolve(answers[position] as Answer);
    } catch (error) {
      for (const call of calls) call.reject(error);
    }
  }
}

/** Whether an insert failed because a book already has an id that the sequence has just given out. */
function isIdTaken(error: unknown): boolean {
  const cause = error instanceof StoreUnavailable ? error.cause : undefined;
  return cause instanceof pg.DatabaseError && cause.code === '23505' && cause.constraint === 'books_pkey';
}

/**
 * The rows as they arrive, without the leading comma: in SQL every row begins with one, so that the first needs no
 * special case. If the server stops answering while more rows are wanted, the list breaks off.
 */
async function* withoutLeadingComma(rows: Readable): AsyncGenerator<Buffer, void, void> {
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
