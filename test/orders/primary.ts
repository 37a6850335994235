// Owns: every order in which PostgreSQL servers die, fall silent, come back and are promoted, also beside a primary that lives
// on, while writes arrive (rule 23). The driver and its pools are real; the servers speak its protocol.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Batches } from '../../src/books/batches.ts';
import { StoreUnavailable } from '../../src/books/store.ts';
import { Connections } from '../../src/stores/postgres/connections.ts';
import { findWritable, readHosts } from '../../src/stores/postgres/hosts.ts';
import { TIMES } from '../../src/times.ts';
import { DEADLINE, Observed, Order } from './order.ts';
import { type Row, Server, ServerError, type Statement, withServers } from './wire.ts';

/** Milliseconds after which what happened before has no consequence any more: the longest pauses and limits together. */
const CALM = 8000;

const LIMITS = { size: 2, weight: 1000, inFlight: 2 };

const HOSTS = 3;

const event = fc.record({
  kind: fc.constantFrom(
    ...['write', 'write', 'write', 'promote', 'promote and demote', 'end sessions', 'down', 'silent', 'up'],
  ),
  host: fc.nat({ max: HOSTS - 1 }),
});

/** The row of a write. */
interface Written {
  readonly numbers: string;
  readonly timeline: number;
}

class Host extends Server {
  /** 0 if it is a standby. */
  timeline = 0;
  readonly #order: Order;

  constructor(order: Order, port: number) {
    super(order, port);
    this.#order = order;
  }

  override onSent({ text, values }: Statement, limit: number): void {
    const left = Number(values[1]) - this.#order.time.now;
    if (text === 'write')
      this.#order.expect(limit <= left, `a statement may take ${limit} ms, with ${left} ms left`);
  }

  answer({ text, values }: Statement): readonly Row[] {
    if (text.includes('show transaction_read_only'))
      return [{ transaction_read_only: this.timeline > 0 ? 'off' : 'on' }];
    if (text.includes('pg_control_system'))
      return [{ system: '1', timeline: this.timeline.toString(16).padStart(8, '0') }];
    if (text.includes('pg_backend_pid')) return [{ isLimited: true, rowSecurity: 'off' }];
    if (text !== 'write') return [];
    if (this.timeline === 0) throw new ServerError('25006');
    return [{ numbers: values[0] as string, timeline: this.timeline }];
  }
}

export const primary = fc.asyncProperty(
  fc.scheduler(),
  fc.array(event, { minLength: 1, maxLength: 12 }),
  (scheduler, events) =>
    Order.run(scheduler, async (order) => {
      const hosts = Array.from({ length: HOSTS }, (_, position) => new Host(order, 5001 + position));
      const first = hosts[0] as Host;
      first.timeline = 1;
      const newest = () => hosts.reduce((one, other) => (other.timeline > one.timeline ? other : one));
      await withServers(hosts, async () => {
        const setPrompt = (isPrompt: boolean) => {
          for (const host of hosts) host.isPrompt = isPrompt;
        };
        setPrompt(true);
        const places = hosts.map(({ port }) => `h:${port}`).join();
        const { all, watched } = readHosts(`postgres://me:password@${places}/books?sslmode=disable`);
        const finding = findWritable(all, 1500, TIMES.postgres);
        await order.untilQuiet();
        const connections = new Connections({ all, watched }, await finding, TIMES.postgres);
        setPrompt(false);
        const carry = async (numbers: readonly number[], deadline: number) => {
          const values = [numbers.join(' '), `${deadline}`];
          const [row] = await connections.query<Written>('batches', 'write', values, deadline);
          const { numbers: written = '', timeline } = row ?? {};
          return written.split(' ').map((number) => ({ number: Number(number), timeline }));
        };
        const batches = new Batches(carry, LIMITS, TIMES.books);
        const made: { number: number; observed: Observed<Awaited<ReturnType<typeof carry>>[number]> }[] = [];
        const write = (number: number) =>
          made.push({ number, observed: new Observed(order, `write ${number}`, batches.call(number)) });
        const check = () => {
          for (const { number, observed } of made) {
            const { answer, error } = observed.outcome;
            if (answer === undefined) assert.ok(error instanceof StoreUnavailable, `${error}`);
            else assert.equal(answer.number, number);
          }
        };

        const happenings = events.map(({ kind, host: position }, number) => {
          const act = () => {
            const host = hosts[position] as Host;
            if (kind === 'write') write(number);
            if (kind.startsWith('promote')) {
              const { timeline } = newest();
              for (const other of kind === 'promote' ? [] : hosts) other.timeline = 0;
              host.timeline = timeline + 1;
            }
            if (kind === 'end sessions') host.endSessions();
            if (kind === 'down' || kind === 'silent' || kind === 'up') host.condition = kind;
          };
          return [`${kind} ${position}`, act] as const;
        });
        await order.happen(happenings);
        await order.during(DEADLINE);
        check();

        for (const host of hosts) host.condition = 'up';
        setPrompt(true);
        await order.during(CALM);
        made.length = 0;
        for (let number = 100; number < 106; number += 1) write(number);
        await order.during(1000);
        check();
        for (const { observed } of made)
          assert.equal(observed.settled?.answer?.timeline, newest().timeline, `${observed.settled?.error}`);
        void connections.close();
        await order.untilQuiet();
      });
    }),
);
