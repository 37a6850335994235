// The description of the API: its form, its examples, and the methods of each path. Every exchange of the conformance kit in tests
// is compared with it (test/support/verified.ts), and that each description has an answer (test/contract/keeping.ts).

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { Client, exchange } from '../support/client.ts';
import { type CommandHere, startHere } from '../support/command.ts';
import { API, checkOf, DOCUMENT, type Document, isMessage, messagesOf } from '../support/description.ts';
import { operationsOf } from '../support/operations.ts';
import { pathTo } from '../support/repository.ts';
import { ENVIRONMENT, temporaryFolder } from '../support/service.ts';

const folder = temporaryFolder();

describe('the description of the API', () => {
  let service: CommandHere;

  before(async () => {
    const env = { DB_URL: `sqlite:${join(folder, 'books.db')}`, ADMIN_PORT: '0', LOG_LEVEL: 'info' };
    service = await startHere({ ...ENVIRONMENT, ...env });
  });

  test('is valid OpenAPI 3.1, without any finding of a linter', async () => {
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
    const operations = operationsOf(service);
    for (const [host, url] of [
      ['127.0.0.1:1', `http://127.0.0.1:${port}`],
      ['localhost', `http://localhost:${port}`],
      ['[::1]:8081', `http://[::1]:${port}`],
    ] as const) {
      const [answer] = await exchange(operations, `GET /openapi.json HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      assert.equal(answer?.headers['content-type'], 'application/json; charset=utf-8');
      const document = JSON.parse(Buffer.from(String(answer?.body), 'latin1').toString());
      assert.deepEqual(document, { ...DOCUMENT, servers: [{ ...DOCUMENT.servers[0], url }] });
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
      for (const { examples } of Object.values<Document>(content ?? {}))
        assert.ok(Object.keys(examples).length > 0);
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
    for (const schema of Object.values<object>(API.components.schemas)) checkOf(schema);
  });

  test('rules F2 and F3: describes the parameters of a search, with examples that find a book', async () => {
    const client = await Client.logIn(service);
    const { examples } = API.paths['/book'].post.requestBody.content['application/json'];
    await client.create({}); // the cursor of the example comes after the first book
    const book = await client.create(examples.book.value);
    const ask = async (parameters: Record<string, string>, headers: Record<string, string> = {}) => {
      return await client.request('GET', `/books?${new URLSearchParams(parameters)}`, { headers });
    };
    const parameters: Document[] = API.paths['/books'].get.parameters;
    assert.deepEqual(API.paths['/books'].head.parameters, parameters);
    const [inQuery = [], [id, prefer] = []] = ['query', 'header'].map((place) => {
      return parameters.filter((parameter) => parameter.in === place);
    });
    assert.deepEqual([inQuery.length, id.name, prefer.name], [15, 'X-Request-Id', 'Prefer']);
    for (const { name, schema, required } of inQuery) {
      assert.ok(!required && !('default' in schema), name); // without parameters, it is the list
      const { status, data } = await ask({ [name]: schema.examples[0] });
      assert.equal(status, 200, name);
      assert.ok(
        ['offset', 'event'].includes(name) || data.some((found: { id: number }) => found.id === book.id),
        name,
      );
      const { type, minimum, maximum, maxLength = 0 } = schema;
      const [allowed, beyond] =
        type === 'integer'
          ? [
              [minimum, maximum],
              [BigInt(minimum) - 1n, BigInt(maximum) + 1n, '', '1.5'],
            ]
          : [maxLength ? ['x'.repeat(maxLength)] : [], [maxLength ? 'x'.repeat(maxLength + 1) : '']];
      for (const value of allowed) assert.equal((await ask({ [name]: String(value) })).status, 200, name);
      for (const value of beyond) {
        const { status, message } = await ask({ [name]: String(value) });
        assert.deepEqual([status, message], [400, `Invalid query parameter: ${name}`]);
      }
    }
    const alone = ['cursor', 'offset', 'event'];
    const together = inQuery.filter(({ name }) => !alone.includes(name));
    const values = Object.fromEntries(together.map(({ name, schema }) => [name, schema.examples[0]]));
    const all = await ask(values, { [prefer.name]: prefer.schema.examples[0] });
    assert.deepEqual([all.data, all.headers.get('preference-applied')], [[book], 'count=exact']);
  });

  test('rule 24: describes which ids a request may have', () => {
    const { schema } = DOCUMENT.components.parameters.RequestId;
    const isDescribed = checkOf(schema);
    for (const id of ['a', '7', 'AZaz09_.:-', 'x'.repeat(128)]) assert.ok(isDescribed(id), id);
    for (const id of ['', 'x'.repeat(129), 'a b', 'a/b', 'a@b', '\u00e9']) assert.ok(!isDescribed(id), id);
  });
});

function walk(value: unknown, visit: (node: object) => void): void {
  if (typeof value !== 'object' || value === null) return;
  visit(value);
  for (const item of Object.values(value)) walk(item, visit);
}
