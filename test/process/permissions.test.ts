// The permissions of all files that a process makes. What a file gets that replaces another one is tested in test/transfer.

import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, globSync, statSync, writeFileSync } from 'node:fs';
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
  test(`every file and folder that the service and its commands make is for their user only, with umask ${umask}`, async (context) => {
    const folder = temporaryFolder();
    writeFileSync(
      join(folder, 'books.csv'),
      'title,author,year\nEmma,Jane Austen,1815\nPersuasion,,unknown\n',
    );
    const launch = { folder, setting: `umask ${umask}` };
    const service = await startCommand({ ...ENVIRONMENT, LOG_LEVEL: 'info' }, launch);
    context.after(() => service.stop());
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

/** Copies a file for all users to read, as another machine may have sent it. */
function giveToAll(from: string, to: string): void {
  copyFileSync(from, to);
  chmodSync(to, 0o644);
}
