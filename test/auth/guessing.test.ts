// What somebody who guesses the password meets. Addresses are real ones, since all of 127.0.0.0/8 is this
// machine, or those that a trusted proxy names. The order of answers tells what waits; no time is measured
// but the least one that a late answer takes.

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { describe, test } from 'node:test';
import { LoginGuard } from '../../src/auth/login-guard.ts';
import { Connection, readEnvelope, type Target } from '../support/client.ts';
import { SQLITE, startServiceProcess, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const RIGHT = 'correct horse';

interface LoginAnswer {
  readonly status: number;
  readonly message: string;
  readonly retryAfter: number;
  /** When it came, in milliseconds. */
  readonly at: number;
}

/** Logs in from an address of this machine, on a connection of its own. */
function logIn(
  { port }: Target,
  password: string,
  { address = '127.0.0.1', forwarded }: { address?: string; forwarded?: string } = {},
): Promise<LoginAnswer> {
  return new Promise((resolve, reject) => {
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
    const options = { port, host: '127.0.0.1', localAddress: address, path: '/token', agent: false };
    const request = httpRequest({ ...options, method: 'POST', headers }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text) => {
        body += text;
      });
      response.on('end', () => {
        const { status, message, data } = readEnvelope(body, Number(response.statusCode));
        if (status !== 200) assert.equal(data, null);
        resolve({
          status,
          message,
          retryAfter: Number(response.headers['retry-after']),
          at: performance.now(),
        });
      });
    });
    request.on('error', reject);
    request.end(JSON.stringify({ username: 'librarian', password }));
  });
}

type From = Parameters<typeof logIn>[2];

/** The ten failures that are free. */
async function fail(service: Target, from?: From): Promise<void> {
  for (let count = 0; count < 10; count += 1) {
    const { status, message } = await logIn(service, `guess ${count}`, from);
    assert.deepEqual([status, message], [401, 'Invalid credentials']);
  }
}

/** Whether one more failure from there is kept waiting. */
async function isLate(service: Target, from: From): Promise<boolean> {
  const began = performance.now();
  const { status, at } = await logIn(service, 'one more guess', from);
  assert.equal(status, 401);
  return at - began >= 900; // less than the second it is, since timers may be a little early
}

