// DNS rebinding: a service that only its own machine may use gets requests from pages whose name resolves to it. Titles
// name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { RawAnswer } from '../../conformance/answers.ts';
import { assertRefusal, exchange, type Target } from '../support/client.ts';
import { startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { ENVIRONMENT, pageOf, SQLITE } from '../support/service.ts';

const LOGIN = '{"username":"admin","password":"password"}';

const OWN_HOSTS = [
  'localhost',
  'LOCALHOST:8080',
  '127.0.0.1',
  '127.1.2.3:80',
  '[::1]',
  '[::1]:65535',
  '127.0.0.1:',
];
const FOREIGN_HOSTS = [
  'evil.example',
  'evil.example:8080',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  'evil.example:127.0.0.1',
  '10.0.0.1',
  '127.0.0.256',
  '0.0.0.0',
  '[::2]',
  '',
];

test('rule 33: with the built-in password, a Host other than this machine gets 421 on every port', async (context) => {
  const { service, operations, page } = await start(context, {});
  for (const host of OWN_HOSTS) {
    assert.equal((await post(service, host)).status, 200, host);
    assert.equal((await get(operations, host, '/livez')).status, 200, host);
    assert.equal((await post(page, host)).status, 200, host);
    assert.equal((await get(page, host, '/')).status, 200, host);
  }
  for (const host of FOREIGN_HOSTS) {
    for (const answer of [
      await post(service, host, `http://${host.replace(/:\d*$/, '')}:${operations.port}`),
      await get(service, host, '/nowhere'),
      await get(service, host, '/book/1'),
      await post(page, host),
      await get(page, host, '/'),
      await get(page, host, '/v/x'),
      await get(page, host, '/login.json'),
    ]) {
      assertRefusal(answer, 421, 'Misdirected request', host);
      assert.equal(answer.headers['access-control-allow-origin'], undefined, host);
    }
    for (const path of ['/docs/login.json', '/readyz', '/nowhere']) {
      const { status, body } = await get(operations, host, path);
      assert.equal(status, 421, host);
      assert.deepEqual(JSON.parse(body), { status: 421, message: 'Misdirected request', data: null });
    }
  }
});

for (const [ADMIN_HOST, title, status] of [
  ['0.0.0.0', 'also on the operations port if ADMIN_HOST is public', 200],
  ['127.0.0.1', 'else a Host other than this machine gets 421 on the operations port alone', 421],
] as const) {
  test(`rule 33: with a configured password any Host is served, ${title}`, async (context) => {
    const { AUTH_USERNAME, AUTH_PASSWORD } = ENVIRONMENT;
    const { service, operations, page } = await start(context, { AUTH_USERNAME, AUTH_PASSWORD, ADMIN_HOST });
    for (const host of [...OWN_HOSTS, ...FOREIGN_HOSTS]) {
      assert.equal((await get(service, host, '/book/1')).status, 401, host);
      assert.equal((await get(page, host, '/')).status, 200, host);
      const expected = OWN_HOSTS.includes(host) ? 200 : status;
      assert.equal((await get(operations, host, '/metrics')).status, expected, host);
    }
  });
}

async function start(context: TestContext, env: Record<string, string>) {
  const DB_URL = await SQLITE.freshUrl();
  const service = await startHere({ PORT: '0', ADMIN_PORT: '0', DB_URL, LOG_LEVEL: 'info', ...env });
  context.after(() => service.stop());
  return { service, operations: operationsOf(service), page: pageOf(service) };
}

async function post(target: Target, host: string, origin = 'http://evil.example'): Promise<RawAnswer> {
  const headers = `Host: ${host}\r\nOrigin: ${origin}\r\nContent-Length: ${LOGIN.length}\r\n`;
  const [answer] = await exchange(target, `POST /token HTTP/1.1\r\n${headers}\r\n${LOGIN}`);
  return answer as RawAnswer;
}

async function get(target: Target, host: string, path: string): Promise<RawAnswer> {
  const [answer] = await exchange(target, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  return answer as RawAnswer;
}
