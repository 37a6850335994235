// Export to a slow reader; copies that are killed half way, or lose an answer to their commit.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Book } from '../../conformance/service.ts';
import { countOf, fill, manyBooks } from '../support/books.ts';
import { runCommand } from '../support/command.ts';
import { haltCommit } from '../support/lost-commit.ts';
import { execute } from '../support/postgres.ts';
import { TcpProxy } from '../support/proxy.ts';
import {
  endOf,
  fileOf,
  POSTGRES,
  SQLITE,
  STORES,
  spawnService,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const BOOKS: readonly Book[] = [
  { id: 2, title: 'Emma', author: 'Jane Austen', year: 1815 },
  { id: 5, title: 'a "quote",\nand a line', author: '', year: -750 },
];

describe('export and copy', { concurrency: 4 }, () => {
  test('export: a slow reader gets all of it, in every format', async () => {
    const [url, folder] = [await SQLITE.freshUrl(), temporaryFolder()];
    await fill(url, manyBooks(5000));
    for (const format of ['csv', 'json', 'jsonl']) {
      await command(['export', `whole.${format}`], url, folder);
      const child = start(['export', '--format', format], url);
      const received: Buffer[] = [];
      for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
        received.push(chunk);
        await pause(10);
      }
      const whole = readFileSync(join(folder, `whole.${format}`));
      assert.ok(whole.length > 3 * 65_536, 'the export fits into a pipe');
      const { length } = Buffer.concat(received);
      assert.ok(Buffer.concat(received).equals(whole), `${length} of ${whole.length}`);
    }
  });

  test('copy: killed half way, it leaves nothing in SQLite, and the next run copies all', async () => {
    const [source, target] = [await SQLITE.freshUrl(), await SQLITE.freshUrl()];
    await fill(source, manyBooks(500, 20_000));
    await fill(target, []);
    const file = fileOf(target);
    const db = new DatabaseSync(file);
    db.exec(slowDown('after insert on books when new.id = 400', 1e15)); // it never ends
    db.close();
    const child = start(['copy', source, target]);
    const ended = endOf(child);
    // Its transaction has outgrown its memory and is in the log.
    await waitUntil(() => (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 1e6);
    child.kill('SIGKILL');
    assert.equal((await ended).code, null);
    assert.equal(await countOf(target), 0);
    const again = new DatabaseSync(file);
    again.exec('drop trigger slow');
    again.close();
    assert.equal((await command(['copy', source, target])).code, 0);
    assert.equal(await countOf(target), 500);
  });

  if (STORES.includes(POSTGRES)) {
    test('copy: killed half way, it leaves nothing in PostgreSQL, and the next run copies all', async () => {
      const [source, target] = [await SQLITE.freshUrl(), await POSTGRES.freshUrl()];
      await fill(source, manyBooks(500));
      await fill(target, []);
      for (const moment of [
        'before insert on books for each row when (new.id = 400)',
        'after insert on books for each statement', // all are stored, and none is compared
      ]) {
        await execute(
          target,
          `create or replace function halt() returns trigger language plpgsql as
             $$ begin perform pg_sleep(1e6); return new; end $$;
           create trigger halt ${moment} execute function halt()`,
        );
        const child = start(['copy', source, target]);
        const ended = endOf(child);
        const halted = `from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`;
        await waitUntil(async () => (await execute(target, `select ${halted}`)).length > 0);
        child.kill('SIGKILL');
        assert.equal((await ended).code, null);
        assert.equal(await countOf(target), 0);
        await execute(target, `select pg_terminate_backend(pid) ${halted}`);
        await waitUntil(async () => (await execute(target, `select ${halted}`)).length === 0);
        await execute(target, 'drop trigger halt on books');
        assert.equal(await countOf(target), 0);
      }
      assert.equal((await command(['copy', source, target])).code, 0);
      assert.equal(await countOf(target), 500);
    });

    test('copy: a commit on PostgreSQL whose answer is lost is not taken for a failed one', async (context) => {
      const [source, target] = [await SQLITE.freshUrl(), await POSTGRES.freshUrl()];
      await fill(source, BOOKS);
      await fill(target, []);
      const { proxy, proxiedUrl } = await TcpProxy.to(target);
      context.after(() => proxy.stop());
      const commit = await haltCommit(context, target, 'Emma');
      const ended = command(['copy', source, proxiedUrl]);
      await commit.loseAnswer(proxy);
      const { code, stdout, stderr } = await ended;
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(
        stderr,
        /^The connection or the disk failed while the copy was committed: [^\n]+\. TO has all books of FROM, or is unchanged: look there\.\n$/,
      );
      assert.equal(await countOf(target), 2);
    });

    test('copy: a source that is lost during the commit does not matter', async (context) => {
      const [source, target] = [await POSTGRES.freshUrl(), await POSTGRES.freshUrl()];
      await fill(source, BOOKS);
      await fill(target, []);
      const { proxy, proxiedUrl } = await TcpProxy.to(source);
      context.after(() => proxy.stop());
      const commit = await haltCommit(context, target, 'Emma');
      const ended = command(['copy', proxiedUrl, target]);
      await commit.loseAnswer(proxy);
      const { code, stderr } = await ended;
      assert.deepEqual([code, stderr], [0, '']);
      assert.equal(await countOf(target), 2);
    });
  }
});

/** SQL of a slow trigger, which takes about a millisecond for a thousand steps. */
function slowDown(event: string, steps: number): string {
  return `create trigger slow ${event} begin
    insert into books select null, '', '', 0 where (
      with recursive step (number) as (select 1 union all select number + 1 from step where number < ${steps})
      select count(*) from step
    ) < 0;
  end`;
}

function command(args: readonly string[], dbUrl?: string, folder?: string) {
  return runCommand(args, dbUrl === undefined ? {} : { DB_URL: dbUrl }, folder);
}

function start(args: readonly string[], dbUrl?: string): ChildProcess {
  return spawnService(dbUrl === undefined ? {} : { DB_URL: dbUrl }, args);
}
