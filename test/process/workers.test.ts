// Several processes behind one port: what they share, and what happens when one of them dies. lifecycle.test.ts shows that
// none is left behind.

import assert from 'node:assert/strict';
import { readFileSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { before, describe, test } from 'node:test';
import { Client, exchange } from '../support/client.ts';
import { operationsOf } from '../support/operations.ts';
import { scrapeAll, sumOf } from '../support/prometheus.ts';
import { type CommandProcess, fileOf, SQLITE, startCommand } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const WORKERS = '2';

describe('workers', () => {
  let dbUrl: string;
  let service: CommandProcess;
  let client: Client;

  before(async () => {
    dbUrl = await SQLITE.freshUrl();
    service = await startCommand({ PORT: '0', WORKERS, DB_URL: dbUrl });
    client = await Client.logIn(service, { username: 'admin', password: 'password' });
  });

  /**
   * Creates a book on a separate connection.
   * @returns its id, and what the request ids of one process have in common; undefined if the connection broke.
   */
  const create = async (title: string) => {
    const body = JSON.stringify({ title });
    const head = `POST /book HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${client.token}\r\nContent-Length: ${body.length}`;
    const [answer] = await exchange(service, `${head}\r\n\r\n${body}`).catch(() => []);
    if (answer === undefined) return undefined;
    assert.equal(answer.status, 201);
    const id: number = JSON.parse(answer.body).data.id;
    return { id, process: answer.headers['x-request-id']?.replace(/-[^-]*$/, '') };
  };
  const messages = (message: string): { readonly pid: number }[] =>
    service.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === message);

  test('rules 16 and 28: they share port, store, ids and, without SECRET_TOKEN, tokens', async () => {
    const ids: number[] = [];
    const processes = new Set<unknown>();
    await waitUntil(async () => {
      for (const book of await Promise.all(Array.from({ length: 10 }, () => create('shared')))) {
        if (book === undefined) continue;
        ids.push(book.id);
        processes.add(book.process);
      }
      return processes.size === 2;
    });
    const listed = (await client.list()).map(({ id }) => id).filter((id) => ids.includes(id));
    assert.deepEqual(
      listed,
      ids.sort((one, other) => one - other),
    );
    const warnings = () => service.log.filter((line) => line.includes('SECRET_TOKEN is not set'));
    await waitUntil(() => warnings().length > 0);
    assert.equal(warnings().length, 1);
  });

  test('rules 9 and 28: one that is killed loses nothing and is replaced', async () => {
    const serving = () => messages('a worker is serving');
    const before = serving();
    const answered: string[] = [];
    const kill = () => process.kill(before.at(-1)?.pid as number, 'SIGKILL');
    await Promise.all(
      Array.from({ length: 8 }, async (_, writer) => {
        for (let count = 0; count < 10; count += 1) {
          const title = `${writer}/${count}`;
          if ((await create(title)) !== undefined && answered.push(title) === 20) kill();
        }
      }),
    );
    assert.ok(answered.length > 20);
    await waitUntil(() => serving().length > before.length);
    assert.equal(messages('a worker exited: starting a replacement').length, 1);
    const stored = new Set((await client.list()).map(({ title }) => title));
    for (const title of answered) assert.ok(stored.has(title), `${title} was acknowledged and is lost`);
  });

  test('rule 28: connections are served by the others while a worker hangs', async () => {
    const pid = messages('a worker is serving').at(-1)?.pid as number;
    process.kill(pid, 'SIGSTOP');
    await waitUntil(() => readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') T '));
    const books = Array.from({ length: 10 }, (_, count) => create(`while one hangs ${count}`));
    for (const book of await Promise.all(books)) assert.ok(book !== undefined);
    process.kill(pid, 'SIGCONT');
  });

  test('rules 27 and 28: a port that other workers already share counts as in use; the reason is printed once', async () => {
    const PORT = String(service.port);
    const env = { PORT, ADMIN_PORT: '0', PAGE_PORT: '0', WORKERS, DB_URL: await SQLITE.freshUrl() };
    const outcome = await startCommand(env).then(
      (second) => second.stop(),
      ({ cause }) => cause, // what it printed, once every process that could still print has ended
    );
    assert.equal(
      outcome,
      `PORT ${PORT} is in use by another process: stop that process or choose another port.`,
    );
  });

  test('rules 28 and 31: metrics of a file that cannot be reached are left out, and no worker dies of it', async () => {
    const folder = dirname(fileOf(dbUrl));
    const { id } = await client.create({});
    const exited = messages('a worker exited: starting a replacement').length;
    renameSync(folder, `${folder}.away`);
    symlinkSync(folder, folder); // ELOOP
    const metrics = await scrapeAll(operationsOf(service).url, 3);
    const { status } = await client.request('GET', `/book/${id}`);
    unlinkSync(folder);
    renameSync(`${folder}.away`, folder);
    assert.deepEqual(metrics.get('book_catalogue_sqlite_file_bytes')?.samples, []);
    for (const worker of ['1', '2']) assert.ok(sumOf(metrics, 'process_open_fds', { worker }) > 0);
    assert.equal(status, 200);
    assert.equal(messages('a worker exited: starting a replacement').length, exited);
  });
});
