// Owns: every order of writes to a primary of PostgreSQL and of reads from its standby, which replays late, falls silent, goes
// away or is promoted: a read shows what the primary shows. The driver and its pools are real; the servers speak its
// protocol, and have transactions, a log and snapshots in place of books.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Connections } from '../../src/stores/postgres/connections.ts';
import { connectToWritable, readHosts } from '../../src/stores/postgres/hosts.ts';
import { Standby } from '../../src/stores/postgres/standby.ts';
import { TIMES } from '../../src/times.ts';
import { DEADLINE, Observed, Order } from './order.ts';
import { type Row, Server, type Session, type Statement, withServers } from './wire.ts';

/** Milliseconds that a read waits for a snapshot at most. */
const LIMIT = 500;

/** Milliseconds that pass in one step at most, so that most reads are in time. */
const STRIDES = [1, 2, 1, 10, 3, 150];

/** Milliseconds after which what happened before has no consequence any more: the longest pauses and limits together. */
const CALM = 6000;

const EVENTS = [
  'write',
  'write',
  'write',
  'read',
  'read',
  'read',
  'silent',
  'down',
  'up',
  'restart',
  'promote',
];
const events = fc.array(fc.constantFrom(...EVENTS), { minLength: 1, maxLength: 12 });

/** How a transaction commits, by turns. */
const COMMITS = ['on disk', 'asynchronously', 'after another standby'];
const commits = fc.array(fc.constantFrom(...COMMITS), { minLength: 1, maxLength: 4 });

/** Transactions that the standby replays between two looks at most, by turns. */
const replays = fc.array(fc.constantFrom(0, 0, 1, 100), { minLength: 1, maxLength: 4 });

const IDENTITY = { cluster: '1', database: '1', role: 'me', seesStream: true, mayRead: true };

/** Transactions as they are in the log, each with what it has written. */
class Primary extends Server {
  readonly log: string[] = [];
  /** How many of them are on disk, from where the standby gets them. */
  flushed = 0;
  readonly shown = new Set<string>();
  readonly #order: Order;
  readonly #commits: readonly string[];
  #writes = 0;

  constructor(order: Order, commits: readonly string[]) {
    super(order, 5001);
    this.#order = order;
    this.#commits = commits;
  }

  async answer({ text, values }: Statement): Promise<readonly Row[]> {
    if (text.includes('transaction_read_only')) return [{ transaction_read_only: 'off' }];
    if (text.includes('pg_current_snapshot')) {
      if (values[0] === 'true') this.flushed = this.log.length;
      return [{ timeline: 1, snapshot: [...this.shown].join(), position: this.log.length }];
    }
    if (text.includes('as cluster')) return [IDENTITY];
    if (text.includes('as system')) return [{ system: '1', number: '00000001' }];
    if (text.includes('pg_backend_pid')) return [{ limited: true }];
    if (text.includes('insert into book_requests')) await this.#commit(values[0] as string, 'on disk');
    if (text === 'write')
      await this.#commit(values[0] as string, this.#commits[this.#writes++ % this.#commits.length]);
    return [];
  }

  async #commit(what: string, how = ''): Promise<void> {
    this.log.push(what);
    if (how !== 'asynchronously') this.flushed = this.log.length;
    if (how === 'after another standby' && !this.isPrompt)
      await this.#order.later(`${what} is shown`, () => {});
    this.shown.add(what);
  }
}

class Follower extends Server {
  readonly #primary: Primary;
  readonly #replays: readonly number[];
  readonly #snapshots = new WeakMap<Session, readonly string[]>();
  #replayed = 0;
  #looks = 0;
  /** Since a restart. */
  #start = 1;
  isPromoted = false;

  constructor(order: Order, primary: Primary, replays: readonly number[]) {
    super(order, 5002);
    this.#primary = primary;
    this.#replays = replays;
  }

  restart(): void {
    this.#start += 1;
    this.endSessions();
  }

