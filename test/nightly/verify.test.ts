// The conformance kit itself: does it find out wrong services, in the right rules? What does the command print of a service that
// does not answer, answers without end, or has unusual books?
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createRawServer, type Server } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import type { Limits } from '../../conformance/answers.ts';
import { perform, type Verdict, verdictsOf } from '../../conformance/checking.ts';
import { titleOf } from '../../conformance/rule.ts';
import { RULES } from '../../conformance/rules.ts';
import { Service } from '../../conformance/service.ts';
import { LIMITS } from '../support/client.ts';
import { HERE_ONLY, runCommand } from '../support/command.ts';
import { pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  endOf,
  type RunningService,
  SECRET,
  SQLITE,
  spawnService,
  startTestService,
} from '../support/service.ts';
import { ACCOUNT, type Fault, startSmallService } from '../support/small-service.ts';
import { executeOn } from '../support/sql.ts';

const ADMITTED = { username: ENVIRONMENT.AUTH_USERNAME, password: ENVIRONMENT.AUTH_PASSWORD };
const FOR_ALL = { level: 'full', mayWrite: true, isStopped: () => false } as const;

describe('wrong services', { concurrency: true }, () => {
  const right = verdictsOn([]);

  test('a service of the core keeps every rule of the core, and by chance none about more', async () => {
    const verdicts = await right;
    const titles = (result: Verdict['result']) =>
      verdicts.filter((verdict) => verdict.result === result).map(({ rule }) => titleOf(rule));
    const core = RULES.filter(({ level }) => level === 'core').map(titleOf);
    assert.deepEqual(
      core.filter((title) => !titles('passed').includes(title)),
      [],
    );
    // Arrays of books, searches, conditions and keys.
    assert.deepEqual(
      titles('passed').filter((title) => /^(rules? )?[BEFI]\d/.test(title)),
      ['rule F1: an empty query string is the list, and no page', 'rule F1: other paths ignore their query'],
    );
  });

  // Two faults that no rule confuses are looked for at once.
  for (const [faults, found] of [
    [
      ['coerces types', 'reuses ids'],
      [
        'C1: malformed JSON or a field of a wrong type gets 400, and nothing is stored',
        'U2: malformed JSON or a field of a wrong type gets 400, and the book is unchanged',
        'rule 12: the id of a removed book is not used again',
        'C1, U2, rules 2, 3 and 4: a field of a wrong type or value gets 400 and stores nothing',
        'rules 2 to 10 and 18: an invalid request never fails its neighbours',
      ],
    ],
    [
      ['answers 500 to odd ids'],
      [
        'rule 10: an id that is not canonical decimal names no book, for every method',
        'G2, rule 10: a path names the book whose id it spells, and no other',
        'rules 2 to 10 and 18: an invalid request never fails its neighbours',
      ],
    ],
  ] as const satisfies [readonly Fault[], readonly string[]][]) {
    test(`a service that ${faults.join(' and ')} is found out in these rules and no other`, async () => {
      const [before, now] = await Promise.all([right, verdictsOn(faults)]);
      const newly = now.filter(
        ({ result }, index) => result === 'failed' && before[index]?.result === 'passed',
      );
      assert.deepEqual(
        newly.map(({ rule }) => titleOf(rule)),
        found,
      );
      for (const verdict of newly) {
        assert.ok(verdict.result === 'failed');
        assert.notEqual(verdict.complaint.request, '');
        assert.notEqual(verdict.complaint.received, '');
      }
    });
  }

  async function verdictsOn(faults: readonly Fault[]): Promise<readonly Verdict[]> {
    const small = await startSmallService(...faults);
    const service = new Service(new URL(small.url), ACCOUNT, LIMITS);
    try {
      return await Array.fromAsync(verdictsOf(service, FOR_ALL));
    } finally {
      service.close();
      await small.stop();
    }
  }
});

