// The service behind PgBouncer in transaction mode, where every statement may run in another server session. Its settings
// are those that it has out of the box, except for the mode.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import pg from 'pg';
import { accepts } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { Load } from '../support/load.ts';
import { unusedPort } from '../support/ports.ts';
import { connectTo, execute, freshDatabase } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Server connections that PgBouncer may open, far fewer than its clients do. */
const POOL_SIZE = 5;

describe('PgBouncer in transaction mode', () => {
  let dbUrl: string;
  let bouncer: PgBouncer;

  before(async () => {
    dbUrl = await freshDatabase();
    bouncer = await PgBouncer.start(dbUrl);
  });
  after(() => bouncer.stop());

  test('rules 9, 13 and 23: every operation works through it, under load and across its restart', async (context) => {
    const { client } = await startThrough(context, 'target_session_attrs=read-write');
    const book = await client.create({ title: 'Emma', author: 'Jane Austen' });
    const changed = { ...book, year: 1815 };
    const update = await client.request('PUT', `/book/${book.id}`, { body: { year: 1815 } });
    assert.deepEqual(update.data, changed);
    assert.deepEqual((await client.request('GET', `/book/${book.id}`)).data, changed);
    assert.deepEqual(await client.list(), [changed]);
    assert.equal((await client.request('DELETE', `/book/${book.id}`)).status, 200);

    const load = await Load.start(context, client);
    await load.moreWrites(500);
    assert.equal(load.unavailable, 0);
    const sessions = await execute(
      dbUrl,
      "select from pg_stat_activity where application_name = 'book-catalogue' and datname = current_database()",
    );
    assert.ok(sessions.length > 0 && sessions.length <= POOL_SIZE, `${sessions.length} sessions`);

    await bouncer.stop();
    await waitUntil(() => load.unavailable > 0);
    await bouncer.startAgain();
    const milliseconds = await load.moreWrites(1);
    context.diagnostic(`first success ${milliseconds} ms after PgBouncer's return`);
    await load.moreWrites(100);
    await load.stop();
  });

  test('rule 23: changes of a book that another program has locked get 503 within 5 s, those of its neighbours succeed', async (context) => {
    const { client } = await startThrough(context);
    const [held, free] = [await client.create({ title: 'held' }), await client.create({ title: 'free' })];
    const locker = await connectTo(context, dbUrl);
    await locker.query('begin');
    await locker.query('select from books where id = $1 for update', [held.id]);
    const began = performance.now();
    const stuck = client.request('PUT', `/book/${held.id}`, { body: { year: 1 } });
    for (let year = 1; year <= 100; year += 1) {
      assert.equal((await client.request('PUT', `/book/${free.id}`, { body: { year } })).status, 200);
    }
    assert.equal((await stuck).status, 503);
    assert.ok(performance.now() - began < 5000 + 500); // 500 for a slow machine
    // No statement that was given up still runs in the server.
    await waitUntil(async () => {
      const waiting =
        "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
      return (await execute(dbUrl, waiting)).length === 0;
    });
  });

  test('the limits of the service do not reach other programs that share its sessions', async (context) => {
    const { client, dbUrl: url } = await startThrough(context);
    const { id } = await client.create({});
    // Enough at a time for every session of the pool.
    const changes = Array.from({ length: 100 }, (_, year) => {
      return client.request('PUT', `/book/${id}`, { body: { year } });
    });
    const creations = changes.map(() => client.create({}));
    await Promise.all([...changes, ...creations, client.list(), client.list()]);
    const others = Array.from({ length: POOL_SIZE }, () => new pg.Client({ connectionString: url }));
    context.after(() => Promise.all(others.map((other) => other.end())));
    for (const other of others) {
      await other.connect();
      await other.query('begin'); // keeps a separate session until the end
      const settings =
        "select name, setting from pg_settings where name in ('statement_timeout', 'lock_timeout')";
      for (const { name, setting } of (await other.query(settings)).rows) assert.equal(setting, '0', name);
    }
  });

  test('import, copy and export work through it', async (context) => {
    const { client, dbUrl: url } = await startThrough(context);
    const before = await client.list();
    const folder = temporaryFolder();
    const file = join(folder, 'books.csv');
    await writeFile(file, 'title,author,year\nEmma,Jane Austen,1815\nPersuasion,Jane Austen,1817\n');
    const run = async (...args: string[]) => {
      const { code, stderr } = await runCommand(args, { DB_URL: url });
      assert.equal(code, 0, stderr);
    };
    await run('import', file);
    assert.equal((await client.list()).length, before.length + 2);
    await run('copy', url, `sqlite:${join(folder, 'copy.db')}`);
    await run('export', join(folder, 'books.jsonl'));
    assert.equal(
      readFileSync(join(folder, 'books.jsonl'), 'utf8').trim().split('\n').length,
      before.length + 2,
    );
  });

  async function startThrough(context: TestContext, search = '') {
    const url = new URL(dbUrl);
    url.host = `127.0.0.1:${bouncer.port}`;
    url.search = search;
    const service = await startTestService(url.href);
    context.after(() => service.stop());
    return service;
  }
});

class PgBouncer {
  readonly port: number;
  readonly #settings: string;
  #process: ChildProcess | undefined;

  private constructor(port: number, settings: string) {
    this.port = port;
    this.#settings = settings;
  }

  /** @param dbUrl of a database of the server behind it. */
  static async start(dbUrl: string): Promise<PgBouncer> {
    const { hostname, port, username, password } = new URL(dbUrl);
    const folder = temporaryFolder();
    await chmod(folder, 0o755); // if root starts it, it runs as another user, which needs access
    const bouncer = new PgBouncer(await unusedPort(), join(folder, 'pgbouncer.ini'));
    const users = join(folder, 'users.txt');
    await writeFile(users, `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`);
    await writeFile(
      bouncer.#settings,
      `${readFileSync(pathTo('deploy/pgbouncer.ini'), 'utf8').replace(
        /^library = host=\S+/m,
        `* = host=${hostname} port=${port || 5432}`,
      )}
       listen_addr = 127.0.0.1
       listen_port = ${bouncer.port}
       unix_socket_dir =
       auth_type = scram-sha-256
       auth_file = ${users}
       default_pool_size = ${POOL_SIZE}
      `.replace(/^ +/gm, ''),
    );
    await bouncer.startAgain();
    return bouncer;
  }

  async startAgain(): Promise<void> {
    const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []; // it refuses to run as root
    const child = spawn('pgbouncer', ['-q', ...user, this.#settings], { stdio: 'ignore' });
    this.#process = child;
    let failure: Error | undefined;
    child.once('error', () => {
      failure = new Error('There is no pgbouncer on this machine: apt-get install pgbouncer');
    });
    child.once('exit', (code) => {
      failure = new Error(`pgbouncer exited with code ${code}`);
    });
    await waitUntil(async () => {
      if (failure !== undefined) throw failure;
      return await accepts('127.0.0.1', this.port);
    });
  }

  async stop(): Promise<void> {
    if (this.#process?.exitCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGTERM');
    await ended;
  }
}
