// Owns: reading the description of the API in tests: which answer it describes for a request, and whether an answer
// matches it.

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Exchange } from './client.ts';

// biome-ignore lint/suspicious/noExplicitAny: JSON of any form from the service; each test asserts what it must be
export type Document = any;

/** Every operation, with a path that a client can request. */
export const OPERATIONS: [method: string, path: string][] = [
  ['POST', '/token'],
  ['POST', '/book'],
  ['GET', '/books'],
  ['HEAD', '/books'],
  ['POST', '/books'],
  ['GET', '/book/1'],
  ['HEAD', '/book/1'],
  ['PUT', '/book/1'],
  ['DELETE', '/book/1'],
];

/** @param host the Host header. */
export function describedBy(url: string, host = new URL(url).host): Promise<Document> {
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

export function dereferenced(value: unknown, document: Document): Document {
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

const ajv = new Ajv2020({
  formats: { 'well-formed-text': (text: string) => !/[\p{Surrogate}\0]/u.test(text) },
});

/** @throws if the schema has an unknown keyword or format. */
export function checkOf(schema: object): ValidateFunction {
  return ajv.compile(schema);
}

export function templateOf(path: string): string {
  const [plain = ''] = path.split(/[?#]/);
  return /^\/book\/[^/]+$/.test(plain) ? '/book/{id}' : plain;
}

export function operationOf(api: Document, { method, path }: Exchange): Document {
  return api.paths[templateOf(path)]?.[method.toLowerCase()];
}

export function responsesFor(api: Document, exchange: Exchange): Document {
  return operationOf(api, exchange)?.responses ?? api['x-responses-to-other-requests'];
}

/** Fails unless status, headers and body are described for such a request. */
export function assertDescribed(api: Document, exchange: Exchange): void {
  const { method, path, status, body } = exchange;
  const name = `${method} ${path.slice(0, 60)} ${status} ${body.slice(0, 100)}`;
  const response = responsesFor(api, exchange)[status];
  assert.ok(response, `${name} is not described`);
  if (method !== 'HEAD' && status !== 304) {
    const isDescribed = checkOf(response.content['application/json'].schema);
    assert.ok(isDescribed(JSON.parse(body)), `${name}: ${JSON.stringify(isDescribed.errors)}`);
  }
  assertHeaders(exchange, response, name);
}

/** The described messages: constant ones, and the patterns of others. */
export function messagesOf({
  enum: texts = [],
  const: text,
  pattern,
  anyOf = [],
}: Document): (string | RegExp)[] {
  const own = [...texts, text, pattern && new RegExp(pattern)].filter((message) => message !== undefined);
  return [...own, ...anyOf.flatMap(messagesOf)];
}

/** @param message as the description has it. */
export function isMessage(message: string | RegExp, text: string): boolean {
  return typeof message === 'string' ? message === text : message.test(text);
}

/** Headers that only some answers have. */
const SPECIAL_HEADERS = [
  ...['etag', 'location', 'idempotent-replayed', 'www-authenticate', 'allow', 'retry-after'],
  ...['link', 'x-total-count', 'preference-applied', 'x-unindexed-books'],
];

/** Required headers must be present, described ones valid. Of those that only some answers have, no undescribed one may be. */
function assertHeaders({ headers }: Exchange, response: Document, name: string): void {
  const described = Object.entries<Document>(response.headers);
  for (const [header, { required, schema }] of described) {
    const value = headers[header.toLowerCase()];
    assert.equal(typeof required, 'boolean');
    if (!required && value === undefined) continue;
    const isDescribed = checkOf(schema);
    const isRight = isDescribed(schema.type === 'integer' ? Number(value) : value);
    assert.ok(isRight, `${name}: ${header} is ${value}`);
  }
  const names = described.map(([header]) => header.toLowerCase());
  for (const header of SPECIAL_HEADERS) {
    assert.ok(!(header in headers) || names.includes(header), `${name}: ${header}`);
  }
}
