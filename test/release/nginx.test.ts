// Behind real reverse proxies. One that keeps its connections to the service open and parses a request differently must never
// make one client's bytes another's request, nor one client's answer another's; the documented ones must do what the documents
// say. Needs the packages nginx and caddy. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { RawAnswer } from '../../conformance/answers.ts';
import { CHUNKED, unreadable } from '../../conformance/raw-requests.ts';
import { accepts, Client, Connection, parseAnswers, readEnvelope, type Target } from '../support/client.ts';
import { blockOf } from '../support/documents.ts';
import { answer, passOn, startFront } from '../support/front.ts';
import { Load } from '../support/load.ts';
import { unusedPort } from '../support/ports.ts';
import { HOST } from '../support/raw-requests.ts';
import { pathTo } from '../support/repository.ts';
import {
  pageOf,
  type ServiceProcess,
  SQLITE,
  startServiceProcess,
  temporaryFolder,
} from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { startProgram, untilRefused } from './programs.ts';

const TRUSTING = { HOST: '127.0.0.1', TRUST_PROXY: '127.0.0.1' };

/** Processes that are replaced behind nginx, and writes after which each connection that it keeps has been used. */
const REPLACEMENTS = 6;
const SOME = 100;

test('rules 29, 32 and 34: deploy/nginx.conf counts the logins of a client, lets the page log in, and has the page under a path while one process has another version', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl(), TRUSTING);
  context.after(() => service.stop());
  const older = await startFront(context, (_request, outgoing) => answer(outgoing, 404, null, 'Not found'));
  const pages = [pageOf(service).port, older.port];
  const proxy = await startNginx((port) => documented(port, [service.port], pages));
  context.after(() => proxy.stop());
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
  assert.ok(urls.length > 10);
  for (const url of urls) {
    const file = await fetch(new URL(url, `${proxy.url}/catalogue/`));
    assert.deepEqual([file.status, file.headers.get('cache-control')], [200, 'max-age=31536000, immutable']);
    assert.ok((await file.text()).length > 0);
  }
  assert.ok(older.seen.some((line) => line.startsWith('GET /v/')));
  const missing = await fetch(`${proxy.url}/catalogue/v/${'0'.repeat(16)}/x`);
  assert.deepEqual(await missing.json(), { status: 404, message: 'Not found', data: null });
});

