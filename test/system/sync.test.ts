// No write is acknowledged before it is on disk. The real service, while strace breaks or delays the system calls that
// write to the disk and sync it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ledger } from '../support/ledger.ts';
import { attach, Disk, detach } from '../support/power.ts';
import { fileOf, SQLITE, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Options of strace that break or delay system calls. */
const injecting = (calls: string, injection: string) => [
  ...['-e', `trace=${calls}`],
  ...['-e', `inject=${calls}:${injection}`],
];

const WRITERS = 64;
const SYNCS = 'fsync,fdatasync';

/** Milliseconds. */
const DELAY = 400;

for (const [name, calls, error] of [
  ['no sync succeeds', SYNCS, 'EIO'],
  ['the disk has turned read-only', 'pwrite64', 'EROFS'],
  ['the disk does not write', 'pwrite64', 'EIO'],
] as const) {
  test(`rule 23: while ${name}, no write is acknowledged and reads succeed; afterwards writes succeed`, async (context) => {
    const service = await startServiceProcess(await SQLITE.freshUrl());
    context.after(() => service.stop());
    const ledger = new Ledger();
    const writers = ledger.writers(service.client, WRITERS);
    const writeAll = () => Promise.all(writers.map((writer) => writer.write()));
    for (let round = 0; round < 3; round += 1) {
      assert.ok((await writeAll()).every((outcome) => outcome === 'acknowledged'));
      const { acknowledged } = ledger;
      const strace = await attach(context, service, injecting(calls, `error=${error}`));
      for (let time = 0; time < 5; time += 1) {
        assert.deepEqual(new Set(await writeAll()), new Set(['unavailable']));
        assert.equal((await service.client.request('GET', '/books')).status, 200);
      }
      assert.equal(ledger.acknowledged, acknowledged);
      await detach(strace);
    }
    assert.ok((await writeAll()).every((outcome) => outcome === 'acknowledged'));
    ledger.reconcile(await service.client.list());
  });
}

test('rule 23: no write is acknowledged before its sync has ended, even among many', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl());
  context.after(() => service.stop());
  const { client } = service;
  const { id } = await client.create({ title: 'known' });
  const strace = await attach(context, service, injecting(SYNCS, `delay_exit=${DELAY * 1000}`));
  for (let round = 0; round < 3; round += 1) {
    const began = performance.now();
    const times = await Promise.all(
      Array.from({ length: WRITERS }, async (_, writer) => {
        const { status } = await (writer % 2 === 0
          ? client.request('POST', '/book', { body: { year: writer } })
          : client.request('PUT', `/book/${id}`, { body: { year: writer } }));
        assert.ok(status === 200 || status === 201);
        return performance.now() - began;
      }),
    );
    assert.ok(Math.min(...times) >= DELAY, `${Math.min(...times)} ms`);
  }
  await detach(strace);
});

test('rule 27: the service ends at SIGTERM while a disk does not answer, and loses nothing', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl());
  context.after(() => service.stop());
  const book = await service.client.create({ title: 'acknowledged' });
  const strace = await attach(context, service, injecting(SYNCS, 'delay_enter=600000000'));
  service.client.request('POST', '/book', { body: { title: 'unknown' } }).catch(() => {});
  const ended = once(service.process, 'exit');
  service.process.kill('SIGTERM');
  // strace keeps what is left of the process for as long as it delays the sync.
  await waitUntil(() => /^State:\tZ/m.test(readFileSync(`/proc/${service.process.pid}/status`, 'utf8')));
  strace.kill('SIGKILL');
  await ended;
  const again = await startServiceProcess(service.dbUrl);
  context.after(() => again.stop());
  assert.deepEqual((await again.client.list())[0], book);
});

test('rule 23: what is acknowledged after a failed sync outlives a power failure, beside the index that follows', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl());
  context.after(() => service.stop());
  const { client } = service;
  const isFound = async (title: string) => {
    const { data, headers } = await client.request('GET', `/books?title=${title}`);
    return data.length === 1 && !headers.has('x-unindexed-books');
  };
  const disk = new Disk(context, service, fileOf(service.dbUrl));
  const books = await disk.during(async () => {
    const early = await client.create({ title: 'early' });
    await waitUntil(() => isFound('early')); // the index has been written, too
    return [early];
  });
  await disk.during(async () => {
    const { status } = await client.request('POST', '/book', { body: { title: 'refused' } });
    assert.equal(status, 503);
    for (const title of ['next', 'last']) books.push(await client.create({ title }));
  }, 'error=EIO:when=1');

  const dbUrl = await SQLITE.freshUrl();
  disk.afterPowerFailure(fileOf(dbUrl));
  const again = await startServiceProcess(dbUrl);
  context.after(() => again.stop());
  assert.deepEqual(await again.client.list(), books);
});
