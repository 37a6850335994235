// The port of the librarians' page: it answers every call as the service's own port does, and shares all of it. When it
// is opened, and when not. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { unreadable } from '../../conformance/raw-requests.ts';
import { accepts, Client, Connection, exchange, request, type Target } from '../support/client.ts';
import { runCommand, startHere } from '../support/command.ts';
import { adjacentPorts, listen } from '../support/ports.ts';
import { compose, HOST } from '../support/raw-requests.ts';
import { type CommandProcess, ENVIRONMENT, pageOf, SQLITE, startCommand } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

describe('the port of the page', { concurrency: 3 }, () => {
  test('rule 34: it has the same books and tokens, and every other request without Session-Key gets the same bytes', async (context) => {
    const service = await start(context, { PORT: '0', CORS_ORIGINS: 'https://shop.example' });
    const client = await Client.logIn(pageOf(service));
    for (let number = 1; number <= 3; number += 1) await client.create({ title: `book ${number}`, year: 7 });
    const { token } = client;
    const headers = 'Connection: close\r\n';
    const asked = `${headers}Origin: https://shop.example\r\nAccess-Control-Request-Method: GET\r\n`;
    const lines = [
      'GET /books, HEAD /books?q=book&limit=2, GET /books?x=1, GET /book/1, GET /book/99, GET /book/x, DELETE /book/99',
      'PATCH /book/1, GET /token, OPTIONS /books, GET /nowhere, GET //, GET /%zz, OPTIONS *, POST /, PUT /v/x, BREW /',
    ].flatMap((some) => some.split(', ').map((line) => line.split(' ') as [string, string]));
    const login = '{"username":"librarian","password":"correct horse"}';
    const requests = [
      ...unreadable(HOST).map(([, bytes]) => Buffer.concat([Buffer.from(bytes), Buffer.from('\r\n\r\n')])),
      ...lines.flatMap(([method, path]) => [
        compose(method, path, { headers }),
        compose(method, path, { token, headers: asked }),
      ]),
      ...[login, '[]', 'x'].map((body) => compose('POST', '/token', { headers, body })),
      ...['{"year":7}', '{"year":"7"}'].map((body) => compose('PUT', '/book/1', { token, headers, body })),
      compose('POST', '/book', { token, headers: `${headers}Content-Length: 1048577\r\n` }),
    ];
    for (const bytes of requests) {
      const [answer, other] = await Promise.all(
        [service, pageOf(service)].map((target) => ask(target, bytes)),
      );
      assert.match(String(answer), /^HTTP\/1\.1 \d/, bytes.slice(0, 200).toString());
      assert.equal(other, answer, bytes.slice(0, 200).toString());
    }
  });

  test('rules S1, 29 and 34: failed logins count together, on both ports and for tokens and sessions', async (context) => {
    const service = await start(context, { PORT: '0' });
    const page = pageOf(service);
    const kinds: readonly (readonly [Target, string])[] = [
      [service, '/token'],
      [page, '/token'],
      [page, '/session'],
    ];
    const logins = Array.from({ length: 11 }, (_, count) => kinds[count % 3] as (typeof kinds)[number]);
    await Promise.all(logins.map(([target, path]) => request(target, 'POST', path, { body: {} })));
    const delayed = () => service.log.filter((line) => line.includes('too many failed logins')).length;
    await waitUntil(() => delayed() > 0);
    assert.equal(delayed(), 1);
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
      assert.equal(warningsOf(alone).length, 1);
      const warning = `^PAGE_PORT ${port + 2} is in use by another process: .* The service runs without the page\\.$`;
      assert.match(String(warningsOf(alone)), new RegExp(warning));
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

  test('rule 34: without a port after PORT it is the second one before; PAGE_PORT=off and FIND=off turn it off', async () => {
    for (const [env, page] of [
      [{ PORT: '8080' }, '8082'],
      [{ PORT: '65533' }, '65535'],
      [{ PORT: '65534' }, '65532'],
      [{ PORT: '65535' }, '65533'],
      [{ PAGE_PORT: 'off' }, 'off'],
      [{ PAGE_PORT: 'false' }, 'off'],
      [{ FIND: 'off' }, 'off'],
      [{ FIND: 'off', PAGE_PORT: 'off' }, 'off'],
    ] as const) {
      const { stdout, stderr } = await runCommand(['config'], { ...ENVIRONMENT, ...env });
      assert.match(stdout, new RegExp(`^PAGE_PORT=${page}$`, 'm'));
      assert.equal(stderr, '');
    }
  });

  test('rule 34: if ADMIN_PORT is its default port, the service warns and runs without it; with FIND=off, it only does so', async (context) => {
    const port = await adjacentPorts(3);
    const warning = `ADMIN_PORT ${port + 2} is the default of PAGE_PORT: the service runs without the page.`;
    for (const [more, warnings] of [
      [{ ADMIN_PORT: String(port + 2) }, [warning]],
      [{ ADMIN_PORT: '0', FIND: 'off' }, []],
    ] as const) {
      const service = await start(context, { PORT: String(port), ...more });
      assert.equal(service.pageUrl, '');
      assert.deepEqual(warningsOf(service), warnings);
      await service.stop();
    }
  });
});

/** Starts the command in this process. */
async function start(context: TestContext, env: Record<string, string>) {
  const own = { DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
  const service = await startHere({ ...ENVIRONMENT, ...own, ...env });
  context.after(() => service.stop());
  return service;
}

/** Starts the command in separate processes. */
async function startProcess(context: TestContext, env: Record<string, string>): Promise<CommandProcess> {
  const own = { DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
  const service = await startCommand({ ...ENVIRONMENT, ...own, ...env });
  context.after(() => service.process.kill('SIGKILL'));
  return service;
}

/** All bytes of an answer that are not different each time. */
async function ask(target: Target, bytes: string | Uint8Array): Promise<string> {
  const connection = new Connection(target);
  await connection.send(bytes);
  await connection.closed;
  return connection.received.replaceAll(/\r\n(?:date|x-request-id): [^\r]+|"token":"[^"]+"/gi, '');
}

/** Also a worker that has replaced another one. */
async function assertEveryWorkerServes(service: CommandProcess): Promise<void> {
  const serving = () => linesOf(service).filter(({ msg }) => msg === 'a worker is serving');
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

function linesOf({
  log,
}: {
  readonly log: readonly string[];
}): { level: string; msg: string; pid: number }[] {
  return log.map((line) => JSON.parse(line));
}

function warningsOf(service: { readonly log: readonly string[] }): string[] {
  const warnings = linesOf(service).filter(({ level, msg }) => level === 'warn' && msg !== 'slow request');
  return warnings.map(({ msg }) => msg);
}
