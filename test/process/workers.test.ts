// Several processes behind one port: what they share, what happens when one of them dies, and that none is left behind.
// lifecycle.test.ts also runs with several workers.

import assert from 'node:assert/strict';
import { readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { accepts, exchange } from '../support/client.ts';
import { operationsOf } from '../support/operations.ts';
import { scrapeAll, sumOf } from '../support/prometheus.ts';
import {
  type CommandProcess,
  ENVIRONMENT,
  endOf,
  SQLITE,
  STORES,
  spawnService,
  startCommand,
  startServiceProcess,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const WORKERS = 2;

describe('workers', { concurrency: 3 }, () => {
  for (const store of STORES) {
    test(`rule 28: on ${store.name}, they share port, store and ids; one that is killed loses nothing and is replaced`, async (context) => {
      const service = await start(context, await store.freshUrl());
      const processes = new Set<string>();
      const ids: number[] = [];
      await waitUntil(async () => {
        const answers = await Promise.all(
          Array.from({ length: 10 }, () => exchange(service, post('/book', '{}', service.client.token))),
        );
        for (const [answer] of answers) {
          if (answer?.status === 503) continue; // a worker's first connection took too long for this machine
          assert.equal(answer?.status, 201);
          ids.push(JSON.parse(answer.body).data.id);
          processes.add(processOf(answer.headers));
        }
        return processes.size === WORKERS;
      });
      assert.equal(new Set(ids).size, ids.length);
      const listed = (await service.client.list()).map(({ id }) => id);
      assert.deepEqual(
        listed.filter((id) => ids.includes(id)),
        ids.sort((one, other) => one - other),
      );

      const answered: string[] = [];
      const victims = new Set<number>();
      await Promise.all(
        Array.from({ length: 16 }, async (_, writer) => {
          for (let count = 0; answered.length < 600; count += 1) {
            const title = `${writer}/${count}`;
            // A separate connection for each: some of them break with the worker that had them.
            const body = JSON.stringify({ title });
            const [answer] = await exchange(service, post('/book', body, service.client.token)).catch(
              () => [],
            );
            if (answer === undefined || answer.status === 503) continue; // too much load for this machine
            assert.equal(answer.status, 201);
            answered.push(title);
            if (answered.length !== 200 && answered.length !== 400) continue;
            const [victim] = servingWorkers(service).filter((pid) => !victims.has(pid)); // the first one may seem alive
            process.kill(victim as number, 'SIGKILL');
            victims.add(victim as number);
          }
        }),
      );
      const exits = () => messages(service, 'a worker exited: starting a replacement');
      await waitUntil(() => exits().length >= victims.size && servingWorkers(service).length === WORKERS);
      assert.deepEqual(
        exits()
          .map(({ pid }) => pid)
          .toSorted(),
        [...victims].toSorted(),
      );
      const stored = new Set((await service.client.list()).map(({ title }) => title));
      for (const title of answered) assert.ok(stored.has(title), `${title} was acknowledged and is lost`);
    });
  }

  test('rules 16 and 28: without SECRET_TOKEN, each accepts the tokens of the others', async (context) => {
    const { SECRET_TOKEN: _, AUTH_USERNAME: _name, AUTH_PASSWORD: _password, ...env } = ENVIRONMENT;
    const service = await startCommand({
      ...env,
      WORKERS: String(WORKERS),
      LOG_LEVEL: 'info',
      DB_URL: await SQLITE.freshUrl(),
    });
    context.after(() => service.stop());
    const [login] = await exchange(service, post('/token', '{"username":"admin","password":"password"}'));
    const { token } = JSON.parse(login?.body ?? '').data;
    const processes = new Set<string>();
    await waitUntil(async () => {
      const [answer] = await exchange(
        service,
        `GET /books HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${token}\r\n\r\n`,
      );
      assert.equal(answer?.status, 200);
      processes.add(processOf(answer?.headers));
      return processes.size === WORKERS;
    });
    const warnings = () => service.log.filter((line) => line.includes('SECRET_TOKEN is not set'));
    await waitUntil(() => warnings().length > 0);
    assert.equal(warnings().length, 1);
  });

  test('rule 28: none outlives the process that started it', async (context) => {
    const service = await start(context, await SQLITE.freshUrl());
    const workers = servingWorkers(service);
    assert.equal(workers.length, WORKERS);
    service.process.kill('SIGKILL');
    await waitUntil(() => !workers.some(isAlive));
    await waitUntil(async () => !(await accepts('127.0.0.1', service.port)));
  });

  test('rule 28: a port that other workers already share counts as in use', async (context) => {
    const service = await start(context, await SQLITE.freshUrl());
    const second = await startCommand({
      ...ENVIRONMENT,
      LOG_LEVEL: 'info',
      WORKERS: String(WORKERS),
      PORT: String(service.port),
      ADMIN_PORT: '0',
      PAGE_PORT: '0',
      DB_URL: await SQLITE.freshUrl(),
    }).catch((error: Error) => error);
    if (!(second instanceof Error)) {
      second.process.kill('SIGKILL');
      assert.fail('the second service serves as well');
    }
    assert.match(
      second.message,
      /^the service exited with code 1: PORT \d+ is in use by another process: [^\n]+\.\n$/,
    );
  });

  test('rules 27 and 28: the reason why one cannot start is printed once, and no process is left', async () => {
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, '');
    const DB_URL = `sqlite:${file}/books.db`;
    const env = { ...ENVIRONMENT, WORKERS: String(WORKERS), DB_URL };
    const { code, stderr } = await endOf(spawnService(env)); // every process that could still write there has ended
    assert.equal(code, 1);
    assert.ok(stderr.startsWith(`DB_URL: ${DB_URL} cannot be opened: `), stderr);
    assert.match(stderr, /^[^\n]+\.\n$/);
  });

  test('rules 28 and 31: metrics of a file that cannot be reached are left out, and no worker dies of it', async (context) => {
    const parent = temporaryFolder();
    const folder = join(parent, 'folder');
    const service = await start(context, `sqlite:${join(folder, 'books.db')}`);
    const { id } = await service.client.create({});
    renameSync(folder, join(parent, 'away'));
    symlinkSync(folder, folder); // ELOOP
    const metrics = await scrapeAll(operationsOf(service).url, 1 + WORKERS);
    assert.deepEqual(metrics.get('book_catalogue_sqlite_file_bytes')?.samples, []);
    for (const worker of ['1', '2']) assert.ok(sumOf(metrics, 'process_open_fds', { worker }) > 0);
    assert.equal((await service.client.request('GET', `/book/${id}`)).status, 200);
    assert.equal(messages(service, 'a worker exited: starting a replacement').length, 0);
    unlinkSync(folder);
    renameSync(join(parent, 'away'), folder);
  });
});

async function start(context: TestContext, dbUrl: string, env: Record<string, string> = {}) {
  const service = await startServiceProcess(dbUrl, { WORKERS: String(WORKERS), ...env });
  context.after(() => service.stop());
  return service;
}

interface Line {
  readonly pid: number;
  readonly time: string;
}

function messages({ log }: CommandProcess, message: string): Line[] {
  return log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === message);
}

/** Process ids of the workers that serve at this moment. */
function servingWorkers(service: CommandProcess): number[] {
  return messages(service, 'a worker is serving')
    .map(({ pid }) => pid)
    .filter(isAlive);
}

/** One that has ended counts as alive until its parent notices; on Linux, where a container may have none that does, not. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

/** The part that all request ids of one process have in common. */
function processOf(headers: Record<string, string> = {}): string {
  return (headers['x-request-id'] ?? '').replace(/-[^-]*$/, '');
}

function post(path: string, body: string, token = ''): string {
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
