// Owns: changes and removals of books in PostgreSQL. Those of books that others have locked, and changes of large books, are
// carried out alone.

import type { Book, BookChanges } from '../../books/book.ts';
import { meets } from '../../books/condition.ts';
import {
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type Eventual,
  StoreUnavailable,
} from '../../books/store.ts';
import { Alone, type Change } from './alone.ts';
import type { Connections } from './connections.ts';
import type { Statements } from './statements.ts';

/** A book that is `held` was skipped, and has null fields. */
interface Row extends Book {
  readonly held?: boolean;
}

/** The outcome for a book that was skipped. */
const HELD = 'held';

export class BookChanger {
  readonly #connections: Connections;
  readonly #statements: Statements;
  readonly #alone = new Alone((changes, deadline) => {
    return this.#carryOut('held', changes, deadline) as Promise<readonly ConditionalOutcome[]>;
  });

  constructor(connections: Connections, statements: Statements) {
    this.#connections = connections;
    this.#statements = statements;
  }

  async update(
    updates: readonly BookUpdate[],
    deadline: number,
  ): Promise<readonly Eventual<Book | undefined>[]> {
    const merged = new Map<number, BookChanges>();
    for (const { id, changes } of updates) merged.set(id, { ...merged.get(id), ...changes });
    const changes = [...merged].map(([id, changes]) => ({ id, ...changes }));
    const { rows } = await this.#query(this.#statements.update, columnsOf(changes), deadline);
    // They are as they were; the changes applied to them are known.
    const states = new Map(rows.map((row) => [row.id, row]));
    return updates.map(({ id, changes }) => {
      const row = states.get(id);
      if (row === undefined) return undefined;
      if (row.held) return this.#alone.call({ id, changes }, deadline) as Promise<Book | undefined>;
      const state = { ...row, ...changes };
      states.set(id, state);
      return { id, title: state.title, author: state.author, year: state.year };
    });
  }

  async remove(ids: readonly number[], deadline: number): Promise<readonly Eventual<boolean>[]> {
    const { rows } = await this.#query(this.#statements.remove, [[...new Set(ids)]], deadline);
    const states = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => {
      if (!states.get(id)?.held) return states.delete(id); // true for the first call of each book only
      return this.#alone.call({ id, changes: undefined }, deadline).then((book) => book !== undefined);
    });
  }

  async changeIf(
    changes: readonly ConditionalChange[],
    deadline: number,
  ): Promise<readonly Eventual<ConditionalOutcome>[]> {
    const outcomes = await this.#carryOut('batches', changes, deadline);
    return outcomes.map((outcome, position) => {
      if (outcome !== HELD) return outcome;
      return this.#alone.call(changes[position] as ConditionalChange, deadline);
    });
  }

  #query(text: string, columns: unknown[], deadline: number) {
    return this.#connections.query<Row>('batches', text, columns, deadline);
  }

  /**
   * Carries out changes in their order, in one transaction that has locked their books (rule E3).
   * @param pool `held` waits for the locks of others; `batches` skips those books, and large ones.
   */
  #carryOut(
    pool: 'batches' | 'held',
    changes: readonly Change[],
    deadline: number,
  ): Promise<readonly (ConditionalOutcome | typeof HELD)[]> {
    const statements = this.#statements;
    return this.#connections.transaction(pool, deadline, async (query) => {
      const ids = new Set(changes.map(({ id }) => id));
      const { rows } = await query<Row>(pool === 'held' ? statements.lock : statements.lockFree, [[...ids]]);
      const held = new Set(rows.filter((row) => row.held).map(({ id }) => id));
      const states = new Map(rows.map(({ id, title, author, year }) => [id, { id, title, author, year }]));
      const changed = new Set<number>();
      const outcomes = changes.map(({ id, condition, changes }) => {
        if (held.has(id)) return HELD;
        const book = states.get(id);
        if (book === undefined) return undefined;
        if (condition !== undefined && !meets(book, condition)) return 'unmet';
        changed.add(id);
        if (changes === undefined) {
          states.delete(id);
          return book;
        }
        const state = { ...book, ...changes };
        states.set(id, state);
        return state;
      });
      const write = async (text: string, columns: readonly unknown[][]) => {
        const all = columns[0]?.length;
        if (all === 0) return;
        // Else a write that a trigger of an operator has skipped would be acknowledged.
        if ((await query(text, [...columns])).rowCount !== all)
          throw new StoreUnavailable(`a trigger has skipped some of the writes: ${all}`, 'refused');
      };
      await write(statements.store, columnsOf([...changed].flatMap((id) => states.get(id) ?? [])));
      await write(statements.delete, [[...changed].filter((id) => !states.has(id))]);
      return outcomes;
    });
  }
}

/** The arrays of a statement; undefined for a field that is not changed. */
function columnsOf(books: readonly ({ readonly id: number } & BookChanges)[]): unknown[][] {
  return [
    books.map(({ id }) => id),
    books.map(({ title }) => title),
    books.map(({ author }) => author),
    books.map(({ year }) => year),
  ];
}
