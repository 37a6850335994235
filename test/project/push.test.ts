// Tests that run before a push depend on states alone: none measures time or memory, sleeps, repeats an attempt, or is left out.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import { pathTo } from '../support/repository.ts';

/** Of other shelves, and in virtual time. */
const OTHERS = ['browser', 'citus', 'nightly', 'orders', 'packages', 'release'];

/** What such a test must not have, and what it has instead. */
const REFUSED: readonly (readonly [code: RegExp, instead: string])[] = [
  [/performance\.now|process\.hrtime|Date\.now\(\)(?! [/+])/, 'virtual time, as in test/orders'],
  [
    /\bset(?:Timeout|Interval)\(|setTimeout as|[iI]nTime\b|unlessTooSlow|Stopwatch/,
    'an event that the test holds; waitUntil',
  ],
  [/memoryUsage|residentMemory|\brss\b/, 'a count of what takes memory'],
  [/\b(?:test|describe)\.(?:skip|todo|only)\b|\bcontext\.skip\(|\bskip:/, 'a test that runs everywhere'],
];

test('a test before a push neither measures nor sleeps, and is never left out', () => {
  const files = globSync('test/*/*.test.ts', { cwd: pathTo('') }).filter((file) => {
    return !OTHERS.includes(basename(pathTo(`${file}/..`))) && basename(file) !== 'push.test.ts';
  });
  assert.ok(files.includes('test/contract/contract.test.ts'));
  const found = files.flatMap((file) => {
    const lines = readFileSync(pathTo(file), 'utf8').split('\n');
    return lines.flatMap((line, index) => {
      const refused = REFUSED.filter(([code]) => code.test(line) && !line.trimStart().startsWith('//'));
      return refused.map(([, instead]) => `${file}:${index + 1}: ${line.trim()}: instead, ${instead}`);
    });
  });
  assert.deepEqual(found, []);
});
