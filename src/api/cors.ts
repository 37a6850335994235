// Owns: which pages may call the service from a browser (rule 32): CORS in the Fetch standard, and which requests other pages
// have sent. None of these has a session (rule S3), so a page can only act with a token that it has, or log in.
// Does not: change any other answer: without an allowed Origin an answer is the same as without this file.

import type { Answer, HeaderList } from '../http/answer.ts';
import type { RequestHeaders } from '../http/head.ts';
import type { Exchange } from './exchange.ts';

/** RequestHeaders that a client needs. A page's script can read them only because they are named here. */
const EXPOSED_HEADERS =
  'location, etag, link, x-total-count, x-unindexed-books, preference-applied, idempotent-replayed, x-request-id, retry-after, www-authenticate, allow';

const ACCEPTED_HEADERS =
  'authorization, content-type, idempotency-key, if-match, if-none-match, prefer, x-request-id';

/** Seconds that a browser may cache the answer to a preflight: the most that Chromium accepts. */
const PERMISSION_LASTS = '7200';

/** The headers that let the page of a request read the answer; undefined if it may not. */
export type AllowOrigin = (headers: RequestHeaders) => HeaderList | undefined;

/**
 * @param origins as browsers spell them, without `null`, the origin of every sandboxed page.
 * @param docsPort port of the operations listener, whose page calls the host that it came from.
 */
export function allowOrigins(origins: readonly string[], docsPort: number | undefined): AllowOrigin {
  const named = new Set(origins);
  const isDocsPage = (origin: string, host = '') =>
    docsPort !== undefined &&
    origin === `http://${host.replace(/:\d*$/, '')}${docsPort === 80 ? '' : `:${docsPort}`}`;
  return ({ origin, host }) => {
    if (origin === undefined || !(named.has(origin) || isDocsPage(origin, host))) return undefined;
    const exposed = ['access-control-expose-headers', EXPOSED_HEADERS];
    return ['access-control-allow-origin', origin, ...exposed, 'vary', 'Origin'];
  };
}

/**
 * Whether a browser sends this for a page of another origin, as Go's `http.CrossOriginProtection` finds out. Browsers send
 * `Sec-Fetch-Site` only to HTTPS and to their own machine, and `Origin` to all; other clients send neither.
 */
export function isOfOtherOrigin(headers: RequestHeaders): boolean {
  const { 'sec-fetch-site': site, origin, host } = headers;
  if (site) return site !== 'same-origin' && site !== 'none';
  if (!origin) return false;
  const page = URL.parse(origin);
  // Some proxies add the default port to `Host`, and no browser does.
  return page === null || URL.parse(`${page.protocol}//${host}`)?.host !== page.host;
}

/** Whether a request is a preflight, with which a browser asks what a page may send. It has no token. */
export function isPreflight({ method, headers }: Exchange['request']): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

/** The answer to a preflight of an allowed page. */
export function permission(methods: readonly string[]): Answer {
  return {
    status: 204,
    headers: [
      ...['access-control-allow-methods', methods.join(', ')],
      ...['access-control-allow-headers', ACCEPTED_HEADERS],
      ...['access-control-max-age', PERMISSION_LASTS],
    ],
  };
}
