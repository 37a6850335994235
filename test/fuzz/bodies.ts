// Owns: what is promised of request bodies: of a book, of an array of books, and of a login, with the address that a proxy
// names.

import { IncomingMessage } from 'node:http';
import { BlockList, isIP, Socket } from 'node:net';
import { createBook, createBooks } from '../../src/api/books.ts';
import {
  INVALID_BOOK,
  INVALID_CREDENTIALS,
  INVALID_LOGIN,
  PAYLOAD_TOO_LARGE,
} from '../../src/api/envelope.ts';
import { type AppParts, Exchange } from '../../src/api/exchange.ts';
import { logIn } from '../../src/api/login.ts';
import { credentialCheck } from '../../src/auth/credentials.ts';
import { Tokens } from '../../src/auth/tokens.ts';
import { type BookChanges, completeFields } from '../../src/books/book.ts';
import type { Answer } from '../../src/http/answer.ts';
import { BodyTooLarge } from '../../src/http/body.ts';
import { TIMES } from '../../src/times.ts';
import { bookIn, jsonIn } from './meaning.ts';
import { assertSame, type Input, inPieces, type Reader } from './reader.ts';

const BOOK_WORDS = [
  '"title":',
  '"author":',
  '"year":',
  '"id":',
  '"__proto__":',
  '\\u0000',
  '\\ud800',
  'null',
];
const JSON_WORDS = [...BOOK_WORDS, 'true', '{}', '[]', '\xc3\xa9', '\xef\xbb\xbf', '\xed\xa0\x80', '":{"'];

const PEERS = ['', '127.0.0.1', '10.1.2.3', '::ffff:10.1.2.3', '192.0.2.1', 'fd00::1'];

/** One for each peer. */
const SOCKETS = PEERS.map((value) => Object.defineProperty(new Socket(), 'remoteAddress', { value }));

/** A request as Node.js has it once its headers have arrived. */
export function requestWith(headers: IncomingMessage['headers'], body: Iterable<Buffer>): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  request.headers = headers;
  for (const piece of body) request.push(piece);
  request.push(null);
  request.complete = true;
  return request;
}

export function exchangeOf(request: IncomingMessage): Exchange {
  return new Exchange(request, 'id', { sent: '/', decoded: '/', query: '' }, undefined);
}

/** The parts that a handler uses; all others are missing. */
export function partsWith(parts: object): AppParts {
  return parts as AppParts;
}

function sentInPieces(input: Input, body: (input: Input) => Buffer): IncomingMessage {
  const size = input.choice(8);
  const isChunked = input.choice(2) === 1;
  const bytes = body(input);
  const coding = { 'transfer-encoding': 'chunked' };
  return requestWith(isChunked ? coding : { 'content-length': `${bytes.length}` }, inPieces(bytes, size));
}

/** Of every book. */
const ID = 7;

/** Bytes of a body, more than any input has. */
const LIMIT = 10_000_000;

export const bookInBody: Reader = {
  seeds: [
    '\0\0{"title":"\\u00e9\xc3\xa9","author":"x","year":-7.0e2,"x":[true,null]}',
    '\x03\x01{"year":1.5,"year":2020.0,"id":5,"title":"\\ud83d\\ude00"}',
    '\x01\x01{"year":9007199254740991}',
    '\x02\0{"year":1e-400,"\\u0079ear":0e5}',
  ],
  words: JSON_WORDS,
  async check(input) {
    const request = sentInPieces(input, ({ content }) => content);
    let stored: BookChanges | undefined;
    const catalogue = {
      create: async (changes: BookChanges) => {
        stored = changes;
        return { id: ID, ...completeFields(changes) };
      },
    };
    const parts = partsWith({ catalogue, config: { bodyLimit: LIMIT } });
    const { status, body } = await createBook(exchangeOf(request), parts);
    const json = jsonIn(input.content);
    const book = json && bookIn(json.value, json.numbers);
    if (book === undefined) {
      assertSame([status, body, stored], [400, INVALID_BOOK.body, undefined], 'the answer');
    } else {
      assertSame([status, completeFields(stored ?? {})], [201, completeFields(book)], 'the book');
      assertSame(JSON.parse(`${body}`).data, { id: ID, ...completeFields(book) }, 'the answer');
    }
  },
};

