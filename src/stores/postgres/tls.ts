// Owns: the meaning of `sslmode` in a PostgreSQL URL, the same as in PostgreSQL's own tools.
// https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION

import type { ConnectionOptions } from 'node:tls';
import { parse } from 'pg-connection-string';

/** TLS settings of one connection attempt; false is plain text. */
export type Tls = ConnectionOptions | false;

const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'];

export const TLS_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const;

/**
 * Removes the TLS parameters from a URL and turns them into the attempts to make, in order. The first one that the
 * server accepts is used from then on.
 * @throws Error when a parameter is invalid or its file cannot be read.
 */
export function takeTlsAttempts({ href, searchParams }: URL): readonly Tls[] {
  const url = new URL(href);
  const root = searchParams.get('sslrootcert');
  const mode = searchParams.get('sslmode') ?? (root === 'system' ? 'verify-full' : 'prefer');
  if (!SSL_MODES.includes(mode))
    throw new Error(`sslmode must be one of ${SSL_MODES.join(', ')}, not "${mode}"`);
  if (root === 'system' && mode !== 'verify-full')
    throw new Error('sslrootcert=system needs sslmode=verify-full');
  if (root === null && mode === 'verify-ca') throw new Error('sslmode=verify-ca needs sslrootcert');
  url.searchParams.set('sslmode', mode);
  if (root === 'system') url.searchParams.delete('sslrootcert'); // the public authorities of Node.js
  const tls = parse(url.href, { useLibpqCompat: true }).ssl as Tls;
  for (const name of TLS_PARAMETERS) searchParams.delete(name);
  return mode === 'prefer' ? [tls, false] : [tls];
}
