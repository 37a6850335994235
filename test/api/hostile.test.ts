// Clients that use HTTP as none should: they disconnect half way, ask for tunnels, send no whole request or read no answer; and
// the limits of the wire. The service has short times where a test waits for their end; those of the product are in
// test/project/times.test.ts. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { before, describe, type TestContext, test } from 'node:test';
import { CHUNKED } from '../../conformance/raw-requests.ts';
import { expectBodyLimit, expectHeaderLimit } from '../../conformance/wire.ts';
import { Tokens } from '../../src/auth/tokens.ts';
import { TIMES } from '../../src/times.ts';
import { fill } from '../support/books.ts';
import {
  assertRefusal,
  Client,
  Connection,
  exchange,
  parseAnswers,
  readEnvelope,
  type Target,
} from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { assertDescribed } from '../support/description.ts';
import { operationsOf } from '../support/operations.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { compose } from '../support/raw-requests.ts';
import {
  ENVIRONMENT,
  pageOf,
  SECRET,
  SQLITE,
  servedAt,
  startTestService,
  startWithoutLogin,
} from '../support/service.ts';
import { timesWith } from '../support/times.ts';
import { verifiedAt } from '../support/verified.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds of a time limit, and between two looks at it. */
const LIMIT = 300;
const CHECK = 50;

/** Together they far exceed the buffers of two sockets. */
const LARGE_BOOKS = Array.from({ length: 12 }, (_, position) => {
  return { id: position + 1, title: 'x'.repeat(1_000_000), author: '', year: 0 };
});

/** Of every operation, and of none. */
const REQUESTS = [
  ...['POST /token', 'POST /book', 'GET /books', 'HEAD /books', 'POST /books', 'GET /book/1', 'HEAD /book/1'],
  ...['PUT /book/1', 'DELETE /book/1', 'GET /nowhere'],
];

describe('hostile clients', () => {
  let service: CommandHere;
  let client: Client;

  before(async () => {
    service = await start();
    client = await Client.logIn(service);
  });

  test('rules 11, 23 and 31: clients that disconnect in the middle of a request leave nothing behind; connections are counted', async () => {
    const held = [service, pageOf(service)].map((target) => new Connection(target));
    for (const connection of held) {
      await connection.send(compose('GET', '/nowhere'));
      await connection.answers(1);
    }
    const before = await measured(service, 'http_connections');
    assert.ok(before >= 2);
    const { token } = client;
    const remove = compose('DELETE', '/book/1', { token, headers: CHUNKED });
    assertRefusal((await exchange(service, `${remove}zz\r\n`))[0], 400, 'Bad request');
    for (const beginning of [
      `${remove}1\r\n `,
      'GET /bo',
      compose('GET', '/books', { token }),
      compose('GET', '/book/1', { token }).repeat(5),
      `${compose('POST', '/book', { token, headers: 'Content-Length: 100000\r\n' })}{"title":"left"}`,
      `${compose('POST', '/book', { token, headers: CHUNKED })}10\r\n{"title":"left"}\r\n`,
    ]) {
      for (const leave of ['resetAndDestroy', 'destroy'] as const) {
        for (const connection of Array.from({ length: 5 }, () => new Connection(service))) {
          connection.socket.pause();
          await connection.send(beginning);
          connection.socket[leave]();
          await connection.closed;
        }
      }
    }
    await waitUntil(async () => (await measured(service, 'http_connections')) <= before);
    for (const { socket } of held) socket.destroy();
    await waitUntil(async () => (await measured(service, 'http_connections')) <= before - 2);
    assert.equal((await client.list()).length, LARGE_BOOKS.length);
    assert.equal((await exchange(service, `${remove}1\r\n \r\n0\r\n\r\n`))[0]?.status, 200);
    assert.equal(await measured(service, 'store_errors_total'), 0);
  });

  test('rules 20 and 27: a client that asks for a tunnel disturbs neither others, nor its earlier answers, nor a stop', async (context) => {
    const own = await start();
    const tunnel = compose('CONNECT', 'elsewhere.test:443');
    for (const target of [own, operationsOf(own)]) {
      const connection = new Connection(target);
      await connection.send(tunnel);
      await connection.answers(1);
      connection.socket.resetAndDestroy();
    }
    const { token } = await Client.logIn(own);
    const open = (request: string) => {
      const connection = new Connection(own);
      context.after(() => connection.socket.destroy());
      connection.socket.pause();
      connection.socket.write(request + tunnel);
      return connection;
    };
    const book = compose('GET', '/book/1', { token });
    const list = open(compose('GET', '/books', { token }));
    await waitUntil(async () => (await measured(own, 'sqlite_open_lists')) === 1);
    assert.equal((await exchange(own, book))[0]?.status, 200);
    list.socket.resume();
    const [all, refusal] = await list.answers(2);
    assert.equal(readEnvelope(all?.body ?? '', 200).data.length, LARGE_BOOKS.length);
    assert.equal(refusal?.status, 400);
    const reader = open(book.repeat(LARGE_BOOKS.length));
    assert.equal((await exchange(own, book))[0]?.status, 200);
    const ended = own.stop();
    reader.socket.resume();
    assert.equal((await ended).code, 0);
  });

  test('rule 20: requests that reach no route are logged with the ids of their answers', async () => {
    for (const [bytes, status] of [
      ['garbage\r\n\r\n', 400],
      [compose('GET', '/', { headers: `X: ${'x'.repeat(20_000)}\r\n` }), 431],
      [compose('CONNECT', 'elsewhere.test:443'), 400],
      ['DESCRIBE / RTSP/1.0\r\nHost: books.test\r\n\r\n', 400],
    ] as const) {
      const [answer] = await exchange(service, bytes);
      assert.equal(answer?.status, status);
      const reqId = answer?.headers['x-request-id'];
      const logged = () => service.log.map((line) => JSON.parse(line)).find((line) => line.reqId === reqId);
      await waitUntil(() => logged() !== undefined);
      const { level, msg, status: noted } = logged();
      assert.deepEqual([level, msg, noted], ['info', 'request', status]);
    }
  });
});

