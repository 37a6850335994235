// A terminal that is stopped, as by Ctrl-S, delays neither requests nor the end of the service. Also: which terminals show
// colours. A real terminal, by util-linux's `script`; python3 stops it.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { accepts, Client, exchange } from '../support/client.ts';
import { unusedPort } from '../support/ports.ts';
import { COMMAND } from '../support/repository.ts';
import { ENVIRONMENT, SQLITE } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** More bytes of log than a terminal keeps. */
const MUCH = 500_000;

for (const WORKERS of ['1', '2']) {
  test(`rule 27: a stopped terminal delays neither requests nor the shutdown, WORKERS=${WORKERS}`, async (context) => {
    const port = await unusedPort();
    const { shown, pid, exitCode } = await start(context, { ...ENVIRONMENT, PORT: `${port}`, WORKERS });
    await waitUntil(() => accepts('127.0.0.1', port), exitCode);
    const target = { url: `http://127.0.0.1:${port}`, port };
    const client = await Client.logIn(target);
    await waitUntil(() => shown().includes('path=/token'));

    flow(pid(), 'TCOOFF');
    const call = `GET /${'x'.repeat(1000)} HTTP/1.1\r\nHost: x\r\n\r\n`;
    for (let bytes = 0; bytes < MUCH; bytes += 50 * call.length)
      assert.equal((await exchange(target, call.repeat(50), 50)).length, 50);
    assert.equal((await client.request('GET', '/books')).status, 200);
    flow(pid(), 'TCOON');
    await waitUntil(() => shown().includes('path=/books'));

    flow(pid(), 'TCOOFF');
    process.kill(pid(), 'SIGTERM');
    await waitUntil(() => exitCode() !== undefined);
    assert.equal(exitCode(), 0);
  });
}

test('only a terminal with colours shows levels in them, unless NO_COLOR is set', async (context) => {
  for (const [env, coloured] of [
    [{ TERM: 'xterm-256color' }, true],
    [{ TERM: 'dumb' }, false],
    [{ TERM: 'xterm-256color', NO_COLOR: '1' }, false],
  ] as const) {
    const { shown, exitCode } = await start(context, { PORT: '0', HOST: '127.0.0.1', ...env });
    await waitUntil(() => /SECRET_TOKEN[^\n]*\n/.test(shown()), exitCode); // it warns
    assert.deepEqual(
      [shown().includes('\x1b[33mwarn '), shown().includes('\x1b[')],
      [coloured, coloured],
      shown(),
    );
  }
});

/** Starts the real command on a terminal, with which it ends. */
async function start(context: TestContext, env: Readonly<Record<string, string>>) {
  const terminal = spawn('script', ['-qfec', `exec ${COMMAND.join(' ')}`, '/dev/null'], {
    env: {
      ...{ PATH: process.env.PATH, SHELL: '/bin/sh', TERM: 'dumb' },
      ...{ ...env, DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' },
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  context.after(() => terminal.kill('SIGKILL'));
  let shown = '';
  terminal.stdout.on('data', (text) => {
    shown += text;
  });
  return {
    /** Everything that the terminal has shown. */
    shown: () => shown,
    pid: () => Number(readFileSync(`/proc/${terminal.pid}/task/${terminal.pid}/children`, 'utf8')),
    /** Of the command, once it has ended. */
    exitCode: () => terminal.exitCode ?? undefined,
  };
}

/** Stops the output of a process's terminal or lets it continue, as Ctrl-S and Ctrl-Q do. A stopped one takes no more bytes. */
function flow(pid: number, action: 'TCOOFF' | 'TCOON'): void {
  const script = `
import os, sys, termios
terminal = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
termios.tcflow(terminal, termios.${action})
try:
  os.write(terminal, b'-')
except BlockingIOError:
  print('stopped')`;
  const said = execFileSync('python3', ['-c', script, readlinkSync(`/proc/${pid}/fd/1`)], {
    encoding: 'utf8',
  });
  if (action === 'TCOOFF') assert.equal(said, 'stopped\n');
}