describe('verify', { concurrency: true }, () => {
  let service: RunningService;

  before(async () => {
    ({ service } = await startWithBook());
  });
  after(() => service.stop());

  const account = { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: 'correct horse' };
  const run = (args: readonly string[], env: Record<string, string> = account, { url } = service) =>
    runCommand(['verify', url, ...args], env);

  /** A test that logs in with wrong passwords needs a separate service: they delay the logins of others. */
  async function startWithBook(context?: TestContext) {
    const service = await startTestService(await SQLITE.freshUrl());
    context?.after(() => service.stop());
    await service.client.create({ title: 'Emma', author: 'Jane Austen', year: 1815 });
    return { service, kept: await service.client.list() };
  }

  test('checks every rule with the secret and a store that may be written, and leaves every other book', async (context) => {
    const { service, kept } = await startWithBook(context);
    const env = { ...account, SECRET_TOKEN: SECRET };
    const { code, stdout, stderr } = await run(['--store-may-be-written'], env, service);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, stdout);
    const lines = stdout.split('\n');
    assert.equal(lines[0], 'TAP version 14');
    assert.deepEqual(
      lines.filter((line) => line.startsWith('ok ')),
      RULES.map((rule, index) => `ok ${index + 1} - ${titleOf(rule).replaceAll('#', '\\#')}`),
    );
    assert.deepEqual(lines.slice(-3), [
      `1..${RULES.length}`,
      `# ${RULES.length} passed, 0 failed, 0 not checked.`,
      '',
    ]);
    assert.deepEqual(await service.client.list(), kept);
  });

  test('books with the largest ids stay as they are, and no rule fails because of them', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const large = await startTestService(dbUrl);
    context.after(() => large.stop());
    const ids = [2147483647, 999_999_999_999_999];
    await executeOn(
      dbUrl,
      `insert into books (id, title, author, year) values ${ids.map((id) => `(${id}, 'kept', 'kept', 4)`).join()}`,
    );
    const listed = await large.client.list();
    assert.deepEqual(
      listed.map(({ id }) => id),
      ids,
    );
    const verified = new Service(new URL(large.url), { ...ADMITTED, secret: SECRET }, LIMITS);
    context.after(() => verified.close());
    for (const rule of RULES.filter(({ numbers }) => /U1|D2|G2|A1|A2|rules? (9|10|24)\b/.test(numbers)))
      await perform(rule, verified);
    assert.deepEqual(await large.client.list(), listed);
  });
});

