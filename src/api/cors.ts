// Owns: which pages may call the service from a browser (rule 32): what the Fetch standard calls CORS.
// Refuses to change anything for whoever else asks: without an allowed Origin an answer is what it would be
// without this file. There are no cookies, so that no page can act for anybody but the token that it has.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Answer, HeaderList } from '../http/answer.ts';

/** What a client needs of an answer's head; a page's script sees no other header unless it is named. */
const EXPOSED_HEADERS = 'location, x-request-id, retry-after, www-authenticate, allow';

const ACCEPTED_HEADERS = 'authorization, content-type, x-request-id';

/** Seconds that a browser may remember a permission: as long as any browser does. */
const PERMISSION_LASTS = '7200';

/** The headers that let the page a request comes from read the answer; undefined when it may not. */
export type AllowOrigin = (headers: IncomingHttpHeaders) => HeaderList | undefined;

/**
 * @param origins as browsers spell them; `null`, which every sandboxed page is, is none.
 * @param docsPort where the page of the operations listener is: it calls the host that it came from.
 */
export function allowOrigins(origins: readonly string[], docsPort: number | undefined): AllowOrigin {
  const named = new Set(origins);
  const isDocsPage = (origin: string, host = '') =>
    docsPort !== undefined && origin === originAt(host.replace(/:\d*$/, ''), docsPort);
  return ({ origin, host }) => {
    if (origin === undefined || !(named.has(origin) || isDocsPage(origin, host))) return undefined;
    return [
      'access-control-allow-origin',
      origin,
      'access-control-expose-headers',
      EXPOSED_HEADERS,
      'vary',
      'Origin',
    ];
  };
}

/** Whether a browser asks beforehand for what a page may send. It asks without a token. */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

/** The answer to that, for a page that is allowed. */
export function permission(methods: readonly string[]): Answer {
  return {
    status: 204,
    headers: [
      'access-control-allow-methods',
      methods.join(', '),
      'access-control-allow-headers',
      ACCEPTED_HEADERS,
      'access-control-max-age',
      PERMISSION_LASTS,
    ],
  };
}

function originAt(hostname: string, port: number): string {
  return port === 80 ? `http://${hostname}` : `http://${hostname}:${port}`;
}
