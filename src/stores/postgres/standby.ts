// Owns: reading from a standby of PostgreSQL (DB_READ_URL): lists, searches and exports, which load a primary most: finding a
// usable one, its connections, and leaving it when it fails. `fence.ts` has how a snapshot of it is had.
// Does not: make a request wait for a standby that is late, down, silent, or not one: then the primary is read.

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { Batches } from '../../books/batches.ts';
import { metric } from '../../metrics/descriptions.ts';
import type { Metric } from '../../metrics/prometheus.ts';
import { OperatorError } from '../../operator-error.ts';
import type { Times } from '../../times.ts';
import { type Connections, HOST_FAILURE, LIST_CONNECTIONS } from './connections.ts';
import {
  ask,
  assertMarked,
  before,
  FENCE,
  type Fence,
  openSnapshot,
  type Primary,
  replayed,
} from './fence.ts';
import { type Address, APPLICATION, connectTo, type Host, NUMBERS } from './hosts.ts';
import { limitLocks, withTimeout } from './limits.ts';

/** Lists, the short search in progress, the long one, and the question whether the standby still answers. */
const CONNECTIONS = LIST_CONNECTIONS + 3;

/** Requests that come together ask the primary once. */
const FENCES = { size: 512, weight: 1, inFlight: 1 };

/** A wrong password, no such database, a missing right: an operator has to change something. */
const WRONG = /^(28|3D000|42501)/;

// Of the server, the database, and what its role may do.
const IDENTITY = `
  select system_identifier::text as cluster, pg_database.oid::text as database, current_user as role,
    pg_has_role('pg_read_all_stats', 'usage') as "seesStream",
    (select coalesce(bool_and(has_table_privilege(to_regclass(name), 'select')), true)
      from unnest(array['books', 'book_index', 'book_requests']) as name) as "mayRead"
  from pg_control_system(), pg_database where datname = current_database()`;

/** The hosts of DB_READ_URL. */
export interface Standbys {
  readonly hosts: readonly Host[];
  /** The URL as it may be shown. */
  readonly shownUrl: string;
}

interface Identity extends pg.QueryResultRow {
  readonly cluster: string;
  readonly database: string;
  readonly role: string;
  readonly seesStream: boolean;
  readonly mayRead: boolean;
}

/** What may be read from a standby, and what became of it. */
type Reading = 'list' | 'search';
/** Read from the standby; or from the primary: there was no usable standby, it was late, or it failed. */
type Outcome = 'standby' | 'away' | 'late' | 'failed';

/** The standby in use. */
interface Current {
  readonly pool: pg.Pool;
  /** The question in progress whether it still answers. */
  heartbeat: Promise<unknown> | undefined;
}

/** An operator has to change something before this standby can be read. */
class WrongStandby extends Error {}

