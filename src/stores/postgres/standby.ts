// Owns: reading from a standby of PostgreSQL (DB_READ_URL): lists, searches and exports, which load a primary most.
// A standby is read in a snapshot of which both of these hold, so that no client ever sees the past:
// 1. It has everything that the primary showed when the request came: the standby had replayed the primary's log up to
//    there before the snapshot was taken. Positions of two timelines are not compared.
// 2. It has nothing that the primary does not show yet: the primary is asked again after the snapshot was taken. A standby
//    may show a change earlier than the primary, for example while that one waits for another standby. If clients saw
//    it, the next read of the book would go back in time.
// Refuses: to make a request wait for a standby that is late, away, silent, or not one: then the primary is read.

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { Batches } from '../../books/batches.ts';
import { counter, gauge, type Metric } from '../../metrics/prometheus.ts';
import { OperatorError } from '../../operator-error.ts';
import { type Connections, HOST_FAILURE, LIST_CONNECTIONS } from './connections.ts';
import { type Address, APPLICATION, connectTo, type Host, NUMBERS } from './hosts.ts';

// Milliseconds: that a request waits for a snapshot; between two looks whether the standby has replayed enough; between
// two questions whether it still answers, and for the answer.
const LIMIT = 500;
const LOOK_PAUSE = 2;
const SIGN_PAUSE = 100;
const SIGN_TIMEOUT = 400;

// Milliseconds: to connect to a host and to ask what it is, while no request waits for it; until the next search for a
// standby, with jitter; and in which the start tries again what may be wrong only because the standby has not replayed a
// new role or database yet.
const CONNECT_TIMEOUT = 1500;
const SEARCH_PAUSE = 1000;
const START_TIME = 2000;
const START_PAUSE = 100;

/** Milliseconds until an unused connection is closed. */
const IDLE_TIMEOUT = 30_000;

/** Seconds after which a connection is replaced, so that changes in front of the server take effect. */
const LIFETIME = 1800;

/** Lists, the search in progress, and the question whether the standby still answers. */
const CONNECTIONS = LIST_CONNECTIONS + 2;

/** Requests that come together ask the primary once. */
const FENCES = { size: 512, weight: 1, inFlight: 1 };

/** Begins the transaction of a snapshot, which takes it with its first statement. */
const BEGIN = 'begin isolation level repeatable read read only';

/** A wrong password, no such database, a missing right: an operator has to change something. */
const WRONG = /^(28|3D000|42501)/;

// What a transaction that commits asynchronously has written is shown before it is in the log on disk, and a standby gets
// only what is there. So, if anything is missing there, an empty message is written, whose commit waits for the disk (and
// for nothing else). The position is that of all that is shown, since what commits writes its log first.
const FENCE = `
  select left(pg_walfile_name(written), 8) as timeline, pg_current_snapshot()::text as snapshot,
    case when $1 and flushed < written then pg_logical_emit_message(true, 'book-catalogue', '') else written end as position,
    set_config('synchronous_commit', 'local', true)
  from (select pg_current_wal_flush_lsn() as flushed, pg_current_wal_insert_lsn() as written offset 0) as log`;

// The timeline of the stream is that of what is replayed, or a newer one. Without a stream there is no row.
const FOLLOWS = `pg_is_in_recovery() and status = 'streaming' and received_tli = $1`;

const STATE = `
  select ${FOLLOWS} as follows, pg_last_wal_replay_lsn() >= $2::pg_lsn as "hasReplayed",
    pg_postmaster_start_time()::text as server
  from pg_stat_wal_receiver`;

// It is asked within the snapshot, so its answer is about a later moment than that of the snapshot. A pooler may have sent
// the question before to another server, which is noticed by the time of its start. A standby does not say which
// transactions were in progress in a snapshot, only which are: of those that the primary does not show yet, none may
// have been committed here.
const COMPARISON = `
  select ${FOLLOWS} and pg_postmaster_start_time()::text = $2 as follows,
    pg_snapshot_xmax(seen) <= pg_snapshot_xmax(shown) and not exists (
      select from pg_snapshot_xip(shown) as id
      where case when id < pg_snapshot_xmax(seen) then pg_xact_status(id) = 'committed' end
    ) as "isShown"
  from pg_stat_wal_receiver, pg_current_snapshot() as seen, cast($3 as pg_snapshot) as shown`;

