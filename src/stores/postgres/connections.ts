// Owns: the connections to PostgreSQL: in pools, all to the host that takes writes; after a failover, to the new one.
// Here, and only here, a failed statement becomes StoreUnavailable.

import { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { StoreUnavailable } from '../../books/store.ts';
import { type MetricName, metric } from '../../metrics/descriptions.ts';
import type { Metric } from '../../metrics/prometheus.ts';
import type { Times } from '../../times.ts';
import {
  APPLICATION,
  findWritable,
  type Hosts,
  isNewer,
  NUMBERS,
  type Primary,
  refuseReadOnly,
} from './hosts.ts';
import { beginWithin, type Limit, limitConnection, queryWithin } from './limits.ts';

// Connections of each pool. The pools are divided by what their statements may wait for, so that none waits for a
// slower kind: batches wait for nothing, held books for the locks of others or, above 64 KiB, for each other, searches
// for the work that they cause, counts of all that a search finds for even more of it, lists for their readers.
const BATCH_CONNECTIONS = 10;
const HELD_CONNECTIONS = 4;
/** One for the short search in progress, one for the long one, and one that brings the index up to date beside them. */
const SEARCH_CONNECTIONS = 3;
const COUNT_CONNECTIONS = 1;
export const LIST_CONNECTIONS = 8;

/** The server rolled back the whole transaction; the statement can simply be retried. */
const SERIALIZATION_FAILURES = new Set(['40001', '40P01']);
const MAX_ATTEMPTS = 5;

/** The server ended the statement, at its limit of time for example. */
export const CANCELED = '57014';

/** The server's own errors that mean that a host is going away, or takes no writes any more. */
export const HOST_FAILURE = /^(08|57P|25006)/;

/** The server's errors for a row that a constraint, a trigger, an index or a policy of an operator refuses. */
const REFUSED = /^(2[123]|27|3[89]|42501|44|54|P0)/;

/** The callers no longer wait for the answer, so nothing is sent. */
export const OVERDUE = new StoreUnavailable('no connection in time', 'late');

/** Connecting has its own timeout: that of the pool includes the wait for a free connection. */
class Client extends pg.Client {
  readonly #socket: Socket;

  constructor(connectionTimeoutMillis: number, config?: pg.ClientConfig) {
    const socket = new Socket();
    super({ ...config, connectionTimeoutMillis, stream: () => socket });
    this.#socket = socket;
  }

  /**
   * Ends the connection at once. After an ordinary end, the system would still deliver a statement that is under way:
   * it would take effect when the network is back, after newer changes.
   */
  reset(): void {
    this.#socket.resetAndDestroy();
  }
}

/** The pools for single statements. */
type StatementPool = keyof Times['postgres']['statement'];

/** Sends one statement of a transaction. */
export type Query = <Row extends pg.QueryResultRow>(
  text: string,
  values?: unknown[],
) => Promise<pg.QueryResult<Row>>;

interface Pools extends Readonly<Record<StatementPool | 'lists', pg.Pool>> {
  readonly address: Primary;
}

export class Connections {
  readonly #hosts: Hosts;
  readonly #times: Times['postgres'];
  #pools: Pools;
  /** Of the host in use, which may change without its address. */
  #timeline: Primary['timeline'];
  #searching = false;
  /** Resolves once a search in progress has its first answer. Until then the host is in doubt, and gets nothing new. */
  #answered: Promise<unknown> = Promise.resolve();
  #closed = false;
  #retries = 0;
  #hostChanges = 0;
  /** Connections that broke or stopped answering. `#broken` has those that broke, so that none is counted twice. */
  #lost = 0;
  readonly #broken = new WeakSet<pg.ClientBase>();
  /** Called when the pools are replaced; set by calls that wait for a connection. */
  readonly #onMove = new Set<(value: undefined) => void>();

  /** @param address where the connections go first. */
  constructor(hosts: Hosts, address: Primary, times: Times['postgres']) {
    this.#hosts = hosts;
    this.#times = times;
    this.#pools = this.#open(address);
    this.#timeline = address.timeline;
    if (hosts.all.length > 1) void this.#watch();
  }

  /**
   * Sends one statement. One whose outcome is unknown is not retried. Nothing is sent after the deadline, and the server
   * ends what is in progress then.
   * @throws StoreUnavailable
   */
  query<Row extends pg.QueryResultRow>(
    kind: StatementPool,
    text: string,
    values: unknown[],
    deadline: number,
  ): Promise<pg.QueryResult<Row>> {
    return this.#send(kind, deadline, (client, left) => {
      return queryWithin<Row>(client, 'statement_timeout', left, { text, values });
    });
  }

  /**
   * Runs statements as one transaction. It is rolled back if the work throws, and carried out again if the server has rolled it
   * back for others. If the outcome of its commit is unknown, it is not carried out again.
   * @throws StoreUnavailable
   */
  transaction<Result>(
    kind: StatementPool,
    deadline: number,
    work: (query: Query) => Promise<Result>,
  ): Promise<Result> {
    return this.#send(kind, deadline, async (client, left) => {
      const query: Query = async (text, values = []) => {
        if (performance.now() >= deadline) throw OVERDUE;
        return client.query({ text, values });
      };
      try {
        await client.query(beginWithin(left));
        const result = await work(query);
        await query('commit');
        return result;
      } catch (error) {
        if (error instanceof pg.DatabaseError || error instanceof StoreUnavailable)
          await client.query('rollback');
        throw error;
      }
    });
  }

  async #send<Result>(
    kind: StatementPool,
    deadline: number,
    send: (client: pg.PoolClient, left: number) => Promise<Result>,
  ): Promise<Result> {
    const { statement, notice, retryPause } = this.#times;
    for (let attempt = 1; ; attempt += 1) {
      const { client, pools } = await this.#connect(kind, deadline);
      const left = Math.min(statement[kind], deadline - notice - performance.now());
      try {
        const result = await send(client, left);
        client.release();
        return result;
      } catch (error) {
        if (error instanceof StoreUnavailable) {
          client.release();
          throw error;
        }
        const code = error instanceof pg.DatabaseError ? (error.code ?? '') : undefined;
        if (code === undefined) (client as unknown as Client).reset();
        client.release(code === undefined || HOST_FAILURE.test(code));
        const rest = Math.random() * retryPause * 2 ** attempt;
        const isTakenBack = SERIALIZATION_FAILURES.has(code ?? '');
        if (!isTakenBack || attempt === MAX_ATTEMPTS || performance.now() + rest >= deadline) {
          // When a connection breaks or stops answering, all others to that server are in doubt.
          const isLost = code === undefined;
          if (isLost && !this.#broken.has(client)) this.#lost += 1;
          if (isLost && pools === this.#pools) this.#moveTo(pools.address);
          const isLate = code === CANCELED && left < statement[kind];
          throw isLate ? new StoreUnavailable(error, 'late') : this.unavailable(error);
        }
        this.#retries += 1;
        await pause(rest);
      }
    }
  }

  /**
   * Waits for a connection. An attempt that timed out is retried: nothing was sent.
   * @throws StoreUnavailable
   */
  async #connect(
    kind: StatementPool,
    deadline: number,
  ): Promise<{ readonly client: pg.PoolClient; readonly pools: Pools }> {
    const { connect } = this.#times;
    for (await this.#answered; performance.now() < deadline; await this.#answered) {
      const began = performance.now();
      const pools = this.#pools;
      const moved = Promise.withResolvers<undefined>();
      this.#onMove.add(moved.resolve);
      const connecting = pools[kind].connect();
      try {
        const client = await Promise.race([connecting, moved.promise]);
        if (client !== undefined && performance.now() < deadline) return { client, pools };
        // The pools were replaced: a call that waits for a connection of the old ones would never get it.
        connecting.then(
          (late) => late.release(),
          () => {},
        );
      } catch (error) {
        const unavailable = this.unavailable(error);
        const now = performance.now();
        if (now - began < connect || deadline - now < connect) throw unavailable;
      } finally {
        this.#onMove.delete(moved.resolve);
      }
    }
    throw OVERDUE;
  }

  /**
   * A connection for a list. The caller releases it.
   * @throws StoreUnavailable
   */
  async takeForList(): Promise<pg.PoolClient> {
    try {
      await this.#answered;
      return await this.#pools.lists.connect();
    } catch (error) {
      throw this.unavailable(error);
    }
  }

  /** The error for callers. Starts a search if it may mean that another host has taken over. */
  unavailable(error: unknown): StoreUnavailable {
    const code = error instanceof pg.DatabaseError ? (error.code ?? '') : undefined;
    if (code === undefined || HOST_FAILURE.test(code)) this.#search();
    return new StoreUnavailable(error, code !== undefined && REFUSED.test(code) ? 'refused' : 'failure');
  }

  /** @param standby the pool to a standby, if there is one. */
  metrics(standby: pg.Pool | undefined): Metric[] {
    const { address: _, ...pools } = this.#pools;
    const all = Object.entries({ ...pools, ...(standby && { standby }) });
    const ofPools = (metricName: MetricName, count: (pool: pg.Pool) => number) => {
      return metric(metricName, Object.fromEntries(all.map(([name, pool]) => [name, count(pool)])));
    };
    return [
      ofPools('postgres_connections', ({ totalCount }) => totalCount),
      ofPools('postgres_idle_connections', ({ idleCount }) => idleCount),
      ofPools('postgres_waiting_statements', ({ waitingCount }) => waitingCount),
      metric('postgres_connections_lost_total', this.#lost),
      metric('postgres_host_changes_total', this.#hostChanges),
      metric('postgres_retries_total', this.#retries),
    ];
  }

  async close(): Promise<void> {
    this.#closed = true;
    await end(this.#pools);
  }

  #open(address: Primary): Pools {
    const { connect, wait, idle, lifetime, query, statement, listLock } = this.#times;
    const shared = {
      connectionString: address.host.connectionString,
      ssl: address.tls,
      types: NUMBERS,
      keepAlive: true,
      connectionTimeoutMillis: wait,
      idleTimeoutMillis: idle,
      maxLifetimeSeconds: lifetime / 1000,
      application_name: APPLICATION,
      Client: Client.bind(undefined, connect),
    };
    const timed = (kind: StatementPool, max: number, min = 0) => {
      const config = { ...shared, max, min, query_timeout: query };
      return this.#openPool(config, 'statement_timeout', statement[kind]);
    };
    return {
      address,
      // One stays open, since its end shows that another host may have taken over.
      batches: timed('batches', BATCH_CONNECTIONS, this.#hosts.all.length > 1 ? 1 : 0),
      held: timed('held', HELD_CONNECTIONS),
      searches: timed('searches', SEARCH_CONNECTIONS),
      counts: timed('counts', COUNT_CONNECTIONS),
      lists: this.#openPool({ ...shared, max: LIST_CONNECTIONS }, 'lock_timeout', listLock),
    };
  }

  #openPool(config: pg.PoolConfig, limit: Limit, milliseconds: number): pg.Pool {
    const { connect } = this.#times;
    const onConnect = async (client: pg.ClientBase) => {
      if (this.#hosts.watched) await refuseReadOnly(client, connect);
      await limitConnection(client, limit, milliseconds, connect);
    };
    const pool = new pg.Pool({ ...config, onConnect });
    pool.on('connect', (client) => {
      // The statement in progress, if any, reports it.
      client.on('error', () => {
        this.#broken.add(client);
        this.#lost += 1;
      });
    });
    // An idle connection broke; the pool drops it and opens another when needed.
    pool.on('error', () => this.#search());
    return pool;
  }

  /** New calls take new connections; calls that have one keep it until they are done. */
  #moveTo(address: Primary): void {
    if (this.#closed) return;
    void end(this.#pools);
    this.#pools = this.#open(address);
    for (const leave of this.#onMove) leave(undefined);
  }

  /**
   * Asks the other hosts from time to time. A primary may live on beside a promoted standby: nothing has to fail there, but
   * books that are read are old, and books that are written are lost.
   */
  async #watch(): Promise<void> {
    const { connect, watchPause } = this.#times;
    while (!this.#closed) {
      await pause(watchPause * (0.5 + Math.random()), undefined, { ref: false }); // with jitter
      const { host } = this.#pools.address;
      const others = this.#hosts.all.filter((other) => other !== host);
      const other = await findWritable(others, connect, this.#times).catch(() => undefined);
      if (other !== undefined && isNewer(other, { timeline: this.#timeline })) void this.#search();
    }
  }

  /** Searches, in the background, for the host that now takes writes. One search at a time. */
  async #search(): Promise<void> {
    if (this.#searching || this.#hosts.all.length === 1) return;
    this.#searching = true;
    const { connect, searchPause } = this.#times;
    const first = Promise.withResolvers<void>();
    this.#answered = Promise.race([first.promise, pause(connect, undefined, { ref: false })]);
    const { host } = this.#pools.address;
    const others = this.#hosts.all.filter((other) => other !== host);
    let found: Primary | undefined;
    while (found === undefined && !this.#closed) {
      // All hosts are asked repeatedly, so that a silent one does not keep another one from being found.
      const rest = pause(searchPause * (0.5 + Math.random()), undefined, { ref: false }); // with jitter
      const answer = findWritable([host, ...others], connect, this.#times).then(
        (address) => {
          found ??= address;
        },
        () => {
          first.resolve();
          return rest;
        },
      );
      await Promise.race([answer, rest]);
    }
    if (found !== undefined) this.#timeline = found.timeline;
    if (found !== undefined && found.host !== host) {
      this.#hostChanges += 1;
      this.#moveTo(found);
    }
    first.resolve();
    this.#searching = false;
  }
}

async function end({ address: _, ...pools }: Pools): Promise<void> {
  await Promise.all(Object.values(pools).map((pool) => pool.end()));
}
