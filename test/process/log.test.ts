// The log: its lines about requests and faults, their levels, what it shows on a terminal, and what happens when
// nothing reads it: a full disk, a stalled reader, an internal error at such a moment.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, createReadStream, openSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { faultAnswers } from '../../src/api/faults.ts';
import { RequestCounts } from '../../src/api/request-counts.ts';
import { Tokens } from '../../src/auth/tokens.ts';
import { Catalogue } from '../../src/books/catalogue.ts';
import { StoreUnavailable } from '../../src/books/store.ts';
import { run } from '../../src/cli.ts';
import type { LogLevel } from '../../src/config.ts';
import { NoRoomForBody } from '../../src/http/body.ts';
import { type LogTarget, LogWriter } from '../../src/log/destination.ts';
import { createLog } from '../../src/log/log.ts';
import { TIMES } from '../../src/times.ts';
import { accepts, Connection, exchange, request, type Target } from '../support/client.ts';
import { unusedPort } from '../support/ports.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import {
  ENVIRONMENT,
  fileOf,
  preloaded,
  type RunningService,
  SQLITE,
  spawnService,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { holdWrites } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

type Line = Readonly<Record<string, unknown>>;

/** Each request for it adds a line of this length to the log. */
const LONG_PATH = `/${'x'.repeat(12_000)}`;

describe('the log of requests', { concurrency: 4 }, () => {
  test('rules 20 and 24: has one line for each, with the id that its client gave it', async () => {
    const { service, lines } = await start();
    const awkward = String.raw`/"quoted"\\u0041`;
    const asked = [
      ['GET', '/books?secret=1', '/books', 401],
      ['GET', awkward, awkward, 404],
      ['DELETE', '/book/1?a?b', '/book/1', 401],
      ['GET', '/book/%zz?secret', '/book/%zz', 400],
      ['PROPFIND', '/book', '/book', 405],
    ] as const;
    const ask = async (method: string, url: string, id: string) => {
      const text = `${method} ${url} HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n\r\n`;
      return (await exchange(service, Buffer.from(text)))[0]?.headers['x-request-id'];
    };
    for (const [position, [method, url]] of asked.entries())
      assert.equal(await ask(method, url, `my.name:${position}`), `my.name:${position}`);
    const id = await ask('GET', '/books', '"');
    assert.match(String(id), /^[\w-]{8,}$/);
    await waitUntil(() => lines.some(({ reqId }) => reqId === id));
    for (const [position, [method, , path, status]] of asked.entries()) {
      const reqId = `my.name:${position}`;
      const [line, ...others] = lines.filter((line) => line.reqId === reqId);
      const { time, milliseconds, level, msg, ...rest } = line ?? {};
      assert.deepEqual([rest, others], [{ reqId, method, path, status }, []]);
      assert.match(`${level} ${msg}`, /^(info request|warn slow request)$/); // depends on the speed of the machine
      assert.equal(new Date(String(time)).toISOString(), time);
      assert.ok(Number(milliseconds) >= 0);
    }
  });

  test('has a line for a request whose client disconnected before the answer', async () => {
    const { service, lines } = await start();
    const unlock = await holdWrites(service.dbUrl);
    const leaver = new Connection(service);
    const head = `Authorization: ${service.client.token}\r\nX-Request-Id: leaver\r\nContent-Length: 2`;
    await leaver.send(`POST /book HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n{}`);
    await request(service, 'GET', '/nowhere'); // by now the other has been read as well
    leaver.socket.resetAndDestroy();
    await leaver.closed;
    await unlock();
    await waitUntil(() => lines.some(({ reqId }) => reqId === 'leaver'));
  });
});

// Their time is that of the test, so no other test may run at the same time.
describe('how often there is a line', () => {
  for (const level of ['info', 'warn'] as const) {
    test(`at LOG_LEVEL=${level}, slow requests are marked, once a second however many there are`, (context) => {
      let now = 1_000_000;
      context.mock.method(performance, 'now', () => now);
      const { log, lines } = logTo(level);
      for (; now < 1_002_500; now += 500) {
        for (let count = 0; count < 20; count += 1) log.request('id', 'POST', '/book?x', 201, 1000);
        log.request('id', 'GET', '/book', 200, 999);
        log.request('id', 'GET', '/book', 401, 5000); // late on purpose
      }
      const slow = lines.filter(({ msg }) => msg === 'slow request');
      assert.equal(slow.length, 3);
      const { time: _, ...line } = slow[0] ?? {};
      const posted = { reqId: 'id', method: 'POST', path: '/book', status: 201 };
      assert.deepEqual(line, { level: 'warn', ...posted, milliseconds: 1000, msg: 'slow request' });
      assert.equal(lines.length, level === 'info' ? 5 * 22 : 3);
    });
  }

  test('rules 22 and 23: a failing store, or no room for a body, is logged at once, then once a second, with the number of affected requests', (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const { log, lines } = logTo('warn');
    const faults = faultAnswers(log, new RequestCounts(), TIMES.api);
    const fail = (reason: string) => {
      const error = reason === 'body' ? new NoRoomForBody() : new StoreUnavailable(reason);
      assert.equal(faults.answer(error, 'id').status, 503);
    };
    const logged = () => lines.splice(0).map(({ time: _, ...line }) => line);
    const line = (reason: string, requests: number, msg = 'the store is unavailable') => {
      return { level: 'error', reqId: 'id', reason, requests, msg };
    };
    const body = line('the memory for request bodies is used up', 1, 'a request body was refused');
    fail('full');
    fail('body');
    assert.deepEqual(logged(), [line('full', 1), body]);
    for (const reason of ['full', 'away', 'full', 'body']) fail(reason);
    context.mock.timers.tick(999);
    assert.deepEqual(logged(), []);
    context.mock.timers.tick(1);
    assert.deepEqual(logged(), [line('full', 2), line('away', 1), body]);
    context.mock.timers.tick(1000);
    fail('full');
    assert.deepEqual(logged(), [line('full', 1)]);
  });
});

