// Backup and restore of the SQLite store: beside others that write, from and to files of all kinds, and the nightly script.
// Commands that are interrupted are in running.test.ts, killed ones in test/release/power.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { copyCatalogue } from '../../src/stores/sqlite/backup.ts';
import { fill } from '../support/books.ts';
import { HERE_ONLY, refusedWith, runCommand } from '../support/command.ts';
import { holdHalfWay } from '../support/half-way.ts';
import { pathTo } from '../support/repository.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import { STORES_FOLDER } from '../support/stores-folder.ts';

/** SHA-256 of the export of three books. */
const THREE = sha256(
  'id,title,author,year\n1,"title","author",1\n2,"title","author",2\n3,"title","author",3\n',
);

type Refusals = readonly (readonly [sentence: string, args: string, dbUrl?: string])[];

/** Files of the folder `etc`, and what the nightly script says of them: the store that they name. */
const NAMED = [
  ['environment', '', ',\n'],
  [
    'environment',
    'DB_URL = a\n',
    'etc/environment: write DB_URL=… without blanks before or after the name, and with a value.\n',
  ],
  ['environment', 'DB_URL_FILE=url\n', ',url\n'],
  ['db_url', 'a', ',etc/db_url\n'],
  ['environment', 'PORT=80\nDB_URL=right\n', 'right,\n'],
] as const;

test('the nightly script backs up the store of the service, then removes its own old backups', () => {
  const folder = temporaryFolder();
  const own = Array.from({ length: 15 }, (_, day) => `books-2020-01-${10 + day}.db`);
  const leftover = 'books-2020-01-02.db.0123456789ab.unfinished-journal';
  const theirs = ['books-before-the-upgrade.db', 'books-metadata.db', 'older', 'older/books-2020-01-01.db'];
  for (const name of ['etc', 'deploy', 'disk/older']) mkdirSync(join(folder, name), { recursive: true });
  symlinkSync('disk', join(folder, 'backups'));
  for (const [position, name] of [...own, leftover, ...theirs].entries()) {
    if (name !== 'older') writeFileSync(join(folder, 'disk', name), '');
    utimesSync(join(folder, 'disk', name), position, position);
  }
  const script = readFileSync(pathTo('deploy/backup.sh'), 'utf8');
  const path = join(folder, 'deploy/backup.sh');
  writeFileSync(path, script.replace('etc=/etc/book-catalogue', 'etc=etc'), { mode: 0o755 });
  // In place of the command. It fails unless the store is `right`.
  const command =
    '#!/bin/sh\necho "$DB_URL,$DB_URL_FILE"; [ "$1,$3,$DB_URL" = backup,--overwrite,right ] && touch "$2"\n';
  writeFileSync(join(folder, 'book-catalogue'), command, { mode: 0o755 });
  const cron = readFileSync(pathTo('deploy/book-catalogue.cron'), 'utf8');
  const line = /^15 3 \* \* \* root (.+) >\/dev\/null$/m.exec(cron)?.[1] ?? '';
  const here = line
    .replace('/var/lib/book-catalogue', '.')
    .replace('/opt/book-catalogue/', './')
    .replace('/var/backups/book-catalogue', 'backups');
  for (const [file, content, said] of NAMED) {
    const before = readdirSync(join(folder, 'disk'), { recursive: true });
    writeFileSync(join(folder, 'etc', file), content);
    const env = { PATH: process.env.PATH };
    const { status, stdout, stderr } = spawnSync('sh', ['-c', here], { cwd: folder, env, encoding: 'utf8' });
    assert.equal(stdout + stderr, said);
    rmSync(join(folder, 'etc', file));
    if (status !== 0) assert.deepEqual(readdirSync(join(folder, 'disk'), { recursive: true }), before);
    else assert.equal(said, 'right,\n');
  }
  const left = readdirSync(join(folder, 'disk'), { recursive: true }).map(String);
  const [today] = left.filter((name) => ![...own, ...theirs].includes(name));
  assert.match(String(today), /^books-\d{4}-\d\d-\d\d\.db$/);
  assert.deepEqual(left.toSorted(), [...own.slice(2), ...theirs, today].toSorted()); // the newest 14
});

