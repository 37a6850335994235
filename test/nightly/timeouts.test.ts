// The timeouts of the wire (rule 22), as long as those of the product, all side by side: test/api/timeouts.test.ts has shorter
// ones. Titles name the rules of docs/contract.md.
// No timeout has an upper bound in milliseconds, since a slow machine may exceed any number: each must expire before
// a longer one that started later in the same service.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CHUNKED } from '../../conformance/raw-requests.ts';
import {
  type Attack,
  beHonest,
  silent,
  slow,
  slowBodies,
  slowHeaders,
  stalledReaders,
} from '../support/attackers.ts';
import { assertRefusal, Connection, parseAnswers } from '../support/client.ts';
import { inTime } from '../support/in-time.ts';
import { operationsOf } from '../support/operations.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { compose } from '../support/raw-requests.ts';
import {
  type ServiceProcess,
  SQLITE,
  STORES,
  startServiceProcess,
  startTestService,
} from '../support/service.ts';
import { executeOn, holdWrites } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

// Milliseconds.
const HEADERS = 15_000;
const WHOLE_REQUEST = 30_000;
const IDLE = 72_000;

/** That a request may wait for the store; then it may be refused with 503. */
const PATIENCE = 2000;

/** How many books of 1 MB there are. Together they far exceed the buffers of two sockets. */
const LARGE_BOOKS = 12;

const TIMEOUT: Refusal = [408, 'Request timeout'];

type Refusal = readonly [status: number, message: string];

/** Milliseconds of a step in the age of keys, and as many steps as tell one process from two. */
const STEP = 300;
const STEPS = 5;

