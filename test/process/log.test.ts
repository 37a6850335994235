// The log: its lines about requests and faults, their levels, what it shows on a terminal, and what happens when
// nothing reads it: a full disk, a stalled reader, an internal error at such a moment.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { Faults } from '../../src/api/faults.ts';
import { RequestCounts } from '../../src/api/request-counts.ts';
import { type BookStore, StoreUnavailable } from '../../src/books/store.ts';
import { run } from '../../src/cli.ts';
import type { LogLevel } from '../../src/config.ts';
import { NoRoomForBody } from '../../src/http/body.ts';
import { LogWriter } from '../../src/log/destination.ts';
import { createLog } from '../../src/log/log.ts';
import { TIMES } from '../../src/times.ts';
import { accepts, Connection, exchange, request, type Target } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { FULL, NO_FULL_DISK } from '../support/full-disk.ts';
import { unusedPort } from '../support/ports.ts';
import { scrape, sumOf } from '../support/prometheus.ts';
import { COMMAND } from '../support/repository.ts';
import {
  ENVIRONMENT,
  fileOf,
  preloaded,
  type RunningService,
  SECRET,
  SQLITE,
  spawnService,
  startCommand,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { holdWrites } from '../support/sql.ts';
import { startUnableApp } from '../support/unable.ts';
import { waitUntil } from '../support/wait.ts';

type Line = Readonly<Record<string, unknown>>;

/** Each request for it adds a line of this length to the log. */
const LONG_PATH = `/${'x'.repeat(12_000)}`;

describe('the log of requests', { concurrency: 4 }, () => {
  test('rules 20 and 24: has one line for each, with the id that its client gave it', async (context) => {
    const { service, lines } = await start(context);
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
    for (const [position, [method, url]] of asked.entries()) {
      assert.equal(await ask(method, url, `my.name:${position}`), `my.name:${position}`);
    }
    const id = await ask('GET', '/books', '"');
    assert.match(String(id), /^[\w-]{8,}$/);
    await waitUntil(() => lines.some(({ reqId }) => reqId === id));
    for (const [position, [method, , path, status]] of asked.entries()) {
      const reqId = `my.name:${position}`;
      const [line, ...others] = lines.filter((line) => line.reqId === reqId);
      const { time, milliseconds, level, msg, ...rest } = line ?? {};
      assert.deepEqual(rest, { reqId, method, path, status });
      assert.match(`${level} ${msg}`, /^(info request|warn slow request)$/); // depends on the speed of the machine
      assert.equal(new Date(String(time)).toISOString(), time);
      assert.ok(Number(milliseconds) >= 0);
      assert.equal(others.length, 0);
    }
  });

  test('has a line for a request whose client disconnected before the answer', async (context) => {
    const { service, lines } = await start(context);
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

  test('rule 23: a failing store is logged at once, then once a second, with the number of affected requests', (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const { log, lines } = logTo('warn');
    const faults = new Faults(log, new RequestCounts(), TIMES.api);
    const fail = (reason: string) =>
      assert.equal(faults.answer(new StoreUnavailable(reason), reason).status, 503);
    const logged = () => lines.splice(0).map(({ reason, requests }) => [reason, requests]);
    fail('full');
    assert.deepEqual(logged(), [['full', 1]]);
    for (const reason of ['full', 'away', 'full']) fail(reason);
    context.mock.timers.tick(999);
    assert.deepEqual(logged(), []);
    context.mock.timers.tick(1);
    assert.deepEqual(logged(), [
      ['full', 2],
      ['away', 1],
    ]);
    context.mock.timers.tick(1000);
    fail('full');
    const { time: _, ...line } = lines[0] ?? {};
    const expected = {
      level: 'error',
      reqId: 'full',
      reason: 'full',
      requests: 1,
      msg: 'the store is unavailable',
    };
    assert.deepEqual(line, expected);
  });

  test('rules 22 and 23: a body for which there is no room is logged', (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const { log, lines } = logTo('error');
    assert.equal(
      new Faults(log, new RequestCounts(), TIMES.api).answer(new NoRoomForBody(), 'id').status,
      503,
    );
    const { time: _, ...line } = lines[0] ?? {};
    const reason = 'the memory for request bodies is used up';
    assert.deepEqual(line, {
      level: 'error',
      reqId: 'id',
      reason,
      requests: 1,
      msg: 'a request body was refused',
    });
  });
});

describe('the log of faults', { concurrency: 4 }, () => {
  test('an error that ends the process is printed with its stack, and the request that caused it is logged', async (context) => {
    // While nothing is being written: lines that wait for a slow reader are lost when the process ends by a fault.
    const crash = `
      const fs = require('node:fs');
      const { write } = fs;
      let writing = 0;
      fs.write = (fd, piece, done) => {
        writing += 1;
        write(fd, piece, (...outcome) => {
          writing -= 1;
          done(...outcome);
        });
      };
      require('node:module').syncBuiltinESMExports();
      const crash = () => {
        if (writing > 0) setImmediate(crash);
        else throw new Error('as the test wishes');
      };
      require('node:diagnostics_channel').subscribe('http.server.response.finish', ({ request }) => {
        if (request.url === '/crash') crash();
      });`;
    const service = await startCommand({
      ...ENVIRONMENT,
      LOG_LEVEL: 'info',
      DB_URL: await SQLITE.freshUrl(),
      NODE_OPTIONS: preloaded(crash),
    });
    context.after(() => service.process.kill('SIGKILL'));
    let errors = '';
    service.process.stderr?.on('data', (text) => {
      errors += text;
    });
    const closed = once(service.process, 'close');
    await request(service, 'GET', '/crash').catch(() => {});
    const [code] = await closed;
    assert.equal(code, 1);
    assert.match(errors, /^Internal error, exiting: Error: as the test wishes\n {4}at /);
    assert.ok(service.log.some((line) => JSON.parse(line).path === '/crash'));
  });

  test('rule 27: a line that is still due when the log is closed does no harm', async () => {
    const file = join(temporaryFolder(), 'log');
    const fd = openSync(file, 'a');
    const [closed, last] = [1, 2].map(() => new LogWriter({ fd, isTTY: false }, false, TIMES.log)) as [
      LogWriter,
      LogWriter,
    ];
    await closed.close();
    closed.write('late\n');
    last.write('last\n');
    await waitUntil(() => readFileSync(file, 'utf8') !== '');
    await last.close();
    closeSync(fd);
    assert.equal(readFileSync(file, 'utf8'), 'last\n');
  });

  test('T5, rules 19 and 20: a token that cannot be signed, and any other fault of the service, are logged', async (context) => {
    const { log, lines } = logTo('error');
    const limit = { size: 1, weight: 1, inFlight: 1 };
    const kinds = ['find', 'insert', 'keyed', 'bulk', 'update', 'remove', 'conditional', 'search'];
    const broken = {
      limits: Object.fromEntries(kinds.map((kind) => [kind, limit])),
      find: async () => {
        throw new Error('as the test wishes');
      },
    } as unknown as BookStore;
    const app = await startUnableApp(broken, () => true, log);
    context.after(() => app.stop());
    const { stdout } = await runCommand(['token'], { SECRET_TOKEN: SECRET });
    const login = await request(app, 'POST', '/token', { body: {} });
    const read = await request(app, 'GET', '/book/1', { token: stdout.trim() });
    assert.deepEqual([login.status, login.message, login.data], [500, 'Could not generate token', null]);
    assert.deepEqual([read.status, read.message, read.data], [500, 'Internal server error', null]);
    for (const [{ headers }, msg, message] of [
      [login, 'a token could not be signed', 'the signer is out of order'],
      [read, 'a request failed', 'as the test wishes'],
    ] as const) {
      const [line, request, ...others] = lines.filter(({ reqId }) => reqId === headers.get('x-request-id'));
      const { time: _, reqId: _id, ...rest } = line ?? {};
      const { stack, ...err } = rest.err as { stack: string[] };
      assert.deepEqual({ ...rest, err }, { level: 'error', err: { name: 'Error', message }, msg });
      // The place of the error, in files of the project.
      assert.match(stack[0] ?? '', /^at .*test\/(support\/unable|process\/log\.test)\.ts:\d+:\d+\)?$/);
      assert.ok(stack.some((call) => call.includes('(src/api/') || call.includes('(src/books/')));
      assert.deepEqual([request?.msg, request?.level, request?.status], ['request', 'error', 500]);
      assert.equal(others.length, 0);
    }
  });
});

describe('a log that nothing reads', { concurrency: 3 }, () => {
  test('rule 27: with a full disk, requests are answered, and SIGTERM is a graceful shutdown', {
    skip: NO_FULL_DISK,
  }, async (context) => {
    const full = openSync(FULL, 'w');
    // The port cannot be read from the log.
    const port = await unusedPort();
    const [program, ...args] = COMMAND;
    const child = spawn(program, args, {
      env: { ...variables(), PORT: String(port), ADMIN_PORT: '0', PAGE_PORT: '0' },
      stdio: ['ignore', full, 'ignore'],
    });
    context.after(() => child.kill('SIGKILL'));
    closeSync(full);
    await waitUntil(() => child.exitCode !== null || accepts('127.0.0.1', port));
    await fillLog({ url: `http://127.0.0.1:${port}`, port }, 200);
    await endsWell(child);
  });

  test('rule 31: a reader that resumes finds how many lines were lost', async (context) => {
    const { child, service, read } = await startUnread(context);
    await fillLog(service, 800); // more than is kept for a reader
    const lines = read();
    const notices = () => lines.filter(({ msg }) => String(msg).startsWith('log lines were lost'));
    await waitUntil(() => notices().length > 0);
    const [{ lines: lost, level } = {}, ...others] = notices();
    assert.equal(level, 'error');
    assert.equal(others.length, 0);
    const metrics = await scrape(service.operations);
    assert.equal(sumOf(metrics, 'book_catalogue_log_lines_lost_total'), lost);
    await request(service, 'GET', '/back');
    await waitUntil(() => lines.some(({ path }) => path === '/back')); // after the last of the others
    const requests = lines.filter(({ path }) => path === LONG_PATH).length;
    assert.equal(requests + Number(lost), 800);
    assert.ok(requests > 100);
    await endsWell(child);
  });

  test('an internal error ends the service with exit code 1 and a message, even with a stalled reader', async (context) => {
    const fault = "process.on('SIGUSR2', () => { throw new Error('as the test wishes'); });";
    const { child, service } = await startUnread(context, { NODE_OPTIONS: preloaded(fault) });
    let stderr = '';
    child.stderr?.on('data', (text) => {
      stderr += text;
    });
    await fillLog(service, 200);
    child.kill('SIGUSR2');
    await waitUntil(() => child.exitCode !== null && stderr !== '');
    assert.equal(child.exitCode, 1);
    assert.match(stderr, /^Internal error, exiting: Error: as the test wishes\n {4}at /);
  });
});

describe('on a terminal', { concurrency: 4 }, () => {
  /** Part of everything that must not be shown. */
  const MARK = 'never-show-this';
  const OWN = { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: `a password, ${MARK}` };

  /** Runs the command in this process, on a simulated terminal, until `visitor` has returned. */
  async function visit(
    env: Readonly<Record<string, string>>,
    visitor: (shown: () => string) => Promise<void> = async () => {},
  ) {
    const file = join(temporaryFolder(), 'terminal');
    const fd = openSync(file, 'a');
    const stderr = new PassThrough();
    let refusal = '';
    stderr.on('data', (chunk) => {
      refusal += chunk;
    });
    const shown = () => readFileSync(file, 'utf8') + refusal;
    const stop = Promise.withResolvers<string>();
    const streams = { stdout: { isTTY: true, fd }, stderr } as unknown as Parameters<typeof run>[2];
    const code = run([], { PORT: '0', ...env }, streams, stop.promise);
    try {
      await waitUntil(() => shown() !== '');
      await visitor(shown);
    } finally {
      stop.resolve('SIGINT');
      await code.finally(() => closeSync(fd));
    }
    return { code: await code, text: shown() };
  }

  test('shows the address, the store, username and password, and a command that works', async () => {
    const store = await SQLITE.freshUrl();
    const { code, text } = await visit({ DB_URL: store }, async (shown) => {
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
    assert.equal(code, 0);
    assert.match(text, /warn .*AUTH_USERNAME.*\n.*warn .*SECRET_TOKEN/);
    assert.doesNotMatch(text, /^\{/m); // lines for people, not JSON
  });

  test('shows the lines of LOG_LEVEL, and neither the configured password nor the secret', async () => {
    const guarded = { ...OWN, HOST: '127.0.0.1', SECRET_TOKEN: MARK };
    for (const [LOG_LEVEL, shownLines] of [
      ['warn', /warn .*SECRET_TOKEN.*\n$/],
      ['silent', /-d '[^']+'\n\n$/], // the command
    ] as const) {
      const { text } = await visit(
        { ...guarded, LOG_LEVEL, DB_URL: await SQLITE.freshUrl() },
        async (shown) => {
          const [, url] = /Address +(\S+)\n/.exec(shown()) ?? [];
          assert.equal((await fetch(`${url}/nowhere`)).status, 404);
        },
      );
      assert.match(text, /\blibrarian\b/);
      assert.match(text, shownLines); // all output has been written when the command has ended
      assert.ok(!text.includes(MARK));
    }
  });

  test('shows a refusal as one sentence', async () => {
    const { code, text } = await visit({ ...OWN, DB_URL: 'books.db' });
    assert.equal(code, 1);
    assert.match(text, /^DB_URL[^\n]+\.\n$/);
  });
});

/** A log whose lines are kept. */
function logTo(level: LogLevel) {
  const lines: Line[] = [];
  return { log: createLog(level, { write: (line) => lines.push(JSON.parse(line)) }, TIMES.log), lines };
}

/** Starts a service in this process and keeps its log lines. */
async function start(context: TestContext): Promise<{ service: RunningService; lines: Line[] }> {
  const lines: Line[] = [];
  const write = (line: string) => lines.push(JSON.parse(line));
  const service = await startTestService(await SQLITE.freshUrl(), { LOG_LEVEL: 'info' }, { write });
  context.after(() => service.stop());
  return { service, lines };
}

function variables() {
  const DB_URL = `sqlite:${join(temporaryFolder(), 'books.db')}`;
  return { ...ENVIRONMENT, DB_URL, LOG_LEVEL: 'info' };
}

interface Unread {
  readonly child: ChildProcess;
  readonly service: Target & { readonly operations: string };
  /** Resumes reading; further lines are added to the returned ones as they arrive. */
  read(): Line[];
}

/** Starts the command in a separate process, and stops reading its log once it listens. */
async function startUnread(context: TestContext, env: Record<string, string> = {}): Promise<Unread> {
  const child = spawnService({ ...variables(), ...env });
  context.after(() => child.kill('SIGKILL'));
  const lines: Line[] = [];
  let rest = '';
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    const whole = (rest + text).split('\n');
    rest = whole.pop() as string;
    for (const line of whole) lines.push(JSON.parse(line)); // throws if one is cut
    if (whole.some((line) => line.includes('"msg":"listening"'))) child.stdout?.pause();
  });
  await waitUntil(() => child.exitCode !== null || lines.some(({ msg }) => msg === 'listening'));
  const { url, operations } = lines.find(({ msg }) => msg === 'listening') as {
    url: string;
    operations: string;
  };
  return {
    child,
    service: { url, port: Number(new URL(url).port), operations },
    read() {
      child.stdout?.resume();
      return lines;
    },
  };
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

async function endsWell(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM');
  await waitUntil(() => child.exitCode !== null || child.signalCode !== null);
  assert.equal(child.exitCode, 0);
}
