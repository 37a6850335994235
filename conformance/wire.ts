// Owns: the rules of the wire, byte by byte: requests that a client, a proxy or an attacker may send, but no HTTP library
// would. The connection stays usable if the end of the request is known, and closes otherwise. No partial request is
// stored.

import { randomUUID } from 'node:crypto';
import type { Answer } from './answers.ts';
import { EMPTY, LOGIN_LIMIT } from './cases.ts';
import { type Expected, expect, expectAnswer, expectEqual } from './complaint.ts';
import { CHUNKED, unreadable } from './raw-requests.ts';
import { full, type Rule } from './rule.ts';
import type { Service } from './service.ts';
import {
  BAD_REQUEST,
  BOOK_NOT_FOUND,
  created,
  HEADERS_TOO_LARGE,
  INVALID,
  INVALID_LOGIN,
  INVALID_TOKEN,
  METHOD_NOT_ALLOWED,
  NOT_FOUND,
  retrieved,
  TOKEN_REQUIRED,
  TOO_LARGE,
  updated,
  WRONG_LOGIN,
} from './words.ts';

const MEBIBYTE = 1024 * 1024;
const BODY_LIMIT = MEBIBYTE;
const HEADER_LIMIT = 16_384;
const MOST_LINES = 1000;

/** More answers than any exchange here has, so that it reads until the service closes the connection. */
const UNTIL_CLOSED = Number.POSITIVE_INFINITY;

/** Far more than sockets buffer. */
const MUCH = 'x'.repeat(4 * MEBIBYTE);

type Parts = { readonly body?: string; readonly headers?: string };

/** The header lines of every request. */
const hostOf = ({ host }: Service) => `Host: ${host}\r\n`;
const authorizationOf = ({ token }: Service) => `Authorization: ${token}\r\n`;

/** The bytes of a request with a valid token. */
function compose(
  service: Service,
  method: string,
  path: string,
  { body = '', headers = '' }: Parts = {},
): string {
  const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return composePublic(service, method, path, `${authorizationOf(service)}${headers}${length}`, body);
}

/** The bytes of a request without a token, and without headers other than Host and those given. */
function composePublic(service: Service, method: string, path: string, headers: string, body = ''): string {
  return `${method} ${path} HTTP/1.1\r\n${hostOf(service)}${headers}\r\n${body}`;
}

