// The measure of the conformance kit: of many services that break one promise each, does it find out each?
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Complaint } from '../../conformance/complaint.ts';
import { titleOf } from '../../conformance/rule.ts';
import { RULES } from '../../conformance/rules.ts';
import type { Service } from '../../conformance/service.ts';
import { runCommand } from '../support/command.ts';
import { ENVIRONMENT } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';
import { kitOf, ruleOf, startWrongService, type WrongService } from '../support/wrong-service.ts';
import { type Bytes, RESET, WRONG_SERVICES, WRONG_WIRES } from './wrong-services.ts';

const FAULTS = [...WRONG_SERVICES, ...WRONG_WIRES];
const rulesIn = (rules: string) => rules.split(' / ');
const FINDING = new Set(FAULTS.flatMap(([rules]) => rulesIn(rules)));

describe('services that break one promise', () => {
  let wrong: WrongService;

  before(async () => {
    wrong = await startWrongService();
  });
  after(() => wrong?.stop());

  /** Only what the rule asks and gets is wrong, not the login before it. */
  async function check(rule: string, breakPromise: (kit: Service) => void = () => {}, url = wrong.url) {
    const kit = kitOf(url);
    wrong.client += 1;
    wrong.fault = undefined;
    try {
      await kit.logIn();
      await kit.findNoBook();
      breakPromise(kit);
      await ruleOf(rule).check(kit, true);
    } finally {
      kit.close();
      await executeOn(wrong.right.dbUrl, 'delete from books'); // cheaper than the kit's own removal, one request a book
    }
  }

  /** That the kit complains of what it was answered; without an answer, the proxy would be broken. */
  const assertFoundOut = (checking: Promise<void>) =>
    assert.rejects(checking, (error) => {
      assert.ok(error instanceof Complaint);
      assert.doesNotMatch(error.received, /^(no answer|no whole answer|the connection was closed)/);
      return true;
    });

  for (const rule of FINDING) {
    const isOfWire = WRONG_WIRES.some(([rules]) => rulesIn(rules).includes(rule));
    test(`nothing is broken: ${rule}`, () => check(rule, undefined, (isOfWire ? wrong.right : wrong).url));
  }
  for (const [rules, name, fault] of WRONG_SERVICES) {
    const breakPromise = () => {
      wrong.fault = fault;
    };
    for (const rule of rulesIn(rules))
      test(`${name}: found out by ${rule}`, () => assertFoundOut(check(rule, breakPromise)));
  }
  for (const [rules, name, fault] of WRONG_WIRES) {
    const breakPromise = (kit: Service) => changeBytes(kit, fault);
    for (const rule of rulesIn(rules))
      test(`${name}: found out by ${rule}`, () => assertFoundOut(check(rule, breakPromise, wrong.right.url)));
  }

  test('each rule finds out a service', () => {
    const finding = new Set([...FINDING].map(ruleOf));
    assert.deepEqual(RULES.filter((rule) => !finding.has(rule)).map(titleOf), []);
  });

  test('the right service keeps every rule, and verify leaves every other book', async () => {
    const { pageUrl: url, dbUrl, client } = wrong.right; // which has the sessions
    const values = [1, 2_147_483_647, 999_999_999_999_999].map((id) => `(${id}, 'kept', 'kept', 4)`);
    await executeOn(dbUrl, `insert into books (id, title, author, year) values ${values.join()}`);
    const kept = await client.list();
    const { code, stdout, stderr } = await runCommand(['verify', url, '--store-may-be-written'], ENVIRONMENT);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, stdout);
    assert.deepEqual(stdout.split('\n'), [
      ...[`${url}, level full`, ''],
      ...RULES.map((rule) => `  passed       ${titleOf(rule)}`),
      ...['', `${RULES.length} passed, 0 failed, 0 not checked.`, ''],
    ]);
    assert.deepEqual(await client.list(), kept);
  });
});

/** Other bytes arrive at the connections that are opened from now on. */
function changeBytes(kit: Service, fault: Bytes): void {
  const connect = kit.connect.bind(kit);
  kit.connect = () => {
    const connection = connect();
    const { socket } = connection;
    const emit = socket.emit.bind(socket);
    socket.emit = (event: string, ...values: unknown[]) => {
      if (event === 'end' && fault === RESET) socket.destroy(new Error('read ECONNRESET'));
      return emit(event, ...values.map((value) => (event === 'data' ? fault(String(value)) : value)));
    };
    return connection;
  };
}