export const arrayOfBooks: Reader = {
  seeds: [
    '\0\0\x40[{"title":"a"},{"author":"\xc3\xa9","year":1e3} , {}]',
    '\x01\x01\xff[ {"title":"]}\\"\\\\"},{"x":[[{}]],"year":-0} ]\n',
    '\0\0\x40[{"title":"a"};{}]',
    '\x02\0\x10[{"title":"longer than allowed"}]',
    '\x03\x01\x30[{"title":"a"},{"year":1.5},null]',
    '\x07\x01\x30[]',
  ],
  words: [...JSON_WORDS, '},{', ',', '[', ']', '[{', '}]'],
  async check(input) {
    let longest = 0;
    const request = sentInPieces(input, (rest) => {
      longest = rest.choice(256);
      return rest.content;
    });
    let stored: unknown;
    const catalogue = {
      createAll: async (books: string) => {
        stored = JSON.parse(books);
        return { ids: [], isReplay: false };
      },
    };
    const parts = partsWith({ catalogue, config: { bodyLimit: longest, bulkLimit: LIMIT } });
    const answer = await createBooks(exchangeOf(request), parts).catch(answerTooLarge);
    const { content } = input;
    const json = jsonIn(content);
    const array = json !== undefined && Array.isArray(json.value) ? json.value : undefined;
    const books = array?.map((value: unknown) => json && bookIn(value, json.numbers));
    if (books === undefined) {
      if (answer.status !== 413 && !messageOf(answer).startsWith('Invalid input'))
        throw new Error(`not an array: ${answer.status} ${answer.body}`);
      assertSame(stored, undefined, 'nothing is stored');
      return;
    }
    const wrong = books.indexOf(undefined);
    const isLong = content.length > longest; // then one of its elements may be longer than allowed
    if (answer.status === 413 && isLong) return;
    if (wrong !== -1) {
      assertSame([messageOf(answer), stored], [`Invalid input: book ${wrong + 1}`, undefined], 'the answer');
      return;
    }
    const expected = books.map((book) => {
      const { title, author, year } = completeFields(book ?? {});
      return [title, author, year];
    });
    assertSame([answer.status, stored], [201, expected], 'the books');
  },
};

function answerTooLarge(error: unknown): Answer {
  if (error instanceof BodyTooLarge) return PAYLOAD_TOO_LARGE;
  throw error;
}

function messageOf({ body }: Answer): string {
  return JSON.parse(`${body}`).message;
}

const proxies = new BlockList();
proxies.addAddress('127.0.0.1');
proxies.addSubnet('10.0.0.0', 8);
proxies.addSubnet('fd00::', 8, 'ipv6');

const tokens = new Tokens('a secret of the tests of thirty-two bytes', TIMES.auth);
const checkCredentials = credentialCheck('admin', 'p\u{e9}');

export const login: Reader = {
  seeds: [
    '\x01\0\x0192.0.2.7, 10.0.0.1\n{"username":"admin","password":"p\xc3\xa9"}',
    '\x02\x01\x01::1,,fd00::2 , 10.0.0.1\n{"username":"admin"}',
    '\0\0\0\n{"username":"admin","password":"p\\u00e9","password":null}',
  ],
  words: [...JSON_WORDS, '"username":', '"password":', '"admin"', '10.0.0.9', ', ', '::1', '192.0.2.1'],
  async check(input) {
    const peer = input.choice(PEERS.length);
    let forwarded = '';
    let body: Buffer = Buffer.alloc(0);
    const request = sentInPieces(input, (rest) => {
      const { content } = rest;
      const end = content.indexOf('\n');
      forwarded = content.toString('latin1', 0, Math.max(end, 0));
      body = content.subarray(end + 1);
      return body;
    });
    request.socket = SOCKETS[peer] as Socket;
    request.headers['x-forwarded-for'] = forwarded;
    let address = '';
    const takeTurn = (from: string) => {
      address = from;
      return { kind: 'answer', delay: 0 };
    };
    const parts = partsWith({ tokens, checkCredentials, takeTurn, trustedProxies: proxies });
    const answer = await logIn(exchangeOf(request), parts);
    const sent = jsonIn(body)?.value as Record<string, unknown> | undefined;
    const isObject = typeof sent === 'object' && sent !== null && !Array.isArray(sent);
    const given = isObject ? [sent.username, sent.password] : [null];
    if (given.some((text) => text !== undefined && typeof text !== 'string')) {
      assertSame(answer, INVALID_LOGIN, 'the answer');
      return;
    }
    if (given[0] !== 'admin' || given[1] !== 'p\u{e9}') assertSame(answer, INVALID_CREDENTIALS, 'the answer');
    else if (answer.status !== 200) throw new Error('the right password is refused');
    assertSame(address, nearestStranger(PEERS[peer] as string, forwarded), 'the address');
  },
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
