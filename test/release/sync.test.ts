// The real service and a real import, while strace breaks or delays the system calls that write to the disk and sync it. What a
// power failure then leaves is tried in power.test.ts.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { countOf, fill } from '../support/books.ts';
import { Ledger } from '../support/ledger.ts';
import { COMMAND } from '../support/repository.ts';
import { endOf, SQLITE, startServiceProcess, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { attach, detach } from './strace.ts';

/** Options of strace that break or delay system calls. */
const injecting = (calls: string, injection: string) => [
  ...['-e', `trace=${calls}`],
  ...['-e', `inject=${calls}:${injection}`],
];

const WRITERS = 64;
const SYNCS = 'fsync,fdatasync';

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

test('whichever sync of an import fails, with all later ones, its report is true', async () => {
  const folder = temporaryFolder();
  const rows = Array.from({ length: 12_000 }, (_, index) => `book ${index}\n`);
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
