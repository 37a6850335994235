// The operations listener: what it answers from the start of a service to its end, at which address, and to how many clients. The
// command runs in this process unless a test needs a separate one.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { openOperations } from '../../src/admin/listener.ts';
import { readConfig } from '../../src/config.ts';
import { createLog } from '../../src/log/log.ts';
import { TIMES, type Times } from '../../src/times.ts';
import { accepts, Client, Connection, exchange, type Target } from '../support/client.ts';
import { type CommandHere, runCommand, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { adjacentPorts, listen, OTHER_ADDRESSES, unusedPort } from '../support/ports.ts';
import { TcpProxy } from '../support/proxy.ts';
import {
  ENVIRONMENT,
  POSTGRES,
  SQLITE,
  STORES,
  servedAt,
  startCommand,
  startWithoutLogin,
} from '../support/service.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

const LIVEZ = 'GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';

describe('the operations listener', { concurrency: 4 }, () => {
  test('rule 31: is on the port next to PORT; if that is in use, the service runs without it', async (context) => {
    const port = await adjacentPorts(3); // the last one is that of the page
    const taken = await listen(context, undefined, port + 1);
    const alone = await start({ PORT: String(port) });
    const entries = alone.log.map((line) => JSON.parse(line));
    assert.equal(entries.find(({ msg }) => msg === 'listening').operations, undefined);
    const warnings = entries.filter(({ level }) => level === 'warn').map(({ msg }) => msg);
    assert.ok(warnings.some((text) => text.startsWith(`ADMIN_PORT ${port + 1} is in use`)));
    await alone.stop();
    taken.close();
    const beside = await start({ PORT: String(port) });
    assert.equal(operationsOf(beside).url, `http://127.0.0.1:${port + 1}`);
  });

  test('rule 31: is at the address in ADMIN_HOST, and at no other', async () => {
    const addresses = ['127.0.0.1', ...OTHER_ADDRESSES];
    for (const ADMIN_HOST of addresses) {
      const ADMIN_PORT = String(await unusedPort()); // not one that the system also gives to another listener
      const service = await start({ ADMIN_HOST, ADMIN_PORT });
      const { url, port } = operationsOf(service);
      assert.equal(url, `http://${ADMIN_HOST.includes(':') ? `[${ADMIN_HOST}]` : ADMIN_HOST}:${port}`);
      assert.deepEqual(await ask(url, '/readyz'), [200, 'ready\n']);
      for (const other of addresses.filter((address) => address !== ADMIN_HOST)) {
        assert.equal(await accepts(other, port), false, `${other} with ADMIN_HOST=${ADMIN_HOST}`);
      }
    }
  });

  test('rule 31: takes 64 connections at a time, and others once some have been closed', async (context) => {
    const operations = await open(context, TIMES);
    const connections = Array.from({ length: 65 }, () => new Connection(operations));
    const answers = await Promise.all(
      connections.map((connection) => {
        connection.send(LIVEZ).catch(() => {}); // the answers show it
        return connection.answersUntilClosed(1);
      }),
    );
    assert.equal(answers.filter(({ length }) => length === 1).length, 64);
    for (const connection of connections) connection.close();
    await waitUntil(async () => (await exchange(operations, LIVEZ))[0]?.status === 200);
  });

  test('rule 31: cuts slow clients', async (context) => {
    const operations = await open(context, timesWith({ http: { check: 50 }, admin: { request: 300 } }));
    const slow = new Connection(operations);
    await slow.send('GET /livez HTTP/1.1\r\nX: ');
    await slow.closed;
    assert.match(slow.received, /^HTTP\/1\.1 408 /);
  });

  test('rule 31: says starting until the store is open', async (context) => {
    const silent = await listen(context);
    const ADMIN_PORT = String(await unusedPort());
    const DB_URL = `postgres://user:password@127.0.0.1:${silent.port}/library`;
    const stop = Promise.withResolvers<void>();
    const env = { ...ENVIRONMENT, ADMIN_PORT, DB_URL };
    const outcome = runCommand([], env, { stop: stop.promise });
    await waitUntil(() => accepts('127.0.0.1', Number(ADMIN_PORT)), outcome);
    const operations = `http://127.0.0.1:${ADMIN_PORT}`;
    assert.deepEqual(await ask(operations, '/readyz'), [503, 'starting\n']);
    assert.deepEqual(await ask(operations, '/metrics'), [503, 'starting\n']);
    assert.deepEqual(await ask(operations, '/livez'), [200, 'alive\n']);
    stop.resolve();
    assert.equal((await outcome).code, 0);
  });

  test('rules 28 and 31: says that the service is alive, ready and then draining', async () => {
    const own = { LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl(), WORKERS: '2' };
    const service = await startCommand({ ...ENVIRONMENT, ...own });
    const operations = operationsOf(service).url;
    assert.deepEqual(await ask(operations, '/livez'), [200, 'alive\n']);
    assert.deepEqual(await ask(operations, '/readyz'), [200, 'ready\n']);
    assert.equal((await ask(operations, '/book/1'))[0], 404);
    for (const path of ['/livez', '/readyz', '/metrics'])
      assert.equal((await ask(service.url, path))[0], 404);

    const { pid } = service.log.map((line) => JSON.parse(line)).find(({ msg }) => /worker is/.test(msg));
    process.kill(pid, 'SIGSTOP'); // which delays the end of the service
    service.process.kill('SIGTERM');
    await waitUntil(async () => (await ask(operations, '/readyz'))[1] !== 'ready\n');
    assert.deepEqual(await ask(operations, '/readyz'), [503, 'draining\n']);
    assert.deepEqual(await ask(operations, '/livez'), [200, 'alive\n']);
    process.kill(pid, 'SIGCONT');
    await waitUntil(() => service.process.exitCode !== null);
    assert.equal(service.process.exitCode, 0);
  });

  if (STORES.includes(POSTGRES)) {
    test('rules 23 and 31: is alive but not ready while the database is unavailable', async (context) => {
      const { proxy, proxiedUrl } = await TcpProxy.to(await POSTGRES.freshUrl());
      const { url } = operationsOf(await start({ DB_URL: proxiedUrl }));
      const { target } = proxy;
      proxy.target = await listen(context, (socket) => socket.destroy());
      proxy.reset();
      await waitUntil(async () => (await ask(url, '/readyz'))[0] === 503);
      assert.deepEqual(await ask(url, '/readyz'), [503, 'the store does not answer\n']);
      assert.deepEqual(await ask(url, '/livez'), [200, 'alive\n']);
      proxy.target = target;
      await waitUntil(async () => (await ask(url, '/readyz'))[0] === 200);
    });
  }

  test('rule 31: is ready while the service gives up calls because too many wait', async (context) => {
    const times = timesWith({ books: { deadline: -1 } }); // every call waits too long
    const service = await startWithoutLogin(await SQLITE.freshUrl(), {}, process.stderr, times);
    context.after(() => service.close());
    const client = await Client.logIn(servedAt(service.url));
    assert.equal((await client.request('GET', '/book/1')).status, 503);
    assert.equal(await service.storeAnswers(), true);
  });
});

/** Opens a listener alone. */
async function open(context: TestContext, times: Times): Promise<Target> {
  const variables = { ...ENVIRONMENT, ADMIN_PORT: '0', DB_URL: 'sqlite:x' };
  const config = readConfig(variables);
  const listener = await openOperations(config, createLog('silent', process.stderr, times.log), times);
  assert.ok('close' in listener);
  context.after(() => listener.close());
  return listener;
}

/** Starts the command in this process, on SQLite unless `env` says otherwise. */
async function start(env: Record<string, string> = {}): Promise<CommandHere> {
  const DB_URL = await SQLITE.freshUrl();
  return startHere({ ...ENVIRONMENT, DB_URL, LOG_LEVEL: 'info', ...env });
}

async function ask(url: string, path: string): Promise<[status: number, text: string]> {
  const response = await fetch(`${url}${path}`);
  return [response.status, await response.text()];
}
