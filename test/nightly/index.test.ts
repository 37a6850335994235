// An index whose process is killed, that is made while others write, of another version, or held for seconds; and the command
// `index`. On every store.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { assertIndexCorrect, countFound, found, holdBehind } from '../support/book-index.ts';
import { fill, manyBooks } from '../support/books.ts';
import { runCommand } from '../support/command.ts';
import { random } from '../support/random.ts';
import {
  type RunningService,
  SQLITE,
  STORES,
  startServiceProcess,
  startTestService,
} from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

/** How often a process is killed while it indexes; TEST_KILLS overrides it. */
const KILLS = Number(process.env.TEST_KILLS ?? 5);

/** More books than one step of the command indexes, several times over. */
const STOPPED = { SQLite: 30_000, PostgreSQL: 8000 };

/** What belongs to an index. */
const OBJECTS = {
  SQLite: "select name from sqlite_schema where name like 'book!_index%' escape '!'",
  PostgreSQL: `select relname from pg_class where relname like 'book\\_index%'
    union all select tgname from pg_trigger where tgname like 'book\\_index%'
    union all select proname from pg_proc where proname like 'book\\_index%'`,
};

function index(dbUrl: string, ...args: string[]) {
  return runCommand(['index', ...args], { DB_URL: dbUrl });
}

async function start(
  context: TestContext,
  ...args: Parameters<typeof startTestService>
): Promise<RunningService> {
  const service = await startTestService(...args);
  context.after(service.stop);
  return service;
}

