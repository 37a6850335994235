// Owns: what is promised of request bodies: of a book, of an array of books, and of a login, with the address that a proxy
// names.

import { BlockList, isIP } from 'node:net';
import fc from 'fast-check';
import { createBook, createBooks } from '../../src/api/books.ts';
import {
  INVALID_BOOK,
  INVALID_CREDENTIALS,
  INVALID_LOGIN,
  PAYLOAD_TOO_LARGE,
} from '../../src/api/envelope.ts';
import type { AppParts, Exchange } from '../../src/api/exchange.ts';
import { logIn } from '../../src/api/login.ts';
import { credentialCheck } from '../../src/auth/credentials.ts';
import { Tokens } from '../../src/auth/tokens.ts';
import { type BookChanges, completeFields } from '../../src/books/book.ts';
import { BodyTooLarge } from '../../src/http/body.ts';
import type { RequestHeaders } from '../../src/http/head.ts';
import { TIMES } from '../../src/times.ts';
import { bookIn, jsonIn, objectIn } from './meaning.ts';
import { assertSame, type Input, inPieces, type Reader } from './reader.ts';

/** A request whose head has arrived. @param bodyLength undefined if its body comes in chunks. */
export function requestWith(
  headers: RequestHeaders,
  bodyLength: number | undefined,
  body: Iterable<Buffer>,
  remoteAddress = '',
): Exchange['request'] {
  return {
    ...{ method: 'POST', headers, bodyLength, remoteAddress, onLeave() {}, resumeBody() {} },
    takeBody(taker) {
      for (const piece of body) taker.take(piece);
      taker.end(true);
    },
  };
}

export function exchangeOf(request: Exchange['request']): Exchange {
  return { request, id: 'id', path: { sent: '/', decoded: '/', query: '' } };
}

/** The parts that a handler uses; all others are missing. */
export function partsWith(parts: object): AppParts {
  return parts as AppParts;
}

function sentInPieces(input: Input, body: (input: Input) => Buffer): Exchange['request'] {
  const size = input.choice(8);
  const isChunked = input.choice(2) === 1;
  const bytes = body(input);
  return requestWith({}, isChunked ? undefined : bytes.length, inPieces(bytes, size));
}

/** Of every book. */
const ID = 7;

/** Bytes of a body, more than any input has. */
const LIMIT = 10_000_000;

export const bodyOfABook: Reader = async (input) => {
  const request = sentInPieces(input, ({ content }) => content);
  let stored: BookChanges | undefined;
  const create = async (changes: BookChanges) => {
    stored = changes;
    return { book: { id: ID, ...completeFields(changes) }, isReplay: false };
  };
  const parts = partsWith({ catalogue: { create }, config: { bodyLimit: LIMIT } });
  const { status, body } = await createBook(exchangeOf(request), parts);
  const json = jsonIn(input.content);
  const book = json && bookIn(json.value, json.numbers);
  if (book === undefined) {
    assertSame([status, body, stored], [400, INVALID_BOOK.body, undefined], 'the answer');
  } else {
    assertSame([status, completeFields(stored ?? {})], [201, completeFields(book)], 'the book');
    assertSame(JSON.parse(`${body}`).data, { id: ID, ...completeFields(book) }, 'the answer');
  }
};

export const bodyOfAnArray: Reader = async (input) => {
  let longest = 0;
  const request = sentInPieces(input, (rest) => {
    longest = rest.choice(256);
    return rest.content;
  });
  let stored: unknown;
  const createAll = async (sent: readonly BookChanges[]) => {
    stored = sent;
    return { ids: [], isReplay: false };
  };
  const parts = partsWith({ catalogue: { createAll }, config: { bodyLimit: longest, bulkLimit: LIMIT } });
  const answer = await createBooks(exchangeOf(request), parts).catch((error) => {
    if (error instanceof BodyTooLarge) return PAYLOAD_TOO_LARGE;
    throw error;
  });
  const { message } = JSON.parse(`${answer.body}`);
  const json = jsonIn(input.content);
  if (json === undefined || !Array.isArray(json.value)) {
    return assertSame([message, stored], ['Invalid input', undefined], 'not an array');
  }
  const books = json.value.map((value: unknown) => bookIn(value, json.numbers));
  const wrong = books.findIndex((book) => {
    return book === undefined || Buffer.byteLength(`${book.title ?? ''}${book.author ?? ''}`) > longest;
  });
  if (wrong !== -1) {
    const isLong = books[wrong] !== undefined;
    const expected = isLong ? 'Payload too large' : `Invalid input: book ${wrong + 1}`;
    return assertSame([message, stored], [expected, undefined], 'the answer');
  }
  assertSame([answer.status, stored], [201, books], 'the books');
};

