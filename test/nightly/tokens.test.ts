// Tokens to the second, and what it costs to refuse one.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { request, type Target } from '../support/client.ts';
import { type RunningService, SECRET, SQLITE, startTestService } from '../support/service.ts';

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

  test('rule 17: exp and nbf count to the second', async () => {
    const second = now();
    for (const exp of [String(second), `${second - 1}.999`])
      await assertRefused(makeHs256(`{"exp":${exp}}`), exp);
    await assertAccepted(makeHs256(`{"exp":${LATER},"nbf":${second}}`), `nbf ${second}`);
  });

  test('A6, rule 17: a token is valid from the second of its nbf to the second of its exp', async () => {
    // A slow machine may miss a period of so few seconds; the test is then repeated with a longer one.
    for (let seconds = 1; ; seconds *= 2) {
      const nbf = now() + 1 + seconds;
      const exp = nbf + seconds;
      const token = makeHs256(`{"exp":${exp},"nbf":${nbf}}`);
      const seen = { early: 0, accepted: 0, late: 0 };
      while (seen.late < 3) {
        const asked = Date.now();
        const { status } = await request(service, 'GET', '/book/1', { token });
        const answered = Date.now();
        if (status === 404) {
          assert.ok(answered >= nbf * 1000, `accepted ${nbf * 1000 - answered} ms too early`);
          assert.ok(asked < exp * 1000, `accepted ${asked - exp * 1000} ms too late`);
          seen.accepted += 1;
        } else {
          assert.equal(status, 401);
          assert.ok(asked < nbf * 1000 || answered >= exp * 1000, 'refused while it was valid');
          seen[asked < nbf * 1000 ? 'early' : 'late'] += 1;
        }
        await setTimeout(20);
      }
      // Accepted more than once, since a cached token must also expire.
      if (seen.early > 0 && seen.accepted > 1) return;
    }
  });
});

test('A4, rules 18 and 22: the cost of refusing a token grows no faster than its length', async (context) => {
  const service = await startTestService(await SQLITE.freshUrl(), { HEADER_LIMIT: '1048576' });
  context.after(() => service.stop());
  const [header = ''] = VALID.split('.');
  const kinds: [string, (length: number) => string][] = [
    ['dots', (length) => '.'.repeat(length)],
    ['letters', (length) => 'x'.repeat(length)],
    ['letters between dots', (length) => `${header}.${'x'.repeat(length)}.${'x'.repeat(43)}`],
    ['letters of signature', (length) => VALID + 'A'.repeat(length)],
    ['deep claims, signed', (length) => makeHs256('['.repeat(length / 2))],
    [
      'deep claims, whole, signed',
      (length) => makeHs256(`{"exp":${'['.repeat(length / 3)}${']'.repeat(length / 3)}}`),
    ],
  ];
  const refuse = async (name: string, token: string) => {
    const { status, message } = await request(service, 'GET', '/book/1', { token });
    assert.deepEqual([status, message], [401, 'Invalid token'], name);
  };
  for (const [name, tokenOf] of kinds) {
    /** Processor time of one request in microseconds, the minimum of several. */
    const costOf = async (length: number) => {
      let least = Number.POSITIVE_INFINITY;
      for (let time = 0; time < 5; time += 1) {
        const token = tokenOf(length - 3 * time); // each is different, since a token may be cached
        const before = process.cpuUsage();
        await refuse(name, token);
        const { user, system } = process.cpuUsage(before);
        least = Math.min(least, user + system);
      }
      return least;
    };
    const short = await costOf(4_000);
    const ratio = (await costOf(64_000)) / short;
    context.diagnostic(`${name}: 16 times the length costs ${ratio.toFixed(1)} times as much`);
    assert.ok(ratio < 64, `${name}: 16 times the length costs ${ratio} times as much`); // its square would be 256
    await refuse(name, tokenOf(700_000));
  }
  const long = makeHs256(`{"exp":${LATER},"x":"${'x'.repeat(700_000)}"}`);
  assert.equal((await request(service, 'GET', '/book/1', { token: long })).status, 404);
});
