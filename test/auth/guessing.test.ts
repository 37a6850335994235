// Brute force against the password (rule 29): when a login is answered, in virtual time, and which address it counts for. That
// wrong logins wait for seconds is in the conformance kit.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { LoginGuard, type LoginTurn } from '../../src/auth/login-guard.ts';
import { TIMES } from '../../src/times.ts';
import { assertRefusal, Connection, exchange } from '../support/client.ts';
import { compose } from '../support/raw-requests.ts';
import { type RunningService, SQLITE, startTestService } from '../support/service.ts';
import { timesWith } from '../support/times.ts';
import { VirtualTime } from '../support/virtual-time.ts';
import { waitUntil } from '../support/wait.ts';

describe('the turn of a login', () => {
  const time = new VirtualTime();
  const atOnce = { delay: 0 };
  const late = (delay: number) => ({ delay });
  const refused = (retryAfter: number) => ({ retryAfter });

  test('rule 29: after ten failures wrong ones are answered one a second, right ones at once; while five wait, all get 429', () =>
    time.during(async () => {
      const guard = new LoginGuard(TIMES.auth);
      const logIn = (succeeded: boolean) => guard.takeTurn('192.0.2.1', succeeded);
      for (let count = 0; count < 10; count += 1) assert.deepEqual(logIn(false), atOnce);
      for (const delay of [1000, 2000, 3000]) assert.deepEqual(logIn(false), late(delay));
      assert.deepEqual(logIn(true), atOnce);
      for (const delay of [4000, 5000]) assert.deepEqual(logIn(false), late(delay));
      for (const succeeded of [false, true]) assert.deepEqual(logIn(succeeded), refused(1));
      assert.deepEqual(guard.takeTurn('192.0.2.2', false), atOnce);
      time.now += 1000;
      assert.deepEqual(logIn(true), atOnce);
      assert.deepEqual(logIn(false), late(5000));
      assert.deepEqual(guard.outcomes, { succeeded: 2, failed: 11, delayed: 6, refused: 2 });
    }));

  test('rule 29: failures are counted for 15 minutes from the first one', () =>
    time.during(async () => {
      const guard = new LoginGuard(TIMES.auth);
      const began = time.now;
      const failAt = (minutes: number) => {
        time.now = began + minutes * 60_000;
        return guard.takeTurn('192.0.2.1', false);
      };
      for (let minute = 0; minute < 10; minute += 1) assert.deepEqual(failAt(minute), atOnce);
      assert.deepEqual(failAt(14.9), late(1000));
      for (let count = 0; count < 10; count += 1) assert.deepEqual(failAt(15.1), atOnce);
      assert.deepEqual(failAt(30), late(1000));
      assert.deepEqual(failAt(30.2), atOnce);
    }));

  for (const [size, free, addressOf] of [
    ['/64', 10, (count: number) => `2001:db8:1:2::${count}`],
    ['/56', 50, (count: number) => `2001:db8:1:2${(count % 256).toString(16).padStart(2, '0')}::1`],
    ['/48', 250, (count: number) => `2001:db8:1:${(count % 65_536).toString(16)}::1`],
  ] as const) {
    test(`rule 29: the addresses of an IPv6 ${size} have ${free} failures together, then one answer a second`, () =>
      time.during(async () => {
        const guard = new LoginGuard(TIMES.auth);
        const turns = Array.from({ length: free + 7 }, (_, count) => {
          return guard.takeTurn(addressOf(count * (size === '/48' ? 257 : 1)), false);
        });
        for (const turn of turns.slice(0, free)) assert.deepEqual(turn, atOnce);
        assert.deepEqual(turns.slice(free, -2), [1000, 2000, 3000, 4000, 5000].map(late));
        assert.deepEqual(turns.slice(-2), [refused(1), refused(1)]);
      }));
  }

  test('rule 29: in one network the addresses that are delayed wait together, others do not', () =>
    time.during(async () => {
      const guard = new LoginGuard(TIMES.auth);
      const fail = (address: string) => guard.takeTurn(address, false);
      for (const address of ['2001:db8::1', '2001:db8:0:1::1', '192.0.2.1', '192.0.2.2'])
        for (let count = 0; count < 10; count += 1) assert.deepEqual(fail(address), atOnce);
      assert.deepEqual(fail('2001:db8::1'), late(1000));
      assert.deepEqual(fail('2001:db8:0:1::1'), late(2000));
      assert.deepEqual(fail('2001:db8:0:2::1'), atOnce);
      for (const address of ['192.0.2.1', '192.0.2.2']) assert.deepEqual(fail(address), late(1000));
    }));

  test('rule 29: of 60,000 guesses from the networks of one /48 in 15 minutes 250 are free, and they use up no more of what all new addresses have', () =>
    time.during(async () => {
      const guard = new LoginGuard(TIMES.auth);
      const began = time.now;
      for (let guess = 0; guess < 60_000; guess += 1) {
        time.now = began + guess * 15;
        guard.takeTurn(`2001:db8:1:${guess.toString(16)}::1`, false);
        if (guess % 6000 > 0) continue;
        // People at a new address, of whom one mistypes.
        const people = `192.0.2.${guess / 6000}`;
        assert.deepEqual(guard.takeTurn(people, false), atOnce);
        for (let person = 0; person < 5; person += 1) assert.deepEqual(guard.takeTurn(people, true), atOnce);
      }
      assert.equal(guard.outcomes.failed, 250 + 10);
      assert.ok(guard.outcomes.delayed <= 900 + 5, `${guard.outcomes.delayed} delayed`);
      for (const turn of failEach(guard, 740, 10)) assert.deepEqual(turn, atOnce);
      for (let count = 0; count < 3; count += 1)
        assert.deepEqual(guard.takeTurn('198.51.100.1', false), atOnce);
      assert.deepEqual(guard.takeTurn('198.51.100.1', false), late(1000));
    }));

  test('rule 29: all new addresses have 1,000 failures, and 10,000 while they are among the first three of a network; one that has logged in counts alone, and is never forgotten for others', () =>
    time.during(async () => {
      const guard = new LoginGuard(TIMES.auth);
      const fail = (address: string) => guard.takeTurn(address, false);
      const logIn = (address: string) => guard.takeTurn(address, true);
      assert.deepEqual(logIn('192.0.2.1'), atOnce);
      for (let count = 0; count < 10; count += 1) assert.deepEqual(fail('192.0.2.1'), atOnce);
      assert.deepEqual(fail('192.0.2.1'), late(1000));
      for (let count = 0; count < 3; count += 1) assert.deepEqual(fail('192.0.2.2'), atOnce);
      for (const turn of failEach(guard, 997, 10)) assert.deepEqual(turn, atOnce);

      for (const delay of [1000, 2000, 3000, 4000, 5000]) assert.deepEqual(fail('192.0.2.2'), late(delay));
      assert.deepEqual(fail('192.0.2.2'), refused(1));
      assert.deepEqual(logIn('192.0.2.2'), refused(1));
      assert.deepEqual(logIn('192.0.2.3'), atOnce);
      for (let count = 0; count < 2; count += 1) assert.deepEqual(fail('192.0.2.4'), atOnce);
      assert.deepEqual(logIn('192.0.2.4'), atOnce);

      for (const turn of failEach(guard, 10_000 - 1002, 1)) assert.deepEqual(turn, atOnce);
      assert.deepEqual(logIn('192.0.2.5'), refused(1));
      for (const turn of failEach(guard, 40_000, 1)) assert.deepEqual(turn, refused(1));
      assert.deepEqual(logIn('192.0.2.1'), atOnce);
      assert.deepEqual(fail('192.0.2.1'), late(2000));
      assert.deepEqual(fail('192.0.2.3'), atOnce);
      time.now += 15 * 60_000 + 1;
      assert.deepEqual(fail('192.0.2.1'), atOnce);
      assert.deepEqual(fail('192.0.2.5'), atOnce);
    }));
});

