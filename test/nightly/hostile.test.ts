// Many hostile clients at once, on services that have little memory or few file descriptors: they live on, and answer others. The
// room that they have is counted in test/api/room.test.ts.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { beHonest } from '../support/attackers.ts';
import { assertRefusal, Client, Connection } from '../support/client.ts';
import { compose } from '../support/raw-requests.ts';
import {
  ENVIRONMENT,
  type ServiceProcess,
  SQLITE,
  STORES,
  startCommand,
  startServiceProcess,
  startTestService,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** @param heap MiB. */
async function startWithHeap(context: TestContext, heap: number, dbUrl: string): Promise<ServiceProcess> {
  const service = await startServiceProcess(dbUrl, { NODE_OPTIONS: `--max-old-space-size=${heap}` });
  context.after(() => service.process.kill('SIGKILL'));
  return service;
}

function open(context: TestContext, target: ServiceProcess): Connection {
  const connection = new Connection(target);
  context.after(() => connection.socket.destroy());
  return connection;
}

for (const store of STORES) {
  test(`rule 22: requests for large books at the same moment take bounded memory, on ${store.name}`, async (context) => {
    // Room for the answers that rule 22 allows (128 MiB), not for those of a full batch.
    const service = await startWithHeap(context, 220, await store.freshUrl());
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
    await beHonest(service);
  });
}

test('rules 9 and 22: clients that request far more than they read neither use up the memory nor stop others', async (context) => {
  const service = await startWithHeap(context, 400, await SQLITE.freshUrl());
  const { client } = service;
  const { id } = await client.create({ title: 'x'.repeat(1_000_000) });
  const reads = compose('GET', `/book/${id}`, client).repeat(400);
  const readers = Array.from({ length: 140 }, () => open(context, service));
  for (const { socket } of readers) {
    socket.pause();
    socket.write(reads);
  }
  for (let count = 0; count < 40; count += 1) {
    open(context, service).socket.write('GET / HTTP/1.1\r\nHost:\r\n\r\n'.repeat(2700)); // more than one read brings
  }
  await waitUntil(
    () => service.log.some((line) => line.includes('"an answer was refused"')),
    () => service.process.exitCode ?? undefined,
  );
  await beHonest(service);
  await waitUntil(() => {
    // A client that does not read notices the end of its connection only when it writes.
    for (const { socket } of readers) if (socket.writable) socket.write('\r\n');
    return readers.some(({ socket }) => socket.destroyed);
  });
  await waitUntil(async () => (await client.request('GET', `/book/${id}`)).status === 200);
});

test('rule 22: nested values delay other clients no longer if the body also has a fraction', async (context) => {
  const { client, stop } = await startTestService(await SQLITE.freshUrl());
  context.after(stop);
  const values = '{},'.repeat(340_000);
  const least = { '1': Number.POSITIVE_INFINITY, '0.5': Number.POSITIVE_INFINITY };
  for (let round = 0; round < 8; round += 1) {
    for (const last of ['1', '0.5'] as const) {
      const began = performance.now();
      await client.create(`{"x":[${values}${last}]}`);
      least[last] = Math.min(least[last], performance.now() - began);
    }
  }
  assert.ok(least['0.5'] < 3 * least['1'], JSON.stringify(least));
});

test('rule 20: the service survives a lack of file descriptors, and answers once some are free', async (context) => {
  const environment = { ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
  const limited = await startCommand(environment, undefined, 'ulimit -n 64');
  context.after(() => limited.stop());
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
