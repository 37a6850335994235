// Owns: every order of searches on PostgreSQL, short and long ones, while books are written and indexed: in the background,
// before a search, and by another process (rules F11, 22 and 23). The statements act on a table, its index and the queue of
// what is to be indexed, in memory.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Catalogue } from '../../src/books/catalogue.ts';
import type { Page, Search } from '../../src/books/search.ts';
import { type BookStore, StoreUnavailable } from '../../src/books/store.ts';
import { INDEX_VERSION } from '../../src/stores/book-index.ts';
import type { Connections, Query } from '../../src/stores/postgres/connections.ts';
import { PostgresFinder } from '../../src/stores/postgres/finder.ts';
import type { Hosts } from '../../src/stores/postgres/hosts.ts';
import { TIMES } from '../../src/times.ts';
import { DEADLINE, Observed, Order, Statements } from './order.ts';

/** Milliseconds after which what happened before has no consequence any more: the longest pauses and limits together. */
const CALM = 30_000;

const SINGLY = { size: 1, weight: 1, inFlight: 1 };
const KINDS = ['find', 'insert', 'keyed', 'bulk', 'update', 'remove', 'conditional', 'search'];
const LIMITS = Object.fromEntries(KINDS.map((kind) => [kind, SINGLY])) as unknown as BookStore['limits'];

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
 * A search, short, or with a statement that takes long: its first one, or the one that counts; a write of a book, which the queue gets with so many more ids; another process that indexes everything, or that
 * begins to make the index again.
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
  }),
);

/** What becomes of statements, by turns. */
const FATES = ['is answered', 'is answered', 'takes long', 'answer is lost', 'fails'];
const fates = fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 6 });

interface Note {
  readonly ctid: string;
  readonly first: number;
  readonly last: number;
}

/** The table of books, as versions by their id, and its index. */
class Table {
  readonly books = new Map<number, number>();
  index: ReadonlyMap<number, number> = new Map();
  notes: readonly Note[] = [];
  #file = 1;
  #written = 0;
  #free: Promise<void> = Promise.resolve();

  write(id: number, more: number): void {
    this.#written += 1;
    this.books.set(id, this.#written);
    this.note(id, id + more);
  }

  note(first: number, last: number): void {
    this.#written += 1;
    this.notes = [...this.notes, { ctid: `(0,${this.#written})`, first, last }];
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
    const [books, taken] = [new Map(this.books), new Set(this.notes)];
    return () => {
      this.index = books;
      this.notes = this.notes.filter((note) => !taken.has(note));
    };
  }

  /** What another process also does. */
  makeAgain(): void {
    this.index = new Map();
    this.#file += 1;
    this.notes = [];
    this.note(1, Number.MAX_SAFE_INTEGER);
  }

  state(): object {
    const last = Math.max(0, ...this.books.keys());
    const counts = this.notes.map((note) => Math.max(1, Math.min(note.last, last) - note.first + 1));
    const unindexed = counts.reduce((sum, count) => sum + count, 0);
    return { version: INDEX_VERSION, isComplete: true, file: this.#file, unindexed };
  }
}

/** A transaction that indexes: what it changes, others see once it is committed. */
class Indexing {
  readonly #table: Table;
  readonly #taken = new Set<string>();
  #stored: [id: number, version: number][] = [];
  #isRemoved: (id: number) => boolean = () => false;
  #left: [first: number, last: number][] = [];
  #locked: Promise<() => void> | undefined;

  constructor(table: Table) {
    this.#table = table;
  }

  /** Waits for the lock, if the statement takes it. */
  async wait(text: string, late: () => Promise<void>): Promise<void> {
    if (!text.includes('round + 1')) return;
    this.#locked = this.#table.lock();
    await Promise.race([this.#locked, late()]);
  }

  carryOut(text: string, values: readonly unknown[]): object[] {
    const { books, notes } = this.#table;
    const read = (isRead: (id: number) => boolean) =>
      [...books].filter(([id]) => isRead(id)).map(([id, year]) => ({ id, title: '', author: '', year }));
    const [one, two, three, four] = values as [number[], number[], number, number[]];
    if (text.includes('round + 1')) return [{ isComplete: true }];
    if (text.startsWith('select ctid')) return [...notes];
    if (text.includes('returning first')) {
      const places = values[0] as string[];
      for (const place of places) this.#taken.add(place);
      return notes.filter(({ ctid }) => places.includes(ctid));
    }
    if (text.includes('between $1 and $2'))
      return read((id) => id >= Number(one) && id <= Number(two)).toSorted((a, b) => a.id - b.id);
    if (text.includes('insert into book_index ('))
      this.#stored = one.map((id, at) => [id, four[at] as number]);
    else if (text.includes('delete from book_index'))
      this.#isRemoved = (id) =>
        (one.includes(id) || (id >= Number(two) && id <= three)) && !four.includes(id);
    else if (text.includes('into book_index_queue'))
      this.#left = one.map((first, at) => [first, two[at] as number]);
    else if (text === 'commit') this.#commit();
    else if (text.includes('from unnest($1')) return read((id) => one.includes(id));
    else assert.fail(`an unknown statement: ${text}`);
    return [];
  }

  #commit(): void {
    const kept = [...this.#table.index].filter(([id]) => !this.#isRemoved(id));
    this.#table.index = new Map([...kept, ...this.#stored]);
    this.#table.notes = this.#table.notes.filter(({ ctid }) => !this.#taken.has(ctid));
    for (const [first, last] of this.#left) this.#table.note(first, last);
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
          if (!/round|books|commit/.test(text)) return { rows: act(), rowCount: 1 };
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
        TIMES.postgres,
      );
      const store: Pick<BookStore, 'limits' | 'search'> = {
        limits: LIMITS,
        search: (searches, deadline, most) =>
          Promise.all(searches.map((search) => finder.find(search, deadline, most))),
      };
      const catalogue = new Catalogue(store as BookStore, TIMES.books);
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
          else if ('id' in one) table.write(one.id, one.more);
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
      table.write(1, 0);
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