// A standby of a copy of the primary has the same identity and timeline, but not what has just been written to the primary.
// No request has this key, since it has a space. (What is left of it when this process dies is removed as a key is.)
const WRITE_MARK = `insert into book_requests (key, fingerprint, ids) values ('standby ' || $1, '', '{}')`;
const HAS_MARK = `select exists (select from book_requests where key = 'standby ' || $1) as "isThere"`;
const REMOVE_MARK = `delete from book_requests where key = 'standby ' || $1`;

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

/** What the primary shows at a moment. */
interface Fence {
  readonly timeline: number;
  /** In its log; what is shown was written before. */
  readonly position: string;
  /** Which of its transactions have ended. */
  readonly snapshot: string;
}

interface FenceRow extends pg.QueryResultRow {
  readonly timeline: string;
  readonly position: string;
  readonly snapshot: string;
}

interface State extends pg.QueryResultRow {
  readonly follows: boolean;
  readonly hasReplayed: boolean;
  readonly server: string;
}

interface Identity extends pg.QueryResultRow {
  readonly cluster: string;
  readonly database: string;
  readonly role: string;
  readonly seesStream: boolean;
  readonly mayRead: boolean;
}

interface Primary {
  readonly identity: Identity;
  /** Runs a statement. */
  run(text: string, values: unknown[]): Promise<unknown>;
  /**
   * Asks what it shows.
   * @param isFlushed whether all of that has to be on its way to the standbys.
   */
  fence(isFlushed: boolean): Promise<Fence>;
}

/** What may be read from a standby, and what became of it. */
type Reading = 'list' | 'search';
/** Read from the standby; or from the primary: there was no usable standby, it was late, or it failed. */
type Outcome = 'standby' | 'away' | 'late' | 'failed';

/** The standby in use. */
interface Current {
  readonly pool: pg.Pool;
  /** The question in progress whether it still answers. */
  sign: Promise<unknown> | undefined;
}

/** An operator has to change something before this standby can be read. */
class WrongStandby extends Error {}

const LATE = new Error('the standby is late');

