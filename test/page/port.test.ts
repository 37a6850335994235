// The port of the librarians' page: it answers every call as the service's own port does, and shares all of it. When it
// is opened, and when not. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { unreadable } from '../../conformance/raw-requests.ts';
import { accepts, Client, Connection, exchange, request, type Target } from '../support/client.ts';
import { type CommandHere, runCommand, startHere } from '../support/command.ts';
import { adjacentPorts, listen } from '../support/ports.ts';
import { compose, HOST } from '../support/raw-requests.ts';
import {
  type CommandProcess,
  ENVIRONMENT,
  pageOf,
  type RunningService,
  SQLITE,
  startCommand,
  startTestService,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const WITHOUT_PAGE = /^PAGE_PORT (\d+) is in use by another process: .* The service runs without the page\.$/;

describe('the port of the page', { concurrency: 3 }, () => {
  describe('beside that of the service', () => {
    let service: RunningService;

    before(async () => {
      service = await startTestService(await SQLITE.freshUrl(), { CORS_ORIGINS: 'https://shop.example' });
      for (let number = 1; number <= 3; number += 1)
        await service.client.create({ title: `book ${number}`, year: 7 });
    });
    after(() => service.stop());

    test('rule 34: every other request gets the same bytes', async () => {
      const ask = async (target: Target, bytes: string | Uint8Array) => {
        const connection = new Connection(target);
        await connection.send(bytes);
        await connection.closed;
        return connection.received
          .replaceAll(/\r\nDate: [^\r]+/gi, '')
          .replaceAll(/\r\nx-request-id: [^\r]+/g, '')
          .replaceAll(/"token":"[^"]+"/g, '"token":""');
      };
      const { token } = service.client;
      const headers = 'Connection: close\r\n';
      const asked = `${headers}Origin: https://shop.example\r\nAccess-Control-Request-Method: GET\r\n`;
      const lines = [
        'GET /books, HEAD /books, GET /books?q=book&limit=2, GET /books?x=1, GET /book/1, HEAD /book/1',
        'GET /book/99, GET /book/x, DELETE /book/99, PATCH /book/1, GET /token, OPTIONS /books, GET /nowhere',
        'GET //, GET /%zz, OPTIONS *, GET http://localhost/book/1, POST /, PUT /v/x, TRACE /, QUERY /books, BREW /',
      ].flatMap((some) => some.split(', ').map((line) => line.split(' ') as [string, string]));
      const bodies = [
        ...['{"username":"librarian","password":"correct horse"}', '{}', '[]', 'x'].map((body) => [
          'POST',
          '/token',
          body,
        ]),
        ...['{"year":7}', '{"year":"7"}'].map((body) => ['PUT', '/book/1', body]),
      ] as [string, string, string][];
      const requests = [
        ...unreadable(HOST).map(([, bytes]) => Buffer.concat([Buffer.from(bytes), Buffer.from('\r\n\r\n')])),
        ...lines.flatMap(([method, path]) => [
          compose(method, path, { token, headers }),
          compose(method, path, { headers }),
          compose(method, path, { token, headers: asked }),
        ]),
        ...bodies.map(([method, path, body]) => compose(method, path, { token, headers, body })),
        compose('PUT', '/book/1', { token, headers: `${headers}Content-Length: 0\r\n` }),
        compose('GET', `/${'x'.repeat(20_000)}`, { token, headers }),
        compose('POST', '/book', { token, headers: `${headers}Content-Length: 1048577\r\n` }),
      ];
      await Promise.all(
        requests.map(async (bytes) => {
          const answer = await ask(service, bytes);
          assert.match(answer, /^HTTP\/1\.1 \d/, bytes.slice(0, 200).toString());
          assert.equal(await ask(pageOf(service), bytes), answer, bytes.slice(0, 200).toString());
        }),
      );
    });

    test('rule 34: it has the same books and tokens', async () => {
      const page = await Client.logIn(pageOf(service));
      const { id } = await page.create({ title: 'from the page' });
      assert.equal((await service.client.request('GET', `/book/${id}`)).data.title, 'from the page');
      const other = new Client(service, page.token);
      assert.equal((await other.request('DELETE', `/book/${id}`)).status, 200);
      assert.equal((await page.request('GET', `/book/${id}`)).status, 404);
    });
  });

  test('rules 29 and 34: failed logins count together with those of the other port', async (context) => {
    const service = await start(context);
    const guess = (target: Target) =>
      request(target, 'POST', '/token', { body: { username: 'x', password: 'y' } });
    for (let count = 0; count < 5; count += 1) {
      assert.equal((await guess(service)).status, 401);
      assert.equal((await guess(pageOf(service))).status, 401);
    }
    const delayed = () => service.log.some((line) => line.includes('too many failed logins'));
    assert.equal(delayed(), false);
    const late = guess(pageOf(service));
    await waitUntil(delayed, late);
    assert.equal((await late).status, 401);
  });

  test('rules 27 and 34: a service whose PORT is in use does not say that it runs without the ports beside it', async (context) => {
    const port = await adjacentPorts(3);
    for (const place of [port, port + 1, port + 2]) await listen(context, undefined, place);
    const env = { ...ENVIRONMENT, PORT: String(port), DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
    const { code, stdout, stderr } = await runCommand([], env);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, new RegExp(`^PORT ${port} is in use`));
  });

  for (const WORKERS of ['1', '2']) {
    test(`rules 28 and 34: it is on the second port after PORT; if that is in use, the service runs without it, WORKERS=${WORKERS}`, async (context) => {
      const port = await adjacentPorts(3);
      const taken = await listen(context, (socket) => socket.destroy(), port + 2);
      const env = { WORKERS, PORT: String(port), ADMIN_PORT: '0' };
      const begin = WORKERS === '1' ? start : startProcess;
      const alone = await begin(context, env);
      assert.equal(alone.pageUrl, '');
      await waitUntil(() => warningsOf(alone).length > 0);
      const [warning = '', ...others] = warningsOf(alone);
      assert.equal(WITHOUT_PAGE.exec(warning)?.[1], String(port + 2));
      assert.deepEqual(others, []);
      assert.equal((await request(alone, 'GET', '/')).status, 404);
      await alone.stop();
      taken.close();
      const beside = await begin(context, env);
      assert.equal(beside.pageUrl, `http://127.0.0.1:${port + 2}`);
      if ('process' in beside) await assertEveryWorkerServes(beside);
      assert.equal((await fetch(beside.pageUrl)).status, 200);
      await beside.stop();
      assert.equal(await accepts('127.0.0.1', port + 2), false);
    });
  }

  test('rule 34: it is the second port before PORT if no port is left after it', async () => {
    for (const [PORT, page] of [
      ['8080', '8082'],
      ['65533', '65535'],
      ['65534', '65532'],
      ['65535', '65533'],
    ] as const) {
      const { stdout } = await runCommand(['config'], { ...ENVIRONMENT, PORT });
      assert.match(stdout, new RegExp(`^PAGE_PORT=${page}$`, 'm'));
    }
  });

  test('rule 34: PAGE_PORT=off and FIND=off turn it off', async (context) => {
    for (const env of [
      { PAGE_PORT: 'off' },
      { PAGE_PORT: 'false' },
      { FIND: 'off' },
      { FIND: 'off', PAGE_PORT: 'off' },
    ]) {
      const { stdout, stderr } = await runCommand(['config'], { ...ENVIRONMENT, ...env });
      assert.match(stdout, /^PAGE_PORT=off$/m);
      assert.equal(stderr, '');
    }
    const port = await adjacentPorts(3);
    const service = await start(context, { FIND: 'off', PORT: String(port), ADMIN_PORT: '0' });
    assert.equal(service.pageUrl, '');
    assert.equal(await accepts('127.0.0.1', port + 2), false);
    assert.deepEqual(warningsOf(service), []);
  });

  test('rule 34: if ADMIN_PORT is its default port, the service warns and runs without it', async (context) => {
    const port = await adjacentPorts(3);
    const env = { PORT: String(port), ADMIN_PORT: String(port + 2) };
    const service = await start(context, env);
    assert.equal(service.pageUrl, '');
    const warning = `ADMIN_PORT ${port + 2} is the default of PAGE_PORT: the service runs without the page.`;
    await waitUntil(() => warningsOf(service).includes(warning));
    assert.equal((await runCommand(['config'], { ...ENVIRONMENT, ...env })).stderr, `${warning}\n`);
  });
});

/** Starts the command in this process. */
async function start(context: TestContext, env: Record<string, string> = {}): Promise<CommandHere> {
  const DB_URL = await SQLITE.freshUrl();
  const service = await startHere({ ...ENVIRONMENT, DB_URL, LOG_LEVEL: 'info', ...env });
  context.after(() => service.stop());
  return service;
}

/** Starts the command in separate processes. */
async function startProcess(context: TestContext, env: Record<string, string>): Promise<CommandProcess> {
  const DB_URL = await SQLITE.freshUrl();
  const service = await startCommand({ ...ENVIRONMENT, DB_URL, LOG_LEVEL: 'info', ...env });
  context.after(() => service.process.kill('SIGKILL'));
  return service;
}

/** Also a worker that has replaced another one. */
async function assertEveryWorkerServes(service: CommandProcess): Promise<void> {
  const serving = () => lines(service).filter(({ msg }) => msg === 'a worker is serving');
  await waitUntil(() => serving().length === 2);
  process.kill(serving()[0]?.pid as number, 'SIGKILL');
  await waitUntil(() => serving().length === 3);
  const texts = new Set<string>();
  const processes = new Set<string>();
  await waitUntil(async () => {
    const [answer] = await exchange(pageOf(service), 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    assert.equal(answer?.status, 200);
    texts.add(answer?.body ?? '');
    processes.add((answer?.headers['x-request-id'] ?? '').replace(/-[^-]*$/, ''));
    return processes.size === 2;
  });
  assert.equal(texts.size, 1);
}

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly pid: number;
}

function lines({ log }: { readonly log: readonly string[] }): Line[] {
  return log.map((line) => JSON.parse(line));
}

function warningsOf(service: { readonly log: readonly string[] }): string[] {
  return lines(service)
    .filter(({ level, msg }) => level === 'warn' && msg !== 'slow request')
    .map(({ msg }) => msg);
}