export class Standby {
  readonly #standbys: Standbys;
  readonly #times: Times;
  /** Of the primary. */
  readonly #identity: Identity;
  readonly #primary: Primary;
  /** Undefined while none is usable; then one is searched for. */
  #current: Current | undefined;
  #isSearching = false;
  #closed = false;
  readonly #outcomes = {
    list: { standby: 0, away: 0, late: 0, failed: 0 },
    search: { standby: 0, away: 0, late: 0, failed: 0 },
  };

  private constructor(standbys: Standbys, identity: Identity, connections: Connections, times: Times) {
    this.#standbys = standbys;
    this.#times = times;
    const askPrimary = async (calls: readonly boolean[], deadline: number) => {
      const values = [calls.includes(true)];
      const { rows } = await connections.query<Fence>('batches', FENCE, values, deadline);
      return calls.map(() => rows[0] as Fence);
    };
    const fences = new Batches<boolean, Fence>(askPrimary, FENCES, times.books);
    const { connect } = times.standby;
    this.#identity = identity;
    this.#primary = {
      run: (text, values) => connections.query('batches', text, values, performance.now() + connect),
      fence: (isFlushed) => fences.call(isFlushed),
    };
  }

  /**
   * @param client connected to the primary.
   * @throws OperatorError when a host cannot be read until somebody changes something. One that is down is no reason.
   */
  static async open(
    standbys: Standbys,
    client: pg.Client,
    connections: Connections,
    times: Times,
  ): Promise<Standby> {
    const identity = await identityOf(client, times.standby);
    const standby = new Standby(standbys, identity, connections, times);
    await refusingWrong(standbys, times.standby, () => standby.#search());
    if (standby.#current === undefined) void standby.#searchOn();
    return standby;
  }

  /**
   * Reads from the standby.
   * @param settings SQL for the transaction; may be empty.
   * @param work gets a connection with a snapshot. If it resolves, it has to commit and release it, then or later.
   * @returns undefined if the primary is to be read instead.
   */
  async read<Result>(
    reading: Reading,
    settings: string,
    work: (client: pg.PoolClient) => Promise<Result>,
  ): Promise<Result | undefined> {
    const current = this.#current;
    if (current === undefined) return this.#count(reading, 'away');
    const { standby: times } = this.#times;
    const end = performance.now() + times.snapshot;
    let client: pg.PoolClient | undefined;
    let isOpen = false;
    try {
      const fence = await before(end, this.#primary.fence(true));
      client = await connect(current.pool, end);
      await openSnapshot(client, fence, this.#primary, settings, end, times);
      isOpen = true;
      const result = await whileItAnswers(current, times, work(client));
      this.#count(reading, 'standby');
      return result;
    } catch (error) {
      client?.release(true);
      // The server ended a statement, as it does where replaying collides with reading: the standby stays.
      const isEnded = error instanceof pg.DatabaseError && !HOST_FAILURE.test(error.code ?? '');
      if (!isEnded) this.#leave(current);
      return this.#count(reading, isOpen || performance.now() < end ? 'failed' : 'late');
    }
  }

  /** Its connections, for metrics. */
  get pool(): pg.Pool | undefined {
    return this.#current?.pool;
  }

  metrics(): Metric[] {
    return [
      metric('postgres_standby_reads_total', this.#outcomes),
      metric('postgres_standby_usable', this.#current === undefined ? 0 : 1),
    ];
  }

  async close(): Promise<void> {
    this.#closed = true;
    const current = this.#current;
    this.#current = undefined;
    await current?.pool.end();
  }

  #count(reading: Reading, outcome: Outcome): undefined {
    this.#outcomes[reading][outcome] += 1;
  }

  /** Searches until there is a usable standby, with a pause after each search, also for one that comes and goes. */
  async #searchOn(): Promise<void> {
    if (this.#isSearching) return;
    this.#isSearching = true;
    while (this.#current === undefined && !this.#closed) {
      await this.#search().catch(() => {}); // the primary is away
      await pause(this.#times.standby.searchPause * (0.5 + Math.random()), undefined, { ref: false });
    }
    this.#isSearching = false;
  }

  /** Uses the first host, in their order, that is usable. */
  async #search(): Promise<void> {
    const address = await findUsable(this.#standbys.hosts, this.#primary, this.#identity, this.#times);
    if (address !== undefined && !this.#closed) this.#current = this.#use(address);
  }

  #use({ host, tls }: Address): Current {
    const { snapshot } = this.#times.standby;
    const { idle, lifetime } = this.#times.postgres;
    const pool = new pg.Pool({
      connectionString: host.connectionString,
      ssl: tls,
      types: NUMBERS,
      keepAlive: true,
      connectionTimeoutMillis: snapshot,
      idleTimeoutMillis: idle,
      maxLifetimeSeconds: lifetime / 1000,
      application_name: APPLICATION,
      max: CONNECTIONS,
    });
    const current: Current = { pool, heartbeat: undefined };
    pool.on('connect', (client) => client.on('error', () => {})); // the statement in progress, if any, reports it
    pool.on('error', () => this.#leave(current)); // an idle connection broke
    return current;
  }

  /** Nothing new is read from it. */
  #leave(standby: Current): void {
    if (this.#current !== standby) return;
    this.#current = undefined;
    void standby.pool.end();
    void this.#searchOn();
  }
}

/**
 * Connects to a standby, for an export.
 * @param primaryClient connected to the primary.
 * @returns a connection with a snapshot; undefined if the primary is to be read instead.
 * @throws OperatorError as `Standby.open`.
 */
export async function connectToSnapshot(
  standbys: Standbys,
  primaryClient: pg.Client,
  times: Times,
): Promise<pg.Client | undefined> {
  const { connect, snapshot } = times.standby;
  const identity = await identityOf(primaryClient, times.standby);
  const primary: Primary = {
    run: (text, values) => ask(primaryClient, text, values, connect),
    fence: async (isFlushed) => (await ask<Fence>(primaryClient, FENCE, [isFlushed], connect)) as Fence,
  };
  const find = () => findUsable(standbys.hosts, primary, identity, times);
  const address = await refusingWrong(standbys, times.standby, find);
  if (address === undefined) return undefined;
  let client: pg.Client | undefined;
  try {
    const host = { ...address.host, tlsAttempts: [address.tls] };
    ({ client } = await connectTo(host, connect, times.postgres));
    const settings = limitLocks(times.postgres.listLock);
    const fence = await primary.fence(true);
    await openSnapshot(client, fence, primary, settings, performance.now() + snapshot, times.standby);
    return client;
  } catch {
    await client?.end();
    return undefined;
  }
}

/**
 * Asks all hosts at once.
 * @returns the first one, in their order, that is usable.
 * @throws WrongStandby with the reasons, if hosts are wrong.
 */
async function findUsable(
  hosts: readonly Host[],
  primary: Primary,
  identity: Identity,
  times: Times,
): Promise<Address | undefined> {
  const answers = await Promise.allSettled(hosts.map((host) => assertUsable(host, primary, identity, times)));
  const wrong = answers.flatMap((answer, position) => {
    if (answer.status === 'fulfilled' || !(answer.reason instanceof WrongStandby)) return [];
    return hosts.length === 1 ? answer.reason.message : `${hosts[position]?.name}: ${answer.reason.message}`;
  });
  if (wrong.length > 0) throw new WrongStandby(wrong.join('; '));
  return answers.find((answer) => answer.status === 'fulfilled')?.value;
}

/** @throws Error when the host is not usable at the moment; WrongStandby when it will not be. */
async function assertUsable(
  host: Host,
  primary: Primary,
  identity: Identity,
  { standby: times, postgres }: Times,
): Promise<Address> {
  const { client, tls } = await connectTo(host, times.connect, postgres).catch(({ message, cause }) => {
    const isWrong = cause instanceof pg.DatabaseError && WRONG.test(cause.code ?? '');
    throw isWrong ? new WrongStandby(message) : new Error(message);
  });
  try {
    const { cluster, database, role, seesStream, mayRead } = await identityOf(client, times);
    if (cluster !== identity.cluster) throw new WrongStandby('it is no standby of the server of DB_URL');
    if (database !== identity.database) throw new WrongStandby('its database is not that of DB_URL');
    if (!seesStream) {
      throw new WrongStandby(`its role does not see the timeline: grant pg_read_all_stats to "${role}"`);
    }
    if (!mayRead)
      throw new WrongStandby(`"${role}" has no right to select from books, book_index and book_requests`);
    const fence = await primary.fence(true);
    await replayed(client, fence, performance.now() + times.snapshot, times);
    await assertMarked(client, primary, times);
    return { host, tls };
  } finally {
    void client.end();
  }
}

/** What is wrong may become right soon, when the standby has replayed it. */
async function refusingWrong<Result>(
  standbys: Standbys,
  { start, startPause }: Times['standby'],
  work: () => Promise<Result>,
): Promise<Result> {
  const end = performance.now() + start;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof WrongStandby)) throw error;
      if (performance.now() >= end) {
        throw new OperatorError(`DB_READ_URL: ${standbys.shownUrl} cannot be read: ${error.message}.`);
      }
    }
    await pause(startPause);
  }
}

/** A connection of a pool, which is put back if it comes too late. */
async function connect(pool: pg.Pool, end: number): Promise<pg.PoolClient> {
  const connecting = pool.connect();
  try {
    return await before(end, connecting);
  } catch (error) {
    connecting.then(
      (client) => client.release(),
      () => {},
    );
    throw error;
  }
}

/** Waits for work on a standby for as long as it answers other questions: a statement may take long. */
async function whileItAnswers<Result>(
  standby: Current,
  { heartbeat, heartbeatPause }: Times['standby'],
  work: Promise<Result>,
): Promise<Result> {
  const done = new AbortController();
  const silence = async () => {
    for (;;) {
      await pause(heartbeatPause, undefined, { signal: done.signal });
      standby.heartbeat ??= standby.pool.query(withTimeout('select', [], heartbeat)).finally(() => {
        standby.heartbeat = undefined;
      });
      await standby.heartbeat;
    }
  };
  try {
    return await Promise.race([work, silence()]);
  } finally {
    done.abort();
  }
}

async function identityOf(client: pg.Client, { connect }: Times['standby']): Promise<Identity> {
  return (await ask<Identity>(client, IDENTITY, [], connect)) as Identity;
}
