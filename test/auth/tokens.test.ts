// Tokens with a clock, a second secret, many others, or a store that fails: what the conformance kit cannot see. Its cases are in
// conformance/tokens.ts. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { Tokens } from '../../src/auth/tokens.ts';
import { TIMES } from '../../src/times.ts';
import { request } from '../support/client.ts';
import { SECRET, SQLITE, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

const HASHES = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };

/** Unix seconds. */
const NOW = Math.floor(Date.now() / 1000);
const CLAIMS = `{"exp":${NOW + 3600}}`;
const OLD = 'the secret before, which is long enough';

const encode = (text: string) => Buffer.from(text).toString('base64url');
const hmac = (text: string, hash: string, secret: string) =>
  createHmac(hash, secret).update(text).digest('base64url');

/** A token of any claims, signed with the right secret unless another is given. */
function make(claims: string, secret: string = SECRET, alg: keyof typeof HASHES = 'HS256'): string {
  const signed = `${encode(`{"alg":"${alg}"}`)}.${encode(claims)}`;
  return `${signed}.${hmac(signed, HASHES[alg], secret)}`;
}

/** Stops the clock of the test at a time. */
function setClock({ mock: { timers } }: TestContext, seconds: number): void {
  timers.reset();
  timers.enable({ apis: ['Date'], now: seconds * 1000 });
}

const tokens = new Tokens(SECRET, TIMES.auth);

test('A4, rule 18: a service whose secret is a public key treats it as a secret like any other', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const publicKey = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const confused = new Tokens(publicKey, TIMES.auth);
  const signed = `${encode('{"alg":"RS256"}')}.${encode(CLAIMS)}`;
  const signature = sign('sha256', Buffer.from(signed), rsa.privateKey).toString('base64url');
  assert.equal(confused.isValid(`${signed}.${signature}`), false);
  assert.equal(confused.isValid(make(CLAIMS, publicKey)), true);
});

test('rule 18: the secret itself is refused', () => {
  assert.equal(tokens.isValid(SECRET), false);
});

test('T4: exp is 15 minutes ahead, to the second', (context) => {
  setClock(context, NOW + 0.999);
  const [, claims = ''] = tokens.issue().split('.');
  assert.equal(Buffer.from(claims, 'base64url').toString(), `{"exp":${NOW + 900}}`);
});

test('A6, rule 17: a token is valid from the second of its nbf to the second of its exp, also once it was accepted', (context) => {
  const token = make(`{"exp":${NOW + 20},"nbf":${NOW + 10}}`);
  for (const [seconds, isValid] of [
    [9.999, false],
    [10, true],
    [19.999, true],
    [20, false],
  ] as const) {
    setClock(context, NOW + seconds);
    assert.equal(tokens.isValid(token), isValid, String(seconds));
  }
});

test('A4: a token is accepted until it expires, however many others were seen', (context) => {
  setClock(context, NOW);
  const first = tokens.issue();
  // More than are kept, each of them valid, and then as many forged ones.
  for (let number = 0; number < 12_000; number += 1) {
    assert.ok(tokens.isValid(make(`{"exp":${NOW + 3600},"jti":${number}}`)));
    assert.ok(!tokens.isValid(`${first}${number}`));
  }
  assert.ok(tokens.isValid(first));
  setClock(context, NOW + 900);
  assert.ok(!tokens.isValid(first));
});

test('rule 30: tokens of the previous secret are accepted until they expire, and none is signed with it', async () => {
  const rotated = await startTestService(await SQLITE.freshUrl(), { SECRET_TOKEN_PREVIOUS: OLD });
  const rows: [token: string, status: number][] = [
    ...(Object.keys(HASHES) as (keyof typeof HASHES)[]).flatMap((alg): [string, number][] => [
      [make(CLAIMS, OLD, alg), 404],
      [make(CLAIMS, SECRET, alg), 404],
    ]),
    [make(`{"exp":${NOW}}`, OLD), 401],
    [make(CLAIMS, 'another secret'), 401],
  ];
  for (const [token, status] of rows)
    assert.equal((await request(rotated, 'GET', '/book/1', { token })).status, status, token);
  assert.equal(tokens.isValid(make(CLAIMS, OLD)), false, 'without the variable');
  assert.equal(tokens.isValid(rotated.client.token), true);
});

test('A3, A4, rule 9: a refused request does not reach the store', async () => {
  const { client, dbUrl } = await startTestService(await SQLITE.freshUrl());
  await executeOn(dbUrl, 'drop table books');
  const none = { token: null };
  const bad = { token: `Bearer ${make(CLAIMS)}` };
  const requests: [string, string, Parameters<typeof client.request>[2], number, string][] = [
    ['GET', '/book/1', {}, 503, 'Service unavailable'],
    ['GET', '/book/1', none, 401, 'Authorization token required'],
    ['GET', '/book/1', bad, 401, 'Invalid token'],
    ['GET', '/books', bad, 401, 'Invalid token'],
    ['POST', '/book', { ...bad, body: '{}' }, 401, 'Invalid token'],
    ['PUT', '/book/1', { ...bad, body: '{}' }, 401, 'Invalid token'],
    ['DELETE', '/book/1', bad, 401, 'Invalid token'],
    ['POST', '/token', { body: '[]' }, 400, 'Invalid request payload'],
    ['POST', '/token', { body: '{}' }, 401, 'Invalid credentials'],
    ['POST', '/book', { body: '{' }, 400, 'Invalid input'],
    ['GET', '/book/abc', {}, 404, 'Book not found'],
    ['PUT', '/book/abc', { body: '{' }, 404, 'Book not found'],
    ['DELETE', '/book/0', {}, 404, 'Book not found'],
    ['GET', '/nowhere', none, 404, 'Not found'],
    ['GET', '/%zz', none, 400, 'Bad request'],
    ['PATCH', '/books', none, 405, 'Method not allowed'],
  ];
  for (const [method, path, options, status, message] of requests) {
    const answer = await client.request(method, path, options);
    assert.deepEqual([answer.status, answer.message], [status, message], `${method} ${path}`);
  }
});
