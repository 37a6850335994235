// Owns: a small service of the contract in memory, written without any code of this project, and the same service with one
// fault. It has what the core of the contract asks for and the rules of books, but neither pages, conditions, keys nor
// the limits of the wire.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the service does wrong. */
export type Fault =
  | 'coerces types'
  | 'reuses ids'
  | 'answers 500 to odd ids'
  | 'removes nothing'
  | 'removes a book at the second request only';

export interface SmallService {
  readonly url: string;
  stop(): Promise<void>;
}

interface Book {
  readonly id: number;
  readonly title: string;
  readonly author: string;
  readonly year: number;
}

interface Answer {
  readonly status: number;
  readonly message: string;
  readonly data?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export const ACCOUNT = { username: 'someone', password: 'something', secret: 'a secret of a small service' };

const NO_BOOK: Answer = { status: 404, message: 'Book not found' };
const INVALID: Answer = { status: 400, message: 'Invalid input' };
const BODY_LIMIT = 1024 * 1024;
const HASHES: Readonly<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };
const METHODS: readonly (readonly [RegExp, string])[] = [
  [/^\/token$/, 'POST'],
  [/^\/book$/, 'POST'],
  [/^\/books$/, 'GET, HEAD'],
  [/^\/book\/[^/]+$/, 'GET, HEAD, PUT, DELETE'],
];

