// The statements for PostgreSQL with Citus, on a server without it: a table says that Citus distributes the books. So this shows
// what they do, not that Citus accepts them; docs/engines.md says which were tried on Citus.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { distributed } from '../contract/targets.ts';
import { booksOf, fill, manyBooks } from '../support/books.ts';
import { Connection } from '../support/client.ts';
import { connectTo, execute } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** More books than a list reads at once. */
const MANY = manyBooks(25_000);

describe('PostgreSQL that says that Citus distributes the books', { concurrency: true }, () => {
  test('rule 27: the start with FIND=on ends with the way out', async () => {
    const dbUrl = await distributed();
    await assert.rejects(
      startTestService(dbUrl),
      /^Error: DB_URL: \S+ cannot be opened: Citus distributes its table "books", and no index can follow it: set FIND=off\.$/,
    );
  });

  test('rule 9: of many changes of one book at once, each returns its own state', async (context) => {
    const { client, dbUrl } = await start(context, await distributed());
    const { id } = await client.create({});
    const locker = await connectTo(context, dbUrl);
    await locker.query('begin; select from books for update'); // until then, later changes gather behind earlier ones
    const answers = Array.from({ length: 16 }, (_, year) =>
      client.request('PUT', `/book/${id}`, { body: { year } }),
    );
    for (let other = 0; other < 50; other += 1) await client.request('GET', '/nowhere'); // longer than a request arrives
    await locker.query('commit');
    for (const [year, answer] of answers.entries()) {
      assert.deepEqual((await answer).data, { id, title: '', author: '', year });
    }
  });

  test('rule 13: a list has every book, ascending by id, for any number of them', async (context) => {
    const dbUrl = await distributed();
    await fill(dbUrl, MANY);
    assert.deepEqual(await booksOf(dbUrl), MANY);
    const { client } = await start(context, dbUrl);
    assert.deepEqual(await client.list(), MANY);
    for (const count of [10_001, 10_000, 9_999, 1, 0]) {
      await execute(dbUrl, `delete from books where id > ${count}`);
      assert.deepEqual(await client.list(), MANY.slice(0, count));
    }
  });

  test('rule 13: the connection breaks if the server ends one of the pieces of a list', async (context) => {
    const dbUrl = await distributed();
    await execute(dbUrl, "insert into books (title) select repeat('x', 4000) from generate_series(1, 12500)");
    const service = await start(context, dbUrl);
    const connection = new Connection(service);
    connection.socket.pause();
    await connection.send(service.client.bytes('GET', '/books'));
    const pieces = `from pg_stat_activity
      where datname = current_database() and query like '%copy (%' and wait_event = 'ClientWrite'`;
    const ended = `select pg_terminate_backend(pid) ${pieces}`;
    await waitUntil(async () => (await execute(dbUrl, ended)).length > 0); // all buffers are full: its answer has started
    connection.socket.resume();
    assert.deepEqual(await connection.answersUntilClosed(1), []);
    assert.match(connection.received, /^HTTP\/1\.1 200 /);
  });
});

async function start(context: TestContext, dbUrl: string) {
  const service = await startTestService(dbUrl, { FIND: 'off' });
  context.after(() => service.stop());
  return service;
}
