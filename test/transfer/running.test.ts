// Commands while they run: their progress, and what interrupts them: a signal, a reader that waits or leaves, a full disk, a
// lost connection, a store that is replaced.

import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, readdirSync, readlinkSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { PassThrough, Readable, Writable } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { run } from '../../src/cli.ts';
import { Progress } from '../../src/terminal/progress.ts';
import { booksOf, countOf, exportOf, manyBooks } from '../support/books.ts';
import { refusedWith, runCommand } from '../support/command.ts';
import { command, folderWith, importing, manyRows, startImport, storeWith } from '../support/importing.ts';
import { connectTo } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import {
  endOf,
  fileOf,
  POSTGRES,
  SQLITE,
  STORES,
  spawnService,
  temporaryFolder,
  testOnPostgres,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const BOOKS = [
  { id: 2, title: 'Emma', author: 'Jane Austen', year: 1815 },
  { id: 5, title: 'Ulysses', author: 'James Joyce', year: 1922 },
];
const MEBIBYTE = 1024 * 1024;

/** More than an import reads before it stores the first ones. */
const MANY_ROWS = manyRows(40_000);

describe('progress', () => {
  const CLEAR = '\r\u001b[K';

  /** Shows progress on a screen that records what is written to it, at the times of a simulated clock. */
  function show(context: TestContext, screen: object, env = {}) {
    const written: string[] = [];
    const write = (text: string | Uint8Array) => written.push(String(text)) > 0;
    let now = 0;
    context.mock.method(performance, 'now', () => now);
    const progress = new Progress({ stderr: { isTTY: true, columns: 80, write, ...screen }, env });
    const at = (milliseconds: number, done: number, total?: number, count?: number) => {
      now = milliseconds;
      progress.at('books', done, total, count);
    };
    return { written, progress, at };
  }

  test('on a terminal is one line, drawn at most ten times a second, and cleared at the end', (context) => {
    const { written, progress, at } = show(context, {});
    for (let done = 0; done <= 620; done += 1) at(done * 5, done, 1000, done * 1000);
    assert.equal(written.length, 31);
    assert.equal(written.at(-1), `${CLEAR}62 %  620,000 books`);
    progress.end();
    progress.end();
    assert.deepEqual(written.slice(31), [CLEAR]);
  });

  test('is below the lines that are printed meanwhile', (context) => {
    const { written, progress, at } = show(context, {});
    progress.line('early');
    at(1000, 500);
    for (const line of [17, 18]) progress.line(`books.csv:${line}: refused`);
    at(2000, 1000);
    progress.end();
    const lines = [CLEAR, 'books.csv:17: refused\n', 'books.csv:18: refused\n'];
    assert.deepEqual(written, ['early\n', `${CLEAR}500 books`, ...lines, `${CLEAR}1,000 books`, CLEAR]);
  });

  test('is never wider than the terminal', (context) => {
    for (const [columns, line] of [
      [18, '50 %  5,000 books'],
      [8, '50 %  5'],
      [undefined, '50 %  5,000 books'],
    ] as const) {
      const { written, at } = show(context, { columns });
      at(10_000, 500_000, 1_000_000, 5000);
      assert.deepEqual(written, [CLEAR + line]);
      context.mock.restoreAll();
    }
  });

  test('is nothing in a pipe, or if a terminal cannot clear a line', (context) => {
    for (const [isTTY, TERM] of [
      [false, 'xterm'],
      [true, 'dumb'],
    ] as const) {
      const { written, progress, at } = show(context, { isTTY }, { TERM });
      for (let second = 0; second <= 25; second += 1) at(second * 1000, second, 40_000);
      progress.line('a line');
      progress.end();
      assert.deepEqual(written, ['a line\n']);
      context.mock.restoreAll();
    }
  });
});

describe('export, copy and backup', () => {
  for (const { name, freshUrl } of STORES) {
    test(`export waits for its reader until a signal ends it: ${name}`, async () => {
      const books = manyBooks(1200); // several chunks
      const url = await storeWith(books, freshUrl);
      for (const isStopped of [true, false]) {
        const { promise: stop, resolve } = Promise.withResolvers<void>();
        const [stdout, stderr] = [new Reader(), new Reader()];
        stderr.goOn();
        const ended = run(['export'], { DB_URL: url }, streamsWith({ stdout, stderr }), stop);
        await waitUntil(() => stdout.text !== '', ended);
        if (isStopped) resolve();
        else stdout.goOn();
        assert.equal(await ended, isStopped ? 1 : 0);
        const said = isStopped ? 'Nothing was exported: stopped.\n' : '1200 books exported.\n';
        assert.equal(stderr.text, said);
        if (!isStopped) assert.equal(stdout.text, exportOf(books));
      }
    });
  }

  test('export ends without a word if its reader closes the pipe', async () => {
    const url = await storeWith(manyBooks(5000, 500)); // more than any system keeps for a reader
    const reader = spawnService({ DB_URL: url }, ['export']);
    await once(reader.stdout as NodeJS.ReadableStream, 'data');
    reader.stdout?.destroy();
    assert.deepEqual(await endOf(reader), { code: 1, stdout: '', stderr: '' });
  });

  test('backup ends with one sentence if the disk is full, and nothing is left', async () => {
    const [url, folder] = [await storeWith(manyBooks(100, 20_000)), temporaryFolder()];
    // A limit on the size of files simulates a full disk.
    const child = spawnService({ DB_URL: url }, ['backup', 'copy.db'], { folder, setting: 'ulimit -f 1000' });
    const { code, stderr } = await endOf(child);
    assert.equal(code, 1);
    assert.match(stderr, /^No backup was made of \S+: (disk I\/O error|database or disk is full)\.\n$/);
    assert.deepEqual(readdirSync(folder), []);
  });

  test('a signal ends backup, restore and copy, and nothing is left or removed', async () => {
    const [source, target] = [await storeWith(manyBooks(10)), await storeWith(BOOKS)];
    const folder = temporaryFolder();
    const restored = `sqlite:${folder}/new.db`;
    for (const [words, url, sentence] of [
      [`restore ${fileOf(source)}`, restored, `${restored} was not restored: stopped.`],
      [`backup ${folder}/copy.db`, source, `No backup was made of ${source}: stopped.`],
      [`copy ${source} ${target} --overwrite`, '', 'Nothing was copied: stopped.'],
    ] as const) {
      const stopped = await runCommand(words.split(' '), { DB_URL: url }, { stop: Promise.resolve() });
      assert.deepEqual(stopped, refusedWith(sentence));
    }
    assert.deepEqual(readdirSync(folder), []);
    assert.deepEqual(await booksOf(target), BOOKS);
  });

  const ADVICE = /^The connection or the disk failed .+\. TO has all books of FROM, or is unchanged: .+\n$/;
  for (const [lost, from, expected] of [
    ['FROM', POSTGRES, /^$/],
    ['TO', SQLITE, ADVICE],
  ] as const) {
    testOnPostgres(
      `a commit of copy during which ${lost} is lost is not taken for a failed one`,
      async (context) => {
        const source = await storeWith(BOOKS, from.freshUrl);
        const target = await storeWith([], POSTGRES.freshUrl);
        const { proxy, proxiedUrl } = await proxyTo(context, lost === 'FROM' ? source : target);
        const commit = await haltCommit(context, target, 'Emma');
        const operands = lost === 'FROM' ? [proxiedUrl, target] : [source, proxiedUrl];
        const ended = command(`copy ${operands.join(' ')}`);
        await commit.loseAnswer(proxy, ended);
        assert.match((await ended).stderr, expected);
        assert.equal(await countOf(target), 2);
      },
    );
  }
});

describe('import', () => {
  /** Messages of a kilobyte: more than any system keeps for a reader, and fewer than an import lets wait. */
  const MESSAGES = 400;
  /** A name of a column that makes one. */
  const YEAR = 'y'.repeat(1000);

  /** A folder with `books.csv`, whose rows are all rejected but the last one. */
  const wrongRows = (count: number) =>
    folderWith({
      'books.csv': `title,author,${YEAR}\n${'Emma,Jane Austen,MM\n'.repeat(count)}The last one,,2000\n`,
    });

  test('stopped by a signal, it says what is stored, also where a named pipe is silent', async () => {
    const pipe = join(temporaryFolder(), 'books.csv');
    execFileSync('mkfifo', [pipe]);
    for (const file of ['-', pipe]) {
      const url = await SQLITE.freshUrl();
      const args = ['import', file, '--rejects', `${pipe}.rejects`];
      const { promise: stop, resolve } = Promise.withResolvers<void>();
      const stdin = new PassThrough();
      const ended = runCommand(args, { DB_URL: url }, { stop, stdin });
      const writer = await open(file === '-' ? '/dev/null' : pipe, 'w'); // waits until the import has opened it
      const rows = MANY_ROWS.replace('\n', '\nEmma,Jane Austen,MCM\n'); // after the header
      stdin.write(rows);
      await writer.write(rows);
      await waitUntil(() => existsSync(`${pipe}.rejects`), ended); // and then it waits for more
      resolve();
      const { code, stdout, stderr } = await ended;
      await writer.close();
      rmSync(`${pipe}.rejects`);
      assert.deepEqual([code, await countOf(url)], [1, 0]);
      assert.match(stdout, /^\d+ rows read: 0 imported, 1 refused\.\n1 rejected row written to /);
      assert.ok(stderr.endsWith('\nStopped. Nothing was imported.\n'), stderr);
    }
  });

  test('stopped while it stores, it is completed by the same command, under one number', async () => {
    const url = await storeWith([]);
    const folder = folderWith({ 'books.csv': manyRows(200_000) });
    const args = ['import', join(folder, 'books.csv'), '--on-duplicate', 'add'];
    const { promise: stop, resolve } = Promise.withResolvers<void>();
    const ended = runCommand(args, { DB_URL: url }, { stop });
    using other = new DatabaseSync(fileOf(url), { timeout: 0 });
    const isBetweenSteps = () => {
      try {
        other.exec('begin immediate');
      } catch {
        return false; // it stores
      }
      if (Number(other.prepare('select count(*) as count from books').get()?.count) > 0) return true;
      other.exec('rollback');
      return false;
    };
    while (!isBetweenSteps()) await setImmediate();
    resolve();
    other.exec('rollback');
    const { code, stdout, stderr } = await ended;
    const stored = await countOf(url);
    assert.ok(stored < 200_000);
    assert.deepEqual([code, stdout], [1, `200000 rows read: ${stored} imported, 0 refused.\n`]);
    assert.ok(stderr.endsWith('\nStopped. Run the same command again to complete the import.\n'), stderr);
    const again = await runCommand(args, { DB_URL: url });
    const whole = '200000 rows read: 200000 imported, 0 already there, 0 refused.\n';
    assert.deepEqual([again.code, again.stdout], [0, whole]);
    assert.equal(await countOf(url), 200_000);
    const { stdout: list } = await command('undo --list', url);
    assert.match(list, /^.*\b200000 books.*\nThe log begins .*\n$/);
  });

  test('if the store is replaced meanwhile, nothing more is imported', async () => {
    const url = await storeWith(BOOKS);
    const file = fileOf(url);
    copyFileSync(file, `${file}.other`);
    const stdin = new PassThrough();
    const rejects = join(temporaryFolder(), 'rejects.csv');
    const ended = runCommand(['import', '-', '--rejects', rejects], { DB_URL: url }, { stdin });
    stdin.write(`${MANY_ROWS}Emma,Jane Austen,MCM\n${'x,y,1\n'.repeat(1000)}`);
    await waitUntil(() => existsSync(rejects), ended); // and then it waits for more
    for (const suffix of ['-wal', '-shm']) rmSync(`${file}${suffix}`);
    renameSync(`${file}.other`, file);
    stdin.end('another,one,1\n');
    const { code, stdout, stderr } = await ended;
    assert.equal(code, 1);
    assert.match(stdout, /^41002 rows read: 0 imported, 1 refused\.\n/);
    const advice = 'has been replaced: put it back, or start again with the new one. Nothing was imported.\n';
    assert.ok(stderr.endsWith(advice), stderr);
    assert.deepEqual(await booksOf(url), BOOKS);
  });

  test('while nobody reads its messages, few pile up, and other programs write', async () => {
    for (const mode of ['skip', 'add']) {
      const [url, stderr] = [await storeWith([]), new Reader()];
      const args = ['import', join(wrongRows(3000), 'books.csv'), '--year', YEAR, '--on-duplicate', mode];
      const ended = run(args, { DB_URL: url }, streamsWith({ stderr }), new Promise(() => {}));
      await waitUntil(() => stderr.writableLength > MEBIBYTE, ended);
      await waitUntil(() => isFree(url), ended);
      assert.equal((await importing(url, folderWith({ 'a.csv': 'title\nEmma\n' }), 'a.csv')).code, 0);
      assert.ok(stderr.writableLength < 1.5 * MEBIBYTE, `${stderr.writableLength} bytes of 3 MB`);
      stderr.goOn();
      assert.equal(await ended, 1);
      assert.equal(stderr.text.match(/ cannot be read as a year\n/g)?.length, 3000);
      assert.equal(await countOf(url), 2);
    }
  });

  test('all its messages arrive, if only they are left', async () => {
    const { child } = await withMessagesLeft();
    const { code, stdout, stderr } = await endOf(child);
    assert.match(stdout, /^401 rows read: 1 imported, 0 already there, 400 refused\.\n/);
    assert.deepEqual([code, stderr.split('\n').length], [1, 402]);
    assert.match(stderr, /\nbooks\.csv:401: y+ "MM" cannot be read as a year\n$/);
  });

  test('a signal ends it although nobody reads its messages, if only they are left', async () => {
    const { child, exit } = await withMessagesLeft();
    child.kill('SIGINT');
    assert.deepEqual(await exit, [1, null]);
    for (const output of [child.stdout, child.stderr]) output?.destroy();
  });

  /** An import that has stored its only book, and has more messages than any system keeps for a reader. */
  async function withMessagesLeft() {
    const url = await SQLITE.freshUrl();
    const child = spawnService({ DB_URL: url }, ['import', 'books.csv', '--year', YEAR], {
      folder: wrongRows(MESSAGES),
    });
    const exit = once(child, 'exit');
    await waitUntil(async () => (await countOf(url)) === 1, exit);
    return { child, exit };
  }

  test('a dry run has its temporary files beside the store; without room there, an error names the way out', async (context) => {
    const url = await storeWith([]);
    const long = `${'x'.repeat(4000)}\n`;
    // A limit of 9 MB on the size of files simulates a full disk.
    const args = ['import', '-', '--dry-run'];
    const child = spawnService({ DB_URL: url }, args, {
      folder: temporaryFolder(),
      stdin: 'pipe',
      setting: 'ulimit -f 18000',
    });
    context.after(() => child.kill('SIGKILL'));
    const ended = endOf(child);
    const input = child.stdin?.on('error', () => {});
    input?.write(`title\n${long.repeat(1600)}`); // more than SQLite holds in memory
    const temporary = () => openFiles(child).find((path) => basename(path).startsWith('etilqs_'));
    await waitUntil(() => temporary() !== undefined, ended);
    assert.equal(dirname(`${temporary()}`), dirname(fileOf(url)));
    input?.end(long.repeat(1600));
    const { code, stderr } = await ended;
    assert.equal(code, 1);
    assert.match(stderr, /\nThe temporary file .+ Set SQLITE_TMPDIR to use another folder\.\n$/);
  });

  testOnPostgres('if its connection is lost, nothing is stored', async (context) => {
    const url = await storeWith([], POSTGRES.freshUrl);
    const observer = await connectTo(context, url);
    const { proxy, proxiedUrl } = await proxyTo(context, url);
    const { stdin, ended } = startImport(proxiedUrl);
    stdin.write(MANY_ROWS);
    const isCopying =
      'select from pg_stat_progress_copy where datname = current_database() and tuples_processed > 0';
    await waitUntil(async () => (await observer.query(isCopying)).rowCount !== 0, ended);
    proxy.reset();
    stdin.end('another,one,1\n');
    const { code, stdout, stderr } = await ended;
    assert.equal(code, 1);
    assert.match(stdout, /^\d+ rows read: 0 imported, 0 refused\.\n/);
    assert.match(stderr, /\npostgres:\/\/127\.0\.0\.1:\d+\/test_\w+: [^\n]+\. Nothing was imported\.\n$/);
    assert.equal(await countOf(url), 0);
    assert.ok(!stderr.includes('password'));
  });

  testOnPostgres('a commit whose answer is lost is not taken for a failed one', async (context) => {
    const url = await storeWith([], POSTGRES.freshUrl);
    const { proxy, proxiedUrl } = await proxyTo(context, url);
    const commit = await haltCommit(context, url, 'A book of number 9');
    const { stdin, ended } = startImport(proxiedUrl);
    stdin.end(manyRows(10));
    await commit.loseAnswer(proxy, ended);
    const { code, stdout, stderr } = await ended;
    assert.deepEqual([code, stdout], [1, '10 rows read: 0 imported, 0 refused.\n']);
    assert.equal(await countOf(url), 10);
    const advice =
      'The rows may be stored: look for the last ones in the catalogue before you run the command again.';
    assert.ok(stderr.endsWith(`. ${advice}\n`), stderr);
  });
});

async function proxyTo(context: TestContext, url: string) {
  const proxied = await TcpProxy.to(url);
  context.after(() => proxied.proxy.stop());
  return proxied;
}

type Streams = Parameters<typeof run>[2];

/** Standard streams: without input, and without a word about what is written to the others. */
function streamsWith(streams: object): Streams {
  const others = { stdin: Readable.from([]), stdout: new PassThrough().resume() };
  return { ...others, ...streams } as unknown as Streams;
}

/** An output whose reader takes one piece, and then nothing until it continues. */
class Reader extends Writable {
  text = '';
  readonly isTTY = false;
  readonly #going = Promise.withResolvers<void>();

  constructor() {
    super({ decodeStrings: false });
  }

  goOn(): void {
    this.#going.resolve();
  }

  override _write(chunk: unknown, _encoding: string, done: () => void): void {
    this.text += chunk;
    void this.#going.promise.then(done);
  }
}

/** Whether another program can write to a SQLite store now. */
function isFree(url: string): boolean {
  using db = new DatabaseSync(fileOf(url), { timeout: 0 });
  try {
    db.exec('begin immediate');
    return true;
  } catch {
    return false;
  }
}

/** The paths of the files that a process has open, or had a moment ago. */
function openFiles({ pid }: ChildProcess): string[] {
  return readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return ''; // it is closed by now
    }
  });
}

/** Halts, from now on, the commit of the transaction that stores a book with this title. */
async function haltCommit(context: TestContext, url: string, title: string) {
  const holder = await connectTo(context, url);
  await holder.query(
    `select pg_advisory_lock(1);
     create function halt() returns trigger language plpgsql set lock_timeout = 0 as
       $$ begin perform pg_advisory_xact_lock(1); return null; end $$;
     create constraint trigger halt after insert on books deferrable initially deferred
       for each row when (new.title = '${title}') execute function halt()`,
  );
  const has = async (rows: string) => (await holder.query(`select ${rows}`)).rowCount !== 0;
  return {
    /**
     * Waits for that commit, lets it take effect, and breaks the connections of the proxy, which drops the answer.
     * @param ended of the command that commits.
     */
    async loseAnswer(proxy: TcpProxy, ended: Promise<unknown>): Promise<void> {
      const waiting = `from pg_stat_activity
        where datname = current_database() and wait_event = 'advisory' and query = 'commit'`;
      await waitUntil(() => has(waiting), ended);
      proxy.swallowAnswers();
      await holder.query('select pg_advisory_unlock(1)');
      await waitUntil(() => has(`from books where title = '${title}'`));
      proxy.reset();
    },
  };
}