export async function startSmallService(...faults: readonly Fault[]): Promise<SmallService> {
  const has = (fault: Fault) => faults.includes(fault);
  const books = new Map<number, Book>();
  const refused = new Set<number>();
  let last = 0;

  const newId = () => {
    if (has('reuses ids')) return Math.max(0, ...books.keys()) + 1;
    last += 1;
    return last;
  };

  async function answer(request: IncomingMessage): Promise<Answer> {
    const [path = ''] = (request.url ?? '').split('?');
    const method = request.method ?? '';
    try {
      decodeURIComponent(path);
    } catch {
      return { status: 400, message: 'Bad request' };
    }
    const [, allow] = METHODS.find(([pattern]) => pattern.test(path)) ?? [];
    if (allow === undefined) return { status: 404, message: 'Not found' };
    if (!allow.split(', ').includes(method)) {
      return { status: 405, message: 'Method not allowed', headers: { allow } };
    }
    const refusal = path === '/token' ? undefined : refusalOf(request.headers.authorization);
    if (refusal !== undefined) return refusal;
    if (Number(request.headers['content-length'] ?? 0) > BODY_LIMIT) {
      return { status: 413, message: 'Payload too large' };
    }
    const content = Buffer.concat(await Array.fromAsync(request));
    if (path === '/token') return logIn(content);
    if (path === '/books') {
      const data = [...books.values()].sort((one, other) => one.id - other.id);
      return { status: 200, message: 'Books retrieved successfully', data };
    }
    if (path === '/book') {
      const fields = readFields(content);
      if (fields === undefined) return INVALID;
      const book = { id: newId(), title: '', author: '', year: 0, ...fields };
      books.set(book.id, book);
      const headers = { location: `/book/${book.id}` };
      return { status: 201, message: 'Book created successfully', data: book, headers };
    }
    const text = path.slice('/book/'.length);
    if (!/^[1-9]\d*$/.test(text)) {
      return has('answers 500 to odd ids') ? { status: 500, message: 'Internal server error' } : NO_BOOK;
    }
    const id = Number(text);
    const book = books.get(id);
    if (book === undefined || String(id) !== text) return NO_BOOK;
    if (method === 'DELETE') {
      if (has('removes nothing')) return { status: 500, message: 'Internal server error' };
      if (has('removes a book at the second request only') && !refused.has(id)) {
        refused.add(id);
        return { status: 503, message: 'Service unavailable' };
      }
      books.delete(id);
      return { status: 200, message: 'Book deleted successfully' };
    }
    if (method === 'PUT') {
      const fields = readFields(content);
      if (fields === undefined) return INVALID;
      const changed = { ...book, ...fields };
      books.set(id, changed);
      return { status: 200, message: 'Book updated successfully', data: changed };
    }
    return { status: 200, message: 'Book retrieved successfully', data: book };
  }

  /** The fields of a body; undefined if it cannot be read. */
  function readFields(content: Uint8Array): Partial<Omit<Book, 'id'>> | undefined {
    const body = readObject(content);
    if (body === undefined) return undefined;
    const fields: { title?: string; author?: string; year?: number } = {};
    for (const name of ['title', 'author'] as const) {
      let value = body.get(name);
      if (value === undefined) continue;
      if (has('coerces types') && typeof value === 'object') value = String(value);
      if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed()) return undefined;
      fields[name] = value;
    }
    let year = body.get('year');
    if (has('coerces types') && typeof year === 'string') year = { source: year };
    if (year === undefined) return fields;
    const value = year instanceof Object && 'source' in year ? integerOf(String(year.source)) : undefined;
    if (value === undefined) return undefined;
    return { ...fields, year: value };
  }

  const server = createServer({ requestTimeout: 0 }, (request, response) => {
    const failed = (): Answer => ({ status: 500, message: 'Internal server error' });
    void answer(request)
      .catch(failed)
      .then(({ status, message, data = null, headers }) => {
        const text = JSON.stringify({ status, message, data });
        response.writeHead(status, {
          'content-type': 'application/json; charset=utf-8',
          'content-length': Buffer.byteLength(text),
          'x-content-type-options': 'nosniff',
          'cache-control': 'no-store',
          ...(status === 401 && { 'www-authenticate': 'Token' }),
          ...headers,
        });
        response.end(text);
      });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function logIn(content: Uint8Array): Answer {
  const body = readObject(content);
  const values = ['username', 'password'].map((name) => body?.get(name) ?? (body?.has(name) ? null : ''));
  if (body === undefined || values.some((value) => typeof value !== 'string')) {
    return { status: 400, message: 'Invalid request payload' };
  }
  const [username, password] = values;
  if (username !== ACCOUNT.username || password !== ACCOUNT.password) {
    return { status: 401, message: 'Invalid credentials' };
  }
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ exp: Math.floor(Date.now() / 1000) + 900 })}`;
  const token = `${signed}.${createHmac('sha256', ACCOUNT.secret).update(signed).digest('base64url')}`;
  return { status: 200, message: 'Token generated successfully', data: { token } };
}

/** The answer to a token that is not valid. */
function refusalOf(token: string | undefined): Answer | undefined {
  if (!token) return { status: 401, message: 'Authorization token required' };
  const invalid = { status: 401, message: 'Invalid token' };
  const [, header = '', claims = '', signature = ''] = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(token) ?? [];
  const of = (part: string) => readObject(Buffer.from(part, 'base64url'));
  const algorithm = of(header)?.get('alg');
  const hash = typeof algorithm === 'string' ? HASHES[algorithm] : undefined;
  if (hash === undefined || of(header)?.has('crit')) return invalid;
  const right = createHmac(hash, ACCOUNT.secret).update(`${header}.${claims}`).digest('base64url');
  if (signature.length !== right.length || !timingSafeEqual(Buffer.from(signature), Buffer.from(right)))
    return invalid;
  const time = (name: string) =>
    Number((of(claims)?.get(name) as { source?: string } | undefined)?.source ?? Number.NaN);
  const now = Date.now() / 1000;
  if (!(time('exp') > now) || !Number.isFinite(time('exp'))) return invalid;
  return of(claims)?.has('nbf') && !(time('nbf') <= now) ? invalid : undefined;
}

/** The fields of a JSON object in UTF-8, each number as its text; undefined if it is not an object. */
function readObject(content: Uint8Array): Map<string, unknown> | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
    const value: unknown = JSON.parse(text, (_key, value, context?: { source?: string }) => {
      return typeof value === 'number' ? { source: context?.source } : value;
    });
    const isObject = text.trimStart().startsWith('{') && value instanceof Object && !Array.isArray(value);
    return isObject ? new Map(Object.entries(value)) : undefined;
  } catch {
    return undefined;
  }
}

/** The integer that a number in JSON is, within 2^53−1. */
function integerOf(text: string): number | undefined {
  const [, minus, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '').replace(/0+$/, '');
  if (digits === '') return whole === '' ? undefined : 0;
  const zeros = `${whole}${fraction}`.length - `${whole}${fraction}`.replace(/0+$/, '').length;
  const places = Number(exponent) - fraction.length + zeros;
  if (places < 0 || digits.length + places > 16) return undefined;
  const value = Number(digits + '0'.repeat(places));
  if (!Number.isSafeInteger(value)) return undefined;
  return minus === '-' ? -value : value;
}