test('rule 29: each of the last 10,000 addresses that have logged in counts alone', () =>
  new VirtualTime().during(async () => {
    const guard = new LoginGuard(TIMES.auth);
    const address = '2001:db8:1:200::1';
    guard.takeTurn(address, true);
    for (let other = 1; other < 10_000; other += 1) guard.takeTurn(`10.0.${other >> 8}.${other & 255}`, true);
    for (let count = 1; count <= 50; count += 1)
      guard.takeTurn(`2001:db8:1:2${count.toString(16).padStart(2, '0')}::1`, false);
    assert.deepEqual(guard.takeTurn(address, false), { delay: 0 });
    guard.takeTurn('192.0.2.1', true);
    assert.deepEqual(guard.takeTurn(address, false), { delay: 1000 });
  }));

test('rule 29: a right password is answered before wrong ones that were sent earlier, unless five of them wait', async () => {
  const lines: string[] = [];
  const log = { write: (text: string) => lines.push(text) };
  const times = timesWith({ auth: { failurePace: 3_600_000 } });
  const service = await startTestService(await SQLITE.freshUrl(), { LOG_LEVEL: 'warn' }, log, times);
  const login = (password: string) => {
    return compose('POST', '/token', { body: `{"username":"librarian","password":"${password}"}` });
  };
  await exchange(service, login('wrong').repeat(10), 10);
  const waiting: Connection[] = [];
  const wait = async () => {
    waiting.push(new Connection(service));
    await waiting.at(-1)?.send(login('wrong'));
    await waitUntil(() => delayed(lines) === waiting.length);
  };
  while (waiting.length < 4) await wait();
  assert.equal((await exchange(service, login('correct horse')))[0]?.status, 200);
  await wait();
  for (const password of ['wrong', 'correct horse']) {
    const [answer] = await exchange(service, login(password));
    assertRefusal(answer, 429, 'Too many attempts');
    assert.ok(Number(answer?.headers['retry-after']) > 1);
  }
  for (const { socket } of waiting) socket.resetAndDestroy();
  await service.stop();
});

