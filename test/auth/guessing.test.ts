// The memory of failed logins, in virtual time. What a client sees of rule 29 takes seconds: test/nightly.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoginGuard } from '../../src/auth/login-guard.ts';
import { TIMES } from '../../src/times.ts';
import { VirtualTime } from '../support/virtual-time.ts';

const time = new VirtualTime();

test('rule 29: each failure is forgotten after 15 minutes', () =>
  time.during(async () => {
    const guard = new LoginGuard(TIMES.auth);
    const began = time.now;
    const failAt = (minutes: number) => {
      time.now = began + minutes * 60_000;
      return guard.takeTurn('192.0.2.1', false);
    };
    const atOnce = { kind: 'answer', delay: 0 };
    const late = { kind: 'answer', delay: 1000 };
    for (let minute = 0; minute < 10; minute += 1) assert.deepEqual(failAt(minute), atOnce);
    assert.deepEqual(failAt(15.1), atOnce); // the one of minute 0 is forgotten
    assert.deepEqual(failAt(15.2), late); // those of minutes 1 to 9 and 15.1 are not
    assert.deepEqual(failAt(40), atOnce);
  }));

test('rule 29: addresses with failed logins are forgotten once there are too many, the oldest first', () =>
  time.during(async () => {
    const guard = new LoginGuard(TIMES.auth);
    const fails = (address: string) => guard.takeTurn(address, false);
    const another = (count: number) => `10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`;
    for (let count = 0; count < 11; count += 1) fails('192.0.2.1');
    for (let count = 0; count < 9000; count += 1) fails(another(count));
    assert.deepEqual(fails('192.0.2.1'), { kind: 'answer', delay: 2000 });
    for (let count = 0; count < 40_000; count += 1) fails(another(count));
    assert.deepEqual(fails('192.0.2.1'), { kind: 'answer', delay: 0 });
  }));