describe('the log of faults', () => {
  test('the last lines are written when a fault ends the process; one that is due after the end does no harm', async () => {
    const file = join(temporaryFolder(), 'log');
    const fd = openSync(file, 'a');
    const [closed, last] = ['closed', 'last'].map(
      () => new LogWriter({ fd, isTTY: false }, false, TIMES.log),
    );
    last?.write('last\n');
    (process.listeners('exit').at(-1) as () => void)();
    assert.equal(readFileSync(file, 'utf8'), 'last\n');
    await Promise.all([closed?.close(), last?.close()]);
    closed?.write('late\n');
    assert.doesNotMatch(readFileSync(file, 'utf8'), /late/);
    closeSync(fd);
  });

  test('T5, rules 19 and 20: a token that cannot be signed, and any other fault of the service, are logged', async (context) => {
    const { service, lines } = await start();
    const { token } = service.client;
    context.mock.method(Tokens.prototype, 'issue', () => {
      throw new Error('the signer is out of order');
    });
    context.mock.method(Catalogue.prototype, 'find', async () => {
      throw new Error('the store is out of order');
    });
    const { AUTH_USERNAME: username, AUTH_PASSWORD: password } = ENVIRONMENT;
    for (const [method, path, answered, msg, what] of [
      ['POST', '/token', 'Could not generate token', 'a token could not be signed', 'signer'],
      ['GET', '/book/1', 'Internal server error', 'a request failed', 'store'],
    ] as const) {
      const body = method === 'POST' ? { username, password } : undefined;
      const answer = await request(service, method, path, { token, body });
      assert.deepEqual([answer.status, answer.message, answer.data], [500, answered, null]);
      const reqId = answer.headers.get('x-request-id');
      const [line = {}, asked, ...others] = lines.filter((line) => line.reqId === reqId);
      const { stack, ...err } = line.err as { stack: string[] };
      const expected = { name: 'Error', message: `the ${what} is out of order` };
      assert.deepEqual({ ...line, time: '', err }, { level: 'error', time: '', reqId, err: expected, msg });
      // The place of the error, in files of the project.
      assert.match(stack[0] ?? '', /^at .*test\/process\/log\.test\.ts:\d+:\d+\)?$/);
      assert.ok(stack.some((call) => call.includes('(src/api/') || call.includes('(src/books/')));
      assert.deepEqual([asked?.msg, asked?.level, asked?.status, others], ['request', 'error', 500, []]);
    }
  });
});

