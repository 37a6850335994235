// The test runner, on small tests that it writes: when a run passes, when it fails, its seed and its order.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { pathTo } from '../support/repository.ts';
import { temporaryFolder } from '../support/service.ts';

const PASSING = "import { test } from 'node:test'; test('passes', () => {});";
const FAILING = "import { test } from 'node:test'; test('fails', () => { throw new Error('as it shall'); });";

describe('a run of tests', { concurrency: 2 }, () => {
  test('fails when a test fails', async () => {
    const { code, stdout } = await run({ 'test/some/a.test.ts': PASSING, 'test/some/b.test.ts': FAILING });
    assert.notEqual(code, 0, stdout);
    assert.match(stdout, /^1 passed, 1 failed, 0 skipped$/m);
  });

  test('fails when what follows the tests of a suite fails', async () => {
    const cleaning = `import { after, describe, test } from 'node:test';
      describe('suite', () => { test('passes', () => {}); after(() => { throw new Error('as it shall'); }); });`;
    const { code, stdout } = await run({ 'test/some/a.test.ts': cleaning });
    assert.notEqual(code, 0, stdout);
    assert.match(stdout, /^1 passed, 1 failed, 0 skipped$/m);
  });

  test('fails when a file cannot be loaded', async () => {
    const broken = "import './missing.ts';";
    const { code, stdout } = await run({ 'test/some/a.test.ts': PASSING, 'test/some/b.test.ts': broken });
    assert.notEqual(code, 0, stdout);
  });

  test('fails when a file ends before its tests do', async () => {
    const leaving = `${PASSING} test('leaves', () => process.exit(0));`;
    const { code, stderr } = await run({ 'test/some/a.test.ts': PASSING, 'test/some/b.test.ts': leaving });
    assert.notEqual(code, 0);
    assert.match(stderr, /^test\/some\/b\.test\.ts did not report its end: tests of it may be missing\.$/m);
  });

  test('fails when no test ran', async () => {
    const { code, stderr } = await run({ 'test/some/a.test.ts': PASSING }, ['--name', 'of another name']);
    assert.notEqual(code, 0);
    assert.match(stderr, /^No test ran\.$/m);
  });

  test('fails when a file is missing, and runs no other', async () => {
    const files = ['test/some/a.test.ts', 'test/some/b.test.ts'];
    const { code, stdout, stderr } = await run({ 'test/some/a.test.ts': PASSING }, files);
    assert.notEqual(code, 0);
    assert.doesNotMatch(stdout, /passes/);
    assert.match(stderr, /test\/some\/b\.test\.ts: there is no such file/);
  });

  test('has a seed that determines the random choices of its tests', async () => {
    const drawing = `
      import { appendFileSync } from 'node:fs';
      import { test } from 'node:test';
      import { random } from '../support/random.ts';
      test('draws', () => appendFileSync('drawn', [random(), random()].join() + '\\n'));`;
    const drawn: (string | undefined)[] = [];
    for (const seed of ['7', '8']) {
      const { folder, stdout } = await run({ 'test/some/a.test.ts': drawing }, [
        '--seed',
        seed,
        '--repeat',
        '2',
      ]);
      drawn.push(...readFileSync(join(folder, 'drawn'), 'utf8').trim().split('\n'));
      assert.match(stdout, new RegExp(`^Seed ${seed}, \\d+ s$`, 'm'));
    }
    const [seven, eight, again, nine] = drawn; // each repetition has the next seed
    assert.equal(drawn.length, 4);
    assert.equal(eight, again);
    assert.equal(new Set([seven, eight, nine]).size, 3);
  });

  test('passes when every test does, and begins with the files that take long', async () => {
    const noting = (name: string) => `// Notes its name.
      import { appendFileSync } from 'node:fs';
      import { test } from 'node:test';
      test('notes', () => appendFileSync('order', '${name} '));`;
    const tests = {
      'test/some/a.test.ts': noting('a'),
      'test/some/b.test.ts': noting('b').replace('\n', '\n// It takes long, and begins first.\n'),
      'test/some/c.test.ts': noting('c'),
    };
    const { code, folder, stdout } = await run(tests, ['--at-once', '1']);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^3 passed, 0 failed, 0 skipped$/m);
    assert.equal(readFileSync(join(folder, 'order'), 'utf8'), 'b a c ');
  });
});

/** Runs the tests of a repository that has only these, without PostgreSQL. */
async function run(
  tests: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<{ code: number; folder: string; stdout: string; stderr: string }> {
  const folder = temporaryFolder();
  for (const path of ['test/run.ts', 'test/support', 'package.json']) {
    cpSync(pathTo(path), join(folder, path), { recursive: true });
  }
  for (const path of ['src', 'conformance', 'node_modules']) symlinkSync(pathTo(path), join(folder, path));
  for (const [path, content] of Object.entries(tests)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  // The variables that this run sets for its files must not reach the run that is tested.
  const { NODE_TEST_CONTEXT: _, TEST_SEED: __, TEST_STORE: ___, ...env } = process.env;
  return new Promise((resolve) => {
    const options = { cwd: folder, env };
    execFile(
      process.execPath,
      ['test/run.ts', '--store', 'SQLite', ...args],
      options,
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), folder, stdout, stderr });
      },
    );
  });
}
