// The test runner, on small tests that it writes: when a run fails.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathTo } from '../support/repository.ts';
import { endOf, temporaryFolder } from '../support/service.ts';

const PASSING = "import { test } from 'node:test'; test('passes', () => {});";

describe('a run of tests', { concurrency: 2 }, () => {
  test('fails when a test fails, what follows the tests of a suite, or when a file cannot be loaded', async () => {
    const { code, stdout } = await run({
      a: PASSING,
      b: "import { test } from 'node:test'; test('fails', () => { throw new Error('as it shall'); });",
      c: `import { after, describe } from 'node:test'; ${PASSING}
        describe('suite', () => { test('passes', () => {}); after(() => { throw new Error('as it shall'); }); });`,
      d: "import './missing.ts';",
    });
    assert.equal(code, 1);
    assert.match(stdout, /^3 passed, 3 failed, 0 skipped$/m);
  });

  test('fails when a file ends before its tests do', async () => {
    const { code, stderr } = await run({
      a: PASSING,
      b: `${PASSING} test('leaves', () => process.exit(0));`,
    });
    assert.equal(code, 1);
    assert.match(stderr, /^test\/some\/b\.test\.ts did not report its end: tests of it may be missing\.$/m);
  });

  test('fails when no test ran, or a file is missing', async () => {
    const none = await run({ a: PASSING }, ['--name', 'of another name']);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /^No test ran\.$/m);
    const missing = await run({ a: PASSING }, ['test/some/a.test.ts', 'test/some/b.test.ts']);
    assert.equal(missing.code, 2);
    assert.equal(missing.stderr, 'test/some/b.test.ts: there is no such file.\n');
  });
});

/** Runs the tests of a repository that has only these files in its folder, without PostgreSQL. */
function run(tests: Readonly<Record<string, string>>, args: readonly string[] = []) {
  const folder = temporaryFolder();
  for (const path of ['test/run.ts', 'test/support', 'package.json']) {
    cpSync(pathTo(path), join(folder, path), { recursive: true });
  }
  for (const path of ['src', 'conformance', 'node_modules']) symlinkSync(pathTo(path), join(folder, path));
  mkdirSync(join(folder, 'test/some'));
  for (const [name, content] of Object.entries(tests)) {
    writeFileSync(join(folder, `test/some/${name}.test.ts`), content);
  }
  // The variables that this run sets for its files must not reach the run that is tested.
  const { NODE_TEST_CONTEXT: _, TEST_SEED: __, TEST_STORE: ___, ...env } = process.env;
  const options = { cwd: folder, env };
  const child = spawn(process.execPath, ['test/run.ts', '--store', 'SQLite', ...args], options);
  return endOf(child);
}
