// The configuration of the service: variables, files, refusals. The command runs in this process unless a test needs a separate
// one.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, realpathSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { accepts, Client, request } from '../support/client.ts';
import { type CommandHere, runCommand, startHere } from '../support/command.ts';
import { listen, OTHER_ADDRESSES } from '../support/ports.ts';
import { execute, freshDatabase } from '../support/postgres.ts';
import {
  endOf,
  pageOf,
  SQLITE,
  STORES,
  spawnService,
  startCommand,
  startTestService,
  temporaryFolder,
  testOnPostgres,
} from '../support/service.ts';
import { timesWith } from '../support/times.ts';
import { waitUntil } from '../support/wait.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** Part of every secret given to the service; nothing that it prints may contain it. */
const MARK = 'never-show-this';

const SECRET = `a secret of more than thirty-two bytes, ${MARK}`;
const PAIR = { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: `a password, ${MARK}` };
const LOGIN = { username: PAIR.AUTH_USERNAME, password: PAIR.AUTH_PASSWORD };
const BUILT_IN = { username: 'admin', password: 'password' };
const GUARDED = { ...PAIR, SECRET_TOKEN: SECRET };
/** No server runs there. */
const SERVER = `postgres://librarian:${MARK}@127.0.0.1:1/books`;

/** Files that variables name. */
const folder = temporaryFolder();
for (const [name, content] of Object.entries({
  empty: '',
  'line-end': '\r\n',
  latin1: Buffer.from(`${MARK} caf\xe9 of thirty-two bytes`, 'latin1'),
  letter: 'Dear librarian, this is a letter. '.repeat(200),
})) {
  writeFileSync(join(folder, name), content);
}

/** What is refused: a variable with each of the values, beside others, or without another one. */
const REFUSED = `
  rule 25: a port that is none | PORT | http -1 65536 1e3
  rule 31: a port that is none | ADMIN_PORT | http
  rule 34: a port that is none | PAGE_PORT | http 65536 on
  rule 14: an address of another machine | HOST | 203.0.113.7
  rule 31: an address of another machine | ADMIN_HOST | 203.0.113.7
  rule 32: an origin that no page has | CORS_ORIGINS | * https://*.example.org books.example.org ftp://books.example.org https://x.org,
  rule 32: an origin that no browser sends | CORS_ORIGINS | https://x.org/ https://x.org:443 https://X.org
  rule 30: a previous secret without a new one | SECRET_TOKEN_PREVIOUS | x | -SECRET_TOKEN
  rule 14: a password without a username | AUTH_USERNAME | | -AUTH_USERNAME
  rule 14: a username without a password | AUTH_PASSWORD | | -AUTH_PASSWORD
  rule 22: a password that no login can send | AUTH_PASSWORD | ${'x'.repeat(4096)}
  rule 34: a name that is too long | LIBRARY_NAME | ${'本'.repeat(61)}
  rule 25: an unknown level | LOG_LEVEL | verbose
  rule 28: a number out of range | WORKERS | 0 1.5 257
  rule 29: a proxy without an address | TRUST_PROXY | proxy.example.org true 127.0.0.1:80 127.0.0.1,,::1
  rule 29: a network that is none, or everything | TRUST_PROXY | 10.0.0.0/33 2001:db8::/129 0.0.0.0/0 ::/00
  rule 22: a limit out of range | BODY_LIMIT | 1MiB 0 268435457
  rule 22: a limit out of range | HEADER_LIMIT | many 1
  rule 25: a standby of a file | DB_READ_URL | ${SERVER}
  rule 25: a standby without a server | DB_READ_URL | sqlite:books.db me:${MARK}@127.0.0.1 | DB_URL=${SERVER}
  rule 25: a standby of a wrong form | DB_READ_URL | postgres://a:1/${MARK}@b/c ${SERVER}?sslmode=x | DB_URL=${SERVER}
  rule 25: a standby that must be primary | DB_READ_URL | ${SERVER}?target_session_attrs=primary | DB_URL=${SERVER}
  rule 26: a URL of no store | DB_URL | mysql://me:${MARK}@127.0.0.1/books books.db http://me:${MARK}@127.0.0.1:1/
  rule 26: a URL that names none | DB_URL | postgres: sqlite: sqlite://books.db sqlite:"books.db"
  rule 26: a URL with a bare sign | DB_URL | postgres://a:1/${MARK}@b:1/c postgres://me:%zz${MARK}@a/b
  rule 26: a port that is none | DB_URL | postgres://me:${MARK}@127.0.0.1:port/books
  rule 26: a misspelt parameter | DB_URL | ${SERVER}?sslmode=sometimes ${SERVER}?sslmod=require ${SERVER}?target_sesion_attrs=x
  rule 26: a parameter of another program | DB_URL | ${SERVER}?statement_timeout=1 postgres://127.0.0.1:1/b?password=${MARK}
  rule 26: a certificate that is missing | DB_URL | ${SERVER}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem
  rule 27: a server that does not run | DB_URL | ${SERVER} postgres://me:${MARK}@127.0.0.1:1,127.0.0.1:2/books
  rule 26: a path that a shell would expand | DB_URL | sqlite:~/books.db sqlite:/srv/$NAME/b sqlite:\${HOME}/b sqlite:%HOME%/b sqlite:$(pwd)/b sqlite:{{data}}/b
  rule 25: a path that a shell would expand | SECRET_TOKEN_FILE | ~/secret ~me/secret | -SECRET_TOKEN
  rule 27: a file that is no database, or a folder | DB_URL | sqlite:${folder}/letter sqlite:${folder}/letter/b sqlite:${folder}
  rule 25: a file that cannot be read | SECRET_TOKEN_FILE | ${folder} ${folder}/missing | -SECRET_TOKEN
  rule 25: a file without an end | SECRET_TOKEN_FILE | /dev/zero | -SECRET_TOKEN
  rule 25: a file without text | AUTH_PASSWORD_FILE | ${folder}/empty ${folder}/latin1 | -AUTH_PASSWORD
  rule 25: a file with a line end only | DB_URL_FILE | ${folder}/line-end | -DB_URL
  rule 25: a file beside a value | SECRET_TOKEN_FILE | ${folder}/letter | SECRET_TOKEN=${MARK}
  rule 25: a file beside a value | AUTH_PASSWORD_FILE | ${folder}/letter | AUTH_PASSWORD=${MARK}
  rule 25: a file beside a value | DB_URL_FILE | ${folder}/letter | DB_URL=${MARK}
  rule 25: a file beside a value | DB_READ_URL_FILE | ${folder}/letter | DB_READ_URL=${MARK}`;

