// Backup and restore of the SQLite store: beside others that write, from and to files of all kinds, and the nightly script.
// Commands that are interrupted are in running.test.ts, killed ones in test/release/power.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { copyCatalogue, lockExclusively, type OnProgress } from '../../src/stores/sqlite/backup.ts';
import { fill, manyBooks } from '../support/books.ts';
import { refusedWith } from '../support/command.ts';
import { holdHalfWay } from '../support/half-way.ts';
import { command } from '../support/importing.ts';
import { pathTo } from '../support/repository.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import { STORES_FOLDER } from '../support/stores-folder.ts';
import { waitUntil } from '../support/wait.ts';

/** Of the export of three books. */
const THREE = sha256('id,title,author,year\n1,"title","a",1\n2,"title","a",2\n3,"title","a",3\n');

/** Files of the folder `etc`, and what the nightly script says of them: the store that they name. */
const NAMED = [
  ['environment', '', ',\n'],
  ['environment', 'DB_URL = a\n', 'etc/environment: write DB_URL=… without blanks before or after '],
  ['environment', 'DB_URL_FILE=url\n', ',url\n'],
  ['db_url', 'a', ',etc/db_url\n'],
  ['environment', 'PORT=80\nDB_URL=right\n', 'right,\n'],
] as const;

test('the nightly script backs up the store of the service, then removes its own old backups', () => {
  const folder = temporaryFolder();
  const own = Array.from({ length: 15 }, (_, day) => `books-2020-01-${10 + day}.db`);
  const leftover = 'books-2020-01-02.db.0123456789ab.unfinished-journal';
  const theirs = ['books-before-the-upgrade.db', 'books-metadata.db', 'older', 'older/books-2020-01-01.db'];
  for (const name of ['etc', 'deploy', 'disk/older']) fs.mkdirSync(join(folder, name), { recursive: true });
  fs.symlinkSync('disk', join(folder, 'backups'));
  for (const [position, name] of [...own, leftover, ...theirs].entries()) {
    if (name !== 'older') fs.writeFileSync(join(folder, 'disk', name), '');
    fs.utimesSync(join(folder, 'disk', name), position, position);
  }
  const script = fs.readFileSync(pathTo('deploy/backup.sh'), 'utf8').replace('=/etc/book-catalogue', '=etc');
  fs.writeFileSync(join(folder, 'deploy/backup.sh'), script, { mode: 0o755 });
  // In place of the command. It fails unless the store is `right`.
  const command =
    '#!/bin/sh\necho "$DB_URL,$DB_URL_FILE"; [ "$1,$3,$DB_URL" = backup,--overwrite,right ] && touch "$2"\n';
  fs.writeFileSync(join(folder, 'book-catalogue'), command, { mode: 0o755 });
  const cron = fs.readFileSync(pathTo('deploy/book-catalogue.cron'), 'utf8');
  const [, line = ''] = /^15 3 \* \* \* root (.+) >\/dev\/null$/m.exec(cron) ?? [];
  const here = line.replace(/\/var\/lib\/\S+/, '.').replace('/opt/book-catalogue/', './');
  const args = ['-c', here.replace('/var/backups/book-catalogue', 'backups')];
  const listed = () => fs.readdirSync(join(folder, 'disk'), { recursive: true }).map(String).toSorted();
  for (const [file, content, said] of NAMED) {
    const before = listed();
    fs.writeFileSync(join(folder, 'etc', file), content);
    const options = { cwd: folder, env: { PATH: process.env.PATH }, encoding: 'utf8' } as const;
    const { status, stdout, stderr } = spawnSync('sh', args, options);
    assert.ok(`${stdout}${stderr}`.startsWith(said), stdout + stderr);
    assert.equal(status === 0, said === 'right,\n');
    if (status !== 0) assert.deepEqual(listed(), before);
    fs.rmSync(join(folder, 'etc', file));
  }
  const today = listed().filter((name) => ![...own, ...theirs].includes(name));
  assert.match(today.join(), /^books-\d{4}-\d\d-\d\d\.db$/);
  assert.deepEqual(listed(), [...own.slice(2), ...theirs, ...today].toSorted()); // the newest 14
});

