// Owns: tokens, issued and verified (rules 17 to 19). Knows no HTTP.

import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { createSigner, createVerifier } from 'fast-jwt';
import { BoundedMemory } from './bounded-memory.ts';

const LIFETIME = 15 * 60; // seconds, fixed by the contract

/** Tokens remembered at most, of each kind. */
const REMEMBERED = 10_000;

/** The hash of an HMAC signature, told by the length of its base64url text. */
const HASHES: Readonly<Record<number, string>> = { 43: 'sha256', 64: 'sha384', 86: 'sha512' };

/** A secret whose signatures count. */
interface Signatory {
  readonly key: KeyObject;
  readonly verify: (token: string) => Verified;
}

interface Verified {
  readonly header: { readonly crit?: unknown };
  readonly payload: { readonly exp?: unknown };
}

export class Tokens {
  readonly #sign: (payload: { exp: number }) => string;
  readonly #signatories: readonly Signatory[];
  /** Tokens whose signature was seen to be right, and the second they end; what is remembered still ends. */
  readonly #ours = new BoundedMemory<number>(REMEMBERED);
  /** Tokens whose signature was seen to be wrong; apart, so that a flood of them drives none of ours out. */
  readonly #foreign = new BoundedMemory<true>(REMEMBERED);

  /**
   * @param secret key of the HMAC signatures; not empty.
   * @param previous the key before it: its tokens are accepted, none is issued.
   */
  constructor(secret: string, previous?: string) {
    this.#sign = createSigner({ key: secret, algorithm: 'HS256', noTimestamp: true });
    const secrets = previous === undefined ? [secret] : [secret, previous];
    this.#signatories = secrets.map((text) => ({
      key: createSecretKey(text, 'utf8'),
      verify: createVerifier({
        key: text,
        algorithms: ['HS256', 'HS384', 'HS512'],
        complete: true,
        ignoreExpiration: true, // judged here, on every use
      }),
    }));
  }

  /** A new token, `exp` its only claim (rule 17). */
  issue(): string {
    return this.#sign({ exp: nowInSeconds() + LIFETIME });
  }

  /** Whether a token opens the catalogue at this moment. Never throws. */
  isValid(token: string): boolean {
    const now = Date.now() / 1000;
    const expiry = this.#ours.get(token) ?? this.#expiryOf(token);
    return expiry !== undefined && now < expiry;
  }

  /** When a token of ours ends, in Unix seconds; undefined for a token that is not (or not yet) valid. */
  #expiryOf(token: string): number | undefined {
    if (this.#foreign.get(token)) return undefined;
    const signatory = this.#signatories.find(({ key }) => isSigned(token, key));
    if (signatory === undefined) {
      this.#foreign.set(token, true);
      return undefined;
    }
    let verified: Verified;
    try {
      verified = signatory.verify(token);
    } catch {
      return undefined;
    }
    const { header, payload } = verified;
    if (header.crit !== undefined) return undefined; // we understand no extension (RFC 7515 section 4.1.11)
    if (typeof payload.exp !== 'number' || !Number.isFinite(payload.exp)) return undefined;
    this.#ours.set(token, payload.exp);
    return payload.exp;
  }
}

/**
 * Whether the signature is one that the secret makes, spelled as base64url spells it (rule 18). A forged
 * token is found out here for the price of one hash; the library's exceptions cost ten times as much.
 */
function isSigned(token: string, key: KeyObject): boolean {
  const end = token.lastIndexOf('.');
  const signature = Buffer.from(token.slice(end + 1));
  const hash = HASHES[signature.length];
  if (hash === undefined) return false;
  const expected = createHmac(hash, key).update(token.slice(0, end)).digest('base64url');
  return timingSafeEqual(Buffer.from(expected), signature);
}

function nowInSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
