// The operations listener: what it answers from the start of a service to its end, and at which address. The command
// runs in this process unless a test needs a separate one.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { accepts, Connection, exchange } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { adjacentPorts, listen, otherAddresses, unusedPort } from '../support/ports.ts';
import { ENVIRONMENT, SQLITE } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const LIVEZ = 'GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';

describe('the operations listener', { concurrency: 4 }, () => {
  test('rule 31: is on the port next to PORT; if that is in use, the service runs without it', async (context) => {
    const port = await adjacentPorts(3); // the last one is that of the page
    const taken = await listen(context, undefined, port + 1);
    const alone = await start(context, { PORT: String(port) });
    const entries = alone.log.map((line) => JSON.parse(line));
    assert.equal(entries.find(({ msg }) => msg === 'listening').operations, undefined);
    const warnings = entries.filter(({ level }) => level === 'warn').map(({ msg }) => msg);
    assert.ok(warnings.some((text) => text.startsWith(`ADMIN_PORT ${port + 1} is in use`)));
    await alone.stop();
    taken.close();
    const beside = await start(context, { PORT: String(port) });
    assert.equal(operationsOf(beside).url, `http://127.0.0.1:${port + 1}`);
  });

  test('rule 31: is at the address in ADMIN_HOST, and at no other', async (context) => {
    const addresses = ['127.0.0.1', ...(await otherAddresses(context))];
    for (const ADMIN_HOST of addresses) {
      const ADMIN_PORT = String(await unusedPort()); // not one that the system also gives to another listener
      const service = await start(context, { ADMIN_HOST, ADMIN_PORT });
      const { url, port } = operationsOf(service);
      assert.equal(url, `http://${ADMIN_HOST.includes(':') ? `[${ADMIN_HOST}]` : ADMIN_HOST}:${port}`);
      assert.deepEqual(await ask(url, '/readyz'), [200, 'ready\n']);
      for (const other of addresses.filter((address) => address !== ADMIN_HOST)) {
        assert.equal(await accepts(other, port), false, `${other} with ADMIN_HOST=${ADMIN_HOST}`);
      }
    }
  });

  test('rule 31: takes 64 connections at a time, and others once some have been closed', async (context) => {
    const operations = operationsOf(await start(context));
    const connections = Array.from({ length: 65 }, () => new Connection(operations));
    const close = () => {
      for (const connection of connections) connection.close();
    };
    context.after(close);
    const answers = await Promise.all(
      connections.map((connection) => {
        connection.send(LIVEZ).catch(() => {}); // the answers show it
        return connection.answersUntilClosed(1);
      }),
    );
    assert.equal(answers.filter(({ length }) => length === 1).length, 64);
    close();
    await waitUntil(async () => (await exchange(operations, LIVEZ))[0]?.status === 200);
  });
});

/** Starts the command in this process, on SQLite unless `env` says otherwise. */
async function start(context: TestContext, env: Record<string, string> = {}): Promise<CommandHere> {
  const DB_URL = await SQLITE.freshUrl();
  const service = await startHere({ ...ENVIRONMENT, DB_URL, LOG_LEVEL: 'info', ...env });
  context.after(() => service.stop());
  return service;
}

async function ask(url: string, path: string): Promise<[status: number, text: string]> {
  const response = await fetch(`${url}${path}`);
  return [response.status, await response.text()];
}
