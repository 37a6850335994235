// The operations listener: what it says at each moment of a service's life, and where it is.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { accepts, Connection } from '../support/client.ts';
import { operationsOf } from '../support/operations.ts';
import { unusedPort } from '../support/ports.ts';
import { freshDatabase, PostgresServer } from '../support/postgres.ts';
import {
  type CommandProcess,
  ENVIRONMENT,
  STORES,
  spawnService,
  startCommand,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

describe('the operations listener', { concurrency: 2, timeout: 120_000 }, () => {
  for (const store of STORES) {
    for (const WORKERS of ['1', '2']) {
      test(`rule 31: on ${store.name}, WORKERS=${WORKERS}, says that the service is there and ready`, async (context) => {
        const service = await start(context, { DB_URL: await store.freshUrl(), WORKERS });
        const operations = operationsOf(service).url;
        assert.deepEqual(await ask(operations, '/livez'), [200, 'alive\n']);
        assert.deepEqual(await ask(operations, '/readyz'), [200, 'ready\n']);
        assert.equal((await ask(operations, '/book/1'))[0], 404);
        assert.equal((await ask(service.url, '/livez'))[0], 404);
        assert.equal((await ask(service.url, '/readyz'))[0], 404);
      });
    }
  }

  for (const WORKERS of ['1', '2']) {
    test(`rule 31: WORKERS=${WORKERS}, is alive and not ready while the database is away`, async (context) => {
      const server = await PostgresServer.start();
      context.after(() => server.remove());
      const service = await start(context, { DB_URL: server.url(), WORKERS });
      const operations = operationsOf(service).url;
      await server.stop();
      await waitUntil(async () => (await ask(operations, '/readyz'))[0] === 503);
      assert.deepEqual(await ask(operations, '/readyz'), [503, 'the store does not answer\n']);
      assert.deepEqual(await ask(operations, '/livez'), [200, 'alive\n']);
      await server.startAgain();
      await waitUntil(async () => (await ask(operations, '/readyz'))[0] === 200);
    });

    test(`rule 31: WORKERS=${WORKERS}, says draining while the service ends, and ends with it`, async (context) => {
      const service = await start(context, { DB_URL: await freshDatabase(), WORKERS });
      const operations = operationsOf(service).url;
      // A request that never ends holds the service for as long as it may.
      const request = new Request(`${service.url}/book`, {
        method: 'POST',
        body: new ReadableStream(),
        duplex: 'half',
      } as RequestInit);
      void fetch(request).catch(() => {});
      await waitUntil(async () => (await ask(operations, '/readyz'))[0] === 200);
      service.process.kill('SIGTERM');
      await waitUntil(async () => (await ask(operations, '/readyz'))[1] === 'draining\n');
      assert.deepEqual(await ask(operations, '/livez'), [200, 'alive\n']);
      await waitUntil(() => service.process.exitCode !== null);
      assert.equal(service.process.exitCode, 0);
    });
  }

  test('rule 31: whoever is slow there keeps neither the service nor operators from anything', async (context) => {
    const service = await start(context, { DB_URL: `sqlite:${temporaryFolder()}/books.db` });
    const operations = operationsOf(service);
    const slow = Array.from({ length: 200 }, () => new Connection(operations));
    await Promise.all(slow.map(({ socket }) => socket.write('GET /livez HTTP/1.1\r\nX: ')));
    assert.equal((await ask(service.url, '/books'))[0], 401);
    await Promise.all(slow.map(({ closed }) => closed));
    assert.deepEqual(await ask(operations.url, '/livez'), [200, 'alive\n']);
  });

  test('rule 31: a worker that hangs is left out, and leaves nothing behind', async (context) => {
    const service = await start(context, { DB_URL: `sqlite:${temporaryFolder()}/books.db`, WORKERS: '2' });
    let warned = '';
    service.process.stderr?.on('data', (text) => {
      warned += text;
    });
    const { pid } = entry(service, 'a worker serves');
    process.kill(Number(pid), 'SIGSTOP');
    context.after(() => process.kill(Number(pid), 'SIGKILL'));
    const operations = operationsOf(service).url;
    const answers = await Promise.all(Array.from({ length: 15 }, () => ask(operations, '/metrics')));
    for (const [status, text] of answers) {
      assert.equal(status, 200);
      assert.equal(/worker="1"/.test(text) && /worker="2"/.test(text), false);
    }
    assert.deepEqual(await ask(operations, '/readyz'), [200, 'ready\n']);
    assert.equal(warned, '');
  });

  test('rule 31: says starting before the store is there', async (context) => {
    const silent = await listen(context, 0); // accepts, and never says a word
    const operations = await unusedPort();
    const child = spawnService({
      ...ENVIRONMENT,
      ADMIN_PORT: String(operations),
      DB_URL: `postgres://user:password@127.0.0.1:${portOf(silent)}/library`,
    });
    context.after(() => child.kill('SIGKILL'));
    await waitUntil(() => accepts('127.0.0.1', operations));
    assert.deepEqual(await ask(`http://127.0.0.1:${operations}`, '/readyz'), [503, 'starting\n']);
    assert.deepEqual(await ask(`http://127.0.0.1:${operations}`, '/livez'), [200, 'alive\n']);
    await waitUntil(() => child.exitCode !== null);
    assert.equal(child.exitCode, 1);
  });

  test('rule 31: is beside the port, and the service goes on without it when that one is taken', async (context) => {
    const [port, taken] = await neighbours(context);
    const DB_URL = `sqlite:${temporaryFolder()}/books.db`;
    const alone = await start(context, { DB_URL, PORT: String(port), LOG_LEVEL: 'info' });
    assert.equal(entry(alone, 'listening').operations, undefined);
    assert.match(
      alone.log.find((line) => JSON.parse(line).level === 'warn') ?? '',
      new RegExp(`ADMIN_PORT ${port + 1} is taken`),
    );
    await alone.stop();
    taken.close();
    const beside = await start(context, { DB_URL, PORT: String(port) });
    assert.equal(operationsOf(beside).url, `http://127.0.0.1:${port + 1}`);
  });

  test('rule 31: one that was asked for and cannot be had ends the process', async (context) => {
    const taken = await listen(context, 0);
    const child = spawnService({
      ...ENVIRONMENT,
      ADMIN_PORT: String(portOf(taken)),
      DB_URL: `sqlite:${temporaryFolder()}/books.db`,
    });
    context.after(() => child.kill('SIGKILL'));
    let said = '';
    child.stderr?.on('data', (text) => {
      said += text;
    });
    await waitUntil(() => child.exitCode !== null);
    assert.equal(child.exitCode, 1);
    assert.equal(
      said,
      `ADMIN_PORT ${portOf(taken)} is taken by another process: stop it or choose another port.\n`,
    );
  });
});

async function start(context: TestContext, env: Record<string, string>): Promise<CommandProcess> {
  const service = await startCommand({ ...ENVIRONMENT, LOG_LEVEL: 'info', ...env });
  context.after(() => service.process.kill('SIGKILL'));
  return service;
}

function entry(service: CommandProcess, message: string): Record<string, unknown> {
  return JSON.parse(service.log.find((line) => line.includes(`"msg":"${message}"`)) ?? '{}');
}

async function ask(url: string, path: string): Promise<[status: number, text: string]> {
  const response = await fetch(`${url}${path}`);
  return [response.status, await response.text()];
}

async function listen(context: TestContext, port: number): Promise<Server> {
  const server = createServer();
  context.after(() => server.close());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return server;
}

function portOf(server: Server): number {
  return (server.address() as { port: number }).port;
}

/** A free port, and the one above it, on which somebody listens. */
async function neighbours(context: TestContext): Promise<[port: number, above: Server]> {
  for (;;) {
    const port = await unusedPort();
    try {
      return [port, await listen(context, port + 1)];
    } catch {} // not free: another pair
  }
}
