// The mutants, without running them (`npm run test:mutation` does): each still fits the code that it changes, names a test
// that exists. The message has the line of each that is wrong.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { applied, lineOf, MUTANTS } from '../mutation/mutant.ts';
import { pathTo } from '../support/repository.ts';

test('every mutant changes the code, has a unique name, and is sorted by file', () => {
  const names = MUTANTS.map(({ name }) => name);
  const wrong = MUTANTS.flatMap((mutant, index) => {
    try {
      const code = readFileSync(pathTo(mutant.file), 'utf8');
      assert.notEqual(applied(mutant, code), code, 'it changes nothing');
      assert.ok(new RegExp(mutant.test.name));
      assert.equal(names.indexOf(mutant.name), index, 'its name is taken');
      assert.ok(mutant.file >= (MUTANTS[index - 1]?.file ?? ''), 'it is not sorted by file');
      return [];
    } catch (error) {
      return [`${lineOf(index)}: ${(error as Error).message}`];
    }
  });
  assert.deepEqual(wrong, []);
});

test('every mutant names a test that exists', () => {
  const files = [...new Set(MUTANTS.map(({ test }) => test.file))].filter((file) => existsSync(pathTo(file)));
  const names = spawnSync(process.execPath, [pathTo('test/support/names.ts'), ...files], {
    encoding: 'utf8',
    env: { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }, // without the choice of one store, which would leave out the tests of the other
  });
  assert.equal(names.status, 0, names.stderr);
  const tests: Record<string, readonly string[]> = JSON.parse(names.stdout);
  const wrong = MUTANTS.flatMap(({ test: { file, name } }, index) => {
    const pattern = new RegExp(name);
    const exists = tests[file]?.some((found) => pattern.test(found));
    return exists ? [] : [`${lineOf(index)}: ${file} has no test "${name}"`];
  });
  assert.deepEqual(wrong, []);
});
