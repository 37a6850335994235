// Behind a real reverse proxy that keeps its connections to the service open: even if the proxy and the service parse a
// request differently, one client's bytes must never become another's request, nor one client's answer another's. Every
// raw request goes through the proxy. Needs the package nginx. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { unreadable } from '../../conformance/raw-requests.ts';
import { accepts, Connection, exchange, parseAnswers, readEnvelope, type Target } from '../support/client.ts';
import { blockOf } from '../support/documents.ts';
import { answer, startFront } from '../support/front.ts';
import { unusedPort } from '../support/ports.ts';
import { ambiguous } from '../support/raw-requests.ts';
import { pathTo } from '../support/repository.ts';
import {
  pageOf,
  type ServiceProcess,
  SQLITE,
  startServiceProcess,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const HOST = 'Host: books.test\r\n';

interface Proxy extends Target {
  /** Requests it has forwarded so far, each as its id, method and path. */
  forwarded(): string[];
  stop(): Promise<void>;
}

test('rule 29: behind the documented proxy, a client that claims a new address each time is limited', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl(), { TRUST_PROXY: '127.0.0.1' });
  context.after(() => service.stop());
  const proxy = await startNginx((folder, port) => documented(folder, port, service.port));
  context.after(() => proxy.stop());
  const statuses = await Promise.all(
    Array.from({ length: 60 }, async (_, guess) => {
      const headers = { 'x-forwarded-for': `203.0.113.${guess}` };
      const body = `{"username":"librarian","password":"guess ${guess}"}`;
      return (await fetch(`${proxy.url}/token`, { method: 'POST', headers, body })).status;
    }),
  );
  assert.equal(statuses.filter((status) => status === 401).length, 15); // ten at once, five delayed
  assert.equal(statuses.filter((status) => status === 429).length, 45);
});

test('rule 34: the page works behind the documented proxy, under a path, and while one process has another version', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl(), { TRUST_PROXY: '127.0.0.1' });
  context.after(() => service.stop());
  const older = await startFront(context, (_request, outgoing) => answer(outgoing, 404, null, 'Not found'));
  const proxy = await startNginx((folder, port) => {
    return documented(folder, port, service.port, [pageOf(service).port, older.port]);
  });
  context.after(() => proxy.stop());
  const moved = await fetch(`${proxy.url}/catalogue`, { redirect: 'manual' });
  assert.deepEqual([moved.status, moved.headers.get('location')], [301, `${proxy.url}/catalogue/`]);
  let index = new Response();
  while (index.status !== 200 || index.headers.get('content-security-policy') === null) {
    index = await fetch(`${proxy.url}/catalogue/?q=emma`); // from each process in turn
  }
  const urls = [...(await index.text()).matchAll(/ (?:href|src)="(v\/[^"]+)"/g)].map(([, url = '']) => url);
  assert.ok(urls.length > 10);
  for (const url of urls) {
    for (const headers of [{}, { 'accept-encoding': 'gzip' }]) {
      const file = await fetch(new URL(url, `${proxy.url}/catalogue/`), { headers });
      assert.equal(file.status, 200, url);
      assert.equal(file.headers.get('cache-control'), 'max-age=31536000, immutable');
      assert.ok((await file.text()).length > 0);
    }
  }
  assert.ok(older.seen.some((line) => line.startsWith('GET /v/')));
  const missing = await fetch(`${proxy.url}/catalogue/v/${'0'.repeat(16)}/x`);
  assert.deepEqual(await missing.json(), { status: 404, message: 'Not found', data: null });
});

/** Starts a proxy of docs/proxy.md, with TLS, on free ports, in front of a service. */
type Start = (
  service: ServiceProcess,
  under: string,
) => Promise<{ readonly url: string; readonly plain?: string; stop(): Promise<void> }>;

