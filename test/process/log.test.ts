// The log: how loud a request is said, and what happens when nobody takes it: a full disk, a reader that stalls, a
// fault of our own at such a moment. And files for secrets that never end, or never begin. The real command in processes
// of its own.

import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { accepts, Client, Connection, exchange, request, type Target } from '../support/client.ts';
import { unusedPort } from '../support/ports.ts';
import { COMMAND } from '../support/repository.ts';
import { ENVIRONMENT, fileOf, spawnService, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Each request for it is a line of so many bytes in the log. */
const LONG_PATH = `/${'x'.repeat(12_000)}`;

describe('the log of requests', { concurrency: 3, timeout: 60_000 }, () => {
  test('rules 20 and 24: is a line each, with the name that its client gave it', async (context) => {
    const service = await start(context, 'info');
    const awkward = String.raw`/"quoted"\\u0041`;
    const asked: [text: string, method: string, path: string, status: number][] = [
      ['GET /books?secret=1 HTTP/1.1', 'GET', '/books', 401],
      [`GET ${awkward} HTTP/1.1`, 'GET', awkward, 404],
      ['DELETE /book/1?a?b HTTP/1.1', 'DELETE', '/book/1', 401],
      ['GET /book/%zz?secret HTTP/1.1', 'GET', '/book/%zz', 400],
      ['PROPFIND /book HTTP/1.1', 'PROPFIND', '/book', 405],
    ];
    for (const [position, [text]] of asked.entries()) {
      const bytes = Buffer.from(`${text}\r\nHost: x\r\nX-Request-Id: my.name:${position}\r\n\r\n`);
      assert.equal((await exchange(service, bytes))[0]?.headers['x-request-id'], `my.name:${position}`);
    }
    const [refused] = await exchange(service, 'GET /books HTTP/1.1\r\nHost: x\r\nX-Request-Id: "\r\n\r\n');
    const id = refused?.headers['x-request-id'] ?? '';
    assert.match(id, /^[\w-]{8,}$/);
    await waitUntil(() => linesOf(service).some(({ reqId }) => reqId === id));
    for (const [position, [, method, path, status]] of asked.entries()) {
      const [line, ...others] = linesOf(service).filter(({ reqId }) => reqId === `my.name:${position}`);
      const { time, milliseconds, ...rest } = line ?? {};
      const reqId = `my.name:${position}`;
      assert.deepEqual(rest, { level: 'info', reqId, method, path, status, msg: 'request' });
      assert.equal(new Date(String(time)).toISOString(), time);
      assert.ok(Number(milliseconds) >= 0 && Number(milliseconds) < 5000);
      assert.equal(others.length, 0);
    }
  });

  test('has one whose client has left before it was answered', async (context) => {
    const service = await start(context, 'info');
    const unlock = lock(service);
    const leaver = new Connection(service);
    const head = `Authorization: ${service.client.token}\r\nX-Request-Id: leaver\r\nContent-Length: 2`;
    await leaver.send(`POST /book HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n{}`);
    await request(service, 'GET', '/nowhere'); // by now the other has been read, too
    leaver.socket.resetAndDestroy();
    await leaver.closed;
    unlock();
    await waitUntil(() => linesOf(service).some(({ reqId }) => reqId === 'leaver'));
  });

  for (const level of ['info', 'warn'] as const) {
    test(`at LOG_LEVEL=${level}, slow requests stand out, once a second however many there are`, async (context) => {
      const service = await start(context, level);
      const unlock = lock(service);
      const answers = Promise.all(
        Array.from({ length: 20 }, () => service.client.request('POST', '/book', { body: {} })),
      );
      await pause(1200);
      unlock();
      for (const { status } of await answers) assert.equal(status, 201);
      const slow = () => linesOf(service).filter(({ msg }) => msg === 'slow request');
      await waitUntil(() => slow().length === 1);
      const [line] = slow();
      assert.deepEqual([line?.level, line?.method, line?.path, line?.status], ['warn', 'POST', '/book', 201]);
      assert.ok(Number(line?.milliseconds) >= 1000);
      const others = () => linesOf(service).filter(({ path, msg }) => path === '/book' && msg === 'request');
      if (level === 'info') await waitUntil(() => others().length === 19);
      else assert.equal(others().length, 0);
    });
  }

  test('rule 23: a store that fails is said once a second, with how many requests met it', async (context) => {
    const service = await start(context, 'warn');
    const db = new DatabaseSync(fileOf(service.dbUrl));
    db.exec('drop table books');
    db.close();
    const faults = () => linesOf(service).filter(({ msg }) => msg === 'the store is unavailable');
    let sent = 0;
    await waitUntil(async () => {
      const { status } = await service.client.request('GET', '/book/1');
      assert.equal(status, 503);
      sent += 1;
      return faults().length === 3;
    });
    for (const { level, reason } of faults()) assert.deepEqual([level, typeof reason], ['error', 'string']);
    const counted = () => faults().reduce((sum, { requests }) => sum + Number(requests), 0);
    await waitUntil(() => counted() === sent);
    assert.equal(linesOf(service).length, faults().length); // the requests themselves are not warned of

    // Another reason in the same second is told as well.
    renameSync(fileOf(service.dbUrl), `${temporaryFolder()}/away.db`);
    await service.client.request('GET', '/book/1');
    await service.client.request('GET', '/books');
    await waitUntil(() => counted() === sent + 2);
    assert.equal(new Set(faults().map(({ reason }) => reason)).size, 2);
  });
});

describe('the log, with nobody who takes it', { concurrency: 3, timeout: 120_000 }, () => {
  test('rule 27: a full disk holds nobody up, and SIGTERM ends the service well', async (context) => {
    const port = await unusedPort();
    const full = openSync('/dev/full', 'w');
    const main = COMMAND;
    const child = spawn(process.execPath, [main], {
      env: variables(port),
      stdio: ['ignore', full, 'ignore'],
    });
    closeSync(full);
    const target = await serving(context, child, port);
    await fillLog(target, 200);
    await endsWell(child);
  });

  test('rule 27: a reader that has stalled holds nobody up, and SIGTERM ends the service well', async (context) => {
    const port = await unusedPort();
    const child = spawnService(variables(port));
    const target = await serving(context, child, port);
    await fillLog(target, 200); // more than a pipe takes
    await endsWell(child);
  });

  test('a reader that comes back is told how many lines were lost', async (context) => {
    const port = await unusedPort();
    const child = spawnService(variables(port));
    const target = await serving(context, child, port);
    await fillLog(target, 1200); // more than waits for a reader
    const lines: { msg: string; lines?: number }[] = [];
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      lines.push(JSON.parse(line)); // none is cut
    });
    await waitUntil(() => lines.some(({ msg }) => msg.startsWith('lines of the log were lost')));
    const lost = lines.filter(({ msg }) => msg.startsWith('lines of the log were lost'));
    assert.equal(lost.length, 1);
    const seen = lines.filter(({ msg }) => msg === 'request').length;
    assert.equal(seen + Number(lost[0]?.lines), 1200);
    assert.ok(seen > 100);
    await request(target, 'GET', '/nowhere');
    await waitUntil(() => lines.filter(({ msg }) => msg === 'request').length === seen + 1);
    await endsWell(child);
  });

  test('a fault of its own ends it with 1 and a sentence, though the reader has stalled', async (context) => {
    const port = await unusedPort();
    const fault = join(temporaryFolder(), 'fault.mjs');
    writeFileSync(fault, `process.on('SIGUSR2', () => { throw new Error('as the test wishes'); });`);
    const child = spawnService({ ...variables(port), NODE_OPTIONS: `--import=${fault}` });
    let stderr = '';
    child.stderr?.on('data', (text) => {
      stderr += text;
    });
    const target = await serving(context, child, port);
    await fillLog(target, 200);
    child.kill('SIGUSR2');
    const [code] = await once(child, 'exit', { signal: AbortSignal.timeout(5000) });
    assert.equal(code, 1);
    await waitUntil(() => stderr !== '');
    assert.equal(stderr, 'The service ended because of a fault of its own: as the test wishes\n');
  });
});

