// Several processes behind one port: what they share, what becomes of it when one of them dies, and that
// none is left behind. The lifecycle tests run with several workers, too.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, renameSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { accepts, exchange } from '../support/client.ts';
import { unusedPort } from '../support/ports.ts';
import { freshDatabase, PostgresServer } from '../support/postgres.ts';
import {
  type CommandProcess,
  ENVIRONMENT,
  fileOf,
  SQLITE,
  STORES,
  spawnService,
  startCommand,
  startServiceProcess,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const WORKERS = 3;

describe('workers', { concurrency: 2, timeout: 120_000 }, () => {
  for (const store of STORES) {
    test(`rule 28: on ${store.name}, they share port, store and ids`, async (context) => {
      const service = await start(context, await store.freshUrl());
      const answers = await Promise.all(
        Array.from({ length: 60 }, () => exchange(service, post('/book', '{}', service.client.token))),
      );
      const ids = answers.map(([answer]) => {
        assert.equal(answer?.status, 201);
        return JSON.parse(answer?.body ?? '').data.id as number;
      });
      assert.equal(new Set(ids).size, 60);
      assert.equal(new Set(answers.map(([answer]) => processOf(answer?.headers))).size, WORKERS);
      assert.deepEqual(
        (await service.client.list()).map(({ id }) => id),
        ids.sort((one, other) => one - other),
      );
    });

    test(`rule 28: on ${store.name}, one that is killed loses nothing and is replaced`, async (context) => {
      const service = await start(context, await store.freshUrl());
      const answered: string[] = [];
      let victims = 0;
      await Promise.all(
        Array.from({ length: 16 }, async (_, writer) => {
          for (let count = 0; answered.length < 1500; count += 1) {
            const title = `${writer}/${count}`;
            // A connection of its own for each: some of them break with the worker that had them.
            const body = JSON.stringify({ title });
            const [answer] = await exchange(service, post('/book', body, service.client.token)).catch(
              () => [],
            );
            if (answer === undefined) continue;
            assert.equal(answer.status, 201);
            answered.push(title);
            if (answered.length % 300 === 0 && victims < 3) {
              process.kill(servingWorkers(service)[0] as number, 'SIGKILL');
              victims += 1;
            }
          }
        }),
      );
      await waitUntil(() => servingWorkers(service).length === WORKERS);
      const ended = messages(service, 'a worker ended; another takes its place');
      assert.equal(ended.length, 3);
      const stored = new Set((await service.client.list()).map(({ title }) => title));
      for (const title of answered) assert.ok(stored.has(title), `${title} was answered and is lost`);
    });
  }

  test('rules 16 and 28: without SECRET_TOKEN, the token of one opens the others', async (context) => {
    const { SECRET_TOKEN: _, AUTH_USERNAME: _name, AUTH_PASSWORD: _password, ...env } = ENVIRONMENT;
    const service = await startCommand({
      ...env,
      WORKERS: String(WORKERS),
      LOG_LEVEL: 'info',
      DB_URL: `sqlite:${temporaryFolder()}/books.db`,
    });
    context.after(() => service.process.kill('SIGKILL'));
    const [login] = await exchange(service, post('/token', '{"username":"admin","password":"password"}'));
    const { token } = JSON.parse(login?.body ?? '').data;
    const processes = new Set<string>();
    for (let count = 0; count < 10 * WORKERS; count += 1) {
      const [answer] = await exchange(
        service,
        `GET /books HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\n\r\n`,
      );
      assert.equal(answer?.status, 200);
      processes.add(processOf(answer?.headers));
    }
    assert.equal(processes.size, WORKERS);
    assert.equal(service.log.filter((line) => line.includes('SECRET_TOKEN is not set')).length, 1);
  });

  test('rule 28: none outlives the process that started it', async (context) => {
    const service = await start(context, await freshDatabase());
    const workers = servingWorkers(service);
    assert.equal(workers.length, WORKERS);
    service.process.kill('SIGKILL');
    await waitUntil(() => !workers.some(isAlive));
    assert.equal(await accepts('127.0.0.1', service.port), false);
  });

  test('rule 28: whoever connects while they start is refused or answered, never reset', async (context) => {
    for (let count = 0; count < 3; count += 1) {
      const port = await unusedPort();
      const process = spawnService({
        ...ENVIRONMENT,
        WORKERS: String(WORKERS),
        PORT: String(port),
        DB_URL: `sqlite:${temporaryFolder()}/books.db`,
      });
      context.after(() => process.kill('SIGKILL'));
      const target = { url: `http://127.0.0.1:${port}`, port };
      let answered = 0;
      await Promise.all(
        Array.from({ length: 4 }, async () => {
          while (answered < 200) {
            try {
              await exchange(target, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
              answered += 1;
            } catch (error) {
              assert.equal((error as NodeJS.ErrnoException).code, 'ECONNREFUSED');
            }
          }
        }),
      );
    }
  });

  test('rule 28: a port that others share already is taken all the same', async (context) => {
    const service = await start(context, `sqlite:${temporaryFolder()}/books.db`);
    const child = spawnService({
      ...ENVIRONMENT,
      WORKERS: String(WORKERS),
      PORT: String(service.port),
      DB_URL: `sqlite:${temporaryFolder()}/books.db`,
    });
    context.after(() => child.kill('SIGKILL'));
    let said = '';
    child.stderr?.on('data', (text) => {
      said += text;
    });
    const [code] = await once(child, 'close');
    assert.equal(code, 1);
    assert.match(said, /^PORT \d+ is taken by another process: [^\n]+\.\n$/);
  });

  test('rules 27 and 28: what stops one from starting is said once, and none is left', async () => {
    const env = { ...ENVIRONMENT, WORKERS: String(WORKERS), DB_URL: 'sqlite:/proc/nowhere/books.db' };
    const child = spawnService(env);
    let said = '';
    child.stderr?.on('data', (text) => {
      said += text;
    });
    const [code] = await once(child, 'close'); // every process that could still write there has ended
    assert.equal(code, 1);
    assert.match(said, /^DB_URL: sqlite:\/proc\/nowhere\/books\.db cannot be opened: [^\n]+\.\n$/);
  });

  test('rule 28: one that cannot be replaced yet is replaced once it can', async (context) => {
    const server = await PostgresServer.start();
    context.after(() => server.remove());
    const service = await start(context, server.url());
    await server.stop();
    process.kill(servingWorkers(service)[0] as number, 'SIGKILL');
    await waitUntil(() => messages(service, 'a worker could not be replaced yet').length > 0);
    await server.startAgain();
    await waitUntil(() => servingWorkers(service).length === WORKERS);
    await waitUntil(async () => (await service.client.request('POST', '/book', { body: {} })).status === 201);
  });

  test('rules 23 and 28: one that is replaced never makes a file anew that was taken away', async (context) => {
    const service = await start(context, await SQLITE.freshUrl());
    const path = fileOf(service.dbUrl);
    const book = await service.client.create({ title: 'here' });
    renameSync(path, `${path}.away`);
    process.kill(servingWorkers(service)[0] as number, 'SIGKILL');
    await waitUntil(() => messages(service, 'a worker could not be replaced yet').length > 0);
    assert.ok(!existsSync(path));
    renameSync(`${path}.away`, path);
    await waitUntil(() => servingWorkers(service).length === WORKERS);
    assert.deepEqual(await service.client.list(), [book]);
  });
});

async function start(context: TestContext, dbUrl: string) {
  const service = await startServiceProcess(dbUrl, { WORKERS: String(WORKERS) });
  context.after(() => service.stop());
  return service;
}

function messages({ log }: CommandProcess, message: string): { pid: number }[] {
  return log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === message);
}

/** Process ids of the workers that serve at this moment. */
function servingWorkers(service: CommandProcess): number[] {
  return messages(service, 'a worker serves')
    .map(({ pid }) => pid)
    .filter(isAlive);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** What all request ids that one process makes have in common. */
function processOf(headers: Record<string, string> = {}): string {
  return (headers['x-request-id'] ?? '').replace(/-[^-]*$/, '');
}

function post(path: string, body: string, token = ''): string {
  return `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
