// Imports that are killed, that lose the store or an answer to their commit, whose messages nobody reads, or beside a service.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { describe, test } from 'node:test';
import { run } from '../../src/cli.ts';
import { booksOf, countOf, fill } from '../support/books.ts';
import { HERE_ONLY, runCommand } from '../support/command.ts';
import { haltCommit } from '../support/lost-commit.ts';
import { execute, PostgresServer } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import {
  endOf,
  POSTGRES,
  SQLITE,
  STORES,
  spawnService,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const SAMPLE = `title,authors,original_publication_year
The Odyssey,Homer,-720.0
"Emma","Jane Austen",1815
Emma,Jane Austen,1815
Beowulf,,1000
"A ""quoted"", title",Somebody,
`;

for (const { name, freshUrl } of STORES) {
  describe(`import into ${name}`, { concurrency: 4 }, () => {
    test('killed at any moment and run again, it stores every book once', async () => {
      const url = await freshUrl();
      for (const rows of [5000, 10_000, 15_000]) {
        const before = await countOf(url);
        const child = spawnImport(url, temporaryFolder(), '-');
        const end = endOf(child);
        child.stdin?.on('error', () => {}); // it has been killed
        child.stdin?.write(manyRows(rows)); // its input stays open: it does not end by itself
        await waitUntil(async () => (await countOf(url)) > before);
        child.kill('SIGKILL');
        assert.equal((await end).code, null);
      }
      const rows = manyRows(15_000);
      const { code } = await importing(url, folderWith({ 'books.csv': rows }), 'books.csv');
      assert.equal(code, 0);
      const titles = (await booksOf(url)).map(({ title }) => title);
      assert.equal(titles.length, 15_000);
      assert.equal(new Set(titles).size, 15_000);
    });

    test('beside a running service, both complete their work', async (context) => {
      const url = await freshUrl();
      const service = await startTestService(url);
      context.after(() => service.stop());
      const child = spawnImport(url, temporaryFolder(), '-');
      const end = endOf(child);
      let isOver = false;
      let [created, unknown] = [0, 0];
      const creating = (async () => {
        while (!isOver) {
          const { status } = await service.client.request('POST', '/book', { body: { title: 'created' } });
          // On a slow machine, the import may hold the store for seconds.
          if (status === 503) unknown += 1;
          else assert.equal(status, 201);
          if (status === 201) created += 1;
        }
      })();
      const [header, ...rows] = manyRows(20_000).split(/(?<=\n)/);
      child.stdin?.write(header);
      for (const [first, last] of [
        [0, 10_000],
        [10_000, 20_000],
      ] as const) {
        child.stdin?.write(rows.slice(first, last).join(''));
        const most = last - 1000; // the end of one part is read with the next part
        await waitUntil(async () => (await countOf(url)) - created > most);
        const before = created;
        await waitUntil(() => created > before);
      }
      child.stdin?.end();
      const { code, stdout } = await end;
      isOver = true;
      await creating;
      assert.equal(code, 0);
      assert.match(stdout, /^20000 rows read: 20000 imported, /);
      const books = await booksOf(url);
      const ids = books.filter(({ title }) => title === 'created').map(({ id }) => id);
      assert.ok(ids.length >= created && ids.length <= created + unknown);
      assert.equal(books.length - ids.length, 20_000);
      const last = books.findLast(({ title }) => title !== 'created');
      assert.ok(
        ids.some((id) => id < (last?.id as number)),
        'no book was created between two rows of the file',
      );
    });
  });
}

describe('import', { concurrency: 4 }, () => {
  test('however slowly its messages are read, all of them arrive', async () => {
    const url = await SQLITE.freshUrl();
    const child = spawnImport(url, folderWith({ 'books.csv': withWrongRows(10_000) }), 'books.csv');
    await waitUntil(async () => (await countOf(url)) === 1); // only messages are left to do
    const { code, stdout, stderr } = await endOf(child);
    assert.equal(code, 1);
    assert.match(stdout, /^10001 rows read: 1 imported, 0 already there, 10000 refused\.\n/);
    const lines = stderr.split('\n');
    assert.equal(lines.length, 10_002);
    assert.equal(lines.at(-2), 'books.csv:10001: year "MM" is not an unambiguous year');
  });

  for (const { name, freshUrl } of STORES) {
    for (const mode of ['skip', 'add']) {
      test(`while nobody reads its messages, few pile up, and other programs write: ${name}, ${mode}`, {
        skip: HERE_ONLY,
      }, async () => {
        const url = await freshUrl();
        await fill(url, []);
        let isRead = false;
        let read: () => void = () => {};
        let text = '';
        const stderr = new Writable({
          decodeStrings: false,
          write(chunk, _encoding, done) {
            text += chunk;
            if (isRead) done();
            else read = done;
          },
        });
        const streams = { stdin: Readable.from([]), stdout: new PassThrough().resume(), stderr };
        const file = join(folderWith({ 'books.csv': withWrongRows(60_000) }), 'books.csv');
        const ended = run(
          ['import', file, '--on-duplicate', mode],
          { DB_URL: url },
          streams as unknown as Parameters<typeof run>[2],
          new Promise(() => {}),
        );
        const mebibyte = 1024 * 1024;
        await waitUntil(() => stderr.writableLength > mebibyte);
        const other = spawnImport(url, folderWith({ 'books.csv': SAMPLE }), 'books.csv');
        assert.equal((await endOf(other)).code, 0);
        assert.ok(stderr.writableLength < 1.1 * mebibyte);
        isRead = true;
        read();
        assert.equal(await ended, 1);
        assert.equal(text.match(/ is not an unambiguous year\n/g)?.length, 60_000);
        assert.equal(await countOf(url), 5);
      });
    }
  }

  if (STORES.includes(POSTGRES)) {
    test('when PostgreSQL becomes unavailable, it says how many rows are stored and how to continue', async (context) => {
      const url = await POSTGRES.freshUrl();
      const { proxy, proxiedUrl } = await TcpProxy.to(url);
      context.after(() => proxy.stop());
      const child = spawnImport(proxiedUrl, temporaryFolder(), '-');
      const end = endOf(child);
      child.stdin?.on('error', () => {}); // it has ended
      const rows = manyRows(8000);
      child.stdin?.write(rows);
      await waitUntil(async () => (await countOf(url)) > 0);
      proxy.reset();
      child.stdin?.end(rows.replaceAll('number', 'other number'));
      const { code, stdout, stderr } = await end;
      assert.equal(code, 1);
      assert.match(stdout, /^\d+ rows read: [1-9]\d* imported, 0 refused\.\n/);
      assert.match(
        stderr,
        /\npostgres:\/\/127\.0\.0\.1:\d+\/test_\w+: [^\n]+\. Run the same command again to continue: [^\n]+\n$/,
      );
      assert.ok(!stderr.includes('password'));
    });

    for (const mode of ['skip', 'add'] as const) {
      test(`a commit on PostgreSQL whose answer is lost is not taken for a failed one: ${mode}`, async (context) => {
        const url = await POSTGRES.freshUrl();
        const { proxy, proxiedUrl } = await TcpProxy.to(url);
        context.after(() => proxy.stop());
        const folder = folderWith({ 'books.csv': manyRows(8000) });
        const child = spawnImport(proxiedUrl, folder, '-', '--on-duplicate', mode);
        const end = endOf(child);
        child.stdin?.write(manyRows(8000));
        await waitUntil(async () => (await countOf(url)) > 0);
        const stored = await countOf(url);
        const commit = await haltCommit(context, url, 'A book of number 8999');
        child.stdin?.end(manyRows(9000).split('\n').slice(8001).join('\n'));
        await commit.loseAnswer(proxy);
        const { code, stdout, stderr } = await end;
        assert.equal(code, 1);
        assert.equal(await countOf(url), 9000);
        const counted = Number(/^(\d+) rows read: \1 imported, 0 refused\.\n/.exec(stdout)?.[1]);
        assert.ok(counted >= stored && counted < 9000, stdout);
        const advice =
          mode === 'skip'
            ? 'Run the same command again to continue: rows that are already stored are skipped.'
            : `stdin is stored up to line ${counted + 1}. All rows from there to line 9001 may be stored as well, or none: ` +
              `look for them in the catalogue, then import only the rows after line 9001, or else those after line ${counted + 1}.`;
        assert.ok(stderr.endsWith(`. ${advice}\n`), stderr);
      });
    }

    test('imported books are on disk even if the server has synchronous_commit off', async (context) => {
      const server = await PostgresServer.start(['synchronous_commit=off', 'wal_writer_delay=10s']);
      context.after(() => server.remove());
      const url = server.url();
      const folder = folderWith({
        'new.csv': SAMPLE,
        'kept.csv': 'id,title,author,year\n900,"Grendel","John Gardner",1971\n',
      });
      await fill(url, []);
      await execute(url, 'checkpoint'); // the table itself is on disk
      for (const [file, books] of [
        ['new.csv', 4],
        ['kept.csv', 5],
      ] as const) {
        assert.equal((await importing(url, folder, file)).code, 0);
        await server.kill('SIGQUIT'); // at once, as if the machine had lost its power
        await server.startAgain();
        assert.equal(await countOf(url), books);
      }
    });
  }
});

function folderWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = temporaryFolder();
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

function manyRows(count: number): string {
  const rows = Array.from(
    { length: count },
    (_, index) => `"A book of number ${index}",Author ${index % 100},${index % 2000}\n`,
  );
  return `title,author,year\n${rows.join('')}`;
}

/** Rows of which all but the last are rejected. */
function withWrongRows(count: number): string {
  return `title,author,year\n${'Emma,Jane Austen,MM\n'.repeat(count)}The last one,,2000\n`;
}

function spawnImport(url: string, folder: string, ...args: string[]): ChildProcess {
  return spawnService({ DB_URL: url }, ['import', ...args], folder, args[0] === '-' ? 'pipe' : 'ignore');
}

/** Runs an import; checks the store that its output names, and removes it from the output. */
async function importing(url: string, folder: string, ...args: string[]) {
  const ended = await runCommand(['import', ...args], { DB_URL: url }, folder);
  const { host, pathname } = new URL(url);
  const store = url.startsWith('sqlite:') ? url : `postgres://${host}${pathname}`;
  const stderr = ended.stderr.replace(/; into (.+)$/m, (_, named: string) => {
    assert.equal(named, store);
    return '';
  });
  return { ...ended, stderr };
}
