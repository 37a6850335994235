// The mutants, without running them (`npm run test:mutation` does): each still fits the code that it changes, names a test
// that exists.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { applied } from '../mutation/mutant.ts';
import { MUTANTS } from '../mutation/mutants.ts';
import { pathTo } from '../support/repository.ts';

const read = (path: string) => readFileSync(pathTo(path), 'utf8');

test('every mutant changes the code, and has a unique name', () => {
  for (const mutant of MUTANTS) {
    const code = read(mutant.file);
    assert.notEqual(applied(mutant, code), code, mutant.name);
  }
  const names = MUTANTS.map(({ name }) => name);
  assert.deepEqual(names, [...new Set(names)]);
});

test('every mutant names a test that exists', () => {
  const files = [...new Set(MUTANTS.map(({ test }) => test.file))];
  const names = spawnSync(process.execPath, [pathTo('test/support/names.ts'), ...files], {
    encoding: 'utf8',
    env: { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }, // without the choice of one store, which would leave out the tests of the other
  });
  assert.equal(names.status, 0, names.stderr);
  const tests: Record<string, readonly string[]> = JSON.parse(names.stdout);
  const stale = MUTANTS.filter(({ test: { file, name } }) => {
    const pattern = new RegExp(name);
    return !tests[file]?.some((found) => pattern.test(found));
  });
  assert.deepEqual(
    stale.map(({ name, test }) => `${name}: ${test.file} has no test "${test.name}"`),
    [],
  );
});
