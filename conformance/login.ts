// Owns: the rules of the login: tokens, passwords, and how many wrong ones are checked.

import { expect, expectAnswer, expectEqual } from './complaint.ts';
import { core, full, type Rule } from './rule.ts';
import type { Service } from './service.ts';
import { FOREIGN_PAGE, TOO_MANY, WRONG_LOGIN } from './words.ts';

/** Seconds that a token is valid. */
const LIFETIME = 900;

/** Seconds between signing a token and the second that the answer names as its date: an old one, if the service is busy. */
const CLOCK = 5;

/**
 * Failed logins at once, and those that may wait. Each process of a service counts by itself, and checks 15 at once: half of
 * them are refused by a service of up to eight processes.
 */
const GUESSES = 240;
const WAITING = 5;

const logIn = (service: Service, body: unknown) => service.request('POST', '/token', { body, token: null });

export const LOGIN: readonly Rule[] = [
  core('T3, T4', 'the right password gets a token with one claim, exp, 15 minutes ahead', async (service) => {
    const { username, password } = service.account;
    const answer = await logIn(service, { username, password });
    expectAnswer(answer, { status: 200, message: 'Token generated successfully' });
    expectEqual(Object.keys(answer.data), ['token'], 'The fields of data', answer);
    const [header = '', payload = ''] = String(answer.data.token).split('.');
    expectEqual(partOf(header).alg, 'HS256', 'The algorithm of the token', answer);
    const { exp, ...others } = partOf(payload);
    expectEqual(others, {}, 'The claims of the token beside exp', answer);
    // The clock of the service counts, not that of this machine.
    const date = Date.parse(answer.headers.get('date') ?? '') || Date.now();
    const ahead = Number(exp) - Math.floor(date / 1000);
    const isRight = Number.isInteger(exp) && Math.abs(ahead - LIFETIME) <= CLOCK;
    expect(isRight, `exp is ${LIFETIME} seconds ahead, not ${ahead}.`, answer);
  }),
  core('T2', 'another username or password gets 401', async (service) => {
    const { username, password } = service.account;
    expectAnswer(await logIn(service, { username, password: `${password}x` }), WRONG_LOGIN);
    expectAnswer(await logIn(service, { username: `${username}x`, password }), WRONG_LOGIN);
  }),
  full('T2, rule 15', 'any other username or password gets 401, as does a missing one', async (service) => {
    const { username, password } = service.account;
    for (const body of [
      {},
      { username },
      { password },
      { username, password: '' },
      { username, password: `${password} ` },
      { username: password, password: username },
      // The built-in account, once another one is set.
      ...(username === 'admin' ? [] : [{ username: 'admin', password: 'password' }]),
      {
        username: username.toUpperCase() === username ? username.toLowerCase() : username.toUpperCase(),
        password,
      },
      `{"username":"x\\ud800","password":${JSON.stringify(password)}}`,
    ]) {
      expectAnswer(await logIn(service, body), WRONG_LOGIN);
    }
  }),
  full('T3, rule 5', 'unknown fields are ignored and the last duplicate wins', async (service) => {
    const [username, password] = [service.account.username, service.account.password].map((text) =>
      JSON.stringify(text),
    );
    const body = `{"password":"x","username":${username},"password":${password},"__proto__":1}`;
    expectAnswer(await logIn(service, body), { status: 200 });
  }),
  full('rule 32', 'a login that a browser sends for a page of another origin gets 403', async (service) => {
    const { username, password } = service.account;
    const send = (headers: Record<string, string>) =>
      service.request('POST', '/token', { body: { username, password }, token: null, headers });
    const { origin, protocol, hostname } = service.url;
    for (const headers of [
      { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' },
      { 'sec-fetch-site': 'same-site', origin },
      { 'sec-fetch-site': 'cross-site' },
      ...['http://evil.test', `${protocol}//${hostname}.evil.test`, `${protocol}//${hostname}:1`, 'null'].map(
        (other) => ({ origin: other }),
      ),
    ]) {
      expectAnswer(await send(headers), FOREIGN_PAGE, JSON.stringify(headers));
    }
    for (const headers of [
      { 'sec-fetch-site': 'same-origin', origin },
      { 'sec-fetch-site': 'same-origin', origin: 'https://evil.test' },
      { 'sec-fetch-site': 'none' },
      { origin },
    ]) {
      expectAnswer(await send(headers), { status: 200 }, JSON.stringify(headers));
    }
  }),
];

export const GUESSING: readonly Rule[] = [
  full('rule 29', 'failed logins beyond ten are answered one a second, and five wait', async (service) => {
    const { username, password } = service.account;
    const began = performance.now();
    const answers = await Promise.all(
      Array.from({ length: GUESSES }, () => logIn(service, { username, password: `${password}x` })),
    );
    const seconds = (performance.now() - began) / 1000;
    const checked = answers.filter(({ status }) => status === WRONG_LOGIN.status);
    const others = answers.filter(({ status }) => status !== WRONG_LOGIN.status);
    for (const answer of checked) expectAnswer(answer, WRONG_LOGIN);
    for (const answer of others) {
      expectAnswer(answer, TOO_MANY);
      expect(Number(answer.headers.get('retry-after')) >= 1, '429 has retry-after.', answer);
    }
    const isLimited = checked.length <= GUESSES / 2 && seconds > WAITING - 1;
    const spent = `${checked.length} of ${GUESSES} were checked, in ${seconds.toFixed(1)} s`;
    expect(isLimited, `${GUESSES} failed logins at once are limited: ${spent}.`, answers[0]);
    expectAnswer(await logIn(service, { username, password }), { status: 200 });
  }),
];

/** One part of a token; an empty object if it cannot be read. */
function partOf(encoded: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(Buffer.from(encoded, 'base64url').toString()));
  } catch {
    return {};
  }
}