const PROXIES: Readonly<Record<string, Start>> = {
  async nginx(service, under) {
    const plain = await unusedPort();
    const block = blockOf('docs/proxy.md', 'listen 443')
      .replace('listen 80;', `listen 127.0.0.1:${plain};`)
      .replace('listen 443 ssl;', 'listen 127.0.0.1:PORT ssl;')
      .replace('/etc/ssl/books.example.org.pem', pathTo('test/fixtures/tls/server.crt'))
      .replace('/etc/ssl/books.example.org.key', pathTo('test/fixtures/tls/server.key'))
      .replace('location / {', `location ${under} {`)
      .replace('127.0.0.1:8082;', `127.0.0.1:${pageOf(service).port}${under === '/' ? '' : '/'};`);
    const proxy = await startNginx(
      (folder, port) => `
daemon off;
user root; # it keeps large bodies in the folder
pid ${folder}/nginx.pid;
events { worker_connections 512; }
http {
  access_log ${folder}/access.log;
  ${temporaryPaths(folder)}
  ${block.replace('PORT', String(port))}
}`,
    );
    return { url: `https://localhost:${proxy.port}`, plain: `http://127.0.0.1:${plain}`, stop: proxy.stop };
  },
  async Caddy(service, under) {
    const port = await unusedPort();
    const forward = `reverse_proxy 127.0.0.1:${pageOf(service).port}`;
    const block = blockOf('docs/proxy.md', 'flush_interval')
      .replace('books.example.org', `https://localhost:${port}`)
      .replace('reverse_proxy 127.0.0.1:8082', forward)
      .replace(
        '{\n',
        `{\n\ttls ${pathTo('test/fixtures/tls/server.crt')} ${pathTo('test/fixtures/tls/server.key')}\n`,
      )
      .replace(/(\treverse_proxy [\s\S]*\t\}\n)/, (all) =>
        under === '/' ? all : `\thandle_path ${under}* {\n${all}\t}\n`,
      );
    const folder = temporaryFolder();
    const file = join(folder, 'Caddyfile');
    writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${block}`);
    const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
    const caddy = spawn('caddy', ['run', '--config', file, '--adapter', 'caddyfile'], {
      env,
      stdio: 'ignore',
    });
    const failed = new Promise((_, reject) => {
      caddy.once('error', () => reject(new Error('These tests need Caddy: apt-get install caddy')));
    });
    await Promise.race([failed, waitUntil(() => accepts('127.0.0.1', port))]);
    return {
      url: `https://localhost:${port}`,
      async stop() {
        caddy.kill();
        await once(caddy, 'exit');
      },
    };
  },
};

for (const [name, start] of Object.entries(PROXIES)) {
  for (const path of ['/', '/catalogue/']) {
    test(`rules 29 and 34: page and calls share one name, with TLS, behind the documented ${name}, at ${path}`, async (context) => {
      const settings = { HOST: '127.0.0.1', TRUST_PROXY: '127.0.0.1' };
      const service = await startServiceProcess(await SQLITE.freshUrl(), settings);
      context.after(() => service.stop());
      const proxy = await start(service, path);
      context.after(() => proxy.stop());
      const ask = (url: string | URL, options: Asked = {}) =>
        askWithTls(new URL(url, `${proxy.url}${path}`), options);
      if (proxy.plain !== undefined) {
        const moved = await fetch(`${proxy.plain}/?q=emma`, { redirect: 'manual' });
        assert.deepEqual([moved.status, moved.headers.get('location')], [301, 'https://127.0.0.1/?q=emma']);
      }
      const index = await ask('.');
      assert.equal(index.headers['content-type'], 'text/html; charset=utf-8');
      const known = await ask('.', { headers: { 'if-none-match': String(index.headers.etag) } });
      assert.equal(known.status, 304);
      const [, main = ''] = /src="([^"]+)"/.exec(index.body) ?? [];
      const file = await ask(main, { headers: { 'accept-encoding': 'gzip' } });
      assert.equal(file.headers['content-encoding'], 'gzip');
      const login = await ask('token', {
        method: 'POST',
        body: '{"username":"librarian","password":"correct horse"}',
      });
      const headers = { authorization: JSON.parse(login.body).data.token };
      const books = `[${Array.from({ length: 10_000 }, () => '{"title":"through the proxy"}').join()}]`;
      assert.equal((await ask('books', { method: 'POST', headers, body: books })).status, 201);
      const found = await ask('books?q=proxy&limit=1', { headers });
      assert.equal(JSON.parse(found.body).data.length, 1);
      const list = await ask('books', { headers });
      assert.equal(JSON.parse(list.body).data.length, 10_000);
      const guess = () =>
        ask('token', {
          method: 'POST',
          headers: { 'x-forwarded-for': `203.0.113.${Math.floor(Math.random() * 250)}` },
          body: '{"username":"librarian","password":"a guess"}',
        });
      const statuses = (await Promise.all(Array.from({ length: 30 }, guess))).map(({ status }) => status);
      assert.equal(statuses.filter((status) => status === 429).length, 15); // a claimed address does not count
    });
  }
}

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends a request to a server that has the certificate of these tests. */
async function askWithTls(url: URL, { method = 'GET', headers = {}, body = '' }: Asked) {
  const ca = readFileSync(pathTo('test/fixtures/tls/authority.crt'));
  const length = body === '' ? {} : { 'content-length': Buffer.byteLength(body) };
  const outgoing = request(url, { method, headers: { ...headers, ...length }, ca, agent: false });
  outgoing.end(body);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks).toString() };
}

