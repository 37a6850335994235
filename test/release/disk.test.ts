// Disks that are full or read-only: the real service on a real file system of a few megabytes, in a separate
// mount namespace. Needs root.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { Client } from '../support/client.ts';
import { Ledger } from '../support/ledger.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { COMMAND } from '../support/repository.ts';
import { ENVIRONMENT, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const MEBIBYTE = 1024 * 1024;

test('rule 23: on a full disk no write is acknowledged and reads succeed; with room, writes succeed again', async (context) => {
  const disk = await mountDisk(context, 8 * MEBIBYTE);
  const service = await start(context, disk);
  const { client } = service;
  const ledger = new Ledger();
  const writers = ledger.writers(client, 8);
  const writeAll = () => Promise.all(writers.map((writer) => writer.write()));
  for (let round = 0; round < 3; round += 1) {
    for (let count = 0; count < 20; count += 1) {
      assert.ok((await writeAll()).every((outcome) => outcome === 'acknowledged'));
    }
    const filler = join(disk.outside, 'filler');
    assert.throws(() => writeFileSync(filler, Buffer.alloc(16 * MEBIBYTE)), { code: 'ENOSPC' });
    await waitUntil(async () => (await writeAll()).every((outcome) => outcome === 'unavailable'));
    const { status, data } = await client.request('GET', '/books');
    assert.equal(status, 200);
    assert.deepEqual((await client.request('GET', `/book/${data[0].id}`)).data, data[0]);
    rmSync(filler);
  }
  assert.ok((await writeAll()).every((outcome) => outcome === 'acknowledged'));
  ledger.reconcile(await client.list());
  await service.stop();
  const again = await start(context, disk);
  ledger.reconcile(await again.client.list());
});

const READ_ONLY = {
  'a disk': ['mount -o remount,ro .', 'mount -o remount,rw .'],
  'a file': ['mount --bind books.db books.db && mount -o remount,bind,ro books.db', 'umount books.db'],
} as const;
for (const [what, [protect, release]] of Object.entries(READ_ONLY)) {
  test(`rule 27: ${what} that is read-only is refused at the start, and accepted once it is writable`, async (context) => {
    const disk = await mountDisk(context, 8 * MEBIBYTE);
    const first = await start(context, disk);
    const book = await first.client.create({ title: 'here' });
    await first.stop();
    disk.run(protect);
    await assert.rejects(start(context, disk), /^Error: 1: DB_URL: [^\n]* cannot be opened: [^\n]*\n$/);
    disk.run(release);
    const again = await start(context, disk);
    assert.deepEqual(await again.client.list(), [book]);
  });
}

test('without a folder for temporary files, a large catalogue is indexed and searched, also after a full disk', async (context) => {
  const disk = await mountDisk(context, 256 * MEBIBYTE);
  // The folder in which the command is started is the last one that SQLite tries.
  disk.run(
    'for folder in /tmp /var/tmp; do mount --rbind $folder $folder; mount -o remount,bind,ro $folder; done',
  );
  const first = await start(context, disk, '/proc');
  for (let count = 0; count < 10; count += 1) {
    const body = Array.from({ length: 10_000 }, (_, year) => ({
      title: `word ${randomBytes(100).toString('hex')}`,
      year,
    }));
    assert.equal((await first.client.request('POST', '/books', { body })).status, 201);
  }
  await first.stop();
  const env = { ...process.env, DB_URL: `sqlite:${join(disk.inside, 'books.db')}` };
  const enter = [`--target=${disk.holder.pid}`, '--mount', '--wd=/proc', ...COMMAND];
  const { status, stderr } = spawnSync('nsenter', [...enter, 'index', '--rebuild'], {
    env,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  const { client, operations } = await start(context, disk, '/proc');
  const sorted = '/books?q=wor*&sort=title&offset=99000';
  assert.equal((await client.request('GET', sorted)).data.length, 100);

  const filler = join(disk.outside, 'filler');
  assert.throws(() => writeFileSync(filler, Buffer.alloc(256 * MEBIBYTE)), { code: 'ENOSPC' });
  assert.equal((await client.request('GET', sorted)).status, 503);
  rmSync(filler);
  await client.create({ title: 'new' });
  await waitUntil(async () => sumOf(await scrape(operations), 'book_catalogue_unindexed_books') === 0);
});

interface Disk {
  /** The process in whose namespace it is mounted. */
  readonly holder: ChildProcess;
  /** Its folder as that namespace sees it, and as this process does. */
  readonly inside: string;
  readonly outside: string;
  /** Runs a shell command there, in the folder. */
  run(command: string): void;
}

async function mountDisk(context: TestContext, bytes: number): Promise<Disk> {
  const inside = temporaryFolder();
  const script = `mount -t tmpfs -o size=${bytes} tmpfs ${inside} && echo mounted && exec cat`;
  const holder = spawn('unshare', ['--mount', 'sh', '-c', script], { stdio: ['pipe', 'pipe', 'pipe'] });
  context.after(() => holder.kill('SIGKILL'));
  let said = '';
  holder.stderr?.on('data', (text) => {
    said += text;
  });
  await new Promise<void>((resolve, reject) => {
    holder.stdout?.once('data', () => resolve());
    holder.once('close', () => reject(new Error(`only root can mount a disk, and only on Linux: ${said}`)));
  });
  return {
    holder,
    inside,
    outside: join(`/proc/${holder.pid}/root`, inside),
    run(command) {
      const shell = ['sh', '-c', `cd ${inside} && ${command}`];
      const { status, stderr } = spawnSync('nsenter', [`--target=${holder.pid}`, '--mount', ...shell]);
      assert.equal(status, 0, String(stderr));
    },
  };
}

/** Starts the real command on a disk; rejects with its exit code and its error output. */
async function start(
  context: TestContext,
  { holder, inside }: Disk,
  folder = '/',
): Promise<{ client: Client; operations: string; stop(): Promise<void> }> {
  const enter = [`--target=${holder.pid}`, '--mount', `--wd=${folder}`, ...COMMAND];
  const child = spawn('nsenter', enter, {
    env: { ...process.env, ...ENVIRONMENT, DB_URL: `sqlite:${join(inside, 'books.db')}`, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  context.after(() => child.kill('SIGKILL'));
  let said = '';
  child.stderr?.on('data', (text) => {
    said += text;
  });
  const { url, operations } = await new Promise<{ url: string; operations: string }>((resolve, reject) => {
    child.once('close', (code) => reject(new Error(`${code}: ${said}`)));
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const entry = JSON.parse(line) as { msg: string; url: string; operations: string };
      if (entry.msg === 'listening') resolve(entry);
    });
  });
  const client = await Client.logIn({ url, port: Number(new URL(url).port) });
  return {
    client,
    operations,
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}
