// A start that waits for something: a database that falls silent, a file that is locked, a late writer of a pipe.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { request, type Target } from '../support/client.ts';
import { runCommand } from '../support/command.ts';
import { inTime } from '../support/in-time.ts';
import { listen } from '../support/ports.ts';
import { startCommand, temporaryFolder } from '../support/service.ts';

type Variables = Record<string, string | undefined>;

/** Part of every secret given to the service; nothing that it prints may contain it. */
const MARK = 'never-show-this';

const SECRET = `a secret of more than thirty-two bytes, ${MARK}`;
const PAIR = { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: `a password, ${MARK}` };
const LOGIN = { username: PAIR.AUTH_USERNAME, password: PAIR.AUTH_PASSWORD };
const GUARDED = { ...PAIR, SECRET_TOKEN: SECRET };

/** Tests at a time: a few of them wait. */
const concurrency = 4;

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

    // These wait for seconds, so they come first and the others run beside them.
    describe('rule 27: a database that falls silent', { concurrency }, () => {
      const welcome = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]); // logged in, ready
      const silences = {
        'before its first message': { sslmode: 'prefer', said: [] },
        'after it agreed to TLS': { sslmode: 'prefer', said: ['S'] },
        'after it refused TLS': { sslmode: 'prefer', said: ['N'] },
        'after the login': { sslmode: 'disable', said: [welcome] },
      };
      for (const [when, { sslmode, said }] of Object.entries(silences)) {
        test(`${when} is refused`, async (context) => {
          const host = await listen(context, (socket) => {
            let answers = 0;
            socket.on('data', () => {
              const answer = said[answers];
              answers += 1;
              if (answer !== undefined) socket.write(answer);
            });
          });
          const DB_URL = `postgres://me:${MARK}@127.0.0.1:${host.port}/books?sslmode=${sslmode}`;
          await refuses('DB_URL', { DB_URL });
        });
      }
    });

    for (const [what, held] of Object.entries({
      'is being written': 'pragma journal_mode = wal; begin immediate',
      'is locked as a whole': 'begin exclusive',
    })) {
      test(`rule 27: a SQLite file that ${what} all the time is refused`, async () => {
        const file = join(temporaryFolder(), 'busy.db');
        const db = new DatabaseSync(file);
        db.exec(held);
        await refuses('DB_URL', { DB_URL: `sqlite:${file}` });
        db.close();
      });
    }
  });

  describe('rules 25 and 27: files that hold secrets', { concurrency, skip: unlessPipes() }, () => {
    test('a pipe is read even if its writer is late', async (context) => {
      // The service waits 2 s for the writer. Reading the pipe blocks its whole process, so it runs in a
      // separate process. If the machine is too slow for the writer to start in time, the attempt is repeated.
      await inTime(2000, async (startClock) => {
        const pipe = makePipe();
        startClock();
        const writer = spawn('sh', ['-c', 'sleep 0.5; printf "%s" "$SECRET" > "$PIPE"'], {
          env: { ...process.env, SECRET, PIPE: pipe },
        });
        context.after(() => writer.kill('SIGKILL'));
        const env = { ...PAIR, PORT: '0', SECRET_TOKEN_FILE: pipe, DB_URL: freshSqliteUrl() };
        const service = await startCommand(env);
        context.after(() => service.process.kill('SIGKILL'));
        isSignedWith(SECRET, await logIn(service, LOGIN));
      });
    });
  });
});

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

function freshSqliteUrl(): string {
  return `sqlite:${join(temporaryFolder(), 'books.db')}`;
}
