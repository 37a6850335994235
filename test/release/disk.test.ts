// Disks that are full or read-only: the real service on a real file system of a few megabytes, in a separate
// mount namespace. Needs root.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { countFound, MAKE_AGAIN } from '../support/book-index.ts';
import { Client } from '../support/client.ts';
import { Ledger } from '../support/ledger.ts';
import { operationsOf } from '../support/operations.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { ENVIRONMENT, startCommand, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const MEBIBYTE = 1024 * 1024;

test('rule 23: on a full disk no write is acknowledged and reads succeed; with room, writes succeed again', async (context) => {
  const disk = await mountDisk(context, 64 * MEBIBYTE); // more than the log before it is moved
  const service = await start(disk);
  const { client } = service;
  const ledger = new Ledger();
  const writers = ledger.writers(client, 8);
  const outcomes = async () => new Set(await Promise.all(writers.map((writer) => writer.write())));
  const areAll = async (expected: 'acknowledged' | 'unavailable') =>
    isDeepStrictEqual(await outcomes(), new Set([expected]));
  for (let round = 0; round < 3; round += 1) {
    for (let count = 0; count < 20; count += 1) assert.ok(await areAll('acknowledged'));
    const removeFiller = fill(disk);
    await waitUntil(() => areAll('unavailable'));
    const { status, data } = await client.request('GET', '/books');
    assert.equal(status, 200);
    assert.deepEqual((await client.request('GET', `/book/${data[0].id}`)).data, data[0]);
    removeFiller();
  }
  assert.ok(await areAll('acknowledged'));
  await ledger.reconcile(client);
  const removeFiller = fill(disk);
  await service.kill();
  const again = await start(disk); // which finds no room to move the log into the file
  await ledger.reconcile(again.client);
  removeFiller();
  const [writer] = ledger.writers(again.client, 1);
  await waitUntil(async () => (await writer?.write()) === 'acknowledged');
  await again.stop();
  await ledger.reconcile((await start(disk)).client);
});

for (const [what, protect, release] of [
  ['a disk', 'mount -o remount,ro .', 'mount -o remount,rw .'],
  ['a file', 'mount --bind books.db books.db; mount -o remount,bind,ro books.db', 'umount books.db'],
] as const) {
  test(`rule 27: ${what} that is read-only is refused at the start, and accepted once it is writable`, async (context) => {
    const disk = await mountDisk(context, 8 * MEBIBYTE);
    await (await start(disk)).stop();
    disk.run(protect);
    await assert.rejects(start(disk), / code 1: DB_URL: [^\n]* cannot be opened: [^\n]*\n$/);
    disk.run(release);
    await (await start(disk)).client.create({});
  });
}

test('without a folder for temporary files, a large catalogue is indexed and searched, also after a full disk', async (context) => {
  const disk = await mountDisk(context, 256 * MEBIBYTE);
  // The folder in which the command is started is the last one that SQLite tries.
  disk.run(
    'for folder in /tmp /var/tmp; do mount --rbind $folder $folder; mount -o remount,bind,ro $folder; done',
  );
  const first = await start(disk, '/proc');
  for (let count = 0; count < 10; count += 1) {
    const title = () => `word ${randomBytes(100).toString('hex')}`;
    const body = Array.from({ length: 10_000 }, (_, year) => ({ title: title(), year }));
    assert.equal((await first.client.request('POST', '/books', { body })).status, 201);
  }
  await first.stop();
  const makeAgain = `new (require('node:sqlite').DatabaseSync)('books.db').exec('${MAKE_AGAIN.trim()}')`;
  disk.run(`${process.execPath} -e "${makeAgain}"`);
  const { client, operations } = await start(disk, '/proc');
  assert.equal(await countFound(client, 'q=wor*'), 100_000);
  const sorted = '/books?q=wor*&sort=title&offset=99000';
  assert.equal((await client.request('GET', sorted)).data.length, 100);

  const removeFiller = fill(disk);
  assert.equal((await client.request('GET', sorted)).status, 503);
  removeFiller();
  await client.create({ title: 'new' });
  await waitUntil(async () => sumOf(await scrape(operations.url), 'book_catalogue_unindexed_books') === 0);
});

interface Disk {
  /** Of a store on it, in the namespace in which it is mounted. */
  readonly url: string;
  /** Its folder as this process sees it. */
  readonly outside: string;
  /** The beginning of a command line whose rest runs in that namespace. */
  readonly enter: string;
  /** Runs a shell command there, in the folder. */
  run(command: string): void;
}

async function mountDisk(context: TestContext, bytes: number): Promise<Disk> {
  const inside = temporaryFolder();
  const script = `mount -t tmpfs -o size=${bytes} tmpfs ${inside} && echo mounted && exec cat`;
  const holder = spawn('unshare', ['--mount', 'sh', '-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  context.after(() => holder.kill('SIGKILL'));
  const ended = once(holder, 'exit').then(([code]) => assert.fail(`exit code ${code}: only root can mount`));
  await Promise.race([once(holder.stdout, 'data'), ended]);
  const enter = `nsenter --target=${holder.pid} --mount`;
  return {
    url: `sqlite:${join(inside, 'books.db')}`,
    outside: join(`/proc/${holder.pid}/root`, inside),
    enter,
    run: (command) => execFileSync('sh', ['-c', `exec ${enter} --wd=${inside} sh -ec "$0"`, command]),
  };
}

/** Leaves no room on a disk. @returns what gives it back. */
function fill({ outside }: Disk): () => void {
  const filler = join(outside, 'filler');
  assert.throws(() => writeFileSync(filler, Buffer.alloc(256 * MEBIBYTE)), { code: 'ENOSPC' });
  return () => rmSync(filler);
}

/** Starts the real command on a disk. */
async function start({ url, enter }: Disk, folder = '/') {
  const env = { ...ENVIRONMENT, PATH: process.env.PATH ?? '', DB_URL: url, LOG_LEVEL: 'info' };
  const command = await startCommand(env, { setting: `exec ${enter} --wd=${folder} "$@"` });
  const kill = async () => {
    const ended = once(command.process, 'exit');
    command.process.kill('SIGKILL');
    await ended;
  };
  return { client: await Client.logIn(command), operations: operationsOf(command), stop: command.stop, kill };
}