for (const store of STORES) {
  const isIncomplete = `update book_index_state set is_complete = ${store === SQLITE ? '0' : 'false'}`;

  describe(`the index on ${store.name}`, () => {
    test('rule F11: a store that has books is indexed while a service without an index writes to it', async (context) => {
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, manyBooks(5000));
      const { client: writer } = await start(context, dbUrl, { FIND: 'off' });
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
      const { client } = await start(context, dbUrl);
      await waitUntil(async () => (await client.request('GET', '/books?limit=1')).status === 200);
      isIndexed = true;
      await Promise.all(writers);
      const books = await client.list();
      const written = books.filter(({ title, author }) => [title, author].includes('Written meanwhile'));
      assert.equal(await countFound(client, 'q=written+meanwhile'), written.length);
      assert.equal(await countFound(client, 'year_gte=-1'), books.length);
      await assertIndexCorrect(dbUrl);
    });

    test('rule F11: a process that is killed while it indexes leaves nothing out', async (context) => {
      const dbUrl = await store.freshUrl();
      for (let kill = 1; kill <= KILLS; kill += 1) {
        const victim = await startServiceProcess(dbUrl);
        context.after(() => victim.stop());
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
      const { client } = await start(context, dbUrl);
      const books = await client.list();
      assert.equal(await countFound(client, 'year_gte=-1'), books.length);
      const changed = books.filter(({ title }) => title === 'Changed').length;
      assert.equal(await countFound(client, 'q=changed'), changed);
      await assertIndexCorrect(dbUrl);
    });

    test('rule F11: while the index cannot follow, the searches of many clients are answered', async (context) => {
      const times = timesWith({
        sqlite: { catchUp: 2000 },
        postgres: { catchUp: 2000 },
        books: { deadline: 10_000 },
      });
      const service = await start(context, await store.freshUrl(), {}, undefined, times);
      const release = await holdBehind(service);
      const search = async () => {
        const { status, headers } = await service.client.request('GET', '/books?q=waiting');
        assert.deepEqual([status, headers.get('x-unindexed-books')], [200, '1']);
      };
      await Promise.all(Array.from({ length: 16 }, search)).finally(release);
    });

    test('rule F11: an index is completed, made again if it is older, and left alone if a newer version has made it', async (context) => {
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, [{ id: 1, title: 'Here', author: '', year: 0 }]);
      assert.equal((await index(dbUrl)).stdout, '1 book is indexed.\n');
      for (const state of [isIncomplete, 'update book_index_state set version = 0']) {
        if (state !== isIncomplete) await executeOn(dbUrl, "update book_index set title_key = 'wrong'");
        await executeOn(dbUrl, state);
        const { client, stop } = await startTestService(dbUrl);
        await waitUntil(async () => (await client.request('GET', '/books?limit=1')).status === 200);
        assert.deepEqual(await found(client, 'title=here'), [1]);
        await stop();
      }
      await executeOn(dbUrl, 'update book_index_state set version = 1000');
      const { client } = await start(context, dbUrl);
      const { status, message, headers } = await client.request('GET', '/books?limit=1');
      assert.deepEqual([status, message, headers.get('retry-after')], [503, 'Service unavailable', '1']);
      await client.create({ title: 'Also here' });
      assert.equal((await client.list()).length, 2);
      assert.equal((await executeOn(dbUrl, 'select version from book_index_state'))[0]?.version, 1000);
      const { code, stderr } = await index(dbUrl);
      assert.deepEqual([code, /a newer version of the service has made it\.\n$/.test(stderr)], [1, true]);
    });

    test('index: completes an index whose books are gone, and makes it again, whatever is wrong with it', async () => {
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, manyBooks(300));
      assert.equal((await index(dbUrl)).stdout, '300 books are indexed.\n');
      await assertIndexCorrect(dbUrl);
      for (const damage of [
        'delete from book_index where id = 7',
        "update book_index set title_key = 'z', author_key = 'z', year = 1 where id = 7",
        ...(store === SQLITE
          ? [
              'delete from book_index_words where rowid = 7',
              "insert into book_index_words (rowid, title, author) values (9000, 'none', 'none')",
            ]
          : ["update book_index set words = words || '''none'':1A'::tsvector where id = 7"]),
      ]) {
        await executeOn(dbUrl, damage);
        await assert.rejects(assertIndexCorrect(dbUrl), /it differs from the rebuilt index/, damage);
      }
      await assertIndexCorrect(dbUrl);
      await executeOn(dbUrl, 'delete from books');
      await executeOn(dbUrl, isIncomplete);
      assert.equal((await index(dbUrl)).stdout, '0 books are indexed.\n');
    });

    test('index: resumes where it was stopped', async () => {
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, manyBooks(STOPPED[store.name]));
      const indexed = async () => {
        const [row] = await executeOn(dbUrl, 'select count(*) as books from book_index').catch(() => []);
        return Number(row?.books ?? 0);
      };
      const begun = waitUntil(async () => (await indexed()) > 0);
      const { code, stderr } = await runCommand(['index'], { DB_URL: dbUrl }, { stop: begun });
      assert.equal(code, 1);
      assert.match(stderr, /Stopped\. The next run resumes here\.\n$/);
      assert.ok((await indexed()) > 0);
      assert.equal((await index(dbUrl)).stdout, `${STOPPED[store.name]} books are indexed.\n`);
      await assertIndexCorrect(dbUrl);
    });

    test('index: --remove removes everything of it, and a service without it continues', async (context) => {
      const dbUrl = await store.freshUrl();
      const { client } = await start(context, dbUrl, { FIND: 'off' });
      const objects = () => executeOn(dbUrl, OBJECTS[store.name]);
      assert.equal((await index(dbUrl)).code, 0);
      assert.ok((await objects()).length > 5);
      await client.create({ title: 'x' });
      assert.equal((await index(dbUrl, '--remove')).stdout, 'The index is removed.\n');
      assert.deepEqual(await objects(), []);
      assert.equal((await index(dbUrl, '--remove')).stdout, 'There is no index.\n');
      await client.create({ title: 'y' });
      assert.equal((await client.list()).length, 2);
    });
  });
}

test('index: invalid arguments end with one sentence', async () => {
  const dbUrl = await SQLITE.freshUrl();
  const both = await index(dbUrl, '--rebuild', '--remove');
  assert.deepEqual([both.code, both.stderr], [2, 'Only one of --rebuild and --remove is possible.\n']);
  const missing = await index(dbUrl);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /^DB_URL: there is no catalogue at [^\n]*\.\n$/);
  const off = await runCommand(['index'], { DB_URL: dbUrl, FIND: 'off' });
  assert.deepEqual([off.code, off.stderr], [1, 'FIND is off: there is no index to maintain.\n']);
});
