// An import into a server that does not wait for its disk, and loses its power.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { countOf, fill } from '../support/books.ts';
import { runCommand } from '../support/command.ts';
import { execute, PostgresServer } from '../support/postgres.ts';
import { POSTGRES, STORES, temporaryFolder } from '../support/service.ts';

if (STORES.includes(POSTGRES)) {
  test('imported books are on disk even if the server has synchronous_commit off', async (context) => {
    const server = await PostgresServer.start(['synchronous_commit=off', 'wal_writer_delay=10s']);
    context.after(() => server.remove());
    await fill(server.url(), []);
    await execute(server.url(), 'checkpoint'); // the table itself is on disk
    for (const [content, books] of [
      ['title\nEmma\n', 1],
      ['id,title,author,year\n900,"Grendel","John Gardner",1971\n', 2],
    ] as const) {
      const file = join(temporaryFolder(), 'books.csv');
      writeFileSync(file, content);
      assert.equal((await runCommand(['import', file], { DB_URL: server.url() })).code, 0);
      await server.kill('SIGQUIT'); // at once, as if the machine had lost its power
      await server.startAgain();
      assert.equal(await countOf(server.url()), books);
    }
  });
}
