// Owns: the connections to PostgreSQL, in pools. All go to the host that takes writes, after a failover to the new one. Here, and
// only here, a failed statement becomes StoreUnavailable.

import { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { StoreUnavailable } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import type { Query } from '../query.ts';
import { findWritable, type Hosts, isNewer, type Primary, refuseReadOnly, settingsFor } from './hosts.ts';
import { beginWithin, type Limited, limitConnection } from './limits.ts';
import { CANCELED, codeOf, queryOn } from './query.ts';
import type { Connection } from './snapshot.ts';

export const LIST_CONNECTIONS = 8;

/** The connections of each pool. Statements are in one pool if they may wait for the same. */
const CONNECTIONS = {
  batches: 10, // wait for nothing
  held: 4, // wait for locks of others or, with books above 64 KiB, for each other
  searches: 3, // wait for their own work: the short search, the long one, and indexing
  counts: 1, // wait for even more work
  lists: LIST_CONNECTIONS, // wait for their readers
  barriers: 1, // wait for all writers, to lock all books on Citus
};

/** More connections for batches, for each further server with books: its batches in flight have some, even if it does not answer. */
const BATCHES_OF_SERVER = 5;

/** The server rolled back the whole transaction; the statement can simply be retried. */
const SERIALIZATION_FAILURES = new Set(['40001', '40P01']);
const MAX_ATTEMPTS = 5;

/** Errors of a server that is going away, or takes no writes any more. */
const HOST_FAILURE = /^(08|57P|25006)/;

/** Errors for a row that an operator's constraint, trigger, index or policy refuses, and those of Citus for books of several shards. */
const REFUSED = /^(0A|2[123]|27|3[89]|42501|44|54|P0)/;

/** Nothing was sent, since no caller waits for the answer any more. */
export const OVERDUE = new StoreUnavailable('no connection in time', 'late');

class Client extends pg.Client implements pg.PoolClient {
  declare release: pg.PoolClient['release'];
  limited: Limited = { isLimited: false, rowSecurity: 'off' };
  readonly #socket: Socket;

  constructor(config?: pg.ClientConfig) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.#socket = socket;
  }

  /** Begins a transaction, in one packet with the next statements of this turn: each packet more costs a pooler as much again. */
  begin(milliseconds: number): Promise<unknown> {
    this.#socket.cork();
    process.nextTick(() => this.#socket.uncork());
    return this.query(beginWithin(milliseconds, this.limited.rowSecurity));
  }

  /**
   * Waits for an answer. If the server falls silent, the connection is reset: after an ordinary end, the system would
   * still deliver a statement that is under way. It would take effect when the network is back, after newer changes.
   * @param silence milliseconds.
   */
  async answered<Result>(sent: Promise<Result>, silence: number): Promise<Result> {
    const silent = setTimeout(() => this.#socket.resetAndDestroy(), silence);
    return await sent.finally(() => clearTimeout(silent));
  }
}

/** The pools for single statements and transactions. */
type StatementPool = keyof Times['postgres']['statement'];

type Pools = Readonly<Record<keyof typeof CONNECTIONS, pg.Pool>>;

export class Connections {
  readonly #hosts: Hosts;
  readonly #times: Times['postgres'];
  readonly #servers: number;
  #address: Primary;
  #pools: Pools;
  /** Whether another host may have taken over. */
  #inDoubt = false;
  #closed = false;
  #retries = 0;
  #hostChanges = 0;
  /** Connections that broke or stopped answering. */
  #lost = 0;

  /**
   * @param address where the connections go first.
   * @param servers how many keep the books.
   */
  constructor(hosts: Hosts, address: Primary, times: Times['postgres'], servers = 1) {
    this.#hosts = hosts;
    this.#times = times;
    this.#address = address;
    this.#servers = servers;
    this.#pools = this.#open(address);
    if (hosts.all.length > 1) void this.#watch();
  }

  /**
   * Sends one statement, and returns its rows. One whose outcome is unknown is not retried. Nothing is sent after the
   * deadline, when the server also ends a statement in progress.
   * @param name for a statement that takes longer to plan than to run. Each connection plans it once, unless a pooler is in between.
   * @throws StoreUnavailable
   */
  query<Row extends object>(
    kind: StatementPool,
    text: string,
    values: unknown[],
    deadline: number,
    name?: string,
  ): Promise<Row[]> {
    const { query: silence, statement } = this.#times;
    return this.#send(kind, deadline, async (client, limit) => {
      const send = (name?: string) => client.query<Row>({ name, text, values });
      if (client.limited.isLimited && limit === statement[kind])
        return (await client.answered(send(name), silence)).rows;
      const sent = [client.begin(limit), send(), client.query('commit')] as const;
      return (await client.answered(Promise.all(sent), silence))[1].rows;
    });
  }

  /**
   * Runs statements as one transaction. It is rolled back if the work throws, and carried out again if the server has
   * rolled it back for others. If the outcome of its commit is unknown, it is not carried out again.
   * @throws StoreUnavailable
   */
  transaction<Result>(
    kind: StatementPool,
    deadline: number,
    work: (query: Query) => Promise<Result>,
  ): Promise<Result> {
    return this.#send(kind, deadline, async (client, limit) => {
      const begun = client.begin(limit);
      begun.catch(() => {}); // each statement reports it
      const query: Query = async (text, values = []) => {
        if (performance.now() >= deadline) throw OVERDUE;
        const sent = client.answered(client.query({ text, values }), this.#times.query);
        return (await Promise.all([begun, sent]))[1].rows;
      };
      try {
        const result = await work(query);
        await query('commit');
        return result;
      } catch (error) {
        client.query('rollback').catch(() => {}); // the connection may be broken
        throw error;
      }
    });
  }

  async #send<Result>(
    kind: StatementPool,
    deadline: number,
    send: (client: Client, limit: number) => Promise<Result>,
  ): Promise<Result> {
    const { statement, notice, retryPause } = this.#times;
    for (let attempt = 1; ; attempt += 1) {
      const client = await this.#connect(kind, deadline);
      const limit = Math.min(statement[kind], deadline - notice - performance.now());
      try {
        if (limit <= 0) throw OVERDUE;
        const result = await send(client, limit);
        client.release();
        return result;
      } catch (error) {
        const code = codeOf(error);
        const isLost = code === undefined && !(error instanceof StoreUnavailable);
        client.release(isLost || HOST_FAILURE.test(code ?? ''));
        const rest = Math.random() * retryPause * 2 ** attempt;
        const isTakenBack = SERIALIZATION_FAILURES.has(code ?? '');
        if (!isTakenBack || attempt === MAX_ATTEMPTS || performance.now() + rest >= deadline) {
          const isLate = code === CANCELED && limit < statement[kind];
          throw isLate ? new StoreUnavailable(error, 'late') : this.unavailable(error);
        }
        this.#retries += 1;
        await pause(rest);
      }
    }
  }

  /**
   * Waits for a connection. An attempt that timed out is repeated, perhaps to another host: nothing was sent.
   * @throws StoreUnavailable
   */
  async #connect(kind: keyof Pools, deadline: number): Promise<Client> {
    const { connect } = this.#times;
    for (;;) {
      const began = performance.now();
      try {
        return (await this.#pools[kind].connect()) as Client;
      } catch (error) {
        const unavailable = this.unavailable(error);
        const now = performance.now();
        if (now - began < connect || deadline - now <= connect) throw unavailable;
      }
    }
  }

  /**
   * A connection for statements of several calls. The caller releases it.
   * @throws StoreUnavailable
   */
  async take(kind: Exclude<keyof Pools, StatementPool>): Promise<Connection> {
    const client = await this.#connect(kind, performance.now() + 2 * this.#times.connect);
    return { client, release: (isBroken) => client.release(isBroken) };
  }

  /** @returns the error for callers. */
  unavailable(error: unknown): StoreUnavailable {
    if (error instanceof StoreUnavailable) return error;
    const code = codeOf(error);
    if (code === undefined || HOST_FAILURE.test(code)) this.#inDoubt = true;
    return new StoreUnavailable(error, REFUSED.test(code ?? '') ? 'refused' : 'failure');
  }

  counts() {
    const all = Object.entries(this.#pools);
    const ofPools = (count: (pool: pg.Pool) => number) =>
      Object.fromEntries(all.map(([name, pool]) => [name, count(pool)]));
    return {
      postgres_connections: ofPools(({ totalCount }) => totalCount),
      postgres_idle_connections: ofPools(({ idleCount }) => idleCount),
      postgres_waiting_statements: ofPools(({ waitingCount }) => waitingCount),
      postgres_connections_lost_total: this.#lost,
      postgres_host_changes_total: this.#hostChanges,
      postgres_retries_total: this.#retries,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(Object.values(this.#pools).map((pool) => pool.end()));
  }

  #open(address: Primary): Pools {
    const { connect, idle, lifetime, statement } = this.#times;
    const open = (kind: keyof Pools) => {
      const limit = kind === 'lists' || kind === 'barriers' ? undefined : statement[kind];
      const pool = new pg.Pool({
        ...settingsFor(address, connect, this.#times),
        idleTimeoutMillis: idle,
        maxLifetimeSeconds: lifetime / 1000,
        max: CONNECTIONS[kind] + (kind === 'batches' ? BATCHES_OF_SERVER * (this.#servers - 1) : 0),
        Client,
        pipeline: limit !== undefined, // lists copy
        onConnect: async (client) => {
          if (this.#hosts.watched) await refuseReadOnly(queryOn(client, connect));
          if (limit !== undefined) (client as Client).limited = await limitConnection(client, limit, connect);
        },
      });
      pool.on('error', () => {}); // reported below
      pool.on('connect', (client) => {
        client.on('error', () => {}); // the statement in progress, if any, reports it
        client.once('error', () => {
          this.#lost += 1;
          this.#inDoubt = true;
          // All other connections to that server may be broken.
          if (pool === this.#pools[kind]) this.#moveTo(this.#address);
        });
      });
      return pool;
    };
    const kinds = Object.keys(CONNECTIONS) as (keyof Pools)[];
    return Object.fromEntries(kinds.map((kind) => [kind, open(kind)])) as Pools;
  }

  /** New calls take new connections; calls that have one keep it until they are done. */
  #moveTo(address: Primary): void {
    if (this.#closed) return;
    for (const pool of Object.values(this.#pools)) void pool.end();
    this.#address = address;
    this.#pools = this.#open(address);
  }

  /**
   * Asks all hosts from time to time, and soon after a failure, which of them takes writes. A primary may live on beside a
   * promoted standby: nothing has to fail there, but books that are read are old, and books that are written are lost.
   */
  async #watch(): Promise<void> {
    const { connect, searchPause, watchPause } = this.#times;
    for (let asked = performance.now(); !this.#closed; ) {
      await pause(searchPause * (0.5 + Math.random()), undefined, { ref: false }); // with jitter
      if (!this.#inDoubt && performance.now() - asked < watchPause) continue;
      asked = performance.now();
      this.#inDoubt = false;
      const used = this.#address;
      const others = this.#hosts.all.filter(({ name }) => name !== used.name);
      const found = await findWritable([used, ...others], connect, this.#times).catch(() => undefined);
      if (found === undefined) this.#inDoubt = true;
      else if (isNewer(found, used) || (found.name !== used.name && !isNewer(used, found))) {
        if (found.name !== used.name) this.#hostChanges += 1;
        this.#moveTo(found);
      }
    }
  }
}
