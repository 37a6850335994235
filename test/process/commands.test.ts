// The commands other than `serve`: what they print for people and for programs, and their exit codes. They run in this
// process, unless they need a separate one.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { request } from '../support/client.ts';
import { refusedWith, runCommand, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { listen } from '../support/ports.ts';
import { COMMAND, pathTo } from '../support/repository.ts';
import { ENVIRONMENT, endOf, SECRET, SQLITE, spawnService, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const MARK = 'never-to-be-shown';
const NAMES = 'serve demo config ready token import export copy undo forget backup restore verify man'.split(
  ' ',
);

/** What is refused with exit code 2: arguments without blanks, and the sentence; "…" is the help of the command. */
const REFUSED = `
  import | book-catalogue import takes FILE, but got none. …
  import --dry-run a.csv b.csv | book-catalogue import takes FILE, but got 2. …
  copy a | book-catalogue copy takes FROM and TO, but got 1. …
  copy a b c | book-catalogue copy takes FROM and TO, but got 3. …
  token ${MARK} | book-catalogue token takes no arguments, but got 1. …
  serve x | book-catalogue serve takes no arguments, but got 1. …
  improt a.csv | There is no command "improt". See --help.
  toString | There is no command "toString". See --help.
  completion bash | There is no command "completion". See --help.
  undo --since 10:40 --list | Name one of --since, --book, --event, --change, --continue and --list. …
  undo --book 07 | --book must be a number. …
  undo --event 2-1 | --event must be an event of book-catalogue undo --list. …
  undo --since yesterday | --since must be a time such as 10:40, "2026-11-27 10:40" or 2026-11-27T10:40:00Z. …
  undo --since 2026-02-30 | --since must be a time such as 10:40, "2026-11-27 10:40" or 2026-11-27T10:40:00Z. …
  undo --since 2999-01-01T10:40+02:00 | --since 2999-01-01 08:40:00 UTC is in the future: name an earlier time.
  undo --since 24:00 | --since must be a time such as 10:40, "2026-11-27 10:40" or 2026-11-27T10:40:00Z. …
  --version x | book-catalogue takes no arguments, but got 1. See book-catalogue --help.
  --port=${MARK} | Unknown option '--port'. See book-catalogue --help.
  import --rejcts=${MARK} a.csv | Unknown option '--rejcts'. …
  import a.csv --rejects | Option '--rejects <value>' argument missing. …
  import --dry-run=${MARK} a.csv | Option '--dry-run' does not take an argument. …`;

/** Calls that print a name, or that are refused with one. */
const CALLS = `
  import ODD
  import ODD --year yODD
  import ODD --on-duplicate ODD
  undo --list
  import -ODD
  import noneODD
  import . --rejects ODD
  forget 1
  forget ODD
  export xODD
  export ODD
  export ODD --format ODD
  export ODD ODD
  backup ODD
  backup bODD
  backup no/ODD
  copy STORE sqlite:cODD
  copy STORE ODD
  restore ODD
  restore noneODD
  undo --since ODD
  ODD
  token ODD
  verify http://ODD`;

describe('commands', { concurrency: 3 }, () => {
  test('each has its own help, which reads no variable; help and version are also words', async () => {
    const all = await runCommand(['--help'], {});
    for (const same of ['help', '-h']) assert.deepEqual(await runCommand([same], { PORT: 'bad' }), all);
    const listed = [...all.stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name]) => name);
    assert.deepEqual(listed, NAMES);
    for (const name of NAMES) {
      const { code, stdout, stderr } = await runCommand([name, '--help'], { PORT: 'bad' });
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      assert.match(stdout, new RegExp(`^Usage: book-catalogue ${name}\\b`));
      assert.deepEqual(await runCommand(['help', name], {}), { code, stdout, stderr });
    }
    const { version } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
    for (const word of ['version', '--version'])
      assert.deepEqual(await runCommand([word], {}), { code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('what is mistyped, missing or surplus is reported in one sentence that shows no value', async () => {
    for (const row of REFUSED.trim().split('\n')) {
      const [line = '', sentence = ''] = row.split('|').map((cell) => cell.trim());
      const [name, ...others] = line.split(' ');
      const expected = sentence.replace('…', `See book-catalogue ${name} --help.`);
      assert.deepEqual(await runCommand([`${name}`, ...others], {}), refusedWith(expected, 2));
    }
    assert.equal((await endOf(spawnService({}, ['--port=80']))).code, 2);
  });

  test('undo refuses a time that the clocks of its machine left out or showed twice', async () => {
    const never = (time: string) =>
      `--since ${time} never was: the clocks were put forward. Name an earlier time.`;
    const twice = (time: string, one: string, other: string) =>
      `--since ${time} was twice: the clocks were put back. Name "${one} UTC" or "${other} UTC".`;
    const missing = 'DB_URL: there is no catalogue at sqlite:none.db.';
    const cases = [
      ['Europe/Berlin', '2025-03-30 02:30', never('2025-03-30 02:30'), 2],
      [
        'Europe/Berlin',
        '2025-10-26 02:30:15',
        twice('2025-10-26 02:30', '2025-10-26 00:30:15', '2025-10-26 01:30:15'),
        2,
      ],
      ['Europe/Berlin', '2025-10-26 02:30+01:00', missing, 1],
      ['America/New_York', '2025-11-02 01:30 UTC', missing, 1],
      ['Europe/Berlin', '2025-03-30 01:59', missing, 1],
      ['Europe/Berlin', '2025-10-26 03:00', missing, 1],
      [
        'Australia/Lord_Howe', // by half an hour
        '2025-04-06 01:45',
        twice('2025-04-06 01:45', '2025-04-05 14:45:00', '2025-04-05 15:15:00'),
        2,
      ],
      ['Pacific/Apia', '2011-12-30', never('2011-12-30 00:00'), 2], // the whole day
    ] as const;
    const ended = cases.map(([TZ, time]) =>
      endOf(spawnService({ TZ, DB_URL: 'sqlite:none.db' }, ['undo', '--since', time])),
    );
    for (const [at, { code, stderr }] of (await Promise.all(ended)).entries())
      assert.deepEqual([stderr, code], [`${cases[at]?.[2]}\n`, cases[at]?.[3]]);
  });

  test('no name of a file, title or other argument that is printed controls the terminal', async () => {
    const folder = temporaryFolder();
    const odd = 'a\u001b]0;b\u0007\u009b\u202e\u2028\r\n.csv';
    const env = { DB_URL: `sqlite:${folder}/books.db` };
    writeFileSync(join(folder, odd), `title,"y${odd}"\n"${odd}",x\n`);
    const calls = CALLS.replaceAll('STORE', env.DB_URL).trim().split('\n');
    let said = 0;
    for (const call of calls) {
      const args = call.trim().split(' ');
      const named = args.map((word) => word.replace('ODD', odd));
      const { stdout, stderr } = await runCommand(named, env, { folder });
      const printed = stdout + stderr;
      if (printed.includes('\\u001b')) said += 1;
      assert.doesNotMatch(printed, /[^\n\P{Cc}]|[\u202e\u2028]|\n\.csv/u, call);
    }
    assert.ok(said >= 10, `${said} of ${calls.length} showed a name`);
  });

  test('output that cannot be written is no success', async () => {
    const { code, stderr } = await runOnFullDisk('stdout', ['token'], { SECRET_TOKEN: SECRET });
    assert.equal(code, 1);
    assert.equal(stderr, 'The output cannot be written: ENOSPC: no space left on device, write.\n');
  });

  test('messages that cannot be written end no command', async () => {
    const file = join(temporaryFolder(), 'books.csv');
    writeFileSync(file, 'title,author,year\nEmma,Jane Austen,1815\n');
    const { code, stdout } = await runOnFullDisk('stderr', ['import', file], {
      DB_URL: await SQLITE.freshUrl(),
    });
    assert.deepEqual([code, stdout], [0, '1 row read: 1 imported, 0 already there, 0 refused.\n']);
  });

  test('rule 27: a signal to `npm start` reaches the service', async (context) => {
    const env = { ...process.env, ...ENVIRONMENT, LOG_LEVEL: 'info', DB_URL: await SQLITE.freshUrl() };
    // A separate process group, which can be killed as a whole.
    const child = spawn('npm', ['start'], { cwd: pathTo(''), env, detached: true });
    const ended = endOf(child);
    let printed = '';
    child.stdout.on('data', (text) => {
      printed += text;
    });
    context.after(() => {
      try {
        process.kill(-(child.pid as number), 'SIGKILL');
      } catch {} // all of it has ended, as it should
    });
    await waitUntil(() => printed.includes('"listening"'), ended);
    child.kill('SIGTERM');
    const { code, stdout } = await ended;
    assert.match(stdout, /"msg":"stopped"/);
    assert.equal(code, 0);
  });

  test('./book-catalogue runs a command from any folder, also through a link', async () => {
    const folder = temporaryFolder();
    symlinkSync(pathTo('book-catalogue'), join(folder, 'catalogue'));
    const { code, stdout, stderr } = await endOf(
      spawn('./catalogue', ['config'], { cwd: folder, env: { ...ENVIRONMENT, PATH: process.env.PATH } }),
    );
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.match(stdout, /^DB_URL=sqlite:data\/books\.db$/m);
  });

  test('config: prints every value in effect and no secret, and opens nothing', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'password'), `${MARK}\n`);
    const { AUTH_PASSWORD: _, ...env } = ENVIRONMENT;
    const { code, stdout, stderr } = await runCommand(['config'], {
      ...env,
      SECRET_TOKEN: MARK.repeat(3),
      AUTH_PASSWORD_FILE: join(folder, 'password'),
      DB_URL: `postgres://librarian:${encodeURIComponent(MARK)}@db.example.org:5433,b/library?sslmode=require`,
      DB_READ_URL: `postgres://reader:${MARK}@c,d:5433/library?target_session_attrs=standby`,
      CORS_ORIGINS: 'https://books.example.org, http://localhost:5173',
    });
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    const shown = `PORT=0 HOST=127.0.0.1 DB_URL=postgres://db.example.org:5433,b/library DB_READ_URL=postgres://c,d:5433/library
      SECRET_TOKEN=(set) SECRET_TOKEN_PREVIOUS=(not set) AUTH_USERNAME=librarian AUTH_PASSWORD=(set) WORKERS=1 FIND=on
      HISTORY=90 REQUIRE_IF_MATCH=off ADMIN_PORT=0 ADMIN_HOST=127.0.0.1 PAGE_PORT=0 LIBRARY_NAME=Book catalogue
      CORS_ORIGINS=https://books.example.org,http://localhost:5173 TRUST_PROXY=(none) LOG_LEVEL=silent BODY_LIMIT=1048576
      BULK_LIMIT=16777216 IMPORT_LIMIT=1073741824 HEADER_LIMIT=16384`;
    assert.deepEqual(stdout.trimEnd().split('\n'), shown.split(/\s+(?=[A-Z])/));
  });

  test('rule 25: config prints the warnings that serve would log', async () => {
    const folder = temporaryFolder();
    const env = { DATABASE_URL: `postgres://librarian:${MARK}@db.example.org/library` };
    const { code, stdout, stderr } = await runCommand(['config'], env, { folder });
    assert.equal(code, 0);
    assert.match(stdout, /^PORT=8080\n[\s\S]*^ADMIN_PORT=8081$[\s\S]*^PAGE_PORT=8082$/m);
    const [ignored, ...others] = stderr.trimEnd().split('\n');
    assert.equal(ignored, 'DATABASE_URL is ignored: set DB_URL instead.');
    assert.match(
      others.join('\n'),
      /^AUTH_USERNAME and AUTH_PASSWORD are not set.+\nSECRET_TOKEN is not set.+$/,
    );
    assert.deepEqual(readdirSync(folder), []);
  });

  test('config: reports an invalid value in one sentence, DB_URL included', async () => {
    for (const [name, value, sentence] of [
      ['PORT', 'x', 'PORT must be a whole number from 0 to 65535, not "x".'],
      ['DB_URL', 'mysql://a/b', 'DB_URL must begin with sqlite: or postgres: (not mysql:).'],
    ] as const) {
      const outcome = await runCommand(['config'], { ...ENVIRONMENT, [name]: value });
      assert.deepEqual(outcome, refusedWith(sentence));
    }
  });

  test('token: prints a token that the service accepts, if there is a secret; ready: says whether it is', async (context) => {
    const env = { ...ENVIRONMENT, DB_URL: await SQLITE.freshUrl() };
    const service = await startHere({ ...env, LOG_LEVEL: 'info' });
    const { code, stdout, stderr } = await runCommand(['token'], env);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.match(stdout, /^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    assert.equal((await request(service, 'GET', '/books', { token: stdout.trim() })).status, 200);
    const without = await runCommand(['token'], {});
    assert.deepEqual([without.code, without.stdout], [1, '']);
    assert.match(without.stderr, /^SECRET_TOKEN must be set[^\n]+\n$/);
    for (const ADMIN_HOST of ['127.0.0.1', '0.0.0.0', 'localhost']) {
      const ADMIN_PORT = String(operationsOf(service).port);
      const ready = await runCommand(['ready'], { ...env, ADMIN_PORT, ADMIN_HOST });
      assert.deepEqual(ready, { code: 0, stdout: 'ready\n', stderr: '' });
    }
    const { port } = await listen(context, (socket) => socket.destroy());
    const other = await runCommand(['ready'], { ...env, ADMIN_PORT: String(port) });
    assert.deepEqual([other.code, other.stdout], [1, '']);
    assert.match(
      other.stderr,
      new RegExp(`^No answer at ADMIN_HOST 127.0.0.1, ADMIN_PORT ${port}: [^\\n]+\\n$`),
    );
  });
});

/** Runs a command whose standard output, or whose messages on standard error, find the disk full. */
function runOnFullDisk(stream: 'stdout' | 'stderr', args: readonly string[], env: Record<string, string>) {
  const script = `exec "$@" ${stream === 'stdout' ? 1 : 2}>/dev/full`;
  return endOf(spawn('/bin/sh', ['-c', script, 'sh', ...COMMAND, ...args], { env }));
}
