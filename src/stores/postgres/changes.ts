// Owns: changes and removals of books in PostgreSQL. Calls for books that others have locked, and changes of large books, are
// sent by themselves.

import type { Book, BookChanges } from '../../books/book.ts';
import {
  type BookStore,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type Eventual,
  type Left,
  weightOfAnswer,
} from '../../books/store.ts';
import { ConditionalChanges } from './conditional-changes.ts';
import type { Connections } from './connections.ts';
import { LockedBooks } from './locked-books.ts';
import { allOf, DURABLY, type FindStatements, IS_LIGHT, WITH_IDS } from './statements.ts';

// Books that are locked by others are skipped, and marked as `held` to distinguish them from missing ones. So are large ones:
// they would take much memory together. The other books are returned as they were; the changes applied to them are known.
const UPDATE = `
  with change as (
    select * from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) as change (id, title, author, year)
  ), before as materialized (
    select id, title, author, year from ${WITH_IDS} and ${IS_LIGHT} and ${DURABLY} for no key update of books skip locked
  ), stored as (
    update books set
      title = coalesce(change.title, before.title),
      author = coalesce(change.author, before.author),
      year = coalesce(change.year, before.year)
    from before join change using (id) where books.id = before.id
    returning books.id
  )
  select id, before.id is null as held, before.title, before.author, before.year
  from (select id from ${WITH_IDS}) as books left join before using (id) where ${allOf('before', 'stored')}`;

const UPDATE_HELD = `
  with before as materialized (select id, title, author, year from books where id = $1 and ${DURABLY} for no key update), stored as (
    update books set
      title = coalesce($2, before.title), author = coalesce($3, before.author), year = coalesce($4, before.year)
    from before where books.id = before.id
    returning books.id
  )
  select id, title, author, year from before where ${allOf('before', 'stored')}`;

const REMOVE = `
  with free as materialized (
    select id from ${WITH_IDS} and ${DURABLY} for update of books skip locked
  ), removed as (
    delete from books using free where books.id = free.id returning books.id
  )
  select id, free.id is null as held from (select id from ${WITH_IDS}) as books left join free using (id)
  where ${allOf('free', 'removed')}`;

const REMOVE_HELD = `
  with free as materialized (select id from books where id = $1 and ${DURABLY} for update), removed as (
    delete from books using free where books.id = free.id returning books.id
  )
  select from free where ${allOf('free', 'removed')}`;

interface LockedRow extends Book {
  readonly held: boolean;
}

/** What a store does to books that it has. */
export type Changes = Pick<BookStore, 'update' | 'remove' | 'changeIf'>;

export class BookChanger implements Changes {
  readonly #connections: Connections;
  readonly #conditional: ConditionalChanges;
  readonly #heldUpdates = new LockedBooks<BookChanges, Book | undefined>(
    (id, changes, deadline) => this.#updateHeld(id, changes, deadline),
    weightOfAnswer,
  );
  readonly #heldRemovals = new LockedBooks<null, boolean>((id, calls, deadline) =>
    this.#removeHeld(id, calls.length, deadline),
  );

  constructor(connections: Connections, find: FindStatements) {
    this.#connections = connections;
    this.#conditional = new ConditionalChanges(connections, find);
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
    const { rows } = await this.#connections.query<LockedRow>('batches', UPDATE, columns, deadline);

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
    const { rows } = await this.#connections.query<LockedRow>(
      'batches',
      REMOVE,
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
  ): Promise<readonly (Eventual<ConditionalOutcome> | Left)[]> {
    return this.#conditional.carryOut(changes, deadline);
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
