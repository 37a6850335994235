// Several processes behind one port that start, cannot be replaced, or fail to answer; and their metrics. In the times of the product.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, renameSync } from 'node:fs';
import { describe, test } from 'node:test';
import { linksOf } from '../../conformance/answers.ts';
import { atEnd } from '../support/at-end.ts';
import { Client, exchange } from '../support/client.ts';
import { operationsOf } from '../support/operations.ts';
import { unusedPort } from '../support/ports.ts';
import { scrape } from '../support/prometheus.ts';
import {
  ENVIRONMENT,
  fileOf,
  preloaded,
  type ServiceProcess,
  SQLITE,
  spawnService,
  startServiceProcess,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

describe('rule 28: workers', { concurrency: 3 }, () => {
  test('clients that connect while they start are refused or answered, never reset', async () => {
    const port = await unusedPort();
    const starting = start({ PORT: `${port}`, ADMIN_PORT: '0', PAGE_PORT: '0' });
    for (let answered = 0; answered < 100; ) {
      const asked = Array.from({ length: 4 }, () => {
        return exchange({ url: '', port }, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      });
      for (const outcome of await Promise.allSettled(asked)) {
        if (outcome.status === 'fulfilled') answered += 1;
        else assert.equal(outcome.reason.code, 'ECONNREFUSED');
      }
    }
    await starting;
  });

  test('rule 27: stopped while some still start, the others answer the requests that have arrived', async () => {
    const port = await unusedPort();
    const hangs =
      "if (process.env.NODE_UNIQUE_ID === '2') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";
    const env = {
      PORT: `${port}`,
      ADMIN_PORT: '0',
      PAGE_PORT: 'off',
      WORKERS: '2',
      NODE_OPTIONS: preloaded(hangs),
    };
    const child = spawnService({ ...ENVIRONMENT, ...env, DB_URL: await SQLITE.freshUrl() }, []);
    atEnd(() => child.kill('SIGKILL'));
    const target = { url: `http://127.0.0.1:${port}`, port };
    await waitUntil(
      () =>
        fetch(target.url).then(
          () => true,
          () => false,
        ),
      once(child, 'exit'),
    );
    const client = await Client.logIn(target);
    const { next = '' } = linksOf(await client.request('GET', '/changes'));
    const waiting = client.request('GET', next, { headers: { prefer: 'wait=60' } });
    await client.request('GET', '/book/1'); // on another connection, which comes later
    child.kill('SIGTERM');
    assert.equal((await waiting).status, 200);
    await once(child, 'exit');
    assert.equal(child.exitCode, 0);
  });

  test('rule 31: one that fails to answer for its metrics is left out and serves on', async () => {
    const fault = `if (process.send !== undefined) {
      process.memoryUsage = () => { throw new Error('as the test wishes'); };
      require('node:module').syncBuiltinESMExports();
    }`;
    const service = await start({ NODE_OPTIONS: preloaded(fault) });
    const { samples = [] } = (await scrape(operationsOf(service).url)).get('process_open_fds') ?? {};
    const found = samples.map(({ labels }) => labels.worker);
    assert.deepEqual(found, ['0']);
    await waitUntil(() => messages(service, 'the operations listener failed to answer').length === 2);
    assert.equal((await service.client.request('GET', '/books')).status, 200);
    assert.equal(messages(service, 'a worker exited: starting a replacement').length, 0);
  });

  test('rule 31: each process has its own metrics, but one that hangs or has ended', async () => {
    const service = await start();
    const operations = operationsOf(service).url;
    /** The start time of each process, once exactly these have metrics. */
    const started = async (...workers: string[]) => {
      let times = new Map<string | undefined, number>();
      await waitUntil(async () => {
        const samples = (await scrape(operations)).get('process_start_time_seconds')?.samples ?? [];
        times = new Map(samples.map(({ labels, value }) => [labels.worker, value]));
        return [...times.keys()].sort().join() === workers.join();
      });
      return times;
    };
    const before = await started('0', '1', '2');
    for (const [, { samples }] of await scrape(operations)) {
      for (const { labels } of samples) assert.match(labels.worker ?? '', /^[012]$/);
    }
    const [{ pid } = { pid: 0 }] = messages(service, 'a worker is serving');
    process.kill(pid, 'SIGSTOP');
    await started('0', '2');
    await waitUntil(async () => (await fetch(`${operations}/readyz`)).status === 200);
    process.kill(pid, 'SIGKILL');
    const after = await started('0', '1', '2');
    assert.ok(Number(after.get('1')) > Number(before.get('1'))); // another process, with the same number
    assert.equal(after.get('2'), before.get('2'));
  });

  test('rules 27 and 28: with a worker that hangs, the service ends within 10 s, and leaves none behind', async () => {
    const service = await start();
    const [{ pid } = { pid: 0 }] = messages(service, 'a worker is serving');
    process.kill(pid, 'SIGSTOP');
    const began = performance.now();
    service.process.kill('SIGTERM');
    await waitUntil(() => !existsSync(`/proc/${pid}`) && service.process.exitCode !== null);
    assert.equal(service.process.exitCode, 0);
    assert.ok(performance.now() - began < 10_000);
  });

  test('rule 23: without open files, or without its store, a failed replacement is retried after a second, and creates no file', async () => {
    const service = await start();
    const path = fileOf(service.dbUrl);
    const book = await service.client.create({ title: 'here' });
    const allow = (files: number) =>
      execFileSync('prlimit', ['--pid', `${service.process.pid}`, `--nofile=${files}:`]);
    const attempts = () => messages(service, 'a worker could not be replaced: retrying');
    renameSync(path, `${path}.away`);
    allow(10);
    process.kill(messages(service, 'a worker is serving')[0]?.pid as number, 'SIGKILL');
    await waitUntil(() => attempts().length >= 2);
    const [first = 0, second = 0] = attempts().map(({ time }) => Date.parse(time));
    const rounding = 5; // milliseconds between the clock of the lines and that of the timers
    assert.ok(second - first >= 1000 - rounding);
    allow(1024);
    const { length } = attempts();
    await waitUntil(() => attempts().length > length);
    assert.ok(!existsSync(path));
    renameSync(`${path}.away`, path);
    await waitUntil(() => messages(service, 'a worker is serving').length === 3);
    assert.deepEqual(await service.client.list(), [book]);
    await service.stop();
    assert.equal(service.process.exitCode, 0);
  });
});

/** Starts it, and kills it at the end of the test if it still runs. */
async function start(env: Record<string, string> = {}): Promise<ServiceProcess> {
  return startServiceProcess(await SQLITE.freshUrl(), { WORKERS: '2', ...env });
}

function messages({ log }: ServiceProcess, message: string) {
  const lines: { msg: string; pid: number; time: string }[] = log.map((line) => JSON.parse(line));
  return lines.filter(({ msg }) => msg === message);
}