describe('backup', () => {
  test('has the permissions of the store, and is a single file', async () => {
    const folder = await folderWithStore(3);
    chmodSync(join(folder, 'books.db'), 0o640);
    const { code, stdout, stderr } = await outcome(folder, 'backup copy?.db');
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout, `3 books backed up to copy?.db, verified (sha256 ${THREE}).\n`);
    assert.equal(statSync(join(folder, 'copy?.db')).mode & 0o777, 0o640);
    assert.deepEqual(names(folder), ['books.db', 'copy?.db']);
    if (process.getuid?.() !== 0) return; // nobody else may give files away
    chownSync(join(folder, 'books.db'), 61184, 61184);
    mkdirSync(join(folder, 'theirs'));
    chownSync(join(folder, 'theirs'), 61184, 61184);
    for (const [copy, owner, permissions] of [
      ['theirs/copy.db', 61184, 0o640],
      ['copy.db', 0, 0o600],
    ] as const) {
      assert.equal((await outcome(folder, `backup ${copy}`)).code, 0);
      const { uid, mode } = statSync(join(folder, copy));
      assert.deepEqual([uid, mode & 0o777], [owner, permissions]);
    }
  });

  test('shows one moment of a store, although others write to it between its steps', async () => {
    const folder = await folderWithStore(150, 20_000); // 3 MB: several steps
    const [source, other] = [1, 2].map(() => new DatabaseSync(join(folder, 'books.db'))) as [
      DatabaseSync,
      DatabaseSync,
    ];
    writeFileSync(join(folder, 'copy.db'), '');
    let writes = 0;
    await copyCatalogue(source, join(folder, 'copy.db'), (unit) => {
      if (unit !== 'pages copied' || writes === 2) return;
      writes += 1;
      other.exec(`update books set year = -${writes} where id in (1, 150)`); // at both ends of the file
    });
    assert.equal(writes, 2);
    for (const db of [source, other]) db.close();
    const found = years(join(folder, 'copy.db'));
    assert.deepEqual([found[0], found[149]], [1, 150]);
  });

  test('rolls a write back during which a process died, outside of WAL mode', async () => {
    const folder = await folderWithStore(50, 20_000);
    writeAndDie(
      join(folder, 'books.db'),
      "pragma journal_mode = delete; pragma cache_size = 1; begin; update books set title = 'half', year = 0",
    );
    for (const suffix of ['', '-journal'])
      copyFileSync(join(folder, `books.db${suffix}`), join(folder, `other.db${suffix}`));
    const exported = await outcome(folder, 'export', 'sqlite:other.db');
    const { code, stdout } = await outcome(folder, 'backup copy.db');
    assert.deepEqual([exported.code, code], [0, 0]);
    assert.equal(stdout, `50 books backed up to copy.db, verified (sha256 ${sha256(exported.stdout)}).\n`);
    assert.ok(!exported.stdout.includes('half'));
  });

  const refusals = (folder: string): Refusals => [
    ['there.db already exists: --overwrite replaces it.', 'there.db'],
    ['folder exists and is not a file.', 'folder --overwrite'],
    ['/dev/null exists and is not a file.', '/dev/null --overwrite'],
    ['There is no folder missing.', 'missing/copy.db'],
    ['books.db is part of the store: choose another file.', 'books.db --overwrite'],
    ['same.db is part of the store: choose another file.', 'same.db --overwrite'],
    ['./books.db-journal is part of the store: choose another file.', './books.db-journal'],
    ['log.db is part of the store: choose another file.', 'log.db --overwrite'],
    [`There is no folder ${folder}/nowhere.`, 'lost.db'],
    [`${folder}/gone.db-wal exists and may hold books: --overwrite removes it.`, 'gone.db'],
    [
      `plain.db is no database, but ${folder}/plain.db-journal is there: move them away, or choose another file.`,
      'plain.db --overwrite',
    ],
    ['busy.db is in use: stop the program that has it open, or choose another file.', 'busy.db --overwrite'],
    [
      'newer.db cannot be locked: attempt to write a readonly database: choose another file.',
      'newer.db --overwrite',
    ],
    ['DB_URL: there is no catalogue at sqlite:none.db.', 'copy.db', 'sqlite:none.db'],
    ['DB_URL names a PostgreSQL store: back it up with pg_dump or pg_basebackup.', 'a.db', 'postgres://a'],
    ['No backup was made of sqlite:there.db: file is not a database.', 'copy.db', 'sqlite:there.db'],
  ];
  test('that is impossible is refused in one sentence, and all files stay as they were', async () => {
    const folder = await folderWithStore(3);
    const open = new DatabaseSync(join(folder, 'books.db')); // so that there is a log and its index
    open.exec('select * from books');
    for (const name of ['there.db', 'plain.db', 'plain.db-journal']) writeFileSync(join(folder, name), 'no');
    mkdirSync(join(folder, 'folder'));
    linkSync(join(folder, 'books.db'), join(folder, 'same.db'));
    symlinkSync('books.db-wal', join(folder, 'log.db'));
    symlinkSync('nowhere/copy.db', join(folder, 'lost.db'));
    writeFileSync(join(folder, 'gone.db-wal'), 'a log');
    copyFileSync(join(folder, 'books.db'), join(folder, 'busy.db'));
    const newer = readFileSync(join(folder, 'books.db'));
    newer[18] = 3; // a version of the format that SQLite only reads
    writeFileSync(join(folder, 'newer.db'), newer);
    const busy = new DatabaseSync(join(folder, 'busy.db'));
    busy.exec('select * from books');
    const before = contents(folder);
    for (const [sentence, args, dbUrl] of refusals(folder)) {
      const refused = await outcome(folder, `backup ${args}`, dbUrl);
      assert.deepEqual(refused, refusedWith(sentence));
    }
    assert.deepEqual(contents(folder), before);
    open.close();
    busy.close();
    const toPipe = await outcome(folder, 'backup -');
    assert.deepEqual([toPipe.code, toPipe.stderr.split('\n').length], [2, 2]);
    assert.equal((await outcome(folder, 'backup there.db --overwrite')).code, 0);
    assert.deepEqual(years(join(folder, 'there.db')), [1, 2, 3]);
  });

  for (const options of [[], ['--overwrite']]) {
    test(`leaves a store that is started at its place meanwhile; ${options[0] ?? 'no option'}`, {
      skip: HERE_ONLY,
    }, async (context) => {
      const folder = await folderWithStore(3);
      const [url, copy] = [`sqlite:${folder}/books.db`, join(folder, 'copy.db')];
      const held = holdHalfWay(context);
      const ended = runCommand(['backup', copy, ...options], { DB_URL: url });
      await held.until(ended);
      const service = await startTestService(`sqlite:${copy}`);
      context.after(() => service.stop());
      const book = await service.client.create({ title: 'acknowledged' });
      held.release();
      assert.deepEqual(await ended, refusedWith(`${copy} already exists: --overwrite replaces it.`));
      assert.ok(existsSync(`${copy}-wal`));
      assert.deepEqual(await service.client.list(), [book]);
      assert.equal((await service.client.create({ year: 2 })).id, 2); // which it refuses in another file
    });
  }

  test('no program begins a store where one is put, by a backup or a restore', {
    skip: HERE_ONLY,
  }, async (context) => {
    for (const [args, target, url] of [
      ['backup copy.db --overwrite', 'copy.db', 'sqlite:books.db'],
      ['restore books.db', 'new.db', 'sqlite:new.db'],
    ] as const) {
      const folder = await folderWithStore(3);
      if (target === 'copy.db') writeFileSync(join(folder, target), '');
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
    for (const suffix of ['', '-journal'])
      writeFileSync(join(folder, `copy.db.0123456789ab.unfinished${suffix}`), 'of a run that was killed');
    writeFileSync(join(folder, 'copy.db.unfinished'), 'not ours');
    mkdirSync(join(folder, 'copy.db.ba9876543210.unfinished')); // cannot be removed
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
      if (!isThere) rmSync(join(folder, 'copy.db'));
      assert.equal((await outcome(folder, 'backup copy.db --overwrite')).code, 0);
      assert.deepEqual(names(folder), ['books.db', 'copy.db']);
      const { stdout } = await outcome(folder, 'restore copy.db --overwrite', url);
      assert.equal(stdout, `3 books restored to sqlite:restored.db (sha256 ${THREE}).\n`);
      rmSync(join(folder, 'restored.db'));
    }
    leaveLog(join(folder, 'books.db'), 'delete from books');
    renameSync(join(folder, 'books.db-wal'), join(folder, 'copy.db-wal'));
    const { code, stderr } = await outcome(folder, 'restore copy.db', url);
    assert.equal(code, 1);
    assert.match(stderr, /: \S+\/copy\.db-wal is not its log, and would change it: [^\n]+\n$/);
  });

  test('goes through a symbolic link, also to a file that is not there yet', async () => {
    const folder = await folderWithStore(3);
    mkdirSync(join(folder, 'disk'));
    symlinkSync('disk/copy.db', join(folder, 'link.db'));
    for (const args of ['backup link.db', 'backup link.db --overwrite']) {
      assert.equal((await outcome(folder, args)).code, 0);
      assert.deepEqual(readdirSync(join(folder, 'disk')), ['copy.db']);
    }
    symlinkSync('disk/new.db', join(folder, 'store.db'));
    assert.equal((await outcome(folder, 'restore link.db', 'sqlite:store.db')).code, 0);
    assert.deepEqual(years(join(folder, 'disk/new.db')), [1, 2, 3]);
  });

  test('is compared with the store to its last page, and fails where it differs', async () => {
    const folder = await folderWithStore(501); // more than are compared at a time
    const [store, copy] = [new DatabaseSync(join(folder, 'books.db')), join(folder, 'copy.db')];
    const steps: unknown[] = [];
    writeFileSync(copy, '');
    await copyCatalogue(store, copy, (...step) => steps.push(step));
    const pages = statSync(copy).size / 4096;
    assert.deepEqual(steps.at(-1), ['pages verified', pages, pages]);
    writeFileSync(copy, '');
    const altered = copyCatalogue(store, copy, (unit, done, total) => {
      if (unit === 'pages verified' && done < total)
        execute(copy, 'update books set year = 0 where id = 501');
    });
    await assert.rejects(altered, { message: 'the copy differs from the store' });
    store.close();
  });
});

