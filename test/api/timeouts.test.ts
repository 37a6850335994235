// The time limits of the wire (rule 22), waited for in real time, all side by side. Titles name the rules of
// docs/contract.md. No limit is measured from above, since a slow machine may exceed any number of milliseconds:
// each must be reached before a longer one that began to run later in the same service.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertRefusal } from '../support/answers.ts';
import {
  type Attack,
  drippingReaders,
  silent,
  slow,
  slowBodies,
  slowHeaders,
  stalledReaders,
  stalledReadersOf,
} from '../support/attackers.ts';
import { Connection, parseAnswers } from '../support/client.ts';
import { assertDescribed, dereferenced, describedBy, OPERATIONS } from '../support/description.ts';
import { beHonest } from '../support/honest.ts';
import { inTime } from '../support/in-time.ts';
import { openLists, operationsOf } from '../support/operations.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { CHUNKED, compose, HOST } from '../support/raw-requests.ts';
import { type ServiceProcess, STORES, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

// Milliseconds.
const HEADERS = 15_000;
const WHOLE_REQUEST = 30_000;
const READER = 60_000;
const IDLE = 72_000;

/** Books of a megabyte. Together they are far more than the buffers of two sockets hold. */
const LARGE_BOOKS = 12;

const TIMEOUT: Refusal = [408, 'Request timeout'];

type Refusal = readonly [status: number, message: string];

describe('the time limits of the wire', () => {
  const services = new Map<string, ServiceProcess>();
  let service: ServiceProcess;
  const attacks: Attack[] = [];
  /** What the tests do and wait for, to be begun when the services are there. */
  const works: (() => void)[] = [];

  /** Has the work of a test begin before the first test, since all of them wait and none should wait for another. */
  function begunFirst(work: () => Promise<void>): () => Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    promise.catch(() => {}); // its test fails
    works.push(() => resolve(work()));
    return () => promise;
  }

  before(async () => {
    await Promise.all(
      STORES.map(async (store) => {
        const started = await startServiceProcess(await store.freshUrl());
        services.set(store.name, started);
        const body = JSON.stringify({ title: 'x'.repeat(1_000_000) });
        for (let made = 0; made < LARGE_BOOKS; made += 1) await started.client.create(body);
      }),
    );
    service = services.values().next().value as ServiceProcess;
    for (const begin of works) begin();
  });
  after(async () => {
    for (const attack of attacks) attack.stop();
    for (const started of services.values()) await started.stop();
  });

  /**
   * Begins attacks that the service cuts after so many milliseconds. Fails unless honest requests are answered, and
   * the attacks have the effect that they should have, while all of their connections are open.
   */
  async function beginBesideHonest(
    target: ServiceProcess,
    limit: number,
    make: () => Attack[],
    isEffective: () => Promise<boolean> = async () => true,
  ): Promise<Attack[]> {
    let begun: Attack[] = [];
    await inTime(limit, async (startClock) => {
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
   * Three slow bodies, each begun when the one before was cut: three times 30 s.
   * @returns resolves when all were cut.
   */
  async function threeSlowBodies(target: ServiceProcess): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await begin(slowBodies(target, 1)).ended;
  }

  /** Waits until all of them are cut, each after its time, and `longer` is not over by then. */
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
    'rules 20 and 22: a request whose headers are not there within 15 s is 408; nobody waits for it',
    begunFirst(async () => {
      const attack = () => [
        silent(service, 1000),
        slowHeaders(service, 50),
        slow(service, 1, 'GET /bo'),
        slow(service, 1, compose('POST', '/token', { headers: 'X: y\r\n' }).slice(0, -2)),
        slow(service, 1, `${compose('GET', '/nowhere')}GET /bo`),
      ];
      // The limit runs once the service has accepted a connection, which may wait a while in the system's queue.
      const areAccepted = async () => {
        const metrics = await scrape(operationsOf(service).url);
        return sumOf(metrics, 'book_catalogue_http_connections') >= 1053;
      };
      const cut = await beginBesideHonest(service, HEADERS, attack, areAccepted);
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
    'rule 31: the answer to a request that is too slow is described, whatever was asked for',
    begunFirst(async () => {
      const published = await describedBy(operationsOf(service).url);
      const api = dereferenced(published, published);
      await Promise.all(
        [...OPERATIONS, ['GET', '/nowhere'] as const].map(async ([method, path]) => {
          const attack = begin(slow(service, 1, `${method} ${path} HTTP/1.1\r\n${HOST}`));
          await attack.ended;
          const [answer] = parseAnswers(attack.cuts[0]?.received ?? '');
          assert.equal(answer?.status, 408);
          assertDescribed(api, { method, path, requestHeaders: {}, requestBody: '', ...answer });
        }),
      );
    }),
  );

  test(
    'rules 20 and 22: a request that is not whole within 30 s is 408, if it has no answer yet; nobody waits for it',
    begunFirst(async () => {
      const { token } = service.client;
      const announced = 'Content-Length: 1000\r\n';
      const tooLong = 'Content-Length: 9999999\r\n';
      const cut = await beginBesideHonest(service, WHOLE_REQUEST, () => [
        slowBodies(service, 50),
        slow(service, 1, compose('POST', '/token', { headers: announced })),
        slow(service, 1, compose('POST', '/book', { token, headers: CHUNKED }), '1\r\n \r\n'),
        // These are answered before their bodies are there: the connection ends without another word.
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

  for (const { name } of STORES) {
    test(
      `rule 22: readers that take nothing, or a few bytes a second, are cut after 60 s; nobody waits for them, on ${name}`,
      begunFirst(async () => {
        const target = services.get(name) as ServiceProcess;
        const { client } = target;
        const begun = () => [
          stalledReaders(target, 4, client.token),
          drippingReaders(target, 4, client.token),
          // Answers of a known length, one behind the other.
          stalledReadersOf(target, 1, compose('GET', '/book/1', client).repeat(LARGE_BOOKS)),
        ];
        // On PostgreSQL there is room for eight lists, and these take all of it until they are cut.
        const isFull = async () => name === 'SQLite' || (await openLists(target)) === 8;
        const cut = await beginBesideHonest(target, READER, begun, isFull);
        await assertCutBefore(
          threeSlowBodies(target),
          READER,
          cut,
          'three slow bodies, one after the other,',
        );
        await waitUntil(async () => (await openLists(target)) === 0);
      }),
    );
  }

  test(
    'rule 22: a connection without another request is closed after 72 s, and says so before',
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

function assertAnswers(received: string, refusals: readonly Refusal[]): void {
  const answers = parseAnswers(received);
  assert.equal(answers.length, refusals.length, received);
  refusals.forEach(([status, message], position) => {
    assertRefusal(answers[position], status, message);
  });
}
