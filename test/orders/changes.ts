// Owns: every order of changes, removals and changes on a condition on PostgreSQL, in batches, beside another program that
// locks and changes the same books: rules 9, 11, 23 and E3. The statements act on a table in memory.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Batches } from '../../src/books/batches.ts';
import type { Book } from '../../src/books/book.ts';
import { tagOf } from '../../src/books/condition.ts';
import { type ConditionalOutcome, StoreUnavailable } from '../../src/books/store.ts';
import { BookChanger } from '../../src/stores/postgres/changes.ts';
import type { Connections } from '../../src/stores/postgres/connections.ts';
import { STATEMENTS as POSTGRES, type Statements } from '../../src/stores/postgres/statements.ts';
import type { Query } from '../../src/stores/query.ts';
import { TIMES } from '../../src/times.ts';
import { faultOf, impossible, type Operation } from '../support/linearizable.ts';
import { Observed, Order, Statements as Sent } from './order.ts';

const LIMITS = { size: 3, weight: 1000, inFlight: 2 };

/** Each statement is its name. */
const STATEMENTS = Object.fromEntries(
  Object.keys(POSTGRES).map((name) => [name, name]),
) as unknown as Statements;

const FIRST: readonly Book[] = [
  { id: 1, title: 'one', author: '', year: 0 },
  { id: 2, title: 'two', author: '', year: 0 },
];

/** Most events are about one book; there is none with the last id. */
const id: fc.Arbitrary<number> = fc.constantFrom(1, 1, 1, 2, 3);
const field = fc.constantFrom('title', 'author');

const call = fc.oneof(
  fc.record({ kind: fc.constant('update' as const), id, field }),
  fc.record({ kind: fc.constant('remove' as const), id }),
  fc.record({
    kind: fc.constantFrom('update if' as const, 'remove if' as const),
    id,
    field,
    condition: fc.constantFrom('as at first', 'there', 'not as at first'),
  }),
);
const deed = fc.record({
  kind: fc.constantFrom('lock', 'unlock', 'their look', 'their write', 'their removal'),
  id,
});

type Call = typeof call extends fc.Arbitrary<infer Value> ? Value : never;
type Deed = typeof deed extends fc.Arbitrary<infer Value> ? Value : never;
type State = Book | null;

/** What becomes of statements, by turns. */
const FATES = ['is answered', 'is answered', 'answer is lost', 'fails'];
const fates = fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 6 });

/** Another program, or a transaction of the store. */
type Owner = object;
const OTHERS: Owner = {};

/** The table of books, with what the statements of this store do to it. */
class Table {
  readonly books = new Map(FIRST.map((book) => [book.id, book]));
  readonly #locks = new Map<number, PromiseWithResolvers<void> & { readonly owner: Owner }>();
  readonly #order: Order;
  readonly sent: Sent;

  constructor(order: Order, fates: readonly string[]) {
    this.#order = order;
    this.sent = new Sent(order, fates);
  }

