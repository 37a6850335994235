// Backup and restore of the SQLite store: with a full disk, on a disk that alters what is written to it, from and to files of
// all kinds, and the nightly script. Commands that are killed are in test/nightly.

import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
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
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { copyCatalogue } from '../../src/stores/sqlite/backup.ts';
import { HERE_ONLY, refusedWith, runCommand } from '../support/command.ts';
import { pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  endOf,
  preloading,
  spawnService,
  startServiceProcess,
  startTestService,
  stoppingHalfWay,
  temporaryFolder,
  untilStopped,
} from '../support/service.ts';

const TABLE = `create table books (
  id integer primary key autoincrement check (id between 1 and 9007199254740991),
  title text not null default '', author text not null default '', year integer not null default 0) strict`;

/** SHA-256 of the export of the books that `makeStore(…, 3)` makes. */
const THREE = sha256(
  'id,title,author,year\n1,"title","author",1\n2,"title","author",2\n3,"title","author",3\n',
);

describe('backup and restore', { concurrency: 3 }, () => {
  test('the nightly script and the line for cron make a backup, and remove only old ones, once it has succeeded', () => {
    const folder = folderWithStore(3);
    const days = Array.from({ length: 15 }, (_, day) => `backups/books-2020-01-${10 + day}.db`);
    const line = /^15 3 \* \* \* root (.+)$/m.exec(
      readFileSync(pathTo('deploy/book-catalogue.cron'), 'utf8'),
    )?.[1];
    assert.ok(line !== undefined);
    const command = line
      .replace('/var/lib/book-catalogue', '"$FOLDER"')
      .replace('/opt/book-catalogue/', '"$PROJECT"')
      .replace('/var/backups/book-catalogue', '"$FOLDER"/backups');
    const run = (DB_URL: string) => {
      mkdirSync(join(folder, 'backups'), { recursive: true });
      days.forEach((day, position) => {
        writeFileSync(join(folder, day), '');
        utimesSync(join(folder, day), position, position);
      });
      writeFileSync(join(folder, 'backups/other'), '');
      const env = { PATH: process.env.PATH, DB_URL, FOLDER: folder, PROJECT: pathTo('') };
      const { status } = spawnSync('sh', ['-c', command], { env, stdio: 'ignore' });
      return { status, files: readdirSync(join(folder, 'backups')).length };
    };
    assert.deepEqual(run('sqlite:none.db'), { status: 1, files: 16 });
    assert.deepEqual(run('sqlite:books.db'), { status: 0, files: 15 }); // 14 backups, one of them of today
    assert.deepEqual(days.map((day) => existsSync(join(folder, day))).lastIndexOf(false), 1);
    assert.deepEqual(run('sqlite:books.db'), { status: 0, files: 15 }); // once more on the same day
  });

  test('the nightly script removes only what it has made itself, and leaves the folder of a link', () => {
    const folder = folderWithStore(3);
    const theirs = [
      'older/books-2020-01-01.db',
      'books-before-the-upgrade.db',
      'books-metadata.db',
      'other.db',
      ...Array.from({ length: 13 }, (_, day) => `books-2019-12-${10 + day}.db`),
    ];
    const own = ['books-2020-01-01.db', 'books-2020-01-02.db.0123456789ab.unfinished-journal'];
    mkdirSync(join(folder, 'backups/older'), { recursive: true });
    for (const name of [...theirs, ...own]) {
      writeFileSync(join(folder, 'backups', name), '');
      const seconds = name.startsWith('books-2019') ? 1 : 0;
      utimesSync(join(folder, 'backups', name), seconds, seconds);
    }
    symlinkSync('backups', join(folder, 'link'));
    const { status } = runScript(folder, pathTo('deploy/backup.sh'), { DB_URL: 'sqlite:books.db' });
    assert.equal(status, 0);
    const left = readdirSync(join(folder, 'backups'), { recursive: true }).map(String);
    const [today] = left.filter((name) => !theirs.includes(name) && name !== 'older');
    assert.match(String(today), /^books-\d{4}-\d\d-\d\d\.db$/);
    assert.deepEqual(left.toSorted(), [...theirs, 'older', today].toSorted());
  });

  test('the nightly script backs up the store of the service, and says so if that is on PostgreSQL', () => {
    const folder = folderWithStore(3);
    mkdirSync(join(folder, 'link')); // where the backups go
    mkdirSync(join(folder, 'etc'));
    mkdirSync(join(folder, 'deploy'));
    symlinkSync(pathTo('book-catalogue'), join(folder, 'book-catalogue'));
    const script = readFileSync(pathTo('deploy/backup.sh'), 'utf8').replace(
      'etc=/etc/book-catalogue',
      'etc=etc',
    );
    writeFileSync(join(folder, 'deploy/backup.sh'), script, { mode: 0o755 });
    const run = () => runScript(folder, join(folder, 'deploy/backup.sh'), {});
    assert.match(run().stderr, /there is no catalogue at sqlite:data\/books\.db/);
    writeFileSync(join(folder, 'etc/environment'), 'DB_URL = sqlite:books.db\n');
    assert.match(run().stderr, /^etc\/environment: write DB_URL=… without blanks/);
    writeFileSync(join(folder, 'etc/environment'), 'PORT=80\nDB_URL=sqlite:books.db\n');
    assert.equal(run().status, 0);
    writeFileSync(join(folder, 'url'), 'sqlite:other.db\n');
    writeFileSync(join(folder, 'etc/environment'), 'DB_URL_FILE=url\n');
    assert.match(run().stderr, /there is no catalogue at sqlite:other\.db/);
    writeFileSync(join(folder, 'etc/db_url'), 'postgres://a:secret@b/c\n');
    const { status, stderr } = run();
    assert.equal(status, 1);
    assert.equal(stderr, 'DB_URL names a PostgreSQL store: back it up with pg_dump or pg_basebackup.\n');
  });

  test('a backup has the permissions of the store, and is a single file', async () => {
    const folder = folderWithStore(3);
    chmodSync(join(folder, 'books.db'), 0o640);
    const { code, stdout, stderr } = await outcome(folder, ['backup', 'a copy?.db']);
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout, `3 books backed up to a copy?.db, verified (sha256 ${THREE}).\n`);
    assert.equal(statSync(join(folder, 'a copy?.db')).mode & 0o777, 0o640);
    assert.deepEqual(names(folder), ['a copy?.db', 'books.db']);
    if (process.getuid?.() !== 0) return; // nobody else may give files away
    chownSync(join(folder, 'books.db'), 61184, 61184);
    mkdirSync(join(folder, 'theirs'));
    chownSync(join(folder, 'theirs'), 61184, 61184);
    for (const [copy, owner] of [
      ['theirs/copy.db', 61184],
      ['copy.db', 0],
    ] as const) {
      assert.equal((await outcome(folder, ['backup', copy])).code, 0);
      const { uid, mode } = statSync(join(folder, copy));
      assert.deepEqual([uid, mode & 0o777], [owner, owner === 0 ? 0o600 : 0o640]);
    }
  });

  test('a write during which a process died, outside of WAL mode, is rolled back first', async () => {
    const folder = folderWithStore(100, 20_000);
    writeAndDie(
      join(folder, 'books.db'),
      "pragma journal_mode = delete; pragma cache_size = 1; begin; update books set title = 'half', year = 0",
    );
    assert.ok(existsSync(join(folder, 'books.db-journal')));
    copyFileSync(join(folder, 'books.db'), join(folder, 'other.db'));
    copyFileSync(join(folder, 'books.db-journal'), join(folder, 'other.db-journal'));
    const exported = await outcome(folder, ['export'], { DB_URL: 'sqlite:other.db' });
    const { code, stdout } = await outcome(folder, ['backup', 'copy.db']);
    assert.deepEqual([exported.code, code], [0, 0]);
    assert.equal(stdout, `100 books backed up to copy.db, verified (sha256 ${sha256(exported.stdout)}).\n`);
    assert.ok(!exported.stdout.includes('half'));
  });

  test('an impossible backup is refused in one sentence, and all files stay as they were', async () => {
    const folder = folderWithStore(3);
    const open = new DatabaseSync(join(folder, 'books.db')); // so that there is a log and its index
    open.exec('select * from books');
    writeFileSync(join(folder, 'there.db'), 'theirs');
    for (const name of ['plain.db', 'plain.db-journal']) writeFileSync(join(folder, name), 'theirs');
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
    const refusals: [sentence: string, args: string[], env?: Record<string, string>][] = [
      ['there.db already exists: --overwrite replaces it.', ['there.db']],
      ['folder exists and is not a file.', ['folder', '--overwrite']],
      ['/dev/null exists and is not a file.', ['/dev/null', '--overwrite']],
      ['There is no folder missing.', ['missing/copy.db']],
      [
        `No backup was made of sqlite:books.db: ENAMETOOLONG: name too long, stat '${'x'.repeat(300)}'.`,
        ['x'.repeat(300)],
      ],
      ['books.db is part of the store: choose another file.', ['books.db', '--overwrite']],
      ['same.db is part of the store: choose another file.', ['same.db', '--overwrite']],
      ['./books.db-journal is part of the store: choose another file.', ['./books.db-journal']],
      ['log.db is part of the store: choose another file.', ['log.db', '--overwrite']],
      [`There is no folder ${folder}/nowhere.`, ['lost.db']],
      [`${folder}/gone.db-wal exists and may hold books: --overwrite removes it.`, ['gone.db']],
      [
        `plain.db is no database, but ${folder}/plain.db-journal is there: move them away, or choose another file.`,
        ['plain.db', '--overwrite'],
      ],
      [
        'busy.db is in use: stop the program that has it open, or choose another file.',
        ['busy.db', '--overwrite'],
      ],
      [
        'newer.db cannot be locked: attempt to write a readonly database: choose another file.',
        ['newer.db', '--overwrite'],
      ],
      ['DB_URL: there is no catalogue at sqlite:none.db.', ['copy.db'], { DB_URL: 'sqlite:none.db' }],
      [
        'DB_URL names a PostgreSQL store: back it up with pg_dump or pg_basebackup.',
        ['copy.db'],
        { DB_URL: 'postgres://a:secret@b/c' },
      ],
      [
        'No backup was made of sqlite:there.db: file is not a database.',
        ['copy.db'],
        { DB_URL: 'sqlite:there.db' },
      ],
    ];
    const [contents, listed] = [sha256(readFileSync(join(folder, 'books.db'))), readdirSync(folder)];
    await Promise.all(
      refusals.map(async ([sentence, args, env]) => {
        assert.deepEqual(await outcome(folder, ['backup', ...args], env), refusedWith(sentence));
      }),
    );
    assert.deepEqual(readdirSync(folder), listed);
    assert.equal(sha256(readFileSync(join(folder, 'books.db'))), contents);
    assert.equal(readFileSync(join(folder, 'there.db'), 'utf8'), 'theirs');
    open.close();
    busy.close();
    const toPipe = await outcome(folder, ['backup', '-']);
    assert.deepEqual([toPipe.code, toPipe.stderr.split('\n').length], [2, 2]);

    const { code } = await outcome(folder, ['backup', 'there.db', '--overwrite']);
    assert.equal(code, 0);
    assert.deepEqual(years(join(folder, 'there.db')), [1, 2, 3]);
  });

  for (const options of [[], ['--overwrite']]) {
    test(`a store that is started at the place of a backup meanwhile stays as it is; ${options[0] ?? 'no option'}`, async (context) => {
      const folder = folderWithStore(500, 20_000);
      const backup = start(folder, ['backup', 'copy.db', ...options], { NODE_OPTIONS: stoppingHalfWay() });
      const ended = endOf(backup);
      await untilStopped(backup);
      const service = await startTestService(`sqlite:${folder}/copy.db`);
      context.after(() => service.stop());
      const book = await service.client.create({ title: 'acknowledged' });
      backup.kill('SIGCONT');
      assert.deepEqual(await ended, refusedWith('copy.db already exists: --overwrite replaces it.'));
      assert.deepEqual(await service.client.list(), [book]);
      assert.equal((await service.client.create({ year: 2 })).id, 2); // which it refuses in another file
    });
  }

  test('no program begins a store in an empty file that a backup replaces', async (context) => {
    const folder = folderWithStore(500, 20_000);
    writeFileSync(join(folder, 'copy.db'), '');
    const backup = start(folder, ['backup', 'copy.db', '--overwrite'], { NODE_OPTIONS: stoppingHalfWay() });
    const ended = endOf(backup);
    await untilStopped(backup);
    const other = new DatabaseSync(join(folder, 'copy.db'), { timeout: 0 });
    context.after(() => other.close());
    assert.throws(() => other.exec('pragma journal_mode = wal'), { message: 'database is locked' });
    backup.kill('SIGCONT');
    assert.equal((await ended).code, 0);
    assert.equal(years(join(folder, 'copy.db')).length, 500);
  });

  test('a log that an older backup has left is never that of the new one', async () => {
    const folder = folderWithStore(3);
    for (const isThere of [true, false]) {
      assert.equal((await outcome(folder, ['backup', 'copy.db', '--overwrite'])).code, 0);
      leaveLog(join(folder, 'copy.db'), 'pragma journal_mode = wal; delete from books');
      if (!isThere) rmSync(join(folder, 'copy.db'));
      assert.equal((await outcome(folder, ['backup', 'copy.db', '--overwrite'])).code, 0);
      assert.deepEqual(names(folder), ['books.db', 'copy.db']);
      const env = { DB_URL: 'sqlite:restored.db' };
      const { stdout } = await outcome(folder, ['restore', 'copy.db', '--overwrite'], env);
      assert.equal(stdout, `3 books restored to sqlite:restored.db (sha256 ${THREE}).\n`);
      rmSync(join(folder, 'restored.db'));
    }
    leaveLog(join(folder, 'books.db'), 'delete from books');
    renameSync(join(folder, 'books.db-wal'), join(folder, 'copy.db-wal'));
    const env = { DB_URL: 'sqlite:restored.db' };
    const { code, stderr } = await outcome(folder, ['restore', 'copy.db'], env);
    assert.equal(code, 1);
    assert.match(stderr, /: \S+\/copy\.db-wal is not its log, and would change it: [^\n]+\n$/);
  });

  test('a backup goes through a symbolic link, also to a file that is not there yet', async () => {
    const folder = folderWithStore(3);
    mkdirSync(join(folder, 'disk'));
    symlinkSync('disk/copy.db', join(folder, 'link.db'));
    for (const option of [[], ['--overwrite']]) {
      assert.equal((await outcome(folder, ['backup', 'link.db', ...option])).code, 0);
      assert.deepEqual(readdirSync(join(folder, 'disk')), ['copy.db']);
    }
    symlinkSync('disk/new.db', join(folder, 'store.db'));
    const env = { DB_URL: 'sqlite:store.db' };
    assert.equal((await outcome(folder, ['restore', 'link.db'], env)).code, 0);
    assert.deepEqual(years(join(folder, 'disk/new.db')), [1, 2, 3]);
  });

  test('its progress ends with the last page, whatever the number of books', async () => {
    const folder = folderWithStore(501);
    const store = new DatabaseSync(join(folder, 'books.db'));
    for (const books of [501, 500, 250, 1, 0]) {
      store.exec(`delete from books where id > ${books}`);
      const file = join(folder, `${books}.db`);
      writeFileSync(file, '');
      const verified: [done: number, total: number][] = [];
      await copyCatalogue(store, file, (unit, done, total) => {
        if (unit === 'pages verified') verified.push([done, total]);
      });
      const pages = statSync(file).size / 4096;
      assert.deepEqual(verified.at(-1), [pages, pages], `${books} books`);
      assert.deepEqual(
        verified,
        verified.toSorted(([one], [other]) => one - other),
      );
    }
    store.close();
  });

  test('a copy that differs from the store does not become the backup', async () => {
    const folder = folderWithStore(3);
    writeFileSync(join(folder, 'copy.db'), 'the last good one');
    const child = spawnService(
      { DB_URL: 'sqlite:books.db', NODE_OPTIONS: preloading(pathTo('test/support/meddling-disk.js')) },
      ['backup', 'copy.db', '--overwrite'],
      folder,
    );
    assert.deepEqual(
      await endOf(child),
      refusedWith('No backup was made of sqlite:books.db: the copy differs from the store.'),
    );
    assert.deepEqual(names(folder), ['books.db', 'copy.db']);
    assert.equal(readFileSync(join(folder, 'copy.db'), 'utf8'), 'the last good one');
  });

  test('a full disk ends it with one sentence, and nothing is left', async () => {
    const folder = folderWithStore(100, 20_000);
    // A limit on the size of files simulates a full disk.
    const child = spawnService(
      { DB_URL: 'sqlite:books.db' },
      ['backup', 'copy.db'],
      folder,
      'ignore',
      'ulimit -f 1000',
    );
    const { code, stdout, stderr } = await endOf(child);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /^No backup was made of sqlite:books\.db: (disk I\/O error|database or disk is full)\.\n$/,
    );
    assert.deepEqual(names(folder), ['books.db']);
  });

  test('a signal ends it with one sentence, and nothing is left', { skip: HERE_ONLY }, async () => {
    const folder = folderWithStore(3);
    for (const [args, DB_URL, sentence] of [
      [['backup', 'copy.db'], 'sqlite:books.db', 'No backup was made of sqlite:books.db: stopped.\n'],
      [['restore', 'books.db'], 'sqlite:new.db', 'sqlite:new.db was not restored: stopped.\n'],
    ] as const) {
      const stopped = await runCommand(args, { DB_URL }, folder, Promise.resolve());
      assert.deepEqual(stopped, { code: 1, stdout: '', stderr: sentence });
      assert.deepEqual(names(folder), ['books.db']);
    }
  });

  test('restore: never while a service runs, over books only with --overwrite, and new ids follow the old ones', async (context) => {
    const folder = folderWithStore(3);
    chmodSync(join(folder, 'books.db'), 0o640);
    const service = await startServiceProcess(`sqlite:${folder}/books.db`);
    context.after(() => service.stop());
    await service.client.create({ year: 4 });
    await service.client.request('DELETE', '/book/4');
    assert.equal((await outcome(folder, ['backup', 'copy.db'])).code, 0);
    await service.client.create({ year: 5 });

    const refused = await outcome(folder, ['restore', 'copy.db', '--overwrite']);
    assert.deepEqual(refused, refusedWith('DB_URL: sqlite:books.db is in use: stop the service first.'));
    assert.equal((await service.client.list()).length, 4);
    service.process.kill('SIGKILL'); // what it wrote last is in the log
    await once(service.process, 'close');

    const careful = await outcome(folder, ['restore', 'copy.db']);
    assert.deepEqual(
      careful,
      refusedWith('DB_URL: sqlite:books.db has books already: --overwrite replaces it.'),
    );
    assert.deepEqual(years(join(folder, 'books.db')), [1, 2, 3, 5]);

    const done = await outcome(folder, ['restore', 'copy.db', '--overwrite']);
    const stdout = `3 books restored to sqlite:books.db (sha256 ${THREE}).\n`;
    assert.deepEqual(done, { code: 0, stdout, stderr: '' });
    assert.deepEqual(readdirSync(folder), ['books.db', 'copy.db']);
    assert.equal(statSync(join(folder, 'books.db')).mode & 0o777, 0o640);

    const looked = new DatabaseSync(join(folder, 'copy.db'));
    looked.exec('pragma journal_mode = wal'); // as after a look into it
    looked.close();
    chmodSync(join(folder, 'copy.db'), 0o444);
    assert.deepEqual(await outcome(folder, ['restore', 'copy.db', '--overwrite']), done);
    assert.equal(statSync(join(folder, 'books.db')).mode & 0o777, 0o640);

    const next = await startTestService(`sqlite:${folder}/books.db`);
    context.after(() => next.stop());
    assert.equal((await next.client.list()).length, 3);
    assert.equal((await next.client.create({ year: 6 })).id, 5);
  });

  test('restore: a file that is not a backup is refused in one sentence, and the store stays as it was', async () => {
    const folder = folderWithStore(3);
    assert.equal((await outcome(folder, ['backup', 'cut.db'])).code, 0);
    const bytes = readFileSync(join(folder, 'cut.db'));
    truncateSync(join(folder, 'cut.db'), bytes.length - 4096);
    bytes.writeUInt32BE(7, 36); // the number of free pages, which is 0: only this check notices
    writeFileSync(join(folder, 'bent.db'), bytes);
    writeFileSync(join(folder, 'text.db'), 'id,title,author,year\n'.repeat(100));
    const other = new DatabaseSync(join(folder, 'other.db'));
    other.exec('create table films (id integer)');
    other.close();
    const similar = new DatabaseSync(join(folder, 'similar.db'));
    similar.exec('create table books (id text, title text)');
    similar.close();
    mkdirSync(join(folder, 'folder'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    const refusals: [sentence: string, args: string[], env?: Record<string, string>][] = [
      ['none.db/none.db does not exist.', ['none.db/none.db']],
      ['folder is not a file.', ['folder']],
      ['DB_URL: sqlite:pipe is not a file.', ['cut.db'], { DB_URL: 'sqlite:pipe' }],
      ['books.db is part of the store: choose a backup.', ['books.db']],
      ['sqlite:books.db was not restored: database disk image is malformed.', ['cut.db']],
      ['sqlite:books.db was not restored: it is damaged (Freelist: size is 0 but should be 7).', ['bent.db']],
      ['sqlite:books.db was not restored: file is not a database.', ['text.db']],
      ['sqlite:books.db was not restored: there is no catalogue in it.', ['other.db']],
      [
        'sqlite:books.db was not restored: its table "books" does not belong to this service.',
        ['similar.db'],
      ],
      [
        'DB_URL: sqlite:text.db cannot be replaced: file is not a database. If it is damaged, stop the service, move it away, and restore again.',
        ['cut.db'],
        { DB_URL: 'sqlite:text.db' },
      ],
      [
        'DB_URL names a PostgreSQL store: restore it with pg_restore or psql.',
        ['cut.db'],
        { DB_URL: 'postgres://a:secret@b/c' },
      ],
    ];
    const listed = names(folder);
    for (const [sentence, args, env] of refusals) {
      assert.deepEqual(
        await outcome(folder, ['restore', ...args, '--overwrite'], env),
        refusedWith(sentence),
      );
    }
    assert.deepEqual(names(folder), listed);
    assert.deepEqual(years(join(folder, 'books.db')), [1, 2, 3]);
  });

  test('restore: copies that other programs made, with a log beside them or with an older table', async () => {
    const folder = folderWithStore(3);
    leaveLog(join(folder, 'books.db'), 'insert into books (year) values (4)');
    mkdirSync(join(folder, 'kept'));
    for (const suffix of ['', '-wal']) {
      copyFileSync(join(folder, `books.db${suffix}`), join(folder, `kept/copy.db${suffix}`));
    }
    const old = new DatabaseSync(join(folder, 'kept/old.db'));
    old.exec(`create table books (id integer primary key autoincrement, title text not null default '');
      insert into books (title) values ('Emma')`);
    old.close();
    const kept = () =>
      readdirSync(join(folder, 'kept')).map((name) => [
        name,
        sha256(readFileSync(join(folder, 'kept', name))),
      ]);
    const before = kept();
    const DB_URL = 'sqlite:new/folder/new.db';
    symlinkSync('kept/copy.db', join(folder, 'link.db'));
    for (const copy of ['kept/copy.db', 'link.db']) {
      assert.equal((await outcome(folder, ['restore', copy, '--overwrite'], { DB_URL })).code, 0);
      assert.deepEqual(years(join(folder, 'new/folder/new.db')), [1, 2, 3, 4], copy);
    }
    const { code, stdout } = await outcome(folder, ['restore', 'kept/old.db', '--overwrite'], { DB_URL });
    const digest = sha256('id,title,author,year\n1,"Emma","",0\n');
    assert.deepEqual([code, stdout], [0, `1 book restored to ${DB_URL} (sha256 ${digest}).\n`]);
    assert.deepEqual(kept(), before);
    assert.deepEqual(readdirSync(join(folder, 'new/folder')), ['new.db']);

    // A log without its file would be taken for the log of the new file.
    mkdirSync(join(folder, 'lonely'));
    copyFileSync(join(folder, 'kept/copy.db-wal'), join(folder, 'lonely/books.db-wal'));
    const lonely = { DB_URL: 'sqlite:lonely/books.db' };
    for (const option of [[], ['--overwrite']]) {
      const { code, stderr } = await outcome(folder, ['restore', 'kept/old.db', ...option], lonely);
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^DB_URL: sqlite:lonely\/books\.db is missing, but [^\n]+\/books\.db-wal exists and may hold books: move it away\.\n$/,
      );
    }
    assert.deepEqual(readdirSync(join(folder, 'lonely')), ['books.db-wal']);

    // A copy that is in use: SQLite finds the files that belong to it.
    const open = new DatabaseSync(join(folder, 'books.db'));
    open.exec('pragma wal_autocheckpoint = 0; insert into books (year) values (5)');
    assert.equal((await outcome(folder, ['restore', 'books.db', '--overwrite'], { DB_URL })).code, 0);
    open.close();
    assert.deepEqual(years(join(folder, 'new/folder/new.db')), [1, 2, 3, 4, 5]);
  });

  test('no program begins a store while one is restored to its place', {
    skip: HERE_ONLY,
  }, async (context) => {
    const folder = folderWithStore(500, 20_000);
    renameSync(join(folder, 'books.db'), join(folder, 'copy.db'));
    const restore = start(folder, ['restore', 'copy.db'], { NODE_OPTIONS: stoppingHalfWay() });
    const restored = endOf(restore);
    await untilStopped(restore);
    const { code, stderr } = await endOf(start(folder, [], ENVIRONMENT));
    assert.equal(code, 1);
    assert.match(stderr, /^DB_URL: sqlite:books\.db cannot be opened: [^\n]+\n$/);
    const other = new DatabaseSync(join(folder, 'books.db'), { timeout: 0 });
    context.after(() => other.close());
    assert.throws(() => other.exec('pragma journal_mode = wal'), { message: 'database is locked' });
    restore.kill('SIGCONT');
    assert.equal((await restored).code, 0);
    assert.throws(() => other.exec('pragma journal_mode = wal'), { message: /readonly/ });
    assert.deepEqual(readdirSync(folder), ['books.db', 'copy.db']);
    assert.equal(years(join(folder, 'books.db')).length, 500);
  });
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

/** Runs a script for nightly backups, which go to the folder `link`. */
function runScript(folder: string, script: string, variables: Record<string, string>) {
  const env = { PATH: process.env.PATH, ...variables };
  return spawnSync(script, ['link'], { cwd: folder, env, encoding: 'utf8' });
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
