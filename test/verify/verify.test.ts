// The command `verify` and the kit behind it: reports, exit codes, options, and what stays in the store. Whether the kit finds out
// wrong services is in test/nightly; that the project's own service keeps the rules, in test/contract.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterEach, before, describe, type TestContext, test } from 'node:test';
import { perform, verdictsOf } from '../../conformance/checking.ts';
import { verify } from '../../conformance/command.ts';
import { expect, Unanswered } from '../../conformance/complaint.ts';
import { core } from '../../conformance/rule.ts';
import { RULES } from '../../conformance/rules.ts';
import { Service } from '../../conformance/service.ts';
import { runCommand } from '../support/command.ts';
import { listen, unusedPort } from '../support/ports.ts';
import { pathTo } from '../support/repository.ts';
import { endOf, SECRET, SQLITE, startTestService, temporaryFolder } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import {
  ask,
  give,
  kitOf,
  refuse,
  ruleOf,
  startWrongService,
  type WrongService,
} from '../support/wrong-service.ts';

const ACCOUNT = { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: 'correct horse' };

describe('verify', () => {
  let service: WrongService;
  let kept: unknown[];

  before(async () => {
    service = await startWrongService();
    await service.right.client.create({ title: 'Emma', author: 'Jane Austen', year: 1815 });
    kept = await service.right.client.list();
  });
  afterEach(async () => {
    service.fault = undefined;
    await executeOn(service.right.dbUrl, "delete from books where title <> 'Emma'");
  });

  /** Its wrong logins delay no other run's. */
  function run(args: readonly string[], env: Record<string, string> = ACCOUNT, stop?: Promise<unknown>) {
    service.client += 1;
    return runCommand(['verify', service.url, '--level', 'core', ...args], env, { stop });
  }

  function kitFor(context: TestContext): Service {
    const kit = kitOf(service.url);
    context.after(() => kit.close());
    return kit;
  }

  test('writes nothing unless the store may be written, and lists the rules that were not checked', async () => {
    const { id } = await service.right.client.create({});
    const args = ['verify', service.right.url, '--level', 'core', '--format'];
    const { code, stdout } = await runCommand([...args, 'json'], ACCOUNT);
    const { url, level, passed, failed, notChecked, rules } = JSON.parse(stdout);
    assert.deepEqual([code, url, level, failed], [0, service.right.url, 'core', 0]);
    const core = RULES.filter((rule) => rule.level === 'core');
    const expected = core.map(({ numbers, name, writes, needsSecret }) => {
      const reason = writes ? '--store-may-be-written' : needsSecret && '--secret';
      const result = reason ? { result: 'not checked', reason } : { result: 'passed' };
      return { rules: numbers, name, level: 'core', ...result };
    });
    assert.deepEqual(rules, expected);
    const text = (await runCommand([...args, 'text'], ACCOUNT)).stdout;
    assert.match(text, /^ {2}not checked {2}C2, G1, rules 5 and 24: stores a book/m);
    assert.match(text, /, 7 not checked: 1 without --secret, 6 without --store-may-be-written\.\n$/);
    assert.deepEqual([passed, notChecked], [core.length - 7, 7]);
    // The id of a book that was stored and removed would not be used again (rule 12).
    assert.equal((await service.right.client.create({})).id, id + 1);
  });

  test('at level core a service needs neither the headers nor the order of level full', async () => {
    service.fault = give(/(^(location|www-authenticate): .*\n)|(\[.*\](?=\}$))/gm, (part) =>
      part.startsWith('[') ? JSON.stringify(JSON.parse(part).reverse()) : '',
    );
    const { code, stdout } = await run(['--store-may-be-written', '--secret', SECRET]);
    assert.equal(code, 0, stdout);
  });

  test('shows the request and the answer of what failed, without the token and the password', async () => {
    service.fault = refuse(/^DELETE \/book\/\d{1,9}\n.*^authorization: eyJ/ms, 500, 'Internal server error');
    const args = ['--store-may-be-written', '--format'];
    for (const [format, failed, end] of [
      [
        'text',
        /^ {2}FAILED {7}D1, D2, rules 11 and 12: .*\n {6}expected {2}200 Book deleted successfully, data null\n {6}request {3}DELETE \/book\/\d+\n {16}authorization: .{12}…\n {6}answer {4}500 Internal server error, data null\n/m,
        /\n\d+ passed, 2 failed, 1 not checked: 1 without --secret\.\n\d+ books could not be removed: \d+, .*\n$/,
      ],
      ['json', /"request":\s*"DELETE \/book\//, /"failed":\s*2\b[\s\S]*"booksLeft":\s*\[\s*\d+,/],
    ] as const) {
      const { code, stdout } = await run([...args, format]);
      assert.equal(code, 1);
      assert.match(stdout, failed);
      assert.match(stdout, end);
      assert.ok(!stdout.includes(ACCOUNT.AUTH_PASSWORD));
    }
  });

  for (const [name, times, refusal] of [
    ['asks again for the removal of its books if the service is unavailable for a moment', 1, 503],
    ['removes its books from a service that demands a condition for it', Number.POSITIVE_INFINITY, 428],
  ] as const) {
    test(name, async (context) => {
      let refused = 0;
      service.fault = (asked, pass) => {
        if (!asked.startsWith('DELETE ') || asked.includes('\nif-match: *\n') || refused === times)
          return pass(asked);
        refused += 1;
        return refuse(/^/, refusal)(asked, pass);
      };
      const kit = kitFor(context);
      await perform(ruleOf('C2, G1'), kit);
      assert.ok(refused > 0);
      assert.deepEqual(kit.left, []);
      assert.deepEqual(await service.right.client.list(), kept);
    });
  }

  test('a service that has not indexed all books yet is asked again', async (context) => {
    const unindexed = give(/\n(\d+\n)([\s\S]*)"data":.*/, '\n$1x-unindexed-books: 1\n$2"data":[]}');
    const searches: string[] = [];
    service.fault = (asked, pass) => {
      if (!asked.startsWith('GET /books?')) return pass(asked);
      return searches.push(asked) === 1 ? unindexed(asked, pass) : pass(asked);
    };
    await perform(ruleOf('rule F11'), kitFor(context));
    assert.equal(searches[1], searches[0]);
  });

  test('H6: the rules of the log of changes are not checked of a service without it', async (context) => {
    const { url } = await startTestService(await SQLITE.freshUrl(), { HISTORY: 'off' });
    const kit = kitOf(url);
    context.after(() => kit.close());
    for (const path of ['/changes', '/book/1/history']) {
      const { status, message } = await kit.request('GET', path, { token: null });
      assert.deepEqual([status, message], [404, 'Not found']);
    }
    const reasons: unknown[] = [];
    const isStopped = () => RULES[reasons.length]?.needs.includes('log of changes') !== true;
    for await (const verdict of verdictsOf(kit, { level: 'full', mayWrite: false, isStopped })) {
      reasons.push('reason' in verdict && verdict.reason);
    }
    const expected = RULES.map(({ needs }) =>
      needs.includes('log of changes') ? 'no log of changes' : 'stopped',
    );
    assert.deepEqual(reasons, expected);
  });

  test('the rules of imports are not checked of a service without them', async (context) => {
    service.fault = refuse(/^POST \/import\n/, 404, 'Not found');
    const reasons: unknown[] = [];
    const isStopped = () => !/^M\d/.test(RULES[reasons.length]?.numbers ?? '');
    for await (const verdict of verdictsOf(kitFor(context), { level: 'full', mayWrite: true, isStopped }))
      reasons.push('reason' in verdict && verdict.reason);
    const expected = RULES.map(({ numbers }) => (/^M\d/.test(numbers) ? 'no imports' : 'stopped'));
    assert.deepEqual(reasons, expected);
  });

  test('stops between two rules, with the verdicts so far', async () => {
    const { code, stdout } = await run(['--store-may-be-written'], ACCOUNT, Promise.resolve());
    assert.equal(code, 1);
    assert.match(stdout, /\n0 passed, 0 failed, (\d+) not checked: \1 after the stop\.\n$/);
  });

  for (const [name, code, outcome] of [
    ['its reader leaves: it ends before the next rule, with its books removed', 'EPIPE', 1],
    ['a report that cannot be written is no success', 'ENOSPC', 'The report cannot be written: no room.'],
  ] as const) {
    test(name, async () => {
      const requests: string[] = [];
      service.fault = (asked, pass) => {
        requests.push(asked);
        return pass(asked);
      };
      let before = 0;
      const stdout = new Writable({
        write(line, _encoding, done) {
          if (!/ C2/.test(String(line))) return done(); // the first rule that stores a book
          before = requests.length;
          done(Object.assign(new Error('no room'), { code }));
        },
      });
      const options = { level: 'core', 'store-may-be-written': true };
      const known = { username: ACCOUNT.AUTH_USERNAME, password: ACCOUNT.AUTH_PASSWORD };
      const ended = verify(service.url, options, { stdout, stop: new Promise(() => {}), known });
      assert.equal(await ended.catch(({ message }) => message), outcome);
      assert.equal(requests.length, before, 'the next rules are not checked');
      assert.deepEqual(await service.right.client.list(), kept);
    });
  }

  test('keeps the book of another client, if its key was used for the same request', async (context) => {
    const { client } = service.right;
    const options = { headers: { 'idempotency-key': '"' }, body: {} };
    const { status } = await client.request('POST', '/book', options);
    const listed = await client.list();
    await perform(ruleOf('I1'), kitFor(context));
    assert.deepEqual([status, await client.list()], [201, listed]);
  });

  test('H5: a run with changes of another client is not taken back', async (context) => {
    const { client } = service.right;
    const { id } = await client.create({});
    let year = 0;
    service.fault = async (asked, pass) => {
      const answer = await pass(asked);
      if (asked.startsWith('POST /book\n') && asked.includes('"brief"')) {
        year += 1;
        await client.request('PUT', `/book/${id}`, { body: { year } });
      }
      return answer;
    };
    await perform(ruleOf('H5: an event is'), kitFor(context));
    assert.deepEqual([year, (await client.request('GET', `/book/${id}`)).data.year], [20, 20]);
  });

  test('a complaint without a request gets the latest one', async (context) => {
    const rule = core('L1', 'the list is right', async (kit) => {
      await kit.list();
      expect(false, 'The list is right.');
    });
    const complaint = { message: 'The list is right.', request: /^GET \/books\n/ };
    await assert.rejects(perform(rule, kitFor(context)), complaint);
  });

  test('shows the request of a wrong login, without the password of a login', async () => {
    for (const format of ['text', 'json']) {
      const wrong = { ...ACCOUNT, AUTH_PASSWORD: 'not "the" secret' };
      const { code, stdout } = await run(['--format', format], wrong);
      assert.equal(code, 1);
      assert.match(stdout, /POST \/token/);
      assert.doesNotMatch(stdout, /secret/);
    }
  });

  test('a service of another secret gets no token that the secret signs: exit code 2, and how to go on', async () => {
    const signed: string[] = [];
    const foreign = give(/"token":"[^"]*"/, '"token":"e30.e30.e30"');
    service.fault = (asked, pass) => {
      const [, text = '', signature] = /^authorization: (.*)\.(.*)$/m.exec(asked) ?? [];
      const right = createHmac('sha256', SECRET).update(text).digest('base64url');
      if (signature === right) signed.push(asked);
      return foreign(asked, pass);
    };
    for (const [args, env] of [
      [['--secret', SECRET, '--store-may-be-written'], ACCOUNT],
      [['--format', 'json', '--level', 'full'], { ...ACCOUNT, SECRET_TOKEN: SECRET }],
    ] as const) {
      const stderr =
        "The secret does not sign the service's tokens: set --secret or SECRET_TOKEN to the secret of the service, " +
        'or leave both out, and only the rules that need it are not checked.\n';
      assert.deepEqual(await run(args, env), { code: 2, stdout: '', stderr });
    }
    assert.deepEqual(signed, []);
  });

  test('a service that refuses tokens of the right secret: the rules about tokens fail', async () => {
    service.fault = refuse(/^authorization: ./m, 401, 'Invalid token');
    const { code, stdout, stderr } = await run(['--secret', SECRET]);
    assert.deepEqual([code, stderr], [1, '']);
    assert.match(stdout, /^ {2}FAILED {7}A4, rule 17: exp must be a number in the future$/m);
  });

  test('runs in a separate folder, with nothing but Node.js, as the same command', async () => {
    const folder = join(temporaryFolder(), 'kit');
    cpSync(pathTo('conformance'), folder, { recursive: true });
    const args = [join(folder, 'main.ts'), service.url, '--level', 'core', '--format', 'json'];
    const { stdout } = await endOf(spawn(process.execPath, args, { cwd: folder, env: ACCOUNT }));
    assert.equal(stdout, (await run(['--format', 'json'])).stdout);
    const { code, stderr } = await endOf(
      spawn(process.execPath, [...args.slice(0, 1), 'http://localhost/x']),
    );
    assert.equal(code, 2);
    assert.match(stderr, /^URL must be that of a service without a path, such as http:\S+\.\n$/);
  });

  test('is called wrongly: exit code 2, and a sentence that shows no password', async () => {
    const url = 'http://localhost:8080';
    for (const [args, sentence] of [
      [[], /^book-catalogue verify takes URL, but got none\. /],
      [['localhost:8080'], /^URL must be that of a service without a path, such as http:/],
      [['http://librarian:hidden@localhost:8080'], /^URL must be that of a service without a path/],
      [['http://localhost:8080/catalogue'], /^URL must be that of a service without a path/],
      [['ftp://localhost'], /^URL must be that of a service without a path/],
      [[url, '--level', 'most'], /^The level must be core or full: set --level\.\n$/],
      [[url, '--format', 'xml'], /^The format must be text or json: set --format\.\n$/],
      [[url, '--username', 'x'], /^The password is missing: username and password are one pair\.\n$/],
    ] as const) {
      const { code, stdout, stderr } = await runCommand(['verify', ...args], {});
      assert.deepEqual([code, stdout], [2, ''], args.join(' '));
      assert.match(stderr, sentence);
      assert.doesNotMatch(stderr, /hidden/);
    }
  });

  test('the largest id: rules that need a missing book take another one', async (context) => {
    const largest = Number.MAX_SAFE_INTEGER;
    service.fault = ask(new RegExp(`^(\\S+ /book/)${largest}$`, 'm'), '$11'); // it names the first book
    const kit = kitFor(context);
    for (const beginning of ['G2', 'U1', 'D1, D2']) await perform(ruleOf(beginning), kit);
    assert.equal(kit.noBook, `/book/${largest - 1}`);
    assert.deepEqual(await service.right.client.list(), kept);
  });
});

