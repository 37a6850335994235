// CORS: which web pages may read answers, and that no other client sees a difference. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { assertRefusal, Connection, exchange, type Target } from '../support/client.ts';
import { startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { ENVIRONMENT, pageOf, type RunningService, SQLITE, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const PAGE = 'http://books.test';
const OTHER_PAGE = 'https://shelf.test:8443';

/** What lets PAGE read an answer. */
const CORS_LINES = [
  `access-control-allow-origin: ${PAGE}`,
  'access-control-expose-headers: location, etag, link, x-total-count, x-unindexed-books, preference-applied, ' +
    'idempotent-replayed, x-request-id, retry-after, www-authenticate, allow',
  'vary: Origin',
];

describe('pages in CORS_ORIGINS', () => {
  let service: RunningService;
  before(async () => {
    const env = { CORS_ORIGINS: `${PAGE}, ${OTHER_PAGE}`, BODY_LIMIT: '1000' };
    service = await startTestService(await SQLITE.freshUrl(), env);
    await service.client.create({ title: 'The one' });
  });

  /** One request for each path through the code that answers. */
  function requests(): [status: number, line: string, headers?: string[], body?: string][] {
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

  /** Sends a request on a new connection. The lines of the answer are sorted; those of its body are among them. */
  async function ask(line: string, headers: readonly string[] = [], body = ''): Promise<string[]> {
    const connection = new Connection(service);
    const head = [`${line} HTTP/1.1`, 'host: books.test:8080', 'x-request-id: mine', 'connection: close'];
    await connection.send(`${[...head, ...headers].join('\r\n')}\r\n\r\n${body}`);
    await connection.closed;
    const text = connection.received.replace(/date: .*\r\n/i, '').replace(/"token":"[^"]+"/, '');
    return text.split('\r\n').sort();
  }

  test('rule 32: an allowed page can read every answer, which is otherwise the same as without an origin', async () => {
    for (const [status, line, headers = [], body] of requests()) {
      const usual = await ask(line, headers, body);
      assert.ok(usual.some((text) => text.startsWith(`HTTP/1.1 ${status} `)));
      const answer = await ask(line, [...headers, `origin: ${PAGE}`], body);
      assert.deepEqual(answer, [...usual, ...CORS_LINES].sort(), line);
    }
    const [first] = (await ask('GET /books', [`origin: ${OTHER_PAGE}`])).filter((line) =>
      /-origin/.test(line),
    );
    assert.equal(first, `access-control-allow-origin: ${OTHER_PAGE}`);
  });

  test('rule 32: for any other page each answer but that of a login is byte for byte the same as without an origin', async () => {
    const foreign = [
      ...['null', '', '*', 'undefined', 'http://evil.test'],
      ...['http://books.test.evil.test', 'http://evil-books.test', 'http://books.test:8081'],
      ...['https://books.test', 'http://BOOKS.test', 'http://books.test/', 'https://shelf.test'],
      'http://books.test:80', // a browser leaves out the default port
      ...[`${OTHER_PAGE}, ${PAGE}`, `${PAGE}\r\norigin: ${PAGE}`],
    ];
    // Every foreign origin with one request, and the one that is most likely to be let through with all others.
    const [list, ...others] = requests().filter(([, line]) => line !== 'POST /token');
    const cases = [
      ...foreign.map((origin) => [list, origin] as const),
      ...others.map((request) => [request, 'http://books.test.evil.test'] as const),
    ];
    for (const more of [[], ['access-control-request-method: GET']]) {
      for (const [[, line, headers = [], body] = [0, ''], origin] of cases) {
        const usual = await ask(line, [...headers, ...more], body);
        assert.ok(!usual.some((text) => /^(access-control-|vary)/i.test(text)));
        const answer = await ask(line, [...headers, ...more, `origin: ${origin}`], body);
        assert.deepEqual(answer, usual, `${line} from ${origin}`);
      }
    }
  });

  test('rule 32: a preflight request needs no token and gets the methods of the path', async () => {
    for (const [path, methods] of Object.entries({
      '/token': 'POST',
      '/book': 'POST',
      '/books': 'GET, HEAD, POST',
      '/book/1': 'GET, HEAD, PUT, DELETE',
      '/import': 'GET, HEAD, POST',
      '/import/1': 'GET, HEAD, POST',
      '/shelf': 'GET, HEAD, POST, PUT, DELETE', // so that the page gets 404 rather than a CORS error
    })) {
      const answer = await ask(`OPTIONS ${path}`, [
        `origin: ${PAGE}`,
        'access-control-request-method: PUT',
        'access-control-request-headers: authorization,x-anything',
        'access-control-request-private-network: true',
      ]);
      const lines = [
        'HTTP/1.1 204 No Content',
        ...CORS_LINES,
        `access-control-allow-methods: ${methods}`,
        'access-control-allow-headers: authorization, content-type, idempotency-key, if-match, if-none-match, prefer, x-request-id',
        'access-control-max-age: 7200',
        'x-request-id: mine',
        'connection: close',
      ];
      assert.deepEqual(answer, [...lines, '', ''].sort(), path);
    }
  });
});

test('rule 32: the /docs page may call the host that it was loaded from, and no page of another host, port or scheme may', async () => {
  const own = { DB_URL: await SQLITE.freshUrl(), ADMIN_PORT: '0', LOG_LEVEL: 'info' };
  const service = await startHere({ ...ENVIRONMENT, ...own });
  const docsPort = operationsOf(service).port;
  const allowed = ['127.0.0.1', 'localhost', '[::1]', 'books.test'].flatMap((name) => {
    return [name, `${name}:${service.port}`].map(
      (host) => [host, `http://${name}:${docsPort}`, true] as const,
    );
  });
  const foreign = [
    ...['127.0.0.1', 'localhost.evil.test', 'evil.test'].map((host) => `http://${host}:${docsPort}`),
    `https://localhost:${docsPort}`,
    `http://localhost:${service.port}`,
    ...['http://localhost', 'http://localhost:1', 'null'],
  ].map((origin) => [`localhost:${service.port}`, origin, false] as const);
  for (const [host, origin, isAllowed] of [...allowed, ...foreign]) {
    const [answer] = await exchange(
      service,
      `GET /books HTTP/1.1\r\nhost: ${host}\r\norigin: ${origin}\r\n\r\n`,
    );
    const given = answer?.headers['access-control-allow-origin'];
    assert.equal(given, isAllowed ? origin : undefined, `${host} ${origin}`);
  }
});

test('rules 29 and 32: logins that other pages make a browser send get 403 on both ports and do not count; those of allowed pages do', async () => {
  const env = { CORS_ORIGINS: PAGE, ADMIN_PORT: '0', LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl() };
  const service = await startHere({ ...ENVIRONMENT, ...env });
  const logIn = async (password: string, lines: readonly string[], target: Target = service) => {
    const body = `{"username":"librarian","password":"${password}"}`;
    const head = ['POST /token HTTP/1.1', `content-length: ${body.length}`, ...lines];
    const [answer] = await exchange(target, `${head.join('\r\n')}\r\n\r\n${body}`);
    return answer;
  };
  const host = 'host: library.test';
  const docs = `http://library.test:${operationsOf(service).port}`;
  for (const [isOwn, ...lines] of [
    [false, 'sec-fetch-site: cross-site', host, 'origin: https://evil.test'],
    [false, 'sec-fetch-site: cross-site', host],
    [false, 'sec-fetch-site: same-site', host, 'origin: http://library.test'],
    [false, 'sec-fetch-site: SAME-ORIGIN', host],
    [false, host, 'origin: http://evil.test'],
    [false, host, 'origin: http://library.test.evil.test'],
    [false, host, 'origin: http://library.test:8080'],
    [false, 'host: library.test:8080', 'origin: http://library.test'],
    [false, 'host: library.test:80', 'origin: https://library.test'],
    [false, host, 'origin: null'],
    [false, host, 'origin: http://library.test, http://library.test'],
    [true, host],
    [true, 'sec-fetch-site: none', host],
    [true, 'sec-fetch-site: same-origin', host, 'origin: http://evil.test'],
    [true, host, 'origin: http://library.test'],
    [true, host, 'origin: https://library.test'],
    [true, 'host: library.test:80', 'origin: http://library.test'],
    [true, 'host: library.test:443', 'origin: https://library.test'],
    [true, 'host: LIBRARY.test', 'origin: http://library.test'],
    [true, 'host: [::1]:8080', 'origin: http://[::1]:8080'],
    [true, 'sec-fetch-site: cross-site', host, `origin: ${PAGE}`],
    [true, host, `origin: ${PAGE}`],
    [true, 'sec-fetch-site: same-site', host, `origin: ${docs}`],
  ] as [boolean, ...string[]][]) {
    for (const target of [service, pageOf(service)]) {
      const answer = await logIn(isOwn ? 'correct horse' : 'wrong', lines, target);
      if (isOwn) assert.equal(answer?.status, 200, lines.join());
      else assertRefusal(answer, 403, 'Origin not allowed', lines.join());
    }
  }
  for (let count = 0; count < 10; count += 1)
    assert.equal((await logIn('wrong', [host, `origin: ${PAGE}`]))?.status, 401);
  const isDelayed = () => service.log.some((line) => line.includes('too many failed logins'));
  assert.ok(!isDelayed());
  assert.equal((await logIn('wrong', [host]))?.status, 401);
  await waitUntil(isDelayed);
});
