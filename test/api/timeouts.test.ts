// The time limits of the wire (rule 22), on services whose times are short. Those of the product
// are in test/project/times.test.ts. A slow machine only makes these tests
// slower: a request that was late because of it may also get 408, and what must not be cut has the times of the product.
// Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CHUNKED } from '../../conformance/raw-requests.ts';
import { Tokens } from '../../src/auth/tokens.ts';
import { readConfig } from '../../src/config.ts';
import { createLog } from '../../src/log/log.ts';
import { startService } from '../../src/service.ts';
import { TIMES, type Times } from '../../src/times.ts';
import {
  type Attack,
  beHonest,
  drippingReaders,
  silent,
  slow,
  slowBodies,
  slowHeaders,
  stalledReaders,
  stalledReadersOf,
} from '../support/attackers.ts';
import { fill } from '../support/books.ts';
import { Connection, parseAnswers, type Target } from '../support/client.ts';
import { assertDescribed, OPERATIONS } from '../support/description.ts';
import { compose, HOST } from '../support/raw-requests.ts';
import { ENVIRONMENT, SECRET, SQLITE, startTestService } from '../support/service.ts';
import { timesWith } from '../support/times.ts';

/** Milliseconds of a time limit, and between two looks at it. */
const LIMIT = 300;
const CHECK = 50;

/** Together they far exceed the buffers of two sockets. */
const LARGE_BOOKS = Array.from({ length: 12 }, (_, position) => {
  return { id: position + 1, title: 'x'.repeat(1_000_000), author: '', year: 0 };
});

describe('rule 22: the time limits of the wire', () => {
  test('a request without complete headers gets 408', async () => {
    await withHurriedService(timesWith({ http: { headers: LIMIT, check: CHECK } }), async (target) => {
      const attacks = [
        silent(target, 3),
        slowHeaders(target, 3),
        slow(target, 1, 'GET /bo'),
        slow(target, 1, compose('POST', '/token', { headers: 'X: y\r\n' }).slice(0, -2)),
      ];
      await assertCut(attacks, '408');
      await assertCut([slow(target, 1, `${compose('GET', '/nowhere')}GET /bo`)], '404 408', '408');
    });
  });

  test('an incomplete request gets 408 if it has no answer yet', async () => {
    const times = timesWith({ http: { headers: LIMIT, wholeRequest: LIMIT, check: CHECK } });
    await withHurriedService(times, async (target) => {
      const token = new Tokens(SECRET, TIMES.auth).issue();
      const announced = 'Content-Length: 1000\r\n';
      const tooLong = 'Content-Length: 9999999\r\n';
      const chunked = compose('POST', '/book', { token, headers: CHUNKED });
      const unanswered = [
        slowBodies(target, 3),
        slow(target, 1, compose('POST', '/token', { headers: announced })),
        slow(target, 1, chunked, '1\r\n \r\n'),
      ];
      await assertCut(unanswered, '408');
      // These are answered before their bodies have arrived: the connection closes without another answer.
      await assertCut([slow(target, 1, compose('POST', '/book', { headers: announced }), ' ')], '401', '408');
      const large = slow(target, 1, compose('POST', '/book', { token, headers: tooLong }), ' ');
      await assertCut([large], '413', '408');
    });
  });

  test('rule 31: the 408 to a slow request is described for every method and path', async () => {
    await withHurriedService(timesWith({ http: { headers: LIMIT, check: CHECK } }), async (target) => {
      await Promise.all(
        [...OPERATIONS, ['GET', '/nowhere'] as const].map(async ([method, path]) => {
          const attack = slow(target, 1, `${method} ${path} HTTP/1.1\r\n${HOST}`);
          await attack.ended;
          const [answer] = parseAnswers(attack.cuts[0]?.received ?? '');
          assert.equal(answer?.status, 408);
          assertDescribed({ method, path, requestHeaders: {}, requestBody: new Uint8Array(), ...answer });
        }),
      );
    });
  });

  test('readers that read nothing, or a few bytes a second, are cut', async () => {
    const dbUrl = await SQLITE.freshUrl();
    await fill(dbUrl, LARGE_BOOKS); // a service in a hurry might cut a client that does not read an answer of 1 MB at once
    const times = timesWith({ http: { reader: LIMIT, check: CHECK } });
    const service = await startTestService(dbUrl, {}, undefined, times);
    const { client } = service;
    const attacks: Attack[] = [];
    try {
      attacks.push(
        stalledReaders(service, 2, client.token),
        drippingReaders(service, 2, client.token),
        // Answers with a Content-Length, pipelined.
        stalledReadersOf(service, 1, compose('GET', '/book/1', client).repeat(LARGE_BOOKS.length)),
      );
      await beHonest(service);
      await Promise.all(attacks.map(({ ended }) => ended));
    } finally {
      for (const attack of attacks) attack.stop();
      await service.stop();
    }
  });

  test('a connection without another request is closed in time, as announced by Keep-Alive', async () => {
    await withHurriedService(timesWith({ http: { keepAlive: 1000, check: CHECK } }), async (target) => {
      const connection = new Connection(target);
      await connection.send(compose('GET', '/nowhere'));
      const [answer] = await connection.answers(1);
      assert.equal(answer?.headers['keep-alive'], 'timeout=1');
      assert.equal(await connection.closed, undefined);
      assert.equal(parseAnswers(connection.received).length, 1);
    });
  });
});

/** Does something to a service that is too hurried for a login, and stops it. */
async function withHurriedService(times: Times, work: (target: Target) => Promise<void>): Promise<void> {
  const config = readConfig({ ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl() }, () => new Uint8Array());
  const log = createLog('silent', process.stderr, times.log);
  const service = await startService(config, log, undefined, times);
  try {
    await work({ url: service.url, port: Number(new URL(service.url).port) });
  } finally {
    await service.close();
  }
}

/**
 * Waits until all connections are cut.
 * @param statuses what each of them may have been answered, one of these.
 */
async function assertCut(attacks: readonly Attack[], ...statuses: readonly string[]): Promise<void> {
  await Promise.all(attacks.map(({ ended }) => ended));
  for (const { received } of attacks.flatMap(({ cuts }) => cuts)) {
    const found = parseAnswers(received).map(({ status }) => status);
    assert.ok(statuses.includes(found.join(' ')), received);
  }
}
