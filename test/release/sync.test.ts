// The real service and a real import, while strace breaks or delays the system calls that write to the disk and sync it. What a
// power failure then leaves is tried in power.test.ts; that a failed sync of the log ends the process, in test/stores/durability.test.ts.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { countOf, fill } from '../support/books.ts';
import { Ledger } from '../support/ledger.ts';
import { COMMAND } from '../support/repository.ts';
import {
  endOf,
  fileOf,
  type ServiceProcess,
  SQLITE,
  startServiceProcess,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { attach, detach } from './strace.ts';

/** Options of strace that break or delay system calls. */
const injecting = (calls: string, injection: string) => [
  ...['-e', `trace=${calls}`],
  ...['-e', `inject=${calls}:${injection}`],
];

const WRITERS = 64;
const SYNCS = 'fsync,fdatasync';

/** Microseconds: for as long as the test takes. */
const HANGING = 'delay_enter=600000000';

/** So many of these make the log of writes long enough to be moved into the file. */
const LARGE_TITLE = 'o'.repeat(900_000);
const LONG_LOG_BOOKS = 20;

for (const [name, error] of [
  ['the disk has turned read-only', 'EROFS'],
  ['the disk does not write', 'EIO'],
] as const) {
  test(`rule 23: while ${name}, no write is acknowledged and reads succeed; afterwards writes succeed`, async (context) => {
    const service = await startServiceProcess(await SQLITE.freshUrl());
    const ledger = new Ledger();
    const writeAll = writersOf(service, ledger);
    for (let round = 0; round < 3; round += 1) {
      assert.deepEqual(await writeAll(), new Set(['acknowledged']));
      const { acknowledged } = ledger;
      const strace = await attach(context, service, injecting('pwrite64', `error=${error}`));
      for (let time = 0; time < 5; time += 1) {
        assert.deepEqual(await writeAll(), new Set(['unavailable']));
        assert.equal((await service.client.request('GET', '/books')).status, 200);
      }
      assert.equal(ledger.acknowledged, acknowledged);
      await detach(strace);
    }
    assert.deepEqual(await writeAll(), new Set(['acknowledged']));
    await ledger.reconcile(service.client);
  });
}

for (const [when, act] of [
  ['while it serves', async () => {}],
  ['when it stops', async ({ process }: ServiceProcess) => void process.kill('SIGTERM')],
] as const) {
  test(`rule 23: the process ends with code 74 if the file cannot be synced ${when}, and the next start has all acknowledged writes`, async (context) => {
    const url = await SQLITE.freshUrl();
    const service = await startServiceProcess(url);
    const books = [await service.client.create({ title: 'first' })];
    const ended = endOf(service.process);
    await attach(context, service, [...injecting(SYNCS, 'error=EIO'), '-P', fileOf(url)]);
    const count = when === 'when it stops' ? 1 : LONG_LOG_BOOKS;
    while (books.length <= count) {
      const book = await service.client.create({ title: LARGE_TITLE }).catch(() => undefined);
      if (book === undefined) break; // the process has ended
      books.push(book);
    }
    await act(service);
    assertDiskFailed(await ended);
    const found = await (await startServiceProcess(url)).client.list();
    assert.deepEqual(found.slice(0, books.length), books);
    assert.ok(found.length <= books.length + 1);
  });
}

test('rules 13 and 23: while a disk does not answer, single books are read, and writes and lists get 503; no write is carried out twice', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl());
  const ledger = new Ledger();
  const writeAll = writersOf(service, ledger);
  assert.deepEqual(await writeAll(), new Set(['acknowledged']));
  const strace = await attach(context, service, injecting(SYNCS, HANGING));
  for (let round = 0; round < 2; round += 1) {
    let isAnswered = false;
    const outcomes = writeAll().finally(() => {
      isAnswered = true;
    });
    while (!isAnswered) assert.equal(await ledger.read(service.client), 'acknowledged');
    assert.deepEqual(await outcomes, new Set(['unavailable']));
  }
  assert.equal((await service.client.request('GET', '/books')).status, 503);
  await detach(strace);
  await waitUntil(async () => (await service.client.request('PUT', '/book/1', { body: {} })).status !== 503);
  assert.deepEqual(await writeAll(), new Set(['acknowledged']));
  await ledger.reconcile(service.client);
});

test('whichever sync of an import fails, with all later ones, its report is true', async () => {
  const folder = temporaryFolder();
  const rows = Array.from({ length: 60_000 }, (_, index) => `book ${index}\n`);
  writeFileSync(join(folder, 'books.csv'), `title\n${rows.join('')}`);
  let isImported = false;
  let unknown = 0;
  for (let first = 1; !isImported; first += 1) {
    const url = await SQLITE.freshUrl();
    await fill(url, []);
    const options = ['-f', '-qq', '-o', '/dev/null', ...injecting(SYNCS, `error=EIO:when=${first}+`)];
    const command = [...options, ...COMMAND, 'import', 'books.csv', '--on-duplicate', 'add'];
    const strace = spawn('strace', command, { cwd: folder, env: { ...process.env, DB_URL: url } });
    const { code, stdout, stderr } = await endOf(strace);
    assert.doesNotMatch(stderr, /Internal error/);
    isImported = code === 0;
    const said = Number(/^(\d+) rows read: \1 imported, /.exec(stdout)?.[1] ?? 0);
    const perhaps = / All rows from there to line (\d+) may be stored as well, or none/.exec(stderr)?.[1];
    if (perhaps !== undefined) unknown += 1;
    const stored = await countOf(url); // with what the dead process has left in the log
    assert.ok(stored === said || stored === Number(perhaps) - 1, `${stored} stored: ${stdout}${stderr}`);
  }
  assert.ok(unknown >= 2);
});

test('rule 27: the service ends at SIGTERM while a disk does not answer, and loses nothing', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl());
  const book = await service.client.create({ title: 'acknowledged' });
  const strace = await attach(context, service, injecting(SYNCS, HANGING));
  service.client.request('POST', '/book', { body: { title: 'unknown' } }).catch(() => {});
  const ended = once(service.process, 'exit');
  service.process.kill('SIGTERM');
  // strace keeps what is left of the process for as long as it delays the sync.
  await waitUntil(() => /^State:\tZ/m.test(readFileSync(`/proc/${service.process.pid}/status`, 'utf8')));
  strace.kill('SIGKILL');
  await ended;
  const again = await startServiceProcess(service.dbUrl);
  assert.deepEqual((await again.client.list())[0], book);
});

/** @returns what lets many writers write once, and returns how that ended for them. */
function writersOf({ client }: ServiceProcess, ledger: Ledger) {
  const writers = ledger.writers(client, WRITERS);
  return async () => new Set(await Promise.all(writers.map((writer) => writer.write())));
}

function assertDiskFailed({ code, stderr }: { code: number | null; stderr: string }): void {
  assert.equal(code, 74, stderr);
  assert.match(stderr, /^A disk did not write the store \([^\n]*\): the process ends,[^\n]*\n$/);
}
