// Backups and restores while a service starts or writes, and killed at any moment.

import assert from 'node:assert/strict';
import { type ChildProcess, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import type { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { lockExclusively } from '../../src/stores/sqlite/backup.ts';
import { Client } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import {
  ENVIRONMENT,
  endOf,
  hasOpen,
  OPEN_FILES_HIDDEN,
  spawnService,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const TABLE = `create table books (
  id integer primary key autoincrement check (id between 1 and 9007199254740991),
  title text not null default '', author text not null default '', year integer not null default 0) strict`;

/** Lengths of the unfinished file, of 10 MB in the end, at which a command is killed. */
const PARTS = [0, 1, 5_000_000, 10_000_000];

describe('backup and restore', { concurrency: 3 }, () => {
  test('a backup beside a service that writes all the time ends, and shows one moment', async (context) => {
    const folder = folderWithStore(1000, 20_000); // 20 MB: many steps
    const service = await startTestService(`sqlite:${folder}/books.db`);
    context.after(() => service.stop());
    // Two books at both ends of the file, the first always updated before the other: a copy of several moments shows
    // it.
    let number = 0;
    let isOver = false;
    const { client } = service;
    const last = await client.create({});
    const writer = (async () => {
      while (!isOver) {
        number += 1;
        for (const id of [1, last.id]) {
          const { status } = await client.request('PUT', `/book/${id}`, { body: { year: number } });
          assert.equal(status, 200);
        }
      }
    })();
    await waitUntil(() => number > 3);
    const before = number - 1;
    const { code, stdout } = await endOf(start(folder, ['backup', 'copy.db']));
    const after = number;
    isOver = true;
    await writer;
    assert.equal(code, 0);
    assert.ok(after > before + 2, 'the service did not go on');
    const [, digest] =
      /^1001 books backed up to copy\.db, verified \(sha256 ([0-9a-f]{64})\)\.\n$/.exec(stdout) ?? [];
    const db = new DatabaseSync(join(folder, 'copy.db'), { readOnly: true });
    const year = (id: number) => Number(db.prepare('select year from books where id = ?').get(id)?.year);
    const [first, second] = [year(1), year(last.id)];
    assert.deepEqual(db.prepare('pragma integrity_check').all().map(Object.values), [['ok']]);
    assert.deepEqual({ ...db.prepare('pragma journal_mode').get() }, { journal_mode: 'delete' });
    db.close();
    assert.ok(second >= before && second <= after, `${second} is not within ${before} to ${after}`);
    assert.ok(first === second || first === second + 1, `${first} and ${second} are not one snapshot`);
    const exported = await outcome(folder, ['export'], { DB_URL: 'sqlite:copy.db' });
    assert.equal(sha256(exported.stdout), digest);
    assert.deepEqual(names(folder), ['books.db', 'copy.db']);
  });

  test('killed at any moment, it leaves no backup or a complete one, and the next run cleans up', async () => {
    const folder = folderWithStore(500, 20_000);
    let killed = 0;
    let left = 0;
    for (const length of PARTS) {
      killed += await kill(start(folder, ['backup', 'copy.db', '--overwrite']), folder, 'copy.db', length);
      if (names(folder).some((name) => name.endsWith('.unfinished'))) left += 1;
      if (existsSync(join(folder, 'copy.db'))) assert.equal(years(join(folder, 'copy.db')).length, 500);
    }
    assert.ok(killed > 0, 'it was never killed half way');
    assert.ok(left > 0, 'nothing was ever left');
    writeFileSync(join(folder, 'copy.db.0123456789ab.unfinished-journal'), 'of a run that was killed');
    writeFileSync(join(folder, 'copy.db.unfinished'), 'not ours');
    mkdirSync(join(folder, 'copy.db.ba9876543210.unfinished')); // cannot be removed
    assert.equal((await outcome(folder, ['backup', 'copy.db', '--overwrite'])).code, 0);
    assert.deepEqual(names(folder), [
      'books.db',
      'copy.db',
      'copy.db.ba9876543210.unfinished',
      'copy.db.unfinished',
    ]);
  });

  test('killed at any moment, restore leaves the old store or the new one', async () => {
    const folder = folderWithStore(500, 20_000);
    renameSync(join(folder, 'books.db'), join(folder, 'copy.db'));
    let killed = 0;
    for (const length of PARTS) {
      rmSync(join(folder, 'books.db'), { force: true });
      makeStore(folder, 3);
      leaveLog(join(folder, 'books.db'), 'update books set year = year + 10');
      killed += await kill(start(folder, ['restore', 'copy.db', '--overwrite']), folder, 'books.db', length);
      const found = years(join(folder, 'books.db'));
      if (found.length === 3) assert.deepEqual(found, [11, 12, 13]);
      else assert.equal(found.length, 500);
    }
    assert.ok(killed > 0, 'it was never killed half way');
    assert.equal((await outcome(folder, ['restore', 'copy.db', '--overwrite'])).code, 0);
    assert.deepEqual(readdirSync(folder), ['books.db', 'copy.db']);
  });

  test('restore: a service starts while the new store is read', async (context) => {
    const folder = folderWithStore(3);
    assert.equal((await outcome(folder, ['backup', 'copy.db'])).code, 0);
    assert.equal((await outcome(folder, ['restore', 'copy.db', '--overwrite'])).code, 0);
    const reader = new DatabaseSync(join(folder, 'books.db'), { readOnly: true });
    context.after(() => reader.close());
    reader.exec('begin; select * from books');
    const service = await startTestService(`sqlite:${folder}/books.db`);
    context.after(() => service.stop());
    await service.client.create({ year: 4 });
    assert.equal((await service.client.list()).length, 4);
  });

  for (const [name, books] of [
    ['with books', 500],
    ['an empty file', 0],
  ] as const) {
    test(`a service that starts while its store (${name}) is replaced starts on the new one`, {
      skip: OPEN_FILES_HIDDEN,
    }, async (context) => {
      const folder = folderWithStore(3);
      const path = join(folder, 'books.db');
      renameSync(path, join(folder, 'new.db'));
      if (books === 0) writeFileSync(path, '');
      else makeStore(folder, books);
      const store = lockExclusively(path);
      const service = start(folder, [], { ...ENVIRONMENT, LOG_LEVEL: 'info' });
      context.after(() => service.kill('SIGKILL'));
      const listening = Promise.race([
        once(createInterface({ input: service.stdout as Readable }), 'line'),
        endOf(service).then(({ stderr }) => Promise.reject(new Error(stderr))),
      ]);
      // Each attempt has it open for a moment.
      await waitUntil(() =>
        Array(100)
          .keys()
          .some(() => hasOpen(service, path)),
      );
      renameSync(join(folder, 'new.db'), path);
      const [line] = await listening;
      store?.close();
      const { msg, url } = JSON.parse(line) as { msg: string; url: string };
      assert.equal(msg, 'listening');
      const client = await Client.logIn({ url, port: Number(new URL(url).port) });
      await client.create({ year: 4 });
      assert.equal((await client.list()).length, 4);
      service.kill('SIGKILL');
      await once(service, 'close');
      assert.deepEqual(years(path), [1, 2, 3, 4]);
    });
  }
});

/** Runs a command in a folder, on the store `books.db` there. */
function outcome(folder: string, args: readonly string[], env: Record<string, string> = {}) {
  return runCommand(args, { DB_URL: 'sqlite:books.db', ...env }, folder);
}

/** Does the same in a separate process. */
function start(folder: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  return spawnService({ DB_URL: 'sqlite:books.db', ...env }, args, folder);
}

function folderWithStore(books: number, titleLength?: number): string {
  const folder = temporaryFolder();
  makeStore(folder, books, titleLength);
  return folder;
}

/** Makes a store of so many books with the years 1, 2 …, as a service leaves it when it exits. */
function makeStore(folder: string, books: number, titleLength?: number): void {
  const db = new DatabaseSync(join(folder, 'books.db'));
  const title = titleLength === undefined ? "'title'" : `hex(zeroblob(${titleLength / 2}))`;
  db.exec(`pragma journal_mode = wal; ${TABLE};
    with recursive number (value) as (select 1 union all select value + 1 from number where value < ${books})
    insert into books (title, author, year) select ${title}, 'author', value from number`);
  db.close();
}

/** The years of all books, once SQLite has rolled back what a dead process had started. */
function years(file: string): unknown[] {
  const db = new DatabaseSync(file);
  try {
    assert.deepEqual({ ...db.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' });
    return db
      .prepare('select year from books order by id')
      .all()
      .map(({ year }) => year);
  } finally {
    db.close();
  }
}

/** The files of a folder, except those that SQLite keeps beside an open store. */
function names(folder: string): string[] {
  return readdirSync(folder).filter((name) => !/^books\.db-(wal|shm)$/.test(name));
}

function sha256(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Writes in a process that then dies, so that the write is in the log. */
function leaveLog(file: string, sql: string): void {
  writeAndDie(file, sql);
  assert.ok(statSync(`${file}-wal`).size > 0);
}

function writeAndDie(file: string, sql: string): void {
  const script = `const db = new (require('node:sqlite').DatabaseSync)(process.argv[1]);
    db.exec(process.argv[2]); process.kill(process.pid, 'SIGKILL')`;
  spawnSync(process.execPath, ['-e', script, file, sql]);
}

/**
 * Kills a command once the unfinished file beside the given one has this length.
 * @returns 1 when it was killed, 0 when it had ended before.
 */
async function kill(child: ChildProcess, folder: string, file: string, length: number): Promise<number> {
  const before = readdirSync(folder);
  const isUnfinished = (name: string) => /\.unfinished$/.test(name) && !before.includes(name);
  const ended = endOf(child);
  await waitUntil(() => {
    if (child.exitCode !== null) return true;
    const unfinished = readdirSync(folder).find((name) => name.startsWith(`${file}.`) && isUnfinished(name));
    if (unfinished === undefined) return false;
    return (statSync(join(folder, unfinished), { throwIfNoEntry: false })?.size ?? 0) >= length;
  });
  child.kill('SIGKILL');
  return (await ended).code === null ? 1 : 0;
}
