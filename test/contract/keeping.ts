// Owns: checking targets for the rules of the conformance kit (conformance), which can be read as the specification.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { perform } from '../../conformance/checking.ts';
import { type Rule, titleOf } from '../../conformance/rule.ts';
import { RULES } from '../../conformance/rules.ts';
import type { Exchange, Service } from '../../conformance/service.ts';
import {
  API,
  type Document,
  isMessage,
  messagesOf,
  operationOf,
  templateOf,
} from '../support/description.ts';
import { STORES } from '../support/service.ts';
import { verifiedAt } from '../support/verified.ts';
import type { Target } from './targets.ts';

/** Rules that wait for the clock of the service, or store 10,000 books. */
const OF_SECONDS =
  /^(B1: 10,000 books|T2, rule 15: any other|rule 17: exp and nbf count|rule 22: a login of 4 KiB|rule 29: failed logins|H3: without)/;

/** Described answers to any request, which no rule gives to each operation; and those that take a variable, a fault, 101 imports or 10,001 books. */
const TO_ANY =
  /(^HEAD .* 400| 4(08|10|21|28|29|31)| 50[03]|(changes|events) 404) |(history|undo|event\/\{event\}|event\/\{event\}\/books) 404 Not |undo 422 Changes|POST \/import 404|POST \S+ 202 |Undo checked: Idem|Bad request|Payload too large|HEAD .*Preference|Unindexed|import.*: Location$/;

/** Targets that are checked at a time. */
const AT_ONCE = 2;

/** test/page/session.test.ts has the others. */
const ofService = RULES.filter(({ needs }) => !needs.includes('sessions'));

/** Whether a rule takes seconds on any machine, so that it is checked each night. */
export const takesSeconds = (rule: Rule): boolean => OF_SECONDS.test(titleOf(rule));

/** Makes tests of the rules that each of these targets must keep. */
export function testTargets(
  targets: readonly Target[],
  isChosen: (rule: Rule) => boolean = () => true,
): void {
  describe('the contract', { concurrency: AT_ONCE }, () => {
    for (const { name, start } of targets.filter(({ store }) => STORES.includes(store))) {
      describe(`contract on ${name}`, { concurrency: 1 }, () => {
        let verified: Service;
        const given = new Given();
        let performed = 0;

        before(async () => {
          verified = verifiedAt(await start(), (exchange) => given.add(exchange));
        });
        after(() => {
          verified?.close();
          if (performed < ofService.length - ofService.filter(takesSeconds).length) return;
          const missing = given.missing.filter((answer) => !TO_ANY.test(answer));
          assert.deepEqual(missing, [], 'the description has answers that are never given');
        });

        test('L1, rule 13: [] without books', async () => {
          await verified.logIn();
          const { status, message, data } = await verified.request('GET', '/books');
          assert.deepEqual([status, message, data], [200, 'Books retrieved successfully', []]);
        });

        for (const rule of ofService.filter(isChosen)) {
          test(titleOf(rule), async () => {
            await perform(rule, verified);
            performed += 1;
          });
        }
      });
    }
  });
}

/** Collects answers, to find those that are described and never given. */
class Given {
  readonly #answers = new Map<string, Pick<Exchange, 'headers'> & { readonly message: string }>();

  add({ method, path, status, headers, body }: Exchange): void {
    if (method === '') return;
    const name = `${operationOf({ method, path }) ? `${method} ${templateOf(path)}` : 'another request'} ${status}`;
    const message = method === 'HEAD' || status === 304 ? '' : (/"message":"([^"]*)"/.exec(body)?.[1] ?? '');
    const known = this.#answers.get(`${name} ${message}`);
    this.#answers.set(`${name} ${message}`, { message, headers: { ...known?.headers, ...headers } });
  }

  /** Each described answer, and each header of one, that has not been given, as `method path status message`. */
  get missing(): string[] {
    const operations = Object.entries<Document>(API.paths).flatMap(([path, methods]) => {
      return Object.entries<Document>(methods).flatMap(([method, { responses }]) =>
        method === 'parameters' ? [] : [[`${method.toUpperCase()} ${path}`, responses] as const],
      );
    });
    const all = [...operations, ['another request', API['x-responses-to-other-requests']] as const];
    return all.flatMap(([operation, responses]) => {
      return Object.entries<Document>(responses).flatMap(([status, { headers, content }]) => {
        const name = `${operation} ${status}`;
        const said = content?.['application/json'].schema.properties.message;
        return (said === undefined ? [''] : messagesOf(said)).flatMap((message) => {
          const given = [...this.#answers].filter(
            ([key, answer]) => key.startsWith(`${name} `) && isMessage(message, answer.message),
          );
          if (given.length === 0) return [`${name} ${message}`];
          const absent = Object.keys(headers).filter((header) => {
            return given.every(([, answer]) => !(header.toLowerCase() in answer.headers));
          });
          return absent.map((header) => `${name} ${message}: ${header}`);
        });
      });
    });
  }
}