/** Commands on `books.db`, unless another store is named, and the sentences with which they are refused. */
const refusals = (folder: string) => `
backup there.db → there.db already exists: --overwrite replaces it.
backup folder --overwrite → folder exists and is not a file.
backup /dev/null --overwrite → /dev/null exists and is not a file.
backup missing/copy.db → There is no folder missing.
backup books.db --overwrite → books.db is part of the store: choose another file.
backup same.db --overwrite → same.db is part of the store: choose another file.
backup ./books.db-journal → ./books.db-journal is part of the store: choose another file.
backup log.db --overwrite → log.db is part of the store: choose another file.
backup lost.db → There is no folder ${folder}/nowhere.
backup gone.db → ${folder}/gone.db-wal exists and may hold books: --overwrite removes it.
backup plain.db --overwrite → plain.db is no database, but ${folder}/plain.db-journal is there: move them away, or choose another file.
backup busy.db --overwrite → busy.db is in use: stop the program that has it open, or choose another file.
backup newer.db --overwrite → newer.db cannot be locked: attempt to write a readonly database: choose another file.
DB_URL=sqlite:none.db backup copy.db → DB_URL: there is no catalogue at sqlite:none.db.
DB_URL=postgres://a backup copy.db → DB_URL names a PostgreSQL store: back it up with pg_dump or pg_basebackup.
DB_URL=sqlite:there.db backup copy.db → No backup was made of sqlite:there.db: file is not a database.
restore none.db/none.db --overwrite → none.db/none.db does not exist.
restore folder --overwrite → folder is not a file.
restore books.db --overwrite → books.db is part of the store: choose a backup.
DB_URL=sqlite:gone.db restore cut.db → DB_URL: sqlite:gone.db is missing, but ${folder}/gone.db-wal exists and may hold books: move it away.
DB_URL=sqlite:pipe restore cut.db --overwrite → DB_URL: sqlite:pipe is not a file.
DB_URL=sqlite:full.db restore cut.db --overwrite → sqlite:full.db was not restored: database disk image is malformed.
DB_URL=sqlite:full.db restore bent.db --overwrite → sqlite:full.db was not restored: it is damaged (Freelist: size is 0 but should be 7).
DB_URL=sqlite:full.db restore there.db --overwrite → sqlite:full.db was not restored: file is not a database.
DB_URL=sqlite:full.db restore other.db --overwrite → sqlite:full.db was not restored: there is no catalogue in it.
DB_URL=sqlite:full.db restore similar.db --overwrite → sqlite:full.db was not restored: its table "books" does not belong to this service.
DB_URL=sqlite:there.db restore cut.db --overwrite → DB_URL: sqlite:there.db cannot be replaced: file is not a database. If it is damaged, stop the service, move it away, and restore again.
DB_URL=postgres://a restore cut.db → DB_URL names a PostgreSQL store: restore it with pg_restore or psql.`;

test('a backup or restore that is impossible is refused in one sentence, and all files stay as they were', async () => {
  const folder = await folderWithStore(3);
  const open = ['books.db', 'busy.db'].map((name) => {
    if (name !== 'books.db') fs.copyFileSync(join(folder, 'books.db'), join(folder, name));
    const db = new DatabaseSync(join(folder, name)); // so that there is a log and its index
    db.exec('select * from books');
    return db;
  });
  fs.mkdirSync(join(folder, 'folder'));
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  const bytes = fs.readFileSync(join(folder, 'books.db'));
  const newer = Buffer.from(bytes).fill(3, 18, 19); // a version of the format that SQLite only reads
  const bent = Buffer.from(bytes);
  bent.writeUInt32BE(7, 36); // the number of free pages, which is 0: only this check notices
  const copies = { 'full.db': bytes, 'newer.db': newer, 'bent.db': bent, 'cut.db': bytes.subarray(0, -4096) };
  for (const [name, content] of Object.entries(copies)) fs.writeFileSync(join(folder, name), content);
  for (const name of ['there.db', 'plain.db', 'plain.db-journal', 'gone.db-wal'])
    fs.writeFileSync(join(folder, name), 'id,title,author,year\n'.repeat(100));
  execute(join(folder, 'other.db'), 'create table films (id integer)');
  execute(join(folder, 'similar.db'), 'create table books (id text, title text)');
  fs.linkSync(join(folder, 'books.db'), join(folder, 'same.db'));
  fs.symlinkSync('books.db-wal', join(folder, 'log.db'));
  fs.symlinkSync('nowhere/copy.db', join(folder, 'lost.db'));
  const before = contents(folder);
  for (const line of refusals(folder).trim().split('\n')) {
    const [, dbUrl, args = '', sentence = ''] = /^(?:DB_URL=(\S+) )?(.+) → (.+)$/.exec(line) ?? [];
    assert.deepEqual(await outcome(folder, args, dbUrl), refusedWith(sentence));
  }
  assert.deepEqual(contents(folder), before);
  assert.deepEqual(years(join(folder, 'full.db')), [1, 2, 3]);
  for (const db of open) db.close();
  const toPipe = await outcome(folder, 'backup -');
  assert.deepEqual([toPipe.code, toPipe.stderr.split('\n').length], [2, 2]);
  assert.equal((await outcome(folder, 'backup there.db --overwrite')).code, 0);
  assert.deepEqual(years(join(folder, 'there.db')), [1, 2, 3]);
});

