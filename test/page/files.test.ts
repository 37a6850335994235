// The files of the librarians' page: which there are, their headers to the letter, how they are compressed and kept, and
// that nothing else is served. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { RawAnswer } from '../../conformance/answers.ts';
import { assertRefusal, Connection, exchange } from '../support/client.ts';
import { startHere } from '../support/command.ts';
import { pageOf, type RunningService, SQLITE, startTestService } from '../support/service.ts';

const POLICY = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; worker-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'referrer-policy': 'no-referrer',
  'permissions-policy':
    'accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), picture-in-picture=(), screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()',
};

const MAIN = 'main.js';

/** What it loads when a person needs it. */
const LATER = ['import.js'];

describe('the files of the page', () => {
  let service: RunningService;
  let index: string;
  /** The URL of the script that adds the slash to the page's address. */
  let slash: string;
  /** The beginning of every other URL: `/v/<version>/`. */
  let version: string;

  before(async () => {
    service = await startTestService(await SQLITE.freshUrl());
    index = (await get('/')).body;
    slash = / src="(\?slash=[0-9a-f]{16})"/.exec(index)?.[1] ?? '';
    version = `/${/src="(v\/[0-9a-f]{16}\/)/.exec(index)?.[1]}`;
  });
  after(() => service.stop());

  async function get(path: string, more = '', target = pageOf(service), method = 'GET'): Promise<RawAnswer> {
    const [answer] = await exchange(target, `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`);
    return answer as RawAnswer;
  }

  test('rule 34: index.html leads to a program, what that loads later, and its styles, in one version and by relative URLs alone', async () => {
    const urls = [...index.matchAll(/ (?:href|src)="([^"#]+)"/g)]
      .map(([, url = '']) => `/${url}`)
      .filter((url) => !url.startsWith('/data:'));
    assert.deepEqual(urls, [`/${slash}`, `${version}page.css`, `${version}${MAIN}`]);
    const style = (await get(`${version}page.css`)).body;
    assert.ok(!/@import|url\((?!["']?data:)/.test(style), 'the styles need another file');
    for (const file of [MAIN, ...LATER]) {
      const program = (await get(`${version}${file}`)).body;
      assert.ok(!/(?:^|[;}])import["{*]|\bfrom"/.test(program), `${file} needs another file`);
      assert.equal(program.match(/(?<!async |\.)\bimport\(/g)?.length ?? 0, file === MAIN ? 1 : 0, file);
      assert.ok(!/\beval\(|\bnew Function\b|\bnew Worker\b|sourceMappingURL/.test(program), file);
    }
  });

  test('rule 34: the script that adds the slash to the address has the address of the page, and a query', async () => {
    const { status, headers, body } = await get(`/${slash}`);
    assert.deepEqual([status, headers['content-type']], [200, 'text/javascript; charset=utf-8']);
    assert.equal(headers['cache-control'], 'max-age=31536000, immutable');
    assert.equal(body, 'location.pathname.endsWith("/")||(location.pathname+="/");\n');
    assert.equal((await get(`/${slash.slice(0, -1)}`)).body, index, 'of another version');
  });

  test('rule 34: the page has the name of the library, as a text, in every coding', async (context) => {
    const own = await startTestService(await SQLITE.freshUrl(), {
      LIBRARY_NAME: "<b>Bücherei $& $$' 図書館</b>",
    });
    context.after(() => own.stop());
    const written = '&#60;b&#62;Bücherei $&#38; $$&#39; 図書館&#60;/b&#62;';
    const { body, headers } = await get('/', '', pageOf(own));
    const text = Buffer.from(body, 'latin1').toString();
    assert.equal(text.split(written).length, 4); // title, head and login
    assert.equal(text.split(written).join('Book catalogue'), Buffer.from(index, 'latin1').toString());
    assert.notEqual(headers.etag, (await get('/')).headers.etag);
    const zipped = await get('/', 'accept-encoding: gzip\r\n', pageOf(own));
    assert.equal(gunzipSync(Buffer.from(zipped.body, 'latin1')).toString(), text);
  });

  /** The headers of a file, without those that are different each time. */
  async function headersOf(path: string): Promise<Record<string, string>> {
    const { headers, body } = await get(path);
    const { 'x-request-id': id = '', date, etag = '', 'content-length': length, ...others } = headers;
    assert.match(id, /^[\w-]+$/);
    assert.ok(date);
    assert.match(etag, /^W\/"[0-9a-f]{16}"$/);
    assert.equal(Number(length), Buffer.byteLength(body, 'latin1'));
    return others;
  }

  const EVERY = {
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'same-origin',
    vary: 'accept-encoding',
    connection: 'keep-alive',
    'keep-alive': 'timeout=72',
  };

  test('rule 34: the headers of every file, to the letter', async () => {
    for (const [path, type, kept] of [
      ['/', 'text/html', 'no-cache'],
      [`/${slash}`, 'text/javascript', 'max-age=31536000, immutable'],
      [`${version}page.css`, 'text/css', 'max-age=31536000, immutable'],
      ...[MAIN, ...LATER].map(
        (file) => [`${version}${file}`, 'text/javascript', 'max-age=31536000, immutable'] as const,
      ),
    ] as const) {
      const own = { 'content-type': `${type}; charset=utf-8`, 'cache-control': kept };
      assert.deepEqual(await headersOf(path), { ...POLICY, ...EVERY, ...own }, path);
    }
  });

  test('rule 34: the page is sent the built-in password, and no other', async (context) => {
    const builtIn = await startHere({ PORT: '0', DB_URL: await SQLITE.freshUrl(), LOG_LEVEL: 'info' });
    context.after(() => builtIn.stop());
    for (const [target, pair] of [
      [service, '{}'],
      [builtIn, '{"username":"admin","password":"password"}'],
    ] as const) {
      const { status, headers, body } = await get('/login.json', '', pageOf(target));
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
      for (const known of [etag, `"x", ${etag}`, `W/"x",${etag} , "y"`]) {
        const { status, headers, body } = await get(path, `If-None-Match: ${known}\r\n`);
        assert.deepEqual([status, body, headers.etag], [304, '', etag], known);
        assert.ok(headers['cache-control'] && headers['content-type'] === undefined);
      }
      for (const other of ['"x"', etag.slice(0, -2), etag.replace('W/', '"')])
        assert.equal((await get(path, `If-None-Match: ${other}\r\n`)).status, 200, other);
    }
  });

  test('rule 34: files are compressed if the browser accepts that', async () => {
    const decoders = { gzip: gunzipSync, br: brotliDecompressSync, none: (bytes: Buffer) => bytes };
    for (const path of ['/', `${version}${MAIN}`]) {
      const plain = (await get(path)).body;
      for (const [accepted, coding] of [
        ['gzip', 'gzip'],
        ['br', 'br'],
        ['gzip, deflate, br, zstd', 'br'],
        ['deflate, GZIP;q=0.5', 'gzip'],
        ['br;q=0, gzip;q=1.0', 'gzip'],
        ['br ; q=0.000,gzip ;q=0', 'none'],
        ['deflate, x-gzip, bri', 'none'],
        ['*', 'none'],
        ['', 'none'],
      ] as const) {
        const { headers, body } = await get(path, `Accept-Encoding: ${accepted}\r\n`);
        assert.equal(headers['content-encoding'] ?? 'none', coding, accepted);
        assert.equal(headers.vary, 'accept-encoding');
        assert.equal(decoders[coding](Buffer.from(body, 'latin1')).toString('latin1'), plain, accepted);
        if (coding !== 'none') assert.ok(body.length < plain.length / 2, accepted);
      }
    }
  });

  test('rules 21 and 34: HEAD is answered like GET, without a body, and a part is never sent', async () => {
    for (const path of ['/', `${version}${MAIN}`]) {
      const connection = new Connection(pageOf(service));
      await connection.send(`HEAD ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      await connection.closed;
      assert.ok(connection.received.endsWith('\r\n\r\n')); // no body
      const { connection: _, 'keep-alive': _timeout, ...same } = await headersOf(path);
      for (const [name, value] of Object.entries(same))
        assert.ok(connection.received.includes(`\r\n${name}: ${value}\r\n`), name);
      assert.deepEqual((await get(path, 'Range: bytes=0-9\r\n')).body, (await get(path)).body);
    }
  });

  test('rule 34: files are served whatever the form of their paths', async () => {
    const paths = [`http://localhost${version}${MAIN}`, `${version}${MAIN}?x=y`];
    for (const path of [...paths, `/%76${version.slice(2)}%6dain.js`])
      assert.equal((await get(path)).headers['content-type'], 'text/javascript; charset=utf-8', path);
  });

  test('rule 34: nothing else is served: no other version, no other file of this machine', async () => {
    const hash = version.slice('/v/'.length, -1);
    const paths = [
      ...['/index.html', '/v', '/v/', '/v//', '//', '/./', '/favicon.ico', '/main.js', '/page/main.ts'],
      ...[
        '',
        'index.html',
        'slash.js',
        'worker.js',
        'main.ts',
        'main.js.map',
        'page/main.ts',
        'package.json',
      ],
      ...['src/config.ts', 'node_modules/.cache/page.json', '../package.json', '../../etc/passwd'],
      ...['x/../../config.ts', './main.js', '%2e%2e/%2e%2e/config.ts', '..%2f..%2fetc%2fpasswd'],
      ...['%2e%2e%2f%2e%2e%2fetc%2fpasswd', '..\\main.js', 'main.js/', '/main.js', 'x%2fmain.js'],
      ...['__proto__', 'constructor', 'main.js%00', 'MAIN.js', 'file:///etc/passwd'],
      ...[`/v/${'0'.repeat(16)}/${MAIN}`, `/v/${hash.toUpperCase()}/${MAIN}`, `/V/${hash}/${MAIN}`],
    ].map((path) => (path.startsWith('/') ? path : `${version}${path}`));
    for (const path of paths) assertRefusal(await get(path), 404, 'Not found', path);
    assertRefusal(await get('/v/%zz'), 400, 'Bad request');
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE']) {
      for (const path of ['/', `${version}${MAIN}`])
        assertRefusal(await get(path, '', pageOf(service), method), 404, 'Not found', `${method} ${path}`);
    }
  });

  test('rule 34: the port of the service has none of them, and answers as if there were no page', async () => {
    const [unknown, ...answers] = await Promise.all(
      ['/nowhere', '/', '/?q=emma', version, `${version}${MAIN}`].map(async (path) => {
        const { headers, ...answer } = await get(path, 'X-Request-Id: one\r\n', service);
        return { ...answer, headers: { ...headers, date: '' } };
      }),
    );
    assert.equal(unknown?.status, 404);
    for (const answer of answers) assert.deepEqual(answer, unknown);
  });
});
