// Owns: every order of undos on PostgreSQL beside changes of the same books by others, who lock them first or remove them (rule
// H5). The statements act on a table and its log in memory: each sees what is committed when it begins.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { StoreUnavailable } from '../../src/books/store.ts';
import { Undo, type UndoOutcome } from '../../src/books/undo.ts';
import { STATEMENTS } from '../../src/stores/postgres/statements.ts';
import { PostgresLogReader, PostgresLogWriter } from '../../src/stores/postgres/undo.ts';
import type { Query } from '../../src/stores/query.ts';
import { DEADLINE, Observed, Order, Statements } from './order.ts';

const id = fc.constantFrom(1, 1, 2);

/** A change or a removal by another program, with a rest before its commit; and an undo of one of the changes that the log has. */
const event = fc.oneof(
  fc.record({
    what: fc.constantFrom('change', 'change', 'removal'),
    id,
    rest: fc.constantFrom(0, 0, 300, 2000),
  }),
  fc.record({ back: fc.constantFrom(0, 0, 0, 1, 2) }),
);

/** What becomes of statements, by turns. */
const FATES = ['is answered', 'is answered', 'is answered', 'takes long', 'answer is lost', 'fails'];
const fates = fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 6 });

/** What is locked in place of a book by undos, which go one after the other. */
const LOG = 0;

/** A book is its version; null if there is none. */
type State = number | null;

/** A row of the log, which has the book as it was before. */
interface Row {
  readonly number: number;
  readonly book: number;
  readonly before: State;
}

/** What an undo writes: the book as it is and as it was before a change. */
interface Write {
  readonly id: number;
  readonly present: State;
  readonly wanted: State;
}

/** One place has the whole log. */
const LOG_SHARDS = { all: [0], first: 0, of: () => 0, statements: STATEMENTS };

const textOf = (state: State) => (state === null ? null : `${state}`);

class Table {
  readonly #order: Order;
  readonly books = new Map<number, State>([
    [1, 1],
    [2, 1],
  ]);
  readonly rows: Row[] = [];
  readonly #locks = new Map<number, PromiseWithResolvers<void> & { readonly owner: object }>();
  #number = 0;
  #version = 1;

  constructor(order: Order) {
    this.#order = order;
  }

  nextNumber(): number {
    this.#number += 1;
    return this.#number;
  }

  nextVersion(): number {
    this.#version += 1;
    return this.#version;
  }

  /** Waits for the locks of others, until that time at most. */
  async lock(id: number, owner: object, end = Number.POSITIVE_INFINITY): Promise<void> {
    for (let lock = this.#locks.get(id); lock && lock.owner !== owner; lock = this.#locks.get(id)) {
      if (this.#order.time.now >= end) return;
      const late = end === Number.POSITIVE_INFINITY ? [] : [this.#order.pause(end - this.#order.time.now)];
      await Promise.race([lock.promise, ...late]);
    }
    if (!this.#locks.has(id)) this.#locks.set(id, { owner, ...Promise.withResolvers<void>() });
  }

  release(owner: object): void {
    for (const [id, lock] of this.#locks) {
      if (lock.owner !== owner) continue;
      lock.resolve();
      this.#locks.delete(id);
    }
  }

  /** The rows about a book since one of them. */
  rowsSince(id: number, number: number): Row[] {
    const about = this.rows.filter(({ book }) => book === id);
    const rows = about.some((row) => row.number === number) ? about : [];
    return rows.filter((row) => row.number >= number).toSorted((one, other) => one.number - other.number);
  }
}

/** The transaction of an undo. */
class Transaction {
  readonly #order: Order;
  readonly #table: Table;
  readonly #sent: Statements;
  readonly #writes: Write[] = [];
  /** The books as they were when it looked. */
  readonly #seen = new Map<number, State>();
  readonly #deadline: number;

  constructor(order: Order, table: Table, sent: Statements, deadline: number) {
    this.#order = order;
    this.#table = table;
    this.#sent = sent;
    this.#deadline = deadline;
  }

  async carryOut<Result>(work: (query: Query) => Promise<Result>): Promise<Result> {
    const query = (text: string, values: readonly unknown[] = []) => this.#send(text, values);
    try {
      const result = await work(query as unknown as Query);
      await this.#sent.send('commit', this.#deadline, () => this.#commit());
      return result;
    } finally {
      this.#table.release(this);
    }
  }

  async #send(text: string, values: readonly unknown[]) {
    const table = this.#table;
    const [first, second] = values as [number[], number[]];
    if (text.includes('from book_log_state where') || text.includes('locked as (')) {
      const lock = async (end: number) => {
        if (!/ for (no key )?update/.test(text)) return;
        if (text.includes('book_log_state')) return table.lock(LOG, this, end);
        for (const id of first) if (table.books.get(id)) await table.lock(id, this, end);
      };
      const answer = () => (text.includes('locked as (') ? this.#present(first) : []);
      return await this.#sent.send('lock', this.#deadline, answer, lock);
    }
    if (/^\s*(delete from|update|insert into) books\b/.test(text)) {
      const write = async (end: number) => {
        for (const id of first) if (table.books.get(id)) await table.lock(id, this, end);
      };
      const answer = () => first.map((id, at) => this.#write(id, second?.[at]));
      return await this.#sent.send('write', this.#deadline, answer, write);
    }
    return await this.#sent.send('statement', this.#deadline, () => this.#answer(text, values));
  }

  /** As the statement sees it: what is committed. */
  #answer(text: string, values: readonly unknown[]): object[] {
    const { rows } = this.#table;
    const [first] = values;
    if (text.includes('as "isSelected"')) {
      const number = Number(/= (\d+), false\) as "isSelected"/.exec(text)?.[1]);
      return (first as number[]).flatMap((id) =>
        this.#table.rowsSince(id, number).map((row) => {
          return {
            id,
            number: row.number,
            isSelected: row.number === number,
            state: textOf(row.before),
            bytes: 0,
          };
        }),
      );
    }
    if (text.includes('count(*) as rows')) {
      const number = Number(/= (\d+)\s*\) as first/.exec(text)?.[1]);
      return (first as number[]).map((id) => {
        const since = this.#table.rowsSince(id, number);
        return { id, first: since[0]?.number ?? null, rows: since.length, bytes: 0 };
      });
    }
    if (text.includes('from book_events') && text.includes('number = $2')) return [];
    if (text.includes('as book from book_log'))
      return rows.filter(({ number }) => number === first).map(({ book }) => ({ book }));
    if (text.includes('update book_imports')) return [];
    if (text.includes("nextval('book_log_number')")) return [{ number: this.#table.nextNumber(), before: 0 }];
    if (/(insert into|update) book_events/.test(text)) return [];
    return assert.fail(`an unknown statement: ${text}`);
  }

  /** The books that are there. */
  #present(ids: readonly number[]): object[] {
    const { books } = this.#table;
    for (const id of ids) this.#seen.set(id, books.get(id) ?? null);
    return ids.flatMap((id) => (books.get(id) ? [{ id, state: textOf(books.get(id) ?? null) }] : []));
  }