describe('backup', () => {
  test('has the permissions of the store, and is a single file', async () => {
    const folder = await folderWithStore(3);
    fs.chmodSync(join(folder, 'books.db'), 0o640);
    const stdout = `3 books backed up to copy?.db, verified (sha256 ${THREE}).\n`;
    assert.deepEqual(await outcome(folder, 'backup copy?.db'), { code: 0, stdout, stderr: '' });
    assert.equal(fs.statSync(join(folder, 'copy?.db')).mode & 0o777, 0o640);
    assert.deepEqual(names(folder), ['books.db', 'copy?.db']);
    if (process.getuid?.() !== 0) return; // nobody else may give files away
    fs.mkdirSync(join(folder, 'theirs'));
    for (const name of ['books.db', 'theirs']) fs.chownSync(join(folder, name), 61184, 61184);
    for (const [copy, owner, permissions] of [
      ['theirs/copy.db', 61184, 0o640],
      ['copy.db', 0, 0o600],
    ] as const) {
      assert.equal((await outcome(folder, `backup ${copy}`)).code, 0);
      const { uid, mode } = fs.statSync(join(folder, copy));
      assert.deepEqual([uid, mode & 0o777], [owner, permissions]);
    }
  });

  /** Copies the store of a folder to `copy.db` there, by the module. */
  async function copyIn(folder: string, onProgress: OnProgress): Promise<string> {
    const copy = join(folder, 'copy.db');
    fs.writeFileSync(copy, '');
    using store = new DatabaseSync(join(folder, 'books.db'));
    await copyCatalogue(store, copy, onProgress);
    return copy;
  }

  test('shows one moment of a store, although others write to it between its steps', async () => {
    const folder = await folderWithStore(150, 20_000); // 3 MB: several steps
    let writes = 0;
    const copy = await copyIn(folder, (unit) => {
      if (unit !== 'pages copied' || writes === 2) return;
      writes += 1;
      execute(join(folder, 'books.db'), `update books set year = -${writes} where id in (1, 150)`); // at both ends
    });
    assert.equal(writes, 2);
    assert.deepEqual([years(copy)[0], years(copy)[149]], [1, 150]);
  });

  test('is compared with the store to its last page, and fails where it differs', async () => {
    const folder = await folderWithStore(501); // more than are compared at a time
    const steps: unknown[] = [];
    const copy = await copyIn(folder, (...step) => steps.push(step));
    const pages = fs.statSync(copy).size / 4096;
    assert.deepEqual(steps.at(-1), ['pages verified', pages, pages]);
    const altered = copyIn(folder, (unit, done, total) => {
      if (unit === 'pages verified' && done < total)
        execute(copy, 'update books set year = 0 where id = 501');
    });
    await assert.rejects(altered, { message: 'the copy differs from the store' });
  });

  test('rolls a write back during which a process died, outside of WAL mode', async () => {
    const folder = await folderWithStore(50, 20_000);
    const half = "begin; update books set title = 'half', year = 0";
    writeAndDie(join(folder, 'books.db'), `pragma journal_mode = delete; pragma cache_size = 1; ${half}`);
    copyBeside(folder, '-journal', 'other.db');
    const { stdout: exported } = await outcome(folder, 'export', 'sqlite:other.db');
    const { stdout } = await outcome(folder, 'backup copy.db');
    assert.equal(stdout, `50 books backed up to copy.db, verified (sha256 ${sha256(exported)}).\n`);
    assert.ok(!exported.includes('half'));
  });

  for (const option of ['', ' --overwrite']) {
    test(`leaves a store that is started at its place meanwhile${option}`, async (context) => {
      const folder = await folderWithStore(3);
      const [url, copy, held] = [`sqlite:${folder}/books.db`, join(folder, 'copy.db'), holdHalfWay(context)];
      const ended = command(`backup ${copy}${option}`, url);
      await held.until(ended);
      const service = await startTestService(`sqlite:${copy}`);
      context.after(() => service.stop());
      const book = await service.client.create({ title: 'acknowledged' });
      held.release();
      assert.deepEqual(await ended, refusedWith(`${copy} already exists: --overwrite replaces it.`));
      assert.ok(fs.existsSync(`${copy}-wal`));
      assert.deepEqual(await service.client.list(), [book]);
      assert.equal((await service.client.create({ year: 2 })).id, 2); // which it refuses in another file
    });
  }

  test('no program begins a store where one is put, by a backup or a restore', async (context) => {
    for (const [args, target, url] of [
      ['backup copy.db --overwrite', 'copy.db', 'sqlite:books.db'],
      ['restore books.db', 'new.db', 'sqlite:new.db'],
    ] as const) {
      const folder = await folderWithStore(3);
      if (target === 'copy.db') fs.writeFileSync(join(folder, target), '');
      const held = holdHalfWay(context);
      const ended = outcome(folder, args, url);
      await held.until(ended);
      const other = new DatabaseSync(join(folder, target), { timeout: 0 });
      context.after(() => other.close());
      assert.throws(() => other.exec('pragma journal_mode = wal'), { message: 'database is locked' });
      held.release();
      assert.equal((await ended).code, 0);
      assert.throws(() => other.exec('pragma journal_mode = wal'), { message: /readonly/ });
      assert.deepEqual(years(join(folder, target)), [1, 2, 3]);
    }
  });

  test('removes what killed ones have left, and nothing else', async () => {
    const folder = await folderWithStore(3);
    for (const suffix of ['0123456789ab.unfinished', '0123456789ab.unfinished-journal', 'unfinished'])
      fs.writeFileSync(join(folder, `copy.db.${suffix}`), 'the last one is not ours');
    fs.mkdirSync(join(folder, 'copy.db.ba9876543210.unfinished')); // cannot be removed
    assert.equal((await outcome(folder, 'backup copy.db')).code, 0);
    const left = ['copy.db', 'copy.db.ba9876543210.unfinished', 'copy.db.unfinished'];
    assert.deepEqual(names(folder), ['books.db', ...left]);
  });

  test('never has the log that an older backup has left', async () => {
    const folder = await folderWithStore(3);
    const url = 'sqlite:restored.db';
    for (const isThere of [true, false]) {
      assert.equal((await outcome(folder, 'backup copy.db --overwrite')).code, 0);
      leaveLog(join(folder, 'copy.db'), 'pragma journal_mode = wal; delete from books');
      if (!isThere) fs.rmSync(join(folder, 'copy.db'));
      assert.equal((await outcome(folder, 'backup copy.db --overwrite')).code, 0);
      assert.deepEqual(names(folder), ['books.db', 'copy.db']);
      const { stdout } = await outcome(folder, 'restore copy.db --overwrite', url);
      assert.equal(stdout, `3 books restored to sqlite:restored.db (sha256 ${THREE}).\n`);
      fs.rmSync(join(folder, 'restored.db'));
    }
    leaveLog(join(folder, 'books.db'), 'delete from books');
    fs.renameSync(join(folder, 'books.db-wal'), join(folder, 'copy.db-wal'));
    const { code, stderr } = await outcome(folder, 'restore copy.db', url);
    assert.equal(code, 1);
    assert.match(stderr, /: \S+\/copy\.db-wal is not its log, and would change it: [^\n]+\n$/);
  });

  test('goes through a symbolic link, also to a file that is not there yet', async () => {
    const folder = await folderWithStore(3);
    fs.mkdirSync(join(folder, 'disk'));
    fs.symlinkSync('disk/copy.db', join(folder, 'link.db'));
    for (const args of ['backup link.db', 'backup link.db --overwrite']) {
      assert.equal((await outcome(folder, args)).code, 0);
      assert.deepEqual(fs.readdirSync(join(folder, 'disk')), ['copy.db']);
    }
    fs.symlinkSync('disk/new.db', join(folder, 'store.db'));
    assert.equal((await outcome(folder, 'restore link.db', 'sqlite:store.db')).code, 0);
    assert.deepEqual(years(join(folder, 'disk/new.db')), [1, 2, 3]);
  });
});

