// Tokens with a clock, a second secret, a blocked store or a counter of costs: what the conformance kit cannot see. Its
// cases are in conformance/tokens.ts. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { RawAnswer } from '../../conformance/answers.ts';
import { exchange, request, type Target } from '../support/client.ts';
import {
  POSTGRES,
  type RunningService,
  SECRET,
  SQLITE,
  STORES,
  startTestService,
} from '../support/service.ts';
import { holdBooks } from '../support/sql.ts';

const HASHES: Readonly<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };

const now = () => Math.floor(Date.now() / 1000);
/** Far enough away that no test reaches it. */
const LATER = now() + 3600;
const CLAIMS = `{"exp":${LATER}}`;

const encode = (text: string | Buffer) => Buffer.from(text).toString('base64url');
const hmac = (text: string, hash = 'sha256', secret: string = SECRET) =>
  createHmac(hash, secret).update(text).digest('base64url');

/** A token of any header and claims, JSON or not, signed with the right secret unless another is given. */
function make(header: string, claims: string, { hash = 'sha256', secret = SECRET } = {}): string {
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${hmac(signed, hash, secret)}`;
}

const makeHs256 = (claims: string) => make('{"alg":"HS256","typ":"JWT"}', claims);
const VALID = makeHs256(CLAIMS);

describe('tokens', { concurrency: true }, () => {
  let service: RunningService;

  before(async () => {
    service = await startTestService(await SQLITE.freshUrl());
  });
  after(() => service.stop());

  async function assertAccepted(token: string, name: string, target: Target = service): Promise<void> {
    const { status, message } = await request(target, 'GET', '/book/1', { token });
    assert.deepEqual({ status, message }, { status: 404, message: 'Book not found' }, name);
  }

  async function assertRefused(token: string, name: string, target: Target = service): Promise<void> {
    const { status, message, data } = await request(target, 'GET', '/book/1', { token });
    assert.deepEqual({ status, message, data }, { status: 401, message: 'Invalid token', data: null }, name);
  }

  test('A4, rule 18: a service whose secret is a public key treats it as a secret like any other', async () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const publicKey = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const confused = await startTestService(service.dbUrl, { SECRET_TOKEN: publicKey });
    try {
      const signed = `${encode('{"alg":"RS256"}')}.${encode(CLAIMS)}`;
      const signature = sign('sha256', Buffer.from(signed), rsa.privateKey).toString('base64url');
      await assertRefused(`${signed}.${signature}`, 'RS256', confused);
      await assertAccepted(make('{"alg":"HS256"}', CLAIMS, { secret: publicKey }), 'its secret', confused);
    } finally {
      await confused.stop();
    }
  });

  test('rule 18: the secret itself is refused', async () => {
    await assertRefused(SECRET, 'the secret');
  });

  test('T4: exp is 15 minutes ahead, to the second', async () => {
    const earliest = now() + 900;
    const body = { username: 'librarian', password: 'correct horse' };
    const { data } = await request(service, 'POST', '/token', { body });
    const { exp } = JSON.parse(Buffer.from(data.token.split('.')[1], 'base64url').toString());
    assert.ok(exp >= earliest && exp <= now() + 900, `exp ${exp}`);
  });

  test('A4: a token is accepted until it expires, however many others were seen', async () => {
    // More than a service would cache, each of them valid.
    const count = 12_000;
    const requests: string[] = [];
    for (let number = 0; number < count; number += 1) {
      const token = makeHs256(`{"exp":${LATER},"jti":${number}}`);
      requests.push(`GET /book/x HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\n\r\n`);
    }
    for (let sent = 0; sent < count; sent += 2000) {
      const answers = await exchange(service, requests.slice(sent, sent + 2000).join(''), 2000);
      assert.equal(answers.length, 2000);
      assert.ok(answers.every(({ status }: RawAnswer) => status === 404));
    }
    await assertAccepted(service.client.token, 'the first of all');
    const dead = makeHs256(`{"exp":${now() - 1}}`);
    await assertRefused(dead, 'an expired one');
  });

  test('rule 30: tokens of the previous secret are accepted until they expire, and none is signed with it', async (context) => {
    const old = 'the secret before, which is long enough';
    const rotated = await startTestService(service.dbUrl, { SECRET_TOKEN_PREVIOUS: old });
    context.after(() => rotated.stop());
    for (const [alg, hash] of Object.entries(HASHES)) {
      const header = `{"alg":"${alg}"}`;
      await assertAccepted(make(header, CLAIMS, { hash, secret: old }), `the previous one, ${alg}`, rotated);
      await assertAccepted(make(header, CLAIMS, { hash }), `the present one, ${alg}`, rotated);
    }
    const ended = `{"exp":${now() - 1}}`;
    await assertRefused(make('{"alg":"HS256"}', ended, { secret: old }), 'an expired one', rotated);
    await assertRefused(
      make('{"alg":"HS256"}', CLAIMS, { secret: 'another secret' }),
      'a third one',
      rotated,
    );
    await assertRefused(make('{"alg":"HS256"}', CLAIMS, { secret: old }), 'without the variable');
    const [head, claims, signature] = rotated.client.token.split('.');
    assert.equal(signature, hmac(`${head}.${claims}`));
  });
});

// SQLite has no lock that blocks reads.
if (STORES.includes(POSTGRES)) {
  test('A3, A4, rule 9: a refused request does not reach the store', async () => {
    const guarded = await startTestService(await POSTGRES.freshUrl());
    const release = await holdBooks(guarded.dbUrl);
    try {
      let answered = false;
      const waiting = guarded.client.request('GET', '/book/1').finally(() => {
        answered = true;
      });

      const noToken = { token: null };
      const badToken = { token: `Bearer ${VALID}` };
      const refused: [string, string, Parameters<typeof guarded.client.request>[2], number, string][] = [
        ['GET', '/book/1', noToken, 401, 'Authorization token required'],
        ['GET', '/book/1', badToken, 401, 'Invalid token'],
        ['GET', '/books', badToken, 401, 'Invalid token'],
        ['POST', '/book', { ...badToken, body: '{}' }, 401, 'Invalid token'],
        ['PUT', '/book/1', { ...badToken, body: '{}' }, 401, 'Invalid token'],
        ['DELETE', '/book/1', badToken, 401, 'Invalid token'],
        ['POST', '/token', { body: '[]' }, 400, 'Invalid request payload'],
        ['POST', '/token', { body: '{}' }, 401, 'Invalid credentials'],
        ['POST', '/book', { body: '{' }, 400, 'Invalid input'],
        ['GET', '/book/abc', {}, 404, 'Book not found'],
        ['PUT', '/book/abc', { body: '{' }, 404, 'Book not found'],
        ['DELETE', '/book/0', {}, 404, 'Book not found'],
        ['GET', '/nowhere', noToken, 404, 'Not found'],
        ['GET', '/%zz', noToken, 400, 'Bad request'],
        ['PATCH', '/books', noToken, 405, 'Method not allowed'],
      ];
      for (const [method, path, options, status, message] of refused) {
        const answer = await guarded.client.request(method, path, options);
        assert.deepEqual([answer.status, answer.message], [status, message], `${method} ${path}`);
      }
      assert.equal(answered, false, 'the lock did not block the request that needs the store');
      await release();
      await waiting;
    } finally {
      await release();
      await guarded.stop();
    }
  });
}