const proxies = new BlockList();
proxies.addAddress('127.0.0.1');
proxies.addSubnet('10.0.0.0', 8);
proxies.addSubnet('fd00::', 8, 'ipv6');

const PEERS = ['', '127.0.0.1', '10.1.2.3', '::ffff:10.1.2.3', '192.0.2.1', 'fd00::1'];

const tokens = new Tokens('a secret of the tests of thirty-two bytes', TIMES.auth);
const checkCredentials = credentialCheck('admin', 'p\u{e9}');

export const bodyOfALogin: Reader = async (input) => {
  const peer = input.choice(PEERS.length);
  let forwarded = '';
  let body: Buffer = Buffer.alloc(0);
  const sent = sentInPieces(input, ({ content }) => {
    const end = content.indexOf('\n');
    forwarded = content.toString('latin1', 0, Math.max(end, 0));
    body = content.subarray(end + 1);
    return body;
  });
  const request = { ...sent, headers: { 'x-forwarded-for': forwarded }, remoteAddress: PEERS[peer] };
  let address = '';
  const guard = {
    takeTurn: (from: string) => {
      address = from;
      return { delay: 0 };
    },
  };
  const parts = partsWith({ tokens, checkCredentials, guard, trustedProxies: proxies });
  const answer = await logIn(exchangeOf(request), parts);
  const login = objectIn(jsonIn(body)?.value);
  const given = login === undefined ? [null] : [login.username, login.password];
  if (given.some((text) => text !== undefined && typeof text !== 'string'))
    return assertSame(answer, INVALID_LOGIN, 'the answer');
  if (given[0] !== 'admin' || given[1] !== 'p\u{e9}') assertSame(answer, INVALID_CREDENTIALS, 'the answer');
  else assertSame(answer.status, 200, 'the status for the right password');
  assertSame(address, nearestStranger(PEERS[peer] as string, forwarded), 'the address');
};

/** The last address that is not one of a proxy; the proxy's own one if it names none (rule 29). */
function nearestStranger(peer: string, forwarded: string): string {
  const isProxy = (address: string) => proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  const way = [...forwarded.split(',').map((text) => text.trim()), peer].reverse();
  const strange = way.findIndex((address) => isIP(address) === 0 || !isProxy(address));
  if (strange === 0) return peer;
  const found = way[strange] ?? '';
  return isIP(found) === 0 ? (way[strange === -1 ? way.length - 1 : strange - 1] as string) : found;
}

const number = fc.oneof(
  fc.stringMatching(/^-?(0|[1-9]\d{0,18})(\.\d{1,25})?(e[+-]?\d{1,2})?$/),
  fc.stringMatching(/^-?(4503599627370497|90071992547409\d\d|5{300})(\.0{0,20}[0-3]|)([eE]-?(400|99999)|)$/),
);
const sign = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 5 }).map((any) => JSON.stringify(any).slice(1, -1)),
  fc.constantFrom('\\u00e9', '\\uD83D', '\\ude00', '\\u0000', '\\/', '\\u0022', '\\\\u0000'),
);
const text = fc.array(sign).map((signs) => `"${signs.join('')}"`);
const member = fc.oneof(
  fc.tuple(fc.constantFrom('title', 'author'), text),
  fc.tuple(fc.constantFrom('year', '\\u0079ear'), number),
  fc.tuple(
    fc.constantFrom('title', 'year', 'id', 'Title', '__proto__', 'constructor', 'title\\u0000'),
    fc.oneof(text, number, fc.constantFrom('null', 'true', '[1.5,{"year":1}]', '{"year":1.5}')),
  ),
);

/** JSON objects, of which many are books: with numbers, escapes and keys that are easily read wrongly. */
export const anyBook = fc
  .tuple(fc.nat(7), fc.constantFrom('', ' ', '\t\r\n'), fc.array(member, { maxLength: 4 }))
  .map(([size, space, members]) => {
    const fields = members.map(([name, value]) => [`"${name}"`, ':', value].join(space));
    const body = ['{', fields.join(`${space},`), '}'].join(space);
    return String.fromCharCode(size, 0) + Buffer.from(body).toString('latin1');
  });