describe('a log that nothing reads', { concurrency: 3 }, () => {
  test('rule 27: with a full disk, requests are answered, and SIGTERM is a graceful shutdown', async () => {
    const service = await serveInto(openSync('/dev/full', 'w'));
    await fillLog(service, 200);
    assert.equal(await service.end(), 0);
  });

  test('rule 31: a reader that resumes finds how many lines were lost', async () => {
    const pipe = join(temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const fd = openSync(pipe, 'r+'); // which waits for no reader
    const service = await serveInto(fd);
    await fillLog(service, 800); // more than is kept for a reader
    const lines: Line[] = [];
    createInterface({ input: createReadStream(pipe) }).on('line', (line) => lines.push(JSON.parse(line))); // throws if one is cut
    const notices = () => lines.filter(({ msg }) => String(msg).startsWith('log lines were lost'));
    await waitUntil(() => notices().length > 0);
    await request(service, 'GET', '/back');
    await waitUntil(() => lines.some(({ path }) => path === '/back')); // after the last of the others
    const [{ lines: lost, level } = {}, ...others] = notices();
    assert.deepEqual([level, others], ['error', []]);
    const metrics = await scrape(service.operations);
    assert.equal(sumOf(metrics, 'book_catalogue_log_lines_lost_total'), lost);
    const requests = lines.filter(({ path }) => path === LONG_PATH).length;
    assert.equal(requests + Number(lost), 800);
    assert.ok(requests > 100);
    assert.equal(await service.end(), 0);
    closeSync(fd);
  });

  test('an internal error ends the service with exit code 1, and a message with its stack, even if nothing reads the log', async (context) => {
    const fault = "process.on('SIGUSR2', () => { throw new Error('as the test wishes'); });";
    const port = await unusedPort();
    const ports = { PORT: `${port}`, ADMIN_PORT: '0', PAGE_PORT: 'off' };
    const child = spawnService({ ...(await variables()), ...ports, NODE_OPTIONS: preloaded(fault) });
    context.after(() => child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    await waitUntil(() => accepts('127.0.0.1', port), ended);
    await fillLog({ url: '', port }, 200);
    child.kill('SIGUSR2');
    const said = await text(child.stderr as NodeJS.ReadableStream);
    assert.match(said, /^Internal error, exiting: Error: as the test wishes\n {4}at /);
    assert.deepEqual(await ended, [1, null]);
  });
});

describe('on a terminal', { concurrency: 4 }, () => {
  /** Part of everything that must not be shown. */
  const MARK = 'never-show-this';
  const OWN = { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: `a password, ${MARK}` };

  /** Serves on a simulated terminal until `visitor` has returned. */
  async function visit(
    env: Readonly<Record<string, string>>,
    visitor: (shown: () => string) => Promise<void>,
  ): Promise<string> {
    const file = join(temporaryFolder(), 'terminal');
    const shown = () => readFileSync(file, 'utf8');
    const { ended, stop } = serve({ isTTY: true, fd: openSync(file, 'a') }, { PORT: '0', ...env });
    await waitUntil(() => shown() !== '', ended);
    await visitor(shown);
    stop('SIGINT');
    assert.equal(await ended, 0);
    return shown();
  }

  test('shows the address, the store, username and password, and a command that works', async () => {
    const store = await SQLITE.freshUrl();
    const seen = await visit({ DB_URL: store }, async (shown) => {
      assert.match(shown(), /\badmin\b.*\bpassword\b/);
      assert.ok(shown().includes(`  ${realpathSync(fileOf(store))} (new)\n`));
      const [, address] = /(http:\/\/127\.0\.0\.1:\d+)\n/.exec(shown()) ?? [];
      const [, url = '', body = ''] = /curl -X POST (\S+) -d '([^']+)'/.exec(shown()) ?? [];
      assert.equal(url, `${address}/token`);
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }; // as curl sends it
      const response = await fetch(url, { method: 'POST', headers, body });
      assert.equal(response.status, 200);
      await waitUntil(() => /(info|warn) .*request.*path=\/token.*status=200/.test(shown()));
    });
    assert.match(seen, /warn .*AUTH_USERNAME.*\n.*warn .*SECRET_TOKEN/);
    assert.doesNotMatch(seen, /^\{/m); // lines for people, not JSON
  });

  test('shows the lines of LOG_LEVEL, and neither the configured password nor the secret', async () => {
    const guarded = { ...OWN, HOST: '127.0.0.1', SECRET_TOKEN: MARK };
    for (const [LOG_LEVEL, shownLines] of [
      ['warn', /warn .*SECRET_TOKEN.*\n$/],
      ['silent', /-d '[^']+'\n\n$/], // the command
    ] as const) {
      const seen = await visit({ ...guarded, LOG_LEVEL, DB_URL: await SQLITE.freshUrl() }, async (shown) => {
        const [, url] = /Address +(\S+)\n/.exec(shown()) ?? [];
        assert.equal((await fetch(`${url}/nowhere`)).status, 404);
      });
      assert.match(seen, /\blibrarian\b/);
      assert.match(seen, shownLines); // all output has been written when the command has ended
      assert.ok(!seen.includes(MARK));
    }
  });
});

/** A log whose lines are kept. */
function logTo(level: LogLevel) {
  const lines: Line[] = [];
  return { log: createLog(level, { write: (line) => lines.push(JSON.parse(line)) }, TIMES.log), lines };
}

/** Starts a service in this process and keeps its log lines. */
async function start(): Promise<{ service: RunningService; lines: Line[] }> {
  const lines: Line[] = [];
  const write = (line: string) => lines.push(JSON.parse(line));
  const service = await startTestService(await SQLITE.freshUrl(), { LOG_LEVEL: 'info' }, { write });
  return { service, lines };
}

async function variables() {
  return { ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
}

/** Serves in this process, with such a standard output. */
function serve(stdout: LogTarget, env: Readonly<Record<string, string>>) {
  const { promise, resolve: stop } = Promise.withResolvers<string>();
  const streams = { stdout, stderr: process.stderr } as unknown as Parameters<typeof run>[2];
  return { ended: run([], env, streams, promise), stop };
}

/** Serves with a log that cannot be read. */
async function serveInto(fd: number) {
  const [port, adminPort] = [await unusedPort(), await unusedPort()];
  const ports = { PORT: `${port}`, ADMIN_PORT: `${adminPort}`, PAGE_PORT: 'off' };
  const { ended, stop } = serve({ isTTY: false, fd }, { ...(await variables()), ...ports });
  await waitUntil(() => accepts('127.0.0.1', port), ended);
  const end = () => {
    stop('SIGTERM');
    return ended;
  };
  return { url: `http://127.0.0.1:${port}`, port, operations: `http://127.0.0.1:${adminPort}`, end };
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
