// Owns: changes of books in PostgreSQL that take effect only on a condition (rule E3).

import type { Book } from '../../books/book.ts';
import { meets } from '../../books/condition.ts';
import {
  type ConditionalChange,
  type ConditionalOutcome,
  type Eventual,
  type Left,
  StoreUnavailable,
  weightOfAnswer,
} from '../../books/store.ts';
import type { Connections } from './connections.ts';
import { LockedBooks } from './locked-books.ts';
import { allOf, DURABLY, type FindStatements, findFirst, WITH_IDS } from './statements.ts';

// Compare and set: a book takes its new state only if it still is as it was when its condition was tested. A hash in SQL
// would be another one on each relative of PostgreSQL.
const changeIf = (whenLocked: 'skip locked' | '') => `
  with change as (
    select *
    from unnest(
      $1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::boolean[]
    ) as change (id, old_title, old_author, old_year, title, author, year, is_removal)
  ), free as materialized (
    select id, title, author, year from ${WITH_IDS} and ${DURABLY} for update of books ${whenLocked}
  ), same as materialized (
    select change.* from change join free using (id)
    where free.title = old_title and free.author = old_author and free.year = old_year
  ), updated as (
    update books set title = same.title, author = same.author, year = same.year
    from same where books.id = same.id and not is_removal
    returning books.id
  ), removed as (
    delete from books using same where books.id = same.id and is_removal returning books.id
  )
  select id from same where ${allOf('same', 'updated', 'removed')}`;
const STATEMENTS = { batches: changeIf('skip locked'), held: changeIf('') };

/** How often a condition is tested while others change the book in between. */
const MOST_TESTS = 5;

/**
 * Stores new states of books that still are as they were.
 * @param pool `held` waits for locks of others.
 * @param columns ids; old titles, authors and years; new ones; whether the book is removed.
 * @returns the ids of those books.
 */
export type StoreStates = (
  connections: Connections,
  pool: 'batches' | 'held',
  columns: unknown[][],
  deadline: number,
) => Promise<readonly number[]>;

const storeStates: StoreStates = async (connections, pool, columns, deadline) => {
  const { rows } = await connections.query<{ id: number }>(pool, STATEMENTS[pool], columns, deadline);
  return rows.map(({ id }) => id);
};

export class ConditionalChanges {
  readonly #connections: Connections;
  readonly #find: FindStatements;
  readonly #store: StoreStates;
  readonly #held = new LockedBooks<ConditionalChange, ConditionalOutcome>(
    (_, changes, deadline) => this.#carryOutHeld(changes, deadline),
    weightOfAnswer,
  );

  constructor(connections: Connections, find: FindStatements, store: StoreStates = storeStates) {
    this.#connections = connections;
    this.#find = find;
    this.#store = store;
  }

  async carryOut(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly (Eventual<ConditionalOutcome> | Left)[]> {
    const { outcomes, unsettled } = await this.#compareAndSet('batches', changes, deadline);
    return changes.map((change, position) => {
      return unsettled.has(change.id) ? this.#held.call(change.id, change, deadline) : outcomes[position];
    });
  }

  /** Carries out changes of one book in order, after waiting for its lock. */
  async #carryOutHeld(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly ConditionalOutcome[]> {
    for (let test = 1; test <= MOST_TESTS; test += 1) {
      const { outcomes, unsettled } = await this.#compareAndSet('held', changes, deadline);
      if (unsettled.size === 0) return outcomes as readonly ConditionalOutcome[]; // one book is not left out
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
  ): Promise<{ outcomes: readonly (ConditionalOutcome | Left)[]; unsettled: ReadonlySet<number> }> {
    const ids = [...new Set(changes.map(({ id }) => id))];
    const before = await findFirst(this.#connections, pool, this.#find, ids, deadline);
    const after = new Map(before);
    const changed = new Set<number>();
    const outcomes = changes.map(({ id, condition, changes }): ConditionalOutcome | Left => {
      if (!before.has(id)) return null;
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
    for (const id of await this.#store(this.#connections, pool, columns, deadline)) changed.delete(id);
    return { outcomes, unsettled: changed };
  }
}
