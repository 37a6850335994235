// Owns: every order of writes to a primary of PostgreSQL and of reads from its standby, which replays late, falls silent, goes
// away or is promoted: a read shows what the primary showed before, and one at a time finds out that it is silent. The driver and its pools are real; the servers speak its
// protocol, and have transactions and a log in place of books.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Connections } from '../../src/stores/postgres/connections.ts';
import { connectToWritable, readHosts } from '../../src/stores/postgres/hosts.ts';
import { Standby } from '../../src/stores/postgres/standby.ts';
import { TIMES } from '../../src/times.ts';
import { DEADLINE, Observed, Order } from './order.ts';
import { type Row, Server, type Statement, withServers } from './wire.ts';

/** Milliseconds that a read waits for the standby at most, and that what it then asks may take. */
const LIMIT = 500;
const QUESTION = 1000;

/** Milliseconds that pass in one step at most, so that most reads are in time. */
const STRIDES = [1, 2, 1, 10, 3, 150];

/** Milliseconds after which what happened before has no consequence any more: the longest pauses and limits together. */
const CALM = 6000;

const EVENTS = [
  ...Array(4).fill('write'),
  ...Array(8).fill('read'),
  'silent',
  'down',
  'up',
  'restart',
  'promote',
];
const events = fc.array(fc.constantFrom(...EVENTS), { minLength: 1, maxLength: 12 });

/** Whether a transaction is on disk when it is shown, by turns. */
const commits = fc.array(fc.boolean(), { minLength: 1, maxLength: 4 });

/** Transactions that the standby replays between two looks at most, by turns. */
const replays = fc.array(fc.constantFrom(0, 0, 1, 100), { minLength: 1, maxLength: 4 });

/** Transactions as they are in the log, each with what it has written. */
class Primary extends Server {
  readonly log: string[] = [];
  /** How many of them are on disk, from where the standby gets them. */
  flushed = 0;
  readonly #commits: readonly boolean[];

  constructor(order: Order, commits: readonly boolean[]) {
    super(order, 5001);
    this.#commits = commits;
  }

  answer({ text, values }: Statement): readonly Row[] {
    if (text.includes('transaction_read_only')) return [{ transaction_read_only: 'off' }];
    if (text.includes('as position')) {
      this.flushed = this.log.length;
      return [{ timeline: 1, position: this.log.length, database: 'books' }];
    }
    if (text.includes('as system')) return [{ system: '1', timeline: '00000001' }];
    if (text.includes('pg_backend_pid')) return [{ isLimited: true, rowSecurity: 'off' }];
    if (text === 'write') {
      this.log.push(values[0] as string);
      if (this.#commits[this.log.length % this.#commits.length]) this.flushed = this.log.length;
    }
    return [];
  }
}

class Follower extends Server {
  readonly #primary: Primary;
  readonly #replays: readonly number[];
  #replayed = 0;
  #looks = 0;
  isPromoted = false;

  constructor(order: Order, primary: Primary, replays: readonly number[]) {
    super(order, 5002);
    this.#primary = primary;
    this.#replays = replays;
  }

  answer({ text, values }: Statement): readonly Row[] {
    if (text === 'read') return this.#primary.log.slice(0, this.#replayed).map((one) => ({ one }));
    this.#replay();
    const [timeline, position, database] = values;
    return [
      {
        follows: !this.isPromoted && timeline === '1',
        hasReplayed: this.#replayed >= Number(position),
        isRight: database === 'books',
        isWhole: true,
      },
    ];
  }

  #replay(): void {
    const step = this.isPrompt ? 100 : (this.#replays[this.#looks++ % this.#replays.length] as number);
    if (!this.isPromoted) this.#replayed = Math.min(this.#primary.flushed, this.#replayed + step);
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
          await client.end();
          return new Connections(hosts, address, TIMES.postgres);
        };
        setPrompt(true);
        const opening = open();
        await order.during(3000);
        const connections = await opening;
        const standbys = { hosts: readHosts(urlOf(follower), 'reading').all, shownUrl: 'the standby' };
        const ask = (text: string, deadline: number) => connections.query('batches', text, [], deadline);
        const standby = new Standby(standbys, ask, TIMES);
        const read = async () => {
          const began = time.now;
          const before = [...primary.log];
          const seen = await standby.read(async (client, release) => {
            assert.ok(time.now - began <= LIMIT, 'it waits too long');
            const question = { text: 'read', query_timeout: QUESTION };
            const { rows } = await client.query<{ one: string }>(question);
            release(false);
            return rows.map(({ one }) => one);
          });
          if (seen === undefined) return 'from the primary';
          for (const one of before) assert.ok(seen.includes(one), `a read of ${seen} lacks ${one}`);
          return 'from the standby';
        };
        const first = read();
        await order.during(1000);
        assert.equal(await first, 'from the standby');
        setPrompt(false);
        const { strides } = order;
        order.strides = STRIDES;

        const made: Observed<string>[] = [];
        const happenings = events.map((event, number) => {
          const act = () => {
            const write = () => connections.query('batches', 'write', [`${number}`], time.now + DEADLINE);
            if (event === 'write') void write().catch(() => {});
            if (event === 'read') made.push(new Observed(order, 'a read', read()));
            if (event === 'silent' || event === 'down' || event === 'up') follower.condition = event;
            if (event === 'restart') follower.endSessions();
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
        made.push(new Observed(order, 'a read', read())); // it may find that the connection has ended
        await order.during(CALM);
        made.splice(0, made.length, new Observed(order, 'a read', read()));
        await order.during(1000);
        check();
        for (const { settled } of made) assert.equal(settled?.answer, 'from the standby');

        follower.condition = 'silent';
        for (const reads of [1, 3]) {
          const waiting = Array.from({ length: reads }, () => new Observed(order, 'a read', read()));
          await order.during(2000);
          const waited = waiting.filter(({ outcome }) => outcome.after > 0);
          assert.equal(waited.length, 1, 'more than one read waits for a silent standby');
        }
        follower.condition = 'up';
        standby.close();
        void connections.close();
        await order.untilQuiet();
      });
    }),
);
