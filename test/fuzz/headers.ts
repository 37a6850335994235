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
import { assertSame, type Reader } from './reader.ts';

const SECRET = 'a secret of the tests of thirty-two bytes';
const PREVIOUS = 'the secret before it, of as many bytes';
const issuer = new Tokens(SECRET, TIMES.auth, PREVIOUS);

/** The algorithms, the last one of no HMAC. */
const ALGORITHMS = [
  ['HS256', 'sha256'],
  ['HS384', 'sha384'],
  ['HS512', 'sha512'],
  ['HS1', 'sha1'],
] as const;

/** Seconds; a moment that no run reaches. */
const FAR = 4e9;

const base64url = (text: string) => Buffer.from(text, 'latin1').toString('base64url');

/** A token whose parts are spelled already. */
function tokenOf(signed: string, hash: string, secret: string): string {
  return `${signed}.${createHmac(hash, secret).update(signed).digest('base64url')}`;
}

/** As the service issues them, but the same in every run, and for ever. */
const ISSUED = tokenOf(
  ['{"alg":"HS256","typ":"JWT"}', `{"exp":${FAR}}`].map(base64url).join('.'),
  'sha256',
  SECRET,
);

/** A token as it was sent, valid only if it is one that was signed with the secret. */
export const foreignToken: Reader = {
  seeds: [ISSUED, ISSUED.slice(0, -1), '..', 'eyJhbGciOiJub25lIn0.e30.'],
  words: ['.', '=', 'eyJhbGciOiJub25lIn0', 'Bearer ', 'e30', ISSUED.slice(-43)],
  check({ text }) {
    assertSame(issuer.isValid(text), text === ISSUED, 'whether the token is valid');
  },
};

/** A token whose header and claims are signed with the secret, whatever they are. */
export const signedToken: Reader = {
  seeds: [
    `\0\0\0{"alg":"HS256","typ":"JWT"}\n{"exp":${FAR}}`,
    `\x01\x01\0{"alg":"HS384"}\n{"exp":1e10,"nbf":5}`,
    `\x02\0\0{"alg":"HS512","crit":["exp"]}\n{"exp":${FAR}.5}`,
    `\0\0\x01eyJhbGciOiJIUzI1NiJ9\neyJleHAiOjQwMDAwMDAwMDB9`,
    `\x03\0\0{"alg":"HS1"}\n{"exp":5}`,
  ],
  words: ['"alg":', '"HS256"', '"exp":', '"nbf":', '"crit":', '{}', '1e400', '4e9', '\n', '\xc3\xa9', 'null'],
  check(input) {
    const [alg, hash] = ALGORITHMS[input.choice(4)] as (typeof ALGORITHMS)[number];
    const secret = input.choice(3) === 2 ? 'another' : input.choice(2) === 1 ? PREVIOUS : SECRET;
    const isSpelled = input.choice(2) === 1; // whether the parts are encoded already
    const signed = input.text
      .split('\n')
      .map((part) => (isSpelled ? part : base64url(part)))
      .join('.');
    const token = tokenOf(signed, hash, secret);
    const [header, claims, ...more] = signed.split('.').map(partOf);
    const exp = claims?.exp;
    const nbf = claims !== undefined && Object.hasOwn(claims, 'nbf') ? claims.nbf : 0;
    const now = Date.now() / 1000;
    const expected =
      secret !== 'another' &&
      hash !== 'sha1' &&
      more.length === 0 &&
      header?.alg === alg &&
      !Object.hasOwn(header, 'crit') &&
      typeof exp === 'number' &&
      Number.isFinite(exp) &&
      exp > now &&
      typeof nbf === 'number' &&
      nbf <= now;
    const tokens = new Tokens(SECRET, TIMES.auth, PREVIOUS);
    assertSame([tokens.isValid(token), tokens.isValid(token)], [expected, expected], `whether it is valid`);
  },
};

