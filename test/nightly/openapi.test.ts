// The description of the API has no answer that is never given. The traffic is that of rules of the conformance kit, and of
// requests that no rule makes.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
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
  type Document,
  isMessage,
  messagesOf,
  OPERATIONS,
  operationOf,
  templateOf,
} from '../support/description.ts';
import { inTime } from '../support/in-time.ts';
import { compose, HOST } from '../support/raw-requests.ts';
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

  test('rule 20: describes exactly the methods that each path has', () => {
    const refused = given.filter(({ status }) => status === 405);
    const seen = new Map(refused.map(({ path, headers }) => [templateOf(path), headers.allow]));
    assert.deepEqual([...seen.keys()].sort(), Object.keys(API.paths).sort());
    for (const [path, allow] of seen) {
      const methods = Object.keys(API.paths[path as string]).filter((key) => key !== 'parameters');
      assert.equal(methods.join(', ').toUpperCase(), allow);
    }
  });

  test('describes no answer that is never given', () => {
    const described: Saying[] = [];
    for (const [path, operations] of Object.entries<Document>(API.paths)) {
      for (const [method, { responses }] of Object.entries<Document>(operations)) {
        if (method !== 'parameters') described.push(...sayings(`${method.toUpperCase()} ${path}`, responses));
      }
    }
    described.push(...sayings('another request', API['x-responses-to-other-requests']));
    // timeouts.test.ts tests 408, the answer to requests that are too slow.
    const awaited = described.filter(({ name }) => !name.endsWith(' 408'));
    const missing = awaited.filter(({ name, message, headers }) => {
      const answers = given.filter((answer) => answer.name === name && isMessage(message, answer.message));
      return (
        answers.length === 0 || headers.some((header) => answers.every((one) => !(header in one.headers)))
      );
    });
    assert.deepEqual(missing, []);
    assert.ok(awaited.length > 60, `${awaited.length}`);
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

/** An answer that was given. */
interface Given {
  /** The operation and the status. */
  readonly name: string;
  readonly path: string;
  readonly status: number;
  readonly message: string;
  readonly headers: Exchange['headers'];
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