  answer({ text, values }: Statement, session: Session): readonly Row[] {
    const follows = !this.isPromoted && values[0] === '1';
    if (text.includes('as "hasReplayed"')) {
      this.#replay();
      return [{ follows, hasReplayed: this.#replayed >= Number(values[1]), server: `${this.#start}` }];
    }
    if (text.startsWith('begin')) this.#snapshots.delete(session);
    if (text.includes('as "isShown"')) {
      const shown = values[2]?.split(',') ?? [];
      const seen = this.#snapshotOf(session);
      const isShown = seen.every((one) => shown.includes(one));
      return [{ follows: follows && values[1] === `${this.#start}`, isShown }];
    }
    if (text === 'read') return this.#snapshotOf(session).map((one) => ({ one }));
    if (text.includes('as "isThere"')) {
      this.#replay();
      return [{ isThere: this.#books.includes(values[0] as string) }];
    }
    return text.includes('as cluster') ? [IDENTITY] : [];
  }

  get #books(): readonly string[] {
    const replayed = this.#primary.log.slice(0, this.#replayed);
    return this.isPromoted ? [...replayed, 'of another timeline'] : replayed;
  }

  #replay(): void {
    const step = this.isPrompt ? 100 : (this.#replays[this.#looks++ % this.#replays.length] as number);
    if (!this.isPromoted) this.#replayed = Math.min(this.#primary.flushed, this.#replayed + step);
  }

  /** A transaction takes its snapshot with its first statement. */
  #snapshotOf(session: Session): readonly string[] {
    const snapshot = this.#snapshots.get(session) ?? this.#books;
    this.#snapshots.set(session, snapshot);
    return snapshot;
  }
}

export const standby = fc.asyncProperty(
  fc.scheduler(),
  events,
  commits,
  replays,
  (scheduler, events, commits, replays) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const primary = new Primary(order, commits);
      const follower = new Follower(order, primary, replays);
      const servers = [primary, follower];
      await withServers(servers, async () => {
        const setPrompt = (isPrompt: boolean) => {
          for (const server of servers) server.isPrompt = isPrompt;
        };
        const urlOf = ({ port }: Server) => `postgres://me:password@h:${port}/postgres?sslmode=disable`;
        const open = async () => {
          const hosts = readHosts(urlOf(primary));
          const { address, client } = await connectToWritable(hosts, TIMES.postgres);
          const connections = new Connections(hosts, address, TIMES.postgres);
          const standbys = { hosts: readHosts(urlOf(follower), 'reading').all, shownUrl: 'the standby' };
          const standby = await Standby.open(standbys, client, connections, TIMES);
          await client.end();
          return { connections, standby };
        };
        setPrompt(true);
        const opening = open();
        await order.during(3000);
        const { connections, standby } = await opening;
        setPrompt(false);
        const { strides } = order;
        order.strides = STRIDES;

        const read = async () => {
          const began = time.now;
          const shownBefore = [...primary.shown];
          const seen = await standby.read('search', '', async (client) => {
            assert.ok(time.now - began <= LIMIT, 'it waits too long for a snapshot');
            const { rows } = await client.query<{ one: string }>('read');
            client.query('commit').then(
              () => client.release(),
              () => client.release(true),
            );
            return rows.map(({ one }) => one);
          });
          if (seen === undefined) return 'from the primary';
          for (const one of shownBefore) assert.ok(seen.includes(one), `a read of ${seen} lacks ${one}`);
          for (const one of seen)
            assert.ok(primary.shown.has(one), `a read shows ${one} before the primary does`);

          return 'from the standby';
        };
        const made: Observed<string>[] = [];
        const happenings = events.map((event, number) => {
          const act = () => {
            const write = () => connections.query('batches', 'write', [`${number}`], time.now + DEADLINE);
            if (event === 'write') void write().catch(() => {});
            if (event === 'read') made.push(new Observed(order, 'a read', read()));
            if (event === 'silent' || event === 'down' || event === 'up') follower.condition = event;
            if (event === 'restart') follower.restart();
            if (event === 'promote') follower.isPromoted = true;
          };
          return [event, act] as const;
        });
        await order.happen(happenings);
        const check = () => {
          for (const { outcome } of made) if (outcome.error !== undefined) throw outcome.error;
        };
        await order.during(DEADLINE);
        check();

        order.strides = strides;
        follower.isPromoted = false;
        follower.condition = 'up';
        setPrompt(true);
        await order.during(CALM);
        made.splice(0);
        made.push(new Observed(order, 'a read', read()));
        await order.during(1000);
        check();
        for (const { settled } of made) assert.equal(settled?.answer, 'from the standby');
        void Promise.all([standby.close(), connections.close()]);
        await order.untilQuiet();
      });
    }),
);
