// Owns: the connections to PostgreSQL: in pools, all to the one host that takes writes, and to another one
// as soon as that does. What goes wrong with a statement becomes StoreUnavailable here, and only here.

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { StoreUnavailable } from '../../books/store.ts';
import { counter, gauge, type Metric } from '../../metrics/prometheus.ts';
import { type Address, findWritable, type Hosts, refuseReadOnly } from './hosts.ts';

// Milliseconds. A statement ends before the call that waits for it does (4.5 s); the driver gives a
// server that has gone silent a little longer than the server gives itself. An attempt to connect that is
// lost on the way must not hold up the calls after it for long once the server is back.
const CONNECT_TIMEOUT = 1500;
const WAIT_TIMEOUT = 3000;
const STATEMENT_TIMEOUT = 4000;
export const QUERY_TIMEOUT = 4300;
const IDLE_TIMEOUT = 30_000;
const SEARCH_PAUSE = 200;

/** Seconds after which a connection is made anew, so that connections follow what stands before the server. */
const LIFETIME = 1800;

// Connections, by what they may be kept waiting for, so that none waits for a kind slower than its own:
// batches for nobody, held books for somebody else's lock, lists for their readers.
const BATCH_CONNECTIONS = 6;
const HELD_CONNECTIONS = 4;
export const LIST_CONNECTIONS = 8;

/** A transaction the server took back whole; the statement may simply be sent again. */
const SERIALIZATION_FAILURES = new Set(['40001', '40P01']);
const MAX_ATTEMPTS = 5;

/** Of the server's own errors, those of a host that goes away or takes no writes any more. */
const HOST_FAILURE = /^(08|57P|25006)/;

/** 64-bit integers arrive as text; all of ours are within ±(2^53−1), as the table's checks ensure. */
export const NUMBERS = {
  getTypeParser(type: number, format?: 'text' | 'binary') {
    return type === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(type, format);
  },
} as pg.CustomTypesConfig;

/** Nobody waits for the answer any more, so that nothing is sent. */
export const OVERDUE = new StoreUnavailable('no connection in time', 'late');

/** The pool's own time for a connection includes the wait for a free one. */
class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super({ ...config, connectionTimeoutMillis: CONNECT_TIMEOUT });
  }
}

interface Pools {
  readonly address: Address;
  readonly batches: pg.Pool;
  readonly held: pg.Pool;
  readonly lists: pg.Pool;
}

export class Connections {
  readonly #hosts: Hosts;
  #pools: Pools;
  #searching = false;
  #closed = false;
  #retries = 0;
  #hostChanges = 0;
  /** Connections that broke or fell silent; those that broke, to tell them apart. */
  #lost = 0;
  readonly #broken = new WeakSet<pg.ClientBase>();
  /** Called when the pools move, by calls that wait for a connection. */
  readonly #onMove = new Set<(value: undefined) => void>();

  /** @param address where the connections go at first. */
  constructor(hosts: Hosts, address: Address) {
    this.#hosts = hosts;
    this.#pools = this.#open(address);
  }

