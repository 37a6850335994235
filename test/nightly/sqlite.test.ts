// A SQLite file that another process locks for seconds, or whose log of writes is long.

import assert from 'node:assert/strict';
import { renameSync, statSync, truncateSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { refusedWith } from '../support/command.ts';
import {
  ENVIRONMENT,
  endOf,
  fileOf,
  hasOpen,
  OPEN_FILES_HIDDEN,
  type RunningService,
  SQLITE,
  spawnService,
  startTestService,
} from '../support/service.ts';
import { holdWrites } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

/** Bytes of the log of writes, beyond which a search tries to empty it. */
const LONG_LOG = 96 * 1024 * 1024;

/** Milliseconds between two rounds of requests that are repeated until something else ends. */
const REST = 50;

/** Milliseconds that another program waits for a service that writes or indexes. */
const BUSY_TIMEOUT = 60_000;

describe('a SQLite file', { concurrency: true }, () => {
  test('rule 23: while another process writes, reads succeed, writes get 503, and none is carried out later', async (context) => {
    const { client, dbUrl } = await start(context);
    const book = await client.create({ title: 'here' });
    const release = await holdWrites(dbUrl);
    let ended = 0;
    const write = (method: string, path: string, body?: object) =>
      client.request(method, path, { body }).finally(() => {
        ended += 1;
      });
    const first = write('POST', '/book', {});
    const read = async () => {
      assert.deepEqual((await client.request('GET', `/book/${book.id}`)).data, book);
      assert.deepEqual(await client.list(), [book]);
    };
    await read();
    // These wait behind the first one, which the writing thread has started by now.
    const writes = Promise.all([
      first,
      write('PUT', `/book/${book.id}`, { title: 'x' }),
      write('DELETE', `/book/${book.id}`),
      // One after the other: when the second one can start, its caller waits hardly any more.
      write('POST', '/books', [{}]),
      write('POST', '/books', [{}]),
    ]);
    let answered = 0;
    while (ended < 5) {
      await read();
      if (ended === 0) answered += 1;
      await pause(REST);
    }
    assert.ok(answered > 0, 'no read was answered before the writes');
    for (const { status, message, data, headers } of await writes) {
      assert.deepEqual([status, message, data], [503, 'Service unavailable', null]);
      assert.ok(Number(headers.get('retry-after')) > 0);
    }
    await release();
    const next = await client.create({ title: 'next' }); // after anything that was still waiting
    assert.deepEqual(await client.list(), [book, next]);
  });

  test('rule 23: replaced while a start waits for another process: the start is refused', {
    skip: OPEN_FILES_HIDDEN,
  }, async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const path = fileOf(dbUrl);
    await (await startTestService(dbUrl)).stop();
    const other = await start(context);
    const writing = new DatabaseSync(path);
    context.after(() => writing.close());
    writing.exec('begin immediate');
    const service = spawnService({ ...ENVIRONMENT, DB_URL: dbUrl, LOG_LEVEL: 'info' });
    const ended = endOf(service);
    service.stdout?.once('data', () => service.kill());
    await waitUntil(() => hasOpen(service, `${path}-shm`));
    for (const suffix of ['', '-wal', '-shm']) {
      renameSync(`${path}${suffix}`, `${path}.away${suffix}`);
      renameSync(`${fileOf(other.dbUrl)}${suffix}`, `${path}${suffix}`);
    }
    writing.exec('rollback');
    const reason = 'books.db has been replaced: put it back, or start again with the new one';
    assert.deepEqual(await ended, refusedWith(`DB_URL: ${dbUrl} cannot be opened: ${reason}.`));
  });

  test('rule 23: a search succeeds while the log of writes cannot be emptied', async (context) => {
    const { client, dbUrl } = await start(context);
    await client.create({ title: 'found' });
    await waitUntil(async () => (await client.request('GET', '/books?q=found')).data.length === 1);
    const other = new DatabaseSync(fileOf(dbUrl), { timeout: BUSY_TIMEOUT });
    context.after(() => other.close());
    other.exec('pragma wal_autocheckpoint = 0; pragma synchronous = off');
    other.exec(`create table other as select zeroblob(${LONG_LOG}) as zeros`);
    other.exec('insert into other values (zeroblob(100000))'); // the last pages of the log have nothing else
    const log = `${fileOf(dbUrl)}-wal`;
    truncateSync(log, statSync(log).size - 4096);
    assert.throws(() => other.exec('pragma wal_checkpoint(passive)'), /disk I\/O error/);
    const { status, data } = await client.request('GET', '/books?q=found');
    assert.deepEqual([status, data.length], [200, 1]);
  });
});

/** Starts a service that stops at the end of the test, on a new file unless one is given. */
async function start(context: TestContext, dbUrl?: string): Promise<RunningService> {
  const service = await startTestService(dbUrl ?? (await SQLITE.freshUrl()));
  context.after(() => service.stop());
  return service;
}
