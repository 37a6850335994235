// The mutants, without running them (`npm run test:mutation` does): each still fits the code that it changes, and names
// tests that exist.

import assert from 'node:assert/strict';
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

test('every mutant names a test file', () => {
  for (const { name, test } of MUTANTS) {
    assert.match(read(test.file), /\btest\(/, name);
    assert.doesNotThrow(() => new RegExp(test.name), name);
  }
});