describe('restore', () => {
  test('never while a service runs, over books only with --overwrite, and new ids follow the old ones', async (context) => {
    const folder = await folderWithStore(3);
    const [store, copy] = [join(folder, 'books.db'), join(folder, 'copy.db')];
    fs.chmodSync(store, 0o640);
    const service = await startTestService(`sqlite:${store}`);
    context.after(() => service.stop());
    const { id } = await service.client.create({ year: 4 });
    await service.client.request('DELETE', `/book/${id}`);
    assert.equal((await outcome(folder, 'backup copy.db')).code, 0);
    await service.client.create({ year: 5 });
    const restore = (option = '') => outcome(folder, `restore copy.db${option}`);
    const inUse = refusedWith('DB_URL: sqlite:books.db is in use: stop the service first.');
    assert.deepEqual(await restore(' --overwrite'), inUse);
    assert.equal((await service.client.list()).length, 4);
    await service.stop();
    const hasBooks = refusedWith('DB_URL: sqlite:books.db has books already: --overwrite replaces it.');
    assert.deepEqual(await restore(), hasBooks);
    assert.deepEqual(years(store), [1, 2, 3, 5]);
    leaveLog(store, 'pragma journal_mode = wal; delete from books');
    const stdout = `3 books restored to sqlite:books.db (sha256 ${THREE}).\n`;
    assert.deepEqual(await restore(' --overwrite'), { code: 0, stdout, stderr: '' });
    assert.deepEqual(fs.readdirSync(folder), ['books.db', 'copy.db']);
    execute(copy, 'pragma journal_mode = wal'); // as after a look into it
    fs.chmodSync(copy, 0o444);
    assert.equal((await restore(' --overwrite')).stdout, stdout);
    assert.equal(fs.statSync(store).mode & 0o777, 0o640);
    using reader = new DatabaseSync(store, { readOnly: true });
    reader.exec('begin; select * from books'); // which no start waits for, since it need not change the mode
    assert.equal(reader.prepare('pragma journal_mode').get()?.journal_mode, 'wal');
    const next = await startTestService(`sqlite:${store}`);
    context.after(() => next.stop());
    assert.equal((await next.client.list()).length, 3);
    assert.equal((await next.client.create({ year: 6 })).id, 5);
  });

  test('of copies that other programs made: with a log beside them, in use, or with an older table', async () => {
    const folder = await folderWithStore(3);
    const [store, restored] = [join(folder, 'books.db'), join(folder, 'new/folder/new.db')];
    leaveLog(store, 'insert into books (year) values (4)');
    fs.mkdirSync(join(folder, 'kept'));
    copyBeside(folder, '-wal', 'kept/copy.db');
    const older = "create table books (id integer primary key autoincrement, title text not null default '')";
    execute(join(folder, 'kept/old.db'), `${older}; insert into books (title) values ('Emma')`);
    fs.symlinkSync('kept/copy.db', join(folder, 'link.db'));
    const before = contents(join(folder, 'kept'));
    const restore = (copy: string) =>
      outcome(folder, `restore ${copy} --overwrite`, 'sqlite:new/folder/new.db');
    for (const copy of ['kept/copy.db', 'link.db']) {
      assert.equal((await restore(copy)).code, 0);
      assert.deepEqual(years(restored), [1, 2, 3, 4], copy);
    }
    const digest = sha256('id,title,author,year\n1,"Emma","",0\n');
    const stdout = `1 book restored to sqlite:new/folder/new.db (sha256 ${digest}).\n`;
    assert.equal((await restore('kept/old.db')).stdout, stdout);
    assert.deepEqual(contents(join(folder, 'kept')), before);
    assert.deepEqual(fs.readdirSync(join(folder, 'new/folder')), ['new.db']);
    using open = new DatabaseSync(store); // in use: SQLite finds the files that belong to it
    open.exec('pragma wal_autocheckpoint = 0; insert into books (year) values (5)');
    assert.equal((await restore('books.db')).code, 0);
    assert.deepEqual(years(restored), [1, 2, 3, 4, 5]);
  });

  test('a service that starts meanwhile starts on the new store or is refused, and never starts on the old one', async (context) => {
    for (const isEmpty of [false, true]) {
      const folder = await folderWithStore(3);
      const store = join(folder, 'books.db');
      if (isEmpty) fs.writeFileSync(store, '');
      await fill(`sqlite:${folder}/new.db`, manyBooks(5));
      const locked = lockExclusively(store);
      const starting = startTestService(`sqlite:${store}`);
      const { ino } = fs.statSync(store);
      const fileOf = (fd: string) => fs.statSync(`/proc/self/fd/${fd}`, { throwIfNoEntry: false })?.ino;
      const descriptors = () => fs.readdirSync('/proc/self/fd').filter((fd) => fileOf(fd) === ino);
      await waitUntil(() => descriptors().length > 1, starting); // each attempt has it open for a moment
      fs.renameSync(join(folder, 'new.db'), store);
      locked?.close();
      const service = await starting.catch((refusal: Error) => {
        assert.match(refusal.message, / cannot be opened: attempt to write a readonly database\.$/); // the old one
        return startTestService(`sqlite:${store}`);
      });
      context.after(() => service.stop());
      assert.equal((await service.client.create({})).id, 6);
      assert.equal(years(store).length, 6);
    }
  });
});

