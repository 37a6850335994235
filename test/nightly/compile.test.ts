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
import { createInterface } from 'node:readline';
import { afterEach, before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { Client, type Target } from '../support/client.ts';
import { pathTo } from '../support/repository.ts';
import { ENVIRONMENT, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

test('a start after the installation translates no file, and neither does its writing thread', async (context) => {
  const folder = installation();
  await compile(folder);
  const translated = translationsIn(folder);
  const heads = [...translated.keys()].sort();
  assert.equal(
    translated.size,
    globSync('{src,conformance}/**/*.ts', { cwd: folder, exclude: ['conformance/main.ts'] }).length,
  );

  // A process, and each of its threads, adds what it had to translate to its cache when it ends. Only the thread loads
  // this file: if it is in the cache again, the thread has the same cache.
  const [, writer] = [...translated].find(([head]) => head.includes('the one connection that writes')) ?? [];
  rmSync(String(writer));
  const service = await start(context, folder);
  await (await Client.logIn(service)).create({});
  assert.equal((await fetch(service.pageUrl)).status, 200);
  await service.stop();
  assert.deepEqual([...translationsIn(folder).keys()].sort(), heads);
});

describe('the files of the page', () => {
  const MAIN = 'page/main.ts';
  let folder: string;
  let cache: string;
  /** As the installation makes it. */
  let made: string;

  before(async () => {
    folder = installation();
    await compile(folder);
    cache = join(folder, 'node_modules/.cache/page.json');
    made = readFileSync(cache, 'utf8');
  });
  afterEach(() => {
    rmSync(cache, { recursive: true, force: true });
    writeFileSync(cache, made);
  });

  test('rule 34: those of the installation are served', async (context) => {
    const page = JSON.parse(made);
    page.files[0].text += '<!-- from the installation -->';
    writeFileSync(cache, JSON.stringify(page));
    const service = await start(context, folder);
    assert.ok((await read(service.pageUrl)).endsWith('<!-- from the installation -->'));
    await service.stop();
  });

  for (const [what, change] of Object.entries({
    missing: () => {},
    'half written': () => writeFileSync(cache, made.slice(0, 1000)),
    'a folder, so that it cannot be written': async () => {
      mkdirSync(cache);
      await compile(folder); // as at each start under systemd
    },
  })) {
    test(`rule 34: if the file with them is ${what}, they are made when they are needed`, async (context) => {
      const expected = JSON.parse(made).files.find(({ path }: { path: string }) => path.endsWith(MAIN));
      rmSync(cache);
      await change();
      const { url, text } = await inService(context);
      assert.deepEqual([url, text], [expected.path, expected.text]);
    });
  }

  test('rule 34: if a source is newer, they are made again, under other URLs', async (context) => {
    const before = await inService(context);
    const source = readFileSync(join(folder, MAIN), 'utf8');
    writeFileSync(join(folder, MAIN), `${source}\nexport const added: string = 'added';\n`);
    const after = await inService(context);
    writeFileSync(join(folder, MAIN), source);
    assert.notEqual(after.url, before.url);
    assert.equal(after.text, `${before.text}\nexport const added         = 'added';\n`);
  });

  test('rule 34: while they cannot be built, the answer is 500', async (context) => {
    const source = readFileSync(join(folder, MAIN), 'utf8');
    writeFileSync(join(folder, MAIN), `${source}\nlet let = 1;\n`);
    const service = await start(context, folder);
    for (const path of ['/', '/v/x']) {
      const answer = await fetch(`${service.pageUrl}${path}`);
      assert.deepEqual(await answer.json(), { status: 500, message: 'Internal server error', data: null });
    }
    assert.equal((await fetch(`${service.pageUrl}/books`)).status, 401); // everything else works
    writeFileSync(join(folder, MAIN), source);
    assert.ok((await read(service.pageUrl)).startsWith('<!doctype html>'));
    await service.stop();
  });

  /** What a service serves as main.ts, and its path. */
  async function inService(context: TestContext): Promise<{ url: string; text: string }> {
    const service = await start(context, folder);
    // Several at the same moment: one process makes the files for all of them.
    const [index = ''] = await Promise.all([1, 2, 3].map(() => read(service.pageUrl)));
    const [, url = ''] = /src="([^"]+main\.ts)"/.exec(index) ?? [];
    const text = await read(`${service.pageUrl}/${url}`);
    await service.stop();
    return { url: `/${url}`, text };
  }

  async function read(url: string): Promise<string> {
    const answer = await fetch(url, { headers: { 'accept-encoding': 'identity' } });
    assert.equal(answer.status, 200);
    return await answer.text();
  }
});

function compile(folder: string): Promise<unknown> {
  return promisify(execFile)(process.execPath, [join(folder, 'src/compile.js')], { env: {} });
}

/** Starts the service of a folder; `stop` fails if it has printed anything on standard error, as a compiler in it would. */
async function start(
  context: TestContext,
  folder: string,
): Promise<Target & { pageUrl: string; stop(): Promise<void> }> {
  const service = spawn(process.execPath, [join(folder, 'src/main.js')], {
    env: { ...ENVIRONMENT, LOG_LEVEL: 'info', DB_URL: `sqlite:${temporaryFolder()}/books.db` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  context.after(() => service.kill('SIGKILL'));
  let complaints = '';
  service.stderr.on('data', (text) => {
    complaints += text;
  });
  let entry: { url: string; page: string } | undefined;
  createInterface({ input: service.stdout }).on('line', (line) => {
    entry ??= JSON.parse(line);
  });
  await waitUntil(() => service.exitCode !== null || entry !== undefined);
  const { url = '', page: pageUrl = '' } = entry ?? {};
  return {
    url,
    port: Number(new URL(url).port),
    pageUrl,
    async stop() {
      service.kill('SIGTERM');
      await waitUntil(() => service.exitCode !== null);
      assert.deepEqual([service.exitCode, complaints], [0, '']);
    },
  };
}

/** A copy of this project in a separate folder, with a cache that no other test uses. */
function installation(): string {
  const folder = temporaryFolder();
  for (const sources of ['src', 'conformance', 'page', 'client/src'])
    cpSync(pathTo(sources), join(folder, sources), { recursive: true });
  cpSync(pathTo('package.json'), join(folder, 'package.json'));
  mkdirSync(join(folder, 'node_modules'));
  for (const name of readdirSync(pathTo('node_modules'))) {
    if (name === '.cache') continue;
    symlinkSync(join(pathTo('node_modules'), name), join(folder, 'node_modules', name), 'junction');
  }
  return folder;
}

/** Files of the cache that contain text, which is how Node keeps translations, by the first line of the translation. */
function translationsIn(folder: string): Map<string, string> {
  const cache = join(folder, 'node_modules/.cache');
  const files = globSync('*/*', { cwd: cache }).map((name) => join(cache, name));
  return new Map(
    files.flatMap((file) => {
      const [head] = /\/\/ Owns: .*$/m.exec(readFileSync(file, 'latin1')) ?? [];
      return head === undefined ? [] : [[head, file]];
    }),
  );
}
