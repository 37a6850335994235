// Owns: /session of the page's port (rules S1 to S4): the session of the librarians' page as a cookie and a header, and whether a
// request has one.
// Does not: answer on the service's port, or for a page of another origin, whatever CORS_ORIGINS has.

import type { KeyKind } from '../auth/sessions.ts';
import type { Answer } from '../http/answer.ts';
import { isOfOtherOrigin } from './cors.ts';
import * as answers from './envelope.ts';
import type { AppParts, Exchange, Route } from './exchange.ts';
import { refuseLogin } from './login.ts';

type Headers = Exchange['request']['headers'];

/** No script can read the cookie, and no page of another site makes a browser send it. */
const GUARDS = 'HttpOnly; SameSite=Strict';

/** Only the port of the page has it. */
export const SESSION_ROUTE: Route = {
  path: '/session',
  needsToken: false,
  handlers: { POST: startSession, PUT: renewSession, DELETE: endSession },
};

/** @returns the answer to a request that needs a session and has no valid one. @param key that it has sent. */
export function refuseSession(
  headers: Headers,
  key: string,
  kind: KeyKind,
  { sessions }: AppParts,
): Answer | undefined {
  if (isOfOtherOrigin(headers)) return answers.ORIGIN_NOT_ALLOWED;
  const { values, host } = cookiesIn(headers);
  return sessions.isValid(values, key, kind, host) ? undefined : answers.SESSION_EXPIRED;
}

async function startSession(exchange: Exchange, parts: AppParts): Promise<Answer> {
  const refused = await refuseLogin(exchange, parts);
  if (refused !== undefined) return refused;
  const { headers } = exchange.request;
  const { key, value, seconds } = parts.sessions.start(hostOf(headers));
  return answers.sessionStarted(key, cookie(headers, value, seconds));
}

async function renewSession({ request: { headers } }: Exchange, { sessions }: AppParts): Promise<Answer> {
  const { values, host } = cookiesIn(headers);
  const renewal = sessions.renew(values, headers['session-key'] ?? '', host);
  if (renewal === undefined) return answers.SESSION_EXPIRED;
  const { seconds, linkKey, value } = renewal;
  return answers.sessionRenewed(seconds, linkKey, cookie(headers, value, seconds));
}

async function endSession({ request: { headers } }: Exchange): Promise<Answer> {
  return answers.sessionEnded(cookie(headers, '', 0));
}

/**
 * A cookie for the folder of the page: without `Path`, a browser takes the folder of the URL that it has called (RFC 6265 section
 * 5.1.4), which a proxy may have shortened. Only over TLS if the page came so: a browser sends `Origin` with every
 * POST, PUT and DELETE.
 */
function cookie(headers: Headers, value: string, seconds: number): string {
  const isTls = headers.origin?.startsWith('https:') === true;
  return `${nameOf(headers)}=${value}; Max-Age=${seconds}; ${GUARDS}${isTls ? '; Secure' : ''}`;
}

/** With the port that the browser has called: catalogues at several ports of a host share their cookies. */
function nameOf(headers: Headers): string {
  const port = /:(\d+)$/.exec(hostOf(headers))?.[1];
  return port === undefined ? 'book-catalogue' : `book-catalogue-${port}`;
}

/** The values of all cookies of the name, and the host that they are for. */
function cookiesIn(headers: Headers): { readonly values: readonly string[]; readonly host: string } {
  const start = `${nameOf(headers)}=`;
  const cookies = (headers.cookie ?? '').split(/[;,] */); // HTTP/2 allows several headers, which were joined with commas
  const values = cookies.filter((text) => text.startsWith(start)).map((text) => text.slice(start.length));
  return { values, host: hostOf(headers) };
}

function hostOf({ host = '' }: Headers): string {
  return host.toLowerCase();
}