  /**
   * Sends one statement. Nothing is sent again whose outcome is unknown, and nothing is sent after the deadline.
   * @throws StoreUnavailable
   */
  async query<Row extends pg.QueryResultRow>(
    kind: 'batches' | 'held',
    text: string,
    values: unknown[],
    deadline: number,
  ): Promise<pg.QueryResult<Row>> {
    for (let attempt = 1; ; attempt += 1) {
      const { client, pools } = await this.#connect(kind, deadline);
      try {
        const result = await client.query<Row>(text, values);
        client.release();
        return result;
      } catch (error) {
        const code = error instanceof pg.DatabaseError ? (error.code ?? '') : undefined;
        client.release(code === undefined || HOST_FAILURE.test(code));
        const rest = Math.random() * 10 * 2 ** attempt; // milliseconds, with full jitter
        const isTakenBack = SERIALIZATION_FAILURES.has(code ?? '');
        if (!isTakenBack || attempt === MAX_ATTEMPTS || performance.now() + rest >= deadline) {
          // A connection that broke or fell silent puts all others to that server in doubt.
          const isLost = code === undefined;
          if (isLost && !this.#broken.has(client)) this.#lost += 1;
          if (isLost && pools === this.#pools) this.#moveTo(pools.address);
          throw this.unavailable(error);
        }
        this.#retries += 1;
        await pause(rest);
      }
    }
  }

  /**
   * A connection, as soon as one is free. An attempt that ran into its time limit is repeated: nothing was sent.
   * @throws StoreUnavailable
   */
  async #connect(
    kind: 'batches' | 'held',
    deadline: number,
  ): Promise<{ readonly client: pg.PoolClient; readonly pools: Pools }> {
    while (performance.now() < deadline) {
      const began = performance.now();
      const pools = this.#pools;
      const moved = Promise.withResolvers<undefined>();
      this.#onMove.add(moved.resolve);
      const connecting = pools[kind].connect();
      try {
        const client = await Promise.race([connecting, moved.promise]);
        if (client !== undefined && performance.now() < deadline) return { client, pools };
        // The pools have moved: those that wait for a connection of the old ones would wait in vain.
        connecting.then(
          (late) => late.release(),
          () => {},
        );
      } catch (error) {
        const unavailable = this.unavailable(error);
        const now = performance.now();
        if (now - began < CONNECT_TIMEOUT || deadline - now < CONNECT_TIMEOUT) throw unavailable;
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
      return await this.#pools.lists.connect();
    } catch (error) {
      throw this.unavailable(error);
    }
  }

  /** What callers are told of an error, which may also mean that another host has taken over. */
  unavailable(error: unknown): StoreUnavailable {
    const code = error instanceof pg.DatabaseError ? (error.code ?? '') : undefined;
    if (code === undefined || HOST_FAILURE.test(code)) this.#search();
    return new StoreUnavailable(error);
  }

  metrics(): Metric[] {
    const { address: _, ...pools } = this.#pools;
    const ofPools = (count: (pool: pg.Pool) => number) => {
      return Object.entries(pools).map(([name, pool]) => ({ labels: { pool: name }, value: count(pool) }));
    };
    const waiting = 'Statements that wait for a connection.';
    const lost = 'Connections that broke or fell silent.';
    const hostChanges = 'How often another host had taken over and was followed.';
    const retries = 'Statements sent again since the server had taken their transaction back.';
    return [
      gauge(
        'book_catalogue_postgres_connections',
        'Connections, open or being opened.',
        ofPools(({ totalCount }) => totalCount),
      ),
      gauge(
        'book_catalogue_postgres_idle_connections',
        'What nobody uses of them.',
        ofPools(({ idleCount }) => idleCount),
      ),
      gauge(
        'book_catalogue_postgres_waiting_statements',
        waiting,
        ofPools(({ waitingCount }) => waitingCount),
      ),
      counter('book_catalogue_postgres_connections_lost_total', lost, this.#lost),
      counter('book_catalogue_postgres_host_changes_total', hostChanges, this.#hostChanges),
      counter('book_catalogue_postgres_retries_total', retries, this.#retries),
    ];
  }

  async close(): Promise<void> {
    this.#closed = true;
    await end(this.#pools);
  }

  #open(address: Address): Pools {
    const shared = {
      connectionString: address.host.connectionString,
      ssl: address.tls,
      types: NUMBERS,
      keepAlive: true,
      connectionTimeoutMillis: WAIT_TIMEOUT,
      idleTimeoutMillis: IDLE_TIMEOUT,
      maxLifetimeSeconds: LIFETIME,
      lock_timeout: STATEMENT_TIMEOUT,
      application_name: 'book-catalogue',
      Client,
      ...(this.#hosts.watched && {
        onConnect: (client: pg.ClientBase) => refuseReadOnly(client, CONNECT_TIMEOUT),
      }),
    };
    const timed = { ...shared, statement_timeout: STATEMENT_TIMEOUT, query_timeout: QUERY_TIMEOUT };
    return {
      address,
      batches: this.#openPool({ ...timed, max: BATCH_CONNECTIONS }),
      held: this.#openPool({ ...timed, max: HELD_CONNECTIONS }),
      lists: this.#openPool({ ...shared, max: LIST_CONNECTIONS }),
    };
  }

  #openPool(config: pg.PoolConfig): pg.Pool {
    const pool = new pg.Pool(config);
    pool.on('connect', (client) => {
      // The statement under way, if any, reports it.
      client.on('error', () => {
        this.#broken.add(client);
        this.#lost += 1;
      });
    });
    // An idle connection broke; the pool drops it and makes another when asked.
    pool.on('error', () => this.#search());
    return pool;
  }

  /** New calls take new connections; those that have one keep it until they are done with it. */
  #moveTo(address: Address): void {
    if (this.#closed) return;
    void end(this.#pools);
    this.#pools = this.#open(address);
    for (const leave of this.#onMove) leave(undefined);
  }

  /** Looks, in the background, for the host that takes writes by now. One search at a time. */
  async #search(): Promise<void> {
    if (this.#searching || this.#hosts.all.length === 1) return;
    this.#searching = true;
    const { host } = this.#pools.address;
    const others = this.#hosts.all.filter((other) => other !== host);
    let found: Address | undefined;
    while (found === undefined && !this.#closed) {
      // All are asked again and again, so that a host that is silent keeps no other one from being found.
      const rest = pause(SEARCH_PAUSE * (0.5 + Math.random()), undefined, { ref: false }); // with jitter
      const answer = findWritable([host, ...others], CONNECT_TIMEOUT).then(
        (address) => {
          found ??= address;
        },
        () => rest,
      );
      await Promise.race([answer, rest]);
    }
    if (found !== undefined && found.host !== host) {
      this.#hostChanges += 1;
      this.#moveTo(found);
    }
    this.#searching = false;
  }
}

async function end({ batches, held, lists }: Pools): Promise<void> {
  await Promise.all([batches.end(), held.end(), lists.end()]);
}
