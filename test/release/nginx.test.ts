// Behind real reverse proxies. One that keeps its connections to the service open and parses a request differently must never
// make one client's bytes another's request, nor one client's answer another's; the documented ones must do what the documents
// say. Needs the packages nginx and caddy. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { blockOf } from '../support/documents.ts';
import { answer, passOn, startFront } from '../support/front.ts';
import { unusedPort } from '../support/ports.ts';
import { pathTo } from '../support/repository.ts';
import { pageOf, SQLITE, startServiceProcess } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { untilRefused } from './programs.ts';
import { documented, startCaddy, startNginx } from './proxies.ts';

/** Larger than any other body may be. */
const LARGE_FILE = `title\n${`${'x'.repeat(1000)}\n`.repeat(18_000)}`;

const TRUSTING = { HOST: '127.0.0.1', TRUST_PROXY: '127.0.0.1' };

test('rules 29, 32 and 34: deploy/nginx.conf counts the logins of a client, lets the page log in, and has the page under a path while one process has another version', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl(), TRUSTING);
  const older = await startFront(context, (_request, outgoing) => answer(outgoing, 404, null, 'Not found'));
  const pages = [pageOf(service).port, older.port];
  const proxy = await startNginx((port) => documented(port, [service.port], pages));
  const logIn = async (path: string, headers: Record<string, string>, body: string) =>
    (await fetch(`${proxy.url}${path}`, { method: 'POST', headers, body })).status;
  const body = '{"username":"librarian","password":"correct horse"}';
  assert.equal(await logIn('/catalogue/token', { origin: proxy.url }, body), 200); // as a browser without TLS
  await untilRefused((headers, guess) => logIn('/token', headers, guess));
  const moved = await fetch(`${proxy.url}/catalogue`, { redirect: 'manual' });
  assert.deepEqual([moved.status, moved.headers.get('location')], [301, `${proxy.url}/catalogue/`]);
  let index = new Response();
  await waitUntil(async () => {
    index = await fetch(`${proxy.url}/catalogue/?q=emma`); // from each process in turn
    return index.status === 200;
  });
  const urls = [...(await index.text()).matchAll(/ (?:href|src)="(v\/[^"]+)"/g)].map(([, url = '']) => url);
  assert.equal(urls.length, 2);
  for (const url of urls) {
    const file = await fetch(new URL(url, `${proxy.url}/catalogue/`));
    assert.deepEqual([file.status, file.headers.get('cache-control')], [200, 'max-age=31536000, immutable']);
    assert.ok((await file.text()).length > 0);
  }
  assert.ok(older.seen.some((line) => line.startsWith('GET /v/')));
  const missing = await fetch(`${proxy.url}/catalogue/v/${'0'.repeat(16)}/x`);
  assert.deepEqual(await missing.json(), { status: 404, message: 'Not found', data: null });
  const headers = { authorization: service.client.token };
  for (const path of ['/import?dry-run', '/catalogue/import?dry-run']) {
    let status = 0;
    await waitUntil(async () => {
      ({ status } = await fetch(`${proxy.url}${path}`, { method: 'POST', headers, body: LARGE_FILE }));
      return status !== 404; // from the older process
    });
    assert.equal(status, 200);
  }
});

/** Starts a proxy of docs/proxy.md, with TLS, on free ports, in front of the port of a page. */
type Start = (
  page: number,
  under: string,
) => Promise<{ readonly url: string; readonly plain?: string; stop(): Promise<void> }>;

const CERTIFICATE = pathTo('test/fixtures/tls/server.crt');
const KEY = pathTo('test/fixtures/tls/server.key');

