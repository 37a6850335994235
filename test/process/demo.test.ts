// The command `demo`: its books, how it ends, what it leaves, and what it never touches. Real processes, each with its
// own temporary folder.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { booksOf } from '../support/books.ts';
import { Client, type Target } from '../support/client.ts';
import { pathTo } from '../support/repository.ts';
import { endOf, SQLITE, spawnService, startTestService, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const BUILT_IN = { username: 'admin', password: 'password' };

/** The lines of the file with the books, without its header. */
const ROWS = readFileSync(pathTo('src/demo/books.csv'), 'utf8').trimEnd().split('\n').slice(1);

interface Demo extends Target {
  readonly process: ChildProcess;
  /** The addresses that it has printed. */
  readonly said: { readonly page: string; readonly operations: string; readonly store: string };
  /** The temporary folder of the process. */
  readonly folder: string;
}

describe('demo', { concurrency: 3 }, () => {
  test('has all books of its file, finds them, and serves the page and /docs', async (context) => {
    const demo = await start(context);
    const client = await Client.logIn(demo, BUILT_IN);
    const books = await client.list();
    assert.equal(books.length, ROWS.length);
    assert.ok(books.length > 2000);
    assert.match(demo.said.store, new RegExp(`^a demo with ${books.length} books: nothing is kept$`));
    const { data: found } = await client.request('GET', '/books?q=austen%20emma');
    assert.deepEqual(
      found.map(({ title, author, year }: Book) => [title, author, year]),
      [['Emma', 'Jane Austen', 1815]],
    );
    const page = await fetch(demo.said.page);
    assert.match(await page.text(), /^<!doctype html>/i);
    assert.deepEqual(await (await fetch(`${demo.said.page}/login.json`)).json(), BUILT_IN);
    assert.equal((await fetch(`${demo.said.operations}/docs`)).status, 200);
  });

  test('its books have a title each, an author and a year unless these are unknown, and none is there twice', async (context) => {
    const books = await (await Client.logIn(await start(context), BUILT_IN)).list();
    const keys = books.map(({ title, author }) => `${title}\n${author}`);
    assert.equal(new Set(keys).size, books.length);
    assert.deepEqual(
      books.filter(({ title, year }) => title === '' || year < -800 || year > 1934),
      [],
    );
    assert.ok(books.filter(({ author, year }) => author === '' || year === 0).length < 10);
  });

  test('no variable leads to another store, another account or another machine', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const own = await startTestService(dbUrl);
    await own.client.create({ title: 'Emma' });
    await own.stop();
    const before = await booksOf(dbUrl);
    const demo = await start(context, {
      PORT: '0',
      DB_URL: dbUrl,
      DB_READ_URL: 'postgres://standby.example.org/library',
      AUTH_USERNAME: 'librarian',
      AUTH_PASSWORD: 'correct horse',
      SECRET_TOKEN: 'a secret for tests that is long enough',
      HOST: '0.0.0.0',
      ADMIN_HOST: '0.0.0.0',
      WORKERS: '2',
      FIND: 'off',
      BODY_LIMIT: '1',
    });
    for (const url of [demo.url, demo.said.page, demo.said.operations]) {
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
    }
    const client = await Client.logIn(demo, BUILT_IN);
    await client.create({ title: 'A book of the demo' });
    assert.equal((await client.request('GET', '/books?q=demo')).status, 200); // FIND is on
    await end(demo, 'SIGINT');
    assert.deepEqual(await booksOf(dbUrl), before);
  });

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    test(`${signal} ends it with exit code 0, and it leaves nothing`, async (context) => {
      const demo = await start(context);
      await (await Client.logIn(demo, BUILT_IN)).create({ title: 'Emma' });
      assert.equal(readdirSync(demo.folder).length, 1);
      await end(demo, signal);
    });
  }

  test('SIGINT while it starts ends it with exit code 0, and it leaves nothing', async () => {
    const folder = temporaryFolder();
    const child = spawnService({ PORT: '0', TMPDIR: folder }, ['demo']);
    const ended = endOf(child);
    await waitUntil(() => readdirSync(folder).length > 0);
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    assert.deepEqual({ code, stderr, left: readdirSync(folder) }, { code: 0, stderr: '', left: [] });
  });

  test('without PORT, free ports are chosen if one of the usual ones is in use', async (context) => {
    const other = createServer();
    context.after(() => other.close());
    await new Promise<void>((resolve) => {
      other.once('error', () => resolve()); // another program has it already
      other.listen(8081, '127.0.0.1', resolve);
    });
    const demo = await start(context, {});
    for (const url of [demo.url, demo.said.page, demo.said.operations]) {
      assert.doesNotMatch(url, /:808[012]$/);
    }
    await end(demo, 'SIGINT');
  });

  test('a PORT that is in use is refused, and nothing is left', async (context) => {
    const demo = await start(context);
    const folder = temporaryFolder();
    const child = spawnService({ PORT: String(demo.port), TMPDIR: folder }, ['demo']);
    const { code, stderr } = await endOf(child);
    assert.equal(code, 1);
    assert.equal(
      stderr,
      `PORT ${demo.port} is in use by another process: stop that process or choose another port.\n`,
    );
    assert.deepEqual(readdirSync(folder), []);
  });

  for (const [name, folder, setting] of [
    ['without a temporary folder', '/nowhere', undefined],
    ['without room for its store', temporaryFolder(), 'ulimit -f 200'], // a file may have 100 KiB, or 200 with bash
  ] as const) {
    test(`${name}, it says so in one sentence`, async () => {
      const child = spawnService({ PORT: '0', TMPDIR: folder }, ['demo'], undefined, 'ignore', setting);
      const { code, stdout, stderr } = await endOf(child);
      assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
      assert.match(
        stderr,
        /^No temporary store can be made: .*\. Set TMPDIR to a folder that can be written, with room for 10 MB\.\n$/,
      );
      if (existsSync(folder)) assert.deepEqual(readdirSync(folder), []);
    });
  }

  test('the document beside the books counts them', () => {
    const document = readFileSync(pathTo('src/demo/README.md'), 'utf8');
    assert.ok(document.includes(`has ${ROWS.length.toLocaleString('en-US')} books`));
    assert.ok(document.includes(` to ${ROWS.length.toLocaleString('en-US')} |`));
  });
});

/** Starts it with only the given variables, on free ports unless these say otherwise. */
async function start(context: TestContext, env: Record<string, string> = { PORT: '0' }): Promise<Demo> {
  const folder = temporaryFolder();
  const child = spawnService({ ...env, TMPDIR: folder }, ['demo']);
  context.after(() => child.kill('SIGKILL'));
  let complaints = '';
  child.stderr?.on('data', (text) => {
    complaints += text;
  });
  const said = await new Promise<Demo['said'] & { url: string }>((resolve, reject) => {
    child.once('close', (code) => reject(new Error(`exit code ${code}: ${complaints}`)));
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const entry = JSON.parse(line);
      if (entry.msg !== 'slow request') assert.notEqual(entry.level, 'warn', line); // a machine may be slow
      if (entry.msg === 'listening') resolve(entry);
    });
  });
  return { url: said.url, port: Number(new URL(said.url).port), process: child, said, folder };
}

async function end({ process, folder }: Demo, signal: NodeJS.Signals): Promise<void> {
  process.kill(signal);
  await waitUntil(() => process.exitCode !== null || process.signalCode !== null);
  assert.deepEqual({ code: process.exitCode, left: readdirSync(folder) }, { code: 0, left: [] });
}
