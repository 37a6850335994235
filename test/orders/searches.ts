// Owns: every order of searches on PostgreSQL, short and long ones, while books are written and indexed: in the background,
// before a search, and by another process (rules F11, 22 and 23). The statements act on a table, its index and the log that the
// index follows, in memory.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Catalogue } from '../../src/books/catalogue.ts';
import type { Page, Search } from '../../src/books/search.ts';
import { type Store, StoreUnavailable } from '../../src/books/store.ts';
import { INDEX_VERSION } from '../../src/stores/book-index.ts';
import type { Connections } from '../../src/stores/postgres/connections.ts';
import { PostgresFinder } from '../../src/stores/postgres/finder.ts';
import type { Hosts } from '../../src/stores/postgres/hosts.ts';
import type { Query } from '../../src/stores/query.ts';
import { TIMES } from '../../src/times.ts';
import { DEADLINE, Observed, Order, Statements } from './order.ts';

/** Milliseconds after which what happened before has no consequence any more: the longest pauses and limits together. */
const CALM = 30_000;

/** Milliseconds of a long statement, and until a short search is answered beside three long ones at most. */
const LONG = 1000;
const SHORT = 400;

/** Milliseconds before the deadline of a statement at which the server ends it; one that begins later has a millisecond. */
const NOTICE = 100;

/** For which another process has the lock. */
const OTHERS = 300;

/** Books that a counted search finds. */
const FOUND = 2000;

/**
 * A search, short, or with a statement that takes long: its first one, or the one that counts; a write of a book, which the log gets
 * with so many more ids, in a transaction that takes so long; another process that indexes everything, or that begins to make the
 * index again.
 */
const event = fc.oneof(
  fc.record({
    kind: fc.constantFrom(
      ...['search', 'search', 'long search', 'counted search'],
      ...['they index', 'they make it again', 'they make it again'],
    ),
  }),
  fc.record({
    kind: fc.constant('write'),
    id: fc.integer({ min: 1, max: 4 }),
    more: fc.constantFrom(0, 0, 300, 2000),
    duration: fc.constantFrom(0, 0, 50, 2000),
  }),
);

/** What becomes of statements, by turns. */
const FATES = ['is answered', 'is answered', 'takes long', 'answer is lost', 'fails'];
const fates = fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 6 });

/** Of the log, which has one. */
const PLACE = '0';

/** A row of the log; `xid` is also its number. */
interface Row {
  readonly xid: number;
  readonly book: number;
  readonly last: number;
}

/** What the index has. A snapshot is the number of the rows that were committed before it. */
interface Position {
  readonly seen: string;
  readonly target: string;
  readonly xid: string;
  readonly number: number;
  readonly next: number;
  readonly last: number;
}

/** The table of books, as versions by their id, its log and its index. */
class Table {
  readonly books = new Map<number, number>();
  index: ReadonlyMap<number, number> = new Map();
  /** Those that are committed. */
  rows: readonly Row[] = [];
  position: Position = positionAfter([]);
  #made = 1;
  #transactions = 0;
  written = 0;
  #free: Promise<void> = Promise.resolve();

  /** @returns commits it. */
  write(id: number, more: number): () => void {
    this.#transactions += 1;
    const xid = this.#transactions;
    return () => {
      this.written += 1;
      this.books.set(id, this.written);
      this.rows = [...this.rows, { xid, book: id, last: id + more }];
    };
  }

  /** The rows that a reader lacks, in their order: midway, those that its target sees. */
  behind({ seen, target, xid }: Position, isMidway = xid !== '0'): readonly Row[] {
    const all = this.rows.slice(0, isMidway ? Number(target) : undefined);
    const lacking = all.filter((row, position) => position >= Number(seen) && row.xid > Number(xid));
    return lacking.toSorted((one, other) => one.xid - other.xid);
  }

  /** Locks the state of the index. @returns releases it. */
  async lock(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#free;
    this.#free = promise;
    await before;
    return resolve;
  }

  /** What another process does. @returns commits it. */
  indexAll(): () => void {
    const [books, position] = [new Map(this.books), positionAfter(this.rows)];
    return () => {
      this.index = books;
      this.position = position;
    };
  }

  /** What another process also does. */
  makeAgain(): void {
    this.index = new Map();
    this.#made += 1;
    this.position = { ...positionAfter(this.rows), last: Number.MAX_SAFE_INTEGER };
  }

  state(): object {
    const { next, last } = this.position;
    const highest = Math.max(0, ...this.books.keys());
    const ofRange = next > last ? 0 : Math.max(1, Math.min(last, highest) - next + 1);
    const rows = this.behind(this.position, false);
    const unindexed = rows.reduce((sum, row) => sum + row.last - row.book + 1, ofRange);
    const behind = unindexed > 0 ? [PLACE] : [];
    const { written } = this;
    return { version: INDEX_VERSION, isComplete: true, madeAt: `${this.#made}`, unindexed, behind, written };
  }
}

