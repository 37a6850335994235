// The wire, byte by byte: requests that a client, a proxy or an attacker may send, but no HTTP library would. The
// answer is always an envelope. The connection stays usable if the end of the request is known, and closes otherwise.
// No partial request is ever stored. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertEnvelope, assertRefusal } from '../support/answers.ts';
import { Connection, exchange } from '../support/client.ts';
import { CHUNKED, compose as composeFor, HOST, unreadable } from '../support/raw-requests.ts';
import { type RunningService, SQLITE, startTestService } from '../support/service.ts';

const MEBIBYTE = 1024 * 1024;

/** More answers than any exchange here has, so that it reads until the service closes the connection. */
const UNTIL_CLOSED = Number.POSITIVE_INFINITY;

describe('the wire', () => {
  let service: RunningService;
  let authorization: string;

  before(async () => {
    service = await startTestService(await SQLITE.freshUrl());
    authorization = `Authorization: ${service.client.token}\r\n`;
  });
  after(() => service.stop());

  /** The bytes of a request with a valid token. */
  function compose(method: string, path: string, parts: { body?: string; headers?: string } = {}): string {
    return composeFor(method, path, { token: service.client.token, ...parts });
  }

  /** The bytes of a request without a token, and without headers other than Host and those given. */
  function composePublic(method: string, path: string, headers: string, body = ''): string {
    return `${method} ${path} HTTP/1.1\r\n${HOST}${headers}\r\n${body}`;
  }

  describe('requests that are not valid HTTP', () => {
    test('rule 20: are 400 and close the connection, and the request after them is not carried out', async () => {
      const { id } = await service.client.create({ title: 'still there' });
      const remove = compose('DELETE', `/book/${id}`);
      for (const [name, bytes] of unreadable(HOST)) {
        const [answer, ...others] = await exchange(service, bytesOf(bytes, remove), 2);
        assertRefusal(answer, 400, 'Bad request', name);
        assert.equal(answer?.headers.connection, 'close', name);
        assert.deepEqual(others, [], name);
      }
      const { data } = await service.client.request('GET', `/book/${id}`);
      assert.equal(data.title, 'still there');
    });

    test('rule 20: methods of protocols that only look like HTTP are 400', async () => {
      const methods = ['DESCRIBE', 'ANNOUNCE', 'SETUP', 'PLAY', 'PAUSE', 'TEARDOWN', 'RECORD', 'FLUSH'];
      for (const method of methods) {
        for (const path of ['/books', '/nowhere', '/%zz']) {
          const [answer] = await exchange(service, `${method} ${path} RTSP/1.0\r\n${HOST}\r\n`);
          assertRefusal(answer, 400, 'Bad request', `${method} ${path}`);
        }
      }
    });

    test('rule 20: a truncated request is 400', async () => {
      const body = '{"title":"broken off"}';
      const half = compose('POST', '/book', { body }).slice(0, -4);
      const chunk = `${compose('POST', '/book', { headers: CHUNKED })}16\r\n${body}\r\n`;
      for (const bytes of ['GET /bo', half, chunk]) {
        const connection = new Connection(service);
        connection.socket.end(bytes);
        const [answer] = await connection.answers(1);
        assertRefusal(answer, 400, 'Bad request', bytes);
        assert.equal(await connection.closed, undefined);
      }
      const titles = (await service.client.list()).map(({ title }) => title);
      assert.ok(!titles.includes('broken off'));
    });

    test('rule 20: a missing or second Host is 400 on every path; HTTP/1.0 needs none', async () => {
      for (const path of ['/books', '/book/1', '/token', '/nowhere', '/%zz']) {
        for (const hosts of ['', HOST + HOST, `${HOST}host: other.test\r\n`, `${HOST}X: y\r\nHOST:\r\n`]) {
          const bytes = `GET ${path} HTTP/1.1\r\n${authorization}${hosts}\r\n`;
          const answers = await exchange(service, bytes + compose('GET', '/books'), 2);
          assert.equal(answers.length, 1, 'the request after it was answered');
          assertRefusal(answers[0], 400, 'Bad request', `${path} ${hosts}`);
        }
      }
      const [twice] = await exchange(service, `GET /books HTTP/1.0\r\n${HOST}${HOST}${authorization}\r\n`);
      assertRefusal(twice, 400, 'Bad request');
      const old = await exchange(service, `GET /books HTTP/1.0\r\n${authorization}\r\n`, UNTIL_CLOSED);
      assert.deepEqual(
        old.map(({ status }) => status),
        [200],
      );
    });

    test('rule 20: an invalid percent-escape in a path is 400, with or without a token', async () => {
      for (const path of ['/%', '/%zz', '/book/%', '/book/%2', '/book/%g1', '/book/%e9', '/book/%c3%28']) {
        for (const bytes of [compose('GET', path), composePublic('DELETE', path, '')]) {
          const [answer] = await exchange(service, bytes);
          assertRefusal(answer, 400, 'Bad request', path);
        }
      }
    });

    test('rule 20: CONNECT is 400', async () => {
      for (const target of ['elsewhere.test:443', '/books']) {
        const answers = await exchange(service, composePublic('CONNECT', target, ''), UNTIL_CLOSED);
        assert.equal(answers.length, 1);
        assertRefusal(answers[0], 400, 'Bad request', target);
      }
    });
  });

  describe('request targets', () => {
    test('rule 20: a target may be absolute, as a proxy sends it', async () => {
      const { id } = await service.client.create({ title: 'absolute' });
      const targets: [string, number, string][] = [
        ['http://books.test/books', 200, 'Books retrieved successfully'],
        [`http://books.test:8080/book/${id}?x=y`, 200, 'Book retrieved successfully'],
        ['http://books.test/book/abc', 404, 'Book not found'],
        ['http://books.test/nowhere', 404, 'Not found'],
        ['http://books.test', 404, 'Not found'],
        ['http://books.test/%zz', 400, 'Bad request'],
        ['*', 404, 'Not found'],
      ];
      for (const [target, status, message] of targets) {
        const [answer] = await exchange(service, compose('GET', target));
        assertEnvelope(answer, status, message, target);
      }
    });

    test('rule 21: segments such as .. are not resolved', async () => {
      const targets: [string, string][] = [
        ['/../books', 'Not found'],
        ['/./books', 'Not found'],
        ['/book/../books', 'Not found'],
        ['/%2e%2e/books', 'Not found'],
        ['/books/..', 'Not found'],
        ['/books;x=1', 'Not found'],
        ['\\books', 'Bad request'],
        ['/book\\1', 'Not found'],
        ['/book%2f1', 'Not found'],
        ['/book/..', 'Book not found'],
        ['/book/1%2f2', 'Book not found'],
      ];
      for (const [target, message] of targets) {
        const [answer] = await exchange(service, compose('GET', target));
        assertRefusal(answer, message === 'Bad request' ? 400 : 404, message, target);
      }
    });
  });

  describe('parts of a request that change nothing', () => {
    test('rule 20: an Upgrade header is ignored', async () => {
      const websocket = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
      const http2 = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
      for (const headers of [websocket, http2]) {
        const connection = new Connection(service);
        await connection.send(compose('GET', '/books', { headers }));
        await connection.answers(1);
        await connection.send(compose('GET', '/book/abc', { headers }));
        const [list, missing] = await connection.answers(2);
        assertEnvelope(list, 200, 'Books retrieved successfully');
        assertRefusal(missing, 404, 'Book not found');
        connection.socket.destroy();
      }
    });

    test('C2: a client that expects 100 Continue before it sends its body gets it', async () => {
      const body = '{"title":"expected"}';
      const bytes = compose('POST', '/book', { body, headers: 'Expect: 100-continue\r\n' });
      const connection = new Connection(service);
      await connection.send(bytes.slice(0, -body.length));
      while (!connection.received.endsWith('\r\n\r\n')) {
        await new Promise((resolve) => connection.socket.once('data', resolve));
      }
      assert.match(connection.received, /^HTTP\/1\.1 100 Continue\r\n/);
      await connection.send(body);
      const [answer] = await connection.answers(1);
      assert.equal(assertEnvelope(answer, 201, 'Book created successfully').title, 'expected');
      connection.socket.destroy();
    });

    test('rule 20: an unknown expectation is ignored', async () => {
      const bytes = compose('POST', '/book', { body: '{}', headers: 'Expect: something-unknown\r\n' });
      const [answer] = await exchange(service, bytes);
      assertEnvelope(answer, 201, 'Book created successfully');
    });

    test('C2: a body may arrive byte by byte, in chunks of any size, with extensions and trailers', async () => {
      const text = '{"title":"Ὀδύσσεια","year":-700}';
      const whole = Buffer.from(compose('POST', '/book', { body: text }));
      const bytes = [...Buffer.from(text)].map((byte) => Buffer.from([byte]));
      const chunks = bytes.map((byte) => `01;name="value"\r\n${byte.toString('latin1')}\r\n`).join('');
      const chunked = `${compose('POST', '/book', { headers: CHUNKED })}${chunks}0\r\nX: y\r\n\r\n`;
      for (const request of [whole, Buffer.from(chunked, 'latin1')]) {
        const connection = new Connection(service);
        for (const byte of request) await connection.send(Buffer.from([byte]));
        const [answer] = await connection.answers(1);
        const { id } = assertEnvelope(answer, 201, 'Book created successfully');
        const { data } = await service.client.request('GET', `/book/${id}`);
        assert.deepEqual(data, { id, title: 'Ὀδύσσεια', author: '', year: -700 });
        connection.socket.destroy();
      }
    });
  });

  describe('many requests on one connection', () => {
    test('rule 20: pipelined requests are answered in order', async () => {
      const { id } = await service.client.create({ title: 'first' });
      const requests: [string, number, string][] = [
        [compose('PUT', `/book/${id}`, { body: '{"title":"second"}' }), 200, 'Book updated successfully'],
        [compose('GET', '/book/abc'), 404, 'Book not found'],
        [compose('PATCH', '/books'), 405, 'Method not allowed'],
        [compose('POST', '/book', { body: '{' }), 400, 'Invalid input'],
        [composePublic('GET', '/books', ''), 401, 'Authorization token required'],
        [compose('GET', '/books'), 200, 'Books retrieved successfully'],
        [compose('GET', '/%zz'), 400, 'Bad request'],
        [composePublic('POST', '/token', 'Content-Length: 2\r\n', '[]'), 400, 'Invalid request payload'],
        [compose('POST', '/book', { body: '{}' }), 201, 'Book created successfully'],
        [compose('GET', '/nowhere'), 404, 'Not found'],
      ];
      const rounds = 20;
      const bytes = requests.map(([request]) => request).join('');
      const answers = await exchange(service, bytes.repeat(rounds), requests.length * rounds);
      assert.equal(answers.length, requests.length * rounds);
      answers.forEach((answer, position) => {
        const [, status, message] = requests[position % requests.length] as [string, number, string];
        assertEnvelope(answer, status, message, `answer ${position}`);
      });
    });

    test('rule 20: a refusal never overtakes the answers before it', async () => {
      const { id } = await service.client.create({});
      const create = compose('POST', '/book', { body: '{"title":"before"}' });
      const update = compose('PUT', `/book/${id}`, { body: '{"title":"before"}' });
      const badChunk = `${CHUNKED}\r\nzz\r\n`;
      const refused: [string, number, string][] = [
        ['garbage\r\n\r\n', 400, 'Bad request'],
        [
          `GET /books HTTP/1.1\r\n${HOST}X: ${'x'.repeat(20_000)}\r\n\r\n`,
          431,
          'Request header fields too large',
        ],
        [`POST /token HTTP/1.1\r\n${HOST}${badChunk}`, 400, 'Bad request'],
        [`POST /book HTTP/1.1\r\n${HOST}${badChunk}`, 400, 'Bad request'],
        [composePublic('CONNECT', 'elsewhere.test:443', ''), 400, 'Bad request'],
      ];
      for (const [bytes, status, message] of refused) {
        const name = bytes.slice(0, 40);
        const answers = await exchange(service, create + update + bytes, UNTIL_CLOSED);
        assert.deepEqual(
          answers.map((answer) => answer.status),
          [201, 200, status],
          name,
        );
        assertRefusal(answers[2], status, message, name);
      }
    });

    test('C2: a client that closes its side after a request still gets the answer', async () => {
      const connection = new Connection(service);
      connection.socket.end(compose('POST', '/book', { body: '{}' }));
      const [answer] = await connection.answers(1);
      assertEnvelope(answer, 201, 'Book created successfully');
      assert.equal(await connection.closed, undefined);
    });

    test('rule 20: a refusal that leaves the framing intact leaves the connection usable', async () => {
      const unread = `Content-Length: ${4 * MEBIBYTE}\r\n`;
      const unreadBody = ' '.repeat(4 * MEBIBYTE);
      const refused: [string, number, string][] = [
        [composePublic('GET', '/books', ''), 401, 'Authorization token required'],
        [composePublic('GET', '/books', 'Authorization: x\r\n'), 401, 'Invalid token'],
        [composePublic('POST', '/book', unread, unreadBody), 401, 'Authorization token required'],
        [composePublic('POST', '/nowhere', unread, unreadBody), 404, 'Not found'],
        [composePublic('PATCH', '/book', unread, unreadBody), 405, 'Method not allowed'],
        [composePublic('POST', '/%zz', unread, unreadBody), 400, 'Bad request'],
        [composePublic('POST', '/token', unread, unreadBody), 413, 'Payload too large'],
        [compose('POST', '/book', { body: unreadBody }), 413, 'Payload too large'],
        [compose('PUT', '/book/abc', { body: unreadBody }), 404, 'Book not found'],
        [compose('DELETE', '/book/abc', { body: unreadBody }), 404, 'Book not found'],
        [compose('POST', '/book', { body: '{' }), 400, 'Invalid input'],
        [compose('POST', '/book', { body: ' ' }), 400, 'Invalid input'],
        [compose('POST', '/book', { headers: 'Content-Length: 0\r\n' }), 400, 'Invalid input'],
        [compose('POST', '/book'), 400, 'Invalid input'],
      ];
      const connection = new Connection(service);
      let received = 0;
      for (const [bytes, status, message] of refused) {
        await connection.send(bytes);
        const refusal = (await connection.answers(received + 1))[received];
        assertRefusal(refusal, status, message, bytes.slice(0, 40));
        await connection.send(compose('GET', '/books'));
        const next = (await connection.answers(received + 2))[received + 1];
        assertEnvelope(next, 200, 'Books retrieved successfully', `after ${bytes.slice(0, 40)}`);
        received += 2;
      }
      connection.socket.destroy();
    });
  });

  describe('headers', () => {
    const tooLarge = [431, 'Request header fields too large'] as const;

    test('rule 22: a request line and headers of 16 KiB are read; path, names and values of 16 KiB are 431', async () => {
      const start = composePublic('GET', '/nowhere', 'X: ');
      const whole = composePublic('GET', '/nowhere', `X: ${'x'.repeat(16_384 - start.length - 2)}\r\n`);
      assert.equal(whole.length, 16_384);
      assertRefusal((await exchange(service, whole))[0], 404, 'Not found');
      await assertHeaderLimit(service, 16_384);
    });

    test('rule 22: HEADER_LIMIT sets the limit', async () => {
      for (const limit of [2048, 100_000]) {
        const limited = await startTestService(service.dbUrl, { HEADER_LIMIT: String(limit) });
        try {
          await assertHeaderLimit(limited, limit);
        } finally {
          await limited.stop();
        }
      }
    });

    /** The limit counts the path and the names and values of headers, but not spaces, colons and line ends. */
    async function assertHeaderLimit(limited: RunningService, limit: number): Promise<void> {
      const others = 'Host'.length + 'books.test'.length;
      const requests = (bytes: number): [string, string][] => [
        ['a path', composePublic('GET', `/${'x'.repeat(bytes - others - 1)}`, '')],
        [
          'a value',
          composePublic('GET', '/nowhere', `X: ${'x'.repeat(bytes - others - '/nowhereX'.length)}\r\n`),
        ],
        [
          'a name',
          composePublic('GET', '/nowhere', `${'x'.repeat(bytes - others - '/nowherex'.length)}: x\r\n`),
        ],
      ];
      for (const [name, bytes] of requests(limit - 1)) {
        assertRefusal((await exchange(limited, bytes))[0], 404, 'Not found', name);
      }
      for (const [name, bytes] of requests(limit)) {
        const [answer] = await exchange(limited, bytes);
        assertRefusal(answer, ...tooLarge, name);
        assert.equal(answer?.headers.connection, 'close', name);
      }
    }

    test('rule 22: 1,000 header lines are read, one more is 431', async () => {
      const lines = (count: number) => composePublic('GET', '/nowhere', 'X: y\r\n'.repeat(count - 1)); // and Host
      assertRefusal((await exchange(service, lines(1000)))[0], 404, 'Not found');
      assertRefusal((await exchange(service, lines(1001)))[0], ...tooLarge);
    });

    test('rule 22: trailers of 16 KiB are 431', async () => {
      const bytes = `${compose('POST', '/token', { headers: CHUNKED })}0\r\nX: ${'x'.repeat(16_384)}\r\n\r\n`;
      const answers = await exchange(service, bytes, UNTIL_CLOSED);
      assert.equal(answers.length, 1);
      assertRefusal(answers[0], ...tooLarge);
    });

    test('rule 24: an answer has the id of its request if that is up to 128 letters, digits, _, ., : or -', async () => {
      const kept = ['a', '7', '-', 'AZaz09_.:-', 'x'.repeat(128)];
      const replaced = ['x'.repeat(129), 'a b', 'a/b', 'a,b', 'a@b', 'a;b', 'a"b', '\u00e9', '\u00b2', ''];
      const idOf = async (sent: string) => {
        const bytes = Buffer.from(composePublic('GET', '/nowhere', `X-Request-Id: ${sent}\r\n`), 'latin1');
        return (await exchange(service, bytes))[0]?.headers['x-request-id'];
      };
      for (const sent of kept) assert.equal(await idOf(sent), sent);
      for (const sent of replaced) assert.match((await idOf(sent)) ?? '', /^[\w-]{10,20}$/, sent);
    });
  });

  describe('a client that sends far more before it reads', () => {
    const much = 'x'.repeat(4 * MEBIBYTE);

    async function sendThenLook(bytes: string, status: number, message: string): Promise<void> {
      const name = bytes.slice(0, 160);
      const connection = new Connection(service);
      connection.socket.pause();
      await connection.send(bytes).catch((cause) => {
        throw new Error(`cut off before its answer: ${name}`, { cause });
      });
      connection.socket.resume();
      const [answer] = await connection.answers(1);
      assertRefusal(answer, status, message, name);
      assert.equal(await connection.closed, undefined, name);
    }

    test('rule 20: still gets the refusal of a request that HTTP does not allow', async () => {
      const refused: [string, number, string][] = [
        [compose('GET', '/books', { headers: `X: ${much}\r\n` }), 431, 'Request header fields too large'],
        [
          compose('GET', '/books', { headers: 'X: y\r\n'.repeat(MEBIBYTE) }),
          431,
          'Request header fields too large',
        ],
        [compose('GET', `/${much}`), 431, 'Request header fields too large'],
        [`GET /${much}`, 431, 'Request header fields too large'],
        [`garbage ${much}`, 400, 'Bad request'],
        [`${compose('POST', '/book', { headers: CHUNKED })}zz\r\n${much}`, 400, 'Bad request'],
        [composePublic('CONNECT', 'elsewhere.test:443', '', much), 400, 'Bad request'],
      ];
      for (const [bytes, status, message] of refused) await sendThenLook(bytes, status, message);
    });

    test('rules 20 and 22: still gets the refusal of its last request', async () => {
      const close = `Connection: close\r\nContent-Length: ${much.length}\r\n`;
      const old = `POST /token HTTP/1.0\r\nContent-Length: ${much.length}\r\n\r\n${much}`;
      const refused: [string, number, string][] = [
        [composePublic('POST', '/token', close, much), 413, 'Payload too large'],
        [composePublic('POST', '/book', close, much), 401, 'Authorization token required'],
        [composePublic('POST', '/nowhere', close, much), 404, 'Not found'],
        [old, 413, 'Payload too large'],
      ];
      for (const [bytes, status, message] of refused) await sendThenLook(bytes, status, message);
    });
  });

  describe('bodies', () => {
    /** A valid body of exactly `size` bytes. */
    const bodyOf = (size: number) => `{"title":"${'x'.repeat(size - '{"title":""}'.length)}"}`;
    const inChunks = (body: string) => {
      const half = body.length >> 1;
      return [body.slice(0, half), body.slice(half), '']
        .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
        .join('');
    };

    for (const [title, limit, env] of [
      ['1 MiB is read, one byte more is 413, however it is framed', MEBIBYTE, {}],
      ['a smaller BODY_LIMIT is the limit', 1000, { BODY_LIMIT: '1000' }],
      ['a larger BODY_LIMIT is the limit', 1_500_000, { BODY_LIMIT: '1500000' }],
    ] as const) {
      test(`rule 22: ${title}`, async () => {
        const limited = await startTestService(await SQLITE.freshUrl(), env); // others do not list its books
        try {
          await assertBodyLimit(limited, limit);
        } finally {
          await limited.stop();
        }
      });
    }

    /** All services under test sign with the same secret, so that each accepts the tokens of all. */
    async function assertBodyLimit(limited: RunningService, limit: number): Promise<void> {
      const { id } = await limited.client.create({});
      for (const [method, path, status, message] of [
        ['POST', '/book', 201, 'Book created successfully'],
        ['PUT', `/book/${id}`, 200, 'Book updated successfully'],
        ['POST', '/token', 401, 'Invalid credentials'],
      ] as const) {
        const accepted = bodyOf(limit);
        const refused = bodyOf(limit + 1);
        for (const bytes of [
          compose(method, path, { body: accepted }),
          compose(method, path, { headers: CHUNKED }) + inChunks(accepted),
        ]) {
          const [answer] = await exchange(limited, bytes);
          assertEnvelope(answer, status, message, `${method} ${path} ${limit}`);
        }
        for (const bytes of [
          compose(method, path, { body: refused }),
          compose(method, path, { headers: CHUNKED }) + inChunks(refused),
        ]) {
          const [answer] = await exchange(limited, bytes);
          assertRefusal(answer, 413, 'Payload too large', `${method} ${path} ${limit}`);
        }
      }
    }

    test('rule 22: an announced body that is too large is 413 before any of it is sent', async () => {
      for (const length of ['1048577', '1000000000000', '18446744073709551615']) {
        const bytes = compose('POST', '/book', { headers: `Content-Length: ${length}\r\n` });
        const [answer] = await exchange(service, bytes);
        assertRefusal(answer, 413, 'Payload too large', length);
      }
    });

    test('U1, rule 9: a PUT to a missing book is 404 even if its body is too large', async () => {
      for (const bytes of [
        compose('PUT', '/book/9007199254740991', { body: bodyOf(MEBIBYTE + 1) }),
        compose('PUT', '/book/9007199254740991', { headers: CHUNKED }) + inChunks(bodyOf(MEBIBYTE + 1)),
      ]) {
        const [answer] = await exchange(service, bytes);
        assertRefusal(answer, 404, 'Book not found', bytes.slice(0, 40));
      }
    });

    test('A3: a request without a token is answered before its body is sent', async () => {
      const connection = new Connection(service);
      await connection.send(composePublic('POST', '/book', `Content-Length: ${100 * MEBIBYTE}\r\n`));
      const [answer] = await connection.answers(1);
      assertRefusal(answer, 401, 'Authorization token required');
      connection.socket.destroy();
    });
  });

  test('rule 20: garbage after the request for a long list does not cut the list short', async () => {
    const large = await startTestService(await SQLITE.freshUrl());
    try {
      // Together far more than two sockets buffer, so that the list is in progress when the garbage is read.
      const books = 30;
      const create = composeFor('POST', '/book', {
        token: large.client.token,
        body: JSON.stringify({ title: 'x'.repeat(400_000) }),
      });
      await exchange(large, create.repeat(books), books);
      const bytes = `${compose('GET', '/books')}garbage\r\n\r\n`;
      const [list, refusal] = await exchange(large, bytes, UNTIL_CLOSED);
      assert.equal(assertEnvelope(list, 200, 'Books retrieved successfully').length, books);
      assertRefusal(refusal, 400, 'Bad request');
    } finally {
      await large.stop();
    }
  });
});

/** The bytes, followed by the text. */
function bytesOf(bytes: string | Uint8Array, text: string): Uint8Array {
  return Buffer.concat([Buffer.from(bytes as Uint8Array), Buffer.from(text)]);
}
