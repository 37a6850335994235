// Owns: every order of followers of changes on PostgreSQL, with and without a wait, while transactions begin, write, end and
// overlap, the log is pruned, statements fail and answers get lost (rules H1 to H3). The statements act on a log in memory, with
// the snapshots of a server.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Book } from '../../src/books/book.ts';
import { Catalogue } from '../../src/books/catalogue.ts';
import type { PageOfChanges, ServedLog } from '../../src/books/change-log.ts';
import { type Store, StoreUnavailable } from '../../src/books/store.ts';
import type { PostgresBooks } from '../../src/stores/postgres/books.ts';
import type { Connections } from '../../src/stores/postgres/connections.ts';
import { pruneStatement } from '../../src/stores/postgres/log-pruning.ts';
import { PostgresLog } from '../../src/stores/postgres/served-log.ts';
import { STATEMENTS } from '../../src/stores/postgres/statements.ts';
import { TIMES } from '../../src/times.ts';
import { DEADLINE, Observed, Order, Statements } from './order.ts';

/** Milliseconds after which all transactions have ended. */
const CALM = 1500;

/** Of a request that waits until there is a change. */
const LONG = 60_000;

const { changesPause } = TIMES.postgres;

/** Rows of the log that a statement reads. */
const ROWS = 1000;

/** Most rows are about few books. */
const id = fc.constantFrom(1, 1, 2, 3, 4);

/**
 * A transaction of this process or another program, which writes several times and then rests; and rows that are removed if they
 * are older than so many milliseconds. Each comes so long after the one before.
 */
const after = fc.constantFrom(0, 0, 0, 1, 20, 500);
const event = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      after,
      writes: fc.array(fc.record({ id, what: fc.constantFrom('change', 'change', 'removal', 'new ids') }), {
        minLength: 1,
        maxLength: 3,
      }),
      repeats: fc.constantFrom(1, 1, 1, 1, 1, 1, 1, 1, 1, 400),
      rest: fc.constantFrom(0, 0, 50, 1000),
      end: fc.constantFrom('commit', 'commit', 'commit', 'rollback'),
      isOwn: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ after, kept: fc.constantFrom(0, 0, 300) }) },
);

/** How a follower reads: how long it waits and then rests; of its answers, one in so many gets lost. */
const habit = fc.record({
  limit: fc.constantFrom(1, 1, 2, 1000),
  wait: fc.constantFrom(0, 1000, LONG, LONG),
  rest: fc.constantFrom(20, 100, 500, 2000),
  lost: fc.constantFrom(2, 3, 1000, 1000),
});

type Event = typeof event extends fc.Arbitrary<infer Value> ? Value : never;
type Transacted = Omit<Extract<Event, { end: string }>, 'after'>;
type Habit = typeof habit extends fc.Arbitrary<infer Value> ? Value : never;
type Reading = Pick<Habit, 'limit' | 'wait'> & { readonly isLost: boolean };

/** What becomes of statements, by turns. */
const FATES = ['is answered', 'is answered', 'is answered', 'takes long', 'answer is lost', 'fails'];
const fates = fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 6 });

interface Row {
  readonly xid: number;
  readonly number: number;
  readonly book: number;
  readonly last: number;
  readonly at: number;
}

/** A snapshot of the server, from its text. */
class Snapshot {
  readonly xmin: number;
  readonly xmax: number;
  /** Transactions in progress. */
  readonly xip: readonly number[];

  constructor(text: unknown) {
    const [xmin, xmax, xip = ''] = String(text).split(':');
    this.xmin = Number(xmin);
    this.xmax = Number(xmax);
    this.xip = xip === '' ? [] : xip.split(',').map(Number);
  }

  sees(xid: number): boolean {
    return xid < this.xmax && !this.xip.includes(xid);
  }
}

function inOrder(one: Row, other: Row): number {
  return one.xid - other.xid || one.number - other.number;
}

