// The measure of the conformance kit: of many services that break one promise each, how many does it find out?
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Rule, titleOf } from '../../conformance/rule.ts';
import { RULES } from '../../conformance/rules.ts';
import { Service } from '../../conformance/service.ts';
import { LIMITS } from '../support/client.ts';
import { ENVIRONMENT, type RunningService, SECRET, SQLITE, startTestService } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { NO_FAULT, NOT_FOUND, WRONG_SERVICES, WrongProxy } from './wrong-services.ts';

/** Milliseconds for an answer. The rate limit delays some by five seconds. */
const TIME = 20_000;

const ruleOf = (beginning: string) => {
  const rule = RULES.find((one) => titleOf(one).startsWith(beginning));
  assert.ok(rule !== undefined, `a rule begins with ${beginning}`);
  return rule;
};

describe('services that break one promise', () => {
  let right: RunningService;
  let proxy: WrongProxy;

  before(async () => {
    right = await startTestService(await SQLITE.freshUrl(), { TRUST_PROXY: '127.0.0.1' });
    proxy = await WrongProxy.start(right.url);
  });
  after(async () => {
    proxy?.stop();
    await right?.stop();
  });

  async function check(rule: Rule): Promise<void> {
    proxy.client += 1;
    const { AUTH_USERNAME: username, AUTH_PASSWORD: password } = ENVIRONMENT;
    const service = new Service(
      new URL(proxy.url),
      { username, password, secret: SECRET },
      { ...LIMITS, time: TIME },
    );
    try {
      await service.logIn();
      await service.findNoBook();
      await rule.check(service);
    } finally {
      service.close();
      // Cheaper than the kit's own removal, one request a book.
      await executeOn(right.dbUrl, 'delete from books');
    }
  }

  for (const beginning of new Set(WRONG_SERVICES.map(({ rule }) => rule))) {
    test(`nothing is broken: ${beginning}`, async () => {
      proxy.fault = NO_FAULT;
      await check(ruleOf(beginning));
    });
  }

  for (const { name, rule, fault } of WRONG_SERVICES) {
    test(`${name}: found out`, async () => {
      proxy.fault = fault();
      await assert.rejects(check(ruleOf(rule)));
    });
  }

  for (const { name, rule, fault } of NOT_FOUND) {
    test(`${name}: not found out, as docs/verify.md says`, async () => {
      proxy.fault = fault();
      await check(ruleOf(rule));
    });
  }

  test('98 of 100 are found out, of more than 100', () => {
    const names = [...WRONG_SERVICES, ...NOT_FOUND].map(({ name }) => name);
    assert.equal(new Set(names).size, names.length);
    assert.ok(WRONG_SERVICES.length > 100);
    assert.ok(WRONG_SERVICES.length / names.length >= 0.98);
  });
});
