// Owns: the client side of the tests. Everything goes over a socket, and every answer is checked to be an envelope.

import assert from 'node:assert/strict';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { AnswerReader, type RawAnswer } from '../../conformance/answers.ts';

export interface Target {
  readonly url: string;
  readonly port: number;
}

export interface Answer {
  readonly status: number;
  readonly message: string;
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any form from the service; each test asserts what it must be
  readonly data: any;
  readonly headers: Headers;
}

export interface RequestOptions {
  /** Text and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  /** The whole Authorization header; null sends none. */
  readonly token?: string | null;
  readonly headers?: Record<string, string>;
}

/** A book as the service returns it. */
export interface Book {
  readonly id: number;
  readonly title: string;
  readonly author: string;
  readonly year: number;
}

/** Sends requests to a service, or to several as if they were one. */
export interface Requester {
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  /** All books. */
  list(): Promise<Book[]>;
}

/** A client that is logged in. */
export class Client implements Requester {
  readonly #target: Target;
  readonly token: string;

  constructor(target: Target, token: string) {
    this.#target = target;
    this.token = token;
  }

  /** @param body the account; that of tests if left out. */
  static async logIn(
    target: Target,
    body = { username: 'librarian', password: 'correct horse' },
  ): Promise<Client> {
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

  /** All books. */
  async list(): Promise<Book[]> {
    const answer = await this.request('GET', '/books');
    assert.equal(answer.status, 200);
    return answer.data;
  }
}

// Tests send many requests: with this agent, a request takes a sixth of the time that it takes with fetch.
const connections = new Agent({ keepAlive: true });

/**
 * Sends one request and reads its answer, which must be an envelope, whatever its status, except 304.
 * @throws TypeError when the connection breaks, as fetch does.
 */
export async function request(
  { url }: Target,
  method: string,
  path: string,
  { body, token, headers }: RequestOptions = {},
): Promise<Answer> {
  const sent = bytesOf(body);
  const requestHeaders = { ...(token != null && { authorization: token }), ...headers };
  const response = await send(new URL(`${url}${path}`), method, requestHeaders, sent);
  return readAnswer(method, response);
}

interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Checks that an answer is an envelope; 304 and an answer to HEAD have no body. */
function readAnswer(method: string, { status, headers, text }: Received): Answer {
  if (method === 'HEAD' || status === 304) {
    assert.equal(text, '');
    return { status, message: '', data: undefined, headers };
  }
  const envelope = readEnvelope(text, status);
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8');
  return { ...envelope, headers };
}

/** @returns undefined for a request without a body. */
function bytesOf(body: unknown): Buffer | undefined {
  if (body === undefined) return undefined;
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function send(
  url: URL,
  method: string,
  headers: Record<string, string>,
  body: Buffer | undefined,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error) => reject(new TypeError(`${method} ${url.pathname}: no answer`, { cause }));
    const length = body === undefined ? {} : { 'content-length': String(body.length) };
    const request = httpRequest(url, { agent: connections, method, headers: { ...length, ...headers } });
    request.on('error', fail);
    request.on('response', (response: IncomingMessage) => {
      let text = '';
      response.setEncoding('utf8').on('data', (more) => {
        text += more;
      });
      response.on('error', fail);
      response.on('end', () => {
        // No answer has Set-Cookie, the only header that Node would return as a list.
        const headers = new Headers(response.headers as Record<string, string>);
        resolve({ status: response.statusCode as number, headers, text });
      });
    });
    request.end(body);
  });
}

/** Parses a body, which must be an envelope: exactly its three fields, with the status of its response. */
export function readEnvelope(body: string, httpStatus: number): Omit<Answer, 'headers'> {
  const envelope = JSON.parse(body);
  assert.deepEqual(Object.keys(envelope), ['status', 'message', 'data']);
  assert.equal(envelope.status, httpStatus);
  assert.equal(typeof envelope.message, 'string');
  return envelope;
}

/**
 * Sends bytes as they are and reads answers until the service closes the connection or `answers` of them have arrived.
 */
export function exchange({ port }: Target, bytes: string | Uint8Array, answers = 1): Promise<RawAnswer[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const reader = new AnswerReader();
    const done = () => {
      socket.destroy();
      resolve(reader.answers);
    };
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      reader.add(text);
      if (reader.answers.length >= answers) done();
    });
    socket.on('end', done);
    socket.on('error', reject);
    socket.write(bytes);
  });
}

/** The bytes of a request that asks for its connection to stay open. */
export function requestBytes(
  method: string,
  path: string,
  { body, token, headers }: RequestOptions = {},
): Buffer {
  const sent = bytesOf(body);
  const lines = Object.entries({
    host: 'books.test',
    ...(token != null && { authorization: token }),
    ...(sent !== undefined && { 'content-length': String(sent.length) }),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1');
  return sent === undefined ? head : Buffer.concat([head, sent]);
}

/**
 * Pipelines requests on one connection, which is the cheapest way to send many. Each answer must be an envelope.
 * @param requests each the arguments of `requestBytes`; HEAD is not supported.
 */
export async function requestAll(
  target: Target,
  requests: readonly Parameters<typeof requestBytes>[],
): Promise<Answer[]> {
  const bytes = Buffer.concat(requests.map((parts) => requestBytes(...parts)));
  const answers = await exchange(target, bytes, requests.length);
  assert.equal(answers.length, requests.length, 'the connection was closed before the last answer');
  return answers.map(({ status, headers, body }, position) => {
    const [method] = requests[position] as Parameters<typeof requestBytes>;
    const text = Buffer.from(body, 'latin1').toString();
    return readAnswer(method, { status, headers: new Headers(headers), text });
  });
}

/** A connection that is written and read piece by piece. */
export class Connection {
  readonly socket: Socket;
  /** Resolves once the connection is closed, with the error that broke it, if any. */
  readonly closed: Promise<Error | undefined>;
  /** Everything received so far. */
  received = '';
  readonly #reader = new AnswerReader();

  constructor({ port }: Target) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text: string) => {
      this.received += text;
      this.#reader.add(text);
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

  /** The answers received on this connection, once there are at least `count`. */
  answers(count: number): Promise<RawAnswer[]> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const { answers } = this.#reader;
        if (answers.length < count) return;
        this.socket.off('data', look);
        resolve([...answers]);
      };
      this.socket.on('data', look);
      void this.closed.then((failure) => {
        reject(new Error(`closed after ${this.#reader.answers.length} answers`, { cause: failure }));
      });
      look();
    });
  }
}

/** Whether a program listens there. */
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

/** The complete answers at the beginning of a stream. */
export function parseAnswers(stream: string): RawAnswer[] {
  const reader = new AnswerReader();
  reader.add(stream);
  return reader.answers;
}