  /** @param number of the row with the book as it was; undefined to remove it. */
  #write(id: number, number: number | undefined): object {
    const present = this.#seen.get(id) ?? null;
    const wanted = this.#table.rows.find((row) => row.number === number)?.before ?? null;
    this.#writes.push({ id, present, wanted });
    return { id };
  }

  #commit(): object[] {
    for (const { id, present, wanted } of this.#writes) {
      const now = this.#table.books.get(id) ?? null;
      this.#order.expect(now === present, `an undo overwrites book ${id}, which others have changed`);
      this.#table.rows.push({ number: this.#table.nextNumber(), book: id, before: now });
      this.#table.books.set(id, wanted);
    }
    return [];
  }
}

export const undos = fc.asyncProperty(
  fc.scheduler(),
  fc.array(event, { minLength: 2, maxLength: 10 }),
  fates,
  (scheduler, events, fates) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const table = new Table(order);
      const sent = new Statements(order, fates);
      const takeBack = (number: number) => {
        const deadline = time.now + DEADLINE - 1;
        const begin = () => new Transaction(order, table, sent, deadline);
        const log = {
          read: <Result>(read: (log: PostgresLogReader) => Promise<Result>) =>
            begin().carryOut((query) => read(new PostgresLogReader(query, LOG_SHARDS))),
          write: <Result>(write: (log: PostgresLogWriter) => Promise<Result>) =>
            begin().carryOut((query) => write(new PostgresLogWriter(query, LOG_SHARDS))),
        };
        return Undo.begin(log, { change: number }, undefined, deadline);
      };
      const change = async (id: number, what: string, rest: number) => {
        const owner = {};
        await table.lock(id, owner);
        const before = table.books.get(id) ?? null;
        const number = table.nextNumber();
        if (rest > 0) await order.pause(rest);
        await order.later('commit', () => {
          if (before !== null) {
            table.rows.push({ number, book: id, before });
            table.books.set(id, what === 'removal' ? null : table.nextVersion());
          }
          table.release(owner);
        });
      };
      await order.until(change(1, 'change', 0));
      const made: Observed<UndoOutcome>[] = [];
      await order.happen(
        events.map((one) => {
          const act = () => {
            if ('what' in one) return void change(one.id, one.what, one.rest);
            const number = table.rows.at(-1 - one.back)?.number;
            if (number !== undefined) made.push(new Observed(order, 'an undo', takeBack(number)));
          };
          return ['what' in one ? one.what : 'undo', act] as const;
        }),
      );
      await order.untilQuiet();
      for (const { settled } of made) {
        assert.ok(settled, 'an undo waits for ever');
        const { answer, error } = settled;
        if (error !== undefined) assert.ok(error instanceof StoreUnavailable, `${error}`);
        else
          assert.ok(typeof answer === 'object' && answer.progress.undone + answer.progress.changedLater <= 1);
      }

      // Without others, a change is taken back, and so is that.
      sent.isPrompt = true;
      await order.until(change(2, 'change', 0));
      for (let time = 0; time < 2; time += 1) {
        const last = table.rows.toSorted((one, other) => one.number - other.number).at(-1);
        if (last === undefined) continue;
        const answer = await takeBack(last.number);
        assert.deepEqual(typeof answer === 'object' && [answer.progress.undone, answer.progress.left], [
          1,
          [],
        ]);
        assert.equal(table.books.get(last.book), last.before);
      }
      assert.equal(time.pending, 0, 'a timer is left');
    }),
);