/** Runs a command in a folder. */
function outcome(folder: string, words: string, dbUrl = 'sqlite:books.db') {
  return command(words, dbUrl, folder);
}

/** Makes a store of books with the years 1, 2 …, as a service leaves it when it exits. */
async function folderWithStore(count: number, titleLength = 5): Promise<string> {
  const folder = temporaryFolder(STORES_FOLDER);
  const title = 'title'.padEnd(titleLength, 'x');
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  await fill(
    `sqlite:${folder}/books.db`,
    ids.map((id) => ({ id, title, author: 'a', year: id })),
  );
  return folder;
}

/** Copies the store of a folder with the file of its log. */
function copyBeside(folder: string, log: '-wal' | '-journal', name: string): void {
  for (const suffix of ['', log])
    fs.copyFileSync(join(folder, `books.db${suffix}`), join(folder, `${name}${suffix}`));
}

function execute(file: string, sql: string): void {
  using db = new DatabaseSync(file);
  db.exec(sql);
}

/** The years of all books, once SQLite has rolled back what a dead process had started. */
function years(file: string): unknown[] {
  using db = new DatabaseSync(file);
  return db
    .prepare('select year from books order by id')
    .all()
    .map(({ year }) => year);
}

/** The files of a folder, except those that SQLite keeps beside an open store. */
function names(folder: string): string[] {
  return fs.readdirSync(folder).filter((name) => !/^books\.db-(wal|shm)$/.test(name));
}

/** Each file of a folder, and the SHA-256 of what it has; but a lock changes its `-shm`, and the mode of `full.db`. */
function contents(folder: string): unknown {
  const files = fs.readdirSync(folder, { withFileTypes: true });
  return files.map((file) => {
    const hasContent = file.isFile() && !/-shm$|^full/.test(file.name);
    return [file.name, hasContent && sha256(fs.readFileSync(join(folder, file.name)))];
  });
}

function sha256(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Writes in a process that then dies, so that the write is in the log. */
function leaveLog(file: string, sql: string): void {
  writeAndDie(file, sql);
  assert.ok(fs.statSync(`${file}-wal`).size > 0);
}

function writeAndDie(file: string, sql: string): void {
  const script = `const db = new (require('node:sqlite').DatabaseSync)(process.argv[1]);
    db.exec(process.argv[2]); process.kill(process.pid, 'SIGKILL')`;
  spawnSync(process.execPath, ['-e', script, file, sql]);
}
