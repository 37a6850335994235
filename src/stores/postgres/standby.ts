// Owns: reading from a standby of PostgreSQL (DB_READ_URL): lists, searches and exports, which load a primary most. The standby has
// all books that the primary showed when the request came, since it has replayed the primary's WAL up to that point. It may have
// more, which the primary shows milliseconds later.
// Does not: make a request wait longer than half a second for that. If the standby is late, silent or away, the primary is read.

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { OperatorError } from '../../operator-error.ts';
import type { Times } from '../../times.ts';
import { connectTo, type Host } from './hosts.ts';
import { PARTIAL } from './limits.ts';
import { codeOf, queryOn } from './query.ts';

// A transaction that commits asynchronously, as those of the index do, is shown before its WAL is on disk, and a standby gets only
// WAL that is there. So, if some is missing there, an empty message is written, whose commit waits for the disk (and for nothing
// else). Positions of two timelines or servers are not compared.
const FENCE = `
  select ('x' || left(pg_walfile_name(written), 8))::bit(32)::int as timeline,
    case when flushed < written then pg_logical_emit_message(true, 'book-catalogue', '') else written end as position,
    system_identifier || ' ' || current_database() as database
  from (select pg_current_wal_flush_lsn() as flushed, pg_current_wal_insert_lsn() as written offset 0) as log,
    pg_control_system(), set_config('synchronous_commit', 'local', true)`;

// The stream has the timeline of the replayed WAL, or a newer one. A promoted server has no stream.
const LOOK = `
  select received_tli = $1 and status = 'streaming' as follows, pg_last_wal_replay_lsn() >= $2 as "hasReplayed",
    not exists (${PARTIAL}) as "isWhole",
    system_identifier || ' ' || current_database() = $3 and pg_has_role('pg_read_all_stats', 'usage') as "isRight"
  from pg_control_system() left join pg_stat_wal_receiver on true`;

/** Errors that an operator has to correct: a wrong password, no such database, a missing right. */
const WRONG = /^(28|3D000|42501)/;

const NO_STANDBY = 'it is no standby of the database of DB_URL, or its role lacks pg_read_all_stats';
const HIDDEN = 'row level security hides books from its role';

const LATE = new Error('the standby is late');

/** The hosts of DB_READ_URL. */
export interface Standbys {
  readonly hosts: readonly Host[];
  /** The URL as it may be shown. */
  readonly shownUrl: string;
}

type State = Readonly<Record<'follows' | 'hasReplayed' | 'isRight' | 'isWhole', boolean>>;

/** Sends a statement to the primary. */
type AskPrimary = (text: string, deadline: number) => Promise<readonly object[]>;

/** @param isBroken whether the connection cannot be used any more. */
export type Release = (isBroken: boolean) => void;

export class Standby {
  readonly #standbys: Standbys;
  readonly #askPrimary: AskPrimary;
  readonly #times: Times;
  /** Unused connections to the host in use. Each failure replaces the array, and makes it the turn of the next host. */
  #idle: pg.Client[] = [];
  #failures = 0;
  /** When one request may try the next host. Undefined while the host in use answers. */
  #restUntil: number | undefined = 0;
  readonly #reads = { standby: 0, primary: 0 };

  constructor(standbys: Standbys, askPrimary: AskPrimary, times: Times) {
    this.#standbys = standbys;
    this.#askPrimary = askPrimary;
    this.#times = times;
  }

  /**
   * Connects to the first usable host, for an export, or to find out at the start whether somebody has to change something.
   * @returns undefined if the primary is to be read instead.
   * @throws OperatorError if a host cannot be read until somebody changes something; not if it is away.
   */
  async connect(): Promise<pg.Client | undefined> {
    for (const _ of this.#standbys.hosts) {
      try {
        return await this.#follow(this.#times.standby.connect);
      } catch (error) {
        if (error instanceof OperatorError) throw error;
        this.#failures += 1;
      }
    }
    return undefined;
  }

  /**
   * Reads from a standby.
   * @param work gets a connection. If it resolves, it releases the connection, then or later.
   * @returns undefined if the primary is to be read instead.
   */
  async read<Result>(
    work: (client: pg.Client, release: Release) => Promise<Result>,
  ): Promise<Result | undefined> {
    const { snapshot, rest } = this.#times.standby;
    if (this.#restUntil !== undefined) {
      if (performance.now() < this.#restUntil) return this.#count('primary');
      this.#restUntil = performance.now() + rest; // for all others
    }
    const idle = this.#idle;
    let client: pg.Client | undefined;
    try {
      const used = await this.#follow(snapshot);
      client = used;
      const result = await work(used, (isBroken) => {
        if (isBroken || idle !== this.#idle) void used.end();
        else idle.push(used);
      });
      this.#restUntil = undefined;
      this.#count('standby');
      return result;
    } catch {
      void client?.end();
      if (idle === this.#idle) this.#leave(performance.now() + rest);
      return this.#count('primary');
    }
  }

  counts() {
    return {
      postgres_standby_reads_total: this.#reads,
      postgres_standby_usable: this.#restUntil === undefined ? 1 : 0,
    };
  }

  close(): void {
    this.#leave(Number.POSITIVE_INFINITY);
  }

  #leave(restUntil: number): void {
    for (const client of this.#idle) void client.end();
    this.#idle = [];
    this.#failures += 1;
    this.#restUntil = restUntil;
  }

  #count(read: 'standby' | 'primary'): undefined {
    this.#reads[read] += 1;
  }

  /** @returns a connection to a host that has everything that the primary shows. @throws Error when that takes longer. */
  async #follow(milliseconds: number): Promise<pg.Client> {
    const end = performance.now() + milliseconds;
    const late = pause(milliseconds, undefined, { ref: false }).then(() => Promise.reject(LATE));
    const [asked] = await Promise.race([this.#askPrimary(FENCE, end), late]); // it may wait for a connection
    const fence = Object.values(asked as object);
    const client = this.#idle.pop() ?? (await this.#connect(end));
    try {
      for (let time = end - performance.now(); time > 0; time = end - performance.now()) {
        const [state] = await queryOn(client, time)<State>(LOOK, fence);
        if (!state?.isRight) throw this.#wrong(NO_STANDBY);
        if (!state.isWhole) throw this.#wrong(HIDDEN);
        if (!state.follows) throw new Error('it does not follow the primary');
        if (state.hasReplayed) return client;
        await pause(this.#times.standby.lookPause);
      }
      throw LATE;
    } catch (error) {
      void client.end();
      throw error;
    }
  }

  async #connect(end: number): Promise<pg.Client> {
    const { hosts } = this.#standbys;
    const host = hosts[this.#failures % hosts.length] as Host;
    try {
      return (await connectTo(host, end - performance.now(), this.#times.postgres)).client;
    } catch (error) {
      const { message, cause } = error as Error;
      throw WRONG.test(codeOf(cause) ?? '') ? this.#wrong(message) : error;
    }
  }

  #wrong(reason: string): OperatorError {
    return new OperatorError(`DB_READ_URL: ${this.#standbys.shownUrl} cannot be read: ${reason}.`);
  }
}
