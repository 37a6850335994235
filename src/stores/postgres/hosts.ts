// Owns: the hosts of a PostgreSQL URL, and finding the one that takes writes.
// https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-MULTIPLE-HOSTS
// Does not: accept a URL that asks for a read-only host, since this service writes.

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { reasonOf } from '../../error-words.ts';
import type { Times } from '../../times.ts';
import type { Query } from '../query.ts';
import { codeOf, queryOn } from './query.ts';
import { TLS_PARAMETERS, type Tls, takeTlsAttempts } from './tls.ts';
import { urlsOfHosts } from './url.ts';

/** The driver's error message for a server without TLS. */
const NO_TLS = 'The server does not support SSL connections';

/** 64-bit integers arrive as text; the service's are within ±(2^53−1), as the table's checks ensure. */
export const NUMBERS = {
  getTypeParser(type: number, format?: 'text' | 'binary') {
    return type === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(type, format);
  },
} as pg.CustomTypesConfig;

const READ_ONLY = 'it is read-only';

/** The server's error for a database that does not exist. */
const NO_DATABASE = '3D000';

const PARAMETER = 'target_session_attrs';
/** What a URL may ask of its hosts, by what they are for. */
const ACCEPTED = {
  writing: ['any', 'read-write', 'primary'],
  reading: ['any', 'read-only', 'standby', 'prefer-standby'],
};

/** Those that the driver gets. It has others, which would override what this service sets. */
const PASSED_ON = ['application_name', 'options'];

export interface Host {
  /** `host:port`, which may be shown. */
  readonly name: string;
  readonly connectionString: string;
  /** In this order; the first one that the host accepts is used from then on. */
  readonly tlsAttempts: readonly Tls[];
}

export interface Hosts {
  readonly all: readonly Host[];
  /** Whether each new connection is checked for being writable, since its host may have changed its role. */
  readonly watched: boolean;
}

/** A host that takes writes, with the TLS settings that it accepts. */
export interface Primary extends Host {
  /** Of a server and its standbys; empty where there are no timelines, as in some relatives of PostgreSQL. */
  readonly system: string;
  /** Hexadecimal, of 8 digits; grows with each promotion. */
  readonly timeline: string;
}

/**
 * @param dbUrl a `postgres:` URL; `sslmode` and its related parameters have the meaning of PostgreSQL's own tools.
 * @param purpose what the hosts are for.
 * @throws Error when a parameter is invalid or its file cannot be read.
 */
export function readHosts(dbUrl: string, purpose: keyof typeof ACCEPTED = 'writing'): Hosts {
  const urls = urlsOfHosts(dbUrl).map((url) => new URL(url));
  const wanted = urls[0]?.searchParams.get(PARAMETER) ?? undefined;
  const accepted = ACCEPTED[purpose];
  if (wanted !== undefined && !accepted.includes(wanted))
    throw new Error(`${PARAMETER} must be one of ${accepted.join(', ')}, not "${wanted}"`);
  const all = urls.map((url) => {
    url.searchParams.delete(PARAMETER); // the driver does not support it
    const tlsAttempts = takeTlsAttempts(url);
    const other = [...url.searchParams.keys()].find((name) => !PASSED_ON.includes(name));
    if (other !== undefined) {
      const known = [...TLS_PARAMETERS, PARAMETER, ...PASSED_ON].join(', ');
      throw new Error(`its parameter ${other} is not one of ${known}`);
    }
    return { name: `${url.hostname}:${url.port || 5432}`, connectionString: url.href, tlsAttempts };
  });
  return { all, watched: wanted === undefined ? all.length > 1 : wanted !== 'any' };
}

// The first digits of the name of a WAL file. Unlike pg_control_checkpoint(), it changes at the moment of a promotion.
const TIMELINE = `
  select system_identifier::text as system, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline
  from pg_control_system()`;

/**
 * Asks all hosts at once. Of several that take writes, the one of the newest timeline is used, or the first in their
 * order, unless it is slow to answer: a host that has disappeared silently delays nothing. (A primary may live on beside
 * a promoted standby, and still say that it takes writes: then no process of this service stays there.)
 * @param timeout milliseconds to connect to a host.
 * @throws Error with the reason of each host when none takes writes.
 */
export async function findWritable(
  hosts: readonly Host[],
  timeout: number,
  times: Times['postgres'],
): Promise<Primary> {
  const found: Primary[] = [];
  const answers = hosts.map(async (host, position) => {
    found[position] = await ask(host, timeout, times);
  });
  try {
    await Promise.any(answers);
  } catch (error) {
    const reasons = (error as AggregateError).errors.map(wordsOf);
    const named = hosts.map(({ name }, position) => `${name}: ${reasons[position]}`);
    throw new Error(hosts.length === 1 ? reasons[0] : named.join('; '));
  }
  await Promise.race([Promise.allSettled(answers), pause(times.preference, undefined, { ref: false })]);
  return found.filter(() => true).reduce((one, other) => (isNewer(other, one) ? other : one));
}

