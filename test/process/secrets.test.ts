// No secret is shown in an answer or in the log, whatever is requested and whatever fails. The most verbose log. Refusals
// to start are tested in configuration.test.ts.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { exchange } from '../support/client.ts';
import { execute } from '../support/postgres.ts';
import { random } from '../support/random.ts';
import { scaled } from '../support/scale.ts';
import { ENVIRONMENT, STORES, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

/** Part of every secret, the service's own and those that clients send. */
const MARK = 'never-show-this';
const PASSWORD = ENVIRONMENT.AUTH_PASSWORD;
const SQL = "'; select title from books; drop table books; --";

const STATEMENT = /\b(select|insert into|update books|delete from|drop table|returning)\b/i;
const STACK = /^ {4}at |\\n {4}at |node_modules|node:internal|\.ts:\d/m;

describe('secrets', { concurrency: STORES.length }, () => {
  for (const store of STORES) {
    test(`rule 23: on ${store.name}, no answer and no log line shows any`, async (context) => {
      const plainUrl = await store.freshUrl();
      const url = store.name === 'SQLite' ? plainUrl : await withMarkedPassword(context, plainUrl);
      const env = {
        SECRET_TOKEN: `a secret that is long enough ${MARK}`,
        LOG_LEVEL: 'trace',
        TRUST_PROXY: '127.0.0.1', // otherwise most logins would be refused unchecked
      };
      let log = '';
      const write = (line: string) => {
        log += line;
      };
      const service = await startTestService(url, env, { write });
      const { token } = service.client;
      const [, claims = '', signature = ''] = token.split('.');
      const secrets = [MARK, PASSWORD, token, claims, signature];

      const shown: string[] = [];
      /** Sends all of the requests; returns the statuses of the answers. */
      const attack = async () => {
        const sent = hostileRequests(token).map((text) => exchange(service, text).catch(() => []));
        const answers = (await Promise.all(sent)).flat();
        // A book shows what a client has put into it.
        for (const answer of answers) if (answer.status >= 400) shown.push(JSON.stringify(answer));
        return new Set(answers.map(({ status }) => status));
      };
      for (let round = 0; round < scaled(32); round += 1) {
        const statuses = await attack();
        const missing = [200, 201, 400, 401, 404, 405, 413, 431].filter((status) => !statuses.has(status));
        assert.deepEqual(missing, []);
      }
      await executeOn(plainUrl, 'alter table books rename to hidden'); // from now on every statement fails
      const broken = await attack();
      assert.ok(broken.has(503) && !broken.has(201));
      await service.stop();
      assert.match(log, /"msg":"the store is unavailable"/);
      for (const text of [log, ...shown]) {
        for (const secret of secrets) assert.ok(!text.includes(secret), `${secret} in ${text}`);
        assert.doesNotMatch(text, STATEMENT);
        assert.doesNotMatch(text, STACK);
      }
      for (const text of shown) assert.ok(!text.includes(plainUrl.replace('sqlite:', '')), text);
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
    ...[`${token}x`, `Bearer ${token}`, secret].map((wrong) => ask('POST', '/book', wrong, book)),
    ask('PUT', '/book/1', token, book),
    ask('PUT', '/book/1', token, badBook),
    ask('GET', '/book/1', token),
    ask('GET', `/books?token=${token}&note=${MARK}`, token),
    ask('GET', `/books?token=${token}`, ''),
    ask('DELETE', "/book/1'%20or%201=1--", token),
    ask('DELETE', '/book/9007199254740991', token),
    ask('PATCH', '/books', token, book),
    ask('GET', '/book/%zz', token),
    `GET /books HTTP/1.1\r\nHost: ${MARK}\r\nHost: ${MARK}\r\nAuthorization: ${token}\r\n\r\n`,
    `GET /books HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${secret}\r\nCookie: ${secret}\r\n\r\n`,
    `GET /books HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nX: ${MARK.repeat(2000)}\r\n\r\n`,
    `POST /book HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nContent-Length: 2000000\r\n\r\n${book}`,
    `POST /book HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nContent-Length: ${MARK}\r\n\r\n${book}`,
    Buffer.concat([randomBytes(40), Buffer.from(`${MARK} ${token}\r\n\r\n`)]),
  ];
}

function ask(method: string, path: string, token: string, body = ''): string {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: x', `Authorization: ${token}`, 'Connection: close'];
  lines.push(`Content-Length: ${Buffer.byteLength(body)}`, `X-Forwarded-For: 10.${randomBytes(3).join('.')}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

function randomBytes(length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
}

/** The URL of the same database for a role whose password contains the mark. */
async function withMarkedPassword(context: TestContext, plainUrl: string): Promise<string> {
  const role = `role_of_${new URL(plainUrl).pathname.slice(1)}`;
  await execute(plainUrl, `create role ${role} superuser login password '${MARK}'`);
  const drop = `reassign owned by ${role} to current_user; drop role ${role}`;
  context.after(() => execute(plainUrl, drop));
  return plainUrl.replace(/\/\/[^@]*@/, `//${role}:${MARK}@`);
}