/** Every variable. */
const NAMES =
  `PORT HOST DB_URL DB_READ_URL SECRET_TOKEN SECRET_TOKEN_PREVIOUS AUTH_USERNAME AUTH_PASSWORD WORKERS FIND
  HISTORY REQUIRE_IF_MATCH ADMIN_PORT ADMIN_HOST PAGE_PORT LIBRARY_NAME CORS_ORIGINS TRUST_PROXY LOG_LEVEL BODY_LIMIT BULK_LIMIT HEADER_LIMIT
  DB_URL_FILE DB_READ_URL_FILE SECRET_TOKEN_FILE SECRET_TOKEN_PREVIOUS_FILE AUTH_PASSWORD_FILE`.split(/\s+/);

describe('an invalid configuration', { concurrency: 4 }, () => {
  // This port is in use throughout. A service that tried to open its port before it has checked everything else would
  // report PORT rather than the actual fault.
  let port: string;
  let visitors = 0;
  const taken = createServer(() => {
    visitors += 1;
  });
  before(async () => {
    await once(taken.listen(0, '127.0.0.1'), 'listening');
    port = String((taken.address() as AddressInfo).port);
  });
  after(() => {
    taken.close();
    assert.equal(visitors, 0);
  });

  /** The sentence of a refusal that names this variable. */
  async function refuses(variable: string, env: Variables): Promise<string> {
    const ports = { HOST: '127.0.0.1', PORT: port, ADMIN_PORT: '0', PAGE_PORT: '0' };
    const DB_URL = await SQLITE.freshUrl();
    const outcome = await runCommand([], defined({ ...GUARDED, ...ports, DB_URL, ...env }));
    const sentence = sentenceOf(outcome);
    assert.match(sentence, new RegExp(`\\b${variable}\\b`));
    if (variable !== 'PORT') assert.doesNotMatch(sentence, /\bPORT\b/);
    return sentence;
  }

  for (const row of REFUSED.trim().split('\n')) {
    const [what, variable = '', values = '', other = '-'] = row.split('|').map((cell) => cell.trim());
    const [, name = '', value] = /^-?(\w*)=?(.+)?/.exec(other) ?? [];
    test(`${what} is refused: ${variable}`, async () => {
      for (const given of values.split(' ')) await refuses(variable, { [variable]: given, [name]: value });
    });
  }

  test('rule 25: a variable that is set but empty is refused', async () => {
    for (const name of NAMES) {
      const secret = name.endsWith('_FILE') ? { [name.slice(0, -'_FILE'.length)]: undefined } : {};
      assert.match(await refuses(name, { ...secret, [name]: '' }), / is set but empty: /);
    }
  });

  test('rule 25: quotation marks, control characters and blanks around a value are refused, in one sentence', async () => {
    const quoted = 'has quotation marks around its value, which would be part of it: remove them.';
    for (const [variable, value, found] of [
      ['AUTH_PASSWORD', `"${MARK}"`],
      ['SECRET_TOKEN', `'${MARK}'`],
      ['DB_URL', '“sqlite:books.db”'],
      ['PORT', "''"],
      ['DB_URL', 'sqlite:books.db\r', 'a carriage return (U+000D) at the end of'],
      ['AUTH_PASSWORD', `${MARK}\r`, 'a carriage return (U+000D) at the end of'],
      ['AUTH_USERNAME', '\u001b[31mred', 'the character (U+001B) at the beginning of'],
      ['LOG_LEVEL', 'in\tfo', 'a tab (U+0009) in'],
      ['SECRET_TOKEN', `${MARK}\n\n`, 'a line break (U+000A) at the end of'],
      ['HOST', ' 127.0.0.1', 'a blank (U+0020) at the beginning of'],
      ['CORS_ORIGINS', '\u00a0', 'the character (U+00A0) at the beginning of'],
      ['DB_URL', 'sqlite:books.db\u200b', 'the character (U+200B) at the end of'],
    ] as const) {
      const sentence = found === undefined ? quoted : `has ${found} its value: remove it.`;
      assert.equal(await refuses(variable, { [variable]: value }), `${variable} ${sentence}\n`);
    }
    const named = await refuses('AUTH_PASSWORD', { AUTH_PASSWORD: `AUTH_PASSWORD=${MARK}` });
    assert.equal(named, 'AUTH_PASSWORD has the value AUTH_PASSWORD=…: leave out the name.\n');
    const file = join(temporaryFolder(), 'password');
    writeFileSync(file, `\ufeff${MARK}`);
    const ofFile = { AUTH_PASSWORD: undefined, AUTH_PASSWORD_FILE: file };
    const sentence = await refuses('AUTH_PASSWORD_FILE', ofFile);
    const found = 'the character (U+FEFF) at the beginning of its value';
    assert.equal(sentence, `AUTH_PASSWORD_FILE has ${found}: remove it.\n`);
    assert.match((await runCommand(['import', 'a\u202eb.csv'], {})).stderr, /^a\\u202eb\.csv /);
  });

  test('rule 27: ends the process with exit code 1, and one sentence on standard error', async () => {
    const outcome = await endOf(
      spawnService({ ...GUARDED, HOST: '127.0.0.1', PORT: port, DB_URL: await SQLITE.freshUrl() }),
    );
    assert.match(sentenceOf(outcome), /^PORT \d+ is in use by another process: /);
  });

  test('rules 25, 31 and 34: a port that cannot be opened or used is refused, in one sentence with the way out', async () => {
    const inUse = `${port} is in use by another process: stop that process or choose another port.`;
    const same = (other: string) => `the same as ${other}: choose another port.`;
    const noNumber = 'must be a whole number from 0 to 65535';
    for (const [variable, env, sentence] of [
      ['ADMIN_PORT', { ADMIN_PORT: port, PORT: '0' }, inUse],
      ['PAGE_PORT', { PAGE_PORT: port, PORT: '0' }, inUse],
      ['ADMIN_PORT', { ADMIN_PORT: '1', PORT: '1' }, `1 is ${same('PORT')}`],
      ['PAGE_PORT', { PAGE_PORT: '1', PORT: '1' }, `1 is ${same('PORT')}`],
      ['PAGE_PORT', { PAGE_PORT: '7', PORT: '6', ADMIN_PORT: undefined }, `7 is ${same('ADMIN_PORT')}`],
      ['PAGE_PORT', { PAGE_PORT: 'http' }, `${noNumber}, or off, not "http".`],
      [
        'PAGE_PORT',
        { FIND: 'off' },
        '0 needs FIND=on, because the page searches: set FIND=on, or PAGE_PORT=off.',
      ],
    ] as const) {
      const ports = { HOST: '127.0.0.1', ADMIN_PORT: '0', PAGE_PORT: '0', DB_URL: await SQLITE.freshUrl() };
      const { stderr } = await runCommand([], defined({ ...GUARDED, ...ports, ...env }));
      assert.equal(stderr, `${variable} ${sentence}\n`);
    }
  });

  test('rules 14 and 16: HOST of other machines with the built-in password, or without SECRET_TOKEN is refused', async () => {
    const unguarded = { AUTH_USERNAME: undefined, AUTH_PASSWORD: undefined };
    for (const HOST of ['0.0.0.0', '::', '203.0.113.7']) {
      assert.match(await refuses('HOST', { HOST, ...unguarded }), /: set AUTH_USERNAME and AUTH_PASSWORD,/);
    }
    assert.match(await refuses('HOST', { HOST: '0.0.0.0', SECRET_TOKEN: undefined }), /: set SECRET_TOKEN,/);
  });

  test('rule 26: no part of a password with an unescaped /, ?, # or % is shown', async () => {
    for (const sign of ['/', '?', '#', '%', '%E9']) {
      const DB_URL = `postgres://someone:1605${sign}${MARK}@127.0.0.1/books`;
      const sentence = await refuses('DB_URL', { DB_URL });
      assert.match(sentence, /^DB_URL is not a valid URL: percent-escape special characters in its parts \(/);
    }
  });

  testOnPostgres('rule 27: a PostgreSQL that denies access is named', async (context) => {
    const admin = await freshDatabase();
    const role = `stranger_of_${new URL(admin).pathname.slice(1)}`;
    await execute(admin, `create role ${role} login password '${MARK}'`);
    await execute(admin, 'revoke create on schema public from public');
    context.after(() => execute(admin, `drop role ${role}`));
    const url = (user: string, database: string) =>
      admin.replace(/\/\/[^@]*@/, `//${user}@`).replace(/\w+$/, database);
    const own = new URL(admin).pathname.slice(1);
    for (const [DB_URL, words] of [
      [url(`postgres:${MARK}`, own), /password authentication failed/],
      [url('postgres', own), /the server asks for a password, but the URL has none\.$/m],
      [admin.replace(/\w+$/, 'no_such_database'), /no_such_database/],
      [url(`${role}:${MARK}`, own), /permission denied/], // to create the table of books
    ] as const) {
      assert.match(await refuses('DB_URL', { DB_URL }), words);
    }
  });
});

describe('rule 27: a start is refused that waits for', { concurrency: 4 }, () => {
  const times = timesWith({
    sqlite: { busy: 50 },
    postgres: { connectAtStart: 50, describe: 50, query: 50 },
  });
  const refused = async (DB_URL: string) => {
    const { message } = await startTestService(DB_URL, {}, undefined, times).then(
      () => assert.fail('it started'),
      (error) => error,
    );
    assert.match(message, /^DB_URL: [^\n]+\.$/);
    assert.ok(!message.includes(MARK), message);
  };
  const ready = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]); // logged in
  for (const [when, sslmode, said] of [
    ['before its first message', 'prefer', undefined],
    ['after it agreed to TLS', 'prefer', 'S'],
    ['after it refused TLS', 'prefer', 'N'],
    ['after the login', 'disable', ready],
  ] as const) {
    test(`a database that falls silent ${when}`, async (context) => {
      const { port } = await listen(context, (socket) => {
        if (said !== undefined) socket.once('data', () => socket.write(said));
      });
      await refused(`postgres://me:${MARK}@127.0.0.1:${port}/books?sslmode=${sslmode}`);
    });
  }

  test('a SQLite file that is being written, or locked as a whole, all the time', async () => {
    for (const held of ['pragma journal_mode = wal; begin immediate', 'begin exclusive']) {
      const file = join(temporaryFolder(), 'busy.db');
      const db = new DatabaseSync(file);
      db.exec(held);
      await refused(`sqlite:${file}`);
      db.close();
    }
  });
});

