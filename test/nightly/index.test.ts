// The index with several processes: one that is killed, one without an index, one of another version; an index that cannot follow;
// and the command `index`. On every store.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Book } from '../../conformance/service.ts';
import { assertIndexCorrect } from '../support/book-index.ts';
import { fill, manyBooks } from '../support/books.ts';
import type { Client } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { execute } from '../support/postgres.ts';
import { random } from '../support/random.ts';
import {
  endOf,
  POSTGRES,
  type RunningService,
  type ServiceProcess,
  SQLITE,
  STORES,
  spawnService,
  startServiceProcess,
  startTestService,
} from '../support/service.ts';
import { executeOn, holdIndex } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

/** How often a process is killed while it indexes; TEST_KILLS overrides it. */
const KILLS = Number(process.env.TEST_KILLS ?? 5);

/** How often a book is written by one process and found by another. */
const TIMES = 200;

/** More books than are indexed in a second on two quiet cores. */
const MANY = { SQLite: 45_000, PostgreSQL: 15_000 };

/** More books than one step of the command indexes, several times over. */
const STOPPED = { SQLite: 30_000, PostgreSQL: 8000 };

interface Finder {
  readonly client: Client;
}

async function found({ client }: Finder, query: string): Promise<number[]> {
  const { status, data, headers } = await client.request('GET', `/books?${query}`);
  assert.equal(status, 200, query);
  assert.equal(headers.get('x-unindexed-books'), null, query);
  return (data as Book[]).map(({ id }) => id);
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

/** Keeps the newest book out of the index until the returned function is called. */
async function holdBehind({ client, dbUrl }: RunningService): Promise<() => Promise<void>> {
  for (;;) {
    await countFound({ client }, 'year_gte=-1'); // all others are in it
    await executeOn(dbUrl, "insert into books (title) values ('Waiting')");
    const release = await holdIndex(dbUrl);
    const { headers } = await client.request('GET', '/books?limit=1');
    if (headers.get('x-unindexed-books') !== null) return release;
    await release(); // the service was faster
  }
}

/** The only column of a row of PostgreSQL, a number. */
async function rowsOf(dbUrl: string, sql: string): Promise<number> {
  const [row] = await execute<{ rows: string }>(dbUrl, sql);
  return Number(row?.rows);
}

function index(dbUrl: string, ...args: string[]) {
  return runCommand(['index', ...args], { DB_URL: dbUrl });
}

for (const store of STORES) {
  describe(`the index on ${store.name}`, () => {
    let service: RunningService;
    before(async () => {
      service = await startTestService(await store.freshUrl());
    });
    after(() => service.stop());

    const sql = (statement: string) => executeOn(service.dbUrl, statement);

    if (store === POSTGRES) {
      test('rule F11: many books of one statement are indexed beside others that are written all the time', async () => {
        let isOver = false;
        const writers = [1, 2, 3, 4].map(async () => {
          while (!isOver) await service.client.create({ title: 'small' });
        });
        await sql("insert into books (title) select 'Wide' from generate_series(1, 4000)");
        const indexed = "select count(*) as rows from book_index where title_key = 'wide'";
        await waitUntil(async () => (await rowsOf(service.dbUrl, indexed)) === 4000);
        isOver = true;
        await Promise.all(writers);
        await sql('delete from books');
      });
    }
  });

  describe(`the index on ${store.name}, with several processes`, () => {
    test('rules F11 and 28: a search sees every write that another process has answered', async (context) => {
      const dbUrl = await store.freshUrl();
      const [writer, finder] = await Promise.all([startProcess(context, dbUrl), startHere(context, dbUrl)]);
      for (let number = 0; number < TIMES; number += 1) {
        const { id } = await writer.client.create({ title: `Number ${number} once`, year: number });
        assert.deepEqual(await found(finder, `title_contains=${number}+once`), [id]);
        await writer.client.request('PUT', `/book/${id}`, { body: { title: `Number ${number} twice` } });
        assert.deepEqual(await found(finder, `title_contains=${number}+once`), []);
        assert.deepEqual(await found(finder, `title=number+${number}+twice`), [id]);
        if (number % 2 === 0) {
          await writer.client.request('DELETE', `/book/${id}`);
          assert.deepEqual(await found(finder, `year=${number}`), []);
        }
      }
      await assertIndexCorrect(dbUrl);
    });

    test('rule F11: a store that has books is indexed while a process without an index writes to it', async (context) => {
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, manyBooks(5000));
      const older = await startProcess(context, dbUrl, { FIND: 'off' });
      let isIndexed = false;
      const write = async () => {
        for (let number = 0; !isIndexed; number += 1) {
          const { id } = await older.client.create({ title: 'Written meanwhile', year: number });
          const other = 1 + Math.floor(random() * 5000);
          await older.client.request('PUT', `/book/${other}`, { body: { author: 'Written meanwhile' } });
          if (number % 3 === 0) await older.client.request('DELETE', `/book/${id}`);
        }
      };
      const writers = Array.from({ length: 8 }, write);
      const newer = await startHere(context, dbUrl);
      await waitUntil(async () => (await newer.client.request('GET', '/books?limit=1')).status === 200);
      isIndexed = true;
      await Promise.all(writers);
      const books = await newer.client.list();
      const written = books.filter(({ title, author }) => [title, author].includes('Written meanwhile'));
      assert.equal(await countFound(newer, 'q=written+meanwhile'), written.length);
      assert.equal(await countFound(newer, 'year_gte=-1'), books.length);
      await assertIndexCorrect(dbUrl);
    });

    test('rule F11: while many new books are indexed, every search is answered', async (context) => {
      const service = await startHere(context, await store.freshUrl());
      const many = MANY[store.name];
      await executeOn(
        service.dbUrl,
        store === SQLITE
          ? `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${many})
             insert into books (author) select 'One of many ' || n from numbers`
          : `insert into books (author) select 'One of many ' || n from generate_series(1, ${many}) as n`,
      );
      let isIndexed = false;
      const search = async () => {
        while (!isIndexed) {
          const { status, headers } = await service.client.request('GET', '/books?q=one+of+many&limit=1');
          assert.equal(status, 200);
          isIndexed = headers.get('x-unindexed-books') === null;
        }
      };
      await Promise.all(Array.from({ length: 8 }, search));
      assert.equal(await countFound(service, 'author_contains=many'), many);
    });

    test('rule F11: a process that is killed while it indexes leaves nothing out', async (context) => {
      const dbUrl = await store.freshUrl();
      for (let kill = 0; kill < KILLS; kill += 1) {
        const victim = await startProcess(context, dbUrl);
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
        const least = 50 + Math.floor(random() * 500);
        await waitUntil(async () => (await victim.client.list()).length > kill * 50 + least);
        victim.process.kill('SIGKILL');
        await Promise.all(writers);
      }
      const survivor = await startHere(context, dbUrl);
      const books = await survivor.client.list();
      assert.equal(await countFound(survivor, 'year_gte=-1'), books.length);
      const changed = books.filter(({ title }) => title === 'Changed').length;
      assert.equal(await countFound(survivor, 'q=changed'), changed);
      await assertIndexCorrect(dbUrl);
    });

    test('rule F11: while the index cannot follow, a search answers from what is indexed, and says so', async (context) => {
      const dbUrl = await store.freshUrl();
      const service = await startHere(context, dbUrl);
      const { client } = service;
      await client.create({ title: 'Indexed' });
      const release = await holdBehind(service);
      const books = await client.list();
      const { status, data, headers } = await client.request('GET', '/books?year_gte=-1');
      await release();
      assert.deepEqual([status, data, headers.get('x-unindexed-books')], [200, books.slice(0, -1), '1']);
      assert.equal(await countFound(service, 'year_gte=-1'), books.length);
    });

    test('rule F11: while the index cannot follow, the searches of many clients are answered', async (context) => {
      const service = await startHere(context, await store.freshUrl());
      const release = await holdBehind(service);
      const search = async () => {
        for (let round = 0; round < 3; round += 1) {
          const { status, headers } = await service.client.request('GET', '/books?q=waiting');
          assert.deepEqual([status, headers.get('x-unindexed-books')], [200, '1']);
        }
      };
      await Promise.all(Array.from({ length: 8 }, search)).finally(release);
    });

    test('rule F11: a first index is completed, also if the books that it lacked are gone', async (context) => {
      const dbUrl = await store.freshUrl();
      const first = await startTestService(dbUrl);
      const { id } = await first.client.create({ title: 'Here' });
      await waitUntil(async () => (await found(first, 'q=here')).length === 1);
      await first.stop();
      const isIncomplete = store === SQLITE ? '0' : 'false';
      await executeOn(dbUrl, `update book_index_state set is_complete = ${isIncomplete}`);
      const second = await startTestService(dbUrl);
      context.after(() => second.stop());
      await waitUntil(async () => (await second.client.request('GET', '/books?limit=1')).status === 200);
      assert.deepEqual(await found(second, 'q=here'), [id]);
      await second.client.request('DELETE', `/book/${id}`);
      await executeOn(dbUrl, `update book_index_state set is_complete = ${isIncomplete}`);
      assert.equal((await index(dbUrl)).stdout, '0 books are indexed.\n');
      assert.equal((await second.client.request('GET', '/books?limit=1')).status, 200);
    });

    test('rule F11: an index of an older version is made again, one of a newer version is left alone', async (context) => {
      const dbUrl = await store.freshUrl();
      const first = await startTestService(dbUrl);
      const { id } = await first.client.create({ title: 'Here' });
      await waitUntil(async () => (await found(first, 'q=here')).length === 1);
      await first.stop();
      await executeOn(dbUrl, 'update book_index_state set version = 0');
      await executeOn(dbUrl, "update book_index set title_key = 'wrong'");
      const second = await startTestService(dbUrl);
      await waitUntil(async () => (await second.client.request('GET', '/books?limit=1')).status === 200);
      assert.deepEqual(await found(second, 'title=here'), [id]);
      await second.stop();
      await executeOn(dbUrl, 'update book_index_state set version = 1000');
      const third = await startTestService(dbUrl);
      context.after(() => third.stop());
      const { status, message, headers } = await third.client.request('GET', '/books?limit=1');
      assert.deepEqual({ status, message }, { status: 503, message: 'Service unavailable' });
      assert.equal(headers.get('retry-after'), '1');
      await third.client.create({ title: 'Also here' });
      assert.equal((await third.client.list()).length, 2);
      const [state] = await executeOn(dbUrl, 'select version from book_index_state');
      assert.equal(state?.version, 1000);
      const { code, stderr } = await index(dbUrl);
      assert.equal(code, 1);
      assert.match(stderr, /a newer version of the service has made it\.\n$/);
    });
  });

  describe(`index: the command on ${store.name}`, () => {
    test('index: creates the index, and makes it again, whatever is wrong with it', async () => {
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, manyBooks(300));
      const made = await index(dbUrl);
      assert.deepEqual([made.code, made.stdout], [0, '300 books are indexed.\n']);
      await assertIndexCorrect(dbUrl);
      const differences = [
        'delete from book_index where id = 7',
        "update book_index set title_key = 'z' where id = 7",
        "update book_index set author_key = 'z' where id = 7",
        'update book_index set year = 1 where id = 7',
        ...(store === SQLITE
          ? [
              'delete from book_index_words where rowid = 7',
              "insert into book_index_words (rowid, title, author) values (9000, 'none', 'none')",
              "insert into book_index values (9000, '', '', 0)",
            ]
          : [
              "update book_index set words = '''x'':1A' where id = 7",
              "update book_index set words = words || '''none'':1A'::tsvector where id = 7",
              "insert into book_index values (9000, '', '', 0, '')",
            ]),
      ];
      for (const sql of differences) {
        await executeOn(dbUrl, sql);
        await assert.rejects(assertIndexCorrect(dbUrl), /it differs from the rebuilt index/, sql);
      }
      await assertIndexCorrect(dbUrl);
    });

    test('index: resumes where it was stopped', async () => {
      const dbUrl = await store.freshUrl();
      await fill(dbUrl, manyBooks(STOPPED[store.name]));
      const child = spawnService({ DB_URL: dbUrl }, ['index']);
      const end = endOf(child);
      const indexed = async () => {
        const tables = store === SQLITE ? 'sqlite_schema where name' : 'pg_class where relname';
        const isThere = await executeOn(dbUrl, `select 1 from ${tables} = 'book_index_state'`);
        if (isThere.length === 0) return 0;
        const [row] = await executeOn(dbUrl, 'select count(*) as books from book_index');
        return Number(row?.books);
      };
      await waitUntil(async () => child.exitCode !== null || (await indexed()) > 0);
      child.kill('SIGTERM');
      const { code, stderr } = await end;
      const kept = await indexed();
      assert.ok(kept > 0, stderr);
      if (kept < STOPPED[store.name]) {
        assert.equal(code, 1);
        assert.match(stderr, /Stopped\. The next run resumes here\.\n$/);
      }
      assert.deepEqual((await index(dbUrl)).stdout, `${STOPPED[store.name]} books are indexed.\n`);
      await assertIndexCorrect(dbUrl);
    });

    test('index: --remove removes everything of it, and a service without it continues', async (context) => {
      const dbUrl = await store.freshUrl();
      const service = await startTestService(dbUrl, { FIND: 'off' });
      context.after(() => service.stop());
      const objects = () =>
        executeOn(
          dbUrl,
          store === SQLITE
            ? "select name from sqlite_schema where name like 'book!_index%' escape '!'"
            : `select relname from pg_class where relname like 'book\\_index%'
               union all select tgname from pg_trigger where tgname like 'book\\_index%'
               union all select proname from pg_proc where proname like 'book\\_index%'`,
        );
      assert.deepEqual(await objects(), []);
      assert.equal((await index(dbUrl)).code, 0);
      assert.ok((await objects()).length > 5);
      await service.client.create({ title: 'x' });
      const removed = await index(dbUrl, '--remove');
      assert.deepEqual([removed.code, removed.stdout], [0, 'The index is removed.\n']);
      assert.deepEqual(await objects(), []);
      assert.equal((await index(dbUrl, '--remove')).stdout, 'There is no index.\n');
      await service.client.create({ title: 'y' });
      assert.equal((await service.client.list()).length, 2);
    });

    test('index: invalid arguments end with one sentence', async () => {
      const dbUrl = await store.freshUrl();
      const both = await index(dbUrl, '--rebuild', '--remove');
      assert.deepEqual([both.code, both.stderr], [2, 'Only one of --rebuild and --remove is possible.\n']);
      const missing = await index(dbUrl);
      assert.equal(missing.code, 1);
      assert.match(missing.stderr, /^DB_URL: there is no catalogue at [^\n]*\.\n$/);
      const off = await runCommand(['index'], { DB_URL: dbUrl, FIND: 'off' });
      assert.deepEqual([off.code, off.stderr], [1, 'FIND is off: there is no index to maintain.\n']);
    });
  });
}

async function startHere(context: TestContext, dbUrl: string): Promise<RunningService> {
  const service = await startTestService(dbUrl);
  context.after(service.stop);
  return service;
}

async function startProcess(
  context: TestContext,
  dbUrl: string,
  env: Record<string, string> = {},
): Promise<ServiceProcess> {
  const service = await startServiceProcess(dbUrl, env);
  context.after(() => service.stop());
  return service;
}
