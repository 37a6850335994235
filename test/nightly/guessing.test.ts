// Brute force against the password, in real seconds: an address with too many failed logins is delayed, others are not. A trusted
// proxy names the addresses. The log of the service has a line for each login whose answer is delayed, and one for each answer
// once it is ready; both have the id of the request.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { Client, Connection, request } from '../support/client.ts';
import { inTime } from '../support/in-time.ts';
import { type ServiceProcess, SQLITE, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const RIGHT = { username: 'librarian', password: 'correct horse' };
const WRONG = { username: 'librarian', password: 'wrong' };

/** Milliseconds by which a timer may be early. */
const EARLY = 100;

interface Line {
  readonly time: string;
  readonly msg: string;
  readonly reqId?: string;
  readonly status?: number;
  readonly address?: string;
}

describe('brute force', { concurrency: true }, () => {
  /** Services behind a trusted proxy, by their WORKERS. */
  const proxied = new Map<string, ServiceProcess>();
  /** A service behind a proxy that is not trusted. */
  let direct: ServiceProcess;

  before(async () => {
    for (const WORKERS of ['1', '2']) {
      const env = { WORKERS, TRUST_PROXY: '127.0.0.0/31, ::1' };
      proxied.set(WORKERS, await startServiceProcess(await SQLITE.freshUrl(), env));
    }
    direct = await startServiceProcess(await SQLITE.freshUrl(), { TRUST_PROXY: '192.0.2.1' });
  });
  after(() => Promise.all([...proxied.values(), direct].map((service) => service?.stop())));

  const single = () => proxied.get('1') as ServiceProcess;

  for (const workers of ['1', '2']) {
    test(`rule 29: after ten failures one a second is answered, and 429 while five wait, WORKERS=${workers}`, async () => {
      const service = proxied.get(workers) as ServiceProcess;
      const address = '198.51.100.1';
      await fail(service, address);

      const began = Date.now();
      const logins = [...Array(12).fill(WRONG), RIGHT, ...Array(12).fill(WRONG), RIGHT].map((body) => {
        return loginOf(body, address);
      });
      const connections = await Promise.all(
        Array.from({ length: 4 }, () => logInAll(service, logins)), // in the order of their requests
      );
      const seconds = (Date.now() - began) / 1000;

      const answers = connections.flatMap((all) =>
        all.filter((_, position) => logins[position]?.[2].body === WRONG),
      );
      const late = answers.filter(({ status }) => status === 401);
      for (const { status, message, data, headers } of answers) {
        assert.equal(data, null);
        if (status === 401) assert.equal(message, 'Invalid credentials');
        else {
          assert.deepEqual([status, message], [429, 'Too many attempts']);
          assert.ok(Number(headers.get('retry-after')) >= 1);
        }
      }
      assert.ok(late.length >= 5, `only ${late.length} were checked`);
      assert.ok(seconds >= late.length - EARLY / 1000, `${late.length} were answered in ${seconds} s`);
      // A sixth login is checked once the first one's second has passed; a slow machine may need that long for all.
      await waitUntil(() => putOff(service, address).length >= late.length);
      const judged = putOff(service, address);
      assert.equal(judged.length, late.length);
      const judging = (Date.parse(judged.at(-1)?.time ?? '') - began) / 1000;
      assert.ok(late.length <= 5 + judging, `${late.length} were checked in ${judging} s`);
      // While five wait, the right password is refused like a wrong one.
      const right = connections.flatMap((all) =>
        all.filter((_, position) => logins[position]?.[2].body === RIGHT),
      );
      assert.ok(right.some(({ status, message }) => status === 429 && message === 'Too many attempts'));
      assert.equal((await logIn(service, RIGHT, address)).status, 200);
    });
  }

  test('rule 29: a right password is never delayed: it is answered before wrong ones that were sent earlier', async () => {
    const service = single();
    const address = '198.51.100.2';
    await fail(service, address);
    // Within the second for which the first wrong one waits.
    await inTime(1000, async (startClock) => {
      const wrong = [1, 2, 3].map(() => loginOf(WRONG, address));
      const right = loginOf(RIGHT, address);
      const before = putOff(service, address).length;
      startClock();
      const answers = logInAll(service, wrong);
      await waitUntil(() => putOff(service, address).length === before + 3);
      assert.equal((await request(service, ...right)).status, 200);
      const ids: string[] = [...wrong, right].map(([, , { headers }]) => headers['x-request-id']);
      assert.deepEqual(
        (await answers).map(({ status }) => status),
        [401, 401, 401],
      );
      await waitUntil(() => ids.every((id) => answerOf(service, id) !== undefined));
      const ready = linesOf(service).filter(
        ({ status, reqId }) => status !== undefined && ids.includes(reqId ?? ''),
      );
      assert.deepEqual(
        ready.map(({ status }) => status),
        [200, 401, 401, 401],
      );
    });
  });

  test('rule 29: other addresses are not affected', async () => {
    const service = single();
    const attacker = '198.51.100.3';
    await fail(service, attacker);
    const attack = logInAll(
      service,
      Array.from({ length: 12 }, () => loginOf(WRONG, attacker)),
    );
    await waitUntil(() => putOff(service, attacker).length >= 5);
    const other = '198.51.100.4';
    assert.equal((await logIn(service, RIGHT, other)).status, 200);
    assert.ok(!(await isLate(service, other)));
    assert.ok((await attack).some(({ status }) => status === 429));
    assert.equal(putOff(service, other).length, 0);
  });

  test('rule 29: a client that disconnects before its delayed answer still uses up its turn', async () => {
    const service = single();
    const address = '198.51.100.5';
    await fail(service, address);
    const began = performance.now();
    for (let count = 0; count < 15; count += 1) {
      const login = loginOf(WRONG, address);
      const id = login[2].headers['x-request-id'];
      const connection = new Connection(service);
      await connection.send(new Client(service, '').bytes(...login));
      await waitUntil(() => linesOf(service).some(({ reqId }) => reqId === id)); // checked
      connection.socket.destroy();
    }
    const seconds = (performance.now() - began) / 1000;
    const judged = putOff(service, address).length;
    assert.ok(judged >= 5 && judged <= 5 + seconds, `${judged} were checked in ${seconds} s`);
  });

  test('rule 29: X-Forwarded-For is ignored unless TRUST_PROXY names its sender', async () => {
    for (let count = 0; count < 10; count += 1) {
      assert.equal((await logIn(direct, WRONG, `198.51.100.${count}`)).status, 401);
    }
    assert.ok(await isLate(direct, '198.51.100.99'));
  });

  test('rule 29: behind a trusted proxy, the address that the proxy saw counts', async () => {
    const service = single();
    // The address that a client claims is to the left of the one that the proxy adds.
    for (let count = 0; count < 10; count += 1) {
      assert.equal((await logIn(service, WRONG, `203.0.113.${count}, 198.51.100.6`)).status, 401);
    }
    assert.ok(await isLate(service, '203.0.113.99, 198.51.100.6'));
    assert.equal((await logIn(service, RIGHT, '198.51.100.6')).status, 200);
    assert.ok(!(await isLate(service, '198.51.100.7')));
  });

  test('rule 29: an X-Forwarded-For that is not an address counts as the proxy itself', async () => {
    const service = single();
    for (let count = 0; count < 10; count += 1) {
      assert.equal((await logIn(service, WRONG, `unknown-${count}`)).status, 401);
    }
    assert.ok(await isLate(service, 'unknown'));
  });

  test('rule 29: all of an IPv6 /64 is one address, however it is spelled', async () => {
    const service = single();
    const spellings = ['2001:db8::', '2001:0DB8:0:0:', '2001:db8:0:0000:0:0:0:'];
    for (let count = 0; count < 10; count += 1) {
      const spelling = spellings[count % 3] as string;
      const tail = spelling.startsWith('2001:0') ? `1:2:3:${count}` : `${count}`;
      assert.equal((await logIn(service, WRONG, spelling + tail)).status, 401);
    }
    assert.ok(await isLate(service, '2001:db8::ffff:1'));
    assert.ok(!(await isLate(service, '2001:db8:0:1::1')));
  });
});

/** The arguments of a request for a login from an address, with a unique id that the log can be searched for. */
function loginOf(body: object, address: string) {
  const headers = { 'x-forwarded-for': address, 'x-request-id': randomUUID() };
  return ['POST', '/token', { body, headers, token: null }] as const;
}

/** Sends all at once, each on a separate connection: on one connection, they would be answered in order. */
function logInAll(service: ServiceProcess, logins: readonly ReturnType<typeof loginOf>[]) {
  return Promise.all(logins.map((login) => request(service, ...login)));
}

function logIn(service: ServiceProcess, body: object, address: string) {
  return request(service, ...loginOf(body, address));
}

/** Uses up the ten failures that are answered at once. */
async function fail(service: ServiceProcess, address: string): Promise<void> {
  const logins = Array.from({ length: 10 }, () => loginOf(WRONG, address));
  for (const { status, message } of await logInAll(service, logins)) {
    assert.deepEqual([status, message], [401, 'Invalid credentials']);
  }
}

/** Whether the answer to one more failure is delayed; if it is, it must take at least a second. */
async function isLate(service: ServiceProcess, address: string): Promise<boolean> {
  const login = loginOf(WRONG, address);
  const id = login[2].headers['x-request-id'];
  const began = performance.now();
  assert.equal((await request(service, ...login)).status, 401);
  const milliseconds = performance.now() - began;
  await waitUntil(() => answerOf(service, id) !== undefined);
  const isPutOff = linesOf(service).some(({ reqId, address: noted }) => reqId === id && noted !== undefined);
  if (isPutOff) assert.ok(milliseconds >= 1000 - EARLY, `delayed by ${milliseconds} ms`);
  return isPutOff;
}

/** The log's lines about logins from an address whose answers were delayed. */
function putOff(service: ServiceProcess, wanted: string): Line[] {
  return linesOf(service).filter(
    ({ msg, address }) => address === wanted && msg.includes('the answer is delayed'),
  );
}

/** The log's line about an answer, once it is ready. */
function answerOf(service: ServiceProcess, id: string): Line | undefined {
  return linesOf(service).find(({ reqId, status }) => reqId === id && status !== undefined);
}

function linesOf({ log }: ServiceProcess): Line[] {
  return log.map((line) => JSON.parse(line));
}
