// The files of the librarians' page: which there are, their headers to the letter, how they are compressed and kept, and
// that nothing else is served. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { RawAnswer } from '../../conformance/answers.ts';
import { assertRefusal, Connection, exchange, type Target } from '../support/client.ts';
import { startHere } from '../support/command.ts';
import { pathTo } from '../support/repository.ts';
import { pageOf, type RunningService, SQLITE, startTestService } from '../support/service.ts';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types import-worker";
const PERMISSIONS =
  'accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), picture-in-picture=(), screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()';

const MAIN = 'page/main.ts';

describe('the files of the page', () => {
  let service: RunningService;
  let page: Target;
  let index: string;
  /** The beginning of every other URL: `/v/<version>/`. */
  let version: string;

  before(async () => {
    service = await startTestService(await SQLITE.freshUrl());
    page = pageOf(service);
    index = (await get('/')).body;
    version = `/${/src="(v\/[0-9a-f]{16}\/)/.exec(index)?.[1]}`;
  });
  after(() => service.stop());

  async function get(path: string, headers = '', target = page): Promise<RawAnswer> {
    const [answer] = await exchange(target, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`);
    return answer as RawAnswer;
  }

  /** The paths of all modules that a module leads to, itself included, each with its text. */
  async function modulesFrom(path: string, found = new Map<string, string>()): Promise<Map<string, string>> {
    if (found.has(path)) return found;
    const { status, headers, body } = await get(path);
    assert.equal(status, 200, path);
    assert.equal(headers['content-type'], 'text/javascript; charset=utf-8', path);
    found.set(path, body);
    for (const [, relative = ''] of body.matchAll(/(?:\bfrom |\bimport\(|\bURL\()'(\.[^']+)'/g)) {
      await modulesFrom(new URL(relative, `http://page${path}`).pathname, found);
    }
    return found;
  }

  test('rule 34: index.html and every file that it leads to are served, in one version, and by relative URLs alone', async () => {
    const urls = [...index.matchAll(/ (?:href|src)="([^"#]+)"/g)]
      .map(([, url = '']) => url)
      .filter((url) => !url.startsWith('data:'));
    const [styles, scripts] = [/\.css$/, /\.ts$/].map((end) => urls.filter((url) => end.test(url)));
    assert.ok(styles && styles.length > 0 && scripts && scripts.length > 1);
    assert.equal(styles.length + scripts.length, urls.length);
    for (const url of urls) assert.ok(`/${url}`.startsWith(version), url);
    for (const url of styles) {
      const { status, headers } = await get(`/${url}`);
      assert.deepEqual([status, headers['content-type']], [200, 'text/css; charset=utf-8'], url);
    }
    const modules = await modulesFrom(`${version}${MAIN}`);
    for (const url of scripts) assert.ok(modules.has(`/${url}`), url);
    for (const [path, text] of modules) {
      assert.doesNotMatch(text, /^import .* from '[^.]/m, path); // nothing that a browser cannot find
      assert.doesNotMatch(text, /^(?:import type|interface|export interface) /m, path);
    }
    // Modules that are needed at once need not be found one after the other.
    const needed = (text: string) => [...text.matchAll(/^(?:import|export|\}) .*from '(\.[^']+)'/gm)];
    for (const [path, text] of modules) {
      if (!scripts.includes(path.slice(1))) continue;
      for (const [, relative = ''] of needed(text)) {
        const { pathname } = new URL(relative, `http://page${path}`);
        assert.ok(scripts.includes(pathname.slice(1)), `${path} needs ${pathname}, which is not preloaded`);
      }
    }
  });

  test('rule 34: a module has the lines of its source, without types', async () => {
    const { body } = await get(`${version}${MAIN}`);
    const lines = Buffer.from(body, 'latin1').toString().split('\n');
    const source = readFileSync(pathTo(MAIN), 'utf8').split('\n');
    assert.equal(lines.length, source.length);
    const untyped = source
      .map((line, number) => [line, number] as const)
      .filter(([line]) => /^import \{(?!.*\btype )/.test(line));
    assert.ok(untyped.length > 0);
    for (const [line, number] of untyped) assert.equal(lines[number], line);
  });

  test('rule 34: the headers of index.html, to the letter', async () => {
    const { 'x-request-id': id, date, etag, 'content-length': length, ...headers } = (await get('/')).headers;
    assert.match(String(id), /^[\w-]+$/);
    assert.ok(date);
    assert.match(String(etag), /^W\/"[0-9a-f]{16}"$/);
    assert.equal(Number(length), Buffer.byteLength(index, 'latin1'));
    assert.deepEqual(headers, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
      'referrer-policy': 'no-referrer',
      'permissions-policy': PERMISSIONS,
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      vary: 'accept-encoding',
      'cache-control': 'no-cache',
      connection: 'keep-alive',
      'keep-alive': 'timeout=72',
    });
  });

  test('rule 34: the headers of every other file, to the letter; that of a worker also has the policy', async () => {
    const workers = new Set<string>();
    const modules = await modulesFrom(`${version}${MAIN}`);
    for (const [path, text] of modules) {
      for (const [, relative = ''] of text.matchAll(/new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g)) {
        workers.add(new URL(relative, `http://page${path}`).pathname);
      }
    }
    for (const path of modules.keys()) {
      const {
        'x-request-id': _id,
        date: _date,
        etag,
        'content-length': _length,
        ...headers
      } = (await get(path)).headers;
      assert.match(String(etag), /^W\/"[0-9a-f]{16}"$/);
      assert.deepEqual(
        headers,
        {
          'content-type': 'text/javascript; charset=utf-8',
          ...(workers.has(path) && {
            'content-security-policy': POLICY,
            'referrer-policy': 'no-referrer',
            'permissions-policy': PERMISSIONS,
          }),
          'x-content-type-options': 'nosniff',
          'cross-origin-resource-policy': 'same-origin',
          vary: 'accept-encoding',
          'cache-control': 'max-age=31536000, immutable',
          connection: 'keep-alive',
          'keep-alive': 'timeout=72',
        },
        path,
      );
    }
  });

  test('rule 34: the page is sent the built-in password, and no other', async (context) => {
    const builtIn = await startHere({ PORT: '0', DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' });
    context.after(() => builtIn.stop());
    for (const [target, pair] of [
      [page, '{}'],
      [pageOf(builtIn), '{"username":"admin","password":"password"}'],
    ] as const) {
      const { status, headers, body } = await get('/login.json', '', target);
      assert.deepEqual([status, body], [200, pair]);
      assert.equal(headers['content-type'], 'application/json; charset=utf-8');
      assert.equal(headers['cache-control'], 'no-store');
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['cross-origin-resource-policy'], 'same-origin');
    }
    assertRefusal(await get('/login.json', '', builtIn), 404, 'Not found');
  });

  test('rule 34: a file that the browser has gets 304, without a body', async () => {
    for (const path of ['/', '/?q=emma', `${version}${MAIN}`]) {
      const { etag = '' } = (await get(path)).headers;
      const strong = etag.replace('W/', '');
      for (const known of [etag, `"x", ${etag}`, `W/"x",${etag} , "y"`]) {
        const { status, headers, body } = await get(path, `If-None-Match: ${known}\r\n`);
        assert.deepEqual([status, body, headers.etag], [304, '', etag], known);
        assert.ok(headers['cache-control'] && headers['content-type'] === undefined);
      }
      for (const other of ['"x"', etag.slice(0, -2), `"${strong}`]) {
        assert.equal((await get(path, `If-None-Match: ${other}\r\n`)).status, 200, other);
      }
    }
  });

  test('rule 34: files are compressed if the browser accepts that', async () => {
    const decoders = { gzip: gunzipSync, br: brotliDecompressSync, none: (bytes: Buffer) => bytes };
    const bytes = ({ body }: RawAnswer) => Buffer.from(body, 'latin1');
    for (const path of ['/', `${version}${MAIN}`]) {
      const plain = bytes(await get(path)).toString();
      const cases: [accepted: string, coding: keyof typeof decoders][] = [
        ['gzip', 'gzip'],
        ['br', 'br'],
        ['gzip, deflate, br, zstd', 'br'],
        ['deflate, GZIP;q=0.5', 'gzip'],
        ['br;q=0, gzip;q=1.0', 'gzip'],
        ['br ; q=0.000,gzip ;q=0', 'none'],
        ['identity', 'none'],
        ['deflate, x-gzip, bri', 'none'],
        ['*', 'none'],
        ['', 'none'],
      ];
      for (const [accepted, coding] of cases) {
        const answer = await get(path, `Accept-Encoding: ${accepted}\r\n`);
        assert.equal(answer.headers['content-encoding'] ?? 'none', coding, accepted);
        assert.equal(answer.headers.vary, 'accept-encoding');
        assert.equal(decoders[coding](bytes(answer)).toString(), plain, accepted);
        if (coding !== 'none') assert.ok(bytes(answer).length < plain.length / 2, accepted);
      }
    }
  });

  test('rules 21 and 34: HEAD is answered like GET, without a body, and a part is never sent', async () => {
    for (const path of ['/', `${version}${MAIN}`]) {
      const connection = new Connection(page);
      await connection.send(`HEAD ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      await connection.closed;
      assert.ok(connection.received.endsWith('\r\n\r\n')); // no body
      const { headers, body } = await get(path);
      const { connection: _, 'keep-alive': _timeout, 'x-request-id': _id, date: _date, ...same } = headers;
      for (const [name, value] of Object.entries(same)) {
        assert.ok(connection.received.includes(`\r\n${name}: ${value}\r\n`), name);
      }
      assert.deepEqual((await get(path, 'Range: bytes=0-9\r\n')).body, body);
    }
  });

  test('rule 34: files are served whatever the form of the request, pipelined ones in order', async () => {
    for (const target of [
      `http://localhost${version}${MAIN}`,
      `${version}${MAIN}?x=y#z`,
      `/%76${version.slice(2)}page/%6dain.ts`,
    ]) {
      assert.equal((await get(target)).headers['content-type'], 'text/javascript; charset=utf-8', target);
    }
    const paths = ['/', '/nowhere', `${version}${MAIN}`, '/book/1', '/'];
    const requests = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join('');
    const answers = await exchange(page, requests, paths.length);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 404, 200, 401, 200],
    );
    assert.equal(answers[4]?.body, index);
  });

  test('rule 34: nothing else is served: no other version, no other file of this machine', async () => {
    const paths = [
      ...['/index.html', '/v', '/v/', '/v//', '//', '/./', '/favicon.ico', '/page/main.ts'],
      ...['', 'src', 'src/', 'page/', 'page/index.html', 'page/tsconfig.json'],
      ...['src/page/strip.ts', 'src/config.ts', 'package.json', 'node_modules/.cache/page.json'],
      ...['../package.json', '../../etc/passwd', 'page/../../config.ts', 'page/./main.ts'],
      ...['page/%2e%2e/%2e%2e/config.ts', '..%2f..%2fetc%2fpasswd', '%2e%2e%2f%2e%2e%2fetc%2fpasswd'],
      ...['page\\main.ts', 'page/main.ts/', 'page//main.ts', 'src%2fpage'],
      ...['page/main.ts%00', 'page/MAIN.ts', 'page/main.ts.map', '__proto__'],
      ...['constructor', 'file:///etc/passwd'],
    ].map((path) => (path.startsWith('/') ? path : `${version}${path}`));
    const hash = version.slice('/v/'.length, -1);
    paths.push(`/v/${'0'.repeat(16)}/${MAIN}`, `/v/${hash.toUpperCase()}/${MAIN}`, `/V/${hash}/${MAIN}`);
    for (const path of paths) {
      assertRefusal(await get(path), 404, 'Not found', path);
    }
    assertRefusal(await get('/v/%zz'), 400, 'Bad request');
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE']) {
      for (const path of ['/', `${version}${MAIN}`]) {
        const [answer] = await exchange(page, `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
        assertRefusal(answer, 404, 'Not found', `${method} ${path}`);
      }
    }
  });

  test('rule 34: the port of the service has none of them, and answers as if there were no page', async () => {
    for (const path of ['/', '/?q=emma', version, `${version}${MAIN}`]) {
      for (const method of ['GET', 'POST']) {
        const connection = new Connection(service);
        const id = 'X-Request-Id: one\r\nConnection: close\r\n';
        await connection.send(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${id}\r\n`);
        await connection.closed;
        assert.equal(
          connection.received.replace(/\r\nDate: [^\r]+/, ''),
          'HTTP/1.1 404 Not Found\r\nx-request-id: one\r\ncontent-type: application/json; charset=utf-8\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\ncontent-length: 48\r\nConnection: close\r\n\r\n{"status":404,"message":"Not found","data":null}',
        );
      }
    }
  });
});
