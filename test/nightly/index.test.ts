// An index whose process is killed, that several make while others write, or that is held for seconds. On every store.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { assertIndexCorrect, countFound, holdBehind, indexAll } from '../support/book-index.ts';
import { fill, manyBooks } from '../support/books.ts';
import { random } from '../support/random.ts';
import { SQLITE, STORES, startServiceProcess, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** How often a process is killed while it indexes; TEST_KILLS overrides it. */
const KILLS = Number(process.env.TEST_KILLS ?? 5);

/** More books than a first index has after its first transactions. */
const KILLED = { SQLite: 30_000, PostgreSQL: 8000 };

for (const store of STORES) {
  describe(`the index on ${store.name}`, () => {
    test('rule F11: a store that has books is indexed by two services while one without an index writes to it', async () => {
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, manyBooks(5000));
      const { client: writer } = await startTestService(dbUrl, { FIND: 'off' });
      let isIndexed = false;
      const write = async () => {
        for (let number = 0; !isIndexed; number += 1) {
          const { id } = await writer.create({ title: 'Written meanwhile', year: number });
          const other = 1 + Math.floor(random() * 5000);
          await writer.request('PUT', `/book/${other}`, { body: { author: 'Written meanwhile' } });
          if (number % 3 === 0) await writer.request('DELETE', `/book/${id}`);
        }
      };
      const writers = Array.from({ length: 8 }, write);
      const [{ client }] = await Promise.all([startTestService(dbUrl), startTestService(dbUrl)]);
      await waitUntil(async () => (await client.request('GET', '/books?limit=1')).status === 200);
      isIndexed = true;
      await Promise.all(writers);
      const books = await client.list();
      const written = books.filter(({ title, author }) => [title, author].includes('Written meanwhile'));
      assert.equal(await countFound(client, 'q=written+meanwhile'), written.length);
      assert.equal(await countFound(client, 'sort=year'), books.length);
      await assertIndexCorrect(dbUrl);
    });

    test('rule F11: a process that is killed while it indexes leaves nothing out', async () => {
      const dbUrl = await store.freshUrl();
      for (let kill = 1; kill <= KILLS; kill += 1) {
        const victim = await startServiceProcess(dbUrl);
        const write = async () => {
          for (let number = 0; ; number += 1) {
            const { id } = await victim.client.create({ title: `Kill ${kill}, book ${number}` });
            if (number % 3 === 0)
              await victim.client.request('PUT', `/book/${id}`, { body: { title: 'Changed' } });
            if (number % 5 === 0) await victim.client.request('DELETE', `/book/${id}`);
            if (number % 7 === 0) await victim.client.request('GET', '/books?q=changed&limit=1');
          }
        };
        const writers = Array.from({ length: 16 }, () => write().catch(() => {}));
        const least = kill * 50 + Math.floor(random() * 500);
        await waitUntil(async () => (await victim.client.list()).length > least);
        victim.process.kill('SIGKILL');
        await Promise.all(writers);
      }
      const { client } = await startTestService(dbUrl);
      const books = await client.list();
      assert.equal(await countFound(client, 'sort=year'), books.length);
      const changed = books.filter(({ title }) => title === 'Changed').length;
      assert.equal(await countFound(client, 'q=changed'), changed);
      await assertIndexCorrect(dbUrl);
    });

    test('rule F11: while the index cannot follow, the searches of many clients are answered', async () => {
      const times = timesWith({
        sqlite: { catchUp: 2000 },
        postgres: { catchUp: 2000 },
        books: { deadline: 10_000 },
      });
      const service = await startTestService(await store.freshUrl(), {}, undefined, times);
      const release = await holdBehind(service);
      const search = async () => {
        const { status, headers } = await service.client.request('GET', '/books?q=waiting');
        assert.deepEqual([status, headers.get('x-unindexed-books')], [200, '1']);
      };
      await Promise.all(Array.from({ length: 16 }, search)).finally(release);
    });

    test('rule F11: an index without books is completed', async () => {
      const dbUrl = await store.freshUrl();
      await indexAll(dbUrl);
      await executeOn(dbUrl, `update book_index_state set is_complete = ${store === SQLITE ? '0' : 'false'}`);
      const { client } = await startTestService(dbUrl);
      assert.equal(await countFound(client, 'sort=year'), 0);
    });

    test('rule F11: a first index whose process is killed is continued', async () => {
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, manyBooks(KILLED[store.name]));
      const indexed = async () => {
        const [row] = await executeOn(dbUrl, 'select count(*) as books from book_index').catch(() => []);
        return Number(row?.books ?? 0);
      };
      const victim = await startServiceProcess(dbUrl);
      await waitUntil(async () => (await indexed()) > 0);
      const ended = once(victim.process, 'exit');
      victim.process.kill('SIGKILL');
      await ended;
      await indexAll(dbUrl);
      assert.equal(await indexed(), KILLED[store.name]);
      await assertIndexCorrect(dbUrl);
    });
  });
}
