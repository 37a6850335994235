// Behind real reverse proxies that share their connections to the service between clients: proxy and service see the same requests,
// whatever a client sends. The proxy writes an id into the head of each request that it sees; a relay before the service keeps what
// passes. Needs the packages nginx, haproxy and caddy. Titles name the rules of docs/contract.md.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { RawAnswer } from '../../conformance/answers.ts';
import { anyRequests } from '../support/any-http.ts';
import { Client, Connection, readEnvelope, type Target } from '../support/client.ts';
import { blockOf } from '../support/documents.ts';
import { CASES, HEADER_LIMIT } from '../support/http-cases.ts';
import { readByService } from '../support/http-readers.ts';
import { unusedPort } from '../support/ports.ts';
import { seed } from '../support/random.ts';
import { ENVIRONMENT, SQLITE, startCommand } from '../support/service.ts';
import { documented, type ReverseProxy, startCaddy, startHaproxy, startNginx } from './proxies.ts';

/** Random inputs for each proxy. */
const RANDOM = 2000;

/** Behind each input, on the same connection: if someone takes it for a part of a body, it must be so for all. */
const MARKER = 'GET /marker HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n';

/** The id of a request: the port of its client, and what no client can guess. */
const ID = /^\d+-[0-9a-f-]{32,36}$/i;

/** Starts a proxy in front of this port. */
type Start = (service: number) => Promise<ReverseProxy>;

