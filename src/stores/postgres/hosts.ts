// Owns: the hosts that a PostgreSQL URL names, and finding the one among them that takes writes.
// https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-MULTIPLE-HOSTS
// Refuses what asks for a host that cannot write: this service writes.

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { type Tls, takeTlsAttempts } from './tls.ts';
import { urlsOfHosts } from './url.ts';

/** Milliseconds in which a host has let us in, and a lock of its table been had. */
const START_CONNECT_TIMEOUT = 3000;

/** Milliseconds that a host named earlier may answer later than one that takes writes, and still be taken. */
const PREFERENCE = 200;

/** What the driver says of a server without TLS. */
const NO_TLS = 'The server does not support SSL connections';

const PARAMETER = 'target_session_attrs';
const ACCEPTED = ['any', 'read-write', 'primary'];

export interface Host {
  /** `host:port`, which may be shown. */
  readonly name: string;
  readonly connectionString: string;
  /** In this order, the first one that the host agrees to is the one to stay with. */
  readonly tlsAttempts: readonly Tls[];
}

export interface Hosts {
  readonly all: readonly Host[];
  /** Every new connection is asked whether it takes writes, since its host may have changed its role. */
  readonly watched: boolean;
}

/** A host that takes writes, and how to talk to it. */
export interface Address {
  readonly host: Host;
  readonly tls: Tls;
}

/**
 * @param dbUrl a `postgres:` URL; `sslmode` and its companions as PostgreSQL's own tools take them.
 * @throws Error when a parameter cannot be meant or its file cannot be read.
 */
export function readHosts(dbUrl: string): Hosts {
  const urls = urlsOfHosts(dbUrl).map((url) => new URL(url));
  const wanted = urls[0]?.searchParams.get(PARAMETER) ?? (urls.length > 1 ? 'read-write' : 'any');
  if (!ACCEPTED.includes(wanted)) {
    throw new Error(
      `${PARAMETER} must be one of ${ACCEPTED.join(', ')}, since this service writes, not "${wanted}"`,
    );
  }
  const all = urls.map((url) => {
    url.searchParams.delete(PARAMETER); // the driver does not know it
    const tlsAttempts = takeTlsAttempts(url);
    return { name: `${url.hostname}:${url.port || 5432}`, connectionString: url.href, tlsAttempts };
  });
  return { all, watched: wanted !== 'any' };
}

/**
 * Asks all hosts at once. Of several that take writes it is the first in their order, unless that one is
 * slow to answer: a host that has gone without a word holds nobody up.
 * @param timeout milliseconds in which a host has let us in.
 * @throws Error with the reason of each host when there is none.
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
 * Connects to the host that takes writes, to prepare it or to move books in large numbers.
 * @throws Error with the reason of each host when there is none.
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
  client.on('error', () => {}); // the statement under way, if any, reports it
  await client.connect();
  return { address, client };
}

/** @throws when the connection is to a server that takes no writes, or falls silent. */
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
    client.on('error', () => {}); // the statement under way, if any, reports it
    try {
      await client.connect();
    } catch (error) {
      reasons.add(reasonOf(error));
      if (performance.now() >= deadline) break; // it is silent, and would be without TLS too
      continue;
    }
    try {
      await refuseReadOnly(client, timeout);
    } finally {
      void client.end();
    }
    return { host, tls };
  }
  // That it has no TLS is no reason where it need not have it.
  if (reasons.size > 1) reasons.delete(NO_TLS);
  throw new Error([...reasons].join('; '));
}

/** The reason in words; one failed attempt for each of a host's addresses arrives as a group. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
