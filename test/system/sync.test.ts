// No write is acknowledged before it is on disk. The real service, while strace breaks or delays the system calls that
// write to the disk and sync it.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { Ledger } from '../support/ledger.ts';
import { type ServiceProcess, SQLITE, startServiceProcess } from '../support/service.ts';

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
      const strace = await attach(context, service, calls, `error=${error}`);
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
  const strace = await attach(context, service, SYNCS, `delay_exit=${DELAY * 1000}`);
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

/** Breaks or delays system calls of the service, in all of its threads. */
async function attach(
  context: TestContext,
  { process: { pid } }: ServiceProcess,
  calls: string,
  injection: string,
): Promise<ChildProcess> {
  const strace = spawn(
    'strace',
    ['-f', '-p', `${pid}`, '-e', `trace=${calls}`, '-e', `inject=${calls}:${injection}`],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  context.after(() => strace.kill('SIGKILL'));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    strace.once('error', () =>
      reject(new Error('strace must be installed (Debian: apt-get install strace)')),
    );
    strace.once('exit', () => reject(new Error(`strace exited: ${said}`)));
    strace.stderr?.on('data', (text) => {
      said += text;
      if (/attached/.test(said)) resolve();
    });
  });
  return strace;
}

async function detach(strace: ChildProcess): Promise<void> {
  const ended = once(strace, 'exit');
  strace.kill('SIGINT');
  await ended;
}