const PROXIES: Readonly<Record<string, Start>> = {
  nginx: (service) =>
    startNginx((port) => documented(port, [service]).replace(/^server \{$/m, `$&\n${NOTED_BY_NGINX}`)),
  'an nginx that passes on what it can': (service) =>
    startNginx((port) => passing(port, service, NOTED_BY_NGINX)),
  HAProxy: (service) => withoutChecks(service),
  'a HAProxy that passes on what it can': (service) =>
    withoutChecks(service, 'option accept-invalid-http-request'),
  Caddy: async (service) => {
    const port = await unusedPort();
    const id = '{http.request.remote.port}-{http.request.uuid}';
    const noted = `\trequest_header X-Request-Id "${id}"\n\trequest_header X-Seen "${id} {http.request.method} {http.request.uri}"\n`;
    const block = blockOf('docs/proxy.md', 'flush_interval')
      .replace('books.example.org', `http://:${port}`)
      .replace('127.0.0.1:8082', `127.0.0.1:${service}`)
      .replace('{\n', `{\n${noted}`);
    return { ...(await startCaddy(port, block)), url: `http://127.0.0.1:${port}`, port };
  },
  'HAProxy and nginx': async (service) => {
    const inner = await startNginx((port) => passing(port, service));
    const outer = await withoutChecks(inner.port);
    const stop = async () => {
      await outer.stop();
      await inner.stop();
    };
    return { ...outer, stop };
  },
};

const NOTED_BY_NGINX = `
    proxy_set_header X-Request-Id $remote_port-$request_id;
    proxy_set_header X-Seen "$remote_port-$request_id $request_method $request_uri";`;

const NOTED_BY_HAPROXY = `
  http-request set-header X-Request-Id %[src_port]-%[unique-id]
  http-request set-header X-Seen "%[src_port]-%[unique-id] %[method] %[url]"`;

/** An nginx that does not wait for the end of a body and keeps headers that others drop. */
function passing(port: number, service: number, more = ''): string {
  return `
  upstream books { server 127.0.0.1:${service}; keepalive 2; }
  server {
    listen 127.0.0.1:${port};
    ignore_invalid_headers off;
    location / {
      proxy_pass http://books;
      proxy_http_version 1.1;
      proxy_request_buffering off;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;${more}
    }
  }`;
}

/** deploy/haproxy.cfg without TLS and health checks. */
const withoutChecks = (service: number, option = ''): Promise<ReverseProxy> =>
  startHaproxy([
    ['check port 8081', 'no-check'],
    [
      'option redispatch 1',
      `option redispatch 1\n  http-reuse always\n  unique-id-format %[uuid()]\n  ${option}`,
    ],
    ['10.0.0.11:8080', `127.0.0.1:${service}`],
    ['10.0.0.12:8080', `127.0.0.1:${service}`],
    ['http-request set-header X-F', `${NOTED_BY_HAPROXY}\n  http-request set-header X-F`],
  ]);

/** What passed on a connection between proxy and service, one character for each byte. */
interface Passed {
  sent: string;
  answered: string;
}

/** Relays connections to the service. */
async function startRelay(context: TestContext, to: Target): Promise<{ port: number; passed: Passed[] }> {
  const passed: Passed[] = [];
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (proxy) => {
    const one: Passed = { sent: '', answered: '' };
    passed.push(one);
    const service = connect({ port: to.port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    for (const [from, on, part] of [
      [proxy, service, 'sent'],
      [service, proxy, 'answered'],
    ] as const) {
      from.on('data', (bytes) => {
        one[part] += bytes.toString('latin1');
      });
      from.pipe(on);
      from.on('error', () => on.destroy());
      from.on('close', () => on.destroySoon());
    }
    context.after(() => proxy.destroy());
  }).listen(0, '127.0.0.1');
  context.after(() => server.close());
  await once(server, 'listening');
  return { port: (server.address() as { port: number }).port, passed };
}

/** What the proxy writes into the head of each request: the id, the method and the target. */
const NOTES = /^x-seen: (\d+-[0-9a-f-]{32,36}) (\S+) (.*)\r$/gim;
const ANSWER_IDS = /^x-request-id: (\S+)\r$/gim;

const idsIn = (answers: string) => [...answers.matchAll(ANSWER_IDS)].map(([, id]) => id as string);

for (const [name, start] of Object.entries(PROXIES)) {
  test(`rules 9 and 20: ${name} and the service see the same requests, and each client gets the answers to its own`, async (context) => {
    const service = await startCommand({
      ...ENVIRONMENT,
      DB_URL: await SQLITE.freshUrl(),
      LOG_LEVEL: 'info',
      HEADER_LIMIT: `${HEADER_LIMIT}`,
    });
    const relay = await startRelay(context, service);
    const proxy = await start(relay.port);
    const client = await Client.logIn(proxy);
    const books = [await client.create({ title: 'one' }), await client.create({ title: 'other' })];
    const received: [port: number, text: string][] = [];
    const inputs = [...CASES.map(([, text]) => text), ...fc.sample(anyRequests, { numRuns: RANDOM, seed })];
    for (const [position, text] of inputs.entries()) {
      const input = text.replaceAll(/POST \/p? /g, 'POST /token '); // whose body is read
      const attacker = new Connection(proxy);
      await once(attacker.socket, 'connect');
      const port = attacker.socket.localPort as number;
      attacker.socket.write(Buffer.from(input + MARKER, 'latin1'));
      for (const { id } of books) {
        const use = useBook(proxy, client, id, position);
        received.push(
          await use.catch((cause) => Promise.reject(new Error(`behind ${JSON.stringify(input)}`, { cause }))),
        );
      }
      // Some wait for more bytes.
      if (position % 2 === 0) attacker.socket.end();
      else attacker.close();
      await attacker.closed;
      received.push([port, attacker.received]);
    }
    await proxy.stop();
    await service.stop();
    const count = await judge(relay.passed, service.log, received);
    assert.ok(count > 4.5 * inputs.length, `the proxy saw ${count} requests for ${inputs.length} inputs`);
  });
}

/** Changes and reads a book, as another client, which gets exactly this book. @returns its port and what it has received. */
async function useBook(
  proxy: Target,
  { token }: Client,
  id: number,
  round: number,
): Promise<[number, string]> {
  const connection = new Connection(proxy);
  const title = `title ${round} of ${id}`;
  const head = (method: string) =>
    `${method} /book/${id} HTTP/1.1\r\nHost: test\r\nAuthorization: ${token}\r\n`;
  const body = JSON.stringify({ title });
  const cut = 1 + (round % 9);
  const chunks = [body.slice(0, cut), body.slice(cut), ''].map(
    (part) => `${part.length.toString(16)}\r\n${part}\r\n`,
  );
  const requests = [
    `${head('PUT')}Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}`,
    `${head('GET')}\r\n`,
  ];
  for (const [position, request] of requests.entries()) {
    await connection.send(request);
    const answer = (await connection.rawAnswers(position + 1))[position] as RawAnswer;
    const { data } = readEnvelope(answer.body, 200);
    assert.deepEqual([answer.status, data.id, data.title], [200, id, title]);
  }
  const port = connection.socket.localPort as number;
  connection.close();
  return [port, connection.received];
}

/** Of a target in any form, as the service logs it. */
const pathOf = (target: string) => target.replace(/^https?:\/\/[^/?]*/i, '').replace(/\?.*/, '') || '/';

/**
 * @param log of the service.
 * @param received what each client got, by its port.
 * @returns how many requests the proxy saw.
 */
async function judge(
  passed: readonly Passed[],
  log: readonly string[],
  received: readonly [number, string][],
): Promise<number> {
  const seen = new Map<string, string>();
  const refusals = new Set<string>();
  let answers = 0;
  for (const { sent, answered } of passed) {
    const notes = [...sent.matchAll(NOTES)];
    const ids = idsIn(answered);
    answers += ids.length;
    const what = JSON.stringify({ sent: sent.slice(-3000), answered: answered.slice(-3000) });
    assert.ok(ids.length <= notes.length, `an answer to nothing: ${what}`);
    for (const [position, { 1: id = '', 2: method, 3: target = '', index }] of notes.entries()) {
      seen.set(id, `${method} ${pathOf(target)}`);
      const answer = ids[position];
      if (answer === undefined || answer === id) continue;
      assert.ok(!ID.test(answer), `the answer to another request: ${what}`);
      refusals.add(answer);
      assert.equal(position, ids.length - 1, `an answer behind a refusal: ${what}`);
      const starts = [target, pathOf(target)].map((text) => sent.lastIndexOf(`${method} ${text}`, index));
      const alone = await readByService([Buffer.from(sent.slice(Math.max(...starts)), 'latin1')]);
      assert.deepEqual(alone.requests, [], `refused, but alone it is read: ${what}`);
    }
  }
  for (const line of log) {
    const { reqId, method, path } = JSON.parse(line);
    if (method !== undefined) assert.equal(`${method} ${pathOf(path)}`, seen.get(reqId), line);
  }
  for (const [port, text] of received) {
    for (const id of idsIn(text))
      assert.ok(
        ID.test(id) ? id.startsWith(`${port}-`) : refusals.delete(id),
        `the answer to another client: ${text}`,
      );
  }
  assert.ok(answers > 10 * passed.length, `${answers} answers on ${passed.length} connections`);
  return seen.size;
}
