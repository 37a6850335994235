// Owns: rules S1 to S4: the sessions of the page's port, tried also as an attacker would.

import type { Answer } from './answers.ts';
import { expect, expectAnswer, expectEqual } from './complaint.ts';
import { ofSessions, type Rule } from './rule.ts';
import type { Service } from './service.ts';
import {
  FOREIGN_PAGE,
  INVALID_LOGIN,
  METHOD_NOT_ALLOWED,
  SESSION_ENDED,
  SESSION_EXPIRED,
  SESSION_RENEWED,
  SESSION_STARTED,
  TOKEN_REQUIRED,
  WRONG_LOGIN,
} from './words.ts';

/** Seconds from one renewal of a session to its end. */
const IDLE = 1800;

/** Headers of a request. */
type Session = Readonly<Record<'cookie' | 'session-key', string>>;

/** Logs in with headers of a browser. @returns the headers of the session, and the answer. */
async function begin(service: Service, headers: Record<string, string> = {}): Promise<[Session, Answer]> {
  const { username, password } = service.account;
  const options = { body: { username, password }, token: null, headers };
  const answer = await service.request('POST', '/session', options);
  expectAnswer(answer, SESSION_STARTED);
  expectEqual(Object.keys(answer.data), ['key'], 'The fields of data', answer);
  return [{ cookie: cookieOf(answer), 'session-key': answer.data.key }, answer];
}

/** Name and value of the cookie of an answer. */
function cookieOf(answer: Answer): string {
  const [, cookie = ''] = /^([\w-]+=[^;, ]*);/.exec(answer.headers.get('set-cookie') ?? '') ?? [];
  expect(cookie !== '', 'The answer has a cookie.', answer);
  return cookie;
}

const readWith = (service: Service, headers: Readonly<Record<string, string>>, token: string | null = null) =>
  service.request('GET', '/books?limit=1', { token, headers });

