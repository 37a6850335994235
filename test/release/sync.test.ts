// No write is acknowledged before it is on disk. The real service, while strace breaks or delays the system calls that
// write to the disk and sync it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
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
import { attach, callsIn, detach, recordingTo } from '../support/strace.ts';
import { waitUntil } from '../support/wait.ts';
import { Disk } from './power/disk.ts';
import { Recording, readRecording, writeState } from './power/recording.ts';
import { kill, STORE, storeBefore } from './power/work.ts';

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

test('whichever sync of an import fails, with all later ones, its report is true', async () => {
  const folder = temporaryFolder();
  const rows = Array.from({ length: 12_000 }, (_, index) => `book ${index},,1990\n`);
  writeFileSync(join(folder, 'books.csv'), `title,author,year\n${rows.join('')}`);
  let isImported = false;
  let unknown = 0;
  for (let first = 1; !isImported; first += 1) {
    const url = await SQLITE.freshUrl();
    await fill(url, []);
    const options = ['-f', '-qq', '-o', '/dev/null', ...injecting(SYNCS, `error=EIO:when=${first}+`)];
    const importing = [...COMMAND, 'import', 'books.csv', '--on-duplicate', 'add'];
    const env = { ...process.env, DB_URL: url };
    const { code, stdout, stderr } = await endOf(
      spawn('strace', [...options, ...importing], { cwd: folder, env }),
    );
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
  const [store, before] = [dirname(fileOf(service.dbUrl)), temporaryFolder()];
  cpSync(store, before, { recursive: true });
  const outputs: string[] = [];
  const recorded = async (work: () => Promise<unknown>, injection: readonly string[] = []) => {
    outputs.push(join(temporaryFolder(), 'calls'));
    const strace = await attach(context, service, [...recordingTo(outputs.at(-1) as string), ...injection]);
    await work();
    await detach(strace);
  };
  const books: Book[] = [];
  await recorded(async () => {
    books.push(await client.create({ title: 'early' }));
    await waitUntil(() => isFound('early')); // by then the index has been written
  });
  const failing = ['-e', `inject=${SYNCS}:error=EIO:when=1`];
  await recorded(async () => {
    const { status } = await client.request('POST', '/book', { body: { title: 'refused' } });
    assert.equal(status, 503);
    for (const title of ['next', 'last']) books.push(await client.create({ title }));
  }, failing);

  const dbUrl = await SQLITE.freshUrl();
  writeState(new Disk(store, before, callsIn(outputs)).certain(), dirname(fileOf(dbUrl)));
  const again = await startServiceProcess(dbUrl);
  context.after(() => again.stop());
  assert.deepEqual(await again.client.list(), books);
});

test('rule 23: after a failed sync and a kill, a power failure during the next start leaves a sound store', async (context) => {
  const recording = new Recording();
  context.after(() => rmSync(recording.folder, { recursive: true }));
  await storeBefore(recording, STORE, 400);
  recording.begin();
  let stored = 0;
  const failing = async (service: ServiceProcess) => {
    const { client } = service;
    const create = () => client.request('POST', '/book', { body: { title: 'stored' } });
    while ((await create()).status === 201) stored += 1;
    const change = (id: number) =>
      client.request('PUT', `/book/${id}`, { body: { title: 'refused '.repeat(100) } });
    const answers = await Promise.all(Array.from({ length: 40 }, (_, number) => change(10 * number + 1)));
    assert.ok(answers.every(({ status }) => status === 503));
    await kill(service);
  };
  await recording.serve(STORE, failing, 'error=EIO:when=20+');
  assert.ok(stored > 0);
  await recording.serve(STORE, async () => {});
  recording.end(undefined);
  const { disk } = readRecording(recording.folder);
  for (const moment of disk.moments.keys()) {
    for (let seed = 0; seed < 3; seed += 1) {
      const cut = { moment, journal: 0, seed };
      const state = disk.after(cut);
      if (!state.has(STORE)) continue;
      const folder = temporaryFolder();
      writeState(state, folder);
      const db = new DatabaseSync(join(folder, STORE));
      const { found } = db.prepare('select integrity_check as found from pragma_integrity_check').get() ?? {};
      assert.equal(found, 'ok', disk.describe(cut));
      const acknowledged = disk.saidBefore(cut).filter((text) => text.startsWith('HTTP/1.1 201 ')).length;
      if (acknowledged > 0) {
        const { count } =
          db.prepare("select count(*) as count from books where title = 'stored'").get() ?? {};
        assert.ok(Number(count) >= acknowledged, disk.describe(cut));
      }
      db.close();
    }
  }
  assert.equal(disk.said.filter((text) => text.startsWith('HTTP/1.1 201 ')).length, stored);
});
