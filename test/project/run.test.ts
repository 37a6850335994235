// A run of the tests itself: one that fails must fail the run, whatever the libraries that it uses do at its end.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/service.ts';

test('a test that fails ends the run with a code other than 0, one that passes with 0', () => {
  const setup = fileURLToPath(new URL('support/global-setup.ts', import.meta.url));
  const support = new URL('support/postgres.ts', import.meta.url).href;
  const { NODE_TEST_CONTEXT: _, ...env } = process.env; // a run of its own
  for (const [passes, code] of [
    [true, 0],
    [false, 1],
  ] as const) {
    const file = join(temporaryFolder(), 'some.test.ts');
    writeFileSync(
      file,
      `import { ok } from 'node:assert';
       import { test } from 'node:test';
       import '${support}';
       test('some', () => ok(${passes}));`,
    );
    const { status, stdout } = spawnSync(
      process.execPath,
      ['--test', `--test-global-setup=${setup}`, '--test-reporter=tap', file],
      { env, encoding: 'utf8' },
    );
    assert.equal(status, code, stdout);
    assert.match(stdout, passes ? /^ok 1/m : /^not ok 1/m);
  }
});