const PROXIES: Readonly<Record<string, Start>> = {
  async nginx(page, under) {
    const plain = await unusedPort();
    const proxy = await startNginx((port) =>
      blockOf('docs/proxy.md', 'listen 443')
        .replace('listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`)
        .replace('listen 80;', `listen 127.0.0.1:${plain};`)
        .replace('/etc/ssl/books.example.org.pem', CERTIFICATE)
        .replace('/etc/ssl/books.example.org.key', KEY)
        .replace('location / {', `location ${under} {`)
        .replace('location /import {', `location ${under}import {`)
        .replace('127.0.0.1:8082;', `127.0.0.1:${page}${under === '/' ? '' : '/'};`)
        .replace('127.0.0.1:8082;', `127.0.0.1:${page}${under === '/' ? '' : '/import'};`),
    );
    return { ...proxy, url: `https://localhost:${proxy.port}`, plain: `http://127.0.0.1:${plain}` };
  },
  async Caddy(page, under) {
    const port = await unusedPort();
    const block = blockOf('docs/proxy.md', 'flush_interval')
      .replace('books.example.org', `https://localhost:${port}`)
      .replace('reverse_proxy 127.0.0.1:8082', `reverse_proxy 127.0.0.1:${page}`)
      .replace('{\n', `{\n\ttls ${CERTIFICATE} ${KEY}\n`)
      .replace(/\treverse_proxy [\s\S]*\t\}\n/, (all) => `\thandle_path ${under}* {\n${all}\t}\n`);
    const { stop } = await startCaddy(port, block);
    return { url: `https://localhost:${port}`, stop };
  },
};

const WAITED: Readonly<Record<string, Start>> = {
  ...PROXIES,
  async 'deploy/nginx.conf'(page) {
    return startNginx((port) => documented(port, [page, page]));
  },
};

const AUTHORITY = readFileSync(pathTo('test/fixtures/tls/authority.crt'), 'utf8');
setDefaultCACertificates([...getCACertificates(), AUTHORITY]);

for (const [name, start] of Object.entries(PROXIES)) {
  for (const path of ['/', '/catalogue/']) {
    test(`rules 29 and 34: page and calls share one name, with TLS, behind the documented ${name}, at ${path}`, async () => {
      const service = await startServiceProcess(await SQLITE.freshUrl(), TRUSTING);
      const proxy = await start(pageOf(service).port, path);
      const ask = (url: string, init: RequestInit = {}) => fetch(new URL(url, `${proxy.url}${path}`), init);
      if (proxy.plain !== undefined) {
        const moved = await fetch(`${proxy.plain}/?q=emma`, { redirect: 'manual' });
        assert.deepEqual([moved.status, moved.headers.get('location')], [301, 'https://127.0.0.1/?q=emma']);
      }
      const index = await ask('.');
      assert.equal(index.headers.get('content-type'), 'text/html; charset=utf-8');
      const known = await ask('.', { headers: { 'if-none-match': index.headers.get('etag') ?? '' } });
      assert.equal(known.status, 304);
      const [, main = ''] = /src="([^"]+)"/.exec(await index.text()) ?? [];
      const file = await ask(main, { headers: { 'accept-encoding': 'gzip' } });
      assert.equal(file.headers.get('content-encoding'), 'gzip');
      const post = (url: string, body: string, headers = {}) => ask(url, { method: 'POST', headers, body });
      const login = await post('token', '{"username":"librarian","password":"correct horse"}');
      const headers = { authorization: JSON.parse(await login.text()).data.token };
      const books = `[${Array.from({ length: 10_000 }, () => '{"title":"through the proxy"}').join()}]`;
      assert.equal((await post('books', books, headers)).status, 201);
      for (const [url, count] of [
        ['books?q=proxy&limit=1', 1],
        ['books', 10_000],
      ] as const)
        assert.equal(JSON.parse(await (await ask(url, { headers })).text()).data.length, count);
      const { data } = JSON.parse(await (await post('import?dry-run', LARGE_FILE, headers)).text());
      assert.equal(data.figures.rows, 18_000);
      assert.equal((await post(`import/${data.import}?dry-run`, '', headers)).status, 200);
      await untilRefused(async (headers, body) => (await post('token', body, headers)).status);
    });
  }
}

test('rule H3: the longest wait for a change, answered some seconds late, is answered behind every documented proxy', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl(), TRUSTING);
  const headers = { authorization: service.client.token, prefer: 'wait=60' };
  const behind = Object.entries(WAITED).map(async ([name, start]) => {
    let waits = 0;
    const front = await startFront(context, (incoming, outgoing) => {
      waits += 1;
      passOn(service, incoming, outgoing, (answered) => {
        setTimeout(() => answered.pipe(outgoing.writeHead(200, answered.headers)), 5000);
      });
    });
    const proxy = await start(front.port, '/');
    const { status, headers: answered } = await fetch(`${proxy.url}/changes`, { headers });
    assert.deepEqual([status, answered.get('preference-applied'), waits], [200, 'wait=60', 1], name);
  });
  await Promise.all(behind);
});