/** The table of books, as versions by their id, and its log. */
class Server {
  readonly #order: Order;
  /** Those that are committed. */
  readonly books = new Map([1, 2].map((id) => [id, id]));
  /** Those that are committed, in their order. */
  rows: Row[] = [{ xid: 3, number: 0, book: 0, last: 0, at: 0 }];
  readonly inProgress = new Set<number>();
  /** How often rows were committed. */
  commits = 0;
  #pruned = 3;
  #xid = 10;
  #completed = 10;
  #number = 0;
  #version = 10;
  #newId = 10;
  readonly #locks = new Map<number, number>();

  constructor(order: Order) {
    this.#order = order;
  }

  get snapshot(): string {
    const xmax = this.#completed + 1;
    const xip = [...this.inProgress].filter((xid) => xid < xmax).toSorted((one, other) => one - other);
    return `${Math.min(xmax, ...xip)}:${xmax}:${xip}`;
  }

  begin(): number {
    this.#xid += 1;
    this.inProgress.add(this.#xid);
    return this.#xid;
  }

  end(xid: number, commit: () => void = () => {}): void {
    commit();
    this.inProgress.delete(xid);
    this.#completed = Math.max(this.#completed, xid);
    for (const [book, owner] of this.#locks) if (owner === xid) this.#locks.delete(book);
  }

  /** Several writes in one transaction, which a lock of another one prevents. @returns what becomes of the table at its commit. */
  write(xid: number, { id, what }: Transacted['writes'][number], repeats: number): (() => void)[] {
    if (what !== 'new ids' && (this.#locks.get(id) ?? xid) !== xid) return [];
    return Array.from({ length: what === 'change' ? repeats : 1 }, () => {
      const book = what === 'new ids' ? this.#newId : id;
      const last = what === 'new ids' ? book + 2 : id;
      if (what === 'new ids') this.#newId += 3;
      this.#locks.set(book, xid);
      this.#number += 1;
      const row = { xid, number: this.#number, book, last, at: this.#order.time.now };
      return () => {
        this.rows.push(row);
        for (let one = book; one <= last; one += 1) {
          this.#version += 1;
          if (what === 'removal') this.books.delete(one);
          else this.books.set(one, this.#version);
        }
      };
    });
  }

  /** Looks for rows to remove. @returns removes them, and says how many these were. */
  prune(kept: number): () => number {
    const text = pruneStatement('true');
    const { xmin } = new Snapshot(this.snapshot);
    const oldest = this.rows.toSorted(inOrder).slice(0, ROWS + 1);
    const young = oldest.findIndex(({ at }) => at >= this.#order.time.now - kept);
    const stays = young === -1 ? oldest.at(-1) : oldest[young - 1];
    const filtered = oldest.filter((row) => {
      const isEnded = !text.includes('pg_snapshot_xmin') || row.xid < xmin;
      return stays !== undefined && inOrder(row, stays) < 0 && isEnded;
    });
    const gone = new Set(filtered);
    const emptied = stays !== undefined && stays.book > 0 && stays.xid < xmin ? [stays] : [];
    return () => {
      this.rows = this.rows.flatMap((row) => {
        if (gone.has(row)) return [];
        return emptied.includes(row) ? { ...row, book: 0, last: 0 } : row;
      });
      this.#pruned = Math.max(this.#pruned, ...[...filtered, ...emptied].map(({ xid }) => xid));
      return gone.size + emptied.length;
    };
  }

  /** Whether rows may have been removed of a transaction that was in progress at a snapshot in a cursor: no one knows which it had. */
  mayHaveRemoved(cursor: string): boolean {
    const snapshots = cursor.match(/\d+:\d+:[\d,]*/g) ?? [];
    return snapshots.some((text) => new Snapshot(text).xip.some((xid) => xid <= this.#pruned));
  }

  /** The rows that a reader lacks, in their order. */
  #behind(seen: Snapshot, xid: number, number: number): readonly Row[] {
    const lacking = this.rows.filter((row) => {
      const isLater = row.xid > xid && (row.xid >= seen.xmax || seen.xip.includes(row.xid));
      return isLater || (row.xid === xid && row.number > number);
    });
    return lacking.toSorted(inOrder);
  }

  carryOut(text: string, values: readonly unknown[]): object[] {
    const now = this.snapshot;
    const { xid, number, at } = this.rows.reduce((one, row) => (inOrder(one, row) < 0 ? row : one));
    const shard = { server: 'the server', newest: `${xid}/${number}/${at}` };
    if (text.includes('"isKnown"')) {
      const [, seen, newest] = values;
      return [{ ...shard, isKnown: this.#isKnown(text, new Snapshot(seen), String(newest)) }];
    }
    if (text.includes('"hasMore"'))
      return [{ now, hasMore: this.#behind(new Snapshot(values[1]), 0, 0).length > 0 }];
    if (text.includes('state.place as shard, pg_current_snapshot')) return [{ ...shard, shard: 0, now }];
    if (text.includes('between $1 and $2')) {
      const [first, last, most] = values as number[];
      const ids = [...this.books.keys()].filter((id) => id >= Number(first) && id <= Number(last));
      return ids
        .toSorted((one, other) => one - other)
        .slice(0, most)
        .map((id) => ({ id }));
    }
    if (text.includes('$3::pg_snapshot as target')) {
      const [, seen, target, xid, number] = values;
      const isMidway = xid !== '0' && text.includes('pg_visible_in_snapshot(xid, target)');
      const rows = this.#behind(new Snapshot(seen), Number(xid), Number(number));
      const bound = new Snapshot(target);
      const found = rows.filter((row) => !isMidway || bound.sees(row.xid));
      return found.slice(0, ROWS).map((row) => ({ ...row, xid: `${row.xid}`, now }));
    }
    if (text.includes('unnest($2::bigint[])')) return (values[1] as number[]).map((id) => ({ id, at: 0 }));
    return assert.fail(`an unknown statement: ${text}`);
  }

  #isKnown(text: string, seen: Snapshot, newest: string): boolean {
    const isWhole = text.includes('pg_snapshot_xmin') ? this.#pruned < seen.xmin : seen.sees(this.#pruned);
    return isWhole && this.rows.some(({ xid, number, at }) => `${xid}/${number}/${at}` === newest);
  }
}

/** A program that keeps a copy of the table by following its changes. */
class Follower {
  readonly #server: Server;
  readonly #catalogue: Catalogue;
  /** How many commits there were before a page was read. */
  readonly #commitsBefore: WeakMap<PageOfChanges, number>;
  readonly #order: Order;
  readonly copy = new Map<number, number>();
  #cursor: unknown;
  /** It has what was committed before: so many commits. */
  #has = -1;
  /** Whether rows were removed that it may lack. */
  #mayBeGone = false;
  isWaiting = false;
  #last: Promise<unknown> = Promise.resolve();
  /** Ends its waits. */
  readonly leaving = new AbortController();

  constructor(
    server: Server,
    catalogue: Catalogue,
    commitsBefore: WeakMap<PageOfChanges, number>,
    order: Order,
  ) {
    this.#server = server;
    this.#catalogue = catalogue;
    this.#commitsBefore = commitsBefore;
    this.#order = order;
  }

  /** Sends one request after the other. */
  ask(reading: Reading): Promise<boolean | undefined> {
    const asked = this.#last.then(() => this.#ask(reading));
    this.#last = asked;
    return asked;
  }

  /** @returns whether there was a change, or it begins again; undefined without an answer. */
  async #ask({ limit, wait, isLost }: Reading): Promise<boolean | undefined> {
    const { time } = this.#order;
    const expect = (holds: boolean, fault: string) => this.#order.expect(holds, fault);
    const began = time.now;
    this.isWaiting = wait > 0;
    const answer = await this.#catalogue
      .changes(this.#cursor, limit, wait, this.leaving.signal)
      .catch((error: unknown) => expect(error instanceof StoreUnavailable, `${error}`));
    this.isWaiting = false;
    const waited = time.now - began;
    expect(waited <= wait + DEADLINE, `a follower has waited for ${waited} ms`);
    if (!answer || isLost) return undefined;
    const { page } = answer;
    if (page === 'gone') {
      const mayBeGone = this.#mayBeGone || this.#server.mayHaveRemoved(JSON.stringify(this.#cursor ?? []));
      expect(mayBeGone, 'a cursor is gone though its follower had read what was removed');
      this.#beginAgain();
      return true;
    }
    const { changes, cursor } = page;
    const before = this.#commitsBefore.get(page) ?? 0;
    const isEarly = changes.length === 0 && waited < wait && !this.leaving.signal.aborted;
    expect(!isEarly, 'a wait ends early without a change');
    expect(changes.length <= limit, 'a page has more books than it may have');
    expect(new Set(changes.map(({ id }) => id)).size === changes.length, 'a book is in a page twice');
    for (const { id, book } of changes) {
      if (book === undefined) this.copy.delete(id);
      else this.copy.set(id, book.year);
    }
    this.#cursor = JSON.parse(JSON.stringify(cursor));
    if (changes.length === 0) {
      this.#has = before;
      this.#mayBeGone &&= this.#server.commits > before;
    }
    return changes.length > 0;
  }

  /** As the rules say: then it removes the books that do not come. */
  #beginAgain(): void {
    this.copy.clear();
    this.#cursor = undefined;
    this.#has = -1;
    this.#mayBeGone = false;
  }

  noteRemoval(): void {
    this.#mayBeGone ||= this.#has < this.#server.commits;
  }
}

export const followers = fc.asyncProperty(
  fc.scheduler(),
  fc.array(event, { minLength: 1, maxLength: 10 }),
  fc.tuple(habit, habit),
  fates,
  fc.constantFrom(1, 2, 1000),
  (scheduler, events, habits, fates, heavy) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const server = new Server(order);
      const statements = new Statements(order, fates);
      let sent = 0;
      const send = async (name: string, deadline: number, carryOut: () => object[]) => {
        sent += 1;
        return await statements.send(name, deadline, carryOut).finally(() => {
          sent -= 1;
        });
      };
      /** How many commits there were before the latest look for changes that has ended. */
      let looked = -1;
      const query = async (_: string, text: string, values: readonly unknown[], deadline: number) => {
        const before = server.commits;
        const result = await send('statement', deadline, () => server.carryOut(text, values));
        if (text.includes('"hasMore"')) looked = before;
        return result;
      };
      /** Leaves out books after so many. */
      const find = async (ids: readonly number[], deadline: number) => {
        const rows = await send('find', deadline, () => {
          let left = heavy;
          return ids.map((id) => {
            const year = server.books.get(id);
            if (year !== undefined) left -= 1;
            return { book: left < 0 ? null : year && { id, title: '', author: '', year } };
          });
        });
        return (rows as { book: Book | undefined | null }[]).map(({ book }) => book);
      };
      const watches = new Set<() => void>();
      const history = new PostgresLog(
        { query } as unknown as Connections,
        undefined,
        { find, watches } as unknown as PostgresBooks,
        { all: [0], first: 0, of: () => 0, statements: STATEMENTS },
        TIMES.postgres,
      );
      const commitsBefore = new WeakMap<PageOfChanges, number>();
      const log: Pick<ServedLog, 'changes' | 'watch'> = {
        changes: async (cursor, most, deadline) => {
          const before = server.commits;
          const page = await history.changes(cursor, most, deadline);
          if (page !== 'gone') commitsBefore.set(page, before);
          return page;
        },
        watch: (onChange) => history.watch(onChange),
      };
      const catalogue = new Catalogue({ inFlight: 2, log } as Store, TIMES.books);
      const all = [0, 1].map(() => new Follower(server, catalogue, commitsBefore, order));

      const transact = async ({ writes, repeats, rest, end, isOwn }: Transacted) => {
        const xid = server.begin();
        const applied: (() => void)[] = [];
        for (const one of writes)
          await order.later(`${xid} writes ${one.id}`, () =>
            applied.push(...server.write(xid, one, repeats)),
          );
        if (rest > 0) await order.pause(rest);
        await order.later(`${xid}: ${end}`, () =>
          server.end(xid, () => {
            if (end === 'rollback' || applied.length === 0) return;
            for (const apply of applied) apply();
            server.commits += 1;
          }),
        );
        if (isOwn && end === 'commit')
          await order.later('it is acknowledged', () => {
            for (const onWrite of watches) onWrite();
          });
      };
      const prune = async (kept: number) => {
        const xid = server.begin();
        const remove = server.prune(kept);
        await order.later('rows are removed', () => {
          server.end(xid, () => {
            if (remove() > 0) for (const follower of all) follower.noteRemoval();
          });
        });
      };
      let isOver = false;
      const follow = async (follower: Follower | undefined, { limit, wait, rest, lost }: Habit) => {
        for (let request = 1; !isOver; request += 1) {
          await follower?.ask({ limit, wait, isLost: request % lost === 0 });
          await order.pause(rest);
        }
      };
      for (const [position, one] of habits.entries()) void follow(all[position], one);
      const happen = async () => {
        for (const one of events) {
          if (one.after > 0) await order.pause(one.after);
          await order.later('an event', () => void ('end' in one ? transact(one) : prune(one.kept)));
        }
      };
      await order.until(happen());
      await order.during(CALM);
      isOver = true;
      statements.isPrompt = true;
      const isQuiet = () => sent === 0 && server.inProgress.size === 0 && !time.isBusy;
      const isSeen = () => looked === server.commits || !all.some(({ isWaiting }) => isWaiting);
      await order.untilQuiet(() => isQuiet() && isSeen());
      for (const { isWaiting, copy } of all)
        if (isWaiting) assert.deepEqual(copy, server.books, 'a follower waits for changes that are there');

      // Now each reads what is left, and then waits for a change of another program.
      const readAll = async (follower: Follower) => {
        while (await follower.ask({ limit: 1000, wait: 0, isLost: false }));
        assert.deepEqual(follower.copy, server.books, 'a change is lost');
      };
      const waitAgain = () => {
        return all.map((follower) => {
          const asked = follower.ask({ limit: 2, wait: LONG, isLost: false });
          return new Observed(order, 'a wait', asked);
        });
      };
      await order.until(transact(LATER));
      await order.until(Promise.all(all.map(readAll)));
      await order.during(1);
      await order.until(prune(0)); // each has read these rows
      const began = time.now;
      const waiting = waitAgain();
      await order.during(1000);
      for (const { settled } of waiting) assert.equal(settled, undefined, 'a follower does not wait');
      await order.until(transact(LATER));
      const most = time.now - began + changesPause;
      await order.during(2 * changesPause);
      for (const { settled } of waiting) {
        assert.equal(settled?.answer, true, 'a follower waits for ever');
        assert.ok(settled.after <= most, 'a change is answered late');
      }
      await order.until(Promise.all(all.map(readAll)));
      const last = waitAgain();
      await order.atOnce();
      for (const { leaving } of all) leaving.abort();
      await order.atOnce();
      for (const { settled } of last) assert.equal(settled?.answer, false, 'a client that has left waits');
      await order.untilQuiet();
      assert.equal(time.pending, 0, 'a timer is left');
    }),
);

/** A change of another program. */
const LATER: Transacted = {
  writes: [{ id: 1, what: 'change' }],
  ...{ repeats: 1, rest: 0, end: 'commit', isOwn: false },
};
