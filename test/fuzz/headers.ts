// Owns: what is promised of tokens, conditions, keys, preferences, paths and hosts.

import { createHmac } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { createBook } from '../../src/api/books.ts';
import { conditionOf } from '../../src/api/conditions.ts';
import { INVALID_KEY } from '../../src/api/envelope.ts';
import { readQuery } from '../../src/api/query.ts';
import { Tokens } from '../../src/auth/tokens.ts';
import { readBookId } from '../../src/books/book.ts';
import type { Tags } from '../../src/books/condition.ts';
import { namesThisMachine } from '../../src/http/host.ts';
import { pathOf } from '../../src/http/path.ts';
import { TIMES } from '../../src/times.ts';
import { exchangeOf, partsWith, requestWith } from './bodies.ts';
import { jsonIn, objectIn } from './meaning.ts';
import { assertSame, type Reader } from './reader.ts';

const SECRET = 'a secret of the tests of thirty-two bytes';
const PREVIOUS = 'the secret before it, of as many bytes';
const issuer = new Tokens(SECRET, TIMES.auth, PREVIOUS);

/** The algorithms, the last one of no HMAC. */
const ALGORITHMS = ['sha256', 'sha384', 'sha512', 'sha1'];

const base64url = (text: string) => Buffer.from(text, 'latin1').toString('base64url');

/** A token whose parts are spelled already. */
function tokenOf(signed: string, hash: string, secret: string): string {
  return `${signed}.${createHmac(hash, secret).update(signed).digest('base64url')}`;
}

/** As the service issues them, but the same in every run, and for ever. */
const PARTS = ['{"alg":"HS256","typ":"JWT"}', '{"exp":4000000000}'];
const ISSUED = tokenOf(PARTS.map(base64url).join('.'), 'sha256', SECRET);

/** A token as it was sent, valid only if it is one that was signed with the secret. */
export const foreignToken: Reader = ({ text }) => {
  assertSame(issuer.isValid(text), text === ISSUED, 'whether the token is valid');
};

/** A token whose header and claims are signed with the secret, whatever they are. */
export const signedToken: Reader = (input) => {
  const hash = ALGORITHMS[input.choice(4)] as string;
  const secret = input.choice(3) === 2 ? 'another' : input.choice(2) === 1 ? PREVIOUS : SECRET;
  const isSpelled = input.choice(2) === 1; // whether the parts are encoded already
  const parts = input.text.split('\n');
  const signed = (isSpelled ? parts : parts.map(base64url)).join('.');
  const token = tokenOf(signed, hash, secret);
  const [header, claims, ...more] = signed.split('.').map(partOf);
  const exp = claims?.exp;
  const nbf = claims !== undefined && Object.hasOwn(claims, 'nbf') ? claims.nbf : 0;
  const now = Date.now() / 1000;
  const isSigned = secret !== 'another' && hash !== 'sha1' && more.length === 0;
  const isUnderstood = header?.alg === hash.replace('sha', 'HS') && !Object.hasOwn(header, 'crit');
  const isFuture = typeof exp === 'number' && Number.isFinite(exp) && exp > now;
  const expected = isSigned && isUnderstood && isFuture && typeof nbf === 'number' && nbf <= now;
  const tokens = new Tokens(SECRET, TIMES.auth, PREVIOUS);
  assertSame([tokens.isValid(token), tokens.isValid(token)], [expected, expected], `whether it is valid`);
};

/** A JSON object in UTF-8 and in the one spelling of base64url (rule 18). */
function partOf(text: string): Readonly<Record<string, unknown>> | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? objectIn(jsonIn(bytes)?.value) : undefined;
}

export const conditions: Reader = async ({ text }) => {
  // As Node.js has them: without spaces and tabs around.
  const lines = text.split('\n', 4).map((line) => line.replaceAll(/^[ \t]+|(?<![ \t])[ \t]+$/g, ''));
  const [match = '', noneMatch = '', key = '', prefer = ''] = lines;
  const condition = { match: tagsIn(match, false), noneMatch: tagsIn(noneMatch, true) };
  assertSame(conditionOf({ 'if-match': match, 'if-none-match': noneMatch }), condition, 'the condition');
  let once: string | undefined;
  const book = { id: 1, title: '', author: '', year: 0 };
  const create = async (_: unknown, given: string) => {
    once = given;
    return { book, isReplay: false };
  };
  const request = requestWith({ 'idempotency-key': key }, 2, [Buffer.from('{}')]);
  const parts = partsWith({ catalogue: { create }, config: { bodyLimit: 2 } });
  const answer = await createBook(exchangeOf(request), parts);
  const bare = key.length > 1 && key.startsWith('"') && key.endsWith('"') ? key.slice(1, -1) : key;
  const isKey = /^[!-~]{1,255}$/.test(bare);
  assertSame([answer === INVALID_KEY, once], [!isKey, isKey ? bare : undefined], 'the key');
  const query = readQuery('limit=1', true, prefer);
  const isCounted = prefer.split(',').some((preference) => {
    const [name = '', ...value] = (preference.split(';')[0] ?? '').split('=');
    return name.trim().toLowerCase() === 'count' && /^"?exact"?$/i.test(value.join('=').trim());
  });
  assertSame('search' in query && query.search.isCounted, isCounted, 'whether books are counted');
};

/** A list of tags by RFC 9110, sections 5.6.1 and 8.8.3; none if the text is not one. */
function tagsIn(text: string, acceptsWeak: boolean): Tags {
  if (text === '*') return '*';
  if (!/^(?:(?:(?:W\/)?"[!#-~\x80-\xff]*")?[ \t]*(?:,[ \t]*|$))*$/.test(text)) return [];
  const tags = [...text.matchAll(/(W\/)?"([^"]*)"/g)];
  const accepted = tags.filter(([, weak]) => acceptsWeak || weak === undefined);
  const own = /^([\w-]{22})(?:(?:--?|;)(?:gzip|br|zstd|deflate|df))?$/; // no book has another one
  return accepted.flatMap(([, , tag = '']) => own.exec(tag)?.[1] ?? []);
}

export const pathsAndHosts: Reader = ({ text }) => {
  const [target = '', host = ''] = text.split('\n', 2);
  const path = pathOf(target);
  const authority = /^https?:\/\/[^/?]*/i.exec(target)?.[0] ?? '';
  const sent = target.slice(authority.length).split('?', 1)[0] as string;
  const query = target.slice(authority.length + sent.length + 1);
  const decoded = decodedPath(sent);
  assertSame(path, decoded === undefined ? undefined : { sent, decoded, query }, 'the path');
  const id = sent.slice('/book/'.length);
  const isId = /^\d{1,99}$/.test(id) && `${BigInt(id)}` === id && BigInt(id) > 0n && BigInt(id) < 2n ** 53n;
  assertSame(readBookId(id), isId ? Number(id) : undefined, 'the id');
  const colon = /:\d*$/.exec(host)?.index ?? host.length;
  const name = host.slice(0, colon).toLowerCase();
  const isHere = name === 'localhost' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'));
  assertSame(namesThisMachine(host), isHere, 'whether the host is this machine');
};

/** With its percent-escapes decoded, except those of delimiters. */
function decodedPath(sent: string): string | undefined {
  try {
    return decodeURIComponent(sent.replaceAll(/%(?=2[346BCF]|3[ABDF]|40)/gi, '%25'));
  } catch {
    return undefined;
  }
}
