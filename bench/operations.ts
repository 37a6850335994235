// Owns: the operations that are measured, as whole requests over the wire.

import { createHmac } from 'node:crypto';
import { SECRET } from './processes.ts';

/** Books that are in a store before it is measured; reads and updates are spread over all of them. */
export const STANDING_BOOKS = 10_000;

export const OPERATIONS = [
  'read',
  'create',
  'update',
  'delete',
  'mix',
  'log in',
  'no token',
  'bad token',
  'forged tokens',
  'unknown path',
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** What the mix consists of. */
export const MIX = { read: 0.8, create: 0.1, update: 0.1 } as const;

/** Operations of which every answer is a refusal. */
export const REFUSED_OPERATIONS: readonly Operation[] = [
  'no token',
  'bad token',
  'forged tokens',
  'unknown path',
];

/** Forged tokens, each different: more than any cache of tokens may hold. */
const FORGED = 20_000;

/** Distinct requests of one operation: enough that no two neighbours are for one book. */
const DISTINCT = 5_000;

/** A token that the measured services accept. */
export const TOKEN = sign({ exp: Math.floor(Date.now() / 1000) + 24 * 60 * 60 }, SECRET);
const FOREIGN_TOKEN = sign({ exp: Math.floor(Date.now() / 1000) + 24 * 60 * 60 }, 'another secret');
const NO_TOKEN = '';
const BOOK = '{"title":"The Hunger Games (The Hunger Games, #1)","author":"Suzanne Collins","year":2008}';

/** @param doomed ids that may be removed, each of them once. */
export function requestsOf(operation: Operation, doomed: readonly number[]): string[] {
  switch (operation) {
    case 'read':
      return repeat((id) => request('GET', `/book/${id}`));
    case 'create':
      return repeat(() => request('POST', '/book', BOOK));
    case 'update':
      return repeat((id) => request('PUT', `/book/${id}`, `{"year":${id}}`));
    case 'delete':
      return doomed.map((id) => request('DELETE', `/book/${id}`));
    case 'mix': // as MIX says
      return repeat((id, position) => {
        if (position % 10 === 3) return request('POST', '/book', BOOK);
        if (position % 10 === 7) return request('PUT', `/book/${id}`, `{"year":${id}}`);
        return request('GET', `/book/${id}`);
      });
    case 'log in':
      return [request('POST', '/token', '{"username":"bench","password":"bench"}')];
    case 'no token':
      return repeat((id) => request('GET', `/book/${id}`, undefined, NO_TOKEN));
    case 'bad token': // well formed, and signed with another secret, such as that of an earlier process
      return repeat((id) => request('GET', `/book/${id}`, undefined, FOREIGN_TOKEN));
    case 'forged tokens':
      return Array.from({ length: FORGED }, (_, position) =>
        request('GET', '/book/1', undefined, sign({ exp: 2e9 + position }, 'another secret')),
      );
    case 'unknown path':
      return repeat((id) => request('GET', `/shelf/${id}`));
  }
}

function repeat(make: (id: number, position: number) => string): string[] {
  return Array.from({ length: DISTINCT }, (_, position) => {
    const id = ((position * 7919) % STANDING_BOOKS) + 1; // 7919 is prime: ids in no order, none twice
    return make(id, position);
  });
}

/** A whole request, as it goes over the wire. */
export function request(method: string, path: string, body?: string, token = TOKEN): string {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1', `Authorization: ${token}`];
  if (body !== undefined) {
    lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`;
}

function sign(claims: object, secret: string): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}
