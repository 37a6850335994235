// Several processes behind one port that start, cannot be replaced, or fail to answer.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, renameSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { exchange } from '../support/client.ts';
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
  startServiceProcess,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

describe('workers', { concurrency: 3 }, () => {
  test('rule 28: one that cannot be replaced for lack of open files is replaced once there are some', async (context) => {
    const service = await start(context);
    const { pid } = service.process;
    execFileSync('prlimit', ['--pid', String(pid), '--nofile=10:']);
    killWorker(service);
    await waitUntil(() => messages(service, 'a worker could not be replaced: retrying').length > 0);
    execFileSync('prlimit', ['--pid', String(pid), '--nofile=1024:']);
    await waitUntil(() => messages(service, 'a worker is serving').length === 3);
    await service.stop();
    assert.equal(service.process.exitCode, 0);
  });

  test('rule 28: clients that connect while they start are refused or answered, never reset', async (context) => {
    const port = await unusedPort();
    const ports = { PORT: String(port), ADMIN_PORT: '0', PAGE_PORT: '0' };
    const service = spawnService({ ...ENVIRONMENT, ...ports, WORKERS: '2', DB_URL: await SQLITE.freshUrl() });
    context.after(() => service.kill('SIGKILL'));
    const target = { url: `http://127.0.0.1:${port}`, port };
    for (let answered = 0; answered < 100; ) {
      const asked = Array.from({ length: 4 }, () => exchange(target, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
      for (const outcome of await Promise.allSettled(asked)) {
        if (outcome.status === 'fulfilled') answered += 1;
        else assert.equal(outcome.reason.code, 'ECONNREFUSED');
      }
      assert.equal(service.exitCode, null);
    }
  });

  test('rules 23 and 28: a failed replacement is retried after a second, and creates no file in place of a missing one', async (context) => {
    const service = await start(context);
    const path = fileOf(service.dbUrl);
    const book = await service.client.create({ title: 'here' });
    renameSync(path, `${path}.away`);
    killWorker(service);
    const attempts = () => messages(service, 'a worker could not be replaced: retrying');
    await waitUntil(() => attempts().length >= 3);
    const [, first, second] = attempts().map(({ time }) => Date.parse(time)) as [number, number, number];
    const rounding = 5; // milliseconds between the clock of the lines and that of the timers
    assert.ok(second - first >= 1000 - rounding);
    assert.ok(!existsSync(path));
    renameSync(`${path}.away`, path);
    await waitUntil(() => messages(service, 'a worker is serving').length === 3);
    assert.deepEqual(await service.client.list(), [book]);
  });

  test('rules 28 and 31: a worker that fails to answer for its metrics is left out and serves on', async (context) => {
    const fault = `
      if (process.send !== undefined)
        require('node:perf_hooks').performance.eventLoopUtilization = () => { throw new Error('as the test wishes'); };`;
    const service = await start(context, { NODE_OPTIONS: preloaded(fault) });
    const { samples = [] } = (await scrape(operationsOf(service).url)).get('process_open_fds') ?? {};
    assert.deepEqual(
      samples.map(({ labels }) => labels.worker),
      ['0'],
    );
    await waitUntil(() => messages(service, 'the operations listener failed to answer').length === 2);
    assert.equal((await service.client.request('GET', '/books')).status, 200);
    assert.equal(messages(service, 'a worker exited: starting a replacement').length, 0);
  });
});

async function start(context: TestContext, env: Record<string, string> = {}) {
  const service = await startServiceProcess(await SQLITE.freshUrl(), { WORKERS: '2', ...env });
  context.after(() => service.stop());
  return service;
}

function messages(
  { log }: CommandProcess,
  message: string,
): { readonly pid: number; readonly time: string }[] {
  return log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === message);
}

function killWorker(service: CommandProcess): void {
  process.kill(messages(service, 'a worker is serving')[0]?.pid as number, 'SIGKILL');
}