describe('behind nginx', () => {
  let service: ServiceProcess;
  let proxy: Proxy;
  let authorization: string;

  before(async () => {
    service = await startServiceProcess(await SQLITE.freshUrl());
    proxy = await startNginx((folder, port) => configuration(folder, port, service.port));
    authorization = `Authorization: ${service.client.token}\r\n`;
  });
  after(async () => {
    await proxy?.stop();
    await service?.stop();
  });

  /** Requests one book; fails unless exactly that is answered. */
  async function assertHonest(connection: Connection, id: number, name: string): Promise<void> {
    const count = parseAnswers(connection.received).length;
    const requestId = `honest-${id}-${count}`;
    const headers = `${HOST}${authorization}X-Request-Id: ${requestId}\r\n`;
    await connection.send(`GET /book/${id} HTTP/1.1\r\n${headers}\r\n`);
    const answer = (await connection.answers(count + 1))[count];
    assert.equal(answer?.status, 200, name);
    assert.equal(answer?.headers['x-request-id'], requestId, name);
    assert.equal(readEnvelope(answer?.body ?? '', 200).data.id, id, name);
    assert.equal(parseAnswers(connection.received).length, count + 1, name);
  }

  /** Raw requests, each followed by a smuggled removal that must not be carried out. */
  function attacks(victim: number): [string, Uint8Array][] {
    const smuggled = `DELETE /book/${victim} HTTP/1.1\r\n${HOST}${authorization}\r\n`;
    return [...unreadable(HOST), ...ambiguous(HOST, authorization, smuggled)].flatMap(([name, bytes]) => {
      const raw = Buffer.from(bytes as Uint8Array);
      const all: [string, Uint8Array][] = [[name, raw]];
      // If one side reads the request as incomplete and the other as complete, the removal would become a request.
      if (raw.includes('Transfer-Encoding') || raw.includes('Content-Length')) {
        all.push([`${name}, cut short`, raw.subarray(0, -2)]);
      }
      return all;
    });
  }

  test('rules 9 and 20: after each hostile request every client still gets its own answers', async () => {
    const { client } = service;
    const victim = await client.create({ title: 'victim' });
    const own = [await client.create({ title: 'one' }), await client.create({ title: 'other' })];
    const others = own.map(() => new Connection(proxy));
    const stored = (await client.list()).length;
    for (const [name, bytes] of attacks(victim.id)) {
      const attacker = new Connection(proxy);
      attacker.socket.write(bytes);
      // The proxy may wait for more bytes: the other clients continue meanwhile, on the connections that it shares.
      for (const [position, connection] of others.entries()) {
        await assertHonest(connection, (own[position] as { id: number }).id, name);
      }
      const same = new Connection(proxy);
      await assertHonest(same, (own[0] as { id: number }).id, name);
      same.socket.destroy();
      attacker.socket.destroy();
      await attacker.closed;
      for (const { status, headers, body } of parseAnswers(attacker.received)) {
        if (headers['x-request-id'] !== undefined) readEnvelope(body, status); // else the proxy's own
      }
    }
    for (const connection of others) connection.socket.destroy();
    const books = await client.list();
    assert.ok(
      books.some(({ id }) => id === victim.id),
      'the smuggled removal was carried out',
    );
    assert.ok(
      books.slice(stored).every(({ title }) => title === ''),
      'an incomplete request stored a book',
    );
    await assertAllForwarded();
  });

  test('rule 20: valid requests are answered in order, also on the same connection', async () => {
    const { id } = await service.client.create({ title: 'own' });
    const victim = await service.client.create({ title: 'victim' });
    const inner = `DELETE /book/${victim.id} HTTP/1.1\r\n${HOST}${authorization}\r\n`;
    const connection = new Connection(proxy);
    const bodies = [
      `Content-Length: ${inner.length}\r\n\r\n${inner}`,
      `Transfer-Encoding: chunked\r\n\r\n${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`,
      `Transfer-Encoding: CHUNKED\r\n\r\n${inner.length.toString(16)};x=y\r\n${inner}\r\n0\r\n\r\n`,
    ];
    for (const method of ['GET', 'DELETE', 'PUT', 'POST', 'PATCH', 'OPTIONS']) {
      for (const path of ['/book/abc', '/books/none', '/token', '/book']) {
        for (const body of bodies) {
          for (const token of ['', authorization]) {
            const name = `${method} ${path} ${body.slice(0, 20)}`;
            const before = parseAnswers(connection.received).length;
            await connection.send(`${method} ${path} HTTP/1.1\r\n${HOST}${token}${body}`);
            const answer = (await connection.answers(before + 1))[before];
            assert.ok(answer !== undefined && answer.status >= 400 && answer.status < 500, name);
            readEnvelope(answer.body, answer.status);
            await assertHonest(connection, id, name);
          }
        }
      }
    }
    connection.socket.destroy();
    assert.equal((await service.client.request('GET', `/book/${victim.id}`)).status, 200);
    await assertAllForwarded();
  });

  /** Fails unless every request that the service has seen was sent by the proxy, and was seen only once. */
  async function assertAllForwarded(): Promise<void> {
    const seen = () =>
      service.log
        .map((line) => JSON.parse(line) as { msg: string; reqId: string; method: string; path: string })
        .filter(({ msg, reqId }) => msg === 'request' && isThrough(reqId))
        .map(({ reqId, method, path }) => `${reqId} ${method} ${path}`);
    const last = `the-last-one-${proxy.forwarded().length}`;
    await exchange(proxy, `GET /book/1 HTTP/1.1\r\n${HOST}${authorization}X-Request-Id: ${last}\r\n\r\n`);
    for (const requests of [seen, proxy.forwarded]) {
      await waitUntil(() => requests().some((line) => line.startsWith(last)));
    }
    const forwarded = proxy.forwarded();
    assert.ok(forwarded.length > 300, `${forwarded.length} forwarded`);
    for (const line of seen()) {
      const position = forwarded.indexOf(line);
      assert.ok(position !== -1, `never sent: ${line}`);
      forwarded.splice(position, 1); // each only once
    }
  }
});

