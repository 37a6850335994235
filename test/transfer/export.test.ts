// Books on their way out, and across from one store to another: the real commands, every pair of stores.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readDbUrl } from '../../src/stores/open.ts';
import { COMMAND } from '../support/repository.ts';
import {
  endOf,
  fileOf,
  POSTGRES,
  SQLITE,
  STORES,
  spawnService,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const CSV = 'id,title,author,year\n2,"Emma","Jane Austen",1815\n5,"a ""quote"",\nand a line","",-750\n';
const JSONL =
  '{"id":2,"title":"Emma","author":"Jane Austen","year":1815}\n' +
  '{"id":5,"title":"a \\"quote\\",\\nand a line","author":"","year":-750}\n';
const JSON_ARRAY = `[\n${JSONL.trimEnd().replace('\n', ',\n')}\n]\n`;

describe('export and copy', { concurrency: 2, timeout: 60_000 }, () => {
  for (const { name, freshUrl } of STORES) {
    test(`export: the same bytes in every format, from ${name}`, async () => {
      const url = await freshUrl();
      await fill(url);
      const folder = temporaryFolder();
      const export_ = (...args: string[]) => command(['export', ...args], url, folder);
      assert.deepEqual(await export_(), { code: 0, stdout: CSV, stderr: '2 books exported.\n' });
      assert.equal((await export_('-', '--format', 'json')).stdout, JSON_ARRAY);
      for (const [file, content] of [
        ['a.csv', CSV],
        ['a.json', JSON_ARRAY],
        ['a.JSONL', JSONL],
      ] as const) {
        const said = { code: 0, stdout: '', stderr: `2 books exported to ${file}.\n` };
        assert.deepEqual(await export_(file), said);
        assert.equal(readFileSync(join(folder, file), 'utf8'), content);
      }
      assert.deepEqual(readdirSync(folder).toSorted(), ['a.JSONL', 'a.csv', 'a.json']);
    });

    test(`export: a store without books is an empty file, one that is not there a sentence, on ${name}`, async () => {
      const url = await freshUrl();
      const missing = await command(['export'], url);
      assert.deepEqual({ ...missing, stderr: '' }, { code: 1, stdout: '', stderr: '' });
      assert.match(missing.stderr, /^DB_URL: there are no books at [^\n]+\.\n$/);
      assert.equal(await (await readDbUrl(url)).openBulk('read'), undefined); // still

      await fill(url, []);
      assert.equal((await command(['export'], url)).stdout, 'id,title,author,year\n');
      assert.equal((await command(['export', '--format', 'json'], url)).stdout, '[]\n');
      assert.equal((await command(['export', '--format', 'jsonl'], url)).stdout, '');
    });
  }

  test('export: what is there is replaced only when told, and only by what is whole', async () => {
    const [url, folder] = [await SQLITE.freshUrl(), temporaryFolder()];
    await fill(url);
    writeFileSync(join(folder, 'a.csv'), 'mine');
    mkdirSync(join(folder, 'b.csv'));
    const refused = await command(['export', 'a.csv'], url, folder);
    assert.deepEqual(refused, {
      code: 1,
      stdout: '',
      stderr: 'a.csv is there already: --overwrite replaces it.\n',
    });
    assert.equal(readFileSync(join(folder, 'a.csv'), 'utf8'), 'mine');
    assert.equal((await command(['export', 'b.csv', '--overwrite'], url, folder)).code, 1);
    assert.equal((await command(['export', 'none/c.csv'], url, folder)).code, 1);
    assert.equal((await command(['export', 'a.csv', '--overwrite'], url, folder)).code, 0);
    assert.equal(readFileSync(join(folder, 'a.csv'), 'utf8'), CSV);
    assert.deepEqual(readdirSync(folder).toSorted(), ['a.csv', 'b.csv']);
  });

  test('export: called wrongly ends with 2 and one sentence', async () => {
    for (const args of [['books.txt'], ['--format', 'xml'], ['a.csv', 'b.csv'], ['--formt', 'csv']]) {
      const { code, stdout, stderr } = await command(['export', ...args], await SQLITE.freshUrl());
      assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
      assert.match(stderr, /^[^\n]+\.\n$/);
    }
  });

  test('export: a reader that has enough, and a disk that is full, end it without a trace of code', async () => {
    const url = await SQLITE.freshUrl();
    await fill(url, manyBooks(20_000));
    const reader = start(['export'], url);
    await once(reader.stdout as NodeJS.ReadableStream, 'data');
    reader.stdout?.destroy();
    assert.deepEqual(await endOf(reader), { code: 1, stdout: '', stderr: '' });

    const full = openSync('/dev/full', 'w');
    const main = COMMAND;
    const child = spawn(process.execPath, [main, 'export'], {
      env: { DB_URL: url },
      stdio: ['ignore', full, 'pipe'],
    });
    const { code, stderr } = await endOf(child);
    assert.equal(code, 1);
    assert.match(stderr, /^Nothing was exported: ENOSPC[^\n]+\n$/);
  });

  for (const format of ['csv', 'json', 'jsonl']) {
    test(`export: a slow reader gets all of it, as ${format}`, async () => {
      const [url, folder] = [await SQLITE.freshUrl(), temporaryFolder()];
      await fill(url, manyBooks(20_000));
      await command(['export', `whole.${format}`], url, folder);
      const child = start(['export', '--format', format], url);
      const received: Buffer[] = [];
      for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
        received.push(chunk);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      const whole = readFileSync(join(folder, `whole.${format}`));
      assert.ok(
        Buffer.concat(received).equals(whole),
        `${Buffer.concat(received).length} of ${whole.length}`,
      );
    });
  }

  test('export: the store itself is not written over', async () => {
    const url = await SQLITE.freshUrl();
    await fill(url);
    const file = fileOf(url);
    for (const path of [file, `${file}-wal`]) {
      const { code, stderr } = await command(['export', path, '--format', 'csv', '--overwrite'], url);
      assert.deepEqual([code, stderr], [1, `${path} is of the store itself: name another file.\n`]);
    }
    assert.equal((await command(['export'], url)).stdout, CSV);
  });

  test('copy: a signal ends it, and nothing was copied', async () => {
    const [source, target] = [await SQLITE.freshUrl(), await SQLITE.freshUrl()];
    await fill(source, manyBooks(200_000));
    const child = start(['copy', source, target], undefined);
    const ended = endOf(child);
    await waitUntil(() => existsSync(fileOf(target)));
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    assert.deepEqual([code, stderr], [1, 'Nothing was copied: stopped.\n']);
    assert.equal((await command(['export'], target)).stdout, 'id,title,author,year\n');
  });

  test('export: a signal ends it, and leaves no file', async () => {
    const [url, folder] = [await POSTGRES.freshUrl(), temporaryFolder()];
    await fill(url, manyBooks(20_000));
    const child = start(['export', '-'], url, folder);
    await once(child.stdout as NodeJS.ReadableStream, 'readable'); // and nobody reads on
    child.kill('SIGTERM');
    const ended = await endOf(child);
    assert.deepEqual([ended.code, ended.stderr], [1, 'Nothing was exported: stopped.\n']);

    const toFile = start(['export', 'a.csv'], url, folder);
    const fileEnded = endOf(toFile);
    await waitUntil(() => existsSync(join(folder, 'a.csv.unfinished')) || toFile.exitCode !== null);
    toFile.kill('SIGINT');
    const { code } = await fileEnded;
    assert.deepEqual(readdirSync(folder), code === 0 ? ['a.csv'] : []);
  });

  for (const from of STORES) {
    for (const to of STORES) {
      test(`copy: from ${from.name} to ${to.name}, ids and all, and new ids come after the old ones`, async (context) => {
        const [source, target] = [await from.freshUrl(), await to.freshUrl()];
        await fill(source);
        const original = await startTestService(source);
        context.after(() => original.stop());
        const last = await original.client.create({ title: 'of the moment' });
        await original.client.request('DELETE', `/book/${last.id}`);

        const { code, stdout, stderr } = await command(['copy', source, target]); // while it serves
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
        const sha256 = createHash('sha256').update(CSV).digest('hex');
        assert.match(
          stdout,
          new RegExp(`^2 books copied to [^\\n]+, verified \\(sha256 ${sha256}\\)\\.\\n$`),
        );
        assert.doesNotMatch(stdout, /password/);
        assert.equal((await command(['export'], target)).stdout, CSV);

        const service = await startTestService(target);
        context.after(() => service.stop());
        assert.equal((await service.client.create({ title: 'new' })).id, last.id + 1);

        const again = await command(['copy', source, target]);
        assert.deepEqual(
          [again.code, again.stderr],
          [1, 'TO has 3 books already: --overwrite removes them.\n'],
        );
        assert.equal((await command(['copy', source, target, '--overwrite'])).code, 0);
        assert.equal((await command(['export'], target)).stdout, CSV);
        assert.equal((await service.client.create({ title: 'newer' })).id, last.id + 2); // rule 12
      });
    }
  }

  for (const { name, freshUrl } of STORES) {
    test(`copy: killed at any moment, all is in ${name} or nothing`, async () => {
      const [source, target] = [await SQLITE.freshUrl(), await freshUrl()];
      await fill(source, manyBooks(30_000));
      await fill(target, []);
      for (const milliseconds of [0, 100, 200]) {
        const child = start(['copy', source, target, '--overwrite'], undefined);
        const ended = endOf(child);
        await new Promise((resolve) => setTimeout(resolve, 150 + milliseconds));
        child.kill('SIGKILL');
        await ended;
        const store = await (await readDbUrl(target)).openBulk('write');
        const count = await store.count();
        await store.close();
        assert.ok(count === 0 || count === 30_000, String(count));
      }
      assert.equal((await command(['copy', source, target, '--overwrite'])).code, 0);
    });
  }

  test('copy: what cannot be meant is said by the name of the operand, without a secret', async () => {
    const url = await SQLITE.freshUrl();
    for (const [from, to, code, sentence] of [
      [url, url, 2, /^FROM and TO are the same store\.\n$/],
      [url, 'books.db', 1, /^TO must begin with sqlite: or postgres:[^\n]+\n$/],
      ['mysql://u:hidden@h/d', url, 1, /^FROM must begin with[^\n]+\n$/],
      [url, 'sqlite:elsewhere.db', 1, /^FROM: there are no books at sqlite:[^\n]+\n$/],
      [
        'postgres://u:hidden@127.0.0.1:1/d',
        url,
        1,
        /^FROM: postgres:\/\/127\.0\.0\.1:1\/d cannot be opened:[^\n]+\n$/,
      ],
    ] as const) {
      const ended = await command(['copy', from, to], undefined, temporaryFolder());
      assert.deepEqual([ended.code, ended.stdout], [code, '']);
      assert.match(ended.stderr, sentence);
      assert.doesNotMatch(ended.stderr, /hidden/);
    }
  });
});

type NewBook = { id: number; title: string; author: string; year: number };

async function fill(
  url: string,
  books: readonly NewBook[] = JSONL.trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line)),
) {
  const store = await (await readDbUrl(url)).openBulk('write');
  await store.insertWithIds(books);
  await store.retireIds(books.at(-1)?.id ?? 0);
  await store.close();
}

function manyBooks(count: number): NewBook[] {
  return Array.from({ length: count }, (_, index) => {
    return {
      id: index + 1,
      title: `a title of some length, number ${index}`,
      author: 'somebody',
      year: index,
    };
  });
}

function command(args: readonly string[], dbUrl?: string, folder?: string) {
  return endOf(start(args, dbUrl, folder));
}

function start(args: readonly string[], dbUrl: string | undefined, folder?: string): ChildProcess {
  return spawnService(dbUrl ? { DB_URL: dbUrl } : {}, args, folder);
}
