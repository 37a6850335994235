// Starts that cannot succeed, because something stays silent or locked: each is refused in one sentence.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { listen } from '../support/ports.ts';
import { ENVIRONMENT, endOf, spawnService, temporaryFolder } from '../support/service.ts';

/** Part of every secret given to the service; nothing that it prints may contain it. */
const MARK = 'never-show-this';

describe('rule 27: a start is refused that waits for', { concurrency: true }, () => {
  const ready = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]); // logged in
  for (const [when, sslmode, said] of [
    ['before its first message', 'prefer', undefined],
    ['after it agreed to TLS', 'prefer', 'S'],
    ['after it refused TLS', 'prefer', 'N'],
    ['after the login', 'disable', ready],
  ] as const) {
    test(`a database that falls silent ${when}`, async (context) => {
      const { port } = await listen(context, (socket) => {
        if (said !== undefined) socket.once('data', () => socket.write(said));
      });
      await isRefused(`postgres://me:${MARK}@127.0.0.1:${port}/books?sslmode=${sslmode}`);
    });
  }

  for (const [what, held] of [
    ['is being written', 'pragma journal_mode = wal; begin immediate'],
    ['is locked as a whole', 'begin exclusive'],
  ] as const) {
    test(`a SQLite file that ${what} all the time`, async (context) => {
      const file = join(temporaryFolder(), 'busy.db');
      const db = new DatabaseSync(file);
      context.after(() => db.close());
      db.exec(held);
      await isRefused(`sqlite:${file}`);
    });
  }

  test('a pipe without a writer', async () => {
    const pipe = join(temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    // It blocks its whole process.
    const { stderr } = await endOf(spawnService({ SECRET_TOKEN_FILE: pipe }, ['token']));
    assert.match(stderr, /^SECRET_TOKEN_FILE cannot be read: nothing was written into it [^\n]+\.\n$/);
  });
});

async function isRefused(DB_URL: string): Promise<void> {
  const { code, stdout, stderr } = await endOf(spawnService({ ...ENVIRONMENT, DB_URL }));
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^DB_URL: [^\n]+\.\n$/);
  assert.ok(!stderr.includes(MARK), stderr);
}
