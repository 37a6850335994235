// The longest heads and chunks take a time in proportion to their length. That nothing in the code could make it otherwise is in
// test/api/linear.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONG } from '../support/long-http.ts';

test('rule 22: a head of 1 MiB takes no more time for a byte than one of 64 KiB, and does not fail', () => {
  for (const { name, make, read } of LONG) {
    const [short, long] = [make(2 ** 16), make(2 ** 20)].map((bytes) => {
      const times = Array.from({ length: 10 }, () => {
        const began = performance.now();
        read(bytes);
        return performance.now() - began;
      });
      return Math.min(...times);
    }) as [number, number];
    // In proportion, sixteen times the bytes take sixteen times as long, else 256 times.
    assert.ok(long <= 64 * Math.max(short, 0.02), `${name}: ${short} ms, then ${long} ms`);
  }
});