function positionAfter(rows: readonly Row[]): Position {
  const seen = `${rows.length}`;
  return { seen, target: seen, xid: '0', number: 0, next: 1, last: 0 };
}

/** A transaction that indexes: what it changes, others see once it is committed. */
class Indexing {
  readonly #table: Table;
  #position: Position;
  #stored: [id: number, version: number][] = [];
  #removed: readonly number[] = [];
  #locked: Promise<() => void> | undefined;

  constructor(table: Table) {
    this.#table = table;
    this.#position = table.position;
  }

  /** Waits for the lock, if the statement takes it. */
  async wait(text: string, late: () => Promise<void>): Promise<void> {
    if (!text.includes('for update')) return;
    this.#locked = this.#table.lock();
    await Promise.race([this.#locked, late()]);
  }

  carryOut(text: string, values: readonly unknown[]): object[] {
    const table = this.#table;
    const [one, two, three, four] = values as [number[], number[], unknown, number[]];
    if (text.includes('for update')) {
      this.#position = table.position;
      return [{ isComplete: true, ...this.#position }];
    }
    if (text.includes('as now')) {
      const [, seen, target, xid, number] = values as [unknown, string, string, string, number];
      const rows = table.behind({ seen, target, xid, number, next: 1, last: 0 }).slice(0, 1000);
      return rows.map((row) => ({ ...row, xid: `${row.xid}`, number: row.xid, now: `${table.rows.length}` }));
    }
    if (text.includes('between $1 and $2')) {
      const ids = [...table.books.keys()].filter((id) => id >= Number(one) && id <= Number(two));
      const first = ids.toSorted((a, b) => a - b).slice(0, Number(three));
      return first.map((id) => ({ id, title: '', author: '', year: table.books.get(id) }));
    }
    if (text.includes('insert into book_index ('))
      this.#stored = one.map((id, at) => [id, four[at] as number]);
    else if (text.includes('delete from book_index')) this.#removed = one.filter((id) => !two.includes(id));
    else if (text.includes('update book_index_state')) {
      const [, seen, target, xid, number, next, last] = values as [
        unknown,
        string,
        string,
        string,
        number,
        number,
        number,
      ];
      this.#position = { seen, target, xid, number, next, last };
    } else if (text === 'commit') this.#commit();
    else if (text.includes('books where id = any(')) {
      const books = [...table.books].filter(([id]) => one.includes(id));
      return books.map(([id, year]) => ({ id, title: '', author: '', year }));
    } else assert.fail(`an unknown statement: ${text}`);
    return [];
  }

  #commit(): void {
    const kept = [...this.#table.index].filter(([id]) => !this.#removed.includes(id));
    this.#table.index = new Map([...kept, ...this.#stored]);
    this.#table.position = this.#position;
  }

  async end(): Promise<void> {
    (await this.#locked)?.();
  }
}

export const searches = fc.asyncProperty(
  fc.scheduler(),
  fc.array(event, { minLength: 1, maxLength: 12 }),
  fates,
  (scheduler, events, fates) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const table = new Table();
      const statements = new Statements(order, fates);
      /** By its number: when a search was called, and which versions of the books were written then. */
      const called = new Map<number, { at: number; kind: string; written: ReadonlyMap<number, number> }>();
      /** By the number of a search, the index that it has read. */
      const read = new Map<number, ReadonlyMap<number, number>>();

      /** Statements in progress that take long. */
      let working = 0;

      const carryOut = (text: string, values: readonly unknown[]) => {
        const number = Number(values.find((value) => called.has(Number(value))));
        const row = { id: number, title_key: '', author_key: '', year: number };
        if (text.includes('materialized')) {
          read.set(number, table.index);
          return called.get(number)?.kind === 'counted search' ? [{ hits: FOUND }] : [{ hits: 1, ...row }];
        }
        if (text.includes('with ordinality')) {
          const number = Number(`${values[0]}`.slice(1, -1));
          return [{ id: number, title: answerTo(number), author: '', year: number, found: 1 }];
        }
        if (text.includes('as page')) return [row];
        if (isCount(text)) return [{ count: FOUND }];
        if (text.includes('from book_index_state')) return [table.state()];
        if (text.includes('gin_clean_pending_list')) return [];
        return assert.fail(`an unknown statement: ${text}`);
      };
      const endOf = (deadline: number) => Math.min(deadline, Math.max(time.now + 1, deadline - NOTICE));
      const query = async (_: string, text: string, values: readonly unknown[], deadline: number) => {
        const { at = 0, kind } = called.get(Number(values[0])) ?? {};
        if (text.includes('materialized'))
          order.expect(deadline <= at + DEADLINE, 'a search may take longer than its caller waits');
        const isLong = kind === (isCount(text) ? 'counted search' : 'long search');
        const work = async (end: number) => {
          working += 1;
          order.expect(working <= 2, 'more than one long search is carried out beside the others');
          await order.pause(Math.min(LONG, end - time.now));
          working -= 1;
        };
        const takesLong = isLong && (text.includes('materialized') || isCount(text));
        const wait = takesLong ? work : undefined;
        return await statements.send('statement', endOf(deadline), () => carryOut(text, values), wait);
      };
      const transaction: Connections['transaction'] = async (_, deadline, work) => {
        const indexing = new Indexing(table);
        const send = async (text: string, values: readonly unknown[] = []) => {
          const act = () => indexing.carryOut(text, values);
          // Behind the lock it makes no difference when the others are carried out.
          if (!/for update|as now|books|commit/.test(text)) return act();
          const wait = (end: number) => indexing.wait(text, () => order.pause(end - time.now));
          return statements.send(text === 'commit' ? text : 'statement', endOf(deadline), act, wait);
        };
        try {
          const result = await work(send as unknown as Query);
          await send('commit');
          return result;
        } finally {
          void indexing.end();
        }
      };
      const write = async (id: number, more: number, duration: number) => {
        const commit = table.write(id, more);
        if (duration > 0) await order.pause(duration);
        commit();
      };
      const others = async (kind: string, steps: number) => {
        // Later than what is called at the same time: in the midst of it.
        for (let step = 0; step < steps; step += 1) await order.later('they come nearer', () => {});
        const release = await table.lock();
        if (kind === 'they index') {
          const commit = table.indexAll();
          await order.pause(OTHERS);
          commit();
        } else table.makeAgain();
        release();
      };

      const finder = new PostgresFinder(
        {} as Hosts,
        { query, transaction } as unknown as Connections,
        undefined,
        undefined,
        TIMES.postgres,
      );
      const store: Pick<Store, 'inFlight' | 'search'> = {
        inFlight: 1,
        search: finder,
      };
      const catalogue = new Catalogue(store as Store, TIMES.books);
      const made: { readonly number: number; readonly observed: Observed<Page> }[] = [];
      const search = (number: number, kind = 'search') => {
        called.set(number, { at: time.now, kind, written: new Map(table.books) });
        const wanted = searchFor(number, kind === 'counted search');
        made.push({
          number,
          observed: new Observed(order, `${kind} ${number}`, catalogue.search(wanted)),
        });
      };
      const check = () => {
        for (const { number, observed } of made) {
          const { answer, error } = observed.outcome;
          if (answer === undefined) assert.ok(error instanceof StoreUnavailable, `${error}`);
          else {
            assert.deepEqual([answer.books.length, answer.books[0]?.title], [1, answerTo(number)]);
            for (const [id, version] of answer.unindexed > 0 ? [] : (called.get(number)?.written ?? []))
              assert.ok(
                (read.get(number)?.get(id) ?? 0) >= version,
                `search ${number} does not see book ${id}`,
              );
          }
        }
      };
      const happenings = events.map((one, number) => {
        const act = () => {
          if (one.kind.endsWith('search')) search(number, one.kind);
          else if ('id' in one) void write(one.id, one.more, one.duration);
          else void others(one.kind, number);
        };
        return [one.kind, act] as const;
      });
      await order.happen(happenings);
      await order.during(CALM);
      check();
      const { search: short, longSearch: long } = catalogue.batches;
      const left = [short, long].map((batches) => (batches?.inFlight ?? 0) + (batches?.waiting ?? 0));
      assert.deepEqual(left, [0, 0], 'a search is in progress for ever');

      statements.isPrompt = true;
      await order.during(CALM);
      assert.deepEqual(table.index, table.books, 'a written book is never indexed');
      table.write(1, 0)();
      made.length = 0;
      for (const kind of ['long search', 'counted search', 'long search']) search(100 + made.length, kind);
      for (let number = 103; number < 108; number += 1) search(number);
      await order.during(DEADLINE);
      check();
      for (const { number, observed } of made) {
        const { answer, after } = observed.outcome;
        assert.equal(answer?.unindexed, 0);
        assert.equal(
          answer?.total,
          number === 101 ? FOUND : 1 /* rule F6 */,
          `the total of search ${number}`,
        );
        assert.ok(number < 103 || after <= SHORT, `search ${number} waited ${after} ms for long ones`);
      }
      finder.close();
      await order.untilQuiet();
    }),
);

function isCount(text: string): boolean {
  return text.trimStart().startsWith('select count(*)');
}

function searchFor(number: number, isCounted: boolean): Search {
  return {
    words: [],
    conditions: [{ field: 'year', operator: '=', value: number }],
    order: [{ field: 'id', isDescending: false }],
    limit: 500,
    after: undefined,
    offset: 0,
    isCounted,
  };
}

function answerTo(number: number): string {
  return `the answer to ${number}`;
}
