// The 10 seconds of rule 27: a start that cannot succeed ends within them, and so does a shutdown that clients try to
// delay. The real command, measured from the outside.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { Connection } from '../support/client.ts';
import { Stopwatch } from '../support/in-time.ts';
import { listen } from '../support/ports.ts';
import { TcpProxy } from '../support/proxy.ts';
import {
  ENVIRONMENT,
  endOf,
  fileOf,
  POSTGRES,
  SQLITE,
  spawnService,
  startServiceProcess,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds. */
const LIMIT = 10_000;

describe('rule 27: within 10 s', { concurrency: true }, () => {
  test('a start fails if its database is silent', async (context) => {
    const { port } = await listen(context);
    await isRefused(context, `postgres://someone:secret@127.0.0.1:${port}/books`);
  });

  test('a start fails if its file stays locked', async (context) => {
    const file = join(temporaryFolder(), 'locked.db');
    const db = new DatabaseSync(file);
    context.after(() => db.close());
    db.exec('begin exclusive');
    await isRefused(context, `sqlite:${file}`);
  });

  test('SIGTERM ends the service with exit code 0 if its database has fallen silent', async (context) => {
    const { proxy, proxiedUrl } = await TcpProxy.to(await POSTGRES.freshUrl());
    context.after(() => proxy.stop());
    const service = await startServiceProcess(proxiedUrl);
    context.after(() => service.process.kill('SIGKILL'));
    proxy.swallowAnswers();
    // Requests that are completed one by one, so that a statement is in progress when their time is over.
    const head = `POST /book HTTP/1.1\r\nHost: x\r\nAuthorization: ${service.client.token}\r\nContent-Length: 2\r\n\r\n`;
    const halves = Array.from({ length: 100 }, () => new Connection(service));
    context.after(() => {
      for (const { socket } of halves) socket.destroy();
    });
    await Promise.all(halves.map((half) => half.send(`${head}{`)));
    const stopwatch = new Stopwatch();
    const asking = setInterval(
      () =>
        halves
          .pop()
          ?.send('}')
          .catch(() => {}),
      100,
    );
    service.process.kill('SIGTERM');
    await once(service.process, 'exit');
    const took = stopwatch.read();
    stopwatch.stop();
    clearInterval(asking);
    context.diagnostic(`ended after ${Math.round(took)} ms`);
    assert.equal(service.process.exitCode, 0);
    assert.ok(took < LIMIT, `${took} ms`);
  });

  for (const WORKERS of ['1', '2']) {
    test(`SIGTERM ends the service whatever its clients do, with WORKERS=${WORKERS}`, async (context) => {
      const service = await startServiceProcess(await SQLITE.freshUrl(), { WORKERS });
      context.after(() => service.process.kill('SIGKILL'));
      addBigBooks(fileOf(service.dbUrl));
      const headers = `Host: x\r\nAuthorization: ${service.client.token}\r\n`;
      const dial = async (text: string) => {
        const connection = new Connection(service);
        context.after(() => connection.socket.destroy());
        await once(connection.socket, 'connect');
        await connection.send(text);
        return connection;
      };
      await dial(''); // never sends anything
      await (await dial(`GET /nowhere HTTP/1.1\r\n${headers}\r\n`)).answers(1); // idle
      await dial(`GET /books HTTP/1.1\r\n${headers}`); // half a head
      await dial(`POST /book HTTP/1.1\r\n${headers}Content-Length: 1000\r\n\r\n{"title":`); // half a body
      const stalled = await dial(`GET /books HTTP/1.1\r\n${headers}\r\n`);
      await waitUntil(() => stalled.received !== '');
      stalled.socket.pause(); // the list has started, and its rest is not read

      const stopwatch = new Stopwatch();
      service.process.kill('SIGTERM');
      await once(service.process, 'exit');
      const took = stopwatch.read();
      stopwatch.stop();
      context.diagnostic(`ended after ${Math.round(took)} ms`);
      assert.equal(service.process.exitCode, 0);
      assert.ok(took < LIMIT, `${took} ms`);
    });
  }
});

async function isRefused(context: TestContext, dbUrl: string): Promise<void> {
  const stopwatch = new Stopwatch();
  const { code, stderr } = await endOf(spawnService({ ...ENVIRONMENT, DB_URL: dbUrl }));
  const took = stopwatch.read();
  stopwatch.stop();
  context.diagnostic(`refused after ${Math.round(took)} ms`);
  assert.equal(code, 1);
  assert.match(stderr, /^DB_URL: [^\n]+\.\n$/);
  assert.ok(took < LIMIT, `${took} ms`);
}

/** Adds more books than the buffers between the service and its client can hold. */
function addBigBooks(file: string): void {
  const db = new DatabaseSync(file);
  db.exec(`
    with recursive number (n) as (select 1 union all select n + 1 from number where n < 10000)
    insert into books (title) select printf('%.2000c', 'x') from number`);
  db.close();
}
