// Backup and restore of the SQLite store: beside others that write, from and to files of all kinds, and the nightly script.
// Commands that are interrupted are in running.test.ts, killed ones in test/release/power.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { copyCatalogue, lockExclusively, type OnProgress } from '../../src/stores/sqlite/backup.ts';
import { booksOf, fill, manyBooks } from '../support/books.ts';
import { refusedWith } from '../support/command.ts';
import { holdHalfWay } from '../support/half-way.ts';
import { command } from '../support/importing.ts';
import { pathTo } from '../support/repository.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import { STORES_FOLDER } from '../support/stores-folder.ts';
import { waitUntil } from '../support/wait.ts';

/** Of the export of three books. */
const THREE = sha256(
  [1, 2, 3].map((at) => `{"id":${at},"title":"title","author":"a","year":${at}}\n`).join(''),
);

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
backup ./books.db --overwrite → ./books.db is the store: choose another file.
backup link.db --overwrite → link.db is the store: choose another file.
backup lost.db → ${folder}/lost.db is a link to a file or folder that is missing.
backup gone.db --overwrite → ${folder}/gone.db-wal exists and may hold books: end the program that uses it and move it away, or choose another file.
backup half.db --overwrite → ${folder}/half.db-journal exists and may hold books: end the program that uses it and move it away, or choose another file.
backup busy.db --overwrite → ${folder}/busy.db-wal exists and may hold books: end the program that uses it and move it away, or choose another file.
DB_URL=sqlite:none.db backup copy.db → DB_URL: there is no catalogue at sqlite:none.db.
DB_URL=postgres://a backup copy.db → DB_URL names a PostgreSQL store: back it up with pg_dump or pg_basebackup.
DB_URL=sqlite:there.db backup copy.db → No backup was made of sqlite:there.db: file is not a database.
DB_URL=sqlite:full.db restore none.db --overwrite → sqlite:full.db was not restored: none.db: no such file or directory.
DB_URL=sqlite:full.db restore folder --overwrite → sqlite:full.db was not restored: illegal operation on a directory.
DB_URL=sqlite:full.db restore cut.db → ${folder}/full.db already exists: --overwrite replaces it.
restore link.db --overwrite → link.db is the store: choose a backup.
DB_URL=sqlite:gone.db restore cut.db --overwrite → ${folder}/gone.db-wal exists and may hold books: end the program that uses it and move it away, or choose another file.
DB_URL=sqlite:full.db restore used.db --overwrite → sqlite:full.db was not restored: ${folder}/busy.db-wal exists, so used.db may be in use or incomplete: make a backup of it, and restore that.
DB_URL=sqlite:full.db restore half.db --overwrite → sqlite:full.db was not restored: ${folder}/half.db-journal exists, so half.db may be in use or incomplete: make a backup of it, and restore that.
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
  const bytes = fs.readFileSync(join(folder, 'books.db'));
  const bent = Buffer.from(bytes);
  bent.writeUInt32BE(7, 36); // the number of free pages, which is 0: only this check notices
  const copies = { 'full.db': bytes, 'bent.db': bent, 'cut.db': bytes.subarray(0, -4096) };
  for (const [name, content] of Object.entries(copies)) fs.writeFileSync(join(folder, name), content);
  for (const name of ['there.db', 'half.db', 'half.db-journal', 'gone.db-wal'])
    fs.writeFileSync(join(folder, name), 'id,title,author,year\n'.repeat(100));
  execute(join(folder, 'other.db'), 'create table films (id integer)');
  execute(join(folder, 'similar.db'), 'create table books (id text, title text)');
  fs.symlinkSync('books.db', join(folder, 'link.db'));
  fs.symlinkSync('busy.db', join(folder, 'used.db'));
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
  test('is a single file, which belongs to the owner of its folder', async () => {
    const folder = await folderWithStore(3);
    const stdout = `3 books backed up to copy?.db, verified (sha256 ${THREE}).\n`;
    assert.deepEqual(await outcome(folder, 'backup copy?.db'), { code: 0, stdout, stderr: '' });
    assert.deepEqual(names(folder), ['books.db', 'copy?.db']);
    if (process.getuid?.() !== 0) return; // nobody else may give files away
    fs.mkdirSync(join(folder, 'theirs'));
    for (const name of ['books.db', 'theirs']) fs.chownSync(join(folder, name), 61184, 61184);
    for (const [copy, owner] of [
      ['theirs/copy.db', 61184],
      ['copy.db', 0],
    ] as const) {
      assert.equal((await outcome(folder, `backup ${copy}`)).code, 0);
      const { uid, gid, mode } = fs.statSync(join(folder, copy));
      assert.deepEqual([uid, gid, mode & 0o777], [owner, owner, 0o600]);
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
    const isHeld: unknown[] = [];
    const copy = await copyIn(folder, (unit) => {
      using store = new DatabaseSync(join(folder, 'books.db'), { timeout: 0 });
      if (unit === 'ids read') isHeld.push(store.prepare('pragma wal_checkpoint(truncate)').get()?.busy);
      if (unit !== 'pages copied' || writes === 2) return;
      writes += 1;
      execute(join(folder, 'books.db'), `update books set year = -${writes} where id in (1, 150)`); // at both ends
    });
    assert.equal(writes, 2);
    assert.deepEqual([isHeld[0], isHeld.at(-1)], [1, 0]); // the log, which can be emptied once the store is read
    assert.deepEqual([years(copy)[0], years(copy)[149]], [1, 150]);
  });

  test('is compared with the store to its last book, and fails where it differs', async () => {
    const folder = await folderWithStore(501); // more than are compared at a time
    const steps: unknown[] = [];
    const copy = await copyIn(folder, (...step) => steps.push(step));
    assert.deepEqual(steps.at(-1), ['ids read', 501, 501]);
    const altered = copyIn(folder, (unit) => {
      if (unit === 'ids read') execute(copy, 'update books set year = 0 where id = 501');
    });
    await assert.rejects(altered, { message: 'the copy differs from the store' });
  });

  test('rolls a write back during which a process died, outside of WAL mode', async () => {
    const folder = await folderWithStore(50, 20_000);
    const half = "begin; update books set title = 'half', year = 0";
    writeAndDie(join(folder, 'books.db'), `pragma journal_mode = delete; pragma cache_size = 1; ${half}`);
    copyBeside(folder, '-journal', 'other.db');
    const kept = (await booksOf(`sqlite:${folder}/other.db`))
      .map((book) => `${JSON.stringify(book)}\n`)
      .join('');
    const { stdout } = await outcome(folder, 'backup copy.db');
    assert.equal(stdout, `50 books backed up to copy.db, verified (sha256 ${sha256(kept)}).\n`);
    assert.ok(!kept.includes('half'));
  });

  for (const words of ['backup copy.db', 'backup copy.db --overwrite', 'restore books.db --overwrite']) {
    test(`no file replaces a store that is started at its place meanwhile: ${words}`, async (context) => {
      const folder = await folderWithStore(3);
      const [copy, held] = [join(folder, 'copy.db'), holdHalfWay(context)];
      const store = join(folder, words.startsWith('backup') ? 'books.db' : 'copy.db');
      const ended = command(words.replace(/\S+\.db/, `${folder}/$&`), `sqlite:${store}`);
      await held.until(ended);
      const service = await startTestService(`sqlite:${copy}`);
      const book = await service.client.create({ title: 'acknowledged' });
      held.release();
      const reason = words.endsWith('overwrite') ? `${copy}-wal exists and may ` : `${copy} already exists: `;
      const { code, stderr } = await ended;
      assert.deepEqual([code, stderr.slice(0, reason.length)], [1, reason]);
      assert.ok(fs.existsSync(`${copy}-wal`));
      assert.deepEqual(await service.client.list(), [book]);
      assert.equal((await service.client.create({ year: 2 })).id, 2); // which it refuses in another file
    });
  }

  test('removes what killed ones have left, and nothing else', async () => {
    const folder = await folderWithStore(3);
    for (const suffix of ['0123456789ab.unfinished', '0123456789ab.unfinished-journal', 'unfinished'])
      fs.writeFileSync(join(folder, `copy.db.${suffix}`), 'the last one is not ours');
    assert.equal((await outcome(folder, 'backup copy.db')).code, 0);
    assert.deepEqual(names(folder), ['books.db', 'copy.db', 'copy.db.unfinished']);
  });

  test('goes through symbolic links', async () => {
    const folder = await folderWithStore(3);
    fs.mkdirSync(join(folder, 'disk'));
    for (const name of ['copy.db', 'store.db']) {
      fs.writeFileSync(join(folder, 'disk', name), '');
      fs.symlinkSync(`disk/${name}`, join(folder, name));
    }
    assert.equal((await outcome(folder, 'backup copy.db --overwrite')).code, 0);
    assert.equal((await outcome(folder, 'restore copy.db --overwrite', 'sqlite:store.db')).code, 0);
    assert.deepEqual(years(join(folder, 'disk/store.db')), [1, 2, 3]);
    assert.deepEqual(fs.readdirSync(join(folder, 'disk')), ['copy.db', 'store.db']);
  });
});

