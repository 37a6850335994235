// Owns: storing new books in PostgreSQL, and the keys with which a request stores its books once (rules I1 to I4).

import { type BookFields, FIELD_NAMES, valuesOf } from '../../books/book.ts';
import { KEPT_KEYS } from '../../books/once.ts';
import type { BookGroup, GroupOutcome } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { FIELDS, ID_AND_FIELDS } from '../columns.ts';
import type { Connections } from './connections.ts';
import { codeOf } from './query.ts';
import { allOf, arraysFrom, columnsOf, DURABLY, TYPED } from './statements.ts';
import { CATCH_UP } from './structure.ts';

const INSERT = `
  with book as materialized (
    select nextval('books_id_seq') as id, sent.*
    from unnest(${arraysFrom(1)}) with ordinality as sent (${FIELDS}, ordinal)
    where ${DURABLY}
  ), stored as (
    insert into books (${ID_AND_FIELDS}) select ${ID_AND_FIELDS} from book returning id
  )
  select id from book where ${allOf('book', 'stored')} order by ordinal`;

// Stores groups of new books. No two of them have the same key. The statement waits for a key that another transaction is storing.
// It takes the keys in one order, so that two batches never wait for each other. If another transaction has stored a key since the
// statement began, the row has no ids, and the group is sent again.
const INSERT_GROUPS = `
  with sent as (
    select * from unnest($1::text[], $2::text[], $3::text[]) with ordinality as sent (key, fingerprint, books, ordinal)
    where ${DURABLY}
  ), known as materialized (
    select key, fingerprint, ids from book_requests where key = any($1::text[])
  ), book as materialized (
    select sent.ordinal, element.position, nextval('books_id_seq') as id, element.book
    from sent cross join json_array_elements(books::json) with ordinality as element (book, position)
    where sent.key is null or sent.key not in (select key from known)
  ), made as (
    select sent.ordinal, key, fingerprint, coalesce(array_agg(id order by position) filter (where id is not null), '{}') as ids
    from sent left join book using (ordinal)
    where sent.key is null or sent.key not in (select key from known)
    group by sent.ordinal, key, fingerprint
  ), claimed as (
    insert into book_requests (key, fingerprint, ids)
    select key, fingerprint, ids from made where key is not null order by key
    on conflict (key) do nothing
    returning key
  ), settled as (
    select ordinal, ids from made where key is null or key in (select key from claimed)
  ), fresh as (
    select id, book from book where ordinal in (select ordinal from settled)
  ), stored as (
    insert into books (${ID_AND_FIELDS})
    select id, ${TYPED.map(({ type }, position) => `(book ->> ${position})::${type}`)} from fresh
    returning id
  )
  select coalesce(settled.ids, known.ids) as ids, settled.ids is not null as "isNew",
    coalesce(known.fingerprint, sent.fingerprint) as fingerprint
  from sent left join settled using (ordinal) left join known using (key)
  where ${allOf('fresh', 'stored')} order by ordinal`;

/** After so many groups, old keys are removed. A removal reads `KEPT_KEYS` rows. */
const REMOVAL_PACE = 1000;
/** More than were added, so that removals catch up. */
const MOST_REMOVED = 2 * REMOVAL_PACE;

const removalOf = ({ lifetime }: Times['keys']) => `
  delete from book_requests where key in (
    select key from book_requests
    where made_at < now() - interval '${lifetime} milliseconds'
      and made_at < (select made_at from book_requests order by made_at desc offset ${KEPT_KEYS - 1} limit 1)
    order by made_at limit ${MOST_REMOVED} for update skip locked
  )`;

/** The code for a duplicate value: an id, or a value that an operator's index allows once. Citus does not say which. */
const TAKEN = '23505';

interface GroupRow {
  readonly ids: readonly string[] | null;
  /** Whether the books were stored now, not by an earlier call with this key. */
  readonly isNew: boolean;
  readonly fingerprint: string | null;
}

export class NewBooks {
  readonly #connections: Connections;
  readonly #removal: string;
  /** Groups until the next removal: one at first, since a process may end before it has stored more. */
  #untilRemoval = 1;

  constructor(connections: Connections, times: Times['keys']) {
    this.#connections = connections;
    this.#removal = removalOf(times);
  }

  async insert(books: readonly BookFields[], deadline: number): Promise<readonly number[]> {
    const rows = await this.#send<{ id: number }>(INSERT, columnsOf(FIELD_NAMES, books), deadline);
    return rows.map(({ id }) => id);
  }

  async insertGroups(groups: readonly BookGroup[], deadline: number): Promise<readonly GroupOutcome[]> {
    // Of groups with the same key, only the first is sent. The others are replays of it, or conflicts with it.
    const keyOf = (group: BookGroup) => group.once?.key ?? group;
    const firsts = new Map(groups.toReversed().map((group) => [keyOf(group), group]));
    const stored = new Map<string | BookGroup, GroupRow>();
    while (stored.size < firsts.size) {
      const sent = [...firsts.values()].filter((group) => !stored.has(keyOf(group)));
      const columns = [
        sent.map(({ once }) => once?.key),
        sent.map(({ once }) => once?.fingerprint),
        sent.map(({ books }) => JSON.stringify(books.map(valuesOf))),
      ];
      const rows = await this.#send<GroupRow>(INSERT_GROUPS, columns, deadline);
      for (const [position, group] of sent.entries()) {
        const row = rows[position] as GroupRow;
        if (row.ids !== null) stored.set(keyOf(group), row);
      }
    }
    this.#untilRemoval -= groups.length;
    if (this.#untilRemoval <= 0) void this.#removeExpiredKeys(deadline);
    return groups.map((group) => {
      const { ids, isNew, fingerprint } = stored.get(keyOf(group)) as GroupRow;
      if (fingerprint !== (group.once?.fingerprint ?? null)) return 'conflict';
      return { ids: (ids ?? []).map(Number), isReplay: !isNew || group !== firsts.get(keyOf(group)) };
    });
  }

  /** Sends a statement that stores new books. */
  async #send<Row extends object>(
    statement: string,
    columns: unknown[],
    deadline: number,
  ): Promise<readonly Row[]> {
    const attempt = () => this.#connections.query<Row>('batches', statement, columns, deadline);
    try {
      return await attempt();
    } catch (error) {
      if (codeOf(error) !== TAKEN) throw error;
      // Books may have been inserted with given ids, and the sequence may be behind them. Nothing was stored.
      await this.#connections.query('batches', CATCH_UP, [], deadline);
      return await attempt();
    }
  }

  /** The next removal removes the keys that this one does not. */
  async #removeExpiredKeys(deadline: number): Promise<void> {
    this.#untilRemoval = Infinity; // one removal at a time
    await this.#connections.query('batches', this.#removal, [], deadline).catch(() => {}); // requests report it
    this.#untilRemoval = REMOVAL_PACE;
  }
}
