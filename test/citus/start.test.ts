// A service on Citus starts on the coordinator only, and books that another program inserts there leave their ids to them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CitusServer } from '../support/citus.ts';
import { execute } from '../support/postgres.ts';
import { POSTGRES, startTestService } from '../support/service.ts';

test('rule 27: a worker is refused', async () => {
  const [worker] = await CitusServer.workers();
  assert.ok(worker !== undefined);
  const sentence = /^Error: DB_URL: .* it is a worker of Citus: name its coordinator\.$/;
  await assert.rejects(startTestService(worker.url), sentence);
});

test('rule 12: books that another program inserted with their ids keep them, and new ones get others', async () => {
  const { client, dbUrl } = await startTestService(await POSTGRES.freshUrl());
  await execute(dbUrl, "insert into books (id, title) select n, 'theirs' from generate_series(1, 20) as n");
  assert.equal((await client.create({ title: 'ours' })).id, 21);
  const { data } = await client.request('POST', '/books', { body: [{}, {}] });
  assert.deepEqual(data, [22, 23]);
});
