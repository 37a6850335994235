// The manual on the operations listener, as its files are served: those of this version, if there are any, and no others.
// The files here are not those of the real site, which test/browser/manual.test.ts opens.

import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { RawAnswer } from '../../conformance/answers.ts';
import type { openOperations } from '../../src/admin/listener.ts';
import { readConfig } from '../../src/config.ts';
import type { Log } from '../../src/log/log.ts';
import { TIMES } from '../../src/times.ts';
import { exchange } from '../support/client.ts';
import { pathTo } from '../support/repository.ts';
import { ENVIRONMENT, temporaryFolder } from '../support/service.ts';

const { version } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
const SITE = `site/dist/${version}`;

test('rule 31: each file of the manual is served with its type and safe headers', async (context) => {
  const files = [
    ['index.html', '/manual/', 'text/html; charset=utf-8'],
    ['docs/page.html', '/manual/docs/page.html', 'text/html; charset=utf-8'],
    ['client/index.html', '/manual/client/', 'text/html; charset=utf-8'],
    ['assets/a.js', '/manual/assets/a.js', 'text/javascript; charset=utf-8'],
    ['assets/a.css', '/manual/assets/a.css', 'text/css; charset=utf-8'],
    ['assets/a.png', '/manual/assets/a.png', 'image/png'],
    ['assets/a.new', '/manual/assets/a.new', 'application/octet-stream'],
  ] as const;
  const get = await start(context, Object.fromEntries(files.map(([file]) => [`${SITE}/${file}`, file])));
  for (const [file, path, type] of files) {
    const { status, headers, body } = await get(path);
    assert.deepEqual([status, body, headers['content-type']], [200, file, type], path);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.equal(
      headers['content-security-policy'],
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    assert.equal((await get(path, `if-none-match: ${headers.etag}\r\n`)).status, 304, path);
  }
  const { status, headers } = await get('/manual');
  assert.deepEqual([status, headers.location], [302, 'manual/']);
  assert.equal(JSON.parse((await get('/docs/page.json')).body).manual, 'manual/');
  for (const path of ['index.md', 'docs/', '../page.html', '%2e%2e/x', '/'])
    assert.equal((await get(`/manual/${path}`)).status, 404, path);
});

for (const [title, files, warning] of [
  ['no manual', {}, /^$/],
  [
    'a manual of another version',
    { 'site/dist/0.0.1/index.html': 'another version', 'site/dist/digest': 'x' },
    /^$/,
  ],
  [
    'a manual that cannot be read',
    { [SITE]: 'no folder' },
    /^site\/dist\/\S+ cannot be read: .*: not a directory\. The service runs without the manual\.$/,
  ],
] as [title: string, files: Record<string, string>, warning: RegExp][]) {
  test(`rule 31: with ${title}, its paths are as unknown as any other, and /manual says how it is made`, async (context) => {
    const warnings: string[] = [];
    const get = await start(context, files, warnings);
    const unknown = await get('/unknown');
    assert.equal(unknown.status, 404);
    for (const path of ['/manual', '/manual/']) {
      const { status, body } = await get(path);
      assert.equal(status, 404);
      assert.match(body, /^The manual has not been made\. Run `npm ci` and `npm run build:site` /);
    }
    for (const path of ['/manual/index.html', '/manual/digest', '/manual/../digest']) {
      const { status, body } = await get(path);
      assert.deepEqual([status, body], [404, unknown.body], path);
    }
    assert.equal(JSON.parse((await get('/docs/page.json')).body).manual, undefined);
    assert.match(warnings.join('\n'), warning);
  });
}

/**
 * Opens the operations listener of a copy of the project that has these files, and asks it.
 * @param warnings gets those of the log.
 */
async function start(
  context: TestContext,
  files: Readonly<Record<string, string>>,
  warnings: string[] = [],
): Promise<(path: string, more?: string) => Promise<RawAnswer>> {
  const folder = temporaryFolder();
  for (const path of ['src', 'package.json']) cpSync(pathTo(path), join(folder, path), { recursive: true });
  symlinkSync(pathTo('node_modules'), join(folder, 'node_modules'), 'junction');
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const copy: { openOperations: typeof openOperations } = await import(join(folder, 'src/admin/listener.ts'));
  const variables = { ...ENVIRONMENT, DB_URL: 'sqlite::memory:', ADMIN_PORT: '0' };
  const config = readConfig(variables);
  const log = { warn: (text: string) => warnings.push(text) } as unknown as Log;
  const operations = await copy.openOperations(config, log, TIMES);
  assert.ok('close' in operations);
  context.after(() => operations.close());
  const { port } = operations;
  const target = { url: operations.url, port };
  return async (path, more = '') => {
    const [answer] = await exchange(target, `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${more}\r\n`);
    assert.ok(answer !== undefined, path);
    return answer;
  };
}
