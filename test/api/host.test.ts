// DNS rebinding: a service that only its own machine may use gets requests from pages whose name resolves to it. Titles
// name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RawAnswer } from '../../conformance/answers.ts';
import { assertRefusal, exchange, type Target } from '../support/client.ts';
import { startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { pageOf, SQLITE } from '../support/service.ts';

const LOGIN = '{"username":"admin","password":"password"}';

const OWN_HOSTS = [
  ...['localhost', 'LOCALHOST:8080', '127.0.0.1', '127.1.2.3:80', '[::1]', '[::1]:65535', '127.0.0.1:'],
];
const FOREIGN_HOSTS = [
  ...['evil.example', 'evil.example:8080', 'localhost.evil.example', '127.0.0.1.evil.example'],
  ...['evil.example:127.0.0.1', '10.0.0.1', '127.0.0.256', '0.0.0.0', '[::2]', ''],
];

for (const [title, env, admin] of [
  ['with the built-in password, a Host other than this machine gets 421 on every port', {}, 421],
  [
    'with a configured password any Host is served, also on the operations port if ADMIN_HOST is public',
    { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: 'correct horse', ADMIN_HOST: '0.0.0.0' },
    200,
  ],
  [
    'with a configured password any Host is served, else a Host other than this machine gets 421 on the operations port alone',
    { AUTH_USERNAME: 'librarian', AUTH_PASSWORD: 'correct horse', ADMIN_HOST: '127.0.0.1' },
    421,
  ],
] as const) {
  test(`rule 33: ${title}`, async () => {
    const own = { PORT: '0', ADMIN_PORT: '0', DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' };
    const service = await startHere({ ...own, ...env });
    const [operations, page] = [operationsOf(service), pageOf(service)];
    const isBuiltIn = !('AUTH_PASSWORD' in env);
    for (const host of [...OWN_HOSTS, ...FOREIGN_HOSTS]) {
      const isServed = OWN_HOSTS.includes(host) || !isBuiltIn;
      // A wrong login would soon be delayed.
      const logins = isBuiltIn
        ? [
            [await logIn(service, host, operations.port), 200] as const,
            [await logIn(page, host), 403] as const,
          ]
        : [];
      for (const [answer, status] of [
        ...logins,
        [await get(page, host, '/'), 200],
        [await get(page, host, '/login.json'), 200],
        [await get(page, host, '/v/x'), 404],
        [await get(service, host, '/book/1'), 401],
        [await get(service, host, '/nowhere'), 404],
      ] as const) {
        assert.equal(answer.status, isServed ? status : 421, host);
        if (isServed) continue;
        assertRefusal(answer, 421, 'Misdirected request', host);
        assert.equal(answer.headers['access-control-allow-origin'], undefined, host);
      }
      if (host !== '') {
        const meant = await get(operations, 'localhost', `http://${host}/livez`); // which counts instead of Host
        assert.equal(meant.status, OWN_HOSTS.includes(host) ? 200 : admin, host);
      }
      for (const path of ['/livez', '/docs/page.json', '/readyz']) {
        const { status, body } = await get(operations, host, path);
        assert.equal(status, OWN_HOSTS.includes(host) ? 200 : admin, host);
        if (status !== 421) continue;
        assert.deepEqual(JSON.parse(body), { status: 421, message: 'Misdirected request', data: null });
      }
    }
  });
}

/** Logs in from a page of the docs, or of somebody else. */
async function logIn(target: Target, host: string, port?: number): Promise<RawAnswer> {
  const origin = port === undefined ? 'evil.example' : `${host.replace(/:\d*$/, '')}:${port}`;
  const headers = `Host: ${host}\r\nOrigin: http://${origin}\r\nContent-Length: ${LOGIN.length}\r\n`;
  const [answer] = await exchange(target, `POST /token HTTP/1.1\r\n${headers}\r\n${LOGIN}`);
  return answer as RawAnswer;
}

async function get(target: Target, host: string, path: string): Promise<RawAnswer> {
  const [answer] = await exchange(target, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  return answer as RawAnswer;
}