/** A JSON object in UTF-8 and in the one spelling of base64url (rule 18). */
function partOf(text: string): Record<string, unknown> | undefined {
  if (!/^(?:[\w-]{4})*(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?$/.test(text)) return undefined;
  try {
    const bytes = Uint8Array.fromBase64(text, { alphabet: 'base64url' });
    const json = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    const value: unknown = JSON.parse(json);
    return Object.prototype.toString.call(value) === '[object Object]'
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

export const conditions: Reader = {
  seeds: [
    '"abc", W/"d,e" ,, "f"\n*\n"key-1"\nrespond-async, count = "exact"; x=y',
    '"a"b\nW/"a"\nbare\nCOUNT=exact',
    '*,\n"unclosed\n""\ncount=exactly',
  ],
  words: ['W/', '""', '"a"', ', ', '*', '\t', 'count=exact', '\x7f', '\xff', '"!"'],
  async check({ text }) {
    // As Node.js has them: without spaces and tabs around.
    const lines = text
      .split('\n', 4)
      .map((line) => line.replace(/^[ \t]+/, '').replace(/(?<![ \t])[ \t]+$/, ''));
    const [match = '', noneMatch = '', key = '', prefer = ''] = lines;
    assertSame(
      conditionOf({ 'if-match': match, 'if-none-match': noneMatch }),
      { match: tagsIn(match, false), noneMatch: tagsIn(noneMatch, true) },
      'the condition',
    );
    let once: string | undefined;
    const book = { id: 1, title: '', author: '', year: 0 };
    const createOnce = async (_: unknown, given: string) => {
      once = given;
      return { book, isReplay: false };
    };
    const request = requestWith({ 'idempotency-key': key, 'content-length': '2' }, [Buffer.from('{}')]);
    const parts = partsWith({ catalogue: { createOnce }, config: { bodyLimit: 2 } });
    const answer = await createBook(exchangeOf(request), parts);
    const bare = key.length > 1 && key.startsWith('"') && key.endsWith('"') ? key.slice(1, -1) : key;
    const isKey =
      bare.length >= 1 && bare.length <= 255 && [...bare].every((sign) => sign > ' ' && sign < '\x7f');
    assertSame([answer === INVALID_KEY, once], [!isKey, isKey ? bare : undefined], 'the key');
    const query = readQuery('limit=1', true, prefer);
    const isCounted = prefer.split(',').some((preference) => {
      const [name = '', ...value] = (preference.split(';')[0] ?? '').split('=');
      return name.trim().toLowerCase() === 'count' && /^"?exact"?$/i.test(value.join('=').trim());
    });
    assertSame('search' in query && query.search.isCounted, isCounted, 'whether books are counted');
  },
};

/** A list of tags by RFC 9110, sections 5.6.1 and 8.8.3; none if the text is not one. */
function tagsIn(text: string, acceptsWeak: boolean): Tags {
  if (text === '*') return '*';
  const tags: string[] = [];
  let at = 0;
  const skip = () => {
    while (text[at] === ' ' || text[at] === '\t') at += 1;
  };
  while (at < text.length) {
    const isWeak = text.startsWith('W/"', at);
    if (isWeak) at += 2;
    if (text[at] === '"') {
      const end = text.indexOf('"', at + 1);
      const tag = text.slice(at + 1, end);
      if (end === -1 || [...tag].some((sign) => sign <= ' ' || sign === '\x7f')) return [];
      if (!isWeak || acceptsWeak) tags.push(tag);
      at = end + 1;
    }
    skip();
    if (at < text.length && text[at] !== ',') return [];
    at += 1;
    skip();
  }
  return tags;
}

export const pathsAndHosts: Reader = {
  seeds: [
    '/book/17?x=1#y\n127.0.0.1:8080',
    'http://books.example/book/%31%2f?q\nlocalhost',
    '/books?\n[::1]:80',
    '/book/9007199254740991\n127.255.0.256',
    '/b%C3%A9/%zz\n0x7f.1',
  ],
  words: [
    '%2F',
    '%C3%A9',
    '%',
    '?',
    '#',
    'http://',
    '/book/',
    '9007199254740992',
    'localhost',
    '127.',
    '[::1]',
    ':',
  ],
  check({ text }) {
    const [target = '', host = ''] = text.split('\n', 2);
    const path = pathOf(target);
    const [local = ''] = target.split('#', 1);
    const authority = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? '';
    const sent = local.slice(authority.length).split('?', 1)[0] as string;
    const query = local.slice(authority.length + sent.length + 1);
    const decoded = decodedPath(sent);
    assertSame(path, decoded === undefined ? undefined : { sent, decoded, query }, 'the path');
    const id = sent.slice('/book/'.length);
    const isId = /^\d{1,99}$/.test(id) && `${BigInt(id)}` === id && BigInt(id) > 0n && BigInt(id) < 2n ** 53n;
    assertSame(readBookId(id), isId ? Number(id) : undefined, 'the id');
    const colon = /:\d*$/.exec(host)?.index ?? host.length;
    const name = host.slice(0, colon).toLowerCase();
    const isHere = name === 'localhost' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'));
    assertSame(namesThisMachine(host), isHere, 'whether the host is this machine');
  },
};

/** With its percent-escapes decoded, except those of delimiters. */
function decodedPath(sent: string): string | undefined {
  try {
    return decodeURIComponent(sent.replaceAll(/%(?=2[346BCF]|3[ABDF]|40)/gi, '%25'));
  } catch {
    return undefined;
  }
}
