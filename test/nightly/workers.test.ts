// Several processes behind one port that start, cannot be replaced, or fail to answer.

import assert from 'node:assert/strict';
import { existsSync, renameSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { Connection, exchange } from '../support/client.ts';
import { operationsOf } from '../support/operations.ts';
import { unusedPort } from '../support/ports.ts';
import { scrape } from '../support/prometheus.ts';
import {
  type CommandProcess,
  ENVIRONMENT,
  fileOf,
  preloaded,
  SQLITE,
  spawnService,
  startCommand,
  startServiceProcess,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const WORKERS = 2;

/** Milliseconds between two attempts to replace a worker. */
const RETRY_PAUSE = 1000;

/** Attempts to wait for, after the first one. */
const ATTEMPTS = 2;

describe('workers', { concurrency: 3 }, () => {
  test('rule 28: one that cannot be replaced for lack of open files is replaced once there are some, and SIGTERM ends the service as ever', async (context) => {
    const environment = { ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl(), WORKERS: String(WORKERS) };
    const service = await startCommand({ ...environment, LOG_LEVEL: 'info' }, undefined, 'ulimit -n 64');
    context.after(() => service.process.kill('SIGKILL'));
    const operations = operationsOf(service);
    const attempts = () => messages(service, 'a worker could not be replaced: retrying').length;
    while (attempts() === 0) {
      const greedy = Array.from({ length: 64 }, () => new Connection(operations)); // they are cut after 5 s
      context.after(() => greedy.map((connection) => connection.close()));
      await Promise.all(greedy.map((connection) => connection.send('GET ').catch(() => {})));
      const serving = () => messages(service, 'a worker is serving').length;
      const before = serving();
      process.kill(servingWorkers(service)[0] as number, 'SIGKILL');
      await waitUntil(() => attempts() > 0 || serving() > before);
      for (const connection of greedy) connection.close();
    }
    await waitUntil(() => servingWorkers(service).length === WORKERS);
    await service.stop();
    assert.equal(service.process.exitCode, 0);
  });

  test('rule 28: clients that connect while they start are refused or answered, never reset', async (context) => {
    const port = await unusedPort();
    const service = spawnService({
      ...ENVIRONMENT,
      WORKERS: String(WORKERS),
      PORT: String(port),
      ADMIN_PORT: '0',
      PAGE_PORT: '0',
      DB_URL: await SQLITE.freshUrl(),
    });
    context.after(() => service.kill('SIGKILL'));
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
            assert.equal(service.exitCode, null);
          }
        }
      }),
    );
  });

  test('rules 23 and 28: a failed replacement is retried every second, and creates no file in place of a missing one', async (context) => {
    const service = await start(context, await SQLITE.freshUrl());
    const path = fileOf(service.dbUrl);
    const book = await service.client.create({ title: 'here' });
    renameSync(path, `${path}.away`);
    process.kill(servingWorkers(service)[0] as number, 'SIGKILL');
    const attempts = () => messages(service, 'a worker could not be replaced: retrying').map(timeOf);
    await waitUntil(() => attempts().length > 0);
    const silent = new Connection(service); // closed after 15 s, since it sends no request (rule 22)
    let isClosed = false;
    void silent.closed.then(() => {
      isClosed = true;
    });
    await waitUntil(() => isClosed || attempts().length > ATTEMPTS);
    silent.socket.destroy();

    const times = attempts();
    const [ended] = messages(service, 'a worker exited: starting a replacement').map(timeOf);
    const duration = Number(times[0]) - Number(ended); // the first attempt is made at once
    context.diagnostic(`${times.length} attempts; one takes ${duration} ms`);
    // On an even slower machine, 15 s are too short for them in any case.
    if (duration < 3000) assert.ok(times.length > ATTEMPTS, 'within 15 s');
    const rounding = 5; // milliseconds between the clock of the lines and that of the timers
    for (const [position, time] of times.entries()) {
      if (position > 0) assert.ok(time - Number(times[position - 1]) >= RETRY_PAUSE - rounding);
    }
    assert.ok(!existsSync(path));
    renameSync(`${path}.away`, path);
    await waitUntil(() => servingWorkers(service).length === WORKERS);
    assert.deepEqual(await service.client.list(), [book]);
  });

  test('rules 28 and 31: a worker that fails to answer for its metrics is left out and serves on', async (context) => {
    const fault = `
      if (process.send !== undefined)
        require('node:perf_hooks').performance.eventLoopUtilization = () => { throw new Error('as the test wishes'); };`;
    const service = await start(context, await SQLITE.freshUrl(), { NODE_OPTIONS: preloaded(fault) });
    const metrics = await scrape(operationsOf(service).url);
    const { samples = [] } = metrics.get('process_open_fds') ?? {};
    assert.deepEqual(
      samples.map(({ labels }) => labels.worker),
      ['0'],
    );
    await waitUntil(() => messages(service, 'the operations listener failed to answer').length === WORKERS);
    assert.equal((await service.client.request('GET', '/books')).status, 200);
    assert.equal(messages(service, 'a worker exited: starting a replacement').length, 0);
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

function timeOf({ time }: Line): number {
  return Date.parse(time);
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

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
