// Brute force against the password (rule 29): when a login is answered, in virtual time, and which address it counts for. That
// wrong logins wait for seconds is in the conformance kit.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { LoginGuard } from '../../src/auth/login-guard.ts';
import { TIMES } from '../../src/times.ts';
import { assertRefusal, Connection, exchange } from '../support/client.ts';
import { compose } from '../support/raw-requests.ts';
import { type RunningService, SQLITE, startTestService } from '../support/service.ts';
import { timesWith } from '../support/times.ts';
import { VirtualTime } from '../support/virtual-time.ts';
import { waitUntil } from '../support/wait.ts';

describe('the turn of a login', () => {
  const time = new VirtualTime();
  const atOnce = { kind: 'answer', delay: 0 };
  const late = (delay: number) => ({ kind: 'answer', delay });

  test('rule 29: after ten failures wrong ones are answered one a second, right ones at once; while five wait, all get 429', () =>
    time.during(async () => {
      const guard = new LoginGuard(TIMES.auth);
      const logIn = (succeeded: boolean) => guard.takeTurn('192.0.2.1', succeeded);
      for (let count = 0; count < 10; count += 1) assert.deepEqual(logIn(false), atOnce);
      for (const delay of [1000, 2000, 3000]) assert.deepEqual(logIn(false), late(delay));
      assert.deepEqual(logIn(true), atOnce);
      for (const delay of [4000, 5000]) assert.deepEqual(logIn(false), late(delay));
      for (const succeeded of [false, true])
        assert.deepEqual(logIn(succeeded), { kind: 'refuse', retryAfter: 1 });
      assert.deepEqual(guard.takeTurn('192.0.2.2', false), atOnce);
      time.now += 1000;
      assert.deepEqual(logIn(true), atOnce);
      assert.deepEqual(logIn(false), late(5000));
      assert.deepEqual(guard.outcomes, { succeeded: 2, failed: 11, delayed: 6, refused: 2 });
    }));

  test('rule 29: each failure is forgotten after 15 minutes', () =>
    time.during(async () => {
      const guard = new LoginGuard(TIMES.auth);
      const began = time.now;
      const failAt = (minutes: number) => {
        time.now = began + minutes * 60_000;
        return guard.takeTurn('192.0.2.1', false);
      };
      for (let minute = 0; minute < 10; minute += 1) assert.deepEqual(failAt(minute), atOnce);
      assert.deepEqual(failAt(15.1), atOnce); // the one of minute 0 is forgotten
      assert.deepEqual(failAt(15.2), late(1000)); // those of minutes 1 to 9 and 15.1 are not
      assert.deepEqual(failAt(40), atOnce);
    }));

  test('rule 29: addresses with failed logins are forgotten once there are too many, the oldest first', () =>
    time.during(async () => {
      const guard = new LoginGuard(TIMES.auth);
      const fails = (address: string) => guard.takeTurn(address, false);
      const another = (count: number) => `10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`;
      for (let count = 0; count < 11; count += 1) fails('192.0.2.1');
      for (let count = 0; count < 9000; count += 1) fails(another(count));
      assert.deepEqual(fails('192.0.2.1'), late(2000));
      for (let count = 0; count < 40_000; count += 1) fails(another(count));
      assert.deepEqual(fails('192.0.2.1'), atOnce);
    }));
});

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