  /** What another program does. */
  do({ kind, id }: Deed, text: string): void {
    const book = this.books.get(id);
    if (kind === 'lock' && !this.#locks.has(id)) this.#lock(id, OTHERS);
    if (kind === 'unlock') this.unlock(id);
    if (this.#locks.has(id) || book === undefined) return;
    if (kind === 'their write') this.books.set(id, { ...book, title: text });
    if (kind === 'their removal') this.books.delete(id);
  }

  #lock(id: number, owner: Owner): void {
    this.#locks.set(id, { owner, ...Promise.withResolvers<void>() });
  }

  unlock(id: number, owner = OTHERS): void {
    const lock = this.#locks.get(id);
    if (lock?.owner !== owner) return;
    lock.resolve();
    this.#locks.delete(id);
  }

  /** The method of `Connections`, for `update` and `remove`. */
  async query(_pool: string, text: string, values: readonly unknown[], deadline: number) {
    this.#expectInTime(deadline);
    return await this.sent.send(text, deadline, () => this.#carryOut(text, values));
  }

  /** The method of `Connections`. */
  async transaction<Result>(_pool: string, deadline: number, work: (query: Query) => Promise<Result>) {
    this.#expectInTime(deadline);
    const owner: Owner = {};
    const states = new Map<number, Book | undefined>();
    const query = async (text: string, [ids, ...columns]: readonly unknown[][]) => {
      const rows = () => {
        if (text === 'lockFree') return (ids as number[]).flatMap((id) => this.#lockFree(id, owner));
        if (text === 'lock') return (ids as number[]).flatMap((id) => this.books.get(id) ?? []);
        for (const [row, id] of (ids as number[]).entries()) {
          assert.equal(this.#locks.get(id)?.owner, owner, 'a book is written that is not locked');
          const [title, author, year] = columns.map((column) => column[row]);
          states.set(id, text === 'store' ? ({ id, title, author, year } as Book) : undefined);
        }
        return ids as unknown as object[];
      };
      const untilFree = (end: number) => this.#lockWhenFree(Number(ids?.[0]), owner, end);
      return await this.sent.send(text, deadline, rows, text === 'lock' ? untilFree : undefined);
    };
    const commit = () => {
      for (const [id, book] of states) {
        if (book === undefined) this.books.delete(id);
        else this.books.set(id, book);
      }
      return [];
    };
    try {
      const result = await work(query as unknown as Query);
      await this.sent.send('commit', deadline, commit);
      return result;
    } finally {
      for (const id of this.#locks.keys()) this.unlock(id, owner);
    }
  }

  #expectInTime(deadline: number): void {
    this.#order.expect(this.#order.time.now <= deadline, 'a statement is sent after its deadline');
  }

  #lockFree(id: number, owner: Owner): object[] {
    const book = this.books.get(id);
    if (book === undefined) return [];
    if (this.#locks.has(id)) return [{ id, locked: true }];
    this.#lock(id, owner);
    return [{ ...book, locked: false }];
  }

  async #lockWhenFree(id: number, owner: Owner, end: number): Promise<void> {
    const { time } = this.#order;
    for (let lock = this.#locks.get(id); lock !== undefined; lock = this.#locks.get(id)) {
      if (time.now >= end) return;
      const late = new Promise<void>((resolve) => setTimeout(resolve, end - time.now));
      await Promise.race([lock.promise, late]);
    }
    this.#lock(id, owner);
  }

  #carryOut(text: string, [ids, titles, authors]: readonly unknown[]): object[] {
    return (ids as number[]).flatMap((id, row) => {
      const book = this.books.get(id);
      if (book === undefined) return [];
      if (this.#locks.has(id)) return [{ id, locked: true }];
      if (text === 'remove') this.books.delete(id);
      else {
        const [title = book.title, author = book.author] = [titles, authors].map(
          (column) => (column as string[])[row],
        );
        this.books.set(id, { ...book, title, author });
      }
      return [{ ...book, locked: false }];
    });
  }
}

/** What a call does to a book, if it is answered like that. */
function applied(call: Call, text: string, answer: unknown, before: State): State | typeof impossible {
  const first = FIRST.find((book) => book.id === call.id);
  const isAnswered = (expected: unknown) =>
    answer === UNKNOWN || JSON.stringify(answer) === JSON.stringify(expected);
  if (before === null) return isAnswered(call.kind === 'remove' ? false : undefined) ? null : impossible;
  if ('condition' in call) {
    const isAsAtFirst = JSON.stringify(before) === JSON.stringify(first);
    const isMet = call.condition === 'there' || isAsAtFirst === (call.condition === 'as at first');
    if (!isMet) return isAnswered('unmet') ? before : impossible;
  }
  if (call.kind === 'remove') return isAnswered(true) ? null : impossible;
  if (call.kind === 'remove if') return isAnswered(before) ? null : impossible;
  const after = { ...before, [call.field]: text };
  return isAnswered(after) ? after : impossible;
}

const UNKNOWN = Symbol('unknown');

function isDeed(event: Call | Deed): event is Deed {
  return event.kind.startsWith('their') || event.kind.endsWith('lock');
}

function conditionOf({ id, condition }: Extract<Call, { condition: string }>) {
  const tags = FIRST.filter((book) => book.id === id).map(tagOf);
  if (condition === 'there') return { match: '*' as const };
  return condition === 'as at first' ? { match: tags } : { noneMatch: tags };
}

export const changes = fc.asyncProperty(
  fc.scheduler(),
  fc.array(fc.oneof({ arbitrary: call, weight: 2 }, deed), { minLength: 2, maxLength: 16 }),
  fates,
  (scheduler, events, fates) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const table = new Table(order, fates);
      const changer = new BookChanger(table as unknown as Connections, STATEMENTS);
      const updates = new Batches(changer.update.bind(changer), LIMITS, TIMES.books);
      const removals = new Batches(changer.remove.bind(changer), LIMITS, TIMES.books);
      const conditional = new Batches<Parameters<typeof changer.changeIf>[0][number], ConditionalOutcome>(
        changer.changeIf.bind(changer),
        LIMITS,
        TIMES.books,
      );
      const send = (call: Call, text: string): Promise<unknown> => {
        if (call.kind === 'update') return updates.call({ id: call.id, changes: { [call.field]: text } });
        if (call.kind === 'remove') return removals.call(call.id);
        const changes = call.kind === 'remove if' ? undefined : { [call.field]: text };
        return conditional.call({ id: call.id, condition: conditionOf(call), changes });
      };

      let moment = 0;
      const history: { readonly id: number; readonly operation: () => Operation<State> }[] = [];
      for (const [number, event] of events.entries()) {
        const text = `text ${number}`;
        const name = `${event.kind} ${event.id}`;
        void order.later(name, () => {
          moment += 1;
          const begin = moment;
          if (isDeed(event)) {
            const seen = JSON.stringify(table.books.get(event.id) ?? null);
            table.do(event, text);
            const after = table.books.get(event.id) ?? null;
            const apply = (before: State) => (JSON.stringify(before) === seen ? after : impossible);
            history.push({ id: event.id, operation: () => ({ name, begin, end: begin, apply }) });
            return;
          }
          let end = Number.POSITIVE_INFINITY;
          const observed = new Observed(order, name, send(event, text), () => {
            moment += 1;
            end = moment;
          });
          history.push({
            id: event.id,
            operation() {
              const settled = observed.outcome;
              const isUnknown = settled.error !== undefined;
              if (isUnknown) assert.ok(settled.error instanceof StoreUnavailable, `${settled.error}`);
              const answer = isUnknown ? UNKNOWN : settled.answer;
              return {
                ...{ name, begin, end, isOptional: isUnknown },
                apply: (before) => applied(event, text, answer, before),
              };
            },
          });
        });
      }
      await order.untilQuiet();
      for (const id of [1, 2, 3]) table.unlock(id);
      await order.untilQuiet();

      for (const id of [1, 2, 3]) {
        const operations = history.filter((one) => one.id === id).map(({ operation }) => operation());
        const last = JSON.stringify(table.books.get(id) ?? null);
        const first = FIRST.find((book) => book.id === id) ?? null;
        const fault = faultOf(first, operations, (state) => JSON.stringify(state) === last);
        assert.equal(fault, undefined, `book ${id} is ${last}, after ${operations.map(({ name }) => name)}`);
      }
      for (const one of [updates, removals, conditional])
        assert.deepEqual([one.waiting, one.inFlight], [0, 0]);
      assert.equal(time.pending, 0, 'a timer is left');

      table.sent.isPrompt = true;
      for (const id of table.books.keys()) {
        for (const kind of ['update', 'update if', 'remove'] as const) {
          table.do({ kind: 'lock', id }, '');
          const call = { kind, id, field: 'title', condition: 'there' } as Call;
          const observed = new Observed(order, kind, send(call, kind));
          await order.atOnce();
          assert.equal(observed.settled, undefined, `${kind} does not wait for the lock`);
          table.unlock(id);
          await order.atOnce();
          const { error } = (observed as Observed<unknown>).settled ?? { error: 'it waits' };
          assert.equal(error, undefined, `${kind} does not succeed again`);
        }
      }
    }),
);