describe('a valid configuration', { concurrency: 2 }, () => {
  test('rules 14, 16, 25 and 26: with nothing set, it serves this machine only, from data/books.db', async () => {
    const folder = temporaryFolder();
    const service = await startCommand({ PORT: '0' }, { folder });
    assert.match(service.url, /^http:\/\/127\.0\.0\.1:/);
    for (const address of OTHER_ADDRESSES) {
      assert.equal(await accepts(address, service.port), false, address);
      assert.equal(await accepts(address, pageOf(service).port), false, address);
    }
    await (await Client.logIn(service, BUILT_IN)).create({});
    const file = join(realpathSync(folder), 'data', 'books.db');
    assert.ok(existsSync(file));
    const warnings = () =>
      entriesOf(service).filter(({ level, msg }) => level === 'warn' && msg !== 'slow request');
    await waitUntil(() => warnings().length === 2);
    const [{ store, contents } = {}] = entriesOf(service);
    assert.deepEqual([store, contents], [file, 'new']);
    assert.match(String(warnings()[0]?.msg), /AUTH_USERNAME.*AUTH_PASSWORD.*admin \/ password/);
    assert.match(String(warnings()[1]?.msg), /SECRET_TOKEN.*random/);
  });

  test('rules 14 and 25: with username, password and secret set, it serves all interfaces, for that password only', async () => {
    const service = await start(GUARDED);
    for (const address of ['127.0.0.1', ...OTHER_ADDRESSES]) {
      assert.ok(await accepts(address, service.port), address);
      assert.ok(await accepts(address, pageOf(service).port), address);
    }
    await Client.logIn(service, LOGIN);
    assert.equal((await request(service, 'POST', '/token', { body: BUILT_IN })).status, 401);
    assert.ok(entriesOf(service).every(({ level, msg }) => level !== 'warn' || msg === 'slow request'));
  });

  test('rules 14 and 25: without one of them, or with HOST, it serves that address only', async () => {
    for (const [env, host] of [
      [PAIR, '127.0.0.1'],
      [{ SECRET_TOKEN: SECRET }, '127.0.0.1'],
      [{ HOST: 'localhost' }, '127.0.0.1'],
      [{ ...GUARDED, HOST: '127.0.0.1' }, '127.0.0.1'],
      [GUARDED, '(every address)'],
    ] as const) {
      const { stdout } = await runCommand(['config'], env);
      assert.equal(/^HOST=(.*)$/m.exec(stdout)?.[1], host);
    }
    for (const HOST of OTHER_ADDRESSES) {
      const service = await start({ HOST }); // with the built-in password
      assert.ok(await accepts(HOST, service.port));
      assert.ok(service.url.includes(HOST));
    }
  });

  test('rule 16: a random secret is valid for one service only', async () => {
    const [issuer, other] = [await start(PAIR), await start(PAIR)];
    const { token } = await Client.logIn(issuer, LOGIN);
    assert.equal((await request(issuer, 'GET', '/books', { token })).status, 200);
    const { status, message } = await request(other, 'GET', '/books', { token });
    assert.deepEqual([status, message], [401, 'Invalid token']);
  });

  test('rule 25: on, off and levels are read in any case', async () => {
    const env = {
      FIND: 'OFF',
      HISTORY: 'Forever',
      REQUIRE_IF_MATCH: 'True',
      PAGE_PORT: 'Off',
      LOG_LEVEL: 'WARN',
    };
    const { stdout } = await runCommand(['config'], { ...GUARDED, ...env });
    const lines = ['FIND=off', 'HISTORY=forever', 'REQUIRE_IF_MATCH=on', 'PAGE_PORT=off', 'LOG_LEVEL=warn'];
    for (const shown of lines) assert.ok(stdout.includes(`\n${shown}\n`), shown);
  });

  test('rule 16: a secret shorter than 32 bytes causes a warning, one of 32 bytes does not', async () => {
    const warnings = async (SECRET_TOKEN: string) =>
      (await runCommand(['config'], { ...PAIR, SECRET_TOKEN })).stderr;
    assert.match(await warnings('x'.repeat(31)), /^SECRET_TOKEN.*32 bytes[^\n]*\n$/);
    assert.equal(await warnings('é'.repeat(16)), '');
  });

  test('rule 25: variables that other programs read for a setting, and files for what is no secret, are named', async () => {
    const ignored = { DB_URI: SERVER, AUTH_USERNAME_FILE: '/run/name', POST: '1' };
    const ofFile = 'AUTH_USERNAME_FILE is ignored: only a secret may come from a file. Set AUTH_USERNAME.';
    for (const [set, ...sentences] of [
      [{}, ofFile, 'DB_URI is ignored: set DB_URL instead.'],
      [{ DB_URL: 'sqlite:books.db' }, ofFile],
    ] as const) {
      const { stderr } = await runCommand(['config'], { ...GUARDED, ...ignored, ...set });
      assert.deepEqual(stderr.trimEnd().split('\n'), sentences);
    }
  });

  test('rule 25: a secret file, or a pipe once it has a writer, gives its content without the last line end', async () => {
    for (const [value, end] of [
      ['plain', ''],
      ['plain', '\n'],
      ['plain', '\r\n'],
      ['first\nsecond\r\n third', '\n'],
    ] as const) {
      const SECRET_TOKEN_FILE = join(temporaryFolder(), 'secret');
      writeFileSync(SECRET_TOKEN_FILE, value + end);
      isSignedWith(value, (await runCommand(['token'], { SECRET_TOKEN_FILE })).stdout);
    }
    const SECRET_TOKEN_FILE = join(temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [SECRET_TOKEN_FILE]);
    const ended = endOf(spawnService({ SECRET_TOKEN_FILE }, ['token']));
    const early = ended.then((outcome) => assert.fail(outcome.stderr));
    const writer = await Promise.race([open(SECRET_TOKEN_FILE, 'w'), early]); // once the command has opened it
    await writer.write(SECRET);
    await writer.close();
    isSignedWith(SECRET, (await ended).stdout);
  });

  for (const { name, freshUrl } of STORES) {
    test(`rule 26: on ${name}, two ways to write a URL lead to one store`, async () => {
      const DB_URL = await freshUrl();
      const other = DB_URL.replace(/^sqlite:/, 'sqlite://').replace(/^postgres:/, 'postgresql:');
      const [one, two] = [await start({ ...GUARDED, DB_URL }), await start({ ...GUARDED, DB_URL: other })];
      const found = [one, two].map((service) => entriesOf(service)[0]?.contents);
      assert.deepEqual(found, ['new', 'no books']);
      const { id } = await (await Client.logIn(two, LOGIN)).create({});
      assert.equal((await (await Client.logIn(one, LOGIN)).list())[0]?.id, id);
    });
  }
});

/** Starts the command in this process on a free port, and stops it at the end of the test. */
async function start(env: Record<string, string>): Promise<CommandHere> {
  return startHere({ PORT: '0', DB_URL: await SQLITE.freshUrl(), ...env });
}

/** The text on standard error, which must be the only output: one line, so no stack trace either. */
function sentenceOf({ code, stdout, stderr }: Awaited<ReturnType<typeof endOf>>): string {
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^[^\n]*[^\n.]\.\n$/);
  assert.ok(!stderr.includes(MARK), stderr);
  return stderr;
}

/** Fails unless the token is signed by HMAC SHA-256 (rule T4). */
function isSignedWith(secret: string, token: string): void {
  const [header, payload, signature] = token.trimEnd().split('.');
  assert.equal(signature, createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url'));
}

function defined(env: Variables): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

function entriesOf({ log }: Pick<CommandHere, 'log'>): Record<string, unknown>[] {
  return log.map((line) => JSON.parse(line));
}