export const SESSIONS: readonly Rule[] = [
  ofSessions(
    'S1',
    'a login gets a key, and a cookie that only this host and no script can read',
    async (service) => {
      const [session, answer] = await begin(service);
      const [, ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ');
      expectEqual(
        attributes,
        [`Max-Age=${IDLE}`, 'HttpOnly', 'SameSite=Strict'],
        'Without TLS, the attributes',
        answer,
      );
      expectAnswer(await readWith(service, session), { status: 200 });
      const overTls = `https://${service.host}`;
      const [, secure] = await begin(service, { origin: overTls, 'sec-fetch-site': 'same-origin' });
      const isSecure = secure.headers.get('set-cookie')?.endsWith('; Secure') === true;
      expect(isSecure, 'The cookie of a page that came over TLS is Secure.', secure);
    },
  ),
  ofSessions(
    'S1, T1, T2, rule 32',
    'a login that cannot be read, is wrong, or comes from another page starts no session',
    async (service) => {
      const { username, password } = service.account;
      for (const [body, headers, expected] of [
        ['[]', {}, INVALID_LOGIN],
        [{ username, password: `${password}x` }, {}, WRONG_LOGIN],
        [{ username, password }, { origin: 'http://evil.test' }, FOREIGN_PAGE],
        [{ username, password }, { 'sec-fetch-site': 'same-site' }, FOREIGN_PAGE],
      ] as const) {
        const answer = await service.request('POST', '/session', { body, token: null, headers });
        expectAnswer(answer, expected);
        expectEqual(answer.headers.get('set-cookie'), null, 'set-cookie', answer);
      }
      expectAnswer(await service.request('GET', '/session', { token: null }), METHOD_NOT_ALLOWED);
    },
  ),
  ofSessions('S2', 'a session is renewed with its key and a new cookie', async (service) => {
    const [session] = await begin(service);
    const answer = await service.request('PUT', '/session', { token: null, headers: { ...session } });
    expectAnswer(answer, SESSION_RENEWED);
    const { linkKey, ...rest } = answer.data;
    expectEqual(rest, { seconds: IDLE }, 'data without its linkKey', answer);
    // Downloads are files, which the kit does not read: a link without its cookie gets an envelope.
    const link = `/books.csv?link-key=${linkKey}`;
    expectAnswer(await service.request('GET', link, { token: null }), SESSION_EXPIRED);
    expectAnswer(await readWith(service, { ...session, cookie: cookieOf(answer) }), { status: 200 });
    const { cookie } = session;
    for (const headers of [
      { cookie },
      { 'session-key': session['session-key'] },
      { cookie, 'session-key': 'x' },
      { cookie, 'session-key': linkKey },
    ])
      expectAnswer(await service.request('PUT', '/session', { token: null, headers }), SESSION_EXPIRED);
  }),
  ofSessions(
    'S3, A3',
    'the cookie alone counts for nothing, and the key needs its own cookie and host',
    async (service) => {
      const [session] = await begin(service);
      const [other] = await begin(service);
      const { cookie, 'session-key': key } = session;
      const [name = '', value = ''] = cookie.split('=');
      for (const headers of [{ cookie }, { cookie, 'session-key': '' }])
        expectAnswer(await readWith(service, headers), TOKEN_REQUIRED);
      const [id, ...rest] = value.split('.');
      for (const headers of [
        { 'session-key': key },
        { ...session, 'session-key': other['session-key'] },
        { ...session, 'session-key': `${key.slice(0, -4)}AAAA` },
        { ...session, 'session-key': value },
        { ...session, cookie: `other${cookie}` },
        { ...session, cookie: `${name}=${service.token}` },
        { ...session, cookie: `${cookie.slice(0, -4)}AAAA` },
        {
          ...session,
          cookie: `${name}=${[id, ...rest.map((part) => part.replace(/^\d+$/, '9999999999999'))].join('.')}`,
        },
        { ...session, host: `evil.test:${service.url.port}` },
      ]) {
        expectAnswer(await readWith(service, headers), SESSION_EXPIRED, JSON.stringify(Object.keys(headers)));
        expectAnswer(await readWith(service, headers, service.token), SESSION_EXPIRED);
      }
      // Other programs of the host can add cookies, and a proxy its own password.
      for (const [token, headers] of [
        [null, { ...session, cookie: `a=b; ${name}=x; ${cookie}; ${other.cookie}` }],
        ['Basic eDp5', session],
      ] as const)
        expectAnswer(await readWith(service, headers, token), { status: 200 });
      for (const secret of [value, key, cookie])
        expect(
          (await readWith(service, {}, secret)).status === 401,
          'No part of a session is a token.',
          service.latest,
        );
    },
  ),
  ofSessions(
    'S3, rule 32',
    'a page of another origin has no session, and no preflight allows the key',
    async (service) => {
      const [session] = await begin(service);
      for (const headers of [
        { origin: 'http://evil.test' },
        { 'sec-fetch-site': 'same-site' },
        { origin: 'null' },
      ]) {
        expectAnswer(await readWith(service, { ...session, ...headers }), FOREIGN_PAGE);
        expectAnswer(
          await service.request('DELETE', '/session', { token: null, headers: { ...session, ...headers } }),
          FOREIGN_PAGE,
        );
      }
      const asked = { origin: 'http://evil.test', 'access-control-request-method': 'PUT' };
      for (const path of ['/session', '/books']) {
        const answer = await service.request('OPTIONS', path, { token: null, headers: asked });
        expectEqual(
          answer.headers.get('access-control-allow-origin'),
          null,
          'access-control-allow-origin',
          answer,
        );
      }
    },
  ),
  ofSessions('S4', 'a log-out removes the cookie, with or without a session', async (service) => {
    const [session] = await begin(service);
    for (const headers of [session, {}]) {
      const answer = await service.request('DELETE', '/session', { token: null, headers: { ...headers } });
      expectAnswer(answer, SESSION_ENDED);
      const [cookie, ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ');
      expectEqual(cookie, `${session.cookie.split('=')[0]}=`, 'The cookie', answer);
      expectEqual(attributes, ['Max-Age=0', 'HttpOnly', 'SameSite=Strict'], 'The attributes', answer);
    }
  }),
];
