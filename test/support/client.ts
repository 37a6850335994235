// Owns: the client's side. Everything goes over a socket; every answer is checked to be an envelope.

import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

export interface Target {
  readonly url: string;
  readonly port: number;
}

export interface Answer {
  readonly status: number;
  readonly message: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the service said; the test says what it must be
  readonly data: any;
  readonly headers: Headers;
}

export interface RequestOptions {
  /** Sent as it is; anything but text and bytes is sent as JSON. */
  readonly body?: unknown;
  /** The whole Authorization header; null sends none. */
  readonly token?: string | null;
  readonly headers?: Record<string, string>;
}

/** A book as the service answers it. */
export interface Book {
  readonly id: number;
  readonly title: string;
  readonly author: string;
  readonly year: number;
}

/** A client that is logged in. */
export class Client {
  readonly #target: Target;
  readonly token: string;

  constructor(target: Target, token: string) {
    this.#target = target;
    this.token = token;
  }

  static async logIn(target: Target): Promise<Client> {
    const body = { username: 'librarian', password: 'correct horse' };
    const { status, data } = await request(target, 'POST', '/token', { body });
    assert.equal(status, 200);
    return new Client(target, data.token);
  }

  request(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    return request(this.#target, method, path, { token: this.token, ...options });
  }

  /** Creates a book and returns it. */
  async create(body: unknown): Promise<Book> {
    const answer = await this.request('POST', '/book', { body });
    assert.equal(answer.status, 201);
    return answer.data;
  }

  /** Every book there is. */
  async list(): Promise<Book[]> {
    const answer = await this.request('GET', '/books');
    assert.equal(answer.status, 200);
    return answer.data;
  }
}

/** A request and its answer. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  /** Those that the test gave, names in lower case. */
  readonly requestHeaders: Readonly<Record<string, string>>;
  /** In base64. */
  readonly requestBody: string;
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Adds an exchange to the file that TEST_RECORD names, a line of JSON each. */
export function record(exchange: Exchange): void {
  const { TEST_RECORD } = process.env;
  if (TEST_RECORD !== undefined) appendFileSync(TEST_RECORD, `${JSON.stringify(exchange)}\n`);
}

/** Sends one request and reads its answer, which must be an envelope whatever it says. */
export async function request(
  { url }: Target,
  method: string,
  path: string,
  { body, token, headers }: RequestOptions = {},
): Promise<Answer> {
  const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array;
  const sent = (isRaw ? body : JSON.stringify(body)) as string | undefined;
  const requestHeaders = { ...(token != null && { authorization: token }), ...headers };
  const response = await fetch(`${url}${path}`, {
    method,
    headers: requestHeaders,
    ...(sent !== undefined && { body: sent }),
  });
  const text = await response.text();
  record({
    method,
    path,
    requestHeaders,
    requestBody: Buffer.from(sent ?? '').toString('base64'),
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: text,
  });
  if (method === 'HEAD') {
    assert.equal(text, '');
    return { status: response.status, message: '', data: undefined, headers: response.headers };
  }
  const envelope = readEnvelope(text, response.status);
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  return { ...envelope, headers: response.headers };
}

/** Reads a body, which must be an envelope of exactly its three fields and of its response's status. */
export function readEnvelope(body: string, httpStatus: number): Omit<Answer, 'headers'> {
  const envelope = JSON.parse(body);
  assert.deepEqual(Object.keys(envelope), ['status', 'message', 'data']);
  assert.equal(envelope.status, httpStatus);
  assert.equal(typeof envelope.message, 'string');
  return envelope;
}

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Record<string, string>;
  readonly body: string;
}

/**
 * Sends bytes as they are and reads answers until the service closes the connection or `answers` of them
 * have come.
 */
export function exchange({ port }: Target, bytes: string | Uint8Array, answers = 1): Promise<RawAnswer[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    const done = () => {
      socket.destroy();
      resolve(parseAnswers(received));
    };
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      received += text;
      if (parseAnswers(received).length >= answers) done();
    });
    socket.on('end', done);
    socket.on('error', reject);
    socket.write(bytes);
  });
}

/** A connection that is written and read piece by piece. */
export class Connection {
  readonly socket: Socket;
  /** Resolves once the connection is closed, with what broke it if something did. */
  readonly closed: Promise<Error | undefined>;
  /** Everything that came so far. */
  received = '';

  constructor({ port }: Target) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text) => {
      this.received += text;
    });
    let failure: Error | undefined;
    this.socket.on('error', (error) => {
      failure = error;
    });
    this.closed = new Promise((resolve) => {
      this.socket.once('close', () => resolve(failure));
    });
  }

  /** Resolves once the system has taken the bytes. */
  send(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.socket.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** The answers received on this connection, as soon as there are so many. */
  answers(count: number): Promise<RawAnswer[]> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const answers = parseAnswers(this.received);
        if (answers.length < count) return;
        this.socket.off('data', look);
        resolve(answers);
      };
      this.socket.on('data', look);
      void this.closed.then((failure) => {
        reject(new Error(`closed after ${parseAnswers(this.received).length} answers`, { cause: failure }));
      });
      look();
    });
  }
}

/** Whether somebody listens there. */
export function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** The complete answers at the beginning of a stream, framed by Content-Length or in chunks. */
export function parseAnswers(stream: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = stream;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) return answers;
    const [statusLine = '', ...lines] = rest.slice(0, end).split('\r\n');
    const status = Number(statusLine.split(' ')[1]);
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    rest = rest.slice(end + 4);
    let body = '';
    if (headers['transfer-encoding'] === 'chunked') {
      for (let size = -1; size !== 0; ) {
        const line = rest.indexOf('\r\n');
        size = Number.parseInt(rest, 16);
        const next = line + 2 + size + 2;
        if (line === -1 || rest.length < next) return answers;
        body += rest.slice(line + 2, next - 2);
        rest = rest.slice(next);
      }
    } else {
      const length = Number(headers['content-length'] ?? 0);
      if (rest.length < length) return answers;
      body = rest.slice(0, length);
      rest = rest.slice(length);
    }
    if (status >= 200) answers.push({ status, headers, body });
  }
}
