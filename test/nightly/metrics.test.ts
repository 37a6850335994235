// Several processes, of which one hangs: their metrics. In the times of the product.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operationsOf } from '../support/operations.ts';
import { scrape } from '../support/prometheus.ts';
import { ENVIRONMENT, SQLITE, startCommand } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

test('rule 31: with WORKERS=2 each process has its own metrics, but one that hangs or has ended', async () => {
  const own = { LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl(), WORKERS: '2' };
  const service = await startCommand({ ...ENVIRONMENT, ...own });
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
  const { pid } = service.log.map((line) => JSON.parse(line)).find(({ msg }) => /worker is/.test(msg));
  process.kill(pid, 'SIGSTOP');
  await started('0', '2');
  await waitUntil(async () => (await fetch(`${operations}/readyz`)).status === 200);
  process.kill(pid, 'SIGKILL');
  const after = await started('0', '1', '2');
  assert.ok(Number(after.get('1')) > Number(before.get('1'))); // another process, with the same number
  assert.equal(after.get('2'), before.get('2'));
});