describe('guessing', { concurrency: 4, timeout: 60_000 }, () => {
  for (const workers of ['1', '2']) {
    test(`rule 29: after ten failures one is answered a second, beyond five 429, WORKERS=${workers}`, async (context) => {
      const service = await startServiceProcess(await SQLITE.freshUrl(), { WORKERS: workers });
      context.after(() => service.stop());
      await fail(service);

      const answers: LoginAnswer[] = [];
      let flooding = true;
      const flood = Array.from({ length: 8 }, async () => {
        while (flooding) answers.push(await logIn(service, 'a guess too many'));
      });
      await waitUntil(() => answers.some(({ status }) => status === 429));
      // While too many wait, a right password is not told from a wrong one.
      await waitUntil(async () => (await logIn(service, RIGHT)).status === 429);
      assert.equal((await logIn(service, RIGHT, { address: '127.0.0.2' })).status, 200);
      await waitUntil(() => answers.filter(({ status }) => status === 401).length >= 3);
      flooding = false;
      await Promise.all(flood);

      const late = answers.filter(({ status }) => status === 401).map(({ at }) => at);
      late.sort((one, other) => one - other);
      const pauses = late.slice(1).map((at, position) => at - Number(late[position]));
      const seconds = pauses.reduce((sum, pause) => sum + pause, 0) / 1000;
      assert.ok(seconds > pauses.length - 0.5, `${late.length} guesses were answered in ${seconds} s`);
      for (const { status, message, retryAfter } of answers) {
        if (status === 401) assert.equal(message, 'Invalid credentials');
        else assert.deepEqual([status, message, retryAfter >= 1], [429, 'Too many attempts', true]);
      }
      assert.equal((await logIn(service, RIGHT)).status, 200); // never late, as soon as it is judged
    });
  }

  test('rule 29: whoever hangs up before a late answer has had its turn all the same', async (context) => {
    const service = await startServiceProcess(await SQLITE.freshUrl());
    context.after(() => service.stop());
    await fail(service);
    const body = '{"username":"librarian","password":"guess"}';
    const judged = () =>
      late(service.log) + service.log.filter((line) => line.includes('"status":429')).length;
    const began = performance.now();
    for (let guess = 1; guess <= 30; guess += 1) {
      const connection = new Connection(service);
      await connection.send(
        `POST /token HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      await waitUntil(() => judged() === guess);
      connection.socket.destroy();
    }
    const seconds = (performance.now() - began) / 1000;
    assert.ok(late(service.log) <= 5 + seconds + 1, `${late(service.log)} were judged in ${seconds} s`);
  });

  test('rule 29: X-Forwarded-For helps no guesser, unless TRUST_PROXY names who sent it', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(() => service.stop());
    for (let count = 0; count < 10; count += 1) {
      assert.equal((await logIn(service, 'guess', { forwarded: `198.51.100.${count}` })).status, 401);
    }
    assert.ok(await isLate(service, { forwarded: '198.51.100.99' }));
  });

  test('rule 29: behind a trusted proxy it is the address that the proxy saw that counts', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl(), { TRUST_PROXY: '127.0.0.0/31, ::1' });
    context.after(() => service.stop());
    // What the guesser claims stands to the left of what the proxy adds.
    for (let count = 0; count < 10; count += 1) {
      const forwarded = `203.0.113.${count}, 198.51.100.1`;
      assert.equal((await logIn(service, 'guess', { forwarded })).status, 401);
    }
    assert.ok(await isLate(service, { forwarded: '203.0.113.99, 198.51.100.1' }));
    assert.equal((await logIn(service, RIGHT, { forwarded: '198.51.100.1' })).status, 200);

    // Another address, by the same proxy and by one that is not trusted.
    assert.ok(!(await isLate(service, { forwarded: '198.51.100.2' })));
    await fail(service, { address: '127.0.0.2', forwarded: '198.51.100.3' });
    assert.ok(await isLate(service, { address: '127.0.0.2', forwarded: '198.51.100.4' }));

    // What is no address at all is taken for the proxy itself.
    for (let count = 0; count < 10; count += 1) {
      assert.equal((await logIn(service, 'guess', { forwarded: `unknown-${count}` })).status, 401);
    }
    assert.ok(await isLate(service, { forwarded: 'unknown' }));
  });

  test('rule 29: all of an IPv6 /64 is one address, however it is spelled', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl(), { TRUST_PROXY: '127.0.0.1' });
    context.after(() => service.stop());
    const spellings = ['2001:db8::', '2001:0DB8:0:0:', '2001:db8:0:0000:0:0:0:'];
    for (let count = 0; count < 10; count += 1) {
      const spelling = spellings[count % 3] as string;
      const tail = spelling.startsWith('2001:0') ? `1:2:3:${count}` : `${count}`;
      assert.equal((await logIn(service, 'guess', { forwarded: spelling + tail })).status, 401);
    }
    assert.ok(await isLate(service, { forwarded: '2001:db8::ffff:1' }));
    assert.ok(!(await isLate(service, { forwarded: '2001:db8:0:1::1' })));
  });
});

test('rule 29: failures are forgotten after 15 minutes, each by itself', () => {
  let now = 0;
  const guard = new LoginGuard(() => now);
  const failAt = (minutes: number) => {
    now = minutes * 60_000;
    return guard.takeTurn('192.0.2.1', false);
  };
  const atOnce = { kind: 'answer', delay: 0 };
  const late = { kind: 'answer', delay: 1000 };
  for (let minute = 0; minute < 10; minute += 1) assert.deepEqual(failAt(minute), atOnce);
  assert.deepEqual(failAt(15.1), atOnce); // the one of minute 0 is forgotten
  assert.deepEqual(failAt(15.2), late); // those of minutes 1 to 9 and 15.1 are not
  assert.deepEqual(failAt(40), atOnce);
});

test('rule 29: logins that fail from a million addresses are forgotten, the oldest first', () => {
  const guard = new LoginGuard(() => 0);
  const fails = (address: string) => guard.takeTurn(address, false);
  const millionth = (count: number) => `10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`;
  for (let count = 0; count < 11; count += 1) fails('192.0.2.1');
  for (let count = 0; count < 9000; count += 1) fails(millionth(count));
  assert.deepEqual(fails('192.0.2.1'), { kind: 'answer', delay: 2000 });
  for (let count = 0; count < 1_000_000; count += 1) fails(millionth(count));
  assert.deepEqual(fails('192.0.2.1'), { kind: 'answer', delay: 0 });
});

/** How many logins had their answer put off. */
function late(log: readonly string[]): number {
  return log.filter((line) => line.includes('the answer comes late')).length;
}
