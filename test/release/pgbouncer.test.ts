// The service behind PgBouncer in transaction mode, where every statement may run in another server session. Its settings
// are those that it has out of the box, except for the mode.

import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import pg from 'pg';
import { booksOf } from '../support/books.ts';
import { accepts } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { manyRows } from '../support/importing.ts';
import { Load } from '../support/load.ts';
import { unusedPort } from '../support/ports.ts';
import { connectTo, freshDatabase, sessionsOf, waitingIn } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { type Program, startProgram } from './programs.ts';

/** Server connections that PgBouncer may open, far fewer than its clients do. */
const POOL_SIZE = 5;

describe('PgBouncer in transaction mode', () => {
  let dbUrl: string;
  /** The same database, through it. */
  let pooled: URL;
  let start: () => Promise<Program>;

  before(async () => {
    dbUrl = await freshDatabase();
    pooled = new URL(dbUrl);
    pooled.host = `127.0.0.1:${await unusedPort()}`;
    start = configured(dbUrl, Number(pooled.port));
  });

  test('rules 9, 13 and 23: every operation works through it, under load and across its restart', async (context) => {
    const { client, bouncer } = await startThrough('target_session_attrs=read-write');
    const load = await Load.start(context, client);
    await load.moreWrites(500);
    assert.equal(load.unavailable, 0);
    const sessions = await sessionsOf(dbUrl, "application_name = 'book-catalogue'");
    assert.ok(sessions.length > 0 && sessions.length <= POOL_SIZE, `${sessions.length} sessions`);

    await bouncer.stop();
    await waitUntil(() => load.unavailable > 0);
    await start();
    await load.moreWrites(100);
    await load.stop();
  });

  test('rule 23: a change of a book that another program has locked gets 503, those of its neighbours succeed, and no statement continues', async (context) => {
    const { client } = await startThrough();
    const [held, free] = [await client.create({ title: 'held' }), await client.create({ title: 'free' })];
    const locker = await connectTo(context, dbUrl);
    await locker.query('begin');
    await locker.query('select from books where id = $1 for update', [held.id]);
    const stuck = client.request('PUT', `/book/${held.id}`, { body: { year: 1 } });
    for (let year = 1; year <= 100; year += 1)
      assert.equal((await client.request('PUT', `/book/${free.id}`, { body: { year } })).status, 200);
    assert.equal((await stuck).status, 503);
    await waitUntil(async () => (await waitingIn(dbUrl)).length === 0);
  });

  test('the limits of the service do not reach other programs that share its sessions', async (context) => {
    const { client } = await startThrough();
    const { id } = await client.create({});
    // Enough at a time for every session of the pool.
    const calls = Array.from({ length: 100 }, (_, year) => [
      client.request('PUT', `/book/${id}`, { body: { year } }),
      client.create({}),
    ]).flat();
    await Promise.all([...calls, client.list(), client.list()]);
    for (let session = 0; session < POOL_SIZE; session += 1) {
      const other = new pg.Client({ connectionString: pooled.href });
      await other.connect();
      context.after(() => other.end());
      await other.query('begin'); // keeps a separate session until the end
      for (const limit of ['statement_timeout', 'lock_timeout'])
        assert.deepEqual((await other.query(`show ${limit}`)).rows, [{ [limit]: '0' }]);
    }
  });

  test('import, copy and export work through it', async () => {
    const { client } = await startThrough();
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'books.csv'), 'title,author,year\nEmma,Jane Austen,1815\n');
    for (const args of [
      ['import', `${folder}/books.csv`],
      ['copy', pooled.href, `sqlite:${folder}/copy.db`],
      ['export', `${folder}/books.jsonl`],
    ]) {
      const { code, stderr } = await runCommand(args, { DB_URL: pooled.href });
      assert.equal(code, 0, stderr);
    }
    const lines = readFileSync(join(folder, 'books.jsonl'), 'utf8').trim().split('\n');
    const books = lines.map((line) => JSON.parse(line)).map(({ etag: _, ...book }) => book);
    assert.equal(books.at(-1).title, 'Emma');
    for (const url of [dbUrl, `sqlite:${folder}/copy.db`]) assert.deepEqual(await booksOf(url), books);
    assert.deepEqual(await client.list(), books);
  });

  test('rules M4 and M6: a file that is sent is checked, stored and taken back through it', async () => {
    const { client } = await startThrough();
    const before = await client.list();
    const body = Buffer.from(manyRows(20_000));
    const checked = await client.request('POST', '/import?dry-run', { body });
    const { import: number } = checked.data;
    const stored = await client.request('POST', `/import/${number}`);
    assert.deepEqual([checked.data.figures.new, stored.status, stored.data.books], [20_000, 200, 20_000]);
    await client.request('POST', '/undo', { body: { event: number } });
    await waitUntil(async () => (await client.list()).length === before.length);
    assert.deepEqual(await client.list(), before);
  });

  async function startThrough(parameter = '') {
    const bouncer = await start();
    return { ...(await startTestService(`${pooled.href}?${parameter}`)), bouncer };
  }
});

/** PgBouncer with deploy/pgbouncer.ini, on a port, in front of a database; may be started again. */
function configured(dbUrl: string, own: number): () => Promise<Program> {
  const { hostname, port, username, password } = new URL(dbUrl);
  const folder = temporaryFolder();
  chmodSync(folder, 0o755); // it refuses to run as root
  const [settings, users] = [join(folder, 'pgbouncer.ini'), join(folder, 'users.txt')];
  writeFileSync(users, `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`);
  const deployed = readFileSync(pathTo('deploy/pgbouncer.ini'), 'utf8');
  const here = [
    deployed.replace(/^library = host=\S+/m, `* = host=${hostname} port=${port || 5432}`),
    ...['listen_addr = 127.0.0.1', `listen_port = ${own}`, 'unix_socket_dir ='],
    ...['auth_type = scram-sha-256', `auth_file = ${users}`, `default_pool_size = ${POOL_SIZE}`],
  ];
  writeFileSync(settings, here.join('\n'));
  return () => startProgram(['pgbouncer', '-q', '-u', 'nobody', settings], () => accepts('127.0.0.1', own));
}
