// What it costs to refuse a token.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { Tokens } from '../../src/auth/tokens.ts';
import { TIMES } from '../../src/times.ts';
import { SECRET } from '../support/service.ts';

const encode = (text: string) => Buffer.from(text).toString('base64url');

/** A token of any claims, JSON or not, with the right signature. */
function signed(claims: string): string {
  const text = `${encode('{"alg":"HS256"}')}.${encode(claims)}`;
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`;
}

test('A4, rules 18 and 22: the cost of refusing a token grows no faster than its length', () => {
  for (const [name, tokenOf] of Object.entries<(length: number) => string>({
    dots: (length) => '.'.repeat(length),
    letters: (length) => 'x'.repeat(length),
    'letters between dots': (length) => `e30.${'x'.repeat(length)}.${'x'.repeat(43)}`,
    'letters of signature': (length) => signed('{"exp":9e9}') + 'A'.repeat(length),
    'deep claims': (length) => signed('['.repeat(length)),
    'deep claims, whole': (length) => signed(`{"exp":${'['.repeat(length / 2)}${']'.repeat(length / 2)}}`),
  })) {
    const tokens = new Tokens(SECRET, TIMES.auth);
    /** Processor time in microseconds, the least of several. */
    const costOf = (length: number) => {
      const costs = [0, 2, 4, 6, 8, 10, 12].map((more) => {
        const token = tokenOf(length + more); // each is different, since a refused one is kept
        const before = process.cpuUsage();
        assert.equal(tokens.isValid(token), false, name);
        const { user, system } = process.cpuUsage(before);
        return user + system;
      });
      return Math.min(...costs);
    };
    const ratio = costOf(800_000) / costOf(50_000);
    assert.ok(ratio < 64, `${name}: 16 times the length costs ${ratio} times as much`); // its square would be 256
  }
});
