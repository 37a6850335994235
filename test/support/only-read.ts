// Owns: what the commands that only read do with a store that takes no writes.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { exportOf } from './books.ts';
import { runCommand } from './command.ts';
import { temporaryFolder } from './service.ts';

/** @param since before the two books of the store, A and B, were created. */
export async function assertOnlyRead(dbUrl: string, since: string): Promise<void> {
  const said = async (...command: string[]) => {
    const { code, stdout, stderr } = await runCommand(command, { DB_URL: dbUrl });
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const books = ['A', 'B'].map((title, at) => ({ id: at + 1, title, author: '', year: 0 }));
  assert.equal(await said('export'), exportOf(books));
  const copy = join(temporaryFolder(), 'books.db');
  assert.match(await said('copy', dbUrl, `sqlite:${copy}`), /^2 books copied to .*, verified/);
  assert.match(await said('undo', '--since', since), /^Since .*:\n2 books would be taken back\./);
  assert.match(await said('undo', '--book', '2'), /^1 book would be taken back\./);
  assert.match(await said('undo', '--list'), / changes {7}2 books\nThe log begins at /);
  assert.match(await said('forget', '1'), /^Book 1, "A", would be forgotten/);
}
