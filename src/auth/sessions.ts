// Owns: the sessions of the librarians' page (rule S1): starting, renewing and verifying them. Both halves of a session are signed,
// so no process needs a table. The browser keeps one half as a cookie and the page the other as a key, so neither a
// script of the page nor a program at another port of the host can take a whole session away. Links have another key, since browsers
// show and keep them: with the cookie, it opens downloads alone. Independent of HTTP.
// Does not: end a session before its time. A log-out removes it from the browser; another secret, username or password ends all.

import {
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import type { Times } from '../times.ts';
import type { Credentials } from './credentials.ts';

/** Bytes of the id of a session: too many to meet one twice. */
const ID_LENGTH = 16;

/** Id, Unix milliseconds of the start and of the latest renewal, signature. */
const VALUE = /^([\w-]{22})\.(\d{1,15})\.(\d{1,15})\.([\w-]{43})$/;

/** What a key is for: all calls of the page, or the links in it. */
export type KeyKind = 'key' | 'link';

export interface Renewal {
  /** Of the cookie. */
  readonly value: string;
  /** Whole seconds until the session ends, unless it is renewed. */
  readonly seconds: number;
  /** Of its links. */
  readonly linkKey: string;
}

export class Sessions {
  /** The first one signs; signatures by each of them are accepted. */
  readonly #keys: readonly [KeyObject, ...KeyObject[]];
  readonly #times: Times['auth'];

  /**
   * @param secret that signs tokens.
   * @param previous the one before it: its sessions are valid, but it signs none.
   */
  constructor(secret: string, credentials: Credentials, times: Times['auth'], previous?: string) {
    const key = derive(secret, credentials);
    this.#keys = previous === undefined ? [key] : [key, derive(previous, credentials)];
    this.#times = times;
  }

  /** A new session with a host. */
  start(host: string): Renewal & { readonly key: string } {
    const id = randomBytes(ID_LENGTH).toString('base64url');
    return { ...this.#renewal(id, Date.now(), host), key: this.#keyOf('key', id, host) };
  }

  /** @returns undefined if there is no such session, or no longer. */
  renew(values: readonly string[], key: string, host: string): Renewal | undefined {
    const session = this.#find(values, key, 'key', host);
    return session && this.#renewal(session.id, session.start, host);
  }

  /**
   * Whether a session is valid at this moment.
   * @param values of all cookies that may be its own: other programs of the host, and of its domain, can add some.
   * @param host that the browser has called: a session is valid there only.
   */
  isValid(values: readonly string[], key: string, kind: KeyKind, host: string): boolean {
    return this.#find(values, key, kind, host) !== undefined;
  }

  /** The key first, and then only cookies with its id: a request without a right one costs no more, however many it has. */
  #find(
    values: readonly string[],
    key: string,
    kind: KeyKind,
    host: string,
  ): { readonly id: string; readonly start: number } | undefined {
    const [id = '', signatureOfKey = ''] = key.split('.');
    if (!this.#isSigned(signatureOfKey, [kind, id, host])) return undefined;
    const now = Date.now();
    const { sessionIdle, sessionLongest } = this.#times;
    for (const value of values) {
      const [, ofCookie, start = '', renewed = '', signature = ''] = VALUE.exec(value) ?? [];
      if (ofCookie !== id || !this.#isSigned(signature, ['cookie', id, start, renewed, host])) continue;
      const isOver = now >= Number(renewed) + sessionIdle || now >= Number(start) + sessionLongest;
      if (!isOver) return { id, start: Number(start) };
    }
    return undefined;
  }

  #renewal(id: string, start: number, host: string): Renewal {
    const now = Date.now();
    const { sessionIdle, sessionLongest } = this.#times;
    const signature = sign(this.#keys[0], ['cookie', id, `${start}`, `${now}`, host]);
    const left = Math.min(sessionIdle, start + sessionLongest - now);
    const value = `${id}.${start}.${now}.${signature}`;
    return { value, seconds: Math.ceil(left / 1000), linkKey: this.#keyOf('link', id, host) };
  }

  #keyOf(kind: KeyKind, id: string, host: string): string {
    return `${id}.${sign(this.#keys[0], [kind, id, host])}`;
  }

  #isSigned(signature: string, parts: readonly string[]): boolean {
    const given = Buffer.from(signature);
    return this.#keys.some((key) => {
      const expected = Buffer.from(sign(key, parts));
      return given.length === expected.length && timingSafeEqual(expected, given);
    });
  }
}

/** A separate key (HKDF, RFC 5869), whose signatures are no tokens. Another username or password leads to another key. */
function derive(secret: string, { username, password }: Credentials): KeyObject {
  const salt = JSON.stringify([username, password]); // spells a lone surrogate, which has no UTF-8
  return createSecretKey(Buffer.from(hkdfSync('sha256', secret, salt, 'session of the page', 32)));
}

/** @param parts without a line feed. */
function sign(key: KeyObject, parts: readonly string[]): string {
  return createHmac('sha256', key).update(parts.join('\n')).digest('base64url');
}