test('rule 27: no request is lost while processes are replaced with the steps of docs/proxy.md', async (context) => {
  const dbUrl = await SQLITE.freshUrl();
  const start = async (port: number): Promise<ServiceProcess> => {
    const service = await startServiceProcess(dbUrl, { PORT: `${port}`, ADMIN_PORT: '0', PAGE_PORT: '0' });
    context.after(() => service.process.kill('SIGKILL'));
    return service;
  };
  const ports = [await unusedPort(), await unusedPort()];
  const services = await Promise.all(ports.map(start));
  // A reload closes connections that are idle: each of the clients' has one request.
  const configure = (port: number, chosen: readonly number[]) =>
    `keepalive_timeout 0;\n${documented(port, chosen)}`;
  const proxy = await startNginx((port) => configure(port, ports));
  context.after(() => proxy.stop());
  const load = await Load.start(context, await Client.logIn(proxy));
  for (let replaced = 0; replaced < REPLACEMENTS; replaced += 1) {
    await load.moreWrites(SOME);
    const leaving = services.shift() as ServiceProcess;
    const staying = ports.filter((port) => port !== leaving.port);
    await proxy.reload(configure(proxy.port, staying));
    await leaving.stop();
    assert.equal(leaving.process.exitCode, 0);
    services.push(await start(leaving.port));
    await proxy.reload(configure(proxy.port, ports));
  }
  await load.moreWrites(SOME);
  await load.stop();
  assert.equal(load.unavailable, 0);
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
        .replace('127.0.0.1:8082;', `127.0.0.1:${page}${under === '/' ? '' : '/'};`),
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
    const home = temporaryFolder();
    const file = join(home, 'Caddyfile');
    writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${block}`);
    const command = ['caddy', 'run', '--config', file, '--adapter', 'caddyfile'];
    const env = { ...process.env, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home };
    const { stop } = await startProgram(command, () => accepts('127.0.0.1', port), env);
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
    test(`rules 29 and 34: page and calls share one name, with TLS, behind the documented ${name}, at ${path}`, async (context) => {
      const service = await startServiceProcess(await SQLITE.freshUrl(), TRUSTING);
      context.after(() => service.stop());
      const proxy = await start(pageOf(service).port, path);
      context.after(() => proxy.stop());
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
      await untilRefused(async (headers, body) => (await post('token', body, headers)).status);
    });
  }
}

test('rule H3: the longest wait for a change, answered some seconds late, is answered behind every documented proxy', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl(), TRUSTING);
  context.after(() => service.stop());
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
    context.after(() => proxy.stop());
    const { status, headers: answered } = await fetch(`${proxy.url}/changes`, { headers });
    assert.deepEqual([status, answered.get('preference-applied'), waits], [200, 'wait=60', 1], name);
  });
  await Promise.all(behind);
});

test('rules 9 and 20: behind an nginx whose connections to the service clients share, after each hostile request every client still gets its own answers', async (context) => {
  const service = await startServiceProcess(await SQLITE.freshUrl());
  context.after(() => service.stop());
  const proxy = await startNginx((port) => SHARING(port, service.port));
  context.after(() => proxy.stop());
  const { client } = service;
  const authorization = `Authorization: ${client.token}\r\n`;
  const victim = await client.create({ title: 'victim' });
  const own = [await client.create({ title: 'one' }), await client.create({ title: 'other' })];
  const stored = await client.list();

  /** Requests one book; fails unless exactly that is answered. */
  async function assertHonest(connection: Connection, id: number, name: string): Promise<void> {
    const { length } = parseAnswers(connection.received);
    const headers = `${HOST}${authorization}X-Request-Id: honest-${id}-${length}\r\n`;
    await connection.send(`GET /book/${id} HTTP/1.1\r\n${headers}\r\n`);
    const answer = (await connection.answers(length + 1))[length] as RawAnswer;
    assert.deepEqual([answer.status, answer.headers['x-request-id']], [200, `honest-${id}-${length}`], name);
    assert.equal(readEnvelope(answer.body, 200).data.id, id, name);
  }

  const smuggled = `DELETE /book/${victim.id} HTTP/1.1\r\n${HOST}${authorization}\r\n`;
  const attacks = [...unreadable(HOST), ...ambiguous(HOST, authorization, smuggled)].flatMap(([, bytes]) => {
    const whole = Buffer.from(bytes as Uint8Array);
    // If one side reads the request as incomplete and the other as complete, the removal would become a request.
    return /Transfer-Encoding|Content-Length/.test(`${whole}`) ? [whole, whole.subarray(0, -2)] : [whole];
  });
  assert.ok(attacks.length > 100);
  const others = own.map(({ id }) => ({ id, connection: new Connection(proxy) }));
  for (const bytes of attacks) {
    const attacker = new Connection(proxy);
    attacker.socket.write(bytes);
    const same = new Connection(proxy);
    // The proxy may wait for more bytes: the other clients continue meanwhile, on the connections that it shares.
    for (const { id, connection } of [...others, { id: victim.id, connection: same }])
      await assertHonest(connection, id, `${bytes}`);
    same.socket.destroy();
    attacker.socket.destroy();
    await attacker.closed;
    for (const { status, headers, body } of parseAnswers(attacker.received))
      if (headers['x-request-id'] !== undefined) readEnvelope(body, status); // else the proxy's own
  }
  for (const { connection } of others) connection.socket.destroy();
  const books = await client.list();
  assert.deepEqual(books.slice(0, stored.length), stored);
  assert.ok(
    books.slice(stored.length).every(({ title }) => title === ''),
    'an incomplete request stored a book',
  );
});

interface Nginx extends Target {
  /** Resolves once no process of it has the earlier configuration. */
  reload(http: string): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts nginx in a separate folder, on a free port.
 * @param configure returns what its http section has, for this port.
 */
async function startNginx(configure: (port: number) => string): Promise<Nginx> {
  const folder = temporaryFolder();
  const port = await unusedPort();
  const file = join(folder, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => {
    mkdirSync(join(folder, name));
    return `${name}_temp_path ${folder}/${name};`;
  });
  const write = (http: string) => {
    const whole = `daemon off;
user root; # it keeps large bodies in the folder
pid ${folder}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  ${temporary.join(' ')}
  ${http}
}`;
    writeFileSync(file, whole);
  };
  write(configure(port));
  const { pid, signal, stop } = await startProgram(
    ['nginx', '-p', folder, '-c', file, '-e', join(folder, 'error.log')],
    () => accepts('127.0.0.1', port),
  );
  const workers = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    stop,
    async reload(http) {
      const old = workers();
      write(http);
      signal('SIGHUP');
      await waitUntil(() => {
        const now = workers();
        return now.length > 0 && !now.some((pid) => old.includes(pid));
      });
    },
  };
}

/**
 * deploy/nginx.conf on a port, with these processes behind it.
 * @param ports of their API.
 * @param pages ports of the pages of two processes.
 */
function documented(port: number, ports: readonly number[], pages = [1, 1]): string {
  return readFileSync(pathTo('deploy/nginx.conf'), 'utf8')
    .replace(
      /^ *server 127\.0\.0\.1:8080 (.*)\n.*:8090 .*$/m,
      ports.map((port) => `  server 127.0.0.1:${port} $1`).join('\n'),
    )
    .replace('127.0.0.1:8082', `127.0.0.1:${pages[0]}`)
    .replace('127.0.0.1:8092', `127.0.0.1:${pages[1]}`)
    .replace('server {\n', `server {\n  listen 127.0.0.1:${port};\n`);
}

/** A proxy with few connections to the service, so that clients share them. */
const SHARING = (port: number, service: number) => `
  upstream books { server 127.0.0.1:${service}; keepalive 2; }
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 8m;
    ignore_invalid_headers off;
    location / {
      proxy_pass http://books;
      proxy_http_version 1.1;
      proxy_request_buffering off;
      proxy_set_header Connection "";
    }
  }`;

/**
 * Requests that two programs might parse differently: one reads the smuggled request as part of the body, the other as
 * the next request.
 */
function ambiguous(host: string, authorization: string, smuggled: string): [string, string][] {
  const length = (count: number) => `Content-Length: ${count}\r\n`;
  const post = (headers: string, body: string) =>
    `POST /book HTTP/1.1\r\n${host}${authorization}${headers}\r\n${body}`;
  const whole = `2\r\n{}\r\n0\r\n\r\n${smuggled}`;
  const name = 'Transfer-Encoding';
  const chunked = [
    ...[`${name}: chunked`, `${name}:chunked`, `${name}: Chunked `, `${name}:\tchunked`, `${name} : chunked`],
    ...[` ${name}: chunked`, `X: y\n${name}: chunked`, `X: y\r${name}: chunked`, `${name}:\r\n chunked`],
    ...[`${name}: gzip, chunked`, `${name}: chunked, identity`, `${name}: identity\r\n${name}: chunked`],
    ...[`${name}: chunked\r\n${name}: x`, `${name}: "chunked"`, `${name}: \x0bchunked`, `${name}: xchunked`],
    ...['Transfer_Encoding: chunked', `${name}: chunked\x00`, `${name}: chunk`, `${name};: chunked`],
  ];
  return [
    ...chunked.flatMap((line): [string, string][] => [
      [`${line} and a length after it`, post(`${line}\r\n${length(whole.length)}`, whole)],
      [`${line} and a length before it`, post(`${length(whole.length)}${line}\r\n`, whole)],
      [`${line} and a length too short`, post(`${length(4)}${line}\r\n`, `5c\r\n${whole}`)],
      [`${line} alone`, post(`${line}\r\n`, whole.slice(0, -smuggled.length))],
      [`${line} for GET`, `GET /books HTTP/1.1\r\n${host}${line}\r\n\r\n0\r\n\r\n`],
    ]),
    ['two lengths, the short one first', post(length(2) + length(2 + smuggled.length), `{}${smuggled}`)],
    ['two lengths, the long one first', post(length(2 + smuggled.length) + length(2), `{}${smuggled}`)],
    ['a list of lengths', post(`Content-Length: 2, ${2 + smuggled.length}\r\n`, `{}${smuggled}`)],
    ['a length with a sign', post('Content-Length: +2\r\n', `{}${smuggled}`)],
    ['a length with a space', post(`Content-Length : ${smuggled.length}\r\n`, smuggled)],
    ['a length in another notation', post('Content-Length: 0x2\r\n', `{}${smuggled}`)],
    ['a folded length', post(`Content-Length:\r\n ${smuggled.length}\r\n`, smuggled)],
    ['a length behind a bare LF', post(`X: y\nContent-Length: ${smuggled.length}\r\n`, smuggled)],
    [
      'a removal for a body of GET',
      `GET /books HTTP/1.1\r\n${host}${length(smuggled.length)}\r\n${smuggled}`,
    ],
    ['a removal in a chunk extension', post(CHUNKED, `2;\n${smuggled}\r\n{}\r\n0\r\n\r\n`)],
    ['a removal in a chunk', post(CHUNKED, `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`)],
    ['a removal in a trailer', post(CHUNKED, `2\r\n{}\r\n0\r\nX: y\n${smuggled}\r\n\r\n`)],
    [
      'an upgrade with a body',
      post(`Connection: Upgrade\r\nUpgrade: h2c\r\n${length(smuggled.length)}`, smuggled),
    ],
    ['an expectation with a body', post(`Expect: 100-continue\r\n${length(smuggled.length)}`, smuggled)],
    ['two hosts', `POST /book HTTP/1.1\r\n${host}${host}${length(smuggled.length)}\r\n${smuggled}`],
    ['HTTP/1.0 in chunks', `POST /book HTTP/1.0\r\n${host}${authorization}${CHUNKED}\r\n${whole}`],
  ];
}
