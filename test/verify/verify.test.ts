// The command `verify`: what it prints, with which exit code, and what it leaves in the store. Whether it finds out wrong
// services, and services that do not answer, is in test/nightly. That the project's own service passes is test/contract.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { perform } from '../../conformance/checking.ts';
import { expect } from '../../conformance/complaint.ts';
import { FINDING } from '../../conformance/finding.ts';
import { core } from '../../conformance/rule.ts';
import { RULES } from '../../conformance/rules.ts';
import { Service } from '../../conformance/service.ts';
import { Client, LIMITS } from '../support/client.ts';
import { HERE_ONLY, runCommand } from '../support/command.ts';
import { NO_FULL_DISK, runOnFullDisk } from '../support/full-disk.ts';
import { pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  endOf,
  POSTGRES,
  type RunningService,
  SECRET,
  SQLITE,
  spawnService,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { ACCOUNT, startSmallService } from '../support/small-service.ts';
import { executeOn, holdIndex } from '../support/sql.ts';
import { timesWith } from '../support/times.ts';

/** The program of the kit, without this project. */
const KIT = pathTo('conformance/main.ts');

const ADMITTED = { username: ENVIRONMENT.AUTH_USERNAME, password: ENVIRONMENT.AUTH_PASSWORD };

test('a service that has not indexed all books yet is asked again', async (context) => {
  const times = timesWith({ postgres: { catchUp: 100 } });
  const { dbUrl, url, stop } = await startTestService(await POSTGRES.freshUrl(), {}, undefined, times);
  context.after(stop);
  const { AUTH_USERNAME: username, AUTH_PASSWORD: password } = ENVIRONMENT;
  let release = async () => {};
  let late = 0;
  const kit = new Service(new URL(url), { username, password, secret: SECRET }, LIMITS, ({ headers }) => {
    if (headers['x-unindexed-books'] === undefined) return;
    late += 1;
    void release();
  });
  context.after(() => kit.close());
  const rule = FINDING.find(({ numbers }) => numbers === 'rule F11');
  assert.ok(rule !== undefined);
  release = await holdIndex(dbUrl);
  await perform(rule, kit);
  await release();
  assert.ok(late > 0);
});

describe('verify', { concurrency: true }, () => {
  let service: RunningService;

  before(async () => {
    ({ service } = await startWithBook());
  });
  after(() => service.stop());

  const account = { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: 'correct horse' };
  const run = (args: readonly string[], env: Record<string, string> = account, { url } = service) =>
    runCommand(['verify', url, ...args], env);

  /** A test that logs in with wrong passwords needs a separate service: they delay the logins of others. */
  async function startWithBook(context?: TestContext) {
    const service = await startTestService(await SQLITE.freshUrl());
    context?.after(() => service.stop());
    await service.client.create({ title: 'Emma', author: 'Jane Austen', year: 1815 });
    return { service, kept: await service.client.list() };
  }

  test('writes nothing unless the store may be written, and lists the rules that were not checked', async (context) => {
    const { service, kept } = await startWithBook(context);
    const run = (args: readonly string[]) => runCommand(['verify', service.url, ...args], account);
    const { code, stdout } = await run(['--level', 'core', '--format', 'json']);
    assert.equal(code, 0);
    const { url, level, passed, failed, notChecked, rules } = JSON.parse(stdout);
    assert.deepEqual([url, level, failed], [service.url, 'core', 0]);
    const core = RULES.filter((rule) => rule.level === 'core');
    const expected = core.map(({ numbers, name, writes, needsSecret }) => {
      const reason = writes ? '--store-may-be-written' : needsSecret && '--secret';
      const result = reason ? { result: 'not checked', reason } : { result: 'passed' };
      return { rules: numbers, name, level: 'core', ...result };
    });
    assert.deepEqual(rules, expected);
    assert.equal(passed, expected.filter(({ result }) => result === 'passed').length);
    assert.ok(passed > 5 && notChecked > 5);
    assert.equal(passed + notChecked, core.length);
    assert.deepEqual(await service.client.list(), kept);

    const text = await run(['--level=core', '--format=text']);
    assert.match(text.stdout, /^ {2}passed {7}G2: a book that does not exist gets 404$/m);
    assert.match(text.stdout, /^ {2}not checked {2}G1: returns the book$/m);
    const summary =
      /(\d+) passed, 0 failed, (\d+) not checked: 1 without --secret, (\d+) without --store-may-be-written\.\n$/.exec(
        text.stdout,
      );
    assert.deepEqual(summary?.slice(1, 4).map(Number), [passed, notChecked, notChecked - 1]);
    // The id of a book that was stored and removed would not be used again (rule 12).
    assert.equal((await service.client.create({})).id, 2);
  });

  test('shows the request and the answer of what failed, without the token and the password', async (context) => {
    const small = await startSmallService('removes nothing');
    context.after(() => small.stop());
    const env = { AUTH_USERNAME: ACCOUNT.username, AUTH_PASSWORD: ACCOUNT.password };
    const args = ['verify', small.url, '--store-may-be-written', '--level', 'core'];
    const { code, stdout } = await runCommand([...args, '--format', 'text'], env);
    assert.equal(code, 1);
    const [, explained = ''] = /^ {2}FAILED {7}D1: [^\n]*\n((?: {6}.*\n)+)/m.exec(stdout) ?? [];
    assert.match(
      explained,
      /^ {6}expected {2}200 Book deleted successfully, data null\n {6}request {3}DELETE \/book\/\d+\n/,
    );
    assert.match(explained, /\n {6}answer {4}500 Internal server error, data null\n/);
    assert.match(explained, /authorization: .{12}…\n/);
    assert.ok(!stdout.includes(ACCOUNT.password));
    assert.match(
      stdout,
      /\n\d+ passed, 2 failed, 1 not checked: 1 without --secret\.\n\d+ books could not be removed: \d+, .*\n$/,
    );

    const tap = await runCommand(args, env);
    assert.match(
      tap.stdout,
      /^not ok \d+ - D1: .*\n {2}---\n {2}expected: \|-\n {6}200 Book deleted successfully, data null\n/m,
    );
    assert.match(tap.stdout, /\n {2}answer: \|-\n {6}500 .*\n {2}\.\.\.\n/);
    const json = JSON.parse((await runCommand([...args, '--format', 'json'], env)).stdout);
    assert.equal(json.failed, 2);
    assert.ok(json.rules.some(({ request }: { request?: string }) => request?.startsWith('DELETE /book/')));
    assert.ok(json.booksLeft.length > 30);
  });

  test('asks again for the removal of its books if the service is unavailable for a moment', async (context) => {
    const small = await startSmallService('removes a book at the second request only');
    context.after(() => small.stop());
    const env = { AUTH_USERNAME: ACCOUNT.username, AUTH_PASSWORD: ACCOUNT.password };
    const args = ['verify', small.url, '--store-may-be-written', '--level', 'core', '--format', 'json'];
    const { booksLeft } = JSON.parse((await runCommand(args, env)).stdout);
    assert.deepEqual(booksLeft, []);
    const target = { url: small.url, port: Number(new URL(small.url).port) };
    assert.deepEqual(await (await Client.logIn(target, ACCOUNT)).list(), []);
  });

  test('removes its books from a service that demands a condition for it', async (context) => {
    const strict = await startTestService(await SQLITE.freshUrl(), { REQUIRE_IF_MATCH: 'on' });
    context.after(() => strict.stop());
    const args = ['--store-may-be-written', '--level', 'core', '--format', 'json'];
    const { failed, booksLeft } = JSON.parse((await run(args, account, strict)).stdout);
    assert.ok(failed > 0, 'no rule stores and removes books');
    assert.deepEqual(booksLeft, []);
    assert.deepEqual(await strict.client.list(), []);
  });

  test('stops between two rules, with the verdicts so far', { skip: HERE_ONLY }, async () => {
    const args = ['verify', service.url, '--store-may-be-written'];
    const { code, stdout } = await runCommand(args, account, undefined, Promise.resolve());
    assert.equal(code, 1);
    assert.match(
      stdout,
      new RegExp(
        `\nBail out! Stopped\\.\n# 0 passed, 0 failed, ${RULES.length} not checked: ${RULES.length} after the stop`,
      ),
    );
  });

  for (const [name, spawnWith, options] of [
    ['verify', (args: readonly string[]) => spawnService(account, ['verify', ...args]), {}],
    [
      'the kit alone',
      (args: readonly string[]) => spawn(process.execPath, [KIT, ...args], { env: account }),
      { skip: HERE_ONLY },
    ],
  ] as const) {
    test(`${name} ends when its reader leaves, with its books removed`, options, async (context) => {
      const { service, kept } = await startWithBook(context);
      const child = spawnWith([service.url, '--store-may-be-written']);
      let lines = 0;
      child.stdout?.on('data', (text) => {
        lines += String(text).split('\n').length - 1;
        if (lines > 25) child.stdout?.destroy(); // books are being stored by then
      });
      const { code, stderr } = await endOf(child);
      assert.deepEqual({ code, stderr }, { code: 1, stderr: '' });
      assert.deepEqual(await service.client.list(), kept);
    });
  }

  test('keeps the book of another client, if its key was used for the same request', async (context) => {
    const { service } = await startWithBook(context);
    const headers = { 'idempotency-key': '"' };
    assert.equal((await service.client.request('POST', '/book', { headers, body: {} })).status, 201);
    const listed = await service.client.list();
    const kit = new Service(new URL(service.url), { ...ADMITTED, secret: SECRET }, LIMITS);
    context.after(() => kit.close());
    const rule = RULES.find(({ numbers }) => numbers === 'I1');
    assert.ok(rule !== undefined);
    await perform(rule, kit);
    assert.deepEqual(await service.client.list(), listed);
  });

  test('a complaint without a request gets the latest one', async (context) => {
    const kit = new Service(new URL(service.url), { ...ADMITTED, secret: SECRET }, LIMITS);
    context.after(() => kit.close());
    const rule = core('L1', 'the list is right', async (one) => {
      await one.list();
      expect(false, 'The list is right.');
    });
    await assert.rejects(perform(rule, kit), { message: 'The list is right.', request: /^GET \/books\n/ });
  });

  test('shows the request of a wrong login, without the password of a login', async (context) => {
    const { service } = await startWithBook(context);
    const env = { ...account, AUTH_PASSWORD: 'not "the" secret' };
    for (const format of ['text', 'json']) {
      const { code, stdout } = await run(['--format', format], env, service);
      assert.equal(code, 1);
      assert.match(stdout, /POST \/token/);
      assert.doesNotMatch(stdout, /secret/);
    }
  });

  test('a report that cannot be written is no success', { skip: NO_FULL_DISK }, async () => {
    for (const format of ['tap', 'json']) {
      const args = ['verify', service.url, '--level', 'core', '--format', format];
      const { code, stderr } = await runOnFullDisk('stdout', args, account);
      assert.deepEqual(
        [code, stderr],
        [1, 'The report cannot be written: ENOSPC: no space left on device, write.\n'],
      );
    }
  });

  test('a secret that does not sign the tokens of the service: exit code 2, and how to go on', async () => {
    const wrong = 'a secret of another service, long enough';
    for (const [args, env] of [
      [['--secret', wrong], account],
      [['--level', 'core', '--format', 'json'], { ...account, SECRET_TOKEN: wrong }],
    ] as const) {
      const { code, stdout, stderr } = await run(args, env);
      assert.deepEqual([code, stdout], [2, '']);
      assert.equal(
        stderr,
        "The secret does not sign the service's tokens: set --secret or SECRET_TOKEN to the secret of the service, " +
          'or leave both out, and only the rules that need it are not checked.\n',
      );
    }
  });

  test('the largest id: rules that need a missing book take another one', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const full = await startTestService(dbUrl);
    context.after(() => full.stop());
    const largest = Number.MAX_SAFE_INTEGER;
    await executeOn(
      dbUrl,
      `insert into books (id, title, author, year) values (${largest}, 'kept', 'kept', 4)`,
    );
    const listed = await full.client.list();
    const verified = new Service(new URL(full.url), { ...ADMITTED, secret: SECRET }, LIMITS);
    context.after(() => verified.close());
    // A book beside it finds no id any more: rules that store one would fail.
    const rules = RULES.filter(
      ({ numbers, name }) => /^(A1|A5|G2|U1)/.test(numbers) && !/too large/.test(name),
    );
    assert.ok(rules.some(({ writes }) => writes));
    for (const rule of rules) await perform(rule, verified);
    assert.equal(verified.noBook, `/book/${largest - 1}`);
    assert.deepEqual(await full.client.list(), listed);
  });

  test('runs in a separate folder, with nothing but Node.js, as the same command', {
    skip: HERE_ONLY,
  }, async () => {
    const folder = join(temporaryFolder(), 'kit');
    cpSync(pathTo('conformance'), folder, { recursive: true });
    const runAlone = (args: readonly string[]) =>
      endOf(spawn(process.execPath, [join(folder, 'main.ts'), ...args], { cwd: folder, env: account }));
    const args = [service.url, '--level', 'core', '--format', 'json'];
    assert.equal((await runAlone(args)).stdout, (await run(args.slice(1))).stdout);
    assert.deepEqual(await runAlone(['http://127.0.0.1:8080/x']), {
      code: 2,
      stdout: '',
      stderr: 'URL must be that of a service without a path, such as http://127.0.0.1:8080.\n',
    });
  });

  test('is called wrongly: exit code 2, and a sentence that shows no password', async () => {
    for (const [args, sentence] of [
      [[], /^verify needs URL\. /],
      [['localhost:8080'], /^URL must be that of a service without a path, such as http:/],
      [['http://librarian:hidden@localhost:8080'], /^URL must be that of a service without a path/],
      [['http://localhost:8080/catalogue'], /^URL must be that of a service without a path/],
      [['ftp://localhost'], /^URL must be that of a service without a path/],
      [[service.url, '--level', 'most'], /^The level must be core or full: set --level\.$/],
      [[service.url, '--format', 'xml'], /^The format must be text, tap or json: set --format\.$/],
      [
        [service.url, '--username', 'librarian'],
        /^The password is missing: username and password are one pair\.$/,
      ],
    ] as const) {
      const { code, stdout, stderr } = await runCommand(['verify', ...args], {});
      assert.deepEqual([code, stdout], [2, ''], args.join(' '));
      assert.match(stderr.trimEnd(), sentence);
      assert.doesNotMatch(stderr, /hidden/);
    }
  });
});

