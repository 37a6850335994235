// Owns: changes and removals of books in PostgreSQL. A book that others have locked, and a large one that changes, waits alone. Of
// several changes of one book in a batch, the first is carried out: the log has each change.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Book, bookWith, FIELD_NAMES, valuesOf } from '../../books/book.ts';
import { meets } from '../../books/condition.ts';
import type {
  Answers,
  BookUpdate,
  ConditionalChange,
  ConditionalOutcome,
  NotAnswered,
} from '../../books/store.ts';
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
    const first = new Map(updates.toReversed().map((update) => [update.id, update]));
    const sent = [...first.values()].map(({ id, changes }) => ({ id, ...changes }));
    const rows = await this.#query(this.#statements.update, columnsOf(ID_AND_NAMES, sent), deadline);
    const before = new Map(rows.map((row) => [row.id, row]));
    return updates.map((update) => {
      const { id, changes } = update;
      const row = before.get(id);
      if (row === undefined) return undefined;
      if (row.locked) return this.#callAlone(update, deadline) as Promise<Book | undefined>;
      return first.get(id) === update ? bookWith([id, ...valuesOf({ ...row, ...changes })]) : null;
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

  async changeIf(changes: readonly ConditionalChange[], deadline: number): Answers<ConditionalOutcome> {
    const outcomes = await this.#carryOut('batches', changes, deadline);
    return outcomes.map((outcome, position) => {
      if (outcome !== 'locked') return outcome;
      return this.#callAlone(changes[position] as ConditionalChange, deadline);
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
      const now = performance.now();
      for (const { deadline, reject } of calls) if (deadline <= now) reject(OVERDUE);
      const inTime = calls.filter(({ deadline }) => deadline > now);
      const end = Math.min(...inTime.map(({ deadline }) => deadline));
      const changes = inTime.map(({ change }) => change);
      try {
        const outcomes = changes.length > 0 ? await this.#carryOut('held', changes, end) : [];
        for (const [position, call] of inTime.entries()) {
          const outcome = outcomes[position] as ConditionalOutcome | NotAnswered;
          if (outcome === null) this.#alone.get(id)?.push(call);
          else call.resolve(outcome);
        }
      } catch (error) {
        for (const { reject } of inTime) reject(error);
      }
    }
    this.#alone.delete(id);
  }

  /**
   * Carries out changes in their order, in one transaction that has locked their books (rule E3). A second change of a book is
   * not carried out, since the log has each change.
   * @param pool `held` waits for the locks of others; `batches` skips locked books, and large ones.
   */
  #carryOut(
    pool: 'batches' | 'held',
    changes: readonly Change[],
    deadline: number,
  ): Promise<readonly (ConditionalOutcome | NotAnswered | 'locked')[]> {
    const statements = this.#statements;
    return this.#connections.transaction(pool, deadline, async (query) => {
      const ids = new Set(changes.map(({ id }) => id));
      const rows = await query<Row>(pool === 'held' ? statements.lock : statements.lockFree, [[...ids]]);
      const locked = new Set(rows.filter((row) => row.locked).map(({ id }) => id));
      const states = new Map(rows.map((row) => [row.id, bookWith([row.id, ...valuesOf(row)])]));
      const changed = new Set<number>();
      const outcomes = changes.map(({ id, condition, changes }) => {
        if (locked.has(id)) return 'locked';
        const book = states.get(id);
        if (book === undefined) return undefined;
        if (condition !== undefined && !meets(book, condition)) return 'unmet';
        if (changed.has(id)) return null;
        changed.add(id);
        if (changes === undefined) {
          states.delete(id);
          return book;
        }
        const state = { ...book, ...changes };
        states.set(id, state);
        return state;
      });
      const kept = [...changed].flatMap((id) => states.get(id) ?? []);
      await writeAll(query, statements.store, columnsOf(ID_AND_NAMES, kept));
      await writeAll(query, statements.delete, [[...changed].filter((id) => !states.has(id))]);
      return outcomes;
    });
  }
}
