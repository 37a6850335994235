// The longest heads and chunks take a time in proportion to their length, in each way in which an expression or a loop might take
// more. test/api/linear.test.ts counts the steps of the loops.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readHead } from '../../src/http/head.ts';
import { LONG } from '../support/long-http.ts';

test('rule 22: a head or chunks of 1 MiB take no more time for a byte than of 64 KiB, and do not fail', () => {
  for (const { name, make, read } of LONG) {
    const [short, long] = [make(2 ** 16), make(2 ** 20)];
    // In proportion, sixteen times the bytes take sixteen times as long, else 256 times.
    expectAtMost(
      64,
      () => read(long),
      () => read(short),
      name,
    );
  }
});

test('rule 22: a head of 1 MiB whose lines come one by one takes little more time than one that comes at once', () => {
  const beginning = Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(2 ** 20)}\r\n`);
  const head = Buffer.concat([beginning, Buffer.from(`${'a:\r\n'.repeat(900)}\r\n`)]);
  const readBy = (step: number) => {
    let [end, seen] = [beginning.length, 0];
    while (readHead(head.subarray(0, end), 2 ** 22, seen) === undefined) [end, seen] = [end + step, end];
    assert.ok(end >= head.length);
  };
  expectAtMost(
    10,
    () => readBy('a:\r\n'.length),
    () => readBy(head.length),
    'lines',
  );
});

/** @throws unless one takes at most so many times as long as the other: at best, and not if the machine is busy. */
function expectAtMost(factor: number, one: () => void, other: () => void, what: string): void {
  let [longer, shorter] = [millisecondsOf(one), millisecondsOf(other)];
  for (let round = 0; round < 50 && longer > factor * Math.max(shorter, 0.02); round += 1) {
    longer = Math.min(longer, millisecondsOf(one));
    shorter = Math.min(shorter, millisecondsOf(other));
  }
  assert.ok(longer <= factor * Math.max(shorter, 0.02), `${what}: ${longer} ms and ${shorter} ms`);
}

function millisecondsOf(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}