/** Whether a request id was given by the proxy or by a client of it. */
function isThrough(reqId: string): boolean {
  return /^(nginx-|honest-|the-last-one)/.test(reqId);
}

/**
 * Starts nginx in front of a service, in a separate folder and on a separate port, with connections kept open.
 * @param configure returns the configuration of a proxy that listens on the port and runs in the folder.
 */
async function startNginx(configure: (folder: string, port: number) => string): Promise<Proxy> {
  const found = spawnSync('nginx', ['-v']);
  assert.equal(found.error, undefined, 'These tests need nginx: apt-get install nginx');
  const folder = temporaryFolder();
  const port = await unusedPort();
  for (const name of ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']) mkdirSync(join(folder, name));
  const log = join(folder, 'access.log');
  writeFileSync(join(folder, 'nginx.conf'), configure(folder, port));
  const child: ChildProcess = spawn(
    'nginx',
    ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  try {
    await waitUntil(() => {
      assert.equal(child.exitCode, null, 'nginx has exited');
      return accepts('127.0.0.1', port);
    });
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    forwarded: () => readFileSync(log, 'utf8').split('\n').slice(0, -1),
    async stop() {
      if (child.exitCode !== null) return;
      child.kill('SIGQUIT');
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

/**
 * deploy/nginx.conf, with this service behind it, inside the minimum that nginx needs.
 * @param pages ports of its page and of that of another process.
 */
function documented(folder: string, port: number, upstream: number, pages = [upstream, upstream]): string {
  const block = readFileSync(pathTo('deploy/nginx.conf'), 'utf8');
  const own = block
    .replace(/^ *server 127\.0\.0\.1:8080 .*$/m, `server 127.0.0.1:${upstream} max_fails=0;`)
    .replace(/^ *server 127\.0\.0\.1:8090 .*\n/m, '')
    .replace('127.0.0.1:8082', `127.0.0.1:${pages[0]}`)
    .replace('127.0.0.1:8092', `127.0.0.1:${pages[1]}`)
    .replace('server {\n', `server {\n listen 127.0.0.1:${port};\n`);
  return `
daemon off;
pid ${folder}/nginx.pid;
events { worker_connections 512; }
http {
  access_log ${folder}/access.log;
  ${temporaryPaths(folder)}
  ${own}
}`;
}

/** So that nginx writes into its own folder only. */
function temporaryPaths(folder: string): string {
  const names = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return names.map((name) => `${name}_temp_path ${folder}/${name.replace('client_', '')};`).join(' ');
}

/** One worker with few connections to the service, so that clients share them. */
function configuration(folder: string, port: number, upstream: number): string {
  return `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
events { worker_connections 512; }
http {
  ${temporaryPaths(folder)}
  map $http_x_request_id $forwarded_id { '' 'nginx-$request_id'; default $http_x_request_id; }
  map $upstream_addr $was_forwarded { '' 0; default 1; }
  log_format sent escape=none '$forwarded_id $request_method $request_uri';
  access_log ${folder}/access.log sent if=$was_forwarded;
  upstream books { server 127.0.0.1:${upstream}; keepalive 2; }
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 8m;
    ignore_invalid_headers off;
    location / {
      proxy_pass http://books;
      proxy_http_version 1.1;
      proxy_request_buffering off;
      proxy_set_header Connection "";
      proxy_set_header X-Request-Id $forwarded_id;
    }
  }
}
`;
}
