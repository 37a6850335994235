// What `npm ci` translates, and that nothing is translated again when the service starts.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '../support/client.ts';
import { pathTo } from '../support/repository.ts';
import { ENVIRONMENT, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

test('a start after the installation translates no file, and neither does its writing thread', async (context) => {
  const folder = installation();
  await promisify(execFile)(process.execPath, [join(folder, 'src/compile.js')], { env: {} });
  const translated = translationsIn(folder);
  const heads = [...translated.keys()].sort();
  assert.equal(translated.size, globSync('src/**/*.ts', { cwd: folder }).length);

  // A process, and each of its threads, adds what it had to translate to its cache when it ends. Only the thread loads
  // this file: if it is in the cache again, the thread has the same cache.
  const [, writer] = [...translated].find(([head]) => head.includes('the one connection that writes')) ?? [];
  rmSync(String(writer));
  const service = spawn(process.execPath, [join(folder, 'src/main.js')], {
    env: { ...ENVIRONMENT, LOG_LEVEL: 'info', DB_URL: `sqlite:${temporaryFolder()}/books.db` },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  context.after(() => service.kill('SIGKILL'));
  let url: string | undefined;
  createInterface({ input: service.stdout }).on('line', (line) => {
    url ??= JSON.parse(line).url;
  });
  await waitUntil(() => service.exitCode !== null || url !== undefined);
  const target = { url: String(url), port: Number(new URL(String(url)).port) };
  await (await Client.logIn(target)).create({});
  service.kill('SIGTERM');
  await waitUntil(() => service.exitCode !== null);
  assert.equal(service.exitCode, 0);
  assert.deepEqual([...translationsIn(folder).keys()].sort(), heads);
});

/** This project in a folder of its own, with a cache that no other test uses. */
function installation(): string {
  const folder = temporaryFolder();
  cpSync(pathTo('src'), join(folder, 'src'), { recursive: true });
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
