// Owns: the meaning of `sslmode` in a PostgreSQL URL, the same as in PostgreSQL's own tools.
// https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION

import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';

/** TLS settings of one connection attempt; false is plain text. */
export type Tls = ConnectionOptions | false;

const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
export type SslMode = (typeof SSL_MODES)[number];

export const TLS_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const;

/**
 * Removes the TLS parameters from a URL and turns them into the attempts to make, in order. The first one that the
 * server accepts is used from then on.
 * @throws Error when a parameter is invalid or its file cannot be read.
 */
export function takeTlsAttempts(url: URL): readonly Tls[] {
  const [given, rootCertificate, certificate, key] = TLS_PARAMETERS.map((name) => {
    const value = url.searchParams.get(name);
    url.searchParams.delete(name);
    return value ?? undefined;
  });
  const mode = given ?? (rootCertificate === 'system' ? 'verify-full' : 'prefer');
  if (!isSslMode(mode)) throw new Error(`sslmode must be one of ${SSL_MODES.join(', ')}, not "${mode}"`);
  if (rootCertificate === 'system' && mode !== 'verify-full') {
    throw new Error('sslrootcert=system needs sslmode=verify-full');
  }

  const encrypted: ConnectionOptions = {
    host: url.hostname, // the name that the certificate must have; by default, Node would require "localhost"
    ...(certificate !== undefined && { cert: readFileSync(certificate) }),
    ...(key !== undefined && { key: readFileSync(key) }),
    ...(rootCertificate !== undefined &&
      rootCertificate !== 'system' && { ca: readFileSync(rootCertificate) }),
  };
  const anyServer: ConnectionOptions = { ...encrypted, rejectUnauthorized: false };
  const anyName: ConnectionOptions = { ...encrypted, checkServerIdentity: () => undefined };
  switch (mode) {
    case 'disable':
      return [false];
    case 'allow':
      return [false, anyServer];
    case 'prefer':
      return [anyServer, false];
    case 'require': // with a root certificate, it means verify-ca
      return [rootCertificate === undefined ? anyServer : anyName];
    case 'verify-ca':
      return [anyName];
    case 'verify-full':
      return [encrypted];
  }
}

function isSslMode(text: string): text is SslMode {
  return (SSL_MODES as readonly string[]).includes(text);
}