test('a service of another secret gets no token that the secret signs', async (context) => {
  const tokens: string[] = [];
  const server = createServer((request, response) => {
    if (request.headers.authorization !== undefined) tokens.push(request.headers.authorization);
    const data = { token: 'e30.e30.e30' };
    response.end(JSON.stringify({ status: 200, message: 'Token generated successfully', data }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const isOfSecret = (token: string) => {
    const [, signed = '', signature] = /^(.*)\.(.*)$/s.exec(token) ?? [];
    return createHmac('sha256', SECRET).update(signed).digest('base64url') === signature;
  };
  for (const args of [[], ['--store-may-be-written'], ['--level', 'core']]) {
    const { code } = await runCommand(['verify', url, ...args], { SECRET_TOKEN: SECRET });
    assert.equal(code, 2);
  }
  assert.deepEqual(tokens.filter(isOfSecret), []);
});

test('a command of root has the secrets of the service, but not `verify` of another address', async () => {
  const folder = temporaryFolder();
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o755 });
  for (const [name, text] of Object.entries({
    environment: 'PORT=9090\n',
    auth_password: 'hidden',
    secret_token: SECRET,
    db_url: 'sqlite:/x',
    id: '#!/bin/sh\necho 0\n',
    setpriv: '#!/bin/sh\nshift 3\nexec "$@"\n',
    program: '#!/bin/sh\nenv\n',
  })) {
    write(name, text);
  }
  const script = readFileSync(pathTo('release/debian/book-catalogue'), 'utf8')
    .replace('etc=/etc/book-catalogue', `etc=${folder}`)
    .replace(/^program=.*$/m, `program=${join(folder, 'program')}`);
  write('book-catalogue', script);
  for (const [args, has] of [
    [['config'], true],
    [['verify', 'http://127.0.0.1:8080', '--level', 'core'], true],
    [['verify', '--level', 'core', 'http://localhost:8080'], true],
    [['verify', 'http://[::1]:8080'], true],
    [['verify', 'http://books.test:8080'], false],
    [['verify', 'http://127.0.0.1.books.test:8080'], false],
    [['verify', 'https://127.0.0.1.books.test'], false],
    [['verify'], false],
    [['demo'], false],
  ] as const) {
    const env = { PATH: `${folder}:${process.env.PATH}` };
    const { stdout } = await endOf(spawn(join(folder, 'book-catalogue'), args, { env }));
    for (const name of ['AUTH_PASSWORD', 'SECRET_TOKEN']) {
      assert.equal(new RegExp(`^${name}=`, 'm').test(stdout), has, args.join(' '));
    }
  }
});

describe('a service that cannot be checked', () => {
  async function listen(context: TestContext, server: Server): Promise<string> {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    context.after(() => server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const http = (context: TestContext, answer: RequestListener) => {
    const server = createServer(answer);
    context.after(() => server.closeAllConnections());
    return listen(context, server);
  };

  test('refuses tokens of the right secret: the rules about tokens fail', async (context) => {
    const signed = ['{"alg":"HS256","typ":"JWT"}', `{"exp":${Math.floor(Date.now() / 1000) + 900}}`]
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.');
    const token = `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`;
    const url = await http(context, (request, response) => {
      const isLogin = request.url === '/token';
      const [status, message] = isLogin ? [200, 'Token generated successfully'] : [401, 'Invalid token'];
      const data = isLogin ? { token } : null;
      response.writeHead(status).end(JSON.stringify({ status, message, data }));
    });
    const args = ['verify', url, '--level', 'core', '--secret', SECRET];
    const { code, stdout, stderr } = await runCommand(args, {});
    assert.deepEqual([code, stderr], [1, '']);
    assert.match(stdout, /^not ok \d+ - A4: an expired token gets 401$/m);
  });
});