describe('a service that cannot be checked', () => {
  const NOBODY = { username: 'a', password: 'b', secret: undefined };
  const LOGIN_LENGTH = '{"username":"a","password":"b"}'.length;

  async function listen(context: TestContext, server: Server): Promise<string> {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    context.after(() => server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const http = (context: TestContext, answer: RequestListener) => {
    const server = createServer(answer);
    context.after(() => server.closeAllConnections());
    return listen(context, server);
  };

  /** The URL of a server with which no version of TLS can be agreed on. */
  async function oldTls(context: TestContext): Promise<string> {
    const file = (name: string) => readFileSync(pathTo(`test/fixtures/tls/${name}`));
    const options = { key: file('server.key'), cert: file('server.crt'), maxVersion: 'TLSv1' } as const;
    return (await listen(context, createTlsServer(options))).replace('http:', 'https:');
  }

  test('does not answer, answers otherwise, or breaks the connection: one clear verdict, and exit code 1', async (context) => {
    const closed = createRawServer();
    const nothing = await listen(context, closed);
    closed.close();
    const cases: [url: string, answer: RegExp][] = [
      [nothing, /no answer: connect ECONNREFUSED/],
      [
        await http(context, (_, response) =>
          response.setHeader('content-type', 'text/html').end('<h1>It works</h1>'),
        ),
        /200 <h1>It works<\/h1>/,
      ],
      [await http(context, (_, response) => response.end('{"token":"x"}')), /200 \{"token":"x"\}/],
      [
        await http(context, (_, response) => {
          response.writeHead(401).end('{"status":401,"message":"Invalid credentials","data":null}');
        }),
        /401 Invalid credentials/,
      ],
      [
        await http(context, (_, response) => {
          response.writeHead(401).end('{"status":401,"message":"\\u001b[2J\\u202e","data":null}');
        }),
        /401 \\+u001b\[2J\\+u202e, data null/,
      ],
      [await http(context, (request) => request.socket.destroy()), /no answer: socket hang up/],
      [
        (await http(context, (_, response) => response.end())).replace('http:', 'https:'),
        /no answer: the port does not use TLS: the URL must begin with http:\/\/\n?$/,
      ],
      [await oldTls(context), /no answer: TLS fails: [\w ]+\n?$/],
      [
        await listen(
          context,
          createRawServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')),
        ),
        /no answer: Parse Error/,
      ],
      [
        await http(context, (_, response) => {
          response.writeHead(200, { 'content-length': 100 }).write('{"status":', () => response.destroy());
        }),
        /200 \{"status":, and then the connection broke/,
      ],
    ];
    for (const [url, answer] of cases) {
      const { code, stdout, stderr } = await runCommand(['verify', url, '--format', 'text'], {});
      assert.deepEqual({ code, stderr }, { code: 1, stderr: '' }, stdout);
      assert.match(stdout, /\n {2}FAILED {7}the login, without which nothing can be checked\n/);
      assert.match(stdout, answer);
      const tap = await runCommand(['verify', url], {});
      assert.match(
        tap.stdout,
        /^TAP version 14\n# .*\nBail out! The login fails\. Expected: .* Answer: .*\n$/,
      );
      const json = JSON.parse((await runCommand(['verify', url, '--format', 'json'], {})).stdout);
      assert.equal(json.failed, 1);
      assert.match(json.failure.answer, answer);
    }
  });

  test('answers only the login: three rules fail, and the others are not checked', async (context) => {
    const login = '{"status":200,"message":"Token generated successfully","data":{"token":"x.y.z"}}';
    const url = await http(context, (request, response) => {
      request.resume().on('end', () => {
        if (request.url === '/token' && Number(request.headers['content-length']) === LOGIN_LENGTH)
          response.end(login);
      });
    });
    const service = new Service(new URL(url), NOBODY, { time: 50, size: 1000 });
    context.after(() => service.close());
    const verdicts = await Array.fromAsync(verdictsOf(service, FOR_ALL));
    const unanswered = verdicts.filter(
      (verdict) =>
        verdict.result === 'failed' && verdict.complaint.received === 'no whole answer within 50 ms',
    );
    assert.equal(unanswered.length, 3);
    const last = verdicts.indexOf(unanswered[2] as Verdict);
    for (const verdict of verdicts.slice(last + 1)) {
      assert.ok(verdict.result === 'not checked' && verdict.reason === 'no answer');
    }
    assert.ok(last < 10);
  });

  for (const [name, limits, answer, received] of [
    ['hangs', { time: 50, size: 100 }, () => {}, /^no whole answer within 50 ms$/],
    [
      'never ends its answer',
      { time: 50, size: 100 },
      (_, response) => response.write('{'),
      /^no whole answer within 50 ms$/,
    ],
    [
      'answers without end',
      { time: 60_000, size: 1000 },
      (_, response) => response.write(' '.repeat(10_000)),
      /^answers of more than 1000 characters at once$/,
    ],
  ] as const satisfies [string, Limits, RequestListener, RegExp][]) {
    test(`${name}: the limit is reported`, async (context) => {
      const url = new URL(await http(context, answer));
      const service = new Service(url, NOBODY, limits);
      context.after(() => service.close());
      await assert.rejects(service.logIn(), { message: 'The request is answered.', received });
      const connection = service.connect();
      await connection.send(service.bytes('GET', '/books'));
      await assert.rejects(connection.answers(1), { message: 'The request is answered.' });
    });
  }

  test('answers without end: its connections hold no more than the limit together, and are ended', async (context) => {
    const size = 10_000_000;
    const service = new Service(new URL(await http(context, endless)), NOBODY, { time: 60_000, size });
    context.after(() => service.close());
    const connections = Array.from({ length: 10 }, () => service.connect());
    let most = 0;
    for (const { socket } of connections) {
      socket.on('data', () => {
        most = Math.max(
          most,
          connections.map(({ received }) => received.length).reduce((a, b) => a + b),
        );
      });
      socket.write(service.bytes('GET', '/books')); // and nothing waits for the answer
    }
    await Promise.all(connections.map(({ closed }) => closed));
    assert.ok(most > size / 2 && most <= size, `${most}`);
    for (const connection of connections) {
      const received = /\nand then: answers of more than 10000000 characters at once$/;
      await assert.rejects(connection.answersUntilClosed(1), { received });
    }
  });

  test('answers without end: there is a verdict, with little memory', {
    skip: HERE_ONLY,
  }, async (context) => {
    const url = await http(context, (request, response) => {
      if (request.url !== '/token') return endless(request, response);
      request.resume();
      response.end('{"status":200,"message":"Token generated successfully","data":{"token":"x.y.z"}}');
    });
    const env = { NODE_OPTIONS: '--max-old-space-size=800' };
    const child = spawnService(env, [
      'verify',
      url,
      '--level',
      'core',
      '--store-may-be-written',
      '--format',
      'text',
    ]);
    const { code, stdout, stderr } = await endOf(child);
    assert.deepEqual([code, stderr], [1, '']);
    assert.match(stdout, /\n0 passed, \d+ failed, \d+ not checked: [^\n]+\n$/);
  });
});

/** Answers with a body that has no end. */
function endless(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  const piece = 'x'.repeat(65_536);
  const write = () => {
    while (response.write(piece));
    response.once('drain', write);
  };
  write();
}
