// The page that shows the API, as its files are served: complete, from the service alone, and safe to open.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { RawAnswer } from '../../conformance/answers.ts';
import { exchange, readEnvelope, type Target } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { operationsOf } from '../support/operations.ts';
import { ENVIRONMENT, SQLITE } from '../support/service.ts';

let service: CommandHere;
let operations: Target;

before(async () => {
  const dbUrl = await SQLITE.freshUrl();
  const own = { ...ENVIRONMENT, DB_URL: dbUrl, ADMIN_PORT: '0', LOG_LEVEL: 'info' };
  service = await startHere({ ...own, ADMIN_HOST: '0.0.0.0' }); // so that any Host is served
  operations = operationsOf(service);
});

async function get(path: string, host = 'books.test:80', more = '', target = operations): Promise<RawAnswer> {
  const [answer] = await exchange(target, `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n${more}\r\n`);
  assert.ok(answer !== undefined, path);
  return answer;
}

test('rule 31: every file that the page names is served with its type and safe headers, unless a browser has it already', async () => {
  const page = await get('/docs');
  const files = [...page.body.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, file]) => `/${file}`);
  assert.equal(files.length, 3);
  assert.doesNotMatch(page.body, /(?:src|href)="(?:https?:|\/\/)/);
  assert.doesNotMatch(page.body, /<script>|<style| style=| on[a-z]+=/);
  const kinds: Record<string, string> = { docs: 'text/html', css: 'text/css', js: 'text/javascript' };
  for (const file of ['/docs', ...files]) {
    const { status, headers } = await get(file);
    assert.equal(status, 200, file);
    assert.equal(headers['content-type'], `${kinds[file.split(/[./]/).at(-1) ?? '']}; charset=utf-8`, file);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.equal(
      headers['content-security-policy'],
      `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self' ` +
        `http://books.test:${service.port}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    assert.equal(headers['cache-control'], 'no-cache');
    const again = await get(file, 'books.test', `if-none-match: ${headers.etag}\r\n`);
    assert.deepEqual([again.status, again.body, again.headers.etag], [304, '', headers.etag]);
    assert.equal((await get(file, 'books.test', 'if-none-match: "other"\r\n')).status, 200);
  }
});

test('rule 31: the Host of a request cannot make the page connect to another host', async () => {
  for (const [host, source] of [
    ['127.0.0.1:8081', ` http://127.0.0.1:${service.port}`],
    ['books.test', ` http://books.test:${service.port}`],
    ['[::1]:8081', ` http://*:${service.port}`], // a policy cannot name it
    ['x,y', ''],
    ['*', ''],
    ['', ''],
    ["x; script-src 'unsafe-inline'", undefined], // HTTP allows no such host
    ['x, y', undefined],
    ['* evil.test', undefined],
  ] as const) {
    const { status, headers } = await get('/docs', host);
    if (source === undefined) {
      assert.equal(status, 400, host);
      continue;
    }
    const policy = headers['content-security-policy'] ?? '';
    assert.equal(/connect-src ([^;]*);/.exec(policy)?.[1], `'self'${source}`, host);
    assert.equal(policy.split(';').length, 8, host);
  }
});

test('rules 31 and 34: the page gets the port of the page for librarians, if there is one', async () => {
  const env = { PORT: '0', ADMIN_PORT: '0', PAGE_PORT: 'off', LOG_LEVEL: 'info' };
  const builtIn = await startHere({ ...env, DB_URL: await SQLITE.freshUrl() });
  const page = await get('/docs/page.json', 'localhost', '', operationsOf(builtIn));
  assert.equal(JSON.parse(page.body).port, undefined);
  const { port } = JSON.parse((await get('/docs/page.json')).body);
  assert.equal(port, Number(new URL(service.pageUrl).port));
});

test('rule 31: / redirects to the page, which is on no other port', async () => {
  const { status, headers } = await get('/');
  assert.equal(status, 302);
  assert.equal(new URL(headers.location ?? '', `${operations.url}/`).href, `${operations.url}/docs`);
  for (const path of ['/docs/', '/docs/docs.html', '/docs/../listener.ts', '/docs/%2e%2e/docs.ts']) {
    assert.equal((await get(path)).status, 404, path);
  }
  const [answer] = await exchange(service, 'GET /docs HTTP/1.1\r\nhost: books.test\r\n\r\n');
  assert.equal(readEnvelope(answer?.body ?? '', 404).message, 'Not found');
});
