// Owns: issuing and verifying tokens (rules 17 to 19): JSON Web Tokens (RFC 7519) signed with HMAC, checked as RFC 8725
// advises. Independent of HTTP.

import { isUtf8 } from 'node:buffer';
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { asJsonObject } from '../json/parse.ts';
import type { Times } from '../times.ts';

/** Tokens kept with a right signature, and as many with a wrong one; and the characters of the longest: ours have about 110. */
const MAX_TOKENS = 10_000;
const LONGEST_TOKEN = 512;

/** The accepted algorithms (RFC 7518 section 3.2) by the length of their signatures in base64url. */
const ALGORITHMS: ReadonlyMap<number, { readonly alg: string; readonly hash: string }> = new Map([
  [43, { alg: 'HS256', hash: 'sha256' }],
  [64, { alg: 'HS384', hash: 'sha384' }],
  [86, { alg: 'HS512', hash: 'sha512' }],
]);

const HEADER = encode({ alg: 'HS256', typ: 'JWT' });

export class Tokens {
  /** The first one signs; signatures by each of them are accepted. */
  readonly #keys: readonly [KeyObject, ...KeyObject[]];
  readonly #lifetime: number; // seconds
  /** Tokens whose signature is right, and their expiry in Unix seconds, which is checked each time. */
  readonly #verified = new Map<string, number>();
  /** Tokens whose signature is wrong; kept apart, so that a flood of them drops no verified one. */
  readonly #forged = new Map<string, true>();

  /**
   * @param secret key of the HMAC signatures; not empty.
   * @param previous the key before it: its tokens are accepted, but it signs none.
   */
  constructor(secret: string, { tokenLifetime }: Times['auth'], previous?: string) {
    this.#lifetime = tokenLifetime / 1000;
    const key = createSecretKey(secret, 'utf8');
    this.#keys = previous === undefined ? [key] : [key, createSecretKey(previous, 'utf8')];
  }

  /** A new token; `exp` is its only claim (T4). */
  issue(): string {
    const signed = `${HEADER}.${encode({ exp: Math.floor(Date.now() / 1000) + this.#lifetime })}`;
    return `${signed}.${signatureOf(signed, 'sha256', this.#keys[0])}`;
  }

  /** Whether a token is valid at this moment. Never throws. */
  isValid(token: string): boolean {
    const now = Date.now() / 1000;
    const expiry = this.#verified.get(token) ?? this.#expiryOf(token, now);
    return expiry !== undefined && now < expiry;
  }

  /** The expiry of a token, in Unix seconds; undefined for a token that is not (or not yet) valid. */
  #expiryOf(token: string, now: number): number | undefined {
    if (this.#forged.has(token)) return undefined;
    const end = token.lastIndexOf('.');
    const signed = token.slice(0, end);
    const signature = token.slice(end + 1);
    const algorithm = ALGORITHMS.get(signature.length);
    if (algorithm === undefined || !this.#isSigned(signed, algorithm.hash, signature)) {
      remember(this.#forged, token, true);
      return undefined;
    }
    // Only a token that was signed with one of our secrets gets this far.
    const [header, claims, ...more] = signed.split('.').map(decode);
    if (header?.alg !== algorithm.alg || claims === undefined || more.length > 0) return undefined;
    if (header.crit !== undefined) return undefined; // no extension is supported (RFC 7515 section 4.1.11)
    const { exp, nbf = 0 } = claims;
    if (typeof exp !== 'number' || !Number.isFinite(exp)) return undefined;
    if (typeof nbf !== 'number' || now < nbf) return undefined;
    remember(this.#verified, token, exp);
    return exp;
  }

  /** Whether a signature is by one of the keys, and in canonical base64url (rule 18). */
  #isSigned(signed: string, hash: string, signature: string): boolean {
    const given = Buffer.from(signature);
    return this.#keys.some((key) => {
      const expected = Buffer.from(signatureOf(signed, hash, key));
      return given.length === expected.length && timingSafeEqual(expected, given);
    });
  }
}

/** Forgets all others if there are too many: to check them again costs less than to look for the oldest. */
function remember<Knowledge>(tokens: Map<string, Knowledge>, token: string, knowledge: Knowledge): void {
  if (token.length > LONGEST_TOKEN) return;
  if (tokens.size >= MAX_TOKENS) tokens.clear();
  tokens.set(token, knowledge);
}

function signatureOf(signed: string, hash: string, key: KeyObject): string {
  return createHmac(hash, key).update(signed).digest('base64url');
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

/** A part of a token; undefined if it is not a JSON object in UTF-8 and canonical base64url. */
function decode(text: string): Readonly<Record<string, unknown>> | undefined {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.toString('base64url') !== text || !isUtf8(bytes)) return undefined; // RFC 8725 section 3.7
  try {
    return asJsonObject(JSON.parse(bytes.toString()));
  } catch {
    return undefined;
  }
}
