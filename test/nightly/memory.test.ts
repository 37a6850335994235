// Commands that process all books take no more memory for many than for few: each command in a separate process, on a
// store of some megabytes and on one of four times as many.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { countOf, fill, manyBooks } from '../support/books.ts';
import { Client } from '../support/client.ts';
import { compose, statusesOf } from '../support/raw-requests.ts';
import { COMMAND, pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  endOf,
  preloading,
  SQLITE,
  STORES,
  startCommand,
  temporaryFolder,
} from '../support/service.ts';

const MEBIBYTE = 1024 * 1024;
const [FEW, MANY] = [16_000, 64_000];

/** Characters of a title. */
const TITLE = 1000;

/** MiB by which the many books exceed the few: the least that a process which holds all of them needs in addition. */
const DIFFERENCE = ((MANY - FEW) * TITLE) / MEBIBYTE;

const folder = temporaryFolder();

for (const [index, from] of STORES.entries()) {
  const to = STORES.at(index - 1) ?? from; // the other one, if there are two
  test(`the memory of export, import, backup and copy from ${from.name} to ${to.name} is bounded`, async () => {
    const peaks = new Map<string, number[]>();
    for (const count of [FEW, MANY]) {
      const source = await from.freshUrl();
      await fill(source, manyBooks(count, TITLE));
      const file = `${from.name} ${count}.csv`;
      const [copied, imported] = [await to.freshUrl(), await SQLITE.freshUrl()];
      for (const [args, dbUrl] of [
        [['export', file], source],
        [['copy', source, copied], source],
        [['import', file], imported],
        [['backup', `${from.name} ${count}.db`], imported],
      ] as const) {
        peaks.set(args[0], [...(peaks.get(args[0]) ?? []), await peakOf(args, dbUrl)]);
      }
      assert.deepEqual([await countOf(copied), await countOf(imported)], [count, count]);
    }
    for (const [command, [few = 0, many = 0]] of peaks)
      assert.ok(many - few < DIFFERENCE, `${command}: ${few} and ${many} MiB`);
  });
}

for (const store of STORES) {
  test(`rule H3: a thousand who wait get a book of a megabyte, within 512 MiB, on ${store.name}`, async (context) => {
    const PEAK_MEMORY = join(temporaryFolder(), 'peak');
    const NODE_OPTIONS = preloading(pathTo('test/support/peak-memory.js'));
    const service = await startCommand({
      ...ENVIRONMENT,
      ...{ DB_URL: await store.freshUrl(), LOG_LEVEL: 'info', PEAK_MEMORY, NODE_OPTIONS },
    });
    const client = await Client.logIn(service);
    const { headers } = await client.request('GET', '/changes');
    const [, path] = /^<([^>]+)>/.exec(headers.get('link') ?? '') ?? [];
    const statuses = statusesOf(
      1000,
      context,
      service.port,
      compose('GET', String(path), { token: client.token, headers: 'Prefer: wait=60\r\n' }),
    );
    await client.list(); // most of the others have arrived
    await client.create({ title: '\u0001'.repeat(170_000) });
    assert.deepEqual([...new Set(await statuses)], ['HTTP/1.1 200']);
    await service.stop();
    const peak = Math.round(Number(readFileSync(PEAK_MEMORY, 'utf8')) / 1024);
    assert.ok(peak < 512, `${peak} MiB`);
  });
}

/** The peak memory of a command, in MiB. */
async function peakOf(args: readonly string[], DB_URL: string): Promise<number> {
  const file = join(temporaryFolder(), 'peak');
  // A process inherits the peak of the one that started it, so that must be a small one.
  const shell = ['-c', '"$@"; exit $?', 'sh'];
  const NODE_OPTIONS = preloading(pathTo('test/support/peak-memory.js'));
  const child = spawn('sh', [...shell, ...COMMAND, ...args], {
    cwd: folder,
    env: { DB_URL, PEAK_MEMORY: file, NODE_OPTIONS },
  });
  const { code, stderr } = await endOf(child);
  assert.equal(code, 0, stderr);
  return Math.round(Number(readFileSync(file, 'utf8')) / 1024);
}