export const WIRE: readonly Rule[] = [
  full.writing(
    'rule 20',
    'requests that are not valid HTTP get 400 and close the connection, and the request after them is not carried out',
    async (service) => {
      const book = await service.create({ title: 'still there' });
      const remove = Buffer.from(compose(service, 'DELETE', `/book/${book.id}`));
      for (const [name, bytes] of unreadable(hostOf(service))) {
        const sent = Buffer.concat([Buffer.from(bytes as Uint8Array), remove]);
        const [answer, ...others] = await service.exchange(sent, 2);
        expectAnswer(answer, BAD_REQUEST, name);
        expectEqual(answer?.headers.get('connection'), 'close', 'connection', answer);
        expectEqual(others.length, 0, `Answers after ${name}`, others[0]);
      }
      expectAnswer(await service.request('GET', `/book/${book.id}`), retrieved(book));
    },
  ),
  full('rule 20', 'CONNECT, and methods of protocols that look like HTTP, get 400', async (service) => {
    const methods = ['DESCRIBE', 'ANNOUNCE', 'SETUP', 'PLAY', 'PAUSE', 'TEARDOWN', 'RECORD', 'FLUSH'];
    for (const method of methods) {
      for (const path of ['/books', '/nowhere', '/%zz']) {
        await expectFirst(service, `${method} ${path} RTSP/1.0\r\n${hostOf(service)}\r\n`, BAD_REQUEST);
      }
    }
    for (const target of ['elsewhere.test:443', '/books']) {
      const answers = await service.exchange(composePublic(service, 'CONNECT', target, ''), UNTIL_CLOSED);
      expectStatuses(answers, [400]);
      expectAnswer(answers[0], BAD_REQUEST);
    }
  }),
  full.writing('rule 20', 'a truncated request gets 400', async (service) => {
    const mark = randomUUID();
    const body = `{"title":"${mark}"}`;
    const half = compose(service, 'POST', '/book', { body }).slice(0, -4);
    const size = body.length.toString(16);
    const chunk = `${compose(service, 'POST', '/book', { headers: CHUNKED })}${size}\r\n${body}\r\n`;
    for (const bytes of ['GET /bo', half, chunk]) {
      const connection = service.connect();
      connection.end(bytes);
      const [answer] = await connection.answers(1);
      expectAnswer(answer, BAD_REQUEST);
      await connection.untilClosed();
    }
    expectEqual(await service.listed(mark), [], 'Books of truncated requests');
  }),
  full('rule 20', 'a missing or second Host gets 400 on every path; HTTP/1.0 needs none', async (service) => {
    const host = hostOf(service);
    const authorization = authorizationOf(service);
    for (const path of ['/books', '/book/1', '/token', '/nowhere', '/%zz']) {
      for (const hosts of ['', host + host, `${host}host: other.test\r\n`, `${host}X: y\r\nHOST:\r\n`]) {
        const bytes = `GET ${path} HTTP/1.1\r\n${authorization}${hosts}\r\n`;
        const answers = await service.exchange(bytes + compose(service, 'GET', service.noBook), 2);
        expectAnswer(answers[0], BAD_REQUEST);
        expectEqual(answers.length, 1, 'The number of answers', answers[1]);
      }
    }
    const twice = `GET ${service.noBook} HTTP/1.0\r\n${host}${host}${authorization}\r\n`;
    await expectFirst(service, twice, BAD_REQUEST);
    const old = await service.exchange(
      `GET ${service.noBook} HTTP/1.0\r\n${authorization}\r\n`,
      UNTIL_CLOSED,
    );
    // Rule 33 holds while only this machine is served.
    expectStatuses(old, [old[0]?.status === 421 ? 421 : 404]);
  }),
  full.writing('rules 20 and 21', 'a target may be absolute, and .. is not resolved', async (service) => {
    const book = await service.create({ title: 'absolute' });
    const origin = `http://${service.host}`;
    const unknown = ['/../books', '/./books', '/book/../books', '/%2e%2e/books', '/books/..', '/books;x=1'];
    const targets: [string, Expected][] = [
      [`${origin}/books`, { status: 200, message: 'Books retrieved successfully' }],
      [`${origin}/book/${book.id}?x=y`, retrieved(book)],
      ...[`${origin}/book/abc`, '/book/..', '/book/1%2f2'].map((path): [string, Expected] => [
        path,
        BOOK_NOT_FOUND,
      ]),
      ...[`${origin}/nowhere`, origin, '*', '/book\\1', '/book%2f1', ...unknown].map(
        (path): [string, Expected] => [path, NOT_FOUND],
      ),
      ...[`${origin}/%zz`, '\\books'].map((path): [string, Expected] => [path, BAD_REQUEST]),
    ];
    for (const [target, expected] of targets)
      await expectFirst(service, compose(service, 'GET', target), expected);
  }),
  full.writing(
    'rule 20',
    'a request with Upgrade is answered as the last of its connection',
    async (service) => {
      const { id } = await service.create({});
      const websocket = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
      const http2 = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
      for (const headers of [websocket, http2]) {
        const upgrading = compose(service, 'GET', `/book/${id}`, { headers });
        const [answer, ...others] = await service.exchange(upgrading + compose(service, 'GET', '/books'), 2);
        expectAnswer(answer, { status: 200, message: 'Book retrieved successfully' });
        expect(others.length === 0, 'The connection ends after the answer.');
      }
    },
  ),
  full.writing('C2', 'a client that expects 100 Continue before its body gets it', async (service) => {
    const body = '{"title":"expected"}';
    const bytes = compose(service, 'POST', '/book', { body, headers: 'Expect: 100-continue\r\n' });
    const connection = service.connect();
    await connection.send(bytes.slice(0, -body.length));
    await connection.untilReceived('\r\n\r\n');
    expect(/^HTTP\/1\.1 100 Continue\r\n/.test(connection.received), 'The client gets 100 Continue.');
    await connection.send(body);
    const [answer] = await connection.answers(1);
    expectAnswer(answer, created({ id: answer?.data?.id, ...EMPTY, title: 'expected' }));
    connection.close();
  }),
  full.writing('rule 20', 'an unknown expectation is ignored', async (service) => {
    const headers = 'Expect: something-unknown\r\n';
    await expectFirst(service, compose(service, 'POST', '/book', { body: '{}', headers }), {
      status: 201,
      message: 'Book created successfully',
    });
  }),
  full.writing('C2', 'a body may arrive byte by byte, in chunks of any size', async (service) => {
    const text = '{"title":"Ὀδύσσεια","year":-700}';
    const whole = Buffer.from(compose(service, 'POST', '/book', { body: text }));
    const bytes = [...Buffer.from(text)].map((byte) => Buffer.from([byte]));
    const chunks = bytes.map((byte) => `01;name="value"\r\n${byte.toString('latin1')}\r\n`).join('');
    const chunked = `${compose(service, 'POST', '/book', { headers: CHUNKED })}${chunks}0\r\nX: y\r\n\r\n`;
    for (const request of [whole, Buffer.from(chunked, 'latin1')]) {
      const connection = service.connect();
      for (const byte of request) await connection.send(Buffer.from([byte]));
      const [answer] = await connection.answers(1);
      const book = { id: answer?.data?.id, ...EMPTY, title: 'Ὀδύσσεια', year: -700 };
      expectAnswer(answer, created(book));
      expectAnswer(await service.request('GET', `/book/${book.id}`), retrieved(book));
      connection.close();
    }
  }),
  full.writing('rules 9 and 20', 'pipelined requests are answered in order', async (service) => {
    const { id } = await service.create({ title: 'first' });
    const second = { id, ...EMPTY, title: 'second' };
    const requests: [string, Expected][] = [
      [compose(service, 'PUT', `/book/${id}`, { body: '{"title":"second"}' }), updated(second)],
      [compose(service, 'GET', service.noBook), BOOK_NOT_FOUND],
      [compose(service, 'PATCH', '/books'), METHOD_NOT_ALLOWED],
      [compose(service, 'POST', '/book', { body: '{' }), INVALID],
      [composePublic(service, 'GET', '/books', ''), TOKEN_REQUIRED],
      [compose(service, 'GET', `/book/${id}`), retrieved(second)],
      [compose(service, 'GET', '/%zz'), BAD_REQUEST],
      [composePublic(service, 'POST', '/token', 'Content-Length: 2\r\n', '[]'), INVALID_LOGIN],
      [
        compose(service, 'POST', '/book', { body: '{}' }),
        { status: 201, message: 'Book created successfully' },
      ],
      [compose(service, 'GET', '/nowhere'), NOT_FOUND],
    ];
    const rounds = 20;
    const bytes = requests.map(([request]) => request).join('');
    const answers = await service.exchange(bytes.repeat(rounds), requests.length * rounds);
    expectEqual(answers.length, requests.length * rounds, 'The number of answers');
    for (const [position, answer] of answers.entries()) {
      const [, expected] = requests[position % requests.length] as [string, Expected];
      expectAnswer(answer, expected, `answer ${position}`);
    }
  }),
  full.writing('rule 20', 'a refusal never overtakes the answers before it', async (service) => {
    const { id } = await service.create({});
    const body = '{"title":"before"}';
    const create = compose(service, 'POST', '/book', { body });
    const update = compose(service, 'PUT', `/book/${id}`, { body });
    const badChunk = `${CHUNKED}\r\nzz\r\n`;
    const host = hostOf(service);
    const refused: [string, Expected][] = [
      ['garbage\r\n\r\n', BAD_REQUEST],
      [`GET /books HTTP/1.1\r\n${host}X: ${'x'.repeat(20_000)}\r\n\r\n`, HEADERS_TOO_LARGE],
      [`POST /token HTTP/1.1\r\n${host}${badChunk}`, BAD_REQUEST],
      [`POST /book HTTP/1.1\r\n${host}${badChunk}`, BAD_REQUEST],
      [composePublic(service, 'CONNECT', 'elsewhere.test:443', ''), BAD_REQUEST],
    ];
    for (const [bytes, expected] of refused) {
      const answers = await service.exchange(create + update + bytes, UNTIL_CLOSED);
      expectStatuses(answers, [201, 200, expected.status]);
      expectAnswer(answers[2], expected);
    }
  }),
  full.writing('C2', 'a client that closes its side after a request gets its answer', async (service) => {
    const connection = service.connect();
    connection.end(compose(service, 'POST', '/book', { body: '{}' }));
    const [answer] = await connection.answers(1);
    expectAnswer(answer, { status: 201, message: 'Book created successfully' });
    await connection.untilClosed();
  }),
  full.writing('rule 20', 'a refusal with its end known leaves the connection usable', async (service) => {
    const book = await service.create({});
    const unread = `Content-Length: ${MUCH.length}\r\n`;
    const unreadBody = ' '.repeat(MUCH.length);
    const refused: [string, Expected][] = [
      [composePublic(service, 'GET', '/books', ''), TOKEN_REQUIRED],
      [composePublic(service, 'GET', '/books', 'Authorization: x\r\n'), INVALID_TOKEN],
      [composePublic(service, 'POST', '/book', unread, unreadBody), TOKEN_REQUIRED],
      [composePublic(service, 'POST', '/nowhere', unread, unreadBody), NOT_FOUND],
      [composePublic(service, 'PATCH', '/book', unread, unreadBody), METHOD_NOT_ALLOWED],
      [composePublic(service, 'POST', '/%zz', unread, unreadBody), BAD_REQUEST],
      [composePublic(service, 'POST', '/token', unread, unreadBody), TOO_LARGE],
      [compose(service, 'POST', '/book', { body: unreadBody }), TOO_LARGE],
      [compose(service, 'PUT', '/book/abc', { body: unreadBody }), BOOK_NOT_FOUND],
      [compose(service, 'DELETE', '/book/abc', { body: unreadBody }), BOOK_NOT_FOUND],
      [compose(service, 'POST', '/book', { body: '{' }), INVALID],
      [compose(service, 'POST', '/book', { body: ' ' }), INVALID],
      [compose(service, 'POST', '/book', { headers: 'Content-Length: 0\r\n' }), INVALID],
      [compose(service, 'POST', '/book'), INVALID],
    ];
    const connection = service.connect();
    let received = 0;
    for (const [bytes, expected] of refused) {
      await connection.send(bytes);
      expectAnswer((await connection.answers(received + 1))[received], expected);
      await connection.send(compose(service, 'GET', `/book/${book.id}`));
      expectAnswer((await connection.answers(received + 2))[received + 1], retrieved(book));
      received += 2;
    }
    connection.close();
  }),
  full('rule 22', 'request line and headers of 16 KiB are read; 431 is for more', async (service) => {
    const start = composePublic(service, 'GET', '/nowhere', 'X: ');
    const value = 'x'.repeat(HEADER_LIMIT - start.length - 2);
    const whole = composePublic(service, 'GET', '/nowhere', `X: ${value}\r\n`);
    expectEqual(whole.length, HEADER_LIMIT, 'The length of the request');
    await expectFirst(service, whole, NOT_FOUND);
    await expectHeaderLimit(service, HEADER_LIMIT);
  }),
  full('rule 22', '1,000 header lines are read, one more gets 431', async (service) => {
    // One line is Host.
    const lines = (count: number) => composePublic(service, 'GET', '/nowhere', 'X: y\r\n'.repeat(count - 1));
    await expectFirst(service, lines(MOST_LINES), NOT_FOUND);
    await expectFirst(service, lines(MOST_LINES + 1), HEADERS_TOO_LARGE);
  }),
  full('rule 22', 'trailers of 16 KiB get 431', async (service) => {
    const trailers = `0\r\nX: ${'x'.repeat(HEADER_LIMIT)}\r\n\r\n`;
    const bytes = `${composePublic(service, 'POST', '/token', CHUNKED)}${trailers}`;
    const answers = await service.exchange(bytes, UNTIL_CLOSED);
    expectStatuses(answers, [431]);
    expectAnswer(answers[0], HEADERS_TOO_LARGE);
  }),
  full('rule 24', 'an answer has the id of its request, unless that has odd characters', async (service) => {
    const kept = ['a', '7', '-', 'AZaz09_.:-', 'x'.repeat(128)];
    const replaced = ['x'.repeat(129), 'a b', 'a/b', 'a,b', 'a@b', 'a;b', 'a"b', '\u00e9', '\u00b2', ''];
    for (const sent of [...kept, ...replaced]) {
      const bytes = composePublic(service, 'GET', '/nowhere', `X-Request-Id: ${sent}\r\n`);
      const [answer] = await service.exchange(Buffer.from(bytes, 'latin1'));
      const id = answer?.headers.get('x-request-id') ?? '';
      if (kept.includes(sent)) expectEqual(id, sent, 'x-request-id', answer);
      else expect(/^[\w.:-]{1,128}$/.test(id) && id !== sent, 'The id is replaced.', answer);
    }
  }),
  full(
    'rules 20 and 22',
    'a client that sends far more before it reads gets the refusal',
    async (service) => {
      const length = `Content-Length: ${MUCH.length}\r\n`;
      const close = `Connection: close\r\n${length}`;
      const refused: [string, Expected][] = [
        [composePublic(service, 'GET', '/books', `X: ${MUCH}\r\n`), HEADERS_TOO_LARGE],
        [composePublic(service, 'GET', '/books', 'X: y\r\n'.repeat(MEBIBYTE)), HEADERS_TOO_LARGE],
        [composePublic(service, 'GET', `/${MUCH}`, ''), HEADERS_TOO_LARGE],
        [`GET /${MUCH}`, HEADERS_TOO_LARGE],
        [`garbage ${MUCH}`, BAD_REQUEST],
        [`${compose(service, 'POST', '/book', { headers: CHUNKED })}zz\r\n${MUCH}`, BAD_REQUEST],
        [composePublic(service, 'CONNECT', 'elsewhere.test:443', '', MUCH), BAD_REQUEST],
        [composePublic(service, 'POST', '/token', close, MUCH), TOO_LARGE],
        [composePublic(service, 'POST', '/book', close, MUCH), TOKEN_REQUIRED],
        [composePublic(service, 'POST', '/nowhere', close, MUCH), NOT_FOUND],
        [`POST /token HTTP/1.0\r\n${hostOf(service)}${length}\r\n${MUCH}`, TOO_LARGE],
      ];
      for (const [bytes, expected] of refused) {
        const connection = service.connect();
        connection.socket.pause();
        await connection.send(bytes);
        connection.socket.resume();
        const [answer] = await connection.answers(1);
        expectAnswer(answer, expected);
        await connection.untilClosed(); // without a reset
      }
    },
  ),
  full.writing('rule 22', '1 MiB is read, one byte more gets 413, however it is framed', (service) =>
    expectBodyLimit(service, BODY_LIMIT),
  ),
  full('rule 22', 'a login of 4 KiB is read, one byte more gets 413', (service) =>
    expectLimit(service, 'POST', '/token', LOGIN_LIMIT, WRONG_LOGIN),
  ),
  full('rule 22', 'an announced body that is too large gets 413 before it is sent', async (service) => {
    for (const length of ['1048577', '1000000000000', '18446744073709551615']) {
      const bytes = compose(service, 'POST', '/book', { headers: `Content-Length: ${length}\r\n` });
      await expectFirst(service, bytes, TOO_LARGE);
    }
  }),
  full.writing('U1, rule 9', 'a PUT to a missing book gets 404, however large', async (service) => {
    const body = bodyOf(BODY_LIMIT + 1);
    for (const bytes of [
      compose(service, 'PUT', service.noBook, { body }),
      compose(service, 'PUT', service.noBook, { headers: CHUNKED }) + inChunks(body),
    ]) {
      await expectFirst(service, bytes, BOOK_NOT_FOUND);
    }
  }),
  full('A3', 'a request without a token is answered before its body is sent', async (service) => {
    const headers = `Content-Length: ${100 * MEBIBYTE}\r\n`;
    await expectFirst(service, composePublic(service, 'POST', '/book', headers), TOKEN_REQUIRED);
  }),
  full.writing('rule 20', 'garbage after a request does not cut a long list short', async (service) => {
    // Together far more than two sockets buffer, so that the list is in progress when the garbage is read.
    const books = Array.from({ length: 30 }, () => ({ title: 'x'.repeat(400_000) }));
    for (const book of books) await service.create(book);
    const whole = await service.list();
    const bytes = `${compose(service, 'GET', '/books')}garbage\r\n\r\n`;
    const [list, refusal] = await service.exchange(bytes, UNTIL_CLOSED);
    expectAnswer(list, { status: 200, message: 'Books retrieved successfully' });
    expectEqual(list?.data?.length, whole.length, 'The books in the list', refusal);
    expectAnswer(refusal, BAD_REQUEST);
  }),
];

