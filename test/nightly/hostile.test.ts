// Many hostile clients at once, on services that have little memory or few file descriptors: they live on, and answer others. The
// room that they have is counted in test/api/room.test.ts.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { parseBody } from '../../src/http/body.ts';
import { assertRefusal, Client, Connection } from '../support/client.ts';
import { compose } from '../support/raw-requests.ts';
import { ENVIRONMENT, SQLITE, STORES, startCommand, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

for (const store of STORES) {
  test(`rules 9 and 22: clients that request far more than they read take bounded memory, and stop no others, on ${store.name}`, async (context) => {
    // Room for the answers that rule 22 allows (128 MiB), not for those of a full batch.
    const env = { NODE_OPTIONS: '--max-old-space-size=220' };
    const service = await startServiceProcess(await store.freshUrl(), env);
    const { client } = service;
    const ids: number[] = [];
    while (ids.length < 40) ids.push((await client.create({ title: '€'.repeat(340_000) })).id);
    for (const [method, options] of [
      ['GET', {}],
      ['PUT', { body: { year: 1 } }],
      ['PUT', { body: { year: 1 }, headers: { 'if-match': '*' } }],
    ] as const) {
      const answers = await Promise.all(
        Array.from({ length: 500 }, (_, count) => {
          return client.request(method, `/book/${ids[count % ids.length]}`, options);
        }),
      );
      const statuses = new Set(answers.map(({ status }) => status));
      assert.deepEqual(statuses.difference(new Set([200, 503])), new Set());
      assert.ok(statuses.has(200));
    }

    const read = compose('GET', `/book/${ids[0]}`, client);
    const readers = Array.from({ length: 140 }, () => new Connection(service));
    context.after(() => {
      for (const { socket } of readers) socket.destroy();
    });
    for (const { socket } of readers) {
      socket.pause();
      socket.write(read.repeat(50)); // more than sockets hold
    }
    await waitUntil(
      () => service.log.some((line) => line.includes('"an answer was refused"')),
      () => service.process.exitCode ?? undefined,
    );
    await waitUntil(() => {
      // A client that does not read notices the end of its connection only when it writes.
      for (const { socket } of readers) if (socket.writable) socket.write('\r\n');
      return readers.some(({ socket }) => socket.destroyed);
    });
    await waitUntil(async () => (await client.request('GET', `/book/${ids[0]}`)).status === 200);
  });
}

test('rule 20: the service survives a lack of file descriptors, and answers once some are free', async (context) => {
  const environment = { ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
  const limited = await startCommand(environment, { setting: 'ulimit -n 64' });
  const client = await Client.logIn(limited);
  const list = compose('GET', '/books', client);
  const lister = new Connection(limited);
  context.after(() => lister.socket.destroy());
  await lister.send(list);
  await lister.answers(1);
  let refused = 0;
  const greedy = Array.from({ length: 200 }, () => connect(limited.port, '127.0.0.1'));
  for (const socket of greedy) {
    socket.on('error', () => {});
    socket.once('close', () => {
      refused += 1;
    });
  }
  await waitUntil(() => refused >= 10);
  await lister.send(list); // it needs a separate file descriptor
  const answer = (await lister.answers(2))[1];
  assertRefusal(answer, 503, 'Service unavailable');
  assert.equal(answer?.headers['retry-after'], '1');
  for (const socket of greedy) socket.destroy();
  await waitUntil(async () => {
    return (await client.request('GET', '/books').catch(() => undefined))?.status === 200;
  });
  await lister.send(list);
  assert.equal((await lister.answers(3))[2]?.status, 200);
  assert.equal(limited.process.exitCode, null);
});

test('rule 22: nested values delay other clients no longer if the body also has a fraction', () => {
  const least = ['1', '0.5'].map((last) => {
    const body = Buffer.from(`{"x":[${'{},'.repeat(120_000)}${last}]}`);
    const times = Array.from({ length: 8 }, () => {
      const began = performance.now();
      assert.ok(parseBody(body));
      return performance.now() - began;
    });
    return Math.min(...times);
  });
  assert.ok(Number(least[1]) < 3 * Number(least[0]), String(least));
});
