// Owns: the hosts of a PostgreSQL URL, and finding the one that takes writes.
// https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-MULTIPLE-HOSTS
// Refuses: a URL that asks for a read-only host, since this service writes.

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { type Tls, takeTlsAttempts } from './tls.ts';
import { urlsOfHosts } from './url.ts';

/** Milliseconds to connect to a host, and to wait for a lock on its table. */
const START_CONNECT_TIMEOUT = 3000;

/** Milliseconds by which a host named earlier may answer later than another one and still be preferred. */
const PREFERENCE = 200;

/** The driver's error message for a server without TLS. */
const NO_TLS = 'The server does not support SSL connections';

const PARAMETER = 'target_session_attrs';
const ACCEPTED = ['any', 'read-write', 'primary'];

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

/** A host that takes writes, and its TLS settings. */
export interface Address {
  readonly host: Host;
  readonly tls: Tls;
}

/**
 * @param dbUrl a `postgres:` URL; `sslmode` and its related parameters have the meaning of PostgreSQL's own tools.
 * @throws Error when a parameter is invalid or its file cannot be read.
 */
export function readHosts(dbUrl: string): Hosts {
  const urls = urlsOfHosts(dbUrl).map((url) => new URL(url));
  const wanted = urls[0]?.searchParams.get(PARAMETER) ?? (urls.length > 1 ? 'read-write' : 'any');
  if (!ACCEPTED.includes(wanted)) {
    throw new Error(
      `${PARAMETER} must be one of ${ACCEPTED.join(', ')}, not "${wanted}": this service writes`,
    );
  }
  const all = urls.map((url) => {
    url.searchParams.delete(PARAMETER); // the driver does not support it
    const tlsAttempts = takeTlsAttempts(url);
    return { name: `${url.hostname}:${url.port || 5432}`, connectionString: url.href, tlsAttempts };
  });
  return { all, watched: wanted !== 'any' };
}

/**
 * Asks all hosts at once. Of several that take writes, the first in their order is used unless it is slow to answer: a
 * host that has disappeared silently delays nothing.
 * @param timeout milliseconds to connect to a host.
 * @throws Error with the reason of each host when none takes writes.
 */
export async function findWritable(hosts: readonly Host[], timeout: number): Promise<Address> {
  const found: (Address | undefined)[] = hosts.map(() => undefined);
  const answers = hosts.map(async (host, position) => {
    found[position] = await ask(host, timeout);
  });
  try {
    await Promise.any(answers);
  } catch (error) {
    const reasons = (error as AggregateError).errors.map(reasonOf);
    const [only] = reasons;
    const named = hosts.map(({ name }, position) => `${name}: ${reasons[position]}`);
    throw new Error(hosts.length === 1 ? only : named.join('; '));
  }
  await Promise.race([Promise.allSettled(answers), pause(PREFERENCE, undefined, { ref: false })]);
  return found.find((address) => address !== undefined) as Address;
}

/**
 * Connects to the host that takes writes, to prepare it, or for import, export and copy.
 * @throws Error with the reason of each host when none takes writes.
 */
export async function connectToWritable(hosts: Hosts): Promise<{ address: Address; client: pg.Client }> {
  const address = await findWritable(hosts.all, START_CONNECT_TIMEOUT);
  const client = new pg.Client({
    connectionString: address.host.connectionString,
    ssl: address.tls,
    connectionTimeoutMillis: START_CONNECT_TIMEOUT,
    lock_timeout: START_CONNECT_TIMEOUT,
    keepAlive: true,
    application_name: 'book-catalogue',
  });
  client.on('error', () => {}); // the statement in progress, if any, reports it
  await client.connect();
  return { address, client };
}

/** @throws Error when the server takes no writes, or does not answer. */
export async function refuseReadOnly(client: pg.ClientBase, timeout: number): Promise<void> {
  const question = { text: 'show transaction_read_only', query_timeout: timeout };
  const { rows } = await client.query<{ transaction_read_only: string }>(question);
  if (rows[0]?.transaction_read_only !== 'off') throw new Error('it is read-only');
}

async function ask(host: Host, timeout: number): Promise<Address> {
  const deadline = performance.now() + timeout;
  const reasons = new Set<string>();
  for (const tls of host.tlsAttempts) {
    const client = new pg.Client({
      connectionString: host.connectionString,
      ssl: tls,
      connectionTimeoutMillis: deadline - performance.now(),
    });
    client.on('error', () => {}); // the statement in progress, if any, reports it
    try {
      await client.connect();
    } catch (error) {
      reasons.add(reasonOf(error));
      if (performance.now() >= deadline) break; // it does not answer, and would not without TLS either
      continue;
    }
    try {
      await refuseReadOnly(client, timeout);
    } finally {
      void client.end();
    }
    return { host, tls };
  }
  // A missing TLS is not the reason where TLS is optional.
  if (reasons.size > 1) reasons.delete(NO_TLS);
  throw new Error([...reasons].join('; '));
}

/** The reason in words; the failed attempts for the addresses of one host arrive as a group. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
