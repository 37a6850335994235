// Owns: reading the description of the API in tests: which requests and answers it describes, and whether those of an
// exchange are among them.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Exchange } from '../../conformance/service.ts';
import { pathTo } from './repository.ts';

// biome-ignore lint/suspicious/noExplicitAny: JSON of any form from the service; each test asserts what it must be
export type Document = any;

export const DOCUMENT: Document = JSON.parse(readFileSync(pathTo('docs/openapi/openapi.json'), 'utf8'));

/** The document with every reference resolved. */
export const API: Document = dereferenced(DOCUMENT, DOCUMENT);

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

const ajv = new Ajv2020({
  formats: { 'well-formed-text': (text: string) => !/[\p{Surrogate}\0]/u.test(text) },
});

/** @throws if the schema has an unknown keyword or format. */
export function checkOf(schema: object): ValidateFunction {
  return ajv.compile(schema);
}

export function templateOf(path: string): string {
  const [plain = ''] = path.split(/[?#]/);
  return plain
    .replace(/^\/book\/[^/]+(?=$|\/history$)/, '/book/{id}')
    .replace(/^\/event\/[^/]+(?=$|\/books$)/, '/event/{event}')
    .replace(/^\/import\/[^/]+$/, '/import/{number}');
}

export function operationOf({ method, path }: Pick<Exchange, 'method' | 'path'>): Document {
  return API.paths[templateOf(path)]?.[method.toLowerCase()];
}

/**
 * Fails unless status, headers and body of the answer are described for such a request, and the body of the request exactly
 * if it was accepted.
 */
export function assertDescribed(exchange: Exchange): void {
  const { method, path, status, body } = exchange;
  const name = `${method} ${path.slice(0, 60)} ${status} ${body.slice(0, 100)}`;
  const operation = operationOf(exchange);
  const response = (operation?.responses ?? API['x-responses-to-other-requests'])[status];
  assert.ok(response, `${name} is not described`);
  assertHeaders(exchange, response, name);
  if (method === 'HEAD' || status === 304) return;
  const isDescribed = checkOf(response.content['application/json'].schema);
  const envelope = JSON.parse(body) as { message: string };
  assert.ok(isDescribed(envelope), `${name}: ${JSON.stringify(isDescribed.errors)}`);
  const schema = operation?.requestBody?.content['application/json']?.schema;
  if (schema !== undefined) assertRequest(exchange, schema, envelope.message);
}

function assertRequest({ status, requestBody }: Exchange, schema: object, message: string): void {
  const isAccepted = status < 300 || message === 'Invalid credentials';
  if (!isAccepted && !/^Invalid (input|request payload)/.test(message)) return;
  const body = readBody(requestBody);
  if (body === TOO_DEEP) return;
  assert.equal(checkOf(schema)(body), isAccepted, `${JSON.stringify(body)?.slice(0, 100)}: ${message}`);
}

/** In place of a body that is nested too deeply to be read here. */
const TOO_DEEP = Symbol();

/** A body as JSON; undefined if it is not JSON. A number that JSON.parse would round to an integer becomes 0.5. */
function readBody(bytes: Uint8Array): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return JSON.parse(text, (_key, value, context?: { source?: string }) =>
      Number.isInteger(value) && !isExactly(value, context?.source ?? '') ? 0.5 : value,
    );
  } catch (error) {
    return error instanceof RangeError ? TOO_DEEP : undefined;
  }
}

/** Whether the text of a number denotes exactly this integer. */
function isExactly(value: number, source: string): boolean {
  const [, digits = '', fraction = '', exponent = '0'] = /^(-?\d+)\.?(\d*)[eE]?(.*)$/.exec(source) ?? [];
  const shift = Number(exponent || '0') - fraction.length;
  const whole = BigInt(digits + fraction);
  if (whole === 0n || value === 0) return whole === 0n && value === 0;
  return shift < 0
    ? whole === BigInt(value) * 10n ** BigInt(-shift)
    : whole * 10n ** BigInt(shift) === BigInt(value);
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
