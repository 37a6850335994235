// No secret is shown in an answer or in the log, whatever is requested and whatever fails. The real command in
// separate processes, with the most verbose log. Refusals to start are tested in configuration.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import type { RawAnswer } from '../../conformance/answers.ts';
import { exchange, request } from '../support/client.ts';
import { execute } from '../support/postgres.ts';
import { random } from '../support/random.ts';
import { ENVIRONMENT, STORES, startCommand } from '../support/service.ts';
import { executeOn, holdBooks } from '../support/sql.ts';
import { waitUntil } from '../support/wait.ts';

/** Part of every secret, the service's own and those that clients send. */
const MARK = 'never-show-this';
const PASSWORD = `a password ${MARK}`;
const SECRET = `a secret that is long enough ${MARK}`;
const SQL = "'; select title from books; drop table books; --";
const ROUNDS = 20;

const STATEMENT = /\b(select|insert into|update books|delete from|drop table|returning)\b/i;
const STACK = /^ {4}at |\\n {4}at |node_modules|node:internal|\.ts:\d/m;

describe('secrets', { concurrency: STORES.length }, () => {
  for (const store of STORES) {
    const workers = store.name === 'SQLite' ? '1' : '2';
    test(`rule 23: on ${store.name}, WORKERS=${workers}, no answer and no log line shows any`, async (context) => {
      const plainUrl = await store.freshUrl();
      const dbUrl = store.name === 'SQLite' ? plainUrl : await withMarkedPassword(context, plainUrl);
      const environment = {
        ...ENVIRONMENT,
        DB_URL: dbUrl,
        AUTH_PASSWORD: PASSWORD,
        SECRET_TOKEN: SECRET,
        LOG_LEVEL: 'trace',
        WORKERS: workers,
        TRUST_PROXY: '127.0.0.1', // otherwise most logins would be refused unchecked
      };
      const service = await startCommand(environment);
      context.after(() => service.process.kill('SIGKILL'));
      let stderr = '';
      service.process.stderr?.on('data', (text) => {
        stderr += text;
      });
      const login = { username: ENVIRONMENT.AUTH_USERNAME, password: PASSWORD };
      const { data } = await request(service, 'POST', '/token', { body: login });
      const token: string = data.token;
      const [, claims = '', signature = ''] = token.split('.');
      const secrets = [MARK, token, claims, signature, plainUrl.replace('sqlite:', '')];

      /** Sends all of the requests; returns the statuses of the answers. */
      const attack = async () => {
        const statuses = new Set<number>();
        const requests = hostileRequests(token).map((text) => {
          return exchange(service, text).catch((): RawAnswer[] => []);
        });
        for (const answer of (await Promise.all(requests)).flat()) {
          statuses.add(answer.status);
          if (answer.status < 400) continue; // a book shows what a client has put into it
          const shown = JSON.stringify(answer);
          for (const secret of secrets) assert.ok(!shown.includes(secret), `${secret} in ${shown}`);
          assert.doesNotMatch(shown, STATEMENT);
          assert.doesNotMatch(shown, STACK);
        }
        return statuses;
      };
      let statuses = new Set<number>();
      for (let round = 0; round < ROUNDS; round += 1) statuses = statuses.union(await attack());
      for (const status of [200, 201, 400, 401, 404, 405, 413, 431]) {
        assert.ok(statuses.has(status), `nothing was answered with ${status}`);
      }
      const letGo = await holdBooks(plainUrl);
      assert.ok((await attack()).has(503), 'the store was not locked');
      await letGo();
      // From now on every statement fails, each in a different way.
      await executeOn(plainUrl, 'alter table books drop column author');
      const broken = await attack();
      assert.ok(broken.has(503), 'no statement failed');
      assert.ok(!broken.has(201), 'a book was stored');

      service.process.kill('SIGTERM');
      await once(service.process, 'close');
      const log = service.log.join('\n');
      assert.ok(service.log.length > ROUNDS * 10, 'the log is too short to prove anything');
      for (const secret of secrets.slice(0, 4)) assert.ok(!log.includes(secret), `${secret} in the log`);
      assert.doesNotMatch(log, STATEMENT);
      assert.doesNotMatch(log, STACK);
      assert.equal(stderr, '');
    });
  }
});

/** Requests of an attacker or of a faulty client, different ones each time. */
function hostileRequests(token: string): (string | Uint8Array)[] {
  const secret = `${MARK} ${random()}`;
  const book = JSON.stringify({ title: secret, author: SQL });
  const badBook = JSON.stringify({ title: secret, author: SQL, year: SQL });
  const login = JSON.stringify({ username: secret, password: SQL });
  return [
    ask('POST', '/token', '', login),
    ask('POST', '/token', '', JSON.stringify({ username: 'librarian', password: PASSWORD })),
    ask('POST', '/token', '', login.slice(0, -2)),
    ask('POST', '/token', '', JSON.stringify({ username: [secret], password: null })),
    ask('POST', '/book', token, book),
    ask('POST', '/book', token, badBook),
    ask('POST', '/book', token, book.slice(0, -1)),
    ask('POST', '/book', `${token}x`, book),
    ask('POST', '/book', `Bearer ${token}`, book),
    ask('POST', '/book', secret, book),
    ask('PUT', '/book/1', token, book),
    ask('PUT', '/book/1', token, badBook),
    ask('GET', '/book/1', token),
    ask('GET', `/books?token=${token}&note=${MARK}`, token),
    ask('GET', `/books?token=${token}`, ''),
    ask('DELETE', "/book/1'%20or%201=1--", token),
    ask('DELETE', '/book/9007199254740991', token),
    ask('PATCH', '/books', token, book),
    ask('GET', '/book/%zz', token),
    ask('GET', '/nowhere', token),
    `GET /books HTTP/1.1\r\nHost: ${MARK}\r\nHost: ${MARK}\r\nAuthorization: ${token}\r\n\r\n`,
    `GET /books HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${secret}\r\nCookie: ${secret}\r\n\r\n`,
    `GET /books HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nX: ${MARK.repeat(2000)}\r\n\r\n`,
    `POST /book HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nContent-Length: 2000000\r\n\r\n${book}`,
    `POST /book HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nContent-Length: ${MARK}\r\n\r\n${book}`,
    `${MARK} ${token}\r\n\r\n`,
    Buffer.concat([randomBytes(40), Buffer.from(`${MARK} ${token}\r\n\r\n`)]),
  ];
}

function ask(method: string, path: string, token: string, body = ''): string {
  const length = Buffer.byteLength(body);
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: x',
    `Authorization: ${token}`,
    `Content-Length: ${length}`,
    `X-Forwarded-For: 10.${randomBytes(3).join('.')}`,
  ];
  return `${head.join('\r\n')}\r\nConnection: close\r\n\r\n${body}`;
}

function randomBytes(length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
}

/** The URL of the same database for a role whose password contains the mark. */
async function withMarkedPassword(context: TestContext, plainUrl: string): Promise<string> {
  const url = new URL(plainUrl);
  const role = `role_of_${url.pathname.slice(1)}`;
  const password = `${MARK}-${role}`;
  await execute(plainUrl, `drop role if exists ${role}`);
  await execute(plainUrl, `create role ${role} superuser login password '${password}'`);
  context.after(async () => {
    await waitUntil(async () => {
      const sql = `select from pg_stat_activity where usename = '${role}'`;
      return (await execute(plainUrl, sql)).length === 0;
    });
    await execute(plainUrl, `reassign owned by ${role} to current_user; drop role ${role}`);
  });
  url.username = role;
  url.password = password;
  return url.href;
}
