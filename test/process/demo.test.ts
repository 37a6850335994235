// The command `demo`: its books, how it ends, what it leaves, and what it never touches. Real processes, each with a
// separate temporary folder.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Client } from '../support/client.ts';
import { listen } from '../support/ports.ts';
import { COMMAND, pathTo } from '../support/repository.ts';
import { endOf, SQLITE, spawnService, startCommand, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const BUILT_IN = { username: 'admin', password: 'password' };

/** The lines of the file with the books, without its header. */
const ROWS = readFileSync(pathTo('src/demo/books.csv'), 'utf8').trimEnd().split('\n').slice(1);

describe('demo', { concurrency: 3 }, () => {
  test('has all books of its file, finds them, and serves the page and /docs', async () => {
    const demo = await start({ PORT: '0' });
    const client = await Client.logIn(demo, BUILT_IN);
    const books = await client.list();
    assert.equal(books.length, ROWS.length);
    assert.equal(demo.store, 'a demo: nothing is kept');
    const document = readFileSync(pathTo('src/demo/README.md'), 'utf8');
    assert.ok(document.includes(`has ${books.length.toLocaleString('en-US')} books`));
    assert.equal(new Set(books.map(({ title, author }) => `${title}\n${author}`)).size, books.length);
    assert.ok(books.every(({ title, year }) => title !== '' && year >= -800 && year <= 1934));

    await waitUntil(async () => (await client.request('GET', '/books?q=emma')).status === 200); // it has made its index
    const { data } = await client.request('GET', '/books?q=austen%20emma');
    assert.deepEqual([data.length, data[0].title, data[0].year], [1, 'Emma', 1815]);
    assert.match(await (await fetch(demo.page)).text(), /^<!doctype html>/i);
    assert.deepEqual(await (await fetch(`${demo.page}/login.json`)).json(), BUILT_IN);
    assert.equal((await fetch(`${demo.operations}/docs`)).status, 200);
  });

  test('no variable leads to another store, account or machine, and SIGHUP ends it and leaves nothing', async () => {
    const DB_URL = await SQLITE.freshUrl();
    const demo = await start({
      ...{ PORT: '0', DB_URL, DB_READ_URL: 'postgres://standby.example.org/library' },
      ...{ AUTH_USERNAME: 'librarian', AUTH_PASSWORD: 'correct horse', SECRET_TOKEN: 'a secret for tests' },
      ...{ HOST: '0.0.0.0', ADMIN_HOST: '0.0.0.0', WORKERS: '2', FIND: 'off', BODY_LIMIT: '1' },
    });
    for (const url of [demo.url, demo.page, demo.operations])
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
    const client = await Client.logIn(demo, BUILT_IN);
    await client.create({ title: 'A book of the demo' });
    await waitUntil(async () => (await client.request('GET', '/books?q=demo')).data?.length === 1); // FIND is on
    assert.equal(readdirSync(demo.folder).length, 1);
    demo.process.kill('SIGHUP');
    assert.deepEqual(await once(demo.process, 'close'), [0, null]);
    assert.deepEqual(readdirSync(demo.folder), []);
    assert.ok(!existsSync(DB_URL.slice('sqlite:'.length)));
  });

  test('a port that is in use is named, and nothing is left', async (context) => {
    const { port } = await listen(context);
    const folder = temporaryFolder();
    const { code, stdout, stderr } = await endOf(
      spawnService({ PORT: String(port), TMPDIR: folder }, ['demo']),
    );
    const sentence = `PORT ${port} is in use by another process: stop that process or choose another port.\n`;
    assert.deepEqual({ code, stdout, stderr }, { code: 1, stdout: '', stderr: sentence });
    assert.deepEqual(readdirSync(folder), []);
  });

  test('SIGINT while it starts ends it with exit code 0, and it leaves nothing', async () => {
    const folder = temporaryFolder();
    const child = spawnService({ PORT: '0', TMPDIR: folder }, ['demo']);
    const ended = endOf(child);
    await waitUntil(() => readdirSync(folder).length > 0, ended);
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    assert.deepEqual({ code, stderr, left: readdirSync(folder) }, { code: 0, stderr: '', left: [] });
  });

  test('without a temporary folder, or without room in it, it says so in one sentence and leaves nothing', async () => {
    const folder = temporaryFolder();
    for (const [TMPDIR, setting] of [
      ['/nowhere', undefined],
      [folder, 'ulimit -f 200'], // a file may have 100 KiB, or 200 with bash
    ] as const) {
      const { code, stderr } = await endOf(spawnService({ PORT: '0', TMPDIR }, ['demo'], { setting }));
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^No temporary store can be made: .*\. Set TMPDIR to a folder that can be written, with room for 10 MB\.\n$/,
      );
    }
    assert.deepEqual(readdirSync(folder), []);
  });
});

/** Starts it with only these variables, and a temporary folder. */
async function start(env: Record<string, string>) {
  const folder = temporaryFolder();
  const demo = [...COMMAND, 'demo'];
  const service = await startCommand({ ...env, TMPDIR: folder }, { command: demo });
  const lines = service.log.map((line) => JSON.parse(line));
  assert.ok(lines.every(({ level }) => level === 'info'));
  const { page, operations, store } = lines.at(-1);
  return { ...service, page, operations, store, folder };
}