/** The limit counts the path and the names and values of headers, but not spaces, colons and line ends. */
export async function expectHeaderLimit(service: Service, limit: number): Promise<void> {
  const others = 'Host'.length + service.host.length;
  const requests = (bytes: number): [string, string][] => [
    ['a path', composePublic(service, 'GET', `/${'x'.repeat(bytes - others - 1)}`, '')],
    [
      'a value',
      composePublic(service, 'GET', '/nowhere', `X: ${'x'.repeat(bytes - others - '/nowhereX'.length)}\r\n`),
    ],
    [
      'a name',
      composePublic(service, 'GET', '/nowhere', `${'x'.repeat(bytes - others - '/nowherex'.length)}: x\r\n`),
    ],
  ];
  for (const [name, bytes] of requests(limit - 1)) {
    await expectFirst(service, bytes, NOT_FOUND, name);
  }
  for (const [name, bytes] of requests(limit)) {
    const [answer] = await service.exchange(bytes);
    expectAnswer(answer, HEADERS_TOO_LARGE, name);
    expectEqual(answer?.headers.get('connection'), 'close', 'connection', answer);
  }
}

/** A body of `limit` bytes is read, and one byte more is refused, announced or in chunks. */
export async function expectBodyLimit(service: Service, limit: number): Promise<void> {
  const { id } = await service.create({});
  const created = { status: 201, message: 'Book created successfully' };
  await expectLimit(service, 'POST', '/book', limit, created);
  await expectLimit(service, 'PUT', `/book/${id}`, limit, {
    status: 200,
    message: 'Book updated successfully',
  });
}