describe('the address of a login', () => {
  const lines: string[] = [];
  const services = new Map<string, RunningService>();
  before(async () => {
    const log = { write: (text: string) => lines.push(text) };
    const times = timesWith({ auth: { failurePace: 1 } });
    for (const TRUST_PROXY of ['192.0.2.1', '127.0.0.0/31, ::1']) {
      const env = { LOG_LEVEL: 'warn', TRUST_PROXY };
      services.set(TRUST_PROXY, await startTestService(await SQLITE.freshUrl(), env, log, times));
    }
  });
  after(() => Promise.all([...services.values()].map((service) => service.stop())));

  // Ten failures count for one address. Then another login is delayed, or is not.
  const [other, trusted] = ['192.0.2.1', '127.0.0.0/31, ::1'];
  for (const [title, proxy, failing, late, soon] of [
    [
      'X-Forwarded-For is ignored unless TRUST_PROXY names its sender',
      other,
      '198.51.100.#',
      '198.51.100.99',
    ],
    [
      'behind a trusted proxy, the address that the proxy saw counts, not the one that a client claims',
      ...[trusted, '203.0.113.#, 198.51.100.6', '203.0.113.99, 198.51.100.6', '198.51.100.7'],
    ],
    [
      'an X-Forwarded-For that is not an address counts as the proxy itself',
      ...[trusted, 'unknown-#', 'unknown', '127.0.0.2'],
    ],
    [
      'all of an IPv6 /64 is one address, however it is spelled',
      ...[trusted, '2001:0DB8:0:0:1:2:3:#', '2001:db8::ffff:1', '2001:db8:0:1::1'],
    ],
  ] as [title: string, proxy: string, failing: string, late: string, soon?: string][]) {
    test(`rule 29: ${title}`, async () => {
      const fail = async (address: string) => {
        const headers = `X-Forwarded-For: ${address}\r\n`;
        const [answer] = await exchange(
          services.get(proxy) as RunningService,
          compose('POST', '/token', { headers, body: '{"username":"librarian","password":"wrong"}' }),
        );
        assert.equal(answer?.status, 401);
        return delayed(lines.splice(0));
      };
      for (let count = 0; count < 10; count += 1)
        assert.equal(await fail(failing.replace('#', String(count))), 0);
      if (soon !== undefined) assert.equal(await fail(soon), 0);
      assert.equal(await fail(late), 1);
    });
  }
});

/** How many of these lines of the log are about answers that are delayed. */
function delayed(lines: readonly string[]): number {
  return lines.join('').split('too many failed logins: the answer is delayed').length - 1;
}

/** Failures of addresses that no other call has, with so many each. */
function failEach(guard: LoginGuard, failures: number, each: number): LoginTurn[] {
  return Array.from({ length: failures }, (_, count) => {
    const number = Math.floor(count / each);
    return guard.takeTurn(`10.${each + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`, false);
  });
}