describe('restore', () => {
  test('never while a service runs, over books only with --overwrite, and new ids follow the old ones', async (context) => {
    const folder = await folderWithStore(3);
    chmodSync(join(folder, 'books.db'), 0o640);
    const service = await startTestService(`sqlite:${folder}/books.db`);
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
    assert.deepEqual(years(join(folder, 'books.db')), [1, 2, 3, 5]);
    leaveLog(join(folder, 'books.db'), 'pragma journal_mode = wal; delete from books');
    const stdout = `3 books restored to sqlite:books.db (sha256 ${THREE}).\n`;
    assert.deepEqual(await restore(' --overwrite'), { code: 0, stdout, stderr: '' });
    assert.deepEqual(readdirSync(folder), ['books.db', 'copy.db']);
    execute(join(folder, 'copy.db'), 'pragma journal_mode = wal'); // as after a look into it
    chmodSync(join(folder, 'copy.db'), 0o444);
    assert.equal((await restore(' --overwrite')).stdout, stdout);
    assert.equal(statSync(join(folder, 'books.db')).mode & 0o777, 0o640);
    const reader = new DatabaseSync(join(folder, 'books.db'), { readOnly: true });
    context.after(() => reader.close());
    reader.exec('begin; select * from books'); // which no start waits for, since it need not change the mode
    assert.equal(reader.prepare('pragma journal_mode').get()?.journal_mode, 'wal');
    const next = await startTestService(`sqlite:${folder}/books.db`);
    context.after(() => next.stop());
    assert.equal((await next.client.list()).length, 3);
    assert.equal((await next.client.create({ year: 6 })).id, 5);
  });

  const refusals = (folder: string): Refusals => [
    ['none.db/none.db does not exist.', 'none.db/none.db'],
    ['folder is not a file.', 'folder'],
    [
      `DB_URL: sqlite:lonely.db is missing, but ${folder}/lonely.db-wal exists and may hold books: move it away.`,
      'cut.db',
      'sqlite:lonely.db',
    ],
    ['DB_URL: sqlite:pipe is not a file.', 'cut.db', 'sqlite:pipe'],
    ['books.db is part of the store: choose a backup.', 'books.db'],
    ['sqlite:books.db was not restored: database disk image is malformed.', 'cut.db'],
    ['sqlite:books.db was not restored: it is damaged (Freelist: size is 0 but should be 7).', 'bent.db'],
    ['sqlite:books.db was not restored: file is not a database.', 'text.db'],
    ['sqlite:books.db was not restored: there is no catalogue in it.', 'other.db'],
    ['sqlite:books.db was not restored: its table "books" does not belong to this service.', 'similar.db'],
    [
      'DB_URL: sqlite:text.db cannot be replaced: file is not a database. If it is damaged, stop the service, move it away, and restore again.',
      'cut.db',
      'sqlite:text.db',
    ],
    ['DB_URL names a PostgreSQL store: restore it with pg_restore or psql.', 'cut.db', 'postgres://a'],
  ];
  test('of a file that is not a backup is refused in one sentence, and the store stays as it was', async () => {
    const folder = await folderWithStore(3);
    assert.equal((await outcome(folder, 'backup cut.db')).code, 0);
    const bytes = readFileSync(join(folder, 'cut.db'));
    writeFileSync(join(folder, 'cut.db'), bytes.subarray(0, -4096));
    bytes.writeUInt32BE(7, 36); // the number of free pages, which is 0: only this check notices
    writeFileSync(join(folder, 'bent.db'), bytes);
    writeFileSync(join(folder, 'text.db'), 'id,title,author,year\n'.repeat(100));
    execute(join(folder, 'other.db'), 'create table films (id integer)');
    execute(join(folder, 'similar.db'), 'create table books (id text, title text)');
    mkdirSync(join(folder, 'folder'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    writeFileSync(join(folder, 'lonely.db-wal'), 'a log'); // which would be taken for that of a new file
    const before = names(folder);
    for (const [sentence, copy, dbUrl] of refusals(folder)) {
      const refused = await outcome(folder, `restore ${copy} --overwrite`, dbUrl);
      assert.deepEqual(refused, refusedWith(sentence));
    }
    assert.deepEqual(names(folder), before);
    assert.deepEqual(years(join(folder, 'books.db')), [1, 2, 3]);
  });

  test('of copies that other programs made: with a log beside them, in use, or with an older table', async () => {
    const folder = await folderWithStore(3);
    leaveLog(join(folder, 'books.db'), 'insert into books (year) values (4)');
    mkdirSync(join(folder, 'kept'));
    for (const suffix of ['', '-wal'])
      copyFileSync(join(folder, `books.db${suffix}`), join(folder, `kept/copy.db${suffix}`));
    execute(
      join(folder, 'kept/old.db'),
      `create table books (id integer primary key autoincrement, title text not null default '');
       insert into books (title) values ('Emma')`,
    );
    symlinkSync('kept/copy.db', join(folder, 'link.db'));
    const before = contents(join(folder, 'kept'));
    const DB_URL = 'sqlite:new/folder/new.db';
    const restore = (copy: string) => outcome(folder, `restore ${copy} --overwrite`, DB_URL);
    for (const copy of ['kept/copy.db', 'link.db']) {
      assert.equal((await restore(copy)).code, 0);
      assert.deepEqual(years(join(folder, 'new/folder/new.db')), [1, 2, 3, 4], copy);
    }
    const digest = sha256('id,title,author,year\n1,"Emma","",0\n');
    assert.equal((await restore('kept/old.db')).stdout, `1 book restored to ${DB_URL} (sha256 ${digest}).\n`);
    assert.deepEqual(contents(join(folder, 'kept')), before);
    assert.deepEqual(readdirSync(join(folder, 'new/folder')), ['new.db']);
    const open = new DatabaseSync(join(folder, 'books.db')); // in use: SQLite finds the files that belong to it
    open.exec('pragma wal_autocheckpoint = 0; insert into books (year) values (5)');
    assert.equal((await restore('books.db')).code, 0);
    open.close();
    assert.deepEqual(years(join(folder, 'new/folder/new.db')), [1, 2, 3, 4, 5]);
  });
});

/** Runs a command in a folder. */
function outcome(folder: string, args: string, DB_URL = 'sqlite:books.db') {
  return runCommand(args.split(' '), { DB_URL }, folder);
}

/** Makes a store of books with the years 1, 2 …, as a service leaves it when it exits. */
async function folderWithStore(count: number, titleLength = 5): Promise<string> {
  const folder = temporaryFolder(STORES_FOLDER);
  const years = Array.from({ length: count }, (_, index) => index + 1);
  const title = 'title'.padEnd(titleLength, 'x');
  await fill(
    `sqlite:${folder}/books.db`,
    years.map((year) => ({ id: year, title, author: 'author', year })),
  );
  return folder;
}

function execute(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

/** The years of all books, once SQLite has rolled back what a dead process had started. */
function years(file: string): unknown[] {
  const db = new DatabaseSync(file);
  const found = db.prepare('select year from books order by id').all();
  db.close();
  return found.map(({ year }) => year);
}

/** The files of a folder, except those that SQLite keeps beside an open store. */
function names(folder: string): string[] {
  return readdirSync(folder).filter((name) => !/^books\.db-(wal|shm)$/.test(name));
}

/** Each file of a folder, and the SHA-256 of what it has; but what locks a file is in its `-shm`. */
function contents(folder: string): unknown {
  const files = readdirSync(folder, { withFileTypes: true });
  return files.map((file) => {
    const hasContent = file.isFile() && !file.name.endsWith('-shm');
    return [file.name, hasContent && sha256(readFileSync(join(folder, file.name)))];
  });
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
