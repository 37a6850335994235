// The commands other than `serve`: what they print for people and for programs, and their exit codes. They run in this
// process; those that need a separate folder or a signal run in another one.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { request } from '../support/client.ts';
import { refusedWith, runCommand, startHere } from '../support/command.ts';
import { NO_FULL_DISK, runOnFullDisk } from '../support/full-disk.ts';
import { pathTo } from '../support/repository.ts';
import { ENVIRONMENT, endOf, SECRET, SQLITE, spawnService, temporaryFolder } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const MARK = 'never to be shown';

describe('commands', { concurrency: 3 }, () => {
  test('each has its own help', async () => {
    const names = [
      'serve',
      'demo',
      'config',
      'ready',
      'token',
      'import',
      'export',
      'copy',
      'index',
      'backup',
      'restore',
      'verify',
      'completion',
      'man',
    ];
    const all = (await runCommand(['--help'], {})).stdout;
    for (const name of names) {
      assert.match(all, new RegExp(`^  ${name}  `, 'm'));
      const { code, stdout, stderr } = await runCommand([name, '--help'], { PORT: 'bad' });
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      assert.match(stdout, new RegExp(`^Usage: book-catalogue ${name}\\b`));
    }
  });

  test('missing or surplus arguments are reported in one sentence that shows none of them', async () => {
    const url = `postgres://librarian:${MARK}@db.example.org/library`;
    for (const [args, sentence] of [
      [['import'], 'import needs FILE. See book-catalogue import --help.'],
      [
        ['import', '--dry-run', 'a.csv', 'b.csv'],
        'import takes only FILE, but got 2 arguments. See book-catalogue import --help.',
      ],
      [
        ['export', 'a.csv', 'b.csv'],
        'export takes only FILE, but got 2 arguments. See book-catalogue export --help.',
      ],
      [['copy', url], 'copy needs FROM and TO. See book-catalogue copy --help.'],
      [
        ['copy', url, url, url],
        'copy takes only FROM and TO, but got 3 arguments. See book-catalogue copy --help.',
      ],
      [['backup'], 'backup needs FILE. See book-catalogue backup --help.'],
      [['restore'], 'restore needs FILE. See book-catalogue restore --help.'],
      [['completion', 'tcsh'], 'SHELL must be bash, zsh or fish.'],
      [['completion', 'constructor'], 'SHELL must be bash, zsh or fish.'],
      [['token', MARK], 'token takes no arguments, but got 1. See book-catalogue token --help.'],
    ] as const) {
      assert.deepEqual(await runCommand(args, {}), refusedWith(sentence, 2));
    }
  });

  test('a mistyped command, option or value is named, with what was meant', async () => {
    for (const [args, sentence] of [
      [['improt', 'a.csv'], 'There is no command "improt": did you mean import? See --help.'],
      [['publish'], 'There is no command "publish". See --help.'],
      [['--port', '3'], 'There is no option --port: set PORT in the environment. See --help.'],
      [['--prot', '3'], 'There is no option --prot. See --help.'],
      [
        ['export', '--owerwrite', 'a.csv'],
        'There is no option --owerwrite: did you mean --overwrite? See book-catalogue export --help.',
      ],
      [
        ['export', 'a.csv', '--year-lte', '-1'],
        '--year-lte needs a value: one that begins with a dash is written --year-lte=-1. See book-catalogue export --help.',
      ],
      [['export', 'a.csv', '--year-lte'], '--year-lte needs a value. See book-catalogue export --help.'],
      [['index', '--rebuild=1'], '--rebuild takes no value. See book-catalogue index --help.'],
    ] as const) {
      assert.deepEqual(await runCommand(args, {}), refusedWith(sentence, 2));
    }
    for (const [words, options] of [
      [['help'], ['--help']],
      [['version'], ['--version']],
      [
        ['help', 'import'],
        ['import', '--help'],
      ],
    ] as const) {
      assert.deepEqual(await runCommand(words, {}), await runCommand(options, {}));
    }
  });

  test('rule 25: a variable that is nearly one of the settings is named by every command', async () => {
    const { stderr } = await runCommand(['index'], {
      DATABASE_URL: `postgres://librarian:${MARK}@db.example.org/library`,
    });
    assert.match(stderr, /^DATABASE_URL is ignored: set DB_URL instead\.\n/);
  });

  test('output that cannot be written is no success', { skip: NO_FULL_DISK }, async () => {
    for (const args of [['--version'], ['--help'], ['config'], ['token']]) {
      const { code, stderr } = await runOnFullDisk('stdout', args, { SECRET_TOKEN: SECRET });
      assert.equal(code, 1, args.join(' '));
      assert.match(stderr, /(^|\n)The output cannot be written: ENOSPC: no space left on device, write\.\n$/);
    }
  });

  test('messages that cannot be written end no command', { skip: NO_FULL_DISK }, async () => {
    const DB_URL = await SQLITE.freshUrl();
    const file = join(temporaryFolder(), 'books.csv');
    writeFileSync(file, 'title,author,year\nEmma,Jane Austen,1815\n');
    const { code, stdout } = await runOnFullDisk('stderr', ['import', file], { DB_URL });
    assert.deepEqual(
      { code, stdout },
      {
        code: 0,
        stdout: '1 row read: 1 imported, 0 already there, 0 refused.\n',
      },
    );
  });

  test('rule 27: a signal to `npm start` reaches the service', async (context) => {
    const child = spawn('npm', ['start'], {
      cwd: pathTo(''),
      env: {
        ...process.env,
        ...ENVIRONMENT,
        LOG_LEVEL: 'info',
        DB_URL: `sqlite:${temporaryFolder()}/books.db`,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true, // a separate process group, which can be killed as a whole
    });
    context.after(() => {
      try {
        process.kill(-(child.pid as number), 'SIGKILL');
      } catch {} // all of it has ended, as it should
    });
    let said = '';
    child.stdout.on('data', (text) => {
      said += text;
    });
    await waitUntil(() => said.includes('"listening"'));
    child.kill('SIGTERM');
    await once(child, 'close');
    assert.match(said, /"msg":"stopped"/);
    assert.equal(child.exitCode, 0);
  });

  test('./book-catalogue runs a command from any folder, also through a link', async () => {
    const folder = temporaryFolder();
    symlinkSync(pathTo('book-catalogue'), join(folder, 'catalogue'));
    const child = spawn('./catalogue', ['config'], {
      cwd: folder,
      env: { ...ENVIRONMENT, PATH: process.env.PATH },
    });
    const { code, stdout, stderr } = await endOf(child);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.match(stdout, /^DB_URL=sqlite:data\/books\.db$/m);
  });

  test('config: prints every value in effect and no secret, and opens nothing', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'password'), `${MARK}\n`);
    const env = {
      ...ENVIRONMENT,
      SECRET_TOKEN: MARK.repeat(3),
      AUTH_PASSWORD_FILE: join(folder, 'password'),
      DB_URL: `postgres://librarian:${encodeURIComponent(MARK)}@db.example.org:5433,b/library?sslmode=require`,
      DB_READ_URL: `postgres://reader:${MARK}@c,d:5433/library?target_session_attrs=standby`,
      CORS_ORIGINS: 'https://books.example.org, http://localhost:5173',
    } as Record<string, string>;
    delete env.AUTH_PASSWORD;
    const { code, stdout, stderr } = await runCommand(['config'], env);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.deepEqual(stdout.split('\n'), [
      'PORT=0',
      'HOST=127.0.0.1',
      'DB_URL=postgres://db.example.org:5433,b/library',
      'DB_READ_URL=postgres://c,d:5433/library',
      'SECRET_TOKEN=(set)',
      'SECRET_TOKEN_PREVIOUS=(none)',
      'AUTH_USERNAME=librarian',
      'AUTH_PASSWORD=(set)',
      'WORKERS=1',
      'FIND=on',
      'REQUIRE_IF_MATCH=off',
      'ADMIN_PORT=0',
      'ADMIN_HOST=127.0.0.1',
      'PAGE_PORT=0',
      'CORS_ORIGINS=https://books.example.org,http://localhost:5173',
      'TRUST_PROXY=(none)',
      'LOG_LEVEL=silent',
      'BODY_LIMIT=1048576',
      'BULK_LIMIT=16777216',
      'HEADER_LIMIT=16384',
      '',
    ]);
  });

  test('config: prints the warnings that serve would log', async () => {
    const folder = temporaryFolder();
    const { code, stdout, stderr } = await endOf(spawnService({}, ['config'], folder));
    assert.equal(code, 0);
    assert.match(stdout, /^PORT=8080\n/);
    assert.match(stdout, /^ADMIN_PORT=8081$/m);
    assert.match(stdout, /^PAGE_PORT=8082$/m);
    assert.match(
      stderr,
      /^AUTH_USERNAME and AUTH_PASSWORD are not set[^\n]+\nSECRET_TOKEN is not set[^\n]+\n$/,
    );
    assert.deepEqual(readdirSync(folder), []);
  });

  test('config: reports an invalid value in one sentence, DB_URL included', async () => {
    const wrong = { PORT: 'x', DB_URL: 'mysql://a/b', CORS_ORIGINS: '*' };
    for (const [name, value] of Object.entries(wrong)) {
      const { code, stdout, stderr } = await runCommand(['config'], { ...ENVIRONMENT, [name]: value });
      assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
      assert.match(stderr, new RegExp(`^${name} [^\\n]+\\n$`));
    }
    const DB_URL = 'postgres://a/b?sslmode=perhaps';
    const { code, stderr } = await runCommand(['config'], { ...ENVIRONMENT, DB_URL });
    assert.equal(code, 1);
    assert.match(stderr, /^DB_URL: postgres:\/\/a\/b cannot be opened: sslmode must be one of [^\n]+\n$/);
  });

  test('token: prints a token that the service accepts, if there is a secret to sign it with', async (context) => {
    const env = { ...ENVIRONMENT, DB_URL: `sqlite:${temporaryFolder()}/books.db` };
    const service = await startHere({ ...env, LOG_LEVEL: 'info' });
    context.after(() => service.stop());
    const { code, stdout, stderr } = await runCommand(['token'], env);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.match(stdout, /^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    const { status } = await request(service, 'GET', '/books', { token: stdout.trim() });
    assert.equal(status, 200);

    const { SECRET_TOKEN: _, ...without } = env;
    const refused = await runCommand(['token'], without);
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.match(refused.stderr, /^SECRET_TOKEN must be set[^\n]+\n$/);
  });
});
