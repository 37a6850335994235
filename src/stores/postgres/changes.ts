// Owns: changes and removals of books in PostgreSQL. A book that others have locked, and a large one that changes, waits alone.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Book, bookWith, FIELD_NAMES, valuesOf } from '../../books/book.ts';
import { meets } from '../../books/condition.ts';
import type { Answers, BookUpdate, ConditionalChange, ConditionalOutcome } from '../../books/store.ts';
import { type Connections, OVERDUE } from './connections.ts';
import { columnsOf, type Statements, writeAll } from './statements.ts';

const ID_AND_NAMES = ['id', ...FIELD_NAMES] as const;

interface Row extends Book {
  /** Whether others have locked it, or it is large: then it was skipped, and its fields are null. */
  readonly locked?: boolean;
}

/** A change or a removal of a book, with a condition or without. */
type Change = Pick<ConditionalChange, 'id' | 'changes'> & Partial<ConditionalChange>;

interface Call extends PromiseWithResolvers<ConditionalOutcome> {
  readonly change: Change;
  readonly deadline: number;
}

export class BookChanger {
  readonly #connections: Connections;
  readonly #statements: Statements;
  /** The next calls of each book that waits alone, by its id. */
  readonly #alone = new Map<number, Call[]>();

  constructor(connections: Connections, statements: Statements) {
    this.#connections = connections;
    this.#statements = statements;
  }

  async update(updates: readonly BookUpdate[], deadline: number): Answers<Book | undefined> {
    const ids = new Set(updates.map(({ id }) => id));
    if (ids.size < updates.length) return this.changeIf(updates, deadline) as Answers<Book | undefined>;
    const sent = updates.map(({ id, changes }) => ({ id, ...changes }));
    const rows = await this.#query(this.#statements.update, columnsOf(ID_AND_NAMES, sent), deadline);
    // The statement returns the books before the changes.
    const before = new Map(rows.map((row) => [row.id, row]));
    return updates.map((update) => {
      const { id, changes } = update;
      const row = before.get(id);
      if (row === undefined) return undefined;
      if (row.locked) return this.#callAlone(update, deadline) as Promise<Book | undefined>;
      return bookWith([id, ...valuesOf({ ...row, ...changes })]);
    });
  }

  async remove(ids: readonly number[], deadline: number): Answers<boolean> {
    const rows = await this.#query(this.#statements.remove, [[...new Set(ids)]], deadline);
    const states = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => {
      if (!states.get(id)?.locked) return states.delete(id); // true for the first call of each book only
      return this.#callAlone({ id, changes: undefined }, deadline).then((book) => book !== undefined);
    });
  }

  async changeIf(changes: readonly Change[], deadline: number): Answers<ConditionalOutcome> {
    const outcomes = await this.#carryOut('batches', changes, deadline);
    return outcomes.map((outcome, position) => {
      if (outcome !== 'locked') return outcome;
      return this.#callAlone(changes[position] as Change, deadline);
    });
  }

  #query(text: string, columns: unknown[], deadline: number) {
    return this.#connections.query<Row>('batches', text, columns, deadline);
  }

  /** Calls that arrive while their book waits are carried out together afterwards. */
  #callAlone(change: Change, deadline: number): Promise<ConditionalOutcome> {
    const call = { change, deadline, ...Promise.withResolvers<ConditionalOutcome>() };
    const waiting = this.#alone.get(change.id);
    waiting?.push(call);
    if (waiting === undefined) {
      this.#alone.set(change.id, [call]);
      void this.#carryOutAlone(change.id);
    }
    return call.promise;
  }

  async #carryOutAlone(id: number): Promise<void> {
    await nextTurn(); // to gather the calls of this turn of the event loop
    for (let calls = this.#alone.get(id); calls?.length; calls = this.#alone.get(id)) {
      this.#alone.set(id, []);
      const inTime = calls.filter(({ deadline }) => deadline > performance.now());
      const end = Math.min(...inTime.map(({ deadline }) => deadline));
      const changes = inTime.map(({ change }) => change);
      try {
        const outcomes = changes.length > 0 ? await this.#carryOut('held', changes, end) : [];
        for (const [position, { resolve }] of inTime.entries())
          resolve(outcomes[position] as ConditionalOutcome);
      } catch (error) {
        for (const { reject } of inTime) reject(error);
      }
      for (const { reject } of calls) reject(OVERDUE); // which only affects calls that are not settled
    }
    this.#alone.delete(id);
  }

  /**
   * Carries out changes in their order, in one transaction that has locked their books (rule E3). Of several changes of one book,
   * each is written, since the log has each of them.
   * @param pool `held` waits for the locks of others; `batches` skips locked books, and large ones.
   */
  #carryOut(
    pool: 'batches' | 'held',
    changes: readonly Change[],
    deadline: number,
  ): Promise<readonly (ConditionalOutcome | 'locked')[]> {
    const statements = this.#statements;
    return this.#connections.transaction(pool, deadline, async (query) => {
      const ids = new Set(changes.map(({ id }) => id));
      const rows = await query<Row>(pool === 'held' ? statements.lock : statements.lockFree, [[...ids]]);
      const locked = new Set(rows.filter((row) => row.locked).map(({ id }) => id));
      const states = new Map(rows.map((row) => [row.id, bookWith([row.id, ...valuesOf(row)])]));
      /** The first state of each book that changes, then the second one of each, and so on. */
      const writes: Book[][] = [];
      const changed = new Map<number, number>();
      const outcomes = changes.map(({ id, condition, changes }) => {
        if (locked.has(id)) return 'locked';
        const book = states.get(id);
        if (book === undefined) return undefined;
        if (condition !== undefined && !meets(book, condition)) return 'unmet';
        const earlier = changed.get(id) ?? 0;
        changed.set(id, earlier + 1);
        if (changes === undefined) {
          states.delete(id);
          return book;
        }
        const state = { ...book, ...changes };
        states.set(id, state);
        writes[earlier] ??= [];
        writes[earlier].push(state);
        return state;
      });
      for (const books of writes) await writeAll(query, statements.store, columnsOf(ID_AND_NAMES, books));
      await writeAll(query, statements.delete, [[...changed.keys()].filter((id) => !states.has(id))]);
      return outcomes;
    });
  }
}