export class Standby {
  readonly #standbys: Standbys;
  readonly #primary: Primary;
  /** Undefined while none is usable; then one is searched for. */
  #current: Current | undefined;
  #closed = false;
  readonly #outcomes = {
    list: { standby: 0, away: 0, late: 0, failed: 0 },
    search: { standby: 0, away: 0, late: 0, failed: 0 },
  };

  private constructor(standbys: Standbys, identity: Identity, connections: Connections) {
    this.#standbys = standbys;
    const fences = new Batches<boolean, Fence>(async (calls, deadline) => {
      const values = [calls.includes(true)];
      const { rows } = await connections.query<FenceRow>('batches', FENCE, values, deadline);
      const fence = fenceOf(rows[0]);
      return calls.map(() => fence);
    }, FENCES);
    this.#primary = {
      identity,
      run: (text, values) => connections.query('batches', text, values, performance.now() + CONNECT_TIMEOUT),
      fence: (isFlushed) => fences.call(isFlushed),
    };
  }

  /**
   * @param client connected to the primary.
   * @throws OperatorError when a host cannot be read until somebody changes something. One that is down is no reason.
   */
  static async open(standbys: Standbys, client: pg.Client, connections: Connections): Promise<Standby> {
    const standby = new Standby(standbys, await identityOf(client), connections);
    await refusingWrong(standbys, () => standby.#search());
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
    const end = performance.now() + LIMIT;
    let client: pg.PoolClient | undefined;
    let isOpen = false;
    try {
      const fence = await before(end, this.#primary.fence(true));
      client = await connect(current.pool, end);
      await openSnapshot(client, fence, this.#primary, settings, end);
      isOpen = true;
      const result = await whileItAnswers(current, work(client));
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
    const reads =
      'Lists and searches: read from a standby; or from the primary, since no standby was usable (away), or it was late, or it failed.';
    const samples = Object.entries(this.#outcomes).flatMap(([operation, counts]) => {
      return Object.entries(counts).map(([outcome, value]) => ({ labels: { operation, outcome }, value }));
    });
    const usable = 'Whether there is a standby to read from.';
    return [
      counter('book_catalogue_postgres_standby_reads_total', reads, samples),
      gauge('book_catalogue_postgres_standby_usable', usable, this.#current === undefined ? 0 : 1),
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

  /** Searches until there is a usable standby. */
  async #searchOn(): Promise<void> {
    while (this.#current === undefined && !this.#closed) {
      await this.#search().catch(() => {}); // the primary is away
      await pause(SEARCH_PAUSE * (0.5 + Math.random()), undefined, { ref: false });
    }
  }

  /** Uses the first host, in their order, that is usable. */
  async #search(): Promise<void> {
    const address = await findUsable(this.#standbys.hosts, this.#primary);
    if (address !== undefined && !this.#closed) this.#current = this.#use(address);
  }

  #use({ host, tls }: Address): Current {
    const pool = new pg.Pool({
      connectionString: host.connectionString,
      ssl: tls,
      types: NUMBERS,
      keepAlive: true,
      connectionTimeoutMillis: LIMIT,
      idleTimeoutMillis: IDLE_TIMEOUT,
      maxLifetimeSeconds: LIFETIME,
      application_name: APPLICATION,
      max: CONNECTIONS,
    });
    const current: Current = { pool, sign: undefined };
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
): Promise<pg.Client | undefined> {
  const primary: Primary = {
    identity: await identityOf(primaryClient),
    run: (text, values) => ask(primaryClient, text, values, CONNECT_TIMEOUT),
    fence: async (isFlushed) => fenceOf(await ask(primaryClient, FENCE, [isFlushed], CONNECT_TIMEOUT)),
  };
  const address = await refusingWrong(standbys, () => findUsable(standbys.hosts, primary));
  if (address === undefined) return undefined;
  let client: pg.Client | undefined;
  try {
    ({ client } = await connectTo({ ...address.host, tlsAttempts: [address.tls] }, CONNECT_TIMEOUT));
    await openSnapshot(client, await primary.fence(true), primary, '', performance.now() + LIMIT);
    return client;
  } catch {
    await client?.end();
    return undefined;
  }
}

/**
 * Opens a transaction with a snapshot that has what the primary showed at the fence, and nothing that it does not show.
 * @throws Error when that is impossible, or not done in time.
 */
async function openSnapshot(
  client: pg.ClientBase,
  fence: Fence,
  primary: Primary,
  settings: string,
  end: number,
): Promise<void> {
  const server = await replayed(client, fence, end);
  await client.query(withTimeout(`${BEGIN}; ${settings}`, [], left(end)));
  for (let shown = fence; ; shown = await before(end, primary.fence(false))) {
    const values = [shown.timeline, server, shown.snapshot];
    const state = await ask<{ follows: boolean; isShown: boolean }>(client, COMPARISON, values, left(end));
    if (!state?.follows) throw new Error('it does not follow the primary any more');
    if (state.isShown) return;
    if (shown !== fence) await pause(LOOK_PAUSE);
  }
}

/**
 * Waits until a standby has replayed the log up to the fence. Until then it holds no snapshot, which might hinder it.
 * @returns which server it is.
 */
async function replayed(client: pg.ClientBase, { timeline, position }: Fence, end: number): Promise<string> {
  for (;;) {
    const state = await ask<State>(client, STATE, [timeline, position], left(end));
    if (!state?.follows) throw new Error('it does not follow the primary');
    if (state.hasReplayed) return state.server;
    await pause(LOOK_PAUSE);
  }
}

/**
 * Asks all hosts at once.
 * @returns the first one, in their order, that is usable.
 * @throws WrongStandby with the reasons, if hosts are wrong.
 */
async function findUsable(hosts: readonly Host[], primary: Primary): Promise<Address | undefined> {
  const answers = await Promise.allSettled(hosts.map((host) => assertUsable(host, primary)));
  const wrong = answers.flatMap((answer, position) => {
    if (answer.status === 'fulfilled' || !(answer.reason instanceof WrongStandby)) return [];
    return hosts.length === 1 ? answer.reason.message : `${hosts[position]?.name}: ${answer.reason.message}`;
  });
  if (wrong.length > 0) throw new WrongStandby(wrong.join('; '));
  return answers.find((answer) => answer.status === 'fulfilled')?.value;
}

/** @throws Error when the host is not usable at the moment; WrongStandby when it will not be. */
async function assertUsable(host: Host, primary: Primary): Promise<Address> {
  const { client, tls } = await connectTo(host, CONNECT_TIMEOUT).catch(({ message, cause }) => {
    const isWrong = cause instanceof pg.DatabaseError && WRONG.test(cause.code ?? '');
    throw isWrong ? new WrongStandby(message) : new Error(message);
  });
  try {
    const { cluster, database, role, seesStream, mayRead } = await identityOf(client);
    if (cluster !== primary.identity.cluster)
      throw new WrongStandby('it is no standby of the server of DB_URL');
    if (database !== primary.identity.database) throw new WrongStandby('its database is not that of DB_URL');
    if (!seesStream) {
      throw new WrongStandby(`its role does not see the timeline: grant pg_read_all_stats to "${role}"`);
    }
    if (!mayRead)
      throw new WrongStandby(`"${role}" has no right to select from books, book_index and book_requests`);
    const fence = await primary.fence(true);
    await replayed(client, fence, performance.now() + LIMIT);
    await assertMarked(client, primary);
    return { host, tls };
  } finally {
    void client.end();
  }
}

/** @throws Error when the standby does not show what is written to the primary now. */
async function assertMarked(client: pg.Client, primary: Primary): Promise<void> {
  const mark = randomUUID();
  await primary.run(WRITE_MARK, [mark]);
  const end = performance.now() + LIMIT;
  try {
    const look = () => ask<{ isThere: boolean }>(client, HAS_MARK, [mark], left(end));
    while ((await look())?.isThere !== true) await pause(LOOK_PAUSE);
  } finally {
    await primary.run(REMOVE_MARK, [mark]);
  }
}

/** What is wrong may become right soon, when the standby has replayed it. */
async function refusingWrong<Result>(standbys: Standbys, work: () => Promise<Result>): Promise<Result> {
  const end = performance.now() + START_TIME;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof WrongStandby)) throw error;
      if (performance.now() >= end) {
        throw new OperatorError(`DB_READ_URL: ${standbys.shownUrl} cannot be read: ${error.message}.`);
      }
    }
    await pause(START_PAUSE);
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
async function whileItAnswers<Result>(standby: Current, work: Promise<Result>): Promise<Result> {
  const done = new AbortController();
  const silence = async () => {
    for (;;) {
      await pause(SIGN_PAUSE, undefined, { signal: done.signal });
      standby.sign ??= standby.pool.query(withTimeout('select', [], SIGN_TIMEOUT)).finally(() => {
        standby.sign = undefined;
      });
      await standby.sign;
    }
  };
  try {
    return await Promise.race([work, silence()]);
  } finally {
    done.abort();
  }
}

async function before<Result>(end: number, work: Promise<Result>): Promise<Result> {
  const done = new AbortController();
  const time = Math.max(0, end - performance.now());
  const late = pause(time, undefined, { signal: done.signal }).then(() => Promise.reject(LATE));
  try {
    return await Promise.race([work, late]);
  } finally {
    done.abort();
  }
}

/** Milliseconds. @throws Error when none is left. */
function left(end: number): number {
  const milliseconds = end - performance.now();
  if (milliseconds <= 0) throw LATE;
  return milliseconds;
}

async function identityOf(client: pg.Client): Promise<Identity> {
  return (await ask<Identity>(client, IDENTITY, [], CONNECT_TIMEOUT)) as Identity;
}

function fenceOf(row: FenceRow | undefined): Fence {
  const { timeline, position, snapshot } = row as FenceRow;
  return { timeline: Number.parseInt(timeline, 16), position, snapshot };
}

/**
 * @param timeout milliseconds; the connection cannot be used any more after a longer time.
 * @returns the first row.
 */
async function ask<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  text: string,
  values: unknown[],
  timeout: number,
): Promise<Row | undefined> {
  return (await client.query<Row>(withTimeout(text, values, timeout))).rows[0];
}

/** With an option that the driver's own description lacks. */
function withTimeout(text: string, values: unknown[], timeout: number): pg.QueryConfig {
  const question = { text, values, query_timeout: timeout };
  return question;
}
