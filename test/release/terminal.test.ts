// A terminal that is stopped, as by Ctrl-S, delays neither requests nor the end of the service. Also: which terminals
// show colours. A real terminal, by util-linux's `script`.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { accepts, Client, exchange } from '../support/client.ts';
import { unusedPort } from '../support/ports.ts';
import { COMMAND } from '../support/repository.ts';
import { ENVIRONMENT, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const STOP = '\x13';
const GO_ON = '\x11';

for (const workers of ['1', '2']) {
  test(`rule 27: a stopped terminal delays neither requests nor the shutdown, WORKERS=${workers}`, async (context) => {
    assert.ok(
      spawnSync('script', ['--version']).error === undefined,
      'script must be installed (Debian: apt-get install util-linux bsdutils)',
    );
    const port = await unusedPort();
    const ended = join(temporaryFolder(), 'ended');
    const command = `$COMMAND & echo "pid=$!"; wait $!; echo "code=$?" > "$ENDED"`;
    const terminal = spawn('script', ['-qfec', command, '/dev/null'], {
      env: {
        ...process.env,
        ...ENVIRONMENT,
        COMMAND: COMMAND.join(' '),
        ENDED: ended,
        PORT: String(port),
        DB_URL: `sqlite:${join(temporaryFolder(), 'books.db')}`,
        LOG_LEVEL: 'info',
        WORKERS: workers,
        SHELL: '/bin/sh',
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let shown = '';
    terminal.stdout.on('data', (text) => {
      shown += text;
    });
    await waitUntil(() => /pid=\d+/.test(shown));
    const pid = Number(/pid=(\d+)/.exec(shown)?.[1]);
    context.after(() => {
      terminal.kill('SIGKILL');
      try {
        process.kill(pid, 'SIGKILL');
      } catch {} // it has exited, as it should
    });
    const target = { url: `http://127.0.0.1:${port}`, port };
    await waitUntil(() => accepts('127.0.0.1', port));
    const client = await Client.logIn(target);
    await waitUntil(() => shown.includes('Book catalogue') && shown.includes('path=/token'));

    terminal.stdin.write(STOP);
    await waitUntil(async () => {
      const before = shown.length;
      await client.request('GET', '/nowhere');
      await new Promise((resolve) => setTimeout(resolve, 300));
      return shown.length === before; // the terminal has stopped
    });
    const path = `/${'x'.repeat(1000)}`;
    for (let count = 0; count < 10; count += 1) {
      const text = `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(50); // more than a terminal buffers
      assert.equal((await exchange(target, text, 50)).length, 50);
    }
    assert.equal((await client.request('GET', '/books')).status, 200);
    terminal.stdin.write(GO_ON);
    await waitUntil(() => shown.includes('path=/books'));

    terminal.stdin.write(STOP);
    await waitUntil(async () => {
      const before = shown.length;
      await client.request('GET', '/nowhere');
      await new Promise((resolve) => setTimeout(resolve, 300));
      return shown.length === before;
    });
    process.kill(pid, 'SIGTERM');
    const gone = once(terminal, 'exit');
    await waitUntil(() => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
    terminal.stdin.on('error', () => {}); // the terminal may have ended before it reads this
    terminal.stdin.end(GO_ON);
    await gone;
    assert.equal(readFileSync(ended, 'utf8'), 'code=0\n');
  });
}

const WARNING = '\x1b[33mwarn ';

for (const [what, env, coloured] of [
  ['with colours, levels are coloured', { TERM: 'xterm-256color' }, true],
  ['without colours, nothing is coloured', { TERM: 'dumb' }, false],
  ['with NO_COLOR, nothing is coloured', { TERM: 'xterm-256color', NO_COLOR: '1' }, false],
] as const) {
  test(`on a terminal ${what}`, async (context) => {
    const { AUTH_USERNAME: _name, AUTH_PASSWORD: _password, ...variables } = ENVIRONMENT; // so that it warns
    const terminal = spawn('script', ['-qfec', 'exec $COMMAND', '/dev/null'], {
      env: {
        PATH: process.env.PATH,
        ...variables,
        ...env,
        COMMAND: COMMAND.join(' '),
        DB_URL: `sqlite:${join(temporaryFolder(), 'books.db')}`,
        LOG_LEVEL: 'info',
        SHELL: '/bin/sh',
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    context.after(() => terminal.kill('SIGKILL')); // the service ends with its terminal
    let shown = '';
    terminal.stdout.on('data', (text) => {
      shown += text;
    });
    await waitUntil(() => /AUTH_USERNAME[^\n]*\n/.test(shown));
    assert.equal(shown.includes(WARNING), coloured, shown);
    assert.equal(shown.includes('\x1b['), coloured, shown);
  });
}