describe('restore', () => {
  test('never while a service runs, over a store only with --overwrite, and new ids follow the old ones', async () => {
    const folder = await folderWithStore(3);
    const [store, copy] = [join(folder, 'books.db'), join(folder, 'copy.db')];
    fs.chmodSync(store, 0o640);
    const service = await startTestService(`sqlite:${store}`);
    const { id } = await service.client.create({ year: 4 });
    await service.client.request('DELETE', `/book/${id}`);
    assert.equal((await outcome(folder, 'backup copy.db')).code, 0);
    await service.client.create({ year: 5 });
    const restore = (option = '') => outcome(folder, `restore copy.db${option}`);
    const inUse = refusedWith('DB_URL: sqlite:books.db is in use: stop the service first.');
    assert.deepEqual(await restore(' --overwrite'), inUse);
    assert.equal((await service.client.list()).length, 4);
    await service.stop();
    assert.deepEqual(await restore(), refusedWith(`${store} already exists: --overwrite replaces it.`));
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
    assert.equal((await next.client.list()).length, 3);
    assert.equal((await next.client.create({ year: 6 })).id, 5);
  });

  test('brings a backup of an older version up to date, in a new folder', async () => {
    const folder = temporaryFolder();
    const older = "create table books (id integer primary key autoincrement, title text not null default '')";
    execute(join(folder, 'old.db'), `${older}; insert into books (title) values ('Emma')`);
    const before = contents(folder);
    const digest = sha256('{"id":1,"title":"Emma","author":"","year":0}\n');
    const stdout = `1 book restored to sqlite:${folder}/a/b/new.db (sha256 ${digest}).\n`;
    const url = `sqlite:${folder}/a/b/new.db`;
    assert.deepEqual(await outcome(folder, 'restore old.db', url), { code: 0, stdout, stderr: '' });
    assert.deepEqual(fs.readdirSync(join(folder, 'a/b')), ['new.db']);
    fs.rmSync(join(folder, 'a'), { recursive: true });
    assert.deepEqual(contents(folder), before);
  });

  test('no program begins on the store that is replaced', async (context) => {
    for (const name of ['books.db', 'empty.db']) {
      const folder = await folderWithStore(3);
      fs.copyFileSync(join(folder, 'books.db'), join(folder, 'kept.db'));
      if (name === 'empty.db') fs.writeFileSync(join(folder, name), '');
      const held = holdHalfWay(context);
      const ended = outcome(folder, 'restore kept.db --overwrite', `sqlite:${name}`);
      await held.until(ended);
      using other = new DatabaseSync(join(folder, name), { timeout: 0 });
      assert.throws(() => other.exec('pragma journal_mode = wal'), { message: 'database is locked' });
      held.release();
      assert.equal((await ended).code, 0);
      assert.throws(() => other.exec('pragma journal_mode = wal'), { message: /readonly/ });
      assert.deepEqual(years(join(folder, name)), [1, 2, 3]);
    }
  });

  test('a service that starts meanwhile starts on the new store or is refused, and never starts on the old one', async () => {
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
