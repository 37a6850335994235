// The statements for PostgreSQL with Citus, on a server without it: a table says that Citus distributes the books. So this shows
// that they keep the contract, not that Citus accepts them; docs/engines.md says which were tried on Citus.

import assert from 'node:assert/strict';
import { before, describe, type TestContext, test } from 'node:test';
import { booksOf, fill, manyBooks } from '../support/books.ts';
import { runFiles } from '../support/nested-run.ts';
import { DATABASE_TEMPLATE, execute, freshDatabase } from '../support/postgres.ts';
import { startTestService, TESTED_FIND } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const FILES = [
  'test/contract/concurrency.test.ts',
  'test/contract/conditions.test.ts',
  'test/contract/contract.test.ts',
  'test/contract/once.test.ts',
];

/** More books than a list reads at once. */
const MANY = manyBooks(25_000);

describe('PostgreSQL that says that Citus distributes the books', { concurrency: true }, () => {
  test('the contract holds', async (context) => {
    const template = await distributedDatabase();
    const env = { [DATABASE_TEMPLATE]: new URL(template).pathname.slice(1), [TESTED_FIND]: 'off' };
    context.diagnostic(await runFiles(FILES, env, 1));
  });

  test('rule 27: the start with FIND=on ends with the way out', async () => {
    const dbUrl = await distributedDatabase();
    await assert.rejects(
      startTestService(dbUrl),
      /^Error: DB_URL: \S+ cannot be opened: Citus distributes its table "books", and no index can follow it: set FIND=off\.$/,
    );
  });

  describe('lists', { concurrency: 1 }, () => {
    let dbUrl: string;

    before(async () => {
      dbUrl = await distributedDatabase();
      await fill(dbUrl, MANY);
    });

    test('rule 13: a list has every book, ascending by id, for any number of them', async (context) => {
      const { client } = await start(context, dbUrl);
      assert.deepEqual(await client.list(), MANY);
      for (const count of [10_001, 10_000, 9_999, 1, 0]) {
        await execute(dbUrl, `delete from books where id > ${count}`);
        assert.deepEqual(await client.list(), MANY.slice(0, count));
      }
      await fill(dbUrl, MANY);
      assert.deepEqual(await booksOf(dbUrl), MANY);
    });

    test('rule 13: the connection breaks if the server ends one of its pieces', async (context) => {
      const { client } = await start(context, dbUrl);
      const ended = client.list().then(
        () => 'whole',
        () => 'broken',
      );
      let isCancelled = false;
      await waitUntil(async () => {
        const [row] = await execute<{ done: boolean }>(
          dbUrl,
          `select pg_terminate_backend(pid) as done from pg_stat_activity
           where datname = current_database() and state = 'active' and query like '%copy (%' and pid <> pg_backend_pid()`,
        );
        isCancelled ||= row?.done === true;
        return isCancelled || (await Promise.race([ended, 'open'])) !== 'open';
      });
      if (isCancelled) assert.equal(await ended, 'broken');
      assert.deepEqual(await client.list(), MANY);
    });
  });
});

/** A database that looks as one does in which `create_distributed_table('books', 'id')` was called. */
async function distributedDatabase(): Promise<string> {
  const dbUrl = await freshDatabase();
  const service = await startTestService(dbUrl, { FIND: 'off' });
  await service.stop();
  await execute(dbUrl, "create table pg_dist_partition as select 'books'::regclass as logicalrelid");
  return dbUrl;
}

async function start(context: TestContext, dbUrl: string) {
  const service = await startTestService(dbUrl, { FIND: 'off' });
  context.after(() => service.stop());
  return service;
}
