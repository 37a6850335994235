// What `npm ci` translates, and that nothing is translated again when the service starts; where the files of the page
// come from.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import {
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '../support/client.ts';
import { pathTo } from '../support/repository.ts';
import { ENVIRONMENT, endOf, SQLITE, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** A copy of this project, with a cache that no other test uses. */
const folder = temporaryFolder();
const cache = join(folder, 'node_modules/.cache');
const pageCache = join(cache, 'page.json');
const source = join(folder, 'page/main.ts');

const compile = () => promisify(execFile)(process.execPath, [join(folder, 'src/compile.js')], { env: {} });
const read = (path: string) => readFileSync(path, 'utf8');

describe('an installation', () => {
  /** The page as the installation makes it, and one of its sources. */
  let page: string;
  let main: string;

  before(async () => {
    for (const path of ['src', 'conformance', 'page', 'client/src', 'package.json'])
      cpSync(pathTo(path), join(folder, path), { recursive: true });
    mkdirSync(join(folder, 'node_modules'));
    for (const name of readdirSync(pathTo('node_modules')))
      if (name !== '.cache') symlinkSync(pathTo(`node_modules/${name}`), join(folder, 'node_modules', name));
    await compile();
    page = read(pageCache);
    main = read(source);
  });
  afterEach(() => {
    writeFileSync(source, main);
    rmSync(pageCache, { recursive: true, force: true });
    writeFileSync(pageCache, page); // newer than its sources
  });

  test('a start after it translates no file, and neither does its writing thread', async () => {
    const translated = translations();
    const files = globSync('{src,conformance}/**/*.ts', { cwd: folder, exclude: ['conformance/main.ts'] });
    assert.equal(translated.size, files.length);
    // A process, and each of its threads, adds what it had to translate to its cache when it ends. Only the thread loads
    // this file: if it is in the cache again, the thread has the same cache.
    const [, writer] =
      [...translated].find(([head]) => head.includes('the one connection that writes')) ?? [];
    rmSync(String(writer));
    await served(async (url, pageUrl) => {
      await (await Client.logIn({ url, port: Number(new URL(url).port) })).create({});
      assert.equal((await fetch(pageUrl)).status, 200);
    });
    assert.deepEqual([...translations().keys()].sort(), [...translated.keys()].sort());
  });

  test('rule 34: its files of the page are served', async () => {
    const marked = JSON.parse(page);
    marked.files[0].text += '<!-- from the installation -->';
    writeFileSync(pageCache, JSON.stringify(marked));
    await served(async (_, pageUrl) =>
      assert.match(await textAt(pageUrl), /<!-- from the installation -->$/),
    );
  });

  for (const [what, change] of [
    ['missing', () => {}],
    ['half written', () => writeFileSync(pageCache, page.slice(0, 1000))],
    ['a folder, so that it cannot be written', () => mkdirSync(pageCache)],
  ] as const) {
    test(`rule 34: if the file with them is ${what}, they are made when they are needed`, async () => {
      rmSync(pageCache);
      change();
      if (what.startsWith('a folder')) await compile(); // as at each start under systemd
      const { path, text } = JSON.parse(page).files.find((file: { path: string }) =>
        file.path.endsWith('main.ts'),
      );
      assert.deepEqual(await servedMain(), { path, text });
    });
  }

  test('rule 34: if a source is newer, they are made again, under other URLs', async () => {
    const before = await servedMain();
    writeFileSync(source, `${main}\nexport const added: string = 'added';\n`);
    const after = await servedMain();
    assert.notEqual(after.path, before.path);
    assert.equal(after.text, `${before.text}\nexport const added         = 'added';\n`);
  });

  test('rule 34: while they cannot be built, the answer is 500', async () => {
    writeFileSync(source, `${main}\nlet let = 1;\n`);
    await served(async (_, pageUrl) => {
      for (const path of ['/', '/v/x']) {
        const answer = await fetch(`${pageUrl}${path}`);
        assert.deepEqual(await answer.json(), { status: 500, message: 'Internal server error', data: null });
      }
      assert.equal((await fetch(`${pageUrl}/books`)).status, 401); // everything else works
      writeFileSync(source, main);
      assert.match(await textAt(pageUrl), /^<!doctype html>/);
    });
  });
});

/** What a service serves as main.ts, and its path. */
async function servedMain(): Promise<{ path: string; text: string }> {
  const found = { path: '', text: '' };
  await served(async (_, pageUrl) => {
    // Several at the same moment: one process makes the files for all of them.
    const [index = ''] = await Promise.all([1, 2, 3].map(() => textAt(pageUrl)));
    found.path = `/${/src="([^"]+main\.ts)"/.exec(index)?.[1]}`;
    found.text = await textAt(`${pageUrl}${found.path}`);
  });
  return found;
}

/** Runs the service meanwhile; it must print nothing on standard error, as a compiler in it would. */
async function served(visit: (url: string, pageUrl: string) => Promise<void>): Promise<void> {
  const env = { ...ENVIRONMENT, LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl() };
  const service = spawn(process.execPath, [join(folder, 'src/main.js')], { env });
  const ended = endOf(service);
  let log = '';
  service.stdout.on('data', (text) => {
    log += text;
  });
  try {
    await waitUntil(() => log.includes('\n'), ended);
    const { url, page } = JSON.parse(log.slice(0, log.indexOf('\n')));
    await visit(url, page);
  } finally {
    service.kill('SIGTERM');
  }
  const { code, stderr } = await ended;
  assert.deepEqual([code, stderr], [0, '']);
}

async function textAt(url: string): Promise<string> {
  const answer = await fetch(url, { headers: { 'accept-encoding': 'identity' } });
  assert.equal(answer.status, 200);
  return await answer.text();
}

/** Files of the cache that contain text, which is how Node keeps translations, by the first line of the translation. */
function translations(): Map<string, string> {
  const files = globSync('*/*', { cwd: cache }).map((name) => join(cache, name));
  return new Map(
    files.flatMap((file) => {
      const [head] = /\/\/ Owns: .*$/m.exec(readFileSync(file, 'latin1')) ?? [];
      return head === undefined ? [] : [[head, file]];
    }),
  );
}