describe('files that hold secrets', { concurrency: 2, timeout: 60_000 }, () => {
  test('rule 27: a pipe that nobody writes into is refused by name within 10 s', async (context) => {
    const pipe = join(temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const { code, stderr } = await refusal(context, pipe);
    assert.equal(code, 1);
    assert.match(stderr, /^SECRET_TOKEN_FILE cannot be read: nothing was written into it [^\n]+\.\n$/);
  });

  test('rule 27: a file without an end is refused by name', async (context) => {
    const { code, stderr } = await refusal(context, '/dev/zero');
    assert.equal(code, 1);
    assert.match(stderr, /^SECRET_TOKEN_FILE cannot be read: it is longer than 65536 bytes\.\n$/);
  });

  test('rule 25: a pipe will do, whose writer may come late', async (context) => {
    const pipe = join(temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const port = await unusedPort();
    const { SECRET_TOKEN, ...env } = variables(port);
    const child = spawnService({ ...env, SECRET_TOKEN_FILE: pipe });
    const writer = spawn('sh', ['-c', 'sleep 0.5; printf "%s" "$SECRET" > "$PIPE"'], {
      env: { ...process.env, SECRET: SECRET_TOKEN, PIPE: pipe },
    });
    context.after(() => writer.kill('SIGKILL'));
    await serving(context, child, port);
    await endsWell(child);
  });
});

interface LoggedService extends Target {
  readonly dbUrl: string;
  readonly client: Client;
  readonly log: string[];
}

async function start(context: TestContext, level: string): Promise<LoggedService> {
  const port = await unusedPort();
  const env = { ...variables(port), LOG_LEVEL: level, ADMIN_PORT: '0' };
  const child = spawnService(env);
  const log: string[] = [];
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => log.push(line));
  const target = await serving(context, child, port);
  return { ...target, dbUrl: env.DB_URL, client: await Client.logIn(target), log };
}

function linesOf({ log }: LoggedService): Record<string, unknown>[] {
  return log.map((line) => JSON.parse(line));
}

/** Keeps the store from writing until the returned function is called. */
function lock({ dbUrl }: LoggedService): () => void {
  const db = new DatabaseSync(fileOf(dbUrl));
  db.exec('begin immediate');
  return () => db.close();
}

function variables(port: number) {
  const DB_URL = `sqlite:${join(temporaryFolder(), 'books.db')}`;
  return { ...ENVIRONMENT, PORT: String(port), DB_URL, LOG_LEVEL: 'info' };
}

/** Waits until the child serves; whatever becomes of the test, it is gone afterwards. */
async function serving(context: TestContext, child: ChildProcess, port: number): Promise<Target> {
  context.after(() => child.kill('SIGKILL'));
  await waitUntil(() => accepts('127.0.0.1', port));
  return { url: `http://127.0.0.1:${port}`, port };
}

/** Makes the log long; every request must be answered. */
async function fillLog(target: Target, lines: number): Promise<void> {
  for (let sent = 0; sent < lines; sent += 50) {
    const text = `GET ${LONG_PATH} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(50);
    const answers = await exchange(target, text, 50);
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([404]));
    assert.equal(answers.length, 50);
  }
}

/** The process must end with 0 within 10 s. */
async function endsWell(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit', { signal: AbortSignal.timeout(10_000) });
  assert.equal(code, 0);
}

async function refusal(context: TestContext, file: string) {
  const { SECRET_TOKEN: _, ...env } = variables(0);
  const child = spawnService({ ...env, SECRET_TOKEN_FILE: file });
  context.after(() => child.kill('SIGKILL'));
  let stderr = '';
  child.stderr?.on('data', (text) => {
    stderr += text;
  });
  const [code] = await once(child, 'close', { signal: AbortSignal.timeout(10_000) });
  return { code, stderr };
}
