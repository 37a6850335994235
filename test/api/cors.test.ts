// CORS: which web pages may read answers, and that no other client sees a difference.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Connection, exchange } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { ENVIRONMENT, type RunningService, SQLITE, startTestService } from '../support/service.ts';

const PAGE = 'http://books.test';
const OTHER_PAGE = 'https://shelf.test:8443';

const CORS_LINES = [
  `access-control-allow-origin: ${PAGE}`,
  'access-control-expose-headers: location, etag, link, x-total-count, x-unindexed-books, preference-applied, ' +
    'idempotent-replayed, x-request-id, retry-after, www-authenticate, allow',
  'vary: Origin',
];

type Request = [status: number, line: string, headers?: string[], body?: string];

interface RawAnswer {
  readonly status: number;
  readonly lines: readonly string[];
  readonly body: string;
}

describe('pages in CORS_ORIGINS', () => {
  let service: RunningService;
  before(async () => {
    service = await startTestService(await SQLITE.freshUrl(), {
      CORS_ORIGINS: `${PAGE}, ${OTHER_PAGE}`,
      BODY_LIMIT: '1000',
    });
    await service.client.create({ title: 'The one' });
  });
  after(() => service?.stop());

  /** One request for each path through the code that answers. */
  function requests(): Request[] {
    const authorization = `authorization: ${service.client.token}`;
    const login = '{"username":"librarian","password":"correct horse"}';
    return [
      [200, 'POST /token', [`content-length: ${login.length}`], login],
      [400, 'POST /token', ['content-length: 1'], '{'],
      [413, 'POST /token', ['content-length: 4097']],
      [401, 'GET /books'],
      [401, 'GET /book/1', ['authorization: Bearer x']],
      [200, 'GET /books', [authorization]],
      [200, 'HEAD /books', [authorization]],
      [200, 'GET /books?q=one', [authorization, 'prefer: count=exact']],
      [200, 'HEAD /books?limit=1', [authorization]],
      [400, 'GET /books?yaer=1605', [authorization]],
      [200, 'HEAD /book/1', [authorization]],
      [200, 'PUT /book/1', [authorization, 'content-length: 2'], '{}'],
      [404, 'GET /book/1000', [authorization]],
      [404, 'GET /shelf'],
      [404, 'OPTIONS /shelf'],
      [405, 'PATCH /book'],
      [405, 'OPTIONS /book/1'],
      [400, 'GET /%zz'],
    ];
  }

  /** Sends a request on a new connection. The header lines of the answer are sorted. */
  async function ask(line: string, headers: readonly string[] = [], body = ''): Promise<RawAnswer> {
    const connection = new Connection(service);
    const head = [`${line} HTTP/1.1`, 'host: books.test:8080', 'x-request-id: mine', 'connection: close'];
    await connection.send(`${[...head, ...headers].join('\r\n')}\r\n\r\n${body}`);
    await connection.closed;
    const [first = '', rest = ''] = connection.received.split(/\r\n\r\n(.*)/s);
    const lines = first.split('\r\n').filter((text) => !/^date: /i.test(text));
    return {
      status: Number(first.split(' ')[1]),
      lines: lines.toSorted(),
      body: rest.replace(/"token":"[^"]+"/, '"token":""'),
    };
  }

  test('rule 32: an allowed page can read every answer, which is otherwise the same as without an origin', async () => {
    for (const [status, line, headers = [], body] of requests()) {
      const usual = await ask(line, headers, body);
      const answer = await ask(line, [...headers, `origin: ${PAGE}`], body);
      assert.equal(answer.status, status, line);
      assert.deepEqual(answer, { ...usual, lines: [...usual.lines, ...CORS_LINES].toSorted() }, line);
    }
  });

  test('rule 32: for any other page each answer is byte for byte the same as without an origin', async () => {
    const foreign = [
      'null',
      '',
      '*',
      'http://evil.test',
      'http://books.test.evil.test',
      'http://evil-books.test',
      'http://books.test:80', // a browser leaves out the default port
      'http://books.test:8081',
      'https://books.test',
      'http://BOOKS.test',
      'http://books.test/',
      'https://shelf.test',
      'https://shelf.test:8443, http://books.test',
      'undefined',
    ];
    const preflight = ['access-control-request-method: GET'];
    const all = requests();
    // Every foreign origin with the login, and the one that is most likely to be let through with all other requests.
    const cases = [
      ...foreign.map((origin) => ({ request: all[0] as Request, origin })),
      ...all.slice(1).map((request) => ({ request, origin: 'http://books.test.evil.test' })),
    ];
    for (const more of [[], preflight]) {
      for (const { request, origin } of cases) {
        const [, line, headers = [], body] = request;
        const usual = await ask(line, [...headers, ...more], body);
        assert.ok(!usual.lines.some((text) => /^(access-control-|vary)/i.test(text)));
        const answer = await ask(line, [...headers, ...more, `origin: ${origin}`], body);
        assert.deepEqual(answer, usual, `${line} from ${origin}`);
      }
    }
  });

  test('rule 32: each allowed page gets its own origin back, and a request with two origins none', async () => {
    for (const [origins, allowed] of [
      [[OTHER_PAGE], [`access-control-allow-origin: ${OTHER_PAGE}`]],
      [[PAGE, PAGE], []],
    ] as const) {
      const { lines } = await ask(
        'GET /books',
        origins.map((origin) => `origin: ${origin}`),
      );
      assert.deepEqual(
        lines.filter((line) => line.startsWith('access-control-allow-origin')),
        allowed,
      );
    }
  });

  test('rule 32: a preflight request needs no token and gets the methods of the path', async () => {
    const methods = {
      '/token': 'POST',
      '/book': 'POST',
      '/books': 'GET, HEAD, POST',
      '/book/1': 'GET, HEAD, PUT, DELETE',
      '/shelf': 'GET, HEAD, POST, PUT, DELETE', // so that the page gets 404 rather than a CORS error
    };
    for (const [path, allowed] of Object.entries(methods)) {
      const answer = await ask(`OPTIONS ${path}`, [
        `origin: ${PAGE}`,
        'access-control-request-method: PUT',
        'access-control-request-headers: authorization,x-anything',
        'access-control-request-private-network: true',
      ]);
      const lines = [
        'HTTP/1.1 204 No Content',
        ...CORS_LINES,
        `access-control-allow-methods: ${allowed}`,
        'access-control-allow-headers: authorization, content-type, idempotency-key, if-match, if-none-match, prefer, x-request-id',
        'access-control-max-age: 7200',
        'x-request-id: mine',
        'Connection: close',
      ];
      assert.deepEqual(answer, { status: 204, lines: lines.toSorted(), body: '' }, path);
    }
  });
});

