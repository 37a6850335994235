// No secret gets out: neither in an answer nor in the log, whatever is asked and whatever fails behind it. The
// real command in processes of its own, with the most talkative log there is.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import pg from 'pg';
import { exchange, type RawAnswer, request } from '../support/client.ts';
import { execute } from '../support/postgres.ts';
import { ENVIRONMENT, fileOf, POSTGRES, STORES, spawnService, startCommand } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

/** Stands in every secret, the service's own and those that clients send. */
const MARK = 'never-show-this';
const PASSWORD = `a password ${MARK}`;
const SECRET = `a secret that is long enough ${MARK}`;
const SQL = "'; select title from books; drop table books; --";
const ROUNDS = 60;

const STATEMENT = /\b(select|insert into|update books|delete from|drop table|returning)\b/i;
const STACK = /^ {4}at |\\n {4}at |node_modules|node:internal|\.ts:\d/m;

describe('secrets', { concurrency: 2, timeout: 120_000 }, () => {
  for (const store of STORES) {
    for (const workers of ['1', '2']) {
      test(`rule 23: on ${store.name}, WORKERS=${workers}, no answer and no line shows any`, async (context) => {
        const plainUrl = await store.freshUrl();
        const dbUrl = store.name === 'SQLite' ? plainUrl : await withMarkedPassword(context, plainUrl);
        const service = await startCommand({
          ...ENVIRONMENT,
          DB_URL: dbUrl,
          AUTH_PASSWORD: PASSWORD,
          SECRET_TOKEN: SECRET,
          LOG_LEVEL: 'trace',
          WORKERS: workers,
          TRUST_PROXY: '127.0.0.1', // or most guesses would only be refused
        });
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

        const statuses = new Set<number>();
        const attack = async () => {
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
        };
        for (let round = 0; round < ROUNDS; round += 1) await attack();
        for (const status of [200, 201, 400, 401, 404, 405, 413, 431]) {
          assert.ok(statuses.has(status), `nothing was answered with ${status}`);
        }
        const letGo = await lock(plainUrl);
        await attack();
        await letGo();
        assert.ok(statuses.has(503), 'a locked store was not noticed');
        // From now on every statement fails in a way of its own.
        await dropColumn(plainUrl);
        await attack();
        assert.ok(statuses.has(503) || statuses.has(500));

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
  }

  const hopeless = {
    'a wrong password': (url: URL) => Object.assign(url, { password: MARK }).href,
    'an unreachable host': () => `postgres://someone:${MARK}@127.0.0.1:1/books`,
    'several hosts': () => `postgres://someone:${MARK}@127.0.0.1:1,127.0.0.1:2/books`,
    'a port that is none': () => `postgres://someone:${MARK}@127.0.0.1:port/books`,
    'an unescaped password': () => `postgres://someone:${MARK}%@127.0.0.1:1/books`,
    'a password with a slash': () => `postgres://someone:/${MARK}@127.0.0.1:1/books`,
    'another scheme': () => `mysql://someone:${MARK}@127.0.0.1/books`,
    'a parameter in place of a password': () => `postgres://127.0.0.1:1/books?password=${MARK}`,
    'an sslmode that is none': () => `postgres://someone:${MARK}@127.0.0.1:1/books?sslmode=${MARK}-x`,
  };
  for (const [what, urlOf] of Object.entries(hopeless)) {
    test(`rule 27: a refusal to start for ${what} shows no password`, async (context) => {
      const DB_URL = urlOf(new URL(await POSTGRES.freshUrl()));
      const child = spawnService({ ...ENVIRONMENT, DB_URL, LOG_LEVEL: 'trace' });
      context.after(() => child.kill('SIGKILL'));
      let shown = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on('data', (text) => {
          shown += text;
        });
      }
      const [code] = await once(child, 'close', { signal: AbortSignal.timeout(10_000) });
      assert.equal(code, 1);
      assert.match(shown, /^DB_URL\b[^\n]+\n$/);
      assert.ok(!shown.replace(`${MARK}-x`, '').includes(MARK), shown);
      assert.doesNotMatch(shown, STACK);
    });
  }

  for (const sign of ['/', '?', '#']) {
    test(`rule 27: of a password with an unescaped ${sign}, not even what stands before it is shown`, async () => {
      const child = spawnService({
        ...ENVIRONMENT,
        DB_URL: `postgres://someone:1605${sign}${MARK}@127.0.0.1/books`,
      });
      let shown = '';
      child.stderr?.on('data', (text) => {
        shown += text;
      });
      await once(child, 'close');
      assert.equal(shown, 'DB_URL is not a valid URL: percent-encode special characters in its parts.\n');
    });
  }
});

/** Requests as an attacker, or a client with a fault, sends them; different ones each time. */
function hostileRequests(token: string): (string | Uint8Array)[] {
  const secret = `${MARK} ${Math.random()}`;
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
    Buffer.concat([crypto.getRandomValues(Buffer.alloc(40)), Buffer.from(`${MARK} ${token}\r\n\r\n`)]),
  ];
}

function ask(method: string, path: string, token: string, body = ''): string {
  const length = Buffer.byteLength(body);
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: x',
    `Authorization: ${token}`,
    `Content-Length: ${length}`,
    `X-Forwarded-For: 10.${crypto.getRandomValues(new Uint8Array(3)).join('.')}`,
  ];
  return `${head.join('\r\n')}\r\nConnection: close\r\n\r\n${body}`;
}

/** The same database, for a role whose password bears the mark. */
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

/** Keeps the store from writing until the returned function is called. */
async function lock(url: string): Promise<() => Promise<void>> {
  if (url.startsWith('sqlite:')) {
    const db = new DatabaseSync(fileOf(url));
    db.exec('begin immediate');
    return async () => db.close();
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('begin; lock table books in access exclusive mode');
  return () => client.end();
}

async function dropColumn(url: string): Promise<void> {
  const sql = 'alter table books drop column author';
  if (url.startsWith('sqlite:')) {
    const db = new DatabaseSync(fileOf(url), { timeout: 10_000 });
    db.exec(sql);
    db.close();
  } else {
    await execute(url, sql);
  }
}
