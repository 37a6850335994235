// What `npm ci` translates, and that nothing is translated again when the service starts.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ENVIRONMENT, spawnService, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

test('a start after the installation translates no file, nor does its writing thread', async (context) => {
  const compile = fileURLToPath(new URL('../../src/compile.js', import.meta.url));
  await promisify(execFile)(process.execPath, [compile]);

  const service = spawnService({
    ...ENVIRONMENT,
    LOG_LEVEL: 'info',
    DB_URL: `sqlite:${temporaryFolder()}/books.db`,
    NODE_DEBUG_NATIVE: 'COMPILE_CACHE', // Node tells where it found each file
  });
  context.after(() => service.kill('SIGKILL'));
  let said = '';
  for (const stream of [service.stdout, service.stderr]) {
    stream?.on('data', (text) => {
      said += text;
    });
  }
  await waitUntil(() => said.includes('"msg":"listening"'));
  assert.match(said, /retrieving transpile cache for StrippedTypeScript \S+command\.ts\.\.\.success/);
  assert.doesNotMatch(said, /no transpile cache/);
});