async function expectLimit(
  service: Service,
  method: string,
  path: string,
  limit: number,
  expected: Expected,
): Promise<void> {
  for (const [body, answered] of [
    [bodyOf(limit), expected],
    [bodyOf(limit + 1), TOO_LARGE],
  ] as const) {
    for (const bytes of [
      compose(service, method, path, { body }),
      compose(service, method, path, { headers: CHUNKED }) + inChunks(body),
    ]) {
      await expectFirst(service, bytes, answered, `a body of ${body.length} bytes`);
    }
  }
}

/** A valid body of exactly `size` bytes. */
function bodyOf(size: number): string {
  return `{"title":"${'x'.repeat(size - '{"title":""}'.length)}"}`;
}

function inChunks(body: string): string {
  const half = body.length >> 1;
  return [body.slice(0, half), body.slice(half), '']
    .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
    .join('');
}

/** Fails unless the first answer to these bytes is this one. */
async function expectFirst(service: Service, bytes: string, expected: Expected, about = ''): Promise<void> {
  const [answer] = await service.exchange(bytes);
  expectAnswer(answer, expected, about);
}

function expectStatuses(answers: readonly Answer[], expected: readonly number[]): void {
  const statuses = answers.map(({ status }) => status);
  expectEqual(statuses, expected, 'The statuses of all answers on the connection', answers.at(-1));
}