describe('the /docs page', () => {
  let service: CommandHere;
  let docsPort: number;
  before(async () => {
    const own = { DB_URL: await SQLITE.freshUrl(), ADMIN_PORT: '0', LOG_LEVEL: 'info' };
    service = await startHere({ ...ENVIRONMENT, ...own });
    docsPort = operationsOf(service).port;
  });
  after(() => service?.stop());

  test('rule 32: may call the host that it was loaded from, and no page of another host, port or scheme may', async () => {
    const own = ['127.0.0.1', 'localhost', '[::1]', 'books.test'].flatMap((name) => {
      const origin = `http://${name}:${docsPort}`;
      return [
        [`${name}:${service.port}`, origin, origin],
        [name, origin, origin],
      ] as const;
    });
    const foreign = [
      `http://127.0.0.1:${docsPort}`,
      `http://localhost.evil.test:${docsPort}`,
      `http://evil.test:${docsPort}`,
      `https://localhost:${docsPort}`,
      `http://localhost:${service.port}`,
      'http://localhost',
      'http://localhost:1',
      'null',
    ].map((origin) => [`localhost:${service.port}`, origin, undefined] as const);
    for (const [host, origin, allowed] of [...own, ...foreign]) {
      const bytes = `GET /books HTTP/1.1\r\nhost: ${host}\r\norigin: ${origin}\r\n\r\n`;
      const [answer] = await exchange(service, bytes);
      assert.equal(answer?.headers['access-control-allow-origin'], allowed, `${host} ${origin}`);
    }
  });
});