describe('the timeouts of the wire', () => {
  let service: ServiceProcess;
  const attacks: Attack[] = [];
  /** The work of each test, to be started once the services are running. */
  const works: (() => void)[] = [];

  /** Starts the work of a test before the first test: all of them wait, and none should wait for another. */
  function begunFirst(work: () => Promise<void>): () => Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    promise.catch(() => {}); // reported by its test
    works.push(() => resolve(work()));
    return () => promise;
  }

  before(async () => {
    service = await startServiceProcess(await SQLITE.freshUrl());
    const body = JSON.stringify({ title: 'x'.repeat(1_000_000) });
    for (let made = 0; made < LARGE_BOOKS; made += 1) await service.client.create(body);
    for (const begin of works) begin();
  });
  after(async () => {
    for (const attack of attacks) attack.stop();
    await service.stop();
  });

  /**
   * Starts attacks that the service cuts after a time. Fails unless honest requests are answered, and the attacks take
   * effect, while all of their connections are open.
   */
  async function beginBesideHonest(
    target: ServiceProcess,
    make: () => Attack[],
    isEffective: () => Promise<boolean> = async () => true,
  ): Promise<Attack[]> {
    let begun: Attack[] = [];
    await inTime(PATIENCE, async (startClock) => {
      for (const attack of begun) attack.stop();
      startClock();
      begun = make().map(begin);
      await Promise.all(begun.map((attack) => attack.begun));
      const isOver = () => begun.some(({ cuts }) => cuts.length > 0);
      await beHonest(target);
      await waitUntil(async () => isOver() || (await isEffective()));
      assert.ok(!isOver());
    });
    return begun;
  }

  function begin(attack: Attack): Attack {
    attacks.push(attack);
    return attack;
  }

  /**
   * Sends three slow bodies, each one when the previous one has been cut: three times 30 s.
   * @returns a promise that resolves when all have been cut.
   */
  async function threeSlowBodies(target: ServiceProcess): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await begin(slowBodies(target, 1)).ended;
  }

  /** Waits until all attacks are cut. Fails if one lasted less than `limit` milliseconds, or if `longer` ends first. */
  async function assertCutBefore(
    longer: Promise<void>,
    limit: number,
    cut: readonly Attack[],
    name: string,
  ): Promise<void> {
    const all = Promise.all(cut.map(({ ended }) => ended)).then(() => 'all are cut');
    assert.equal(await Promise.race([all, longer.then(() => `${name} came first`)]), 'all are cut');
    for (const { milliseconds } of cut.flatMap(({ cuts }) => cuts)) {
      assert.ok(milliseconds >= limit, `cut after ${milliseconds} ms`);
    }
  }

  test(
    'rules 20 and 22: a request without complete headers after 15 s gets 408, and delays no one else',
    begunFirst(async () => {
      const attack = () => [
        silent(service, 1000),
        slowHeaders(service, 50),
        slow(service, 1, 'GET /bo'),
        slow(service, 1, compose('POST', '/token', { headers: 'X: y\r\n' }).slice(0, -2)),
        slow(service, 1, `${compose('GET', '/nowhere')}GET /bo`),
      ];
      // The timeout starts when the service accepts a connection, which may wait a while in the system's queue.
      const areAccepted = async () => {
        const metrics = await scrape(operationsOf(service).url);
        return sumOf(metrics, 'book_catalogue_http_connections') >= 1053;
      };
      const cut = await beginBesideHonest(service, attack, areAccepted);
      await assertCutBefore(begin(slowBodies(service, 1)).ended, HEADERS, cut, 'a slow body');
      const afterAnother = cut.at(-1);
      for (const attack of cut) {
        const answers: Refusal[] = attack === afterAnother ? [[404, 'Not found'], TIMEOUT] : [TIMEOUT];
        for (const { received } of attack.cuts) assertAnswers(received, answers);
      }
      await waitUntil(() => service.log.some((line) => line.includes('"status":408')));
    }),
  );

  test(
    'rules 20 and 22: an incomplete request gets 408 after 30 s if it has no answer yet, and delays no one else',
    begunFirst(async () => {
      const { token } = service.client;
      const announced = 'Content-Length: 1000\r\n';
      const tooLong = 'Content-Length: 9999999\r\n';
      const cut = await beginBesideHonest(service, () => [
        slowBodies(service, 50),
        slow(service, 1, compose('POST', '/token', { headers: announced })),
        slow(service, 1, compose('POST', '/book', { token, headers: CHUNKED }), '1\r\n \r\n'),
        // These are answered before their bodies have arrived: the connection closes without another answer.
        slow(service, 1, compose('POST', '/book', { headers: announced }), ' '),
        slow(service, 1, compose('POST', '/book', { token, headers: tooLong }), ' '),
      ]);
      const reader = begin(stalledReaders(service, 1, token));
      await assertCutBefore(reader.ended, WHOLE_REQUEST, cut, 'a reader');
      const early: Refusal[] = [
        [401, 'Authorization token required'],
        [413, 'Payload too large'],
      ];
      for (const [position, { cuts }] of cut.entries()) {
        for (const { received } of cuts) assertAnswers(received, [early[position - 3] ?? TIMEOUT]);
      }
    }),
  );

  test(
    'rule 22: the time of a request does not count while earlier ones of its connection are answered',
    begunFirst(async () => {
      const own = await startServiceProcess(await SQLITE.freshUrl());
      const release = await holdWrites(own.dbUrl);
      const { token } = own.client;
      const change = compose('POST', '/book', { token, body: '{}' });
      const writes = 8; // each waits for the store for 4.5 s
      const begin = async (request: string, sent: number) => {
        const connection = new Connection(own);
        await connection.send(change.repeat(writes) + request.slice(0, sent));
        await connection.answers(writes);
        return connection;
      };
      try {
        const [head, body, endless] = await Promise.all([
          begin(compose('GET', '/book/abc', { token }), 10),
          begin(change, change.length - 1),
          begin(change, 10),
        ]);
        await head.send(compose('GET', '/book/abc', { token }).slice(10));
        assertRefusal((await head.answers(writes + 1)).at(-1), 404, 'Book not found');
        await release();
        await body.send(change.slice(-1));
        assert.equal((await body.answers(writes + 1)).at(-1)?.status, 201);
        const answers = await endless.answersUntilClosed(writes + 2);
        assert.equal(answers.length, writes + 1);
        assertRefusal(answers.at(-1), ...TIMEOUT);
      } finally {
        await own.stop();
      }
    }),
  );

  test(
    'rule 22: a connection without another request is closed after 72 s, as announced by Keep-Alive',
    begunFirst(async () => {
      const began = performance.now();
      const connection = new Connection(service);
      await connection.send(compose('GET', '/nowhere'));
      const [answer] = await connection.answers(1);
      assert.equal(answer?.headers['keep-alive'], 'timeout=72');
      const longer = threeSlowBodies(service);

      const closed = connection.closed.then((failure) => failure ?? 'in order');
      assert.equal(
        await Promise.race([closed, longer.then(() => 'three slow bodies came first')]),
        'in order',
      );
      const milliseconds = performance.now() - began;
      assert.ok(milliseconds >= IDLE, `closed after ${milliseconds} ms`);
      assertAnswers(connection.received, [[404, 'Not found']]);
    }),
  );
});

for (const store of STORES) {
  test(`I4: keys that two processes use age by a step in the time of a step, on ${store.name}`, async () => {
    const dbUrl = await store.freshUrl();
    const times = timesWith({ keys: { step: STEP } });
    const services = [
      await startTestService(dbUrl, {}, undefined, times),
      await startTestService(dbUrl, {}, undefined, times),
    ] as const;
    try {
      const began = performance.now();
      let sent = 0;
      const time = async () => {
        sent += 1;
        const headers = { 'idempotency-key': `age-${sent}` };
        const { client } = services[sent % 2 === 0 ? 0 : 1];
        assert.equal((await client.request('POST', '/book', { body: {}, headers })).status, 201);
        const rows = await executeOn(dbUrl, "select made_at from book_requests where key = 'the time'");
        return Number(rows[0]?.made_at);
      };
      const first = await time();
      await waitUntil(async () => {
        const aged = (await time()) - first;
        const passed = performance.now() - began;
        assert.ok(aged <= passed, `${aged} ms in ${passed} ms`);
        return aged > 0 && passed > STEPS * STEP;
      });
    } finally {
      for (const service of services) await service.stop();
    }
  });
}

function assertAnswers(received: string, refusals: readonly Refusal[]): void {
  const answers = parseAnswers(received);
  assert.equal(answers.length, refusals.length, received);
  refusals.forEach(([status, message], position) => {
    assertRefusal(answers[position], status, message);
  });
}