describe('a service that cannot be checked', () => {
  const LIMITS = { time: 60_000, size: 1000 };
  const HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 10000\r\n\r\n';

  /** The address of a server whose answer to anything is this text. */
  async function answering(context: TestContext, text: string, isWhole = false): Promise<string> {
    const answer = (socket: Socket) => (isWhole ? socket.end(text) : socket.write(text));
    const { port } = await listen(context, (socket) => socket.once('data', () => answer(socket)));
    return `127.0.0.1:${port}`;
  }

  async function kitOn(context: TestContext, text: string, limits = LIMITS): Promise<Service> {
    const url = new URL(`http://${await answering(context, text)}`);
    const kit = new Service(url, { username: 'a', password: 'b', secret: undefined }, limits);
    context.after(() => kit.close());
    return kit;
  }

  test('does not answer, or answers otherwise: one clear verdict, and exit code 1', async (context) => {
    const invalid = 'HTTP/1.1 401 No\r\n\r\n{"status":401,"message":"\\u001b[2J\\u202e","data":null}';
    for (const [scheme, text, answer] of [
      ['http', '', /no answer: socket hang up\n/],
      ['http', 'SSH-2.0-OpenSSH_9.2\r\n', /no answer: Parse Error/],
      ['http', 'HTTP/1.1 200 OK\r\n\r\n<h1>It works</h1>', /200 <h1>It works<\/h1>\n/],
      ['http', 'HTTP/1.1 200 OK\r\n\r\n{"token":"x"}', /200 \{"token":"x"\}\n/],
      ['http', invalid, /401 \\+u001b\[2J\\+u202e, data null\n/],
      ['http', `${HEAD}{"status":`, /200 \{"status":, and then the connection broke/],
      ['https', invalid, /no answer: the port does not use TLS: the URL must begin with http:\/\/\n/],
      ['https', '\x15\x03\x01\0\x02\x02\x46', /no answer: TLS fails: [\w ]+\n/], // an alert: the version of TLS
    ] as const) {
      const args = ['verify', `${scheme}://${await answering(context, text, true)}`];
      const { code, stdout, stderr } = await runCommand(args, {});
      assert.deepEqual([code, stderr], [1, ''], stdout);
      assert.match(stdout, /\n {2}FAILED {7}the login, without which nothing can be checked\n/);
      assert.match(stdout, answer);
    }
    const nothing = `http://127.0.0.1:${await unusedPort()}`;
    const json = JSON.parse((await runCommand(['verify', nothing, '--format', 'json'], {})).stdout);
    assert.equal(json.failed, 1);
    assert.match(json.failure.answer, /^no answer: connect ECONNREFUSED/);
  });

  for (const [name, text, time, received] of [
    ['hangs', '', 50, /^no whole answer within 50 ms$/],
    ['never ends its answer', `${HEAD}{`, 50, /no whole answer within 50 ms$/],
    ['answers without end', HEAD.padEnd(5000), 60_000, /answers of more than 1000 characters at once$/],
  ] as const) {
    test(`${name}: the limit is reported`, async (context) => {
      const kit = await kitOn(context, text, { ...LIMITS, time });
      const complaint = { message: 'The request is answered.', received };
      await assert.rejects(kit.logIn(), complaint);
      const connection = kit.connect();
      await connection.send(kit.bytes('GET', '/books'));
      await assert.rejects(connection.answers(1), complaint);
    });
  }

  test('answers without end: its connections hold no more than the limit together, and are ended', async (context) => {
    const kit = await kitOn(context, HEAD.padEnd(600));
    const [one, other] = [kit.connect(), kit.connect()];
    for (const { socket } of [one, other]) socket.write(kit.bytes('GET', '/books'));
    const received = 'answers of more than 1000 characters at once';
    await assert.rejects(Promise.all([one.answers(1), other.answers(1)]), { received });
    assert.deepEqual([one.received.length, other.received.length].toSorted(), [0, 600]);
  });

  test('answers nothing in time: three rules fail, and the others are not checked', async (context) => {
    const kit = await kitOn(context, '');
    kit.request = () => Promise.reject(new Unanswered('An answer.', { request: 'any', received: '' }));
    const scope = { level: 'full', mayWrite: true, isStopped: () => false } as const;
    const verdicts = await Array.fromAsync(verdictsOf(kit, scope));
    const results = verdicts.map((verdict) => ('reason' in verdict ? verdict.reason : verdict.result));
    assert.deepEqual(
      results,
      RULES.map((_, index) => (index < 3 ? 'failed' : 'no answer')),
    );
  });
});

test('a command of root has the secrets of the service, but not `verify` of another address', async () => {
  const folder = temporaryFolder();
  const script = readFileSync(pathTo('release/debian/book-catalogue'), 'utf8')
    .replace('etc=/etc/book-catalogue', `etc=${folder}`)
    .replace(/^program=.*$/m, `program=${join(folder, 'program')}`);
  for (const [name, text] of Object.entries({
    environment: 'PORT=9090\n',
    auth_password: 'hidden',
    secret_token: SECRET,
    db_url: 'sqlite:/x',
    id: '#!/bin/sh\necho 0\n',
    setpriv: '#!/bin/sh\nshift 3\nexec "$@"\n',
    program: '#!/bin/sh\nenv\n',
    'book-catalogue': script,
  })) {
    writeFileSync(join(folder, name), text, { mode: 0o755 });
  }
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
    for (const name of ['AUTH_PASSWORD', 'SECRET_TOKEN'])
      assert.equal(new RegExp(`^${name}=`, 'm').test(stdout), has, args.join(' '));
  }
});
