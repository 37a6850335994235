// The configuration of the service: variables, files, refusals, the command line. The command runs in this process
// unless a test needs a separate one.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, type TestContext, test } from 'node:test';
import { accepts, request, type Target } from '../support/client.ts';
import { type CommandHere, runCommand, startHere } from '../support/command.ts';
import { otherAddresses, unusedPort } from '../support/ports.ts';
import { execute, freshDatabase } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import {
  endOf,
  ONLY_STORE,
  pageOf,
  spawnService,
  startCommand,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

type Variables = Record<string, string | undefined>;

/** Part of every secret given to the service; nothing that it prints may contain it. */
const MARK = 'never-show-this';

const SECRET = `a secret of more than thirty-two bytes, ${MARK}`;
const PAIR = { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: `a password, ${MARK}` };
const LOGIN = { username: PAIR.AUTH_USERNAME, password: PAIR.AUTH_PASSWORD };
const GUARDED = { ...PAIR, SECRET_TOKEN: SECRET };

/** Tests at a time: a few of them wait. */
const concurrency = 4;

/** Whether this run has a PostgreSQL. */
const hasPostgres = process.env[ONLY_STORE] !== 'SQLite';

describe('configuration', { concurrency: 2 }, () => {
  describe('an invalid configuration', { concurrency }, () => {
    // This port is in use throughout. A service that tried to open its port before it has checked everything else would
    // report PORT rather than the actual fault.
    let taken: Server;
    let port: string;
    let visitors = 0;

    before(async () => {
      taken = createServer(() => {
        visitors += 1;
      }).listen(0, '127.0.0.1');
      await once(taken, 'listening');
      port = String((taken.address() as { port: number }).port);
    });
    after(() => {
      taken.close();
      assert.equal(visitors, 0);
    });

    const base = (): Variables => ({
      ...GUARDED,
      HOST: '127.0.0.1',
      PORT: port,
      ADMIN_PORT: '0',
      PAGE_PORT: '0',
      DB_URL: freshSqliteUrl(),
    });

    async function refuses(variable: string, env: Variables): Promise<string> {
      const sentence = await refusal({ ...base(), ...env });
      assert.match(sentence, new RegExp(`\\b${variable}\\b`));
      if (variable !== 'PORT') assert.doesNotMatch(sentence, /\bPORT\b/);
      return sentence;
    }

    /** @param values each refused; undefined if the variable is not set. */
    function refusals(
      rule: string,
      variable: string,
      values: readonly (string | undefined)[],
      others: Variables = {},
    ) {
      for (const value of values) {
        test(`${rule}: ${variable}=${JSON.stringify(value)} is refused`, async () => {
          await refuses(variable, { ...others, [variable]: value });
        });
      }
    }

    test('rule 27: ends the process with an exit code other than 0, and one sentence on standard error', async () => {
      const wrong: [variable: string, env: Variables][] = [
        ['PORT', { PORT: 'http' }],
        ['PORT', {}], // in use
        ['DB_URL', { DB_URL: `mysql://librarian:${MARK}@127.0.0.1/books` }],
      ];
      for (const [variable, env] of wrong) {
        const outcome = await endOf(spawnService(defined({ ...base(), ...env })));
        assert.equal(outcome.code, 1);
        assert.match(sentenceOf(outcome), new RegExp(`^${variable}\\b`));
      }
    });

    refusals('rule 25', 'PORT', ['http', '-1', '65536', '1e3', '80\n81', '']);

    refusals('rule 31', 'ADMIN_PORT', ['http', '']);
    refusals('rule 31', 'ADMIN_HOST', ['203.0.113.7', '']);

    refusals('rule 34', 'PAGE_PORT', ['http', '65536', 'on', '']);
    test('rules 31 and 34: a port that cannot be opened or used is refused, in one sentence with the way out', async () => {
      const cases: [env: Variables, sentence: string][] = [
        [
          { ADMIN_PORT: port, PORT: '0' },
          `ADMIN_PORT ${port} is in use by another process: stop that process or choose another port.\n`,
        ],
        [{ ADMIN_PORT: port }, `ADMIN_PORT ${port} is the same as PORT: choose another port.\n`],
        [
          { PAGE_PORT: port, PORT: '0' },
          `PAGE_PORT ${port} is in use by another process: stop that process or choose another port.\n`,
        ],
        [{ PAGE_PORT: port }, `PAGE_PORT ${port} is the same as PORT: choose another port.\n`],
        [
          { PAGE_PORT: '1', ADMIN_PORT: '1' },
          'PAGE_PORT 1 is the same as ADMIN_PORT: choose another port.\n',
        ],
        [
          { PAGE_PORT: '7001', PORT: '7000', ADMIN_PORT: undefined },
          'PAGE_PORT 7001 is the same as ADMIN_PORT: choose another port.\n',
        ],
        [
          { PAGE_PORT: '0', FIND: 'off' },
          'PAGE_PORT 0 needs FIND=on, because the page searches: set FIND=on, or PAGE_PORT=off.\n',
        ],
        [{ PAGE_PORT: 'http' }, 'PAGE_PORT must be a whole number from 0 to 65535, or off, not "http".\n'],
      ];
      for (const [env, sentence] of cases) {
        assert.equal(await refusal({ ...base(), ...env }), sentence);
      }
    });

    refusals('rule 32', 'CORS_ORIGINS', [
      '*',
      'books.example.org',
      'ftp://books.example.org',
      'https://books.example.org/',
      'https://books.example.org:443',
      'https://Books.example.org',
      'https://books.example.org,',
    ]);

    refusals('rule 30', 'SECRET_TOKEN_PREVIOUS', ['']);
    refusals('rule 30', 'SECRET_TOKEN_PREVIOUS', [SECRET], { SECRET_TOKEN: undefined });

    refusals('rules 14 and 25', 'HOST', ['203.0.113.7', '']);
    for (const HOST of ['0.0.0.0', '::', '203.0.113.7']) {
      test(`rule 14: HOST=${HOST} with the built-in password is refused`, async () => {
        const sentence = await refuses('HOST', { HOST, AUTH_USERNAME: undefined, AUTH_PASSWORD: undefined });
        assert.match(sentence, /: set AUTH_USERNAME and AUTH_PASSWORD,/);
      });
    }
    test('rule 16: HOST=0.0.0.0 without SECRET_TOKEN is refused', async () => {
      const sentence = await refuses('HOST', { HOST: '0.0.0.0', SECRET_TOKEN: undefined });
      assert.match(sentence, /: set SECRET_TOKEN,/);
    });
    refusals('rule 14', 'AUTH_USERNAME', [undefined, '']);
    refusals('rule 14', 'AUTH_PASSWORD', [undefined, '']);
    refusals('rule 16', 'SECRET_TOKEN', ['']);
    refusals('rule 25', 'LOG_LEVEL', ['verbose', '']);
    refusals('rule 28', 'WORKERS', ['0', '1.5', '257', '']);
    refusals('rule 29', 'TRUST_PROXY', [
      'proxy.example.org',
      'true',
      '127.0.0.1:80',
      '10.0.0.0/33',
      '2001:db8::/129',
      '0.0.0.0/0',
      '::/00',
      '127.0.0.1,,::1',
      '',
    ]);
    refusals('rule 22', 'AUTH_PASSWORD', ['x'.repeat(4096)], { AUTH_USERNAME: 'librarian' });
    refusals('rule 22', 'BODY_LIMIT', ['1MiB', '0', '', '268435457']);
    refusals('rule 22', 'HEADER_LIMIT', ['many', '1']);

    describe('rule 25: values from files', { concurrency }, () => {
      let folder: string;
      before(async () => {
        folder = temporaryFolder();
        await writeFile(join(folder, 'good'), `something, ${MARK}`);
        await writeFile(join(folder, 'empty'), '');
        await writeFile(join(folder, 'line-end'), '\r\n');
        await writeFile(join(folder, 'latin1'), Buffer.from(`${MARK} caf\xe9 of thirty-two bytes`, 'latin1'));
      });

      for (const name of ['SECRET_TOKEN', 'AUTH_PASSWORD', 'DB_URL', 'DB_READ_URL']) {
        test(`${name} and ${name}_FILE together are refused`, async () => {
          const env = { [name]: `sqlite:${MARK}`, [`${name}_FILE`]: join(folder, 'good') };
          await refuses(`${name} and ${name}_FILE`, env);
        });
      }
      const files = {
        missing: 'SECRET_TOKEN',
        empty: 'AUTH_PASSWORD',
        'line-end': 'DB_URL',
        latin1: 'AUTH_PASSWORD',
        '.': 'SECRET_TOKEN',
      };
      for (const [file, name] of Object.entries(files)) {
        test(`${name}_FILE that is ${file} is refused`, async () => {
          await refuses(`${name}_FILE`, { [name]: undefined, [`${name}_FILE`]: join(folder, file) });
        });
      }
      test('a password file without a username is refused', async () => {
        const AUTH_PASSWORD_FILE = join(folder, 'good');
        await refuses('AUTH_USERNAME', {
          AUTH_USERNAME: undefined,
          AUTH_PASSWORD: undefined,
          AUTH_PASSWORD_FILE,
        });
      });
      test('an empty path is refused', async () => {
        await refuses('SECRET_TOKEN_FILE', { SECRET_TOKEN: undefined, SECRET_TOKEN_FILE: '' });
      });
    });

    const DB_URL = `postgres://librarian:${MARK}@127.0.0.1:1/books`;
    refusals('rule 25', 'DB_READ_URL', [DB_URL]); // of a SQLite store
    const standbys = [
      '',
      'sqlite:books.db',
      `librarian:${MARK}@127.0.0.1`,
      `postgres://localhost:1/${MARK}@127.0.0.1:1/books`,
      `${DB_URL}?sslmode=sometimes`,
      `${DB_URL}?target_session_attrs=primary`,
    ];
    refusals('rule 25', 'DB_READ_URL', standbys, { DB_URL });

    refusals('rule 26', 'DB_URL', [
      '',
      `mysql://librarian:${MARK}@127.0.0.1/books`,
      'books.db',
      `http://librarian:${MARK}@127.0.0.1:1/`,
      'sqlite:',
      'sqlite://books.db',
      'postgres:',
      `postgres://localhost:1/${MARK}@127.0.0.1:1/books`,
      `postgres://librarian:%zz${MARK}@127.0.0.1:1/books`,
      `postgres://librarian:${MARK}@127.0.0.1:port/books`,
      `postgres://127.0.0.1:1/books?password=${MARK}`,
      `postgres://librarian:${MARK}@127.0.0.1:1/books?sslmode=sometimes`,
      `postgres://librarian:${MARK}@127.0.0.1:1/books?sslmod=require`,
      `postgres://librarian:${MARK}@127.0.0.1:1/books?target_sesion_attrs=primary`,
      `postgres://librarian:${MARK}@127.0.0.1:1/books?statement_timeout=1`,
      `postgres://librarian:${MARK}@127.0.0.1:1/books?sslmode=verify-full&sslrootcert=/nowhere/ca.pem`,
    ]);

    test('rule 26: no part of a password with an unescaped /, ? or # is shown', async () => {
      for (const sign of '/?#') {
        const DB_URL = `postgres://someone:1605${sign}${MARK}@127.0.0.1/books`;
        const sentence = 'DB_URL is not a valid URL: percent-escape special characters in its parts.\n';
        assert.equal(await refuses('DB_URL', { DB_URL }), sentence);
      }
    });

    describe('rule 27: a SQLite file that cannot be used', { concurrency }, () => {
      let folder: string;
      before(async () => {
        folder = temporaryFolder();
        await writeFile(join(folder, 'letter.txt'), 'Dear librarian, this is a letter. '.repeat(200));
        await mkdir(join(folder, 'shelf'));
      });
      const paths = {
        'a path through a file': 'letter.txt/books.db',
        'a file that is not a database': 'letter.txt',
        'a folder': 'shelf',
      };
      for (const [what, path] of Object.entries(paths)) {
        test(`${what} is refused`, async () => {
          const sentence = await refuses('DB_URL', { DB_URL: `sqlite:${join(folder, path)}` });
          if (path === 'shelf')
            assert.match(sentence, /shelf is a folder: name a file in it, such as sqlite:/);
        });
      }

      const structures = {
        'keys that are reused': 'create table books (id integer primary key, title text)',
        'another key': 'create table books (isbn integer primary key autoincrement, title text)',
        'a text key': 'create table books (id text primary key, title text, author text, year integer)',
        'years of text':
          'create table books (id integer primary key autoincrement, title text, author text, year text)',
        'a field that the service cannot fill':
          'create table books (id integer primary key autoincrement, title text, isbn text not null)',
        'a view of that name':
          'create table papers (id integer primary key autoincrement); create view books as select * from papers',
      };
      for (const [what, structure] of Object.entries(structures)) {
        test(`another program's books (${what}) are refused and left unchanged`, async () => {
          const file = join(temporaryFolder(), 'other.db');
          withDatabase(file, (db) => db.exec(structure));
          const schema = () => withDatabase(file, (db) => db.prepare('select * from sqlite_schema').all());
          const before = schema();
          await refuses('DB_URL', { DB_URL: `sqlite:${file}` });
          assert.deepEqual(schema(), before);
        });
      }
    });

    refusals('rule 27', 'DB_URL', [
      `postgres://librarian:${MARK}@127.0.0.1:1/books`,
      `postgres://librarian:${MARK}@127.0.0.1:1,127.0.0.1:2/books`,
    ]);

    const without = hasPostgres ? false : 'this run tests SQLite only';
    describe('rule 27: a PostgreSQL that denies access', { concurrency, skip: without }, () => {
      test('a wrong password is refused', async () => {
        const url = new URL(await freshDatabase());
        url.password = MARK;
        await refuses('DB_URL', { DB_URL: url.href });
      });
      test('a URL without the password that the server asks for is refused', async () => {
        const url = new URL(await freshDatabase());
        url.password = '';
        const sentence = await refuses('DB_URL', { DB_URL: url.href });
        assert.match(sentence, /the server asks for a password, but the URL has none\.$/m);
      });
      test('an unknown database is refused', async () => {
        const url = new URL(await freshDatabase());
        url.pathname = '/no_such_database';
        const sentence = await refuses('DB_URL', { DB_URL: url.href });
        assert.match(sentence, /no_such_database/);
      });
      test('a role without the right to create is refused', async (context) => {
        const { url } = await strangerAndDatabase(context);
        const sentence = await refuses('DB_URL', { DB_URL: url });
        assert.match(sentence, /permission denied/);
      });
    });
  });

  describe('addresses', { concurrency }, () => {
    test('rules 14, 16, 25 and 26: with nothing set, it serves this machine only, from data/books.db', async (context) => {
      const folder = temporaryFolder();
      const service = await startCommand({ PORT: '0' }, folder);
      context.after(() => service.process.kill('SIGKILL'));
      assert.match(service.url, /^http:\/\/127\.0\.0\.1:/);
      for (const address of await otherAddresses(context)) {
        assert.equal(await accepts(address, service.port), false, address);
        assert.equal(await accepts(address, pageOf(service).port), false, address);
      }
      const token = await logIn(service, { username: 'admin', password: 'password' });
      assert.equal((await request(service, 'POST', '/book', { token, body: {} })).status, 201);
      assert.ok(existsSync(join(folder, 'data', 'books.db')));
      const { store, contents } = listeningOf(service);
      assert.deepEqual([store, contents], [join(realpathSync(folder), 'data', 'books.db'), 'new']);
      const [pair, secret, ...others] = await warningsOf(service);
      assert.match(String(pair), /AUTH_USERNAME.*AUTH_PASSWORD.*admin \/ password/);
      assert.match(String(secret), /SECRET_TOKEN.*random/);
      assert.deepEqual(others, []);
    });

    test('rules 14 and 25: with username, password and secret set, it serves all interfaces, for that password only', async (context) => {
      const service = await start(context, { ...GUARDED, DB_URL: freshSqliteUrl() });
      assert.ok(await accepts('127.0.0.1', service.port));
      for (const address of await otherAddresses(context)) {
        assert.ok(await accepts(address, service.port), address);
        assert.ok(await accepts(address, pageOf(service).port), address);
      }
      await logIn(service, LOGIN);
      const body = { username: 'admin', password: 'password' };
      assert.equal((await request(service, 'POST', '/token', { body })).status, 401);
      assert.deepEqual(await warningsOf(service), []);
    });

    test('rule 25: variables that nothing reads are named if they are nearly settings', async (context) => {
      const service = await start(context, {
        ...GUARDED,
        DB_URL: freshSqliteUrl(),
        DB_URI: 'postgres://db.example.org/books', // DB_URL is set as well
        SECRET_TOKN: MARK,
        PAGE_PROT: '1',
        AUTH_USERNAME_FILE: '/run/name',
        POST: '1',
        TRUST: '1',
      });
      assert.deepEqual(await warningsOf(service), [
        'PAGE_PROT is ignored: set PAGE_PORT instead.',
        'AUTH_USERNAME_FILE is ignored: only a secret may come from a file. Set AUTH_USERNAME.',
      ]);
    });

    const incomplete: Record<string, Variables> = {
      'only username and password set': PAIR,
      'only the secret set': { SECRET_TOKEN: SECRET },
      'HOST=localhost and the built-in password': { HOST: 'localhost' },
      'HOST=127.0.0.1 and all three set': { ...GUARDED, HOST: '127.0.0.1' },
    };
    for (const [what, env] of Object.entries(incomplete)) {
      test(`rules 14 and 25: with ${what}, it serves this machine only`, async (context) => {
        const service = await start(context, { ...env, DB_URL: freshSqliteUrl() });
        assert.ok(await accepts('127.0.0.1', service.port));
        for (const address of await otherAddresses(context)) {
          assert.equal(await accepts(address, service.port), false, address);
        }
      });
    }

    test('rule 14: HOST may be another loopback address', async (context) => {
      for (const HOST of await otherAddresses(context)) {
        const PORT = String(await unusedPort()); // not one that the system also gives to a listener on 127.0.0.1
        const service = await start(context, { HOST, PORT, DB_URL: freshSqliteUrl() });
        await logIn(service, { username: 'admin', password: 'password' });
        assert.equal(await accepts('127.0.0.1', service.port), false);
      }
    });
  });

  describe('secrets', { concurrency }, () => {
    test('rule 16: a random secret is valid for one service only, a configured one for several', async (context) => {
      const DB_URL = freshSqliteUrl();
      const accepted = async (env: Variables) => {
        const issuer = await start(context, { ...PAIR, ...env, DB_URL });
        const other = await start(context, { ...PAIR, ...env, DB_URL });
        const token = await logIn(issuer, LOGIN);
        assert.equal((await request(issuer, 'GET', '/books', { token })).status, 200);
        const { status, message } = await request(other, 'GET', '/books', { token });
        return [status, message];
      };
      assert.deepEqual(await accepted({}), [401, 'Invalid token']);
      assert.deepEqual(await accepted({ SECRET_TOKEN: SECRET }), [200, 'Books retrieved successfully']);
    });

    test('rule 16: a secret shorter than 32 bytes causes a warning, one of 32 bytes does not', async (context) => {
      const warnings = async (SECRET_TOKEN: string) => {
        const service = await start(context, { ...PAIR, SECRET_TOKEN, DB_URL: freshSqliteUrl() });
        return await warningsOf(service);
      };
      const [short, ...others] = await warnings('x'.repeat(31));
      assert.match(String(short), /SECRET_TOKEN.*32 bytes/);
      assert.deepEqual(others, []);
      assert.deepEqual(await warnings('é'.repeat(16)), []);
    });

    const contents = [
      { what: 'no line end', value: `plain ${MARK}`, end: '' },
      { what: 'a line end', value: `plain ${MARK}`, end: '\n' },
      { what: 'a Windows line end', value: `plain ${MARK}`, end: '\r\n' },
      { what: 'line ends inside', value: `first\nsecond\r\n ${MARK} `, end: '\n' },
      { what: 'two line ends', value: `plain ${MARK}\n`, end: '\n' },
    ];
    for (const { what, value, end } of contents) {
      test(`rule 25: a file with ${what} gives its content without the last line end`, async (context) => {
        const folder = temporaryFolder();
        const store = join(folder, 'from-file.db');
        await writeFile(join(folder, 'value'), value + end);
        await writeFile(join(folder, 'store'), `sqlite:${store}${end}`);
        const service = await start(context, {
          AUTH_USERNAME: 'librarian',
          AUTH_PASSWORD_FILE: join(folder, 'value'),
          SECRET_TOKEN_FILE: join(folder, 'value'),
          DB_URL_FILE: join(folder, 'store'),
        });
        const token = await logIn(service, { username: 'librarian', password: value });
        isSignedWith(value, token);
        assert.ok(existsSync(store));
      });
    }
  });

  describe('rules 25 and 27: files that hold secrets', { concurrency, skip: unlessPipes() }, () => {
    test('a pipe without a writer is refused by name', async () => {
      const sentence = await secretRefusal(makePipe());
      assert.match(sentence, /^SECRET_TOKEN_FILE cannot be read: nothing was written into it [^\n]+\.\n$/);
    });

    test('an endless file is refused by name', async () => {
      const sentence = await secretRefusal('/dev/zero');
      assert.equal(sentence, 'SECRET_TOKEN_FILE cannot be read: it is longer than 65536 bytes.\n');
    });

    async function secretRefusal(file: string): Promise<string> {
      const env = { ...PAIR, PORT: '0', SECRET_TOKEN_FILE: file, DB_URL: freshSqliteUrl() };
      const outcome = await endOf(spawnService(env));
      assert.equal(outcome.code, 1);
      return sentenceOf(outcome);
    }
  });

  describe('rule 26: DB_URL', { concurrency }, () => {
    test('a relative path starts at the working directory, and its folder is created', async (context) => {
      const folder = temporaryFolder();
      const service = await startCommand(
        { ...GUARDED, PORT: '0', DB_URL: 'sqlite:shelf/low/books.db' },
        folder,
      );
      context.after(() => service.process.kill('SIGKILL'));
      assert.ok(existsSync(join(folder, 'shelf', 'low', 'books.db')));
      assert.deepEqual(readdirSync(folder), ['shelf']);
    });

    for (const [what, url] of [
      ['sqlite:/path and sqlite:///path are one file', freshSqliteUrl],
      ['postgres: and postgresql: are one database', freshDatabase],
    ] as const) {
      const skip = what.startsWith('postgres') && !hasPostgres ? 'this run tests SQLite only' : false;
      test(what, { skip }, async (context) => {
        const DB_URL = await url();
        const other = DB_URL.replace(/^sqlite:/, 'sqlite://').replace(/^postgres:/, 'postgresql:');
        const first = await start(context, { ...GUARDED, DB_URL });
        const second = await start(context, { ...GUARDED, DB_URL: other });
        const token = await logIn(first, LOGIN);
        const created = await request(first, 'POST', '/book', { token, body: { title: 'one' } });
        const found = await request(second, 'GET', `/book/${created.data.id}`, { token });
        assert.deepEqual(found.data, created.data);
        const third = await start(context, { ...GUARDED, DB_URL });
        const contents = [first, second, third].map((service) => listeningOf(service).contents);
        assert.deepEqual(contents, ['new', 'no books', '1 book']);
      });
    }
  });

  describe('the command line', { concurrency }, () => {
    test('--help reads no variable and touches nothing', async () => {
      const folder = temporaryFolder();
      const { code, stdout, stderr } = await endOf(spawnService({ PORT: 'bad' }, ['--help'], folder));
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      assert.match(stdout, /^Usage: /);
      assert.deepEqual(readdirSync(folder), []);
      assert.deepEqual(await runCommand(['-h'], { PORT: 'bad' }), { code: 0, stdout, stderr: '' });
    });

    test('--version prints the version of the package', async () => {
      const { version } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
      const outcome = await runCommand(['--version'], {});
      assert.deepEqual(outcome, { code: 0, stdout: `${version}\n`, stderr: '' });
    });

    test('anything else is refused with exit code 2 and one sentence', async () => {
      const refused = (code: number | null, stdout: string, stderr: string) => {
        assert.deepEqual([code, stdout], [2, '']);
        assert.match(stderr, /^[^\n]*--help[^\n]*\n$/);
      };
      for (const args of [['--port=80'], ['toString'], ['serve', 'x'], ['--version', 'x'], ['']]) {
        const { code, stdout, stderr } = await runCommand(args, {});
        refused(code, stdout, stderr);
      }
      const { code, stdout, stderr } = await endOf(spawnService({}, ['--port=80']));
      refused(code, stdout, stderr);
    });
  });
});

/** Starts the command in this process on a free port, and stops it at the end of the test. */
async function start(context: TestContext, env: Variables): Promise<CommandHere> {
  const service = await startHere(defined({ PORT: '0', ...env }));
  context.after(() => service.stop());
  return service;
}

/** The one sentence with which the command refuses to start. */
async function refusal(env: Variables): Promise<string> {
  return sentenceOf(await runCommand([], defined(env)));
}

/** The text on standard error, which must be the only output. */
function sentenceOf({ code, stdout, stderr }: { code: number | null; stdout: string; stderr: string }) {
  assert.equal(code, 1);
  assert.equal(stdout, '');
  assert.match(stderr, /^[^\n]*[^\n.]\.\n$/); // one line, so no stack trace either
  assert.ok(!stderr.includes(MARK), stderr);
  return stderr;
}

/** A named pipe, where the system has them. */
function makePipe(): string {
  const pipe = join(temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [pipe]);
  return pipe;
}

/** Why tests of pipes and devices are skipped here, if they are. */
function unlessPipes(): string | false {
  return process.platform === 'win32' && 'this system has no named pipes in the file system';
}

/** Fails unless the token is signed by HMAC SHA-256 (rule T4). */
function isSignedWith(secret: string, token: string): void {
  const [header, payload, signature] = token.split('.');
  assert.equal(signature, createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url'));
}

function defined(env: Variables): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

async function logIn(target: Target, body: { username: string; password: string }): Promise<string> {
  const { status, data } = await request(target, 'POST', '/token', { body });
  assert.equal(status, 200);
  return data.token;
}

/** The entry with which the service says where it listens, and where the books are. */
function listeningOf(service: Pick<CommandHere, 'log'>): Record<string, unknown> {
  return entriesOf(service).find(({ msg }) => msg === 'listening') ?? {};
}

function entriesOf({ log }: Pick<CommandHere, 'log'>): Record<string, unknown>[] {
  return log.map((line) => JSON.parse(line));
}

/** The warnings of a start; they come before the first request's line. */
async function warningsOf(service: Target & Pick<CommandHere, 'log'>): Promise<unknown[]> {
  await request(service, 'GET', '/');
  await waitUntil(() => entriesOf(service).some(({ path }) => path === '/'));
  return entriesOf(service)
    .filter(({ level, msg }) => level === 'warn' && msg !== 'slow request')
    .map(({ msg }) => msg);
}

function freshSqliteUrl(): string {
  return `sqlite:${join(temporaryFolder(), 'books.db')}`;
}

/** A role that may connect to a database, but not create anything in it. */
async function strangerAndDatabase(context: TestContext): Promise<{ url: string }> {
  const admin = await freshDatabase();
  const url = new URL(admin);
  const database = url.pathname.slice(1);
  url.username = `stranger_of_${database}`;
  url.password = MARK;
  await execute(admin, `create role ${url.username} login password '${MARK}'`);
  await execute(admin, 'revoke create on schema public from public');
  context.after(async () => {
    const others = new URL(admin);
    others.pathname = '/postgres';
    await execute(others.href, `drop database ${database} with (force)`);
    await execute(others.href, `drop role ${url.username}`);
  });
  return { url: url.href };
}

function withDatabase<Result>(file: string, use: (db: DatabaseSync) => Result): Result {
  const db = new DatabaseSync(file);
  try {
    return use(db);
  } finally {
    db.close();
  }
}
