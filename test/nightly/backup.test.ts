// A service that starts while its store is replaced, as a restore does it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { lockExclusively } from '../../src/stores/sqlite/backup.ts';
import { booksOf, fill, manyBooks } from '../support/books.ts';
import { Client } from '../support/client.ts';
import {
  ENVIRONMENT,
  endOf,
  hasOpen,
  OPEN_FILES_HIDDEN,
  spawnService,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

for (const [name, count] of [
  ['with books', 500],
  ['an empty file', 0],
] as const) {
  test(`a service that starts while its store (${name}) is replaced starts on the new one`, {
    skip: OPEN_FILES_HIDDEN,
  }, async (context) => {
    const folder = temporaryFolder();
    const path = join(folder, 'books.db');
    await fill(`sqlite:${folder}/new.db`, manyBooks(3));
    if (count === 0) writeFileSync(path, '');
    else await fill(`sqlite:${path}`, manyBooks(count));
    const store = lockExclusively(path);
    const service = spawnService(
      { ...ENVIRONMENT, DB_URL: 'sqlite:books.db', LOG_LEVEL: 'info' },
      [],
      folder,
    );
    context.after(() => service.kill('SIGKILL'));
    const ended = endOf(service);
    const listening = once(service.stdout as NodeJS.ReadableStream, 'data');
    const opens = () => Array.from({ length: 100 }, () => hasOpen(service, path)).includes(true);
    await waitUntil(opens, ended); // each attempt has it open for a moment
    renameSync(join(folder, 'new.db'), path);
    const [line] = await Promise.race([
      listening,
      ended.then(({ stderr }) => Promise.reject(new Error(stderr))),
    ]);
    store?.close();
    const { msg, url } = JSON.parse(String(line)) as { msg: string; url: string };
    assert.equal(msg, 'listening');
    const client = await Client.logIn({ url, port: Number(new URL(url).port) });
    await client.create({ title: 'acknowledged' });
    service.kill('SIGKILL');
    await ended;
    assert.deepEqual(
      (await booksOf(`sqlite:${path}`)).map(({ id }) => id),
      [1, 2, 3, 4],
    );
  });
}