/** Whether a host was promoted after another one that also takes writes. */
export function isNewer(one: Primary, other: Primary): boolean {
  return one.system === other.system && one.timeline > other.timeline;
}

/**
 * Connects to the host that takes writes, to prepare it, or for a command that writes.
 * @throws Error with the reason of each host when none takes writes.
 */
export async function connectToWritable(
  hosts: Hosts,
  times: Times['postgres'],
): Promise<{ address: Primary; client: pg.Client }> {
  const timeout = times.connectAtStart;
  const address = await findWritable(hosts.all, timeout, times);
  return { address, client: (await connectTo(address, timeout, times)).client };
}

/**
 * Connects to read: to the host that takes writes or, if none does, to one of those that answer, unless the URL demands writes.
 * @throws Error with the reason of each host when no one answers.
 */
export async function connectToReadable(
  hosts: Hosts,
  times: Times['postgres'],
): ReturnType<typeof connectToWritable> {
  try {
    return await connectToWritable(hosts, times);
  } catch (error) {
    if (hosts.watched || !(error as Error).message.includes(READ_ONLY)) throw error;
    for (const host of hosts.all) {
      const found = await connectTo(host, times.connectAtStart, times).catch(() => undefined);
      if (found !== undefined)
        return { address: { ...found, system: '', timeline: '' }, client: found.client };
    }
    throw error;
  }
}

/** @throws Error when a host was promoted after the one in use: what is committed there now would be lost. */
export async function assertNewest(
  { all, watched }: Hosts,
  used: Primary,
  times: Times['postgres'],
): Promise<void> {
  if (all.length === 1 && !watched) return;
  const found = await findWritable(all, times.connectAtStart, times);
  if (isNewer(found, used)) {
    throw new Error(`${found.name} has been promoted meanwhile: the next run uses it`);
  }
}

/** @throws Error when the server takes no writes, or does not answer. */
export async function refuseReadOnly(query: Query): Promise<void> {
  const [found] = await query<{ transaction_read_only: string }>('show transaction_read_only');
  if (found?.transaction_read_only !== 'off') throw new Error(READ_ONLY);
}

async function ask(host: Host, timeout: number, times: Times['postgres']): Promise<Primary> {
  const { client, ...found } = await connectTo(host, timeout, times);
  const query = queryOn(client, timeout);
  try {
    await refuseReadOnly(query);
    const [timeline] = await query(TIMELINE).catch((error) => {
      if (codeOf(error) !== undefined) return [];
      throw error;
    });
    return { ...found, system: '', timeline: '', ...timeline };
  } finally {
    void client.end();
  }
}

/**
 * Connects to a host by the first TLS settings that it accepts.
 * @param timeout milliseconds.
 * @returns the host with these settings, and the connection.
 * @throws Error with the reason, the first one if several attempts fail; its cause is that attempt's error.
 */
export async function connectTo(
  host: Host,
  timeout: number,
  times: Times['postgres'],
): Promise<Host & { readonly client: pg.Client }> {
  const deadline = performance.now() + timeout;
  let cause: unknown;
  for (const tls of host.tlsAttempts) {
    const left = deadline - performance.now();
    if (left <= 0) break; // it does not answer, and would not without TLS either
    const accepting = { ...host, tlsAttempts: [tls] };
    const client = new pg.Client(settingsFor(accepting, left, times));
    client.on('error', () => {}); // the statement in progress, if any, reports it
    try {
      await client.connect();
      return { ...accepting, client };
    } catch (error) {
      if (cause === undefined || reasonOf(cause) === NO_TLS) cause = error;
    }
  }
  throw new Error(wordsOf(cause), { cause });
}

/**
 * The driver's settings for a host, by its first TLS settings.
 * @param timeout milliseconds to connect.
 */
export function settingsFor(
  { connectionString, tlsAttempts: [ssl] }: Host,
  timeout: number,
  { keepAliveDelay }: Times['postgres'],
): pg.ClientConfig {
  return {
    connectionString,
    ssl,
    types: NUMBERS,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelay,
    connectionTimeoutMillis: timeout,
    application_name: 'book-catalogue',
  };
}

/** The reason in words; the failed attempts for the addresses of one host arrive as a group. */
function wordsOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return wordsOf(error.errors[0]);
  const reason = reasonOf(error);
  if (/client password must be|empty password/.test(reason))
    return 'the server asks for a password, but the URL has none';
  if (reason === 'timeout expired') return 'no answer in time';
  return (error as { code?: string }).code === NO_DATABASE ? `${reason}: create it first` : reason;
}
