// Rules B1 to B3 and I1 to I4 with variables, several processes, restarts and a store that is read, on every store. The
// other cases are in conformance/once.ts.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { RawAnswer } from '../../conformance/answers.ts';
import { expectLongest, raceWithOneKey } from '../../conformance/once.ts';
import type { Service } from '../../conformance/service.ts';
import { TOO_LARGE } from '../../conformance/words.ts';
import { bare, Connection } from '../support/client.ts';
import { type RunningService, SQLITE, STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { verifiedAt } from '../support/verified.ts';
import { waitUntil } from '../support/wait.ts';

/** Seconds. */
const DAY = 24 * 3600;

for (const store of STORES) {
  describe(`many at once, and once on ${store.name}`, () => {
    let service: RunningService;
    let verified: Service;

    before(async () => {
      service = await startTestService(await store.freshUrl(), { BODY_LIMIT: '4096' });
      verified = verifiedAt(service);
      await verified.logIn();
    });
    after(async () => {
      verified?.close();
      await service?.stop();
    });

    test('B1: BODY_LIMIT counts for each element, BULK_LIMIT for the array', async () => {
      await expectLongest(verified, 4096);

      const small = await startTestService(service.dbUrl, { BULK_LIMIT: '1000' });
      try {
        const title = 'x'.repeat(1000 - '[{"title":""}]'.length);
        assert.equal((await small.client.request('POST', '/books', { body: [{ title }] })).status, 201);
        const larger = { body: [{ title: `${title}x` }] };
        assert.deepEqual(bare(await small.client.request('POST', '/books', larger)), TOO_LARGE);
        const chunked = new Connection(small);
        const headers = { 'transfer-encoding': 'chunked' };
        await chunked.send(small.client.bytes('POST', '/books', { headers }));
        const piece = 'x'.repeat(600);
        await chunked.send(`258\r\n${piece}\r\n258\r\n${piece}\r\n0\r\n\r\n`);
        const [answer] = await chunked.answers(1);
        assert.ok([400, 413].includes(answer?.status ?? 0));
        chunked.socket.destroy();
      } finally {
        await small.stop();
      }
    });

    test('B1: white space counts for no book, wherever it is', async () => {
      const space = ' '.repeat(3 * 1024 * 1024);
      for (const body of [`[${space}{"title":"a"}]`, `${space}[{"title":"a"}${space},{}]`]) {
        assert.equal((await service.client.request('POST', '/books', { body })).status, 201);
      }
    });

    test('I3: of many requests with one key at the same moment, in two processes, one is carried out', async () => {
      const other = await startTestService(service.dbUrl);
      const elsewhere = verifiedAt(other);
      try {
        await elsewhere.logIn();
        await raceWithOneKey([verified, elsewhere]);
      } finally {
        elsewhere.close();
        await other.stop();
      }
    });

    test('I4: a key is known for 24 hours, also after a restart; then it is new, and removed in passing', async (context) => {
      const dbUrl = await store.freshUrl();
      let current: RunningService | undefined;
      const restart = async () => {
        await current?.stop();
        current = undefined;
        current = await startTestService(dbUrl);
      };
      context.after(() => current?.stop());
      const post = async (title: string, key: string) => {
        const answer = await current?.client.request('POST', '/book', {
          body: { title },
          headers: { 'idempotency-key': key },
        });
        const isReplay = answer?.headers.get('idempotent-replayed') === 'true';
        return { status: answer?.status, id: answer?.data?.id, isReplay };
      };
      await restart();
      const { id } = await post('a', 'known');
      await post('a', 'old');
      await age(dbUrl, 'known', DAY - 60);
      await age(dbUrl, 'old', DAY + 120);

      await restart();
      await post('', 'new'); // the first request with a key removes old ones
      await untilKeys(dbUrl, ['known', 'new']);
      const renewed = await post('b', 'old');
      assert.deepEqual([renewed.status, renewed.isReplay], [201, false]);
      assert.deepEqual(await post('b', 'old'), { ...renewed, isReplay: true });
      assert.deepEqual(await post('a', 'known'), { status: 201, id, isReplay: true });
      assert.equal((await post('b', 'known')).status, 422);
    });
  });
}

describe('many at once', () => {
  test('rule 22: bodies with many books share 32 MiB; one that finds no room gets 503', async () => {
    const mebibyte = 1024 * 1024;
    const crowded = await startTestService(await SQLITE.freshUrl(), { BULK_LIMIT: String(32 * mebibyte) });
    const book = `{"title":"${'x'.repeat(mebibyte - 100)}"}`;
    // Not recorded: a slow machine takes hundreds of them.
    const probe = async (body: string) => {
      const connection = new Connection(crowded);
      await connection.send(crowded.client.bytes('POST', '/books', { body }));
      const [answer] = await connection.answers(1);
      connection.socket.destroy();
      return answer;
    };
    try {
      let refused: RawAnswer | undefined;
      while (refused === undefined) {
        const slow = new Connection(crowded);
        let isCut = false;
        const closed = slow.closed.then(() => {
          isCut = true;
        });
        const headers = { 'content-length': String(32 * mebibyte) };
        await slow.send(crowded.client.bytes('POST', '/books', { headers }));
        await slow.send('[');
        for (let sent = 0; sent < 31; sent += 1) await slow.send(`${book},`);
        // If the other one was faster, this one is refused, and the next attempt may succeed.
        while (refused === undefined && !isCut && slow.received === '') {
          const answer = await probe(`[${book},${book}]`);
          if (answer?.status === 503) refused = answer;
        }
        if (refused !== undefined) {
          assert.equal((await probe('[{}]'))?.status, 201);
          assert.equal((await crowded.client.request('POST', '/book', { body: {} })).status, 201);
        }
        slow.socket.destroy();
        await closed;
      }
      assert.equal(refused.body, '{"status":503,"message":"Service unavailable","data":null}');
      assert.equal(refused.headers['retry-after'], '1');
      await waitUntil(async () => (await probe(`[${book},${book}]`))?.status === 201);
    } finally {
      await crowded.stop();
    }
  });

  test('rule 22: books without a text also share the 32 MiB', async () => {
    const crowded = await startTestService(await SQLITE.freshUrl());
    const body = `[${'{},'.repeat(9990)}`; // 30 kB, and the rest never comes
    const connections: Connection[] = [];
    try {
      while (!connections.some(({ received }) => received.startsWith('HTTP/1.1 503'))) {
        assert.ok(connections.length < 200);
        const connection = new Connection(crowded);
        connections.push(connection);
        const headers = { 'content-length': String(2 * body.length) };
        await connection.send(crowded.client.bytes('POST', '/books', { headers }));
        await connection.send(body);
      }
      for (const { socket } of connections) socket.destroy();
      await waitUntil(
        async () => (await crowded.client.request('POST', '/books', { body: [{}] })).status === 201,
      );
    } finally {
      for (const { socket } of connections) socket.destroy();
      await crowded.stop();
    }
  });
});

/** Makes a key as old as that, in seconds. */
async function age(dbUrl: string, key: string, seconds: number): Promise<void> {
  const isSqlite = dbUrl.startsWith('sqlite:');
  const time = isSqlite ? `made_at - ${seconds * 1000}` : `made_at - interval '${seconds} seconds'`;
  await executeOn(dbUrl, `update book_requests set made_at = ${time} where key = '${key}'`);
}

async function untilKeys(dbUrl: string, keys: string[]): Promise<void> {
  await waitUntil(async () => {
    const rows = await executeOn(dbUrl, "select key from book_requests where key <> 'the time' order by key");
    return isDeepStrictEqual(
      rows.map(({ key }) => key),
      keys,
    );
  });
}
