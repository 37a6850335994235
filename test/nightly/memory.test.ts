// Commands that process all books take no more memory for many than for few: each command in a separate process, on a
// store of some megabytes and on one of four times as many.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { countOf, fill, manyBooks } from '../support/books.ts';
import { COMMAND, pathTo } from '../support/repository.ts';
import { endOf, preloading, SQLITE, STORES, temporaryFolder } from '../support/service.ts';

const MEBIBYTE = 1024 * 1024;

/** Characters of a title. */
const TITLE = 1000;

const FEW = 16_000;
const MANY = 64_000;

/** MiB by which the many books exceed the few: the least that a process which holds all of them needs in addition. */
const DIFFERENCE = ((MANY - FEW) * TITLE) / MEBIBYTE;

describe('memory does not grow with the number of books', () => {
  const folder = temporaryFolder();
  /** URLs of a store with few books and one with many, by the name of the store. */
  const sources = new Map<string, readonly [few: string, many: string]>();

  before(async () => {
    for (const { name, freshUrl } of STORES) {
      const urls = [await freshUrl(), await freshUrl()] as const;
      await fill(urls[0], manyBooks(FEW, TITLE));
      await fill(urls[1], manyBooks(MANY, TITLE));
      sources.set(name, urls);
    }
  });

  for (const [index, from] of STORES.entries()) {
    test(`export from ${from.name}`, async (context) => {
      await assertBounded(context, from.name, async (_source, count) => [
        'export',
        `${from.name} ${count}.csv`,
      ]);
    });

    const to = STORES.at(index - 1) ?? from; // the other one, if there are two
    test(`copy from ${from.name} to ${to.name}`, async (context) => {
      await assertBounded(context, from.name, async (source) => ['copy', source, await to.freshUrl()]);
    });
  }

  if (STORES.includes(SQLITE)) {
    test('backup', async (context) => {
      await assertBounded(context, 'SQLite', async (_source, count) => ['backup', `${count}.db`]);
    });

    test('import', async (context) => {
      const peaks: number[] = [];
      for (const count of [FEW, MANY]) {
        const target = await SQLITE.freshUrl();
        const source = sources.get('SQLite')?.[count === FEW ? 0 : 1] as string;
        const file = `books ${count}.csv`;
        await peakOf(['export', file], source);
        peaks.push(await peakOf(['import', file], target));
        assert.equal(await countOf(target), count);
      }
      assertClose(context, peaks);
    });
  }

  /** Runs a command on few books and on many. */
  async function assertBounded(
    context: TestContext,
    from: string,
    argsOf: (source: string, count: number) => Promise<string[]>,
  ): Promise<void> {
    const [few, many] = sources.get(from) as readonly [few: string, many: string];
    assertClose(context, [
      await peakOf(await argsOf(few, FEW), few),
      await peakOf(await argsOf(many, MANY), many),
    ]);
  }

  function assertClose(context: TestContext, [few = 0, many = 0]: readonly number[]): void {
    const [forFew, forMany] = [few, many].map((bytes) => Math.round(bytes / MEBIBYTE));
    context.diagnostic(`${forFew} MiB for ${FEW} books, ${forMany} MiB for ${MANY}`);
    assert.ok((many - few) / MEBIBYTE < DIFFERENCE, `${forFew} and ${forMany} MiB`);
  }

  /** The peak memory of a command, in bytes. */
  async function peakOf(args: readonly string[], DB_URL: string): Promise<number> {
    const file = join(temporaryFolder(), 'peak');
    // A process inherits the peak of the one that started it, so that must be a small one.
    const shell = ['-c', '"$@"; exit $?', 'sh'];
    const child = spawn('sh', [...shell, ...COMMAND, ...args], {
      cwd: folder,
      env: {
        DB_URL,
        PEAK_MEMORY: file,
        NODE_OPTIONS: preloading(pathTo('test/support/peak-memory.js')),
      },
    });
    const { code, stderr } = await endOf(child);
    assert.equal(code, 0, stderr);
    return Number(readFileSync(file, 'utf8')) * 1024;
  }
});
