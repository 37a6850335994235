// The permissions of all files that a process makes, and those that it needs. What a file gets that replaces another one is tested in test/transfer.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, globSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ENVIRONMENT, endOf, spawnService, startCommand, temporaryFolder } from '../support/service.ts';

const MADE = `
  700 data
  600 data/books.db
  600 data/books.db-shm
  600 data/books.db-wal
  600 backup.db
  600 copy.db
  600 export.csv
  700 new
  600 new/restored.db
  600 rejects.csv`;

/** What the test makes itself. */
const GIVEN = ['books.csv', 'given.db'];

for (const umask of ['000', '777']) {
  test(`every file and folder that the service and its commands make is for their user only, with umask ${umask}`, async () => {
    const folder = temporaryFolder();
    writeFileSync(
      join(folder, 'books.csv'),
      'title,author,year\nEmma,Jane Austen,1815\nPersuasion,,some year\n',
    );
    const launch = { folder, setting: `umask ${umask}` };
    await startCommand({ ...ENVIRONMENT, LOG_LEVEL: 'info' }, launch);
    for (const [line = '', code, DB_URL = 'sqlite:data/books.db'] of [
      ['import books.csv --rejects rejects.csv', 1],
      ['export export.csv', 0],
      ['copy sqlite:data/books.db sqlite:copy.db', 0],
      ['backup backup.db', 0],
      ['restore given.db', 0, 'sqlite:new/restored.db'],
    ] as const) {
      if (line.startsWith('restore')) giveToAll(join(folder, 'backup.db'), join(folder, 'given.db'));
      const ended = await endOf(spawnService({ DB_URL }, line.split(' '), launch));
      assert.equal(ended.code, code, `${line}: ${ended.stderr}`);
    }
    const made = globSync('**', { cwd: folder }).filter((path) => !['.', ...GIVEN].includes(path));
    const found = made.map((path) => `${(statSync(join(folder, path)).mode & 0o777).toString(8)} ${path}`);
    assert.deepEqual(found.sort(), MADE.trim().split(/\n */).sort());
  });
}

/** Opens each store as a user who may do what the permissions say, unlike root. Before, it loads what that takes. */
const AS_ANOTHER_USER = `
  import { readDbUrl } from './src/stores/open.ts';
  import { TIMES } from './src/times.ts';
  const [mode, ...files] = process.argv.slice(1);
  const open = async (file, mode) => (await readDbUrl('sqlite:' + file)).openBulk(mode, TIMES);
  await open('/dev/null/books.db', 'write').catch(() => {});
  if (process.getuid() === 0) process.setuid(65534);
  for (const file of files)
    console.log(await open(file, mode).then(() => 'opened', (error) => error.constructor.name + ' ' + error.message));`;

test('rule 27: a folder or a file that this user may not use is named', (context) => {
  const folder = temporaryFolder();
  context.after(() => chmodSync(join(folder, 'closed'), 0o700)); // else it cannot be removed
  chmodSync(folder, 0o755);
  const make = (name: string, mode: number) => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'books.db'), '');
    chmodSync(join(folder, name, 'books.db'), name === 'file' ? 0o444 : 0o666);
    writeFileSync(join(folder, name, 'books.db-wal'), '');
    chmodSync(join(folder, name, 'books.db-wal'), name === 'log' ? 0o444 : 0o666);
    chmodSync(join(folder, name), mode);
  };
  make('folder', 0o555);
  make('closed', 0o000);
  make('file', 0o777);
  make('log', 0o777);
  /** The reason that each of the files gives. */
  const reasons = (mode: string, files: readonly string[]) => {
    const paths = files.map((file) => join(folder, file));
    const args = ['--input-type=module', '--eval', AS_ANOTHER_USER, mode, ...paths];
    const lines = execFileSync(process.execPath, args, { encoding: 'utf8' }).trimEnd().split('\n');
    return lines.map((line, position) => {
      const start = `OperatorError DB_URL: sqlite:${paths[position]} cannot be opened: `;
      assert.ok(line.startsWith(start), line);
      return line
        .slice(start.length)
        .replace(/\(uid \d+\)/, '(uid)')
        .replaceAll(`${folder}/`, '');
    });
  };
  assert.deepEqual(
    reasons('write', [
      ...['folder/new.db', 'folder/new/books.db', 'closed/books.db', 'file/books.db', 'log/books.db'],
      ...['file/books.db/b'],
    ]),
    [
      'this user (uid) may not make files in folder.',
      'this user (uid) may not make files in folder.',
      'this user (uid) may not make files in closed.',
      'this user (uid) may not read and write file/books.db.',
      'this user (uid) may not read and write log/books.db-wal.',
      'a part of the path file/books.db is a file, not a folder.',
    ],
  );
  assert.deepEqual(reasons('read', ['closed/books.db']), ['this user (uid) may not make files in closed.']);
});

/** Copies a file for all users to read, as another machine may have sent it. */
function giveToAll(from: string, to: string): void {
  copyFileSync(from, to);
  chmodSync(to, 0o644);
}