describe('limits of the wire', () => {
  for (const [size, bodyLimit, headerLimit] of [
    ['smaller', 1000, 2048],
    ['larger', 1_500_000, 100_000],
  ] as const) {
    test(`rule 22: a ${size} BODY_LIMIT and HEADER_LIMIT are the limits`, async (context) => {
      const env = { BODY_LIMIT: String(bodyLimit), HEADER_LIMIT: String(headerLimit) };
      const limited = await startTestService(await SQLITE.freshUrl(), env);
      const verified = verifiedAt(limited);
      context.after(() => verified.close());
      await verified.logIn();
      await expectBodyLimit(verified, bodyLimit);
      await expectHeaderLimit(verified, headerLimit);
    });
  }

  test('rules 22 and 31: a request that is not complete in time gets 408, as described, if it has no answer yet', async (context) => {
    const target = await startHurried(context, { headers: LIMIT, wholeRequest: LIMIT, check: CHECK });
    const token = new Tokens(SECRET, TIMES.auth).issue();
    const late = 'Content-Length: 9999999\r\n';
    const announced = 'Content-Length: 1000\r\n';
    await Promise.all(
      [
        ...['GET /bo', compose('POST', '/token', { headers: announced })].map((sent) => [sent] as const),
        [`${compose('POST', '/book', { token, headers: CHUNKED })}1\r\n \r\n`],
        // Others are answered before their bodies have arrived, or a slow machine is late: then there is one answer.
        [`${compose('GET', '/nowhere')}GET /bo`, '404 408'],
        [compose('POST', '/book', { headers: announced }), '401'],
        [compose('POST', '/book', { token, headers: late }), '413'],
      ].map(async ([sent = '', statuses = '408']) => {
        const answers = await answersWhenCut(target, sent);
        const seen = answers.map(({ status }) => status).join(' ');
        assert.ok(['408', statuses].includes(seen), `${seen} to ${sent}`);
      }),
    );
    await Promise.all(
      REQUESTS.map(async (line) => {
        const [method = '', path = ''] = line.split(' ');
        const [answer] = await answersWhenCut(target, `${line} HTTP/1.1\r\nHost: books.test\r\n`);
        assert.equal(answer?.status, 408);
        assertDescribed({ method, path, requestHeaders: {}, requestBody: new Uint8Array(), ...answer });
      }),
    );
  });

  test('rule 22: readers that read nothing, or a few bytes at a time, are cut', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    await fill(dbUrl, LARGE_BOOKS);
    const target = await startHurried(context, { reader: LIMIT, check: CHECK }, dbUrl);
    const token = new Tokens(SECRET, TIMES.auth).issue();
    const book = compose('GET', '/book/1', { token });
    for (const [request, bytes] of [
      [compose('GET', '/books', { token }), 0],
      [compose('GET', '/books', { token }), 10],
      [book.repeat(LARGE_BOOKS.length), 0], // with a Content-Length, pipelined
    ] as const) {
      const { socket } = new Connection(target);
      socket.pause();
      socket.write(request);
      await waitUntil(() => {
        if (bytes > 0) socket.read(bytes);
        if (socket.writable) socket.write('\r\n'); // only by that does it notice the end of its connection
        return socket.destroyed;
      });
    }
  });

  test('rule 22: a connection without another request is closed in time, as announced by Keep-Alive', async (context) => {
    const target = await startHurried(context, { keepAlive: 1000, check: CHECK });
    const [answer, ...others] = await answersWhenCut(target, compose('GET', '/nowhere'));
    assert.equal(answer?.headers['keep-alive'], 'timeout=1');
    assert.deepEqual(others, []);
  });
});

/** Starts the command with large books. */
async function start(): Promise<CommandHere> {
  const dbUrl = await SQLITE.freshUrl();
  await fill(dbUrl, LARGE_BOOKS);
  return startHere({ ...ENVIRONMENT, DB_URL: dbUrl, ADMIN_PORT: '0', LOG_LEVEL: 'info' });
}

async function measured(service: CommandHere, name: string): Promise<number> {
  return sumOf(await scrape(operationsOf(service).url), `book_catalogue_${name}`);
}

/** Starts a service that is too hurried for a login. */
async function startHurried(
  context: TestContext,
  http: Record<string, number>,
  dbUrl?: string,
): Promise<Target> {
  const url = dbUrl ?? (await SQLITE.freshUrl());
  const service = await startWithoutLogin(url, {}, process.stderr, timesWith({ http }));
  context.after(() => service.close());
  return servedAt(service.url);
}

/** All that a client is answered before the service ends its connection. */
async function answersWhenCut(target: Target, sent: string) {
  const connection = new Connection(target);
  await connection.send(sent);
  assert.equal(await connection.closed, undefined);
  return parseAnswers(connection.received);
}
