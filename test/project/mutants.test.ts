// The mutants, without running them (`npm run test:mutation` does): each still fits the code that it changes, names a test
// that exists, and is run in one of ten landings.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { applied } from '../mutation/mutant.ts';
import { MUTANTS, tenthOfMutants } from '../mutation/mutants.ts';
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
    env: { PATH: process.env.PATH }, // without the choice of one store, which would leave out the tests of the other
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

test('every mutant is in one of ten tenths, which have about as many of each test file', () => {
  const tenths = Array.from({ length: 10 }, (_, number) => tenthOfMutants(2030 + number));
  assert.deepEqual(new Set(tenths.flat()), new Set(MUTANTS));
  assert.equal(tenths.flat().length, MUTANTS.length);
  for (const file of new Set(MUTANTS.map(({ test }) => test.file))) {
    const numbers = tenths.map((tenth) => tenth.filter(({ test }) => test.file === file).length);
    assert.ok(Math.max(...numbers) - Math.min(...numbers) <= 1, `${file}: ${numbers}`);
  }
});
