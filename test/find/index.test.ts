// Whether the index follows the books, whichever program writes them, on every store. Several processes, and the command
// `index`, are in test/nightly.

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { assertIndexCorrect } from '../support/book-index.ts';
import type { Client } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { execute } from '../support/postgres.ts';
import { POSTGRES, type RunningService, SQLITE, STORES, startTestService } from '../support/service.ts';
import { executeOn, holdIndex } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

interface Finder {
  readonly client: Client;
}

async function found({ client }: Finder, query: string): Promise<number[]> {
  for (;;) {
    const { status, data, headers } = await client.request('GET', `/books?${query}`);
    assert.equal(status, 200, query);
    if (headers.get('x-unindexed-books') === null) return (data as Book[]).map(({ id }) => id);
  }
}

/** How many books a search finds once it finds all. */
async function countFound({ client }: Finder, query: string): Promise<number> {
  let count = 0;
  await waitUntil(async () => {
    const { status, headers } = await client.request('GET', `/books?${query}&limit=1`, {
      headers: { prefer: 'count=exact' },
    });
    count = Number(headers.get('x-total-count'));
    return status === 200 && headers.get('x-unindexed-books') === null;
  });
  return count;
}

/** The only column of a row of PostgreSQL, a number. */
async function rowsOf(dbUrl: string, sql: string): Promise<number> {
  const [row] = await execute<{ rows: string }>(dbUrl, sql);
  return Number(row?.rows);
}

for (const store of STORES) {
  describe(`the index on ${store.name}`, () => {
    let service: RunningService;
    before(async () => {
      service = await startTestService(await store.freshUrl());
    });
    after(() => service.stop());

    const sql = (statement: string) => executeOn(service.dbUrl, statement);

    test('rule F11: books that other programs write are found at once', async () => {
      await sql('delete from books'); // of another test
      await sql("insert into books (title, author, year) values ('Foreign one', 'x', 1)");
      const [one] = await found(service, 'q=foreign');
      assert.equal(typeof one, 'number');
      await sql(`update books set title = 'Changed' where id = ${one}`);
      assert.deepEqual(await found(service, 'q=foreign'), []);
      assert.deepEqual(await found(service, 'q=changed'), [one]);
      await sql(`update books set id = 5000 where id = ${one}`);
      assert.deepEqual(await found(service, 'q=changed'), [5000]);
      await sql("insert into books (id, title) values (4000, 'Between')"); // below the highest id
      assert.deepEqual(await found(service, 'title=between'), [4000]);
      await sql('delete from books where id = 5000');
      assert.deepEqual(await found(service, 'year_gte=-1'), [4000]);
      await sql('delete from books');
      assert.deepEqual(await found(service, 'year_gte=-1'), []);
      await sql("insert into books (id, title) values (5000, 'Again')");
      assert.deepEqual(await found(service, 'q=again'), [5000]);
      await assertIndexCorrect(service.dbUrl);
    });

    if (store === POSTGRES) {
      test('rule F11: a step that had to wait does not make later searches miss what was just written', async () => {
        const title = 'after a wait';
        const store = async (count: number) => {
          const body = Array.from({ length: count }, () => ({ title }));
          assert.equal((await service.client.request('POST', '/books', { body })).status, 201);
        };
        const release = await holdIndex(service.dbUrl);
        await store(300);
        const waits = `select count(*) as rows from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and clock_timestamp() - query_start > '2 s'`;
        await waitUntil(async () => (await rowsOf(service.dbUrl, waits)) > 0);
        await release();
        await waitUntil(async () => (await countFound(service, 'title=after+a+wait')) === 300);
        await waitUntil(async () => {
          await store(200);
          const { headers } = await service.client.request('GET', '/books?title=after+a+wait&limit=1');
          return !headers.has('x-unindexed-books');
        });
        await sql('delete from books');
      });

      test('rule F11: and so is what is written by COPY, by many at once, or removed by truncate', async () => {
        await sql("insert into books (title) select 'Series ' || n from generate_series(1, 3000) as n");
        assert.equal(await countFound(service, 'q=series'), 3000);
        await sql("update books set title = 'Odd' where id % 2 = 1 and title like 'Series %'");
        assert.equal(await countFound(service, 'title=odd'), 1500);
        await sql('truncate books');
        assert.equal(await countFound(service, 'year_gte=-1'), 0);
        await sql("insert into books (title) values ('After')");
        assert.equal(await countFound(service, 'q=after'), 1);
        await assertIndexCorrect(service.dbUrl);
      });
    }

    test('rule F11: a transaction that is rolled back leaves nothing to find', async () => {
      await assert.rejects(
        sql(
          store === SQLITE
            ? "insert into books (id, title) values (6000, 'Never'), (6000, 'Never')"
            : "with one as (insert into books (title) values ('Never') returning id) select 1 / (id - id) from one",
        ),
      );
      assert.deepEqual(await found(service, 'q=never'), []);
    });

    test('rule F11: an import is found whole', async () => {
      const { client, dbUrl } = service;
      const rows = Array.from(
        { length: 5000 },
        (_, number) => `"Imported ${number}","An importer",${number}`,
      );
      const file = Readable.from([Buffer.from(`title,author,year\n${rows.join('\n')}\n`)]);
      const outcome = await runCommand(['import', '-'], { DB_URL: dbUrl }, undefined, undefined, file);
      assert.equal(outcome.code, 0, outcome.stderr);
      assert.equal(await countFound({ client }, 'author=an+importer'), 5000);
      await assertIndexCorrect(dbUrl);
    });
  });
}
